"""Scores as tables of our own, and as nbgrader's."""

import csv
import io
import json
from datetime import datetime

import pytest

from grader.course import Course
from grader.engine.store import record_of
from grader.export.results import plain_number, results, units_with_results
from grader.export.table import COLUMNS, as_csv, as_json, nbgrader_csv
from tests.grader.engine.courses import UNIT, db_url

pytestmark = pytest.mark.slow


def rows(text: str) -> dict[str, dict[str, str]]:
    return {row["learner"]: row for row in csv.DictReader(io.StringIO(text, newline=""))}


def change(course: Course, learner: str, **fields: object) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        gradebook.update_or_create_student(learner, **fields)


def make_late(course: Course, learner: str, penalty: float) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        gradebook.find_submission_notebook(UNIT, UNIT, learner).late_submission_penalty = penalty
        gradebook.find_submission(UNIT, learner).timestamp = datetime(2026, 1, 18, 0, 59)
        gradebook.db.commit()


def test_the_results_are_those_of_nbgrader_s_own_queries(course: Course) -> None:
    from nbgrader.api import Gradebook

    make_late(course, "aturing", 1.75)
    with Gradebook(db_url(course)) as gradebook:
        expected = {
            found.student.id: (
                found.score,
                found.max_score,
                found.late_submission_penalty,
                found.needs_manual_grade,
            )
            for found in gradebook.assignment_submissions(UNIT)
        }
    mine = {r.learner: (r.points, r.max_points, r.penalty, r.waits) for r in results(course, UNIT)}
    assert mine.pop("kgoedel") == (None, 40.0, 0.0, False)
    assert mine == expected


def test_extra_credit_is_counted(course: Course) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        gradebook.find_grade("test_relu", UNIT, UNIT, "alovelace").extra_credit = 2.5
        gradebook.db.commit()
    assert next(result.score for result in results(course, UNIT) if result.learner == "alovelace") == 42.5


def test_a_penalty_takes_no_more_than_the_points(course: Course) -> None:
    make_late(course, "aturing", 100.0)
    assert next(result.score for result in results(course, UNIT) if result.learner == "aturing") == 0.0


def test_the_units_are_those_with_submissions(course: Course) -> None:
    assert units_with_results(course) == [UNIT]


def test_the_csv_table_has_everybody(course: Course) -> None:
    make_late(course, "aturing", 1.75)
    found = rows(as_csv(course, results(course, UNIT), incomplete="skip"))
    assert list(found) == ["alovelace", "aturing", "ghopper", "kgoedel"]
    assert found["aturing"] == {
        "learner": "aturing",
        "name": "Alan Turing",
        "unit": UNIT,
        "points": "21.5",
        "max_points": "40",
        "late_penalty": "1.75",
        "score": "19.75",
        "waits_for_person": "no",
        "status": "graded",
        "flags": "",
    }


def test_a_score_that_waits_is_left_out_or_included(course: Course) -> None:
    left_out = rows(as_csv(course, results(course, UNIT), incomplete="skip"))["ghopper"]
    included = rows(as_csv(course, results(course, UNIT), incomplete="include"))["ghopper"]
    assert (left_out["score"], left_out["points"], left_out["waits_for_person"]) == ("", "37", "yes")
    assert included["score"] == "37"


def test_who_handed_in_nothing_has_no_score(course: Course) -> None:
    row = rows(as_csv(course, results(course, UNIT), incomplete="skip"))["kgoedel"]
    assert (row["points"], row["score"], row["status"]) == ("", "", "not handed in")


def test_the_csv_table_has_no_formulas(course: Course) -> None:
    change(course, "kgoedel", first_name="=HYPERLINK(1)", last_name='@x,"y"')
    assert rows(as_csv(course, results(course, UNIT), incomplete="skip"))["kgoedel"]["name"] == (
        '\'=HYPERLINK(1) @x,"y"'
    )


def test_the_json_table_has_the_results_of_the_tests(course: Course) -> None:
    found = {row["learner"]: row for row in json.loads(as_json(course, results(course, UNIT), incomplete="skip"))}
    assert found["alovelace"]["results"] == record_of(course, "alovelace", UNIT)["results"] != []
    assert found["kgoedel"]["results"] is None
    assert found["ghopper"]["score"] is None
    assert set(found["aturing"]) == {*COLUMNS, "results"}


def test_the_json_table_takes_a_notebook_without_a_record(course: Course) -> None:
    path = course.autograded / "alovelace" / UNIT / f"{UNIT}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    del notebook["metadata"]["ffn-grading"]
    path.chmod(0o644)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    found = json.loads(as_json(course, results(course, UNIT), incomplete="skip"))[0]
    assert (found["learner"], found["results"], found["status"], found["flags"]) == ("alovelace", None, "", [])


def test_the_default_file_is_the_one_that_nbgrader_writes(course: Course) -> None:
    from nbgrader.api import Gradebook
    from nbgrader.plugins.export import CsvExportPlugin

    make_late(course, "aturing", 1.75)
    path = course.var / "stock.csv"
    with Gradebook(db_url(course)) as gradebook:
        gradebook.add_assignment("later")
        CsvExportPlugin(to=str(path)).export(gradebook)
    assert nbgrader_csv(course).encode() == path.read_bytes()


def test_in_the_default_file_a_name_with_a_comma_stays_one_cell(course: Course) -> None:
    change(course, "kgoedel", last_name="Gödel, Dr.", first_name="=1+1")
    found = {row["student_id"]: row for row in csv.DictReader(io.StringIO(nbgrader_csv(course), newline=""))}
    assert (found["kgoedel"]["last_name"], found["kgoedel"]["first_name"]) == ("Gödel, Dr.", "'=1+1")


@pytest.mark.parametrize(
    ("value", "text"), [(37.0, "37"), (0.0, "0"), (2.5, "2.5"), (100 / 3, "33.3333"), (1234.56789, "1234.5679")]
)
def test_a_number_has_no_digits_that_say_nothing(value: float, text: str) -> None:
    assert plain_number(value) == text
