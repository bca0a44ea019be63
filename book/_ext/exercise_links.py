"""Lay a link that opens the exercise in the browser below each paragraph that names an exercise unit.

It stays hidden until open-exercise.mjs finds that the built book has the part that runs in the browser.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_NAMED = re.compile(r"exercise unit ([\w-]+)")
_PAGE = re.compile(r"(^|/)exercises\.html$")
_NOTEBOOK = re.compile(r"(?:^|/)exercises/([\w-]+)/\1\.ipynb$")


def _units(paragraph: nodes.paragraph) -> Iterator[str]:
    """The units that a paragraph leads to: by a link to the page of exercises, or by a notebook to download."""
    for link in paragraph.findall(nodes.reference):
        named = _NAMED.fullmatch(" ".join(link.astext().split()))
        if named and _PAGE.search(str(link.get("refuri", ""))):
            yield named[1]
    for download in paragraph.findall(addnodes.download_reference):
        offered = _NOTEBOOK.search(str(download.get("reftarget", "")))
        if offered:
            yield offered[1]


def add_links(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Put a link for every unit below the paragraph that names it; none where LIVE=0 leaves its page out."""
    if not app.config.ffn_live:
        return
    root = "../" * page.count("/")
    for paragraph in list(doctree.findall(nodes.paragraph)):
        for unit in reversed(list(dict.fromkeys(_units(paragraph)))):
            if (Path(app.srcdir) / "exercises" / unit).is_dir():
                place = paragraph.parent.index(paragraph) + 1
                paragraph.parent.insert(place, nodes.raw("", _link(root, unit), format="html"))


def _link(root: str, unit: str) -> str:
    name = html.escape(unit)
    return (
        f'<p class="ffn-open-exercise" hidden><a href="{root}live/exercise.html?unit={name}">'
        f"Open the exercise <em>{name}</em> in the browser</a></p>"
    )


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect when references have their addresses."""
    app.connect("doctree-resolved", add_links)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
