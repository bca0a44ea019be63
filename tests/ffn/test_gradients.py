from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import ffn
from ffn import FeedForward, GatedFeedForward, feed_forward_backward, gated_backward, gradient_check
from ffn.exceptions import ShapeError

Array = NDArray[np.float64]
Vectors = Mapping[str, Array]

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "identity")
PLAIN = ("x", "W_1", "b_1", "W_2", "b_2")
GATED = ("x", "W_g", "W_u", "W_d")
# PyTorch stores a weight as (out, in): its transpose is the course's matrix.
THEIRS = {
    "W_1": ("plain", "first_weight"),
    "b_1": ("plain", "first_bias"),
    "W_2": ("plain", "second_weight"),
    "b_2": ("plain", "second_bias"),
    "W_g": ("gated", "gate_weight"),
    "W_u": ("gated", "up_weight"),
    "W_d": ("gated", "down_weight"),
}


def stored(vectors: Vectors, name: str) -> Array:
    """A parameter of PyTorch's block in the course's layout."""
    return vectors["_".join(THEIRS[name])].T


def stored_gradient(vectors: Vectors, family: str, name: str, index: int) -> Array:
    """The gradient of x or of a parameter as autograd gave it, in the course's layout."""
    if name == "x":
        return vectors[f"{family}_grad_x"][index]
    return vectors[f"{family}_grad_{THEIRS[name][1]}"][index].T


def plain_block(vectors: Vectors, activation: str) -> FeedForward:
    return FeedForward(*(stored(vectors, name) for name in PLAIN[1:]), activation)


def gated_block(vectors: Vectors, activation: str) -> GatedFeedForward:
    return GatedFeedForward(*(stored(vectors, name) for name in GATED[1:]), activation)


def plain_loss(arguments: Mapping[str, Any], activation: str, grad_y: Array) -> float:
    """A loss of which grad_y is the gradient with respect to the output."""
    block = FeedForward(*(arguments[name] for name in PLAIN[1:]), activation)
    return float(np.sum(block(arguments["x"]) * grad_y))


def gated_loss(arguments: Mapping[str, Any], activation: str, grad_y: Array) -> float:
    block = GatedFeedForward(*(arguments[name] for name in GATED[1:]), activation)
    return float(np.sum(block(arguments["x"]) * grad_y))


@pytest.fixture
def plain_arguments(rng: np.random.Generator) -> dict[str, Array]:
    """Tokens (batch 2, sequence 3) and parameters that keep every unit away from ReLU's kink."""
    arguments = {
        "x": rng.normal(size=(2, 3, 4)),
        "W_1": rng.normal(size=(4, 5)),
        "b_1": rng.normal(size=5),
        "W_2": rng.normal(size=(5, 4)),
        "b_2": rng.normal(size=4),
    }
    assert np.min(np.abs(arguments["x"] @ arguments["W_1"] + arguments["b_1"])) > 1e-3
    return arguments


@pytest.fixture
def gated_arguments(rng: np.random.Generator) -> dict[str, Array]:
    arguments = {
        "x": rng.normal(size=(2, 3, 4)),
        "W_g": rng.normal(size=(4, 5)),
        "W_u": rng.normal(size=(4, 5)),
        "W_d": rng.normal(size=(5, 4)),
    }
    assert np.min(np.abs(arguments["x"] @ arguments["W_g"])) > 1e-3
    return arguments


