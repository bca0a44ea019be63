"""Serve the built book on this machine.

python -m tools.serve --port 8000
"""

import argparse
import functools
import gzip
import http.server
import io
import sys
from pathlib import Path
from typing import BinaryIO

from tools.places import HTML
from tools.ports import PortInUseError, port_number, require_free

_TEXT = frozenset(
    {".css", ".csv", ".html", ".ipynb", ".js", ".json", ".md", ".mjs", ".svg", ".txt", ".wasm", ".xml"}
)


@functools.lru_cache(maxsize=512)
def _packed(path: str, changed: int) -> bytes:
    """A file's bytes compressed with gzip, once for each version of it."""
    return gzip.compress(Path(path).read_bytes(), mtime=0)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the book, text compressed; modules get the type that browsers insist on, only faults are logged."""

    extensions_map = {  # noqa: RUF012 - the base class's interface
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """As the base class does it, but text goes out compressed where the browser takes it so.

        What the base class decides without sending a body (not modified, not found, a folder) stays its own.
        """
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if self.path.partition("?")[0].endswith("/") else path
        packs = path.suffix in _TEXT and "gzip" in self.headers.get("Accept-Encoding", "")
        if not packs or not path.is_file():
            return super().send_head()
        if "If-Modified-Since" in self.headers and "If-None-Match" not in self.headers:
            return super().send_head()
        status = path.stat()
        body = _packed(str(path), status.st_mtime_ns)
        self.send_response(http.HTTPStatus.OK)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Last-Modified", self.date_time_string(int(status.st_mtime)))
        self.end_headers()
        return io.BytesIO(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing about requests that went well."""
        if str(code) >= "400":
            super().log_request(code, size)


def main() -> int:
    """Serve until interrupted; exit status 1 where the book is not built or the port is taken."""
    parser = argparse.ArgumentParser(prog="make serve", description="Serve the built book on this machine.")
    parser.add_argument("--port", type=port_number, default=8000)
    port = parser.parse_args().port
    if not (HTML / "index.html").exists():
        sys.stderr.write("error: the book is not built yet; run `make book` first.\n")
        return 1
    try:
        require_free(port, "make serve")
    except PortInUseError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", port), functools.partial(Handler, directory=HTML)
    ) as server:
        sys.stderr.write(f"The book is at http://127.0.0.1:{port}/ (Ctrl-C stops the server).\n")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            sys.stderr.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
