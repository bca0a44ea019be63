"""When units are due: points in time as people write them, and what the gradebook has of them.

The gradebook keeps times in UTC without a zone, as nbgrader does.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from grader.course import Course
from grader.exceptions import BadTimeError, GradebookUnwritableError
from grader.policy import instants, time_zone

__all__ = ["When", "due_of", "local_text", "parse_stamp", "parse_when", "set_due", "utc_text"]

_YEARS = range(1970, 3000)
_WHEN = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)[ T](?P<time>\d\d:\d\d(:\d\d(\.\d{1,9})?)?) *"
    r"(?P<zone>Z|[+-]\d\d:?\d\d|[A-Za-z][A-Za-z0-9_+/-]*)?",
    re.ASCII,
)
_HOW = "write it as 2026-11-30 23:59, with a time zone behind it where it is not the course's"


@dataclass(frozen=True)
class When:
    """A point in time as it was written, in UTC; ``earlier`` where the clock shows that time twice in this zone."""

    utc: datetime
    zone: str
    earlier: datetime | None = None

    @property
    def twice(self) -> bool:
        """Whether the clock shows that time twice; ``utc`` is the later one then."""
        return self.earlier is not None


def parse_when(text: str, zone: str) -> When:
    """A local time such as 2026-11-30 23:59; ``zone`` counts where the text names none.

    Raises:
        BadTimeError: it cannot be read, its zone is unknown, or the clocks leave this time out.
    """
    text = " ".join(text[:200].split())
    found = _WHEN.fullmatch(text)
    if found is None:
        raise BadTimeError(text, _HOW)
    try:
        local = datetime.fromisoformat(f"{found['date']} {found['time']}")
    except ValueError as error:
        raise BadTimeError(text, f"{error}; {_HOW}") from error
    if local.year not in _YEARS:
        raise BadTimeError(text, f"the year {local.year} is none that a course is held in; {_HOW}")
    named = found["zone"] or zone
    if named[0] in "+-":
        return When((local - _offset(text, named)).replace(tzinfo=UTC), named)
    named = "UTC" if named == "Z" else named
    place = time_zone(named)
    meant = {
        instant for instant in instants(local, place) if instant.astimezone(place).replace(tzinfo=None) == local
    }
    if not meant:
        before, after = sorted(instant.astimezone(place) for instant in instants(local, place))
        raise BadTimeError(
            text,
            f"the clocks in {named} are put forward over it; write {before:%H:%M}, or {after:%H:%M}, or another time",
        )
    return When(max(meant), named, min(meant) if len(meant) > 1 else None)


def parse_stamp(text: str) -> datetime:
    """The time of handing in as a file has it, in UTC and without zone, as the gradebook keeps it.

    A time without a zone is in UTC. Of a time that the clock shows twice, the earlier one is taken, for the learner.

    Raises:
        BadTimeError: it cannot be read, its zone is unknown, or the clocks leave this time out.
    """
    when = parse_when(text, "UTC")
    return (when.earlier or when.utc).replace(tzinfo=None)


def _offset(text: str, written: str) -> timedelta:
    hours, minutes = int(written[1:3]), int(written[-2:])
    if hours > 14 or minutes > 59:
        raise BadTimeError(text, f"{written} is no distance from UTC; {_HOW}")
    distance = timedelta(hours=hours, minutes=minutes)
    return -distance if written[0] == "-" else distance


def local_text(utc: datetime, zone: str) -> str:
    """A point in time as the clock of a zone shows it, with the zone's name."""
    place = time_zone(zone)
    try:
        shown = utc.replace(tzinfo=UTC).astimezone(place)
    except OverflowError:
        shown, zone = utc, "UTC"
    seconds = ":%S" if shown.second else ""
    return f"{shown.strftime(f'%Y-%m-%d %H:%M{seconds}')} {zone}"


def utc_text(utc: datetime) -> str:
    """A point in time for other programs: as ISO 8601 has it, in UTC."""
    return utc.replace(tzinfo=None).isoformat() + "Z"


def due_of(course: Course, unit: str) -> datetime | None:
    """When a unit is due, in UTC; None where the gradebook has no due time.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotReleasedError: the gradebook does not know it.
    """
    from grader.standing import Standing

    course.require_unit(unit)
    with Standing(course, unit) as standing:
        due = standing.due
    return None if due is None else due.replace(tzinfo=UTC)


def set_due(course: Course, unit: str, due: datetime | None) -> None:
    """Record in the gradebook when a unit is due; the time carries its zone, None takes it away.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotReleasedError: the gradebook does not know it.
        GradebookLockedError, GradebookUnreadableError, GradebookUnwritableError: it cannot be opened or written.
    """
    from nbgrader.api import Gradebook, InvalidEntry
    from sqlalchemy.exc import DatabaseError

    due_of(course, unit)
    naive = None if due is None else due.astimezone(UTC).replace(tzinfo=None)
    try:
        with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
            gradebook.update_or_create_assignment(unit, duedate=naive)
    except (DatabaseError, InvalidEntry) as error:
        raise GradebookUnwritableError(str(getattr(error, "orig", error))) from error
