"""Who handed in what, and what is to be done about it."""

import unicodedata
from datetime import UTC, datetime
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from grader.collect.names import FORMS, Member, read_names
from grader.collect.plan import (
    Attempt,
    Entry,
    Known,
    Plan,
    Stored,
    attempt_folder,
    make_plan,
    somebody_else,
    steps_for,
)
from grader.collect.roster import parse_roster
from grader.collect.times import named_zone
from grader.engine.store import require_learner
from grader.exceptions import UnclearFormError
from tests.grader.collect.downloads import (
    BLACKBOARD_LIST,
    BRIGHTSPACE_LIST,
    CANVAS_LIST,
    CLASSES,
    MOODLE_LIST,
    UNIT,
    Files,
    receipt,
)

BERLIN = named_zone("Europe/Berlin")
NOTES = ("timestamp.txt", ".txt")


def plan(files: Files, *, roster: str | None = None, form: str = "auto", packed: int | None = None) -> Plan:
    members = [Member(path, len(content), packed) for path, content in files.items()]
    notes = {path: content.decode() for path, content in files.items() if path.endswith(NOTES)}
    people = None if roster is None else parse_roster(roster.encode(), "list.csv")
    reading = read_names(members, UNIT, form, (UNIT, "gates"))
    return make_plan(reading, UNIT, BERLIN, roster=people, notes=notes, most=1_000)


def named(*paths: str, content: bytes = b"{}") -> dict[str, bytes]:
    return dict.fromkeys(paths, content)


def learners(found: Plan) -> dict[str, str]:
    return {entry.learner: entry.newest.member.path for entry in found.entries}


def reasons(found: Plan) -> list[str]:
    return [left.reason for left in found.left_out]


# ------------------------------------------------------------------------------------------------------ whole classes


@pytest.mark.parametrize(
    ("kind", "roster", "expected"),
    [
        ("canvas", None, ["hoppergrace", "lovelaceada", "obrienjosé"]),
        ("canvas", CANVAS_LIST, ["alovelace", "ghopper", "job"]),
        ("moodle", None, ["Ada Lovelace", "Grace Hopper", "José O'Brien"]),
        ("moodle", MOODLE_LIST, ["ada@example.edu", "grace@example.edu", "jose@example.edu"]),
        ("moodle_flat", MOODLE_LIST, ["ada@example.edu", "grace@example.edu", "jose@example.edu"]),
        ("blackboard", None, ["alovelace", "ghopper", "jose_ob"]),
        ("blackboard", BLACKBOARD_LIST, ["alovelace", "ghopper", "jose_ob"]),
        ("brightspace", None, ["Ada Lovelace", "Grace Hopper", "José O'Brien"]),
        ("brightspace", BRIGHTSPACE_LIST, ["alovelace", "ghopper", "job"]),
        ("nbgrader", None, ["alovelace", "ghopper", "job"]),
        ("nbgrader", CANVAS_LIST, ["alovelace", "ghopper", "job"]),
        ("flat", None, ["alovelace", "ghopper", "job"]),
        ("flat", BRIGHTSPACE_LIST, ["alovelace", "ghopper", "job"]),
    ],
)
def test_a_class_is_collected_whole(kind: str, roster: str | None, expected: list[str]) -> None:
    found = plan(CLASSES[kind](b"{}"), roster=roster)
    assert list(learners(found)) == expected
    assert found.left_out == ()


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("canvas", [None, None, None]),
        ("moodle", [None, None, None]),
        ("blackboard", ["2026-11-30 13:05:09", "2026-11-30 22:59:59", "2026-11-30 23:10:00"]),
        ("brightspace", ["2026-11-30 13:05:00", "2026-11-30 22:59:00", "2026-11-30 23:10:00"]),
        ("nbgrader", ["2026-11-30 14:05:09", None, None]),
    ],
)
def test_local_times_are_kept_in_utc(kind: str, times: list[str | None]) -> None:
    entries = plan(CLASSES[kind](b"{}")).entries
    shown = [f"{entry.newest.time:%Y-%m-%d %H:%M:%S}" if entry.newest.time else None for entry in entries]
    assert shown == times


