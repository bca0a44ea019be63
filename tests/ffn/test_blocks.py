import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import ffn
from ffn import ACTIVATIONS, GATES, Activation, FeedForward, GatedFeedForward, MixtureOfExperts, collapse
from ffn.exceptions import ShapeError, UnknownActivationError
from ffn.published import published, published_inputs

Array = NDArray[Any]
Block = Callable[[Any], Array]

D_MODEL, D_FF = 4, 6
EX2, EX7, TINY, CORE = (published_inputs(name) for name in ("ex2", "ex7", "tiny", "mech_core"))

# A gate's activation written out for one number, for the formula by hand.
GATE_BY_HAND: dict[str, Callable[[float], float]] = {
    "GLU": lambda z: 1 / (1 + math.exp(-z)),
    "bilinear": lambda z: z,
    "ReGLU": lambda z: max(z, 0),
    "GEGLU": lambda z: z * math.erfc(-z / math.sqrt(2)) / 2,
    "SwiGLU": lambda z: z / (1 + math.exp(-z)),
}


def right(ident: str) -> Array:
    return np.array(published()[ident].value)


def plain(rng: np.random.Generator, activation: str = "gelu", dtype: Any = np.float64) -> FeedForward:
    shapes = [(D_MODEL, D_FF), (D_FF,), (D_FF, D_MODEL), (D_MODEL,)]
    W_1, b_1, W_2, b_2 = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    return FeedForward(W_1, b_1, W_2, b_2, activation)


def gated(rng: np.random.Generator, activation: str = "silu", dtype: Any = np.float64) -> GatedFeedForward:
    shapes = [(D_MODEL, D_FF), (D_MODEL, D_FF), (D_FF, D_MODEL)]
    W_g, W_u, W_d = (rng.normal(size=shape).astype(dtype) for shape in shapes)
    return GatedFeedForward(W_g, W_u, W_d, activation)


def mixture(rng: np.random.Generator, top_k: int = 2, dtype: Any = np.float64) -> MixtureOfExperts:
    experts = [
        plain(rng, "relu", dtype),
        gated(rng, "silu", dtype),
        plain(rng, "gelu", dtype),
        gated(rng, "relu", dtype),
    ]
    return MixtureOfExperts(experts, rng.normal(size=(D_MODEL, 4)).astype(dtype), top_k)


FAMILY: dict[str, Callable[..., Any]] = {"plain": plain, "gated": gated, "mixture": mixture}
every_block = pytest.mark.parametrize("make", FAMILY.values(), ids=FAMILY)


@pytest.fixture
def ex2() -> FeedForward:
    return FeedForward(EX2["W1"], EX2["b1"], EX2["W2"], EX2["b2"])


# Published examples


@pytest.mark.parametrize("stage", ["u", "h", "y"])
def test_example_2_is_reproduced_at_every_stage(stage: str, ex2: FeedForward) -> None:
    np.testing.assert_array_equal(getattr(ex2.trace(EX2["x"]), stage), right(f"ex2.{stage}"))


def test_example_2_has_the_published_shapes(ex2: FeedForward) -> None:
    stage = ex2.trace([EX2["x"]])
    shapes = [stage.x.shape, ex2.W_1.shape, stage.u.shape, ex2.W_2.shape, stage.y.shape]
    np.testing.assert_array_equal(shapes, right("ex2.shapes"))


def test_example_2_has_the_published_number_of_inactive_units(ex2: FeedForward) -> None:
    assert np.sum(ex2.hidden(EX2["x"]) == 0) == right("ex2.inactive_units")


@pytest.mark.parametrize(
    ("stage", "token", "ident"),
    [("u", 0, "u_1"), ("y", 0, "y_1"), ("u", 1, "u_2"), ("h", 1, "h_2"), ("y", 1, "y_2")],
)
def test_example_5_gives_each_token_its_published_result(
    stage: str, token: int, ident: str, ex2: FeedForward
) -> None:
    tokens = [published_inputs("ex5")["x1"], published_inputs("ex5")["x2"]]
    np.testing.assert_array_equal(getattr(ex2.trace(tokens), stage)[token], right(f"ex5.{ident}"))


