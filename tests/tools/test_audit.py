"""The audit: notebooks run with an answer replaced, mutants, verdicts and figures; last, the bars of every unit."""

import ast
import io
import json
import math
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from rich.console import Console

import ffn.misconceptions as package
import tools.audit.__main__ as command
from ffn.misconceptions import UNITS, Misconception, Probe, Step, unit_steps
from tests.helpers import said_once
from tests.hostile.corpus import cases
from tools.audit import hostile, judge, notebook
from tools.audit.figures import Audit, audit
from tools.audit.hostile import HostileError, Row, case_names, grade_cases
from tools.audit.judge import battery, judge_alternative, judge_misconception, judge_mutant, value_changing
from tools.audit.mutants import Mutant, mutants
from tools.audit.notebook import Unit, run

# The unit `toy`: two steps, the second one uses the function of the first

SETUP = "import numpy as np\n\nfrom ffn.exercise import agree, testing"
DOUBLE = "def double(x):\n    return 2 * x"
QUADRUPLE = "def quadruple(x):\n    return double(double(x))"
CELLS: dict[str, str] = {
    "setup": SETUP,
    "double": DOUBLE,
    "test_double": 'with testing("toy.double"):\n    assert double(3.0) == 6, "double should give 6 for 3."',
    "hidden_double": 'with testing("toy.double", hidden=True):\n'
    '    agree(double, lambda x: np.add(x, x), np.array([-1.5, 0.0, 4.0]), on="an array")',
    "quadruple": QUADRUPLE,
    "test_quadruple": 'with testing("toy.quadruple"):\n    print("4 x 3 =", quadruple(3.0))\n'
    '    assert quadruple(3.0) == 12, "quadruple should give 12 for 3."',
    "hidden_quadruple": 'with testing("toy.quadruple", hidden=True):\n'
    '    agree(quadruple, lambda x: np.multiply(x, 4), np.ones(2), on="ones")',
}


def times(factor: float) -> Callable[[Any], Any]:
    return lambda x: x * factor


def known(name: str, function: str, wrong: Any) -> Misconception:
    return Misconception(name=name, wrong={function: wrong}, hint=f"it was {name}.", page="book/a/b#c")


SQUARED = known("squared", "double", lambda x: x**2)
HALVED = known("halved", "double", times(0.5))
SAME = known("unchanged", "quadruple", times(1))
STEPS = (
    Step(
        name="double",
        own={"double": times(2)},
        probes=(Probe("double", (3.0,)), Probe("double", (np.array([-1.0, 0.5]),))),
        misconceptions=(SQUARED, HALVED),
    ),
    Step(
        name="quadruple",
        own={"quadruple": times(4)},
        probes=(Probe("quadruple", (1.5,)),),
        misconceptions=(SAME,),
        uses=("double",),
    ),
)
ALTERNATIVES: dict[str, list[Any]] = {"double": [times(2)] * 10, "quadruple": [times(4)] * 10}


def graded_row(name: str, **changes: Any) -> Row:
    """A hostile submission that both graders are right on, some of it changed."""
    right = {"status": "graded", "points": 8.0, "engine_status": "graded", "engine_points": 8.0, "stock": "8"}
    return Row(**{"case": name, **right, "right": True, "stock_right": True, "stock_seen": True, **changes})


