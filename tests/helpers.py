"""What the tests of the tools, the grader and the pages share: copies of the course, and commands run in them."""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CODE = (
    "tools",
    "ffn",
    "grader",
    "nbgrader_config.py",
    "pyproject.toml",
    "requirements.txt",
    "requirements-models.txt",
)
UNITS = ("solutions", "exercises")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def said_once(text: str) -> str:
    """The one line that a command wrote to say what is wrong; fails where there are more lines, or a traceback."""
    lines = [line for line in text.splitlines() if line.strip()]
    assert len(lines) == 1, text
    assert "Traceback" not in text
    return lines[0]


@dataclass(frozen=True)
class CourseCopy:
    """A copy of the course, or of parts of it, that a test may change."""

    root: Path

    def environment(self, **more: str) -> dict[str, str]:
        """The copy's own packages first; nothing of the person's own Jupyter set-up, no colours, nothing fetched."""
        own = {
            name: value
            for name, value in os.environ.items()
            if name not in ("PYTHONDONTWRITEBYTECODE", "COLUMNS", "FORCE_COLOR")
            and not name.startswith(("JUPYTER", "MAKE", "MFLAGS"))
        }
        outside = self.root.parent / f"{self.root.name}-jupyter"
        outside.mkdir(exist_ok=True)
        return {
            **own,
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), own.get("PATH", "")]),
            "PYTHONPATH": str(self.root),
            "MPLCONFIGDIR": str(Path(sys.prefix) / "matplotlib"),
            "JUPYTER_PREFER_ENV_PATH": "1",
            "LIVE": "0",
            "JUPYTER_CONFIG_DIR": str(outside / "config"),
            "JUPYTER_DATA_DIR": str(outside / "data"),
            "JUPYTER_RUNTIME_DIR": str(outside / "runtime"),
            "IPYTHONDIR": str(outside / "ipython"),
            **more,
        }

    def command(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env=self.environment(**environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def module(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `python -m name arguments` in the copy."""
        return self.command(sys.executable, "-m", name, *arguments)

    def grader(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.module("grader.cli", *arguments)


def copy_of_course(target: Path, *parts: str) -> CourseCopy:
    """Copy parts of the course (files and folders), without what was built."""
    target.mkdir(parents=True, exist_ok=True)
    skip = shutil.ignore_patterns("__pycache__", "var", ".ipynb_checkpoints", "*.new")
    for part in parts:
        source, copy = ROOT / part, target / part
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, copy, ignore=skip)
        else:
            shutil.copyfile(source, copy)
    return CourseCopy(target)
