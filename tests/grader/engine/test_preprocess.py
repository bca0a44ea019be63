"""nbgrader's autograde with the engine in it: the same rows, and nothing that ends a batch."""

import json
import shutil
from typing import Any

import nbformat
import pytest

from grader.course import Course
from grader.engine import preprocess
from grader.engine.gradebook import NO_RESPONSE
from grader.engine.preprocess import EngineExecute, EngineSanitize
from grader.engine.restore import Assignment, restore
from grader.engine.store import graded_notebook, load_assignment
from grader.engine.verdict import GRADED, UNREADABLE, TestResult, Verdict
from grader.exceptions import UnknownUnitError
from grader.notebooks import grade_id, read_notebook
from tests.grader.engine.courses import (
    ENGINE,
    FOUR,
    STOCK,
    UNIT,
    WRITTEN,
    autograded,
    copied,
    hand_in,
    restored,
    rows,
)
from tests.helpers import ROOT, CourseCopy

# ------------------------------------------------------------------------------------ outputs and nbgrader's rules


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return load_assignment(Course(ROOT), UNIT)


def by_nbgrader(assignment: Assignment, points: float, outputs: list[Any]) -> Any:
    """A test cell's score by nbgrader, for the engine's points and the outputs that the cell had."""
    from nbgrader.utils import determine_grade

    notebook = restore(assignment, []).notebook
    (cell,) = [cell for cell in notebook["cells"] if grade_id(cell) == "hidden_relu_grad"]
    cell["outputs"] = outputs
    result = TestResult("hidden_relu_grad", "relu_grad", points, 2.0, "" if points else "It is wrong.")
    preprocess._agree(notebook, Verdict(GRADED, "", "", (result,), notebook=notebook))
    nbformat.validate(notebook)
    return determine_grade(cell)[0]


STDERR = nbformat.from_dict({"output_type": "stream", "name": "stderr", "text": "a warning"})
STDOUT = nbformat.from_dict({"output_type": "stream", "name": "stdout", "text": "0.5"})
ERROR = nbformat.from_dict({"output_type": "error", "ename": "E", "evalue": "e", "traceback": ["E: e"]})
RESULT = nbformat.from_dict(
    {"output_type": "execute_result", "data": {"text/plain": "0.5"}, "metadata": {}, "execution_count": 1}
)
OTHER = nbformat.from_dict(
    {"output_type": "execute_result", "data": {"text/html": "x"}, "metadata": {}, "execution_count": 1}
)


@pytest.mark.parametrize("points", [0.0, 0.25, 1.5, 2.0])
@pytest.mark.parametrize("outputs", [[], [STDERR], [STDOUT], [ERROR], [RESULT], [OTHER], [STDERR, ERROR, RESULT]])
def test_nbgrader_arrives_at_the_engine_s_points(
    assignment: Assignment, points: float, outputs: list[Any]
) -> None:
    assert by_nbgrader(assignment, points, list(outputs)) == points


def test_a_failed_test_keeps_its_message(assignment: Assignment) -> None:
    notebook = restore(assignment, []).notebook
    (cell,) = [cell for cell in notebook["cells"] if grade_id(cell) == "test_relu"]
    cell["outputs"] = [ERROR]
    results = (TestResult("test_relu", "relu", 0.0, 1.0, "x"), TestResult("test_silu", "silu", 0.0, 1.0))
    preprocess._agree(notebook, Verdict(GRADED, "", "", results, notebook=notebook))
    assert cell["outputs"] == [ERROR]
    (other,) = [cell for cell in notebook["cells"] if grade_id(cell) == "test_silu"]
    assert other["outputs"][0]["evalue"] == "This test was not run."


@pytest.mark.parametrize(("text", "score"), [("My own words.", None), ("YOUR ANSWER HERE", 0), (None, 0)])
def test_nbgrader_arrives_at_what_the_gradebook_says_of_a_written_answer(
    assignment: Assignment, text: str | None, score: int | None
) -> None:
    from nbgrader.utils import compute_checksum, determine_grade

    def graded(answers: dict[str, str]) -> Any:
        return graded_notebook(assignment, Verdict(GRADED, "", "", notebook=restored(assignment, answers)))

    notebook, given = graded({WRITTEN: text} if text else {}), graded({WRITTEN: "YOUR ANSWER HERE"})
    (released,) = [cell for cell in given["cells"] if grade_id(cell) == WRITTEN]
    preprocess._mark_answers(notebook, {WRITTEN: compute_checksum(released)})
    (cell,) = [cell for cell in notebook["cells"] if grade_id(cell) == WRITTEN]
    assert determine_grade(cell) == (score, 3)


