"""The gradebook on a PostgreSQL server: the same rows as in a file, and what is said where it does not answer."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from grader import stock
from grader.course import Course
from grader.engine.gradebook import Writer
from grader.engine.store import digest, graded_notebook, notebook_bytes, write_graded
from grader.engine.verdict import TIMED_OUT
from grader.exceptions import GradebookAwayError, GradebookLockedError, GradebookUnwritableError
from tests.grader.engine.courses import (
    DEMO,
    DUE,
    UNIT,
    WRITTEN,
    a_verdict,
    by_hand,
    copied,
    db_url,
    forget_unit,
    rows,
)
from tests.grader.engine.postgres import ABSENT, Server, programs, server
from tests.helpers import CourseCopy, free_port, said_once

pytestmark = [pytest.mark.slow, pytest.mark.skipif(programs() is None, reason=ABSENT)]


@pytest.fixture(scope="module")
def postgres() -> Iterator[Server]:
    with server() as running:
        yield running


def on(copy: CourseCopy, url: str) -> Course:
    """Let a course have its gradebook at this URL."""
    config = copy.root / "nbgrader_config.py"
    config.write_text(
        f"{config.read_text(encoding='utf-8')}\nc.CourseDirectory.db_url = {url!r}\n", encoding="utf-8"
    )
    return Course(copy.root)


@pytest.fixture(scope="module")
def released_there(
    postgres: Server, released_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory
) -> CourseCopy:
    """A course that was released into a database; tests copy both."""
    copy = copied(released_course, tmp_path_factory.mktemp("postgres") / "course", ())
    on(copy, postgres.make("released"))
    done = copy.grader("release", UNIT)
    assert done.returncode == 0, done.stderr
    stock.set_due(Course(copy.root), UNIT, DEMO.due)
    return copy


@pytest.fixture
def course(postgres: Server, released_there: CourseCopy, tmp_path: Path) -> Course:
    """A released course with a database of its own."""
    name = f"of_{abs(hash(tmp_path))}"
    postgres._run("createdb", "-h", str(postgres.folder), "-U", "postgres", "-T", "released", name)
    return on(CourseCopy(Path(shutil.copytree(released_there.root, tmp_path / "there"))), postgres.url(name))


@contextmanager
def another(course: Course, statement: str) -> Iterator[Any]:
    """Another program's transaction that has done this and goes on."""
    from sqlalchemy import create_engine, text

    engine = create_engine(db_url(course))
    with engine.connect() as connection:
        connection.execute(text(statement))
        yield connection
    engine.dispose()


def filled(course: Course) -> dict[str, dict[str, Any]]:
    """The rows after a little of everything: late, by hand, with another result, ended too early, graded again."""
    assignment, good = a_verdict(course)
    _, poor = a_verdict(course, share=0.25, written=None)
    _, ended = a_verdict(course, share=0.0, status=TIMED_OUT)
    config = course.config()
    config.AssignLatePenalties.plugin_class = "nbgrader.plugins.LateSubmissionPlugin"
    config.LateSubmissionPlugin.penalty_method = "zero"
    with Writer(db_url(course), config) as writer:
        writer.save(UNIT, "ada", good, DUE - timedelta(hours=1), assignment)
        writer.save(UNIT, "bob", good, DUE + timedelta(hours=1), assignment)
        writer.save(UNIT, "cyd", poor, None, assignment)
        writer.save(UNIT, "zoë", ended, DUE, assignment)
        by_hand(course, "ada", WRITTEN, 2.5, extra=0.5, comment="Well put.")
        writer.save(UNIT, "ada", good, DUE - timedelta(hours=1), assignment, unchanged=True)
        writer.save(UNIT, "cyd", good, DUE, assignment)
        assert writer.graded(UNIT) == {"ada", "bob", "cyd", "zoë"}
    return rows(course)


def test_the_rows_are_those_of_a_file(course: Course, open_course: Course) -> None:
    there = filled(course)
    assert there == filled(open_course)
    assert (there["ada"]["score"], there["bob"]["penalty"]) == (40, 37)


@pytest.mark.parametrize(
    "statement",
    ["SELECT id FROM assignment FOR UPDATE", "LOCK TABLE grade IN ACCESS EXCLUSIVE MODE"],
)
def test_what_another_program_keeps_locked_is_one_clear_exception(course: Course, statement: str) -> None:
    assignment, verdict = a_verdict(course)
    with Writer(db_url(course), course.config(), patience=0.3) as writer:
        with (
            another(course, statement),
            pytest.raises(GradebookLockedError, match=r"locked by another program for 0\.3 seconds"),
        ):
            writer.save(UNIT, "ada", verdict, None, assignment)
        assert rows(course) == {}
        writer.save(UNIT, "ada", verdict, None, assignment)
    assert rows(course)["ada"]["score"] == 37


