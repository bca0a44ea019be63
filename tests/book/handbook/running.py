"""Run the handbook: every command of its pages, one after another, in a copy of the course with the class beside it."""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from grader.course import Course
from tests.book.handbook.pages import Block, Command, blocks, commands, handbook_pages, text_of
from tests.book.handbook.people import UNIT, fill_folder, fill_zip
from tests.grader.engine.postgres import ABSENT, USER, programs, server
from tests.helpers import CODE, copy_of_course, free_port

__all__ = ["Done", "Shown", "run_handbook"]

SECONDS = 300
CONFIG = "nbgrader_config.py"
DATABASE = "book/handbook/postgresql"
"""The page that needs PostgreSQL on this machine."""


@dataclass(frozen=True)
class Done:
    """A command that was run: where it stands, what it wrote, and the exit status that it had."""

    line: int
    command: Command
    wrote: str
    status: int


@dataclass(frozen=True)
class Shown:
    """An output on a page, and what came out in its place."""

    line: int
    text: str
    wrote: str


@dataclass
class Page:
    """What became of a page; ``skipped`` says why its commands were not run."""

    done: list[Done] = field(default_factory=list)
    shown: list[Shown] = field(default_factory=list)
    skipped: str = ""


def run_handbook(folder: Path) -> dict[str, Page]:
    """Run all pages in the order of the contents; a command that fails does not keep those after it from running."""
    with _Run(folder) as run:
        return {page: run.page(page) for page in handbook_pages()}


class _Run:
    def __init__(self, folder: Path) -> None:
        self._copy = copy_of_course(folder / "course", *CODE, f"solutions/{UNIT}", f"exercises/{UNIT}")
        self._course = Course(self._copy.root)
        (folder / "class").mkdir()
        self._stack = contextlib.ExitStack()
        self._hosts = [("8786", str(free_port())), ("dask.example.edu", "127.0.0.1")]
        self._just_done: list[Done] = []

    def __enter__(self) -> "_Run":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def page(self, page: str) -> Page:
        made = Page()
        if page == DATABASE:
            made.skipped = self._start_database()
        if not made.skipped:
            with contextlib.ExitStack() as servers:
                for block in blocks(text_of(page)):
                    self._block(block, made, servers)
        return made

    def _block(self, block: Block, made: Page, servers: contextlib.ExitStack) -> None:
        if block.kind == "bash":
            self._just_done = [self._command(block.line, command, servers) for command in commands(block.text)]
            made.done += self._just_done
        elif block.kind == "text":
            made.shown.append(Shown(block.line, block.text, "".join(done.wrote for done in self._just_done)))
        elif block.kind == "file":
            self._file(block.name, block.text)
        else:
            STEPS[block.text](self._course)

    # -------------------------------------------------------------------------------------------------- commands

    def _command(self, line: int, command: Command, servers: contextlib.ExitStack) -> Done:
        if command.text.startswith("dask "):
            return Done(line, command, *servers.enter_context(self._server(command.text)))
        try:
            done = subprocess.run(
                ["bash", "-c", self._here(command.text)],
                cwd=self._copy.root,
                env=self._copy.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return Done(line, command, str(error), 124)
        return Done(line, command, done.stdout, done.returncode)

    def _here(self, text: str) -> str:
        """A command, or a line of the configuration, with the hosts of the pages replaced by this machine."""
        for shown, here in self._hosts:
            text = text.replace(shown, here)
        return text

    @contextlib.contextmanager
    def _server(self, command: str) -> Iterator[tuple[str, int]]:
        """A scheduler or a worker that runs until the page's end: what it says when it is ready, and 0."""
        log = self._copy.root.parent / f"{command.split()[1]}.log"
        with log.open("w") as stream:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {self._here(command)}"],
                cwd=self._copy.root,
                env=self._copy.environment(),
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
            )
        try:
            until = time.monotonic() + SECONDS / 5
            while not READY.search(said := log.read_text()) and process.poll() is None:
                if time.monotonic() > until:
                    break
                time.sleep(0.1)
            yield said, 0 if READY.search(said) else process.poll() or 1
        finally:
            process.terminate()
            process.wait(timeout=30)

    # ----------------------------------------------------------------------------------------------------- files

    def _file(self, name: str, text: str) -> None:
        path = self._copy.root / name
        if name == CONFIG:
            with path.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{self._here(text)}")
        elif name.endswith(".zip"):
            fill_zip(self._course, path, text)
        elif name.endswith("/"):
            fill_folder(self._course, path, text)
        elif name.endswith(".ipynb"):
            change_notebook(path, text)
        else:
            path.write_text(text, encoding="utf-8")

    def _start_database(self) -> str:
        """Start PostgreSQL for a page; why that cannot be, where it cannot."""
        if programs() is None:
            return ABSENT
        started = self._stack.enter_context(server())
        folder = str(started.folder)
        # The server listens at a socket in its folder.
        make = ["createuser", "--host", folder, "--username", USER, "--superuser", "grader"]
        subprocess.run(make, cwd="/", stdin=subprocess.DEVNULL, check=True)
        self._hosts += [("@db.example.edu/gradebook", f"@/gradebook?host={folder}"), ("db.example.edu", folder)]
        return ""


READY = re.compile(r"Scheduler at:|Registered to:")


def change_notebook(path: Path, diff: str) -> None:
    """Change the one cell of a notebook that has the lines which a diff takes away."""
    lines = diff.splitlines()
    before = "\n".join(line[1:] for line in lines if line[:1] in ("-", " "))
    after = "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if before in "".join(cell["source"])]
    (cell,) = cells
    cell["source"] = "".join(cell["source"]).replace(before, after)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# ------------------------------------------------------------------------------------------------- steps of a person


def grade_by_hand(course: Course) -> None:
    """Give every written answer that waits its points and a comment, as the formgrader does."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        for submission in gradebook.assignment_submissions(UNIT):
            for notebook in submission.notebooks:
                for grade in notebook.grades:
                    if grade.needs_manual_grade:
                        grade.manual_score, grade.needs_manual_grade = 2.0, False
                for comment in notebook.comments:
                    if comment.name == "inactive_or_dead":
                        comment.manual_comment = "Say which activation does not die, and why."
        gradebook.db.commit()


STEPS: dict[str, Callable[[Course], Any]] = {"the written answers are graded by hand": grade_by_hand}
