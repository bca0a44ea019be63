"""What becomes of a submission's cells: the order in which tests run, and what ends one that does not end itself."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from grader.engine.grade import grade
from grader.engine.restore import Assignment
from grader.engine.sandbox import Sandbox
from grader.engine.verdict import Limits, Verdict
from grader.notebooks import HIDDEN_KEY, grade_id, without_hidden_tests

LIMITS = Limits(cell_seconds=20.0, total_seconds=60.0)
SECRET = "730.25"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(LIMITS, (), "none") as made:
        yield made


def cell(source: str, name: str, **marks: Any) -> Any:
    made = new_code_cell(source)
    made["metadata"]["nbgrader"] = {"grade_id": name, "grade": False, "locked": False, "solution": False, **marks}
    return made


def answer(source: str, name: str) -> Any:
    return cell(source, name, solution=True)


def visible(source: str, name: str) -> Any:
    return cell(source, name, grade=True, locked=True, points=1)


def hidden(source: str, name: str, ahead: str = "") -> Any:
    return visible(f"{ahead}### BEGIN HIDDEN TESTS\n{source}\n### END HIDDEN TESTS", name)


def graded(sandbox: Sandbox, cells: list[Any], answers: dict[str, str], limits: Limits = LIMITS) -> Verdict:
    """The verdict on these answers; the source has the cells with the right ones."""
    submitted = json.loads(json.dumps(new_notebook(cells=cells)))
    for one in submitted["cells"]:
        one["source"] = answers.get(str(grade_id(one)), without_hidden_tests(one["source"]))
    return grade(Assignment("unit", new_notebook(cells=cells)), json.dumps(submitted).encode(), limits, sandbox)


def points(verdict: Verdict) -> dict[str, float]:
    return {result.cell: result.points for result in verdict.results}


RECORDING = """
seen = []

def double(x):
    seen.append(x)
    return 2 * x
