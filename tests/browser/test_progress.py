"""Progress and flashcards in a real browser: counted, exported, imported, erased, and with storage that fails."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.front import (
    CARDS,
    EXPLORERS,
    FIRST,
    PROGRESS,
    SECOND,
    Reader,
    axe_violations,
    careless_reader,
    reader,
    scrolls_sideways,
    usual_context,
)

__all__ = ["careless_reader", "reader", "usual_context"]

BLOCKED = (
    "Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('no', 'SecurityError'); }})"
)
SET_ASIDE = "Something was stored here that could not be read as progress."


def answer(page: Page, place: int, choice: str) -> str:
    """Answer a question of the page; give its key."""
    section = page.locator(".ffn-asked").nth(place)
    section.get_by_label(choice).check()
    section.locator("button[type=submit]").click()
    return str(section.get_attribute("data-key"))


def answer_first_page(page: Page, *, typed: bool = False) -> list[str]:
    """The forecast wrong, the question right, and the typed answer where it is asked for."""
    keys = [answer(page, 0, "positive"), answer(page, 1, "Two")]
    if typed:
        section = page.locator(".ffn-asked").nth(2)
        section.get_by_label("Your answer").fill("zero")
        page.keyboard.press("Enter")
        keys.append(str(section.get_attribute("data-key")))
    return keys


def stored(page: Page) -> Any:
    text = page.evaluate("localStorage.getItem('ffn-course')")
    return None if text is None else json.loads(text)


def store(page: Page, text: str) -> None:
    page.evaluate("text => localStorage.setItem('ffn-course', text)", text)


def state(answers: dict[str, Any], cards: dict[str, Any] | None = None) -> str:
    return json.dumps({"version": 1, "answers": answers, "cards": cards or {}})


def rows(table: Locator) -> dict[str, list[str]]:
    return {
        row.locator("th").inner_text(): row.locator("td").all_inner_texts()
        for row in table.locator("tr:has(td)").all()
    }


def by_part(page: Page) -> dict[str, list[str]]:
    return rows(page.get_by_role("table").first)


def give_file(page: Page, content: str | bytes, name: str = "progress.json") -> None:
    data = content.encode() if isinstance(content, str) else content
    page.get_by_label("Import").set_input_files({"name": name, "mimeType": "application/json", "buffer": data})


def said(page: Page) -> Locator:
    return page.locator(".ffn-progress").get_by_role("status")


# Counting


def test_nothing_is_answered_at_first(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    assert by_part(page)["Samples"] == ["0 of 1", "0 of 3"]
    assert by_part(page)["Explorers"] == ["0 of 3", "0 of 3"]
    assert by_part(page)["The whole book"] == ["0 of 4", "0 of 6"]
    expect(page.get_by_text("Flashcards: 0 of 3 known.")).to_be_visible()


def test_answers_are_counted_by_part_and_by_page(reader: Reader) -> None:
    answer_first_page(reader.open(FIRST))
    answer(reader.open(SECOND), 0, "Three")
    page = reader.open(PROGRESS)
    assert by_part(page)["Samples"] == ["1 of 1, 0 right", "2 of 3, 1 right"]
    assert by_part(page)["Explorers"] == ["0 of 3", "0 of 3"]
    page.get_by_text("Page by page").click()
    pages = rows(page.get_by_role("table").nth(1))
    assert pages["First page"] == ["1 of 1, 0 right", "1 of 2, 1 right"]
    assert pages["Second page"] == ["none", "1 of 1, 0 right"]
    page.get_by_role("link", name="Second page").last.click()
    expect(page).to_have_url(re.compile("sample/second.html$"))


def test_an_answer_on_another_open_page_is_counted_at_once(reader: Reader) -> None:
    progress = reader.open(PROGRESS)
    answer_first_page(reader.open(FIRST))
    expect(progress.get_by_role("row", name="Samples")).to_contain_text("1 of 1, 0 right")


def test_answers_to_questions_that_are_gone_are_not_counted(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    store(page, state({"book/sample/first#00000000": {"choice": "00000000", "right": True, "at": 1}}))
    assert by_part(reader.go(page, PROGRESS))["The whole book"] == ["0 of 4", "0 of 6"]


def test_without_scripts_the_numbers_of_questions_stand_there(careless_reader: Reader) -> None:
    page = careless_reader.open(PROGRESS, careless_reader.context(scripts=False))
    assert by_part(page)["The whole book"] == ["4", "6"]
    expect(page.get_by_text("when the browser runs this page's script")).to_be_visible()
    expect(page.locator(".ffn-progress button")).to_have_count(0)


# The sidebar


def mark(page: Page, title: str) -> Locator:
    return page.locator("nav.bd-links a", has_text=title).locator(".ffn-done")


def test_a_page_is_marked_in_the_sidebar_when_all_of_it_is_answered(reader: Reader) -> None:
    page = reader.open(FIRST)
    answer_first_page(page)
    expect(mark(page, "First page")).to_have_count(0)
    section = page.locator(".ffn-asked").nth(2)
    section.get_by_label("Your answer").fill("zero")
    page.keyboard.press("Enter")
    expect(mark(page, "First page")).to_have_text("✓ (all answered)")
    expect(mark(reader.open(SECOND), "First page")).to_have_count(1)
    section.get_by_role("button", name="Try again").click()
    expect(mark(page, "First page")).to_have_count(0)


def test_the_list_of_questions_is_asked_for_by_a_reader_who_has_answered(reader: Reader) -> None:
    page = reader.open(FIRST)
    page.wait_for_load_state("networkidle")
    assert not any("questions.json" in url for url in reader.requests)
    with page.expect_response("**/questions.json"):
        answer(page, 0, "positive")


# Export and import


def exported(page: Page) -> tuple[str, Any]:
    with page.expect_download() as download:
        page.get_by_role("button", name="Export my progress").click()
    return download.value.suggested_filename, json.loads(Path(download.value.path()).read_text(encoding="utf-8"))


def test_what_is_exported_can_be_imported_elsewhere(reader: Reader) -> None:
    first = reader.open(FIRST)
    keys = answer_first_page(first, typed=True)
    name, content = exported(reader.open(PROGRESS))
    assert re.fullmatch(r"ffn-progress-\d{4}-\d\d-\d\d\.json", name)
    assert content == stored(first)
    assert sorted(content["answers"]) == sorted(keys)
    elsewhere = reader.context()
    page = reader.open(PROGRESS, elsewhere)
    give_file(page, json.dumps(content), name)
    expect(said(page)).to_contain_text("3 answers and 0 cards were taken in")
    assert stored(page) == content
    restored = reader.open(FIRST, elsewhere)
    expect(restored.locator(".ffn-asked").first.get_by_label("positive")).to_be_checked()


def test_of_two_answers_the_later_stays(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    keys = [f"book/sample/first#{digit * 8}" for digit in "abc"]
    mine = {key: {"choice": "m", "right": False, "at": 100} for key in keys[:2]}
    store(page, state(mine))
    theirs = {key: {"choice": "t", "right": True, "at": at} for key, at in zip(keys, (99, 101, 1), strict=True)}
    give_file(page, state(theirs, {keys[0]: {"box": 1, "due": 5, "at": 4}}))
    expect(said(page)).to_contain_text("2 answers and 1 card were taken in")
    kept = stored(page)["answers"]
    assert [kept[key]["choice"] for key in keys] == ["m", "t", "t"]


def test_a_time_in_the_future_counts_as_now(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    give_file(page, state({"a#00000000": {"choice": "t", "right": True, "at": 1e15}}))
    expect(said(page)).to_contain_text("were taken in")
    assert stored(page)["answers"]["a#00000000"]["at"] <= page.evaluate("Date.now()")


GOOD = {"choice": "t", "right": True, "at": 1}
UNUSABLE = {
    "no JSON": ("{", "it is not JSON"),
    "empty": ("", "it is not JSON"),
    "a list": ("[]", "it is not progress of this course"),
    "another version": (
        '{"version": 2, "answers": {}, "cards": {}}',
        "it is not progress of this course, version 1",
    ),
    "no answers": ('{"version": 1, "cards": {}}', "it has no list of answers"),
    "answers in a list": ('{"version": 1, "answers": [], "cards": {}}', "it has no list of answers"),
    "no key": (state({"constructor": GOOD}), "“constructor” names no question of a page"),
    "prototype": ('{"version":1,"cards":{},"answers":{"__proto__":{}}}', "“__proto__” names no question"),
    "markup for a key": (state({"<img src=x>#00000000": GOOD}), "“<img src=x>#00000000” names no question"),
    "two answers in one": (
        state({"a#00000000": {**GOOD, "text": "t"}}),
        "its entry for “a#00000000” is not one that this page writes",
    ),
    "right in words": (
        state({"a#00000000": {**GOOD, "right": "yes"}}),
        "its entry for “a#00000000” is not one that this page writes",
    ),
    "no time": (
        state({"a#00000000": {"choice": "t", "right": True}}),
        "its entry for “a#00000000” is not one that this page writes",
    ),
    "a long text": (
        state({"a#00000000": {"text": "x" * 501, "right": None, "at": 1}}),
        "its entry for “a#00000000” is not one",
    ),
    "a card in no box": (
        state({}, {"a#00000000": {"box": 9, "due": 1, "at": 1}}),
        "its entry for “a#00000000” is not one that this page writes",
    ),
    "too long": ('{"version":1,' + " " * 1_000_001, "it is longer than 1000 kB"),
    "far too long": (" " * 4_000_001, "it is longer than 1000 kB"),
    "no text": (b"\xff\xfe\x00\x01", "it is not JSON"),
}


def test_a_file_that_is_no_progress_is_refused_with_the_reason_and_changes_nothing(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    before = json.loads(state({"book/sample/first#00000000": GOOD}))
    store(page, json.dumps(before))
    for name, (content, reason) in UNUSABLE.items():
        give_file(page, content, f"{name}.json")
        expect(said(page)).to_contain_text(f"{name}.json was not imported, because {reason}")
        assert stored(page) == before, name
    assert page.evaluate("({}).right") is None
    assert page.locator(".ffn-progress img").count() == 0


def test_the_same_file_can_be_imported_twice(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    text = state({"a#00000000": GOOD})
    give_file(page, text)
    expect(said(page)).to_contain_text("1 answer and 0 cards")
    give_file(page, text)
    expect(said(page)).to_contain_text("0 answers and 0 cards")


def test_import_can_be_reached_by_keyboard(reader: Reader) -> None:
    page = reader.open(PROGRESS)
    page.get_by_role("button", name="Export my progress").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Import")).to_be_focused()


# Erasing


def test_erasing_asks_first(reader: Reader) -> None:
    answer_first_page(reader.open(FIRST))
    page = reader.open(PROGRESS)
    page.get_by_role("button", name="Erase").click()
    expect(page.get_by_role("button", name="Yes, erase everything")).to_be_focused()
    page.get_by_role("button", name="Keep it").click()
    expect(page.get_by_role("button", name="Erase", exact=True)).to_be_focused()
    assert len(stored(page)["answers"]) == 2
    page.get_by_role("button", name="Erase").click()
    page.keyboard.press("Enter")
    expect(said(page)).to_have_text("Everything was erased.")
    assert stored(page) is None
    assert by_part(page)["Samples"] == ["0 of 1", "0 of 3"]


# Storage that is corrupt, foreign or blocked


@pytest.mark.parametrize(
    "text",
    ["{", "null", "42", "another program's", '{"version": 99, "answers": {}, "cards": {}}', state({"x": 1})],
    ids=["half", "null", "number", "foreign", "newer version", "wrong key"],
)
def test_what_cannot_be_read_is_set_aside_and_counting_begins_anew(reader: Reader, text: str) -> None:
    page = reader.open(PROGRESS)
    store(page, text)
    reader.go(page, PROGRESS)
    expect(page.get_by_text(SET_ASIDE)).to_be_visible()
    assert page.evaluate("localStorage.getItem('ffn-course-set-aside')") == text
    assert by_part(page)["The whole book"] == ["0 of 4", "0 of 6"]
    answer(reader.go(page, FIRST), 0, "positive")
    assert len(stored(page)["answers"]) == 1


def test_without_storage_the_page_says_that_nothing_is_kept(careless_reader: Reader) -> None:
    page = careless_reader.open(PROGRESS, careless_reader.context(init=BLOCKED))
    expect(page.get_by_text("This browser does not let the page store anything")).to_be_visible()
    give_file(page, state({"a#00000000": GOOD}))
    expect(said(page)).to_contain_text("1 answer and 0 cards were taken in")
    assert exported(page)[1]["answers"] == {"a#00000000": GOOD}
    page.get_by_role("button", name="Erase").click()
    page.get_by_role("button", name="Yes, erase everything").click()
    assert exported(page)[1]["answers"] == {}


def test_nothing_leaves_the_machine(reader: Reader) -> None:
    answer_first_page(reader.open(FIRST), typed=True)
    page = reader.open(PROGRESS)
    exported(page)
    give_file(page, state({}))
    expect(said(page)).to_contain_text("were taken in")
    posted = [url for url in reader.requests if not url.startswith((reader.address, "blob:", "about:", "data:"))]
    assert posted == []
    assert all("?" not in url or re.search(r"\?(v|digest)=\w+$", url) for url in reader.requests)


# For everyone


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("page_name", [PROGRESS, CARDS], ids=["progress", "cards"])
def test_axe_finds_nothing(reader: Reader, dark: bool, page_name: str) -> None:
    context = reader.context(dark=dark)
    answer_first_page(reader.open(FIRST, context), typed=True)
    page = reader.open(page_name, context)
    expect(mark(page, "First page")).to_have_count(1)
    if page_name == PROGRESS:
        page.get_by_text("Page by page").click()
        page.get_by_role("button", name="Erase").click()
    else:
        page.get_by_text("First front").click()
    assert axe_violations(page) == []


@pytest.mark.parametrize("page_name", [PROGRESS, CARDS, SECOND, EXPLORERS["budget"]])
def test_a_phone_shows_no_sideways_scroll(reader: Reader, page_name: str) -> None:
    page = reader.open(page_name, reader.context(phone=True))
    if page_name == PROGRESS:
        page.get_by_text("Page by page").click()
    assert not scrolls_sideways(page)


# Flashcards


def deck(page: Page) -> Locator:
    return page.get_by_role("region", name="Recall")


def front(page: Page) -> Locator:
    return deck(page).locator("summary:visible")


def rate(page: Page, name: str) -> None:
    front(page).click()
    deck(page).get_by_role("button", name=name).click()


def test_one_card_is_shown_at_a_time(reader: Reader) -> None:
    page = reader.open(CARDS)
    expect(front(page)).to_have_text("First front")
    expect(page.get_by_text("First back")).to_be_hidden()
    expect(deck(page).get_by_role("button", name="I knew it")).to_be_hidden()
    expect(deck(page).get_by_role("status")).to_have_text("3 of 3 cards to go.")


@pytest.mark.parametrize("key", ["Space", "Enter", "click"])
def test_a_card_is_turned(reader: Reader, key: str) -> None:
    page = reader.open(CARDS)
    for shown in (True, False):
        if key == "click":
            front(page).click()
        else:
            front(page).focus()
            page.keyboard.press(key)
        expect(page.get_by_text("First back")).to_be_visible(visible=shown)
        expect(deck(page).get_by_role("button", name="I knew it")).to_be_visible(visible=shown)


def test_a_known_card_goes_and_one_that_was_not_comes_back_last(reader: Reader) -> None:
    page = reader.open(CARDS)
    rate(page, "Not yet")
    expect(front(page)).to_have_text("Second front")
    expect(front(page)).to_be_focused()
    rate(page, "I knew it")
    rate(page, "I knew it")
    expect(front(page)).to_have_text("First front")
    expect(page.get_by_text("First back")).to_be_hidden()
    expect(deck(page).get_by_role("status")).to_have_text("1 of 3 cards to go.")


def test_a_deck_by_keyboard_alone(reader: Reader) -> None:
    page = reader.open(CARDS)
    front(page).focus()
    for _ in range(3):
        page.keyboard.press("Enter")
        expect(deck(page).get_by_role("button", name="I knew it")).to_be_visible()
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    expect(deck(page).get_by_role("status")).to_contain_text("All 3 cards are known for now")
    expect(deck(page).get_by_role("button", name="Practise all the same")).to_be_focused()


def test_known_cards_are_remembered_and_counted(reader: Reader) -> None:
    rate(reader.open(CARDS), "I knew it")
    page = reader.open(CARDS)
    expect(front(page)).to_have_text("Second front")
    expect(reader.open(PROGRESS).get_by_text("Flashcards: 1 of 3 known.")).to_be_visible()


def test_a_card_is_due_again_later_each_time_it_was_known(reader: Reader) -> None:
    page = reader.open(CARDS)
    page.clock.install(time="2030-01-01T12:00:00Z")
    reader.go(page, CARDS)
    for _ in range(3):
        rate(page, "I knew it")
    expect(deck(page).get_by_role("status")).to_contain_text("The next is due on 02/01/2030.")
    page.clock.set_fixed_time("2030-01-02T18:00:00Z")
    reader.go(page, CARDS)
    for _ in range(3):
        rate(page, "I knew it")
    expect(deck(page).get_by_role("status")).to_contain_text("The next is due on 05/01/2030.")


def test_known_cards_can_be_practised_all_the_same(reader: Reader) -> None:
    page = reader.open(CARDS)
    for _ in range(3):
        rate(page, "I knew it")
    deck(page).get_by_role("button", name="Practise all the same").click()
    expect(front(page)).to_have_text("First front")
    rate(page, "I knew it")
    expect(front(page)).to_have_text("Second front")


def test_all_cards_can_be_shown_as_a_list(reader: Reader) -> None:
    page = reader.open(CARDS)
    deck(page).get_by_role("button", name="Show all as a list").click()
    for words in ("First front", "First back", "Third front", "Third back"):
        expect(page.get_by_text(words)).to_be_visible()
    expect(deck(page).get_by_role("button", name="I knew it")).to_be_hidden()
    deck(page).get_by_role("button", name="One card at a time").click()
    expect(front(page)).to_have_text("First front")
    expect(page.get_by_text("First back")).to_be_hidden()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_cards_print_as_questions_and_answers(careless_reader: Reader, scripts: bool) -> None:
    page = careless_reader.open(CARDS, careless_reader.context(scripts=scripts))
    page.emulate_media(media="print")
    for words in ("First front", "First back", "Third front", "Third back"):
        expect(page.get_by_text(words)).to_be_visible()
    expect(deck(page).get_by_role("button")).to_have_count(0)


def test_without_scripts_cards_are_a_list_to_unfold(careless_reader: Reader) -> None:
    page = careless_reader.open(CARDS, careless_reader.context(scripts=False))
    expect(front(page)).to_have_count(3)
    page.get_by_text("Second front").click()
    expect(page.get_by_text("Second back")).to_be_visible()
