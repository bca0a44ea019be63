"""`grader report` on the graded demo class."""

import json
from pathlib import Path

import pytest

from grader.course import Course
from tests.grader.engine.courses import UNIT, copied
from tests.grader.invoked import invoked
from tests.helpers import CourseCopy, said_once

pytestmark = pytest.mark.slow


@pytest.fixture
def copy(graded_course: CourseCopy, tmp_path: Path) -> CourseCopy:
    return copied(graded_course, tmp_path / "course")


def test_the_page_is_below_var_and_the_command_says_so(copy: CourseCopy) -> None:
    done = invoked(copy, "report", UNIT)
    assert (done.returncode, done.stdout) == (0, f"The report is in grader/var/reports/{UNIT}.html.\n")
    page = (copy.root / "grader" / "var" / "reports" / f"{UNIT}.html").read_text(encoding="utf-8")
    assert "learner-12" in page


def test_the_demo_class_s_mistake_is_named_with_its_learner(copy: CourseCopy) -> None:
    found = json.loads(invoked(copy, "report", UNIT, "--json").stdout)
    (tanh,) = [m for m in found["misconceptions"] if m["hint"].startswith("the tanh form was used")]
    assert tanh["step"] == "gelu"
    assert "learner-03" in tanh["learners"]


def test_a_repaired_notebook_of_the_demo_class_waits_for_a_person(copy: CourseCopy) -> None:
    found = json.loads(invoked(copy, "report", UNIT, "--json").stdout)
    (repaired,) = [remark for remark in found["remarks"] if remark["kind"] == "graded with repairs"]
    assert repaired["learner"] == "learner-09"
    assert "was missing" in repaired["sentence"]


def test_the_seconds_of_cells_are_there(copy: CourseCopy) -> None:
    found = json.loads(invoked(copy, "report", UNIT, "--json").stdout)
    assert {"test_gelu", "whole submission"} <= {slow["cell"] for slow in found["slowest"]}


def test_json_writes_no_page_unless_one_is_asked_for(copy: CourseCopy, tmp_path: Path) -> None:
    assert invoked(copy, "report", UNIT, "--json").returncode == 0
    assert not (copy.root / "grader" / "var" / "reports").exists()
    json.loads(invoked(copy, "report", UNIT, "--json", "-o", str(tmp_path / "page.html")).stdout)
    assert (tmp_path / "page.html").is_file()


def test_a_page_elsewhere_is_named_by_its_path(copy: CourseCopy, tmp_path: Path) -> None:
    done = invoked(copy, "report", UNIT, "--output", str(tmp_path / "page.html"))
    assert done.stdout == f"The report is in {tmp_path / 'page.html'}.\n"


def test_a_unit_that_is_not_graded_is_one_sentence(copy: CourseCopy) -> None:
    done = invoked(copy, "report", "swiglu")
    assert done.returncode == 1
    assert "no submission for 'swiglu' is graded yet; run `grader autograde swiglu` first." in said_once(
        done.stderr
    )
    assert not (copy.root / "grader" / "var" / "reports").exists()


def test_an_unknown_unit_is_one_sentence(copy: CourseCopy) -> None:
    done = invoked(copy, "report", "gates")
    assert done.returncode == 1
    assert "there is no unit 'gates'" in said_once(done.stderr)


def test_a_place_that_cannot_be_written_is_one_sentence(copy: CourseCopy, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = invoked(copy, "report", UNIT, "-o", str(tmp_path / "file" / "page.html"))
    assert done.returncode == 1
    assert "cannot be written" in said_once(done.stderr)


def test_the_report_changes_nothing_else(copy: CourseCopy) -> None:
    def files() -> dict[Path, bytes]:
        var = Course(copy.root).var
        return {path: path.read_bytes() for path in var.rglob("*") if path.is_file()}

    before = files()
    invoked(copy, "report", UNIT)
    after = files()
    assert {path.name for path in after.keys() - before.keys()} == {f"{UNIT}.html"}
    assert all(after[path] == content for path, content in before.items())
