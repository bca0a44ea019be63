"""What the handbook's pages hold: commands with the output that they show, files, and steps that a person does.

- a block ``bash`` is run, line by line; `# exit status N` below a command is the status that it ends with
- a block ``text`` right below it is what comes out; `...` is any text on its line, and alone on a line any lines
- a block with a caption is the file of that name; a list of names makes the archive or the folder of these files
- a comment `% test: WHAT` is a step of a person's, outside of the command line
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tests.helpers import ROOT
from tools.contents import pages

__all__ = ["Block", "Command", "blocks", "commands", "fits", "handbook_pages", "inline"]

FOLDER = "book/handbook/"
_STATUS = re.compile(r"# exit status (\d+)")


@dataclass(frozen=True)
class Block:
    """A part of a page: its kind (bash, text, file or step), the line where it begins, what it holds, a file's name."""

    kind: str
    line: int
    text: str
    name: str = ""


@dataclass(frozen=True)
class Command:
    """A command line, and the exit status that the page states for it."""

    text: str
    status: int


def handbook_pages() -> list[str]:
    """The handbook's pages in the order of the contents."""
    return [page for page in pages() if page.startswith(FOLDER)]


def text_of(page: str) -> str:
    return (ROOT / f"{page}.md").read_text(encoding="utf-8")


def blocks(text: str) -> Iterator[Block]:
    """The parts of a page that a test makes or runs, in order."""
    lines = iter(enumerate(text.splitlines(), start=1))
    shown_below = 0
    for number, line in lines:
        if step := re.fullmatch(r"% test: (.+)", line):
            yield Block("step", number, step[1])
        elif fence := re.fullmatch(r"(`{3,})(?:\{([\w-]+)\})? *(.*)", line):
            body, end = _body(lines, fence[1])
            caption, content = _options(body)
            if caption:
                yield Block("file", number, content, caption)
            elif fence[2] is None and fence[3] == "bash":
                yield Block("bash", number, content)
                shown_below = end + 2
                continue
            elif fence[2] is None and fence[3] == "text" and number == shown_below:
                yield Block("text", number, content)
        shown_below = 0 if line.strip() else shown_below


def _body(lines: Iterator[tuple[int, str]], fence: str) -> tuple[list[str], int]:
    body: list[str] = []
    for number, line in lines:
        if line.rstrip() == fence:
            return body, number
        body.append(line)
    raise ValueError(f"a block is not closed: {body[:1]}")


def _options(body: list[str]) -> tuple[str, str]:
    """The caption of a directive, empty where there is none, and what stands below its options."""
    caption, rest = "", list(body)
    while rest and (option := re.fullmatch(r":([\w-]+): *(.*)", rest[0])):
        caption = option[2] if option[1] == "caption" else caption
        rest.pop(0)
    while caption and rest and not rest[0].strip():
        rest.pop(0)
    return caption.strip("`"), "".join(f"{line}\n" for line in rest)


def commands(text: str) -> list[Command]:
    """The commands of a block: one a line, unless a backslash joins lines."""
    joined = re.sub(r"\\\n\s*", "", text)
    found: list[Command] = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        stated = _STATUS.fullmatch(line)
        if stated is None:
            found.append(Command(line, 0))
        else:
            found[-1] = Command(found[-1].text, int(stated[1]))
    return found


def inline(text: str) -> list[str]:
    """What stands in backticks in a page's running text."""
    prose = re.sub(r"(?ms)^(`{3,}).*?^\1\s*$", "", text)
    return [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]


def fits(shown: str, came: str) -> bool:
    """Whether what came out is what a page shows; blanks and ruled lines may be longer or shorter."""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else r".*?".join(map(re.escape, line.split("..."))) + r"\n"
        for line in _plain(shown)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in _plain(came))) is not None


def _plain(text: str) -> list[str]:
    lines = (re.sub(r"([━─])\1+", r"\1", " ".join(line.split())) for line in text.splitlines())
    return [line for line in lines if line]
