"""The lessons' directives, in tiny books of one or two pages: nodes, HTML, keys, and what an author is told."""

import importlib
import io
import json
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from bs4 import BeautifulSoup
from bs4.element import Tag
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from ffn import ledger
from ffn.normal import _FLOAT64
from ffn.published import published_inputs
from tests.helpers import ROOT

EXTENSIONS = ROOT / "book" / "_ext"

FORECAST = """
:::{forecast} Which sign has z?
- [ ] positive

  The largest term is negative.
- [x] negative

  The entries point against each other.

The sum is below zero.
:::
"""
QUESTION = FORECAST.replace("forecast", "question").replace("Which sign", "Which colour")
CARDS = """
:::{flashcards} Recall
- The **first** front

  The first back.
- The second front

  - a list
  - as its back
:::
"""


@dataclass
class Book:
    """A small book that was built, and what the build complained about."""

    folder: Path
    app: Sphinx
    warnings: str

    def html(self, page: str = "index") -> BeautifulSoup:
        return BeautifulSoup((self.folder / "out" / f"{page}.html").read_text(encoding="utf-8"), "html.parser")

    def one(self, selector: str, page: str = "index") -> Tag:
        found = self.html(page).select(selector)
        assert len(found) == 1, (selector, len(found))
        return found[0]

    def doctree(self, page: str = "index") -> nodes.document:
        return self.app.env.get_doctree(page)

    def written(self, name: str) -> str:
        return (self.folder / "out" / "_static" / name).read_text(encoding="utf-8")


Make = Callable[..., Book]


