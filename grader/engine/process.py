"""A grading process: warm, with a sandbox of its own, it takes submissions as bytes and gives verdicts as bytes.

Nothing that crosses to it or back is a pickle but the assignment, which is the instructor's. It is a fork of a server
that has imported what all of them need.
"""

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from typing import Any, cast

from grader.engine.grade import grade
from grader.engine.restore import Assignment
from grader.engine.sandbox import Sandbox
from grader.engine.store import answers_of, graded_notebook, notebook_bytes, valid_bytes
from grader.engine.verdict import CRASHED, GRADED, REPAIRED, Limits, Note, TestResult, Verdict
from grader.exceptions import NoSandboxError

__all__ = [
    "FAULT",
    "NO_SANDBOX",
    "VERDICT",
    "Answer",
    "GradingProcess",
    "Job",
    "Package",
    "broken",
    "decoded",
    "encoded",
    "missing",
    "noted",
    "package",
    "prepare",
]

START_SECONDS = 120.0
GRACE_SECONDS = 30.0
_PIPE_SECONDS = 60
_FITS_THE_PIPE = 100_000

VERDICT = "verdict"
FAULT = "fault"
NO_SANDBOX = "no sandbox"

_starting = threading.Lock()


@dataclass(frozen=True)
class Package:
    """An assignment on its way to where it is graded, and how: ``key`` names the run that it belongs to.

    ``environment`` is what the machine that grades has to have, by name; empty for this very machine.
    """

    key: str
    unit: str
    reference: bytes
    files: tuple[tuple[str, bytes], ...]
    modules: tuple[str, ...]
    limits: Limits
    mode: str
    environment: tuple[tuple[str, str], ...] = ()

    def assignment(self) -> Assignment:
        """The assignment again."""
        from nbformat.v4 import reads_json

        return Assignment(self.unit, reads_json(self.reference), self.files)  # type: ignore[no-untyped-call]

    def sandbox(self) -> Sandbox:
        """A sandbox for it, which goes on starting meanwhile."""
        return Sandbox(self.limits, self.files, self.mode, modules=self.modules, wait=False)


def package(
    key: str, assignment: Assignment, limits: Limits, mode: str, environment: tuple[tuple[str, str], ...] = ()
) -> Package:
    """Pack an assignment."""
    reference = notebook_bytes(assignment.reference)
    return Package(
        key, assignment.unit, reference, assignment.files, assignment.modules, limits, mode, environment
    )


@dataclass(frozen=True)
class Job:
    """A submission to grade: its bytes, the notes on its files and what is to be recorded of it as JSON."""

    header: bytes
    data: bytes

    @property
    def goes_ahead(self) -> bool:
        """Whether it can lie in the pipe of a process that is still busy: a longer one would block both of them."""
        return len(self.header) + len(self.data) < _FITS_THE_PIPE


@dataclass(frozen=True)
class Answer:
    """What became of a job: ``kind`` says what; a verdict, in JSON, and the graded notebook."""

    kind: str
    header: bytes = b""
    notebook: bytes = b""


