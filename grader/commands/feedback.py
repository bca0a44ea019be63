"""`grader feedback`: the pages that learners get back."""

from collections.abc import Callable
from pathlib import Path

import click

from grader.commands.hints import tell_outdated_penalties
from grader.course import Course
from grader.exceptions import FeedbackFailedError, OutputInTheWayError

__all__ = ["feedback", "tell_failed"]


@click.command()
@click.argument("unit")
@click.option("--learner", help="Write this learner's feedback only.")
@click.option(
    "--zip/--no-zip", "zipped", default=True, show_default=True, help="Write UNIT.zip beside each page, too."
)
@click.option(
    "--all-in-one",
    "archive",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all pages into this zip file, too, as Moodle takes it back for the class.",
)
@click.option(
    "--worksheet",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Moodle's grading worksheet, with the participants' numbers (default: those that were collected).",
)
@click.option("--force", is_flag=True, help="Overwrite the file that --all-in-one names.")
@click.pass_obj
def feedback(
    course_of: Callable[[], Course],
    unit: str,
    learner: str | None,
    zipped: bool,
    archive: Path | None,
    worksheet: Path | None,
    force: bool,
) -> None:
    """Write HTML feedback for every graded submission of UNIT below grader/var/feedback.

    Each learner gets one page, LEARNER/UNIT/UNIT.html: points by step, what was noticed, your comments, and the graded
    notebook without hidden tests. It needs no other file and asks no other host for anything. Pages of an earlier run
    are replaced. Exit status 1 where a page could not be made.
    """
    if archive is None and worksheet is not None:
        raise click.UsageError("--worksheet goes with --all-in-one.")
    from grader.feedback import graded_learners, moodle_zip, write_feedback

    course = course_of()
    learners = graded_learners(course, unit, learner)
    if archive is not None and archive.exists() and not force:
        raise OutputInTheWayError(archive, template=False)

    failed = write_feedback(course, unit, learner, zipped=zipped, progress=tell_failed)
    _tell_ungraded(course, unit, learners, learner)
    tell_outdated_penalties(course, [unit], learner)
    if archive is not None:
        count, notes = moodle_zip(course, unit, archive, worksheet)
        for note in notes:
            click.echo(note, err=True)
        click.echo(f"{count} pages for Moodle are in {archive}.")
    if failed:
        raise FeedbackFailedError(failed, len(learners))
    click.echo(f"Feedback is in {course.feedback.relative_to(course.root)}.")


def tell_failed(name: str, error: str) -> None:
    """Say whose page could not be made, and why."""
    if error:
        click.echo(f"{name}: {error}", err=True)


def _tell_ungraded(course: Course, unit: str, graded: list[str], learner: str | None) -> None:
    """Say who has handed in and gets no page."""
    left = sorted(set(course.learners(unit)) - set(graded)) if learner is None else []
    if left:
        click.echo(f"not graded yet, no feedback ({len(left)}): {', '.join(left)}", err=True)
