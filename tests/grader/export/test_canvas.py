"""Scores filled into a gradebook from Canvas: the rest of the file is as it was.

The files are as lib/gradebook_exporter.rb in instructure/canvas-lms writes them: a row on how grades are posted where
that is by hand, "    Points Possible" with four blanks, totals "(read only)", several sections in one cell, N/A for who
is not assigned, EX for who is excused, the test student last; with semicolons, decimal commas and a byte order mark
where the person's settings say so.
"""

import csv
import io
from pathlib import Path

import pytest

from grader.course import Course
from grader.exceptions import (
    ColumnNotFoundError,
    NotGradedError,
    NothingMatchedError,
    PointsDifferError,
    ScoresWaitError,
    TemplateColumnError,
    TemplateUnreadableError,
)
from grader.export.fill import Wishes, fill

pytestmark = pytest.mark.slow

UNIT = "activations"
HEADER = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Warm-up (1000),activations (1001),mechanism (1002),"
    "Assignments Current Score,Assignments Final Score,Current Score,Final Score"
)
POSTING = ",,,,,,Manual Posting,,,,,"
POINTS = "    Points Possible,,,,,5.00,40.00,40.00,(read only),(read only),(read only),(read only)"
GRACE = '"Hopper, Grace",4713,s0817,ghopper,Group 2,5.00,,,,,100.00,12.50'
ADA = '"Lovelace, Ada",4711,s0815,alovelace,Group 1 and Lab,4.50,,7.25,,,90.00,55.00'
NOETHER = '"Noether, Emmy ""E.""",4714,s0818,enoether,Group 1,,,,,,,'
ALAN = '"Turing, Alan",4712,s0816,aturing,Group 2,,12.00,,,,,'
TEST = '"Student, Test",9999,,,Group 1,,,,,,,'
ROWS = [HEADER, POSTING, POINTS, GRACE, ADA, NOETHER, ALAN, TEST]
COLUMN = 6


def template(tmp_path: Path, rows: list[str], *, end: str = "\n", encoding: str = "utf-8") -> Path:
    path = tmp_path / "2026-11-30T1405_Grades-FFN.csv"
    path.write_bytes((end.join(rows) + end).encode(encoding))
    return path


def table(text: str, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), delimiter=delimiter))


def test_only_the_unit_s_column_changes(course: Course, tmp_path: Path) -> None:
    path = template(tmp_path, ROWS)
    done = fill(course, "canvas", path, [UNIT])
    expected = table(path.read_text(encoding="utf-8"))
    expected[4][COLUMN], expected[6][COLUMN] = "40", "21.5"
    assert table(done.data.decode()) == expected
    assert done.cells == 2


def test_the_lines_that_do_not_change_are_the_same_to_the_byte(course: Course, tmp_path: Path) -> None:
    path = template(tmp_path, ROWS, end="\r\n", encoding="utf-8-sig")
    done = fill(course, "canvas", path, [UNIT]).data
    assert done.startswith(b"\xef\xbb\xbfStudent,")
    before, after = path.read_bytes().split(b"\r\n"), done.split(b"\r\n")
    assert len(before) == len(after)
    assert [place for place, line in enumerate(before) if line != after[place]] == [4, 6]
    assert after[4].decode() == ADA.replace("4.50,,7.25", "4.50,40,7.25")


def test_the_template_is_not_touched(course: Course, tmp_path: Path) -> None:
    path = template(tmp_path, ROWS)
    before = path.read_bytes()
    fill(course, "canvas", path, [UNIT])
    assert path.read_bytes() == before


def test_who_is_left_out_is_said(course: Course, tmp_path: Path) -> None:
    notes = fill(course, "canvas", template(tmp_path, [HEADER, POINTS, ADA, GRACE, NOETHER, TEST]), [UNIT]).notes
    assert notes == (
        "activations: waiting for a person, left as it was (1): ghopper",
        "activations: graded, and not in the file (1): aturing",
        'activations: in the file, and not graded (1): Noether, Emmy "E."',
    )


def test_semicolons_and_decimal_commas_stay(course: Course, tmp_path: Path) -> None:
    rows = [
        "Student;ID;SIS User ID;SIS Login ID;Section;activations (1001);Final Score",
        "    Points Possible;;;;;40,00;(read only)",
        "Lovelace, Ada;4711;s0815;alovelace;Gruppe 1;;55,00",
        "Turing, Alan;4712;s0816;aturing;Gruppe 2;12,00;30,00",
    ]
    done = fill(course, "canvas", template(tmp_path, rows, encoding="utf-8-sig"), [UNIT]).data.decode()
    assert done.splitlines()[2:] == [
        "Lovelace, Ada;4711;s0815;alovelace;Gruppe 1;40;55,00",
        "Turing, Alan;4712;s0816;aturing;Gruppe 2;21,5;30,00",
    ]


@pytest.mark.parametrize("said", ["N/A", "EX"])
def test_who_is_excused_or_not_assigned_is_left_as_is(course: Course, tmp_path: Path, said: str) -> None:
    done = fill(course, "canvas", template(tmp_path, [*ROWS[:6], ALAN.replace("12.00", said)]), [UNIT])
    assert table(done.data.decode())[6][COLUMN] == said
    assert "activations: not to be changed in the LMS, left as it was (1): aturing" in done.notes