def test_example_5_with_its_tokens_swapped_gives_swapped_results(ex2: FeedForward) -> None:
    swapped = [published_inputs("ex5")["x2"], published_inputs("ex5")["x1"]]
    np.testing.assert_array_equal(ex2(swapped), right("ex5.swapped"))


@pytest.mark.parametrize(("stage", "ident"), [("h", "hidden"), ("y", "output")])
def test_tiny_calculation_is_reproduced(stage: str, ident: str) -> None:
    block = FeedForward(TINY["w1"], TINY["b1"], TINY["w2"], None)
    np.testing.assert_array_equal(getattr(block.trace(TINY["x"]), stage), right(f"tiny.{ident}"))


def test_example_widths_expand_and_come_back_with_the_sequence_unchanged() -> None:
    width, inner, out = right("tiny.widths")
    block = FeedForward(np.zeros((width, inner)), None, np.zeros((inner, out)), None)
    stage = block.trace(np.zeros((5, width)))
    assert (stage.u.shape, stage.y.shape) == ((5, inner), (5, out))


def test_mechanism_core_has_its_published_parameters() -> None:
    d, m = CORE["d"], CORE["m"]
    block = FeedForward(np.zeros((d, m)), np.zeros(m), np.zeros((m, d)), np.zeros(d), CORE["activation"])
    parts = [array.size for array in (block.W_1, block.b_1, block.W_2, block.b_2) if array is not None]
    assert parts == [right(f"mech.core_{name}") for name in ("w1", "b1", "w2", "b2")]
    assert block.parameter_count == right("mech.core_params")


def test_mechanism_swiglu_has_its_published_weights_and_projections() -> None:
    given_ = published_inputs("mech_swiglu")
    d, d_ff = given_["d"], given_["d_ff"]
    block = GatedFeedForward(np.zeros((d, d_ff)), np.zeros((d, d_ff)), np.zeros((d_ff, d)))
    assert block.parameter_count == right("mech.swiglu_weights")
    np.testing.assert_array_equal([2, *block.W_g.shape], right("mech.swiglu_input_projections"))
    np.testing.assert_array_equal([1, *block.W_d.shape], right("mech.swiglu_output_projection"))


# Collapse


def test_example_7_collapses_to_its_published_map() -> None:
    W, b = collapse(EX7["W1"], EX7["b1"], EX7["W2"], EX7["b2"])
    np.testing.assert_array_equal(W, right("ex7.W"))
    np.testing.assert_array_equal(b, right("ex7.b"))


def test_example_7_gives_the_same_in_two_steps_and_collapsed() -> None:
    stage = FeedForward(EX7["W1"], EX7["b1"], EX7["W2"], EX7["b2"], "identity").trace(EX7["x"])
    W, b = collapse(EX7["W1"], EX7["b1"], EX7["W2"], EX7["b2"])
    np.testing.assert_array_equal(stage.u, right("ex7.u"))
    np.testing.assert_array_equal(stage.y, right("ex7.two_step"))
    np.testing.assert_array_equal(EX7["x"] @ W, right("ex7.xW"))
    np.testing.assert_array_equal(EX7["x"] @ W + b, right("ex7.collapsed"))