@pytest.fixture
def grad_y(rng: np.random.Generator) -> Array:
    return rng.normal(size=(2, 3, 4))


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_plain_gradient_agrees_with_pytorch(activation: str, name: str, torch_vectors: Vectors) -> None:
    index = list(torch_vectors["activation_names"]).index(activation)
    block = plain_block(torch_vectors, activation)
    gradients = feed_forward_backward(block, torch_vectors["plain_x"], torch_vectors["plain_grad_y"])
    theirs = stored_gradient(torch_vectors, "plain", name, index)
    np.testing.assert_allclose(getattr(gradients, name), theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("gate", ffn.GATES)
def test_gated_gradient_agrees_with_pytorch(gate: str, name: str, torch_vectors: Vectors) -> None:
    index = list(torch_vectors["gate_names"]).index(gate)
    block = gated_block(torch_vectors, ffn.GATES[gate])
    gradients = gated_backward(block, torch_vectors["gated_x"], torch_vectors["gated_grad_y"])
    theirs = stored_gradient(torch_vectors, "gated", name, index)
    np.testing.assert_allclose(getattr(gradients, name), theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_plain_gradient_agrees_with_central_differences(
    activation: str, name: str, plain_arguments: dict[str, Array], grad_y: Array
) -> None:
    block = FeedForward(*(plain_arguments[key] for key in PLAIN[1:]), activation)
    gradient = getattr(feed_forward_backward(block, plain_arguments["x"], grad_y), name)

    def loss(value: Array) -> float:
        return plain_loss({**plain_arguments, name: value}, activation, grad_y)

    assert gradient_check(loss, plain_arguments[name], gradient) < 1e-7


@pytest.mark.parametrize("name", GATED)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gated_gradient_agrees_with_central_differences(
    activation: str, name: str, gated_arguments: dict[str, Array], grad_y: Array
) -> None:
    block = GatedFeedForward(*(gated_arguments[key] for key in GATED[1:]), activation)
    gradient = getattr(gated_backward(block, gated_arguments["x"], grad_y), name)

    def loss(value: Array) -> float:
        return gated_loss({**gated_arguments, name: value}, activation, grad_y)

    assert gradient_check(loss, gated_arguments[name], gradient) < 1e-7


def test_plain_gradient_of_one_unit_is_the_chain_rule_by_hand() -> None:
    # x 3, u = 2 x 3 - 5 = 1, h = 1, y = 4 h + 1; with dL/dy = 10: dL/du = 40.
    block = FeedForward([[2]], [-5], [[4]], [1], "relu")
    gradients = feed_forward_backward(block, [3], [10])
    assert (gradients.x, gradients.W_1, gradients.b_1, gradients.W_2, gradients.b_2) == (80, 120, 40, 10, 10)


def test_gated_gradient_of_one_unit_is_the_chain_rule_by_hand() -> None:
    # x 3, gate 2 x 3 = 6, up 3 x 3 = 9, h = 54, y = 5 h; with dL/dy = 1: dL/dh = 5, dL/du_g = 45, dL/dup = 30.
    block = GatedFeedForward([[2]], [[3]], [[5]], "identity")
    gradients = gated_backward(block, [3], [1])
    assert (gradients.x, gradients.W_g, gradients.W_u, gradients.W_d) == (45 * 2 + 30 * 3, 135, 90, 54)


def test_inactive_relu_unit_passes_no_gradient_back() -> None:
    gradients = feed_forward_backward(FeedForward([[2]], [-7], [[4]], [1], "relu"), [3], [10])
    assert (gradients.x, gradients.W_1, gradients.b_1, gradients.W_2, gradients.b_2) == (0, 0, 0, 0, 10)


@pytest.mark.parametrize("name", PLAIN[1:])
def test_plain_parameter_gradient_is_the_sum_over_every_position(
    name: str, plain_arguments: dict[str, Array], grad_y: Array
) -> None:
    block = FeedForward(*(plain_arguments[key] for key in PLAIN[1:]), "gelu")
    x = plain_arguments["x"]
    summed = sum(getattr(feed_forward_backward(block, x[at], grad_y[at]), name) for at in np.ndindex(2, 3))
    np.testing.assert_allclose(getattr(feed_forward_backward(block, x, grad_y), name), summed, rtol=1e-12)


@pytest.mark.parametrize("name", GATED[1:])
def test_gated_parameter_gradient_is_the_sum_over_every_position(
    name: str, gated_arguments: dict[str, Array], grad_y: Array
) -> None:
    block = GatedFeedForward(*(gated_arguments[key] for key in GATED[1:]))
    x = gated_arguments["x"]
    summed = sum(getattr(gated_backward(block, x[at], grad_y[at]), name) for at in np.ndindex(2, 3))
    np.testing.assert_allclose(getattr(gated_backward(block, x, grad_y), name), summed, rtol=1e-12)


def test_gradient_with_respect_to_a_token_depends_on_that_token_alone(
    plain_arguments: dict[str, Array], grad_y: Array
) -> None:
    block = FeedForward(*(plain_arguments[key] for key in PLAIN[1:]), "silu")
    x = plain_arguments["x"]
    together = feed_forward_backward(block, x, grad_y).x
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(together[at], feed_forward_backward(block, x[at], grad_y[at]).x, rtol=1e-12)


@pytest.mark.parametrize("leading", [(), (1,), (3,), (0,), (2, 0), (2, 1, 3)])
def test_every_gradient_has_the_shape_of_what_it_belongs_to(leading: tuple[int, ...]) -> None:
    x = np.ones((*leading, 4))
    plain = FeedForward(np.ones((4, 5)), np.ones(5), np.ones((5, 4)), np.ones(4))
    gated = GatedFeedForward(np.ones((4, 5)), np.ones((4, 5)), np.ones((5, 4)))
    plain_gradients, gated_gradients = feed_forward_backward(plain, x, x), gated_backward(gated, x, x)
    assert plain_gradients.x.shape == gated_gradients.x.shape == x.shape
    for block, gradients, names in ((plain, plain_gradients, PLAIN), (gated, gated_gradients, GATED)):
        for name in names[1:]:
            assert getattr(gradients, name).shape == getattr(block, name).shape


@pytest.mark.parametrize("lacking", [("b_1",), ("b_2",), ("b_1", "b_2")])
def test_bias_that_the_block_lacks_has_no_gradient(
    lacking: tuple[str, ...], plain_arguments: dict[str, Array], grad_y: Array
) -> None:
    arguments = plain_arguments | dict.fromkeys(lacking)
    block = FeedForward(*(arguments[key] for key in PLAIN[1:]))
    gradients = feed_forward_backward(block, arguments["x"], grad_y)
    assert [name for name in PLAIN if getattr(gradients, name) is None] == list(lacking)


def test_gradients_of_float32_are_float32() -> None:
    ones = np.ones((2, 2), dtype=np.float32)
    plain = feed_forward_backward(FeedForward(ones, ones[0], ones, ones[0]), ones, ones)
    gated = gated_backward(GatedFeedForward(ones, ones, ones), ones, ones)
    assert {value.dtype for value in [*vars(plain).values(), *vars(gated).values()]} == {np.dtype(np.float32)}


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 5), (3, 2, 4), ()])
def test_output_gradient_of_the_wrong_shape_is_refused_with_both_shapes(
    shape: tuple[int, ...], torch_vectors: Vectors
) -> None:
    expected = f"grad_y has shape {shape} and y has shape (2, 3, 4); expected grad_y of shape (2, 3, 4)."
    with pytest.raises(ShapeError) as caught:
        feed_forward_backward(plain_block(torch_vectors, "relu"), np.ones((2, 3, 4)), np.ones(shape))
    assert str(caught.value) == expected
    with pytest.raises(ShapeError) as caught:
        gated_backward(gated_block(torch_vectors, "silu"), np.ones((2, 3, 4)), np.ones(shape))
    assert str(caught.value) == expected


