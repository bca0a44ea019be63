"""Tests whose requests are foreseen: the same verdicts as without, whatever an answer does, and far fewer messages."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grader.engine import grade as grading
from grader.engine import proxy
from grader.engine.foresight import MOST_STEPS, Asked, Script, script_of
from grader.engine.grade import grade
from grader.engine.proxy import LearnerSession, Names, SessionLostError
from grader.engine.restore import Assignment
from grader.engine.sandbox import Sandbox
from grader.engine.verdict import GRADED, Limits, Verdict
from grader.notebooks import grade_id, without_hidden_tests
from tests.grader.engine.fakes import honest, hostile

LIMITS = Limits(cell_seconds=20.0, total_seconds=60.0)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LIMITS, (), "none") as made:
        yield made


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the scripts before the first submission."""
    monkeypatch.setattr(grading, "REHEARSED_AFTER", 0)


def cell(source: str, name: str, **marks: Any) -> Any:
    made = new_code_cell(source)
    made["metadata"]["nbgrader"] = {"grade_id": name, "grade": False, "locked": False, "solution": False, **marks}
    return made


VISIBLE = """
assert double(1) == 2
assert double(2) == 4, "wrong on 2"
assert double(3) == 6, "wrong on 3"
assert shift([1, 2]) == [2, 3]
"""
HIDDEN = """
### BEGIN HIDDEN TESTS
import numpy as np
x = np.arange(3.0)
assert np.array_equal(double(x), 2 * x), "wrong on arrays"
assert double(10) == 20 and factor == 2, "wrong on 10"
assert double(x=5) == 10
### END HIDDEN TESTS
"""
ANSWER = """
factor = 2

def double(x):
    return factor * x

def shift(values):
    return [value + 1 for value in values]
"""
CELLS = [
    cell(ANSWER, "double", solution=True),
    cell(VISIBLE, "test_double", grade=True, locked=True, points=1),
    cell(HIDDEN, "hidden_double", grade=True, locked=True, points=2),
]
NOTEBOOK = new_notebook(cells=CELLS)


def graded(sandbox: Sandbox, answer: str = ANSWER) -> Verdict:
    """The verdict on this answer."""
    submitted = json.loads(json.dumps(NOTEBOOK))
    for one in submitted["cells"]:
        one["source"] = answer if grade_id(one) == "double" else without_hidden_tests(one["source"])
    return grade(Assignment("unit", NOTEBOOK), json.dumps(submitted).encode(), LIMITS, sandbox)


def said(verdict: Verdict) -> Any:
    """All that a verdict says, but how long it took."""
    return (
        verdict.status,
        verdict.results,
        verdict.notes,
        [one.get("outputs") for one in verdict.notebook["cells"]],
    )


OTHERS = {
    "wrong": ANSWER.replace("factor * x", "factor + x"),
    "wrong on arrays": ANSWER.replace("factor * x", "factor * x if isinstance(x, int) else x"),
    "not written": "raise NotImplementedError()",
    "no function": "factor = 2",
    "raises": ANSWER.replace("return factor * x", "raise ValueError(x)"),
    "exits": ANSWER.replace("return factor * x", "raise SystemExit(1)"),
    "another name for x": ANSWER.replace("x", "z"),
    "prints": ANSWER.replace("return factor", "print(x); return factor"),
    "changes what it is given": ANSWER.replace("return [", "values.append(9)\n    return ["),
    "returns a function": ANSWER.replace("return factor * x", "return lambda: x"),
    "another factor": ANSWER.replace("factor = 2", "factor = 3"),
    "no plain number": "import numpy as np\nfactor = np.float64(2)\n" + ANSWER.replace("factor = 2", ""),
    "a callable object": ANSWER
    + "\nclass Double:\n    def __call__(self, x):\n        return 2 * x\n\ndouble = Double()",
    "one object for both": ANSWER + "\nshift = double",
    "binds its own name anew": ANSWER.replace("return factor", "global double; double = abs; return factor"),
    "takes its name away": ANSWER.replace("return factor", "global shift; shift = 1; return factor"),
    "right": ANSWER,
}


