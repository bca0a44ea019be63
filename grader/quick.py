"""The marks of a notebook's visible tests, by the course's engine: the first half of ``grader check``.

Learner code runs in a process of its own, by default with this user's rights. That process takes the longest to start,
so this one imports the rest of the engine meanwhile.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from grader.check import CELL_SECONDS, LARGEST, NO_ANSWER, OWN, SECONDS, Subject, cell_names, cleaned, raised
from grader.engine.verdict import Limits, TestResult, Verdict
from grader.exceptions import CheckFailedError, NoSandboxError
from grader.notebooks import FLAG_KEY

__all__ = ["Marks", "StepMarks", "mark"]


@dataclass(frozen=True)
class StepMarks:
    """One step: the points of its visible tests, what is wrong, or "", and what an instructor is told."""

    name: str
    points: float
    max_points: float
    message: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Marks:
    """The marks of a notebook's steps, in order, what failed outside of them, and what was put right before.

    ``stopped`` names the answers, and cells of one's own, that did not come to an end, with a sentence on each.
    """

    unit: str
    steps: tuple[StepMarks, ...]
    elsewhere: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: Mapping[str, str] = field(default_factory=dict)
    sandbox: str = "none"

    @property
    def passed(self) -> bool:
        """Whether every visible test passes."""
        return not self.elsewhere and not any(step.message for step in self.steps)

    @property
    def points(self) -> float:
        """The points of all steps."""
        return sum(step.points for step in self.steps)

    @property
    def max_points(self) -> float:
        """The most that the visible tests give."""
        return sum(step.max_points for step in self.steps)


def mark(subject: Subject, *, sandbox: str = "none", cell_seconds: float = CELL_SECONDS) -> Marks:
    """Grade the visible tests of a learner's notebook, with its own cells, as the grader does.

    A cell may run for ``cell_seconds``. What does not come to its end costs its own step.

    Raises:
        NoSandboxError: with ``sandbox`` "full", the machine does not isolate code.
        CheckFailedError: the process for the answers does not start.
    """
    cells = len(subject.cells) + len(subject.assignment.reference["cells"])
    # Every cell may end its session, and be replayed without what did it.
    limits = Limits(
        # The file's size was bounded when it was read; written anew, it may be larger.
        submission_bytes=10 * LARGEST,
        cell_seconds=cell_seconds,
        total_seconds=SECONDS,
        cpu_seconds=int(SECONDS),
        restarts=2 * cells + 1,
    )
    from grader.engine.sandbox import Sandbox

    try:
        with Sandbox(
            limits, subject.assignment.files, sandbox, modules=subject.assignment.modules, wait=False
        ) as started:
            # While the process for the answers starts, this one imports what grading needs.
            import ffn.exercise  # noqa: F401
            from grader.engine.grade import grade

            verdict = grade(subject.assignment, subject.data, limits, started)
    except (NoSandboxError, OSError) as error:
        if sandbox == "full":
            raise
        reason = error.reason if isinstance(error, NoSandboxError) else str(error)
        raise CheckFailedError(
            f"the process for the answers does not start ({reason})", "run `make venv`"
        ) from error
    return _marks(subject, verdict, cell_seconds)


def _marks(subject: Subject, verdict: Verdict, cell_seconds: float) -> Marks:
    if verdict.notebook is None:
        raise CheckFailedError(verdict.learner)
    notebook, tests = verdict.notebook, subject.assignment.steps
    names = cell_names(notebook, subject.assignment)
    cells = {n: cell for n, cell in zip(names, notebook["cells"], strict=True) if cell["cell_type"] == "code"}
    owner = {name: step for step, found in tests.items() for name in (step, *found)}
    ended = {name: said for name, cell in cells.items() if (said := _ended(cell, cell_seconds))}
    guilty = [(owner.get(name, name), said) for name, said in ended.items()]
    stopped = {name: said for name, said in reversed(guilty) if name in tests or name.startswith(OWN)}
    results: dict[str, list[TestResult]] = {}
    for result in verdict.results:
        results.setdefault(result.step, []).append(result)
    steps = [
        StepMarks(
            name=step,
            points=sum(result.points for result in results.get(step, ())),
            max_points=sum(result.max_points for result in results.get(step, ())),
            message=stopped.get(step) or _fault(step, subject, cells[step], results.get(step, ())),
            flags=tuple(cells[step]["metadata"].get(FLAG_KEY, ())),
        )
        for step in tests
    ]
    locked = [name for name in cells if name not in owner and not name.startswith(OWN)]
    elsewhere = [f"{name}: {said}" for name in locked if (said := raised(_outputs(cells[name])))]
    elsewhere += [f"{name}: {said}" for name, said in stopped.items() if name.startswith(OWN)]
    return Marks(
        unit=subject.unit,
        steps=tuple(steps),
        elsewhere=tuple(elsewhere),
        notes=tuple(_notes(subject)),
        stopped=stopped,
        sandbox=verdict.sandbox,
    )


def _outputs(cell: Any) -> list[Any]:
    outputs: list[Any] = cell.get("outputs", [])
    return outputs


def _ended(cell: Any, cell_seconds: float) -> str:
    """What is to be said of a cell in which the session ended; "" of another."""
    kinds = {output.get("ename") for output in _outputs(cell)}
    if "TimedOut" in kinds:
        return f"Your code did not come to an end within {cell_seconds:g} seconds."
    return "Your code ends Python itself, or runs out of memory." if "SessionLost" in kinds else ""


def _fault(step: str, subject: Subject, answer: Any, results: Iterable[TestResult]) -> str:
    """What is wrong with a step; "" where its visible tests give all points."""
    failed = [result for result in results if result.points < result.max_points]
    if not failed:
        return ""
    if step not in subject.answered:
        return NO_ANSWER
    error = raised(_outputs(answer))
    if error:
        return f"The answer's cell raises {error}"
    return cleaned(failed[0].message) or f"The test gives {failed[0].points:g} of {failed[0].max_points:g} points."


def _notes(subject: Subject) -> list[str]:
    """What was put right in the notebook before it ran; of a missing answer its step says so."""
    missing = subject.assignment.steps.keys() - subject.answered
    return [cleaned(note.learner) for note in subject.notes if note.cell not in missing]
