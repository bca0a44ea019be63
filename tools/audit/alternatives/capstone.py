"""Right answers to the unit `capstone`, written in other ways, and mutants that may survive."""

import math
import statistics
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ffn import norms
from ffn.activations import gelu
from ffn.normal import normal_cdf
from tools.audit.alternatives.styles import MATRIX_PRODUCTS, elementwise_styles

__all__ = ["ALTERNATIVES", "SURVIVORS"]

Function = Callable[..., Any]

# Shapes and stored weights


def _widths_by_unpacking(layer: Any) -> Any:
    tokens, d = layer["input"].shape
    _, units = layer["project.weight"].shape
    return {"tokens": tokens, "d": d, "units": units}


def _widths_by_counting(layer: Any) -> Any:
    return {
        "tokens": sum(1 for _ in layer["input"]),
        "d": sum(1 for _ in layer["project.weight"]),
        "units": sum(1 for _ in layer["expand.weight"]),
    }


def _widths_by_division(layer: Any) -> Any:
    d = len(layer["project.weight"])
    return {"units": layer["expand.weight"].size // d, "d": d, "tokens": layer["input"].size // d}


def _widths_by_update(layer: Any) -> Any:
    found = {}
    found["tokens"] = np.shape(layer["input"])[0]
    found["d"], found["units"] = np.shape(layer["project.weight"])
    return found


def _turned_by_loops(w: Any) -> Any:
    out = np.empty((w.shape[1], w.shape[0]), dtype=w.dtype)
    for i in range(w.shape[0]):
        for j in range(w.shape[1]):
            out[j, i] = w[i, j]
    return out


def _turned_by_columns(w: Any) -> Any:
    return np.array([w[:, column] for column in range(w.shape[1])])


def _turned_by_filling(w: Any) -> Any:
    out = np.empty(w.shape[::-1], dtype=w.dtype)
    for i, row in enumerate(w):
        out[:, i] = row
    return out


def _both(turn: Function) -> Function:
    return lambda expand, project: (turn(expand), turn(project))


# Products with something added


def _affine_with(product: Function) -> Function:
    return lambda x, W_1, b_1: product(x, W_1) + b_1


def _output_with(product: Function) -> Function:
    return lambda h, W_2, others, b_2: product(h, W_2) + others + b_2


def _affine_in_one_product(x: Any, W_1: Any, b_1: Any) -> Any:
    longer = np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)
    return longer @ np.vstack([W_1, b_1])


def _output_in_place(h: Any, W_2: Any, others: Any, b_2: Any) -> Any:
    y = np.array(others)
    y += b_2
    for unit in range(W_2.shape[0]):
        y += h[..., unit : unit + 1] * W_2[unit]
    return y


def _output_in_one_product(h: Any, W_2: Any, others: Any, b_2: Any) -> Any:
    longer = np.concatenate([h, np.ones((*h.shape[:-1], 1))], axis=-1)
    return longer @ np.vstack([W_2, b_2]) + others


# GELU


def _gelu_by_upper_tail(u: Any) -> Any:
    u = np.asarray(u, dtype=float)
    return np.maximum(u, 0) - np.abs(u) * normal_cdf(-np.abs(u))


def _gelu_by_erf(u: Any) -> Any:
    erf = np.vectorize(math.erf, otypes=[float])
    gate = 0.5 + 0.5 * erf(np.asarray(u) / 2**0.5)
    return gate * u


# The norm


