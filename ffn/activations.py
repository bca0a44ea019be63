"""Activations and their derivatives, elementwise on arrays of any shape.

float32 stays float32, everything else is computed in float64. No finite input raises a floating-point
warning, and both infinities give the limit. NaN in, NaN out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ffn.arrays import FloatArray, as_float, in_blocks
from ffn.exceptions import UnknownActivationError
from ffn.normal import FAR, block_cdf, block_pdf, block_tail

__all__ = [
    "ACTIVATIONS",
    "Activation",
    "find_activation",
    "gelu",
    "gelu_grad",
    "gelu_tanh",
    "gelu_tanh_grad",
    "identity",
    "identity_grad",
    "relu",
    "relu_grad",
    "sigmoid",
    "sigmoid_grad",
    "silu",
    "silu_grad",
    "tanh",
    "tanh_grad",
]

# Below this, z times a sigmoid is 0 in float64; stopping here keeps -inf * 0 from arising.
_LOWEST = -1000.0

_TANH_SCALE = math.sqrt(2 / math.pi)
_TANH_CUBIC = 0.044715


def _sigmoid(z: FloatArray) -> FloatArray:
    # Both exponents are at most 0, so neither exponential can overflow.
    result: FloatArray = np.exp(np.minimum(z, 0)) / (1 + np.exp(-np.abs(z)))
    return result


def _sigmoid_grad(z: FloatArray) -> FloatArray:
    small: FloatArray = np.exp(-np.abs(z))
    return small / (1 + small) ** 2


def _silu(z: FloatArray) -> FloatArray:
    return np.maximum(z, _LOWEST) * _sigmoid(z)


def _silu_grad(z: FloatArray) -> FloatArray:
    return _sigmoid(z) + np.clip(z, _LOWEST, -_LOWEST) * _sigmoid_grad(z)


def _gelu(z: FloatArray) -> FloatArray:
    # For z > 0 this is z - z Q(z) = z Phi(z), for z < 0 it is z Q(-z) = z Phi(z): no digit is lost in the tail.
    distance = np.minimum(np.abs(z), FAR)
    return np.maximum(z, 0) - distance * block_tail(distance)


def _gelu_grad(z: FloatArray) -> FloatArray:
    return block_cdf(z) + np.clip(z, -FAR, FAR) * block_pdf(z)


def _tanh_inner(z: FloatArray) -> FloatArray:
    return _TANH_SCALE * (z + _TANH_CUBIC * z**3)


def _gelu_tanh(z: FloatArray) -> FloatArray:
    # (1 + tanh(a)) / 2 is sigmoid(2 a), which keeps its digits where 1 + tanh(a) cancels.
    near = np.clip(z, _LOWEST, -_LOWEST)
    return np.maximum(z, _LOWEST) * _sigmoid(2 * _tanh_inner(near))


def _gelu_tanh_grad(z: FloatArray) -> FloatArray:
    near = np.clip(z, _LOWEST, -_LOWEST)
    doubled = 2 * _tanh_inner(near)
    slope = 2 * _TANH_SCALE * (1 + 3 * _TANH_CUBIC * near * near)
    return _sigmoid(doubled) + near * slope * _sigmoid_grad(doubled)


def _tanh_grad(z: FloatArray) -> FloatArray:
    # 1 - tanh(z)^2 cancels for large |z|; this is the same number, written without the difference.
    small: FloatArray = np.exp(-np.abs(z)) ** 2
    return 4 * small / (1 + small) ** 2


def relu(z: ArrayLike) -> FloatArray:
    """Rectified linear unit, max(0, z). Published ids: ex1.relu_A, ex1.relu_B, ex1.relu_C."""
    result: FloatArray = np.maximum(as_float(z), 0)
    return result


def relu_grad(z: ArrayLike) -> FloatArray:
    """Derivative of ReLU: 0 below zero, 1 above, and 0 at zero by convention (ex1.relu_grad_convention_at_0)."""
    result: FloatArray = np.heaviside(as_float(z), 0)
    return result


def sigmoid(z: ArrayLike) -> FloatArray:
    """Logistic function 1 / (1 + exp(-z)). Published ids: ex4.sigmoid_neg, ex4.sigmoid_pos."""
    return in_blocks(_sigmoid, z)


def sigmoid_grad(z: ArrayLike) -> FloatArray:
    """Derivative of the sigmoid, sigmoid(z) (1 - sigmoid(z))."""
    return in_blocks(_sigmoid_grad, z)


def tanh(z: ArrayLike) -> FloatArray:
    """Hyperbolic tangent. Published id: mech.tanh_h."""
    result: FloatArray = np.tanh(as_float(z))
    return result


def tanh_grad(z: ArrayLike) -> FloatArray:
    """Derivative of tanh with respect to its argument, 1 - tanh(z)^2 (mech.tanh_dh_dw divided by x)."""
    return in_blocks(_tanh_grad, z)


def silu(z: ArrayLike) -> FloatArray:
    """Sigmoid linear unit (Swish with beta 1), z sigmoid(z). Published ids: ex4.silu_neg, ex8.silu_neg.

    Source: Elfwing, Uchibe and Doya (2018); Ramachandran, Zoph and Le (2017).
    """
    return in_blocks(_silu, z)


def silu_grad(z: ArrayLike) -> FloatArray:
    """Derivative of SiLU, sigmoid(z) + z sigmoid'(z)."""
    return in_blocks(_silu_grad, z)


