"""Put verdicts into nbgrader's own gradebook, each as one transaction.

What is left there is what nbgrader's autograde would have left: formgrader, manual grading, late penalties, feedback
and export work on it. Scores, extra credit and comments given by a person are never touched.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any

from grader.engine.restore import NO_ANSWER, Assignment
from grader.engine.store import answers_of, harmless, require_learner
from grader.engine.verdict import CRASHED, MISSING, TIMED_OUT, UNREADABLE, Verdict
from grader.exceptions import GradebookDiffersError, GradebookLockedError, NotReleasedError
from grader.notebooks import grade_id

__all__ = ["NO_RESPONSE", "PATIENCE", "Writer", "released_checksums", "unanswered"]

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
    cells: Mapping[tuple[str, str], _Cell]
    checksums: Mapping[str, str]

    def named(self, kind: str) -> dict[str, _Cell]:
        return {name: cell for (of, name), cell in self.cells.items() if of == kind}


class Writer:
    """The one who writes the gradebook; opened once, for any number of verdicts.

    ``config`` is the course's traitlets configuration, for the policy of late penalties.

    Raises:
        GradebookLockedError: another program keeps the gradebook locked.
    """

    def __init__(
        self,
        db_url: str,
        config: Any | None = None,
        *,
        course_id: str = "default_course",
        patience: float = PATIENCE,
    ) -> None:
        from nbgrader.api import Gradebook
        from nbgrader.preprocessors import AssignLatePenalties
        from sqlalchemy import make_url

        self._patience = patience
        url = make_url(db_url)
        self._is_sqlite = url.get_backend_name() == "sqlite"
        if self._is_sqlite:
            url = url.update_query_dict({"timeout": f"{patience:g}"})
        with self._waiting():
            self._gradebook = Gradebook(url.render_as_string(hide_password=False), course_id)
        if self._is_sqlite:
            _lock_at_begin(self._gradebook.engine)
        self._late = AssignLatePenalties(config=config)
        self._late.init_plugin()

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
        self._gradebook.close()

    def check(self, assignment: Assignment) -> None:
        """See that the gradebook knows a unit, with the graded cells that it has now.

        Raises:
            NotReleasedError: the gradebook does not know the unit.
            GradebookDiffersError: its graded cells, or their points, are others.
            GradebookLockedError: another program keeps the gradebook locked.
        """
        with self._transaction() as session:
            _require_same(self._unit(session, assignment.unit), assignment)

    def graded(self, unit: str) -> set[str]:
        """The learners with a submission of a unit in the gradebook.

        Raises:
            GradebookLockedError: another program keeps the gradebook locked.
        """
        from nbgrader import api
        from sqlalchemy import select

        query = (select(api.SubmittedAssignment.student_id).join(api.SubmittedAssignment.assignment)).where(
            api.Assignment.name == unit
        )
        with self._transaction() as session:
            return set(session.scalars(query))

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
            GradebookLockedError: another program keeps the gradebook locked.
        """
        require_learner(learner)
        with self._transaction() as session:
            known = self._unit(session, unit)
            _require_same(known, assignment)
            submission = _submission(session, known, learner)
            if timestamp is not None:
                submission.timestamp = timestamp
            notebook = _notebook(session, known, submission)
            answers = {} if verdict.notebook is None else answers_of(verdict.notebook)
            empty = {
                name
                for name in known.named("SolutionCell")
                if name not in answers or unanswered(answers[name], known.checksums.get(name))
            }
            _grades(session, known, notebook, _scores(known, assignment, verdict, empty), unchanged=unchanged)
            _comments(session, known, notebook, assignment, verdict, empty)
            session.flush()
            self._penalty(session, submission, notebook, learner)

    def _penalty(self, session: Any, submission: Any, notebook: Any, learner: str) -> None:
        """The late penalty by the policy of nbgrader's configuration, as its AssignLatePenalties does it."""
        penalty = None
        if submission.total_seconds_late > 0:
            session.expire(notebook, ["score"])
            found = self._late.plugin_inst.late_submission_penalty(
                learner, notebook.score, submission.total_seconds_late
            )
            penalty = None if found is None else self._late._check_late_penalty(notebook, found)
        if notebook.late_submission_penalty != penalty:
            notebook.late_submission_penalty = penalty

    def _unit(self, session: Any, unit: str) -> _Unit:
        from nbgrader import api
        from sqlalchemy import select

        found = session.execute(
            select(api.Assignment.id, api.Notebook.id)
            .join(api.Notebook, api.Notebook.assignment_id == api.Assignment.id)
            .where(api.Assignment.name == unit, api.Notebook.name == unit)
        ).one_or_none()
        if found is None:
            raise NotReleasedError(unit)
        assignment_id, notebook_id = found
        base = api.BaseCell.__table__
        graded = {
            row.id: (row.cell_type, row.max_score)
            for kind in (api.GradeCell, api.TaskCell)
            for row in session.execute(
                select(kind.__table__)
                .join(base, base.c.id == kind.__table__.c.id)
                .where(base.c.notebook_id == notebook_id)
            )
        }
        rows = session.execute(
            select(base.c.id, base.c.type, base.c.name).where(base.c.notebook_id == notebook_id)
        )
        cells = {(row.type, row.name): _Cell(row.id, *graded.get(row.id, ("", None))) for row in rows}
        source = api.SourceCell.__table__
        checksums = session.execute(
            select(source.c.name, source.c.checksum).where(source.c.notebook_id == notebook_id)
        )
        return _Unit(assignment_id, notebook_id, cells, {name: value for name, value in checksums if value})

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        """A session whose changes are kept together or not at all."""
        with self._waiting():
            session = self._gradebook.db()
            try:
                yield session
                session.commit()
            finally:
                # What is not committed by now is rolled back.
                self._gradebook.db.remove()

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        from nbgrader.api import InvalidEntry
        from sqlalchemy.exc import OperationalError

        try:
            yield
        except (OperationalError, InvalidEntry) as error:
            if "locked" not in str(error):
                raise
            raise GradebookLockedError(self._patience) from error


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
    from nbformat import from_dict
    from nbgrader.utils import compute_checksum

    if cell["source"] in (NO_ANSWER, f"# {NO_ANSWER}\nraise NotImplementedError()"):
        return True
    marked = {key: cell[key] for key in ("cell_type", "source", "metadata")}
    return bool(released == compute_checksum(from_dict(marked)))  # type: ignore[no-untyped-call]


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


