"""Grade the submissions of a unit as Dask tasks; this process alone writes the gradebook and the files.

A submission that was graded before is left as it is while its bytes, its time and the unit's cells are the same.
Nothing that a submission does ends the batch: a process that dies or hangs is replaced, and what it graded is tried
once more before it gets a verdict that says so. A verdict is journalled before it is written into the gradebook, so
that a run that was cut off is gone on with.
"""

import contextlib
import importlib
import json
import os
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from grader.course import Course
from grader.engine import tasks
from grader.engine.cluster import Cluster, Work
from grader.engine.gradebook import Writer
from grader.engine.journal import Entry, Journal
from grader.engine.process import FAULT, NO_SANDBOX, Answer, Job, broken, encoded, missing, noted, package
from grader.engine.read import UnreadableError
from grader.engine.restore import Assignment
from grader.engine.store import (
    Submission,
    collect,
    digest,
    graded_notebook,
    load_assignment,
    notebook_bytes,
    record_of,
    write_graded,
)
from grader.engine.verdict import CRASHED, TIMED_OUT, UNREADABLE, Limits, Verdict
from grader.exceptions import (
    GradebookLockedError,
    GradebookUnwritableError,
    GraderError,
    JournalUnreadableError,
    NoSandboxError,
    SubmissionGoneError,
    UnwritableError,
)
from grader.policy import require_policy

__all__ = ["Outcome", "grade_each", "grade_unit", "is_unchanged", "missing", "noted", "unreadable", "verdicts"]

_AGAIN_SECONDS = 5.0


@dataclass(frozen=True)
class Outcome:
    """What came of one submission: its verdict, or why there is none; ``skipped`` where it was graded before.

    ``verdict`` has no notebook: that is below grader/var/autograded. ``remark`` is for the person who runs the grader.
    """

    learner: str
    verdict: Verdict | None = None
    skipped: bool = False
    error: str = ""
    remark: str = ""


