"""Distribution, difficulty, discrimination and seconds, against values by hand and numpy's own."""

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report.data import VISIBLE, Step, Test
from grader.report.statistics import (
    FEWEST,
    OWN_CELLS,
    WHOLE,
    StepStatistics,
    cell_statistics,
    correlation,
    discrimination,
    distribution,
    interval,
    slowest,
    step_statistics,
)
from tests.grader.report.classes import a_class, a_learner, a_step


def array(*values: float) -> "np.ndarray[Any, np.dtype[np.float64]]":
    return np.array(values, float)


# ------------------------------------------------------------------------------------------------ distribution


def test_the_quartiles_and_the_median_of_five_scores() -> None:
    found = distribution([10, 0, 40, 20, 30], 40)
    values = (found.lowest, found.first_quartile, found.median, found.third_quartile, found.highest)
    assert values == (0, 10, 20, 30, 40)
    assert found.mean == 20
    assert found.deviation == pytest.approx(math.sqrt(250))


def test_one_score_has_no_deviation() -> None:
    found = distribution([7], 10)
    assert found.deviation is None
    assert (found.first_quartile, found.median, found.third_quartile) == (7, 7, 7)


def test_full_points_are_in_the_last_bin_and_a_score_at_an_edge_is_in_the_higher_one() -> None:
    bins = {bin_.low: bin_.count for bin_ in distribution([40, 40, 38, 2, 1.5], 40).bins}
    assert {low: count for low, count in bins.items() if count} == {38: 3, 2: 1, 0: 1}


@given(st.lists(st.floats(-20, 200), min_size=1, max_size=30), st.sampled_from([0.0, 1.0, 2.5, 40.0, 1_000.0]))
def test_every_score_is_in_one_of_a_few_bins(scores: list[float], most: float) -> None:
    bins = distribution(scores, most).bins
    assert sum(bin_.count for bin_ in bins) == len(scores)
    assert 1 <= len(bins) <= 21
    assert bins[0].low <= min(*scores, 0)
    assert bins[-1].high >= max(*scores, most) - 1e-9


# ---------------------------------------------------------------------------------------------- discrimination


def test_a_correlation_by_hand() -> None:
    # Deviations -1, 0, 1 and -1, 1, 0: the sum of products is 1, those of squares are 2 and 2.
    assert correlation(array(1, 2, 3), array(1, 3, 2)) == pytest.approx(0.5)


def test_a_step_of_all_or_nothing_has_the_point_biserial_correlation() -> None:
    points, rest = array(0, 0, 0, 1, 1, 1, 1, 0, 1, 0), array(3, 5, 4, 9, 8, 7, 6, 2, 9, 7)
    passed, failed = rest[points == 1], rest[points == 0]
    share = len(passed) / len(rest)
    expected = (passed.mean() - failed.mean()) / rest.std() * math.sqrt(share * (1 - share))
    found = discrimination(points, points + rest)
    assert found.value == pytest.approx(expected)


@given(st.integers(0, 1_000))
def test_the_discrimination_is_numpy_s_correlation_with_the_rest(seed: int) -> None:
    chance = np.random.default_rng(seed)
    points, rest = chance.normal(size=25), chance.normal(size=25)
    found = discrimination(points, points + rest)
    assert found.value == pytest.approx(np.corrcoef(points, rest)[0, 1])
    low, value, high = (math.nan if number is None else number for number in (found.low, found.value, found.high))
    assert -1 <= low < value < high <= 1


def test_a_step_is_not_compared_with_itself() -> None:
    points = array(*[0, 3] * 10)
    rest = array(*[1, 1, 2, 2] * 5)
    assert discrimination(points, points + rest).value == pytest.approx(0, abs=1e-12)
    assert np.corrcoef(points, points + rest)[0, 1] > 0.9


