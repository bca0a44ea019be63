"""`grader export`: where the file goes, what is never overwritten, and one sentence for what cannot be done."""

import csv
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course import Course
from grader.exceptions import GraderError
from tests.helpers import CourseCopy, said_once

pytestmark = pytest.mark.slow

UNIT = "activations"
CANVAS = (
    "Student,ID,SIS Login ID,Section,activations (1001)\n    Points Possible,,,,40\n"
    '"Lovelace, Ada",4711,alovelace,Group 1,\n"Noether, Emmy",4714,enoether,Group 1,\n'
)


def invoke(course: Course, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["--course", str(course.root), "export", *arguments], prog_name="grader")


@pytest.fixture
def canvas(tmp_path: Path) -> Path:
    path = tmp_path / "canvas.csv"
    path.write_text(CANVAS)
    return path


def test_without_arguments_all_scores_go_to_grades_csv(course: Course) -> None:
    result = invoke(course)
    assert result.output == "Scores are in grader/var/grades.csv.\n"
    with course.grades_csv.open(encoding="utf-8", newline="") as stream:
        assert {row["student_id"] for row in csv.DictReader(stream)} >= {"alovelace", "kgoedel"}


def test_a_table_goes_to_standard_output(course: Course) -> None:
    result = invoke(course, UNIT, "--format", "json", "-o", "-")
    assert [row["learner"] for row in json.loads(result.stdout)] == ["alovelace", "aturing", "ghopper", "kgoedel"]


def test_a_table_goes_to_a_file_of_its_own(course: Course) -> None:
    assert invoke(course, UNIT).stdout == "Scores are in grader/var/export/activations.csv.\n"
    assert (course.var / "export" / "activations.csv").read_text(encoding="utf-8").startswith("learner,name,unit,")


def test_the_file_of_its_own_is_written_again(course: Course) -> None:
    assert invoke(course, UNIT).exit_code == 0
    assert invoke(course, UNIT).exit_code == 0


def test_a_file_from_canvas_is_filled(course: Course, canvas: Path) -> None:
    result = invoke(course, UNIT, "--format", "canvas", "--template", str(canvas))
    assert result.stdout == "Scores are in grader/var/export/activations-canvas.csv.\n"
    assert result.stderr.splitlines() == [
        "activations: graded, and not in the file (2): aturing, ghopper",
        "activations: in the file, and not graded (1): Noether, Emmy",
        "1 scores filled in.",
    ]
    filled = (course.var / "export" / "activations-canvas.csv").read_text(encoding="utf-8")
    assert filled == CANVAS.replace("alovelace,Group 1,", "alovelace,Group 1,40")


def test_the_template_is_never_overwritten(course: Course, canvas: Path, tmp_path: Path) -> None:
    link = tmp_path / "again.csv"
    link.symlink_to(canvas)
    for target in (canvas, link):
        result = invoke(course, UNIT, "--format=canvas", f"--template={canvas}", f"-o{target}", "--force")
        assert isinstance(result.exception, GraderError)
        assert str(result.exception) == f"{target} is the file that is filled in; name another one."
    assert canvas.read_text() == CANVAS


def test_a_file_that_is_there_is_overwritten_by_force_only(course: Course, canvas: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("mine")
    arguments = [UNIT, "--format=canvas", f"--template={canvas}", f"-o{target}"]
    assert "is there already; name another file, or overwrite it" in str(invoke(course, *arguments).exception)
    assert target.read_text() == "mine"
    assert invoke(course, *arguments, "--force").exit_code == 0
    assert "alovelace,Group 1,40" in target.read_text()


def test_what_cannot_be_filled_leaves_everything_as_it_was(course: Course, canvas: Path, tmp_path: Path) -> None:
    canvas.write_text(CANVAS.replace("40", "50"))
    target = tmp_path / "out.csv"
    target.write_text("mine")
    arguments = [UNIT, "--format=canvas", f"--template={canvas}", f"-o{target}", "--force"]
    assert "--scale" in str(invoke(course, *arguments).exception)
    assert target.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["canvas.csv", "course", "out.csv"]


def test_a_folder_that_cannot_be_made_is_one_sentence(course: Course, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = invoke(course, UNIT, "-o", str(tmp_path / "file" / "out.csv"))
    assert isinstance(result.exception, GraderError)
    assert "out.csv cannot be written: its folder is a file; make room" in str(result.exception)


def test_a_roster_gives_the_ids(course: Course, canvas: Path, tmp_path: Path) -> None:
    canvas.write_text(CANVAS.replace("alovelace", "x77"))
    roster = tmp_path / "roster.csv"
    roster.write_text("login,id,name\nalovelace,4711,Ada L.\naturing,4712,Alan T.\n")
    before = invoke(course, UNIT, "--format=canvas", f"--template={canvas}", "-o-")
    assert "found by name alone (1)" in before.stderr
    after = invoke(course, UNIT, "--format=canvas", f"--template={canvas}", f"--roster={roster}", "-o-")
    assert "found by name alone" not in after.stderr
    assert "x77,Group 1,40" in after.stdout


def test_a_roster_that_is_missing_is_one_sentence(course: Course, canvas: Path) -> None:
    result = invoke(course, UNIT, "--format=canvas", f"--template={canvas}", "--roster=/nowhere/roster.csv")
    assert "/nowhere/roster.csv cannot be used as a list of learners: no such file" in str(result.exception)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--format", "canvas"],
        [UNIT, "--format", "canvas"],
        [UNIT, "--format", "xlsx"],
        [UNIT, "--template", "x.csv"],
        [UNIT, "--format", "json", "--column", "x"],
        [UNIT, "mechanism", "--format", "moodle", "--template", "x.csv"],
        [UNIT, "mechanism", "--format", "canvas", "--template", "x.csv", "--column", "x"],
        [UNIT, "--incomplete", "maybe"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_exit_status_2(course: Course, arguments: list[str]) -> None:
    assert invoke(course, *arguments).exit_code == 2


def test_the_command_says_what_is_wrong_in_one_sentence(scored: CourseCopy) -> None:
    done = scored.grader("export", UNIT, "--format", "moodle", "--template", os.devnull)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said_once(done.stderr).startswith(f"error: {os.devnull} cannot be used: its first line has none of")
