"""Points in time as people write them, in which zone they are meant, and the unit's due time in the gradebook."""

import json
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.course import Course
from grader.deadlines import local_text, parse_stamp, parse_when
from grader.demo_class import demo_class
from grader.exceptions import BadTimeError
from tests.grader.engine.courses import UNIT
from tests.grader.invoked import invoked
from tests.helpers import CourseCopy, said_once

NAIVE_DUE = demo_class(UNIT).due.replace(tzinfo=None)


def utc(*numbers: int) -> datetime:
    return datetime(*numbers, tzinfo=UTC)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-30 23:59", utc(2026, 11, 30, 22, 59)),
        ("2026-07-01T23:59:30", utc(2026, 7, 1, 21, 59, 30)),
        ("2026-11-30 23:59 Europe/Berlin", utc(2026, 11, 30, 22, 59)),
        ("2026-11-30 23:59 America/New_York", utc(2026, 12, 1, 4, 59)),
        ("2026-11-30 23:59 UTC", utc(2026, 11, 30, 23, 59)),
        ("2026-11-30 23:59Z", utc(2026, 11, 30, 23, 59)),
        ("2026-11-30 23:59 +05:30", utc(2026, 11, 30, 18, 29)),
        ("2026-11-30 23:59-0330", utc(2026, 12, 1, 3, 29)),
        ("  2026-11-30   23:59 ", utc(2026, 11, 30, 22, 59)),
    ],
)
def test_a_time_is_read_in_its_zone(text: str, expected: datetime) -> None:
    when = parse_when(text, "Europe/Berlin")
    assert when.utc == expected
    assert not when.twice


def test_of_a_time_that_the_clock_shows_twice_the_later_is_taken() -> None:
    when = parse_when("2026-10-25 02:30", "Europe/Berlin")
    assert when.utc == utc(2026, 10, 25, 1, 30)
    assert when.twice


def test_a_time_that_the_clock_leaves_out_is_refused_with_both_neighbours() -> None:
    with pytest.raises(BadTimeError, match=r"Europe/Berlin are put forward over it; write 01:30, or 03:30"):
        parse_when("2026-03-29 02:30", "Europe/Berlin")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tomorrow",
        "2026-11-30",
        "30.11.2026 23:59",
        "2026-02-30 23:59",
        "2026-11-30 24:00",
        "2026-11-30 23:59 Berlin",
        "2026-11-30 23:59 ../../etc/passwd",
        "2026-11-30 23:59 Europe",
        "2026-11-30 23:59 +25:00",
        "2026-11-30 23:59 +01:99",
        "0001-01-01 00:00",
        "9999-12-31 23:59 -12:00",
        "2026-11-30 23:59\0",
        "٢٠٢٦-11-30 23:59",
    ],
)
def test_what_is_no_time_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(BadTimeError) as caught:
        parse_when(text, "Europe/Berlin")
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@settings(deadline=None)
@given(st.datetimes(datetime(1970, 1, 2), datetime(2999, 1, 1)))
def test_a_time_that_is_shown_is_read_back_or_comes_twice(moment: datetime) -> None:
    moment = moment.replace(microsecond=0)
    when = parse_when(local_text(moment, "Europe/Berlin"), "UTC")
    assert when.utc.replace(tzinfo=None) == moment or when.twice


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-15 22:10:00 UTC", datetime(2026, 1, 15, 22, 10)),
        ("2026-01-15 22:10:00", datetime(2026, 1, 15, 22, 10)),
        ("2026-01-15 22:10:00.25 UTC", datetime(2026, 1, 15, 22, 10, 0, 250_000)),
        ("2026-01-15 22:10:00 +0100", datetime(2026, 1, 15, 21, 10)),
        ("2026-01-15 22:10:00 -05:00", datetime(2026, 1, 16, 3, 10)),
        ("2026-07-15T22:10:00 Europe/Berlin", datetime(2026, 7, 15, 20, 10)),
        # The clock shows it twice, and the learner is believed to have been earlier.
        ("2026-10-25 02:30 Europe/Berlin", datetime(2026, 10, 25, 0, 30)),
    ],
)
def test_the_time_of_handing_in_is_read_in_utc(text: str, expected: datetime) -> None:
    assert parse_stamp(text) == expected


