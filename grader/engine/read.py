"""Bytes to a notebook, bounded in size, depth and number of cells. What cannot be read raises one exception."""

import json
import re
from typing import Any

__all__ = ["UnreadableError", "read_submission"]

DEEPEST = 60
MOST_CELLS = 5_000
LONGEST_SOURCE = 2_000_000
_STRING = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)', re.DOTALL)
_BUT_BRACKETS = re.compile(r"[^][{}]+")


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
        if _depth(text) > DEEPEST:
            raise UnreadableError("is nested more deeply than a notebook is")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnreadableError("is not complete, or is no JSON") from error
    raise UnreadableError("is not in an encoding that notebooks have")


def _depth(text: str) -> int:
    """How deeply brackets are nested, those inside of strings not counted."""
    deepest = depth = 0
    brackets = _BUT_BRACKETS.sub("", _STRING.sub("", text)) if len(text) < 1_000_000 else ""
    for bracket in brackets:
        if bracket in "[{":
            depth += 1
            deepest = max(deepest, depth)
        else:
            depth -= 1
    return deepest


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
