"""The learner notebooks as the browser gets them: each with its version, and a list of all for the exercise page."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.live.wheel import Wheel, pack

__all__ = ["KERNEL", "Unit", "data_wheel", "manifest", "read_units"]

# JupyterLite knows its kernel by this name; under another it asks the learner for one.
KERNEL = {"display_name": "Python (in the browser)", "language": "python", "name": "python"}


@dataclass(frozen=True)
class Unit:
    """An exercise: its notebook as the browser gets it, and the data beside it."""

    name: str
    title: str
    version: str
    notebook: bytes
    beside: dict[str, bytes]

    @property
    def path(self) -> str:
        """Where JupyterLite has the notebook."""
        return f"{self.name}/{self.name}.ipynb"


def read_units(exercises: Path) -> list[Unit]:
    """All units below a folder, by name."""
    return [_read(notebook) for notebook in sorted(exercises.glob("*/*.ipynb"))]


def _read(path: Path) -> Unit:
    source = path.read_bytes()
    beside = {
        other.name: other.read_bytes()
        for other in sorted(path.parent.iterdir())
        if other.is_file() and other != path
    }
    digest = hashlib.sha256(source)
    for name, content in beside.items():
        digest.update(name.encode() + hashlib.sha256(content).digest())
    version = digest.hexdigest()[:12]
    notebook = json.loads(source)
    # It stays with a copy that a learner works on, and says which version that copy was begun from.
    notebook["metadata"] |= {"kernelspec": KERNEL, "exercise": {"unit": path.stem, "version": version}}
    return Unit(
        name=path.stem,
        title=_title(notebook, path.stem),
        version=version,
        notebook=(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode(),
        beside=beside,
    )


def _title(notebook: Any, otherwise: str) -> str:
    """The notebook's first heading."""
    text = "".join(notebook["cells"][0]["source"])
    lines = [line.lstrip("# ").strip() for line in text.splitlines() if line.startswith("# ")]
    return lines[0] if lines else otherwise


def manifest(units: list[Unit]) -> str:
    """What the exercise page asks: title, version and place of each unit."""
    entries = {unit.name: {"title": unit.title, "version": unit.version, "path": unit.path} for unit in units}
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


def data_wheel(units: list[Unit]) -> Wheel:
    """A wheel that lays the units' data where Python starts in the browser.

    Where the browser gives the kernel no way to the files of the page, a notebook still finds its data beside it.
    """
    name, version = "ffn_exercise_data", "1"
    files = {
        f"{name}-{version}.data/data/home/pyodide/{file}": content
        for unit in units
        for file, content in unit.beside.items()
        if file.endswith((".csv", ".json", ".npy", ".npz"))
    }
    return pack(name, version, ">=3.11", files)
