"""Files of the engine: submissions in, graded notebooks out.

A submission is read as what a stranger put there: no part of its path is followed through a link, only a regular file
counts, and no more of it is read than may be. A graded notebook is written whole or not at all.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.deadlines import parse_stamp
from grader.engine.read import UnreadableError
from grader.engine.restore import Assignment, restore
from grader.engine.verdict import GRADED, Limits, Note, Verdict
from grader.exceptions import BadTimeError, BrokenReferenceError, InvalidLearnerError
from grader.notebooks import grade_id, read_notebook

__all__ = [
    "RECORD_KEY",
    "Submission",
    "answers_of",
    "collect",
    "digest",
    "graded_notebook",
    "harmless",
    "load_assignment",
    "notebook_bytes",
    "read_bytes",
    "record_of",
    "require_learner",
    "valid_bytes",
    "write_graded",
]

RECORD_KEY = "ffn-grading"
"""Key in a graded notebook's metadata under which the engine keeps what it graded, and how it went."""

MOST_ENTRIES = 10_000
_LONGEST_STAMP = 200
_LONGEST_REMARK = 1_000
_MOST_REMARKS = 100
_LEARNER = re.compile(r"\w[\w@.+' -]{0,126}[\w@+'-]|\w")
_STAMP = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?( ?[A-Za-z_]+(/[A-Za-z_+-]+){0,2}| ?[+-]\d\d:?\d\d)?"
)
_CELL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_STREAM = {"output_type", "name", "text"}
_ERROR = {"output_type", "ename", "evalue", "traceback"}
_DISPLAY = {"output_type", "data", "metadata"}
_RESULT = _DISPLAY | {"execution_count"}
_HEAD_ID = "grading-notes"


@dataclass(frozen=True)
class Submission:
    """What a learner handed in: the notebook's bytes, the time in UTC where it is known, and what was odd about it."""

    data: bytes
    timestamp: datetime | None = None
    notes: tuple[Note, ...] = ()


def require_learner(learner: str) -> None:
    """Raise InvalidLearnerError unless a name can be a learner's id, as a folder and in the gradebook."""
    if not _LEARNER.fullmatch(learner) or len(learner.encode("utf-8", "replace")) > 200:
        raise InvalidLearnerError(learner)


# --------------------------------------------------------------------------------------------- submissions in


def read_bytes(course: Course, learner: str, unit: str, limits: Limits) -> bytes | None:
    """The bytes of a learner's notebook, at most one more than a submission may have; None where there is none.

    Raises:
        InvalidLearnerError: the name can be no learner's id.
        UnreadableError: something is there that is no file to be graded.
    """
    found = collect(course, learner, unit, limits)
    return None if found is None else found.data


def collect(course: Course, learner: str, unit: str, limits: Limits) -> Submission | None:
    """A learner's submission; None where there is none.

    The notebook is UNIT.ipynb or, where that is missing, the only other notebook in the folder.

    Raises:
        InvalidLearnerError: the name can be no learner's id.
        UnreadableError: something is there that is no file to be graded.
    """
    require_learner(learner)
    with contextlib.ExitStack() as opened:
        try:
            folder = opened.enter_context(_folder(str(course.submitted), None, follow=True))
            folder = opened.enter_context(_folder(learner, folder))
            folder = opened.enter_context(_folder(unit, folder))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise UnreadableError("cannot be reached: its folder is a link, or is closed to the grader") from error
        try:
            name, notes = _notebook_name(folder, unit)
        except OSError as error:
            raise UnreadableError("cannot be reached: its folder is closed to the grader") from error
        if name is None:
            return None
        try:
            data = _regular(folder, name, limits.submission_bytes + 1)
        except FileNotFoundError:
            return None
        timestamp, odd = _timestamp(folder)
        return Submission(data, timestamp, (*notes, *odd))


