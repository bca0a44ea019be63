"""Downloads as learning management systems make them, and as nobody should: each made here, from names and contents."""

import stat
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.helpers import ROOT

UNIT = "activations"
SMALL = b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
RELEASED = (ROOT / "exercises" / UNIT / f"{UNIT}.ipynb").read_bytes()

Files = Mapping[str, bytes]


def zipped(path: Path, files: Files) -> Path:
    """A zip archive of files, packed as usual."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def laid_out(path: Path, files: Files) -> Path:
    """A folder of files."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


# ------------------------------------------------------------------------------------------------ a class, true to life


def canvas(content: bytes = SMALL) -> dict[str, bytes]:
    """Canvas: Grace is late and has a drawing beside her notebook; Ada's file is a second copy."""
    return {
        "lovelaceada_101_5001_activations-1.ipynb": content,
        "hoppergrace_LATE_102_5002_activations.ipynb": content,
        "hoppergrace_LATE_102_5003_drawing.png": b"\x89PNG",
        "o'brienjosé_103_5004_activations.ipynb".replace("'", ""): content,
    }


def moodle(content: bytes = SMALL) -> dict[str, bytes]:
    """Moodle, in folders; José has one of his own, and wrote into the box too."""
    return {
        "Ada Lovelace_201_assignsubmission_file_/activations.ipynb": content,
        "Grace Hopper_202_assignsubmission_file_/activations.ipynb": content,
        "José O'Brien_203_assignsubmission_file_/work/activations.ipynb": content,
        "José O'Brien_203_assignsubmission_onlinetext_/onlinetext.html": b"<p>See my file.</p>",
    }


def moodle_flat(content: bytes = SMALL) -> dict[str, bytes]:
    """Moodle, without folders."""
    return {
        "Ada Lovelace_201_assignsubmission_file_activations.ipynb": content,
        "Grace Hopper_202_assignsubmission_file_activations.ipynb": content,
        "José O'Brien_203_assignsubmission_file_activations.ipynb": content,
    }


def receipt(name: str, login: str, comments: str = "There are no student comments for this assignment.") -> bytes:
    """The text that Blackboard lays beside an attempt."""
    return (
        f"Name: {name} ({login})\nAssignment: Activations\n"
        "Date Submitted: Monday, 30 November 2026 14:05:09 o'clock GMT\nCurrent Mark: Needs Marking\n\n"
        "Submission Field:\nThere is no student submission text data for this assignment.\n\n"
        f"Comments:\n{comments}\n\nFiles:\n\tOriginal filename: activations.ipynb\n\tFilename: x.ipynb\n"
    ).encode()


def blackboard(content: bytes = SMALL) -> dict[str, bytes]:
    """Blackboard: Ada has two attempts, and José's login has an underscore."""
    first, second = (
        "Activations_alovelace_attempt_2026-11-29-09-00-00",
        "Activations_alovelace_attempt_2026-11-30-14-05-09",
    )
    grace, jose = (
        "Activations_ghopper_attempt_2026-11-30-23-59-59",
        "Activations_jose_ob_attempt_2026-12-01-00-10-00",
    )
    return {
        f"{first}.txt": receipt("Ada Lovelace", "alovelace"),
        f"{first}_activations.ipynb": content + b" ",
        f"{second}.txt": receipt("Ada Lovelace", "alovelace"),
        f"{second}_activations.ipynb": content,
        f"{grace}.txt": receipt("Grace Hopper", "ghopper"),
        f"{grace}_my work.ipynb": content,
        f"{jose}.txt": receipt("José O'Brien", "jose_ob"),
        f"{jose}_activations.ipynb": content,
    }


def brightspace(content: bytes = SMALL) -> dict[str, bytes]:
    """Brightspace: in a folder named after the assignment; Ada has handed in twice."""
    return {
        "Activations/index.html": b"<html></html>",
        "Activations/39786-640693 - Ada Lovelace - Nov 29, 2026 900 AM/activations.ipynb": content + b" ",
        "Activations/39786-640694 - Ada Lovelace - Nov 30, 2026 205 PM/activations.ipynb": content,
        "Activations/39787-640695 - Grace Hopper - Nov 30, 2026 1159 PM/activations.ipynb": content,
        "Activations/39788-640696 - José O'Brien - Dec 1, 2026 1210 AM/activations.ipynb": content,
        "__MACOSX/Activations/._index.html": b"\0",
    }


def nbgrader(content: bytes = SMALL) -> dict[str, bytes]:
    """The layout of nbgrader, with another unit beside."""
    return {
        "alovelace/activations/activations.ipynb": content,
        "alovelace/activations/timestamp.txt": b"2026-11-30 14:05:09 UTC\n",
        "alovelace/gates/gates.ipynb": content,
        "ghopper/activations/activations.ipynb": content,
        "job/activations/activations.ipynb": content,
        "job/.ipynb_checkpoints/activations-checkpoint.ipynb": content,
    }


