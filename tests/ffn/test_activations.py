import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.typing import DTypeLike, NDArray

import ffn
from ffn.activations import find_activation
from ffn.exceptions import UnknownActivationError
from ffn.published import published

mp.dps = 60

Array = NDArray[Any]
Function = Callable[[Any], Array]

NAMES = ("relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "identity")
BLOCK = 32_768
FUNCTIONS: dict[str, Function] = {
    **{name: ffn.ACTIVATIONS[name].function for name in NAMES},
    **{f"{name}_grad": ffn.ACTIVATIONS[name].derivative for name in NAMES},
}
every_function = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
every_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])

# The definitions, in 60 digits.
EXACT: dict[str, Callable[[mpf], mpf]] = {
    "relu": lambda z: z if z > 0 else mpf(0),
    "gelu": lambda z: z * mp.erfc(-z / mp.sqrt(2)) / 2,
    "gelu_tanh": lambda z: z / (1 + mp.exp(-2 * mp.sqrt(2 / mp.pi) * (z + mpf("0.044715") * z**3))),
    "silu": lambda z: z / (1 + mp.exp(-z)),
    "sigmoid": lambda z: 1 / (1 + mp.exp(-z)),
    "tanh": mp.tanh,
    "identity": lambda z: z,
}
smooth = pytest.mark.parametrize("name", [name for name in NAMES if name != "relu"])

# Value and slope at -inf, value and slope at +inf.
LIMITS = {
    "relu": (0, 0, math.inf, 1),
    "gelu": (0, 0, math.inf, 1),
    "gelu_tanh": (0, 0, math.inf, 1),
    "silu": (0, 0, math.inf, 1),
    "sigmoid": (0, 0, 1, 0),
    "tanh": (-1, 0, 1, 0),
    "identity": (-math.inf, 1, math.inf, 1),
}

PUBLISHED = {
    "ex1.relu_A": ("relu", 1.7),
    "ex1.relu_B": ("relu", -1.2),
    "ex1.relu_C": ("relu", 0.0),
    "ex1.relu_grad_B": ("relu_grad", -1.2),
    "ex1.relu_slope_left_at_0": ("relu_grad", -1e-9),
    "ex1.relu_slope_right_at_0": ("relu_grad", 1e-9),
    "ex1.relu_grad_convention_at_0": ("relu_grad", 0.0),
    "ex4.relu_neg": ("relu", -0.5),
    "ex4.relu_pos": ("relu", 2),
    "ex4.sigmoid_neg": ("sigmoid", -0.5),
    "ex4.sigmoid_pos": ("sigmoid", 2),
    "ex4.silu_neg": ("silu", -0.5),
    "ex4.silu_pos": ("silu", 2),
    "ex4.gelu_neg": ("gelu", -0.5),
    "ex4.gelu_pos": ("gelu", 2),
    "ex8.relu_neg": ("relu", -10),
    "ex8.relu_pos": ("relu", 10),
    "ex8.sigmoid_neg": ("sigmoid", -10),
    "ex8.sigmoid_pos": ("sigmoid", 10),
    "ex8.silu_neg": ("silu", -10),
    "ex8.silu_pos": ("silu", 10),
    "ex8.gelu_neg": ("gelu", -10),
    "ex8.gelu_pos": ("gelu", 10),
    "mech.tanh_h": ("tanh", 0),
}


def extremes(dtype: DTypeLike) -> Array:
    """Finite numbers of both signs at every place where a formula could overflow or underflow."""
    limits = np.finfo(np.dtype(dtype))
    edges = np.log(limits.max), -np.log(limits.tiny), -np.log(limits.smallest_subnormal)
    exponents = np.linspace(np.log10(limits.tiny) + 0.1, np.log10(limits.max) - 0.1, 200)
    sizes = np.concatenate(
        [
            [0, limits.smallest_subnormal, limits.tiny / 2, limits.tiny, limits.eps, limits.max / 2, limits.max],
            [13, 14, 19, 20, 37, 38.5, 40, 41, 999, 1000, 1001],
            [edge * factor for edge in edges for factor in (0.5, 0.99, 1, 1.01)],
            10.0**exponents,
        ]
    ).astype(dtype)
    return np.concatenate([-sizes, sizes])


