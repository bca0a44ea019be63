"""How outcomes are compared and mistakes recognised, and what holds of the misconceptions of every unit."""

import copy
import itertools
import math
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ffn.exceptions import StepFailedError, UnknownStepError
from ffn.misconceptions import (
    UNITS,
    Misconception,
    Outcome,
    Probe,
    Step,
    diagnose,
    find_step,
    outcome,
    same_value,
    stand_ins,
    unit_steps,
)
from tests.book.test_trace import anchors_in_source, pages_of_the_book
from tests.helpers import ROOT
from tools.audit.notebook import compiled, in_folder, unit

FEWEST = 60

STEPS = [(name, step) for name in UNITS for step in unit_steps(name)]
MISCONCEPTIONS = [(name, step, found) for name, step in STEPS for found in step.misconceptions]
every_unit = pytest.mark.parametrize("name", UNITS)
every_step = pytest.mark.parametrize(
    ("name", "step"), [pytest.param(name, step, id=f"{name}.{step.name}") for name, step in STEPS]
)


# Values

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=32)
ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.uint8, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
LEAVES = ARRAYS | st.floats() | st.integers() | st.booleans() | st.none() | st.text(max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=2), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(VALUES)
def test_a_value_is_the_same_as_its_copy(value: Any) -> None:
    assert same_value(value, copy.deepcopy(value))


@given(VALUES, VALUES)
def test_sameness_has_no_direction_where_nothing_is_rounded(first: Any, second: Any) -> None:
    assert same_value(first, second, rtol=0, atol=0) == same_value(second, first, rtol=0, atol=0)


@given(VALUES, VALUES)
def test_any_two_values_can_be_compared(first: Any, second: Any) -> None:
    assert same_value(first, second) in (True, False)


@given(ARRAYS)
def test_an_array_is_the_same_as_a_list_of_its_numbers(array: Any) -> None:
    # An empty list does not show what it would hold.
    if array.size:
        assert same_value(array.tolist(), array)


@given(hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=3)))
def test_an_array_differs_from_one_of_another_shape(array: Any) -> None:
    assert not same_value(array, array[np.newaxis])
    assert not same_value(array, np.append(array.ravel(), 0.0))


@given(hnp.arrays(np.float64, (3,), elements=FINITE), st.integers(0, 2))
def test_an_array_differs_where_one_entry_does(array: Any, place: int) -> None:
    other = array.copy()
    other[place] += max(1.0, np.abs(array).max())
    assert not same_value(array, other)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 1.0),
        (np.int64(3), 3.0),
        ([1, 2], np.array([1.0, 2.0])),
        ((1.0, 2.0), [1.0, 2.0]),
        (0.0, -0.0),
        (math.nan, np.float64("nan")),
        ([math.nan, 1.0], np.array([math.nan, 1.0])),
        ([math.inf, -math.inf], np.array([math.inf, -math.inf])),
        (np.float32(0.5), 0.5),
        (1.0, 1.0 + 1e-10),
        ([1e6, 0.0], [1e6, 1e-8]),
        ((0.0, 1.0), (1e-17, 1.0)),
        ((np.array(0.0), np.array(1.0)), (1e-17, 1.0)),
        (True, np.True_),
        ([True, False], np.array([True, False])),
        ("text", np.str_("text")),
        (np.array(["a", "b"]), np.array(["a", "b"])),
        (np.array(["a", "b"]), ["a", "b"]),
        (("a", 1.0), ["a", 1]),
        ([[1.0], [1.0, 2.0]], [np.array([1.0]), np.array([1.0, 2.0])]),
        ({"a": 1, "b": [2.0]}, {"b": np.array([2.0]), "a": 1.0}),
        ([], np.array([])),
        (10**400, 10**400),
        (1 + 2j, 1 + 2j),
    ],
    ids=repr,
)
def test_same(first: Any, second: Any) -> None:
    assert same_value(first, second)
    assert same_value(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, True),
        (0.0, False),
        ([1.0, 0.0], [True, False]),
        ((True, 1.0), (1.0, 1.0)),
        (np.array([True]), np.array([1])),
        (math.nan, 0.0),
        (math.inf, -math.inf),
        (math.inf, 1e308),
        (math.inf, math.nan),
        (1.0, 1.0 + 1e-8),
        ([1.0, 0.0], [1.0, 1e-8]),
        (0.0, 1e-300),
        (46_702_792_704, 46_702_792_703),
        (1.0, [1.0]),
        ([1.0], [[1.0]]),
        ([1.0, 2.0], [1.0]),
        ([[1.0], [1.0, 2.0]], [[1.0], [1.0]]),
        ([np.ones(2), np.ones(3)], [np.ones(2)]),
        ({"a": 1}, {"b": 1}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, [("a", 1)]),
        ({}, []),
        (None, 0.0),
        (None, False),
        ("1", 1),
        ("", []),
        (np.array(["a", "b"]), ["a", "c"]),
        (10**400, 10**400 + 1),
        (10**400, math.inf),
        (1 + 2j, 1.0),
        ((np.full(2, 1e9), np.full(2, 1e-4)), (np.full(2, 1e9), np.zeros(2))),
    ],
    ids=repr,
)
def test_different(first: Any, second: Any) -> None:
    assert not same_value(first, second)
    assert not same_value(second, first)