def test_a_lock_that_ends_is_waited_for(course: Course) -> None:
    assignment, verdict = a_verdict(course)
    with (
        Writer(db_url(course), course.config()) as writer,
        another(course, "SELECT id FROM assignment FOR UPDATE") as connection,
    ):
        threading.Timer(0.5, connection.rollback).start()
        start = time.monotonic()
        writer.save(UNIT, "ada", verdict, None, assignment)
        assert time.monotonic() - start > 0.4
    assert rows(course)["ada"]["score"] == 37


def test_two_writers_at_once_lose_nothing(course: Course) -> None:
    assignment, verdict = a_verdict(course)
    faults: list[BaseException] = []

    def write(learners: list[str]) -> None:
        try:
            with Writer(db_url(course), course.config()) as writer:
                for learner in learners:
                    writer.save(UNIT, learner, verdict, None, assignment)
        except BaseException as error:
            faults.append(error)

    names = [f"learner-{number}" for number in range(12)]
    threads = [threading.Thread(target=write, args=(order,)) for order in (names, names[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert {learner: row["score"] for learner, row in rows(course).items()} == dict.fromkeys(names, 37.0)


def test_a_unit_that_is_taken_out_between_two_verdicts_is_noticed(course: Course) -> None:
    from grader.exceptions import NotReleasedError

    assignment, verdict = a_verdict(course)
    with Writer(db_url(course), course.config()) as writer:
        writer.check(assignment)
        forget_unit(course)
        with pytest.raises(NotReleasedError):
            writer.save(UNIT, "ada", verdict, None, assignment)


def test_a_server_that_is_away_is_named_without_its_password() -> None:
    port = free_port()
    with pytest.raises(GradebookAwayError) as caught:
        Writer(f"postgresql+psycopg://ada:a-secret@127.0.0.1:{port}/grades?password=a-secret", patience=2)
    assert f"postgresql+psycopg://ada:***@127.0.0.1:{port}/grades" in str(caught.value)
    assert "a-secret" not in str(caught.value)


def test_a_database_that_is_not_there_is_named(postgres: Server) -> None:
    with pytest.raises(GradebookAwayError, match='database "none" does not exist'):
        Writer(postgres.url("none"))


def test_a_user_who_may_not_write_is_told_so(postgres: Server, course: Course) -> None:
    with another(course, "CREATE ROLE guest LOGIN") as connection:
        connection.commit()
    url = db_url(course).replace("//postgres:", "//guest:")
    with pytest.raises(GradebookUnwritableError, match="permission denied"):
        Writer(url)


def test_a_connection_that_is_ended_is_made_anew(course: Course) -> None:
    from sqlalchemy import text

    assignment, verdict = a_verdict(course)
    with Writer(db_url(course), course.config()) as writer:
        writer.save(UNIT, "ada", verdict, None, assignment)
        with another(course, "SELECT 1") as connection:
            own = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = "
            connection.execute(text(f"{own} current_database()"))
        with pytest.raises(GradebookAwayError):
            writer.save(UNIT, "bob", verdict, None, assignment)
        writer.save(UNIT, "bob", verdict, None, assignment)
    assert set(rows(course)) == {"ada", "bob"}


def test_scores_feedback_and_export_read_it(course: Course) -> None:
    import csv
    import json

    assignment, verdict = a_verdict(course)
    with Writer(db_url(course), course.config()) as writer:
        for learner in ("ada", "bob"):
            writer.save(UNIT, learner, verdict, DUE, assignment)
            notebook = graded_notebook(assignment, verdict, digest(assignment, None))
            write_graded(course, learner, UNIT, notebook_bytes(notebook), DUE)
    copy = CourseCopy(course.root)
    found = copy.grader("scores", UNIT, "--json")
    assert found.returncode == 0, found.stderr
    assert {score["learner"]: score["points"] for score in json.loads(found.stdout)} == {"ada": 37.0, "bob": 37.0}
    for command in (("release", UNIT), ("feedback", UNIT), ("export",)):
        done = copy.grader(*command)
        assert done.returncode == 0, done.stderr
    assert "37 of 40 points" in (course.feedback / "ada" / UNIT / f"{UNIT}.html").read_text(encoding="utf-8")
    with course.grades_csv.open(encoding="utf-8", newline="") as table:
        assert {row["student_id"]: float(row["score"]) for row in csv.DictReader(table)} == {"ada": 37, "bob": 37}


def test_a_command_says_in_one_sentence_that_the_server_is_away(course: Course) -> None:
    url = f"postgresql+psycopg://ada:a-secret@127.0.0.1:{free_port()}/grades"
    copy = CourseCopy(course.root)
    on(copy, url)
    done = copy.grader("scores", UNIT)
    assert done.returncode == 1
    assert "a-secret" not in said_once(done.stderr)
