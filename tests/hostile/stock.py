"""Grade every case with stock nbgrader, and show its outcome beside the engine's.

`nbgrader autograde` runs with its own Execute and its own defaults, in a course of its own for each case: what one case
does to the gradebook or to its peers reaches no other. Only cells that never end get less than nbgrader's 30 s. It runs
contained (stock_server.py): in bubblewrap and in namespaces of its own, without a network, as a user without rights,
bounded in memory, processes and time, with nothing but that course to write to. A case with `stock` is not run; the
reason is shown, and it is counted neither way.

    python -m tests.hostile.stock [--json] [CASE ...]
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import queue
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.engine import sandbox
from grader.engine.verdict import MISSING, TIMED_OUT, UNREADABLE
from grader.exceptions import GraderError
from tests.hostile.corpus import SOURCE, UNIT, Case, as_bytes, cases, honest
from tests.hostile.grading import Grading

__all__ = ["Outcome", "Row", "hostile_table", "stock_outcomes"]

SECONDS = 90.0
"""For a case, from its start to its end."""

CELL_SECONDS = 5
"""For each cell of a case that is right to time out; nbgrader's own limit is 30 s."""

LONGEST = (
    "streams_closed",
    "inherited_descriptors_written",
    "forged_pickle",
    "pipe_in_place_of_a_notebook",
    "hundred_thousand_cells",
    "forged_frame_of_huge_size",
    "memory_growth",
    "infinite_loops_in_every_function",
)
"""What stock nbgrader takes longest for is begun first; the order changes no outcome."""

CORES = os.cpu_count() or 1
_RELEASED = "released"
_SAID = 1 << 20
_ENGINE_FAILED = "none"
_PLACE = Path("/tmp/course")

Progress = Callable[[str, str], None]
"""Called with `engine` or `nbgrader` and the name of a case that it has done."""


@dataclass(frozen=True)
class Outcome:
    """What stock nbgrader made of a submission: its score, or None where it gave none, and a few words."""

    points: float | None
    words: str
    seen: bool = True

    def is_right(self, case: Case) -> bool:
        """Whether it is what an instructor should see: the right score, or none where nothing could be graded."""
        if not self.seen or self.words.startswith("stopped"):
            return False
        return self.points == (None if case.status in (UNREADABLE, MISSING) else case.points)

    def __str__(self) -> str:
        return self.words if self.points is None else f"{self.points:g}{f' ({self.words})' if self.words else ''}"


@dataclass(frozen=True)
class Row:
    """A case: what is right, what the engine says and what stock nbgrader says, if its outcome was seen."""

    case: str
    kind: str
    status: str
    points: float
    engine_status: str
    engine_points: float | None
    right: bool
    stock: str
    stock_right: bool
    stock_seen: bool


def hostile_table(names: Iterable[str] = (), progress: Progress = lambda grader, case: None) -> list[Row]:
    """Every case (or those named) with the right verdict, the engine's and stock nbgrader's.

    Takes some three seconds of a core for a case, most of them stock nbgrader's.

    Raises:
        ValueError: a name is no case's.
        RuntimeError: stock nbgrader cannot be run here.
    """
    chosen = _chosen(names)
    engine = _engine_outcomes(chosen, progress)
    stock = stock_outcomes(chosen, progress)
    rows = []
    for case in chosen:
        status, points = engine[case.name]
        outcome = stock[case.name]
        rows.append(
            Row(
                case=case.name,
                kind=case.kind,
                status=case.status,
                points=case.points,
                engine_status=status,
                engine_points=points,
                right=(status, points) == (case.status, case.points),
                stock=str(outcome),
                stock_right=outcome.is_right(case),
                stock_seen=outcome.seen,
            )
        )
    return rows


def _chosen(names: Iterable[str]) -> list[Case]:
    wanted = set(names)
    unknown = wanted - {case.name for case in cases()}
    if unknown:
        raise ValueError(f"there is no case {min(unknown)!r}; the cases are the files of tests/hostile/cases")
    return [case for case in cases() if not wanted or case.name in wanted]


# ------------------------------------------------------------------------------------------------ the engine

_grading: Grading | None = None


