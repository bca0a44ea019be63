"""Put verdicts into nbgrader's own gradebook, each as one transaction.

What is left there is what nbgrader's autograde would have left: formgrader, manual grading, late penalties, feedback
and export work on it. Scores, extra credit and comments given by a person are never touched.
"""

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from grader.engine.restore import NO_ANSWER, Assignment
from grader.engine.store import answers_of, harmless, require_learner
from grader.engine.verdict import CRASHED, MISSING, TIMED_OUT, UNREADABLE, Verdict
from grader.exceptions import (
    GradebookAwayError,
    GradebookDamagedError,
    GradebookDiffersError,
    GradebookFolderError,
    GradebookFullError,
    GradebookLockedError,
    GradebookReadOnlyError,
    GradebookUnwritableError,
    GraderError,
    NotReleasedError,
)
from grader.notebooks import grade_id

__all__ = ["NO_RESPONSE", "PATIENCE", "Writer", "explained", "fault_of", "released_checksums", "unanswered"]

NO_RESPONSE = "No response."
PATIENCE = 10.0
"""Seconds for which a locked gradebook is waited for."""


@dataclass(frozen=True)
class _Cell:
    """A cell as the gradebook has it; ``points`` is None for one that is not graded."""

    id: str
    kind: str
    points: float | None


@dataclass(frozen=True)
class _Unit:
    """A unit as the gradebook has it: its cells by kind and name, and the checksums of the cells as given out."""

    assignment_id: str
    notebook_id: str
    duedate: datetime | None
    cells: Mapping[tuple[str, str], _Cell]
    checksums: Mapping[str, str]

    def named(self, kind: str) -> dict[str, _Cell]:
        return {name: cell for (of, name), cell in self.cells.items() if of == kind}

    @cached_property
    def ids(self) -> list[str]:
        return [cell.id for cell in self.cells.values()]

    @cached_property
    def gradable(self) -> dict[str, _Cell]:
        return self.named("GradeCell") | self.named("TaskCell")

    @cached_property
    def commentable(self) -> dict[str, _Cell]:
        return self.named("SolutionCell") | self.named("TaskCell")


