"""Runs of `grader autograde` in which a process is killed at a random moment; the next run has to put it right.

    python -m tests.grader.engine.faults [--runs 50] [--first-seed 0]

A seed draws how the class of six is graded (with or without a sandbox, in local processes or on a Dask cluster), who is
killed with SIGKILL (the command itself, a grading process, the fork server of those, the server of a sandbox, a Dask
worker, the scheduler) and when. Right after it the gradebook and every file have to be whole. The run after it has to
end with the gradebook and the graded notebooks that an undisturbed run leaves, and the one after that to have nothing
left to do.
"""

import argparse
import contextlib
import json
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from grader.course import Course
from grader.engine.store import RECORD_KEY
from tests.grader.engine.courses import UNIT, copied, make_released, rows
from tests.helpers import CourseCopy, free_port

SIX = ("learner-02", "learner-03", "learner-05", "learner-07", "learner-09", "learner-11")
"""Among them one who did nothing, one who is late, and one who deleted a test."""

LOCAL = ("command", "grading process", "fork server", "sandbox server")
REMOTE = (*LOCAL, "Dask worker", "scheduler")
# Those that only a cluster has are drawn more often, so that a run of fifty kills each of them several times.
_WEIGHTS = (*(1 for _ in LOCAL), 3, 3)
MOST_SECONDS = 240.0


@dataclass
class Report:
    """What a seed drew, and what was not as it should be."""

    seed: int
    victim: str = ""
    sandbox: str = ""
    cluster: bool = False
    moment: str = ""
    killed: bool = False
    exit_status: int | None = None
    graded: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        where = "cluster" if self.cluster else "local"
        hit = f"{self.victim}, {self.moment}" if self.killed else f"{self.victim}: none was there"
        said = "; ".join(self.problems) or "as undisturbed"
        return f"{self.seed:>4}  {where}, sandbox {self.sandbox}: {hit}; {self.graded} of 6 were kept; {said}"


class Base:
    """The released course with six submissions, and what an undisturbed run leaves."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        released = make_released(folder / "released")
        self.course = copied(released, folder / "base", SIX)
        undisturbed = copied(self.course, folder / "undisturbed")
        start = time.monotonic()
        done = undisturbed.grader("autograde", UNIT, "--sandbox=none")
        self.seconds = time.monotonic() - start
        assert done.returncode == 0, done.stderr
        self.rows = rows(Course(undisturbed.root))
        self.files = graded(Course(undisturbed.root))
        assert len(self.rows) == len(SIX)


def graded(course: Course) -> dict[str, Any]:
    """Every file below grader/var/autograded; notebooks without what differs from run to run."""
    found: dict[str, Any] = {}
    for path in sorted(course.autograded.rglob("*")):
        if path.is_file():
            name = str(path.relative_to(course.autograded))
            found[name] = path.read_bytes()
            if path.suffix == ".ipynb":
                notebook = json.loads(found[name])
                for key in ("seconds", "sandbox"):
                    notebook["metadata"][RECORD_KEY].pop(key, None)
                found[name] = notebook
    return found


def drawn(seed: int) -> Report:
    """How a seed grades and who is killed, before anything has happened."""
    draw = random.Random(f"who {seed}")
    report = Report(seed, sandbox=draw.choice(("none", "full")), cluster=draw.random() < 0.4)
    report.victim = draw.choices(REMOTE, _WEIGHTS)[0] if report.cluster else draw.choice(LOCAL)
    return report


def run(base: Base, seed: int) -> Report:
    """Let a seed's fault happen, and look at what comes after it."""
    draw, report = random.Random(f"when {seed}"), drawn(seed)
    copy = copied(base.course, base.folder / f"seed-{seed}")
    course = Course(copy.root)
    try:
        with _cluster(copy) if report.cluster else contextlib.nullcontext() as cluster:
            _disturbed(base, copy, cluster, draw, report)
        _whole(course, report)
        report.graded = len(list(course.autograded.glob(f"*/{UNIT}/{UNIT}.ipynb")))
        done = copy.grader("autograde", UNIT, f"--sandbox={report.sandbox}")
        if done.returncode != 0 or "Traceback" in done.stderr:
            report.problems.append(f"the next run failed: {done.stderr[-500:]!r}")
        _same(base, course, report)
        again = copy.grader("autograde", UNIT, f"--sandbox={report.sandbox}")
        if again.returncode != 0 or "graded" in again.stderr:
            report.problems.append(f"the third run had something left to do: {again.stderr[-500:]!r}")
    finally:
        shutil.rmtree(copy.root, ignore_errors=True)
    return report