def _submission(session: Any, known: _Unit, learner: str) -> Any:
    """A learner's submission; made, as the learner is, where it is the first one."""
    from nbgrader import api
    from sqlalchemy import select

    if session.scalar(select(api.Student.id).where(api.Student.id == learner)) is None:
        session.add(api.Student(id=learner))
        session.flush()
    query = select(api.SubmittedAssignment).where(
        api.SubmittedAssignment.assignment_id == known.assignment_id, api.SubmittedAssignment.student_id == learner
    )
    found = session.scalar(query)
    if found is None:
        found = api.SubmittedAssignment(assignment_id=known.assignment_id, student_id=learner)
        session.add(found)
        session.flush()
    return found


def _notebook(session: Any, known: _Unit, submission: Any) -> Any:
    from nbgrader import api
    from sqlalchemy import select

    query = select(api.SubmittedNotebook).where(
        api.SubmittedNotebook.assignment_id == submission.id,
        api.SubmittedNotebook.notebook_id == known.notebook_id,
    )
    found = session.scalar(query)
    if found is None:
        found = api.SubmittedNotebook(assignment_id=submission.id, notebook_id=known.notebook_id)
        session.add(found)
        session.flush()
    return found


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


def _grades(
    session: Any, known: _Unit, notebook: Any, scores: Mapping[str, float | None], *, unchanged: bool
) -> None:
    from nbgrader import api
    from sqlalchemy import select
    from sqlalchemy.orm import load_only

    columns = (api.Grade.auto_score, api.Grade.manual_score, api.Grade.needs_manual_grade, api.Grade.cell_id)
    query = select(api.Grade).where(api.Grade.notebook_id == notebook.id).options(load_only(*columns))
    there = {grade.cell_id: grade for grade in session.scalars(query)}
    for name, cell in (known.named("GradeCell") | known.named("TaskCell")).items():
        grade = there.get(cell.id)
        is_new = grade is None
        if grade is None:
            grade = api.Grade(cell_id=cell.id, notebook_id=notebook.id)
            session.add(grade)
        if name not in scores:
            continue
        score = scores[name]
        same = unchanged and not is_new and grade.auto_score == score
        if not (same and grade.manual_score is not None):
            grade.needs_manual_grade = score is None or grade.manual_score is not None
        grade.auto_score = score


def _comments(
    session: Any, known: _Unit, notebook: Any, assignment: Assignment, verdict: Verdict, empty: set[str]
) -> None:
    """The comment on answers that are not there; where nothing was graded to its end, what the instructor should know.

    That stands at the first answer on which no person has commented.
    """
    from nbgrader import api
    from sqlalchemy import select
    from sqlalchemy.orm import load_only

    columns = (api.Comment.auto_comment, api.Comment.manual_comment, api.Comment.cell_id)
    query = select(api.Comment).where(api.Comment.notebook_id == notebook.id).options(load_only(*columns))
    there = {comment.cell_id: comment for comment in session.scalars(query)}
    by_name = {}
    for name, cell in (known.named("SolutionCell") | known.named("TaskCell")).items():
        comment = there.get(cell.id)
        if comment is None:
            comment = api.Comment(cell_id=cell.id, notebook_id=notebook.id)
            session.add(comment)
        by_name[name] = comment
    said = {name: NO_RESPONSE if name in empty else None for name in by_name}
    if verdict.status.startswith((CRASHED, TIMED_OUT, MISSING, UNREADABLE)):
        order = [name for name in answers_of(assignment.reference) if name in by_name]
        free = [name for name in order if not by_name[name].manual_comment]
        if free:
            said[free[0]] = harmless(verdict.instructor)
    for name, comment in by_name.items():
        comment.auto_comment = said[name]