def test_moodle_s_worksheet_gives_the_times_that_its_download_has_not() -> None:
    ada, _, jose = plan(CLASSES["moodle"](b"{}"), roster=MOODLE_LIST).entries
    assert ada.newest.time == datetime(2026, 11, 30, 13, 5, tzinfo=UTC)
    assert jose.newest.time is None


def test_who_has_handed_in_nothing_is_told_from_the_list() -> None:
    assert [person.id for person in plan(CLASSES["canvas"](b"{}"), roster=CANVAS_LIST).missing] == ["aturing"]


def test_canvas_marks_who_is_late() -> None:
    late = {entry.learner: entry.newest.late for entry in plan(CLASSES["canvas"](b"{}")).entries}
    assert late == {"hoppergrace": True, "lovelaceada": False, "obrienjosé": False}


# ----------------------------------------------------------------------------------------------------------- attempts


def test_the_newest_attempt_is_the_submission() -> None:
    ada = plan(CLASSES["blackboard"](b"{}")).entries[0]
    assert [attempt.member.path[22:41] for attempt in ada.attempts] == [
        "attempt_2026-11-29-",
        "attempt_2026-11-30-",
    ]


def test_canvas_s_files_come_in_the_order_of_their_numbers() -> None:
    (ada,) = plan(named("ada_1_1000_activations-1.ipynb", "ada_1_999_activations.ipynb")).entries
    assert [attempt.order for attempt in ada.attempts] == [999, 1000]


def test_a_browser_s_second_copy_is_the_newer() -> None:
    (ada,) = plan(
        named("ada_activations (10).ipynb", "ada_activations.ipynb", "ada_activations (9).ipynb")
    ).entries
    assert [attempt.copy for attempt in ada.attempts] == [0, 9, 10]


def test_the_notebook_of_the_unit_s_name_counts_beside_others() -> None:
    (ada,) = plan(named("ada_1_5_scratch.ipynb", "ada_1_4_activations.ipynb", "ada_1_6_notes.pdf")).entries
    assert [attempt.member.path for attempt in ada.attempts] == ["ada_1_4_activations.ipynb"]
    assert ada.beside == ("ada_1_5_scratch.ipynb", "ada_1_6_notes.pdf")


def test_of_several_notebooks_of_other_names_none_is_guessed() -> None:
    found = plan(named("ada_1_5_one.ipynb", "ada_1_4_two.ipynb", "bob_2_6_three.ipynb"))
    assert learners(found) == {"bob": "bob_2_6_three.ipynb"}
    assert reasons(found) == ["more than one notebook came together, and none is named activations.ipynb"]
    assert found.left_out[0].files == ("ada_1_5_one.ipynb", "ada_1_4_two.ipynb")


def test_names_of_attempts_may_differ_from_one_time_to_the_next() -> None:
    head = "Unit_ada_attempt_2026-11-"
    (ada,) = plan(named(f"{head}29-09-00-00_one.ipynb", f"{head}30-09-00-00_two.ipynb")).entries
    assert ada.newest.member.path == f"{head}30-09-00-00_two.ipynb"


# ----------------------------------------------------------------------------------------- what cannot be collected


def test_a_learner_without_a_notebook_is_named() -> None:
    found = plan(named("ada_1_2_work.pdf", "bob_3_4_work.zip", "eve_5_6_activations.ipynb"))
    assert list(learners(found)) == ["eve"]
    assert {left.who: left.reason for left in found.left_out} == {
        "ada (1)": "no notebook is among the files",
        "bob (3)": "an archive was handed in, and no notebook",
    }


