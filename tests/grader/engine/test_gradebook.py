"""What the engine writes into nbgrader's gradebook: whole transactions that leave a person's work alone."""

import re
import sqlite3
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from grader.course import Course
from grader.engine.gradebook import NO_RESPONSE, Writer
from grader.engine.verdict import CRASHED, MISSING, TIMED_OUT, UNREADABLE
from grader.exceptions import (
    GradebookDamagedError,
    GradebookDiffersError,
    GradebookFolderError,
    GradebookFullError,
    GradebookLockedError,
    GradebookReadOnlyError,
    InvalidLearnerError,
    NotReleasedError,
)
from tests.grader.engine.courses import DUE, UNIT, WRITTEN, a_verdict, by_hand, db_url, forget_unit, rows
from tests.helpers import CourseCopy, said_once

pytestmark = pytest.mark.slow


def save(course: Course, learner: str = "ada", *, when: Any = None, patience: float = 10.0, **more: Any) -> None:
    keep = {key: more.pop(key) for key in ("unchanged",) if key in more}
    assignment, verdict = a_verdict(course, **more)
    with Writer(db_url(course), course.config(), patience=patience) as writer:
        writer.save(UNIT, learner, verdict, when, assignment, **keep)


def test_points_and_what_waits_for_a_person_are_there(open_course: Course) -> None:
    save(open_course)
    row = rows(open_course)["ada"]
    assert row["score"] == 37
    assert row["waits"] is True
    assert row["grades"][WRITTEN] == (None, None, None, True, False)
    assert row["grades"]["hidden_relu_grad"] == (2.0, None, None, False, False)
    assert row["failed_tests"] is False
    assert row["timestamp"] is None


def test_partial_credit_counts_as_a_failed_test(open_course: Course) -> None:
    save(open_course, share=0.5)
    row = rows(open_course)["ada"]
    assert row["score"] == 18.5
    assert row["failed_tests"] is True


def test_a_written_answer_as_given_out_gets_nothing_and_waits_for_nobody(open_course: Course) -> None:
    save(open_course, written="YOUR ANSWER HERE")
    row = rows(open_course)["ada"]
    assert row["waits"] is False
    assert row["grades"][WRITTEN] == (0.0, None, None, False, False)
    assert row["comments"][WRITTEN] == (NO_RESPONSE, None)


def test_a_deleted_written_answer_counts_as_one_that_was_not_given(open_course: Course) -> None:
    save(open_course, written=None)
    row = rows(open_course)["ada"]
    assert row["grades"][WRITTEN] == (0.0, None, None, False, False)
    assert row["comments"][WRITTEN] == (NO_RESPONSE, None)


def test_saving_twice_changes_nothing(open_course: Course) -> None:
    save(open_course, when=DUE)
    before = rows(open_course)
    save(open_course, when=DUE)
    assert rows(open_course) == before


def test_rows_have_ids_of_nbgrader_s_form_and_no_two_the_same(open_course: Course) -> None:
    for learner in ("ada", "bo"):
        save(open_course, learner)
    found = [ident for table in ("grade", "comment") for (ident,) in query(open_course, f"select id from {table}")]
    assert len(set(found)) == len(found) > 60
    assert all(re.fullmatch(r"[0-9a-f]{32}", ident) for ident in found)


def test_the_order_of_submissions_ids_tells_nothing_of_the_learners(open_course: Course) -> None:
    """Formgrader shows submissions in this order, without names."""
    learners = [f"learner-{number:02}" for number in range(12)]
    for learner in learners:
        save(open_course, learner)
    for table, joined in (
        ("submitted_assignment", ""),
        ("submitted_notebook", "join submitted_assignment a on a.id = t.assignment_id"),
    ):
        who = "a.student_id" if joined else "t.student_id"
        order = [name for (name,) in query(open_course, f"select {who} from {table} t {joined} order by t.id")]
        assert sorted(order) == learners
        assert order != learners


def query(course: Course, text: str) -> list[Any]:
    with sqlite3.connect(db_url(course).removeprefix("sqlite:///")) as connection:
        return connection.execute(text).fetchall()


def test_another_learner_changes_nobody_s_rows(open_course: Course) -> None:
    save(open_course, "ada")
    before = rows(open_course)["ada"]
    save(open_course, "zoe", share=0.0)
    assert rows(open_course)["ada"] == before


