"""`grader check`, the first half: the marks of a learner's visible tests, by the engine."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import grader.engine.sandbox
from ffn.misconceptions import UNITS
from grader.check import CELL_SECONDS, read_subject
from grader.course import Course
from grader.engine.sandbox import Sandbox
from grader.engine.verdict import Limits
from grader.exceptions import CheckFailedError, NoSandboxError, UnreadableNotebookError
from grader.notebooks import is_hidden, read_notebook, steps
from grader.quick import Marks, StepMarks, mark
from tests.grader.own_notebooks import MIXED, OWN, notebook_text, put, snapshot
from tests.helpers import ROOT, copy_of_course

COURSE = Course(ROOT)


def marks_of(path: Path, course: Course = COURSE, cell_seconds: float = CELL_SECONDS) -> Marks:
    return mark(read_subject(course, path), cell_seconds=cell_seconds)


def visible_points(unit: str) -> dict[str, float]:
    """The points of each step's visible tests, as the reference notebook has them."""
    reference = read_notebook(COURSE.reference(unit))
    points = {
        cell["id"]: cell["metadata"]["nbgrader"]["points"]
        for cell in reference["cells"]
        if cell["metadata"].get("nbgrader", {}).get("grade") and not is_hidden(cell)
    }
    return {step: sum(points.get(test, 0) for test in tests) for step, tests in steps(reference).items()}


# ------------------------------------------------------------------------------- one notebook with many answers


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = notebook_text("activations", MIXED, own=OWN, deleted="tanh_neuron")
    return put(tmp_path_factory.mktemp("quick"), text, "my answers (2).ipynb")


@pytest.fixture(scope="module")
def before(place: Path) -> dict[str, tuple[bytes, int]]:
    return snapshot(place.parent)


@pytest.fixture(scope="module")
def mixed(place: Path, before: dict[str, tuple[bytes, int]]) -> Marks:
    return marks_of(place)


Step = Callable[[str], StepMarks]


@pytest.fixture(scope="module")
def step(mixed: Marks) -> Step:
    return lambda name: next(step for step in mixed.steps if step.name == name)


def test_every_step_is_marked_in_order_out_of_its_visible_points(mixed: Marks) -> None:
    assert [(step.name, step.max_points) for step in mixed.steps] == list(visible_points("activations").items())


def test_right_answers_have_the_points_and_wrong_ones_none(mixed: Marks) -> None:
    right = {"relu", "sigmoid", "gelu", "silu_grad", "gelu_grad"}
    assert {step.name for step in mixed.steps if step.points == step.max_points} == right
    assert {step.name for step in mixed.steps if step.points == 0} == set(visible_points("activations")) - right


def test_the_sum_is_that_of_the_steps(mixed: Marks) -> None:
    points = visible_points("activations")
    assert mixed.points == sum(points[name] for name in ("relu", "sigmoid", "gelu", "silu_grad", "gelu_grad"))
    assert mixed.max_points == sum(points.values())


def test_a_message_stands_where_points_are_missing_and_nowhere_else(mixed: Marks) -> None:
    assert [step.name for step in mixed.steps if (step.points < step.max_points) is (not step.message)] == []


def test_a_wrong_answer_gets_the_hint_of_its_misconception(step: Step) -> None:
    lines = step("relu_grad").message.splitlines()
    assert lines[0].endswith("expected 0, but the given value is 1.")
    assert lines[1] == "What happened: the derivative at the kink was set to 1; the convention here is 0."
    assert lines[2].startswith("The book treats it on the page ")


def test_a_stub_is_not_written_yet(step: Step) -> None:
    assert step("silu").message.startswith("silu is not written yet; ")


def test_an_exception_in_an_answer_is_told_without_terminal_codes(step: Step) -> None:
    assert "RuntimeError: no idea" in step("normal_cdf").message


def test_a_syntax_error_is_told_with_its_line(step: Step) -> None:
    assert step("gelu_tanh").message == "The answer's cell raises SyntaxError: expected ':' (line 1 of its cell)"


def test_a_deleted_answer_is_said_to_be_missing_once(step: Step, mixed: Marks) -> None:
    assert step("tanh_neuron").message == "The notebook has no answer cell for this step."
    assert mixed.notes == ()


def test_an_answer_that_uses_the_module_is_flagged(step: Step) -> None:
    assert step("gelu").flags == ("uses ffn",)


def test_a_notebook_with_a_fault_has_not_passed(mixed: Marks) -> None:
    assert not mixed.passed
    assert mixed.elsewhere == ()


