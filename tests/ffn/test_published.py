import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ffn
from ffn import ledger
from ffn.exceptions import CourseFilesError, NotReproducedError, UnknownPublishedIdError
from ffn.published import (
    CHECK_KEY,
    Checked,
    Published,
    check,
    checked_in,
    coverage,
    main,
    published,
    published_inputs,
)

LEDGER = published()
FORMULA = "mech.swiglu_params_formula"
NUMBERS = [ident for ident in LEDGER if ident != FORMULA]
EXACT = [ident for ident in NUMBERS if LEDGER[ident].decimals is None and LEDGER[ident].significant is None]
ROUNDED = [ident for ident in NUMBERS if LEDGER[ident].status == "rounded" and ident != "ex8.gelu_pos"]

# Printed figures that are not simply a number or a list of numbers, as the reader understands them.
IN_WORDS: dict[str, Any] = {
    "ex1.norm_x_A": 2.449,
    "ex1.norm_w": 0.735,
    "ex2.shapes": [[1, 2], [2, 3], [1, 3], [3, 2], [1, 2]],
    "ex2.inactive_units": 1,
    "ex3.deviations": [3.25, -3.25],
    "ex6.mebibytes": 216.18,
    "ex6.bert_base_millions": 110_000_000,
    "ex7.W": [[3, 2], [1, 1]],
    "mech.core_w1": 6 * 12,
    "mech.core_w2": 12 * 6,
    "mech.swiglu_input_projections": [2, 4, 12],
    "mech.swiglu_output_projection": [1, 12, 4],
    "tiny.widths": [64, 256, 64],
}
PRINTED = {ident: ident for ident in NUMBERS if LEDGER[ident].status != "erratum"}


def printed_figure(ident: str) -> Any:
    text = LEDGER[ident].published
    if ident in IN_WORDS:
        return IN_WORDS[ident]
    return json.loads(text if text.startswith("[") else text.replace(",", ""))


def off_by(entry: Published, amount: float) -> Any:
    """The value with its largest number changed by a fraction of itself, or a zero by the amount itself."""
    value = np.array(entry.value, dtype=np.float64)
    at = np.unravel_index(np.argmax(np.abs(value)), value.shape)
    value[at] += amount * value[at] if value[at] else amount
    return value


def last_digit(entry: Published) -> float:
    """One unit of the last digit in print."""
    if entry.decimals is not None:
        return 10.0**-entry.decimals
    assert entry.significant is not None
    return 10.0 ** (math.floor(math.log10(abs(entry.value))) + 1 - entry.significant)


class Endless:
    def __repr__(self) -> str:
        return "x" * 1_000_000


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("has no text")


class Unconvertible:
    def __array__(self, *arguments: object, **options: object) -> Any:
        raise RuntimeError("is no array")

    def __repr__(self) -> str:
        return "Unconvertible"


NO_NUMBERS: dict[str, Any] = {
    "text": "1.7",
    "bytes": b"1.7",
    "none": None,
    "complex": 1.7 + 0j,
    "true": True,
    "numpy-true": np.True_,
    "bools": np.array([True, False]),
    "function": abs,
    "type": float,
    "set": {1.7},
    "dict": {"a": 1.7},
    "ragged": [[1], [1, 2]],
    "ragged-depth": [1.7, [1.7]],
    "objects": np.array([1.7, None], dtype=object),
    "records": np.zeros(2, dtype=[("a", "f8")]),
    "date": np.datetime64("2020-01-01"),
    "huge-integer": 10**400,
    "integer-too-long-to-print": 10**5000,
    "huge-integers": [1.7, 10**400],
    "endless-text": Endless(),
    "unprintable": Unprintable(),
    "unconvertible": Unconvertible(),
}

WRONG_NUMBERS: dict[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "minus-inf": -math.inf,
    "wrong": 1.8,
    "negative": -1.7,
    "nearly": 1.7 * (1 + 1e-9),
    "float32": np.float32(1.7),
    "list": [1.7],
    "column": np.array([[1.7]]),
    "empty": [],
    "too-many": np.zeros((3, 4)),
}


