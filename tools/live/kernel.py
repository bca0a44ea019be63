"""JupyterLite's kernel, taken out of its wheel.

It is not installed: what is installed as an extension loads in JupyterLab, too, which cannot run it.
"""

import json
import zipfile
from pathlib import Path

from tools.live.exceptions import LiveError

__all__ = ["kernel_wheels", "unpack"]

_EXTENSION = "share/jupyter/labextensions/@jupyterlite/pyodide-kernel-extension/"
_INSIDE = ("ipykernel", "piplite", "pyodide-kernel")


def unpack(wheel: Path, folder: Path) -> Path:
    """Lay the wheel's extension into a folder; gives the extension's own folder.

    Raises:
        LiveError: the wheel has no such extension.
    """
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if _EXTENSION in name]
        archive.extractall(folder, members)
    packages = [folder / name for name in members if name.endswith(f"{_EXTENSION}package.json")]
    if len(packages) != 1:
        raise LiveError.step_failed("JupyterLite's kernel", [f"{wheel.name} has no extension"])
    return packages[0].parent


def kernel_wheels(extension: Path) -> dict[str, Path]:
    """The kernel's own wheels, which come with the extension: package to file."""
    folder = extension / "static" / "pypi"
    index = json.loads((folder / "all.json").read_text(encoding="utf-8"))
    return {name: folder / next(iter(index[name]["releases"].values()))[0]["filename"] for name in _INSIDE}
