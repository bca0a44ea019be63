"""Pairs that agree in what few have are listed; what many have, what is given and what is short is not."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.report.similarity import FEWEST, MARGIN, Comparison, Template, compare
from tests.grader.report.answers import ORDER, independent, renamed

NOTHING = Template({}, {})


def a_class(count: int, seed: int = 0) -> dict[str, dict[str, str]]:
    chance = random.Random(seed)
    return {f"learner-{number:04d}": independent(chance) for number in range(count)}


def listed(found: Comparison) -> set[tuple[str, str]]:
    return {(pair.first, pair.second) for pair in found.pairs}


@pytest.mark.parametrize("count", [12, 40, 150])
def test_a_renamed_copy_is_listed_first(count: int) -> None:
    answers = a_class(count)
    answers["copy"] = renamed(answers["learner-0005"])
    (pair, *_) = compare(answers, NOTHING).pairs
    assert (pair.first, pair.second) == ("copy", "learner-0005")


@pytest.mark.parametrize("seed", range(5))
def test_right_answers_of_people_who_work_alone_are_not_listed(seed: int) -> None:
    assert listed(compare(a_class(40, seed), NOTHING)) == set()


@pytest.mark.slow
def test_in_a_large_class_copies_are_listed_and_independent_answers_are_not() -> None:
    answers = a_class(1_000)
    for number in range(5):
        answers[f"copy-{number}"] = renamed(answers[f"learner-{number:04d}"])
    found = compare(answers, NOTHING)
    assert listed(found) == {(f"copy-{number}", f"learner-{number:04d}") for number in range(5)}


def test_a_copy_of_half_of_the_steps_is_listed() -> None:
    answers = a_class(150)
    copied = renamed(answers["learner-0007"])
    answers["half"] = independent(random.Random(-1)) | {step: copied[step] for step in ORDER[:7]}
    assert ("half", "learner-0007") in listed(compare(answers, NOTHING))


def test_two_who_share_only_what_the_exercise_gives_are_not_listed() -> None:
    answers = a_class(40)
    given = {step: independent(random.Random(-2))[step] for step in ORDER}
    answers |= {"first": given, "second": dict(given)}
    assert listed(compare(answers, NOTHING)) == {("first", "second")}
    assert listed(compare(answers, Template(given, {}))) == set()


def test_two_who_both_write_the_reference_answer_are_not_listed() -> None:
    answers = a_class(40)
    reference = independent(random.Random(-3))
    answers |= {"first": renamed(reference), "second": reference}
    assert listed(compare(answers, NOTHING)) == {("first", "second")}
    assert listed(compare(answers, Template({}, reference))) == set()


def test_what_most_of_the_class_hands_in_is_not_listed() -> None:
    answers = a_class(10)
    common = independent(random.Random(-4))
    answers |= {f"other-{number}": common for number in range(30)}
    assert listed(compare(answers, NOTHING)) == set()


def test_short_answers_are_not_listed() -> None:
    answers = a_class(40)
    short = {step: f"def {step}(z):\n    return np.cosh(z) ** 3" for step in ORDER}
    answers |= {"first": short, "second": dict(short)}
    found = compare(answers, NOTHING)
    assert listed(found) == set()
    assert found.compared == 42


def test_copied_answers_in_words_count() -> None:
    chance = random.Random(0)
    letters = "abcdefghij"
    words = ["".join(chance.sample(letters, 5)) for _ in range(200)]
    answers = {
        f"learner-{number:02d}": {f"text-{part}": " ".join(chance.sample(words, 40)) for part in range(3)}
        for number in range(30)
    }
    answers["copy"] = {name: text.upper().replace(" ", ",\n") for name, text in answers["learner-03"].items()}
    template = Template({}, {}, [f"text-{part}" for part in range(3)])
    assert listed(compare(answers, template)) == {("copy", "learner-03")}


def test_no_more_pairs_are_shown_than_asked_for_and_all_are_counted() -> None:
    answers = a_class(40)
    for number in range(6):
        answers[f"copy-{number}"] = renamed(answers[f"learner-{number:04d}"])
    found = compare(answers, NOTHING, listed=2)
    assert len(found.pairs) == 2
    assert found.found == 6


def test_a_small_class_has_nothing_to_compare_with() -> None:
    answer = independent(random.Random(0))
    found = compare({str(number): answer for number in range(FEWEST - 1)}, NOTHING)
    assert (found.pairs, found.compared, found.found) == ((), FEWEST - 1, 0)


@pytest.mark.parametrize(
    "answers", [{}, {str(number): {} for number in range(8)}, {str(n): {"relu": ""} for n in range(8)}]
)
def test_a_class_without_answers_has_no_pairs(answers: dict[str, dict[str, str]]) -> None:
    assert compare(answers, NOTHING).pairs == ()


def test_the_threshold_is_above_what_a_shuffled_class_has() -> None:
    found = compare(a_class(40), NOTHING)
    assert found.by_chance > 0
    assert found.threshold == found.by_chance + MARGIN


def test_the_same_class_gives_the_same_list() -> None:
    answers = a_class(40)
    answers["copy"] = renamed(answers["learner-0005"])
    turned = dict(reversed(answers.items()))
    assert compare(answers, NOTHING) == compare(turned, NOTHING)


def test_a_pair_s_number_is_the_sum_over_its_steps_the_most_telling_first() -> None:
    answers = a_class(40)
    answers["copy"] = renamed(answers["learner-0005"])
    (pair,) = compare(answers, NOTHING).pairs
    numbers = [common.number for common in pair.steps]
    assert pair.number == pytest.approx(sum(numbers))
    assert numbers == sorted(numbers, reverse=True)


def rare(step: str, marker: int) -> str:
    """An answer that has nothing in common with one of another marker."""
    return f"def {step}(z):\n" + f"    z.part{marker}[{marker}] = {marker} ** {marker}\n" * 6


def test_what_two_of_sixteen_have_counts_three_a_step() -> None:
    answers = {f"learner-{number:02d}": {step: rare(step, number) for step in ORDER} for number in range(15)}
    answers["copy"] = dict(answers["learner-04"])
    (pair,) = compare(answers, NOTHING).pairs
    # 2 of 16 is an eighth, which is 2 to the power of -3.
    assert [common.number for common in pair.steps] == [3.0] * len(ORDER)


def test_the_lines_that_agree_are_named_for_each_side() -> None:
    answers = {f"learner-{number:02d}": {step: rare(step, number) for step in ORDER} for number in range(15)}
    own = "\n".join(f"    other{line} = [z, {line}] @ 'x{line}'" for line in range(5))
    source = rare("relu", 4)
    answers["copy"] = answers["learner-04"] | {"relu": source.replace("(z):\n", f"(z):\n{own}\n\n# moved\n")}
    (pair,) = compare(answers, NOTHING).pairs
    (common,) = [common for common in pair.steps if common.step == "relu"]
    assert common.second_lines == set(range(1, 7)) | ({0} & common.second_lines)
    assert common.first_lines - {0} == set(range(8, 14))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.dictionaries(st.sampled_from(ORDER[:3]), st.text(max_size=80)), min_size=FEWEST, max_size=12))
def test_whatever_learners_write_is_compared(answers: list[dict[str, Any]]) -> None:
    given = {f"learner-{place:02d}": answer for place, answer in enumerate(answers)}
    found = compare(given, NOTHING)
    assert found.compared == len(answers)
    assert all(pair.first < pair.second and pair.number >= found.threshold for pair in found.pairs)


def test_a_learner_s_name_changes_no_number() -> None:
    answers = a_class(40)
    answers["copy"] = renamed(answers["learner-0005"])
    named = {f"{'zyx'[place % 3]}-{name}": answer for place, (name, answer) in enumerate(answers.items())}
    (before,), (after,) = compare(answers, NOTHING).pairs, compare(named, NOTHING).pairs
    assert after.number == pytest.approx(before.number)
