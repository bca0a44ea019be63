"""Keep the pages light: without the theme's icon script, which holds every icon there is and weighs 1.5 MB.

book/_templates/layout.html uses the filters; book/_static/icons.css draws the icons that the pages use.
"""

import re
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

_SCRIPT = re.compile(r'<script src="[^"]*fontawesome\.js[^"]*"></script>')
_SIDEBAR = re.compile(r'<(div|dialog) id="pst-primary-sidebar"')
_SCRIPTS = ("fontawesome.js", "fontawesome.js.map", "fontawesome.js.LICENSE.txt")


def without_icon_script(head: str) -> str:
    """A page's head without the tag that loads the icon script."""
    return _SCRIPT.sub("", head)


def with_roles(body: str) -> str:
    """A page's body with what screen readers need.

    The sidebar becomes a named region (the theme leaves the book's title outside of landmarks), and entries of the
    bibliography become list items (docutils gives them a role that ARIA has withdrawn).
    """
    named = _SIDEBAR.sub(r'\g<0> role="region" aria-label="Book"', body)
    return named.replace('role="doc-biblioentry"', 'role="listitem"')


def add_filters(app: Sphinx) -> None:
    """Make the filters known to the page templates."""
    environment = getattr(getattr(app.builder, "templates", None), "environment", None)
    if environment is not None:
        environment.filters["without_icon_script"] = without_icon_script
        environment.filters["with_roles"] = with_roles


def drop_icon_script(app: Sphinx, error: Exception | None) -> None:
    """Take the icon script out; a browser may ask for the font before icons.css is read, so that stays."""
    for name in _SCRIPTS:
        (Path(app.outdir) / "_static" / "scripts" / name).unlink(missing_ok=True)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect to the builder's start and end."""
    app.add_css_file("icons.css")
    app.connect("builder-inited", add_filters)
    app.connect("build-finished", drop_icon_script)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
