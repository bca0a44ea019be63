"""Every hostile case gets the verdict and the score that are right for it, and changes nothing for the next learner."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from grader.engine.verdict import CRASHED, GRADED, MISSING, REPAIRED, TIMED_OUT, UNREADABLE
from tests.hostile import recipes
from tests.hostile.corpus import HERE, MOST, Case, cases
from tests.hostile.grading import Grading

STATUSES = (GRADED, REPAIRED, UNREADABLE, TIMED_OUT, MISSING)
KEYS = {"answers", "repeat", "edit", "own", "delete", "order", "recipe", "file", "folder"}


@pytest.fixture(scope="module")
def grading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grading]:
    with Grading(tmp_path_factory.mktemp("hostile") / "course") as made:
        assert (made.honest_verdict().status, made.honest_verdict().points) == (GRADED, MOST)
        yield made


@pytest.fixture(scope="module")
def as_found(grading: Grading) -> tuple[int, frozenset[str]]:
    """The sandbox's processes and the files that a learner's code would like to change, before any case."""
    return processes(grading), outside(grading)


def processes(grading: Grading) -> int:
    """How many processes the sandbox has while no session runs."""
    grading.sandbox.end_session()
    return len(psutil.Process(grading.sandbox._process.pid).children(recursive=True))


def outside(grading: Grading) -> frozenset[str]:
    """The course's own files and the sandbox's data, with what is in them."""
    folders = [
        grading.course.solutions,
        grading.peer.parent,
        Path(grading.sandbox._data.name),
        HERE / "assignment",
    ]
    files = {path for folder in folders for path in folder.rglob("*") if path.is_file()}
    said = {f"{path}: {hash(path.read_bytes())}" for path in files}
    return frozenset(said | {str(path) for path in Path("/tmp").glob("ffn-hostile-was-here")})


def parameter(case: Case) -> object:
    marks = [pytest.mark.xfail(reason=case.open, run=case.run)] if case.open else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.parametrize("case", [parameter(case) for case in cases()])
def test_the_verdict_is_right_and_the_next_learner_is_unharmed(
    case: Case, grading: Grading, as_found: tuple[int, frozenset[str]]
) -> None:
    verdict = grading.verdict(case)
    told = [(result.cell, result.points, result.message) for result in verdict.results if result.message]
    left = processes(grading)
    honest = grading.honest_verdict()

    assert (honest.status, honest.points) == (GRADED, MOST), honest.instructor
    assert (left, outside(grading)) == as_found
    assert (verdict.status, verdict.points) == (case.status, case.points), (verdict.instructor, told)
    assert verdict.learner.endswith(".")
    assert verdict.instructor.endswith(".")
    assert all(note.learner.endswith(".") and note.instructor.endswith(".") for note in verdict.notes)


# ------------------------------------------------------------------------------------------------ the fixtures


def test_there_are_cases_of_every_kind_and_status() -> None:
    assert len(cases()) >= 60
    assert {case.kind for case in cases()} == {"cheat", "accident", "file"}
    found = {CRASHED if case.status.startswith(CRASHED) else case.status for case in cases()}
    assert found == {*STATUSES, CRASHED}


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_a_case_is_stated_in_full(case: Case) -> None:
    assert case.why.endswith(".")
    assert case.why.count(". ") == 0
    assert case.status in STATUSES or case.status.startswith(f"{CRASHED} at cell ")
    assert 0 <= case.points <= MOST
    assert case.points == 0 or case.status not in (UNREADABLE, MISSING)
    assert case.more.keys() <= KEYS
    assert case.more
    assert case.run or case.open


def test_every_recipe_and_every_file_belongs_to_a_case() -> None:
    made = {name for name in vars(recipes) if not name.startswith("_") and name not in vars(tomllib)}
    made = {name for name in made if getattr(vars(recipes)[name], "__module__", "") == recipes.__name__}
    assert made == {case.more["recipe"] for case in cases() if "recipe" in case.more}
    raw = {path.name for path in (HERE / "cases").iterdir() if path.suffix != ".toml"}
    assert raw == {case.more["file"] for case in cases() if "file" in case.more}
