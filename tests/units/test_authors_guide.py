"""CONTRIBUTING.md, tried: the unit `toy` is built from the blocks of the guide alone, in a copy of the course.

A block is known by the line before it. What the guide tells an author to do by hand is done here as it says: cells go
into a notebook, a name into a tuple, a block into a file.
"""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tests.helpers import CODE, ROOT, UNITS, CourseCopy, copy_of_course
from tools.lab import copy_exercises

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NOTEBOOK, RELEASE, OWN = "solutions/toy/toy.ipynb", "exercises/toy/toy.ipynb", "work/toy/toy.ipynb"
MISCONCEPTIONS, ALTERNATIVES = "ffn/misconceptions/toy.py", "tools/audit/alternatives/toy.py"
FILES = {
    MISCONCEPTIONS: f"`{MISCONCEPTIONS}`:",
    ALTERNATIVES: f"`{ALTERNATIVES}`:",
    "work/store.py": "`work/store.py` (git ignores `work/`):",
}
RULES = ("tests/__init__.py", "tests/conftest.py", "tests/helpers.py", "tests/units/test_units.py")


@dataclass(frozen=True)
class Block:
    """A fenced block of the guide, without the indentation of its fence, and the line before it."""

    before: str
    language: str
    text: str


def blocks_of(guide: str) -> Iterator[Block]:
    fenced = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", flags=re.DOTALL | re.MULTILINE)
    for found in fenced.finditer(guide):
        before = guide[: found.start()].rstrip().splitlines()[-1].strip()
        indent, language, text = found.groups()
        yield Block(before, language, re.sub(f"^{indent}", "", text, flags=re.MULTILINE))


BLOCKS = tuple(blocks_of(GUIDE))


def block(before: str) -> str:
    (text,) = [found.text for found in BLOCKS if found.before == before]
    return text


def cells_of_the_guide() -> dict[str, Any]:
    """The cells that the guide lists, in its order, with the metadata that it gives and nothing else."""
    cells: dict[str, Any] = {}
    for found in BLOCKS:
        cell = re.fullmatch(r"Cell `(\w+)` \((code|Markdown)\):", found.before)
        metadata = re.fullmatch(r"Metadata of `(\w+)`:", found.before)
        if cell:
            new_cell = new_code_cell if cell[2] == "code" else new_markdown_cell
            cells[cell[1]] = new_cell(found.text.rstrip("\n"))
        elif metadata:
            cells[metadata[1]].metadata.update(json.loads(found.text))
    return cells


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


def run(course: CourseCopy, line: str) -> subprocess.CompletedProcess[str]:
    """A command as the guide gives it, in the copy."""
    return course.command(*shlex.split(line.replace(".venv/bin/", f"{Path(sys.executable).parent}/")))


def table_row(text: str, name: str) -> list[str]:
    """A row of a table on the terminal."""
    rows = [[part.strip() for part in line.split("│")[1:-1]] for line in text.splitlines()]
    return next(row[1:] for row in rows if row and row[0] == name)


def add_what_the_guide_lists(root: Path) -> None:
    """The files, the notebook, and the two edits of what is there."""
    for name, before in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(block(before), encoding="utf-8")
    with (root / "ffn" / "published.toml").open("a", encoding="utf-8") as ledger:
        ledger.write("\n" + block("`ffn/published.toml`, at its end:"))
    assert "tuple `UNITS` in `ffn/misconceptions/__init__.py`" in GUIDE
    package = root / "ffn" / "misconceptions" / "__init__.py"
    (units,) = re.findall(r"^UNITS = \([^)]*", package.read_text(encoding="utf-8"), flags=re.MULTILINE)
    edit(package, units, units.rstrip(", \n") + ', "toy"')
    (root / NOTEBOOK).parent.mkdir()
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = list(cells_of_the_guide().values())
    nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), root / NOTEBOOK)


COMMANDS = block("In a terminal, for this unit:").splitlines()


@dataclass(frozen=True)
class Toy:
    """A course with the unit in it, and what the guide's commands said; tests only read it."""

    course: CourseCopy
    outputs: dict[str, str]

    def said(self, part: str) -> str:
        (text,) = [text for line, text in self.outputs.items() if part in line]
        return text


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    course = copy_of_course(tmp_path_factory.mktemp("guide") / "course", *CODE, *UNITS, *RULES)
    add_what_the_guide_lists(course.root)
    outputs = {}
    for line in COMMANDS:
        done = run(course, line)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        outputs[line] = done.stdout
    return Toy(course, outputs)


def read(course: CourseCopy, name: str) -> dict[str, Any]:
    """A notebook's cells by id."""
    return {cell["id"]: cell for cell in nbformat.read(course.root / name, as_version=4)["cells"]}