class Odd:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("cannot be compared")

    __hash__ = None  # type: ignore[assignment]


def test_what_cannot_be_compared_differs() -> None:
    assert not same_value(Odd(), Odd())


def test_what_cannot_be_compared_is_the_same_as_itself() -> None:
    odd = Odd()
    assert same_value([odd], [odd])


def test_a_list_that_holds_itself_can_be_compared() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert not same_value(endless, [endless, 1])


def test_tolerances_can_be_chosen() -> None:
    assert not same_value(1.0, 1.001)
    assert same_value(1.0, 1.001, rtol=1e-2)
    assert same_value([0.001, 1.0], [0.0, 1.0], atol=1e-2)


# Outcomes


def in_place(x: Any) -> Any:
    x[0] = 5
    return x


def in_place_and_out(x: Any) -> Any:
    x[0] = 5
    raise ValueError("too late")


def test_an_outcome_has_the_value() -> None:
    assert outcome(np.add, (1.0, 2.0)) == Outcome(value=3.0)


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda x: x / 0, "ZeroDivisionError"),
        (lambda x: {}["a"], "KeyError"),
        (lambda: 1.0, "TypeError"),
        (lambda x: np.exp(x * 1000), "FloatingPointError"),
        (lambda x: np.log(np.zeros(2)), "FloatingPointError"),
        (lambda x: np.float64(0) / np.zeros(1), "FloatingPointError"),
    ],
)
def test_an_outcome_has_the_kind_of_an_exception(function: Any, error: str) -> None:
    assert outcome(function, (2.0,)) == Outcome(error=error)


def test_an_underflow_is_no_exception() -> None:
    assert outcome(np.exp, (-800.0,)) == Outcome(value=0.0)


@pytest.mark.parametrize("argument", [np.ones(2), [1.0, 2.0], {0: 1.0}], ids=["array", "list", "dictionary"])
@pytest.mark.parametrize("function", [in_place, in_place_and_out])
def test_an_outcome_says_whether_the_arguments_were_changed(function: Any, argument: Any) -> None:
    before = copy.deepcopy(argument)
    assert outcome(function, (argument,)).changed
    assert same_value(argument, before)


def test_an_argument_that_stays_is_not_changed() -> None:
    assert not outcome(lambda x, f, name: x, (np.array([math.nan, 1.0]), np.tanh, "W_1")).changed


def test_warnings_of_an_outcome_are_not_shown(recwarn: pytest.WarningsRecorder) -> None:
    outcome(lambda: np.mean([]), ())
    assert not recwarn.list


def test_an_interrupt_is_no_outcome() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        outcome(interrupted, ())


@pytest.mark.parametrize(
    ("first", "second", "equal"),
    [
        (Outcome(1.0), Outcome(1.0 + 1e-12), True),
        (Outcome(1.0), Outcome(2.0), False),
        (Outcome(1.0), Outcome(1.0, changed=True), False),
        (Outcome(error="ValueError"), Outcome(error="ValueError"), True),
        (Outcome(error="ValueError"), Outcome(error="TypeError"), False),
        (Outcome(error="ValueError"), Outcome(error="ValueError", changed=True), False),
        (Outcome(error="ValueError"), Outcome(None), False),
    ],
)
def test_outcomes_are_compared_by_value_exception_and_change(first: Outcome, second: Outcome, equal: bool) -> None:
    assert first.equals(second) is equal
    assert second.equals(first) is equal


# Recognising a mistake


def named(name: str, **wrong: Any) -> Misconception:
    return Misconception(name=name, wrong=wrong, hint=f"{name}.", page="book/a/b#c")


def floats(x: Any) -> Any:
    return np.asarray(x, dtype=float)


def added_in_place(x: Any) -> Any:
    x += 1
    return x


SMALL = Step(
    name="small",
    own={"plus": lambda x: floats(x) + 1, "minus": lambda x: floats(x) - 1},
    probes=(
        Probe("plus", (np.array([1.0, -2.0]),)),
        Probe("plus", ([3.0],)),
        Probe("minus", (5.0,)),
    ),
    misconceptions=(
        named("unchanged", plus=floats),
        named("in-place", plus=added_in_place),
        named("raises-type", plus=lambda x: int(x) + 1),
        named("raises-key", plus=lambda x: {}[0]),
        named("swapped", plus=lambda x: floats(x) - 1, minus=lambda x: floats(x) + 1),
        named("half-right", plus=lambda x: floats(x) * 2 + 1, minus=lambda x: floats(x) - 1),
        named("zero", minus=lambda x: 0.0),
    ),
)


