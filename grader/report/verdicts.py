"""Submissions that a person should look at, with the sentence that says why."""

from collections.abc import Iterator
from dataclasses import dataclass

from grader.engine.verdict import CRASHED, MISSING, REPAIRED, TIMED_OUT, UNREADABLE
from grader.report.data import Class, Graded

__all__ = ["KINDS", "Remark", "remarks"]

_WRITTEN, _FLAGGED, _OPEN, _UNKNOWN = "written answer", "flagged", "no isolation", "no record"

KINDS = {
    MISSING: "Nothing was handed in",
    UNREADABLE: "The notebook could not be read",
    CRASHED: "A cell ended its session, or the grader could not finish",
    TIMED_OUT: "A cell, or the whole notebook, took too long",
    _FLAGGED: "An answer uses the course's module, or has published values typed in",
    REPAIRED: "The notebook was repaired before it was graded",
    _OPEN: "The code ran without isolation from the rest of the machine",
    _UNKNOWN: "How the grading went is not known",
    _WRITTEN: "A written answer waits to be graded",
}
"""What a person is asked to look at, the most urgent first."""


@dataclass(frozen=True)
class Remark:
    """Why a person should look at a submission: what kind of case it is, a sentence, and where the notebook lies."""

    kind: str
    learner: str
    sentence: str
    where: str


def remarks(found: Class) -> tuple[Remark, ...]:
    """All remarks, the most urgent kind first, then by learner."""
    unread = set(found.unread)
    every = [
        Remark(kind, one.learner, sentence, one.where)
        for one in found.graded
        for kind, sentence in _of(one, unread=one.learner in unread)
    ]
    order = list(KINDS)
    return tuple(sorted(every, key=lambda remark: (order.index(remark.kind), remark.learner)))


def _of(one: Graded, *, unread: bool) -> Iterator[tuple[str, str]]:
    record = one.record
    said = " ".join(record.notes)
    for kind in (MISSING, UNREADABLE, CRASHED, TIMED_OUT, REPAIRED):
        if record.status.startswith(kind):
            yield kind, said or f"The verdict is: {record.status}."
    for flag in record.flags:
        yield _FLAGGED, f"The answer to {flag}." if flag else "An answer is flagged."
    if record.sandbox == "none":
        yield _OPEN, "Graded with --sandbox=none, so its code could reach whatever the grader's user can."
    if unread:
        yield _UNKNOWN, "The graded notebook cannot be read; grade this submission again with --force."
    elif not record.known:
        yield _UNKNOWN, "There is no graded notebook of the course's engine: another program graded it."
    for name in one.waits:
        yield _WRITTEN, f"{name} waits to be graded."
