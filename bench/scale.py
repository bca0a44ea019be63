"""How the engine carries a class: beside stock nbgrader, from 40 learners to 10,000, and by two workers for one.

    python -m bench.scale [--learners 40] [--large 10000] [--both 400] [--repeats 3] [--seed 0]
    python -m bench.scale --smoke

Makes classes by the demo class's recipes, drawn anew for every learner from a seed, in scratch copies of the course,
and measures on two cores:

- ratio_wall: submissions a second of the engine in the large class, its start-up included, against stock `nbgrader
  autograde`, whose start-up (a class of one) is taken off. Stock grades the small class: its cost is the same in all.
- ratio_wall_small: both on the same small class, start-up of both included; the two alternate, each from a fresh
  gradebook, and medians count. All scores are compared cell by cell.
- cost_growth_40_to_10000: what a submission costs in the large class against the small one. A class of one is measured
  too, and taken off as start-up; with start-up left in, the figure is in cost_growth_with_start_up.
- speedup_2_workers: submissions a second by two workers against one, from the tenth outcome on, alternated.
- memory: of the main process, in MB, after a tenth, a half and all of the large class.

Writes _build/bench/scale.json. It is a measurement, not a test: on a busy machine the times say little.
"""

import argparse
import contextlib
import ctypes
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from bench.grading import STOCK, make_course, release
from grader.demo_class import DemoClass, demo_class
from grader.notebooks import answer_ids, grade_id, read_notebook
from tools.places import BUILD

UNIT = "activations"
CORES = 2
BARS = {"ratio_wall": 40.0, "cost_growth_40_to_10000": 1.1, "speedup_2_workers": 1.8}
_SUBREAPER = 36
# Run in the course's copy: every tenth of the class a line with time, CPU seconds and memory of the main process.
_STAMPED = """
import json, sys, time
from pathlib import Path
from grader.course import Course
from grader.engine.batch import grade_each

def memory():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

def main(unit, workers):
    course = Course(Path.cwd())
    learners = course.learners(unit)
    every = max(1, len(learners) // 10)
    count = 0

    def done(outcome):
        nonlocal count
        assert not outcome.error, outcome
        count += 1
        if count % every == 0 or count == len(learners):
            print(json.dumps([count, time.monotonic(), time.process_time(), memory()]), flush=True)

    grade_each(course, unit, learners, done, workers=workers)

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
"""


@dataclass(frozen=True)
class Stamp:
    """How far a run was: outcomes, seconds on the clock, CPU seconds and MB of the main process."""

    count: int
    clock: float
    cpu: float
    memory: float


@dataclass(frozen=True)
class Run:
    """Seconds that a command and all that it started took, and what it printed."""

    wall: float
    cpu: float
    said: str

    @property
    def stamps(self) -> list[Stamp]:
        """The lines of a stamped run."""
        return [Stamp(*json.loads(line)) for line in self.said.splitlines() if line.startswith("[")]


class Classes:
    """A released course in a scratch folder, and copies of it with a class's submissions."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._base = make_course(folder / "base", UNIT, 0)
        release(self._base, UNIT)

    def make(self, learners: int) -> Path:
        """A course in which so many learners have handed in; the same ones for the same number."""
        target = self._folder / f"class-{learners}"
        if not target.exists():
            shutil.copytree(self._base, target)
            hand_in(target, learners, self._seed)
        return target

    def stock(self, learners: int) -> Path:
        """The same class for nbgrader as it is without this course."""
        target = self._folder / f"stock-{learners}"
        if not target.exists():
            shutil.copytree(self.make(learners), target)
            (target / "nbgrader_config.py").write_text(STOCK.format(root=str(target)), encoding="utf-8")
        return target

    def as_released(self, course: Path) -> Path:
        """The course again as before anything was graded in it."""
        var = course / "grader" / "var"
        for folder in ("autograded", "journal"):
            shutil.rmtree(var / folder, ignore_errors=True)
        shutil.copyfile(self._base / "grader" / "var" / "gradebook.db", var / "gradebook.db")
        return course


def hand_in(course: Path, learners: int, seed: int) -> None:
    """Write submissions: each with up to three of the demo class's mistakes, some unfinished, some late."""
    demo = demo_class(UNIT)
    answers = {str(grade_id(cell)): cell["source"] for cell in _reference(course)["cells"]}
    order = answer_ids(_reference(course))
    released = json.loads((course / "exercises" / UNIT / f"{UNIT}.ipynb").read_text(encoding="utf-8"))
    for number in range(learners):
        draw = random.Random(f"{seed}-{number}")
        own = _answers(demo, answers, order, draw)
        for cell in released["cells"]:
            name = str(grade_id(cell))
            cell["source"] = own.get(name, cell["source"]) if name in order else cell["source"]
        target = course / "grader" / "var" / "submitted" / f"learner-{number:05d}" / UNIT
        target.mkdir(parents=True)
        (target / f"{UNIT}.ipynb").write_text(json.dumps(released), encoding="utf-8")
        when = demo.due + timedelta(hours=draw.uniform(-90, 20))
        (target / "timestamp.txt").write_text(f"{when:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")