def test_collapsed_map_equals_a_block_without_activation_on_any_widths(rng: np.random.Generator) -> None:
    W_1, b_1, W_2, b_2 = rng.normal(size=(3, 7)), rng.normal(size=7), rng.normal(size=(7, 5)), rng.normal(size=5)
    x = rng.normal(size=(2, 4, 3))
    W, b = collapse(W_1, b_1, W_2, b_2)
    np.testing.assert_allclose(x @ W + b, (x @ W_1 + b_1) @ W_2 + b_2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((3,), (3,), (3, 2), (2,)), "W_1 has shape (3,); expected a matrix (m, n)."),
        (((2, 3), (3,), (3,), (2,)), "W_2 has shape (3,); expected a matrix (n, p)."),
        (
            ((2, 3), (3,), (4, 2), (2,)),
            "W_1 has shape (2, 3) and W_2 has shape (4, 2); expected W_1 of shape (..., 4).",
        ),
        (((2, 3), (2,), (3, 2), (2,)), "b_1 has shape (2,) and W_1 has shape (2, 3); expected b_1 of shape (3,)."),
        (((2, 3), (3,), (3, 5), (3,)), "b_2 has shape (3,) and W_2 has shape (3, 5); expected b_2 of shape (5,)."),
    ],
    ids=["W_1", "W_2", "widths", "b_1", "b_2"],
)
def test_collapse_refuses_shapes_that_do_not_fit(shapes: Sequence[tuple[int, ...]], message: str) -> None:
    W_1, b_1, W_2, b_2 = map(np.zeros, shapes)
    with pytest.raises(ShapeError) as caught:
        collapse(W_1, b_1, W_2, b_2)
    assert str(caught.value) == message


# What every block has in common


@pytest.mark.parametrize("leading", [(), (1,), (3,), (2, 3), (2, 1, 3), (0,), (2, 0)])
@every_block
def test_leading_dimensions_are_kept(
    make: Callable[..., Block], leading: tuple[int, ...], rng: np.random.Generator
) -> None:
    assert make(rng)(rng.normal(size=(*leading, D_MODEL))).shape == (*leading, D_MODEL)


@every_block
def test_every_position_equals_being_run_alone(make: Callable[..., Block], rng: np.random.Generator) -> None:
    block, x = make(rng), rng.normal(size=(2, 3, D_MODEL))
    together = block(x)
    for at in np.ndindex(2, 3):
        np.testing.assert_allclose(together[at], block(x[at]), rtol=1e-12, atol=1e-13)


@every_block
@given(order=st.permutations(range(5)), seed=st.integers(0, 2**32 - 1))
def test_reordered_tokens_give_reordered_results(make: Callable[..., Block], order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    block, x = make(rng), rng.normal(size=(5, D_MODEL))
    np.testing.assert_allclose(block(x[order]), block(x)[order], rtol=1e-12, atol=1e-13)


@every_block
def test_float32_in_gives_float32_out(make: Callable[..., Block], rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, D_MODEL)).astype(np.float32)
    assert make(rng, dtype=np.float32)(x).dtype == np.float32


@every_block
def test_float32_result_is_the_float64_result_rounded(make: Callable[..., Any], rng: np.random.Generator) -> None:
    x = rng.normal(size=(3, D_MODEL)).astype(np.float32)
    single = make(np.random.default_rng(11), dtype=np.float32)(x)
    double = make(np.random.default_rng(11), dtype=np.float64)(x)
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-5)


@every_block
def test_float64_weights_on_a_float32_input_give_float64(
    make: Callable[..., Block], rng: np.random.Generator
) -> None:
    x = rng.normal(size=(3, D_MODEL))
    block = make(rng)
    result = block(x.astype(np.float32))
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, block(x.astype(np.float32).astype(np.float64)))


@every_block
def test_lists_and_integers_are_computed_in_float64(make: Callable[..., Block], rng: np.random.Generator) -> None:
    block = make(rng)
    result = block([[1, 2, 3, 4]])
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, block(np.array([[1.0, 2, 3, 4]])))


@every_block
def test_no_argument_is_written_to(make: Callable[..., Any], rng: np.random.Generator) -> None:
    block = make(rng)
    x = rng.normal(size=(2, 3, D_MODEL))
    members = getattr(block, "experts", [block])
    held = [x, *(v for member in members for v in vars(member).values() if isinstance(v, np.ndarray))]
    before = [array.copy() for array in held]
    result = block(x)
    for array, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(array, copy)
        assert not np.shares_memory(result, array)


