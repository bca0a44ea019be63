"""Compare one's own notebook with the reference notebook: run its answers in there with nbval, and say what differs.

``grader check`` prints the marks first (``grader.quick``), and then what this adds. The notebook's code runs on this
machine as it is: check your own notebooks only. The file itself is only read.
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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.engine.read import LONGEST_SOURCE, MOST_CELLS
from grader.engine.restore import Assignment, restore
from grader.engine.verdict import Note
from grader.exceptions import BrokenReferenceError, CheckFailedError, UnreadableNotebookError
from grader.notebooks import checked_ids, grade_id, is_hidden, steps, without_hidden_tests

__all__ = [
    "CELL_SECONDS",
    "LARGEST",
    "NO_ANSWER",
    "OWN",
    "SECONDS",
    "Report",
    "StepReport",
    "Subject",
    "cell_names",
    "cleaned",
    "compare",
    "raised",
    "read_subject",
]

LARGEST = 20_000_000
"""A learner's notebook is at most that many bytes."""

CELL_SECONDS = 30.0
"""A cell may run as long as when it is graded."""

SECONDS = 600.0
"""Each half of a check, marks and comparison, may take that long."""

OWN = "your own cell "
"""So begins what a learner's own cell is called, with its number behind it."""

NO_ANSWER = "The notebook has no answer cell for this step."

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

    ``note`` says of right answers what comes out otherwise than in the reference notebook.
    """

    name: str
    reproduced: tuple[str, ...]
    missing: tuple[str, ...]
    message: str = ""
    note: str = ""


@dataclass(frozen=True)
class Report:
    """What the comparison says of a notebook's steps, in order, and what failed outside of them."""

    unit: str
    steps: tuple[StepReport, ...]
    elsewhere: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether every visible test passes."""
        return not self.elsewhere and not any(step.message for step in self.steps)


@dataclass(frozen=True)
class Subject:
    """A learner's notebook to be checked: its cells, and the unit that it belongs to, without hidden tests.

    The cells are in the form that ``grader.engine.restore`` takes.
    """

    course: Course
    assignment: Assignment
    cells: tuple[dict[str, Any], ...]
    answered: frozenset[str] = frozenset()

    @property
    def unit(self) -> str:
        """The unit's name."""
        return self.assignment.unit

    @property
    def data(self) -> bytes:
        """The notebook as a file of a submission would hold it."""
        cells = [
            {
                "cell_type": cell["cell_type"],
                "source": cell["source"],
                "metadata": {"nbgrader": {**cell["marks"], "grade_id": cell["grade_id"]}}
                if cell["grade_id"]
                else {},
            }
            for cell in self.cells
        ]
        return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": cells}).encode()

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What is put right in the notebook before it runs."""
        return restore(self.assignment, list(self.cells)).notes

    @cached_property
    def merged(self) -> Any:
        """The reference notebook with the learner's code in it; only locked cells have outputs to compare."""
        given = {cell["id"]: cell for cell in self.assignment.reference["cells"]}
        merged = restore(self.assignment, list(self.cells)).notebook
        names = cell_names(merged, self.assignment)
        for cell, name in zip(merged["cells"], names, strict=True):
            if cell["cell_type"] != "code":
                continue
            if cell.get("id") in given and name not in self.assignment.steps:
                # Outputs without a count are taken by nbval for those of a cell that never ran.
                cell |= {key: given[cell["id"]].get(key) for key in ("outputs", "execution_count")}
            else:
                cell["metadata"] = {**cell["metadata"], "tags": _FREE}
                cell["metadata"].setdefault("nbgrader", {"grade_id": name})
        return {**merged, "nbformat": 4, "nbformat_minor": 5}


