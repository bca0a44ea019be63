"""Wrong ways through the unit `learning`: backward passes, accumulation, losses, steps and training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ffn.activations import relu, relu_grad, sigmoid, silu, silu_grad
from ffn.blocks import FeedForward, GatedFeedForward
from ffn.gradients import feed_forward_backward, gated_backward
from ffn.misconceptions.registry import Misconception, Probe, Step

__all__ = ["STEPS"]

PLAIN = "book/learning/backward-plain"
GATED = "book/learning/backward-gated"
TANH = "book/learning/tanh-derivative"
TRAINING = "book/learning/training-the-block"
SHARED = "book/mechanism/shared-gradients"
DEAD = "book/activations/inactive-and-dead"

Parameters = Mapping[str, Any]


def _array(values: Any) -> Any:
    return np.asarray(values, dtype=float)


def _flat(values: Any) -> Any:
    return values.reshape(-1, values.shape[-1])


def _draw(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape).round(2)


# Parameters and the slope of tanh


def parameter_count(d: int, d_ff: int) -> int:
    """Count the parameters of a plain block with both biases."""
    return 2 * d * d_ff + d_ff + d


def tanh_slope(h: Any) -> Any:
    """Slope of tanh from its output."""
    return 1 - _array(h) ** 2


def _slope_in_place(h: Any) -> Any:
    h = _array(h)
    h *= h
    return 1 - h


# The gradient check


def numerical_gradient(loss: Callable[[Any], Any], point: Any, step: float = 1e-6) -> Any:
    """Central difference quotients of a loss, one for each entry of the point."""
    point = _array(point)
    gradient = np.empty_like(point)
    for place in np.ndindex(point.shape):
        above, below = point.copy(), point.copy()
        above[place] += step
        below[place] -= step
        gradient[place] = (loss(above) - loss(below)) / (2 * step)
    return gradient


def _forward_difference(loss: Callable[[Any], Any], point: Any, step: float = 1e-6) -> Any:
    point = _array(point)
    gradient = np.empty_like(point)
    for place in np.ndindex(point.shape):
        above = point.copy()
        above[place] += step
        gradient[place] = (loss(above) - loss(point.copy())) / step
    return gradient


def _half_step_forgotten(loss: Callable[[Any], Any], point: Any, step: float = 1e-6) -> Any:
    return 2 * numerical_gradient(loss, point, step)


def _all_entries_at_once(loss: Callable[[Any], Any], point: Any, step: float = 1e-6) -> Any:
    point = _array(point)
    return np.full_like(point, (loss(point + step) - loss(point - step)) / (2 * step))


def _never_moved_back(loss: Callable[[Any], Any], point: Any, step: float = 1e-6) -> Any:
    point = np.array(point, dtype=float)
    gradient = np.empty_like(point)
    for place in np.ndindex(point.shape):
        point[place] += step
        above = loss(point.copy())
        point[place] -= 2 * step
        gradient[place] = (above - loss(point.copy())) / (2 * step)
    return gradient


def _cubes(v: Any) -> float:
    return float(np.sum(_array(v) ** 3))


def _mixed(v: Any) -> float:
    v = _array(v).ravel()
    return float(v[0] * v[-1] ** 2 + v.sum() ** 3)


# Through an affine map


def affine_backward(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    """Gradients of x, W and b for u = x W + b, the last two summed over all tokens."""
    x, W, grad_u = _array(x), _array(W), _array(grad_u)
    return grad_u @ W.T, _flat(x).T @ _flat(grad_u), _flat(grad_u).sum(axis=0)


def _mean_over_tokens(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grad_x, grad_W, grad_b = affine_backward(x, W, grad_u)
    count = _array(x).size // _array(x).shape[-1]
    return grad_x, grad_W / count, grad_b / count


def _last_token(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grads = _flat(_array(grad_u))[-1]
    return affine_backward(x, W, grad_u)[0], np.outer(_flat(_array(x))[-1], grads), grads


def _weight_gradient_transposed(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grad_x, grad_W, grad_b = affine_backward(x, W, grad_u)
    return grad_x, grad_W.T, grad_b


def _input_for_weight(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grad_x, grad_W, grad_b = affine_backward(x, W, grad_u)
    return grad_W, grad_x, grad_b


def _bias_not_summed(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grad_x, grad_W, _ = affine_backward(x, W, grad_u)
    return grad_x, grad_W, _array(grad_u)


def _bias_over_first_axis(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grad_x, grad_W, _ = affine_backward(x, W, grad_u)
    return grad_x, grad_W, _array(grad_u).sum(axis=0)


def _ones_for_upstream(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    return affine_backward(x, W, np.ones_like(_array(grad_u)))


def _weights_not_transposed(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    _, grad_W, grad_b = affine_backward(x, W, grad_u)
    return _array(grad_u) @ _array(W), grad_W, grad_b


def _input_gradient_summed(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    grad_x, grad_W, grad_b = affine_backward(x, W, grad_u)
    return _flat(grad_x).sum(axis=0), grad_W, grad_b


# Through ReLU


def relu_backward(u: Any, grad_h: Any) -> Any:
    """Gradient of u for h = relu(u)."""
    return _array(grad_h) * relu_grad(_array(u))


# The whole tanh block


def _block(parameters: Parameters) -> FeedForward:
    return FeedForward(parameters["W_1"], parameters["b_1"], parameters["W_2"], parameters["b_2"], "tanh")


def tanh_block(parameters: Parameters, x: Any) -> Any:
    """Output of the plain block with tanh."""
    return _block(parameters)(x)


def tanh_block_backward(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
    """Gradients of the input and of every parameter of the tanh block."""
    found = feed_forward_backward(_block(parameters), x, grad_y)
    return {"x": found.x, "W_1": found.W_1, "b_1": found.b_1, "W_2": found.W_2, "b_2": found.b_2}


def _block_backward(
    slope: Callable[[Any, Any], Any] = lambda u, h: 1 - h**2, *, linear: bool = False, upstream: bool = True
) -> Callable[..., dict[str, Any]]:
    """The backward pass with another slope of tanh, made from u and h, or with a factor left out."""

    def backward(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
        stage = _block(parameters).trace(x)
        grad_h, grad_W_2, grad_b_2 = affine_backward(stage.u if linear else stage.h, parameters["W_2"], grad_y)
        back = slope(stage.u, stage.h)
        grad_x, grad_W_1, grad_b_1 = affine_backward(x, parameters["W_1"], back * grad_h if upstream else back)
        return {"x": grad_x, "W_1": grad_W_1, "b_1": grad_b_1, "W_2": grad_W_2, "b_2": grad_b_2}

    return backward


def _plain(seed: int, d: int, d_ff: int) -> dict[str, Any]:
    return {
        "W_1": _draw(seed, d, d_ff),
        "b_1": _draw(seed + 1, d_ff),
        "W_2": _draw(seed + 2, d_ff, d),
        "b_2": _draw(seed + 3, d),
    }


_PLAIN_CASES = tuple(
    (_plain(seed, d, d_ff), _draw(seed + 4, *lead, d), _draw(seed + 5, *lead, d))
    for seed, d, d_ff, lead in ((10, 2, 3, (2,)), (20, 3, 2, (2, 2)), (30, 2, 4, ()), (40, 3, 3, (1, 2)))
)

# The gated block


def swiglu_backward(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
    """Gradients of the input and of the three matrices of a SwiGLU block."""
    block = GatedFeedForward(parameters["W_g"], parameters["W_u"], parameters["W_d"])
    found = gated_backward(block, x, grad_y)
    return {"x": found.x, "W_g": found.W_g, "W_u": found.W_u, "W_d": found.W_d}


def _gated_backward(
    gate_slope: Callable[[Any], Any] = silu_grad,
    *,
    paths: str = "gate up",
    crossed: bool = True,
    product: bool = True,
) -> Callable[..., dict[str, Any]]:
    """The backward pass of a SwiGLU block with one thing changed.

    ``gate_slope`` is the gate's slope at its pre-activation, ``paths`` the ways back to x. Where ``crossed`` is
    False each branch is multiplied by its own value; where ``product`` is False W_d sees the gate alone.
    """

    def backward(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
        W_g, W_u, W_d = parameters["W_g"], parameters["W_u"], parameters["W_d"]
        u_g, up = x @ W_g, x @ W_u
        gate = silu(u_g)
        grad_h, grad_W_d, _ = affine_backward(gate * up if product else gate, W_d, grad_y)
        by_gate, by_up = (up, gate) if crossed else (gate, up)
        through_gate, grad_W_g, _ = affine_backward(x, W_g, grad_h * by_gate * gate_slope(u_g))
        through_up, grad_W_u, _ = affine_backward(x, W_u, grad_h * by_up)
        grad_x = ("gate" in paths) * through_gate + ("up" in paths) * through_up
        return {"x": grad_x, "W_g": grad_W_g, "W_u": grad_W_u, "W_d": grad_W_d}

    return backward


_GATED_CASES = tuple(
    (
        {"W_g": _draw(seed, d, d_ff), "W_u": _draw(seed + 1, d, d_ff), "W_d": _draw(seed + 2, d_ff, d)},
        _draw(seed + 3, *lead, d),
        _draw(seed + 4, *lead, d),
    )
    for seed, d, d_ff, lead in ((50, 2, 3, (2,)), (60, 3, 2, (2, 2)), (70, 2, 4, ()))
)

# Accumulation over parts


def accumulate(parameters: Parameters, parts: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """Sum of the gradients of all parts of a batch, by the parameters' names."""
    found = [tanh_block_backward(parameters, x, grad_y) for x, grad_y in parts]
    return {name: np.sum([gradients[name] for gradients in found], axis=0) for name in parameters}