@pytest.mark.parametrize("shape", [(D_MODEL + 1,), (2, D_FF), (D_MODEL, 2), (0,), ()])
@pytest.mark.parametrize(("kind", "matrix"), [("plain", "W_1"), ("gated", "W_g"), ("mixture", "W_r")])
def test_input_of_the_wrong_width_is_refused_with_both_shapes(
    kind: str, matrix: str, shape: tuple[int, ...], rng: np.random.Generator
) -> None:
    block = FAMILY[kind](rng)
    width = getattr(block, matrix).shape
    with pytest.raises(ShapeError) as caught:
        block(np.zeros(shape))
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == (
        f"x has shape {shape} and {matrix} has shape {width}; expected x of shape (..., {D_MODEL})."
    )


@pytest.mark.parametrize("make", [plain, gated], ids=["plain", "gated"])
def test_trace_refuses_an_input_of_the_wrong_width(make: Callable[..., Any], rng: np.random.Generator) -> None:
    with pytest.raises(ShapeError, match=r"x has shape \(2, 5\)"):
        make(rng).trace(np.zeros((2, 5)))


@pytest.mark.parametrize("unknown", ["swish", None, 3])
@pytest.mark.parametrize("make", [plain, gated], ids=["plain", "gated"])
def test_unknown_activation_is_refused(make: Callable[..., Any], unknown: Any, rng: np.random.Generator) -> None:
    with pytest.raises(UnknownActivationError, match="choose one of relu, gelu"):
        make(rng, unknown)


@pytest.mark.parametrize("make", [plain, gated], ids=["plain", "gated"])
def test_activation_of_ones_own_is_used(make: Callable[..., Any], rng: np.random.Generator) -> None:
    silent = Activation("silent", np.zeros_like, np.zeros_like)
    np.testing.assert_array_equal(make(rng, silent).hidden(np.ones(D_MODEL)), np.zeros(D_FF))


@pytest.mark.parametrize("make", [plain, gated], ids=["plain", "gated"])
def test_widths_are_read_off_the_weights(make: Callable[..., Any], rng: np.random.Generator) -> None:
    block = make(rng)
    assert (block.d_model, block.d_ff) == (D_MODEL, D_FF)


@pytest.mark.parametrize("make", [plain, gated], ids=["plain", "gated"])
def test_trace_ends_with_what_the_call_gives(make: Callable[..., Any], rng: np.random.Generator) -> None:
    block, x = make(rng), rng.normal(size=(2, 3, D_MODEL))
    stage = block.trace(x)
    np.testing.assert_array_equal(stage.x, x)
    np.testing.assert_allclose(stage.h, block.hidden(x), rtol=1e-14)
    np.testing.assert_allclose(stage.y, block(x), rtol=1e-13, atol=1e-14)


# The plain block


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_plain_block_agrees_with_pytorch(activation: str, torch_vectors: Mapping[str, Array]) -> None:
    # PyTorch stores a weight as (out, in): its transpose is the course's matrix.
    names = ("first_weight", "first_bias", "second_weight", "second_bias")
    block = FeedForward(*(torch_vectors[f"plain_{name}"].T for name in names), activation)
    theirs = torch_vectors["plain_y"][list(torch_vectors["activation_names"]).index(activation)]
    np.testing.assert_allclose(block(torch_vectors["plain_x"]), theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("b_1", "b_2", "y"),
    # u = 2 x 3 - 5 or 2 x 3, y = 4 relu(u) + 1 or 4 relu(u)
    [([-5], [1], 5), (None, [1], 25), ([-5], None, 4), (None, None, 24)],
)
def test_either_bias_may_be_missing(b_1: list[int] | None, b_2: list[int] | None, y: float) -> None:
    block = FeedForward([[2]], b_1, [[4]], b_2)
    np.testing.assert_array_equal(block([3]), [y])
    assert block.parameter_count == 2 + (b_1 is not None) + (b_2 is not None)


