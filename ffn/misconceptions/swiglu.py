"""Wrong ways through the unit `swiglu`: gates, the ledger of a gated block, its traffic, and mixtures of experts."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ffn.activations import gelu, relu, sigmoid, silu
from ffn.blocks import GATES, GatedFeedForward, MixtureOfExperts
from ffn.ledger import (
    BYTES_PER_GIBIBYTE,
    BYTES_PER_MEBIBYTE,
    BudgetInput,
    flops_per_token,
    gated_parameters,
    gated_width_at_parity,
    memory_budget,
    plain_parameters,
)
from ffn.misconceptions.registry import Misconception, Probe, Step
from ffn.normal import normal_cdf

__all__ = ["STEPS"]

GATED = "book/swiglu/gates"
PARITY = "book/swiglu/parameters-and-parity"
TRAFFIC = "book/swiglu/bytes-and-operations"
BUDGET = "book/swiglu/memory-budget"
VARIANTS = "book/in-practice/variants"


def _array(values: Any) -> Any:
    return np.asarray(values, dtype=float)


# The hidden vector, the block and its family


def gated_hidden(x: Any, W_g: Any, W_u: Any) -> Any:
    """Hidden vector of a SwiGLU block: SiLU of one branch times the other."""
    x = _array(x)
    return silu(x @ _array(W_g)) * (x @ _array(W_u))


def swiglu(x: Any, W_g: Any, W_u: Any, W_d: Any) -> Any:
    """Output of a SwiGLU block without biases."""
    return GatedFeedForward(_array(W_g), _array(W_u), _array(W_d))(_array(x))


def gated(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    """Output of a block of the gated family, by the name of the block."""
    return GatedFeedForward(_array(W_g), _array(W_u), _array(W_d), GATES[name])(_array(x))


_GATE_OF = {"GLU": sigmoid, "bilinear": lambda z: z, "ReGLU": relu, "GEGLU": gelu, "SwiGLU": silu}


def _family(x: Any, W_g: Any, W_u: Any, W_d: Any, gate: Any) -> Any:
    x = _array(x)
    return (gate(x @ _array(W_g)) * (x @ _array(W_u))) @ _array(W_d)


def _silu_for_glu(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    return gated(x, W_g, W_u, W_d, "SwiGLU" if name == "GLU" else name)


def _cdf_for_gelu(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    return _family(x, W_g, W_u, W_d, normal_cdf if name == "GEGLU" else _GATE_OF[name])


def _bilinear_without_gate(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    return _family(x, W_g, W_u, W_d, np.ones_like if name == "bilinear" else _GATE_OF[name])


def _gate_alone(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    x = _array(x)
    return _GATE_OF[name](x @ _array(W_g)) @ _array(W_d)


# The ledger


def gated_bytes(d: int, d_ff: int, bits: int = 16) -> float:
    """Bytes of a bias-free gated block's weights."""
    return gated_parameters(d, d_ff) * bits / 8


_UNITS = {"MB": 10**6, "MiB": BYTES_PER_MEBIBYTE, "GB": 10**9, "GiB": BYTES_PER_GIBIBYTE}


def in_unit(size: float, unit: str) -> float:
    """A number of bytes in MB, MiB, GB or GiB."""
    return size / _UNITS[unit]


