import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import ffn
from ffn import FeedForward, GatedFeedForward, feed_forward_backward, gated_backward
from ffn.training import (
    TASKS,
    Adam,
    Blueprint,
    Task,
    arrays,
    draw_batches,
    draw_sample,
    mean_squared_error,
    train,
)

Array = NDArray[np.float64]

PLAIN = [Blueprint(6, 12, activation) for activation in ffn.ACTIVATIONS]
GATED = [Blueprint(6, 9, activation, gated=True) for activation in ffn.GATES.values()]


def trained_in_a_loop(blueprint: Blueprint, seed: int, rate: float, steps: int) -> FeedForward | GatedFeedForward:
    """One run with the helper module's own backward passes, one step after the other."""
    sample = draw_sample(TASKS["waves"], seed)
    block, optimizer = blueprint.start(seed), Adam(rate)
    for rows in draw_batches(seed, steps=steps):
        x, target = sample.x[rows], sample.target[rows]
        grad_y = 2 * (block(x) - target) / target.size
        if isinstance(block, GatedFeedForward):
            gradients = arrays(gated_backward(block, x, grad_y))
        else:
            gradients = arrays(feed_forward_backward(block, x, grad_y))
        block = replace(block, **optimizer.step(arrays(block), gradients))
    return block


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("waves", [math.sqrt(2) * math.sin(3), math.sqrt(2) * math.sin(-2), math.sqrt(2) * math.sin(-3)]),
        ("products", [2, -8, -4]),
        ("folds", [1 / math.sqrt(2), 6 / math.sqrt(2), 5 / math.sqrt(2)]),
    ],
)
def test_target_uses_each_feature_and_the_next(task: str, expected: list[float]) -> None:
    np.testing.assert_allclose(TASKS[task].target(np.array([1.0, 2.0, -4.0])), expected, rtol=1e-14)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_answering_zero_has_a_loss_of_about_one(task: Task) -> None:
    x = np.random.default_rng(0).standard_normal((200_000, 6))
    assert mean_squared_error(np.zeros_like(x), task.target(x)) == pytest.approx(1, abs=0.03)