def test_what_a_person_gave_is_kept_and_marked_to_be_looked_at_again(open_course: Course) -> None:
    save(open_course)
    by_hand(open_course, "ada", WRITTEN, 2.5, extra=1.0, comment="Well put.")
    by_hand(open_course, "ada", "test_relu", 0.5)
    save(open_course, share=0.0)
    row = rows(open_course)["ada"]
    assert row["grades"][WRITTEN] == (None, 2.5, 1.0, True, False)
    assert row["grades"]["test_relu"] == (0.0, 0.5, None, True, True)
    assert row["comments"][WRITTEN] == (None, "Well put.")
    assert row["score"] == 4.0


def test_the_same_submission_graded_anew_does_not_undo_that_a_person_is_done(open_course: Course) -> None:
    save(open_course)
    by_hand(open_course, "ada", WRITTEN, 2.5, comment="Well put.")
    before = rows(open_course)
    save(open_course, unchanged=True)
    assert rows(open_course) == before
    assert before["ada"]["waits"] is False


def test_a_late_submission_is_late_and_pays_nothing_by_default(open_course: Course) -> None:
    save(open_course, when=DUE + timedelta(hours=49))
    row = rows(open_course)["ada"]
    assert (row["late"], row["penalty"], row["timestamp"]) == (49 * 3600, None, DUE + timedelta(hours=49))


def test_a_late_penalty_is_nbgrader_s_and_goes_when_the_submission_is_in_time(open_course: Course) -> None:
    config = open_course.config()
    config.LateSubmissionPlugin.penalty_method = "zero"
    assignment, verdict = a_verdict(open_course)
    with Writer(db_url(open_course), config) as writer:
        writer.save(UNIT, "ada", verdict, DUE + timedelta(hours=1), assignment)
        assert rows(open_course)["ada"]["penalty"] == 37
        by_hand(open_course, "ada", WRITTEN, 3.0)
        writer.save(UNIT, "ada", verdict, DUE + timedelta(hours=1), assignment)
        assert rows(open_course)["ada"]["penalty"] == 40
        writer.save(UNIT, "ada", verdict, DUE - timedelta(hours=1), assignment)
    assert rows(open_course)["ada"]["penalty"] is None


@pytest.mark.parametrize("status", [f"{CRASHED} at cell relu", TIMED_OUT, MISSING, UNREADABLE])
def test_what_the_instructor_should_know_stands_at_the_first_answer(open_course: Course, status: str) -> None:
    gone = {"notebook": None} if status in (MISSING, UNREADABLE) else {}
    save(open_course, share=0.0, status=status, instructor="The *file* <b>is</b> [odd](x).", **gone)
    row = rows(open_course)["ada"]
    assert row["comments"]["relu"] == ("The ?file? ?b?is?/b? ?odd?(x).", None)
    assert row["waits"] is (not gone)
    save(open_course)
    assert rows(open_course)["ada"]["comments"]["relu"] == (None, None)


def test_what_the_instructor_should_know_leaves_a_person_s_comment_alone(open_course: Course) -> None:
    save(open_course)
    by_hand(open_course, "ada", WRITTEN, 1.0)
    from nbgrader.api import Gradebook

    with Gradebook(db_url(open_course)) as gradebook:
        gradebook.find_comment("relu", UNIT, UNIT, "ada").manual_comment = "See me."
        gradebook.db.commit()
    save(open_course, share=0.0, status=UNREADABLE, notebook=None)
    row = rows(open_course)["ada"]
    assert row["comments"]["relu"] == (NO_RESPONSE, "See me.")
    assert row["comments"]["relu_grad"] == ("A word to the instructor.", None)
    assert row["grades"][WRITTEN] == (0.0, 1.0, None, True, False)


