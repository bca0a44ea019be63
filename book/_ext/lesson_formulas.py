"""Start the formula renderer patiently.

sphinxcontrib-katex waits for the renderer's socket to appear and then connects once. On a busy machine the
socket is there a moment before anybody listens, and the build ends with "connection refused".
"""

import socket
import time
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from sphinxcontrib import katex

_TIMEOUT = 60.0
_PAUSE = 0.01


def start_renderer(cls: Any, rundir: Path, timeout: float) -> tuple[Popen[bytes], socket.socket]:
    """Start the renderer, and connect as soon as it answers."""
    path = rundir / "katex.sock"
    process = Popen(cls.build_command(socket=path), stdin=PIPE, stdout=PIPE, cwd=rundir)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            time.sleep(_PAUSE)
        else:
            return process, connection
    process.kill()
    process.communicate()
    raise cls.timeout_error(timeout)


def setup_formulas() -> None:
    """Replace the package's way to start its renderer."""
    katex.STARTUP_TIMEOUT = _TIMEOUT
    katex.KaTeXServer.start_server_process = classmethod(start_renderer)