class Writer:
    """The one who writes the gradebook; opened once, for any number of verdicts.

    ``config`` is the course's traitlets configuration, for the policy of late penalties.

    Raises:
        GradebookLockedError: another program keeps the gradebook locked.
        GradebookUnwritableError: it cannot be opened or written for another reason, which the message names.
        BadPolicyError, BadExtensionsError: the late policy or the file of extensions cannot be read.
    """

    def __init__(
        self,
        db_url: str,
        config: Any | None = None,
        *,
        course_id: str = "default_course",
        patience: float = PATIENCE,
    ) -> None:
        from sqlalchemy import make_url

        from grader.extensions import extensions_of
        from grader.late import late_plugin

        self._patience = patience
        self._url = db_url
        self._connection: Any = None
        self._units: dict[str, tuple[Any, _Unit]] = {}
        self._same: tuple[_Unit, Assignment] | None = None
        self._late = late_plugin(config)
        self._extensions = extensions_of(config)
        url = make_url(db_url)
        self._is_sqlite = url.get_backend_name() == "sqlite"
        with self._waiting():
            self._gradebook = _opened(_patient(url, patience), course_id)
        if self._is_sqlite:
            _lock_at_begin(self._gradebook.engine)
        self._rows = _Rows(url.get_backend_name())

    def __enter__(self) -> "Writer":
        """The writer itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the gradebook."""
        self.close()

    def close(self) -> None:
        """Close the gradebook."""
        self._disconnect()
        self._gradebook.close()

    def check(self, assignment: Assignment) -> None:
        """See that the gradebook knows a unit, with the graded cells that it has now.

        Raises:
            NotReleasedError: the gradebook does not know the unit.
            GradebookDiffersError: its graded cells, or their points, are others.
            GradebookLockedError, GradebookUnwritableError: see the class.
        """
        with self._transaction() as connection:
            self._require_same(self._unit(connection, assignment.unit), assignment)

    def graded(self, unit: str) -> set[str]:
        """The learners with a submission of a unit in the gradebook.

        Raises:
            GradebookLockedError, GradebookUnwritableError: see the class.
        """
        with self._transaction() as connection:
            return set(connection.execute(self._rows.graded, {"unit": unit}).scalars())

    def save(
        self,
        unit: str,
        learner: str,
        verdict: Verdict,
        timestamp: datetime | None,
        assignment: Assignment,
        *,
        unchanged: bool = False,
    ) -> None:
        """Put a verdict in: all of it, or nothing where something goes wrong.

        As nbgrader does it, an answer that a person has graded is marked to be looked at again; with ``unchanged``,
        for the same submission graded anew, only where its automatic score is another one.

        Raises:
            InvalidLearnerError: the name can be no learner's id.
            NotReleasedError: the gradebook does not know the unit.
            GradebookDiffersError: its graded cells, or their points, are others than the assignment's.
            GradebookLockedError, GradebookUnwritableError: see the class.
        """
        require_learner(learner)
        with self._transaction() as connection:
            known = self._unit(connection, unit)
            self._require_same(known, assignment)
            submitted = self._rows.submitted(connection, known, learner, timestamp)
            extension = self._extensions.of(learner, unit, known.duedate, submitted.extension)
            if extension != submitted.extension:
                submitted = self._rows.put_extension(connection, submitted, extension)
            answers = {} if verdict.notebook is None else answers_of(verdict.notebook)
            empty = {
                name
                for name in known.named("SolutionCell")
                if name not in answers or unanswered(answers[name], known.checksums.get(name))
            }
            scores = _scores(known, assignment, verdict, empty)
            self._rows.put_grades(connection, known, submitted, scores, unchanged=unchanged)
            self._rows.put_comments(connection, known, submitted, assignment, verdict, empty)
            penalty = self._penalty(connection, known, submitted, learner)
            if submitted.penalty != penalty:
                self._rows.put_penalty(connection, submitted, penalty)

    def _penalty(self, connection: Any, known: _Unit, submitted: "_Submitted", learner: str) -> float | None:
        """The late penalty by the policy of nbgrader's configuration."""
        from grader.late import late_penalty

        due = submitted.due(known.duedate)
        if due is None or submitted.timestamp is None or submitted.timestamp <= due:
            return None
        return late_penalty(
            self._late,
            learner,
            score=self._rows.score(connection, known, submitted),
            maximum=sum(cell.points or 0.0 for cell in known.gradable.values()),
            due=due,
            seconds_late=(submitted.timestamp - due).total_seconds(),
        )

    def _unit(self, connection: Any, unit: str) -> _Unit:
        """A unit as the gradebook has it now; read again only where somebody else may have changed it."""
        version = connection.exec_driver_sql("PRAGMA data_version").scalar() if self._is_sqlite else None
        if unit in self._units and version is not None and self._units[unit][0] == version:
            return self._units[unit][1]
        found = self._rows.unit(connection, unit)
        self._units[unit] = version, found
        return found

    def _require_same(self, known: _Unit, assignment: Assignment) -> None:
        if self._same is None or self._same[0] is not known or self._same[1] is not assignment:
            _require_same(known, assignment)
            self._same = known, assignment

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A connection whose changes are kept together or not at all."""
        with self._waiting():
            if self._connection is None:
                self._connection = self._gradebook.engine.connect()
            try:
                with self._connection.begin():
                    yield self._connection
            except BaseException:
                # A new one begins with nothing of what went wrong; what was read of the units may be of a moment ago.
                self._disconnect()
                raise

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self._units.clear()
        if connection is not None:
            with suppress(Exception):
                connection.close()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with explained(self._url, self._patience):
            yield


def _opened(url: str, course_id: str) -> Any:
    """The gradebook of nbgrader's API; one that cannot be opened to its end leaves no connection behind."""
    from nbgrader.api import Gradebook

    gradebook = Gradebook.__new__(Gradebook)
    try:
        gradebook.__init__(url, course_id)
    except BaseException:
        with suppress(Exception):
            gradebook.close()
        raise
    return gradebook


