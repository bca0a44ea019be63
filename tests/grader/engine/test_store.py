"""Submissions as a stranger may leave them, and graded notebooks as they are kept."""

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest

from grader.course import Course
from grader.engine.read import UnreadableError
from grader.engine.restore import Assignment
from grader.engine.store import (
    RECORD_KEY,
    Submission,
    collect,
    digest,
    graded_notebook,
    harmless,
    load_assignment,
    notebook_bytes,
    read_bytes,
    record_of,
    require_learner,
    valid_bytes,
    write_graded,
)
from grader.engine.verdict import GRADED, MISSING, REPAIRED, UNREADABLE, Limits, Note, TestResult, Verdict
from grader.exceptions import BrokenReferenceError, InvalidLearnerError, UnknownUnitError
from grader.notebooks import grade_id
from tests.grader.engine.courses import UNIT, hand_in, restored
from tests.helpers import ROOT, copy_of_course

LIMITS = Limits(submission_bytes=1000)
SMALL = b'{"nbformat": 4}'


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return Course(copy_of_course(tmp_path / "course", f"solutions/{UNIT}").root)


@pytest.fixture(scope="module")
def assignment() -> Assignment:
    return load_assignment(Course(ROOT), UNIT)


def read(course: Course, learner: str = "ada") -> bytes | None:
    return read_bytes(course, learner, UNIT, LIMITS)


# --------------------------------------------------------------------------------------------- submissions


def test_a_submission_is_read_with_its_time(course: Course) -> None:
    hand_in(course, "ada", SMALL)
    hand_in(course, "ada", "2026-01-15 22:29:00.5 UTC\n", "timestamp.txt")
    assert collect(course, "ada", UNIT, LIMITS) == Submission(SMALL, datetime(2026, 1, 15, 22, 29, 0, 500_000))


@pytest.mark.parametrize(
    ("text", "hour"),
    [
        ("2026-01-15 12:00:00", 12),
        ("2026-01-15T12:00:00+02:00", 10),
        ("2026-01-15 12:00:00 +0100", 11),
        ("2026-01-15 12:00:00 Europe/Berlin", 11),
    ],
)
def test_times_are_in_utc(course: Course, text: str, hour: int) -> None:
    hand_in(course, "ada", SMALL)
    hand_in(course, "ada", text, "timestamp.txt")
    found = collect(course, "ada", UNIT, LIMITS)
    assert found is not None
    assert found.timestamp == datetime(2026, 1, 15, hour)


@pytest.mark.parametrize(
    "text",
    [
        "yesterday",
        "0001-01-01 00:00:00 +2300",
        "2026-99-99 00:00",
        "2026-01-15 12:00:00 /etc/localtime",
        "2026-01-15 12:00 ../../x",
        "1" * 5000,
        "\N{FULLWIDTH DIGIT TWO}026",
    ],
)
def test_a_time_that_is_none_is_noted(course: Course, text: str) -> None:
    hand_in(course, "ada", SMALL)
    hand_in(course, "ada", text, "timestamp.txt")
    found = collect(course, "ada", UNIT, LIMITS)
    assert found is not None
    assert found.timestamp is None
    assert ["timestamp.txt" in note.instructor for note in found.notes] == [True]


@pytest.mark.parametrize("there", ["nothing", "learner", "unit"])
def test_what_is_not_there_is_none(course: Course, there: str) -> None:
    folders = {"nothing": "", "learner": "ada", "unit": f"ada/{UNIT}"}
    (course.submitted / folders[there]).mkdir(parents=True)
    assert read(course) is None


def test_no_more_than_a_submission_may_have_is_read(course: Course) -> None:
    hand_in(course, "ada", b"x" * 100_000)
    assert read(course) == b"x" * 1001


