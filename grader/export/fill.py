"""Fill the scores of a class into the file that an LMS exported, and say what was left out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader.course import Course
from grader.exceptions import NothingMatchedError, PointsDifferError, ScoresWaitError
from grader.export.lms import Form, Target, canvas_target, moodle_target, number, open_canvas, open_moodle
from grader.export.match import Known, match
from grader.export.results import Result, plain_number, results
from grader.export.roster import Aliases
from grader.export.sheet import defused

__all__ = ["INCOMPLETE", "Filled", "Wishes", "collected_number", "fill", "known_learners", "left_out"]

INCOMPLETE = ("skip", "include", "refuse")
"""What becomes of a score that waits for a person: its cell stays as it is, it is written, or nothing is."""

_COMMENTS = "Feedback comments"


@dataclass(frozen=True)
class Wishes:
    """How a file is filled: which column, what becomes of incomplete scores, whether scores are converted.

    ``aliases`` gives for a learner the ids and the LMS's own numbers that a roster knows. ``comments`` has the texts
    for the column of comments in Moodle's worksheet.
    """

    column: str | None = None
    incomplete: str = "skip"
    scale: bool = False
    aliases: Aliases | None = None
    comments: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Filled:
    """The filled file, how many cells of it are new, and a line for whatever a person should know."""

    data: bytes
    cells: int
    notes: tuple[str, ...]


def fill(course: Course, lms: str, template: Path, units: Sequence[str], wishes: Wishes | None = None) -> Filled:
    """Fill the scores of units into a copy of an LMS's file; all of its other cells are as they were.

    Raises:
        UnknownUnitError, NotGradedError: there are no scores of a unit.
        TemplateUnreadableError: the file is none of the LMS's.
        ColumnNotFoundError, TemplateColumnError: no column of it is the unit's, or that takes no scores.
        AmbiguousLearnerError, NothingMatchedError: its rows are not the learners', or not certainly.
        PointsDifferError: the LMS gives other points for the unit.
        ScoresWaitError: a score waits for a person, and that was to be refused.
    """
    wishes = wishes or Wishes()
    form = open_canvas(template) if lms == "canvas" else open_moodle(template)
    find = canvas_target if lms == "canvas" else moodle_target
    cells = 0
    notes: list[str] = []
    for unit in units:
        found = left_out(results(course, unit), unit, wishes.incomplete)
        target = find(form, unit, wishes.column)
        handed_in = [result for result in found if result.points is not None]
        known = known_learners(course, lms, unit, handed_in, wishes.aliases)
        more, said = _fill_unit(form, target, {r.learner: r for r in handed_in}, known, wishes)
        cells += more
        notes += said
    return Filled(form.sheet.text().encode(), cells, tuple(notes))


def left_out(found: list[Result], unit: str, incomplete: str) -> list[Result]:
    """The results; refused where one waits for a person and that is not wanted.

    Raises:
        ScoresWaitError: a score waits for a person.
    """
    if incomplete == "refuse" and any(result.waits for result in found):
        raise ScoresWaitError(unit, (result.learner for result in found if result.waits))
    return found


def known_learners(
    course: Course, lms: str, unit: str, found: Iterable[Result], aliases: Aliases | None = None
) -> list[Known]:
    """The learners with all that is known of their ids: from the gradebook, from collecting, and from a roster."""
    made = []
    for result in found:
        ids, numbers = (aliases or {}).get(result.learner, (frozenset(), frozenset()))
        own = {collected_number(course, lms, unit, result.learner)}
        # Moodle counts participants for each assignment anew: a number of another one is somebody else's.
        own |= {result.lms_id} if lms == "canvas" else set()
        known = frozenset({result.email, *ids} - {""})
        made.append(Known(result.learner, known, frozenset(own - {""}) | numbers, result.name))
    return made


def collected_number(course: Course, lms: str, unit: str, learner: str) -> str:
    """The LMS's own number of a learner, as it stood in the name of the collected file; empty where there is none."""
    from grader.collect.place import read_record

    record = read_record(course, learner, unit)
    number = record.get("lms") if record.get("form") == lms else ""
    return number if isinstance(number, str) else ""


def _fill_unit(
    form: Form, target: Target, handed_in: Mapping[str, Result], known: Sequence[Known], wishes: Wishes
) -> tuple[int, list[str]]:
    unit = next(iter(handed_in.values())).unit
    matched = match(form.path, form.rows, known)
    if not matched.learners:
        raise NothingMatchedError(form.path, unit)
    waiting, locked = [], []
    cells = 0
    for place, learner in sorted(matched.learners.items()):
        result = handed_in[learner]
        score = result.score
        assert score is not None
        if target.place >= len(form.sheet.rows[place]) or _is_locked(form, target, place):
            locked.append(learner)
        elif result.waits and wishes.incomplete == "skip":
            waiting.append(learner)
        else:
            text = plain_number(score * _factor(form, target, place, result, wishes.scale))
            form.sheet.replace(place, target.place, text.replace(".", ",") if form.decimal_comma else text)
            _comment(form, place, learner, wishes)
            cells += 1
    said = [
        ("waiting for a person, left as it was", waiting),
        ("not to be changed in the LMS, left as it was", locked),
        ("found by name alone", matched.by_name),
        ("graded, and not in the file", matched.only_here),
        ("in the file, and not graded", matched.only_there),
    ]
    return cells, [f"{unit}: {what} ({len(names)}): {', '.join(names)}" for what, names in said if names]


def _factor(form: Form, target: Target, place: int, result: Result, scale: bool) -> float:
    """By how much a score is multiplied: by nothing, or as the LMS's points want it."""
    theirs = number(form.cell(place, "Maximum Grade")) if form.worksheet else target.points
    if theirs is None or not result.max_points or abs(theirs - result.max_points) < 1e-6:
        return 1.0
    if not scale:
        raise PointsDifferError(form.path, result.unit, theirs, result.max_points)
    return theirs / result.max_points


def _is_locked(form: Form, target: Target, place: int) -> bool:
    """Whether the LMS takes no score here: Moodle says No; Canvas N/A (not assigned) or EX (excused)."""
    if form.worksheet and form.column("Grade can be changed") is not None:
        return form.cell(place, "Grade can be changed").casefold() != "yes"
    return form.sheet.rows[place][target.place].strip().upper() in ("N/A", "EX")


def _comment(form: Form, place: int, learner: str, wishes: Wishes) -> None:
    column = form.column(_COMMENTS)
    text = (wishes.comments or {}).get(learner)
    if text and column is not None and column < len(form.sheet.rows[place]):
        form.sheet.replace(place, column, defused(text))
