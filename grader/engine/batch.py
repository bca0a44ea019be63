"""Grade the submissions of a unit in worker processes; this process alone writes the gradebook and the files.

A submission that was graded before is left as it is while its bytes, its time and the unit's cells are the same.
Nothing that a submission does ends the batch: a worker that dies or hangs is replaced, and what it graded is tried once
more before it gets a verdict that says so.
"""

import contextlib
import gc
import importlib
import json
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import Any, cast

from grader.course import Course
from grader.engine.grade import grade
from grader.engine.gradebook import Writer
from grader.engine.read import UnreadableError
from grader.engine.restore import Assignment
from grader.engine.sandbox import Sandbox
from grader.engine.store import (
    Submission,
    answers_of,
    collect,
    digest,
    graded_notebook,
    load_assignment,
    notebook_bytes,
    record_of,
    write_graded,
)
from grader.engine.verdict import (
    CRASHED,
    GRADED,
    REPAIRED,
    TIMED_OUT,
    UNREADABLE,
    Limits,
    Note,
    TestResult,
    Verdict,
)
from grader.exceptions import GradebookLockedError, GraderError, InvalidLearnerError, NoSandboxError

__all__ = ["Outcome", "grade_unit", "missing", "noted", "unreadable"]

TRIES = 2
AHEAD = 2
START_SECONDS = 120.0
GRACE_SECONDS = 30.0
_AGAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Outcome:
    """What came of one submission: its verdict, or why there is none; ``skipped`` where it was graded before.

    ``verdict`` has no notebook: that is below grader/var/autograded.
    """

    learner: str
    verdict: Verdict | None = None
    skipped: bool = False
    error: str = ""


@dataclass
class _Task:
    learner: str
    submission: Submission
    record: dict[str, str]
    known: dict[str, Any]
    tries: int = 0
    where: str = ""


@dataclass(frozen=True)
class _Result:
    """A verdict on its way into the gradebook: with the answers alone as its notebook, and the graded one as bytes."""

    task: _Task
    verdict: Verdict
    notebook: bytes


