import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray

import ffn
from ffn.exceptions import ShapeError, ZeroVarianceError
from ffn.published import published, published_inputs

Array = NDArray[Any]
Norm = Callable[..., Array]

NORMS: dict[str, Norm] = {"layer_norm": ffn.layer_norm, "rms_norm": ffn.rms_norm}
both = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)


@pytest.fixture
def residual() -> Array:
    """Example 3's z: the input of Example 2 plus its output."""
    return np.array(published_inputs("ex2")["x"]) + np.array(published()["ex2.y"].value)


def test_published_normalization_is_reproduced_with_epsilon_zero(residual: Array) -> None:
    np.testing.assert_allclose(residual, published()["ex3.z"].value, rtol=1e-15)
    np.testing.assert_allclose(ffn.layer_norm(residual, epsilon=0), published()["ex3.out"].value, rtol=1e-15)


def test_normalized_vector_has_the_published_mean_and_standard_deviation(residual: Array) -> None:
    out = ffn.layer_norm(residual, epsilon=0)
    assert out.mean() == published()["ex3.out_mean"].value
    assert out.std() == published()["ex3.out_std"].value


def test_default_epsilon_is_added_to_the_variance_inside_the_root(residual: Array) -> None:
    # (5.5 - 2.25) / sqrt(10.5625 + 1e-5) = 0.99999953 by hand.
    expected = 3.25 / math.sqrt(10.5625 + 1e-5)
    assert f"{expected:.8f}" == "0.99999953"
    np.testing.assert_allclose(ffn.layer_norm(residual), [expected, -expected], rtol=1e-15)


def test_layer_norm_divides_the_variance_by_the_number_of_features() -> None:
    # Mean 3, squared deviations 4, 1, 0, 1, 4: their mean is 2, where the unbiased variance would be 2.5.
    np.testing.assert_allclose(ffn.layer_norm([1, 2, 3, 4, 5], epsilon=0) * math.sqrt(2), [-2, -1, 0, 1, 2])


def test_rms_norm_divides_by_the_root_mean_square_and_does_not_centre() -> None:
    # The mean square of 3 and 4 is 12.5.
    np.testing.assert_allclose(ffn.rms_norm([3, 4], epsilon=0) * math.sqrt(12.5), [3, 4])


def test_rms_norm_adds_epsilon_to_the_mean_square_inside_the_root() -> None:
    # Mean square 12.5 and epsilon 3.5 make 16, whose root is 4.
    np.testing.assert_allclose(ffn.rms_norm([3, 4], epsilon=3.5), [0.75, 1])


def test_gain_multiplies_and_bias_is_added_after_normalizing() -> None:
    # [5, 1] normalizes to [1, -1].
    np.testing.assert_allclose(ffn.layer_norm([5, 1], [2, 3], [10, 20], epsilon=0), [12, 17])


def test_rms_gain_multiplies_after_normalizing() -> None:
    # [2, -2] has root mean square 2.
    np.testing.assert_allclose(ffn.rms_norm([2, -2], [5, 7], epsilon=0), [5, -7])


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("layer_norm", lambda v, eps: ffn.layer_norm(v["norm_x"], epsilon=eps)),
        (
            "layer_norm_learned",
            lambda v, eps: ffn.layer_norm(v["norm_x"], v["norm_gain"], v["norm_bias"], epsilon=eps),
        ),
        ("rms_norm", lambda v, eps: ffn.rms_norm(v["norm_x"], epsilon=eps)),
        ("rms_norm_learned", lambda v, eps: ffn.rms_norm(v["norm_x"], v["norm_gain"], epsilon=eps)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_normalization_agrees_with_pytorch(
    name: str, run: Callable[[Mapping[str, Array], float], Array], torch_vectors: Mapping[str, Array]
) -> None:
    ours = run(torch_vectors, float(torch_vectors["norm_epsilon"]))
    np.testing.assert_allclose(ours, torch_vectors[name], rtol=1e-13, atol=1e-14)


@both
def test_every_token_is_normalized_by_its_own_features_alone(norm: Norm, rng: np.random.Generator) -> None:
    x = rng.normal(size=(2, 3, 5))
    together = norm(x)
    assert together.shape == x.shape
    for place in np.ndindex(2, 3):
        np.testing.assert_allclose(together[place], norm(x[place]), rtol=1e-14)


@given(st.floats(-100, 100), st.floats(0.1, 100))
def test_layer_norm_ignores_a_shift_and_a_scale_of_all_features(shift: float, scale: float) -> None:
    x = np.array([1.0, 2.0, 4.0, -3.0])
    np.testing.assert_allclose(
        ffn.layer_norm(scale * x + shift, epsilon=0), ffn.layer_norm(x, epsilon=0), rtol=1e-10, atol=1e-10
    )


def test_rms_norm_does_not_ignore_a_shift() -> None:
    assert not np.allclose(ffn.rms_norm([1.0, 2.0]), ffn.rms_norm([2.0, 3.0]), rtol=1e-2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@both
def test_float_type_is_kept(norm: Norm, dtype: DTypeLike) -> None:
    assert norm(np.array([[1, 2, 3]], dtype=dtype), np.ones(3, dtype=dtype)).dtype == dtype


@both
def test_integers_become_float64(norm: Norm) -> None:
    assert norm([1, 2, 3]).dtype == np.float64


@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3)])
@both
def test_batch_without_tokens_stays_empty(norm: Norm, shape: tuple[int, ...]) -> None:
    assert norm(np.zeros(shape)).shape == shape


