"""Times of handing in as downloads write them, in UTC."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

from grader.exceptions import UnknownZoneError

__all__ = ["Zone", "in_utc", "named_zone", "system_zone", "written"]

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DIGITS = re.compile(r"(\d{4})-(\d\d)-(\d\d)-(\d\d)-(\d\d)-(\d\d)")
_BRIGHTSPACE = re.compile(
    r"([A-Z][a-z]{2})[a-z]*\.? (\d{1,2}), (\d{4}) (\d{1,2})(\d\d) ?([AaPp])\.?[Mm]\.?", re.ASCII
)
_MOODLE = re.compile(
    r"(?:[^\W\d]+, )?"
    r"(?:(?P<day>\d{1,2}) (?P<month>[^\W\d]{3})[^\W\d]*|(?P<month2>[^\W\d]{3})[^\W\d]* (?P<day2>\d{1,2})),? "
    r"(?P<year>\d{4}), (?P<hour>\d{1,2}):(?P<minute>\d\d)(?:\s(?P<half>[AaPp])[Mm])?"
)
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)?"
    r"(?: ?(?P<zone>Z|UTC|[A-Za-z_]+(?:/[A-Za-z_+-]+){1,2})| ?(?P<sign>[+-])(?P<h>\d\d):?(?P<m>\d\d))?",
    re.ASCII,
)


@dataclass(frozen=True)
class Zone:
    """A time zone with the name under which it is shown; without ``rules`` it is the machine's own."""

    name: str
    rules: tzinfo | None = None

    def utc(self, local: datetime) -> datetime:
        """A local time in UTC. Of the two readings of an hour that the clocks repeat, it is the earlier.

        Raises:
            OverflowError: the time is outside of the calendar.
        """
        return local.replace(tzinfo=self.rules).astimezone(UTC)


def named_zone(name: str) -> Zone:
    """The time zone of a name such as Europe/Berlin.

    Raises:
        UnknownZoneError: there is none of that name.
    """
    try:
        return Zone(name, ZoneInfo(name))
    except (OSError, ValueError, KeyError) as error:
        raise UnknownZoneError(name) from error


def system_zone() -> Zone:
    """The machine's own time zone, under its name where that can be found."""
    place = os.path.realpath("/etc/localtime").partition("zoneinfo/")[2]
    for name in (os.environ.get("TZ", ""), place):
        if name and not Path(name).is_absolute():
            try:
                return Zone(name, ZoneInfo(name))
            except (OSError, ValueError, KeyError):
                continue
    return Zone("this machine's time zone")


def in_utc(text: str, zone: Zone) -> datetime | None:
    """The time that a text gives, in one of the forms known here; None where it gives none.

    Known are Blackboard's 2026-11-30-14-05-09, Brightspace's "Nov 30, 2026 205 PM", Moodle's "Monday, 30 November 2026,
    2:05 PM" and nbgrader's "2026-11-30 14:05:09 UTC". A time without a zone is one of ``zone``; nbgrader's is UTC.
    """
    for pattern, reader in _READERS:
        found = pattern.fullmatch(text.strip())
        if found:
            try:
                return reader(found, zone)
            except (ValueError, OverflowError, UnknownZoneError):
                return None
    return None


def written(time: datetime) -> str:
    """A time as nbgrader keeps it in timestamp.txt."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')} UTC"


def _digits(found: re.Match[str], zone: Zone) -> datetime:
    year, month, day, hour, minute, second = map(int, found.groups())
    return zone.utc(datetime(year, month, day, hour, minute, second))


def _brightspace(found: re.Match[str], zone: Zone) -> datetime:
    month, day, year, hour, minute, half = found.groups()
    return zone.utc(datetime(int(year), _month(month), int(day), _hour(hour, half), int(minute)))


def _moodle(found: re.Match[str], zone: Zone) -> datetime:
    part = found.groupdict()
    day, month = part["day"] or part["day2"], part["month"] or part["month2"]
    hour = _hour(part["hour"], part["half"])
    return zone.utc(datetime(int(part["year"]), _month(month), int(day), hour, int(part["minute"])))


def _iso(found: re.Match[str], _zone: Zone) -> datetime:
    year, month, day, hour, minute = map(int, found.groups()[:5])
    fraction = int((found[7] or "0").ljust(6, "0"))
    local = datetime(year, month, day, hour, minute, int(found[6] or 0), fraction)
    if found["sign"]:
        offset = timedelta(hours=int(found["h"]), minutes=int(found["m"]))
        return local.replace(tzinfo=timezone(-offset if found["sign"] == "-" else offset)).astimezone(UTC)
    name = found["zone"]
    return local.replace(tzinfo=UTC) if name in (None, "Z", "UTC") else named_zone(name).utc(local)


def _month(name: str) -> int:
    return _MONTHS.index(name.lower()) + 1


def _hour(hour: str, half: str | None) -> int:
    if half is None:
        return int(hour)
    if not 1 <= int(hour) <= 12:
        raise ValueError(hour)
    return int(hour) % 12 + (12 if half in "Pp" else 0)


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Zone], datetime]], ...] = (
    (_DIGITS, _digits),
    (_BRIGHTSPACE, _brightspace),
    (_MOODLE, _moodle),
    (_ISO, _iso),
)
