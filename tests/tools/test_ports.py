"""Ports that are taken, and the server of the built book."""

import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers import CourseCopy, copy_of_course, free_port, said_once
from tools import ports


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


@pytest.fixture
def built(tmp_path: Path) -> CourseCopy:
    """A course whose book is one page, already built."""
    copy = copy_of_course(tmp_path / "course", "tools")
    (copy.root / "_build" / "html").mkdir(parents=True)
    (copy.root / "_build" / "html" / "index.html").write_text("<h1>The book</h1>")
    (copy.root / "_build" / "html" / "module.mjs").write_text("export default 1")
    return copy


def test_a_free_port_passes() -> None:
    ports.require_free(free_port(), "make serve")


def test_a_port_in_use_is_named_with_a_command_that_works(taken: int) -> None:
    with pytest.raises(ports.PortInUseError) as caught:
        ports.require_free(taken, "make serve")
    message = str(caught.value)
    assert message.startswith(f"port {taken} is in use on this machine; stop what listens there, or ")
    other = int(message.split("PORT=")[1].split("`")[0])
    ports.require_free(other, "make serve")


def test_a_port_that_listens_on_every_address_is_in_use() -> None:
    with socket.socket() as listener:
        listener.bind(("", 0))
        listener.listen()
        with pytest.raises(ports.PortInUseError, match="is in use"):
            ports.require_free(listener.getsockname()[1], "make lab")


def test_where_no_port_is_free_the_message_asks_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_free", lambda port: False)
    with pytest.raises(ports.PortInUseError, match=r"run `make lab PORT=\.\.\.` with another port\.$"):
        ports.require_free(65_535, "make lab")


def test_the_first_port_that_is_free_is_found(taken: int) -> None:
    found = ports.free_port_from(taken)
    assert found is not None
    assert taken < found < taken + 100


def test_a_free_port_is_kept() -> None:
    port = free_port()
    assert ports.free_port_from(port) == port


def test_where_no_port_is_free_none_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_free", lambda port: False)
    assert ports.free_port_from(8000) is None


def test_a_server_whose_port_is_in_use_says_so_in_one_sentence(built: CourseCopy, taken: int) -> None:
    done = built.module("tools.lab", "--port", str(taken))
    assert done.returncode == 1
    assert said_once(done.stderr).startswith(f"error: port {taken} is in use on this machine;")


@pytest.mark.parametrize("module", ["tools.serve", "tools.lab"])
@pytest.mark.parametrize("port", ["0", "65536", "-1", "80 80", "http"])
def test_what_is_no_port_is_wrong_usage(built: CourseCopy, module: str, port: str) -> None:
    done = built.module(module, f"--port={port}")
    assert done.returncode == 2
    assert "argument --port" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_formgrader_names_its_own_command(built: CourseCopy, taken: int) -> None:
    done = built.module("tools.lab", "--formgrader", "--port", str(taken))
    assert "run `make formgrader PORT=" in done.stderr


def test_serving_a_book_that_is_not_built_says_what_to_run(tmp_path: Path) -> None:
    done = copy_of_course(tmp_path / "course", "tools").module("tools.serve", "--port", str(free_port()))
    assert done.returncode == 1
    assert said_once(done.stderr) == "error: the book is not built yet; run `make book` first."


@contextmanager
def serving(built: CourseCopy, port: int) -> Iterator[list[str]]:
    """What the server of the book says until it gives its address; it runs until the block is left."""
    command = [sys.executable, "-m", "tools.serve", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=built.root, env=built.environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        said = [process.stderr.readline()]
        while " at " not in said[-1] and said[-1]:
            said.append(process.stderr.readline())
        yield said
        process.terminate()


@pytest.fixture
def server(built: CourseCopy) -> Iterator[str]:
    """The address of a server of the book, as it says itself."""
    with serving(built, free_port()) as said:
        yield said[-1].split(" at ")[1].split()[0]


def test_where_the_usual_port_is_taken_the_book_takes_another_and_says_which(
    built: CourseCopy, taken: int
) -> None:
    with serving(built, taken) as (first, last):
        address = last.split(" at ")[1].split()[0]
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        assert port != taken
        assert first == f"Port {taken} is in use on this machine, so the book takes port {port}.\n"
        with urllib.request.urlopen(address) as answer:
            assert answer.read() == b"<h1>The book</h1>"


def test_the_book_is_served_at_the_address_that_is_said(server: str) -> None:
    with urllib.request.urlopen(server) as answer:
        assert answer.read() == b"<h1>The book</h1>"


def test_modules_are_served_with_the_type_that_browsers_insist_on(server: str) -> None:
    with urllib.request.urlopen(f"{server}module.mjs") as answer:
        assert answer.headers["Content-Type"] == "text/javascript"
