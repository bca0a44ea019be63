"""The page that a learner gets back, and the files that it comes in."""

import html
import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from grader.cli import cli
from grader.collect.place import RECORD, attempts_root
from grader.course import Course
from grader.exceptions import GraderError
from grader.feedback import comments, moodle_zip, page_of, write_feedback
from grader.notebooks import read_notebook, write_notebook
from tests.grader.engine.courses import UNIT, a_verdict, by_hand, db_url
from tests.grader.scored_class import WRITTEN, keep, make_scored, name, put
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow

TANH = (
    "ex4.gelu_neg: expected -0.154268769, but the given value is -0.15428599.\n"
    "What happened: the tanh form was used.\n"
    "The book treats it on the page “limits and numerics”."
)
EXACT = "gelu is wrong on random input: it should be z * Phi(z), the exact form."


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    return make_scored(tmp_path_factory.mktemp("scored") / "course")


@pytest.fixture
def course(scored: CourseCopy, tmp_path: Path) -> Course:
    return Course(Path(shutil.copytree(scored.root, tmp_path / "course")))


def invoke(course: Course, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli, ["--course", str(course.root), "feedback", UNIT, *arguments], prog_name="grader"
    )


def page(course: Course, learner: str) -> str:
    write_feedback(course, UNIT, learner)
    return page_of(course, learner, UNIT).read_text(encoding="utf-8")


def without_markup(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text.replace("<wbr>", ""))).split())


def table(text: str) -> dict[str, tuple[str, str]]:
    """The rows of the table at the top: points, and what was noticed."""
    steps = text.partition('<table class="steps">')[2].partition("</table>")[0].partition("<tbody>")[2]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in steps.split("</tr>")[:-1]]
    return {without_markup(step): (without_markup(points), without_markup(said)) for step, points, said in rows}


# ------------------------------------------------------------------------------------------------ what the page says


def test_the_title_says_the_unit_and_the_learner(course: Course) -> None:
    assert "<title>activations: feedback for Ada Lovelace (alovelace)</title>" in page(course, "alovelace")


def test_every_step_has_its_points(course: Course) -> None:
    rows = table(page(course, "aturing"))
    assert rows["relu"] == ("1 of 2", "")
    assert rows["gelu"][0] == "1.5 of 3"
    assert rows[WRITTEN] == ("3 of 3", "A comment on this answer")
    assert rows["Total"] == ("21.5 of 40", "")


def test_a_step_with_all_points_says_so(course: Course) -> None:
    assert table(page(course, "alovelace"))["gelu"] == ("3 of 3", "All tests pass.")


def test_an_answer_that_waits_for_a_person_says_so(course: Course) -> None:
    rows = table(page(course, "ghopper"))
    assert rows[WRITTEN] == ("0 of 3", "This answer is still to be read by a person.")
    assert rows["Total"] == ("37 of 40", "The total may change when all answers have been read.")


def test_what_the_tests_noticed_stands_beside_the_points_with_the_mistake(course: Course) -> None:
    keep(course, "alovelace", 0.0, errors={"test_gelu": TANH, "hidden_gelu": EXACT})
    points, said = table(page(course, "alovelace"))["gelu"]
    assert points == "0 of 3"
    assert said == " ".join(f"{TANH.splitlines()[0]}\n{EXACT}\n{' '.join(TANH.splitlines()[1:])}".split())


def test_nothing_that_a_hidden_test_says_is_shown_but_its_own_sentence(course: Course) -> None:
    keep(course, "alovelace", 0.0, errors={"hidden_gelu": "asked with 730.25", "hidden_silu": EXACT})
    text = page(course, "alovelace")
    assert table(text)["gelu"][1] == "A hidden test of this step does not pass."
    # The sentence is another test's.
    assert table(text)["silu"][1] == "A hidden test of this step does not pass."
    assert "730.25" not in text
    assert "BEGIN HIDDEN" not in text


def test_a_comment_is_formatted_and_linked(course: Course) -> None:
    text = page(course, "aturing")
    assert f'href="#comment-{WRITTEN}"' in text
    assert re.search(
        rf'id="comment-{WRITTEN}">\s*<strong>Comments:</strong> <p>Say <em>which</em> inputs.</p>', text
    )


