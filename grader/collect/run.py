"""Collecting a download: read, decide, unpack, move, and name the learners in the gradebook."""

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grader.collect.archive import Source, open_source
from grader.collect.names import Form, Reading, read_names
from grader.collect.place import (
    Unpacked,
    attempts_root,
    known_of,
    place,
    recover,
    scratch_folder,
    unpack,
    write_record,
)
from grader.collect.plan import Entry, Known, LeftOut, Plan, Step, make_plan, somebody_else, steps_for
from grader.collect.roster import MOST_BYTES, Person, Roster, parse_roster
from grader.collect.times import Zone, named_zone, system_zone
from grader.course import Course
from grader.engine.verdict import Limits
from grader.exceptions import (
    CannotPlaceError,
    DownloadRefusedError,
    InvalidLearnerError,
    LearnersNotNamedError,
    RosterError,
)

__all__ = ["Row", "Summary", "collect"]

_NOTE_BYTES = 4_000


@dataclass(frozen=True)
class Row:
    """What was done for a learner; ``attempts`` counts all that are there, the submission among them."""

    learner: str
    file: str
    time: datetime | None
    attempts: int
    late: bool | None
    done: str
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Summary:
    """What came of a download; ``zone`` is the one of its times."""

    unit: str
    form: str
    zone: str
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[Person, ...]
    ignored: tuple[str, ...] = ()


