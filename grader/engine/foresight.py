"""What a test cell asks of a learner's session, known from the reference answers, so that it is asked in one go.

A test asks the same of every learner's session as long as it passes: the names of the step, and calls with the same
arguments. So the cells are run once with the reference answers, what each test asks is kept as a script, and a later
session answers all of a script at once. The test itself runs as ever, and takes an answer out of those only for exactly
the question that it asks; for any other question the session is asked as if there were no script. Nothing of a script
comes from a learner.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

__all__ = ["Asked", "Script", "script_of"]

_FORESEEABLE = {"get", "call", "call_each"}
MOST_STEPS = 500
LARGEST = 1 << 20


@dataclass(frozen=True)
class Asked:
    """A request: the message without what numbers it, its arrays, and what is done before it.

    ``of`` is the name of the function that it calls, as far as it has one.
    """

    message: Mapping[str, Any]
    arrays: tuple[bytes, ...] = ()
    first: tuple[tuple[str, str], ...] = ()
    of: str = ""

    @cached_property
    def text(self) -> str:
        """What is sent for it as a part of a script."""
        own = {"of": self.of, "arrays": len(self.arrays), "first": self.first}
        # What is empty is left out: every session reads all of it anew.
        whole = {**self.message, **{key: value for key, value in own.items() if value}}
        return json.dumps(whole, separators=(",", ":"))

    def is_same(self, message: Mapping[str, Any], arrays: Sequence[bytes]) -> bool:
        """Whether a request asks for this, whichever function it calls."""
        return (
            len(self.arrays) == len(arrays)
            and self.message == message
            and all(mine == other for mine, other in zip(self.arrays, arrays, strict=True))
        )


class Script:
    """What a test cell asks, in order; at most ``length`` of it, which is where a test that passed asked otherwise."""

    def __init__(self, asked: Sequence[Asked]) -> None:
        self.asked = tuple(asked)
        self.length = len(self.asked)
        self._encoded: dict[int, tuple[str, list[bytes]]] = {}

    def encoded(self, start: int) -> tuple[str, list[bytes]]:
        """The requests from a place on, as a JSON list and arrays; the first one without what is done before it."""
        known = self._encoded.get(start)
        if known is None:
            first, *others = self.asked[start : self.length]
            parts = [Asked(first.message, first.arrays, (), first.of), *others]
            known = f"[{','.join(part.text for part in parts)}]", [data for part in parts for data in part.arrays]
            self._encoded[start] = known
        return known

    def cut(self, length: int) -> None:
        """Leave out what a test that passed did not ask: it depends on what a learner's code returns, or on chance."""
        if length < self.length:
            self.length, self._encoded = length, {}


def script_of(asked: Iterable[Asked]) -> Script | None:
    """The script of a test cell that has asked this of the reference answers; None where it is not worth one.

    It goes to the first request that cannot be known before: one about an object that a call has returned, one that
    hands over a function of the test's, or one after the stand-ins were taken back.
    """
    steps: list[Asked] = []
    calls = size = 0
    for one in asked:
        operation = one.message["op"]
        size += len(one.text) + sum(map(len, one.arrays))
        foreseeable = operation in _FORESEEABLE and (operation == "get" or one.of) and not _has_handle(one.message)
        # The first of all may come after anything: that is sent as it is then.
        in_place = not steps or not one.first or (not calls and [what for what, _ in one.first] == ["stand_in"])
        if not foreseeable or not in_place or size > LARGEST or len(steps) >= MOST_STEPS:
            break
        steps.append(one)
        calls += operation != "get"
    return Script(steps) if len(steps) > 1 else None


def _has_handle(tree: Any) -> bool:
    """Whether an encoded value holds one that has stayed where it is."""
    if isinstance(tree, dict):
        return "h" in tree or any(_has_handle(part) for part in tree.values())
    return isinstance(tree, list) and any(_has_handle(part) for part in tree)
