"""A list of learners as a learning management system exports it, and who of it a download names."""

import csv
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from grader.collect.names import Parsed, data
from grader.engine.store import require_learner
from grader.exceptions import InvalidLearnerError, RosterError

__all__ = ["Person", "Roster", "compact", "learner_id", "parse_roster"]

MOST_BYTES = 50_000_000
MOST_ROWS = 200_000
MOST_COLUMNS = 5_000
_DELIMITERS = (",", ";", "\t")
_LETTERS = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th", "ð": "d"})


@dataclass(frozen=True)
class Person:
    """A learner of the list. ``numbers`` are the LMS's, each with its kind; ``when`` is a time of handing in."""

    id: str
    first: str = ""
    last: str = ""
    name: str = ""
    email: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    logins: tuple[str, ...] = ()
    when: str = ""
    line: int = 0

    @property
    def shown(self) -> str:
        """The name as a person reads it."""
        return self.name or f"{self.first} {self.last}".strip()


class Roster:
    """The learners of a list, found by number, login, e-mail address or name."""

    def __init__(self, people: Iterable[Person]) -> None:
        self.people = tuple(people)
        self._keys: dict[tuple[str, str], set[int]] = defaultdict(set)
        for index, person in enumerate(self.people):
            for key in _keys(person):
                self._keys[key].add(index)

    def find(self, parsed: Parsed) -> tuple[Person | None, str]:
        """The learner whom a file's name means; or None, and why nobody can be told.

        Everything that the name says has to agree: a number that is one learner's beside a name that is another's is
        nobody's.
        """
        found = [self._keys[key] for key in _asked(parsed) if key in self._keys]
        if not any(key in self._keys for key in _names(parsed)):
            found += self._behind_a_login(parsed.name)
        if not found:
            return None, "nobody in the list of learners has this name or number"
        common = set.intersection(*found)
        if len(common) == 1:
            return self.people[common.pop()], ""
        several = sorted(self.people[index].id for index in common or set.union(*found))
        return None, f"more than one in the list of learners could be meant: {', '.join(several[:5])}"

    def _behind_a_login(self, name: str) -> list[set[int]]:
        """Who is meant by a login with the name behind it, as Brightspace may show them."""
        login, _, rest = name.partition(" ")
        keys = [("login", login.casefold()), ("name", compact(rest))]
        return [self._keys[key] for key in keys] if all(key in self._keys for key in keys) else []


def compact(text: str) -> str:
    """A name for comparing: small letters and digits only, without accents."""
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(letter for letter in plain if letter.isalnum())


def learner_id(name: str) -> str:
    """A name cleaned to what can be a learner's id: the text where it is one already; empty where nothing is left.

    Raises:
        InvalidLearnerError: what is left is too long.
    """
    kept = re.sub(r"[^\w@.+' -]+", " ", unicodedata.normalize("NFC", name))
    cleaned = re.sub(r"\s+", " ", kept).strip(" .").lstrip("@.+' -")
    if cleaned:
        require_learner(cleaned)
    return cleaned


def parse_roster(content: bytes, file: str) -> Roster:
    """Read a list of learners: CSV with commas, semicolons or tabs, in UTF-8 or UTF-16, with a line of headers.

    Raises:
        RosterError: it cannot be read, has no column with ids or one learner twice.
    """
    lines = list(io.StringIO(_text(content, file), newline=""))
    if lines and lines[0].casefold().startswith("sep="):
        lines = ["\n", *lines[1:]]
    header, rows = _table(lines, file)
    columns = _columns(header)
    if "learner" not in columns:
        raise RosterError(
            file,
            "no column has the learners' ids",
            "name one column Login, Username, ID or Email in its first line",
        )
    people = [person for line, row in rows if (person := _person(columns, row, line, file)) is not None]
    if not people:
        raise RosterError(file, "there is no learner in it", "export the list once more")
    return Roster(_once(people, file))


def _text(content: bytes, file: str) -> str:
    if len(content) > MOST_BYTES:
        raise RosterError(
            file, f"it is larger than {MOST_BYTES // 1_000_000} MB", "give the list of learners alone"
        )
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        text = content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        what = "UTF-16" if wide else "UTF-8"
        raise RosterError(
            file, f"line {line} is not in {what}", "save it as CSV UTF-8 and collect again"
        ) from error
    if "\0" in text:
        raise RosterError(file, "it is no text", "save it as CSV UTF-8 and collect again")
    return text


