"""The late policy as a plug-in of nbgrader: what `c.AssignLatePenalties.plugin_class` names."""

import math
from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from nbgrader.plugins import LateSubmissionPlugin
from traitlets import Bool, Enum, Float, TraitError, Unicode

from grader.course import Course
from grader.exceptions import BadPluginError
from grader.policy import LateRule, penalty

if TYPE_CHECKING:
    from grader.standing import Marks

__all__ = ["LatePolicy", "late_penalty", "late_plugin", "outdated_penalties"]

_DEFAULT = LateRule()
_AT_A_TIME = 500


class LatePolicy(LateSubmissionPlugin):  # type: ignore[misc]
    """Takes points off a late submission by the declared rule (`grader.policy.LateRule`).

    Where ``per_day`` is 0, nbgrader's own `c.LateSubmissionPlugin.penalty_method` counts, which takes nothing off by
    default.
    """

    grace_minutes = Float(
        _DEFAULT.grace_minutes, help="Minutes after the due time for which nothing is taken off."
    ).tag(config=True)
    per_day = Float(_DEFAULT.per_day, help="Share that each day costs, such as 0.1; 0 takes nothing off.").tag(
        config=True
    )
    floor = Float(
        _DEFAULT.floor, help="Share of the score reached that is kept, however late it is handed in."
    ).tag(config=True)
    of = Enum(
        ("score", "maximum"),
        _DEFAULT.of,
        help="Whether per_day is a share of the score reached, or of the most that can be reached.",
    ).tag(config=True)
    per_started_day = Bool(
        _DEFAULT.per_started_day, help="Whether a day that has begun counts as a whole one, or in parts."
    ).tag(config=True)
    timezone = Unicode(
        _DEFAULT.timezone, help="The time zone whose calendar the days are counted in, such as Europe/Berlin."
    ).tag(config=True)

    def rule(self) -> LateRule:
        """The rule as it is configured.

        Raises:
            BadPolicyError: a value is none that the setting can have.
        """
        return LateRule(**{field.name: getattr(self, field.name) for field in fields(LateRule)})

    def penalty_of(
        self, learner: str, *, score: float, maximum: float, due: datetime | None, seconds_late: float
    ) -> float | None:
        """The points to take off, or None for none; ``due`` is in UTC, with the learner's extension.

        Raises:
            BadPolicyError: the rule has a value that it cannot have.
        """
        rule = self.rule()
        if not rule.per_day:
            found: float | None = super().late_submission_penalty(learner, score, seconds_late)
            return found
        return penalty(score, maximum, seconds_late, rule, due) or None

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """The points to take off, as nbgrader's own AssignLatePenalties asks for them.

        nbgrader hands over no due time and no maximum; both are looked up in the gradebook that it has open.
        """
        asking = self.parent
        gradebook = getattr(asking, "gradebook", None)
        due, maximum = None, score
        if gradebook is not None:
            due = gradebook.find_submission(asking.assignment_id, student_id).duedate
            notebook = gradebook.find_submission_notebook(asking.notebook_id, asking.assignment_id, student_id)
            maximum = notebook.max_score
        return self.penalty_of(student_id, score=score, maximum=maximum, due=due, seconds_late=total_seconds_late)


def late_plugin(config: Any) -> Any:
    """The plug-in for late penalties that a traitlets configuration names, ready for `late_penalty`.

    Raises:
        BadPolicyError: it cannot be had, or its settings are not what they can be.
    """
    from nbgrader.preprocessors import AssignLatePenalties

    try:
        assign = AssignLatePenalties(config=config)
        assign.init_plugin()
    except (TraitError, ImportError) as error:
        raise BadPluginError(str(error)) from error
    plugin = assign.plugin_inst
    if isinstance(plugin, LatePolicy):
        plugin.rule()
    return plugin


def late_penalty(
    plugin: Any, learner: str, *, score: float, maximum: float, due: datetime | None, seconds_late: float
) -> float | None:
    """The penalty that a plug-in gives a submission, within 0 and the score; None where it gives none.

    ``due`` is in UTC, with the learner's extension.
    """
    if seconds_late <= 0:
        return None
    found: float | None
    if isinstance(plugin, LatePolicy):
        found = plugin.penalty_of(learner, score=score, maximum=maximum, due=due, seconds_late=seconds_late)
    else:
        found = plugin.late_submission_penalty(learner, score, seconds_late)
    return None if found is None else min(max(found, 0.0), score)


def outdated_penalties(course: Course, unit: str) -> list[str]:
    """Learners whose late penalty is not what it would be now, in order.

    A penalty is worked out when a submission is graded. Points that a person gives later, another time, extension or
    policy count when it is graded again.

    Raises:
        BadPolicyError, BadExtensionsError: the policy or the file of extensions cannot be read.
        NotReleasedError: the gradebook does not know the unit.
        GradebookLockedError, GradebookUnreadableError: it cannot be read.
    """
    from grader.extensions import extensions_of
    from grader.standing import Standing

    config = course.config()
    plugin, extensions = late_plugin(config), extensions_of(config)
    found: list[str] = []
    with Standing(course, unit) as standing:
        due, maximum = standing.due, math.fsum(standing.points.values())
        learners = sorted(standing.learners())
        for start in range(0, len(learners), _AT_A_TIME):
            marks = standing.marks(learners[start : start + _AT_A_TIME])
            for learner, of in sorted(marks.items()):
                extension = extensions.of(learner, unit, due, of.extension)
                until = due if due is None or extension is None else due + extension
                if not math.isclose(_penalty_now(plugin, learner, of, until, maximum), of.penalty, abs_tol=1e-6):
                    found.append(learner)
    return found


def _penalty_now(plugin: Any, learner: str, marks: "Marks", due: datetime | None, maximum: float) -> float:
    """The penalty that grading would give a submission; 0 where it has no cells, and so was never graded.

    ``due`` has the learner's extension in it.
    """
    if due is None or marks.timestamp is None or not marks.cells:
        return 0.0
    late = (marks.timestamp - due).total_seconds()
    found = late_penalty(plugin, learner, score=marks.score, maximum=maximum, due=due, seconds_late=late)
    return found or 0.0
