"""A CSV file of which single cells are replaced, and everything else stays as it was, to the byte.

An LMS takes its own file back: the order of its columns, its quoting, its line ends and its byte order mark. So the
file is not written anew from a table; only the text of the cells that change is.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from grader.exceptions import TemplateUnreadableError

__all__ = ["Sheet", "defused", "read_sheet"]

MOST_BYTES = 50_000_000
LONGEST_CELL = 100_000
_BOM = "\ufeff"
_DELIMITERS = ",;\t"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class Sheet:
    """The rows of a CSV file, each a list of cells; blank lines are rows of one empty cell."""

    def __init__(self, text: str, delimiter: str) -> None:
        self.delimiter = delimiter
        self._text = text
        self._new: dict[tuple[int, int], str] = {}
        self.rows: list[list[str]] = []
        self._spans: list[list[tuple[int, int]]] = []
        for cells in _records(text, delimiter):
            self._spans.append([(start, end) for start, end in cells])
            self.rows.append([_value(text[start:end]) for start, end in cells])

    @property
    def header(self) -> list[str]:
        """The cells of the first row, without blanks around them."""
        return [cell.strip() for cell in self.rows[0]] if self.rows else []

    def replace(self, row: int, column: int, value: str) -> None:
        """Give a cell another value; it is quoted if the old one was, or if it has to be."""
        start, end = self._spans[row][column]
        quoted = self._text[start:end].startswith('"') or re.search(f'["\r\n{self.delimiter}]', value)
        self._new[row, column] = '"' + value.replace('"', '""') + '"' if quoted else value
        self.rows[row][column] = value

    def text(self) -> str:
        """The whole file, with what was replaced."""
        parts, place = [], 0
        for (row, column), value in sorted(self._new.items()):
            start, end = self._spans[row][column]
            parts += [self._text[place:start], value]
            place = end
        return "".join([*parts, self._text[place:]])


def read_sheet(path: Path, known: Sequence[str]) -> Sheet:
    """Read a CSV file; the delimiter is the one of comma, semicolon and tab that gives most of the known headings.

    Raises:
        TemplateUnreadableError: no file, too large, not UTF-8, no CSV, or none of the headings is in its first row.
    """
    text = _decoded(path)
    wanted = {name.casefold() for name in known}
    found = {delimiter: len(wanted & _headings(text, delimiter)) for delimiter in _DELIMITERS}
    delimiter = max(_DELIMITERS, key=lambda each: found[each])
    if not found[delimiter]:
        raise TemplateUnreadableError(path, f"its first line has none of the columns {', '.join(known)}")
    try:
        sheet = Sheet(text, delimiter)
    except ValueError as error:
        raise TemplateUnreadableError(path, str(error)) from error
    if any(len(cell) > LONGEST_CELL for row in sheet.rows for cell in row):
        raise TemplateUnreadableError(path, "a cell in it is longer than any that an LMS writes")
    return sheet


def _headings(text: str, delimiter: str) -> set[str]:
    try:
        first = next(_records(text, delimiter), [])
    except ValueError:
        return set()
    return {_value(text[start:end]).strip().casefold() for start, end in first}


def defused(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text


def _decoded(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise TemplateUnreadableError(path, (error.strerror or "it cannot be opened").lower()) from error
    if len(data) > MOST_BYTES:
        raise TemplateUnreadableError(path, f"it is larger than {MOST_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TemplateUnreadableError(path, "it is not in UTF-8, as the LMS writes it") from error
    if "\0" in text:
        raise TemplateUnreadableError(path, "it is no CSV file")
    return text


def _records(text: str, delimiter: str) -> Iterator[list[tuple[int, int]]]:
    """For each record the spans of its cells, quotes included. A quoted cell may go over several lines."""
    cell = re.compile(
        f'("[^"]*+(?:""[^"]*+)*+"|[^"{delimiter}\r\n][^{delimiter}\r\n]*+|)({delimiter}|\r\n|\n|\r|\\Z)'
    )
    place = len(_BOM) if text.startswith(_BOM) else 0
    cells: list[tuple[int, int]] = []
    while place < len(text) or cells:
        found = cell.match(text, place)
        if found is None:
            line = text.count("\n", 0, place) + 1
            raise ValueError(f"the quotes in its line {line} are not those of a CSV file")
        cells.append(found.span(1))
        place = found.end()
        if found[2] != delimiter:
            yield cells
            cells = []


def _value(raw: str) -> str:
    return raw[1:-1].replace('""', '"') if raw.startswith('"') else raw
