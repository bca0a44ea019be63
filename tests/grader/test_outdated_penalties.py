"""Late penalties that do not count what has happened since: found, and told by what writes scores down."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader import stock
from grader.cli import cli
from grader.course import Course
from grader.engine.gradebook import Writer
from grader.engine.store import graded_notebook, notebook_bytes, write_graded
from grader.extensions import path_of
from grader.late import outdated_penalties
from tests.grader.engine.courses import UNIT, a_verdict, by_hand, db_url, make_released
from tests.grader.scored_class import WRITTEN
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow

DUE = datetime(2026, 3, 2, 12)
POLICY = "c.LatePolicy.per_day = 0.1\n"


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """Due at noon, a tenth of the score a day; Ada is a day late, Alan is in time, and both wait for a person."""
    copy = make_released(tmp_path_factory.mktemp("late") / "course")
    course = Course(copy.root)
    shutil.rmtree(course.submitted)
    settings = copy.root / "nbgrader_config.py"
    settings.write_text(settings.read_text(encoding="utf-8") + POLICY, encoding="utf-8")
    stock.set_due(course, UNIT, DUE.replace(tzinfo=UTC))
    for learner, hours in (("alovelace", 20), ("aturing", -1)):
        grade(course, learner, DUE + timedelta(hours=hours))
    return copy


@pytest.fixture
def course(released: CourseCopy, tmp_path: Path) -> Course:
    return Course(Path(shutil.copytree(released.root, tmp_path / "course")))


def grade(course: Course, learner: str, when: datetime) -> None:
    assignment, verdict = a_verdict(course, share=1.0)
    with Writer(db_url(course), course.config()) as writer:
        writer.save(UNIT, learner, verdict, when, assignment)
    write_graded(course, learner, UNIT, notebook_bytes(graded_notebook(assignment, verdict)), when)


def invoke(course: Course, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--course", str(course.root), *arguments], prog_name="grader")


def test_a_penalty_just_worked_out_is_not_outdated(course: Course) -> None:
    assert outdated_penalties(course, UNIT) == []


def test_points_given_by_hand_make_the_penalty_of_a_late_submission_outdated(course: Course) -> None:
    by_hand(course, "alovelace", WRITTEN, 3.0)
    by_hand(course, "aturing", WRITTEN, 3.0)
    assert outdated_penalties(course, UNIT) == ["alovelace"]


def test_grading_again_mends_it(course: Course) -> None:
    by_hand(course, "alovelace", WRITTEN, 3.0)
    grade(course, "alovelace", DUE + timedelta(hours=20))
    assert outdated_penalties(course, UNIT) == []


def test_another_due_time_makes_penalties_outdated(course: Course) -> None:
    stock.set_due(course, UNIT, DUE.replace(tzinfo=UTC) + timedelta(days=7))
    assert outdated_penalties(course, UNIT) == ["alovelace"]


def test_another_policy_makes_penalties_outdated(course: Course) -> None:
    settings = course.root / "nbgrader_config.py"
    settings.write_text(settings.read_text(encoding="utf-8").replace("per_day = 0.1\n", "per_day = 0.2\n"))
    assert outdated_penalties(Course(course.root), UNIT) == ["alovelace"]


def test_an_extension_makes_a_penalty_outdated_until_the_submission_is_graded_again(course: Course) -> None:
    path_of(course).write_text(f"learner,unit,hours\nalovelace,{UNIT},48\n")
    assert outdated_penalties(course, UNIT) == ["alovelace"]
    grade(course, "alovelace", DUE + timedelta(hours=20))
    assert outdated_penalties(course, UNIT) == []


@pytest.mark.parametrize("arguments", [[], [UNIT], [UNIT, "--format", "json"]], ids=" ".join)
def test_export_says_whose_penalty_is_outdated_and_what_mends_it(course: Course, arguments: list[str]) -> None:
    quiet = invoke(course, "export", *arguments)
    assert (quiet.exit_code, "penalty" in quiet.stderr) == (0, False)
    by_hand(course, "alovelace", WRITTEN, 3.0)
    told = invoke(course, "export", *arguments)
    assert told.exit_code == 0
    assert told.stderr.count("the late penalty of alovelace is not what it would be now") == 1
    assert f"`grader autograde {UNIT} --force`" in told.stderr


@pytest.mark.parametrize(("learner", "count"), [(None, 1), ("alovelace", 1), ("aturing", 0)])
def test_feedback_says_it_of_the_learners_whose_pages_it_writes(
    course: Course, learner: str | None, count: int
) -> None:
    by_hand(course, "alovelace", WRITTEN, 3.0)
    done = invoke(course, "feedback", UNIT, *(["--learner", learner] if learner else []))
    assert done.exit_code == 0
    assert done.stderr.count("the late penalty of alovelace is not what it would be now") == count
