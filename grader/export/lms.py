"""The files that Canvas and Moodle export and take back: which columns they have, and which rows are learners'.

The forms are those of Canvas's GradebookExporter and GradebookImporter (instructure/canvas-lms, lib/), of Moodle's
offline grading worksheet (moodle/moodle, mod/assign/gradingtable.php and mod/assign/feedback/offline) and of its
grader-report export as text (grade/export/txt/grade_export_txt.php).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from grader.exceptions import ColumnNotFoundError, TemplateColumnError, TemplateUnreadableError
from grader.export.match import Row
from grader.export.sheet import Sheet, read_sheet

__all__ = ["Form", "Target", "canvas_target", "moodle_target", "number", "open_canvas", "open_moodle"]

_CANVAS_IDS = ("SIS Login ID", "SIS User ID", "Integration ID")
_CANVAS_NAMES = ("Student", "LastName", "FirstName")
_CANVAS_FIXED = {*_CANVAS_IDS, *_CANVAS_NAMES, "ID", "Root Account", "Section"}
# What Canvas computes: its importer drops every heading that contains one of these.
_CANVAS_TOTALS = re.compile(r"(Current|Final) (Score|Points|Grade)|Override (Score|Grade|Status)")
_TITLE = re.compile(r"(.+?)\s*\((\d+)\)")

_MOODLE_IDS = ("Email address", "ID number", "Username")
_MOODLE_WORKSHEET = ("Identifier", "Grade")
_MOODLE_REPORT = ("First name", "Last name", "Surname")
# "Assignment: Unit (Real)"; with one kind of grades only, the end is left out. Feedback has a column of its own.
_MOODLE_ITEM = re.compile(r"(?:[\w ]+: ?)?(.+?)(?: \((?:Real|Percentage|Letter)\))?")
_MOODLE_NO_GRADE = re.compile(r"Feedback: .*|.*\((Feedback|Percentage|Letter)\)")


@dataclass(frozen=True)
class Target:
    """The column of a unit: its place and heading, and the points that the LMS gives for it, where the file says."""

    place: int
    heading: str
    points: float | None


@dataclass(frozen=True)
class Form:
    """A file of an LMS: its rows, and whose they are."""

    path: Path
    sheet: Sheet
    rows: tuple[Row, ...]
    worksheet: bool = False
    """Whether it is Moodle's grading worksheet, which has one unit, and points and a lock on each row."""

    def column(self, heading: str) -> int | None:
        """The place of the column with a heading, if there is one."""
        return self._places.get(heading.casefold())

    @cached_property
    def _places(self) -> dict[str, int]:
        return {cell.casefold(): place for place, cell in reversed(list(enumerate(self.sheet.header)))}

    def cell(self, row: int, heading: str) -> str:
        """What a row has below a heading; empty where it has nothing."""
        place = self.column(heading)
        cells = self.sheet.rows[row]
        return cells[place].strip() if place is not None and place < len(cells) else ""

    @cached_property
    def decimal_comma(self) -> bool:
        """Whether the file writes 12,5 for twelve and a half, as it does in countries that do."""
        numbers = [
            cell for row in self.sheet.rows[1:] for cell in row if re.fullmatch(r"-?\d+[.,]\d+", cell.strip())
        ]
        return bool(numbers) and all("," in number for number in numbers)


def open_canvas(path: Path) -> Form:
    """Read a gradebook that was exported from Canvas.

    Raises:
        TemplateUnreadableError: it is none.
    """
    sheet = read_sheet(path, [*_CANVAS_NAMES, "ID", *_CANVAS_IDS, "Section"])
    form = Form(path, sheet, ())
    if form.column("Section") is None or all(form.column(name) is None for name in ("ID", *_CANVAS_IDS)):
        raise TemplateUnreadableError(path, "it lacks the columns ID and Section of a gradebook from Canvas")
    learners = [place for place in range(1, len(sheet.rows)) if not _is_canvas_s_own(form, place)]
    rows = [
        Row(
            place,
            tuple(text for name in _CANVAS_IDS if (text := form.cell(place, name))),
            form.cell(place, "ID"),
            _canvas_name(form, place),
        )
        for place in learners
    ]
    return Form(path, sheet, tuple(rows))


