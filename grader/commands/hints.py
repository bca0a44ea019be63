"""What a command adds about the gradebook as it stands, on standard error."""

from collections.abc import Iterable

import click

from grader.course import Course

__all__ = ["tell_outdated_penalties"]

_MOST = 10


def tell_outdated_penalties(course: Course, units: Iterable[str], learner: str | None = None) -> None:
    """Say whose late penalty was worked out before what has happened since, and what mends it.

    Of all learners, or of the one named.
    """
    from grader.late import outdated_penalties

    for unit in units:
        learners = [name for name in outdated_penalties(course, unit) if learner in (None, name)]
        if learners:
            more = f" and {len(learners) - _MOST} more" if learners[_MOST:] else ""
            who = f"{', '.join(learners[:_MOST])}{more}"
            why = "points given by hand, a time, an extension or a policy that came later"
            mend = f"`grader autograde {unit} --force` works it out anew"
            click.echo(
                f"{unit}: the late penalty of {who} is not what it would be now, because of {why}; {mend}.",
                err=True,
            )
