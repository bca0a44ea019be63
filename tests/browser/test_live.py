"""What a reader does on a lesson whose code runs in the page, and what can go wrong there."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Route, expect

from tests.browser.conftest import Seen
from tests.browser.front import PHONE, WIDE, axe_violations, scrolls_sideways
from tests.browser.lite import HTML, require_live, serving
from tests.browser.live import LESSON, PATIENCE, SLICED, Live, Reader, address, patience
from tests.browser.test_asked import BLOCKED
from tests.helpers import ROOT

__all__ = ["address", "patience"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def plain_address() -> Iterator[str]:
    """The built book below a path of a plain host, which does not."""
    require_live()
    with serving(HTML, below="/some/course", isolated=False) as served:
        yield served


Readers = Callable[..., Reader]


@pytest.fixture
def readers(browser: Browser, address: str) -> Iterator[Readers]:
    """Readers with profiles of their own; at the end nothing may have gone wrong on their pages."""
    opened = []

    def reader(at: str = address, *, dark: bool = False, phone: bool = False, careless: bool = False) -> Reader:
        context = browser.new_context(
            viewport=PHONE if phone else WIDE,  # type: ignore[arg-type]
            color_scheme="dark" if dark else "light",
        )
        made = Reader(context, at)
        opened.append((made, careless))
        return made

    yield reader
    for made, _ in opened:
        made.context.close()
    for made, careless in opened:
        assert careless or made.seen == Seen(), made.seen


@pytest.fixture
def reader(readers: Readers) -> Reader:
    return readers()


@pytest.fixture(scope="module")
def shared(browser: Browser, address: str) -> Iterator[tuple[Reader, Live]]:
    """One lesson that runs, for the tests that leave it as they found it."""
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    reader = Reader(context, address)
    lesson = reader.open().begin()
    lesson.press("Run all")
    yield reader, lesson.wait("ready")
    context.close()


@pytest.fixture
def live(shared: tuple[Reader, Live]) -> Iterator[Live]:
    """A lesson that runs; afterwards its code is the book's again."""
    reader, lesson = shared
    lesson.wait("ready", "failed")
    yield lesson
    lesson.press("Reset all")
    assert reader.seen == Seen(), reader.seen


# Before the button is pressed


def test_nothing_of_python_is_loaded_before_the_button_is_pressed(reader: Reader) -> None:
    page = reader.open().page
    page.wait_for_timeout(500)
    assert [url for url in reader.requests if re.search(r"/live/|codemirror|live-page|\.wasm|\.whl", url)] == []


def test_where_the_browser_part_was_left_out_there_is_no_button(reader: Reader) -> None:
    def nothing(route: Route) -> None:
        route.fulfill(content_type="text/javascript", body="export const live = null;")

    reader.context.route("**/live-config.mjs", nothing)
    expect(reader.open().page.locator("#live-run")).to_have_count(0)


def test_a_page_opened_from_a_file_says_what_to_do(reader: Reader) -> None:
    page = reader.context.new_page()
    page.goto((HTML / f"{LESSON}.html").as_uri())
    expect(page.get_by_text("type make serve")).to_be_visible()
    expect(page.locator("#live-run")).to_be_hidden()


# Run and change


def test_shift_enter_runs_the_cell_and_goes_to_the_next(live: Live) -> None:
    live.type(3, "print(6 * 7)")
    live.page.keyboard.press("Shift+Enter")
    expect(live.editor(4)).to_be_focused()
    expect(live.cell(3).locator(".cell_output")).to_have_text("42")


def test_the_next_cell_is_reached_at_its_button_where_its_code_is_folded(live: Live) -> None:
    live.editor(1).click()
    live.page.keyboard.press("Shift+Enter")
    expect(live.page.get_by_role("button", name="Run cell 2")).to_be_focused()
    live.page.keyboard.press("Shift+Enter")
    expect(live.editor(3)).to_be_focused()
    live.wait("ready")


def test_the_button_of_a_cell_runs_it(live: Live) -> None:
    live.type(4, "'by its button'")
    live.page.get_by_role("button", name="Run cell 4").click()
    expect(live.cell(4).locator(".cell_output")).to_have_text("'by its button'")