def test_a_notebook_that_is_too_large_costs_its_learner_only() -> None:
    found = plan({**named("ada_1_2_activations.ipynb"), "bob_3_4_activations.ipynb": b"x" * 1001})
    assert list(learners(found)) == ["ada"]
    assert [(left.who, left.reason) for left in found.left_out] == [("bob (3)", "it is larger than 0 MB")]


def test_a_notebook_of_the_largest_size_is_taken() -> None:
    assert list(learners(plan(named("bob_3_4_activations.ipynb", content=b"x" * 1000)))) == ["bob"]


def test_a_notebook_that_unpacks_to_too_much_costs_its_learner_only() -> None:
    members = [
        Member("ada_1_2_activations.ipynb", 2 << 20, 9_000),
        Member("bob_3_4_activations.ipynb", 2 << 20, 20_000),
    ]
    found = make_plan(read_names(members, UNIT), UNIT, BERLIN)
    assert list(learners(found)) == ["bob"]
    assert reasons(found) == ["it unpacks to more than 200 times its size"]


def test_an_earlier_attempt_that_is_too_large_costs_itself_only() -> None:
    head = "Unit_ada_attempt_2026-11-"
    found = plan({f"{head}29-09-00-00_a.ipynb": b"x" * 2000, f"{head}30-09-00-00_a.ipynb": b"{}"})
    assert [len(entry.attempts) for entry in found.entries] == [1]
    assert reasons(found) == ["it is larger than 0 MB"]


def test_a_newest_attempt_that_is_too_large_is_not_replaced_by_an_earlier() -> None:
    head = "Unit_ada_attempt_2026-11-"
    found = plan({f"{head}29-09-00-00_a.ipynb": b"{}", f"{head}30-09-00-00_a.ipynb": b"x" * 2000})
    assert found.entries == ()
    assert [left.files for left in found.left_out] == [(f"{head}30-09-00-00_a.ipynb",)]


def test_whom_the_list_does_not_know_is_left_out_and_the_others_are_not() -> None:
    files = named(
        "lovelaceada_101_5_activations.ipynb", "stranger_999_6_activations.ipynb", "stranger_999_7_x.pdf"
    )
    found = plan(files, roster=CANVAS_LIST)
    assert list(learners(found)) == ["alovelace"]
    assert [(left.who, left.files) for left in found.left_out] == [
        ("stranger (999)", ("stranger_999_6_activations.ipynb",))
    ]


def test_two_of_one_name_are_not_taken_for_one() -> None:
    found = plan(
        named("leeann_1_2_activations.ipynb", "leeann_3_4_activations.ipynb", "bob_5_6_activations.ipynb")
    )
    assert list(learners(found)) == ["bob"]
    assert reasons(found) == ["more than one learner has this name (1, 3); give a list of learners with --roster"]


@pytest.mark.parametrize("pair", [("Ada.ipynb", "ada.ipynb"), ("a*b.ipynb", "a b.ipynb")])
def test_two_names_that_come_to_one_id_are_not_taken_for_one(pair: tuple[str, str]) -> None:
    found = plan(named(*pair))
    assert found.entries == ()
    assert "more than one learner has this name" in reasons(found)[0]


def test_a_name_of_which_no_id_can_be_made_is_named() -> None:
    found = plan(named("!!!.ipynb", f"{'a' * 250}.ipynb"))
    assert sorted(reasons(found)) == [
        "no learner's id can be made of this name; give a list with --roster",
        "the name is too long for a learner's id",
    ]


def test_a_notebook_without_a_learner_s_name_is_named_and_a_text_is_not() -> None:
    found = plan(named("ada_1_2_activations.ipynb", "solution.ipynb", "all.zip", "readme.txt"))
    assert [left.files for left in found.left_out] == [("solution.ipynb",), ("all.zip",)]
    assert found.ignored == ("readme.txt",)


# ------------------------------------------------------------------------------------------ what lies beside is doubted


