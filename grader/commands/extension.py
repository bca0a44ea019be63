"""`grader extension`: who may hand in later than the class."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from grader.course import Course
from grader.exceptions import UselessExtensionError

if TYPE_CHECKING:
    from grader.extensions import Extension

__all__ = ["extension"]

_ERR = Console(stderr=True, highlight=False)


@click.command()
@click.argument("learner", required=False)
@click.argument("unit", required=False)
@click.option("--until", metavar="WHEN", help="The learner's own due time, such as 2026-12-03 23:59.")
@click.option("--hours", type=click.FloatRange(0, min_open=True), help="Hours after the unit's due time.")
@click.option("--reason", default="", help="A note for you; learners do not see it.")
@click.option("--remove", is_flag=True, help="Take the learner's extension for the unit away.")
@click.option("--json", "as_json", is_flag=True, help="Write what there is as JSON for other programs.")
@click.pass_obj
def extension(
    course_of: Callable[[], Course],
    learner: str | None,
    unit: str | None,
    until: str | None,
    hours: float | None,
    reason: str,
    remove: bool,
    as_json: bool,
) -> None:
    """Give LEARNER an extension for UNIT, or list the extensions (of LEARNER, for UNIT).

    They are kept in grader/var/extensions.csv, with the columns learner, unit, until, hours and reason, which you may
    edit; WHEN is written as for `grader due`. An extension counts from the next time that the submission is graded.
    """
    asked = (until is not None) + (hours is not None) + remove
    if asked > 1:
        raise click.UsageError("Give one of --until, --hours and --remove.")
    if asked and (learner is None or unit is None):
        raise click.UsageError("Name the LEARNER and the UNIT.")
    if reason and (not asked or remove):
        raise click.UsageError("--reason goes with --until or --hours.")
    course = course_of()
    if unit is not None:
        course.require_unit(unit)
    if asked:
        assert learner is not None
        assert unit is not None
        if remove:
            _remove(course, learner, unit)
        else:
            _give(course, learner, unit, until, hours, reason)
    _list(course, learner, unit, as_json=as_json)


def _give(course: Course, learner: str, unit: str, until: str | None, hours: float | None, reason: str) -> None:
    from grader.deadlines import local_text, parse_when
    from grader.engine.store import require_learner
    from grader.extensions import MOST_HOURS, Extension, write_extensions
    from grader.policy import course_zone
    from grader.standing import Standing

    require_learner(learner)
    zone = course_zone(course)
    with Standing(course, unit) as standing:
        due, graded = standing.due, learner in standing.learners()
    if hours is not None and hours > MOST_HOURS:
        raise UselessExtensionError(learner, unit, f"{hours:g} hours are more than ten years; give fewer")
    new = Extension(learner, unit, hours=hours, reason=reason)
    if until is not None:
        when = parse_when(until, zone)
        written = local_text(when.utc, zone)
        if parse_when(written, zone).utc != when.utc:
            # The course's clock shows that time twice, and the other one would be taken.
            written = local_text(when.utc, "UTC")
        new = replace(new, until=written, utc=when.utc)
        if when.twice:
            _ERR.print("The clock shows that time twice; the later one was taken.")
    if due is not None and new.beyond(due) is None:
        why = f"the unit is due {local_text(due, zone)} for everybody, which is not earlier; give a later time"
        raise UselessExtensionError(learner, unit, why)
    kept = _recorded_or_kept(course, zone)
    others = [one for one in kept if (one.learner, one.unit) != (learner, unit)]
    write_extensions(course, [*others, new])
    if due is None:
        _ERR.print(f"{unit} has no due time yet; set one with `grader due {unit} WHEN`.", markup=False)
    if graded:
        _say_when(learner, unit)
    elif not (course.submitted / learner).is_dir():
        _ERR.print(f"Nothing of {learner} is there so far; see that the name is right.", markup=False)


def _remove(course: Course, learner: str, unit: str) -> None:
    from grader.extensions import write_extensions
    from grader.policy import course_zone

    kept = _recorded_or_kept(course, course_zone(course))
    others = [one for one in kept if (one.learner, one.unit) != (learner, unit)]
    if len(others) == len(kept):
        raise UselessExtensionError(learner, unit, "there is none to be removed; `grader extension` lists all")
    write_extensions(course, others)
    if (course.autograded / learner / unit).is_dir():
        _say_when(learner, unit)


def _say_when(learner: str, unit: str) -> None:
    command = f"grader autograde {unit} --learner {learner} --force"
    _ERR.print(f"It counts when the submission is graded again: `{command}`.", markup=False, soft_wrap=True)


def _recorded_or_kept(course: Course, zone: str) -> "list[Extension]":
    """The extensions in the file; while there is none, those that nbgrader's interface put into the gradebook.

    Once the file is there it alone counts, so what was recorded before goes into it.
    """
    from grader.exceptions import NotReleasedError
    from grader.extensions import Extension, path_of, read_extensions
    from grader.standing import Standing

    if path_of(course).is_file():
        return read_extensions(course, zone)
    found = []
    for unit in course.units():
        try:
            with Standing(course, unit) as standing:
                recorded = standing.extensions()
        except NotReleasedError:
            continue
        for learner, more in recorded.items():
            hours = more.total_seconds() / 3600
            if hours > 0:
                found.append(Extension(learner, unit, hours=hours, reason="from the gradebook"))
    return found


def _list(course: Course, learner: str | None, unit: str | None, *, as_json: bool) -> None:
    from grader.policy import course_zone

    zone = course_zone(course)
    found = [
        one
        for one in _recorded_or_kept(course, zone)
        if learner in (None, one.learner) and unit in (None, one.unit)
    ]
    dues = {name: _due(course, name) for name in {one.unit for one in found}}
    rows = [_row(one, dues[one.unit], zone) for one in found]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    table = Table(title="Extensions", title_justify="left")
    for heading in ("learner", "unit", "due", "reason"):
        table.add_column(heading)
    for row in rows:
        table.add_row(*(escape(str(row[key] or "")) for key in ("learner", "unit", "local", "reason")))
    Console(highlight=False).print(table)


def _due(course: Course, unit: str) -> datetime | None:
    from grader.exceptions import NotReleasedError
    from grader.standing import Standing

    try:
        with Standing(course, unit) as standing:
            return standing.due
    except NotReleasedError:
        return None


def _row(one: "Extension", due: datetime | None, zone: str) -> dict[str, Any]:
    from grader.deadlines import local_text, utc_text

    more = None if due is None else one.beyond(due)
    own = one.utc if due is None or more is None else due + more
    local = f"{one.hours:g} hours later" if own is None else local_text(own, zone)
    return {
        "learner": one.learner,
        "unit": one.unit,
        "until": None if own is None else utc_text(own),
        "local": local,
        "hours": one.hours,
        "reason": one.reason,
    }
