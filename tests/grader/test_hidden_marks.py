"""Hidden tests give no marks for what is not worked out: typed values, and answers that use the course's module."""

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

from ffn.misconceptions import UNITS, Step, same_value, unit_steps
from grader.course import Course
from grader.notebooks import grade_id, is_hidden, read_notebook
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


# ------------------------------------------------------------------------------------------- nbgrader autograde


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
        "# (hidden tests ran here) Withheld: This step is asked for from scratch, so an answer that uses the course's "
        "module gets no marks here." in feedback
    )


@pytest.mark.slow
def test_feedback_shows_no_hidden_test(feedback: str) -> None:
    assert "HIDDEN TESTS" not in feedback
    assert "hidden_tests_of" not in feedback
