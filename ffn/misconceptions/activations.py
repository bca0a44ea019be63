"""Wrong ways through the unit `activations`: rectifiers, gates and their tails, slopes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ffn.activations import gelu, gelu_grad, gelu_tanh, relu, relu_grad, sigmoid, silu, silu_grad
from ffn.misconceptions.registry import Misconception, Probe, Step
from ffn.normal import normal_cdf

__all__ = ["STEPS"]

FUNCTIONS = "book/activations/functions"
LIMITS = "book/activations/limits-and-numerics"

_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def _array(z: Any) -> Any:
    return np.asarray(z, dtype=float)


def _elementwise(name: str, *more: float) -> tuple[Probe, ...]:
    """Probes of an elementwise function: both signs with zero as an array, and further numbers one by one."""
    return (Probe(name, (np.array([-2.5, -0.5, 0.0, 0.75, 3.0]),)), *(Probe(name, (z,)) for z in more))


def _every(rule: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """An elementwise function from a rule on arrays of floats."""
    return lambda z: rule(_array(z))


# ReLU and its slopes


def _relu_in_place(z: Any) -> Any:
    kept = _array(z)
    kept[kept < 0] = 0
    return kept


def _relu_of_one_number(z: Any) -> Any:
    return max(0, z)


def one_sided_slopes(z: float, step: float = 1e-6) -> tuple[Any, Any]:
    """Difference quotients of ReLU from the left and from the right at one number."""
    return (relu(z) - relu(z - step)) / step, (relu(z + step) - relu(z)) / step


def _central_twice(z: float, step: float = 1e-6) -> tuple[Any, Any]:
    slope = (relu(z + step) - relu(z - step)) / (2 * step)
    return slope, slope


def _right_first(z: float, step: float = 1e-6) -> tuple[Any, Any]:
    left, right = one_sided_slopes(z, step)
    return right, left


# GELU, its tanh form, and where they differ

_INNER = math.sqrt(2 / math.pi)


def largest_gap(z: Any) -> tuple[Any, Any]:
    """Largest difference between GELU and its tanh form on a grid, and |z| at that entry."""
    z = _array(z)
    gap = np.abs(gelu(z) - gelu_tanh(z))
    return gap[np.argmax(gap)], np.abs(z[np.argmax(gap)])


def _gap_with_position(z: Any) -> tuple[Any, Any]:
    gap = np.abs(gelu(_array(z)) - gelu_tanh(_array(z)))
    return gap.max(), np.argmax(gap)


def _gap_with_sign(z: Any) -> tuple[Any, Any]:
    z = _array(z)
    gap = gelu(z) - gelu_tanh(z)
    return gap[np.argmax(gap)], np.abs(z[np.argmax(gap)])


# One tanh neuron


def tanh_neuron(x: float, w: float, b: float) -> Any:
    """Output of a neuron with one input."""
    return np.tanh(w * x + b)


def tanh_neuron_dw(x: float, w: float, b: float) -> Any:
    """Derivative of that output with respect to the weight."""
    return (1 - np.tanh(w * x + b) ** 2) * x


# How far left the tails reach


def tail_reach(tolerance: float, z: Any) -> dict[str, Any]:
    """Smallest entry of z at which each activation is at least the tolerance in absolute value, or 0."""
    z = _array(z)
    outputs = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}
    return {name: np.min(z[np.abs(y) >= tolerance], initial=0) for name, y in outputs.items()}


def _reach_with_sign(tolerance: float, z: Any) -> dict[str, Any]:
    z = _array(z)
    outputs = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}
    return {name: np.min(z[y >= tolerance], initial=0) for name, y in outputs.items()}


def _reach_of_sorted(tolerance: float, z: Any) -> dict[str, Any]:
    z = _array(z)
    marked = {n: z[np.abs(y) >= tolerance] for n, y in (("relu", relu(z)), ("gelu", gelu(z)), ("silu", silu(z)))}
    return {name: kept[0] if kept.size else 0 for name, kept in marked.items()}


def _reach_of_rightmost(tolerance: float, z: Any) -> Any:
    z = _array(z)
    marked = {n: z[np.abs(y) >= tolerance] for n, y in (("relu", relu(z)), ("gelu", gelu(z)), ("silu", silu(z)))}
    return {name: kept.max() if kept.size else 0 for name, kept in marked.items()}


def _reach_without_empty_case(tolerance: float, z: Any) -> dict[str, Any]:
    z = _array(z)
    outputs = {"relu": relu(z), "gelu": gelu(z), "silu": silu(z)}
    return {name: z[np.abs(y) >= tolerance].min() for name, y in outputs.items()}


_TAIL = np.array([-3.0, -12.0, -0.5, -30.0, -7.0, -1.5])

STEPS = (
    Step(
        name="relu",
        own={"relu": relu},
        probes=_elementwise("relu", -math.inf, math.inf),
        misconceptions=(
            Misconception(
                name="absolute-value",
                wrong={"relu": _every(np.abs)},
                hint="the sign of a negative pre-activation was turned; a rectifier replaces the number by 0.",
                page="book/worked-cells/cell-b#the-idea",
            ),
            Misconception(
                name="changes-its-argument",
                wrong={"relu": _relu_in_place},
                hint="the zeros were written into the caller's own array, and the pre-activations in it are lost.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="times-the-mask",
                wrong={"relu": _every(lambda z: z * (z > 0))},
                hint="z was multiplied by a mask of truth values; at minus infinity that product is undefined.",
                page=f"{LIMITS}#what-goes-wrong",
            ),
            Misconception(
                name="one-number-only",
                wrong={"relu": _relu_of_one_number},
                hint="z was compared as a whole, but an array has no single truth value: each entry has its own.",
                page=f"{FUNCTIONS}#the-idea",
            ),
            Misconception(
                name="leaky",
                wrong={"relu": _every(lambda z: np.where(z > 0, z, 0.01 * z))},
                hint="a small slope was left for negative pre-activations: that is leaky ReLU, not ReLU.",
                page="book/worked-cells/cell-f#the-idea",
            ),
        ),
    ),
    Step(
        name="relu_grad",
        own={"relu_grad": relu_grad, "one_sided_slopes": one_sided_slopes},
        probes=(
            *_elementwise("relu_grad", 0.0),
            Probe("one_sided_slopes", (0.0,)),
            Probe("one_sided_slopes", (0.5, 1.0)),
        ),
        misconceptions=(
            Misconception(
                name="one-at-zero",
                wrong={"relu_grad": _every(lambda z: np.where(z >= 0, 1.0, 0.0))},
                hint="the derivative at the kink was set to 1; the convention here is 0.",
                page="book/worked-cells/cell-c#value-and-slopes-at-zero",
            ),
            Misconception(
                name="half-at-zero",
                wrong={"relu_grad": _every(lambda z: np.heaviside(z, 0.5))},
                hint="the mean of the two one-sided slopes was taken at the kink; the convention here is 0.",
                page="book/worked-cells/cell-c#value-and-slopes-at-zero",
            ),
            Misconception(
                name="truth-values",
                wrong={"relu_grad": _every(lambda z: z > 0)},
                hint="the comparison itself was returned, and truth values are no derivative.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="relu-again",
                wrong={"relu_grad": _every(lambda z: np.maximum(z, 0))},
                hint="the value of ReLU was returned in place of its slope.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="central-difference",
                wrong={"one_sided_slopes": _central_twice},
                hint="the difference steps to both sides of z at once; each one-sided slope keeps to its own side.",
                page="book/worked-cells/cell-c#value-and-slopes-at-zero",
            ),
            Misconception(
                name="right-before-left",
                wrong={"one_sided_slopes": _right_first},
                hint="the slope from the right comes first; the pair is asked for in the order left, right.",
                page="book/worked-cells/cell-c#value-and-slopes-at-zero",
            ),
        ),
        uses=("relu",),
    ),
    Step(
        name="sigmoid",
        own={"sigmoid": sigmoid},
        probes=_elementwise("sigmoid", -1000.0, -720.0, 1000.0, -40.0),
        misconceptions=(
            Misconception(
                name="overflows-on-the-left",
                wrong={"sigmoid": _every(lambda z: 1 / (1 + np.exp(-z)))},
                hint="exp was taken of -z, which overflows far to the left.",
                page=f"{LIMITS}#an-exponential-that-overflows",
            ),
            Misconception(
                name="overflows-on-the-right",
                wrong={"sigmoid": _every(lambda z: np.exp(z) / (1 + np.exp(z)))},
                hint="exp was taken of z, which overflows far to the right.",
                page=f"{LIMITS}#an-exponential-that-overflows",
            ),
            Misconception(
                name="both-forms-computed",
                wrong={
                    "sigmoid": _every(lambda z: np.where(z < 0, np.exp(z) / (1 + np.exp(z)), 1 / (1 + np.exp(-z))))
                },
                hint="both forms were computed for every entry before one was chosen, the overflowing one too.",
                page=f"{LIMITS}#an-exponential-that-overflows",
            ),
            Misconception(
                name="tail-lost-by-tanh",
                wrong={"sigmoid": _every(lambda z: 0.5 * (1 + np.tanh(z / 2)))},
                hint="the sigmoid was written with tanh; one plus a number near -1 loses every digit of the left tail.",
                page=f"{LIMITS}#digits-lost-in-a-sum",
            ),
            Misconception(
                name="clipped",
                wrong={"sigmoid": _every(lambda z: 1 / (1 + np.exp(-np.clip(z, -500, 500))))},
                hint="z was cut off at a bound, which avoids the overflow and makes the far left wrong.",
                page=f"{LIMITS}#an-exponential-that-overflows",
            ),
            Misconception(
                name="tanh-for-sigmoid",
                wrong={"sigmoid": _every(np.tanh)},
                hint="tanh was taken for the sigmoid: it runs from -1 to 1, a gate runs from 0 to 1.",
                page=f"{FUNCTIONS}#the-idea",
            ),
            Misconception(
                name="mirrored",
                wrong={"sigmoid": _every(lambda z: sigmoid(-z))},
                hint="the sign in the exponent is the wrong way round, so the gate closes where it should open.",
                page=f"{LIMITS}#the-idea",
            ),
        ),
    ),
    Step(
        name="silu",
        own={"silu": silu},
        probes=_elementwise("silu", -800.0, -40.0),
        misconceptions=(
            Misconception(
                name="tanh-for-the-gate",
                wrong={"silu": _every(lambda z: z * np.tanh(z))},
                hint="z was multiplied by tanh; the gate of SiLU is the sigmoid.",
                page="book/worked-cells/cell-f#the-negative-input",
            ),
            Misconception(
                name="gate-alone",
                wrong={"silu": _every(sigmoid)},
                hint="the gate alone was returned; SiLU is z times its gate.",
                page="book/worked-cells/cell-f#the-idea",
            ),
            Misconception(
                name="negatives-cut-off",
                wrong={"silu": _every(lambda z: np.maximum(z, 0) * sigmoid(z))},
                hint="negative pre-activations were cut off before the gate; SiLU lets a little of them through.",
                page="book/worked-cells/cell-f#the-idea",
            ),
            Misconception(
                name="gate-mirrored",
                wrong={"silu": _every(lambda z: z * sigmoid(-z))},
                hint="the gate is open on the wrong side: it was computed from -z.",
                page="book/worked-cells/cell-f#the-negative-input",
            ),
        ),
        uses=("sigmoid",),
    ),
    Step(
        name="normal_cdf",
        own={"normal_cdf": normal_cdf},
        probes=_elementwise("normal_cdf", -10.0, -6.0),
        misconceptions=(
            Misconception(
                name="one-plus-erf",
                wrong={"normal_cdf": _every(lambda z: 0.5 * (1 + _erf(z / math.sqrt(2))))},
                hint="the sum 1 + erf was taken in the left tail, where erf is close to -1 and all digits cancel.",
                page=f"{LIMITS}#digits-lost-in-a-sum",
            ),
            Misconception(
                name="root-forgotten",
                wrong={"normal_cdf": _every(lambda z: 0.5 * _erfc(-z))},
                hint="z was not divided by the root of 2 before the error function.",
                page=f"{LIMITS}#digits-lost-in-a-sum",
            ),
            Misconception(
                name="not-halved",
                wrong={"normal_cdf": _every(lambda z: _erfc(-z / math.sqrt(2)))},
                hint="the half in front is missing: this probability reaches 2.",
                page=f"{LIMITS}#digits-lost-in-a-sum",
            ),
            Misconception(
                name="upper-tail",
                wrong={"normal_cdf": _every(lambda z: 0.5 * _erfc(z / math.sqrt(2)))},
                hint="this is the probability above z; the gate is the probability below it.",
                page="book/worked-cells/cell-j#the-negative-side",
            ),
        ),
    ),
    Step(
        name="gelu",
        own={"gelu": gelu},
        probes=_elementwise("gelu", -10.0, -6.0),
        misconceptions=(
            Misconception(
                name="tanh-form",
                wrong={"gelu": _every(lambda z: z * (1 + np.tanh(_INNER * (z + 0.044715 * z**3))) / 2)},
                hint="the tanh form was used; this step asks for the exact form.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="sigmoid-form",
                wrong={"gelu": _every(lambda z: z * sigmoid(1.702 * z))},
                hint="the gate is a sigmoid of 1.702 z, a rough stand-in for the normal probability.",
                page=f"{FUNCTIONS}#the-idea",
            ),
            Misconception(
                name="one-plus-erf",
                wrong={"gelu": _every(lambda z: z * 0.5 * (1 + _erf(z / math.sqrt(2))))},
                hint="the gate was computed with 1 + erf, which cancels to 0 in the left tail.",
                page="book/worked-cells/cell-j#what-goes-wrong",
            ),
            Misconception(
                name="gate-alone",
                wrong={"gelu": _every(normal_cdf)},
                hint="the gate alone was returned; GELU is z times its gate.",
                page="book/worked-cells/cell-f#the-idea",
            ),
        ),
        uses=("normal_cdf", "sigmoid"),
    ),
    Step(
        name="gelu_tanh",
        own={"gelu_tanh": gelu_tanh, "largest_gap": largest_gap},
        probes=(
            *_elementwise("gelu_tanh"),
            Probe("largest_gap", (np.array([-1.0, 2.5, -3.0, 0.25]),)),
            Probe("largest_gap", (np.array([0.5, -2.0, 1.0]),)),
            Probe("largest_gap", (np.array([4.5, 0.5]),)),
            Probe("largest_gap", (np.array([2.0, -0.7, 4.0]),)),
        ),
        misconceptions=(
            Misconception(
                name="square-for-cube",
                wrong={"gelu_tanh": _every(lambda z: z * (1 + np.tanh(_INNER * (z + 0.044715 * z**2))) / 2)},
                hint="the correction inside tanh was squared; it is a cube, which keeps the sign of z.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="root-not-taken",
                wrong={"gelu_tanh": _every(lambda z: z * (1 + np.tanh(2 / math.pi * (z + 0.044715 * z**3))) / 2)},
                hint="the factor in front of the bracket is the root of 2 / pi; the root was not taken.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="cube-outside-the-bracket",
                wrong={"gelu_tanh": _every(lambda z: z * (1 + np.tanh(_INNER * z + 0.044715 * z**3)) / 2)},
                hint="the cubic term stands outside the bracket; the root of 2 / pi multiplies it too.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="not-halved",
                wrong={"gelu_tanh": _every(lambda z: z * (1 + np.tanh(_INNER * (z + 0.044715 * z**3))))},
                hint="the half in front of the bracket is missing, so a wide open gate passes 2 z.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="exact-form",
                wrong={"gelu_tanh": _every(gelu)},
                hint="this is the exact form again; here the tanh form is asked for.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="position-for-place",
                wrong={"largest_gap": _gap_with_position},
                hint="the index of the worst entry was returned; asked for is |z| at that entry.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
            Misconception(
                name="sign-kept",
                wrong={"largest_gap": _gap_with_sign},
                hint="the differences kept their sign, so a large negative one was passed over.",
                page=f"{LIMITS}#the-tanh-form-of-gelu",
            ),
        ),
        uses=("gelu", "sigmoid"),
    ),
    Step(
        name="tanh_neuron",
        own={"tanh_neuron": tanh_neuron, "tanh_neuron_dw": tanh_neuron_dw},
        probes=tuple(
            Probe(name, point)
            for name in ("tanh_neuron", "tanh_neuron_dw")
            for point in ((2.0, 0.0, 0.0), (2.0, 1.3, 0.1), (-0.5, 0.8, 0.4))
        ),
        misconceptions=(
            Misconception(
                name="by-the-input",
                wrong={"tanh_neuron_dw": lambda x, w, b: (1 - np.tanh(w * x + b) ** 2) * w},
                hint="the derivative was taken with respect to the input x; asked for is the weight w.",
                page="book/learning/tanh-derivative#three-slopes-of-one-unit",
            ),
            Misconception(
                name="by-the-bias",
                wrong={"tanh_neuron_dw": lambda x, w, b: 1 - np.tanh(w * x + b) ** 2},
                hint="the last factor of the chain rule is missing, so this is the derivative by the bias.",
                page="book/learning/tanh-derivative#three-slopes-of-one-unit",
            ),
            Misconception(
                name="at-the-wrong-point",
                wrong={"tanh_neuron_dw": lambda x, w, b: (1 - (w * x + b) ** 2) * x},
                hint="the pre-activation was put into 1 - a^2; the letter a stands for the output of the neuron.",
                page="book/activations/saturation#what-goes-wrong",
            ),
            Misconception(
                name="square-forgotten",
                wrong={"tanh_neuron_dw": lambda x, w, b: (1 - np.tanh(w * x + b)) * x},
                hint="the output was not squared in the derivative of tanh.",
                page="book/activations/saturation#the-idea",
            ),
            Misconception(
                name="bias-forgotten",
                wrong={"tanh_neuron": lambda x, w, b: np.tanh(w * x)},
                hint="the bias was left out of the pre-activation.",
                page="book/worked-cells/cell-a#the-idea",
            ),
        ),
    ),
    Step(
        name="silu_grad",
        own={"silu_grad": silu_grad},
        probes=_elementwise("silu_grad", -5.0),
        misconceptions=(
            Misconception(
                name="slope-of-the-gate",
                wrong={"silu_grad": _every(lambda z: sigmoid(z) * (1 - sigmoid(z)))},
                hint="only the gate was differentiated; a product has two terms.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="gate-held-fixed",
                wrong={"silu_grad": _every(sigmoid)},
                hint="the gate was held fixed: the term from the change of the gate is missing.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="second-term-alone",
                wrong={"silu_grad": _every(lambda z: z * sigmoid(z) * (1 - sigmoid(z)))},
                hint="only the term from the change of the gate is there; what the gate lets through is missing.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
        ),
        uses=("sigmoid", "silu"),
    ),
    Step(
        name="gelu_grad",
        own={"gelu_grad": gelu_grad},
        probes=_elementwise("gelu_grad", -5.0),
        misconceptions=(
            Misconception(
                name="gate-held-fixed",
                wrong={"gelu_grad": _every(normal_cdf)},
                hint="the gate was held fixed: the term with the density is missing.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="density-not-scaled",
                wrong={"gelu_grad": _every(lambda z: normal_cdf(z) + z * np.exp(-z * z / 2))},
                hint="the density was not divided by the root of 2 pi.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="density-alone",
                wrong={"gelu_grad": _every(lambda z: np.exp(-z * z / 2) / math.sqrt(2 * math.pi))},
                hint="this is the slope of the gate alone; a product has two terms.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
            Misconception(
                name="slope-of-silu",
                wrong={"gelu_grad": _every(silu_grad)},
                hint="this is the slope of SiLU; GELU has the normal probability as its gate.",
                page=f"{FUNCTIONS}#the-calculation",
            ),
        ),
        uses=("normal_cdf", "gelu", "silu_grad", "sigmoid"),
    ),
    Step(
        name="tail_reach",
        own={"tail_reach": tail_reach},
        probes=(Probe("tail_reach", (1e-6, _TAIL)), Probe("tail_reach", (0.05, _TAIL))),
        misconceptions=(
            Misconception(
                name="sign-kept",
                wrong={"tail_reach": _reach_with_sign},
                hint="the outputs were compared with their sign; on the left they are negative.",
                page=f"{LIMITS}#the-calculation",
            ),
            Misconception(
                name="taken-as-sorted",
                wrong={"tail_reach": _reach_of_sorted},
                hint="the first marked entry was returned, but the entries come in any order.",
                page=f"{LIMITS}#the-idea",
            ),
            Misconception(
                name="rightmost-entry",
                wrong={"tail_reach": _reach_of_rightmost},
                hint="the marked entry nearest to 0 was returned; farthest to the left is the smallest one.",
                page=f"{LIMITS}#the-idea",
            ),
            Misconception(
                name="empty-case-forgotten",
                wrong={"tail_reach": _reach_without_empty_case},
                hint="for ReLU no entry is marked, and an empty array has no smallest entry.",
                page=f"{LIMITS}#the-idea",
            ),
        ),
        uses=("relu", "gelu", "silu"),
    ),
)
