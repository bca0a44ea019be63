"""`grader diff`: what grading again would change, told before it is written, and found without writing."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from grader.commands.diff import _clean
from grader.course import Course
from grader.demo_class import demo_class
from grader.exceptions import CellsInUseError
from grader.release import release
from tests.grader.engine.courses import UNIT, WRITTEN, by_hand, hand_in, rows
from tests.grader.invoked import invoked
from tests.helpers import CourseCopy, said_once

pytestmark = pytest.mark.slow

KEPT = ("learner-02", "learner-03", "learner-07")
"""Nothing done; the tanh form for the exact GELU; everything right and 49 hours late."""

OLD_CALL = "    hidden_tests_of_gelu()"
NEW_CALL = "    assert gelu(0.0) == 0"


@pytest.fixture(scope="module")
def small(graded_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """The graded class with three submissions, which are no demo class any more; a person has graded two answers."""
    copy = CourseCopy(Path(shutil.copytree(graded_course.root, tmp_path_factory.mktemp("small") / "course")))
    course = Course(copy.root)
    (course.var / "demo.json").unlink()
    for folder in course.submitted.iterdir():
        if folder.name not in KEPT:
            shutil.rmtree(folder)
    by_hand(course, "learner-03", WRITTEN, 2.5, comment="Well put.")
    by_hand(course, "learner-07", WRITTEN, 3.0)
    return copy


@pytest.fixture
def copy(small: CourseCopy, tmp_path: Path) -> CourseCopy:
    return CourseCopy(Path(shutil.copytree(small.root, tmp_path / "course")))


@pytest.fixture
def course(copy: CourseCopy) -> Course:
    return Course(copy.root)


def change_cell(course: Course, cell: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Edit a cell of the reference notebook, as an instructor does."""
    path = course.reference(UNIT)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    (found,) = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") == cell]
    change(found)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def correct_hidden_gelu(course: Course) -> None:
    """Make the hidden test of the exact GELU one that the tanh form passes too."""

    def change(cell: dict[str, Any]) -> None:
        source = "".join(cell["source"])
        assert OLD_CALL in source
        cell["source"] = source.replace(OLD_CALL, NEW_CALL)

    change_cell(course, "hidden_gelu", change)


def give_points(course: Course, cell: str, points: int) -> None:
    change_cell(course, cell, lambda found: found["metadata"]["nbgrader"].update(points=points))


def state(course: Course) -> dict[str, tuple[int, bytes]]:
    """All that a command could have changed: names, times and contents."""
    return {
        path.relative_to(course.root).as_posix(): (
            path.stat().st_mtime_ns,
            b"" if path.is_dir() else path.read_bytes(),
        )
        for folder in (course.var, course.solutions, course.exercises)
        for path in sorted(folder.rglob("*"))
    }