def grade_unit(
    course: Course,
    unit: str,
    learners: list[str],
    *,
    force: bool = False,
    limits: Limits | None = None,
    sandbox: str = "full",
    workers: int | None = None,
    scheduler: str | None = None,
    progress: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Grade submissions of a unit; ``progress`` is called with each outcome as it comes. Outcomes are in given order.

    Raises:
        as ``grade_each``.
    """
    outcomes: dict[str, Outcome] = {}

    def done(outcome: Outcome) -> None:
        outcomes[outcome.learner] = outcome
        if progress is not None:
            progress(outcome)

    grade_each(
        course,
        unit,
        learners,
        done,
        force=force,
        limits=limits,
        sandbox=sandbox,
        workers=workers,
        scheduler=scheduler,
    )
    return [outcomes[learner] for learner in dict.fromkeys(learners)]


def grade_each(
    course: Course,
    unit: str,
    learners: list[str],
    done: Callable[[Outcome], None],
    *,
    force: bool = False,
    limits: Limits | None = None,
    sandbox: str = "full",
    workers: int | None = None,
    scheduler: str | None = None,
) -> None:
    """Grade submissions of a unit, and call ``done`` with each outcome when the gradebook has it; none is kept here.

    ``workers`` of them at a time by this machine's processes, or by all workers of the Dask ``scheduler``.

    Raises:
        UnknownUnitError: the course has no such unit.
        BrokenReferenceError: its reference notebook cannot be read.
        NotReleasedError, GradebookDiffersError: the gradebook does not know the unit as it is.
        BadPolicyError, BadExtensionsError: the late policy or the file of extensions cannot be read.
        GradebookLockedError: another program keeps the gradebook locked from the start.
        GradebookUnwritableError, UnwritableError: nothing can be written there: a full disk, or one that is read-only.
        NoSandboxError: learner code cannot be kept apart on a machine that grades.
        SchedulerUnreachableError, SchedulerLostError, NoWorkersError, WorkerDiffersError, WorkerFailedError: the
            Dask cluster is not there, or cannot grade.
    """
    asked = list(dict.fromkeys(learners))
    assignment = load_assignment(course, unit)
    require_policy(course, course.config())
    with _Run(course, assignment, asked, limits or Limits(), sandbox, workers, scheduler) as run:
        run.grade(done, force=force)


def verdicts(
    course: Course,
    unit: str,
    learners: list[str],
    *,
    limits: Limits | None = None,
    sandbox: str = "full",
    workers: int | None = None,
    scheduler: str | None = None,
) -> Iterator[tuple[str, Verdict | None, str]]:
    """Grade submissions and write nothing: each learner with the verdict, or with why there is none, as they come.

    A verdict's notebook holds the answers alone.

    Raises:
        as ``grade_each``, but for what is written.
    """
    asked = list(dict.fromkeys(learners))
    assignment = load_assignment(course, unit)
    with _Run(course, assignment, asked, limits or Limits(), sandbox, workers, scheduler) as run:
        yield from run.verdicts()


@dataclass
class _Task:
    """A submission to grade, with what is recorded of it."""

    learner: str
    submission: Submission
    record: dict[str, str]
    known: str = ""
    """The digest of the submission that was graded before."""


class _Run:
    """A run over the submissions of a unit."""

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        learners: list[str],
        limits: Limits,
        sandbox: str,
        workers: int | None,
        scheduler: str | None,
    ) -> None:
        self._course = course
        self._assignment = assignment
        self._learners = learners
        self._limits = limits
        self._left = len(learners)
        self._digest = digest(assignment, None)["assignment"]
        environment = () if scheduler is None else tasks.environment()
        packed = package(uuid.uuid4().hex, assignment, limits, sandbox, environment)
        self._workers = workers or tasks.cores()
        self._cluster = Cluster(packed, self._workers, scheduler)
        self._loading: threading.Thread | None = None

    def __enter__(self) -> "_Run":
        """The run itself."""
        self._cluster.__enter__()
        return self

    def __exit__(self, *details: Any) -> None:
        """End its processes."""
        self._cluster.__exit__(*details)

    # ------------------------------------------------------------------------------------------ without writing

    def verdicts(self) -> Iterator[tuple[str, Verdict | None, str]]:
        """Each learner's verdict, or why there is none."""
        self._cluster.prepare(len(self._learners))
        settled: deque[tuple[str, Verdict | None, str]] = deque()

        def work() -> Iterator[Work[_Task]]:
            for learner in self._learners:
                self._left -= 1
                try:
                    found = self._task(learner)
                except GraderError as error:
                    settled.append((learner, None, str(error)))
                    continue
                if isinstance(found, _Task):
                    yield Work(_job(found), found)
                else:
                    settled.append((learner, found[1], ""))

        for task, answer in self._cluster.run(work(), lambda: self._left):
            while settled:
                yield settled.popleft()
            yield task.learner, self._entry(task, answer).verdict, ""
        yield from settled

    # --------------------------------------------------------------------------------------------- with a gradebook

    def grade(self, done: Callable[[Outcome], None], *, force: bool) -> None:
        """Grade, and write it all down."""
        journal = Journal(self._course.var / "journal" / self._assignment.unit, tasks.environment()[-1][1])
        self._cluster.prepare(self._fresh(journal, force=force))
        # What the gradebook needs takes a second to import, after Dask; meanwhile, processes get ready.
        loading = self._loading = threading.Thread(target=_load_gradebook, args=(self._cluster,), daemon=True)
        loading.start()
        with _Keeper(self._course, self._assignment, journal, loading, done) as keeper:
            for task, answer in self._cluster.run(
                self._work(keeper, journal, done, force=force), lambda: self._left
            ):
                keeper.keep(self._entry(task, answer), task.known)
                if not loading.is_alive():
                    keeper.open()
            keeper.open()
            keeper.finish()

    def _fresh(self, journal: Journal, *, force: bool) -> int:
        """How many submissions are to be graded by all appearances; counted only as far as there are workers."""
        unit = self._assignment.unit
        found = (
            learner
            for learner in self._learners
            if force or not (journal.has(learner) or (self._course.autograded / learner / unit).exists())
        )
        return len(list(islice(found, self._workers)))

    def _work(
        self, keeper: "_Keeper", journal: Journal, done: Callable[[Outcome], None], *, force: bool
    ) -> Iterator[Work[_Task]]:
        """What there is to grade, read one by one; what needs no process is dealt with on the way."""
        for learner in self._learners:
            self._left -= 1
            try:
                found = self._task(learner)
            except GraderError as error:
                done(Outcome(learner, error=str(error)))
                continue
            task = found if isinstance(found, _Task) else found[0]
            known = record_of(self._course, learner, self._assignment.unit)
            task.known = str(known.get("submission", ""))
            if known:
                keeper.open()
            kept = None if force else keeper.journalled(task)
            if kept is not None:
                keeper.keep(kept, task.known, journalled=True)
            elif not force and task.record and task.record.items() <= known.items() and keeper.has(learner):
                journal.drop(learner)
                done(Outcome(learner, skipped=True))
            elif isinstance(found, _Task):
                yield Work(_job(found), found)
            else:
                keeper.keep(_entry_of(self._assignment, task, found[1]), task.known)

    def _task(self, learner: str) -> _Task | tuple[_Task, Verdict]:
        """A learner's submission; with the verdict where that needs no sandbox.

        Raises:
            InvalidLearnerError, SubmissionGoneError: there is nobody to grade.
        """
        unit = self._assignment.unit
        folder = self._course.submitted / learner / unit
        if self._loading is not None and os.path.lexists(folder / "timestamp.txt"):
            # Reading the time needs nbgrader, which cannot be imported by two threads at once.
            self._loading.join()
        try:
            submission = collect(self._course, learner, unit, self._limits)
        except UnreadableError as error:
            return _Task(learner, Submission(b""), {}), unreadable(self._assignment, error)
        if submission is None and not os.path.lexists(folder):
            raise SubmissionGoneError(folder.relative_to(self._course.root))
        # The assignment's own digest stays the same, and takes longer than all the rest.
        record = digest(_NOTHING, submission) | {"assignment": self._digest}
        if submission is None:
            task = _Task(learner, Submission(b""), record)
            return task, missing(self._assignment)
        return _Task(learner, submission, record)

    def _entry(self, task: _Task, answer: Answer) -> Entry:
        """What is written down of an answer."""
        when = task.submission.timestamp
        if answer.kind == NO_SANDBOX:
            raise NoSandboxError(answer.header.decode("utf-8", "replace"))
        if answer.kind in (tasks.DIED, tasks.TOO_LONG):
            too_long = answer.kind == tasks.TOO_LONG
            what = "took far too long" if too_long else "was ended from outside, or by a fault of its own"
            verdict = broken(self._assignment, f"the process that graded it {what}")
            verdict = replace(verdict, status=TIMED_OUT if too_long else CRASHED)
            # Without a record it is graded again the next time.
            return _entry_of(self._assignment, replace(task, record={}), verdict)
        record = {} if answer.kind == FAULT else task.record
        return Entry(task.learner, record, when, answer.header, answer.notebook)


_NOTHING = Assignment("", {"cells": []})


def _job(task: _Task) -> Job:
    header = {"record": task.record, "notes": [asdict(note) for note in task.submission.notes]}
    return Job(json.dumps(header).encode(), task.submission.data)


def _entry_of(assignment: Assignment, task: _Task, verdict: Verdict) -> Entry:
    """What is written down of a verdict that was reached without a grading process."""
    verdict = noted(verdict, task.submission.notes)
    notebook = notebook_bytes(graded_notebook(assignment, verdict, task.record))
    return Entry(task.learner, task.record, task.submission.timestamp, encoded(verdict), notebook)


def unreadable(assignment: Assignment, error: UnreadableError) -> Verdict:
    """The verdict on a submission that is there and is no file to be graded."""
    said = f"What was handed in {error}."
    return replace(missing(assignment), status=UNREADABLE, learner=said, instructor=f"{said} Nothing was run.")


def is_unchanged(record: Mapping[str, str], known: object, *, graded: bool) -> bool:
    """Whether a submission is the one of the last grading, whose digest is ``known``, and in the gradebook."""
    return bool(record) and record["submission"] == known and graded


def _load_gradebook(cluster: Cluster) -> None:
    cluster.wait_for_import()
    importlib.import_module("nbgrader.api")


@dataclass(frozen=True)
class _Held:
    """A verdict that waits in the journal until the gradebook can be written."""

    learner: str
    known: str


class _Keeper:
    """Puts verdicts into the journal, the gradebook and the files.

    While the gradebook is not open, or is locked, they stay in the journal, and not in memory.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        journal: Journal,
        loading: threading.Thread,
        done: Callable[[Outcome], None],
    ) -> None:
        self._course = course
        self._assignment = assignment
        self._journal = journal
        self._loading = loading
        self._done = done
        self._writer: Writer | None = None
        self._graded: set[str] = set()
        self._waiting: deque[_Held] = deque()
        self._at_hand: Entry | None = None
        self._remarks: dict[str, str] = {}
        self._locked_at = float("-inf")
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> "_Keeper":
        """The keeper itself."""
        return self

    def __exit__(self, *details: object) -> None:
        """Close the gradebook."""
        self._stack.close()

    def has(self, learner: str) -> bool:
        """Whether the gradebook, as far as it is open, has a submission of the learner."""
        return learner in self._graded

    def journalled(self, task: _Task) -> Entry | None:
        """The verdict that an earlier run reached and could not write down."""
        try:
            return self._journal.get(task.learner, task.record)
        except JournalUnreadableError as error:
            self._remarks[task.learner] = str(error)
            return None

    def open(self) -> None:
        """Open the gradebook, if it is not open yet, when all is imported for it."""
        if self._writer is None:
            self._loading.join()
            config = self._course.config()
            writer = self._stack.enter_context(Writer(config.CourseDirectory.db_url, config))
            writer.check(self._assignment)
            self._graded = writer.graded(self._assignment.unit)
            self._writer = writer
            self._try()

    def keep(self, entry: Entry, known: str, *, journalled: bool = False) -> None:
        """Write a verdict down; ``known`` is the digest of the submission that was graded before."""
        if not journalled:
            self._journal.put(entry)
        self._waiting.append(_Held(entry.learner, known))
        if self._writer is not None and time.monotonic() - self._locked_at > _AGAIN_SECONDS:
            # It need not be read back from the journal.
            self._at_hand = entry
            self._try()
            self._at_hand = None

    def finish(self) -> None:
        """Try what is left once more; what cannot be kept becomes an outcome that says why."""
        try:
            self._save_all()
        except GradebookLockedError as error:
            for held in self._waiting:
                self._tell(Outcome(held.learner, error=str(error)))
            self._waiting.clear()

    def _try(self) -> None:
        with contextlib.suppress(GradebookLockedError):
            self._save_all()

    def _save_all(self) -> None:
        while self._waiting:
            try:
                outcome = self._save_held(self._waiting[0])
            except GradebookLockedError:
                self._locked_at = time.monotonic()
                raise
            self._waiting.popleft()
            self._tell(outcome)

    def _save_held(self, held: _Held) -> Outcome:
        entry = self._at_hand
        try:
            if entry is None or entry.learner != held.learner:
                entry = self._journal.get(held.learner)
        except JournalUnreadableError as error:
            return Outcome(held.learner, error=str(error))
        return Outcome(held.learner, error=_VANISHED) if entry is None else self._save(entry, held.known)

    def _tell(self, outcome: Outcome) -> None:
        remark = self._remarks.pop(outcome.learner, "")
        self._done(replace(outcome, remark=remark) if remark else outcome)

    def _save(self, entry: Entry, known: str) -> Outcome:
        learner, unit = entry.learner, self._assignment.unit
        assert self._writer is not None
        unchanged = is_unchanged(entry.record, known, graded=learner in self._graded)
        verdict = entry.verdict
        try:
            self._writer.save(unit, learner, verdict, entry.when, self._assignment, unchanged=unchanged)
            # The gradebook first: where a run is cut off in between, the journal says what is to be written.
            write_graded(self._course, learner, unit, entry.notebook, entry.when)
        except (GradebookLockedError, GradebookUnwritableError):
            raise
        except GraderError as error:
            return Outcome(learner, error=str(error))
        except OSError as error:
            raise UnwritableError(self._course.autograded, error.strerror or str(error)) from error
        except Exception as error:
            return Outcome(learner, error=f"the result could not be kept: {type(error).__name__}: {error}")
        self._journal.drop(learner)
        return Outcome(learner, replace(verdict, notebook=None))


_VANISHED = "its journalled verdict was removed while it waited for the gradebook; grade again."
