"""How long `grader check` takes to answer from a cold start, beside `nbgrader validate` on the same notebook.

    python -m bench.check [--unit activations] [--repeats 5]

The notebook is the unit's exercise with the reference answers in it. Every repeat starts each command once, in an order
of its own, with compiled bytecode; medians are compared. `marks` is the time from the start of the process to the last
mark on its output, `check` that to the end of the comparison; the CPU seconds of `marks` are those of
`grader check --no-compare`. The result also goes to _build/bench/check.json. A missed bar is printed and is no failure.
"""

import argparse
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
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grader.notebooks import answer_ids, grade_id, read_notebook, write_notebook
from tools.places import BUILD, ROOT

BAR = 1.5
COMPARING = "Comparing with the reference notebook"
RIGHT = {"marks": "All visible tests pass", "check": "All visible tests pass", "validate": "Success!"}


@dataclass(frozen=True)
class Run:
    """One start of a command: wall seconds to its marks and to its end, and its CPU seconds."""

    marks: float
    wall: float
    cpu: float


def make_notebook(folder: Path, unit: str) -> Path:
    """A learner's folder of the unit, with the reference answers in the notebook."""
    shutil.copytree(ROOT / "exercises" / unit, folder)
    path = folder / f"{unit}.ipynb"
    reference = read_notebook(ROOT / "solutions" / unit / path.name)
    answers = {str(grade_id(cell)): cell["source"] for cell in reference["cells"]}
    notebook, names = read_notebook(path), set(answer_ids(reference))
    for cell in notebook["cells"]:
        if grade_id(cell) in names:
            cell["source"] = answers[str(grade_id(cell))]
    write_notebook(notebook, path)
    return path


def start(name: str, command: Sequence[str], folder: Path) -> Run:
    """Run a command to its end, in a folder."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "JUPYTER_PREFER_ENV_PATH": "1"}
    environment.setdefault("MPLCONFIGDIR", str(Path(sys.prefix) / "matplotlib"))
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    marks, said = 0.0, []
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if line.startswith(COMPARING):
                marks = time.perf_counter() - began
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode != 0 or RIGHT[name] not in "".join(said):
        sys.exit(f"error: {' '.join(command)} failed:\n{''.join(said)[-2000:]}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(marks=marks or wall, wall=wall, cpu=cpu)


def measure(unit: str, repeats: int) -> dict[str, list[Run]]:
    """The runs of each command, alternated."""
    for package in ("ffn", "grader"):
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(ROOT / package)], check=True)
    with tempfile.TemporaryDirectory() as scratch:
        path = make_notebook(Path(scratch) / unit, unit)
        check = [sys.executable, "-m", "grader.cli", "--course", str(ROOT), "check", str(path)]
        commands = {
            "marks": [*check, "--no-compare"],
            "check": check,
            "validate": [sys.executable, "-m", "nbgrader", "validate", path.name],
        }
        runs: dict[str, list[Run]] = {name: [] for name in commands}
        order, shuffle = list(commands), random.Random(0).shuffle
        for repeat in range(repeats + 1):
            shuffle(order)
            for name in order:
                run = start(name, commands[name], path.parent)
                # The first start of each reads files that later ones find in memory.
                if repeat:
                    runs[name].append(run)
    return runs


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def main() -> int:
    """Measure, print, and write it to a file."""
    parser = argparse.ArgumentParser(prog="python -m bench.check", description="How soon `grader check` answers.")
    parser.add_argument("--unit", default="activations")
    parser.add_argument("--repeats", type=positive, default=5)
    options = parser.parse_args()
    runs = measure(options.unit, options.repeats)
    validate = statistics.median(run.wall for run in runs["validate"])
    seconds = {
        # While marks are made, a check that will compare does nothing else yet.
        "marks": statistics.median(run.marks for run in runs["check"]),
        "check": statistics.median(run.wall for run in runs["check"]),
        "validate": validate,
    }
    cpu = {name: statistics.median(run.cpu for run in runs[name]) for name in runs}
    print(f"{'':<10}{'wall s':>8}{'CPU s':>8}{'validate / it':>15}   medians of {options.repeats} cold starts")
    for name, wall in seconds.items():
        print(f"{name:<10}{wall:>8.2f}{cpu[name]:>8.2f}{validate / wall:>15.1f}")
    print(f"marks within {BAR} s: {'met' if seconds['marks'] <= BAR else 'MISSED'}")
    record = {
        "unit": options.unit,
        "repeats": options.repeats,
        "cores": os.cpu_count(),
        "wall": seconds,
        "cpu": cpu,
        "ratio": {name: validate / wall for name, wall in seconds.items()},
        "bar": BAR,
        "met": seconds["marks"] <= BAR,
        "runs": {name: [asdict(run) for run in found] for name, found in runs.items()},
    }
    target = BUILD / "bench" / "check.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
