"""A class in which some hand in what the hostile corpus holds: everybody gets a verdict, and the honest ones theirs.

    python -m tests.hostile.mixed [--learners 1000] [--share 0.15] [--seed 0]

The class is graded by the engine as a batch, in its sandbox. An honest learner's notebook is right, as it was given
out, or wrong in one answer; what each of these gets is known from a class without anybody else. Exit status 1 where
somebody has no verdict, an honest one has another than there, or a hostile one has more points than the case is worth.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from grader.course import Course
from grader.engine.batch import Outcome, grade_unit
from grader.engine.verdict import CRASHED, Verdict
from grader.notebooks import grade_id
from tests.helpers import CODE, CourseCopy, copy_of_course
from tests.hostile.corpus import SOURCE, UNIT, Case, as_bytes, assignment, cases, honest, stub
from tests.hostile.grading import LIMITS

__all__ = ["Mixed", "Report", "make_course", "run"]

MIXED_LIMITS = replace(LIMITS, cell_seconds=5.0)
"""A cell of an honest learner has time, however busy the machine is."""
_PEER = "honest-0000"


@dataclass(frozen=True)
class Mixed:
    """Who hands in what: an honest kind by learner, and a case by learner."""

    honest: dict[str, str]
    hostile: dict[str, Case]

    @property
    def learners(self) -> list[str]:
        """All of them, the hostile ones among the others."""
        return sorted((*self.honest, *self.hostile), key=lambda name: name.rpartition("-")[2])


@dataclass
class Report:
    """What came of a class."""

    seconds: float
    verdicts: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


def make_course(folder: Path) -> Course:
    """A course of the small exercise alone, released."""
    copy = copy_of_course(folder, *CODE)
    source = folder / "solutions" / UNIT
    source.mkdir(parents=True)
    for path in SOURCE.iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    done = CourseCopy(copy.root).grader("release", UNIT)
    assert done.returncode == 0, done.stderr
    return Course(folder)


def drawn(learners: int, share: float, seed: int) -> Mixed:
    """A class: every case at most once more than any other, spread among the honest."""
    draw = random.Random(seed)
    possible = [case for case in cases() if case.run]
    pool: list[Case] = []
    while len(pool) < round(learners * share):
        pool += draw.sample(possible, len(possible))
    places = set(draw.sample(range(1, learners), round(learners * share)))
    mixed = Mixed({}, {})
    for number in range(learners):
        if number in places:
            mixed.hostile[f"hostile-{number:04d}"] = pool.pop()
        else:
            mixed.honest[f"honest-{number:04d}"] = draw.choice(sorted(_KINDS)) if number else "right"
    return mixed


def _one_wrong(number: int) -> bytes:
    notebook = honest()
    name = sorted(assignment().steps)[number]
    cell = next(cell for cell in notebook["cells"] if grade_id(cell) == name)
    cell["source"] = cell["source"].replace("return ", "return 1.5 * ", 1)
    return as_bytes(notebook)


_KINDS = {
    "right": lambda: as_bytes(honest()),
    "as given out": lambda: as_bytes(stub()),
    "one wrong": lambda: _one_wrong(0),
    "another wrong": lambda: _one_wrong(1),
}


def _hand_in(course: Course, mixed: Mixed) -> None:
    made = {kind: make() for kind, make in _KINDS.items()}
    for learner, kind in mixed.honest.items():
        path = course.submitted / learner / UNIT / f"{UNIT}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(made[kind])
    peer = course.submitted / _PEER / UNIT / f"{UNIT}.ipynb"
    for learner, case in mixed.hostile.items():
        case.hand_in(course.submitted / learner / UNIT, peer, course.reference(UNIT))


def _alone(course: Course) -> dict[str, Verdict]:
    """What each honest kind gets in a class without anybody else."""
    mixed = Mixed({f"alone-{number:04d}": kind for number, kind in enumerate(_KINDS)}, {})
    _hand_in(course, mixed)
    found: dict[str, Verdict] = {}
    for outcome in grade_unit(course, UNIT, mixed.learners, limits=MIXED_LIMITS):
        assert outcome.verdict is not None, outcome
        found[mixed.honest[outcome.learner]] = outcome.verdict
    return found


def run(course: Course, learners: int, share: float, seed: int) -> Report:
    """Grade a class, and hold it against what is right."""
    mixed = drawn(learners, share, seed)
    alone = _alone(course)
    before = _solutions(course)
    _hand_in(course, mixed)
    start = time.monotonic()
    outcomes = grade_unit(course, UNIT, mixed.learners, limits=MIXED_LIMITS)
    report = Report(time.monotonic() - start)
    recorded = _recorded(course)
    for outcome in outcomes:
        _look(outcome, mixed, alone, recorded, report)
    if _solutions(course) != before:
        report.problems.append("the reference notebook has changed")
    return report


def _look(
    outcome: Outcome, mixed: Mixed, alone: dict[str, Verdict], recorded: dict[str, float], report: Report
) -> None:
    who, verdict = outcome.learner, outcome.verdict
    if verdict is None:
        report.problems.append(f"{who} has no verdict: {outcome.error}")
        return
    report.verdicts += 1
    report.statuses[verdict.status] += 1
    if recorded.get(who) != verdict.points:
        report.problems.append(f"{who} has {verdict.points} points, and {recorded.get(who)} in the gradebook")
    if who in mixed.honest:
        wanted = alone[mixed.honest[who]]
        if (verdict.status, verdict.results, verdict.flags) != (wanted.status, wanted.results, wanted.flags):
            report.problems.append(f"{who} ({mixed.honest[who]}): {verdict.status}, {verdict.points}: {wanted}")
        return
    case = mixed.hostile[who]
    said = f"{who} ({case.name}): {verdict.status}, {verdict.points:g}; right: {case.status}, {case.points:g}"
    if verdict.points > case.points or verdict.status == CRASHED:
        report.problems.append(said)
    elif (verdict.status, verdict.points) != (case.status, case.points):
        report.remarks.append(said)


def _recorded(course: Course) -> dict[str, float]:
    """The scores of all in the gradebook."""
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        return {submission.student.id: submission.score for submission in gradebook.assignment_submissions(UNIT)}


def _solutions(course: Course) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in course.solutions.rglob("*") if path.is_file()}


def main() -> int:
    """Grade a class and report; exit status 1 where something is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.mixed", description="A class with hostile cases."
    )
    parser.add_argument("--learners", type=int, default=1000)
    parser.add_argument("--share", type=float, default=0.15)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        report = run(make_course(Path(folder) / "course"), options.learners, options.share, options.seed)
    for line in report.remarks:
        print(f"other than alone: {line}")
    for line in report.problems:
        print(f"wrong: {line}")
    print(f"{report.verdicts} verdicts on {options.learners} submissions in {report.seconds:.0f} s: ", end="")
    print(", ".join(f"{count} {status}" for status, count in report.statuses.most_common()))
    return int(bool(report.problems) or report.verdicts != options.learners)


if __name__ == "__main__":
    sys.exit(main())
