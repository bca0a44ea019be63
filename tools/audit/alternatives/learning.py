"""Right answers of the unit `learning`, written differently, and why some mutants may survive."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from typing import Any

import numpy as np

from ffn import FeedForward, GatedFeedForward, feed_forward_backward, gated_backward, silu, silu_grad
from ffn import numerical_gradient as course_numerical_gradient
from ffn import relu as course_relu
from ffn import relu_grad as course_relu_grad
from ffn.training import Blueprint
from ffn.training import mean_squared_error as course_loss
from tools.audit.alternatives.styles import MATRIX_PRODUCTS, elementwise_styles

__all__ = ["ALTERNATIVES", "SURVIVORS"]

Function = Callable[..., Any]
Product = Callable[[Any, Any], Any]
Parameters = Mapping[str, Any]
NAMES = ("W_1", "b_1", "W_2", "b_2")


def _flat(values: Any) -> Any:
    values = np.asarray(values)
    return values.reshape(-1, values.shape[-1])


def _places(x: Any) -> Iterator[tuple[int, ...]]:
    return np.ndindex(*np.shape(x)[:-1])


# Step 1


def _count_by_loop(d: int, d_ff: int) -> int:
    count = 0
    for _ in range(d_ff):
        count += d + 1
    for _ in range(d):
        count += d_ff + 1
    return count


def _count_by_arrays(d: int, d_ff: int) -> int:
    return sum(np.zeros(shape, dtype=np.int8).size for shape in ((d, d_ff), d_ff, (d_ff, d), d))


PARAMETER_COUNT: list[Function] = [
    lambda d, d_ff: 2 * d * d_ff + d + d_ff,
    lambda d, d_ff: (d + 1) * d_ff + (d_ff + 1) * d,
    lambda d, d_ff: d * (2 * d_ff + 1) + d_ff,
    lambda d, d_ff: sum([d * d_ff, d_ff, d_ff * d, d]),
    lambda d, d_ff: sum(math.prod(shape) for shape in ((d, d_ff), (d_ff,), (d_ff, d), (d,))),
    lambda d, d_ff: int(np.prod([d, d_ff])) * 2 + int(np.sum([d, d_ff])),
    lambda d, d_ff: Blueprint(d, d_ff).start(0).parameter_count,
    lambda d, d_ff: float((2 * d + 1) * d_ff + d),
    lambda d, d_ff: ((2 * d + 1) * (2 * d_ff + 1) - 1) // 2,
    _count_by_loop,
    _count_by_arrays,
]

# Step 2


def _slope_of_copy(h: Any) -> Any:
    h = np.array(h, dtype=float)
    h *= h
    np.subtract(1, h, out=h)
    return h


TANH_SLOPE: list[Function] = [
    *elementwise_styles(lambda h: 1 - h * h),
    lambda h: (1 - np.asarray(h)) * (1 + np.asarray(h)),
    lambda h: 1 - np.asarray(h) ** 2,
    lambda h: 1 - np.multiply(h, h),
    lambda h: np.subtract(1, np.power(h, 2)),
    lambda h: -(np.asarray(h, dtype=float) ** 2 - 1),
    _slope_of_copy,
]

# Step 3


def _check_restoring(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.array(point, dtype=float)
    gradient = np.zeros(point.shape)
    for place, kept in np.ndenumerate(point.copy()):
        point[place] = kept + step
        above = loss(point)
        point[place] = kept - step
        below = loss(point)
        point[place] = kept
        gradient[place] = (above - below) / (2 * step)
    return gradient


def _check_flat(loss: Function, point: Any, step: float = 1e-6) -> Any:
    shape, flat = np.shape(point), np.ravel(np.asarray(point, dtype=float))
    gradient = np.zeros(flat.size)
    for k in range(flat.size):
        move = np.zeros(flat.size)
        move[k] = step
        ends = loss((flat + move).reshape(shape)), loss((flat - move).reshape(shape))
        gradient[k] = (ends[0] - ends[1]) / step / 2
    return gradient.reshape(shape)


def _check_unit_vectors(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.asarray(point, dtype=float)
    moves = step * np.eye(point.size).reshape(point.size, *point.shape)
    quotients = [(loss(point + move) - loss(point - move)) / (2 * step) for move in moves]
    return np.array(quotients).reshape(point.shape)


def _check_two_halves(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.asarray(point, dtype=float)
    here = loss(point.copy())
    gradient = np.empty(point.shape)
    for place in np.ndindex(point.shape):
        move = np.zeros(point.shape)
        move[place] = step
        forward = (loss(point + move) - here) / step
        backward = (here - loss(point - move)) / step
        gradient[place] = (forward + backward) / 2
    return gradient


def _check_lists(loss: Function, point: Any, step: float = 1e-6) -> Any:
    shape, flat = np.shape(point), [float(v) for v in np.ravel(point)]
    out = []
    for k, v in enumerate(flat):
        above = loss(np.array([*flat[:k], v + step, *flat[k + 1 :]]).reshape(shape))
        below = loss(np.array([*flat[:k], v - step, *flat[k + 1 :]]).reshape(shape))
        out.append((above - below) / (2 * step))
    return np.reshape(out, shape)


def _check_iterator(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.array(point, dtype=float)
    gradient = np.empty_like(point)
    places = np.nditer(point.copy(), flags=["multi_index"])
    for _ in places:
        move = np.zeros_like(point)
        move[places.multi_index] = 1
        gradient[places.multi_index] = (loss(point + step * move) - loss(point - step * move)) / (2 * step)
    return gradient


def _check_where(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.asarray(point, dtype=float)
    number = np.arange(point.size).reshape(point.shape)
    ends = [[loss(np.where(number == k, point + s, point)) for k in range(point.size)] for s in (step, -step)]
    return (np.subtract(ends[0], ends[1]) / (2 * step)).reshape(point.shape)


def _check_flat_view(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.array(point, dtype=float)
    gradient = np.empty_like(point)
    for k in range(point.size):
        point.flat[k] += step
        gradient.flat[k] = loss(point.copy())
        point.flat[k] -= 2 * step
        gradient.flat[k] -= loss(point.copy())
        point.flat[k] += step
    return gradient / (2 * step)


def _check_signs(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.asarray(point, dtype=float)
    gradient = np.zeros(point.shape)
    for place in np.ndindex(point.shape):
        for sign in (1, -1):
            moved = point.copy()
            moved[place] += sign * step
            gradient[place] += sign * loss(moved) / (2 * step)
    return gradient


def _check_map(loss: Function, point: Any, step: float = 1e-6) -> Any:
    point = np.asarray(point, dtype=float)

    def quotient(k: int) -> Any:
        move = (np.arange(point.size) == k).reshape(point.shape) * step
        return (loss(point + move) - loss(point - move)) * 0.5 / step

    return np.fromiter(map(quotient, range(point.size)), dtype=float).reshape(point.shape)


NUMERICAL_GRADIENT: list[Function] = [
    lambda loss, point, step=1e-6: course_numerical_gradient(loss, point, step=step),
    _check_restoring,
    _check_flat,
    _check_unit_vectors,
    _check_two_halves,
    _check_lists,
    _check_iterator,
    _check_where,
    _check_flat_view,
    _check_signs,
    _check_map,
]

# Step 4


def _affine_with(product: Product) -> Function:
    """The backward pass of an affine map with another matrix product; float32 stays float32 where it allows it."""

    def affine(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
        x, W, grad_u = np.asarray(x), np.asarray(W), np.asarray(grad_u)
        grad_b = grad_u.sum(axis=tuple(range(grad_u.ndim - 1)))
        return product(grad_u, W.T), product(_flat(x).T, _flat(grad_u)), grad_b

    return affine


def _affine_token_by_token(x: Any, W: Any, grad_u: Any) -> list[Any]:
    x, W, grad_u = np.asarray(x), np.asarray(W), np.asarray(grad_u)
    grad_x, grad_W, grad_b = np.zeros(x.shape), np.zeros(W.shape), np.zeros(W.shape[1])
    for place in _places(x):
        grad_W += np.outer(x[place], grad_u[place])
        grad_b += grad_u[place]
        grad_x[place] = W @ grad_u[place]
    return [grad_x, grad_W, grad_b]


def _affine_with_ones(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    rows = np.hstack([_flat(x), np.ones((len(_flat(x)), 1))])
    both = rows.T @ _flat(grad_u)
    return np.inner(grad_u, W), both[:-1], both[-1]


def _affine_tensordot(x: Any, W: Any, grad_u: Any) -> tuple[Any, Any, Any]:
    axes = list(range(np.ndim(x) - 1))
    grad_W = np.tensordot(x, grad_u, axes=(axes, axes))
    return np.tensordot(grad_u, W, axes=([-1], [1])), grad_W, np.sum(grad_u, axis=tuple(axes))


AFFINE_BACKWARD: list[Function] = [
    *map(_affine_with, MATRIX_PRODUCTS),
    _affine_token_by_token,
    _affine_with_ones,
    _affine_tensordot,
]
_affine: Function = AFFINE_BACKWARD[0]

# Step 5


def _relu_masked(u: Any, grad_h: Any) -> Any:
    passed = np.array(grad_h, dtype=float)
    passed[np.asarray(u) <= 0] = 0
    return passed


def _relu_filled(u: Any, grad_h: Any) -> Any:
    u = np.asarray(u)
    passed = np.zeros(u.shape)
    passed[u > 0] = np.asarray(grad_h)[u > 0]
    return passed


def _relu_loop(u: Any, grad_h: Any) -> Any:
    if np.ndim(u):
        return [_relu_loop(v, g) for v, g in zip(u, grad_h, strict=True)]
    return float(grad_h) if u > 0 else 0.0


def _relu_zip(u: Any, grad_h: Any) -> Any:
    pairs = zip(np.ravel(u), np.ravel(grad_h), strict=True)
    return np.array([g if v > 0 else 0 for v, g in pairs]).reshape(np.shape(u))


RELU_BACKWARD: list[Function] = [
    lambda u, grad_h: np.asarray(grad_h) * (np.asarray(u) > 0),
    lambda u, grad_h: np.asarray(grad_h) * np.heaviside(u, 0),
    lambda u, grad_h: np.where(np.asarray(u) <= 0, 0, grad_h),
    lambda u, grad_h: np.multiply(grad_h, course_relu_grad(u)),
    lambda u, grad_h: np.select([np.asarray(u) > 0], [np.asarray(grad_h)], 0),
    lambda u, grad_h: np.choose(np.asarray(u) > 0, [np.zeros_like(grad_h), np.asarray(grad_h)]),
    lambda u, grad_h: np.asarray(grad_h) * (np.sign(u) + 1) * np.sign(u) / 2,
    np.vectorize(lambda u, grad_h: grad_h if u > 0 else 0.0, otypes=[float]),
    _relu_masked,
    _relu_filled,
    _relu_loop,
    _relu_zip,
]

# Step 6


def _block(parameters: Parameters) -> FeedForward:
    return FeedForward(parameters["W_1"], parameters["b_1"], parameters["W_2"], parameters["b_2"], "tanh")


def _block_with(product: Product) -> Function:
    def block(parameters: Parameters, x: Any) -> Any:
        h = np.tanh(product(x, parameters["W_1"]) + parameters["b_1"])
        return product(h, parameters["W_2"]) + parameters["b_2"]

    return block


def _plain_with(affine: Function, slope: Callable[[Any, Any], Any]) -> Function:
    """The backward pass of the tanh block with another way through affine maps, and a slope made from u and h."""

    def backward(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
        u = np.asarray(x) @ parameters["W_1"] + parameters["b_1"]
        h = np.tanh(u)
        out = {}
        grad_h, out["W_2"], out["b_2"] = affine(h, parameters["W_2"], grad_y)
        out["x"], out["W_1"], out["b_1"] = affine(x, parameters["W_1"], slope(u, h) * grad_h)
        return out

    return backward


def _plain_by_module(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
    found = feed_forward_backward(_block(parameters), x, grad_y)
    return {name: getattr(found, name) for name in ("x", *NAMES)}


def _plain_token_by_token(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
    W_1, b_1, W_2 = (parameters[name] for name in NAMES[:3])
    out = {name: np.zeros(parameters[name].shape) for name in NAMES} | {"x": np.zeros(np.shape(x))}
    for place in _places(x):
        h = np.tanh(x[place] @ W_1 + b_1)
        r = (W_2 @ grad_y[place]) * (1 - h * h)
        out["W_2"] += h[:, None] * grad_y[place]
        out["b_2"] += grad_y[place]
        out["W_1"] += x[place][:, None] * r
        out["b_1"] += r
        out["x"][place] = W_1 @ r
    return out


def _sech_squared(u: Any, h: Any) -> Any:
    return 1 / np.cosh(u) ** 2


def _factors(u: Any, h: Any) -> Any:
    return (1 - h) * (1 + h)


def _square(u: Any, h: Any) -> Any:
    return 1 - h**2


TANH_BLOCK: list[Function] = [
    *map(_block_with, MATRIX_PRODUCTS),
    lambda parameters, x: _block(parameters)(x),
]
TANH_BLOCK_BACKWARD: list[Function] = [
    *(_plain_with(affine, _square) for affine in AFFINE_BACKWARD),
    _plain_with(_affine, _sech_squared),
    _plain_with(_affine, _factors),
    _plain_by_module,
    _plain_token_by_token,
]

# Step 7


def _gated_with(affine: Function, slope: Function = silu_grad) -> Function:
    def backward(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
        W_g, W_u, W_d = (parameters[name] for name in ("W_g", "W_u", "W_d"))
        u_g, up = np.asarray(x) @ W_g, np.asarray(x) @ W_u
        grad_h, grad_W_d, _ = affine(silu(u_g) * up, W_d, grad_y)
        back_g = affine(x, W_g, slope(u_g) * grad_h * up)
        back_u = affine(x, W_u, grad_h * silu(u_g))
        return {"W_d": grad_W_d, "W_g": back_g[1], "W_u": back_u[1], "x": back_g[0] + back_u[0]}

    return backward


def _gated_by_module(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
    block = GatedFeedForward(parameters["W_g"], parameters["W_u"], parameters["W_d"])
    found = gated_backward(block, x, grad_y)
    return {name: getattr(found, name) for name in ("x", "W_g", "W_u", "W_d")}


def _gated_joined(parameters: Parameters, x: Any, grad_y: Any) -> dict[str, Any]:
    """Both input matrices side by side, as one affine map."""
    W = np.hstack([parameters["W_g"], parameters["W_u"]])
    u_g, up = np.split(x @ W, 2, axis=-1)
    gate = silu(u_g)
    grad_h, grad_W_d, _ = _affine(gate * up, parameters["W_d"], grad_y)
    both = np.concatenate([grad_h * up * silu_grad(u_g), grad_h * gate], axis=-1)
    grad_x, grad_W, _ = _affine(x, W, both)
    grad_W_g, grad_W_u = np.hsplit(grad_W, 2)
    return {"x": grad_x, "W_g": grad_W_g, "W_u": grad_W_u, "W_d": grad_W_d}


def _slope_by_sigmoid(u: Any) -> Any:
    s = 1 / (1 + np.exp(-u))
    return s * (1 + u * (1 - s))


SWIGLU_BACKWARD: list[Function] = [
    *map(_gated_with, AFFINE_BACKWARD),
    _gated_with(_affine, _slope_by_sigmoid),
    _gated_by_module,
    _gated_joined,
]

# Step 8


def _joined(parameters: Parameters, parts: Any) -> dict[str, Any]:
    x, grad_y = (np.vstack([_flat(pair[k]) for pair in parts]) for k in (0, 1))
    found = _plain_by_module(parameters, x, grad_y)
    return {name: found[name] for name in parameters}


def _accumulate_in_own_arrays(parameters: Parameters, parts: Any) -> dict[str, Any]:
    total = {name: np.zeros(value.shape) for name, value in parameters.items()}
    for x, grad_y in parts:
        found = _plain_by_module(parameters, x, grad_y)
        for name, value in total.items():
            value += found[name]
    return total


def _accumulate_from_first(parameters: Parameters, parts: Any) -> dict[str, Any]:
    found = [_plain_by_module(parameters, *pair) for pair in parts]
    total = found[0]
    del total["x"]
    for other in found[1:]:
        total = {name: total[name] + other[name] for name in total}
    return total


def _accumulate_tokens(parameters: Parameters, parts: Any) -> dict[str, Any]:
    tokens = [(row, back) for x, g in parts for row, back in zip(_flat(x), _flat(g), strict=True)]
    found = [_plain_token_by_token(parameters, *token) for token in tokens]
    return {name: reduce(np.add, [one[name] for one in found]) for name in NAMES}


def _accumulate_backwards(parameters: Parameters, parts: Any) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for x, grad_y in reversed(parts):
        for name, value in _plain_by_module(parameters, x, grad_y).items():
            if name != "x":
                total[name] = total.get(name, 0) + value
    return total


def _accumulate_recursively(parameters: Parameters, parts: Any) -> dict[str, Any]:
    found = _plain_by_module(parameters, *parts[0])
    rest = _accumulate_recursively(parameters, parts[1:]) if len(parts) > 1 else dict.fromkeys(parameters, 0.0)
    return {name: found[name] + rest[name] for name in parameters}


def _accumulate_with(backward: Function) -> Function:
    def accumulate(parameters: Parameters, parts: Any) -> dict[str, Any]:
        found = [backward(parameters, x, grad_y) for x, grad_y in parts]
        return {name: sum(gradients[name] for gradients in found) for name in parameters}

    return accumulate


ACCUMULATE: list[Function] = [
    _joined,
    _accumulate_in_own_arrays,
    _accumulate_from_first,
    _accumulate_tokens,
    _accumulate_backwards,
    _accumulate_recursively,
    *map(_accumulate_with, TANH_BLOCK_BACKWARD[:5]),
    _accumulate_with(_plain_token_by_token),
]

# Step 9


def _loss_loop(y: Any, target: Any) -> float:
    total, count = 0.0, 0
    for a, b in zip(np.ravel(y), np.ravel(target), strict=True):
        total += float(a - b) ** 2
        count += 1
    return total / count


def _loss_dot(y: Any, target: Any) -> Any:
    difference = np.subtract(y, target).ravel()
    return difference @ difference / len(difference)


MEAN_SQUARED_ERROR: list[Function] = [
    course_loss,
    _loss_loop,
    _loss_dot,
    lambda y, target: np.square(np.subtract(y, target)).mean(),
    lambda y, target: np.average(np.subtract(y, target) ** 2),
    lambda y, target: np.sum(np.subtract(target, y) ** 2) / np.size(y),
    lambda y, target: float(np.linalg.norm(np.ravel(np.subtract(y, target))) ** 2 / np.size(y)),
    lambda y, target: np.mean(np.abs(np.subtract(y, target)) ** 2),
    lambda y, target: np.vdot(np.subtract(y, target), np.subtract(y, target)) / np.size(y),
    lambda y, target: np.var(np.subtract(y, target)) + np.mean(np.subtract(y, target)) ** 2,
    lambda y, target: math.fsum(((np.asarray(y) - target) ** 2).ravel()) / np.size(y),
]


def _grad_loop(y: Any, target: Any) -> Any:
    y, target = np.asarray(y), np.asarray(target)
    gradient = np.zeros(y.shape)
    for place in np.ndindex(y.shape):
        gradient[place] = 2 / y.size * (y[place] - target[place])
    return gradient


def _grad_of_copy(y: Any, target: Any) -> Any:
    gradient = np.array(y, dtype=float)
    gradient -= target
    gradient *= 2 / gradient.size
    return gradient


def _grad_nested(y: Any, target: Any, count: int = 0) -> Any:
    count = count or np.size(y)
    if np.ndim(y):
        return [_grad_nested(a, b, count) for a, b in zip(y, target, strict=True)]
    return 2 * (y - target) / count


MEAN_SQUARED_ERROR_GRAD: list[Function] = [
    _grad_loop,
    _grad_of_copy,
    _grad_nested,
    lambda y, target: (np.asarray(y) - np.asarray(target)) * (2 / np.size(y)),
    lambda y, target: np.subtract(y, target) / (np.size(y) / 2),
    lambda y, target: -2 * np.subtract(target, y) / np.size(target),
    lambda y, target: np.divide(2 * np.subtract(y, target), math.prod(np.shape(y))),
    lambda y, target: 2 * np.asarray(y) / np.size(y) - 2 * np.asarray(target) / np.size(y),
    lambda y, target: np.add(np.subtract(y, target), np.subtract(y, target)) / np.size(y),
    lambda y, target: np.vectorize(lambda a, b: 2 * (a - b) / np.size(y), otypes=[float])(y, target),
    lambda y, target: np.einsum(",...->...", 2 / np.size(y), np.subtract(y, target)),
]

# Step 10


def _step_by_loop(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    moved = {}
    for name in parameters:
        moved[name] = parameters[name] - rate * gradients[name]
    return moved


def _step_on_copies(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    moved = {name: value.copy() for name, value in parameters.items()}
    for name, value in moved.items():
        value -= rate * gradients[name]
    return moved


def _step_entry_by_entry(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    moved = {}
    for name, value in parameters.items():
        moved[name] = np.empty(value.shape)
        for place in np.ndindex(value.shape):
            moved[name][place] = value[place] - rate * gradients[name][place]
    return moved


def _step_flat(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    """All parameters in one long vector, moved at once and cut up again."""
    long = np.concatenate([v.ravel() for v in parameters.values()])
    long = long - rate * np.concatenate([gradients[name].ravel() for name in parameters])
    cuts = np.cumsum([value.size for value in parameters.values()])[:-1]
    return {n: part.reshape(parameters[n].shape) for n, part in zip(parameters, np.split(long, cuts), strict=True)}


def _step_filtered(parameters: Parameters, gradients: Parameters, rate: float) -> dict[str, Any]:
    return {n: parameters[n] - rate * g for n, g in gradients.items() if n in parameters}


GRADIENT_STEP: list[Function] = [
    _step_by_loop,
    _step_on_copies,
    _step_entry_by_entry,
    _step_flat,
    _step_filtered,
    lambda p, g, rate: {n: v + -rate * g[n] for n, v in p.items()},
    lambda p, g, rate: {n: np.subtract(v, np.multiply(rate, g[n])) for n, v in p.items()},
    lambda p, g, rate: dict(zip(p, [v - rate * g[n] for n, v in p.items()], strict=True)),
    lambda p, g, rate: {n: p[n] - g[n] * rate for n in sorted(p)},
    lambda p, g, rate: {n: -(rate * g[n] - v) for n, v in p.items()},
    lambda p, g, rate: {n: np.stack([v, g[n]], axis=-1) @ [1, -rate] for n, v in p.items()},
]

# Step 11


def _train_with(
    backward: Function, step: Function = _step_by_loop, loss_grad: Function = _grad_of_copy
) -> Function:
    def train(parameters: Parameters, x: Any, target: Any, rate: float, steps: int) -> tuple[Any, Any]:
        losses = [course_loss(_block(parameters)(x), target)]
        for _ in range(steps):
            grad_y = loss_grad(_block(parameters)(x), target)
            parameters = step(parameters, backward(parameters, x, grad_y), rate)
            losses.append(course_loss(_block(parameters)(x), target))
        return parameters, losses

    return train


def _train_plain_numpy(parameters: Parameters, x: Any, target: Any, rate: float, steps: int) -> tuple[Any, Any]:
    W_1, b_1, W_2, b_2 = (parameters[name].copy() for name in NAMES)
    rows, wanted = _flat(x), _flat(target)
    losses = np.zeros(steps + 1)
    for k in range(steps + 1):
        h = np.tanh(rows @ W_1 + b_1)
        error = h @ W_2 + b_2 - wanted
        losses[k] = (error**2).mean()
        if k == steps:
            break
        back = 2 * error / error.size
        back_u = back @ W_2.T * (1 - h**2)
        W_2 -= rate * h.T @ back
        b_2 -= rate * back.sum(axis=0)
        W_1 -= rate * rows.T @ back_u
        b_1 -= rate * back_u.sum(axis=0)
    return {"W_1": W_1, "b_1": b_1, "W_2": W_2, "b_2": b_2}, losses


def _train_with_ones(parameters: Parameters, x: Any, target: Any, rate: float, steps: int) -> list[Any]:
    """Biases as the last row of each matrix, for an input that is always 1."""
    first = np.vstack([parameters["W_1"], parameters["b_1"]])
    second = np.vstack([parameters["W_2"], parameters["b_2"]])
    rows, wanted = _flat(x), _flat(target)
    one = np.ones((len(rows), 1))
    rows, losses = np.hstack([rows, one]), []
    while True:
        h = np.hstack([np.tanh(rows @ first), one])
        error = h @ second - wanted
        losses.append(float(np.mean(error**2)))
        if len(losses) > steps:
            break
        back = error * (2 / error.size)
        slope = back @ second[:-1].T * (1 - h[:, :-1] ** 2)
        first, second = first - rate * rows.T @ slope, second - rate * h.T @ back
    trained = {"W_1": first[:-1], "b_1": first[-1], "W_2": second[:-1], "b_2": second[-1]}
    return [trained, losses]


def _train_recursively(parameters: Parameters, x: Any, target: Any, rate: float, steps: int) -> tuple[Any, Any]:
    y = _block(parameters)(x)
    losses = [course_loss(y, target)]
    if steps == 0:
        return parameters, losses
    found = _plain_by_module(parameters, x, _grad_of_copy(y, target))
    trained, rest = _train_recursively(_step_by_loop(parameters, found, rate), x, target, rate, steps - 1)
    return trained, losses + rest


def _train_keeping_history(
    parameters: Parameters, x: Any, target: Any, rate: float, steps: int
) -> tuple[Any, Any]:
    history = [parameters]
    while len(history) <= steps:
        now = history[-1]
        y = _block(now)(x)
        found = _plain_by_module(now, x, 2 * (y - target) / y.size)
        history.append(_step_filtered(now, found, rate))
    return history[-1], [course_loss(_block(one)(x), target) for one in history]


def _train_by_parts(parameters: Parameters, x: Any, target: Any, rate: float, steps: int) -> tuple[Any, Any]:
    """The batch in two parts, whose gradients are accumulated."""
    rows, wanted = _flat(x), _flat(target)
    losses = []
    for k in range(steps + 1):
        error = _block(parameters)(rows) - wanted
        losses.append(np.sum(error**2) / wanted.size)
        if k < steps:
            back = 2 * error / wanted.size
            parts = [part for part in ((rows[:2], back[:2]), (rows[2:], back[2:])) if len(part[0])]
            parameters = _step_by_loop(parameters, _accumulate_in_own_arrays(parameters, parts), rate)
    return parameters, tuple(losses)


TRAIN: list[Function] = [
    _train_with(_plain_by_module),
    _train_with(TANH_BLOCK_BACKWARD[1], _step_on_copies),
    _train_with(TANH_BLOCK_BACKWARD[11], _step_flat),
    _train_with(_plain_with(_affine, _factors), GRADIENT_STEP[6], MEAN_SQUARED_ERROR_GRAD[4]),
    _train_with(_plain_with(_affine, _sech_squared), GRADIENT_STEP[8], MEAN_SQUARED_ERROR_GRAD[5]),
    _train_plain_numpy,
    _train_with_ones,
    _train_recursively,
    _train_keeping_history,
    _train_by_parts,
]

# Step 12


def _dead_with(product: Product) -> Function:
    return lambda W_1, b_1, x: np.max(_flat(product(x, W_1) + np.asarray(b_1)), axis=0) <= 0


def _dead_by_loop(W_1: Any, b_1: Any, x: Any) -> list[bool]:
    W_1, b_1, x = np.asarray(W_1), np.asarray(b_1), np.asarray(x)
    dead = []
    for unit in range(len(b_1)):
        alive = False
        for place in _places(x):
            if float(np.dot(x[place], W_1[:, unit])) + b_1[unit] > 0:
                alive = True
        dead.append(not alive)
    return dead


def _dead_by_output(W_1: Any, b_1: Any, x: Any) -> Any:
    h = _flat(course_relu(np.dot(x, W_1) + np.asarray(b_1)))
    return ~h.any(axis=0)


def _dead_by_count(W_1: Any, b_1: Any, x: Any) -> Any:
    u = np.dot(x, W_1) + np.asarray(b_1)
    return np.sum(u > 0, axis=tuple(range(u.ndim - 1))) == 0


def _dead_by_gradient(W_1: Any, b_1: Any, x: Any) -> Any:
    slopes = course_relu_grad(np.dot(x, W_1) + np.asarray(b_1))
    return _flat(slopes).sum(axis=0) == 0


DEAD_UNITS: list[Function] = [
    *map(_dead_with, MATRIX_PRODUCTS),
    _dead_by_loop,
    _dead_by_output,
    _dead_by_count,
    _dead_by_gradient,
]

ALTERNATIVES: dict[str, list[Function]] = {
    "parameter_count": PARAMETER_COUNT,
    "tanh_slope": TANH_SLOPE,
    "numerical_gradient": NUMERICAL_GRADIENT,
    "affine_backward": AFFINE_BACKWARD,
    "relu_backward": RELU_BACKWARD,
    "tanh_block": TANH_BLOCK,
    "tanh_block_backward": TANH_BLOCK_BACKWARD,
    "swiglu_backward": SWIGLU_BACKWARD,
    "accumulate": ACCUMULATE,
    "mean_squared_error": MEAN_SQUARED_ERROR,
    "mean_squared_error_grad": MEAN_SQUARED_ERROR_GRAD,
    "gradient_step": GRADIENT_STEP,
    "train": TRAIN,
    "dead_units": DEAD_UNITS,
}

SURVIVORS: dict[str, str] = {}
