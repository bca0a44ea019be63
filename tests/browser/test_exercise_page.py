"""The page of an exercise: it says what will happen, hands work out, starts over, and never hides a new version."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.browser.conftest import Seen
from tests.browser.front import PHONE, WIDE, axe_violations, scrolls_sideways
from tests.browser.lite import HTML, UNITS, Learner, require_live, serving
from tests.helpers import ROOT

pytestmark = pytest.mark.slow
UNIT = "mechanism"
PATH = f"{UNIT}/{UNIT}.ipynb"
TODAY = date.today().isoformat()
KEPT = f"{UNIT}-{TODAY}.ipynb"

# What JupyterLite's scripts do when a learner saves: an entry in a store that they have made.
SAVE = """async ([path, content, time]) => {
  const name = `JupyterLite Storage - ${location.pathname.split("/live/")[0]}/live/lite/`;
  const open = indexedDB.open(name, 1);
  open.onupgradeneeded = () => ["files", "counters", "checkpoints"].forEach(s => open.result.createObjectStore(s));
  const base = await new Promise((resolve, reject) => {
    open.onsuccess = () => resolve(open.result);
    open.onerror = () => reject(open.error);
  });
  const change = base.transaction(["files", "checkpoints"], "readwrite");
  const entry = {
    name: path.split("/").pop(), path, content, last_modified: time, created: time,
    format: "json", mimetype: "application/json", size: 1, writable: true, type: "notebook",
  };
  change.objectStore("files").put(entry, path);
  change.objectStore("checkpoints").put([entry], path);
  await new Promise(resolve => { change.oncomplete = resolve; });
  base.close();
}"""

ALL = """async store => {
  const name = `JupyterLite Storage - ${location.pathname.split("/live/")[0]}/live/lite/`;
  const open = indexedDB.open(name);
  const base = await new Promise(resolve => { open.onsuccess = () => resolve(open.result); });
  const files = base.transaction(store).objectStore(store);
  const keys = files.getAllKeys();
  const values = files.getAll();
  await new Promise(resolve => { values.onsuccess = resolve; });
  base.close();
  return Object.fromEntries(keys.result.map((key, place) => [key, values.result[place]]));
}"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    require_live()
    with serving(HTML) as served:
        yield served


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def context(browser: Browser, seen: Seen) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport=WIDE, accept_downloads=True)  # type: ignore[arg-type]
    seen.watch(opened)
    yield opened
    opened.close()
    assert seen == Seen()


@pytest.fixture
def learner(context: BrowserContext, address: str) -> Learner:
    return Learner(context.new_page(), address)


def notebook(answer: str = "", version: str | None = None) -> Any:
    """The exercise as the site has it, perhaps with something typed into its first code cell, or of another version."""
    made = json.loads((HTML / "live" / "lite" / "files" / PATH).read_text(encoding="utf-8"))
    if answer:
        next(cell for cell in made["cells"] if cell["cell_type"] == "code")["source"] = answer
    if version is not None:
        made["metadata"]["exercise"]["version"] = version
    return made


def save(learner: Learner, content: Any, path: str = PATH, time: str = f"{TODAY}T12:00:00.000Z") -> None:
    """Let the browser keep a notebook, and look at the page again."""
    learner.exercise_page(UNIT).evaluate(SAVE, [path, content, time])
    learner.exercise_page(UNIT)


def kept(learner: Learner, store: str = "files") -> dict[str, Any]:
    found: dict[str, Any] = learner.page.evaluate(ALL, store)
    return found


def status(page: Page) -> str:
    return page.get_by_role("status").inner_text()


def downloaded(page: Page, name: str) -> tuple[str, Any]:
    """The name and the notebook that a button hands out."""
    with page.expect_download() as download:
        page.get_by_role("button", name=name, exact=True).click()
    return download.value.suggested_filename, json.loads(Path(download.value.path()).read_bytes())


# ------------------------------------------------------------------------------------------------- at first


def test_the_page_is_named_after_the_exercise_and_says_what_will_happen(learner: Learner) -> None:
    page = learner.exercise_page(UNIT)
    assert page.get_by_role("heading", level=1).inner_text() == page.title() == "Exercise: The mechanism"
    text = page.locator("main").inner_text()
    assert "Nothing is installed" in text
    assert "download your work" in text
    assert status(page) == "Not begun yet."


