"""The block around the tests of a step, and the comparisons in it, with a small unit made up for it."""

import contextlib
import functools
import itertools
import linecache
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ffn.misconceptions as package
from ffn.exceptions import StepFailedError, UnknownStepError
from ffn.exercise import Trial, agree
from ffn.exercise import testing as block_around
from ffn.misconceptions import Misconception, Probe, Step

PLACE = "The book treats it on the page “some page” in the part “some part”, section “the idea”."
DOUBLED = "the number was doubled."


def half(x: Any) -> Any:
    return x / 2


def fourth(x: Any) -> Any:
    return x / 4


def quarter(x: Any) -> Any:
    return half(half(x))


def known(name: str, wrong: dict[str, Any], hint: str) -> Misconception:
    return Misconception(name=name, wrong=wrong, hint=hint, page="book/some-part/some-page#the-idea")


STEPS = (
    Step(
        name="half",
        own={"half": half},
        probes=(Probe("half", (3.0,)), Probe("half", (np.array([2.0, -4.0]),)), Probe("half", ([8],))),
        misconceptions=(
            known("doubled", {"half": lambda x: np.multiply(x, 2)}, DOUBLED),
            known("of-the-size", {"half": lambda x: abs(x) / 2}, "the sign was lost."),
            known("one-number-only", {"half": lambda x: float(x) / 2}, "one number was expected."),
        ),
    ),
    Step(
        name="quarter",
        own={"quarter": quarter, "fourth": fourth},
        probes=(Probe("quarter", (8.0,)), Probe("fourth", (8.0,))),
        misconceptions=(
            known("halved-once", {"quarter": half, "fourth": half}, "the number was halved once."),
            known("subtracted", {"fourth": lambda x: x - 4}, "4 was subtracted."),
        ),
        uses=("half",),
    ),
)


