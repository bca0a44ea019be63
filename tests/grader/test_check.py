"""`grader check`: a learner's answers in the reference notebook, run by nbval, what is said, and the command."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import grader.check
import grader.quick
from ffn.misconceptions import UNITS
from grader.check import LARGEST, Report, StepReport, compare, read_subject
from grader.cli import cli
from grader.course import Course
from grader.exceptions import BrokenReferenceError, CheckFailedError, UnknownUnitError, UnreadableNotebookError
from grader.notebooks import checked_ids, grade_id, read_notebook, steps
from grader.quick import Marks, StepMarks
from tests.grader.own_notebooks import MIXED, OWN, notebook_text, put, snapshot
from tests.helpers import ROOT, copy_of_course, said_once

Cells = list[dict[str, Any]]


def check_notebook(course: Course, path: Path, unit: str | None = None, **options: Any) -> Report:
    return compare(read_subject(course, path, unit), **options)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A copy of what a check reads of the course."""
    made = copy_of_course(tmp_path_factory.mktemp("check") / "course", "nbgrader_config.py", "solutions")
    return Course(made.root)


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Cells:
    """Let nbval not run; the cells that it would have run, after a check."""
    cells: Cells = []

    def nbval(path: Path, cell_seconds: float, seconds: float) -> dict[int, Any]:
        cells[:] = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return {}

    monkeypatch.setattr(grader.check, "_nbval", nbval)
    return cells


def sources(cells: Cells) -> dict[str, str]:
    return {str(grade_id(cell)): "".join(cell["source"]) for cell in cells}


# ------------------------------------------------------------------------------- one notebook with many answers


@pytest.fixture(scope="module")
def mixed_place(course: Course) -> Path:
    path = course.root / "work" / "my answers (2).ipynb"
    path.parent.mkdir()
    text = notebook_text("activations", MIXED, own=OWN, deleted="tanh_neuron")
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def before(course: Course, mixed_place: Path) -> dict[str, tuple[bytes, int]]:
    return snapshot(course.root)


@pytest.fixture(scope="module")
def mixed(course: Course, mixed_place: Path, before: dict[str, tuple[bytes, int]]) -> Report:
    return check_notebook(course, mixed_place)


@pytest.fixture(scope="module")
def step(mixed: Report) -> Callable[[str], StepReport]:
    return lambda name: next(step for step in mixed.steps if step.name == name)


Step = Callable[[str], StepReport]


def test_every_step_is_reported_in_order(mixed: Report) -> None:
    assert [step.name for step in mixed.steps] == list(steps(read_notebook(Course(ROOT).reference("activations"))))


def test_the_unit_is_told_from_the_cells_whatever_the_file_is_called(mixed: Report) -> None:
    assert mixed.unit == "activations"


def test_a_right_answer_reproduces_its_values(step: Step) -> None:
    assert len(step("relu").reproduced) == 7
    assert (step("relu").missing, step("relu").message, step("relu").note) == ((), "", "")


def test_a_comment_to_nbval_does_not_keep_an_answer_from_running(step: Step) -> None:
    assert step("relu").message == ""


def test_of_a_wrong_answer_every_value_is_told_right_or_wrong(step: Step) -> None:
    assert step("relu_grad").missing == ("ex1.relu_grad_convention_at_0",)
    assert step("relu_grad").reproduced == (
        "ex1.relu_grad_B",
        "ex1.relu_slope_left_at_0",
        "ex1.relu_slope_right_at_0",
    )


def test_a_wrong_answer_gets_the_hint_of_its_misconception(step: Step) -> None:
    lines = step("relu_grad").message.splitlines()
    assert lines[0].endswith("expected 0, but the given value is 1.")
    assert lines[1] == "What happened: the derivative at the kink was set to 1; the convention here is 0."
    assert lines[2].startswith("The book treats it on the page ")


def test_an_answer_that_prints_and_plots_is_right(step: Step) -> None:
    assert len(step("sigmoid").reproduced) == 4
    assert (step("sigmoid").missing, step("sigmoid").message) == ((), "")


def test_a_stub_is_not_written_yet(step: Step) -> None:
    assert step("silu").message.startswith("silu is not written yet; ")
    assert step("silu").reproduced == ()


