"""Why tests failed: the known misconceptions, and all other messages in groups."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from ffn.exceptions import UnknownStepError
from ffn.misconceptions import Misconception, unit_steps
from grader.report.data import Class

__all__ = ["Failure", "Mistake", "failures", "mistakes", "normalised"]

_SAID = "What happened: "
_LONGEST = 400
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_QUOTED = re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"")
_NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)")


@dataclass(frozen=True)
class Mistake:
    """A known misconception of a step: its hint, where the book treats it, and the learners who show it."""

    step: str
    name: str
    hint: str
    page: str
    learners: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """A message that names no known misconception: its test, an example of it, and the learners who got it."""

    step: str
    test: str
    example: str
    learners: tuple[str, ...]


def mistakes(found: Class) -> tuple[Mistake, ...]:
    """The known misconceptions that learners show, the most frequent first."""
    known, step_of = _known(found.unit), {test.name: test.step for test in found.tests}
    shown: dict[tuple[str, str], set[str]] = defaultdict(set)
    for one in found.graded:
        for test, message in one.record.messages.items():
            mistake = _named(known.get(step_of.get(test, ""), ()), message)
            if mistake is not None:
                shown[step_of[test], mistake.name].add(one.learner)
    about = {(step, mistake.name): mistake for step, of in known.items() for mistake in of}
    made = [
        Mistake(step, name, about[step, name].hint, about[step, name].page, tuple(sorted(learners)))
        for (step, name), learners in shown.items()
    ]
    return tuple(sorted(made, key=lambda mistake: (-len(mistake.learners), mistake.step, mistake.name)))


def failures(found: Class) -> tuple[Failure, ...]:
    """All other messages of failing tests, in groups that differ in numbers and names alone; most frequent first."""
    known, step_of = _known(found.unit), {test.name: test.step for test in found.tests}
    groups: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for one in found.graded:
        for test, message in one.record.messages.items():
            step = step_of.get(test)
            if step is not None and _named(known.get(step, ()), message) is None:
                groups[test, normalised(message)][one.learner] = message
    made = [
        Failure(step_of[test], test, _shown(next(iter(messages.values()))), tuple(sorted(messages)))
        for (test, _), messages in groups.items()
    ]
    return tuple(sorted(made, key=lambda failure: (-len(failure.learners), failure.test, failure.example)))


def normalised(message: str) -> str:
    """A message without what differs from learner to learner: numbers, addresses, quoted names, spaces."""
    text = _ADDRESS.sub("#", _shown(message))
    return " ".join(_NUMBER.sub("#", _QUOTED.sub("'#'", text)).split())


def _shown(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[:_LONGEST]} …"


def _known(unit: str) -> Mapping[str, tuple[Misconception, ...]]:
    """The known misconceptions by step; none for a unit that has no list of them."""
    try:
        return {step.name: step.misconceptions for step in unit_steps(unit)}
    except UnknownStepError:
        return {}


def _named(known: tuple[Misconception, ...], message: str) -> Misconception | None:
    """The misconception whose hint is in a message: the longest, where one hint begins with another."""
    if _SAID not in message:
        return None
    found = [mistake for mistake in known if f"{_SAID}{mistake.hint}" in message]
    return max(found, key=lambda mistake: len(mistake.hint), default=None)
