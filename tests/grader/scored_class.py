"""A small class with scores in the gradebook, without anything having been graded."""

import shutil
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.engine.gradebook import Writer
from grader.engine.store import graded_notebook, notebook_bytes, write_graded
from grader.engine.verdict import Verdict
from grader.notebooks import HIDDEN_KEY, grade_id
from tests.grader.engine.courses import UNIT, a_verdict, by_hand, db_url, make_released
from tests.helpers import CourseCopy

WRITTEN = "inactive_or_dead"


def keep(course: Course, learner: str, share: float, *, errors: dict[str, str] | None = None, **more: Any) -> None:
    """Put a result into the gradebook and its notebook below grader/var; ``errors`` are messages of test cells."""
    assignment, verdict = a_verdict(course, share=share, **more)
    notebook = verdict.notebook
    for cell in notebook["cells"] if errors else ():
        message = (errors or {}).get(str(grade_id(cell)))
        if message is not None:
            lines = ["<hidden>, line 3: assert secret == 730.25", f"AssertionError: {message}"]
            error = {"output_type": "error", "ename": "AssertionError", "evalue": message, "traceback": lines}
            cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "asked 730.25"}, error]
            if str(grade_id(cell)).startswith("hidden_"):
                cell["metadata"][HIDDEN_KEY] = True
    put(course, learner, assignment, verdict)


def put(course: Course, learner: str, assignment: Any, verdict: Verdict) -> None:
    """Put a verdict into the gradebook and below grader/var."""
    with Writer(db_url(course)) as writer:
        writer.save(UNIT, learner, verdict, None, assignment)
    write_graded(course, learner, UNIT, notebook_bytes(graded_notebook(assignment, verdict)), None)


def name(course: Course, learner: str, **known: str) -> None:
    """What the gradebook knows of a learner: first_name, last_name, email."""
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        gradebook.update_or_create_student(learner, **known)


def make_scored(target: Path) -> CourseCopy:
    """Ada has 40 of 40, Alan 18.5 and 3 by hand, Grace waits for a person, Kurt handed nothing in."""
    copy = make_released(target)
    course = Course(copy.root)
    shutil.rmtree(course.submitted)
    keep(course, "alovelace", 1.0)
    by_hand(course, "alovelace", WRITTEN, 3.0)
    keep(course, "aturing", 0.5)
    by_hand(course, "aturing", WRITTEN, 3.0, comment="Say *which* inputs.")
    keep(course, "ghopper", 1.0)
    names = {
        "alovelace": "Ada Lovelace",
        "aturing": "Alan Turing",
        "ghopper": "Grace Hopper",
        "kgoedel": "Kurt Gödel",
    }
    for learner, known in names.items():
        first, last = known.split()
        name(course, learner, first_name=first, last_name=last, email=f"{learner}@example.edu")
    return copy
