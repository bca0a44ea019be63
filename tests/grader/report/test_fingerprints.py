"""Fingerprints stay the same under other names, layout and comments, and take whatever a learner writes."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.report.fingerprints import FEWEST_TOKENS, LONGEST, RUN, WINDOW, Token, hashes, tokens, winnowed, words
from tests.grader.report.answers import independent, renamed

PLAIN = """
def silu(z, scale=1.0):
    shifted = np.asarray(z, dtype=float) + 0
    gate = sigmoid(shifted)
    return scale * shifted * gate
"""


def same(first: str, second: str) -> bool:
    a, b = hashes(tokens(first)), hashes(tokens(second))
    return len(a) > 0 and np.array_equal(a, b)


def test_other_names_give_the_same_hashes() -> None:
    assert same(
        PLAIN, PLAIN.replace("shifted", "q").replace("gate", "other").replace("scale", "s").replace("z", "u")
    )


def test_two_names_made_one_give_other_hashes() -> None:
    assert not same(PLAIN, PLAIN.replace("gate", "shifted"))


def test_the_name_of_an_attribute_counts() -> None:
    assert not same(PLAIN, PLAIN.replace("np.asarray", "np.sqrt"))


def test_the_name_of_a_built_in_function_counts() -> None:
    assert not same(PLAIN, PLAIN.replace("dtype=float", "dtype=int"))


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN.replace("    gate", "    # the gate comes first\n    gate"),
        PLAIN.replace("\n    shifted", '\n    """What it does."""\n    shifted'),
        PLAIN.replace("(z, scale=1.0):", '(z: "np.ndarray | float", scale: float = 1.0) -> np.ndarray[int, str]:'),
        PLAIN.replace("    gate =", "    gate: np.ndarray ="),
        PLAIN.replace("scale * shifted * gate", "(\n        (scale * shifted)\n        * gate\n    )"),
        PLAIN.replace("\n    gate", "; gate"),
        PLAIN.replace("1.0", "1").replace(" + 0", "+0.0"),
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("    ", "\t"),
    ],
    ids=[
        "comment",
        "docstring",
        "annotations",
        "annotated",
        "brackets",
        "one-line",
        "numbers",
        "line-ends",
        "tabs",
    ],
)
def test_what_only_looks_different_gives_the_same_hashes(changed: str) -> None:
    assert changed != PLAIN
    assert same(PLAIN, changed)


def test_annotations_behind_letters_of_several_bytes_are_left_out() -> None:
    with_letters = PLAIN.replace("(z, scale=1.0):", '(größe: "ä€", scale: "日本" = 1.0):').replace(
        "(z,", "(größe,"
    )
    assert same(PLAIN, with_letters)


def test_another_formula_gives_other_hashes() -> None:
    assert not same(PLAIN, PLAIN.replace("scale * shifted", "scale + shifted"))


@given(st.integers(0, 10_000))
def test_a_renamed_copy_of_any_answer_has_the_same_hashes(seed: int) -> None:
    answers = independent(random.Random(seed))
    copied = renamed(answers)
    for step, source in answers.items():
        assert np.array_equal(hashes(tokens(source)), hashes(tokens(copied[step]))), step


@given(st.text(max_size=300))
def test_any_text_has_tokens_and_hashes(text: str) -> None:
    found = tokens(text)
    assert len(hashes(found)) == (len(found) - RUN + 1 if len(found) >= FEWEST_TOKENS else 0)
    assert all(0 <= token.line <= text.replace("\r\n", "\n").replace("\r", "\n").count("\n") for token in found)


def test_a_token_knows_its_line() -> None:
    assert [(token.text, token.line) for token in tokens("a = 1\n\n# no\nb = '''x\ny'''\nc")] == [
        ("a", 0),
        ("=", 0),
        ("1.0", 0),
        ("b", 3),
        ("=", 3),
        ("'x\ny", 3),
        ("c", 5),
    ]


@pytest.mark.parametrize(
    "piece",
    [
        "(",
        "'",
        '"',
        "'''",
        '"""',
        "'\\",
        "\\",
        "a.",
        "-",
        "not ",
        "lambda: ",
        "x = ",
        "0",
        "1_",
        "f'{",
        "é:é,",
        "#",
        "[0]",
        "\0",
    ],
)
def test_a_hostile_answer_is_cut_and_never_raises(piece: str) -> None:
    assert len(tokens(piece * 30_000)) <= 4_000
    assert len(tokens(f"def f({piece * 30_000}")) <= 4_000


def test_no_more_than_so_many_characters_are_looked_at() -> None:
    assert tokens(" " * LONGEST + "a = 1") == []


def test_code_that_is_no_python_is_compared_without_its_comments_and_names() -> None:
    assert same(
        PLAIN + "    return )", PLAIN.replace("gate", "other").replace("return", "return  # no\n") + "    return )"
    )


def test_a_short_answer_has_no_hashes() -> None:
    found = [Token(str(number), 0) for number in range(FEWEST_TOKENS)]
    assert len(hashes(found)) == FEWEST_TOKENS - RUN + 1
    assert len(hashes(found[:-1])) == 0


@given(st.lists(st.integers(0, 3), max_size=20), st.lists(st.integers(0, 3), max_size=20), st.randoms())
def test_texts_that_share_a_long_passage_share_a_fingerprint(
    before: list[int], after: list[int], chance: random.Random
) -> None:
    passage = [Token(str(chance.randrange(5)), 0) for _ in range(RUN + WINDOW - 1)]
    around = [Token(str(number), 0) for number in (*before, *range(10, 10 + FEWEST_TOKENS), *after)]
    place = chance.randrange(len(around))
    first = winnowed(hashes(around[:place] + passage + around[place:]))
    second = winnowed(hashes([*around, *passage]))
    assert set(first.tolist()) & set(second.tolist())


@given(st.lists(st.integers(0, 2**63), max_size=40))
def test_winnowing_keeps_some_of_the_hashes_and_one_of_each_few_neighbours(values: list[int]) -> None:
    kept = set(winnowed(np.array(values, np.uint64)).tolist())
    assert kept <= set(values)
    assert all(kept & set(values[start : start + WINDOW]) for start in range(len(values) - WINDOW + 1))
    assert bool(kept) == bool(values)


def test_words_are_compared_in_small_letters_and_know_their_lines() -> None:
    assert words("The *dead* unit,\nthe end.") == [
        Token("the", 0),
        Token("dead", 0),
        Token("unit", 0),
        Token("the", 1),
        Token("end", 1),
    ]
