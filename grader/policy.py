"""What handing in late costs: a declared rule, and the days of lateness in the calendar of the course's time zone.

The rule stands in nbgrader_config.py as `c.LatePolicy`; `grader.late` is the plug-in through which nbgrader and the
engine apply it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from grader.course import Course
from grader.exceptions import BadPolicyError, BadTimeError, UnknownPolicyError

__all__ = [
    "SECTION",
    "LateRule",
    "course_zone",
    "days_late",
    "instants",
    "penalty",
    "require_policy",
    "rule_of",
    "time_zone",
]

SECTION = "LatePolicy"
"""Name of the rule's section in nbgrader_config.py."""

_DAY = timedelta(days=1)


@dataclass(frozen=True)
class LateRule:
    """How much a late submission loses; what is declared as `c.LatePolicy`.

    Within ``grace_minutes`` nothing is lost; after that, lateness counts from the due time. Each day costs
    ``per_day`` as a share ``of`` the score reached ("score") or of the most that can be reached ("maximum"). With
    ``per_started_day`` a day that has begun counts as a whole one, otherwise as the part of it that is over. The share
    ``floor`` of the score reached is kept, however late. Days are those of the calendar in ``timezone``.

    Raises:
        BadPolicyError: a value is none that the setting can have.
    """

    grace_minutes: float = 0.0
    per_day: float = 0.0
    floor: float = 0.0
    of: str = "score"
    per_started_day: bool = True
    timezone: str = "UTC"

    def __post_init__(self) -> None:
        _require_number("grace_minutes", self.grace_minutes, most=math.inf, what="a number of minutes, 0 or more")
        _require_number("per_day", self.per_day, most=1.0, what="a share between 0 and 1, such as 0.1 for 10 %")
        _require_number("floor", self.floor, most=1.0, what="a share between 0 and 1, such as 0.5 for 50 %")
        if self.of not in ("score", "maximum"):
            raise BadPolicyError("of", self.of, '"score" or "maximum"')
        if not isinstance(self.per_started_day, bool):
            raise BadPolicyError("per_started_day", self.per_started_day, "True or False")
        try:
            time_zone(self.timezone)
        except BadTimeError:
            raise BadPolicyError(
                "timezone", self.timezone, 'the name of a time zone, such as "Europe/Berlin"'
            ) from None


def _require_number(setting: str, value: Any, *, most: float, what: str) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 <= value <= most:
        raise BadPolicyError(setting, value, what)


def rule_of(config: Any) -> LateRule:
    """The rule that a traitlets configuration declares; one that takes nothing off where it declares none.

    Raises:
        BadPolicyError: a setting is unknown, or has a value that it cannot have.
    """
    section: Mapping[str, Any] = config[SECTION] if config is not None and SECTION in config else {}
    known = [field.name for field in fields(LateRule)]
    for name in section:
        if name not in known:
            raise UnknownPolicyError(name, known)
    return LateRule(**section)


def require_policy(course: Course, config: Any) -> None:
    """See, before anything is graded by them, that the late policy and the file of extensions can be read.

    Raises:
        BadPolicyError: a setting of the policy is unknown, or has a value that it cannot have.
        BadExtensionsError: the file of extensions has a line that says nothing clear.
    """
    from grader.extensions import read_extensions

    read_extensions(course, rule_of(config).timezone)


def course_zone(course: Course) -> str:
    """The time zone in which a course's deadlines are meant.

    Raises:
        BadPolicyError: the policy in nbgrader_config.py has a fault.
    """
    return rule_of(course.config()).timezone


def penalty(
    score: float, maximum: float, seconds_late: float, rule: LateRule, due: datetime | None = None
) -> float:
    """Points to take off a score: from 0 to the score, and never more for being less late.

    ``due`` is the due time in UTC (with the learner's extension), for days of the calendar; without it a day has 24
    hours.
    """
    if score <= 0 or not rule.per_day or seconds_late <= rule.grace_minutes * 60:
        return 0.0
    days = days_late(seconds_late, due, rule.timezone)
    if rule.per_started_day:
        days = math.ceil(days)
    base = maximum if rule.of == "maximum" else score
    return max(0.0, min(rule.per_day * days * base, (1 - rule.floor) * score, score))


def days_late(seconds_late: float, due: datetime | None, timezone: str) -> float:
    """Days between the due time and so many seconds later, in the calendar of a time zone.

    From one day's due time on the clock to the next day's is one day, also when 23 or 25 hours lie between. ``due`` is
    in UTC; without it a day has 24 hours.
    """
    if seconds_late <= 0:
        return 0.0
    if due is not None:
        try:
            return _calendar_days(due, timedelta(seconds=seconds_late), ZoneInfo(timezone))
        except OverflowError:
            # Beyond the calendar, which ends with the year 9999.
            pass
    return seconds_late / _DAY.total_seconds()


def _calendar_days(due: datetime, late: timedelta, zone: ZoneInfo) -> float:
    start = due.replace(tzinfo=UTC)
    local = start.astimezone(zone).replace(tzinfo=None)

    def after(days: int) -> datetime:
        return start if days == 0 else max(instants(local + days * _DAY, zone))

    handed_in = start + late
    whole = max(0, late // _DAY - 2)
    while after(whole + 1) <= handed_in:
        whole += 1
    begun, over = after(whole), after(whole + 1)
    return whole + (handed_in - begun) / (over - begun)


def instants(local: datetime, zone: ZoneInfo) -> tuple[datetime, datetime]:
    """The two instants, in UTC, that a wall time may mean; they are equal but around a change of the clocks.

    Raises:
        OverflowError: the instant is beyond the calendar.
    """
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    return first, second


def time_zone(name: object) -> ZoneInfo:
    """A time zone by its name, such as Europe/Berlin.

    Raises:
        BadTimeError: there is no zone of this name.
    """
    try:
        if not isinstance(name, str) or len(name) > 100:
            raise ValueError(name)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        shown = str(name)[:100]
        raise BadTimeError(
            shown, "it is not the name of a time zone; write one such as Europe/Berlin or UTC"
        ) from None
