"""Small helpers on arrays that the other modules share: conversion, shape checks, evaluation in blocks."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ffn.exceptions import ShapeError

__all__ = ["FloatArray", "as_float", "in_blocks", "require_matrix", "require_vector", "require_width"]

FloatArray = NDArray[np.floating[Any]]

# 32,768 numbers in float32 are 128 KiB: the temporaries of one block stay in a core's own cache.
_BLOCK = 32_768


def as_float(values: ArrayLike) -> FloatArray:
    """Give the values as an array of floats: float32 stays float32, everything else becomes float64.

    Raises:
        TypeError, ValueError: what numpy raises for values that are not numbers.
    """
    array = np.asarray(values)
    if array.dtype == np.float32:
        return array
    if array.dtype.kind == "c":
        # numpy would drop the imaginary part and only warn.
        raise TypeError("complex numbers were given; expected real ones.")
    return np.asarray(array, dtype=np.float64)


def in_blocks(function: Callable[[FloatArray], FloatArray], z: ArrayLike) -> FloatArray:
    """Apply an elementwise function block by block; the result has the shape and the float type of ``z``.

    Working on a few thousand numbers at a time keeps every intermediate result in the processor's cache;
    on a whole (512, 3072) array the same formula spends most of its time waiting for memory.
    An underflow to zero is the right answer in the tail of every activation, so it is not reported.
    """
    z = as_float(z)
    flat = z.reshape(-1)
    out = np.empty_like(flat)
    with np.errstate(under="ignore"):
        for start in range(0, flat.size, _BLOCK):
            out[start : start + _BLOCK] = function(flat[start : start + _BLOCK])
    result: FloatArray = out.reshape(z.shape)[()]
    return result


def require_matrix(name: str, array: FloatArray, expected: str) -> None:
    """Raise ShapeError unless the array has two dimensions; ``expected`` describes them in words."""
    if array.ndim != 2:
        raise ShapeError.dimensions(name, array.shape, expected)


def require_vector(name: str, vector: FloatArray, matrix_name: str, matrix: FloatArray) -> None:
    """Raise ShapeError unless the vector has one entry for each column of the matrix."""
    if vector.shape != (matrix.shape[1],):
        raise ShapeError.mismatch(
            name, vector.shape, matrix_name, matrix.shape, f"{name} of shape ({matrix.shape[1]},)"
        )


def require_width(name: str, x: FloatArray, matrix_name: str, matrix: FloatArray) -> None:
    """Raise ShapeError unless the last dimension of ``x`` is the number of rows of the matrix."""
    if x.ndim == 0 or x.shape[-1] != matrix.shape[0]:
        raise ShapeError.mismatch(
            name, x.shape, matrix_name, matrix.shape, f"{name} of shape (..., {matrix.shape[0]})"
        )