def test_an_exception_in_an_answer_is_told_without_terminal_codes(step: Step) -> None:
    assert "RuntimeError" in step("normal_cdf").message
    assert "no idea" in step("normal_cdf").message
    assert len(step("normal_cdf").missing) == 3


def test_a_syntax_error_is_told_with_its_line(step: Step) -> None:
    assert step("gelu_tanh").message == ("The answer's cell raises SyntaxError: expected ':' (line 1 of its cell)")


def test_a_deleted_answer_is_said_to_be_missing(step: Step) -> None:
    assert step("tanh_neuron").message == "The notebook has no answer cell for this step."
    assert len(step("tanh_neuron").missing) == 3


def test_a_cell_of_one_s_own_runs_where_it_stands(step: Step) -> None:
    assert (step("silu_grad").missing, step("silu_grad").message) == ((), "")


def test_an_answer_that_writes_to_stderr_is_right_and_noted(step: Step) -> None:
    assert step("gelu_grad").message == ""
    assert step("gelu_grad").note == "Your code writes to stderr, which the reference notebook does not: odd"


def test_a_notebook_with_a_fault_has_not_passed(mixed: Report) -> None:
    assert not mixed.passed
    assert mixed.elsewhere == ()


def test_no_message_shows_what_nbval_adds(mixed: Report) -> None:
    text = json.dumps(asdict(mixed))
    for noise in ("\\u001b", "\\u0007", "Traceback", "nbval", "Input:", "Notebook cell execution", "ffn-check-"):
        assert noise not in text


def test_no_message_shows_a_hidden_test(mixed: Report) -> None:
    assert "hidden" not in json.dumps(asdict(mixed)).lower()


def test_nothing_is_changed_or_left_behind(
    mixed: Report, course: Course, before: dict[str, tuple[bytes, int]]
) -> None:
    assert snapshot(course.root) == before


# -------------------------------------------------------------------------------- units, right from end to end


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_right_answers_reproduce_every_value_of_every_unit(course: Course, tmp_path: Path, unit: str) -> None:
    path = tmp_path / "answers.ipynb"
    path.write_text(notebook_text(unit), encoding="utf-8")
    report = check_notebook(course, path)
    assert report.passed
    assert report == Report(unit, report.steps)
    assert [s for s in report.steps if s.missing or s.message or s.note] == []
    code = [cell for cell in read_notebook(course.reference(unit))["cells"] if cell["cell_type"] == "code"]
    wanted = [ident for cell in code for ident in checked_ids(cell["outputs"])]
    assert [ident for step in report.steps for ident in step.reproduced] == wanted


@pytest.mark.slow
def test_figures_that_come_out_otherwise_are_a_note_and_no_fault(course: Course, tmp_path: Path) -> None:
    answer = (
        "def widths(layer):\n    d = len(layer['project.weight'])\n"
        "    return {'units': layer['expand.weight'].size // d, 'd': d, 'tokens': layer['input'].size // d}"
    )
    path = tmp_path / "answers.ipynb"
    path.write_text(notebook_text("capstone", {"widths": answer}), encoding="utf-8")
    report = check_notebook(course, path)
    (noted,) = [step for step in report.steps if step.note]
    assert report.passed
    assert noted.name == "widths"
    assert noted.note.startswith("The test does not print \"{'tokens': 10, 'd': 384, 'units': 192}\" as in the")


# ------------------------------------------------------------------------------------- answers that do not end


