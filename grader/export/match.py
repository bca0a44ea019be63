"""Whose row of an LMS's file is whose: by ids first, by names where ids say nothing, never by a guess.

A learner's id here comes from the roster, or from how the LMS named the submitted file; so the row's login, student
number and address may each be it. The LMS's own number is asked only where these say nothing: it could be another
learner's student number. Names come last, and only where they are one learner's alone on both sides.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grader.exceptions import AmbiguousLearnerError

__all__ = ["Known", "Matches", "Row", "match"]


@dataclass(frozen=True)
class Row:
    """What a row of an LMS's file says of its learner: ids, the LMS's own number, and the name."""

    place: int
    ids: tuple[str, ...] = ()
    number: str = ""
    name: str = ""

    @property
    def shown(self) -> str:
        """How a person finds the row."""
        return next((text for text in (self.name, *self.ids, self.number) if text), f"row {self.place + 1}")


@dataclass(frozen=True)
class Known:
    """A learner of the gradebook: the id, other ids, the LMS's own numbers, and the name."""

    learner: str
    ids: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    name: str = ""


@dataclass
class Matches:
    """The learner of each row by its place; rows and learners that are left over; who was found by name alone."""

    learners: dict[int, str] = field(default_factory=dict)
    only_there: list[str] = field(default_factory=list)
    only_here: list[str] = field(default_factory=list)
    by_name: list[str] = field(default_factory=list)


def match(path: Path, rows: Sequence[Row], known: Sequence[Known]) -> Matches:
    """Find each row's learner.

    Raises:
        AmbiguousLearnerError: a row is two learners' by its ids, or a learner has two rows that are not one person's.
    """
    found: dict[int, str] = {}
    cases: list[str] = []
    by_id = _index((key, one.learner) for one in known for key in {one.learner, *one.ids})
    by_number = _index((key, one.learner) for one in known for key in {one.learner, *one.ids, *one.numbers})
    for row in rows:
        learners = {learner for text in row.ids for learner in by_id.get(_key(text), ())}
        learners = learners or by_number.get(_key(row.number), set())
        if len(learners) > 1:
            cases.append(f"{row.shown!r} may be {' or '.join(sorted(learners))}")
        elif learners:
            found[row.place] = next(iter(learners))
    cases += _twice(rows, found)
    named, doubtful = _by_name(rows, known, found)
    cases += doubtful
    if cases:
        raise AmbiguousLearnerError(path, cases)
    found |= named
    taken = set(found.values())
    return Matches(
        learners=found,
        only_there=[row.shown for row in rows if row.place not in found],
        only_here=[one.learner for one in known if one.learner not in taken],
        by_name=[f"{row.shown} ({named[row.place]})" for row in rows if row.place in named],
    )


def _twice(rows: Sequence[Row], found: dict[int, str]) -> list[str]:
    """Learners with several rows; one person's rows, in several sections, have the same ids."""
    of: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.place in found:
            of[found[row.place]].append(row)
    return [
        f"{learner} may be {' or '.join(repr(row.shown) for row in several)}"
        for learner, several in of.items()
        if len({(row.ids, row.number) for row in several}) > 1
    ]


def _by_name(
    rows: Sequence[Row], known: Sequence[Known], found: dict[int, str]
) -> tuple[dict[int, str], list[str]]:
    """Rows and learners that are left and have the same name, and the names that several have."""
    there: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.place not in found and (key := _name(row.name)):
            there[key].append(row)
    taken = set(found.values())
    here: dict[str, set[str]] = defaultdict(set)
    for one in known:
        if one.learner not in taken:
            # Collected without a roster, a learner's id is the name as the LMS put it into the file's name.
            for text in (one.name, one.learner):
                if key := _name(text):
                    here[key].add(one.learner)
                here[_squeezed(text)].add(one.learner)
    named: dict[int, str] = {}
    doubtful = []
    for key, several in there.items():
        learners = set(here.get(key, ())) | here.get(_squeezed(several[0].name), set())
        if len(learners) == 1 and len({(row.ids, row.number) for row in several}) == 1:
            named |= {row.place: next(iter(learners)) for row in several}
        elif learners:
            what = f"{len(several)} rows" if len(several) > 1 else "a row"
            doubtful.append(f"{what} named {several[0].shown!r} may be {' or '.join(sorted(learners))}")
    return named, doubtful


def _index(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    made: dict[str, set[str]] = defaultdict(set)
    for key, learner in pairs:
        if _key(key):
            made[_key(key)].add(learner)
    return made


def _key(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return re.findall(r"\w+", "".join(sign for sign in plain if not unicodedata.combining(sign)).replace("_", " "))


def _name(text: str) -> str:
    """A name of at least two words, whichever comes first."""
    words = _words(text)
    return " ".join(sorted(words)) if len(words) > 1 else ""


def _squeezed(text: str) -> str:
    return "".join(_words(text))