@both
def test_equal_features_with_the_default_epsilon_divide_nothing_by_zero(norm: Norm) -> None:
    assert np.all(np.isfinite(norm(np.zeros((2, 4)))))


def test_equal_features_normalize_to_zero_with_the_default_epsilon() -> None:
    np.testing.assert_allclose(ffn.layer_norm([0.1, 0.1, 0.1]), [0, 0, 0], atol=1e-13)


@pytest.mark.parametrize("value", [0.0, 2.0, 0.1, 1e-8, 1e8 / 3])
@pytest.mark.parametrize("width", [1, 3, 7])
def test_equal_features_with_epsilon_zero_are_refused(value: float, width: int) -> None:
    # The mean of three times 0.1 is not 0.1 in binary64, so the variance computed there is not 0 either.
    with pytest.raises(ZeroVarianceError, match="layer normalization with epsilon 0 divides by zero"):
        ffn.layer_norm(np.full((2, width), value), epsilon=0)


def test_one_token_of_equal_features_among_others_is_refused() -> None:
    with pytest.raises(ZeroVarianceError):
        ffn.layer_norm([[1.0, 2.0, 4.0], [0.1, 0.1, 0.1]], epsilon=0)


def test_zero_vector_with_epsilon_zero_is_refused_by_rms_norm() -> None:
    with pytest.raises(ZeroVarianceError, match="RMS normalization with epsilon 0 divides by zero"):
        ffn.rms_norm([[1.0, 1.0], [0.0, 0.0]], epsilon=0)


@pytest.mark.parametrize(
    ("run", "name", "shape"),
    [
        (lambda x: ffn.layer_norm(x, gain=np.ones(4)), "gain", (4,)),
        (lambda x: ffn.layer_norm(x, gain=1.0), "gain", ()),
        (lambda x: ffn.layer_norm(x, gain=np.ones((1, 3))), "gain", (1, 3)),
        (lambda x: ffn.layer_norm(x, bias=np.ones(2)), "bias", (2,)),
        (lambda x: ffn.rms_norm(x, np.ones(1)), "gain", (1,)),
    ],
    ids=["gain", "scalar-gain", "matrix-gain", "bias", "rms-gain"],
)
def test_learned_vector_of_the_wrong_shape_is_refused_with_both_shapes(
    run: Callable[[Array], Array], name: str, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ShapeError) as caught:
        run(np.ones((2, 3)))
    assert str(caught.value) == f"{name} has shape {shape} and x has shape (2, 3); expected {name} of shape (3,)."


@pytest.mark.parametrize("x", [5.0, np.zeros((2, 0)), []], ids=["number", "no-features", "empty"])
@both
def test_vector_without_features_is_refused(norm: Norm, x: Any) -> None:
    with pytest.raises(ShapeError, match="expected at least one feature in the last dimension") as caught:
        norm(x)
    assert str(np.shape(x)) in str(caught.value)


@both
def test_input_is_never_written_to(norm: Norm) -> None:
    x = np.array([1.0, 2.0, 4.0])
    x.flags.writeable = False
    norm(x, x)
