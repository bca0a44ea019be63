"""What a Dask worker does with a task: by grading processes that do as they are told here."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from grader.engine import tasks
from grader.engine.process import FAULT, VERDICT, Answer, Job, Package
from grader.engine.tasks import DIED, REFUSED, TOO_LONG, UNDONE, Jobs
from grader.engine.verdict import Limits

PACKAGE = Package("a run", "gates", b"", (), (), Limits(), "none")
GOOD = Answer(VERDICT, b"1", b"2")
Deed = Callable[[], Answer]


class Process:
    """A grading process that does what the script says, one deed for each answer."""

    script: list[Deed]
    all: list["Process"]

    def __init__(self, package: Package, core: int | None = None) -> None:
        self.core = core
        self.asked: list[Job] = []
        self.most = 0
        self.ended = False
        self.all.append(self)

    def ask(self, job: Job) -> None:
        self.asked.append(job)
        self.most = max(self.most, len(self.asked))

    def answer(self) -> Answer:
        if self.ended:
            raise EOFError
        answer = self.script.pop(0)() if self.script else GOOD
        self.asked.pop(0)
        return answer

    def hang_up(self) -> None:
        self.ended = True

    def close(self, *, at_once: bool = False) -> None:
        self.ended = True

    def kill(self) -> None:
        self.ended = True


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Process.script, Process.all = [], []
    monkeypatch.setattr(tasks, "GradingProcess", Process)
    monkeypatch.setattr(tasks, "prepare", lambda: None)
    yield
    tasks.close(PACKAGE.key)


def dies() -> Answer:
    raise EOFError


def hangs() -> Answer:
    raise TimeoutError


def faulty() -> Answer:
    return Answer(FAULT, b"a fault")


def kinds(*jobs: Job) -> list[str]:
    return [answer.kind for answer in tasks.run(PACKAGE, Jobs(jobs or jobs_of(3)))]


def jobs_of(count: int, size: int = 10) -> tuple[Job, ...]:
    return tuple(Job(b"", bytes([number]) * size) for number in range(count))


def test_jobs_are_answered_in_order_by_one_process() -> None:
    Process.script = [lambda number=number: Answer(VERDICT, bytes([number])) for number in range(3)]
    answers = tasks.run(PACKAGE, Jobs(jobs_of(3)))
    assert [answer.header for answer in answers] == [b"\0", b"\1", b"\2"]
    assert len(Process.all) == 1


def test_the_next_task_gets_the_warm_process() -> None:
    kinds()
    kinds()
    assert len(Process.all) == 1


def test_one_job_lies_ahead_so_that_the_process_does_not_wait() -> None:
    kinds(*jobs_of(4))
    assert Process.all[0].most == 2


def test_a_job_that_fills_the_pipe_never_lies_ahead() -> None:
    kinds(*jobs_of(4, 1_000_000))
    assert Process.all[0].most == 1


@pytest.mark.parametrize(("deed", "kind"), [(dies, DIED), (hangs, TOO_LONG)])
def test_a_job_whose_process_is_lost_is_tried_once_more(deed: Deed, kind: str) -> None:
    Process.script = [deed]
    assert kinds() == [VERDICT] * 3
    assert [process.ended for process in Process.all] == [True, False]
    Process.script = [deed, deed]
    assert kinds() == [kind, VERDICT, VERDICT]


def test_what_lay_ahead_in_a_process_that_died_has_lost_no_try() -> None:
    Process.script = [dies, dies, dies]
    assert kinds() == [DIED, VERDICT, VERDICT]


def test_a_fault_of_the_grader_is_tried_once_more_and_then_is_the_answer() -> None:
    Process.script = [faulty]
    assert kinds(*jobs_of(1)) == [VERDICT]
    Process.script = [faulty, faulty]
    assert kinds(*jobs_of(1)) == [FAULT]


def test_what_was_not_begun_after_some_seconds_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "TASK_SECONDS", 0.02)

    def slow() -> Answer:
        time.sleep(0.03)
        return GOOD

    Process.script = [slow]
    # The second lay ahead already.
    assert kinds(*jobs_of(5)) == [VERDICT, VERDICT, UNDONE, UNDONE, UNDONE]


def test_a_run_that_is_over_gets_its_jobs_back_undone() -> None:
    def over() -> Answer:
        tasks.close(PACKAGE.key)
        raise EOFError

    Process.script = [over]
    assert kinds() == [UNDONE] * 3
    assert all(process.ended for process in Process.all)


def test_processes_that_were_started_ahead_are_used() -> None:
    tasks.start(PACKAGE, 2)
    assert len(Process.all) == 2
    kinds()
    assert len(Process.all) == 2


def test_processes_have_cores_of_their_own_where_there_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks.os, "sched_getaffinity", lambda number: {4, 7}, raising=False)
    tasks.start(PACKAGE, 2)
    assert sorted(str(process.core) for process in Process.all) == ["4", "7"]
    tasks.close(PACKAGE.key)
    Process.all = []
    tasks.start(PACKAGE, 3)
    assert [process.core for process in Process.all] == [None] * 3


def test_a_worker_with_other_packages_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "_worker", lambda: "tcp://elsewhere:1")
    theirs = tuple((name, found if name != "numpy" else "0.1") for name, found in tasks.environment())
    other = Package(**(vars(PACKAGE) | {"environment": theirs}))
    answers = tasks.run(other, Jobs(jobs_of(2)))
    assert [answer.kind for answer in answers] == [REFUSED, REFUSED]
    assert b"tcp://elsewhere:1" in answers[0].header
    assert Process.all == []


def test_processes_of_a_run_that_was_killed_end_when_nothing_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "IDLE_SECONDS", 0.05)
    far: Any = Package(**(vars(PACKAGE) | {"environment": tasks.environment()}))
    tasks.run(far, Jobs(jobs_of(1)))
    until = time.monotonic() + 20
    while not Process.all[0].ended and time.monotonic() < until:
        time.sleep(0.01)
    assert Process.all[0].ended


def test_the_code_of_grader_and_ffn_is_part_of_the_environment() -> None:
    found = dict(tasks.environment())
    assert set(found) == {"Python", "the code of grader and ffn", *tasks._PACKAGES}
    assert "missing" not in found.values()