def _scaled_sum(
    scale: Callable[[Sequence[tuple[Any, Any]]], float],
) -> Callable[[Parameters, Sequence[tuple[Any, Any]]], dict[str, Any]]:
    return lambda parameters, parts: {n: g * scale(parts) for n, g in accumulate(parameters, parts).items()}


def _last_part(parameters: Parameters, parts: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    return accumulate(parameters, parts[-1:])


def _tokens(parts: Sequence[tuple[Any, Any]]) -> int:
    return sum(x.size // x.shape[-1] for x, _ in parts)


_PARTS_CASES = (
    (_plain(80, 2, 3), [(_draw(81, 1, 2), _draw(82, 1, 2)), (_draw(83, 3, 2), _draw(84, 3, 2))]),
    (_plain(85, 3, 2), [(_draw(85 + i, n, 3), _draw(95 + i, n, 3)) for i, n in enumerate((2, 4, 1))]),
    (_plain(105, 2, 2), [(_draw(106, 2, 2, 2), _draw(107, 2, 2, 2))]),
)

# The loss


def mean_squared_error(y: Any, target: Any) -> Any:
    """Mean over all entries of the squared difference."""
    return np.mean((_array(y) - _array(target)) ** 2)


def mean_squared_error_grad(y: Any, target: Any) -> Any:
    """Gradient of that mean with respect to y."""
    difference = _array(y) - _array(target)
    return 2 * difference / difference.size


def _over_tokens(y: Any, target: Any) -> Any:
    difference = _array(y) - _array(target)
    return 2 * difference * difference.shape[-1] / difference.size


_LOSS_CASES = (
    (_draw(110, 2, 3), _draw(111, 2, 3)),
    (_draw(112, 2, 2, 2), _draw(113, 2, 2, 2)),
    (_draw(114, 4), _draw(115, 4)),
)

# One step, and many


def gradient_step(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    """Parameters after one step against the gradient, as new arrays."""
    return {name: value - rate * gradients[name] for name, value in parameters.items()}


def _step_in_place(parameters: Parameters, gradients: Parameters, rate: float) -> Parameters:
    for name, value in parameters.items():
        value -= rate * gradients[name]
    return parameters


def _every_gradient(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    return {name: parameters[name] - rate * gradient for name, gradient in gradients.items()}


_STEP_CASES = (
    ({"W_1": _draw(120, 2, 3), "b_1": _draw(121, 3)}, {"W_1": _draw(122, 2, 3), "b_1": _draw(123, 3)}, 0.1),
    ({"b": _draw(124, 2)}, {"x": _draw(125, 4, 2), "b": _draw(126, 2)}, 1.5),
)


def train(
    parameters: Parameters, x: Any, target: Any, rate: float, steps: int
) -> tuple[dict[str, Any], list[float]]:
    """Gradient descent of a tanh block on the mean squared error; the parameters and all losses."""
    return _descend(parameters, x, target, rate, steps)


def _descend(
    parameters: Parameters,
    x: Any,
    target: Any,
    rate: float,
    steps: int,
    *,
    fresh: bool = True,
    at_once: bool = True,
    one_token: bool = False,
) -> tuple[dict[str, Any], list[float]]:
    """Training; with ``fresh`` False the first gradients serve all steps.

    With ``at_once`` False the second layer moves before the first layer's gradient is taken; with ``one_token``
    every step uses the last token alone.
    """
    now = {name: np.array(value) for name, value in parameters.items()}
    gradients: dict[str, Any] = {}
    losses = []
    last = -1 if one_token else slice(None)
    rows, wanted = _flat(_array(x))[last], _flat(_array(target))[last]
    for _ in range(steps):
        losses.append(float(mean_squared_error(tanh_block(now, x), target)))
        if fresh or not gradients:
            gradients = _loss_gradients(now, rows, wanted)
        if at_once:
            now = gradient_step(now, gradients, rate)
        else:
            now |= {name: now[name] - rate * gradients[name] for name in ("W_2", "b_2")}
            gradients = _loss_gradients(now, rows, wanted)
            now |= {name: now[name] - rate * gradients[name] for name in ("W_1", "b_1")}
    losses.append(float(mean_squared_error(tanh_block(now, x), target)))
    return now, losses


def _loss_gradients(parameters: Parameters, x: Any, target: Any) -> dict[str, Any]:
    y = tanh_block(parameters, x)
    return tanh_block_backward(parameters, x, mean_squared_error_grad(y, target))


def _one_layer_at_a_time(*arguments: Any) -> tuple[dict[str, Any], list[float]]:
    return _descend(*arguments, at_once=False)


def _gradient_from_the_start(*arguments: Any) -> tuple[dict[str, Any], list[float]]:
    return _descend(*arguments, fresh=False)


def _learn_from_last_token(*arguments: Any) -> tuple[dict[str, Any], list[float]]:
    return _descend(*arguments, one_token=True)


def _start_returned(
    parameters: Parameters, x: Any, target: Any, rate: float, steps: int
) -> tuple[Parameters, list[float]]:
    return dict(parameters), _descend(parameters, x, target, rate, steps)[1]


def _last_loss_missing(
    parameters: Parameters, x: Any, target: Any, rate: float, steps: int
) -> tuple[dict[str, Any], list[float]]:
    trained, losses = _descend(parameters, x, target, rate, steps)
    return trained, losses[:-1]


def _uphill(
    parameters: Parameters, x: Any, target: Any, rate: float, steps: int
) -> tuple[dict[str, Any], list[float]]:
    return _descend(parameters, x, target, -rate, steps)


_TRAIN_CASES = (
    (_plain(130, 2, 3), _draw(134, 4, 2), _draw(135, 4, 2), 0.1, 3),
    (_plain(140, 3, 2), _draw(144, 2, 3, 3), _draw(145, 2, 3, 3), 0.25, 2),
    (_plain(150, 2, 2), _draw(154, 3, 2), _draw(155, 3, 2), 0.5, 1),
)

# Dead units


def dead_units(W_1: Any, b_1: Any, x: Any) -> Any:
    """Whether each ReLU unit is inactive for all tokens."""
    return np.all(_pre_activations(W_1, b_1, x) <= 0, axis=0)


def _pre_activations(W_1: Any, b_1: Any, x: Any) -> Any:
    return _flat(np.atleast_2d(_array(x) @ _array(W_1) + _array(b_1)))


def _dead(rule: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """A verdict on the units from a rule on all pre-activations, one row for each token."""
    return lambda W_1, b_1, x: rule(_pre_activations(W_1, b_1, x))


_W_DEAD = np.array([[1.0, -1.0, 0.0, 1.0, 0.5], [0.0, 0.0, 0.0, -1.0, 0.5]])
_B_DEAD = np.array([-3.0, 0.5, 0.0, -0.5, -0.25])
_DEAD_CASES = (
    (_W_DEAD, _B_DEAD, np.array([[1.0, 2.0], [2.5, -1.0], [-2.0, 1.0]])),
    (_W_DEAD, _B_DEAD, np.array([[[-1.0, 0.5], [4.0, 1.0]], [[0.5, -1.0], [0.25, 2.0]]])),
    (np.array([[1.0, -2.0]]), np.array([0.0, 1.0]), np.array([[-1.0], [0.0], [-3.0]])),
    (np.array([[2.0, -2.0, 1.0]]), np.array([-1.0, 1.0, 0.5]), np.array([0.25])),
    (np.array([[1.0, -1.0]]), np.array([1.0, -1.0]), np.array([[3.0], [-2.0], [0.5]])),
)

_TANH_OUTPUTS = (
    np.array([-0.9, -0.25, 0.0, 0.5, 0.99]),
    np.array([[0.125, -0.625], [0.75, -0.5]]),
    0.6,
    -0.8,
)

_AFFINE_CASES = tuple(
    (_draw(seed, *lead, d), _draw(seed + 1, d, d_ff), _draw(seed + 2, *lead, d_ff))
    for seed, d, d_ff, lead in (
        (160, 2, 3, (3,)),
        (170, 3, 3, (2,)),
        (180, 4, 2, (2, 3)),
        (190, 2, 3, ()),
        (200, 2, 2, (2, 1, 2)),
    )
)

_RELU_CASES = (
    (np.array([[-1.5, 0.0, 2.0, 0.25]]), np.array([[3.0, -2.0, -4.0, 0.5]])),
    (np.array([-0.5, 1.5, -3.0, 0.0]), np.array([-1.0, 2.0, 0.75, 1.5])),
    (_draw(210, 2, 3, 2), _draw(211, 2, 3, 2)),
)


def _probes(name: str, cases: Sequence[tuple[Any, ...]]) -> tuple[Probe, ...]:
    return tuple(Probe(name, case) for case in cases)


STEPS = (
    Step(
        name="parameter_count",
        own={"parameter_count": parameter_count},
        probes=_probes("parameter_count", ((6, 12), (4, 16), (1, 1), (5, 3))),
        misconceptions=(
            Misconception(
                name="biases-forgotten",
                wrong={"parameter_count": lambda d, d_ff: 2 * d * d_ff},
                hint="only the two matrices were counted; this block has a bias after each of them.",
                page=f"{TRAINING}#the-block-and-its-size",
            ),
            Misconception(
                name="second-bias-forgotten",
                wrong={"parameter_count": lambda d, d_ff: 2 * d * d_ff + d_ff},
                hint="the bias of the hidden units was counted, that of the output was not.",
                page=f"{TRAINING}#the-block-and-its-size",
            ),
            Misconception(
                name="both-biases-wide",
                wrong={"parameter_count": lambda d, d_ff: 2 * d * d_ff + 2 * d_ff},
                hint="both biases were given d_ff entries, but the second one is added to the output.",
                page=f"{TRAINING}#the-block-and-its-size",
            ),
            Misconception(
                name="one-matrix",
                wrong={"parameter_count": lambda d, d_ff: d * d_ff + d_ff + d},
                hint="one matrix only was counted, as if the way back to d were made with the same numbers.",
                page=f"{TRAINING}#the-block-and-its-size",
            ),
        ),
    ),
    Step(
        name="tanh_slope",
        own={"tanh_slope": tanh_slope},
        probes=_probes("tanh_slope", tuple((h,) for h in _TANH_OUTPUTS)),
        misconceptions=(
            Misconception(
                name="tanh-once-more",
                wrong={"tanh_slope": lambda h: 1 - np.tanh(_array(h)) ** 2},
                hint="tanh was applied to the output once more; h already is the output of tanh.",
                page="book/activations/saturation#what-goes-wrong",
            ),
            Misconception(
                name="square-forgotten",
                wrong={"tanh_slope": lambda h: 1 - _array(h)},
                hint="the output was subtracted from 1 without being squared.",
                page=f"{TANH}#the-idea",
            ),
            Misconception(
                name="slope-of-the-sigmoid",
                wrong={"tanh_slope": lambda h: _array(h) * (1 - _array(h))},
                hint="this is the rule for the slope of the sigmoid from its output, not that of tanh.",
                page=f"{TANH}#the-idea",
            ),
            Misconception(
                name="square-outside",
                wrong={"tanh_slope": lambda h: (1 - _array(h)) ** 2},
                hint="the difference was squared as a whole; only the output is squared.",
                page=f"{TANH}#the-idea",
            ),
            Misconception(
                name="squared-in-place",
                wrong={"tanh_slope": _slope_in_place},
                hint="the squares were written into the caller's own array, which the backward pass still needs.",
                page=f"{PLAIN}#forward",
            ),
        ),
    ),
    Step(
        name="numerical_gradient",
        own={"numerical_gradient": numerical_gradient},
        probes=_probes(
            "numerical_gradient",
            (
                (_cubes, np.array([1.0, -2.0, 0.5]), 0.5),
                (_mixed, np.array([[1.0, 0.25], [-0.5, 2.0]]), 0.25),
                (_cubes, [1, 3], 0.5),
                (_mixed, np.array([-0.75, 1.5]), 0.125),
            ),
        ),
        misconceptions=(
            Misconception(
                name="forward-difference",
                wrong={"numerical_gradient": _forward_difference},
                hint="the quotient steps forward only; a central one steps to both sides of the point.",
                page=f"{TANH}#the-idea",
            ),
            Misconception(
                name="divided-by-one-step",
                wrong={"numerical_gradient": _half_step_forgotten},
                hint="the two points are two steps apart, and the difference was divided by one step.",
                page=f"{TANH}#the-idea",
            ),
            Misconception(
                name="all-entries-at-once",
                wrong={"numerical_gradient": _all_entries_at_once},
                hint="all entries were moved together; each entry of the gradient needs a move of its own.",
                page=f"{SHARED}#verify",
            ),
            Misconception(
                name="never-moved-back",
                wrong={"numerical_gradient": _never_moved_back},
                hint="an entry stayed where it had been moved to when the next one was tried.",
                page=f"{SHARED}#verify",
            ),
        ),
    ),
    Step(
        name="affine_backward",
        own={"affine_backward": affine_backward},
        probes=_probes("affine_backward", _AFFINE_CASES),
        misconceptions=(
            Misconception(
                name="mean-over-tokens",
                wrong={"affine_backward": _mean_over_tokens},
                hint="the tokens' contributions to W and b were averaged; they add up.",
                page=f"{SHARED}#what-goes-wrong",
            ),
            Misconception(
                name="last-token-only",
                wrong={"affine_backward": _last_token},
                hint="only the last token's contribution was kept, as when a loop assigns where it should add.",
                page=f"{SHARED}#what-goes-wrong",
            ),
            Misconception(
                name="weight-gradient-transposed",
                wrong={"affine_backward": _weight_gradient_transposed},
                hint="the gradient of W has rows and columns exchanged; it has the shape of W.",
                page=f"{SHARED}#one-product-does-the-sum",
            ),
            Misconception(
                name="input-for-weight",
                wrong={"affine_backward": _input_for_weight},
                hint="the derivative by x and the derivative by W were taken for each other.",
                page=f"{PLAIN}#the-idea",
            ),
            Misconception(
                name="bias-not-summed",
                wrong={"affine_backward": _bias_not_summed},
                hint="the gradient of b still has a row for each token; the bias is shared by all of them.",
                page=f"{PLAIN}#a-bias-gradient-not-summed",
            ),
            Misconception(
                name="bias-summed-over-one-axis",
                wrong={"affine_backward": _bias_over_first_axis},
                hint="the gradient of b was summed over the first axis only, and every leading axis holds tokens.",
                page=f"{PLAIN}#a-bias-gradient-not-summed",
            ),
            Misconception(
                name="upstream-forgotten",
                wrong={"affine_backward": _ones_for_upstream},
                hint="the gradient that arrives from above does not appear in the result.",
                page=f"{PLAIN}#the-idea",
            ),
            Misconception(
                name="weights-not-transposed",
                wrong={"affine_backward": _weights_not_transposed},
                hint="the gradient went back through W itself; the way back uses its transpose.",
                page=f"{PLAIN}#a-matrix-not-transposed",
            ),
            Misconception(
                name="input-gradient-summed",
                wrong={"affine_backward": _input_gradient_summed},
                hint="the gradient of x was summed over the tokens, but no two tokens share their input.",
                page=f"{SHARED}#the-idea",
            ),
        ),
        uses=("numerical_gradient",),
    ),
    Step(
        name="relu_backward",
        own={"relu_backward": relu_backward},
        probes=_probes("relu_backward", _RELU_CASES),
        misconceptions=(
            Misconception(
                name="one-at-zero",
                wrong={"relu_backward": lambda u, grad_h: np.where(_array(u) >= 0, _array(grad_h), 0.0)},
                hint="the slope at u = 0 was taken as 1; the convention of this course is 0.",
                page="book/activations/functions#the-idea",
            ),
            Misconception(
                name="slope-alone",
                wrong={"relu_backward": lambda u, grad_h: relu_grad(_array(u))},
                hint="this is the slope of ReLU alone, without the gradient that comes from above.",
                page=f"{PLAIN}#back-through-the-activation",
            ),
            Misconception(
                name="sign-of-the-gradient",
                wrong={"relu_backward": lambda u, grad_h: relu(_array(grad_h))},
                hint="the gradient itself was put through ReLU; what passes is decided by the sign of u.",
                page=f"{PLAIN}#back-through-the-activation",
            ),
            Misconception(
                name="times-the-output",
                wrong={"relu_backward": lambda u, grad_h: _array(grad_h) * relu(_array(u))},
                hint="the gradient was multiplied by the output of ReLU instead of its slope.",
                page=f"{PLAIN}#back-through-the-activation",
            ),
        ),
    ),
    Step(
        name="tanh_block_backward",
        own={"tanh_block": tanh_block, "tanh_block_backward": tanh_block_backward},
        probes=(
            *_probes("tanh_block", tuple(case[:2] for case in _PLAIN_CASES)),
            *_probes("tanh_block_backward", _PLAIN_CASES),
        ),
        misconceptions=(
            Misconception(
                name="slope-rule-at-u",
                wrong={"tanh_block_backward": _block_backward(lambda u, h: 1 - u**2)},
                hint="the pre-activation was put into the rule for the slope, which asks for the output of tanh.",
                page="book/activations/saturation#what-goes-wrong",
            ),
            Misconception(
                name="slope-at-the-output",
                wrong={"tanh_block_backward": _block_backward(lambda u, h: 1 - np.tanh(h) ** 2)},
                hint="this is the slope of tanh at h; the derivative belongs at the pre-activation u.",
                page=f"{PLAIN}#the-slope-at-the-wrong-point",
            ),
            Misconception(
                name="slope-forgotten",
                wrong={"tanh_block_backward": _block_backward(lambda u, h: 1.0)},
                hint="the gradient passed tanh unchanged: its slope is missing.",
                page=f"{PLAIN}#the-idea",
            ),
            Misconception(
                name="upstream-forgotten",
                wrong={"tanh_block_backward": _block_backward(upstream=False)},
                hint="the first layer got the slope of tanh without the gradient that reaches h.",
                page=f"{PLAIN}#the-idea",
            ),
            Misconception(
                name="second-matrix-from-u",
                wrong={"tanh_block_backward": _block_backward(linear=True)},
                hint="the gradient of W_2 was made with u; the input of W_2 is h.",
                page=f"{PLAIN}#the-second-matrix-and-its-bias",
            ),
            Misconception(
                name="output-bias-forgotten",
                wrong={"tanh_block": lambda parameters, x: tanh_block(parameters, x) - parameters["b_2"]},
                hint="the forward pass leaves out the bias b_2.",
                page=f"{PLAIN}#forward",
            ),
            Misconception(
                name="tanh-at-the-output-too",
                wrong={"tanh_block": lambda parameters, x: np.tanh(tanh_block(parameters, x))},
                hint="tanh was applied to the output as well; it stands between the two layers only.",
                page=f"{PLAIN}#forward",
            ),
        ),
        uses=("tanh_slope", "affine_backward", "numerical_gradient"),
    ),
    Step(
        name="swiglu_backward",
        own={"swiglu_backward": swiglu_backward},
        probes=_probes("swiglu_backward", _GATED_CASES),
        misconceptions=(
            Misconception(
                name="gate-path-forgotten",
                wrong={"swiglu_backward": _gated_backward(paths="up")},
                hint="the gradient of x came back through the up branch only; the gate sees x too.",
                page=f"{GATED}#what-goes-wrong",
            ),
            Misconception(
                name="up-path-forgotten",
                wrong={"swiglu_backward": _gated_backward(paths="gate")},
                hint="the gradient of x came back through the gate only, and the up branch was left out.",
                page=f"{GATED}#what-goes-wrong",
            ),
            Misconception(
                name="gate-slope-forgotten",
                wrong={"swiglu_backward": _gated_backward(np.ones_like)},
                hint="the slope of the gate's activation is missing between the gate and its pre-activation.",
                page=f"{GATED}#the-idea",
            ),
            Misconception(
                name="slope-at-the-gate",
                wrong={"swiglu_backward": _gated_backward(lambda u_g: silu_grad(silu(u_g)))},
                hint="the slope of SiLU was taken at the gate's value, not at the pre-activation before it.",
                page=f"{PLAIN}#the-slope-at-the-wrong-point",
            ),
            Misconception(
                name="sigmoid-for-the-slope",
                wrong={"swiglu_backward": _gated_backward(lambda u_g: sigmoid(u_g))},
                hint="the slope of SiLU has two terms, and only the sigmoid was used.",
                page="book/activations/functions#the-idea",
            ),
            Misconception(
                name="gate-as-a-constant",
                wrong={"swiglu_backward": _gated_backward(np.zeros_like)},
                hint="the gate was treated as a fixed number, so that W_g receives no gradient at all.",
                page=f"{GATED}#what-goes-wrong",
            ),
            Misconception(
                name="branches-exchanged",
                wrong={"swiglu_backward": _gated_backward(crossed=False)},
                hint="each branch was multiplied by its own value; the product rule asks for that of the other.",
                page=f"{GATED}#the-idea",
            ),
            Misconception(
                name="up-missing-in-the-product",
                wrong={"swiglu_backward": _gated_backward(product=False)},
                hint="the gradient of W_d was made with the gate alone; its input is the product of both branches.",
                page=f"{GATED}#back-to-the-product",
            ),
        ),
        uses=("affine_backward", "numerical_gradient"),
    ),
    Step(
        name="accumulate",
        own={"accumulate": accumulate},
        probes=_probes("accumulate", _PARTS_CASES),
        misconceptions=(
            Misconception(
                name="mean-over-parts",
                wrong={"accumulate": _scaled_sum(lambda parts: 1 / len(parts))},
                hint="the sum was divided by the number of parts; how a batch is cut must not matter.",
                page=f"{SHARED}#a-mean-loss",
            ),
            Misconception(
                name="mean-over-tokens",
                wrong={"accumulate": _scaled_sum(lambda parts: 1 / _tokens(parts))},
                hint="the sum was divided by the number of tokens; such a factor belongs to the loss.",
                page=f"{SHARED}#a-mean-loss",
            ),
            Misconception(
                name="last-part-only",
                wrong={"accumulate": _last_part},
                hint="each part replaced the one before, so that only the last part is left.",
                page=f"{SHARED}#what-goes-wrong",
            ),
        ),
        uses=("tanh_slope", "affine_backward", "tanh_block", "tanh_block_backward"),
    ),
    Step(
        name="mean_squared_error",
        own={"mean_squared_error": mean_squared_error, "mean_squared_error_grad": mean_squared_error_grad},
        probes=(
            *_probes("mean_squared_error", _LOSS_CASES),
            *_probes("mean_squared_error_grad", _LOSS_CASES),
        ),
        misconceptions=(
            Misconception(
                name="two-forgotten",
                wrong={"mean_squared_error_grad": lambda y, target: mean_squared_error_grad(y, target) / 2},
                hint="the 2 that comes down from the square is missing in the gradient.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="mean-over-tokens-only",
                wrong={"mean_squared_error_grad": _over_tokens},
                hint="the gradient was divided by the number of tokens; the mean runs over their features too.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="not-divided",
                wrong={"mean_squared_error_grad": lambda y, target: 2 * (_array(y) - _array(target))},
                hint="this is the gradient of a sum of squares; that of a mean carries a divisor.",
                page=f"{SHARED}#a-mean-loss",
            ),
            Misconception(
                name="sign-turned",
                wrong={"mean_squared_error_grad": lambda y, target: mean_squared_error_grad(target, y)},
                hint="the gradient has the wrong sign: it should be positive where y is too large.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="sum-for-mean",
                wrong={"mean_squared_error": lambda y, target: np.sum((_array(y) - _array(target)) ** 2)},
                hint="the squared differences were added up and no mean was taken.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="root-taken",
                wrong={"mean_squared_error": lambda y, target: np.sqrt(mean_squared_error(y, target))},
                hint="a root was taken of the mean; this loss is the mean of the squares itself.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="halved",
                wrong={"mean_squared_error": lambda y, target: mean_squared_error(y, target) / 2},
                hint="the loss was halved, as some texts do; here the gradient keeps its factor 2.",
                page=f"{TRAINING}#one-run",
            ),
        ),
        uses=("numerical_gradient",),
    ),
    Step(
        name="gradient_step",
        own={"gradient_step": gradient_step},
        probes=_probes("gradient_step", _STEP_CASES),
        misconceptions=(
            Misconception(
                name="in-place",
                wrong={"gradient_step": _step_in_place},
                hint="the new numbers were written into the caller's own arrays; new arrays are asked for.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="ascent",
                wrong={"gradient_step": lambda p, g, rate: {n: v + rate * g[n] for n, v in p.items()}},
                hint="the step goes along the gradient, where the loss rises.",
                page=f"{TRAINING}#the-idea",
            ),
            Misconception(
                name="rate-forgotten",
                wrong={"gradient_step": lambda p, g, rate: {n: v - g[n] for n, v in p.items()}},
                hint="the whole gradient was subtracted, whatever the rate.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="step-alone",
                wrong={"gradient_step": lambda p, g, rate: {n: -rate * g[n] for n in p}},
                hint="the step itself was returned, without the parameters that it starts from.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="sign-only",
                wrong={"gradient_step": lambda p, g, rate: {n: v - rate * np.sign(g[n]) for n, v in p.items()}},
                hint="all entries moved by the same length; here a step is as long as the gradient says.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="every-gradient",
                wrong={"gradient_step": _every_gradient},
                hint="the loop runs over the gradients, which may hold one for x, and x is not a parameter.",
                page=f"{SHARED}#the-idea",
            ),
        ),
    ),
    Step(
        name="train",
        own={"train": train},
        probes=_probes("train", _TRAIN_CASES),
        misconceptions=(
            Misconception(
                name="one-layer-at-a-time",
                wrong={"train": _one_layer_at_a_time},
                hint="the second layer had moved before the first layer's gradient was computed.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="gradient-from-the-start",
                wrong={"train": _gradient_from_the_start},
                hint="the gradient was computed once, at the start, and every step used it again.",
                page=f"{TRAINING}#the-idea",
            ),
            Misconception(
                name="start-returned",
                wrong={"train": _start_returned},
                hint="the parameters that training started from were returned with the losses.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="last-loss-missing",
                wrong={"train": _last_loss_missing},
                hint="the loss after the last step was not recorded.",
                page=f"{TRAINING}#one-run",
            ),
            Misconception(
                name="uphill",
                wrong={"train": _uphill},
                hint="the losses rise from step to step: training goes up the slope.",
                page=f"{TRAINING}#the-idea",
            ),
            Misconception(
                name="last-token-only",
                wrong={"train": _learn_from_last_token},
                hint="the steps follow the last token alone, while the loss is that of all tokens.",
                page=f"{SHARED}#what-goes-wrong",
            ),
        ),
        uses=(
            "tanh_slope",
            "affine_backward",
            "tanh_block",
            "tanh_block_backward",
            "accumulate",
            "mean_squared_error",
            "mean_squared_error_grad",
            "gradient_step",
        ),
    ),
    Step(
        name="dead_units",
        own={"dead_units": dead_units},
        probes=_probes("dead_units", _DEAD_CASES),
        misconceptions=(
            Misconception(
                name="inactive-once",
                wrong={"dead_units": _dead(lambda u: np.any(u <= 0, axis=0))},
                hint="units were called dead that are inactive on one token only.",
                page=f"{DEAD}#the-idea",
            ),
            Misconception(
                name="zero-counted-as-alive",
                wrong={"dead_units": _dead(lambda u: np.all(u < 0, axis=0))},
                hint="a pre-activation of exactly 0 was counted as active, but its slope is 0 as well.",
                page=f"{DEAD}#the-idea",
            ),
            Misconception(
                name="judged-by-the-mean",
                wrong={"dead_units": _dead(lambda u: u.mean(axis=0) <= 0)},
                hint="the mean pre-activation was judged; one active token is enough to keep a unit alive.",
                page=f"{DEAD}#the-idea",
            ),
            Misconception(
                name="last-token-only",
                wrong={"dead_units": _dead(lambda u: u[-1] <= 0)},
                hint="only the last token was looked at.",
                page=f"{DEAD}#the-idea",
            ),
            Misconception(
                name="alive-for-dead",
                wrong={"dead_units": _dead(lambda u: np.any(u > 0, axis=0))},
                hint="the units that are alive were marked, not those that are dead.",
                page=f"{DEAD}#the-idea",
            ),
            Misconception(
                name="bias-forgotten",
                wrong={"dead_units": lambda W_1, b_1, x: dead_units(W_1, np.zeros_like(_array(b_1)), x)},
                hint="the bias was left out of the pre-activations, although it can silence a unit.",
                page=f"{DEAD}#the-idea",
            ),
        ),
        uses=("relu_backward", "affine_backward"),
    ),
)
