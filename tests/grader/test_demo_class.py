"""The class of invented learners: who is in it, what they hand in, and whose submissions it leaves alone."""

import ast
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.demo_class import DemoClass, Learner, demo_class, write_submissions
from grader.exceptions import DemoInTheWayError, NoDemoClassError, UnknownUnitError
from grader.notebooks import answer_ids, grade_id, read_notebook
from tests.helpers import UNITS, copy_of_course

DEMO = demo_class("activations")
LEARNERS = [pytest.param(learner, id=learner.id) for learner in DEMO.learners]


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(copy_of_course(tmp_path / "course", *UNITS, "nbgrader_config.py").root)


@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course into which the class has handed in; tests only read it."""
    made = Course(
        copy_of_course(tmp_path_factory.mktemp("handed-in") / "course", *UNITS, "nbgrader_config.py").root
    )
    write_submissions(made, DEMO)
    return made


def submitted(course: Course) -> dict[str, bytes]:
    paths = [path for path in course.submitted.rglob("*") if path.is_file()]
    return {path.relative_to(course.submitted).as_posix(): path.read_bytes() for path in paths}


def submission(course: Course, learner: str) -> dict[str | None, Any]:
    """The cells of a submission by grade id."""
    notebook = read_notebook(course.submitted / learner / "activations" / "activations.ipynb")
    return {grade_id(cell): cell for cell in notebook["cells"]}


def handed_in_at(course: Course, learner: str) -> datetime:
    stamp = (course.submitted / learner / "activations" / "timestamp.txt").read_text().strip()
    return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S %Z").replace(tzinfo=UTC)


# --------------------------------------------------------------------------------------- who is in it


def test_at_least_eight_learners_with_invented_ids() -> None:
    ids = [learner.id for learner in DEMO.learners]
    assert ids == [f"learner-{i:02d}" for i in range(1, len(ids) + 1)]
    assert len(ids) >= 8


KINDS: dict[str, Callable[[Learner], object]] = {
    "perfect": lambda x: not (x.blank or x.mistakes or x.drawn or x.answered or x.deleted or x.late_hours),
    "blank": lambda x: x.blank,
    "late": lambda x: x.late_hours > 0,
    "not-running": lambda x: "does_not_run" in x.mistakes,
    "test-cell-deleted": lambda x: x.deleted,
    "half-done": lambda x: x.answered,
    "left-to-the-seed": lambda x: x.drawn,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_learner_is_there(kind: str) -> None:
    assert [learner.id for learner in DEMO.learners if KINDS[kind](learner)]


def test_at_least_three_learners_make_typical_mistakes() -> None:
    assert sum(bool(set(learner.mistakes) - {"does_not_run"}) for learner in DEMO.learners) >= 3


def test_every_learner_has_a_story() -> None:
    assert all(learner.story for learner in DEMO.learners)
    assert len({learner.story for learner in DEMO.learners}) == len(DEMO.learners)


def test_every_mistake_is_made_by_somebody_or_left_to_the_seed() -> None:
    made = {name for learner in DEMO.learners for name in learner.mistakes}
    assert made <= set(DEMO.mistakes)
    assert "does_not_run" in made


@pytest.mark.parametrize("name", DEMO.mistakes)
def test_a_mistake_takes_the_place_of_an_answer_cell_of_the_unit(name: str, handed_in: Course) -> None:
    assert DEMO.mistakes[name][0] in answer_ids(read_notebook(handed_in.reference("activations")))


@pytest.mark.parametrize("name", [name for name in DEMO.mistakes if name != "does_not_run"])
def test_a_mistake_defines_what_the_step_asks_for(name: str, handed_in: Course) -> None:
    cell, code = DEMO.mistakes[name]
    notebook = read_notebook(handed_in.reference("activations"))
    (source,) = [c["source"] for c in notebook["cells"] if grade_id(c) == cell]
    asked, given = ({node.name for node in ast.parse(x).body if hasattr(node, "name")} for x in (source, code))
    assert given == asked


def test_the_answer_that_does_not_run_is_no_python() -> None:
    with pytest.raises(SyntaxError):
        ast.parse(DEMO.mistakes["does_not_run"][1])


@pytest.mark.parametrize("learner", [x for x in LEARNERS if x.values[0].deleted])
def test_a_deleted_cell_is_a_test_cell_of_the_unit(learner: Learner, handed_in: Course) -> None:
    cells = {grade_id(cell): cell for cell in read_notebook(handed_in.exercise("activations"))["cells"]}
    for name in learner.deleted:
        assert cells[name]["metadata"]["nbgrader"]["grade"]


@pytest.mark.parametrize("unit", ["gates", "", "../activations"])
def test_a_unit_without_a_demo_class_is_refused_with_those_that_have_one(unit: str) -> None:
    with pytest.raises(NoDemoClassError) as caught:
        demo_class(unit)
    assert str(caught.value) == f"there is no demo class for the unit {unit!r}; there is one for: activations."


# -------------------------------------------------------------------------------------- what they hand in


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_hands_in_a_notebook_and_a_time(learner: Learner, handed_in: Course) -> None:
    names = {name for name in submitted(handed_in) if name.startswith(f"{learner.id}/")}
    assert names == {f"{learner.id}/activations/{name}" for name in ("activations.ipynb", "timestamp.txt")}


def test_nothing_else_is_left_behind(handed_in: Course) -> None:
    assert sorted(path.name for path in handed_in.submitted.iterdir()) == [x.id for x in DEMO.learners]
    assert all([path.name for path in x.iterdir()] == ["activations"] for x in handed_in.submitted.iterdir())


@pytest.mark.parametrize("learner", LEARNERS)
def test_cells_that_are_locked_are_as_released(learner: Learner, handed_in: Course) -> None:
    cells = submission(handed_in, learner.id)
    for cell in read_notebook(handed_in.exercise("activations"))["cells"]:
        marks = cell["metadata"].get("nbgrader", {})
        if marks.get("locked") and grade_id(cell) not in learner.deleted:
            assert cells[grade_id(cell)]["source"] == cell["source"]


def test_the_blank_submission_is_the_released_notebook(handed_in: Course) -> None:
    (blank,) = [learner.id for learner in DEMO.learners if learner.blank]
    notebook = read_notebook(handed_in.submitted / blank / "activations" / "activations.ipynb")
    assert notebook == read_notebook(handed_in.exercise("activations"))


def test_the_perfect_submission_answers_every_cell_without_the_marks(handed_in: Course) -> None:
    cells = submission(handed_in, "learner-01")
    for name in answer_ids(read_notebook(handed_in.reference("activations"))):
        assert "NotImplementedError" not in cells[name]["source"]
        assert "YOUR" not in cells[name]["source"]
        assert not re.search(r"### (BEGIN|END)", cells[name]["source"])


@pytest.mark.parametrize("learner", [x for x in LEARNERS if x.values[0].mistakes])
def test_a_learner_with_mistakes_makes_them_and_no_others(learner: Learner, handed_in: Course) -> None:
    cells, perfect = submission(handed_in, learner.id), submission(handed_in, "learner-01")
    differing = {name for name, cell in cells.items() if cell["source"] != perfect[name]["source"]}
    assert differing == {DEMO.mistakes[name][0] for name in learner.mistakes}
    for name in learner.mistakes:
        cell, code = DEMO.mistakes[name]
        assert cells[cell]["source"] == code


@pytest.mark.parametrize("learner", [x for x in LEARNERS if x.values[0].drawn])
def test_mistakes_left_to_the_seed_are_as_many_as_said(learner: Learner, handed_in: Course) -> None:
    cells, perfect = submission(handed_in, learner.id), submission(handed_in, "learner-01")
    differing = [name for name, cell in cells.items() if cell["source"] != perfect[name]["source"]]
    assert len(differing) == learner.drawn


@pytest.mark.parametrize("learner", [x for x in LEARNERS if x.values[0].deleted])
def test_a_deleted_cell_is_missing(learner: Learner, handed_in: Course) -> None:
    assert not set(learner.deleted) & set(submission(handed_in, learner.id))


@pytest.mark.parametrize("learner", [x for x in LEARNERS if x.values[0].answered])
def test_a_half_done_submission_answers_the_first_steps(learner: Learner, handed_in: Course) -> None:
    assert learner.answered is not None
    cells = submission(handed_in, learner.id)
    order = answer_ids(read_notebook(handed_in.reference("activations")))
    assert ["NotImplementedError" in cells[name]["source"] for name in order[:-1]] == [
        *[False] * learner.answered,
        *[True] * (len(order) - 1 - learner.answered),
    ]


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_learner_is_late_by_the_hours_said_and_otherwise_in_time(learner: Learner, handed_in: Course) -> None:
    hours = (handed_in_at(handed_in, learner.id) - DEMO.due).total_seconds() / 3600
    assert hours == learner.late_hours if learner.late_hours else -90 <= hours <= -2


# ------------------------------------------------------------------------------------------- the seed


def test_the_same_seed_gives_the_same_bytes(course: Course, handed_in: Course) -> None:
    write_submissions(course, DEMO, seed=0)
    assert submitted(course) == submitted(handed_in)


def test_made_again_the_class_is_the_same(course: Course) -> None:
    write_submissions(course, DEMO, seed=5)
    before = submitted(course)
    write_submissions(course, DEMO, seed=5)
    assert submitted(course) == before


def test_another_seed_gives_other_mistakes_and_times(course: Course, handed_in: Course) -> None:
    write_submissions(course, DEMO, seed=1)
    mine, others = submitted(course), submitted(handed_in)
    assert list(mine) == list(others)
    differing = {name for name in mine if mine[name] != others[name]}
    assert any(name.endswith("timestamp.txt") for name in differing)
    drawn = {f"{x.id}/activations/activations.ipynb" for x in DEMO.learners if x.drawn}
    assert {name for name in differing if name.endswith(".ipynb")} <= drawn
    assert drawn & differing


def test_the_ids_of_the_class_are_given_back(course: Course) -> None:
    assert write_submissions(course, DEMO) == [learner.id for learner in DEMO.learners]


# --------------------------------------------------------------------------------- other people's work


def of_a_person(course: Course, learner: str) -> Path:
    path = course.submitted / learner / "activations" / "activations.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("the work of a person")
    return path


@pytest.mark.parametrize("learner", ["learner-01", "learner-05"])
def test_a_submission_that_it_did_not_make_is_not_overwritten(course: Course, learner: str) -> None:
    path = of_a_person(course, learner)
    with pytest.raises(DemoInTheWayError) as caught:
        write_submissions(course, DEMO)
    assert str(caught.value) == (
        f"grader/var/submitted/{learner}/activations holds a submission of {learner!r} that the demo class did "
        "not make; move it away to make the demo class."
    )
    assert path.read_text() == "the work of a person"


def test_where_a_submission_is_in_the_way_nothing_is_written(course: Course) -> None:
    of_a_person(course, "learner-05")
    with pytest.raises(DemoInTheWayError):
        write_submissions(course, DEMO)
    assert list(submitted(course)) == ["learner-05/activations/activations.ipynb"]
    assert list(course.var.iterdir()) == [course.submitted]


def test_after_moving_it_away_the_class_can_be_made(course: Course) -> None:
    path = of_a_person(course, "learner-05")
    with pytest.raises(DemoInTheWayError):
        write_submissions(course, DEMO)
    path.unlink()
    path.parent.rmdir()
    assert len(write_submissions(course, DEMO)) == len(DEMO.learners)


def test_submissions_of_people_with_other_ids_stay(course: Course) -> None:
    path = of_a_person(course, "ada")
    write_submissions(course, DEMO)
    assert path.read_text() == "the work of a person"


def test_its_own_submissions_are_replaced_whole(course: Course) -> None:
    write_submissions(course, DEMO)
    before = submitted(course)
    folder = course.submitted / "learner-03" / "activations"
    (folder / "activations.ipynb").write_text("changed")
    (folder / "left-over.txt").touch()
    write_submissions(course, DEMO)
    assert submitted(course) == before


@pytest.mark.parametrize("content", ["", "{", "null", "3"], ids=["empty", "cut", "null", "number"])
def test_with_a_corrupt_list_of_its_own_submissions_it_overwrites_nothing(course: Course, content: str) -> None:
    write_submissions(course, DEMO)
    before = submitted(course)
    (course.var / "demo.json").write_text(content)
    with pytest.raises(DemoInTheWayError):
        write_submissions(course, DEMO, seed=1)
    assert submitted(course) == before


def test_an_interrupted_submission_leaves_the_one_before(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    write_submissions(course, DEMO)
    before = submitted(course)

    def interrupted(notebook: Any, path: Path) -> None:
        path.write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr("grader.demo_class.write_notebook", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_submissions(course, DEMO, seed=1)
    assert submitted(course) == before


def test_a_unit_that_the_course_does_not_have_is_refused(course: Course) -> None:
    other = DemoClass(unit="gates", due=DEMO.due, learners=DEMO.learners)
    with pytest.raises(
        UnknownUnitError, match=r"no unit 'gates' in solutions/; the units are: activations, capstone, "
    ):
        write_submissions(course, other)
    assert not course.submitted.exists()


def test_the_list_of_its_submissions_is_json(handed_in: Course) -> None:
    listed = json.loads((handed_in.var / "demo.json").read_text())
    assert listed == [f"{learner.id}/activations" for learner in DEMO.learners]
