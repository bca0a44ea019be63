"""Right answers to the unit `activations`, written differently."""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import ffn
from ffn.activations import gelu, gelu_tanh, relu, sigmoid, silu
from ffn.normal import normal_cdf
from tools.audit.alternatives.styles import elementwise_styles

__all__ = ["ALTERNATIVES", "SURVIVORS"]

Function = Callable[..., Any]

_ROOT = math.sqrt(2 / math.pi)
_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])
_DENSITY_AT_0 = 1 / math.sqrt(2 * math.pi)


def _every(rule: Function) -> Function:
    """An elementwise function from a rule on arrays of floats."""
    return lambda z: rule(np.asarray(z, dtype=float))


def _kept(rule: Function) -> Function:
    """The same, computed in float32 where the argument is float32."""

    def function(z: Any) -> Any:
        z = np.asarray(z)
        return rule(z if z.dtype == np.float32 else z.astype(float))

    return function


# ReLU


def _relu_on_a_copy(z: Any) -> Any:
    z = np.array(z, dtype=float)
    z[z < 0] = 0
    return z


def _relu_filled_in(z: Any) -> Any:
    z = np.asarray(z, dtype=float)
    out = np.zeros(z.shape)
    out[z > 0] = z[z > 0]
    return out


def _relu_copied_where(z: Any) -> Any:
    z = np.asarray(z, dtype=float)
    out = np.zeros_like(z)
    np.copyto(out, z, where=z > 0)
    return out


# Its slopes


def _slopes_by_loop(z: float, step: float = 1e-6) -> Any:
    slopes = []
    for signed in (-step, step):
        slopes.append((relu(z + signed) - relu(z)) / signed)
    return slopes


def _slopes_by_max(z: float, step: float = 1e-6) -> Any:
    return (max(z, 0.0) - max(z - step, 0.0)) / step, (max(z + step, 0.0) - max(z, 0.0)) / step


def _slopes_by_sides(z: float, step: float = 1e-6) -> Any:
    def share_above_zero(low: float) -> float:
        return 0.0 if low + step <= 0 else 1.0 if low >= 0 else (low + step) / step

    return share_above_zero(z - step), share_above_zero(z)


def _slopes_in_float32(z: float, step: float = 1e-6) -> Any:
    here, by = np.float32(z), np.float32(step)
    zero = np.float32(0)
    at = max(here, zero)
    return (at - max(here - by, zero)) / by, (max(here + by, zero) - at) / by


def _slopes_as_fractions(z: float, step: float = 1e-6) -> Any:
    place, by = Fraction(z), Fraction(step)
    at = [max(place + shift, Fraction(0)) for shift in (-by, Fraction(0), by)]
    return float((at[1] - at[0]) / by), float((at[2] - at[1]) / by)


def _slopes_as_named_steps(z: float, step: float = 1e-6) -> Any:
    before, here, after = (float(relu(place)) for place in (z - step, z, z + step))
    rise_left, rise_right = here - before, after - here
    return rise_left / step, rise_right / step


# The sigmoid


def _sigmoid_by_masks(z: Any) -> Any:
    z = np.asarray(z, dtype=float)
    out = np.empty(z.shape)
    left = z < 0
    out[left] = np.exp(z[left]) / (1 + np.exp(z[left]))
    out[~left] = 1 / (1 + np.exp(-z[~left]))
    return out


def _sigmoid_number(v: float) -> float:
    return 1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v))


def _sigmoid_with_tanh_on_the_right(z: Any) -> Any:
    small = np.exp(-np.abs(z))
    return np.where(z < 0, small / (1 + small), 0.5 + 0.5 * np.tanh(np.maximum(z, 0) / 2))


# The normal probability


def _normal_number(v: float) -> float:
    return math.erfc(-v / math.sqrt(2)) / 2


def _normal_by_fraction(v: float) -> float:
    """A continued fraction in both tails, a power series between them."""
    if abs(v) > 3:
        size, below = abs(v), 0.0
        for depth in range(300, 0, -1):
            below = depth / (size + below)
        tail = _DENSITY_AT_0 * math.exp(-v * v / 2) / (size + below) if size < 1e3 else 0.0
        return tail if v < 0 else 1 - tail
    term = total = v
    for odd in range(3, 120, 2):
        term *= v * v / odd
        total += term
    return 0.5 + _DENSITY_AT_0 * math.exp(-v * v / 2) * total


