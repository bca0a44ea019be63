"""What all units have in common: the shape of their notebooks, what is released of them, the values they grade."""

import ast
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.preprocessors import ClearHiddenTests, ClearSolutions

from ffn.misconceptions import UNITS, unit_steps
from ffn.published import checked_in, published
from grader.notebooks import steps
from tests.helpers import ROOT

POINTS = 40
LONGEST_ANSWER = 26
ALLOWED = {"ffn", "numpy", "math", "fractions", "decimal", "pathlib"}


def path_of(unit: str) -> Path:
    return ROOT / "solutions" / unit / f"{unit}.ipynb"


@cache
def notebook(unit: str) -> Any:
    return nbformat.read(path_of(unit), as_version=4)


@cache
def cells(unit: str) -> dict[str, Any]:
    return {cell.id: cell for cell in notebook(unit).cells}


@cache
def released(unit: str) -> dict[str, Any]:
    """The cells as nbgrader releases them, by id."""
    nb = nbformat.read(path_of(unit), as_version=4)
    for preprocessor in (ClearSolutions(), ClearHiddenTests()):
        nb, _ = preprocessor.preprocess(nb, {})
    return {cell.id: cell for cell in nb.cells}


def marks(cell: Any) -> dict[str, Any]:
    found: dict[str, Any] = cell.metadata.get("nbgrader", {})
    return found


def names_of(unit: str) -> list[str]:
    return list(steps(notebook(unit)))