def _norm_by_var(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    mean, variance = v.mean(-1, keepdims=True), v.var(-1, keepdims=True)
    return gain * ((v - mean) / np.sqrt(variance + epsilon)) + bias


def _norm_by_squares(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    v = np.asarray(v, dtype=float)
    mean = v.mean(axis=-1)[..., np.newaxis]
    variance = ((v - mean) ** 2).sum(axis=-1)[..., np.newaxis] / v.shape[-1]
    return (v - mean) * (variance + epsilon) ** -0.5 * gain + bias


def _norm_by_std(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    root = np.sqrt(np.std(v, axis=-1, keepdims=True) ** 2 + epsilon)
    return np.multiply(np.divide(v - np.mean(v, axis=-1, keepdims=True), root), gain) + bias


def _norm_by_hypot(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    root = np.hypot(v.std(axis=-1), math.sqrt(epsilon))
    return (v - v.mean(axis=-1, keepdims=True)) / root[..., None] * gain + bias


def _norm_from_the_front(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    first = np.moveaxis(v, -1, 0)
    normal = (first - first.mean(axis=0)) / np.sqrt(first.var(axis=0) + epsilon)
    return np.moveaxis(normal, 0, -1) * gain + bias


def _norm_with_bessel_undone(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    d = v.shape[-1]
    variance = v.var(axis=-1, ddof=1, keepdims=True) * (d - 1) / d
    return (v - v.mean(axis=-1, keepdims=True)) / np.sqrt(variance + epsilon) * gain + bias


def _norm_by_projection(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    d = v.shape[-1]
    centred = v @ (np.eye(d) - np.ones((d, d)) / d)
    variance = np.einsum("...i,...i->...", centred, centred) / d
    return centred / np.sqrt(variance + epsilon)[..., None] * gain + bias


def _norm_by_tokens(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    v = np.asarray(v)
    rows = []
    for row in v.reshape(-1, v.shape[-1]):
        mean = sum(row) / len(row)
        variance = sum((a - mean) ** 2 for a in row) / len(row)
        rows.append(
            [(a - mean) / math.sqrt(variance + epsilon) * g + b for a, g, b in zip(row, gain, bias, strict=True)]
        )
    return np.array(rows).reshape(v.shape)


def _norm_by_statistics(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    def one(token: Any) -> Any:
        values = [float(a) for a in token]
        root = math.sqrt(statistics.pvariance(values) + epsilon)
        return (token - statistics.fmean(values)) / root * gain + bias

    return np.apply_along_axis(one, -1, np.asarray(v, dtype=float))


def _norm_by_recursion(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    if v.ndim > 1:
        return np.stack([_norm_by_recursion(part, gain, bias, epsilon) for part in v])
    return (v - v.mean()) / math.sqrt(v.var() + epsilon) * gain + bias


NORMS: list[Function] = [
    lambda v, gain, bias, epsilon: norms.layer_norm(v, gain, bias, epsilon=epsilon),
    _norm_by_var,
    _norm_by_squares,
    _norm_by_std,
    _norm_by_hypot,
    _norm_from_the_front,
    _norm_with_bessel_undone,
    _norm_by_projection,
    _norm_by_tokens,
    _norm_by_statistics,
    _norm_by_recursion,
]


def _summed(norm: Function, add: Function) -> Function:
    return lambda x, y, gain, bias, epsilon: norm(add(x, y), gain, bias, epsilon)


ADDITIONS: list[Function] = [
    lambda x, y: x + y,
    np.add,
    lambda x, y: y + x,
    lambda x, y: np.sum([x, y], axis=0),
    lambda x, y: x - (-y),
    lambda x, y: np.stack([x, y]).sum(axis=0),
]

# Shares token by token


def _token_by_token(rule: Function) -> list[Function]:
    """Four functions of (..., units) with one number for each token, from a rule for a list of numbers."""

    def by_index(a: Any) -> Any:
        out = np.empty(a.shape[:-1])
        for place in np.ndindex(a.shape[:-1]):
            out[place] = rule(a[place].tolist())
        return out

    def by_rows(a: Any) -> Any:
        return np.array([rule(row.tolist()) for row in a.reshape(-1, a.shape[-1])]).reshape(a.shape[:-1])

    def by_recursion(a: Any) -> Any:
        return [by_recursion(part) for part in a] if a.ndim > 1 else rule(a.tolist())

    def along_axis(a: Any) -> Any:
        return np.apply_along_axis(lambda token: rule(token.tolist()), -1, a)

    return [by_index, by_rows, by_recursion, along_axis]


def _mass_by_mask(h: Any) -> Any:
    size = np.abs(h)
    return (size * (h < 0)).sum(-1) / size.sum(-1)


def _mass_by_remainder(h: Any) -> Any:
    return 1 - np.maximum(h, 0).sum(axis=-1) / np.abs(h).sum(axis=-1)


def _mass_by_two_sums(h: Any) -> Any:
    below, above = -np.where(h < 0, h, 0).sum(axis=-1), np.where(h > 0, h, 0).sum(axis=-1)
    return below / (below + above)


def _mass_by_difference(h: Any) -> Any:
    size = np.abs(np.asarray(h, dtype=float))
    return (size.sum(axis=-1) - h.sum(axis=-1)) / 2 / size.sum(axis=-1)


# Errors


def _error_with(product: Function, length: Function) -> Function:
    def error(u: Any, W_2: Any, activation: Function) -> Any:
        old, new = np.asarray(product(gelu(u), W_2)), np.asarray(product(activation(u), W_2))
        return length(new - old) / length(old)

    return error


LENGTHS: list[Function] = [
    lambda v: np.linalg.norm(v, axis=-1),
    lambda v: np.sqrt((v**2).sum(axis=-1)),
    lambda v: np.sqrt(np.einsum("...i,...i->...", v, v)),
    lambda v: np.hypot.reduce(v, axis=-1),
    lambda v: np.apply_along_axis(lambda w: math.hypot(*w), -1, v),
    lambda v: np.power(np.square(v).sum(-1), 0.5),
]


def _error_of_the_difference(u: Any, W_2: Any, activation: Function) -> Any:
    change = (activation(u) - gelu(u)) @ W_2
    return np.linalg.norm(change, axis=-1) / np.linalg.norm(gelu(u) @ W_2, axis=-1)


def _error_of_quotient(u: Any, W_2: Any, activation: Function) -> Any:
    exact = gelu(u) @ W_2
    quotient = (exact - activation(u) @ W_2) / np.linalg.norm(exact, axis=-1, keepdims=True)
    return np.linalg.norm(quotient, axis=-1)


# The strongest unit


def _strongest_by_vectors(h: Any, W_2: Any) -> Any:
    lengths = np.linalg.norm(h[..., np.newaxis] * W_2, axis=-1)
    return np.argmax(lengths, axis=-1), np.max(lengths, axis=-1)


def _strongest_by_sorting(h: Any, W_2: Any) -> Any:
    lengths = np.abs(h) * np.sqrt((W_2 * W_2).sum(axis=1))
    return np.argsort(lengths, axis=-1)[..., -1], np.sort(lengths, axis=-1)[..., -1]


def _strongest_by_squares(h: Any, W_2: Any) -> Any:
    squares = h**2 * (W_2**2).sum(axis=1)
    return squares.argmax(axis=-1), np.sqrt(squares.max(axis=-1))


def _strongest_by_take(h: Any, W_2: Any) -> Any:
    lengths = np.abs(h * np.linalg.norm(W_2, axis=1))
    places = lengths.argmax(axis=-1)
    return places, np.take_along_axis(lengths, np.expand_dims(places, -1), axis=-1).squeeze(-1)


def _strongest_as_list(h: Any, W_2: Any) -> Any:
    lengths = np.einsum("...j,j->...j", np.abs(h), np.linalg.norm(W_2, axis=-1))
    return [lengths.argmax(-1), lengths.max(-1)]


def _strongest_by_index(h: Any, W_2: Any) -> Any:
    places, lengths = np.zeros(h.shape[:-1], dtype=int), np.zeros(h.shape[:-1])
    for place in np.ndindex(h.shape[:-1]):
        for unit, value in enumerate(h[place]):
            length = abs(float(value)) * math.hypot(*W_2[unit])
            if length > lengths[place]:
                places[place], lengths[place] = unit, length
    return places, lengths


def _strongest_by_rows(h: Any, W_2: Any) -> Any:
    values = [np.linalg.norm(row) for row in W_2]
    rows = [[abs(a) * v for a, v in zip(token, values, strict=True)] for token in h.reshape(-1, h.shape[-1])]
    places = [row.index(max(row)) for row in rows]
    lead = h.shape[:-1]
    return np.array(places).reshape(lead), np.array([max(row) for row in rows]).reshape(lead)


def _strongest_by_recursion(h: Any, W_2: Any) -> Any:
    if h.ndim == 1:
        lengths = [float(np.linalg.norm(a * row)) for a, row in zip(h, W_2, strict=True)]
        return lengths.index(max(lengths)), max(lengths)
    pairs = [_strongest_by_recursion(part, W_2) for part in h]
    return np.array([place for place, _ in pairs]), np.array([length for _, length in pairs])


def _strongest_from_the_front(h: Any, W_2: Any) -> Any:
    first = np.moveaxis(np.abs(h), -1, 0)
    lengths = np.array([a * np.sqrt(row @ row) for a, row in zip(first, W_2, strict=True)])
    return lengths.argmax(axis=0), lengths.max(axis=0)


def _strongest_by_diagonal(h: Any, W_2: Any) -> Any:
    lengths = np.abs(h) @ np.diag(np.sqrt(np.diag(W_2 @ W_2.T)))
    return np.argmax(lengths, -1), np.amax(lengths, -1)


# The count


def _count_by_arrays(d: int, d_ff: int) -> int:
    return sum(np.empty(shape).size for shape in ((d, d_ff), d_ff, (d_ff, d), d))


def _count_by_units(d: int, d_ff: int) -> int:
    return sum(2 * d + 1 for _ in range(d_ff)) + d


def _count_in_place(d: int, d_ff: int) -> int:
    found = d * d_ff
    found += d_ff
    found += d_ff * d
    found += d
    return found


COUNTS: list[Function] = [
    _count_by_arrays,
    _count_by_units,
    _count_in_place,
    lambda d, d_ff: d * d_ff + d_ff + d_ff * d + d,
    lambda d, d_ff: (2 * d + 1) * d_ff + d,
    lambda d, d_ff: (d + 1) * d_ff + (d_ff + 1) * d,
    lambda d, d_ff: (2 * d_ff + 1) * d + d_ff,
    lambda d, d_ff: ((2 * d + 1) * (2 * d_ff + 1) - 1) // 2,
    lambda d, d_ff: int(np.prod([2, d, d_ff])) + sum([d, d_ff]),
    lambda d, d_ff: math.prod((2, d, d_ff)) + math.fsum((d, d_ff)),
    lambda d, d_ff: np.int64(d) * d_ff * 2 + d + d_ff,
]


def _share_with(count: Function) -> Function:
    return lambda d, d_ff, layers, total: layers * count(d, d_ff) / total


def _share_by_sum(d: int, d_ff: int, layers: int, total: int) -> float:
    return sum([_count_in_place(d, d_ff)] * layers) / total


ALTERNATIVES: dict[str, list[Function]] = {
    "widths": [
        _widths_by_unpacking,
        _widths_by_counting,
        _widths_by_division,
        _widths_by_update,
        lambda a: dict(zip(("tokens", "d", "units"), (*a["input"].shape, len(a["expand.weight"])), strict=True)),
        lambda a: {"tokens": a["input"].shape[0], "d": a["input"].shape[1], "units": a["expand.weight"].shape[0]},
        lambda a: {"tokens": len(a["input"]), "units": len(a["expand.weight"]), "d": len(a["project.weight"])},
        lambda a: {"tokens": len(a["input"]), "d": len(a["input"][0]), "units": len(a["project.weight"][0])},
        lambda a: {
            "units": a["expand.weight"].shape[-2],
            "d": a["expand.weight"].shape[-1],
            "tokens": len(a["input"]),
        },
        lambda a: {"tokens": len(a["input"].T[0]), "d": a["input"][0].size, "units": a["project.weight"][0].size},
    ],
    "row_matrices": [
        *(
            _both(turn)
            for turn in (
                _turned_by_loops,
                _turned_by_columns,
                _turned_by_filling,
                np.transpose,
                lambda w: w.transpose(),
                lambda w: np.swapaxes(w, 0, 1),
                lambda w: np.moveaxis(w, 0, -1),
                lambda w: np.einsum("ij->ji", w),
                lambda w: w.T.copy(),
                lambda w: np.rot90(w)[::-1],
                lambda w: np.stack(list(w), axis=1),
                lambda w: [list(column) for column in zip(*w, strict=True)],
            )
        ),
        lambda expand, project: [expand.T, project.T],
        lambda expand, project: tuple(w.T for w in (expand, project)),
    ],
    "pre_activations": [*map(_affine_with, MATRIX_PRODUCTS), _affine_in_one_product],
    "gelu": [
        *elementwise_styles(lambda v: v * 0.5 * math.erfc(-v / math.sqrt(2))),
        *elementwise_styles(lambda v: v * statistics.NormalDist().cdf(v))[:2],
        gelu,
        _gelu_by_upper_tail,
        _gelu_by_erf,
        lambda u: u * normal_cdf(u),
    ],
    "block_output": [
        *map(_output_with, MATRIX_PRODUCTS),
        _output_in_place,
        _output_in_one_product,
    ],
    "layer_norm": NORMS,
    "add_and_norm": [
        *(_summed(norm, ADDITIONS[number % len(ADDITIONS)]) for number, norm in enumerate(NORMS)),
        *(_summed(NORMS[0], add) for add in ADDITIONS),
    ],
    "firing_share": [
        *_token_by_token(lambda values: sum(v > 0 for v in values) / len(values)),
        lambda u: np.mean(u > 0, axis=-1),
        lambda u: (u > 0).sum(axis=-1) / u.shape[-1],
        lambda u: np.count_nonzero(u > 0, axis=-1) / u.shape[-1],
        lambda u: 1 - (u <= 0).mean(axis=-1),
        lambda u: np.where(u > 0, 1.0, 0.0).mean(axis=-1),
        lambda u: np.heaviside(u, 0).mean(axis=-1),
        lambda u: np.maximum(np.sign(u), 0).sum(axis=-1) / u.shape[-1],
        lambda u: np.average(np.greater(u, 0), axis=u.ndim - 1),
    ],
    "mass_below_zero": [
        *_token_by_token(lambda values: math.fsum(-v for v in values if v < 0) / math.fsum(map(abs, values))),
        _mass_by_mask,
        _mass_by_remainder,
        _mass_by_two_sums,
        _mass_by_difference,
        lambda h: (
            np.maximum(-h, 0).sum(axis=-1) / np.linalg.norm(h, 1, axis=-1)
            if h.ndim < 3
            else np.maximum(-h, 0).sum(axis=-1) / np.abs(h).sum(axis=-1)
        ),
        lambda h: np.clip(h, None, 0).sum(axis=-1) / -np.abs(h).sum(axis=-1),
        lambda h: -np.sum(h, axis=-1, where=h < 0) / np.sum(np.abs(h), axis=-1),
        lambda h: np.abs(np.where(h > 0, 0, h)).mean(axis=-1) / np.abs(h).mean(axis=-1),
    ],
    "replacement_error": [
        *(_error_with(product, LENGTHS[n % len(LENGTHS)]) for n, product in enumerate(MATRIX_PRODUCTS)),
        *(_error_with(MATRIX_PRODUCTS[0], length) for length in LENGTHS),
        _error_of_the_difference,
        _error_of_quotient,
    ],
    "strongest_unit": [
        _strongest_by_vectors,
        _strongest_by_sorting,
        _strongest_by_squares,
        _strongest_by_take,
        _strongest_as_list,
        _strongest_by_index,
        _strongest_by_rows,
        _strongest_by_recursion,
        _strongest_from_the_front,
        _strongest_by_diagonal,
    ],
    "sublayer_parameters": COUNTS,
    "sublayer_share": [
        *map(_share_with, COUNTS[:7]),
        _share_by_sum,
        lambda d, d_ff, layers, total: float(Fraction(layers * COUNTS[3](d, d_ff), total)),
        lambda d, d_ff, layers, total: layers / total * COUNTS[3](d, d_ff),
        lambda d, d_ff, layers, total: COUNTS[3](d, d_ff) / total * layers,
    ],
}

SURVIVORS: dict[str, str] = {}