class Toy:
    """A course with the unit `toy` alone, in a folder of its own."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.cells = dict(CELLS)
        self.steps: tuple[Step, ...] = STEPS
        self.alternatives = {name: list(ways) for name, ways in ALTERNATIVES.items()}
        self.survivors: dict[str, str] = {}
        monkeypatch.setattr(notebook, "ROOT", root)
        monkeypatch.setattr(command, "BUILD", root / "_build")
        monkeypatch.setattr(package, "UNITS", ("toy",))
        monkeypatch.setattr(command, "UNITS", ("toy",))
        self.hostile: dict[str, Row] = {name: graded_row(name) for name in ("honest", "cheat")}
        monkeypatch.setattr(command, "case_names", lambda: list(self.hostile))
        monkeypatch.setattr(command, "grade_cases", lambda names, console: [self.hostile[name] for name in names])
        self.modules = {
            name: ModuleType(name) for name in ("ffn.misconceptions.toy", "tools.audit.alternatives.toy")
        }
        for name, module in self.modules.items():
            monkeypatch.setitem(sys.modules, name, module)
        self.write()

    def write(self, **cells: str) -> Unit:
        """Store what the unit consists of, some cells replaced, and return its notebook."""
        self.cells |= cells
        first, second = self.modules.values()
        vars(first)["STEPS"] = self.steps
        vars(second).update(ALTERNATIVES=self.alternatives, SURVIVORS=self.survivors)
        steps = [name for name in self.cells if f"test_{name}" in self.cells]
        written = [new_markdown_cell("# Toy")]
        for name, source in self.cells.items():
            marks = {"grade_id": name, "grade": False, "solution": name in steps}
            if name.startswith(("test_", "hidden_")):
                marks |= {"grade": True, "points": 2 if name.startswith("hidden_") else 1}
            written.append(new_code_cell(source, metadata={"nbgrader": marks}))
        folder = self.root / "solutions" / "toy"
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=written), folder / "toy.ipynb")
        forget()
        return notebook.unit("toy")

    def replace_step(self, number: int, **changes: Any) -> None:
        steps = list(self.steps)
        steps[number] = Step(**{**vars(steps[number]), **changes})
        self.steps = tuple(steps)
        self.write()


def forget() -> None:
    for cached in (package.unit_steps, notebook.unit, notebook.reference, judge.alternatives):
        cached.cache_clear()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    yield Toy(tmp_path, monkeypatch)
    forget()


def lost(results: list[notebook.Result]) -> list[str]:
    return [result.ident for result in results if result.message]


# Running a notebook


def test_unit_has_its_code_cells_with_their_marks(toy: Toy) -> None:
    book = toy.write()
    assert [cell.ident for cell in book.cells] == list(CELLS)
    assert book.answers == {"double": DOUBLE, "quadruple": QUADRUPLE}
    assert [cell.points for cell in book.cells] == [None, None, 1, 2, None, 1, 2]


def test_cell_without_a_name_is_called_by_its_place(toy: Toy) -> None:
    path = toy.root / "solutions" / "toy" / "toy.ipynb"
    document = nbformat.read(path, as_version=4)
    document.cells.append(new_code_cell("1 + 1"))
    nbformat.write(document, path)
    forget()
    assert notebook.unit("toy").cells[-1].ident == "cell-8"


def test_reference_answers_pass(toy: Toy) -> None:
    results = run(toy.write())
    assert [(result.ident, result.step, result.points) for result in results] == [
        ("test_double", "double", 1),
        ("hidden_double", "double", 2),
        ("test_quadruple", "quadruple", 1),
        ("hidden_quadruple", "quadruple", 2),
    ]
    assert lost(results) == []


def test_replaced_answer_is_tested_in_place_of_the_reference(toy: Toy) -> None:
    results = run(toy.write(), "double", source="def double(x):\n    return x + 1")
    assert results[0].message == (
        "StepFailedError: double should give 6 for 3.\nThe line that failed: assert double(3.0) == 6"
    )
    assert results[1].message == "AssertionError: double is wrong on an array."
    assert lost(results) == ["test_double", "hidden_double"]


def test_replaced_functions_are_tested_in_place_of_the_reference(toy: Toy) -> None:
    assert lost(run(toy.write(), "quadruple", {"quadruple": times(5)})) == ["test_quadruple", "hidden_quadruple"]


def test_other_functions_of_a_replaced_answer_stay(toy: Toy) -> None:
    book = toy.write(double=f"{DOUBLE}\n\n\ndef half(x):\n    return x / 2")
    assert lost(run(book, "double", {"half": times(7)})) == []


def test_empty_answer_is_no_reference_answer(toy: Toy) -> None:
    results = run(toy.write(), "double", source="")
    assert results[0].message.startswith("StepFailedError: double is not defined")


def test_replaced_answer_is_what_later_cells_see(toy: Toy) -> None:
    toy.replace_step(1, uses=())
    results = run(toy.write(), "double", {"double": times(3)})
    assert lost(results) == ["test_double", "hidden_double", "test_quadruple", "hidden_quadruple"]


def test_only_the_cells_of_the_step_are_run_if_only_they_are_asked_for(toy: Toy) -> None:
    results = run(toy.write(), "double", {"double": times(2)}, only_step=True)
    assert [result.ident for result in results] == ["test_double", "hidden_double"]


def test_a_step_that_has_failed_is_not_run_on(toy: Toy) -> None:
    results = run(toy.write(), "double", {"double": times(3)}, only_step=True)
    assert [result.ident for result in results] == ["test_double"]


def counting(toy: Toy) -> tuple[Unit, list[str]]:
    """The unit with test cells that write down their names when they run."""
    log: list[str] = []
    vars(toy.modules["ffn.misconceptions.toy"])["LOG"] = log
    for name in ("test_double", "test_quadruple"):
        toy.cells[name] = f"import ffn.misconceptions.toy as m\n\nm.LOG.append('{name}')\n{CELLS[name]}"
    return toy.write(), log


def test_cells_before_the_replaced_answer_are_not_run_again(toy: Toy) -> None:
    book, log = counting(toy)
    notebook.reference(book)
    log.clear()
    results = run(book, "quadruple", {"quadruple": times(4)})
    assert log == ["test_quadruple"]
    assert [result.ident for result in results] == [name for name in CELLS if name.startswith(("test", "hidden"))]


def test_cells_before_the_replaced_answer_keep_what_became_of_them(toy: Toy) -> None:
    book = toy.write(hidden_double="raise ValueError('broken')")
    results = run(book, "quadruple", {"quadruple": times(4)})
    assert [result.message for result in results] == ["", "ValueError: broken", "", ""]


def test_what_a_cell_prints_or_warns_of_is_not_shown(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    run(toy.write(setup=f"{SETUP}\nimport warnings\n\nwarnings.warn('old')\nnp.log(np.zeros(1))"))
    assert capsys.readouterr() == ("", "")


def test_notebook_runs_in_its_own_folder(toy: Toy) -> None:
    before = Path.cwd()
    (toy.root / "solutions" / "toy" / "data.txt").write_text("6", encoding="utf-8")
    assert lost(run(toy.write(setup=f"{SETUP}\nwith open('data.txt') as f:\n    six = float(f.read())"))) == []
    assert Path.cwd() == before


def test_source_of_an_answer_can_be_looked_up_after_a_mutant_of_it_ran(toy: Toy) -> None:
    look = 'import inspect\n\nassert "2 * x" in inspect.getsource(double), "Not the source."'
    book = toy.write(hidden_double=look)
    run(book, "double", source="def double(x):\n    return x")
    assert lost(run(book, "double", {"unused": None})) == []


# Mutants


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        (
            "def f(a, b):\n    return a + b",
            [
                ("line 2: a + b -> a - b", "return a - b"),
                ("line 2: a + b -> b + a", "return b + a"),
            ],
        ),
        (
            "def f(a):\n    b = -a\n    return np.maximum(b, 0)",
            [
                ("line 2: b = -a -> left out", "return np.maximum(b, 0)"),
                ("line 2: -a -> +a", "b = +a\n    return np.maximum(b, 0)"),
                ("line 3: np.maximum(b, 0) -> np.maximum(0, b)", "b = -a\n    return np.maximum(0, b)"),
                ("line 3: np.maximum -> np.minimum", "b = -a\n    return np.minimum(b, 0)"),
                ("line 3: 0 -> 1", "b = -a\n    return np.maximum(b, 1)"),
            ],
        ),
        (
            "def f(a):\n    if a <= 1.5 or not a:\n        return a, 2\n    return max(a)",
            [
                ("line 2: a <= 1.5 or not a -> not (a <= 1.5 or not a)", None),
                ("line 2: a <= 1.5 or not a -> a <= 1.5 and (not a)", None),
                ("line 2: if a <= 1.5 or not a: -> left out", None),
                ("line 3: return (a, 2) -> return (2, a)", None),
                ("line 2: a <= 1.5 -> a < 1.5", None),
                ("line 2: a <= 1.5 -> a > 1.5", None),
                ("line 4: max -> min", None),
                ("line 3: 2 -> 3", None),
                ("line 3: 2 -> 1", None),
                ("line 2: 1.5 -> 2.5", None),
                ("line 2: 1.5 -> 0.75", None),
            ],
        ),
        (
            "def f(a):\n    for i in a:\n        t += i ** i\n        u = 1 + 1\n    return g(a, k=True)",
            [
                ("line 2: for i in a: -> left out", None),
                ("line 3: t += i ** i -> t -= i ** i", None),
                ("line 3: t += i ** i -> left out", None),
                ("line 4: u = 1 + 1 -> left out", None),
                ("line 3: i ** i -> i * i", None),
                ("line 4: 1 + 1 -> 1 - 1", None),
                ("line 4, column 13: 1 -> 2", None),
                ("line 4, column 13: 1 -> 0", None),
                ("line 4, column 17: 1 -> 2", None),
                ("line 4, column 17: 1 -> 0", None),
                ("line 5: g(a, k=True) -> g(a)", None),
                ("line 5: True -> False", None),
            ],
        ),
        ('def f(a):\n    """Text, 1 + 1."""\n    return a', []),
        ("", []),
    ],
    ids=["sum", "rectifier", "branch", "loop", "nothing-to-change", "empty"],
)
def test_mutants_are_these_and_no_others(source: str, changes: list[tuple[str, str | None]]) -> None:
    found = list(mutants(source))
    assert sorted(mutant.change for mutant in found) == sorted(change for change, _ in changes)
    head = source.splitlines()[0] if source else ""
    sources = {mutant.change: mutant.source for mutant in found}
    for change, body in changes:
        assert body is None or sources[change] == f"{head}\n    {body}"


def test_mutants_differ_from_the_answer_and_from_each_other() -> None:
    # Exchanging equal operands changes nothing.
    sources = [mutant.source for mutant in mutants("def f(a):\n    return a * a")]
    assert sources == ["def f(a):\n    return a / a", "def f(a):\n    return a + a"]


def test_leaving_out_the_only_statement_is_no_mutant() -> None:
    assert not [m for m in mutants("def f(a):\n    a += b") if "left out" in m.change]


@pytest.mark.parametrize("name", UNITS)
def test_mutants_of_a_unit_are_programs_each_with_its_own_text_and_name(name: str) -> None:
    for step, answer in notebook.unit(name).answers.items():
        found = [] if step.endswith("_in_words") else list(mutants(answer))
        plain = ast.unparse(ast.parse(answer))
        for mutant in found:
            assert ast.unparse(ast.parse(mutant.source)) == mutant.source != plain
            assert "\n" not in mutant.change
        assert len({mutant.source for mutant in found}) == len({mutant.change for mutant in found}) == len(found)


@pytest.mark.parametrize("name", UNITS)
def test_every_step_of_a_unit_has_mutants_that_change_its_values(name: str) -> None:
    step = unit_steps(name)[0].name
    answer = notebook.unit(name).answers[step]
    assert 1 <= len(value_changing(name, step)) <= len(list(mutants(answer)))


# Which mutants change a value


def changing(toy: Toy, double: str, *probes: Probe) -> list[str]:
    toy.cells["double"] = double
    if probes:
        toy.replace_step(0, probes=probes)
    toy.write()
    return [mutant.change for mutant in value_changing("toy", "double")]


def test_mutant_that_changes_no_value_does_not_count(toy: Toy) -> None:
    assert changing(toy, "def double(x):\n    return x + x * 1") == [
        "line 2: x + x * 1 -> x - x * 1",
        "line 2: x * 1 -> x + 1",
        "line 2: 1 -> 2",
        "line 2: 1 -> 0",
    ]


def test_mutant_that_fails_where_the_answer_does_not_counts(toy: Toy) -> None:
    assert "line 2: y = 2 * x -> left out" in changing(toy, "def double(x):\n    y = 2 * x\n    return y")


def test_mutant_that_cannot_be_defined_counts(toy: Toy) -> None:
    assert "line 1: 0 -> 1" in changing(toy, "n = [2][0]\n\n\ndef double(x):\n    return n * x")


def test_mutant_that_differs_where_the_answer_itself_fails_does_not_count(toy: Toy) -> None:
    answer = "def double(x):\n    if x < 0:\n        raise ValueError(1)\n    return 2 * x"
    found = changing(toy, answer, Probe("double", (-3.0,)))
    assert "line 4: 2 * x -> 2 / x" not in found


def test_mutant_that_changes_its_argument_counts(toy: Toy) -> None:
    answer = "def double(x):\n    x = x.copy()\n    x *= 2\n    return x"
    assert "line 2: x = x.copy() -> left out" in changing(toy, answer, Probe("double", (np.ones(2),)))


def test_answers_of_earlier_steps_are_there(toy: Toy) -> None:
    toy.write()
    assert [mutant.change for mutant in value_changing("toy", "quadruple")] == []
    toy.write(quadruple="def quadruple(x):\n    return double(x) + double(x)")
    assert [mutant.change for mutant in value_changing("toy", "quadruple")] == [
        "line 2: double(x) + double(x) -> double(x) - double(x)"
    ]


ENDLESS = "def double(n):\n    total = 0\n    while n > 0:\n        total += 2\n        n -= 1\n    return total"


@pytest.fixture
def endless(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> list[Mutant]:
    """Mutants of which some do not end."""
    monkeypatch.setattr(judge, "SECONDS", 0.05)
    toy.cells |= {"double": ENDLESS, "hidden_double": "assert double(3) == 6, 'No.'"}
    toy.cells["test_double"] = CELLS["test_double"].replace("3.0", "3")
    toy.replace_step(0, probes=(Probe("double", (3,)), Probe("double", (2,))), misconceptions=())
    return value_changing("toy", "double")


def test_mutant_that_does_not_end_is_given_up_and_counts(endless: list[Mutant]) -> None:
    changes = [mutant.change for mutant in endless]
    assert "line 5: n -= 1 -> left out" in changes
    assert "line 5: n -= 1 -> n += 1" in changes


def test_mutant_that_does_not_end_loses_marks(endless: list[Mutant]) -> None:
    assert all(judge_mutant("toy", "double", mutant) for mutant in endless)


def test_a_test_that_catches_every_exception_does_not_keep_an_endless_mutant_alive(
    toy: Toy, endless: list[Mutant]
) -> None:
    toy.write(test_double="try:\n    double(3)\nexcept Exception:\n    pass\nassert double(3) == 6, 'No.'")
    (mutant,) = [m for m in endless if m.change == "line 5: n -= 1 -> left out"]
    assert judge_mutant("toy", "double", mutant)


def test_time_limit_is_lifted_afterwards(endless: list[Mutant]) -> None:
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL


# The battery

KEPT: dict[str, Any] = {
    "true": True,
    "false": False,
    "numpy-true": np.True_,
    "text": "relu",
    "none": None,
    "zero": 0,
    "negative": -1,
    "whole-numbers": np.array([1, 2]),
    "truth-values": np.array([True, False]),
    "function": np.tanh,
    "nothing": [],
}
VARIED: dict[str, Any] = {
    "number": 0.5,
    "zero": 0.0,
    "numpy-number": np.float64(2.0),
    "array": np.ones((2, 3)),
    "zeros": np.zeros(3),
    "float32": np.ones(2, np.float32),
    "column": np.ones((2, 1)),
    "single": np.array(1.5),
}


def calls_with(*arguments: Any) -> list[tuple[Any, ...]]:
    step = Step(name="f", own={}, probes=(Probe("f", arguments),), misconceptions=())
    return [given for _, given in battery(step)]


def test_battery_has_every_probe_and_six_copies_of_it() -> None:
    step = Step(name="f", own={}, probes=(Probe("f", (0.5,)), Probe("g", (True, "a"))), misconceptions=())
    calls = list(battery(step))
    assert [name for name, _ in calls] == ["f"] * 7 + ["g"] * 7
    assert [calls[0][1], calls[7][1]] == [(0.5,), (True, "a")]


@pytest.mark.parametrize("value", KEPT.values(), ids=KEPT)
def test_battery_keeps_what_is_no_size(value: Any) -> None:
    for (seen,) in calls_with(value):
        assert type(seen) is type(value)
        np.testing.assert_equal(seen, value)


@pytest.mark.parametrize("value", VARIED.values(), ids=VARIED)
def test_battery_varies_numbers_and_keeps_their_shape_and_kind(value: Any) -> None:
    first, *others = [seen for (seen,) in calls_with(value)]
    np.testing.assert_equal(first, value)
    for seen in others:
        assert np.shape(seen) == np.shape(value)
        assert np.asarray(seen).dtype == np.asarray(value).dtype
        assert not np.any(np.equal(seen, value))


def test_battery_varies_infinite_numbers_to_infinite_ones() -> None:
    assert all(seen == math.inf for (seen,) in calls_with(math.inf))


def test_battery_makes_whole_numbers_larger_only() -> None:
    seen = {number for (number,) in calls_with(4)}
    assert min(seen) == 4
    assert len(seen) > 1
    assert seen <= {4, 5, 6, 9}


def test_battery_varies_inside_lists_tuples_and_dictionaries() -> None:
    for seen in calls_with([0.5, "a"], (1.5, True), {"W": np.ones(2), "name": "silu"})[1:]:
        numbers, pair, parameters = seen
        assert numbers[1:] == ["a"]
        assert pair[1:] == (True,)
        assert parameters["name"] == "silu"
        assert numbers[0] != 0.5
        assert pair[0] != 1.5
        assert not np.any(parameters["W"] == 1)


def test_battery_is_the_same_every_time() -> None:
    np.testing.assert_equal(calls_with(np.ones(3), 0.5, 3), calls_with(np.ones(3), 0.5, 3))


def test_battery_leaves_the_probe_alone() -> None:
    given = np.ones(2)
    for varied, _ in calls_with([given], 1.0)[1:]:
        varied[0][:] = 7
    assert given.tolist() == [1, 1]


# Verdicts


def test_misconception_that_loses_all_marks_of_its_step_is_rejected_and_named(toy: Toy) -> None:
    toy.write()
    trial = judge_misconception("toy", toy.steps[0], SQUARED)
    assert trial.rejected
    assert (trial.hints, trial.kept, trial.others_lost) == (("squared",), (), ())
    assert "What happened: it was squared." in trial.message


def test_misconception_that_hidden_tests_do_not_notice_is_not_rejected(toy: Toy) -> None:
    toy.write(hidden_double="pass")
    trial = judge_misconception("toy", toy.steps[0], SQUARED)
    assert not trial.rejected
    assert trial.kept == ("hidden_double",)


def test_misconception_that_costs_a_later_step_is_not_rejected(toy: Toy) -> None:
    toy.replace_step(1, uses=())
    trial = judge_misconception("toy", toy.steps[0], HALVED)
    assert not trial.rejected
    assert [line.partition(":")[0] for line in trial.others_lost] == ["test_quadruple", "hidden_quadruple"]


def test_misconception_without_a_hint_is_seen(toy: Toy) -> None:
    toy.write(test_double='with testing("toy.double", hidden=True):\n    assert double(3.0) == 6, "No."')
    trial = judge_misconception("toy", toy.steps[0], SQUARED)
    assert trial.rejected
    assert trial.hints == ()


def test_misconception_with_another_one_s_hint_is_seen(toy: Toy) -> None:
    alike = known("multiplied by itself", "double", lambda x: x * x)
    toy.replace_step(0, misconceptions=(SQUARED, alike))
    assert judge_misconception("toy", toy.steps[0], alike).hints == ("squared",)


def test_hint_of_another_step_is_seen(toy: Toy) -> None:
    # One change costs the later step too, in which it looks like a mistake of that step.
    one = known("quartered", "double", times(0.5))
    toy.steps = (
        toy.steps[0],
        Step(**{**vars(toy.steps[1]), "uses": (), "misconceptions": (known("small", "quadruple", times(0.25)),)}),
    )
    toy.replace_step(0, misconceptions=(one,))
    trial = judge_misconception("toy", toy.steps[0], one)
    assert trial.hints == ("quartered", "quadruple small")


def test_misconception_of_a_step_without_tests_is_not_rejected(toy: Toy) -> None:
    stray = Step(**{**vars(STEPS[0]), "name": "stray"})
    assert not judge_misconception("toy", stray, SQUARED).rejected


def test_right_alternative_loses_nothing(toy: Toy) -> None:
    toy.write()
    assert judge_alternative("toy", toy.steps[0], "double", lambda x: x + x) == []


def test_alternative_that_loses_marks_is_told_with_the_message(toy: Toy) -> None:
    toy.write()
    (line,) = judge_alternative("toy", toy.steps[0], "double", lambda x: x + 3)
    assert line.startswith("hidden_double: AssertionError: ")


def test_mutant_that_the_tests_notice_is_caught(toy: Toy) -> None:
    toy.write()
    assert judge_mutant("toy", "double", Mutant("def double(x):\n    return 3 * x", ""))


def test_mutant_that_hidden_tests_alone_notice_is_caught(toy: Toy) -> None:
    toy.write()
    assert judge_mutant("toy", "double", Mutant("def double(x):\n    return x + 3", ""))


def test_mutant_that_no_test_notices_survives(toy: Toy) -> None:
    toy.write()
    assert not judge_mutant("toy", "double", Mutant("def double(x):\n    return x + x + (x == 9)", ""))


@pytest.mark.parametrize("source", ["1 / 0", "def other(x):\n    return x", "def double(x:"])
def test_mutant_that_defines_nothing_is_caught(toy: Toy, source: str) -> None:
    toy.write()
    assert judge_mutant("toy", "double", Mutant(source, ""))


# Figures


def test_figures_of_a_unit_without_a_fault(toy: Toy) -> None:
    toy.write()
    found = audit("toy")
    assert found.figures() == {
        "misconceptions": {"total": 3, "rejected": 3, "named": 3, "misnamed": 0},
        "mutants": {"total": 4, "caught": 4},
        "alternatives": {"total": 20, "full_marks": 20},
    }
    assert found.faults == found.bars_missed == []
    assert found.met()


def test_misconception_that_keeps_marks_is_a_fault(toy: Toy) -> None:
    toy.write(hidden_double="pass")
    found = audit("toy")
    assert found.misconceptions == {"total": 3, "rejected": 1, "named": 3, "misnamed": 0}
    assert found.faults[0].startswith("toy.double squared: kept ('hidden_double',); elsewhere ();")
    assert not found.met()


def test_misconception_with_a_wrong_hint_is_a_fault(toy: Toy) -> None:
    toy.replace_step(0, misconceptions=(SQUARED, HALVED, known("multiplied", "double", lambda x: x * x)))
    found = audit("toy")
    assert found.misconceptions == {"total": 4, "rejected": 4, "named": 3, "misnamed": 1}
    assert [line.split(";")[0] for line in found.faults] == ["toy.double multiplied: hints ('squared',)"]
    assert not found.met()


def test_alternative_that_loses_marks_is_a_fault(toy: Toy) -> None:
    toy.alternatives["double"][7] = times(3)
    toy.write()
    found = audit("toy")
    assert found.alternatives == {"total": 20, "full_marks": 19}
    assert [line.split(":")[0] for line in found.faults] == [
        "toy.double alternative 7 of double loses test_double"
    ]
    assert not found.met()


@pytest.mark.parametrize("ways", [9, 0])
def test_fewer_than_ten_alternatives_miss_a_bar(toy: Toy, ways: int) -> None:
    del toy.alternatives["double"][ways:]
    toy.write()
    assert audit("toy").bars_missed == [f"toy.double has {ways} alternatives of double, fewer than 10"]


def test_function_without_alternatives_misses_a_bar(toy: Toy) -> None:
    toy.alternatives["twice"] = toy.alternatives.pop("double")
    toy.write()
    assert audit("toy").bars_missed == [
        "toy.double has 0 alternatives of double, fewer than 10",
        "toy has alternatives of twice, which is no function of a step",
    ]


SURVIVES = "line 2: x + x -> x - x"


def with_a_survivor(toy: Toy) -> None:
    """An answer that is another one for large numbers, which no test tries."""
    toy.cells["double"] = "def double(x):\n    return 2 * x if np.all(x < 7) else x + x"
    toy.replace_step(0, probes=(*STEPS[0].probes, Probe("double", (15.0,))))


def test_survivor_without_a_reason_misses_a_bar(toy: Toy) -> None:
    with_a_survivor(toy)
    found = audit("toy")
    assert found.bars_missed == [f"toy.double survives {SURVIVES} (no reason written)"]
    assert found.mutants["caught"] == found.mutants["total"] - 1
    assert not found.met()


def test_survivor_with_a_reason_is_listed_and_misses_no_bar(toy: Toy) -> None:
    toy.survivors = {f"double: {SURVIVES}": "nobody doubles large numbers"}
    with_a_survivor(toy)
    found = audit("toy")
    assert found.bars_missed == []
    assert found.faults == [f"toy.double survives {SURVIVES} (nobody doubles large numbers)"]


def test_an_empty_reason_is_none(toy: Toy) -> None:
    toy.survivors = {f"double: {SURVIVES}": ""}
    with_a_survivor(toy)
    assert audit("toy").bars_missed == [f"toy.double survives {SURVIVES} (no reason written)"]


def test_reason_for_what_does_not_survive_misses_a_bar(toy: Toy) -> None:
    toy.survivors = {"double: line 2: 2 * x -> 2 + x": "it was so once"}
    toy.write()
    assert audit("toy").bars_missed == [
        "toy has a reason for double: line 2: 2 * x -> 2 + x, which does not survive"
    ]


def test_reference_answer_that_loses_marks_misses_a_bar(toy: Toy) -> None:
    toy.write(hidden_quadruple="raise ValueError('broken')")
    assert audit("toy").bars_missed[0] == (
        "toy.quadruple reference answer loses hidden_quadruple: ValueError: broken"
    )


def test_step_that_the_notebook_does_not_have_misses_a_bar(toy: Toy) -> None:
    toy.steps = (*STEPS, Step(name="triple", own={}, probes=(), misconceptions=()))
    toy.write()
    assert audit("toy").bars_missed == ["toy.triple is no answer of the notebook"]


def figures_of(**changes: int) -> Audit:
    """Figures of a hundred each that reach every bar, some of them changed."""
    found = Audit()
    for counts in found.figures().values():
        counts.update({key: 100 for key in counts if key != "misnamed"})
    for key, value in changes.items():
        name, _, part = key.partition("_")
        found.figures()[name][part] = value
    return found


@pytest.mark.parametrize(
    ("changes", "met"),
    [
        ({}, True),
        ({"misconceptions_rejected": 99}, False),
        ({"misconceptions_named": 95}, True),
        ({"misconceptions_named": 94}, False),
        ({"misconceptions_misnamed": 1}, False),
        ({"mutants_caught": 95}, True),
        ({"mutants_caught": 94}, False),
        ({"alternatives_full_marks": 99}, False),
    ],
)
def test_bars(changes: dict[str, int], met: bool) -> None:
    assert figures_of(**changes).met() is met


def test_a_bar_that_no_figure_shows_counts_too() -> None:
    found = figures_of()
    found.bars_missed.append("a survivor without a reason")
    assert not found.met()


def test_figures_of_units_are_added() -> None:
    total = Audit()
    one = figures_of(mutants_caught=97)
    one.faults.append("one")
    total.add(one)
    total.add(figures_of())
    assert total.mutants == {"total": 200, "caught": 197}
    assert total.misconceptions == {"total": 200, "rejected": 200, "named": 200, "misnamed": 0}
    assert total.faults == ["one"]
    assert one.mutants["caught"] == 97


# The command


def test_unknown_unit_is_named_with_those_that_there_are(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["toy", "tow"]) == 2
    assert said_once(capsys.readouterr().err) == "error: there is no unit 'tow'; the units are: toy."


def test_missing_module_of_alternatives_is_named(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "tools.audit.alternatives.toy")
    assert command.main([]) == 2
    assert "tools.audit.alternatives.toy" in said_once(capsys.readouterr().err)


def test_missing_notebook_is_named(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    (toy.root / "solutions" / "toy" / "toy.ipynb").unlink()
    forget()
    assert command.main([]) == 2
    assert "toy.ipynb" in said_once(capsys.readouterr().err)


def rows(text: str) -> dict[str, list[str]]:
    split = [[part.strip() for part in line.split("│")[1:-1]] for line in text.splitlines() if "│" in line]
    return {row[0]: row[1:] for row in split}


def test_table_shows_the_units_and_all(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--no-hostile"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == {name: ["3", "3", "3", "0", "20", "20", "4", "4"] for name in ("toy", "all")}
    below = said.rpartition("┘")[2].split("\n")
    assert below == ["", "The hostile submissions were left out.", ""]


def test_a_unit_that_is_asked_for_twice_counts_once(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["toy", "toy"])
    assert rows(capsys.readouterr().out)["all"][0] == "3"


def test_what_is_not_as_it_should_be_stands_below_the_table(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    toy.write(hidden_double="pass")
    assert command.main([]) == 1
    below = capsys.readouterr().out.partition("└")[2].splitlines()[1:]
    assert below[0].startswith("toy.double squared: kept ('hidden_double',)")


def test_figures_are_stored(toy: Toy) -> None:
    command.main([])
    stored = json.loads((toy.root / "_build" / "audit.json").read_text(encoding="utf-8"))
    assert stored == {
        "misconceptions": {"total": 3, "rejected": 3, "named": 3, "misnamed": 0},
        "mutants": {"total": 4, "caught": 4},
        "alternatives": {"total": 20, "full_marks": 20},
        "hostile": {"total": 2, "right": 2, "stock_right": 2},
    }


def test_figures_are_stored_where_a_bar_is_missed_too(toy: Toy) -> None:
    toy.write(hidden_double="pass")
    assert command.main([]) == 1
    stored = json.loads((toy.root / "_build" / "audit.json").read_text(encoding="utf-8"))
    assert stored["misconceptions"]["rejected"] == 1


def test_figures_of_a_part_of_the_units_are_not_stored(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "UNITS", ("toy", "other"))
    command.main(["toy", "--no-hostile"])
    assert not (toy.root / "_build").exists()


def test_what_else_the_file_holds_stays(tmp_path: Path) -> None:
    target = tmp_path / "audit.json"
    target.write_text('{"demo": {"learners": 12}, "mutants": {"total": 1}}', encoding="utf-8")
    command.store(figures_of().figures(), target)
    stored = json.loads(target.read_text(encoding="utf-8"))
    assert stored["demo"] == {"learners": 12}
    assert stored["mutants"] == {"total": 100, "caught": 100}


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_file_that_holds_no_figures_is_written_anew(tmp_path: Path, text: str) -> None:
    target = tmp_path / "audit.json"
    target.write_text(text, encoding="utf-8")
    command.store(figures_of().figures(), target)
    assert set(json.loads(target.read_text(encoding="utf-8"))) == {"misconceptions", "mutants", "alternatives"}


def test_several_units_are_audited_side_by_side_and_told_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    # Any function that another process can look up.
    monkeypatch.setattr(command, "audit", str.upper)
    names = ["swiglu", "mechanism", "learning"]
    assert list(command.audit_all(names)) == [(name, name.upper()) for name in names]


# Hostile submissions


def test_hostile_submissions_are_shown_with_what_is_right_and_what_both_graders_say(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.hostile["cheat"] = graded_row("cheat", stock="12", stock_right=False)
    assert command.main(["--hostile"]) == 0
    said = capsys.readouterr().out
    assert rows(said) == {
        "honest": ["graded, 8", "✓", "✓ 8"],
        "cheat": ["graded, 8", "✓", "✗ 12"],
    }
    assert said.splitlines()[-1] == (
        f"Hostile submissions: the engine is right on 2 of 2, stock nbgrader {version('nbgrader')} on 1 of 2."
    )


def test_a_hostile_submission_that_the_engine_is_wrong_on_misses_a_bar(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.hostile["cheat"] = graded_row("cheat", engine_points=12.0, right=False)
    assert command.main([]) == 1
    assert rows(capsys.readouterr().out)["cheat"] == ["graded, 8", "✗ graded, 12", "✓ 8"]
    stored = json.loads((toy.root / "_build" / "audit.json").read_text(encoding="utf-8"))
    assert stored["hostile"] == {"total": 2, "right": 1, "stock_right": 2}


def test_one_that_stock_nbgrader_did_not_grade_counts_neither_way(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    toy.hostile["cheat"] = graded_row("cheat", stock="not run: why", stock_right=False, stock_seen=False)
    assert command.main(["--hostile"]) == 0
    said = capsys.readouterr().out
    assert rows(said)["cheat"][-1] == "- not run: why"
    assert said.splitlines()[-1].endswith("on 1 of 1; 1 were not run with stock nbgrader.")


def test_units_that_are_named_are_audited_alone(toy: Toy, capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["toy"])
    assert "hostile submissions were left out" in capsys.readouterr().out
    stored = json.loads((toy.root / "_build" / "audit.json").read_text(encoding="utf-8"))
    assert "hostile" not in stored


def test_hostile_submissions_alone_leave_the_units_figures_as_they_are(toy: Toy) -> None:
    target = toy.root / "_build" / "audit.json"
    command.store({"mutants": {"total": 7}}, target)
    command.main(["--hostile"])
    stored = json.loads(target.read_text(encoding="utf-8"))
    assert stored == {"mutants": {"total": 7}, "hostile": {"total": 2, "right": 2, "stock_right": 2}}


def test_figures_of_a_part_of_the_hostile_submissions_are_not_stored(
    toy: Toy, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["--case", "cheat"]) == 0
    assert list(rows(capsys.readouterr().out)) == ["cheat"]
    assert not (toy.root / "_build").exists()


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (["--case", "chat"], "'chat'"),
        (["--hostile", "--no-hostile"], "--no-hostile"),
        (["--case", "cheat", "--no-hostile"], "--no-hostile"),
        (["toy", "--hostile"], "--hostile"),
        (["toy", "--case", "cheat"], "--case"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    toy: Toy, asked: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(asked) == 2
    assert named in said_once(capsys.readouterr().err)


def test_what_keeps_hostile_submissions_from_being_graded_is_said_and_the_units_are_kept(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(names: object, console: object) -> None:
        raise HostileError("there is no bubblewrap.")

    monkeypatch.setattr(command, "grade_cases", fail)
    assert command.main([]) == 2
    assert said_once(capsys.readouterr().err) == "error: there is no bubblewrap."
    stored = json.loads((toy.root / "_build" / "audit.json").read_text(encoding="utf-8"))
    assert set(stored) == {"misconceptions", "mutants", "alternatives"}


def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, count: int) -> tuple[list[Row], str]:
    """The rows, and what was said on the way, with a program in place of what grades."""
    path = tmp_path / "grades.py"
    path.write_text(program, encoding="utf-8")
    monkeypatch.setattr(hostile, "_COMMAND", (sys.executable, str(path)))
    said = io.StringIO()
    return grade_cases(
        [f"case_{number}" for number in range(count)], Console(file=said, width=100)
    ), said.getvalue()


GRADES = """
import json, sys
for grader in ("engine", "nbgrader"):
    for name in sys.argv[1:]:
        print(json.dumps({"done": grader, "case": name}), flush=True)
