"""What a command adds about the gradebook as it stands, on standard error."""

from collections.abc import Iterable

import click

from grader.course import Course

__all__ = ["tell_outdated_penalties"]

_MOST = 10


def tell_outdated_penalties(course: Course, units: Iterable[str]) -> None:
    """Say whose late penalty was worked out before what has happened since, and what mends it."""
    from grader.late import outdated_penalties

    for unit in units:
        learners = outdated_penalties(course, unit)
        if learners:
            more = f" and {len(learners) - _MOST} more" if learners[_MOST:] else ""
            who = f"{', '.join(learners[:_MOST])}{more}"
            why = "points given by hand, a time or a policy that came later"
            mend = f"`grader autograde {unit} --force` works it out anew"
            click.echo(
                f"{unit}: the late penalty of {who} is not what it would be now, because of {why}; {mend}.",
                err=True,
            )