def collect(
    course: Course,
    unit: str,
    path: Path,
    *,
    roster: Path | None = None,
    form: str = "auto",
    timezone: str | None = None,
    dry_run: bool = False,
    limits: Limits | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Lay the submissions of a download into grader/var/submitted, the earlier attempts into grader/var/attempts.

    ``progress`` is called with how many learners are done, and of how many. A ``dry_run`` writes nothing.

    Raises:
        UnknownUnitError: the course has no such unit.
        DownloadRefusedError: the download is none, or is not safe to read; nothing was changed.
        UnclearFormError: its names fit more than one learning management system.
        RosterError: the list of learners cannot be used.
        UnknownZoneError: there is no such time zone.
        CollectBusyError: another run is at work.
        CannotPlaceError: something could not be written.
        LearnersNotNamedError: the gradebook did not take the learners' names.
    """
    limits = limits or Limits()
    course.require_unit(unit)
    zone = _zone(course, timezone)
    people = parse_roster(_read(roster), str(roster)) if roster is not None else None
    _require_elsewhere(course, path)
    with open_source(path) as source:
        reading = read_names(source.members, unit, form, course.units())
        if not reading.parsed and not any(member.is_notebook for member in reading.unmatched):
            raise DownloadRefusedError(str(path), "there is no submission in it")
        notes = _notes(source, reading)
        plan = make_plan(reading, unit, zone, roster=people, notes=notes, most=limits.submission_bytes)
        if dry_run:
            rows, left = _placed(course, unit, unpack(source, plan, unit, None, limits), None, limits, progress)
        else:
            with scratch_folder(course) as scratch:
                unpacked = unpack(source, plan, unit, scratch, limits)
                origin = (reading.form.name, path.name)
                rows, left = _placed(course, unit, unpacked, origin, limits, progress)
    if people is not None and not dry_run:
        _name(course, people, _numbers(people, plan, reading.form))
    shown = "UTC" if reading.form.name == "folder" else zone.name
    return Summary(unit, reading.form.title, shown, rows, left, plan.missing, plan.ignored)


def _zone(course: Course, named: str | None) -> Zone:
    """The zone of local times: the one that is asked for, or the configuration's, or the machine's."""
    if named is not None:
        return named_zone(named)
    config = course.config()
    found = config["LatePolicy"].get("timezone") if "LatePolicy" in config else None
    return named_zone(found) if isinstance(found, str) else system_zone()


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise RosterError(str(path), "it is no file", "give a CSV file")
            return stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise RosterError(str(path), os.strerror(error.errno or 0), "give a CSV file that can be read") from error


def _require_elsewhere(course: Course, path: Path) -> None:
    own = [course.submitted.resolve(), attempts_root(course).resolve()]
    place = path.resolve()
    if any(place == folder or folder in place.parents for folder in own):
        raise DownloadRefusedError(str(path), "submissions are kept there once they are collected")


def _notes(source: Source, reading: Reading) -> dict[str, str]:
    """The beginnings of the texts that lie beside submissions, by path."""
    notes = (parsed.member for parsed in reading.parsed if parsed.note)
    return {note.path: b"".join(source.read(note, _NOTE_BYTES)).decode("utf-8", "replace") for note in notes}


def _placed(
    course: Course,
    unit: str,
    unpacked: Unpacked,
    origin: tuple[str, str] | None,
    limits: Limits,
    progress: Callable[[int, int], None] | None,
) -> tuple[tuple[Row, ...], tuple[LeftOut, ...]]:
    """Move all learners' notebooks into place; without an ``origin``, say what would be done."""
    rows: list[Row] = []
    left = list(unpacked.plan.left_out)
    entries = unpacked.plan.entries
    for count, entry in enumerate(entries, start=1):
        found = _one(course, unit, entry, unpacked, origin, limits)
        if isinstance(found, Row):
            rows.append(found)
        else:
            files = tuple(attempt.member.path for attempt in entry.attempts)
            left.append(LeftOut(entry.name or entry.login or entry.learner, files, found))
        if progress is not None:
            progress(count, len(entries))
    return tuple(rows), tuple(left)


def _one(
    course: Course, unit: str, entry: Entry, unpacked: Unpacked, origin: tuple[str, str] | None, limits: Limits
) -> Row | str:
    """Move a learner's notebooks into place: what was done, or why nothing was."""
    try:
        if origin is not None:
            recover(course, entry, unit, limits)
        known = known_of(course, entry.learner, unit, limits)
        reason = somebody_else(entry, known)
        if reason:
            return reason
        steps = steps_for(entry, known)
        if origin is not None:
            if steps:
                place(course, unit, entry, steps, unpacked.folders)
            write_record(course, unit, entry, known, steps, *origin)
        return _row(entry, known, steps)
    except InvalidLearnerError as error:
        return str(error).rstrip(".")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            return f"the folder of {entry.learner!r} in grader/var is a link or a file; move it away"
        raise CannotPlaceError(f"{entry.learner!r}: {os.strerror(error.errno or 0)}") from error


def _row(entry: Entry, known: Known, steps: tuple[Step, ...]) -> Row:
    newest = entry.newest
    kinds = {step.kind: step for step in steps}
    if "place" in kinds:
        done = "replaced an earlier one" if kinds["place"].folder else "collected"
    elif "date" in kinds:
        done = "time added"
    else:
        done = "kept as an earlier attempt" if any(step.attempt is newest for step in steps) else "unchanged"
        done = "earlier attempts added" if steps and done == "unchanged" else done
    before = len(known.attempts) + bool(known.submission or known.blocked)
    added = sum(step.kind != "date" for step in steps)
    return Row(entry.learner, newest.member.path, newest.time, before + added, newest.late, done, entry.beside)


def _name(course: Course, roster: Roster, numbers: dict[str, str]) -> None:
    """Put the learners of a list into the gradebook, in one transaction; what the list does not say stays.

    ``numbers`` are the LMS's own; one that the gradebook has already stays too.
    """
    from nbgrader.api import Gradebook, Student
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
            known = {student.id: student for student in gradebook.students}
            for person in roster.people:
                student = known.get(person.id)
                if student is None:
                    student = Student(id=person.id)
                    gradebook.db.add(student)
                fields = {"first_name": person.first, "last_name": person.last, "email": person.email}
                if not student.lms_user_id:
                    fields["lms_user_id"] = numbers.get(person.id, "")
                for field, value in fields.items():
                    if value and getattr(student, field) != value:
                        setattr(student, field, value)
            gradebook.db.commit()
    except SQLAlchemyError as error:
        raise LearnersNotNamedError(str(error)) from error


def _numbers(roster: Roster, plan: Plan, form: Form) -> dict[str, str]:
    """The number that the LMS gave a learner: in the download's names, or in a column of the list."""
    columns = ("lms", form.number)
    listed = {person.id: value for person in roster.people for kind, value in person.numbers if kind in columns}
    return listed | {entry.learner: entry.lms for entry in plan.entries if entry.lms}
