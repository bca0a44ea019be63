"""Offer each executed lesson's notebook at the page's download button; tools.book writes the notebooks."""

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata


def offer_notebook(app: Sphinx, page: str, template: str, context: dict[str, object], doctree: object) -> None:
    """Give the theme the notebook's place, which it takes relative to the folder of sources."""
    metadata = app.env.metadata.get(page, {})
    if metadata.get("file_format") == "mystnb" and str(metadata.get("download", True)).lower() == "true":
        context["ipynb_source"] = f"../notebooks/{page}.ipynb"


def setup(app: Sphinx) -> ExtensionMetadata:
    """Connect before the theme builds its buttons, at priority 501."""
    app.connect("html-page-context", offer_notebook, priority=400)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
