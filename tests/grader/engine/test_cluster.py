"""Tasks to a Dask cluster and answers back: with a client that does as it is told, and with a real cluster."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.engine import cluster as module
from grader.engine import tasks
from grader.engine.batch import grade_unit
from grader.engine.cluster import AHEAD, MOST_BYTES, MOST_JOBS, Cluster, Work
from grader.engine.process import VERDICT, Answer, Job, Package
from grader.engine.verdict import Limits
from grader.exceptions import (
    NoWorkersError,
    SchedulerLostError,
    SchedulerUnreachableError,
    WorkerDiffersError,
    WorkerFailedError,
)
from tests.grader.engine.courses import UNIT, copied, rows
from tests.helpers import CourseCopy, free_port, said_once

PACKAGE = Package("a run", "gates", b"", (), (), Limits(), "none")
GOOD = Answer(VERDICT)
Deed = Callable[[tuple[Job, ...]], list[Answer]]


class Future:
    """A task that is over as soon as somebody asks for it."""

    def __init__(self, key: Any, deed: Callable[[], list[Answer]]) -> None:
        self.key = key
        self.status = "finished"
        self._deed = deed

    def add_done_callback(self, call: Callable[["Future"], None]) -> None:
        call(self)

    def result(self, timeout: float) -> list[Answer]:
        return self._deed()


class Client:
    """Does with each task what the script says, and grades when that has come to its end."""

    def __init__(self, *script: Deed) -> None:
        self.status = "running"
        self.script = list(script)
        self.sent: list[tuple[Job, ...]] = []
        self.futures: list[Future] = []

    def submit(self, function: object, package: object, jobs: tasks.Jobs, **more: Any) -> Future:
        self.sent.append(jobs.jobs)
        deed = self.script.pop(0) if self.script else graded
        future = Future(more["key"], lambda: deed(jobs.jobs))
        self.futures.append(future)
        return future

    def nthreads(self) -> dict[str, int]:
        return {}


def graded(jobs: tuple[Job, ...]) -> list[Answer]:
    return [GOOD] * len(jobs)


def undone(jobs: tuple[Job, ...]) -> list[Answer]:
    return [GOOD, *[Answer(tasks.UNDONE)] * (len(jobs) - 1)]


def no_room(jobs: tuple[Job, ...]) -> list[Answer]:
    raise OSError("no room")


def killed(jobs: tuple[Job, ...]) -> list[Answer]:
    from distributed import KilledWorker

    raise KilledWorker("a task", None, 3)


def broken(jobs: tuple[Job, ...]) -> list[Answer]:
    raise RuntimeError("""ModuleNotFoundError("No module named 'ffn'")""")


def a_cluster(client: Client, scheduler: str | None = None) -> Cluster:
    made = Cluster(PACKAGE, 2, scheduler)
    made._client = client
    return made


def results(client: Client, count: int, size: int = 10, scheduler: str | None = None) -> dict[int, str]:
    work = [Work(Job(b"", b"x" * size), number) for number in range(count)]
    waiting = iter(work)
    taken = [0]

    def some() -> Iterator[Work[int]]:
        for item in waiting:
            taken[0] += 1
            yield item

    found = list(a_cluster(client, scheduler).run(some(), lambda: count - taken[0]))
    assert len(found) == len(dict(found))
    return {number: answer.kind for number, answer in found}


def test_every_job_is_answered_once_with_several_in_a_task() -> None:
    client = Client()
    assert results(client, 400) == dict.fromkeys(range(400), VERDICT)
    sizes = [len(jobs) for jobs in client.sent]
    assert sizes[0] == MOST_JOBS
    assert sizes[-1] == 1


def test_a_small_class_is_shared_by_all_workers() -> None:
    client = Client()
    results(client, 4)
    assert [len(jobs) for jobs in client.sent] == [1] * 4


def test_no_more_is_read_than_is_under_way() -> None:
    read = [0]

    def endless() -> Iterator[Work[int]]:
        while True:
            read[0] += 1
            yield Work(Job(b"", b""), read[0])

    answers = a_cluster(Client()).run(endless(), lambda: 10_000)
    for _ in range(100):
        next(answers)
    assert read[0] <= 100 + (AHEAD * 2 + 1) * MOST_JOBS


def test_what_is_large_travels_with_few_others() -> None:
    client = Client()
    results(client, 100, MOST_BYTES)
    assert [len(jobs) for jobs in client.sent] == [1] * 100


def test_what_comes_back_undone_is_sent_again() -> None:
    client = Client(undone, undone)
    assert results(client, 100) == dict.fromkeys(range(100), VERDICT)


def test_of_jobs_of_which_workers_died_each_is_tried_by_itself() -> None:
    client = Client(killed)
    assert results(client, 400) == dict.fromkeys(range(400), VERDICT)
    assert [len(jobs) for jobs in client.sent].count(1) >= MOST_JOBS


def test_a_job_of_which_workers_die_again_has_died() -> None:
    client = Client(killed, *[graded] * 3, killed)
    found = results(client, 4)
    assert sorted(found.values()) == [tasks.DIED, VERDICT, VERDICT, VERDICT]


def test_a_worker_without_room_is_asked_again_and_then_named() -> None:
    assert results(Client(*[no_room] * 3), 1) == {0: VERDICT}
    with pytest.raises(WorkerFailedError, match="no room"):
        results(Client(*[no_room] * 4), 1)


def test_a_worker_that_cannot_grade_is_named_with_the_reason() -> None:
    with pytest.raises(WorkerFailedError, match="cannot grade: ModuleNotFoundError: No module named 'ffn'; "):
        results(Client(broken), 1)


@pytest.mark.parametrize("how", ["cancelled", "lost"])
def test_tasks_that_are_cancelled_tell_of_a_lost_scheduler(how: str) -> None:
    class Lost(Client):
        def submit(self, *arguments: Any, **more: Any) -> Future:
            future = super().submit(*arguments, **more)
            future.status = how
            return future

    with pytest.raises(SchedulerLostError, match="the Dask scheduler tcp://a:1 was lost"):
        results(Lost(), 1, scheduler="tcp://a:1")


class Silent(Client):
    """Nothing ever comes back."""

    def submit(self, *arguments: Any, **more: Any) -> Future:
        future = super().submit(*arguments, **more)
        future.add_done_callback = lambda call: None  # type: ignore[method-assign]
        return future


def test_a_connection_that_is_gone_tells_of_a_lost_scheduler() -> None:
    client = Silent()
    client.status = "connecting"
    with pytest.raises(SchedulerLostError):
        results(client, 1, scheduler="tcp://a:1")


def test_a_cluster_whose_workers_are_all_gone_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WORKER_SECONDS", 0.0)
    with pytest.raises(NoWorkersError, match="the Dask scheduler tcp://a:1 has had no workers for 0 seconds; "):
        results(Silent(), 1, scheduler="tcp://a:1")


def test_a_worker_that_joined_with_other_packages_is_named() -> None:
    there = [(name, "0.1" if name == "numpy" else found) for name, found in tasks.environment()]
    said = json.dumps({"worker": "tcp://b:2", "environment": there}).encode()

    def refused(jobs: tuple[Job, ...]) -> list[Answer]:
        return [Answer(tasks.REFUSED, said)] * len(jobs)

    with pytest.raises(
        WorkerDiffersError, match=r"the Dask worker tcp://b:2 has numpy 0\.1, and this machine has 2\."
    ):
        results(Client(refused), 3)


# ---------------------------------------------------------------------------------------------- a real cluster

WITHOUT_GRADER = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in repr(finder)]
from distributed.cli.dask_worker import main
main()
"""