row = {"kind": "cheat", "status": "graded", "points": 8.0, "engine_status": "graded", "engine_points": 8.0,
       "right": True, "stock": "12", "stock_right": False, "stock_seen": True}
print(json.dumps({"rows": [{"case": name, **row} for name in sys.argv[1:]]}))
"""


def test_rows_are_those_of_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = told(tmp_path, monkeypatch, GRADES, 2)
    assert found == [graded_row(f"case_{number}", stock="12", stock_right=False) for number in range(2)]


def test_where_there_is_no_terminal_lines_tell_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, said = told(tmp_path, monkeypatch, GRADES, 100)
    lines = said.splitlines()
    assert len(lines) == 16
    assert lines[7] == "Hostile submissions: the engine has graded 100 of 100."
    assert lines[8] == "Hostile submissions: stock nbgrader has graded 13 of 100."


def test_what_the_command_says_last_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; sys.exit('a traceback\\nerror: there is no bubblewrap.')"
    with pytest.raises(HostileError, match=r"^the hostile submissions .*: there is no bubblewrap\.$"):
        told(tmp_path, monkeypatch, program, 1)


def test_a_command_that_ends_without_rows_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HostileError, match=r"it ended with 0\.$"):
        told(tmp_path, monkeypatch, "", 1)


@pytest.mark.slow
def test_hostile_submissions_are_graded_by_both(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--case", "ast_transformer", "--case", "blank_file"]) == 0
    found = rows(capsys.readouterr().out)
    assert found["ast_transformer"] == ["graded, 8", "✓", "✗ 12"]
    assert found["blank_file"][:2] == ["unreadable, 0", "✓"]
    assert found["blank_file"][2].startswith("✓ failed")


def test_every_hostile_submission_has_a_name() -> None:
    assert case_names() == sorted(case.name for case in cases())


# The bars of the course


@pytest.mark.slow
@pytest.mark.parametrize("name", UNITS)
def test_a_unit_reaches_every_bar(name: str) -> None:
    found = audit(name)
    known_wrong = sum(len(step.misconceptions) for step in unit_steps(name))
    functions = [function for step in unit_steps(name) for function in step.own]
    assert found.bars_missed == []
    assert found.misconceptions["total"] == found.misconceptions["rejected"] == known_wrong
    assert found.misconceptions["named"] >= 0.95 * known_wrong
    assert found.misconceptions["misnamed"] == 0
    assert found.alternatives["total"] == found.alternatives["full_marks"] >= 10 * len(functions)
    assert found.mutants["caught"] >= 0.95 * found.mutants["total"]
    assert found.mutants["total"] > len(functions)
    assert found.met()
    # What is left of the lines below the table are survivors, each with its reason, and misconceptions without a hint.
    assert len(found.faults) == (
        found.mutants["total"] - found.mutants["caught"] + known_wrong - found.misconceptions["named"]
    )
