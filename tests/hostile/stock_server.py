"""Import nbgrader once, and fork a contained nbgrader for every request.

Started by stock.py inside bubblewrap, where courses are the folders below /courses. A request is a line of JSON with
the course's name, nbgrader's arguments and the most seconds it may take; the answer is a line with nbgrader's exit
status, or "stopped". What nbgrader says is in a file beside the course. Each runs in namespaces of its own, in which
the course is /tmp/course and no other is to be seen, and which end with all that nbgrader has started.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

from session.confine import Bounds, enter_namespaces, restrict

__all__ = ["main"]

COURSES = Path("/courses")
HERE = "/tmp/course"

BOUNDS = Bounds(
    memory=4 << 30,
    processes=192,
    cpu_seconds=300,
    file_bytes=1 << 30,
    tmp_bytes=256 << 20,
)
"""nbgrader sets none of them. They are the machine's that it runs on: wide, and in its favour."""

_BIND = 4096
_SET_INTERFACE_FLAGS, _UP = 0x8914, 1


def main() -> None:
    """Import, announce, run on request."""
    # Not the numbers 0 to 2, which nbgrader and its kernel write to.
    requests, answers = os.fdopen(os.dup(0), encoding="utf-8"), os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    os.dup2(2, 1)
    import nbgrader.apps.nbgraderapp
    import nbgrader.converters  # noqa: F401

    answers.write("ready\n")
    answers.flush()
    for line in requests:
        answers.write(f"{_run(json.loads(line))}\n")
        answers.flush()


def _run(asked: dict[str, Any]) -> str:
    child = os.fork()
    if child == 0:
        _become_nbgrader(asked["course"], asked["arguments"])
    ended = os.pidfd_open(child)
    try:
        in_time, _, _ = select.select([ended], [], [], asked["seconds"])
        if not in_time:
            # The process in between passes it on as a signal that cannot be ignored.
            os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
    finally:
        os.close(ended)
    return str(os.waitstatus_to_exitcode(status)) if in_time else "stopped"


def _become_nbgrader(course: str, arguments: list[str]) -> NoReturn:
    try:
        said = os.open(COURSES / f"{course}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(said, 1)
        os.dup2(said, 2)
        os.closerange(3, 256)
        enter_namespaces(BOUNDS)
        _see_only(COURSES / course)
        _bring_loopback_up()
        restrict(BOUNDS)
        os.chdir(HERE)
        _go_on_in_second_process()
        sys.argv = ["nbgrader", *arguments]
        os._exit(_nbgrader())
    except BaseException as error:
        os.write(2, f"[contained | ERROR] it could not be contained: {error}\n".encode())
    finally:
        os._exit(1)


def _see_only(course: Path) -> None:
    """Mount the course where it is looked for, and an empty folder over all courses."""
    libc = ctypes.CDLL(None, use_errno=True)
    Path(HERE).mkdir()
    for source, target, kind, flags in (
        (bytes(course), HERE.encode(), None, _BIND),
        (b"tmpfs", bytes(COURSES), b"tmpfs", 0),
    ):
        if libc.mount(source, target, kind, flags, None) != 0:
            raise OSError(ctypes.get_errno(), f"mount {target.decode()}")


def _bring_loopback_up() -> None:
    """nbgrader and its kernel talk over 127.0.0.1, which a new network namespace has switched off."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        fcntl.ioctl(link, _SET_INTERFACE_FLAGS, struct.pack("16sH22x", b"lo", _UP))


def _go_on_in_second_process() -> None:
    """Leave the first process, which no signal of its own namespace ends, to collect what is left behind."""
    child = os.fork()
    if child == 0:
        return
    while True:
        ended, status = os.wait()
        if ended == child:
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _nbgrader() -> int:
    from nbgrader.apps.nbgraderapp import main as nbgrader

    try:
        nbgrader()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    main()
