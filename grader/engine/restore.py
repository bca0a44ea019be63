"""Hold a submission against its assignment: the reference's cells, with the learner's answers in their places.

The graded notebook is made from the reference, so nothing but answers comes from the learner: test cells that were
edited, deleted, reordered or retyped are as they were given out, points are the reference's, and each repair is a note.
"""

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from grader.engine.verdict import Note
from grader.notebooks import grade_id, steps, without_hidden_tests

__all__ = ["NO_ANSWER", "Assignment", "Restored", "restore"]

NO_ANSWER = "(there was no answer)"
"""What stands in the place of an answer cell that a submission does not have."""


_MARKS = ("points", "grade", "solution", "locked")


@dataclass(frozen=True)
class Assignment:
    """A unit as it is graded: its reference notebook, and the files beside it by name."""

    unit: str
    reference: Any
    files: tuple[tuple[str, bytes], ...] = ()

    @cached_property
    def steps(self) -> dict[str, list[str]]:
        """For each answer cell the test cells that follow it."""
        return steps(self.reference)

    @cached_property
    def text(self) -> str:
        """The reference notebook as JSON: a copy made from it costs less than one of the notebook."""
        return json.dumps(self.reference)

    @cached_property
    def modules(self) -> tuple[str, ...]:
        """What its cells import, and the misconceptions of its steps: a session need not load that anew."""
        found = {f"ffn.misconceptions.{self.unit.replace('-', '_')}": None}
        code = (cell["source"] for cell in self.reference["cells"] if cell["cell_type"] == "code")
        for source in code:
            found |= dict.fromkeys(_imports(source))
        return tuple(found)

    @cached_property
    def answers(self) -> dict[str, str]:
        """Reference answers by grade id."""
        return {str(grade_id(c)): c["source"] for c in self.reference["cells"] if grade_id(c) in self.steps}


@dataclass(frozen=True)
class Restored:
    """The notebook to grade, what was repaired, and how many of the assignment's answers and tests were there."""

    notebook: Any
    notes: tuple[Note, ...]
    found: int


def _imports(source: str) -> Iterator[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def restore(assignment: Assignment, submitted: list[dict[str, Any]]) -> Restored:
    """Put the answers of a submission into the assignment's notebook.

    A learner's own cells without a grade id run where they stand: after the assignment's cell that they follow. So
    does the copy of an answer.
    """
    notes: list[Note] = []
    known = {str(grade_id(cell)): cell for cell in assignment.reference["cells"] if grade_id(cell)}
    first: dict[str, dict[str, Any]] = {}
    order: list[str] = []
    own: dict[str, list[str]] = {}
    last = ""
    for cell in submitted:
        name = cell["grade_id"]
        if name in known:
            if name in first:
                copied = bool(known[name]["metadata"]["nbgrader"].get("solution"))
                _note(
                    notes, name, f"was there twice; {'both of them run' if copied else 'the one given out counts'}"
                )
                if copied and cell["cell_type"] == "code" and cell["source"].strip():
                    own.setdefault(last, []).append(cell["source"])
                continue
            first[name] = cell
            order.append(name)
            last = name
        else:
            if name is not None:
                _note(notes, name, "is not a cell of this exercise; it runs, and is not graded")
            if cell["cell_type"] == "code" and cell["source"].strip():
                own.setdefault(last, []).append(cell["source"])
    _compare(notes, known, first, order)
    notebook = json.loads(assignment.text)
    notebook["cells"] = _cells(notebook["cells"], first, own)
    found = sum(step in first or any(test in first for test in tests) for step, tests in assignment.steps.items())
    return Restored(notebook, tuple(notes), found)


def _note(notes: list[Note], name: str, what: str) -> None:
    shown = name[:80]
    notes.append(Note(shown, f"The cell {shown!r} {what}.", f"Repaired: the cell {shown!r} {what}."))


def _compare(notes: list[Note], known: dict[str, Any], first: dict[str, dict[str, Any]], order: list[str]) -> None:
    for name, cell in known.items():
        marks = cell["metadata"]["nbgrader"]
        if name not in first:
            _note(notes, name, "was missing; it is back as it was given out")
        elif first[name]["cell_type"] != cell["cell_type"]:
            _note(notes, name, "had become a cell of another kind; it is what it was again")
        elif not marks.get("solution") and _plain(first[name]["source"]) != _plain(
            without_hidden_tests(cell["source"])
        ):
            _note(notes, name, "is not as it is given out; the course's own counts")
        elif any(first[name]["marks"].get(key, value) != value for key, value in marks.items() if key in _MARKS):
            _note(notes, name, "had other marks or points; it has those that it was given out with")
    wanted = [name for name in known if name in first]
    if order != wanted:
        notes.append(
            Note(
                "",
                "The cells were in another order; they are in the given one.",
                "Repaired: the order of the cells.",
            )
        )


def _plain(source: str) -> str:
    return "\n".join(line.rstrip() for line in source.strip().splitlines())


def _released(cell: Any) -> str:
    return without_hidden_tests(cell["source"])


def _cells(reference: list[Any], first: dict[str, dict[str, Any]], own: dict[str, list[str]]) -> list[Any]:
    cells: list[Any] = [_extra(source) for source in own.get("", [])]
    for cell in reference:
        name = grade_id(cell)
        marks = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
        if name and marks.get("solution"):
            given = first.get(name)
            if given is not None and given["cell_type"] == cell["cell_type"]:
                cell["source"] = given["source"]
            elif cell["cell_type"] == "code":
                cell["source"] = f"# {NO_ANSWER}\nraise NotImplementedError()"
            else:
                cell["source"] = NO_ANSWER
        cells.append(cell)
        if name:
            cells += [_extra(source) for source in own.get(name, [])]
    return cells


def _extra(source: str) -> dict[str, Any]:
    return {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": source}