def _tail(z: Any) -> Any:
    """Probability beyond |z| on one side."""
    return 0.5 * _erfc(np.abs(z) * math.sqrt(0.5))


# The largest gap


def _gap_by_loop(z: Any) -> Any:
    best = (0.0, 0.0)
    for v in z:
        gap = float(abs(gelu(v) - gelu_tanh(v)))
        if gap > best[0]:
            best = (gap, abs(float(v)))
    return best


def _gap_by_sorting(z: Any) -> Any:
    gap = np.abs(gelu(z) - gelu_tanh(z))
    last = np.argsort(gap)[-1]
    return [gap[last], abs(z)[last]]


def _gap_by_mask(z: Any) -> Any:
    gap = np.abs(gelu(z) - gelu_tanh(z))
    return gap.max(), np.abs(z)[gap == gap.max()][0]


def _gap_by_dictionary(z: Any) -> Any:
    places = {float(abs(gelu(v) - gelu_tanh(v))): abs(v) for v in z}
    return max(places), places[max(places)]


def _gap_by_both_signs(z: Any) -> Any:
    difference = gelu(z) - gelu_tanh(z)
    low, high = difference.argmin(), difference.argmax()
    worst = low if -difference[low] > difference[high] else high
    return abs(difference[worst]), abs(z[worst])


def _gap_by_squares(z: Any) -> Any:
    difference = np.subtract(gelu(z), gelu_tanh(z))
    worst = int(np.argmax(difference**2))
    return float(np.sqrt(difference[worst] ** 2)), float(np.hypot(z[worst], 0))


def _gap_of_sizes(z: Any) -> Any:
    size = np.abs(z)
    tail = gelu(-size) - gelu_tanh(-size)
    worst = np.abs(tail).argmax()
    return np.abs(tail)[worst], size[worst]


def _gap_through_numbers(z: Any) -> Any:
    gap = [abs(v * _normal_number(v) - _gelu_tanh_number(v)) for v in map(float, z)]
    return max(gap), abs(z[gap.index(max(gap))])


def _gap_by_table(z: Any) -> Any:
    table = np.column_stack([np.abs(gelu(z) - gelu_tanh(z)), np.abs(z)])
    return table[table[:, 0].argmax()]


def _gelu_tanh_number(v: float) -> float:
    return v / 2 * (1 + math.tanh(_ROOT * (v + 0.044715 * v**3)))


# tanh


def _tanh_by_expm1(x: float, w: float, b: float) -> Any:
    u = w * x + b
    lack = math.expm1(-2 * abs(u))
    return math.copysign(lack / (lack + 2), u)


def _tanh_by_two_sides(x: float, w: float, b: float) -> Any:
    u = w * x + b
    small = math.exp(-2 * abs(u))
    size = (1 - small) / (1 + small)
    return size if u >= 0 else -size


def _slope_by_exponential(x: float, w: float, b: float) -> Any:
    small = math.exp(-2 * abs(w * x + b))
    return 4 * small / (1 + small) ** 2 * x


def _slope_by_complex_step(x: float, w: float, b: float) -> Any:
    return np.tanh((w + 1e-30j) * x + b).imag / 1e-30


def _slope_in_named_factors(x: float, w: float, b: float) -> Any:
    a = math.tanh(w * x + b)
    by_pre_activation = 1 - a * a
    by_weight = x
    return by_pre_activation * by_weight


# Slopes of SiLU and GELU


def _silu_grad_number(v: float) -> float:
    gate = _sigmoid_number(v)
    return gate * (1 + v * (1 - gate))


def _silu_grad_by_complex_step(z: Any) -> Any:
    shifted = np.clip(z, -700, 700) + 1e-30j
    return (shifted / (1 + np.exp(-shifted))).imag / 1e-30


def _silu_grad_by_exponential(z: Any) -> Any:
    small = np.exp(-np.abs(z))
    return np.where(z < 0, small, 1) / (1 + small) + z * small / (1 + small) ** 2


def _silu_grad_by_cosh(z: Any) -> Any:
    return sigmoid(z) + z / (2 * np.cosh(np.clip(z, -700, 700) / 2)) ** 2


def _gelu_grad_number(v: float) -> float:
    return _normal_number(v) + v * math.exp(-v * v / 2) / math.sqrt(2 * math.pi)


def _gelu_grad_by_symmetry(z: Any) -> Any:
    size = np.abs(z)
    right = 1 - _tail(z) + size * ffn.normal_pdf(size)
    return np.where(z < 0, 1 - right, right)