@pytest.fixture
def book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Build pages given by name; a second call in a test builds on the first, as an author does."""
    monkeypatch.setattr(sys, "path", [str(EXTENSIONS), *sys.path])

    def make(index: str, builder: str = "html", **pages: str) -> Book:
        source = tmp_path / "source"
        source.mkdir(exist_ok=True)
        toctree = "".join(f"{name}\n" for name in pages)
        listing = f"\n```{{toctree}}\n:caption: Second part\n{toctree}```\n" if pages else ""
        texts = {"index": f"# Front\n\n{dedent(index)}{listing}"}
        texts |= {name: f"# Page {name}\n\n{dedent(text)}" for name, text in pages.items()}
        for name, text in texts.items():
            path = source / f"{name}.md"
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
        warnings = io.StringIO()
        overrides = {"extensions": ["myst_parser", "lesson"], "myst_enable_extensions": ["colon_fence"]}
        with patch_docutils(), docutils_namespace():
            app = Sphinx(
                str(source),
                None,
                str(tmp_path / "out"),
                str(tmp_path / "doctrees"),
                builder,
                confoverrides={**overrides, "html_theme": "basic"},
                status=None,
                warning=warnings,
            )
            app.build()
        return Book(tmp_path, app, re.sub(r"\x1b\[[0-9;]*m", "", warnings.getvalue()))

    return make


def keys(book: Book, page: str = "index") -> list[str]:
    return [str(section["data-key"]) for section in book.html(page).select(".ffn-asked")]


# Forecasts and questions


def test_a_forecast_has_its_question_its_choices_and_its_answer(book: Make) -> None:
    built = book(FORECAST)
    assert built.warnings == ""
    section = built.one("section.ffn-asked")
    title = built.one(".ffn-asked-title")
    assert title.get_text(strip=True) == "Which sign has z?"
    assert section["aria-labelledby"] == title["id"]
    assert (section["data-kind"], section["data-typed"]) == ("forecast", "false")
    choices = section.select(".ffn-choices > li")
    assert [choice.get_text(strip=True) for choice in choices] == ["positive", "negative"]
    assert [choice["data-right"] for choice in choices] == ["false", "true"]


def test_the_answer_is_folded_and_explains_every_choice(book: Make) -> None:
    answer = book(FORECAST).one("details.ffn-answer")
    assert not answer.has_attr("open")
    assert answer.select_one(".ffn-answer-body > p").get_text() == "The sum is below zero."
    notes = [
        (term["class"][0], term.get_text(), term.find_next("dd").get_text(strip=True)) for term in answer("dt")
    ]
    assert notes == [
        ("ffn-wrong", "positive", "The largest term is negative."),
        ("ffn-right", "negative", "The entries point against each other."),
    ]


def test_the_nodes_of_a_forecast(book: Make) -> None:
    [asked] = [node for node in book(FORECAST).doctree().findall() if type(node).__name__ == "asked"]
    assert [type(child).__name__ for child in asked.children] == ["asked_title", "asked_choices", "asked_answer"]
    assert asked["kind"] == "forecast"
    assert [choice["right"] for choice in asked.children[1].children] == [False, True]


def test_without_choices_the_reader_types(book: Make) -> None:
    built = book(":::{question} How many?\nForty-two.\n:::\n")
    assert built.one(".ffn-asked")["data-typed"] == "true"
    assert built.html().select(".ffn-choices") == []
    assert built.one(".ffn-answer-body").get_text(strip=True) == "Forty-two."


def test_a_name_is_a_target_for_links(book: Make) -> None:
    named = FORECAST.replace("has z?\n", "has z?\n:name: the-sign\n")
    built = book(f"{named}\n\n[back](#the-sign)\n")
    assert built.warnings == ""
    assert built.one(".ffn-asked #the-sign")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (FORECAST.replace("[x]", "[ ]"), "this forecast needs exactly one right choice, marked [x]"),
        (FORECAST.replace("[ ]", "[x]"), "this forecast needs exactly one right choice, marked [x]"),
        (FORECAST.replace("[ ] ", ""), "a choice of this forecast must begin with [x] or [ ]"),
        (FORECAST.replace("[ ] positive", "*positive*"), "a choice of this forecast must begin with [x] or [ ]"),
        (
            FORECAST.replace("\n\n  The largest term is negative.", ""),
            "a choice of this forecast has no explanation; add a paragraph below it",
        ),
        (FORECAST.replace("] positive", "] negative"), "two choices of this forecast are worded alike"),
    ],
    ids=["no right choice", "two right choices", "no mark", "emphasis for a mark", "no explanation", "twins"],
)
def test_an_author_is_told_what_is_wrong_and_where(book: Make, text: str, complaint: str) -> None:
    built = book(text)
    assert complaint in built.warnings
    assert re.search(r"index\.md:\d+: (ERROR|WARNING)", built.warnings)
    assert built.html().select(".ffn-asked") == []


# Keys


def test_a_key_is_the_page_and_a_hash(book: Make) -> None:
    built = book(FORECAST, second=FORECAST)
    [here], [there] = keys(built), keys(built, "second")
    assert re.fullmatch(r"index#[0-9a-f]{8}", here)
    assert re.fullmatch(r"second#[0-9a-f]{8}", there)
    assert here.split("#")[1] == there.split("#")[1]


def test_a_question_in_front_moves_no_key(book: Make) -> None:
    [before] = keys(book(FORECAST))
    after = keys(book(QUESTION + FORECAST))
    assert after[1] == before
    assert after[0] != before


def test_a_line_break_in_the_question_or_another_answer_moves_no_key(book: Make) -> None:
    [before] = keys(book(FORECAST))
    assert keys(book(FORECAST.replace("The sum is below zero.", "It is -1.2."))) == [before]


def test_another_wording_is_another_question(book: Make) -> None:
    assert keys(book(FORECAST)) != keys(book(FORECAST.replace("Which sign", "What sign")))


def test_a_forecast_and_a_question_of_one_wording_have_two_keys(book: Make) -> None:
    built = book(FORECAST + FORECAST.replace("forecast", "question"))
    assert built.warnings == ""
    assert len(set(keys(built))) == 2


def test_a_repeated_question_is_a_warning(book: Make) -> None:
    built = book(FORECAST + FORECAST)
    assert "the forecast “Which sign has z?” stands on this page already" in built.warnings
    assert re.search(r"index\.md:\d+: WARNING", built.warnings)


def test_a_choice_keeps_its_hash_when_it_becomes_the_right_one(book: Make) -> None:
    def hashes(built: Book) -> dict[str, str]:
        return {
            choice.get_text(strip=True): str(choice["data-choice"])
            for choice in built.html().select(".ffn-choice")
        }

    first = hashes(book(FORECAST))
    swapped = FORECAST.replace("[ ]", "[?]").replace("[x]", "[ ]").replace("[?]", "[x]")
    assert hashes(book(swapped)) == first
    assert len(set(first.values())) == 2


# What the pages ask, for the sidebar and the progress page


def test_the_list_of_questions_names_every_page_that_asks(book: Make) -> None:
    built = book(FORECAST, quiet="Nothing asked here.", cards=CARDS, second=QUESTION + FORECAST)
    listed = json.loads(built.written("questions.json"))
    assert {page: len(hashes) for page, hashes in listed.items()} == {"index": 1, "second": 2}
    assert [f"second#{digest}" for digest in listed["second"]] == keys(built, "second")


def test_a_page_that_is_gone_is_no_longer_listed(book: Make, tmp_path: Path) -> None:
    book(FORECAST, second=QUESTION)
    (tmp_path / "source" / "second.md").unlink()
    assert list(json.loads(book(FORECAST).written("questions.json"))) == ["index"]


def test_the_progress_page_counts_by_part_and_by_page(book: Make) -> None:
    built = book(FORECAST, second=QUESTION + FORECAST, standing="```{progress}\n```\n")
    assert built.warnings == ""
    parts, pages = built.html("standing").select(".ffn-progress table")
    rows = [[cell.get_text() for cell in row(["th", "td"])] for row in parts("tr")]
    assert rows == [
        ["Part", "Forecasts", "Questions"],
        ["Front", "1", "0"],
        ["Second part", "1", "1"],
        ["The whole book", "2", "1"],
    ]
    links = {link.get_text(): link["href"] for link in pages("a")}
    assert links == {"Front": "index.html", "Page second": "second.html"}
    whole = parts.select_one("tfoot td")["data-keys"].split()
    assert whole == [keys(built)[0], keys(built, "second")[1]]


def test_the_progress_page_is_written_anew_when_another_page_changes(book: Make) -> None:
    book(FORECAST, standing="```{progress}\n```\n")
    built = book(FORECAST + QUESTION, standing="```{progress}\n```\n")
    totals = built.html("standing").select_one("tfoot").select("td")
    assert [total.get_text() for total in totals] == ["1", "1"]


# Flashcards


def test_a_card_is_a_disclosure_element_with_a_key(book: Make) -> None:
    built = book(CARDS)
    assert built.warnings == ""
    assert built.one("section.ffn-cards")["aria-label"] == "Recall"
    first, second = built.html().select("section.ffn-cards > details.ffn-card")
    assert str(first.summary) == "<summary>The <strong>first</strong> front</summary>"
    assert first.select_one(".ffn-card-back").get_text(strip=True) == "The first back."
    assert len(second.select(".ffn-card-back li")) == 2
    assert re.fullmatch(r"index#[0-9a-f]{8}", str(first["data-key"]))
    assert first["data-key"] != second["data-key"]


def test_cards_are_counted_apart(book: Make) -> None:
    built = book(CARDS, standing="```{progress}\n```\n")
    assert json.loads(built.written("questions.json")) == {}
    assert len(str(built.one(".ffn-progress", "standing")["data-cards"]).split()) == 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (CARDS.replace("\n\n  The first back.", ""), "the card “The first front” needs a paragraph as its front"),
        (CARDS.replace("- The **first**", "Read this.\n\n- The **first**"), "flashcards take one list"),
        (":::{flashcards}\n:::\n", 'Content block expected for the "flashcards" directive'),
        (
            CARDS.replace("The second front", "The **first** front"),
            "the card “The **first** front” stands on this page",
        ),
    ],
    ids=["no back", "text before the list", "empty", "twins"],
)
def test_an_author_is_told_what_is_wrong_with_cards(book: Make, text: str, complaint: str) -> None:
    assert complaint in book(text).warnings


# Explorers


def test_an_explorer_shows_its_text_until_its_script_takes_over(book: Make) -> None:
    built = book(":::{explorer} budget\nA table *without* scripts.\n:::\n")
    assert built.warnings == ""
    assert built.one(".ffn-explorer")["data-explorer"] == "budget"
    assert built.one(".ffn-explorer-still").get_text().strip() == "A table without scripts."


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            ":::{explorer} gradients\nText.\n:::\n",
            "there is no explorer “gradients”; choose one of activations, forward, budget",
        ),
        (":::{explorer} budget\n:::\n", 'Content block expected for the "explorer" directive'),
    ],
    ids=["unknown", "nothing for readers without scripts"],
)
def test_an_author_is_told_what_is_wrong_with_an_explorer(book: Make, text: str, complaint: str) -> None:
    assert complaint in book(text).warnings


def explorer_data(built: Book) -> dict[str, object]:
    text = built.written("ffn-data.mjs")
    found: dict[str, object] = json.loads(text[text.index("{") : text.rindex("}") + 1])
    return found


def test_the_scripts_get_the_coefficients_of_the_normal_tail(book: Make) -> None:
    data = explorer_data(book("Text."))
    assert data["normalTail"] == {"coefficients": list(_FLOAT64), "far": 40.0}


def test_the_scripts_get_the_published_inputs(book: Make) -> None:
    blocks = explorer_data(book("Text."))["blocks"]
    given = published_inputs("ex2")
    assert blocks["cell-d"]["W_1"] == given["W1"]
    assert blocks["cell-d"]["b_2"] == given["b2"]
    assert blocks["tiny"]["x"] == published_inputs("tiny")["x"]


def test_the_presets_are_the_ledgers_models(book: Make) -> None:
    presets = {preset["id"]: preset for preset in explorer_data(book("Text."))["budgets"]}
    names = ("d_model", "d_ff", "layers", "vocabulary", "positions")
    bert = {name: presets["bert-training"][name] for name in names}
    assert ledger.encoder_parameters(**bert) == ledger.encoder_parameters()
    llama = {name: presets["llama-training"][name] for name in names[:4]}
    assert ledger.llama_parameters(**llama) == ledger.llama_parameters()


# Other builders


@pytest.mark.parametrize("builder", ["text", "latex"])
def test_other_builders_print_questions_cards_and_answers(book: Make, builder: str) -> None:
    text = FORECAST + CARDS + ":::{explorer} budget\nWithout scripts.\n:::\n\n```{progress}\n```\n"
    built = book(text, builder)
    assert built.warnings == ""
    [path] = (built.folder / "out").glob("index.txt" if builder == "text" else "*.tex")
    printed = path.read_text(encoding="utf-8")
    for words in ("Which sign has z?", "The sum is below zero.", "The first back.", "Without scripts."):
        assert words in printed


# The formula renderer


LATE = """
import pathlib, socket, sys, time
server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
server.bind(sys.argv[1])
time.sleep({silence})
server.listen()
connection, _ = server.accept()
connection.sendall(b"ready")
connection.recv(1)
"""


class LateRenderer:
    """A renderer whose socket is there for a while before anybody listens."""

    silence = 0.3

    @classmethod
    def build_command(cls, socket: Path) -> list[str]:
        return [sys.executable, "-c", LATE.format(silence=cls.silence), str(socket)]

    @staticmethod
    def timeout_error(timeout: float) -> Exception:
        return TimeoutError(f"no answer after {timeout} seconds")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(sys, "path", [str(EXTENSIONS), *sys.path])
    module = importlib.import_module("lesson_formulas")
    started: Callable[..., Any] = module.start_renderer
    return started


def test_a_renderer_that_is_slow_to_listen_is_waited_for(start: Callable[..., Any], tmp_path: Path) -> None:
    process, connection = start(LateRenderer, tmp_path, 20.0)
    with process, connection:
        assert connection.recv(5) == b"ready"
        connection.sendall(b"!")


def test_a_renderer_that_never_listens_is_given_up(start: Callable[..., Any], tmp_path: Path) -> None:
    class Silent(LateRenderer):
        silence = 60.0

    with pytest.raises(TimeoutError, match=r"no answer after 0\.4 seconds"):
        start(Silent, tmp_path, 0.4)
