"""Right answers of the unit `worked-cells`, written differently."""

import itertools
import math
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from ffn.activations import silu
from ffn.blocks import FeedForward, collapse
from ffn.ledger import mebibytes, plain_parameters
from ffn.normal import normal_cdf, normal_pdf
from tools.audit.alternatives.styles import MATRIX_PRODUCTS, elementwise_styles

__all__ = ["ALTERNATIVES", "SURVIVORS"]

Function = Callable[..., Any]
Rule = Callable[[Any], Any]


def _array(values: Any) -> Any:
    return np.asarray(values, dtype=float)


def _vector(values: Iterable[Any]) -> list[float]:
    return [float(v) for v in values]


# Dot products of (..., d) with (d,), from which the answers of the first two steps are made.


def _dot_by_recursion(x: Any, w: Any) -> Any:
    if np.ndim(x) > 1:
        return np.array([_dot_by_recursion(part, w) for part in x])
    return sum(float(x_i) * float(w_i) for x_i, w_i in zip(x, w, strict=True))


def _dot_by_index(x: Any, w: Any) -> Any:
    x = _array(x)
    out = np.zeros(x.shape[:-1])
    for i in range(x.shape[-1]):
        out += x[..., i] * w[i]
    return out


def _dot_exactly_rounded(x: Any, w: Any) -> Any:
    products = _array(x) * _array(w)
    return np.apply_along_axis(math.fsum, -1, products)


_DOTS: list[Function] = [
    lambda x, w: np.dot(x, w),
    lambda x, w: np.inner(x, w),
    lambda x, w: np.asarray(x) @ np.asarray(w),
    lambda x, w: (np.asarray(x) * np.asarray(w)).sum(axis=-1),
    lambda x, w: np.einsum("...i,i->...", np.asarray(x), np.asarray(w)),
    lambda x, w: np.tensordot(x, w, axes=(-1, 0)),
    lambda x, w: (np.asarray(x) @ np.asarray(w)[:, None])[..., 0],
    lambda x, w: np.cumsum(np.multiply(x, w), axis=-1)[..., -1],
    _dot_by_recursion,
    _dot_by_index,
    _dot_exactly_rounded,
]


def _preactivation(dot: Function) -> Function:
    return lambda x, w, b: dot(x, w) + b


def _with_a_column_of_ones(x: Any, w: Any, b: float) -> Any:
    x = _array(x)
    return np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1) @ np.append(w, b)


def _zero_bias(dot: Function) -> Function:
    return lambda x, w: -1 * dot(x, w)


def _bias_change(dot: Function) -> Function:
    return lambda x, w, b: -(dot(x, w) + b)


# Zero, exactly and with a tolerance


def _whole_numbers(v: Any) -> tuple[int, int]:
    """A decimal as whole numbers: numerator and denominator."""
    return Decimal(str(v)).as_integer_ratio()


def _common_denominator(x: Any, w: Any, b: Any) -> Fraction:
    top, bottom = _whole_numbers(b)
    for x_i, w_i in zip(x, w, strict=True):
        (p, q), (r, s) = _whole_numbers(x_i), _whole_numbers(w_i)
        top, bottom = top * q * s + p * r * bottom, bottom * q * s
    return Fraction(top, bottom)


def _read(v: Any) -> Fraction:
    return Fraction(f"{v}")


def _exact_loop(x: Any, w: Any, b: Any) -> Fraction:
    total = _read(b)
    for i in range(len(x)):
        total += _read(x[i]) * _read(w[i])
    return total


def _exact_from_the_end(x: Any, w: Any, b: Any) -> Fraction:
    total = Fraction(0)
    for x_i, w_i in zip(reversed(x), reversed(w), strict=True):
        total = total + _read(w_i) * _read(x_i)
    return total + _read(b)


def _exact_recursion(x: Any, w: Any, b: Any) -> Fraction:
    if len(x) == 0:
        return _read(b)
    return _read(x[0]) * _read(w[0]) + _exact_recursion(x[1:], w[1:], b)


