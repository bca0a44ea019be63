"""What file names say: which learning management system made a download, and who handed in what."""

import re
import tomllib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from grader.exceptions import UnclearFormError

__all__ = ["FORMS", "Form", "Member", "Parsed", "Reading", "data", "forms", "ignored", "read_names"]

FORMS = ("canvas", "moodle", "blackboard", "brightspace", "folder")
_WRAPPERS = 3
_COPY = re.compile(r"-(?:\d{1,4}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})| ?\((\d{1,4})\)")


@dataclass(frozen=True)
class Member:
    """A file of a download: its path in it, with slashes, its size, and what it takes up in the archive."""

    path: str
    size: int
    packed: int | None = None

    @property
    def is_notebook(self) -> bool:
        """Whether its name is a notebook's."""
        return self.path.casefold().endswith(".ipynb")


@dataclass(frozen=True)
class Form:
    """How one learning management system names files."""

    name: str
    title: str
    patterns: tuple[re.Pattern[str], ...]
    others: re.Pattern[str] | None = None
    marks_late: bool = False
    number: str = ""


@dataclass(frozen=True)
class Parsed:
    """A member with what its name says; a part that is not there is empty. ``late`` is None where nothing says it.

    ``number`` is the header of a list of learners under which ``lms`` may stand.
    """

    member: Member
    name: str = ""
    login: str = ""
    lms: str = ""
    learner: str = ""
    late: bool | None = None
    order: int = 0
    when: str = ""
    file: str = ""
    note: bool = False
    number: str = ""

    @property
    def who(self) -> str:
        """The learner as the download names them."""
        shown = self.learner or self.login or self.name or self.lms
        return f"{shown} ({self.lms})" if self.lms and shown != self.lms and not self.learner else shown

    def stem(self) -> str:
        """The name of the learner's own file, without suffix, folder and the number of a copy."""
        stem = self.file.rpartition("/")[2].rpartition(".")[0]
        found = re.fullmatch(rf"(?s)(.+?)(?:{_COPY.pattern})", stem)
        return found[1] if found else stem

    def copy(self) -> int:
        """The number of a copy, as in "name-2.ipynb" or "name (2).ipynb"."""
        found = re.search(r"(?:-(\d{1,4})|\((\d{1,4})\))\.[^.]*$", self.file)
        return int(found[1] or found[2]) if found else 0


@dataclass(frozen=True)
class Reading:
    """A download's names as one form reads them, below ``depth`` folders; ``unmatched`` are not of that form."""

    form: Form
    parsed: tuple[Parsed, ...]
    unmatched: tuple[Member, ...] = ()
    depth: int = 0


@cache
def data() -> dict[str, Any]:
    """What grader/data/lms.toml says."""
    return tomllib.loads((files("grader") / "data" / "lms.toml").read_text(encoding="utf-8"))


def forms(unit: str, units: Iterable[str] = ()) -> dict[str, Form]:
    """All forms by name, for one unit of a course with these units."""
    others = "|".join(re.escape(other) for other in units if other != unit) or "(?!)"

    def compiled(pattern: str) -> re.Pattern[str]:
        return re.compile(pattern.replace("%UNIT%", re.escape(unit)).replace("%OTHERS%", f"(?:{others})"))

    return {
        name: Form(
            name,
            entry["title"],
            tuple(map(compiled, entry["patterns"])),
            compiled(entry["others"]) if "others" in entry else None,
            entry.get("marks_late", False),
            entry.get("number", ""),
        )
        for name, entry in data()["forms"].items()
    }


def read_names(members: Iterable[Member], unit: str, form: str = "auto", units: Iterable[str] = ()) -> Reading:
    """Read the names of a download's files, by the form that is named or by the one that most notebooks have.

    A folder that everything lies in is looked into. Where no learning management system's form fits, it is a folder.

    Raises:
        UnclearFormError: the names fit two forms equally well.
    """
    known = forms(unit, units)
    seen = [member for member in members if not ignored(member.path)]
    if form != "auto":
        return _reading(known[form], seen)
    readings = [_reading(known[name], seen) for name in FORMS if name != "folder"]
    best = max(map(_fit, readings))
    fitting = [reading for reading in readings if best[0] and _fit(reading) == best]
    if len(fitting) > 1:
        raise UnclearFormError([reading.form.title for reading in fitting], [r.form.name for r in fitting])
    return fitting[0] if fitting else _reading(known["folder"], seen)


def ignored(path: str) -> bool:
    """Whether a file is one that is never looked at."""
    return any(re.fullmatch(pattern, path) for pattern in data()["ignored"])


def _fit(reading: Reading) -> tuple[int, int]:
    """How many notebooks a reading explains; of two that explain as many, the better looks less deep.

    Deeper down a path, what learners named themselves begins.
    """
    return sum(parsed.member.is_notebook for parsed in reading.parsed), -reading.depth


def _reading(form: Form, members: list[Member]) -> Reading:
    """A form's reading at the first depth at which anything fits."""
    wrapper = _wrapper([member.path for member in members])
    first: Reading | None = None
    for depth in range(min(len(wrapper), _WRAPPERS) + 1):
        reading = _at(form, members, wrapper[:depth])
        if reading.parsed:
            return reading
        first = first or reading
    return first or Reading(form, ())


def _wrapper(paths: list[str]) -> list[str]:
    """The folders that everything lies in."""
    if not paths:
        return []
    low, high = min(paths).split("/")[:-1], max(paths).split("/")[:-1]
    common = 0
    while common < min(len(low), len(high)) and low[common] == high[common]:
        common += 1
    return low[:common]


def _at(form: Form, members: list[Member], above: list[str]) -> Reading:
    cut = sum(len(part) + 1 for part in above)
    parsed, unmatched = [], []
    for member in members:
        path = unicodedata.normalize("NFC", member.path[cut:])
        found = next(filter(None, (pattern.fullmatch(path) for pattern in form.patterns)), None)
        if found is not None:
            parsed.append(_parsed(form, member, found.groupdict()))
        elif form.others is None or not form.others.fullmatch(path):
            unmatched.append(member)
    return Reading(form, tuple(parsed), tuple(unmatched), len(above))


def _parsed(form: Form, member: Member, group: dict[str, str | None]) -> Parsed:
    part = {key: value or "" for key, value in group.items()}
    lms, hidden = part.get("lms", ""), part.get("anonymous", "")
    return Parsed(
        member,
        name=part.get("name", ""),
        login=part.get("login", ""),
        lms=lms,
        learner=f"{hidden.lower()}-{lms}" if hidden else part.get("learner", ""),
        late=bool(part.get("late")) if form.marks_late else None,
        order=int(part.get("order") or 0),
        when=part.get("when", ""),
        file=part.get("file", ""),
        note=bool(part.get("note")),
        number=form.number,
    )