def read_subject(course: Course, path: Path, unit: str | None = None) -> Subject:
    """Read a learner's notebook; it belongs to the unit that is named, or else to the one its grade ids tell.

    Raises:
        UnreadableNotebookError: the file is missing, too large, a link, or no notebook of a unit.
        UnknownUnitError: the named unit does not exist.
        BrokenReferenceError: a reference notebook of the course cannot be read.
    """
    if unit is not None:
        course.require_unit(unit)
    cells = _read(path)
    references = {name: _reference(course, name) for name in ([unit] if unit is not None else course.units())}
    answered = frozenset(
        str(cell["grade_id"]) for cell in cells if cell["grade_id"] and cell["cell_type"] == "code"
    )
    name = _unit_of(references, answered, path)
    reference = references[name]
    shown = _visible(reference["cells"])
    left_out = {grade_id(cell) for cell in reference["cells"]} - {grade_id(cell) for cell in shown}
    assignment = Assignment(name, {**reference, "cells": shown}, _files(course.reference(name).parent))
    kept = tuple(cell for cell in cells if cell["grade_id"] is None or cell["grade_id"] not in left_out)
    return Subject(course, assignment, kept, answered & assignment.steps.keys())


def compare(
    subject: Subject, *, stopped: Mapping[str, str] | None = None, cell_seconds: float = CELL_SECONDS
) -> Report:
    """Run the subject's answers in the reference notebook, with nbval.

    A cell may run for ``cell_seconds``; an answer that needs more counts as not given. ``stopped`` names cells of which
    that is known, with what is to be said of them: they do not run.

    Raises:
        CheckFailedError: nbval could not be run to its end.
    """
    with tempfile.TemporaryDirectory(prefix="ffn-check-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch) / subject.unit
        ignore = shutil.ignore_patterns("*.ipynb", ".ipynb_checkpoints")
        shutil.copytree(subject.course.solutions / subject.unit, folder, ignore=ignore)
        ran, all_stopped = _run(subject.merged, folder / f"{subject.unit}.ipynb", cell_seconds, stopped or {})
    return _report(subject, ran, all_stopped)


def cell_names(notebook: Any, assignment: Assignment) -> list[str]:
    """What the cells of a restored notebook are called, in order: by grade id, else by number; "" for unnamed text."""
    given = {cell["id"] for cell in assignment.reference["cells"]}
    own = code = 0
    names = []
    for cell in notebook["cells"]:
        code += cell["cell_type"] == "code"
        own += cell.get("id") not in given
        number = f"code cell {code}" if cell.get("id") in given else f"{OWN}{own}"
        names.append(grade_id(cell) or (number if cell["cell_type"] == "code" else ""))
    return names


@dataclass(frozen=True)
class _Ran:
    """What nbval said of a cell ("" where it agrees), whether it never came to its end, and what it gave."""

    failure: str = ""
    stopped: bool = False
    outputs: tuple[dict[str, Any], ...] = ()

    @property
    def error(self) -> str:
        """The exception that the cell raised, as a reader should see it."""
        return raised(self.outputs)


# ------------------------------------------------------------------------------------------- the learner's file


def _read(path: Path) -> list[dict[str, Any]]:
    """The cells of a learner's notebook, whatever stands in the file."""
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
        cells = _cells(json.loads(data.decode("utf-8-sig")))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableNotebookError(
            path, "it is no notebook that can be read; save it again in JupyterLab, or begin with a new copy"
        ) from error
    if len(cells) > MOST_CELLS:
        raise UnreadableNotebookError(
            path, f"it has more than {MOST_CELLS} cells; delete those that are not needed"
        )
    if any(len(cell["source"]) > LONGEST_SOURCE for cell in cells):
        raise UnreadableNotebookError(path, "it has a cell that is longer than an answer can be; shorten it")
    return cells


def _cells(notebook: Any) -> list[dict[str, Any]]:
    """The cells that matter: those of the exercise, and code of one's own."""
    found = []
    cells = notebook["cells"]
    if not isinstance(cells, list):
        raise TypeError
    for cell in cells:
        if not isinstance(cell["metadata"], dict):
            raise TypeError
        source, name = _text(cell["source"]), grade_id(cell)
        kind = cell.get("cell_type")
        kind = kind if isinstance(kind, str) else ""
        if name is not None or (kind == "code" and source.strip()):
            marks = cell["metadata"]["nbgrader"] if name is not None else {}
            marks = {key: value for key, value in marks.items() if isinstance(value, str | int | float | None)}
            found.append({"cell_type": kind, "source": source, "grade_id": name, "marks": marks})
    return found


def _text(source: Any) -> str:
    """A cell's source: a text, or a list of lines, that a file can hold."""
    text = source if isinstance(source, str) else "".join(source) if isinstance(source, list) else None
    if text is None:
        raise TypeError
    text.encode("utf-8")
    return text


def _reference(course: Course, unit: str) -> Any:
    """A reference notebook, without a look at its format, which takes most of the time."""
    path = course.reference(unit)
    try:
        reference = json.loads(path.read_text(encoding="utf-8"))
        for number, cell in enumerate(reference["cells"]):
            cell["source"] = _text(cell["source"])
            cell.setdefault("id", f"cell-{number}")
            if cell["cell_type"] == "code":
                list(cell["outputs"])
        steps(reference)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BrokenReferenceError(path.relative_to(course.root)) from error
    return reference


def _visible(cells: Iterable[Any]) -> list[Any]:
    """A reference notebook's cells without hidden tests; what then has no code is left out."""
    shown = []
    for cell in cells:
        if cell["cell_type"] == "code" and is_hidden(cell):
            source = without_hidden_tests(cell["source"])
            if all(line.startswith("#") for line in source.splitlines() if line.strip()):
                continue
            cell = {**cell, "source": source}
        shown.append(cell)
    return shown


def _files(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """The data beside a reference notebook."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix != ".ipynb"]
    names = {path: path.relative_to(folder) for path in files}
    shown = [path for path in files if not any(part.startswith(".") for part in names[path].parts)]
    return tuple((names[path].as_posix(), path.read_bytes()) for path in shown)


def _unit_of(references: Mapping[str, Any], answered: frozenset[str], path: Path) -> str:
    """The unit with the most answer cells in common; the file's name decides where several have as many."""
    shared = {unit: len(steps(reference).keys() & answered) for unit, reference in references.items()}
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


def _with_every_value(merged: Any) -> Any:
    """The notebook with a lenient copy behind each test that is about several published values."""

    def more(source: str, name: str) -> Any:
        metadata = {"tags": _FREE, "nbgrader": {"grade_id": name}}
        kept = {"cell_type": "code", "metadata": metadata, "source": source}
        return {**kept, "id": f"check-{len(cells)}", "outputs": [], "execution_count": None}

    tests = {name for names in steps(merged).values() for name in names}
    cells: list[Any] = []
    cells.append(more(_FIRST, ""))
    for cell in merged["cells"]:
        cells.append(copy.copy(cell))
        name = str(grade_id(cell))
        if name in tests and len(checked_ids(cell["outputs"])) > 1:
            source = re.sub(r"\bcheck\(", "lenient_check(", cell["source"])
            cells.append(more(f"{_LENIENT}\n\n\n{source}", f"{_EACH}{name}"))
    return {**merged, "cells": cells}


def _names(notebook: Any) -> list[str]:
    """Names of the code cells, in order: nbval counts these."""
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [grade_id(cell) or f"code cell {number}" for number, cell in enumerate(code, 1)]


# --------------------------------------------------------------------------------------------------- nbval runs


def _run(
    merged: Any, path: Path, cell_seconds: float, known: Mapping[str, str]
) -> tuple[dict[str, _Ran], dict[str, str]]:
    """What the cells gave, by name, and of steps and cells that did not come to an end why.

    nbval says nothing of value of the cells after one that it had to stop, so the notebook runs again without the
    code that did it.
    """
    notebook = _with_every_value(merged)
    names, until = _names(notebook), time.monotonic() + SECONDS
    owner = {name: step for step, tests in steps(merged).items() for name in (step, *tests)}
    owner |= {name: name for name in names if name.startswith(OWN)}
    stopped = dict(known)
    for cell in notebook["cells"]:
        if grade_id(cell) in stopped:
            cell["source"] = _STUB
    while True:
        path.write_text(json.dumps(notebook), encoding="utf-8")
        ran = _nbval(path, cell_seconds, until - time.monotonic())
        number = next((number for number, cell in ran.items() if cell.stopped), None)
        if number is None:
            return {name: ran.get(place, _Ran()) for place, name in enumerate(names)}, stopped
        dead = ran[number].failure.startswith("Kernel dead")
        guilty = owner.get(names[max(number - dead, 0)].removeprefix(_EACH), "")
        if not guilty or guilty in stopped:
            raise CheckFailedError(f"{names[number]!r} stopped with: {_one_line(ran[number].failure)}")
        stopped[guilty] = (
            "Your code ends Python itself."
            if dead
            else f"Your code did not come to an end within {cell_seconds:g} seconds, or it ended Python."
        )
        next(cell for cell in notebook["cells"] if grade_id(cell) == guilty)["source"] = _STUB


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


def _report(subject: Subject, ran: dict[str, _Ran], stopped: Mapping[str, str]) -> Report:
    cells = {name: cell for cell in subject.assignment.reference["cells"] if (name := grade_id(cell)) is not None}
    tests = subject.assignment.steps
    found = []
    for step in tests:
        visible = [name for name in tests[step] if name in ran]
        wanted = [ident for name in visible for ident in checked_ids(cells[name]["outputs"])]
        runs = [ran[name] for test in visible for name in (test, f"{_EACH}{test}") if name in ran]
        shown = {ident for run in runs for ident in checked_ids(run.outputs)}
        missing = tuple(ident for ident in wanted if ident not in shown)
        message = stopped.get(step) or _fault(step, subject, [ran[step], *(ran[n] for n in visible)])
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
            )
        )
    return Report(subject.unit, tuple(found), (*_elsewhere(subject, ran), *_own(stopped)))


