"""Fixtures of the tests of what the engine keeps."""

from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from tests.grader.engine.courses import FOUR, STOCK, autograded, copied, make_released, rows
from tests.helpers import CourseCopy


@pytest.fixture(scope="session")
def released_course(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A released course with submissions; tests copy it."""
    return make_released(tmp_path_factory.mktemp("released") / "course")


@pytest.fixture
def open_course(released_course: CourseCopy, tmp_path: Path) -> Course:
    """A copy of the released course that a test may change, without submissions."""
    return Course(copied(released_course, tmp_path / "course", ()).root)


@pytest.fixture(scope="session")
def stock_rows(released_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What nbgrader's own autograde leaves in the gradebook for four learners of the demo class."""
    copy = copied(released_course, tmp_path_factory.mktemp("stock") / "course", FOUR)
    for learner, (graded, log) in autograded(copy, [(STOCK, learner) for learner in FOUR]).items():
        assert graded, (learner, log)
    return rows(Course(copy.root))
