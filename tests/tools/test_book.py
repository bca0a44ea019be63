"""Building the book: real builds of tiny books, and the logic around the builder with a stand-in for it."""

import html
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.helpers import ROOT, CourseCopy, copy_of_course
from tools import book, places
from tools.live.exceptions import LiveError

HEAD = """\
---
file_format: mystnb
kernelspec:
  name: python3
  display_name: Python 3
---

"""


def cell(*lines: str) -> str:
    """A cell of a lesson."""
    return "\n".join(["```{code-cell} ipython3", *lines, "```", ""])


ONE = f"""\
{HEAD}# One

{cell("from ffn import check, relu", "check('ex1.relu_A', relu(1.7))")}
{cell("import time", "from ffn.extra import NUMBER", "print('number', NUMBER)")}
{cell("print('moment', time.time_ns())")}
"""
TWO = f"""\
{HEAD}# Two

{cell("import time", "from ffn import check, relu", "check('ex1.relu_B', relu(-1.2))")}
{cell("print('moment', time.time_ns())")}
"""
TOC = "format: jb-book\nroot: book/index\nchapters:\n  - file: book/one\n"


def values(*idents: str) -> str:
    """published.toml with these values of Example 1 only."""
    text = (ROOT / "ffn" / "published.toml").read_text(encoding="utf-8")
    lines = [re.search(rf"^{ident.removeprefix('ex1.')} = .*$", text, flags=re.MULTILINE) for ident in idents]
    return "\n".join([text.split("[values.ex1]")[0], "[values.ex1]", *(line[0] for line in lines if line), ""])


@dataclass(frozen=True)
class Book:
    """A course with a tiny book."""

    course: CourseCopy

    def build(self) -> subprocess.CompletedProcess[str]:
        return self.course.module("tools.book")

    def write(self, name: str, text: str) -> None:
        (self.course.root / name).write_text(text, encoding="utf-8")

    def replace(self, name: str, old: str, new: str) -> None:
        text = (self.course.root / name).read_text(encoding="utf-8")
        assert old in text
        self.write(name, text.replace(old, new))

    def page(self, name: str) -> str:
        """The text of a page as it was built."""
        page = (self.course.root / "_build" / "html" / "book" / f"{name}.html").read_text(encoding="utf-8")
        article = page.split("<article")[1].split("</article>")[0]
        return " ".join(html.unescape(re.sub(r"<[^>]+>", "", article)).split())

    def moment(self, name: str) -> str:
        """When the page's last cell was executed, as its output says."""
        (found,) = re.findall(r"moment (\d+)", self.page(name))
        return str(found)


def tiny_book(root: Path, toc: str, **pages: str) -> Book:
    tiny = Book(
        copy_of_course(root, "tools", "ffn", "book/_ext", "book/_static", "_config.yml", "requirements.txt")
    )
    shutil.copyfile(ROOT / "book" / "references.bib", root / "book" / "references.bib")
    tiny.write("_toc.yml", toc)
    tiny.write("book/index.md", "# Start\n\nText.\n")
    tiny.write("ffn/extra.py", "NUMBER = 17\n")
    for name, text in pages.items():
        tiny.write(f"book/{name}.md", text)
    return tiny


@dataclass(frozen=True)
class Step:
    """What a build said, and what the book was like after it."""

    returncode: int
    said: str
    pages: dict[str, str]
    moments: dict[str, str]
    log_written: int


def step(tiny: Book) -> Step:
    done = tiny.build()
    return Step(
        returncode=done.returncode,
        said=done.stderr,
        pages={name: tiny.page(name) for name in ("one", "two")},
        moments={name: tiny.moment(name) for name in ("one", "two")},
        log_written=(tiny.course.root / "_build" / "book.log").stat().st_mtime_ns,
    )


# ------------------------------------------------------------------------- a book, built again and again
# Each fixture changes one thing after the build before it.


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Book:
    made = tiny_book(tmp_path_factory.mktemp("tiny") / "course", TOC + "  - file: book/two\n", one=ONE, two=TWO)
    made.write("ffn/published.toml", values("ex1.relu_A", "ex1.relu_B"))
    return made


@pytest.fixture(scope="module")
def first(tiny: Book) -> Step:
    return step(tiny)


@pytest.fixture(scope="module")
def again(tiny: Book, first: Step) -> Step:
    return step(tiny)


@pytest.fixture(scope="module")
def text_changed(tiny: Book, again: Step) -> Step:
    tiny.replace("book/one.md", "# One", "# One, revised")
    return step(tiny)