def test_input_of_the_wrong_width_is_refused_in_both_backward_passes(torch_vectors: Vectors) -> None:
    with pytest.raises(ShapeError, match=r"x has shape \(2, 5\) and W_1 has shape \(4, 6\)"):
        feed_forward_backward(plain_block(torch_vectors, "relu"), np.ones((2, 5)), np.ones((2, 4)))
    with pytest.raises(ShapeError, match=r"x has shape \(2, 5\) and W_g has shape \(4, 6\)"):
        gated_backward(gated_block(torch_vectors, "silu"), np.ones((2, 5)), np.ones((2, 4)))


def test_backward_passes_write_to_none_of_their_arguments(torch_vectors: Vectors) -> None:
    x, grad = torch_vectors["gated_x"].copy(), torch_vectors["gated_grad_y"].copy()
    plain, gated = plain_block(torch_vectors, "gelu"), gated_block(torch_vectors, "silu")
    held = [x, grad, *(getattr(plain, name) for name in PLAIN[1:]), *(getattr(gated, name) for name in GATED[1:])]
    before = [array.copy() for array in held]
    feed_forward_backward(plain, x, grad)
    gated_backward(gated, x, grad)
    for array, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=8))
def test_numerical_gradient_of_a_sum_of_squares_is_twice_the_point(values: list[float]) -> None:
    point = np.array(values)
    numeric = ffn.numerical_gradient(lambda p: float(np.sum(p**2)), point)
    # The loss is at most 800, and its rounding error is divided by a step of 2e-6.
    np.testing.assert_allclose(numeric, 2 * point, atol=800 * 2**-52 / 1e-6)


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (2, 0), (2, 1, 2)])
def test_numerical_gradient_has_the_shape_of_its_point(shape: tuple[int, ...]) -> None:
    assert ffn.numerical_gradient(lambda p: float(np.sum(p)), np.ones(shape)).shape == shape