def test_seed_decides_sample_batches_and_weights() -> None:
    task, blueprint = TASKS["waves"], Blueprint(6, 12)
    first, again, other = (draw_sample(task, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.x, again.x)
    assert not np.any(first.x == other.x)
    np.testing.assert_array_equal(draw_batches(3), draw_batches(3))
    assert np.any(draw_batches(3) != draw_batches(4))
    np.testing.assert_array_equal(blueprint.start(3).W_1, blueprint.start(3).W_1)
    assert not np.any(blueprint.start(3).W_1 == blueprint.start(4).W_1)


def test_training_and_held_out_tokens_differ_and_have_the_task_s_targets() -> None:
    sample = draw_sample(TASKS["products"], 0, tokens=10, held_out=20)
    assert sample.x.shape == (10, 6)
    assert sample.held_out_x.shape == (20, 6)
    assert not set(sample.x.ravel()) & set(sample.held_out_x.ravel())
    np.testing.assert_array_equal(sample.held_out_target, TASKS["products"].target(sample.held_out_x))


def test_batches_are_row_numbers_of_the_sample() -> None:
    batches = draw_batches(0, steps=50, batch=8, tokens=10)
    assert batches.shape == (50, 8)
    assert set(batches.ravel()) == set(range(10))


@pytest.mark.parametrize("blueprint", [*PLAIN, *GATED])
def test_plain_and_gated_blueprints_of_the_lessons_have_162_parameters(blueprint: Blueprint) -> None:
    assert blueprint.start(0).parameter_count == 162


def test_starting_weights_have_the_promised_spread_and_biases_are_zero() -> None:
    block = Blueprint(100, 400, "tanh", scale=3).start(0)
    assert isinstance(block, FeedForward)
    assert np.std(block.W_1) == pytest.approx(3 / 10, rel=0.02)
    assert np.std(block.W_2) == pytest.approx(1 / 20, rel=0.02)
    assert not np.any(block.b_1)
    assert not np.any(block.b_2)


def test_gate_and_up_start_with_different_weights() -> None:
    block = Blueprint(6, 9, "silu", gated=True).start(0)
    assert isinstance(block, GatedFeedForward)
    assert not np.any(block.W_g == block.W_u)


def test_arrays_leaves_out_a_bias_that_the_block_lacks() -> None:
    block = FeedForward(np.ones((2, 3)), None, np.ones((3, 2)), None)
    assert set(arrays(block)) == {"W_1", "W_2"}
    assert set(arrays(feed_forward_backward(block, np.ones(2), np.ones(2)))) == {"x", "W_1", "W_2"}


def test_mean_squared_error_is_taken_over_tokens_and_features() -> None:
    assert mean_squared_error([[1, 2], [3, 4]], [[1, 0], [0, 4]]) == (4 + 9) / 4


def test_first_adam_step_has_the_length_of_the_rate_whatever_the_gradient() -> None:
    moved = Adam(0.01).step({"w": np.zeros(3)}, {"w": np.array([1e-3, -5.0, 1e4])})
    np.testing.assert_allclose(moved["w"], [-0.01, 0.01, -0.01], rtol=1e-4)


def test_adam_follows_the_published_algorithm() -> None:
    optimizer = Adam(0.1)
    value, mean, square = 1.0, 0.0, 0.0
    weights = {"w": np.array([1.0])}
    for step, gradient in enumerate((0.5, -2.0, 0.25, 3.0), start=1):
        weights = optimizer.step(weights, {"w": np.array([gradient])})
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient * gradient
        value -= 0.1 * (mean / (1 - 0.9**step)) / (math.sqrt(square / (1 - 0.999**step)) + 1e-8)
        assert weights["w"] == pytest.approx(value, rel=1e-12)


def test_adam_leaves_its_arguments_as_they_are() -> None:
    weights, gradients = {"w": np.ones(2)}, {"w": np.ones(2), "x": np.ones(5)}
    moved = Adam(0.1).step(weights, gradients)
    assert set(moved) == {"w"}
    np.testing.assert_array_equal(weights["w"], 1)
    np.testing.assert_array_equal(gradients["w"], 1)


@pytest.mark.parametrize("blueprint", [*PLAIN, *GATED])
def test_runs_trained_together_equal_a_loop_over_the_backward_pass(blueprint: Blueprint) -> None:
    together = train(blueprint, TASKS["waves"], [5, 6], rate=[0.01, 0.02], steps=12)
    for seed, rate, block in zip((5, 6), (0.01, 0.02), together.blocks, strict=True):
        alone = trained_in_a_loop(blueprint, seed, rate, steps=12)
        for name, value in arrays(alone).items():
            np.testing.assert_allclose(arrays(block)[name], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("blueprint", [Blueprint(6, 12, "gelu"), Blueprint(6, 9, "silu", gated=True)])
def test_losses_are_those_of_the_blocks_before_and_after(blueprint: Blueprint) -> None:
    result = train(blueprint, TASKS["folds"], [1, 2], steps=25, every=10)
    assert list(result.steps) == [0, 10, 20, 25]
    assert result.train_loss.shape == result.held_out_loss.shape == (4, 2)
    for run, seed in enumerate((1, 2)):
        sample = draw_sample(TASKS["folds"], seed)
        for point, block in ((0, blueprint.start(seed)), (-1, result.blocks[run])):
            loss = mean_squared_error(block(sample.x), sample.target)
            held_out_loss = mean_squared_error(block(sample.held_out_x), sample.held_out_target)
            assert result.train_loss[point, run] == pytest.approx(loss, rel=1e-12)
            assert result.held_out_loss[point, run] == pytest.approx(held_out_loss, rel=1e-12)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_training_lowers_both_losses(task: Task) -> None:
    result = train(Blueprint(6, 12, "gelu"), task, range(3), steps=200, every=200)
    assert np.all(result.train_loss[-1] < 0.7 * result.train_loss[0])
    assert np.all(result.held_out_loss[-1] < 0.7 * result.held_out_loss[0])


def test_few_training_tokens_are_fitted_and_the_held_out_tokens_are_not() -> None:
    result = train(Blueprint(6, 12), TASKS["waves"], range(3), tokens=8, steps=300)
    assert np.all(result.train_loss[-1] < 0.01)
    assert np.all(result.held_out_loss[-1] > 0.3)


def test_a_rate_for_each_run_must_match_the_runs() -> None:
    with pytest.raises(ValueError, match="broadcast"):
        train(Blueprint(6, 12), TASKS["waves"], [0, 1, 2], rate=[0.1, 0.2], steps=1)
