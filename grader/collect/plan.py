"""Who handed in what: from names, sizes and a list of learners to what is to be done. Nothing here touches a disk."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from grader.collect.names import Member, Parsed, Reading
from grader.collect.roster import Person, Roster, compact_id, learner_id
from grader.collect.times import Zone, in_utc
from grader.exceptions import InvalidLearnerError

__all__ = [
    "Attempt",
    "Entry",
    "Known",
    "LeftOut",
    "Plan",
    "Step",
    "Stored",
    "attempt_folder",
    "make_plan",
    "somebody_else",
    "steps_for",
    "too_large",
]

MOST_RATIO = 200
RATIO_FROM = 1 << 20
_ATTEMPT = re.compile(r"_attempt_[0-9-]{19}")


@dataclass(frozen=True)
class Attempt:
    """A notebook that a learner handed in. ``digest`` is empty until it was read."""

    member: Member
    time: datetime | None = None
    late: bool | None = None
    order: int = 0
    copy: int = 0
    digest: str = ""

    @property
    def rank(self) -> tuple[float, int, int, str]:
        """Grows from an attempt to the next."""
        moment = self.time.timestamp() if self.time else float("-inf")
        return (moment, self.order, self.copy, self.member.path)


@dataclass(frozen=True)
class Entry:
    """A learner with all attempts, oldest first; ``beside`` are files of theirs that are not collected."""

    learner: str
    attempts: tuple[Attempt, ...]
    person: Person | None = None
    name: str = ""
    login: str = ""
    lms: str = ""
    beside: tuple[str, ...] = ()

    @property
    def newest(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]


@dataclass(frozen=True)
class LeftOut:
    """Files that are not collected although they should be: whose they seem to be, and why."""

    who: str
    files: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class Plan:
    """What a download comes to. ``missing`` are those of the list who have nothing in it."""

    entries: tuple[Entry, ...]
    left_out: tuple[LeftOut, ...] = ()
    missing: tuple[Person, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class Stored:
    """A notebook that is there already: its hash, its time, and its place in the order of the LMS."""

    digest: str
    time: datetime | None = None
    order: int = 0

    def same(self, attempt: Attempt) -> bool:
        """Whether an attempt is this one; a time that is not known makes no difference."""
        return self.digest == attempt.digest and attempt.time in (None, self.time)


@dataclass(frozen=True)
class Known:
    """What is there of a learner: the submission, the attempts by number, and the number that the LMS gave.

    ``blocked`` says that something is in the submission's place which cannot be read.
    """

    submission: Stored | None = None
    attempts: Mapping[int, Stored] = field(default_factory=dict)
    lms: str = ""
    blocked: bool = False


@dataclass(frozen=True)
class Step:
    """One thing to do with an attempt.

    ``keep`` puts it among the attempts, into ``folder``. ``place`` makes it the submission; with a ``folder``, what is
    there becomes an attempt of that name. ``date`` gives the submission that is there its time.
    """

    kind: str
    attempt: Attempt
    folder: str = ""


# ----------------------------------------------------------------------------------------------- who handed in what


def make_plan(
    reading: Reading,
    unit: str,
    zone: Zone,
    *,
    roster: Roster | None = None,
    notes: Mapping[str, str] | None = None,
    most: int = 20_000_000,
) -> Plan:
    """Decide who handed in what. ``notes`` are the texts that lie beside submissions, by path; ``most`` is in bytes.

    Whoever cannot be told from others is left out, and so is a learner whose newest notebook cannot be taken; the rest
    of the class is not.
    """
    left, ignored = _unmatched(reading)
    groups: dict[str, list[tuple[Parsed, str, Person | None]]] = defaultdict(list)
    nobody: dict[tuple[str, str], list[Parsed]] = defaultdict(list)
    for parsed in _completed(reading.parsed, notes or {}):
        learner, person, reason = _owner(parsed, roster)
        if reason:
            nobody[parsed.who, reason].append(parsed)
        else:
            groups[compact_id(learner)].append((parsed, learner, person))
    left += [LeftOut(who, _paths(found), reason) for (who, reason), found in nobody.items()]
    entries = []
    for group in groups.values():
        found = [parsed for parsed, _, _ in group]
        _, learner, person = group[0]
        reason = "" if person else _mixed(found)
        if reason:
            left.append(LeftOut(found[0].who, _paths(found), reason))
            continue
        entry, problems = _entry(learner, person, found, unit, zone, most)
        entries += [entry] if entry else []
        left += problems
    return Plan(
        tuple(sorted(entries, key=lambda entry: entry.learner)),
        tuple(left),
        _missing(roster, {person.id for group in groups.values() for _, _, person in group if person}),
        ignored,
    )


def _unmatched(reading: Reading) -> tuple[list[LeftOut], tuple[str, ...]]:
    """The notebooks and archives that have no learner's name; and what else has none, which nobody misses."""
    reason = f"the name is not of the form that {reading.form.title} gives"
    wanted = [m for m in reading.unmatched if m.is_notebook or m.path.casefold().endswith(".zip")]
    left = [LeftOut("", (member.path,), reason) for member in wanted]
    return left, tuple(member.path for member in reading.unmatched if member not in set(wanted))


