"""nbgrader's autograde with the course's configuration: what `grader autograde` gives, and no batch is cut off."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import nbformat
import pytest
from traitlets.config import Config

from grader.course import Course
from grader.engine import preprocess
from grader.engine.preprocess import EngineExecute, EngineSanitize, SubmissionExporter
from grader.engine.store import RECORD_KEY, record_of
from grader.engine.verdict import Limits
from grader.exceptions import InvalidLearnerError, NoSandboxError, UnknownUnitError
from grader.notebooks import grade_id, read_notebook
from tests.grader.engine.courses import ENGINE, FOUR, UNIT, autograded, by_hand, copied, hand_in, rows
from tests.helpers import ROOT, CourseCopy

ODD = ("schema", "no-cells", "no-json", "link")
"""Submissions that nbgrader's own reader, or its sanitizing, ends at or falls for."""


def asked(
    root: Path, unit: str = UNIT, notebook: str = UNIT, learner: str = "ada"
) -> tuple[Config, dict[str, Any]]:
    """The configuration and the resources that nbgrader gives a preprocessor."""
    config = Config({"CourseDirectory": {"root": str(root)}})
    return config, {"nbgrader": {"notebook": notebook, "assignment": unit, "student": learner, "db_url": ""}}


def a_notebook(*sources: str) -> Any:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    return nbformat.v4.new_notebook(cells=cells)


# ---------------------------------------------------------------------------------------------------- each plug-in


@pytest.mark.parametrize("kind", [EngineSanitize, EngineExecute])
@pytest.mark.parametrize("names", [("other", UNIT), ("none", "none"), (UNIT, "none")])
def test_what_is_no_notebook_of_the_course_is_never_left_to_pass_unrun(
    kind: type[Any], names: tuple[str, str]
) -> None:
    config, resources = asked(ROOT, unit=names[1], notebook=names[0])
    with pytest.raises(UnknownUnitError):
        kind(config=config).preprocess(a_notebook(), resources)


@pytest.mark.parametrize("kind", [EngineSanitize, EngineExecute])
def test_a_folder_whose_name_is_no_learner_s_is_refused(kind: type[Any]) -> None:
    config, resources = asked(ROOT, learner="<b>ada")
    with pytest.raises(InvalidLearnerError):
        kind(config=config).preprocess(a_notebook(), resources)


def test_nothing_reaches_other_preprocessors_from_a_sanitized_submission() -> None:
    config, resources = asked(ROOT)
    sanitized, _ = EngineSanitize(config=config).preprocess(a_notebook("evil"), resources)
    nbformat.validate(sanitized)
    assert "evil" not in nbformat.writes(sanitized)


def test_the_exporter_does_not_open_the_file() -> None:
    written, _ = SubmissionExporter().from_filename("/there/is/no/such.ipynb")
    assert json.loads(written)["cells"] == []


def test_of_what_nbgrader_copied_only_the_time_stays(open_course: Course) -> None:
    folder = open_course.autograded / "ada" / UNIT
    (folder / "sub").mkdir(parents=True)
    for name in ("timestamp.txt", "secret.txt", "page.html", "sub/more.txt"):
        (folder / name).write_text("2026-01-14 08:00:00 UTC")
    (folder / "out").symlink_to(open_course.solutions)
    config, resources = asked(open_course.root)
    EngineSanitize(config=config).preprocess(a_notebook(), resources)
    assert [path.name for path in folder.iterdir()] == ["timestamp.txt"]
    assert open_course.reference(UNIT).is_file()


class Server:
    """Stands for a sandbox, which at its first use has ended or not."""

    made: ClassVar[list["Server"]] = []

    def __init__(self, *_: Any, **more: Any) -> None:
        self.said: list[str] = []
        self.made.append(self)

    def __getattr__(self, name: str) -> Any:
        return lambda: self.said.append(name)


@pytest.fixture
def warm(monkeypatch: pytest.MonkeyPatch) -> preprocess._Warm:
    """What keeps a sandbox, and gets stand-ins for it."""
    monkeypatch.setattr(Server, "made", [])
    monkeypatch.setattr(preprocess, "Sandbox", Server)
    return preprocess._Warm()


