"""Print the whole book into one PDF: every page in the order of the contents, answers unfolded, links inside it.

    python -m tools.pdf

The built pages are joined into one document, which Chromium prints.
"""

import shutil
import sys
import threading
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import Any

from bs4 import BeautifulSoup
from bs4.element import Tag

from tools.contents import contents
from tools.places import BUILD, HTML, ROOT
from tools.serve import Handler

PDF = BUILD / "feed-forward-sublayer.pdf"
_NO_ICON = '<link rel="icon" href="data:,">'
JOINED = HTML / "whole-book.html"

_STYLE = """
html, body { background: #fff; }
main { max-width: none; margin: 0; padding: 0; }
section.part-page { break-before: page; }
nav.book-contents { columns: 2; }
nav.book-contents h2 { font-size: 1.1rem; margin: 0.8rem 0 0.2rem; }
nav.book-contents li { margin: 0.1rem 0; }
.headerlink, .copybtn, .prev-next-area, button { display: none !important; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
div.cell, .ffn-figure, .ffn-table, .ffn-asked, .admonition { break-inside: avoid; }
h1, h2, h3 { break-after: avoid; }
@page { margin: 18mm 16mm 20mm; }
"""


class PdfError(Exception):
    """The PDF was not made; the message says what is missing."""


def _anchor(page: str, fragment: str = "") -> str:
    return f"{page.replace('/', '-')}--{fragment}" if fragment else page.replace("/", "-")


def _target(page: str, link: str, pages: set[str]) -> str | None:
    """Where a link of a page leads inside the joined document, or None for a place outside of it."""
    path, _, fragment = link.partition("#")
    if "://" in path or path.startswith("mailto:"):
        return None
    parts: list[str] = list(PurePosixPath(page).parent.parts)
    for piece in PurePosixPath(path).parts:
        if piece == "..":
            parts = parts[:-1]
        else:
            parts.append(piece)
    name = "/".join(parts).removesuffix(".html") if path else page
    return f"#{_anchor(name, fragment)}" if name in pages else None


def _article(page: str, pages: set[str]) -> tuple[str, Tag]:
    """A built page's title and article, its ids made unique and its links made internal."""
    soup = BeautifulSoup((HTML / f"{page}.html").read_text(encoding="utf-8"), "html.parser")
    article = soup.select_one("article.bd-article")
    if article is None:
        raise PdfError(f"_build/html/{page}.html has no article; run `make book` again.")
    heading = article.find("h1")
    title = heading.get_text().removesuffix("#") if heading else page
    for element in article.find_all(True):
        _rename(element, page, pages)
    for details in article.find_all("details"):
        if "hide" not in " ".join(details.get("class") or []):
            details["open"] = ""
    article["id"] = _anchor(page)
    return title, article


def _rename(element: Tag, page: str, pages: set[str]) -> None:
    """Give one element an id, and links, that hold in the joined document."""
    for name in ("id", "aria-labelledby", "clip-path", "xlink:href", "href"):
        value: Any = element.get(name)
        if not isinstance(value, str):
            continue
        if name in ("id", "aria-labelledby"):
            element[name] = _anchor(page, value)
        elif value.startswith("url(#"):
            element[name] = f"url(#{_anchor(page, value[5:-1])})"
        elif name == "xlink:href" or (name == "href" and element.name == "use"):
            element[name] = f"#{_anchor(page, value.removeprefix('#'))}"
        elif element.name == "a":
            inside = _target(page, value, pages)
            if inside is not None:
                element[name] = inside


def join() -> str:
    """One HTML document of the whole book, with a table of contents.

    Raises:
        PdfError: a page of the contents has not been built.
    """
    parts = contents()
    pages = {page for _, chapters in parts for page in chapters}
    missing = sorted(page for page in pages if not (HTML / f"{page}.html").exists())
    if missing:
        raise PdfError(f"the book is not built ({missing[0]} is missing); run `make book` first.")
    head = BeautifulSoup((HTML / f"{parts[0][1][0]}.html").read_text(encoding="utf-8"), "html.parser").head
    styles = head.select('link[rel="stylesheet"]') if head else []
    sheets = "".join(f'<link rel="stylesheet" href="{str(s["href"]).removeprefix("../")}">' for s in styles)
    listing, body = [], []
    for caption, chapters in parts:
        listing.append(f"<h2>{caption}</h2>" if caption else "")
        entries = []
        for page in chapters:
            title, article = _article(page, pages)
            entries.append(f'<li><a href="#{_anchor(page)}">{title}</a></li>')
            body.append(f'<section class="part-page">{article}</section>')
        listing.append(f"<ol>{''.join(entries)}</ol>")
    return (
        '<!DOCTYPE html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        f"<title>The feed-forward sublayer</title>{sheets}{_NO_ICON}<style>{_STYLE}</style></head><body>"
        f'<main class="bd-content"><h1>The feed-forward sublayer</h1>'
        f'<nav class="book-contents">{"".join(listing)}</nav>{"".join(body)}</main></body></html>'
    )


def print_book(chromium: str) -> None:
    """Join the pages and print them; the PDF is written whole or not at all."""
    from playwright.sync_api import sync_playwright

    JOINED.write_text(join(), encoding="utf-8")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=HTML))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    draft = PDF.with_suffix(".pdf.new")
    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    number = '<div style="font-size:8px;width:100%;text-align:center"><span class="pageNumber"></span></div>'
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=flags)
            page = browser.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/{JOINED.name}", wait_until="load")
            page.pdf(
                path=draft,
                format="A4",
                scale=0.8,
                print_background=True,
                outline=True,
                tagged=True,
                display_header_footer=True,
                header_template="<span></span>",
                footer_template=number,
                prefer_css_page_size=False,
            )
            browser.close()
        draft.replace(PDF)
    finally:
        server.shutdown()
        server.server_close()
        JOINED.unlink(missing_ok=True)


def main() -> int:
    """Make the PDF; exit status 1 with one sentence where that is not possible."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        sys.stderr.write("error: Chromium is not installed; install it (on Debian: apt-get install chromium).\n")
        return 1
    try:
        print_book(chromium)
    except PdfError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stderr.write(f"The book is in {PDF.relative_to(ROOT)} ({PDF.stat().st_size / 1e6:.1f} MB).\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
