"""A small class with hostile submissions in it, graded as a batch."""

from pathlib import Path

import pytest

from tests.hostile.mixed import drawn, make_course, run

LEARNERS = 60


@pytest.mark.slow
def test_everybody_in_a_mixed_class_gets_a_verdict_and_the_honest_ones_theirs(tmp_path: Path) -> None:
    report = run(make_course(tmp_path / "course"), LEARNERS, 0.15, seed=1)
    assert report.problems == []
    assert report.verdicts == LEARNERS


def test_a_class_is_drawn_with_the_share_of_hostile_ones_that_was_asked_for() -> None:
    mixed = drawn(1000, 0.15, seed=0)
    assert (len(mixed.honest), len(mixed.hostile)) == (850, 150)
    assert len({case.name for case in mixed.hostile.values()}) > 100
    assert set(mixed.honest.values()) == {"right", "as given out", "one wrong", "another wrong"}
