"""Right answers to the unit `mechanism`, written differently."""

import itertools
import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

import ffn
from ffn.ledger import plain_parameters
from tools.audit.alternatives.styles import MATRIX_PRODUCTS

__all__ = ["ALTERNATIVES", "SURVIVORS"]

Function = Callable[..., Any]


def _array(x: Any) -> Any:
    return np.asarray(x, dtype=float)


def _kept(x: Any) -> Any:
    """An array of floats that stays float32 where it is float32."""
    x = np.asarray(x)
    return x if x.dtype == np.float32 else x.astype(float)


# The affine map, the block


def _affine_by(product: Function) -> Function:
    return lambda x, W, b: np.asarray(product(x, W)) + np.asarray(b)


def _affine_float32(x: Any, W: Any, b: Any) -> Any:
    return np.add(_kept(x) @ _kept(W), _kept(b))


def _affine_with_ones(x: Any, W: Any, b: Any) -> Any:
    x = _array(x)
    widened = np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)
    return widened @ np.vstack([W, b])


def _affine_by_recursion(x: Any, W: Any, b: Any) -> Any:
    if np.ndim(x) > 1:
        return [_affine_by_recursion(part, W, b) for part in x]
    return [sum(x[i] * W[i][j] for i in range(len(x))) + b[j] for j in range(len(b))]


def _affine_transposed(x: Any, W: Any, b: Any) -> Any:
    x, W = _array(x), _array(W)
    rows = (W.T @ x.reshape(-1, x.shape[-1]).T).T + b
    return rows.reshape(*x.shape[:-1], W.shape[1])


def _affine_along_axis(x: Any, W: Any, b: Any) -> Any:
    return np.apply_along_axis(lambda token: np.dot(token, W) + b, -1, _array(x))


AFFINE: list[Function] = [
    *map(_affine_by, MATRIX_PRODUCTS),
    _affine_float32,
    _affine_with_ones,
    _affine_by_recursion,
    _affine_transposed,
    _affine_along_axis,
]


def _overwritten(u: Any) -> Any:
    h = np.array(u, dtype=float)
    h[h < 0] = 0
    return h


RELUS: list[Function] = [
    lambda u: np.where(np.asarray(u) > 0, u, 0),
    lambda u: (u + np.abs(u)) / 2,
    lambda u: np.asarray(u) * (np.asarray(u) > 0),
    lambda u: np.clip(u, 0, None),
    lambda u: np.vectorize(lambda v: max(v, 0.0), otypes=[float])(u),
    lambda u: np.fmax(u, 0),
    _overwritten,
    ffn.relu,
    lambda u: np.maximum(0, u),
    lambda u: np.asarray(u) - np.minimum(u, 0),
    lambda u: np.heaviside(u, 0) * u,
    lambda u: np.max([u, np.zeros_like(u)], axis=0),
    lambda u: -np.minimum(-np.asarray(u), 0),
    lambda u: np.maximum(u, 0),
    lambda u: np.maximum(u, 0),
]


def _expanded(affine: Function, relu: Function) -> Function:
    def function(x: Any, W_1: Any, b_1: Any) -> Any:
        u = np.asarray(affine(x, W_1, b_1))
        return u, relu(u)

    return function


def _expanded_to_list(x: Any, W_1: Any, b_1: Any) -> Any:
    u = _affine_float32(x, W_1, b_1)
    return [u.tolist(), np.maximum(u, 0).tolist()]


def _block(affine: Function, relu: Function) -> Function:
    return lambda x, W_1, b_1, W_2, b_2: affine(relu(np.asarray(affine(x, W_1, b_1))), W_2, b_2)


