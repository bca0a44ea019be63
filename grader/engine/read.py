"""Bytes to a notebook, bounded in size, depth and number of cells. What cannot be read raises one exception."""

import json
from typing import Any

__all__ = ["UnreadableError", "read_submission"]

DEEPEST = 60
MOST_CELLS = 5_000
LONGEST_SOURCE = 2_000_000
_LONG = 1_000_000
_TOO_DEEP = "is nested more deeply than a notebook is"


class UnreadableError(Exception):
    """Bytes that are no notebook which could be graded; the message completes "the file ..."."""


def read_submission(data: bytes, most: int) -> list[dict[str, Any]]:
    """The cells of a submitted notebook: kind, source and nbgrader's marks of each; everything else is left behind.

    Raises:
        UnreadableError: too large, no JSON, another format, or not of a notebook's shape.
    """
    if not data.strip():
        raise UnreadableError("is empty")
    if len(data) > most:
        raise UnreadableError(f"is larger than {most // 1_000_000} MB")
    document = _json(data)
    if not isinstance(document, dict):
        raise UnreadableError("is no notebook")
    version = document.get("nbformat")
    if version == 3:
        return _cells(
            [cell for sheet in _list(document.get("worksheets")) for cell in _list(_get(sheet, "cells"))]
        )
    if version != 4:
        raise UnreadableError("is in no format of notebooks that is known here")
    return _cells(_list(document.get("cells")))


def _json(data: bytes) -> Any:
    for encoding in ("utf-8-sig", "utf-16"):
        if encoding == "utf-16" and data[:2] not in (b"\xff\xfe", b"\xfe\xff"):
            continue
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        try:
            document = json.loads(text)
        except RecursionError as error:
            raise UnreadableError(_TOO_DEEP) from error
        except ValueError as error:
            raise UnreadableError("is not complete, or is no JSON") from error
        if len(text) < _LONG and _is_deep(document):
            raise UnreadableError(_TOO_DEEP)
        return document
    raise UnreadableError("is not in an encoding that notebooks have")


def _is_deep(document: Any) -> bool:
    """Whether lists and objects are nested more deeply than in a notebook."""
    level = [document] if isinstance(document, dict | list) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        parts = (part for whole in level for part in (whole.values() if type(whole) is dict else whole))
        level = [part for part in parts if type(part) in (dict, list)]
    return bool(level)


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableError("is no notebook")
    if len(value) > MOST_CELLS:
        raise UnreadableError(f"has more than {MOST_CELLS} cells")
    return value


def _cells(cells: list[Any]) -> list[dict[str, Any]]:
    found = []
    for cell in cells:
        kind, source = _get(cell, "cell_type"), _get(cell, "source")
        source = _get(cell, "input") if source is None else source
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str) or not isinstance(kind, str):
            continue
        if len(source) > LONGEST_SOURCE:
            raise UnreadableError("has a cell that is longer than an answer can be")
        marks = _get(_get(cell, "metadata"), "nbgrader")
        name = _get(marks, "grade_id")
        # Surrogates on their own cannot be written back to a file.
        source = source.encode("utf-8", "replace").decode("utf-8")
        name = name if isinstance(name, str) else None
        found.append({"cell_type": kind, "source": source, "grade_id": name, "marks": marks if name else {}})
    return found
