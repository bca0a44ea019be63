"""nbgrader's formgrader on the course with the graded demo class."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from grader.course import Course
from grader.engine.store import RECORD_KEY
from grader.notebooks import grade_id, is_hidden, read_notebook, without_hidden_tests, write_notebook
from tests.browser.conftest import Seen, Server, running
from tests.helpers import CourseCopy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(graded_course: CourseCopy) -> Iterator[Server]:
    with running(graded_course, "--formgrader") as started:
        yield started


@pytest.fixture(scope="module")
def seen() -> Seen:
    return Seen()


@pytest.fixture(scope="module")
def page(browser: Browser, server: Server, seen: Seen) -> Iterator[Page]:
    """A page on which the printed address was opened."""
    context = browser.new_context()
    seen.watch(context)
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    opened.goto(re.findall(r"http://127\.0\.0\.1:\S+", server.said)[0])
    yield opened
    context.close()


@pytest.fixture(scope="module")
def scores(graded_course: CourseCopy) -> dict[str, float]:
    entries = json.loads(graded_course.grader("scores", "activations", "--json").stdout)
    return {entry["learner"]: entry["points"] for entry in entries}


@pytest.fixture(scope="module")
def submissions(page: Page, server: Server, scores: dict[str, float]) -> dict[str, str]:
    """The rows of the submissions page, by learner."""
    page.goto(f"{server.address}/formgrader/manage_submissions/activations")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(len(scores), timeout=60_000)
    texts = [" ".join(text.split()) for text in rows.all_inner_texts()]
    return {re.findall(r"learner-\d+", text)[0]: text for text in texts}


def test_the_printed_address_opens_the_assignments(page: Page, server: Server) -> None:
    page.goto(f"{server.address}/formgrader?token={server.token}")
    expect(page).to_have_url(re.compile(r"/formgrader/manage_assignments"), timeout=60_000)
    expect(page.get_by_role("heading", name="Manage Assignments")).to_be_visible(timeout=60_000)


def test_without_the_token_nothing_opens(browser: Browser, server: Server) -> None:
    stranger = browser.new_context().new_page()
    stranger.goto(f"{server.address}/formgrader")
    assert "/login" in stranger.url
    stranger.context.close()


def test_the_assignment_is_listed_with_the_number_of_submissions(
    page: Page, server: Server, scores: dict[str, float]
) -> None:
    page.goto(f"{server.address}/formgrader/manage_assignments")
    row = page.locator("tbody tr", has_text="activations")
    expect(row.locator("td.num-submissions")).to_have_text(str(len(scores)), timeout=60_000)


def test_the_submissions_page_lists_every_learner(submissions: dict[str, str], scores: dict[str, float]) -> None:
    assert sorted(submissions) == sorted(scores)


@pytest.mark.parametrize("learner", [f"learner-{i:02d}" for i in range(1, 13)])
def test_the_submissions_page_shows_the_score(
    learner: str, submissions: dict[str, str], scores: dict[str, float]
) -> None:
    assert f" {scores[learner]:g} / 40" in submissions[learner]


def test_the_submissions_page_shows_what_is_to_be_read_by_a_person(submissions: dict[str, str]) -> None:
    assert "needs manual grading" in submissions["learner-01"]
    assert "needs manual grading" not in submissions["learner-02"]


@pytest.mark.parametrize("fault", ["elsewhere", "refused", "errors"])
def test_the_pages_of_the_class_load_without_fault(
    fault: str, page: Page, server: Server, submissions: dict[str, str], seen: Seen
) -> None:
    page.goto(f"{server.address}/formgrader/gradebook/activations/activations")
    expect(page.locator("tbody tr")).to_have_count(len(submissions), timeout=60_000)
    assert getattr(seen, fault) == []


# ------------------------------------------------------------------------- grading by hand, again, and handing back

UNIT = "activations"
WRITTEN = "inactive_or_dead"
COMMENT = "Say *which* inputs: $x > 0$ is enough."

EVIL = """
<script>window.ran = "script in Markdown"</script>
<img src="x" onerror="window.ran = 'onerror in Markdown'">
<a id="evil" href="javascript:void(window.ran = 'link')">my sources</a>
<b id="hidden_relu" class="score full-credit">all points</b>

