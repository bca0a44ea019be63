"""The late policy as nbgrader's plug-in: as it is configured, and within the score whatever plug-in is named."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets.config import Config

from grader.exceptions import BadPluginError, BadPolicyError

DUE = datetime(2026, 1, 15, 23, 59)


def plugin(**settings: Any) -> Any:
    from grader.late import late_plugin

    config = Config({"LatePolicy": settings})
    config.AssignLatePenalties.plugin_class = "grader.late.LatePolicy"
    return late_plugin(config)


def taken(made: Any, hours: float, *, score: float = 40.0, due: datetime | None = DUE) -> float | None:
    from grader.late import late_penalty

    found: float | None = late_penalty(made, "ada", score=score, maximum=50.0, due=due, seconds_late=hours * 3600)
    return found


def test_the_plug_in_applies_the_rule_that_is_configured() -> None:
    made = plugin(per_day=0.1, grace_minutes=90, floor=0.25, of="maximum", per_started_day=False)
    assert taken(made, 1.5) is None
    assert taken(made, 36) == pytest.approx(7.5)
    assert taken(made, 2400) == pytest.approx(30)


def test_the_plug_in_counts_days_in_its_zone() -> None:
    due = datetime(2026, 10, 24, 21, 59)
    assert taken(plugin(per_day=0.1, timezone="Europe/Berlin"), 25, due=due) == pytest.approx(4)
    assert taken(plugin(per_day=0.1), 25, due=due) == pytest.approx(8)


def test_without_a_rule_nbgrader_s_own_method_counts() -> None:
    from grader.late import late_plugin

    config = Config()
    config.AssignLatePenalties.plugin_class = "grader.late.LatePolicy"
    assert taken(late_plugin(config), 49) is None
    config.LateSubmissionPlugin.penalty_method = "zero"
    assert taken(late_plugin(config), 49) == 40


@pytest.mark.parametrize(("found", "expected"), [(-3.0, 0.0), (99.0, 40.0), (5.0, 5.0), (None, None)])
def test_another_plug_in_is_kept_within_the_score(found: float | None, expected: float | None) -> None:
    own = SimpleNamespace(late_submission_penalty=lambda learner, score, seconds: found)
    assert taken(own, 1) == expected


def test_another_plug_in_is_not_asked_about_what_is_in_time() -> None:
    assert taken(SimpleNamespace(), 0) is None


@pytest.mark.parametrize("settings", [{"per_day": "much"}, {"of": "points"}, {"per_started_day": "no"}])
def test_a_setting_of_another_kind_is_one_sentence(settings: dict[str, Any]) -> None:
    with pytest.raises(BadPluginError) as caught:
        plugin(**settings)
    assert "\n" not in str(caught.value)
    assert next(iter(settings)) in str(caught.value)


def test_a_setting_out_of_its_range_is_one_sentence() -> None:
    with pytest.raises(BadPolicyError, match=r"c\.LatePolicy\.per_day is '10\.0'; write a share"):
        plugin(per_day=10)


@pytest.mark.parametrize("name", ["grader.late.NoPolicy", "nowhere.Policy", "pathlib.Path"])
def test_a_plug_in_that_is_none_is_one_sentence(name: str) -> None:
    from grader.late import late_plugin

    config = Config()
    config.AssignLatePenalties.plugin_class = name
    with pytest.raises(BadPluginError) as caught:
        late_plugin(config)
    assert "\n" not in str(caught.value)


def test_nbgrader_s_own_preprocessor_gets_due_time_and_maximum_from_the_gradebook() -> None:
    from grader.late import LatePolicy

    asked = []

    class Book:
        def find_submission(self, *names: str) -> Any:
            asked.append(names)
            return SimpleNamespace(duedate=datetime(2026, 10, 24, 21, 59))

        def find_submission_notebook(self, *names: str) -> Any:
            asked.append(names)
            return SimpleNamespace(max_score=50.0)

    made = LatePolicy(per_day=0.1, of="maximum", timezone="Europe/Berlin")
    made.parent = _Asking(gradebook=Book(), assignment_id="gates", notebook_id="part")
    assert made.late_submission_penalty("ada", 40.0, 25 * 3600) == pytest.approx(5)
    assert asked == [("gates", "ada"), ("part", "gates", "ada")]


def _Asking(**fields: Any) -> Any:
    """What nbgrader's AssignLatePenalties has at hand while it asks."""
    from nbgrader.preprocessors import AssignLatePenalties

    made = AssignLatePenalties()
    for name, value in fields.items():
        setattr(made, name, value)
    return made
