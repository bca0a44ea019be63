"""Scores of a unit's submissions as nbgrader's gradebook has them."""

import json
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from grader.course import Course
from grader.deadlines import local_text
from grader.engine.store import RECORD_KEY
from grader.exceptions import NotReleasedError
from grader.notebooks import FLAG_KEY, grade_id
from grader.policy import course_zone
from grader.standing import Marks, Standing

__all__ = ["Score", "scores"]

_AT_A_TIME = 500


@dataclass(frozen=True)
class Score:
    """One learner's result for a unit; points, and hours past the due time (0 when in time).

    ``points`` are before the late penalty. ``extended_until`` is the learner's own due time in the course's zone, ""
    without an extension. ``flags`` says of steps what an instructor should look at; ``status`` and ``sandbox`` how the
    engine's grading went, "" where another program graded.
    """

    learner: str
    points: float
    max_points: float
    auto_points: float
    max_auto_points: float
    waits_for_person: bool
    hours_late: float
    late_penalty: float = 0.0
    extended_until: str = ""
    flags: tuple[str, ...] = ()
    status: str = ""
    sandbox: str = ""


def scores(course: Course, unit: str) -> list[Score]:
    """Results of all graded submissions of a unit, by learner.

    Raises:
        UnknownUnitError: the course has no such unit.
    """
    course.require_unit(unit)
    zone = course_zone(course)
    try:
        with Standing(course, unit) as standing:
            learners = sorted(standing.learners())
            parts = [learners[start : start + _AT_A_TIME] for start in range(0, len(learners), _AT_A_TIME)]
            marks = {learner: found for part in parts for learner, found in standing.marks(part).items()}
    except NotReleasedError:
        return []
    return [_score(course, standing, zone, learner, marks[learner]) for learner in learners if learner in marks]


def _score(course: Course, standing: Standing, zone: str, learner: str, marks: Marks) -> Score:
    due, by_hand = _due(standing, marks), standing.written
    late = 0.0 if due is None or marks.timestamp is None else (marks.timestamp - due).total_seconds()
    return Score(
        learner=learner,
        points=marks.score,
        max_points=math.fsum(standing.points.values()),
        auto_points=math.fsum(mark.auto or 0.0 for mark in marks.cells.values()),
        max_auto_points=math.fsum(
            points for cell, points in standing.points.items() if cell in marks.cells and cell not in by_hand
        ),
        waits_for_person=any(mark.waits for mark in marks.cells.values()),
        hours_late=max(0.0, late) / 3600,
        late_penalty=marks.penalty,
        extended_until="" if marks.extension is None or due is None else local_text(due, zone),
        **_graded(course, standing.unit, learner),
    )


def _due(standing: Standing, marks: Marks) -> datetime | None:
    """A learner's own due time, in UTC."""
    if standing.due is None or marks.extension is None:
        return standing.due
    return standing.due + marks.extension


def _graded(course: Course, unit: str, learner: str) -> dict[str, Any]:
    """What the graded notebook says of its grading, and what an instructor should look at."""
    path = course.autograded / learner / unit / f"{unit}.ipynb"
    if not path.is_file():
        return {}
    notebook = json.loads(path.read_bytes())
    cells, record = notebook["cells"], notebook["metadata"].get(RECORD_KEY, {})
    flags = tuple(f"{grade_id(cell)} {flag}" for cell in cells for flag in cell["metadata"].get(FLAG_KEY, ()))
    return {"flags": flags, "status": record.get("status", ""), "sandbox": record.get("sandbox", "")}
