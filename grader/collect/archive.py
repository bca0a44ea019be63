"""A download's files, read as what a stranger made: a zip archive or a folder, its names never used as paths.

What only the maker of an archive can do refuses the whole of it before anything is written: paths that lead elsewhere,
links and devices, encryption, two files in one place or of one name, names that cannot be shown, too many files, and
contents that are not what the directory says. What a learner can do with a file that a learning management system then
packs - make it huge, make it unpack to a thousand times its size, hand in an archive - concerns that learner alone, and
is left to ``grader.collect.plan``.
"""

import contextlib
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from grader.collect.names import Member, ignored
from grader.exceptions import DownloadRefusedError

__all__ = ["Archive", "Folder", "Source", "open_source"]

MOST_MEMBERS = 200_000
MOST_DIRECTORY_BYTES = 100_000_000
MOST_TOTAL_BYTES = 64_000_000_000
MOST_TOTAL_RATIO = 100
TOTAL_RATIO_FROM = 256_000_000
LONGEST_PART = 1_000
DEEPEST = 64
_CHUNK = 1 << 20
_LOCAL = struct.Struct("<4s22xHH")
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF8 = 0x800
_DIRECTORY_ENTRY = b"PK\x01\x02"
_SMALLEST_ENTRY = 46


class Source(Protocol):
    """Where the files of a download are."""

    name: str
    members: tuple[Member, ...]

    def read(self, member: Member, most: int) -> Iterator[bytes]:
        """The contents of a member in pieces, ``most`` bytes at most."""

    def require_total(self, members: Iterable[Member]) -> None:
        """Check what is to be read altogether."""


def require_names(files: Iterable[str], folders: Iterable[str], source: str) -> None:
    """Check the paths of a download.

    Raises:
        DownloadRefusedError: one of them leads elsewhere, cannot be shown, or is there twice.
    """
    seen: set[str] = set()
    above = {unicodedata.normalize("NFC", _checked(path, source)) for path in folders}
    for path in files:
        same = unicodedata.normalize("NFC", _checked(path, source))
        if same in seen:
            raise DownloadRefusedError(source, f"two files have the name {_shown(path)}")
        seen.add(same)
        while same := same.rpartition("/")[0]:
            above.add(same)
    for path in seen & above:
        raise DownloadRefusedError(source, f"{_shown(path)} is both a file and a folder")


def _checked(path: str, source: str) -> str:
    reason = _wrong(path)
    if reason:
        raise DownloadRefusedError(source, f"the name {_shown(path)} {reason}")
    return path


def _shown(path: str) -> str:
    return ascii(path[:120])


def _wrong(path: str) -> str:
    parts = path.split("/")
    if any(unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in path):
        return "has control characters"
    if any(
        unicodedata.bidirectional(letter) in ("LRE", "RLE", "LRO", "RLO", "LRI", "RLI", "FSI") for letter in path
    ):
        return "has characters that turn the direction of writing"
    if "\\" in path:
        return "has a backslash"
    if path.startswith("/") or re.match(r"[A-Za-z]:", path):
        return "begins at the root of a disk"
    if any(part in ("", ".", "..") for part in parts):
        return "leads out of the folder"
    if len(parts) > DEEPEST or any(len(part.encode()) > LONGEST_PART for part in parts):
        return "is too long"
    return ""


