"""What feedback shows of hidden tests: nothing of their source or arguments, and only sentences that are theirs."""

from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from grader.engine.store import RECORD_KEY
from grader.hide_tests import FAILED, NOTE, HideTests, told
from grader.notebooks import HIDDEN_KEY

TEST = """# More tests run here.
### BEGIN HIDDEN TESTS
for shape in [(3,), (2, 4)]:
    message = "relu is wrong on random input."
    assert np.allclose(relu(x), y), message
    assert np.shape(got) == shape, f"relu returns shape {np.shape(got)} for z of shape {shape}."
    agree(gelu, right, x, on=f"x of shape {shape}")
    agree(gelu, right, x, on="a float32 array")
### END HIDDEN TESTS"""


def graded(message: str, *, marked: bool = True, by_engine: bool = True, ename: str = "ValueError") -> Any:
    outputs = [
        new_output("stream", name="stdout", text="asked with 730.25"),
        new_output("error", ename=ename, evalue=message, traceback=["hidden, line 4: assert", message]),
    ]
    metadata = {HIDDEN_KEY: True} if marked else {}
    notebook = new_notebook(cells=[new_code_cell(TEST, outputs=outputs, metadata=metadata)])
    if by_engine:
        notebook.metadata[RECORD_KEY] = {"status": "graded"}
    HideTests().preprocess(notebook, {})
    return notebook.cells[0]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("relu is wrong on random input.", "relu is wrong on random input."),
        ("AssertionError: relu is wrong on random input.", "relu is wrong on random input."),
        ("relu returns shape (730, 25) for z of shape (3,).", "relu returns shape … for z of shape …."),
        ("gelu is wrong on x of shape (730,).", "gelu is wrong on x of shape …."),
        ("gelu is wrong on a float32 array.", "gelu is wrong on a float32 array."),
        ("gelu is wrong on other input.", "gelu is wrong on other input."),
        (
            "gelu returns nothing on a float32 array; give the result back with return.",
            "gelu returns nothing on a float32 array; give the result back with return.",
        ),
        (
            "gelu overflows, or computes an undefined value, on a float32 array.",
            "gelu overflows, or computes an undefined value, on a float32 array.",
        ),
        (
            "gelu changes the arguments that it is given; work on a copy.",
            "gelu changes the arguments that it is given; work on a copy.",
        ),
        (
            "This step is not written yet; put your code in place of raise NotImplementedError().",
            "This step is not written yet; put your code in place of raise NotImplementedError().",
        ),
        ("ValueError: 730.25", FAILED),
        ("730.25 is wrong on a float32 array.", FAILED),
        ("gelu is wrong on 730.25.", FAILED),
        ("relu is wrong on random input. 730.25", FAILED),
        ("Arrays are not equal: x: array([730.25])", FAILED),
        ("", FAILED),
    ],
)
def test_only_sentences_of_the_test_s_own_are_told(message: str, shown: str) -> None:
    assert told(TEST, message) == shown


def test_a_test_that_is_no_python_tells_nothing() -> None:
    assert told("### BEGIN HIDDEN TESTS\n%%magic (", "magic") == FAILED


def test_source_output_and_kind_of_error_of_a_hidden_test_are_gone() -> None:
    cell = graded("730.25")
    assert cell.source == f"# More tests run here.\n{NOTE}"
    assert [output.output_type for output in cell.outputs] == ["error"]
    assert (cell.outputs[0].ename, cell.outputs[0].evalue) == ("AssertionError", FAILED)
    assert cell.outputs[0].traceback == [f"AssertionError: {FAILED}"]


def test_what_the_visible_part_of_a_cell_said_is_kept() -> None:
    cell = graded("relu(2) should be 2.", marked=False)
    assert cell.outputs[-1].traceback == ["ValueError: relu(2) should be 2."]


def test_in_another_program_s_notebook_no_message_is_trusted() -> None:
    assert graded("730.25", marked=False, by_engine=False).outputs[-1].evalue == FAILED


def test_what_the_engine_says_of_a_hidden_test_is_kept() -> None:
    assert (
        graded("this cell took too long and was stopped.", ename="TimedOut").outputs[-1].evalue.startswith("this")
    )


def test_partial_credit_stays() -> None:
    notebook = new_notebook(cells=[new_code_cell(TEST, metadata={HIDDEN_KEY: True})])
    notebook.cells[0].outputs = [new_output("execute_result", data={"text/plain": "0.5"}, execution_count=1)]
    HideTests().preprocess(notebook, {})
    assert notebook.cells[0].outputs[0].data["text/plain"] == "0.5"