def grid(count: int) -> Array:
    random = np.random.default_rng(1).uniform(-37, 37, count)
    return np.concatenate([np.linspace(-37, 37, count), random, [-1e-300, -1e-9, 1e-9, 1e-300]])


def assert_relative(computed: Array, exact: list[mpf], bound: float) -> None:
    """Hold every number to a relative bound; one too small for twelve digits may miss by its last."""
    smallest = float(np.finfo(np.float64).tiny)
    for ours, right in zip(computed, exact, strict=True):
        assert abs(mpf(float(ours)) - right) <= bound * abs(right) + smallest, (ours, right)


def test_gelu_keeps_twelve_digits_from_minus_37_to_37() -> None:
    z = grid(1481)
    assert_relative(ffn.gelu(z), [EXACT["gelu"](mpf(float(v))) for v in z], 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_every_activation_keeps_twelve_digits_from_minus_37_to_37(name: str) -> None:
    z = grid(250)
    assert_relative(FUNCTIONS[name](z), [EXACT[name](mpf(float(v))) for v in z], 1e-12)


@given(st.floats(-37, 37))
def test_gelu_keeps_twelve_digits_wherever_one_looks(z: float) -> None:
    assert_relative(np.array([ffn.gelu(z)]), [EXACT["gelu"](mpf(z))], 1e-12)


@smooth
def test_every_derivative_keeps_twelve_digits_away_from_its_zero(name: str) -> None:
    # The zeros of the derivatives lie between -2 and 0, and relative accuracy is lost near a zero.
    z = grid(100)
    z = z[(z < -2) | (z >= 0)]
    assert_relative(FUNCTIONS[f"{name}_grad"](z), [mp.diff(EXACT[name], mpf(float(v))) for v in z], 1e-12)


@smooth
def test_every_derivative_is_within_rounding_between_minus_2_and_0(name: str) -> None:
    z = np.linspace(-2, 0, 101)
    right = np.array([float(mp.diff(EXACT[name], mpf(float(v)))) for v in z])
    # Terms of at most 2 in size, a handful of roundings each.
    np.testing.assert_allclose(FUNCTIONS[f"{name}_grad"](z), right, rtol=0, atol=16 * 2**-53)


def test_relu_derivative_is_zero_below_zero_and_one_above() -> None:
    np.testing.assert_array_equal(ffn.relu_grad([-3.0, -1e-300, 1e-300, 3.0]), [0, 0, 1, 1])


@pytest.mark.parametrize("zero", [0, 0.0, -0.0, np.float32(0)])
def test_relu_derivative_at_zero_is_zero_by_convention(zero: float) -> None:
    assert ffn.relu_grad(zero) == published()["ex1.relu_grad_convention_at_0"].value


@pytest.mark.parametrize("ident", PUBLISHED)
def test_published_activation_value_is_reproduced(ident: str) -> None:
    name, z = PUBLISHED[ident]
    assert FUNCTIONS[name](z) == pytest.approx(published()[ident].value, rel=1e-12, abs=0)


def test_gelu_of_minus_ten_is_a_small_number_and_not_zero() -> None:
    assert f"{ffn.gelu(-10):.2e}" == "-7.62e-23"


def test_tanh_derivative_times_the_input_is_the_published_slope() -> None:
    assert 2 * ffn.tanh_grad(0) == published()["mech.tanh_dh_dw"].value


def test_tanh_derivative_where_tanh_is_0_99_gives_the_published_saturated_slope() -> None:
    assert 2 * ffn.tanh_grad(math.atanh(0.99)) == pytest.approx(published()["mech.tanh_dh_dw_saturated"].value)


@pytest.mark.parametrize("side", [-1, 1])
def test_tanh_form_of_gelu_differs_most_near_2_70_by_4_73e_4(side: int) -> None:
    z = side * np.arange(0, 6, 1e-3)
    difference = np.abs(ffn.gelu_tanh(z) - ffn.gelu(z))
    assert f"{difference.max():.2e}" == "4.73e-04"
    assert round(abs(float(z[difference.argmax()])), 2) == 2.70


@pytest.mark.parametrize(
    ("name", "place", "least"), [("gelu", "-0.7518", "-0.16997"), ("silu", "-1.2785", "-0.27846")]
)
def test_minimum_is_where_and_as_low_as_analysis_says(name: str, place: str, least: str) -> None:
    z = np.arange(-3, 1, 2e-5)
    values = FUNCTIONS[name](z)
    assert f"{z[values.argmin()]:.4f}" == place
    assert f"{values.min():.5f}" == least


@pytest.mark.parametrize(("name", "place"), [("gelu", -0.7518), ("silu", -1.2785)])
def test_derivative_changes_sign_at_the_minimum(name: str, place: float) -> None:
    below, above = FUNCTIONS[f"{name}_grad"](np.array([place - 1e-4, place + 1e-4]))
    assert below < 0 < above


@every_float
@every_function
def test_extreme_finite_numbers_raise_no_floating_point_error(function: Function, dtype: DTypeLike) -> None:
    with np.errstate(all="raise"):
        result = function(extremes(dtype))
    assert np.all(np.isfinite(result))


@every_function
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_no_finite_float64_raises_a_floating_point_error(function: Function, values: list[float]) -> None:
    with np.errstate(all="raise"):
        assert np.all(np.isfinite(function(np.array(values))))


@every_function
@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1, max_size=20))
def test_no_finite_float32_raises_a_floating_point_error(function: Function, values: list[float]) -> None:
    with np.errstate(all="raise"):
        assert np.all(np.isfinite(function(np.array(values, dtype=np.float32))))