@pytest.fixture(autouse=True)
def unit(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The unit `toy` beside those of the course."""
    module = ModuleType("ffn.misconceptions.toy")
    vars(module)["STEPS"] = STEPS
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(package, "UNITS", (*package.UNITS, "toy"))
    yield
    package.unit_steps.cache_clear()


NUMBERS = itertools.count()


class Notebook:
    """Cells that run one after the other in one namespace, their sources known to tracebacks."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"testing": block_around, "np": np}

    def cell(self, source: str, *, stored: bool = True) -> None:
        filename = f"<cell {next(NUMBERS)}>"
        if stored:
            linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        exec(compile(source, filename, "exec"), self.names)

    def fails(self, source: str, *, stored: bool = True) -> str:
        with pytest.raises(StepFailedError) as caught:
            self.cell(source, stored=stored)
        return str(caught.value)


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


RIGHT = "def half(x):\n    return np.asarray(x) / 2"
WRONG = "def half(x):\n    return np.asarray(x) * 2"
SQUARED = "def half(x):\n    return np.asarray(x) ** 2"
TEST = 'with testing("toy.half"):\n    assert half(3.0) == 1.5, "half should give 1.5 for 3."'
PASSES = 'with testing("toy.half"):\n    assert half(0.0) == 0, "half should give 0 for 0."'
HIDDEN = 'with testing("toy.half", hidden=True):\n    assert half(3.0) == 1.5, "half should give 1.5 for 3."'


# What a failing test says


def test_right_function_passes_without_a_word(notebook: Notebook, capsys: pytest.CaptureFixture[str]) -> None:
    notebook.cell(RIGHT)
    notebook.cell(TEST)
    assert capsys.readouterr() == ("", "")


def test_known_mistake_is_named_with_what_happened_and_the_place_in_the_book(notebook: Notebook) -> None:
    notebook.cell(WRONG)
    assert notebook.fails(TEST).splitlines() == [
        "half should give 1.5 for 3.",
        f"What happened: {DOUBLED}",
        PLACE,
    ]


def test_unknown_mistake_shows_the_line_that_failed_without_its_message(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    assert notebook.fails(TEST).splitlines() == [
        "half should give 1.5 for 3.",
        "The line that failed: assert half(3.0) == 1.5",
    ]


def test_line_that_failed_is_shown_in_one_line(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    lines = ("assert np.allclose(", "    half(3.0),", "    1.5,", "), (", "    'No.'", ")")
    said = notebook.fails("\n    ".join(('with testing("toy.half"):', *lines)))
    assert said == "No.\nThe line that failed: assert np.allclose( half(3.0), 1.5, )"


def test_line_that_failed_may_be_a_call(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    notebook.cell("def check(value):\n    assert value == 1.5, 'That is not it.'")
    said = notebook.fails('with testing("toy.half"):\n    for x in (3.0,):\n        check(half(x))')
    assert said == "That is not it.\nThe line that failed: check(half(x))"


def test_line_that_failed_may_head_a_loop(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    notebook.cell("def pairs():\n    assert half(3.0) == 1.5, 'No.'")
    said = notebook.fails('with testing("toy.half"):\n    for pair in pairs():\n        print(pair)')
    assert said == "No.\nThe line that failed: for pair in pairs():"


def test_line_that_raises_its_own_message_is_not_repeated(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    assert (
        notebook.fails('with testing("toy.half"):\n    raise AssertionError("half overflows.")')
        == "half overflows."
    )


def test_line_is_left_out_where_no_source_is_known(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    assert notebook.fails(TEST, stored=False) == "half should give 1.5 for 3."


def test_line_is_shown_as_it_is_where_the_cell_is_not_python(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    filename = "<magic>"
    lines = ["%%time\n", *TEST.splitlines(keepends=True)[1:]]
    linecache.cache[filename] = (1, None, lines, filename)
    with pytest.raises(StepFailedError) as caught:
        exec(compile(TEST, filename, "exec"), notebook.names)
    assert str(caught.value).endswith(
        'The line that failed: assert half(3.0) == 1.5, "half should give 1.5 for 3."'
    )


def test_assertion_without_a_message_still_says_that_it_failed(notebook: Notebook) -> None:
    notebook.cell("def half(x):\n    assert x < 0\n    return x / 2")
    said = notebook.fails('with testing("toy.half"):\n    half(3.0)')
    assert said == "An assertion does not hold.\nThe line that failed: half(3.0)"


def test_known_mistake_fails_the_block_though_no_line_of_it_fails(notebook: Notebook) -> None:
    notebook.cell(WRONG)
    said = notebook.fails(PASSES)
    assert said.startswith("The lines of this test agree, but there is a case that does not.\nWhat happened: ")
    assert DOUBLED in said


def test_unknown_mistake_that_no_line_notices_passes(notebook: Notebook) -> None:
    notebook.cell(SQUARED)
    notebook.cell(PASSES)


def test_known_mistake_that_raises_is_named_with_the_line_of_the_answer(notebook: Notebook) -> None:
    notebook.cell("# My answer\ndef half(x):\n    y = float(x)\n    return y / 2")
    first, *rest = notebook.fails('with testing("toy.half"):\n    half([1.0, 2.0])').splitlines()
    assert first.startswith("Your code raises TypeError: float() argument must be")
    assert first.endswith(" (line 3 of its cell).")
    assert rest == ["What happened: one number was expected.", PLACE]


def test_known_mistake_that_the_test_stumbles_over_is_named(notebook: Notebook) -> None:
    notebook.cell(WRONG)
    first, second, _ = notebook.fails('with testing("toy.half"):\n    half(3.0)[0]').splitlines()
    assert first.startswith("The test stops with IndexError: ")
    assert second == f"What happened: {DOUBLED}"


def test_exception_of_an_unknown_mistake_comes_through_as_it_is(notebook: Notebook) -> None:
    notebook.cell("def half(x):\n    return x / 0")
    with pytest.raises(ZeroDivisionError) as caught:
        notebook.cell(TEST)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_mistake_in_two_functions_is_named_where_both_show_it(notebook: Notebook) -> None:
    notebook.cell("def quarter(x):\n    return x / 2\n\n\ndef fourth(x):\n    return x / 2")
    said = notebook.fails('with testing("toy.quarter"):\n    assert quarter(4.0) == 1, "No."')
    assert "What happened: the number was halved once." in said


def test_mistake_in_two_functions_is_not_named_where_one_of_them_is_right(notebook: Notebook) -> None:
    notebook.cell("def quarter(x):\n    return x / 2\n\n\ndef fourth(x):\n    return x / 4")
    said = notebook.fails('with testing("toy.quarter"):\n    assert quarter(4.0) == 1, "No."')
    assert "What happened" not in said


def test_mistake_in_one_function_is_named_while_another_is_still_a_stub(notebook: Notebook) -> None:
    notebook.cell("def quarter(x):\n    raise NotImplementedError()\n\n\ndef fourth(x):\n    return x - 4")
    said = notebook.fails('with testing("toy.quarter"):\n    assert fourth(4.0) == 1, "No."')
    assert "What happened: 4 was subtracted." in said


def test_name_that_is_no_function_raises_what_python_says(notebook: Notebook) -> None:
    notebook.cell("half = 2")
    with pytest.raises(TypeError, match="not callable"):
        notebook.cell(TEST)


# What is missing


def test_name_that_is_not_defined_is_named(notebook: Notebook) -> None:
    assert notebook.fails(TEST) == "half is not defined; run the cell with your answer first."


def test_first_of_two_names_that_are_not_defined_is_named(notebook: Notebook) -> None:
    notebook.cell("def quarter(x):\n    return x / 4")
    said = notebook.fails('with testing("toy.quarter", hidden=True):\n    pass')
    assert said == "fourth is not defined; run the cell with your answer first."


def test_nothing_is_replaced_where_a_name_is_not_defined(notebook: Notebook) -> None:
    notebook.cell(RIGHT)
    own = notebook.names["half"]
    notebook.fails('with testing("toy.quarter"):\n    pass')
    assert notebook.names["half"] is own


STUB = "def {}(x):\n    raise NotImplementedError()"
NOT_WRITTEN = "{} is not written yet; put your code in place of raise NotImplementedError()."


@pytest.mark.parametrize("test", [TEST, HIDDEN], ids=["visible", "hidden"])
def test_stub_is_named(notebook: Notebook, test: str) -> None:
    notebook.cell(STUB.format("half"))
    assert notebook.fails(test) == NOT_WRITTEN.format("half")


@pytest.mark.parametrize(("called", "stub"), [("quarter", "quarter"), ("fourth", "fourth")])
def test_of_two_stubs_the_one_that_was_called_is_named(notebook: Notebook, called: str, stub: str) -> None:
    notebook.cell(STUB.format("quarter") + "\n\n\n" + STUB.format("fourth"))
    assert notebook.fails(f'with testing("toy.quarter"):\n    {called}(1.0)') == NOT_WRITTEN.format(stub)


def test_stub_is_named_where_another_function_of_the_step_calls_it(notebook: Notebook) -> None:
    notebook.cell("def quarter(x):\n    return fourth(x)\n\n\n" + STUB.format("fourth"))
    assert notebook.fails('with testing("toy.quarter"):\n    quarter(1.0)') == NOT_WRITTEN.format("fourth")


def test_stub_of_another_step_is_named_by_its_own_name(notebook: Notebook) -> None:
    notebook.cell(
        STUB.format("other") + "\n\n\nclass Answer:\n    def __call__(self, x):\n        return other(x)"
    )
    notebook.cell("half = Answer()")
    assert notebook.fails(TEST) == NOT_WRITTEN.format("other")


def test_stub_is_named_behind_functions_of_a_library(notebook: Notebook) -> None:
    notebook.cell(STUB.format("half"))
    said = notebook.fails('with testing("toy.half"):\n    np.vectorize(half)([1.0])')
    assert said == NOT_WRITTEN.format("half")


def test_not_implemented_error_of_a_library_is_no_stub(notebook: Notebook) -> None:
    notebook.names["library"] = _raise_not_implemented
    notebook.cell("def half(x):\n    return library()")
    with pytest.raises(NotImplementedError, match="not for this kind of array"):
        notebook.cell(TEST)


def _raise_not_implemented() -> None:
    raise NotImplementedError("not for this kind of array")


def test_unknown_step_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UnknownStepError, match=r"unknown step 'toy.third'; known are toy.half, toy.quarter\."):
        block_around("toy.third")


def test_block_looks_at_the_names_of_the_notebook_that_calls_it(notebook: Notebook) -> None:
    # This module has a right `half`; the notebook has a wrong one.
    with block_around("toy.half"):
        assert half(3.0) == 1.5
    notebook.cell(WRONG)
    assert DOUBLED in notebook.fails(PASSES)


# Hidden tests


def test_hidden_test_gives_no_hint(notebook: Notebook) -> None:
    notebook.cell(WRONG)
    with pytest.raises(AssertionError) as caught:
        notebook.cell(HIDDEN)
    assert not isinstance(caught.value, StepFailedError)
    assert str(caught.value) == "half should give 1.5 for 3."


def test_hidden_test_whose_lines_agree_passes_with_a_known_mistake(notebook: Notebook) -> None:
    notebook.cell(WRONG)
    notebook.cell(PASSES.replace('"toy.half"', '"toy.half", hidden=True'))


def test_hidden_test_does_not_call_the_function_for_a_hint(notebook: Notebook) -> None:
    notebook.cell("calls = []\n\n\ndef half(x):\n    calls.append(x)\n    return x / 2")
    notebook.cell(HIDDEN)
    assert notebook.names["calls"] == [3.0]


# Stand-ins


LEARNER = """
def half(x):
    return x * 1000


def quarter(x):
    return half(half(x))


def fourth(x):
    return x / 4
"""


def test_an_earlier_mistake_does_not_cost_this_step(notebook: Notebook) -> None:
    notebook.cell(LEARNER)
    notebook.cell('with testing("toy.quarter"):\n    assert quarter(8.0) == 2, "No."')


def test_the_course_s_functions_stand_in_inside_the_block(notebook: Notebook) -> None:
    notebook.cell(LEARNER)
    notebook.cell('with testing("toy.quarter"):\n    inside = half')
    assert notebook.names["inside"] is half


def test_functions_of_the_step_itself_stay_the_learner_s(notebook: Notebook) -> None:
    notebook.cell(LEARNER)
    own = notebook.names["quarter"]
    notebook.cell('with testing("toy.quarter"):\n    inside = quarter')
    assert notebook.names["inside"] is own


ENDINGS = {
    "nothing": "pass",
    "assertion": "assert False, 'No.'",
    "known-mistake": "quarter = fourth = lambda x: x / 2",
    "exception": "1 / 0",
    "stub": "raise NotImplementedError()",
    "interrupt": "raise KeyboardInterrupt()",
    "exit": "raise SystemExit(1)",
    "recursion": "f = lambda: f()\n    f()",
    "stand-in-deleted": "del half",
    "stand-in-replaced": "half = 5",
}


@pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_the_learner_s_functions_are_back_however_the_block_ends(
    notebook: Notebook, ending: str, hidden: bool
) -> None:
    notebook.cell(LEARNER)
    own = notebook.names["half"]
    with contextlib.suppress(Exception, KeyboardInterrupt, SystemExit):
        notebook.cell(f'with testing("toy.quarter", hidden={hidden}):\n    {ending}')
    assert notebook.names["half"] is own


@pytest.mark.parametrize("ending", [ENDINGS["nothing"], ENDINGS["exception"], ENDINGS["stand-in-deleted"]])
def test_stand_in_of_a_name_that_was_not_defined_is_gone_afterwards(notebook: Notebook, ending: str) -> None:
    notebook.cell(LEARNER + "\n\n\ndel half")
    with contextlib.suppress(ZeroDivisionError):
        notebook.cell(f'with testing("toy.quarter"):\n    {ending}')
    assert "half" not in notebook.names


def test_a_function_that_is_interrupted_while_a_hint_is_looked_for_ends_the_block(notebook: Notebook) -> None:
    notebook.cell(LEARNER)
    own = notebook.names["half"]
    notebook.cell("def quarter(x):\n    raise KeyboardInterrupt()")
    with pytest.raises(KeyboardInterrupt):
        notebook.cell('with testing("toy.quarter"):\n    pass')
    assert notebook.names["half"] is own


def test_an_interrupt_comes_through_without_a_look_for_hints(notebook: Notebook) -> None:
    notebook.cell("calls = []\n\n\ndef half(x):\n    calls.append(x)\n    return x / 2")
    with pytest.raises(KeyboardInterrupt):
        notebook.cell('with testing("toy.half"):\n    raise KeyboardInterrupt()')
    assert notebook.names["calls"] == []


def test_variables_of_the_test_stay(notebook: Notebook) -> None:
    notebook.cell(RIGHT)
    notebook.cell('with testing("toy.half"):\n    z = half(3.0)')
    assert notebook.names["z"] == 1.5


def test_block_can_be_run_again(notebook: Notebook) -> None:
    notebook.cell(RIGHT)
    notebook.cell('block = testing("toy.half")\nwith block:\n    pass\nwith block:\n    pass')
    assert isinstance(notebook.names["block"], Trial)


# Where the learner's code runs elsewhere


class Elsewhere(dict[str, Any]):
    """Names of a grader that keeps the learner's functions in another process."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.log: list[Any] = []

    def stand_in(self, step: str, functions: dict[str, Any]) -> None:
        self.log.append((step, functions))

    def stand_back(self) -> None:
        self.log.append("back")


@pytest.fixture
def elsewhere(notebook: Notebook) -> Notebook:
    notebook.names = Elsewhere(notebook.names)
    return notebook


def raising(error: Exception, *notes: str) -> Any:
    """A function far from the notebook that raises on behalf of the learner's."""

    def far(*arguments: object) -> None:
        for note in notes:
            error.add_note(note)
        raise error

    return far


@pytest.mark.parametrize("ending", ["pass", "1 / 0", "raise KeyboardInterrupt()", "assert False"])
def test_stand_ins_are_let_in_there_and_taken_back_however_the_block_ends(
    elsewhere: Notebook, ending: str
) -> None:
    elsewhere.cell(LEARNER)
    own = elsewhere.names["half"]
    with contextlib.suppress(Exception, KeyboardInterrupt):
        elsewhere.cell(f'with testing("toy.quarter", hidden=True):\n    {ending}')
    assert elsewhere.names.log == [("toy.quarter", {"half": half}), "back"]
    assert elsewhere.names["half"] is own


def test_warnings_are_as_before_where_stand_ins_cannot_be_let_in(elsewhere: Notebook) -> None:
    elsewhere.cell(LEARNER)
    elsewhere.names.stand_in = raising(ConnectionError("lost"))
    before = list(warnings.filters)
    with pytest.raises(ConnectionError):
        elsewhere.cell('with testing("toy.quarter"):\n    pass')
    assert list(warnings.filters) == before


def test_line_of_an_exception_from_there_is_told(elsewhere: Notebook) -> None:
    no_list = raising(TypeError("no list"), "line 3 of the cell")
    elsewhere.names["half"] = lambda x: no_list() if np.ndim(x) else x / 2
    said = elsewhere.fails('with testing("toy.half"):\n    half([1.0, 2.0])')
    assert said.startswith("Your code raises TypeError: no list (line 3 of the cell).\nWhat happened: one number")


def test_stub_that_is_there_is_named(elsewhere: Notebook) -> None:
    elsewhere.names["half"] = raising(NotImplementedError(), "line 2 of the cell")
    assert elsewhere.fails(HIDDEN) == NOT_WRITTEN.format("half")


def test_of_several_functions_there_each_may_be_the_stub(elsewhere: Notebook) -> None:
    elsewhere.names["quarter"] = elsewhere.names["fourth"] = raising(NotImplementedError(), "line 2 of the cell")
    said = elsewhere.fails('with testing("toy.quarter"):\n    fourth(1.0)')
    assert said == NOT_WRITTEN.format("quarter or fourth")


# Quiet


def test_warnings_in_the_block_are_not_shown(notebook: Notebook) -> None:
    # nbgrader takes the marks of a cell that writes to stderr.
    notebook.cell(
        "import warnings\n\n\ndef half(x):\n    warnings.warn('old')\n    return np.exp(x * 1e4) * 0 + x / 2"
    )
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        notebook.cell('with testing("toy.half", hidden=True):\n    half(np.array([3.0]))')
        assert shown == []
        notebook.cell("half(np.array([3.0]))")
        assert len(shown) > 1


@pytest.mark.parametrize("ending", ["pass", "1 / 0"])
def test_warnings_are_shown_again_after_the_block(notebook: Notebook, ending: str) -> None:
    notebook.cell(RIGHT)
    before = list(warnings.filters)
    with contextlib.suppress(ZeroDivisionError):
        notebook.cell(f'with testing("toy.half"):\n    {ending}')
    assert list(warnings.filters) == before


def test_what_a_function_prints_shows_for_the_lines_of_the_test_only(
    notebook: Notebook, capsys: pytest.CaptureFixture[str]
) -> None:
    notebook.cell("def half(x):\n    print('half of', x)\n    return np.asarray(x) / 2")
    notebook.cell(TEST)
    assert capsys.readouterr().out == "half of 3.0\n"


# Hostile answers


class Hostile:
    """Whatever is done with it raises."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        raise RuntimeError("hash")

    def __array__(self, *arguments: object, **options: object) -> Any:
        raise RuntimeError("array")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")


class HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("str")


def _returning(value: Any) -> Any:
    return lambda *arguments: value


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
OBJECTS = np.empty(1, dtype=object)
OBJECTS[0] = Hostile()
HOSTILE = {
    "object": _returning(Hostile()),
    "object-in-a-list": _returning([Hostile()]),
    "object-in-a-dictionary": _returning({"a": Hostile()}),
    "list-of-itself": _returning(ENDLESS),
    "array-of-objects": _returning(np.full(2, None)),
    "array-of-hostile-objects": _returning(OBJECTS),
    "class": Hostile,
    "generator": lambda *arguments: iter([1.0]),
    "no-arguments": lambda: 1.0,
}


@pytest.mark.parametrize("hidden", [False, True], ids=["visible", "hidden"])
@pytest.mark.parametrize("answer", HOSTILE.values(), ids=HOSTILE)
def test_hostile_answer_gets_no_hint_and_the_functions_are_back(
    notebook: Notebook, answer: Any, hidden: bool
) -> None:
    notebook.cell(LEARNER)
    own = notebook.names["half"]
    notebook.names["quarter"] = notebook.names["fourth"] = answer
    notebook.cell(f'with testing("toy.quarter", hidden={hidden}):\n    pass')
    assert notebook.names["half"] is own


def test_functions_are_back_after_an_exception_that_cannot_be_printed(notebook: Notebook) -> None:
    notebook.cell(LEARNER)
    own = notebook.names["half"]
    notebook.names["HostileError"] = HostileError
    notebook.cell("def quarter(x):\n    return x / 2\n\n\ndef fourth(x):\n    return x / 2")
    with pytest.raises(RuntimeError, match="str"):
        notebook.cell('with testing("toy.quarter"):\n    raise HostileError()')
    assert notebook.names["half"] is own


# In IPython


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    config = Config()
    config.HistoryManager.enabled = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shell = InteractiveShell.instance(config=config)
    shell.run_cell("import numpy as np\nfrom ffn.exercise import testing")
    yield shell
    InteractiveShell.clear_instance()


def test_a_notebook_shows_the_message_without_a_traceback(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(WRONG)
    assert not shell.run_cell(TEST).success
    assert capsys.readouterr().out.splitlines() == [
        "\x1b[31mNot right yet.\x1b[0m half should give 1.5 for 3.",
        f"What happened: {DOUBLED}",
        PLACE,
    ]


def test_a_notebook_shows_the_line_that_failed(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(SQUARED)
    shell.run_cell(TEST)
    assert capsys.readouterr().out.splitlines()[1:] == ["The line that failed: assert half(3.0) == 1.5"]


def test_a_notebook_shows_that_an_answer_is_not_written(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell(STUB.format("half"))
    shell.run_cell(HIDDEN)
    assert capsys.readouterr().out == f"\x1b[31mNot right yet.\x1b[0m {NOT_WRITTEN.format('half')}\n"


def test_a_notebook_counts_the_line_in_the_cell_of_the_answer(
    shell: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell("def half(x):\n    y = float(x)\n    return y / 2")
    shell.run_cell('with testing("toy.half"):\n\n\n    half([1.0, 2.0])')
    assert capsys.readouterr().out.splitlines()[0].endswith("(line 2 of its cell).")


def test_a_notebook_shows_no_warning_of_a_graded_cell(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("def half(x):\n    return np.exp(x * 1e4) * 0 + x / 2")
    assert shell.run_cell(HIDDEN.replace("half(3.0) == 1.5", "np.isnan(half(np.array(3.0)))")).success
    assert capsys.readouterr() == ("", "")


# Comparisons


def twice(x: Any) -> Any:
    return np.multiply(x, 2.0)


def disagreement(function: Any, right: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        agree(function, right, *arguments, **options)
    return str(caught.value)


def named(name: str, function: Any) -> Any:
    function.__name__ = name
    return function


def test_agree_passes_what_is_right() -> None:
    agree(lambda x: x + x, twice, np.array([1.0, -2.0]))


def test_agree_says_on_what_kind_of_input_a_function_is_wrong() -> None:
    message = disagreement(named("mine", lambda x: x**2), twice, np.ones(3), on="a row of ones")
    assert message == "mine is wrong on a row of ones."


def test_agree_says_without_a_phrase_that_it_was_other_input() -> None:
    assert disagreement(named("mine", lambda x: x**2), twice, 3.0) == "mine is wrong on other input."


def test_agree_names_a_function_that_has_no_name() -> None:
    assert disagreement(functools.partial(np.power, 3.0), twice, 3.0).startswith("the function is wrong")


def test_agree_names_both_shapes() -> None:
    message = disagreement(named("mine", lambda x: x[:2]), twice, np.ones(3), on="a row")
    assert message == "mine returns shape (2,) on a row, and should return (3,)."


def test_agree_says_that_nothing_is_returned() -> None:
    message = disagreement(named("mine", lambda x: None), twice, np.ones(3), on="a row")
    assert message == "mine returns nothing on a row; give the result back with return."


def test_agree_allows_nothing_where_nothing_is_right() -> None:
    agree(lambda x: None, lambda x: None, 1.0)


@pytest.mark.parametrize("value", [[[1.0], [1.0, 2.0]], Hostile()], ids=["ragged", "hostile"])
def test_agree_says_that_a_result_has_no_shape(value: Any) -> None:
    message = disagreement(named("mine", lambda x: value), twice, np.ones(3), on="a row")
    assert message == "mine returns rows of different lengths, or what is no array, on a row."


def test_agree_finds_changed_arguments() -> None:
    def mine(x: Any) -> Any:
        x *= 2
        return x

    assert disagreement(mine, twice, np.ones(3)) == "mine changes the arguments that it is given; work on a copy."


@pytest.mark.parametrize("argument", [[3.0, 1.0], {"a": np.ones(2)}, [(np.ones(2), np.ones(3))]], ids=str)
def test_agree_finds_changes_inside_an_argument(argument: Any) -> None:
    def mine(x: Any) -> float:
        if isinstance(x, dict):
            x["a"][0] = 5
        elif isinstance(x[0], tuple):
            x[0][1][2] = 5
        else:
            x.sort()
        return 1.0

    assert "changes the arguments" in disagreement(mine, lambda x: 1.0, argument)


def test_agree_leaves_the_caller_s_arguments_alone() -> None:
    x = np.ones(3)
    with pytest.raises(AssertionError):
        agree(lambda v: np.negative(v, out=v), lambda v: np.negative(v, out=v), x)
    assert x.tolist() == [1, 1, 1]


def test_agree_passes_functions_among_the_arguments() -> None:
    agree(lambda f, x: f(x), lambda f, x: f(x), np.tanh, np.ones(2))


@pytest.mark.parametrize("strict", [False, True])
def test_agree_minds_an_overflow_on_the_way_only_if_strict(strict: bool) -> None:
    def mine(x: Any) -> Any:
        np.exp(x * 1000)
        return x * 2

    if strict:
        message = disagreement(mine, twice, np.ones(3), strict=True, on="a row")
        assert message == "mine overflows, or computes an undefined value, on a row."
    else:
        agree(mine, twice, np.ones(3))


@pytest.mark.parametrize(
    "function", [lambda x: np.log(x) + np.inf, lambda x: np.divide(x, x)], ids=["log", "ratio"]
)
def test_agree_minds_undefined_operations_if_strict(function: Any) -> None:
    assert "undefined" in disagreement(function, twice, np.zeros(3), strict=True)


def test_agree_says_that_a_number_of_python_overflows() -> None:
    assert "overflows" in disagreement(lambda x: 10.0 ** (x * 1000), twice, 1.0)


def test_agree_lets_other_exceptions_through() -> None:
    with pytest.raises(ZeroDivisionError):
        agree(lambda x: x / 0, twice, 1.0)


def test_agree_takes_undefined_for_undefined() -> None:
    agree(lambda x: x * 2, twice, np.array([np.nan, 1.0, np.inf]))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_agree_takes_no_undefined_or_infinite_number_for_a_finite_one(value: float) -> None:
    assert "is wrong" in disagreement(lambda x: np.full(3, value), twice, np.ones(3))


def test_agree_allows_rounding() -> None:
    agree(lambda x: x * (2 + 1e-10), twice, np.ones(3))


def test_agree_needs_a_tolerance_for_float32() -> None:
    x = np.array([0.1, 0.7, 1.3])

    def mine(x: Any) -> Any:
        return twice(x.astype(np.float32))

    assert "is wrong" in disagreement(mine, twice, x)
    agree(mine, twice, x, rtol=1e-4, atol=1e-5)


def test_agree_measures_small_entries_by_the_largest_of_their_array() -> None:
    agree(lambda x: np.array([1e6, 1e-8]), lambda x: np.array([1e6, 0.0]), 1.0)
    assert "is wrong" in disagreement(lambda x: np.array([1.0, 1e-8]), lambda x: np.array([1.0, 0.0]), 1.0)


def test_agree_measures_the_arrays_of_a_result_by_themselves() -> None:
    big = np.full(2, 1e9)
    assert "is wrong" in disagreement(lambda x: (big, np.full(2, 1e-4)), lambda x: (big, np.zeros(2)), 1.0)


@pytest.mark.parametrize("value", [{"a": 1.0}, {"a": 1.0, "b": 2.0, "c": 3.0}, [1.0, 2.0], 1.0], ids=str)
def test_agree_names_the_keys_of_a_dictionary(value: Any) -> None:
    message = disagreement(named("mine", lambda x: value), lambda x: {"a": 1.0, "b": 2.0}, 1.0)
    assert message == "mine should return a dictionary with the keys a, b."


def test_agree_compares_the_values_of_a_dictionary() -> None:
    agree(lambda x: {"b": [2.0], "a": 1}, lambda x: {"a": 1.0, "b": np.array([2.0])}, 1.0)
    assert "is wrong" in disagreement(lambda x: {"a": np.ones(2)}, lambda x: {"a": np.ones(3)}, 1.0)


@pytest.mark.parametrize("value", [1.0, (1.0,), (1.0, 2.0, 3.0), np.ones(3), np.float64(2)], ids=str)
def test_agree_counts_the_values_of_a_tuple(value: Any) -> None:
    message = disagreement(named("mine", lambda x: value), lambda x: (1.0, 2.0), 1.0)
    assert message == "mine should return 2 values."


@pytest.mark.parametrize("value", [(1.0, 2.0), [1, 2], np.array([1.0, 2.0])], ids=["tuple", "list", "array"])
def test_agree_takes_two_values_as_tuple_list_or_array(value: Any) -> None:
    agree(lambda x: value, lambda x: (1.0, 2.0), 1.0)


def test_agree_compares_the_arrays_of_a_tuple() -> None:
    right = (np.ones(2), np.zeros((2, 3)))
    agree(lambda x: [np.ones(2), np.zeros((2, 3))], lambda x: right, 1.0)
    assert "is wrong" in disagreement(lambda x: (np.ones(2), np.zeros((3, 2))), lambda x: right, 1.0)


def test_agree_compares_lists_of_arrays_of_different_shapes() -> None:
    right = [np.ones(2), np.ones(3)]
    agree(lambda x: [np.ones(2), np.ones(3)], lambda x: right, 1.0)
    assert "is wrong" in disagreement(lambda x: [np.ones(2), np.zeros(3)], lambda x: right, 1.0)
    assert "should return 2 values" in disagreement(lambda x: [np.ones(2)], lambda x: right, 1.0)


def test_agree_compares_lists_with_arrays() -> None:
    agree(lambda x: [[2.0, 2.0], [2.0, 2.0]], twice, np.ones((2, 2)))


def test_agree_takes_no_truth_values_for_numbers() -> None:
    assert "is wrong" in disagreement(lambda x: x > 0, lambda x: x, np.ones(3))


def test_agree_compares_text() -> None:
    agree(lambda x: "memory", lambda x: "memory", 1.0)
    assert "is wrong" in disagreement(lambda x: "arithmetic", lambda x: "memory", 1.0)
