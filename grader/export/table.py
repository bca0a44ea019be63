"""Scores as tables of our own: CSV for a spreadsheet, JSON for another program, and nbgrader's grades.csv."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from grader.course import Course
from grader.engine.store import record_of
from grader.export.results import Result, plain_number
from grader.export.sheet import defused

__all__ = ["COLUMNS", "NBGRADER_COLUMNS", "as_csv", "as_json", "nbgrader_csv"]

COLUMNS = (
    "learner",
    "name",
    "unit",
    "points",
    "max_points",
    "late_penalty",
    "score",
    "waits_for_person",
    "status",
    "flags",
)
NBGRADER_COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
)


def as_csv(course: Course, found: Iterable[Result], *, incomplete: str) -> str:
    """A line for each learner and unit. A score that waits for a person is empty, unless it is to be included."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    for result in found:
        row = _row(course, result, incomplete)
        writer.writerow([_cell(row[name]) for name in COLUMNS])
    return lines.getvalue()


def as_json(course: Course, found: Iterable[Result], *, incomplete: str) -> str:
    """The same with the result of every test cell, null where it is not known; for instructors, not for learners."""
    rows = [
        _row(course, result, incomplete)
        | {"results": record_of(course, result.learner, result.unit).get("results")}
        for result in found
    ]
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"


def nbgrader_csv(course: Course) -> str:
    """What nbgrader's own export writes, byte for byte, but for names that it would not quote, or that are formulas.

    nbgrader asks the gradebook for every learner and unit anew, which takes hours for a large class.
    """
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(NBGRADER_COLUMNS)
    for row in _nbgrader_rows(course):
        writer.writerow([defused(cell) if isinstance(cell, str) else cell for cell in row])
    return lines.getvalue()


def _row(course: Course, result: Result, incomplete: str) -> dict[str, Any]:
    record = {} if result.points is None else record_of(course, result.learner, result.unit)
    # Flags and status are of the graded notebook, and a stranger may have written into that.
    flags = record.get("flags")
    return {
        "learner": result.learner,
        "name": result.name,
        "unit": result.unit,
        "points": result.points,
        "max_points": result.max_points,
        "late_penalty": result.penalty,
        "score": None if result.waits and incomplete == "skip" else result.score,
        "waits_for_person": result.waits,
        "status": "not handed in" if result.points is None else str(record.get("status", "")),
        "flags": [str(flag) for flag in flags] if isinstance(flags, list) else [],
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return plain_number(value)
    return defused("; ".join(value) if isinstance(value, list) else value)


def _nbgrader_rows(course: Course) -> Iterator[list[Any]]:
    """The cells of nbgrader's export, by its rules: units by due date, learners by name, no submission is zero."""
    from nbgrader import api
    from sqlalchemy import select

    from grader.export.results import max_points, sums

    with api.Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        session = gradebook.db
        student = api.Student
        learners = session.execute(
            select(student.id, student.last_name, student.first_name, student.email).order_by(
                student.last_name, student.first_name
            )
        ).all()
        for assignment in gradebook.assignments:
            most = max_points(session, assignment.name)
            reached = {row.learner: row for row in session.execute(sums(assignment.name))}
            handed_in = select(api.SubmittedAssignment.student_id, api.SubmittedAssignment.timestamp)
            rows = session.execute(handed_in.where(api.SubmittedAssignment.assignment_id == assignment.id))
            times = {row.student_id: row.timestamp for row in rows}
            for learner in learners:
                row = reached.get(learner.id)
                points, penalty = (0.0, 0.0) if row is None else (float(row.points), float(row.penalty))
                known = [learner.id, learner.last_name or "", learner.first_name or "", learner.email or ""]
                scores = [points, penalty, max(0.0, points - penalty), most]
                yield [assignment.name, assignment.duedate or "", times.get(learner.id) or "", *known, *scores]
