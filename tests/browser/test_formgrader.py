"""nbgrader's formgrader on the course with the graded demo class."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Seen, Server, running
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(graded_course: CourseCopy) -> Iterator[Server]:
    with running(graded_course, "--formgrader") as started:
        yield started


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Server, seen: Seen) -> Iterator[Page]:
    """A page on which the printed address was opened."""
    context = browser.new_context()
    seen.watch(context)
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    opened.goto(re.findall(r"http://127\.0\.0\.1:\S+", server.said)[0])
    yield opened
    context.close()


@pytest.fixture(scope="module")
def scores(graded_course: CourseCopy) -> dict[str, float]:
    entries = json.loads(graded_course.grader("scores", "activations", "--json").stdout)
    return {entry["learner"]: entry["points"] for entry in entries}


@pytest.fixture(scope="module")
def submissions(page: Page, server: Server, scores: dict[str, float]) -> dict[str, str]:
    """The rows of the submissions page, by learner."""
    page.goto(f"{server.address}/formgrader/manage_submissions/activations")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(len(scores), timeout=60_000)
    texts = [" ".join(text.split()) for text in rows.all_inner_texts()]
    return {re.findall(r"learner-\d+", text)[0]: text for text in texts}


def test_the_printed_address_opens_the_assignments(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/formgrader?token={server.token}")
    expect(page).to_have_url(re.compile(r"/formgrader/manage_assignments"), timeout=60_000)
    expect(page.get_by_role("heading", name="Manage Assignments")).to_be_visible(timeout=60_000)


def test_without_the_token_nothing_opens(browser: Browser, server: Server) -> None:
    stranger = browser.new_context().new_page()
    stranger.goto(f"{server.address}/formgrader")
    assert "/login" in stranger.url
    stranger.context.close()


def test_the_assignment_is_listed_with_the_number_of_submissions(
    page: Page, server: Server, scores: dict[str, float]
) -> None:
    page.goto(f"{server.address}/formgrader/manage_assignments")
    row = page.locator("tbody tr", has_text="activations")
    expect(row.locator("td.num-submissions")).to_have_text(str(len(scores)), timeout=60_000)


def test_the_submissions_page_lists_every_learner(submissions: dict[str, str], scores: dict[str, float]) -> None:
    assert sorted(submissions) == sorted(scores)


@pytest.mark.parametrize("learner", [f"learner-{i:02d}" for i in range(1, 13)])
def test_the_submissions_page_shows_the_score(
    learner: str, submissions: dict[str, str], scores: dict[str, float]
) -> None:
    assert f" {scores[learner]:g} / 40" in submissions[learner]


def test_the_submissions_page_shows_what_is_to_be_read_by_a_person(submissions: dict[str, str]) -> None:
    assert "needs manual grading" in submissions["learner-01"]
    assert "needs manual grading" not in submissions["learner-02"]


@pytest.mark.parametrize("fault", ["elsewhere", "refused", "errors"])
def test_the_pages_of_the_class_load_without_fault(
    fault: str, page: Page, server: Server, submissions: dict[str, str], seen: Seen
) -> None:
    page.goto(f"{server.address}/formgrader/gradebook/activations/activations")
    expect(page.locator("tbody tr")).to_have_count(len(submissions), timeout=60_000)
    assert getattr(seen, fault) == []
