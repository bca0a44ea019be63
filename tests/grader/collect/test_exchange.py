"""Two folders change places."""

import ctypes
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.collect import exchange as module
from grader.collect.exchange import exchange


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[int]:
    """An opened folder with two others in it."""
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    descriptor = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    yield descriptor
    os.close(descriptor)


@pytest.mark.skipif(sys.platform != "linux", reason="the system call is Linux's")
def test_two_folders_change_places(folder: int, tmp_path: Path) -> None:
    assert exchange("one", folder, "other", folder)
    assert (tmp_path / "one" / "other").exists()
    assert (tmp_path / "other" / "one").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the system call is Linux's")
def test_a_folder_that_is_not_there_changes_nothing(folder: int, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        exchange("one", folder, "third", folder)
    assert (tmp_path / "one" / "one").exists()


def test_a_system_without_the_call_says_so(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_renameat2", lambda: None)
    assert not exchange("one", folder, "other", folder)


def test_a_disk_that_cannot_do_it_says_so(folder: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def unable(*_: object) -> int:
        ctypes.set_errno(errno.EINVAL)
        return -1

    monkeypatch.setattr(module, "_renameat2", lambda: unable)
    assert not exchange("one", folder, "other", folder)
