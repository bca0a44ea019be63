"""Downloads are opened as what a stranger made."""

import os
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from grader.collect import archive
from grader.collect.archive import open_source
from grader.collect.names import Member
from grader.exceptions import DownloadRefusedError
from tests.grader.collect.downloads import ATTACKS, SMALL, canvas, laid_out, zipped


def contents(path: Path, most: int = 10_000) -> dict[str, bytes]:
    with open_source(path) as source:
        return {member.path: b"".join(source.read(member, most)) for member in source.members}


def refused(path: Path) -> str:
    with pytest.raises(DownloadRefusedError) as caught:
        contents(path)
    said = str(caught.value)
    assert said.startswith(f"{path} is not collected, and nothing was changed: ")
    assert said.isprintable()
    return said


# ------------------------------------------------------------------------------------------------- what is as it should


def test_a_zip_archive_is_read(tmp_path: Path) -> None:
    assert contents(zipped(tmp_path / "all.zip", canvas())) == canvas()


def test_a_folder_is_read(tmp_path: Path) -> None:
    files = {"b/c/x.ipynb": b"x", "a.ipynb": b"a"}
    assert contents(laid_out(tmp_path / "all", files)) == files


def test_an_archive_with_folders_of_its_own_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as file:
        file.mkdir("a")
        file.writestr("a/x.ipynb", SMALL)
    assert contents(tmp_path / "all.zip") == {"a/x.ipynb": SMALL}


def test_names_in_utf_8_that_the_archive_does_not_call_so_are_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "all.zip", {"josXX_1_2_a.ipynb": SMALL})
    path.write_bytes(path.read_bytes().replace(b"josXX", "josé".encode()))
    assert list(contents(path)) == ["josé_1_2_a.ipynb"]


def test_names_of_old_programs_are_read(tmp_path: Path) -> None:
    path = zipped(tmp_path / "all.zip", {"josX_1_2_a.ipynb": SMALL})
    path.write_bytes(path.read_bytes().replace(b"josX", "josé".encode("cp437")))
    assert list(contents(path)) == ["josé_1_2_a.ipynb"]


def test_no_more_than_is_asked_for_is_read(tmp_path: Path) -> None:
    files = {"a.ipynb": b"x" * 100_000}
    assert contents(zipped(tmp_path / "all.zip", files), 10) == {"a.ipynb": b"x" * 10}
    assert contents(laid_out(tmp_path / "all", files), 10) == {"a.ipynb": b"x" * 10}


def test_what_systems_leave_behind_in_a_folder_is_not_entered(tmp_path: Path) -> None:
    laid_out(tmp_path / "all", {"a.ipynb": b"a", ".git/config": b"", "x/.ipynb_checkpoints/y.ipynb": b""})
    (tmp_path / "all" / ".venv").symlink_to("/")
    assert list(contents(tmp_path / "all")) == ["a.ipynb"]


# -------------------------------------------------------------------------------------------------------------- attacks


@pytest.mark.parametrize("name", ATTACKS)
def test_an_archive_that_nobody_should_open_is_refused(name: str, tmp_path: Path) -> None:
    make, sentence = ATTACKS[name]
    assert sentence in refused(make(tmp_path / f"{name}.zip"))


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    assert "it has more than 2 files" in refused(zipped(tmp_path / "all.zip", canvas()))
    assert "it has more than 2 files" in refused(laid_out(tmp_path / "all", canvas()))


def test_a_directory_of_too_many_files_is_refused_before_it_is_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped(tmp_path / "all.zip", canvas())
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    monkeypatch.setattr(zipfile, "ZipInfo", None)
    assert "it has more than 2 files" in refused(path)


def test_a_directory_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "all.zip", canvas())
    monkeypatch.setattr(archive, "MOST_DIRECTORY_BYTES", 100)
    assert "files" in refused(path)


