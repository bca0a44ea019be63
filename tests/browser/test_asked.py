"""Forecasts and questions in a real browser: by mouse, by keyboard, in print, without scripts, without storage."""

import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.front import (
    FIRST,
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
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }"


def asked(page: Page, place: int = 0) -> Locator:
    """The page's forecast (0) or one of its questions."""
    return page.locator(".ffn-asked").nth(place)


def commit(section: Locator, choice: str) -> None:
    section.get_by_label(choice).check()
    section.get_by_role("button", name="Commit").or_(section.get_by_role("button", name="Check")).click()


def stored(page: Page) -> dict[str, Any]:
    text = page.evaluate("localStorage.getItem('ffn-course')")
    return {} if text is None else dict(json.loads(text)["answers"])


# Choosing


def test_nothing_can_be_committed_before_a_choice_is_made(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    button = forecast.get_by_role("button", name="Commit to this forecast")
    expect(button).to_be_disabled()
    forecast.get_by_label("positive").check()
    expect(button).to_be_enabled()
    expect(forecast.locator("details")).not_to_have_attribute("open", "")


def test_a_choice_can_be_made_by_clicking_its_text(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    forecast.get_by_role("listitem").nth(1).get_by_text("negative, like").click()
    expect(forecast.get_by_label("negative")).to_be_checked()


def test_a_right_forecast_opens_the_answer_and_says_so(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    commit(forecast, "negative")
    expect(forecast.get_by_role("status")).to_have_text("✓ Right.")
    expect(forecast.get_by_text("The sum is below zero.")).to_be_visible()
    expect(forecast.locator(".ffn-mark")).to_have_text(["", "✓ your forecast, right", ""])


def test_a_wrong_forecast_is_marked_in_words_beside_the_right_one(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    commit(forecast, "positive")
    expect(forecast.get_by_role("status")).to_have_text("✗ Not right. The right choice is marked.")
    expect(forecast.locator(".ffn-mark")).to_have_text(["✗ your forecast, not right", "✓ right", ""])


def test_the_explanation_of_the_chosen_choice_comes_first(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    commit(forecast, "none")
    said = forecast.locator(".ffn-answer-body").inner_text()
    own, answer, other = (said.index(text) for text in ("It is not zero.", "The sum is below", "The largest term"))
    assert own < answer < other
    assert said.count("It is not zero.") == 1


def test_a_committed_choice_cannot_be_changed(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    commit(forecast, "positive")
    for radio in forecast.get_by_role("radio").all():
        expect(radio).to_be_disabled()
    expect(forecast.get_by_role("button", name="Commit")).to_be_hidden()


def test_the_answer_can_be_seen_without_choosing_and_nothing_is_remembered(reader: Reader) -> None:
    page = reader.open(FIRST)
    asked(page).get_by_text("Show the answer without choosing").click()
    expect(asked(page).get_by_text("The sum is below zero.")).to_be_visible()
    expect(asked(page).get_by_role("radio").first).to_be_enabled()
    assert stored(page) == {}


# By keyboard, and for readers who listen


def test_by_keyboard_alone(reader: Reader) -> None:
    page = reader.open(FIRST)
    forecast = asked(page)
    forecast.get_by_role("radio").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    expect(forecast.get_by_label("negative")).to_be_checked()
    page.keyboard.press("Enter")
    expect(forecast.get_by_role("status")).to_have_text("✓ Right.")
    expect(forecast.locator("summary")).to_be_focused()


def test_the_button_is_the_next_stop_after_the_choices(reader: Reader) -> None:
    page = reader.open(FIRST)
    asked(page).get_by_role("radio").first.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    expect(asked(page).get_by_role("status")).to_contain_text("Not right")


def test_enter_without_a_choice_does_nothing(reader: Reader) -> None:
    page = reader.open(FIRST)
    asked(page).get_by_role("radio").first.focus()
    page.keyboard.press("Enter")
    expect(asked(page).locator("details")).not_to_have_attribute("open", "")
    assert stored(page) == {}


def test_the_choices_are_a_group_that_is_named_by_the_question(reader: Reader) -> None:
    page = reader.open(FIRST)
    group = page.get_by_role("group", name="How many hidden units are on?")
    expect(group.get_by_role("radio")).to_have_count(2)
    expect(asked(page, 1).get_by_role("status")).to_have_attribute("aria-live", "polite")


def test_a_choice_that_is_a_formula_has_a_name_with_its_mark(reader: Reader) -> None:
    page = reader.open(SECOND)
    formula = asked(page).get_by_role("radio").nth(1)
    expect(formula).to_have_accessible_name("d1d2")
    formula.check()
    asked(page).get_by_role("button", name="Check").click()
    expect(formula).to_have_accessible_name("d1d2✗ your choice, not right")
    assert axe_violations(page) == []
    asked(page).get_by_role("button", name="Try again").click()
    expect(formula).to_have_accessible_name("d1d2")


# Typing


def test_a_typed_answer_is_compared_by_the_reader(reader: Reader) -> None:
    page = reader.open(FIRST)
    question = asked(page, 2)
    check = question.get_by_role("button", name="Check")
    expect(check).to_be_disabled()
    question.get_by_label("Your answer").fill("   ")
    expect(check).to_be_disabled()
    question.get_by_label("Your answer").fill("zero")
    page.keyboard.press("Enter")
    expect(question.get_by_text("It makes 0.")).to_be_visible()
    expect(question.get_by_role("status")).to_contain_text("Were you right?")
    question.get_by_role("button", name="I was right").click()
    expect(question.get_by_role("status")).to_have_text("✓ Right, as you judged.")
    [answer] = stored(page).values()
    assert (answer["text"], answer["right"]) == ("zero", True)


def test_a_typed_answer_comes_back_as_text_whatever_it_holds(reader: Reader) -> None:
    page = reader.open(FIRST)
    text = '<img src="x" onerror="document.title = 1"> & "quotes"'
    asked(page, 2).get_by_label("Your answer").fill(text)
    page.keyboard.press("Enter")
    again = reader.open(FIRST)
    expect(asked(again, 2).get_by_label("Your answer")).to_have_value(text)
    expect(asked(again, 2).get_by_text("It makes 0.")).to_be_visible()
    assert again.locator(".ffn-asked img").count() == 0


# Remembering


def test_a_commitment_is_there_after_a_reload(reader: Reader) -> None:
    commit(asked(reader.open(FIRST)), "positive")
    page = reader.open(FIRST)
    expect(asked(page).get_by_label("positive")).to_be_checked()
    expect(asked(page).get_by_role("status")).to_contain_text("Not right")
    expect(asked(page).get_by_text("The sum is below zero.")).to_be_visible()
    expect(asked(page, 1).get_by_role("button", name="Check")).to_be_visible()


def test_the_same_question_on_another_page_is_another_question(reader: Reader) -> None:
    commit(asked(reader.open(FIRST), 1), "Two")
    expect(asked(reader.open(SECOND)).get_by_role("button", name="Check")).to_be_visible()


def test_try_again_forgets_this_answer_and_no_other(reader: Reader) -> None:
    page = reader.open(FIRST)
    commit(asked(page), "positive")
    commit(asked(page, 1), "Two")
    asked(page).get_by_role("button", name="Try again").click()
    expect(asked(page).get_by_role("radio").first).to_be_focused()
    expect(asked(page).get_by_role("button", name="Commit")).to_be_disabled()
    expect(asked(page).get_by_role("status")).to_have_text("")
    expect(asked(page).get_by_text("The sum is below zero.")).to_be_hidden()
    assert list(stored(page)) == [asked(page, 1).get_attribute("data-key")]
    expect(asked(reader.open(FIRST)).get_by_role("button", name="Commit")).to_be_visible()


def test_another_choice_can_be_committed_after_try_again(reader: Reader) -> None:
    forecast = asked(reader.open(FIRST))
    commit(forecast, "positive")
    forecast.get_by_role("button", name="Try again").click()
    commit(forecast, "negative")
    expect(forecast.get_by_role("status")).to_have_text("✓ Right.")
    expect(forecast.locator(".ffn-own-note dt")).to_have_count(1)
    expect(forecast.locator("dt")).to_have_count(3)


def test_a_stored_choice_that_the_page_no_longer_offers_counts_as_none(reader: Reader) -> None:
    page = reader.open(FIRST)
    key = asked(page).get_attribute("data-key")
    state = {"version": 1, "answers": {key: {"choice": "0" * 8, "right": True, "at": 1}}, "cards": {}}
    page.evaluate("text => localStorage.setItem('ffn-course', text)", json.dumps(state))
    page = reader.open(FIRST)
    expect(asked(page).get_by_role("button", name="Commit")).to_be_visible()


def test_two_open_pages_do_not_undo_each_others_answers(reader: Reader) -> None:
    first, second = reader.open(FIRST), reader.open(SECOND)
    commit(asked(first), "positive")
    commit(asked(second), "Two")
    assert {key.split("#")[0] for key in stored(first)} == {FIRST, SECOND}


@pytest.mark.parametrize("broken", [BLOCKED, FULL], ids=["blocked", "full"])
def test_without_storage_it_works_until_the_page_is_left_and_says_so(careless_reader: Reader, broken: str) -> None:
    context = careless_reader.context(init=broken)
    page = careless_reader.open(FIRST, context)
    commit(asked(page), "negative")
    expect(asked(page).get_by_role("status")).to_contain_text("✓ Right. This browser keeps nothing")
    commit(asked(page, 1), "Three")
    expect(asked(page, 1).get_by_role("status")).to_contain_text("Not right")
    asked(page).get_by_role("button", name="Try again").click()
    expect(asked(page).get_by_role("button", name="Commit")).to_be_disabled()
    expect(asked(careless_reader.open(FIRST, context), 1).get_by_role("button", name="Check")).to_be_visible()


# Print, and pages without scripts


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_in_print_stand_question_choices_and_answer(careless_reader: Reader, scripts: bool) -> None:
    page = careless_reader.open(FIRST, careless_reader.context(scripts=scripts))
    page.emulate_media(media="print")
    for text in ("Which sign has", "positive", "The sum is below zero.", "It is not zero.", "It makes 0."):
        expect(page.get_by_text(text, exact=text == "positive").first).to_be_visible()
    for control in page.locator(".ffn-asked :is(button, input, summary)").all():
        expect(control).to_be_hidden()


def test_a_committed_page_prints_without_marks(reader: Reader) -> None:
    page = reader.open(FIRST)
    commit(asked(page), "positive")
    page.emulate_media(media="print")
    expect(page.get_by_text("your forecast, not right")).to_be_hidden()
    expect(page.get_by_text("The largest term is negative.")).to_be_visible()


def test_folded_answers_take_room_on_paper(reader: Reader) -> None:
    page = reader.open(FIRST)
    page.emulate_media(media="print")
    body = asked(page, 1).locator(".ffn-answer-body").bounding_box()
    assert body is not None
    assert body["height"] > 50


def test_without_scripts_question_and_answer_stand_as_plain_html(careless_reader: Reader) -> None:
    page = careless_reader.open(FIRST, careless_reader.context(scripts=False))
    expect(asked(page).get_by_role("listitem")).to_have_count(3)
    expect(page.locator(".ffn-asked :is(button, input)")).to_have_count(0)
    asked(page).get_by_text("then show the answer").click()
    expect(asked(page).get_by_text("The sum is below zero.")).to_be_visible()


# For everyone


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("committed", [False, True], ids=["open", "committed"])
def test_axe_finds_nothing(reader: Reader, dark: bool, committed: bool) -> None:
    page = reader.open(FIRST, reader.context(dark=dark))
    assert page.evaluate("document.documentElement.dataset.theme") == ("dark" if dark else "light")
    if committed:
        commit(asked(page), "positive")
        commit(asked(page, 1), "Two")
        asked(page, 2).get_by_label("Your answer").fill("zero")
        page.keyboard.press("Enter")
    assert axe_violations(page) == []


def test_a_phone_shows_no_sideways_scroll(reader: Reader) -> None:
    page = reader.open(FIRST, reader.context(phone=True))
    commit(asked(page), "positive")
    assert not scrolls_sideways(page)


def test_committing_asks_nothing_of_any_server(reader: Reader) -> None:
    page = reader.open(FIRST)
    with page.expect_response("**/questions.json"):
        commit(asked(page), "positive")
    before = len(reader.requests)
    commit(asked(page, 1), "Two")
    page.wait_for_timeout(300)
    assert reader.requests[before:] == []
