"""A class graded twice, by stock `nbgrader autograde` and by the course's engine: seconds, and the same scores.

    python -m bench.grading [--learners 40] [--unit activations]

Makes the class in a scratch copy of the course: every learner hands in the same notebook, some with one of the demo
class's mistakes in it. Both graders have compiled bytecode. Prints wall and CPU seconds of a submission and their
ratios, compares the scores cell by cell, and writes _build/bench/grading.json. It is a measurement, not a test: on a
busy machine the times say little.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.demo_class import demo_class
from grader.notebooks import answer_ids, grade_id, read_notebook, write_notebook
from tools.places import BUILD, ROOT

PARTS = ("nbgrader_config.py", "solutions", "exercises", "grader", "ffn")
BAR = 15.0
# nbgrader as it is without this course: its own execution, nothing of the engine's.
STOCK = """
c = get_config()
c.CourseDirectory.course_id = "ffn"
c.CourseDirectory.root = {root!r}
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
c.CourseDirectory.submitted_directory = "grader/var/submitted"
c.CourseDirectory.autograded_directory = "grader/var/autograded"
c.CourseDirectory.db_url = "sqlite:///{root}/grader/var/gradebook.db"
c.Exchange.root = {root!r}
"""


@dataclass(frozen=True)
class Run:
    """Seconds of one grader for the whole class, and the score of every grade cell by learner."""

    wall: float
    cpu: float
    scores: dict[str, dict[str, float]]


def make_course(folder: Path, unit: str, learners: int) -> Path:
    """A copy of the course with the class's submissions."""
    folder.mkdir(parents=True)
    for part in PARTS:
        source = ROOT / part
        skip = shutil.ignore_patterns("__pycache__", "var", ".ipynb_checkpoints")
        shutil.copytree(source, folder / part, ignore=skip) if source.is_dir() else shutil.copy(
            source, folder / part
        )
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=True)
    reference = read_notebook(folder / "solutions" / unit / f"{unit}.ipynb")
    answers = {str(grade_id(cell)): cell["source"] for cell in reference["cells"]}
    mistakes = [mistake for name, mistake in sorted(demo_class(unit).mistakes.items()) if name != "does_not_run"]
    for number in range(learners):
        notebook = read_notebook(folder / "exercises" / unit / f"{unit}.ipynb")
        own = {name: _plain(answers[name]) for name in answer_ids(reference)}
        if number % 4:
            cell, code = mistakes[number % len(mistakes)]
            own[cell] = code
        for cell in notebook["cells"]:
            cell["source"] = own.get(str(grade_id(cell)), cell["source"])
        target = folder / "grader" / "var" / "submitted" / f"learner-{number:02d}" / unit
        target.mkdir(parents=True)
        write_notebook(notebook, target / f"{unit}.ipynb")
    return folder


def _plain(source: str) -> str:
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith("### "))


def measure(course: Path, unit: str, command: list[str]) -> Run:
    """Run a grader in the course, and read the scores it left."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(course), "OPENBLAS_NUM_THREADS": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(wall=wall, cpu=cpu, scores=_scores(course, unit))


def _scores(course: Path, unit: str) -> dict[str, dict[str, float]]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{course}/grader/var/gradebook.db") as gradebook:
        return {
            submission.student.id: {g.cell.name: g.auto_score for nb in submission.notebooks for g in nb.grades}
            for submission in gradebook.assignment_submissions(unit)
        }


def release(course: Path, unit: str, config: Path | None = None) -> None:
    """Put the unit into the course's gradebook."""
    options = [f"--config={config}"] if config else []
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", unit, "--force", "--create", *options]
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    environment["PYTHONPATH"] = str(course)
    subprocess.run(command, cwd=course, env=environment, check=True, capture_output=True)


def main() -> int:
    """Grade the class both ways; exit status 1 where the bar is missed or scores differ."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.grading", description="The engine beside stock nbgrader."
    )
    parser.add_argument("--learners", type=int, default=40)
    parser.add_argument("--unit", default="activations")
    options = parser.parse_args()
    runs: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("stock", "engine"):
            course = make_course(Path(scratch) / name, options.unit, options.learners)
            if name == "stock":
                config = course / "nbgrader_config.py"
                config.write_text(STOCK.format(root=str(course)), encoding="utf-8")
                command = [sys.executable, "-m", "nbgrader", "autograde", options.unit, "--create"]
            else:
                command = [sys.executable, "-m", "grader.cli", "autograde", options.unit]
            release(course, options.unit)
            print(f"grading {options.learners} submissions with {name}", file=sys.stderr)
            runs[name] = measure(course, options.unit, command)
    stock, engine = runs["stock"], runs["engine"]
    result: dict[str, Any] = {
        "learners": options.learners,
        "stock_wall": stock.wall / options.learners,
        "stock_cpu": stock.cpu / options.learners,
        "engine_wall": engine.wall / options.learners,
        "engine_cpu": engine.cpu / options.learners,
        "ratio_wall": stock.wall / engine.wall,
        "ratio_cpu": stock.cpu / engine.cpu,
        "scores_equal": stock.scores == engine.scores,
    }
    print(f"{'':<8}{'wall s':>10}{'CPU s':>10}   a submission, start-up included")
    for name in ("stock", "engine"):
        print(f"{name:<8}{result[f'{name}_wall']:>10.3f}{result[f'{name}_cpu']:>10.3f}")
    verdict = "met" if result["ratio_wall"] >= BAR else "missed"
    print(f"ratio   {result['ratio_wall']:>10.1f}{result['ratio_cpu']:>10.1f}   bar {BAR:.0f} (wall): {verdict}")
    print(f"scores of {sum(map(len, stock.scores.values()))} grade cells equal: {result['scores_equal']}")
    target = BUILD / "bench" / "grading.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    return int(result["ratio_wall"] < BAR or not result["scores_equal"])


if __name__ == "__main__":
    sys.exit(main())
