from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from ffn.checkpoints import MiniLM, SmolLM2
from ffn.tokenizers import BytePairs, WordPiece

PIECES = ("[CLS]", "[SEP]", "[UNK]", "un", "##read", "##able", "able", "##s", "read", ".", "a", "##a")
SMALL = WordPiece(PIECES)

Vectors = Mapping[str, NDArray[Any]]


def rows(table: NDArray[Any]) -> list[list[int]]:
    return [[int(number) for number in row if number >= 0] for row in table]


# WordPiece


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("unreadable", ["un", "##read", "##able"]),
        ("UNREADABLE", ["un", "##read", "##able"]),
        ("able reads.", ["able", "read", "##s", "."]),
        ("aàá", ["a", "##a", "##a"]),
        ("readx", ["[UNK]"]),
        ("xread able", ["[UNK]", "able"]),
        ("a" * 100, ["a", *["##a"] * 99]),
        ("a" * 101, ["[UNK]"]),
        ("", []),
        ("\x00 \ufffd\u200b", []),
    ],
)
def test_the_longest_known_pieces_are_taken_from_the_left(text: str, pieces: list[str]) -> None:
    assert SMALL.pieces(text) == ["[CLS]", *pieces, "[SEP]"]


def test_punctuation_and_ideographs_stand_alone() -> None:
    assert SMALL.words("ab,c-d $5 「東京」") == ["ab", ",", "c", "-", "d", "$", "5", "「", "東", "京", "」"]


def test_minilms_tokens_are_those_of_transformers(minilm: MiniLM, checkpoint_vectors: Vectors) -> None:
    texts, expected = checkpoint_vectors["odd_texts"], rows(checkpoint_vectors["minilm_token_ids"])
    found = [minilm.tokenizer(str(text)) for text in texts]
    assert found == expected


@given(st.text(max_size=60))
def test_no_text_is_refused_and_every_number_is_known(text: str) -> None:
    numbers = SMALL(text)
    assert (numbers[0], numbers[-1]) == (0, 1)
    assert all(0 <= number < len(PIECES) for number in numbers)


@given(
    st.lists(st.sampled_from(["un", "read", "able", "."]), max_size=6), st.sampled_from([" ", "  ", "\t", "\n"])
)
def test_the_kind_of_space_between_words_does_not_matter(words: list[str], space: str) -> None:
    assert SMALL(space.join(words)) == SMALL(" ".join(words))


# Byte pairs


def byte_pairs(*merges: str) -> BytePairs:
    signs = sorted(BytePairs((), ())._bytes)
    return BytePairs([*signs, *(merge.replace(" ", "") for merge in merges)], merges)


def written(tokenizer: BytePairs, text: str) -> list[str]:
    return [tokenizer.vocabulary[number] for number in tokenizer(text)]


def test_the_earliest_learned_pair_is_merged_first() -> None:
    assert written(byte_pairs("b c", "a b"), "abc") == ["a", "bc"]
    assert written(byte_pairs("a b", "b c"), "abc") == ["ab", "c"]


def test_merged_pairs_can_be_merged_again() -> None:
    assert written(byte_pairs("a a", "aa aa"), "aaaaa") == ["aaaa", "a"]


def test_a_space_belongs_to_the_word_after_it_and_digits_stand_alone() -> None:
    tokenizer = byte_pairs("Ġ a", "1 2")
    assert written(tokenizer, "a a 12") == ["a", "Ġa", "Ġ", "1", "2"]


def test_smollm2s_tokens_are_those_of_transformers(smollm2: SmolLM2, checkpoint_vectors: Vectors) -> None:
    texts = [checkpoint_vectors["smollm2_prompt"], *checkpoint_vectors["odd_texts"]]
    found = [smollm2.tokenizer(str(text)) for text in texts]
    assert found == rows(checkpoint_vectors["smollm2_token_ids"])


@given(st.text(max_size=40))
def test_no_byte_of_a_text_is_lost(text: str) -> None:
    tokenizer = byte_pairs("Ġ a", "e r", "Ã ©")
    joined = "".join(written(tokenizer, text))
    assert bytes(tokenizer._bytes[sign] for sign in joined) == text.encode()


def test_a_token_reads_as_the_text_it_stands_for(smollm2: SmolLM2) -> None:
    tokenizer = smollm2.tokenizer
    assert "".join(tokenizer.text(number) for number in tokenizer(" Paris, in May")) == " Paris, in May"
    assert byte_pairs().text(byte_pairs()("é")[0]) == "\ufffd"
