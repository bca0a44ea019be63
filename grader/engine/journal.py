"""Verdicts on their way into the gradebook, each in a file of its own below grader/var/journal/UNIT.

A verdict is written here first and removed when gradebook and graded notebook have it, so none is lost to a run that
is cut off, or to a gradebook that cannot be written. A file is written whole or not at all, and read as data: it is
bounded, no link is followed, and a digest tells whether it is as it was written.
"""

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.engine.process import decoded
from grader.engine.store import require_learner
from grader.engine.verdict import Verdict
from grader.exceptions import JournalUnreadableError, UnwritableError

__all__ = ["Entry", "Journal"]

MOST_BYTES = 256 << 20
_ENDING = ".verdict"
_DRAFT = ".new"
_OLD_SECONDS = 3600.0
_FORMAT = 1


@dataclass(frozen=True)
class Entry:
    """A verdict with what it is kept with: the record of what was graded, the time, and the graded notebook.

    ``header`` is the verdict as ``grader.engine.process.encoded`` gives it. Without a record it is graded again.
    """

    learner: str
    record: dict[str, str]
    when: datetime | None
    header: bytes
    notebook: bytes

    @property
    def verdict(self) -> Verdict:
        """The verdict, with the answers alone as its notebook."""
        return decoded(self.header)


class Journal:
    """The journal of a unit; ``engine`` names the code that grades, whose verdicts alone count.

    Raises:
        UnwritableError: its folder cannot be made or read.
    """

    def __init__(self, folder: Path, engine: str) -> None:
        self._folder = folder
        self._engine = engine
        try:
            folder.mkdir(parents=True, exist_ok=True)
            found = {path.name for path in folder.iterdir()}
            _clear(folder / name for name in found if name.endswith(_DRAFT))
        except OSError as error:
            raise UnwritableError(folder, error.strerror or str(error)) from error
        self._names = {name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING)}

    def put(self, entry: Entry) -> None:
        """Write a verdict down; one that is there for the learner is replaced.

        Raises:
            InvalidLearnerError: the name can be no learner's id.
            UnwritableError: the disk is full, or read-only.
        """
        require_learner(entry.learner)
        path = self._path(entry.learner)
        draft = path.with_name(f".{entry.learner}.{os.getpid()}{_DRAFT}")
        try:
            try:
                draft.write_bytes(self._bytes(entry))
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
        except OSError as error:
            raise UnwritableError(self._folder, error.strerror or str(error)) from error
        self._names.add(entry.learner)

    def has(self, learner: str) -> bool:
        """Whether there is something for the learner, of whatever record."""
        return learner in self._names

    def get(self, learner: str, record: dict[str, str] | None = None) -> Entry | None:
        """The learner's verdict; None where there is none of this record, by the code of today.

        Raises:
            JournalUnreadableError: something is there that is no verdict; it is set aside.
        """
        if learner not in self._names:
            return None
        try:
            found, entry = self._read(learner)
        except FileNotFoundError:
            self._names.discard(learner)
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise self._aside(learner) from error
        fits = record is None or (bool(entry.record) and entry.record == record)
        return entry if fits and found == self._engine else None

    def drop(self, learner: str) -> None:
        """Forget the learner's verdict."""
        if learner in self._names:
            self._names.discard(learner)
            with contextlib.suppress(OSError):
                self._path(learner).unlink()

    def _path(self, learner: str) -> Path:
        return self._folder / f"{learner}{_ENDING}"

    def _bytes(self, entry: Entry) -> bytes:
        head = {
            "format": _FORMAT,
            "engine": self._engine,
            "learner": entry.learner,
            "record": entry.record,
            "time": None if entry.when is None else entry.when.isoformat(),
            "header": len(entry.header),
        }
        body = json.dumps(head).encode() + b"\n" + entry.header + entry.notebook
        return hashlib.sha256(body).hexdigest().encode() + b"\n" + body

    def _read(self, learner: str) -> tuple[str, Entry]:
        digest, _, body = _regular(self._path(learner)).partition(b"\n")
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise ValueError
        line, _, rest = body.partition(b"\n")
        head: dict[str, Any] = json.loads(line)
        if head["format"] != _FORMAT or head["learner"] != learner:
            raise ValueError
        when = None if head["time"] is None else datetime.fromisoformat(head["time"])
        record = {str(key): str(value) for key, value in head["record"].items()}
        entry = Entry(learner, record, when, rest[: head["header"]], rest[head["header"] :])
        # What is no verdict would be found out in the middle of writing it down.
        entry.verdict  # noqa: B018
        return str(head["engine"]), entry

    def _aside(self, learner: str) -> JournalUnreadableError:
        path = self._path(learner)
        aside = path.with_name(f"{path.name}.unreadable")
        self._names.discard(learner)
        with contextlib.suppress(OSError):
            path.replace(aside)
        return JournalUnreadableError(path, aside)


def _clear(drafts: Iterable[Path]) -> None:
    """Remove what runs that were cut off had begun; another run may be at work beside this one."""
    for draft in drafts:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - draft.lstat().st_mtime > _OLD_SECONDS:
                draft.unlink()


def _regular(path: Path) -> bytes:
    """The bytes of a file that is no link, pipe or device, and no larger than a verdict can be."""
    if not stat.S_ISREG(path.lstat().st_mode):
        raise ValueError
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        if os.fstat(descriptor).st_size > MOST_BYTES:
            raise ValueError
        return stream.read(MOST_BYTES)
