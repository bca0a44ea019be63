"""The wrong ways that learners take, unit by unit: each a small wrong implementation with a hint.

``unit_steps("activations")`` lists a unit's graded steps with what goes wrong in them; ``find_step`` looks one up.
``ffn.exercise`` uses them to name the mistake when a visible test fails.
"""

import functools
import importlib

from ffn.exceptions import UnknownStepError
from ffn.misconceptions.registry import Misconception, Outcome, Probe, Step, diagnose, outcome, same_value

__all__ = [
    "UNITS",
    "Misconception",
    "Outcome",
    "Probe",
    "Step",
    "diagnose",
    "find_step",
    "outcome",
    "same_value",
    "stand_ins",
    "unit_steps",
]

UNITS = ("mechanism", "activations", "swiglu", "worked-cells", "learning", "capstone")
"""The units in the order of the course, each with a module of this package."""


@functools.cache
def unit_steps(unit: str) -> tuple[Step, ...]:
    """The graded steps of a unit, in order.

    Raises:
        UnknownStepError: there is no such unit.
    """
    if unit not in UNITS:
        raise UnknownStepError(unit, UNITS)
    steps: tuple[Step, ...] = importlib.import_module(f"ffn.misconceptions.{unit.replace('-', '_')}").STEPS
    return steps


def find_step(name: str) -> Step:
    """A step by unit and grade id, such as "activations.relu".

    Raises:
        UnknownStepError: there is no such unit, or no such step in it.
    """
    unit, _, step = name.partition(".")
    steps = unit_steps(unit)
    found = next((candidate for candidate in steps if candidate.name == step), None)
    if found is None:
        raise UnknownStepError(name, [f"{unit}.{candidate.name}" for candidate in steps])
    return found


def stand_ins(name: str) -> dict[str, object]:
    """The course's own functions of earlier steps that an answer to a step may call, by name.

    Raises:
        UnknownStepError: there is no such step.
    """
    own = {key: function for step in unit_steps(name.partition(".")[0]) for key, function in step.own.items()}
    return {key: own[key] for key in find_step(name).uses}
