"""Backward passes of the plain and the gated block, written out, and a check against finite differences.

A weight serves every position, so its gradient is the sum over every leading position of x. ``grad_y`` is the
gradient of the loss with respect to the block's output, (..., d_model).
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ffn.arrays import FloatArray, as_float
from ffn.blocks import FeedForward, GatedFeedForward
from ffn.exceptions import ShapeError

__all__ = [
    "FeedForwardGradients",
    "GatedGradients",
    "feed_forward_backward",
    "gated_backward",
    "gradient_check",
    "numerical_gradient",
]


@dataclass(frozen=True, eq=False)
class FeedForwardGradients:
    """Gradients of the loss, each of its parameter's shape; a bias that the block lacks has None."""

    x: FloatArray
    W_1: FloatArray
    b_1: FloatArray | None
    W_2: FloatArray
    b_2: FloatArray | None


@dataclass(frozen=True, eq=False)
class GatedGradients:
    """Gradients of the loss, each of its parameter's shape."""

    x: FloatArray
    W_g: FloatArray
    W_u: FloatArray
    W_d: FloatArray


def _weight_gradient(inputs: FloatArray, grad: FloatArray) -> FloatArray:
    """Sum over every position of the outer product of its input row with its gradient row."""
    total: FloatArray = inputs.reshape(-1, inputs.shape[-1]).T @ grad.reshape(-1, grad.shape[-1])
    return total


def _bias_gradient(bias: FloatArray | None, grad: FloatArray) -> FloatArray | None:
    """Sum of the gradient rows over every position, or None where there is no bias."""
    return None if bias is None else grad.reshape(-1, grad.shape[-1]).sum(axis=0)


def _require_output_gradient(grad_y: FloatArray, y: FloatArray) -> None:
    if grad_y.shape != y.shape:
        raise ShapeError.mismatch("grad_y", grad_y.shape, "y", y.shape, f"grad_y of shape {y.shape}")


def feed_forward_backward(block: FeedForward, x: ArrayLike, grad_y: ArrayLike) -> FeedForwardGradients:
    """Gradients of a plain block at x of (..., d_model).

    Source: the chain rule through y = activation(x W_1 + b_1) W_2 + b_2; weight gradients summed over tokens.

    Raises:
        ShapeError: x does not fit the block, or grad_y does not have the output's shape.
    """
    stage = block.trace(x)
    grad_y = as_float(grad_y)
    _require_output_gradient(grad_y, stage.y)
    grad_h = grad_y @ block.W_2.T
    grad_u = grad_h * block.sigma.derivative(stage.u)
    return FeedForwardGradients(
        x=grad_u @ block.W_1.T,
        W_1=_weight_gradient(stage.x, grad_u),
        b_1=_bias_gradient(block.b_1, grad_u),
        W_2=_weight_gradient(stage.h, grad_y),
        b_2=_bias_gradient(block.b_2, grad_y),
    )


def gated_backward(block: GatedFeedForward, x: ArrayLike, grad_y: ArrayLike) -> GatedGradients:
    """Gradients of a gated block at x of (..., d_model); both branches reach x.

    Source: the chain rule through y = [activation(x W_g) * (x W_u)] W_d.

    Raises:
        ShapeError: x does not fit the block, or grad_y does not have the output's shape.
    """
    stage = block.trace(x)
    grad_y = as_float(grad_y)
    _require_output_gradient(grad_y, stage.y)
    grad_h = grad_y @ block.W_d.T
    grad_u_g = grad_h * stage.up * block.sigma.derivative(stage.u_g)
    grad_up = grad_h * stage.gate
    return GatedGradients(
        x=grad_u_g @ block.W_g.T + grad_up @ block.W_u.T,
        W_g=_weight_gradient(stage.x, grad_u_g),
        W_u=_weight_gradient(stage.x, grad_up),
        W_d=_weight_gradient(stage.h, grad_y),
    )


def numerical_gradient(loss: Callable[[FloatArray], float], point: ArrayLike, *, step: float = 1e-6) -> FloatArray:
    """Central differences of a scalar loss at a point of any shape, in float64; the result has that shape."""
    point = np.array(point, dtype=np.float64)
    gradient = np.empty_like(point)
    for index in np.ndindex(point.shape):
        kept = point[index]
        point[index] = kept + step
        above = loss(point.copy())
        point[index] = kept - step
        below = loss(point.copy())
        point[index] = kept
        gradient[index] = (above - below) / (2 * step)
    return gradient


def gradient_check(
    loss: Callable[[FloatArray], float], point: ArrayLike, gradient: ArrayLike, *, step: float = 1e-6
) -> float:
    """Largest difference between a gradient and central differences of its loss, relative to the larger of both.

    ``point`` and ``gradient`` have one shape. About 1e-9 is right for a smooth loss; 1e-4 or more is a mistake,
    or a point within ``step`` of a kink such as ReLU's.

    Raises:
        ShapeError: the gradient does not have the point's shape.
    """
    point, gradient = as_float(point), as_float(gradient)
    if gradient.shape != point.shape:
        raise ShapeError.mismatch(
            "gradient", gradient.shape, "point", point.shape, f"gradient of shape {point.shape}"
        )
    numeric = numerical_gradient(loss, point, step=step)
    scale = max(float(np.max(np.abs(gradient), initial=0)), float(np.max(np.abs(numeric), initial=0)), 1e-12)
    return float(np.max(np.abs(gradient - numeric), initial=0)) / scale