def _missing(roster: Roster | None, seen: set[str]) -> tuple[Person, ...]:
    return tuple(person for person in (roster.people if roster else ()) if person.id not in seen)


def _paths(found: list[Parsed]) -> tuple[str, ...]:
    """The notebooks of a group; all files where there is none."""
    notebooks = [parsed.member.path for parsed in found if parsed.member.is_notebook]
    return tuple(notebooks or [parsed.member.path for parsed in found])


def _completed(found: tuple[Parsed, ...], notes: Mapping[str, str]) -> Iterator[Parsed]:
    """The files with what lies beside them says: Blackboard's text file the login, timestamp.txt the time."""
    logins = dict(filter(None, (_login(parsed, notes) for parsed in found if parsed.note and parsed.login)))
    stamps = {_folder(p.member.path): notes.get(p.member.path, "") for p in found if p.note and not p.login}
    for parsed in found:
        path = parsed.member.path
        if parsed.login:
            name, login = logins.get(_attempt(path), ("", parsed.login))
            yield replace(parsed, login=login, name=name)
        else:
            yield replace(parsed, when=parsed.when or stamps.get(_folder(path), ""))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _attempt(path: str) -> str:
    """What the names of all files of one of Blackboard's attempts begin with."""
    found = _ATTEMPT.search(path)
    return path[: found.end()] if found else path


def _login(parsed: Parsed, notes: Mapping[str, str]) -> tuple[str, tuple[str, str]] | None:
    """The name and the login in the first line of Blackboard's text, where the file's own name bears the login out.

    What a learner typed stands further below.
    """
    head, line = _attempt(parsed.member.path), next(iter(notes.get(parsed.member.path, "").splitlines()), "")
    found = re.fullmatch(r"\ufeff?Name:\s*(.*?)\s*\(([^()]+)\)\s*", line)
    if found is None or not _ATTEMPT.sub("", head).endswith(f"_{found[2]}"):
        return None
    return head, (found[1], found[2])


def _owner(parsed: Parsed, roster: Roster | None) -> tuple[str, Person | None, str]:
    """The learner's id, the person where there is a list, and why there is none."""
    if roster is not None:
        person, reason = roster.find(parsed)
        return (person.id if person else ""), person, reason
    try:
        learner = learner_id(_called(parsed))
    except InvalidLearnerError:
        return "", None, "the name is too long for a learner's id"
    return learner, None, "" if learner else "no learner's id can be made of this name; give a list with --roster"


def _called(parsed: Parsed) -> str:
    return parsed.learner or parsed.login or parsed.name


def _mixed(found: list[Parsed]) -> str:
    """Why files of one id are not known to be one learner's; empty where they are."""
    numbers = sorted({parsed.lms for parsed in found if parsed.lms})
    names = sorted({_called(parsed) for parsed in found})
    if len(numbers) < 2 and len(names) < 2:
        return ""
    several = numbers if len(numbers) > 1 else names
    return f"more than one learner has this name ({', '.join(several[:5])}); give a list of learners with --roster"


# -------------------------------------------------------------------------------------------------- a learner's files


