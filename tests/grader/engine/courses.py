"""A released course with the demo class's submissions, for tests of what the engine keeps."""

import json
import shutil
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from grader import stock
from grader.course import Course
from grader.demo_class import demo_class, write_submissions
from grader.engine.read import read_submission
from grader.engine.restore import Assignment, restore
from grader.engine.store import load_assignment
from grader.engine.verdict import GRADED, TestResult, Verdict
from tests.helpers import CODE, CourseCopy, copy_of_course

UNIT = "activations"
WRITTEN = "inactive_or_dead"
DEMO = demo_class(UNIT)
DUE: datetime = DEMO.due.replace(tzinfo=None)
FOUR = ("learner-02", "learner-03", "learner-07", "learner-09")
"""Nothing done; one mistake; late; a test cell deleted."""

_SANITIZE = ["ClearOutput", "DeduplicateIds", "OverwriteKernelspec", "OverwriteCells", "CheckCellMetadata"]
_GRADE = ["Execute", "IgnorePattern", "LimitOutput", "SaveAutoGrades", "AssignLatePenalties", "CheckCellMetadata"]

Lists = dict[str, list[str]]

STOCK: Lists = {
    "sanitize": [f"nbgrader.preprocessors.{name}" for name in _SANITIZE],
    "autograde": [f"nbgrader.preprocessors.{name}" for name in _GRADE],
}
"""nbgrader's own preprocessors."""

ENGINE: Lists | None = None
"""What the course's configuration names."""

_SCRIPT = """
import json, sys
from pathlib import Path
from grader.course import Course

course = Course(Path.cwd())
found = {}
for lists, learner in json.loads(sys.argv[1]):
    config = course.config()
    if lists is not None:
        config.Autograde.exporter_class = "nbconvert.exporters.NotebookExporter"
        config.Autograde.sanitize_preprocessors = lists["sanitize"]
        config.Autograde.autograde_preprocessors = lists["autograde"]
        config.OverwriteCells.add_missing_cells = True
    result = course.nbgrader(config).autograde("activations", learner, create=True)
    found[learner] = (result["success"], result.get("log", "") + result.get("error", ""))
print(json.dumps(found))
"""


def autograded(course: CourseCopy, jobs: Iterable[tuple[Lists | None, str]]) -> dict[str, tuple[bool, str]]:
    """Let nbgrader autograde, each learner with these preprocessors; for each whether it did, and what it said."""
    done = course.command(sys.executable, "-c", _SCRIPT, json.dumps(list(jobs)))
    assert done.returncode == 0, done.stderr
    found: dict[str, tuple[bool, str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def make_released(target: Path) -> CourseCopy:
    """A course whose gradebook knows the unit and when it is due, with the submissions of the demo class."""
    copy = copy_of_course(target, *CODE, f"solutions/{UNIT}", f"exercises/{UNIT}")
    done = copy.grader("release", UNIT)
    assert done.returncode == 0, done.stderr
    write_submissions(Course(copy.root), DEMO)
    stock.set_due(Course(copy.root), UNIT, DEMO.due)
    return copy


def copied(course: CourseCopy, target: Path, learners: Iterable[str] | None = None) -> CourseCopy:
    """A copy of a released course, with the submissions of these learners only."""
    copy = CourseCopy(Path(shutil.copytree(course.root, target)))
    if learners is not None:
        for folder in Course(copy.root).submitted.iterdir():
            if folder.name not in set(learners):
                shutil.rmtree(folder)
    return copy


def hand_in(course: Course, learner: str, text: str | bytes, name: str = f"{UNIT}.ipynb") -> Path:
    path = course.submitted / learner / UNIT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def restored(assignment: Assignment, answers: dict[str, str], own: Iterable[str] = ()) -> Any:
    """The notebook of a submission with these answers by grade id, and some cells of the learner's own before them."""
    cells: list[dict[str, Any]] = [{"cell_type": "code", "source": text, "metadata": {}} for text in own]
    for cell in assignment.reference["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("grade_id") in answers:
            cells.append(cell | {"source": answers[marks["grade_id"]]})
    data = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()
    return restore(assignment, read_submission(data, len(data))).notebook


def forget_unit(course: Course) -> None:
    """Take the unit out of the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        gradebook.remove_assignment(UNIT)


def a_verdict(
    course: Course, *, share: float = 1.0, written: str | None = "My own words.", status: str = GRADED, **more: Any
) -> tuple[Assignment, Verdict]:
    """The verdict of a grading that gives a share of every test's points, without having graded anything."""
    assignment = load_assignment(course, UNIT)
    answers = dict(assignment.answers)
    if written is not None:
        answers[WRITTEN] = written
    marks_of = [cell["metadata"].get("nbgrader", {}) for cell in assignment.reference["cells"]]
    tests = [marks for marks in marks_of if marks.get("grade") and not marks.get("solution")]
    results = tuple(TestResult(m["grade_id"], "", share * m["points"], float(m["points"])) for m in tests)
    fields: dict[str, Any] = {
        "status": status,
        "learner": "A word to the learner.",
        "instructor": "A word to the instructor.",
        "results": results,
        "notebook": restored(assignment, answers),
    }
    return assignment, Verdict(**(fields | more))


def db_url(course: Course) -> str:
    return str(course.config().CourseDirectory.db_url)


def rows(course: Course, learner: str | None = None) -> dict[str, dict[str, Any]]:
    """All that the gradebook has of the unit's submissions, without its own keys; by learner."""
    from nbgrader.api import Gradebook, MissingEntry

    found: dict[str, dict[str, Any]] = {}
    with Gradebook(db_url(course)) as gradebook:
        try:
            submissions = gradebook.assignment_submissions(UNIT)
        except MissingEntry:
            return {}
        for submission in submissions:
            if learner not in (None, submission.student.id):
                continue
            (notebook,) = submission.notebooks
            found[submission.student.id] = {
                "timestamp": submission.timestamp,
                "late": submission.total_seconds_late,
                "penalty": notebook.late_submission_penalty,
                "score": submission.score,
                "max_score": submission.max_score,
                "written": submission.written_score,
                "failed_tests": notebook.failed_tests,
                "waits": submission.needs_manual_grade,
                "grades": {
                    grade.name: (
                        grade.auto_score,
                        grade.manual_score,
                        grade.extra_credit,
                        grade.needs_manual_grade,
                        grade.failed_tests,
                    )
                    for grade in notebook.grades
                },
                "comments": {
                    comment.name: (comment.auto_comment, comment.manual_comment) for comment in notebook.comments
                },
            }
    return found


def by_hand(
    course: Course,
    learner: str,
    cell: str,
    score: float,
    *,
    extra: float | None = None,
    comment: str | None = None,
) -> None:
    """What formgrader does when a person gives a score, extra credit and a comment."""
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        grade = gradebook.find_grade(cell, UNIT, UNIT, learner)
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = score, extra, False
        if comment is not None:
            gradebook.find_comment(cell, UNIT, UNIT, learner).manual_comment = comment
        gradebook.db.commit()
