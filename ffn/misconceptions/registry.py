"""What a unit's steps ask for, the known wrong ways to do them, and how a learner's function is told from them.

A misconception is a small wrong implementation with a hint. A function shows it where its outcomes equal those of the
wrong implementation on all probes of the step, and differ from the right ones on at least one.
"""

import contextlib
import copy
import io
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Misconception", "Outcome", "Probe", "Step", "diagnose", "outcome", "same_value"]

Function = Callable[..., Any]


@dataclass(frozen=True)
class Misconception:
    """One wrong way to do a step.

    ``name`` is unique within the step. ``wrong`` holds the wrong implementation of one or several of the step's
    functions by name. ``hint`` says in one or two sentences what was done, never the code of the answer; ``page``
    is the place in the book that treats it, as page and anchor.
    """

    name: str
    wrong: Mapping[str, Function]
    hint: str
    page: str


@dataclass(frozen=True)
class Probe:
    """One call that tells right from wrong: the name of a function of the step, and its arguments."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class Step:
    """One graded step of a unit.

    ``name`` is the grade id of its answer cell. ``own`` holds the course's own implementation of each function that
    the step asks for, by name. ``uses`` names functions of earlier steps that an answer may call: while the step is
    tested the course's own stand in for them, so that an earlier mistake does not cost this step.
    """

    name: str
    own: Mapping[str, Function]
    probes: tuple[Probe, ...]
    misconceptions: tuple[Misconception, ...]
    uses: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a call did: the value it returned or the name of the exception, and whether it changed its arguments."""

    value: Any = None
    error: str = ""
    changed: bool = False

    def equals(self, other: "Outcome") -> bool:
        """Whether both calls did the same, values up to rounding."""
        if self.error or other.error:
            return self.error == other.error and self.changed == other.changed
        return self.changed == other.changed and same_value(self.value, other.value)


