"""A course to collect into."""

import shutil
from pathlib import Path

import pytest

from grader.course import Course
from tests.grader.collect.downloads import UNIT
from tests.helpers import CODE, CourseCopy, copy_of_course


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course with one unit and nothing handed in."""
    return Course(copy_of_course(tmp_path / "course", "nbgrader_config.py", f"solutions/{UNIT}").root)


@pytest.fixture(scope="session")
def released_once(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A course whose gradebook knows the unit; tests copy it."""
    copy = copy_of_course(
        tmp_path_factory.mktemp("released") / "course", *CODE, f"solutions/{UNIT}", f"exercises/{UNIT}"
    )
    done = copy.grader("release", UNIT)
    assert done.returncode == 0, done.stderr
    return copy


@pytest.fixture
def released(released_once: CourseCopy, tmp_path: Path) -> Course:
    """A copy of the released course that a test may change."""
    return Course(Path(shutil.copytree(released_once.root, tmp_path / "released")))
