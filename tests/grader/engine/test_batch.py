"""A class graded by the engine: the same rows as nbgrader's own autograde leaves, whatever else is handed in."""

import errno
import functools
import json
import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.course import Course
from grader.engine import batch, process
from grader.engine.batch import Outcome, grade_unit, verdicts
from grader.engine.gradebook import NO_RESPONSE, Writer
from grader.engine.process import GradingProcess, Job
from grader.engine.verdict import CRASHED, GRADED, MISSING, REPAIRED, TIMED_OUT, UNREADABLE, Limits
from grader.exceptions import GradebookUnwritableError, NotReleasedError, UnknownUnitError, UnwritableError
from grader.notebooks import grade_id, read_notebook
from grader.scores import scores
from tests.grader.engine.courses import (
    DEMO,
    FOUR,
    UNIT,
    WRITTEN,
    by_hand,
    copied,
    forget_unit,
    hand_in,
    rows,
)
from tests.grader.test_grading import feedback_text, hidden_lines
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow


def notebook_of(course: Course, learner: str) -> Any:
    return json.loads((course.submitted / learner / UNIT / f"{UNIT}.ipynb").read_text(encoding="utf-8"))


def cell_of(notebook: Any, name: str) -> Any:
    return next(cell for cell in notebook["cells"] if grade_id(cell) == name)


def twice(notebook: Any) -> None:
    notebook["cells"].append(cell_of(notebook, "test_relu"))


def unknown_schema(notebook: Any) -> None:
    for cell in notebook["cells"]:
        if grade_id(cell):
            cell["metadata"]["nbgrader"]["schema_version"] = 99


def more_points(notebook: Any) -> None:
    cell_of(notebook, "test_relu")["metadata"]["nbgrader"]["points"] = 100


def no_cells(notebook: Any) -> None:
    notebook["cells"] = []


CHANGED: dict[str, Callable[[Any], None]] = {
    "twice": twice,
    "schema": unknown_schema,
    "points": more_points,
    "no-cells": no_cells,
}
"""Changes to a perfect submission, by the learner who hands it in."""


BACK = ("learner-03", "no-json")


def strange(course: Course) -> list[str]:
    """Hand in what ends a batch elsewhere; returns the learners."""
    perfect = notebook_of(course, "learner-07")
    for learner, change in CHANGED.items():
        notebook = json.loads(json.dumps(perfect))
        change(notebook)
        hand_in(course, learner, json.dumps(notebook))
    hand_in(course, "renamed", json.dumps(perfect), "my answers.ipynb")
    hand_in(course, "no-json", "my answers are on paper")
    hand_in(course, "empty", "")
    (course.submitted / "gone" / UNIT).mkdir(parents=True)
    (course.submitted / "linked").symlink_to(course.submitted / "learner-07")
    pipe = hand_in(course, "pipe", "")
    pipe.unlink()
    os.mkfifo(pipe)
    hand_in(course, "bad*id", json.dumps(perfect))
    return ["bad*id", *CHANGED, "renamed", "no-json", "empty", "gone", "linked", "pipe"]


@pytest.fixture(scope="module")
def graded(
    released_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory
) -> tuple[CourseCopy, list[Outcome]]:
    """A course graded by the engine, strange submissions first, and what came of each."""
    copy = copied(released_course, tmp_path_factory.mktemp("engine") / "course", FOUR)
    course = Course(copy.root)
    return copy, grade_unit(course, UNIT, [*strange(course), *FOUR], workers=2)


@pytest.fixture(scope="module")
def course(graded: tuple[CourseCopy, list[Outcome]]) -> Course:
    return Course(graded[0].root)


@pytest.fixture(scope="module")
def outcomes(graded: tuple[CourseCopy, list[Outcome]]) -> dict[str, Outcome]:
    return {outcome.learner: outcome for outcome in graded[1]}


@pytest.fixture
def changeable(graded: tuple[CourseCopy, list[Outcome]], tmp_path: Path) -> Course:
    """A copy of the graded course with the four submissions only."""
    target = tmp_path / "course"
    skip = shutil.ignore_patterns("linked", "pipe", "bad*", *CHANGED, "renamed", "no-json", "empty", "gone")
    return Course(Path(shutil.copytree(graded[0].root, target, ignore=skip)))


