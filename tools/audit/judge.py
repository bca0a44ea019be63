"""Put every misconception, every alternative and every mutant in place of its step, and see what the tests say."""

import copy
import random
import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import FrameType
from typing import Any

import numpy as np

from ffn.misconceptions import Misconception, Outcome, Step, find_step, outcome, unit_steps
from tools.audit.mutants import Mutant, mutants
from tools.audit.notebook import Unit, compiled, in_folder, run, unit

__all__ = [
    "Trial",
    "alternatives",
    "battery",
    "judge_alternative",
    "judge_misconception",
    "judge_mutant",
    "survivors",
    "value_changing",
]

SECONDS = 20
"""How long a mutant may run: loops of some do not end."""

Call = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Trial:
    """A misconception in place of its step: what became of the marks, and whose hint showed.

    ``rejected``: all marks of the step are lost and no others. ``hints`` names the misconceptions whose hint shows in
    any test cell of the unit, those of other steps as step and name. ``kept`` are the step's test cells that pass,
    ``others_lost`` those of other steps that fail, with their messages.
    """

    rejected: bool
    hints: tuple[str, ...]
    kept: tuple[str, ...]
    others_lost: tuple[str, ...]
    message: str


def judge_misconception(name: str, step: Step, candidate: Misconception) -> Trial:
    """Run a unit's notebook with a misconception in place of its step."""
    results = run(unit(name), step.name, candidate.wrong)
    own = [result for result in results if result.step == step.name]
    message = next((result.message for result in own if result.message), "")
    said = "\n".join(result.message for result in results)
    hints = tuple(
        known.name if other.name == step.name else f"{other.name} {known.name}"
        for other in unit_steps(name)
        for known in other.misconceptions
        if known.hint in said
    )
    kept = tuple(result.ident for result in own if not result.message)
    lost = tuple(f"{r.ident}: {r.message}" for r in results if r.message and r.step != step.name)
    return Trial(bool(own) and not kept and not lost, hints, kept, lost, message)


@cache
def alternatives(name: str) -> Mapping[str, list[Any]]:
    """Right answers written differently: for each function of a unit a list of implementations."""
    found: Mapping[str, list[Any]] = _module(name).ALTERNATIVES
    return found


def judge_alternative(name: str, step: Step, function: str, implementation: Any) -> list[str]:
    """Messages of the step's test cells that a right answer does not pass; empty where it gets full marks."""
    results = run(unit(name), step.name, {function: implementation}, only_step=True)
    return [f"{result.ident}: {result.message}" for result in results if result.message]


def judge_mutant(name: str, step: str, mutant: Mutant) -> bool:
    """Whether marks are lost with a mutant in place of a step's answer."""
    try:
        with _limited():
            return any(result.message for result in run(unit(name), step, source=mutant.source, only_step=True))
    except (Exception, _TimeUpError):
        # The mutant fails before any test runs, or does not end: the step's cells fail with it.
        return True


def value_changing(name: str, step: str) -> list[Mutant]:
    """The mutants of a step's answer with which a function of the step returns something else somewhere."""
    book = unit(name)
    calls = list(battery(find_step(f"{name}.{step}")))
    right = _outcomes(book, step, book.answers[step], calls)
    found = []
    for mutant in mutants(book.answers[step]):
        try:
            with _limited():
                seen = _outcomes(book, step, mutant.source, calls)
        except (Exception, _TimeUpError):
            found.append(mutant)
            continue
        if any(not b.error and not a.equals(b) for a, b in zip(seen, right, strict=True)):
            found.append(mutant)
    return found


def survivors(name: str) -> Mapping[str, str]:
    """Why mutants of a unit survive: reasons by "step: change", from SURVIVORS of its module of alternatives."""
    reasons: Mapping[str, str] = _module(name).SURVIVORS
    return reasons


def _module(name: str) -> Any:
    return import_module(f"tools.audit.alternatives.{name.replace('-', '_')}")


def _outcomes(book: Unit, step: str, source: str, calls: list[Call]) -> list[Outcome]:
    """What the functions of an answer do; it finds set-up and reference answers of the steps before it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with in_folder(book), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cell in book.cells:
            if cell.ident == step:
                break
            if cell.points is None:
                exec(compiled(book.name, cell.ident, cell.source), names)
        exec(compiled(book.name, step, source), names)
        return [outcome(names[function], arguments) for function, arguments in calls]


def battery(step: Step) -> Iterator[Call]:
    """The probes of a step, and six varied copies of each."""
    rng = random.Random(step.name)
    for probe in step.probes:
        yield probe.function, probe.arguments
        for _ in range(6):
            yield probe.function, tuple(_vary(argument, rng) for argument in copy.deepcopy(probe.arguments))


def _vary(value: Any, rng: random.Random) -> Any:
    """Another value of the same kind and shape: numbers differ, whole ones only upwards from 1 on."""
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, int):
        return value + rng.choice((0, 1, 2, 5)) if value > 0 else value
    if isinstance(value, float):
        return value * rng.uniform(0.5, 1.5) + rng.uniform(-0.1, 0.1)
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        noise = np.random.default_rng(rng.randrange(2**32))
        varied = value * noise.uniform(0.5, 1.5, value.shape) + noise.uniform(-0.1, 0.1, value.shape)
        return np.asarray(varied, dtype=value.dtype)
    if isinstance(value, list):
        return [_vary(item, rng) for item in value]
    if isinstance(value, tuple):
        return tuple(_vary(item, rng) for item in value)
    if isinstance(value, dict):
        return {key: _vary(item, rng) for key, item in value.items()}
    return value


class _TimeUpError(BaseException):
    """No exception that a test, or a mutant, might catch."""


@contextmanager
def _limited() -> Iterator[None]:
    """Give up on code that does not end."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _TimeUpError(f"ran longer than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
