"""Run a unit's reference notebook in this process, some answers replaced, and see which test cells pass.

Only our own notebooks and our own wrong answers are run here; a learner's code never is.
"""

import contextlib
import io
import linecache
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

from grader.notebooks import read_notebook
from tools.places import ROOT

__all__ = ["Cell", "Result", "Unit", "compiled", "in_folder", "reference", "run", "unit"]


@dataclass(frozen=True)
class Cell:
    """A code cell of a reference notebook; ``points`` is None where the cell is not a test."""

    ident: str
    source: str
    answer: bool
    points: float | None


@dataclass(frozen=True)
class Unit:
    """A unit's code cells, in order."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def answers(self) -> dict[str, str]:
        """Reference answers by grade id."""
        return {cell.ident: cell.source for cell in self.cells if cell.answer}


@dataclass(frozen=True)
class Result:
    """How one test cell went: "" where it passed, else the message of the exception."""

    ident: str
    step: str
    points: float
    message: str


@cache
def unit(name: str) -> Unit:
    """Read a unit's reference notebook."""
    notebook = read_notebook(ROOT / "solutions" / name / f"{name}.ipynb")
    cells = []
    for place, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        grading = cell["metadata"].get("nbgrader", {})
        cells.append(
            Cell(
                ident=str(grading.get("grade_id", f"cell-{place}")),
                source=cell["source"],
                answer=bool(grading.get("solution")),
                points=float(grading["points"]) if grading.get("grade") else None,
            )
        )
    return Unit(name=name, cells=tuple(cells))


def compiled(name: str, ident: str, source: str) -> CodeType:
    """The code of a unit's cell; inspect and tracebacks find its source."""
    code, entry = _compiled(f"<{name} {ident}>", source)
    linecache.cache[code.co_filename] = entry
    return code


@cache
def _compiled(filename: str, source: str) -> tuple[CodeType, Any]:
    return compile(source, filename, "exec"), (len(source), None, source.splitlines(keepends=True), filename)


def run(
    book: Unit,
    step: str = "",
    functions: Mapping[str, Any] | None = None,
    source: str | None = None,
    *,
    only_step: bool = False,
) -> list[Result]:
    """Run the notebook and return how its test cells went.

    The answer of ``step`` is replaced by ``source``, or overlaid by ``functions`` right after it ran. With
    ``only_step`` the test cells of other steps are not run, nor those after the first of the step that fails.
    """
    before = {} if only_step or not step else {result.ident: result for result in reference(book)}
    names: dict[str, Any] = {"__name__": "__main__"}
    results: list[Result] = []
    current = ""
    with in_folder(book), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in book.cells:
            current = cell.ident if cell.answer else current
            if cell.ident == step:
                # What runs before the replaced answer does not notice it; from here on all is run.
                before = {}
            if cell.points is None:
                text = source if cell.ident == step and source is not None else cell.source
                exec(compiled(book.name, cell.ident, text), names)
                if cell.ident == step and functions:
                    names.update(functions)
            elif cell.ident in before:
                results.append(before[cell.ident])
            elif not only_step or current == step:
                results.append(Result(cell.ident, current, cell.points, _try(book, cell, names)))
                if only_step and results[-1].message:
                    break
    return results


@cache
def reference(book: Unit) -> list[Result]:
    """How the test cells go with the reference answers."""
    return run(book)


def in_folder(book: Unit) -> contextlib.AbstractContextManager[None]:
    """The unit's own folder as working directory: a notebook finds its data beside itself."""
    return contextlib.chdir(ROOT / "solutions" / book.name)


def _try(book: Unit, cell: Cell, names: dict[str, Any]) -> str:
    try:
        exec(compiled(book.name, cell.ident, cell.source), names)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""
