"""Grade cases with the course's engine, one after another in one warm sandbox, as a worker does it."""

import json
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from grader.course import Course
from grader.engine import batch
from grader.engine.grade import grade
from grader.engine.read import UnreadableError
from grader.engine.sandbox import Sandbox
from grader.engine.store import collect
from grader.engine.verdict import TIMED_OUT, UNREADABLE, Limits, Verdict
from tests.hostile.corpus import SOURCE, UNIT, Case, as_bytes, assignment, honest

__all__ = ["LIMITS", "Grading"]

LIMITS = Limits(
    cell_seconds=1.2,
    total_seconds=30.0,
    cpu_seconds=20,
    memory_bytes=1 << 30,
    processes=48,
    output_bytes=200_000,
    file_bytes=20 << 20,
    tmp_bytes=32 << 20,
)
"""Small ones, so that what never ends is over soon. Cells that do end have time, however busy the machine is."""


class Grading:
    """A course of one small exercise in a folder of its own, and a sandbox for it."""

    def __init__(self, root: Path) -> None:
        self.course = Course(root)
        source = root / "solutions" / UNIT
        source.mkdir(parents=True)
        for path in SOURCE.iterdir():
            (source / path.name).write_bytes(path.read_bytes())
        self.peer = self.course.submitted / "peer" / UNIT / f"{UNIT}.ipynb"
        self.peer.parent.mkdir(parents=True)
        self.peer.write_bytes(as_bytes(honest()))
        self.sandbox = Sandbox(LIMITS, assignment().files)

    def verdict(self, case: Case) -> Verdict:
        """Hand a case in and grade it."""
        case.hand_in(self.course.submitted / case.name / UNIT, self.peer, self.course.reference(UNIT))
        try:
            submission = collect(self.course, case.name, UNIT, LIMITS)
        except UnreadableError as error:
            said = f"What was handed in {error}."
            return Verdict(UNREADABLE, said, said)
        if submission is None:
            return grade(assignment(), None, LIMITS, self.sandbox)
        limits = LIMITS if case.status == TIMED_OUT else replace(LIMITS, cell_seconds=LIMITS.total_seconds)
        return batch.noted(grade(assignment(), submission.data, limits, self.sandbox), submission.notes)

    def honest_verdict(self) -> Verdict:
        """The verdict on an honest notebook, by the same sandbox."""
        return grade(assignment(), json.dumps(honest()).encode(), LIMITS, self.sandbox)

    def __enter__(self) -> "Grading":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sandbox.end_session()
        self.sandbox.close()