# hidden_silu

A **dead** unit has $u < 0$ on every input:

$$\\frac{\\partial y}{\\partial w} = 0$$

| input | slope |
|-------|------:|
| A     | 1     |

![a dot](data:image/png;base64,PNG) ![not asked for](https://learner.example/seen.png)
"""
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
OUTPUTS = """
from IPython.display import HTML, SVG, Image, Javascript, display
from base64 import b64decode

display(HTML("<script>window.ran = 'script in HTML'</script><p onclick='1' class='seen'>an HTML output</p>"))
display(HTML("<svg xmlns='http://www.w3.org/2000/svg' onload='window.ran = 1' aria-label='inline'></svg>"))
display(Javascript("window.ran = 'Javascript'"))
drawn = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9' onload='parent.ran = 1'><script>1</script></svg>"
display(SVG(drawn))
display(Image(b64decode("PNG"), format="png"))
"""

LATE = """
from nbgrader.plugins import BasePlugin


class Tenth(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 10
"""


@pytest.fixture(scope="module")
def course(graded_course: CourseCopy, tmp_path_factory: pytest.TempPathFactory) -> CourseCopy:
    """A copy with one more submission, mallory's; then, for what is graded from now on, a policy for the late ones."""
    copy = CourseCopy(Path(shutil.copytree(graded_course.root, tmp_path_factory.mktemp("by-hand") / "course")))
    places = Course(copy.root)
    notebook = read_notebook(places.submitted / "learner-01" / UNIT / f"{UNIT}.ipynb")
    for cell in notebook["cells"]:
        if grade_id(cell) == WRITTEN:
            cell["source"] = EVIL.replace("PNG", DOT)
        elif grade_id(cell) == "relu":
            cell["source"] += OUTPUTS.replace("PNG", DOT)
    path = places.submitted / "mallory" / UNIT / f"{UNIT}.ipynb"
    path.parent.mkdir(parents=True)
    write_notebook(notebook, path)
    done = copy.grader("autograde", UNIT, "--learner", "mallory")
    assert done.returncode == 0, done.stderr
    (copy.root / "late_policy.py").write_text(LATE)
    with (copy.root / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write('c.AssignLatePenalties.plugin_class = "late_policy.Tenth"\n')
    return copy


@pytest.fixture(scope="module")
def desk(course: CourseCopy) -> Iterator[Server]:
    with running(course, "--formgrader") as started:
        yield started


@pytest.fixture(scope="module")
def seen_at_desk() -> Seen:
    return Seen()


@pytest.fixture(scope="module")
def tab(browser: Browser, desk: Server, seen_at_desk: Seen) -> Iterator[Page]:
    """A page of an instructor who grades by hand."""
    context = browser.new_context()
    seen_at_desk.watch(context)
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    opened.goto(f"{desk.address}/formgrader?token={desk.token}")
    yield opened
    context.close()


@pytest.fixture(scope="module")
def opened(course: CourseCopy, tab: Page, desk: Server) -> Callable[[str], Page]:
    """Opens the page on which a learner's submission is graded."""
    from nbgrader.api import Gradebook

    with Gradebook(Course(course.root).config().CourseDirectory.db_url) as gradebook:
        known = {found.student.id: found.notebooks[0].id for found in gradebook.assignment_submissions(UNIT)}

    def open_one(learner: str) -> Page:
        tab.goto(f"{desk.address}/formgrader/submissions/{known[learner]}/?index=0", wait_until="networkidle")
        tab.wait_for_function("window.formgrader && formgrader.loaded && formgrader.grades.loaded")
        tab.wait_for_function("formgrader.comments.loaded")
        return tab

    return open_one


def in_gradebook(course: CourseCopy, learner: str) -> dict[str, Any]:
    """What the gradebook has of a learner's written answer, and the penalty for being late."""
    from nbgrader.api import Gradebook

    with Gradebook(Course(course.root).config().CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade(WRITTEN, UNIT, UNIT, learner)
        comment = gradebook.find_comment(WRITTEN, UNIT, UNIT, learner)
        return {
            "score": grade.manual_score,
            "comment": comment.manual_comment,
            "penalty": grade.notebook.late_submission_penalty,
        }


def graded_file(course: CourseCopy, learner: str) -> Path:
    return Course(course.root).autograded / learner / UNIT / f"{UNIT}.ipynb"


def autograde(tab: Page, desk: Server, learner: str) -> None:
    """Press the button for a learner on the submissions page, and wait until formgrader says that it went well."""
    tab.goto(f"{desk.address}/formgrader/manage_submissions/{UNIT}", wait_until="networkidle")
    tab.locator("tbody tr", has_text=learner).locator("td.autograde a").click()
    dialog = tab.locator(".modal-dialog")
    expect(dialog).to_be_visible(timeout=120_000)
    expect(dialog).to_contain_text(f"Successfully autograded '{UNIT}' for student '{learner}'")


@pytest.fixture(scope="module")
def by_hand(opened: Callable[[str], Page], course: CourseCopy) -> dict[str, Any]:
    """What the gradebook has after a late learner's written answer was graded on its page."""
    page = opened("learner-07")
    for box, text in ((f"#{WRITTEN}", "2.5"), (f"#{WRITTEN}-comment", COMMENT)):
        with page.expect_response(lambda answer: answer.request.method == "PUT") as saved:
            page.locator(box).fill(text)
            page.locator(box).blur()
        assert saved.value.ok
    return in_gradebook(course, "learner-07")


@pytest.fixture(scope="module")
def again(by_hand: dict[str, Any], tab: Page, desk: Server, course: CourseCopy) -> dict[str, Any]:
    """The same after the submission was graded again by the button; the graded notebook knew nothing of the engine."""
    path = graded_file(course, "learner-07")
    notebook = read_notebook(path)
    del notebook["metadata"][RECORD_KEY]
    path.chmod(0o644)
    write_notebook(notebook, path)
    autograde(tab, desk, "learner-07")
    return in_gradebook(course, "learner-07")


@pytest.fixture(scope="module")
def feedback(again: dict[str, Any], course: CourseCopy) -> Callable[[str], Path]:
    """The page that a learner gets back, after all of that."""
    done = course.grader("feedback", UNIT)
    assert done.returncode == 0, done.stderr
    return lambda learner: Course(course.root).feedback / learner / UNIT / f"{UNIT}.html"


def test_the_page_for_grading_by_hand_lists_the_submissions(
    tab: Page, desk: Server, scores: dict[str, float]
) -> None:
    tab.goto(f"{desk.address}/formgrader/gradebook/{UNIT}/{UNIT}")
    expect(tab.locator("tbody tr")).to_have_count(len(scores) + 1, timeout=60_000)


def test_a_submission_opens_as_the_graded_notebook(opened: Callable[[str], Page], course: CourseCopy) -> None:
    page = opened("learner-03")
    answers = page.locator(".nbgrader_cell", has_text="Student's answer")
    notebook = read_notebook(graded_file(course, "learner-03"))
    expect(answers).to_have_count(sum(bool(is_answer(cell)) for cell in notebook["cells"]))
    expect(page.locator("#hidden_relu")).to_have_attribute("placeholder", re.compile(r"\d"))


def is_answer(cell: Any) -> Any:
    return cell["metadata"].get("nbgrader", {}).get("solution")


def test_a_score_and_a_comment_are_kept(by_hand: dict[str, Any]) -> None:
    assert by_hand == {"score": 2.5, "comment": COMMENT, "penalty": None}


def test_the_button_runs_the_course_s_engine(again: dict[str, Any], course: CourseCopy) -> None:
    notebook = read_notebook(graded_file(course, "learner-07"))
    assert notebook["metadata"][RECORD_KEY]["status"] == "graded"


def test_graded_again_by_the_button_the_score_and_the_comment_stay(again: dict[str, Any]) -> None:
    assert (again["score"], again["comment"]) == (2.5, COMMENT)


def test_the_button_applies_the_policy_on_late_submissions(again: dict[str, Any]) -> None:
    assert again["penalty"] == pytest.approx((37 + 2.5) / 10)


def test_the_button_grades_a_submission_that_is_no_notebook(
    again: dict[str, Any], tab: Page, desk: Server, course: CourseCopy
) -> None:
    (Course(course.root).submitted / "learner-05" / UNIT / f"{UNIT}.ipynb").write_text("on paper")
    autograde(tab, desk, "learner-05")
    notebook = read_notebook(graded_file(course, "learner-05"))
    assert notebook["metadata"][RECORD_KEY]["status"] == "unreadable"


def test_the_feedback_shows_the_comment(tab: Page, feedback: Callable[[str], Path]) -> None:
    tab.goto(feedback("learner-07").as_uri())
    comment = tab.locator(".panel-footer", has_text="Comments:")
    expect(comment).to_contain_text("Say which inputs:")
    expect(comment.locator("math")).to_have_count(1)


def test_the_feedback_shows_no_hidden_test(feedback: Callable[[str], Path], tab: Page, course: CourseCopy) -> None:
    tab.goto(feedback("learner-07").as_uri())
    text = tab.locator("body").inner_text()
    reference = read_notebook(Course(course.root).reference(UNIT))
    hidden = {
        line.strip() for cell in reference["cells"] if is_hidden(cell) for line in cell["source"].splitlines()
    }
    open_to_all = "\n".join(without_hidden_tests(cell["source"]) for cell in reference["cells"])
    secret = {line for line in hidden if len(line) > 12 and line not in open_to_all}
    assert len(secret) > 50
    assert [line for line in secret if line in text] == []


# --------------------------------------------------------------------------------- nothing of a learner's runs here


@pytest.fixture(scope="module", params=["formgrader", "feedback"])
def evil_page(request: pytest.FixtureRequest, opened: Callable[[str], Page], tab: Page) -> Page:
    """Mallory's submission, as the instructor grades it and as it is handed back."""
    if request.param == "formgrader":
        return opened("mallory")
    path: Path = request.getfixturevalue("feedback")("mallory")
    tab.goto(path.as_uri(), wait_until="networkidle")
    return tab


def test_nothing_that_a_learner_wrote_runs(evil_page: Page) -> None:
    expect(evil_page.get_by_text("an HTML output", exact=True)).to_be_visible()
    evil_page.get_by_text("my sources").click()
    evil_page.get_by_text("an HTML output", exact=True).click()
    assert evil_page.evaluate("window.ran") is None


def test_what_could_run_is_shown_as_text(evil_page: Page) -> None:
    expect(evil_page.get_by_text("script in Markdown")).to_be_visible()
    expect(evil_page.locator(".output_html", has_text="script in HTML")).to_be_visible()


def test_ordinary_text_tables_and_formulas_are_formatted(evil_page: Page) -> None:
    answer = evil_page.locator(".nbgrader_cell", has_text="my sources")
    expect(answer.locator("strong", has_text="dead")).to_be_visible()
    expect(answer.locator("td", has_text="A")).to_be_visible()
    expect(answer.locator("math")).to_have_count(2)
    expect(answer.locator("math mfrac")).to_be_visible()


def test_figures_are_shown(evil_page: Page) -> None:
    shown = "image => image.src.startsWith('data:') && image.complete && image.naturalWidth > 0"
    kinds = evil_page.eval_on_selector_all(
        "img", f"images => images.filter({shown}).map(image => image.src.split(';')[0].slice(11))"
    )
    assert kinds.count("png") == 2
    assert kinds.count("svg+xml") == 2


def test_no_text_takes_the_place_of_a_box_of_formgrader(opened: Callable[[str], Page]) -> None:
    page = opened("mallory")
    for name in ("hidden_relu", "hidden_silu"):
        expect(page.locator(f"#{name}")).to_have_count(1)
        assert page.locator(f"#{name}").evaluate("element => element.tagName") == "INPUT"


@pytest.mark.parametrize("fault", ["elsewhere", "refused", "errors"])
def test_the_pages_of_a_submission_load_without_fault(fault: str, evil_page: Page, seen_at_desk: Seen) -> None:
    assert getattr(seen_at_desk, fault) == []