def test_plain_trace_holds_the_pre_activation_and_its_activation(rng: np.random.Generator) -> None:
    block, x = plain(rng, "tanh"), rng.normal(size=(3, D_MODEL))
    stage = block.trace(x)
    np.testing.assert_allclose(stage.u, x @ block.W_1 + block.b_1, rtol=1e-13)
    np.testing.assert_array_equal(stage.u, block.pre_activation(x))
    np.testing.assert_array_equal(stage.h, np.tanh(stage.u))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"W_1": (4,)}, "W_1 has shape (4,); expected a matrix (d_model, d_ff)."),
        ({"W_1": (1, 4, 6)}, "W_1 has shape (1, 4, 6); expected a matrix (d_model, d_ff)."),
        ({"W_2": ()}, "W_2 has shape (); expected a matrix (d_ff, d_model)."),
        ({"W_2": (4, 6)}, "W_1 has shape (4, 6) and W_2 has shape (4, 6); expected W_2 of shape (6, 4)."),
        ({"W_2": (6, 5)}, "W_1 has shape (4, 6) and W_2 has shape (6, 5); expected W_2 of shape (6, 4)."),
        ({"W_1": (5, 6)}, "W_1 has shape (5, 6) and W_2 has shape (6, 4); expected W_2 of shape (6, 5)."),
        ({"b_1": (4,)}, "b_1 has shape (4,) and W_1 has shape (4, 6); expected b_1 of shape (6,)."),
        ({"b_1": (1, 6)}, "b_1 has shape (1, 6) and W_1 has shape (4, 6); expected b_1 of shape (6,)."),
        ({"b_1": ()}, "b_1 has shape () and W_1 has shape (4, 6); expected b_1 of shape (6,)."),
        ({"b_2": (6,)}, "b_2 has shape (6,) and W_2 has shape (6, 4); expected b_2 of shape (4,)."),
        ({"b_2": (4, 1)}, "b_2 has shape (4, 1) and W_2 has shape (6, 4); expected b_2 of shape (4,)."),
    ],
    ids=str,
)
def test_plain_block_refuses_shapes_that_do_not_fit(wrong: dict[str, tuple[int, ...]], message: str) -> None:
    shapes = {"W_1": (D_MODEL, D_FF), "b_1": (D_FF,), "W_2": (D_FF, D_MODEL), "b_2": (D_MODEL,)} | wrong
    with pytest.raises(ShapeError) as caught:
        FeedForward(**{name: np.zeros(shape) for name, shape in shapes.items()})
    assert str(caught.value) == message


# The gated family


def test_gated_family_has_its_five_members() -> None:
    assert set(GATES) == set(GATE_BY_HAND)


