"""Generate the learner notebooks: the reference notebooks without solutions, hidden tests and outputs."""

import filecmp
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.course import Course
from grader.demo_class import demo_learners
from grader.exceptions import CellsInUseError, NbgraderFailedError, NotReleasedError
from grader.notebooks import grade_id, read_notebook

if TYPE_CHECKING:
    from grader.standing import Standing

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

    Files that did not change are not touched. Returns the names of those that did, relative to the course. What stands
    in a test may be corrected at any time. The gradebook keeps scores by the names and points of the graded cells:
    where these changed, what it knows of the demo class is forgotten, and submissions of learners are in the way.

    Raises:
        UnknownUnitError: the course has no such unit.
        CellsInUseError: cells came or went, or have other points, and learners' submissions are in the gradebook.
        NbgraderFailedError: nbgrader refused the reference notebook; exercises/ is as it was.
    """
    course.require_unit(unit)
    with tempfile.TemporaryDirectory() as scratch:
        fresh = Path(scratch) / unit
        if _has_other_cells(course, unit):
            # Where nbgrader refuses the notebook, the gradebook is left alone.
            generate(course, unit, fresh)
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


def _has_other_cells(course: Course, unit: str) -> bool:
    """Whether nothing but the demo class is in the way of cells that the gradebook does not have.

    Raises:
        CellsInUseError: learners' submissions are in the way.
    """
    from grader.standing import Standing

    try:
        with Standing(course, unit) as standing:
            changes = _changes(course, unit, standing) if standing.has_notebooks() else []
            if changes and standing.learners() - demo_learners(course, unit):
                raise CellsInUseError(unit, changes)
    except NotReleasedError:
        return False
    return bool(changes)


def _changes(course: Course, unit: str, standing: "Standing") -> list[str]:
    """How a unit's cells differ from those that the gradebook has."""
    before = {name: standing.points.get(name) for name in standing.named("source_cell")}
    answers = standing.named("solution_cells")
    try:
        marked = {str(grade_id(cell)): cell["metadata"]["nbgrader"] for cell in _cells(course, unit)}
        now = {name: _points_of(marks) for name, marks in marked.items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        # What is wrong with it, nbgrader says.
        return []
    changes = [f"{name} is new" for name in now if name not in before]
    changes += [f"{name} is missing" for name in sorted(before) if name not in now]
    for name in (name for name in now if name in before):
        if now[name] != before[name]:
            changes.append(f"{name} has {_points(now[name])} instead of {_points(before[name])}")
        elif bool(marked[name].get("solution")) != (name in answers):
            changes.append(f"{name} is {'an answer' if marked[name].get('solution') else 'no answer'} now")
    return changes


def _cells(course: Course, unit: str) -> list[Any]:
    """The cells that the gradebook keeps."""
    kept = ("grade", "solution", "locked", "task")
    cells = read_notebook(course.reference(unit))["cells"]
    return [c for c in cells if grade_id(c) and any(c["metadata"]["nbgrader"].get(key) for key in kept)]


def _points_of(marks: Any) -> float | None:
    """The points of a graded cell, None for one that is not graded."""
    return float(marks.get("points", 0)) if marks.get("grade") or marks.get("task") else None


def _points(points: float | None) -> str:
    return "no points" if points is None else f"{points:g} point{'' if points == 1 else 's'}"


def _forget_demo_class(course: Course, unit: str) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
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
