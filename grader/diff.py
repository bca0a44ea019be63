"""What grading again would change in the gradebook, found without changing anything.

Submissions are graded as `grader autograde --force` grades them. Each verdict goes into a gradebook of its own in a
temporary folder, which begins with what the course's gradebook has, and through the same writer. So points, late
penalties and what waits for a person come out as they would be written.
"""

import json
import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.engine.batch import is_unchanged, verdicts
from grader.engine.gradebook import Writer
from grader.engine.read import UnreadableError
from grader.engine.restore import Assignment
from grader.engine.store import RECORD_KEY, Submission, collect, digest, load_assignment
from grader.engine.verdict import Limits, Verdict
from grader.exceptions import GraderError, InvalidLearnerError
from grader.notebooks import grade_id
from grader.policy import require_policy
from grader.standing import Mark, Marks, Standing

__all__ = ["CellChange", "Difference", "differences"]

CHUNK = 200
"""Learners whose rows are read at a time."""


@dataclass(frozen=True)
class CellChange:
    """A graded cell whose points change; ``old`` is None where there were none yet."""

    cell: str
    step: str
    old: float | None
    new: float
    max_points: float
    why: str


@dataclass(frozen=True)
class ByHand:
    """Points that a person gave, which stay; ``look_again`` where the answer is to be looked at once more."""

    cell: str
    points: float
    look_again: bool
    why: str = ""


@dataclass(frozen=True)
class Difference:
    """What grading a learner's submission again changes.

    Totals are after the late penalty; ``old_total`` is None where nothing was graded before. ``error`` says why a
    submission could not be graded.
    """

    learner: str
    old_total: float | None = None
    new_total: float = 0.0
    max_points: float = 0.0
    old_penalty: float = 0.0
    new_penalty: float = 0.0
    status: str = ""
    reasons: tuple[str, ...] = ()
    cells: tuple[CellChange, ...] = ()
    by_hand: tuple[ByHand, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class _Before:
    """What is known of a submission before it is graded: how it stands, and what its last grading stood on."""

    marks: Marks | None
    notebook: Mapping[str, Any]

    @property
    def record(self) -> Mapping[str, Any]:
        found = self.notebook.get("metadata", {}).get(RECORD_KEY, {})
        return found if isinstance(found, dict) else {}


def differences(
    course: Course,
    unit: str,
    learners: list[str],
    *,
    limits: Limits | None = None,
    sandbox: str = "full",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[], None] | None = None,
) -> Iterator[Difference]:
    """Grade the submissions of these learners and give what differs from the gradebook, as it is found.

    Nothing below the course's folder is written. ``progress`` is called after each submission.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotReleasedError, GradebookDiffersError: the gradebook does not know the unit as it is.
        BadPolicyError, BadExtensionsError: the late policy or the file of extensions cannot be read.
        NoSandboxError: learner code cannot be kept apart on this machine.
    """
    limits = limits or Limits()
    assignment = load_assignment(course, unit)
    require_policy(course, course.config())
    with ExitStack() as stack:
        trial = stack.enter_context(_trial(course, assignment))
        graded = verdicts(
            course, unit, learners, limits=limits, sandbox=sandbox, workers=workers, scheduler=scheduler
        )
        for learner, verdict, error in graded:
            if verdict is None:
                yield Difference(learner, error=error)
            else:
                found = trial.difference(learner, verdict, limits, learners)
                if found is not None:
                    yield found
            if progress is not None:
                progress()


@contextmanager
def _trial(course: Course, assignment: Assignment) -> Iterator["_Trial"]:
    from nbgrader import api
    from sqlalchemy import create_engine

    with ExitStack() as stack:
        standing = stack.enter_context(Standing(course, assignment.unit))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ffn-trial-"))
        url = f"sqlite:///{Path(folder) / 'gradebook.db'}"
        engine = create_engine(url)
        stack.callback(engine.dispose)
        api.Base.metadata.create_all(engine)
        with engine.begin() as connection:
            standing.copy_unit(connection)
        writer = stack.enter_context(Writer(url, course.config()))
        writer.check(assignment)
        after = stack.enter_context(Standing(course, assignment.unit, url))
        yield _Trial(course, assignment, standing, engine, writer, after)