def status(outcomes: dict[str, Outcome], learner: str) -> str:
    verdict = outcomes[learner].verdict
    assert verdict is not None, outcomes[learner]
    return verdict.status


# ------------------------------------------------------------------------------------------ beside nbgrader


@pytest.mark.parametrize("learner", FOUR)
def test_the_gradebook_is_as_nbgrader_s_own_autograde_leaves_it(
    learner: str, course: Course, stock_rows: dict[str, dict[str, Any]]
) -> None:
    assert rows(course, learner)[learner] == stock_rows[learner]


def test_the_rows_compared_are_not_all_alike(stock_rows: dict[str, dict[str, Any]]) -> None:
    assert [stock_rows[learner]["score"] for learner in FOUR] == [0, 34, 37, 37]
    assert [stock_rows[learner]["waits"] for learner in FOUR] == [False, True, True, True]
    assert [stock_rows[learner]["late"] for learner in FOUR] == [0, 0, 49 * 3600, 0]


def test_outcomes_are_in_the_order_asked_for(graded: tuple[CourseCopy, list[Outcome]]) -> None:
    assert [outcome.learner for outcome in graded[1]][-4:] == list(FOUR)
    assert len(graded[1]) == 15


# ------------------------------------------------------------------------------------ strange submissions


@pytest.mark.parametrize("learner", ["twice", "renamed"])
def test_what_can_be_repaired_is_graded_with_a_note(
    learner: str, course: Course, outcomes: dict[str, Outcome]
) -> None:
    assert status(outcomes, learner) == REPAIRED
    assert rows(course, learner)[learner]["score"] == 37
    notebook = read_notebook(course.autograded / learner / UNIT / f"{UNIT}.ipynb")
    assert "graded" in notebook["cells"][0]["source"]


@pytest.mark.parametrize("learner", ["schema", "points"])
def test_marks_that_a_learner_changed_change_nothing(
    learner: str, course: Course, outcomes: dict[str, Outcome]
) -> None:
    assert status(outcomes, learner) in (GRADED, REPAIRED)
    row = rows(course, learner)[learner]
    assert (row["score"], row["max_score"]) == (37, 40)


@pytest.mark.parametrize("learner", ["no-json", "empty", "no-cells", "linked", "pipe"])
def test_what_cannot_be_read_is_a_verdict(learner: str, course: Course, outcomes: dict[str, Outcome]) -> None:
    assert status(outcomes, learner) == UNREADABLE
    row = rows(course, learner)[learner]
    assert (row["score"], row["waits"], row["grades"][WRITTEN][0]) == (0, False, 0)
    verdict = outcomes[learner].verdict
    assert verdict is not None
    assert row["comments"]["relu"][0] == verdict.instructor.replace("`", "?")
    assert row["comments"]["sigmoid"] == (NO_RESPONSE, None)


def test_what_is_missing_is_a_verdict(course: Course, outcomes: dict[str, Outcome]) -> None:
    assert status(outcomes, "gone") == MISSING
    assert rows(course, "gone")["gone"]["score"] == 0


def test_a_folder_that_is_no_learner_s_gets_no_row(course: Course, outcomes: dict[str, Outcome]) -> None:
    assert outcomes["bad*id"].verdict is None
    assert "can be no learner's id" in outcomes["bad*id"].error
    assert "bad*id" not in rows(course)
    assert not (course.autograded / "bad*id").exists()


@pytest.mark.parametrize("learner", ["twice", "renamed", "schema", "no-json", "gone", "linked", "pipe", *FOUR])
def test_every_graded_notebook_is_valid_and_holds_no_solution_that_was_not_handed_in(
    learner: str, course: Course
) -> None:
    notebook = read_notebook(course.autograded / learner / UNIT / f"{UNIT}.ipynb")
    nbformat.validate(notebook)
    assert {grade_id(cell) for cell in read_notebook(course.reference(UNIT))["cells"]} <= {
        grade_id(cell) for cell in notebook["cells"]
    }
    assert "BEGIN SOLUTION" not in nbformat.writes(notebook)


