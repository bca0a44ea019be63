"""What the pages ask, the key under which a browser remembers each answer, and the directive ``progress``.

A key is the page's name, a ``#`` and a short hash of kind and wording: a question that is inserted before another
does not take over its answer, and one whose wording changes is a new question.

``progress`` shows how much of each part is answered. The counts of questions are written when the book is built;
the reader's own figures and the buttons come from ``progress.mjs``::

    ```{progress}
    ```
"""

import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

_LOGGER = logging.getLogger(__name__)
_COUNTED = ("forecast", "question")

Records = dict[str, list[tuple[str, str]]]
"""For every page, the kind and the hash of what it asks, in the page's order."""


class progress(nodes.General, nodes.Element):  # noqa: N801 - docutils names node classes so
    """The table of what has been answered."""


def records(env: BuildEnvironment) -> Records:
    """What the pages ask; kept in the environment, so that pages which are not read again keep theirs."""
    found: Records = vars(env).setdefault("ffn_asked", {})
    return found


def short_hash(*parts: str) -> str:
    """Eight hexadecimal digits that stand for the parts, whatever their line breaks."""
    text = "\n".join(" ".join(part.split()) for part in parts)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def record(env: BuildEnvironment, kind: str, wording: str, node: nodes.Node) -> str:
    """Take down that the current page asks this, and give its key; a repetition on the page is a warning."""
    entry = (kind, short_hash(kind, wording))
    asked = records(env).setdefault(env.docname, [])
    if entry in asked:
        _LOGGER.warning(
            "the %s “%s” stands on this page already; word it differently, so that its answer is kept apart",
            kind,
            " ".join(wording.split()),
            location=node,
            type="lesson",
            subtype="repeated",
        )
    asked.append(entry)
    return f"{env.docname}#{entry[1]}"


class Progress(SphinxDirective):
    """The table of what the reader has answered, part by part, with export, import and erase."""

    def run(self) -> list[nodes.Node]:
        """Leave a node that is filled in when all pages have been read."""
        return [progress()]


def _below(env: BuildEnvironment, page: str) -> list[str]:
    """A page and all pages under it in the table of contents."""
    return [page, *(p for child in env.toctree_includes.get(page, []) for p in _below(env, child))]


def parts(env: BuildEnvironment) -> list[tuple[str, list[str]]]:
    """The parts of the table of contents that ask something: their captions, and their pages that ask."""
    root = env.config.root_doc
    listed: list[tuple[str, Iterable[str]]] = [(env.titles[root].astext(), [root])]
    for toctree in env.get_doctree(root).findall(addnodes.toctree):
        pages = (page for _, entry in toctree["entries"] if entry in env.found_docs for page in _below(env, entry))
        listed.append((toctree.get("caption") or env.titles[root].astext(), pages))
    asking = {page for page, asked in records(env).items() if any(kind in _COUNTED for kind, _ in asked)}
    found = [(caption, [page for page in pages if page in asking]) for caption, pages in listed]
    return [(caption, pages) for caption, pages in found if pages]


def _row(env: BuildEnvironment, heading: str, pages: Sequence[str]) -> str:
    """One row: its heading, and for each kind the keys that it counts and their number."""
    cells = ""
    for kind in _COUNTED:
        keys = [f"{page}#{digest}" for page in pages for k, digest in records(env).get(page, []) if k == kind]
        keys = list(dict.fromkeys(keys))
        cells += f'<td data-keys="{html.escape(" ".join(keys))}">{len(keys)}</td>'
    return f'<tr><th scope="row">{heading}</th>{cells}</tr>'


def _table(caption: str, first: str, rows: Iterable[str], foot: str = "") -> str:
    head = f'<tr><th scope="col">{first}</th><th scope="col">Forecasts</th><th scope="col">Questions</th></tr>'
    return (
        f'<div class="ffn-table ffn-progress-table"><table class="table"><caption>{caption}</caption>'
        f"<thead>{head}</thead><tbody>{''.join(rows)}</tbody>{foot}</table></div>"
    )


def visit_progress(self: Any, node: nodes.Element) -> None:
    """Write the tables with the numbers of questions; the script turns each number into "answered of all"."""
    env: BuildEnvironment = self.builder.env
    here: str = self.builder.current_docname
    found = parts(env)
    everything = [page for _, pages in found for page in pages]
    total = f"<tfoot>{_row(env, 'The whole book', everything)}</tfoot>"
    by_part = _table("By part", "Part", (_row(env, html.escape(c), pages) for c, pages in found), total)
    links = {page: self.builder.get_relative_uri(here, page) for page in everything}
    titles = {page: html.escape(env.titles[page].astext()) for page in everything}
    rows = (_row(env, f'<a href="{links[page]}">{titles[page]}</a>', [page]) for page in everything)
    by_page = _table("By page", "Page", rows)
    cards = [
        f"{page}#{digest}" for page, asked in records(env).items() for kind, digest in asked if kind == "card"
    ]
    self.body.append(
        f'<div class="ffn-progress" data-cards="{html.escape(" ".join(cards))}">'
        '<p class="ffn-progress-still">The numbers of forecasts and questions. Which of them you have answered '
        "is shown here when the browser runs this page's script.</p>"
        f'{by_part}<details class="ffn-progress-pages"><summary>Page by page</summary>{by_page}</details></div>'
    )
    raise nodes.SkipNode


def skip(self: Any, node: nodes.Element) -> None:
    """Leave the node out of what is not a web page."""
    raise nodes.SkipNode


def _forget(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    records(env).pop(docname, None)


def _merge(app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    records(env).update({page: asked for page, asked in records(other).items() if page in docnames})


def _pages_with_progress(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages that are written anew in every build, because other pages decide what they show."""
    return sorted(page for page, metadata in env.metadata.items() if "ffn_progress" in metadata)


def _note_progress(app: Sphinx, doctree: nodes.document) -> None:
    if next(iter(doctree.findall(progress)), None) is not None:
        app.env.metadata[app.env.docname]["ffn_progress"] = True


def _write_questions(app: Sphinx, failure: Exception | None) -> None:
    """Write which hashes each page asks, for the marks in the sidebar."""
    if failure is not None or app.builder.format != "html":
        return
    asked = {
        page: [digest for kind, digest in entries if kind in _COUNTED]
        for page, entries in sorted(records(app.env).items())
    }
    text = json.dumps({page: found for page, found in asked.items() if found}, separators=(",", ":"))
    (Path(app.outdir) / "_static" / "questions.json").write_text(text + "\n", encoding="utf-8")


def setup_progress(app: Sphinx) -> None:
    """Register the directive and keep the records."""
    app.add_node(progress, html=(visit_progress, skip), latex=(skip, None), text=(skip, None))
    app.add_directive("progress", Progress)
    app.connect("env-purge-doc", _forget)
    app.connect("env-merge-info", _merge)
    app.connect("env-updated", _pages_with_progress)
    app.connect("doctree-read", _note_progress)
    app.connect("build-finished", _write_questions)
