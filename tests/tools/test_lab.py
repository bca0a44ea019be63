"""The learner's own copies of the exercises."""

from pathlib import Path

import pytest

from tools.lab import copy_exercises

UNIT = "activations/activations.ipynb"


class Learner:
    """Released exercises, and the folder that a learner works in."""

    def __init__(self, root: Path) -> None:
        self.exercises, self.work = root / "exercises", root / "work"
        self.release(UNIT, "as released")

    def release(self, name: str, content: str) -> None:
        path = self.exercises / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    def copy(self) -> list[str]:
        return copy_exercises(self.exercises, self.work)

    def files(self) -> dict[str, str]:
        """The files that the learner sees, with their contents."""
        found = {path.relative_to(self.work): path for path in self.work.rglob("*") if path.is_file()}
        return {
            name.as_posix(): path.read_text() for name, path in found.items() if not name.parts[0].startswith(".")
        }


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    return Learner(tmp_path)


@pytest.fixture
def working(learner: Learner) -> Learner:
    """A learner who has begun."""
    learner.copy()
    (learner.work / UNIT).write_text("my answers")
    return learner


def test_every_exercise_file_is_copied_and_named(learner: Learner) -> None:
    learner.release("activations/data.csv", "1,2")
    assert learner.copy() == ["work/activations/activations.ipynb", "work/activations/data.csv"]
    assert learner.files() == {UNIT: "as released", "activations/data.csv": "1,2"}


def test_a_second_time_copies_nothing(learner: Learner) -> None:
    learner.copy()
    assert learner.copy() == []


def test_a_copy_that_the_learner_changed_is_left_alone(working: Learner) -> None:
    assert working.copy() == []
    assert working.files() == {UNIT: "my answers"}


def test_a_new_version_is_laid_beside_the_learners_copy(working: Learner) -> None:
    working.release(UNIT, "second release")
    assert working.copy() == ["work/activations/activations-new-version.ipynb"]
    assert working.files() == {UNIT: "my answers", "activations/activations-new-version.ipynb": "second release"}


def test_a_new_version_is_laid_down_once(working: Learner) -> None:
    working.release(UNIT, "second release")
    working.copy()
    assert working.copy() == []


def test_work_in_a_new_version_is_not_overwritten_by_the_next(working: Learner) -> None:
    working.release(UNIT, "second release")
    working.copy()
    (working.work / "activations" / "activations-new-version.ipynb").write_text("my answers to the second")
    working.release(UNIT, "third release")
    said = working.copy()
    files = working.files()
    assert files[UNIT] == "my answers"
    assert files["activations/activations-new-version.ipynb"] == "my answers to the second"
    assert [files[name.removeprefix("work/")] for name in said] == ["third release"]


def test_a_new_unit_is_copied_beside_the_work_that_is_there(working: Learner) -> None:
    working.release("gates/gates.ipynb", "a second unit")
    assert working.copy() == ["work/gates/gates.ipynb"]
    assert working.files() == {UNIT: "my answers", "gates/gates.ipynb": "a second unit"}


def test_a_copy_that_the_learner_removed_comes_back(working: Learner) -> None:
    (working.work / UNIT).unlink()
    assert working.copy() == [f"work/{UNIT}"]
    assert working.files() == {UNIT: "as released"}


def test_a_file_that_was_there_before_the_first_copy_is_left_alone(learner: Learner) -> None:
    (learner.work / UNIT).parent.mkdir(parents=True)
    (learner.work / UNIT).write_text("brought along")
    learner.copy()
    assert learner.files() == {UNIT: "brought along"}


def test_a_file_that_was_there_before_gets_later_versions_beside_it(learner: Learner) -> None:
    (learner.work / UNIT).parent.mkdir(parents=True)
    (learner.work / UNIT).write_text("brought along")
    learner.copy()
    learner.release(UNIT, "second release")
    assert learner.copy() == ["work/activations/activations-new-version.ipynb"]


def test_checkpoints_are_not_copied(learner: Learner) -> None:
    learner.release("activations/.ipynb_checkpoints/activations-checkpoint.ipynb", "older")
    learner.copy()
    assert learner.files() == {UNIT: "as released"}


def test_exercises_stay_as_they_are(working: Learner) -> None:
    working.copy()
    assert (working.exercises / UNIT).read_text() == "as released"


def test_a_course_without_exercises_gives_nothing(tmp_path: Path) -> None:
    assert copy_exercises(tmp_path / "exercises", tmp_path / "work") == []