@pytest.mark.parametrize("limit", ["MOST_TOTAL_BYTES", "TOTAL_RATIO_FROM"])
def test_what_unpacks_to_more_than_a_class_hands_in_is_refused(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bomb of many small parts, of which no one is large; its ratio is some 900."""
    path = zipped(tmp_path / "bomb.zip", {f"ada_{number}_1_a.ipynb": bytes(900_000) for number in range(5)})
    monkeypatch.setattr(archive, limit, 1_000_000)
    with (
        open_source(path) as source,
        pytest.raises(DownloadRefusedError, match="unpacks to 4 MB, more than a class"),
    ):
        source.require_total(source.members)


def test_a_large_class_is_no_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = zipped(tmp_path / "all.zip", {f"ada_{number}_1_a.ipynb": os.urandom(90_000) for number in range(5)})
    monkeypatch.setattr(archive, "TOTAL_RATIO_FROM", 1_000)
    with open_source(path) as source:
        source.require_total(source.members)


def test_a_file_whose_size_is_a_lie_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "all.zip", {"a.ipynb": bytes(50_000)})
    data = bytearray(path.read_bytes())
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    assert "damaged at 'a.ipynb'" in refused(path)


# -------------------------------------------------------------------------------------------------------------- folders


@pytest.mark.parametrize("link", ["file", "folder", "nowhere"])
def test_a_link_in_a_folder_is_refused(link: str, tmp_path: Path) -> None:
    laid_out(tmp_path, {"all/a.ipynb": b"a", "secret/x.ipynb": b"secret"})
    target = {"file": "../secret/x.ipynb", "folder": "../secret", "nowhere": "nowhere"}[link]
    (tmp_path / "all" / "ada_1_2_a.ipynb").symlink_to(target)
    assert "'ada_1_2_a.ipynb' is a link, and no file" in refused(tmp_path / "all")


def test_a_pipe_in_a_folder_is_refused(tmp_path: Path) -> None:
    laid_out(tmp_path, {"all/a.ipynb": b"a"})
    os.mkfifo(tmp_path / "all" / "b.ipynb")
    assert "'b.ipynb' is a device or a pipe" in refused(tmp_path / "all")


def test_a_file_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    laid_out(tmp_path, {"all/a.ipynb": b"a", "secret": b"secret"})
    with open_source(tmp_path / "all") as source:
        (tmp_path / "all" / "a.ipynb").unlink()
        (tmp_path / "all" / "a.ipynb").symlink_to(tmp_path / "secret")
        with pytest.raises(DownloadRefusedError, match=r"'a\.ipynb' cannot be read"):
            list(source.read(Member("a.ipynb", 1), 10))


def test_a_folder_that_becomes_a_link_is_not_followed(tmp_path: Path) -> None:
    laid_out(tmp_path, {"all/x/a.ipynb": b"a", "secret/a.ipynb": b"secret"})
    with open_source(tmp_path / "all") as source:
        (tmp_path / "all" / "x").rename(tmp_path / "all" / "y")
        (tmp_path / "all" / "x").symlink_to(tmp_path / "secret")
        with pytest.raises(DownloadRefusedError, match="cannot be read"):
            list(source.read(source.members[0], 10))


def test_two_names_that_look_the_same_in_a_folder_are_refused(tmp_path: Path) -> None:
    laid_out(tmp_path / "all", {"jos\u00e9.ipynb": b"a", "jose\u0301.ipynb": b"b"})
    assert "two files have the name" in refused(tmp_path / "all")


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    os.close(os.open(os.fsencode(tmp_path / "all") + b"/a\xff.ipynb", os.O_CREAT | os.O_WRONLY))
    assert "control characters" in refused(tmp_path / "all")


def test_folders_without_end_are_refused(tmp_path: Path) -> None:
    laid_out(tmp_path / "all", {"/".join(["x"] * 70) + "/a.ipynb": b""})
    assert "is too long" in refused(tmp_path / "all")


# ------------------------------------------------------------------------------------------------ what is no download


def nothing(path: Path) -> None:
    """No file at all."""


def some_text(path: Path) -> None:
    path.write_text("Dear instructor, here are the files.")


def empty_file(path: Path) -> None:
    path.write_bytes(b"")


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (nothing, "there is no such file or folder"),
        (some_text, "no zip archive"),
        (empty_file, "no zip archive"),
        (a_pipe, "neither a folder nor a zip archive"),
        (a_socket, "cannot be opened"),
    ],
)
def test_what_is_no_download_is_refused(make: Callable[[Path], None], sentence: str, tmp_path: Path) -> None:
    make(tmp_path / "all.zip")
    assert sentence in refused(tmp_path / "all.zip")


def test_a_large_file_of_nothing_is_no_archive(tmp_path: Path) -> None:
    with (tmp_path / "zero").open("wb") as stream:
        stream.truncate(1 << 30)
    assert "no zip archive" in refused(tmp_path / "zero")


@given(
    changes=st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6),
    cut=st.integers(0, 40),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_damaged_archive_is_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], cut: int) -> None:
    data = bytearray(zipped(tmp_path / "all.zip", canvas()).read_bytes())
    for place, value in changes:
        data[place % len(data)] = value
    (tmp_path / "all.zip").write_bytes(data[: len(data) - cut] if cut < 20 else data)
    try:
        found = contents(tmp_path / "all.zip")
    except DownloadRefusedError:
        return
    assert sum(map(len, found.values())) <= 10_000 * len(found)
