"""The browser part as a step of the build: made where something has changed, left out where the person says so."""

import os
import shutil

from rich.console import Console

from tools.live.fetch import cache_folder
from tools.live.site import Site, build_site, config_text, total_size
from tools.places import HTML, LIVE, ROOT, fingerprint, stamp, stamped, unstamp

__all__ = ["build", "is_wanted", "leave_out"]

_FOLDER = HTML / "live"
_CONFIG = HTML / "_static" / "live-config.mjs"
_PARTS = ("pyodide/pyodide-lock.json", "lite/notebooks/index.html", "exercise.html", "exercises.json")


def is_wanted() -> bool:
    """Whether the browser part is to be built: always, unless LIVE=0 stands in the environment."""
    return os.environ.get("LIVE") != "0"


def build(console: Console) -> None:
    """Build the browser part where something has changed, and tell the book's pages where it is.

    Raises:
        LiveError: it could not be built; the pages then show nothing of it.
    """
    whole = fingerprint(LIVE)
    if stamped("live") == whole and all((_FOLDER / part).exists() for part in _PARTS):
        console.print("The part that runs in the browser is up to date.")
    else:
        unstamp("live")
        _write_config(None)
        site = Site(
            root=ROOT,
            live=_FOLDER,
            cache=cache_folder(),
            say=lambda line: console.print(line, markup=False, soft_wrap=True),
        )
        build_site(site, whole[:12])
        stamp("live", whole)
        size = total_size(_FOLDER) / 1e6
        console.print(f"The part that runs in the browser is in {_FOLDER.relative_to(ROOT)} ({size:.0f} MB).")
    # The book's builder lays its own, empty copy down each time it runs.
    _write_config(whole[:12])


def leave_out(console: Console) -> None:
    """Take an earlier browser part away, and say that the book has none."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    unstamp("live")
    _write_config(None)
    console.print("The part that runs in the browser was left out; `make book` builds it.")


def _write_config(version: str | None) -> None:
    _CONFIG.parent.mkdir(parents=True, exist_ok=True)
    draft = _CONFIG.with_name(f"{_CONFIG.name}.new")
    draft.write_text(config_text(version), encoding="utf-8")
    draft.replace(_CONFIG)
