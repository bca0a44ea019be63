"""A handful of the runs of tests.grader.engine.faults: a process is killed, and the next run puts it right."""

import pytest

from tests.grader.engine.faults import LOCAL, REMOTE, Base, drawn, run

pytestmark = pytest.mark.slow

SEEDS = range(200)


def first_seed(victim: str, *, cluster: bool) -> int:
    return next(seed for seed in SEEDS if (drawn(seed).victim, drawn(seed).cluster) == (victim, cluster))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Base:
    return Base(tmp_path_factory.mktemp("faults"))


@pytest.mark.parametrize("victim", LOCAL)
def test_a_run_that_lost_a_process_of_this_machine_is_put_right_by_the_next(base: Base, victim: str) -> None:
    assert run(base, first_seed(victim, cluster=False)).problems == []


@pytest.mark.parametrize("victim", [victim for victim in REMOTE if victim not in LOCAL])
def test_a_run_that_lost_a_part_of_the_cluster_is_put_right_by_the_next(base: Base, victim: str) -> None:
    assert run(base, first_seed(victim, cluster=True)).problems == []
