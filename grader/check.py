"""Check one's own notebook: put its answers into the reference notebook, run nbval on that, and say what is not right.

The notebook's code runs on this machine as it is: check your own notebooks only. The file itself is only read.
"""

import copy
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.exceptions import BrokenReferenceError, CheckFailedError, UnreadableNotebookError
from grader.flags import flags
from grader.notebooks import (
    checked_ids,
    grade_id,
    is_hidden,
    read_notebook,
    steps,
    without_hidden_tests,
    write_notebook,
)

__all__ = ["Report", "StepReport", "check_notebook"]

LARGEST = 20_000_000
"""A learner's notebook is at most that many bytes."""

CELL_SECONDS = 30.0
"""A cell may run as long as when it is graded."""

SECONDS = 600.0
"""The whole check may take that long."""

_LONGEST_MESSAGE = 1500
_STUB = "raise NotImplementedError()"

# A test stops at the first value that is wrong. So it runs a second time with this in place of `check`, and says of
# every value whether it is reproduced.
_LENIENT = """def lenient_check(ident, value):
    try:
        check(ident, value)
    except AssertionError:
        pass"""
_FREE = ["nbval-ignore-output", "raises-exception"]
# Otherwise `exit()` stops the kernel a moment later, in a cell that has nothing to do with it.
_FIRST = "get_ipython().ask_exit = lambda: (_ for _ in ()).throw(SystemExit('exit'))"
_EACH = "each value of "


@dataclass(frozen=True)
class StepReport:
    """One step: the published values that its visible tests reproduce and miss, and what is wrong, or "".

    ``note`` says of right answers what comes out otherwise than in the reference notebook; ``flags`` is what an
    instructor is told.
    """

    name: str
    reproduced: tuple[str, ...]
    missing: tuple[str, ...]
    message: str = ""
    note: str = ""
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """A notebook's steps, in order, what failed outside of them, and how many code cells of one's own were left out."""

    unit: str
    steps: tuple[StepReport, ...]
    elsewhere: tuple[str, ...] = ()
    left_out: int = 0

    @property
    def passed(self) -> bool:
        """Whether every visible test passes."""
        return not self.elsewhere and not any(step.message for step in self.steps)


@dataclass(frozen=True)
class _Submission:
    """A learner's code by grade id, and the number of code cells that have none."""

    sources: dict[str, str]
    unnamed: int


@dataclass(frozen=True)
class _Ran:
    """What nbval said of a cell ("" where it agrees), whether it never came to its end, and what it gave."""

    failure: str = ""
    stopped: bool = False
    outputs: tuple[dict[str, Any], ...] = ()

    @property
    def error(self) -> str:
        """The exception that the cell raised, as a reader should see it."""
        errors = [output for output in self.outputs if output["output_type"] == "error"]
        return _message(errors[-1]["ename"], errors[-1]["evalue"]) if errors else ""