def test_cells_share_their_names(live: Live) -> None:
    live.run(3, "shared_name = 12")
    assert live.run(4, "shared_name + 1") == "13"


def test_a_figure_is_drawn_anew_and_follows_the_theme(live: Live) -> None:
    figure = live.cell(2).locator(".cell_output svg[role=img]")
    built = figure.get_attribute("aria-label")
    live.page.get_by_role("button", name="Run cell 2").click()
    live.wait("ready")
    expect(live.cell(2).locator(".cell_output")).to_have_attribute("data-live", "")
    assert figure.get_attribute("aria-label") == built
    assert "var(--ffn-" in figure.inner_html()


def test_what_pyplot_draws_is_shown_too(live: Live) -> None:
    live.run(3, "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nNone")
    expect(live.cell(3).locator(".cell_output img")).to_have_count(1)


def test_a_table_is_a_table(live: Live) -> None:
    live.run(3, "from ffn.show import table\ntable(['a', 'b'], [[1, 2], [3, 4]])")
    expect(live.cell(3).locator(".cell_output table tbody tr")).to_have_count(2)


def test_an_error_shows_the_line_of_the_cell_and_is_said_in_words(live: Live) -> None:
    shown = live.run(3, "x = 1\nx / 0", "failed")
    assert "Cell 3, line 2" in shown
    assert "ZeroDivisionError: division by zero" in shown
    expect(live.status).to_have_text("Cell 3 failed: ZeroDivisionError.")
    expect(live.cell(3).get_by_text("Cell 3: failed, changed by you")).to_be_visible()


def test_a_check_that_is_not_met_names_what_was_expected(live: Live) -> None:
    shown = live.run(4, "from ffn import check\ncheck('ex1.dot_A', 5)", "failed")
    assert "ex1.dot_A" in shown
    assert "NotReproducedError" in shown


def test_reset_brings_back_the_code_and_the_output_of_the_book(live: Live) -> None:
    built_code, built_output = live.editor(3).inner_text(), live.output(3)
    live.run(3, "print('changed')")
    live.cell(3).get_by_role("button", name="Reset cell 3").click()
    assert live.editor(3).inner_text() == built_code
    assert live.output(3) == built_output
    expect(live.cell(3).get_by_role("button", name="Reset cell 3")).to_be_hidden()


def test_reset_all_brings_back_every_cell(live: Live) -> None:
    built = [live.editor(number).inner_text() for number in (3, 4)]
    live.type(3, "one")
    live.type(4, "two")
    live.press("Reset all")
    assert [live.editor(number).inner_text() for number in (3, 4)] == built


def test_text_without_end_is_cut_and_said_to_be(live: Live) -> None:
    shown = live.run(3, "for i in range(30_000): print('line', i)")
    assert shown.endswith("nothing more is shown.")


def test_cells_above_that_have_not_run_run_first_and_this_is_said(reader: Reader) -> None:
    live = reader.open().begin()
    live.page.get_by_role("button", name="Run cell 4").click()
    expect(live.status).to_have_text("Ready. 3 cells above ran first.")
    expect(live.cell(4).locator(".cell_output[data-live] .ffn-check")).to_have_count(1)


def test_a_cell_that_fails_above_stops_those_below_it(reader: Reader) -> None:
    live = reader.open().begin()
    live.type(1, "raise ValueError('on purpose')")
    live.press("Run all")
    live.wait("failed")
    expect(live.status).to_contain_text("Cell 1 failed: ValueError.")
    expect(live.status).to_contain_text("after it did not run")
    expect(live.cell(4)).to_have_attribute("data-live", "new")


def test_restart_forgets_what_was_computed_and_keeps_the_code(reader: Reader) -> None:
    live = reader.open().begin()
    live.run(1, "once = 1")
    live.press("Restart")
    expect(live.status).to_have_text(
        "Ready. Python was restarted; cells above run again when needed.", timeout=PATIENCE
    )
    assert live.editor(1).inner_text() == "once = 1"
    live.run(1, "once", "failed")
    expect(live.status).to_have_text("Cell 1 failed: NameError.")


# Interrupt, memory, reload