def diffed(copy: CourseCopy, *arguments: str) -> dict[str, dict[str, Any]]:
    done = invoked(copy, "diff", UNIT, "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return {one["learner"]: one for one in json.loads(done.stdout)["differences"]}


def grader(copy: CourseCopy, *arguments: str) -> str:
    done = invoked(copy, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ----------------------------------------------------------------------------------------- nothing changes


def test_a_class_that_was_just_graded_has_no_differences(copy: CourseCopy) -> None:
    done = invoked(copy, "diff", UNIT, "--exit-code")
    assert (done.returncode, done.stdout) == (0, f"Nothing would change: 3 submissions of {UNIT} were graded.\n")


# -------------------------------------------------------------------------------------- a corrected test


def test_a_corrected_test_cell_is_compared_and_nothing_is_written(copy: CourseCopy, course: Course) -> None:
    correct_hidden_gelu(course)
    before = state(course)
    found = diffed(copy)
    assert state(course) == before
    assert list(found) == ["learner-03"]
    only = found["learner-03"]
    assert [(c["cell"], c["step"], c["old"], c["new"], c["max_points"]) for c in only["cells"]] == [
        ("hidden_gelu", "gelu", 0, 2, 2)
    ]
    assert only["new_total"] == only["old_total"] + 2
    assert only["reasons"] == ["the test cell hidden_gelu changed"]
    assert only["by_hand"] == [{"cell": WRITTEN, "points": 2.5, "look_again": False, "why": ""}]
    assert only["cells"][0]["why"].startswith("passes now; it said: gelu is wrong on random input")


def test_differences_are_told_in_words_and_by_the_exit_status_where_it_is_asked_for(
    copy: CourseCopy, course: Course
) -> None:
    correct_hidden_gelu(course)
    done = invoked(copy, "diff", UNIT, "--exit-code")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].endswith(" of 40, because the test cell hidden_gelu changed")
    assert lines[1].startswith("  hidden_gelu: 0 -> 2 of 2: passes now; it said: gelu is wrong")
    assert lines[2] == f"  {WRITTEN}: 2.5 given by hand stays"
    assert lines[3] == f"1 submission of 3 would change; `grader autograde {UNIT} --force` writes it."
    assert invoked(copy, "diff", UNIT).returncode == 0


def test_what_diff_says_is_what_grading_by_force_writes(copy: CourseCopy, course: Course) -> None:
    correct_hidden_gelu(course)
    by_hand(course, "learner-07", "hidden_relu", 0.5)
    hand_in(course, "learner-02", (course.submitted / "learner-03" / UNIT / f"{UNIT}.ipynb").read_bytes())
    before, said = rows(course), diffed(copy)
    grader(copy, "release", UNIT)
    grader(copy, "autograde", UNIT, "--force")
    after = rows(course)
    changed = {learner for learner in KEPT if after[learner] != before[learner]}
    assert set(said) == changed == {"learner-02", "learner-03"}
    for learner, one in said.items():
        assert (one["old_total"], one["new_total"]) == (before[learner]["score"], after[learner]["score"])
        grades = {cell: (old[0], new[0]) for cell, old, new in _both(before[learner], after[learner])}
        assert {c["cell"]: (c["old"], c["new"]) for c in one["cells"]} == {
            cell: pair for cell, pair in grades.items() if pair[0] != pair[1] and cell != WRITTEN
        }
    assert diffed(copy) == {}


def _both(before: dict[str, Any], after: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    return [(cell, before["grades"][cell], after["grades"][cell]) for cell in after["grades"]]


def test_a_corrected_test_cell_can_be_released_and_manual_scores_stay(copy: CourseCopy, course: Course) -> None:
    before = rows(course)
    correct_hidden_gelu(course)
    grader(copy, "release", UNIT)
    grader(copy, "autograde", UNIT, "--force")
    after = rows(course)
    assert after["learner-03"]["grades"]["hidden_gelu"][0] == 2
    assert after["learner-03"]["score"] == before["learner-03"]["score"] + 2
    for learner in ("learner-03", "learner-07"):
        assert after[learner]["grades"][WRITTEN] == before[learner]["grades"][WRITTEN]
    assert after["learner-03"]["comments"][WRITTEN] == (None, "Well put.")


def test_a_corrected_visible_test_is_written_into_the_exercise(copy: CourseCopy, course: Course) -> None:
    change_cell(course, "test_gelu", lambda cell: cell.update(source="assert gelu(0.0) == 0, 'gelu(0) is 0'"))
    assert grader(copy, "release", UNIT) == f"{UNIT}: exercises/{UNIT}/{UNIT}.ipynb written\n"
    assert "gelu(0) is 0" in course.exercise(UNIT).read_text(encoding="utf-8")
    assert diffed(copy)["learner-03"]["reasons"] == ["the test cell test_gelu changed"]


# --------------------------------------------------------------------- cells that the gradebook keeps scores by


def drop_cell(course: Course, name: str) -> None:
    path = course.reference(UNIT)
    notebook = json.loads(path.read_text(encoding="utf-8"))
    notebook["cells"] = [c for c in notebook["cells"] if c["metadata"].get("nbgrader", {}).get("grade_id") != name]
    path.write_text(json.dumps(notebook), encoding="utf-8")


def rename_cell(course: Course) -> None:
    change_cell(course, "test_gelu", lambda found: found["metadata"]["nbgrader"].update(grade_id="test_gelu_2"))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda course: give_points(course, "test_gelu", 3), ["test_gelu has 3 points instead of 1 point"]),
        (lambda course: drop_cell(course, "test_gelu"), ["test_gelu is missing"]),
        (rename_cell, ["test_gelu_2 is new", "test_gelu is missing"]),
    ],
    ids=["points", "missing", "renamed"],
)
def test_other_points_or_names_are_refused_in_words_and_nothing_changes(
    course: Course, change: Callable[[Course], None], words: list[str]
) -> None:
    change(course)
    before, exercise = rows(course), course.exercise(UNIT).read_bytes()
    with pytest.raises(CellsInUseError) as caught:
        release(course, UNIT)
    assert f"its cells have changed: {', '.join(words)}; put names and points back" in str(caught.value)
    assert rows(course) == before
    assert course.exercise(UNIT).read_bytes() == exercise


def test_other_points_are_no_matter_while_nothing_but_the_demo_class_is_graded(course: Course) -> None:
    listed = [f"{learner.id}/{UNIT}" for learner in demo_class(UNIT).learners]
    (course.var / "demo.json").write_text(json.dumps(listed))
    give_points(course, "test_gelu", 3)
    assert release(course, UNIT) == [f"exercises/{UNIT}/{UNIT}.ipynb"]
    assert rows(course) == {}


