"""Every link of the built pages leads somewhere: to a file that is there, and to an anchor that the page has."""

import os
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.helpers import ROOT
from tools.contents import pages

HTML = ROOT / "_build" / "html"


class _Page(HTMLParser):
    """The ids of a page, and the addresses that it names."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value for name, value in attrs if value is not None}
        self.ids.update(values[name] for name in ("id", "name") if name in values)
        self.links += [values[name] for name in ("href", "src", "xlink:href") if name in values]


@cache
def parsed(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def lost(path: Path) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for link in parsed(path).links:
        address = urlsplit(link)
        if address.scheme or address.netloc:
            continue
        target = (path.parent / unquote(address.path)).resolve() if address.path else path
        target = target / "index.html" if target.is_dir() else target
        anchor = unquote(address.fragment)
        if not target.is_file():
            yield f"{link}: no such file"
        elif anchor and target.suffix == ".html" and anchor not in parsed(target).ids:
            yield f"{link}: no such anchor"


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    if not (HTML / "index.html").exists():
        message = "the book is not built (make book)"
        pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


@pytest.mark.parametrize("page", pages())
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    assert list(lost(HTML / f"{page}.html")) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text('<p id="here">')
    page = tmp_path / "page.html"
    page.write_text(
        '<a href="other.html#here"></a><a href="other.html#gone"></a><a href="gone.html"></a><a href="#own"></a>'
        '<a href="https://example.org/x"></a><img src="gone.svg">'
    )
    assert list(lost(page)) == [
        "other.html#gone: no such anchor",
        "gone.html: no such file",
        "#own: no such anchor",
        "gone.svg: no such file",
    ]
