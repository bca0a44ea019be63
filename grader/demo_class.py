"""A class of invented learners, so that every step of grading can be tried before the first real submission.

Who hands in what is data (grader/data/demo_UNIT.toml); right answers come from the reference notebook. A seed
draws the rest, so the same seed gives the same bytes.
"""

import json
import random
import shutil
import tempfile
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Any

from grader.course import Course
from grader.exceptions import DemoInTheWayError, NoDemoClassError
from grader.notebooks import answer_ids, grade_id, read_notebook, write_notebook

__all__ = ["DemoClass", "Learner", "demo_class", "demo_learners", "write_submissions"]

_MANIFEST = "demo.json"


@dataclass(frozen=True)
class Learner:
    """One invented learner: an id, and how the submission differs from the reference."""

    id: str
    story: str
    blank: bool = False
    mistakes: tuple[str, ...] = ()
    drawn: int = 0
    answered: int | None = None
    deleted: tuple[str, ...] = ()
    late_hours: int = 0


@dataclass(frozen=True)
class DemoClass:
    """All learners of a unit's demo class, the wrong answers they may give, and when the unit is due."""

    unit: str
    due: datetime
    learners: tuple[Learner, ...]
    mistakes: dict[str, tuple[str, str]] = field(default_factory=dict)


def demo_class(unit: str) -> DemoClass:
    """The demo class of a unit.

    Raises:
        NoDemoClassError: no demo class is written for the unit.
    """
    folder = files("grader") / "data"
    source = folder / f"demo_{unit}.toml"
    if not source.is_file():
        known = sorted(p.name for p in folder.iterdir() if p.name.startswith("demo_") and p.name.endswith(".toml"))
        raise NoDemoClassError(unit, [name.removeprefix("demo_").removesuffix(".toml") for name in known])
    data = tomllib.loads(source.read_text(encoding="utf-8"))
    return DemoClass(
        unit=data["unit"],
        due=data["due"].astimezone(UTC),
        learners=tuple(_learner(**entry) for entry in data["learners"]),
        mistakes={name: (entry["cell"], entry["code"].strip("\n")) for name, entry in data["mistakes"].items()},
    )


def _learner(*, mistakes: Iterable[str] = (), deleted: Iterable[str] = (), **fields: Any) -> Learner:
    return Learner(mistakes=tuple(mistakes), deleted=tuple(deleted), **fields)


def write_submissions(course: Course, demo: DemoClass, seed: int = 0) -> list[str]:
    """Write every learner's submission with its time stamp below grader/var/submitted; returns their ids.

    Submissions that an earlier demo class wrote are replaced; any other stays as it is.

    Raises:
        UnknownUnitError: the course has no such unit.
        DemoInTheWayError: a submission that no demo class wrote has an invented learner's id.
    """
    course.require_unit(demo.unit)
    manifest = course.var / _MANIFEST
    mine = _listed(manifest)
    for learner in demo.learners:
        folder = course.submitted / learner.id / demo.unit
        if folder.exists() and f"{learner.id}/{demo.unit}" not in mine:
            raise DemoInTheWayError(learner.id, folder.relative_to(course.root))
    chance = random.Random(seed)
    course.var.mkdir(parents=True, exist_ok=True)
    mine.update(f"{learner.id}/{demo.unit}" for learner in demo.learners)
    draft = manifest.with_suffix(".new")
    draft.write_text(json.dumps(sorted(mine)) + "\n", encoding="utf-8")
    draft.replace(manifest)
    for learner in demo.learners:
        _write_one(course, demo, learner, chance)
    return [learner.id for learner in demo.learners]


def demo_learners(course: Course, unit: str) -> set[str]:
    """Ids of the learners whose submissions for a unit the demo class made."""
    listed = (name.partition("/") for name in _listed(course.var / _MANIFEST))
    return {learner for learner, _, of in listed if of == unit}


def _listed(manifest: Path) -> set[str]:
    """The submissions that an earlier demo class wrote; none where their list is missing or unreadable."""
    try:
        return set(map(str, json.loads(manifest.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError):
        return set()


def _write_one(course: Course, demo: DemoClass, learner: Learner, chance: random.Random) -> None:
    drawn = chance.sample(sorted(set(demo.mistakes) - {"does_not_run"}), learner.drawn)
    hours = learner.late_hours if learner.late_hours else -chance.uniform(2, 90)
    handed_in = demo.due + timedelta(hours=hours)
    notebook = _answered(course, demo, learner, (*learner.mistakes, *drawn))
    target = course.submitted / learner.id / demo.unit
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        draft = Path(scratch) / demo.unit
        draft.mkdir()
        write_notebook(notebook, draft / f"{demo.unit}.ipynb")
        (draft / "timestamp.txt").write_text(f"{handed_in:%Y-%m-%d %H:%M:%S} UTC\n", encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        draft.replace(target)


def _answered(course: Course, demo: DemoClass, learner: Learner, mistakes: Iterable[str]) -> Any:
    """The released notebook with this learner's answers filled in."""
    notebook = read_notebook(course.exercise(demo.unit))
    if learner.blank:
        return notebook
    reference = read_notebook(course.reference(demo.unit))
    sources = {str(grade_id(cell)): cell["source"] for cell in reference["cells"]}
    order = answer_ids(reference)
    answers: dict[str | None, str] = {name: _without_marks(sources[name]) for name in order[: learner.answered]}
    answers.update(demo.mistakes[name] for name in mistakes)
    notebook["cells"] = [cell for cell in notebook["cells"] if grade_id(cell) not in learner.deleted]
    for cell in notebook["cells"]:
        cell["source"] = answers.get(grade_id(cell), cell["source"])
    return notebook


def _without_marks(source: str) -> str:
    """A reference answer as a learner would have typed it, without the lines that mark the solution."""
    return "\n".join(line for line in source.splitlines() if not line.strip().startswith("### "))