def test_no_message_shows_a_hidden_test_or_the_engine(mixed: Marks) -> None:
    text = json.dumps(asdict(mixed)).lower()
    for noise in ("hidden", "\\u001b", "\\u0007", "traceback", "session", "grader"):
        assert noise not in text


def test_nothing_is_changed_or_left_behind(
    mixed: Marks, place: Path, before: dict[str, tuple[bytes, int]]
) -> None:
    assert snapshot(place.parent) == before


# -------------------------------------------------------------------------------- units, right from end to end


@pytest.mark.parametrize("unit", UNITS)
def test_right_answers_have_every_visible_point_of_every_unit(tmp_path: Path, unit: str) -> None:
    marks = marks_of(put(tmp_path, notebook_text(unit)))
    assert [step for step in marks.steps if step.message or step.flags] == []
    assert {step.name: step.points for step in marks.steps} == visible_points(unit)
    assert (marks.unit, marks.elsewhere, marks.notes, marks.stopped) == (unit, (), (), {})
    assert marks.passed


def test_an_answer_finds_the_unit_s_data_beside_it(tmp_path: Path) -> None:
    reference = read_notebook(COURSE.reference("capstone"))
    (right,) = [cell["source"] for cell in reference["cells"] if cell["id"] == "widths"]
    answer = f"assert 'project.weight' in np.load('layer.npz')\n\n\n{right}"
    marks = marks_of(put(tmp_path, notebook_text("capstone", {"widths": answer})))
    assert [step.message for step in marks.steps if step.name == "widths"] == [""]


# ------------------------------------------------------------------------------------------------ hidden tests


def test_an_answer_that_only_a_hidden_test_would_refuse_has_its_points(tmp_path: Path) -> None:
    answer = (
        "def relu(z):\n    z = np.array(z, dtype=float)\n    return np.where(z > 1e200, 7.0, np.maximum(z, 0))"
    )
    marks = marks_of(put(tmp_path, notebook_text("activations", {"relu": answer})))
    assert marks.passed


def test_hidden_tests_of_the_reference_do_not_run(tmp_path: Path) -> None:
    copied = copy_of_course(tmp_path / "course", "nbgrader_config.py", "solutions/activations")
    trace = tmp_path / "trace"
    path = copied.root / "solutions" / "activations" / "activations.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        cell["source"] = "".join(cell["source"])
        if "BEGIN HIDDEN TESTS" in cell["source"]:
            marked = f"open({str(trace)!r}, 'w').close()"
            cell["source"] = cell["source"].replace("### END HIDDEN TESTS", f"{marked}\n### END HIDDEN TESTS")
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert marks_of(path, Course(copied.root)).passed
    assert not trace.exists()


def test_what_stands_in_a_hidden_test_s_cell_of_one_s_own_file_does_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    notebook = json.loads(notebook_text("activations"))
    for cell in notebook["cells"]:
        if cell["id"] == "hidden_relu":
            cell["source"] = f"open({str(trace)!r}, 'w').close()"
    marks_of(put(tmp_path, json.dumps(notebook)))
    assert not trace.exists()


# ----------------------------------------------------------------------------------- what was changed in the file


def test_a_test_that_was_changed_is_the_reference_s_again_and_noted(tmp_path: Path) -> None:
    notebook = json.loads(notebook_text("activations", {"relu": "def relu(z):\n    return z"}))
    for cell in notebook["cells"]:
        if cell["id"] == "test_relu":
            cell["source"] = "pass"
    marks = marks_of(put(tmp_path, json.dumps(notebook)))
    assert marks.steps[0].points == 0
    assert marks.notes == ("The cell 'test_relu' is not as it is given out; the course's own counts.",)


def test_a_cell_of_one_s_own_that_fails_is_no_fault(tmp_path: Path) -> None:
    assert marks_of(put(tmp_path, notebook_text("activations", own="1 / 0"))).passed


def test_more_cells_than_a_notebook_has_are_refused(tmp_path: Path) -> None:
    notebook = json.loads(notebook_text("activations"))
    notebook["cells"] += [{"cell_type": "code", "metadata": {}, "source": "1", "outputs": []}] * 5_000
    with pytest.raises(
        UnreadableNotebookError, match="it has more than 5000 cells; delete those that are not needed"
    ):
        read_subject(COURSE, put(tmp_path, json.dumps(notebook)))


def test_a_cell_that_is_too_long_is_refused(tmp_path: Path) -> None:
    text = notebook_text("activations", {"relu": "#" * 2_000_001})
    with pytest.raises(
        UnreadableNotebookError, match="it has a cell that is longer than an answer can be; shorten it"
    ):
        read_subject(COURSE, put(tmp_path, text))


