"""The page that a learner gets back, in a browser: legible, whole by itself, and free of what learners wrote."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from grader import formulas
from grader.course import Course
from grader.feedback import page_of, write_feedback
from tests.browser.conftest import Seen
from tests.browser.front import axe_violations, new_context, scrolls_sideways
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow

UNIT = "activations"
LOOKS = [(dark, phone) for dark in (False, True) for phone in (False, True)]


@pytest.fixture(scope="module")
def course(graded_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> Course:
    copied = Course(Path(shutil.copytree(graded_course.root, tmp_path_factory.mktemp("feedback") / "course")))
    write_feedback(copied, UNIT)
    return copied


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest.fixture(
    scope="module",
    params=LOOKS,
    ids=lambda look: f"{'dark' if look[0] else 'light'}-{'phone' if look[1] else 'wide'}",
)
def tab(request: pytest.FixtureRequest, browser: Browser, seen: Seen) -> Iterator[Page]:
    dark, phone = request.param
    context = new_context(browser, dark=dark, phone=phone, scripts=True, init="")
    seen.watch(context)
    yield context.new_page()
    context.close()


def opened(tab: Page, course: Course, learner: str) -> Page:
    tab.goto(page_of(course, learner, UNIT).as_uri(), wait_until="load")
    return tab


# One mistake; a notebook that was put right.
@pytest.mark.parametrize("learner", ["learner-03", "learner-09"])
def test_axe_finds_nothing(tab: Page, course: Course, learner: str) -> None:
    assert axe_violations(opened(tab, course, learner)) == []


@pytest.mark.parametrize("learner", ["learner-03", "learner-10"])
def test_the_page_does_not_scroll_sideways(tab: Page, course: Course, learner: str) -> None:
    assert not scrolls_sideways(opened(tab, course, learner))


def test_the_mistake_stands_in_the_table(tab: Page, course: Course) -> None:
    row = opened(tab, course, "learner-03").locator(".steps tr", has_text="gelu").filter(has_text="0 of 3").first
    expect(row).to_contain_text("What happened: the tanh form was used")


def test_a_step_s_name_leads_to_its_answer(tab: Page, course: Course) -> None:
    opened(tab, course, "learner-03").locator(".steps").get_by_role("link", name="gelu", exact=True).click()
    expect(tab.locator("#gelu")).to_be_in_viewport()


def test_formulas_are_rendered(tab: Page, course: Course) -> None:
    page = opened(tab, course, "learner-03")
    assert page.locator(".formula").count() > 0
    expect(page.locator(".formula:not(:has(math))")).to_have_count(0)


def test_without_node_the_page_renders_its_formulas_itself(
    tab: Page, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formulas, "_programs", lambda: (None, None))
    monkeypatch.setattr(formulas, "_known", {})
    write_feedback(course, UNIT, "learner-04")
    assert "<math" not in page_of(course, "learner-04", UNIT).read_text(encoding="utf-8").partition("<script>")[0]
    page = opened(tab, course, "learner-04")
    expect(page.locator(".formula:not(:has(math))")).to_have_count(0)
    assert axe_violations(page) == []


@pytest.mark.parametrize("fault", ["elsewhere", "refused", "errors"])
def test_the_pages_ask_nobody_for_anything(fault: str, tab: Page, course: Course, seen: Seen) -> None:
    opened(tab, course, "learner-03")
    assert getattr(seen, fault) == []