def _elsewhere(subject: Subject, ran: Mapping[str, _Ran]) -> list[str]:
    """What failed in cells that are neither the learner's nor a step's."""
    known = {name for step, names in subject.assignment.steps.items() for name in (step, *names)}
    return [
        f"{name}: {cell.error}"
        for name, cell in ran.items()
        if name.removeprefix(_EACH) not in known and not name.startswith(OWN) and cell.error
    ]


def _own(stopped: Mapping[str, str]) -> list[str]:
    return [f"{name}: {said}" for name, said in stopped.items() if name.startswith(OWN)]


def _fault(step: str, subject: Subject, cells: list[_Ran]) -> str:
    """What is wrong with a step, from what its answer and its visible tests gave; "" where the tests pass."""
    answer, *tests = cells
    failed = [cell for cell in tests if cell.error]
    if not failed:
        return ""
    if step not in subject.answered:
        return NO_ANSWER
    return f"The answer's cell raises {answer.error}" if answer.error else failed[0].error


def _difference(expected: Any, ran: _Ran) -> str:
    """How a passing test's text differs from the reference's: a line that it does not print, or one on stderr."""
    if ran.error:
        return ""
    printed = _stream(ran.outputs, "stdout")
    for place, line in enumerate(_stream(expected, "stdout")):
        if line not in printed:
            instead = f", but {printed[place]!r}" if place < len(printed) else ""
            return cleaned(f"The test does not print {line!r} as in the reference notebook{instead}.")
    warned = _stream(ran.outputs, "stderr")
    return (
        f"Your code writes to stderr, which the reference notebook does not: {cleaned(warned[-1])}"
        if warned
        else ""
    )


def _stream(outputs: Any, name: str) -> list[str]:
    text = "".join("".join(output["text"]) for output in outputs if output.get("name") == name)
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def raised(outputs: Iterable[Any]) -> str:
    """The exception in a cell's outputs, as a reader should see it: of a test its message alone; "" for none."""
    errors = [output for output in outputs if output["output_type"] == "error"]
    if not errors:
        return ""
    kind, text = errors[-1]["ename"], cleaned(errors[-1]["evalue"])
    if kind == "StepFailedError":
        return text
    text = re.sub(r" ?\([\w<>/.-]+, line (\d+)\)$", r" (line \1 of its cell)", text)
    return f"{kind}: {text}" if text else kind


def cleaned(text: str) -> str:
    """A text without terminal codes and other characters that show nothing, cut where it goes on and on."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)
    shown = "".join(c for c in text if c == "\n" or unicodedata.category(c) not in ("Cc", "Cs", "Co", "Cf"))
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[:_LONGEST_MESSAGE]}…"


def _one_line(text: str) -> str:
    return " ".join(cleaned(text).split()).rstrip(".")