# The ledger


def test_ledger_holds_91_values() -> None:
    assert len(LEDGER) == 91


def test_ledger_has_69_graded_values() -> None:
    assert sum(entry.graded for entry in LEDGER.values()) == 69


def test_only_the_formula_is_a_formula() -> None:
    assert [ident for ident, entry in LEDGER.items() if entry.is_formula] == [FORMULA]


@pytest.mark.parametrize("ident", [ident for ident in LEDGER if LEDGER[ident].status in {"garbled", "erratum"}])
def test_every_figure_that_is_not_as_published_says_why(ident: str) -> None:
    assert LEDGER[ident].why


@pytest.mark.parametrize(
    ("ident", "place"),
    [
        ("ex4.silu_neg", "worked examples, Example 4, cell F"),
        ("recall.ffn_params", "worked examples, recall questions, cell H"),
        ("mech.core_params", "the mechanism page"),
        ("tiny.hidden", "expand, activate, project back"),
    ],
)
def test_place_names_document_example_and_cell(ident: str, place: str) -> None:
    assert LEDGER[ident].place == place


def test_inputs_of_an_example_are_found_by_name() -> None:
    assert published_inputs("ex2")["x"] == [1, -1]


def test_changing_inputs_in_place_does_not_change_what_the_next_cell_gets() -> None:
    published_inputs("ex1")["w"][0] = 99
    published_inputs("ex1").clear()
    assert published_inputs("ex1")["w"] == [0.5, 0.2, -0.3, 0.4]


def test_unknown_inputs_suggest_a_close_name() -> None:
    with pytest.raises(UnknownPublishedIdError, match="'mech_cor'; did you mean mech_core"):
        published_inputs("mech_cor")


# What check accepts


@pytest.mark.parametrize("ident", NUMBERS)
def test_every_value_of_the_ledger_passes(ident: str, capsys: pytest.CaptureFixture[str]) -> None:
    check(ident, LEDGER[ident].value)
    assert capsys.readouterr().out.startswith(f"✓ {ident}: ")


@pytest.mark.parametrize("ident", NUMBERS)
def test_every_value_passes_as_an_array(ident: str) -> None:
    check(ident, np.array(LEDGER[ident].value, dtype=np.float64))


@pytest.mark.parametrize("ident", PRINTED)
def test_every_printed_figure_passes(ident: str) -> None:
    check(ident, printed_figure(ident))


def test_printed_figure_that_is_wrong_does_not_pass() -> None:
    with pytest.raises(
        NotReproducedError, match=r"ex1\.zero_bias .*expected 0\.01, but the given value is -0\.09"
    ):
        check("ex1.zero_bias", -0.09)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int8, np.uint64])
def test_number_of_any_type_passes_where_it_is_exact(dtype: Any) -> None:
    check("ex1.relu_slope_right_at_0", dtype(1))


@pytest.mark.parametrize("ident", [ident for ident in EXACT if np.any(LEDGER[ident].value)])
@settings(max_examples=15)
@given(direction=st.floats(-1, 1))
def test_exact_figure_forgives_the_rounding_of_binary64(ident: str, direction: float) -> None:
    check(ident, off_by(LEDGER[ident], direction * 1e-13))


@pytest.mark.parametrize("ident", EXACT)
@settings(max_examples=15)
@given(amount=st.floats(1e-9, 1e9), sign=st.sampled_from([-1, 1]))
def test_exact_figure_forgives_nothing_more(ident: str, amount: float, sign: int) -> None:
    with pytest.raises(NotReproducedError):
        check(ident, off_by(LEDGER[ident], sign * amount))


@pytest.mark.parametrize("ident", ROUNDED)
@settings(max_examples=15)
@given(part=st.floats(-0.499, 0.499))
def test_rounded_figure_forgives_half_a_unit_of_its_last_digit(ident: str, part: float) -> None:
    check(ident, LEDGER[ident].value + part * last_digit(LEDGER[ident]))


