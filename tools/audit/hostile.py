"""Grade the hostile submissions with the engine and with stock nbgrader, and count where each is right.

The tests have the submissions and what grades them; `python -m tests.hostile.stock` does it in a process of its own.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from typing import IO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tools.places import ROOT, tool_environment

__all__ = ["HostileError", "Row", "case_names", "grade_cases", "hostile_figures", "show_rows", "summary"]

CASES = ROOT / "tests" / "hostile" / "cases"
GRADERS = {"engine": "the engine", "nbgrader": "stock nbgrader"}
LINES = 8
"""Where there is no terminal, a grader says so many times how far it is."""

_COMMAND = (sys.executable, "-m", "tests.hostile.stock", "--json")
_SIGNS = {True: ("✓ ", "green"), False: ("✗ ", "red")}


class HostileError(Exception):
    """The hostile submissions cannot be graded; the message is what the command said."""


@dataclass(frozen=True)
class Row:
    """A submission: the right verdict and points (of 12), and what the engine and stock nbgrader made of it."""

    case: str
    status: str
    points: float
    engine_status: str
    engine_points: float | None
    right: bool
    stock: str
    stock_right: bool
    stock_seen: bool


def case_names() -> list[str]:
    """The names of all hostile submissions."""
    return sorted(path.stem for path in CASES.glob("*.toml"))


def grade_cases(names: Sequence[str], console: Console) -> list[Row]:
    """Grade the submissions with these names with both, and show on a console how far it is.

    Raises:
        HostileError: they cannot be graded here.
    """
    if not console.is_terminal:
        return _graded(names, _Lines(console, len(names)))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        tasks = {key: bar.add_task(f"Grading with {name}", total=len(names)) for key, name in GRADERS.items()}
        return _graded(names, lambda grader: bar.advance(tasks[grader]))


class _Lines:
    """Says now and then how many submissions a grader has graded."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total = console, total
        self._done = dict.fromkeys(GRADERS, 0)

    def __call__(self, grader: str) -> None:
        self._done[grader] += 1
        done = self._done[grader]
        if done * LINES // self._total > (done - 1) * LINES // self._total:
            self._console.print(f"Hostile submissions: {GRADERS[grader]} has graded {done} of {self._total}.")


def _graded(names: Sequence[str], told: Callable[[str], None]) -> list[Row]:
    command = [*_COMMAND, *names]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        with subprocess.Popen(
            command, cwd=ROOT, env=tool_environment(), stdout=subprocess.PIPE, stderr=said, encoding="utf-8"
        ) as process:
            assert process.stdout is not None
            rows = _rows(process.stdout, told)
        said.seek(0)
        lines = said.read().strip().splitlines()
    if process.returncode != 0 or rows is None:
        why = lines[-1].removeprefix("error: ") if lines else f"it ended with {process.returncode}."
        raise HostileError(f"the hostile submissions could not be graded: {why}")
    return rows


def _rows(lines: IO[str], told: Callable[[str], None]) -> list[Row] | None:
    """The rows, which the last line has; the lines before it tell who has graded one more."""
    names = [field.name for field in fields(Row)]
    for line in lines:
        said = json.loads(line)
        if "rows" in said:
            return [Row(**{name: row[name] for name in names}) for row in said["rows"]]
        told(said["done"])
    return None


def show_rows(rows: Iterable[Row], console: Console) -> None:
    """Print the table: what is right, and what the engine and stock nbgrader say."""
    table = Table(title="Hostile submissions (12 points each)", title_justify="left")
    for heading in ("case", "right", "the engine"):
        table.add_column(heading, no_wrap=True)
    # The one that may be narrower than what is in it, which is then cut.
    table.add_column("stock nbgrader")
    for row in rows:
        table.add_row(
            Text(row.case),
            Text(_verdict(row.status, row.points)),
            _marked("" if row.right else _verdict(row.engine_status, row.engine_points), row.right),
            _marked(row.stock, row.stock_right) if row.stock_seen else _cut(f"- {row.stock}", "yellow"),
        )
    console.print(table)


def _verdict(status: str, points: float | None) -> str:
    return status if points is None else f"{status}, {points:g}"


def _marked(text: str, right: bool) -> Text:
    sign, style = _SIGNS[right]
    return _cut(sign + text, style)


def _cut(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def summary(rows: Sequence[Row]) -> str:
    """How many verdicts are right, in a sentence."""
    unseen = sum(not row.stock_seen for row in rows)
    engine, stock = sum(row.right for row in rows), sum(row.stock_right for row in rows)
    left = f"; {unseen} were not run with stock nbgrader" if unseen else ""
    return (
        f"Hostile submissions: the engine is right on {engine} of {len(rows)}, "
        f"stock nbgrader {version('nbgrader')} on {stock} of {len(rows) - unseen}{left}."
    )


def hostile_figures(rows: Sequence[Row]) -> dict[str, int]:
    """The figures, as _build/audit.json holds them."""
    return {
        "total": len(rows),
        "right": sum(row.right for row in rows),
        "stock_right": sum(row.stock_right for row in rows),
    }