def _reference(course: Path) -> Any:
    return read_notebook(course / "solutions" / UNIT / f"{UNIT}.ipynb")


def _answers(demo: DemoClass, answers: dict[str, str], order: list[str], draw: random.Random) -> dict[str, str]:
    """What a learner answers; those who did not come to the end leave the rest as it was given out."""
    plain = {
        name: "\n".join(line for line in answers[name].splitlines() if not line.strip().startswith("### "))
        for name in order
    }
    count = len(order) if draw.random() < 0.85 else draw.randint(1, len(order))
    unfinished = "# YOUR CODE HERE\nraise NotImplementedError()"
    own = {name: plain[name] if place < count else unfinished for place, name in enumerate(order)}
    names = sorted(name for name in demo.mistakes if name != "does_not_run")
    for name in draw.sample(names, draw.randint(0, 3)):
        cell, code = demo.mistakes[name]
        own[cell] = code
    return own


# ---------------------------------------------------------------------------------------------------- measuring


def timed(course: Path, command: list[str]) -> Run:
    """Run a command in a course; its CPU seconds are those of everything that it started."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(course), "OPENBLAS_NUM_THREADS": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    before, start = _children(), time.perf_counter()
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command[:5])} failed:\n{done.stderr[-2000:]}")
    # What outlives its parent is this process's child now, and counts when it has been waited for.
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    return Run(wall=wall, cpu=_children() - before, said=done.stdout)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scores(course: Path) -> dict[str, dict[str, float]]:
    """The automatic score of every grade cell, by learner."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/grader/var/gradebook.db") as gradebook:
        return {
            submission.student.id: {g.cell.name: g.auto_score for nb in submission.notebooks for g in nb.grades}
            for submission in gradebook.assignment_submissions(UNIT)
        }


