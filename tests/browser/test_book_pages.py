"""Every page of the built book, in a narrow window, light and dark: nothing from elsewhere, no error, readable."""

import functools
import http.server
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.conftest import Seen
from tests.browser.front import axe_violations
from tests.browser.lite import serving
from tests.helpers import ROOT
from tools.contents import pages
from tools.serve import Handler

HTML = ROOT / "_build" / "html"
THEMES = ["light", "dark"]
NARROW = {"width": 390, "height": 844}

# What a page is like once it is loaded; the lists name the offenders.
LOOK = """() => {
  const hidden = element => element.closest('[aria-hidden="true"], [hidden], [role="presentation"]') !== null;
  const labels = ['alt', 'aria-label', 'aria-labelledby'];
  const named = element => labels.some(label => (element.getAttribute(label) || '').trim())
    || (element.querySelector(':scope > title')?.textContent || '').trim();
  const outer = element => element.outerHTML.slice(0, 200);
  const nested = element => element.parentElement.closest('svg') !== null;
  window.scrollTo(500, 0);
  return {
    theme: document.documentElement.dataset.theme,
    title: document.title,
    headings: [...document.querySelectorAll("h1")].filter(h => h.checkVisibility()).map(h => h.textContent.trim()),
    unnamed: [...document.querySelectorAll('img, svg, [role="img"]')]
      .filter(e => !hidden(e) && !nested(e) && !named(e)).map(outer),
    sideways: window.scrollX,
    language: document.documentElement.lang,
  };
}"""


@dataclass(frozen=True)
class Visit:
    """What was found on a page."""

    look: dict[str, Any]
    violations: list[str]
    seen: Seen


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The built book, served on this machine."""
    if not (HTML / "index.html").exists():
        message = "the book is not built (make book)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)
    with serving(HTML) as served:
        yield served


@pytest.fixture(scope="module")
def contexts(browser: Browser) -> Iterator[dict[str, tuple[BrowserContext, Page]]]:
    """For each theme a context with one page, used for every visit."""
    opened = {theme: browser.new_context(viewport=NARROW, color_scheme=theme) for theme in THEMES}
    yield {theme: (context, context.new_page()) for theme, context in opened.items()}
    for context in opened.values():
        context.close()


@pytest.fixture(scope="module")
def visit(address: str, contexts: dict[str, tuple[BrowserContext, Page]]) -> Callable[[str, str], Visit]:
    """Visit a page in a theme; each is visited once, and what was seen is kept."""
    watched = {theme: Seen() for theme in THEMES}
    for theme, (context, _) in contexts.items():
        watched[theme].watch(context)

    @functools.cache
    def visited(name: str, theme: str) -> Visit:
        before, page = watched[theme], contexts[theme][1]
        for found in (before.elsewhere, before.refused, before.errors):
            found.clear()
        page.goto(f"{address}/{name}.html", wait_until="load")
        page.wait_for_selector("html[data-course=ready]", state="attached")
        page.wait_for_function("document.fonts.status === 'loaded'")
        look = page.evaluate(LOOK)
        # The dark theme differs in its colours alone.
        violations = axe_violations(page, ("color-contrast", "link-in-text-block") if theme == "dark" else ())
        kept = Seen([*before.elsewhere], [*before.refused], [*before.errors])
        return Visit(look=look, violations=violations, seen=kept)

    return visited


PAGES = pages()
everywhere = pytest.mark.parametrize(("name", "theme"), [(name, theme) for name in PAGES for theme in THEMES])
Visited = Callable[[str, str], Visit]


def test_every_page_of_the_contents_is_built(address: str) -> None:
    assert [name for name in PAGES if not (HTML / f"{name}.html").exists()] == []


@everywhere
def test_a_page_asks_no_other_host(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).seen.elsewhere == []


@everywhere
def test_a_page_gets_everything_that_it_asks_for(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).seen.refused == []


@everywhere
def test_a_page_has_no_error_in_the_console(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).seen.errors == []


@everywhere
def test_a_page_does_not_scroll_sideways_in_a_narrow_window(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).look["sideways"] == 0


@everywhere
def test_a_page_follows_the_theme_of_the_machine(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).look["theme"] == theme


@everywhere
def test_every_image_has_alternative_text(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).look["unnamed"] == []


@everywhere
def test_axe_finds_nothing_to_mend(name: str, theme: str, visit: Visited) -> None:
    assert visit(name, theme).violations == []


@pytest.mark.parametrize("name", PAGES)
def test_a_page_weighs_at_most_400_kb_compressed(name: str, address: str, browser: Browser) -> None:
    """Everything that a first visit transfers: the page, its figures, styles, scripts and fonts."""
    context = browser.new_context(viewport=NARROW)
    page = context.new_page()
    page.goto(f"{address}/{name}.html", wait_until="load")
    page.wait_for_selector("html[data-course=ready]", state="attached")
    page.wait_for_function("document.fonts.status === 'loaded'")
    transferred = page.evaluate(
        "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
        ".map(entry => entry.transferSize)"
    )
    context.close()
    assert len(transferred) > 5
    assert sum(transferred) <= 400_000


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_one_main_heading_which_its_title_names(name: str, visit: Visited) -> None:
    look = visit(name, "light").look
    assert len(look["headings"]) == 1
    assert look["headings"][0].removesuffix("#").strip() in look["title"]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_says_its_language(name: str, visit: Visited) -> None:
    assert visit(name, "light").look["language"] == "en"


class Slow(Handler):
    """Serves pages in two parts: what comes after the head comes late."""

    def send_head(self) -> Any:
        # Uncompressed, so that the first part can be read before the second is there.
        return http.server.SimpleHTTPRequestHandler.send_head(self)

    def copyfile(self, source: Any, outputfile: Any) -> None:
        head, end, rest = source.read().partition(b"</head>")
        outputfile.write(head + end)
        if end:
            outputfile.flush()
            time.sleep(1.5)
        outputfile.write(rest)


def test_scripts_wait_for_a_page_that_comes_slowly(browser: Browser) -> None:
    handler = functools.partial(Slow, directory=HTML)
    context = browser.new_context(viewport=NARROW)
    page = context.new_page()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        page.goto(f"http://127.0.0.1:{server.server_port}/book/worked-cells/cell-a.html", wait_until="load")
        page.wait_for_selector("html[data-course=ready]", state="attached")
        asked, forms = page.locator(".ffn-asked").count(), page.locator(".ffn-asked-form").count()
        context.close()
        server.shutdown()
    assert forms == asked > 0


def test_the_look_at_a_page_finds_what_it_looks_for(contexts: dict[str, tuple[BrowserContext, Page]]) -> None:
    page = contexts["light"][1]
    page.set_content(
        "<h1>One</h1><h1>Two</h1><h1 hidden>Three</h1><img src='data:,'><svg></svg><svg aria-hidden='true'></svg>"
        "<img src='data:,' alt='named'><div style='width: 900px'>wide</div>"
    )
    look = page.evaluate(LOOK)
    assert look["headings"] == ["One", "Two"]
    assert len(look["unnamed"]) == 2
    assert look["sideways"] > 0