def test_before_anything_was_changed_there_is_nothing_to_download(learner: Learner) -> None:
    page = learner.exercise_page(UNIT)
    page.get_by_role("button", name="Download my work").click()
    expect(page.get_by_role("status")).to_have_text(
        "There is nothing to download: you have not changed the exercise yet."
    )


def test_a_copy_that_was_only_run_is_nothing_to_download(learner: Learner) -> None:
    content = notebook()
    next(cell for cell in content["cells"] if cell["cell_type"] == "code")["execution_count"] = 7
    save(learner, content)
    learner.page.get_by_role("button", name="Download my work").click()
    expect(learner.page.get_by_role("status")).to_contain_text("There is nothing to download")


def test_looking_leaves_no_storage_behind_in_which_jupyterlite_would_find_no_stores(learner: Learner) -> None:
    page = learner.exercise_page(UNIT)
    assert page.evaluate("indexedDB.databases()") == []


@pytest.mark.parametrize("asked", ["", "no-such-unit", "<b>", "__proto__", "constructor"])
def test_without_a_known_unit_the_page_lists_them_all(learner: Learner, asked: str) -> None:
    page = learner.exercise_page(asked)
    links = page.get_by_role("main").get_by_role("link")
    assert sorted(link.get_attribute("href") or "" for link in links.all()) == [f"?unit={unit}" for unit in UNITS]
    assert (f"There is no exercise “{asked}”" in status(page)) == bool(asked)


# ---------------------------------------------------------------------------------------------- work is kept


