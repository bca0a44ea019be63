"""The Python that runs the cells of a live page, here outside of a browser."""

import importlib.util
import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.helpers import ROOT

STATIC = ROOT / "book" / "_static"


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, STATIC / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = _load("live_runner")


class Sent:
    """A page, and the messages that it sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self.page = runner.Page(lambda text: self.messages.append(json.loads(text)))

    def run(self, source: str, name: str = "Cell 1") -> str:
        self.messages.clear()
        status: str = self.page.run(source, name)
        return status

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [message for message in self.messages if message["kind"] == kind]

    def text(self) -> str:
        return "".join(message["text"] for message in self.of("stream"))


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sent]:
    """A page; the modules that it puts into place are taken away again."""
    for name in ("IPython", "IPython.display", "__main__"):
        monkeypatch.setitem(sys.modules, name, sys.modules.get(name))
    return Sent()


def test_the_last_expression_is_shown(sent: Sent) -> None:
    assert sent.run("x = 2\nx + 1") == "ok"
    assert [message["data"] for message in sent.of("display")] == [{"text/plain": "3"}]


@pytest.mark.parametrize("source", ["x = 3", "None", "3;", "", "# a comment"])
def test_nothing_is_shown_where_a_notebook_shows_nothing(sent: Sent, source: str) -> None:
    assert sent.run(source) == "ok"
    assert sent.messages == []


def test_cells_share_their_names(sent: Sent) -> None:
    sent.run("def f(): return y")
    sent.run("y = 5", "Cell 2")
    sent.run("print(f())", "Cell 3")
    assert sent.text() == "5\n"


def test_text_and_values_come_in_the_order_in_which_they_were_made(sent: Sent) -> None:
    sent.run("print('before')\ndisplay(1)\nprint('after')\n2")
    assert [message["kind"] for message in sent.messages] == ["stream", "display", "stream", "display"]


def test_what_the_course_shows_comes_as_it_does_in_a_notebook(sent: Sent) -> None:
    sent.run("from ffn.show import glue, table\nglue('n', 1234567)\ntable(['a'], [['b']])")
    kept, shown = sent.of("display")
    assert kept["data"] == {"application/papermill.record/text/plain": "'1,234,567'"}
    assert kept["metadata"]["scrapbook"]["name"] == "n"
    assert '<th scope="row">b</th>' in shown["data"]["text/html"]


def test_an_error_names_the_lines_of_the_cells_and_not_the_insides_of_modules(sent: Sent) -> None:
    sent.run("def half(x):\n    return x / 0")
    assert sent.run("import json\n\njson.loads('{')", "Cell 2") == "failed"
    (error,) = sent.of("error")
    assert error["name"] == "JSONDecodeError"
    assert "Cell 2, line 3\n    json.loads('{')" in error["text"]
    assert "raise JSONDecodeError" not in error["text"]
    sent.run("half(1)", "Cell 3")
    (error,) = sent.of("error")
    lines = error["text"].splitlines()
    assert lines[:4] == ["Cell 3, line 1", "    half(1)", "Cell 1, line 2, in half", "    return x / 0"]
    assert lines[-1] == "ZeroDivisionError: division by zero"


def test_an_endless_recursion_is_told_in_a_few_lines(sent: Sent) -> None:
    assert sent.run("def f(): return f()\nf()") == "failed"
    (error,) = sent.of("error")
    assert "more calls" in error["text"]
    assert len(error["text"].splitlines()) < 30


def test_a_syntax_error_points_at_its_place(sent: Sent) -> None:
    assert sent.run("x = (1\n") == "failed"
    assert "line 1" in sent.of("error")[0]["text"]


@pytest.mark.parametrize("source", ["raise SystemExit(1)", "input('name?')", "raise BaseException"])
def test_whatever_a_cell_raises_is_an_error_of_the_cell(sent: Sent, source: str) -> None:
    assert sent.run(source) == "failed"
    assert sent.run("1") == "ok"


def test_an_interrupt_is_no_failure(sent: Sent) -> None:
    assert sent.run("raise KeyboardInterrupt") == "interrupted"


def test_a_package_that_is_not_there_is_told_with_those_that_are(sent: Sent) -> None:
    sent.run("import no_such_package")
    assert "numpy, matplotlib and ffn" in sent.of("error")[0]["text"]


def test_text_beyond_the_limit_is_left_out_and_said_to_be(sent: Sent) -> None:
    sent.run("for _ in range(3):\n    print('x' * 70_000)")
    assert sent.text().count("x") == pytest.approx(runner.LONGEST, abs=10)
    assert sent.text().endswith("nothing more is shown.\n")
    sent.run("print('y')", "Cell 2")
    assert sent.text() == "y\n"


def test_text_that_reaches_the_limit_exactly_is_cut_once(sent: Sent) -> None:
    sent.run(f"import sys\nfor _ in range({runner.LONGEST // 10 + 3}):\n    sys.stdout.write('123456789\\n')\n")
    assert sent.text().count("nothing more is shown.") == 1
    sent.run(f"import sys\nfor _ in range({runner.LONGEST // 10}):\n    sys.stdout.write('123456789\\n')\n")
    assert "nothing more is shown." not in sent.text()


def test_streams_are_given_back_after_each_cell(sent: Sent) -> None:
    before = sys.stdout, sys.stderr
    sent.run("import sys\nsys.stdout = None")
    assert (sys.stdout, sys.stderr) == before


@pytest.mark.parametrize(
    "source", ["from ffn import plots", "from ffn.plots import canvas", "import ffn.plots as p"]
)
def test_a_cell_that_draws_needs_matplotlib(sent: Sent, source: str) -> None:
    assert sent.page.needs(source) == ["matplotlib"]


@pytest.mark.parametrize("source", ["from ffn import check", "plots = 3", "x = ("])
def test_other_cells_do_not(sent: Sent, source: str) -> None:
    assert sent.page.needs(source) == []


# What a slice lacks


@pytest.fixture
def slicing(sent: Sent) -> Sent:
    """A page on which ``absent`` leaves a cell out."""

    def absent() -> None:
        raise runner.LeftOut("Left out in this test.")

    sent.page.names["absent"] = absent
    return sent


def test_a_cell_that_needs_more_than_the_slice_is_left_out_in_words(slicing: Sent) -> None:
    assert slicing.run("absent()") == "left-out"
    assert slicing.messages == [{"kind": "note", "text": "Left out in this test."}]


def test_what_builds_on_a_cell_that_was_left_out_is_left_out_too(slicing: Sent) -> None:
    slicing.run("rows = 'of an earlier cell'")
    slicing.run("rows = absent()", "Cell 2")
    assert slicing.run("print(rows)", "Cell 3") == "left-out"
    assert slicing.text() == ""
    assert slicing.run("for r in rows: shown = r", "Cell 4") == "left-out"
    assert slicing.run("shown", "Cell 5") == "left-out"


def test_a_misspelled_name_is_an_error_all_the_same(slicing: Sent) -> None:
    slicing.run("rows = absent()")
    assert slicing.run("rosw", "Cell 2") == "failed"


def test_a_name_that_is_given_a_value_again_is_no_longer_left_out(slicing: Sent) -> None:
    slicing.run("rows = absent()")
    slicing.run("rows = [1]", "Cell 2")
    slicing.run("del rows", "Cell 3")
    assert slicing.run("rows", "Cell 4") == "failed"


def test_functions_of_a_cell_that_was_left_out_are_still_there(slicing: Sent) -> None:
    slicing.run("def f(): return 4\nrows = absent()")
    assert slicing.run("f()", "Cell 2") == "ok"
