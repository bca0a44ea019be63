"""What the gradebook has of a unit, read as nbgrader reads it, and put into another gradebook."""

import shutil
import sqlite3
from pathlib import Path

import pytest

from grader.course import Course
from grader.exceptions import GradebookUnreadableError, NotReleasedError
from grader.standing import Mark, Standing
from tests.grader.engine.courses import DEMO, UNIT, WRITTEN, by_hand, db_url, rows
from tests.helpers import ROOT, CourseCopy

LEARNERS = [learner.id for learner in DEMO.learners]


@pytest.mark.parametrize(
    ("mark", "points"),
    [
        (Mark(2.0, None, None, False), 2.0),
        (Mark(2.0, 1.0, None, False), 1.0),
        (Mark(2.0, 0.0, 0.5, False), 0.5),
        (Mark(None, None, None, True), 0.0),
        # nbgrader counts extra credit only where there are points.
        (Mark(None, None, 0.5, True), 0.0),
        (Mark(0.0, None, 0.5, True), 0.5),
    ],
)
def test_a_person_s_points_count_before_the_automatic_ones(mark: Mark, points: float) -> None:
    assert mark.points == points


def bare(tmp_path: Path) -> Course:
    """A course without a gradebook."""
    course = Course(tmp_path)
    shutil.copyfile(ROOT / "nbgrader_config.py", tmp_path / "nbgrader_config.py")
    course.var.mkdir(parents=True)
    return course


def test_a_gradebook_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    course = bare(tmp_path)
    with pytest.raises(NotReleasedError):
        Standing(course, UNIT)
    assert not (course.var / "gradebook.db").exists()


def test_a_database_without_tables_knows_no_unit(tmp_path: Path) -> None:
    course = bare(tmp_path)
    with sqlite3.connect(course.var / "gradebook.db") as empty:
        empty.execute("CREATE TABLE other (id)")
    empty.close()
    with pytest.raises(NotReleasedError):
        Standing(course, UNIT)


def test_a_file_that_is_no_database_is_named_in_one_sentence(tmp_path: Path) -> None:
    course = bare(tmp_path)
    (course.var / "gradebook.db").write_bytes(b"no database, but long enough to be looked at" * 50)
    with pytest.raises(GradebookUnreadableError, match="the gradebook cannot be read: file is not a database;"):
        Standing(course, UNIT)


@pytest.fixture(scope="module")
def course(graded_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The graded class, with points, extra credit and a penalty by hand."""
    copied = Course(Path(shutil.copytree(graded_course.root, tmp_path_factory.mktemp("standing") / "course")))
    by_hand(copied, "learner-01", WRITTEN, 2.5, extra=0.5)
    by_hand(copied, "learner-03", "hidden_gelu", 1.0)
    from nbgrader.api import Gradebook

    with Gradebook(db_url(copied)) as gradebook:
        gradebook.grant_extension(UNIT, "learner-03", hours=5)
        gradebook.find_submission_notebook(UNIT, UNIT, "learner-07").late_submission_penalty = 4.5
        gradebook.db.commit()
    return copied


@pytest.mark.slow
def test_scores_and_times_are_those_that_nbgrader_gives(course: Course) -> None:
    expected = rows(course)
    with Standing(course, UNIT) as standing:
        found = standing.marks(LEARNERS)
        assert standing.learners() == set(expected)
        assert sum(standing.points.values()) == 40
        assert standing.written == {WRITTEN}
    assert {learner: marks.score for learner, marks in found.items()} == {
        learner: row["score"] for learner, row in expected.items()
    }
    for learner, marks in found.items():
        row = expected[learner]
        assert (marks.timestamp, marks.penalty) == (row["timestamp"], row["penalty"] or 0.0)
        assert {cell: (m.auto, m.manual, m.extra, m.waits) for cell, m in marks.cells.items()} == {
            cell: grade[:4] for cell, grade in row["grades"].items()
        }
    assert found["learner-07"].total == expected["learner-07"]["score"] - 4.5


@pytest.mark.slow
def test_the_same_rows_are_in_a_copy_until_they_are_forgotten(course: Course, tmp_path: Path) -> None:
    from nbgrader import api
    from sqlalchemy import create_engine

    url = f"sqlite:///{tmp_path / 'copy.db'}"
    engine = create_engine(url)
    api.Base.metadata.create_all(engine)
    with Standing(course, UNIT) as standing:
        with engine.begin() as connection:
            standing.copy_unit(connection)
            standing.copy_learners(connection, LEARNERS)
        with Standing(course, UNIT, url) as copied:
            assert copied.marks(LEARNERS) == standing.marks(LEARNERS)
            assert (copied.due, copied.points) == (standing.due, standing.points)
            with engine.begin() as connection:
                standing.forget_learners(connection, LEARNERS[1:])
            assert copied.learners() == {LEARNERS[0]}
            assert copied.marks(LEARNERS) == standing.marks(LEARNERS[:1])
    engine.dispose()


@pytest.mark.slow
def test_reading_leaves_the_gradebook_as_it_is(course: Course) -> None:
    path = course.var / "gradebook.db"
    before = (path.read_bytes(), path.stat().st_mtime_ns, sorted(course.var.iterdir()))
    with Standing(course, UNIT) as standing:
        standing.marks(LEARNERS)
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(course.var.iterdir())) == before
