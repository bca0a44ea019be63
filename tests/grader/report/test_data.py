"""What is read of a class: the gradebook's marks, and what the graded notebooks keep."""

import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.engine.store import RECORD_KEY
from grader.engine.verdict import REPAIRED, Note
from grader.exceptions import GradebookUnreadableError, NotGradedError, UnknownUnitError
from grader.report.data import HIDDEN, VISIBLE, WRITTEN, Class, Graded, read_class
from tests.grader.engine.courses import UNIT, by_hand, copied, db_url, make_released
from tests.grader.scored_class import WRITTEN as WRITTEN_ANSWER
from tests.grader.scored_class import keep
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow

SAID = "gelu is wrong on random input."


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """Ada has all points, Alan half of them and a repaired notebook, Grace waits, Kurt handed in what he was given."""
    copy = make_released(tmp_path_factory.mktemp("report") / "course")
    course = Course(copy.root)
    shutil.rmtree(course.submitted)
    keep(course, "ada", 1.0, timings=(("gelu", 0.25), ("cell 3", 0.5)))
    by_hand(course, "ada", WRITTEN_ANSWER, 2.0, extra=1.0)
    note = Note("test_gelu", "To the learner.", "To the instructor.")
    keep(course, "alan", 0.5, status=REPAIRED, notes=(note,), flags=("silu uses ffn",), sandbox="none")
    keep(course, "grace", 1.0, errors={"hidden_gelu": SAID})
    keep(course, "kurt", 0.0, written=None)
    return copy


@pytest.fixture
def course(kept: CourseCopy, tmp_path: Path) -> Course:
    """A copy of the class that a test may change."""
    return Course(copied(kept, tmp_path / "course").root)


@pytest.fixture(scope="module")
def found(kept: CourseCopy) -> Class:
    return read_class(Course(kept.root), UNIT)


def of(found: Class, learner: str) -> Graded:
    return next(one for one in found.graded if one.learner == learner)


def notebook_of(course: Course, learner: str) -> Path:
    return course.autograded / learner / UNIT / f"{UNIT}.ipynb"


def change(course: Course, learner: str, document: Any) -> None:
    path = notebook_of(course, learner)
    path.chmod(0o644)
    path.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")


def test_everybody_in_the_gradebook_is_read_in_order(found: Class) -> None:
    assert [one.learner for one in found.graded] == ["ada", "alan", "grace", "kurt"]
    assert found.unread == ()


def test_points_are_those_of_the_gradebook_a_person_s_before_automatic_ones(found: Class) -> None:
    assert found.points == 40
    assert of(found, "ada").score == 37 + 2 + 1
    assert of(found, "alan").score == 18.5


def test_an_answer_that_waits_for_a_person_has_no_points_yet(found: Class) -> None:
    grace = of(found, "grace")
    assert (grace.waits, grace.marks[WRITTEN_ANSWER]) == ((WRITTEN_ANSWER,), None)
    assert of(found, "ada").waits == ()


def test_the_steps_are_the_unit_s_with_their_headings_and_tests(found: Class) -> None:
    relu = found.steps[0]
    assert (relu.name, relu.title, relu.points) == ("relu", "Step 1: ReLU", 2)
    assert [(test.name, test.kind) for test in relu.tests] == [("test_relu", VISIBLE), ("hidden_relu", HIDDEN)]
    assert [(test.name, test.kind) for test in found.steps[-1].tests] == [(WRITTEN_ANSWER, WRITTEN)]


def test_the_record_says_how_the_grading_went(found: Class) -> None:
    alan = of(found, "alan").record
    assert (alan.known, alan.status, alan.sandbox, alan.ran) == (True, REPAIRED, "none", True)
    assert (alan.flags, alan.notes) == (("silu uses ffn",), ("To the instructor.",))
    assert of(found, "ada").record.seconds == {"gelu": 0.25, "cell 3": 0.5}


def test_where_the_graded_notebook_lies_is_told_from_the_course_s_folder_on(
    kept: CourseCopy, found: Class
) -> None:
    assert (kept.root / of(found, "ada").where).is_file()


def test_when_it_was_graded_is_when_the_notebook_was_written(found: Class) -> None:
    at = of(found, "ada").record.at
    assert at is not None
    assert 0 <= (datetime.now(UTC) - at).total_seconds() < 3_600