@pytest.mark.parametrize(
    ("points", "rest", "reason"),
    [
        (array(*range(FEWEST - 1)), array(*range(FEWEST - 1)), f"fewer than {FEWEST} learners"),
        (array(*[2] * FEWEST), array(*range(FEWEST)), "all have the same points here"),
        (array(*range(FEWEST)), array(*[5] * FEWEST), "all have the same points elsewhere"),
    ],
    ids=["few", "no variance", "no variance elsewhere"],
)
def test_without_a_discrimination_there_is_a_reason(points: Any, rest: Any, reason: str) -> None:
    found = discrimination(points, points + rest)
    assert (found.value, found.low, found.high, found.reason) == (None, None, None, reason)


def test_the_interval_of_a_correlation_of_a_half_of_28_pairs() -> None:
    # atanh(0.5) = 0.549306 and 1.959964 / 5 = 0.391993.
    low, high = interval(0.5, 28)
    assert (low, high) == (
        pytest.approx(math.tanh(0.157313), abs=1e-6),
        pytest.approx(math.tanh(0.941299), abs=1e-6),
    )


def test_a_correlation_of_one_has_an_interval_without_width() -> None:
    assert interval(1.0, 12) == (1.0, 1.0)


# ------------------------------------------------------------------------------------------------------- steps


def statistics_of(
    *rows: dict[str, float | None], steps: tuple[Step, ...], **record: Any
) -> dict[str, StepStatistics]:
    graded = [a_learner(f"learner-{place:02d}", row, **record) for place, row in enumerate(rows)]
    return {step.name: step for step in step_statistics(a_class(*graded, steps=steps))}


TWO = (a_step("gate", visible=1, hidden=2), a_step("block", visible=1))


def row(test: float, hidden: float, block: float) -> dict[str, float | None]:
    return {"test_gate": test, "hidden_gate": hidden, "test_block": block}


def test_a_step_counts_those_with_full_some_and_no_points() -> None:
    found = statistics_of(row(1, 2, 0), row(1, 2, 0), row(1, 0, 0), row(0, 0, 0), steps=TWO)["gate"]
    assert (found.full, found.partial, found.none, found.waiting, found.count) == (2, 1, 1, 0, 4)
    assert found.mean == pytest.approx((3 + 3 + 1 + 0) / 12)


def test_extra_credit_counts_as_full_points() -> None:
    assert statistics_of(row(1, 2.5, 0), steps=TWO)["gate"].full == 1


def test_a_step_that_waits_for_a_person_is_left_out_of_all_totals() -> None:
    steps = (*TWO, a_step("words", visible=0, written=3))
    rows = [row(float(place % 2), 2.0 * (place % 2), float(place % 3 == 0)) for place in range(12)]
    waiting = statistics_of(*({**r, "words": None if place else 3.0} for place, r in enumerate(rows)), steps=steps)
    assert waiting["words"].discrimination.reason == "answers wait for a person"
    assert (waiting["words"].waiting, waiting["words"].full, waiting["words"].mean) == (11, 1, 1.0)
    without = statistics_of(*rows, steps=TWO)
    assert waiting["gate"].discrimination == without["gate"].discrimination
    assert without["gate"].discrimination.value is not None


@pytest.mark.parametrize("status", ["missing", "unreadable", "crashed"])
def test_submissions_in_which_nothing_ran_are_left_out_of_the_steps(status: str) -> None:
    graded = [a_learner("ada", row(1, 2, 1)), a_learner("kurt", row(0, 0, 0), status=status)]
    (gate, _) = step_statistics(a_class(*graded, steps=TWO))
    assert (gate.count, gate.mean) == (1, 1.0)


def test_a_class_in_which_nothing_ran_has_steps_without_a_mean() -> None:
    found = statistics_of(row(0, 0, 0), steps=TWO, status="missing")
    assert [step.mean for step in found.values()] == [None, None]
    assert found["gate"].discrimination.reason == f"fewer than {FEWEST} learners"


