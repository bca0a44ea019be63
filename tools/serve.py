"""Serve the built book on this machine.

python -m tools.serve --port 8000
"""

import argparse
import functools
import http.server
import sys

from tools.places import HTML
from tools.ports import PortInUseError, port_number, require_free


class Handler(http.server.SimpleHTTPRequestHandler):
    """Files of the book; modules get the type that browsers insist on, and only faults are logged."""

    extensions_map = {  # noqa: RUF012 - the base class's interface
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

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
