"""Every exception that ``grader`` raises on purpose, with its message built here.

Each message is one sentence that names the thing and says what to do next.
"""

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "AmbiguousLearnerError",
    "BadExtensionsError",
    "BadPluginError",
    "BadPolicyError",
    "BadTimeError",
    "BrokenReferenceError",
    "CannotPlaceError",
    "CannotWriteError",
    "CellsInUseError",
    "CheckFailedError",
    "CollectBusyError",
    "ColumnNotFoundError",
    "CourseNotFoundError",
    "DemoInTheWayError",
    "DownloadRefusedError",
    "FeedbackFailedError",
    "GradebookAwayError",
    "GradebookDamagedError",
    "GradebookDiffersError",
    "GradebookFolderError",
    "GradebookFullError",
    "GradebookLockedError",
    "GradebookReadOnlyError",
    "GradebookUnreadableError",
    "GradebookUnwritableError",
    "GraderError",
    "InvalidLearnerError",
    "JournalUnreadableError",
    "LearnersNotNamedError",
    "LeftOutError",
    "NbgraderFailedError",
    "NoDemoClassError",
    "NoSandboxError",
    "NoSubmissionsError",
    "NoWorkersError",
    "NotFromMoodleError",
    "NotGradedError",
    "NotReleasedError",
    "NothingMatchedError",
    "OutputInTheWayError",
    "PointsDifferError",
    "RosterError",
    "SchedulerLostError",
    "SchedulerUnreachableError",
    "ScoresWaitError",
    "SubmissionGoneError",
    "TemplateColumnError",
    "TemplateUnreadableError",
    "UnclearFormError",
    "UngradedError",
    "UnknownPolicyError",
    "UnknownUnitError",
    "UnknownZoneError",
    "UnreadableNotebookError",
    "UnwritableError",
    "UselessExtensionError",
    "WorkerDiffersError",
    "WorkerFailedError",
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
    """A reference notebook whose graded cells or points are others than those that submissions were graded by."""

    def __init__(self, unit: str, changes: Iterable[str]) -> None:
        super().__init__(
            f"the gradebook holds submissions for {unit!r}, and its cells have changed: {', '.join(changes)}; put "
            "names and points back (what stands in the cells may change), or move grader/var/gradebook.db away and "
            "grade the class anew."
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


# ------------------------------------------------------------------------------------- export and feedback


class TemplateUnreadableError(GraderError):
    """A file of an LMS that cannot be filled in."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be used: {reason}; take the file as the LMS exports it.")


class ColumnNotFoundError(GraderError):
    """A file of an LMS in which no column, or more than one, is the unit's."""

    def __init__(self, path: Path, unit: str, found: Iterable[str]) -> None:
        names = [repr(name) for name in found]
        shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
        super().__init__(
            f"{path} has no single column for {unit!r}; name it with --column, which may be one of: {shown or 'none'}."
        )


class TemplateColumnError(GraderError):
    """A column of an LMS's file that takes no scores."""

    def __init__(self, path: Path, column: str, reason: str) -> None:
        super().__init__(f"the column {column!r} of {path} {reason}; name another one with --column.")


class PointsDifferError(GraderError):
    """An LMS and the gradebook that give different points for the same unit."""

    def __init__(self, path: Path, unit: str, theirs: float, ours: float) -> None:
        super().__init__(
            f"{path} gives {theirs:g} points for {unit!r} and the gradebook {ours:g}; set the points in the LMS to "
            f"{ours:g} and export its file anew, or convert the scores with --scale."
        )


class AmbiguousLearnerError(GraderError):
    """Learners and rows of an LMS's file that do not belong together one to one."""

    def __init__(self, path: Path, cases: Iterable[str]) -> None:
        listed = list(cases)
        more = f" (and {len(listed) - 3} more)" if len(listed) > 3 else ""
        super().__init__(
            f"{path} does not say whose scores go where: {'; '.join(listed[:3])}{more}; give the learners' ids in the "
            "LMS with --roster."
        )


class NothingMatchedError(GraderError):
    """A file of an LMS in which no learner of the gradebook is found."""

    def __init__(self, path: Path, unit: str) -> None:
        super().__init__(
            f"no learner who is graded for {unit!r} is in {path}; give the learners' ids in the LMS with --roster."
        )


class ScoresWaitError(GraderError):
    """Scores that are not complete, where only complete ones are wanted."""

    def __init__(self, unit: str, learners: Iterable[str]) -> None:
        listed = list(learners)
        names = ", ".join(listed[:5]) + (", ..." if len(listed) > 5 else "")
        super().__init__(
            f"{len(listed)} scores of {unit!r} wait for a person ({names}); grade them in formgrader, or leave them "
            "out with --incomplete=skip."
        )


class OutputInTheWayError(GraderError):
    """A file that would be overwritten."""

    def __init__(self, path: Path, template: bool) -> None:
        mine = "is the file that is filled in; name another one"
        there = "is there already; name another file, or overwrite it with --force"
        super().__init__(f"{path} {mine if template else there}.")


class CannotWriteError(GraderError):
    """A file that cannot be written."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} cannot be written: {reason}; make room or the folder writable, and try again.")


class NotFromMoodleError(GraderError):
    """A zip file for Moodle without the participants' numbers."""

    def __init__(self, unit: str) -> None:
        super().__init__(
            f"no submission of {unit!r} was collected from Moodle, so its participants' numbers are not known; give "
            "the assignment's grading worksheet with --worksheet."
        )


class FeedbackFailedError(GraderError):
    """Graded notebooks of which no page of feedback could be made."""

    def __init__(self, failed: int, total: int) -> None:
        super().__init__(
            f"no feedback could be written for {failed} of {total} learners, see above; what was there before is kept."
        )


class BadPolicyError(GraderError):
    """A setting of the late policy with a value that it cannot have."""

    def __init__(self, setting: str, value: object, what: str) -> None:
        super().__init__(f"in nbgrader_config.py, c.LatePolicy.{setting} is {str(value)[:80]!a}; write {what}.")


class UnknownPolicyError(BadPolicyError):
    """A setting that the late policy does not have."""

    def __init__(self, setting: str, known: Iterable[str]) -> None:
        GraderError.__init__(
            self,
            f"in nbgrader_config.py, there is no setting c.LatePolicy.{setting}; the settings are {', '.join(known)}.",
        )


class BadPluginError(BadPolicyError):
    """A plug-in for late penalties that cannot be used."""

    def __init__(self, reason: str) -> None:
        GraderError.__init__(
            self,
            f"in nbgrader_config.py, late penalties cannot be had as they are set: {' '.join(reason.split())[:300]}; "
            'the course\'s own plug-in is c.AssignLatePenalties.plugin_class = "grader.late.LatePolicy".',
        )


class BadTimeError(GraderError):
    """A point in time, or a time zone, that cannot be read; ``why`` goes on to say what to write."""

    def __init__(self, text: str, why: str) -> None:
        self.why = why
        super().__init__(f"{text[:80]!a} cannot be taken for a time: {why}.")


class BadExtensionsError(GraderError):
    """A file of extensions with a line that says nothing clear; line 0 stands for the whole file."""

    def __init__(self, path: Path, line: int, why: str) -> None:
        where = f"line {line} of {path}" if line else f"{path}"
        super().__init__(f"{where} cannot be read as an extension: {why}; correct it, nothing was changed.")


class UselessExtensionError(GraderError):
    """An extension that would change nothing."""

    def __init__(self, learner: str, unit: str, why: str) -> None:
        super().__init__(f"the extension of {learner!a} for {unit!r} was not written: {why}.")


class UngradedError(GraderError):
    """A comparison in which submissions could not be graded."""

    def __init__(self, failed: int, total: int) -> None:
        super().__init__(f"{failed} of {total} submissions could not be graded and compared, see above.")


class GradebookUnreadableError(GraderError):
    """A gradebook that cannot be read, for another reason than a lock."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the gradebook cannot be read: {_one_line(reason)}; mend that, or put back a copy from before."
        )


class GradebookUnwritableError(GraderError):
    """A gradebook that cannot be written, for another reason than a lock."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the gradebook cannot be written: {_one_line(reason)}; mend that and grade again: nothing that was graded "
            "is lost."
        )