def _exact_scaled(x: Any, w: Any, b: Any) -> Fraction:
    """In whole multiples of a small power of ten."""
    scale = 10**30

    def whole(v: Any) -> int:
        return int(Decimal(str(v)).scaleb(30))

    total = sum(whole(x_i) * whole(w_i) for x_i, w_i in zip(x, w, strict=True)) + whole(b) * scale
    return Fraction(total, scale**2)


def _exact_objects(x: Any, w: Any, b: Any) -> Any:
    fractions = [np.array([_read(v) for v in values], dtype=object) for values in (x, w)]
    return np.dot(*fractions) + _read(b)


def _exact_decimals(x: Any, w: Any, b: Any) -> Fraction:
    terms = [Decimal(repr(float(x_i))) * Decimal(repr(float(w_i))) for x_i, w_i in zip(x, w, strict=True)]
    return Fraction(sum(terms, Decimal(str(b))))


def _exact_sumproduct(x: Any, w: Any, b: Any) -> Fraction:
    pairs = zip([*x, b], [*w, 1], strict=True)
    return sum((math.prod(map(_read, pair), start=Fraction(1)) for pair in pairs), Fraction(0))


def _terms(x: Any, w: Any, b: float) -> list[float]:
    return [float(x_i) * float(w_i) for x_i, w_i in zip(x, w, strict=True)] + [float(b)]


def _zero_loop(x: Any, w: Any, b: float, tolerance: float = 1e-12) -> bool:
    z = size = 0.0
    for term in _terms(x, w, b):
        z, size = z + term, size + abs(term)
    return abs(z) <= tolerance * size


def _zero_quotient(x: Any, w: Any, b: float, tolerance: float = 1e-12) -> bool:
    terms = _terms(x, w, b)
    size = sum(map(abs, terms))
    return size == 0 or abs(sum(terms)) / size <= tolerance


def _zero_two_sides(x: Any, w: Any, b: float, tolerance: float = 1e-12) -> bool:
    reach = tolerance * sum(abs(term) for term in _terms(x, w, b))
    return -reach <= sum(_terms(x, w, b)) <= reach


def _zero_signs_apart(x: Any, w: Any, b: float, tolerance: float = 1e-12) -> bool:
    terms = _terms(x, w, b)
    up, down = sum(t for t in terms if t > 0), -sum(t for t in terms if t < 0)
    return abs(up - down) <= tolerance * (up + down)


def _zero_squared(x: Any, w: Any, b: float, tolerance: float = 1e-12) -> Any:
    terms = np.array(_terms(x, w, b))
    return terms.sum() ** 2 <= (tolerance * np.linalg.norm(terms, 1)) ** 2


# Bounds and angles


def _norms(norm: Function) -> Function:
    def bounds(x: Any, w: Any, b: float) -> tuple[Any, Any]:
        reach = norm(x) * norm(w)
        return b - reach, b + reach

    return bounds


_NORMS: list[Function] = [
    np.linalg.norm,
    lambda v: np.sqrt(np.dot(v, v)),
    lambda v: np.sqrt((np.asarray(v) ** 2).sum()),
    lambda v: math.hypot(*v),
    lambda v: math.sqrt(math.fsum(v_i * v_i for v_i in _vector(v))),
    lambda v: math.dist(_vector(v), [0.0] * len(v)),
    lambda v: sum(abs(v_i) ** 2 for v_i in _vector(v)) ** 0.5,
    lambda v: reduce(math.hypot, _vector(v), 0.0),
    lambda v: np.sqrt(np.einsum("i,i->", v, v)),
    lambda v: np.linalg.norm(np.asarray(v)[None], axis=-1)[0],
]


def _range_list(x: Any, w: Any, b: float) -> list[float]:
    reach = math.sqrt(sum(v * v for v in _vector(x)) * sum(v * v for v in _vector(w)))
    return [b + sign * reach for sign in (-1, 1)]


def _range_array(x: Any, w: Any, b: float) -> Any:
    return b + np.array([-1, 1]) * np.linalg.norm(np.outer(x, w))


def _clipped_angle(norm: Function, clip: Function) -> Function:
    return lambda x, w: clip(np.dot(x, w) / (norm(x) * norm(w)))


