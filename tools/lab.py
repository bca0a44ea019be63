"""Open JupyterLab on a learner's own copies of the exercises, or nbgrader's formgrader on the course.

    python -m tools.lab [--formgrader] [--port 8000]

Copies go to work/. A copy that is there already is never overwritten; where the exercise has changed since, the
new version is laid beside it under a name of its own.
"""

import argparse
import filecmp
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.places import ROOT, tool_environment
from tools.ports import PortInUseError, port_number, require_free

WORK = ROOT / "work"
_RELEASED = ".released"


def copy_exercises(exercises: Path, work: Path) -> list[str]:
    """Give the learner a copy of every exercise file; returns what was done, a line each.

    Beside each copy the released bytes are kept in a hidden folder, so that a changed release is told from the
    learner's own changes.
    """
    said = []
    for source in sorted(path for path in exercises.rglob("*") if path.is_file()):
        name = source.relative_to(exercises)
        if ".ipynb_checkpoints" in name.parts:
            continue
        own, released = work / name, work / _RELEASED / name
        known = released.exists()
        if own.exists() and known and filecmp.cmp(source, released, shallow=False):
            continue
        # A file of the learner's own, brought along, stays; from now on later releases are told from it.
        target = own if not own.exists() else _new_version(own) if known else None
        for place in filter(None, (target, released)):
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
        said += [f"work/{target.relative_to(work).as_posix()}"] if target else []
    return said


def _new_version(own: Path) -> Path:
    """A name beside the learner's copy that is not taken yet."""
    stems = (f"{own.stem}-new-version{n}" for n in ("", *map("-{}".format, range(2, 1000))))
    return next(path for path in map(own.with_stem, stems) if not path.exists())


def main() -> int:
    """Start the server in the foreground; exit status 1 where a port is taken or nothing is there to open."""
    parser = argparse.ArgumentParser(prog="make lab", description="Open JupyterLab, or nbgrader's formgrader.")
    parser.add_argument("--formgrader", action="store_true", help="open the formgrader on the course")
    parser.add_argument("--port", type=port_number, default=8000)
    parser.add_argument("--no-browser", action="store_true", help="print the address, open nothing")
    options = parser.parse_args()
    try:
        require_free(options.port, "make formgrader" if options.formgrader else "make lab")
    except PortInUseError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    folder, url = (ROOT, "/formgrader") if options.formgrader else (WORK, "/lab")
    if not options.formgrader:
        for name in copy_exercises(ROOT / "exercises", WORK):
            sys.stderr.write(f"  {name} is yours to work in\n")
    app = "jupyter_server" if options.formgrader else "jupyterlab"
    command = [sys.executable, "-m", app, f"--port={options.port}", "--port-retries=0"]
    command += [f"--ServerApp.root_dir={folder}", f"--ServerApp.default_url={url}", "--log-level=WARN"]
    command += ["--no-browser"] if options.no_browser else []
    command += ["--allow-root"] if os.geteuid() == 0 else []
    # Nothing looks for news or newer versions on other hosts.
    quiet = ["--LabApp.news_url=", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += [] if options.formgrader else quiet
    sys.stderr.write("Starting; the address with its token follows (Ctrl-C stops the server).\n")
    try:
        return subprocess.run(command, cwd=folder, env=tool_environment(), check=False).returncode
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
