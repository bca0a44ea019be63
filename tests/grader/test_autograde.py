"""What `grader autograde` shows while it grades, and says afterwards."""

import pytest
from click.testing import CliRunner

from grader.cli import cli
from grader.commands import autograde as module
from grader.commands.autograde import Pace, Tally, _Lines
from grader.engine.batch import Outcome
from grader.engine.verdict import GRADED, UNREADABLE, Verdict
from grader.exceptions import GraderError

FINE = Verdict(GRADED, "", "")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def after(total: int, graded: int, every: float, skipped: int = 0) -> Pace:
    """The pace of a run that skipped some, and graded others in regular intervals after a long start."""
    clock = Clock()
    pace = Pace(total, clock)
    for _ in range(skipped):
        pace.add(skipped=True)
    clock.now += 60.0
    for _ in range(graded):
        clock.now += every
        pace.add(skipped=False)
    return pace


def test_the_rate_counts_neither_the_start_nor_what_is_skipped() -> None:
    assert after(1000, 11, 0.1, skipped=500).rate == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("total", "every", "text"),
    [
        (411, 0.1, "10.0 a second, 40 s left"),
        (12_011, 0.1, "10.0 a second, 20 min left"),
        (40_011, 0.25, "4.0 a second, 2 h 47 min left"),
    ],
)
def test_the_time_left_is_said_in_words(total: int, every: float, text: str) -> None:
    assert after(total, 11, every).text() == text


@pytest.mark.parametrize("graded", [0, 1])
def test_nothing_is_said_of_a_rate_that_is_not_known_yet(graded: int) -> None:
    assert after(10, graded, 0.1).text() == ""


def shown(learners: int, outcomes: list[Outcome], capsys: pytest.CaptureFixture[str]) -> list[str]:
    pace = Pace(learners)
    lines = _Lines(pace, learners)
    for outcome in outcomes:
        pace.add(skipped=outcome.skipped)
        lines.add(outcome)
    return capsys.readouterr().err.splitlines()


def test_of_a_small_class_each_learner_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [Outcome("ada", FINE), Outcome("bob", skipped=True), Outcome("zoe", error="lost")]
    assert shown(100, outcomes, capsys) == ["graded ada"]


def test_of_a_large_class_a_line_comes_every_few_seconds_and_at_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EVERY_SECONDS", 1000.0)
    lines = shown(101, [Outcome(f"learner-{number}", FINE) for number in range(101)], capsys)
    assert len(lines) == 1
    assert lines[0].startswith("graded 101 of 101, ")
    monkeypatch.setattr(module, "EVERY_SECONDS", 0.0)
    assert len(shown(101, [Outcome("ada", FINE)] * 50, capsys)) == 50


def test_what_an_instructor_should_look_at_is_said_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally()
    for outcome in (
        Outcome("ada", FINE),
        Outcome("bob", FINE, remark="The journal was damaged."),
        Outcome("eve", Verdict(UNREADABLE, "", "No notebook.")),
    ):
        tally.add(outcome)
    tally.complain()
    assert capsys.readouterr().err.splitlines() == [
        "bob: The journal was damaged.",
        "eve: unreadable. No notebook.",
    ]
    tally.add(Outcome("zoe", error="It is gone."))
    with pytest.raises(GraderError, match=r"^1 of 4 submissions could not be graded, see above\.$"):
        tally.complain()


@pytest.mark.parametrize("command", ["autograde", "diff"])
@pytest.mark.parametrize("address", ["localhost", "localhost:8786", "http://localhost:8786", "tcp://localhost"])
def test_what_is_no_address_of_a_scheduler_is_wrong_usage(address: str, command: str) -> None:
    done = CliRunner().invoke(cli, [command, "gates", "--scheduler", address])
    assert done.exit_code == 2
    assert f"'{address}' is no address of a Dask scheduler; one is tcp://localhost:8786." in done.stderr.replace(
        "\n", " "
    )


@pytest.mark.parametrize("command", ["autograde", "diff"])
def test_workers_of_this_machine_and_a_cluster_exclude_each_other(command: str) -> None:
    done = CliRunner().invoke(cli, [command, "gates", "--scheduler", "tcp://a:1", "--workers", "2"])
    assert done.exit_code == 2
    assert "--workers is for this machine" in done.stderr
