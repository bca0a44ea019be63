"""What file names say."""

import pytest

from grader.collect.names import FORMS, Member, Parsed, Reading, data, forms, read_names
from grader.exceptions import UnclearFormError
from tests.grader.collect.downloads import CLASSES, UNIT


def read(*paths: str, form: str = "auto", units: tuple[str, ...] = (UNIT, "gates")) -> Reading:
    return read_names([Member(path, 100) for path in paths], UNIT, form, units)


def one(path: str, form: str = "auto") -> Parsed:
    (parsed,) = read(path, form=form).parsed
    return parsed


# ------------------------------------------------------------------------------------------------------- whose it is


@pytest.mark.parametrize("kind", CLASSES)
def test_the_form_of_a_class_is_told_from_its_names(kind: str) -> None:
    form = {"moodle_flat": "moodle", "nbgrader": "folder", "flat": "folder"}.get(kind, kind)
    reading = read(*CLASSES[kind]())
    assert reading.form.name == form
    assert reading.unmatched == ()


def test_every_form_is_described() -> None:
    assert tuple(data()["forms"]) == tuple(forms(UNIT)) == FORMS


@pytest.mark.parametrize(
    ("path", "name", "lms", "late", "order", "file"),
    [
        (
            "lovelaceada_12345_67890_activations-1.ipynb",
            "lovelaceada",
            "12345",
            False,
            67890,
            "activations-1.ipynb",
        ),
        ("lovelaceada_LATE_12345_67890_a_1_2_b.ipynb", "lovelaceada", "12345", True, 67890, "a_1_2_b.ipynb"),
        ("müllerjürg_1_2_a.ipynb", "müllerjürg", "1", False, 2, "a.ipynb"),
        ("李雷_1_2_a.ipynb", "李雷", "1", False, 2, "a.ipynb"),
        ("group_a_7_8_a.ipynb", "group_a", "7", False, 8, "a.ipynb"),
        ("lovelaceada_LATE_12345_text.html", "lovelaceada", "12345", True, 0, "text.html"),
    ],
)
def test_canvas(path: str, name: str, lms: str, late: bool, order: int, file: str) -> None:
    parsed = one(path, "canvas")
    assert (parsed.name, parsed.lms, parsed.late, parsed.order, parsed.file) == (name, lms, late, order, file)


@pytest.mark.parametrize(
    ("path", "learner", "late"),
    [
        ("anon_Ab3dE_67890_activations.ipynb", "anon-Ab3dE", False),
        ("LATE_anon_Ab3dE_67890_activations.ipynb", "anon-Ab3dE", True),
        ("Participant_4711_assignsubmission_file_/activations.ipynb", "participant-4711", None),
        ("Participant_4711_assignsubmission_file_activations.ipynb", "participant-4711", None),
    ],
)
def test_a_hidden_name_gives_an_id_of_its_number(path: str, learner: str, late: bool | None) -> None:
    parsed = one(path)
    assert (parsed.learner, parsed.name, parsed.late) == (learner, "", late)


@pytest.mark.parametrize(
    "path",
    [
        "Ada de Lovelace_123456_assignsubmission_file_/activations.ipynb",
        "Ada de Lovelace_123456_assignsubmission_file/activations.ipynb",
        "Ada de Lovelace_123456_assignsubmission_file_activations.ipynb",
    ],
)
def test_moodle(path: str) -> None:
    parsed = one(path)
    assert (parsed.name, parsed.lms, parsed.late, parsed.file) == (
        "Ada de Lovelace",
        "123456",
        None,
        "activations.ipynb",
    )


@pytest.mark.parametrize(
    ("path", "login", "note"),
    [
        ("ps1_bitdiddle_attempt_2016-01-30-15-00-00_problem1.ipynb", "bitdiddle", False),
        ("Chapter 13 Problems_jdoe3_attempt_2014-04-30-21-02-38.txt", "jdoe3", True),
        ("Chapter 13 Problems_jdoe3_attempt_2014-04-30-21-02-38_notes.txt", "jdoe3", False),
    ],
)
def test_blackboard(path: str, login: str, note: bool) -> None:
    parsed = one(path, "blackboard")
    assert (parsed.login, parsed.note) == (login, note)
    assert parsed.when in path


@pytest.mark.parametrize(
    ("path", "name", "when"),
    [
        (
            "39786-640693 - Aiden Rodriguez - Oct 10, 2025 1022 AM/a.ipynb",
            "Aiden Rodriguez",
            "Oct 10, 2025 1022 AM",
        ),
        (
            "202020-29393 - chapsu01 S Chapai - Sep 20, 2024 1035 PM/a.ipynb",
            "chapsu01 S Chapai",
            "Sep 20, 2024 1035 PM",
        ),
        (
            "1-2 - Jean - Luc Picard - Feb 11, 2016 205 AM - hw - 1.ipynb",
            "Jean - Luc Picard",
            "Feb 11, 2016 205 AM",
        ),
    ],
)
def test_brightspace(path: str, name: str, when: str) -> None:
    parsed = one(path)
    assert (parsed.name, parsed.when) == (name, when)


