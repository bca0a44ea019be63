"""Wrong ways through the unit `capstone`: a feed-forward sublayer of MiniLM, from its stored weights to its output."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ffn import norms
from ffn.activations import gelu, gelu_tanh, relu, sigmoid
from ffn.ledger import plain_parameters
from ffn.misconceptions.registry import Misconception, Probe, Step
from ffn.normal import normal_cdf

__all__ = ["STEPS"]

BLOCKS = "book/in-practice/real-blocks"
FORWARD = "book/in-practice/minilm-forward"
FIRES = "book/in-practice/what-fires"
REPLACING = "book/in-practice/replacing-the-activation"
RESIDUAL = "book/mechanism/residual-and-norm"
EXPAND = "book/mechanism/expand-activate-project"
KEYS = "book/mechanism/keys-and-values"
LIMITS = "book/activations/limits-and-numerics"
FUNCTIONS = "book/activations/functions"
PARITY = "book/swiglu/parameters-and-parity"

Layer = Mapping[str, Any]


def _numbers(*shape: int, start: int = 0) -> Any:
    """Numbers of both signs between -2 and 2, always the same ones, none of them 0."""
    size = math.prod(shape)
    return (((np.arange(size) * 37 + start * 11 + 5) % 40) / 10 - 1.95).reshape(shape)


# Widths of a stored layer


def widths(layer: Layer) -> dict[str, int]:
    """Tokens, width of the residual stream and number of hidden units, from the stored shapes."""
    units, d = layer["expand.weight"].shape
    return {"tokens": len(layer["input"]), "d": d, "units": units}


def _in_before_out(layer: Layer) -> dict[str, int]:
    d, units = layer["expand.weight"].shape
    return {"tokens": len(layer["input"]), "d": d, "units": units}


def _entries_for_tokens(layer: Layer) -> dict[str, int]:
    return {**widths(layer), "tokens": layer["input"].size}


def _features_for_tokens(layer: Layer) -> dict[str, int]:
    return {**widths(layer), "tokens": layer["input"].shape[-1]}


def _stored(tokens: int, d: int, units: int) -> dict[str, Any]:
    return {
        "input": _numbers(tokens, d),
        "expand.weight": _numbers(units, d, start=1),
        "project.weight": _numbers(d, units, start=2),
    }


# From (out, in) to (in, out)


def row_matrices(expand_weight: Any, project_weight: Any) -> tuple[Any, Any]:
    """Stored weights, (out, in), as the matrices of the formula with row vectors."""
    return expand_weight.T, project_weight.T


# The block


def pre_activations(x: Any, W_1: Any, b_1: Any) -> Any:
    """What the hidden units receive, x W_1 + b_1."""
    return x @ W_1 + b_1


def block_output(h: Any, W_2: Any, others: Any, b_2: Any) -> Any:
    """The part of the units at hand, the part of the others, and the bias."""
    return h @ W_2 + others + b_2


def _every(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda u: rule(np.asarray(u, dtype=float))


def _erf_without_root(u: Any) -> Any:
    return u * normal_cdf(u * math.sqrt(2))


# Residual and norm


def layer_norm(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    """Layer normalization over the features of each token."""
    return norms.layer_norm(v, gain, bias, epsilon=epsilon)


def _normed(v: Any, epsilon: float, *, ddof: int = 0, axis: int | None = -1) -> Any:
    return (v - v.mean(axis=axis, keepdims=True)) / np.sqrt(v.var(axis=axis, keepdims=True, ddof=ddof) + epsilon)


def _epsilon_outside(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    return (v - v.mean(axis=-1, keepdims=True)) / (v.std(axis=-1, keepdims=True) + epsilon) * gain + bias


def _not_centred(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    return v / np.sqrt((v * v).mean(axis=-1, keepdims=True) + epsilon) * gain + bias


def _divided_by_variance(v: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    return (v - v.mean(axis=-1, keepdims=True)) / (v.var(axis=-1, keepdims=True) + epsilon) * gain + bias


def add_and_norm(x: Any, y: Any, gain: Any, bias: Any, epsilon: float) -> Any:
    """The residual sum of a sublayer, normalized."""
    return layer_norm(x + y, gain, bias, epsilon)


# What fires


def firing_share(u: Any) -> Any:
    """Share of the units of each token with a positive pre-activation."""
    return (u > 0).mean(axis=-1)


def mass_below_zero(h: Any) -> Any:
    """Share of the sum of absolute hidden values that comes from negative ones, token by token."""
    return np.abs(np.minimum(h, 0)).sum(axis=-1) / np.abs(h).sum(axis=-1)


def _signed_mass(h: Any) -> Any:
    return np.minimum(h, 0).sum(axis=-1) / np.abs(h).sum(axis=-1)


def _mass_of_net_sum(h: Any) -> Any:
    return -np.minimum(h, 0).sum(axis=-1) / h.sum(axis=-1)


def _mass_against_positive(h: Any) -> Any:
    return -np.minimum(h, 0).sum(axis=-1) / np.maximum(h, 0).sum(axis=-1)


def _mass_of_squares(h: Any) -> Any:
    return (np.minimum(h, 0) ** 2).sum(axis=-1) / (h**2).sum(axis=-1)


# Another activation


def replacement_error(u: Any, W_2: Any, activation: Callable[[Any], Any]) -> Any:
    """Length of the change of the units' contribution, relative to the contribution with GELU."""
    exact = gelu(u) @ W_2
    return np.linalg.norm(activation(u) @ W_2 - exact, axis=-1) / np.linalg.norm(exact, axis=-1)


