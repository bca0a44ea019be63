"""JupyterLab on the learner's own copies: the exercise opens, and nbgrader's Validate button judges it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from grader.course import Course
from grader.notebooks import answer_ids, grade_id, read_notebook, write_notebook
from tests.browser.conftest import Seen, Server, running
from tests.helpers import CODE, UNITS, CourseCopy, copy_of_course

pytestmark = pytest.mark.slow
PATIENCE = 120_000


@pytest.fixture(scope="module")
def learner_course(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    return copy_of_course(tmp_path_factory.mktemp("lab") / "course", *CODE, *UNITS)


@pytest.fixture(scope="module")
def server(learner_course: CourseCopy) -> Iterator[Server]:
    with running(learner_course) as started:
        yield started


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest.fixture(scope="module")
def context_page(browser: Browser, seen: Seen) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    seen.watch(context)
    yield context.new_page()
    context.close()


def opened(page: Page, server: Server, workspace: str) -> Page:
    """The learner's copy of the exercise, opened in JupyterLab."""
    path = f"/lab/workspaces/{workspace}/tree/activations/activations.ipynb"
    page.goto(f"{server.address}{path}?token={server.token}", timeout=PATIENCE)
    expect(page.locator(".jp-Notebook")).to_be_visible(timeout=PATIENCE)
    return page


def validated(page: Page) -> str:
    """What the Validate button's dialogue says."""
    page.get_by_role("button", name="Validate").click(timeout=PATIENCE)
    dialogue = page.locator(".jp-Dialog").filter(has_text="Validation Results")
    expect(dialogue).to_be_visible(timeout=PATIENCE)
    return dialogue.inner_text()


@pytest.fixture(scope="module")
def blank(context_page: Page, server: Server) -> Page:
    return opened(context_page, server, "blank")


@pytest.fixture(scope="module")
def blank_result(blank: Page) -> str:
    return validated(blank)


@pytest.fixture(scope="module")
def answered_result(blank_result: str, context_page: Page, server: Server, learner_course: CourseCopy) -> str:
    """What Validate says once the answers are in the learner's copy."""
    course = Course(learner_course.root)
    reference = read_notebook(course.reference("activations"))
    answers = {
        grade_id(cell): "\n".join(line for line in cell["source"].splitlines() if "### " not in line)
        for cell in reference["cells"]
        if grade_id(cell) in answer_ids(reference)
    }
    own = learner_course.root / "work" / "activations" / "activations.ipynb"
    notebook = read_notebook(own)
    for cell in notebook["cells"]:
        cell["source"] = answers.get(grade_id(cell), cell["source"])
    write_notebook(notebook, own)
    return validated(opened(context_page, server, "answered"))


def test_the_server_says_which_copies_it_made(server: Server) -> None:
    assert "  work/activations/activations.ipynb is yours to work in\n" in server.said


def test_the_exercise_opens_with_its_title(blank: Page) -> None:
    expect(blank.get_by_role("heading", name="Activations")).to_be_visible(timeout=PATIENCE)


def test_only_the_learner_s_folder_is_in_sight(blank: Page) -> None:
    names = blank.locator(".jp-DirListing-itemText")
    expect(names.first).to_be_visible(timeout=PATIENCE)
    assert set(names.all_inner_texts()) <= {"activations", "activations.ipynb"}


def test_validate_reports_the_failing_cells_of_the_released_notebook(blank_result: str) -> None:
    assert "The following cell failed:" in blank_result
    assert "NotImplementedError" in blank_result
    assert 'check("ex1.relu_A", relu(z["A"]))' in blank_result


def test_validate_reports_success_once_the_answers_are_right(answered_result: str) -> None:
    assert "Success! Your notebook passes all the tests." in answered_result


def test_validating_leaves_the_exercises_as_they_are(answered_result: str, learner_course: CourseCopy) -> None:
    released = Course(learner_course.root).exercise("activations").read_bytes()
    assert released == (Path(__file__).parents[2] / "exercises/activations/activations.ipynb").read_bytes()


@pytest.mark.parametrize("fault", ["elsewhere", "refused", "errors"])
def test_jupyterlab_works_without_fault(fault: str, answered_result: str, seen: Seen) -> None:
    assert getattr(seen, fault) == []