@pytest.mark.parametrize("kind", [EngineSanitize, EngineExecute])
@pytest.mark.parametrize("names", [("other", UNIT), ("none", "none"), (UNIT, "none")])
def test_what_is_no_notebook_of_the_course_is_never_left_to_pass_unrun(
    kind: type[Any], names: tuple[str, str]
) -> None:
    from traitlets.config import Config

    config = Config({"CourseDirectory": {"root": str(ROOT)}})
    resources = {"nbgrader": {"notebook": names[0], "assignment": names[1], "student": "ada", "db_url": ""}}
    with pytest.raises(UnknownUnitError):
        kind(config=config).preprocess(nbformat.from_dict({"cells": [], "metadata": {}}), resources)


def test_nothing_reaches_other_preprocessors_from_a_sanitized_submission() -> None:
    from traitlets.config import Config

    config = Config({"CourseDirectory": {"root": str(ROOT)}})
    resources = {"nbgrader": {"notebook": UNIT, "assignment": UNIT, "student": "ada", "db_url": ""}}
    evil = {"cell_type": "code", "source": "evil", "metadata": {"nbgrader": {"schema_version": 99}}, "id": "x"}
    nb = nbformat.from_dict({"cells": [evil], "metadata": {"evil": 1}, "nbformat": 4, "nbformat_minor": 5})
    sanitized, _ = EngineSanitize(config=config).preprocess(nb, resources)
    nbformat.validate(sanitized)
    assert "evil" not in nbformat.writes(sanitized)
    assert b"evil" in preprocess._handed_over.pop(("ada", UNIT))


# -------------------------------------------------------------------------------------- in nbgrader's autograde


@pytest.fixture(scope="module")
def run(
    released_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Course, dict[str, tuple[bool, str]]]:
    """A class graded by nbgrader with the engine in it, a few strange submissions first."""
    copy = copied(released_course, tmp_path_factory.mktemp("preprocess") / "course", FOUR)
    course = Course(copy.root)
    late = (course.submitted / "learner-07" / UNIT / f"{UNIT}.ipynb").read_text(encoding="utf-8")
    newer = json.loads(late)
    for cell in newer["cells"]:
        if grade_id(cell):
            cell["metadata"]["nbgrader"]["schema_version"] = 99
    newer["cells"].append(next(cell for cell in newer["cells"] if grade_id(cell) == "test_relu"))
    hand_in(course, "schema", json.dumps(newer))
    empty = json.loads(late) | {"cells": []}
    hand_in(course, "no-cells", json.dumps(empty))
    hand_in(course, "no-json", "my answers are on paper")
    shutil.copytree(course.submitted / "learner-09", course.submitted / "behind")
    jobs = [(ENGINE, learner) for learner in ("schema", "no-cells", "no-json", *FOUR)]
    behind = {"sanitize": STOCK["sanitize"], "autograde": ENGINE["autograde"]}
    return course, autograded(copy, [*jobs, (behind, "behind")])


@pytest.mark.slow
@pytest.mark.parametrize("learner", FOUR)
def test_the_gradebook_is_as_nbgrader_s_own_execution_leaves_it(
    learner: str, run: tuple[Course, dict[str, tuple[bool, str]]], stock_rows: dict[str, dict[str, Any]]
) -> None:
    assert run[1][learner][0], run[1][learner]
    assert rows(run[0], learner)[learner] == stock_rows[learner]


@pytest.mark.slow
def test_an_unknown_schema_and_a_cell_that_is_there_twice_are_graded(
    run: tuple[Course, dict[str, tuple[bool, str]]],
) -> None:
    assert run[1]["schema"][0], run[1]["schema"]
    row = rows(run[0], "schema")["schema"]
    assert (row["score"], row["max_score"]) == (37, 40)


@pytest.mark.slow
def test_a_notebook_without_cells_gets_nothing_and_says_why(
    run: tuple[Course, dict[str, tuple[bool, str]]],
) -> None:
    row = rows(run[0], "no-cells")["no-cells"]
    assert (row["score"], row["waits"], row["comments"]["relu"][0]) == (0, False, NO_RESPONSE)
    notebook = read_notebook(run[0].autograded / "no-cells" / UNIT / f"{UNIT}.ipynb")
    assert "no cell of this exercise" in notebook["cells"][0]["source"]
    assert notebook["metadata"]["ffn-grading"]["status"] == UNREADABLE


@pytest.mark.slow
def test_what_is_no_notebook_is_reported_and_the_next_ones_are_graded(
    run: tuple[Course, dict[str, tuple[bool, str]]],
) -> None:
    graded = {learner: done for learner, (done, _) in run[1].items()}
    assert graded.pop("no-json") is False
    assert all(graded.values())


@pytest.mark.slow
def test_behind_nbgrader_s_own_sanitizing_the_points_are_the_same(
    run: tuple[Course, dict[str, tuple[bool, str]]], stock_rows: dict[str, dict[str, Any]]
) -> None:
    assert run[1]["behind"][0], run[1]["behind"]
    assert rows(run[0], "behind")["behind"] == stock_rows["learner-09"]