def test_work_that_is_kept_is_announced_with_its_day(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    assert status(learner.page) == f"You have worked on this exercise here, last on {TODAY}."


def test_my_work_is_handed_out_under_the_exercise_s_name(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    name, handed = downloaded(learner.page, "Download my work")
    assert name == f"{UNIT}.ipynb"
    assert handed["cells"] == notebook("x = 1")["cells"]
    assert handed["metadata"]["kernelspec"] == {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    assert status(learner.page).startswith(f"Downloaded {UNIT}.ipynb as it was stored on {TODAY}")


def test_starting_over_asks_first_and_may_be_left(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    page = learner.page
    page.get_by_role("button", name="Start over").click()
    expect(page.get_by_role("button", name="Yes, start over")).to_be_focused()
    page.get_by_role("button", name="Go on with my copy").click()
    expect(page.get_by_role("button", name="Start over", exact=True)).to_be_focused()
    assert set(kept(learner)) == {PATH}


def test_starting_over_keeps_the_copy_under_a_dated_name(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    page = learner.page
    page.get_by_role("button", name="Start over").click()
    page.get_by_role("button", name="Yes, start over").click()
    expect(page.get_by_role("status")).to_have_text(f"Started over; your copy is kept as {KEPT}.")
    files = kept(learner)
    assert list(files) == [f"{UNIT}/{KEPT}"]
    assert files[f"{UNIT}/{KEPT}"]["content"] == notebook("x = 1")
    assert (files[f"{UNIT}/{KEPT}"]["name"], files[f"{UNIT}/{KEPT}"]["path"]) == (KEPT, f"{UNIT}/{KEPT}")


def test_the_checkpoint_goes_with_its_copy(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    learner.page.get_by_role("button", name="Start over").click()
    learner.page.get_by_role("button", name="Yes, start over").click()
    expect(learner.page.get_by_role("status")).to_contain_text("Started over")
    assert list(kept(learner, "checkpoints")) == [f"{UNIT}/{KEPT}"]


def test_two_copies_of_one_day_have_two_names(learner: Learner) -> None:
    for answer in ("x = 1", "x = 2"):
        save(learner, notebook(answer))
        learner.page.get_by_role("button", name="Start over").click()
        learner.page.get_by_role("button", name="Yes, start over").click()
        expect(learner.page.get_by_role("status")).to_contain_text("Started over")
    second = f"{UNIT}-{TODAY}-2.ipynb"
    assert set(kept(learner)) == {f"{UNIT}/{KEPT}", f"{UNIT}/{second}"}
    assert downloaded(learner.page, f"Download {second}")[1]["cells"] == notebook("x = 2")["cells"]


def test_kept_copies_are_listed_and_handed_out_under_their_names(learner: Learner) -> None:
    old = f"{UNIT}-2026-01-02.ipynb"
    save(learner, notebook("x = 3"), f"{UNIT}/{old}", "2026-01-02T12:00:00.000Z")
    name, handed = downloaded(learner.page, f"Download {old}")
    assert (name, handed["cells"]) == (old, notebook("x = 3")["cells"])
    opens = learner.page.get_by_role("link", name=f"Open {old}")
    assert opens.get_attribute("href") == f"lite/notebooks/index.html?path={UNIT}%2F{old}"


def test_copies_of_other_units_are_not_listed(learner: Learner) -> None:
    save(learner, notebook("x = 3"), "swiglu/swiglu-2026-01-02.ipynb")
    expect(learner.page.get_by_role("heading", name="Kept copies")).to_have_count(0)


# -------------------------------------------------------------------------------------------- a new version


def test_a_copy_of_an_older_version_makes_way_and_both_are_offered(learner: Learner) -> None:
    save(learner, notebook("x = 1", version="older"))
    page = learner.page
    assert status(page) == f"New version; your earlier copy is kept as {KEPT}."
    note = page.locator(".live-note")
    expect(note).to_contain_text("This exercise has changed since you began it.")
    assert note.get_by_role("link", name=KEPT).get_attribute("href") == (
        f"lite/notebooks/index.html?path={UNIT}%2F{KEPT}"
    )
    expect(page.get_by_role("link", name="Open the exercise")).to_be_visible()
    assert list(kept(learner)) == [f"{UNIT}/{KEPT}"]
    assert downloaded(page, f"Download {KEPT}")[1]["cells"] == notebook("x = 1")["cells"]


def test_a_copy_that_does_not_say_its_version_makes_way_too(learner: Learner) -> None:
    content = notebook("x = 1")
    del content["metadata"]["exercise"]
    save(learner, content)
    assert list(kept(learner)) == [f"{UNIT}/{KEPT}"]


def test_a_copy_of_this_version_stays_however_often_the_page_is_opened(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    learner.exercise_page(UNIT)
    assert list(kept(learner)) == [PATH]


def test_jupyterlite_opened_by_its_address_gives_way_to_the_page_when_the_copy_is_old(learner: Learner) -> None:
    learner.exercise_page(UNIT).evaluate(SAVE, [PATH, notebook("x = 1", version="older"), f"{TODAY}T12:00:00Z"])
    learner.page.goto(f"{learner.address}/live/lite/notebooks/index.html?path={PATH}", wait_until="commit")
    learner.page.wait_for_url("**/live/exercise.html?unit=mechanism")
    expect(learner.page.locator(".live-note")).to_contain_text(KEPT)


def test_a_copy_that_is_open_in_another_tab_is_left_alone(learner: Learner, context: BrowserContext) -> None:
    save(learner, notebook("x = 1"))
    other = Learner(context.new_page(), learner.address)
    other.page.goto(f"{other.address}/live/lite/notebooks/index.html?path={PATH}")
    other.shown()
    learner.page.get_by_role("button", name="Start over").click()
    learner.page.get_by_role("button", name="Yes, start over").click()
    expect(learner.page.get_by_role("status")).to_contain_text("open in another tab")
    assert PATH in kept(learner)


# ------------------------------------------------------------------------------------------------ opening it


def test_opening_takes_the_notebook_anew_from_the_site(learner: Learner, context: BrowserContext) -> None:
    context.add_init_script(
        """const before = window.fetch;
        window.fetch = (address, options) => {
          sessionStorage.setItem(`fetched ${address}`, options?.cache);
          return before(address, options);
        };"""
    )
    learner.open(UNIT)
    assert (
        learner.page.evaluate("path => sessionStorage.getItem(`fetched ${path}`)", f"lite/files/{PATH}")
        == "reload"
    )


def test_jupyterlite_s_logo_leads_back_to_the_page(learner: Learner) -> None:
    learner.open(UNIT).locator("#jp-NotebookLogo").evaluate("logo => { location.href = logo.href; }")
    learner.page.wait_for_url(f"**/live/exercise.html?unit={UNIT}")


@pytest.mark.parametrize(
    ("page", "unit"),
    [
        ("book/mechanism/position-wise", "mechanism"),
        ("book/activations/functions", "activations"),
        ("book/in-practice/what-fires", "capstone"),
    ],
)
def test_a_lesson_leads_to_the_exercise_that_it_prepares(learner: Learner, page: str, unit: str) -> None:
    learner.page.goto(f"{learner.address}/{page}.html")
    learner.page.get_by_role("link", name=f"Open the exercise {unit} in the browser").click()
    learner.page.wait_for_selector("html[data-exercise=ready]")
    assert learner.page.url == f"{learner.address}/live/exercise.html?unit={unit}"
    expect(learner.page.get_by_role("link", name="Open the exercise")).to_be_visible()


def test_the_page_of_exercises_leads_to_every_one(learner: Learner) -> None:
    learner.page.goto(f"{learner.address}/book/exercises.html")
    links = learner.page.get_by_role("link", name="in the browser").filter(has_text="Open the exercise")
    expect(links).to_have_count(len(UNITS))
    assert sorted(link.get_attribute("href") or "" for link in links.all()) == [
        f"../live/exercise.html?unit={unit}" for unit in UNITS
    ]


def test_without_the_browser_part_no_page_leads_to_it(learner: Learner) -> None:
    source = (ROOT / "book" / "_static" / "live-config.mjs").read_text(encoding="utf-8")

    def none(route: Route) -> None:
        route.fulfill(body=source, content_type="text/javascript")

    learner.page.route("**/live-config.mjs*", none)
    learner.page.goto(f"{learner.address}/book/exercises.html")
    learner.page.wait_for_selector("html[data-course=ready]")
    expect(learner.page.locator(".ffn-open-exercise")).to_have_count(len(UNITS))
    expect(learner.page.locator(".ffn-open-exercise >> visible=true")).to_have_count(0)


# ------------------------------------------------------------------------------------- how it looks and reads


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("window", [WIDE, PHONE], ids=["wide", "phone"])
def test_the_page_is_readable_for_everybody(
    browser: Browser, address: str, scheme: str, window: dict[str, int]
) -> None:
    context = browser.new_context(viewport=window, color_scheme=scheme)  # type: ignore[arg-type]
    learner = Learner(context.new_page(), address)
    save(learner, notebook("x = 1", version="older"))
    learner.page.get_by_role("button", name="Start over").click()
    assert learner.page.evaluate("document.documentElement.dataset.theme") == scheme
    assert axe_violations(learner.page) == []
    assert not scrolls_sideways(learner.page)
    context.close()


def test_a_theme_that_was_chosen_in_the_book_counts(learner: Learner) -> None:
    learner.exercise_page(UNIT).evaluate("localStorage.setItem('theme', 'dark')")
    assert learner.exercise_page(UNIT).evaluate("document.documentElement.dataset.theme") == "dark"


def test_everything_can_be_reached_and_done_by_keyboard(learner: Learner) -> None:
    save(learner, notebook("x = 1"))
    page = learner.page
    reached = []
    for _ in range(5):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.textContent"))
    assert reached[2:] == ["Open the exercise", "Download my work", "Start over"]
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Started over")


def test_a_browser_that_refuses_storage_is_told_in_words(browser: Browser, address: str) -> None:
    context = browser.new_context()
    context.add_init_script("IDBFactory.prototype.open = () => { throw new Error('storage is off'); };")
    page = Learner(context.new_page(), address).exercise_page(UNIT)
    assert status(page) == (
        "This browser does not let the page use its storage (storage is off); nothing was changed."
    )
    context.close()


def test_opened_as_a_file_the_page_says_what_to_do_in_one_sentence(browser: Browser) -> None:
    require_live()
    context, seen = browser.new_context(), Seen()
    seen.watch(context)
    page = context.new_page()
    page.goto((HTML / "live" / "exercise.html").as_uri() + f"?unit={UNIT}")
    assert "run make serve in the course's folder" in status(page)
    context.close()
    assert seen == Seen()


def test_a_list_that_cannot_be_read_is_told_in_words(browser: Browser, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route("**/exercises.json", lambda route: route.fulfill(status=404))
    Learner(page, address).exercise_page(UNIT)
    assert status(page) == "The exercises could not be shown: the list of exercises was not found (404)."
    context.close()
