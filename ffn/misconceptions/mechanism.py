"""Wrong ways through the unit `mechanism`: shapes, the place of the activation, rows and columns, norms, sums."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ffn.activations import relu
from ffn.blocks import FeedForward
from ffn.blocks import collapse as ffn_collapse
from ffn.ledger import plain_parameters
from ffn.misconceptions.registry import Misconception, Probe, Step
from ffn.norms import layer_norm as ffn_layer_norm

__all__ = ["STEPS"]

EXPAND = "book/mechanism/expand-activate-project"
POSITION = "book/mechanism/position-wise"
STREAM = "book/mechanism/residual-and-norm"
NONLINEAR = "book/mechanism/why-nonlinear"
CHECKLIST = "book/mechanism/checklist"
CELL_D, CELL_E, CELL_G = (f"book/worked-cells/cell-{letter}" for letter in "deg")

Block = Callable[[Any], Any]


def _array(x: Any) -> Any:
    return np.asarray(x, dtype=float)


# Numbers for the probes: small, without symmetry, some pre-activations exactly 0.

_TOKEN = np.array([1.0, -2.0])
_PAIR = np.array([[1.0, -2.0], [0.5, 3.0]])
_BATCH = np.array([[[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25]], [[2.0, 2.0], [-3.0, 1.0], [0.0, -0.5]]])
_WIDE = np.array([[1.0, -1.0, 0.5], [0.25, 1.0, -2.0]])
_TALL = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.75]])
_SQUARE = np.array([[2.0, -1.0], [0.5, 3.0]])
_OTHER = np.array([[1.0, 4.0], [-2.0, 0.25]])
_BIAS = np.array([0.5, -1.5])
_WIDE_BIAS = np.array([-0.5, 0.25, 1.5])
_THREE = np.array([[1.0, 1.0, 4.0], [0.5, -2.0, 3.0], [2.0, 0.0, -1.0]])
_CUBE = np.array([[[1.0, 1.0, 4.0], [0.5, -2.0, 3.0]], [[2.0, 0.0, -1.0], [5.0, 0.25, 0.75]]])
_GAIN, _SHIFT = np.array([1.0, 2.0, -0.5]), np.array([0.5, 0.0, 3.0])


def _running_sum(tokens: Any) -> Any:
    return np.cumsum(tokens, axis=-2) if np.ndim(tokens) > 1 else _array(tokens)


def _reversed(tokens: Any) -> Any:
    return _array(tokens)[..., ::-1, :] if np.ndim(tokens) > 1 else _array(tokens)


def _square(tokens: Any) -> Any:
    return _array(tokens) ** 2


def _last_and_sum(token: Any) -> Any:
    token = _array(token)
    return np.stack([token[..., -1], token.sum(axis=-1), token[..., 0] * token[..., -1]], axis=-1)


def _of_all(tokens: Any) -> Any:
    return np.array([np.max(tokens), np.sum(tokens)])


def _almost_triple(tokens: Any) -> Any:
    return 3 * _array(tokens) * (1 + 1e-14 * np.ndim(tokens))


def _squeezed(tokens: Any) -> Any:
    return np.squeeze(tokens, axis=0) if np.ndim(tokens) > 1 else _array(tokens)


def _one_feature(tokens: Any) -> Any:
    return np.sum(tokens, axis=-1, keepdims=True)


# The affine map


def affine(x: Any, W: Any, b: Any) -> Any:
    """The affine map x W + b of every row."""
    return _array(x) @ _array(W) + _array(b)


def _affine_flattened(x: Any, W: Any, b: Any) -> Any:
    x = _array(x)
    return affine(x.reshape(-1, x.shape[-1]), W, b)


# Shapes and counts


def array_shapes(leading: Sequence[int], d: int, d_ff: int) -> dict[str, tuple[int, ...]]:
    """Shapes of all arrays of a block by name."""
    narrow, wide = (*leading, d), (*leading, d_ff)
    learned = {"W_1": (d, d_ff), "b_1": (d_ff,), "W_2": (d_ff, d), "b_2": (d,)}
    return {"x": narrow, "u": wide, "h": wide, "y": narrow, **learned}


def parameter_count(d: int, d_ff: int, biases: bool = True) -> int:
    """Parameters of a plain block."""
    return plain_parameters(d, d_ff, biases=biases)


def _shapes_not_projected(leading: Sequence[int], d: int, d_ff: int) -> Any:
    return array_shapes(leading, d, d_ff) | {"y": (*leading, d_ff)}


def _shapes_out_in(leading: Sequence[int], d: int, d_ff: int) -> Any:
    return array_shapes(leading, d, d_ff) | {"W_1": (d_ff, d), "W_2": (d, d_ff)}


def _shapes_more_tokens(leading: Sequence[int], d: int, d_ff: int) -> Any:
    longer = (*leading[:-1], leading[-1] * d_ff // d, d)
    return array_shapes(leading, d, d_ff) | {"u": longer, "h": longer}


def _shapes_flattened(leading: Sequence[int], d: int, d_ff: int) -> Any:
    rows = int(np.prod(leading))
    return array_shapes(leading, d, d_ff) | {"u": (rows, d_ff), "h": (rows, d_ff), "y": (rows, d)}


def _shapes_bias_per_token(leading: Sequence[int], d: int, d_ff: int) -> Any:
    return array_shapes(leading, d, d_ff) | {"b_1": (*leading, d_ff), "b_2": (*leading, d)}


# The block


def expand_activate(x: Any, W_1: Any, b_1: Any) -> tuple[Any, Any]:
    """Pre-activations and hidden values of a block with ReLU."""
    u = affine(x, W_1, b_1)
    return u, relu(u)


def feed_forward(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    """Output of a block with ReLU."""
    return FeedForward(_array(W_1), _array(b_1), _array(W_2), _array(b_2))(x)


def _expand_overwritten(x: Any, W_1: Any, b_1: Any) -> Any:
    h = relu(affine(x, W_1, b_1))
    return h, h


def _expand_bias_last(x: Any, W_1: Any, b_1: Any) -> Any:
    u = _array(x) @ _array(W_1)
    return u, relu(u) + _array(b_1)


def _expand_reversed(x: Any, W_1: Any, b_1: Any) -> Any:
    return expand_activate(x, W_1, b_1)[::-1]


def _expand_activated_first(x: Any, W_1: Any, b_1: Any) -> Any:
    u = affine(relu(_array(x)), W_1, b_1)
    return u, u


def _block_activated_last(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return relu(affine(affine(x, W_1, b_1), W_2, b_2))


def _block_linear(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return affine(affine(x, W_1, b_1), W_2, b_2)


def _block_activated_twice(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return relu(feed_forward(x, W_1, b_1, W_2, b_2))


def _block_no_output_bias(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return relu(affine(x, W_1, b_1)) @ _array(W_2)


def _block_transposed(x: Any, W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return affine(relu(affine(x, W_1, b_1)), _array(W_2).T, b_2)


# Inactive units


def inactive_per_token(u: Any) -> Any:
    """Inactive units of each token."""
    return (_array(u) <= 0).sum(axis=-1)


def off_everywhere(u: Any) -> Any:
    """Units that are inactive on all tokens."""
    off = _array(u) <= 0
    return off.all(axis=tuple(range(off.ndim - 1))).sum()


def _off_somewhere(u: Any) -> Any:
    off = _array(u) <= 0
    return off.reshape(-1, off.shape[-1]).any(axis=0).sum()


def _off_on_average(u: Any) -> Any:
    u = _array(u)
    return (u.reshape(-1, u.shape[-1]).mean(axis=0) <= 0).sum()


def _off_first_axis(u: Any) -> Any:
    off = _array(u) <= 0
    return off.all(axis=0).sum()


# Position-wise


def one_by_one(block: Block, x: Any) -> Any:
    """Apply a function to each token on its own."""
    x = _array(x)
    rows = [block(token) for token in x.reshape(-1, x.shape[-1])]
    return np.reshape(rows, (*x.shape[:-1], -1))


def is_position_wise(block: Block, x: Any) -> bool:
    """Whether a function treats each token on its own."""
    together, alone = _array(block(x)), one_by_one(block, x)
    return together.shape == alone.shape and np.allclose(together, alone)


def _tokens_flattened(block: Block, x: Any) -> Any:
    x = _array(x)
    return np.array([block(token) for token in x.reshape(-1, x.shape[-1])])


def _tokens_of_same_width(block: Block, x: Any) -> Any:
    x = _array(x)
    return _tokens_flattened(block, x).reshape(x.shape)


def _test_to_the_last_bit(block: Block, x: Any) -> Any:
    return np.array_equal(block(x), one_by_one(block, x))


def _test_of_shapes(block: Block, x: Any) -> Any:
    return np.shape(block(x)) == np.shape(one_by_one(block, x))


def _test_of_first_token(block: Block, x: Any) -> Any:
    together, alone = _array(block(x)), one_by_one(block, x)
    return together.shape == alone.shape and np.allclose(together[..., 0, :], alone[..., 0, :])


def _test_without_shapes(block: Block, x: Any) -> Any:
    return np.allclose(block(x), one_by_one(block, x))


def in_order(block: Block, x: Any, order: Any) -> Any:
    """Outputs at the places of their tokens, which are given in another order."""
    order = np.asarray(order)
    return np.asarray(block(_array(x)[..., order, :]))[..., np.argsort(order), :]


def _order_not_undone(block: Block, x: Any, order: Any) -> Any:
    return np.asarray(block(_array(x)[..., np.asarray(order), :]))


def _order_used_twice(block: Block, x: Any, order: Any) -> Any:
    return _order_not_undone(block, x, order)[..., np.asarray(order), :]


def _order_of_first_axis(block: Block, x: Any, order: Any) -> Any:
    order = np.asarray(order)
    return np.asarray(block(_array(x)[order]))[np.argsort(order)]


def _order_ignored(block: Block, x: Any, order: Any) -> Any:
    return block(_array(x))


# The stream


def residual(x: Any, block: Block) -> Any:
    """The residual sum, for an output of the stream's shape."""
    x = _array(x)
    return x + _of_shape(x, block(x))


