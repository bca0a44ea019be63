"""What a list of learners adds to their ids: logins, addresses and the LMS's own numbers."""

from collections.abc import Mapping
from pathlib import Path

from grader.exceptions import RosterError

__all__ = ["Aliases", "aliases_of"]

Aliases = Mapping[str, tuple[frozenset[str], frozenset[str]]]
"""For a learner the other ids, and the LMS's own numbers."""


def aliases_of(path: Path) -> Aliases:
    """Read a list of learners as `grader collect` does.

    Raises:
        RosterError: it cannot be read, or is no such list.
    """
    from grader.collect.roster import MOST_BYTES, parse_roster

    try:
        with path.open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or "it cannot be opened").lower()
        raise RosterError(str(path), reason, "name the list that the LMS exported") from error
    found = {}
    for person in parse_roster(content, str(path)).people:
        ids = frozenset({person.email, *person.logins} - {""})
        found[person.id] = ids, frozenset(number for _, number in person.numbers if number)
    return found
