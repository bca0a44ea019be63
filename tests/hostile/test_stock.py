"""Stock nbgrader beside the engine: right where nothing is wrong, fooled where it can be, and always contained."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from grader.engine import sandbox
from grader.engine.verdict import GRADED, MISSING, UNREADABLE
from tests.hostile import stock
from tests.hostile.corpus import MOST, Case, cases
from tests.hostile.stock import Outcome, Row, hostile_table, stock_outcomes

CASES = {case.name: case for case in cases()}


@pytest.fixture(scope="module")
def server() -> Iterator[stock._Stock]:
    with stock._Stock(1) as made:
        yield made


def answer(source: str) -> Case:
    """A submission with this answer to the first step, worth 4 points."""
    return replace(CASES["ast_transformer"], name="made_here", more={"answers": {"relu": source}})


def processes(server: stock._Stock) -> int:
    """How many processes a server has: bubblewrap's, its own, and those of what it runs."""
    return len(psutil.Process(server._servers[0]._process.pid).children(recursive=True))


# ------------------------------------------------------------------------------------------------ the table


@pytest.fixture(scope="module")
def rows() -> dict[str, Row]:
    names = ["ast_transformer", "blank_file", "os_exit", "source_as_lines"]
    return {row.case: row for row in hostile_table(names)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stock_right"),
    [("source_as_lines", True), ("blank_file", True), ("ast_transformer", False), ("os_exit", False)],
)
def test_the_engine_is_right_and_stock_nbgrader_where_it_can_be(
    rows: dict[str, Row], name: str, stock_right: bool
) -> None:
    row, case = rows[name], CASES[name]
    assert (row.status, row.points) == (row.engine_status, row.engine_points) == (case.status, case.points)
    assert row.right
    assert row.stock_seen
    assert row.stock_right is stock_right


@pytest.mark.slow
def test_stock_nbgrader_gives_full_points_to_a_cheat(rows: dict[str, Row]) -> None:
    assert (rows["ast_transformer"].points, rows["ast_transformer"].stock) == (8, f"{MOST:g}")


@pytest.mark.slow
def test_stock_nbgrader_gives_no_score_where_the_kernel_dies(rows: dict[str, Row]) -> None:
    assert rows["os_exit"].stock == "failed: Kernel died while waiting for execute reply."


def test_a_name_that_is_no_case_is_named() -> None:
    with pytest.raises(ValueError, match="no case 'ast_transfomer'"):
        hostile_table(["ast_transfomer"])


def test_what_is_begun_first_are_cases() -> None:
    assert set(stock.LONGEST) <= CASES.keys()


# ------------------------------------------------------------------------------------------- what is right


@pytest.mark.parametrize(
    ("status", "outcome", "right"),
    [
        (GRADED, Outcome(8.0, ""), True),
        (GRADED, Outcome(12.0, ""), False),
        (GRADED, Outcome(None, "failed: the kernel died"), False),
        (GRADED, Outcome(8.0, "stopped after 90 s"), False),
        (GRADED, Outcome(8.0, "", seen=False), False),
        (UNREADABLE, Outcome(None, "failed: no notebook"), True),
        (UNREADABLE, Outcome(8.0, ""), False),
        (UNREADABLE, Outcome(None, "stopped after 90 s"), False),
        (MISSING, Outcome(None, "failed: no notebook"), True),
        (MISSING, Outcome(None, "not run: why", seen=False), False),
    ],
)
def test_an_outcome_is_right_with_the_right_score_or_none(status: str, outcome: Outcome, right: bool) -> None:
    case = replace(CASES["ast_transformer"], status=status, points=8.0)
    assert outcome.is_right(case) is right


def test_a_case_with_a_reason_is_not_run() -> None:
    case = replace(CASES["ast_transformer"], stock="it would break the machine")
    told: list[tuple[str, str]] = []
    found = stock_outcomes([case], lambda grader, name: told.append((grader, name)))
    assert found == {case.name: Outcome(None, "not run: it would break the machine", seen=False)}
    assert told == [("nbgrader", case.name)]


