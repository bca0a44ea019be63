"""Feed-forward blocks: the plain one, the gated family, a mixture of experts, and the collapse of two affine maps.

Vectors are rows. Every block maps (..., d_model) to (..., d_model) and keeps all leading dimensions, usually
(batch, sequence): each position is transformed by the same weights, and none sees another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ffn.activations import Activation, find_activation
from ffn.arrays import FloatArray, as_float, require_matrix, require_vector, require_width
from ffn.exceptions import ShapeError

__all__ = [
    "GATES",
    "FeedForward",
    "FeedForwardTrace",
    "GatedFeedForward",
    "GatedTrace",
    "MixtureOfExperts",
    "Routing",
    "collapse",
]

# The gated family of Shazeer (2020): the name of each block and the activation of its gate.
GATES = {"GLU": "sigmoid", "bilinear": "identity", "ReGLU": "relu", "GEGLU": "gelu", "SwiGLU": "silu"}


def _affine(x: FloatArray, W: FloatArray, b: FloatArray | None) -> FloatArray:
    y: FloatArray = x @ W
    if b is not None:
        y += b
    return y


def _optional(values: ArrayLike | None) -> FloatArray | None:
    return None if values is None else as_float(values)


@dataclass(frozen=True, eq=False)
class FeedForwardTrace:
    """Every stage of a plain block's forward pass: x and y are (..., d_model), u and h are (..., d_ff)."""

    x: FloatArray
    u: FloatArray
    h: FloatArray
    y: FloatArray