def test_the_only_notebook_of_another_name_counts_and_is_noted(course: Course) -> None:
    hand_in(course, "ada", SMALL, "activations (1)\n<b>.ipynb")
    found = collect(course, "ada", UNIT, LIMITS)
    assert found is not None
    assert found.data == SMALL
    assert "'activations (1)\\n<b>.ipynb'" in found.notes[0].instructor


def test_of_several_notebooks_none_is_guessed(course: Course) -> None:
    hand_in(course, "ada", SMALL, "a.ipynb")
    hand_in(course, "ada", SMALL, "b.ipynb")
    with pytest.raises(UnreadableError, match="more than one other notebook"):
        read(course)


def test_the_notebook_of_the_right_name_counts_beside_others(course: Course) -> None:
    hand_in(course, "ada", b"other", "a.ipynb")
    hand_in(course, "ada", SMALL)
    assert read(course) == SMALL


def test_a_checkpoint_is_no_notebook(course: Course) -> None:
    hand_in(course, "ada", SMALL, ".ipynb_checkpoints.ipynb")
    assert read(course) is None


@pytest.mark.parametrize("part", ["learner", "unit", "file", "only-file"])
def test_no_part_of_the_path_is_followed_through_a_link(course: Course, part: str) -> None:
    secret = hand_in(course, "bob", b"the work of bob")
    link = {
        "learner": course.submitted / "ada",
        "unit": course.submitted / "ada" / UNIT,
        "file": course.submitted / "ada" / UNIT / f"{UNIT}.ipynb",
        "only-file": course.submitted / "ada" / UNIT / "mine.ipynb",
    }[part]
    link.parent.mkdir(parents=True, exist_ok=True)
    target = {"learner": secret.parents[1], "unit": secret.parent}.get(part, secret)
    link.symlink_to(target)
    with pytest.raises(UnreadableError, match="link"):
        read(course)


def test_a_link_as_time_is_not_followed(course: Course) -> None:
    hand_in(course, "bob", "2026-01-15 12:00:00", "timestamp.txt")
    path = hand_in(course, "ada", SMALL)
    path.with_name("timestamp.txt").symlink_to(course.submitted / "bob" / UNIT / "timestamp.txt")
    found = collect(course, "ada", UNIT, LIMITS)
    assert found is not None
    assert found.timestamp is None


@pytest.mark.parametrize("name", [f"{UNIT}.ipynb", "timestamp.txt"])
def test_a_pipe_does_not_keep_the_grader_waiting(course: Course, name: str) -> None:
    path = hand_in(course, "ada", SMALL).with_name(name)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    if name == "timestamp.txt":
        assert read(course) == SMALL
    else:
        with pytest.raises(UnreadableError, match="device"):
            read(course)


def test_a_folder_in_the_notebook_s_place_is_named(course: Course) -> None:
    (course.submitted / "ada" / UNIT / f"{UNIT}.ipynb").mkdir(parents=True)
    with pytest.raises(UnreadableError, match="folder"):
        read(course)


def test_a_file_in_the_folder_s_place_is_named(course: Course) -> None:
    (course.submitted / "ada").mkdir(parents=True)
    (course.submitted / "ada" / UNIT).write_text("x")
    with pytest.raises(UnreadableError, match="folder"):
        read(course)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(course: Course) -> None:
    hand_in(course, "ada", SMALL).chmod(0)
    with pytest.raises(UnreadableError, match="cannot be opened"):
        read(course)


@pytest.mark.parametrize(
    "learner", ["ada", "learner-01", "Zoë", "a.b@c.edu", "O'Brien", "ada lovelace", "x", "a+b"]
)
def test_usual_ids_of_learners_are_good(learner: str) -> None:
    require_learner(learner)


OUTSIDE = ["", ".", "..", "...", "../x", "a/b", "/etc", ".hidden", "-rf", "~", "a\\b"]
ODD = ["a\x00b", "a\nb", " a", "a ", "a.", "a*", "[ab]", "a?", "a,b", "{x}", "%(a)s", "\udcff", "a\u202eb"]
LONG = ["x" * 129, "é" * 101]


