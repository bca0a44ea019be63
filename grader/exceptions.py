"""Every exception that ``grader`` raises on purpose, with its message built here.

Each message is one sentence that names the thing and says what to do next.
"""

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "BrokenReferenceError",
    "CellsInUseError",
    "CheckFailedError",
    "CourseNotFoundError",
    "DemoInTheWayError",
    "GradebookDiffersError",
    "GradebookLockedError",
    "GraderError",
    "InvalidLearnerError",
    "NbgraderFailedError",
    "NoDemoClassError",
    "NoSandboxError",
    "NoSubmissionsError",
    "NotGradedError",
    "NotReleasedError",
    "UnknownUnitError",
    "UnreadableNotebookError",
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


class UnreadableNotebookError(GraderError):
    """A file that should be a learner's notebook and is not."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path.name!r} cannot be checked: {reason}.")


class CheckFailedError(GraderError):
    """A check of a notebook that did not come to an end."""

    def __init__(self, reason: str, advice: str = "run it in JupyterLab to see where it stops") -> None:
        super().__init__(f"the notebook could not be run to its end: {reason}; {advice}.")


class BrokenReferenceError(GraderError):
    """A reference notebook that cannot be read."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} is no notebook that can be read; bring it back as it was in the course.")


class CellsInUseError(GraderError):
    """A reference notebook whose test cells changed although submissions were graded by the old ones."""

    def __init__(self, unit: str) -> None:
        super().__init__(
            f"the test cells of {unit!r} have changed, and the gradebook holds submissions for it; put the cells back "
            "until the class is graded, or move grader/var/gradebook.db away and grade the class anew."
        )


class NoSandboxError(GraderError):
    """A machine on which learner code cannot be kept apart from the rest."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"learner code cannot be isolated on this machine: {reason}; `grader doctor` says what is missing, and "
            "--sandbox=none grades without isolation, which is for code that you trust."
        )


class NotReleasedError(GraderError):
    """A unit that the gradebook does not know yet."""

    def __init__(self, unit: str) -> None:
        super().__init__(f"the gradebook does not know the unit {unit!r} yet; run `grader release {unit}` first.")


class GradebookDiffersError(GraderError):
    """A unit whose graded cells in the gradebook are not those of the reference notebook."""

    def __init__(self, unit: str, cells: Iterable[str]) -> None:
        super().__init__(
            f"the gradebook and solutions/ differ in the graded cells of {unit!r} ({', '.join(cells)}); run "
            f"`grader release {unit}` first."
        )


class GradebookLockedError(GraderError):
    """A gradebook that another program keeps locked."""

    def __init__(self, seconds: float) -> None:
        super().__init__(
            f"the gradebook was locked by another program for {seconds:g} seconds; close that program and grade again: "
            "what was graded before is kept."
        )


class InvalidLearnerError(GraderError):
    """A folder of submissions whose name can be no learner's id."""

    def __init__(self, learner: str) -> None:
        super().__init__(
            f"{learner[:80]!a} can be no learner's id: letters, digits, spaces and @ . _ + - ' are allowed, and a "
            "letter or digit comes first; rename the folder."
        )