def test_the_penalty_for_being_late_is_taken_off_and_said(course: Course) -> None:
    from nbgrader.api import Gradebook

    with Gradebook(db_url(course)) as gradebook:
        gradebook.find_submission_notebook(UNIT, UNIT, "alovelace").late_submission_penalty = 2.5
        gradebook.db.commit()
    rows = table(page(course, "alovelace"))
    assert rows["Handed in late"] == ("−2.5", "Penalty on all points")
    assert rows["Total"][0] == "37.5 of 40"


def test_a_score_given_by_hand_replaces_the_automatic_one(course: Course) -> None:
    by_hand(course, "aturing", "test_relu", 0.25)
    assert table(page(course, "aturing"))["relu"][0] == "0.75 of 2"


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("unreadable", "What was handed in could not be read, so nothing of it was graded."),
        ("timed out", "Your notebook took too long, so not all of it was graded."),
        ("crashed at cell gelu", "Your notebook did not run to its end, so not all of it was graded."),
        ("missing", "No notebook was handed in that could be graded."),
        ("something new", "Your notebook was not graded to its end."),
    ],
)
def test_grading_that_failed_is_said(course: Course, status: str, sentence: str) -> None:
    assignment, verdict = a_verdict(course, share=0.0, status=status, notebook=None)
    put(course, "alovelace", assignment, verdict)
    text = page(course, "alovelace")
    notice = re.search(r'<div class="notice">(.*?)</div>', text, re.DOTALL)
    assert notice is not None
    assert without_markup(notice[1]) == f"{sentence} A word to the learner."
    assert text.count("A word to the learner.") == 1


def test_a_notebook_that_another_program_graded_has_its_points(course: Course) -> None:
    path = course.autograded / "alovelace" / UNIT / f"{UNIT}.ipynb"
    notebook = json.loads(path.read_text(encoding="utf-8"))
    del notebook["metadata"]["ffn-grading"]
    path.chmod(0o644)
    path.write_text(json.dumps(notebook), encoding="utf-8")
    assert table(page(course, "alovelace"))["Total"][0] == "40 of 40"


def test_a_notebook_that_nbgrader_wrote_has_the_same_page(course: Course) -> None:
    mine = page(course, "alovelace")
    path = course.autograded / "alovelace" / UNIT / f"{UNIT}.ipynb"
    path.chmod(0o644)
    # nbgrader writes texts of several lines as lists.
    write_notebook(read_notebook(path), path)
    assert '"source": [' in path.read_text(encoding="utf-8")
    assert page(course, "alovelace") == mine


# ------------------------------------------------------------------------------------------------------ hostile text


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>"


def test_a_learner_s_name_is_text(course: Course) -> None:
    name(course, "alovelace", first_name=EVIL, last_name='"&')
    text = page(course, "alovelace")
    assert "<script>alert(1)" not in text
    assert "<img src=x" not in text
    assert html.escape(EVIL) in text


def test_the_message_of_a_test_is_text(course: Course) -> None:
    keep(course, "alovelace", 0.0, errors={"test_gelu": f"expected 1, got {EVIL}"})
    text = page(course, "alovelace")
    assert "<script>alert(1)" not in text
    assert "<img src=x" not in text
    assert table(text)["gelu"][1] == f"expected 1, got {EVIL}"


def test_a_long_message_is_cut(course: Course) -> None:
    keep(course, "alovelace", 0.0, errors={"test_gelu": "x" * 5_000})
    assert table(page(course, "alovelace"))["gelu"][1] == "x" * 600


@pytest.mark.parametrize(
    "answer", [EVIL, "[a](javascript:alert(1))", "<!-- the script for formulas -->", "{{ 7 * 7 }}"]
)
def test_what_an_answer_says_does_not_run(course: Course, answer: str) -> None:
    keep(course, "alovelace", 1.0, written=answer)
    text = page(course, "alovelace")
    assert "<script" not in text
    assert "<img src=x" not in text
    assert 'href="javascript' not in text


# ------------------------------------------------------------------------------------------------------------- files


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_each_learner_gets_a_folder_and_a_zip_file(course: Course) -> None:
    result = invoke(course)
    assert result.exit_code == 0, result.output
    assert result.output == "Feedback is in grader/var/feedback.\n"
    assert sorted(everything(course.feedback)) == sorted(
        f"{learner}/{file}"
        for learner in ("alovelace", "aturing", "ghopper")
        for file in (f"{UNIT}.zip", f"{UNIT}/{UNIT}.html")
    )


def test_the_zip_file_holds_the_page(course: Course) -> None:
    text = page(course, "alovelace")
    with zipfile.ZipFile(course.feedback / "alovelace" / f"{UNIT}.zip") as archive:
        assert {name: archive.read(name).decode() for name in archive.namelist()} == {f"{UNIT}.html": text}


