"""What the gradebook has of a unit's submissions, read in a few queries and never changed.

The same rows can be put into another gradebook, in which a grading can be tried without touching the course's own.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from grader.course import Course
from grader.exceptions import GradebookLockedError, GradebookUnreadableError, NotReleasedError

__all__ = ["Mark", "Marks", "Standing"]

_PATIENCE = 10.0
_UNIT_TABLES = ("grade_cells", "solution_cells", "task_cells")
_LEARNER_TABLES = ("student", "submitted_assignment", "submitted_notebook", "grade", "comment")

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Mark:
    """One graded cell of a submission: automatic and manual points, extra credit, and whether it waits for a person."""

    auto: float | None
    manual: float | None
    extra: float | None
    waits: bool

    @property
    def points(self) -> float:
        """What counts, by nbgrader's rule: a person's points before the automatic ones."""
        counts = self.manual if self.manual is not None else self.auto
        return 0.0 if counts is None else counts + (self.extra or 0.0)


@dataclass(frozen=True)
class Marks:
    """A submission in the gradebook: its marks by cell, its late penalty, its times in UTC."""

    timestamp: datetime | None
    extension: timedelta | None
    penalty: float
    cells: Mapping[str, Mark]

    @property
    def score(self) -> float:
        """Points before the late penalty."""
        return math.fsum(mark.points for mark in self.cells.values())

    @property
    def total(self) -> float:
        """Points after the late penalty."""
        return max(0.0, self.score - self.penalty)


@dataclass
class _Learner:
    """All rows of one learner's submission, by table."""

    rows: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))


