"""How long the book takes to build: from nothing, and after one lesson was edited.

    python bench/book.py

Works on a copy of the course in a scratch folder, without the part that runs in the browser. Prints seconds of wall
time and of the processor, and writes _build/bench/book.json. It is a measurement, not a test: on a busy machine the
times say little.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = (
    "_config.yml",
    "_toc.yml",
    "book",
    "exercises",
    "ffn",
    "tools",
    "requirements.txt",
    "requirements-models.txt",
)
EDITED = "book/worked-cells/cell-b.md"
BARS = {"clean build": 180.0, "after an edit": 15.0, "nothing changed": 15.0}


@dataclass(frozen=True)
class Run:
    """Seconds of one build, by the clock and by the processor (its children's included)."""

    what: str
    wall: float
    cpu: float
    bar: float


def build(course: Path, what: str) -> Run:
    """Build the copy and measure it; the build's own output is shown where it fails."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(course), "LIVE": "0"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "tools.book"],
        cwd=course,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"error: the {what} failed:\n{done.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(what=what, wall=wall, cpu=cpu, bar=BARS[what])


def main() -> int:
    """Measure the builds and print them beside their bars."""
    with tempfile.TemporaryDirectory() as scratch:
        course = Path(scratch)
        for part in PARTS:
            source = ROOT / part
            if source.is_dir():
                shutil.copytree(source, course / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(source, course / part)
        runs = [build(course, "clean build")]
        lesson = course / EDITED
        text = lesson.read_text(encoding="utf-8")
        lesson.write_text(text.replace("z_B = terms.sum() + b", "z_B = b + terms.sum()"), encoding="utf-8")
        if lesson.read_text(encoding="utf-8") == text:
            sys.exit(f"error: {EDITED} no longer has the line that this benchmark edits.")
        runs.append(build(course, "after an edit"))
        runs.append(build(course, "nothing changed"))
    print(f"{'build':<18}{'wall s':>8}{'CPU s':>8}{'bar s':>8}")
    for run in runs:
        met = "met" if run.wall <= run.bar else "missed"
        print(f"{run.what:<18}{run.wall:>8.1f}{run.cpu:>8.1f}{run.bar:>8.0f}  {met}")
    target = ROOT / "_build" / "bench" / "book.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps([asdict(run) for run in runs], indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
