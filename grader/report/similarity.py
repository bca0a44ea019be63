"""Pairs of submissions that agree in what few others have: a list to look at, never a verdict.

What stands in the exercise as it is given out and in the reference answer is left out, and so are short answers, and
those that more than ``COMMON`` of the class have. What two of the remaining answers to a step have in common counts by
the share of these answers that have all of it: 1 for a half, 2 for a quarter, 3 for an eighth. A pair's number is the
sum over the steps.

How high such numbers are by chance depends on the class and the unit. So the class itself is the yardstick: these
answers are shuffled between those who have one, step by step, which leaves each as common as it was and breaks up every
copy. A pair is listed from ``MARGIN`` above the highest number that the shuffled classes have.
"""

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from grader.report.fingerprints import RUN, Hashes, hashes, tokens, winnowed, words

__all__ = ["COMMON", "FEWEST", "LISTED", "MARGIN", "Common", "Comparison", "Pair", "Template", "compare"]

FEWEST = 6
"""Submissions from which there is something to compare with."""

COMMON = 0.25
"""Answers with the same form that more than this share of the class have, and more than a few, are common ones."""

LISTED = 25
"""Pairs that are listed at most."""

MARGIN = 3.0
"""How far a pair's number is above all of the shuffled classes: what they share is eight times as rare."""

_A_FEW = 3
_WHOLE = 6
_SHUFFLES = 4
_SHUFFLES_OF_FEW = 10
_CHAIN = 3
_MOST_COMBINED = 2_000_000
_MOST_WEIGHED = 5_000

Answers = Mapping[str, str]
Numbers = np.ndarray[Any, np.dtype[np.int64]]
Weights = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Template:
    """What everybody may have in common: each answer as it is given out, and the reference's; ``prose`` are written."""

    given: Answers
    reference: Answers
    prose: Collection[str] = ()


@dataclass(frozen=True)
class Common:
    """What two answers to a step have in common: its part of the number, and the lines of each, counted from 0."""

    step: str
    number: float
    first_lines: frozenset[int]
    second_lines: frozenset[int]


@dataclass(frozen=True)
class Pair:
    """Two learners, the number of what they have in common, and the steps it comes from, the most telling first."""

    first: str
    second: str
    number: float
    steps: tuple[Common, ...]


@dataclass(frozen=True)
class Comparison:
    """The pairs to look at, highest number first; ``by_chance`` is the highest of a shuffled class.

    ``found`` counts the pairs above the threshold, those that are not listed included.
    """

    pairs: tuple[Pair, ...]
    compared: int
    by_chance: float
    threshold: float
    found: int


@dataclass
class _Step:
    """The answers to one step: every form once, who has which (-1 for none that counts), and which has which hash."""

    name: str
    prose: bool
    given: Hashes
    reference: Hashes
    forms: list[frozenset[int]] = field(default_factory=list)
    form_of: list[int] = field(default_factory=list)
    having: dict[int, list[int]] = field(default_factory=dict)
    count: list[int] = field(default_factory=list)
    whole: int = 0
    _known: dict[frozenset[int], float] = field(default_factory=dict)

    def fill(self, sources: Sequence[str]) -> None:
        """Take in everybody's answers."""
        known = np.concatenate([self.given, self.reference])
        of_source: dict[str, int] = {}
        of_form: dict[frozenset[int], int] = {}
        for source in sources:
            if source not in of_source:
                found = frozenset(np.setdiff1d(winnowed(self.hashes(source)), known).tolist())
                of_source[source] = of_form.setdefault(found, len(of_form)) if found else -1
            self.form_of.append(of_source[source])
        self.forms = list(of_form)
        counts = np.bincount(np.array([form for form in self.form_of if form >= 0], int), minlength=len(of_form))
        common = set(np.flatnonzero(counts > max(_A_FEW, COMMON * len(sources))).tolist())
        self.form_of = [-1 if form in common else form for form in self.form_of]
        self.count = [0 if form in common else count for form, count in enumerate(counts.tolist())]
        self.whole = sum(self.count)
        for form, values in enumerate(self.forms):
            for value in values if self.count[form] else ():
                self.having.setdefault(value, []).append(form)

    def shuffled(self, chance: random.Random) -> list[int]:
        """The forms, given to others of those who have one."""
        own = [form for form in self.form_of if form >= 0]
        chance.shuffle(own)
        left = iter(own)
        return [next(left) if form >= 0 else -1 for form in self.form_of]

    def hashes(self, source: str) -> Hashes:
        """The hashes of an answer to this step."""
        return hashes(self.tokens(source))

    def tokens(self, source: str) -> Any:
        """The tokens of an answer to this step."""
        return words(source) if self.prose else tokens(source)

    def rarity(self, first: int, second: int) -> float:
        """The number of what two forms have in common."""
        if first < 0 or second < 0:
            return 0.0
        both = self.forms[first] & self.forms[second]
        if not both:
            return 0.0
        if both not in self._known:
            fewest = min((self.having[value] for value in both), key=len)
            owners = sum(self.count[form] for form in fewest if both <= self.forms[form])
            # A passage of a line or so is less than an answer.
            self._known[both] = float(np.log2(self.whole / owners)) * min(1.0, len(both) / _WHOLE)
        return self._known[both]


