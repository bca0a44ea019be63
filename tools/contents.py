"""The book's table of contents, as _toc.yml has it."""

import yaml

from tools.places import ROOT

__all__ = ["Part", "contents", "pages"]

Part = tuple[str, list[str]]
"""A part's caption, and its pages as paths without suffix, in order."""


def contents() -> list[Part]:
    """The parts of the book; the first is the front page alone, without a caption."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    parts = toc.get("parts") or [{"caption": "", "chapters": toc.get("chapters", [])}]
    listed = [(part.get("caption", ""), [chapter["file"] for chapter in part["chapters"]]) for part in parts]
    return [("", [toc["root"]]), *listed]


def pages() -> list[str]:
    """All pages of the book, in order."""
    return [page for _, chapters in contents() for page in chapters]