@contextmanager
def started(course: CourseCopy, *command: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=course.root,
        env=course.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@pytest.fixture
def address(released_course: CourseCopy) -> Iterator[str]:
    """A scheduler's."""
    port = free_port()
    options = ["--host=127.0.0.1", f"--port={port}", "--no-dashboard"]
    with started(released_course, "-m", "dask", "scheduler", *options):
        yield f"tcp://127.0.0.1:{port}"


def worker(address: str, folder: Path) -> tuple[str, ...]:
    return (address, "--nthreads=2", "--no-dashboard", "--host=127.0.0.1", f"--local-directory={folder}")


def handed_in(released: CourseCopy, target: Path) -> CourseCopy:
    """A course with two submissions."""
    return copied(released, target, ("learner-03", "learner-07"))


@pytest.mark.slow
def test_a_cluster_grades_as_this_machine_does(released_course: CourseCopy, address: str, tmp_path: Path) -> None:
    here, there = (handed_in(released_course, tmp_path / name) for name in ("here", "there"))
    assert here.grader("autograde", UNIT).returncode == 0
    with started(released_course, "-m", "dask", "worker", *worker(address, tmp_path / "worker")):
        done = there.grader("autograde", UNIT, f"--scheduler={address}")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stderr.splitlines()) == ["graded learner-03", "graded learner-07"]
    assert rows(Course(there.root)) == rows(Course(here.root))


