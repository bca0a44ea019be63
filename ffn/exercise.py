"""What the tests of the exercises use: the block that names a learner's mistake, and comparisons with a message.

    with testing("activations.relu"):
        check("ex4.relu_pos", relu(2.0))

Inside the block the course's own functions stand in for those of earlier steps. Where a visible test fails because of
a known misconception, the message says which; a known misconception fails the block even where no line of it does.
"""

import ast
import copy
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal

import numpy as np

from ffn.exceptions import StepFailedError
from ffn.misconceptions import Step, diagnose, find_step, same_value, stand_ins

__all__ = ["Trial", "agree", "testing"]

_MISSING = object()


class Trial:
    """The block around a step's tests; made by ``testing``."""

    def __init__(self, name: str, namespace: dict[str, Any], *, hidden: bool) -> None:
        self._name = name
        self._step: Step = find_step(name)
        self._stand_ins = stand_ins(name)
        self._namespace = namespace
        self._hidden = hidden
        self._kept: dict[str, Any] = {}

    def __enter__(self) -> "Trial":
        """Let the course's own functions stand in for those of earlier steps."""
        missing = [name for name in self._step.own if name not in self._namespace]
        if missing:
            raise StepFailedError.not_defined(missing[0])
        # A grader that runs the learner's code elsewhere lets the stand-ins in there too.
        self._elsewhere = getattr(self._namespace, "stand_in", None)
        if self._elsewhere is not None:
            self._elsewhere(self._name, self._stand_ins)
        else:
            self._kept = {name: self._namespace.get(name, _MISSING) for name in self._stand_ins}
            self._namespace.update(self._stand_ins)
        # A warning goes to stderr, for which nbgrader takes the marks without a word.
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.simplefilter("ignore")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the learner's functions back, and say what is wrong: the mistake by name if it is a known one."""
        try:
            if isinstance(error, NotImplementedError) and (stub := self._stub(error, trace)):
                raise StepFailedError.not_written(stub) from None
            if self._hidden or (error is not None and not isinstance(error, Exception)):
                return
            found = diagnose(self._step, self._namespace)
            if found is not None:
                raise StepFailedError.known(self._said(error, trace), found.hint, found.page) from None
            if isinstance(error, AssertionError):
                raise StepFailedError.unknown(_line(trace), str(error)) from None
        finally:
            self._restore()

    def _stub(self, error: NotImplementedError, trace: TracebackType | None) -> str:
        """The function that is not written yet, or "" where the error is one of a library.

        It is the last of the step's functions on the way to a line of the notebook that raised the error.
        """
        frames = [frame for frame, _ in traceback.walk_tb(trace)]
        names = [frame.f_code.co_name for frame in frames]
        last = next((name for name in reversed(names) if name in self._step.own), "")
        if frames and frames[-1].f_globals is self._namespace:
            return last or names[-1]
        # Where the learner's code runs elsewhere, the way to the stub is not seen, only that its error has no text.
        unseen = bool(getattr(error, "__notes__", [])) and not str(error)
        return (last or " or ".join(self._step.own)) if unseen else ""

    def _said(self, error: BaseException | None, trace: TracebackType | None) -> str:
        if error is None:
            return "The lines of this test agree, but there is a case that does not."
        if isinstance(error, AssertionError):
            return str(error)
        frames = list(traceback.walk_tb(trace))
        test = frames[0][0].f_code.co_filename if frames else ""
        # The learner's own line: the last one on the way that stands in another cell of the notebook.
        own = [line for f, line in frames if f.f_globals is self._namespace and f.f_code.co_filename != test]
        notes = getattr(error, "__notes__", [])
        if not own and notes:
            return f"Your code raises {type(error).__name__}: {error} ({notes[0]})."
        if not own:
            return f"The test stops with {type(error).__name__}: {error}."
        return f"Your code raises {type(error).__name__}: {error} (line {own[-1]} of its cell)."

    def _restore(self) -> None:
        self._warnings.__exit__(None, None, None)
        if self._elsewhere is not None:
            self._namespace.stand_back()  # type: ignore[attr-defined]
        for name, value in self._kept.items():
            if value is _MISSING:
                self._namespace.pop(name, None)
            else:
                self._namespace[name] = value


