"""The fork server: imports what learners need once, and forks a learner session for every request.

Started inside the sandbox with its end of a socket pair as descriptor number ``--control``. A request is one byte with
a connected socket beside it (SCM_RIGHTS): F forks a session on that socket, and the answer is its process number in
text; K and a number in text ends a session; Q, or the end of the connection, ends the server. It holds no test, no
solution and no file of the gradebook, so nothing that a session inherits from it is worth reading.
"""

import argparse
import os
import signal
import socket
import sys

__all__ = ["main"]


def main() -> None:
    """Import, announce, fork on request."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--control", type=int, required=True)
    for name in ("memory", "processes", "cpu-seconds", "file-bytes", "tmp-bytes", "output-bytes"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--nested", type=int, choices=(0, 1), default=1)
    options = parser.parse_args()
    control = socket.socket(fileno=options.control)
    shell = _warm()
    from .confine import Bounds

    bounds = Bounds(options.memory, options.processes, options.cpu_seconds, options.file_bytes, options.tmp_bytes)
    control.sendall(b"ready\n")
    children: set[int] = set()
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        _reap(children)
        if not request or request[:1] == b"Q":
            for child in children:
                _end(child, options.nested)
            os._exit(0)
        if request[:1] == b"K":
            number = int(request[1:])
            if number in children:
                _end(number, options.nested)
                children.discard(number)
            control.sendall(b"ended\n")
            continue
        child = os.fork()
        if child == 0:
            control.close()
            _become_session(socket.socket(fileno=descriptors[0]), shell, bounds, options)
        for descriptor in descriptors:
            os.close(descriptor)
        children.add(child)
        control.sendall(b"%d\n" % child)


def _warm() -> object:
    """Import what cells usually import, and make the shell that all sessions start from."""
    import matplotlib
    import numpy.testing  # noqa: F401

    matplotlib.use("agg")
    import matplotlib.figure

    import ffn.exercise
    import ffn.misconceptions
    import ffn.published

    from .learner import make_shell

    for unit in ffn.misconceptions.UNITS:
        ffn.misconceptions.unit_steps(unit)
    return make_shell()


def _become_session(connection: socket.socket, shell: object, bounds: object, options: argparse.Namespace) -> None:
    from .confine import Bounds, enter_namespaces, limit, restrict
    from .learner import serve

    assert isinstance(bounds, Bounds)
    try:
        if options.nested:
            enter_namespaces(bounds)
        else:
            os.setsid()
        os.chdir("/tmp")
        _copy_data()
        if options.nested:
            restrict(bounds)
        else:
            limit(bounds)
        serve(connection, shell, options.output_bytes)
    except BaseException as error:
        sys.stderr.write(f"the session could not start: {error}\n")
    finally:
        os._exit(1)


def _copy_data() -> None:
    """Give the session its own copy of the unit's data, if the server was given any."""
    import shutil
    from pathlib import Path

    if Path("/data").is_dir():
        shutil.copytree("/data", ".", dirs_exist_ok=True)


def _end(child: int, nested: int) -> None:
    """End a session with all that it started, as far as that can be known without namespaces."""
    try:
        if nested:
            # The process between this one and the session passes it on as a signal that cannot be ignored.
            os.kill(child, signal.SIGTERM)
        else:
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def _reap(children: set[int]) -> None:
    for child in list(children):
        try:
            done, _ = os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            done = child
        if done:
            children.discard(child)


if __name__ == "__main__":
    main()
