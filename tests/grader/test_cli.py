"""The command `grader`: help, exit status, and one sentence for whatever a person has to mend."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from tests.helpers import ROOT, CourseCopy, copy_of_course, said_once

COMMANDS = [
    "release",
    "collect",
    "autograde",
    "feedback",
    "export",
    "scores",
    "check",
    "doctor",
    "demo",
    "diff",
    "due",
    "extension",
    "report",
]


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, prog_name="grader")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A course without units and without anything handed in."""
    made = copy_of_course(tmp_path_factory.mktemp("bare") / "course", "nbgrader_config.py", "grader", "ffn")
    (made.root / "solutions" / "gates").mkdir(parents=True)
    (made.root / "solutions" / "gates" / "gates.ipynb").write_text("{}")
    return made


# ------------------------------------------------------------------------------------------------ help


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_the_help_lists_every_command_with_a_description(option: str) -> None:
    result = invoke(option)
    assert result.exit_code == 0
    listed = dict(line.split(maxsplit=1) for line in result.output.split("Commands:\n")[1].splitlines())
    assert sorted(listed) == sorted(COMMANDS) == sorted(cli.commands)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(command: str) -> None:
    result = invoke(command, "--help")
    assert result.exit_code == 0
    usage, text = result.output.split("\n\n")[:2]
    assert usage.startswith(f"Usage: grader {command}")
    assert text.strip().endswith(".")


def test_the_help_explains_the_exit_status() -> None:
    assert "Exit status: 0 all well, 1 something could not be done, 2 wrong usage." in " ".join(
        invoke("--help").output.split()
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_needs_no_course(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke(command, "--help").exit_code == 0


def test_the_help_does_not_wait_for_what_only_commands_need() -> None:
    heavy = ["IPython", "jsonschema", "matplotlib", "nbconvert", "nbformat", "nbgrader", "numpy"]
    look = f"import sys, grader.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", look], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_version_is_the_package_s() -> None:
    assert invoke("--version").output == "grader, version 0.1.0\n"


# ------------------------------------------------------------------------------------------ wrong usage


@pytest.mark.parametrize(
    "arguments",
    [
        ["grade"],
        ["autograde"],
        ["feedback"],
        ["scores"],
        ["scores", "gates", "activations"],
        ["demo", "activations", "--seed", "one"],
        ["export", "gates", "--format", "canvas"],
        ["feedback", "gates", "--worksheet", "worksheet.csv"],
        ["autograde", "gates", "--learner"],
        ["--course", "/nowhere", "export"],
        ["diff"],
        ["due"],
        ["due", "gates", "2026-11-30 23:59", "--remove"],
        ["extension", "ada", "--hours", "1"],
        ["extension", "ada", "gates", "--hours", "0"],
        ["extension", "ada", "gates", "--hours", "1", "--until", "2026-11-30 23:59"],
        ["extension", "ada", "gates", "--reason", "ill"],
        ["scores", "gates", "--xml"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_exit_status_2_and_says_why(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.output.splitlines()[-1].startswith("Error: ")


# ----------------------------------------------------------------------- what a person has to mend, as a command


UNKNOWN = "error: there is no unit 'gate' in solutions/; the units are: gates."
NOBODY = "error: there is no submission for 'gates'; put it at grader/var/submitted/LEARNER/gates/gates.ipynb, or"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["release", "gate"], UNKNOWN),
        (["autograde", "gate"], UNKNOWN),
        (["feedback", "gate"], UNKNOWN),
        (["scores", "gate"], UNKNOWN),
        (["check", "answers.ipynb", "--unit", "gate"], UNKNOWN),
        (["check", "answers.ipynb"], "error: 'answers.ipynb' cannot be checked: there is no such file; "),
        (
            ["check", "solutions/gates/gates.ipynb"],
            "error: 'gates.ipynb' cannot be checked: it is no notebook that",
        ),
        (["autograde", "gates"], NOBODY),
        (["diff", "gate"], UNKNOWN),
        (["diff", "gates"], NOBODY),
        (["due", "gate"], UNKNOWN),
        (["extension", "ada", "gate", "--hours", "1"], UNKNOWN),
        (
            ["autograde", "gates", "--learner", "ada"],
            "error: learner 'ada' has no submission for 'gates'; put it at",
        ),
        (["demo", "gates"], "error: there is no demo class for the unit 'gates'; there is one for: activations."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_sentence_and_exit_status_1(
    bare: CourseCopy, arguments: list[str], sentence: str
) -> None:
    done = bare.grader(*arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert said_once(done.stderr).startswith(sentence)


@pytest.mark.parametrize("command", [["release"], ["export"], ["demo"], ["check", "answers.ipynb"]], ids=" ".join)
def test_outside_of_a_course_one_sentence_says_so(
    tmp_path_factory: pytest.TempPathFactory, bare: CourseCopy, command: list[str]
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    done = bare.grader("--course", str(outside), *command)
    assert done.returncode == 1
    assert said_once(done.stderr).startswith(f"error: {outside} is not inside a course: no nbgrader_config.py was")


def test_the_sentence_stays_on_one_line_however_long_it_is(bare: CourseCopy) -> None:
    assert said_once(bare.grader("scores", "x" * 200).stderr).endswith("the units are: gates.")


def test_a_reference_that_cannot_be_released_is_one_sentence(bare: CourseCopy) -> None:
    done = bare.grader("release")
    assert done.returncode == 1
    assert said_once(done.stderr).startswith("error: nbgrader could not release 'gates': ")


def test_the_message_of_an_error_is_not_read_as_markup(bare: CourseCopy) -> None:
    assert "there is no unit '[bold]x' in solutions/" in said_once(bare.grader("scores", "[bold]x").stderr)


# --------------------------------------------------------------------------- a course without any results


@pytest.mark.parametrize("command", [["scores", "gates"], ["scores", "gates", "--json"]])
def test_scores_before_anything_was_graded_are_empty(bare: CourseCopy, command: list[str]) -> None:
    done = bare.grader(*command)
    assert done.returncode == 0, done.stderr
    if "--json" in command:
        assert json.loads(done.stdout) == []
    else:
        assert "Scores of the unit gates" in done.stdout


def test_feedback_before_anything_was_graded_says_what_to_do(bare: CourseCopy) -> None:
    done = bare.grader("feedback", "gates")
    assert done.returncode == 1
    assert "grader autograde gates" in said_once(done.stderr)