def compare(answers: Mapping[str, Answers], template: Template, listed: int = LISTED) -> Comparison:
    """Compare the answers of all learners, by learner and step."""
    learners = sorted(answers)
    if len(learners) < FEWEST:
        return Comparison((), len(learners), 0.0, MARGIN, 0)
    steps = _steps([answers[learner] for learner in learners], template)
    chance = random.Random(len(learners))
    # The highest number of a small class differs more from one shuffle to the next.
    times = _SHUFFLES_OF_FEW if _are_few(len(learners)) else _SHUFFLES
    shuffled = [[step.shuffled(chance) for step in steps] for _ in range(times)]
    by_chance = max(number for forms in shuffled for number, _ in _highest(steps, forms, 0.0, most=1))
    threshold = by_chance + MARGIN
    found = _highest(steps, [step.form_of for step in steps], threshold)
    shown = tuple(_pair(steps, answers, learners, *places) for _, places in found[: max(0, listed)])
    return Comparison(shown, len(learners), by_chance, threshold, len(found))


def _steps(answers: Sequence[Answers], template: Template) -> list[_Step]:
    made = []
    for name in sorted({step for answer in answers for step in answer}):
        prose = name in template.prose
        cut = words if prose else tokens
        given, reference = (hashes(cut(text.get(name, ""))) for text in (template.given, template.reference))
        step = _Step(name, prose, given, reference)
        step.fill([answer.get(name, "") for answer in answers])
        made.append(step)
    return made


def _highest(
    steps: Sequence[_Step], forms: Sequence[Sequence[int]], least: float, most: int | None = None
) -> list[tuple[float, tuple[int, int]]]:
    """The pairs from a number upward, highest first: the number, and the places of both."""
    count = len(forms[0]) if forms else 0
    found = [(0.0, (0, 0))] if most else []
    for key in _candidates(steps, forms, count).tolist():
        first, second = divmod(key, count)
        number = sum(step.rarity(of[first], of[second]) for step, of in zip(steps, forms, strict=True))
        if number >= least:
            found.append((number, (first, second)))
    return sorted(found, key=lambda one: (-one[0], one[1]))[:most]


# -------------------------------------------------------------------------------------------------- candidates


def _candidates(steps: Sequence[_Step], forms: Sequence[Sequence[int]], count: int) -> Numbers:
    """Pairs that may have a high number, as first * count + second; in a small class all of them.

    In a large one they are those that share what few have: passages, or the forms of neighbouring answers, which are
    rare together where each is common.
    """
    if _are_few(count):
        first, second = np.triu_indices(count, 1)
        return first * count + second
    table = np.array(forms)
    things, owners, weights = _passages(steps, table)
    chains, of_chains, weight = _chains(table)
    things, owners = np.concatenate([things, chains + len(weights)]), np.concatenate([owners, of_chains])
    keys, sums = _combined(things, owners, np.concatenate([weights, weight]), count)
    if len(keys) <= _MOST_WEIGHED:
        return keys
    return keys[np.argpartition(sums, -_MOST_WEIGHED)[-_MOST_WEIGHED:]]


def _are_few(count: int) -> bool:
    """Whether all pairs of so many learners can be weighed."""
    return count * (count - 1) // 2 <= _MOST_WEIGHED