# ------------------------------------------------------------------------------------------------ the guide itself


def test_the_guide_names_the_commands_that_there_are() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"(?:`|^)make ([a-z]+)", GUIDE, flags=re.MULTILINE))
    assert len(named) > 8
    assert [name for name in named if not re.search(rf"^{name}:", makefile, flags=re.MULTILINE)] == []


def test_the_guide_names_files_and_folders_that_there_are() -> None:
    named = set(re.findall(r"`((?:[\w-]+/)+[\w.-]*)`", GUIDE)) - {"exercises/"}
    invented = {name for name in named if re.search(r"toy|[A-Z]{4}|^work/", name)}
    assert len(named - invented) >= 8
    assert [name for name in named - invented if not (ROOT / name).exists()] == []


def test_the_links_inside_the_guide_lead_somewhere() -> None:
    headings = {
        re.sub(r"[^\w-]", "", title.lower().replace(" ", "-"))
        for title in re.findall(r"^#+ (.+)$", GUIDE, flags=re.MULTILINE)
    }
    links = set(re.findall(r"\]\(#([\w-]+)\)", GUIDE))
    assert links
    assert links <= headings


def test_every_block_in_the_guide_s_example_is_used() -> None:
    cells = [found for found in BLOCKS if found.before.startswith(("Cell `", "Metadata of `"))]
    assert [found.language for found in BLOCKS].count("json") == 5
    assert len(cells) == len(cells_of_the_guide()) + 5 + 1


# ---------------------------------------------------------------------------------------------- the unit it makes


@pytest.mark.slow
def test_the_code_of_the_guide_is_in_the_course_s_form(toy: Toy) -> None:
    for name, before in FILES.items():
        assert (toy.course.root / name).read_text(encoding="utf-8") == block(before)
    stored, written = read(toy.course, NOTEBOOK), cells_of_the_guide()
    assert [cell["source"] for cell in stored.values()] == [cell["source"] for cell in written.values()]
    done = run(toy.course, f".venv/bin/ruff check {' '.join(FILES)} {NOTEBOOK}")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_stored_notebook_was_run_and_its_cells_have_their_ids(toy: Toy) -> None:
    cells = read(toy.course, NOTEBOOK)
    assert list(cells) == list(cells_of_the_guide())
    assert [cell["execution_count"] for cell in cells.values() if cell["cell_type"] == "code"] == [1, 2, 3, 4]
    (line,) = cells["test_double"]["outputs"]
    assert line["data"]["text/plain"] == "✓ toy.double: published 7, computed 7 (the toy source)"


@pytest.mark.slow
def test_the_unit_keeps_the_rules_of_all_units_but_for_its_size(toy: Toy) -> None:
    chosen = "(toy and not forty_points) or every_unit_of_the_course"
    done = toy.course.module("pytest", "-q", "-p", "no:cacheprovider", RULES[-1], "-k", chosen)
    assert done.returncode == 0, done.stdout
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 10


@pytest.mark.slow
def test_the_release_has_stubs_and_visible_tests(toy: Toy) -> None:
    cells = read(toy.course, RELEASE)
    assert list(cells) == list(cells_of_the_guide())
    assert cells["double"]["source"].endswith('"""\n    # YOUR CODE HERE\n    raise NotImplementedError()')
    assert cells["test_double"]["source"] == block("Cell `test_double` (code):").rstrip("\n")
    assert cells["double_in_words"]["source"] == "YOUR ANSWER HERE"


@pytest.mark.slow
@pytest.mark.parametrize(
    "secret",
    ["return 2 * np.asarray", "SOLUTION", "HIDDEN TESTS", "hidden_tests_of_double", "np.add", "Rubric", "✓"],
)
def test_the_release_has_no_answer_no_hidden_test_and_no_output(toy: Toy, secret: str) -> None:
    assert secret in (toy.course.root / NOTEBOOK).read_text(encoding="utf-8")
    assert secret not in (toy.course.root / RELEASE).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_reference_passes_its_own_check(toy: Toy) -> None:
    said = toy.said("grader check")
    assert table_row(said, "double")[0] == "passed"
    assert "All visible tests pass." in said


@pytest.mark.slow
def test_a_learner_with_the_misconception_is_told_what_the_guide_says(toy: Toy) -> None:
    copy_exercises(toy.course.root / "exercises", toy.course.root / "work")
    notebook = nbformat.read(toy.course.root / OWN, as_version=4)
    (answer,) = [cell for cell in notebook["cells"] if cell["id"] == "double"]
    answer["source"] = block(f"Cell `double` of `{OWN}`:")
    nbformat.write(notebook, toy.course.root / OWN)
    done = run(toy.course, f".venv/bin/grader check {OWN}")
    assert done.returncode == 1
    assert table_row(done.stdout, "double")[0] == "not yet"
    assert block(f"`make check NB={OWN}` has to say what happened:") in done.stdout


