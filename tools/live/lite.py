"""JupyterLite with the exercises in it: the notebook application alone, on the Pyodide beside it."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.live.bundle import BUFFERED
from tools.live.exceptions import LiveError
from tools.live.exercises import Unit
from tools.places import tool_environment

__all__ = ["PRELOADED", "build_lite", "settings"]

_KERNEL_PLUGIN = "@jupyterlite/pyodide-kernel-extension:kernel"

# Loaded side by side at the start. What is missing here the kernel's worker installs one after another.
PRELOADED = (
    "micropip",
    "piplite",
    "ssl",
    "sqlite3",
    "ipykernel",
    "comm",
    "pyodide_kernel",
    "jedi",
    "ipython",
    "ffn-course",
    "ffn-exercise-data",
)


def settings(version: str) -> dict[str, Any]:
    """The site's settings. Paths that begin with a dot are taken from the site's own folder."""
    kernel = {
        "pyodideUrl": f"./../pyodide/{BUFFERED}",
        "disablePyPIFallback": True,
        "loadPyodideOptions": {
            # A lock that a browser kept from an earlier build would name wheels that are gone.
            "lockFileURL": f"../pyodide/pyodide-lock.json?v={version}",
            "packages": list(PRELOADED),
        },
    }
    return {
        "jupyter-lite-schema-version": 0,
        "jupyter-config-data": {
            "appName": "Exercises",
            "appUrl": "./tree",
            "faviconUrl": "./../../_static/favicon.svg",
            # The data of an exercise comes as a package, so nothing needs a service worker.
            "disabledExtensions": ["@jupyterlite/application-extension:service-worker-manager"],
            "litePluginSettings": {_KERNEL_PLUGIN: kernel},
        },
    }


# Work is stored a few seconds after it was typed, not every two minutes; colours follow the reader's system; cells out
# of sight stay on the page, so that the browser's search finds them.
_OVERRIDES = {
    "@jupyterlab/docmanager-extension:plugin": {"autosaveInterval": 5},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},
    "@jupyterlab/apputils-extension:notification": {"checkForUpdates": False, "fetchNews": "false"},
}


# On a page that may share memory with workers the kernel would ask the page for every file through such memory, and now
# and then reads an answer that is not there yet, which ends Python. It asks for no file where the page says it may not.
_HEAD = """\
  <script>Object.defineProperty(window, "crossOriginIsolated", { value: false });</script>
    <link rel="icon" href="../../../_static/favicon.svg" />
    <script type="module" src="../../guard.mjs"></script>
"""

_BACK = """\
<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <title>To the exercise</title>
    <link rel="icon" href="../../../_static/favicon.svg" />
    <script>
      const path = new URL(document.referrer || location.href).searchParams.get("path") || "";
      location.replace(`../../exercise.html?unit=${encodeURIComponent(path.split("/")[0])}`);
    </script>
  </head>
  <body><p><a href="../../exercise.html">To the exercises in the browser</a></p></body>
</html>
"""


def build_lite(folder: Path, units: Sequence[Unit], extension: Path, version: str) -> None:
    """Build the site with the kernel's extension into a folder, which is there whole or as it was before.

    Raises:
        LiveError: JupyterLite's builder failed.
    """
    with tempfile.TemporaryDirectory() as scratch:
        source, built = Path(scratch, "source"), Path(scratch, "built")
        _write_source(source, units, extension, version)
        _run_builder(source, built)
        _tidy(built)
        draft = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(built, draft)
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)


def _write_source(source: Path, units: Sequence[Unit], extension: Path, version: str) -> None:
    (source / "contents").mkdir(parents=True)
    for unit in units:
        target = source / "contents" / unit.name
        target.mkdir()
        (target / f"{unit.name}.ipynb").write_bytes(unit.notebook)
        for name, content in unit.beside.items():
            (target / name).write_bytes(content)
    # Only the kernel: what else is installed beside it (nbgrader, widgets) has no use without a server.
    build = {"ignore_sys_prefix": ["federated_extensions"]}
    build |= {"federated_extensions": [str(extension)]}
    for name, value in {
        "jupyter_lite_config.json": {"LiteBuildConfig": build},
        "jupyter-lite.json": settings(version),
        "overrides.json": _OVERRIDES,
    }.items():
        (source / name).write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def _run_builder(source: Path, built: Path) -> None:
    command = [sys.executable, "-m", "jupyterlite_core", "build", "--apps", "notebooks", "--no-sourcemaps"]
    command += ["--no-unused-shared-packages", "--lite-dir", str(source), "--contents", str(source / "contents")]
    command += ["--output-dir", str(built)]
    done = subprocess.run(
        command,
        cwd=source,
        env=tool_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise LiveError.step_failed("JupyterLite's builder", done.stdout.splitlines()[-15:])


def _tidy(built: Path) -> None:
    """Take out what nothing loads, and join the site to the exercise page.

    Raises:
        LiveError: the builder's page is not as it was when this was written.
    """
    (built / "service-worker.js").unlink(missing_ok=True)
    shutil.rmtree(built / "doc", ignore_errors=True)
    page = built / "notebooks" / "index.html"
    text = page.read_text(encoding="utf-8")
    if text.count("</head>") != 1 or "<title>Jupyter Notebook - Notebooks</title>" not in text:
        raise LiveError.step_failed("JupyterLite's page", ["it has no head, or another title than expected"])
    text = text.replace("<title>Jupyter Notebook - Notebooks</title>", "<title>Exercise</title>")
    page.write_text(text.replace("</head>", f"{_HEAD}  </head>"), encoding="utf-8")
    # Where JupyterLite's logo and menus lead; the applications that they mean are not there.
    for name in ("tree", "lab"):
        (built / name).mkdir(exist_ok=True)
        (built / name / "index.html").write_text(_BACK, encoding="utf-8")