@dataclass(frozen=True, eq=False)
class FeedForward:
    """The plain feed-forward block, y = activation(x W_1 + b_1) W_2 + b_2.

    W_1 is (d_model, d_ff), W_2 is (d_ff, d_model), b_1 is (d_ff,) and b_2 is (d_model,); either bias may be
    None. The block returns (..., d_model) for x of (..., d_model).
    Source: Vaswani et al. (2017), section 3.3; published ids ex2.u to ex2.shapes and tiny.hidden.

    Raises:
        ShapeError: two of the arrays do not fit each other, or x does not fit W_1.
        UnknownActivationError: the activation's name is not one of ffn.ACTIVATIONS.
    """

    W_1: FloatArray
    b_1: FloatArray | None
    W_2: FloatArray
    b_2: FloatArray | None
    activation: str | Activation = "relu"

    def __post_init__(self) -> None:
        W_1, W_2 = as_float(self.W_1), as_float(self.W_2)
        b_1, b_2 = _optional(self.b_1), _optional(self.b_2)
        require_matrix("W_1", W_1, "a matrix (d_model, d_ff)")
        require_matrix("W_2", W_2, "a matrix (d_ff, d_model)")
        if W_2.shape != W_1.shape[::-1]:
            raise ShapeError.mismatch("W_1", W_1.shape, "W_2", W_2.shape, f"W_2 of shape {W_1.shape[::-1]}")
        if b_1 is not None:
            require_vector("b_1", b_1, "W_1", W_1)
        if b_2 is not None:
            require_vector("b_2", b_2, "W_2", W_2)
        for name, value in (("W_1", W_1), ("b_1", b_1), ("W_2", W_2), ("b_2", b_2)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "activation", find_activation(self.activation))

    @property
    def sigma(self) -> Activation:
        """The activation with its derivative."""
        return find_activation(self.activation)

    @property
    def d_model(self) -> int:
        """Width of the residual stream: features of x and y."""
        return int(self.W_1.shape[0])

    @property
    def d_ff(self) -> int:
        """Intermediate width: hidden units."""
        return int(self.W_1.shape[1])

    @property
    def parameter_count(self) -> int:
        """Number of learned parameters, biases included."""
        return sum(p.size for p in (self.W_1, self.b_1, self.W_2, self.b_2) if p is not None)

    def pre_activation(self, x: ArrayLike) -> FloatArray:
        """Expand: u = x W_1 + b_1, of shape (..., d_ff)."""
        x = as_float(x)
        require_width("x", x, "W_1", self.W_1)
        return _affine(x, self.W_1, self.b_1)

    def hidden(self, x: ArrayLike) -> FloatArray:
        """Expand and activate: h = activation(u), of shape (..., d_ff)."""
        return self.sigma.function(self.pre_activation(x))

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Expand, activate, project: y = h W_2 + b_2, of shape (..., d_model)."""
        return _affine(self.hidden(x), self.W_2, self.b_2)

    def trace(self, x: ArrayLike) -> FeedForwardTrace:
        """Run the block and keep every stage."""
        x = as_float(x)
        u = self.pre_activation(x)
        h = self.sigma.function(u)
        return FeedForwardTrace(x=x, u=u, h=h, y=_affine(h, self.W_2, self.b_2))


@dataclass(frozen=True, eq=False)
class GatedTrace:
    """Every stage of a gated block's forward pass.

    ``u_g`` is the gate's pre-activation x W_g, ``gate`` its activation, ``up`` the up projection x W_u and
    ``h`` their elementwise product, each (..., d_ff); x and y are (..., d_model).
    """

    x: FloatArray
    u_g: FloatArray
    gate: FloatArray
    up: FloatArray
    h: FloatArray
    y: FloatArray


@dataclass(frozen=True, eq=False)
class GatedFeedForward:
    """A gated feed-forward block without biases, y = [activation(x W_g) * (x W_u)] W_d.

    W_g and W_u are (d_model, d_ff), W_d is (d_ff, d_model); the block returns (..., d_model) for x of
    (..., d_model). The gate's activation gives the block its name, see ffn.blocks.GATES: with "silu" it is
    SwiGLU. Source: Shazeer (2020), equations 5 and 6; published id mech.swiglu_params_formula.

    Raises:
        ShapeError: two of the matrices do not fit each other, or x does not fit them.
        UnknownActivationError: the activation's name is not one of ffn.ACTIVATIONS.
    """

    W_g: FloatArray
    W_u: FloatArray
    W_d: FloatArray
    activation: str | Activation = "silu"

    def __post_init__(self) -> None:
        W_g, W_u, W_d = as_float(self.W_g), as_float(self.W_u), as_float(self.W_d)
        require_matrix("W_g", W_g, "a matrix (d_model, d_ff)")
        if W_u.shape != W_g.shape:
            raise ShapeError.mismatch("W_g", W_g.shape, "W_u", W_u.shape, f"W_u of shape {W_g.shape}")
        if W_d.shape != W_g.shape[::-1]:
            raise ShapeError.mismatch("W_g", W_g.shape, "W_d", W_d.shape, f"W_d of shape {W_g.shape[::-1]}")
        for name, value in (("W_g", W_g), ("W_u", W_u), ("W_d", W_d)):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "activation", find_activation(self.activation))

    @property
    def sigma(self) -> Activation:
        """The gate's activation with its derivative."""
        return find_activation(self.activation)

    @property
    def d_model(self) -> int:
        """Width of the residual stream: features of x and y."""
        return int(self.W_g.shape[0])

    @property
    def d_ff(self) -> int:
        """Intermediate width: gated hidden units."""
        return int(self.W_g.shape[1])

    @property
    def parameter_count(self) -> int:
        """Number of learned parameters, 3 d_model d_ff."""
        return self.W_g.size + self.W_u.size + self.W_d.size

    def hidden(self, x: ArrayLike) -> FloatArray:
        """Gate and modulate: h = activation(x W_g) * (x W_u), of shape (..., d_ff)."""
        x = as_float(x)
        require_width("x", x, "W_g", self.W_g)
        h: FloatArray = self.sigma.function(x @ self.W_g)
        return h * (x @ self.W_u)

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Gate, modulate, project down: y = h W_d, of shape (..., d_model)."""
        y: FloatArray = self.hidden(x) @ self.W_d
        return y

    def trace(self, x: ArrayLike) -> GatedTrace:
        """Run the block and keep every stage."""
        x = as_float(x)
        require_width("x", x, "W_g", self.W_g)
        u_g = x @ self.W_g
        gate, up = self.sigma.function(u_g), x @ self.W_u
        h = gate * up
        return GatedTrace(x=x, u_g=u_g, gate=gate, up=up, h=h, y=h @ self.W_d)


@dataclass(frozen=True, eq=False)
class Routing:
    """Where each token goes: ``experts`` and ``weights`` are (..., top_k), best expert first, weights sum to 1."""

    experts: np.ndarray[tuple[int, ...], np.dtype[np.intp]]
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class MixtureOfExperts:
    """Several feed-forward blocks of which each token uses the ``top_k`` that a router scores highest.

    ``experts`` are blocks of one d_model, W_r is the router's matrix (d_model, number of experts). The chosen
    experts' outputs are summed with weights from a softmax over the chosen scores alone; equal scores go to
    the expert with the lower number. Source: Shazeer et al. (2017); Jiang et al. (2024).

    Raises:
        ShapeError: W_r, the experts and x do not fit each other.
        ValueError: ``top_k`` is not between 1 and the number of experts.
    """

    experts: Sequence[FeedForward | GatedFeedForward]
    W_r: FloatArray
    top_k: int = 2

    def __post_init__(self) -> None:
        W_r = as_float(self.W_r)
        require_matrix("W_r", W_r, "a matrix (d_model, number of experts)")
        if not 1 <= self.top_k <= len(self.experts):
            raise ValueError(f"top_k is {self.top_k}; expected 1 to {len(self.experts)}, the number of experts.")
        expected = (self.experts[0].d_model, len(self.experts))
        if W_r.shape != expected:
            raise ShapeError.dimensions("W_r", W_r.shape, f"(d_model, number of experts) = {expected}")
        for number, expert in enumerate(self.experts):
            if expert.d_model != W_r.shape[0]:
                raise ShapeError.mismatch(
                    f"expert {number}", (expert.d_model, expert.d_ff), "W_r", W_r.shape, f"d_model {W_r.shape[0]}"
                )
        object.__setattr__(self, "W_r", W_r)
        object.__setattr__(self, "experts", tuple(self.experts))

    @property
    def d_model(self) -> int:
        """Width of the residual stream: features of x and y."""
        return int(self.W_r.shape[0])

    @property
    def parameter_count(self) -> int:
        """Stored parameters: the router's and every expert's."""
        return self.W_r.size + sum(expert.parameter_count for expert in self.experts)

    @property
    def active_parameter_count(self) -> int:
        """Parameters that one token uses: the router's and those of top_k experts, the largest ones."""
        largest = sorted((expert.parameter_count for expert in self.experts), reverse=True)
        return self.W_r.size + sum(largest[: self.top_k])

    def route(self, x: ArrayLike) -> Routing:
        """Score the experts for x of (..., d_model) and pick the best top_k of each token."""
        x = as_float(x)
        require_width("x", x, "W_r", self.W_r)
        scores = x @ self.W_r
        order = np.argsort(-scores, axis=-1, kind="stable")[..., : self.top_k]
        chosen = np.take_along_axis(scores, order, axis=-1)
        weights = np.exp(chosen - chosen[..., :1])
        return Routing(experts=order, weights=weights / weights.sum(axis=-1, keepdims=True))

    def __call__(self, x: ArrayLike) -> FloatArray:
        """Route every token, run each expert on the tokens sent to it, and sum: (..., d_model)."""
        x = as_float(x)
        routing = self.route(x)
        y = np.zeros_like(x)
        for number, expert in enumerate(self.experts):
            for place in range(self.top_k):
                sent = routing.experts[..., place] == number
                if np.any(sent):
                    part = routing.weights[..., place][sent][..., np.newaxis] * expert(x[sent])
                    y = y.astype(np.result_type(y, part), copy=False)
                    y[sent] += part
        return y


def collapse(W_1: ArrayLike, b_1: ArrayLike, W_2: ArrayLike, b_2: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """The one affine map that equals two in a row: W = W_1 W_2 and b = b_1 W_2 + b_2.

    W_1 is (m, n), b_1 is (n,), W_2 is (n, p), b_2 is (p,); W is (m, p) and b is (p,).
    Source: published ids ex7.W and ex7.b.

    Raises:
        ShapeError: two of the arrays do not fit each other.
    """
    W_1, b_1, W_2, b_2 = as_float(W_1), as_float(b_1), as_float(W_2), as_float(b_2)
    require_matrix("W_1", W_1, "a matrix (m, n)")
    require_matrix("W_2", W_2, "a matrix (n, p)")
    require_width("W_1", W_1, "W_2", W_2)
    require_vector("b_1", b_1, "W_1", W_1)
    require_vector("b_2", b_2, "W_2", W_2)
    return W_1 @ W_2, b_1 @ W_2 + b_2
