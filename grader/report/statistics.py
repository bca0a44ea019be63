"""How a class did: the distribution of its scores, and what each step tells about those who did it.

The difficulty of a step is the mean share of its points. Its discrimination is the correlation between its points and
the points of all other steps (the corrected item-total correlation; for a step that gives all or nothing it is the
point-biserial one), so that a step is not compared with itself.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from grader.report.data import HIDDEN, VISIBLE, Class, Graded, Step, Test

__all__ = [
    "FEWEST",
    "LOW",
    "Bin",
    "CellStatistics",
    "Discrimination",
    "Distribution",
    "Slow",
    "StepStatistics",
    "cell_statistics",
    "correlation",
    "discrimination",
    "distribution",
    "interval",
    "slowest",
    "step_statistics",
]

FEWEST = 10
"""Learners from which a correlation is given."""

LOW = 0.2
"""A discrimination below this calls for a look at the step's tests."""

OWN_CELLS = "learners' own cells"
WHOLE = "whole submission"

_FEW = 5
_MOST_BINS = 20
_WIDTHS = (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10, 20, 25, 50, 100)

Numbers = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Bin:
    """How many scores are from ``low`` up to ``high``, which belongs to the next one except at the end."""

    low: float
    high: float
    count: int


@dataclass(frozen=True)
class Distribution:
    """The scores of a class; ``deviation`` is that of a sample, None for one score."""

    count: int
    most: float
    lowest: float
    first_quartile: float
    median: float
    third_quartile: float
    highest: float
    mean: float
    deviation: float | None
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class Discrimination:
    """A step's correlation with the rest of the score and its 95 % interval, or why there is none."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class CellStatistics:
    """How many have full, some and no points of a graded cell; ``waiting`` have no points from a person yet."""

    name: str
    kind: str
    points: float
    full: int
    partial: int
    none: int
    waiting: int
    mean: float | None
    remark: str = ""


@dataclass(frozen=True)
class StepStatistics:
    """How the class did in a step; ``mean`` is the mean share of its points, None where nobody has points yet."""

    name: str
    title: str
    points: float
    full: int
    partial: int
    none: int
    waiting: int
    mean: float | None
    discrimination: Discrimination
    tests: tuple[CellStatistics, ...]
    remarks: tuple[str, ...]

    @property
    def count(self) -> int:
        """Learners with points, none included."""
        return self.full + self.partial + self.none


@dataclass(frozen=True)
class Slow:
    """A cell's seconds over the learners for whom it ran, and the learner for whom it took longest."""

    cell: str
    count: int
    median: float
    longest: float
    learner: str


def distribution(scores: Sequence[float], most: float) -> Distribution:
    """The distribution of at least one score; ``most`` is what can be reached without extra credit."""
    values = np.array(scores, float)
    lowest, first, median, third, highest = np.percentile(values, [0, 25, 50, 75, 100]).tolist()
    return Distribution(
        count=len(values),
        most=most,
        lowest=lowest,
        first_quartile=first,
        median=median,
        third_quartile=third,
        highest=highest,
        mean=float(values.mean()),
        deviation=float(values.std(ddof=1)) if len(values) > 1 else None,
        bins=_bins(values, most),
    )


def _bins(values: Numbers, most: float) -> tuple[Bin, ...]:
    start = min(0.0, float(values.min()))
    end = max(most, float(values.max()), start + 1)
    width = next((width for width in _WIDTHS if (end - start) / width <= _MOST_BINS), (end - start) / _MOST_BINS)
    start = min(start, math.floor(start / width) * width)
    number = max(1, math.ceil((end - start) / width - 1e-9))
    # Rounding must leave no score outside of the last bin.
    edges = [*(start + width * place for place in range(number)), max(end, start + width * number)]
    counts, _ = np.histogram(values, edges)
    return tuple(Bin(low, high, int(count)) for low, high, count in zip(edges, edges[1:], counts, strict=False))


# ------------------------------------------------------------------------------------------------------- steps


def step_statistics(found: Class) -> tuple[StepStatistics, ...]:
    """Statistics of every step, over the submissions in which there was something to run."""
    graded = [one for one in found.graded if one.record.ran]
    points = np.array([[_of_step(one, step) for step in found.steps] for one in graded], float)
    points = points.reshape(len(graded), len(found.steps))
    whole = ~np.isnan(points).any(axis=0)
    total = points[:, whole].sum(axis=1)
    return tuple(
        _of_one_step(step, graded, points[:, place], total if whole[place] else None)
        for place, step in enumerate(found.steps)
    )


def _of_step(one: Graded, step: Step) -> float:
    """Points of a step; not a number where a part of it waits for a person."""
    marks = [one.marks[test.name] for test in step.tests]
    return math.nan if None in marks else sum(mark or 0.0 for mark in marks)