@every_float
@pytest.mark.parametrize("name", NAMES)
def test_both_infinities_give_the_limits(name: str, dtype: DTypeLike) -> None:
    ends = np.array([-np.inf, np.inf], dtype=dtype)
    low, low_slope, high, high_slope = LIMITS[name]
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(FUNCTIONS[name](ends), [low, high])
        np.testing.assert_array_equal(FUNCTIONS[f"{name}_grad"](ends), [low_slope, high_slope])


@every_float
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name != "identity_grad"])
def test_nan_gives_nan_and_leaves_its_neighbours_alone(name: str, dtype: DTypeLike) -> None:
    with np.errstate(all="raise"):
        result = FUNCTIONS[name](np.array([-1, np.nan, 2], dtype=dtype))
        alone = FUNCTIONS[name](np.array([-1, 2], dtype=dtype))
    np.testing.assert_array_equal(np.isnan(result), [False, True, False])
    np.testing.assert_array_equal(result[[0, 2]], alone)


def test_slope_of_the_identity_is_one_everywhere() -> None:
    np.testing.assert_array_equal(ffn.identity_grad([-np.inf, -3.0, 0.0, 3.0, np.inf]), [1] * 5)


@every_function
def test_float32_stays_float32(function: Function) -> None:
    assert function(np.array([-1, 0, 2], dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize(
    "values",
    [
        [-1, 0, 2],
        (-1.0, 0.0, 2.0),
        np.array([-1, 0, 2]),
        np.array([-1, 0, 2], np.float16),
        np.array([-1, 0, 2], "i1"),
    ],
    ids=["list", "tuple", "int64", "float16", "int8"],
)
@every_function
def test_everything_else_becomes_float64(function: Function, values: Any) -> None:
    result = function(values)
    assert result.dtype == np.float64
    np.testing.assert_array_equal(result, function(np.array([-1.0, 0.0, 2.0])))


@pytest.mark.parametrize(
    ("scalar", "dtype"),
    [(2, np.float64), (2.0, np.float64), (np.float32(2), np.float32), (np.array(2.0), np.float64)],
)
@every_function
def test_scalar_gives_a_scalar(function: Function, scalar: Any, dtype: DTypeLike) -> None:
    result = function(scalar)
    assert np.shape(result) == ()
    assert result.dtype == dtype
    assert result == pytest.approx(function(np.array([2.0]))[0], rel=1e-6)


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0, 5), (2, 3, 4), (3, BLOCK // 2)])
@every_function
def test_shape_is_kept(function: Function, shape: tuple[int, ...]) -> None:
    assert function(np.zeros(shape)).shape == shape


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[::2, ::-3], np.asfortranarray],
    ids=["transposed", "strided", "column-major"],
)
@every_function
def test_array_of_any_memory_layout_gives_the_same_numbers(
    function: Function, view: Callable[[Array], Array], rng: np.random.Generator
) -> None:
    laid_out = view(rng.normal(size=(40, 90)))
    np.testing.assert_array_equal(function(laid_out), function(np.ascontiguousarray(laid_out)))