@pytest.mark.parametrize("learner", [*OUTSIDE, *ODD, *LONG])
def test_names_that_lead_elsewhere_are_refused(course: Course, learner: str) -> None:
    with pytest.raises(InvalidLearnerError):
        read(course, learner)
    with pytest.raises(InvalidLearnerError):
        write_graded(course, learner, UNIT, b"", None)
    assert not course.autograded.exists()


# ----------------------------------------------------------------------------------------- the assignment


def test_an_assignment_has_its_files(course: Course) -> None:
    folder = course.reference(UNIT).parent
    (folder / "data").mkdir()
    (folder / "data" / "x.csv").write_text("1,2")
    (folder / ".hidden").write_text("")
    assert load_assignment(course, UNIT).files == (("data/x.csv", b"1,2"),)


def test_an_assignment_that_cannot_be_read_is_named(course: Course) -> None:
    course.reference(UNIT).write_text("{")
    with pytest.raises(BrokenReferenceError):
        load_assignment(course, UNIT)
    with pytest.raises(UnknownUnitError):
        load_assignment(course, "none")


def test_the_digest_tells_submissions_times_and_assignments_apart(assignment: Assignment) -> None:
    one = Submission(SMALL, datetime(2026, 1, 1))
    other = Assignment(assignment.unit, assignment.reference, (("x", b""),))
    found = [
        digest(assignment, one),
        digest(assignment, Submission(SMALL)),
        digest(assignment, Submission(b"")),
        digest(assignment, None),
        digest(other, one),
    ]
    assert len({tuple(sorted(entry.items())) for entry in found}) == 5
    assert digest(assignment, one) == found[0]


# --------------------------------------------------------------------------------------- graded notebooks


def verdict(assignment: Assignment, status: str = GRADED, **more: Any) -> Verdict:
    fields: dict[str, Any] = {"notebook": restored(assignment, {"relu": "def relu(z): ..."}, ["a = 1", "b = 1"])}
    return Verdict(status, "To the learner.", "To the instructor.", **(fields | more))


def test_a_graded_notebook_is_valid_and_always_the_same(assignment: Assignment) -> None:
    first = graded_notebook(assignment, verdict(assignment), {"x": "y"})
    nbformat.validate(first)
    again = graded_notebook(assignment, verdict(assignment), {"x": "y"})
    assert notebook_bytes(first) == notebook_bytes(again)
    record = first["metadata"][RECORD_KEY]
    assert (record["status"], record["sandbox"], record["x"]) == (GRADED, "full", "y")
    assert "To the" not in notebook_bytes(first).decode()


@pytest.mark.parametrize("status", [MISSING, UNREADABLE])
def test_where_nothing_could_be_read_the_cells_are_there_without_answers(
    assignment: Assignment, status: str
) -> None:
    notebook = graded_notebook(assignment, verdict(assignment, status, notebook=None))
    nbformat.validate(notebook)
    first, *cells = notebook["cells"]
    assert (first["cell_type"], first["source"]) == ("markdown", "**To the learner.**")
    assert [grade_id(cell) for cell in cells] == [grade_id(cell) for cell in assignment.reference["cells"]]
    text = notebook_bytes(notebook).decode()
    assert "np.maximum" in json.dumps(assignment.answers)
    assert all(source not in [cell["source"] for cell in cells] for source in assignment.answers.values())
    assert "To the instructor" not in text


def test_notes_are_listed_and_cannot_format_or_link(assignment: Assignment) -> None:
    note = Note("x", "The cell '<script>alert(1)</script>' [a](http://b) `c` *d*.", "")
    notebook = graded_notebook(assignment, verdict(assignment, REPAIRED, notes=(note,)))
    nbformat.validate(notebook)
    assert notebook["cells"][0]["source"].endswith("- The cell '?script?alert(1)?/script?' ?a?(http://b) ?c? ?d?.")


