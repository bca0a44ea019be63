"""What a lesson shows beside its figures: computed numbers inside prose, and tables.

Both use the notebook's display machinery where a notebook is running and plain text elsewhere, so that a lesson
needs nothing but ``ffn`` to run.
"""

import html
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Table", "glue", "number", "running_notebook", "table"]

_GLUE_PREFIX = "application/papermill.record/"


def running_notebook() -> Any | None:
    """The IPython module if code runs in a notebook, else None.

    Only a running notebook has IPython loaded, so the helper module need not depend on it.
    """
    ipython = sys.modules.get("IPython")
    return ipython if ipython is not None and ipython.get_ipython() is not None else None


def number(value: Any, digits: int = 9) -> str:
    """A number, or an array as nested lists, as text for people: at most ``digits`` significant digits.

    Whole numbers keep all their digits, with thousands separated from 10,000 on; text is given back unchanged.
    """
    if isinstance(value, str):
        return value
    array = np.asarray(value)
    if array.ndim:
        return "[" + ", ".join(number(item, digits) for item in array) + "]"
    scalar = array.item()
    if isinstance(scalar, int) and not isinstance(scalar, bool):
        return f"{scalar:,}" if abs(scalar) >= 10_000 else str(scalar)
    return f"{scalar + 0.0:.{digits}g}" if isinstance(scalar, float) else repr(scalar)


def glue(name: str, value: Any, digits: int = 6) -> None:
    """Keep a computed value under a name, for the prose of the same page to show it.

    In the page's text the role ``{glue:text}`` with the name shows the number with at most ``digits``
    significant digits. Nothing appears at the cell itself, and outside a notebook nothing happens.
    """
    ipython = running_notebook()
    if ipython is not None:
        # The role evaluates what it is given; in quotes, 4,718,592 stays text and does not become a tuple.
        data = {f"{_GLUE_PREFIX}text/plain": repr(number(value, digits))}
        metadata = {"scrapbook": {"name": name, "mime_prefix": _GLUE_PREFIX}}
        ipython.display.display(data, raw=True, metadata=metadata)


@dataclass(frozen=True)
class Table:
    """Rows of text under column headers, shown as an HTML table with a caption, or as aligned plain text."""

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    def __str__(self) -> str:
        """Plain text, one line a row, columns aligned."""
        lines = (self.headers, *self.rows)
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headers))]
        text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
        return "\n".join([self.caption, *text] if self.caption else text)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        caption = f"<caption>{html.escape(self.caption)}</caption>" if self.caption else ""
        # A header cell without text is announced as an empty header: it is a plain cell.
        head = "".join(f'<th scope="col">{html.escape(c)}</th>' if c else "<td></td>" for c in self.headers)
        body = "".join(
            f'<tr><th scope="row">{html.escape(row[0])}</th>'
            + "".join(f"<td>{html.escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in self.rows
        )
        markup = (
            f'<div class="ffn-table"><table class="table">{caption}'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )
        return {"text/plain": str(self), "text/html": markup}


def table(headers: Sequence[str], rows: Sequence[Sequence[Any]], caption: str = "", digits: int = 6) -> Table:
    """Make a table; the first column names its row. Numbers are written by ``number``.

    Raises:
        ValueError: a row has more or fewer cells than there are headers.
    """
    for row in rows:
        if len(row) != len(headers):
            raise ValueError(f"a row has {len(row)} cells under {len(headers)} headers; make them equal.")
    written = tuple(tuple(number(cell, digits) for cell in row) for row in rows)
    return Table(headers=tuple(headers), rows=written, caption=caption)