def _patient(url: Any, patience: float) -> str:
    """The URL of a database that waits so long for a lock, and for a server to answer."""
    if url.get_backend_name() == "sqlite":
        url = url.update_query_dict({"timeout": f"{patience:g}"})
    elif url.get_backend_name() == "postgresql":
        given = url.query.get("options", "")
        own = f"-c lock_timeout={max(1, round(patience * 1000))}"
        url = url.update_query_dict({"options": f"{given} {own}".strip()})
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": str(max(2, round(patience)))})
    return str(url.render_as_string(hide_password=False))


# PostgreSQL's codes: a lock that was not got in time, and a deadlock; a connection that failed, a user or a database
# that it does not let in, and a server that is shutting down.
_LOCK_STATES = {"55P03", "40P01"}
_AWAY_STATES = ("08", "28", "3D", "57P0")


@contextmanager
def explained(db_url: str, patience: float = PATIENCE) -> Iterator[None]:
    """Turn what a database reports of a gradebook into one of the grader's own exceptions.

    Raises:
        GradebookLockedError: another program keeps the gradebook locked.
        GradebookUnwritableError: anything else that the database reports, by the kind that the message names.
    """
    try:
        yield
    except Exception as error:
        fault = fault_of(error, db_url, patience)
        if fault is None:
            raise
        raise fault from error


def fault_of(error: BaseException, db_url: str | None = None, patience: float = PATIENCE) -> GraderError | None:
    """The grader's exception for one that a database has raised; None for any other. ``db_url`` is the gradebook's."""
    from nbgrader.api import InvalidEntry
    from sqlalchemy import make_url
    from sqlalchemy.exc import DBAPIError

    if isinstance(error, InvalidEntry) and isinstance(error.__context__, DBAPIError):
        # nbgrader has put what the database said into its own words.
        error = error.__context__
    if not isinstance(error, DBAPIError):
        return None
    said, state = str(error.orig), getattr(error.orig, "sqlstate", None)
    if "locked" in said or state in _LOCK_STATES:
        return GradebookLockedError(patience)
    if db_url is None:
        return GradebookUnwritableError(said)
    url = make_url(db_url)
    if url.get_backend_name() == "sqlite":
        return _sqlite_fault(said, Path(url.database or ""))
    if state is None or state.startswith(_AWAY_STATES) or error.connection_invalidated:
        return GradebookAwayError(_shown(url), said)
    return GradebookUnwritableError(said)


def _sqlite_fault(said: str, place: Path) -> GraderError:
    if "readonly" in said:
        return GradebookReadOnlyError(place)
    if "unable to open" in said:
        return GradebookFolderError(place)
    if "malformed" in said or "not a database" in said:
        return GradebookDamagedError(place)
    if "full" in said or "disk I/O" in said:
        return GradebookFullError(place)
    return GradebookUnwritableError(said)


def _shown(url: Any) -> str:
    """A database's URL without what is nobody's business."""
    kept = {key: value for key, value in url.query.items() if key in ("host", "port", "dbname", "service")}
    return str(url.set(query=kept).render_as_string(hide_password=True))


def released_checksums(db_url: str, unit: str) -> dict[str, str]:
    """Checksums of a unit's cells as they were given out, by grade id.

    Raises:
        NotReleasedError: the gradebook does not know the unit.
    """
    from nbgrader.api import Gradebook, MissingEntry

    with Gradebook(db_url) as gradebook:
        try:
            cells = gradebook.find_notebook(unit, unit).source_cells
        except MissingEntry:
            raise NotReleasedError(unit) from None
        return {cell.name: cell.checksum for cell in cells if cell.checksum}


def unanswered(cell: Any, released: str | None) -> bool:
    """Whether an answer cell is as it was given out, by the checksum of that, or stands for one that was deleted."""
    from nbformat import NotebookNode
    from nbgrader.utils import compute_checksum

    if cell["source"] in (NO_ANSWER, f"# {NO_ANSWER}\nraise NotImplementedError()"):
        return True
    # No deeper than nbgrader looks: each answer of each submission comes by here.
    marks = NotebookNode(nbgrader=NotebookNode(cell["metadata"]["nbgrader"]))  # type: ignore[no-untyped-call]
    marked = NotebookNode(cell_type=cell["cell_type"], source=cell["source"], metadata=marks)  # type: ignore[no-untyped-call]
    return bool(released == compute_checksum(marked))


