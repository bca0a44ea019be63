"""Extensions and due times: the table that a person edits, the gradebook's own record, and lateness by both."""

import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from traitlets.config import Config

from grader import extensions
from grader.course import Course
from grader.exceptions import BadExtensionsError, CannotWriteError
from grader.extensions import (
    MOST_HOURS,
    Extension,
    Extensions,
    extensions_of,
    path_of,
    read_extensions,
    write_extensions,
)
from tests.grader.engine.courses import UNIT, WRITTEN, by_hand, rows
from tests.grader.invoked import invoked
from tests.helpers import CourseCopy, said_once

HEAD = "learner,unit,until,hours,reason\n"
DUE = datetime(2026, 1, 15, 23, 59)
LATE = "learner-07"
"""Hands in 49 hours late, with 37 points."""


def course_in(folder: Path) -> Course:
    course = Course(folder)
    for unit in ("activations", "gates"):
        course.reference(unit).parent.mkdir(parents=True)
        course.reference(unit).write_text("{}")
    course.var.mkdir(parents=True)
    return course


@pytest.fixture
def bare(tmp_path: Path) -> Course:
    """A course of two units of which nothing was released."""
    return course_in(tmp_path)


def table(course: Course, text: str | bytes) -> None:
    path_of(course).write_bytes(text if isinstance(text, bytes) else text.encode())


def read(course: Course) -> list[Extension]:
    return read_extensions(course, "Europe/Berlin")


# ------------------------------------------------------------------------------------------------ the table


def test_without_a_file_there_is_none(bare: Course) -> None:
    assert read(bare) == []


def test_a_line_is_until_a_local_time_or_by_hours(bare: Course) -> None:
    table(bare, HEAD + "ada,gates,2026-12-03 23:59,,ill\nbob,activations,,48,\n")
    ada, bob = read(bare)
    assert (ada.learner, ada.unit, ada.utc, ada.reason) == (
        "ada",
        "gates",
        datetime(2026, 12, 3, 22, 59, tzinfo=UTC),
        "ill",
    )
    assert (bob.learner, bob.hours, bob.utc) == ("bob", 48, None)


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbflearner,unit,hours\r\nada,gates,12\r\n",
        b'Learner;Unit;Hours;Reason\r\nada;gates;12;"a; b"\r\n',
        b"hours,unit,learner\n\n12, gates ,ada\n\n",
        b"learner,unit,until,hours\nada,gates,,12",
    ],
    ids=["byte-order-mark", "semicolons", "order-and-blanks", "no-reason"],
)
def test_what_a_spreadsheet_makes_of_the_table_is_read(bare: Course, text: bytes) -> None:
    table(bare, text)
    assert [(one.learner, one.unit, one.hours) for one in read(bare)] == [("ada", "gates", 12)]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (
            HEAD + "ada,gates,,12,\nbob,gate,,12,\n",
            3,
            "there is no unit 'gate'; the units are: activations, gates",
        ),
        (HEAD + "../ada,gates,,12,\n", 2, "'../ada' can be no learner's id"),
        (HEAD + ",gates,,12,\n", 2, "'' can be no learner's id"),
        (HEAD + "ada,gates,,,\n", 2, "it gives neither until nor hours; give one of them"),
        (HEAD + "ada,gates,2026-12-03 23:59,12,\n", 2, "it gives both until and hours; give one of them"),
        (HEAD + "ada,gates,soon,,\n", 2, "until 'soon': write it as 2026-11-30 23:59"),
        (HEAD + "ada,gates,2026-03-29 02:30,,\n", 2, "the clocks in Europe/Berlin are put forward over it"),
        (HEAD + "ada,gates,,-1,\n", 2, "hours '-1' is no number of hours above 0"),
        (HEAD + "ada,gates,,nan,\n", 2, "hours 'nan' is no number of hours"),
        (HEAD + "ada,gates,,1e9,\n", 2, "hours '1e9' is no number of hours above 0 and up to 87600"),
        (HEAD + "ada,gates,,one,\n", 2, "hours 'one' is no number of hours"),
        (
            HEAD + "ada,gates,,1,\nbob,gates,,1,\nada,gates,,2,\n",
            4,
            "'ada' has one for 'gates' already, in line 2",
        ),
        (HEAD + 'ada,gates,,1,"open\n', 2, "it is no line of CSV"),
        (
            "learner,unit,days\nada,gates,2\n",
            1,
            "'days' is no column; the first line has the columns learner, unit",
        ),
        ("learner,hours\nada,2\n", 1, "there is no column unit"),
        ("learner,unit,reason\nada,gates,ill\n", 1, "there is no column until or hours"),
        ("learner,unit,hours,hours\nada,gates,1,2\n", 1, "a column is there twice"),
    ],
)
def test_a_line_that_says_nothing_clear_is_named_by_its_number(
    bare: Course, text: str, line: int, why: str
) -> None:
    table(bare, text)
    with pytest.raises(BadExtensionsError) as caught:
        read(bare)
    said = str(caught.value)
    assert said.startswith(f"line {line} of grader/var/extensions.csv cannot be read as an extension: ")
    assert why in said
    assert "\n" not in said


