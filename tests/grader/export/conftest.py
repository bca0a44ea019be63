"""A small class with scores in the gradebook."""

import shutil
from pathlib import Path

import pytest

from grader.course import Course
from tests.grader.scored_class import make_scored
from tests.helpers import CourseCopy


@pytest.fixture(scope="session")
def scored(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """Ada has 40 of 40, Alan 18.5 and 3 by hand, Grace waits for a person, Kurt handed nothing in."""
    return make_scored(tmp_path_factory.mktemp("scored") / "course")


@pytest.fixture
def course(scored: CourseCopy, tmp_path: Path) -> Course:
    """A copy of it that a test may change."""
    return Course(Path(shutil.copytree(scored.root, tmp_path / "course")))
