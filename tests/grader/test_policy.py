"""What handing in late costs: tables computed by hand, days across a change of the clocks, and what always holds."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets.config import Config

from grader.course import Course
from grader.exceptions import BadPolicyError
from grader.policy import LateRule, days_late, penalty, require_policy, rule_of
from tests.helpers import ROOT

MINUTE, HOUR, DAY = 60, 3600, 86_400
BERLIN = ZoneInfo("Europe/Berlin")
TENTH = LateRule(grace_minutes=15, per_day=0.1, floor=0.5)
"""A tenth of the score for each day begun, after a quarter of an hour; half of the score is kept."""


# ------------------------------------------------------------------------------------- tables by hand


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-DAY, 0),
        (0, 0),
        (15 * MINUTE, 0),
        (15 * MINUTE + 1, 4),
        (DAY, 4),
        (DAY + 1, 8),
        (2 * DAY, 8),
        (49 * HOUR, 12),
        (4 * DAY, 16),
        (5 * DAY, 20),
        (6 * DAY, 20),
        (400 * DAY, 20),
    ],
)
def test_each_day_begun_costs_a_tenth_of_the_score(seconds: float, expected: float) -> None:
    assert penalty(40, 50, seconds, TENTH) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(15 * MINUTE, 0), (6 * HOUR, 1), (12 * HOUR, 2), (DAY, 4), (36 * HOUR, 6), (10 * DAY, 20)],
)
def test_a_day_may_count_in_parts(seconds: float, expected: float) -> None:
    assert penalty(40, 50, seconds, replace(TENTH, per_started_day=False)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("score", "seconds", "expected"),
    [(40, HOUR, 5), (40, 25 * HOUR, 10), (40, 5 * DAY, 20), (8, HOUR, 4), (6, HOUR, 3), (0, DAY, 0)],
)
def test_a_share_of_the_maximum_is_the_same_for_every_score_down_to_the_floor(
    score: float, seconds: float, expected: float
) -> None:
    assert penalty(score, 50, seconds, replace(TENTH, of="maximum")) == pytest.approx(expected)


def test_without_a_floor_all_is_lost_in_the_end() -> None:
    rule = LateRule(per_day=0.25)
    assert [penalty(40, 50, days * DAY, rule) for days in (1, 3, 4, 5)] == [10, 30, 40, 40]


def test_a_floor_of_one_takes_nothing() -> None:
    assert penalty(40, 50, 30 * DAY, LateRule(per_day=1.0, floor=1.0)) == 0


def test_a_rule_that_declares_nothing_takes_nothing() -> None:
    assert penalty(40, 50, 30 * DAY, LateRule()) == 0


# ------------------------------------------------------------------------------------- what always holds

shares = st.floats(0, 1)
rules = st.builds(
    LateRule,
    grace_minutes=st.floats(0, 5000),
    per_day=shares,
    floor=shares,
    of=st.sampled_from(["score", "maximum"]),
    per_started_day=st.booleans(),
    timezone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"]),
)
scores = st.floats(0, 1000)
late = st.floats(-DAY, 500 * DAY)
dues = st.none() | st.datetimes(datetime(2010, 1, 1), datetime(2030, 1, 1))


@settings(deadline=None)
@given(scores, scores, late, late, rules, dues)
def test_to_be_less_late_never_costs_more(
    score: float, maximum: float, one: float, other: float, rule: LateRule, due: datetime | None
) -> None:
    less, more = sorted((one, other))
    assert penalty(score, maximum, less, rule, due) <= penalty(score, maximum, more, rule, due) + 1e-9


@settings(deadline=None)
@given(scores, scores, late, rules, dues)
def test_the_penalty_is_within_the_score_and_the_floor_is_kept(
    score: float, maximum: float, seconds: float, rule: LateRule, due: datetime | None
) -> None:
    found = penalty(score, maximum, seconds, rule, due)
    assert 0 <= found <= score
    assert score - found >= rule.floor * score - 1e-9


@settings(deadline=None)
@given(scores, scores, rules, dues, shares)
def test_within_the_grace_nothing_is_lost(
    score: float, maximum: float, rule: LateRule, due: datetime | None, part: float
) -> None:
    assert penalty(score, maximum, part * rule.grace_minutes * MINUTE, rule, due) == 0


@settings(deadline=None)
@given(st.datetimes(datetime(2010, 1, 1), datetime(2030, 1, 1)), st.integers(1, 400))
def test_the_same_time_on_the_clock_days_later_is_that_many_days_late(due: datetime, days: int) -> None:
    local = due.replace(tzinfo=UTC).astimezone(BERLIN)
    if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
        return
    later = (local.replace(tzinfo=None) + timedelta(days=days)).replace(tzinfo=BERLIN)
    if later.utcoffset() != later.replace(fold=1).utcoffset():
        return
    seconds = (later.astimezone(UTC) - due.replace(tzinfo=UTC)).total_seconds()
    assert days_late(seconds, due, "Europe/Berlin") == days


# --------------------------------------------------------------------------------- changes of the clocks


@pytest.mark.parametrize(
    ("due", "hours", "expected"),
    [
        # Due on Saturday at 20:00; the clocks go back in the night: at 20:00 on Sunday, 25 hours have passed.
        (datetime(2026, 10, 24, 18, 0), 25, 1.0),
        (datetime(2026, 10, 24, 18, 0), 24, 24 / 25),
        (datetime(2026, 10, 24, 18, 0), 49, 2.0),
        # Due on Saturday at 20:00; the clocks are put forward: at 20:00 on Sunday, 23 hours have passed.
        (datetime(2026, 3, 28, 19, 0), 23, 1.0),
        (datetime(2026, 3, 28, 19, 0), 24, 1 + 1 / 24),
        (datetime(2026, 3, 28, 19, 0), 47, 2.0),
        # No change between.
        (datetime(2026, 6, 1, 18, 0), 24, 1.0),
    ],
)
def test_a_day_over_a_change_of_the_clocks_is_one_day(due: datetime, hours: int, expected: float) -> None:
    assert days_late(hours * HOUR, due, "Europe/Berlin") == pytest.approx(expected, abs=1e-12)


def test_twenty_five_hours_over_the_change_cost_one_day_and_a_second_more_costs_two() -> None:
    rule = LateRule(per_day=0.1, timezone="Europe/Berlin")
    due = datetime(2026, 10, 24, 21, 59)
    assert penalty(100, 100, 25 * HOUR, rule, due) == pytest.approx(10)
    assert penalty(100, 100, 25 * HOUR + 1, rule, due) == pytest.approx(20)
    assert penalty(100, 100, 25 * HOUR, replace(rule, timezone="UTC"), due) == pytest.approx(20)


def test_a_due_time_that_the_next_day_s_clock_leaves_out_still_ends_a_day() -> None:
    # Due at 02:30 on the 28th of March; on the 29th the clock jumps from 02:00 to 03:00, and 02:30 is taken for 03:30.
    due = datetime(2026, 3, 28, 1, 30)
    assert days_late(24 * HOUR, due, "Europe/Berlin") == 1
    assert days_late(23.5 * HOUR, due, "Europe/Berlin") < 1


@pytest.mark.parametrize("seconds", [1e9, 2.5e11])
def test_a_time_beyond_the_calendar_is_late_all_the_same(seconds: float) -> None:
    found = days_late(seconds, datetime(2026, 1, 1), "Pacific/Kiritimati")
    assert found == pytest.approx(seconds / DAY, rel=1e-6)


# ----------------------------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("setting", "value", "advice"),
    [
        ("grace_minutes", -1, "a number of minutes, 0 or more"),
        ("grace_minutes", math.nan, "a number of minutes"),
        ("per_day", 10, "a share between 0 and 1"),
        ("per_day", "0.1", "a share between 0 and 1"),
        ("per_day", True, "a share between 0 and 1"),
        ("floor", 1.5, "a share between 0 and 1"),
        ("of", "points", '"score" or "maximum"'),
        ("per_started_day", "yes", "True or False"),
        ("timezone", "Berlin", "the name of a time zone"),
        ("timezone", "../UTC", "the name of a time zone"),
        ("timezone", None, "the name of a time zone"),
    ],
)
def test_a_setting_with_a_bad_value_is_named(setting: str, value: object, advice: str) -> None:
    with pytest.raises(BadPolicyError) as caught:
        rule_of(Config({"LatePolicy": {setting: value}}))
    assert str(caught.value).startswith(f"in nbgrader_config.py, c.LatePolicy.{setting} is ")
    assert advice in str(caught.value)


def test_a_setting_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(
        BadPolicyError, match=r"no setting c\.LatePolicy\.perday; the settings are grace_minutes, per_"
    ):
        rule_of(Config({"LatePolicy": {"perday": 0.1}}))


@pytest.mark.parametrize(
    "config", [None, Config(), Config({"LatePolicy": {}})], ids=["none", "empty", "no-setting"]
)
def test_no_setting_is_no_penalty(config: Any) -> None:
    assert rule_of(config) == LateRule()


def test_the_course_takes_nothing_off_until_a_rule_is_declared() -> None:
    assert rule_of(Course(ROOT).config()).per_day == 0


def test_a_policy_is_looked_at_without_nbgrader(tmp_path: Path) -> None:
    import subprocess
    import sys

    look = (
        "import sys; from pathlib import Path; from traitlets.config import Config; from grader.course import Course; "
        "from grader.policy import require_policy; require_policy(Course(Path(sys.argv[1])), Config()); "
        "print('nbgrader' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_a_policy_with_a_fault_is_refused_before_grading(tmp_path: Path) -> None:
    with pytest.raises(BadPolicyError):
        require_policy(Course(tmp_path), Config({"LatePolicy": {"floor": 2}}))