class GradebookReadOnlyError(GradebookUnwritableError):
    """A gradebook's file that may not be written."""

    def __init__(self, place: Path) -> None:
        GraderError.__init__(
            self,
            f"the gradebook {place} is read-only; allow yourself to write it and its folder, and grade again: what was "
            "graded before is kept.",
        )


class GradebookFolderError(GradebookUnwritableError):
    """A gradebook's file that cannot be opened or made, because its folder is not there or is closed."""

    def __init__(self, place: Path) -> None:
        GraderError.__init__(
            self,
            f"the gradebook {place} cannot be opened, or made: its folder is missing or closed to you; make it, or "
            "correct c.CourseDirectory.db_url in nbgrader_config.py.",
        )


class GradebookDamagedError(GradebookUnwritableError):
    """A gradebook's file that is no database, or a damaged one."""

    def __init__(self, place: Path) -> None:
        GraderError.__init__(
            self,
            f"the gradebook {place} is damaged, or no gradebook; put back a copy from before, or move it away and run "
            "`grader release` to begin a new one.",
        )


class GradebookFullError(GradebookUnwritableError):
    """A gradebook on a disk that is full or fails."""

    def __init__(self, place: Path) -> None:
        GraderError.__init__(
            self,
            f"the gradebook {place} cannot be written: its disk is full, or fails; make room and grade again: what was "
            "graded before is kept.",
        )