def test_numerical_gradient_of_integers_is_a_float64() -> None:
    numeric = ffn.numerical_gradient(lambda p: float(3 * p[0] - p[1]), [1, 2])
    assert numeric.dtype == np.float64
    np.testing.assert_allclose(numeric, [3, -1], rtol=1e-8)


def test_numerical_gradient_uses_the_step_it_is_given() -> None:
    # (f(h) - f(-h)) / 2h of the cube at 0 is h^2.
    assert ffn.numerical_gradient(lambda p: float(p**3), 0.0, step=0.5) == pytest.approx(0.25)


def test_numerical_gradient_leaves_its_point_alone() -> None:
    point = np.array([1.0, 2.0])
    point.flags.writeable = False
    ffn.numerical_gradient(lambda p: float(np.sum(p)), point)


def test_numerical_gradient_survives_a_loss_that_writes_to_its_argument() -> None:
    def loss(p: Array) -> float:
        p *= 2
        return float(np.sum(p))

    np.testing.assert_allclose(ffn.numerical_gradient(loss, [1.0, 2.0]), [2, 2], rtol=1e-8)


def averaged(block: FeedForward, x: Array, grad_y: Array) -> Array:
    return feed_forward_backward(block, x, grad_y).W_1 / 6


def last_token_only(block: FeedForward, x: Array, grad_y: Array) -> Array:
    return feed_forward_backward(block, x[-1, -1], grad_y[-1, -1]).W_1


def transposed(block: FeedForward, x: Array, grad_y: Array) -> Array:
    return feed_forward_backward(block, x, grad_y).W_1.T.reshape(block.W_1.shape)


def derivative_forgotten(block: FeedForward, x: Array, grad_y: Array) -> Array:
    return x.reshape(-1, 4).T @ (grad_y.reshape(-1, 4) @ block.W_2.T)


@pytest.mark.parametrize("mistake", [averaged, last_token_only, transposed, derivative_forgotten])
def test_gradient_check_flags_a_mistake(
    mistake: Callable[[FeedForward, Array, Array], Array], plain_arguments: dict[str, Array], grad_y: Array
) -> None:
    block = FeedForward(*(plain_arguments[key] for key in PLAIN[1:]), "gelu")

    def loss(W_1: Array) -> float:
        return plain_loss({**plain_arguments, "W_1": W_1}, "gelu", grad_y)

    assert gradient_check(loss, block.W_1, mistake(block, plain_arguments["x"], grad_y)) > 1e-2


def test_gradient_check_is_relative_to_the_larger_gradient() -> None:
    # The gradient of the sum is 1, so 2 is off by 1, which is half of 2.
    assert gradient_check(lambda p: float(np.sum(p)), [1.0, 1.0], [2.0, 1.0]) == pytest.approx(0.5, rel=1e-6)


def test_gradient_check_of_a_flat_loss_and_no_gradient_is_zero() -> None:
    assert gradient_check(lambda p: 5.0, [1.0, 2.0], [0.0, 0.0]) == 0


def test_gradient_check_of_nothing_is_zero() -> None:
    assert gradient_check(lambda p: 5.0, np.zeros((0, 3)), np.zeros((0, 3))) == 0


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_gradient_check_never_calls_a_gradient_that_is_no_number_right(wrong: float) -> None:
    assert not gradient_check(lambda p: float(np.sum(p)), [1.0, 1.0], [1.0, wrong]) < 1e-4


@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (1, 2)])
def test_gradient_check_refuses_a_gradient_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as caught:
        gradient_check(lambda p: float(np.sum(p)), np.zeros(2), np.zeros(shape))
    assert str(caught.value) == (
        f"gradient has shape {shape} and point has shape (2,); expected gradient of shape (2,)."
    )