@pytest.mark.parametrize("answer", OTHERS.values(), ids=OTHERS.keys())
def test_verdicts_are_those_without_foresight(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    with_it = said(graded(sandbox, answer))
    monkeypatch.setattr(grading, "_scripts", lambda *_: {})
    assert with_it == said(graded(sandbox, answer))


def test_a_right_answer_gets_all_points_in_few_messages(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    graded(sandbox)
    asked: list[str] = []
    exchange, answers = LearnerSession._exchange, LearnerSession._answers
    monkeypatch.setattr(
        LearnerSession, "_exchange", lambda self, m, arrays: (asked.append(m["op"]), exchange(self, m, arrays))[1]
    )
    monkeypatch.setattr(
        LearnerSession, "_answers", lambda self, at: (asked.append("script"), answers(self, at))[1]
    )
    verdict = graded(sandbox)
    assert (verdict.status, verdict.points) == (GRADED, 3)
    assert asked == ["run", "script", "script"]


def test_each_call_of_a_test_is_made_once_and_in_its_order(sandbox: Sandbox, tmp_path: Path) -> None:
    log = tmp_path / "log"
    write = f"with pathlib.Path({str(log)!r}).open('a') as file: file.write(f'{{x}} ')"
    graded(sandbox, "import pathlib\n" + ANSWER.replace("return factor", f"{write}\n    return factor"))
    assert log.read_text() == "1 2 3 [0. 1. 2.] 10 5 "


ENDS = ANSWER.replace("return factor * x", "if isinstance(x, int) and x == 3:\n        {}\n    return 7")


@pytest.mark.parametrize("end", ["import os; os._exit(1)", "while True: pass"])
def test_what_a_failing_test_would_not_have_asked_ends_no_session(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(proxy, "AHEAD_SECONDS", 1.0)
    verdict = graded(sandbox, ENDS.format(end))
    assert (verdict.status, verdict.points, verdict.notes) == (GRADED, 0, ())


def test_what_a_test_asks_and_does_not_come_back_costs_the_test(sandbox: Sandbox) -> None:
    verdict = graded(sandbox, ANSWER.replace("return factor * x", "import os; os._exit(1)"))
    assert verdict.status == "crashed at cell test_double"


def test_a_test_that_asks_otherwise_when_it_passes_shortens_its_script(sandbox: Sandbox) -> None:
    cells = [
        cell("def walk(x):\n    return x + 1", "walk", solution=True),
        cell("x = 0\nfor _ in range(3):\n    x = walk(x)", "test_walk", grade=True, locked=True, points=1),
    ]
    notebook = new_notebook(cells=cells)
    assignment = Assignment("unit", notebook)
    submitted = json.loads(json.dumps(notebook))
    submitted["cells"][0]["source"] = "def walk(x):\n    return x + 10"
    for _ in range(2):
        assert grade(assignment, json.dumps(submitted).encode(), LIMITS, sandbox).points == 1
    (script,) = grading._known[sandbox].scripts.values()
    assert (len(script.asked), script.length) == (4, 2)


def test_the_scripts_come_from_the_reference_alone(sandbox: Sandbox) -> None:
    graded(sandbox, ANSWER.replace("factor * x", "'of a learner'"))
    scripts = grading._known[sandbox].scripts
    assert set(scripts) == {("test_double", ""), ("hidden_double", "hidden_double")}
    assert "of a learner" not in "".join(one.text for script in scripts.values() for one in script.asked)


# --------------------------------------------------------------------------------------------------- one session


def call(of: str, value: int, **more: Any) -> Asked:
    return Asked({"op": "call", "args": [{"i": hex(value)}]}, of=of, **more)


def get(name: str, **more: Any) -> Asked:
    return Asked({"op": "get", "name": name}, **more)


TWO = Script([get("double"), call("double", 1), call("double", 2)])
SOURCE = "def double(x):\n    return 2 * x\n\ndef triple(x):\n    return 3 * x"


def test_a_question_that_is_not_foreseen_is_asked() -> None:
    with honest(SOURCE) as session:
        names = Names(session, ["double", "triple"])
        session.foresee(TWO)
        assert (names["double"](1), names["double"](5), names["triple"](1)) == (2, 10, 3)
        assert session.unforeseen() == 2
        session.settle()


def test_a_script_that_does_not_begin_as_the_test_does_is_not_sent() -> None:
    with honest(SOURCE) as session:
        session.foresee(TWO)
        assert Names(session, ["triple"])["triple"](1) == 3
        assert session.unforeseen() is None


def test_names_that_are_known_already_are_passed_over() -> None:
    with honest(SOURCE) as session:
        names = Names(session, ["double"])
        double = names["double"]
        session.foresee(TWO)
        assert (double(1), double(2)) == (2, 4)
        assert session.unforeseen() == 3


def test_stand_ins_of_a_test_that_did_not_get_so_far_are_taken_back() -> None:
    first = (("stand_in", "activations.relu_grad"),)
    script = Script([get("relu_grad"), call("relu_grad", 1, first=first)])
    with honest("relu = 'own'\n\ndef relu_grad(z):\n    return relu") as session:
        names = Names(session, ["relu_grad", "relu"])
        session.foresee(script)
        assert callable(names["relu_grad"])
        assert session.unforeseen() == 1
        assert names["relu_grad"](1) == "own"


Answers = dict[str, Any] | list[Any] | str | None


@pytest.mark.parametrize(
    "each",
    [
        None,
        {},
        "x",
        [1],
        [{}],
        [{"arrays": -1}],
        [{"arrays": 1}],
        [{"arrays": True}],
        [{"arrays": 0}, {"arrays": "0"}],
    ],
)
def test_answers_that_are_none_end_the_session(each: Answers) -> None:
    with hostile({"each": each}) as session:
        session.foresee(TWO)
        with pytest.raises(SessionLostError):
            session.get("double")
        assert session.lost_ahead


def test_a_question_without_an_answer_among_them_is_asked_alone() -> None:
    found = {"value": {"h": [0, True, "function", "double"]}, "arrays": 0}
    with hostile({"each": [found]}, {"n": 1, "settled": True}, {"value": {"i": "0x7"}}) as session:
        names = Names(session, ["double"])
        session.foresee(TWO)
        double = names["double"]
        # The fake answers each message with one frame; the last word on the script takes one more.
        session._wire.send({"op": "ping"}, [], session._deadline)
        assert double(1) == 7


def test_an_answer_ahead_of_the_true_ones_is_noticed_when_the_test_is_over() -> None:
    forged = {"each": [{"value": {"i": "0x7"}, "arrays": 0}]}
    with hostile(forged, {"each": [], "n": 1}) as session:
        session.foresee(Script([get("double")]))
        assert session.get("double") == 7
        session.unforeseen()
        # Two frames came for one script, and the second one is not the last word on it.
        session._wire.send({"op": "ping"}, [], session._deadline)
        with pytest.raises(SessionLostError, match="another question"):
            session.settle()


# ------------------------------------------------------------------------------------------------ what is a script


CALLBACK = Asked({"op": "call", "args": [{"l": [{"h": [0, "f"]}]}]}, of="double")
AFTER = call("double", 2, first=(("stand_back", ""),))


@pytest.mark.parametrize(
    ("asked", "length"),
    [
        ([get("double"), call("double", 1)], 2),
        ([get("double"), call("double", 1), CALLBACK, call("double", 2)], 2),
        ([get("double"), call("double", 1), AFTER], 2),
        ([get("double"), call("double", 1), call("", 1)], 2),
        ([get("double"), call("double", 1), Asked({"op": "attribute", "name": "x"}, of="double")], 2),
        ([get("double", first=(("keep", "m"),)), call("double", 1, first=(("stand_in", "s"),))], 2),
        ([get("double"), *[call("double", n) for n in range(MOST_STEPS)]], MOST_STEPS),
        ([get("double"), call("double", 1), Asked({"op": "get", "name": "x"}, (bytes(2 << 20),))], 2),
    ],
)
def test_a_script_goes_to_what_cannot_be_foreseen(asked: list[Asked], length: int) -> None:
    script = script_of(asked)
    assert script is not None
    assert script.asked == tuple(asked[:length])


@pytest.mark.parametrize("asked", [[], [get("double")], [CALLBACK, call("double", 1)], [get("double"), CALLBACK]])
def test_what_is_a_question_at_most_is_no_script(asked: list[Asked]) -> None:
    assert script_of(asked) is None
