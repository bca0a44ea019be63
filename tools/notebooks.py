"""Turn executed lessons into notebooks that a learner can download, read in any Jupyter, and run.

What only the book's builder understands becomes plain Markdown: forecasts and questions fold their answers, glued
numbers and citations are written out, links lead to the other notebooks. Outputs are kept.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["citations", "offered", "plain_markdown", "plain_notebook"]

_GLUE = "application/papermill.record/text/plain"
_OPEN = re.compile(r"^(?P<fence>:{3,}|`{3,})\{(?P<name>[\w-]+)\}\s*(?P<argument>.*)$")
_OPTION = re.compile(r"^:[\w-]+:")
_LABEL = re.compile(r"^\([\w-]+\)=\s*$")
_INTERACTIVE = "*This part is interactive: open the page in the book to use it.*"


@dataclass(frozen=True)
class _Written:
    """What the roles of a page stand for: glued values and citations, by name."""

    values: Mapping[str, str]
    works: Mapping[str, tuple[str, str]]


def citations(bibliography: Path) -> dict[str, tuple[str, str]]:
    """Authors (in short) and year of every entry of a BibTeX file, by its key."""
    from pybtex.database import parse_file

    works = {}
    for key, entry in parse_file(str(bibliography)).entries.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [re.sub(r"[{}\\]", "", " ".join(person.last_names)) for person in people]
        several = len(names) > 2 or names[1:] == ["others"]
        works[key] = (f"{names[0]} et al." if several else " and ".join(names), entry.fields.get("year", ""))
    return works


def offered(executed: Any) -> bool:
    """Whether readers may download a lesson; `download: false` in its front matter says no."""
    return bool(executed.metadata.get("download", True))


def plain_notebook(executed: Any, works: Mapping[str, tuple[str, str]]) -> Any:
    """A notebook without anything that only the book's builder understands; the executed one is left as it is."""
    import copy

    notebook = copy.deepcopy(executed)
    written = _Written(values=dict(_glued(notebook)), works=works)
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number + 1}"
        if cell.cell_type == "markdown":
            cell.source = _convert(cell.source, written)
        elif cell.cell_type == "code":
            tags = cell.metadata.get("tags", [])
            cell.metadata = {"tags": tags} if tags else {}
            if {"hide-input", "remove-input", "remove-cell"} & set(tags):
                cell.metadata["jupyter"] = {"source_hidden": True}
    notebook.cells = [cell for cell in notebook.cells if cell.source.strip()]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def plain_markdown(source: str, values: Mapping[str, str], works: Mapping[str, tuple[str, str]]) -> str:
    """MyST Markdown rewritten as plain Markdown; ``values`` are the glued numbers by name."""
    return _convert(source, _Written(values=values, works=works))


def _glued(notebook: Any) -> Iterator[tuple[str, str]]:
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if _GLUE in output.get("data", {}):
                text = output["data"][_GLUE]
                yield output["metadata"]["scrapbook"]["name"], str(ast.literal_eval(text))


def _convert(source: str, written: _Written) -> str:
    lines, out = source.splitlines(), []
    position = 0
    while position < len(lines):
        line = lines[position]
        opened = _OPEN.match(line.strip())
        if opened is None:
            if not _LABEL.match(line):
                out.append(_inline(line, written))
            position += 1
            continue
        end = _closing(lines, position, opened["fence"])
        body = lines[position + 1 : end]
        while body and (_OPTION.match(body[0].strip()) or not body[0].strip()):
            body.pop(0)
        content = _convert("\n".join(body), written).strip("\n")
        convert = _DIRECTIVES.get(opened["name"], _admonition)
        out += ["", *convert(opened["name"], _inline(opened["argument"], written), content), ""]
        position = end + 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip("\n")


def _closing(lines: list[str], start: int, fence: str) -> int:
    """The line that closes a directive; the end of the text where none does."""
    for position in range(start + 1, len(lines)):
        if lines[position].strip() == fence:
            return position
    return len(lines)


