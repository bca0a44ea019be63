"""Scores as the gradebook has them, with what the engine recorded of the grading."""

import io

import pytest
from rich.console import Console

from grader.cli import _score_table
from grader.course import Course
from grader.engine.sandbox import Sandbox
from grader.engine.verdict import Limits
from grader.exceptions import NoSandboxError
from grader.scores import Score, scores
from tests.helpers import CourseCopy

PLAIN = {"max_points": 40.0, "auto_points": 30.0, "max_auto_points": 36.0, "hours_late": 0.0}


def table(**more: object) -> str:
    stream = io.StringIO()
    score = Score(learner="ada", points=30.0, waits_for_person=False, **(PLAIN | more))  # type: ignore[arg-type]
    Console(file=stream, width=200).print(_score_table("activations", [score]))
    return stream.getvalue()


def test_a_grading_without_isolation_is_marked_in_the_table() -> None:
    assert "graded without isolation" in table(status="graded", sandbox="none")
    assert "isolation" not in table(status="graded", sandbox="full")


def test_a_status_other_than_graded_is_a_remark() -> None:
    assert "timed out" in table(status="timed out", sandbox="full")
    assert "graded" not in table(status="graded", sandbox="full")


@pytest.mark.slow
def test_scores_say_how_the_grading_went(graded_course: CourseCopy) -> None:
    found = {score.learner: score for score in scores(Course(graded_course.root), "activations")}
    assert {score.sandbox for score in found.values()} == {sandbox_here()}
    assert all(score.status for score in found.values())
    assert any(score.status == "graded" for score in found.values())


def sandbox_here() -> str:
    """The isolation that the demo class gets on this machine."""
    try:
        with Sandbox(Limits()):
            return "full"
    except NoSandboxError:
        return "none"
