"""Ways to write the same thing: elementwise functions from a rule for one number, and matrix products."""

from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["MATRIX_PRODUCTS", "elementwise_styles"]

Function = Callable[..., Any]


def elementwise_styles(rule: Callable[[float], float]) -> list[Function]:
    """Six elementwise functions of numbers, lists and arrays, all with the same rule for one number."""

    def by_recursion(z: Any) -> Any:
        return [by_recursion(part) for part in z] if np.ndim(z) else rule(float(z))

    def by_flat_list(z: Any) -> Any:
        z = np.asarray(z, dtype=float)
        return np.array([rule(float(v)) for v in z.ravel()], dtype=float).reshape(z.shape)

    def by_index(z: Any) -> Any:
        z = np.asarray(z, dtype=float)
        out = np.empty(z.shape)
        for place in np.ndindex(z.shape):
            out[place] = rule(float(z[place]))
        return out

    def by_iterator(z: Any) -> Any:
        z = np.asarray(z, dtype=float)
        return np.fromiter((rule(float(v)) for v in z.flat), dtype=float, count=z.size).reshape(z.shape)

    def by_ufunc(z: Any) -> Any:
        return np.asarray(np.frompyfunc(lambda v: rule(float(v)), 1, 1)(np.asarray(z, dtype=float)), dtype=float)

    return [np.vectorize(rule, otypes=[float]), by_recursion, by_flat_list, by_index, by_iterator, by_ufunc]


def _loops(a: Any, b: Any) -> Any:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    out = np.zeros((*a.shape[:-1], b.shape[1]))
    for place in np.ndindex(a.shape[:-1]):
        for column in range(b.shape[1]):
            for inner in range(b.shape[0]):
                out[(*place, column)] += a[(*place, inner)] * b[inner, column]
    return out


def _rows(a: Any, b: Any) -> Any:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    rows = [row @ b for row in a.reshape(-1, a.shape[-1])]
    return np.array(rows, dtype=float).reshape(*a.shape[:-1], b.shape[1])


def _columns(a: Any, b: Any) -> Any:
    return np.stack([np.asarray(a, dtype=float) @ column for column in np.asarray(b, dtype=float).T], axis=-1)


def _outer(a: Any, b: Any) -> Any:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return sum(a[..., i, None] * b[i] for i in range(b.shape[0]))


MATRIX_PRODUCTS: list[Function] = [
    lambda a, b: np.asarray(a) @ np.asarray(b),
    lambda a, b: np.dot(a, b),
    lambda a, b: np.einsum("...i,ij->...j", np.asarray(a), np.asarray(b)),
    lambda a, b: np.tensordot(a, b, axes=1),
    lambda a, b: (np.asarray(a)[..., None] * np.asarray(b)).sum(axis=-2),
    lambda a, b: np.matmul(np.asarray(a)[..., None, :], np.asarray(b))[..., 0, :],
    _loops,
    _rows,
    _columns,
    _outer,
]
"""Ten ways to multiply (..., d) by (d, m)."""