@pytest.mark.slow
def test_a_worker_with_other_code_is_named(released_course: CourseCopy, address: str, tmp_path: Path) -> None:
    mine, theirs = (handed_in(released_course, tmp_path / name) for name in ("mine", "theirs"))
    with (theirs.root / "grader" / "flags.py").open("a", encoding="utf-8") as stream:
        stream.write("# Another version.\n")
    with started(theirs, "-m", "dask", "worker", *worker(address, tmp_path / "worker")):
        done = mine.grader("autograde", UNIT, f"--scheduler={address}")
    assert done.returncode == 1
    said = said_once(done.stderr)
    assert said.startswith("error: the Dask worker tcp://127.0.0.1:")
    assert " has the code of grader and ffn " in said
    assert rows(Course(mine.root)) == {}


@pytest.mark.slow
def test_a_worker_that_cannot_import_the_grader_is_named(
    released_course: CourseCopy, address: str, tmp_path: Path
) -> None:
    course = handed_in(released_course, tmp_path / "course")
    (tmp_path / "elsewhere").mkdir()
    elsewhere = CourseCopy(tmp_path / "elsewhere")
    with started(elsewhere, "-c", WITHOUT_GRADER, *worker(address, tmp_path / "worker"), "--no-nanny"):
        done = course.grader("autograde", UNIT, f"--scheduler={address}")
    assert done.returncode == 1
    said = said_once(done.stderr)
    assert said.startswith("error: the Dask worker tcp://127.0.0.1:")
    assert "No module named 'grader'" in said


@pytest.mark.slow
def test_a_scheduler_without_workers_is_named(
    open_course: Course, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (open_course.submitted / "ada" / UNIT).mkdir(parents=True)
    (open_course.submitted / "ada" / UNIT / f"{UNIT}.ipynb").write_text("{}")
    monkeypatch.setattr(module, "CONNECT_SECONDS", 5.0)
    with pytest.raises(NoWorkersError, match=f"the Dask scheduler {address} has had no workers for 5 seconds"):
        grade_unit(open_course, UNIT, ["ada"], scheduler=address)


@pytest.mark.slow
def test_a_scheduler_that_is_not_there_is_named(open_course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    (open_course.submitted / "ada" / UNIT).mkdir(parents=True)
    (open_course.submitted / "ada" / UNIT / f"{UNIT}.ipynb").write_text("{}")
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    with pytest.raises(
        SchedulerUnreachableError, match=r"the Dask scheduler tcp://127\.0\.0\.1:1 cannot be reached: "
    ):
        grade_unit(open_course, UNIT, ["ada"], scheduler="tcp://127.0.0.1:1")
