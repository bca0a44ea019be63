"""The whole report of a unit as data: what the page shows, and what --json writes."""

from collections import Counter
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from grader.course import Course
from grader.report.data import Class, read_class
from grader.report.mistakes import Failure, Mistake, failures, mistakes
from grader.report.similarity import Comparison, compare
from grader.report.statistics import (
    Distribution,
    Slow,
    StepStatistics,
    distribution,
    slowest,
    step_statistics,
)
from grader.report.verdicts import KINDS, Remark, remarks

__all__ = ["Report", "build", "plain", "summarise"]


@dataclass(frozen=True)
class Report:
    """A unit's report; ``first`` and ``last`` are when graded notebooks were written, None where there are none.

    ``ran`` counts the submissions that the statistics of steps are about, ``waiting`` those that wait for a person.
    """

    found: Class
    first: datetime | None
    last: datetime | None
    waiting: int
    ran: int
    isolation: dict[str, int]
    distribution: Distribution
    steps: tuple[StepStatistics, ...]
    mistakes: tuple[Mistake, ...]
    failures: tuple[Failure, ...]
    remarks: tuple[Remark, ...]
    slowest: tuple[Slow, ...]
    comparison: Comparison


def build(course: Course, unit: str) -> Report:
    """Read a unit's graded submissions and say what there is to say of them.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotGradedError: no submission of the unit is graded.
        BrokenReferenceError: the unit's notebooks cannot be read.
        GradebookLockedError, GradebookUnreadableError: the gradebook cannot be read.
    """
    return summarise(read_class(course, unit))


def summarise(found: Class) -> Report:
    """The report of a class that was read."""
    times = [one.record.at for one in found.graded if one.record.at is not None]
    answers = {one.learner: one.record.answers for one in found.graded if one.record.answers}
    return Report(
        found=found,
        first=min(times, default=None),
        last=max(times, default=None),
        waiting=sum(bool(one.waits) for one in found.graded),
        ran=sum(one.record.ran for one in found.graded),
        isolation=dict(Counter(one.record.sandbox or "unknown" for one in found.graded)),
        distribution=distribution([one.score for one in found.graded], found.points),
        steps=step_statistics(found),
        mistakes=mistakes(found),
        failures=failures(found),
        remarks=remarks(found),
        slowest=slowest({one.learner: one.record.seconds for one in found.graded}),
        comparison=compare(answers, found.template),
    )


def plain(report: Report) -> dict[str, Any]:
    """The report's numbers as JSON has them; learners and lists are complete, notebooks' contents are left out."""
    found = report.found
    return {
        "unit": found.unit,
        "graded": len(found.graded),
        "first_graded": report.first.isoformat() if report.first else None,
        "last_graded": report.last.isoformat() if report.last else None,
        "waiting": report.waiting,
        "ran": report.ran,
        "isolation": report.isolation,
        "max_points": found.points,
        "distribution": asdict(report.distribution),
        "steps": [asdict(step) | {"count": step.count} for step in report.steps],
        "misconceptions": [asdict(mistake) | {"count": len(mistake.learners)} for mistake in report.mistakes],
        "failures": [asdict(failure) | {"count": len(failure.learners)} for failure in report.failures],
        "remarks": [asdict(remark) | {"about": KINDS[remark.kind]} for remark in report.remarks],
        "slowest": [asdict(slow) for slow in report.slowest],
        "similarity": _comparison(report.comparison),
        "learners": [
            {
                "learner": one.learner,
                "points": one.score,
                "status": one.record.status,
                "steps": _by_step(found, place),
            }
            for place, one in enumerate(found.graded)
        ],
    }


def _by_step(found: Class, place: int) -> dict[str, float | None]:
    """A learner's points by step, null where a part of it waits for a person."""
    marks = found.graded[place].marks
    points = {step.name: [marks[test.name] for test in step.tests] for step in found.steps}
    return {name: None if None in of else sum(mark or 0.0 for mark in of) for name, of in points.items()}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    return {
        "compared": comparison.compared,
        "by_chance": comparison.by_chance,
        "threshold": comparison.threshold,
        "found": comparison.found,
        "pairs": [
            {
                "learners": [pair.first, pair.second],
                "number": pair.number,
                "steps": {common.step: common.number for common in pair.steps},
            }
            for pair in comparison.pairs
        ],
    }
