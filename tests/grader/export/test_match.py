"""Whose row of an LMS's file is whose."""

from pathlib import Path

import pytest

from grader.exceptions import AmbiguousLearnerError
from grader.export.match import Known, Matches, Row, match

FILE = Path("grades.csv")
ADA = Known("alovelace", frozenset({"ada@example.edu"}), frozenset({"4711"}), "Ada Lovelace")
ALAN = Known("aturing", frozenset({"alan@example.edu"}), frozenset({"4712"}), "Alan Turing")


def matched(*rows: Row, known: tuple[Known, ...] = (ADA, ALAN)) -> Matches:
    return match(FILE, rows, known)


@pytest.mark.parametrize(
    "row",
    [
        Row(1, ids=("alovelace",)),
        Row(1, ids=("ALovelace ",)),
        Row(1, ids=("ada@example.edu",)),
        Row(1, ids=("unknown", "alovelace")),
        Row(1, number="4711"),
        Row(1, number="alovelace"),
        Row(1, ids=("s0815",), number="4711"),
        Row(1, name="Lovelace, Ada"),
        Row(1, name="Ada Lovelace"),
        Row(1, name="ÁDA  lovelace", ids=("s0815",)),
    ],
    ids=str,
)
def test_a_row_is_found(row: Row) -> None:
    assert matched(row).learners == {1: "alovelace"}


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        ("lovelaceada", "Lovelace, Ada"),
        ("Ada Lovelace", "Ada Lovelace"),
        ("godelkurt", "Gödel, Kurt"),
        ("participant-123456", "Participant 123456"),
    ],
)
def test_a_learner_whose_id_is_the_name_in_the_submitted_file_is_found(learner: str, name: str) -> None:
    assert matched(Row(1, name=name), known=(Known(learner),)).learners == {1: learner}


def test_who_is_found_by_name_alone_is_listed() -> None:
    found = matched(Row(1, ids=("aturing",), name="Alan"), Row(2, name="Lovelace, Ada"))
    assert found.by_name == ["Lovelace, Ada (alovelace)"]


def test_who_is_on_one_side_only_is_listed() -> None:
    found = matched(Row(1, ids=("aturing",)), Row(2, ids=("kgoedel",), name="Gödel, Kurt"))
    assert (found.only_there, found.only_here) == (["Gödel, Kurt"], ["alovelace"])


def test_the_lms_s_own_number_is_not_taken_for_another_learner_s_id() -> None:
    # 4711 is Ada's student number in one system and Alan's number in the LMS.
    ada = Known("4711", name="Ada Lovelace")
    found = matched(Row(1, ids=("4711",), number="9"), Row(2, ids=("aturing",), number="4711"), known=(ada, ALAN))
    assert found.learners == {1: "4711", 2: "aturing"}


def test_one_person_in_two_sections_has_two_rows() -> None:
    rows = (Row(1, ids=("alovelace",), number="4711"), Row(2, ids=("alovelace",), number="4711"))
    assert matched(*rows).learners == {1: "alovelace", 2: "alovelace"}


def test_a_row_that_is_two_learners_by_its_ids_is_refused() -> None:
    with pytest.raises(
        AmbiguousLearnerError, match=r"'alovelace' may be alovelace or aturing; give the learners' ids"
    ):
        matched(Row(1, ids=("alovelace", "alan@example.edu")))


def test_a_learner_with_two_rows_of_different_people_is_refused() -> None:
    with pytest.raises(AmbiguousLearnerError, match="alovelace may be 'Lovelace, Ada' or 'Lovelace, Augusta'"):
        matched(
            Row(1, ids=("alovelace",), number="1", name="Lovelace, Ada"),
            Row(2, ids=("ada@example.edu",), number="2", name="Lovelace, Augusta"),
        )


def test_a_name_that_two_rows_have_is_refused() -> None:
    with pytest.raises(AmbiguousLearnerError, match="2 rows named 'Lovelace, Ada' may be alovelace"):
        matched(Row(1, ids=("s1",), name="Lovelace, Ada"), Row(2, ids=("s2",), name="Ada Lovelace"))


def test_a_name_that_two_learners_have_is_refused() -> None:
    other = Known("alovelace2", name="Ada Lovelace")
    with pytest.raises(AmbiguousLearnerError, match="a row named 'Lovelace, Ada' may be alovelace or alovelace2"):
        matched(Row(1, name="Lovelace, Ada"), known=(ADA, other))


def test_a_name_that_several_have_does_not_matter_where_ids_tell_them_apart() -> None:
    other = Known("alovelace2", name="Ada Lovelace")
    rows = (Row(1, ids=("alovelace2",), name="Lovelace, Ada"), Row(2, ids=("alovelace",), name="Lovelace, Ada"))
    assert matched(*rows, known=(ADA, other)).learners == {1: "alovelace2", 2: "alovelace"}


def test_a_single_word_is_no_name() -> None:
    assert matched(Row(1, name="Ada"), known=(Known("s1", name="Ada"),)).learners == {}