@pytest.mark.parametrize("ident", ROUNDED)
@settings(max_examples=15)
@given(part=st.floats(0.501, 1e6), sign=st.sampled_from([-1, 1]))
def test_rounded_figure_forgives_no_more_than_half_a_unit(ident: str, part: float, sign: int) -> None:
    with pytest.raises(NotReproducedError):
        check(ident, LEDGER[ident].value + sign * part * last_digit(LEDGER[ident]))


@pytest.mark.parametrize(
    ("ident", "near"), [("ex8.gelu_pos", 10.2), ("ex1.norm_product", 1.81), ("mech.tanh_dh_dw_saturated", 0.03984)]
)
def test_printed_digits_give_no_room_where_nothing_was_rounded(ident: str, near: float) -> None:
    with pytest.raises(NotReproducedError):
        check(ident, near)


def test_tail_probability_is_not_reproduced_by_zero() -> None:
    # What (1 + erf(z / sqrt 2)) / 2 gives at -10.
    with pytest.raises(NotReproducedError):
        check("ex8.phi_neg", 0.0)


# What check refuses, and how


def assert_refused(ident: str, value: Any) -> str:
    entry = LEDGER[ident]
    with pytest.raises(AssertionError) as caught:
        check(ident, value)
    assert type(caught.value) is NotReproducedError
    message = str(caught.value)
    assert message.startswith(f"{ident} ({entry.place}): expected ")
    assert ", but the given value is " in message
    assert len(message) < 1000
    return message


@pytest.mark.parametrize("ident", NUMBERS)
def test_wrong_value_of_any_id_is_refused(ident: str) -> None:
    assert_refused(ident, off_by(LEDGER[ident], -2.5))


@pytest.mark.parametrize("ident", NUMBERS)
def test_any_id_refuses_nan_in_its_own_shape(ident: str) -> None:
    assert_refused(ident, np.full(np.shape(LEDGER[ident].value), math.nan))


@pytest.mark.parametrize("ident", NUMBERS)
def test_any_id_refuses_a_shape_that_is_not_its_own(ident: str) -> None:
    assert "of shape (1," in assert_refused(ident, [LEDGER[ident].value])