_CLIPS: list[Function] = [
    lambda c: np.rad2deg(np.arccos(np.clip(c, -1.0, 1.0))),
    lambda c: math.degrees(math.acos(min(1.0, max(-1.0, c)))),
    lambda c: 180 * np.arccos(np.minimum(1, np.maximum(-1, c))) / np.pi,
    lambda c: 0.0 if c >= 1 else 180.0 if c <= -1 else math.degrees(math.acos(c)),
    lambda c: 90 - math.degrees(math.asin(max(min(float(c), 1.0), -1.0))),
]


def _angle_of_units(x: Any, w: Any) -> Any:
    a, c = _array(x) / np.linalg.norm(x), _array(w) / np.linalg.norm(w)
    return 2 * np.degrees(np.arctan2(np.linalg.norm(a - c), np.linalg.norm(a + c)))


def _angle_by_parts(x: Any, w: Any) -> Any:
    x, w = _array(x), _array(w)
    along = x @ w / np.linalg.norm(w)
    across = np.linalg.norm(x - along * w / np.linalg.norm(w))
    return np.degrees(np.arctan2(across, along))


def _angle_by_sides(x: Any, w: Any) -> Any:
    a, c, side = (float(np.linalg.norm(v)) for v in (x, w, np.subtract(x, w)))
    return math.degrees(math.acos(max(-1.0, min(1.0, (a * a + c * c - side * side) / (2 * a * c)))))


# The block, its tokens in another order, and the test of a map


def _block(product: Function, activation: Function = lambda u: np.maximum(u, 0)) -> Function:
    def forward(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any, Any]:
        u = product(X, W_1) + np.asarray(b_1)
        h = activation(u)
        return u, h, product(h, W_2) + np.asarray(b_2)

    return forward


def _token_by_token(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any, Any]:
    if np.ndim(X) > 1:
        stages = [_token_by_token(part, W_1, b_1, W_2, b_2) for part in X]
        u, h, y = (np.array(stage) for stage in zip(*stages, strict=True))
        return u, h, y
    W_1, W_2 = _array(W_1), _array(W_2)
    u = np.array([_dot_by_recursion(X, column) + b for column, b in zip(W_1.T, b_1, strict=True)])
    h = np.array([v if v > 0 else 0.0 for v in u])
    return u, h, np.array([_dot_by_recursion(h, column) + b for column, b in zip(W_2.T, b_2, strict=True)])


