"""What a learner wrote, as formgrader and the feedback show it."""

import re
from typing import Any

import pytest
from bs4 import BeautifulSoup

from grader import safe_html as module
from grader.safe_html import LONGEST_MARKDOWN, MOST_MARKUP, formula_script, safe_html, safe_markdown


def shown(source: str, **cell: Any) -> Any:
    """Markdown of a cell, converted and parsed."""
    return BeautifulSoup(safe_markdown({"cell": cell}, source), "html.parser")


def in_page(text: str) -> Any:
    return BeautifulSoup(safe_html(text), "html.parser")


PAYLOADS = [
    "<script>alert(1)</script>",
    "<SCRIPT src=//evil.example/x.js></SCRIPT>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<svg><![CDATA[</svg><img src=x onerror=alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "<a href=' jAvAscript:alert(1)'>x</a>",
    "<a href='data:text/html,<script>alert(1)</script>'>x</a>",
    "<form action=/formgrader/api/grade><input name=x></form>",
    "<style>body { background: url(//evil.example/x) }</style>",
    "<b style='background: url(//evil.example/x)'>x</b>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<meta http-equiv=refresh content='0; url=//evil.example'>",
    "<base href=//evil.example>",
    "<object data=x></object><embed src=x>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<details open ontoggle=alert(1)>x</details>",
]
MARKDOWN = [
    "```mermaid\n<script>alert(1)</script>\n```",
    "```python\n<script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "[x](javascript:alert(1))",
    "![x](javascript:alert(1))",
    '![x](y "onerror=alert(1)")',
    '![x" onerror="alert(1)](y)',
    "[x]: javascript:alert(1)\n\n[x]",
    "<javascript:alert(1)>",
    "$<script>alert(1)</script>$",
    "$$\n</span><script>alert(1)</script>\n$$",
    "\\begin{a}<script>alert(1)</script>\\end{a}",
    "# <script>alert(1)</script>",
    "|a|\n|-|\n|<script>alert(1)</script>|",
]
PLAIN = {"a", "b", "code", "details", "div", "em", "h1", "img", "p", "pre", "span", "strong", "summary", "table"}
PLAIN |= {"tbody", "td", "th", "thead", "tr"}


def dangers(page: Any) -> list[str]:
    """What of a parsed page runs, reaches out or looks like a part of formgrader."""
    found = [element.name for element in page.find_all() if element.name not in PLAIN]
    for element in page.find_all():
        for name, value in element.attrs.items():
            said = " ".join(value) if isinstance(value, list) else value
            if name not in ("href", "src", "alt", "class", "style", "open", "title"):
                found.append(f"{element.name} {name}")
            if name == "src" and not said.startswith("data:image/"):
                found.append(f"src {said}")
            if name == "href" and not re.match(r"https?:|mailto:|#", said):
                found.append(f"href {said}")
            if name == "style" and "url" in said:
                found.append(f"style {said}")
    return found


@pytest.mark.parametrize("payload", PAYLOADS)
def test_html_that_could_run_or_reach_out_does_neither(payload: str) -> None:
    assert dangers(in_page(f"<p>before</p>{payload}<p>after</p>")) == []


@pytest.mark.parametrize("payload", [*PAYLOADS, *MARKDOWN])
def test_markdown_that_could_run_or_reach_out_does_neither(payload: str) -> None:
    assert dangers(shown(f"before\n\n{payload}\n\nafter")) == []


def test_what_is_dangerous_is_shown_as_text() -> None:
    assert "<script>alert(1)</script>" in in_page("<script>alert(1)</script>").get_text()


@pytest.mark.parametrize(
    "source", ["# hidden_relu", '<b id="hidden_relu">x</b>', '<b class="score full-credit">x</b>']
)
def test_no_text_passes_for_a_part_of_formgrader(source: str) -> None:
    for element in shown(source).find_all():
        assert not element.attrs.keys() & {"id", "class"}


