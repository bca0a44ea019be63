"""What stands in nbgrader's own gradebook and forms beside grading: due dates and names, and its table of scores."""

from collections.abc import Iterable
from datetime import UTC, datetime

from grader.course import Course

__all__ = ["export_csv", "name_learners", "set_due"]


def set_due(course: Course, unit: str, due: datetime) -> None:
    """Record in the gradebook when a unit is due; the time carries its zone."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        gradebook.update_or_create_assignment(unit, duedate=due.astimezone(UTC).replace(tzinfo=None))


def name_learners(course: Course, learners: Iterable[str]) -> None:
    """Record learners in the gradebook, an invented id such as learner-01 as the name "Learner 01"."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        for learner in learners:
            first, _, last = learner.partition("-")
            gradebook.update_or_create_student(learner, first_name=first.capitalize(), last_name=last)


def export_csv(course: Course) -> None:
    """Write all scores to grader/var/grades.csv, in nbgrader's own format.

    Raises:
        CannotWriteError: the folder is closed, or the disk is full.
    """
    from grader.export.files import write_whole
    from grader.export.table import nbgrader_csv

    write_whole(course.grades_csv, nbgrader_csv(course).encode())