@pytest.mark.parametrize("text", ["2026-07-15 22:10:00 CEST", "2026-03-29 02:30 Europe/Berlin", "at night"])
def test_a_time_of_handing_in_that_nothing_is_known_of_is_refused(text: str) -> None:
    with pytest.raises(BadTimeError):
        parse_stamp(text)


# ------------------------------------------------------------------------------------------------ due times


@pytest.fixture(scope="module")
def small(graded_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """The graded class in a course with a time zone."""
    copy = CourseCopy(Path(shutil.copytree(graded_course.root, tmp_path_factory.mktemp("due") / "course")))
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.LatePolicy.timezone = "Europe/Berlin"\n')
    return copy


@pytest.fixture
def copy(small: CourseCopy, tmp_path: Path) -> CourseCopy:
    return CourseCopy(Path(shutil.copytree(small.root, tmp_path / "course")))


@pytest.fixture
def course(copy: CourseCopy) -> Course:
    return Course(copy.root)


def due(copy: CourseCopy, *arguments: str) -> subprocess.CompletedProcess[str]:
    return invoked(copy, "due", UNIT, *arguments)


@pytest.mark.slow
def test_the_due_time_is_shown_in_the_course_s_zone(copy: CourseCopy) -> None:
    assert due(copy).stdout == f"{UNIT} is due 2026-01-16 00:59 Europe/Berlin (2026-01-15 23:59 UTC).\n"
    assert json.loads(due(copy, "--json").stdout)["due"] == "2026-01-15T23:59:00Z"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("when", "utc"),
    [
        (["2026-11-30 23:59"], datetime(2026, 11, 30, 22, 59)),
        (["2026-11-30", "23:59", "America/New_York"], datetime(2026, 12, 1, 4, 59)),
        (["2026-07-01 12:00 UTC"], datetime(2026, 7, 1, 12, 0)),
    ],
)
def test_the_due_time_is_set_in_utc(copy: CourseCopy, course: Course, when: list[str], utc: datetime) -> None:
    done = due(copy, *when)
    assert done.returncode == 0, done.stderr
    assert f"`grader diff {UNIT}` shows what changes" in done.stdout
    assert duedate(course) == utc


def duedate(course: Course) -> datetime | None:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        found: datetime | None = gradebook.find_assignment(UNIT).duedate
        return found


@pytest.mark.slow
def test_of_a_time_that_comes_twice_the_later_is_set_and_said(copy: CourseCopy, course: Course) -> None:
    done = due(copy, "2026-10-25 02:30")
    assert "The clock shows that time twice; the later one was taken." in done.stdout.splitlines()
    assert duedate(course) == datetime(2026, 10, 25, 1, 30)


@pytest.mark.slow
def test_a_time_that_does_not_exist_is_refused_and_nothing_is_set(copy: CourseCopy, course: Course) -> None:
    done = due(copy, "2026-03-29 02:30")
    assert done.returncode == 1
    assert "put forward over it" in said_once(done.stderr)
    assert duedate(course) == NAIVE_DUE


@pytest.mark.slow
def test_a_due_time_can_be_taken_away(copy: CourseCopy, course: Course) -> None:
    assert due(copy, "--remove").stdout.startswith(f"{UNIT} has no due time.\n")
    assert duedate(course) is None


@pytest.mark.slow
def test_a_unit_that_was_never_released_has_no_due_time_and_gets_no_gradebook(
    copy: CourseCopy, course: Course
) -> None:
    (course.var / "gradebook.db").unlink()
    for arguments in ([], ["2026-11-30 23:59"]):
        done = due(copy, *arguments)
        assert done.returncode == 1
        assert said_once(done.stderr).startswith(f"error: the gradebook does not know the unit {UNIT!r} yet")
    assert not (course.var / "gradebook.db").exists()