def outcome(function: Function, arguments: Sequence[Any]) -> Outcome:
    """Call a function on copies of the arguments; overflow and undefined operations count as exceptions."""
    given = copy.deepcopy(tuple(arguments))
    with np.errstate(over="raise", divide="raise", invalid="raise"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = function(*given)
        except Exception as error:
            value = error
    return _outcome(value, given, arguments)


def same_value(first: Any, second: Any, rtol: float = 1e-9, atol: float = 1e-12) -> bool:
    """Whether two values agree up to rounding: numbers, arrays, and tuples, lists and dictionaries of them.

    ``atol`` is relative to the largest number of an array. Whole numbers agree exactly. Truth values and numbers
    differ, as do other shapes; a list or tuple of numbers is the same as an array of them.
    """
    try:
        return _same(first, second, rtol, atol)
    except Exception:
        return False


def _same(first: Any, second: Any, rtol: float, atol: float) -> bool:
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        alike = isinstance(first, Mapping) and isinstance(second, Mapping) and set(first) == set(second)
        return alike and all(_same(first[key], second[key], rtol, atol) for key in first)
    if _are_sequences(first, second) and (_has_parts(first) or _has_parts(second)):
        return _same_parts(first, second, rtol, atol)
    a, b = _numbers(first), _numbers(second)
    if a is not None and b is not None:
        return _same_numbers(a, b, rtol, atol)
    if a is not None or b is not None:
        return False
    first, second = _listed(first), _listed(second)
    if _are_sequences(first, second):
        return _same_parts(first, second, rtol, atol)
    alike = type(first) is type(second) or (isinstance(first, str) and isinstance(second, str))
    return alike and (first is second or bool(first == second))


def _same_parts(first: Sequence[Any], second: Sequence[Any], rtol: float, atol: float) -> bool:
    return len(first) == len(second) and all(_same(x, y, rtol, atol) for x, y in zip(first, second, strict=True))


def _are_sequences(*values: Any) -> bool:
    return all(isinstance(value, list | tuple) for value in values)


_KINDS = (Mapping, bool, np.bool_, str, type(None))


def _has_parts(values: Sequence[Any]) -> bool:
    """Whether a list or tuple holds values of their own size or kind, and is not simply an array written as a list."""
    return any(isinstance(value, _KINDS) or (isinstance(value, np.ndarray) and value.ndim) for value in values)


def _listed(value: Any) -> Any:
    """An array of anything but numbers as a list."""
    return value.tolist() if isinstance(value, np.ndarray) else value


def _numbers(value: Any) -> "np.ndarray[Any, Any] | None":
    """The value as an array of numbers or truth values, or None."""
    try:
        array = np.asarray(value)
    except Exception:
        return None
    return array if array.dtype.kind in "biuf" else None


def _same_numbers(a: "np.ndarray[Any, Any]", b: "np.ndarray[Any, Any]", rtol: float, atol: float) -> bool:
    if a.shape != b.shape or (a.dtype.kind == "b") != (b.dtype.kind == "b"):
        return False
    equal = a == b
    if equal.all():
        return True
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(b)
    with np.errstate(all="ignore"):
        size = np.abs(b[finite]).max(initial=0.0)
        close = finite & (np.abs(a - b) <= rtol * np.abs(b) + atol * size)
    return bool(np.all(equal | close | (np.isnan(a) & np.isnan(b))))


def diagnose(step: Step, namespace: Mapping[str, Any]) -> Misconception | None:
    """The misconception that a learner's functions show, if there is one; None for right ones and for unknown faults.

    ``namespace`` holds the learner's functions by name; what they print is not shown.
    """
    functions = {name: namespace[name] for name in step.own if callable(namespace.get(name))}
    with contextlib.redirect_stdout(io.StringIO()):
        seen = {name: _outcomes(step, name, function) for name, function in functions.items()}
    faulty = {name for name in functions if not _shows(step, name, seen[name], step.own[name])}
    for candidate in step.misconceptions:
        names = set(candidate.wrong)
        if (
            names <= functions.keys()
            and names & faulty
            and all(_shows(step, name, seen[name], wrong) for name, wrong in candidate.wrong.items())
        ):
            return candidate
    return None


def _outcomes(step: Step, name: str, function: Function) -> list[Outcome]:
    """What a function does on the probes that call it."""
    calls = [probe.arguments for probe in step.probes if probe.function == name]
    # A grader that runs the learner's code elsewhere makes all of the calls in one go.
    at_once = getattr(type(function), "_call_each", None)
    if at_once is None:
        return [outcome(function, arguments) for arguments in calls]
    given = [copy.deepcopy(tuple(arguments)) for arguments in calls]
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        values = at_once(function, given)
    return [_outcome(*parts) for parts in zip(values, given, calls, strict=True)]


def _outcome(value: Any, given: tuple[Any, ...], before: Sequence[Any]) -> Outcome:
    changed = not same_value(given, tuple(before))
    if isinstance(value, Exception):
        return Outcome(error=type(value).__name__, changed=changed)
    return Outcome(value=value, changed=changed)


def _shows(step: Step, name: str, seen: Sequence[Outcome], function: Function) -> bool:
    """Whether a function does what was seen, probe by probe up to the first difference."""
    probes = [probe for probe in step.probes if probe.function == name]
    return all(one.equals(_known(probe, function)) for probe, one in zip(probes, seen, strict=True))


# By identity: a probe's arguments have no hash. The probe is kept, so that no other one comes to be in its place.
_outcomes_known: dict[tuple[int, Function], tuple[Probe, Outcome]] = {}


def _known(probe: Probe, function: Function) -> Outcome:
    """What an implementation of the course's, right or wrong, does on a probe; the same every time."""
    key = id(probe), function
    if key not in _outcomes_known:
        _outcomes_known[key] = probe, outcome(function, probe.arguments)
    return _outcomes_known[key][1]