@contextlib.contextmanager
def _folder(name: str, parent: int | None, *, follow: bool = False) -> Iterator[int]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(name, flags, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _notebook_name(folder: int, unit: str) -> tuple[str | None, tuple[Note, ...]]:
    wanted = f"{unit}.ipynb"
    names = set()
    with os.scandir(folder) as entries:
        for _, entry in zip(range(MOST_ENTRIES), entries, strict=False):
            names.add(entry.name)
    others = sorted(n for n in names - {wanted} if n.endswith(".ipynb") and not n.startswith("."))
    with contextlib.suppress(OSError):
        os.stat(wanted, dir_fd=folder, follow_symlinks=False)
        return wanted, _beside(others)
    if not others:
        return None, ()
    if len(others) > 1:
        raise UnreadableError(f"is not there under its name {wanted!r}, and more than one other notebook is")
    shown = ascii(others[0][:80])
    what = f"The notebook was named {shown}, not {wanted!r}"
    return others[0], (Note("", f"{what}; it was graded.", f"{what}; it was the only one, and was graded."),)


def _beside(others: list[str]) -> tuple[Note, ...]:
    """A note on notebooks that lie beside the one that is graded: the learner may have worked in one of them."""
    if not others:
        return ()
    shown = f"{others[0][:80]!a}{' and others' if others[1:] else ''}"
    return (Note("", f"Only the exercise's own notebook was graded, not {shown}.", f"Not looked at: {shown}."),)


def _regular(folder: int, name: str, most: int) -> bytes:
    """The first bytes of a file that is no link, pipe or device; these are not even opened."""
    try:
        if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise UnreadableError("is a link, a folder or a device, and no file of its own")
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        descriptor = os.open(name, flags, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as stream:
            # What it was may have changed since.
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UnreadableError("is a link, a folder or a device, and no file of its own")
            return stream.read(most)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError(f"cannot be opened: {os.strerror(error.errno or 0)}") from error


def _timestamp(folder: int) -> tuple[datetime | None, tuple[Note, ...]]:
    """The time in timestamp.txt, in UTC; one that cannot be read is noted, and counts for none."""
    try:
        text = _regular(folder, "timestamp.txt", _LONGEST_STAMP).decode("ascii").strip()
    except FileNotFoundError:
        return None, ()
    except (UnreadableError, UnicodeDecodeError):
        text = "?"
    if not text:
        return None, ()
    if _STAMP.fullmatch(text):
        with contextlib.suppress(BadTimeError):
            return parse_stamp(text), ()
    said = "The time of handing in could not be read from timestamp.txt"
    return None, (Note("", f"{said}.", f"{said}; nothing was recorded of it."),)


def load_assignment(course: Course, unit: str) -> Assignment:
    """A unit as it is graded.

    Raises:
        UnknownUnitError: the course has no such unit.
        BrokenReferenceError: its reference notebook cannot be read.
    """
    course.require_unit(unit)
    path = course.reference(unit)
    try:
        reference = read_notebook(path)
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise BrokenReferenceError(path.relative_to(course.root)) from error
    beside = sorted(file for file in path.parent.rglob("*") if file.is_file() and file.suffix != ".ipynb")
    shown = [
        file for file in beside if not any(part.startswith(".") for part in file.relative_to(path.parent).parts)
    ]
    files = tuple((file.relative_to(path.parent).as_posix(), file.read_bytes()) for file in shown)
    return Assignment(unit, reference, files)


def digest(assignment: Assignment, submission: Submission | None) -> dict[str, str]:
    """What a grading depends on: the submission, its time, and the assignment's cells and files; as hashes."""
    sources = [[cell["cell_type"], cell["source"], cell["metadata"]] for cell in assignment.reference["cells"]]
    own = hashlib.sha256(json.dumps(sources, sort_keys=True).encode())
    for name, content in assignment.files:
        own.update(name.encode() + hashlib.sha256(content).digest())
    handed_in = hashlib.sha256(b"" if submission is None else submission.data).hexdigest()
    when = "" if submission is None or submission.timestamp is None else submission.timestamp.isoformat()
    return {"submission": "" if submission is None else handed_in, "time": when, "assignment": own.hexdigest()}


# ------------------------------------------------------------------------------------------- notebooks out


def harmless(text: str, most: int = 4_000) -> str:
    """Text for a Markdown cell or a comment: names that a learner chose can neither format nor link there."""
    return " ".join(re.sub(r"[^\w\s.,;:'\"()/=+%-]", "?", text[:most]).split())


def graded_notebook(assignment: Assignment, verdict: Verdict, record: dict[str, Any] | None = None) -> Any:
    """The notebook of a verdict as it is kept, of the current format.

    Where there is something to say, a first cell says it. Where nothing could be read, the cells are the assignment's,
    without answers.
    """
    notebook = restore(assignment, []).notebook if verdict.notebook is None else dict(verdict.notebook)
    notebook["cells"] = [dict(cell) for cell in notebook["cells"]]
    notebook["metadata"] = dict(notebook["metadata"])
    known = {cell["id"] for cell in assignment.reference["cells"] if "id" in cell}
    count = 0
    for cell in notebook["cells"]:
        if cell.get("id") not in known:
            count += 1
            cell["id"] = f"own-{count}"
    if verdict.status != GRADED or verdict.notes:
        notebook["cells"].insert(0, _head(verdict))
    notebook["metadata"][RECORD_KEY] = _kept(verdict) | (record or {})
    notebook["nbformat"], notebook["nbformat_minor"] = 4, max(5, notebook.get("nbformat_minor", 5))
    return notebook


def _kept(verdict: Verdict) -> dict[str, Any]:
    """What is kept of a verdict in its notebook, bounded: names and texts in it may be the learner's."""
    return {
        "status": harmless(verdict.status, 200),
        "sandbox": verdict.sandbox,
        "results": [vars(result) | {"message": _line(result.message)} for result in verdict.results],
        "flags": [_line(flag) for flag in verdict.flags[:_MOST_REMARKS]],
        "notes": [
            {"cell": _line(note.cell), "learner": _line(note.learner), "instructor": _line(note.instructor)}
            for note in verdict.notes[:_MOST_REMARKS]
        ],
        "seconds": {name: round(seconds, 3) for name, seconds in verdict.timings},
    }


def _line(text: str) -> str:
    """A text of bounded length that a file can hold."""
    return text[:_LONGEST_REMARK].encode("utf-8", "replace").decode("utf-8")


def _head(verdict: Verdict) -> dict[str, Any]:
    lines = [f"**{harmless(verdict.learner)}**", *(f"- {harmless(note.learner)}" for note in verdict.notes[:100])]
    text = lines[0] + ("\n\n" + "\n".join(lines[1:]) if lines[1:] else "")
    return {"cell_type": "markdown", "id": _HEAD_ID, "metadata": {}, "source": text}


def write_graded(course: Course, learner: str, unit: str, notebook: bytes, timestamp: datetime | None) -> None:
    """Put a graded notebook in its place below grader/var/autograded, with the time of handing in beside it.

    What was there before goes only when all of the new is written. A reader finds the old, the new, or nothing. What
    differs in the seconds alone that cells took is left as it is.

    Raises:
        InvalidLearnerError: the name can be no learner's id.
    """
    require_learner(learner)
    target = course.autograded / learner / unit
    files = {f"{unit}.ipynb": notebook}
    if timestamp is not None:
        files["timestamp.txt"] = f"{timestamp.isoformat(sep=' ')} UTC\n".encode()
    if _has(target, files):
        return
    parent = target.parent
    parent.mkdir(parents=True, exist_ok=True)
    for name in os.listdir(parent):  # noqa: PTH208 - quicker, and for every submission
        if name.startswith(f".{unit}-"):
            shutil.rmtree(parent / name, ignore_errors=True)
    own = f".{unit}-{uuid.uuid4().hex}"
    fresh, old = parent / own, parent / f"{own}-old"
    try:
        fresh.mkdir()
        for name, data in files.items():
            _write(fresh / name, data)
        if target.is_symlink() or target.is_file():
            target.unlink()
        elif target.exists():
            target.replace(old)
        fresh.replace(target)
    finally:
        for rest in (fresh, old):
            shutil.rmtree(rest, ignore_errors=True)


def _has(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether a folder that is no link has exactly these files, a notebook's seconds aside."""
    try:
        if folder.is_symlink() or {path.name for path in folder.iterdir()} != files.keys():
            return False
        plain = [name for name in files if stat.S_ISREG((folder / name).lstat().st_mode)]
        there = {name: (folder / name).read_bytes() for name in plain}
    except OSError:
        return False
    return there.keys() == files.keys() and all(
        there[name] == data or (name.endswith(".ipynb") and _timeless(there[name]) == _timeless(data))
        for name, data in files.items()
    )


def _timeless(notebook: bytes) -> Any:
    """A notebook without the seconds that its cells took; its bytes where it has none."""
    try:
        found = json.loads(notebook)
        del found["metadata"][RECORD_KEY]["seconds"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return notebook
    return found


def _write(path: Path, data: bytes) -> None:
    # Nothing waits for the disk: what a power failure takes is graded again, because its record cannot be read then.
    path.write_bytes(data)
    path.chmod(0o444)


def notebook_bytes(notebook: Any) -> bytes:
    """A notebook as bytes of its file, on one line, which is written and read several times as fast as many."""
    return f"{json.dumps(notebook, ensure_ascii=False, sort_keys=True)}\n".encode()


def valid_bytes(notebook: Any) -> bytes:
    """A graded notebook's bytes.

    Nothing in it has another shape than this module, `restore` and `grade` give it; that is looked at once more, in
    far less time than nbformat's schema takes.

    Raises:
        ValueError: it is no notebook that nbgrader could read.
    """
    seen: set[str] = set()
    for place, cell in enumerate(notebook["cells"]):
        if not _is_cell(cell) or cell["id"] in seen:
            raise ValueError(f"cell {place + 1} of the graded notebook is malformed")
        seen.add(cell["id"])
    if (notebook["nbformat"], type(notebook["nbformat_minor"])) != (4, int) or notebook["nbformat_minor"] < 5:
        raise ValueError("the graded notebook is of another format")
    return notebook_bytes(notebook)


def _is_cell(cell: Any) -> bool:
    """Whether this is a cell of the current format."""
    if not isinstance(cell, dict) or not isinstance(cell.get("metadata"), dict):
        return False
    keys, is_code = set(cell), cell.get("cell_type") == "code"
    known = {"cell_type", "id", "metadata", "source"} | ({"outputs", "execution_count"} if is_code else set())
    if keys != known and not (not is_code and keys == known | {"attachments"}):
        return False
    if (
        not isinstance(cell["source"], str)
        or not isinstance(cell["id"], str)
        or not _CELL_ID.fullmatch(cell["id"])
    ):
        return False
    if not is_code:
        return cell["cell_type"] in ("markdown", "raw")
    count = cell["execution_count"]
    return (count is None or type(count) is int) and all(_is_output(output) for output in cell["outputs"])


def _is_output(output: Any) -> bool:
    """Whether this is an output of a known kind, with nothing but texts in it."""
    if not isinstance(output, dict):
        return False
    kind = output.get("output_type")
    if kind == "stream":
        return output.keys() == _STREAM and output["name"] in ("stdout", "stderr") and type(output["text"]) is str
    if kind == "error":
        texts = [output.get("ename"), output.get("evalue"), *output.get("traceback", [None])]
        return output.keys() == _ERROR and all(type(text) is str for text in texts)
    if kind not in ("display_data", "execute_result"):
        return False
    data = output.get("data")
    if output.keys() != (_RESULT if kind == "execute_result" else _DISPLAY) or not isinstance(data, dict):
        return False
    count = output.get("execution_count")
    return (
        output["metadata"] == {}
        and (count is None or type(count) is int)
        and all(type(text) is str for item in data.items() for text in item)
    )


def record_of(course: Course, learner: str, unit: str) -> dict[str, Any]:
    """What the engine recorded in a learner's graded notebook; empty where there is none, or another program's."""
    path = course.autograded / learner / unit / f"{unit}.ipynb"
    try:
        found = json.loads(path.read_bytes())["metadata"][RECORD_KEY]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def answers_of(notebook: Any) -> dict[str, Any]:
    """The cells of a notebook that a learner answers in, by grade id."""
    marked = ((grade_id(cell), cell) for cell in notebook["cells"])
    return {name: cell for name, cell in marked if name and cell["metadata"]["nbgrader"].get("solution")}
