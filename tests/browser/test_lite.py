"""Exercises in JupyterLite: reference answers pass, wrong ones get their hint, and what is downloaded is graded."""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from ffn.misconceptions import find_step
from grader.course import Course
from grader.engine.grade import grade
from grader.engine.sandbox import Sandbox
from grader.engine.store import load_assignment
from grader.engine.verdict import GRADED, Limits, Verdict
from grader.notebooks import grade_id
from tests.browser.conftest import Seen
from tests.browser.lite import (
    HTML,
    PATIENCE,
    UNITS,
    Learner,
    code_cells,
    reference_answers,
    require_live,
    serving,
    source,
)
from tests.helpers import ROOT

pytestmark = pytest.mark.slow
LIMITS = Limits()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    require_live()
    with serving(HTML) as served:
        yield served


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest.fixture(scope="module")
def context(browser: Browser, seen: Seen) -> Iterator[BrowserContext]:
    """One profile for all units: what the first has loaded the others have at hand."""
    opened = browser.new_context(viewport={"width": 1280, "height": 900}, accept_downloads=True)
    seen.watch(opened)
    yield opened
    opened.close()


@dataclass(frozen=True)
class Work:
    """A unit's notebook after the reference answers were typed in and run: in the browser, and as it was downloaded."""

    kept: Any
    errors: list[str]
    name: str
    downloaded: bytes


@pytest.fixture(scope="module")
def work(address: str, context: BrowserContext) -> Callable[[str], Work]:
    """Do a unit, once."""

    @functools.cache
    def done(unit: str) -> Work:
        learner = Learner(context.new_page(), address)
        learner.open(unit)
        learner.type_answers(unit, reference_answers(unit))
        learner.run_all()
        kept, errors = learner.saved(unit), learner.errors()
        page = learner.exercise_page(unit)
        with page.expect_download() as download:
            page.get_by_role("button", name="Download my work").click()
        made = Work(kept, errors, download.value.suggested_filename, Path(download.value.path()).read_bytes())
        page.close()
        return made

    return done


every_unit = pytest.mark.parametrize("unit", UNITS)


@every_unit
def test_what_was_typed_is_kept_as_it_was_typed(unit: str, work: Callable[[str], Work]) -> None:
    kept = {str(grade_id(cell)): source(cell) for cell in code_cells(work(unit).kept)}
    answers = reference_answers(unit)
    assert {name: kept[name] for name in answers} == answers


@every_unit
def test_every_cell_runs_with_the_reference_answers(unit: str, work: Callable[[str], Work]) -> None:
    cells = code_cells(work(unit).kept)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))


