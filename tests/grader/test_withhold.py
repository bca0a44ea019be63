"""Answers that use the course's module, or have values typed in, as nbgrader's own autograde marks them."""

import contextlib
import copy
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from traitlets.config import Config

from ffn.misconceptions import UNITS, Step, same_value, unit_steps
from grader.course import Course
from grader.notebooks import FLAG_KEY, grade_id, is_hidden, read_notebook
from grader.withhold import Withhold
from tests.helpers import CODE, ROOT, CourseCopy, copy_of_course
from tools.audit.notebook import Unit, run, unit

UNIT = "activations"
TYPED = "def silu(z):\n    return {-0.5: -0.188770, 2.0: 1.761594, -10.0: -0.000454, 10.0: 9.999546}.get(z, 0)"
USED = "import ffn\n\n\ndef gelu(z):\n    return ffn.gelu(z)"


def submission(**answers: str) -> Any:
    notebook = read_notebook(Course(ROOT).reference(UNIT))
    for cell in notebook["cells"]:
        cell["source"] = answers.get(str(grade_id(cell)), cell["source"])
    return notebook


def treated(notebook: Any, assignment: str = UNIT, name: str = UNIT) -> dict[str, Any]:
    """The cells of a notebook by id, after the preprocessor."""
    treat = Withhold(config=Config({"CourseDirectory": {"root": str(ROOT)}}))
    done, _ = treat.preprocess(notebook, {"nbgrader": {"assignment": assignment, "notebook": name}})
    return {str(grade_id(cell)): cell for cell in done["cells"]}


# ---------------------------------------------------------------------------------------- the preprocessor alone


def test_hidden_tests_of_an_answer_that_uses_the_module_fail_with_a_reason() -> None:
    (output,) = treated(submission(gelu=USED))["hidden_gelu"]["outputs"]
    assert output["output_type"] == "error"
    assert output["evalue"] == (
        "This step is asked for from scratch, so these tests give no marks for an answer that uses ffn."
    )


def test_its_visible_tests_and_other_steps_are_left_as_they_are() -> None:
    right = {str(grade_id(cell)): cell for cell in submission()["cells"]}
    changed = {
        name
        for name, cell in treated(submission(gelu=USED)).items()
        if cell.get("outputs") != right[name].get("outputs")
    }
    assert changed == {"hidden_gelu"}


def test_an_answer_that_uses_the_module_is_flagged() -> None:
    cells = treated(submission(gelu=USED))
    assert {name: cell["metadata"][FLAG_KEY] for name, cell in cells.items() if FLAG_KEY in cell["metadata"]} == {
        "gelu": ["uses ffn"]
    }


def test_typed_values_are_flagged_and_the_hidden_tests_decide() -> None:
    right = submission()
    cells = treated(submission(silu=TYPED))
    assert cells["silu"]["metadata"][FLAG_KEY] == [
        "has the published ex4.silu_neg, ex4.silu_pos, ex8.silu_pos, ex8.silu_neg typed in"
    ]
    (hidden,) = [cell for cell in right["cells"] if grade_id(cell) == "hidden_silu"]
    assert cells["hidden_silu"]["outputs"] == hidden["outputs"]


def test_the_reason_names_only_what_costs_marks() -> None:
    (output,) = treated(submission(gelu=f"{USED}\nx = -0.154269"))["hidden_gelu"]["outputs"]
    assert output["evalue"].endswith("for an answer that uses ffn.")


def test_an_ordinary_submission_is_left_as_it_is() -> None:
    assert treated(submission()) == {str(grade_id(cell)): cell for cell in submission()["cells"]}


def test_flags_that_a_learner_wrote_are_removed() -> None:
    notebook = submission(gelu=USED)
    for cell in notebook["cells"]:
        cell["metadata"][FLAG_KEY] = ["is the best of all"]
    cells = treated(notebook)
    assert [name for name, cell in cells.items() if FLAG_KEY in cell["metadata"]] == ["gelu"]


def test_the_flag_of_a_deleted_answer_stands_at_its_test() -> None:
    notebook = submission()
    notebook["cells"] = [cell for cell in notebook["cells"] if grade_id(cell) != "gelu"]
    notebook["cells"].insert(3, nbformat.v4.new_code_cell("from ffn import gelu"))
    cells = treated(notebook)
    assert cells["test_gelu"]["metadata"][FLAG_KEY] == ["uses ffn"]
    assert cells["hidden_gelu"]["outputs"][0]["ename"] == "Withheld"


@pytest.mark.parametrize(("assignment", "name"), [("gates", "gates"), (UNIT, "notes"), ("../solutions", UNIT)])
def test_notebooks_that_are_no_unit_s_are_left_alone(assignment: str, name: str) -> None:
    cells = treated(submission(gelu=USED), assignment, name)
    assert not any(FLAG_KEY in cell["metadata"] for cell in cells.values())


def test_odd_marks_on_a_cell_are_no_fault() -> None:
    notebook = submission(gelu=USED)
    notebook["cells"].append(nbformat.v4.new_code_cell("", metadata={"nbgrader": []}))
    notebook["cells"].append(nbformat.v4.new_code_cell("", metadata={"nbgrader": {"grade_id": 3}}))
    assert FLAG_KEY in treated(notebook)["gelu"]["metadata"]


