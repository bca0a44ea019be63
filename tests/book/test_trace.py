"""Every statement of the sources has its place in the book: book/trace.toml, resolved."""

import re
import tomllib
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest
from docutils.nodes import make_id

from ffn.published import published
from tests.helpers import ROOT

TRACE = ROOT / "book" / "trace.toml"
HTML = ROOT / "_build" / "html"

# What the three documents contain: 33 statements of the mechanism page, 17 of "expand, activate, project back",
# 21 of the worked examples, and seven that the lessons teach with a condition.
COUNTS = {"m": 33, "e": 17, "w": 21}
CARE = 7

# Pages that no statement has to lead to, with the reason.
UNTRACED = {
    "book/index": "start page",
    "book/how-to": "about the course, not about its subject",
    "book/run-in-the-browser": "about the course, not about its subject",
    "book/notation": "lists symbols",
    "book/exercises": "lists the units",
    "book/references": "bibliography",
    "book/self-test/": "repeats what the lessons treat",
    "book/handbook/": "about grading a class, not about the course's subject",
    "book/explorers/": "figures to play with, for what the lessons treat",
}


def trace() -> dict[str, dict[str, list[str]]]:
    """Addresses of every statement and care item, under `statements` and `care`."""
    tables = tomllib.loads(TRACE.read_text(encoding="utf-8"))
    return {table: {key: row["pages"] for key, row in tables[table].items()} for table in ("statements", "care")}


def addresses() -> list[tuple[str, str]]:
    """(id, address) of every entry of the trace."""
    return [(ident, address) for rows in trace().values() for ident, pages in rows.items() for address in pages]


@cache
def anchors_in_source(page: str) -> frozenset[str]:
    """Labels of a page and the ids that docutils gives to its headings; code cells are left out."""
    found: set[str] = set()
    fence = ""
    for line in (ROOT / f"{page}.md").read_text(encoding="utf-8").splitlines():
        opening = re.match(r"(`{3,}|~{3,})", line)
        if opening and not fence:
            fence = opening[1]
        elif fence and line.rstrip() == fence:
            fence = ""
        elif not fence and (label := re.fullmatch(r"\((.+)\)=\s*", line)):
            found.add(make_id(label[1]))
        elif not fence and (heading := re.match(r"#{1,6} +(.+?)\s*$", line)):
            found.add(make_id(heading[1]))
    return frozenset(found)


class _Ids(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.update(value for name, value in attrs if name == "id" and value)


@cache
def anchors_in_html(page: Path) -> frozenset[str]:
    parser = _Ids()
    parser.feed(page.read_text(encoding="utf-8"))
    return frozenset(parser.found)


def pages_of_the_book() -> list[str]:
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    return re.findall(r"^\s*(?:root|- file): *(\S+)", toc, flags=re.MULTILINE)


def is_exempt(page: str) -> bool:
    return any(page == name or (name.endswith("/") and page.startswith(name)) for name in UNTRACED)


def test_no_statement_is_missing() -> None:
    wanted = {f"{letter}{n:02d}" for letter, count in COUNTS.items() for n in range(1, count + 1)}
    assert trace()["statements"].keys() == wanted
    assert sum(COUNTS.values()) == 71


def test_care_items_are_those_of_the_ledger() -> None:
    ledger = tomllib.loads((ROOT / "ffn" / "published.toml").read_text(encoding="utf-8"))
    assert trace()["care"].keys() == ledger["care"].keys()
    assert len(ledger["care"]) == CARE


def test_every_statement_has_a_text_of_its_own() -> None:
    rows = tomllib.loads(TRACE.read_text(encoding="utf-8"))["statements"].values()
    texts = [row.get("text", "") for row in rows]
    assert all(text.strip() for text in texts)
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("table", ["statements", "care"])
def test_every_entry_names_at_least_one_lesson_page(table: str) -> None:
    for ident, pages in trace()[table].items():
        assert pages, f"{ident} has no page"
        assert len(set(pages)) == len(pages), f"{ident} names a place twice"
        lessons = [p for p in pages if not p.startswith("book/self-test/")]
        assert lessons, f"{ident} is only in the self-test; name the lesson that treats it"


def test_every_address_resolves_in_the_source() -> None:
    lost = []
    for ident, address in addresses():
        page, hash_sign, anchor = address.partition("#")
        assert hash_sign, f"{ident}: {address} has no anchor"
        if not (ROOT / f"{page}.md").is_file() or anchor not in anchors_in_source(page):
            lost.append(f"{ident}: {address}")
    assert not lost, "book/trace.toml names places that do not exist:\n" + "\n".join(lost)


def test_every_address_is_on_a_page_of_the_book() -> None:
    listed = set(pages_of_the_book())
    if not any(page.startswith("book/self-test/") for page in listed):
        pytest.skip("the part Self-test and reference is not in _toc.yml yet")
    stray = [f"{ident}: {address}" for ident, address in addresses() if address.partition("#")[0] not in listed]
    assert not stray, "book/trace.toml names pages that are not in _toc.yml:\n" + "\n".join(stray)


def test_every_address_resolves_in_the_built_book() -> None:
    if not (HTML / "index.html").exists():
        pytest.skip("the book is not built (make book)")
    lost, listed = [], set(pages_of_the_book())
    for ident, address in addresses():
        page, _, anchor = address.partition("#")
        built = HTML / f"{page}.html"
        if page in listed and (not built.exists() or anchor not in anchors_in_html(built)):
            lost.append(f"{ident}: {address}")
    assert not lost, "the built book lacks these places; if it is old, build it again:\n" + "\n".join(lost)


def test_every_lesson_is_reached_from_a_statement() -> None:
    reached = {address.partition("#")[0] for _, address in addresses()}
    silent = [page for page in pages_of_the_book() if page not in reached and not is_exempt(page)]
    assert not silent, f"no statement leads to {', '.join(silent)}; add it to book/trace.toml, or to UNTRACED"


def test_the_built_list_of_statements_is_the_trace() -> None:
    built = HTML / "book" / "self-test" / "from-the-sources.html"
    if not built.exists():
        pytest.skip("the page is not built (make book)")
    shown = built.read_text(encoding="utf-8")
    for ident, address in addresses():
        page, _, anchor = address.partition("#")
        assert f'href="../{page.removeprefix("book/")}.html#{anchor}"' in shown, ident


def test_the_erratum_and_the_garbled_values_stand_on_the_errata_page() -> None:
    source = (ROOT / "book" / "self-test" / "errata.md").read_text(encoding="utf-8")
    for entry in published().values():
        if entry.status in ("erratum", "garbled"):
            assert f'check("{entry.ident}"' in source, entry.ident
