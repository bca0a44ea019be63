"""What nbgrader itself does around grading: due dates and names in its gradebook, HTML feedback, CSV."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from grader.course import Course
from grader.exceptions import NbgraderFailedError, NotGradedError

__all__ = ["export_csv", "feedback", "name_learners", "set_due"]


def set_due(course: Course, unit: str, due: datetime) -> None:
    """Record in the gradebook when a unit is due; the time carries its zone."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        gradebook.update_or_create_assignment(unit, duedate=due.replace(tzinfo=None))


def name_learners(course: Course, learners: Iterable[str]) -> None:
    """Record learners in the gradebook, an invented id such as learner-01 as the name "Learner 01"."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        for learner in learners:
            first, _, last = learner.partition("-")
            gradebook.update_or_create_student(learner, first_name=first.capitalize(), last_name=last)


def feedback(course: Course, unit: str) -> None:
    """Write the HTML feedback of every graded submission of a unit below grader/var/feedback.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotGradedError: no submission of the unit is graded.
        NbgraderFailedError: nbgrader could not write it.
    """
    course.require_unit(unit)
    if not any(course.autograded.glob(f"*/{unit}")):
        raise NotGradedError(unit)
    with _quiet():
        result = course.nbgrader().generate_feedback(unit, force=True)
    if not result["success"]:
        raise NbgraderFailedError("write feedback for", unit, result.get("log") or result.get("error") or "")


def export_csv(course: Course) -> None:
    """Write all scores to grader/var/grades.csv, in nbgrader's own format."""
    from nbgrader.api import Gradebook
    from nbgrader.plugins.export import CsvExportPlugin

    plugin = CsvExportPlugin(to=str(course.grades_csv))
    with _quiet(), Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        plugin.export(gradebook)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the log lines of nbgrader and its libraries from the terminal; its log file has them."""
    import logging
    import warnings

    before = logging.root.manager.disable
    logging.disable(logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
