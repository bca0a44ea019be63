"""The page of a report as a file: whole, bounded, without a door for what learners wrote."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from grader.exceptions import CannotWriteError
from grader.report.data import Class
from grader.report.page import MOST_GROUPS, MOST_LEARNERS, MOST_NAMES, MOST_REMARKS, render, write_page
from grader.report.summary import plain, summarise
from tests.grader.report.classes import UNIT, a_class, a_learner, a_step, seeded_class

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">\'"&</style></pre>{{ 7 * 7 }}'


class Parts(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside: list[str] = []
        self.inline: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self._inside and self._inside[-1] in ("style", "script"):
            self.inline[self._inside[-1]] = self.inline.get(self._inside[-1], "") + data
        else:
            self.text += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def page_of(found: Class) -> Parts:
    return Parts(render(summarise(found)))


@pytest.fixture(scope="module")
def forty() -> Parts:
    return page_of(seeded_class(40))


def evil_class() -> Class:
    """Learners who put markup wherever text of theirs can come out."""
    found = seeded_class(20)
    graded = [
        a_learner(
            f"{EVIL} {place:02d}",
            one.marks,
            status=EVIL,
            messages=dict.fromkeys(one.record.messages, EVIL),
            flags=(EVIL,),
            notes=(EVIL,),
            seconds={EVIL: 1.0},
            answers={step: f"# {EVIL}\n{text}" for step, text in one.record.answers.items()},
        )
        for place, one in enumerate(found.graded)
    ]
    return Class(UNIT, found.steps, tuple(graded), found.template)


# ---------------------------------------------------------------------------------------------------- contents


def test_every_learner_has_a_row(forty: Parts) -> None:
    rows = [attrs["data-learner"] for tag, attrs in forty.elements if tag == "tr" and "data-learner" in attrs]
    assert {f"learner-{number:04d}" for number in range(1, 41)} <= set(rows)


def test_a_test_that_everybody_fails_is_said_in_words(forty: Parts) -> None:
    assert "hidden_tail_reach: Nobody has points: look at this test." in forty.text


def test_a_copied_submission_is_listed_with_both_sides_and_marks(forty: Parts) -> None:
    assert "learner-0001 and learner-0040" in forty.text
    assert forty.count("mark") > 10
    assert forty.count("pre") % 2 == 0


def test_the_list_of_pairs_says_that_it_is_no_verdict(forty: Parts) -> None:
    assert "This is a list to look at, and no verdict." in forty.text


def test_a_class_of_one_has_a_page_that_says_what_is_not_known() -> None:
    text = page_of(seeded_class(1, copies=0)).text
    assert "fewer than 10 learners" in text
    assert "Answers are compared from 6 submissions with an answer on; there are 1." in text


def test_a_class_without_records_has_a_page() -> None:
    graded = [a_learner(name, {"test_gelu": 1.0}, known=False, status="", sandbox="") for name in ("ada", "alan")]
    text = page_of(a_class(*graded, steps=(a_step("gelu"),))).text
    assert "Graded notebooks writtennot known" in text.replace("\n", "")
    assert "graded without a note of the seconds" in text
    assert "another program graded it" in text


def test_a_unit_without_points_has_a_page() -> None:
    assert "n/a" in page_of(a_class(a_learner("ada", {"test_gelu": 0.0}), steps=(a_step("gelu", visible=0),))).text


# ------------------------------------------------------------------------------------------------------- safety


def test_what_learners_wrote_is_text_wherever_it_comes_out() -> None:
    ordinary, evil = page_of(seeded_class(30)), page_of(evil_class())
    assert evil.text.count("<script>alert(1)</script>") == evil.text.count("{{ 7 * 7 }}") > 100
    assert evil.text.count(f"# {EVIL}") == evil.count("pre") > 0
    assert evil.count("script") == ordinary.count("script") == 1
    assert evil.count("img") == 0
    assert {tag for tag, _ in evil.elements} <= {tag for tag, _ in ordinary.elements} | {"polygon"}
    assert not [attrs for _, attrs in evil.elements if any(name.startswith("on") for name in attrs)]


def test_the_policy_allows_the_page_s_own_style_and_script_alone(forty: Parts) -> None:
    (policy,) = [attrs["content"] for tag, attrs in forty.elements if attrs.get("http-equiv")]
    rules = dict(rule.strip().split(" ", 1) for rule in str(policy).split(";"))
    hashes = {
        tag: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for tag, text in forty.inline.items()
    }
    assert rules == {
        "default-src": "'none'",
        "style-src": f"'sha256-{hashes['style']}'",
        "script-src": f"'sha256-{hashes['script']}'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_nothing_on_the_page_is_fetched_or_styled_by_itself(forty: Parts) -> None:
    names = {name for _, attrs in forty.elements for name in attrs}
    assert not names & {"src", "srcset", "style", "data", "poster", "action", "background"}
    links = [attrs["href"] for _, attrs in forty.elements if "href" in attrs]
    assert all(str(link).startswith("#") for link in links)
    assert "url(" not in re.sub(r"url\(#[\w-]+\)", "", forty.inline["style"])
    assert "@import" not in forty.inline["style"]


def test_ids_are_unique_and_links_lead_to_them(forty: Parts) -> None:
    ids = [attrs["id"] for _, attrs in forty.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    assert {str(attrs["href"])[1:] for _, attrs in forty.elements if "href" in attrs} <= set(ids)


# --------------------------------------------------------------------------------------------------------- size


@pytest.mark.slow
def test_the_page_of_a_large_class_is_bounded_and_says_what_was_left_out() -> None:
    many = MOST_LEARNERS + 500
    messages = {"test_gelu": "wrong"}
    graded = [
        a_learner(
            f"learner-{number:05d}", {"test_gelu": 0.0, "words": None}, messages=messages, status="timed out"
        )
        for number in range(many)
    ]
    steps = (a_step("gelu"), a_step("words", visible=0, written=3))
    page = render(summarise(a_class(*graded, steps=steps)))
    text = Parts(page).text
    assert len(page) < 2_000_000
    assert "500 more learners are left out here; --json has them." in text
    assert f"{many - MOST_REMARKS} more are left out here; --json has them." in text
    assert f"and {many - MOST_NAMES} more" in text


def test_rare_messages_are_cut_and_counted() -> None:
    graded = [
        a_learner(f"learner-{place}", {"test_gelu": 0.0}, messages={"test_gelu": "word " + "x" * place})
        for place in range(MOST_GROUPS + 3)
    ]
    assert "3 rarer messages are left out here" in page_of(a_class(*graded, steps=(a_step("gelu"),))).text


def test_long_answers_side_by_side_are_cut() -> None:
    long = "\n".join(f"value_{line} = [{line}] @ {'x' * 20}" for line in range(300))
    found = seeded_class(30)
    graded = list(found.graded)
    for place in (0, -1):
        answers = {name: f"{text}\n{long}" for name, text in graded[0].record.answers.items()}
        graded[place] = a_learner(graded[place].learner, graded[place].marks, answers=answers)
    page = render(summarise(Class(UNIT, found.steps, tuple(graded), found.template)))
    assert "more lines are left out." in page
    assert len(page) < 1_000_000


# --------------------------------------------------------------------------------------------------- the file


def test_the_page_replaces_what_was_there_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b" / "report.html"
    report = summarise(seeded_class(3))
    for _ in range(2):
        write_page(report, target)
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]
    assert target.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_said_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(CannotWriteError, match="what should be its folder is a file"):
        write_page(summarise(seeded_class(3)), tmp_path / "file" / "report.html")
    assert (tmp_path / "file").read_text() == "kept"


def test_a_folder_in_the_page_s_place_stays(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()
    with pytest.raises(CannotWriteError, match="cannot be written"):
        write_page(summarise(seeded_class(3)), tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


# --------------------------------------------------------------------------------------------------------- JSON


def test_the_numbers_are_json_and_complete() -> None:
    report = summarise(seeded_class(40))
    found = json.loads(json.dumps(plain(report), allow_nan=False))
    assert (found["unit"], found["graded"], found["max_points"]) == (UNIT, 40, 36)
    assert [entry["learner"] for entry in found["learners"]] == [
        f"learner-{number:04d}" for number in range(1, 41)
    ]
    assert sum(bin_["count"] for bin_ in found["distribution"]["bins"]) == 40
    assert [step["name"] for step in found["steps"]] == [step.name for step in report.found.steps]
    assert found["similarity"]["pairs"][0]["learners"] == ["learner-0001", "learner-0040"]


def test_a_learner_s_points_by_step_add_up_to_all_points() -> None:
    for entry in plain(summarise(seeded_class(10)))["learners"]:
        assert sum(points or 0 for points in entry["steps"].values()) == pytest.approx(entry["points"])


def test_the_numbers_hold_no_code_of_learners() -> None:
    assert "np.asarray" not in json.dumps(plain(summarise(seeded_class(40))))