def _disturbed(
    base: Base, copy: CourseCopy, cluster: "Cluster | None", draw: random.Random, report: Report
) -> None:
    options = [f"--sandbox={report.sandbox}", *([f"--scheduler={cluster.address}"] if cluster else [])]
    said = copy.root.parent / f"{copy.root.name}-said.txt"
    with said.open("wb") as output:
        command = subprocess.Popen(
            [sys.executable, "-m", "grader.cli", "autograde", UNIT, *options],
            cwd=copy.root,
            env=copy.environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    roots = [command.pid, *(cluster.pids if cluster else [])]
    family = {psutil.Process(pid) for pid in roots}
    try:
        _wait_for_the_moment(base, command, said, draw, report)
        victim = _victim(report.victim, command, cluster, draw)
        for root in roots:
            with contextlib.suppress(psutil.Error):
                family |= set(psutil.Process(root).children(recursive=True))
        if victim is not None:
            with contextlib.suppress(psutil.Error):
                victim.send_signal(signal.SIGKILL)
                report.killed = True
        report.exit_status = command.wait(MOST_SECONDS)
    except subprocess.TimeoutExpired:
        report.problems.append(f"the command did not end in {MOST_SECONDS:g} seconds")
        command.kill()
        command.wait()
    text = said.read_text(encoding="utf-8", errors="replace")
    # A process that was just being started when the command was killed complains of it.
    if "Traceback" in text and report.victim != "command":
        report.problems.append(f"a traceback was shown: {text[-1500:]!r}")
    if report.exit_status not in (0, 1, -signal.SIGKILL):
        report.problems.append(f"exit status {report.exit_status}: {text[-500:]!r}")
    own = [process for process in family if cluster is None or process.pid not in cluster.pids]
    if not cluster:
        _, alive = psutil.wait_procs(own, timeout=60)
        if alive:
            report.problems.append(f"{len(alive)} processes outlived the command: {alive[0]}")


def _wait_for_the_moment(
    base: Base, command: "subprocess.Popen[bytes]", said: Path, draw: random.Random, report: Report
) -> None:
    """Some seconds after the start, or a moment after some verdicts were kept."""
    if draw.random() < 0.4:
        seconds = draw.uniform(0.0, base.seconds)
        report.moment = f"after {seconds:.2f} s"
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.wait(seconds)
        return
    verdicts, more = draw.randint(0, 5), draw.uniform(0.0, 0.3)
    report.moment = f"{more:.3f} s after {verdicts} verdicts"
    until = time.monotonic() + MOST_SECONDS
    while command.poll() is None and time.monotonic() < until:
        if said.read_bytes().count(b"graded ") >= verdicts:
            break
        time.sleep(0.01)
    time.sleep(more)


def _victim(
    kind: str, command: "subprocess.Popen[bytes]", cluster: "Cluster | None", draw: random.Random
) -> psutil.Process | None:
    """A process of the kind; waited for while the command runs."""
    while command.poll() is None:
        with contextlib.suppress(psutil.Error):
            found = _processes(kind, command.pid, cluster)
            if found:
                return draw.choice(sorted(found, key=lambda process: process.pid))
        time.sleep(0.02)
    return None


def _processes(kind: str, command: int, cluster: "Cluster | None") -> list[psutil.Process]:
    if kind == "command":
        return [psutil.Process(command)]
    if kind == "scheduler":
        assert cluster is not None
        return [psutil.Process(cluster.pids[0])]
    roots = [command, *(cluster.pids[1:] if cluster else [])]
    below = [child for root in roots for child in psutil.Process(root).children(recursive=True)]
    lines = {process: " ".join(process.cmdline()) for process in below}
    servers = [process for process, line in lines.items() if "multiprocessing.forkserver" in line]
    first = [process for process in servers if process.parent() not in servers]
    kinds = {
        "fork server": first,
        "grading process": [process for process in servers if process not in first],
        "sandbox server": _sandbox_servers(lines),
        "Dask worker": [process for process, line in lines.items() if "multiprocessing.spawn" in line],
    }
    return kinds[kind]


def _sandbox_servers(lines: dict[psutil.Process, str]) -> list[psutil.Process]:
    """The servers, and bubblewrap around them; their sessions are a learner's own processes."""
    of = {process for process, line in lines.items() if "session.server" in line}
    outermost = [process for process in of if process.parent() not in of]
    servers = {process for process in of if "python" in process.cmdline()[0]}
    return [*outermost, *(process for process in servers - set(outermost) if process.parent() not in servers)]


def _whole(course: Course, report: Report) -> None:
    """Nothing is half-written: a database that is sound, and notebooks that can be read."""
    with contextlib.closing(sqlite3.connect(course.var / "gradebook.db")) as database:
        ((sound,),) = database.execute("PRAGMA integrity_check")
        if sound != "ok":
            report.problems.append(f"the gradebook is damaged: {sound}")
    try:
        graded(course)
    except (ValueError, KeyError) as error:
        report.problems.append(f"a graded notebook is half-written: {error!r}")


def _same(base: Base, course: Course, report: Report) -> None:
    found = rows(course)
    for learner in sorted(base.rows | found):
        if base.rows.get(learner) != found.get(learner):
            report.problems.append(f"the rows of {learner} differ: {base.rows.get(learner)} {found.get(learner)}")
    files = graded(course)
    differing = [name for name in sorted(base.files | files) if base.files.get(name) != files.get(name)]
    if differing:
        report.problems.append(f"files differ: {', '.join(differing)}")
    journal = course.var / "journal" / UNIT
    left = [path.name for path in journal.iterdir() if not path.name.endswith(".new")]
    if left:
        report.problems.append(f"left in the journal: {', '.join(left)}")


@dataclass(frozen=True)
class Cluster:
    """A scheduler and a worker of two threads, processes of their own."""

    address: str
    pids: tuple[int, int]


@contextlib.contextmanager
def _cluster(copy: CourseCopy) -> Iterator[Cluster]:
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        commands = [
            ["scheduler", "--host=127.0.0.1", f"--port={port}", "--no-dashboard"],
            ["worker", address, "--nthreads=2", "--no-dashboard", f"--local-directory={folder}"],
        ]
        pids = []
        for command in commands:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                cwd=copy.root,
                env=copy.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(_end, process)
            pids.append(process.pid)
        yield Cluster(address, (pids[0], pids[1]))


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(psutil.Error):
        family = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(10)
        for one in family:
            with contextlib.suppress(psutil.Error):
                one.kill()
    process.kill()
    process.wait()


def main() -> int:
    """Run seeds and say what came of each; exit status 1 where something was not put right."""
    parser = argparse.ArgumentParser(prog="python -m tests.grader.engine.faults", description="Runs with faults.")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Base(Path(folder))
        reports = []
        for seed in range(options.first_seed, options.first_seed + options.runs):
            reports.append(run(base, seed))
            print(reports[-1], flush=True)
    wrong = sum(bool(report.problems) for report in reports)
    hit = sum(report.killed for report in reports)
    print(f"{len(reports)} runs, {hit} with a process killed, {wrong} not put right by the next run")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