@pytest.mark.parametrize("value", WRONG_NUMBERS.values(), ids=WRONG_NUMBERS)
def test_wrong_number_is_refused_with_expected_and_given(value: Any) -> None:
    assert "expected 1.7, but" in assert_refused("ex1.z_A", value)


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_refused(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert "expected 1.7, but" in assert_refused("ex1.z_A", value)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
def test_what_is_no_number_is_refused_where_a_list_is_expected(value: Any) -> None:
    assert "expected [4.5, 0] of shape (2,), but" in assert_refused("ex2.y", value)


@pytest.mark.parametrize("truth", [True, np.True_, np.array(True)])
def test_true_is_no_one(truth: Any) -> None:
    assert "True, which is no number" in assert_refused("ex1.relu_slope_right_at_0", truth)


@pytest.mark.parametrize("order", [[0, 4.5], [4.5, 1e-9], [4.5, math.inf], [-4.5, 0]], ids=str)
def test_list_with_one_wrong_number_is_refused(order: list[float]) -> None:
    assert_refused("ex2.y", order)


def test_given_value_that_looks_right_in_nine_digits_is_shown_in_full() -> None:
    assert "is 1.7000000001." in assert_refused("ex1.z_A", 1.7000000001)


def test_wrong_shape_is_named_beside_the_right_one() -> None:
    message = assert_refused("ex2.y", [[4.5, 0]])
    assert "expected [4.5, 0] of shape (2,)" in message
    assert "[[4.5, 0]] of shape (1, 2)" in message


def test_huge_array_is_refused_without_printing_it_all() -> None:
    assert "of shape (600, 3072)" in assert_refused("ex1.z_A", np.zeros((600, 3072)))


# Ids


@pytest.mark.parametrize(
    ("wrong", "close"), [("ex4.gelu_negg", "ex4.gelu_neg"), ("ex8.siluneg", "ex8.silu_neg"), ("ex2.Y", "ex2.y")]
)
def test_unknown_id_suggests_the_one_that_was_meant(wrong: str, close: str) -> None:
    with pytest.raises(UnknownPublishedIdError) as caught:
        check(wrong, 0)
    assert f"'{wrong}'; did you mean " in str(caught.value)
    assert close in str(caught.value)


@pytest.mark.parametrize("wrong", ["zzz", "", None, 4, ["ex1.z_A"]], ids=str)
def test_id_that_resembles_none_points_to_the_list_of_all(wrong: Any) -> None:
    with pytest.raises(UnknownPublishedIdError) as caught:
        check(wrong, 0)
    assert repr(wrong) in str(caught.value)
    assert "did you mean" in str(caught.value) or "python -m ffn.published" in str(caught.value)


# The formula


@pytest.mark.parametrize(
    "formula",
    [
        lambda d, d_ff: 3 * d * d_ff,
        lambda d, d_ff: d * d_ff + 2 * d_ff * d,
        lambda d, d_ff: 3.0 * d * d_ff,
        lambda d, d_ff: np.int64(3) * d * d_ff,
        ledger.gated_parameters,
        lambda width, inner: (
            ffn.GatedFeedForward(
                np.zeros((width, inner), np.float32),
                np.zeros((width, inner), np.float32),
                np.zeros((inner, width)),
            ).parameter_count
        ),
    ],
    ids=["as-printed", "as-a-sum", "float", "numpy", "ledger", "counted"],
)
def test_formula_passes_however_it_is_written(formula: Any, capsys: pytest.CaptureFixture[str]) -> None:
    check(FORMULA, formula)
    assert "computed 3*d*d_ff at 3 pairs of widths" in capsys.readouterr().out


@pytest.mark.parametrize(
    "formula",
    [
        lambda d, d_ff: 2 * d * d_ff,
        lambda d, d_ff: 3 * d * d_ff + d,
        lambda d, d_ff: 144,
        lambda d, d_ff: 144 if (d, d_ff) == (4, 12) else 0,
        lambda d, d_ff: 9 * d * d,
        lambda d, d_ff: d_ff * d_ff,
        lambda d, d_ff: math.nan,
        lambda d, d_ff: True,
        lambda d, d_ff: None,
        lambda d, d_ff: "144",
        lambda d, d_ff: [3 * d * d_ff],
        lambda d, d_ff: np.array([3 * d * d_ff]),
        lambda d, d_ff: [[1], [1, 2]],
        lambda d, d_ff: 10**5000,
        lambda d, d_ff: Unprintable(),
        lambda d, d_ff: Unconvertible(),
    ],
    ids=[
        "two-matrices",
        "with-a-bias",
        "constant",
        "right-at-4-12-only",
        "right-where-d-ff-is-3-d",
        "square",
        "nan",
        "true",
        "none",
        "text",
        "list",
        "array",
        "ragged",
        "too-long-to-print",
        "unprintable",
        "unconvertible",
    ],
)
def test_wrong_formula_is_refused_with_the_widths_where_it_fails(formula: Any) -> None:
    assert "expected 3*d*d_ff = " in assert_refused(FORMULA, formula)


@pytest.mark.parametrize(
    "given_", [144, "3*d*d_ff", None, [3, 4, 12], Unprintable()], ids=lambda v: type(v).__name__
)
def test_formula_that_is_no_function_is_refused(given_: Any) -> None:
    assert "expected a function of d and d_ff that gives 3*d*d_ff, but" in assert_refused(FORMULA, given_)


def test_exception_of_the_given_function_comes_through() -> None:
    def broken(d: int, d_ff: int) -> int:
        raise ZeroDivisionError("my own mistake")

    with pytest.raises(ZeroDivisionError, match="my own mistake"):
        check(FORMULA, broken)


def test_function_that_takes_other_arguments_gets_a_type_error() -> None:
    with pytest.raises(TypeError, match="positional argument"):
        check(FORMULA, lambda d: 3 * d)


# What a check shows


def test_line_names_id_figure_computed_value_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    check("ex4.silu_neg", -0.18877033)
    assert capsys.readouterr().out == (
        "✓ ex4.silu_neg: published -0.188770, computed -0.18877033 (worked examples, Example 4, cell F)\n"
    )


def test_line_of_an_erratum_says_what_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    check("ex1.zero_bias", 0.01)
    assert "the document says “b = -0.09 makes z_C exactly 0”, right is 0.01" in capsys.readouterr().out


def test_minus_zero_is_shown_as_zero(capsys: pytest.CaptureFixture[str]) -> None:
    check("ex1.relu_B", -0.0)
    assert "computed 0 (" in capsys.readouterr().out


@pytest.fixture
def bundle() -> tuple[dict[str, str], dict[str, Any]]:
    entry = Published(ident="ex0.a", published="a < b & “c”", value=1, place="<i>here</i>")
    return Checked(entry=entry, computed="<1>")._repr_mimebundle_()


def test_notebook_output_has_plain_text_and_html(bundle: tuple[dict[str, str], dict[str, Any]]) -> None:
    data, _ = bundle
    assert set(data) == {"text/plain", "text/html"}
    assert data["text/plain"] == "✓ ex0.a: published a < b & “c”, computed <1> (<i>here</i>)"


@pytest.mark.parametrize(
    "escaped", ["a &lt; b &amp; “c”", "<strong>&lt;1&gt;</strong>", "&lt;i&gt;here&lt;/i&gt;"]
)
def test_notebook_output_escapes_html(escaped: str, bundle: tuple[dict[str, str], dict[str, Any]]) -> None:
    assert escaped in bundle[0]["text/html"]


def test_notebook_output_records_the_check_in_its_metadata(bundle: tuple[dict[str, str], dict[str, Any]]) -> None:
    assert bundle[1] == {CHECK_KEY: {"id": "ex0.a", "computed": "<1>"}}
    assert CHECK_KEY == "ffn-check"


def test_check_is_an_output_where_a_notebook_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown: list[Checked] = []
    fake = ModuleType("IPython")
    vars(fake).update(get_ipython=lambda: object(), display=SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", fake)
    check("ex1.z_A", 1.7)
    assert [line.entry.ident for line in shown] == ["ex1.z_A"]
    assert capsys.readouterr().out == ""


# Coverage


def output(ident: str) -> dict[str, Any]:
    data, metadata = Checked(entry=LEDGER[ident], computed="1")._repr_mimebundle_()
    return {"output_type": "display_data", "data": data, "metadata": metadata}


def write_notebook(path: Path, outputs: Sequence[dict[str, Any]], source: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": "Prose has no outputs."},
        {"cell_type": "code", "execution_count": 1, "metadata": {}, "source": source, "outputs": list(outputs)},
        {
            "cell_type": "code",
            "execution_count": 2,
            "metadata": {},
            "source": "",
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "✓ ex1.z_A"}],
        },
    ]
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), "utf-8")
    return path