def test_harmless_text_is_one_line_and_bounded() -> None:
    assert harmless("a\n# b\x1b[0m") == "a ? b??0m"
    assert len(harmless("x" * 10_000)) == 4_000


def graded_files(course: Course) -> list[str]:
    return sorted(path.relative_to(course.autograded).as_posix() for path in course.autograded.rglob("*.*"))


def test_a_graded_notebook_is_written_with_its_time_and_replaced_whole(course: Course) -> None:
    write_graded(course, "ada", UNIT, b"one", datetime(2026, 1, 15, 22, 29))
    folder = course.autograded / "ada" / UNIT
    assert (folder / "timestamp.txt").read_text() == "2026-01-15 22:29:00 UTC\n"
    (folder / "left").write_text("of nbgrader's")
    write_graded(course, "ada", UNIT, b"two", None)
    assert (folder / f"{UNIT}.ipynb").read_bytes() == b"two"
    assert graded_files(course) == [f"ada/{UNIT}/{UNIT}.ipynb"]
    assert [path.name for path in folder.iterdir()] == [f"{UNIT}.ipynb"]


def test_what_was_there_stays_when_the_new_cannot_be_written(
    course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_graded(course, "ada", UNIT, b"one", None)

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as stream:
            stream.write(data[:1])
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="no space left"):
        write_graded(course, "ada", UNIT, b"two", None)
    assert (course.autograded / "ada" / UNIT / f"{UNIT}.ipynb").read_bytes() == b"one"
    assert [path.name for path in (course.autograded / "ada").iterdir()] == [UNIT]


def test_what_a_killed_run_left_is_cleared_away(course: Course) -> None:
    (course.autograded / "ada" / f".{UNIT}-left" / "new").mkdir(parents=True)
    write_graded(course, "ada", UNIT, b"one", None)
    assert [path.name for path in (course.autograded / "ada").iterdir()] == [UNIT]


