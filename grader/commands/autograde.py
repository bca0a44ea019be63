"""`grader autograde`: grade a unit's submissions, on this machine or on a Dask cluster."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from grader.commands.options import grading_options, require_one_place
from grader.course import Course
from grader.exceptions import GraderError

if TYPE_CHECKING:
    from grader.engine.batch import Outcome

__all__ = ["Pace", "Tally", "autograde", "grade_shown"]

_ERR = Console(stderr=True, highlight=False)
SMALL = 100
"""Learners up to which each has a line where output is no terminal."""
EVERY_SECONDS = 5.0
_CLUSTER = """\b
To grade on more machines:
  dask scheduler                     on one of them
  dask worker tcp://HOST:8786        on each, in a copy of the course
  grader autograde UNIT --scheduler tcp://HOST:8786
Workers need the same course, the same packages and the same Python;
submissions travel to them, and results come back. No shared disk.
"""


@click.command(epilog=_CLUSTER)
@click.argument("unit")
@click.option("--learner", help="Grade this learner's submission only.")
@click.option("--force", is_flag=True, help="Grade again what is graded already.")
@grading_options
@click.option("--json", "as_json", is_flag=True, help="Write the verdicts as JSON for other programs.")
@click.pass_obj
def autograde(
    course_of: Callable[[], Course],
    unit: str,
    learner: str | None,
    force: bool,
    sandbox: str,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Grade the submissions of UNIT below grader/var/submitted.

    Every submission gets a verdict, whatever is in it. A run that is cut off is gone on with by the next one. Exit
    status 1 where a verdict could not be written down.
    """
    require_one_place(workers, scheduler)
    course = course_of()
    course.require_unit(unit)
    learners = course.require_learners(unit, learner)
    rows: dict[str, dict[str, Any]] = {}

    def keep(outcome: "Outcome") -> None:
        if as_json:
            rows[outcome.learner] = _plain(outcome)

    tally = grade_shown(
        course, unit, learners, force=force, sandbox=sandbox, workers=workers, scheduler=scheduler, each=keep
    )
    if as_json:
        click.echo(json.dumps([rows[name] for name in learners], indent=2))
    tally.complain()


class Tally:
    """What an instructor should look at after a run; memory for the rest of a large class is not kept."""

    def __init__(self) -> None:
        self.total = 0
        self.failed = 0
        self._lines: list[str] = []

    def add(self, outcome: "Outcome") -> None:
        """Count an outcome, and note what there is to say of it."""
        self.total += 1
        self.failed += bool(outcome.error)
        if outcome.remark:
            self._lines.append(f"{outcome.learner}: {outcome.remark}")
        if outcome.verdict is not None and outcome.verdict.status != "graded":
            self._lines.append(f"{outcome.learner}: {outcome.verdict.status}. {outcome.verdict.instructor}")
        if outcome.error:
            self._lines.append(f"{outcome.learner}: {outcome.error}")

    def complain(self) -> None:
        """A line for every submission to look at; raises where one has no verdict."""
        for line in self._lines:
            _ERR.print(line, markup=False, soft_wrap=True)
        if self.failed:
            raise GraderError(f"{self.failed} of {self.total} submissions could not be graded, see above.")


def grade_shown(
    course: Course,
    unit: str,
    learners: list[str],
    *,
    force: bool = False,
    sandbox: str = "full",
    workers: int | None = None,
    scheduler: str | None = None,
    each: Callable[["Outcome"], None] | None = None,
) -> Tally:
    """Grade, and show how far it is: by a bar or, where output is no terminal, by lines."""
    from grader.engine.batch import grade_each

    tally = Tally()
    pace = Pace(len(learners))
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[pace]}"),
    )
    with Progress(*columns, console=_ERR, disable=not _ERR.is_terminal, refresh_per_second=4) as bar:
        task = bar.add_task(f"Grading {unit}", total=len(learners), pace="")
        lines = _Lines(pace, len(learners))

        def done(outcome: "Outcome") -> None:
            pace.add(skipped=outcome.skipped)
            tally.add(outcome)
            if each is not None:
                each(outcome)
            if _ERR.is_terminal:
                bar.update(task, advance=1, pace=pace.text())
            else:
                lines.add(outcome)

        grade_each(
            course,
            unit,
            learners,
            done,
            force=force,
            sandbox=sandbox,
            workers=workers,
            scheduler=scheduler,
        )
    return tally


class Pace:
    """How fast submissions are graded, and how long the rest takes; what is skipped costs no time."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = total
        self.done = 0
        self._clock = clock
        self._graded = 0
        self._first = self._last = 0.0

    def add(self, *, skipped: bool) -> None:
        """Another one is done."""
        self.done += 1
        if not skipped:
            self._last = self._clock()
            self._first = self._first or self._last
            self._graded += 1

    @property
    def rate(self) -> float:
        """Submissions a second since the first one, before which everything started; 0 as long as that is open."""
        took = self._last - self._first
        return (self._graded - 1) / took if took > 0 else 0.0

    def text(self) -> str:
        """The rate and the time left, in words; empty as long as they are open."""
        if not self.rate:
            return ""
        return f"{self.rate:.1f} a second, {_duration((self.total - self.done) / self.rate)} left"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"


class _Lines:
    """Progress where output is no terminal: a line a learner, or for a large class one every few seconds."""

    def __init__(self, pace: Pace, learners: int) -> None:
        self._pace = pace
        self._small = learners <= SMALL
        self._said = time.monotonic()

    def add(self, outcome: "Outcome") -> None:
        """Say of an outcome what there is to say."""
        if self._small:
            if not outcome.skipped and not outcome.error:
                _ERR.print(f"graded {outcome.learner}", markup=False, soft_wrap=True)
            return
        now, pace = time.monotonic(), self._pace
        if now - self._said >= EVERY_SECONDS or pace.done == pace.total:
            self._said = now
            text = pace.text()
            line = f"graded {pace.done} of {pace.total}{', ' if text else ''}{text}"
            _ERR.print(line, markup=False, soft_wrap=True)


def _plain(outcome: "Outcome") -> dict[str, Any]:
    verdict = outcome.verdict
    if verdict is None:
        return {"learner": outcome.learner, "skipped": outcome.skipped, "error": outcome.error}
    return {
        "learner": outcome.learner,
        "skipped": outcome.skipped,
        "error": outcome.error,
        "status": verdict.status,
        "points": verdict.points,
        "max_points": verdict.max_points,
        "to_learner": verdict.learner,
        "to_instructor": verdict.instructor,
        "results": [asdict(result) for result in verdict.results],
        "flags": list(verdict.flags),
        "sandbox": verdict.sandbox,
        "seconds": round(verdict.seconds, 3),
    }