def grade_unit(
    course: Course,
    unit: str,
    learners: list[str],
    *,
    force: bool = False,
    limits: Limits | None = None,
    sandbox: str = "full",
    workers: int | None = None,
    progress: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Grade submissions of a unit; ``progress`` is called with each outcome as it comes. Outcomes are in given order.

    Raises:
        UnknownUnitError: the course has no such unit.
        BrokenReferenceError: its reference notebook cannot be read.
        NotReleasedError, GradebookDiffersError: the gradebook does not know the unit as it is.
        GradebookLockedError: another program keeps the gradebook locked from the start.
        NoSandboxError: learner code cannot be kept apart on this machine.
    """
    limits = limits or Limits()
    _prepare_workers()
    # What the gradebook needs takes a second to import; where all are to be graded, workers begin meanwhile.
    loading = threading.Thread(target=importlib.import_module, args=("nbgrader.api",), daemon=True)
    loading.start()
    assignment = load_assignment(course, unit)
    config = course.config()
    outcomes: dict[str, Outcome] = {}

    def done(outcome: Outcome) -> None:
        outcomes[outcome.learner] = outcome
        if progress is not None:
            progress(outcome)

    asked = list(dict.fromkeys(learners))
    fresh = sum(force or not record_of(course, learner, unit) for learner in asked)
    with contextlib.ExitStack() as stack:
        keeper = _Keeper(course, assignment, done)
        tasks = _tasks(course, assignment, asked, limits, keeper, done, force=force)
        pool = stack.enter_context(_Pool(assignment, limits, sandbox, workers or _cores()))
        pool.start(fresh)
        if fresh < len(asked):
            keeper.open(stack, config, loading)
        for result in pool.run(tasks):
            if not loading.is_alive():
                keeper.open(stack, config, loading)
            keeper.keep(result)
        keeper.open(stack, config, loading)
        keeper.finish()
    return [outcomes[learner] for learner in asked]


def _cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _tasks(
    course: Course,
    assignment: Assignment,
    learners: list[str],
    limits: Limits,
    keeper: "_Keeper",
    done: Callable[[Outcome], None],
    *,
    force: bool,
) -> Iterator[_Task]:
    """What there is to grade, read one by one; what needs no worker is dealt with on the way."""
    for learner in learners:
        try:
            submission = collect(course, learner, assignment.unit, limits)
        except InvalidLearnerError as error:
            done(Outcome(learner, error=str(error)))
            continue
        except UnreadableError as error:
            task = _Task(learner, Submission(b""), {}, {})
            keeper.keep(_result(task, assignment, unreadable(assignment, error)))
            continue
        record = digest(assignment, submission)
        known = record_of(course, learner, assignment.unit)
        if not force and record.items() <= known.items() and learner in keeper.graded:
            done(Outcome(learner, skipped=True))
        elif submission is None:
            verdict = missing(assignment)
            keeper.keep(_result(_Task(learner, Submission(b""), record, known), assignment, verdict))
        else:
            yield _Task(learner, submission, record, known)


def _result(task: _Task, assignment: Assignment, verdict: Verdict) -> _Result:
    """The result of a verdict that was reached without a worker."""
    verdict = noted(verdict, task.submission.notes)
    return _Result(task, verdict, notebook_bytes(graded_notebook(assignment, verdict, task.record)))


def noted(verdict: Verdict, notes: tuple[Note, ...]) -> Verdict:
    """A verdict with what was odd about the submission's files."""
    if not notes:
        return verdict
    said = " ".join(note.instructor for note in notes)
    own = "" if verdict.status == GRADED else f" {verdict.instructor}"
    if verdict.status == GRADED:
        verdict = replace(
            verdict, status=REPAIRED, learner="Your notebook was graded; see the notes on it, listed below."
        )
    return replace(verdict, instructor=f"{said}{own}", notes=(*notes, *verdict.notes))


class _Keeper:
    """Puts results into the gradebook and then into files; while that is not open, or is locked, it holds them."""

    def __init__(self, course: Course, assignment: Assignment, done: Callable[[Outcome], None]) -> None:
        self.graded: set[str] = set()
        """The learners who are in the gradebook, as far as that is open."""
        self._course = course
        self._assignment = assignment
        self._writer: Writer | None = None
        self._done = done
        self._waiting: deque[_Result] = deque()
        self._locked_at = float("-inf")

    def open(self, stack: contextlib.ExitStack, config: Any, loading: threading.Thread) -> None:
        """Open the gradebook, if it is not open yet, when all is imported for it."""
        if self._writer is None:
            loading.join()
            writer = stack.enter_context(Writer(config.CourseDirectory.db_url, config))
            writer.check(self._assignment)
            self._writer = writer
            self.graded = writer.graded(self._assignment.unit)
            self._try()

    def keep(self, result: _Result) -> None:
        self._waiting.append(result)
        if self._writer is not None and time.monotonic() - self._locked_at > _AGAIN_SECONDS:
            self._try()

    def _try(self) -> None:
        with contextlib.suppress(GradebookLockedError):
            self._save_all()

    def finish(self) -> None:
        """Try what is left once more; what cannot be kept becomes an outcome that says why."""
        try:
            self._save_all()
        except GradebookLockedError as error:
            for result in self._waiting:
                self._done(Outcome(result.task.learner, error=str(error)))
            self._waiting.clear()

    def _save_all(self) -> None:
        while self._waiting:
            try:
                outcome = self._save(self._waiting[0])
            except GradebookLockedError:
                self._locked_at = time.monotonic()
                raise
            self._waiting.popleft()
            self._done(outcome)

    def _save(self, result: _Result) -> Outcome:
        task, unit = result.task, self._assignment.unit
        assert self._writer is not None
        same = bool(task.record) and task.record["submission"] == task.known.get("submission")
        unchanged = same and task.learner in self.graded
        when = task.submission.timestamp
        try:
            self._writer.save(unit, task.learner, result.verdict, when, self._assignment, unchanged=unchanged)
            # The gradebook first: where a run is cut off in between, the file says that it is to be graded again.
            write_graded(self._course, task.learner, unit, result.notebook, when)
        except GradebookLockedError:
            raise
        except GraderError as error:
            return Outcome(task.learner, error=str(error))
        except Exception as error:
            return Outcome(task.learner, error=f"the result could not be kept: {type(error).__name__}: {error}")
        return Outcome(task.learner, replace(result.verdict, notebook=None))


# --------------------------------------------------------------------------------------------------- workers


class _Pool:
    """Worker processes, each with a sandbox of its own. Messages are JSON and bytes, never pickles."""

    def __init__(self, assignment: Assignment, limits: Limits, sandbox: str, count: int) -> None:
        self._assignment = assignment
        self._limits = limits
        self._sandbox = sandbox
        self._count = count
        self._workers: list[_Worker] = []
        self._again: deque[_Task] = deque()

    def __enter__(self) -> "_Pool":
        return self

    def __exit__(self, *details: object) -> None:
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.close()

    def start(self, most: int) -> None:
        """Start workers, of which no more than ``most`` will have work."""
        while len(self._workers) < min(self._count, most):
            self._add()

    def fill(self, tasks: Iterator[_Task]) -> None:
        """Give every worker a task, and one to go on with, so that none waits for this process."""
        for ahead in (1, AHEAD):
            while len(self._workers) < self._count or any(len(worker.tasks) < ahead for worker in self._workers):
                task = self._again.popleft() if self._again else next(tasks, None)
                if task is None:
                    return
                self._free(ahead).give(task)

    def run(self, tasks: Iterator[_Task]) -> Iterator[_Result]:
        """Results as they come. More workers are started as there is work for them."""
        while True:
            self.fill(tasks)
            busy = [worker for worker in self._workers if worker.tasks]
            if not busy:
                return
            for worker in self._ready(busy):
                result = self._take(worker)
                if result is not None:
                    yield result

    def _free(self, ahead: int) -> "_Worker":
        for worker in self._workers:
            if len(worker.tasks) < ahead:
                return worker
        return self._add()

    def _add(self) -> "_Worker":
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
        taken = {worker.core for worker in self._workers}
        core = next((core for core in cores if core not in taken), None) if self._count <= len(cores) else None
        self._workers.append(_Worker(self._assignment, self._limits, self._sandbox, core))
        return self._workers[-1]

    def _ready(self, busy: "list[_Worker]") -> "list[_Worker]":
        """The workers that have something to say, have died, or have taken too long."""
        left = min(worker.deadline for worker in busy) - time.monotonic()
        there = set(wait([worker.connection for worker in busy], max(0.0, left)))
        now = time.monotonic()
        return [worker for worker in busy if worker.connection in there or now >= worker.deadline]

    def _take(self, worker: "_Worker") -> _Result | None:
        try:
            if not worker.connection.poll():
                raise TimeoutError
            header = json.loads(worker.connection.recv_bytes())
            if "no_sandbox" in header:
                raise NoSandboxError(header["no_sandbox"])
            notebook = worker.connection.recv_bytes()
        except (EOFError, OSError) as error:
            self._workers.remove(worker)
            task = worker.tasks.popleft()
            self._again.extend(worker.tasks)
            worker.close()
            return self._lost(task, timed_out=isinstance(error, TimeoutError))
        task = worker.done()
        verdict = _decoded(header)
        if header["trouble"] and task.tries < TRIES:
            self._again.append(task)
            return None
        return _Result(task, verdict, notebook)

    def _lost(self, task: _Task, *, timed_out: bool) -> _Result | None:
        """A worker is gone: another one tries, or the submission gets a verdict."""
        if task.tries < TRIES:
            self._again.append(task)
            return None
        what = "took far too long" if timed_out else "was ended from outside, or by a fault of its own"
        verdict = replace(
            _broken(self._assignment, f"the process that graded it {what}"),
            status=TIMED_OUT if timed_out else CRASHED,
        )
        # Without a record it is graded again the next time.
        task.record = {}
        return _result(task, self._assignment, verdict)


def missing(assignment: Assignment) -> Verdict:
    """The verdict on a submission that is missing, for which no sandbox is asked."""
    return grade(assignment, None, Limits(), cast(Sandbox, None))


def unreadable(assignment: Assignment, error: UnreadableError) -> Verdict:
    """The verdict on a submission that is there and is no file to be graded."""
    said = f"What was handed in {error}."
    return replace(missing(assignment), status=UNREADABLE, learner=said, instructor=f"{said} Nothing was run.")


def _broken(assignment: Assignment, reason: str) -> Verdict:
    return replace(
        missing(assignment),
        status=CRASHED,
        learner="Your notebook could not be graded; your instructor knows.",
        instructor=f"Not graded, because {reason}. It is tried again the next time that this unit is graded.",
    )


@dataclass
class _Worker:
    """A worker process at its work; it has a core of its own where there is one for each.

    Passing a message to a process on another core wakes that core up, which takes longer than most messages.
    """

    assignment: Assignment
    limits: Limits
    sandbox: str
    core: int | None = None
    tasks: deque[_Task] = field(default_factory=deque)
    deadline: float = 0.0
    _fresh: bool = True
    connection: Connection = field(init=False)
    process: Any = field(init=False)

    def __post_init__(self) -> None:
        context = multiprocessing.get_context("forkserver")
        self.connection, theirs = context.Pipe()
        setup = (theirs, _packed(self.assignment), self.limits, self.sandbox, self.core)
        self.process = context.Process(target=_work, args=setup, daemon=True, name="ffn-grader")
        with _one_thread():
            self.process.start()
        theirs.close()

    def give(self, task: _Task) -> None:
        """Let it grade a submission, after those that it has."""
        self.tasks.append(task)
        if len(self.tasks) == 1:
            self._begin()
        header = {
            "record": task.record,
            "notes": [asdict(note) for note in task.submission.notes],
        }
        # A worker that has died is noticed when its answer is read.
        with contextlib.suppress(OSError):
            self.connection.send_bytes(json.dumps(header).encode())
            self.connection.send_bytes(task.submission.data)

    def done(self) -> _Task:
        """The task that it was at, off the list."""
        task = self.tasks.popleft()
        self._fresh = False
        if self.tasks:
            self._begin()
        return task

    def _begin(self) -> None:
        self.tasks[0].tries += 1
        allowed = self.limits.total_seconds + GRACE_SECONDS + (START_SECONDS if self._fresh else 0.0)
        self.deadline = time.monotonic() + allowed

    def close(self) -> None:
        """End the process; its sandbox ends with it."""
        self.connection.close()
        self.process.join(0.0 if self.tasks else 2.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.process.close()


def _prepare_workers() -> None:
    """Let a process import what all workers need, in the background; they will be forks of it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", __name__, "nbformat.v4", "ffn.exercise"])
    with _one_thread():
        forkserver.ensure_running()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started meanwhile compute in one thread each: there are as many of them as cores."""
    before = os.environ.get("OPENBLAS_NUM_THREADS")
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["OPENBLAS_NUM_THREADS"]
        else:
            os.environ["OPENBLAS_NUM_THREADS"] = before


@dataclass(frozen=True)
class _Packed:
    """An assignment on its way to a worker."""

    unit: str
    reference: bytes
    files: tuple[tuple[str, bytes], ...]
    modules: tuple[str, ...]

    def assignment(self) -> Assignment:
        from nbformat.v4 import reads_json

        return Assignment(self.unit, reads_json(self.reference), self.files)  # type: ignore[no-untyped-call]

    def sandbox(self, limits: Limits, mode: str) -> Sandbox:
        return Sandbox(limits, self.files, mode, modules=self.modules, wait=False)


def _packed(assignment: Assignment) -> _Packed:
    return _Packed(assignment.unit, notebook_bytes(assignment.reference), assignment.files, assignment.modules)


def _work(
    connection: Connection,
    packed: _Packed,
    limits: Limits,
    mode: str,
    core: int | None,
) -> None:
    """A worker's life: grade what comes until nothing comes any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if core is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
    warm: Sandbox | None = None
    try:
        with contextlib.suppress(NoSandboxError):
            # It gets ready while this process does.
            warm = packed.sandbox(limits, mode)
        assignment = packed.assignment()
        gc.freeze()
        while True:
            header = json.loads(connection.recv_bytes())
            data = connection.recv_bytes()
            trouble = ""
            try:
                if warm is None:
                    warm = packed.sandbox(limits, mode)
                warm.wait()
            except NoSandboxError as error:
                connection.send_bytes(json.dumps({"no_sandbox": error.reason}).encode())
                return
            try:
                verdict = grade(assignment, data, limits, warm)
                notes = tuple(Note(**note) for note in header["notes"])
                notebook = _valid(graded_notebook(assignment, noted(verdict, notes), header["record"]))
                verdict = noted(verdict, notes)
            except Exception as error:
                # Its sandbox has ended, or there is a fault in the grader; both are tried again with a new sandbox.
                trouble = f"{type(error).__name__}: {error}"
                verdict = _broken(assignment, f"the grader had a fault ({trouble})")
                notebook = notebook_bytes(graded_notebook(assignment, verdict))
                with contextlib.suppress(Exception):
                    warm.close()
                warm = None
            connection.send_bytes(_encoded(verdict, trouble))
            connection.send_bytes(notebook)
    except (EOFError, OSError):
        pass
    finally:
        if warm is not None:
            warm.close()


def _valid(notebook: Any) -> bytes:
    """A graded notebook's bytes; raises where nbgrader could not read it."""
    import nbformat

    nbformat.validate(notebook)
    return notebook_bytes(notebook)


def _encoded(verdict: Verdict, trouble: str) -> bytes:
    plain = {key: value for key, value in vars(verdict).items() if key != "notebook"}
    plain["results"] = [asdict(result) for result in verdict.results]
    plain["notes"] = [asdict(note) for note in verdict.notes]
    keys = ("cell_type", "source", "metadata")
    answers = None
    if verdict.notebook is not None:
        answers = [{key: cell[key] for key in keys} for cell in answers_of(verdict.notebook).values()]
    return json.dumps({"verdict": plain, "answers": answers, "trouble": trouble}).encode()


def _decoded(message: dict[str, Any]) -> Verdict:
    plain = message["verdict"]
    plain["results"] = tuple(TestResult(**result) for result in plain["results"])
    plain["notes"] = tuple(Note(**note) for note in plain["notes"])
    plain["flags"] = tuple(plain["flags"])
    answers = message["answers"]
    return Verdict(**plain, notebook=None if answers is None else {"cells": answers})
