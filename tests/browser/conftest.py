"""A real Chromium that reaches this machine only, and servers of the course for it."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, sync_playwright

from tests.helpers import CourseCopy, free_port

HERE = Path(__file__).parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    # Other hosts do not resolve: a request to one is aborted, and recorded by the page that made it.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder drives a browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


# Playwright's loop runs in this thread for as long as it is open: closed after each module, it is in nobody's way.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium: the one of the machine, or Playwright's own."""
    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
        own = playwright.chromium.executable_path
        found = next(filter(None, map(shutil.which, names)), own if Path(own).exists() else None)
        if found is None:
            pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
        launched = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield launched
        launched.close()


@dataclass
class Seen:
    """What went wrong on the pages of a browser's context."""

    elsewhere: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def watch(self, context: BrowserContext) -> None:
        context.on("request", lambda request: self._request(request.url))
        context.on("response", lambda answer: self._answer(answer.status, answer.url))
        context.on("console", lambda message: self._said(message))
        context.on("weberror", lambda error: self.errors.append(str(error.error)))

    def _request(self, url: str) -> None:
        address = urlsplit(url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in ("127.0.0.1", "localhost"):
            self.elsewhere.append(url)

    def _answer(self, status: int, url: str) -> None:
        if status >= 400:
            self.refused.append(f"{status} {url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text} ({message.location['url']})")


@dataclass(frozen=True)
class Server:
    """A Jupyter server: its address, and the token that opens it."""

    address: str
    token: str
    said: str


@contextmanager
def running(course: CourseCopy, *arguments: str) -> Iterator[Server]:
    """Run tools.lab in a copy of the course until the block is left; Ctrl-C ends it."""
    command = [sys.executable, "-m", "tools.lab", "--no-browser", "--port", str(free_port()), *arguments]
    with subprocess.Popen(
        command,
        cwd=course.root,
        env=course.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"(http://127\.0\.0\.1:\d+)\S*[?&]token=(\w+)", line):
                yield Server(address=found[1], token=found[2], said="".join(said))
                break
        else:
            pytest.fail("the server did not start:\n" + "".join(said))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