def check_notebook(
    course: Course,
    path: Path,
    unit: str | None = None,
    *,
    cell_seconds: float = CELL_SECONDS,
    on_run: Callable[[], None] = lambda: None,
) -> Report:
    """Check a learner's notebook against the unit it belongs to, told by its grade ids unless it is named.

    A cell may run for ``cell_seconds``; an answer that needs more counts as not given. ``on_run`` is called when the
    file has been read and the answers are about to run.

    Raises:
        UnreadableNotebookError: the file is missing, too large, a link, or no notebook of a unit.
        UnknownUnitError: the named unit does not exist.
        BrokenReferenceError: a reference notebook of the course cannot be read.
        CheckFailedError: nbval could not be run to its end.
    """
    if unit is not None:
        course.require_unit(unit)
    submission = _read(path)
    name = _unit_of(course, [unit] if unit is not None else course.units(), submission, path)
    reference = _reference(course, name, read_notebook)
    merged = _merge(reference, submission)
    on_run()
    with tempfile.TemporaryDirectory(prefix="ffn-check-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch) / name
        ignore = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
        shutil.copytree(course.solutions / name, folder, ignore=ignore)
        ran, stopped = _run(merged, folder / f"{name}.ipynb", cell_seconds)
    return _report(name, reference, submission, ran, stopped)


# ------------------------------------------------------------------------------------------- the learner's file


def _read(path: Path) -> _Submission:
    """A learner's notebook, whatever stands in the file."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            raise UnreadableNotebookError(path, "it is a link; give the path of the file that it leads to")
        if not stat.S_ISREG(mode):
            raise UnreadableNotebookError(path, "it is no file; give the path of a notebook")
        with path.open("rb") as stream:
            data = stream.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise UnreadableNotebookError(
            path, "there is no such file; give the path of your notebook, such as work/UNIT/UNIT.ipynb"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableNotebookError(path, f"it cannot be opened ({reason}); see who may read it") from error
    if len(data) > LARGEST:
        raise UnreadableNotebookError(
            path, f"it is larger than {LARGEST // 1_000_000} MB; clear its outputs in JupyterLab and save it"
        )
    try:
        return _code(json.loads(data.decode("utf-8-sig")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableNotebookError(
            path, "it is no notebook that can be read; save it again in JupyterLab, or begin with a new copy"
        ) from error


def _code(notebook: Any) -> _Submission:
    sources: dict[str, str] = {}
    unnamed = 0
    cells = notebook["cells"]
    if not isinstance(cells, list):
        raise TypeError
    for cell in cells:
        if not isinstance(cell["metadata"], dict):
            raise TypeError
        source = _text(cell["source"])
        if cell.get("cell_type") != "code":
            continue
        name = grade_id(cell)
        if name is not None:
            # Of cells with the same id nbgrader takes the last one, too.
            sources[name] = source
        else:
            unnamed += bool(source.strip())
    return _Submission(sources, unnamed)


def _text(source: Any) -> str:
    """A cell's source: a text, or a list of lines, that a file can hold."""
    text = source if isinstance(source, str) else "".join(source) if isinstance(source, list) else None
    if text is None:
        raise TypeError
    text.encode("utf-8")
    return text


def _reference(course: Course, unit: str, read: Callable[[Path], Any]) -> Any:
    try:
        reference = read(course.reference(unit))
        steps(reference)
    except Exception as error:
        # nbformat and jsonschema raise what they like.
        raise BrokenReferenceError(course.reference(unit).relative_to(course.root)) from error
    return reference


def _unchecked(path: Path) -> Any:
    """A notebook without a look at its format, which takes most of the time."""
    return json.loads(path.read_text(encoding="utf-8"))


def _unit_of(course: Course, units: Iterable[str], submission: _Submission, path: Path) -> str:
    """The unit with the most answer cells in common; the file's name decides where several have as many."""
    references = {unit: _reference(course, unit, _unchecked) for unit in units}
    shared = {unit: len(steps(reference).keys() & submission.sources) for unit, reference in references.items()}
    most = max(shared.values(), default=0)
    best = [unit for unit, count in shared.items() if count == most]
    if not most:
        units = ", ".join(references)
        raise UnreadableNotebookError(path, f"it has no answer cell of {units}; begin with a copy from exercises/")
    if len(best) > 1 and path.stem not in best:
        raise UnreadableNotebookError(
            path, f"its answer cells may belong to {' or '.join(best)}; name the unit with --unit"
        )
    return best[0] if len(best) == 1 else path.stem


# ------------------------------------------------------------------------------------------------- one notebook


def _merge(reference: Any, submission: _Submission) -> Any:
    """The reference notebook with the learner's answers, without its hidden tests."""
    merged = copy.deepcopy(reference)
    answers = steps(reference)
    kept = []
    for cell in merged["cells"]:
        if cell["cell_type"] == "code":
            name = str(grade_id(cell))
            if name in answers:
                cell["source"] = submission.sources.get(name, _STUB)
                cell["metadata"]["tags"] = _FREE
                cell["outputs"] = []
            elif is_hidden(cell):
                cell["source"] = without_hidden_tests(cell["source"])
                if all(line.startswith("#") for line in cell["source"].splitlines() if line.strip()):
                    continue
        kept.append(cell)
    merged["cells"] = kept
    return merged


def _with_every_value(merged: Any) -> Any:
    """The notebook with a lenient copy behind each test that is about several published values."""
    from nbformat.v4 import new_code_cell

    def more(source: str, name: str) -> Any:
        metadata = {"tags": _FREE, "nbgrader": {"grade_id": name}}
        return new_code_cell(source, metadata=metadata)  # type: ignore[no-untyped-call]

    tests = {name for names in steps(merged).values() for name in names}
    cells = [more(_FIRST, "")]
    for cell in merged["cells"]:
        cells.append(cell)
        name = str(grade_id(cell))
        if name in tests and len(checked_ids(cell["outputs"])) > 1:
            source = re.sub(r"\bcheck\(", "lenient_check(", cell["source"])
            cells.append(more(f"{_LENIENT}\n\n\n{source}", f"{_EACH}{name}"))
    notebook = copy.copy(merged)
    notebook["cells"] = cells
    return notebook


def _names(notebook: Any) -> list[str]:
    """Names of the code cells, in order: nbval counts these."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [grade_id(cell) or f"code cell {number}" for number, cell in enumerate(code, 1)]


# --------------------------------------------------------------------------------------------------- nbval runs


def _run(merged: Any, path: Path, cell_seconds: float) -> tuple[dict[str, _Ran], dict[str, str]]:
    """What the cells gave, by name, and of steps that did not come to an end why.

    nbval says nothing of value of the cells after one that it had to stop, so the notebook runs again without the
    answer that did it.
    """
    notebook = _with_every_value(merged)
    names, until = _names(notebook), time.monotonic() + SECONDS
    step_of = {name: step for step, tests in steps(merged).items() for name in (step, *tests)}
    stopped: dict[str, str] = {}
    while True:
        write_notebook(notebook, path)
        ran = _nbval(path, cell_seconds, until - time.monotonic())
        number = next((number for number, cell in ran.items() if cell.stopped), None)
        if number is None:
            return {name: ran.get(place, _Ran()) for place, name in enumerate(names)}, stopped
        dead = ran[number].failure.startswith("Kernel dead")
        step = step_of.get(names[max(number - dead, 0)].removeprefix(_EACH), "")
        if not step or step in stopped:
            raise CheckFailedError(f"{names[number]!r} stopped with: {_one_line(ran[number].failure)}")
        stopped[step] = (
            "Your code ends Python itself."
            if dead
            else f"Your code did not come to an end within {cell_seconds:g} seconds, or it ended Python."
        )
        next(cell for cell in notebook["cells"] if grade_id(cell) == step)["source"] = _STUB


def _nbval(path: Path, cell_seconds: float, seconds: float) -> dict[int, _Ran]:
    """Run nbval on a notebook, in its folder; what it said of the code cells, by number."""
    from importlib.util import find_spec

    if find_spec("nbval") is None:
        raise CheckFailedError("nbval is not installed", "run `make venv`")
    record = path.with_suffix(".json")
    record.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", "-p", "nbval.plugin", "-p", "grader.nbval_record"]
    command += ["--nbval", path.name, "--nbval-current-env", f"--nbval-cell-timeout={cell_seconds}"]
    command += [f"--record={record}", "-q", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={path.parent}"]
    own = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    environment = {**own, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    try:
        done = subprocess.run(
            command,
            cwd=path.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=max(seconds, 1),
            check=False,
        )
        cells = json.loads(record.read_text(encoding="utf-8"))
    except subprocess.TimeoutExpired as error:
        raise CheckFailedError(f"it took longer than {SECONDS / 60:g} minutes") from error
    except (OSError, ValueError) as error:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise CheckFailedError(_one_line(said[-1]) if said else "nbval wrote nothing") from error
    return {cell["number"]: _Ran(cell["failure"], cell["stopped"], tuple(cell["outputs"])) for cell in cells}


# --------------------------------------------------------------------------------------------------- the report


def _report(
    unit: str, reference: Any, submission: _Submission, ran: dict[str, _Ran], stopped: dict[str, str]
) -> Report:
    cells = {name: cell for cell in reference["cells"] if (name := grade_id(cell)) is not None}
    tests = steps(reference)
    remarks = flags(_merge(reference, submission), reference)
    found = []
    for step in tests:
        visible = [name for name in tests[step] if name in ran]
        wanted = [ident for name in visible for ident in checked_ids(cells[name]["outputs"])]
        runs = [ran[name] for test in visible for name in (test, f"{_EACH}{test}") if name in ran]
        shown = {ident for run in runs for ident in checked_ids(run.outputs)}
        missing = tuple(ident for ident in wanted if ident not in shown)
        message = stopped.get(step) or _fault(step, submission, [ran[step], *(ran[n] for n in visible)])
        if missing and not message:
            message = (
                "The test does not show its lines: leave `check` and the other names of the tests as they are."
            )
        found.append(
            StepReport(
                name=step,
                reproduced=tuple(ident for ident in wanted if ident in shown),
                missing=missing,
                message=message,
                note=next(filter(None, (_difference(cells[n]["outputs"], ran[n]) for n in visible)), ""),
                flags=tuple(remarks.get(step, ())),
            )
        )
    known = {name for step, names in tests.items() for name in (step, *names)}
    elsewhere = [
        f"{name}: {cell.error}"
        for name, cell in ran.items()
        if name.removeprefix(_EACH) not in known and cell.error
    ]
    left_out = submission.unnamed + len(submission.sources.keys() - cells.keys())
    return Report(unit, tuple(found), tuple(elsewhere), left_out)


def _fault(step: str, submission: _Submission, cells: list[_Ran]) -> str:
    """What is wrong with a step, from what its answer and its visible tests gave; "" where the tests pass."""
    answer, *tests = cells
    failed = [cell for cell in tests if cell.error]
    if failed and step not in submission.sources:
        return "The notebook has no answer cell for this step."
    if failed:
        return f"The answer's cell raises {answer.error}" if answer.error else failed[0].error
    warned = [line for cell in tests for line in _stream(cell.outputs, "stderr")]
    if warned:
        return f"The test gets no marks, because your code writes to stderr: {_clean(warned[-1])}"
    return ""


def _difference(expected: Any, ran: _Ran) -> str:
    """The first printed line of the reference that a passing test does not print, with what it prints there."""
    if ran.error:
        return ""
    printed = _stream(ran.outputs, "stdout")
    for place, line in enumerate(_stream(expected, "stdout")):
        if line not in printed:
            instead = f", but {printed[place]!r}" if place < len(printed) else ""
            return _clean(f"The test does not print {line!r} as in the reference notebook{instead}.")
    return ""


def _stream(outputs: Any, name: str) -> list[str]:
    text = "".join(output["text"] for output in outputs if output.get("name") == name)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _message(kind: str, said: str) -> str:
    """An exception as a reader should see it: the message of a test alone, of others with their kind."""
    text = _clean(said)
    if kind == "StepFailedError":
        return text
    text = re.sub(r" ?\([\w<>/.-]+, line (\d+)\)$", r" (line \1 of its cell)", text)
    return f"{kind}: {text}" if text else kind


def _clean(text: str) -> str:
    """A text without terminal codes and other characters that show nothing, cut where it goes on and on."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    shown = "".join(c for c in text if c == "\n" or unicodedata.category(c) not in ("Cc", "Cs", "Co", "Cf"))
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[:_LONGEST_MESSAGE]}…"


def _one_line(text: str) -> str:
    return " ".join(_clean(text).split()).rstrip(".")