@every_float
@every_function
def test_array_larger_than_one_block_equals_its_pieces(
    function: Function, dtype: DTypeLike, rng: np.random.Generator
) -> None:
    z = (4 * rng.normal(size=2 * BLOCK + 17)).astype(dtype)
    cuts = [1000, BLOCK - 1, BLOCK + 1, 2 * BLOCK, 2 * BLOCK + 16]
    pieces = np.concatenate([function(piece) for piece in np.split(z, cuts)])
    # An element's place in a vector register may change its last digit, nothing more.
    np.testing.assert_allclose(function(z), pieces, rtol=4 * float(np.finfo(np.dtype(dtype)).eps), atol=0)


@every_function
def test_input_is_never_written_to_nor_given_back(function: Function) -> None:
    z = np.array([-2.0, 0.0, 3.0])
    z.flags.writeable = False
    result = function(z)
    assert not np.shares_memory(result, z)
    assert result.flags.writeable


@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu", "relu"])
@given(z=st.floats(-1e6, 1e6))
def test_difference_of_mirrored_values_is_the_argument(name: str, z: float) -> None:
    # z s(z) - (-z) s(-z) = z (s(z) + s(-z)) = z, for each gate s that is a distribution function.
    function = FUNCTIONS[name]
    assert function(z) - function(-z) == pytest.approx(z, rel=1e-12)


@pytest.mark.parametrize(("width", "tolerance"), [("64", 1e-14), ("32", 4e-6)])
@pytest.mark.parametrize("kind", ["values", "derivatives"])
@pytest.mark.parametrize("name", NAMES)
def test_activation_agrees_with_pytorch(
    name: str, kind: str, width: str, tolerance: float, torch_vectors: Mapping[str, Array]
) -> None:
    z = torch_vectors[f"activation_z_{width}"]
    theirs = torch_vectors[f"activation_{kind}_{width}"][list(torch_vectors["activation_names"]).index(name)]
    ours = FUNCTIONS[name if kind == "values" else f"{name}_grad"](z)
    assert ours.dtype == theirs.dtype
    # |z| is at most 6, and PyTorch's own tails are only good to a few units of the last place of 6.
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["gelu", "silu", "sigmoid", "tanh"])
def test_float32_keeps_five_digits_from_minus_12_to_12(name: str) -> None:
    z = np.linspace(-12, 12, 601, dtype=np.float32)
    assert_relative(FUNCTIONS[name](z), [EXACT[name](mpf(float(v))) for v in z], 1e-5)


def test_float32_tanh_form_of_gelu_is_as_accurate_as_its_exponent_allows() -> None:
    z = np.linspace(-7, 7, 401, dtype=np.float32)
    for v, ours in zip(z, ffn.gelu_tanh(z), strict=True):
        exponent = 2 * mp.sqrt(2 / mp.pi) * (mpf(float(v)) + mpf("0.044715") * mpf(float(v)) ** 3)
        right = EXACT["gelu_tanh"](mpf(float(v)))
        # The exponent is the result of six roundings of half a unit each, and exp magnifies them by its size.
        bound = (6 * abs(exponent) + 10) * 2**-24
        assert abs(mpf(float(ours)) - right) <= bound * abs(right)


@pytest.mark.parametrize("name", NAMES)
def test_activation_is_found_by_its_name(name: str) -> None:
    activation = find_activation(name)
    assert (activation.name, activation.function) == (name, getattr(ffn, name))
    assert activation.derivative is getattr(ffn, f"{name}_grad")


def test_activation_of_ones_own_is_given_back_as_it_is() -> None:
    own = ffn.Activation("square", np.square, lambda z: 2 * z)
    assert find_activation(own) is own


@pytest.mark.parametrize("unknown", ["swish", "", "GELU", None, 3, ["relu"]])
def test_unknown_activation_is_refused_with_the_known_names(unknown: Any) -> None:
    with pytest.raises(UnknownActivationError) as caught:
        find_activation(unknown)
    message = str(caught.value)
    assert repr(unknown) in message
    assert all(name in message for name in NAMES)


@pytest.mark.parametrize("value", ["a", ["1", "b"], {}, object()], ids=["text", "texts", "dict", "object"])
@every_function
def test_what_is_no_number_is_refused(function: Function, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        function(value)


@every_function
def test_complex_numbers_are_refused(function: Function) -> None:
    with pytest.raises(TypeError):
        function(np.array([1 + 2j]))
