"""Learner notebooks generated from reference notebooks, on a course with one small unit."""

import os
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from grader.course import Course
from grader.exceptions import NbgraderFailedError, UnknownUnitError
from grader.release import generate, release
from tests.helpers import ROOT


def marked(cell: Any, grade_id: str, **more: Any) -> Any:
    marks = {"grade": False, "grade_id": grade_id, "locked": False, "schema_version": 3, "solution": False}
    cell.metadata["nbgrader"] = {**marks, "task": False, **more}
    cell.id = grade_id
    return cell


def reference() -> Any:
    """A unit of one step: double a number."""
    answer = "def double(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
    hidden = "### BEGIN HIDDEN TESTS\nassert double(21) == 42, 'not doubled'\n### END HIDDEN TESTS"
    tests = f"assert double(1) == 2\n{hidden}"
    shown = new_output("execute_result", data={"text/plain": "'an output'"}, execution_count=2)
    cells = [
        new_markdown_cell("# Double", id="title"),
        marked(new_code_cell(answer, execution_count=1), "double", solution=True),
        marked(
            new_code_cell(tests, execution_count=2, outputs=[shown]),
            "test_double",
            grade=True,
            locked=True,
            points=2,
        ),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


def course_with_a_unit(root: Path) -> Course:
    course = Course(root)
    (course.solutions / "double").mkdir(parents=True)
    shutil.copyfile(ROOT / "nbgrader_config.py", course.root / "nbgrader_config.py")
    nbformat.write(reference(), course.reference("double"))
    (course.solutions / "double" / "data.csv").write_text("1,2\n")
    return course


@pytest.fixture
def fresh(tmp_path: Path) -> Course:
    """A course in which nothing was released yet."""
    return course_with_a_unit(tmp_path / "course")


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course with its unit released; tests read it, and change copies of it (a new gradebook takes seconds)."""
    course = course_with_a_unit(tmp_path_factory.mktemp("released") / "course")
    assert release(course, "double") == ["exercises/double/data.csv", "exercises/double/double.ipynb"]
    return course


@pytest.fixture
def made(released: Course, tmp_path: Path) -> Course:
    """A copy of the course with its unit released."""
    return Course(Path(shutil.copytree(released.root, tmp_path / "course")))


def change_reference(course: Course, old: str, new: str) -> None:
    text = course.reference("double").read_text()
    assert old in text
    course.reference("double").write_text(text.replace(old, new))


def files(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_unit_is_released_with_its_other_files(released: Course) -> None:
    assert sorted(files(released.exercises)) == ["double/data.csv", "double/double.ipynb"]


@pytest.mark.parametrize("secret", ["return 2 * x", "BEGIN SOLUTION", "HIDDEN TESTS", "double(21)", "an output"])
def test_answers_hidden_tests_and_outputs_are_left_out(released: Course, secret: str) -> None:
    assert secret in released.reference("double").read_text()
    assert secret not in released.exercise("double").read_text()


@pytest.mark.parametrize("kept", ["def double(x):", "# YOUR CODE HERE", "assert double(1) == 2"])
def test_stubs_and_visible_tests_are_kept(released: Course, kept: str) -> None:
    assert kept in released.exercise("double").read_text()


def test_the_same_reference_gives_the_same_bytes(released: Course, tmp_path: Path) -> None:
    generate(released, "double", tmp_path / "generated")
    assert files(tmp_path / "generated") == files(released.exercises / "double")


def test_generating_leaves_exercises_and_gradebook_alone(fresh: Course, tmp_path: Path) -> None:
    generate(fresh, "double", tmp_path / "generated")
    assert not fresh.exercises.exists()
    assert not (fresh.var / "gradebook.db").exists()


def test_releasing_records_the_unit_in_the_gradebook(released: Course) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(released.config().CourseDirectory.db_url) as gradebook:
        assert gradebook.find_assignment("double").max_score == 2


def test_released_again_nothing_is_touched(made: Course) -> None:
    before = times(made.exercises)
    assert release(made, "double") == []
    assert times(made.exercises) == before


def test_a_file_that_did_not_change_keeps_its_time(made: Course) -> None:
    os.utime(made.exercises / "double" / "data.csv", (1, 1))
    change_reference(made, "# Double", "# Double it")
    assert release(made, "double") == ["exercises/double/double.ipynb"]
    assert (made.exercises / "double" / "data.csv").stat().st_mtime == 1


def test_an_edited_exercise_is_put_right(made: Course) -> None:
    before = files(made.exercises)
    made.exercise("double").write_text("edited by hand")
    assert release(made, "double") == ["exercises/double/double.ipynb"]
    assert files(made.exercises) == before


def test_a_file_that_left_the_reference_goes(made: Course) -> None:
    (made.solutions / "double" / "data.csv").unlink()
    assert release(made, "double") == ["exercises/double/data.csv"]
    assert sorted(files(made.exercises)) == ["double/double.ipynb"]


def test_a_checkpoint_in_exercises_is_no_business_of_the_release(made: Course) -> None:
    checkpoint = made.exercises / "double" / ".ipynb_checkpoints" / "double-checkpoint.ipynb"
    checkpoint.parent.mkdir()
    checkpoint.write_text("older")
    assert release(made, "double") == []
    assert checkpoint.exists()


@pytest.mark.parametrize("work", [generate, release])
def test_an_unknown_unit_is_refused(made: Course, work: Any, tmp_path: Path) -> None:
    arguments = [made, "triple", *([tmp_path / "target"] if work is generate else [])]
    with pytest.raises(UnknownUnitError, match=r"no unit 'triple' in solutions/; the units are: double\."):
        work(*arguments)


# A fault of the reference notebook, and the reason that nbgrader gives.
BAD_REFERENCES = {
    "no-end": ("    ### END SOLUTION", "    pass", "no end solution statement found"),
    "nested": ("    return 2 * x", "    ### BEGIN SOLUTION", "encountered nested begin solution statements"),
    "no-end-of-hidden-tests": ("### END HIDDEN TESTS", "pass", "No end hidden tests statement found"),
    "same-id-twice": (
        '"grade_id": "test_double"',
        '"grade_id": "double"',
        "the nbgrader metadata may be corrupted",
    ),
    "no-points": ('"points": 2,', "", "the nbgrader metadata may be corrupted"),
    "no-notebook": ('"cells"', '"cell"', "missing an expected key: cells"),
    "no-json": ('"cells": [', '"cells": ', "Notebook does not appear to be JSON"),
}


@pytest.mark.parametrize("fault", BAD_REFERENCES)
def test_a_faulty_reference_is_refused_with_the_reason(made: Course, fault: str) -> None:
    old, new, reason = BAD_REFERENCES[fault]
    change_reference(made, old, new)
    with pytest.raises(NbgraderFailedError) as caught:
        release(made, "double")
    assert str(caught.value).startswith("nbgrader could not release 'double': ")
    assert reason in str(caught.value)
    assert str(caught.value).endswith(" (whole log: grader/var/nbgrader.log).")


@pytest.mark.parametrize("fault", BAD_REFERENCES)
def test_a_faulty_reference_leaves_the_exercises_as_they_were(made: Course, fault: str) -> None:
    before, earlier = files(made.exercises), times(made.exercises)
    change_reference(made, *BAD_REFERENCES[fault][:2])
    with pytest.raises(NbgraderFailedError):
        release(made, "double")
    assert files(made.exercises) == before
    assert times(made.exercises) == earlier


def test_a_faulty_reference_that_was_mended_can_be_released(made: Course) -> None:
    change_reference(made, "    ### END SOLUTION", "    pass")
    with pytest.raises(NbgraderFailedError):
        release(made, "double")
    change_reference(made, "    pass", "    ### END SOLUTION")
    change_reference(made, "# Double", "# Double it")
    assert release(made, "double") == ["exercises/double/double.ipynb"]


def test_generating_needs_none_of_the_environments_programs_on_the_path(
    fresh: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "exercises/double/double.ipynb" in release(fresh, "double")
