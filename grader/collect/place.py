"""Submissions into their places: everything is unpacked beside them first, and then moved in whole.

A run that is killed leaves each learner with what was there or with what came. Folders are opened one inside the other
without following links, and moved relative to what was opened; so nothing is written outside of
grader/var/submitted and grader/var/attempts, whatever lies there.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from pathlib import Path
from typing import Any

from grader.collect.archive import Source
from grader.collect.exchange import exchange
from grader.collect.plan import Attempt, Entry, Known, LeftOut, Plan, Step, Stored, attempt_folder, too_large
from grader.collect.times import Zone, in_utc, written
from grader.course import Course
from grader.engine.read import UnreadableError
from grader.engine.store import collect as read_submission
from grader.engine.store import require_learner
from grader.engine.verdict import Limits
from grader.exceptions import CollectBusyError

__all__ = [
    "Unpacked",
    "attempts_root",
    "known_of",
    "place",
    "read_record",
    "recover",
    "scratch_folder",
    "unpack",
    "write_record",
]

RECORD = "collected.json"
_MOST_RECORD_BYTES = 10_000_000
_NUMBER = re.compile(r"(\d{3,6})-[0-9A-Za-z-]+", re.ASCII)
_ZIP = b"PK\x03\x04"
_UTC = Zone("UTC", UTC)


@dataclass(frozen=True)
class Unpacked:
    """A plan whose notebooks were read: with hashes, and with the folder of each, by path in the download."""

    plan: Plan
    folders: Mapping[str, Path]


@contextlib.contextmanager
def scratch_folder(course: Course) -> Iterator[Path]:
    """A folder beside the submissions to unpack into, for one run at a time; what an earlier run left there goes.

    Raises:
        CollectBusyError: another run is at work.
    """
    course.var.mkdir(parents=True, exist_ok=True)
    with (course.var / ".collect.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CollectBusyError from error
        for rest in course.var.glob(".collect-*"):
            shutil.rmtree(rest, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=".collect-", dir=course.var))
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


# --------------------------------------------------------------------------------------------------------- unpacking


def unpack(source: Source, plan: Plan, unit: str, scratch: Path | None, limits: Limits) -> Unpacked:
    """Read all notebooks of a plan into folders as they are to be moved; without ``scratch``, their hashes alone.

    What turns out to be no notebook is left out, and with its newest attempt a learner.

    Raises:
        DownloadRefusedError: the download is damaged, or too much altogether.
    """
    source.require_total(attempt.member for entry in plan.entries for attempt in entry.attempts)
    entries: list[Entry] = []
    left = list(plan.left_out)
    folders: dict[str, Path] = {}
    for entry in plan.entries:
        read: list[Attempt] = []
        reason = ""
        for attempt in entry.attempts:
            folder = scratch / str(len(folders)) if scratch else None
            digest, reason = _unpack(source, attempt, folder, unit, limits)
            if reason:
                left.append(LeftOut(entry.name or entry.login or entry.learner, (attempt.member.path,), reason))
                continue
            if folder is not None:
                folders[attempt.member.path] = folder
            read.append(replace(attempt, digest=digest))
        if not reason:
            entries.append(replace(entry, attempts=tuple(read)))
    if scratch is not None:
        # One flush for all: what is moved below is on the disk before it is in its place.
        os.sync()
    return Unpacked(replace(plan, entries=tuple(entries), left_out=tuple(left)), folders)


def _unpack(source: Source, attempt: Attempt, folder: Path | None, unit: str, limits: Limits) -> tuple[str, str]:
    """Read a notebook into a folder, with its time: the notebook's hash, and why it is none that could be graded."""
    most = limits.submission_bytes
    sha, size, head = hashlib.sha256(), 0, b""
    with contextlib.ExitStack() as opened:
        file = None
        if folder is not None:
            # What was left out before may have been unpacked here.
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            file = opened.enter_context((folder / f"{unit}.ipynb").open("xb"))
            if attempt.time is not None:
                (folder / "timestamp.txt").write_text(f"{written(attempt.time)}\n", encoding="ascii")
        for piece in source.read(attempt.member, most + 1):
            size += len(piece)
            sha.update(piece)
            head = head or piece[:4]
            if file is not None:
                file.write(piece)
    if size > most:
        return "", too_large(replace(attempt.member, size=size), most)
    return sha.hexdigest(), "it is a zip archive, and no notebook" if head == _ZIP else ""


