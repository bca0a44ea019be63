import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from numpy.typing import DTypeLike, NDArray

import ffn
from ffn.published import published

mp.dps = 60

Array = NDArray[Any]
Function = Callable[[Any], Array]

FUNCTIONS: dict[str, Function] = {"normal_cdf": ffn.normal_cdf, "normal_pdf": ffn.normal_pdf}
both = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
every_float = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def exact_cdf(z: mpf) -> mpf:
    return mp.erfc(-z / mp.sqrt(2)) / 2


def exact_pdf(z: mpf) -> mpf:
    return mp.exp(-(z**2) / 2) / mp.sqrt(2 * mp.pi)


def relative_error(computed: Any, exact: Callable[[mpf], mpf], z: Any) -> float:
    right = exact(mpf(float(z)))
    return float(abs(mpf(float(computed)) - right) / right)


def points(low: float, high: float, count: int) -> Array:
    random = np.random.default_rng(3).uniform(low, high, count)
    return np.concatenate([np.linspace(low, high, count), random, [-1e-300, -0.0, 1e-300]])


def test_cdf_keeps_twelve_digits_from_minus_37_to_37() -> None:
    z = points(-37, 37, 1000)
    assert max(relative_error(ours, exact_cdf, v) for v, ours in zip(z, ffn.normal_cdf(z), strict=True)) <= 1e-12


@given(st.floats(-37, 1e300))
def test_cdf_keeps_twelve_digits_from_minus_37_upward(z: float) -> None:
    assert relative_error(ffn.normal_cdf(z), exact_cdf, z) <= 1e-12


def test_pdf_keeps_twelve_digits_from_minus_37_to_37() -> None:
    z = points(-37, 37, 1000)
    assert max(relative_error(ours, exact_pdf, v) for v, ours in zip(z, ffn.normal_pdf(z), strict=True)) <= 1e-12


def test_cdf_is_half_of_the_complementary_error_function() -> None:
    z = np.linspace(-26, 26, 521)
    right = [math.erfc(-v / math.sqrt(2)) / 2 for v in z]
    np.testing.assert_allclose(ffn.normal_cdf(z), right, rtol=1e-12, atol=0)


def test_pdf_is_the_derivative_of_the_cdf() -> None:
    z = np.linspace(-12, 12, 49)
    right = [float(mp.diff(exact_cdf, mpf(float(v)))) for v in z]
    np.testing.assert_allclose(ffn.normal_pdf(z), right, rtol=1e-12, atol=0)


def test_float32_cdf_keeps_five_digits_from_minus_12_upward() -> None:
    z = points(-12, 12, 1000).astype(np.float32)
    for v, ours in zip(z, ffn.normal_cdf(z), strict=True):
        # Rounding z^2 / 2 by half a unit of 2^-23 changes exp(-z^2 / 2) by z^2 / 2 times that. On top come
        # eleven steps of Horner's rule and the fit itself. At -12 this allows 7e-6, below the documented 1e-5.
        bound = min((float(v) ** 2 / 2 + 40) * 2**-24, 1e-5)
        assert relative_error(ours, exact_cdf, v) <= bound


def test_float32_pdf_keeps_five_digits_from_minus_12_to_12() -> None:
    z = points(-12, 12, 1000).astype(np.float32)
    for v, ours in zip(z, ffn.normal_pdf(z), strict=True):
        assert relative_error(ours, exact_pdf, v) <= (float(v) ** 2 / 2 + 8) * 2**-24


@pytest.mark.parametrize(("ident", "z"), [("ex4.phi_neg", -0.5), ("ex4.phi_pos", 2), ("ex8.phi_neg", -10)])
def test_published_probability_is_reproduced(ident: str, z: float) -> None:
    assert ffn.normal_cdf(z) == pytest.approx(published()[ident].value, rel=1e-12, abs=0)


def test_pdf_at_zero_is_one_over_the_root_of_two_pi() -> None:
    assert ffn.normal_pdf(0) == pytest.approx(0.3989422804014327, rel=1e-15)


@given(st.floats(-1e300, 1e300))
def test_mirrored_probabilities_sum_to_one(z: float) -> None:
    assert ffn.normal_cdf(z) + ffn.normal_cdf(-z) == pytest.approx(1, rel=1e-15)


@given(st.floats(allow_nan=False))
def test_cdf_is_a_probability(z: float) -> None:
    assert 0 <= ffn.normal_cdf(z) <= 1


@given(st.floats(-37, 8), st.floats(1e-3, 10))
def test_cdf_does_not_fall(z: float, step: float) -> None:
    assert ffn.normal_cdf(z) <= ffn.normal_cdf(z + step)


@every_float
def test_infinities_give_the_limits(dtype: DTypeLike) -> None:
    ends = np.array([-np.inf, np.inf], dtype=dtype)
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(ffn.normal_cdf(ends), [0, 1])
        np.testing.assert_array_equal(ffn.normal_pdf(ends), [0, 0])


@both
def test_no_finite_number_raises_a_floating_point_error(function: Function) -> None:
    for dtype in (np.float32, np.float64):
        limits = np.finfo(dtype)
        sizes = [0, limits.smallest_subnormal, limits.tiny, 1, 13, 14, 37, 38.6, 40, 41, 1e19, limits.max]
        with np.errstate(all="raise"):
            result = function(np.array([*sizes, *(-size for size in sizes)], dtype=dtype))
        assert np.all(np.isfinite(result))


@both
def test_nan_gives_nan(function: Function) -> None:
    np.testing.assert_array_equal(np.isnan(function([0.0, np.nan])), [False, True])


@both
def test_float32_stays_float32_and_integers_become_float64(function: Function) -> None:
    assert function(np.zeros(3, dtype=np.float32)).dtype == np.float32
    assert function([0, 1, 2]).dtype == np.float64


@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (2, 0, 3), (2, 40_000)])
@both
def test_shape_is_kept(function: Function, shape: tuple[int, ...]) -> None:
    assert np.shape(function(np.zeros(shape))) == shape


@both
def test_array_larger_than_one_block_equals_its_pieces(function: Function, rng: np.random.Generator) -> None:
    z = 4 * rng.normal(size=70_000)
    pieces = np.concatenate([function(piece) for piece in np.split(z, [11, 32_767, 65_537])])
    np.testing.assert_allclose(function(z), pieces, rtol=1e-15, atol=0)


@both
def test_input_is_never_written_to(function: Function) -> None:
    z = np.array([-2.0, 0.0, 3.0])
    z.flags.writeable = False
    assert not np.shares_memory(function(z), z)
