"""What `make course` builds and when, and its summary; book and grader are stand-ins."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ffn.published import published
from tools import book, course, places
from tools.live.exceptions import LiveError

IDS = list(published())


class StandIn:
    """A course's folder; the book's builder does nothing, and calls of the command `grader` are written down."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[str] = []
        self.failing = "no such call"
        self.write("solutions/activations/activations.ipynb", "reference")
        self.write("exercises/activations/activations.ipynb", "released")
        self.write("nbgrader_config.py", "")

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def execute_lessons(self, idents: Sequence[str]) -> None:
        outputs = [{"metadata": {"ffn-check": {"id": ident}}} for ident in idents]
        self.write("_build/jupyter_execute/book/page.ipynb", json.dumps({"cells": [{"outputs": outputs}]}))

    def grader(self, *arguments: str, show: bool = True) -> None:
        self.calls.append(" ".join(arguments))
        if arguments[0] == self.failing:
            raise course.StepError(f"`grader {arguments[0]}` ended with exit status 1, see above.")
        if arguments[0] == "release":
            self.write("exercises/activations/activations.ipynb", "released anew")
        if arguments[0] == "demo":
            self.write("grader/var/grades.csv", "scores")

    def main(self, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
        self.calls.clear()
        monkeypatch.setattr(sys, "argv", ["course", *arguments])
        return course.main()


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    build = tmp_path / "_build"
    for module in (places, course):
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "HTML", build / "html")
        monkeypatch.setattr(module, "EXECUTED", build / "jupyter_execute")
    monkeypatch.setattr(places, "STAMPS", build / "stamps")
    monkeypatch.setattr(course, "GRADES", tmp_path / "grader" / "var" / "grades.csv")
    monkeypatch.setattr(course, "_grader", made.grader)
    monkeypatch.setattr(book, "build", lambda console: None)
    monkeypatch.setattr(book, "add_live", lambda console: None)
    made.execute_lessons(IDS)
    return made


GRADING = ["release", "demo"]


def test_the_first_run_releases_and_grades(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stand_in.main(monkeypatch, "--quiet") == 0
    assert stand_in.calls == GRADING


def test_run_again_it_does_nothing(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.main(monkeypatch, "--quiet")
    assert stand_in.main(monkeypatch, "--quiet") == 0
    assert stand_in.calls == []


def test_what_runs_in_the_browser_is_built_after_the_exercises(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr(book, "add_live", lambda console: seen.append(list(stand_in.calls)))
    assert stand_in.main(monkeypatch, "--quiet") == 0
    assert seen == [GRADING]


def test_a_browser_part_that_is_not_built_is_one_sentence(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(console: Console) -> None:
        raise LiveError("numpy.whl could not be fetched")

    monkeypatch.setattr(book, "add_live", failing)
    assert stand_in.main(monkeypatch, "--quiet") == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: numpy.whl could not be fetched"


@pytest.mark.parametrize(
    "name",
    [
        "solutions/activations/activations.ipynb",
        "exercises/activations/activations.ipynb",
        "grader/release.py",
        "grader/data/demo_activations.toml",
        "ffn/blocks.py",
        "nbgrader_config.py",
    ],
)
def test_a_change_of_what_is_graded_grades_again(
    stand_in: StandIn, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in.main(monkeypatch, "--quiet")
    stand_in.write(name, "changed")
    stand_in.main(monkeypatch, "--quiet")
    assert stand_in.calls == GRADING


@pytest.mark.parametrize("name", ["book/index.md", "README.md", "work/activations/activations.ipynb"])
def test_a_change_elsewhere_grades_nothing(stand_in: StandIn, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.main(monkeypatch, "--quiet")
    stand_in.write(name, "changed")
    stand_in.main(monkeypatch, "--quiet")
    assert stand_in.calls == []


def test_scores_that_were_removed_are_made_again(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in.main(monkeypatch, "--quiet")
    course.GRADES.unlink()
    stand_in.main(monkeypatch, "--quiet")
    assert stand_in.calls == GRADING


@pytest.mark.parametrize("step", GRADING)
def test_a_step_that_fails_is_reported_and_tried_again(
    stand_in: StandIn, step: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.failing = step
    assert stand_in.main(monkeypatch, "--quiet") == 1
    assert f"error: `grader {step}` ended with exit status 1, see above." in capsys.readouterr().err
    stand_in.failing = "no such call"
    assert stand_in.main(monkeypatch, "--quiet") == 0
    assert stand_in.calls == GRADING


def test_a_book_that_fails_stops_the_rest(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(console: Any) -> None:
        raise book.BookError("book/one.md:3: a fault")

    monkeypatch.setattr(book, "build", fails)
    assert stand_in.main(monkeypatch) == 1
    assert stand_in.calls == []
    assert capsys.readouterr().err == "error: book/one.md:3: a fault\n"


def test_the_end_of_a_failing_grader_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(course, "ROOT", tmp_path)
    with pytest.raises(course.StepError, match=r"^`grader scores nothing` ended with exit status 1, see above\.$"):
        course._grader("scores", "nothing", show=False)


# ------------------------------------------------------------------------------------------ the summary


def summary(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    assert stand_in.main(monkeypatch, "--summary") == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("missing", [0, 1, len(IDS)])
def test_the_summary_counts_the_published_values_that_lessons_check(
    stand_in: StandIn, missing: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.execute_lessons(IDS[missing:])
    said = summary(stand_in, monkeypatch, capsys)
    assert f"Published values checked in lessons: {len(IDS) - missing} of {len(IDS)} " in said


def test_the_summary_names_every_unit(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.write("solutions/gates/gates.ipynb", "reference")
    assert "Units: activations, gates" in summary(stand_in, monkeypatch, capsys).splitlines()


def test_the_summary_shows_the_scores(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary(stand_in, monkeypatch, capsys)
    assert stand_in.calls == ["scores activations"]


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("Book", "_build/html/index.html"),
        ("Book", "http://127.0.0.1:8000/"),
        ("Exercises", "exercises/"),
        ("Exercises", "`make lab`"),
        ("Feedback", "grader/var/feedback/"),
        ("Scores", "grader/var/grades.csv"),
        ("Scores", "`make formgrader`"),
    ],
)
def test_the_summary_says_where_each_result_can_be_opened(
    stand_in: StandIn, what: str, where: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = [x for x in summary(stand_in, monkeypatch, capsys).splitlines() if x.startswith(f"{what} ")]
    assert where in line


def test_the_summary_of_a_book_that_is_not_built_says_what_to_run(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (places.EXECUTED / "book" / "page.ipynb").unlink()
    assert stand_in.main(monkeypatch, "--summary") == 1
    assert capsys.readouterr().err.endswith("; run `make book` first.\n")


def test_building_ends_with_the_summary(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stand_in.main(monkeypatch) == 0
    assert stand_in.calls == [*GRADING, "scores activations"]
    assert "Published values checked" in capsys.readouterr().out


def test_the_long_steps_are_announced(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in.main(monkeypatch, "--quiet")
    assert capsys.readouterr().err.splitlines()[:2] == [
        "Generating the learner notebooks",
        "Making and grading the demo class",
    ]


def test_no_line_of_the_summary_is_broken_in_two(
    stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = summary(stand_in, monkeypatch, capsys).splitlines()
    assert [line.split()[0] for line in lines] == [
        "Published",
        "Units:",
        "Book",
        "Exercises",
        "Feedback",
        "Scores",
    ]
