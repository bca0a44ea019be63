"""Build the book: execute every lesson, render the pages, and check that every published value was reproduced.

    python -m tools.book

Outputs are cached. A change in ffn/ or its published.toml throws the cache away, because the cache looks at a
lesson's own code only; a change in one lesson executes that lesson. Warnings are errors. Last comes the part that runs
in the browser (tools.live); LIVE=0 in the environment leaves it out.
"""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ffn.exceptions import CourseFilesError
from ffn.published import coverage
from tools.contents import pages
from tools.live import step as live
from tools.live.exceptions import LiveError
from tools.notebooks import citations, offered, plain_notebook
from tools.places import (
    BOOK,
    BUILD,
    EXECUTED,
    HELPER,
    HTML,
    ROOT,
    fingerprint,
    stamp,
    stamped,
    tool_environment,
    unstamp,
)

LOG = BUILD / "book.log"
DOWNLOADS = HTML / "notebooks"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_SOURCE_LINE = re.compile(r"^\s*\d+ (added|changed|removed)")


class BookError(Exception):
    """The book was not built; the message says which page and why."""


def _forget_stale_outputs(helper: str) -> None:
    """Drop cached outputs when the helper module or the published values have changed since they were made."""
    if stamped("helper") != helper:
        for folder in (".jupyter_cache", ".doctrees", "jupyter_execute"):
            shutil.rmtree(BUILD / folder, ignore_errors=True)
        stamp("helper", helper)


def _forget_removed_pages() -> None:
    """Drop executed copies of lessons that are gone from the contents, so that they no longer count as checked."""
    listed = {EXECUTED / f"{page}.ipynb" for page in pages()}
    for notebook in EXECUTED.rglob("*.ipynb"):
        if notebook not in listed:
            notebook.unlink()


