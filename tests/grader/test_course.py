"""Where a course keeps its things, and what is said where one is missing."""

from pathlib import Path

import pytest

from grader.course import Course, find_course
from grader.exceptions import CourseNotFoundError, GraderError, NoSubmissionsError, UnknownUnitError
from tests.helpers import ROOT


@pytest.fixture
def made(tmp_path: Path) -> Course:
    """A course with two units, beside things that are none."""
    (tmp_path / "nbgrader_config.py").touch()
    for name in ("gates/gates.ipynb", "activations/activations.ipynb", "drafts/notes.ipynb", "notes.ipynb"):
        path = tmp_path / "solutions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return Course(tmp_path)


def hand_in(course: Course, learner: str, unit: str) -> None:
    (course.submitted / learner / unit).mkdir(parents=True)


@pytest.mark.parametrize("inside", ["", "solutions", "solutions/gates", "grader/var/submitted"])
def test_a_course_is_found_from_anywhere_inside_it(made: Course, inside: str) -> None:
    (made.root / inside).mkdir(parents=True, exist_ok=True)
    assert find_course(made.root / inside) == made


def test_the_nearest_course_is_found(made: Course) -> None:
    inner = made.root / "copies" / "course"
    inner.mkdir(parents=True)
    (inner / "nbgrader_config.py").touch()
    assert find_course(inner) == Course(inner)


def test_a_relative_folder_is_resolved(made: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.root / "solutions")
    assert find_course(Path()) == made


def test_outside_of_a_course_the_message_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(CourseNotFoundError) as caught:
        find_course(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} is not inside a course: no nbgrader_config.py was found there or above; change to the "
        "course's folder, or name it with --course."
    )


def test_units_are_the_folders_with_a_notebook_of_their_name(made: Course) -> None:
    assert made.units() == ["activations", "gates"]


def test_a_course_without_solutions_has_no_units(tmp_path: Path) -> None:
    assert Course(tmp_path).units() == []


def test_a_unit_of_the_course_is_accepted(made: Course) -> None:
    made.require_unit("gates")


@pytest.mark.parametrize("unit", ["gate", "drafts", "", ".", "..", "../solutions/gates", "Gates", "notes"])
def test_an_unknown_unit_is_refused_with_the_units_that_there_are(made: Course, unit: str) -> None:
    with pytest.raises(UnknownUnitError) as caught:
        made.require_unit(unit)
    assert str(caught.value) == f"there is no unit {unit!r} in solutions/; the units are: activations, gates."


def test_a_course_without_units_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnknownUnitError, match=r"the units are: none yet\.$"):
        Course(tmp_path).require_unit("gates")


def test_learners_are_those_with_a_submission_for_the_unit(made: Course) -> None:
    for learner, unit in (("learner-02", "gates"), ("learner-01", "gates"), ("learner-03", "activations")):
        hand_in(made, learner, unit)
    assert made.require_learners("gates") == ["learner-01", "learner-02"]


def test_a_stray_file_is_no_submission(made: Course) -> None:
    hand_in(made, "learner-01", "gates")
    (made.submitted / "learner-02").mkdir()
    (made.submitted / "learner-02" / "gates").touch()
    assert made.learners("gates") == ["learner-01"]


def test_one_learner_can_be_named(made: Course) -> None:
    for learner in ("learner-01", "learner-02"):
        hand_in(made, learner, "gates")
    assert made.require_learners("gates", "learner-02") == ["learner-02"]


def test_no_submission_says_where_to_put_one(made: Course) -> None:
    with pytest.raises(NoSubmissionsError) as caught:
        made.require_learners("gates")
    assert str(caught.value) == (
        "there is no submission for 'gates'; put it at grader/var/submitted/LEARNER/gates/gates.ipynb, or make "
        "the demo class with `grader demo`."
    )


def test_a_learner_without_a_submission_is_named(made: Course) -> None:
    hand_in(made, "learner-01", "gates")
    with pytest.raises(NoSubmissionsError) as caught:
        made.require_learners("gates", "learner-07")
    assert str(caught.value).startswith(
        "learner 'learner-07' has no submission for 'gates'; put it at grader/var/"
    )


@pytest.mark.parametrize("error", GraderError.__subclasses__())
def test_every_error_of_the_grader_is_reported_alike(error: type[GraderError]) -> None:
    assert error.__init__ is not Exception.__init__
    assert error.__doc__


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("solutions", "solutions"),
        ("exercises", "exercises"),
        ("var", "grader/var"),
        ("submitted", "grader/var/submitted"),
        ("autograded", "grader/var/autograded"),
        ("feedback", "grader/var/feedback"),
        ("grades_csv", "grader/var/grades.csv"),
    ],
)
def test_everything_that_grading_writes_is_below_grader_var(place: str, expected: str) -> None:
    assert getattr(Course(ROOT), place) == ROOT / expected


@pytest.mark.parametrize(
    ("option", "place"),
    [
        ("source_directory", "solutions"),
        ("release_directory", "exercises"),
        ("submitted_directory", "grader/var/submitted"),
        ("autograded_directory", "grader/var/autograded"),
        ("feedback_directory", "grader/var/feedback"),
    ],
)
def test_nbgrader_uses_the_same_places(option: str, place: str) -> None:
    assert Course(ROOT).config().CourseDirectory[option] == place


def test_the_gradebook_is_below_grader_var() -> None:
    assert Course(ROOT).config().CourseDirectory.db_url == f"sqlite:///{ROOT}/grader/var/gradebook.db"
