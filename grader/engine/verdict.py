"""What grading a submission comes to."""

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Limits", "Note", "Status", "TestResult", "Verdict"]

GRADED = "graded"
REPAIRED = "graded with repairs"
UNREADABLE = "unreadable"
CRASHED = "crashed"
TIMED_OUT = "timed out"
MISSING = "missing"

Status = str


@dataclass(frozen=True)
class Limits:
    """What one submission may use.

    Seconds are of wall time unless named otherwise; memory is for each process, and ``session_bytes`` for all of them;
    output is for each cell.
    """

    submission_bytes: int = 20_000_000
    cell_seconds: float = 30.0
    total_seconds: float = 120.0
    cpu_seconds: int = 120
    memory_bytes: int = 3 << 30
    session_bytes: int = 4 << 30
    processes: int = 64
    output_bytes: int = 1_000_000
    file_bytes: int = 50 << 20
    tmp_bytes: int = 64 << 20
    restarts: int = 20


@dataclass(frozen=True)
class Note:
    """Something that happened to a submission: a sentence for the learner and one for the instructor."""

    cell: str
    learner: str
    instructor: str


@dataclass(frozen=True)
class TestResult:
    """One test cell: its points, the points reached, and the message where not all were."""

    __test__ = False

    cell: str
    step: str
    points: float
    max_points: float
    message: str = ""


@dataclass(frozen=True)
class Verdict:
    """The outcome of grading one submission; ``notebook`` is the graded one, or None where nothing could be read.

    ``timings`` are the wall seconds of every cell that ran, in order: by grade id, or as "cell N" by its place.
    """

    status: Status
    learner: str
    instructor: str
    results: tuple[TestResult, ...] = ()
    notes: tuple[Note, ...] = ()
    notebook: Any = None
    seconds: float = 0.0
    sandbox: str = "full"
    flags: tuple[str, ...] = field(default=())
    timings: tuple[tuple[str, float], ...] = field(default=(), compare=False)

    @property
    def points(self) -> float:
        """Points of the test cells; a written answer is graded by hand."""
        return sum(result.points for result in self.results)

    @property
    def max_points(self) -> float:
        """The most that the test cells give."""
        return sum(result.max_points for result in self.results)
