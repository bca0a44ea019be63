"""Figures of the audit, what is not as it should be, and whether the bars are reached."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from ffn.misconceptions import Step, unit_steps
from tools.audit.judge import (
    alternatives,
    judge_alternative,
    judge_misconception,
    judge_mutant,
    survivors,
    value_changing,
)
from tools.audit.notebook import reference, unit

__all__ = ["SHARE", "WAYS", "Audit", "audit"]

SHARE = 0.95
"""Of the misconceptions so many are named, of the mutants so many caught."""

WAYS = 10
"""So many alternatives are tried of every function."""


@dataclass
class Audit:
    """Figures of one unit, or of all, and what is not as it should be.

    ``faults`` are lines to read. ``bars_missed`` are the bars that no share of the figures tells of.
    """

    misconceptions: dict[str, int] = field(
        default_factory=lambda: {"total": 0, "rejected": 0, "named": 0, "misnamed": 0}
    )
    alternatives: dict[str, int] = field(default_factory=lambda: {"total": 0, "full_marks": 0})
    mutants: dict[str, int] = field(default_factory=lambda: {"total": 0, "caught": 0})
    faults: list[str] = field(default_factory=list)
    bars_missed: list[str] = field(default_factory=list)

    def add(self, other: "Audit") -> None:
        """Add another unit's."""
        for name, figures in other.figures().items():
            for key, value in figures.items():
                self.figures()[name][key] += value
        self.faults += other.faults
        self.bars_missed += other.bars_missed

    def figures(self) -> dict[str, dict[str, int]]:
        """All figures, as _build/audit.json holds them."""
        return {
            "misconceptions": self.misconceptions,
            "mutants": self.mutants,
            "alternatives": self.alternatives,
        }

    def met(self) -> bool:
        """Whether every bar is reached."""
        wrong, right, changed = self.misconceptions, self.alternatives, self.mutants
        return (
            wrong["rejected"] == wrong["total"]
            and wrong["named"] >= SHARE * wrong["total"]
            and wrong["misnamed"] == 0
            and right["full_marks"] == right["total"]
            and changed["caught"] >= SHARE * changed["total"]
            and not self.bars_missed
        )


def audit(name: str) -> Audit:
    """Audit one unit."""
    found = Audit()
    answers = unit(name).answers
    for result in reference(unit(name)):
        if result.message:
            found.bars_missed.append(
                f"{name}.{result.step} reference answer loses {result.ident}: {result.message}"
            )
    for step in unit_steps(name):
        if step.name not in answers:
            found.bars_missed.append(f"{name}.{step.name} is no answer of the notebook")
            continue
        _try_misconceptions(name, step, found)
        _try_alternatives(name, step, found)
    known = [step for step in unit_steps(name) if step.name in answers]
    functions = {function for step in known for function in step.own}
    found.bars_missed += [
        f"{name} has alternatives of {key}, which is no function of a step"
        for key in alternatives(name)
        if key not in functions
    ]
    _try_mutants(name, known, found)
    return found


def _try_misconceptions(name: str, step: Step, found: Audit) -> None:
    for candidate in step.misconceptions:
        trial = judge_misconception(name, step, candidate)
        named = trial.hints == (candidate.name,)
        found.misconceptions["total"] += 1
        found.misconceptions["rejected"] += trial.rejected
        found.misconceptions["named"] += named
        found.misconceptions["misnamed"] += any(hint != candidate.name for hint in trial.hints)
        if not trial.rejected or not named:
            said = f"kept {trial.kept}" if trial.kept else f"hints {trial.hints}"
            found.faults.append(
                f"{name}.{step.name} {candidate.name}: {said}; elsewhere {trial.others_lost}; {trial.message}"
            )


def _try_alternatives(name: str, step: Step, found: Audit) -> None:
    place = f"{name}.{step.name}"
    for function in step.own:
        ways = alternatives(name).get(function, [])
        if len(ways) < WAYS:
            found.bars_missed.append(f"{place} has {len(ways)} alternatives of {function}, fewer than {WAYS}")
        for number, implementation in enumerate(ways):
            lost = judge_alternative(name, step, function, implementation)
            found.alternatives["total"] += 1
            found.alternatives["full_marks"] += not lost
            found.faults += [f"{place} alternative {number} of {function} loses {line}" for line in lost]


def _try_mutants(name: str, steps: Iterable[Step], found: Audit) -> None:
    reasons = dict(survivors(name))
    for step in steps:
        for mutant in value_changing(name, step.name):
            caught = judge_mutant(name, step.name, mutant)
            found.mutants["total"] += 1
            found.mutants["caught"] += caught
            if not caught:
                line = f"{name}.{step.name} survives {mutant.change}"
                reason = reasons.pop(f"{step.name}: {mutant.change}", "")
                if reason:
                    found.faults.append(f"{line} ({reason})")
                else:
                    found.bars_missed.append(f"{line} (no reason written)")
    found.bars_missed += [f"{name} has a reason for {change}, which does not survive" for change in reasons]