def test_answers_as_they_were_given_out_are_no_answers(course: Course) -> None:
    given = json.loads(course.exercise(UNIT).read_bytes())
    graded = json.loads(notebook_of(course, "ada").read_bytes())
    relu = next(c for c in given["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == "relu")
    for cell in graded["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "relu":
            cell["source"] = "".join(relu["source"])
    change(course, "ada", graded)
    answers = of(read_class(course, UNIT), "ada").record.answers
    assert "relu" not in answers
    assert "silu" in answers


def test_the_template_has_what_is_given_and_the_reference(found: Class) -> None:
    assert "NotImplementedError" in found.template.given["relu"]
    assert "np.maximum" in found.template.reference["relu"]
    assert set(found.template.prose) == {WRITTEN_ANSWER}


def test_messages_are_those_of_the_record(course: Course) -> None:
    graded = json.loads(notebook_of(course, "ada").read_bytes())
    graded["metadata"][RECORD_KEY]["results"][0]["message"] = SAID
    change(course, "ada", graded)
    record = of(read_class(course, UNIT), "ada").record
    assert record.messages == {graded["metadata"][RECORD_KEY]["results"][0]["cell"]: SAID}


def test_an_older_record_s_messages_are_those_that_the_notebook_shows(course: Course) -> None:
    graded = json.loads(notebook_of(course, "grace").read_bytes())
    for key in ("results", "flags", "notes", "seconds"):
        del graded["metadata"][RECORD_KEY][key]
    change(course, "grace", graded)
    record = of(read_class(course, UNIT), "grace").record
    assert record.messages == {"hidden_gelu": SAID}
    assert (record.known, record.flags, record.notes, record.seconds) == (True, (), (), {})


def test_a_submission_without_graded_notebook_counts_with_its_points(course: Course) -> None:
    shutil.rmtree(course.autograded / "alan")
    found = read_class(course, UNIT)
    assert (of(found, "alan").score, of(found, "alan").record.known) == (18.5, False)
    assert found.unread == ()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": []}', '{"metadata": 1, "cells": []}', "[" * 100_000])
def test_a_graded_notebook_that_cannot_be_read_is_named(text: str, course: Course) -> None:
    change(course, "alan", text)
    found = read_class(course, UNIT)
    assert found.unread == ("alan",)
    assert of(found, "alan").score == 18.5


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"status": 3, "sandbox": None},
        {"results": {"a": 1}, "flags": "flags", "notes": 7, "seconds": [1]},
        {"results": [1, {"message": 2}, {"cell": [], "message": "x"}], "notes": [None], "flags": [None, 1]},
        {"seconds": {"relu": "long", "silu": -1, "gelu": 1e300, "tanh": None}},
    ],
)
def test_a_record_of_another_shape_is_taken_for_what_it_has(record: dict[str, Any], course: Course) -> None:
    graded = json.loads(notebook_of(course, "ada").read_bytes())
    graded["metadata"][RECORD_KEY] = record
    change(course, "ada", graded)
    found = read_class(course, UNIT)
    assert of(found, "ada").record.seconds == {}
    assert found.unread == ()


def test_reading_changes_nothing(course: Course) -> None:
    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in course.var.rglob("*") if path.is_file()}

    before = files()
    read_class(course, UNIT)
    assert files() == before


def test_a_unit_that_the_course_does_not_have_is_said(course: Course) -> None:
    with pytest.raises(UnknownUnitError, match="no unit 'gates'"):
        read_class(course, "gates")


def test_a_unit_without_a_graded_submission_is_said(released: Course) -> None:
    with pytest.raises(NotGradedError, match="grader autograde activations"):
        read_class(released, UNIT)


def test_a_course_without_gradebook_is_said_and_gets_none(course: Course) -> None:
    gradebook = Path(db_url(course).removeprefix("sqlite:///"))
    gradebook.unlink()
    with pytest.raises(NotGradedError, match="grader autograde activations"):
        read_class(course, UNIT)
    assert not gradebook.exists()


def test_a_file_that_is_no_gradebook_is_said(course: Course) -> None:
    Path(db_url(course).removeprefix("sqlite:///")).write_bytes(b"no gradebook " * 100)
    with pytest.raises(GradebookUnreadableError, match="the gradebook cannot be read"):
        read_class(course, UNIT)


@pytest.fixture
def released(kept: CourseCopy, tmp_path: Path) -> Course:
    """The course with the unit in its gradebook and nobody's submission."""
    from nbgrader.api import Gradebook

    course = Course(copied(kept, tmp_path / "released").root)
    with Gradebook(db_url(course)) as gradebook:
        for learner in ("ada", "alan", "grace", "kurt"):
            gradebook.remove_submission(UNIT, learner)
    return course
