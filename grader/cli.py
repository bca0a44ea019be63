"""The command `grader`: release units, grade submissions, write feedback and scores.

Exit status: 0 all well; 1 something could not be done, with a sentence that says what to do; 2 wrong usage.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from grader import stock
from grader.course import Course, find_course
from grader.demo_class import demo_class, write_submissions
from grader.exceptions import GraderError
from grader.release import release as release_unit
from grader.scores import Score
from grader.scores import scores as read_scores

if TYPE_CHECKING:
    from grader.check import Report

__all__ = ["cli", "main"]

_ERR = Console(stderr=True, highlight=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--course",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=Path(),
    help="The course's folder, or one inside it (default: this folder).",
)
@click.version_option(package_name="ffn-course")
@click.pass_context
def cli(context: click.Context, folder: Path) -> None:
    """Release units, grade submissions, hand results back.

    Exit status: 0 all well, 1 something could not be done, 2 wrong usage.
    """
    context.obj = lambda: find_course(folder)


@cli.command()
@click.argument("units", nargs=-1, metavar="[UNIT]...")
@click.pass_obj
def release(course_of: Callable[[], Course], units: tuple[str, ...]) -> None:
    """Generate the learner notebooks in exercises/ from solutions/ (every unit, or those named)."""
    course = course_of()
    for unit in units or course.units():
        changed = release_unit(course, unit)
        click.echo(f"{unit}: {', '.join(changed) + ' written' if changed else 'up to date'}")


@cli.command()
@click.argument("unit")
@click.option("--learner", help="Grade this learner's submission only.")
@click.option("--force", is_flag=True, help="Grade again what is graded already.")
@click.pass_obj
def autograde(course_of: Callable[[], Course], unit: str, learner: str | None, force: bool) -> None:
    """Grade the submissions of UNIT below grader/var/submitted."""
    course = course_of()
    course.require_unit(unit)
    _grade(course, unit, course.require_learners(unit, learner), force=force)


@cli.command()
@click.argument("unit")
@click.pass_obj
def feedback(course_of: Callable[[], Course], unit: str) -> None:
    """Write HTML feedback for every graded submission of UNIT below grader/var/feedback."""
    course = course_of()
    stock.feedback(course, unit)
    click.echo(f"Feedback is in {course.feedback.relative_to(course.root)}.")


@cli.command()
@click.pass_obj
def export(course_of: Callable[[], Course]) -> None:
    """Write all scores to grader/var/grades.csv."""
    course = course_of()
    stock.export_csv(course)
    click.echo(f"Scores are in {course.grades_csv.relative_to(course.root)}.")


@cli.command()
@click.argument("unit")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
@click.pass_obj
def scores(course_of: Callable[[], Course], unit: str, as_json: bool) -> None:
    """Show the scores of UNIT's graded submissions."""
    found = read_scores(course_of(), unit)
    if as_json:
        click.echo(json.dumps([asdict(score) for score in found], indent=2))
    else:
        Console(highlight=False).print(_score_table(unit, found))


@cli.command()
@click.argument("notebook", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--unit", help="The unit that the notebook belongs to (default: told by its cells).")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
@click.pass_obj
def check(course_of: Callable[[], Course], notebook: Path, unit: str | None, as_json: bool) -> None:
    """Check your own NOTEBOOK: which published values it reproduces, and what is wrong where it does not.

    Its answers run in a copy of the reference notebook, on this machine as they are: check your own notebooks only.
    The file is not changed. Exit status 1 where something is not right yet.
    """
    from grader.check import check_notebook

    def running() -> None:
        if not as_json:
            _ERR.print("Running the answers (a few seconds)")

    report = check_notebook(course_of(), notebook, unit, on_run=running)
    if as_json:
        click.echo(json.dumps({"passed": report.passed, **asdict(report)}, indent=2))
    else:
        _show_report(report)
    sys.exit(0 if report.passed else 1)


@cli.command()
@click.argument("unit", default="activations")
@click.option("--seed", type=int, default=0, show_default=True, help="Draws what the demo class leaves open.")
@click.pass_obj
def demo(course_of: Callable[[], Course], unit: str, seed: int) -> None:
    """Make the demo class of UNIT (default: activations), grade it, write feedback and scores."""
    course = course_of()
    invented = demo_class(unit)
    release_unit(course, unit)
    learners = write_submissions(course, invented, seed)
    stock.set_due(course, unit, invented.due)
    stock.name_learners(course, learners)
    _grade(course, unit, learners, force=True)
    _ERR.print("Writing feedback and scores")
    stock.feedback(course, unit)
    stock.export_csv(course)
    Console(highlight=False).print(_score_table(unit, read_scores(course, unit)))


def _grade(course: Course, unit: str, learners: list[str], *, force: bool) -> None:
    """Grade with a progress bar; where output is no terminal, with a line for each learner."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_ERR, disable=not _ERR.is_terminal) as bar:
        task = bar.add_task(f"Grading {unit}", total=len(learners))

        def done(learner: str) -> None:
            bar.advance(task)
            if not _ERR.is_terminal:
                _ERR.print(f"graded {learner}")

        failures = stock.autograde(course, unit, learners, force=force, progress=done)
    for failure in failures:
        _ERR.print(f"{failure.learner}: {failure.reason}", markup=False, soft_wrap=True)
    if failures:
        raise GraderError(f"{len(failures)} of {len(learners)} submissions could not be graded, see above.")


def _show_report(report: "Report") -> None:
    console = Console(highlight=False)
    table = Table(title=f"Visible tests of the unit {report.unit}", title_justify="left")
    for heading in ("step", "tests", "published values"):
        table.add_column(heading)
    for step in report.steps:
        wanted = len(step.reproduced) + len(step.missing)
        values = f"{len(step.reproduced)} of {wanted} reproduced" if wanted else ""
        table.add_row(step.name, "not yet" if step.message else "passed", values)
    console.print(table)
    missing = [ident for step in report.steps for ident in step.missing]
    if missing:
        console.print(f"Not reproduced: {', '.join(missing)}", soft_wrap=True)
    remarks = [f"{step.name}: {said}" for step in report.steps for said in (step.message, step.note) if said]
    remarks += [
        f"{step.name}: the answer {flag}; write it from scratch." for step in report.steps for flag in step.flags
    ]
    for remark in [*report.elsewhere, *remarks]:
        console.print(remark, markup=False, soft_wrap=True)
    if report.passed:
        console.print("All visible tests pass. Hidden tests run when the exercise is graded.")
    elif report.left_out:
        console.print(
            f"Code cells of your own ({report.left_out}) were left out: put what an answer needs into its cell.",
            soft_wrap=True,
        )


def _score_table(unit: str, found: list[Score]) -> Table:
    table = Table(title=f"Scores of the unit {unit}", title_justify="left")
    for heading, justify in (("learner", "left"), ("points", "right"), ("of", "right"), ("remark", "left")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for score in found:
        remarks = [f"{score.hours_late:.0f} h late"] if score.hours_late > 0 else []
        remarks += ["written answer to be graded"] if score.waits_for_person else []
        remarks += [f"look at {flag}" for flag in score.flags]
        table.add_row(
            escape(score.learner), f"{score.points:g}", f"{score.max_points:g}", escape(", ".join(remarks))
        )
    return table


def main() -> None:
    """Run the command line; every expected fault is one sentence on stderr and exit status 1."""
    try:
        cli(standalone_mode=True)
    except GraderError as error:
        _ERR.print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
