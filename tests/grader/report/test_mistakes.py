"""Failing tests: known misconceptions by their hints, all other messages in groups."""

import pytest

from ffn.exceptions import StepFailedError
from ffn.misconceptions import UNITS, unit_steps
from grader.report.data import Class, Graded
from grader.report.mistakes import failures, mistakes, normalised
from tests.grader.report.classes import a_class, a_learner, a_step

STEPS = (a_step("gelu", visible=1, hidden=2), a_step("silu", visible=1, hidden=2))
MARKS = {"test_gelu": 0.0, "hidden_gelu": 0.0, "test_silu": 0.0, "hidden_silu": 0.0}
GELU, SILU = (next(step for step in unit_steps("activations") if step.name == name) for name in ("gelu", "silu"))


def said(place: int = 0, value: str = "1.25") -> str:
    mistake = GELU.misconceptions[place]
    return str(StepFailedError.known(f"expected 1.5, but the given value is {value}.", mistake.hint, mistake.page))


def learner(name: str, **messages: str) -> Graded:
    return a_learner(name, MARKS, messages=messages)


def klass(*graded: Graded, unit: str = "activations") -> Class:
    return a_class(*graded, steps=STEPS, unit=unit)


def test_learners_with_the_same_misconception_are_counted_together() -> None:
    (found,) = mistakes(
        klass(learner("ada", test_gelu=said(value="1")), learner("alan", test_gelu=said(value="2")))
    )
    assert (found.step, found.name, found.learners) == ("gelu", GELU.misconceptions[0].name, ("ada", "alan"))
    assert (found.hint, found.page) == (GELU.misconceptions[0].hint, GELU.misconceptions[0].page)


def test_a_learner_who_shows_it_in_two_tests_counts_once() -> None:
    (found,) = mistakes(klass(learner("ada", test_gelu=said(), hidden_gelu=said())))
    assert found.learners == ("ada",)


def test_the_most_frequent_misconception_comes_first() -> None:
    graded = [learner("ada", test_gelu=said(1)), *(learner(name, test_gelu=said(0)) for name in ("alan", "grace"))]
    assert [mistake.name for mistake in mistakes(klass(*graded))] == [m.name for m in GELU.misconceptions[:2]]


def test_a_hint_of_another_step_is_no_misconception_of_this_one() -> None:
    hint = next(m.hint for m in GELU.misconceptions if m.hint not in {other.hint for other in SILU.misconceptions})
    graded = learner("ada", test_silu=f"no\nWhat happened: {hint}")
    assert mistakes(klass(graded)) == ()
    assert [failure.test for failure in failures(klass(graded))] == ["test_silu"]


@pytest.mark.parametrize("unit", UNITS)
def test_every_hint_of_the_course_is_recognised(unit: str) -> None:
    for step in unit_steps(unit):
        for mistake in step.misconceptions:
            message = str(StepFailedError.known("no", mistake.hint, mistake.page))
            graded = a_learner("ada", {f"test_{step.name}": 0.0}, messages={f"test_{step.name}": message})
            (found,) = mistakes(a_class(graded, steps=(a_step(step.name),), unit=unit))
            assert found.hint == mistake.hint


def test_a_unit_without_a_list_of_misconceptions_has_messages_only() -> None:
    found = klass(learner("ada", test_gelu=said()), unit="gates")
    assert mistakes(found) == ()
    assert len(failures(found)) == 1


def test_messages_that_differ_in_numbers_and_names_are_one_group() -> None:
    graded = [
        learner("ada", hidden_gelu="shape (3,) for 'z' at 0x7f3a, 1.5e-3 off"),
        learner("alan", hidden_gelu="shape (12,) for  'w' at 0xdead0, -2 off"),
        learner("grace", hidden_gelu="shape is wrong"),
    ]
    found = failures(klass(*graded))
    assert [failure.learners for failure in found] == [("ada", "alan"), ("grace",)]
    assert found[0].example == "shape (3,) for 'z' at 0x7f3a, 1.5e-3 off"


def test_the_same_message_of_two_tests_is_two_groups() -> None:
    found = failures(klass(learner("ada", hidden_gelu="no", hidden_silu="no")))
    assert {(failure.step, failure.test) for failure in found} == {
        ("gelu", "hidden_gelu"),
        ("silu", "hidden_silu"),
    }


def test_a_message_of_a_cell_that_is_no_test_is_left_out() -> None:
    assert failures(klass(learner("ada", other="no"))) == ()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("x_1 and v2 are names", "x_1 and v2 are names"),
        ("1,234.5 and .5 and 3e8", "# and # and #"),
        ("an 'a' and a \"b\"", "an '#' and a '#'"),
        ("two\n lines", "two lines"),
    ],
)
def test_what_a_message_is_grouped_by(message: str, expected: str) -> None:
    assert normalised(message) == expected


def test_a_long_message_is_cut() -> None:
    (found,) = failures(klass(learner("ada", hidden_gelu="x" * 5_000)))
    assert len(found.example) < 500
