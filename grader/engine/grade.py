"""Grade one submission: bytes and an assignment in, a verdict out."""

import ast
import contextlib
import io
import linecache
import symtable
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grader.engine.proxy import LearnerSession, Names, SessionLostError, text_of
from grader.engine.read import UnreadableError, read_submission
from grader.engine.restore import Assignment, Restored, restore
from grader.engine.sandbox import Sandbox
from grader.engine.verdict import (
    CRASHED,
    GRADED,
    MISSING,
    REPAIRED,
    TIMED_OUT,
    UNREADABLE,
    Limits,
    Note,
    TestResult,
    Verdict,
)
from grader.flags import flags, withholds
from grader.notebooks import FLAG_KEY, grade_id, is_hidden

__all__ = ["grade"]

WITHHELD = "This step is asked for from scratch, so an answer that uses the course's module gets no marks here."

_LONGEST_MESSAGE = 4_000
# A notebook may have thousands of cells; not every one of them may have as much output as one may.
_CELLS_FULL_OF_OUTPUT = 20


def grade(assignment: Assignment, submission: bytes | None, limits: Limits, sandbox: Sandbox) -> Verdict:
    """Grade a submission of an assignment in sessions of the sandbox; None stands for a submission that is missing.

    Whatever the submission holds, a verdict comes back.

    Raises:
        NoSandboxError: the sandbox itself has ended.
    """
    start = time.monotonic()
    if submission is None:
        return Verdict(MISSING, "Nothing was handed in.", "There is no submission.", _none(assignment))
    try:
        submitted = read_submission(submission, limits.submission_bytes)
    except UnreadableError as error:
        learner = f"The file {error}. Save the notebook in Jupyter and hand it in again."
        return Verdict(UNREADABLE, learner, f"The file {error}; nothing was run.", _none(assignment))
    restored = restore(assignment, submitted)
    if not restored.found:
        learner = "The file has no cell of this exercise. Hand in the notebook that you were given."
        return Verdict(UNREADABLE, learner, "The notebook has no answer cell of this unit.", _none(assignment))
    run = _Run(assignment, restored, limits, sandbox, start)
    with _beside(assignment.files):
        run.execute()
    return run.verdict()


@contextlib.contextmanager
def _beside(files: Iterable[tuple[str, bytes]]) -> Iterator[None]:
    """Be in a folder that holds the assignment's files, where locked cells and tests find them by their names."""
    with tempfile.TemporaryDirectory(prefix="ffn-checker-") as folder:
        for name, content in files:
            path = Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        with contextlib.chdir(folder):
            yield


def _none(assignment: Assignment) -> tuple[TestResult, ...]:
    """No points for any test cell."""
    return tuple(
        TestResult(str(grade_id(cell)), step, 0.0, _points(cell))
        for cell, step in _tests(assignment.reference["cells"], assignment)
    )


def _tests(cells: Iterable[Any], assignment: Assignment) -> Iterable[tuple[Any, str]]:
    step_of = {test: step for step, tests in assignment.steps.items() for test in tests}
    for cell in cells:
        if _is_test(cell):
            yield cell, step_of.get(str(grade_id(cell)), "")


def _marks(cell: Any) -> dict[str, Any]:
    found: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return found


def _is_test(cell: Any) -> bool:
    return cell["cell_type"] == "code" and bool(_marks(cell).get("grade")) and not _marks(cell).get("solution")


def _points(cell: Any) -> float:
    return float(_marks(cell).get("points", 0))


@dataclass
class _Run:
    """One submission under way."""

    assignment: Assignment
    restored: Restored
    limits: Limits
    sandbox: Sandbox
    start: float
    results: list[TestResult] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    lost: list[tuple[str, bool]] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)
    room: int = field(init=False)

    def __post_init__(self) -> None:
        self.room = _CELLS_FULL_OF_OUTPUT * self.limits.output_bytes

    def execute(self) -> None:
        """Run every code cell: the learner's in the session, tests here, other locked cells in both."""
        self._executed: list[tuple[str, bool]] = []
        self._session: LearnerSession | None = self.sandbox.session()
        asked = {name for source in self.assignment.answers.values() for name in _defined(source)}
        self._names = Names(self._session, asked)
        count = 0
        cells = self.restored.notebook["cells"]
        steps = {str(grade_id(cell)): step for cell, step in _tests(cells, self.assignment)}
        withheld = self._flag()
        for place, cell in enumerate(cells):
            if cell["cell_type"] != "code":
                continue
            count += 1
            name = str(grade_id(cell) or place + 1)
            cell["execution_count"] = count
            both = bool(_marks(cell).get("locked")) and not _marks(cell).get("solution")
            if _is_test(cell):
                step = steps.get(name, "")
                points, message = self._test(cell, name, withheld.get(name, ""))
                self.results.append(TestResult(name, step, points, _points(cell), message))
            else:
                self._cell(cell, name, both=both)
            if both or _is_test(cell):
                # Whatever became of this cell, a later one means its names, and not the learner's.
                self._names.reserve(_bound(cell["source"]))

    def _flag(self) -> dict[str, str]:
        """Flag answers for the instructor; hidden tests of answers that use the course's module are not run."""
        withheld: dict[str, str] = {}
        found = flags(self.restored.notebook, self.assignment.reference)
        cells = {str(grade_id(cell)): cell for cell in self.restored.notebook["cells"]}
        for step, phrases in found.items():
            cells[step]["metadata"][FLAG_KEY] = phrases
            self.flagged += [f"{step} {text}" for text in phrases]
            # A test runs with names of its own here, so what the learner did to those it relies on changes nothing.
            if withholds(phrase for phrase in phrases if not phrase.endswith(" of its own")):
                hidden = [test for test in self.assignment.steps[step] if is_hidden(cells[test])]
                withheld |= dict.fromkeys(hidden, WITHHELD)
        return withheld

    def _fresh(self) -> None:
        """A new session, with everything replayed that ran so far; what the tests have made stays.

        A cell that ran before and now ends the session is left out.
        """
        while not self._over():
            self._session = self.sandbox.session()
            self._names.move(self._session)
            for place, (source, both) in enumerate(self._executed):
                self._session.allow(self._seconds())
                try:
                    if both:
                        self._here(source, "<locked>")
                    with contextlib.suppress(Exception):
                        self._session.run(source)
                except SessionLostError:
                    del self._executed[place]
                    break
            else:
                return
        self._session = None

    def _here(self, source: str, filename: str) -> None:
        """Run a locked cell here too, and before the session does: that the session ends then changes nothing here."""
        with contextlib.suppress(Exception, SessionLostError):
            _run_here(source, filename, self._names)

    def _seconds(self) -> float:
        left = self.limits.total_seconds - (time.monotonic() - self.start)
        return max(0.05, min(self.limits.cell_seconds, left))

    def _over(self) -> bool:
        return time.monotonic() - self.start >= self.limits.total_seconds

    def _cell(self, cell: Any, name: str, *, both: bool) -> None:
        """Run a learner's cell, or a locked one that is no test, in the session."""
        if not cell["source"].strip():
            return
        ready = self._ready()
        if self._session is not None:
            self._session.allow(self._seconds())
        if both:
            self._here(cell["source"], f"<{name}>")
        if not ready:
            cell["outputs"] = [_error("NotRun", "this cell was not run: no session, or no time, was left")]
            return
        assert self._session is not None
        self._session.allow(self._seconds())
        try:
            reply = self._session.run(cell["source"])
            room = min(4 * self.limits.output_bytes, self.room)
            cell["outputs"] = _outputs(reply["outputs"], room)
            self.room -= sum(len(repr(output)) for output in cell["outputs"])
        except SessionLostError as error:
            self._lose(cell, name, error)
            return
        except Exception as error:
            cell["outputs"] = [_error(type(error).__name__, _clean(text_of(error)))]
        self._executed.append((cell["source"], both))

    def _ready(self) -> bool:
        if self._session is None and len(self.lost) <= self.limits.restarts and not self._over():
            self._fresh()
        return self._session is not None and not self._over()

    def _lose(self, cell: Any, name: str, error: SessionLostError) -> None:
        """The session is gone: say so at the cell, and go on with a new one at the next cell."""
        self.sandbox.end_session()
        self._session = None
        self.lost.append((name, error.timed_out))
        what = "took too long and was stopped" if error.timed_out else f"ended the session ({error})"
        cell["outputs"] = [_error("TimedOut" if error.timed_out else "SessionLost", f"this cell {what}.")]
        self.notes.append(
            Note(
                name,
                f"The cell {name!r} {what}; the cells after it were graded without it.",
                f"The cell {name!r} {what}; a new session replayed the cells before it.",
            )
        )

    def _test(self, cell: Any, name: str, withheld: str) -> tuple[float, str]:
        """Run a test cell here, away from the learner's code; returns points and message."""
        if withheld:
            cell["outputs"] = [_error("Withheld", withheld)]
            return 0.0, withheld
        if not self._ready():
            cell["outputs"] = [_error("NotRun", "this test was not run: no session, or no time, was left")]
            return 0.0, "The test was not run."
        assert self._session is not None
        self._session.allow(self._seconds())
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                value = _run_here(cell["source"], f"<{name}>", self._names)
        except SessionLostError as error:
            self._lose(cell, name, error)
            return 0.0, f"The answer {'took too long' if error.timed_out else 'ended its session'} in this test."
        except Exception as error:
            message = _message(error)
            cell["outputs"] = [*_text(said), _error(type(error).__name__, message, _lines(error))]
            self._settle(cell, name)
            return 0.0, message
        if not self._settle(cell, name):
            return 0.0, "The answer disturbed its session in this test."
        most = _points(cell)
        cell["outputs"] = _text(said)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
            cell["outputs"].append(_result(value, cell["execution_count"]))
            return float(value), ""
        return most, ""

    def _settle(self, cell: Any, name: str) -> bool:
        """Whether the session is where it should be after a test; if not, it ends at this cell."""
        assert self._session is not None
        try:
            self._session.settle()
        except SessionLostError as error:
            self._lose(cell, name, error)
            return False
        return True

    def verdict(self) -> Verdict:
        """What it all came to."""
        notes = (*self.restored.notes, *self.notes)
        timed_out = [name for name, late in self.lost if late]
        crashed = [name for name, late in self.lost if not late]
        if timed_out or self._over():
            where = timed_out[0] if timed_out else ""
            status, learner = (
                TIMED_OUT,
                f"The cell {where!r} took too long." if where else "The notebook took too long.",
            )
        elif crashed:
            status, learner = f"{CRASHED} at cell {crashed[0]}", f"The cell {crashed[0]!r} ended its session."
        elif notes:
            status, learner = REPAIRED, "Your notebook was graded after repairs, listed below."
        else:
            status, learner = GRADED, "Your notebook was graded."
        instructor = " ".join(note.instructor for note in notes) or "No remarks."
        return Verdict(
            status=status,
            learner=learner,
            instructor=instructor,
            results=tuple(self.results),
            notes=notes,
            notebook=self.restored.notebook,
            seconds=time.monotonic() - self.start,
            sandbox=self.sandbox.mode,
            flags=tuple(self.flagged),
        )


def _defined(source: str) -> set[str]:
    """Names that an answer defines at its top level."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def _bound(source: str) -> set[str]:
    """Names that a trusted cell binds at its top level."""
    table = symtable.symtable(source, "<cell>", "exec")
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}


def _run_here(source: str, filename: str, names: Names) -> Any:
    """Run a trusted cell; the value of its last line if that is an expression (partial credit)."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    tree = ast.parse(source, filename)
    ending = tree.body[-1] if tree.body else None
    last = ending if isinstance(ending, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(tree, filename, "exec"), names)
        if last is not None:
            return eval(compile(ast.Expression(last.value), filename, "eval"), names)
    return None


def _message(error: Exception) -> str:
    if isinstance(error, NotImplementedError):
        return "This step is not written yet; put your code in place of raise NotImplementedError()."
    text = _clean(text_of(error)).strip() or type(error).__name__
    notes = [note for note in getattr(error, "__notes__", []) if isinstance(note, str)]
    name = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
    return f"{name}{text}{f' ({notes[0]})' if notes else ''}"[:_LONGEST_MESSAGE]


def _lines(error: Exception) -> list[str]:
    """The lines of the test that led to the failure, without the way through the grader."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("<")]
    return [f"{frame.filename[1:-1]}, line {frame.lineno}: {frame.line}" for frame in frames[:3]]


def _error(name: str, text: str, lines: Iterable[str] = ()) -> Any:
    from nbformat.v4 import new_output

    shown = [*lines, f"{name}: {text}"]
    return new_output("error", ename=name, evalue=text, traceback=shown)  # type: ignore[no-untyped-call]


def _text(said: io.StringIO) -> list[Any]:
    from nbformat.v4 import new_output

    text = _clean(said.getvalue())
    return [new_output("stream", name="stdout", text=text)] if text else []  # type: ignore[no-untyped-call]


def _result(value: float, count: int) -> Any:
    from nbformat.v4 import new_output

    data = {"text/plain": repr(value)}
    return new_output("execute_result", data=data, execution_count=count)  # type: ignore[no-untyped-call]


def _outputs(sent: list[Any], most: int) -> list[Any]:
    """A session's outputs as a notebook may hold them: of known kinds, of text only, and not too many."""
    from nbformat.v4 import new_output

    kept: list[Any] = []
    left = most
    for output in sent[:2_000]:
        if not isinstance(output, dict):
            continue
        kind = output.get("output_type")
        made: dict[str, Any]
        if kind == "stream":
            made = {
                "name": "stderr" if output.get("name") == "stderr" else "stdout",
                "text": _clean(output.get("text")),
            }
        elif kind == "error":
            lines = output.get("traceback")
            shown = [_clean(line) for line in lines[:100]] if isinstance(lines, list) else []
            made = {
                "ename": _clean(output.get("ename")),
                "evalue": _clean(output.get("evalue")),
                "traceback": shown,
            }
        elif kind in ("display_data", "execute_result"):
            data = output.get("data")
            texts = data.items() if isinstance(data, dict) else ()
            made = {"data": {_clean(k): _clean(v) for k, v in texts if isinstance(v, str) and "/" in str(k)}}
            if kind == "execute_result":
                made["execution_count"] = None
        else:
            continue
        size = len(repr(made))
        if size > left:
            break
        left -= size
        kept.append(new_output(kind, **made))  # type: ignore[no-untyped-call]
    return kept


def _clean(value: Any) -> str:
    """Text without lone surrogates, which a file cannot hold."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""