# ----------------------------------------------------------------------- answers that know the visible tests only


def without_hidden(book: Unit, notebook: Any) -> Unit:
    hidden = {grade_id(cell) for cell in notebook["cells"] if is_hidden(cell)}
    return Unit(book.name, tuple(cell for cell in book.cells if cell.ident not in hidden))


def from_memory(step: Step, book: Unit) -> dict[str, Callable[..., Any]]:
    """Functions that give back what the visible tests of a step ask for, and else the first of these values."""
    known: dict[str, list[tuple[Any, Any, Any]]] = {name: [] for name in step.own}

    def recorder(name: str, function: Any) -> Callable[..., Any]:
        def recorded(*given: Any, **more: Any) -> Any:
            kept = copy.deepcopy((given, more))
            value = function(*given, **more)
            known[name].append((*kept, copy.deepcopy(value)))
            return value

        return recorded

    results = run(book, step.name, {name: recorder(name, f) for name, f in step.own.items()}, only_step=True)
    assert [result.message for result in results if result.message] == []

    def teller(name: str) -> Callable[..., Any]:
        def told(*given: Any, **more: Any) -> Any:
            for asked, options, value in known[name]:
                with contextlib.suppress(Exception):
                    if options == more and same_value(given, asked):
                        return copy.deepcopy(value)
            return copy.deepcopy(known[name][0][2])

        return told

    return {name: teller(name) for name in step.own}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNITS)
def test_an_answer_that_knows_only_the_visible_tests_gets_no_hidden_marks(name: str) -> None:
    book, notebook = unit(name), read_notebook(Course(ROOT).reference(name))
    visible = without_hidden(book, notebook)
    shown = {cell.ident for cell in visible.cells}
    kept = []
    for step in unit_steps(name):
        results = run(book, step.name, from_memory(step, visible))
        kept += [r.ident for r in results if r.step == step.name and r.ident not in shown and not r.message]
    assert kept == []


# --------------------------------------------------------------------------------------- nbgrader's own autograde


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A course in which nbgrader itself has graded one submission, with feedback."""
    course = copy_of_course(
        tmp_path_factory.mktemp("withhold") / "course", *CODE, f"solutions/{UNIT}", f"exercises/{UNIT}"
    )
    path = Course(course.root).submitted / "ada" / UNIT / f"{UNIT}.ipynb"
    path.parent.mkdir(parents=True)
    nbformat.write(submission(silu=TYPED, gelu=USED), path)
    assert course.grader("release", UNIT).returncode == 0
    done = course.command("nbgrader", "autograde", UNIT, "--create")
    assert done.returncode == 0, done.stderr
    done = course.command("nbgrader", "generate_feedback", UNIT)
    assert done.returncode == 0, done.stderr
    return course


@pytest.fixture(scope="module")
def points(graded: CourseCopy) -> dict[str, float]:
    """Points by cell."""
    from nbgrader.api import Gradebook

    with Gradebook(Course(graded.root).config().CourseDirectory.db_url) as gradebook:
        (found,) = gradebook.assignment_submissions(UNIT)
        return {grade.name: grade.auto_score for notebook in found.notebooks for grade in notebook.grades}


@pytest.mark.slow
@pytest.mark.parametrize("step", ["silu", "gelu"])
def test_the_visible_marks_are_kept_and_no_others(points: dict[str, float], step: str) -> None:
    assert points[f"test_{step}"] > 0
    assert points[f"hidden_{step}"] == 0


@pytest.mark.slow
def test_other_steps_keep_all_their_marks(points: dict[str, float]) -> None:
    lost = [name for name, score in points.items() if score == 0]
    assert lost == ["hidden_silu", "hidden_gelu"]


@pytest.mark.slow
def test_the_table_of_scores_shows_the_flags(graded: CourseCopy) -> None:
    done = graded.module("grader.cli", "scores", UNIT)
    text = " ".join(done.stdout.replace("│", " ").split())
    assert "look at silu has the published ex4.silu_neg, ex4.silu_pos, ex8.silu_pos, ex8.silu_neg typed in" in text
    assert "look at gelu uses ffn" in text


@pytest.mark.slow
def test_the_scores_as_json_hold_the_flags(graded: CourseCopy) -> None:
    (entry,) = json.loads(graded.grader("scores", UNIT, "--json").stdout)
    assert entry["learner"] == "ada"
    assert entry["flags"] == [
        "silu has the published ex4.silu_neg, ex4.silu_pos, ex8.silu_pos, ex8.silu_neg typed in",
        "gelu uses ffn",
    ]


@pytest.fixture(scope="module")
def feedback(graded: CourseCopy) -> str:
    """The feedback as a reader sees it, blanks made equal."""
    page: Path = Course(graded.root).feedback / "ada" / UNIT / f"{UNIT}.html"
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


@pytest.mark.slow
def test_feedback_says_why_there_are_no_marks(feedback: str) -> None:
    assert feedback.count("Withheld") == 1
    assert (
        "# (hidden tests ran here) Withheld: This step is asked for from scratch, so these tests give no marks for an "
        "answer that uses ffn." in feedback
    )


@pytest.mark.slow
def test_feedback_shows_no_hidden_test(feedback: str) -> None:
    assert "HIDDEN TESTS" not in feedback
    assert "hidden_tests_of" not in feedback
