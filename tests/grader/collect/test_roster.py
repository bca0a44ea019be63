"""Lists of learners, and who of them is meant."""

import pytest

from grader.collect import roster
from grader.collect.names import Member, Parsed
from grader.collect.roster import Roster, compact, learner_id, parse_roster
from grader.exceptions import InvalidLearnerError, RosterError
from tests.grader.collect.downloads import BLACKBOARD_LIST, BRIGHTSPACE_LIST, CANVAS_LIST, MOODLE_LIST

FILE = "list.csv"


def read(text: str, encoding: str = "utf-8") -> Roster:
    return parse_roster(text.encode(encoding), FILE)


def meant(people: Roster, **parts: str) -> str:
    person, reason = people.find(Parsed(Member("x.ipynb", 1), **parts))  # type: ignore[arg-type]
    return person.id if person else reason


# ------------------------------------------------------------------------------------------------------------ reading


@pytest.mark.parametrize(
    ("text", "ids", "first", "last", "email"),
    [
        (CANVAS_LIST, ["alovelace", "ghopper", "job", "aturing"], "Ada", "Lovelace", ""),
        (
            MOODLE_LIST,
            ["ada@example.edu", "grace@example.edu", "jose@example.edu", "alan@example.edu"],
            "Ada",
            "Lovelace",
            "ada@example.edu",
        ),
        (BLACKBOARD_LIST, ["alovelace", "ghopper", "jose_ob"], "Ada", "Lovelace", ""),
        (BRIGHTSPACE_LIST, ["alovelace", "ghopper", "job"], "Ada", "Lovelace", "ada@example.edu"),
    ],
    ids=["canvas", "moodle", "blackboard", "brightspace"],
)
def test_the_lists_of_learning_management_systems(
    text: str, ids: list[str], first: str, last: str, email: str
) -> None:
    people = read(text).people
    assert [person.id for person in people] == ids
    assert (people[0].first, people[0].last, people[0].email) == (first, last, email)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_a_list_is_read_however_a_spreadsheet_saved_it(delimiter: str, encoding: str, ending: str) -> None:
    lines = ["Login,Surname,First name,E-Mail", "ada,Lovelace,Ada,ada@x.org", "jo,O'Brien,José,jo@x.org", ""]
    people = read(ending.join(lines).replace(",", delimiter), encoding).people
    assert [(person.id, person.first, person.last, person.email) for person in people] == [
        ("ada", "Ada", "Lovelace", "ada@x.org"),
        ("jo", "José", "O'Brien", "jo@x.org"),
    ]


def test_excel_s_line_with_the_delimiter_is_no_header() -> None:
    assert [person.id for person in read("sep=;\nid;name\nada;Ada Lovelace\n").people] == ["ada"]


def test_headers_in_german() -> None:
    (person,) = read("Anmeldename;Nachname;Vorname;E-Mail-Adresse\nada;Lovelace;Ada;ada@x.org\n").people
    assert (person.id, person.first, person.last, person.email) == ("ada", "Ada", "Lovelace", "ada@x.org")


def test_a_line_break_in_a_cell_ends_no_line() -> None:
    assert [person.id for person in read('id,note\nada,"two\nlines"\ngrace,x\n').people] == ["ada", "grace"]


def test_a_learner_in_two_sections_is_one() -> None:
    assert [person.id for person in read("login,name,section\nada,Ada L,1\nada,Ada L,2\n").people] == ["ada"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "it is empty"),
        (b"\n \n", "it is empty"),
        ("id,name\nm\u00fcller,x\n".encode("latin-1"), "line 2 is not in UTF-8; save it as CSV UTF-8"),
        (b"\xff\xfei", "line 1 is not in UTF-16"),
        (b"id,name\n\0,x\n", "it is no text"),
        (b"PK\x03\x04\x14\x00", "it is no text"),
        (b"colour,size\nred,1\n", "no column has the learners' ids; name one column Login"),
        (b"id,name\n", "there is no learner in it"),
        (b"id,name\n,Ada\n", "line 2 has no id; fill it in"),
        (b"id,name\nada,Ada\n../x,Bob\n", "in line 3, '../x' can be no learner's id"),
        (b"id,name\nada,Ada\nbob,Bob\nada,Ada Other\n", "lines 2 and 4 have the same id 'ada'"),
        (b"id,name\nada,Ada\nADA,Ada\n", "lines 2 and 3 have the same id 'ADA'"),
        (b"id,name\nada," + b"x" * 200_000 + b"\n", "line 2 is no line of a table"),
        (b"id" + b",x" * 6000 + b"\nada" + b",x" * 6000, "it is too large at line 1"),
    ],
)
def test_a_list_that_cannot_be_used_is_named_with_its_line(content: bytes, sentence: str) -> None:
    with pytest.raises(RosterError) as caught:
        parse_roster(content, FILE)
    assert str(caught.value).startswith(f"{FILE} cannot be used as a list of learners: ")
    assert sentence in str(caught.value)