def canvas_target(form: Form, unit: str, wanted: str | None) -> Target:
    """The column of a unit: the one titled "Unit (123456)", or the one asked for by its heading, title or number.

    Raises:
        ColumnNotFoundError: there is none, or several.
        TemplateColumnError: Canvas computes that column.
    """
    headings = form.sheet.header
    open_ones = [
        place
        for place, heading in enumerate(headings)
        if heading and heading not in _CANVAS_FIXED and not _CANVAS_TOTALS.search(heading)
    ]
    place = _one(form, unit, wanted, open_ones, _TITLE)
    points = next((row for row in form.sheet.rows[1:] if _is_points_row(row)), [])
    said = points[place].strip() if place < len(points) else ""
    if "read only" in said:
        raise TemplateColumnError(form.path, headings[place], "is read only")
    return Target(place, headings[place], number(said))


def open_moodle(path: Path) -> Form:
    """Read a grading worksheet, or an export of the grader report as CSV, from Moodle.

    Raises:
        TemplateUnreadableError: it is neither.
    """
    sheet = read_sheet(path, [*_MOODLE_WORKSHEET, *_MOODLE_IDS, *_MOODLE_REPORT, "Full name"])
    form = Form(path, sheet, ())
    worksheet = all(form.column(name) is not None for name in _MOODLE_WORKSHEET)
    if not worksheet and all(form.column(name) is None for name in _MOODLE_IDS):
        raise TemplateUnreadableError(
            path, "it has neither Identifier and Grade nor an email address or ID number, in English"
        )
    rows = []
    for place in range(1, len(sheet.rows)):
        if any(cell.strip() for cell in sheet.rows[place]):
            rows.append(_moodle_row(form, place))
    return Form(path, sheet, tuple(rows), worksheet)


def moodle_target(form: Form, unit: str, wanted: str | None) -> Target:
    """The column of a unit: Grade of a worksheet; of a report "Assignment: Unit (Real)", or the one asked for.

    Raises:
        ColumnNotFoundError: there is none, or several.
    """
    headings = form.sheet.header
    if form.worksheet:
        place = form.column(wanted or "Grade")
        if place is None:
            raise ColumnNotFoundError(form.path, unit, headings)
        return Target(place, headings[place], None)
    fixed = {name.casefold() for name in (*_MOODLE_IDS, *_MOODLE_REPORT, "Institution", "Department")}
    open_ones = [
        place
        for place, heading in enumerate(headings)
        if heading and heading.casefold() not in fixed and not _MOODLE_NO_GRADE.fullmatch(heading)
    ]
    place = _one(form, unit, wanted, open_ones, _MOODLE_ITEM)
    return Target(place, headings[place], None)


def _moodle_row(form: Form, place: int) -> Row:
    # "Participant 123456"; the number is the one in the names of the files that Moodle hands out.
    identifier = form.cell(place, "Identifier")
    number = re.search(r"\d+$", identifier)
    parts = [form.cell(place, name) for name in _MOODLE_REPORT]
    name = form.cell(place, "Full name") or " ".join(filter(None, parts)) or identifier
    ids = tuple(text for heading in _MOODLE_IDS if (text := form.cell(place, heading)))
    return Row(place, ids, number[0] if number else "", name)


def _canvas_name(form: Form, place: int) -> str:
    return form.cell(place, "Student") or ", ".join(
        filter(None, (form.cell(place, "LastName"), form.cell(place, "FirstName")))
    )


def _is_canvas_s_own(form: Form, place: int) -> bool:
    """Whether a row is no learner's: blank, the points possible, how grades are posted, or the test student."""
    cells = [cell.strip() for cell in form.sheet.rows[place]]
    # The row of posting policies has nothing else; Canvas's importer knows it by the same rule.
    if all(re.fullmatch(r"(Muted|Manual Posting.*)?", cell, re.IGNORECASE) for cell in cells):
        return True
    return _is_points_row(cells) or _canvas_name(form, place) == "Student, Test"


def _is_points_row(cells: Sequence[str]) -> bool:
    return bool(cells) and "Points Possible" in cells[0]


def _one(form: Form, unit: str, wanted: str | None, places: Sequence[int], title: re.Pattern[str]) -> int:
    """The one column among some that has the name asked for, or the unit's."""
    headings = form.sheet.header

    def names(place: int) -> set[str]:
        found = title.fullmatch(headings[place])
        return {_plain(headings[place]), *(map(_plain, found.groups()) if found else ())}

    fitting = [place for place in places if _plain(wanted or unit) in names(place)]
    exact = [place for place in fitting if headings[place] == wanted]
    fitting = exact or fitting
    if len(fitting) != 1:
        raise ColumnNotFoundError(form.path, unit, (headings[place] for place in places))
    return fitting[0]


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", " ", text).strip().casefold()


def number(text: str) -> float | None:
    """A number of an LMS's file, with a point or a comma; None where there is none."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