def test_nothing_but_the_notebook_and_its_time_is_kept(course: Course) -> None:
    names = {path.name for path in course.autograded.rglob("*") if path.is_file()}
    assert names == {f"{UNIT}.ipynb", "timestamp.txt"}


# ------------------------------------------------------------------------- nbgrader on what the engine wrote


@pytest.fixture(scope="module")
def handed_back(graded: tuple[CourseCopy, list[Outcome]], tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A copy of the graded course with everybody's scores, and with feedback for two."""
    target = tmp_path_factory.mktemp("feedback") / "course"
    copy = CourseCopy(Path(shutil.copytree(graded[0].root, target, ignore=shutil.ignore_patterns("submitted"))))
    for folder in Course(copy.root).autograded.iterdir():
        if folder.name not in BACK:
            shutil.rmtree(folder)
    for command in (("feedback", UNIT), ("export",)):
        done = copy.grader(*command)
        assert done.returncode == 0, done.stderr
    return copy


def test_feedback_has_the_score_and_no_hidden_test(handed_back: CourseCopy) -> None:
    course = Course(handed_back.root)
    lines = list(hidden_lines(course))
    assert len(lines) > 20
    for score in scores(course, UNIT):
        if score.learner not in BACK:
            continue
        text = feedback_text(course, score.learner)
        assert f"{score.points:g} of 40 points" in text
        assert [line for line in lines if line in text] == []
        assert "HIDDEN TESTS" not in text


def test_feedback_says_what_could_not_be_read(handed_back: CourseCopy) -> None:
    text = feedback_text(Course(handed_back.root), "no-json")
    assert "The file is not complete, or is no JSON." in text


def test_the_table_of_scores_has_everybody(handed_back: CourseCopy) -> None:
    course = Course(handed_back.root)
    lines = course.grades_csv.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 1 + 14


# --------------------------------------------------------------------------------------------- graded again


def snapshot(course: Course) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in course.autograded.rglob("*") if path.is_file()}


def test_what_was_graded_is_skipped_until_it_changes(changeable: Course) -> None:
    before, files = rows(changeable), snapshot(changeable)
    again = grade_unit(changeable, UNIT, list(FOUR))
    assert [outcome.skipped for outcome in again] == [True] * 4
    assert (rows(changeable), snapshot(changeable)) == (before, files)
    perfect = notebook_of(changeable, "learner-07")
    hand_in(changeable, "learner-02", json.dumps(perfect))
    seen: list[str] = []
    changed = grade_unit(changeable, UNIT, list(FOUR), progress=lambda outcome: seen.append(outcome.learner))
    assert [outcome.skipped for outcome in changed] == [False, True, True, True]
    assert sorted(seen) == list(FOUR)
    after = rows(changeable)
    assert after.pop("learner-02")["score"] == 37
    before.pop("learner-02")
    assert after == before


def test_graded_anew_by_force_the_work_of_a_person_is_kept(changeable: Course) -> None:
    by_hand(changeable, "learner-03", WRITTEN, 2.0, extra=0.5, comment="Well put.")
    before, files = rows(changeable), snapshot(changeable)
    (outcome,) = grade_unit(changeable, UNIT, ["learner-03"], force=True)
    assert not outcome.skipped
    assert (rows(changeable), snapshot(changeable)) == (before, files)
    hand_in(changeable, "learner-03", json.dumps(notebook_of(changeable, "learner-07")))
    grade_unit(changeable, UNIT, ["learner-03"])
    row = rows(changeable)["learner-03"]
    assert row["score"] == 39.5
    assert row["grades"][WRITTEN] == (None, 2.0, 0.5, True, False)
    assert row["comments"][WRITTEN] == (None, "Well put.")


# ------------------------------------------------------------------------------- workers and locks that fail