def test_a_test_that_nobody_passes_is_one_to_look_at() -> None:
    found = statistics_of(*[row(1, 0, 1)] * 6, steps=TWO)["gate"]
    assert "hidden_gate: Nobody has points: look at this test." in found.remarks
    assert "6 of 6 who pass the visible test fail the hidden one: look at this test." in found.remarks


def test_a_test_with_partial_credit_only_is_one_to_look_at() -> None:
    found = cell_statistics(Test("t", "s", 2.0, VISIBLE), [1.0] * 6)
    assert found.remark == "Nobody has full points: look at this test."


def test_few_learners_give_no_remark() -> None:
    assert statistics_of(*[row(1, 0, 0)] * 4, steps=TWO)["gate"].remarks == ()


def test_a_step_that_everybody_has_says_so() -> None:
    found = statistics_of(*[row(1, 2, 1)] * 6, steps=TWO)["gate"]
    assert found.remarks == ("Everybody has full points, so this step tells nobody apart.",)


@pytest.mark.parametrize(("turn", "said"), [(1, "do worse here"), (0, None)])
def test_a_step_that_the_stronger_fail_is_one_to_look_at(turn: int, said: str | None) -> None:
    rows = [row(float((place + turn) % 2), 2.0 * ((place + turn) % 2), float(place % 2)) for place in range(20)]
    rows[0]["test_block"] = 1.0
    remarks = statistics_of(*rows, steps=TWO)["gate"].remarks
    assert [remark for remark in remarks if said is not None and said in remark] == list(remarks)
    assert bool(remarks) == (said is not None)


def test_a_discrimination_near_zero_is_said_to_be_low() -> None:
    rows = [row(float(place % 2), 2.0 * (place % 2), float(place // 2 % 2)) for place in range(20)]
    (remark,) = statistics_of(*rows, steps=TWO)["gate"].remarks
    assert "do hardly better here" in remark
    assert "discrimination 0.00" in remark


# ----------------------------------------------------------------------------------------------------- seconds


def test_the_slowest_cells_come_first_with_median_and_the_learner_of_the_longest() -> None:
    seconds = {"ada": {"relu": 0.1, "silu": 2.0}, "alan": {"relu": 0.3, "silu": 1.0}, "grace": {"relu": 9.0}}
    found = {slow.cell: slow for slow in slowest(seconds)}
    assert [slow.cell for slow in slowest(seconds)][:2] == [WHOLE, "relu"]
    relu = found["relu"]
    assert (relu.count, relu.median, relu.longest, relu.learner) == (3, 0.3, 9.0, "grace")
    assert found["silu"].median == 1.5


def test_a_submission_takes_the_sum_of_its_cells() -> None:
    found = {slow.cell: slow for slow in slowest({"ada": {"relu": 0.25, "silu": 0.5}, "alan": {}})}
    assert (found[WHOLE].count, found[WHOLE].longest) == (1, 0.75)


def test_learners_own_cells_count_together_by_the_longest_of_each() -> None:
    found = {slow.cell: slow for slow in slowest({"ada": {"cell 3": 1.0, "cell 9": 4.0}, "alan": {"cell 3": 2.0}})}
    own = found[OWN_CELLS]
    assert (own.count, own.median, own.longest, own.learner) == (2, 3.0, 4.0, "ada")
    assert "cell 3" not in found


def test_without_seconds_there_is_nothing_slow() -> None:
    assert slowest({"ada": {}}) == ()


@given(st.randoms())
def test_the_order_of_learners_changes_nothing(chance: random.Random) -> None:
    rows = [row(float(place % 2), 2.0 * (place % 3 == 0), float(place % 5 == 0)) for place in range(15)]
    mixed = chance.sample(rows, len(rows))
    for first, second in zip(
        statistics_of(*rows, steps=TWO).values(), statistics_of(*mixed, steps=TWO).values(), strict=True
    ):
        assert first.mean == pytest.approx(second.mean)
        assert first.discrimination.value == pytest.approx(second.discrimination.value)