def test_a_file_that_is_not_in_utf_8_is_named(bare: Course) -> None:
    table(bare, HEAD.encode() + b"ada,gates,,1,caf\xe9\n")
    with pytest.raises(BadExtensionsError, match=r"extensions\.csv cannot .*: it is not in UTF-8"):
        read(bare)


def test_a_file_without_end_is_not_read_to_its_end(bare: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "MOST_BYTES", 100)
    table(bare, HEAD + "x" * 100)
    with pytest.raises(BadExtensionsError, match="it has more than"):
        read(bare)


def test_a_folder_in_its_place_is_named(bare: Course) -> None:
    path_of(bare).mkdir()
    with pytest.raises(BadExtensionsError, match="it cannot be opened"):
        read(bare)


reasons = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40)
entries = st.builds(
    Extension,
    learner=st.from_regex(r"[a-z0-9][a-z0-9_. +'-]{0,10}[a-z0-9]", fullmatch=True),
    unit=st.sampled_from(["activations", "gates"]),
    hours=st.floats(0.01, MOST_HOURS).map(lambda hours: round(hours, 2)),
    reason=reasons,
)


@settings(deadline=None)
@given(st.lists(entries, max_size=5, unique_by=lambda one: (one.learner, one.unit)))
def test_what_is_written_is_read_back_and_no_reason_is_a_formula(found: list[Extension]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        course = course_in(Path(folder) / "course")
        write_extensions(course, found)
        back = read(course)
    assert {(one.learner, one.unit, one.hours) for one in back} == {
        (one.learner, one.unit, one.hours) for one in found
    }
    assert not any(one.reason.startswith(("=", "+", "-", "@")) for one in back)


def test_a_table_that_cannot_be_written_leaves_the_one_that_was_there(
    bare: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_extensions(bare, [Extension("ada", "gates", hours=1)])
    before = path_of(bare).read_bytes()

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(CannotWriteError, match="no space left"):
        write_extensions(bare, [])
    assert [path.name for path in bare.var.iterdir()] == ["extensions.csv"]
    assert path_of(bare).read_bytes() == before


# -------------------------------------------------------------------------------------- what is recorded of it


def known(*found: Extension, there: bool = True) -> Extensions:
    return Extensions(there, {(one.learner, one.unit): one for one in found})


def test_until_a_time_is_the_difference_to_the_due_time() -> None:
    one = Extension("ada", "gates", "x", utc=datetime(2026, 1, 18, 23, 59, tzinfo=UTC))
    assert known(one).of("ada", "gates", DUE) == timedelta(days=3)
    assert known(one).of("ada", "gates", datetime(2026, 1, 18, 23, 59)) is None
    assert known(one).of("ada", "gates", datetime(2026, 1, 20)) is None


def test_hours_count_from_the_due_time() -> None:
    assert known(Extension("ada", "gates", hours=36)).of("ada", "gates", DUE) == timedelta(hours=36)


def test_the_file_alone_says_who_has_one_where_it_is_there() -> None:
    assert known().of("ada", "gates", DUE, timedelta(hours=5)) is None
    assert known(there=False).of("ada", "gates", DUE, timedelta(hours=5)) == timedelta(hours=5)


@pytest.mark.parametrize("there", [True, False])
def test_without_a_due_time_nothing_is_recorded(there: bool) -> None:
    one = Extension("ada", "gates", hours=36)
    assert known(one, there=there).of("ada", "gates", None, timedelta(hours=5)) is None


@pytest.mark.parametrize("config", [None, Config(), Config({"CourseDirectory": {"course_id": "ffn"}})])
def test_without_a_course_there_are_no_extensions(config: Any) -> None:
    assert extensions_of(config) == Extensions(False, {})


# ------------------------------------------------------------------------------------- the commands, on a class


@pytest.fixture(scope="module")
def small(graded_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """The graded class with one submission in time and one 49 hours late, in a course with a policy and a zone."""
    copy = CourseCopy(Path(shutil.copytree(graded_course.root, tmp_path_factory.mktemp("late") / "course")))
    for folder in Course(copy.root).submitted.iterdir():
        if folder.name not in ("learner-03", LATE):
            shutil.rmtree(folder)
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.LatePolicy.per_day = 0.1\nc.LatePolicy.timezone = "Europe/Berlin"\n')
    return copy


@pytest.fixture
def copy(small: CourseCopy, tmp_path: Path) -> CourseCopy:
    return CourseCopy(Path(shutil.copytree(small.root, tmp_path / "course")))


@pytest.fixture
def course(copy: CourseCopy) -> Course:
    return Course(copy.root)


def grader(copy: CourseCopy, *arguments: str) -> str:
    done = invoked(copy, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def grade(copy: CourseCopy) -> None:
    grader(copy, "autograde", UNIT, "--learner", LATE, "--force")


def listed(copy: CourseCopy) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(grader(copy, "extension", "--json"))
    return found


def row(course: Course) -> dict[str, Any]:
    return rows(course, LATE)[LATE]


def score(copy: CourseCopy) -> dict[str, Any]:
    found = {one["learner"]: one for one in json.loads(grader(copy, "scores", UNIT, "--json"))}
    return dict(found[LATE])


@pytest.mark.slow
def test_a_declared_rule_takes_points_off_and_the_table_says_so(copy: CourseCopy, course: Course) -> None:
    grade(copy)
    assert (row(course)["late"], row(course)["penalty"]) == (49 * 3600, pytest.approx(11.1))
    assert score(copy)["late_penalty"] == pytest.approx(11.1)
    assert "49 h late, 11.1 points off" in " ".join(grader(copy, "scores", UNIT).split())


@pytest.mark.slow
def test_nbgrader_s_own_autograde_takes_the_same_off(copy: CourseCopy, course: Course) -> None:
    grader(copy, "extension", LATE, UNIT, "--hours", "24")
    look = (
        "from pathlib import Path; from grader.course import Course; "
        f"print(Course(Path.cwd()).nbgrader().autograde({UNIT!r}, {LATE!r}, force=True)['success'])"
    )
    done = copy.command(sys.executable, "-c", look)
    assert done.stdout.endswith("True\n"), done.stderr
    found = row(course)
    assert (found["late"], found["penalty"]) == (25 * 3600, pytest.approx(7.4))


@pytest.mark.slow
def test_an_extension_counts_when_the_submission_is_graded_again(copy: CourseCopy, course: Course) -> None:
    grade(copy)
    done = invoked(copy, "extension", LATE, UNIT, "--until", "2026-01-19 00:59", "--reason", "ill")
    assert done.returncode == 0, done.stderr
    assert f"`grader autograde {UNIT} --learner {LATE} --force`" in done.stderr
    assert row(course)["penalty"] == pytest.approx(11.1)
    grade(copy)
    found = row(course)
    assert (found["late"], found["penalty"]) == (0, None)
    assert score(copy)["extended_until"] == "2026-01-19 00:59 Europe/Berlin"
    assert "extension until 2026-01-19 00:59 Europe/Berlin" in " ".join(grader(copy, "scores", UNIT).split())


@pytest.mark.slow
def test_an_extension_that_is_taken_back_counts_no_more(copy: CourseCopy, course: Course) -> None:
    grader(copy, "extension", LATE, UNIT, "--hours", "72")
    grade(copy)
    assert row(course)["late"] == 0
    grader(copy, "extension", LATE, UNIT, "--remove")
    assert listed(copy) == []
    grade(copy)
    assert (row(course)["late"], row(course)["penalty"]) == (49 * 3600, pytest.approx(11.1))


@pytest.mark.slow
def test_diff_says_what_an_extension_changes_before_it_is_written(copy: CourseCopy, course: Course) -> None:
    grade(copy)
    grader(copy, "extension", LATE, UNIT, "--hours", "72")
    (only,) = json.loads(grader(copy, "diff", UNIT, "--json"))["differences"]
    assert (only["learner"], only["reasons"], only["cells"]) == (LATE, ["the extension changed"], [])
    assert (only["old_penalty"], only["new_penalty"]) == (pytest.approx(11.1), 0)
    assert (only["old_total"], only["new_total"]) == (pytest.approx(25.9), 37)
    assert row(course)["late"] == 49 * 3600


@pytest.mark.slow
def test_diff_says_what_another_due_time_changes(copy: CourseCopy) -> None:
    grade(copy)
    grader(copy, "due", UNIT, "2026-01-18 01:59")
    (only,) = json.loads(grader(copy, "diff", UNIT, "--json"))["differences"]
    assert only["reasons"] == ["the due time, the late policy or points given by hand changed"]
    assert (only["old_penalty"], only["new_penalty"]) == (pytest.approx(11.1), 0)


@pytest.mark.slow
def test_diff_says_that_points_by_hand_came_after_the_late_penalty(copy: CourseCopy, course: Course) -> None:
    grade(copy)
    by_hand(course, LATE, WRITTEN, 2.0)
    (only,) = json.loads(invoked(copy, "diff", UNIT, "--learner", LATE, "--json").stdout)["differences"]
    assert only["reasons"] == ["points were given by hand after the late penalty was taken"]
    assert (only["old_penalty"], only["new_penalty"]) == (pytest.approx(11.1), pytest.approx(11.7))


@pytest.mark.slow
def test_a_table_with_a_fault_stops_grading_before_anything_is_written(copy: CourseCopy, course: Course) -> None:
    table(course, HEAD + f"{LATE},{UNIT},,72,\nada,gates,,1,\n")
    before = {path: path.read_bytes() for path in course.var.rglob("*") if path.is_file()}
    for command in (["autograde", UNIT, "--force"], ["diff", UNIT]):
        done = invoked(copy, *command)
        assert done.returncode == 1
        assert said_once(done.stderr).startswith("error: line 3 of grader/var/extensions.csv cannot be read")
    assert {path: path.read_bytes() for path in course.var.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_a_policy_with_a_fault_stops_grading_before_anything_is_written(copy: CourseCopy, course: Course) -> None:
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("c.LatePolicy.per_day = 10\n")
    before = {path: path.read_bytes() for path in course.var.rglob("*") if path.is_file()}
    for command in (["autograde", UNIT, "--force"], ["diff", UNIT], ["due", UNIT], ["scores", UNIT]):
        done = invoked(copy, *command)
        assert done.returncode == 1
        assert said_once(done.stderr).startswith(
            "error: in nbgrader_config.py, c.LatePolicy.per_day is '10'; write"
        )
    assert {path: path.read_bytes() for path in course.var.rglob("*") if path.is_file()} == before


@pytest.mark.slow
def test_extensions_are_listed_with_the_learner_s_own_due_time(copy: CourseCopy) -> None:
    grader(copy, "extension", LATE, UNIT, "--hours", "24", "--reason", "=HYPERLINK(1)")
    grader(copy, "extension", "zoe", UNIT, "--until", "2026-02-01 12:00")
    assert [(one["learner"], one["until"], one["reason"]) for one in listed(copy)] == [
        (LATE, "2026-01-16T23:59:00Z", "'=HYPERLINK(1)"),
        ("zoe", "2026-02-01T11:00:00Z", ""),
    ]
    assert "2026-01-17 00:59 Europe/Berlin" in grader(copy, "extension", LATE)
    assert "zoe" not in grader(copy, "extension", LATE)


@pytest.mark.slow
def test_what_nbgrader_recorded_goes_into_the_first_table(copy: CourseCopy, course: Course) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        gradebook.grant_extension(UNIT, LATE, hours=30)
    grader(copy, "extension", "zoe", UNIT, "--hours", "5")
    assert [(one["learner"], one["hours"]) for one in listed(copy)] == [(LATE, 30), ("zoe", 5)]
    grade(copy)
    assert row(course)["late"] == 19 * 3600


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            [LATE, UNIT, "--until", "2026-01-10 12:00"],
            "the unit is due 2026-01-16 00:59 Europe/Berlin for everybody",
        ),
        ([LATE, UNIT, "--until", "soon"], "'soon' cannot be taken for a time"),
        ([LATE, UNIT, "--hours", "100000"], "100000 hours are more than ten years"),
        ([LATE, UNIT, "--remove"], "there is none to be removed"),
        ([LATE, "gates", "--hours", "1"], "there is no unit 'gates'"),
        (["../x", UNIT, "--hours", "1"], "'../x' can be no learner's id"),
    ],
)
def test_an_extension_that_makes_no_sense_is_one_sentence_and_not_written(
    copy: CourseCopy, course: Course, arguments: list[str], sentence: str
) -> None:
    done = invoked(copy, "extension", *arguments)
    assert done.returncode == 1
    assert sentence in said_once(done.stderr)
    assert not path_of(course).exists()


@pytest.mark.slow
def test_a_name_of_whom_nothing_is_there_is_remarked(copy: CourseCopy) -> None:
    done = invoked(copy, "extension", "zoe", UNIT, "--hours", "5")
    assert done.returncode == 0
    assert "Nothing of zoe is there so far" in done.stderr


@pytest.mark.slow
def test_a_due_time_that_is_taken_away_makes_nobody_late_whatever_extension_there_is(
    copy: CourseCopy, course: Course
) -> None:
    grader(copy, "extension", LATE, UNIT, "--hours", "5")
    grade(copy)
    grader(copy, "due", UNIT, "--remove")
    grade(copy)
    found = rows(course, LATE)[LATE]
    assert (found["late"], found["penalty"]) == (0, None)