def test_a_refused_release_is_one_sentence_on_the_command_line(copy: CourseCopy, course: Course) -> None:
    give_points(course, "test_gelu", 3)
    done = invoked(copy, "release", UNIT)
    assert done.returncode == 1
    assert said_once(done.stderr).startswith(f"error: the gradebook holds submissions for {UNIT!r}, and its cells")


def test_a_unit_with_other_points_is_not_compared(copy: CourseCopy, course: Course) -> None:
    give_points(course, "test_gelu", 3)
    done = invoked(copy, "diff", UNIT)
    assert done.returncode == 1
    assert "differ in the graded cells of 'activations' (test_gelu)" in said_once(done.stderr)


# --------------------------------------------------------------------------------- why it comes out differently


def test_another_submission_is_named_as_the_reason_and_its_answers_are_looked_at_again(
    copy: CourseCopy, course: Course
) -> None:
    hand_in(course, "learner-03", (course.submitted / "learner-07" / UNIT / f"{UNIT}.ipynb").read_bytes())
    only = diffed(copy, "--learner", "learner-03")["learner-03"]
    assert only["reasons"] == ["the submission changed"]
    assert {change["cell"] for change in only["cells"]} == {"test_gelu", "hidden_gelu"}
    assert only["by_hand"] == [{"cell": WRITTEN, "points": 2.5, "look_again": True, "why": ""}]


def test_a_submission_that_comes_out_alike_has_its_answers_looked_at_again_all_the_same(
    copy: CourseCopy, course: Course
) -> None:
    path = course.submitted / "learner-07" / UNIT / f"{UNIT}.ipynb"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    only = diffed(copy, "--learner", "learner-07")["learner-07"]
    assert (only["reasons"], only["cells"]) == (["the submission changed"], [])
    assert only["by_hand"] == [{"cell": WRITTEN, "points": 3, "look_again": True, "why": ""}]


def test_an_answer_that_gets_worse_has_the_test_s_message(copy: CourseCopy, course: Course) -> None:
    hand_in(course, "learner-07", (course.submitted / "learner-03" / UNIT / f"{UNIT}.ipynb").read_bytes())
    only = diffed(copy, "--learner", "learner-07")["learner-07"]
    why = {change["cell"]: change["why"] for change in only["cells"]}
    assert why["hidden_gelu"].startswith("gelu is wrong on random input")


def test_points_by_hand_over_a_test_stay_although_the_test_says_otherwise(
    copy: CourseCopy, course: Course
) -> None:
    by_hand(course, "learner-03", "hidden_gelu", 1.0)
    correct_hidden_gelu(course)
    only = diffed(copy)["learner-03"]
    assert only["old_total"] == only["new_total"]
    assert only["cells"] == []
    assert {
        "cell": "hidden_gelu",
        "points": 1.0,
        "look_again": True,
        "why": "the tests give 2 now, and gave 0",
    } in only["by_hand"]


def test_a_submission_that_is_not_graded_yet_is_a_difference(copy: CourseCopy, course: Course) -> None:
    hand_in(course, "zoe", (course.submitted / "learner-03" / UNIT / f"{UNIT}.ipynb").read_bytes())
    before = state(course)
    found = diffed(copy)
    assert list(found) == ["zoe"]
    assert (found["zoe"]["old_total"], found["zoe"]["reasons"]) == (None, ["it was not graded before"])
    assert state(course) == before


def test_a_name_that_can_be_no_learner_s_is_a_line_and_exit_status_1(copy: CourseCopy, course: Course) -> None:
    hand_in(course, "bad*id", "{}")
    done = invoked(copy, "diff", UNIT, "--json")
    assert done.returncode == 1
    (one,) = json.loads(done.stdout)["differences"]
    assert "'bad*id' can be no learner's id" in one["error"]
    assert "1 of 4 submissions could not be graded" in done.stderr


def test_a_submission_that_is_no_notebook_loses_its_points(copy: CourseCopy, course: Course) -> None:
    hand_in(course, "learner-07", "on paper")
    only = diffed(copy, "--learner", "learner-07")["learner-07"]
    assert (only["status"], only["new_total"]) == ("unreadable", 3)
    assert only["by_hand"] == [
        {"cell": WRITTEN, "points": 3, "look_again": True, "why": "the tests give 0 now, and gave no points"}
    ]


# ------------------------------------------------------------------------------------------- what is not there


def test_a_course_that_was_never_released_is_not_given_a_gradebook(copy: CourseCopy, course: Course) -> None:
    (course.var / "gradebook.db").unlink()
    before = state(course)
    done = invoked(copy, "diff", UNIT)
    assert done.returncode == 1
    assert said_once(done.stderr).startswith("error: the gradebook does not know the unit 'activations' yet")
    assert state(course) == before


def test_what_learner_code_wrote_cannot_move_the_cursor() -> None:
    assert _clean("a\x1b[2Jb\r\nc\u202e") == "a [2Jb  c "
    assert len(_clean("x" * 10_000)) < 500