def _table(lines: list[str], file: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """The headers, and the rows with their line numbers, by the delimiter that gives the most known headers."""
    start = next((index for index, line in enumerate(lines) if line.strip()), len(lines))
    if start == len(lines):
        raise RosterError(file, "it is empty", "export the list once more")

    def header(delimiter: str) -> list[str]:
        return next(csv.reader(lines[start:], delimiter=delimiter), [])

    try:
        best = max(_DELIMITERS, key=lambda one: (len(_columns(header(one))), len(header(one))))
        first = header(best)
    except csv.Error as error:
        raise RosterError(file, "its first line is no line of headers", "export the list once more") from error
    return first, _rows(lines[start:], best, start, file)


def _rows(lines: list[str], delimiter: str, above: int, file: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(lines, delimiter=delimiter)
    try:
        for count, row in enumerate(reader):
            line = reader.line_num + above
            if count > MOST_ROWS or len(row) > MOST_COLUMNS:
                raise RosterError(file, f"it is too large at line {line}", "give the list of learners alone")
            if count and any(row):
                yield line, row
    except csv.Error as error:
        line = reader.line_num + above
        raise RosterError(file, f"line {line} is no line of a table", "export the list once more") from error


def _columns(header: list[str]) -> dict[str, list[int]]:
    """Where each kind of column is: the best only, of ``login`` all."""
    known: dict[str, list[str]] = data()["roster"]
    places: dict[str, int] = {}
    for index, title in enumerate(header[:MOST_COLUMNS]):
        places.setdefault(" ".join(title.casefold().split()), index)
    found = {kind: [places[title] for title in titles if title in places] for kind, titles in known.items()}
    found |= {kind: [places[kind]] for kind in ("id", "identifier") if kind in places}
    return {kind: indices if kind == "login" else indices[:1] for kind, indices in found.items() if indices}


def _person(columns: dict[str, list[int]], row: list[str], line: int, file: str) -> Person | None:
    """A row's learner; None for rows that are none, such as the points possible and the test student of Canvas."""

    def cells(kind: str) -> list[str]:
        return [_cell(row[index]) for index in columns.get(kind, []) if index < len(row)]

    def cell(kind: str) -> str:
        return next(iter(cells(kind)), "")

    name = cell("name")
    if name.casefold() in ("points possible", "student, test", "test student"):
        return None
    if not cell("learner"):
        if not name and not cell("last"):
            return None
        raise RosterError(file, f"line {line} has no id", "fill it in")
    try:
        ident = unicodedata.normalize("NFC", re.sub(r"(?i)^participant ", "participant-", cell("learner")))
        require_learner(ident)
    except InvalidLearnerError as error:
        raise RosterError(
            file, f"in line {line}, {cell('learner')[:80]!a} can be no learner's id", "mend it"
        ) from error
    first, last = cell("first"), cell("last")
    if not first and not last:
        first, last = _split(name)
    numbers = tuple((kind, _number(cell(kind))) for kind in ("lms", "id", "identifier") if cell(kind))
    return Person(ident, first, last, name, cell("email"), numbers, tuple(cells("login")), cell("when"), line)


def _number(text: str) -> str:
    return re.sub(r"(?i)^participant ", "", text)


def _cell(text: str) -> str:
    """A cell without what spreadsheets and Brightspace put around a number to keep it text."""
    text = text.strip()
    formula = re.fullmatch(r'="(.*)"', text)
    return (formula[1] if formula else text).removeprefix("#").strip()


def _split(name: str) -> tuple[str, str]:
    last, comma, first = name.partition(",")
    if comma:
        return first.strip(), last.strip()
    first, _, last = name.rpartition(" ")
    return (first, last) if first else (last, "")


def _once(people: list[Person], file: str) -> list[Person]:
    """The people without rows that say the same twice, as lists by section have them."""
    known: dict[str, Person] = {}
    for person in people:
        other = known.setdefault(compact_id(person.id), person)
        if other is person:
            continue
        if other.id != person.id or compact(other.shown) != compact(person.shown):
            raise RosterError(
                file,
                f"lines {other.line} and {person.line} have the same id {person.id[:80]!a}",
                "mend one of them",
            )
    return list(known.values())


def compact_id(learner: str) -> str:
    """What two ids have in common that a file system may not tell apart."""
    return unicodedata.normalize("NFC", learner).casefold()


def _keys(person: Person) -> set[tuple[str, str]]:
    """All that a person is found by."""
    keys = {("login", login.casefold()) for login in (person.id, person.email, *person.logins)}
    keys |= {("name", compact(name)) for name in _orders(person)}
    keys |= {(kind, number.casefold()) for kind, number in person.numbers}
    return {key for key in keys if key[1]}


def _orders(person: Person) -> Iterator[str]:
    yield person.first + person.last
    yield person.last + person.first
    yield person.name
    last, comma, first = person.name.partition(",")
    if comma:
        yield first + last


def _asked(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """All that a file's name says of its learner, as keys."""
    for kind in filter(None, ("lms", parsed.number)):
        yield kind, parsed.lms.casefold()
    for text in filter(None, (parsed.login, parsed.learner)):
        yield "login", text.casefold()
    yield from _names(parsed)


def _names(parsed: Parsed) -> Iterator[tuple[str, str]]:
    for text in filter(None, (parsed.name, parsed.learner)):
        yield "name", compact(text)
