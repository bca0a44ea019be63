"""What a Dask worker runs: it keeps grading processes warm and lets them grade what comes with a task.

The worker may be this very process or one on another machine. No learner code runs in it: that is what the grading
processes, and the sandboxes that they keep, are for.
"""

import hashlib
import json
import os
import platform
import threading
import time
from collections import deque
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from grader.engine.process import FAULT, Answer, GradingProcess, Job, Package, prepare

__all__ = [
    "DIED",
    "REFUSED",
    "TOO_LONG",
    "UNDONE",
    "Jobs",
    "close",
    "cores",
    "environment",
    "keep",
    "run",
    "start",
]

TRIES = 2
TASK_SECONDS = 3.0
IDLE_SECONDS = 60.0

UNDONE = "undone"
TOO_LONG = "too long"
DIED = "died"
REFUSED = "refused"

_PACKAGES = ("numpy", "nbformat", "ipython", "matplotlib", "distributed")
_ROOT = Path(__file__).resolve().parents[2]


class Jobs:
    """Some jobs as one object, into which Dask does not look."""

    def __init__(self, jobs: tuple[Job, ...]) -> None:
        self.jobs = jobs


def keep(package: Package) -> Package:
    """The assignment, kept by Dask; where the worker that has it is lost, Dask asks for it again."""
    return package


def run(package: Package, jobs: Jobs) -> list[Answer]:
    """Grade submissions one after another; what was not begun after some seconds comes back undone.

    So a submission that takes minutes holds up no others, and what is short costs Dask's round trip only once for many.
    """
    if package.environment and package.environment != environment():
        # It joined the cluster when the others had been looked at.
        said = json.dumps({"worker": _worker(), "environment": environment()})
        return [Answer(REFUSED, said.encode())] * len(jobs.jobs)
    return _pool(package).grade(jobs.jobs)


def start(package: Package, count: int) -> None:
    """Start grading processes in this process, before there are tasks for them."""
    _pool(package).start(count)


def close(key: str) -> None:
    """End the grading processes of a run; those who wait for one get their jobs back undone."""
    with _lock:
        pool = _pools.pop(key, None)
    if pool is not None:
        pool.close()


def cores() -> int:
    """Cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


@cache
def environment() -> tuple[tuple[str, str], ...]:
    """What a verdict may depend on: Python, packages, and the course's own code."""
    found = [("Python", ".".join(platform.python_version_tuple()[:2]))]
    found += [(name, _version(name)) for name in _PACKAGES]
    return (*found, ("the code of grader and ffn", _code()))


def _worker() -> str:
    from distributed import get_worker

    return str(get_worker().address)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"


def _code() -> str:
    """A digest of the sources; what is beside them, such as results of grading, does not count."""
    own = hashlib.sha256()
    for package in ("ffn", "grader"):
        folder = _ROOT / package
        files = [*folder.rglob("*.py"), *folder.glob("*.toml"), *folder.glob("data/*.toml")]
        for path in sorted(path for path in files if "var" not in path.relative_to(folder).parts[:1]):
            own.update(path.relative_to(_ROOT).as_posix().encode() + b"\0")
            own.update(hashlib.sha256(path.read_bytes()).digest())
    return own.hexdigest()[:16]


# ---------------------------------------------------------------------------------------- grading processes