def _bias_as_a_weight(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> list[Any]:
    def affine(a: Any, W: Any, b: Any) -> Any:
        a = _array(a)
        return np.concatenate([a, np.ones((*a.shape[:-1], 1))], axis=-1) @ np.vstack([W, b])

    u = affine(X, W_1, b_1)
    h = (u + np.abs(u)) / 2
    return [u, h, affine(h, W_2, b_2)]


def _trace(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any, Any]:
    stages = FeedForward(W_1, b_1, W_2, b_2).trace(X)
    return stages.u, stages.h, stages.y


_ACTIVATIONS: list[Function] = [
    lambda u: np.maximum(u, 0),
    lambda u: np.where(u > 0, u, 0),
    lambda u: u * (u > 0),
    lambda u: np.clip(u, 0, None),
    lambda u: (np.abs(u) + u) / 2,
]
_BLOCKS: list[Function] = [
    *map(_block, MATRIX_PRODUCTS, itertools.cycle(_ACTIVATIONS)),
    _token_by_token,
    _bias_as_a_weight,
    _trace,
]


def _before_the_block(index: Function, forward: Function) -> Function:
    return lambda order, X, *weights: forward(index(np.asarray(X), order), *weights)[2]


def _after_the_block(index: Function, forward: Function) -> Function:
    return lambda order, X, *weights: index(np.asarray(forward(X, *weights)[2]), order)


def _permutation(X: Any, order: Any) -> Any:
    return np.eye(len(order))[np.array(order)] @ X


def _moved_axis(X: Any, order: Any) -> Any:
    return np.moveaxis(np.moveaxis(X, -2, 0)[list(order)], 0, -2)


def _placed(X: Any, order: Any) -> Any:
    out = np.empty_like(X)
    for new, old in enumerate(order):
        out[..., new, :] = X[..., old, :]
    return out


_INDEXES: list[Function] = [
    lambda X, order: X[..., order, :],
    lambda X, order: np.take(X, order, axis=-2),
    lambda X, order: np.stack([X[..., i, :] for i in order], axis=-2),
    _permutation,
    _moved_axis,
    _placed,
]


def _each_alone(f: Rule, X: Any) -> bool:
    whole = f(X)
    agrees = True
    for i, x in enumerate(X):
        agrees &= np.allclose(f(np.array([x]))[0], whole[i])
    return agrees


def _stacked(f: Rule, X: Any) -> bool:
    return np.allclose(f(X), np.vstack([f(x.reshape(1, -1)) for x in X]))


def _concatenated(f: Rule, X: Any) -> Any:
    return np.isclose(np.concatenate([f(x[None]) for x in X]), f(X)).all()


def _largest_difference(f: Rule, X: Any) -> bool:
    together = f(X)
    gaps = [np.abs(together[i] - f(X[[i]])[0]).max() for i in range(X.shape[0])]
    return bool(max(gaps) < 1e-9)


def _any_that_differs(f: Rule, X: Any) -> bool:
    return not any(not np.allclose(row, f(x[np.newaxis, :])[0]) for row, x in zip(f(X), X, strict=True))


def _counted(f: Rule, X: Any) -> bool:
    rows = list(f(X))
    return sum(np.allclose(rows[i], f(X[i : i + 1]).ravel()) for i in range(len(X))) == len(X)


def _norm_of_difference(f: Rule, X: Any) -> bool:
    alone = np.array([f(X[i : i + 1])[0] for i in range(len(X))])
    return bool(np.linalg.norm(f(X) - alone) <= 1e-9 * (1 + np.linalg.norm(alone)))


def _split(f: Rule, X: Any) -> bool:
    return bool(np.allclose(np.vstack([f(part) for part in np.split(X, len(X))]), f(X), atol=1e-10))


def _by_map(f: Rule, X: Any) -> bool:
    return np.allclose(np.apply_along_axis(lambda x: f(np.atleast_2d(x))[0], 1, X), f(X))


def _rounded(f: Rule, X: Any) -> bool:
    alone = np.stack([np.squeeze(f(x[None]), axis=0) for x in X])
    return not np.any(np.round(f(X) - alone, 9))


# A matrix from its columns


def _by_position(entries: Any, rows: int) -> Any:
    out = np.empty((rows, len(entries) // rows))
    for k, entry in enumerate(entries):
        out[k % rows, k // rows] = entry
    return out


def _by_divmod(entries: Any, rows: int) -> Any:
    out = [[0.0] * (len(entries) // rows) for _ in range(rows)]
    for k, entry in enumerate(entries):
        j, i = divmod(k, rows)
        out[i][j] = entry
    return out


# Two affine maps, and the one that replaces them


def _steps(product: Function) -> Function:
    def both(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
        u = product(x, W_1) + np.asarray(b_1)
        return u, product(u, W_2) + np.asarray(b_2)

    return both


def _fold(product: Function) -> Function:
    return lambda W_1, b_1, W_2, b_2: (product(W_1, W_2), product(b_1, W_2) + np.asarray(b_2))


def _through_the_fold(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    W, b = collapse(W_1, b_1, W_2, b_2)
    return _array(x) @ _array(W_1) + b_1, _array(x) @ W + b


def _by_images(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    """The bias is the image of zero, and the rows are what the unit vectors add to it."""
    b = np.dot(np.zeros(len(W_1)) @ _array(W_1) + b_1, W_2) + b_2
    rows = [np.dot(np.dot(e, W_1) + b_1, W_2) + b_2 - b for e in np.eye(len(W_1))]
    return np.array(rows), b


def _augmented(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    def square(W: Any, b: Any) -> Any:
        W = _array(W)
        top = np.hstack([W, np.zeros((len(W), 1))])
        return np.vstack([top, np.append(b, 1.0)])

    product = square(W_1, b_1) @ square(W_2, b_2)
    return product[:-1, :-1], product[-1, :-1]


def _transposed(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    return (_array(W_2).T @ _array(W_1).T).T, _array(W_2).T @ _array(b_1) + b_2


# Counts and bytes


def _summed(parts: Callable[[int, int], Iterable[int]]) -> Function:
    """A dictionary of counts from a rule for the four parts."""

    def counts(d: int, d_ff: int) -> dict[str, Any]:
        found: dict[str, Any] = dict(zip(("W_1", "b_1", "W_2", "b_2"), parts(d, d_ff), strict=True))
        for name, keys in (("weights", ("W_1", "W_2")), ("biases", ("b_1", "b_2"))):
            found[name] = sum(found[key] for key in keys)
        found["sublayer"] = found["weights"] + found["biases"]
        return found

    return counts


def _closed_forms(d: int, d_ff: int) -> dict[str, int]:
    parts = {"W_1": d * d_ff, "b_1": d_ff, "W_2": d * d_ff, "b_2": d}
    return parts | {"weights": 2 * d * d_ff, "biases": d + d_ff, "sublayer": 2 * d * d_ff + d_ff + d}


def _ledger_first(d: int, d_ff: int) -> dict[str, int]:
    whole, weights = plain_parameters(d, d_ff), plain_parameters(d, d_ff, biases=False)
    counts = {"sublayer": whole, "weights": weights, "biases": whole - weights}
    return {**counts, "W_1": weights // 2, "W_2": weights // 2, "b_2": d, "b_1": whole - weights - d}


def _factored(d: int, d_ff: int) -> dict[str, int]:
    sublayer = d_ff * (d + 1) + d * (d_ff + 1)
    return {
        "W_1": d_ff * d,
        "b_1": d_ff,
        "W_2": d * d_ff,
        "b_2": d,
        "weights": sublayer - d - d_ff,
        "biases": d_ff + d,
        "sublayer": sublayer,
    }


def _shapes(d: int, d_ff: int) -> list[tuple[int, ...]]:
    return [(d, d_ff), (d_ff,), (d_ff, d), (d,)]


def _stack(block: Callable[[int, int], Any]) -> Function:
    return lambda d, d_ff, layers: layers * block(d, d_ff)


def _count(d: int, d_ff: int) -> int:
    return 2 * d * d_ff + d + d_ff


def _added_up(d: int, d_ff: int, layers: int) -> int:
    total = 0
    for _ in range(layers):
        total += _count(d, d_ff)
    return total


def _memory(size: Callable[[int, int], Any], unit: Callable[[Any], Any]) -> Function:
    """Bytes from a rule for the count and the bits, MiB from a rule for the bytes."""

    def memory(d: int, d_ff: int, layers: int, bits: int = 32) -> tuple[Any, Any]:
        number = size(layers * _count(d, d_ff), bits)
        return number, unit(number)

    return memory


_SIZES: list[Callable[[int, int], Any]] = [
    lambda count, bits: count * bits / 8,
    lambda count, bits: count * (bits // 8),
    lambda count, bits: bits * count // 8,
    lambda count, bits: (count * bits) >> 3,
    lambda count, bits: np.int64(count) * bits / 8,
]
_UNITS: list[Callable[[Any], Any]] = [
    lambda size: size / 2**20,
    lambda size: size / 1024 / 1024,
    lambda size: size / 1048576,
    mebibytes,
    lambda size: math.ldexp(size, -20),
    lambda size: size / (1 << 20),
    lambda size: size * 2.0**-20,
]


# Gaps and tails


def _pair(silu_rule: Rule, gelu_rule: Rule) -> Rule:
    return lambda z: {"silu": silu_rule(z), "gelu": gelu_rule(z)}


def _gate_gap(v: float) -> float:
    return 1 / (1 + math.exp(v))


def _normal_gap(v: float) -> float:
    return math.erfc(v / math.sqrt(2)) / 2


def _law_of_silu(v: float) -> float:
    return v * math.exp(v)


def _law_of_gelu(v: float) -> float:
    return -math.exp(-v * v / 2) / math.sqrt(2 * math.pi)


def _exp(z: Any) -> Any:
    return np.exp(-np.logaddexp(0, z))


def _float32_kept(z: Any) -> dict[str, Any]:
    z = np.asarray(z) if np.asarray(z).dtype == np.float32 else _array(z)
    return {"silu": 1 / (1 + np.exp(z)), "gelu": normal_cdf(-z)}


def _float32_laws(z: Any) -> dict[str, Any]:
    z = np.asarray(z) if np.asarray(z).dtype == np.float32 else _array(z)
    return {"silu": np.exp(z) * z, "gelu": -normal_pdf(z)}


def _styles(silu_rule: Callable[[float], float], gelu_rule: Callable[[float], float]) -> list[Function]:
    styles = zip(elementwise_styles(silu_rule), elementwise_styles(gelu_rule), strict=True)
    return [_pair(first, second) for first, second in styles]


# Cells, and what a change alters


def _sorted_by(rule: Callable[[float, float], float]) -> list[Function]:
    """Five functions of an array and a tolerance that return an array, with the same rule for one number."""

    def with_tolerance(place: int) -> Function:
        return lambda u, tolerance=1e-9: elementwise_styles(lambda v: rule(v, tolerance))[place](u)

    return [with_tolerance(place) for place in (0, 2, 3, 4, 5)]


def _cell(v: float, tolerance: float) -> int:
    if abs(v) <= tolerance:
        return 0
    return 1 if v > 0 else -1


def _cells_by_masks(u: Any, tolerance: float = 1e-9) -> Any:
    u = _array(u)
    out = np.zeros(u.shape, dtype=int)
    out[u > tolerance] = 1
    out[u < -tolerance] = -1
    return out


def _cells_by_difference(u: Any, tolerance: float = 1e-9) -> Any:
    u = np.asarray(u)
    return (u > tolerance).astype(int) - (u < -tolerance).astype(int)


def _cells_by_select(u: Any, tolerance: float = 1e-9) -> Any:
    u = _array(u)
    return np.select([u > tolerance, u < -tolerance], [1, -1], default=0)


def _cells_by_bins(u: Any, tolerance: float = 1e-9) -> Any:
    u = _array(u)
    return np.where(u < -tolerance, -1, np.where(u <= tolerance, 0, 1))


def _cells_by_product(u: Any, tolerance: float = 1e-9) -> Any:
    return np.sign(u) * (np.abs(u) > tolerance)


def _altered(units: Function, tokens: Function) -> Function:
    """Counts from a rule for the two arrays u and one for the two arrays y."""

    def compare(before: Any, after: Any) -> tuple[Any, Any]:
        (u, y), (u_new, y_new) = before, after
        return units(_array(u), _array(u_new)), tokens(_array(y), _array(y_new))

    return compare


def _units_by_loop(u: Any, u_new: Any) -> int:
    return sum(_cell(a, 1e-9) != _cell(c, 1e-9) for a, c in zip(u.flat, u_new.flat, strict=True))


def _units_by_product(u: Any, u_new: Any) -> int:
    return int(u.size) - int((_cells_by_masks(u) == _cells_by_masks(u_new)).sum())


_UNIT_COUNTS: list[Function] = [
    lambda u, u_new: int((_cells_by_masks(u) != _cells_by_masks(u_new)).sum()),
    lambda u, u_new: np.count_nonzero(_cells_by_bins(u) - _cells_by_bins(u_new)),
    lambda u, u_new: len(np.argwhere(_cells_by_select(u) != _cells_by_select(u_new))),
    _units_by_loop,
    _units_by_product,
]
_TOKEN_COUNTS: list[Function] = [
    lambda y, y_new: int((np.abs(y - y_new).max(axis=-1) > 1e-9).sum()),
    lambda y, y_new: np.count_nonzero((np.abs(y - y_new) > 1e-9).any(axis=-1)),
    lambda y, y_new: sum(not np.allclose(y[place], y_new[place]) for place in np.ndindex(y.shape[:-1])),
    lambda y, y_new: y[..., 0].size - int(np.isclose(y, y_new, rtol=0, atol=1e-9).all(axis=-1).sum()),
    lambda y, y_new: len({place[:-1] for place in np.ndindex(y.shape) if abs(y[place] - y_new[place]) > 1e-9}),
]


ALTERNATIVES: dict[str, list[Function]] = {
    "preactivation": [*map(_preactivation, _DOTS), _with_a_column_of_ones],
    "zero_bias": [*map(_zero_bias, _DOTS), lambda x, w: np.asarray(x) @ np.negative(w)],
    "bias_change": [*map(_bias_change, _DOTS), lambda x, w, b: np.asarray(x) @ np.negative(w) - b],
    "exact_preactivation": [
        _common_denominator,
        _exact_loop,
        _exact_from_the_end,
        _exact_recursion,
        _exact_scaled,
        _exact_objects,
        _exact_decimals,
        _exact_sumproduct,
        lambda x, w, b: Fraction(
            sum((Decimal(str(p)) * Decimal(str(q)) for p, q in zip(x, w, strict=True)), Decimal(str(b)))
        ),
        lambda x, w, b: reduce(operator.add, map(operator.mul, map(_read, x), map(_read, w)), _read(b)),
    ],
    "is_zero": [
        _zero_loop,
        _zero_quotient,
        _zero_two_sides,
        _zero_signs_apart,
        _zero_squared,
        lambda x, w, b, tolerance=1e-12: (
            abs(math.fsum(_terms(x, w, b))) <= tolerance * math.fsum(map(abs, _terms(x, w, b)))
        ),
        lambda x, w, b, tolerance=1e-12: (
            np.abs(np.dot(x, w) + b) <= tolerance * (np.dot(np.abs(x), np.abs(w)) + abs(b))
        ),
        lambda x, w, b, tolerance=1e-12: (
            not (np.abs(np.inner(x, w) + b) > tolerance * (np.abs(np.multiply(x, w)).sum() + np.abs(b)))
        ),
        lambda x, w, b, tolerance=1e-12: np.isclose(
            np.dot(x, w) + b, 0, rtol=0, atol=tolerance * np.sum(np.abs(_terms(x, w, b)))
        ),
        lambda x, w, b, tolerance=1e-12: math.isclose(
            sum(_terms(x, w, b)), 0, abs_tol=tolerance * sum(map(abs, _terms(x, w, b)))
        ),
    ],
    "preactivation_range": [*map(_norms, _NORMS), _range_list, _range_array],
    "angle": [
        *map(_clipped_angle, _NORMS, itertools.cycle(_CLIPS)),
        _angle_of_units,
        _angle_by_parts,
        _angle_by_sides,
    ],
    "run_block": _BLOCKS,
    "outputs_in_order": [
        *map(_before_the_block, _INDEXES, _BLOCKS),
        *map(_after_the_block, _INDEXES, reversed(_BLOCKS)),
    ],
    "position_wise": [
        _each_alone,
        _stacked,
        _concatenated,
        _largest_difference,
        _any_that_differs,
        _counted,
        _norm_of_difference,
        _split,
        _by_map,
        _rounded,
    ],
    "from_columns": [
        lambda entries, rows: np.reshape(entries, (rows, -1), order="F"),
        lambda entries, rows: np.asarray(entries).reshape(-1, rows).T,
        lambda entries, rows: np.transpose(np.reshape(entries, (len(entries) // rows, rows))),
        lambda entries, rows: np.array([entries[i::rows] for i in range(rows)]),
        lambda entries, rows: [list(entries[i::rows]) for i in range(rows)],
        lambda entries, rows: np.column_stack([entries[k : k + rows] for k in range(0, len(entries), rows)]),
        lambda entries, rows: np.stack(np.split(np.asarray(entries), len(entries) // rows), axis=1),
        lambda entries, rows: np.array(list(zip(*[iter(entries)] * rows, strict=True))).T,
        lambda entries, rows: np.einsum("ji->ij", np.reshape(entries, (-1, rows))),
        lambda entries, rows: np.swapaxes(np.asarray(entries, dtype=float).reshape(-1, rows), 0, 1),
        _by_position,
        _by_divmod,
    ],
    "two_steps": [*map(_steps, MATRIX_PRODUCTS), _through_the_fold],
    "collapse": [*map(_fold, MATRIX_PRODUCTS), _by_images, _augmented, _transposed],
    "parameter_counts": [
        _closed_forms,
        _ledger_first,
        _factored,
        _summed(lambda d, d_ff: (d * d_ff, d_ff, d_ff * d, d)),
        _summed(lambda d, d_ff: map(math.prod, _shapes(d, d_ff))),
        _summed(lambda d, d_ff: (np.zeros(shape).size for shape in _shapes(d, d_ff))),
        _summed(lambda d, d_ff: [int(np.prod(shape)) for shape in _shapes(d, d_ff)]),
        _summed(lambda d, d_ff: (sum(d for _ in range(d_ff)), d_ff, sum(d_ff for _ in range(d)), d)),
        _summed(lambda d, d_ff: np.array([d_ff * d, d_ff, d * d_ff, d])),
        _summed(lambda d, d_ff: (len(list(np.ndindex(shape))) for shape in _shapes(d, d_ff))),
    ],
    "weights_at_ratio": [
        lambda d, ratio=4: 2 * ratio * d * d,
        lambda d, ratio=4: d * (ratio * d) + (ratio * d) * d,
        lambda d, ratio=4: plain_parameters(d, ratio * d, biases=False),
        lambda d, ratio=4: plain_parameters(d, ratio * d) - (1 + ratio) * d,
        lambda d, ratio=4: _closed_forms(d, ratio * d)["weights"],
        lambda d, ratio=4: ratio * (d**2 + d**2),
        lambda d, ratio=4: sum(math.prod(shape) for shape in ((d, ratio * d), (ratio * d, d))),
        lambda d, ratio=4: int(np.multiply(d, d) * 2 * ratio),
        lambda d, ratio=4: pow(d, 2) * (ratio << 1),
        lambda d, ratio=4: math.prod((2, ratio, d, d)),
    ],
    "stack_parameters": [
        _stack(plain_parameters),
        _stack(_count),
        _stack(lambda d, d_ff: _factored(d, d_ff)["sublayer"]),
        _stack(lambda d, d_ff: sum(map(math.prod, _shapes(d, d_ff)))),
        _added_up,
        lambda d, d_ff, layers: sum([_count(d, d_ff)] * layers),
        lambda d, d_ff, layers: 2 * layers * d * d_ff + layers * (d + d_ff),
        lambda d, d_ff, layers: int(np.full(layers, _count(d, d_ff)).sum()),
        lambda d, d_ff, layers: layers * ((d + 1) * (d_ff + 1) - 1 + d * d_ff),
        lambda d, d_ff, layers: np.int64(_count(d, d_ff)) * layers,
    ],
    "stack_memory": [*map(_memory, itertools.cycle(_SIZES), [*_UNITS, *_UNITS[:4]])],
    "relative_gaps": [
        *_styles(_gate_gap, _normal_gap),
        _float32_kept,
        _pair(lambda z: 1 / (1 + np.exp(_array(z))), lambda z: normal_cdf(-_array(z))),
        _pair(lambda z: _exp(_array(z)), lambda z: normal_cdf(np.negative(z))),
        _pair(
            lambda z: np.exp(-_array(z)) / (1 + np.exp(-_array(z))),
            np.vectorize(lambda v: 0.5 * math.erfc(v * math.sqrt(0.5)), otypes=[float]),
        ),
        _pair(lambda z: silu(-_array(z)) / -_array(z), lambda z: -_array(z) * normal_cdf(-_array(z)) / -_array(z)),
    ],
    "tail_laws": [
        *_styles(_law_of_silu, _law_of_gelu),
        _float32_laws,
        _pair(lambda z: _array(z) / np.exp(-_array(z)), lambda z: -normal_pdf(_array(z))),
        _pair(
            lambda z: -np.exp(_array(z) + np.log(-_array(z))),
            lambda z: -np.exp(-(_array(z) ** 2) / 2 - np.log(2 * np.pi) / 2),
        ),
        _pair(
            lambda z: np.multiply(np.exp(z), z),
            lambda z: -np.square(np.exp(-np.square(_array(z)) / 4)) / np.sqrt(2 * np.pi),
        ),
    ],
    "cells": [
        *_sorted_by(_cell),
        _cells_by_masks,
        _cells_by_difference,
        _cells_by_select,
        _cells_by_bins,
        _cells_by_product,
    ],
    "altered": [_altered(units, tokens) for units in _UNIT_COUNTS for tokens in _TOKEN_COUNTS][::2],
}

SURVIVORS: dict[str, str] = {}