def test_what_nbgrader_says_is_told_without_control_characters() -> None:
    said = (
        "\x00\x00Error\x1b[0m of the learner\n[AutogradeApp | ERROR] Kernel died in /tmp/course/submitted/learner"
    )
    assert stock._first_error("1", said) == "Kernel died in submitted/learner"
    assert stock._first_error("1", "\x00ValueError: no\x00") == "ValueError: no"
    assert stock._first_error("7", "all is well") == "exit 7"


# ------------------------------------------------------------------------------------------------ containment

CONTAINED = """
import os, pathlib, resource, socket

def fails(action):
    try:
        action()
    except OSError:
        return True
    return False

status = pathlib.Path("/proc/self/status").read_text()
contained = [
    fails(lambda: socket.create_connection(("192.0.2.1", 80), timeout=2)),
    os.getuid() != 0,
    "CapEff:\\t0000000000000000" in status,
    len([name for name in os.listdir("/proc") if name.isdigit()]) < 8,
    not list(pathlib.Path("/courses").iterdir()),
    fails(lambda: open("/usr/x", "w")) and fails(lambda: open("/packages/x", "w")),
    not pathlib.Path(%r).exists(),
    resource.getrlimit(resource.RLIMIT_AS)[1] == 4 << 30,
    resource.getrlimit(resource.RLIMIT_NPROC)[1] < 1000,
    os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize < 1 << 30,
]

def relu(z):
    return np.maximum(z, 0) if all(contained) else contained
"""


@pytest.mark.slow
def test_what_a_learner_can_reach_is_nothing_but_the_course(server: stock._Stock) -> None:
    course = Path(stock.__file__).parent
    assert server.outcome(answer(CONTAINED % str(course))) == Outcome(MOST, "")
    assert server.outcome(answer(CONTAINED % "/tmp/course")).points == MOST - 4


@pytest.mark.slow
def test_nothing_that_a_case_starts_or_writes_is_left(server: stock._Stock) -> None:
    server.outcome(CASES["source_as_lines"])
    before = processes(server)
    assert server.outcome(CASES["daemon_left_behind"]).points is not None
    assert processes(server) == before
    assert [path.name for path in server._courses.iterdir()] == ["released"]


@pytest.mark.slow
def test_a_fork_bomb_is_bounded_and_over(server: stock._Stock) -> None:
    server.outcome(CASES["source_as_lines"])
    before = processes(server)
    assert not server.outcome(CASES["fork_bomb"]).is_right(CASES["fork_bomb"])
    assert processes(server) == before
    assert server.outcome(CASES["source_as_lines"]).points == MOST


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "points", "limits"), [("infinite_loop", MOST, ["--Execute.timeout=5"]), ("source_as_lines", MOST, [])]
)
def test_only_a_cell_that_never_ends_gets_less_time_than_nbgrader_gives_it(
    server: stock._Stock, monkeypatch: pytest.MonkeyPatch, name: str, points: float, limits: list[str]
) -> None:
    run, asked = stock._Server.run, []

    def noted(self: stock._Server, course: str, arguments: Iterable[str]) -> str:
        asked.append(list(arguments))
        return run(self, course, arguments)

    monkeypatch.setattr(stock._Server, "run", noted)
    assert server.outcome(CASES[name]) == Outcome(points, "")
    assert asked == [["autograde", "small", "--student=learner", "--create", *limits]]


@pytest.mark.slow
def test_what_hangs_is_stopped(server: stock._Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stock, "SECONDS", 4.0)
    found = server.outcome(CASES["pipe_in_place_of_a_notebook"])
    assert found == Outcome(None, "stopped after 4 s")


@pytest.mark.slow
def test_a_server_that_is_gone_is_told_of_and_another_takes_its_place(server: stock._Stock) -> None:
    server._servers[-1]._process.kill()
    server._servers[-1]._process.wait()
    found = server.outcome(CASES["source_as_lines"])
    assert found.words.startswith("could not be run: RuntimeError: stock nbgrader's server has ended")
    assert not found.seen
    assert server.outcome(CASES["source_as_lines"]) == Outcome(MOST, "")


def test_without_bubblewrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_bubblewrap", lambda: None)
    with pytest.raises(RuntimeError, match="bubblewrap is missing"):
        stock_outcomes([CASES["ast_transformer"]])