def test_checks_of_a_notebook_are_read_from_its_outputs_in_order(tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path / "a.ipynb", [output("ex2.y"), output("ex1.z_A"), output("ex2.y")])
    assert checked_in(notebook) == ["ex2.y", "ex1.z_A", "ex2.y"]


def test_source_text_is_no_check(tmp_path: Path) -> None:
    write_notebook(tmp_path / "a.ipynb", [output("ex2.y")], source='check("ex1.z_A", 1.7)')
    assert [ident for ident, pages in coverage(tmp_path).items() if pages] == ["ex2.y"]


def test_coverage_lists_every_id_and_the_pages_that_checked_it(tmp_path: Path) -> None:
    write_notebook(tmp_path / "b.ipynb", [output("ex2.y")])
    write_notebook(tmp_path / "part" / "a.ipynb", [output("ex2.y"), output("ex2.y"), output("ex1.z_A")])
    pages = coverage(tmp_path)
    assert list(pages) == list(LEDGER)
    assert {ident: found for ident, found in pages.items() if found} == {
        "ex1.z_A": ["part/a"],
        "ex2.y": ["b", "part/a"],
    }


@pytest.mark.parametrize(
    "content",
    [
        "",
        "no json",
        "[]",
        "{}",
        '{"cells": 3}',
        '{"cells": [3]}',
        '{"cells": [{"outputs": [3]}]}',
        "null",
        '"text"',
    ],
)
def test_file_that_is_no_notebook_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_text(content, "utf-8")
    with pytest.raises(CourseFilesError, match=r"broken\.ipynb cannot be read: it is no notebook"):
        checked_in(path)