@pytest.mark.parametrize("gate", GATES)
def test_gated_block_agrees_with_pytorch(gate: str, torch_vectors: Mapping[str, Array]) -> None:
    names = ("gate_weight", "up_weight", "down_weight")
    block = GatedFeedForward(*(torch_vectors[f"gated_{name}"].T for name in names), GATES[gate])
    theirs = torch_vectors["gated_y"][list(torch_vectors["gate_names"]).index(gate)]
    np.testing.assert_allclose(block(torch_vectors["gated_x"]), theirs, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("x", [-2.0, -0.3, 0.0, 1.5])
@pytest.mark.parametrize("gate", GATES)
def test_gated_block_of_two_units_is_its_formula_by_hand(gate: str, x: float) -> None:
    block = GatedFeedForward([[2.0, -1.0]], [[3.0, 0.5]], [[5.0], [7.0]], GATES[gate])
    by_hand = GATE_BY_HAND[gate]
    y = by_hand(2 * x) * (3 * x) * 5 + by_hand(-x) * (0.5 * x) * 7
    np.testing.assert_allclose(block([x]), [y], rtol=1e-12, atol=1e-15)


def test_gate_and_up_projection_are_not_interchangeable() -> None:
    # Swapped, the gate would be relu(3) = 3 times up -2.
    np.testing.assert_array_equal(GatedFeedForward([[-2.0]], [[3.0]], [[1.0]], "relu")([1.0]), [0])


def test_gated_block_is_swiglu_unless_told_otherwise() -> None:
    assert GatedFeedForward([[1.0]], [[1.0]], [[1.0]]).sigma.name == GATES["SwiGLU"]


def test_gated_trace_holds_gate_and_up_projection(rng: np.random.Generator) -> None:
    block, x = gated(rng, "tanh"), rng.normal(size=(2, 3, D_MODEL))
    stage = block.trace(x)
    np.testing.assert_allclose(stage.u_g, x @ block.W_g, rtol=1e-13)
    np.testing.assert_allclose(stage.up, x @ block.W_u, rtol=1e-13)
    np.testing.assert_array_equal(stage.gate, np.tanh(stage.u_g))
    np.testing.assert_array_equal(stage.h, stage.gate * stage.up)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"W_g": (4,)}, "W_g has shape (4,); expected a matrix (d_model, d_ff)."),
        ({"W_g": (4, 6, 1)}, "W_g has shape (4, 6, 1); expected a matrix (d_model, d_ff)."),
        ({"W_u": (4, 5)}, "W_g has shape (4, 6) and W_u has shape (4, 5); expected W_u of shape (4, 6)."),
        ({"W_u": (6, 4)}, "W_g has shape (4, 6) and W_u has shape (6, 4); expected W_u of shape (4, 6)."),
        ({"W_u": (6,)}, "W_g has shape (4, 6) and W_u has shape (6,); expected W_u of shape (4, 6)."),
        ({"W_d": (4, 6)}, "W_g has shape (4, 6) and W_d has shape (4, 6); expected W_d of shape (6, 4)."),
        ({"W_d": (6,)}, "W_g has shape (4, 6) and W_d has shape (6,); expected W_d of shape (6, 4)."),
    ],
    ids=str,
)
def test_gated_block_refuses_shapes_that_do_not_fit(wrong: dict[str, tuple[int, ...]], message: str) -> None:
    shapes = {"W_g": (D_MODEL, D_FF), "W_u": (D_MODEL, D_FF), "W_d": (D_FF, D_MODEL)} | wrong
    with pytest.raises(ShapeError) as caught:
        GatedFeedForward(**{name: np.zeros(shape) for name, shape in shapes.items()})
    assert str(caught.value) == message


# The mixture of experts


def token_by_token(block: MixtureOfExperts, x: Array) -> Array:
    """The definition for one token at a time, in plain Python."""
    y = np.zeros(x.shape)
    for at in np.ndindex(x.shape[:-1]):
        scores = [float(sum(x[at] * column)) for column in block.W_r.T]
        chosen = sorted(range(len(scores)), key=lambda number: -scores[number])[: block.top_k]
        total = sum(math.exp(scores[number]) for number in chosen)
        for number in chosen:
            y[at] += math.exp(scores[number]) / total * block.experts[number](x[at])
    return y