def _entry(
    learner: str, person: Person | None, found: list[Parsed], unit: str, zone: Zone, most: int
) -> tuple[Entry | None, list[LeftOut]]:
    """A learner's attempts, and what of them cannot be taken; None where that is the newest."""
    who = found[0].who
    own = [parsed for parsed in found if not parsed.note]
    notebooks = [parsed for parsed in own if parsed.member.is_notebook]
    if not notebooks:
        return None, [LeftOut(who, _paths(own or found), _no_notebook(own))]
    together: dict[str, list[Parsed]] = defaultdict(list)
    for parsed in notebooks:
        together[parsed.when].append(parsed)
    attempts: list[Attempt] = []
    problems: dict[str, LeftOut] = {}
    for when, group in together.items():
        chosen, reason = _chosen(group, unit)
        time = in_utc(when or (person.when if person else ""), zone)
        for parsed in chosen:
            attempt = Attempt(parsed.member, time, parsed.late, parsed.order, parsed.copy())
            attempts.append(attempt)
            if why := reason or too_large(parsed.member, most):
                problems[parsed.member.path] = LeftOut(
                    who, _paths(group) if reason else (parsed.member.path,), why
                )
    attempts.sort(key=lambda attempt: attempt.rank)
    left = list(dict.fromkeys(problems.values()))
    if attempts[-1].member.path in problems:
        return None, left
    good = tuple(attempt for attempt in attempts if attempt.member.path not in problems)
    taken = {attempt.member.path for attempt in attempts}
    beside = tuple(sorted(parsed.member.path for parsed in own if parsed.member.path not in taken))
    first = next((parsed for parsed in found if parsed.name), found[0])
    return Entry(learner, good, person, first.name, first.login, first.lms, beside), left


def _no_notebook(own: list[Parsed]) -> str:
    if any(parsed.file.casefold().endswith((".zip", ".7z", ".rar", ".gz")) for parsed in own):
        return "an archive was handed in, and no notebook"
    return "no notebook is among the files" if own else "nothing was handed in with it"


def _chosen(group: list[Parsed], unit: str) -> tuple[list[Parsed], str]:
    """Of notebooks that came together those that may be the unit's; and why none can be told."""
    named = [parsed for parsed in group if parsed.stem() == unit]
    stems = {parsed.stem() for parsed in named or group}
    reason = "" if len(stems) < 2 else f"more than one notebook came together, and none is named {unit}.ipynb"
    return named or group, reason


def too_large(member: Member, most: int) -> str:
    """Why a notebook is too large to be taken; empty where it is not."""
    if member.size > most:
        return f"it is larger than {most // 1_000_000} MB"
    if member.packed is not None and member.size > max(RATIO_FROM, MOST_RATIO * member.packed):
        return f"it unpacks to more than {MOST_RATIO} times its size"
    return ""


# ------------------------------------------------------------------------------------------------------- what to do


def steps_for(entry: Entry, known: Known) -> tuple[Step, ...]:
    """What to do for a learner, given what is there; nothing where all of it is there already."""
    there, newest = known.submission, entry.newest
    have = [*known.attempts.values(), *([there] if there else [])]
    fresh: list[Attempt] = []
    for attempt in entry.attempts[:-1]:
        if not any(stored.same(attempt) for stored in (*have, *map(_stored, (*fresh, newest)))):
            fresh.append(attempt)
    number = max(known.attempts, default=0) + 1
    last: list[Step] = []
    was = attempt_folder(number, there.time if there else None)
    if there is None and not known.blocked:
        last = [Step("place", newest)]
    elif there is None or not (there.digest == newest.digest and newest.time in (None, there.time)):
        if there is not None and there.digest == newest.digest and there.time is None:
            last = [Step("date", newest)]
        elif there is not None and _older(newest, there):
            fresh += [] if any(stored.same(newest) for stored in have) else [newest]
        else:
            last, number = [Step("place", newest, was)], number + 1
    kept = (
        Step("keep", attempt, attempt_folder(number + index, attempt.time)) for index, attempt in enumerate(fresh)
    )
    return (*kept, *last)


def _stored(attempt: Attempt) -> Stored:
    return Stored(attempt.digest, attempt.time, attempt.order)


def _older(attempt: Attempt, there: Stored) -> bool:
    """Whether an attempt came before the one that is there, as far as that is known."""
    if attempt.time and there.time:
        return attempt.time < there.time
    return bool(attempt.order and there.order and attempt.order < there.order)


def somebody_else(entry: Entry, known: Known) -> str:
    """Why what is there under a learner's id is another's; empty where it may be the same learner's."""
    if entry.person is not None or not entry.lms or known.lms in ("", entry.lms):
        return ""
    return (
        f"a submission of another learner with this name is there (number {known.lms}); give a list of learners "
        "with --roster"
    )


def attempt_folder(number: int, time: datetime | None) -> str:
    """The name of the folder of an attempt."""
    return f"{number:03d}-{time.astimezone(UTC):%Y-%m-%dT%H-%M-%SZ}" if time else f"{number:03d}-time-unknown"