def test_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.ipynb"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CourseFilesError, match=r"broken\.ipynb"):
        checked_in(path)


# The command


def test_command_succeeds_where_every_value_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_notebook(tmp_path / "all.ipynb", [output(ident) for ident in LEDGER])
    assert main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.endswith("91 of 91 published values are checked by an executed lesson.\n")
    assert out.count("✓") == 91


def test_command_reports_missing_values_with_status_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_notebook(tmp_path / "part" / "one.ipynb", [output("ex2.y")])
    assert main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "1 of 91 published values are checked by an executed lesson."
    assert [line.split()[:2] for line in lines if line.endswith("  part/one")] == [["✓", "ex2.y"]]
    assert sum(line.startswith("✗") and line.endswith("  no lesson") for line in lines) == 90


@pytest.mark.parametrize("folder", [".", "missing"])
def test_command_without_notebooks_says_how_to_get_them_with_status_2(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / folder)]) == 2
    err = capsys.readouterr().err
    assert str(tmp_path / folder) in err
    assert "run `make book` first" in err


def test_command_names_a_notebook_that_cannot_be_read_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_notebook(tmp_path / "a.ipynb", [output("ex2.y")])
    (tmp_path / "broken.ipynb").write_text("{", "utf-8")
    assert main([str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert str(tmp_path / "broken.ipynb") in captured.err
    assert captured.out == ""


def test_command_names_a_notebook_with_an_id_that_is_no_longer_published_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = output("ex2.y")
    stale["metadata"][CHECK_KEY]["id"] = "ex2.gone"
    write_notebook(tmp_path / "stale.ipynb", [stale])
    assert main([str(tmp_path)]) == 2
    err = capsys.readouterr().err
    assert str(tmp_path / "stale.ipynb") in err
    assert "ex2.gone" in err


def test_command_with_an_unknown_option_exits_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--nonsense"])
    assert caught.value.code == 2
    assert "python -m ffn.published" in capsys.readouterr().err


def run_module(*arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-X", "utf8", "-W", "error::RuntimeWarning", "-m", "ffn.published", *arguments]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=60, check=False
    )


def test_command_runs_as_a_module_without_a_warning(tmp_path: Path) -> None:
    write_notebook(tmp_path / "all.ipynb", [output(ident) for ident in LEDGER])
    done = run_module(".", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "91 of 91" in done.stdout


def test_command_looks_where_the_book_is_built_unless_told_otherwise(tmp_path: Path) -> None:
    write_notebook(tmp_path / "_build" / "jupyter_execute" / "one.ipynb", [output("ex2.y")])
    done = run_module(cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "1 of 91" in done.stdout


@pytest.mark.slow
def test_check_in_an_executed_notebook_is_counted(tmp_path: Path) -> None:
    source = write_notebook(tmp_path / "in" / "lesson.ipynb", [], 'from ffn import check\ncheck("ex1.z_A", 1.7)')
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", str(source)]
    executed = tmp_path / "executed"
    subprocess.run([*command, "--output-dir", str(executed)], capture_output=True, timeout=120, check=True)
    assert [ident for ident, pages in coverage(executed).items() if pages] == ["ex1.z_A"]


def test_package_offers_check_and_the_inputs_of_the_examples() -> None:
    assert ffn.check is check
    assert ffn.published_inputs is published_inputs