def graded(warm: preprocess._Warm, outcomes: list[Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Grade a submission; each try in a sandbox has the next outcome, or raises it."""

    def grade(*_: Any) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(preprocess, "grade", grade)
    assignment: Any = SimpleNamespace(unit=UNIT, files=(), modules=())
    return warm.grade(assignment, b"", Limits(), "full")


def test_a_sandbox_is_kept_and_its_sessions_are_not(
    warm: preprocess._Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [graded(warm, [n], monkeypatch) for n in (1, 2)] == [1, 2]
    assert [server.said for server in Server.made] == [["end_session", "end_session"]]


@pytest.mark.parametrize("fault", [NoSandboxError("it has ended"), RuntimeError("a fault")])
def test_a_sandbox_that_has_ended_meanwhile_is_replaced(
    fault: Exception, warm: preprocess._Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    graded(warm, [1], monkeypatch)
    assert graded(warm, [fault, 2], monkeypatch) == 2
    assert [server.said for server in Server.made] == [["end_session", "close"], ["end_session"]]


def test_where_there_is_no_sandbox_nothing_is_graded(
    warm: preprocess._Warm, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NoSandboxError):
        graded(warm, [NoSandboxError("no namespaces")], monkeypatch)
    assert [server.said for server in Server.made] == [["close"]]


# ------------------------------------------------------------------------------------- the demo class, graded twice


def hand_in_odd(course: Course) -> None:
    """Four submissions that end nbgrader's own batch, or lead it where it should not go."""
    notebook = json.loads((course.submitted / "learner-07" / UNIT / f"{UNIT}.ipynb").read_text(encoding="utf-8"))
    hand_in(course, "no-cells", json.dumps(notebook | {"cells": []}))
    for cell in notebook["cells"]:
        if grade_id(cell):
            cell["metadata"]["nbgrader"]["schema_version"] = 99
    notebook["cells"].append(next(cell for cell in notebook["cells"] if grade_id(cell) == "test_relu"))
    hand_in(course, "schema", json.dumps(notebook))
    hand_in(course, "no-json", "my answers are on paper")
    link = hand_in(course, "link", "")
    link.unlink()
    link.symlink_to(course.submitted / "learner-01" / UNIT / f"{UNIT}.ipynb")
    (link.parent / "notes.txt").symlink_to(course.reference(UNIT))


@pytest.fixture(scope="module")
def by_grader(released_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The demo class and a few odd submissions, graded by `grader autograde`."""
    copy = copied(released_course, tmp_path_factory.mktemp("by-grader") / "course")
    hand_in_odd(Course(copy.root))
    done = copy.grader("autograde", UNIT)
    assert done.returncode == 0, done.stderr
    return Course(copy.root)


@pytest.fixture(scope="module")
def by_nbgrader(released_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> Course:
    """The same, graded by `nbgrader autograde`."""
    copy = copied(released_course, tmp_path_factory.mktemp("by-nbgrader") / "course")
    hand_in_odd(Course(copy.root))
    done = copy.command("nbgrader", "autograde", UNIT)
    assert done.returncode == 0, done.stderr
    return Course(copy.root)


@pytest.mark.slow
@pytest.mark.parametrize("learner", [*(f"learner-{n:02d}" for n in range(1, 13)), *ODD])
def test_scores_and_comments_are_those_of_grader_autograde(
    learner: str, by_nbgrader: Course, by_grader: Course
) -> None:
    assert rows(by_nbgrader, learner)[learner] == rows(by_grader, learner)[learner]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "score", "status"),
    [
        ("schema", 37, "graded with repairs"),
        ("no-cells", 0, "unreadable"),
        ("no-json", 0, "unreadable"),
        ("link", 0, "unreadable"),
    ],
)
def test_odd_submissions_get_a_verdict(learner: str, score: float, status: str, by_nbgrader: Course) -> None:
    assert rows(by_nbgrader, learner)[learner]["score"] == score
    assert record_of(by_nbgrader, learner, UNIT)["status"] == status


@pytest.mark.slow
def test_a_link_is_followed_nowhere(by_nbgrader: Course) -> None:
    folder = by_nbgrader.autograded / "link" / UNIT
    assert [path.name for path in folder.iterdir()] == [f"{UNIT}.ipynb"]
    assert "is a link" in read_notebook(folder / f"{UNIT}.ipynb")["cells"][0]["source"]


@pytest.mark.slow
@pytest.mark.parametrize("learner", FOUR)
def test_the_gradebook_is_as_nbgrader_s_own_execution_leaves_it(
    learner: str, by_nbgrader: Course, stock_rows: dict[str, dict[str, Any]]
) -> None:
    assert rows(by_nbgrader, learner)[learner] == stock_rows[learner]


@pytest.mark.slow
def test_what_nbgrader_graded_grader_autograde_leaves_as_it_is(by_nbgrader: Course) -> None:
    done = CourseCopy(by_nbgrader.root).grader("autograde", UNIT, "--learner", "learner-03")
    assert "graded learner-03" not in done.stderr
    assert done.returncode == 0


@pytest.mark.slow
def test_graded_again_a_person_s_score_and_comment_stay(
    by_grader: Course, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = CourseCopy(Path(shutil.copytree(by_grader.root, tmp_path_factory.mktemp("again") / "course")))
    course = Course(copy.root)
    by_hand(course, "learner-07", "inactive_or_dead", 2.5, extra=0.5, comment="Well put.")
    before = rows(course, "learner-07")["learner-07"]
    found = autograded(copy, [(ENGINE, "learner-07")])
    assert found["learner-07"][0], found
    after = rows(course, "learner-07")["learner-07"]
    assert after["grades"]["inactive_or_dead"][:3] == (None, 2.5, 0.5)
    assert after["comments"] == before["comments"]
    assert (after["score"], after["late"], after["penalty"]) == (before["score"], 49 * 3600, before["penalty"])


@pytest.mark.slow
def test_the_policy_on_late_submissions_is_the_configuration_s(
    released_course: CourseCopy, tmp_path: Path
) -> None:
    copy = copied(released_course, tmp_path / "course", ("learner-03", "learner-07"))
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("\nc.AssignLatePenalties.plugin_class = 'late_policy.Half'\n")
    (copy.root / "late_policy.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\n\nclass Half(BasePlugin):\n"
        "    def late_submission_penalty(self, student, score, late):\n        return score / 2\n"
    )
    found = autograded(copy, [(ENGINE, "learner-03"), (ENGINE, "learner-07")])
    assert all(done for done, _ in found.values()), found
    graded = rows(Course(copy.root))
    assert (graded["learner-03"]["penalty"], graded["learner-07"]["penalty"]) == (None, 18.5)


@pytest.mark.slow
def test_a_notebook_graded_by_nbgrader_has_the_engine_s_record(by_nbgrader: Course) -> None:
    notebook = read_notebook(by_nbgrader.autograded / "learner-03" / UNIT / f"{UNIT}.ipynb")
    assert notebook["metadata"][RECORD_KEY]["sandbox"] == "full"
