"""ffn.show: numbers for people, values glued into prose, and tables."""

import numpy as np
import pytest

from ffn.show import glue, number, table


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"),
        (9_999, "9999"),
        (10_000, "10,000"),
        (-4_722_432, "-4,722,432"),
        (0.1 + 0.2, "0.3"),
        (-0.0, "0"),
        (1e-23, "1e-23"),
        (np.float64(2.5), "2.5"),
        (np.int64(7), "7"),
        ([1, -0.5], "[1, -0.5]"),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), "[[1, 2], [3, 4]]"),
        ("as it is", "as it is"),
        (True, "True"),
    ],
)
def test_number_is_written_for_people(value: object, text: str) -> None:
    assert number(value) == text


def test_number_keeps_the_digits_asked_for() -> None:
    assert number(2 / 3, 3) == "0.667"


def test_glue_does_nothing_outside_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    glue("x", 1.0)
    assert capsys.readouterr() == ("", "")


def test_table_is_aligned_as_plain_text() -> None:
    shown = str(table(["unit", "output"], [["first", 1.7], ["second", 0]], "Two units"))
    assert shown.splitlines() == ["Two units", "unit    output", "first   1.7", "second  0"]


def test_table_has_header_cells_for_columns_and_rows() -> None:
    markup = table(["unit", "output"], [["first", 1.7]])._repr_mimebundle_()["text/html"]
    assert '<th scope="col">unit</th>' in markup
    assert '<th scope="row">first</th><td>1.7</td>' in markup


def test_table_has_no_header_cell_without_text() -> None:
    markup = table(["", "shape"], [["W1", "2 x 3"]])._repr_mimebundle_()["text/html"]
    assert '<tr><td></td><th scope="col">shape</th></tr>' in markup


def test_table_escapes_what_would_be_markup() -> None:
    markup = table(["a<b"], [["x & y"]], "<i>")._repr_mimebundle_()["text/html"]
    assert "a&lt;b" in markup
    assert "x &amp; y" in markup
    assert "<caption>&lt;i&gt;</caption>" in markup


def test_table_refuses_a_row_of_another_length() -> None:
    with pytest.raises(ValueError, match="a row has 1 cells under 2 headers"):
        table(["a", "b"], [["only"]])
