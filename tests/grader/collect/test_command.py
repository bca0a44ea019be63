"""The command `grader collect`: what a person sees, what a program reads, and the exit status."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.course import Course
from grader.exceptions import GraderError
from tests.grader.collect.downloads import (
    CANVAS_LIST,
    RELEASED,
    SMALL,
    UNIT,
    blackboard,
    canvas,
    encrypted_member,
    zipped,
)
from tests.helpers import CODE, copy_of_course, said_once


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a download and a list of learners."""
    zipped(tmp_path / "canvas.zip", canvas())
    (tmp_path / "list.csv").write_text(CANVAS_LIST, encoding="utf-8")
    return tmp_path


def invoke(course: Course, *arguments: str | Path) -> Result:
    words = ["--course", str(course.root), "collect", UNIT, *map(str, arguments)]
    return CliRunner(env={"COLUMNS": "160"}).invoke(cli, words, prog_name="grader")


def test_the_summary_shows_each_learner_with_file_attempts_and_late_mark(course: Course, files: Path) -> None:
    result = invoke(course, files / "canvas.zip", "--roster", files / "list.csv")
    assert result.exit_code == 0, result.output
    lines = {line.split()[1]: line for line in result.stdout.splitlines() if line.startswith("│")}
    assert list(lines) == ["alovelace", "ghopper", "job"]
    assert "hoppergrace_LATE_102_5002_activations.ipynb" in lines["ghopper"]
    assert " late " in lines["ghopper"]
    assert " late " not in lines["job"]
    assert "Nothing handed in: aturing (Turing, Alan)" in result.stdout
    assert "no times of handing in" in result.stdout
    assert "ghopper: not collected, beside the notebook: hoppergrace_LATE_102_5003_drawing.png" in result.stderr


def test_times_are_shown_in_utc_and_the_zone_is_named(course: Course, files: Path) -> None:
    result = invoke(course, zipped(files / "bb.zip", blackboard()), "--timezone", "Europe/Berlin")
    assert "2026-11-30 13:05:09" in result.stdout
    assert "Times in the download were read as Europe/Berlin; --timezone names another zone." in result.stdout


def test_what_is_left_out_is_listed_and_ends_with_exit_status_1(course: Course, files: Path) -> None:
    (files / "list.csv").write_text("login,name\nalovelace,Ada Lovelace\n")
    result = invoke(course, files / "canvas.zip", "--roster", files / "list.csv")
    assert isinstance(result.exception, GraderError)
    assert str(result.exception).startswith("2 submissions were left out, see above;")
    left = [line for line in result.stderr.splitlines() if line.startswith("left out: ")]
    assert len(left) == 2
    assert left[0].startswith(
        "left out: hoppergrace (102): hoppergrace_LATE_102_5002_activations.ipynb: nobody in the"
    )
    assert course.learners(UNIT) == ["alovelace"]


def test_json_has_what_the_help_says(course: Course, files: Path) -> None:
    (files / "list.csv").write_text(
        "login,name,email\nalovelace,Ada Lovelace,\naturing,Alan Turing,alan@example.edu\n"
    )
    result = invoke(course, files / "canvas.zip", "--roster", files / "list.csv", "--json")
    found = json.loads(result.stdout)
    assert set(found) == {"unit", "format", "timezone", "dry_run", "collected", "left_out", "missing"}
    assert found["collected"] == [
        {
            "learner": "alovelace",
            "file": "lovelaceada_101_5001_activations-1.ipynb",
            "time": None,
            "attempts": 1,
            "late": False,
            "done": "collected",
            "beside": [],
        }
    ]
    assert {left["who"] for left in found["left_out"]} == {"hoppergrace (102)", "obrienjosé (103)"}
    assert found["missing"] == [{"id": "aturing", "name": "Alan Turing", "email": "alan@example.edu"}]


def test_a_dry_run_says_that_it_is_one(course: Course, files: Path) -> None:
    result = invoke(course, files / "canvas.zip", "--dry-run")
    assert result.exit_code == 0
    assert "What would be collected for the unit activations (Canvas)" in result.stdout
    assert not course.submitted.exists()


def test_names_are_not_read_as_markup(course: Course, files: Path) -> None:
    path = zipped(files / "odd.zip", {"ada_1_2_[red]x[-red].ipynb": SMALL, "[bold]_3_4.ipynb": SMALL})
    result = invoke(course, path)
    assert "ada_1_2_[red]x[-red].ipynb" in result.stdout
    assert "left out: [bold]_3_4.ipynb: the name is not of the form that Canvas gives" in result.stderr


def test_a_large_class_is_shown_in_part(course: Course, files: Path) -> None:
    path = zipped(
        files / "many.zip", {f"learner{number}_{number}_1_activations.ipynb": SMALL for number in range(230)}
    )
    assert "and 30 more; --json lists all" in invoke(course, path).stdout


@pytest.mark.parametrize(
    "arguments", [[], ["x.zip", "y.zip"], ["x.zip", "--format", "canvass"], ["x.zip", "--roster"]]
)
def test_wrong_usage_ends_with_exit_status_2(arguments: list[str], course: Course) -> None:
    result = invoke(course, *arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: ")


@pytest.mark.slow
def test_as_a_command_collect_and_then_autograde(tmp_path: Path) -> None:
    copy = copy_of_course(tmp_path / "course", *CODE, f"solutions/{UNIT}", f"exercises/{UNIT}")
    zipped(copy.root / "canvas.zip", canvas(RELEASED))
    encrypted_member(copy.root / "locked.zip")
    for arguments, sentence in (
        (
            ["locked.zip"],
            "error: locked.zip is not collected, and nothing was changed: 'hoppergrace_LATE_102_5002_",
        ),
        (["nowhere.zip"], "error: nowhere.zip is not collected, and nothing was changed: there is no such file"),
        (
            ["canvas.zip", "--roster", "no.csv"],
            "error: no.csv cannot be used as a list of learners: No such file or",
        ),
        (
            ["canvas.zip", "--timezone", "X"],
            "error: there is no time zone 'X'; give one as in --timezone=Europe/Berlin.",
        ),
    ):
        done = copy.grader("collect", UNIT, *arguments)
        assert done.returncode == 1
        assert done.stdout == ""
        assert said_once(done.stderr).startswith(sentence)
    assert copy.grader("release", UNIT).returncode == 0
    assert copy.grader("collect", UNIT, "canvas.zip").returncode == 0
    done = copy.grader("autograde", UNIT, "--sandbox", "none", "--json")
    assert done.returncode == 0, done.stderr
    assert [entry["learner"] for entry in json.loads(done.stdout)] == ["hoppergrace", "lovelaceada", "obrienjosé"]
