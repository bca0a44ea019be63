"""Helper module of the course: activations, blocks, norms, gradients, the ledger and the published values.

Everything that a lesson or an exercise needs every day is importable from here; the rest lives in the modules
``activations``, ``blocks``, ``checkpoints``, ``gradients``, ``ledger``, ``normal``, ``norms``, ``plots``,
``published``, ``show`` and ``training``.
"""

from typing import TYPE_CHECKING

from ffn.activations import (
    ACTIVATIONS,
    Activation,
    gelu,
    gelu_grad,
    gelu_tanh,
    gelu_tanh_grad,
    identity,
    identity_grad,
    relu,
    relu_grad,
    sigmoid,
    sigmoid_grad,
    silu,
    silu_grad,
    tanh,
    tanh_grad,
)
from ffn.blocks import GATES, FeedForward, GatedFeedForward, MixtureOfExperts, collapse
from ffn.gradients import feed_forward_backward, gated_backward, gradient_check, numerical_gradient
from ffn.normal import normal_cdf, normal_pdf
from ffn.norms import layer_norm, rms_norm

if TYPE_CHECKING:
    from ffn.published import check, published_inputs

__version__ = "0.1.0"

__all__ = [
    "ACTIVATIONS",
    "GATES",
    "Activation",
    "FeedForward",
    "GatedFeedForward",
    "MixtureOfExperts",
    "check",
    "collapse",
    "feed_forward_backward",
    "gated_backward",
    "gelu",
    "gelu_grad",
    "gelu_tanh",
    "gelu_tanh_grad",
    "gradient_check",
    "identity",
    "identity_grad",
    "layer_norm",
    "normal_cdf",
    "normal_pdf",
    "numerical_gradient",
    "published_inputs",
    "relu",
    "relu_grad",
    "rms_norm",
    "sigmoid",
    "sigmoid_grad",
    "silu",
    "silu_grad",
    "tanh",
    "tanh_grad",
]


def __getattr__(name: str) -> object:
    # ``python -m ffn.published`` must find that module not yet imported, so these two names are fetched late.
    if name in {"check", "published_inputs"}:
        from ffn import published

        return getattr(published, name)
    raise AttributeError(f"module 'ffn' has no attribute {name!r}")