@every_unit
def test_the_reference_answers_pass_the_visible_tests(unit: str, work: Callable[[str], Work]) -> None:
    outputs = [output for cell in code_cells(work(unit).kept) for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert work(unit).errors == []
    assert outputs


@pytest.fixture(scope="module")
def graded(work: Callable[[str], Work]) -> Callable[[str], Verdict]:
    """Grade what was downloaded, once a unit."""

    @functools.cache
    def done(unit: str) -> Verdict:
        assignment = load_assignment(Course(ROOT), unit)
        with Sandbox(LIMITS, assignment.files, "none") as sandbox:
            return grade(assignment, work(unit).downloaded, LIMITS, sandbox)

    return done


@every_unit
def test_what_is_downloaded_is_graded_without_repairs(unit: str, graded: Callable[[str], Verdict]) -> None:
    assert (graded(unit).status, graded(unit).notes) == (GRADED, ())


@every_unit
def test_what_is_downloaded_gets_all_points_of_visible_and_hidden_tests(
    unit: str, graded: Callable[[str], Verdict]
) -> None:
    lost = [result for result in graded(unit).results if result.points != result.max_points]
    assert lost == []
    assert graded(unit).points == graded(unit).max_points > 0


@every_unit
def test_the_download_has_the_exercise_s_name_and_the_kernel_that_everybody_has(
    unit: str, work: Callable[[str], Work]
) -> None:
    assert work(unit).name == f"{unit}.ipynb"
    assert json.loads(work(unit).downloaded)["metadata"]["kernelspec"]["name"] == "python3"


WRONG = "def silu(z):\n    return sigmoid(z)"


@pytest.fixture(scope="module")
def mistaken(address: str, browser: Browser, seen: Seen) -> Iterator[Learner]:
    """A learner of another profile, whose SiLU is the sigmoid alone; ran, saved, and came back."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    seen.watch(context)
    learner = Learner(context.new_page(), address)
    learner.open("activations")
    learner.type_answers("activations", {**reference_answers("activations"), "silu": WRONG})
    learner.run_all()
    learner.saved("activations")
    yield learner
    context.close()


def test_a_wrong_answer_shows_the_hint_of_its_misconception(mistaken: Learner) -> None:
    hints = [known.hint for known in find_step("activations.silu").misconceptions]
    (said,) = mistaken.errors()
    assert "Not right yet." in said
    assert [hint for hint in hints if hint in " ".join(said.split())]


def test_what_is_stored_is_there_after_a_reload(mistaken: Learner) -> None:
    mistaken.page.reload()
    cells = mistaken.shown().locator(".jp-CodeCell .cm-content")
    expect(cells.filter(has_text="def silu(z):")).to_have_text(WRONG.replace("\n", ""), timeout=PATIENCE)


@pytest.mark.parametrize("fault", ["elsewhere", "refused", "errors"])
def test_jupyterlite_works_without_fault(
    fault: str, seen: Seen, work: Callable[[str], Work], mistaken: Learner
) -> None:
    assert work(UNITS[0])
    assert getattr(seen, fault) == []


def test_below_a_path_of_a_plain_host_the_exercise_opens_and_python_reads_its_data(browser: Browser) -> None:
    require_live()
    seen = Seen()
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    seen.watch(context)
    with serving(HTML, below="/some/course") as address:
        learner = Learner(context.new_page(), address)
        learner.open("capstone")
        assert learner.page.evaluate("crossOriginIsolated") is False
        answers = reference_answers("capstone")
        first = next(iter(answers))
        learner.type_answers("capstone", {first: answers[first]})
        learner.run_all()
        cells = code_cells(learner.saved("capstone"))
        context.close()
    # The answer, its visible test and the place of its hidden one ran without error; the next step is not written yet.
    step = cells[: [str(grade_id(cell)) for cell in cells].index(first) + 3]
    assert all(cell["execution_count"] for cell in step)
    outputs = [output for cell in step for output in cell["outputs"]]
    assert [output for output in outputs if output["output_type"] == "error"] == []
    assert seen == Seen()


def test_after_an_endless_loop_a_restart_of_the_kernel_works_and_no_typed_code_is_lost(
    address: str, browser: Browser
) -> None:
    # A profile of its own: in the others' the exercise may be stored with its answers already.
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    learner = Learner(context.new_page(), address)
    page = learner.open("worked-cells")
    name = next(iter(reference_answers("worked-cells")))
    loop = "while True: pass  # mine"
    learner.type_answers("worked-cells", {name: loop})
    cell = page.locator(".jp-CodeCell", has_text=loop)
    page.keyboard.press("Control+Enter")
    expect(cell.locator(".jp-InputPrompt")).to_have_text("[*]:", timeout=PATIENCE)
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_text("Restart Kernel…").click()
    page.locator(".jp-Dialog .jp-mod-accept").click()
    expect(cell.locator(".jp-InputPrompt")).to_have_text("[ ]:", timeout=PATIENCE)
    expect(cell.locator(".cm-content")).to_have_text(loop)
    learner.type_answers("worked-cells", {name: "6 * 7"})
    page.keyboard.press("Control+Enter")
    answered = page.locator(".jp-CodeCell", has_text="6 * 7")
    expect(answered.locator(".jp-OutputArea-output")).to_have_text("42", timeout=PATIENCE)
    context.close()