class GradebookAwayError(GradebookUnwritableError):
    """A gradebook's server that cannot be reached, or refuses."""

    def __init__(self, url: str, reason: str) -> None:
        GraderError.__init__(
            self,
            f"the gradebook's server at {url} cannot be reached, or refuses ({_one_line(reason)}); see that it runs "
            "and that c.CourseDirectory.db_url in nbgrader_config.py is right, and run this again.",
        )


class UnwritableError(GraderError):
    """A folder of results in which nothing can be written: a full disk, or one that is read-only."""

    def __init__(self, place: Path, reason: str) -> None:
        super().__init__(
            f"{place} cannot be written: {_one_line(reason)}; mend that and grade again: what was graded before is "
            "kept."
        )


class JournalUnreadableError(GraderError):
    """A journalled verdict that is damaged, or no verdict at all."""

    def __init__(self, path: Path, aside: Path) -> None:
        super().__init__(
            f"the journalled verdict {path} cannot be read; it is set aside as {aside.name!a}, and the submission is "
            "graded anew."
        )


class SubmissionGoneError(GraderError):
    """A submission whose folder was there when grading began."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"the submission {folder} is no longer there, so nothing was recorded; put it back and grade again."
        )


class SchedulerUnreachableError(GraderError):
    """A Dask scheduler that does not answer."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(
            f"the Dask scheduler {address} cannot be reached: {_one_line(reason)}; start it, or leave --scheduler out "
            "to grade on this machine."
        )


class SchedulerLostError(GraderError):
    """A Dask scheduler that was lost during the run."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"the Dask scheduler {address} was lost; start it and grade again: what was graded before is kept."
        )


class NoWorkersError(GraderError):
    """A Dask cluster without workers."""

    def __init__(self, address: str, seconds: float) -> None:
        super().__init__(
            f"the Dask scheduler {address} has had no workers for {seconds:g} seconds; start some with "
            f"`dask worker {address}` and grade again: what was graded before is kept."
        )


class WorkerDiffersError(GraderError):
    """A Dask worker on which verdicts could come out otherwise than here."""

    def __init__(self, worker: str, package: str, theirs: str, mine: str) -> None:
        super().__init__(
            f"the Dask worker {worker} has {package} {theirs}, and this machine has {mine}; give both the same course "
            "and the same packages, and start the worker again."
        )


class WorkerFailedError(GraderError):
    """A Dask worker that cannot grade at all."""

    def __init__(self, worker: str, reason: str) -> None:
        super().__init__(
            f"the Dask worker {worker} cannot grade: {_one_line(reason)}; start it in the course's folder, with the "
            "course's packages."
        )


def _one_line(text: str, most: int = 300) -> str:
    """The first line of another program's message, without its full stop."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:most].rstrip(".") if lines else "no reason was given"


# --------------------------------------------------------------------------------------------------- collecting


class DownloadRefusedError(GraderError):
    """A download of a learning management system that is missing, is none, or is not safe to read."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(
            f"{source} is not collected, and nothing was changed: {reason}; download it once more, or put what is good "
            "into a folder and collect that."
        )


class UnclearFormError(GraderError):
    """A download whose file names could come from more than one learning management system."""

    def __init__(self, titles: Iterable[str], names: Iterable[str]) -> None:
        options = " or ".join(f"--format={name}" for name in names)
        super().__init__(f"the file names could come from {' or '.join(titles)}; say which, with {options}.")


class RosterError(GraderError):
    """A list of learners that cannot be used."""

    def __init__(self, file: str, reason: str, advice: str) -> None:
        super().__init__(f"{file} cannot be used as a list of learners: {reason}; {advice}.")


class UnknownZoneError(GraderError):
    """A name that is no time zone's."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no time zone {name[:80]!a}; give one as in --timezone=Europe/Berlin.")


class CollectBusyError(GraderError):
    """Another run of `grader collect` in the same course."""

    def __init__(self) -> None:
        super().__init__("another `grader collect` is at work in this course; wait until it has ended.")


class CannotPlaceError(GraderError):
    """Submissions that could not be written."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"the submissions could not be written: {reason}; when that is mended, collect again: what is in place "
            "stays."
        )


class LearnersNotNamedError(GraderError):
    """A gradebook that did not take the names of a list of learners."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            "the submissions are in place, but the gradebook did not take the learners' names: "
            f"{_one_line(reason)}; collect again."
        )


class LeftOutError(GraderError):
    """Submissions of a download that were not collected."""

    def __init__(self, count: int) -> None:
        what = "1 submission was" if count == 1 else f"{count} submissions were"
        super().__init__(f"{what} left out, see above; mend what is said there and collect again.")