def gelu(z: ArrayLike) -> FloatArray:
    """Gaussian error linear unit in its exact form, z Phi(z). Published ids: ex4.gelu_neg, ex8.gelu_neg.

    Relative accuracy 1e-12 from -37 to 37 in float64. Source: Hendrycks and Gimpel (2016).
    """
    return in_blocks(_gelu, z)


def gelu_grad(z: ArrayLike) -> FloatArray:
    """Derivative of the exact GELU, Phi(z) + z phi(z)."""
    return in_blocks(_gelu_grad, z)


def gelu_tanh(z: ArrayLike) -> FloatArray:
    """GELU in its tanh form, z (1 + tanh(sqrt(2 / pi) (z + 0.044715 z^3))) / 2.

    An approximation of the exact form: the largest difference is 4.73e-4, near |z| = 2.70.
    Source: Hendrycks and Gimpel (2016).
    """
    return in_blocks(_gelu_tanh, z)


def gelu_tanh_grad(z: ArrayLike) -> FloatArray:
    """Derivative of the tanh form of GELU."""
    return in_blocks(_gelu_tanh_grad, z)


def identity(z: ArrayLike) -> FloatArray:
    """No activation at all: z. The bilinear block uses it as its gate."""
    return as_float(z).copy()[()]


def identity_grad(z: ArrayLike) -> FloatArray:
    """Derivative of the identity: 1 everywhere."""
    z = as_float(z)
    return np.where(np.isnan(z), z, np.ones_like(z))[()]


@dataclass(frozen=True)
class Activation:
    """An elementwise function together with its derivative, both on arrays of any shape."""

    name: str
    function: Callable[[FloatArray], FloatArray]
    derivative: Callable[[FloatArray], FloatArray]


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("relu", relu, relu_grad),
        Activation("gelu", gelu, gelu_grad),
        Activation("gelu_tanh", gelu_tanh, gelu_tanh_grad),
        Activation("silu", silu, silu_grad),
        Activation("sigmoid", sigmoid, sigmoid_grad),
        Activation("tanh", tanh, tanh_grad),
        Activation("identity", identity, identity_grad),
    )
}


def find_activation(activation: str | Activation) -> Activation:
    """Look an activation up by its name; an Activation is given back as it is.

    Raises:
        UnknownActivationError: a name that ACTIVATIONS does not hold.
    """
    if isinstance(activation, Activation):
        return activation
    try:
        return ACTIVATIONS[activation]
    except (KeyError, TypeError):
        raise UnknownActivationError(activation, ACTIVATIONS) from None