# ------------------------------------------------------------------------------------- answers that do not end


@pytest.fixture(scope="module")
def endless(tmp_path_factory: pytest.TempPathFactory) -> Marks:
    """The marks of a notebook with answers that do not end, in their cells and in their tests, and some that do."""
    answers = {
        "relu": "while True:\n    pass",
        "silu": "def silu(z):\n    while True:\n        pass",
        "normal_cdf": "import os\n\nos._exit(0)",
        "gelu": "import os\n\n\ndef gelu(z):\n    os._exit(1)",
        "tail_reach": "def tail_reach(t, z):\n    raise RuntimeError('mine')",
    }
    text = notebook_text("activations", answers, own="while True:\n    pass")
    return marks_of(put(tmp_path_factory.mktemp("endless"), text), cell_seconds=1)


LOOPS = "Your code did not come to an end within 1 seconds."
ENDS = "Your code ends Python itself, or runs out of memory."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"), [("relu", LOOPS), ("silu", LOOPS), ("normal_cdf", ENDS), ("gelu", ENDS)]
)
def test_an_answer_that_does_not_end_is_told_and_handed_on(endless: Marks, name: str, said: str) -> None:
    (step,) = [step for step in endless.steps if step.name == name]
    assert (step.points, step.message) == (0, said)
    assert endless.stopped[name] == said


@pytest.mark.slow
def test_an_answer_that_does_not_end_costs_its_own_step_only(endless: Marks) -> None:
    full = [step.name for step in endless.steps if step.points == step.max_points]
    assert full == ["relu_grad", "sigmoid", "gelu_tanh", "tanh_neuron", "silu_grad", "gelu_grad"]


@pytest.mark.slow
def test_what_stands_after_an_answer_that_does_not_end_is_told_as_it_is(endless: Marks) -> None:
    (step,) = [step for step in endless.steps if step.name == "tail_reach"]
    assert "RuntimeError: mine" in step.message


@pytest.mark.slow
def test_a_cell_of_one_s_own_that_does_not_end_is_told(endless: Marks) -> None:
    assert endless.elsewhere == (f"your own cell 1: {LOOPS}",)
    assert set(endless.stopped) == {"your own cell 1", "relu", "silu", "normal_cdf", "gelu"}


# ---------------------------------------------------------------------------------------------- the process of it


def test_no_process_is_left(tmp_path: Path) -> None:
    trace = tmp_path / "process"
    answer = f"import os, pathlib\n\npathlib.Path({str(trace)!r}).write_text(f'{{os.getpid()}} {{os.getppid()}}')"
    marks_of(put(tmp_path, notebook_text("activations", {"relu": answer})))
    numbers = [int(number) for number in trace.read_text(encoding="utf-8").split()]
    until = time.monotonic() + 20
    while any(_alive(number) for number in numbers) and time.monotonic() < until:
        time.sleep(0.1)
    assert [number for number in numbers if _alive(number)] == []


def _alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_sandbox_that_is_asked_for_gives_the_same_marks(tmp_path: Path) -> None:
    try:
        Sandbox(Limits()).close()
    except NoSandboxError as error:
        pytest.skip(f"this machine gives no isolation: {error}")
    marks = mark(read_subject(COURSE, put(tmp_path, notebook_text("capstone"))), sandbox="full")
    assert marks.sandbox == "full"
    assert {step.name: step.points for step in marks.steps} == visible_points("capstone")
    assert marks.passed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let no sandbox start; the modes that were asked for."""
    modes: list[str] = []

    def refuse(limits: Limits, files: Any, mode: str, **more: Any) -> None:
        modes.append(mode)
        raise NoSandboxError("there is none")

    monkeypatch.setattr(grader.engine.sandbox, "Sandbox", refuse)
    return modes


def test_one_s_own_code_runs_without_a_sandbox_unless_it_is_asked_for(tmp_path: Path, asked: list[str]) -> None:
    with pytest.raises(CheckFailedError, match=r"does not start \(there is none\); run `make venv`\.$"):
        marks_of(put(tmp_path, notebook_text("activations")))
    assert asked == ["none"]


def test_a_sandbox_that_is_asked_for_and_not_there_is_told(tmp_path: Path, asked: list[str]) -> None:
    subject = read_subject(COURSE, put(tmp_path, notebook_text("activations")))
    with pytest.raises(NoSandboxError, match="there is none"):
        mark(subject, sandbox="full")
    assert asked == ["full"]