def flat(content: bytes = SMALL) -> dict[str, bytes]:
    """A notebook each, with the unit in its name or without."""
    return {"alovelace.ipynb": content, "ghopper_activations.ipynb": content, "job_activations (1).ipynb": content}


CLASSES: dict[str, Callable[..., dict[str, bytes]]] = {
    "canvas": canvas,
    "moodle": moodle,
    "moodle_flat": moodle_flat,
    "blackboard": blackboard,
    "brightspace": brightspace,
    "nbgrader": nbgrader,
    "flat": flat,
}

# --------------------------------------------------------------------------------------------------- lists of learners

CANVAS_LIST = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Activations (7700)\n"
    "    Points Possible,,,,,10\n"
    '"Lovelace, Ada",101,S1,alovelace,One and Two,\n'
    '"Hopper, Grace",102,S2,ghopper,One,\n'
    '"OBrien, José",103,S3,job,One,\n'
    '"Turing, Alan",104,S4,aturing,One,\n'
    '"Student, Test",999,,0123456789abcdef,One,\n'
)
MOODLE_LIST = (
    "\ufeffIdentifier,Full name,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\r\n"
    "Participant 201,Ada Lovelace,ada@example.edu,Submitted for grading,,10.00,Yes,"
    '"Monday, 30 November 2026, 2:05 PM",-,\r\n'
    "Participant 202,Grace Hopper,grace@example.edu,Submitted for grading,,10.00,Yes,"
    '"Monday, 30 November 2026, 11:59 PM",-,\r\n'
    "Participant 203,José O'Brien,jose@example.edu,Submitted for grading,,10.00,Yes,-,-,\r\n"
    "Participant 204,Alan Turing,alan@example.edu,No submission,,10.00,Yes,-,-,\r\n"
)
BLACKBOARD_LIST = (
    '\ufeff"Last Name","First Name","Username","Student ID","Last Access","Availability"\n'
    '"Lovelace","Ada","alovelace","=""0001""","","Yes"\n'
    '"Hopper","Grace","ghopper","=""0002""","","Yes"\n'
    '"O\'Brien","José","jose_ob","=""0003""","","Yes"\n'
)
BRIGHTSPACE_LIST = (
    "OrgDefinedId,Username,Last Name,First Name,Email,End-of-Line Indicator\n"
    "#0001,#alovelace,Lovelace,Ada,ada@example.edu,#\n"
    "#0002,#ghopper,Hopper,Grace,grace@example.edu,#\n"
    "#0003,#job,O'Brien,José,jose@example.edu,#\n"
)

# ------------------------------------------------------------------------------------- archives that nobody should open


def _patched(path: Path, change: Callable[[bytearray], None]) -> Path:
    data = bytearray(zipped(path, canvas()).read_bytes())
    change(data)
    path.write_bytes(data)
    return path


def _entry(data: bytearray, number: int) -> int:
    """Where an entry of the directory begins."""
    place = -1
    for _ in range(number + 1):
        place = data.index(b"PK\x01\x02", place + 1)
    return place


def _set(data: bytearray, place: int, form: str, value: int) -> None:
    struct.pack_into(form, data, place, value)


def overlapping_members(path: Path) -> Path:
    """Two entries of the directory with the bytes of one file, as in a zip bomb of the quiet kind."""

    def change(data: bytearray) -> None:
        first, second = _entry(data, 0), _entry(data, 1)
        _set(data, second + 42, "<I", struct.unpack_from("<I", data, first + 42)[0])

    return _patched(path, change)


def member_reaches_into_the_next(path: Path) -> Path:
    """A file whose size takes in the one behind it."""

    def change(data: bytearray) -> None:
        place = _entry(data, 0)
        _set(data, place + 20, "<I", struct.unpack_from("<I", data, place + 20)[0] + 40)

    return _patched(path, change)


def member_reaches_into_the_directory(path: Path) -> Path:
    """A last file whose size takes in the directory."""

    def change(data: bytearray) -> None:
        place = _entry(data, len(canvas()) - 1)
        _set(data, place + 20, "<I", struct.unpack_from("<I", data, place + 20)[0] + 40)

    return _patched(path, change)


def other_name_inside(path: Path) -> Path:
    """A file that has one name in the directory, and another where it begins."""

    def change(data: bytearray) -> None:
        place = data.index(b"lovelaceada")
        data[place : place + 11] = b"turingalan1"

    return _patched(path, change)


def encrypted_member(path: Path) -> Path:
    """A file that is said to be encrypted."""

    def change(data: bytearray) -> None:
        _set(data, _entry(data, 1) + 8, "<H", struct.unpack_from("<H", data, _entry(data, 1) + 8)[0] | 1)

    return _patched(path, change)