@pytest.mark.parametrize("top_k", [1, 2, 3, 4])
@pytest.mark.parametrize("leading", [(), (7,), (2, 3)])
def test_mixture_equals_a_loop_over_tokens(leading: tuple[int, ...], top_k: int, rng: np.random.Generator) -> None:
    block, x = mixture(rng, top_k), rng.normal(size=(*leading, D_MODEL))
    np.testing.assert_allclose(block(x), token_by_token(block, x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("make", [plain, gated], ids=["plain", "gated"])
def test_mixture_of_equal_experts_that_uses_all_equals_the_dense_block(
    make: Callable[..., Any], rng: np.random.Generator
) -> None:
    expert, x = make(rng), rng.normal(size=(2, 3, D_MODEL))
    block = MixtureOfExperts([expert] * 3, rng.normal(size=(D_MODEL, 3)), top_k=3)
    np.testing.assert_allclose(block(x), expert(x), rtol=1e-12, atol=1e-13)


@given(
    hnp.arrays(np.float64, (5, D_MODEL), elements=st.floats(-1e6, 1e6)),
    st.integers(1, 4),
)
def test_routing_weights_are_positive_and_sum_to_one(x: Array, top_k: int) -> None:
    weights = mixture(np.random.default_rng(5), top_k).route(x).weights
    assert weights.shape == (5, top_k)
    assert np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-14)


def test_router_picks_the_highest_scores_best_first() -> None:
    # The scores of [1] are the router's row itself; exp(-1) / (1 + exp(-1)) is 0.2689.
    block = MixtureOfExperts([FeedForward([[1.0]], None, [[1.0]], None)] * 4, [[0.0, 3.0, -1.0, 2.0]], top_k=2)
    routing = block.route([1.0])
    np.testing.assert_array_equal(routing.experts, [1, 3])
    np.testing.assert_allclose(routing.weights, [1 / (1 + math.exp(-1)), math.exp(-1) / (1 + math.exp(-1))])


def test_each_token_has_a_routing_of_its_own() -> None:
    block = MixtureOfExperts([FeedForward([[1.0]], None, [[1.0]], None)] * 3, [[0.0, 3.0, -1.0]], top_k=2)
    np.testing.assert_array_equal(block.route([[[1.0], [-1.0]]]).experts, [[[1, 0], [2, 0]]])


@pytest.mark.parametrize(
    ("row", "experts"), [([0, 0, 0, 0], [0, 1]), ([1, 2, 2, 2], [1, 2]), ([3, 1, 2, 2], [0, 2])], ids=str
)
def test_equal_scores_go_to_the_lower_number(row: list[float], experts: list[int]) -> None:
    block = MixtureOfExperts([FeedForward([[1.0]], None, [[1.0]], None)] * 4, [row], top_k=2)
    np.testing.assert_array_equal(block.route([1.0]).experts, experts)


def test_equal_scores_of_many_experts_go_to_the_lower_numbers() -> None:
    # Sorting is stable by accident for a few numbers; 64 of them show whether it was asked for.
    row = [float(number % 2) for number in range(64)]
    block = MixtureOfExperts([FeedForward([[1.0]], None, [[1.0]], None)] * 64, [row], top_k=40)
    expected = [*range(1, 64, 2), *range(0, 16, 2)]
    np.testing.assert_array_equal(block.route([1.0]).experts, expected)


def test_equal_scores_share_the_weight_equally() -> None:
    block = MixtureOfExperts([FeedForward([[1.0]], None, [[1.0]], None)] * 2, [[5.0, 5.0]])
    np.testing.assert_array_equal(block.route([1.0]).weights, [0.5, 0.5])


def test_one_chosen_expert_gets_all_the_weight() -> None:
    # Experts that multiply a positive number by 1, 10 and 100, of which the last scores highest.
    experts = [FeedForward([[factor]], None, [[1.0]], None) for factor in (1.0, 10.0, 100.0)]
    np.testing.assert_array_equal(MixtureOfExperts(experts, [[1.0, 2.0, 3.0]], top_k=1)([2.0]), [200])


def test_large_scores_do_not_overflow() -> None:
    block = MixtureOfExperts([FeedForward([[1.0]], None, [[1.0]], None)] * 2, [[1e4, -1e4]])
    with np.errstate(over="raise", invalid="raise"):
        np.testing.assert_array_equal(block([1.0]), [1])


def test_expert_computes_the_tokens_sent_to_it_and_no_others() -> None:
    seen: list[Array] = []

    def recording(u: Array) -> Array:
        seen.append(u.copy())
        return u

    recorder = FeedForward([[1.0]], None, [[1.0]], None, Activation("recording", recording, np.ones_like))
    other = FeedForward([[1.0]], None, [[1.0]], None)
    MixtureOfExperts([other, recorder], [[0.0, 1.0]], top_k=1)([[-1.0], [2.0], [-3.0], [4.0]])
    np.testing.assert_array_equal(np.concatenate(seen), [[2.0], [4.0]])


def test_expert_to_which_no_token_goes_is_not_run() -> None:
    def forbidden(u: Array) -> Array:
        raise AssertionError("ran")

    idle = FeedForward([[1.0]], None, [[1.0]], None, Activation("idle", forbidden, forbidden))
    used = FeedForward([[1.0]], None, [[1.0]], None)
    np.testing.assert_array_equal(MixtureOfExperts([used, idle], [[1.0, 0.0]], top_k=1)([3.0]), [3])


def test_stored_parameters_are_the_router_and_every_expert(rng: np.random.Generator) -> None:
    # Router 4 x 4, two plain experts of 4 x 6 + 6 + 6 x 4 + 4 and two gated ones of 3 x 4 x 6.
    assert mixture(rng).parameter_count == 16 + 2 * 58 + 2 * 72


@pytest.mark.parametrize(("top_k", "count"), [(1, 16 + 72), (2, 16 + 144), (3, 16 + 144 + 58), (4, 16 + 260)])
def test_active_parameters_are_the_router_and_the_largest_chosen_experts(
    top_k: int, count: int, rng: np.random.Generator
) -> None:
    assert mixture(rng, top_k).active_parameter_count == count


@pytest.mark.parametrize("top_k", [0, -1, 5])
def test_number_of_chosen_experts_must_lie_between_one_and_all(top_k: int, rng: np.random.Generator) -> None:
    with pytest.raises(ValueError, match=f"top_k is {top_k}; expected 1 to 4, the number of experts"):
        mixture(rng, top_k)


def test_mixture_without_experts_is_refused() -> None:
    with pytest.raises(ValueError, match="top_k is 1; expected"):
        MixtureOfExperts([], np.zeros((4, 0)), top_k=1)


@pytest.mark.parametrize("shape", [(4, 3), (5, 2), (2, 4)])
def test_mixture_refuses_a_router_that_does_not_fit(shape: tuple[int, ...], rng: np.random.Generator) -> None:
    with pytest.raises(ShapeError) as caught:
        MixtureOfExperts([plain(rng), plain(rng)], np.zeros(shape))
    assert str(caught.value) == f"W_r has shape {shape}; expected (d_model, number of experts) = (4, 2)."


def test_mixture_refuses_a_router_that_is_no_matrix(rng: np.random.Generator) -> None:
    with pytest.raises(
        ShapeError, match=r"W_r has shape \(4,\); expected a matrix \(d_model, number of experts\)"
    ):
        MixtureOfExperts([plain(rng), plain(rng)], np.zeros(4))


def test_mixture_refuses_an_expert_of_another_width(rng: np.random.Generator) -> None:
    narrow = FeedForward(np.zeros((3, 6)), None, np.zeros((6, 3)), None)
    with pytest.raises(
        ShapeError, match=r"expert 1 has shape \(3, 6\) and W_r has shape \(4, 2\); expected d_model 4"
    ):
        MixtureOfExperts([plain(rng), narrow], np.zeros((4, 2)))


def test_list_of_experts_may_change_without_changing_the_mixture(rng: np.random.Generator) -> None:
    experts = [plain(rng), plain(rng)]
    block = MixtureOfExperts(experts, np.zeros((4, 2)))
    experts.clear()
    assert block.parameter_count == 8 + 2 * 58


def test_every_public_name_of_the_package_exists() -> None:
    assert [name for name in ffn.__all__ if not hasattr(ffn, name)] == []


def test_unknown_attribute_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'ffn' has no attribute 'nonsense'"):
        _ = ffn.nonsense
