"""The engine behind `nbgrader autograde` and formgrader's button: the plug-ins that nbgrader_config.py names.

nbgrader finds the submissions and writes the graded notebooks. SubmissionExporter keeps it from opening what a learner
handed in, EngineSanitize takes away what it copied, and EngineExecute reads, grades and records as `grader autograde`
does.
"""

import atexit
import contextlib
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbconvert.exporters import NotebookExporter
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, Float

from grader.course import Course
from grader.engine.batch import missing, noted, unreadable
from grader.engine.grade import grade
from grader.engine.gradebook import Writer
from grader.engine.read import UnreadableError
from grader.engine.restore import Assignment, restore
from grader.engine.sandbox import Sandbox
from grader.engine.store import (
    Submission,
    collect,
    digest,
    graded_notebook,
    load_assignment,
    require_learner,
)
from grader.engine.verdict import Limits, Verdict
from grader.exceptions import UnknownUnitError

__all__ = ["EngineExecute", "EngineSanitize", "SubmissionExporter"]


class SubmissionExporter(NotebookExporter):
    """Hands an empty notebook to the preprocessors in place of a file, which is never opened.

    nbgrader's own reader follows links, waits at a pipe, and ends at what is no notebook.
    """

    def from_filename(self, filename: str, resources: Any = None, **more: Any) -> Any:
        """Convert what the preprocessors put in the file's place."""
        from nbformat.v4 import new_notebook

        empty = new_notebook()  # type: ignore[no-untyped-call]
        return self.from_notebook_node(empty, resources=resources, **more)  # type: ignore[no-untyped-call]


class EngineSanitize(NbGraderPreprocessor):  # type: ignore[misc]
    """Put the assignment's notebook in a submission's place, and take away the learner's other files.

    No other preprocessor sees anything of the learner's that the engine has not looked at, and what nbgrader copied by
    following a link reaches neither formgrader nor the feedback.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Treat a submission as it came."""
        from nbformat import from_dict

        course, assignment, learner = _asked(self.config, resources)
        _clear(course.autograded / learner / assignment.unit)
        return from_dict(restore(assignment, []).notebook), resources  # type: ignore[no-untyped-call]


class EngineExecute(NbGraderPreprocessor):  # type: ignore[misc]
    """Grade a submission with the engine and record it in the gradebook, as `grader autograde` does."""

    sandbox = Enum(("full", "none"), "full", help="How learner code is kept apart; none: not at all.").tag(
        config=True
    )
    cell_seconds = Float(Limits().cell_seconds, help="Seconds that one cell may take.").tag(config=True)
    total_seconds = Float(Limits().total_seconds, help="Seconds that a submission may take.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Give back the graded notebook of the submission that nbgrader is at."""
        from nbformat import from_dict

        course, assignment, learner = _asked(self.config, resources)
        limits = replace(Limits(), cell_seconds=self.cell_seconds, total_seconds=self.total_seconds)
        record: dict[str, str] = {}
        when = None
        try:
            submission = collect(course, learner, assignment.unit, limits)
        except UnreadableError as error:
            verdict = unreadable(assignment, error)
        else:
            verdict = self._verdict(assignment, submission, limits)
            record = digest(assignment, submission)
            when = None if submission is None else submission.timestamp
        with Writer(resources["nbgrader"]["db_url"], self.config) as writer:
            writer.save(assignment.unit, learner, verdict, when, assignment)
        for note in verdict.notes:
            self.log.warning("%s: %s", learner, ascii(note.instructor))
        return from_dict(graded_notebook(assignment, verdict, record)), resources  # type: ignore[no-untyped-call]

    def _verdict(self, assignment: Assignment, submission: Submission | None, limits: Limits) -> Verdict:
        if submission is None:
            return missing(assignment)
        return noted(_warm.grade(assignment, submission.data, limits, self.sandbox), submission.notes)


def _asked(config: Any, resources: Any) -> tuple[Course, Assignment, str]:
    """The course, the assignment and the learner that nbgrader is at.

    Raises:
        UnknownUnitError: the notebook is none of the course's; left alone, its tests would pass without having run.
        InvalidLearnerError: the folder's name can be no learner's id.
    """
    asked = resources["nbgrader"]
    course = Course(Path(config.CourseDirectory.get("root", ".")).resolve())
    if asked["notebook"] != asked["assignment"]:
        raise UnknownUnitError(asked["notebook"], course.units())
    require_learner(asked["student"])
    return course, load_assignment(course, asked["assignment"]), asked["student"]


def _clear(folder: Path) -> None:
    """Remove all but the time of handing in from a folder that nbgrader prepared, if there is one."""
    with contextlib.suppress(FileNotFoundError):
        for path in list(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != "timestamp.txt":
                path.unlink()


class _Warm:
    """The sandbox that this process keeps for the unit at hand."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self._key: object = None
        self._lock = threading.Lock()

    def grade(self, assignment: Assignment, data: bytes, limits: Limits, mode: str) -> Verdict:
        """Grade in the sandbox; in a new one, where that of an earlier submission has ended or is at fault."""
        key = (assignment.unit, assignment.files, limits, mode)
        with self._lock:
            if self._key != key:
                self._end()
            if self._sandbox is not None:
                with contextlib.suppress(Exception):
                    return self._grade(assignment, data, limits)
            self._sandbox = Sandbox(limits, assignment.files, mode, modules=assignment.modules)
            self._key = key
            return self._grade(assignment, data, limits)

    def _grade(self, assignment: Assignment, data: bytes, limits: Limits) -> Verdict:
        assert self._sandbox is not None
        try:
            return grade(assignment, data, limits, self._sandbox)
        except Exception:
            self._end()
            raise
        finally:
            # formgrader's server lives on, and nothing that a learner started may do so with it.
            if self._sandbox is not None:
                self._sandbox.end_session()

    def close(self) -> None:
        """End the sandbox."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._sandbox is not None:
            self._sandbox.close()
            self._sandbox = None


_warm = _Warm()
atexit.register(_warm.close)