def test_blackboard_s_text_tells_a_login_with_an_underscore() -> None:
    head = "Unit_1_ada_b_attempt_2026-11-30-09-00-00"
    (ada,) = plan({f"{head}.txt": receipt("Ada (the) B", "ada_b"), f"{head}_a.ipynb": b"{}"}).entries
    assert (ada.learner, ada.name) == ("ada_b", "Ada (the) B")


@pytest.mark.parametrize(
    "text",
    [
        receipt("Bob", "bob"),
        b"",
        b"\xff\xfe",
        b"Comments:\nName: Bob (bob)\n",
        receipt("Mallory", "allory"),
    ],
)
def test_a_text_that_the_file_s_name_does_not_bear_out_is_not_believed(text: bytes) -> None:
    head = "Unit_mallory_attempt_2026-11-30-09-00-00"
    reading = read_names([Member(f"{head}.txt", 1), Member(f"{head}_a.ipynb", 2)], UNIT)
    found = make_plan(reading, UNIT, BERLIN, notes={f"{head}.txt": text.decode("utf-8", "replace")})
    assert list(learners(found)) == ["mallory"]


# --------------------------------------------------------------------------------------------------------- what to do

EARLY, LATE = datetime(2026, 11, 29, 9, tzinfo=UTC), datetime(2026, 11, 30, 9, tzinfo=UTC)


def attempt(digest: str, time: datetime | None = None, order: int = 0) -> Attempt:
    return Attempt(Member(f"{digest}-{time}-{order}.ipynb", 1), time, None, order, 0, digest)


def entry(*attempts: Attempt, lms: str = "") -> Entry:
    return Entry("ada", attempts, lms=lms)


def steps(found: Entry, known: Known) -> list[tuple[str, str, str]]:
    return [(step.kind, step.attempt.digest, step.folder) for step in steps_for(found, known)]


def test_the_first_submission_is_placed_with_its_earlier_attempts() -> None:
    assert steps(entry(attempt("a", EARLY), attempt("b", LATE)), Known()) == [
        ("keep", "a", "001-2026-11-29T09-00-00Z"),
        ("place", "b", ""),
    ]


@pytest.mark.parametrize("time", [None, LATE])
def test_the_same_once_more_changes_nothing(time: datetime | None) -> None:
    known = Known(Stored("b", time), {1: Stored("a", EARLY)})
    assert steps(entry(attempt("a", EARLY), attempt("b", time)), known) == []


def test_what_is_there_becomes_an_attempt() -> None:
    known = Known(Stored("b", EARLY), {3: Stored("a")})
    assert steps(entry(attempt("c", LATE)), known) == [("place", "c", "004-2026-11-29T09-00-00Z")]


def test_the_same_notebook_handed_in_later_counts_with_its_later_time() -> None:
    known = Known(Stored("a", EARLY))
    assert steps(entry(attempt("a", LATE)), known) == [("place", "a", "001-2026-11-29T09-00-00Z")]


def test_a_time_that_was_not_known_is_added() -> None:
    assert steps(entry(attempt("a", LATE)), Known(Stored("a"))) == [("date", "a", "")]


def test_an_older_download_replaces_nothing() -> None:
    known = Known(Stored("b", LATE))
    assert steps(entry(attempt("a", EARLY)), known) == [("keep", "a", "001-2026-11-29T09-00-00Z")]
    assert steps(entry(attempt("a", EARLY)), Known(Stored("b", LATE), {1: Stored("a", EARLY)})) == []


def test_without_times_the_lms_s_order_tells_which_is_older() -> None:
    assert steps(entry(attempt("a", order=7)), Known(Stored("b", order=8))) == [("keep", "a", "001-time-unknown")]
    assert steps(entry(attempt("a", order=9)), Known(Stored("b", order=8))) == [("place", "a", "001-time-unknown")]


def test_without_times_and_order_what_is_collected_last_counts() -> None:
    known = Known(Stored("b"), {1: Stored("a")})
    assert steps(entry(attempt("a")), known) == [("place", "a", "002-time-unknown")]