def test_an_exception_in_the_middle_leaves_nothing(open_course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrader.plugins import LateSubmissionPlugin

    save(open_course, "ada")
    before = rows(open_course)

    def breaks(*arguments: object) -> float:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(LateSubmissionPlugin, "late_submission_penalty", breaks)
    assignment, verdict = a_verdict(open_course, share=0.0)
    with Writer(db_url(open_course), open_course.config()) as writer:
        for learner in ("ada", "zoe"):
            with pytest.raises(RuntimeError, match="in the middle"):
                writer.save(UNIT, learner, verdict, DUE + timedelta(hours=1), assignment)
    assert rows(open_course) == before
    from nbgrader.api import Gradebook

    with Gradebook(db_url(open_course)) as gradebook:
        assert [student.id for student in gradebook.students] == ["ada"]


@pytest.mark.parametrize("points", [1.5, -1.0, float("nan"), float("inf")])
def test_more_points_than_a_cell_has_are_never_written(open_course: Course, points: float) -> None:
    from dataclasses import replace

    assignment, verdict = a_verdict(open_course)
    results = (replace(verdict.results[0], points=points), *verdict.results[1:])
    with (
        Writer(db_url(open_course), open_course.config()) as writer,
        pytest.raises(ValueError, match="a verdict has"),
    ):
        writer.save(UNIT, "ada", replace(verdict, results=results), None, assignment)
    assert rows(open_course) == {}


def test_a_gradebook_that_stays_locked_is_one_clear_exception(open_course: Course) -> None:
    save(open_course)
    before = rows(open_course)
    locker = sqlite3.connect(open_course.var / "gradebook.db", isolation_level=None)
    locker.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(GradebookLockedError, match=r"locked by another program for 0\.3 seconds"):
            save(open_course, share=0.0, patience=0.3)
    finally:
        locker.execute("ROLLBACK")
        locker.close()
    assert rows(open_course) == before


def test_a_lock_that_comes_later_is_one_clear_exception_too(open_course: Course) -> None:
    assignment, verdict = a_verdict(open_course)
    with Writer(db_url(open_course), open_course.config(), patience=0.3) as writer:
        locker = sqlite3.connect(open_course.var / "gradebook.db", isolation_level=None)
        locker.execute("BEGIN IMMEDIATE")
        with pytest.raises(GradebookLockedError):
            writer.save(UNIT, "ada", verdict, None, assignment)
        locker.execute("ROLLBACK")
        locker.close()
        writer.save(UNIT, "ada", verdict, None, assignment)
    assert rows(open_course)["ada"]["score"] == 37


def test_a_lock_that_ends_is_waited_for(open_course: Course) -> None:
    locker = sqlite3.connect(open_course.var / "gradebook.db", isolation_level=None, check_same_thread=False)
    locker.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.5, lambda: locker.execute("ROLLBACK")).start()
    start = time.monotonic()
    save(open_course)
    assert time.monotonic() - start > 0.4
    locker.close()
    assert rows(open_course)["ada"]["score"] == 37


@pytest.mark.parametrize(
    "learner", ["", ".", "..", "../ada", "a/b", "-rf", "a\nb", "[a]", "a*", "\udcff", "x" * 129]
)
def test_a_name_that_is_no_learner_s_id_is_never_written(open_course: Course, learner: str) -> None:
    with pytest.raises(InvalidLearnerError):
        save(open_course, learner)
    assert rows(open_course) == {}


def test_a_unit_that_was_not_released_is_named(open_course: Course) -> None:
    forget_unit(open_course)
    with pytest.raises(NotReleasedError, match="grader release activations"):
        save(open_course)


