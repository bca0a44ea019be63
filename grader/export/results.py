"""Scores of a unit as the gradebook has them: one query for a class of any size."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from grader.course import Course
from grader.exceptions import NotGradedError

__all__ = ["Result", "max_points", "plain_number", "results", "sums", "units_with_results"]


@dataclass(frozen=True)
class Result:
    """A learner's result for a unit; without points where nothing was handed in.

    ``waits`` says that an answer is still to be read by a person.
    """

    learner: str
    first_name: str
    last_name: str
    email: str
    lms_id: str
    unit: str
    max_points: float
    points: float | None = None
    penalty: float = 0.0
    waits: bool = False

    @property
    def name(self) -> str:
        """First and last name, as far as they are known."""
        return f"{self.first_name} {self.last_name}".strip()

    @property
    def score(self) -> float | None:
        """The points without the penalty for being late."""
        return None if self.points is None else max(0.0, self.points - self.penalty)


def results(course: Course, unit: str) -> list[Result]:
    """The results of everybody in the gradebook, by learner; manual scores and extra credit are counted.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotGradedError: the gradebook has no submission of the unit.
    """
    course.require_unit(unit)
    found = _read(course, unit)
    if not any(result.points is not None for result in found):
        raise NotGradedError(unit)
    return found


def units_with_results(course: Course) -> list[str]:
    """The units of the course of which the gradebook has submissions."""
    from nbgrader import api
    from sqlalchemy import select

    with api.Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        query = select(api.Assignment.name).join(
            api.SubmittedAssignment, api.SubmittedAssignment.assignment_id == api.Assignment.id
        )
        graded = set(gradebook.db.scalars(query.distinct()))
    return [unit for unit in course.units() if unit in graded]


def plain_number(value: float) -> str:
    """A score as text, of at most four digits behind the point and none that say nothing."""
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _read(course: Course, unit: str) -> list[Result]:
    from nbgrader import api

    with api.Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        session = gradebook.db
        most = max_points(session, unit)
        if most is None:
            return []
        reached = {row.learner: row for row in session.execute(sums(unit))}
        return [_result(student, unit, most, reached.get(student.id)) for student in _students(session)]


def max_points(session: Any, unit: str) -> float | None:
    """The most points of a unit; None for one that the gradebook does not know."""
    from nbgrader import api
    from sqlalchemy import func, select

    known = session.scalar(select(api.Assignment.id).where(api.Assignment.name == unit))
    if known is None:
        return None
    base = api.BaseCell.__table__
    total = 0.0
    for kind in (api.GradeCell, api.TaskCell):
        table = kind.__table__
        query = (
            select(func.sum(table.c.max_score))
            .join(base, base.c.id == table.c.id)
            .join(api.Notebook, api.Notebook.id == base.c.notebook_id)
            .where(api.Notebook.assignment_id == known)
        )
        total += session.scalar(query) or 0.0
    return float(total)


def sums(unit: str) -> Any:
    """The query for each learner's points, penalty, and whether a person is waited for.

    nbgrader's own columns for these are subqueries, run for every submission anew.
    """
    from nbgrader import api
    from sqlalchemy import case, func, select

    grade, notebook, handed_in = api.Grade.__table__, api.SubmittedNotebook.__table__, api.SubmittedAssignment
    points = func.coalesce(grade.c.manual_score, grade.c.auto_score, 0.0) + case(
        (
            (grade.c.manual_score.is_not(None) | grade.c.auto_score.is_not(None)),
            func.coalesce(grade.c.extra_credit, 0.0),
        ),
        else_=0.0,
    )
    of_unit = (
        select(notebook.c.id, handed_in.student_id, notebook.c.late_submission_penalty)
        .join(handed_in, handed_in.id == notebook.c.assignment_id)
        .join(api.Assignment, api.Assignment.id == handed_in.assignment_id)
        .where(api.Assignment.name == unit)
        .subquery()
    )
    by_notebook = (
        select(
            grade.c.notebook_id,
            func.sum(points).label("points"),
            func.max(case((grade.c.needs_manual_grade, 1), else_=0)).label("waits"),
        )
        .where(grade.c.notebook_id.in_(select(of_unit.c.id)))
        .group_by(grade.c.notebook_id)
        .subquery()
    )
    return (
        select(
            of_unit.c.student_id.label("learner"),
            func.sum(func.coalesce(by_notebook.c.points, 0.0)).label("points"),
            func.sum(func.coalesce(of_unit.c.late_submission_penalty, 0.0)).label("penalty"),
            func.max(func.coalesce(by_notebook.c.waits, 0)).label("waits"),
        )
        .join(by_notebook, by_notebook.c.notebook_id == of_unit.c.id, isouter=True)
        .group_by(of_unit.c.student_id)
    )


def _students(session: Any) -> Iterable[Any]:
    from nbgrader import api
    from sqlalchemy import select

    student = api.Student.__table__
    return session.execute(select(student).order_by(student.c.id))  # type: ignore[no-any-return]


def _result(student: Any, unit: str, most: float, row: Any) -> Result:
    known = {
        "learner": student.id,
        "first_name": student.first_name or "",
        "last_name": student.last_name or "",
        "email": student.email or "",
        "lms_id": student.lms_user_id or "",
    }
    if row is None:
        return Result(**known, unit=unit, max_points=most)
    return Result(
        **known,
        unit=unit,
        max_points=most,
        points=float(row.points),
        penalty=float(row.penalty),
        waits=bool(row.waits),
    )
