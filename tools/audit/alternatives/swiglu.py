"""Right answers of the unit `swiglu`, written differently, and the mutants that may survive."""

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import ffn
from ffn import ledger
from tools.audit.alternatives.styles import MATRIX_PRODUCTS, elementwise_styles

__all__ = ["ALTERNATIVES", "SURVIVORS"]

Function = Callable[..., Any]


def _logistic(v: float) -> float:
    return 1 / (1 + math.exp(-v)) if v >= 0 else math.exp(v) / (1 + math.exp(v))


def _silu(v: float) -> float:
    return v * _logistic(v)


def _gelu(v: float) -> float:
    return v * math.erfc(-v / math.sqrt(2)) / 2


_RULES: dict[str, Callable[[float], float]] = {
    "GLU": _logistic,
    "bilinear": lambda v: v,
    "ReGLU": lambda v: max(0.0, v),
    "GEGLU": _gelu,
    "SwiGLU": _silu,
}


# The hidden vector, the block and its family


def _hidden_by(product: Function, activation: Function) -> Function:
    def gated_hidden(x: Any, W_g: Any, W_u: Any) -> Any:
        return np.multiply(activation(product(x, W_g)), product(x, W_u))

    return gated_hidden


def _hidden_of_one_matrix(x: Any, W_g: Any, W_u: Any) -> Any:
    both = np.asarray(x, dtype=float) @ np.concatenate([W_g, W_u], axis=1)
    gate, up = np.split(both, 2, axis=-1)
    return ffn.silu(gate) * up


def _hidden_in_plain_lists(x: Any, W_g: Any, W_u: Any) -> Any:
    if np.ndim(x) > 1:
        return [_hidden_in_plain_lists(part, W_g, W_u) for part in x]
    gates = [sum(v * w for v, w in zip(x, column, strict=True)) for column in zip(*W_g, strict=True)]
    ups = [sum(v * w for v, w in zip(x, column, strict=True)) for column in zip(*W_u, strict=True)]
    return [_silu(float(g)) * u for g, u in zip(gates, ups, strict=True)]


def _hidden_as_it_comes(x: Any, W_g: Any, W_u: Any) -> Any:
    u_g = np.dot(x, W_g)
    return u_g * np.dot(x, W_u) / (1 + np.exp(-u_g))


_STYLES = [
    *elementwise_styles(_silu),
    ffn.silu,
    lambda z: z * ffn.sigmoid(z),
    lambda z: z / 2 * (1 + np.tanh(z / 2)),
]


def _block_by(product: Function) -> Function:
    def swiglu(x: Any, W_g: Any, W_u: Any, W_d: Any) -> Any:
        return product(ffn.silu(product(x, W_g)) * product(x, W_u), W_d)

    return swiglu


def _block_of_hidden(x: Any, W_g: Any, W_u: Any, W_d: Any) -> Any:
    return np.matmul(_hidden_of_one_matrix(x, W_g, W_u), W_d)


def _block_by_unit(x: Any, W_g: Any, W_u: Any, W_d: Any) -> Any:
    x, W_g, W_u, W_d = (np.asarray(a, dtype=float) for a in (x, W_g, W_u, W_d))
    y = np.zeros(x.shape)
    for j in range(W_d.shape[0]):
        y += (ffn.silu(x @ W_g[:, j]) * (x @ W_u[:, j]))[..., None] * W_d[j]
    return y


def _block_flattened(x: Any, W_g: Any, W_u: Any, W_d: Any) -> Any:
    x = np.asarray(x)
    rows = x.reshape(-1, x.shape[-1])
    return ((ffn.silu(rows @ np.asarray(W_g)) * (rows @ np.asarray(W_u))) @ np.asarray(W_d)).reshape(x.shape)


