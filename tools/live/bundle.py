"""Pyodide as the book serves it: the core, the wheels that are needed, ffn's own, and a lock that names just these."""

import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.live.exceptions import LiveError
from tools.live.pins import CORE_FILES, LOCK, Wanted
from tools.live.wheel import Wheel

__all__ = ["BUFFERED", "Extra", "closure", "extras", "prune", "read_core", "wheels_of", "write_bundle"]

Lock = dict[str, Any]

# What JupyterLite loads in the place of pyodide.js: compiling the program while it arrives, Chromium now and then waits
# for ever for the copy that it keeps of compiled programs (as in book/_static/live-worker.mjs).
BUFFERED = "pyodide-buffered.js"
_BUFFER = b"""\
WebAssembly.instantiateStreaming = async (source, imports) => {
  const answer = await source;
  if (!answer.ok) throw new Error(`${answer.url} was not found (${answer.status})`);
  return WebAssembly.instantiate(await answer.arrayBuffer(), imports);
};
"""

# matplotlib is loaded for whoever imports it; a cell that imports ffn.plots imports it too.
_ALSO = {"matplotlib": ["ffn.plots"]}


@dataclass(frozen=True)
class Extra:
    """A wheel that Pyodide's own lock does not have."""

    name: str
    version: str
    file_name: str
    content: bytes
    imports: tuple[str, ...]
    depends: tuple[str, ...] = ()

    def entry(self) -> dict[str, Any]:
        """Its entry in the lock."""
        return {
            "depends": list(self.depends),
            "file_name": self.file_name,
            "imports": list(self.imports),
            "install_dir": "site",
            "name": self.name,
            "package_type": "package",
            "sha256": hashlib.sha256(self.content).hexdigest(),
            "unvendored_tests": False,
            "version": self.version,
        }


def _key(name: str) -> str:
    """A package's name as the lock's keys spell it."""
    return name.lower().replace("_", "-").replace(".", "-")


def read_core(archive: Path) -> dict[str, bytes]:
    """The core files and the lock from npm's archive."""
    with tarfile.open(archive) as package:
        found = {}
        for name in (*CORE_FILES, LOCK):
            member = package.extractfile(f"package/{name}")
            assert member is not None
            found[name] = member.read()
    return found


def closure(lock: Lock, roots: Iterable[str]) -> list[str]:
    """Keys of the roots' entries and of all that they depend on.

    Raises:
        LiveError: the lock has no such package.
    """
    keys = {_key(name): name for name in lock["packages"]}
    needed: set[str] = set()
    waiting = [_key(root) for root in roots]
    while waiting:
        name = waiting.pop()
        if name not in keys:
            raise LiveError.unknown_package(name)
        if keys[name] not in needed:
            needed.add(keys[name])
            waiting += [_key(other) for other in lock["packages"][keys[name]]["depends"]]
    return sorted(needed)


def wheels_of(lock: Lock, packages: Iterable[str]) -> list[Wanted]:
    """The files of these packages, with the digests that the lock gives."""
    entries = [lock["packages"][name] for name in packages]
    return [Wanted(name=entry["file_name"], digest=entry["sha256"]) for entry in entries]


def prune(lock: Lock, packages: Sequence[str], more: Iterable[Extra]) -> Lock:
    """The lock with these packages and the extra ones, and no others."""
    kept = {name: dict(lock["packages"][name]) for name in packages}
    for name, imports in _ALSO.items():
        if name in kept:
            kept[name]["imports"] = [*kept[name]["imports"], *imports]
    kept |= {_key(extra.name): extra.entry() for extra in more}
    return {**lock, "packages": dict(sorted(kept.items()))}


def extras(helper: Wheel, data: Wheel, kernel: Mapping[str, Path], comm: Path) -> list[Extra]:
    """The course's helper module, the exercises' data, and what the kernel needs beside Pyodide's own packages."""
    needs = {"pyodide-kernel": ("ipython", "comm"), "piplite": ("micropip",)}
    found = [
        Extra(helper.name, helper.version, helper.file_name, helper.content, ("ffn",), ("numpy",)),
        Extra(data.name, data.version, data.file_name, data.content, ()),
    ]
    for name, path in {**kernel, "comm": comm}.items():
        version, imports = path.name.split("-")[1], (name.replace("-", "_"),)
        found.append(Extra(name, version, path.name, path.read_bytes(), imports, needs.get(name, ())))
    return found


def write_bundle(
    folder: Path, core: Mapping[str, bytes], wheels: Iterable[Path], more: Iterable[Extra], lock: Lock
) -> None:
    """Write everything into a folder, which is there whole or as it was before."""
    draft = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for name in CORE_FILES:
        (draft / name).write_bytes(core[name])
    (draft / "pyodide.js").rename(draft / BUFFERED)
    (draft / BUFFERED).write_bytes(_BUFFER + core["pyodide.js"])
    for wheel in wheels:
        shutil.copyfile(wheel, draft / wheel.name)
    for extra in more:
        (draft / extra.file_name).write_bytes(extra.content)
    (draft / LOCK).write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    shutil.rmtree(folder, ignore_errors=True)
    draft.rename(folder)