# How far left the tails reach


def _named() -> tuple[tuple[str, Function], ...]:
    return ("relu", relu), ("gelu", gelu), ("silu", silu)


def _reach_by_loop(tolerance: float, z: Any) -> Any:
    reach = {}
    for name, function in _named():
        reach[name] = 0.0
        for v in z:
            if abs(function(v)) >= tolerance and v < reach[name]:
                reach[name] = float(v)
    return reach


def _reach_by_where(tolerance: float, z: Any) -> Any:
    return {name: np.where(np.abs(f(z)) >= tolerance, z, 0).min() for name, f in _named()}


def _reach_by_sorting(tolerance: float, z: Any) -> Any:
    z = np.sort(z)
    return {n: next((float(v) for v, y in zip(z, f(z), strict=True) if -y >= tolerance), 0.0) for n, f in _named()}


def _reach_by_list(tolerance: float, z: Any) -> Any:
    reach = {}
    for name, function in _named():
        counting = [v for v in z if abs(function(v)) >= tolerance]
        reach[name] = min(counting) if counting else 0
    return reach


def _reach_by_default(tolerance: float, z: Any) -> Any:
    return {n: min((v for v in z.tolist() if abs(f(v)) >= tolerance), default=0.0) for n, f in _named()}


def _reach_by_product(tolerance: float, z: Any) -> Any:
    return {name: np.min(z * (np.abs(f(z)) >= tolerance)) for name, f in _named()}


def _reach_with_zero_added(tolerance: float, z: Any) -> Any:
    return {name: np.append(z[np.abs(f(z)) >= tolerance], 0.0).min() for name, f in _named()}


def _reach_if_any(tolerance: float, z: Any) -> Any:
    relu_counts, gelu_counts, silu_counts = (np.abs(f(z)) >= tolerance for f in (relu, gelu, silu))
    return {
        "silu": z[silu_counts].min() if silu_counts.any() else 0,
        "gelu": z[gelu_counts].min() if gelu_counts.any() else 0,
        "relu": z[relu_counts].min() if relu_counts.any() else 0,
    }


def _reach_with_relu_known(tolerance: float, z: Any) -> Any:
    outputs = np.stack([gelu(z), silu(z)])
    gelu_reach, silu_reach = np.where(outputs <= -tolerance, z, 0.0).min(axis=1)
    return {"relu": 0.0, "gelu": gelu_reach, "silu": silu_reach}


def _reach_by_try(tolerance: float, z: Any) -> Any:
    reach = dict.fromkeys(("relu", "gelu", "silu"), 0)
    for name, function in _named():
        try:
            reach[name] = np.amin(np.compress(np.absolute(function(z)) >= tolerance, z))
        except ValueError:
            reach[name] = 0
    return reach


def _reach_by_masked_array(tolerance: float, z: Any) -> Any:
    return {
        name: np.ma.masked_where(np.abs(f(z)) < tolerance, z).filled(0.0).min(initial=0.0) for name, f in _named()
    }


