"""The page of `grader report` in Chromium, opened from the disk."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from grader.report.page import write_page
from grader.report.summary import summarise
from tests.browser.conftest import Seen
from tests.browser.front import axe_violations, new_context, scrolls_sideways
from tests.grader.report.classes import seeded_class

COUNT = 40


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    target = tmp_path_factory.mktemp("report") / "activations.html"
    write_page(summarise(seeded_class(COUNT)), target)
    return target.as_uri()


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture(params=["wide", "wide dark", "phone", "phone dark"])
def looks(request: pytest.FixtureRequest, browser: Browser, address: str) -> Iterator[Page]:
    """The page with everything that opens open, on a wide screen and on a phone, light and dark."""
    setting = str(request.param).split()
    context = new_context(browser, dark="dark" in setting, phone="phone" in setting, scripts=True, init="")
    tab = context.new_page()
    tab.goto(address)
    tab.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    yield tab
    context.close()


@pytest.fixture
def tab(browser: Browser, address: str, seen: Seen) -> Iterator[Page]:
    context = new_context(browser, dark=False, phone=False, scripts=True, init="")
    seen.watch(context)
    opened = context.new_page()
    opened.goto(address)
    yield opened
    context.close()


@pytest.fixture
def plain(browser: Browser, address: str) -> Iterator[Page]:
    """The page in a browser without scripts."""
    context = new_context(browser, dark=False, phone=False, scripts=False, init="")
    opened = context.new_page()
    opened.goto(address)
    yield opened
    context.close()


def first_column(page: Page, table: str) -> list[str]:
    rows = page.locator(f"{table} tbody tr:visible")
    return [text.strip() for text in rows.locator("th").all_inner_texts()]


def test_axe_finds_nothing(looks: Page) -> None:
    assert axe_violations(looks) == []


def test_the_page_does_not_scroll_sideways(looks: Page) -> None:
    assert not scrolls_sideways(looks)


def test_the_figures_are_inside_the_page_and_have_their_patterns(looks: Page) -> None:
    for plot in looks.locator("svg.plot").all():
        box = plot.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["width"] > 250
    fill = looks.locator(".plot .partial").last.evaluate("part => getComputedStyle(part).fill")
    assert "hatch-steps" in fill


def test_no_text_of_a_figure_is_cut_off(looks: Page) -> None:
    outside = looks.evaluate(
        """[...document.querySelectorAll('svg.plot text')].filter((text) => {
          const box = text.getBoundingClientRect();
          const whole = text.ownerSVGElement.getBoundingClientRect();
          return box.left < whole.left - 1 || box.right > whole.right + 1;
        }).map((text) => text.textContent)"""
    )
    assert outside == []


def test_the_page_asks_nobody_for_anything_and_breaks_no_rule_of_its_policy(tab: Page, seen: Seen) -> None:
    tab.get_by_role("button", name="points").last.click()
    tab.locator("#filter-everybody").fill("001")
    tab.wait_for_load_state("networkidle")
    assert seen == Seen()


def test_a_script_that_got_into_the_page_does_not_run(tab: Page) -> None:
    ran = tab.evaluate(
        """() => new Promise((done) => {
          document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));
          const script = document.createElement('script');
          script.textContent = 'document.title = "ran"';
          document.body.append(script);
        })"""
    )
    assert ran.startswith("script-src")
    expect(tab).to_have_title("Report on the unit activations")


def test_a_table_is_sorted_with_the_keyboard_and_says_so(tab: Page) -> None:
    header = tab.locator("#everybody th").nth(1)
    points = tab.locator("#everybody tbody td:nth-child(2)")
    header.get_by_role("button").focus()
    for order, turned in (("ascending", False), ("descending", True)):
        tab.keyboard.press("Enter")
        expect(header).to_have_attribute("aria-sort", order)
        values = [float(text) for text in points.all_inner_texts()]
        assert values == sorted(values, reverse=turned)
        assert len(values) == COUNT


def test_only_the_column_that_a_table_is_sorted_by_says_so(tab: Page) -> None:
    for place in (1, 0):
        tab.locator("#everybody th").nth(place).get_by_role("button").click()
    assert tab.locator("#everybody thead th[aria-sort]").all_inner_texts() == ["learner"]
    assert first_column(tab, "#everybody") == [f"learner-{number:04d}" for number in range(1, COUNT + 1)]


def test_the_filter_leaves_the_learners_whose_name_contains_it(tab: Page) -> None:
    tab.get_by_label("Learners whose name contains").last.fill("-000")
    assert first_column(tab, "#everybody") == [f"learner-{number:04d}" for number in range(1, 10)]
    expect(tab.locator(".filter [role=status]").last).to_have_text(f"9 of {COUNT} rows")
    tab.get_by_label("Learners whose name contains").last.fill("")
    assert len(first_column(tab, "#everybody")) == COUNT


def test_the_filter_opens_the_cases_that_it_finds_something_in(tab: Page) -> None:
    waiting = tab.locator("#remarks details", has_text="A written answer waits to be graded")
    expect(waiting.locator("table")).to_be_hidden()
    name = waiting.locator("tbody th").first.text_content()
    tab.locator("#filter-remarks").fill(str(name))
    expect(waiting.locator("table")).to_be_visible()
    assert set(first_column(tab, "#remarks")) == {name}


def test_two_similar_submissions_are_side_by_side_with_what_agrees_marked(tab: Page) -> None:
    pair = tab.locator("details.pair").first
    pair.locator("summary").click()
    left, right = (pair.locator(".sides").first.locator("figure").nth(side) for side in (0, 1))
    expect(left.locator("figcaption")).to_have_text("learner-0001")
    expect(right.locator("figcaption")).to_have_text(f"learner-{COUNT:04d}")
    boxes = left.bounding_box(), right.bounding_box()
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert boxes[0]["y"] == boxes[1]["y"]
    assert left.locator("mark").all_inner_texts() == right.locator("mark").all_inner_texts() != []


def test_without_scripts_everything_is_there_but_what_needs_them(plain: Page) -> None:
    assert len(first_column(plain, "#everybody")) == COUNT
    expect(plain.locator("thead button")).to_have_count(0)
    expect(plain.locator(".filter:visible")).to_have_count(0)
    plain.locator("details.pair summary").first.click()
    expect(plain.locator("details.pair pre").first).to_be_visible()


def test_the_page_prints_with_everything_open(tab: Page, tmp_path: Path) -> None:
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(tab.locator("details:not([open])")).to_have_count(0)
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(tab.locator("details.pair[open]")).to_have_count(0)
    tab.emulate_media(media="print")
    expect(tab.locator("nav")).to_be_hidden()
    assert tab.pdf(path=tmp_path / "report.pdf")[:4] == b"%PDF"
