"""The published values of the source documents, and ``check``, which holds a computed value against them.

``python -m ffn.published`` prints which of them the executed lessons have checked.
"""

import argparse
import ast
import copy
import difflib
import functools
import html
import json
import math
import operator
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ffn.exceptions import CourseFilesError, NotReproducedError, UnknownPublishedIdError
from ffn.show import number, running_notebook

__all__ = [
    "CHECK_KEY",
    "Checked",
    "Published",
    "check",
    "checked_in",
    "coverage",
    "main",
    "published",
    "published_inputs",
]

CHECK_KEY = "ffn-check"
"""Key in an output's metadata under which a notebook records that a published value was reproduced."""

_EXACT = 1e-12
_FORMULA_POINTS = ((4, 12), (7, 5), (768, 2048))
_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


@dataclass(frozen=True)
class Published:
    """One published value: its id, the figure as printed, what is right, and where it stands.

    ``value`` is a number, a nested list of numbers, or a formula in d and d_ff as text. ``decimals`` or
    ``significant`` tell how far the print is rounded; ``status`` is "", "rounded", "garbled" or "erratum".
    """

    ident: str
    published: str
    value: Any
    place: str
    decimals: int | None = None
    significant: int | None = None
    cell: str = ""
    status: str = ""
    why: str = ""
    graded: bool = False

    @property
    def is_formula(self) -> bool:
        """Whether the published thing is a formula rather than a number."""
        return isinstance(self.value, str)

    def tolerance(self) -> float:
        """How far a computed value may be from ``value``: half a unit of the last printed digit.

        Where rounding to the printed digits changes nothing the figure is exact, as it is where the document
        does not round: then 1e-12 of the largest number, for the rounding of binary64.
        """
        largest = float(np.max(np.abs(np.asarray(self.value, dtype=np.float64))))
        exact = _EXACT * largest if largest else _EXACT
        if self.decimals is not None:
            place = self.decimals
        elif self.significant is not None:
            place = self.significant - 1 - math.floor(math.log10(largest))
        else:
            return exact
        rounding = abs(round(self.value, place) - self.value)
        return exact if rounding <= exact else 0.5 * 10.0**-place


@dataclass(frozen=True)
class Checked:
    """A published value together with the computed one that reproduced it; a notebook shows it as one line."""

    entry: Published
    computed: str

    def __str__(self) -> str:
        """One line of plain text."""
        return f"✓ {self.entry.ident}: {self._claim()}, computed {self.computed} ({self.entry.place})"

    def _claim(self) -> str:
        if self.entry.status == "erratum":
            return f"the document says “{self.entry.published}”, right is {number(self.entry.value)}"
        return f"published {self.entry.published}"

    def _repr_mimebundle_(
        self, include: object = None, exclude: object = None
    ) -> tuple[dict[str, str], dict[str, Any]]:
        line = (
            '<div class="ffn-check"><span class="ffn-check-mark" aria-hidden="true">✓</span> '
            f"{html.escape(self._claim())} · computed <strong>{html.escape(self.computed)}</strong> "
            f'<span class="ffn-check-source"><code>{self.entry.ident}</code>, '
            f"{html.escape(self.entry.place)}</span></div>"
        )
        record = {"id": self.entry.ident, "computed": self.computed}
        return {"text/plain": str(self), "text/html": line}, {CHECK_KEY: record}


def _place(table: str, cell: str, sources: Mapping[str, Any]) -> str:
    title = next(source["title"] for source in sources.values() if table in source["tables"])
    part = {"recall": ", recall questions"}.get(table, f", Example {table[2:]}" if table.startswith("ex") else "")
    return f"{title}{part}{f', cell {cell}' if cell else ''}"


