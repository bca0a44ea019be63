"""A CSV file of which only the cells that are replaced change."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grader.exceptions import TemplateUnreadableError
from grader.export.sheet import LONGEST_CELL, MOST_BYTES, Sheet, defused, read_sheet

CELLS = st.text(alphabet=st.sampled_from("ab ,;\t\"\n'=é"), max_size=8)
# A line of one empty cell is a blank line, which Python reads as one of none.
WIDE = st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=5)
TABLES = st.lists(st.lists(CELLS, min_size=1, max_size=4), min_size=1, max_size=5)


def written(table: list[list[str]], delimiter: str, quoting: int, end: str) -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator=end).writerows(table)  # type: ignore[arg-type]
    return out.getvalue()


@given(
    TABLES,
    st.sampled_from(",;\t"),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_it_reads_what_python_writes(table: list[list[str]], delimiter: str, quoting: int, end: str) -> None:
    assert Sheet(written(table, delimiter, quoting, end), delimiter).rows == table


@given(WIDE, st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]), CELLS, st.data())
def test_only_the_cell_that_is_replaced_changes(
    table: list[list[str]], quoting: int, value: str, data: st.DataObject
) -> None:
    sheet = Sheet(written(table, ",", quoting, "\r\n"), ",")
    row = data.draw(st.integers(0, len(table) - 1))
    column = data.draw(st.integers(0, len(table[row]) - 1))
    sheet.replace(row, column, value)
    expected = [list(cells) for cells in table]
    expected[row][column] = value
    assert list(csv.reader(io.StringIO(sheet.text(), newline=""))) == expected


def test_an_unchanged_file_is_the_same_to_the_byte() -> None:
    text = '\ufeffa;"b";c \r\n1;"2 ""x""";\n\n"three\nlines";;5'
    assert Sheet(text, ";").text() == text


def test_a_value_that_needs_quotes_gets_them() -> None:
    sheet = Sheet("a,b\n1,2\n", ",")
    sheet.replace(1, 0, "1,5")
    assert sheet.text() == 'a,b\n"1,5",2\n'


def test_a_quoted_cell_stays_quoted() -> None:
    sheet = Sheet('a,b\n"1",2\n', ",")
    sheet.replace(1, 0, "3")
    assert sheet.text() == 'a,b\n"3",2\n'


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found_by_the_headings(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "grades.csv"
    path.write_text(f"Name{delimiter}Grade\n1,5; x{delimiter}2\n", encoding="utf-8-sig")
    assert read_sheet(path, ["Name", "Grade"]).delimiter == delimiter


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "its first line has none of the columns Name, Grade"),
        (b"one,two\n", "its first line has none of the columns Name, Grade"),
        ("Name,Grade\nJosé,1\n".encode("latin-1"), "it is not in UTF-8"),
        ("Name,Grade\n".encode("utf-16"), "it is not in UTF-8"),
        (b"Name,Grade\n\0", "it is no CSV file"),
        (b'Name,Grade\n"Ada,1\n', "the quotes in its line 2 are not those of a CSV file"),
        (b'Name,Grade\n"Ada"x,1\n', "the quotes in its line 2 are not those of a CSV file"),
        (b"Name,Grade\n" + b"a" * (LONGEST_CELL + 1), "a cell in it is longer than any"),
        (b"Name,Grade\n" * (MOST_BYTES // 11 + 1), "it is larger than 50 MB"),
        (b"PK\x03\x04 a workbook\xff", "it is not in UTF-8"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_that_names_the_file(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "grades.csv"
    path.write_bytes(content)
    with pytest.raises(TemplateUnreadableError) as caught:
        read_sheet(path, ["Name", "Grade"])
    assert str(caught.value).startswith(f"{path} cannot be used: {reason}")


def test_a_file_that_is_missing_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(
        TemplateUnreadableError, match=r"none\.csv cannot be used: no such file or directory; take"
    ):
        read_sheet(tmp_path / "none.csv", ["Name"])


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@sum", "\tx", "\rx"])
def test_a_formula_is_kept_from_a_spreadsheet(text: str) -> None:
    assert defused(text) == f"'{text}"


@pytest.mark.parametrize("text", ["Ada", "a=1", "", " =1"])
def test_other_text_is_as_it_was(text: str) -> None:
    assert defused(text) == text
