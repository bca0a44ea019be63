"""What a report stands on: the marks in the gradebook, and what the engine left in the graded notebooks.

All of it is read once, nothing is written, and of a notebook only what the report needs is kept.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from grader.course import Course
from grader.engine.restore import NO_ANSWER, Assignment
from grader.engine.store import RECORD_KEY, load_assignment
from grader.engine.verdict import CRASHED, MISSING, UNREADABLE
from grader.exceptions import BrokenReferenceError, NotGradedError, NotReleasedError
from grader.notebooks import FLAG_KEY, grade_id, is_hidden, read_notebook, without_hidden_tests
from grader.report.similarity import Template
from grader.standing import Mark, Marks, Standing

__all__ = ["HIDDEN", "VISIBLE", "WRITTEN", "Class", "Graded", "Record", "Step", "Test", "read_class"]

VISIBLE, HIDDEN, WRITTEN = "visible", "hidden", "written"

_AT_A_TIME = 500
_LARGEST = 100_000_000
_LONGEST_MESSAGE = 2_000
_MOST_REMARKS = 100
_HEADING = re.compile(r"^#{1,3} +(.+?) *$", re.MULTILINE)
_POINTS = re.compile(r" *\(\d+(?:\.\d+)? points?\)$")


@dataclass(frozen=True)
class Test:
    """A graded cell: its step, its points, and whether it is a visible test, a hidden one or a written answer."""

    __test__ = False

    name: str
    step: str
    points: float
    kind: str


@dataclass(frozen=True)
class Step:
    """A step of the unit: the heading above it, and its graded cells."""

    name: str
    title: str
    tests: tuple[Test, ...]

    @property
    def points(self) -> float:
        """The most points that it gives."""
        return sum(test.points for test in self.tests)


@dataclass(frozen=True)
class Record:
    """What a graded notebook says: ``known`` is False where there is none, or one that another program graded.

    ``messages`` are those of tests that failed, by grade id; ``notes`` the sentences for the instructor; ``seconds``
    those of every cell; ``answers`` the answers that are not as they were given out, by grade id.
    """

    known: bool = False
    status: str = ""
    sandbox: str = ""
    messages: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    answers: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = None

    @property
    def ran(self) -> bool:
        """Whether there was something to grade."""
        return self.status not in (MISSING, UNREADABLE, CRASHED)


@dataclass(frozen=True)
class Graded:
    """One learner's submission: points of each graded cell, None where a person has not given them yet."""

    learner: str
    marks: Mapping[str, float | None]
    waits: tuple[str, ...]
    record: Record
    where: str

    @property
    def score(self) -> float:
        """All points so far, before any late penalty."""
        return sum(points or 0.0 for points in self.marks.values())


@dataclass(frozen=True)
class Class:
    """A unit and all of its graded submissions, by learner; ``unread`` are graded notebooks that could not be read."""

    unit: str
    steps: tuple[Step, ...]
    graded: tuple[Graded, ...]
    template: Template
    unread: tuple[str, ...] = ()

    @property
    def tests(self) -> tuple[Test, ...]:
        """All graded cells, in order."""
        return tuple(test for step in self.steps for test in step.tests)

    @property
    def points(self) -> float:
        """The most points that the unit gives."""
        return sum(step.points for step in self.steps)


def read_class(course: Course, unit: str) -> Class:
    """Read a unit's graded submissions.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotGradedError: no submission of the unit is graded.
        BrokenReferenceError: the reference notebook, or the learners' one, cannot be read.
        GradebookLockedError, GradebookUnreadableError: the gradebook cannot be read.
    """
    assignment = load_assignment(course, unit)
    points, marks = _marks(course, unit)
    steps = _steps(assignment, points)
    template = _template(course, assignment)
    tests = [test.name for step in steps for test in step.tests]
    graded, unread = [], []
    for learner, found in marks.items():
        record, readable = _record(course, learner, unit, template)
        if not readable:
            unread.append(learner)
        graded.append(
            Graded(
                learner,
                {name: _points(found.cells.get(name)) for name in tests},
                tuple(name for name in tests if name in found.cells and found.cells[name].waits),
                record,
                _path(course, learner, unit).relative_to(course.root).as_posix(),
            )
        )
    return Class(unit, steps, tuple(graded), template, tuple(unread))


# ------------------------------------------------------------------------------------------------ the gradebook


def _marks(course: Course, unit: str) -> tuple[dict[str, float], dict[str, Marks]]:
    """The most points of each graded cell, and everybody's marks."""
    try:
        with Standing(course, unit) as standing:
            learners = sorted(standing.learners())
            parts = [learners[start : start + _AT_A_TIME] for start in range(0, len(learners), _AT_A_TIME)]
            found = {learner: marks for part in parts for learner, marks in standing.marks(part).items()}
            points = standing.points
    except NotReleasedError:
        raise NotGradedError(unit) from None
    graded = {learner: found[learner] for learner in learners if learner in found and found[learner].cells}
    if not graded:
        raise NotGradedError(unit)
    return points, graded


def _points(mark: Mark | None) -> float | None:
    """What a mark counts; None where it waits for a person's first word, and 0 where there is no mark."""
    if mark is None:
        return 0.0
    return None if mark.auto is None and mark.manual is None and mark.waits else mark.points


