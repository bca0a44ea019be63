"""A PostgreSQL server of the tests' own: Debian's programs, its data and its socket in a folder that goes with it."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

USER = "postgres"
ABSENT = "PostgreSQL's server is not installed (on Debian: apt-get install postgresql)"


def programs() -> Path | None:
    """The folder of the newest server's programs; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parents[1].name))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).resolve().parent if on_path else None


@dataclass
class Server:
    """A server that listens at a socket in its folder only."""

    folder: Path
    bin: Path

    def url(self, database: str = "postgres", user: str = USER) -> str:
        return f"postgresql+psycopg://{user}:a-secret@/{database}?host={self.folder}"

    def make(self, database: str) -> str:
        """A new, empty database; its URL."""
        self._run("createdb", "-h", str(self.folder), "-U", USER, database)
        return self.url(database)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c fsync=off -c max_connections=20"
        log = str(self.folder / "log")
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-o", options, "-l", log, "-w", "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self.bin / program), *arguments]
        if os.geteuid() == 0:
            # The server refuses to run as root.
            command = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--", *command]
        # What the server inherits it keeps open, so nothing may wait for the end of a pipe.
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", timeout=60, check=False
            )
            said.seek(0)
            assert done.returncode == 0, (command, said.read().decode("utf-8", "replace"))


@contextmanager
def server() -> Iterator[Server]:
    """A running server, ended and taken away with all its data."""
    found = programs()
    assert found is not None, ABSENT
    # Not below pytest's folder, which is closed to the server's user, and too long a path for a socket.
    folder = Path(tempfile.mkdtemp(prefix="ffn-pg-"))
    made = Server(folder, found)
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
            folder.chmod(0o755)
        made._run("initdb", "-D", str(folder / "data"), "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8")
        made.start()
        yield made
    finally:
        if (folder / "data" / "postmaster.pid").exists():
            made.stop()
        for _ in range(20):
            shutil.rmtree(folder, ignore_errors=True)
            if not folder.exists():
                break
            time.sleep(0.1)