def test_an_interrupt_stops_an_endless_loop_and_keeps_what_was_computed(live: Live) -> None:
    live.run(3, "kept_by_python = 41")
    live.type(4, "while True: pass")
    live.page.keyboard.press("ControlOrMeta+Enter")
    live.wait("running")
    expect(live.status).to_have_text("Running Cell 4…")
    live.press("Interrupt")
    expect(live.status).to_contain_text("Cell 4 was interrupted")
    assert live.run(4, "kept_by_python + 1") == "42"


def test_without_shared_memory_an_interrupt_restarts_python_and_keeps_the_code(
    readers: Readers, plain_address: str
) -> None:
    live = readers(plain_address).open().begin()
    assert not live.page.evaluate("crossOriginIsolated")
    live.run(1, live.editor(1).inner_text() + "\nfirst = 1")
    live.type(3, "while True: pass")
    live.page.keyboard.press("ControlOrMeta+Enter")
    live.wait("running")
    live.press("Interrupt")
    expect(live.status).to_have_text(
        "Ready. Python was restarted; cells above run again when needed.", timeout=PATIENCE
    )
    assert live.editor(3).inner_text() == "while True: pass"
    assert live.run(3, "first + 1") == "2"


def test_a_cell_that_asks_for_too_much_memory_leaves_a_page_that_works(live: Live) -> None:
    live.run(3, "b = [bytearray(10**8) for _ in range(100)]", "failed", "ready")
    expect(live.cell(3)).to_have_attribute("data-live", re.compile("failed|stale"))
    assert live.run(4, "print('still here')") == "still here"
    assert "bytearray" in live.editor(3).inner_text()


def test_a_worker_that_dies_is_replaced_and_this_is_said(readers: Readers) -> None:
    # Pyodide itself writes its fault into the console.
    live = readers(careless=True).open().begin()
    live.type(1, "import ctypes\nctypes.string_at(2**32 - 16)")
    live.page.keyboard.press("ControlOrMeta+Enter")
    expect(live.status).to_have_text(
        "Ready. Cell 1 ended Python. Python was restarted; cells above run again when needed.", timeout=PATIENCE
    )
    assert live.run(1, "1 + 1") == "2"


def test_after_a_reload_during_a_run_the_typed_code_is_back(reader: Reader) -> None:
    live = reader.open().begin()
    live.type(1, "while True: pass  # mine")
    live.page.keyboard.press("ControlOrMeta+Enter")
    live.wait("running")
    reader.go(live.page, LESSON)
    expect(live.page.get_by_text("Code that you typed here earlier is kept")).to_be_visible()
    live.begin()
    assert live.editor(1).inner_text() == "while True: pass  # mine"
    expect(live.page.get_by_text("What you typed earlier is back: Cell 1.")).to_be_visible()
    assert live.run(1, "'works'") == "'works'"


def test_typed_code_can_be_dropped(reader: Reader) -> None:
    live = reader.open().begin()
    built = live.editor(1).inner_text()
    live.type(1, "mine")
    reader.go(live.page, LESSON)
    live.begin()
    live.press("Drop it")
    assert live.editor(1).inner_text() == built
    reader.go(live.page, LESSON)
    expect(live.page.get_by_text("Code that you typed here earlier is kept")).to_have_count(0)


def test_code_typed_into_a_cell_that_the_book_has_changed_can_be_read_and_dropped(reader: Reader) -> None:
    live = reader.open()
    kept = {"version": 1, "cells": {"0" * 8: {"text": "typed long ago", "at": 1}}}
    live.page.evaluate("([key, value]) => localStorage.setItem(key, JSON.stringify(value))", [KEY, kept])
    reader.go(live.page, LESSON)
    live.begin()
    live.page.get_by_text("What you typed into 1 cell that the book has changed since").click()
    expect(live.page.get_by_text("typed long ago")).to_be_visible()
    live.press("Drop it")
    assert live.page.evaluate("key => localStorage.getItem(key)", KEY) is None


KEY = f"ffn-course-live:{LESSON}"