# ---------------------------------------------------------------------------------------------------- what is there


def attempts_root(course: Course) -> Path:
    """Where the attempts are kept that are not the newest, one folder a learner and in it one a unit."""
    return course.var / "attempts"


@contextlib.contextmanager
def _opened(root: Path, *parts: str, create: bool = False) -> Iterator[int | None]:
    """A folder below a root, opened part by part without following a link; None where it is not there."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if create:
        root.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as opened:
        folder = None
        for part in (str(root), *parts):
            if create and folder is not None:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=folder)
            try:
                folder = os.open(part, flags if folder is None else flags | os.O_NOFOLLOW, dir_fd=folder)
            except FileNotFoundError:
                yield None
                return
            opened.callback(os.close, folder)
        yield folder


@contextlib.contextmanager
def _made(root: Path, *parts: str) -> Iterator[int]:
    """A folder below a root, made where it is missing, and opened without following a link."""
    with _opened(root, *parts, create=True) as folder:
        if folder is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), parts[-1])
        yield folder


def known_of(course: Course, learner: str, unit: str, limits: Limits) -> Known:
    """What is there of a learner: the submission and the earlier attempts.

    Raises:
        OSError: the learner's folder is a link, or cannot be read.
    """
    require_learner(learner)
    record = read_record(course, learner, unit)
    stored = _submission(course, learner, unit, limits)
    kept = record.get("submission")
    if (
        stored
        and isinstance(kept, dict)
        and kept.get("sha256") == stored.digest
        and isinstance(kept.get("order"), int)
    ):
        stored = replace(stored, order=kept["order"])
    with _opened(course.submitted, learner) as folder:
        blocked = stored is None and folder is not None and _is_there(unit, folder)
    lms = record.get("lms")
    return Known(stored, _attempts(course, learner, unit, limits), lms if isinstance(lms, str) else "", blocked)


def _submission(course: Course, learner: str, unit: str, limits: Limits) -> Stored | None:
    """The submission that is there; None where there is none that can be read."""
    try:
        found = read_submission(course, learner, unit, limits)
    except UnreadableError:
        return None
    if found is None:
        return None
    time = found.timestamp.replace(tzinfo=UTC) if found.timestamp else None
    return Stored(hashlib.sha256(found.data).hexdigest(), time)


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries]


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _attempts(course: Course, learner: str, unit: str, limits: Limits) -> dict[int, Stored]:
    attempts: dict[int, Stored] = {}
    with _opened(attempts_root(course), learner, unit) as folder:
        if folder is None:
            return {}
        for name in _names(folder):
            number = _NUMBER.fullmatch(name)
            if number:
                attempts[int(number[1])] = _stored(folder, name, unit, limits)
    return attempts


def _stored(parent: int, name: str, unit: str, limits: Limits) -> Stored:
    """An attempt's hash and time; the hash is empty where there is no notebook to be read."""
    try:
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return Stored("")
    try:
        data = _contents(folder, f"{unit}.ipynb", limits.submission_bytes + 1)
        stamp = _contents(folder, "timestamp.txt", 200) or b""
    finally:
        os.close(folder)
    digest = "" if data is None else hashlib.sha256(data).hexdigest()
    return Stored(digest, in_utc(stamp.decode("ascii", "replace"), _UTC))