def found(**functions: Any) -> str | None:
    candidate = diagnose(SMALL, {**SMALL.own, **functions})
    return candidate.name if candidate else None


def test_right_functions_show_nothing() -> None:
    assert found() is None


@pytest.mark.parametrize("candidate", SMALL.misconceptions, ids=lambda candidate: candidate.name)
def test_every_mistake_is_recognised(candidate: Misconception) -> None:
    assert found(**candidate.wrong) == candidate.name


def test_a_mistake_written_differently_is_recognised() -> None:
    assert found(plus=lambda x: np.array([v * 1.0 for v in x])) == "unchanged"


def test_an_unknown_fault_shows_nothing() -> None:
    assert found(plus=lambda x: floats(x) + 7) is None


def test_a_fault_that_is_known_on_some_probes_only_shows_nothing() -> None:
    assert found(plus=lambda x: floats(x) if isinstance(x, list) else floats(x) + 1) is None


def test_the_value_without_the_change_of_the_argument_is_right() -> None:
    assert found(plus=lambda x: added_in_place(floats(x).copy())) is None


def test_a_changed_argument_alone_is_an_unknown_fault() -> None:
    def clears(x: Any) -> Any:
        value = floats(x) + 1
        x[0] = 0
        return value

    assert found(plus=clears) is None


def test_exceptions_are_told_apart_by_their_kind() -> None:
    assert found(plus=lambda x: int("one")) is None
    assert found(plus=lambda x: {}["another key"]) == "raises-key"


def test_a_mistake_in_two_functions_needs_both() -> None:
    swapped = SMALL.misconceptions[4].wrong
    assert found(plus=swapped["plus"]) is None
    assert found(minus=swapped["minus"]) is None


def test_a_mistake_may_hold_a_function_that_is_right() -> None:
    assert found(plus=lambda x: 1 + 2 * floats(x)) == "half-right"


def test_the_first_of_two_mistakes_in_two_functions_is_named() -> None:
    assert found(plus=floats, minus=lambda x: 0.0) == "unchanged"


@pytest.mark.parametrize("namespace", [{}, {"plus": 5, "minus": None}, {"minus": SMALL.own["minus"]}])
def test_functions_that_are_missing_show_nothing(namespace: dict[str, Any]) -> None:
    assert diagnose(SMALL, namespace) is None


def test_a_mistake_is_recognised_while_another_function_is_missing() -> None:
    seen = diagnose(SMALL, {"plus": floats})
    assert seen is not None
    assert seen.name == "unchanged"


def test_what_a_function_prints_is_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert found(plus=lambda x: print(x)) is None
    assert capsys.readouterr() == ("", "")


def test_probes_stay_as_they_are() -> None:
    found(plus=in_place)
    assert SMALL.probes[0].arguments[0].tolist() == [1, -2]


# Looking up


def test_there_are_six_units() -> None:
    assert UNITS == ("mechanism", "activations", "swiglu", "worked-cells", "learning", "capstone")


@pytest.mark.parametrize("name", ["activation", "", "worked_cells", "registry"])
def test_an_unknown_unit_is_named_with_those_that_there_are(name: str) -> None:
    with pytest.raises(UnknownStepError) as caught:
        unit_steps(name)
    assert str(caught.value) == f"unknown step {name!r}; known are {', '.join(UNITS)}."


def test_an_unknown_step_is_named_with_those_of_its_unit() -> None:
    with pytest.raises(UnknownStepError) as caught:
        find_step("activations.elu")
    assert str(caught.value).startswith("unknown step 'activations.elu'; known are activations.relu, ")


@pytest.mark.parametrize("name", ["activations", "activations.", "relu", ".relu", "activations.relu.x"])
def test_a_name_that_is_no_unit_and_step_is_unknown(name: str) -> None:
    with pytest.raises(UnknownStepError, match="unknown step"):
        find_step(name)


def test_stand_ins_of_an_unknown_step_are_unknown() -> None:
    with pytest.raises(UnknownStepError):
        stand_ins("activations.elu")


def test_stand_ins_are_the_course_s_own_functions() -> None:
    relu, silu = find_step("activations.relu").own["relu"], find_step("activations.silu").own["silu"]
    wanted = {"relu": relu, "gelu": find_step("activations.gelu").own["gelu"], "silu": silu}
    assert stand_ins("activations.tail_reach") == wanted


# Every unit


def test_the_course_has_at_least_sixty_misconceptions() -> None:
    assert len(MISCONCEPTIONS) >= FEWEST