def _lock_at_begin(engine: Any) -> None:
    """Let every transaction of an SQLite engine take the write lock first, so that nobody writes in between."""
    from sqlalchemy import event

    engine.dispose()

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: object) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begun(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")


def _require_same(known: _Unit, assignment: Assignment) -> None:
    theirs = {name: cell.points for name, cell in known.named("GradeCell").items()}
    marks = {str(grade_id(c)): c["metadata"]["nbgrader"] for c in assignment.reference["cells"] if grade_id(c)}
    mine = {name: float(mark.get("points", 0)) for name, mark in marks.items() if mark.get("grade")}
    if theirs != mine:
        differing = {name for name in theirs | mine if theirs.get(name) != mine.get(name)}
        raise GradebookDiffersError(assignment.unit, sorted(differing))


def _scores(known: _Unit, assignment: Assignment, verdict: Verdict, empty: set[str]) -> dict[str, float | None]:
    """The automatic score of every graded cell by nbgrader's rules; None waits for a person."""
    marks = {str(grade_id(c)): c["metadata"]["nbgrader"] for c in assignment.reference["cells"] if grade_id(c)}
    reached = {result.cell: result.points for result in verdict.results}
    scores: dict[str, float | None] = {}
    for name, cell in known.named("GradeCell").items():
        if marks[name].get("solution"):
            scores[name] = 0.0 if name in empty else None
        elif cell.kind == "code":
            points, most = reached.get(name, 0.0), cell.points or 0.0
            if not (math.isfinite(points) and 0 <= points <= most):
                raise ValueError(f"a verdict has {points} of {most} points for the cell {name!r}")
            scores[name] = float(points)
        else:
            scores[name] = None if verdict.notebook is not None else 0.0
    return scores


def _with_ids(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one kind with ids of nbgrader's form, in the order of time: a database then puts them on few pages.

    Not for submissions, which formgrader shows in the order of their ids so that nobody sees whose they are.
    """
    head = f"{time.time_ns():016x}{os.urandom(6).hex()}"
    return [{"id": f"{head}{number:04x}", **row} for number, row in enumerate(rows)]


@dataclass(frozen=True)
class _Submitted:
    """A learner's submission in the gradebook, and whether it was put there just now."""

    id: str
    notebook_id: str
    timestamp: datetime | None
    extension: timedelta | None
    penalty: float | None
    is_new: bool

    def due(self, duedate: datetime | None) -> datetime | None:
        """When it was due for the learner."""
        return None if duedate is None else duedate + (self.extension or timedelta())


class _Rows:
    """The statements of a gradebook, made once: SQLAlchemy keeps what it has compiled of each."""

    def __init__(self, backend: str) -> None:
        from nbgrader import api
        from sqlalchemy import bindparam, insert, select, update
        from sqlalchemy.dialects import postgresql, sqlite

        self._assignment, self._notebook = api.Assignment.__table__, api.Notebook.__table__
        self._base, self._source = api.BaseCell.__table__, api.SourceCell.__table__
        self._graded_cells = (api.GradeCell.__table__, api.TaskCell.__table__)
        self._student, self._grade = api.Student.__table__, api.Grade.__table__
        self._comment = api.Comment.__table__
        mine, own = api.SubmittedAssignment.__table__, api.SubmittedNotebook.__table__
        unit = self._assignment
        self.graded = (select(mine.c.student_id).join(unit, unit.c.id == mine.c.assignment_id)).where(
            unit.c.name == bindparam("unit")
        )
        self._mine = (
            select(
                mine.c.id,
                mine.c.timestamp,
                mine.c.extension,
                own.c.id.label("notebook_id"),
                own.c.late_submission_penalty,
            )
            .select_from(
                mine.outerjoin(
                    own, (own.c.assignment_id == mine.c.id) & (own.c.notebook_id == bindparam("notebook"))
                )
            )
            .where(mine.c.assignment_id == bindparam("assignment"), mine.c.student_id == bindparam("learner"))
        )
        # Two writers may come upon the same new learner, each with another unit.
        own_insert: Any = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}.get(backend)
        self._has_student = (
            None if own_insert else select(self._student.c.id).where(self._student.c.id == bindparam("learner"))
        )
        self._add_student: Any = (
            own_insert(self._student).on_conflict_do_nothing() if own_insert else insert(self._student)
        )
        self._add_submission, self._add_notebook = insert(mine), insert(own)
        self._set_time = (
            update(mine).where(mine.c.id == bindparam("of")).values(timestamp=bindparam("new_timestamp"))
        )
        self._set_extension = (
            update(mine).where(mine.c.id == bindparam("of")).values(extension=bindparam("new_extension"))
        )
        self._set_penalty = (
            update(own).where(own.c.id == bindparam("of")).values(late_submission_penalty=bindparam("penalty"))
        )
        grade, comment = self._grade.c, self._comment.c
        # The index of both tables begins with the cell: without its name, each look would go through the whole class.
        cells: Any = bindparam("cells", expanding=True)
        self._grades = select(
            grade.id,
            grade.cell_id,
            grade.auto_score,
            grade.manual_score,
            grade.extra_credit,
            grade.needs_manual_grade,
        ).where(grade.cell_id.in_(cells), grade.notebook_id == bindparam("of"))
        self._set_grade = (
            update(self._grade)
            .where(grade.id == bindparam("of"))
            .values(auto_score=bindparam("score"), needs_manual_grade=bindparam("waits"))
        )
        self._comments = select(comment.id, comment.cell_id, comment.auto_comment, comment.manual_comment).where(
            comment.cell_id.in_(cells), comment.notebook_id == bindparam("of")
        )
        self._set_comment = (
            update(self._comment).where(comment.id == bindparam("of")).values(auto_comment=bindparam("said"))
        )
        self._add_grades, self._add_comments = insert(self._grade), insert(self._comment)
        self._is_sqlite = backend == "sqlite"

    def unit(self, connection: Any, unit: str) -> _Unit:
        """A unit as the gradebook has it.

        Raises:
            NotReleasedError: the gradebook does not know it.
        """
        from sqlalchemy import select

        of, notebook, base, source = self._assignment, self._notebook, self._base, self._source
        query = (
            select(of.c.id, notebook.c.id, of.c.duedate)
            .join(notebook, notebook.c.assignment_id == of.c.id)
            .where(of.c.name == unit, notebook.c.name == unit)
        )
        if not self._is_sqlite:
            # A release waits until the submission is in, and another writer of this unit too.
            query = query.with_for_update(of=of)
        found = connection.execute(query).one_or_none()
        if found is None:
            raise NotReleasedError(unit)
        assignment_id, notebook_id, duedate = found
        graded = {
            row.id: (row.cell_type, row.max_score)
            for table in self._graded_cells
            for row in connection.execute(
                select(table).join(base, base.c.id == table.c.id).where(base.c.notebook_id == notebook_id)
            )
        }
        rows = connection.execute(
            select(base.c.id, base.c.type, base.c.name).where(base.c.notebook_id == notebook_id)
        )
        cells = {(row.type, row.name): _Cell(row.id, *graded.get(row.id, ("", None))) for row in rows}
        checksums = connection.execute(
            select(source.c.name, source.c.checksum).where(source.c.notebook_id == notebook_id)
        )
        sums = {name: value for name, value in checksums if value}
        return _Unit(assignment_id, notebook_id, duedate, cells, sums)

    def submitted(self, connection: Any, known: _Unit, learner: str, timestamp: datetime | None) -> _Submitted:
        """A learner's submission, with this time of handing in; made, as the learner is, where it is the first one."""
        from nbgrader.api import new_uuid

        of = {"assignment": known.assignment_id, "notebook": known.notebook_id, "learner": learner}
        found = connection.execute(self._mine, of).one_or_none()
        if found is None:
            if self._has_student is None or connection.scalar(self._has_student, {"learner": learner}) is None:
                connection.execute(self._add_student, {"id": learner})
            ident, extension = new_uuid(), None
            row = {
                "id": ident,
                "assignment_id": known.assignment_id,
                "student_id": learner,
                "timestamp": timestamp,
            }
            connection.execute(self._add_submission, row)
        else:
            ident, extension = found.id, found.extension
            if timestamp is not None and found.timestamp != timestamp:
                connection.execute(self._set_time, {"of": ident, "new_timestamp": timestamp})
        if found is None or found.notebook_id is None:
            notebook = new_uuid()
            row = {"id": notebook, "assignment_id": ident, "notebook_id": known.notebook_id}
            connection.execute(self._add_notebook, row)
            when = timestamp if timestamp is not None or found is None else found.timestamp
            return _Submitted(ident, notebook, when, extension, None, is_new=True)
        when = timestamp if timestamp is not None else found.timestamp
        return _Submitted(ident, found.notebook_id, when, extension, found.late_submission_penalty, is_new=False)

    def put_extension(self, connection: Any, submitted: _Submitted, extension: timedelta | None) -> _Submitted:
        """Put a learner's extension in, or take it away; returns the submission as it is then."""
        connection.execute(self._set_extension, {"of": submitted.id, "new_extension": extension})
        return replace(submitted, extension=extension)

    def score(self, connection: Any, known: _Unit, submitted: _Submitted) -> float:
        """The points of a submission, by nbgrader's rule: a person's before the automatic ones, and extra credit."""
        grades = connection.execute(self._grades, {"of": submitted.notebook_id, "cells": known.ids})
        counted = ((g.auto_score if g.manual_score is None else g.manual_score, g.extra_credit) for g in grades)
        return float(sum((points or 0.0) + (extra or 0.0) for points, extra in counted))

    def put_penalty(self, connection: Any, submitted: _Submitted, penalty: float | None) -> None:
        """Put a late penalty in, or take it away."""
        connection.execute(self._set_penalty, {"of": submitted.notebook_id, "penalty": penalty})

    def put_grades(
        self,
        connection: Any,
        known: _Unit,
        submitted: _Submitted,
        scores: Mapping[str, float | None],
        *,
        unchanged: bool,
    ) -> None:
        """Put the automatic scores in, and what waits for a person."""
        of = {"of": submitted.notebook_id, "cells": known.ids}
        there = {} if submitted.is_new else {row.cell_id: row for row in connection.execute(self._grades, of)}
        new, changed = [], []
        for name, cell in known.gradable.items():
            grade, score = there.get(cell.id), scores.get(name)
            if grade is None:
                waits = score is None
                own = {"auto_score": score, "needs_manual_grade": waits}
                new.append({"cell_id": cell.id, "notebook_id": submitted.notebook_id} | own)
            elif name in scores:
                by_hand = grade.manual_score is not None
                same = unchanged and grade.auto_score == score
                waits = grade.needs_manual_grade if same and by_hand else score is None or by_hand
                if (score, waits) != (grade.auto_score, grade.needs_manual_grade):
                    changed.append({"of": grade.id, "score": score, "waits": waits})
        if new:
            connection.execute(self._add_grades, _with_ids(new))
        if changed:
            connection.execute(self._set_grade, changed)

    def put_comments(
        self,
        connection: Any,
        known: _Unit,
        submitted: _Submitted,
        assignment: Assignment,
        verdict: Verdict,
        empty: set[str],
    ) -> None:
        """Put in the comment on answers that are not there; where nothing was graded to its end, what is to be known.

        That is for the instructor, and stands at the first answer on which no person has commented.
        """
        of = {"of": submitted.notebook_id, "cells": known.ids}
        there = {} if submitted.is_new else {row.cell_id: row for row in connection.execute(self._comments, of)}
        cells = known.commentable
        said = {name: NO_RESPONSE if name in empty else None for name in cells}
        if verdict.status.startswith((CRASHED, TIMED_OUT, MISSING, UNREADABLE)):
            order = [name for name in answers_of(assignment.reference) if name in cells]
            free = [n for n in order if (row := there.get(cells[n].id)) is None or not row.manual_comment]
            if free:
                said[free[0]] = harmless(verdict.instructor)
        new = [
            {"cell_id": cell.id, "notebook_id": submitted.notebook_id, "auto_comment": said[name]}
            for name, cell in cells.items()
            if cell.id not in there
        ]
        changed = [
            {"of": row.id, "said": said[name]}
            for name, cell in cells.items()
            if (row := there.get(cell.id)) is not None and row.auto_comment != said[name]
        ]
        if new:
            connection.execute(self._add_comments, _with_ids(new))
        if changed:
            connection.execute(self._set_comment, changed)