def _relative_to_new(u: Any, W_2: Any, activation: Callable[[Any], Any]) -> Any:
    new = activation(u) @ W_2
    return np.linalg.norm(new - gelu(u) @ W_2, axis=-1) / np.linalg.norm(new, axis=-1)


def _difference_of_lengths(u: Any, W_2: Any, activation: Callable[[Any], Any]) -> Any:
    old, new = (np.linalg.norm(h @ W_2, axis=-1) for h in (gelu(u), activation(u)))
    return np.abs(new - old) / old


def _error_of_hidden(u: Any, W_2: Any, activation: Callable[[Any], Any]) -> Any:
    return np.linalg.norm(activation(u) - gelu(u), axis=-1) / np.linalg.norm(gelu(u), axis=-1)


def _one_error(u: Any, W_2: Any, activation: Callable[[Any], Any]) -> Any:
    exact = gelu(u) @ W_2
    return np.linalg.norm(activation(u) @ W_2 - exact) / np.linalg.norm(exact)


def _mean_of_ratios(u: Any, W_2: Any, activation: Callable[[Any], Any]) -> Any:
    exact = gelu(u) @ W_2
    return np.abs((activation(u) @ W_2 - exact) / exact).mean(axis=-1)


# Keys and values


def strongest_unit(h: Any, W_2: Any) -> tuple[Any, Any]:
    """For each token the unit with the longest contribution, and that length."""
    lengths = np.abs(h) * np.linalg.norm(W_2, axis=-1)
    return lengths.argmax(axis=-1), lengths.max(axis=-1)


def _best(lengths: Any) -> tuple[Any, Any]:
    return lengths.argmax(axis=-1), lengths.max(axis=-1)


def _length_of_largest_hidden(h: Any, W_2: Any) -> tuple[Any, Any]:
    which = np.abs(h).argmax(axis=-1)
    lengths = np.abs(h) * np.linalg.norm(W_2, axis=-1)
    return which, np.take_along_axis(lengths, which[..., np.newaxis], axis=-1)[..., 0]


def _strongest_of_all(h: Any, W_2: Any) -> tuple[Any, Any]:
    lengths = (np.abs(h) * np.linalg.norm(W_2, axis=-1)).reshape(-1, h.shape[-1]).max(axis=0)
    return lengths.argmax(), lengths.max()