def _engine_outcomes(chosen: list[Case], progress: Progress) -> dict[str, tuple[str, float | None]]:
    """Status and points by the engine, as many cases at a time as there are cores."""
    found = {}
    with (
        tempfile.TemporaryDirectory(prefix="ffn-hostile-engine-") as folder,
        # Not forked: who calls may have threads.
        ProcessPoolExecutor(min(CORES, len(chosen)), multiprocessing.get_context("spawn")) as pool,
    ):
        started = {pool.submit(_engine_outcome, folder, case): case for case in chosen}
        for done in as_completed(started):
            found[started[done].name] = done.result()
            progress("engine", started[done].name)
    return found


def _engine_outcome(folder: str, case: Case) -> tuple[str, float | None]:
    """Status and points of one case; if it breaks the engine, the next one starts with a fresh sandbox."""
    global _grading
    if not case.run:
        return f"not run: {case.open}", None
    try:
        _grading = _grading or Grading(Path(tempfile.mkdtemp(dir=folder)) / "course")
        verdict = _grading.verdict(case)
    except Exception as error:
        if _grading is not None:
            _grading.sandbox.close()
        _grading = None
        return f"{_ENGINE_FAILED}: {type(error).__name__}: {error}", None
    return verdict.status, verdict.points


# ------------------------------------------------------------------------------------------- stock nbgrader


def stock_outcomes(chosen: list[Case], progress: Progress = lambda grader, case: None) -> dict[str, Outcome]:
    """Stock nbgrader's outcome for each case, two more at a time than there are cores: some only wait.

    Raises:
        RuntimeError: stock nbgrader cannot be run here.
    """
    found = {case.name: Outcome(None, f"not run: {case.stock}", seen=False) for case in chosen if case.stock}
    for name in found:
        progress("nbgrader", name)
    # So that none of them is waited for at the end.
    left = sorted((case for case in chosen if not case.stock), key=lambda case: case.name not in LONGEST)
    if not left:
        return found
    with _Stock(min(CORES + 2, len(left))) as stock, ThreadPoolExecutor(stock.size) as pool:
        started: dict[Future[Outcome], Case] = {pool.submit(stock.outcome, case): case for case in left}
        try:
            for done in as_completed(started):
                found[started[done].name] = done.result()
                progress("nbgrader", started[done].name)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stock.stop()
            raise
    return found


class _Stock:
    """Servers that run stock nbgrader, and a released course, which each case gets a copy of."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._servers: list[_Server] = []
        self._stopped = False
        self._idle: queue.SimpleQueue[_Server] = queue.SimpleQueue()

    def __enter__(self) -> "_Stock":
        self._folder = tempfile.TemporaryDirectory(prefix="ffn-hostile-stock-")
        self._courses = Path(self._folder.name) / "courses"
        self._courses.mkdir()
        _give_away(self._courses)
        self._programs = _programs(Path(self._folder.name) / "programs")
        try:
            for _ in range(self.size):
                self._start()
            self._release()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._folder.cleanup()

    def stop(self) -> None:
        """End the servers and all that they have started."""
        self._stopped = True
        for server in self._servers:
            server.close()

    def _start(self) -> None:
        server = _Server(self._courses, self._programs)
        self._servers.append(server)
        self._idle.put(server)

    def _release(self) -> None:
        """Make a course in nbgrader's own layout whose one assignment is released."""
        course = self._courses / _RELEASED
        source = course / "source" / UNIT
        source.mkdir(parents=True)
        for path in SOURCE.iterdir():
            shutil.copy(path, source)
        (course / "nbgrader_config.py").write_text('c = get_config()\nc.CourseDirectory.course_id = "hostile"\n')
        peer = course / "submitted" / "peer" / UNIT
        peer.mkdir(parents=True)
        (peer / f"{UNIT}.ipynb").write_bytes(as_bytes(honest()))
        (course / ".home").mkdir()
        _give_away(course)
        status, said = self._nbgrader(_RELEASED, "generate_assignment", UNIT)
        if status != "0":
            raise RuntimeError(f"nbgrader could not release the small exercise: {_first_error(status, said)}")

    def outcome(self, case: Case) -> Outcome:
        """Hand a case in, grade it and read its score; nothing of it is left behind."""
        course = self._courses / case.name
        try:
            return self._graded(course, case)
        except Exception as error:
            return Outcome(None, f"could not be run: {type(error).__name__}: {error}", seen=False)
        finally:
            shutil.rmtree(course, ignore_errors=True)

    def _graded(self, course: Path, case: Case) -> Outcome:
        shutil.copytree(self._courses / _RELEASED, course)
        files = [place / UNIT / f"{UNIT}.ipynb" for place in (_PLACE / "submitted" / "peer", _PLACE / "source")]
        case.hand_in(course / "submitted" / "learner" / UNIT, *files)
        _give_away(course)
        limits = [f"--Execute.timeout={CELL_SECONDS}"] if case.status == TIMED_OUT else []
        status, said = self._nbgrader(case.name, "autograde", UNIT, "--student=learner", "--create", *limits)
        if status == "stopped":
            return Outcome(_score(course), f"stopped after {SECONDS:.0f} s")
        if status == "0":
            return Outcome(_score(course), "")
        return Outcome(None, f"failed: {_first_error(status, said)}")

    def _nbgrader(self, course: str, *arguments: str) -> tuple[str, str]:
        server = self._idle.get()
        try:
            status = server.run(course, arguments)
        except RuntimeError:
            # What broke it is told of; the next case gets another.
            server.close()
            if not self._stopped:
                self._start()
            raise
        self._idle.put(server)
        log = self._courses / f"{course}.log"
        with log.open(encoding="utf-8", errors="replace") as file:
            said = file.read(_SAID)
        log.unlink()
        return status, said


