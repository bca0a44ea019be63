"""`grader due`: when a unit is due, in the course's time zone."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import click

from grader.course import Course

__all__ = ["due"]


@click.command()
@click.argument("unit")
@click.argument("when", nargs=-1, metavar="[WHEN]")
@click.option("--remove", is_flag=True, help="Take the due time away: nobody is late then.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON for other programs.")
@click.pass_obj
def due(course_of: Callable[[], Course], unit: str, when: tuple[str, ...], remove: bool, as_json: bool) -> None:
    """Show when UNIT is due, or set it to WHEN, such as 2026-11-30 23:59.

    WHEN is local time in the zone that c.LatePolicy.timezone in nbgrader_config.py names. Another zone may stand behind
    it: 2026-11-30 23:59 Europe/Berlin. Of a time that the clock shows twice, the later one is taken; one that the clock
    leaves out is refused. Submissions that are graded keep their late penalty until they are graded again.
    """
    from grader.deadlines import due_of, parse_when, set_due
    from grader.policy import course_zone

    if when and remove:
        raise click.UsageError("WHEN and --remove exclude each other.")
    course = course_of()
    zone = course_zone(course)
    twice = False
    if when or remove:
        meant = parse_when(" ".join(when), zone) if when else None
        twice = meant is not None and meant.twice
        set_due(course, unit, None if meant is None else meant.utc)
    found = due_of(course, unit)
    if as_json:
        click.echo(json.dumps(_plain(unit, found, zone, twice=twice), indent=2))
        return
    click.echo(_said(unit, found, zone))
    if twice:
        click.echo("The clock shows that time twice; the later one was taken.")
    if (when or remove) and any(course.autograded.glob(f"*/{unit}")):
        click.echo(
            f"Submissions keep their late penalty until they are graded again: `grader diff {unit}` shows what "
            f"changes, and `grader autograde {unit} --force` writes it."
        )


def _plain(unit: str, found: datetime | None, zone: str, *, twice: bool) -> dict[str, Any]:
    from grader.deadlines import local_text, utc_text

    local = None if found is None else local_text(found, zone)
    return {
        "unit": unit,
        "due": None if found is None else utc_text(found),
        "local": local,
        "timezone": zone,
        "twice": twice,
    }


def _said(unit: str, found: datetime | None, zone: str) -> str:
    from grader.deadlines import local_text

    if found is None:
        return f"{unit} has no due time."
    utc = "" if zone == "UTC" else f" ({local_text(found, 'UTC')})"
    return f"{unit} is due {local_text(found, zone)}{utc}."
