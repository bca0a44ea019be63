"""Wrong ways through the unit `worked-cells`: one neuron, two tokens, a real block, no activation, two tails."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ffn.activations import sigmoid
from ffn.blocks import FeedForward, collapse
from ffn.ledger import mebibytes, plain_parameters
from ffn.misconceptions.registry import Misconception, Probe, Step
from ffn.normal import normal_cdf, normal_pdf

__all__ = ["STEPS"]

CELLS = "book/worked-cells"


def _array(values: Any) -> Any:
    return np.asarray(values, dtype=float)


def _each(name: str, *arguments: tuple[Any, ...]) -> tuple[Probe, ...]:
    """Probes of a function, one for each tuple of arguments."""
    return tuple(Probe(name, given) for given in arguments)


# Cells A, B, C: one neuron


def preactivation(x: Any, w: Any, b: float) -> Any:
    """Pre-activation of one neuron for each token."""
    return _array(x) @ _array(w) + b


def zero_bias(x: Any, w: Any) -> Any:
    """The bias with which the pre-activation is zero."""
    return -(_array(x) @ _array(w))


def bias_change(x: Any, w: Any, b: float) -> Any:
    """What has to be added to the bias b to bring the pre-activation to zero."""
    return -(_array(x) @ _array(w) + b)


def exact_preactivation(x: Sequence[float], w: Sequence[float], b: float) -> Fraction:
    """Pre-activation of decimal numbers as they are written, as a fraction."""
    products = (Fraction(str(x_i)) * Fraction(str(w_i)) for x_i, w_i in zip(x, w, strict=True))
    return sum(products, Fraction(str(b)))


def is_zero(x: Any, w: Any, b: float, tolerance: float = 1e-12) -> bool:
    """Whether a pre-activation is zero up to rounding, measured by the size of its terms."""
    terms = np.append(_array(x) * _array(w), b)
    return bool(abs(terms.sum()) <= tolerance * np.abs(terms).sum())


def _fraction_of_the_binary_numbers(x: Any, w: Any, b: float) -> Fraction:
    products = (Fraction(x_i) * Fraction(w_i) for x_i, w_i in zip(x, w, strict=True))
    return sum(products, Fraction(b))


def _fraction_of_the_sum(x: Any, w: Any, b: float) -> Fraction:
    return Fraction(str(float(preactivation(x, w, b))))


def preactivation_range(x: Any, w: Any, b: float) -> tuple[Any, Any]:
    """Smallest and largest pre-activation that vectors of these norms can give."""
    reach = np.linalg.norm(x) * np.linalg.norm(w)
    return b - reach, b + reach


def _range_of_squares(x: Any, w: Any, b: float) -> tuple[Any, Any]:
    reach = (_array(x) ** 2).sum() * (_array(w) ** 2).sum()
    return b - reach, b + reach


def _range_around_zero(x: Any, w: Any, b: float) -> tuple[Any, Any]:
    reach = np.linalg.norm(x) * np.linalg.norm(w) + abs(b)
    return -reach, reach


def _cosine(x: Any, w: Any) -> Any:
    return np.dot(x, w) / (np.linalg.norm(x) * np.linalg.norm(w))


def angle(x: Any, w: Any) -> Any:
    """Angle between two vectors in degrees."""
    return np.degrees(np.arccos(np.clip(_cosine(x, w), -1, 1)))


# Cell G: two tokens through one block

_Stages = tuple[Any, Any, Any]


def run_block(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> _Stages:
    """All tokens through a block with ReLU: the stages u, h, y."""
    stages = FeedForward(W_1, b_1, W_2, b_2).trace(X)
    return stages.u, stages.h, stages.y


def _project(u: Any, W_2: Any, b_2: Any) -> _Stages:
    h = np.maximum(u, 0)
    return u, h, h @ _array(W_2) + b_2


def _columns_for_rows(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> _Stages:
    X = _array(X)
    u, h, y = run_block(np.swapaxes(X, -1, -2) if X.ndim > 1 else X, W_1, b_1, W_2, b_2)
    return u, h, np.swapaxes(y, -1, -2) if X.ndim > 1 else y


def _tokens_averaged(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> _Stages:
    X = _array(X)
    if X.ndim > 1:
        X = np.zeros_like(X) + X.mean(axis=-2, keepdims=True)
    return run_block(X, W_1, b_1, W_2, b_2)


def _row_of_weights_for_each_token(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> _Stages:
    X, W_1 = _array(X), _array(W_1)
    rows = W_1[: X.shape[-2]] if X.ndim > 1 else W_1[0]
    return _project(X.sum(axis=-1, keepdims=True) * rows + b_1, W_2, b_2)


def _relu_at_the_end(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> _Stages:
    u = _array(X) @ _array(W_1) + b_1
    return u, u, np.maximum(u @ _array(W_2) + b_2, 0)


def _second_bias_forgotten(X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> _Stages:
    return _project(_array(X) @ _array(W_1) + b_1, W_2, 0)


def outputs_in_order(order: Any, X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    """Outputs of a block for its tokens in another order."""
    return run_block(_array(X)[..., list(order), :], W_1, b_1, W_2, b_2)[2]


def _order_ignored(order: Any, X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return run_block(X, W_1, b_1, W_2, b_2)[2]


def _order_undone(order: Any, X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return outputs_in_order(np.argsort(order), X, W_1, b_1, W_2, b_2)


def _sequences_reordered(order: Any, X: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return run_block(_array(X)[list(order)], W_1, b_1, W_2, b_2)[2]


def position_wise(f: Callable[[Any], Any], X: Any) -> bool:
    """Whether f does to each token of X what it does to that token alone."""
    together = _array(f(_array(X)))
    alone = [_array(f(x[None]))[0] for x in _array(X)]
    return bool(np.allclose(together, alone))


def _swap_test(f: Callable[[Any], Any], X: Any) -> bool:
    X = _array(X)
    return bool(np.allclose(f(X[::-1]), _array(f(X))[::-1]))


def _first_token_only(f: Callable[[Any], Any], X: Any) -> bool:
    X = _array(X)
    return bool(np.allclose(f(X)[0], f(X[:1])[0]))


def _same_bits(f: Callable[[Any], Any], X: Any) -> bool:
    X = _array(X)
    return bool(np.array_equal(f(X), [f(x[None])[0] for x in X]))


# Maps of sequences to ask position_wise about: three that are position-wise, five that are not.
_TOKENS = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]])
_MAPS: tuple[Callable[[Any], Any], ...] = (
    lambda X: np.maximum(X, 0) @ np.array([[1.0, 2.0], [-1.0, 0.5]]),
    lambda X: X[..., ::-1] - X.mean(axis=-1, keepdims=True),
    lambda X: X * (0.1 + 0.2 if len(X) > 1 else 0.3),
    lambda X: X + X.mean(axis=0),
    lambda X: np.cumsum(X, axis=0),
    lambda X: X * np.arange(1, len(X) + 1)[:, None],
    lambda X: X + X[-1],
    lambda X: X[::-1],
)


# Cell I: no activation


def from_columns(entries: Any, rows: int) -> Any:
    """The matrix with that number of rows whose columns, one after another, give the entries."""
    return np.reshape(entries, (rows, -1), order="F")


def two_steps(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    """Two affine maps in a row: the stage in between, and the result."""
    u = _array(x) @ _array(W_1) + b_1
    return u, u @ _array(W_2) + b_2


def _two_steps_with_relu(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    u = _array(x) @ _array(W_1) + b_1
    return u, np.maximum(u, 0) @ _array(W_2) + b_2


def _collapsed(matrix: Callable[..., Any], bias: Callable[..., Any]) -> Callable[..., Any]:
    """A wrong fold from a rule for the matrix and one for the bias."""

    def fold(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
        given = [_array(part) for part in (W_1, b_1, W_2, b_2)]
        return matrix(*given), bias(*given)

    return fold


def _product(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return W_1 @ W_2


def _carried(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return b_1 @ W_2 + b_2


# Cell H: a real block


def _counts(W_1: int, b_1: int, W_2: int, b_2: int, **other: int) -> dict[str, int]:
    sums = {"weights": W_1 + W_2, "biases": b_1 + b_2, "sublayer": W_1 + b_1 + W_2 + b_2}
    return {"W_1": W_1, "b_1": b_1, "W_2": W_2, "b_2": b_2} | sums | other


def parameter_counts(d: int, d_ff: int) -> dict[str, int]:
    """Parameters of a plain block, part by part and in sums."""
    return _counts(d * d_ff, d_ff, d_ff * d, d, sublayer=plain_parameters(d, d_ff))


def weights_at_ratio(d: int, ratio: int = 4) -> int:
    """Entries of both matrices of a block that is ratio times as wide inside."""
    return plain_parameters(d, ratio * d, biases=False)


def stack_parameters(d: int, d_ff: int, layers: int) -> int:
    """Parameters of the blocks of all layers."""
    return layers * plain_parameters(d, d_ff)


def stack_memory(d: int, d_ff: int, layers: int, bits: int = 32) -> tuple[float, float]:
    """Size of the blocks of all layers, in bytes and in MiB."""
    size = stack_parameters(d, d_ff, layers) * bits / 8
    return size, mebibytes(size)


# Cells F and J: gaps and tails


def relative_gaps(z: Any) -> dict[str, Any]:
    """What SiLU and GELU miss of a positive z, as a share of z."""
    z = _array(z)
    return {"silu": sigmoid(-z), "gelu": normal_cdf(-z)}


def tail_laws(z: Any) -> dict[str, Any]:
    """Leading-order laws of SiLU and GELU far to the left."""
    z = _array(z)
    return {"silu": z * np.exp(z), "gelu": -normal_pdf(z)}


def _pair(silu: Callable[[Any], Any], gelu: Callable[[Any], Any]) -> Callable[[Any], dict[str, Any]]:
    return lambda z: {"silu": silu(_array(z)), "gelu": gelu(_array(z))}


def _exponential(z: Any) -> Any:
    return z * np.exp(z)


# The scenario matrix


def cells(u: Any, tolerance: float = 1e-9) -> Any:
    """1 for cell A, -1 for cell B, 0 for cell C, pre-activation by pre-activation."""
    u = _array(u)
    return np.where(np.abs(u) <= tolerance, 0, np.where(u > 0, 1, -1))


def _changed_tokens(before: Any, after: Any) -> int:
    return int(np.any(np.abs(_array(before) - after) > 1e-9, axis=-1).sum())


def altered(before: Any, after: Any) -> tuple[int, int]:
    """How many pre-activations are in another cell, and how many tokens have another output."""
    return int((cells(before[0]) != cells(after[0])).sum()), _changed_tokens(before[1], after[1])


def _cells_counted(before: Any, after: Any) -> tuple[int, int]:
    totals = [[int((cells(run[0]) == cell).sum()) for cell in (1, -1, 0)] for run in (before, after)]
    gained = sum(max(new - old, 0) for old, new in zip(*totals, strict=True))
    return gained, _changed_tokens(before[1], after[1])


def _entries_counted(before: Any, after: Any) -> tuple[int, int]:
    return altered(before, after)[0], int((np.abs(_array(before[1]) - after[1]) > 1e-9).sum())


def _values_compared(before: Any, after: Any) -> tuple[int, int]:
    return int((np.abs(_array(before[0]) - after[0]) > 1e-9).sum()), altered(before, after)[1]


_W, _B = [0.5, 0.2, -0.3, 0.4], 0.1
_X = np.array([[1.0, 0.0, -1.0, 2.0], [-2.0, 0.5, 1.0, 0.25], [0.2, -1.0, -0.3, 0.0]])
_NEURON = ((_X[0], _W, _B), (_X, _W, -0.7), (_X[None], _W, 0.3), ([2, -1], [3, 5], 2))
_DECIMAL = (
    ([0.2, -1, -0.3, 0], _W, 0.01),
    ([0.2, -1, -0.3, 0], _W, 0.1),
    ([0.1, 0.7], [0.3, -0.1], 0.05),
    ([0.1, 0.1, 0.1], [1, 1, 1], -0.3),
    ([1.1, 2.2], [1, 1], -3.3),
)
_TINY = ([1e-7, 2e-7], [1e-7, 1e-7], 0.0)
_LARGE = ([1.1e9, 2.2e9], [1e6, 1e6], -3.3e15)
_PARALLEL = (
    ([1.8, 0.3], [1.8, 0.3]),
    ([4.4, 1.4], [2.2, 0.7]),
    ([5.1, 3.0], [1.7, 1.0]),
    ([1.4, 0.2], [0.7, 0.1]),
)
_VECTORS = (([1.0, 0.0, -1.0, 2.0], _W), ([0.1, 0.0, -0.1, 0.2], _W), ([1.0, -2.0], [0.5, 0.2]))

_WEIGHTS = (
    np.array([[1.0, 0.5, 2.0], [0.25, 1.0, -1.0]]),
    np.array([0.3, -0.2, 0.5]),
    np.array([[1.0, -1.0], [0.5, 1.0], [1.0, 0.25]]),
    np.array([-0.4, 1.0]),
)
_SQUARE = np.array([[1.5, -2.0], [0.5, 3.0]])
_BATCH = np.array([[[1.0, 2.0], [-1.0, 0.5]], [[0.0, -3.0], [2.0, 1.0]]])
_AFFINE = (
    np.array([[1.0, 2.0], [0.5, 1.0]]),
    np.array([1.0, -0.5]),
    np.array([[1.0, 0.25], [1.0, 1.0]]),
    np.array([0.0, 1.0]),
)
_NARROW = (
    np.array([[1.0, 2.0, -1.0]]),
    np.array([1.0, 0.5, -2.0]),
    np.array([[2.0], [1.0], [3.0]]),
    np.array([0.25]),
)
_BEFORE = (np.array([[1.0, -2.0, 0.0], [0.5, 3.0, -1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]))
_AFTER = (np.array([[-2.0, 1.0, 0.0], [2.5, 3.0, 2e-17]]), np.array([[1.5, 2.5], [3.0, 4.0]]))
_SHIFTED = (np.array([[1.5, -2.5, 1e-13], [0.75, 2.0, -1.0]]), np.array([[1.0, 2.0], [3.0, 4.5]]))

STEPS = (
    Step(
        name="preactivation",
        own={"preactivation": preactivation},
        probes=_each("preactivation", *_NEURON),
        misconceptions=(
            Misconception(
                name="bias-forgotten",
                wrong={"preactivation": lambda x, w, b: _array(x) @ _array(w)},
                hint="the bias was left out, so this is the dot product alone.",
                page=f"{CELLS}/cell-a#the-calculation",
            ),
            Misconception(
                name="bias-in-every-product",
                wrong={"preactivation": lambda x, w, b: (_array(x) * _array(w) + b).sum(axis=-1)},
                hint="the bias was added to every product; a neuron has one bias, added once to the sum.",
                page=f"{CELLS}/cell-a#the-idea",
            ),
            Misconception(
                name="relu-too-early",
                wrong={"preactivation": lambda x, w, b: np.maximum(preactivation(x, w, b), 0)},
                hint="negative results were replaced by zero; that is the activation, which comes afterwards.",
                page=f"{CELLS}/cell-b#the-calculation",
            ),
            Misconception(
                name="bias-taken-away",
                wrong={"preactivation": lambda x, w, b: _array(x) @ _array(w) - b},
                hint="the bias was subtracted like a threshold; here it is added.",
                page=f"{CELLS}/cell-a#the-calculation",
            ),
        ),
    ),
    Step(
        name="zero_bias",
        own={"zero_bias": zero_bias, "bias_change": bias_change},
        probes=(
            *_each("zero_bias", *((x, w) for x, w, _ in _NEURON)),
            *_each("bias_change", *_NEURON),
        ),
        misconceptions=(
            Misconception(
                name="sign-of-the-zero-bias",
                wrong={"zero_bias": lambda x, w: _array(x) @ _array(w)},
                hint="the dot product itself was returned; added to itself it doubles and does not cancel.",
                page=f"{CELLS}/cell-c#the-calculation",
            ),
            Misconception(
                name="old-bias-removed-twice",
                wrong={"zero_bias": lambda x, w: -preactivation(x, w, _B)},
                hint="the published bias 0.1 went into it, which is the slip of the document: a bias that is "
                "replaced no longer counts.",
                page=f"{CELLS}/cell-c#bias-error",
            ),
            Misconception(
                name="new-bias-for-the-change",
                wrong={"bias_change": lambda x, w, b: zero_bias(x, w)},
                hint="the new bias was returned where the change of the old one is asked for.",
                page=f"{CELLS}/cell-c#bias-error",
            ),
            Misconception(
                name="sign-of-the-change",
                wrong={"bias_change": preactivation},
                hint="the change has the sign of the pre-activation, so it moves the sum away from zero.",
                page=f"{CELLS}/cell-c#bias-error",
            ),
        ),
        uses=("preactivation",),
    ),
    Step(
        name="is_zero",
        own={"exact_preactivation": exact_preactivation, "is_zero": is_zero},
        probes=(
            *_each("exact_preactivation", *_DECIMAL),
            *_each("is_zero", *_DECIMAL, _TINY, _LARGE, ([0.0, 0.0], [1.0, 2.0], 0.0)),
            *_each("is_zero", ([1.0, 1.0], [1.0, -1.0], 1e-6), ([1.0, 1.0], [1.0, -1.0], 1e-6, 1e-3)),
        ),
        misconceptions=(
            Misconception(
                name="equals-zero-on-a-float",
                wrong={"is_zero": lambda x, w, b, tolerance=1e-12: bool(preactivation(x, w, b) == 0)},
                hint="a float was compared with == 0, and rounding leaves a tiny number where zero is meant.",
                page=f"{CELLS}/cell-c#zero-test",
            ),
            Misconception(
                name="tolerance-without-a-scale",
                wrong={"is_zero": lambda x, w, b, tolerance=1e-12: bool(abs(preactivation(x, w, b)) <= tolerance)},
                hint="the tolerance was not multiplied by the size of the terms, so small numbers pass as zero "
                "and the rounding of large ones does not.",
                page=f"{CELLS}/cell-c#zero-test",
            ),
            Misconception(
                name="fraction-of-the-binary-number",
                wrong={"exact_preactivation": _fraction_of_the_binary_numbers},
                hint="each fraction was made from the stored binary number, which is already rounded; take the "
                "decimal text.",
                page=f"{CELLS}/cell-c#verify",
            ),
            Misconception(
                name="fraction-of-the-sum",
                wrong={"exact_preactivation": _fraction_of_the_sum},
                hint="the sum was made with floats and turned into a fraction at the end, when it is too late.",
                page=f"{CELLS}/cell-c#verify",
            ),
        ),
        uses=("preactivation",),
    ),
    Step(
        name="bound",
        own={"preactivation_range": preactivation_range, "angle": angle},
        probes=(
            *_each("preactivation_range", *((x, w, b) for x, w in _VECTORS for b in (0.1, -0.6))),
            *_each("angle", *_VECTORS, *_PARALLEL),
        ),
        misconceptions=(
            Misconception(
                name="roots-forgotten",
                wrong={"preactivation_range": _range_of_squares},
                hint="the sums of squares were multiplied without their roots; a norm is the root of such a sum.",
                page=f"{CELLS}/cell-a#a-bound-on-the-dot-product",
            ),
            Misconception(
                name="range-around-zero",
                wrong={"preactivation_range": _range_around_zero},
                hint="the range is centred at zero; its middle is the bias, which is known with its sign.",
                page=f"{CELLS}/cell-a#what-goes-wrong",
            ),
            Misconception(
                name="angle-in-radians",
                wrong={"angle": lambda x, w: np.arccos(np.clip(_cosine(x, w), -1, 1))},
                hint="the angle is in radians; degrees are asked for.",
                page=f"{CELLS}/cell-a#a-bound-on-the-dot-product",
            ),
            Misconception(
                name="cosine-above-one",
                wrong={"angle": lambda x, w: np.degrees(np.arccos(_cosine(x, w)))},
                hint="rounding took the cosine of parallel vectors a little past 1, where no angle exists.",
                page=f"{CELLS}/cell-a#a-bound-on-the-dot-product",
            ),
        ),
        uses=("preactivation",),
    ),
    Step(
        name="run_block",
        own={"run_block": run_block},
        probes=_each(
            "run_block",
            *((X, *_WEIGHTS) for X in (np.array([[1.0, 0.0], [0.0, 2.0]]), _SQUARE, _TOKENS, _BATCH, _SQUARE[0])),
        ),
        misconceptions=(
            Misconception(
                name="columns-for-rows",
                wrong={"run_block": _columns_for_rows},
                hint="the columns of X were taken for tokens; each row is one, and equal numbers of tokens and "
                "features hide the mistake.",
                page=f"{CELLS}/cell-g#what-goes-wrong",
            ),
            Misconception(
                name="tokens-mixed",
                wrong={"run_block": _tokens_averaged},
                hint="the tokens were averaged on the way in; nothing may cross from one row to another.",
                page=f"{CELLS}/cell-g#the-idea",
            ),
            Misconception(
                name="weights-of-its-own-for-each-token",
                wrong={"run_block": _row_of_weights_for_each_token},
                hint="every token got a row of the first matrix to itself; all tokens share all the weights.",
                page=f"{CELLS}/cell-g#the-idea",
            ),
            Misconception(
                name="relu-at-the-end",
                wrong={"run_block": _relu_at_the_end},
                hint="the output went through ReLU, which belongs between the two matrices.",
                page=f"{CELLS}/cell-g#the-calculation",
            ),
            Misconception(
                name="second-bias-forgotten",
                wrong={"run_block": _second_bias_forgotten},
                hint="the bias of the projection is missing; it is added at every position.",
                page=f"{CELLS}/cell-g#your-turn",
            ),
        ),
        uses=("preactivation",),
    ),
    Step(
        name="position_wise",
        own={"outputs_in_order": outputs_in_order, "position_wise": position_wise},
        probes=(
            *_each("outputs_in_order", *((order, _TOKENS, *_WEIGHTS) for order in ([1, 2, 0], [0, 2, 1]))),
            *_each("outputs_in_order", ([1, 0], _BATCH, *_WEIGHTS), ([1, 2, 0], _TOKENS[None], *_WEIGHTS)),
            *_each("position_wise", *((f, _TOKENS) for f in _MAPS), (_MAPS[3], _TOKENS[:1])),
        ),
        misconceptions=(
            Misconception(
                name="order-ignored",
                wrong={"outputs_in_order": _order_ignored},
                hint="the outputs kept their places; they move together with their tokens.",
                page=f"{CELLS}/cell-g#the-calculation",
            ),
            Misconception(
                name="order-undone",
                wrong={"outputs_in_order": _order_undone},
                hint="the order was applied backwards, which a swap of two tokens cannot show.",
                page=f"{CELLS}/cell-g#the-idea",
            ),
            Misconception(
                name="sequences-reordered",
                wrong={"outputs_in_order": _sequences_reordered},
                hint="the first axis was reordered; with a batch that axis holds whole sequences.",
                page=f"{CELLS}/cell-g#the-idea",
            ),
            Misconception(
                name="swap-alone",
                wrong={"position_wise": _swap_test},
                hint="only a reversal was tried; a map that adds the mean of all tokens passes such a swap and "
                "still mixes.",
                page=f"{CELLS}/cell-g#verify",
            ),
            Misconception(
                name="first-token-only",
                wrong={"position_wise": _first_token_only},
                hint="only the first token was looked at, and the later ones may be treated differently.",
                page=f"{CELLS}/cell-g#verify",
            ),
            Misconception(
                name="same-bits",
                wrong={"position_wise": _same_bits},
                hint="equality to the last bit was asked for; two orders of calculation may round differently.",
                page=f"{CELLS}/cell-c#zero-test",
            ),
        ),
        uses=("run_block",),
    ),
    Step(
        name="from_columns",
        own={"from_columns": from_columns},
        probes=_each(
            "from_columns",
            ([1, 0, 2, 1], 2),
            ([1, 2, 3, 4, 5, 6], 2),
            ([1, 2, 3, 4, 5, 6], 3),
            ([0.5, -1.0, 2.0], 1),
            (np.array([0.5, -1.0, 2.0]), 3),
        ),
        misconceptions=(
            Misconception(
                name="row-by-row",
                wrong={"from_columns": lambda entries, rows: np.reshape(entries, (rows, -1))},
                hint="the list was read row by row; it was printed column by column.",
                page=f"{CELLS}/cell-i#reading-the-printed-matrices",
            ),
            Misconception(
                name="columns-left-as-rows",
                wrong={"from_columns": lambda entries, rows: np.reshape(entries, (-1, rows))},
                hint="the pieces have the right entries, but they lie in the matrix as rows.",
                page=f"{CELLS}/cell-i#reading-the-printed-matrices",
            ),
            Misconception(
                name="rows-taken-for-columns",
                wrong={"from_columns": lambda entries, rows: np.reshape(entries, (-1, rows), order="F")},
                hint="the number of rows was used as the number of columns, which a square matrix cannot show.",
                page=f"{CELLS}/cell-i#reading-the-printed-matrices",
            ),
        ),
        uses=("preactivation",),
    ),
    Step(
        name="collapse",
        own={"two_steps": two_steps, "collapse": collapse},
        probes=(
            *_each("two_steps", *((x, *_AFFINE) for x in ([3.0, -1.0], [-1.0, 0.5], _SQUARE, _BATCH))),
            *_each("two_steps", ([[2.0], [-3.0]], *_NARROW)),
            *_each("collapse", _AFFINE, _NARROW),
        ),
        misconceptions=(
            Misconception(
                name="relu-left-in",
                wrong={"two_steps": _two_steps_with_relu},
                hint="there is still a ReLU between the two maps; the published token does not notice, others do.",
                page=f"{CELLS}/cell-i#what-goes-wrong",
            ),
            Misconception(
                name="matrices-in-the-wrong-order",
                wrong={"collapse": _collapsed(lambda W_1, b_1, W_2, b_2: W_2 @ W_1, _carried)},
                hint="the matrices were multiplied in the wrong order; a row vector meets the first one first.",
                page=f"{CELLS}/cell-i#folding",
            ),
            Misconception(
                name="first-bias-dropped",
                wrong={"collapse": _collapsed(_product, lambda W_1, b_1, W_2, b_2: b_2)},
                hint="the first bias is gone; it reaches the output through the second matrix.",
                page=f"{CELLS}/cell-i#folding",
            ),
            Misconception(
                name="first-bias-not-carried",
                wrong={"collapse": _collapsed(_product, lambda W_1, b_1, W_2, b_2: b_1 + b_2)},
                hint="the two biases were simply added; the first one has the second matrix still before it.",
                page="book/mechanism/why-nonlinear#two-maps-collapse",
            ),
        ),
        uses=("preactivation", "run_block", "from_columns"),
    ),
    Step(
        name="parameter_counts",
        own={"parameter_counts": parameter_counts, "weights_at_ratio": weights_at_ratio},
        probes=(
            *_each("parameter_counts", (768, 3072), (5, 7), (3, 2), (1, 1)),
            *_each("weights_at_ratio", (768,), (5,), (5, 3), (7, 1)),
        ),
        misconceptions=(
            Misconception(
                name="biases-forgotten",
                wrong={"parameter_counts": lambda d, m: _counts(d * m, m, m * d, d, sublayer=2 * d * m)},
                hint="the sublayer was counted without its biases; they are learned parameters too.",
                page=f"{CELLS}/cell-h#the-calculation",
            ),
            Misconception(
                name="bias-of-the-wrong-width",
                wrong={"parameter_counts": lambda d, m: _counts(d * m, d, m * d, d)},
                hint="both biases were given the model width; the first one has an entry for each hidden unit.",
                page=f"{CELLS}/cell-h#the-idea",
            ),
            Misconception(
                name="biases-exchanged",
                wrong={"parameter_counts": lambda d, m: _counts(d * m, d, m * d, m)},
                hint="the widths of the two biases are exchanged, which their sum cannot show.",
                page=f"{CELLS}/cell-h#the-idea",
            ),
            Misconception(
                name="one-matrix-only",
                wrong={"weights_at_ratio": lambda d, ratio=4: ratio * d**2},
                hint="only one of the two matrices was counted, which gives half of the estimate.",
                page=f"{CELLS}/cell-h#the-calculation",
            ),
            Misconception(
                name="ratio-squared",
                wrong={"weights_at_ratio": lambda d, ratio=4: 2 * (ratio * d) ** 2},
                hint="the intermediate width was squared; only one side of each matrix is that long.",
                page=f"{CELLS}/cell-h#what-goes-wrong",
            ),
        ),
    ),
    Step(
        name="stack_memory",
        own={"stack_parameters": stack_parameters, "stack_memory": stack_memory},
        probes=(
            *_each("stack_parameters", (768, 3072, 12), (5, 7, 3), (4, 4, 1)),
            *_each("stack_memory", (768, 3072, 12), (5, 7, 3), (5, 7, 3, 16), (64, 256, 2, 8)),
        ),
        misconceptions=(
            Misconception(
                name="layers-forgotten",
                wrong={"stack_parameters": lambda d, m, layers: plain_parameters(d, m)},
                hint="the count is that of a single block; every layer has one of its own.",
                page=f"{CELLS}/cell-h#the-calculation",
            ),
            Misconception(
                name="megabytes",
                wrong={
                    "stack_memory": lambda d, m, layers, bits=32: (
                        stack_parameters(d, m, layers) * bits / 8,
                        stack_parameters(d, m, layers) * bits / 8e6,
                    )
                },
                hint="the bytes were divided by a million, which gives MB; MiB are asked for.",
                page=f"{CELLS}/cell-h#what-goes-wrong",
            ),
            Misconception(
                name="bits-for-bytes",
                wrong={"stack_memory": lambda d, m, layers, bits=32: stack_memory(d, m, layers, 8 * bits)},
                hint="the bits were not turned into bytes, so the size is eight times too large.",
                page="book/swiglu/memory-budget#the-idea",
            ),
            Misconception(
                name="published-size-typed-in",
                wrong={"stack_memory": lambda d, m, layers, bits=32: (226676736, 216.17578125)},
                hint="the published size comes back whatever the widths are; it has to be computed from them.",
                page="book/swiglu/memory-budget#the-idea",
            ),
        ),
        uses=("parameter_counts",),
    ),
    Step(
        name="tails",
        own={"relative_gaps": relative_gaps, "tail_laws": tail_laws},
        probes=(
            *_each("relative_gaps", ([0.5, 2.0, 4.0],), (2.0,), (40.0,), (np.array([[30.0]]),)),
            *_each("tail_laws", ([-0.5, -2.0, -4.0],), (-10.0,), (np.array([[-30.0]]),)),
        ),
        misconceptions=(
            Misconception(
                name="gap-not-divided",
                wrong={"relative_gaps": _pair(lambda z: z * sigmoid(-z), lambda z: z * normal_cdf(-z))},
                hint="these are the gaps themselves; a share is wanted, so they have to be seen beside the input.",
                page=f"{CELLS}/cell-f#what-goes-wrong",
            ),
            Misconception(
                name="gap-by-subtraction",
                wrong={"relative_gaps": _pair(lambda z: 1 - sigmoid(z), lambda z: 1 - normal_cdf(z))},
                hint="a gate near 1 was taken from 1, which cancels every digit far to the right.",
                page=f"{CELLS}/cell-j#what-goes-wrong",
            ),
            Misconception(
                name="gate-for-gap",
                wrong={"relative_gaps": _pair(sigmoid, normal_cdf)},
                hint="this is the share that arrives; asked for is the share that is missing.",
                page=f"{CELLS}/cell-f#what-goes-wrong",
            ),
            Misconception(
                name="factor-z-left-out",
                wrong={"tail_laws": _pair(np.exp, lambda z: -normal_pdf(z))},
                hint="the law of SiLU lacks its factor z, so it has the wrong sign too.",
                page=f"{CELLS}/cell-j#the-laws-of-the-two-tails",
            ),
            Misconception(
                name="factor-z-left-in",
                wrong={"tail_laws": _pair(_exponential, lambda z: z * normal_pdf(z))},
                hint="the law of GELU still has a factor z; the probability brings the same factor below the line.",
                page=f"{CELLS}/cell-j#the-laws-of-the-two-tails",
            ),
            Misconception(
                name="density-not-scaled",
                wrong={"tail_laws": _pair(_exponential, lambda z: -normal_pdf(z) * math.sqrt(2 * math.pi))},
                hint="the Gaussian was not divided by the root of 2 pi.",
                page=f"{CELLS}/cell-j#the-idea",
            ),
        ),
    ),
    Step(
        name="scenario",
        own={"cells": cells, "altered": altered},
        probes=(
            *_each("cells", (_BEFORE[0],), (_AFTER[0],), ([1e-12, -1e-12, 0.0, 1e-3, -1e-3],), ([0.5, -2], 1.0)),
            *_each("altered", (_BEFORE, _AFTER), (_BEFORE, _BEFORE), (_BEFORE, _SHIFTED), (_AFTER, _SHIFTED)),
        ),
        misconceptions=(
            Misconception(
                name="zero-asked-of-a-float",
                wrong={"cells": lambda u, tolerance=1e-9: np.sign(_array(u)).astype(int)},
                hint="a rest of rounding was sorted by its sign; within the tolerance it belongs to cell C.",
                page=f"{CELLS}/cell-c#zero-test",
            ),
            Misconception(
                name="zero-put-into-cell-b",
                wrong={"cells": lambda u, tolerance=1e-9: np.where(_array(u) > tolerance, 1, -1)},
                hint="zero was put with the negative ones; ReLU gives 0 for both, yet it is a cell of its own.",
                page=f"{CELLS}/matrix#the-idea",
            ),
            Misconception(
                name="totals-compared",
                wrong={"altered": _cells_counted},
                hint="the totals of the cells were compared; two tokens that change places leave totals as they are.",
                page=f"{CELLS}/cell-g#the-idea",
            ),
            Misconception(
                name="features-counted",
                wrong={"altered": _entries_counted},
                hint="the features that changed were counted; a token counts once, however many of them changed.",
                page=f"{CELLS}/matrix#the-idea",
            ),
            Misconception(
                name="values-for-cells",
                wrong={"altered": _values_compared},
                hint="every pre-activation with another value was counted; it may well have stayed in its cell.",
                page=f"{CELLS}/matrix#the-idea",
            ),
        ),
        uses=("run_block", "two_steps"),
    ),
)