def test_what_cannot_be_read_makes_way_too() -> None:
    assert steps(entry(attempt("a")), Known(blocked=True)) == [("place", "a", "001-time-unknown")]


def test_an_attempt_that_came_twice_is_kept_once() -> None:
    found = entry(attempt("a"), attempt("a", order=1), attempt("b", order=2), attempt("b", order=3))
    assert steps(found, Known()) == [("keep", "a", "001-time-unknown"), ("place", "b", "")]


def test_a_submission_of_another_number_is_another_learner_s() -> None:
    assert "number 1" in somebody_else(entry(attempt("a"), lms="2"), Known(Stored("b"), lms="1"))
    assert somebody_else(entry(attempt("a"), lms="1"), Known(Stored("b"), lms="1")) == ""
    assert somebody_else(entry(attempt("a"), lms="2"), Known(Stored("b"))) == ""


def test_the_folder_of_an_attempt_has_its_number_and_time() -> None:
    assert attempt_folder(7, datetime(2026, 1, 2, 3, 4, 5, 999, tzinfo=UTC)) == "007-2026-01-02T03-04-05Z"
    assert attempt_folder(1234, None) == "1234-time-unknown"


# ---------------------------------------------------------------------------------------------- whatever the names are

PARTS = [
    "..",
    ".",
    "",
    "/",
    "a",
    "ada",
    UNIT,
    "_1_2_",
    " - ",
    "_assignsubmission_file_/",
    "\\",
    "C:",
    "\0",
    "\n",
    "~",
]
ODD = st.lists(st.sampled_from(PARTS) | st.text(max_size=5), max_size=8).map("".join)
SHAPES = st.sampled_from(
    [
        "{}_1_2_{}.ipynb",
        "{}_LATE_1_2_{}.ipynb",
        "{}_1_assignsubmission_file_/{}.ipynb",
        "Unit_{}_attempt_2026-11-30-14-05-09_{}.ipynb",
        "1-2 - {} - Nov 30, 2026 205 PM/{}.ipynb",
        "{}/activations/{}.ipynb",
        "{}{}.ipynb",
    ]
)
PATHS = st.builds(str.format, SHAPES, ODD, ODD)


@given(st.lists(PATHS, max_size=6, unique=True), st.sampled_from(["auto", *FORMS]), st.integers(0, 3))
@example(["../x_1_2_a.ipynb"], "canvas", 0)
@example(["../activations/activations.ipynb"], "folder", 1)
@settings(deadline=None)
@example(["..  _1_assignsubmission_file_/a.ipynb"], "moodle", 2)
def test_no_plan_writes_outside_of_its_two_folders(paths: list[str], form: str, attempts: int) -> None:
    try:
        reading = read_names([Member(path, 10) for path in paths], UNIT, form, (UNIT, "gates"))
    except UnclearFormError:
        return
    found = make_plan(reading, UNIT, BERLIN)
    known = Known(Stored("x"), {number: Stored(f"{number}") for number in range(attempts)})
    for entry in found.entries:
        require_learner(entry.learner)
        for where in [entry.learner, *(step.folder for step in steps_for(entry, known) if step.folder)]:
            assert PurePosixPath(where).parts == (where,)
            assert where not in (".", "..")
            assert not set(where) & set('/\\:\0\n*?"<>|')
    keys = [unicodedata.normalize("NFC", entry.learner).casefold() for entry in found.entries]
    assert len(keys) == len(set(keys))


@given(st.lists(PATHS, max_size=6, unique=True))
@settings(deadline=None)
def test_every_notebook_is_collected_or_named(paths: list[str]) -> None:
    found = plan(named(*paths), form="canvas")
    spoken_of = {attempt.member.path for entry in found.entries for attempt in entry.attempts}
    spoken_of |= {path for entry in found.entries for path in entry.beside}
    spoken_of |= {path for left in found.left_out for path in left.files}
    hidden = {path for path in paths if any(part.startswith(".") for part in path.split("/"))}
    assert set(paths) - hidden <= spoken_of
