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
from tools.ports import free_port_from, port_number

_PACKED = frozenset(
    {".css", ".csv", ".html", ".ipynb", ".js", ".json", ".md", ".mjs", ".svg", ".txt", ".wasm", ".xml"}
)
_TYPES = {
    ".ipynb": "application/x-ipynb+json",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".wasm": "application/wasm",
    ".whl": "application/octet-stream",
}
# With these two, a page may share memory with its worker, which lets a reader interrupt a running cell.
_ISOLATED = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp"}


@functools.lru_cache(maxsize=512)
def _packed(path: str, changed: int) -> bytes:
    """A file's bytes compressed with gzip, once for each version of it."""
    return gzip.compress(Path(path).read_bytes(), mtime=0)


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the book, compressed where it helps; each gets the type that browsers insist on.

    Only faults are logged.
    """

    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, **_TYPES}  # noqa: RUF012 - its interface

    def send_head(self) -> io.BytesIO | BinaryIO | None:
        """As the base class does it, but what compresses well goes out compressed where the browser takes it so.

        What the base class decides without sending a body (not modified, not found, a folder) stays its own.
        """
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if self.path.partition("?")[0].endswith("/") else path
        packs = path.suffix in _PACKED and "gzip" in self.headers.get("Accept-Encoding", "")
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

    def end_headers(self) -> None:
        """Isolate every page from windows of other sites."""
        for name, value in _ISOLATED.items():
            self.send_header(name, value)
        super().end_headers()

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Say nothing about requests that went well."""
        if str(code) >= "400":
            super().log_request(code, size)


def main() -> int:
    """Serve until interrupted; exit status 1 where the book is not built or no port is free."""
    parser = argparse.ArgumentParser(prog="make serve", description="Serve the built book on this machine.")
    parser.add_argument("--port", type=port_number, default=8000)
    wanted = parser.parse_args().port
    if not (HTML / "index.html").exists():
        sys.stderr.write("error: the book is not built yet; run `make book` first.\n")
        return 1
    port = free_port_from(wanted)
    if port is None:
        sys.stderr.write(f"error: no port from {wanted} on is free; run `make serve PORT=...` with another one.\n")
        return 1
    if port != wanted:
        sys.stderr.write(f"Port {wanted} is in use on this machine, so the book takes port {port}.\n")
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