def killed_at(monkeypatch: pytest.MonkeyPatch, course: Course, victim: str, times: int) -> None:
    """Let the process that gets a learner's submission be killed, a number of times."""
    data = (course.submitted / victim / UNIT / f"{UNIT}.ipynb").read_bytes()
    ask, left = GradingProcess.ask, [times]

    def kill(process: GradingProcess, job: Job) -> None:
        ask(process, job)
        if job.data == data and left[0]:
            left[0] -= 1
            process.kill()

    monkeypatch.setattr(GradingProcess, "ask", kill)


def two(course: Course) -> list[str]:
    released = course.exercise(UNIT).read_text(encoding="utf-8")
    hand_in(course, "ada", released)
    hand_in(course, "zoe", f"{released}\n")
    return ["ada", "zoe"]


def test_a_submission_whose_worker_dies_is_tried_once_more(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = two(open_course)
    killed_at(monkeypatch, open_course, "ada", 1)
    (outcome,) = grade_unit(open_course, UNIT, learners[:1], workers=1)
    assert outcome.verdict is not None
    assert outcome.verdict.status == GRADED


def test_a_submission_whose_workers_die_gets_a_verdict_and_the_others_are_graded(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = two(open_course)
    killed_at(monkeypatch, open_course, "ada", 2)
    found = {outcome.learner: outcome for outcome in grade_unit(open_course, UNIT, learners, workers=1)}
    assert status(found, "ada") == CRASHED
    assert status(found, "zoe") == GRADED
    comment = rows(open_course)["ada"]["comments"]["relu"][0]
    assert "the process that graded it was ended from outside" in comment
    monkeypatch.undo()
    again = grade_unit(open_course, UNIT, ["ada", "zoe"], workers=1)
    assert [outcome.skipped for outcome in again] == [False, True]
    assert rows(open_course)["ada"] == rows(open_course)["zoe"]


def test_a_worker_that_hangs_is_ended(open_course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "START_SECONDS", 0.0)
    monkeypatch.setattr(process, "GRACE_SECONDS", 0.0)
    limits = Limits(total_seconds=0.05)
    (outcome,) = grade_unit(open_course, UNIT, two(open_course)[:1], workers=1, limits=limits)
    assert outcome.verdict is not None
    assert outcome.verdict.status == TIMED_OUT


def missing(course: Course, count: int) -> list[str]:
    learners = [f"learner-{number:02d}" for number in range(count)]
    for learner in learners:
        (course.submitted / learner / UNIT).mkdir(parents=True)
    return learners


def test_a_gradebook_that_stays_locked_costs_what_could_not_be_kept_and_no_more(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "Writer", functools.partial(Writer, patience=0.2))
    learners = missing(open_course, 3)
    locker = sqlite3.connect(open_course.var / "gradebook.db", isolation_level=None)

    def lock(outcome: Outcome) -> None:
        if outcome.learner == learners[0]:
            locker.execute("BEGIN IMMEDIATE")

    found = grade_unit(open_course, UNIT, learners, progress=lock)
    locker.execute("ROLLBACK")
    locker.close()
    assert [bool(outcome.error) for outcome in found] == [False, True, True]
    assert "locked by another program" in found[1].error
    assert list(rows(open_course)) == learners[:1]
    again = grade_unit(open_course, UNIT, learners)
    assert [outcome.skipped for outcome in again] == [True, False, False]
    assert sorted(rows(open_course)) == learners


def test_a_lock_that_ends_in_time_costs_nothing(open_course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "Writer", functools.partial(Writer, patience=0.2))
    learners = missing(open_course, 3)
    locker = sqlite3.connect(open_course.var / "gradebook.db", isolation_level=None)
    save = Writer.save

    def locked_once(writer: Writer, unit: str, learner: str, *rest: Any, **more: Any) -> None:
        try:
            save(writer, unit, learner, *rest, **more)
        finally:
            if locker.in_transaction:
                locker.execute("ROLLBACK")

    monkeypatch.setattr(Writer, "save", locked_once)

    def lock(outcome: Outcome) -> None:
        if outcome.learner == learners[0]:
            locker.execute("BEGIN IMMEDIATE")

    found = grade_unit(open_course, UNIT, learners, progress=lock)
    locker.close()
    assert [outcome.error for outcome in found] == [""] * 3
    assert sorted(rows(open_course)) == learners


def test_a_fault_in_the_policy_of_penalties_is_the_outcome_of_one_submission(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nbgrader.plugins import LateSubmissionPlugin

    learners = missing(open_course, 2)
    hand_in(open_course, learners[0], f"{DEMO.due.year + 1}-01-01 00:00:00 UTC", "timestamp.txt")

    def breaks(*arguments: object) -> float:
        raise RuntimeError("no policy")

    monkeypatch.setattr(LateSubmissionPlugin, "late_submission_penalty", breaks)
    hand_in(open_course, learners[0], "my answers are on paper")
    found = grade_unit(open_course, UNIT, learners, workers=1)
    assert found[0].error == "the result could not be kept: RuntimeError: no policy"
    assert not found[1].error
    assert list(rows(open_course)) == learners[1:]
    assert not (open_course.autograded / learners[0]).exists()


def test_a_unit_that_is_none_or_was_not_released_is_named(open_course: Course) -> None:
    with pytest.raises(UnknownUnitError):
        grade_unit(open_course, "none", [])
    forget_unit(open_course)
    with pytest.raises(NotReleasedError):
        grade_unit(open_course, UNIT, [])


def test_nobody_to_grade_is_no_fault(open_course: Course) -> None:
    assert grade_unit(open_course, UNIT, []) == []


# ------------------------------------------------------------------------------ the journal, and runs gone on with


def no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be graded by a process any more."""

    def none(*arguments: object) -> None:
        raise AssertionError("a grading process was started")

    monkeypatch.setattr(GradingProcess, "__init__", none)


def cut_off(course: Course, monkeypatch: pytest.MonkeyPatch, learners: list[str]) -> None:
    """Grade while the gradebook is locked, so that all verdicts stay in the journal."""
    locker = sqlite3.connect(course.var / "gradebook.db", isolation_level=None)
    opened = batch._Keeper.open

    def locked(keeper: batch._Keeper) -> None:
        opened(keeper)
        if not locker.in_transaction:
            locker.execute("BEGIN IMMEDIATE")

    with monkeypatch.context() as patched:
        patched.setattr(batch, "Writer", functools.partial(Writer, patience=0.1))
        patched.setattr(batch._Keeper, "open", locked)
        # The first one may be kept before the lock is there.
        patched.setattr(batch._Keeper, "_try", lambda keeper: None)
        found = grade_unit(course, UNIT, learners, workers=1)
    locker.close()
    assert all("locked by another program" in outcome.error for outcome in found)
    assert rows(course) == {}
    assert sorted(path.name for path in journal_of(course).iterdir()) == [f"{name}.verdict" for name in learners]


def journal_of(course: Course) -> Path:
    return course.var / "journal" / UNIT


def test_the_next_run_takes_journalled_verdicts_without_grading_again(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = two(open_course)
    hand_in(open_course, "ada", f"{DEMO.due.year + 1}-01-01 00:00:00 UTC", "timestamp.txt")
    cut_off(open_course, monkeypatch, learners)
    with monkeypatch.context() as patched:
        no_processes(patched)
        found = grade_unit(open_course, UNIT, learners)
    assert [(outcome.skipped, outcome.error) for outcome in found] == [(False, "")] * 2
    assert status({outcome.learner: outcome for outcome in found}, "ada") == GRADED
    assert list(journal_of(open_course).iterdir()) == []
    resumed, files = rows(open_course), snapshot(open_course)
    assert resumed["ada"]["late"] > 0
    grade_unit(open_course, UNIT, learners, force=True)
    assert (rows(open_course), snapshot(open_course)) == (resumed, files)


def test_by_force_a_journalled_verdict_is_reached_anew(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(open_course, monkeypatch, two(open_course)[:1])
    no_processes(monkeypatch)
    with pytest.raises(AssertionError, match="a grading process was started"):
        grade_unit(open_course, UNIT, ["ada"], force=True)


def test_a_journalled_verdict_of_an_earlier_submission_does_not_count(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(open_course, monkeypatch, two(open_course)[:1])
    hand_in(open_course, "ada", "my answers are on paper")
    (outcome,) = grade_unit(open_course, UNIT, ["ada"])
    assert status({"ada": outcome}, "ada") == UNREADABLE
    assert list(journal_of(open_course).iterdir()) == []


def test_a_journalled_verdict_that_is_damaged_is_set_aside_with_a_remark(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(open_course, monkeypatch, two(open_course)[:1])
    (journal_of(open_course) / "ada.verdict").write_bytes(b"\x80\x04]\x94.")
    (outcome,) = grade_unit(open_course, UNIT, ["ada"])
    assert status({"ada": outcome}, "ada") == GRADED
    assert outcome.remark.startswith("the journalled verdict ")
    assert "cannot be read" in outcome.remark
    assert [path.name for path in journal_of(open_course).iterdir()] == ["ada.verdict.unreadable"]


def test_a_disk_that_is_full_stops_the_run_and_the_next_one_goes_on_with_it(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = two(open_course)
    with monkeypatch.context() as patched:

        def full(*arguments: object) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        patched.setattr(batch, "write_graded", full)
        with pytest.raises(UnwritableError, match="autograded cannot be written: No space left on device; "):
            grade_unit(open_course, UNIT, learners, workers=1)
    assert not open_course.autograded.exists()
    found = grade_unit(open_course, UNIT, learners)
    assert [outcome.error for outcome in found] == ["", ""]
    assert sorted(rows(open_course)) == learners
    assert list(journal_of(open_course).iterdir()) == []


def test_a_gradebook_that_is_read_only_is_named_and_no_verdict_is_lost(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = two(open_course)[:1]
    config = open_course.root / "nbgrader_config.py"
    text = config.read_text(encoding="utf-8")
    readable = f"sqlite:///file:{open_course.var / 'gradebook.db'}?mode=ro&uri=true"
    config.write_text(f"{text}\nc.CourseDirectory.db_url = {readable!r}\n", encoding="utf-8")
    with pytest.raises(GradebookUnwritableError, match=r"^the gradebook .* is read-only; "):
        grade_unit(open_course, UNIT, learners)
    assert not open_course.autograded.exists()
    config.write_text(text, encoding="utf-8")
    no_processes(monkeypatch)
    (outcome,) = grade_unit(open_course, UNIT, learners)
    assert status({"ada": outcome}, "ada") == GRADED


def test_a_submission_that_vanishes_is_named_and_recorded_as_nothing(open_course: Course) -> None:
    learners = missing(open_course, 2)
    shutil.rmtree(open_course.submitted / learners[1])
    found = grade_unit(open_course, UNIT, learners)
    gone = f"the submission grader/var/submitted/{learners[1]}/{UNIT} is no longer there"
    assert found[1].error.startswith(gone)
    assert learners[1] not in rows(open_course)
    assert not found[0].error


def test_a_verdict_can_be_had_without_writing_anything(open_course: Course) -> None:
    learners = [*two(open_course), *missing(open_course, 1), "bad*id"]
    (open_course.submitted / "bad*id" / UNIT).mkdir(parents=True)
    before = {str(path): path.stat().st_mtime_ns for path in open_course.root.rglob("*")}
    found = {
        learner: (verdict, error) for learner, verdict, error in verdicts(open_course, UNIT, learners, workers=1)
    }
    assert {str(path): path.stat().st_mtime_ns for path in open_course.root.rglob("*")} == before
    assert sorted(found) == sorted(learners)
    ada, gone = found["ada"][0], found["learner-00"][0]
    assert ada is not None
    assert ada.status == GRADED
    assert gone is not None
    assert gone.status == MISSING
    assert found["bad*id"][0] is None
    assert "can be no learner's id" in found["bad*id"][1]


def test_no_process_outlives_a_run_that_is_broken_off(open_course: Course) -> None:
    def stop(outcome: Outcome) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        grade_unit(open_course, UNIT, two(open_course), workers=2, progress=stop)
    assert [child for child in multiprocessing.active_children() if child.name == "ffn-grader"] == []