# The count


def sublayer_parameters(d: int, d_ff: int) -> int:
    """Parameters of a plain block with its biases."""
    return plain_parameters(d, d_ff)


def sublayer_share(d: int, d_ff: int, layers: int, total: int) -> float:
    """Share of a model's parameters that its blocks have."""
    return layers * sublayer_parameters(d, d_ff) / total


_WIDTHS = (Probe("widths", (_stored(3, 5, 2),)), Probe("widths", (_stored(4, 4, 4),)))
_MATRICES = tuple(
    Probe("row_matrices", (_numbers(m, d), _numbers(d, m, start=3))) for d, m in ((2, 3), (3, 3), (4, 1))
)
_AFFINE = tuple(
    Probe("pre_activations", (_numbers(*lead, d), _numbers(d, m, start=1), _numbers(m, start=2)))
    for lead, d, m in (((), 2, 3), ((2,), 3, 3), ((2, 2), 3, 4))
)
_CURVE = (
    Probe("gelu", (np.array([-2.5, -0.5, 0.0, 0.75, 3.0]),)),
    Probe("gelu", (np.array([[-1.0, 0.25], [2.0, -3.5]]),)),
)
_OUTPUT = tuple(
    Probe(
        "block_output",
        (_numbers(*lead, m), _numbers(m, d, start=1), _numbers(*lead, d, start=2), _numbers(d, start=3)),
    )
    for lead, m, d in (((), 3, 2), ((2,), 3, 3), ((2, 2), 4, 3))
)
_NORM = tuple(
    Probe("layer_norm", (_numbers(*shape), _numbers(shape[-1], start=1), _numbers(shape[-1], start=2), epsilon))
    for shape, epsilon in (((4,), 0.5), ((2, 3), 2.0), ((2, 3, 4), 0.25), ((3, 3), 1e-12))
)
_ADDED = tuple(
    Probe(
        "add_and_norm",
        (_numbers(*s), _numbers(*s, start=3), _numbers(s[-1], start=1), _numbers(s[-1], start=2), epsilon),
    )
    for s, epsilon in (((4,), 0.5), ((2, 3), 2.0), ((2, 2, 4), 1e-12))
)
_FIRING = (
    Probe("firing_share", (np.array([[-1.0, 0.0, 2.0, 3.0], [1.0, -2.0, -3.0, -0.5]]),)),
    Probe("firing_share", (np.array([0.0, 0.0, -60.0, 1.0, 2.0]),)),
    Probe("firing_share", (_numbers(2, 3, 4),)),
)
_MASS = (
    Probe("mass_below_zero", (np.array([[-0.5, 0.0, 2.0], [-0.25, -0.75, 3.0]]),)),
    Probe("mass_below_zero", (np.array([-1.0, 2.0, 3.0, -0.5]),)),
    Probe("mass_below_zero", (_numbers(2, 2, 5) + 1,)),
)
_REPLACED = tuple(
    Probe("replacement_error", (_numbers(*lead, m), _numbers(m, d, start=1), activation))
    for lead, m, d, activation in (((), 3, 2, relu), ((2,), 3, 3, gelu_tanh), ((2, 2), 4, 3, relu))
)
_STRONGEST = (
    Probe(
        "strongest_unit",
        (np.array([[3.0, -1.0, 0.0], [1.0, -1.0, 0.5]]), np.array([[1.0, 0.0], [0.0, -4.0], [6.0, 8.0]])),
    ),
    Probe("strongest_unit", (np.array([2.0, -1.5]), np.array([[1.0, 1.0], [0.5, -3.0]]))),
    Probe("strongest_unit", (np.array([1.0, -2.0]), np.array([[3.0, 4.0], [0.0, -5.0]]))),
    Probe("strongest_unit", (_numbers(2, 2, 4), _numbers(4, 3, start=1))),
)
_COUNT = (
    Probe("sublayer_parameters", (2, 3)),
    Probe("sublayer_parameters", (384, 1536)),
    Probe("sublayer_share", (2, 3, 4, 200)),
    Probe("sublayer_share", (3, 5, 2, 1000)),
)