def audited(said: str) -> dict[str, int]:
    """The figures of the audit's row for the unit, by the guide's names of the columns."""
    table = GUIDE.split("| Column | What is counted | Bar |")[1].split("\n\n")[0]
    columns = re.findall(r"^\| ([a-z ]+) \|", table, flags=re.MULTILINE)
    return dict(zip(columns, map(int, table_row(said, "toy")), strict=True))


@pytest.mark.slow
def test_the_audit_s_bars_are_met(toy: Toy) -> None:
    figures = audited(toy.said("tools.audit"))
    assert figures.pop("mutants") == figures.pop("caught") >= 3
    assert figures == {
        "wrong ways": 1,
        "rejected": 1,
        "named": 1,
        "misnamed": 0,
        "right ways": 10,
        "full marks": 10,
    }


# ---------------------------------------------------------------------------------------- changes to the unit


@pytest.fixture
def changed(toy: Toy, tmp_path: Path) -> CourseCopy:
    """The unit in a copy that a test may change."""
    course = copy_of_course(tmp_path / "course", *CODE)
    for name in ("ffn", "tools", "solutions/toy"):
        shutil.copytree(toy.course.root / name, course.root / name, dirs_exist_ok=True)
    return course


def audit(course: CourseCopy) -> subprocess.CompletedProcess[str]:
    return run(course, COMMANDS[-1])


@pytest.mark.slow
def test_the_second_misconception_of_the_guide_is_named_too(changed: CourseCopy) -> None:
    added = block(f"`{MISCONCEPTIONS}`, in `misconceptions` of the step, with a comma behind it:")
    edit(changed.root / MISCONCEPTIONS, "misconceptions=(\n", f"misconceptions=(\n{added.rstrip()},\n")
    done = audit(changed)
    assert done.returncode == 0, done.stdout
    figures = audited(done.stdout)
    assert (figures["wrong ways"], figures["rejected"], figures["named"]) == (2, 2, 2)


def wrong_way(name: str, function: str) -> str:
    return f"Misconception(name={name!r}, wrong={{'double': {function}}}, hint='({name})', page=''),"


# Edits that make the tests of the unit weak, or its probes and one of its tests odd: file, old text, new text.
MUTANT = "2 * np.asarray(x, dtype=float) -> 2 + np.asarray(x, dtype=float)"
WEAK = (
    (NOTEBOOK, "    hidden_tests_of_double()", "    pass"),
    (NOTEBOOK, r"double(published_inputs(\"toy\")[\"x\"])", "double(2.0) + 3"),
    (NOTEBOOK, "np.allclose(double(np.array([-1.5, 0.0])), [-3, 0])", "double(2.0) == 4"),
    (ALTERNATIVES, "str] = {}", f"str] = {{'double: line 8: {MUTANT}': 'my reason'}}"),
)
FIRST = "misconceptions=(\n"
ODD = (
    (NOTEBOOK, r"on=\"a list\")", r"on=\"a list\")\n    assert hasattr(double([1.5]), \"shape\")"),
    (MISCONCEPTIONS, FIRST, FIRST + wrong_way("twin", "np.square")),
    (MISCONCEPTIONS, FIRST, FIRST + wrong_way("far", "lambda x: 2 * np.where(abs(np.add(x, 1.2)) < 1.1, 0, x)")),
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("edits", "lines"),
    [
        pytest.param(
            WEAK,
            ["squared: kept ('hidden_double',)", f"toy.double survives line 8: {MUTANT} (my reason)"],
            id="weak-tests",
        ),
        pytest.param(
            ODD,
            ["squared: hints ('twin',)", "far: hints ()", "alternative 1 of double loses hidden_double: "],
            id="odd-probes-and-tests",
        ),
    ],
)
def test_the_audit_says_what_the_guide_lists(
    changed: CourseCopy, edits: tuple[tuple[str, str, str], ...], lines: list[str]
) -> None:
    for path, old, new in edits:
        edit(changed.root / path, old, new)
    done = audit(changed)
    assert done.returncode == 1
    assert [line for line in lines if line not in done.stdout] == []


@pytest.mark.slow
def test_the_values_that_units_check_are_listed(toy: Toy) -> None:
    (command,) = re.findall(r"`(\S+ -m ffn\.published solutions)`", GUIDE)
    listed = run(toy.course, command).stdout.splitlines()
    assert [line.split() for line in listed if " toy.double " in line] == [
        ["✓", "toy.double", "the", "toy", "source", "toy/toy"]
    ]
