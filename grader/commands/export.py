"""`grader export`: scores as a table, as JSON, or in the file that Canvas or Moodle takes back."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from grader.commands.hints import tell_outdated_penalties
from grader.course import Course
from grader.exceptions import OutputInTheWayError

if TYPE_CHECKING:
    from grader.export.fill import Wishes

__all__ = ["export"]

FORMATS = ("csv", "json", "canvas", "moodle")
_FORMS = """\b
What becomes of a file from Canvas or Moodle:
  canvas  Grades > Export; the column "UNIT (123456)" is filled. Learners are
          found by SIS Login ID, SIS User ID, Integration ID, ID, then name.
          N/A and EX stay.
  moodle  the assignment's grading worksheet, or the grader report as CSV;
          Grade, or "Assignment: UNIT (Real)", is filled. Learners are found
          by email address, ID number, username, participant number, then
          name. A grade that cannot be changed stays.
All other cells, the order, the quotes and the line ends stay as they were.
"""


@click.command(epilog=_FORMS)
@click.argument("units", nargs=-1, metavar="[UNIT]...")
@click.option("--format", "form", type=click.Choice(FORMATS), help="What is written (default: csv).")
@click.option(
    "--template", type=click.Path(path_type=Path, dir_okay=False), help="The file that the LMS exported."
)
@click.option(
    "--roster", type=click.Path(path_type=Path, dir_okay=False), help="CSV with the learners' ids in the LMS."
)
@click.option("--column", help="The column to fill, where it is not named like the unit.")
@click.option(
    "--incomplete",
    type=click.Choice(["skip", "include", "refuse"]),
    default="skip",
    show_default=True,
    help="Scores that wait for a person: leave them out, write them as they are, or write nothing at all.",
)
@click.option("--scale", is_flag=True, help="Convert scores where the LMS gives other points for the unit.")
@click.option(
    "--comments", is_flag=True, help="Moodle's worksheet: write what was noticed as feedback comments, too."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    help="The file to write, - for standard output (default: one in grader/var/export).",
)
@click.option("--force", is_flag=True, help="Overwrite the file that -o names.")
@click.pass_obj
def export(
    course_of: Callable[[], Course],
    units: tuple[str, ...],
    form: str | None,
    template: Path | None,
    roster: Path | None,
    column: str | None,
    incomplete: str,
    scale: bool,
    comments: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Write scores: of every unit, or of those named.

    Without an argument, all of them to grader/var/grades.csv, in nbgrader's own columns. Scores are those after the
    penalty for being late, with what a person gave.

    Into a file from Canvas or Moodle (--template) they are filled for the learners of the gradebook; who is in one of
    them only, and what is left out, is said on standard error. The template itself is never changed, and a file that
    is there only with --force. Exit status 1 where nothing could be written.
    """
    if form is None and (template or roster or column or scale or comments):
        raise click.UsageError("Say with --format which file is filled in: canvas or moodle.")
    is_lms = form in ("canvas", "moodle")
    if is_lms and (template is None or not units):
        raise click.UsageError(f"--format {form} needs the UNIT, and --template FILE, the file that is filled in.")
    if not is_lms and (template or roster or column or scale or comments):
        raise click.UsageError("--template, --roster, --column, --scale and --comments go with canvas and moodle.")
    if len(units) > 1 and (column or form == "moodle"):
        raise click.UsageError("A single column takes the scores of a single UNIT.")
    course = course_of()
    if form is None and not units and output is None:
        _export_all(course)
        tell_outdated_penalties(course, _units_of(course))
        return
    target = output or course.var / "export" / f"{'-'.join(units) or 'scores'}{_ENDINGS[form or 'csv']}"
    _require_free(target, template, mine=output is None or force)
    if is_lms:
        assert template is not None
        wishes = _wishes(course, units[0], column, incomplete, roster, scale=scale, comments=comments)
        data = _filled(course, str(form), template, units, wishes)
    else:
        data = _table(course, form or "csv", units, incomplete)
    _put(course, target, data)
    tell_outdated_penalties(course, units or _units_of(course))


def _units_of(course: Course) -> list[str]:
    from grader.export.results import units_with_results

    return units_with_results(course)


_ENDINGS = {"csv": ".csv", "json": ".json", "canvas": "-canvas.csv", "moodle": "-moodle.csv"}


def _export_all(course: Course) -> None:
    from grader import stock

    stock.export_csv(course)
    click.echo(f"Scores are in {course.grades_csv.relative_to(course.root)}.")


def _require_free(target: Path, template: Path | None, *, mine: bool) -> None:
    """See that nothing is overwritten that is to be kept."""
    if str(target) == "-" or not target.exists():
        return
    if template is not None and template.exists() and target.samefile(template):
        raise OutputInTheWayError(target, template=True)
    if not mine:
        raise OutputInTheWayError(target, template=False)


def _table(course: Course, form: str, units: tuple[str, ...], incomplete: str) -> bytes:
    from grader.export.fill import left_out
    from grader.export.results import results, units_with_results
    from grader.export.table import as_csv, as_json

    found = [
        result
        for unit in units or units_with_results(course)
        for result in left_out(results(course, unit), unit, incomplete)
    ]
    if form == "csv":
        return as_csv(course, found, incomplete=incomplete).encode()
    return as_json(course, found, incomplete=incomplete).encode()


def _wishes(
    course: Course,
    unit: str,
    column: str | None,
    incomplete: str,
    roster: Path | None,
    *,
    scale: bool,
    comments: bool,
) -> "Wishes":
    from grader.export.fill import Wishes

    aliases = said = None
    if roster is not None:
        from grader.export.roster import aliases_of

        aliases = aliases_of(roster)
    if comments:
        from grader.feedback import comments as comments_of

        said = comments_of(course, unit)
    return Wishes(column, incomplete, scale, aliases, said)


def _filled(course: Course, form: str, template: Path, units: tuple[str, ...], wishes: "Wishes") -> bytes:
    from grader.export.fill import fill

    done = fill(course, form, template, units, wishes)
    for note in done.notes:
        click.echo(note, err=True)
    click.echo(f"{done.cells} scores filled in.", err=True)
    return done.data


def _put(course: Course, target: Path, data: bytes) -> None:
    from grader.export.files import write_whole

    if str(target) == "-":
        click.echo(data, nl=False)
        return
    write_whole(target, data)
    shown = target.relative_to(course.root) if target.is_relative_to(course.root) else target
    click.echo(f"Scores are in {shown}.")