def test_the_same_results_give_the_same_bytes(course: Course) -> None:
    invoke(course)
    before = everything(course.feedback)
    shutil.rmtree(course.feedback)
    invoke(course)
    assert everything(course.feedback) == before


def test_a_page_of_an_earlier_grading_is_replaced(course: Course) -> None:
    before = page(course, "aturing")
    keep(course, "aturing", 1.0)
    after = page(course, "aturing")
    assert [table(text)["relu"][0] for text in (before, after)] == ["1 of 2", "2 of 2"]
    with zipfile.ZipFile(course.feedback / "aturing" / f"{UNIT}.zip") as archive:
        assert archive.read(f"{UNIT}.html").decode() == after


def test_without_zip_files_no_old_one_stays(course: Course) -> None:
    invoke(course)
    invoke(course, "--no-zip")
    assert not any(name.endswith(".zip") for name in everything(course.feedback))


def test_for_one_learner_nothing_else_is_written(course: Course) -> None:
    assert invoke(course, "--learner", "aturing").exit_code == 0
    assert [folder.name for folder in course.feedback.iterdir()] == ["aturing"]


def test_a_notebook_that_cannot_be_read_costs_nobody_else_the_page(course: Course) -> None:
    old = page(course, "alovelace")
    path = course.autograded / "alovelace" / UNIT / f"{UNIT}.ipynb"
    path.chmod(0o644)
    path.write_text("{")
    result = invoke(course)
    assert isinstance(result.exception, GraderError)
    assert str(result.exception).startswith("no feedback could be written for 1 of 3 learners, see above;")
    assert result.stderr.startswith("alovelace: the graded notebook cannot be shown: JSONDecodeError")
    assert page_of(course, "alovelace", UNIT).read_text(encoding="utf-8") == old
    assert page_of(course, "aturing", UNIT).is_file()


def test_a_learner_who_is_not_in_the_gradebook_is_named(course: Course) -> None:
    shutil.copytree(course.autograded / "alovelace", course.autograded / "nobody")
    result = invoke(course)
    assert result.stderr == "nobody: is not in the gradebook; run `grader autograde activations --force`\n"
    assert result.exit_code == 1


def test_who_is_not_graded_yet_is_named(course: Course) -> None:
    (course.submitted / "kgoedel" / UNIT).mkdir(parents=True)
    result = invoke(course)
    assert result.exit_code == 0
    assert result.stderr == "not graded yet, no feedback (1): kgoedel\n"


def test_a_learner_without_a_graded_notebook_is_one_sentence(course: Course) -> None:
    result = invoke(course, "--learner", "kgoedel")
    assert str(result.exception).startswith("learner 'kgoedel' has no submission for 'activations'")


def test_nbgrader_writes_the_same_page(course: Course) -> None:
    mine = page(course, "aturing")
    shutil.rmtree(course.feedback)
    done = CourseCopy(course.root).command("nbgrader", "generate_feedback", UNIT, "--student", "aturing")
    assert done.returncode == 0, done.stderr
    assert page_of(course, "aturing", UNIT).read_text(encoding="utf-8") == mine


def test_the_graded_notebook_is_left_as_it_is(course: Course) -> None:
    before = everything(course.autograded)
    invoke(course)
    assert everything(course.autograded) == before


# ------------------------------------------------------------------------------------------------------- for Moodle

WORKSHEET = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed"\n'
    '"Participant 812001","Ada_King Lovelace",alovelace@example.edu,"Submitted for grading",,40.00,Yes\n'
    '"Participant 812002","../Alan Turing",aturing@example.edu,"Submitted for grading",,40.00,No\n'
    '"Participant 812004","Emmy Noether",enoether@example.edu,"No submission",,40.00,Yes\n'
)


@pytest.fixture
def worksheet(tmp_path: Path) -> Path:
    path = tmp_path / "worksheet.csv"
    path.write_text(WORKSHEET)
    return path


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_moodle_takes_all_pages_back_in_one_zip_file(course: Course, worksheet: Path, tmp_path: Path) -> None:
    target = tmp_path / "all.zip"
    result = invoke(course, "--all-in-one", str(target), "--worksheet", str(worksheet))
    assert result.exit_code == 0, result.output
    assert members(target) == {
        f"Ada King Lovelace_812001_assignsubmission_file_/{UNIT}.html": page_of(
            course, "alovelace", UNIT
        ).read_bytes(),
        f"Alan Turing_812002_assignsubmission_file_/{UNIT}.html": page_of(course, "aturing", UNIT).read_bytes(),
    }
    assert "not in the worksheet (1): ghopper" in result.stderr