@pytest.mark.parametrize("broken", ["{", '{"version": 2}', '{"version": 1, "cells": {"a": 3}}'])
def test_what_cannot_be_read_as_typed_code_is_set_aside(reader: Reader, broken: str) -> None:
    live = reader.open()
    live.page.evaluate("([key, value]) => localStorage.setItem(key, value)", [KEY, broken])
    reader.go(live.page, LESSON)
    expect(live.page.locator("#live-run")).to_be_visible()
    kept: Any = live.page.evaluate("Object.values(localStorage)")
    assert broken in kept
    assert live.page.evaluate("key => localStorage.getItem(key)", KEY) is None


def test_without_storage_it_works_and_says_that_nothing_is_kept(readers: Readers) -> None:
    reader = readers(careless=True)
    reader.context.add_init_script(BLOCKED)
    live = reader.open().begin()
    assert live.run(1, "2 + 2") == "4"
    expect(live.page.get_by_text("This browser keeps nothing")).to_be_visible()


def test_python_ends_when_the_page_is_left(reader: Reader) -> None:
    live = reader.open().begin()
    assert len(live.page.workers) == 1
    live.page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")
    live.page.wait_for_timeout(300)
    assert live.page.workers == []


@pytest.mark.parametrize("missing", ["pyodide.asm.js", "pyodide.asm.wasm", "live_runner.py"])
def test_where_python_cannot_be_loaded_the_page_says_so_and_restart_tries_again(
    readers: Readers, missing: str
) -> None:
    reader = readers(careless=True)
    reader.context.route(f"**/{missing}", lambda route: route.abort())
    live = reader.open()
    live.page.locator("#live-run").click()
    live.wait("failed")
    expect(live.status).to_contain_text("Python could not be started")
    reader.context.unroute(f"**/{missing}")
    live.press("Restart")
    live.wait("ready")


# The slice


def test_a_page_on_the_checkpoints_runs_on_the_slice_and_says_so(reader: Reader) -> None:
    live = reader.open(SLICED).begin()
    expect(live.page.get_by_text("it runs on a slice")).to_be_visible()
    live.page.get_by_role("button", name="Run the slice").click()
    shown = live.page.locator(".ffn-live-slice .cell_output")
    expect(shown).to_contain_text("difference to MiniLM's own output")
    difference = float(shown.inner_text().split(":")[-1])
    assert 0 < difference < 1e-5


# For everyone


def test_tab_indents_and_after_escape_it_leaves_the_editor(live: Live) -> None:
    live.type(3, "x")
    live.page.keyboard.press("Home")
    live.page.keyboard.press("Tab")
    assert live.editor(3).inner_text() == "    x"
    live.page.keyboard.press("Escape")
    live.page.keyboard.press("Tab")
    expect(live.page.get_by_role("button", name="Run cell 3")).to_be_focused()
    assert live.editor(3).inner_text() == "    x"


def test_the_way_out_of_the_editor_is_said(live: Live) -> None:
    expect(live.editor(3)).to_have_accessible_description(re.compile("press Escape and then Tab"))


def test_states_are_said_in_words(reader: Reader) -> None:
    page = reader.open().page
    page.locator("#live-run").click()
    status = page.get_by_role("status").and_(page.locator("#live-status"))
    expect(status).to_have_attribute("data-state", "loading")
    expect(status).to_contain_text("Loading")
    expect(status).to_have_attribute("data-state", "ready")
    expect(status).to_contain_text("Ready.")


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_on_a_live_page_and_it_does_not_scroll_sideways(
    readers: Readers, dark: bool, phone: bool
) -> None:
    live = readers(dark=dark, phone=phone).open().begin()
    live.run(3, "print('a long line ' * 30)\n1 / 0  # comment " + "x" * 200, "failed")
    live.press("Run all")
    live.wait("failed")
    live.page.locator("details.above-input").first.evaluate("details => details.open = true")
    live.page.locator(".ffn-live-help").evaluate("details => details.open = true")
    assert axe_violations(live.page) == []
    assert not scrolls_sideways(live.page)


def test_the_bundle_of_the_editor_is_small_and_has_its_licenses() -> None:
    folder = Path(ROOT / "book/_static/vendor/codemirror")
    assert (folder / "codemirror.mjs").stat().st_size < 500_000
    assert (folder / "LICENSE").read_text(encoding="utf-8").count("MIT License") >= 5
