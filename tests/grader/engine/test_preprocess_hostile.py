"""Hostile submissions graded by `nbgrader autograde` with the course's configuration, all of them in one batch."""

import shutil
from pathlib import Path

import pytest

from grader.course import Course
from grader.engine.store import record_of
from tests.helpers import CODE, CourseCopy, copy_of_course
from tests.hostile.corpus import SOURCE, UNIT, Case, as_bytes, cases, honest

pytestmark = pytest.mark.slow

NAMES = (
    "assert_helpers_patched",
    "ast_transformer",
    "gradebook_update",
    "notebook_that_is_a_folder",
    "pipe_in_place_of_a_notebook",
    "points_raised",
    "symlink_to_a_peer",
    "symlink_to_a_secret",
    "symlink_to_itself",
    "test_duplicated",
    "truncated_json",
    "unknown_schema_version",
)
"""Every way to open a file that is none, and a few to change what is counted."""

CASES = [case for case in cases() if case.name in NAMES]
LEFT_OUT = ("dangling", "no-time")


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Course, str]:
    """A course in which nbgrader graded the cases and an honest peer; and what nbgrader said."""
    copy = copy_of_course(tmp_path_factory.mktemp("hostile") / "course", *CODE)
    course = Course(copy.root)
    shutil.copytree(SOURCE, course.solutions / UNIT)
    released = copy.grader("release", UNIT)
    assert released.returncode == 0, released.stderr
    peer = hand_in_honestly(course, "peer")
    for case in CASES:
        case.hand_in(course.submitted / case.name / UNIT, peer, course.reference(UNIT))
    hand_in_honestly(course, "dangling").with_name("data.txt").symlink_to("nowhere")
    hand_in_honestly(course, "no-time").with_name("timestamp.txt").write_text("in good time")
    done = CourseCopy(copy.root).command("nbgrader", "autograde", UNIT)
    return course, done.stderr


def hand_in_honestly(course: Course, learner: str) -> Path:
    path = course.submitted / learner / UNIT / f"{UNIT}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(as_bytes(honest()))
    return path


def points(course: Course, learner: str) -> float:
    """The automatic points in the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        (notebook,) = gradebook.find_submission(UNIT, learner).notebooks
        return sum(grade.auto_score or 0.0 for grade in notebook.grades)


def test_every_case_named_is_there() -> None:
    assert sorted(case.name for case in CASES) == sorted(NAMES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_points_and_the_verdict_are_right(case: Case, graded: tuple[Course, str]) -> None:
    course, _ = graded
    found = points(course, case.name), record_of(course, case.name, UNIT)["status"]
    assert found == (case.points, case.status)


def test_the_honest_peer_has_all_points(graded: tuple[Course, str]) -> None:
    assert points(graded[0], "peer") == 12


@pytest.mark.parametrize("learner", LEFT_OUT)
def test_what_nbgrader_itself_cannot_copy_is_named_and_left_out(learner: str, graded: tuple[Course, str]) -> None:
    course, said = graded
    assert f"There was an error processing assignment '{UNIT}' for student '{learner}'" in said
    assert not (course.autograded / learner / UNIT).exists()


def test_nobody_else_is_left_out(graded: tuple[Course, str]) -> None:
    assert graded[1].count("There was an error processing assignment '") == len(LEFT_OUT)