class _Trial:
    """A gradebook in a temporary folder, in which verdicts are tried."""

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        standing: Standing,
        engine: Any,
        writer: Writer,
        after: Standing,
    ) -> None:
        from grader.late import late_plugin

        self._course = course
        self._assignment = assignment
        self._standing = standing
        self._engine = engine
        self._writer = writer
        self._after = after
        self._before: dict[str, Marks | None] = {}
        self._done: list[str] = []
        self._late = late_plugin(course.config())
        self._digest = digest(assignment, None)["assignment"]
        self._steps = {test: step for step, tests in assignment.steps.items() for test in tests}
        self._sources = {str(grade_id(c)): c["source"] for c in assignment.reference["cells"] if grade_id(c)}

    def difference(
        self, learner: str, verdict: Verdict, limits: Limits, learners: Sequence[str]
    ) -> Difference | None:
        """What this verdict would change; None where that is nothing."""
        unit = self._assignment.unit
        before = self._look(learner, learners)
        submission, record = self._handed_in(learner, limits)
        same = is_unchanged(record, before.record.get("submission"), graded=before.marks is not None)
        try:
            self._writer.save(
                unit,
                learner,
                verdict,
                None if submission is None else submission.timestamp,
                self._assignment,
                unchanged=same,
            )
        except GraderError as error:
            return Difference(learner, error=str(error))
        new = self._after.marks([learner])[learner]
        self._done.append(learner)
        cells = self._cells(before, new, verdict)
        by_hand = self._by_hand(before, new)
        old = before.marks
        same_total = old is not None and math.isclose(old.total, new.total, abs_tol=1e-9)
        if same_total and not cells and not any(one.look_again for one in by_hand):
            return None
        return Difference(
            learner,
            None if old is None else old.total,
            new.total,
            sum(self._standing.points.values()),
            0.0 if old is None else old.penalty,
            new.penalty,
            verdict.status,
            self._reasons(before, new, record, self._came_out_differently(before, new)),
            cells,
            by_hand,
        )

    def _look(self, learner: str, learners: Sequence[str]) -> _Before:
        """How a submission stands; its rows are in the trial then, and those of the learners after it."""
        if learner not in self._before:
            place = learners.index(learner) if learner in learners else 0
            chunk = [
                other
                for other in dict.fromkeys([learner, *learners[place : place + CHUNK]])
                if other not in self._before
            ]
            with self._engine.begin() as connection:
                self._standing.forget_learners(connection, self._done)
                found = self._standing.copy_learners(connection, chunk)
            self._done.clear()
            self._before |= {other: found.get(other) for other in chunk}
        marks = self._before[learner]
        return _Before(marks, _graded(self._course, learner, self._assignment.unit))

    def _handed_in(self, learner: str, limits: Limits) -> tuple[Submission | None, dict[str, str]]:
        try:
            submission = collect(self._course, learner, self._assignment.unit, limits)
        except (UnreadableError, InvalidLearnerError):
            return None, {}
        # The assignment's own digest stays the same, and takes longer than all the rest.
        return submission, digest(Assignment("", {"cells": []}), submission) | {"assignment": self._digest}

    def _came_out_differently(self, before: _Before, new: Marks) -> set[str]:
        """Cells with other points, with other automatic ones below a person's, or to be looked at once more."""
        old = before.marks.cells if before.marks is not None else {}
        kept = {cell: mark for cell, mark in new.cells.items() if cell in self._sources}
        return {cell for cell, mark in kept.items() if cell not in old or _differ(old[cell], mark)}

    def _cells(self, before: _Before, new: Marks, verdict: Verdict) -> tuple[CellChange, ...]:
        if before.marks is None:
            return ()
        says = {result.cell: result.message for result in verdict.results}
        said = _messages(before.record)
        found = []
        for cell in self._sources:
            if cell not in new.cells:
                continue
            old, mark = before.marks.cells.get(cell), new.cells[cell]
            was = None if old is None else old.points
            if was is None or not math.isclose(was, mark.points, abs_tol=1e-9):
                why = _why(was, mark, says.get(cell), said.get(cell, ""))
                most = self._standing.points[cell]
                found.append(CellChange(cell, self._steps.get(cell, ""), was, mark.points, most, why))
        return tuple(found)

    def _by_hand(self, before: _Before, new: Marks) -> tuple[ByHand, ...]:
        found = []
        for cell in self._sources:
            mark = new.cells.get(cell)
            if mark is None or mark.manual is None:
                continue
            old = before.marks.cells.get(cell) if before.marks is not None else None
            again = mark.waits and not (old is not None and old.waits)
            why = ""
            if old is not None and old.auto != mark.auto:
                why = f"the tests give {_number(mark.auto)} now, and gave {_number(old.auto)}"
            found.append(ByHand(cell, mark.points, again, why))
        return tuple(found)

    def _reasons(
        self, before: _Before, new: Marks, record: Mapping[str, str], changed: set[str]
    ) -> tuple[str, ...]:
        """Why a submission comes out differently: what its last grading stood on and this one does not.

        ``changed`` are the cells in which it does.
        """
        old, known = before.marks, before.record
        if old is None:
            return ("it was not graded before",)
        if changed and not (known.get("submission") and record):
            return ("nothing is known of what was graded before",)
        reasons = []
        if changed and known["submission"] != record["submission"]:
            reasons.append("the submission changed")
        if changed and known.get("assignment") != record["assignment"]:
            reasons += self._changed_cells(before, changed)
        if changed and not reasons:
            reasons.append("the same submission came out differently in the same tests")
        if not math.isclose(old.penalty, new.penalty, abs_tol=1e-9):
            reasons += self._late_reasons(old, new)
        return tuple(reasons)

    def _late_reasons(self, old: Marks, new: Marks) -> list[str]:
        """Why the late penalty is another one, where it does not only follow the points."""
        reasons = []
        if old.timestamp != new.timestamp:
            reasons.append("the time changed")
        if old.extension != new.extension:
            reasons.append("the extension changed")
        if reasons or not math.isclose(old.score, new.score, abs_tol=1e-9):
            return reasons
        automatic = math.fsum(mark.auto or 0.0 for mark in new.cells.values())
        if math.isclose(self._penalty(new, automatic), old.penalty, abs_tol=1e-9):
            return ["points were given by hand after the late penalty was taken"]
        return ["the due time, the late policy or points given by hand changed"]

    def _penalty(self, marks: Marks, score: float) -> float:
        """The late penalty that another score would have."""
        from grader.late import late_penalty

        due = self._standing.due
        if due is None or marks.timestamp is None:
            return 0.0
        due += marks.extension or timedelta(0)
        late = (marks.timestamp - due).total_seconds()
        most = math.fsum(self._standing.points.values())
        return late_penalty(self._late, "", score=score, maximum=most, due=due, seconds_late=late) or 0.0

    def _changed_cells(self, before: _Before, changed: set[str]) -> list[str]:
        graded_by = {str(grade_id(cell)): cell["source"] for cell in before.notebook["cells"] if grade_id(cell)}
        tests = [cell for cell in self._sources if cell in changed and cell in self._steps]
        # A test cell may have changed in what it is graded with, so those come first whose points change too.
        found = [cell for cell in tests if graded_by.get(cell) != self._sources[cell]]
        return [f"the test cell {cell} changed" for cell in found] or ["the reference notebook changed"]