@pytest.fixture(scope="module")
def code_changed(tiny: Book, text_changed: Step) -> Step:
    tiny.replace("book/one.md", "'number'", "'the number'")
    return step(tiny)


@pytest.fixture(scope="module")
def helper_changed(tiny: Book, code_changed: Step) -> Step:
    tiny.write("ffn/extra.py", "NUMBER = 23\n")
    return step(tiny)


@pytest.fixture(scope="module")
def out_of_contents(tiny: Book, helper_changed: Step) -> Step:
    tiny.write("_toc.yml", TOC)
    return step(tiny)


@pytest.mark.slow
def test_a_book_is_built_and_the_place_is_named(first: Step) -> None:
    assert first.returncode == 0, first.said
    assert first.said.splitlines()[-1] == "The book is in _build/html/index.html; `make serve` serves it."


@pytest.mark.slow
def test_the_build_shows_how_far_it_is(first: Step) -> None:
    assert "Executing lessons: 100 % (book/two)" in first.said
    assert "Writing pages: 100 % (book/two)" in first.said


@pytest.mark.slow
def test_a_book_without_what_runs_in_the_browser_says_so(first: Step) -> None:
    assert "The part that runs in the browser was left out; `make book` builds it." in first.said.splitlines()


@pytest.mark.slow
def test_an_executed_page_shows_its_checks_and_outputs(first: Step) -> None:
    assert "✓ published 1.7 · computed 1.7 ex1.relu_A, worked examples, Example 1, cell A" in first.pages["one"]
    assert "number 17" in first.pages["one"]


@pytest.mark.slow
def test_a_second_run_with_nothing_changed_builds_nothing(first: Step, again: Step) -> None:
    assert again.returncode == 0
    assert "The book is up to date." in again.said
    assert again.log_written == first.log_written


@pytest.mark.slow
def test_a_change_of_text_executes_nothing(again: Step, text_changed: Step) -> None:
    assert text_changed.returncode == 0, text_changed.said
    assert "One, revised" in text_changed.pages["one"]
    assert text_changed.moments == again.moments


@pytest.mark.slow
def test_a_change_of_code_executes_that_lesson_only(text_changed: Step, code_changed: Step) -> None:
    assert code_changed.returncode == 0, code_changed.said
    assert "the number 17" in code_changed.pages["one"]
    assert code_changed.moments["one"] != text_changed.moments["one"]
    assert code_changed.moments["two"] == text_changed.moments["two"]


@pytest.mark.slow
def test_a_change_in_the_helper_module_executes_every_lesson(code_changed: Step, helper_changed: Step) -> None:
    assert helper_changed.returncode == 0, helper_changed.said
    assert "the number 23" in helper_changed.pages["one"]
    assert helper_changed.moments["two"] != code_changed.moments["two"]


@pytest.mark.slow
def test_a_page_that_left_the_contents_no_longer_counts_as_checked(out_of_contents: Step) -> None:
    assert out_of_contents.returncode == 1
    assert "No executed lesson cell has checked 1 published values: ex1.relu_B; add" in out_of_contents.said


# ------------------------------------------------------------------------------------- pages with a fault

FAULTS = {
    "failing-cell": cell("def half(x):", "    return x / 0", "", "", "print('before the fault')", "half(3)"),
    "stderr": cell("import warnings", "warnings.warn('a warning in a cell')"),
    "broken-link": "See [the other page](nowhere.md).\n",
}


