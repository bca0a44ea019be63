"""A lesson whose code runs in the page, and the reader who drives it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from tests.browser.conftest import Seen
from tests.browser.lite import HTML, require_live, serving
from tests.helpers import ROOT
from tools.contents import pages

LESSON = "book/worked-cells/cell-a"
SLICED = "book/in-practice/real-blocks"
# Generous: the machine that runs the tests may have other things to do.
PATIENCE = 240_000


def lessons_with_code() -> list[str]:
    """Pages that show code, told from their sources."""
    cell = re.compile(r"^```\{code-cell\}.*\n(?P<options>(?::.*\n)*)", re.MULTILINE)
    hidden = ("remove-cell", "remove-input")
    return [
        page
        for page in pages()
        if any(
            not any(tag in found["options"] for tag in hidden)
            for found in cell.finditer((ROOT / f"{page}.md").read_text(encoding="utf-8"))
        )
    ]


@pytest.fixture(scope="module", autouse=True)
def patience() -> Iterator[None]:
    """What is expected may take its time."""
    expect.set_options(timeout=PATIENCE)
    yield
    expect.set_options(timeout=5_000)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The built book as `make serve` serves it, which allows shared memory."""
    require_live()
    with serving(HTML) as served:
        yield served


@dataclass
class Live:
    """A lesson in a browser tab."""

    page: Page

    def begin(self) -> "Live":
        """Press the button, and wait until Python is there."""
        self.page.locator("#live-run").click()
        return self.wait("ready")

    def wait(self, *states: str) -> "Live":
        wanted = re.compile("|".join(states))
        expect(self.status).to_have_attribute("data-state", wanted)
        return self

    @property
    def status(self) -> Locator:
        return self.page.locator("#live-status")

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=name, exact=True).click()

    def editor(self, number: int) -> Locator:
        # The code of a cell that draws is folded away, and then it is hidden.
        name = f"Code of cell {number}"
        return self.page.get_by_role("textbox", name=name, exact=True, include_hidden=True)

    def cell(self, number: int) -> Locator:
        return self.page.locator("div.cell", has=self.editor(number))

    def type(self, number: int, code: str) -> None:
        """Put code in the place of a cell's."""
        self.editor(number).click()
        self.page.keyboard.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(code)

    def run(self, number: int, code: str, *states: str) -> str:
        """Type code into a cell, run it and wait; gives the text that it shows."""
        self.type(number, code)
        self.page.keyboard.press("ControlOrMeta+Enter")
        expect(self.cell(number)).not_to_have_attribute(
            "data-live", re.compile("running|waiting"), timeout=PATIENCE
        )
        self.wait(*(states or ("ready",)))
        return self.output(number)

    def output(self, number: int) -> str:
        shown = self.cell(number).locator(".cell_output")
        return shown.inner_text().strip() if shown.count() else ""


@dataclass
class Reader:
    """Opens lessons in one profile, and takes down what goes wrong."""

    context: BrowserContext
    address: str
    seen: Seen = field(default_factory=Seen)
    requests: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen.watch(self.context)
        self.context.on("request", lambda request: self.requests.append(request.url))

    def open(self, lesson: str = LESSON) -> Live:
        page = self.context.new_page()
        self.go(page, lesson)
        return Live(page)

    def go(self, page: Page, lesson: str) -> None:
        page.goto(f"{self.address}/{lesson}.html", wait_until="load")
        page.wait_for_selector("html[data-course=ready]", state="attached")
