"""The two normalizations that stand beside a feed-forward sublayer. Each looks at one token's own features."""

import numpy as np
from numpy.typing import ArrayLike

from ffn.arrays import FloatArray, as_float
from ffn.exceptions import ShapeError, ZeroVarianceError

__all__ = ["layer_norm", "rms_norm"]


def _scaled(normal: FloatArray, gain: ArrayLike | None, bias: ArrayLike | None) -> FloatArray:
    width = normal.shape[-1]
    for name, vector in (("gain", gain), ("bias", bias)):
        if vector is not None and as_float(vector).shape != (width,):
            raise ShapeError.mismatch(
                name, as_float(vector).shape, "x", normal.shape, f"{name} of shape ({width},)"
            )
    if gain is not None:
        normal = normal * as_float(gain)
    if bias is not None:
        normal = normal + as_float(bias)
    return normal


def _require_features(x: FloatArray) -> None:
    if x.ndim == 0 or x.shape[-1] == 0:
        raise ShapeError.dimensions("x", x.shape, "at least one feature in the last dimension")


def layer_norm(
    x: ArrayLike, gain: ArrayLike | None = None, bias: ArrayLike | None = None, *, epsilon: float = 1e-5
) -> FloatArray:
    """Centre each vector on its mean and divide by its standard deviation, over the last dimension.

    The variance is the biased one (divided by d_model, not d_model - 1) and epsilon is added to it inside the
    root. ``x`` is (..., d_model), ``gain`` and ``bias`` are (d_model,), the result is (..., d_model).
    Source: Ba, Kiros and Hinton (2016); published ids ex3.mean to ex3.out_std.

    Raises:
        ShapeError: ``x`` has no features, or gain or bias does not fit them.
        ZeroVarianceError: epsilon is 0 and a vector has equal entries.
    """
    x = as_float(x)
    _require_features(x)
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    # The mean of three times 0.1 is not 0.1 in binary64: equal entries need not have a computed variance of 0.
    equal = x.max(axis=-1, keepdims=True) == x.min(axis=-1, keepdims=True)
    if epsilon == 0 and np.any(equal | (variance == 0)):
        raise ZeroVarianceError("layer normalization")
    return _scaled(centred / np.sqrt(variance + epsilon), gain, bias)


def rms_norm(x: ArrayLike, gain: ArrayLike | None = None, *, epsilon: float = 1e-5) -> FloatArray:
    """Divide each vector by its root mean square, over the last dimension; nothing is centred.

    Epsilon is added to the mean square inside the root. ``x`` is (..., d_model), ``gain`` is (d_model,), the
    result is (..., d_model). Source: Zhang and Sennrich (2019).

    Raises:
        ShapeError: ``x`` has no features, or gain does not fit them.
        ZeroVarianceError: epsilon is 0 and a vector is 0.
    """
    x = as_float(x)
    _require_features(x)
    mean_square = (x * x).mean(axis=-1, keepdims=True)
    if epsilon == 0 and np.any(mean_square == 0):
        raise ZeroVarianceError("RMS normalization")
    return _scaled(x / np.sqrt(mean_square + epsilon), gain, None)