ALTERNATIVES: dict[str, list[Function]] = {
    "relu": [
        *elementwise_styles(lambda v: max(0.0, v)),
        _every(lambda z: np.where(z > 0, z, 0)),
        _every(lambda z: np.clip(z, 0, None)),
        _every(lambda z: np.piecewise(z, [z > 0], [lambda v: v, 0.0])),
        _every(lambda z: np.max([z, np.zeros(z.shape)], axis=0)),
        _relu_on_a_copy,
        _relu_filled_in,
        _relu_copied_where,
        lambda z: np.maximum(z, 0),
        lambda z: -np.minimum(0.0, np.negative(z)),
        ffn.relu,
    ],
    "relu_grad": [
        *elementwise_styles(lambda v: 1.0 if v > 0 else 0.0),
        _every(lambda z: (z > 0).astype(int)),
        _every(lambda z: (z > 0) * 1.0),
        _every(lambda z: 1 - (z <= 0)),
        _every(lambda z: np.maximum(np.sign(z), 0)),
        _every(lambda z: np.select([z < 0, z > 0], [0.0, 1.0], default=0.0)),
        _kept(lambda z: (z > 0).astype(np.float32)),
        lambda z: np.heaviside(z, 0),
        ffn.relu_grad,
    ],
    "one_sided_slopes": [
        _slopes_by_loop,
        _slopes_by_max,
        _slopes_by_sides,
        _slopes_in_float32,
        _slopes_as_fractions,
        _slopes_as_named_steps,
        lambda z, step=1e-6: np.diff(relu([z - step, z, z + step])) / step,
        lambda z, step=1e-6: tuple(np.clip([z / step, z / step + 1], 0, 1)),
        lambda z, step=1e-6: np.array([[-1, 1, 0], [0, -1, 1]]) @ relu([z - step, z, z + step]) / step,
        lambda z, step=1e-6: np.convolve(relu(np.array([z - step, z, z + step])), [1, -1], "valid") / step,
        lambda z, step=1e-6: tuple((relu(v + step) - relu(v)) / step for v in (z - step, z)),
    ],
    "sigmoid": [
        *elementwise_styles(_sigmoid_number),
        _every(lambda z: np.exp(-np.logaddexp(0, -z))),
        _every(lambda z: np.exp(np.minimum(z, 0)) / (1 + np.exp(-np.abs(z)))),
        _every(lambda z: np.exp(np.minimum(z, 0) - np.log1p(np.exp(-np.abs(z))))),
        _every(_sigmoid_with_tanh_on_the_right),
        _every(lambda z: np.where(z < 0, np.exp(-np.abs(z)), 1) / (2 + np.expm1(-np.abs(z)))),
        _kept(lambda z: np.where(z < 0, np.exp(-np.abs(z)), np.float32(1)) / (1 + np.exp(-np.abs(z)))),
        _sigmoid_by_masks,
        ffn.sigmoid,
    ],
    "silu": [
        *elementwise_styles(lambda v: v * _sigmoid_number(v)),
        _every(lambda z: z * np.exp(-np.logaddexp(0, -z))),
        _every(lambda z: np.maximum(z, 0) - np.abs(z) * sigmoid(-np.abs(z))),
        _every(lambda z: np.multiply(sigmoid(z), z)),
        _every(lambda z: np.where(z < 0, z * np.exp(-np.abs(z)), z) / (1 + np.exp(-np.abs(z)))),
        _kept(lambda z: z * sigmoid(z)),
        lambda z: np.array(z) * _sigmoid_by_masks(z),
        ffn.silu,
    ],
    "normal_cdf": [
        *elementwise_styles(_normal_number),
        _every(np.vectorize(_normal_by_fraction, otypes=[float])),
        _every(lambda z: np.where(z < 0, _tail(z), 1 - _tail(z))),
        _every(lambda z: np.where(z < 0, _tail(z), 0.5 + 0.5 * _erf(z / math.sqrt(2)))),
        _every(lambda z: _erfc(z * -math.sqrt(0.5)) / 2),
        _every(lambda z: np.heaviside(z, 0.5) - np.sign(z) * _tail(z)),
        _kept(lambda z: (_erfc(-z / math.sqrt(2)) / 2).astype(z.dtype)),
        ffn.normal_cdf,
    ],
    "gelu": [
        *elementwise_styles(lambda v: v * _normal_number(v)),
        _every(lambda z: np.maximum(z, 0) - np.abs(z) * _tail(z)),
        _every(lambda z: z * np.where(z < 0, _tail(z), 1 - _tail(z))),
        _every(lambda z: np.multiply(z / 2, _erfc(-z / math.sqrt(2)))),
        _every(lambda z: np.where(z > 0, z, 0) - np.sign(z) * z * _tail(z)),
        _kept(lambda z: z * normal_cdf(z)),
        lambda z: np.array(z) * normal_cdf(z),
        ffn.gelu,
    ],
    "gelu_tanh": [
        *elementwise_styles(_gelu_tanh_number),
        _every(lambda z: z * sigmoid(2 * _ROOT * (z + 0.044715 * z**3))),
        _every(lambda z: 0.5 * z * (1 + np.tanh(_ROOT * z * (1 + 0.044715 * z * z)))),
        _every(lambda z: z / 2 + z / 2 * np.tanh(np.polyval([0.044715 * _ROOT, 0, _ROOT, 0], z))),
        _every(lambda z: z * (1 + np.tanh(np.sqrt(2 / np.pi) * (z + 0.044715 * np.power(z, 3)))) / 2),
        _kept(lambda z: z * (1 + np.tanh(z.dtype.type(_ROOT) * (z + z.dtype.type(0.044715) * z**3))) / 2),
        ffn.gelu_tanh,
    ],
    "largest_gap": [
        _gap_by_loop,
        _gap_by_sorting,
        _gap_by_mask,
        _gap_by_dictionary,
        _gap_by_both_signs,
        _gap_by_squares,
        _gap_of_sizes,
        _gap_through_numbers,
        _gap_by_table,
        lambda z: max(zip(np.abs(gelu(z) - gelu_tanh(z)), np.abs(z), strict=True)),
        lambda z: max((float(abs(gelu(v) - gelu_tanh(v))), float(abs(v))) for v in z),
    ],
    "tanh_neuron": [
        _tanh_by_expm1,
        _tanh_by_two_sides,
        lambda x, w, b: math.tanh(x * w + b),
        lambda x, w, b: 2 * _sigmoid_number(2 * (w * x + b)) - 1,
        lambda x, w, b: np.tanh(np.dot([x, 1], [w, b])),
        lambda x, w, b: np.tanh([w * x + b])[0],
        lambda x, w, b: -math.tanh(-b - x * w),
        lambda x, w, b: np.tanh(np.array([x, 1.0]) @ np.array([w, b])),
        lambda x, w, b: np.tanh(np.asarray(w * x + b)),
        lambda x, w, b: np.tan(1j * (w * x + b)).imag,
        lambda x, w, b: 1 - 2 * _sigmoid_number(-2 * (w * x + b)),
        lambda x, w, b: ffn.tanh(w * x + b),
    ],
    "tanh_neuron_dw": [
        _slope_by_exponential,
        _slope_by_complex_step,
        _slope_in_named_factors,
        lambda x, w, b: x / math.cosh(w * x + b) ** 2,
        lambda x, w, b: x * (1 - np.tanh(w * x + b)) * (1 + np.tanh(w * x + b)),
        lambda x, w, b: ffn.tanh_grad(np.array([w * x + b]))[0] * x,
        lambda x, w, b: x - x * np.tanh(w * x + b) ** 2,
        lambda x, w, b: np.prod([1 - math.tanh(w * x + b) ** 2, x]),
        lambda x, w, b: 4 * x * _sigmoid_number(2 * (w * x + b)) * _sigmoid_number(-2 * (w * x + b)),
        lambda x, w, b: (1 - np.square(np.tanh(np.dot([w, b], [x, 1])))) * x,
        lambda x, w, b: float(x * ffn.tanh_grad(w * x + b)),
    ],
    "silu_grad": [
        *elementwise_styles(_silu_grad_number),
        _every(lambda z: sigmoid(z) + z * sigmoid(z) * sigmoid(-z)),
        _every(lambda z: sigmoid(z) + silu(z) * (1 - sigmoid(z))),
        _every(lambda z: silu(z) + sigmoid(z) * (1 - silu(z))),
        _every(lambda z: sigmoid(z) * (1 + z * sigmoid(-z))),
        _every(_silu_grad_by_complex_step),
        _every(_silu_grad_by_exponential),
        _every(_silu_grad_by_cosh),
        _kept(lambda z: sigmoid(z) + z * ffn.sigmoid_grad(z)),
        ffn.silu_grad,
    ],
    "gelu_grad": [
        *elementwise_styles(_gelu_grad_number),
        _every(lambda z: normal_cdf(z) + z * _DENSITY_AT_0 * np.exp(-0.5 * np.square(z))),
        _every(lambda z: np.where(z < 0, _tail(z), 1 - _tail(z)) + z * ffn.normal_pdf(z)),
        _every(lambda z: normal_cdf(z) + z * np.exp(-(z**2) / 2 - 0.5 * math.log(2 * math.pi))),
        _every(
            lambda z: np.add(
                _erfc(-z / math.sqrt(2)) / 2, z / np.sqrt(2 * np.pi) / np.exp(np.minimum(z * z / 2, 700))
            )
        ),
        _every(_gelu_grad_by_symmetry),
        _kept(lambda z: normal_cdf(z) + z * np.exp(-z * z / 2) * z.dtype.type(_DENSITY_AT_0)),
        ffn.gelu_grad,
    ],
    "tail_reach": [
        _reach_by_loop,
        _reach_by_where,
        _reach_by_sorting,
        _reach_by_list,
        _reach_by_default,
        _reach_by_product,
        _reach_with_zero_added,
        _reach_if_any,
        _reach_with_relu_known,
        _reach_by_try,
        _reach_by_masked_array,
    ],
}

SURVIVORS: dict[str, str] = {}
