"""Build everything that has changed, and end with a short summary.

python -m tools.course [--summary] [--quiet]
"""

import argparse
import subprocess
import sys
import time

from rich.console import Console

from ffn.exceptions import CourseFilesError
from ffn.published import coverage, published
from tools import book
from tools.live.exceptions import LiveError
from tools.places import EXECUTED, GRADING, HTML, ROOT, fingerprint, stamp, stamped, tool_environment, unstamp

GRADES = ROOT / "grader" / "var" / "grades.csv"


class StepError(Exception):
    """A step ended with a fault that it has already explained."""


def _grader(*arguments: str, show: bool = True) -> None:
    """Run the command `grader`.

    Raises:
        StepError: it ended with a fault.
    """
    command = [sys.executable, "-m", "grader.cli", *arguments]
    out = None if show else subprocess.DEVNULL
    done = subprocess.run(
        command, cwd=ROOT, env=tool_environment(), stdin=subprocess.DEVNULL, stdout=out, check=False
    )
    if done.returncode != 0:
        raise StepError(f"`grader {' '.join(arguments)}` ended with exit status {done.returncode}, see above.")


def build_all(console: Console) -> None:
    """Book, learner notebooks, demo class, what runs in the browser; each only if what it depends on has changed.

    Raises:
        book.BookError, CourseFilesError, LiveError, StepError: a step failed; what was there before is still there.
    """
    book.build(console)
    _build_class(console)
    # It holds the learner notebooks.
    book.add_live(console)


def _build_class(console: Console) -> None:
    # The release rewrites exercises/ before its part of the fingerprint is taken.
    before = fingerprint(GRADING)
    if stamped("grading") == before and GRADES.exists():
        console.print("The learner notebooks and the demo class are up to date.")
        return
    unstamp("grading")
    console.print("Generating the learner notebooks")
    _grader("release", show=False)
    console.print("Making and grading the demo class")
    _grader("demo", show=False)
    stamp("grading", fingerprint(GRADING))


def summarize(console: Console) -> None:
    """What was built, and where each result can be opened."""
    pages = coverage(EXECUTED)
    reached = sum(bool(found) for found in pages.values())
    units = sorted(folder.parent.name for folder in (ROOT / "solutions").glob("*/*.ipynb"))
    console.print(
        f"Published values checked in lessons: {reached} of {len(published())} (`make coverage` lists them)"
    )
    console.print(f"Units: {', '.join(units)}")
    _grader("scores", "activations")
    console.print(
        f"Book        {(HTML / 'index.html').relative_to(ROOT)}, or `make serve` and http://127.0.0.1:8000/"
    )
    console.print("Exercises   exercises/, or `make lab` for your own copies in JupyterLab")
    console.print("Feedback    grader/var/feedback/learner-01/activations/activations.html, and so on")
    console.print("Scores      grader/var/grades.csv, or `make formgrader` for the class in the formgrader")


def main() -> int:
    """Build and summarize; exit status 1 with the reasons where a step failed."""
    parser = argparse.ArgumentParser(prog="make course", description="Build everything that has changed.")
    parser.add_argument("--summary", action="store_true", help="build nothing, show the summary")
    parser.add_argument("--quiet", action="store_true", help="no summary")
    options = parser.parse_args()
    console = Console(stderr=True, highlight=False)
    start = time.monotonic()
    try:
        if not options.summary:
            build_all(console)
        if not options.quiet:
            summarize(Console(highlight=False, soft_wrap=True))
    except (book.BookError, CourseFilesError, LiveError, StepError) as error:
        console.print(f"error: {error}", markup=False, soft_wrap=True)
        return 1
    if not options.summary:
        console.print(f"Done in {time.monotonic() - start:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
