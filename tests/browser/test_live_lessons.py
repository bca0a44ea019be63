"""Every lesson with code, run in the page from top to bottom: its check lines are those of the built page."""

import contextlib
from dataclasses import dataclass

import pytest
from playwright.sync_api import Browser, Page, TimeoutError

from tests.browser.conftest import Seen
from tests.browser.front import WIDE
from tests.browser.lite import HTML, require_live
from tests.browser.live import PATIENCE, Reader, address, lessons_with_code, patience
from tests.helpers import ROOT
from tools.contents import pages

__all__ = ["address", "patience"]

pytestmark = pytest.mark.slow

# Press both buttons at once: what runs waits until Python is there.
RUN_ALL = """async () => {
  document.querySelector("#live-run").click();
  for (let tries = 0; tries < 3000 && !document.querySelector(".ffn-live-bar"); tries++)
    await new Promise(done => setTimeout(done, 20));
  [...document.querySelectorAll(".ffn-live-bar button")].find(b => b.textContent === "Run all").click();
}"""
ENDED = """() => ["ready", "failed"].includes(document.querySelector("#live-status")?.dataset.state)"""
LINES = """place => [...document.querySelectorAll(`${place} .ffn-check`)].map(line => line.textContent)"""


@dataclass(frozen=True)
class Run:
    """What came of a lesson that was run from top to bottom."""

    status: str
    errors: list[str]
    left_out: int
    built: list[str]
    computed: list[str]
    unrun: int


def collected(page: Page, built: list[str]) -> Run:
    return Run(
        status=page.locator("#live-status").inner_text(),
        errors=page.locator(".ffn-live-error").all_inner_texts(),
        left_out=page.locator('[data-live="left-out"]').count(),
        built=built,
        computed=page.evaluate(LINES, ".cell_output[data-live]"),
        unrun=page.locator('[data-live="new"], [data-live="waiting"]').count(),
    )


@pytest.fixture(scope="module")
def runs(browser: Browser, address: str) -> dict[str, Run]:
    """Every lesson with code, run from top to bottom, in one tab: a browser gives a second one less of the machine."""
    context = browser.new_context(viewport=WIDE)  # type: ignore[arg-type]
    reader, found = Reader(context, address), {}
    page = context.new_page()
    for lesson in lessons_with_code():
        reader.go(page, lesson)
        built = page.evaluate(LINES, "#main-content")
        page.evaluate(RUN_ALL)
        with contextlib.suppress(TimeoutError):
            page.wait_for_function(ENDED, timeout=PATIENCE)
        # Where it did not come to its end, what it says is what the tests of this lesson show.
        found[lesson] = collected(page, built)
    assert reader.seen == Seen(), reader.seen
    context.close()
    return found


LESSONS = lessons_with_code()


@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_from_top_to_bottom(lesson: str, runs: dict[str, Run]) -> None:
    run = runs[lesson]
    assert run.errors == []
    assert run.status.startswith("Ready.")
    assert run.unrun == 0


@pytest.mark.parametrize("lesson", LESSONS)
def test_its_check_lines_are_those_of_the_built_page(lesson: str, runs: dict[str, Run]) -> None:
    assert runs[lesson].computed == runs[lesson].built


def test_there_are_check_lines_to_compare(runs: dict[str, Run]) -> None:
    assert sum(len(run.computed) for run in runs.values()) > 50


@pytest.mark.parametrize("lesson", LESSONS)
def test_cells_are_left_out_only_where_a_page_reads_the_checkpoints(lesson: str, runs: dict[str, Run]) -> None:
    reads = "ffn.checkpoints" in (ROOT / f"{lesson}.md").read_text(encoding="utf-8")
    assert (runs[lesson].left_out > 0) == reads


def test_the_button_is_on_every_page_that_shows_code_and_on_no_other() -> None:
    require_live()
    built = [page for page in pages() if 'id="live-run"' in (HTML / f"{page}.html").read_text(encoding="utf-8")]
    assert built == [page for page in LESSONS if page in built]
    assert sorted(built) == sorted(LESSONS)


def test_the_slice_is_the_files_that_the_course_names(runs: dict[str, Run]) -> None:
    for name, place in (
        ("layer.npz", "exercises/capstone/layer.npz"),
        ("checkpoints.json", "tools/live/checkpoints.json"),
    ):
        assert (HTML / "live" / "data" / name).read_bytes() == (ROOT / place).read_bytes()