def _steps(assignment: Assignment, points: Mapping[str, float]) -> tuple[Step, ...]:
    """The unit's steps in order; a graded cell that the reference notebook does not have is a step of its own."""
    cells = {name: cell for cell in assignment.reference["cells"] if (name := grade_id(cell)) is not None}
    titles = _titles(assignment.reference)
    step_of = {test: step for step, tests in assignment.steps.items() for test in tests}
    grouped: dict[str, list[Test]] = {}
    for name in sorted(points, key=lambda name: (list(cells).index(name) if name in cells else len(cells), name)):
        cell = cells.get(name)
        step = step_of.get(name, name)
        grouped.setdefault(step, []).append(Test(name, step, points[name], _kind(cell)))
    return tuple(Step(name, titles.get(name, ""), tuple(tests)) for name, tests in grouped.items())


def _kind(cell: Any) -> str:
    if cell is not None and cell["metadata"]["nbgrader"].get("solution"):
        return WRITTEN
    return HIDDEN if cell is not None and is_hidden(cell) else VISIBLE


def _titles(reference: Any) -> dict[str, str]:
    """For each named cell the heading above it, without its points."""
    titles, last = {}, ""
    for cell in reference["cells"]:
        name = grade_id(cell)
        if cell["cell_type"] == "markdown" and (found := _HEADING.findall(cell["source"])):
            last = _POINTS.sub("", found[-1])
        if name is not None:
            titles[name] = last
    return titles


# --------------------------------------------------------------------------------------------- graded notebooks


def _path(course: Course, learner: str, unit: str) -> Any:
    return course.autograded / learner / unit / f"{unit}.ipynb"


def _template(course: Course, assignment: Assignment) -> Template:
    cells = {str(grade_id(cell)): cell for cell in assignment.reference["cells"] if _is_answer(cell)}
    path = course.exercise(assignment.unit)
    try:
        released = read_notebook(path) if path.is_file() else {"cells": []}
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BrokenReferenceError(path.relative_to(course.root)) from error
    given = {str(grade_id(cell)): cell["source"] for cell in released["cells"] if grade_id(cell) in cells}
    return Template(
        given=given,
        reference={name: without_hidden_tests(cell["source"]) for name, cell in cells.items()},
        prose=frozenset(name for name, cell in cells.items() if cell["cell_type"] == "markdown"),
    )


def _is_answer(cell: Any) -> bool:
    marks = cell["metadata"].get("nbgrader")
    return isinstance(marks, dict) and bool(marks.get("solution")) and grade_id(cell) is not None


def _record(course: Course, learner: str, unit: str, template: Template) -> tuple[Record, bool]:
    """What a graded notebook says, and whether it could be read."""
    path = _path(course, learner, unit)
    try:
        state = path.stat()
        if state.st_size > _LARGEST:
            return Record(), False
        notebook = json.loads(path.read_bytes())
        at = datetime.fromtimestamp(state.st_mtime, UTC)
        return _of_notebook(notebook, template, at), True
    except FileNotFoundError:
        return Record(), True
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record(), False


def _of_notebook(notebook: Any, template: Template, at: datetime) -> Record:
    kept = notebook["metadata"].get(RECORD_KEY)
    record = kept if isinstance(kept, dict) else {}
    cells = {name: cell for cell in notebook["cells"] if (name := grade_id(cell)) is not None}
    answers = {name: _source(cells[name]) for name in template.reference if name in cells}
    return Record(
        known=bool(record),
        status=str(record.get("status", "")),
        sandbox=str(record.get("sandbox", "")),
        messages=dict(_messages(record, cells)),
        flags=_flags(record, cells),
        notes=tuple(text for note in _dicts(record.get("notes")) if (text := _text(note.get("instructor")))),
        seconds=_seconds(record),
        answers={
            name: source
            for name, source in answers.items()
            if source != template.given.get(name) and NO_ANSWER not in source[:40]
        },
        at=at,
    )


def _messages(record: Mapping[str, Any], cells: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Why tests failed; an older record lacks that, and the notebook's outputs still have it."""
    if isinstance(record.get("results"), list):
        for result in _dicts(record["results"]):
            if text := _text(result.get("message")):
                yield str(result.get("cell")), text
        return
    for name, cell in cells.items():
        if cell["cell_type"] != "code" or not cell["metadata"]["nbgrader"].get("grade"):
            continue
        errors = [output for output in cell.get("outputs", []) if output.get("output_type") == "error"]
        if errors and (text := _text(errors[0].get("evalue"))):
            yield name, text


def _flags(record: Mapping[str, Any], cells: Mapping[str, Any]) -> tuple[str, ...]:
    if isinstance(record.get("flags"), list):
        return tuple(map(_text, record["flags"][:_MOST_REMARKS]))
    found = (f"{name} {flag}" for name, cell in cells.items() for flag in cell["metadata"].get(FLAG_KEY, ()))
    return tuple(_text(flag) for _, flag in zip(range(_MOST_REMARKS), found, strict=False))


def _seconds(record: Mapping[str, Any]) -> dict[str, float]:
    found = record.get("seconds")
    pairs = found.items() if isinstance(found, dict) else ()
    return {
        str(name): float(value) for name, value in pairs if isinstance(value, int | float) and 0 <= value < 1e6
    }


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value[:_LONGEST_MESSAGE] if isinstance(value, str) else ""


def _source(cell: Any) -> str:
    source = cell["source"]
    return "".join(source) if isinstance(source, list) else str(source)