@every_unit
def test_step_names_and_function_names_are_unique(name: str) -> None:
    steps = unit_steps(name)
    assert Counter(step.name for step in steps).most_common(1)[0][1] == 1
    assert Counter(function for step in steps for function in step.own).most_common(1)[0][1] == 1


@every_unit
def test_a_step_uses_functions_of_earlier_steps_only(name: str) -> None:
    earlier: set[str] = set()
    for step in unit_steps(name):
        assert set(step.uses) <= earlier, step.name
        assert len(set(step.uses)) == len(step.uses), step.name
        earlier |= set(step.own)


@every_step
def test_names_are_unique_in_a_step(name: str, step: Step) -> None:
    names = [known.name for known in step.misconceptions]
    assert len(set(names)) == len(names) >= 3
    assert [text for text in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", text)] == []


@every_step
def test_a_misconception_is_about_functions_of_its_step(name: str, step: Step) -> None:
    assert all(known.wrong and set(known.wrong) <= set(step.own) for known in step.misconceptions)


@every_unit
def test_no_hint_is_a_part_of_another_one_of_the_unit(name: str) -> None:
    hints = [known.hint for step in unit_steps(name) for known in step.misconceptions]
    assert [pair for pair in itertools.permutations(hints, 2) if pair[0] in pair[1]] == []


@every_step
def test_hints_are_sentences_in_one_line(name: str, step: Step) -> None:
    for known in step.misconceptions:
        assert re.fullmatch(r"\S.{20,}\.", known.hint), known.name
        assert "  " not in known.hint, known.name
        assert len(known.hint) < 200, known.name


@every_step
def test_pages_lead_to_a_place_in_the_book(name: str, step: Step) -> None:
    listed = pages_of_the_book()
    for known in step.misconceptions:
        page, hash_sign, anchor = known.page.partition("#")
        assert hash_sign, known.name
        assert page in listed, known.name
        assert (ROOT / f"{page}.md").is_file(), known.name
        assert anchor in anchors_in_source(page), f"{known.name}: {known.page}"


@every_step
def test_the_message_names_the_page_in_words(name: str, step: Step) -> None:
    for known in step.misconceptions:
        _, hint, place = str(StepFailedError.known("Wrong.", known.hint, known.page)).splitlines()
        assert hint == f"What happened: {known.hint}"
        words = re.fullmatch(r"The book treats it on the page “(.+)” in the part “(.+)”, section “(.+)”\.", place)
        assert words is not None, known.page
        assert not [word for word in words.groups() if re.search(r"[#/“”-]", word)], known.page


@every_step
def test_every_function_of_a_step_has_a_probe(name: str, step: Step) -> None:
    assert {probe.function for probe in step.probes} == set(step.own)


@cache
def right_outcomes(name: str, step: str) -> tuple[Outcome, ...]:
    found = find_step(f"{name}.{step}")
    return tuple(outcome(found.own[probe.function], probe.arguments) for probe in found.probes)


@every_step
def test_probes_change_no_argument_and_have_a_right_value(name: str, step: Step) -> None:
    assert not [
        probe for probe, right in zip(step.probes, right_outcomes(name, step.name), strict=True) if right.changed
    ]
    assert any(not right.error for right in right_outcomes(name, step.name))


@every_step
def test_probes_give_the_same_every_time(name: str, step: Step) -> None:
    assert diagnose(step, step.own) is None
    again = [outcome(step.own[probe.function], probe.arguments) for probe in step.probes]
    assert all(a.equals(b) for a, b in zip(again, right_outcomes(name, step.name), strict=True))


@every_step
def test_every_wrong_way_differs_from_the_right_one_and_is_recognised(name: str, step: Step) -> None:
    for known in step.misconceptions:
        assert diagnose(step, {**step.own, **known.wrong}) is known


@every_step
def test_no_wrong_way_is_taken_for_another_one(name: str, step: Step) -> None:
    for known, other in itertools.permutations(step.misconceptions, 2):
        alone = replace(step, misconceptions=(other,))
        assert diagnose(alone, {**step.own, **known.wrong}) is None, f"{known.name} shows {other.name}"


@cache
def reference(name: str) -> dict[str, Any]:
    """What the unit's notebook defines, with the reference answers."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with in_folder(unit(name)):
        for cell in unit(name).cells:
            if cell.points is None:
                exec(compiled(name, cell.ident, cell.source), names)
    return names


@every_step
def test_the_course_s_own_functions_do_what_the_reference_answers_do(name: str, step: Step) -> None:
    for probe, right in zip(step.probes, right_outcomes(name, step.name), strict=True):
        seen = outcome(reference(name)[probe.function], probe.arguments)
        if right.error:
            # Two right ways may stumble over an excluded argument differently.
            assert seen.error, probe
        else:
            assert seen.equals(right), probe
