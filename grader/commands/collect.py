"""`grader collect`: from a learning management system's download to submissions."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from grader.course import Course
from grader.exceptions import LeftOutError

if TYPE_CHECKING:
    from grader.collect.run import Row, Summary

__all__ = ["collect"]

_ERR = Console(stderr=True, highlight=False)
_MOST_ROWS = 200
_LONGEST_PATH = 100

_EPILOG = """\b
Forms of file names (--format):
  canvas       lovelaceada_12345_67890_activations.ipynb, LATE where late
  moodle       Ada Lovelace_12345_assignsubmission_file_/activations.ipynb
  blackboard   Activations_alovelace_attempt_2026-11-30-14-05-09_work.ipynb
  brightspace  12345-67890 - Ada Lovelace - Nov 30, 2026 205 PM/work.ipynb
  folder       ada/activations/activations.ipynb, ada.ipynb or
               ada_activations.ipynb

\b
The keys of --json:
  unit, format, timezone, dry_run
  collected    learner, file, time (UTC; null where the download has none),
               attempts (how many are there), late (null where nothing says
               it), done, beside (files of the learner's that stay behind)
  left_out     who, files, reason
  missing      of the list: id, name, email
"""


@click.command(epilog=_EPILOG)
@click.argument("unit")
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--roster",
    type=click.Path(path_type=Path),
    help="List of the learners (CSV, as the LMS exports it), to find them by number, login, e-mail address or name.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "canvas", "moodle", "blackboard", "brightspace", "folder"]),
    default="auto",
    show_default=True,
    help="Whose file names these are.",
)
@click.option(
    "--timezone",
    metavar="NAME",
    help="Time zone of the times in file names, as in Europe/Berlin (default: the course's, or this machine's).",
)
@click.option("--dry-run", is_flag=True, help="Say what would be done, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
@click.pass_obj
def collect(
    course_of: Callable[[], Course],
    unit: str,
    source: Path,
    roster: Path | None,
    form: str,
    timezone: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Lay the submissions of SOURCE into grader/var/submitted.

    SOURCE is the zip archive that Canvas, Moodle, Blackboard or Brightspace gives, or a folder. The newest notebook of
    each learner becomes the submission; earlier ones, and what was there before, go to grader/var/attempts, so nothing
    is overwritten. Collecting the same once more changes nothing. With a list of learners, it says who has handed in
    nothing, and the gradebook gets the names.

    Exit status 1 where a submission was left out; everything else is collected.
    """
    from grader.collect.run import collect as run

    columns = (TextColumn("Collecting"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=_ERR, disable=not _ERR.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=None)
        summary = run(
            course_of(),
            unit,
            source,
            roster=roster,
            form=form,
            timezone=timezone,
            dry_run=dry_run,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )
    if as_json:
        click.echo(json.dumps(_plain(summary, dry_run=dry_run), indent=2))
    else:
        _show(summary, dry_run=dry_run)
    if summary.left_out:
        raise LeftOutError(len(summary.left_out))


def _plain(summary: "Summary", *, dry_run: bool) -> dict[str, Any]:
    rows = [asdict(row) | {"time": row.time.isoformat() if row.time else None} for row in summary.rows]
    return {
        "unit": summary.unit,
        "format": summary.form,
        "timezone": summary.zone,
        "dry_run": dry_run,
        "collected": rows,
        "left_out": [asdict(left) for left in summary.left_out],
        "missing": [{"id": person.id, "name": person.shown, "email": person.email} for person in summary.missing],
    }


def _show(summary: "Summary", *, dry_run: bool) -> None:
    console = Console(highlight=False)
    console.print(_table(summary, dry_run=dry_run))
    if len(summary.rows) > _MOST_ROWS:
        console.print(f"and {len(summary.rows) - _MOST_ROWS} more; --json lists all")
    if summary.rows:
        console.print(_of_times(summary), markup=False, soft_wrap=True)
    for row in summary.rows:
        for path in row.beside:
            _say(f"{row.learner}: not collected, beside the notebook: {_short(path)}")
    for left in summary.left_out:
        files = ", ".join(map(_short, left.files[:5])) + (" and more" if left.files[5:] else "")
        _say(f"left out: {left.who + ': ' if left.who else ''}{files}: {left.reason}")
    if summary.missing:
        names = [f"{person.id} ({person.shown})" if person.shown else person.id for person in summary.missing]
        more = f" and {len(names) - _MOST_ROWS} more" if names[_MOST_ROWS:] else ""
        console.print(f"Nothing handed in: {', '.join(names[:_MOST_ROWS])}{more}", markup=False, soft_wrap=True)


def _of_times(summary: "Summary") -> str:
    if not any(row.time for row in summary.rows):
        return "This download has no times of handing in, so the grader counts nobody as late."
    return f"Times in the download were read as {summary.zone}; --timezone names another zone."


def _table(summary: "Summary", *, dry_run: bool) -> Table:
    title = f"{'What would be collected' if dry_run else 'Collected'} for the unit {summary.unit} ({summary.form})"
    table = Table(title=title, title_justify="left")
    for heading in ("learner", "file", "time (UTC)", "attempts", "late", "what was done"):
        table.add_column(heading, justify="right" if heading == "attempts" else "left", overflow="fold")
    for row in _first(summary.rows):
        time = f"{row.time:%Y-%m-%d %H:%M:%S}" if row.time else "unknown"
        late = {True: "late", False: "no", None: ""}[row.late]
        table.add_row(
            escape(row.learner), escape(_short(row.file)), time, str(row.attempts), late, escape(row.done)
        )
    return table


def _first(rows: "tuple[Row, ...]") -> "list[Row]":
    """The rows that are shown: those first where something was done."""
    return sorted(rows, key=lambda row: row.done == "unchanged")[:_MOST_ROWS]


def _short(path: str) -> str:
    return path if len(path) <= _LONGEST_PATH else f"...{path[-_LONGEST_PATH:]}"


def _say(text: str) -> None:
    _ERR.print(text, markup=False, soft_wrap=True)
