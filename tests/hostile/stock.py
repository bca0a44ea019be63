"""Grade every case with stock nbgrader, and show its outcome beside the engine's.

`nbgrader autograde` runs with its own Execute and its own defaults, in a course of its own for each case: what one case
does to the gradebook or to its peers reaches no other. It runs as one process with a time limit, in bubblewrap, without
a network and with nothing but that course to write to. A case that would eat the machine is not run; it says why, and
counts as not right.

    python -m tests.hostile.stock [CASE ...]
"""

import argparse
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from grader.engine import sandbox
from grader.engine.verdict import MISSING, UNREADABLE
from tests.hostile.corpus import SOURCE, UNIT, Case, as_bytes, cases, honest
from tests.hostile.grading import Grading

__all__ = ["Outcome", "Row", "hostile_table", "stock_outcomes"]

SECONDS = 150.0
"""For a case; nbgrader's own limit is 30 s for a cell, and it then still has to end the kernel."""

_ENGINE_FAILED = "none"


@dataclass(frozen=True)
class Outcome:
    """What stock nbgrader made of a submission: its score, or None where it gave none, and a few words."""

    points: float | None
    words: str

    def is_right(self, case: Case) -> bool:
        """Whether it is what an instructor should see: the right score, or none where nothing could be graded."""
        if self.words.startswith(("not run", "could not be run", "stopped")):
            return False
        return self.points == (None if case.status in (UNREADABLE, MISSING) else case.points)

    def __str__(self) -> str:
        return self.words if self.points is None else f"{self.points:g}{f' ({self.words})' if self.words else ''}"


@dataclass(frozen=True)
class Row:
    """A case: what is right, what the engine says and what stock nbgrader says."""

    case: str
    kind: str
    status: str
    points: float
    engine_status: str
    engine_points: float | None
    right: bool
    stock: str
    stock_right: bool


def hostile_table(names: Iterable[str] = (), progress: Callable[[str], None] = lambda case: None) -> list[Row]:
    """Every case (or those named) with the right verdict, the engine's and stock nbgrader's.

    Takes ten seconds of a core for a case, most of them stock nbgrader's; ``progress`` is called with the name of each
    that it has done.
    """
    chosen = _chosen(names)
    engine = _engine_outcomes(chosen)
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
            )
        )
    return rows


def _chosen(names: Iterable[str]) -> list[Case]:
    wanted = set(names)
    return [case for case in cases() if not wanted or case.name in wanted]


def _engine_outcomes(chosen: list[Case]) -> dict[str, tuple[str, float | None]]:
    """Status and points by the engine; one case that breaks it does not keep the others from being graded."""
    found: dict[str, tuple[str, float | None]] = {}
    with tempfile.TemporaryDirectory(prefix="ffn-hostile-engine-") as folder:
        grading = None
        for number, case in enumerate(chosen):
            if not case.run:
                found[case.name] = (f"not run: {case.open}", None)
                continue
            try:
                grading = grading or Grading(Path(folder) / str(number))
                verdict = grading.verdict(case)
                found[case.name] = (verdict.status, verdict.points)
            except Exception as error:
                found[case.name] = (f"{_ENGINE_FAILED}: {type(error).__name__}: {error}", None)
                if grading is not None:
                    grading.sandbox.close()
                grading = None
        if grading is not None:
            grading.sandbox.end_session()
            grading.sandbox.close()
    return found


def stock_outcomes(chosen: list[Case], progress: Callable[[str], None]) -> dict[str, Outcome]:
    """Stock nbgrader's outcome for each case, as many at a time as there are cores."""
    with tempfile.TemporaryDirectory(prefix="ffn-hostile-stock-") as folder:
        root = Path(folder)
        _make_course(root / "released")
        found = {}
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for case, outcome in zip(chosen, pool.map(lambda case: _contained(root, case), chosen), strict=True):
                found[case.name] = outcome
                progress(case.name)
        return found


