"""The demo class graded by nbgrader's own autograder, in a copy of the course: scores, feedback, bad input."""

import csv
import html
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.course import Course
from grader.demo_class import DemoClass, Learner, demo_class
from grader.notebooks import grade_id, read_notebook, steps
from tests.helpers import CourseCopy, said_once

pytestmark = pytest.mark.slow

DEMO = demo_class("activations")
PERFECT = "learner-01"


def those(condition: Callable[[Learner], object]) -> list[Any]:
    """Learners of a kind, as parameters."""
    return [pytest.param(learner, id=learner.id) for learner in DEMO.learners if condition(learner)]


EVERYBODY = those(lambda learner: True)


def points_by_cell(course: Course) -> dict[str, dict[str, float]]:
    """Automatic points in the gradebook, by learner and cell."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        return {
            submission.student.id: {
                grade.name: grade.auto_score for nb in submission.notebooks for grade in nb.grades
            }
            for submission in gradebook.assignment_submissions("activations")
        }


@pytest.fixture(scope="module")
def course(graded_course: CourseCopy) -> Course:
    return Course(graded_course.root)


@pytest.fixture(scope="module")
def points(course: Course) -> dict[str, dict[str, float]]:
    return points_by_cell(course)


@pytest.fixture(scope="module")
def scores(graded_course: CourseCopy) -> dict[str, dict[str, Any]]:
    """What `grader scores --json` gives, by learner."""
    done = graded_course.grader("scores", "activations", "--json")
    assert done.returncode == 0, done.stderr
    return {entry["learner"]: entry for entry in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def rows(course: Course) -> dict[str, dict[str, str]]:
    """The rows of grades.csv, by learner."""
    with course.grades_csv.open(encoding="utf-8", newline="") as stream:
        return {row["student_id"]: row for row in csv.DictReader(stream)}


@pytest.fixture
def copy(graded_course: CourseCopy, tmp_path: Path) -> CourseCopy:
    """A copy of the graded course that a test may change."""
    return CourseCopy(Path(shutil.copytree(graded_course.root, tmp_path / "course")))


@pytest.fixture(scope="module")
def order(course: Course) -> list[str]:
    """The cells with automatic points, in the order of the unit."""
    cells = read_notebook(course.reference("activations"))["cells"]
    marks = [cell["metadata"].get("nbgrader", {}) for cell in cells]
    return [mark["grade_id"] for mark in marks if mark.get("grade") and mark["locked"]]


# ----------------------------------------------------------------------------------------------- scores


def test_every_learner_has_a_score(scores: dict[str, dict[str, Any]]) -> None:
    assert list(scores) == [learner.id for learner in DEMO.learners]


def test_the_perfect_submission_gets_every_automatic_point(scores: dict[str, dict[str, Any]]) -> None:
    assert scores[PERFECT]["auto_points"] == scores[PERFECT]["max_auto_points"] > 0


def test_written_answers_are_left_to_a_person(scores: dict[str, dict[str, Any]]) -> None:
    assert scores[PERFECT]["waits_for_person"]
    assert scores[PERFECT]["max_points"] - scores[PERFECT]["max_auto_points"] == 3


@pytest.mark.parametrize("learner", those(lambda learner: learner.blank))
def test_the_blank_submission_gets_nothing(learner: Learner, scores: dict[str, dict[str, Any]]) -> None:
    assert scores[learner.id]["points"] == 0
    assert not scores[learner.id]["waits_for_person"]


@pytest.mark.parametrize("learner", those(lambda learner: learner.mistakes))
def test_a_mistake_loses_the_points_of_its_step(learner: Learner, points: dict[str, dict[str, float]]) -> None:
    for name in learner.mistakes:
        assert points[learner.id][f"test_{DEMO.mistakes[name][0]}"] == 0


@pytest.mark.parametrize("learner", those(lambda learner: learner.mistakes))
def test_steps_before_the_mistake_keep_their_points(
    learner: Learner, points: dict[str, dict[str, float]], order: list[str]
) -> None:
    first = min(order.index(f"test_{DEMO.mistakes[name][0]}") for name in learner.mistakes)
    assert [points[learner.id][cell] for cell in order[:first]] == [
        points[PERFECT][cell] for cell in order[:first]
    ]


# What the last steps call is not wrong in any of these submissions.
@pytest.mark.parametrize("learner", those(lambda learner: learner.mistakes))
def test_a_mistake_does_not_take_every_step_along(learner: Learner, points: dict[str, dict[str, float]]) -> None:
    assert sum(score or 0 for score in points[learner.id].values()) > 0


def test_an_answer_that_does_not_run_loses_its_own_steps_only(points: dict[str, dict[str, float]]) -> None:
    (learner,) = [x.id for x in DEMO.learners if x.mistakes == ("does_not_run",)]
    assert points[learner]["test_relu"] == 0
    assert points[learner]["test_sigmoid"] == points[PERFECT]["test_sigmoid"]


@pytest.mark.parametrize("learner", those(lambda learner: learner.answered))
def test_a_half_done_submission_gets_the_points_of_the_steps_done(
    learner: Learner, points: dict[str, dict[str, float]], order: list[str], course: Course
) -> None:
    tests = list(steps(read_notebook(course.reference("activations"))).values())
    done = {cell for cells in tests[: learner.answered] for cell in cells}
    expected = [points[PERFECT][cell] if cell in done else 0 for cell in order]
    assert [points[learner.id][cell] for cell in order] == expected


@pytest.mark.parametrize("learner", those(lambda learner: learner.deleted))
def test_a_deleted_test_cell_comes_back_and_is_scored(
    learner: Learner, points: dict[str, dict[str, float]], course: Course
) -> None:
    notebook = read_notebook(course.autograded / learner.id / "activations" / "activations.ipynb")
    assert set(learner.deleted) <= {grade_id(cell) for cell in notebook["cells"]}
    assert points[learner.id] == points[PERFECT]


@pytest.mark.parametrize("learner", those(lambda learner: learner.late_hours))
def test_a_late_submission_is_marked_late_by_its_hours(
    learner: Learner, scores: dict[str, dict[str, Any]]
) -> None:
    assert scores[learner.id]["hours_late"] == learner.late_hours == 49
    assert scores[learner.id]["auto_points"] == scores[PERFECT]["auto_points"]


@pytest.mark.parametrize("learner", those(lambda learner: not learner.late_hours))
def test_nobody_else_is_late(learner: Learner, scores: dict[str, dict[str, Any]]) -> None:
    assert scores[learner.id]["hours_late"] == 0


def test_the_table_of_scores_says_who_is_late_and_what_is_to_be_read(graded_course: CourseCopy) -> None:
    lines = graded_course.grader("scores", "activations").stdout.splitlines()
    (late,) = [line for line in lines if "learner-07" in line]
    assert "49 h late, written answer to be graded" in late


# -------------------------------------------------------------------------------------- CSV and feedback


@pytest.mark.parametrize("learner", EVERYBODY)
def test_the_table_of_scores_has_a_row_for_every_learner(
    learner: Learner, rows: dict[str, dict[str, str]], scores: dict[str, dict[str, Any]]
) -> None:
    assert float(rows[learner.id]["score"]) == scores[learner.id]["points"]
    assert float(rows[learner.id]["max_score"]) == 40
    assert rows[learner.id]["assignment"] == "activations"


def test_the_table_of_scores_has_no_other_rows(rows: dict[str, dict[str, str]]) -> None:
    assert len(rows) == len(DEMO.learners)


def feedback_text(course: Course, learner: str) -> str:
    """The feedback as a reader sees it, blanks made equal."""
    page = (course.feedback / learner / "activations" / "activations.html").read_text(encoding="utf-8")
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", body)).split())


@pytest.mark.parametrize("learner", EVERYBODY)
def test_every_learner_gets_feedback_with_the_score(
    learner: Learner, course: Course, scores: dict[str, dict[str, Any]]
) -> None:
    assert f"activations: {scores[learner.id]['points']:g} of 40 points" in feedback_text(course, learner.id)


def test_feedback_shows_the_message_of_a_failed_test(course: Course) -> None:
    assert "expected -0.154268769, but the given value is -0.15428599" in feedback_text(course, "learner-03")


def hidden_lines(course: Course) -> Iterator[str]:
    """Lines of code of the hidden tests that the released notebook does not show; blanks made equal."""
    shown = " ".join(course.exercise("activations").read_text(encoding="utf-8").replace('\\"', '"').split())
    for cell in read_notebook(course.reference("activations"))["cells"]:
        for part in re.findall(r"### BEGIN HIDDEN TESTS\n(.*?)### END", cell["source"], flags=re.DOTALL):
            lines = {" ".join(line.split()) for line in part.splitlines()}
            # The message of a test may reach the learner: it says what is wrong.
            yield from sorted(x for x in lines if len(x) > 25 and '"' not in x and x not in shown)


def test_there_are_hidden_tests_to_look_for(course: Course) -> None:
    assert len(list(hidden_lines(course))) > 20


@pytest.mark.parametrize("learner", EVERYBODY)
def test_feedback_holds_no_hidden_test(learner: Learner, course: Course) -> None:
    text = feedback_text(course, learner.id)
    assert [line for line in hidden_lines(course) if line in text] == []
    assert "HIDDEN TESTS" not in text


# -------------------------------------------------------------------------------------------- graded again


def snapshot(course: Course) -> dict[str, bytes]:
    files = [path for path in course.autograded.rglob("*") if path.is_file()]
    return {path.relative_to(course.var).as_posix(): path.read_bytes() for path in files}


def test_grading_again_changes_nothing(copy: CourseCopy) -> None:
    course = Course(copy.root)
    before, points_before = snapshot(course), points_by_cell(course)
    assert copy.grader("autograde", "activations").returncode == 0
    assert snapshot(course) == before
    assert points_by_cell(course) == points_before


def hand_in(course: Course, learner: str, text: str) -> None:
    path = course.submitted / learner / "activations" / "activations.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_another_learner_changes_nobody_s_score(copy: CourseCopy) -> None:
    course = Course(copy.root)
    before = points_by_cell(course)
    hand_in(course, "ada", course.exercise("activations").read_text(encoding="utf-8"))
    done = copy.grader("autograde", "activations", "--learner", "ada")
    assert done.returncode == 0, done.stderr
    after = points_by_cell(course)
    assert sum(score or 0 for score in after.pop("ada").values()) == 0
    assert after == before


def test_a_learner_graded_anew_gets_the_new_score(copy: CourseCopy) -> None:
    course = Course(copy.root)
    perfect = (course.submitted / PERFECT / "activations" / "activations.ipynb").read_text(encoding="utf-8")
    hand_in(course, "learner-02", perfect)
    done = copy.grader("autograde", "activations", "--learner", "learner-02", "--force")
    assert done.returncode == 0, done.stderr
    points = points_by_cell(course)
    assert points["learner-02"] == points[PERFECT]


# ------------------------------------------------------------------------------------------- bad input


def without_cells(course: Course) -> str:
    notebook = read_notebook(course.exercise("activations"))
    notebook["cells"] = []
    return str(nbformat.writes(notebook))


UNREADABLE: dict[str, Callable[[Course], str]] = {
    "empty-file": lambda course: "",
    "no-json": lambda course: "my answers are on paper",
    "cut-in-the-middle": lambda course: course.exercise("activations").read_text(encoding="utf-8")[:5000],
    "no-notebook": lambda course: '{"answers": []}',
    "no-cells": without_cells,
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_what_cannot_be_read_gets_a_verdict_that_says_so(copy: CourseCopy, kind: str) -> None:
    course = Course(copy.root)
    hand_in(course, "ada", UNREADABLE[kind](course))
    done = copy.grader("autograde", "activations", "--learner", "ada")
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("ada: unreadable. The ")
    assert set(points_by_cell(course)["ada"].values()) == {0}


def test_what_cannot_be_read_does_not_keep_the_others_from_being_graded(copy: CourseCopy) -> None:
    course = Course(copy.root)
    shutil.rmtree(course.submitted)
    hand_in(course, "ada", "my answers are on paper")
    hand_in(course, "zoe", course.exercise("activations").read_text(encoding="utf-8"))
    done = copy.grader("autograde", "activations")
    assert done.returncode == 0
    assert "ada: unreadable." in done.stderr
    assert "zoe" in points_by_cell(course)


def test_a_submission_of_somebody_in_the_demo_class_s_place_is_kept(copy: CourseCopy) -> None:
    course = Course(copy.root)
    (course.var / "demo.json").unlink()
    hand_in(course, "learner-05", "the work of a person")
    done = copy.grader("demo")
    assert done.returncode == 1
    assert "move it away to make the demo class." in said_once(done.stderr)
    path = course.submitted / "learner-05" / "activations" / "activations.ipynb"
    assert path.read_text(encoding="utf-8") == "the work of a person"


def test_a_demo_class_without_all_of_its_feedback_is_a_failure(
    copy: CourseCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_fails(*_: object, progress: Callable[[str, str], None]) -> int:
        progress("learner-05", "the graded notebook cannot be shown")
        return 1

    monkeypatch.setattr("grader.feedback.write_feedback", one_fails)
    done = CliRunner().invoke(cli, ["--course", str(copy.root), "demo"], prog_name="grader")
    assert done.exit_code == 1
    assert "learner-05: the graded notebook cannot be shown" in done.stderr
    assert str(done.exception).startswith("no feedback could be written for 1 of 12 learners, see above")


def test_the_demo_class_is_due_when_it_says(course: Course) -> None:
    from nbgrader.api import Gradebook

    assert isinstance(DEMO, DemoClass)
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        assert gradebook.find_assignment("activations").duedate == DEMO.due.replace(tzinfo=None)