def _of_one_step(step: Step, graded: Sequence[Graded], points: Numbers, total: Numbers | None) -> StepStatistics:
    tests = tuple(cell_statistics(test, [one.marks[test.name] for one in graded]) for test in step.tests)
    full, partial, none, waiting, mean = _counts(points, step.points)
    waits = Discrimination(reason="answers wait for a person")
    found = waits if total is None else discrimination(points, total)
    remarks = [f"{test.name}: {test.remark}" for test in tests if test.remark]
    remarks += _between(step, graded)
    if found.value is not None and found.value < LOW:
        remarks.append(_low(found.value))
    if step.points and full == len(points) >= _FEW:
        remarks.append("Everybody has full points, so this step tells nobody apart.")
    return StepStatistics(
        step.name, step.title, step.points, full, partial, none, waiting, mean, found, tests, tuple(remarks)
    )


def _low(value: float) -> str:
    who = "do worse here" if value < 0 else "do hardly better here"
    return (
        f"Those with more points elsewhere {who} than the others (discrimination {value:.2f}): look at this test."
    )


def _between(step: Step, graded: Sequence[Graded]) -> list[str]:
    """What to look at where most who pass the visible tests of a step fail the hidden ones."""
    visible = [test for test in step.tests if test.kind == VISIBLE]
    hidden = [test for test in step.tests if test.kind == HIDDEN]
    if not visible or not hidden:
        return []
    passed = [one for one in graded if all(_full(one, test) for test in visible)]
    failed = sum(not all(_full(one, test) for test in hidden) for one in passed)
    if len(passed) < _FEW or failed * 2 < len(passed):
        return []
    return [f"{failed} of {len(passed)} who pass the visible test fail the hidden one: look at this test."]


def _full(one: Graded, test: Test) -> bool:
    return (one.marks[test.name] or 0.0) >= test.points - 1e-9


def cell_statistics(test: Test, marks: Iterable[float | None]) -> CellStatistics:
    """Statistics of one graded cell."""
    points = np.array([math.nan if mark is None else mark for mark in marks], float)
    full, partial, none, waiting, mean = _counts(points, test.points)
    remark = ""
    if test.points and none == len(points) >= _FEW:
        remark = "Nobody has points: look at this test."
    elif test.points and not full and partial and partial + none >= _FEW:
        remark = "Nobody has full points: look at this test."
    return CellStatistics(test.name, test.kind, test.points, full, partial, none, waiting, mean, remark)


def _counts(points: Numbers, most: float) -> tuple[int, int, int, int, float | None]:
    """How many have full, some and no points, how many wait, and the mean share."""
    known = points[~np.isnan(points)]
    full = int((known >= most - 1e-9).sum()) if most else 0
    none = int((known <= 1e-9).sum())
    mean = float(known.mean()) / most if len(known) and most else None
    return full, max(0, len(known) - full - none), none, len(points) - len(known), mean


# ---------------------------------------------------------------------------------------------- discrimination


def discrimination(points: Numbers, total: Numbers) -> Discrimination:
    """The correlation of a step's points with the rest of the total, or why there is none to give."""
    rest = total - points
    if len(points) < FEWEST:
        return Discrimination(reason=f"fewer than {FEWEST} learners")
    if np.ptp(points) < 1e-9:
        return Discrimination(reason="all have the same points here")
    if np.ptp(rest) < 1e-9:
        return Discrimination(reason="all have the same points elsewhere")
    value = correlation(points, rest)
    return Discrimination(value, *interval(value, len(points)))


def correlation(first: Numbers, second: Numbers) -> float:
    """Pearson's correlation of two series that both vary."""
    a, b = first - first.mean(), second - second.mean()
    value = float((a * b).sum() / math.sqrt(float((a * a).sum()) * float((b * b).sum())))
    return max(-1.0, min(1.0, value))


def interval(value: float, count: int) -> tuple[float, float]:
    """The 95 % interval of a correlation of so many pairs, more than 3, by Fisher's transformation."""
    if abs(value) > 1 - 1e-12:
        return value, value
    centre, half = math.atanh(value), 1.959963984540054 / math.sqrt(count - 3)
    return math.tanh(centre - half), math.tanh(centre + half)


# ------------------------------------------------------------------------------------------------------ seconds


def slowest(seconds: Mapping[str, Mapping[str, float]]) -> tuple[Slow, ...]:
    """Seconds of each cell over the learners, the longest first; a learner's own cells count together.

    ``seconds`` are those of the cells by learner.
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for learner, cells in seconds.items():
        if not cells:
            continue
        found.setdefault(WHOLE, []).append((sum(cells.values()), learner))
        own: list[float] = []
        for cell, value in cells.items():
            if cell.startswith("cell "):
                own.append(value)
            else:
                found.setdefault(cell, []).append((value, learner))
        if own:
            found.setdefault(OWN_CELLS, []).append((max(own), learner))
    return tuple(sorted((_slow(cell, values) for cell, values in found.items()), key=_slowest_first))


def _slowest_first(slow: Slow) -> tuple[float, bool, str]:
    return -slow.longest, slow.cell != WHOLE, slow.cell


def _slow(cell: str, values: Sequence[tuple[float, str]]) -> Slow:
    longest, learner = max(values, key=lambda value: (value[0], value[1]))
    return Slow(cell, len(values), float(np.median([value for value, _ in values])), longest, learner)
