"""Extensions: who may hand in later than the class, kept in a table that a person can edit too.

The table is grader/var/extensions.csv, with the columns learner, unit, until or hours, and reason. It lies there, out
of version control, because reasons are personal. What it says is put into the gradebook's own column whenever a
submission is graded, so that formgrader and nbgrader count lateness in the same way. Without the file, extensions that
nbgrader's interface recorded stay; with it, it alone says who has one.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.deadlines import parse_when
from grader.engine.store import require_learner
from grader.exceptions import BadExtensionsError, BadTimeError, InvalidLearnerError
from grader.export.files import write_whole
from grader.policy import rule_of

__all__ = [
    "Extension",
    "Extensions",
    "extensions_of",
    "hours_of",
    "path_of",
    "read_extensions",
    "write_extensions",
]

COLUMNS = ("learner", "unit", "until", "hours", "reason")
MOST_BYTES = 20_000_000
MOST_HOURS = 87_600.0
"""Ten years."""


@dataclass(frozen=True)
class Extension:
    """One learner's extension for a unit: until a point in time (``utc``; ``until`` as written), or by hours."""

    learner: str
    unit: str
    until: str = ""
    hours: float | None = None
    reason: str = ""
    utc: datetime | None = None

    def beyond(self, due: datetime) -> timedelta | None:
        """How much later than a due time in UTC, without zone; None where it is not later."""
        by_hours = timedelta(hours=self.hours or 0.0)
        more = by_hours if self.utc is None else self.utc.replace(tzinfo=None) - due
        return more if more > timedelta(0) else None


@dataclass(frozen=True)
class Extensions:
    """All extensions of a course; ``there`` is whether a file says who has one."""

    there: bool
    by_learner: Mapping[tuple[str, str], Extension]

    def of(
        self, learner: str, unit: str, due: datetime | None, recorded: timedelta | None = None
    ) -> timedelta | None:
        """What the gradebook should record for a submission; ``recorded`` is what it does.

        ``due`` is the unit's due time in UTC, without zone. Where there is none, there can be no extension: nbgrader
        could not add the two.
        """
        if due is None:
            return None
        if not self.there:
            return recorded
        found = self.by_learner.get((learner, unit))
        return None if found is None else found.beyond(due)


def path_of(course: Course) -> Path:
    """Where a course's extensions are kept."""
    return course.var / "extensions.csv"


def extensions_of(config: Any) -> Extensions:
    """The extensions of the course that a traitlets configuration belongs to; none without a configuration.

    Raises:
        BadExtensionsError: the file has a line that says nothing clear.
        BadPolicyError: the late policy, which names the time zone, has a fault.
    """
    root = None if config is None or "CourseDirectory" not in config else config.CourseDirectory.get("root")
    if not root:
        return Extensions(False, {})
    course = Course(Path(root))
    found = read_extensions(course, rule_of(config).timezone)
    return Extensions(path_of(course).is_file(), {(one.learner, one.unit): one for one in found})


def read_extensions(course: Course, zone: str) -> list[Extension]:
    """The extensions of a course, as its file has them; ``zone`` counts for times without one.

    Raises:
        BadExtensionsError: a line says nothing clear.
    """
    path = path_of(course)
    shown = path.relative_to(course.root)
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadExtensionsError(shown, 0, f"it cannot be opened ({error.strerror})") from error
    if len(data) > MOST_BYTES:
        raise BadExtensionsError(shown, 0, f"it has more than {MOST_BYTES // 1_000_000} MB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadExtensionsError(shown, 0, "it is not in UTF-8; save it as CSV in UTF-8") from None
    return _read(text, shown, course.units(), zone)


def _read(text: str, shown: Path, units: list[str], zone: str) -> list[Extension]:
    head, _, _ = text.partition("\n")
    # Spreadsheets in many languages separate by semicolons.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in head else ",", strict=True)
    first: dict[tuple[str, str], int] = {}
    found = []
    columns: list[str] = []
    try:
        for fields in reader:
            cells = [field.strip() for field in fields]
            if not any(cells):
                continue
            if not columns:
                columns = [name.lower() for name in cells]
                _require_columns(columns, shown, reader.line_num)
                continue
            one = _extension(dict(zip(columns, cells, strict=False)), shown, reader.line_num, units, zone)
            before = first.setdefault((one.learner, one.unit), reader.line_num)
            if before != reader.line_num:
                raise BadExtensionsError(
                    shown, reader.line_num, f"{one.learner!a} has one for {one.unit!r} already, in line {before}"
                )
            found.append(one)
    except csv.Error as error:
        raise BadExtensionsError(shown, reader.line_num, f"it is no line of CSV ({error})") from error
    return found


def _require_columns(columns: list[str], shown: Path, line: int) -> None:
    unknown = [name for name in columns if name not in COLUMNS]
    if unknown or len(set(columns)) < len(columns):
        what = f"{unknown[0][:40]!a} is no column" if unknown else "a column is there twice"
        raise BadExtensionsError(shown, line, f"{what}; the first line has the columns {', '.join(COLUMNS)}")
    for needed in (("learner",), ("unit",), ("until", "hours")):
        if not set(needed) & set(columns):
            raise BadExtensionsError(shown, line, f"there is no column {' or '.join(needed)}")


def _extension(row: dict[str, str], shown: Path, line: int, units: list[str], zone: str) -> Extension:
    learner, unit = row.get("learner", ""), row.get("unit", "")
    until, hours = row.get("until", ""), row.get("hours", "")
    try:
        require_learner(learner)
    except InvalidLearnerError:
        raise BadExtensionsError(shown, line, f"{learner[:80]!a} can be no learner's id") from None
    if unit not in units:
        known = ", ".join(units) or "none yet"
        raise BadExtensionsError(shown, line, f"there is no unit {unit[:80]!a}; the units are: {known}")
    if bool(until) == bool(hours):
        what = "both until and hours" if until else "neither until nor hours"
        raise BadExtensionsError(shown, line, f"it gives {what}; give one of them")
    reason = row.get("reason", "")
    if hours:
        return Extension(learner, unit, hours=_hours(hours, shown, line), reason=reason)
    try:
        return Extension(learner, unit, until, reason=reason, utc=parse_when(until, zone).utc)
    except BadTimeError as error:
        raise BadExtensionsError(shown, line, f"until {until[:80]!a}: {error.why}") from None


def _hours(text: str, shown: Path, line: int) -> float:
    try:
        return hours_of(text)
    except ValueError:
        why = f"hours {text[:40]!a} is no number of hours above 0 and up to {MOST_HOURS:g}"
        raise BadExtensionsError(shown, line, why) from None


def hours_of(text: str) -> float:
    """A number of hours as written.

    Raises:
        ValueError: it is none that an extension can have.
    """
    hours = float(text)
    if not 0 < hours <= MOST_HOURS:
        raise ValueError(text)
    return hours


def write_extensions(course: Course, extensions: Iterable[Extension]) -> None:
    """Write the file of a course's extensions, whole or not at all, by learner and unit.

    Raises:
        CannotWriteError: the folder is closed, or the disk is full.
    """
    text = io.StringIO(newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for one in sorted(extensions, key=lambda one: (one.learner, one.unit)):
        hours = "" if one.hours is None else f"{one.hours:.10g}"
        table.writerow([one.learner, one.unit, one.until, hours, _defused(one.reason)])
    write_whole(path_of(course), text.getvalue().encode())


def _defused(reason: str) -> str:
    """A reason that no spreadsheet takes for a formula, on one line."""
    shown = " ".join(reason.split())
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown
