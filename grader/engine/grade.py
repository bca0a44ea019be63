"""Grade one submission: bytes and an assignment in, a verdict out."""

import ast
import contextlib
import io
import linecache
import signal
import symtable
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from grader.engine.foresight import Script
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
from grader.notebooks import FLAG_KEY, HIDDEN_KEY, grade_id, is_hidden, without_hidden_tests

__all__ = ["grade"]

WITHHELD = "This step is asked for from scratch, so an answer that uses the course's module gets no marks here."

_LONGEST_MESSAGE = 4_000
# A notebook may have thousands of cells; not every one of them may have as much output as one may.
_CELLS_FULL_OF_OUTPUT = 20
_FEWEST_SECONDS = 2.0
_GRACE_SECONDS = 1.0
REHEARSED_AFTER = 3
"""Submissions that are graded in a sandbox before it pays to run the reference there."""

Scripts: TypeAlias = dict[tuple[str, str], Script]
"""What test cells ask, by the cell's name, and the moment to which a hidden one comes back."""


def grade(assignment: Assignment, submission: bytes | None, limits: Limits, sandbox: Sandbox) -> Verdict:
    """Grade a submission of an assignment in sessions of the sandbox; None stands for a submission that is missing.

    Whatever the submission holds, a verdict comes back.

    Raises:
        NoSandboxError: the sandbox itself has ended.
    """
    if submission is None:
        return Verdict(MISSING, "Nothing was handed in.", "There is no submission.", _none(assignment))
    start = time.monotonic()
    try:
        submitted = read_submission(submission, limits.submission_bytes)
    except UnreadableError as error:
        learner = f"The file {error}. Save the notebook in Jupyter and hand it in again."
        return Verdict(UNREADABLE, learner, f"The file {error}; nothing was run.", _none(assignment))
    restored = restore(assignment, submitted)
    if not restored.found:
        learner = "The file has no cell of this exercise. Hand in the notebook that you were given."
        return Verdict(UNREADABLE, learner, "The notebook has no answer cell of this unit.", _none(assignment))
    with sandbox.beside(assignment.files), _alarm():
        before = time.monotonic()
        scripts = _scripts(assignment, limits, sandbox)
        # What is found out for all of them is none of this one's time.
        start += time.monotonic() - before
        run = _Run(assignment, restored, limits, sandbox, start, scripts)
        run.execute()
    return run.verdict()


@dataclass
class _Known:
    """What is known of the test cells of the assignment with this text, after so many submissions of it."""

    text: str
    graded: int = 0
    scripts: Scripts = field(default_factory=dict)


_known: WeakKeyDictionary[Sandbox, _Known] = WeakKeyDictionary()


def _scripts(assignment: Assignment, limits: Limits, sandbox: Sandbox) -> "Scripts":
    """The scripts of an assignment's test cells; made when a few submissions have been graded in the sandbox."""
    known = _known.get(sandbox)
    if known is None or known.text != assignment.text:
        known = _known[sandbox] = _Known(assignment.text)
    known.graded += 1
    if known.graded == REHEARSED_AFTER + 1:
        restored = restore(assignment, read_submission(assignment.text.encode(), len(assignment.text) * 4 + 1))
        rehearsal = _Run(assignment, restored, limits, sandbox, time.monotonic(), rehearses=True)
        rehearsal.execute()
        if not rehearsal.lost:
            known.scripts = rehearsal.scripts
    return known.scripts


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


@dataclass(frozen=True)
class _Done:
    """What has run in the session, to be run again in another one: a cell, or a moment to come back to."""

    source: str = ""
    both: bool = False
    moment: str = ""


@dataclass
class _Run:
    """One submission under way."""

    assignment: Assignment
    restored: Restored
    limits: Limits
    sandbox: Sandbox
    start: float
    scripts: Scripts = field(default_factory=dict)
    rehearses: bool = False
    """Whether this is the reference's own run, of which the scripts are made."""
    results: list[TestResult] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    lost: list[tuple[str, bool]] = field(default_factory=list)
    flagged: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    room: int = field(init=False)

    def __post_init__(self) -> None:
        self.room = _CELLS_FULL_OF_OUTPUT * self.limits.output_bytes

    def execute(self) -> None:
        """Run every code cell: the learner's in the session, tests here, other locked cells in both.

        Hidden tests run when all else has, each with what all names meant at its place: what their arguments tell a
        learner's function, no later cell of the learner's can print.
        """
        if any("matplotlib" in cell["source"] for cell in self.restored.notebook["cells"]):
            # Imported in each session it would take most of the time, and make its list of fonts anew.
            self.sandbox.preload("matplotlib.figure")
        self._executed: list[_Done] = []
        self._session: LearnerSession | None = self.sandbox.session()
        asked = {name for source in self.assignment.answers.values() for name in _defined(source)}
        self._names = Names(self._session, asked)
        withheld = self._flag()
        reached: dict[str, tuple[float, str]] = {}
        hidden: list[tuple[Any, str]] = []
        count = 0
        for place, cell in enumerate(self.restored.notebook["cells"]):
            if cell["cell_type"] != "code":
                continue
            count += 1
            cell["execution_count"] = count
            name, source = str(grade_id(cell) or place + 1), cell["source"]
            both = bool(_marks(cell).get("locked")) and not _marks(cell).get("solution")
            if not _is_test(cell):
                self._cell(cell, name, both=both)
            elif name in withheld:
                cell["outputs"] = [_error("Withheld", withheld[name])]
                reached[name] = 0.0, withheld[name]
            elif is_hidden(cell):
                self._keep(name)
                source = without_hidden_tests(source)
                if _is_code(source):
                    reached[name] = self._test(cell, name, source)
                if not reached.get(name, (0.0, ""))[1]:
                    hidden.append((cell, name))
            else:
                reached[name] = self._test(cell, name, source)
            if both or _is_test(cell):
                # Whatever became of this cell, a later one means its names, and not the learner's.
                self._names.reserve(_bound(source))
        for cell, name in hidden:
            reached[name] = self._hidden_test(cell, name)
        for cell, step in _tests(self.restored.notebook["cells"], self.assignment):
            name = str(grade_id(cell))
            points, message = reached[name]
            self.results.append(TestResult(name, step, points, _points(cell), message))

    def _keep(self, moment: str) -> None:
        """Keep what all names mean now, for the hidden tests at this place."""
        self._names.keep(moment)
        if self._session is not None:
            self._session.keep(moment)
        self._executed.append(_Done(moment=moment))

    def _hidden_test(self, cell: Any, name: str) -> tuple[float, str]:
        """Run a cell with hidden tests as if it ran at its place."""
        cell["metadata"][HIDDEN_KEY] = True
        if self._ready() and self._session is not None:
            self._names.come_back(name)
            self._session.come_back(name)
        reached = self._test(cell, name, cell["source"], moment=name)
        self._names.hand_on(_bound(cell["source"]))
        return reached

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
            for place, done in enumerate(self._executed):
                if done.moment:
                    self._session.keep(done.moment)
                    continue
                self._session.allow(self._seconds())
                try:
                    if done.both:
                        self._here(done.source, "<locked>")
                    with contextlib.suppress(Exception):
                        self._session.run(done.source)
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
        """Seconds for the next cell: after each that took too long fewer, so that some are left for the others."""
        left = self.limits.total_seconds - (time.monotonic() - self.start)
        late = sum(timed_out for _, timed_out in self.lost)
        most = min(self.limits.cell_seconds, max(_FEWEST_SECONDS, self.limits.cell_seconds * 0.5**late))
        return max(0.05, min(most, left))

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
            with self._timed(name):
                reply = self._session.run(cell["source"])
            room = min(4 * self.limits.output_bytes, self.room)
            cell["outputs"] = _outputs(reply["outputs"], room)
            self.room -= sum(len(repr(output)) for output in cell["outputs"])
        except SessionLostError as error:
            self._lose(cell, name, error)
            return
        except Exception as error:
            cell["outputs"] = [_error(type(error).__name__, _clean(text_of(error)))]
        self._executed.append(_Done(cell["source"], both))

    @contextlib.contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Add what a cell takes to its seconds; a cell with visible and hidden tests runs twice."""
        start = time.monotonic()
        try:
            yield
        finally:
            shown = name if not name.isdecimal() else f"cell {name}"
            self.timings[shown] = self.timings.get(shown, 0.0) + time.monotonic() - start

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

    def _test(self, cell: Any, name: str, source: str, moment: str = "") -> tuple[float, str]:
        """Run a test cell here, away from the learner's code; returns points and message.

        ``moment`` is the one that session and names have come back to for it.
        """
        if not self._ready():
            cell["outputs"] = [_error("NotRun", "this test was not run: no session, or no time, was left")]
            return 0.0, "The test was not run."
        assert self._session is not None
        seconds = self._seconds()
        self._session.allow(seconds)
        said = io.StringIO()
        try:
            with (
                contextlib.redirect_stdout(said),
                contextlib.redirect_stderr(io.StringIO()),
                self._timed(name),
                _at_most(seconds),
                self._foreseeing(name, moment),
            ):
                value = _run_here(source, f"<{name}>", self._names)
        except SessionLostError as error:
            if self._session.lost_ahead:
                return self._test_anew(cell, name, source, moment)
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

    @contextlib.contextmanager
    def _foreseeing(self, name: str, moment: str) -> Iterator[None]:
        """Let the session answer in one go what a test cell will ask; in a rehearsal, find out what that is."""
        assert self._session is not None
        session, script, passed = self._session, self.scripts.get((name, moment)), False
        if self.rehearses:
            session.keep_asked()
        else:
            session.foresee(script)
        try:
            yield
            passed = True
        finally:
            place = session.unforeseen()
            made = session.asked() if self.rehearses else None
            if made is not None:
                self.scripts[name, moment] = made
            if passed and script is not None and place is not None:
                script.cut(place)

    def _test_anew(self, cell: Any, name: str, source: str, moment: str) -> tuple[float, str]:
        """Run a test cell in a new session without foresight: the one before was lost at what might never be asked."""
        self.sandbox.end_session()
        self.scripts = {}
        self._fresh()
        if self._session is not None and moment:
            self._session.come_back(moment)
        return self._test(cell, name, source, moment)

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
            timings=tuple(self.timings.items()),
        )


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    """Let an alarm end a test cell; only the main thread hears one."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def late(*_: object) -> None:
        raise SessionLostError("the time was over", timed_out=True)

    before = signal.signal(signal.SIGALRM, late)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """End a test cell whose own lines take too long, which no deadline of a session does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # The session's own deadline comes first, where it is the learner's code that takes so long.
    signal.setitimer(signal.ITIMER_REAL, seconds + _GRACE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@cache
def _is_code(source: str) -> bool:
    """Whether there is more than comments."""
    return bool(ast.parse(source).body)


@cache
def _defined(source: str) -> frozenset[str]:
    """Names that a reference answer defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


@cache
def _bound(source: str) -> frozenset[str]:
    """Names that a trusted cell binds at its top level."""
    symbols = symtable.symtable(source, "<cell>", "exec").get_symbols()
    return frozenset(symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported())


def _run_here(source: str, filename: str, names: Names) -> Any:
    """Run a trusted cell; the value of its last line if that is an expression (partial credit)."""
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        body, last = _compiled(source, filename)
        exec(body, names)
        return None if last is None else eval(last, names)


@cache
def _compiled(source: str, filename: str) -> tuple[CodeType, CodeType | None]:
    """A trusted cell's code, and that of its last line where it is an expression."""
    tree = ast.parse(source, filename)
    ending = tree.body[-1] if tree.body else None
    if not isinstance(ending, ast.Expr):
        return compile(tree, filename, "exec"), None
    tree.body.pop()
    return compile(tree, filename, "exec"), compile(ast.Expression(ending.value), filename, "eval")


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


def _error(name: str, text: str, lines: Iterable[str] = ()) -> dict[str, Any]:
    shown = [*lines, f"{name}: {text}"]
    return {"output_type": "error", "ename": name, "evalue": text, "traceback": shown}


def _text(said: io.StringIO) -> list[dict[str, Any]]:
    text = _clean(said.getvalue())
    return [{"output_type": "stream", "name": "stdout", "text": text}] if text else []


def _result(value: float, count: int) -> dict[str, Any]:
    data = {"text/plain": repr(value)}
    return {"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": count}


def _outputs(sent: list[Any], most: int) -> list[Any]:
    """A session's outputs as a notebook may hold them: of known kinds, of text only, and not too many."""
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
            made = {
                "ename": _clean(output.get("ename")),
                "evalue": _clean(output.get("evalue")),
                "traceback": [_clean(line) for line in lines[:100]] if isinstance(lines, list) else [],
            }
        elif kind in ("display_data", "execute_result"):
            data = output.get("data")
            texts = data.items() if isinstance(data, dict) else ()
            shown = {_clean(k): _clean(v) for k, v in texts if isinstance(v, str) and "/" in str(k)}
            made = {"data": shown, "metadata": {}}
            if kind == "execute_result":
                made["execution_count"] = None
        else:
            continue
        size = len(repr(made))
        if size > left:
            break
        left -= size
        kept.append({"output_type": kind, **made})
    return kept


def _clean(value: Any) -> str:
    """Text without lone surrogates, which a file cannot hold."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else ""