"""
TWO = [
    answer("def double(x):\n    return 2 * x", "double"),
    visible("assert double(1) == 2", "test_double"),
    hidden(f"assert double({SECRET}) == 2 * {SECRET}", "hidden_double"),
    answer("def triple(x):\n    return 3 * x", "triple"),
    visible("assert triple(1) == 3", "test_triple"),
]


@pytest.mark.parametrize(
    "later",
    [
        "print(seen)\n\ndef triple(x):\n    return 3 * x",
        "seen",
        "def triple(x):\n    raise ValueError(repr(seen))",
        "def triple(x):\n    return seen\n\nprint(seen)",
        f"assert {SECRET} not in seen, seen",
    ],
)
def test_a_later_cell_cannot_show_what_hidden_tests_asked(sandbox: Sandbox, later: str) -> None:
    verdict = graded(sandbox, TWO, {"double": RECORDING, "triple": later})
    assert points(verdict)["hidden_double"] == 1
    outputs = [one.get("outputs") for one in verdict.notebook["cells"]]
    assert SECRET not in json.dumps(outputs)
    assert "[1" in json.dumps(outputs) or later.startswith("assert")


def test_what_came_out_of_hidden_tests_is_marked(sandbox: Sandbox) -> None:
    verdict = graded(sandbox, TWO, {"double": "def double(x):\n    raise ValueError(x)", "triple": "triple = abs"})
    marked = [grade_id(one) for one in verdict.notebook["cells"] if one["metadata"].get(HIDDEN_KEY)]
    assert marked == ["hidden_double"]


def test_a_hidden_test_sees_the_names_of_its_place(sandbox: Sandbox) -> None:
    cells = [
        answer("def scale(x):\n    return factor * x\n\nfactor = 2", "first"),
        hidden("assert scale(21) == 42 and factor == 2", "hidden_first"),
        answer("factor = 5\n\ndef scale(x, y=1):\n    return factor * x * y\n\nlate = 1", "second"),
        hidden("assert scale(21) == 105 and late == 1", "hidden_second"),
    ]
    assert points(graded(sandbox, cells, {})) == {"hidden_first": 1, "hidden_second": 1}


def test_a_name_that_is_defined_later_is_not_there_in_an_earlier_hidden_test(sandbox: Sandbox) -> None:
    cells = [
        answer("first = 1", "first"),
        hidden("try:\n    second\nexcept NameError:\n    pass\nelse:\n    assert False", "hidden_first"),
        answer("second = 2", "second"),
        hidden("assert second == 2", "hidden_second"),
    ]
    assert points(graded(sandbox, cells, {})) == {"hidden_first": 1, "hidden_second": 1}


def test_hidden_tests_find_the_data_of_their_place_and_names_of_earlier_ones(sandbox: Sandbox) -> None:
    cells = [
        answer("def double(x):\n    return 2 * x", "double"),
        visible("numbers = [1, 2]\nassert double(numbers[0]) == 2", "test_double"),
        hidden("def helped(x):\n    return double(x) == 2 * x\n\nassert len(numbers) == 2", "hidden_double"),
        answer("def triple(x):\n    return 3 * x", "triple"),
        visible("numbers.append(3)\nassert triple(numbers[-1]) == 9", "test_triple"),
        hidden("assert len(numbers) == 3 and helped(7)", "hidden_triple"),
    ]
    assert set(points(graded(sandbox, cells, {})).values()) == {1.0}


def test_a_test_that_is_hidden_in_part_binds_its_names_for_later_ones(sandbox: Sandbox) -> None:
    cells = [
        answer("def double(x):\n    return 2 * x", "double"),
        hidden("assert double(start) == 6", "test_double", ahead="start = 3\nassert double(1) == 2\n"),
        answer("def triple(x):\n    return 3 * x", "triple"),
        visible("assert triple(start) == 9", "test_triple"),
    ]
    assert points(graded(sandbox, cells, {})) == {"test_double": 1, "test_triple": 1}
    wrong = graded(sandbox, cells, {"double": "def double(x):\n    return x"})
    assert points(wrong) == {"test_double": 0, "test_triple": 1}


def test_hidden_tests_go_on_at_their_place_in_a_new_session(sandbox: Sandbox) -> None:
    cells = [
        answer("def double(x):\n    return 2 * x", "double"),
        hidden("assert double(1) == 2", "hidden_double"),
        hidden("assert double(2) == 4", "more_double"),
        answer("def double(x):\n    return 0", "again"),
        visible("assert double(1) == 0", "test_again"),
    ]
    ends = "def double(x):\n    if x == 1:\n        import os\n        os._exit(1)\n    return 2 * x"
    verdict = graded(sandbox, cells, {"double": ends})
    assert points(verdict) == {"hidden_double": 0, "more_double": 1, "test_again": 1}


def test_a_test_that_never_ends_itself_is_ended(sandbox: Sandbox) -> None:
    cells = [
        answer("limit = 3", "limit"),
        visible("count = 0\nwhile count != limit:\n    count += 1", "test_limit"),
        answer("other = 1", "other"),
        visible("assert other == 1", "test_other"),
    ]
    verdict = graded(sandbox, cells, {"limit": "limit = -1"}, replace(LIMITS, cell_seconds=1.0))
    assert points(verdict) == {"test_limit": 0, "test_other": 1}
    assert verdict.status == "timed out"


def test_many_answers_that_end_the_session_leave_the_others_their_points(sandbox: Sandbox) -> None:
    numbers = range(12)
    cells = []
    for number in numbers:
        cells += [answer(f"def f{number}():\n    return {number}", f"f{number}")]
        cells += [visible(f"assert f{number}() == {number}", f"test_{number}")]
    ends = {f"f{number}": f"def f{number}():\n    import os\n    os._exit(1)" for number in numbers[:-1]}
    assert sum(points(graded(sandbox, cells, ends)).values()) == 1


def test_answers_that_never_end_leave_time_for_the_others(sandbox: Sandbox) -> None:
    cells = []
    for number in range(4):
        cells += [answer(f"def f{number}():\n    return {number}", f"f{number}")]
        cells += [visible(f"assert f{number}() == {number}", f"test_{number}")]
    loops = {f"f{number}": f"def f{number}():\n    while True: pass" for number in range(3)}
    # At four seconds each, the three loops would use up everything.
    verdict = graded(sandbox, cells, loops, replace(LIMITS, cell_seconds=4.0, total_seconds=12.0))
    assert points(verdict)["test_3"] == 1


def test_every_cell_that_ran_has_its_seconds(sandbox: Sandbox) -> None:
    cells = [
        new_code_cell("import time"),
        answer("def wait():\n    time.sleep(0.05)", "wait"),
        hidden("wait()", "hidden_wait", ahead="wait()\n"),
    ]
    timings = graded(sandbox, cells, {}).timings
    # A cell without a name is there twice: the exercise's, and the learner's copy of it.
    assert [name for name, _ in timings] == ["cell 1", "cell 2", "wait", "hidden_wait"]
    # Its visible part has run once, and then all of it.
    assert dict(timings)["hidden_wait"] >= 0.15
