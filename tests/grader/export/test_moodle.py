"""Scores filled into Moodle's grading worksheet and into its grader report: the rest of the file is as it was.

The worksheet is as mod/assign/gradingtable.php of moodle/moodle writes it, the report as
grade/export/txt/grade_export_txt.php does. Anonymous worksheets lack name and address.
"""

import csv
import io
import json
from pathlib import Path

import pytest

from grader.collect.place import RECORD, attempts_root
from grader.course import Course
from grader.exceptions import ColumnNotFoundError, PointsDifferError, TemplateUnreadableError
from grader.export.fill import Wishes, fill
from tests.grader.scored_class import name

pytestmark = pytest.mark.slow

UNIT = "activations"
HEADER = (
    'Identifier,"Full name","ID number","Email address",Status,Group,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"'
)
ADA = (
    '"Participant 812001","Ada Lovelace",,alovelace@example.edu,"Submitted for grading - ","Lab, Mon",,40.00,Yes,'
    '"Monday, 30 November 2026, 2:05 PM",-,'
)
ALAN = (
    '"Participant 812002","Alan Turing",,aturing@example.edu,"Submitted for grading - Graded",,12.00,40.00,No,'
    '"Monday, 30 November 2026, 2:06 PM","Tuesday, 1 December 2026, 9:00 AM","<p>Well ""done"".</p>"'
)
KURT = '"Participant 812004","Kurt Gödel",,kgoedel@example.edu,"No submission",,,40.00,Yes,-,-,'
WORKSHEET = [HEADER, ADA, ALAN, KURT]


def template(tmp_path: Path, rows: list[str], *, encoding: str = "utf-8-sig") -> Path:
    path = tmp_path / "Grades-FFN-activations-4711.csv"
    path.write_bytes(("\n".join(rows) + "\n").encode(encoding))
    return path


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


def column(data: bytes, heading: str) -> list[str]:
    rows = table(data.decode())
    return [row[rows[0].index(heading)] for row in rows[1:]]


def test_only_grades_change_and_never_one_that_cannot(course: Course, tmp_path: Path) -> None:
    path = template(tmp_path, WORKSHEET)
    done = fill(course, "moodle", path, [UNIT])
    expected = table(path.read_text(encoding="utf-8"))
    expected[1][6] = "40"
    assert table(done.data.decode()) == expected
    assert "activations: not to be changed in the LMS, left as it was (1): aturing" in done.notes


def test_other_lines_are_the_same_to_the_byte(course: Course, tmp_path: Path) -> None:
    path = template(tmp_path, WORKSHEET)
    before, after = path.read_bytes().split(b"\n"), fill(course, "moodle", path, [UNIT]).data.split(b"\n")
    assert [place for place, line in enumerate(before) if line != after[place]] == [1]
    assert after[1].decode() == ADA.replace(',"Lab, Mon",,', ',"Lab, Mon",40,')


def test_comments_are_left_alone_unless_asked_for(course: Course, tmp_path: Path) -> None:
    done = fill(course, "moodle", template(tmp_path, WORKSHEET), [UNIT])
    assert column(done.data, "Feedback comments") == ["", '<p>Well "done".</p>', ""]


def test_comments_are_filled_in_where_a_grade_is(course: Course, tmp_path: Path) -> None:
    wishes = Wishes(comments={"alovelace": "40 of 40 points.", "aturing": "not shown"})
    done = fill(course, "moodle", template(tmp_path, WORKSHEET), [UNIT], wishes)
    assert column(done.data, "Feedback comments") == ["40 of 40 points.", '<p>Well "done".</p>', ""]


def test_a_comment_is_no_formula(course: Course, tmp_path: Path) -> None:
    done = fill(course, "moodle", template(tmp_path, WORKSHEET), [UNIT], Wishes(comments={"alovelace": "=cmd()"}))
    assert column(done.data, "Feedback comments")[0] == "'=cmd()"


def test_an_anonymous_worksheet_is_filled_by_the_participants_numbers(course: Course, tmp_path: Path) -> None:
    rows = [
        'Identifier,Status,Grade,"Maximum Grade","Grade can be changed","Last modified (grade)"',
        '"Participant 812001","Submitted for grading - ",,40.00,Yes,-',
        '"Participant 812002","Submitted for grading - ",,40.00,Yes,-',
    ]
    aliases = {
        "aturing": (frozenset[str](), frozenset({"812002"})),
        "alovelace": (frozenset[str](), frozenset({"812001"})),
    }
    done = fill(course, "moodle", template(tmp_path, rows), [UNIT], Wishes(aliases=aliases))
    assert column(done.data, "Grade") == ["40", "21.5"]


def test_a_participant_s_number_is_the_one_of_the_unit_s_own_submission(course: Course, tmp_path: Path) -> None:
    # The gradebook's number is of another assignment, where Moodle gave it to somebody else.
    name(course, "alovelace", lms_user_id="812002")
    path = attempts_root(course) / "alovelace" / UNIT / RECORD
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"form": "moodle", "lms": "812001"}))
    rows = [
        'Identifier,Status,Grade,"Maximum Grade","Grade can be changed","Last modified (grade)"',
        '"Participant 812001","Submitted for grading - ",,40.00,Yes,-',
        '"Participant 812002","Submitted for grading - ",,40.00,Yes,-',
    ]
    assert column(fill(course, "moodle", template(tmp_path, rows), [UNIT]).data, "Grade") == ["40", ""]


def test_a_maximum_that_differs_is_refused(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("40.00,Yes", "100.00,Yes") for row in WORKSHEET]
    with pytest.raises(PointsDifferError, match="gives 100 points for 'activations' and the gradebook 40"):
        fill(course, "moodle", template(tmp_path, rows), [UNIT])


REPORT = [
    '"First name","Last name","ID number",Institution,Department,"Email address","Assignment: Activations (Real)",'
    '"Assignment: Activations (Percentage)","Assignment: Activations (Feedback)","Course total (Real)",'
    '"Last downloaded from this course"',
    'Ada,Lovelace,,,,alovelace@example.edu,-,-,"""Good"", so far",7.25,1796040000',
    "Alan,Turing,aturing,,,,12.00,30.00 %,,12.00,1796040000",
]


def test_the_grader_report_is_filled(course: Course, tmp_path: Path) -> None:
    path = template(tmp_path, REPORT, encoding="utf-8")
    done = fill(course, "moodle", path, [UNIT])
    expected = table(path.read_text(encoding="utf-8"))
    expected[1][6], expected[2][6] = "40", "21.5"
    assert table(done.data.decode()) == expected


def test_a_report_with_one_kind_of_grades_is_filled(course: Course, tmp_path: Path) -> None:
    rows = ['"First name",Surname,"Email address","Assignment: activations","Course total"', "Ada,Lovelace,,-,-"]
    done = fill(course, "moodle", template(tmp_path, rows), [UNIT])
    assert column(done.data, "Assignment: activations") == ["40"]


def test_a_column_that_is_not_there_is_refused_with_those_that_are(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("Activations", "Exercise 1") for row in REPORT]
    with pytest.raises(ColumnNotFoundError) as caught:
        fill(course, "moodle", template(tmp_path, rows), [UNIT])
    assert "one of: 'Assignment: Exercise 1 (Real)', 'Course total (Real)'" in str(caught.value)


@pytest.mark.parametrize("text", ['"Vollständiger Name",Bewertung\nAda,1\n', "Grade\n1\n"])
def test_a_file_that_is_neither_is_refused(course: Course, tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(TemplateUnreadableError, match=r"other\.csv cannot be used: "):
        fill(course, "moodle", path, [UNIT])