class _Pool:
    """The grading processes of a run in this process; whoever takes one has it alone."""

    def __init__(self, package: Package) -> None:
        self._package = package
        self._lock = threading.Lock()
        self._free: list[GradingProcess] = []
        self._all: set[GradingProcess] = set()
        self._closed = False
        self._used = time.monotonic()
        self._count = cores()
        prepare()
        if package.environment:
            threading.Thread(target=self._end_when_idle, daemon=True).start()

    def start(self, count: int) -> None:
        """Have some ready."""
        self._count = count
        for _ in range(count):
            self.give_back(self._add())

    def grade(self, jobs: tuple[Job, ...]) -> list[Answer]:
        """Answers to jobs, by one process, or by the next one where it dies."""
        return _Lane(self, jobs).answers()

    def take(self) -> GradingProcess:
        """A free process, or a new one.

        Raises:
            OSError: the system gives no further process.
        """
        with self._lock:
            self._used = time.monotonic()
            if self._free:
                return self._free.pop(0)
        return self._add()

    def _add(self) -> GradingProcess:
        process = GradingProcess(self._package, self._core())
        with self._lock:
            self._all.add(process)
            closed = self._closed
        if closed:
            process.kill()
        return process

    def _core(self) -> int | None:
        """A core that no other process has; none where there are more processes than cores, or other Dask workers."""
        if not hasattr(os, "sched_getaffinity") or self._package.environment:
            return None
        mine = sorted(os.sched_getaffinity(0))
        with self._lock:
            taken = {process.core for process in self._all}
        return next((core for core in mine if core not in taken), None) if self._count <= len(mine) else None

    def give_back(self, process: GradingProcess) -> None:
        """Let others have a process."""
        with self._lock:
            self._used = time.monotonic()
            if not self._closed:
                self._free.append(process)
                return
        self.drop(process, at_once=True)

    def drop(self, process: GradingProcess, *, at_once: bool) -> None:
        """Do without a process that has died, or is to."""
        with self._lock:
            self._all.discard(process)
        process.close(at_once=at_once)

    @property
    def closed(self) -> bool:
        """Whether the run is over."""
        return self._closed

    def close(self) -> None:
        """End all processes; those at work are killed, and whoever waits for them hears of it."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
            busy = self._all.difference(free)
        for process in busy:
            process.kill()
        for process in free:
            process.hang_up()
        for process in free:
            self.drop(process, at_once=False)

    def _end_when_idle(self) -> None:
        """Where the run's own process was killed, nobody says that it is over."""
        while not self._closed:
            time.sleep(IDLE_SECONDS / 4)
            with self._lock:
                idle = len(self._all) == len(self._free) and time.monotonic() - self._used > IDLE_SECONDS
            if idle:
                close(self._package.key)


class _Lane:
    """Jobs on their way through a process, one of them ahead so that it never waits."""

    def __init__(self, pool: _Pool, jobs: tuple[Job, ...]) -> None:
        self._pool = pool
        self._jobs = jobs
        self._left = deque(range(len(jobs)))
        self._asked: deque[int] = deque()
        self._tries = [0] * len(jobs)
        self._answers = [Answer(UNDONE)] * len(jobs)
        self._until = time.monotonic() + TASK_SECONDS

    def answers(self) -> list[Answer]:
        """All answers, in order."""
        process = self._pool.take()
        try:
            while self._ask(process):
                try:
                    self._settle(process.answer())
                except (EOFError, OSError) as error:
                    self._pool.drop(process, at_once=True)
                    if self._pool.closed:
                        return self._answers
                    self._lose(TOO_LONG if isinstance(error, TimeoutError) else DIED)
                    process = self._pool.take()
        except BaseException:
            self._pool.drop(process, at_once=True)
            raise
        self._pool.give_back(process)
        return self._answers

    def _ask(self, process: GradingProcess) -> bool:
        """Give the process work; whether it has any."""
        begun = any(self._tries)
        while self._left and len(self._asked) < 2:
            job = self._jobs[self._left[0]]
            first_try = self._tries[self._left[0]] == 0
            if begun and first_try and time.monotonic() > self._until:
                break
            if self._asked and not (job.goes_ahead and self._jobs[self._asked[0]].goes_ahead):
                break
            number = self._left.popleft()
            if not self._asked:
                self._tries[number] += 1
            self._asked.append(number)
            process.ask(job)
        return bool(self._asked)

    def _settle(self, answer: Answer) -> None:
        number = self._next()
        if answer.kind == FAULT and self._tries[number] < TRIES:
            self._left.appendleft(number)
        else:
            self._answers[number] = answer

    def _lose(self, how: str) -> None:
        """The process is gone: another one tries, and takes what lay ahead, too."""
        number = self._asked.popleft()
        self._left.extendleft(reversed(self._asked))
        self._asked.clear()
        if self._tries[number] < TRIES:
            self._left.appendleft(number)
        else:
            self._answers[number] = Answer(how)

    def _next(self) -> int:
        """The job that was answered; the one that lay ahead is under way now."""
        number = self._asked.popleft()
        if self._asked:
            self._tries[self._asked[0]] += 1
        return number


_lock = threading.Lock()
_pools: dict[str, _Pool] = {}


def _pool(package: Package) -> _Pool:
    with _lock:
        if package.key not in _pools:
            _pools[package.key] = _Pool(package)
        return _pools[package.key]
