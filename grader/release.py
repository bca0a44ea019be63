"""Generate the learner notebooks: the reference notebooks without solutions, hidden tests and outputs."""

import filecmp
import shutil
import tempfile
from pathlib import Path

from grader.course import Course
from grader.demo_class import demo_learners
from grader.exceptions import CellsInUseError, NbgraderFailedError

__all__ = ["generate", "release"]


def generate(course: Course, unit: str, target: Path) -> None:
    """Write a unit's learner notebook and its other files into a folder, with a gradebook of its own.

    The same reference notebook gives the same bytes every time.

    Raises:
        UnknownUnitError: the course has no such unit.
        NbgraderFailedError: nbgrader refused the reference notebook.
    """
    course.require_unit(unit)
    with tempfile.TemporaryDirectory() as scratch:
        config = course.config()
        config.CourseDirectory.db_url = f"sqlite:///{scratch}/gradebook.db"
        _generate(course, unit, config, target)


def release(course: Course, unit: str) -> list[str]:
    """Bring exercises/ up to date with a unit's reference notebook, and record the unit in the gradebook.

    Files that did not change are not touched. Returns the names of those that did, relative to the course. nbgrader
    keeps the scores of a unit by its test cells: where these changed, what it knows of the demo class is forgotten.

    Raises:
        UnknownUnitError: the course has no such unit.
        CellsInUseError: test cells came or went, and learners' submissions are in the gradebook.
        NbgraderFailedError: nbgrader refused the reference notebook; exercises/ is as it was.
    """
    course.require_unit(unit)
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / unit
        try:
            _generate(course, unit, course.config(), fresh)
        except NbgraderFailedError as error:
            if "submissions associated" not in str(error):
                raise
            _forget_demo_class(course, unit)
            _generate(course, unit, course.config(), fresh)
        return [
            path.relative_to(course.root).as_posix() for path in _bring_up_to_date(fresh, course.exercises / unit)
        ]


def _generate(course: Course, unit: str, config: object, target: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        config.CourseDirectory.release_directory = scratch  # type: ignore[attr-defined]
        result = course.nbgrader(config).generate_assignment(unit, force=True, create=True)
        if not result["success"]:
            raise NbgraderFailedError("release", unit, result.get("log") or result.get("error") or "")
        shutil.copytree(Path(scratch) / unit, target, dirs_exist_ok=True)


def _forget_demo_class(course: Course, unit: str) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        known = {submission.student.id for submission in gradebook.assignment_submissions(unit)}
        if known - demo_learners(course, unit):
            raise CellsInUseError(unit)
        gradebook.remove_assignment(unit)


def _files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def _bring_up_to_date(fresh: Path, kept: Path) -> list[Path]:
    """Make one folder hold what the other does; each changed file is replaced whole. Returns the changed files."""
    changed = []
    for name in sorted(_files(fresh)):
        new, old = fresh / name, kept / name
        if not old.is_file() or not filecmp.cmp(new, old, shallow=False):
            old.parent.mkdir(parents=True, exist_ok=True)
            draft = old.with_name(old.name + ".new")
            shutil.copyfile(new, draft)
            draft.replace(old)
            changed.append(old)
    for name in sorted(_files(kept) - _files(fresh)) if kept.exists() else []:
        if ".ipynb_checkpoints" not in name.parts:
            (kept / name).unlink()
            changed.append(kept / name)
    return changed