@contextlib.contextmanager
def open_source(path: Path) -> Iterator[Source]:
    """Open a download, and check all that can be checked before a file is read.

    Raises:
        DownloadRefusedError: it is missing, is neither a folder nor a zip archive, or is one that is not safe to read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError as error:
        raise DownloadRefusedError(str(path), "there is no such file or folder") from error
    except OSError as error:
        raise DownloadRefusedError(str(path), f"it cannot be opened: {os.strerror(error.errno or 0)}") from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISDIR(mode):
        try:
            yield Folder(descriptor, str(path))
        finally:
            os.close(descriptor)
        return
    with os.fdopen(descriptor, "rb") as stream:
        if not stat.S_ISREG(mode):
            raise DownloadRefusedError(str(path), "it is neither a folder nor a zip archive")
        with Archive(stream, str(path)) as archive:
            yield archive


# ------------------------------------------------------------------------------------------------------ zip archives


class _Bounded:
    """A file of which no directory with too many entries is read: zipfile itself reads all, however many there are."""

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self._stream = stream
        self._source = source

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        """Whoever opened the file closes it."""

    def read(self, size: int = -1) -> bytes:
        found = self._stream.read(size if 0 <= size <= MOST_DIRECTORY_BYTES else MOST_DIRECTORY_BYTES + 1)
        crowded = len(found) > MOST_MEMBERS * _SMALLEST_ENTRY and found.count(_DIRECTORY_ENTRY) > MOST_MEMBERS
        if crowded or len(found) > MOST_DIRECTORY_BYTES:
            raise DownloadRefusedError(self._source, f"it has more than {MOST_MEMBERS} files")
        return found


class Archive:
    """A zip archive, checked when it is opened.

    Raises:
        DownloadRefusedError: it is none, or one that no learning management system makes.
    """

    def __init__(self, stream: IO[bytes], source: str) -> None:
        self.name = source
        self._stream = stream
        self._bytes = os.fstat(stream.fileno()).st_size
        try:
            self._zip = zipfile.ZipFile(_Bounded(stream, source))
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error) as error:
            raise DownloadRefusedError(source, "it is no zip archive that can be read") from error
        infos = self._zip.infolist()
        if len(infos) > MOST_MEMBERS:
            raise DownloadRefusedError(source, f"it has more than {MOST_MEMBERS} files")
        named = [(_path(info), info) for info in infos]
        folders = [path.removesuffix("/") for path, _ in named if path.endswith("/")]
        files = [(path, info) for path, info in named if not path.endswith("/")]
        require_names([path for path, _ in files], folders, source)
        for info in infos:
            self._require_plain(info)
        self._require_apart(infos)
        self._infos = dict(files)
        self.members = tuple(Member(path, info.file_size, info.compress_size) for path, info in files)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zip.close()

    def read(self, member: Member, most: int) -> Iterator[bytes]:
        """The contents of a member in pieces, ``most`` bytes at most.

        Raises:
            DownloadRefusedError: the archive is damaged there.
        """
        left = most
        try:
            with self._zip.open(self._infos[member.path]) as stream:
                while left and (piece := stream.read(min(left, _CHUNK))):
                    left -= len(piece)
                    yield piece
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            OSError,
            RuntimeError,
            ValueError,
            struct.error,
        ) as error:
            raise DownloadRefusedError(self.name, f"it is damaged at {_shown(member.path)}") from error

    def require_total(self, members: Iterable[Member]) -> None:
        """Check what is to be read altogether.

        Raises:
            DownloadRefusedError: it is more than any class hands in.
        """
        total = sum(member.size for member in members)
        ratio = total > max(TOTAL_RATIO_FROM, MOST_TOTAL_RATIO * self._bytes)
        if total > MOST_TOTAL_BYTES or ratio:
            raise DownloadRefusedError(
                self.name, f"it unpacks to {total // 1_000_000} MB, more than a class hands in"
            )

    def _require_plain(self, info: zipfile.ZipInfo) -> None:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            what = "a link" if kind == stat.S_IFLNK else "a device or a pipe"
            raise DownloadRefusedError(self.name, f"{_shown(info.orig_filename)} is {what}, and no file")
        if info.flag_bits & _ENCRYPTED:
            raise DownloadRefusedError(self.name, f"{_shown(info.orig_filename)} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise DownloadRefusedError(
                self.name, f"{_shown(info.orig_filename)} is packed in a way that is not usual"
            )

    def _require_apart(self, infos: list[zipfile.ZipInfo]) -> None:
        """Check that no two files share bytes, and that each begins where the directory says, under the same name."""
        end, before = 0, ""
        for info in sorted(infos, key=lambda info: info.header_offset):
            start = info.header_offset
            if start < end or start < 0:
                raise DownloadRefusedError(self.name, f"{_shown(before)} and {_shown(info.orig_filename)} overlap")
            self._stream.seek(start)
            head = self._stream.read(_LOCAL.size)
            if len(head) < _LOCAL.size:
                raise DownloadRefusedError(self.name, f"it is damaged at {_shown(info.orig_filename)}")
            signature, name_length, extra = _LOCAL.unpack(head)
            own = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")
            if signature != b"PK\x03\x04" or self._stream.read(name_length) != own:
                raise DownloadRefusedError(self.name, f"it is damaged at {_shown(info.orig_filename)}")
            end, before = start + _LOCAL.size + name_length + extra + info.compress_size, info.orig_filename
        if end > self._zip.start_dir:
            raise DownloadRefusedError(self.name, f"{_shown(before)} and the directory overlap")


def _path(info: zipfile.ZipInfo) -> str:
    """A member's name; UTF-8 also where the archive does not say so, which Canvas's does not."""
    if info.flag_bits & _UTF8:
        return info.orig_filename
    with contextlib.suppress(UnicodeError):
        return info.orig_filename.encode("cp437").decode()
    return info.orig_filename


# ----------------------------------------------------------------------------------------------------------- folders


class Folder:
    """A folder on a disk, no part of which is followed through a link.

    Raises:
        DownloadRefusedError: something in it is no file, or cannot be read.
    """

    def __init__(self, descriptor: int, source: str) -> None:
        self.name = source
        self._descriptor = descriptor
        found: list[Member] = []
        try:
            self._walk(descriptor, "", found)
        except OSError as error:
            raise DownloadRefusedError(source, f"it cannot be read: {os.strerror(error.errno or 0)}") from error
        self.members = tuple(sorted(found, key=lambda member: member.path))
        require_names([member.path for member in self.members], [], source)

    def read(self, member: Member, most: int) -> Iterator[bytes]:
        """The contents of a member in pieces, ``most`` bytes at most.

        Raises:
            DownloadRefusedError: it cannot be read, or is no longer a file.
        """
        try:
            with self._opened(member.path) as stream:
                while most and (piece := stream.read(min(most, _CHUNK))):
                    most -= len(piece)
                    yield piece
        except OSError as error:
            reason = f"{_shown(member.path)} cannot be read: {os.strerror(error.errno or 0)}"
            raise DownloadRefusedError(self.name, reason) from error

    def require_total(self, members: Iterable[Member]) -> None:
        """Check what is to be read altogether.

        Raises:
            DownloadRefusedError: it is more than any class hands in.
        """
        total = sum(member.size for member in members)
        if total > MOST_TOTAL_BYTES:
            raise DownloadRefusedError(self.name, f"it holds {total // 1_000_000} MB, more than a class hands in")

    def _walk(self, folder: int, above: str, found: list[Member]) -> None:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries]
        for name in names:
            path = above + name
            if ignored(path):
                continue
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _checked(path, self.name)
                with _opened_folder(name, folder) as below:
                    self._walk(below, f"{path}/", found)
            elif stat.S_ISREG(status.st_mode):
                found.append(Member(path, status.st_size))
            else:
                what = "a link" if stat.S_ISLNK(status.st_mode) else "a device or a pipe"
                raise DownloadRefusedError(self.name, f"{_shown(path)} is {what}, and no file")
            if len(found) > MOST_MEMBERS:
                raise DownloadRefusedError(self.name, f"it has more than {MOST_MEMBERS} files")

    @contextlib.contextmanager
    def _opened(self, path: str) -> Iterator[IO[bytes]]:
        *above, name = path.split("/")
        with contextlib.ExitStack() as opened:
            folder = self._descriptor
            for part in above:
                folder = opened.enter_context(_opened_folder(part, folder))
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
            stream = opened.enter_context(os.fdopen(os.open(name, flags, dir_fd=folder), "rb"))
            if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                raise DownloadRefusedError(self.name, f"{_shown(path)} is no file any more")
            yield stream


@contextlib.contextmanager
def _opened_folder(name: str, parent: int) -> Iterator[int]:
    descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
