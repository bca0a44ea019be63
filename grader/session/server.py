"""The fork server: imports what learners need once, and forks a learner session for every request.

Started inside the sandbox with its end of a socket pair as descriptor number ``--control``. A request is one byte with
a connected socket beside it (SCM_RIGHTS): F forks a session on that socket, and the answer is its process number in
text; K and a number in text ends a session; I and the name of a module imports it for the sessions to come; Q, or the
end of the connection, ends the server. It holds no test, no
solution and no file of the gradebook, so nothing that a session inherits from it is worth reading.
"""

import argparse
import contextlib
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Iterable

__all__ = ["main"]

WATCH_SECONDS = 0.1


def main() -> None:
    """Import, announce, fork on request."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    for name in ("memory", "all-memory", "processes", "cpu-seconds", "file-bytes", "tmp-bytes", "output-bytes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--nested", type=int, choices=(0, 1), default=1)
    parser.add_argument("--data", required=True)
    parser.add_argument("--modules", default="")
    options = parser.parse_args()
    control = socket.socket(fileno=options.control)
    from .confine import Bounds, enter_namespaces, fork_apart

    bounds = Bounds(options.memory, options.processes, options.cpu_seconds, options.file_bytes, options.tmp_bytes)
    if options.nested:
        # While this process is small: it leaves one behind that waits for it.
        enter_namespaces(bounds)
    shell = _warm(options.modules.split(","))
    control.sendall(b"ready\n")
    # The folder that a session without namespaces of its own works in.
    children: dict[int, str] = {}
    own = _memory(os.getpid())
    while True:
        while options.nested and children and not select.select([control], [], [], WATCH_SECONDS)[0]:
            if _memory_of_others(own) > options.all_memory:
                for child in children:
                    os.kill(child, signal.SIGKILL)
        request, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        _reap(children)
        if not request or request[:1] == b"Q":
            for child in list(children):
                _end(child, children)
            os._exit(0)
        if request[:1] == b"K":
            number = int(request[1:])
            if number in children:
                _end(number, children)
            control.sendall(b"ended\n")
            continue
        if request[:1] == b"I":
            _import(request[1:].decode())
            own = _memory(os.getpid())
            control.sendall(b"imported\n")
            continue
        folder = "" if options.nested else _folder()
        child = fork_apart() if options.nested else os.fork()
        if child == 0:
            control.close()
            _become_session(socket.socket(fileno=descriptors[0]), shell, bounds, options, folder)
        for descriptor in descriptors:
            os.close(descriptor)
        children[child] = folder
        control.sendall(b"%d\n" % child)


def _memory(process: int) -> int:
    """Bytes of memory of a process that no file stands behind; 0 where it has ended."""
    try:
        with open(f"/proc/{process}/status", "rb") as status:  # noqa: PTH123 - often, and as quick as can be
            line = next((line for line in status if line.startswith(b"RssAnon:")), b"RssAnon: 0 kB")
    except OSError:
        return 0
    return int(line.split()[1]) << 10


def _memory_of_others(own: int) -> int:
    """What all sessions together have taken: no limit of the kernel's counts more than one process at a time.

    Every process of a session begins with ``own`` bytes that it shares with this one.
    """
    names = os.listdir("/proc")  # noqa: PTH208 - often, and as quick as can be
    others = {int(name) for name in names if name.isdigit()} - {os.getpid()}
    return sum(max(0, _memory(process) - own) for process in others)


def _warm(modules: Iterable[str]) -> object:
    """Import what a unit's cells import, and make the shell that all sessions start from."""
    import ffn.published  # noqa: F401

    from .confine import prepare
    from .learner import make_shell

    prepare()
    for module in filter(None, modules):
        _import(module)
    shell = make_shell()
    # The collector would look at all of this in every session, and so copy it.
    gc.collect()
    gc.freeze()
    return shell


def _import(module: str) -> None:
    import importlib

    with contextlib.suppress(ImportError):
        importlib.import_module(module)


def _folder() -> str:
    import tempfile

    return tempfile.mkdtemp(prefix="ffn-session-")


def _become_session(
    connection: socket.socket, shell: object, bounds: object, options: argparse.Namespace, folder: str
) -> None:
    import shutil

    from .confine import Bounds, enter_session, limit, restrict
    from .learner import serve

    assert isinstance(bounds, Bounds)
    try:
        if options.nested:
            enter_session(bounds)
        else:
            os.setsid()
        os.chdir(folder or "/tmp")
        # Each session has a copy of the unit's data of its own; most units have none.
        if os.listdir(options.data):  # noqa: PTH208 - quicker, and in every session
            shutil.copytree(options.data, ".", dirs_exist_ok=True)
        if options.nested:
            restrict(bounds)
        else:
            limit(bounds)
        serve(connection, shell, options.output_bytes)
    except BaseException as error:
        sys.stderr.write(f"the session could not start: {error}\n")
    finally:
        os._exit(1)


def _end(child: int, children: dict[int, str]) -> None:
    """End a session with all that it started, as far as that can be known without namespaces."""
    folder = children.pop(child)
    try:
        if folder:
            os.killpg(child, signal.SIGKILL)
        else:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
    _clear(folder)


def _reap(children: dict[int, str]) -> None:
    for child in list(children):
        try:
            done, _ = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            done = child
        if done:
            _clear(children.pop(child))


def _clear(folder: str) -> None:
    import shutil

    if folder:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