def _line(trace: TracebackType | None) -> str:
    """The statement of the test that failed, without its message, or "" where it only repeats the message."""
    if trace is None:
        return ""
    lines = linecache.getlines(trace.tb_frame.f_code.co_filename, trace.tb_frame.f_globals)
    source, number = "".join(lines), trace.tb_lineno
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        nodes = []
    around = [n for n in nodes if isinstance(n, ast.stmt) and n.lineno <= number <= (n.end_lineno or 0)]
    found = around[-1] if around else None
    if isinstance(found, ast.Raise):
        return ""
    if isinstance(found, ast.Assert):
        return " ".join(f"assert {ast.get_source_segment(source, found.test)}".split())
    if found is None or hasattr(found, "body"):
        return lines[number - 1].strip() if number <= len(lines) else ""
    return " ".join((ast.get_source_segment(source, found) or "").split())


def testing(name: str, *, hidden: bool = False) -> Trial:
    """The block around the tests of a step, named by unit and grade id, such as "activations.relu".

    It works on the functions of the notebook that calls it. With ``hidden=True`` no hint is looked for. Warnings inside
    the block are not shown.

    Raises:
        UnknownStepError: there is no such step.
    """
    return Trial(name, sys._getframe(1).f_globals, hidden=hidden)


def agree(
    function: Callable[..., Any],
    right: Callable[..., Any],
    *arguments: Any,
    rtol: float = 1e-9,
    atol: float = 1e-12,
    strict: bool = False,
    on: str = "other input",
) -> None:
    """Assert that a learner's function gives what the right one gives, and leaves its arguments as they were.

    ``atol`` is relative to the largest number of an array; ``on`` says in the message what kind of input it was;
    with ``strict`` an overflow or an undefined operation inside the function fails too.

    Raises:
        AssertionError: with a message that names the function and what is wrong.
    """
    name = getattr(function, "__name__", "the function")
    expected = right(*copy.deepcopy(arguments))
    given = copy.deepcopy(arguments)
    reaction: Literal["raise", "ignore"] = "raise" if strict else "ignore"
    try:
        with np.errstate(over=reaction, divide=reaction, invalid=reaction):
            value = function(*given)
    except (FloatingPointError, OverflowError):
        raise AssertionError(f"{name} overflows, or computes an undefined value, on {on}.") from None
    assert same_value(given, arguments), f"{name} changes the arguments that it is given; work on a copy."
    assert value is not None or expected is None, (
        f"{name} returns nothing on {on}; give the result back with return."
    )
    _require_shape(name, value, expected, on)
    assert same_value(value, expected, rtol, atol), f"{name} is wrong on {on}."


def _require_shape(name: str, value: Any, expected: Any, on: str) -> None:
    if isinstance(expected, Mapping):
        assert isinstance(value, Mapping) and set(value) == set(expected), (
            f"{name} should return a dictionary with the keys {', '.join(map(str, expected))}."
        )
        return
    wanted, shape = _shape(expected), _shape(value)
    if isinstance(expected, tuple) or wanted is None:
        length = len(value) if isinstance(value, tuple | list) else shape[0] if shape else None
        assert length == len(expected), f"{name} should return {len(expected)} values."
        return
    assert shape is not None, f"{name} returns rows of different lengths, or what is no array, on {on}."
    assert shape == wanted, f"{name} returns shape {shape} on {on}, and should return {wanted}."


def _shape(value: Any) -> tuple[int, ...] | None:
    """The shape of an array or nested list, or None where it has none."""
    try:
        shape: tuple[int, ...] = np.shape(value)
    except Exception:
        return None
    return shape
