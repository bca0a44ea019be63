"""The server of the built book: text goes out compressed, everything with the type that browsers insist on."""

import functools
import gzip
import http.client
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.serve import Handler

PAGE = "<h1>Page</h1>" + "word " * 500


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "part").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "part" / "code.mjs").write_text("export const x = 1;\n" * 50)
    (tmp_path / "python.wasm").write_bytes(b"\0asm" + bytes(5000))
    (tmp_path / "numpy-2.0.2-py3-none-any.whl").write_bytes(b"PK" + bytes(5000))
    (tmp_path / "exercise.ipynb").write_text("{}" + " " * 500)
    (tmp_path / "lock.json").write_text("{}" + " " * 500)
    (tmp_path / "picture.png").write_bytes(b"\x89PNG" + bytes(500))
    return tmp_path


@pytest.fixture
def port(folder: Path) -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def get(port: int, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request("GET", path, headers=sent)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


@pytest.mark.parametrize("path", ["/", "/index.html", "/index.html?digest=1"])
def test_a_page_goes_out_compressed_where_the_browser_takes_it(port: int, path: str) -> None:
    answer, body = get(port, path, Accept_Encoding="gzip, deflate, br")
    assert answer.status == 200
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Content-Type"] == "text/html"
    assert gzip.decompress(body).decode() == PAGE
    assert len(body) < len(PAGE) / 5


def test_a_page_goes_out_as_it_is_where_the_browser_does_not_ask(port: int) -> None:
    answer, body = get(port, "/index.html")
    assert "Content-Encoding" not in answer.headers
    assert body.decode() == PAGE


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/part/code.mjs", "text/javascript"),
        ("/python.wasm", "application/wasm"),
        ("/numpy-2.0.2-py3-none-any.whl", "application/octet-stream"),
        ("/exercise.ipynb", "application/x-ipynb+json"),
        ("/lock.json", "application/json"),
    ],
)
def test_each_file_has_the_type_that_browsers_insist_on(port: int, path: str, kind: str) -> None:
    answer, _ = get(port, path, Accept_Encoding="gzip")
    assert answer.headers["Content-Type"] == kind


def test_compiled_python_goes_out_compressed(port: int, folder: Path) -> None:
    answer, body = get(port, "/python.wasm", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == (folder / "python.wasm").read_bytes()


def test_a_wheel_is_not_compressed_again(port: int, folder: Path) -> None:
    answer, body = get(port, "/numpy-2.0.2-py3-none-any.whl", Accept_Encoding="gzip")
    assert "Content-Encoding" not in answer.headers
    assert body == (folder / "numpy-2.0.2-py3-none-any.whl").read_bytes()


@pytest.mark.parametrize("path", ["/", "/python.wasm", "/picture.png", "/missing.html"])
def test_every_answer_isolates_the_page_so_that_its_worker_can_share_memory(port: int, path: str) -> None:
    answer, _ = get(port, path, Accept_Encoding="gzip")
    assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert answer.headers["Cross-Origin-Embedder-Policy"] == "require-corp"


def test_a_picture_is_not_compressed_again(port: int, folder: Path) -> None:
    answer, body = get(port, "/picture.png", Accept_Encoding="gzip")
    assert "Content-Encoding" not in answer.headers
    assert body == (folder / "picture.png").read_bytes()


def test_a_page_that_has_not_changed_is_not_sent_again(port: int) -> None:
    answer, _ = get(port, "/index.html", Accept_Encoding="gzip")
    again, body = get(
        port, "/index.html", Accept_Encoding="gzip", If_Modified_Since=answer.headers["Last-Modified"]
    )
    assert (again.status, body) == (304, b"")


def test_a_page_that_was_built_anew_is_sent_as_it_is_now(port: int, folder: Path) -> None:
    get(port, "/index.html", Accept_Encoding="gzip")
    (folder / "index.html").write_text("new")
    _, body = get(port, "/index.html", Accept_Encoding="gzip")
    assert gzip.decompress(body) == b"new"


@pytest.mark.parametrize("path", ["/missing.html", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd"])
def test_what_is_not_below_the_folder_is_not_found(
    port: int, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer, _ = get(port, path, Accept_Encoding="gzip")
    assert answer.status == 404