def test_cells_that_are_not_those_of_the_gradebook_are_named(open_course: Course) -> None:
    from dataclasses import replace

    assignment, verdict = a_verdict(open_course)
    for cell in assignment.reference["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "test_relu":
            cell["metadata"]["nbgrader"]["points"] = 5
    with Writer(db_url(open_course), open_course.config()) as writer:
        with pytest.raises(GradebookDiffersError, match=r"\(test_relu\)"):
            writer.save(UNIT, "ada", replace(verdict), None, assignment)
        with pytest.raises(GradebookDiffersError):
            writer.check(assignment)
        assert writer.graded(UNIT) == set()


# ------------------------------------------------------------------------------- gradebooks that cannot be written


def test_a_unit_that_is_taken_out_between_two_verdicts_is_noticed(open_course: Course) -> None:
    assignment, verdict = a_verdict(open_course)
    with Writer(db_url(open_course), open_course.config()) as writer:
        writer.save(UNIT, "ada", verdict, None, assignment)
        forget_unit(open_course)
        with pytest.raises(NotReleasedError):
            writer.save(UNIT, "bob", verdict, None, assignment)


def test_points_that_change_between_two_verdicts_are_noticed(open_course: Course) -> None:
    assignment, verdict = a_verdict(open_course)
    with Writer(db_url(open_course), open_course.config()) as writer:
        writer.save(UNIT, "ada", verdict, None, assignment)
        other = sqlite3.connect(open_course.var / "gradebook.db")
        other.execute("UPDATE grade_cells SET max_score = max_score + 1")
        other.commit()
        other.close()
        with pytest.raises(GradebookDiffersError):
            writer.save(UNIT, "bob", verdict, None, assignment)
    assert set(rows(open_course)) == {"ada"}


def test_a_due_time_that_changes_between_two_verdicts_counts(open_course: Course) -> None:
    config = open_course.config()
    config.AssignLatePenalties.plugin_class = "nbgrader.plugins.LateSubmissionPlugin"
    config.LateSubmissionPlugin.penalty_method = "zero"
    assignment, verdict = a_verdict(open_course)
    with Writer(db_url(open_course), config) as writer:
        writer.save(UNIT, "ada", verdict, DUE, assignment)
        other = sqlite3.connect(open_course.var / "gradebook.db")
        other.execute("UPDATE assignment SET duedate = datetime(duedate, '-1 hour') || '.000000'")
        other.commit()
        other.close()
        writer.save(UNIT, "bob", verdict, DUE, assignment)
    assert {name: row["penalty"] for name, row in rows(open_course).items()} == {"ada": None, "bob": 37}


def test_a_gradebook_that_may_not_be_written_is_named(open_course: Course) -> None:
    before = rows(open_course)
    place = open_course.var / "gradebook.db"
    assignment, verdict = a_verdict(open_course)
    # Not by its mode: root may write whatever that is.
    with (
        Writer(f"sqlite:///file:{place}?mode=ro&uri=true", open_course.config()) as writer,
        pytest.raises(GradebookReadOnlyError, match=r"gradebook\.db is read-only; allow yourself to write it"),
    ):
        writer.save(UNIT, "ada", verdict, None, assignment)
    assert rows(open_course) == before


def test_a_gradebook_in_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(GradebookFolderError, match=r"none/gradebook\.db cannot be opened.*make it, or correct"):
        Writer(f"sqlite:///{tmp_path / 'none' / 'gradebook.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database_is_named_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "gradebook.db"
    place.write_bytes(b"no database at all, and longer than the head of one would be" * 20)
    before = place.read_bytes()
    with pytest.raises(GradebookDamagedError, match=r"gradebook\.db is damaged, or no gradebook; put back"):
        Writer(f"sqlite:///{place}")
    assert place.read_bytes() == before


def test_a_damaged_database_is_named(open_course: Course) -> None:
    assignment, verdict = a_verdict(open_course)
    place = open_course.var / "gradebook.db"
    data = bytearray(place.read_bytes())
    # The first page has the list of tables; all of theirs come after it.
    data[4096:] = b"\xff" * (len(data) - 4096)
    place.write_bytes(data)
    with pytest.raises(GradebookDamagedError):
        Writer(db_url(open_course), open_course.config()).save(UNIT, "ada", verdict, None, assignment)


def test_a_full_disk_is_named_and_nothing_of_the_verdict_is_left(open_course: Course) -> None:
    assignment, verdict = a_verdict(open_course)
    with Writer(db_url(open_course), open_course.config()) as writer:
        with writer._transaction() as connection:
            # No page more than there are: the same error as that of a disk without room.
            connection.exec_driver_sql("PRAGMA max_page_count = 1")
        done: list[str] = []

        def fill() -> None:
            for number in range(1_000):
                writer.save(UNIT, f"learner-{number}", verdict, None, assignment)
                done.append(f"learner-{number}")

        with pytest.raises(GradebookFullError, match="its disk is full, or fails; make room and grade again"):
            fill()
    assert set(rows(open_course)) == set(done)


def test_a_command_says_in_one_sentence_that_the_gradebook_is_damaged(open_course: Course) -> None:
    (open_course.var / "gradebook.db").write_bytes(b"no database" * 200)
    for command in (("scores", UNIT), ("release", UNIT), ("feedback", UNIT)):
        done = CourseCopy(open_course.root).grader(*command)
        assert done.returncode == 1
        said_once(done.stderr)