def test_a_list_of_no_end_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "MOST_ROWS", 10)
    with pytest.raises(RosterError, match="too large at line 12"):
        read("id\n" + "".join(f"learner-{number}\n" for number in range(20)))


def test_a_list_larger_than_any_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roster, "MOST_BYTES", 1_000_000)
    with pytest.raises(RosterError, match="larger than 1 MB"):
        parse_roster(b"x" * 1_000_001, FILE)


# ----------------------------------------------------------------------------------------------------------- matching


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"name": "lovelaceada", "lms": "101", "number": "id"}, "alovelace"),
        ({"name": "renamed", "lms": "101", "number": "id"}, "alovelace"),
        ({"name": "obrienjosé", "lms": "9", "number": "id"}, "job"),
        ({"name": "Ada Lovelace"}, "alovelace"),
        ({"name": "LOVELACE, ADA"}, "alovelace"),
        ({"name": "José O'Brien"}, "job"),
        ({"name": "Jose OBrien"}, "job"),
        ({"login": "GHOPPER"}, "ghopper"),
        ({"learner": "S2"}, "ghopper"),
        ({"name": "ghopper Grace Hopper", "lms": "7"}, "ghopper"),
    ],
    ids=str,
)
def test_a_learner_is_found(parts: dict[str, str], expected: str) -> None:
    assert meant(read(CANVAS_LIST), **parts) == expected


def test_moodle_s_number_is_the_participant_s() -> None:
    assert (
        meant(read(MOODLE_LIST), learner="participant-202", lms="202", number="identifier") == "grace@example.edu"
    )


def test_a_number_of_another_kind_says_nothing() -> None:
    people = read("id,name\n201,Alan Turing\n202,Ada Lovelace\n")
    assert meant(people, name="Ada Lovelace", lms="201", number="identifier") == "202"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"name": "Nobody Known"}, "nobody in the list"),
        ({"name": "Ada Lovelace", "lms": "102", "number": "id"}, "could be meant: alovelace, ghopper"),
        ({"name": "ghopper Ada Lovelace"}, "could be meant: alovelace, ghopper"),
        ({"name": ""}, "nobody in the list"),
    ],
    ids=str,
)
def test_a_learner_who_cannot_be_told_is_nobody(parts: dict[str, str], reason: str) -> None:
    assert reason in meant(read(CANVAS_LIST), **parts)


def test_of_two_learners_of_one_name_the_number_tells() -> None:
    people = read("login,name,lms id\nann1,Ann Lee,11\nann2,Ann Lee,12\nlee,Lee Ann,13\n")
    assert meant(people, name="Ann Lee") == "more than one in the list of learners could be meant: ann1, ann2, lee"
    assert meant(people, name="Ann Lee", lms="12") == "ann2"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("José O'Brien", "jose obrien"),
        ("Jose\u0301", "jos\u00e9"),
        ("STRASSE", "straße"),
        ("Søren Ærø", "soren aero"),
        ("Łukasz", "lukasz"),
    ],
)
def test_names_are_compared_without_accents_and_case(one: str, other: str) -> None:
    assert compact(one) == compact(other)


# ------------------------------------------------------------------------------------------- ids without a list


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lovelaceada", "lovelaceada"),
        ("Ada Lovelace", "Ada Lovelace"),
        ("Ada (the) Lovelace, jr.", "Ada the Lovelace jr"),
        (" .Ada/Lovelace\\ ", "Ada Lovelace"),
        ("-rf", "rf"),
        ("Jose\u0301", "Jos\u00e9"),
        ("ada@x.org", "ada@x.org"),
        ("...", ""),
        ("\u202e", ""),
    ],
)
def test_a_name_is_cleaned_to_an_id(name: str, expected: str) -> None:
    assert learner_id(name) == expected


def test_a_name_too_long_for_an_id_is_refused() -> None:
    with pytest.raises(InvalidLearnerError):
        learner_id("a" * 300)