def _contents(folder: int, name: str, most: int) -> bytes | None:
    """The first bytes of a file of its own; None where there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        with os.fdopen(os.open(name, flags, dir_fd=folder), "rb") as stream:
            return stream.read(most) if stat.S_ISREG(os.fstat(stream.fileno()).st_mode) else None
    except OSError:
        return None


def read_record(course: Course, learner: str, unit: str) -> dict[str, Any]:
    """What was recorded when a learner's submission was collected; empty where nothing was.

    The keys are learner, name, login, lms, form, source, collected, submission and attempts; submission, and each of
    attempts (by folder), has file, time, late, order and sha256.
    """
    try:
        with _opened(attempts_root(course), learner, unit) as folder:
            text = None if folder is None else _contents(folder, RECORD, _MOST_RECORD_BYTES)
        found = json.loads(text or b"{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


# ------------------------------------------------------------------------------------------------------------ moving


def recover(course: Course, entry: Entry, unit: str, limits: Limits) -> None:
    """Finish what a run that was killed left half done for a learner.

    Raises:
        OSError: the learner's folder is a link, or cannot be written.
    """
    with _opened(attempts_root(course), entry.learner, unit) as folder:
        if folder is None:
            return
        for name in _names(folder):
            if not name.startswith(".") or not _NUMBER.fullmatch(name[1:]):
                continue
            left = _stored(folder, name, unit, limits)
            if left == _submission(course, entry.learner, unit, limits) or any(map(left.same, entry.attempts)):
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.rename(name, name[1:], src_dir_fd=folder, dst_dir_fd=folder)


def place(course: Course, unit: str, entry: Entry, steps: Iterable[Step], folders: Mapping[str, Path]) -> None:
    """Do the steps for a learner.

    Raises:
        InvalidLearnerError: the name can be no learner's id.
        OSError: the learner's folder is a link, or something cannot be written.
    """
    require_learner(entry.learner)
    with (
        _made(course.submitted, entry.learner) as submitted,
        _made(attempts_root(course), entry.learner, unit) as attempts,
    ):
        for step in steps:
            fresh = folders[step.attempt.member.path]
            if step.kind == "keep":
                os.rename(fresh, step.folder, dst_dir_fd=attempts)
            elif step.kind == "date":
                with _opened(course.submitted, entry.learner, unit) as folder:
                    os.rename(fresh / "timestamp.txt", "timestamp.txt", dst_dir_fd=folder)
            elif step.folder:
                _replace(fresh, unit, submitted, attempts, step.folder)
            else:
                os.rename(fresh, unit, dst_dir_fd=submitted)


def _replace(fresh: Path, unit: str, submitted: int, attempts: int, name: str) -> None:
    """Put a folder into the submission's place, and what was there among the attempts.

    Where two folders cannot change places in one step, a reader may find neither for a moment.
    """
    hidden = f".{name}"
    os.rename(fresh, hidden, dst_dir_fd=attempts)
    if exchange(hidden, attempts, unit, submitted):
        os.rename(hidden, name, src_dir_fd=attempts, dst_dir_fd=attempts)
    else:
        os.rename(unit, name, src_dir_fd=submitted, dst_dir_fd=attempts)
        os.rename(hidden, unit, src_dir_fd=attempts, dst_dir_fd=submitted)


def write_record(
    course: Course, unit: str, entry: Entry, known: Known, steps: Iterable[Step], form: str, source: str
) -> None:
    """Record what was collected from a learner, beside the attempts; a record that says the same is left as it is.

    ``known`` is what was there before the steps.

    Raises:
        OSError: it cannot be written.
    """
    before = read_record(course, entry.learner, unit)
    record = _record(before, unit, entry, known, tuple(steps)) | {"form": form, "source": source}
    if {**record, "source": before.get("source")} == before:
        return
    with _made(attempts_root(course), entry.learner, unit) as folder:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(f".{RECORD}", flags, 0o666, dir_fd=folder), "w", encoding="utf-8") as file:
            json.dump(record, file, indent=1)
        os.rename(f".{RECORD}", RECORD, src_dir_fd=folder, dst_dir_fd=folder)


def _record(
    before: dict[str, Any], unit: str, entry: Entry, known: Known, steps: tuple[Step, ...]
) -> dict[str, Any]:
    attempts = before.get("attempts")
    attempts = dict(attempts) if isinstance(attempts, dict) else {}
    submission = before.get("submission")
    # A run that was killed may have moved what it did not come to record.
    for number, stored in known.attempts.items():
        same = next(filter(stored.same, entry.attempts), None)
        if same is not None:
            attempts.setdefault(attempt_folder(number, stored.time), _facts(same))
    for step in steps:
        if step.kind == "keep":
            attempts[step.folder] = _facts(step.attempt)
        elif step.kind == "place" and step.folder and submission:
            attempts[step.folder] = submission
    there = known.submission is not None and known.submission.same(entry.newest)
    if there or any(step.kind != "keep" for step in steps):
        submission = _facts(entry.newest)
    who = {"learner": entry.learner, "unit": unit, "name": entry.name, "login": entry.login, "lms": entry.lms}
    return {"version": 1, **who, "submission": submission, "attempts": attempts}


def _facts(attempt: Attempt) -> dict[str, Any]:
    time = attempt.time.astimezone(UTC).isoformat() if attempt.time else None
    return {
        "file": attempt.member.path,
        "time": time,
        "late": attempt.late,
        "order": attempt.order,
        "sha256": attempt.digest,
    }
