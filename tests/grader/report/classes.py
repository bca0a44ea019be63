"""Classes of invented learners as a report reads them, made by code from a seed."""

import math
import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from ffn.exceptions import StepFailedError
from ffn.misconceptions import find_step
from grader.engine.verdict import CRASHED, GRADED, REPAIRED, TIMED_OUT, UNREADABLE
from grader.report.data import HIDDEN, VISIBLE, WRITTEN, Class, Graded, Record, Step, Test
from grader.report.similarity import Template
from tests.grader.report.answers import ORDER, independent

__all__ = ["UNIT", "WRITTEN_ANSWER", "a_class", "a_learner", "a_step", "seeded_class"]

UNIT = "activations"
WRITTEN_ANSWER = "inactive_or_dead"
_BEGIN = datetime(2026, 11, 30, 20, 0, tzinfo=UTC)
_TEXT = """
a neuron is inactive on one input when its pre-activation is negative there so the output and the slope are zero but
other inputs can still turn it on while a dead neuron has a negative pre-activation on every input of the data and
therefore never learns because no gradient reaches its weights or its bias anymore
"""
_WORDS = tuple(_TEXT.split())


def a_step(name: str, visible: float = 1, hidden: float = 0, written: float = 0) -> Step:
    kinds = ((f"test_{name}", visible, VISIBLE), (f"hidden_{name}", hidden, HIDDEN), (name, written, WRITTEN))
    return Step(name, "", tuple(Test(cell, name, points, kind) for cell, points, kind in kinds if points))


def a_learner(learner: str, marks: Mapping[str, float | None], **record: Any) -> Graded:
    waits = tuple(name for name, points in marks.items() if points is None)
    where = f"grader/var/autograded/{learner}/{UNIT}/{UNIT}.ipynb"
    fields = {"known": True, "status": GRADED, "sandbox": "full"} | record
    return Graded(learner, dict(marks), waits, Record(**fields), where)


def a_class(*graded: Graded, steps: tuple[Step, ...] | None = None, unit: str = UNIT) -> Class:
    """A class in a unit of these steps, or of one visible test for each mark that the first learner has."""
    if steps is None:
        names = graded[0].marks
        steps = tuple(Step(name, "", (Test(name, name, 1.0, VISIBLE),)) for name in names)
    return Class(unit, steps, graded, Template({}, {}))


def seeded_class(count: int, seed: int = 0, copies: int = 1) -> Class:
    """A class of so many learners of different ability, of whom some have copied all answers from another one."""
    chance = random.Random(seed)
    steps = tuple(a_step(name, visible=1, hidden=2) for name in ORDER)
    steps += (Step(WRITTEN_ANSWER, "Inactive or dead?", a_step(WRITTEN_ANSWER, 0, 0, 3).tests),)
    graded = [_learner(f"learner-{number:04d}", steps, chance) for number in range(1, count + 1)]
    for number in range(copies):
        source, target = graded[number], graded[-1 - number]
        graded[-1 - number] = a_learner(target.learner, target.marks, **_with_answers(target, source))
    return Class(UNIT, steps, tuple(graded), Template({}, {}, frozenset([WRITTEN_ANSWER])))


def _with_answers(target: Graded, source: Graded) -> dict[str, Any]:
    return vars(target.record) | {"answers": source.record.answers, "status": GRADED}


def _learner(name: str, steps: tuple[Step, ...], chance: random.Random) -> Graded:
    ability = chance.gauss(1.2, 1.2)
    marks: dict[str, float | None] = {}
    messages = {}
    answers: dict[str, str] = independent(chance) | {WRITTEN_ANSWER: " ".join(chance.sample(_WORDS, 30))}
    for place, step in enumerate(steps):
        right = chance.random() < 1 / (1 + math.exp(place / 4 - ability))
        for test in step.tests:
            if test.kind == WRITTEN:
                marks[test.name] = None if chance.random() < 0.7 else chance.choice([0.0, 1.5, 3.0])
                continue
            passed = right or (test.kind == VISIBLE and chance.random() < 0.2)
            # The last test fails for everybody, as one that asks for the wrong thing does.
            passed = passed and test.name != f"hidden_{ORDER[-1]}"
            marks[test.name] = test.points if passed else 0.0
            if not passed:
                messages[test.name] = _message(step.name, test.kind, chance)
    return a_learner(
        name,
        marks,
        status=_status(chance),
        sandbox="none" if chance.random() < 0.02 else "full",
        messages=messages,
        flags=("silu uses ffn",) if chance.random() < 0.04 else (),
        notes=("Repaired: the cell 'test_relu' was missing; it is back as it was given out.",),
        seconds={test: round(chance.expovariate(40), 3) for test in marks} | {"cell 3": 0.01},
        answers=answers,
        at=_BEGIN + timedelta(seconds=chance.uniform(0, 900)),
    )


def _status(chance: random.Random) -> str:
    rare = (REPAIRED, f"{CRASHED} at cell silu", TIMED_OUT, UNREADABLE)
    return chance.choice(rare) if chance.random() < 0.1 else GRADED


def _message(step: str, kind: str, chance: random.Random) -> str:
    known = find_step(f"{UNIT}.{step}").misconceptions
    if kind == VISIBLE and known and chance.random() < 0.6:
        mistake = chance.choice(known)
        return str(StepFailedError.known("expected 1.5, but the given value is 1.25.", mistake.hint, mistake.page))
    return f"{step} returns shape ({chance.randrange(1, 9)},) for z of shape (3, 4)."