def _differ(one: Mark, other: Mark) -> bool:
    if other.waits and not one.waits:
        return True
    automatic = (one.auto or 0.0, other.auto or 0.0)
    return not (math.isclose(*automatic, abs_tol=1e-9) and math.isclose(one.points, other.points, abs_tol=1e-9))


def _graded(course: Course, learner: str, unit: str) -> Mapping[str, Any]:
    """The graded notebook of a submission as JSON; empty where there is none that can be read."""
    try:
        path = course.autograded / learner / unit / f"{unit}.ipynb"
        found = json.loads(path.read_bytes())
        return found if isinstance(found["metadata"], dict) and isinstance(found["cells"], list) else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _messages(record: Mapping[str, Any]) -> dict[str, str]:
    """What the test cells said when a submission was graded before, as far as that was recorded."""
    results = record.get("results")
    found = results if isinstance(results, list) else []
    return {str(one.get("cell")): str(one.get("message") or "") for one in found if isinstance(one, dict)}


def _why(was: float | None, now: Mark, says: str | None, said: str) -> str:
    if says is None:
        # An answer that a person grades.
        return "there is an answer now" if now.auto is None else "there is no answer now"
    if says:
        return says
    return f"passes now; it said: {said}" if said and (was or 0.0) < now.points else "passes now"


def _number(points: float | None) -> str:
    return "no points" if points is None else f"{points:g}"