def _family_by(product: Function, *, by_hand: bool = False) -> Function:
    def gated(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
        rule = _RULES[name] if by_hand else ffn.ACTIVATIONS[ffn.GATES[name]].function
        gate = np.vectorize(rule, otypes=[float]) if by_hand else rule
        return product(gate(product(x, W_g)) * product(x, W_u), W_d)

    return gated


def _family_by_cases(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    u_g = gate = np.dot(x, W_g)
    if name == "GLU":
        gate = ffn.sigmoid(u_g)
    elif name == "ReGLU":
        gate = u_g * (u_g > 0)
    elif name == "GEGLU":
        gate = u_g * ffn.normal_cdf(u_g)
    elif name == "SwiGLU":
        gate = u_g * ffn.sigmoid(u_g)
    return np.dot(gate * np.dot(x, W_u), W_d)


def _family_of_the_course(x: Any, W_g: Any, W_u: Any, W_d: Any, name: str = "SwiGLU") -> Any:
    return ffn.GatedFeedForward(W_g, W_u, W_d, ffn.GATES[name])(x)


# The ledger


def _count_by_loop(d: int, d_ff: int) -> int:
    count = 0
    for _ in range(3):
        for _ in range(d):
            count += d_ff
    return count


_COUNTS: list[Function] = [
    lambda d, d_ff: d * d_ff + d * d_ff + d_ff * d,
    lambda d, d_ff: 2 * d * d_ff + d_ff * d,
    lambda d, d_ff: math.prod([3, d, d_ff]),
    lambda d, d_ff: sum([d * d_ff] * 3),
    lambda d, d_ff: sum(rows * columns for rows, columns in ((d, d_ff), (d, d_ff), (d_ff, d))),
    lambda d, d_ff: d * 3 * d_ff,
    lambda d, d_ff: int(np.prod((3, d, d_ff), dtype=np.int64)),
    lambda d, d_ff: float(3 * d) * d_ff,
    lambda d, d_ff: np.int64(d) * np.int64(d_ff) * 3,
    lambda d, d_ff: len(range(0, 3 * d * d_ff)),
    lambda d, d_ff: ledger.plain_parameters(d, d_ff, biases=False) * 3 // 2,
    ledger.gated_parameters,
    _count_by_loop,
]

_BYTES: list[Function] = [
    lambda d, d_ff, bits=16: 3 * d * d_ff * bits / 8,
    lambda d, d_ff, bits=16: 3 * d * d_ff * (bits / 8),
    lambda d, d_ff, bits=16: 0.125 * bits * 3 * d * d_ff,
    lambda d, d_ff, bits=16: ledger.gated_parameters(d, d_ff) * bits / 8,
    lambda d, d_ff, bits=16: sum(rows * d_ff * bits for rows in (d, d, d)) / 8,
    lambda d, d_ff, bits=16: float(Fraction(3 * d * d_ff * bits, 8)),
    lambda d, d_ff, bits=16: np.float64(3 * d) * d_ff * bits / 8,
    lambda d, d_ff, bits=16: 3 * d * d_ff * {32: 4, 16: 2, 8: 1, 4: 0.5}[bits],
    lambda d, d_ff, bits=16: d * d_ff / 8 * bits * 3,
    lambda d, d_ff, bits=16: math.prod((3, d, d_ff, bits)) / 2**3,
    lambda d, d_ff, bits=16: math.ldexp(3 * d * d_ff * bits, -3),
]


def _unit_by_cases(size: float, unit: str) -> float:
    if unit == "MB":
        return size / 1_000_000
    if unit == "MiB":
        return size / 1_048_576
    if unit == "GB":
        return size / 1_000_000_000
    return size / 1_073_741_824


def _unit_step_by_step(size: float, unit: str) -> float:
    step = 1024 if "i" in unit else 1000
    for _ in range(2 if unit[0] == "M" else 3):
        size = size / step
    return size


def _unit_of_match(size: float, unit: str) -> float:
    match unit:
        case "MB":
            return size * 1e-6
        case "MiB":
            return ledger.mebibytes(size)
        case "GB":
            return size * 1e-9
        case _:
            return ledger.gibibytes(size)


_UNITS: list[Function] = [
    _unit_by_cases,
    _unit_step_by_step,
    _unit_of_match,
    lambda size, unit: size / {"MB": 1e6, "MiB": 1024**2, "GB": 1e9, "GiB": 1024**3}[unit],
    lambda size, unit: size / (1024 if "i" in unit else 1000) ** {"M": 2, "G": 3}[unit[0]],
    lambda size, unit: size / dict(zip(("MB", "MiB", "GB", "GiB"), (1e6, 2**20, 1e9, 2**30), strict=True))[unit],
    lambda size, unit: size / (1000, 1024)[unit[1] == "i"] / (1000, 1024)[unit[1] == "i"] ** "_MG".index(unit[0]),
    lambda size, unit: np.divide(
        size, 10**6 if unit == "MB" else 10**9 if unit == "GB" else 1 << 10 * "..MG".index(unit[0])
    ),
    lambda size, unit: float(
        Fraction(size) / (1024 if len(unit) == 3 else 1000) ** (2 if unit.startswith("M") else 3)
    ),
    lambda size, unit: size * {"MB": 1e-6, "MiB": 2.0**-20, "GB": 1e-9, "GiB": 2.0**-30}[unit],
    lambda size, unit: math.exp(math.log(size) - math.log(1024 if "i" in unit else 1000) * (2 + (unit[0] == "G"))),
]


def _parity_by_counting(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    width = 0
    while width < 2 * factor * d // 3:
        width += multiple_of
    return width


def _parity_by_remainder(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    width = int(2 * factor * d / 3)
    return width if width % multiple_of == 0 else width + multiple_of - width % multiple_of


def _parity_by_divmod(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    times, rest = divmod(factor * d * 2 // 3, multiple_of)
    return (times + (rest > 0)) * multiple_of


def _parity_by_search(d: int, factor: int = 4, multiple_of: int = 1) -> int:
    width = 2 * factor * d // 3
    return next(w for w in itertools.count(width) if w % multiple_of == 0)


_PARITIES: list[Function] = [
    _parity_by_counting,
    _parity_by_remainder,
    _parity_by_divmod,
    _parity_by_search,
    lambda d, factor=4, multiple_of=1: -(-(2 * factor * d // 3) // multiple_of) * multiple_of,
    lambda d, factor=4, multiple_of=1: (2 * factor * d // 3 + multiple_of - 1) // multiple_of * multiple_of,
    lambda d, factor=4, multiple_of=1: ledger.gated_width_at_parity(factor * d, multiple_of=multiple_of),
    lambda d, factor=4, multiple_of=1: int(np.ceil(np.floor(2 * factor * d / 3) / multiple_of)) * multiple_of,
    lambda d, factor=4, multiple_of=1: (lambda w: w + (-w) % multiple_of)(2 * factor * d // 3),
    lambda d, factor=4, multiple_of=1: (
        math.ceil(Fraction(math.floor(Fraction(2 * factor * d, 3)), multiple_of)) * multiple_of
    ),
    lambda d, factor=4, multiple_of=1: float(np.ceil(2 * factor * d // 3 / multiple_of) * multiple_of),
]

_RATIOS: list[Function] = [
    lambda d, d_ff, factor=4: 3 * d_ff / (2 * factor * d),
    lambda d, d_ff, factor=4: 1.5 * d_ff / (factor * d),
    lambda d, d_ff, factor=4: 3 * d * d_ff / (2 * d * factor * d),
    lambda d, d_ff, factor=4: d_ff / (2 / 3 * factor * d),
    lambda d, d_ff, factor=4: d_ff / (2 * factor * d / 3),
    lambda d, d_ff, factor=4: float(Fraction(3 * d_ff, 2 * factor * d)),
    lambda d, d_ff, factor=4: (
        ledger.gated_parameters(d, d_ff) / ledger.plain_parameters(d, factor * d, biases=False)
    ),
    lambda d, d_ff, factor=4: ledger.flops_per_token(d, d_ff, gated=True) / ledger.flops_per_token(d, factor * d),
    lambda d, d_ff, factor=4: np.divide(3 * d * d_ff, d * factor * d + factor * d * d),
    lambda d, d_ff, factor=4: math.prod((3, d, d_ff)) / math.prod((2, d, factor, d)),
    lambda d, d_ff, factor=4: (d_ff / d) / factor * 3 / 2,
]


# Operations, bytes moved and the roofline


def _flops_by_loop(shape: tuple[int, ...], d_ff: int) -> int:
    work = 6 * shape[-1] * d_ff
    for length in shape[:-1]:
        work *= length
    return work


def _flops_by_products(shape: tuple[int, ...], d_ff: int) -> int:
    d, tokens = shape[-1], int(np.prod(shape[:-1]))
    return sum(2 * tokens * inner * outer for inner, outer in ((d, d_ff), (d, d_ff), (d_ff, d)))


def _flops_by_recursion(shape: tuple[int, ...], d_ff: int) -> int:
    return shape[0] * _flops_by_recursion(shape[1:], d_ff) if len(shape) > 1 else 6 * shape[0] * d_ff


_FLOPS: list[Function] = [
    _flops_by_loop,
    _flops_by_products,
    _flops_by_recursion,
    lambda shape, d_ff: 6 * math.prod(shape) * d_ff,
    lambda shape, d_ff: 2 * math.prod(shape[:-1]) * 3 * shape[-1] * d_ff,
    lambda shape, d_ff: int(np.prod(shape, dtype=np.int64)) * d_ff * 6,
    lambda shape, d_ff: math.prod(shape[:-1]) * ledger.flops_per_token(shape[-1], d_ff, gated=True),
    lambda shape, d_ff: 2 * ledger.gated_parameters(shape[-1], d_ff) * math.prod(shape[:-1]),
    lambda shape, d_ff: float(6 * d_ff) * math.prod(shape),
    lambda shape, d_ff: sum(math.prod(shape) * d_ff for _ in range(6)),
    lambda shape, d_ff: 2 * math.prod((*shape, 3, d_ff)),
    lambda shape, d_ff: math.prod(shape) // shape[-1] * (4 * shape[-1] * d_ff + 2 * d_ff * shape[-1]),
]


def _moved_by_arrays(tokens: int, d: int, d_ff: int, size: int = 2) -> int:
    total = 0
    for rows, columns in ((d, d_ff), (d, d_ff), (d_ff, d), (tokens, d), (tokens, d)):
        total += rows * columns * size
    for _ in ("gate", "up", "product"):
        total += 2 * tokens * d_ff * size
    return total


_MOVED: list[Function] = [
    _moved_by_arrays,
    lambda tokens, d, d_ff, size=2: size * (3 * d * d_ff + tokens * (2 * d + 6 * d_ff)),
    lambda tokens, d, d_ff, size=2: size * (3 * d * d_ff + 2 * tokens * d + 6 * tokens * d_ff),
    lambda tokens, d, d_ff, size=2: 3 * d * d_ff * size + tokens * (2 * d + 6 * d_ff) * size,
    lambda tokens, d, d_ff, size=2: size * (ledger.gated_parameters(d, d_ff) + 2 * tokens * (d + 3 * d_ff)),
    lambda tokens, d, d_ff, size=2: sum(
        size * n for n in (d * d_ff,) * 3 + (tokens * d,) * 2 + (tokens * d_ff,) * 6
    ),
    lambda tokens, d, d_ff, size=2: float(size) * (3 * d * d_ff + tokens * (2 * d + 6 * d_ff)),
    lambda tokens, d, d_ff, size=2: int(np.dot([3 * d, 2 * tokens], [d_ff, d + 3 * d_ff])) * size,
    lambda tokens, d, d_ff, size=2: size * 2 * tokens * d + size * 3 * d_ff * (d + 2 * tokens),
    lambda tokens, d, d_ff, size=2: sum([3 * d * d_ff, *[2 * d + 6 * d_ff for _ in range(tokens)]]) * size,
    lambda tokens, d, d_ff, size=2: (d * d_ff * 3 + (d + d + d_ff * 6) * tokens) * size,
]


def _moved(tokens: int, d: int, d_ff: int, size: int = 2) -> int:
    return size * (3 * d * d_ff + tokens * (2 * d + 6 * d_ff))


_INTENSITIES: list[Function] = [
    lambda tokens, d, d_ff, size=2: 6 * tokens * d * d_ff / _moved(tokens, d, d_ff, size),
    lambda tokens, d, d_ff, size=2: 6 * tokens * d * d_ff / (size * (3 * d * d_ff + tokens * (2 * d + 6 * d_ff))),
    lambda tokens, d, d_ff, size=2: (
        tokens * ledger.flops_per_token(d, d_ff, gated=True) / _moved(tokens, d, d_ff, size)
    ),
    lambda tokens, d, d_ff, size=2: float(Fraction(6 * tokens * d * d_ff, _moved(tokens, d, d_ff, size))),
    lambda tokens, d, d_ff, size=2: 1 / (_moved(tokens, d, d_ff, size) / (6 * tokens * d * d_ff)),
    lambda tokens, d, d_ff, size=2: 1 / (size * (1 / (2 * tokens) + 1 / (3 * d_ff) + 1 / d)),
    lambda tokens, d, d_ff, size=2: 6 * d * d_ff / (_moved(tokens, d, d_ff, size) / tokens),
    lambda tokens, d, d_ff, size=2: np.float64(6 * tokens * d * d_ff) / _moved(tokens, d, d_ff, size),
    lambda tokens, d, d_ff, size=2: np.divide(_flops_by_loop((tokens, d), d_ff), _moved(tokens, d, d_ff, size)),
    lambda tokens, d, d_ff, size=2: 2 / size * tokens / (1 + tokens * (2 * d + 6 * d_ff) / (3 * d * d_ff)),
    lambda tokens, d, d_ff, size=2: _flops_by_products((1, tokens, d), d_ff) / _moved(tokens, d, d_ff, size),
]


def _roof_by_cases(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    if bandwidth * intensity < peak:
        return bandwidth * intensity, "memory"
    return peak, "arithmetic"


def _roof_by_numpy(intensity: float, peak: float, bandwidth: float) -> list[Any]:
    rates = [peak, bandwidth * intensity]
    return [np.min(rates), ["arithmetic", "memory"][int(np.argmin(rates))]]


def _roof_by_sorting(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    return sorted([(bandwidth * intensity, "memory"), (peak, "arithmetic")])[0]


def _roof_not_above(intensity: float, peak: float, bandwidth: float) -> tuple[float, str]:
    rate, limit = peak, "arithmetic"
    if rate > intensity * bandwidth:
        rate, limit = intensity * bandwidth, "memory"
    return rate, limit


_ROOFS: list[Function] = [
    _roof_by_cases,
    _roof_by_numpy,
    _roof_by_sorting,
    _roof_not_above,
    lambda intensity, peak, bandwidth: min((peak, "arithmetic"), (bandwidth * intensity, "memory")),
    lambda intensity, peak, bandwidth: min(
        [(peak, "arithmetic"), (bandwidth * intensity, "memory")], key=lambda p: p[0]
    ),
    lambda intensity, peak, bandwidth: (
        np.minimum(peak, bandwidth * intensity),
        "memory" if bandwidth * intensity < peak else "arithmetic",
    ),
    lambda intensity, peak, bandwidth: (
        min(peak, bandwidth * intensity),
        "arithmetic" if bandwidth * intensity >= peak else "memory",
    ),
    lambda intensity, peak, bandwidth: (
        peak if peak <= bandwidth * intensity else bandwidth * intensity,
        ("arithmetic", "memory")[bandwidth * intensity < peak],
    ),
    lambda intensity, peak, bandwidth: (
        peak * min(1.0, bandwidth * intensity / peak),
        {True: "memory", False: "arithmetic"}[peak > bandwidth * intensity],
    ),
    lambda intensity, peak, bandwidth: [
        float(np.clip(bandwidth * intensity, 0, peak)),
        "memory" if intensity < peak / bandwidth else "arithmetic",
    ],
]


# The memory budget


def _cache_by_loop(layers: int, d_kv: int, tokens: int, sequences: int = 1, size: int = 2) -> int:
    total = 0
    for _ in range(layers):
        for _ in ("key", "value"):
            total += d_kv * tokens * sequences * size
    return total


_CACHES: list[Function] = [
    _cache_by_loop,
    lambda layers, d_kv, tokens, sequences=1, size=2: 2 * layers * d_kv * tokens * sequences * size,
    lambda layers, d_kv, tokens, sequences=1, size=2: math.prod((2, layers, sequences, tokens, d_kv, size)),
    lambda layers, d_kv, tokens, sequences=1, size=2: size * sequences * tokens * layers * (d_kv + d_kv),
    lambda layers, d_kv, tokens, sequences=1, size=2: sum(layers * d_kv * tokens * sequences * size for _ in "kv"),
    lambda layers, d_kv, tokens, sequences=1, size=2: float(2 * size) * (layers * d_kv) * (tokens * sequences),
    lambda layers, d_kv, tokens, sequences=1, size=2: (
        size * int(np.prod([2, layers, d_kv, tokens, sequences], dtype=np.int64))
    ),
    lambda layers, d_kv, tokens, sequences=1, size=2: layers * sequences * (2 * tokens * d_kv) * size,
    lambda layers, d_kv, tokens, sequences=1, size=2: (
        size * (layers * d_kv * tokens * sequences + layers * d_kv * tokens * sequences)
    ),
    lambda layers, d_kv, tokens, sequences=1, size=2: (
        ledger.memory_budget(ledger.BudgetInput(0, 2, layers, d_kv, tokens, sequences, cache_bytes=size)).kv_cache
    ),
    lambda layers, d_kv, tokens, sequences=1, size=2: np.int64(2) * layers * d_kv * tokens * sequences * size,
]

_PARTS = ("weights", "kv_cache", "gradients", "optimizer", "master")


def _budget_by_cases(parameters: int, cache: float = 0, training: bool = False) -> dict[str, float]:
    weights = 2 * parameters
    if not training:
        found: dict[str, float] = dict.fromkeys(_PARTS, 0)
        found |= {"weights": weights, "kv_cache": cache, "total": weights + cache}
        return found
    return {
        "total": 16 * parameters + cache,
        "weights": weights,
        "kv_cache": cache,
        "gradients": weights,
        "optimizer": 8 * parameters,
        "master": 4 * parameters,
    }


def _budget_by_loop(parameters: int, cache: float = 0, training: bool = False) -> dict[str, float]:
    found: dict[str, float] = {"total": 0}
    for part, size in zip(_PARTS, (2, 0, 2, 8, 4), strict=True):
        found[part] = size * parameters
        if part == "kv_cache":
            found[part] = cache
        elif part != "weights" and not training:
            found[part] = 0
        found["total"] += found[part]
    return found


def _budget_by_filling(parameters: int, cache: float = 0, training: bool = False) -> dict[str, float]:
    found = dict.fromkeys([*_PARTS, "total"], 0.0)
    found["weights"], found["kv_cache"] = 2.0 * parameters, float(cache)
    if training:
        found.update(gradients=2 * parameters, optimizer=2 * 4 * parameters, master=4 * parameters)
    found["total"] = math.fsum(found[part] for part in _PARTS)
    return found


def _budget_of_the_ledger(parameters: int, cache: float = 0, training: bool = False) -> dict[str, float]:
    states, master, gradients = (2, 4, 2 * parameters) if training else (0, 0, 0)
    b = ledger.memory_budget(ledger.BudgetInput(parameters, optimizer_states=states, master_bytes=master))
    total = b.total + cache + gradients
    return {**vars(b), "kv_cache": cache, "gradients": gradients, "total": total}


def _budget_by(
    sizes: Callable[[int, float, bool], list[Any]], total: Callable[[list[Any]], Any] = sum
) -> Function:
    def budget(parameters: int, cache: float = 0, training: bool = False) -> dict[str, Any]:
        found = sizes(parameters, cache, training)
        return dict(zip(_PARTS, found, strict=True)) | {"total": total(found)}

    return budget


_BUDGETS: list[Function] = [
    _budget_by_cases,
    _budget_by_loop,
    _budget_by_filling,
    _budget_of_the_ledger,
    _budget_by(lambda n, c, t: [2 * n, c, 2 * n * t, 8 * n * t, 4 * n * t]),
    _budget_by(lambda n, c, t: [n * 2, c, *((n * 2, n * 4 * 2, n * 4) if t else (0, 0, 0))]),
    _budget_by(lambda n, c, t: [n + n, c, *(k * (n if t else 0) for k in (2, 8, 4))], math.fsum),
    _budget_by(lambda n, c, t: [2 * n, c, int(t) * 2 * n, int(t) * (4 * n + 4 * n), int(t) * 4 * n]),
    _budget_by(
        lambda n, c, t: [n * k if t or k == 2.0 else 0.0 for k in (2.0,)] + [c] + [n * k * t for k in (2, 8, 4)]
    ),
    _budget_by(
        lambda n, c, t: list(np.array([2, 0, 2 * t, 8 * t, 4 * t]) * n + np.array([0, 1, 0, 0, 0]) * c), np.sum
    ),
    _budget_by(
        lambda n, c, t: [2 * n, c] + ([2 * n, 8 * n, 4 * n] if t else [0] * 3), lambda parts: sum(parts[::-1])
    ),
]


# The mixture of experts


def _route_by(product: Function, normalise: Callable[[Any], Any]) -> Function:
    def route(x: Any, W_r: Any, k: int) -> Any:
        scores = np.asarray(product(x, W_r))
        chosen = np.flip(np.argsort(scores, axis=-1), axis=-1)[..., :k]
        return chosen, normalise(np.take_along_axis(scores, chosen, axis=-1))

    return route


def _softmax(scores: Any) -> Any:
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return shares / shares.sum(axis=-1, keepdims=True)


def _softmax_by_logs(scores: Any) -> Any:
    return np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))


def _softmax_by_differences(scores: Any) -> Any:
    gaps = np.maximum(scores[..., None, :] - scores[..., :, None], -700)
    return 1 / np.exp(np.minimum(gaps, 700)).sum(axis=-1)


def _route_by_token(x: Any, W_r: Any, k: int) -> Any:
    x = np.asarray(x, dtype=float)
    chosen, weights = np.zeros((*x.shape[:-1], k), dtype=int), np.zeros((*x.shape[:-1], k))
    for place in np.ndindex(x.shape[:-1]):
        scores = x[place] @ np.asarray(W_r)
        best = sorted(range(len(scores)), key=lambda e: -scores[e])[:k]
        shares = [math.exp(scores[e] - scores[best[0]]) for e in best]
        chosen[place], weights[place] = best, np.array(shares) / sum(shares)
    return chosen, weights


def _route_all_then_again(x: Any, W_r: Any, k: int) -> Any:
    scores = np.dot(x, W_r)
    shares = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    shares = shares / np.sum(shares, axis=-1, keepdims=True)
    chosen = np.argsort(scores, axis=-1)[..., ::-1][..., :k]
    kept = np.take_along_axis(shares, chosen, axis=-1)
    return [chosen, kept / kept.sum(axis=-1)[..., None]]


def _route_by_masking(x: Any, W_r: Any, k: int) -> Any:
    scores = np.array(np.dot(x, W_r), dtype=float)
    chosen, best = [], []
    for _ in range(k):
        number = np.argmax(scores, axis=-1)
        chosen.append(number)
        best.append(np.max(scores, axis=-1))
        np.put_along_axis(scores, number[..., None], -np.inf, axis=-1)
    return np.stack(chosen, axis=-1), _softmax(np.stack(best, axis=-1))


def _route_by_partition(x: Any, W_r: Any, k: int) -> Any:
    scores = np.asarray(x) @ np.asarray(W_r)
    some = np.argpartition(scores, -k, axis=-1)[..., -k:]
    order = np.argsort(-np.take_along_axis(scores, some, axis=-1), axis=-1)
    chosen = np.take_along_axis(some, order, axis=-1)
    return chosen, _softmax(np.take_along_axis(scores, chosen, axis=-1))


def _block(x: Any, matrices: Any) -> Any:
    return ffn.GatedFeedForward(*matrices)(x)


def _mixture_by_token(router: Function) -> Function:
    def mixture(x: Any, W_r: Any, experts: Any, k: int) -> Any:
        x = np.asarray(x, dtype=float)
        y = np.zeros(x.shape)
        for place in np.ndindex(x.shape[:-1]):
            chosen, weights = router(x[place], W_r, k)
            for e, weight in zip(chosen, weights, strict=True):
                y[place] += weight * _block(x[place], experts[int(e)])
        return y

    return mixture


def _mixture_dense(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    chosen, weights = _route_all_then_again(x, W_r, k)
    outputs = np.stack([_block(x, matrices) for matrices in experts], axis=-2)
    picked = np.take_along_axis(outputs, chosen[..., None], axis=-2)
    return (weights[..., None] * picked).sum(axis=-2)


def _mixture_by_onehot(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    chosen, weights = _route_by_token(x, W_r, k)
    shares = np.einsum("...k,...ke->...e", weights, np.eye(len(experts))[chosen])
    return np.einsum("...e,e...d->...d", shares, np.stack([_block(x, matrices) for matrices in experts]))


def _mixture_by_masking(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    scores = np.asarray(x) @ np.asarray(W_r)
    least = np.sort(scores, axis=-1)[..., [-k]]
    shares = _softmax(np.where(scores >= least, scores, -np.inf))
    return sum(shares[..., [e]] * _block(x, matrices) for e, matrices in enumerate(experts))


def _mixture_by_recursion(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    if np.ndim(x) > 1:
        return [_mixture_by_recursion(part, W_r, experts, k) for part in x]
    chosen, weights = _route_by_masking(x, W_r, k)
    return sum(w * _block_by_unit(x, *experts[e]) for e, w in zip(chosen, weights, strict=True))


def _mixture_sparse(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    x = np.asarray(x, dtype=float)
    rows = x.reshape(-1, x.shape[-1])
    chosen, weights = _route_by_partition(rows, W_r, k)
    y = np.zeros(rows.shape)
    for e, matrices in enumerate(experts):
        token, place = np.nonzero(chosen == e)
        y[token] += weights[token, place][:, None] * _block(rows[token], matrices)
    return y.reshape(x.shape)


def _mixture_of_the_course(x: Any, W_r: Any, experts: Any, k: int) -> Any:
    return ffn.MixtureOfExperts([ffn.GatedFeedForward(*e) for e in experts], W_r, k)(x)


def _experts_by_lists(d: int, d_ff: int, experts: int, k: int) -> list[int]:
    router, blocks = d * experts, [3 * d * d_ff for _ in range(experts)]
    return [router + sum(blocks), router + sum(blocks[:k])]


def _experts_by_subtraction(d: int, d_ff: int, experts: int, k: int) -> tuple[int, int]:
    stored = experts * (d + 3 * d * d_ff)
    return stored, stored - (experts - k) * 3 * d * d_ff


_EXPERTS: list[Function] = [
    _experts_by_lists,
    _experts_by_subtraction,
    lambda d, d_ff, experts, k: (d * experts + experts * 3 * d * d_ff, d * experts + k * 3 * d * d_ff),
    lambda d, d_ff, experts, k: (d * experts * (1 + 3 * d_ff), d * (experts + 3 * k * d_ff)),
    lambda d, d_ff, experts, k: tuple(d * experts + n * ledger.gated_parameters(d, d_ff) for n in (experts, k)),
    lambda d, d_ff, experts, k: np.array([experts, k]) * 3 * d * d_ff + d * experts,
    lambda d, d_ff, experts, k: [d * experts + n * 3 * d * d_ff for n in (experts, k)],
    lambda d, d_ff, experts, k: (sum([3 * d * d_ff] * experts, d * experts), sum([3 * d * d_ff] * k, d * experts)),
    lambda d, d_ff, experts, k: (
        float(d * experts + experts * 3 * d * d_ff),
        float(d * experts + k * 3 * d * d_ff),
    ),
    lambda d, d_ff, experts, k: tuple(d * (experts + 3 * d_ff * n) for n in (experts, k)),
    lambda d, d_ff, experts, k: (
        experts * d + math.prod((3, d, d_ff, experts)),
        experts * d + math.prod((3, d, d_ff, k)),
    ),
]


ALTERNATIVES: dict[str, list[Function]] = {
    "gated_hidden": [
        *(_hidden_by(product, ffn.silu) for product in MATRIX_PRODUCTS),
        *(_hidden_by(np.dot, style) for style in _STYLES),
        _hidden_of_one_matrix,
        _hidden_in_plain_lists,
        _hidden_as_it_comes,
    ],
    "swiglu": [
        *map(_block_by, MATRIX_PRODUCTS),
        _block_of_hidden,
        _block_by_unit,
        _block_flattened,
        lambda x, W_g, W_u, W_d: ffn.GatedFeedForward(W_g, W_u, W_d)(x),
        lambda x, *W: ffn.GatedFeedForward(*W).trace(x).y,
        lambda x, W_g, W_u, W_d: np.dot(_hidden_in_plain_lists(x, W_g, W_u), W_d).tolist(),
    ],
    "gated": [
        *map(_family_by, MATRIX_PRODUCTS),
        _family_by(np.dot, by_hand=True),
        _family_by(MATRIX_PRODUCTS[6], by_hand=True),
        _family_by_cases,
        _family_of_the_course,
    ],
    "gated_parameters": _COUNTS,
    "gated_bytes": _BYTES,
    "in_unit": _UNITS,
    "parity_width": _PARITIES,
    "size_ratio": _RATIOS,
    "flops": _FLOPS,
    "bytes_moved": _MOVED,
    "arithmetic_intensity": _INTENSITIES,
    "roofline": _ROOFS,
    "kv_cache_bytes": _CACHES,
    "budget": _BUDGETS,
    "route": [
        *(_route_by(product, _softmax) for product in MATRIX_PRODUCTS),
        _route_by(np.dot, _softmax_by_logs),
        _route_by(np.dot, _softmax_by_differences),
        _route_by_token,
        _route_all_then_again,
        _route_by_masking,
        _route_by_partition,
    ],
    "mixture": [
        _mixture_by_token(_route_by_token),
        _mixture_by_token(_route_all_then_again),
        _mixture_by_token(_route_by_masking),
        _mixture_by_token(_route_by_partition),
        _mixture_dense,
        _mixture_by_onehot,
        _mixture_by_masking,
        _mixture_by_recursion,
        _mixture_sparse,
        _mixture_of_the_course,
        lambda x, *given: np.asarray(_mixture_by_masking(np.asarray(x, dtype=float), *given)).tolist(),
    ],
    "expert_parameters": _EXPERTS,
}

SURVIVORS: dict[str, str] = {}
