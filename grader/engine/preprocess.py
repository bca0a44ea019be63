"""The engine as nbgrader's own preprocessors, so that `nbgrader autograde` and formgrader's button run it.

In nbgrader_config.py, EngineSanitize is the one preprocessor that sanitizes, and EngineExecute takes the place of
nbgrader's Execute. EngineExecute also works behind nbgrader's own sanitizing, but that ends a whole batch at a notebook
with an unknown schema version.
"""

import atexit
import contextlib
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, Float

from grader.course import Course
from grader.engine.grade import grade
from grader.engine.gradebook import released_checksums, unanswered
from grader.engine.restore import Assignment, restore
from grader.engine.sandbox import Sandbox
from grader.engine.store import answers_of, graded_notebook, load_assignment
from grader.engine.verdict import Limits, Verdict
from grader.exceptions import NoSandboxError, UnknownUnitError
from grader.notebooks import grade_id, without_hidden_tests

__all__ = ["EngineExecute", "EngineSanitize"]

_handed_over: dict[tuple[str, str], bytes] = {}
"""Submissions by learner and unit, from sanitizing to grading, so that the engine sees them as they were."""


class EngineSanitize(NbGraderPreprocessor):  # type: ignore[misc]
    """Put the assignment's notebook in a submission's place and keep that for EngineExecute, which has to follow.

    No other preprocessor sees anything of the learner's that the engine has not looked at.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Treat a submission as it came."""
        assignment = _assignment(self.config, resources)
        _handed_over[_key(resources)] = json.dumps(nb).encode()
        return restore(assignment, []).notebook, resources


class EngineExecute(NbGraderPreprocessor):  # type: ignore[misc]
    """Grade a submission with the engine, and leave outputs from which nbgrader arrives at the engine's points."""

    sandbox = Enum(("full", "none"), "full", help="How learner code is kept apart; none: not at all.").tag(
        config=True
    )
    cell_seconds = Float(Limits().cell_seconds, help="Seconds that one cell may take.").tag(config=True)
    total_seconds = Float(Limits().total_seconds, help="Seconds that a submission may take.").tag(config=True)

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Grade a sanitized submission; its cells become the assignment's, with the learner's answers in them."""
        from nbformat import from_dict

        assignment = _assignment(self.config, resources)
        data = _handed_over.pop(_key(resources), None)
        if data is None:
            data = _as_released(nb)
        limits = replace(Limits(), cell_seconds=self.cell_seconds, total_seconds=self.total_seconds)
        verdict = _warm.grade(assignment, data, limits, self.sandbox)
        graded = from_dict(graded_notebook(assignment, verdict))  # type: ignore[no-untyped-call]
        _mark_answers(graded, released_checksums(resources["nbgrader"]["db_url"], assignment.unit))
        _agree(graded, verdict)
        for note in verdict.notes:
            self.log.warning("%s: %s", resources["nbgrader"]["student"], ascii(note.instructor))
        return graded, resources


def _assignment(config: Any, resources: Any) -> Assignment:
    """The assignment of a notebook.

    Raises:
        UnknownUnitError: it is none of the course's; left alone, its tests would pass without having run.
    """
    unit = resources["nbgrader"]["assignment"]
    course = Course(Path(config.CourseDirectory.get("root", ".")).resolve())
    if resources["nbgrader"]["notebook"] != unit:
        raise UnknownUnitError(resources["nbgrader"]["notebook"], course.units())
    return load_assignment(course, unit)


def _key(resources: Any) -> tuple[str, str]:
    return str(resources["nbgrader"]["student"]), str(resources["nbgrader"]["assignment"])


def _as_released(nb: Any) -> bytes:
    """A notebook that nbgrader sanitized as the learner had it: without the hidden tests that came back."""
    from nbformat import from_dict

    copied = from_dict(nb)  # type: ignore[no-untyped-call]
    for cell in copied["cells"]:
        if grade_id(cell) and not cell["metadata"]["nbgrader"].get("solution"):
            cell["source"] = without_hidden_tests(cell["source"])
    return json.dumps(copied).encode()


def _mark_answers(graded: Any, checksums: dict[str, str]) -> None:
    """Give cells the checksum of what was given out, and answers that are none their own: so nbgrader sees that."""
    from nbgrader.utils import compute_checksum

    answers = answers_of(graded)
    for cell in graded["cells"]:
        name = grade_id(cell)
        if name is None:
            continue
        marks = cell["metadata"]["nbgrader"]
        if name in checksums:
            marks["checksum"] = checksums[name]
        if name in answers and unanswered(cell, checksums.get(name)):
            marks["checksum"] = compute_checksum(cell)


def _agree(graded: Any, verdict: Verdict) -> None:
    """Make the outputs of test cells say what the engine's points are.

    nbgrader gives nothing for an error or text on stderr, a number that is the cell's result as partial credit, and
    else all points.
    """
    from nbformat.v4 import new_output

    results = {result.cell: result for result in verdict.results}
    for cell in graded["cells"]:
        result = results.get(str(grade_id(cell)))
        if result is None or cell["cell_type"] != "code":
            continue
        kept = [output for output in cell["outputs"] if not _counts(output)]
        if 0 < result.points < result.max_points:
            data = {"text/plain": repr(result.points)}
            count = cell.get("execution_count")
            kept.append(new_output("execute_result", data=data, execution_count=count))  # type: ignore[no-untyped-call]
        elif result.points == 0:
            errors = [output for output in cell["outputs"] if output["output_type"] == "error"]
            said = result.message or "This test was not run."
            failure = new_output("error", ename="Failed", evalue=said, traceback=[said])  # type: ignore[no-untyped-call]
            kept += errors or [failure]
        cell["outputs"] = kept


def _counts(output: Any) -> bool:
    """Whether an output has a say in nbgrader's points."""
    kind = output["output_type"]
    return kind in ("error", "execute_result") or (kind == "stream" and output["name"] == "stderr")


class _Warm:
    """The sandbox that this process keeps for the unit at hand."""

    def __init__(self) -> None:
        self._sandbox: Sandbox | None = None
        self._key: object = None
        self._lock = threading.Lock()

    def grade(self, assignment: Assignment, data: bytes, limits: Limits, mode: str) -> Verdict:
        """Grade in the sandbox; one that has ended meanwhile is replaced once."""
        key = (assignment.unit, assignment.files, limits, mode)
        with self._lock:
            if self._sandbox is not None and self._key == key:
                with contextlib.suppress(NoSandboxError):
                    return grade(assignment, data, limits, self._sandbox)
            self._end()
            self._sandbox, self._key = Sandbox(limits, assignment.files, mode), key
            return grade(assignment, data, limits, self._sandbox)

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
