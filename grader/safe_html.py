"""What formgrader and the feedback show of a notebook: nothing in it runs, or asks another host for anything.

nbgrader shows Markdown and HTML as a learner wrote them, in a page that is signed in as the instructor. These filters
take the place of nbconvert's; nbgrader_config.py names them.
"""

import base64
import html
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import pass_context
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

__all__ = ["formula_script", "safe_html", "safe_markdown"]

# What is beyond these takes minutes in the libraries that read it, and is nothing that a person would grade.
MOST_MARKUP = 5_000
LONGEST_MARKDOWN = 50_000

_WORDS = {"a", "abbr", "b", "br", "code", "del", "em", "i", "img", "ins", "kbd", "q", "s", "samp", "small", "span"}
_WORDS |= {"strong", "sub", "sup", "u", "var"}
_BLOCKS = {"blockquote", "dd", "details", "div", "dl", "dt", "hr", "li", "ol", "p", "pre", "summary", "ul"}
_BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6"}
_TABLES = {"caption", "table", "tbody", "td", "tfoot", "th", "thead", "tr"}
_LINK = re.compile(r"(https?:|mailto:|#)", re.IGNORECASE)
_PICTURE = re.compile(r"data:image/(png|jpeg|gif|webp|svg\+xml);base64,")
# Classes and ids are how formgrader knows its own buttons and boxes: a learner's text must not become one of them.
_CLASS = re.compile(r"[a-z][a-z0-9]{0,2}|highlight|formula|ffn-[a-z-]+")
_ALIGN = re.compile(r"text-align: ?(left|center|right);?")
_NAME = re.compile(r'aria-label="([^"]*)"')


def safe_html(text: str) -> str:
    """HTML with everything that could run or reach out turned into plain text, and drawings into images."""
    from bleach import clean  # type: ignore[import-untyped]
    from bleach.css_sanitizer import CSSSanitizer  # type: ignore[import-untyped]

    drawn = _with_pictures(text)
    if drawn.count("<") > MOST_MARKUP:
        return _as_it_is(text)
    cleaned: str = clean(
        drawn,
        tags=_WORDS | _BLOCKS | _TABLES,
        attributes=_allowed,
        protocols=("http", "https", "mailto", "data"),
        css_sanitizer=CSSSanitizer(allowed_css_properties=["text-align"]),
    )
    return cleaned


@pass_context
def safe_markdown(context: Any, source: str) -> str:
    """Markdown as safe HTML; text that cannot be converted is shown as it is."""
    if len(source) > LONGEST_MARKDOWN:
        return _as_it_is(source)
    attachments = context.get("cell", {}).get("attachments", {})
    renderer = _Renderer(escape=False, attachments=attachments, exclude_anchor_links=True)
    try:
        converted = MarkdownWithMath(renderer=renderer).render(source)
    except Exception:
        # One answer must keep neither formgrader from opening nor the class from its feedback.
        return _as_it_is(source)
    return safe_html(converted)


def formula_script(_: str) -> str:
    """KaTeX, which the packages of the book bring along; where they are missing, formulas are shown as TeX."""
    found = find_spec("sphinxcontrib")
    places = [] if found is None else found.submodule_search_locations or []
    scripts = [path for place in places if (path := Path(place) / "katex.min.js").is_file()]
    return scripts[0].read_text(encoding="utf-8") if scripts else ""


class _Renderer(IPythonRenderer):
    """Markdown to HTML, with formulas in elements that the page's script finds."""

    def inline_math(self, body: str) -> str:
        return f'<span class="formula">{super().inline_math(body)}</span>'

    def block_math(self, body: str) -> str:
        return f'<span class="formula">{super().block_math(body)}</span>'

    def latex_environment(self, name: str, body: str) -> str:
        return f'<span class="formula">{super().latex_environment(name, body)}</span>'

    def block_mermaidjs(self, code: str) -> str:
        return f"<pre>{html.escape(code)}</pre>"


def _allowed(tag: str, name: str, value: str) -> bool:
    """Whether an element may have an attribute."""
    if name == "class":
        return all(_CLASS.fullmatch(word) for word in value.split())
    if name == "style":
        return tag in ("td", "th") and _ALIGN.fullmatch(value) is not None
    return (
        (tag == "a" and name == "href" and _LINK.match(value) is not None)
        or (tag == "img" and name == "src" and _PICTURE.match(value) is not None)
        or (tag == "img" and name in ("alt", "width", "height"))
        or (tag in ("td", "th") and name in ("colspan", "rowspan"))
        or (tag == "details" and name == "open")
        or name == "title"
    )


def _with_pictures(text: str) -> str:
    """HTML with each drawing in it as an image, in which no script runs."""
    parts = []
    end = 0
    while (start := text.find("<svg", end)) >= 0 and (stop := text.find("</svg>", start)) >= 0:
        drawing = text[start : stop + len("</svg>")]
        named = _NAME.search(drawing)
        alt = html.escape(html.unescape(named[1])) if named else ""
        data = base64.b64encode(drawing.encode()).decode()
        parts += [text[end:start], f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">']
        end = stop + len("</svg>")
    return "".join([*parts, text[end:]])


def _as_it_is(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"