@dataclass(frozen=True)
class Broken:
    """Two builds in a row of a book with a fault on the page `fault`, the second with nothing changed."""

    course: CourseCopy
    runs: tuple[subprocess.CompletedProcess[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module", params=FAULTS)
def broken(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Broken:
    text = f"{HEAD}# Fault\n\nText.\n\n{FAULTS[request.param]}"
    toc = "format: jb-book\nroot: book/index\nchapters:\n  - file: book/fault\n"
    faulty = tiny_book(tmp_path_factory.mktemp(request.param) / "course", toc, fault=text)
    faulty.write("ffn/published.toml", values("ex1.relu_A"))
    return Broken(faulty.course, (faulty.build(), faulty.build()))


EXPECTED = {
    "failing-cell": [
        "book/fault.md:18: ",
        "----> 6 half(3)",
        "return x / 0",
        "ZeroDivisionError: division by zero",
    ],
    "stderr": ["book/fault.md:", "stderr was found in the cell outputs"],
    "broken-link": ["book/fault.md", "WARNING", "nowhere.md"],
}


@pytest.mark.slow
@pytest.mark.parametrize("run", [0, 1], ids=["at-once", "on-the-next-run"])
def test_a_page_with_a_fault_fails_the_build_with_page_and_reason(
    broken: Broken, request: pytest.FixtureRequest, run: int
) -> None:
    done = broken.runs[run]
    assert done.returncode == 1
    (fault,) = [name for name in FAULTS if name in request.node.callspec.id]
    for expected in EXPECTED[fault]:
        assert expected in done.stderr


@pytest.mark.slow
def test_a_book_with_a_fault_does_not_count_as_built(broken: Broken) -> None:
    assert not (broken.course.root / "_build" / "stamps" / "book.json").exists()


@pytest.mark.slow
def test_the_report_of_a_fault_is_short(broken: Broken) -> None:
    report = broken.runs[0].stderr.split("error: ")[1]
    assert "site-packages" not in report
    assert "copying" not in report
    assert len(report.splitlines()) <= 40


@pytest.mark.slow
def test_the_whole_log_of_a_failed_build_is_kept(broken: Broken) -> None:
    log = (broken.course.root / "_build" / "book.log").read_text(encoding="utf-8")
    assert "Running Sphinx" in log
    assert "\x1b[" not in log
    assert f"{broken.course.root}/" not in log


# ------------------------------------------------------------------- the logic, with a stand-in for the builder


class StandIn:
    """A course's folder whose builder writes what a test wants, and counts its runs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.lines = ["reading sources... [100%] book/one", "writing output... [100%] book/one"]
        self.status = 0
        self.checked = ["ex1.relu_A"]
        self.runs = 0
        self.page("book/one.md")

    def page(self, name: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text("# A page\n")

    def build_lines(self) -> Iterator[tuple[str, int | None]]:
        self.runs += 1
        outputs = [{"metadata": {"ffn-check": {"id": ident}}} for ident in self.checked]
        executed = places.EXECUTED / "book" / "one.ipynb"
        executed.parent.mkdir(parents=True, exist_ok=True)
        executed.write_text(json.dumps({"cells": [{"outputs": outputs}]}))
        places.HTML.mkdir(exist_ok=True)
        (places.HTML / "index.html").touch()
        for line in self.lines:
            yield line, None
        yield "", self.status

    def build(self) -> str:
        """Build; what was said."""
        console = Console(record=True, width=200, quiet=False, file=None, force_terminal=False)
        with console.capture() as said:
            book.build(console)
        return said.get()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    build = tmp_path / "_build"
    folders = {"ROOT": tmp_path, "BUILD": build, "HTML": build / "html", "EXECUTED": build / "jupyter_execute"}
    for name, folder in folders.items():
        monkeypatch.setattr(places, name, folder)
        monkeypatch.setattr(book, name, folder)
    monkeypatch.setattr(places, "STAMPS", build / "stamps")
    monkeypatch.setattr(book, "LOG", build / "book.log")
    monkeypatch.setattr(book, "_build_lines", made.build_lines)
    monkeypatch.setattr(book, "finish_notebooks", lambda: None)
    entry = book.coverage.__globals__["published"]()["ex1.relu_A"]
    monkeypatch.setitem(book.coverage.__globals__, "published", lambda: {"ex1.relu_A": entry, "ex1.z_A": entry})
    made.checked.append("ex1.z_A")
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/one\n")
    return made


def test_what_is_built_is_not_built_again(stand_in: StandIn) -> None:
    stand_in.build()
    assert stand_in.build() == "The book is up to date.\n"
    assert stand_in.runs == 1


@pytest.mark.parametrize("name", ["book/two.md", "book/_static/course.css", "_config.yml", "ffn/blocks.py"])
def test_a_new_source_starts_a_build(stand_in: StandIn, name: str) -> None:
    stand_in.build()
    stand_in.page(name)
    stand_in.build()
    assert stand_in.runs == 2


def test_pages_that_were_removed_by_hand_start_a_build(stand_in: StandIn) -> None:
    stand_in.build()
    shutil.rmtree(places.HTML)
    stand_in.build()
    assert stand_in.runs == 2


def test_an_id_that_no_lesson_checks_makes_the_build_fail_naming_it(stand_in: StandIn) -> None:
    stand_in.checked.remove("ex1.z_A")
    with pytest.raises(book.BookError, match=r"checked 1 published values: ex1\.z_A; add `check\(id, value\)`"):
        stand_in.build()


def test_a_build_without_every_check_is_tried_again_on_the_next_run(stand_in: StandIn) -> None:
    stand_in.checked.remove("ex1.z_A")
    for _ in range(2):
        with pytest.raises(book.BookError, match=r"ex1\.z_A"):
            stand_in.build()
    assert stand_in.runs == 2


def test_a_build_that_fails_takes_back_the_earlier_stamp(stand_in: StandIn) -> None:
    stand_in.build()
    stand_in.page("book/two.md")
    stand_in.status = 1
    with pytest.raises(book.BookError):
        stand_in.build()
    (stand_in.root / "book" / "two.md").unlink()
    stand_in.status = 0
    stand_in.build()
    assert stand_in.runs == 3


def test_an_interrupted_build_does_not_count(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.build()
    stand_in.page("book/two.md")

    def interrupted() -> Iterator[tuple[str, int | None]]:
        yield "reading sources... [ 50%] book/one", None
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(book, "_build_lines", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stand_in.build()
    stand_in.build()
    assert stand_in.runs == 2


@pytest.mark.parametrize("changed", ["ffn/blocks.py", "ffn/published.toml", "requirements.txt"])
def test_a_change_in_the_helper_drops_the_cached_outputs(stand_in: StandIn, changed: str) -> None:
    stand_in.build()
    cached = places.BUILD / ".jupyter_cache" / "global.db"
    cached.parent.mkdir()
    cached.touch()
    stand_in.page(changed)
    stand_in.build()
    assert not cached.exists()


@pytest.mark.parametrize("changed", ["book/one.md", "book/references.bib", "_config.yml"])
def test_a_change_elsewhere_keeps_the_cached_outputs(stand_in: StandIn, changed: str) -> None:
    stand_in.build()
    cached = places.BUILD / ".jupyter_cache" / "global.db"
    cached.parent.mkdir()
    cached.touch()
    (stand_in.root / changed).write_text("other")
    stand_in.build()
    assert cached.exists()


def test_a_failed_build_shows_the_complaints_alone(stand_in: StandIn) -> None:
    stand_in.status = 1
    stand_in.lines = [
        "Running Sphinx v7.4.7",
        "reading sources... [ 50%] book/one",
        "book/one.md: Executing notebook using local CWD [mystnb]",
        "[IPKernelApp] WARNING | Kernel is running over TCP without encryption.",
        "book/one.md:12: WARNING: Executing notebook failed: CellExecutionError [mystnb.exec]",
        "book/one.md: Notebook exception traceback saved in: one.err.log [mystnb]",
        "Traceback (most recent call last):",
        "  1 / 0",
        "ZeroDivisionError: division by zero",
        "looking for now-outdated files... none found",
        "build finished with problems, 1 warning.",
    ]
    with pytest.raises(book.BookError) as caught:
        stand_in.build()
    assert str(caught.value).splitlines() == [
        "The book was not built (full log: _build/book.log):",
        stand_in.lines[4],
        *stand_in.lines[5:9],
    ]


def test_a_failed_build_without_complaint_shows_its_last_lines(stand_in: StandIn) -> None:
    stand_in.status = 1
    stand_in.lines = [f"line {i}" for i in range(40)]
    with pytest.raises(book.BookError) as caught:
        stand_in.build()
    assert str(caught.value).splitlines()[1:] == stand_in.lines[-14:]


def test_a_failed_build_drops_sphinx_records_so_that_warnings_come_again(stand_in: StandIn) -> None:
    records = places.BUILD / ".doctrees" / "environment.pickle"
    stand_in.build()
    records.parent.mkdir()
    records.touch()
    stand_in.page("book/two.md")
    stand_in.status = 1
    with pytest.raises(book.BookError):
        stand_in.build()
    assert not records.exists()


def test_progress_where_output_is_no_terminal_is_a_line_for_every_tenth(stand_in: StandIn) -> None:
    pages = [
        f"{stage}... [{i:3d}%] page-{i}" for stage in ("reading sources", "writing output") for i in range(101)
    ]
    stand_in.lines = pages
    said = stand_in.build().splitlines()
    assert len(said) == 21
    assert said[0] == "Executing lessons: 0 % (page-0)"
    assert said[-1] == "Writing pages: 100 % (page-100)"


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("build", book.BookError("a page has a fault")),
        ("build", book.CourseFilesError("a file is missing")),
        ("add_live", LiveError("numpy.whl could not be fetched")),
    ],
)
def test_the_command_reports_in_plain_words_and_with_exit_status_1(
    step: str, error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(console: Any) -> None:
        raise error

    monkeypatch.setattr(book, "build", lambda console: None)
    monkeypatch.setattr(book, step, fails)
    assert book.main() == 1
    assert capsys.readouterr().err == f"error: {error}\n"


def test_long_lines_of_a_report_are_not_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(console: Any) -> None:
        raise book.BookError("a long line " * 40)

    monkeypatch.setattr(book, "build", fails)
    book.main()
    assert len(capsys.readouterr().err.splitlines()) == 1
