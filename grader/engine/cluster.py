"""The Dask cluster that grades: in this process, or behind a scheduler elsewhere; both get the same tasks.

A bounded number of tasks is under way, so memory does not grow with the class. The bytes of a submission travel with
its task: workers share no disk with this machine.
"""

import contextlib
import importlib
import json
import logging
import queue
import re
import tempfile
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from grader.engine import tasks
from grader.engine.process import Answer, Job, Package
from grader.exceptions import (
    NoWorkersError,
    SchedulerLostError,
    SchedulerUnreachableError,
    WorkerDiffersError,
    WorkerFailedError,
)

__all__ = ["Cluster", "Work"]

CONNECT_SECONDS = 10.0
WORKER_SECONDS = 30.0
AHEAD = 2
MOST_JOBS = 32  # what of them is not begun after some seconds comes back
MOST_BYTES = 1_000_000
TRIES = 3
_LOOK_SECONDS = 5.0
_CONFIG: dict[str, object] = {
    # A machine that slept has lost nobody.
    "distributed.scheduler.worker-ttl": None,
    "distributed.worker.profile.enabled": False,
    "distributed.worker.http.routes": [],
    "distributed.scheduler.http.routes": [],
    "distributed.admin.large-graph-warning-threshold": "1 GiB",
    # Its logs of messages would keep the submissions of thousands.
    "distributed.admin.low-level-log-length": 10,
    # Looking after itself fifty times a second is not for free.
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS:g}s",
}

T = TypeVar("T")


@dataclass
class Work(Generic[T]):
    """A job, and what it is about."""

    job: Job
    about: T
    alone: bool = False
    tries: int = 0