def parity_width(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    """Width of a gated block with the weights of a plain one of width factor * d, rounded up to a multiple."""
    return gated_width_at_parity(factor * d, multiple_of=multiple_of)


def size_ratio(d: int, d_ff: int, factor: int = 4) -> float:
    """Weights of a gated block over those of a plain one of width factor * d, biases left out."""
    return gated_parameters(d, d_ff) / plain_parameters(d, factor * d, biases=False)


def _rounded_down(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    return 2 * factor * d // 3 // multiple_of * multiple_of


def _nearest(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    return math.floor((2 * factor * d // 3) / multiple_of + 0.5) * multiple_of


def _of_d(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    return gated_width_at_parity(d, multiple_of=multiple_of)


def _half(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    return -(-(factor * d // 2) // multiple_of) * multiple_of


def _fraction_kept(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    return math.ceil(2 * factor * d / 3 / multiple_of) * multiple_of


def _with_biases(d: int, d_ff: int, factor: int = 4) -> float:
    return gated_parameters(d, d_ff) / plain_parameters(d, factor * d)


# Operations, bytes moved and the roofline


def _tokens(shape: Sequence[int]) -> int:
    return math.prod(shape[:-1])


def flops(shape: Sequence[int], d_ff: int) -> int:
    """Floating-point operations of a gated block's matrix products on an input of this shape."""
    return _tokens(shape) * flops_per_token(shape[-1], d_ff, gated=True)


def bytes_moved(tokens: int, d: int, d_ff: int, size: int = 2) -> int:
    """Bytes that a gated block moves: every weight once, and what each token reads and writes."""
    return size * (gated_parameters(d, d_ff) + tokens * (2 * d + 6 * d_ff))


def arithmetic_intensity(tokens: int, d: int, d_ff: int, size: int = 2) -> float:
    """Operations of a gated block for each byte that it moves."""
    return flops((tokens, d), d_ff) / bytes_moved(tokens, d, d_ff, size)


def roofline(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    """Attainable rate, and what limits it: "memory" or "arithmetic"."""
    slope = bandwidth * intensity
    return (slope, "memory") if slope < peak else (peak, "arithmetic")


def _ridge_at_one(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    return min(peak, bandwidth * intensity), "memory" if intensity < 1 else "arithmetic"


def _larger_rate(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    return max(peak, bandwidth * intensity), roofline(intensity, peak, bandwidth)[1]


def _sides_exchanged(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    rate, limit = roofline(intensity, peak, bandwidth)
    return rate, "arithmetic" if limit == "memory" else "memory"


def _always_the_peak(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    return peak, roofline(intensity, peak, bandwidth)[1]


# The memory budget


def kv_cache_bytes(layers: int, d_kv: int, tokens: int, sequences: int = 1, size: int = 2) -> float:
    """Bytes of the keys and values that a decoder keeps."""
    given = BudgetInput(0, layers=layers, d_kv=d_kv, tokens=tokens, sequences=sequences, cache_bytes=size)
    return memory_budget(given).kv_cache


def budget(parameters: int, cache: float = 0, training: bool = False) -> dict[str, float]:
    """Bytes of weights, cache and, in training, gradients, two moments and a master copy, with their total."""
    return _budget(parameters, cache, training)


def _budget(
    parameters: int, cache: float, training: bool, gradients: int = 2, moments: int = 8, master: int = 4
) -> dict[str, float]:
    parts = {
        "weights": 2 * parameters,
        "kv_cache": cache,
        "gradients": gradients * parameters * training,
        "optimizer": moments * parameters * training,
        "master": master * parameters * training,
    }
    return parts | {"total": sum(parts.values())}


# The mixture of experts


def _mixture(W_r: Any, experts: Any, k: int) -> MixtureOfExperts:
    blocks = [GatedFeedForward(*(_array(W) for W in matrices)) for matrices in experts]
    return MixtureOfExperts(blocks, _array(W_r), top_k=k)


def route(x: Any, W_r: Any, k: int) -> tuple[Any, Any]:
    """The k best experts of every token, best first, and their weights."""
    scores = _array(x) @ _array(W_r)
    chosen = np.argsort(-scores, axis=-1, kind="stable")[..., :k]
    best = np.take_along_axis(scores, chosen, axis=-1)
    weights = np.exp(best - best[..., :1])
    return chosen, weights / weights.sum(axis=-1, keepdims=True)


def mixture(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    """Output of a mixture of SwiGLU experts."""
    return _mixture(W_r, experts, k)(_array(x))


def expert_parameters(d: int, d_ff: int, experts: int, k: int) -> tuple[int, int]:
    """Parameters that a mixture stores, and those that one token uses."""
    one = gated_parameters(d, d_ff)
    return d * experts + experts * one, d * experts + k * one


def _softmax_over_all(x: Any, W_r: Any, k: int) -> tuple[Any, Any]:
    scores = _array(x) @ _array(W_r)
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    chosen = np.argsort(-scores, axis=-1)[..., :k]
    return chosen, np.take_along_axis(shares, chosen, axis=-1)


def _not_normalised(x: Any, W_r: Any, k: int) -> tuple[Any, Any]:
    scores = _array(x) @ _array(W_r)
    chosen = np.argsort(-scores, axis=-1)[..., :k]
    return chosen, np.take_along_axis(scores, chosen, axis=-1)


def _worst_chosen(x: Any, W_r: Any, k: int) -> tuple[Any, Any]:
    scores = _array(x) @ _array(W_r)
    chosen = np.argsort(scores, axis=-1)[..., :k]
    worst = np.take_along_axis(scores, chosen, axis=-1)
    weights = np.exp(worst - worst.max(axis=-1, keepdims=True))
    return chosen, weights / weights.sum(axis=-1, keepdims=True)


def _in_equal_parts(x: Any, W_r: Any, k: int) -> tuple[Any, Any]:
    chosen, weights = route(x, W_r, k)
    return chosen, np.full(weights.shape, 1 / k)


def _token_by_token(x: Any, rule: Any) -> Any:
    x = _array(x)
    rows = [rule(token) for token in x.reshape(-1, x.shape[-1])]
    return np.array(rows).reshape(x.shape)


def _plain_sum(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    def rule(token: Any) -> Any:
        return sum(swiglu(token, *experts[e]) for e in route(token, W_r, k)[0])

    return _token_by_token(x, rule)


def _best_only(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    return mixture(x, W_r, experts, 1)


def _every_expert(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    return mixture(x, W_r, experts, len(experts))


def _input_weighted(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    def rule(token: Any) -> Any:
        chosen, weights = route(token, W_r, k)
        return sum(swiglu(w * token, *experts[e]) for e, w in zip(chosen, weights, strict=True))

    return _token_by_token(x, rule)


def _first_token_decides(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    x = _array(x)
    chosen, weights = route(x.reshape(-1, x.shape[-1])[0], W_r, k)
    return sum(w * swiglu(x, *experts[e]) for e, w in zip(chosen, weights, strict=True))


# What the probes are made of

_RNG = np.random.default_rng(2020)
_X3, _X1 = _RNG.normal(0, 1, (2, 3, 4)).round(2), _RNG.normal(0, 1, 4).round(2)
_W_G, _W_U = _RNG.normal(0, 1, (2, 4, 5)).round(2)
_W_D = _RNG.normal(0, 1, (5, 4)).round(2)
_W_R = _RNG.normal(0, 1, (4, 5)).round(2)
_EXPERTS = [tuple(_RNG.normal(0, 1, shape).round(2) for shape in ((4, 3), (4, 3), (3, 4))) for _ in range(5)]
_WIDTHS = ((4, 12), (6, 9), (1, 5), (768, 2048))
_TRAFFIC = ((1, 4, 12), (8, 4, 12, 4), (512, 4096, 11_008), (3, 6, 9, 1))
_PARITIES = ((4096, 4, 256), (5120, 4, 256), (10,), (768,), (100, 4, 64), (384, 4, 256), (50, 2, 8), (97, 1, 64))


def _probes(function: str, cases: Sequence[tuple[Any, ...]]) -> tuple[Probe, ...]:
    return tuple(Probe(function, case) for case in cases)


STEPS = (
    Step(
        name="gated_hidden",
        own={"gated_hidden": gated_hidden},
        probes=_probes(
            "gated_hidden", ((_X3, _W_G, _W_U), (_X1, _W_G, _W_U), ([[1, -2]], [[1, 0], [2, 1]], [[3], [1]]))
        ),
        misconceptions=(
            Misconception(
                name="gate-and-up-exchanged",
                wrong={"gated_hidden": lambda x, W_g, W_u: gated_hidden(x, W_u, W_g)},
                hint="the up branch went through SiLU; the branch that should pass through it is the gate.",
                page=f"{GATED}#what-goes-wrong",
            ),
            Misconception(
                name="both-branches-activated",
                wrong={"gated_hidden": lambda x, W_g, W_u: silu(_array(x) @ W_g) * silu(_array(x) @ W_u)},
                hint="both branches went through SiLU; the up branch stays linear.",
                page=f"{GATED}#the-idea",
            ),
            Misconception(
                name="product-activated",
                wrong={"gated_hidden": lambda x, W_g, W_u: silu((_array(x) @ W_g) * (_array(x) @ W_u))},
                hint="the product of the branches went through SiLU; it belongs to the gate, before the product.",
                page=f"{GATED}#the-idea",
            ),
            Misconception(
                name="sum-for-product",
                wrong={"gated_hidden": lambda x, W_g, W_u: silu(_array(x) @ W_g) + _array(x) @ W_u},
                hint="the two branches were added; a gate multiplies.",
                page=f"{GATED}#the-idea",
            ),
            Misconception(
                name="sigmoid-for-silu",
                wrong={"gated_hidden": lambda x, W_g, W_u: sigmoid(_array(x) @ W_g) * (_array(x) @ W_u)},
                hint="the gate is a bare sigmoid, which makes a GLU of the block; SiLU multiplies it by its argument.",
                page=f"{GATED}#the-family",
            ),
        ),
    ),
    Step(
        name="swiglu",
        own={"swiglu": swiglu},
        probes=_probes(
            "swiglu", ((_X3, _W_G, _W_U, _W_D), (_X1, _W_G, _W_U, _W_D), (_X3[:1, :1], _W_G, _W_U, _W_D))
        ),
        misconceptions=(
            Misconception(
                name="residual-added",
                wrong={"swiglu": lambda x, W_g, W_u, W_d: _array(x) + swiglu(x, W_g, W_u, W_d)},
                hint="the input was added to the output; the residual connection lies outside of the block.",
                page="book/mechanism/residual-and-norm#the-idea",
            ),
            Misconception(
                name="leading-dimensions-lost",
                wrong={"swiglu": lambda x, *W: swiglu(_array(x).reshape(-1, np.shape(x)[-1]), *W)},
                hint="all positions ended up in one long matrix; the output keeps the leading dimensions of x.",
                page=f"{GATED}#verify",
            ),
            Misconception(
                name="up-matrix-reused",
                wrong={"swiglu": lambda x, W_g, W_u, W_d: gated_hidden(x, W_g, W_u) @ _array(W_u).T},
                hint="the transposed up matrix was used for the way back, where the block has a third matrix.",
                page=f"{GATED}#the-idea",
            ),
            Misconception(
                name="roles-exchanged",
                wrong={"swiglu": lambda x, W_g, W_u, W_d: swiglu(x, W_u, W_g, W_d)},
                hint="the two input matrices went in the wrong order; their shapes are equal, so nothing complains.",
                page=f"{GATED}#what-goes-wrong",
            ),
            Misconception(
                name="output-activated",
                wrong={"swiglu": lambda x, W_g, W_u, W_d: silu(swiglu(x, W_g, W_u, W_d))},
                hint="the output went through SiLU as well; nothing follows the down projection.",
                page=f"{GATED}#the-calculation",
            ),
        ),
        uses=("gated_hidden",),
    ),
    Step(
        name="gated",
        own={"gated": gated},
        probes=(
            *_probes("gated", [(_X3, _W_G, _W_U, _W_D, name) for name in GATES]),
            *_probes("gated", [(_X1, _W_G, _W_U, _W_D)]),
        ),
        misconceptions=(
            Misconception(
                name="name-ignored",
                wrong={"gated": lambda x, W_g, W_u, W_d, name="SwiGLU": swiglu(x, W_g, W_u, W_d)},
                hint="every member of the family came out as SwiGLU: the name has to choose the gate.",
                page=f"{GATED}#the-family",
            ),
            Misconception(
                name="silu-for-the-glu",
                wrong={"gated": _silu_for_glu},
                hint="the block called GLU got SiLU for its gate; the original gate is the sigmoid alone.",
                page=f"{GATED}#the-family",
            ),
            Misconception(
                name="normal-cdf-for-gelu",
                wrong={"gated": _cdf_for_gelu},
                hint="the gate of GEGLU became the normal probability alone; it should be all of GELU.",
                page=f"{GATED}#the-family",
            ),
            Misconception(
                name="bilinear-without-gate",
                wrong={"gated": _bilinear_without_gate},
                hint="the bilinear block lost its gate; without an activation the product of both branches remains.",
                page=f"{GATED}#the-family",
            ),
            Misconception(
                name="gate-alone",
                wrong={"gated": _gate_alone},
                hint="only the gate was projected back, so the up branch has no say in the output.",
                page=f"{GATED}#the-idea",
            ),
        ),
        uses=("gated_hidden", "swiglu"),
    ),
    Step(
        name="gated_parameters",
        own={"gated_parameters": gated_parameters},
        probes=_probes("gated_parameters", _WIDTHS),
        misconceptions=(
            Misconception(
                name="two-matrices",
                wrong={"gated_parameters": lambda d, d_ff: 2 * d * d_ff},
                hint="two matrices were counted, as for a plain block; a gated one has a third.",
                page=f"{PARITY}#the-idea",
            ),
            Misconception(
                name="biases-counted",
                wrong={"gated_parameters": lambda d, d_ff: 3 * d * d_ff + 2 * d_ff + d},
                hint="biases were counted that this block does not have.",
                page=f"{PARITY}#the-idea",
            ),
            Misconception(
                name="four-times-d",
                wrong={"gated_parameters": lambda d, d_ff: 12 * d * d},
                hint="the intermediate width was taken to be four times d, although it is an argument of its own.",
                page=f"{PARITY}#parity",
            ),
        ),
    ),
    Step(
        name="gated_bytes",
        own={"gated_bytes": gated_bytes, "in_unit": in_unit},
        probes=(
            *_probes("gated_bytes", ((4, 12, 16), (4, 12, 4), (6, 9), (4096, 11_008, 8), (5, 7, 32))),
            *_probes("in_unit", [(size, unit) for unit in _UNITS for size in (2.0**31, 5e9)]),
        ),
        misconceptions=(
            Misconception(
                name="bits-for-bytes",
                wrong={"gated_bytes": lambda d, d_ff, bits=16: gated_parameters(d, d_ff) * bits},
                hint="the result counts bits; eight of them make a byte.",
                page=f"{TRAFFIC}#bytes",
            ),
            Misconception(
                name="always-two-bytes",
                wrong={"gated_bytes": lambda d, d_ff, bits=16: gated_parameters(d, d_ff) * 2},
                hint="two bytes a weight were taken for granted; the number of bits is an argument.",
                page=f"{TRAFFIC}#bytes",
            ),
            Misconception(
                name="whole-bytes-each",
                wrong={"gated_bytes": lambda d, d_ff, bits=16: gated_parameters(d, d_ff) * max(1, bits // 8)},
                hint="each weight got whole bytes of its own, but two weights of 4 bits share one.",
                page=f"{TRAFFIC}#bytes",
            ),
            Misconception(
                name="decimal-for-binary",
                wrong={"in_unit": lambda size, unit: size / (10**6 if unit in ("MB", "MiB") else 10**9)},
                hint="the units MiB and GiB were taken for MB and GB; the small i stands for powers of 2.",
                page="book/worked-cells/cell-h#what-goes-wrong",
            ),
            Misconception(
                name="binary-for-decimal",
                wrong={"in_unit": lambda size, unit: size / (2**20 if unit in ("MB", "MiB") else 2**30)},
                hint="powers of 2 were used for MB and GB; without the small i the units are powers of 10.",
                page="book/worked-cells/cell-h#what-goes-wrong",
            ),
        ),
        uses=("gated_parameters",),
    ),
    Step(
        name="parity_width",
        own={"parity_width": parity_width, "size_ratio": size_ratio},
        probes=(
            *_probes("parity_width", _PARITIES),
            *_probes("size_ratio", ((4096, 14_336), (4, 12), (6, 9, 2), (768, 2048))),
        ),
        misconceptions=(
            Misconception(
                name="two-thirds-of-d",
                wrong={"parity_width": _of_d},
                hint="two thirds were taken of d; the rule shrinks the intermediate width of the plain block.",
                page=f"{PARITY}#parity",
            ),
            Misconception(
                name="rounded-down",
                wrong={"parity_width": _rounded_down},
                hint="the width was rounded down to a multiple, and a narrower block is not what was asked for.",
                page=f"{PARITY}#parity",
            ),
            Misconception(
                name="nearest-multiple",
                wrong={"parity_width": _nearest},
                hint="the nearest multiple was taken, which lies below the parity width in some cases.",
                page=f"{PARITY}#parity",
            ),
            Misconception(
                name="half-the-width",
                wrong={"parity_width": _half},
                hint="the width was halved, which balances the two input matrices and forgets the way back.",
                page=f"{PARITY}#questions",
            ),
            Misconception(
                name="fraction-rounded-up",
                wrong={"parity_width": _fraction_kept},
                hint="the fraction of two thirds still counted in the rounding; it is dropped first.",
                page=f"{PARITY}#parity",
            ),
            Misconception(
                name="upside-down",
                wrong={"size_ratio": lambda d, d_ff, factor=4: 2 * factor * d / (3 * d_ff)},
                hint="the ratio is the wrong way up: the gated block belongs in the numerator.",
                page=f"{PARITY}#parity",
            ),
            Misconception(
                name="widths-compared",
                wrong={"size_ratio": lambda d, d_ff, factor=4: d_ff / (factor * d)},
                hint="only the widths were compared, as if both blocks had equally many matrices.",
                page=f"{PARITY}#forecast",
            ),
            Misconception(
                name="plain-biases-counted",
                wrong={"size_ratio": _with_biases},
                hint="the plain block was counted with its biases; the comparison leaves them out on both sides.",
                page=f"{PARITY}#the-idea",
            ),
        ),
        uses=("gated_parameters",),
    ),
    Step(
        name="flops",
        own={"flops": flops},
        probes=_probes("flops", (((4,), 12), ((5, 4), 12), ((2, 3, 4), 12), ((2, 1, 3, 5), 6), ((4, 1, 3), 7))),
        misconceptions=(
            Misconception(
                name="multiply-add-as-one",
                wrong={"flops": lambda shape, d_ff: _tokens(shape) * gated_parameters(shape[-1], d_ff)},
                hint="a multiplication and its addition were counted as one operation; they are two.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="two-products",
                wrong={"flops": lambda shape, d_ff: _tokens(shape) * flops_per_token(shape[-1], d_ff)},
                hint="the operations of two matrix products were counted; there are three.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="one-sequence",
                wrong={"flops": lambda shape, d_ff: flops(shape[-2:], d_ff)},
                hint="the tokens of one sequence were counted and the batch was left out.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="dimensions-added",
                wrong={"flops": lambda shape, d_ff: (sum(shape[:-1]) or 1) * flops(shape[-1:], d_ff)},
                hint="the leading dimensions were added up; the number of tokens is their product.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="one-token",
                wrong={"flops": lambda shape, d_ff: flops(shape[-1:], d_ff)},
                hint="this is the work for a single token, whatever the input holds.",
                page=f"{TRAFFIC}#operations",
            ),
        ),
        uses=("gated_parameters",),
    ),
    Step(
        name="intensity",
        own={"bytes_moved": bytes_moved, "arithmetic_intensity": arithmetic_intensity},
        probes=(*_probes("bytes_moved", _TRAFFIC), *_probes("arithmetic_intensity", _TRAFFIC)),
        misconceptions=(
            Misconception(
                name="weights-for-each-token",
                wrong={"bytes_moved": lambda n, d, d_ff, size=2: n * bytes_moved(1, d, d_ff, size)},
                hint="the weights were read anew for each token; one reading serves all of them.",
                page=f"{TRAFFIC}#forecast",
            ),
            Misconception(
                name="activations-left-out",
                wrong={"bytes_moved": lambda n, d, d_ff, size=2: size * gated_parameters(d, d_ff)},
                hint="only the weights were counted; what each token reads and writes is moved as well.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="numbers-for-bytes",
                wrong={"bytes_moved": lambda n, d, d_ff, size=2: bytes_moved(n, d, d_ff, 1)},
                hint="the numbers that move were counted, not their bytes.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="weights-in-numbers",
                wrong={
                    "bytes_moved": lambda n, d, d_ff, size=2: (
                        gated_parameters(d, d_ff) + size * n * (2 * d + 6 * d_ff)
                    )
                },
                hint="the activations were turned into bytes and the weights were forgotten in that conversion.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="bytes-per-operation",
                wrong={
                    "arithmetic_intensity": lambda n, d, d_ff, size=2: 1 / arithmetic_intensity(n, d, d_ff, size)
                },
                hint="the quotient is bytes per operation; intensity is operations per byte.",
                page=f"{TRAFFIC}#intensity",
            ),
            Misconception(
                name="work-of-one-token",
                wrong={
                    "arithmetic_intensity": lambda n, d, d_ff, size=2: arithmetic_intensity(n, d, d_ff, size) / n
                },
                hint="the operations of one token were divided by the bytes of all tokens.",
                page=f"{TRAFFIC}#intensity",
            ),
        ),
        uses=("gated_parameters", "flops"),
    ),
    Step(
        name="roofline",
        own={"roofline": roofline},
        probes=_probes("roofline", [(i, 100.0, 50.0) for i in (0.5, 1.5, 2.0, 10.0)] + [(0.5, 10.0, 80.0)]),
        misconceptions=(
            Misconception(
                name="larger-rate",
                wrong={"roofline": _larger_rate},
                hint="the larger of the two rates was returned, which no program can reach.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="sides-exchanged",
                wrong={"roofline": _sides_exchanged},
                hint="the names of the two sides are exchanged: at low intensity the movement of bytes is the limit.",
                page=f"{TRAFFIC}#the-idea",
            ),
            Misconception(
                name="limit-at-one",
                wrong={"roofline": _ridge_at_one},
                hint="the limit was read off from one operation per byte; where it changes depends on the machine.",
                page=f"{TRAFFIC}#a-roofline-of-this-machine",
            ),
            Misconception(
                name="always-the-peak",
                wrong={"roofline": _always_the_peak},
                hint="the peak was promised at every intensity; on the slope the bandwidth allows less.",
                page=f"{TRAFFIC}#what-goes-wrong",
            ),
        ),
    ),
    Step(
        name="budget",
        own={"kv_cache_bytes": kv_cache_bytes, "budget": budget},
        probes=(
            *_probes("kv_cache_bytes", ((4, 64, 10, 3), (2, 8, 5), (3, 8, 7, 2, 1), (32, 4096, 2048, 1, 2))),
            *_probes("budget", ((1000,), (1000, 50), (1000, 50, True), (10, 0, True), (0, 7, True))),
        ),
        misconceptions=(
            Misconception(
                name="keys-only",
                wrong={"kv_cache_bytes": lambda *given, **more: kv_cache_bytes(*given, **more) / 2},
                hint="one vector was kept for each token and layer; the cache holds a key and a value.",
                page=f"{BUDGET}#the-idea",
            ),
            Misconception(
                name="layers-forgotten",
                wrong={"kv_cache_bytes": lambda layers, *given, **more: kv_cache_bytes(1, *given, **more)},
                hint="the cache of a single layer was counted; every layer keeps its own.",
                page=f"{BUDGET}#the-idea",
            ),
            Misconception(
                name="one-sequence",
                wrong={
                    "kv_cache_bytes": lambda layers, d_kv, tokens, sequences=1, size=2: kv_cache_bytes(
                        layers, d_kv, tokens, 1, size
                    )
                },
                hint="one sequence was counted, but those that run at the same time keep a cache each.",
                page=f"{BUDGET}#the-calculation",
            ),
            Misconception(
                name="one-moment",
                wrong={"budget": lambda n, cache=0, training=False: _budget(n, cache, training, moments=4)},
                hint="one moment was kept for each parameter; Adam has two.",
                page=f"{BUDGET}#the-idea",
            ),
            Misconception(
                name="moments-in-two-bytes",
                wrong={
                    "budget": lambda n, cache=0, training=False: _budget(n, cache, training, moments=4, master=2)
                },
                hint="moments and master copy were stored like the weights; they are kept in four bytes.",
                page=f"{BUDGET}#forecast",
            ),
            Misconception(
                name="master-forgotten",
                wrong={"budget": lambda n, cache=0, training=False: _budget(n, cache, training, master=0)},
                hint="the master copy of the weights is missing from the training budget.",
                page=f"{BUDGET}#forecast",
            ),
            Misconception(
                name="gradients-forgotten",
                wrong={"budget": lambda n, cache=0, training=False: _budget(n, cache, training, gradients=0)},
                hint="no room was made for the gradients, one for each weight.",
                page=f"{BUDGET}#what-goes-wrong",
            ),
            Misconception(
                name="always-training",
                wrong={"budget": lambda n, cache=0, training=False: _budget(n, cache, True)},
                hint="the training state was budgeted for inference too, which needs none of it.",
                page=f"{BUDGET}#the-idea",
            ),
        ),
    ),
    Step(
        name="route",
        own={"route": route},
        probes=_probes("route", ((_X3, _W_R, 2), (_X1, _W_R, 3), (_X3[0], _W_R, 1))),
        misconceptions=(
            Misconception(
                name="softmax-over-all",
                wrong={"route": _softmax_over_all},
                hint="the softmax ran over all experts, so the weights of the chosen ones do not sum to 1.",
                page=f"{VARIANTS}#a-router-at-work",
            ),
            Misconception(
                name="not-normalised",
                wrong={"route": _not_normalised},
                hint="the bare scores were returned as weights; they may be negative and do not sum to anything fixed.",
                page=f"{VARIANTS}#a-router-at-work",
            ),
            Misconception(
                name="lowest-scores",
                wrong={"route": _worst_chosen},
                hint="sorting runs upwards, so the experts with the lowest scores were chosen.",
                page=f"{VARIANTS}#a-router-at-work",
            ),
            Misconception(
                name="in-equal-parts",
                wrong={"route": _in_equal_parts},
                hint="the chosen experts share equally, although their scores differ.",
                page=f"{VARIANTS}#a-router-at-work",
            ),
        ),
    ),
    Step(
        name="mixture",
        own={"mixture": mixture, "expert_parameters": expert_parameters},
        probes=(
            *_probes("mixture", ((_X3, _W_R, _EXPERTS, 2), (_X1, _W_R, _EXPERTS, 3), (_X3[0], _W_R, _EXPERTS, 1))),
            *_probes("expert_parameters", ((4, 12, 8, 2), (6, 9, 4, 1), (3, 5, 3, 3))),
        ),
        misconceptions=(
            Misconception(
                name="outputs-not-weighted",
                wrong={"mixture": _plain_sum},
                hint="the outputs of the chosen experts were added up without their weights.",
                page=f"{VARIANTS}#a-router-at-work",
            ),
            Misconception(
                name="best-expert-only",
                wrong={"mixture": _best_only},
                hint="only the best expert of each token was used, whatever k is.",
                page=f"{VARIANTS}#a-router-at-work",
            ),
            Misconception(
                name="every-expert",
                wrong={"mixture": _every_expert},
                hint="every expert contributed; a token uses k of them.",
                page=f"{BUDGET}#mixtures-of-experts",
            ),
            Misconception(
                name="input-weighted",
                wrong={"mixture": _input_weighted},
                hint="the weight multiplied the input of an expert; a block is not linear, so weigh its output.",
                page=f"{VARIANTS}#questions",
            ),
            Misconception(
                name="first-token-decides",
                wrong={"mixture": _first_token_decides},
                hint="the first token chose the experts for all; each token is routed for itself.",
                page=f"{BUDGET}#mixtures-of-experts",
            ),
            Misconception(
                name="active-as-stored",
                wrong={"expert_parameters": lambda d, d_ff, n, k: (expert_parameters(d, d_ff, n, k)[1],) * 2},
                hint="the experts that one token uses were taken for all that is stored.",
                page=f"{VARIANTS}#what-goes-wrong",
            ),
            Misconception(
                name="stored-as-active",
                wrong={"expert_parameters": lambda d, d_ff, n, k: (expert_parameters(d, d_ff, n, k)[0],) * 2},
                hint="every stored parameter was called active; a token uses the router and k experts.",
                page=f"{VARIANTS}#the-whole-model",
            ),
            Misconception(
                name="router-forgotten",
                wrong={"expert_parameters": lambda d, d_ff, n, k: (3 * d * d_ff * n, 3 * d * d_ff * k)},
                hint="the router was left out, although it is stored and every token uses it.",
                page=f"{BUDGET}#mixtures-of-experts",
            ),
        ),
        uses=("swiglu", "route", "gated_parameters"),
    ),
)