def test_first_and_last_names_may_have_columns_of_their_own(course: Course, tmp_path: Path) -> None:
    rows = [
        "LastName,FirstName,ID,SIS Login ID,Section,activations (1001)",
        "    Points Possible,,,,,40",
        "Lovelace,Ada,4711,,Group 1,",
        "Student,Test,9999,,Group 1,",
    ]
    done = fill(course, "canvas", template(tmp_path, rows), [UNIT])
    assert done.data.decode().splitlines()[2] == "Lovelace,Ada,4711,,Group 1,40"
    assert not any("in the file, and not graded" in note for note in done.notes)


def test_a_penalty_for_being_late_is_taken_off(course: Course, tmp_path: Path) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        gradebook.find_submission_notebook(UNIT, UNIT, "aturing").late_submission_penalty = 1.75
        gradebook.db.commit()
    done = fill(course, "canvas", template(tmp_path, ROWS), [UNIT])
    assert table(done.data.decode())[6][COLUMN] == "19.75"


def test_incomplete_scores_are_included_where_that_is_asked_for(course: Course, tmp_path: Path) -> None:
    done = fill(course, "canvas", template(tmp_path, ROWS), [UNIT], Wishes(incomplete="include"))
    assert table(done.data.decode())[3][COLUMN] == "37"


def test_incomplete_scores_are_refused_where_that_is_asked_for(course: Course, tmp_path: Path) -> None:
    with pytest.raises(
        ScoresWaitError, match=r"1 scores of 'activations' wait for a person \(ghopper\); grade them"
    ):
        fill(course, "canvas", template(tmp_path, ROWS), [UNIT], Wishes(incomplete="refuse"))


@pytest.mark.parametrize("wanted", ["Exercise 1 (77)", "Exercise 1", "exercise-1", "77"])
def test_a_column_of_another_name_can_be_named(course: Course, tmp_path: Path, wanted: str) -> None:
    rows = [row.replace("activations (1001)", "Exercise 1 (77)") for row in ROWS]
    done = fill(course, "canvas", template(tmp_path, rows), [UNIT], Wishes(column=wanted))
    assert table(done.data.decode())[4][COLUMN] == "40"


def test_a_column_that_is_not_there_is_refused_with_those_that_are(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("activations (1001)", "Exercise 1 (77)") for row in ROWS]
    with pytest.raises(ColumnNotFoundError) as caught:
        fill(course, "canvas", template(tmp_path, rows), [UNIT])
    assert str(caught.value).endswith(
        "has no single column for 'activations'; name it with --column, which may be one of: 'Warm-up (1000)', "
        "'Exercise 1 (77)', 'mechanism (1002)'."
    )


def test_two_columns_of_one_name_are_told_apart_by_their_numbers(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("mechanism (1002)", "Activations (1003)") for row in ROWS]
    path = template(tmp_path, rows)
    with pytest.raises(ColumnNotFoundError, match="no single column"):
        fill(course, "canvas", path, [UNIT])
    done = fill(course, "canvas", path, [UNIT], Wishes(column="1003"))
    assert table(done.data.decode())[4][COLUMN + 1] == "40"


def test_a_column_that_canvas_computes_is_refused(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("40.00,40.00", "(read only),40.00") for row in ROWS]
    with pytest.raises(TemplateColumnError, match=r"the column 'activations \(1001\)' of .* is read only"):
        fill(course, "canvas", template(tmp_path, rows), [UNIT])


def test_other_points_are_refused(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("40.00,40.00", "100.00,40.00") for row in ROWS]
    with pytest.raises(PointsDifferError, match="gives 100 points for 'activations' and the gradebook 40; set"):
        fill(course, "canvas", template(tmp_path, rows), [UNIT])


def test_other_points_are_converted_where_that_is_asked_for(course: Course, tmp_path: Path) -> None:
    rows = [row.replace("40.00,40.00", "100.00,40.00") for row in ROWS]
    done = fill(course, "canvas", template(tmp_path, rows), [UNIT], Wishes(scale=True))
    # 40 of 40 and 21.5 of 40.
    assert [row[COLUMN] for row in table(done.data.decode())][4:7] == ["100", "", "53.75"]


def test_a_roster_tells_the_learners_ids_in_the_lms(course: Course, tmp_path: Path) -> None:
    rows = [HEADER, POINTS, '"A. L.",4711,x1,x2,Group 1,,,,,,,']
    aliases = {"alovelace": (frozenset[str](), frozenset({"4711"}))}
    done = fill(course, "canvas", template(tmp_path, rows), [UNIT], Wishes(aliases=aliases))
    assert table(done.data.decode())[2][COLUMN] == "40"


def test_a_file_without_anybody_of_the_class_is_refused(course: Course, tmp_path: Path) -> None:
    with pytest.raises(NothingMatchedError, match=r"no learner who is graded for 'activations' is in .*--roster"):
        fill(course, "canvas", template(tmp_path, [HEADER, POINTS, NOETHER]), [UNIT])


def test_a_unit_of_which_nothing_is_graded_is_refused(course: Course, tmp_path: Path) -> None:
    (course.solutions / "mechanism").mkdir()
    (course.solutions / "mechanism" / "mechanism.ipynb").write_text("{}")
    with pytest.raises(NotGradedError):
        fill(course, "canvas", template(tmp_path, ROWS), ["mechanism"])


@pytest.mark.parametrize(
    "text",
    [
        "Student,Grade\nAda,1\n",
        "ID,activations (1)\n1,2\n",
        'Identifier,"Full name",Grade\nParticipant 1,Ada,\n',
        "",
    ],
)
def test_a_file_that_is_no_gradebook_of_canvas_is_refused(course: Course, tmp_path: Path, text: str) -> None:
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(TemplateUnreadableError, match=r"other\.csv cannot be used: "):
        fill(course, "canvas", path, [UNIT])