def test_a_link_in_the_place_of_results_is_replaced_and_not_followed(course: Course, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").write_text("")
    (course.autograded / "ada").mkdir(parents=True)
    (course.autograded / "ada" / UNIT).symlink_to(elsewhere)
    write_graded(course, "ada", UNIT, b"one", None)
    assert [path.name for path in elsewhere.iterdir()] == ["kept"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"metadata": 1}', '{"metadata": {"ffn-grading": []}}'])
def test_a_notebook_without_a_record_has_an_empty_one(course: Course, text: str) -> None:
    write_graded(course, "ada", UNIT, text.encode(), None)
    assert record_of(course, "ada", UNIT) == {}
    assert record_of(course, "zoe", UNIT) == {}


def test_a_record_is_read_back(course: Course, assignment: Assignment) -> None:
    notebook = notebook_bytes(graded_notebook(assignment, verdict(assignment), {"submission": "abc"}))
    write_graded(course, "ada", UNIT, notebook, None)
    found = record_of(course, "ada", UNIT)
    assert (found["status"], found["sandbox"], found["submission"]) == (GRADED, "full", "abc")


def test_the_record_has_what_became_of_every_test_cell(assignment: Assignment) -> None:
    result = TestResult("test_relu", "relu", 0.0, 1.0, "relu is wrong on 1.")
    note = Note("relu", "To the learner.", "To the instructor.")
    graded = verdict(
        assignment, results=(result,), notes=(note,), flags=("relu uses ffn",), timings=(("cell 1", 0.00149),)
    )
    record = graded_notebook(assignment, graded)["metadata"][RECORD_KEY]
    assert record["results"] == [
        {"cell": "test_relu", "step": "relu", "points": 0.0, "max_points": 1.0, "message": "relu is wrong on 1."}
    ]
    assert record["notes"] == [{"cell": "relu", "learner": "To the learner.", "instructor": "To the instructor."}]
    assert record["flags"] == ["relu uses ffn"]
    assert record["seconds"] == {"cell 1": 0.001}


def test_what_a_learner_chose_is_bounded_in_the_record_and_can_be_written(assignment: Assignment) -> None:
    result = TestResult("test_relu", "relu", 0.0, 1.0, "x" * 100_000)
    notes = (Note("\ud800", "\udfff" * 5_000, "y" * 5_000),) * 5_000
    graded = verdict(assignment, results=(result,), notes=notes, flags=("z" * 5_000,) * 5_000)
    notebook = graded_notebook(assignment, graded)
    assert len(json.dumps(notebook["metadata"][RECORD_KEY])) < 400_000
    assert json.loads(notebook_bytes(notebook)) == notebook


def good(assignment: Assignment) -> Any:
    """A graded notebook with an output of every kind."""
    notebook = graded_notebook(assignment, verdict(assignment, REPAIRED))
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    texts = {"text/plain": "1"}
    cell["outputs"] = [
        {"output_type": "stream", "name": "stdout", "text": "x"},
        {"output_type": "error", "ename": "E", "evalue": "e", "traceback": ["t"]},
        {"output_type": "display_data", "data": texts, "metadata": {}},
        {"output_type": "execute_result", "data": texts, "metadata": {}, "execution_count": 1},
    ]
    return json.loads(json.dumps(notebook))


def test_a_good_notebook_is_written_as_it_is(assignment: Assignment) -> None:
    notebook = good(assignment)
    nbformat.validate(notebook)
    assert valid_bytes(notebook) == notebook_bytes(notebook)


def code_cell(notebook: Any) -> Any:
    return next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda n: n["cells"].insert(1, dict(n["cells"][0])),
        lambda n: n["cells"].insert(1, "x"),
        lambda n: n.update(nbformat_minor=4),
        lambda n: n["cells"][0].update(id="a b"),
        lambda n: n["cells"][0].update(source=1),
        lambda n: n["cells"][0].update(metadata=[]),
        lambda n: n["cells"][0].update(cell_type="heading"),
        lambda n: n["cells"][0].update(outputs=[]),
        lambda n: code_cell(n).pop("outputs"),
        lambda n: code_cell(n).update(execution_count="1"),
        lambda n: code_cell(n)["outputs"][0].update(text=None),
        lambda n: code_cell(n)["outputs"][0].update(name=1),
        lambda n: code_cell(n)["outputs"][0].update(more="x"),
        lambda n: code_cell(n)["outputs"][1].update(traceback=[1]),
        lambda n: code_cell(n)["outputs"][1].pop("ename"),
        lambda n: code_cell(n)["outputs"][2].update(data={"text/plain": 1}),
        lambda n: code_cell(n)["outputs"][2].update(output_type="other"),
        lambda n: code_cell(n)["outputs"][3].update(execution_count="x"),
    ],
)
def test_what_is_no_cell_of_a_notebook_is_refused(assignment: Assignment, spoil: Callable[[Any], Any]) -> None:
    notebook = good(assignment)
    spoil(notebook)
    with pytest.raises(ValueError, match="graded notebook"):
        valid_bytes(notebook)


def times(course: Course) -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in course.autograded.rglob("*.*") if path.is_file()}


def test_a_notebook_that_differs_in_seconds_alone_is_left_as_it_is(course: Course, assignment: Assignment) -> None:
    when = datetime(2026, 1, 15)
    first, other = (
        notebook_bytes(graded_notebook(assignment, verdict(assignment, timings=(("relu", seconds),))))
        for seconds in (0.5, 0.75)
    )
    assert first != other
    write_graded(course, "ada", UNIT, first, when)
    before = times(course)
    write_graded(course, "ada", UNIT, other, when)
    assert times(course) == before
    write_graded(course, "ada", UNIT, other, None)
    assert record_of(course, "ada", UNIT)["seconds"] == {"relu": 0.75}