STEPS = (
    Step(
        name="widths",
        own={"widths": widths},
        probes=_WIDTHS,
        misconceptions=(
            Misconception(
                name="in-before-out",
                wrong={"widths": _in_before_out},
                hint="the stored shape was read as (in, out), so the two widths are exchanged.",
                page=f"{BLOCKS}#one-block-in-the-file",
            ),
            Misconception(
                name="entries-for-tokens",
                wrong={"widths": _entries_for_tokens},
                hint="all entries of the input were counted; each token has d of them.",
                page=f"{FORWARD}#from-text-to-rows",
            ),
            Misconception(
                name="features-for-tokens",
                wrong={"widths": _features_for_tokens},
                hint="the features of a token were counted in place of the tokens.",
                page=f"{FORWARD}#from-text-to-rows",
            ),
        ),
    ),
    Step(
        name="row_matrices",
        own={"row_matrices": row_matrices},
        probes=_MATRICES,
        misconceptions=(
            Misconception(
                name="as-stored",
                wrong={"row_matrices": lambda expand, project: (expand, project)},
                hint="both matrices are still (out, in), either as the file has them or turned twice.",
                page=f"{BLOCKS}#one-block-in-the-file",
            ),
            Misconception(
                name="exchanged",
                wrong={"row_matrices": lambda expand, project: (project, expand)},
                hint="the two weights were exchanged, not transposed; the shapes fit, and the numbers are wrong.",
                page=f"{BLOCKS}#what-goes-wrong",
            ),
            Misconception(
                name="projection-first",
                wrong={"row_matrices": lambda expand, project: (project.T, expand.T)},
                hint="the projection comes first; the pair is asked for in the order W_1, W_2.",
                page=f"{BLOCKS}#one-block-in-the-file",
            ),
            Misconception(
                name="reshaped",
                wrong={
                    "row_matrices": lambda expand, project: (
                        expand.reshape(expand.shape[::-1]),
                        project.reshape(project.shape[::-1]),
                    )
                },
                hint="the shape was changed without turning the matrix, so the entries are in other places.",
                page=f"{BLOCKS}#one-block-in-the-file",
            ),
            Misconception(
                name="first-alone",
                wrong={"row_matrices": lambda expand, project: (expand.T, project)},
                hint="only the expanding weight was turned; the other one is stored as (out, in) too.",
                page=f"{BLOCKS}#one-block-in-the-file",
            ),
        ),
    ),
    Step(
        name="pre_activations",
        own={"pre_activations": pre_activations},
        probes=_AFFINE,
        misconceptions=(
            Misconception(
                name="bias-forgotten",
                wrong={"pre_activations": lambda x, W_1, b_1: x @ W_1},
                hint="the bias b_1 was left out.",
                page=f"{EXPAND}#two-projections-with-numbers",
            ),
            Misconception(
                name="turned-again",
                wrong={"pre_activations": lambda x, W_1, b_1: x @ W_1.T + b_1},
                hint="the matrix W_1, which is (d, units) already, was transposed once more.",
                page=f"{BLOCKS}#one-block-in-the-file",
            ),
            Misconception(
                name="scaled-like-scores",
                wrong={"pre_activations": lambda x, W_1, b_1: x @ W_1 / math.sqrt(x.shape[-1]) + b_1},
                hint="the product was divided by the root of the width, as attention does with its scores.",
                page=f"{EXPAND}#the-idea",
            ),
            Misconception(
                name="cut-off-already",
                wrong={"pre_activations": lambda x, W_1, b_1: relu(x @ W_1 + b_1)},
                hint="the negative values were cut off; the activation is a step of its own.",
                page=f"{EXPAND}#the-idea",
            ),
        ),
        uses=("row_matrices",),
    ),
    Step(
        name="gelu",
        own={"gelu": gelu},
        probes=_CURVE,
        misconceptions=(
            Misconception(
                name="tanh-form",
                wrong={"gelu": _every(gelu_tanh)},
                hint="the tanh form was used; this model was trained with the exact form.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="relu-for-gelu",
                wrong={"gelu": _every(relu)},
                hint="this is ReLU; GELU lets a little of the negative values through.",
                page=f"{FUNCTIONS}#the-idea",
            ),
            Misconception(
                name="sigmoid-for-the-gate",
                wrong={"gelu": _every(lambda u: u * sigmoid(1.702 * u))},
                hint="the gate is a sigmoid, which only resembles the normal probability.",
                page=f"{LIMITS}#the-idea",
            ),
            Misconception(
                name="silu-for-gelu",
                wrong={"gelu": _every(lambda u: u * sigmoid(u))},
                hint="this is SiLU, whose gate is the sigmoid of u.",
                page=f"{FUNCTIONS}#the-idea",
            ),
            Misconception(
                name="root-forgotten",
                wrong={"gelu": _every(_erf_without_root)},
                hint="u was not divided by the root of 2 before the error function.",
                page=f"{LIMITS}#the-idea",
            ),
            Misconception(
                name="gate-alone",
                wrong={"gelu": _every(normal_cdf)},
                hint="the gate alone was returned; it has to multiply u.",
                page=f"{FUNCTIONS}#the-idea",
            ),
        ),
        uses=("row_matrices", "pre_activations"),
    ),
    Step(
        name="block_output",
        own={"block_output": block_output},
        probes=_OUTPUT,
        misconceptions=(
            Misconception(
                name="bias-forgotten",
                wrong={"block_output": lambda h, W_2, others, b_2: h @ W_2 + others},
                hint="the bias b_2 is missing.",
                page=f"{EXPAND}#two-projections-with-numbers",
            ),
            Misconception(
                name="bias-for-every-unit",
                wrong={"block_output": lambda h, W_2, others, b_2: h @ W_2 + others + h.shape[-1] * b_2},
                hint="b_2 was added once for every hidden unit; it belongs to the sum, once.",
                page=f"{KEYS}#the-idea",
            ),
            Misconception(
                name="others-forgotten",
                wrong={"block_output": lambda h, W_2, others, b_2: h @ W_2 + b_2},
                hint="what the other hidden units contribute was left out.",
                page=f"{KEYS}#the-idea",
            ),
            Misconception(
                name="mean-over-units",
                wrong={"block_output": lambda h, W_2, others, b_2: h @ W_2 / h.shape[-1] + others + b_2},
                hint="the contributions of the units were averaged; a projection adds them up.",
                page=f"{KEYS}#the-idea",
            ),
        ),
        uses=("row_matrices", "pre_activations", "gelu"),
    ),
    Step(
        name="layer_norm",
        own={"layer_norm": layer_norm},
        probes=_NORM,
        misconceptions=(
            Misconception(
                name="bessel",
                wrong={"layer_norm": lambda v, gain, bias, eps: _normed(v, eps, ddof=1) * gain + bias},
                hint="the variance was divided by n - 1; layer normalization uses the biased variance.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="epsilon-outside",
                wrong={"layer_norm": _epsilon_outside},
                hint="epsilon was added to the standard deviation; it belongs under the root.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="gain-before",
                wrong={"layer_norm": lambda v, gain, bias, eps: _normed(v * gain, eps) + bias},
                hint="the gain was applied before normalizing, which then takes most of it back.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="gain-forgotten",
                wrong={"layer_norm": lambda v, gain, bias, eps: _normed(v, eps) + bias},
                hint="the gain was left out.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="bias-forgotten",
                wrong={"layer_norm": lambda v, gain, bias, eps: _normed(v, eps) * gain},
                hint="the norm's own bias is missing at the end.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="bias-scaled",
                wrong={"layer_norm": lambda v, gain, bias, eps: (_normed(v, eps) + bias) * gain},
                hint="the bias was multiplied by the gain too; it is added last.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="over-tokens",
                wrong={"layer_norm": lambda v, gain, bias, eps: _normed(v, eps, axis=0) * gain + bias},
                hint="mean and variance were taken over the tokens; each token is normalized by its own features.",
                page=f"{RESIDUAL}#its-own-features-not-the-batch",
            ),
            Misconception(
                name="over-everything",
                wrong={"layer_norm": lambda v, gain, bias, eps: _normed(v, eps, axis=None) * gain + bias},
                hint="there is one mean and one variance for the whole array; every token needs its own.",
                page=f"{RESIDUAL}#its-own-features-not-the-batch",
            ),
            Misconception(
                name="not-centred",
                wrong={"layer_norm": _not_centred},
                hint="the mean was not taken away; this is RMS normalization.",
                page=f"{RESIDUAL}#rms-normalization",
            ),
            Misconception(
                name="root-not-taken",
                wrong={"layer_norm": _divided_by_variance},
                hint="the differences were divided by the variance; the root of it was not taken.",
                page=f"{RESIDUAL}#layer-normalization-step-by-step",
            ),
        ),
    ),
    Step(
        name="add_and_norm",
        own={"add_and_norm": add_and_norm},
        probes=_ADDED,
        misconceptions=(
            Misconception(
                name="residual-forgotten",
                wrong={"add_and_norm": lambda x, y, gain, bias, eps: layer_norm(y, gain, bias, eps)},
                hint="the block's output was normalized without its input: the residual is missing.",
                page=f"{FORWARD}#what-goes-wrong",
            ),
            Misconception(
                name="norm-before-the-residual",
                wrong={"add_and_norm": lambda x, y, gain, bias, eps: x + layer_norm(y, gain, bias, eps)},
                hint="the norm came before the addition; this model adds first.",
                page=f"{FORWARD}#what-goes-wrong",
            ),
            Misconception(
                name="input-normed",
                wrong={"add_and_norm": lambda x, y, gain, bias, eps: layer_norm(x, gain, bias, eps) + y},
                hint="the input was normalized and the block's output added to that; the sum itself is normalized.",
                page=f"{RESIDUAL}#the-order-matters",
            ),
            Misconception(
                name="residual-twice",
                wrong={"add_and_norm": lambda x, y, gain, bias, eps: x + layer_norm(x + y, gain, bias, eps)},
                hint="the input was added a second time after the norm.",
                page=f"{RESIDUAL}#the-order-matters",
            ),
            Misconception(
                name="norm-forgotten",
                wrong={"add_and_norm": lambda x, y, gain, bias, eps: x + y},
                hint="input and output were added, and the norm after it is missing.",
                page=f"{FORWARD}#layer-by-layer",
            ),
        ),
        uses=("row_matrices", "pre_activations", "gelu", "block_output", "layer_norm"),
    ),
    Step(
        name="firing_share",
        own={"firing_share": firing_share},
        probes=_FIRING,
        misconceptions=(
            Misconception(
                name="zero-counted",
                wrong={"firing_share": lambda u: (u >= 0).mean(axis=-1)},
                hint="a pre-activation of exactly 0 was counted as firing.",
                page=f"{FIRES}#the-idea",
            ),
            Misconception(
                name="outputs-that-are-not-zero",
                wrong={"firing_share": lambda u: (gelu(u) != 0).mean(axis=-1)},
                hint="outputs other than 0 were counted, and with GELU that is nearly all of them.",
                page=f"{FIRES}#what-goes-wrong",
            ),
            Misconception(
                name="silent-ones",
                wrong={"firing_share": lambda u: (u <= 0).mean(axis=-1)},
                hint="this is the share of the units that do not fire.",
                page=f"{FIRES}#the-idea",
            ),
            Misconception(
                name="number-for-share",
                wrong={"firing_share": lambda u: (u > 0).sum(axis=-1)},
                hint="the firing units were counted, but not divided by the number of units.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="mean-over-tokens",
                wrong={"firing_share": lambda u: (u > 0).mean(axis=0)},
                hint="the mean runs over the tokens, so there is a share for each unit and none for each token.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="one-for-all",
                wrong={"firing_share": lambda u: (u > 0).mean()},
                hint="one share was computed for all tokens together.",
                page=f"{FIRES}#minilm",
            ),
        ),
        uses=("row_matrices", "pre_activations", "gelu"),
    ),
    Step(
        name="mass_below_zero",
        own={"mass_below_zero": mass_below_zero},
        probes=_MASS,
        misconceptions=(
            Misconception(
                name="sign-kept",
                wrong={"mass_below_zero": _signed_mass},
                hint="the negative values kept their sign, so the share is negative.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="net-sum",
                wrong={"mass_below_zero": _mass_of_net_sum},
                hint="it was divided by the plain sum, in which both signs cancel.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="against-the-positive",
                wrong={"mass_below_zero": _mass_against_positive},
                hint="the negative part was divided by the positive part; a share is a part of the whole.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="units-counted",
                wrong={"mass_below_zero": lambda h: (h < 0).mean(axis=-1)},
                hint="the negative values were counted; asked for is how much they add up to.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="squares",
                wrong={"mass_below_zero": _mass_of_squares},
                hint="squares were summed, which hide the many small values.",
                page=f"{FIRES}#minilm",
            ),
            Misconception(
                name="one-for-all",
                wrong={"mass_below_zero": lambda h: -np.minimum(h, 0).sum() / np.abs(h).sum()},
                hint="the sums run over all tokens together, and each token should have its own share.",
                page=f"{FIRES}#minilm",
            ),
        ),
        uses=("row_matrices", "pre_activations", "gelu"),
    ),
    Step(
        name="replacement_error",
        own={"replacement_error": replacement_error},
        probes=_REPLACED,
        misconceptions=(
            Misconception(
                name="relative-to-the-new",
                wrong={"replacement_error": _relative_to_new},
                hint="the change was divided by the length of the new contribution; compare with the exact one.",
                page=f"{REPLACING}#one-layer-and-all-of-them",
            ),
            Misconception(
                name="difference-of-lengths",
                wrong={"replacement_error": _difference_of_lengths},
                hint="two lengths were subtracted; two vectors of one length can still point apart.",
                page=f"{REPLACING}#one-layer-and-all-of-them",
            ),
            Misconception(
                name="hidden-vectors-compared",
                wrong={"replacement_error": _error_of_hidden},
                hint="the hidden vectors were compared before the projection W_2.",
                page=f"{REPLACING}#the-idea",
            ),
            Misconception(
                name="root-not-taken",
                wrong={"replacement_error": lambda u, W_2, f: replacement_error(u, W_2, f) ** 2},
                hint="these are squares of lengths; the root is missing.",
                page=f"{REPLACING}#one-layer-and-all-of-them",
            ),
            Misconception(
                name="one-for-all",
                wrong={"replacement_error": _one_error},
                hint="the lengths run over all tokens at once, so the longest one drowns the rest.",
                page=f"{REPLACING}#one-layer-and-all-of-them",
            ),
            Misconception(
                name="mean-of-ratios",
                wrong={"replacement_error": _mean_of_ratios},
                hint="each entry was divided by its own exact value, and entries near 0 then decide the mean.",
                page=f"{REPLACING}#one-layer-and-all-of-them",
            ),
        ),
        uses=("row_matrices", "pre_activations", "gelu"),
    ),
    Step(
        name="strongest_unit",
        own={"strongest_unit": strongest_unit},
        probes=_STRONGEST,
        misconceptions=(
            Misconception(
                name="largest-hidden-value",
                wrong={"strongest_unit": _length_of_largest_hidden},
                hint="the unit with the largest hidden value was chosen, whatever the length of its row of W_2.",
                page=f"{KEYS}#the-idea",
            ),
            Misconception(
                name="sign-kept",
                wrong={"strongest_unit": lambda h, W_2: _best(h * np.linalg.norm(W_2, axis=-1))},
                hint="negative hidden values were passed over; a length has no sign.",
                page=f"{FIRES}#one-unit-one-token",
            ),
            Misconception(
                name="longest-row",
                wrong={
                    "strongest_unit": lambda h, W_2: _best(np.ones_like(h) * np.linalg.norm(W_2, axis=-1)),
                },
                hint="the longest row of W_2 was chosen, the same for every token; h says how much of it is used.",
                page=f"{KEYS}#the-idea",
            ),
            Misconception(
                name="largest-entry",
                wrong={"strongest_unit": lambda h, W_2: _best(np.abs(h) * np.abs(W_2).max(axis=-1))},
                hint="a row of W_2 was measured by its largest entry; its length takes all entries.",
                page=f"{FIRES}#one-unit-one-token",
            ),
            Misconception(
                name="length-squared",
                wrong={"strongest_unit": lambda h, W_2: _best(h**2 * (W_2**2).sum(axis=-1))},
                hint="the unit is right and the second value is the square of the length.",
                page=f"{KEYS}#the-idea",
            ),
            Misconception(
                name="one-for-all",
                wrong={"strongest_unit": _strongest_of_all},
                hint="one unit was chosen for all tokens; each token has its own.",
                page=f"{FIRES}#one-unit-one-token",
            ),
        ),
        uses=("row_matrices", "pre_activations", "gelu"),
    ),
    Step(
        name="parameters",
        own={"sublayer_parameters": sublayer_parameters, "sublayer_share": sublayer_share},
        probes=_COUNT,
        misconceptions=(
            Misconception(
                name="biases-forgotten",
                wrong={"sublayer_parameters": lambda d, d_ff: 2 * d * d_ff},
                hint="the two matrices are there, and their biases are not.",
                page=f"{PARITY}#the-idea",
            ),
            Misconception(
                name="one-bias",
                wrong={"sublayer_parameters": lambda d, d_ff: 2 * d * d_ff + d_ff},
                hint="only the bias of the expansion was counted.",
                page=f"{PARITY}#the-idea",
            ),
            Misconception(
                name="one-matrix",
                wrong={"sublayer_parameters": lambda d, d_ff: d * d_ff + d_ff + d},
                hint="only one of the two matrices was counted.",
                page=f"{PARITY}#the-idea",
            ),
            Misconception(
                name="three-matrices",
                wrong={"sublayer_parameters": lambda d, d_ff: 3 * d * d_ff},
                hint="this is the count of a gated block, which has three matrices and no biases.",
                page=f"{PARITY}#the-idea",
            ),
            Misconception(
                name="one-layer",
                wrong={"sublayer_share": lambda d, d_ff, layers, total: sublayer_parameters(d, d_ff) / total},
                hint="the block of a single layer was divided by the whole model.",
                page=f"{BLOCKS}#every-array",
            ),
            Misconception(
                name="against-the-rest",
                wrong={
                    "sublayer_share": lambda d, d_ff, layers, total: (
                        layers * sublayer_parameters(d, d_ff) / (total - layers * sublayer_parameters(d, d_ff))
                    )
                },
                hint="the blocks were divided by what is left of the model; a share is taken of all.",
                page=f"{BLOCKS}#every-array",
            ),
            Misconception(
                name="percent",
                wrong={
                    "sublayer_share": lambda d, d_ff, layers, total: 100 * sublayer_share(d, d_ff, layers, total)
                },
                hint="the share was given in percent; asked for is a number between 0 and 1.",
                page=f"{BLOCKS}#forecast",
            ),
        ),
    ),
)