@pytest.mark.parametrize(
    ("path", "learner"),
    [
        ("ada/activations/activations.ipynb", "ada"),
        ("ada/activations/My Work.ipynb", "ada"),
        ("ada.ipynb", "ada"),
        ("ada (1).ipynb", "ada"),
        ("learner-01.ipynb", "learner-01"),
        ("learner-01_activations.ipynb", "learner-01"),
        ("ada_lovelace_activations-2.ipynb", "ada_lovelace"),
        ("ada.IPYNB", "ada"),
    ],
)
def test_folder(path: str, learner: str) -> None:
    assert one(path).learner == learner


# --------------------------------------------------------------------------------------- a file name is nobody's mask


@pytest.mark.parametrize(
    ("form", "path"),
    [
        ("canvas", "mallory_1_2_bob_3_4_activations.ipynb"),
        ("canvas", "mallory_1_2_LATE_3_4_activations.ipynb"),
        ("canvas", "mallory_1_2_Unit_bob_attempt_2026-11-30-14-05-09_activations.ipynb"),
        ("moodle", "mallory_1_assignsubmission_file_/Bob_2_assignsubmission_file_/activations.ipynb"),
        ("auto", "mallory_1_assignsubmission_file_/bob_3_4_activations.ipynb"),
        ("auto", "mallory_1_assignsubmission_file_/bob/activations/activations.ipynb"),
        ("moodle", "mallory_1_assignsubmission_file_Bob_2_assignsubmission_file_activations.ipynb"),
        ("blackboard", "Unit_mallory_attempt_2026-11-30-14-05-09_Unit_bob_attempt_2026-11-30-14-05-09_a.ipynb"),
        ("brightspace", "1-2 - mallory - Nov 30, 2026 205 PM/3-4 - Bob - Nov 30, 2026 205 PM/activations.ipynb"),
        ("brightspace", "1-2 - mallory - Nov 30, 2026 205 PM - 3-4 - Bob - Nov 30, 2026 205 PM - a.ipynb"),
        ("folder", "mallory/activations/bob_activations.ipynb"),
    ],
)
def test_a_file_name_that_looks_like_another_s_is_its_maker_s(form: str, path: str) -> None:
    parsed = one(path, form)
    assert (parsed.learner or parsed.login or parsed.name) == "mallory"


def test_a_name_that_two_systems_could_have_given_is_asked_about() -> None:
    with pytest.raises(UnclearFormError, match=r"Canvas or Blackboard; say which, with --format=canvas or"):
        read("mallory_1_2_Unit_bob_attempt_2026-11-30-14-05-09_activations.ipynb")


def test_one_odd_file_name_does_not_change_whose_download_it_is() -> None:
    odd = "mallory_1_2_Unit_bob_attempt_2026-11-30-14-05-09_activations.ipynb"
    reading = read(odd, "ada_3_4_activations.ipynb")
    assert reading.form.name == "canvas"
    assert [parsed.name for parsed in reading.parsed] == ["mallory", "ada"]


# ----------------------------------------------------------------------------------------------- what does not belong


def test_what_systems_leave_behind_is_not_looked_at() -> None:
    junk = ["__MACOSX/._a.ipynb", ".DS_Store", "a/.ipynb_checkpoints/x.ipynb", "Thumbs.db", "index.html"]
    reading = read("ada.ipynb", *junk)
    assert [parsed.learner for parsed in reading.parsed] == ["ada"]
    assert reading.unmatched == ()


def test_files_of_another_form_are_unmatched() -> None:
    reading = read("ada_1_2_activations.ipynb", "grace_3_4_activations.ipynb", "readme.ipynb")
    assert [member.path for member in reading.unmatched] == ["readme.ipynb"]


@pytest.mark.parametrize("other", ["ada/gates/gates.ipynb", "ada_gates.ipynb", "ada_gates (1).ipynb"])
def test_other_units_are_neither_this_one_nor_unmatched(other: str) -> None:
    reading = read("bob/activations/activations.ipynb", other)
    assert [parsed.learner for parsed in reading.parsed] == ["bob"]
    assert reading.unmatched == ()


def test_the_release_itself_is_nobody_s() -> None:
    reading = read("activations.ipynb", "ada.ipynb")
    assert [member.path for member in reading.unmatched] == ["activations.ipynb"]


def test_a_folder_that_everything_lies_in_is_looked_into() -> None:
    reading = read("submissions/1/ada_1_2_a.ipynb", "submissions/1/grace_3_4_a.ipynb")
    assert [parsed.name for parsed in reading.parsed] == ["ada", "grace"]


def test_an_empty_download_is_a_folder_without_files() -> None:
    assert read().form.name == "folder"


@pytest.mark.parametrize(
    ("file", "stem", "copy"),
    [
        ("activations.ipynb", "activations", 0),
        ("activations-2.ipynb", "activations", 2),
        ("activations (3).ipynb", "activations", 3),
        ("activations-0b1e4a3c-1111-2222-3333-444455556666.ipynb", "activations", 0),
        ("work/activations.ipynb", "activations", 0),
        ("unit-2-work.ipynb", "unit-2-work", 0),
    ],
)
def test_the_number_of_a_copy_is_no_part_of_the_name(file: str, stem: str, copy: int) -> None:
    parsed = Parsed(Member(file, 1), file=file)
    assert (parsed.stem(), parsed.copy()) == (stem, copy)