@pytest.fixture(scope="module")
def endless(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of a notebook with three answers that do not end, and one after them that is wrong."""
    path = tmp_path_factory.mktemp("endless") / "answers.ipynb"
    deaf = "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass"
    answers = {
        "relu": "while True:\n    pass",
        "silu": deaf,
        "normal_cdf": "exit()\n\n\ndef normal_cdf(z):\n    return z",
        "gelu": "import os\n\n\ndef gelu(z):\n    os._exit(1)",
        "tail_reach": "def tail_reach(t, z):\n    return z",
    }
    path.write_text(notebook_text("activations", answers), encoding="utf-8")
    return check_notebook(course, path, cell_seconds=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "silu", "gelu"])
def test_an_answer_that_does_not_end_is_told(endless: Report, name: str) -> None:
    (step,) = [step for step in endless.steps if step.name == name]
    assert step.message == "Your code did not come to an end within 3 seconds, or it ended Python."
    assert step.missing
    assert not step.reproduced


@pytest.mark.slow
def test_an_answer_that_leaves_the_notebook_is_told(endless: Report) -> None:
    (step,) = [step for step in endless.steps if step.name == "normal_cdf"]
    assert step.message == "The answer's cell raises SystemExit: exit"


@pytest.mark.slow
def test_what_stands_after_an_answer_that_does_not_end_is_told_as_it_is(endless: Report) -> None:
    other = {step.name: step for step in endless.steps}
    assert [name for name in ("relu_grad", "sigmoid", "gelu_tanh", "gelu_grad") if other[name].message] == []
    assert other["tail_reach"].message != ""


@pytest.mark.slow
def test_output_without_end_is_stopped(course: Course, tmp_path: Path) -> None:
    path = tmp_path / "answers.ipynb"
    path.write_text(notebook_text("activations", {"relu": "while True:\n    print('x' * 1000)"}), encoding="utf-8")
    (failed,) = [step for step in check_notebook(course, path, cell_seconds=2).steps if step.message]
    assert failed.name == "relu"


@pytest.mark.slow
def test_a_check_that_takes_too_long_is_one_sentence_and_leaves_no_kernel(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grader.check, "SECONDS", 30)
    trace = tmp_path / "kernel"
    loop = f"import os, pathlib\npathlib.Path({str(trace)!r}).write_text(str(os.getpid()))\nwhile True:\n    pass"
    path = tmp_path / "answers.ipynb"
    path.write_text(notebook_text("activations", {"relu": loop}), encoding="utf-8")
    with pytest.raises(CheckFailedError, match=r"^the notebook could not be run to its end: it took longer than"):
        check_notebook(course, path, cell_seconds=100)
    kernel = Path("/proc") / trace.read_text()
    until = time.monotonic() + 20
    while kernel.exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert not kernel.exists()


# ---------------------------------------------------------------------------------------- what is put together


def test_hidden_tests_are_not_run(course: Course, tmp_path: Path, ran: Cells) -> None:
    check_notebook(course, put(tmp_path, notebook_text("activations")))
    assert len(ran) > 20
    assert not any(name.startswith("hidden_") for name in sources(ran))
    assert "hidden" not in "\n".join(sources(ran).values()).replace("hidden tests", "")


def test_locked_cells_are_the_reference_s(course: Course, tmp_path: Path, ran: Cells) -> None:
    notebook = json.loads(notebook_text("activations"))
    for cell in notebook["cells"]:
        if cell["id"] in ("setup", "test_relu", "hidden_gelu"):
            cell["source"] = "raise SystemExit"
    check_notebook(course, put(tmp_path, json.dumps(notebook)))
    assert "raise SystemExit" not in sources(ran).values()
    assert "import numpy as np" in sources(ran)["setup"]


def test_answers_are_the_learner_s(course: Course, tmp_path: Path, ran: Cells) -> None:
    check_notebook(course, put(tmp_path, notebook_text("activations", {"gelu": "def gelu(z):\n    return 3"})))
    assert sources(ran)["gelu"] == "def gelu(z):\n    return 3"


def test_what_an_answer_printed_before_is_not_taken_over(course: Course, tmp_path: Path, ran: Cells) -> None:
    notebook = json.loads(notebook_text("activations"))
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "forged"}]
    check_notebook(course, put(tmp_path, json.dumps(notebook)))
    assert "forged" not in json.dumps(ran)


def test_of_two_cells_with_the_same_id_both_run_as_in_grading(course: Course, tmp_path: Path, ran: Cells) -> None:
    notebook = json.loads(notebook_text("activations"))
    place = next(place for place, cell in enumerate(notebook["cells"]) if cell["id"] == "gelu")
    notebook["cells"].insert(place + 1, {**notebook["cells"][place], "source": "last = 1"})
    check_notebook(course, put(tmp_path, json.dumps(notebook)))
    order = ["".join(cell["source"]) for cell in ran]
    assert order.index("last = 1") == order.index("".join(notebook["cells"][place]["source"])) + 1


def test_what_a_cell_of_one_s_own_gives_is_not_compared(course: Course, tmp_path: Path, ran: Cells) -> None:
    check_notebook(course, put(tmp_path, notebook_text("activations", own="print(1)")))
    (own,) = [cell for cell in ran if "".join(cell["source"]) == "print(1)"]
    assert own["metadata"]["tags"] == ["nbval-ignore-output", "raises-exception"]


def test_an_answer_made_into_text_is_missing(course: Course, tmp_path: Path, ran: Cells) -> None:
    notebook = json.loads(notebook_text("activations"))
    for cell in notebook["cells"]:
        if cell["id"] == "gelu":
            cell["cell_type"] = "markdown"
    check_notebook(course, put(tmp_path, json.dumps(notebook)))
    assert sources(ran)["gelu"].splitlines()[-1] == "raise NotImplementedError()"


def test_what_is_known_not_to_end_does_not_run(course: Course, tmp_path: Path, ran: Cells) -> None:
    path = put(tmp_path, notebook_text("activations", own="while True:\n    pass"))
    report = check_notebook(course, path, stopped={"gelu": "It does not end.", "your own cell 1": "Nor this."})
    assert sources(ran)["gelu"] == sources(ran)["your own cell 1"] == "raise NotImplementedError()"
    assert [step.message for step in report.steps if step.name == "gelu"] == ["It does not end."]
    assert report.elsewhere == ("your own cell 1: Nor this.",)


def test_values_that_are_not_shown_are_missing(course: Course, tmp_path: Path, ran: Cells) -> None:
    report = check_notebook(course, put(tmp_path, notebook_text("activations")))
    assert not report.passed
    assert report.steps[0].message.startswith("The test does not show its lines")


def test_the_temporary_folder_is_removed(
    course: Course, tmp_path: Path, ran: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    check_notebook(course, put(tmp_path, notebook_text("capstone")))
    assert list(scratch.iterdir()) == []


def test_data_of_the_unit_stands_beside_what_is_run(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def nbval(path: Path, cell_seconds: float, seconds: float) -> dict[int, Any]:
        seen.extend(sorted(entry.name for entry in path.parent.iterdir()))
        return {}

    monkeypatch.setattr(grader.check, "_nbval", nbval)
    check_notebook(course, put(tmp_path, notebook_text("capstone")))
    assert "layer.npz" in seen
    assert [name for name in seen if name.endswith(".ipynb")] == ["capstone.ipynb"]


def test_without_nbval_the_sentence_says_what_to_do(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CheckFailedError, match=r"end: nbval is not installed; run `make venv`\.$"):
        check_notebook(course, put(tmp_path, notebook_text("activations")))


def test_a_run_that_breaks_off_is_one_sentence(
    course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*arguments: Any, **options: Any) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(arguments, 3, b"one\ntwo\n", b"")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CheckFailedError) as caught:
        check_notebook(course, put(tmp_path, notebook_text("activations")))
    assert str(caught.value) == (
        "the notebook could not be run to its end: two; run it in JupyterLab to see where it stops."
    )


# -------------------------------------------------------------------------------------------- units by their cells


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_is_told_from_its_cells(course: Course, tmp_path: Path, ran: Cells, unit: str) -> None:
    assert check_notebook(course, put(tmp_path, notebook_text(unit))).unit == unit


def with_answers(*names: str) -> str:
    cells = [
        {"cell_type": "code", "metadata": {"nbgrader": {"grade_id": name}}, "source": "", "outputs": []}
        for name in names
    ]
    return json.dumps({"cells": cells})


def test_a_few_answers_are_enough_to_tell_the_unit(course: Course, tmp_path: Path, ran: Cells) -> None:
    report = check_notebook(course, put(tmp_path, with_answers("collapse", "residual")))
    assert report.unit == "mechanism"


def test_answers_of_two_units_ask_for_the_unit(course: Course, tmp_path: Path, ran: Cells) -> None:
    with pytest.raises(UnreadableNotebookError) as caught:
        check_notebook(course, put(tmp_path, with_answers("collapse")))
    assert str(caught.value) == (
        "'answers.ipynb' cannot be checked: its answer cells may belong to mechanism or worked-cells; name the unit "
        "with --unit."
    )


def test_the_unit_that_is_named_is_taken(course: Course, tmp_path: Path, ran: Cells) -> None:
    assert check_notebook(course, put(tmp_path, with_answers("collapse")), "worked-cells").unit == "worked-cells"


def test_the_file_s_name_decides_between_units(course: Course, tmp_path: Path, ran: Cells) -> None:
    path = put(tmp_path, with_answers("collapse"), "worked-cells.ipynb")
    assert check_notebook(course, path).unit == "worked-cells"


def test_an_unknown_unit_is_refused(course: Course, tmp_path: Path) -> None:
    with pytest.raises(UnknownUnitError):
        check_notebook(course, put(tmp_path, notebook_text("activations")), "../solutions/activations")


def test_another_unit_s_name_is_refused(course: Course, tmp_path: Path) -> None:
    with pytest.raises(UnreadableNotebookError, match=r"it has no answer cell of swiglu; begin with a copy from"):
        check_notebook(course, put(tmp_path, notebook_text("activations")), "swiglu")


def test_a_broken_reference_is_one_sentence(tmp_path: Path) -> None:
    shutil.copyfile(ROOT / "nbgrader_config.py", tmp_path / "nbgrader_config.py")
    (tmp_path / "solutions" / "gates").mkdir(parents=True)
    (tmp_path / "solutions" / "gates" / "gates.ipynb").write_text("{}")
    with pytest.raises(BrokenReferenceError) as caught:
        check_notebook(Course(tmp_path), put(tmp_path, notebook_text("activations")))
    assert str(caught.value) == (
        "solutions/gates/gates.ipynb is no notebook that can be read; bring it back as it was in the course."
    )


# -------------------------------------------------------------------------------------------------- odd files


CELL = '{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": "gelu"}}, "outputs": [], "source": %s}'
NO_NOTEBOOK: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n",
    "no-json": b"my answers are on paper",
    "cut": notebook_text("activations")[:5000].encode(),
    "list": b"[]",
    "text": b'"cells"',
    "number": b"1",
    "null": b"null",
    "no-cells": b'{"answers": []}',
    "cells-no-list": b'{"cells": {"a": 1}}',
    "cells-text": b'{"cells": "abc"}',
    "cells-null": b'{"cells": null}',
    "cell-number": b'{"cells": [1]}',
    "cell-text": b'{"cells": ["metadata"]}',
    "no-metadata": b'{"cells": [{"cell_type": "code", "source": ""}]}',
    "metadata-list": b'{"cells": [{"cell_type": "code", "source": "", "metadata": []}]}',
    "no-source": b'{"cells": [{"cell_type": "code", "metadata": {}}]}',
    "source-number": f'{{"cells": [{CELL % 1}]}}'.encode(),
    "source-dictionary": f'{{"cells": [{CELL % "{}"}]}}'.encode(),
    "source-numbers": f'{{"cells": [{CELL % [1]}]}}'.encode(),
    "lone-surrogate": f'{{"cells": [{CELL % "SURROGATE"}]}}'.replace("SURROGATE", r'"\ud800"').encode(),
    "nested": b"[" * 100_000,
    "nested-cells": b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "digits": b'{"cells": [], "x": ' + b"1" * 5000 + b"}",
    "utf-16": notebook_text("activations").encode("utf-16"),
    "latin-1": '{"cells": [], "é": 1}'.encode("latin-1"),
    "nul": b"\x00" * 100,
    "old-format": b'{"worksheets": [{"cells": []}], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}',
}


@pytest.mark.parametrize("kind", NO_NOTEBOOK)
def test_what_is_no_notebook_is_one_sentence(course: Course, tmp_path: Path, kind: str) -> None:
    with pytest.raises(UnreadableNotebookError) as caught:
        check_notebook(course, put(tmp_path, NO_NOTEBOOK[kind]))
    assert str(caught.value) == (
        "'answers.ipynb' cannot be checked: it is no notebook that can be read; save it again in JupyterLab, or begin "
        "with a new copy."
    )


@pytest.mark.parametrize(
    "cells",
    [
        "[]",
        '[{"cell_type": "code", "metadata": {}, "source": "x = 1"}]',
        '[{"cell_type": "code", "metadata": {"nbgrader": 1}, "source": ""}]',
        '[{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": ["gelu"]}}, "source": ""}]',
        '[{"cell_type": "code", "metadata": {"nbgrader": {"grade_id": "setup"}}, "source": ""}]',
        '[{"cell_type": 1, "metadata": {"nbgrader": {"grade_id": "gelu"}}, "source": ""}]',
    ],
)
def test_a_notebook_without_answers_is_one_sentence(course: Course, tmp_path: Path, cells: str) -> None:
    with pytest.raises(UnreadableNotebookError) as caught:
        check_notebook(course, put(tmp_path, f'{{"cells": {cells}}}'))
    assert str(caught.value) == (
        "'answers.ipynb' cannot be checked: it has no answer cell of activations, capstone, learning, mechanism, "
        "swiglu, worked-cells; begin with a copy from exercises/."
    )


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + with_answers("gelu", "relu"),
        with_answers("gelu", "relu").replace('"metadata": {', '"score": NaN, "metadata": {"a": -Infinity, '),
        with_answers("gelu", "relu", "gelu", "gelu"),
        with_answers("gelu", "relu").replace('"source": ""', '"source": []'),
        with_answers("gelu", "relu").replace('"source": ""', r'"source": "\u0000\u001b[31m"'),
        with_answers("gelu", "relu").replace('"outputs": []', '"outputs": 7, "id": {}'),
        with_answers("gelu", "relu", "no such step", "\x1b[31m", "hidden_gelu"),
    ],
    ids=["bom", "nan", "twice", "empty-list", "control", "outputs", "strange-ids"],
)
def test_an_odd_notebook_with_answers_is_checked(course: Course, tmp_path: Path, ran: Cells, text: str) -> None:
    assert check_notebook(course, put(tmp_path, text)).unit == "activations"


def refused(course: Course, path: Path) -> str:
    with pytest.raises(UnreadableNotebookError) as caught:
        check_notebook(course, path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_that_is_missing_is_one_sentence(course: Course, tmp_path: Path) -> None:
    assert refused(course, tmp_path / "gone.ipynb") == (
        "'gone.ipynb' cannot be checked: there is no such file; give the path of your notebook, such as "
        "work/UNIT/UNIT.ipynb."
    )


def test_a_link_is_not_followed(course: Course, tmp_path: Path) -> None:
    target = put(tmp_path, notebook_text("activations"))
    (tmp_path / "link.ipynb").symlink_to(target)
    assert "it is a link" in refused(course, tmp_path / "link.ipynb")


def test_a_link_that_leads_nowhere_is_one_sentence(course: Course, tmp_path: Path) -> None:
    (tmp_path / "link.ipynb").symlink_to(tmp_path / "gone")
    assert "it is a link" in refused(course, tmp_path / "link.ipynb")


def test_a_folder_is_no_file(course: Course, tmp_path: Path) -> None:
    assert "it is no file" in refused(course, tmp_path)


def test_a_pipe_is_not_waited_for(course: Course, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert "it is no file" in refused(course, tmp_path / "pipe.ipynb")


def test_a_name_that_no_file_can_have_is_one_sentence(course: Course, tmp_path: Path) -> None:
    assert "it cannot be opened (File name too long)" in refused(course, tmp_path / ("x" * 300))
    assert "it cannot be opened (embedded null byte)" in refused(course, Path("a\0b"))


def test_a_file_that_is_too_large_is_not_read_to_its_end(course: Course, tmp_path: Path) -> None:
    path = tmp_path / "large.ipynb"
    with path.open("wb") as stream:
        stream.truncate(100 * LARGEST)
    assert "it is larger than 20 MB; clear its outputs" in refused(course, path)


# ------------------------------------------------------------------------------------------------ the command


MARKS = Marks(
    "activations",
    (
        StepMarks("relu", 1, 1),
        StepMarks("gelu", 0, 2, "[bold]wrong[/bold]\nWhat happened: x."),
        StepMarks("silu", 2, 2, "", ("uses ffn",)),
    ),
    notes=("The cell 'test_relu' is not as it is given out; the course's own counts.",),
)
REPORT = Report(
    "activations",
    (
        StepReport("relu", ("ex1.relu_A", "ex1.relu_B"), ()),
        StepReport("gelu", ("ex4.gelu_neg",), ("ex4.gelu_pos",), "wrong in other words"),
        StepReport("silu", (), (), "", "The test does not print 'a'."),
    ),
)
RIGHT = Marks("activations", MARKS.steps[:1])
SAME = Report("activations", REPORT.steps[:1])


def invoke(monkeypatch: pytest.MonkeyPatch, marks: Marks, report: Report, *options: str) -> Result:
    def refuse(*arguments: Any, **more: Any) -> Report:
        raise AssertionError("there should be no comparison")

    monkeypatch.setattr(grader.check, "read_subject", lambda course, path, unit: None)
    monkeypatch.setattr(grader.quick, "mark", lambda subject, sandbox: marks)
    given = refuse if "--no-compare" in options else lambda subject, stopped: report
    monkeypatch.setattr(grader.check, "compare", given)
    return CliRunner().invoke(cli, ["--course", str(ROOT), "check", "answers.ipynb", *options])


def lines_of(text: str) -> list[str]:
    return [" ".join(line.replace("│", " ").split()) for line in text.splitlines()]


def test_the_command_shows_marks_and_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, MARKS, REPORT)
    assert result.exit_code == 1
    lines = lines_of(result.stdout)
    assert "relu passed 1 of 1" in lines
    assert "gelu not yet 0 of 2" in lines
    assert "Points of the visible tests: 3 of 5" in lines
    assert "gelu: [bold]wrong[/bold]" in lines
    assert "What happened: x." in lines
    assert "silu: the answer uses ffn; write it from scratch." in lines
    assert "The cell 'test_relu' is not as it is given out; the course's own counts." in lines


def test_the_command_shows_what_the_comparison_adds_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(invoke(monkeypatch, MARKS, REPORT).stdout)
    assert lines[-3:] == [
        "Published values reproduced: 3 of 4",
        "Not reproduced: ex4.gelu_pos",
        "silu: The test does not print 'a'.",
    ]
    assert "gelu: wrong in other words" not in lines


def test_marks_hints_and_notes_come_before_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    printed: list[str] = []

    def comparing(subject: object, stopped: object) -> Report:
        printed.append("compared")
        return REPORT

    def show(self: object, *parts: Any, **options: Any) -> None:
        printed.extend(part for part in parts if isinstance(part, str))

    monkeypatch.setattr(grader.check, "read_subject", lambda course, path, unit: None)
    monkeypatch.setattr(grader.quick, "mark", lambda subject, sandbox: MARKS)
    monkeypatch.setattr(grader.check, "compare", comparing)
    monkeypatch.setattr("rich.console.Console.print", show)
    CliRunner().invoke(cli, ["--course", str(ROOT), "check", "answers.ipynb"])
    assert printed.index("compared") == printed.index("Comparing with the reference notebook (a few seconds)") + 1
    for line in (
        "Points of the visible tests: 3 of 5",
        "gelu: [bold]wrong[/bold]\nWhat happened: x.",
        *MARKS.notes,
    ):
        assert printed.index(line) < printed.index("compared")
    assert printed.index("Not reproduced: ex4.gelu_pos") > printed.index("compared")


def test_the_comparison_is_told_what_did_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    marks = Marks("activations", MARKS.steps, stopped={"gelu": "It did not end."})
    monkeypatch.setattr(grader.check, "read_subject", lambda course, path, unit: None)
    monkeypatch.setattr(grader.quick, "mark", lambda subject, sandbox: marks)
    monkeypatch.setattr(grader.check, "compare", lambda subject, stopped: seen.append(stopped) or REPORT)
    CliRunner().invoke(cli, ["--course", str(ROOT), "check", "answers.ipynb"])
    assert seen == [{"gelu": "It did not end."}]


def test_the_command_says_that_all_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, RIGHT, SAME)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-1].startswith("All visible tests pass.")
    assert "Not reproduced" not in result.stdout


def test_what_only_the_comparison_finds_is_not_right_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    report = Report("activations", (StepReport("relu", (), ("ex1.relu_A",), "It is not shown."),))
    result = invoke(monkeypatch, RIGHT, report)
    assert result.exit_code == 1
    assert "relu: It is not shown." in result.stdout.splitlines()
    assert "All visible tests pass" not in result.stdout


def test_what_only_the_marks_find_is_not_right_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, MARKS, SAME)
    assert result.exit_code == 1
    assert "All visible tests pass" not in result.stdout


def test_a_fault_elsewhere_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = ("setup: ImportError: x",)
    result = invoke(
        monkeypatch, Marks("activations", RIGHT.steps, fault), Report("activations", SAME.steps, fault)
    )
    assert result.exit_code == 1
    assert result.stdout.count("setup: ImportError: x") == 1


@pytest.mark.parametrize(("marks", "status"), [(RIGHT, 0), (MARKS, 1)], ids=["right", "wrong"])
def test_without_the_comparison_nothing_of_it_runs(
    monkeypatch: pytest.MonkeyPatch, marks: Marks, status: int
) -> None:
    result = invoke(monkeypatch, marks, REPORT, "--no-compare")
    assert result.exit_code == status
    assert "Points of the visible tests: " in result.stdout
    assert "Comparing" not in result.output
    assert "reproduced" not in result.output


def test_the_command_writes_json_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    result = invoke(monkeypatch, MARKS, REPORT, "--json")
    assert result.exit_code == 1
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert list(found) == ["passed", "unit", "marks", "comparison"]
    assert (found["passed"], found["unit"]) == (False, "activations")
    assert (found["marks"]["points"], found["marks"]["max_points"]) == (3, 5)
    assert found["marks"]["steps"][1] == {
        "name": "gelu",
        "points": 0,
        "max_points": 2,
        "message": "[bold]wrong[/bold]\nWhat happened: x.",
        "flags": [],
    }
    assert found["comparison"]["steps"][1] == {
        "name": "gelu",
        "reproduced": ["ex4.gelu_neg"],
        "missing": ["ex4.gelu_pos"],
        "message": "wrong in other words",
        "note": "",
    }


def test_every_key_of_the_json_is_in_the_help(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(invoke(monkeypatch, MARKS, REPORT, "--json").stdout)
    said = set(re.findall(r"\w+", CliRunner().invoke(cli, ["check", "--help"]).output))
    parts = [
        found,
        found["marks"],
        found["marks"]["steps"][0],
        found["comparison"],
        found["comparison"]["steps"][0],
    ]
    assert [key for part in parts for key in part if key not in said] == []


def test_json_without_the_comparison_says_null(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(invoke(monkeypatch, RIGHT, REPORT, "--json", "--no-compare").stdout)
    assert found["passed"] is True
    assert found["comparison"] is None


@pytest.mark.parametrize("options", [["--sandbox", "half"], ["--quick"]], ids=" ".join)
def test_wrong_usage_is_exit_status_2(options: list[str]) -> None:
    assert CliRunner().invoke(cli, ["--course", str(ROOT), "check", "answers.ipynb", *options]).exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--json"]], ids=["text", "json"])
def test_the_command_from_end_to_end(tmp_path: Path, options: list[str]) -> None:
    course = copy_of_course(tmp_path / "course", "nbgrader_config.py", "grader", "ffn", "solutions/activations")
    path = put(course.root, notebook_text("activations", {"gelu": "def gelu(z):\n    return 0 * np.asarray(z)"}))
    before = snapshot(course.root / "solutions"), path.read_bytes()
    done = course.grader("check", str(path), *options)
    assert done.returncode == 1
    assert "Traceback" not in done.stdout + done.stderr
    assert ("Comparing with the reference notebook" in done.stderr) is (not options)
    missing = ["ex4.gelu_neg", "ex4.gelu_pos", "ex8.gelu_neg", "ex8.gelu_pos"]
    if options:
        found = json.loads(done.stdout)
        assert [step["name"] for step in found["marks"]["steps"] if step["message"]] == ["gelu"]
        (gelu,) = [step for step in found["comparison"]["steps"] if step["message"]]
        assert gelu["missing"] == missing
    else:
        assert "gelu not yet 0 of 1" in lines_of(done.stdout)
        assert f"Not reproduced: {', '.join(missing)}" in done.stdout
    assert (snapshot(course.root / "solutions"), path.read_bytes()) == before
    assert not (course.root / "grader" / "var").exists()


def test_a_fault_is_one_sentence_of_the_command(tmp_path: Path) -> None:
    course = copy_of_course(tmp_path / "course", "nbgrader_config.py", "grader", "ffn")
    done = course.grader("check", "gone.ipynb", "--json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert said_once(done.stderr).startswith("error: 'gone.ipynb' cannot be checked: there is no such file; ")