@functools.cache
def _ledger() -> dict[str, Any]:
    resource = files("ffn") / "published.toml"
    try:
        return tomllib.loads(resource.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CourseFilesError.unreadable("ffn/published.toml", str(error)) from error


@functools.cache
def published() -> Mapping[str, Published]:
    """Every published value by its id, in the order of the documents.

    Raises:
        CourseFilesError: published.toml is missing or is not valid TOML.
    """
    ledger = _ledger()
    entries = {}
    for table, keys in ledger["values"].items():
        for key, fields in keys.items():
            ident = f"{table}.{key}"
            place = _place(table, fields.get("cell", ""), ledger["sources"])
            entries[ident] = Published(ident=ident, place=place, **fields)
    return entries


def published_inputs(name: str) -> Any:
    """The numbers that an example starts from, as published.toml gives them, by name: w, b, x_A, ...

    Raises:
        UnknownPublishedIdError: no example has that name.
    """
    inputs = _ledger()["inputs"]
    if not isinstance(name, str) or name not in inputs:
        raise UnknownPublishedIdError(name, difflib.get_close_matches(str(name), inputs))
    return copy.deepcopy(inputs[name])


def _evaluate(node: ast.expr, names: Mapping[str, int]) -> int:
    """Value of a formula made of names, whole numbers, sums and products."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    raise CourseFilesError.unreadable("ffn/published.toml", f"{ast.unparse(node)} is no formula")


def _require_formula(entry: Published, given: Any) -> str:
    if not callable(given):
        raise NotReproducedError.value(
            entry.ident, entry.place, f"a function of d and d_ff that gives {entry.value}", _brief(given)
        )
    formula = ast.parse(entry.value, mode="eval").body
    for d, d_ff in _FORMULA_POINTS:
        right, computed = _evaluate(formula, {"d": d, "d_ff": d_ff}), given(d, d_ff)
        if not _is_number(computed) or computed != right:
            raise NotReproducedError.value(
                entry.ident, entry.place, f"{entry.value} = {right:,} at d = {d}, d_ff = {d_ff}", _brief(computed)
            )
    return f"{entry.value} at {len(_FORMULA_POINTS)} pairs of widths"


def _as_array(value: Any) -> np.ndarray[Any, Any] | None:
    """The value as an array, or None where its own conversion fails, with whatever exception."""
    try:
        return np.asarray(value)
    except Exception:
        return None


def _is_number(value: Any) -> bool:
    array = _as_array(value)
    return array is not None and array.ndim == 0 and array.dtype.kind in "iuf"


def _brief(given: Any) -> str:
    array = _as_array(given)
    try:
        if array is None or array.dtype.kind not in "iufb":
            text = repr(given)
        else:
            # numpy shortens the text of a large array by itself.
            text = number(array) if array.size <= 1000 else repr(array)
    except Exception:
        # An integer of more than 4300 digits has no text, and an object's own __repr__ may raise anything.
        text = f"an object of type {type(given).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}…"


def _require_value(entry: Published, given: Any) -> str:
    expected = np.asarray(entry.value, dtype=np.float64)
    wanted = number(entry.value) + (f" of shape {expected.shape}" if expected.ndim else "")
    array = _as_array(given)
    if array is None or array.dtype.kind not in "iuf":
        raise NotReproducedError.value(entry.ident, entry.place, wanted, f"{_brief(given)}, which is no number")
    if array.shape != expected.shape:
        shaped = f"{_brief(given)} of shape {array.shape}"
        raise NotReproducedError.value(entry.ident, entry.place, wanted, shaped)
    computed = array.astype(np.float64)
    near = np.isfinite(computed) & (np.abs(computed - expected) <= entry.tolerance())
    if not np.all(near):
        shown = _brief(given)
        if shown == number(entry.value):
            shown = repr(given)
        raise NotReproducedError.value(entry.ident, entry.place, wanted, shown)
    return number(given)


def _lookup(ident: str) -> Published:
    entries = published()
    if not isinstance(ident, str) or ident not in entries:
        raise UnknownPublishedIdError(ident, difflib.get_close_matches(str(ident), entries))
    return entries[ident]


def check(ident: str, value: Any) -> None:
    """Hold a computed value against the published one, and show a line that says so.

    ``value`` has the shape of the published value: a number, a list or array of numbers, or, for
    mech.swiglu_params_formula, a function of d and d_ff. In a notebook the line is an output of the cell, which
    also records the check for the coverage table; elsewhere it is printed.

    Raises:
        NotReproducedError: an AssertionError that names the id, the place, the expected and the given value.
        UnknownPublishedIdError: no published value has this id.
    """
    entry = _lookup(ident)
    computed = _require_formula(entry, value) if entry.is_formula else _require_value(entry, value)
    _present(Checked(entry=entry, computed=computed))


def _present(line: Checked) -> None:
    ipython = running_notebook()
    if ipython is not None:
        ipython.display.display(line)
    else:
        sys.stdout.write(f"{line}\n")


def checked_in(notebook: Path) -> list[str]:
    """Ids of the published values that an executed notebook's cells have checked, in order.

    Read from the recorded outputs of the cells that ran, not from their source.

    Raises:
        CourseFilesError: the file is not a notebook.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        return [o["metadata"][CHECK_KEY]["id"] for o in outputs if CHECK_KEY in o.get("metadata", {})]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseFilesError.unreadable(str(notebook), f"it is no notebook ({error!r})") from error


def coverage(folder: Path) -> dict[str, list[str]]:
    """For every published id the executed notebooks under a folder that checked it, as paths without suffix.

    Raises:
        CourseFilesError: the folder holds no notebook, or one that cannot be read.
    """
    notebooks = sorted(folder.rglob("*.ipynb"))
    if not notebooks:
        raise CourseFilesError.no_executed_lessons(str(folder))
    pages: dict[str, list[str]] = {ident: [] for ident in published()}
    for notebook in notebooks:
        page = notebook.relative_to(folder).with_suffix("").as_posix()
        for ident in dict.fromkeys(checked_in(notebook)):
            if ident not in pages:
                raise CourseFilesError.unreadable(str(notebook), f"it has checked the unknown id {ident!r}")
            pages[ident].append(page)
    return pages


def _table(pages: Mapping[str, Sequence[str]]) -> str:
    entries = published()
    width = max(map(len, entries))
    lines = []
    for ident, entry in entries.items():
        mark, found = ("✓", ", ".join(pages[ident])) if pages[ident] else ("✗", "no lesson")
        lines.append(f"{mark} {ident:<{width}}  {entry.place:<45}  {found}")
    reached = sum(bool(found) for found in pages.values())
    return "\n".join([*lines, f"{reached} of {len(entries)} published values are checked by an executed lesson."])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the coverage table; exit status 1 if a published value is unchecked, 2 if there is nothing to read."""
    parser = argparse.ArgumentParser(
        prog="python -m ffn.published",
        description="Which published values the executed lessons have checked. Exit status 1: some are missing.",
    )
    parser.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("_build/jupyter_execute"),
        help="folder of executed notebooks (default: %(default)s, which `make book` fills)",
    )
    try:
        pages = coverage(parser.parse_args(arguments).folder)
    except CourseFilesError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(_table(pages) + "\n")
    return 0 if all(pages.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