def _of_shape(x: Any, y: Any) -> Any:
    if np.shape(y) != np.shape(x):
        raise ValueError("the block's output does not have the shape of the stream.")
    return np.asarray(y)


def _residual_left_out(x: Any, block: Block) -> Any:
    x = _array(x)
    return _of_shape(x, block(x))


def _residual_in_place(x: Any, block: Block) -> Any:
    x = _array(x)
    x += _of_shape(x, block(x))
    return x


def _residual_stretched(x: Any, block: Block) -> Any:
    x = _array(x)
    return x + block(x)


def _residual_width_only(x: Any, block: Block) -> Any:
    x = _array(x)
    y = np.asarray(block(x))
    if y.shape[-1] != x.shape[-1]:
        raise ValueError("the block's output does not have the width of the stream.")
    return x + y


# Layer normalization


def moments(x: Any) -> tuple[Any, Any, Any]:
    """Mean, biased variance and standard deviation of every token."""
    x = _array(x)
    return x.mean(axis=-1), x.var(axis=-1), x.std(axis=-1)


def normalize(x: Any, epsilon: float = 1e-5) -> Any:
    """Layer normalization without gain and bias."""
    return ffn_layer_norm(x, epsilon=epsilon)


def layer_norm(x: Any, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """Layer normalization with gain and bias."""
    return ffn_layer_norm(x, gain, bias, epsilon=epsilon)


def _moments_bessel(x: Any) -> Any:
    x = _array(x)
    return x.mean(axis=-1), x.var(axis=-1, ddof=1), x.std(axis=-1, ddof=1)


def _moments_over_tokens(x: Any) -> Any:
    x = _array(x)
    return x.mean(axis=0), x.var(axis=0), x.std(axis=0)


def _moments_of_everything(x: Any) -> Any:
    x = _array(x)
    return x.mean(), x.var(), x.std()


def _moments_not_centered(x: Any) -> Any:
    x = _array(x)
    square = (x * x).mean(axis=-1)
    return x.mean(axis=-1), square, np.sqrt(square)


def _moments_mean_distance(x: Any) -> Any:
    x = _array(x)
    distance = np.abs(x - x.mean(axis=-1, keepdims=True)).mean(axis=-1)
    return x.mean(axis=-1), x.var(axis=-1), distance


def _normal(x: Any, epsilon: float, *, axis: int | None = -1, ddof: int = 0) -> Any:
    x = _array(x)
    variance = x.var(axis=axis, ddof=ddof, keepdims=True)
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(variance + epsilon)


def _normalize_bessel(x: Any, epsilon: float = 1e-5) -> Any:
    return _normal(x, epsilon, ddof=1)


def _normalize_over_tokens(x: Any, epsilon: float = 1e-5) -> Any:
    return _normal(x, epsilon, axis=0)


def _normalize_without_axis(x: Any, epsilon: float = 1e-5) -> Any:
    x = _array(x)
    return (x - x.mean(axis=-1)) / np.sqrt(x.var(axis=-1) + epsilon)


def _normalize_everything(x: Any, epsilon: float = 1e-5) -> Any:
    return _normal(x, epsilon, axis=None)


def _normalize_epsilon_outside(x: Any, epsilon: float = 1e-5) -> Any:
    x = _array(x)
    return (x - x.mean(axis=-1, keepdims=True)) / (x.std(axis=-1, keepdims=True) + epsilon)


def _normalize_without_epsilon(x: Any, epsilon: float = 1e-5) -> Any:
    return _normal(x, 0.0)


def _normalize_by_variance(x: Any, epsilon: float = 1e-5) -> Any:
    x = _array(x)
    return (x - x.mean(axis=-1, keepdims=True)) / (x.var(axis=-1, keepdims=True) + epsilon)


def _norm_of_scaled(x: Any, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    return _normal(_array(x) * _array(gain), epsilon) + _array(bias)


def _norm_bias_before_gain(x: Any, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    return (_normal(x, epsilon) + _array(bias)) * _array(gain)


# The two placements


def post_norm(x: Any, block: Block, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """Add, then normalize."""
    return layer_norm(residual(x, block), gain, bias, epsilon)


def pre_norm(x: Any, block: Block, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    """Add what the block makes of the normalized stream."""
    return _array(x) + block(layer_norm(x, gain, bias, epsilon))


def _post_norm_of_output(x: Any, block: Block, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    x = _array(x)
    return x + layer_norm(block(x), gain, bias, epsilon)


def _post_norm_without_sum(x: Any, block: Block, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    return layer_norm(block(_array(x)), gain, bias, epsilon)


def _pre_norm_of_stream(x: Any, block: Block, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    return residual(layer_norm(x, gain, bias, epsilon), block)


def _pre_norm_without_sum(x: Any, block: Block, gain: Any, bias: Any, epsilon: float = 1e-5) -> Any:
    return block(layer_norm(x, gain, bias, epsilon))


# With and without the activation


def collapse(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> tuple[Any, Any]:
    """One affine map for two."""
    return ffn_collapse(W_1, b_1, W_2, b_2)


def _collapse_biases_added(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return _array(W_1) @ _array(W_2), _array(b_1) + _array(b_2)


def _collapse_last_bias(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return _array(W_1) @ _array(W_2), _array(b_2)


def _collapse_first_bias(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return _array(W_1) @ _array(W_2), _array(b_1) @ _array(W_2)


def _collapse_reversed(W_1: Any, b_1: Any, W_2: Any, b_2: Any) -> Any:
    return _array(W_2) @ _array(W_1), collapse(W_1, b_1, W_2, b_2)[1]


def absolute_block(d: int) -> tuple[Any, Any, Any, Any]:
    """Weights of a block that computes absolute values."""
    eye = np.eye(d)
    return np.hstack([eye, -eye]), np.zeros(2 * d), np.vstack([eye, eye]), np.zeros(d)


def _absolute_subtracted(d: int) -> Any:
    eye = np.eye(d)
    return np.hstack([eye, -eye]), np.zeros(2 * d), np.vstack([eye, -eye]), np.zeros(d)


def _absolute_same_sign(d: int) -> Any:
    eye = np.eye(d)
    return np.hstack([eye, eye]), np.zeros(2 * d), np.vstack([eye, eye]), np.zeros(d)


def _absolute_summed(d: int) -> Any:
    eye = np.eye(d)
    return np.hstack([eye, -eye]), np.zeros(2 * d), np.ones((2 * d, d)), np.zeros(d)


def _absolute_columns(d: int) -> Any:
    eye = np.eye(d)
    return np.vstack([eye, -eye]), np.zeros(2 * d), np.hstack([eye, eye]), np.zeros(d)


def _probes(name: str, *arguments: tuple[Any, ...]) -> tuple[Probe, ...]:
    return tuple(Probe(name, given) for given in arguments)


_AFFINE = tuple((x, W, b) for x in (_TOKEN, _PAIR, _BATCH) for W, b in ((_WIDE, _WIDE_BIAS), (_SQUARE, _BIAS)))
_BLOCKS = tuple(
    (x, W_1, b_1, W_2, _BIAS)
    for x in (_TOKEN, _PAIR, _BATCH)
    for W_1, b_1, W_2 in ((_WIDE, _WIDE_BIAS, _TALL), (_SQUARE, _BIAS, _OTHER))
)
_STATES = (
    (np.array([1.0, 0.0, -2.0, 4.0]),),
    (np.array([[1.0, -1.0, 0.0], [-3.0, -2.0, 0.0], [5.0, -1.0, 0.0]]),),
    (np.array([[[1.0, -1.0], [2.0, -3.0]], [[-4.0, -1.0], [-2.0, 1.0]], [[-1.0, 0.0], [-5.0, -2.0]]]),),
)
_SHAPES = (((), 2, 3), ((1,), 2, 3), ((2, 4), 2, 6), ((3, 1, 2), 4, 4))
_LAYERS = tuple(
    (x, block, _GAIN, _SHIFT, 0.5) for x in (_THREE[0], _THREE, _CUBE) for block in (_square, _almost_triple)
)

STEPS = (
    Step(
        name="affine",
        own={"affine": affine},
        probes=_probes("affine", *_AFFINE),
        misconceptions=(
            Misconception(
                name="transposed",
                wrong={"affine": lambda x, W, b: _array(x) @ _array(W).T + _array(b)},
                hint="the matrix was transposed, which goes unnoticed where it is square.",
                page=f"{CELL_D}#what-goes-wrong",
            ),
            Misconception(
                name="columns-for-rows",
                wrong={"affine": lambda x, W, b: _array(x).T @ _array(W) + _array(b)},
                hint="the tokens were taken from the columns of x; in this course they are its rows.",
                page=f"{CELL_G}#what-goes-wrong",
            ),
            Misconception(
                name="bias-forgotten",
                wrong={"affine": lambda x, W, b: _array(x) @ _array(W)},
                hint="the bias was left out, so this is the linear part alone.",
                page=f"{EXPAND}#the-idea",
            ),
            Misconception(
                name="leading-dimensions-lost",
                wrong={"affine": _affine_flattened},
                hint="the leading dimensions were flattened into one and not restored.",
                page=f"{CHECKLIST}#leading-dimensions",
            ),
        ),
    ),
    Step(
        name="array_shapes",
        own={"array_shapes": array_shapes, "parameter_count": parameter_count},
        probes=(
            *_probes("array_shapes", *_SHAPES),
            *_probes("parameter_count", (2, 3), (4, 4), (2, 3, False), (3, 12, True)),
        ),
        misconceptions=(
            Misconception(
                name="not-projected-back",
                wrong={"array_shapes": _shapes_not_projected},
                hint="the output was left at the wide width, but the second matrix brings it back to d.",
                page=f"{EXPAND}#the-idea",
            ),
            Misconception(
                name="out-by-in",
                wrong={"array_shapes": _shapes_out_in},
                hint="the matrices were written as (out, in), as some libraries store them; here rows are inputs.",
                page=f"{EXPAND}#widths-that-change-and-sizes-that-stay",
            ),
            Misconception(
                name="more-tokens",
                wrong={"array_shapes": _shapes_more_tokens},
                hint="the sequence was made longer; it is the features of each token that become more.",
                page=f"{EXPAND}#what-goes-wrong",
            ),
            Misconception(
                name="tokens-in-one-axis",
                wrong={"array_shapes": _shapes_flattened},
                hint="all tokens were put into one axis, though a block keeps batch and sequence apart.",
                page=f"{CHECKLIST}#leading-dimensions",
            ),
            Misconception(
                name="bias-for-each-token",
                wrong={"array_shapes": _shapes_bias_per_token},
                hint="every token got a bias of its own; all of them share one vector.",
                page=f"{POSITION}#shared-weights",
            ),
            Misconception(
                name="biases-alike",
                wrong={"parameter_count": lambda d, d_ff, biases=True: 2 * d * d_ff + 2 * d_ff * biases},
                hint="both biases were counted with the wide width; the second one has d entries.",
                page="book/worked-cells/cell-h#the-idea",
            ),
            Misconception(
                name="biases-not-counted",
                wrong={"parameter_count": lambda d, d_ff, biases=True: 2 * d * d_ff},
                hint="the biases were not counted, and they are learned as well.",
                page="book/worked-cells/cell-h#what-goes-wrong",
            ),
        ),
    ),
    Step(
        name="feed_forward",
        own={"expand_activate": expand_activate, "feed_forward": feed_forward},
        probes=(*_probes("expand_activate", *_AFFINE), *_probes("feed_forward", *_BLOCKS)),
        misconceptions=(
            Misconception(
                name="pre-activation-overwritten",
                wrong={"expand_activate": _expand_overwritten},
                hint="the negative entries of u were overwritten by the activation; both arrays are needed.",
                page=f"{EXPAND}#what-relu-forgets",
            ),
            Misconception(
                name="bias-after-the-activation",
                wrong={"expand_activate": _expand_bias_last},
                hint="the first bias was added after the activation, where it no longer shifts the switching point.",
                page=f"{EXPAND}#the-idea",
            ),
            Misconception(
                name="pair-reversed",
                wrong={"expand_activate": _expand_reversed},
                hint="the pair came in the order hidden values, pre-activations; asked for is the other one.",
                page=f"{EXPAND}#the-idea",
            ),
            Misconception(
                name="activation-before-expansion",
                wrong={"expand_activate": _expand_activated_first},
                hint="the activation was applied to the token itself, before the expansion.",
                page=f"{CHECKLIST}#the-activation-in-its-place",
            ),
            Misconception(
                name="activation-after-the-projection",
                wrong={"feed_forward": _block_activated_last},
                hint="the activation stands after the projection instead of between the two maps.",
                page=f"{CHECKLIST}#the-activation-in-its-place",
            ),
            Misconception(
                name="activation-missing",
                wrong={"feed_forward": _block_linear},
                hint="there is no activation between the two maps, so that they collapse into one.",
                page=f"{NONLINEAR}#the-idea",
            ),
            Misconception(
                name="activated-twice",
                wrong={"feed_forward": _block_activated_twice},
                hint="the output went through a second activation, so that the block cannot lower a feature.",
                page=f"{CELL_D}#questions",
            ),
            Misconception(
                name="output-bias-forgotten",
                wrong={"feed_forward": _block_no_output_bias},
                hint="the second bias is missing from the output.",
                page=f"{CELL_D}#the-calculation",
            ),
            Misconception(
                name="second-matrix-transposed",
                wrong={"feed_forward": _block_transposed},
                hint="the second matrix was transposed before the projection.",
                page=f"{CELL_D}#what-goes-wrong",
            ),
        ),
        uses=("affine",),
    ),
    Step(
        name="inactive_units",
        own={"inactive_per_token": inactive_per_token, "off_everywhere": off_everywhere},
        probes=(*_probes("inactive_per_token", *_STATES), *_probes("off_everywhere", *_STATES)),
        misconceptions=(
            Misconception(
                name="zero-taken-as-active",
                wrong={"inactive_per_token": lambda u: (_array(u) < 0).sum(axis=-1)},
                hint="a pre-activation of exactly 0 was counted as active, though the unit gives 0 there.",
                page=f"{CELL_G}#the-calculation",
            ),
            Misconception(
                name="active-counted",
                wrong={"inactive_per_token": lambda u: (_array(u) > 0).sum(axis=-1)},
                hint="the active units were counted; asked for are the others.",
                page=f"{CELL_D}#the-calculation",
            ),
            Misconception(
                name="tokens-counted",
                wrong={"inactive_per_token": lambda u: (_array(u) <= 0).sum(axis=0)},
                hint="the count ran over the first axis, which counts tokens for each unit.",
                page="book/activations/inactive-and-dead#the-idea",
            ),
            Misconception(
                name="one-count-for-all",
                wrong={"inactive_per_token": lambda u: (_array(u) <= 0).sum()},
                hint="all tokens were counted together; each of them has its own count.",
                page="book/activations/inactive-and-dead#the-idea",
            ),
            Misconception(
                name="somewhere-for-everywhere",
                wrong={"off_everywhere": _off_somewhere},
                hint="units that are off on at least one token were counted, not those that are off on all.",
                page="book/activations/inactive-and-dead#the-idea",
            ),
            Misconception(
                name="off-on-average",
                wrong={"off_everywhere": _off_on_average},
                hint="the mean pre-activation of a unit was looked at, which hides the tokens that switch it on.",
                page="book/activations/inactive-and-dead#what-goes-wrong",
            ),
            Misconception(
                name="first-axis-only",
                wrong={"off_everywhere": _off_first_axis},
                hint="only the first axis was searched, so that with a batch the positions count as further units.",
                page=f"{CHECKLIST}#leading-dimensions",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward"),
    ),
    Step(
        name="position_wise",
        own={"one_by_one": one_by_one, "is_position_wise": is_position_wise},
        probes=(
            *_probes(
                "one_by_one",
                *((block, x) for block in (_last_and_sum, _of_all, _square) for x in (_TOKEN, _PAIR, _BATCH)),
            ),
            *_probes(
                "is_position_wise",
                *((block, x) for block in (_square, _running_sum, _almost_triple) for x in (_PAIR, _BATCH)),
                (_last_and_sum, _BATCH),
                (_reversed, _THREE),
                (_squeezed, _BATCH[:1]),
            ),
        ),
        misconceptions=(
            Misconception(
                name="all-at-once",
                wrong={"one_by_one": lambda block, x: block(_array(x))},
                hint="the function got the whole array at once, so nothing is found out about single tokens.",
                page=f"{POSITION}#all-at-once-one-at-a-time",
            ),
            Misconception(
                name="results-flattened",
                wrong={"one_by_one": _tokens_flattened},
                hint="the results are still one long list of rows; batch and sequence are gone.",
                page=f"{CHECKLIST}#leading-dimensions",
            ),
            Misconception(
                name="same-width-expected",
                wrong={"one_by_one": _tokens_of_same_width},
                hint="the results were forced into the shape of x, but a function may return another width.",
                page=f"{EXPAND}#widths-that-change-and-sizes-that-stay",
            ),
            Misconception(
                name="to-the-last-bit",
                wrong={"is_position_wise": _test_to_the_last_bit},
                hint="the values were compared to the last bit, and rounding alone can make them differ.",
                page=f"{POSITION}#all-at-once-one-at-a-time",
            ),
            Misconception(
                name="shapes-compared",
                wrong={"is_position_wise": _test_of_shapes},
                hint="only shapes were compared; a block that mixes tokens can keep every shape.",
                page=f"{CHECKLIST}#what-goes-wrong",
            ),
            Misconception(
                name="first-token-compared",
                wrong={"is_position_wise": _test_of_first_token},
                hint="only the first token was compared, and a block may mix the later ones.",
                page=f"{POSITION}#verify",
            ),
            Misconception(
                name="stretched-by-broadcasting",
                wrong={"is_position_wise": _test_without_shapes},
                hint="the shapes were not compared, so that a lost dimension of size 1 is stretched back in silence.",
                page=f"{CHECKLIST}#leading-dimensions",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward"),
    ),
    Step(
        name="in_order",
        own={"in_order": in_order},
        probes=_probes(
            "in_order",
            (_running_sum, _THREE, np.array([2, 0, 1])),
            (_running_sum, _BATCH, np.array([1, 2, 0])),
            (_square, _BATCH, np.array([2, 0, 1])),
            (_running_sum, np.stack([_THREE, 2 - _THREE, 3 * _THREE]), np.array([1, 2, 0])),
            (_running_sum, _PAIR, np.array([1, 0])),
        ),
        misconceptions=(
            Misconception(
                name="not-put-back",
                wrong={"in_order": _order_not_undone},
                hint="the outputs were left in the order in which the tokens were given.",
                page=f"{POSITION}#order-does-not-matter",
            ),
            Misconception(
                name="order-used-twice",
                wrong={"in_order": _order_used_twice},
                hint="the same order was used for the way back, which undoes no more than an exchange of two tokens.",
                page=f"{POSITION}#order-does-not-matter",
            ),
            Misconception(
                name="batch-reordered",
                wrong={"in_order": _order_of_first_axis},
                hint="the first axis was put into order; with a batch the tokens lie along the last but one.",
                page=f"{CELL_G}#what-goes-wrong",
            ),
            Misconception(
                name="order-ignored",
                wrong={"in_order": _order_ignored},
                hint="the order never entered, so the answer takes for granted what it should help to test.",
                page=f"{POSITION}#order-does-not-matter",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward"),
    ),
    Step(
        name="residual",
        own={"residual": residual},
        probes=_probes(
            "residual",
            *((x, block) for x in (_TOKEN, _PAIR, _BATCH) for block in (_square, _running_sum)),
            (_PAIR, _one_feature),
            (_BATCH[:1], _squeezed),
        ),
        misconceptions=(
            Misconception(
                name="block-instead-of-sum",
                wrong={"residual": _residual_left_out},
                hint="the output replaced the token; the residual connection adds it to the token.",
                page=f"{STREAM}#the-identity-path",
            ),
            Misconception(
                name="stream-overwritten",
                wrong={"residual": _residual_in_place},
                hint="the sum was written into x itself, and the caller has lost the token.",
                page=f"{CELL_E}#the-idea",
            ),
            Misconception(
                name="shape-not-asked",
                wrong={"residual": _residual_stretched},
                hint="an output of another shape was added without a question, because broadcasting stretches it.",
                page=f"{STREAM}#widths-must-agree",
            ),
            Misconception(
                name="width-asked-alone",
                wrong={"residual": _residual_width_only},
                hint="only the last size was compared, so an output that has lost an axis is stretched.",
                page=f"{CHECKLIST}#the-output-width",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward"),
    ),
    Step(
        name="moments",
        own={"moments": moments},
        probes=_probes("moments", (_TOKEN,), (_THREE[0],), (_THREE,), (_CUBE,), (_WIDE,)),
        misconceptions=(
            Misconception(
                name="bessel",
                wrong={"moments": _moments_bessel},
                hint="the squares were divided by d - 1; layer normalization divides by d.",
                page=f"{CELL_E}#the-count-it-is-divided-by",
            ),
            Misconception(
                name="over-the-tokens",
                wrong={"moments": _moments_over_tokens},
                hint="mean and variance were taken over the first axis, which mixes the tokens.",
                page=f"{STREAM}#its-own-features-not-the-batch",
            ),
            Misconception(
                name="over-everything",
                wrong={"moments": _moments_of_everything},
                hint="one mean was taken for the whole array; each token has its own.",
                page=f"{STREAM}#its-own-features-not-the-batch",
            ),
            Misconception(
                name="not-centered",
                wrong={"moments": _moments_not_centered},
                hint="the features were squared before the mean was subtracted, which gives the mean square.",
                page=f"{STREAM}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="mean-distance",
                wrong={"moments": _moments_mean_distance},
                hint="the mean distance from the mean was returned as std; two features cannot show the difference.",
                page=f"{CELL_E}#what-two-features-cannot-show",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward", "residual"),
    ),
    Step(
        name="layer_norm",
        own={"normalize": normalize, "layer_norm": layer_norm},
        probes=(
            *_probes("normalize", *((x, 0.5) for x in (_TOKEN, _THREE[0], _THREE, _CUBE, np.full((2, 4), 3.0)))),
            *_probes("normalize", (_THREE / 50,), (_THREE, 0.0), (np.full(4, 3.0),)),
            *_probes("layer_norm", *((x, _GAIN, _SHIFT, 0.5) for x in (_THREE[0], _THREE, _CUBE))),
            *_probes("layer_norm", (_THREE / 50, _GAIN, _SHIFT)),
        ),
        misconceptions=(
            Misconception(
                name="bessel",
                wrong={"normalize": _normalize_bessel},
                hint="the variance here was divided by d - 1, so the result has too small a spread.",
                page=f"{CELL_E}#the-count-it-is-divided-by",
            ),
            Misconception(
                name="over-the-tokens",
                wrong={"normalize": _normalize_over_tokens},
                hint="each feature was normalized over the tokens, which is what batch normalization does.",
                page=f"{STREAM}#its-own-features-not-the-batch",
            ),
            Misconception(
                name="axis-lost",
                wrong={"normalize": _normalize_without_axis},
                hint="the means lost their last axis, so numpy lines them up with the features instead of the tokens.",
                page=f"{STREAM}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="over-everything",
                wrong={"normalize": _normalize_everything},
                hint="all tokens were normalized together with one mean and one variance.",
                page=f"{STREAM}#its-own-features-not-the-batch",
            ),
            Misconception(
                name="epsilon-outside-the-root",
                wrong={"normalize": _normalize_epsilon_outside},
                hint="epsilon was added to the standard deviation; it belongs inside the root, to the variance.",
                page=f"{CELL_E}#epsilon",
            ),
            Misconception(
                name="epsilon-left-out",
                wrong={"normalize": _normalize_without_epsilon},
                hint="epsilon was left out, and a token of equal features divides 0 by 0.",
                page=f"{CELL_E}#epsilon",
            ),
            Misconception(
                name="divided-by-the-variance",
                wrong={"normalize": _normalize_by_variance},
                hint="the division is by the variance; the root was not taken.",
                page=f"{STREAM}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="gain-on-the-input",
                wrong={"layer_norm": _norm_of_scaled},
                hint="the gain was multiplied into the features before they were normalized.",
                page=f"{STREAM}#layer-normalization-step-by-step",
            ),
            Misconception(
                name="bias-before-the-gain",
                wrong={"layer_norm": _norm_bias_before_gain},
                hint="the bias was added before the gain, so the gain has scaled it too.",
                page=f"{STREAM}#layer-normalization-step-by-step",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward", "residual", "moments"),
    ),
    Step(
        name="placement",
        own={"post_norm": post_norm, "pre_norm": pre_norm},
        probes=(
            *_probes("post_norm", *_LAYERS, (_THREE / 50, _square, _GAIN, _SHIFT)),
            *_probes("pre_norm", *_LAYERS, (_THREE / 50, _square, _GAIN, _SHIFT)),
        ),
        misconceptions=(
            Misconception(
                name="exchanged",
                wrong={"post_norm": pre_norm, "pre_norm": post_norm},
                hint="the two placements were exchanged: post-norm normalizes last.",
                page=f"{STREAM}#the-idea",
            ),
            Misconception(
                name="sum-after-the-norm",
                wrong={"post_norm": _post_norm_of_output},
                hint="the output was normalized first and added afterwards; post-norm adds, then normalizes.",
                page=f"{CELL_E}#what-goes-wrong",
            ),
            Misconception(
                name="post-norm-without-sum",
                wrong={"post_norm": _post_norm_without_sum},
                hint="the output alone was normalized, and x was never added.",
                page=f"{STREAM}#the-identity-path",
            ),
            Misconception(
                name="stream-normalized",
                wrong={"pre_norm": _pre_norm_of_stream},
                hint="the sum starts from the normalized x; in pre-norm the stream itself stays as it was.",
                page=f"{STREAM}#the-order-matters",
            ),
            Misconception(
                name="pre-norm-without-sum",
                wrong={"pre_norm": _pre_norm_without_sum},
                hint="the block's output alone was returned, without the stream that it should be added to.",
                page=f"{STREAM}#the-identity-path",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward", "residual", "moments", "normalize", "layer_norm"),
    ),
    Step(
        name="collapse",
        own={"collapse": collapse},
        probes=_probes(
            "collapse",
            (_WIDE, _WIDE_BIAS, _TALL, _BIAS),
            (_SQUARE, _BIAS, _OTHER, 2 * _BIAS + 1),
            (_TALL, _BIAS, _SQUARE, _BIAS - 1),
        ),
        misconceptions=(
            Misconception(
                name="biases-added",
                wrong={"collapse": _collapse_biases_added},
                hint="the first bias was added as it is, though it passes through the second matrix.",
                page=f"{NONLINEAR}#the-idea",
            ),
            Misconception(
                name="first-bias-lost",
                wrong={"collapse": _collapse_last_bias},
                hint="the first bias is missing from the collapsed bias.",
                page="book/worked-cells/cell-i#the-idea",
            ),
            Misconception(
                name="second-bias-lost",
                wrong={"collapse": _collapse_first_bias},
                hint="what the second map adds at the end is missing from the collapsed bias.",
                page="book/worked-cells/cell-i#the-idea",
            ),
            Misconception(
                name="product-reversed",
                wrong={"collapse": _collapse_reversed},
                hint="the matrices were multiplied in the reverse order; for rows the first one stands on the left.",
                page="book/worked-cells/cell-i#what-goes-wrong",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward"),
    ),
    Step(
        name="absolute_block",
        own={"absolute_block": absolute_block},
        probes=_probes("absolute_block", (1,), (2,), (3,)),
        misconceptions=(
            Misconception(
                name="units-subtracted",
                wrong={"absolute_block": _absolute_subtracted},
                hint="the second unit was subtracted, which rebuilds x; its contribution has to be added.",
                page=f"{NONLINEAR}#the-idea",
            ),
            Misconception(
                name="units-alike",
                wrong={"absolute_block": _absolute_same_sign},
                hint="both units answer to positive numbers, and none to negative ones.",
                page=f"{NONLINEAR}#the-idea",
            ),
            Misconception(
                name="features-summed",
                wrong={"absolute_block": _absolute_summed},
                hint="every unit writes into all features, so that their absolute values are summed.",
                page=f"{NONLINEAR}#exact-pieces",
            ),
            Misconception(
                name="columns-for-rows",
                wrong={"absolute_block": _absolute_columns},
                hint="the units stand in the rows of the first matrix; each unit is one of its columns.",
                page=f"{EXPAND}#two-projections-with-numbers",
            ),
        ),
        uses=("affine", "expand_activate", "feed_forward", "collapse"),
    ),
)