class GradingProcess:
    """A process at its work; it has a core of its own where there is one for each.

    Passing a message to a process on another core wakes that core up, which takes longer than most messages.
    """

    def __init__(self, package: Package, core: int | None = None) -> None:
        self.core = core
        self._seconds = package.limits.total_seconds + GRACE_SECONDS
        self._allowed = self._seconds + START_SECONDS
        context = multiprocessing.get_context("forkserver")
        self._connection, theirs = context.Pipe()
        _never_wait_for_ever(self._connection)
        self._process = context.Process(target=_work, args=(theirs, package, core), daemon=True, name="ffn-grader")
        try:
            with _starting, _one_thread(), _may_have_children():
                self._process.start()
        except BaseException:
            self._connection.close()
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        """The number that the system knows it by."""
        return int(self._process.pid or 0)

    def ask(self, job: Job) -> None:
        """Give it a job, after those that it has. That it has died is told by its answer."""
        with contextlib.suppress(OSError):
            self._connection.send_bytes(job.header)
            self._connection.send_bytes(job.data)

    def answer(self) -> Answer:
        """Its answer to the first of its jobs.

        Raises:
            TimeoutError: it took far longer than it may.
            EOFError, OSError: it has died.
        """
        allowed, self._allowed = self._allowed, self._seconds
        if not self._connection.poll(allowed):
            raise TimeoutError
        kind = self._connection.recv_bytes().decode()
        return Answer(kind, self._connection.recv_bytes(), self._connection.recv_bytes())

    def hang_up(self) -> None:
        """Let it end by itself; ``close`` waits for that."""
        self._connection.close()

    def close(self, *, at_once: bool = False) -> None:
        """End it; its sandbox ends with it."""
        self.hang_up()
        self._process.join(0.0 if at_once else 2.0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()

    def kill(self) -> None:
        """End it from another thread than the one that waits for its answer, which then hears of it."""
        with contextlib.suppress(ValueError, OSError):
            self._process.kill()


def prepare() -> None:
    """Let a process import what all grading processes need, in the background; they will be forks of it."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", __name__, "nbformat.v4", "ffn.exercise"])
    with _starting, _one_thread():
        forkserver.ensure_running()


def _never_wait_for_ever(connection: Connection) -> None:
    """Let a message that is begun fail where the other side stops in the middle of it."""
    if not hasattr(socket, "SO_RCVTIMEO"):
        return
    most = struct.pack("ll", _PIPE_SECONDS, 0)
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, most)
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, most)


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


@contextlib.contextmanager
def _may_have_children() -> Iterator[None]:
    """A process of `dask worker` is daemonic, to which multiprocessing gives no children; ours end with their pipe."""
    config = cast(dict[str, Any], getattr(multiprocessing.current_process(), "_config", {}))
    daemonic = config.pop("daemon", None)
    try:
        yield
    finally:
        if daemonic is not None:
            config["daemon"] = daemonic


# ------------------------------------------------------------------------------------- inside of the process


def _work(connection: Connection, package: Package, core: int | None) -> None:
    """A grading process's life: grade what comes until nothing comes any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if core is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, {core})
    desk = _Desk(package)
    try:
        desk.begin()
        gc.freeze()
        while True:
            answer = desk.answer(Job(connection.recv_bytes(), connection.recv_bytes()))
            connection.send_bytes(answer.kind.encode())
            connection.send_bytes(answer.header)
            connection.send_bytes(answer.notebook)
            if answer.kind == NO_SANDBOX:
                return
    except (EOFError, OSError):
        pass
    finally:
        desk.close()


class _Desk:
    """The assignment and the warm sandbox of a grading process."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._sandbox: Sandbox | None = None

    def begin(self) -> None:
        """Let the sandbox start, and read the assignment meanwhile."""
        with contextlib.suppress(NoSandboxError):
            self._sandbox = self._package.sandbox()
        self._assignment = self._package.assignment()

    def answer(self, job: Job) -> Answer:
        """Grade a submission."""
        try:
            if self._sandbox is None:
                self._sandbox = self._package.sandbox()
            self._sandbox.wait()
        except NoSandboxError as error:
            return Answer(NO_SANDBOX, error.reason.encode())
        try:
            return Answer(VERDICT, *self._graded(self._sandbox, job))
        except Exception as error:
            # Its sandbox has ended, or there is a fault in the grader; both are tried again with a new sandbox.
            verdict = broken(self._assignment, f"the grader had a fault ({type(error).__name__}: {error})")
            self.close()
            return Answer(FAULT, encoded(verdict), notebook_bytes(graded_notebook(self._assignment, verdict)))

    def _graded(self, sandbox: Sandbox, job: Job) -> tuple[bytes, bytes]:
        asked = json.loads(job.header)
        verdict = grade(self._assignment, job.data, self._package.limits, sandbox)
        verdict = noted(verdict, tuple(Note(**note) for note in asked["notes"]))
        return encoded(verdict), valid_bytes(graded_notebook(self._assignment, verdict, asked["record"]))

    def close(self) -> None:
        """End the sandbox."""
        if self._sandbox is not None:
            with contextlib.suppress(Exception):
                self._sandbox.close()
            self._sandbox = None


# -------------------------------------------------------------------------------------------------- verdicts


def missing(assignment: Assignment) -> Verdict:
    """The verdict on a submission that is missing, for which no sandbox is asked."""
    return grade(assignment, None, Limits(), cast(Sandbox, None))


def broken(assignment: Assignment, reason: str) -> Verdict:
    """The verdict on a submission that could not be graded, through no fault that is known to be its own."""
    return replace(
        missing(assignment),
        status=CRASHED,
        learner="Your notebook could not be graded; your instructor knows.",
        instructor=f"Not graded, because {reason}. It is tried again the next time that this unit is graded.",
    )


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


def encoded(verdict: Verdict) -> bytes:
    """A verdict as JSON, with the answers alone as its notebook."""
    plain = {key: value for key, value in vars(verdict).items() if key != "notebook"}
    plain["results"] = [asdict(result) for result in verdict.results]
    plain["notes"] = [asdict(note) for note in verdict.notes]
    keys = ("cell_type", "source", "metadata")
    answers = None
    if verdict.notebook is not None:
        answers = [{key: cell[key] for key in keys} for cell in answers_of(verdict.notebook).values()]
    return json.dumps({"verdict": plain, "answers": answers}).encode()


def decoded(data: bytes) -> Verdict:
    """The verdict of what ``encoded`` gave."""
    message = json.loads(data)
    plain = message["verdict"]
    plain["results"] = tuple(TestResult(**result) for result in plain["results"])
    plain["notes"] = tuple(Note(**note) for note in plain["notes"])
    plain["flags"] = tuple(plain["flags"])
    plain["timings"] = tuple((str(name), float(seconds)) for name, seconds in plain.get("timings", ()))
    answers = message["answers"]
    return Verdict(**plain, notebook=None if answers is None else {"cells": answers})