def _block_by_unit(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    x, W_1, W_2 = _array(x), _array(W_1), _array(W_2)
    y = np.zeros(x.shape[:-1] + W_2.shape[1:]) + np.asarray(b_2)
    for j in range(len(W_2)):
        y = y + np.maximum(x @ W_1[:, j] + b_1[j], 0)[..., np.newaxis] * W_2[j]
    return y


def _block_of_active_units(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    x, W_2 = _array(x), _array(W_2)
    rows = []
    for token in x.reshape(-1, x.shape[-1]):
        u = token @ _array(W_1) + b_1
        active = u > 0
        rows.append(u[active] @ W_2[active] + b_2)
    return np.reshape(rows, x.shape)


def _block_of_the_course(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return ffn.FeedForward(np.asarray(W_1), np.asarray(b_1), np.asarray(W_2), np.asarray(b_2))(x)


# Shapes and counts


def _shapes_in_order(leading: Any, d: Any, d_ff: Any) -> Any:
    shapes = {}
    shapes["x"] = tuple(leading) + (d,)  # noqa: RUF005
    shapes["W_1"] = (d, d_ff)
    shapes["b_1"] = (d_ff,)
    shapes["u"] = tuple(leading) + (d_ff,)  # noqa: RUF005
    shapes["h"] = shapes["u"]
    shapes["W_2"] = (d_ff, d)
    shapes["b_2"] = (d,)
    shapes["y"] = shapes["x"]
    return shapes


def _shapes_of_arrays(leading: Any, d: Any, d_ff: Any) -> Any:
    x, W_1, b_1 = np.ones((*leading, d)), np.ones((d, d_ff)), np.ones(d_ff)
    W_2, b_2 = np.ones((d_ff, d)), np.ones(d)
    u = x @ W_1 + b_1
    named = {"x": x, "W_1": W_1, "b_1": b_1, "u": u, "h": np.maximum(u, 0), "W_2": W_2, "b_2": b_2}
    return {name: array.shape for name, array in named.items()} | {"y": (u @ W_2 + b_2).shape}


def _shapes_as_lists(leading: Any, d: Any, d_ff: Any) -> Any:
    return {name: list(shape) for name, shape in _shapes_in_order(leading, d, d_ff).items()}


def _shapes_as_arrays(leading: Any, d: Any, d_ff: Any) -> Any:
    return {name: np.array(shape) for name, shape in _shapes_in_order(leading, d, d_ff).items()}


def _shapes_by_transpose(leading: Any, d: Any, d_ff: Any) -> Any:
    W_1 = (d, d_ff)
    return _shapes_in_order(leading, *W_1) | {"W_2": W_1[::-1], "b_2": W_1[:1], "b_1": W_1[1:]}


def _shapes_by_kind(leading: Any, d: Any, d_ff: Any) -> Any:
    shapes = {}
    for name, last in {"x": d, "u": d_ff, "h": d_ff, "y": d}.items():
        shapes[name] = (*leading, last)
    for number, (rows, columns) in enumerate([(d, d_ff), (d_ff, d)], start=1):
        shapes[f"W_{number}"], shapes[f"b_{number}"] = (rows, columns), (columns,)
    return shapes


def _shapes_by_letters(leading: Any, d: Any, d_ff: Any) -> Any:
    letters = {"L": tuple(leading), "d": (d,), "m": (d_ff,)}
    code = {"x": "Ld", "W_1": "dm", "b_1": "m", "u": "Lm", "h": "Lm", "W_2": "md", "b_2": "d", "y": "Ld"}
    return {name: sum((letters[letter] for letter in word), ()) for name, word in code.items()}


def _shapes_from_block(leading: Any, d: Any, d_ff: Any) -> Any:
    block = ffn.FeedForward(np.zeros((d, d_ff)), np.zeros(d_ff), np.zeros((d_ff, d)), np.zeros(d))
    trace = block.trace(np.zeros((*leading, d)))
    holders = {
        "x": trace,
        "u": trace,
        "h": trace,
        "y": trace,
        "W_1": block,
        "W_2": block,
        "b_1": block,
        "b_2": block,
    }
    return {name: getattr(holder, name).shape for name, holder in holders.items()}


def _shapes_from_zip(leading: Any, d: Any, d_ff: Any) -> Any:
    tokens, hidden = [*leading, d], [*leading, d_ff]
    names = ["x", "W_1", "b_1", "u", "h", "W_2", "b_2", "y"]
    shapes: list[Any] = [tokens, (d, d_ff), [d_ff], hidden, hidden, (d_ff, d), [d], tokens]
    return dict(zip(names, map(tuple, shapes), strict=True))


def _shapes_from_chain(leading: Any, d: Any, d_ff: Any) -> Any:
    near, far = tuple(itertools.chain(leading, [d])), tuple(itertools.chain(leading, [d_ff]))
    tokens = zip("xuhy", (near, far, far, near), strict=True)
    return {"W_1": (d, d_ff), "W_2": (d_ff, d), "b_1": (d_ff,), "b_2": (d,), **dict(tokens)}


def _count_by_sizes(d: Any, d_ff: Any, biases: Any = True) -> Any:
    arrays = [np.zeros((d, d_ff)), np.zeros((d_ff, d))]
    if biases:
        arrays += [np.zeros(d_ff), np.zeros(d)]
    return sum(array.size for array in arrays)


def _count_by_shapes(d: Any, d_ff: Any, biases: Any = True) -> Any:
    shapes: list[tuple[Any, ...]] = [(d, d_ff), (d_ff, d)]
    return sum(math.prod(shape) for shape in shapes + ([(d_ff,), (d,)] if biases else []))


def _count_early_return(d: Any, d_ff: Any, biases: Any = True) -> Any:
    if not biases:
        return d * d_ff + d_ff * d
    return d * d_ff + d_ff + d_ff * d + d


COUNTS: list[Function] = [
    _count_by_sizes,
    _count_by_shapes,
    _count_early_return,
    lambda d, d_ff, biases=True: 2 * d * d_ff + (d + d_ff) * biases,
    lambda d, d_ff, biases=True: (d + biases) * d_ff + (d_ff + biases) * d,
    lambda d, d_ff, biases=True: (2 * d + 1) * d_ff + d if biases else 2 * d * d_ff,
    lambda d, d_ff, biases=True: plain_parameters(d, d_ff, biases=biases),
    lambda d, d_ff, biases=True: np.int64(2 * d * d_ff) + (d + d_ff if biases else 0),
    lambda d, d_ff, biases=True: float(2 * d * d_ff + int(biases) * (d + d_ff)),
    lambda d, d_ff, biases=True: sum(n * m + bool(biases) * m for n, m in ((d, d_ff), (d_ff, d))),
    lambda d, d_ff, biases=True: np.prod([2, d, d_ff]) + (np.sum([d, d_ff]) if biases else 0),
    lambda d, d_ff, biases=True: d_ff * (2 * d + 1) + d - (0 if biases else d + d_ff),
]


# Inactive units


def _inactive_by_loop(u: Any) -> Any:
    u = np.asarray(u)
    counts = np.zeros(u.shape[:-1], dtype=int)
    for place in np.ndindex(u.shape):
        if u[place] <= 0:
            counts[place[:-1]] += 1
    return counts


def _inactive_by_recursion(u: Any) -> Any:
    return [_inactive_by_recursion(part) for part in u] if np.ndim(u) > 1 else sum(1 for v in u if v <= 0)


def _off_by_sets(u: Any) -> Any:
    rows = np.reshape(u, (-1, np.shape(u)[-1]))
    return len(set.intersection(*({j for j, value in enumerate(row) if value <= 0} for row in rows)))


def _off_crossed_out(u: Any) -> Any:
    still = np.ones(np.shape(u)[-1], dtype=bool)
    for row in np.reshape(u, (-1, still.size)):
        still[row > 0] = False
    return int(still.sum())


def _off_axis_by_axis(u: Any) -> Any:
    off: Any = np.asarray(u) <= 0
    while off.ndim > 1:
        off = off.all(axis=0)
    return np.count_nonzero(off)


INACTIVE: list[Function] = [
    _inactive_by_loop,
    _inactive_by_recursion,
    lambda u: np.count_nonzero(np.asarray(u) <= 0, axis=-1),
    lambda u: np.shape(u)[-1] - np.sum(np.asarray(u) > 0, axis=-1),
    lambda u: np.sum(np.maximum(u, 0) == 0, axis=-1),
    lambda u: np.add.reduce((np.asarray(u) <= 0).astype(int), axis=-1),
    lambda u: (~(np.asarray(u) > 0)).sum(-1),
    lambda u: np.sum(np.where(np.asarray(u) <= 0, 1, 0), axis=-1),
    lambda u: np.sum(1 - np.heaviside(u, 0), axis=-1),
    lambda u: np.apply_along_axis(lambda row: len(row[row <= 0]), -1, np.asarray(u)),
    lambda u: np.einsum("...j->...", (np.asarray(u) <= 0).astype(int)),
    lambda u: (np.asarray(u) <= 0) @ np.ones(np.shape(u)[-1]),
]

OFF: list[Function] = [
    _off_by_sets,
    _off_crossed_out,
    _off_axis_by_axis,
    lambda u: int((np.reshape(u, (-1, np.shape(u)[-1])).max(axis=0) <= 0).sum()),
    lambda u: np.sum(np.all(np.asarray(u) <= 0, axis=tuple(range(np.ndim(u) - 1)))),
    lambda u: np.sum(np.maximum(u, 0).reshape(-1, np.shape(u)[-1]).sum(axis=0) == 0),
    lambda u: np.sum(~np.any(np.reshape(u, (-1, np.shape(u)[-1])) > 0, axis=0)),
    lambda u: sum(all(v <= 0 for v in unit) for unit in np.reshape(u, (-1, np.shape(u)[-1])).T),
    lambda u: np.prod(np.reshape(np.asarray(u) <= 0, (-1, np.shape(u)[-1])).astype(int), axis=0).sum(),
    lambda u: sum(float(np.max(np.asarray(u)[..., j])) <= 0 for j in range(np.shape(u)[-1])),
    lambda u: np.shape(u)[-1] - np.count_nonzero((np.reshape(u, (-1, np.shape(u)[-1])) > 0).any(axis=0)),
    lambda u: np.sum(np.logical_and.reduce(np.reshape(u, (-1, np.shape(u)[-1])) <= 0)),
]


# Position-wise


def _each_by_recursion(block: Function, x: Any) -> Any:
    return np.array([_each_by_recursion(block, part) for part in x]) if np.ndim(x) > 1 else block(np.array(x))


def _each_by_place(block: Function, x: Any) -> Any:
    x = _array(x)
    out = None
    for place in np.ndindex(x.shape[:-1]):
        row = np.asarray(block(x[place]))
        if out is None:
            out = np.zeros((*x.shape[:-1], row.size))
        out[place] = row
    return out


def _each_by_map(block: Function, x: Any) -> Any:
    x = _array(x)
    rows = np.array(list(map(block, x.reshape(-1, x.shape[-1]))))
    return rows.reshape(x.shape[:-1] + rows.shape[1:])


def _each_by_vectorize(block: Function, x: Any) -> Any:
    return np.vectorize(block, signature="(d)->(m)")(_array(x))


def _each_stacked(block: Function, x: Any) -> Any:
    x = _array(x)
    rows = np.stack([block(row) for row in x.reshape(-1, x.shape[-1])])
    return rows.reshape(list(x.shape[:-1]) + [rows.shape[-1]])  # noqa: RUF005


def _each_in_a_matrix(block: Function, x: Any) -> Any:
    x = _array(x)
    tokens = x.reshape(-1, x.shape[-1])
    out = np.empty((len(tokens), len(block(tokens[0].copy()))))
    for t, token in enumerate(tokens):
        out[t] = block(token)
    return out.reshape(*x.shape[:-1], out.shape[1])


def _each_to_lists(block: Function, x: Any) -> Any:
    if np.ndim(x) == 1:
        return np.asarray(block(_array(x))).tolist()
    return [_each_to_lists(block, part) for part in x]


def _each_unravelled(block: Function, x: Any) -> Any:
    x = _array(x)
    leading = x.shape[:-1]
    count = math.prod(leading)
    rows = [block(x[np.unravel_index(t, leading)] if leading else x) for t in range(count)]
    return np.array(rows).reshape(*leading, -1)


def _each_of_split(block: Function, x: Any) -> Any:
    x = _array(x)
    tokens = np.split(x.reshape(-1, x.shape[-1]), x.size // x.shape[-1])
    return np.vstack([block(token[0]) for token in tokens]).reshape(*x.shape[:-1], -1)


EACH: list[Function] = [
    _each_by_recursion,
    _each_by_place,
    _each_by_map,
    _each_by_vectorize,
    _each_stacked,
    _each_in_a_matrix,
    _each_to_lists,
    _each_unravelled,
    _each_of_split,
    lambda block, x: np.apply_along_axis(block, -1, _array(x)),
    lambda block, x: np.apply_along_axis(
        lambda token: np.array(block(token)), np.ndim(x) - 1, np.array(x, dtype=float)
    ),
]


def _test_by(each: Function, near: Function) -> Function:
    def function(block: Function, x: Any) -> Any:
        together, alone = np.asarray(block(np.copy(x))), np.asarray(each(block, x))
        if together.shape != alone.shape:
            return False
        return near(together, alone)

    return function


def _test_by_exception(block: Function, x: Any) -> Any:
    try:
        np.testing.assert_allclose(_each_by_map(block, x), block(x), rtol=1e-6, atol=1e-9, strict=True)
    except AssertionError:
        return False
    return True


def _test_token_by_token(block: Function, x: Any) -> Any:
    together = np.asarray(block(x))
    if together.shape[:-1] != np.shape(x)[:-1]:
        return False
    return all(np.allclose(together[place], block(x[place])) for place in np.ndindex(np.shape(x)[:-1]))


TESTS: list[Function] = [
    _test_by_exception,
    _test_token_by_token,
    _test_by(_each_by_place, np.allclose),
    _test_by(_each_by_map, lambda a, b: bool(np.abs(a - b).max() < 1e-9)),
    _test_by(_each_stacked, lambda a, b: np.all(np.isclose(a, b))),
    _test_by(_each_by_recursion, lambda a, b: np.array_equal(np.round(a - b, 8), np.zeros(a.shape))),
    _test_by(_each_to_lists, lambda a, b: float(np.linalg.norm(a - b)) < 1e-8),
    _test_by(_each_in_a_matrix, lambda a, b: all(abs(v - w) < 1e-8 for v, w in zip(a.flat, b.flat, strict=True))),
    _test_by(_each_by_vectorize, lambda a, b: not np.any(np.abs(a - b) > 1e-7)),
    _test_by(_each_unravelled, lambda a, b: np.sum((a - b) ** 2) < 1e-16),
    _test_by(_each_of_split, lambda a, b: bool(np.allclose(b, a, rtol=1e-7, atol=1e-10))),
    _test_by(_each_by_map, lambda a, b: np.ptp(a - b) < 1e-9 and abs((a - b).flat[0]) < 1e-9),
]


# Tokens change places


def _back_by_assignment(block: Function, x: Any, order: Any) -> Any:
    y = np.asarray(block(_array(x)[..., np.asarray(order), :]))
    out = np.empty(y.shape)
    out[..., np.asarray(order), :] = y
    return out


def _back_by_loop(block: Function, x: Any, order: Any) -> Any:
    x = _array(x)
    y = block(np.stack([x[..., t, :] for t in order], axis=-2))
    out = np.zeros_like(y)
    for place, t in enumerate(order):
        out[..., t, :] = y[..., place, :]
    return out


def _back_by_index(block: Function, x: Any, order: Any) -> Any:
    order = list(order)
    y = block(_array(x)[..., order, :])
    return np.stack([y[..., order.index(t), :] for t in range(len(order))], axis=-2)


def _back_by_inverse(block: Function, x: Any, order: Any) -> Any:
    inverse = [0] * len(order)
    for place, t in enumerate(order):
        inverse[t] = place
    return block(_array(x)[..., list(order), :])[..., inverse, :]


def _back_by_matrix(block: Function, x: Any, order: Any) -> Any:
    moving = np.eye(len(order))[np.asarray(order)]
    return moving.T @ block(moving @ _array(x))


def _back_by_dictionary(block: Function, x: Any, order: Any) -> Any:
    places = {int(t): place for place, t in enumerate(order)}
    y = block(np.take(_array(x), order, axis=-2))
    return np.take(y, [places[t] for t in sorted(places)], axis=-2)


def _back_by_sorting(block: Function, x: Any, order: Any) -> Any:
    y = block(_array(x)[..., np.asarray(order), :])
    pairs = sorted((int(t), place) for place, t in enumerate(order))
    return y[..., [place for _, place in pairs], :]


def _back_with_first_axis(block: Function, x: Any, order: Any) -> Any:
    order = np.asarray(order)
    tokens_first = np.moveaxis(_array(x), -2, 0)
    y = np.moveaxis(np.asarray(block(np.moveaxis(tokens_first[order], 0, -2))), -2, 0)
    return np.moveaxis(y[np.argsort(order)], 0, -2)


def _back_along_axis(block: Function, x: Any, order: Any) -> Any:
    x, order = _array(x), np.asarray(order)
    shape = (1,) * (x.ndim - 2) + (-1, 1)
    y = np.asarray(block(np.take_along_axis(x, order.reshape(shape), axis=-2)))
    return np.take_along_axis(y, np.argsort(order).reshape(shape), axis=-2)


def _back_by_power(block: Function, x: Any, order: Any) -> Any:
    # A permutation of n numbers, applied n! times, is the identity: once less is the inverse.
    order = np.asarray(order)
    inverse = reduce(lambda so_far, _: so_far[order], range(math.factorial(len(order)) - 1), np.arange(len(order)))
    return block(_array(x)[..., order, :])[..., inverse, :]


IN_ORDER: list[Function] = [
    _back_by_assignment,
    _back_by_loop,
    _back_by_index,
    _back_by_inverse,
    _back_by_matrix,
    _back_by_dictionary,
    _back_by_sorting,
    _back_with_first_axis,
    _back_along_axis,
    _back_by_power,
    lambda block, x, order: block(_array(x)[..., order, :])[..., np.argsort(order, kind="stable"), :].copy(),
]


# The stream


def _summed(rule: Function, prepare: Function = _array) -> Function:
    def function(x: Any, block: Function) -> Any:
        x = prepare(x)
        y = np.asarray(block(x))
        if np.shape(y) != np.shape(x):
            raise ValueError("shapes differ")
        return rule(x, y)

    return function


def _summed_on_a_copy(x: Any, block: Function) -> Any:
    out = np.array(x, dtype=float)
    y = block(out.copy())
    if list(np.shape(y)) != list(out.shape):
        raise ValueError(f"{np.shape(y)} is not {out.shape}")
    out += y
    return out


def _summed_by_entry(x: Any, y: Any) -> Any:
    total = np.zeros(x.shape)
    for place in np.ndindex(x.shape):
        total[place] = x[place] + y[place]
    return total


SUMMED: list[Function] = [
    _summed_on_a_copy,
    _summed(_summed_by_entry),
    _summed(lambda x, y: x + y, _kept),
    _summed(np.add),
    _summed(lambda x, y: np.sum([x, y], axis=0)),
    _summed(lambda x, y: x - (-y)),
    _summed(lambda x, y: np.stack([x, y]).sum(axis=0)),
    _summed(lambda x, y: (x + y).tolist()),
    _summed(lambda x, y: np.array([a + b for a, b in zip(x.flat, y.flat, strict=True)]).reshape(x.shape)),
    _summed(lambda x, y: y + x, lambda x: np.array(x, dtype=float)),
    _summed(lambda x, y: 2 * (x / 2 + y / 2)),
    _summed(lambda x, y: np.einsum("k...->...", np.array([x, y]))),
]


# Layer normalization


def _moments_by_token(rule: Function) -> Function:
    """The three numbers of each token by a rule on one list of floats."""

    def function(x: Any) -> Any:
        x = _array(x)
        found = [rule([float(v) for v in token]) for token in x.reshape(-1, x.shape[-1])]
        return tuple(np.array(column).reshape(x.shape[:-1]) for column in zip(*found, strict=True))

    return function


def _by_statistics(token: Any) -> Any:
    return statistics.fmean(token), statistics.pvariance(token), statistics.pstdev(token)


def _by_fractions(token: Any) -> Any:
    exact = [Fraction(v) for v in token]
    mean = sum(exact) / Fraction(len(exact))
    variance = sum((v - mean) ** 2 for v in exact) / len(exact)
    return float(mean), float(variance), math.sqrt(variance)


def _by_sums(token: Any) -> Any:
    mean = math.fsum(token) / len(token)
    variance = math.fsum((v - mean) * (v - mean) for v in token) / len(token)
    return mean, variance, variance**0.5


def _by_pairs(token: Any) -> Any:
    variance = sum((v - w) ** 2 for v in token for w in token) / (2 * len(token) ** 2)
    return sum(token) / len(token), variance, math.sqrt(variance)


def _by_running_update(token: Any) -> Any:
    mean = square = 0.0
    for count, value in enumerate(token, start=1):
        change = value - mean
        mean += change / count
        square += change * (value - mean)
    return mean, square / len(token), math.sqrt(square / len(token))


def _moments_by_einsum(x: Any) -> Any:
    x = _array(x)
    d = x.shape[-1]
    mean = np.einsum("...i->...", x) / d
    centered = x - mean[..., np.newaxis]
    variance = np.einsum("...i,...i->...", centered, centered) / d
    return mean, variance, variance**0.5


def _moments_by_matrix(x: Any) -> Any:
    x = _array(x)
    d = x.shape[-1]
    centered = x @ (np.eye(d) - 1 / d)
    std = np.linalg.norm(centered, axis=-1) / math.sqrt(d)
    return x @ np.full(d, 1 / d), std * std, std


def _moments_by_squares(x: Any) -> Any:
    x = _array(x)
    mean = x.mean(-1)
    variance = np.maximum((x**2).mean(-1) - mean**2, 0)
    return mean, variance, np.sqrt(variance)


def _moments_by_bessel_undone(x: Any) -> Any:
    x = _array(x)
    d = x.shape[-1]
    variance = x.var(axis=-1, ddof=1) * (d - 1) / d if d > 1 else np.zeros(x.shape[:-1])
    return x.mean(axis=-1), variance, np.sqrt(variance)


def _moments_in_a_list(x: Any) -> Any:
    return [function(_kept(x), axis=-1) for function in (np.mean, np.var, np.std)]


def _moments_of_transpose(x: Any) -> Any:
    x = np.moveaxis(_array(x), -1, 0)
    return np.average(x, axis=0), np.var(x, axis=0), np.std(x, axis=0)


MOMENTS: list[Function] = [
    *map(_moments_by_token, (_by_statistics, _by_fractions, _by_sums, _by_pairs, _by_running_update)),
    _moments_by_einsum,
    _moments_by_matrix,
    _moments_by_squares,
    _moments_by_bessel_undone,
    _moments_in_a_list,
    _moments_of_transpose,
]


def _normal_from(moments: Function) -> Function:
    def function(x: Any, epsilon: Any = 1e-5) -> Any:
        mean, variance, _ = moments(x)
        return (_array(x) - np.asarray(mean)[..., None]) / np.sqrt(np.asarray(variance)[..., None] + epsilon)

    return function


def _normal_float32(x: Any, epsilon: Any = 1e-5) -> Any:
    x = _kept(x)
    centered = x - x.mean(axis=-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(axis=-1, keepdims=True) + epsilon)


def _normal_by_token(x: Any, epsilon: Any = 1e-5) -> Any:
    if np.ndim(x) > 1:
        return [_normal_by_token(part, epsilon) for part in x]
    mean = sum(x) / len(x)
    root = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + epsilon)
    return [(v - mean) / root for v in x]


def _normal_transposed(x: Any, epsilon: Any = 1e-5) -> Any:
    x = np.moveaxis(_array(x), -1, 0)
    return np.moveaxis((x - x.mean(axis=0)) * (x.var(axis=0) + epsilon) ** -0.5, 0, -1)


def _normal_by_hypotenuse(x: Any, epsilon: Any = 1e-5) -> Any:
    x = _array(x)
    return (x - x.mean(-1, keepdims=True)) / np.hypot(x.std(-1, keepdims=True), math.sqrt(epsilon))


def _normal_along_axis(x: Any, epsilon: Any = 1e-5) -> Any:
    return np.apply_along_axis(lambda v: (v - v.mean()) / np.sqrt(np.var(v) + epsilon), -1, _array(x))


def _normal_by_sums(x: Any, epsilon: Any = 1e-5) -> Any:
    x = _array(x)
    d = x.shape[-1]
    scaled = d * x - x.sum(axis=-1, keepdims=True)
    return scaled / np.sqrt((scaled * scaled).sum(axis=-1, keepdims=True) / d + d * d * epsilon)


def _normal_of_rms(x: Any, epsilon: Any = 1e-5) -> Any:
    x = _array(x)
    centered = x - x.mean(axis=-1, keepdims=True)
    return ffn.rms_norm(centered, epsilon=epsilon) if epsilon else centered / x.std(axis=-1, keepdims=True)


NORMALS: list[Function] = [
    _normal_float32,
    _normal_by_token,
    _normal_transposed,
    _normal_by_hypotenuse,
    _normal_along_axis,
    _normal_by_sums,
    _normal_of_rms,
    _normal_from(_moments_by_einsum),
    _normal_from(_moments_by_token(_by_sums)),
    _normal_from(_moments_by_token(_by_running_update)),
    lambda x, epsilon=1e-5: ffn.layer_norm(x, epsilon=epsilon),
]


def _norm_with_matrix(x: Any, gain: Any, bias: Any, epsilon: Any = 1e-5) -> Any:
    return np.asarray(_normal_transposed(x, epsilon)) @ np.diag(gain) + bias


def _norm_by_feature(x: Any, gain: Any, bias: Any, epsilon: Any = 1e-5) -> Any:
    out = np.array(_normal_from(_moments_by_einsum)(x, epsilon))
    for i in range(out.shape[-1]):
        out[..., i] = out[..., i] * gain[i] + bias[i]
    return out


def _norm_scale_and_shift(x: Any, gain: Any, bias: Any, epsilon: Any = 1e-5) -> Any:
    x = _array(x)
    scale = np.asarray(gain) / np.sqrt(x.var(axis=-1, keepdims=True) + epsilon)
    return x * scale + (np.asarray(bias) - x.mean(axis=-1, keepdims=True) * scale)


def _learned(normal: Function) -> Function:
    return lambda x, gain, bias, epsilon=1e-5: np.asarray(bias) + np.asarray(gain) * np.asarray(normal(x, epsilon))


NORMS: list[Function] = [
    *map(_learned, NORMALS[:8]),
    _norm_with_matrix,
    _norm_by_feature,
    _norm_scale_and_shift,
    lambda x, gain, bias, epsilon=1e-5: ffn.layer_norm(x, gain, bias, epsilon=epsilon),
]


def _posts(norm: Function) -> Function:
    def function(x: Any, block: Function, gain: Any, bias: Any, epsilon: Any = 1e-5) -> Any:
        x = _array(x)
        return norm(x + block(x), gain, bias, epsilon)

    return function


def _pres(norm: Function) -> Function:
    def function(x: Any, block: Function, gain: Any, bias: Any, epsilon: Any = 1e-5) -> Any:
        y = block(np.asarray(norm(x, gain, bias, epsilon)))
        return np.add(x, y)

    return function


# With and without the activation


def _collapse_at_points(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    def both(x: Any) -> Any:
        return (x @ _array(W_1) + b_1) @ _array(W_2) + b_2

    bias = both(np.zeros(len(W_1)))
    return both(np.eye(len(W_1))) - bias, bias


def _collapse_widened(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    first = np.vstack([W_1, b_1])
    product = first @ _array(W_2)
    product[-1] += b_2
    return product[:-1], product[-1]


def _collapse_squared_up(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    def homogeneous(W: Any, b: Any) -> Any:
        rows = [[*row, 0.0] for row in _array(W).tolist()]
        return np.array([*rows, [*np.asarray(b).tolist(), 1.0]])

    whole = homogeneous(W_1, b_1) @ homogeneous(W_2, b_2)
    return whole[:-1, :-1], whole[-1, :-1]


def _collapse_by(product: Function) -> Function:
    return lambda W_1, b_1, W_2, b_2: (product(W_1, W_2), np.asarray(product(b_1, W_2)) + b_2)


def _collapse_through(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return _array(W_1) @ _array(W_2), _affine_by_recursion(b_1, W_2, b_2)


def _block_of(units: Function) -> Function:
    """Weights of a block of absolute values from its units: (feature, weight in, weight out)."""

    def function(d: Any) -> Any:
        W_1, W_2 = np.zeros((d, 2 * d)), np.zeros((2 * d, d))
        for j, (feature, inward, outward) in enumerate(units(d)):
            W_1[feature, j], W_2[j, feature] = inward, outward
        return W_1, np.zeros(2 * d), W_2, np.zeros(d)

    return function


def _absolute_by_kron(d: Any) -> Any:
    W_1 = np.kron(np.eye(d), [[1.0, -1.0]])
    return W_1, np.zeros(2 * d), np.abs(W_1).T, np.zeros(d)


def _absolute_in_lists(d: Any) -> Any:
    eye = [[float(i == j) for j in range(d)] for i in range(d)]
    first = [row + [-v for v in row] for row in eye]
    return [first, [0.0] * (2 * d), eye + eye, [0.0] * d]


def _absolute_scaled(d: Any) -> Any:
    eye = np.eye(d)
    return np.concatenate([2 * eye, -eye], axis=1), np.zeros(2 * d), np.concatenate([eye / 2, eye]), np.zeros(d)


def _absolute_by_index(d: Any) -> Any:
    W_1, place = np.zeros((d, 2 * d)), np.arange(d)
    W_1[place, place], W_1[place, place + d] = 1, -1
    return W_1, np.zeros(2 * d), (W_1 != 0).T.astype(float), np.zeros(d)


def _absolute_float32(d: Any) -> Any:
    eye = np.eye(d, dtype=np.float32)
    return np.hstack([eye, -eye]), np.zeros(2 * d, np.float32), np.tile(eye, (2, 1)), np.zeros(d, np.float32)


def _absolute_whole_numbers(d: Any) -> Any:
    eye = np.eye(d, dtype=int)
    return np.block([-eye, eye]), np.zeros(2 * d, dtype=int), np.block([[eye], [eye]]), np.zeros(d, dtype=int)


ABSOLUTE: list[Function] = [
    _absolute_by_kron,
    _absolute_in_lists,
    _absolute_scaled,
    _absolute_by_index,
    _absolute_float32,
    _absolute_whole_numbers,
    _block_of(lambda d: [(i, sign, 1) for sign in (-1, 1) for i in range(d)]),
    _block_of(lambda d: [(i, sign, 1) for i in reversed(range(d)) for sign in (1, -1)]),
    _block_of(lambda d: [(i, 4 * sign, 0.25) for i in range(d) for sign in (1, -1)]),
    _block_of(lambda d: [(j // 2, (-1) ** j / (j + 1), j + 1) for j in range(2 * d)]),
    _block_of(lambda d: [(j % d, 1 if j < d else -8, 1 if j < d else 0.125) for j in range(2 * d)]),
]

ALTERNATIVES: dict[str, list[Function]] = {
    "affine": AFFINE,
    "array_shapes": [
        _shapes_in_order,
        _shapes_of_arrays,
        _shapes_as_lists,
        _shapes_as_arrays,
        _shapes_by_transpose,
        _shapes_by_kind,
        _shapes_by_letters,
        _shapes_from_block,
        _shapes_from_zip,
        _shapes_from_chain,
    ],
    "parameter_count": COUNTS,
    "expand_activate": [*map(_expanded, AFFINE, RELUS), _expanded_to_list],
    "feed_forward": [
        *map(_block, AFFINE, RELUS),
        _block_by_unit,
        _block_of_active_units,
        _block_of_the_course,
    ],
    "inactive_per_token": INACTIVE,
    "off_everywhere": OFF,
    "one_by_one": EACH,
    "is_position_wise": TESTS,
    "in_order": IN_ORDER,
    "residual": SUMMED,
    "moments": MOMENTS,
    "normalize": NORMALS,
    "layer_norm": NORMS,
    "post_norm": [_posts(norm) for norm in NORMS],
    "pre_norm": [_pres(norm) for norm in NORMS],
    "collapse": [
        *map(_collapse_by, MATRIX_PRODUCTS),
        _collapse_at_points,
        _collapse_widened,
        _collapse_squared_up,
        _collapse_through,
    ],
    "absolute_block": ABSOLUTE,
}

SURVIVORS: dict[str, str] = {}
