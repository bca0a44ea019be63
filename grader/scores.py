"""Scores of a unit's submissions as nbgrader's gradebook has them."""

from dataclasses import dataclass
from typing import Any

from grader.course import Course
from grader.engine.store import RECORD_KEY
from grader.notebooks import FLAG_KEY, grade_id, read_notebook

__all__ = ["Score", "scores"]


@dataclass(frozen=True)
class Score:
    """One learner's result for a unit; points, and hours past the due time (0 when in time).

    ``flags`` says of steps what an instructor should look at; ``status`` and ``sandbox`` how the engine's grading went,
    "" where another program graded.
    """

    learner: str
    points: float
    max_points: float
    auto_points: float
    max_auto_points: float
    waits_for_person: bool
    hours_late: float
    flags: tuple[str, ...] = ()
    status: str = ""
    sandbox: str = ""


def scores(course: Course, unit: str) -> list[Score]:
    """Results of all graded submissions of a unit, by learner.

    Raises:
        UnknownUnitError: the course has no such unit.
    """
    from nbgrader.api import Gradebook, MissingEntry

    course.require_unit(unit)
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        try:
            submissions = gradebook.assignment_submissions(unit)
        except MissingEntry:
            return []
        found = [
            Score(
                learner=submission.student.id,
                points=submission.score,
                max_points=submission.max_score,
                auto_points=sum(grade.auto_score or 0 for nb in submission.notebooks for grade in nb.grades),
                max_auto_points=sum(
                    grade.cell.max_score
                    for nb in submission.notebooks
                    for grade in nb.grades
                    if not _by_hand(grade)
                ),
                waits_for_person=submission.needs_manual_grade,
                hours_late=submission.total_seconds_late / 3600,
                **_graded(course, unit, submission.student.id),
            )
            for submission in submissions
        ]
    return sorted(found, key=lambda score: score.learner)


def _graded(course: Course, unit: str, learner: str) -> dict[str, Any]:
    """What the graded notebook says of its grading, and what an instructor should look at."""
    path = course.autograded / learner / unit / f"{unit}.ipynb"
    if not path.is_file():
        return {}
    notebook = read_notebook(path)
    cells, record = notebook["cells"], notebook["metadata"].get(RECORD_KEY, {})
    flags = tuple(f"{grade_id(cell)} {flag}" for cell in cells for flag in cell["metadata"].get(FLAG_KEY, ()))
    return {"flags": flags, "status": record.get("status", ""), "sandbox": record.get("sandbox", "")}


def _by_hand(grade: Any) -> bool:
    """Whether a grade belongs to a written answer."""
    return bool(grade.cell.cell_type == "markdown")
