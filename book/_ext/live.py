"""Load the course's scripts, and lay the button that runs a page's code in place (live.mjs) below its title.

Browsers refuse modules from a file on disk, with an error in the console. So a classic script adds the module, and
where the book was opened from a file it leaves that alone: then the page says what to do.
"""

import os
import re
import zlib
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

# Not .js: jupyter-book puts every script of that name on every page, as a classic one.
_MODULE = "course.mjs"
_LOADER = """\
if (location.protocol === "file:") document.documentElement.dataset.file = "";
else document.head.append(Object.assign(document.createElement("script"), {{
  type: "module", src: document.documentElement.dataset.content_root + "_static/{module}?v={version:08x}",
}}));
"""
_TITLE_END = re.compile(r"</h1>\n?")
_CODE = 'class="cell_input '

_BOX = """
<div class="ffn-live" data-page="{page}" data-notebook="notebooks/{page}.ipynb">
<button type="button" id="live-run" class="ffn-button">Run this page</button>
<p class="ffn-live-words">Change and run its code here in the browser, with nothing to install.
<a href="{help}">How it works</a></p>
<p class="ffn-live-file">The code of this page can be run when the book is served: type <code>make serve</code> in the
course's folder, and open the address that it prints.</p>
<template>
<details class="ffn-live-help"><summary>Keys and buttons</summary>
<ul>
<li id="live-help-keys">Shift+Enter runs a cell and goes to the next, Ctrl+Enter runs it and stays. Tab indents; press
Escape and then Tab to leave the editor.</li>
<li><b>Run</b> runs a cell; cells above it that have not run yet run first, those that the page hides too. Numbers
in the text stay those of the book.</li>
<li><b>Interrupt</b> stops a cell. <b>Restart</b> forgets everything that was computed. <b>Reset</b> brings the
book's own code back. What you type is kept in this browser.</li>
</ul></details>
</template>
</div>
"""


def add_button(app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Put the button into a page that shows code and whose notebook is laid beside the pages."""
    body = context.get("body")
    if not app.config.ffn_live or not isinstance(body, str) or _CODE not in body or not _offered(app, page):
        return
    help_page = "../" * page.count("/") + "book/run-in-the-browser.html"
    box = _BOX.format(page=page, help=help_page)
    context["body"] = _TITLE_END.sub(lambda end: end[0] + box, body, count=1)


def _offered(app: Sphinx, page: str) -> bool:
    return str(app.env.metadata.get(page, {}).get("download", True)).lower() == "true"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect; `LIVE=0` leaves the button out."""
    app.add_config_value("ffn_live", os.environ.get("LIVE") != "0", "html", bool)
    folder = Path(__file__).resolve().parent.parent / "_static"
    version = zlib.crc32((folder / _MODULE).read_bytes())
    app.add_js_file(None, body=_LOADER.format(module=_MODULE, version=version))
    app.add_css_file("live.css")
    app.connect("html-page-context", add_button)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