class Bench:
    """The measurements."""

    def __init__(self, classes: Classes, repeats: int) -> None:
        self._classes = classes
        self._repeats = repeats

    def _engine(self, learners: int) -> Run:
        course = self._classes.as_released(self._classes.make(learners))
        _say(f"grading {learners} submissions with the engine")
        return timed(course, [sys.executable, "-m", "grader.cli", "autograde", UNIT])

    def _stock(self, learners: int) -> Run:
        course = self._classes.as_released(self._classes.stock(learners))
        _say(f"grading {learners} submissions with stock nbgrader")
        return timed(course, [sys.executable, "-m", "nbgrader", "autograde", UNIT, "--create"])

    def _stamped(self, learners: int, workers: int) -> Run:
        course = self._classes.as_released(self._classes.make(learners))
        _say(f"grading {learners} submissions with {workers} worker{'s' if workers > 1 else ''}")
        return timed(course, [sys.executable, "-c", _STAMPED, UNIT, str(workers)])

    def ratio(self, learners: int) -> dict[str, Any]:
        """The engine beside stock nbgrader."""
        stock, engine = [], []
        for _ in range(self._repeats):
            stock.append(self._stock(learners))
            engine.append(self._engine(learners))
        alone = [self._stock(1) for _ in range(self._repeats)]
        found = [scores(self._classes.stock(learners)), scores(self._classes.make(learners))]
        return {
            "ratio_wall_small": _median(stock, "wall") / _median(engine, "wall"),
            "stock_wall_more": (_median(stock, "wall") - _median(alone, "wall")) / max(1, learners - 1),
            "ratio_cpu": _median(stock, "cpu") / _median(engine, "cpu"),
            "stock_wall": _median(stock, "wall") / learners,
            "engine_wall": _median(engine, "wall") / learners,
            "stock_cpu": _median(stock, "cpu") / learners,
            "engine_cpu": _median(engine, "cpu") / learners,
            "scores_equal": found[0] == found[1] and len(found[0]) == learners,
            "cells_compared": sum(map(len, found[0].values())),
        }

    def growth(self, small: int, large: int) -> dict[str, Any]:
        """What a submission costs in a large class against a small one."""
        one = [self._engine(1) for _ in range(self._repeats)]
        few = [self._engine(small) for _ in range(self._repeats)]
        many = self._stamped(large, CORES)
        costs = {
            name: ((getattr(many, name) - _median(one, name)) / (large - 1))
            / ((_median(few, name) - _median(one, name)) / (small - 1))
            for name in ("wall", "cpu")
        }
        stamps = many.stamps
        tenth, half, end = stamps[0], stamps[(len(stamps) - 1) // 2], stamps[-1]
        return {
            "cost_growth_40_to_10000": costs["wall"],
            "cost_growth_cpu": costs["cpu"],
            "cost_growth_with_start_up": (many.wall / large) / (_median(few, "wall") / small),
            "start_up_wall": _median(one, "wall"),
            "small_wall": _median(few, "wall") / small,
            "large_wall": many.wall / large,
            "large_cpu": many.cpu / large,
            "main_process_cpu": (end.cpu - tenth.cpu) / max(1, end.count - tenth.count),
            "memory": {"start": tenth.memory, "middle": half.memory, "end": end.memory},
        }

    def speedup(self, learners: int) -> dict[str, Any]:
        """Two workers against one."""
        rates: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(self._repeats):
            for workers, found in rates.items():
                stamps = self._stamped(learners, workers).stamps
                first, last = stamps[0], stamps[-1]
                found.append((last.count - first.count) / (last.clock - first.clock))
        one, two = statistics.median(rates[1]), statistics.median(rates[2])
        return {"speedup_2_workers": two / one, "rate_1_worker": one, "rate_2_workers": two}


def _median(runs: list[Run], name: str) -> float:
    return statistics.median(getattr(run, name) for run in runs)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _two_cores() -> int:
    """Keep this process and all that it starts on two cores; how many there are now."""
    mine = sorted(os.sched_getaffinity(0))[:CORES]
    os.sched_setaffinity(0, mine)
    return len(mine)


def main() -> int:
    """Measure and report; exit status 1 where a bar is missed or scores differ."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="The engine and large classes.")
    parser.add_argument(
        "--learners", type=int, default=40, help="class for the ratio, and the small one for growth"
    )
    parser.add_argument("--large", type=int, default=10_000, help="the large class for growth and memory")
    parser.add_argument("--both", type=int, default=400, help="class for one worker and two")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: whether it runs, not what it measures")
    options = parser.parse_args()
    if options.smoke:
        options.learners, options.large, options.both, options.repeats = 3, 12, 10, 1
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    result: dict[str, Any] = vars(options) | {"cores": _two_cores()}
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(Classes(Path(scratch), options.seed), options.repeats)
        result |= bench.ratio(options.learners)
        result |= bench.speedup(options.both)
        result |= bench.growth(options.learners, options.large)
    result["ratio_wall"] = result["stock_wall_more"] / result["large_wall"]
    target = BUILD / "bench" / "scale.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return _report(result)


def _report(result: dict[str, Any]) -> int:
    """Print the figures, each beside its bar; 1 where one is missed."""
    missed = not result["scores_equal"]
    for name, bar in BARS.items():
        is_met = result[name] <= bar if name.startswith("cost") else result[name] >= bar
        missed |= not is_met
        print(f"{name:<26}{result[name]:>8.2f}   bar {bar:g}: {'met' if is_met else 'missed'}")
    print(f"{'ratio in the small class':<26}{result['ratio_wall_small']:>8.2f}")
    print(f"{'cost growth with start-up':<26}{result['cost_growth_with_start_up']:>8.2f}")
    memory = ", ".join(f"{name} {megabytes:.0f} MB" for name, megabytes in result["memory"].items())
    print(f"memory of the main process: {memory}")
    print(f"scores of {result['cells_compared']} grade cells equal: {result['scores_equal']}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
