"""What a learner gets back: one HTML page a submission, with the points of each step and what was noticed at the top.

One exporter makes the pages of a whole class in this process; `nbgrader generate_feedback` and formgrader's button use
the same one (nbgrader_config.py names it), so there is one page, whoever asks for it. The words about a failed test
are those that the graded notebook shows after `grader.hide_tests` was at it: there is no second way for a hidden test
to get out.
"""

import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbconvert.exporters import HTMLExporter
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import default

from grader.course import Course
from grader.engine.store import RECORD_KEY
from grader.engine.verdict import GRADED, MISSING, REPAIRED
from grader.exceptions import (
    CannotWriteError,
    NoSubmissionsError,
    NotFromMoodleError,
    NotGradedError,
    NothingMatchedError,
    TemplateUnreadableError,
)
from grader.export.results import plain_number
from grader.formulas import formulas_script, with_formulas
from grader.hide_tests import FAILED
from grader.notebooks import grade_id

if TYPE_CHECKING:
    from grader.export.results import Result

__all__ = [
    "FeedbackExporter",
    "Grades",
    "Marks",
    "Step",
    "comments",
    "graded_learners",
    "moodle_zip",
    "page_of",
    "read_marks",
    "steps_of",
    "write_feedback",
]

AT_ONCE = 500
"""Learners whose marks are read from the gradebook in one go."""

_MOST_SAID = 3
_LONGEST_SAID = 600
_HEAD_ID = "grading-notes"
_STATUS = {
    MISSING: "No notebook was handed in that could be graded.",
    "unreadable": "What was handed in could not be read, so nothing of it was graded.",
    "timed out": "Your notebook took too long, so not all of it was graded.",
    "crashed": "Your notebook did not run to its end, so not all of it was graded.",
}


@dataclass(frozen=True)
class Marks:
    """What the gradebook has of a submission: scores by cell, comments by cell, the penalty, and the learner's name."""

    name: str = ""
    penalty: float = 0.0
    scores: Mapping[str, tuple[float, float, bool]] = field(default_factory=dict)
    """Points, most points, and whether a person is waited for."""
    comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def points(self) -> float:
        """All points, without the penalty."""
        return sum(points for points, _, _ in self.scores.values())

    @property
    def max_points(self) -> float:
        """The most points that the unit gives."""
        return sum(most for _, most, _ in self.scores.values())


@dataclass
class Step:
    """A row of the table: an answer with its points, and what its tests said."""

    name: str
    points: float = 0.0
    max_points: float = 0.0
    waits: bool = False
    comment: str = ""
    noticed: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether all points were reached."""
        return self.points >= self.max_points


# ------------------------------------------------------------------------------------------ what the page is made of


class Grades(NbGraderPreprocessor):  # type: ignore[misc]
    """Put scores and comments of the gradebook onto the cells, as nbgrader's GetGrades does with a query for each."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Treat a graded notebook; ``resources`` may bring the marks along."""
        asked = resources["nbgrader"]
        marks = asked.get("marks")
        if marks is None:
            found = read_marks(asked["db_url"], asked["assignment"], [asked["student"]])
            marks = found.get(asked["student"])
            if marks is None:
                raise NotGradedError(asked["assignment"])
            asked["marks"] = marks
        for cell in nb["cells"]:
            name, mark = grade_id(cell), cell["metadata"].get("nbgrader")
            if name is None:
                continue
            if name in marks.scores:
                mark["score"], mark["points"], mark["waits"] = marks.scores[name]
            elif mark.get("grade") or mark.get("task"):
                mark["score"], mark["points"], mark["waits"] = 0.0, float(mark.get("points", 0)), False
            if name in marks.comments:
                mark["comment"] = marks.comments[name]
        return nb, resources