def _passages(steps: Sequence[_Step], table: Numbers) -> tuple[Numbers, Numbers, Weights]:
    """Passages as numbers, the places of those who have them, and a weight for each passage."""
    count = table.shape[1]
    things, owners, weights, known = [], [], [], 0
    for step, of in zip(steps, table, strict=True):
        values = {value: number for number, value in enumerate(step.having)}
        for form, who in enumerate(_grouped(of, len(step.forms))):
            if not len(who):
                continue
            own = np.array([values[value] for value in step.forms[form]], int) + known
            things.append(np.repeat(own, len(who)))
            owners.append(np.tile(who, len(own)))
        having = [sum(step.count[form] for form in having) for having in step.having.values()]
        weights.append(np.log2(count / np.array(having, float)) / _WHOLE)
        known += len(values)
    none = np.empty(0, int)
    return np.concatenate([none, *things]), np.concatenate([none, *owners]), np.concatenate([[0.0][:0], *weights])


def _grouped(of: Numbers, forms: int) -> list[Numbers]:
    """For each form the places that have it."""
    order = np.argsort(of, kind="stable")
    bounds = np.searchsorted(of[order], np.arange(forms + 1))
    return [order[start:end] for start, end in pairwise(bounds.tolist())]


def _chains(table: Numbers) -> tuple[Numbers, Numbers, Weights]:
    """Forms of neighbouring answers as one number, the places of those who have them, and a weight for each number."""
    count = table.shape[1]
    things, owners, weights, known = [], [], [], 0
    for start in range(len(table) - _CHAIN + 1):
        whole = np.flatnonzero((table[start : start + _CHAIN] >= 0).all(axis=0))
        found, inverse, often = np.unique(
            table[start : start + _CHAIN, whole], axis=1, return_inverse=True, return_counts=True
        )
        things.append(inverse.ravel() + known)
        owners.append(whole)
        weights.append(np.log2(count / often))
        known += found.shape[1]
    none = np.empty(0, int)
    return np.concatenate([none, *things]), np.concatenate([none, *owners]), np.concatenate([[0.0][:0], *weights])


def _combined(things: Numbers, owners: Numbers, weights: Weights, count: int) -> tuple[Numbers, Weights]:
    """Pairs of owners of the same thing, with the weight of what they share; rarest things first, up to a number."""
    order = np.lexsort((owners, things))
    things, owners = things[order], owners[order]
    of, starts, counts = np.unique(things, return_index=True, return_counts=True)
    keys, shares, left = [], [], _MOST_COMBINED
    for many in np.unique(counts[counts > 1]).tolist():
        each = many * (many - 1) // 2
        alike = np.flatnonzero(counts == many)[: left // each]
        if not len(alike):
            break
        left -= len(alike) * each
        first, second = np.triu_indices(many, 1)
        rows = owners[starts[alike][:, None] + np.arange(many)]
        keys.append((rows[:, first] * count + rows[:, second]).ravel())
        shares.append(np.repeat(weights[of[alike]], each))
    if not keys:
        return np.empty(0, int), np.empty(0)
    found, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    return found, np.bincount(inverse, np.concatenate(shares)).astype(np.float64)


# ------------------------------------------------------------------------------------------------------- pairs


def _pair(
    steps: Sequence[_Step], answers: Mapping[str, Answers], learners: Sequence[str], first: int, second: int
) -> Pair:
    one, other = learners[first], learners[second]
    common = [
        Common(step.name, number, *_lines(step, [answers[who].get(step.name, "") for who in (one, other)]))
        for step in steps
        if (number := step.rarity(step.form_of[first], step.form_of[second])) > 0
    ]
    common.sort(key=lambda found: -found.number)
    return Pair(one, other, sum(found.number for found in common), tuple(common))


def _lines(step: _Step, sources: Sequence[str]) -> list[frozenset[int]]:
    """The lines of two answers that agree, in what is neither given nor the reference's."""
    cut = [step.tokens(source) for source in sources]
    runs = [hashes(found) for found in cut]
    shared = np.setdiff1d(np.intersect1d(runs[0], runs[1]), np.concatenate([step.given, step.reference]))
    return [
        frozenset(
            token.line
            for start in np.flatnonzero(np.isin(found, shared)).tolist()
            for token in text[start : start + RUN]
        )
        for found, text in zip(runs, cut, strict=True)
    ]
