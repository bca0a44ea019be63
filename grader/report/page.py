"""The report as one page of HTML that needs no other file, asks no host for anything, and runs no script but its own.

Everything that a learner wrote goes through the template's escaping. The page's policy names its style sheet and its
script by their hashes, so nothing else would run even if some text got through.
"""

import base64
import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from grader.exceptions import CannotWriteError
from grader.report import fingerprints, similarity, statistics
from grader.report.data import Class, Graded
from grader.report.plots import difficulty_plot, histogram, step_bars
from grader.report.similarity import Common, Pair
from grader.report.summary import Report
from grader.report.verdicts import KINDS, Remark

__all__ = ["render", "write_page"]

MOST_LEARNERS = 2_000
MOST_REMARKS = 150
MOST_NAMES = 30
MOST_GROUPS = 40
MOST_SLOW = 15

_HERE = Path(__file__).parent
_MOST_STEPS = 6
_MOST_LINES = 60
_LONGEST_LINE = 160
_MOST_CODE = 400_000


@dataclass(frozen=True)
class _Names:
    """Learners of a list, as many as are shown, and how many there are besides."""

    shown: Sequence[str]
    more: int


@dataclass(frozen=True)
class _Side:
    """One of two answers side by side: its lines, whether each agrees, and how many are left out."""

    learner: str
    lines: Sequence[tuple[str, bool]]
    more: int


@dataclass
class _Code:
    """How much code the page may still show."""

    left: int = _MOST_CODE

    def sides(self, found: Mapping[str, Graded], pair: Pair, common: Common) -> tuple[_Side, _Side] | None:
        """Two answers side by side; None where there is no room left."""
        made = tuple(
            _side(name, found[name].record.answers.get(common.step, ""), lines)
            for name, lines in ((pair.first, common.first_lines), (pair.second, common.second_lines))
        )
        size = sum(len(text) for side in made for text, _ in side.lines)
        if size > self.left:
            return None
        self.left -= size
        return made[0], made[1]


@dataclass(frozen=True)
class _Case:
    """A kind of remark: what it is about, the first of them, and how many there are besides."""

    about: str
    rows: Sequence[Remark]
    count: int
    more: int


def render(report: Report) -> str:
    """The page of a report."""
    environment = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"share": _share, "number": _number, "utc": _utc, "names": _names}
    style, script = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    return environment.get_template("page.html").render(
        report=report,
        found=report.found,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        histogram=histogram(report.distribution),
        bars=step_bars(report.steps),
        scatter=difficulty_plot(report.steps),
        advice=[(step.name, remark) for step in report.steps for remark in step.remarks],
        cases=list(_cases(report.remarks)),
        failures=report.failures[:MOST_GROUPS],
        more_failures=len(report.failures[MOST_GROUPS:]),
        slowest=report.slowest[:MOST_SLOW],
        more_slow=len(report.slowest[MOST_SLOW:]),
        pairs=list(_pairs(report)),
        learners=list(_learners(report.found)),
        more_learners=len(report.found.graded[MOST_LEARNERS:]),
        fewest_learners=statistics.FEWEST,
        fewest_tokens=fingerprints.FEWEST_TOKENS,
        fewest_compared=similarity.FEWEST,
    )


def write_page(report: Report, target: Path) -> None:
    """Write the page, whole or not at all, in place of what was there; folders on the way are made.

    Raises:
        CannotWriteError: the file cannot be written; what was there before stays.
    """
    text = render(report)
    draft = target.with_name(f".{target.name[:100]}-{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("x", encoding="utf-8") as stream:
            stream.write(text)
        draft.replace(target)
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        if isinstance(error, FileExistsError | NotADirectoryError):
            reason = "what should be its folder is a file"
        with contextlib.suppress(OSError):
            draft.unlink()
        raise CannotWriteError(target, reason) from error


def _policy(style: str, script: str) -> str:
    def of(text: str) -> str:
        return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

    return (
        f"default-src 'none'; style-src 'sha256-{of(style)}'; script-src 'sha256-{of(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


# ------------------------------------------------------------------------------------------------- what is shown


def _cases(remarks: Iterable[Remark]) -> Iterator[_Case]:
    by_kind: dict[str, list[Remark]] = {kind: [] for kind in KINDS}
    for remark in remarks:
        by_kind[remark.kind].append(remark)
    for kind, rows in by_kind.items():
        if rows:
            yield _Case(KINDS[kind], rows[:MOST_REMARKS], len(rows), len(rows[MOST_REMARKS:]))


def _learners(found: Class) -> Iterator[dict[str, Any]]:
    for one in found.graded[:MOST_LEARNERS]:
        points = {step: [one.marks[test.name] for test in step.tests] for step in found.steps}
        open_ = [step.name for step, of in points.items() if None in of]
        lost = [
            step.name
            for step, of in points.items()
            if step.name not in open_ and sum(mark or 0.0 for mark in of) < step.points - 1e-9
        ]
        yield {
            "learner": one.learner,
            "score": one.score,
            "share": one.score / found.points if found.points else None,
            "status": one.record.status or "not known",
            "lost": _names(lost, 12),
            "open": _names(open_, 12),
        }


def _pairs(report: Report) -> Iterator[dict[str, Any]]:
    code, by_name = _Code(), {one.learner: one for one in report.found.graded}
    for pair in report.comparison.pairs:
        steps = [
            {"step": common.step, "number": common.number, "sides": code.sides(by_name, pair, common)}
            for common in pair.steps[:_MOST_STEPS]
        ]
        yield {"pair": pair, "steps": steps, "more": len(pair.steps[_MOST_STEPS:])}


def _side(learner: str, source: str, agreeing: Iterable[int]) -> _Side:
    marked = set(agreeing)
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    shown = [(_cut(line), place in marked) for place, line in enumerate(lines[:_MOST_LINES])]
    return _Side(learner, shown, len(lines[_MOST_LINES:]))


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} …"


def _names(names: Sequence[str], most: int = MOST_NAMES) -> _Names:
    return _Names(names[:most], len(names[most:]))


def _share(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0%}"


def _number(value: float | None, digits: int = 2) -> str:
    return "n/a" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _utc(value: datetime | None) -> str:
    return "not known" if value is None else f"{value:%Y-%m-%d %H:%M} UTC"
