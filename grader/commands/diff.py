"""`grader diff`: what grading again would change, before it is written."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from grader.commands.options import grading_options, require_one_place
from grader.course import Course
from grader.exceptions import UngradedError

if TYPE_CHECKING:
    from grader.diff import Difference

__all__ = ["diff"]

_ERR = Console(stderr=True, highlight=False)
_LONGEST = 400

_KEYS = """\b
The keys of --json:
  unit         the unit's name
  graded       how many submissions were graded
  differences  learner; old_total (null where nothing was graded before) and
               new_total, after the late penalties old_penalty and
               new_penalty; max_points; status; reasons; cells: cell, step,
               old, new, max_points, why; by_hand: cell, points, look_again,
               why; error where it could not be graded
"""


@click.command(epilog=_KEYS)
@click.argument("unit")
@click.option("--learner", help="Grade this learner's submission only.")
@click.option("--exit-code", is_flag=True, help="End with exit status 1 where something would change.")
@grading_options
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
@click.pass_obj
def diff(
    course_of: Callable[[], Course],
    unit: str,
    learner: str | None,
    exit_code: bool,
    sandbox: str,
    workers: int | None,
    scheduler: str | None,
    as_json: bool,
) -> None:
    """Show what `grader autograde UNIT --force` would change, and why, without writing anything.

    Every submission is graded as it lies below grader/var/submitted, by solutions/ as it is now, and compared with the
    gradebook: points, late penalties, and answers graded by hand that would have to be looked at again. Exit status 0
    with or without differences; 1 where a submission could not be graded, and with --exit-code where something differs.
    """
    from grader.diff import differences

    require_one_place(workers, scheduler)
    course = course_of()
    course.require_unit(unit)
    learners = course.require_learners(unit, learner)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_ERR, disable=not _ERR.is_terminal) as bar:
        task = bar.add_task(f"Grading {unit}", total=len(learners))

        def advance() -> None:
            bar.advance(task)

        found = list(
            differences(
                course, unit, learners, sandbox=sandbox, workers=workers, scheduler=scheduler, progress=advance
            )
        )
    found.sort(key=lambda one: one.learner)
    if as_json:
        rows = [asdict(one) for one in found]
        click.echo(json.dumps({"unit": unit, "graded": len(learners), "differences": rows}, indent=2))
    else:
        _show(unit, found, len(learners))
    failed = sum(bool(one.error) for one in found)
    if failed:
        raise UngradedError(failed, len(learners))
    if exit_code and found:
        sys.exit(1)


def _show(unit: str, found: "list[Difference]", graded: int) -> None:
    for one in found:
        click.echo("\n".join(_clean(line) for line in _lines(one)))
    changed = sum(not one.error for one in found)
    if not changed:
        click.echo(f"Nothing would change: {graded} submissions of {unit} were graded.")
        return
    what = "submission" if changed == 1 else "submissions"
    click.echo(f"{changed} {what} of {graded} would change; `grader autograde {unit} --force` writes it.")


def _lines(one: "Difference") -> list[str]:
    """A learner's part of the list."""
    if one.error:
        return [f"{one.learner}: {one.error}"]
    old = "not graded" if one.old_total is None else f"{one.old_total:g}"
    lines = [f"{one.learner}: {old} -> {one.new_total:g} of {one.max_points:g}, because {', '.join(one.reasons)}"]
    if one.old_penalty != one.new_penalty:
        lines.append(f"  late penalty: {one.old_penalty:g} -> {one.new_penalty:g}")
    for change in one.cells:
        was = "-" if change.old is None else f"{change.old:g}"
        lines.append(f"  {change.cell}: {was} -> {change.new:g} of {change.max_points:g}: {change.why}")
    for kept in one.by_hand:
        again = "; to be looked at again" if kept.look_again else ""
        why = f"; {kept.why}" if kept.why else ""
        lines.append(f"  {kept.cell}: {kept.points:g} given by hand stays{again}{why}")
    return lines


def _clean(line: str) -> str:
    """A line for a terminal: what learner code wrote into a message can neither move the cursor nor fill the screen."""
    shown = "".join(c if c.isprintable() else " " for c in line)
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]} ..."