class Cluster:
    """Where a run's submissions are graded, by ``workers`` at a time or by all that a scheduler has.

    Use it as a context manager; ``prepare`` begins to start what takes time.
    """

    def __init__(self, package: Package, workers: int, scheduler: str | None = None) -> None:
        self._package = package
        self._workers = workers
        self._scheduler = scheduler
        self._client: Any = None
        self._kept: Any = None
        self._open = contextlib.ExitStack()
        self._threads = workers
        self._flying: dict[Any, list[Work[Any]]] = {}
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._again: deque[Work[Any]] = deque()
        self._number = 0
        self._seen = time.monotonic()
        self._looked = 0.0
        self._importing = threading.Thread(target=_imported, daemon=True)

    def __enter__(self) -> "Cluster":
        """The cluster itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End what the run has started."""
        self.close()

    def prepare(self, most: int) -> None:
        """Let Dask be imported, and grading processes of this machine start: no more than have work."""
        if self._scheduler is None and most:
            tasks.start(self._package, min(self._workers, most))
        if most and not self._importing.ident:
            self._importing.start()

    def wait_for_import(self) -> None:
        """Wait until Dask is imported, where that is under way."""
        if self._importing.ident:
            self._importing.join()

    def run(self, work: Iterator[Work[T]], left: Callable[[], int]) -> Iterator[tuple[T, Answer]]:
        """What became of each job, as it comes; ``left`` tells about how many are still to come.

        Raises:
            SchedulerUnreachableError, NoWorkersError: there is no cluster at the scheduler's address.
            WorkerDiffersError, WorkerFailedError: a worker that would grade otherwise, or cannot grade.
            SchedulerLostError: the scheduler went away meanwhile.
        """
        while True:
            self._fill(work, left)
            if not self._flying:
                return
            future = self._next()
            flown = self._flying.pop(future.key)
            answers = self._answers(future, flown)
            del future
            self._fill(work, left)
            for item, answer in zip(flown, answers, strict=True):
                if answer.kind == tasks.UNDONE:
                    self._again.append(item)
                else:
                    yield item.about, answer

    def _fill(self, work: Iterator[Work[Any]], left: Callable[[], int]) -> None:
        """Have enough tasks under way that no worker waits for this process."""
        while len(self._flying) < AHEAD * self._threads:
            batch = self._batch(work, left)
            if not batch:
                return
            self._submit(batch)

    def _batch(self, work: Iterator[Work[Any]], left: Callable[[], int]) -> list[Work[Any]]:
        """Some jobs for one task; fewer towards the end, so that all workers end together."""
        most = min(MOST_JOBS, max(1, left() // (2 * AHEAD * self._threads)))
        batch: list[Work[Any]] = []
        size = 0
        while len(batch) < most and size < MOST_BYTES:
            item = self._again.popleft() if self._again else next(work, None)
            if item is None:
                break
            if item.alone and batch:
                self._again.appendleft(item)
                break
            batch.append(item)
            size += len(item.job.data)
            if item.alone:
                break
        return batch

    def _submit(self, batch: list[Work[Any]]) -> None:
        if self._client is None:
            self._connect()
        self._number += 1
        future = self._client.submit(
            tasks.run,
            self._kept,
            tasks.Jobs(tuple(item.job for item in batch)),
            key=("grade", self._package.key, self._number),
            pure=False,
        )
        self._flying[future.key] = batch
        future.add_done_callback(self._done.put)

    # ------------------------------------------------------------------------------------------- what comes back

    def _next(self) -> Any:
        """The next task that is over."""
        while True:
            try:
                future = self._done.get(timeout=1.0)
            except queue.Empty:
                self._look()
                continue
            if future.key in self._flying:
                self._seen = time.monotonic()
                return future

    def _answers(self, future: Any, flown: list[Work[Any]]) -> list[Answer]:
        from distributed import KilledWorker

        if future.status in ("cancelled", "lost"):
            raise SchedulerLostError(self._address)
        try:
            answers: list[Answer] = future.result(timeout=CONNECT_SECONDS)
        except KilledWorker:
            # Workers died of these jobs, or of something else; each of them may show it by itself.
            return [self._again_alone(item, tasks.DIED) for item in flown]
        except OSError as error:
            if self._lost():
                raise SchedulerLostError(self._address) from error
            return [self._failed(item, error) for item in flown]
        except Exception as error:
            if self._lost():
                raise SchedulerLostError(self._address) from error
            raise WorkerFailedError(self._address, _said(error)) from error
        refused = next((answer for answer in answers if answer.kind == tasks.REFUSED), None)
        if refused is not None:
            said = json.loads(refused.header)
            self._require_same(said["worker"], said["environment"])
        return answers

    def _again_alone(self, item: Work[Any], kind: str) -> Answer:
        """A job that goes once more, in a task of its own; there is no second time."""
        if item.alone:
            return Answer(kind)
        item.alone = True
        return Answer(tasks.UNDONE)

    def _failed(self, item: Work[Any], error: OSError) -> Answer:
        """A worker's system had no room or no processes left: it goes to another one, a few times."""
        item.tries += 1
        if item.tries > TRIES:
            raise WorkerFailedError(self._address, _said(error)) from error
        return Answer(tasks.UNDONE)

    def _look(self) -> None:
        """See whether scheduler and workers are still there, when nothing has come for a while."""
        if self._lost():
            raise SchedulerLostError(self._address)
        now = time.monotonic()
        if self._scheduler is None or now - self._looked < _LOOK_SECONDS:
            return
        self._looked = now
        try:
            threads = sum(self._client.nthreads().values())
        except Exception as error:
            raise SchedulerLostError(self._address) from error
        if threads:
            self._threads, self._seen = threads, now
        elif now - self._seen > WORKER_SECONDS:
            raise NoWorkersError(self._address, WORKER_SECONDS)

    def _lost(self) -> bool:
        return self._client is None or self._client.status != "running"

    @property
    def _address(self) -> str:
        return self._scheduler or "of this machine"

    # -------------------------------------------------------------------------------------------- opening, closing

    def _connect(self) -> None:
        if not self._importing.ident:
            self._importing.start()
        self._importing.join()
        import dask
        from distributed import Client

        self._open.enter_context(dask.config.set(_CONFIG))
        if self._scheduler is None:
            self._client = self._open.enter_context(Client(self._local(), set_as_default=False))  # type: ignore[no-untyped-call]
        else:
            self._client = self._remote()
            self._compare()
        # A task, and no scattered data: those cannot be made again when the worker that has them is lost.
        self._kept = self._client.submit(tasks.keep, self._package, key=f"package-{self._package.key}", pure=False)

    def _local(self) -> Any:
        from grader.engine.local import local_cluster

        folder = self._open.enter_context(tempfile.TemporaryDirectory(prefix="ffn-dask-"))
        return self._open.enter_context(local_cluster(self._workers, folder))

    def _remote(self) -> Any:
        from distributed import Client

        with warnings.catch_warnings():
            # Versions are compared below, with what to do.
            warnings.simplefilter("ignore")
            try:
                return self._open.enter_context(
                    Client(  # type: ignore[no-untyped-call]
                        self._scheduler, timeout=CONNECT_SECONDS, set_as_default=False
                    )
                )
            except Exception as error:
                reason = str(error) or type(error).__name__
                raise SchedulerUnreachableError(self._address, reason) from error

    def _compare(self) -> None:
        """See that workers are there, and that verdicts come out there as they would here."""
        try:
            self._client.wait_for_workers(1, timeout=CONNECT_SECONDS)
            self._threads = sum(self._client.nthreads().values())
            found = self._client.run(tasks.environment, on_error="return")
        except TimeoutError as error:
            raise NoWorkersError(self._address, CONNECT_SECONDS) from error
        except Exception as error:
            if self._lost():
                raise SchedulerLostError(self._address) from error
            raise WorkerFailedError(self._address, _said(error)) from error
        for worker, theirs in sorted(found.items()):
            if isinstance(theirs, BaseException):
                raise WorkerFailedError(worker, _said(theirs)) from theirs
            self._require_same(worker, theirs)

    def _require_same(self, worker: str, theirs: Iterable[tuple[str, str]]) -> None:
        there = dict(theirs)
        for name, mine in tasks.environment():
            if there.get(name) != mine:
                raise WorkerDiffersError(worker, name, there.get(name, "missing"), mine)

    def close(self) -> None:
        """End grading processes, tasks, and what of Dask runs in this process."""
        if self._scheduler is None:
            # First, so that no thread waits for them any more.
            tasks.close(self._package.key)
        elif self._client is not None and not self._lost():
            with contextlib.suppress(Exception):
                self._client.cancel(list(self._flying), force=True)
                self._client.run(tasks.close, self._package.key, on_error="ignore")
        self._flying.clear()
        self._kept = None
        with contextlib.suppress(Exception):
            self._open.close()
        self._client = None


def _imported() -> None:
    """Import Dask; what it logs of connections that come and go is for no person's terminal."""
    importlib.import_module("distributed")
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(("distributed", "tornado", "asyncio")):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _said(error: BaseException) -> str:
    """An error in words; one that Dask wrapped in another one as itself."""
    wrapped = re.fullmatch(r"""(\w+)\(["'](.*)["']\)""", str(error), re.DOTALL)
    return f"{wrapped[1]}: {wrapped[2]}" if wrapped else f"{type(error).__name__}: {error}"