def _make_course(course: Path) -> None:
    """A course in nbgrader's own layout whose one assignment is released."""
    source = course / "source" / UNIT
    source.mkdir(parents=True)
    for path in SOURCE.iterdir():
        shutil.copy(path, source)
    (course / "nbgrader_config.py").write_text('c = get_config()\nc.CourseDirectory.course_id = "hostile"\n')
    done = _nbgrader(course, "generate_assignment", UNIT)
    if done.returncode != 0:
        raise RuntimeError(f"nbgrader could not release the small exercise: {done.stdout[-2000:]}")


def _contained(root: Path, case: Case) -> Outcome:
    if case.stock:
        return Outcome(None, f"not run: {case.stock}")
    course = root / case.name
    try:
        return _graded(root, course, case)
    except Exception as error:
        return Outcome(None, f"could not be run: {type(error).__name__}: {error}")
    finally:
        shutil.rmtree(course, ignore_errors=True)


def _graded(root: Path, course: Path, case: Case) -> Outcome:
    shutil.copytree(root / "released", course)
    peer = course / "submitted" / "peer" / UNIT / f"{UNIT}.ipynb"
    peer.parent.mkdir(parents=True)
    peer.write_bytes(as_bytes(honest()))
    case.hand_in(course / "submitted" / "learner" / UNIT, peer, course / "source" / UNIT / f"{UNIT}.ipynb")
    try:
        done = _nbgrader(course, "autograde", UNIT, "--student=learner", "--create")
    except subprocess.TimeoutExpired:
        return Outcome(_score(course), f"stopped after {SECONDS:.0f} s")
    if done.returncode == 0:
        return Outcome(_score(course), "")
    said = done.stdout.replace(f"{course}/", "")
    lines = [line.strip() for line in said.splitlines() if "ERROR" in line or "Error" in line]
    return Outcome(None, f"failed: {lines[0].split('] ')[-1][:160] if lines else f'exit {done.returncode}'}")


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
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as book:
        found = book.execute(query).fetchone()[0]
    book.close()
    return None if found is None else float(found)


def _nbgrader(course: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run nbgrader in a course, locked into it, with a time limit on it and on all that it starts.

    Raises:
        TimeoutExpired: it took longer than a case may.
    """
    program = sandbox._bubblewrap()
    if program is None:
        raise RuntimeError("bubblewrap is missing, and stock nbgrader is not run on these files without it")
    home = course / ".home"
    home.mkdir(exist_ok=True)
    locked = [program, "--die-with-parent", "--new-session", "--unshare-pid", "--unshare-net", "--unshare-ipc"]
    locked += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/dev/shm"]
    locked += ["--bind", str(course), str(course), "--chdir", str(course), "--cap-drop", "ALL", "--"]
    own = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    own |= {"OPENBLAS_NUM_THREADS": "1", "IPYTHONDIR": str(home), "MPLCONFIGDIR": str(home)}
    command = [*locked, sys.executable, "-m", "nbgrader", *arguments]
    process = subprocess.Popen(
        command,
        env=own,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, said)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description="Grade the hostile cases with the engine and with stock nbgrader."
    )
    parser.add_argument("case", nargs="*")
    rows = hostile_table(parser.parse_args().case, lambda case: print(case, file=sys.stderr))
    for row in rows:
        marks = f"{'ok' if row.right else '--'} {'ok' if row.stock_right else '--'}"
        right, engine = f"{row.status}, {row.points:g}", f"{row.engine_status}, {row.engine_points}"
        print(f"{marks} {row.case:40} {right:34} {'' if row.right else f'engine: {engine}; '}stock: {row.stock}")
    print(
        f"{len(rows)} cases: the engine is right on {sum(row.right for row in rows)}, "
        f"stock nbgrader on {sum(row.stock_right for row in rows)}"
    )


if __name__ == "__main__":
    main()