class FeedbackExporter(HTMLExporter):
    """Makes the page of a graded notebook; nbgrader's converter and `grader feedback` both call it."""

    @default("template_name")
    def _template_name_default(self) -> str:
        return "feedback"

    def from_notebook_node(self, nb: Any, resources: Any = None, **more: Any) -> Any:
        """The page of a notebook, which is left as it is."""
        nb, resources = self.prepared(nb, resources)
        return self.page(nb, resources["nbgrader"]), resources

    def prepared(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """A copy of a graded notebook as it may be shown: with scores and comments, without hidden tests."""
        nb, resources = _copied(nb), self._init_resources(resources)  # type: ignore[no-untyped-call]
        for preprocessor in self._preprocessors:
            nb, resources = preprocessor(nb, resources)
        return nb, resources

    def page(self, nb: Any, asked: Mapping[str, Any]) -> str:
        """The page of a prepared notebook."""
        if "plain_number" not in self.environment.filters:
            self._add_filters()
        shown = {"feedback": _page(nb, asked), "global_content_filter": _ALL_SHOWN, "should_sanitize_html": True}
        page, rendered = with_formulas(self.template.render(nb=nb, resources=shown))
        script = "" if rendered else formulas_script()
        before, _, after = page.rpartition(_SCRIPT_PLACE)
        return f"{before}{script}{after}"

    def _add_filters(self) -> None:
        """The filters that the template needs. Most cells are the same for everybody, so what they gave is kept."""
        from jinja2 import pass_context
        from nbconvert.filters import highlight, widgetsdatatypefilter

        from grader.safe_html import safe_markdown

        colour: Any = highlight.Highlight2HTML(pygments_lexer="ipython3", parent=self)  # type: ignore[no-untyped-call]
        kinds: Any = widgetsdatatypefilter.WidgetsDataTypeFilter
        coloured = lru_cache(maxsize=_KEPT)(colour)
        converted = lru_cache(maxsize=_KEPT)(lambda source: safe_markdown({}, source))

        @pass_context
        def markdown(context: Any, source: str) -> str:
            alone = not context.get("cell", {}).get("attachments")
            return str(converted(source) if alone else safe_markdown(context, source))

        self.environment.filters |= {
            "filter_data_type": kinds(notebook_metadata={}, parent=self),
            "highlight_code": lambda source, metadata=None: coloured(source),
            "markdown2html": markdown,
            "plain_number": plain_number,
        }


_ALL_SHOWN = {f"include_{part}": True for part in ("code", "markdown", "raw", "unknown", "input", "output")}
_KEPT = 4_096
_SCRIPT_PLACE = "<!-- the script for formulas -->"


def _read(path: Path) -> Any:
    """A graded notebook; who wrote it has seen to its form, so it is not validated, which takes half as long again."""
    from nbformat.v4 import reads_json

    return reads_json(path.read_text(encoding="utf-8"))  # type: ignore[no-untyped-call]


def _copied(nb: Any) -> Any:
    from nbformat import from_dict

    return from_dict(json.loads(json.dumps(nb)))  # type: ignore[no-untyped-call]


def _page(nb: Any, asked: Mapping[str, Any]) -> dict[str, Any]:
    """What stands above the notebook; the cell of the grading's notes moves up there."""
    marks: Marks = asked["marks"]
    remarks = ""
    if nb["cells"] and nb["cells"][0].get("id") == _HEAD_ID:
        remarks = nb["cells"].pop(0)["source"]
    steps = steps_of(nb)
    status = str(nb["metadata"].get(RECORD_KEY, {}).get("status", ""))
    learner = asked["student"]
    return {
        "unit": asked["assignment"],
        "who": f"{marks.name} ({learner})" if marks.name else learner,
        "score": max(0.0, marks.points - marks.penalty),
        "max_points": marks.max_points,
        "penalty": marks.penalty,
        "waits": any(step.waits for step in steps),
        "status": _said_of(status),
        "remarks": remarks,
        "steps": steps,
    }


def _said_of(status: str) -> str:
    """A sentence for the learner where grading did not come to its end; what was put right is told by its own notes."""
    if status in ("", GRADED, REPAIRED):
        return ""
    known = (sentence for start, sentence in _STATUS.items() if status.startswith(start))
    return next(known, "Your notebook was not graded to its end.")


def steps_of(nb: Any) -> list[Step]:
    """The steps of a graded notebook with what may be said of them; hidden tests are hidden before this."""
    steps: list[Step] = []
    for cell in nb["cells"]:
        name, marks = grade_id(cell), cell["metadata"].get("nbgrader") or {}
        if name is None or not (marks.get("solution") or marks.get("grade") or marks.get("task")):
            continue
        if marks.get("solution") or marks.get("task") or not steps:
            steps.append(Step(name, comment=str(marks.get("comment") or "")))
        step = steps[-1]
        if not (marks.get("grade") or marks.get("task")):
            continue
        step.points += marks.get("score") or 0.0
        step.max_points += marks.get("points") or 0.0
        step.waits = step.waits or bool(marks.get("waits"))
        if not marks.get("solution"):
            _notice(step, cell)
    return steps


def _notice(step: Step, cell: Any) -> None:
    """Add what a test said: its sentence, and below it what the mistake was and where the book treats it."""
    for output in cell.get("outputs", []):
        if output["output_type"] != "error":
            continue
        said, *hints = [
            line.strip() for line in str(output["evalue"])[:_LONGEST_SAID].splitlines() if line.strip()
        ]
        if said not in step.noticed and len(step.noticed) < _MOST_SAID and not (said == FAILED and step.noticed):
            step.noticed.append(said)
            step.hints += [hint for hint in hints if hint not in step.hints][:_MOST_SAID]


# ----------------------------------------------------------------------------------------------- from the gradebook


def read_marks(db_url: str, unit: str, learners: Iterable[str]) -> dict[str, Marks]:
    """The marks of learners for a unit, as far as the gradebook has them: four queries, for any number."""
    from nbgrader import api
    from sqlalchemy import select

    asked = list(learners)
    with api.Gradebook(db_url) as gradebook:
        session = gradebook.db
        handed_in, notebook = api.SubmittedAssignment, api.SubmittedNotebook
        rows = session.execute(
            select(
                notebook.id,
                handed_in.student_id,
                notebook.late_submission_penalty,
                api.Student.first_name,
                api.Student.last_name,
            )
            .join(handed_in, handed_in.id == notebook.assignment_id)
            .join(api.Assignment, api.Assignment.id == handed_in.assignment_id)
            .join(api.Student, api.Student.id == handed_in.student_id)
            .where(api.Assignment.name == unit, handed_in.student_id.in_(asked))
        ).all()
        scores = _scores(session, [row.id for row in rows])
        comments = _comments(session, [row.id for row in rows])
    return {
        row.student_id: Marks(
            name=f"{row.first_name or ''} {row.last_name or ''}".strip(),
            penalty=float(row.late_submission_penalty or 0.0),
            scores=scores.get(row.id, {}),
            comments=comments.get(row.id, {}),
        )
        for row in rows
    }


def _scores(session: Any, notebooks: list[str]) -> dict[str, dict[str, tuple[float, float, bool]]]:
    from nbgrader import api
    from sqlalchemy import func, select

    base, grade = api.BaseCell.__table__, api.Grade
    graded, task = api.GradeCell.__table__, api.TaskCell.__table__
    rows = session.execute(
        select(
            grade.notebook_id,
            base.c.name,
            grade.score,
            grade.needs_manual_grade,
            func.coalesce(graded.c.max_score, task.c.max_score, 0.0).label("most"),
        )
        .join(base, base.c.id == grade.cell_id)
        .join(graded, graded.c.id == base.c.id, isouter=True)
        .join(task, task.c.id == base.c.id, isouter=True)
        .where(grade.notebook_id.in_(notebooks))
    )
    found: dict[str, dict[str, tuple[float, float, bool]]] = {}
    for row in rows:
        waits = bool(row.needs_manual_grade)
        found.setdefault(row.notebook_id, {})[row.name] = float(row.score or 0.0), float(row.most), waits
    return found


def _comments(session: Any, notebooks: list[str]) -> dict[str, dict[str, str]]:
    from nbgrader import api
    from sqlalchemy import select

    base, comment = api.BaseCell.__table__, api.Comment
    rows = session.execute(
        select(comment.notebook_id, base.c.name, comment.comment)
        .join(base, base.c.id == comment.cell_id)
        .where(comment.notebook_id.in_(notebooks))
    )
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        if row.comment:
            found.setdefault(row.notebook_id, {})[row.name] = row.comment
    return found


# ------------------------------------------------------------------------------------------------------------ files


def graded_learners(course: Course, unit: str, learner: str | None = None) -> list[str]:
    """The learners with a graded notebook for a unit: all of them, or the one named.

    Raises:
        UnknownUnitError: the course has no such unit.
        NotGradedError: no submission of the unit is graded.
        NoSubmissionsError: the one named has no graded notebook.
    """
    course.require_unit(unit)
    found = sorted(path.parent.name for path in course.autograded.glob(f"*/{unit}") if path.is_dir())
    if not found:
        raise NotGradedError(unit)
    if learner is not None and learner not in found:
        raise NoSubmissionsError(unit, learner, course.submitted.relative_to(course.root))
    return [name for name in found if learner in (None, name)]


def write_feedback(
    course: Course,
    unit: str,
    learner: str | None = None,
    *,
    zipped: bool = True,
    progress: Callable[[str, str], None] | None = None,
) -> int:
    """Write the page of every graded submission of a unit, or of one learner, below grader/var/feedback.

    What was there before is replaced when the new page is written. ``progress`` is called with each learner, and what
    went wrong, if anything did. Returns the number of learners for whom something did.

    Raises:
        UnknownUnitError, NotGradedError, NoSubmissionsError: there is nothing to write.
        CannotWriteError: the folder is closed, or the disk is full.
    """
    learners = graded_learners(course, unit, learner)
    maker = _Maker(course, unit)
    failed = 0
    for start in range(0, len(learners), AT_ONCE):
        for name, page, error in maker.pages(learners[start : start + AT_ONCE]):
            if error:
                failed += 1
            else:
                _write(course, name, unit, page, zipped=zipped)
            if progress is not None:
                progress(name, error)
    return failed


class _Maker:
    """Makes pages with one exporter."""

    def __init__(self, course: Course, unit: str) -> None:
        self._course = course
        self._unit = unit
        config = course.config()
        self._db_url = config.CourseDirectory.db_url
        config.Exporter.default_preprocessors = []
        self._exporter = FeedbackExporter(config=config)  # type: ignore[no-untyped-call]
        self.marks: dict[str, Marks] = {}
        for preprocessor in config.GenerateFeedback.preprocessors:
            self._exporter.register_preprocessor(preprocessor, enabled=True)  # type: ignore[no-untyped-call]

    def pages(self, learners: list[str]) -> Iterator[tuple[str, str, str]]:
        """Each learner with the page, or with what went wrong."""
        for learner, nb, error in self.prepared(learners):
            try:
                yield learner, "" if nb is None else self._exporter.page(nb, self._asked(learner)), error
            except Exception as failure:
                # A page that cannot be made must not keep the class from its feedback.
                yield learner, "", _not_shown(failure)

    def prepared(self, learners: list[str]) -> Iterator[tuple[str, Any, str]]:
        """Each learner with the notebook as it may be shown, or with what went wrong."""
        self.marks = read_marks(self._db_url, self._unit, learners)
        for learner in learners:
            if learner not in self.marks:
                yield learner, None, f"is not in the gradebook; run `grader autograde {self._unit} --force`"
                continue
            try:
                nb = _read(_graded(self._course, learner, self._unit))
                yield learner, self._exporter.prepared(nb, {"nbgrader": self._asked(learner)})[0], ""
            except Exception as failure:
                yield learner, None, _not_shown(failure)

    def _asked(self, learner: str) -> dict[str, Any]:
        known = {"student": learner, "assignment": self._unit, "notebook": self._unit, "db_url": self._db_url}
        return known | {"marks": self.marks[learner]}


def _not_shown(error: Exception) -> str:
    return f"the graded notebook cannot be shown: {type(error).__name__}: {error}"


def page_of(course: Course, learner: str, unit: str) -> Path:
    """Where a learner's page is."""
    return course.feedback / learner / unit / f"{unit}.html"


def _graded(course: Course, learner: str, unit: str) -> Path:
    return course.autograded / learner / unit / f"{unit}.ipynb"


def _write(course: Course, learner: str, unit: str, page: str, *, zipped: bool) -> None:
    """Put a page, and the time of handing in beside it, in their folder, the whole folder at once."""
    target = course.feedback / learner / unit
    archive = target.with_name(f"{unit}.zip")
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{unit}-", dir=target.parent))
        fresh = scratch / "new"
        fresh.mkdir()
        (fresh / f"{unit}.html").write_text(page, encoding="utf-8")
        stamp = course.autograded / learner / unit / "timestamp.txt"
        if stamp.is_file():
            (fresh / stamp.name).write_bytes(stamp.read_bytes())
        if zipped:
            write_zip(scratch / "zip", [(f"{unit}.html", page.encode())])
        if target.exists():
            target.replace(scratch / "old")
        fresh.replace(target)
        if zipped:
            (scratch / "zip").replace(archive)
        else:
            # It would hold the page of an earlier grading.
            archive.unlink(missing_ok=True)
    except OSError as error:
        raise CannotWriteError(target, (error.strerror or type(error).__name__).lower()) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def write_zip(path: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write a zip file that is the same for the same members, whenever it is made."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            # Without a date of its own a member would have today's.
            member = zipfile.ZipInfo(name)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, data)


# ------------------------------------------------------------------------------------------------------ for an LMS


def comments(course: Course, unit: str) -> dict[str, str]:
    """For each graded learner a short HTML text of what was noticed, as Moodle's column of comments takes it.

    Raises:
        UnknownUnitError, NotGradedError: nothing of the unit is graded.
    """
    learners = graded_learners(course, unit)
    maker = _Maker(course, unit)
    made = {}
    for start in range(0, len(learners), AT_ONCE):
        for name, nb, _ in maker.prepared(learners[start : start + AT_ONCE]):
            if nb is not None:
                made[name] = _comment(nb, maker.marks[name])
    return made


def _comment(nb: Any, marks: Marks) -> str:
    lines = [f"{plain_number(max(0.0, marks.points - marks.penalty))} of {plain_number(marks.max_points)} points."]
    if marks.penalty:
        lines.append(f"Penalty for handing in late: {plain_number(marks.penalty)}.")
    for step in steps_of(nb):
        said = [*step.noticed, *step.hints, *filter(None, [step.comment])]
        said += ["This answer is still to be read by a person."] if step.waits else []
        if said or not step.is_full:
            reached = f"{plain_number(step.points)} of {plain_number(step.max_points)}"
            lines.append(f"{step.name}: {reached}. {' '.join(said)}".strip())
    return "<br>".join(escape(" ".join(line.split())) for line in lines)


def moodle_zip(
    course: Course, unit: str, target: Path, worksheet: Path | None = None
) -> tuple[int, tuple[str, ...]]:
    """Write the pages of a unit as one zip file that Moodle takes back by "Upload multiple feedback files in a zip".

    Moodle knows a file's learner by the number in the name of its folder (moodle/moodle,
    mod/assign/feedback/file/importziplib.php). The grading worksheet has it; without one, it is taken from what
    `grader collect` read. Returns how many pages are in it, and what a person should know.

    Raises:
        NotGradedError: nothing of the unit is graded.
        TemplateUnreadableError: the file is no grading worksheet.
        AmbiguousLearnerError, NothingMatchedError: its rows are not the learners', or not certainly.
        NotFromMoodleError: there is no worksheet, and no submission was collected from Moodle.
        CannotWriteError: the zip file cannot be written.
    """
    from grader.export.results import results

    found = [result for result in results(course, unit) if page_of(course, result.learner, unit).is_file()]
    if worksheet is None:
        folders, notes = _collected_folders(course, unit, found)
    else:
        folders, notes = _worksheet_folders(course, unit, worksheet, found)
    members = (
        (f"{folder}/{unit}.html", page_of(course, learner, unit).read_bytes())
        for learner, folder in sorted(folders.items())
    )
    _write_archive(target, members)
    return len(folders), notes


def _collected_folders(course: Course, unit: str, found: "list[Result]") -> tuple[dict[str, str], tuple[str, ...]]:
    from grader.export.fill import collected_number

    numbers = {result.learner: collected_number(course, "moodle", unit, result.learner) for result in found}
    folders = {
        result.learner: _moodle_folder(result.name, numbers[result.learner])
        for result in found
        if re.fullmatch(r"[0-9]{1,20}", numbers[result.learner])
    }
    if not folders:
        raise NotFromMoodleError(unit)
    left = sorted(numbers.keys() - folders.keys())
    return folders, (f"not collected from Moodle ({len(left)}): {', '.join(left)}",) if left else ()


def _worksheet_folders(
    course: Course, unit: str, worksheet: Path, found: "list[Result]"
) -> tuple[dict[str, str], tuple[str, ...]]:
    from grader.export.fill import known_learners
    from grader.export.lms import open_moodle
    from grader.export.match import match

    form = open_moodle(worksheet)
    if not form.worksheet:
        raise TemplateUnreadableError(
            worksheet, "it is no grading worksheet: the participants' numbers are missing"
        )
    matched = match(worksheet, form.rows, known_learners(course, "moodle", unit, found))
    rows = {row.place: row for row in form.rows}
    folders = {
        learner: _moodle_folder(rows[place].name, rows[place].number)
        for place, learner in matched.learners.items()
        if rows[place].number
    }
    if not folders:
        raise NothingMatchedError(worksheet, unit)
    said = [("not in the worksheet", matched.only_here), ("found by name alone", matched.by_name)]
    return folders, tuple(f"{what} ({len(names)}): {', '.join(names)}" for what, names in said if names)


def _moodle_folder(name: str, number: str) -> str:
    # Moodle splits at the underscores; where learners are anonymous, it has no name but "Participant".
    plain = re.sub(r"[^\w .,'-]|_", " ", name)
    plain = " ".join(re.sub(rf"\s*{number}$", "", plain).split()).lstrip(" .") or "Participant"
    return f"{plain}_{number}_assignsubmission_file_"


def _write_archive(target: Path, members: Iterable[tuple[str, bytes]]) -> None:
    """Write a zip file whole or not at all."""
    scratch: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=".zip-", dir=target.parent))
        write_zip(scratch / "new", members)
        (scratch / "new").replace(target)
    except OSError as error:
        raise CannotWriteError(target, (error.strerror or type(error).__name__).lower()) from error
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)
