"""What a person is asked to look at, and in which order."""

from typing import Any

import pytest

from grader.engine.verdict import CRASHED, MISSING, REPAIRED, TIMED_OUT, UNREADABLE
from grader.report.data import Class
from grader.report.similarity import Template
from grader.report.verdicts import KINDS, Remark, remarks
from tests.grader.report.classes import a_learner, a_step

STEPS = (a_step("gelu"), a_step("words", visible=0, written=3))


def of(learner: str = "ada", words: float | None = 3.0, unread: bool = False, **record: Any) -> tuple[Remark, ...]:
    one = a_learner(learner, {"test_gelu": 1.0, "words": words}, **record)
    return remarks(Class("activations", STEPS, (one,), Template({}, {}), (learner,) if unread else ()))


def test_an_ordinary_submission_needs_nobody() -> None:
    assert of() == ()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (MISSING, MISSING),
        (UNREADABLE, UNREADABLE),
        (CRASHED, CRASHED),
        (f"{CRASHED} at cell gelu", CRASHED),
        (TIMED_OUT, TIMED_OUT),
        (REPAIRED, REPAIRED),
    ],
)
def test_a_verdict_is_shown_with_what_the_engine_says(status: str, kind: str) -> None:
    (found,) = of(status=status, notes=("Repaired: the cell 'test_gelu' was missing.", "And more."))
    assert (found.kind, found.learner) == (kind, "ada")
    assert found.sentence == "Repaired: the cell 'test_gelu' was missing. And more."
    assert found.where == "grader/var/autograded/ada/activations/activations.ipynb"


def test_an_older_record_without_notes_is_shown_with_its_status() -> None:
    (found,) = of(status=f"{CRASHED} at cell gelu")
    assert found.sentence == f"The verdict is: {CRASHED} at cell gelu."


def test_each_flag_is_a_remark() -> None:
    assert [found.sentence for found in of(flags=("gelu uses ffn", "silu has 0.154 typed in"))] == [
        "The answer to gelu uses ffn.",
        "The answer to silu has 0.154 typed in.",
    ]


def test_a_written_answer_that_waits_is_a_remark() -> None:
    (found,) = of(words=None)
    assert found.sentence == "words waits to be graded."


def test_grading_without_isolation_is_a_remark() -> None:
    (found,) = of(sandbox="none")
    assert "--sandbox=none" in found.sentence


def test_a_submission_that_another_program_graded_is_a_remark() -> None:
    (found,) = of(known=False, status="", sandbox="")
    assert "another program graded it" in found.sentence


def test_a_notebook_that_cannot_be_read_is_a_remark() -> None:
    (found,) = of(known=False, status="", sandbox="", unread=True)
    assert "cannot be read" in found.sentence


def test_the_most_urgent_kind_comes_first_and_then_the_learner() -> None:
    graded = [
        a_learner("zoe", {"test_gelu": 1.0, "words": None}, status=UNREADABLE),
        a_learner("ada", {"test_gelu": 1.0, "words": None}, status=REPAIRED, flags=("gelu uses ffn",)),
    ]
    found = remarks(Class("activations", STEPS, tuple(graded), Template({}, {})))
    order = [(remark.kind, remark.learner) for remark in found]
    assert order == sorted(order, key=lambda one: (list(KINDS).index(one[0]), one[1]))
    assert (order[0], order[-1]) == ((UNREADABLE, "zoe"), ("written answer", "zoe"))
