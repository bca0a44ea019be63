"""Fixtures that several folders of tests share."""

from pathlib import Path

import pytest

from tests.helpers import CODE, UNITS, CourseCopy, copy_of_course


@pytest.fixture
def course(tmp_path: Path) -> CourseCopy:
    """A copy of the course's code and units, without anything built."""
    return copy_of_course(tmp_path / "course", *CODE, *UNITS)


@pytest.fixture(scope="session")
def graded_course(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A course with the demo class graded once for the whole run; tests read it, and change copies of it."""
    graded = copy_of_course(tmp_path_factory.mktemp("graded") / "course", *CODE, *UNITS)
    done = graded.grader("demo")
    assert done.returncode == 0, done.stderr
    return graded