def _inline(line: str, written: _Written) -> str:
    """Write out the roles of one line, and let links lead to notebooks."""

    def role(match: re.Match[str]) -> str:
        name, text = match["name"], match["text"]
        if name.startswith("glue"):
            return written.values.get(text.split("::")[-1], text)
        if name.startswith("cite"):
            return _citation(text, written.works, textual=name.endswith(":t"))
        return re.sub(r"\s*<[^>]*>$", "", text)

    line = re.sub(r"\{(?P<name>[a-z:]+)\}`(?P<text>[^`]+)`", role, line)
    return re.sub(r"\]\((?!https?:)([^)#\s]+)\.md(#[^)]*)?\)", r"](\1.ipynb)", line)


def _citation(keys: str, works: Mapping[str, tuple[str, str]], *, textual: bool) -> str:
    found = [works.get(key.strip(), (key.strip(), "")) for key in keys.split(",")]
    if textual:
        return ", ".join(f"{names} ({year})" for names, year in found)
    return f"({'; '.join(f'{names}, {year}' for names, year in found)})"


def _quote(text: str) -> list[str]:
    return [f"> {line}".rstrip() for line in text.splitlines()]


def _admonition(name: str, title: str, content: str) -> list[str]:
    return _quote(f"**{title or name.capitalize()}**\n\n{content}")


def _asked(name: str, title: str, content: str) -> list[str]:
    """A forecast or question: choices in sight, the answer folded."""
    items, rest = _items(content)
    choices = [(text[3:].strip(), text[1] == "x", explanation) for text, explanation in items]
    answer = "\n".join(rest).strip("\n")
    notes = [f"- {'✓' if right else '✗'} **{choice}** {note}".rstrip() for choice, right, note in choices]
    return [
        f"**{name.capitalize()}.** {title}",
        "",
        *[f"- {choice}" for choice, _, _ in choices],
        "",
        "<details><summary>Show the answer</summary>",
        "",
        *([answer, ""] if answer else []),
        *notes,
        "",
        "</details>",
    ]


def _items(content: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The bullet items of a text as (first paragraph, what follows it), and the lines outside of them."""
    items: list[tuple[list[str], list[str]]] = []
    rest: list[str] = []
    inside = False
    for line in content.splitlines():
        if line.startswith("- "):
            items.append(([line[2:]], []))
            inside = True
        elif inside and (line.startswith("  ") or not line.strip()):
            first, more = items[-1]
            (more if more or not line.strip() else first).append(line.strip())
        else:
            inside = False
            rest.append(line)
    return [(" ".join(first), " ".join(part for part in more if part)) for first, more in items], rest


def _flashcards(name: str, title: str, content: str) -> list[str]:
    items, _ = _items(content)
    return [f"<details><summary>{front}</summary>\n\n{back}\n\n</details>\n" for front, back in items]


def _definitions(name: str, title: str, content: str) -> list[str]:
    """Terms and their definitions, as a list."""
    out: list[str] = []
    for line in content.splitlines():
        if line and not line.startswith((" ", ":")):
            out.append(f"- **{line.strip()}**")
        elif line.strip():
            out.append(f"  {line.strip().removeprefix(':').strip()}")
    return out


def _card(name: str, title: str, content: str) -> list[str]:
    return [f"**{title}.** {content}" if title else content]


def _contents(name: str, title: str, content: str) -> list[str]:
    return content.splitlines()


def _elsewhere(name: str, title: str, content: str) -> list[str]:
    return [_INTERACTIVE]


_DIRECTIVES: dict[str, Callable[[str, str, str], list[str]]] = {
    "forecast": _asked,
    "question": _asked,
    "flashcards": _flashcards,
    "glossary": _definitions,
    "grid": _contents,
    "grid-item-card": _card,
    "explorer": _elsewhere,
    "progress": _elsewhere,
    "bibliography": lambda name, title, content: ["*The references are listed in the book.*"],
}
