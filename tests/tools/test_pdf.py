"""The book as one PDF: pages joined in order, ids unique, links kept inside, answers unfolded, printed by Chromium."""

import re
import shutil
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tools import pdf
from tools.pdf import PdfError, join, print_book

FIRST = """<html><head><title>First</title><link rel="stylesheet" href="../_static/style.css"></head><body>
<nav>outside</nav><article class="bd-article"><h1 id="start">First page#</h1>
<p><a href="second.html#there">there</a> <a href="#start">here</a> <a href="https://example.org/">outside</a></p>
<details class="ffn-answer"><summary>Answer</summary>Forty-two.</details>
<details class="toggle-hide"><summary>Code</summary>print(1)</details></article></body></html>"""
SECOND = """<html><head></head><body><article class="bd-article"><h1 id="start">Second page#</h1>
<p id="there">Text.</p><a href="first.html">back</a></article></body></html>"""


@pytest.fixture
def small_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    html = tmp_path / "html"
    (html / "book").mkdir(parents=True)
    (html / "book" / "first.html").write_text(FIRST)
    (html / "book" / "second.html").write_text(SECOND)
    monkeypatch.setattr(pdf, "HTML", html)
    monkeypatch.setattr(pdf, "JOINED", html / "whole-book.html")
    monkeypatch.setattr(pdf, "PDF", tmp_path / "book.pdf")
    monkeypatch.setattr(pdf, "contents", lambda: [("", ["book/first"]), ("Part", ["book/second"])])
    return html


def joined() -> BeautifulSoup:
    return BeautifulSoup(join(), "html.parser")


def test_pages_stand_in_the_order_of_the_contents(small_book: Path) -> None:
    assert [h.get_text() for h in joined().select("section h1")] == ["First page#", "Second page#"]
    assert [a.get_text() for a in joined().select("nav.book-contents a")] == ["First page", "Second page"]


def test_only_the_articles_are_printed(small_book: Path) -> None:
    assert "outside" not in [nav.get_text() for nav in joined().select("body > nav")]


def test_every_id_occurs_once_and_every_link_inside_the_book_leads_to_one(small_book: Path) -> None:
    soup = joined()
    ids = [element["id"] for element in soup.select("[id]")]
    assert len(ids) == len(set(ids))
    inside = [str(a["href"]) for a in soup.select("a") if str(a["href"]).startswith("#")]
    assert len(inside) == 5
    assert {link.removeprefix("#") for link in inside} <= set(ids)


def test_a_link_to_another_host_stays(small_book: Path) -> None:
    assert joined().select_one('a[href="https://example.org/"]') is not None


def test_answers_are_unfolded_and_hidden_code_is_not(small_book: Path) -> None:
    answer, code = joined().select("details")
    assert answer.has_attr("open")
    assert not code.has_attr("open")


def test_a_book_that_is_not_built_is_named(small_book: Path) -> None:
    (small_book / "book" / "second.html").unlink()
    with pytest.raises(PdfError, match=r"book/second is missing\); run `make book` first"):
        join()


@pytest.mark.browser
def test_chromium_prints_the_pages_and_nothing_else_is_left(small_book: Path) -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    print_book(chromium)
    printed = pdf.PDF.read_bytes()
    assert printed.startswith(b"%PDF")
    # The contents, and a page for each of the two.
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 3
    assert sorted(path.name for path in small_book.iterdir()) == ["book"]