def finish_notebooks() -> None:
    """Give the executed lessons the outputs that came from the cache, and lay plain copies beside the pages.

    Where a lesson's outputs come from the cache, jupyter-book leaves its copy without them. The plain copies are
    what readers download. Only what the builder has written anew is looked at.
    """
    import nbformat
    from jupyter_cache import get_cache

    bibliography = ROOT / "book" / "references.bib"
    works = citations(bibliography)
    cache = get_cache(str(BUILD / ".jupyter_cache"))
    wanted = {DOWNLOADS / path.relative_to(EXECUTED): path for path in EXECUTED.rglob("*.ipynb")}
    for target, path in sorted(wanted.items()):
        made = target.stat().st_mtime if target.exists() else 0.0
        if made > max(path.stat().st_mtime, bibliography.stat().st_mtime):
            continue
        notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
        with contextlib.suppress(KeyError):
            _, notebook = cache.merge_match_into_notebook(notebook)
            _write_whole(notebook, path)
        if not offered(notebook):
            target.unlink(missing_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(plain_notebook(notebook, works), target)
    for path in set(DOWNLOADS.rglob("*.ipynb")) - set(wanted):
        path.unlink()


def _write_whole(notebook: Any, path: Path) -> None:
    """Write a notebook whole or not at all."""
    import nbformat

    draft = path.with_suffix(".ipynb.new")
    nbformat.write(notebook, draft)  # type: ignore[no-untyped-call]
    draft.replace(path)


def _build_lines() -> Iterator[tuple[str, int | None]]:
    """Run jupyter-book; give its output line by line, at the end the exit status."""
    # The package has no __main__.
    entry = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", entry, "build", str(ROOT), "-W", "-n", "--keep-going"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=tool_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    # What the builder started (kernels, the formula renderer) may outlive it and would keep the output open.
    threading.Thread(target=_end_rest, args=(process,), daemon=True).start()
    assert process.stdout is not None
    try:
        with LOG.open("w", encoding="utf-8") as log:
            for line in process.stdout:
                plain = _COLOUR.sub("", line.rstrip("\n")).replace(f"{ROOT}/", "")
                log.write(plain + "\n")
                yield plain, None
        yield "", process.wait()
    finally:
        _end_group(process.pid)


def _end_rest(process: subprocess.Popen[str]) -> None:
    """Wait for the builder, then end what it left running."""
    process.wait()
    _end_group(process.pid)


def _end_group(leader: int) -> None:
    """End every process that still runs in a process's group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGTERM)


def _failed_cells(lines: list[str]) -> list[str]:
    """For each lesson with a cell that failed: its page and line, and the cell's own traceback."""
    marks = (re.match(r"(?P<page>\S+\.md): .*\[mystnb\.exec\]", line) for line in lines)
    failed = dict.fromkeys(mark["page"] for mark in marks if mark)
    found = []
    for page in failed:
        report = (HTML / "reports" / page).with_suffix(".err.log")
        text = _COLOUR.sub("", report.read_text(encoding="utf-8", errors="replace")) if report.exists() else ""
        parts = re.split(r"^-{18}$", text, maxsplit=2, flags=re.MULTILINE)
        if len(parts) == 3:
            source, trace = parts[1].strip("\n"), parts[2].strip()
            line = _line_of(ROOT / page, source, trace)
            found.append(f"{page}:{line}: this line failed.\n{trace}")
    return [text.replace(f"{ROOT}/", "") for text in found]


def _line_of(page: Path, source: str, trace: str) -> int:
    """The line of a lesson at which a cell failed; the cell's first line where the traceback does not tell."""
    text = page.read_text(encoding="utf-8")
    start = text.find(source)
    first = text.count("\n", 0, start) + 1 if start >= 0 else 1
    within = re.search(r"Cell In\[\d+\], line (\d+)", trace)
    return first + int(within.group(1)) - 1 if within and start >= 0 else first


def _complaints(lines: list[str]) -> list[str]:
    """The warnings, errors and tracebacks among the output's lines, in order."""
    kept, inside = [], False
    for line in lines:
        if (
            re.search(r"(WARNING|ERROR|CRITICAL|SEVERE):|Error:|^Traceback|exception", line)
            and "IPKernelApp" not in line
        ):
            inside = True
        elif re.match(
            r"(reading sources|writing output|looking for|build finished|preparing|copying|=+$|\S+\.md: )", line
        ):
            inside = False
        if inside:
            kept.append(line)
    failed = _failed_cells(lines)
    if failed:
        # Missing values in the prose are a consequence of the cell that failed, not a fault of their own.
        warnings = [line for line in kept if re.match(r"\S+\.md(:\d+)?: WARNING", line)]
        others = [line for line in warnings if "[mystnb." not in line]
        return [*failed, *others]
    return kept


def build(console: Console) -> None:
    """Build what has changed.

    Raises:
        BookError: a page has a warning, a cell failed, or a published value is not checked by any lesson.
    """
    # Without what runs in the browser, pages have no buttons for it.
    whole = fingerprint(BOOK) + ("" if live.is_wanted() else "-without-live")
    helper = fingerprint(HELPER)
    if stamped("book") == whole and (HTML / "index.html").exists():
        console.print("The book is up to date.")
        return
    unstamp("book")
    BUILD.mkdir(exist_ok=True)
    _forget_stale_outputs(helper)
    _forget_removed_pages()
    lines, status = _run_with_progress(console)
    if status != 0:
        # Sphinx reports a warning only while it reads a page: without its records the next run reports it again.
        shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
        complaints = _complaints(lines) or lines[-15:]
        raise BookError("\n".join(["The book was not built (full log: _build/book.log):", *complaints]))
    finish_notebooks()
    missing = [ident for ident, pages in coverage(EXECUTED).items() if not pages]
    if missing:
        raise BookError(
            f"No executed lesson cell has checked {len(missing)} published values: {', '.join(missing)}; "
            "add `check(id, value)` to the lesson that computes each."
        )
    stamp("book", whole)


def add_live(console: Console) -> None:
    """Add the part that runs in the browser, or leave it out where LIVE=0 says so.

    Raises:
        LiveError: it could not be built; the book itself is there.
    """
    if live.is_wanted():
        live.build(console)
    else:
        live.leave_out(console)


def _run_with_progress(console: Console) -> tuple[list[str], int]:
    """Run the build with a bar over pages; where output is no terminal, one line for every tenth of the way."""
    lines: list[str] = []
    status = 1
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("Reading and executing lessons", total=100)
        shown = -1
        for line, code in _build_lines():
            lines.append(line)
            if code is not None:
                status = code
            share = re.match(r"(reading sources|writing output)\.\.\. \[\s*(\d+)%\] (.*)", line)
            if share is None:
                continue
            stage, percent, page = share.group(1), int(share.group(2)), share.group(3)
            what = "Executing lessons" if stage == "reading sources" else "Writing pages"
            progress.update(task, completed=percent, description=what)
            tenth = (stage == "writing output") * 10 + percent // 10
            if not console.is_terminal and tenth > shown:
                console.print(f"{what}: {percent} % ({page})", highlight=False)
                shown = tenth
    return lines, status


def main() -> int:
    """Build the book; exit status 1 and the reasons where it could not be built."""
    console = Console(stderr=True, highlight=False)
    try:
        build(console)
        add_live(console)
    except (BookError, CourseFilesError, LiveError) as error:
        style = "red" if console.is_terminal else None
        console.print(f"error: {error}", markup=False, style=style, soft_wrap=True)
        return 1
    console.print(f"The book is in {(HTML / 'index.html').relative_to(ROOT)}; `make serve` serves it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
