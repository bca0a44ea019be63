"""Every exception that ``grader`` raises on purpose, with its message built here.

Each message is one sentence that names the thing and says what to do next.
"""

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "CourseNotFoundError",
    "DemoInTheWayError",
    "GraderError",
    "NbgraderFailedError",
    "NoDemoClassError",
    "NoSubmissionsError",
    "NotGradedError",
    "UnknownUnitError",
]


class GraderError(Exception):
    """Something that the person who runs the grader has to know or to mend."""


class CourseNotFoundError(GraderError):
    """The command was not run inside a course."""

    def __init__(self, place: Path) -> None:
        super().__init__(
            f"{place} is not inside a course: no nbgrader_config.py was found there or above; change to the "
            "course's folder, or name it with --course."
        )


class UnknownUnitError(GraderError):
    """A unit that the course does not have."""

    def __init__(self, unit: str, known: Iterable[str]) -> None:
        names = ", ".join(known)
        super().__init__(f"there is no unit {unit!r} in solutions/; the units are: {names or 'none yet'}.")


class NoDemoClassError(GraderError):
    """A unit for which no demo class is written."""

    def __init__(self, unit: str, known: Iterable[str]) -> None:
        super().__init__(f"there is no demo class for the unit {unit!r}; there is one for: {', '.join(known)}.")


class NotGradedError(GraderError):
    """Feedback for a unit of which nothing is graded yet."""

    def __init__(self, unit: str) -> None:
        super().__init__(f"no submission for {unit!r} is graded yet; run `grader autograde {unit}` first.")


class NoSubmissionsError(GraderError):
    """A unit without submissions, or a learner without one."""

    def __init__(self, unit: str, learner: str | None, submitted: Path) -> None:
        who = f"learner {learner!r} has no submission" if learner else "there is no submission"
        where = submitted / (learner or "LEARNER") / unit / f"{unit}.ipynb"
        super().__init__(f"{who} for {unit!r}; put it at {where}, or make the demo class with `grader demo`.")


class NbgraderFailedError(GraderError):
    """A step that nbgrader reported as failed."""

    def __init__(self, step: str, unit: str, log: str) -> None:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception): ", line)]
        errors = raised or [line for line in lines if "ERROR" in line] or lines
        reason = re.sub(r"^(\[ERROR\] |(\w+\.)+(?=\w+: ))", "", errors[-1]) if errors else "it gave no reason"
        super().__init__(f"nbgrader could not {step} {unit!r}: {reason} (whole log: grader/var/nbgrader.log).")


class DemoInTheWayError(GraderError):
    """The demo class would overwrite a submission that it did not make."""

    def __init__(self, learner: str, folder: Path) -> None:
        super().__init__(
            f"{folder} holds a submission of {learner!r} that the demo class did not make; move it away to "
            "make the demo class."
        )
