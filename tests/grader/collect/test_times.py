"""Times as downloads write them."""

from datetime import UTC, datetime

import pytest

from grader.collect.times import Zone, in_utc, named_zone, system_zone, written
from grader.exceptions import UnknownZoneError

BERLIN = named_zone("Europe/Berlin")


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30-14-05-09", utc(2026, 11, 30, 13, 5, 9)),
        ("Nov 30, 2026 205 PM", utc(2026, 11, 30, 13, 5)),
        ("Sep 26, 2026 0741 PM", utc(2026, 9, 26, 17, 41)),
        ("Nov 30, 2026 1205 AM", utc(2026, 11, 29, 23, 5)),
        ("Nov 30, 2026 1205 PM", utc(2026, 11, 30, 11, 5)),
        ("Monday, 30 November 2026, 2:05 PM", utc(2026, 11, 30, 13, 5)),
        ("Wednesday, September 23, 2020, 9:00 PM", utc(2020, 9, 23, 19, 0)),
        ("Monday, 30 November 2026, 14:05", utc(2026, 11, 30, 13, 5)),
        ("Monday, 30 November 2026, 2:05\u202fPM", utc(2026, 11, 30, 13, 5)),
        ("2026-11-30 14:05:09 UTC\n", utc(2026, 11, 30, 14, 5, 9)),
        ("2026-11-30 14:05:09.5", utc(2026, 11, 30, 14, 5, 9, 500_000)),
        ("2026-11-30T14:05:09+05:30", utc(2026, 11, 30, 8, 35, 9)),
        ("2026-11-30 14:05 America/New_York", utc(2026, 11, 30, 19, 5)),
    ],
)
def test_a_time_is_read_in_utc(text: str, expected: datetime) -> None:
    assert in_utc(text, BERLIN) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "yesterday",
        "2026-13-30-14-05-09",
        "2026-02-30-14-05-09",
        "Nov 31, 2026 205 PM",
        "Foo 30, 2026 205 PM",
        "Nov 30, 2026 1305 PM",
        "0001-01-01-00-00-00",
        "9999-12-31 23:59 -12:00",
        "2026-11-30 14:05 Middle/Earth",
        "2026-11-30 14:05 ../../etc/passwd",
    ],
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert in_utc(text, BERLIN) is None


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2026-10-25-02-30-00", utc(2026, 10, 25, 0, 30)),
        ("2026-10-25-01-30-00", utc(2026, 10, 24, 23, 30)),
        ("2026-10-25-03-30-00", utc(2026, 10, 25, 2, 30)),
    ],
)
def test_of_an_hour_that_the_clocks_repeat_the_earlier_counts(local: str, expected: datetime) -> None:
    assert in_utc(local, BERLIN) == expected


def test_a_time_is_written_as_nbgrader_reads_it() -> None:
    from nbgrader.utils import parse_utc

    assert parse_utc(written(utc(2026, 11, 30, 14, 5, 9))) == datetime(2026, 11, 30, 14, 5, 9)


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../../etc/passwd", "/etc/localtime", "Europe"])
def test_a_zone_that_does_not_exist_is_named(name: str) -> None:
    with pytest.raises(UnknownZoneError, match="there is no time zone"):
        named_zone(name)


def test_the_machine_s_zone_follows_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert system_zone().name == "Asia/Tokyo"


def test_a_zone_without_rules_is_the_machine_s() -> None:
    local = datetime(2026, 7, 1, 12)
    assert Zone("here").utc(local) == local.astimezone(UTC)
