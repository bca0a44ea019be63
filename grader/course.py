"""Where a course keeps its units, submissions and results, and the door to nbgrader's own interface."""

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from grader.exceptions import CourseNotFoundError, NoSubmissionsError, UnknownUnitError

__all__ = ["Course", "find_course"]


@dataclass(frozen=True)
class Course:
    """A course's folder and the places in it."""

    root: Path

    @property
    def solutions(self) -> Path:
        """Reference notebooks: the single source of every unit."""
        return self.root / "solutions"

    @property
    def exercises(self) -> Path:
        """Learner notebooks, generated from the reference notebooks."""
        return self.root / "exercises"

    @cached_property
    def var(self) -> Path:
        """Everything that grading writes: submissions, results, the gradebook."""
        return self.root / "grader" / "var"

    @cached_property
    def submitted(self) -> Path:
        """Submissions, one folder a learner and in it one a unit."""
        return self.var / "submitted"

    @cached_property
    def autograded(self) -> Path:
        """Graded notebooks, laid out like the submissions."""
        return self.var / "autograded"

    @property
    def feedback(self) -> Path:
        """HTML feedback, laid out like the submissions."""
        return self.var / "feedback"

    @property
    def grades_csv(self) -> Path:
        """Scores of all submissions as a table."""
        return self.var / "grades.csv"

    def reference(self, unit: str) -> Path:
        """A unit's reference notebook."""
        return self.solutions / unit / f"{unit}.ipynb"

    def exercise(self, unit: str) -> Path:
        """A unit's learner notebook."""
        return self.exercises / unit / f"{unit}.ipynb"

    def units(self) -> list[str]:
        """Names of all units, in alphabetical order."""
        return sorted(folder.name for folder in self.solutions.glob("*") if self.reference(folder.name).is_file())

    def require_unit(self, unit: str) -> None:
        """Raise UnknownUnitError unless the course has the unit."""
        if unit not in self.units():
            raise UnknownUnitError(unit, self.units())

    def learners(self, unit: str) -> list[str]:
        """Ids of the learners with a submission for a unit, in alphabetical order."""
        return sorted(folder.parent.name for folder in self.submitted.glob(f"*/{unit}") if folder.is_dir())

    def require_learners(self, unit: str, learner: str | None = None) -> list[str]:
        """The learners to grade: all with a submission, or the one named.

        Raises:
            NoSubmissionsError: nobody, or not the one named, has a submission for the unit.
        """
        found = [name for name in self.learners(unit) if learner in (None, name)]
        if not found:
            raise NoSubmissionsError(unit, learner, self.submitted.relative_to(self.root))
        return found

    def config(self) -> Any:
        """The traitlets configuration of nbgrader_config.py."""
        from traitlets.config.loader import PyFileConfigLoader

        return PyFileConfigLoader("nbgrader_config.py", path=str(self.root)).load_config()

    def nbgrader(self, config: Any | None = None) -> Any:
        """Nbgrader's own interface, set up for this course; its log goes to grader/var/nbgrader.log alone."""
        from nbgrader.apps import NbGraderAPI

        self.var.mkdir(parents=True, exist_ok=True)
        logging.getLogger("alembic").setLevel(logging.WARNING)
        return NbGraderAPI(config=config if config is not None else self.config())


def find_course(start: Path) -> Course:
    """The course that a folder belongs to: the nearest one upward with an nbgrader_config.py.

    Raises:
        CourseNotFoundError: there is none.
    """
    start = start.resolve()
    for folder in (start, *start.parents):
        if (folder / "nbgrader_config.py").is_file():
            return Course(folder)
    raise CourseNotFoundError(start)
