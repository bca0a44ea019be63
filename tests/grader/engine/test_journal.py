"""The journal: a verdict comes back as it was written, or not at all."""

import errno
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from grader.engine import journal as module
from grader.engine.journal import Entry, Journal
from grader.engine.process import encoded
from grader.engine.verdict import GRADED, Note, TestResult, Verdict
from grader.exceptions import InvalidLearnerError, JournalUnreadableError, UnwritableError

RECORD = {"submission": "ab", "time": "", "assignment": "cd"}
WHEN = datetime(2030, 1, 2, 3, 4, 5)
VERDICT = Verdict(
    GRADED,
    "A word.",
    "Another \ud800 word.",
    (TestResult("test_relu", "relu", 1.0, 2.0, "not yet"),),
    (Note("relu", "yours", "theirs"),),
    {"cells": [{"cell_type": "code", "source": "x = 1\n", "metadata": {"nbgrader": {"grade_id": "relu"}}}]},
    flags=("flag",),
    timings=(("relu", 0.5),),
)
NOTEBOOK = b'{"cells": []}\nand more\n'


def entry(learner: str = "ada", **changes: object) -> Entry:
    fields: dict[str, object] = {
        "learner": learner,
        "record": RECORD,
        "when": WHEN,
        "header": encoded(Verdict(**(vars(VERDICT) | {"notebook": None}))),
        "notebook": NOTEBOOK,
    }
    return Entry(**(fields | changes))  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "gates"


@pytest.fixture
def journal(folder: Path) -> Journal:
    return Journal(folder, "engine")


def test_a_verdict_comes_back_in_the_next_run(journal: Journal, folder: Path) -> None:
    journal.put(entry())
    again = Journal(folder, "engine").get("ada", RECORD)
    assert again == entry()
    assert again.verdict == Verdict(**(vars(VERDICT) | {"notebook": None}))
    assert again.verdict.timings == VERDICT.timings


def test_a_verdict_without_a_time_has_none(journal: Journal) -> None:
    journal.put(entry(when=None))
    found = journal.get("ada", RECORD)
    assert found is not None
    assert found.when is None


def test_there_is_none_for_others(journal: Journal) -> None:
    journal.put(entry())
    assert journal.get("zoe", RECORD) is None


@pytest.mark.parametrize("key", list(RECORD))
def test_one_of_another_submission_time_or_assignment_does_not_count(journal: Journal, key: str) -> None:
    journal.put(entry())
    assert journal.get("ada", RECORD | {key: "other"}) is None


def test_one_without_a_record_does_not_count_in_another_run(journal: Journal) -> None:
    journal.put(entry(record={}))
    assert journal.get("ada", {}) is None
    assert journal.get("ada") == entry(record={})


def test_one_by_other_code_does_not_count(journal: Journal, folder: Path) -> None:
    journal.put(entry())
    assert Journal(folder, "another").get("ada", RECORD) is None


def test_a_later_verdict_replaces_an_earlier_one(journal: Journal) -> None:
    journal.put(entry())
    journal.put(entry(notebook=b"new"))
    assert journal.get("ada", RECORD) == entry(notebook=b"new")


def test_what_was_dropped_is_gone(journal: Journal, folder: Path) -> None:
    journal.put(entry())
    journal.drop("ada")
    assert journal.get("ada", RECORD) is None
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["../ada", ".ada", "a/b", "a\0b"])
def test_a_name_that_is_no_learner_s_is_no_file(journal: Journal, folder: Path, name: str) -> None:
    with pytest.raises(InvalidLearnerError):
        journal.put(entry(name))
    assert list(folder.iterdir()) == []
    assert [path.name for path in folder.parent.iterdir()] == ["gates"]


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def linked(path: Path) -> None:
    path.rename(path.parent.parent / "elsewhere")
    path.symlink_to(path.parent.parent / "elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def of_another(path: Path) -> None:
    Journal(path.parent, "engine").put(entry("zoe"))
    (path.parent / "zoe.verdict").replace(path)


@pytest.mark.parametrize("change", [flipped, cut, emptied, linked, pipe, of_another])
def test_one_that_cannot_be_read_is_set_aside(
    journal: Journal, folder: Path, change: Callable[[Path], None]
) -> None:
    journal.put(entry())
    change(folder / "ada.verdict")
    again = Journal(folder, "engine")
    with pytest.raises(JournalUnreadableError, match=r"ada\.verdict.* is set aside as 'ada\.verdict\.unreadable'"):
        again.get("ada", RECORD)
    assert again.get("ada", RECORD) is None
    assert [path.name for path in folder.iterdir()] == ["ada.verdict.unreadable"]


def test_one_that_is_too_large_is_set_aside_unread(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.put(entry())
    monkeypatch.setattr(module, "MOST_BYTES", (folder / "ada.verdict").stat().st_size - 1)
    with pytest.raises(JournalUnreadableError):
        journal.get("ada", RECORD)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS])
def test_where_nothing_can_be_written_the_earlier_one_stays(
    journal: Journal, folder: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    journal.put(entry())
    write = Path.write_bytes

    def fails(path: Path, data: bytes) -> int:
        write(path, data[:10])
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "write_bytes", fails)
    with pytest.raises(UnwritableError, match=f"{folder} cannot be written: {os.strerror(number)}; "):
        journal.put(entry(notebook=b"new"))
    assert [path.name for path in folder.iterdir()] == ["ada.verdict"]
    assert journal.get("ada", RECORD) == entry()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "journal").write_text("a file")
    with pytest.raises(UnwritableError, match="cannot be written"):
        Journal(tmp_path / "journal" / "gates", "engine")


def test_drafts_of_a_run_that_was_cut_off_go_and_those_of_one_beside_this_stay(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, age in ((".ada.1.new", 7200.0), (".zoe.2.new", 60.0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age,) * 2)
    assert Journal(folder, "engine").get("ada", RECORD) is None
    assert [path.name for path in folder.iterdir()] == [".zoe.2.new"]