def test_moodle_knows_anonymous_learners_by_their_numbers(course: Course, tmp_path: Path) -> None:
    shutil.move(course.autograded / "alovelace", course.autograded / "participant-812001")
    keep(course, "participant-812001", 1.0)
    path = tmp_path / "worksheet.csv"
    path.write_text("Identifier,Status,Grade\nParticipant 812001,Submitted for grading,\n")
    write_feedback(course, UNIT)
    assert moodle_zip(course, UNIT, tmp_path / "all.zip", path)[0] == 1
    assert list(members(tmp_path / "all.zip")) == [f"Participant_812001_assignsubmission_file_/{UNIT}.html"]


def collected(course: Course, learner: str, **record: object) -> None:
    """What `grader collect` keeps of a learner's submission."""
    path = attempts_root(course) / learner / UNIT / RECORD
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(record))


def test_without_a_worksheet_the_numbers_are_those_that_were_collected(course: Course, tmp_path: Path) -> None:
    collected(course, "aturing", form="moodle", lms="201")
    collected(course, "ghopper", form="canvas", lms="202")
    target = tmp_path / "all.zip"
    result = invoke(course, "--all-in-one", str(target))
    assert result.exit_code == 0, result.output
    assert list(members(target)) == [f"Alan Turing_201_assignsubmission_file_/{UNIT}.html"]
    assert result.stderr == "not collected from Moodle (2): alovelace, ghopper\n"


@pytest.mark.parametrize("number", ["../../x", "1_2", 7, None])
def test_a_number_that_is_none_names_no_folder(course: Course, tmp_path: Path, number: object) -> None:
    collected(course, "aturing", form="moodle", lms=number)
    result = invoke(course, "--all-in-one", str(tmp_path / "all.zip"))
    assert str(result.exception).startswith(
        "no submission of 'activations' was collected from Moodle, so its part"
    )
    assert not (tmp_path / "all.zip").exists()


def test_a_zip_file_that_is_there_is_overwritten_by_force_only(
    course: Course, worksheet: Path, tmp_path: Path
) -> None:
    target = tmp_path / "all.zip"
    target.write_text("mine")
    arguments = ["--all-in-one", str(target), "--worksheet", str(worksheet)]
    assert "is there already" in str(invoke(course, *arguments).exception)
    assert target.read_text() == "mine"
    assert invoke(course, *arguments, "--force").exit_code == 0
    assert len(members(target)) == 2


def test_a_grader_report_has_no_numbers_for_the_zip_file(course: Course, tmp_path: Path) -> None:
    path = tmp_path / "report.csv"
    path.write_text(
        '"First name",Surname,"Email address","Assignment: activations"\nAda,L,alovelace@example.edu,-\n'
    )
    result = invoke(course, "--all-in-one", str(tmp_path / "all.zip"), "--worksheet", str(path))
    assert "report.csv cannot be used: it is no grading worksheet" in str(result.exception)
    assert not (tmp_path / "all.zip").exists()


def test_comments_for_an_lms_say_what_was_noticed(course: Course) -> None:
    keep(course, "aturing", 0.0, errors={"test_gelu": TANH, "hidden_silu": "asked with 730.25"})
    said = comments(course, UNIT)["aturing"].split("<br>")
    assert said[0] == "3 of 40 points."
    assert f"gelu: 0 of 3. {' '.join(TANH.split())}" in said
    assert "silu: 0 of 3. A hidden test of this step does not pass." in said
    assert f"{WRITTEN}: 3 of 3. Say *which* inputs. This answer is still to be read by a person." in said


def test_comments_for_an_lms_hold_no_markup_of_a_learner_s(course: Course) -> None:
    keep(course, "aturing", 0.0, errors={"test_gelu": EVIL})
    assert html.escape(EVIL) in comments(course, UNIT)["aturing"]
    assert "<script" not in comments(course, UNIT)["aturing"]


def test_every_answer_of_the_unit_is_in_the_table(course: Course) -> None:
    cells: list[Any] = read_notebook(course.reference(UNIT))["cells"]
    answers = [
        marks["grade_id"] for cell in cells if (marks := cell["metadata"].get("nbgrader", {})).get("solution")
    ]
    assert list(table(page(course, "alovelace"))) == [*answers, "Total"]