class Standing:
    """A unit in a gradebook, opened for reading.

    Raises:
        NotReleasedError: the gradebook does not know the unit.
        GradebookLockedError, GradebookUnreadableError: another program keeps it locked, or it cannot be read.
    """

    def __init__(self, course: Course, unit: str, db_url: str | None = None) -> None:
        from nbgrader import api
        from sqlalchemy import create_engine, make_url

        url = make_url(db_url if db_url is not None else str(course.config().CourseDirectory.db_url))
        if url.get_backend_name() == "sqlite" and not Path(url.database or "").is_file():
            # To open it would make it.
            raise NotReleasedError(unit)
        self.unit = unit
        self._tables: Mapping[str, Any] = api.Base.metadata.tables
        self._engine = create_engine(url, **_waiting(url))
        try:
            self._read_unit()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Standing":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the gradebook."""
        self._engine.dispose()

    @property
    def due(self) -> datetime | None:
        """When the unit is due, in UTC without zone."""
        found: datetime | None = self._assignment["duedate"]
        return found

    @property
    def points(self) -> dict[str, float]:
        """The most points of each graded cell, by its name."""
        graded = (*self._of_unit["grade_cells"], *self._of_unit["task_cells"])
        return {self._names[row["id"]]: row["max_score"] or 0.0 for row in graded}

    @property
    def written(self) -> set[str]:
        """Names of the graded cells in text, which a person grades."""
        graded = (*self._of_unit["grade_cells"], *self._of_unit["task_cells"])
        return {self._names[row["id"]] for row in graded if row["cell_type"] == "markdown"}

    def named(self, table: str) -> set[str]:
        """Names of the unit's cells of one kind: grade_cells, solution_cells, task_cells or source_cell."""
        if table == "source_cell":
            return {row["name"] for row in self._of_unit[table]}
        return {self._names[row["id"]] for row in self._of_unit[table]}

    def learners(self) -> set[str]:
        """The learners with a submission of the unit in the gradebook."""
        from sqlalchemy import select

        submitted = self._tables["submitted_assignment"].c
        query = select(submitted.student_id).where(submitted.assignment_id == self._assignment["id"])
        with self._reading() as connection:
            return set(connection.scalars(query))

    def has_notebooks(self) -> bool:
        """Whether a graded submission is in the gradebook, so that nbgrader keeps the unit's cells as they are."""
        from sqlalchemy import select

        notebooks = self._tables["submitted_notebook"].c
        query = select(notebooks.id).where(notebooks.notebook_id == self._notebook["id"]).limit(1)
        with self._reading() as connection:
            return connection.scalar(query) is not None

    def extensions(self) -> dict[str, timedelta]:
        """The extensions that the gradebook has for the unit, by learner."""
        from sqlalchemy import select

        submitted = self._tables["submitted_assignment"].c
        query = select(submitted.student_id, submitted.extension).where(
            submitted.assignment_id == self._assignment["id"], submitted.extension.is_not(None)
        )
        with self._reading() as connection:
            return {row.student_id: row.extension for row in connection.execute(query)}

    def marks(self, learners: Sequence[str]) -> dict[str, Marks]:
        """What the gradebook has of these learners' submissions; those without one are left out."""
        return {learner: self._marks(rows) for learner, rows in self._read(learners).items()}

    def copy_unit(self, connection: Any) -> None:
        """Put the unit, without submissions, into another gradebook that has its tables."""
        for table in ("course", "assignment", "notebook", "base_cell", *_UNIT_TABLES, "source_cell"):
            _insert(connection, self._tables[table], self._of_unit[table])

    def copy_learners(self, connection: Any, learners: Sequence[str]) -> dict[str, Marks]:
        """Put these learners' submissions into another gradebook; returns what they have, as `marks` does."""
        found = self._read(learners)
        for table in _LEARNER_TABLES:
            rows = [row for learner in found.values() for row in learner.rows[table]]
            _insert(connection, self._tables[table], rows)
        return {learner: self._marks(rows) for learner, rows in found.items()}

    def forget_learners(self, connection: Any, learners: Sequence[str]) -> None:
        """Take these learners' submissions out of another gradebook again."""
        from sqlalchemy import delete, select

        submitted, notebooks = self._tables["submitted_assignment"].c, self._tables["submitted_notebook"].c
        theirs = select(submitted.id).where(submitted.student_id.in_(learners))
        mine = select(notebooks.id).where(notebooks.assignment_id.in_(theirs))
        for table in ("comment", "grade"):
            connection.execute(delete(self._tables[table]).where(self._tables[table].c.notebook_id.in_(mine)))
        connection.execute(delete(notebooks.id.table).where(notebooks.assignment_id.in_(theirs)))
        connection.execute(delete(submitted.id.table).where(submitted.student_id.in_(learners)))
        students = self._tables["student"]
        connection.execute(delete(students).where(students.c.id.in_(learners)))

    def _read_unit(self) -> None:
        from sqlalchemy import inspect, select

        tables = self._tables
        base = tables["base_cell"]
        with self._reading() as connection:
            if not inspect(connection).has_table("base_cell"):
                raise NotReleasedError(self.unit)

            def rows(table: str, condition: Any) -> list[Row]:
                found = connection.execute(select(tables[table]).where(condition))
                return [dict(row) for row in found.mappings()]

            assignments = rows("assignment", tables["assignment"].c.name == self.unit)
            here = tables["notebook"].c
            notebooks = [
                row
                for assignment in assignments
                for row in rows("notebook", (here.assignment_id == assignment["id"]) & (here.name == self.unit))
            ]
            if not notebooks:
                raise NotReleasedError(self.unit)
            self._assignment, self._notebook = assignments[0], notebooks[0]
            notebook = self._notebook["id"]
            cells = rows("base_cell", base.c.notebook_id == notebook)
            self._names = {row["id"]: row["name"] for row in cells}
            mine = select(base.c.id).where(base.c.notebook_id == notebook)
            self._of_unit = {
                "course": rows("course", tables["course"].c.id == self._assignment["course_id"]),
                "assignment": assignments,
                "notebook": notebooks,
                "base_cell": cells,
                "source_cell": rows("source_cell", tables["source_cell"].c.notebook_id == notebook),
                **{table: rows(table, tables[table].c.id.in_(mine)) for table in _UNIT_TABLES},
            }

    def _read(self, learners: Sequence[str]) -> dict[str, _Learner]:
        from sqlalchemy import select

        tables = self._tables
        found: dict[str, _Learner] = defaultdict(_Learner)
        with self._reading() as connection:

            def rows(table: str, *conditions: Any) -> list[Row]:
                return [
                    dict(row) for row in connection.execute(select(tables[table]).where(*conditions)).mappings()
                ]

            submitted, notebooks = tables["submitted_assignment"].c, tables["submitted_notebook"].c
            owner: dict[str, str] = {}
            for row in rows(
                "submitted_assignment",
                submitted.assignment_id == self._assignment["id"],
                submitted.student_id.in_(learners),
            ):
                found[row["student_id"]].rows["submitted_assignment"].append(row)
                owner[row["id"]] = row["student_id"]
            for row in rows("student", tables["student"].c.id.in_(list(found))):
                found[row["id"]].rows["student"].append(row)
            of_notebook: dict[str, str] = {}
            for row in rows(
                "submitted_notebook",
                notebooks.notebook_id == self._notebook["id"],
                notebooks.assignment_id.in_(list(owner)),
            ):
                of_notebook[row["id"]] = owner[row["assignment_id"]]
                found[of_notebook[row["id"]]].rows["submitted_notebook"].append(row)
            for table in ("grade", "comment"):
                columns = tables[table].c
                # Both columns, because the index that nbgrader makes has the cell first.
                mine = (columns.cell_id.in_(list(self._names)), columns.notebook_id.in_(list(of_notebook)))
                for row in rows(table, *mine):
                    found[of_notebook[row["notebook_id"]]].rows[table].append(row)
        return dict(found)

    def _marks(self, learner: _Learner) -> Marks:
        (submitted,) = learner.rows["submitted_assignment"]
        notebooks = learner.rows["submitted_notebook"]
        penalty = notebooks[0]["late_submission_penalty"] if notebooks else None
        cells = {
            self._names[row["cell_id"]]: Mark(
                row["auto_score"], row["manual_score"], row["extra_credit"], bool(row["needs_manual_grade"])
            )
            for row in learner.rows["grade"]
        }
        return Marks(submitted["timestamp"], submitted["extension"], penalty or 0.0, cells)

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        from sqlalchemy.exc import DatabaseError

        try:
            with self._engine.connect() as connection:
                yield connection
        except DatabaseError as error:
            if "locked" in str(error.orig):
                raise GradebookLockedError(_PATIENCE) from error
            raise GradebookUnreadableError(str(error.orig)) from error


def _waiting(url: Any) -> dict[str, Any]:
    """How long a lock is waited for, as the database wants to be told."""
    return {"connect_args": {"timeout": _PATIENCE}} if url.get_backend_name() == "sqlite" else {}


def _insert(connection: Any, table: Any, rows: Sequence[Row]) -> None:
    from sqlalchemy import insert

    if rows:
        connection.execute(insert(table), list(rows))