def functions(source: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def region(source: str, name: str) -> list[str]:
    """Lines of code between the BEGIN and END marks of that name, stripped."""
    inside = re.findall(rf"### BEGIN {name}\n(.*?)### END {name}", source, flags=re.DOTALL)
    return [line.strip() for part in inside for line in part.splitlines() if line.strip()]


def written(unit: str) -> Any:
    (cell,) = [cell for cell in notebook(unit).cells if cell.cell_type == "markdown" and marks(cell).get("grade")]
    return cell


STEPS = [(unit, step) for unit in UNITS for step in names_of(unit)]
every_unit = pytest.mark.parametrize("unit", UNITS)
every_step = pytest.mark.parametrize(("unit", "step"), STEPS)


# ------------------------------------------------------------------------------------------------- structure


def test_every_unit_of_the_course_has_its_misconceptions() -> None:
    assert sorted(UNITS) == sorted(p.name for p in (ROOT / "solutions").iterdir() if path_of(p.name).is_file())


@every_unit
def test_the_steps_of_the_notebook_are_those_of_the_misconceptions_in_order(unit: str) -> None:
    assert names_of(unit) == [step.name for step in unit_steps(unit)]


@every_unit
def test_every_grade_id_is_unique_and_is_the_id_of_its_cell(unit: str) -> None:
    ids = [(marks(cell)["grade_id"], cell.id) for cell in notebook(unit).cells if marks(cell)]
    assert all(grade_id == cell_id for grade_id, cell_id in ids)
    assert max(Counter(grade_id for grade_id, _ in ids).values()) == 1


@every_unit
def test_at_most_twelve_steps_and_forty_points(unit: str) -> None:
    assert 8 <= len(names_of(unit)) <= 12
    assert sum(marks(cell).get("points", 0) for cell in notebook(unit).cells) == POINTS


@every_unit
def test_the_opening_says_what_is_built_what_prepares_it_how_long_it_takes_and_how_it_is_graded(unit: str) -> None:
    opening = notebook(unit).cells[0].source
    assert opening.startswith("# ")
    for part in ("**Before you start.**", "**Time.**", "**How to work.**", "**How it is graded.**"):
        assert part in opening
    minutes = [int(number) for number in re.findall(r"(\d+) to (\d+) minutes", opening)[0]]
    assert 45 <= min(minutes) < max(minutes) <= 90


@every_step
def test_a_step_is_task_answer_hints_visible_and_hidden_tests_in_this_order(unit: str, step: str) -> None:
    order = list(cells(unit))
    start = order.index(f"{step}_task")
    wanted = [f"{step}_task", step, f"{step}_hints", f"test_{step}", f"hidden_{step}"]
    assert order[start : start + 5] == wanted
    tests = [marks(cells(unit)[name]) for name in wanted[3:]]
    assert all(test["grade"] and test["locked"] and not test["solution"] for test in tests)
    points = [test["points"] for test in tests]
    assert 2 <= sum(points) <= 4
    assert min(points) >= 1
    assert f"({sum(points)} points)" in cells(unit)[f"{step}_task"].source.splitlines()[0]


@every_step
def test_three_hints_of_growing_size_that_do_not_give_the_answer_away(unit: str, step: str) -> None:
    source = cells(unit)[f"{step}_hints"].source
    hints = re.findall(r"<details>\n<summary>Hint (\d)</summary>\n\n(.+?)\n\n</details>", source, flags=re.DOTALL)
    assert [number for number, _ in hints] == ["1", "2", "3"]
    sizes = [len(hint) for _, hint in hints]
    assert sizes == sorted(set(sizes))
    answer = [line.removeprefix("return ") for line in region(cells(unit)[step].source, "SOLUTION")]
    telling = [line for line in answer if len(line) > 12 and "np.asarray(" not in line]
    assert not [line for line in telling if line in source]


@every_step
def test_the_stub_keeps_signature_and_docstring_and_nothing_of_the_answer(unit: str, step: str) -> None:
    source, stub = functions(cells(unit)[step].source), functions(released(unit)[step].source)
    assert list(source) == list(stub)
    assert set(source) == set(next(s for s in unit_steps(unit) if s.name == step).own)
    for name, node in source.items():
        assert ast.unparse(stub[name].args) == ast.unparse(node.args)
        assert ast.get_docstring(node)
        assert ast.get_docstring(stub[name]) == ast.get_docstring(node)
        assert [ast.unparse(line) for line in stub[name].body[1:]] == ["raise NotImplementedError()"]


@every_step
def test_visible_and_hidden_tests_name_their_step(unit: str, step: str) -> None:
    visible, hidden = cells(unit)[f"test_{step}"].source, cells(unit)[f"hidden_{step}"].source
    assert visible.startswith(f'with testing("{unit}.{step}"):')
    assert "assert " in visible or "check(" in visible or "agree(" in visible
    first, *rest = hidden.split("### BEGIN HIDDEN TESTS\n")
    points = marks(cells(unit)[f"hidden_{step}"])["points"]
    said = f"({points} {'point' if points == 1 else 'points'})"
    assert first == f"# More tests of this step run here when the exercise is graded {said}.\n"
    assert len(rest) == 1
    assert f'testing("{unit}.{step}", hidden=True)' in rest[0]
    assert rest[0].rstrip().endswith("### END HIDDEN TESTS")


@every_step
def test_hidden_tests_try_random_or_many_inputs(unit: str, step: str) -> None:
    source = cells(unit)[f"hidden_{step}"].source
    assert "default_rng(" in source or re.search(r"\bfor \w+(, \w+)* in [\[(]", source)


@every_unit
def test_the_written_answer_is_graded_by_hand_with_a_rubric_that_is_not_released(unit: str) -> None:
    cell = written(unit)
    assert marks(cell)["solution"]
    assert f"Rubric ({marks(cell)['points']} points)" in cell.source
    assert released(unit)[cell.id].source == "YOUR ANSWER HERE"


def is_message(target: ast.expr) -> bool:
    return isinstance(target, ast.Name) and target.id == "message"


@every_step
def test_every_assertion_says_in_one_sentence_what_is_wrong(unit: str, step: str) -> None:
    for name in (f"test_{step}", f"hidden_{step}"):
        tree = ast.parse(cells(unit)[name].source)
        asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
        assert all(node.msg is not None for node in asserts)
        texts: list[Any] = [node.msg for node in asserts]
        texts += [n.value for n in ast.walk(tree) if isinstance(n, ast.Assign) and is_message(n.targets[0])]
        said = [str(node.value) for node in texts if isinstance(node, ast.Constant)]
        assert [text for text in said if not re.fullmatch(r"\w.{15,}\.", text, flags=re.DOTALL)] == []


@every_unit
def test_answers_are_short(unit: str) -> None:
    for step in names_of(unit):
        assert len(cells(unit)[step].source.splitlines()) <= LONGEST_ANSWER, step


@every_unit
def test_a_unit_needs_nothing_but_its_folder_and_the_helper_module(unit: str) -> None:
    for cell in notebook(unit).cells:
        if cell.cell_type == "code":
            tree = ast.parse(cell.source)
            modules = {
                alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
            }
            modules |= {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
            assert {name.split(".")[0] for name in modules} <= {
                "ffn",
                "numpy",
                "math",
                "fractions",
                "pathlib",
                "decimal",
            }
            assert ".." not in cell.source.replace("...", "")


@every_unit
def test_data_beside_a_notebook_is_small_and_has_its_licence(unit: str) -> None:
    beside = [path for path in path_of(unit).parent.rglob("*") if path.is_file() and path != path_of(unit)]
    data = [
        path for path in beside if path.suffix not in (".txt", ".md") and ".ipynb_checkpoints" not in path.parts
    ]
    assert sum(path.stat().st_size for path in beside) < 1_000_000
    assert not data or any(path.name.startswith("LICENSE") for path in beside)


# -------------------------------------------------------------------------------------------- what is released


@every_unit
def test_the_released_bytes_hold_no_line_of_an_answer_and_no_hidden_test(unit: str) -> None:
    exercise = ROOT / "exercises" / unit / f"{unit}.ipynb"
    text = exercise.read_text(encoding="utf-8")
    shown = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    visible = "\n".join(cells(unit)[f"test_{step}"].source for step in names_of(unit))
    for step in names_of(unit):
        for line in region(cells(unit)[step].source, "SOLUTION"):
            if len(line) > 20 and line not in visible:
                assert line not in shown, f"{step}: {line}"
        for line in region(cells(unit)[f"hidden_{step}"].source, "HIDDEN TESTS"):
            if len(line) > 20 and line not in visible:
                assert line not in shown, f"{step}: {line}"
    rubric = written(unit).source.splitlines()
    assert not [line for line in rubric if len(line) > 20 and line in shown]
    for word in ("BEGIN SOLUTION", "HIDDEN TESTS", "Reference answer", "Rubric ("):
        assert word not in text


@every_unit
def test_a_release_is_notebook_and_data_and_nothing_else(unit: str) -> None:
    def files(folder: str) -> list[str]:
        base = ROOT / folder / unit
        return sorted(
            str(path.relative_to(base))
            for path in base.rglob("*")
            if path.is_file() and ".ipynb_checkpoints" not in path.parts
        )

    assert files("exercises") == files("solutions")


# ------------------------------------------------------------------------------------------- stored outputs


def checked_by_tests(unit: str, folder: Path) -> set[str]:
    """Published values that the unit's visible test cells have checked, from their stored outputs."""
    document = json.loads(path_of(unit).read_text(encoding="utf-8"))
    document["cells"] = [
        cell
        for cell in document["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade") and "outputs" in cell
    ]
    graded = folder / f"{unit}.ipynb"
    graded.write_text(json.dumps(document), encoding="utf-8")
    return set(checked_in(graded))


def test_graded_cells_have_checked_every_published_value_that_is_to_be_graded(tmp_path: Path) -> None:
    wanted = {ident for ident, entry in published().items() if entry.graded}
    found = set().union(*(checked_by_tests(unit, tmp_path) for unit in UNITS))
    assert len(wanted) == 69
    assert wanted - found == set()


@every_unit
def test_the_notebook_was_run_from_top_to_bottom_and_carries_nothing_of_the_machine(unit: str) -> None:
    code = [cell for cell in notebook(unit).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert not [cell.id for cell in notebook(unit).cells if set(cell.metadata) - {"nbgrader"}]
    outputs = [output for cell in code for output in cell.outputs]
    assert {output.output_type for output in outputs} <= {"display_data", "stream"}
    assert "stderr" not in {output.get("name") for output in outputs}
    assert notebook(unit).metadata.kernelspec.name == "python3"
    assert "version" not in notebook(unit).metadata.language_info
    assert not re.search(r"/(home|root|tmp|work|usr)/", path_of(unit).read_text(encoding="utf-8"))