class _Server:
    """A process in bubblewrap that has imported nbgrader, and forks one for every request.

    Raises:
        RuntimeError: bubblewrap is missing.
    """

    def __init__(self, courses: Path, programs: Path) -> None:
        self._ready = False
        self._process = subprocess.Popen(
            _contained(courses, programs),
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, course: str, arguments: Iterable[str]) -> str:
        """nbgrader's exit status in a course, or "stopped".

        Raises:
            RuntimeError: the server is gone, or did not start.
        """
        assert self._process.stdin is not None
        asked = {"course": course, "arguments": list(arguments), "seconds": SECONDS}
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        if not self._ready:
            self._ready = self._answer() == "ready"
        return self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        answer = self._process.stdout.readline().strip()
        if not answer:
            assert self._process.stderr is not None
            lines = self._process.stderr.read().strip().splitlines()
            raise RuntimeError(f"stock nbgrader's server has ended: {lines[-1] if lines else 'without a word'}")
        return answer

    def close(self) -> None:
        """End it; bubblewrap ends with it all that it has started."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            # What was asked last may not have been read.
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()


def _interpreter() -> str:
    """Where the interpreter is in bubblewrap."""
    place = sandbox._place()
    return f"{place.prefix if place.prefix.startswith('/usr') else '/python'}/{place.interpreter}"


def _programs(folder: Path) -> Path:
    """Make a folder of the programs that nbgrader starts by name, and python, which cells may."""
    folder.mkdir()
    for name, words in (("alembic", "-m alembic.config"), ("python", ""), ("python3", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec {_interpreter()} {words} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def _contained(courses: Path, programs: Path) -> list[str]:
    """The server's command: it sees the system, the interpreter, the packages and the courses, and no network."""
    program = sandbox._bubblewrap()
    if program is None:
        raise RuntimeError("bubblewrap is missing, and stock nbgrader is not run on these files without it")
    place, as_root = sandbox._place(), os.geteuid() == 0
    command = [program, "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    command += ["--unshare-uts", *([] if as_root else ["--unshare-user"])]
    for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/passwd"):
        if Path(folder).is_symlink():
            command += ["--symlink", str(Path(folder).readlink()), folder]
        elif Path(folder).exists():
            command += ["--ro-bind", folder, folder]
    # Folders that bubblewrap makes on the way are closed to everyone but root.
    for folder in ("/server", "/helper"):
        command += ["--perms", "0755", "--dir", folder]
    if not place.prefix.startswith("/usr"):
        command += ["--ro-bind", place.prefix, "/python"]
    command += ["--ro-bind", place.packages, "/packages", "--bind", str(courses), "/courses"]
    command += ["--ro-bind", str(programs), "/server/bin", "--ro-bind", place.helper, "/helper/ffn"]
    command += ["--ro-bind", str(sandbox._PACKAGE), "/server/session"]
    command += ["--ro-bind", str(Path(__file__).with_name("stock_server.py")), "/server/stock_server.py"]
    command += ["--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]
    command += [
        *(["--dir", "/proc"] if as_root else ["--proc", "/proc"]),
        "--remount-ro",
        "/dev",
        "--remount-ro",
        "/",
    ]
    command += ["--", *(sandbox._as_nobody() if as_root else [])]
    return [*command, _interpreter(), "-s", "/server/stock_server.py"]


def _environment() -> dict[str, str]:
    home = str(_PLACE / ".home")
    own = {
        "HOME": home,
        "IPYTHONDIR": home,
        "MPLCONFIGDIR": home,
        "PATH": "/server/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
    }
    # An interpreter with a library beside it looks for that at the place where it was installed.
    own |= {"LD_LIBRARY_PATH": "/python/lib", "PYTHONPATH": "/helper:/packages", "PYTHONDONTWRITEBYTECODE": "1"}
    return own | {"PATH": "/server/bin:/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"}


def _give_away(folder: Path) -> None:
    """Let the user whom stock nbgrader runs as, when root starts it, own a folder and what is in it."""
    if os.geteuid() != 0:
        return
    os.chown(folder, sandbox.NOBODY, sandbox.NOBODY)
    for place, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            os.chown(Path(place) / name, sandbox.NOBODY, sandbox.NOBODY, follow_symlinks=False)


def _first_error(status: str, said: str) -> str:
    """The first line of what nbgrader said that tells of an error; the learner's own processes may have said more."""
    printable = "".join(sign if sign.isprintable() else "\n" for sign in said.replace(f"{_PLACE}/", ""))
    errors = re.findall(r"(?:\| ERROR\]|\] ERROR \|) +(.+)", printable) or re.findall(r".*Error.*", printable)
    return errors[0].strip()[:160] if errors else f"exit {status}"


def _score(course: Path) -> float | None:
    """The points of the test cells in the gradebook; None where there is no graded submission."""
    query = """
        SELECT SUM(CASE WHEN grade.manual_score IS NOT NULL THEN grade.manual_score ELSE grade.auto_score END)
        FROM grade
        JOIN submitted_notebook ON grade.notebook_id = submitted_notebook.id
        JOIN submitted_assignment ON submitted_notebook.assignment_id = submitted_assignment.id
        WHERE submitted_assignment.student_id = 'learner'
    """
    path = course / "gradebook.db"
    graded = course / "autograded" / "learner" / UNIT
    if not path.is_file() or not graded.is_dir():
        return None
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as book:
        found = book.execute(query).fetchone()[0]
    return None if found is None else float(found)


# ------------------------------------------------------------------------------------------- the command


def _as_lines(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        marks = f"{'ok' if row.right else '--'} {'ok' if row.stock_right else '--'}"
        right, engine = f"{row.status}, {row.points:g}", f"{row.engine_status}, {row.engine_points}"
        yield f"{marks} {row.case:40} {right:34} {'' if row.right else f'engine: {engine}; '}stock: {row.stock}"
    counts = [sum(row.right for row in rows), sum(row.stock_right for row in rows)]
    yield f"{len(rows)} cases: the engine is right on {counts[0]}, stock nbgrader on {counts[1]}"


def main() -> int:
    """Print the table; with --json a line for every case that one of both has done, and the rows as the last line."""
    parser = argparse.ArgumentParser(
        description="Grade the hostile cases with the engine and with stock nbgrader."
    )
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    parser.add_argument("case", nargs="*")
    options = parser.parse_args()

    def tell(grader: str, case: str) -> None:
        if options.json:
            print(json.dumps({"done": grader, "case": case}), flush=True)
        else:
            print(f"{grader}: {case}", file=sys.stderr)

    try:
        rows = hostile_table(options.case, tell)
    except (ValueError, RuntimeError, GraderError) as error:
        sys.stderr.write(f"error: {str(error).rstrip('.')}.\n")
        return 2
    for line in [json.dumps({"rows": [asdict(row) for row in rows]})] if options.json else _as_lines(rows):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
