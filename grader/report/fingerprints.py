"""Fingerprints of an answer that survive new names, another layout and other comments.

Code is cut into tokens without comments, docstrings, annotations and round brackets; every run of ``RUN`` tokens is
hashed with its names in order of appearance; winnowing (Schleimer, Wilkerson and Aiken, 2003) keeps some of the hashes,
and is sure to keep one of every passage of ``RUN + WINDOW - 1`` tokens. Nothing is run, and all is bounded.
"""

import ast
import builtins
import hashlib
import keyword
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

__all__ = ["FEWEST_TOKENS", "LONGEST", "RUN", "WINDOW", "Hashes", "Token", "hashes", "tokens", "winnowed", "words"]

Hashes = np.ndarray[Any, np.dtype[np.uint64]]

RUN = 7
"""Tokens in a run that is hashed."""

WINDOW = 4
"""Neighbouring runs of which winnowing keeps one."""

FEWEST_TOKENS = 20
"""An answer of fewer tokens has no fingerprints: there are not many ways to write it."""

LONGEST = 20_000
"""Characters of an answer that are looked at."""

_MOST_TOKENS = 4_000
_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<string>[A-Za-z]{0,2}(?:'''.*?(?:'''|\Z)|\"\"\".*?(?:\"\"\"|\Z)
        |'(?:[^'\\\n]|\\.)*+'?|\"(?:[^\"\\\n]|\\.)*+\"?))
    |(?P<number>0[xXoObB]\w+|(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?[jJ]?)
    |(?P<name>[^\W\d]\w*)
    |(?P<operator>\*\*=?|//=?|<<=?|>>=?|:=|->|[-+*/%@&|^=<>!]=?|[~.\[\]{}])""",
    re.DOTALL | re.VERBOSE,
)
_WORD = re.compile(r"\w+")
_KEPT_NAMES = frozenset(dir(builtins)) | frozenset(keyword.kwlist)


class Token(NamedTuple):
    """A token as it is compared, and its line, counted from 0; ``own`` for a name that may be another one."""

    text: str
    line: int
    own: bool = False


@lru_cache(maxsize=20_000)
def _code(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest())


_NAMES: Hashes = np.array([_code(f"\0name {back}") for back in range(RUN)], dtype=np.uint64)
_FACTOR = np.uint64(_code("\0factor") | 1)
_MIX = np.uint64(_code("\0mix") | 1)


def tokens(source: str) -> list[Token]:
    """The tokens of a piece of code; one that is no Python is cut by the same rules, as far as they go."""
    source = _plain(source)
    gone = _left_out(source)
    found: list[Token] = []
    after_dot, place, line, nearest = False, 0, 0, 0
    for match in _TOKEN.finditer(source):
        line += source.count("\n", place, match.start())
        place = match.start()
        while nearest < len(gone) and gone[nearest][1] <= place:
            nearest += 1
        left_out = nearest < len(gone) and gone[nearest][0] <= place
        if left_out or match.lastgroup == "comment" or match[0] == "->":
            continue
        found.append(_token(match, line, after_dot=after_dot))
        if len(found) == _MOST_TOKENS:
            break
        after_dot = match[0] == "."
    return found


def words(text: str) -> list[Token]:
    """The words of a written answer, in small letters."""
    found: list[Token] = []
    for number, line in enumerate(_plain(text).split("\n")):
        found += (Token(match[0].lower(), number) for match in _WORD.finditer(line))
    return found[:_MOST_TOKENS]


def _plain(source: str) -> str:
    return source[:LONGEST].replace("\r\n", "\n").replace("\r", "\n")


def _token(match: re.Match[str], line: int, *, after_dot: bool) -> Token:
    text, kind = match[0], match.lastgroup
    if kind == "name":
        return Token(text, line, own=not after_dot and text not in _KEPT_NAMES)
    if kind == "number":
        return Token(_number(text), line)
    if kind == "string":
        return Token("'" + text.lstrip("rRbBuUfF").strip("'\""), line)
    return Token(text, line)


def _number(text: str) -> str:
    """A number by its value, so that 1, 1.0 and 1e0 are the same."""
    try:
        return repr(float(text.replace("_", "")))
    except ValueError:
        return text.lower()


def _left_out(source: str) -> list[tuple[int, int]]:
    """Where docstrings and annotations stand, from first to last character; nothing where the code is no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    starts = _line_starts(source)
    found = []
    for part in _parts_left_out(tree):
        if part.end_lineno is None or part.end_col_offset is None:
            continue
        begin = _place(source, starts, part.lineno, part.col_offset)
        found.append((begin, _place(source, starts, part.end_lineno, part.end_col_offset)))
    return sorted(found)


def _parts_left_out(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.value
        elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns


def _line_starts(source: str) -> list[int]:
    starts = [0]
    for line in source.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _place(source: str, starts: list[int], line: int, column: int) -> int:
    """A place as a number of characters; columns count bytes."""
    start = starts[line - 1]
    text = source[start : starts[line]]
    return start + (column if text.isascii() else len(text.encode()[:column].decode(errors="ignore")))


def hashes(found: Sequence[Token]) -> Hashes:
    """The hashes of all runs of an answer, in order; none for a short one.

    A name counts by how far back in the run it stood before, so that other names give the same hash.
    """
    if len(found) < FEWEST_TOKENS:
        return np.empty(0, dtype=np.uint64)
    fixed = np.array([0 if token.own else _code(token.text) for token in found], dtype=np.uint64)
    back = np.array(_distances(found))
    count = len(found) - RUN + 1
    total = np.zeros(count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for offset in range(RUN):
            here = slice(offset, offset + count)
            # A name that stood before the run began is a new one to the run.
            names = _NAMES[np.where(back[here] <= offset, back[here], 0)]
            total = total * _FACTOR + np.where(back[here] < 0, fixed[here], names)
        # The smallest of a few hashes has to be any of them, so their bits are mixed.
        total ^= total >> np.uint64(32)
        total *= _MIX
        total ^= total >> np.uint64(29)
    return total


def _distances(found: Sequence[Token]) -> list[int]:
    """For each token how far back the same name stood, 0 where it did not, -1 for what is no name."""
    last: dict[str, int] = {}
    distances = []
    for place, token in enumerate(found):
        if not token.own:
            distances.append(-1)
            continue
        distances.append(place - last[token.text] if token.text in last else 0)
        last[token.text] = place
    return distances


def winnowed(values: Hashes) -> Hashes:
    """The hashes that winnowing keeps, in order of size: of each few neighbours the smallest."""
    if len(values) <= WINDOW:
        return np.unique(values[:1] if not len(values) else values.min(keepdims=True))
    return np.unique(sliding_window_view(values, WINDOW).min(axis=1))