def packed_with_lzma(path: Path) -> Path:
    """A file that is packed in a way no learning management system uses."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("lovelaceada_101_5001_activations.ipynb", SMALL)
    return path


def damaged_contents(path: Path) -> Path:
    """A file with a byte that came over wrong."""

    def change(data: bytearray) -> None:
        place = data.index(b"activations-1.ipynb") + len(b"activations-1.ipynb") + 10
        data[place] ^= 0xFF

    return _patched(path, change)


def cut_off(path: Path) -> Path:
    """A download that broke off."""
    data = zipped(path, canvas()).read_bytes()
    path.write_bytes(data[: len(data) // 2])
    return path


def _with_mode(path: Path, mode: int) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hoppergrace_102_5002_activations.ipynb", SMALL)
        info = zipfile.ZipInfo("lovelaceada_101_5001_activations.ipynb")
        info.create_system, info.external_attr = 3, mode << 16
        archive.writestr(info, "/etc/passwd")
    return path


def symlink_in_zip(path: Path) -> Path:
    """A link to a file of the machine."""
    return _with_mode(path, stat.S_IFLNK | 0o777)


def pipe_in_zip(path: Path) -> Path:
    """A named pipe."""
    return _with_mode(path, stat.S_IFIFO | 0o666)


def _named(name: str) -> Callable[[Path], Path]:
    def make(path: Path) -> Path:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("hoppergrace_102_5002_activations.ipynb", SMALL)
            info = zipfile.ZipInfo("x")
            info.filename = name
            archive.writestr(info, SMALL)
        return path

    return make


def duplicate_members(path: Path) -> Path:
    """Two files of one name."""
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("lovelaceada_101_5001_activations.ipynb", "lovelaceada_101_5001_bctivations.ipynb"):
            archive.writestr(name, SMALL)
    path.write_bytes(path.read_bytes().replace(b"bctivations", b"activations"))
    return path


def composed_and_decomposed(path: Path) -> Path:
    """Two files whose names look the same: an accent that is part of its letter, and one that follows it."""
    names = ("jos\u00e9_101_5001_activations.ipynb", "jose\u0301_101_5001_activations.ipynb")
    return zipped(path, dict.fromkeys(names, SMALL))


def file_and_folder_of_one_name(path: Path) -> Path:
    """A file that another lies in."""
    return zipped(path, {"a.ipynb": SMALL, "a.ipynb/b.ipynb": SMALL})


ATTACKS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "overlapping_members": (overlapping_members, "overlap"),
    "member_reaches_into_the_next": (member_reaches_into_the_next, "overlap"),
    "member_reaches_into_the_directory": (member_reaches_into_the_directory, "overlap"),
    "other_name_inside": (other_name_inside, "damaged"),
    "encrypted_member": (encrypted_member, "is encrypted"),
    "packed_with_lzma": (packed_with_lzma, "packed in a way"),
    "damaged_contents": (damaged_contents, "damaged at 'lovelaceada_101_5001_activations-1.ipynb'"),
    "cut_off": (cut_off, "no zip archive"),
    "symlink_in_zip": (symlink_in_zip, "'lovelaceada_101_5001_activations.ipynb' is a link"),
    "pipe_in_zip": (pipe_in_zip, "a device or a pipe"),
    "duplicate_members": (duplicate_members, "two files have the name"),
    "composed_and_decomposed": (composed_and_decomposed, "two files have the name"),
    "file_and_folder_of_one_name": (file_and_folder_of_one_name, "both a file and a folder"),
    "path_upward": (_named("../lovelaceada_101_5001_activations.ipynb"), "leads out"),
    "path_upward_inside": (_named("a/../../lovelaceada_101_5001_activations.ipynb"), "leads out"),
    "path_from_the_root": (_named("/tmp/lovelaceada_101_5001_activations.ipynb"), "root of a disk"),
    "path_with_a_drive": (_named("C:/lovelaceada_101_5001_activations.ipynb"), "root of a disk"),
    "path_with_a_backslash": (_named("..\\lovelaceada_101_5001_activations.ipynb"), "has a backslash"),
    "path_with_nothing_between": (_named("a//lovelaceada_101_5001_activations.ipynb"), "leads out"),
    "name_with_a_line_break": (_named("lovelaceada_101_5001_a\nb.ipynb"), "control characters"),
    "name_with_an_escape": (_named("lovelaceada_101_5001_\x1b[2J.ipynb"), "control characters"),
    "name_cut_by_a_null": (_named("lovelaceada_101_5001_a.ipynb\0.png"), "control characters"),
    "name_that_reads_backwards": (_named("lovelaceada_101_5001_a\u202ebnypi.exe"), "direction of writing"),
    "name_too_long": (_named("lovelaceada_101_5001_" + "x" * 1000 + ".ipynb"), "too long"),
    "folders_too_deep": (_named("a/" * 70 + "lovelaceada_101_5001_a.ipynb"), "too long"),
}
"""What refuses the whole archive, each with a part of the sentence."""