def test_a_picture_on_another_host_is_not_asked_for() -> None:
    (image,) = shown("![a curve](https://evil.example/x.png)").find_all("img")
    assert image.attrs == {"alt": "a curve"}


# ------------------------------------------------------------------------------------------- what is to be shown


def test_ordinary_markdown_is_formatted() -> None:
    page = shown(
        "# Head\n\nSome **bold** and *slanted* text with `code` and [a link](https://example.org).\n\n- one\n"
    )
    assert [page.find(name).get_text() for name in ("h1", "strong", "em", "code", "a")] == [
        "Head",
        "bold",
        "slanted",
        "code",
        "a link",
    ]
    assert page.find("a")["href"] == "https://example.org"
    assert page.find("li").get_text() == "one"


def test_tables_keep_their_headings_and_their_alignment() -> None:
    page = shown("| a | b |\n|---|--:|\n| 1 | 2 |")
    assert [cell.get_text() for cell in page.find_all("th")] == ["a", "b"]
    assert page.find_all("td")[1]["style"] == "text-align:right;"


def test_the_hints_of_an_exercise_still_open() -> None:
    page = shown("<details>\n<summary>Hint 1</summary>\n\nTake *care*.\n\n</details>")
    assert page.find("details").find("summary").get_text() == "Hint 1"
    assert page.find("details").find("em").get_text() == "care"


@pytest.mark.parametrize(
    "formula", ["$a < b$", "$$\\frac{a}{b}$$", "\\begin{align}\na &= b \\\\\nc &= d\n\\end{align}"]
)
def test_formulas_are_there_as_they_were_written(formula: str) -> None:
    (found,) = shown(f"Here: {formula}").select(".formula")
    assert found.get_text() == formula


def test_code_keeps_its_colours() -> None:
    page = shown("```python\nx = 1\n```")
    assert page.select_one(".highlight .mi").get_text() == "1"


def test_an_attached_picture_is_shown() -> None:
    page = shown("![a plot](attachment:plot.png)", attachments={"plot.png": {"image/png": "aGVsbG8="}})
    assert page.find("img")["src"] == "data:image/png;base64,aGVsbG8="


def test_text_with_a_picture_that_got_lost_is_shown_as_it_is() -> None:
    assert shown("My plot: ![a plot](attachment:plot.png)").find("pre").get_text() == (
        "My plot: ![a plot](attachment:plot.png)"
    )


def test_a_drawing_becomes_an_image_with_its_name() -> None:
    import base64

    drawing = '<svg aria-label="a &amp; b" xmlns="http://www.w3.org/2000/svg"><path d="M0 0"/></svg>'
    (image,) = in_page(f"<div class='ffn-figure'>{drawing}</div>").find_all("img")
    assert image["alt"] == "a & b"
    kind, _, data = image["src"].partition(",")
    assert (kind, base64.b64decode(data).decode()) == ("data:image/svg+xml;base64", drawing)


def test_a_check_of_the_course_is_shown_as_it_was() -> None:
    check = '<div class="ffn-check"><span class="ffn-check-mark">✓</span> published 1.7</div>'
    assert safe_html(check) == check


# ------------------------------------------------------------------------------------------------ too much of it


def test_more_markup_than_a_person_reads_is_shown_as_text() -> None:
    page = in_page("<b>" * (MOST_MARKUP + 1))
    assert page.find("b") is None
    assert page.find("pre").get_text() == "<b>" * (MOST_MARKUP + 1)


def test_a_text_longer_than_an_answer_is_shown_as_it_is() -> None:
    source = "**x** " * LONGEST_MARKDOWN
    assert shown(source).find("pre").get_text() == source


# ------------------------------------------------------------------------------------------------------ formulas


def test_the_script_for_formulas_is_katex() -> None:
    assert "katex" in formula_script("")[:400]


def test_without_the_packages_of_the_book_there_is_no_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    assert formula_script("") == ""
