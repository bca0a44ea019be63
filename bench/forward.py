"""How much the blocks' forward passes take beyond their matrix products.

    python bench/forward.py
    python -m bench.forward --repeats 50

Everything is timed in one run: each repeat runs every contender once, in an order of its own, so that a busy
moment of the machine meets them all and none always follows the same other; the medians are compared. The
yardstick is two bare matrix products, 512 x 768 @ 768 x 3072 @ 3072 x 768 in float32; a gated block multiplies
three such matrices, so 1.5 is the least it can take. The result also goes to _build/bench/forward.json. A missed
bar is printed and is no failure: the exit status is 0 unless the arguments are wrong.

CPU seconds stand beside the wall clock's. CPU below wall says that the process waited for other processes; about
twice the wall is two busy cores.
"""

import argparse
import importlib
import importlib.util
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

# Idle threads of one library spin for a while on the cores that the other needs right after: beside numpy, PyTorch
# took twice the time that it takes alone. This has to be said before either is loaded.
if importlib.util.find_spec("torch"):
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")

import numpy as np

from ffn import FeedForward, GatedFeedForward
from ffn.arrays import FloatArray

TOKENS, D_MODEL, D_FF = 512, 768, 3072
WARM_UP = 3
QUIET_SPREAD = 1.3
QUIET_CPU = 0.95
BARE = "two bare products"
BARS = {"FeedForward relu": 1.15, "FeedForward gelu": 1.8, "GatedFeedForward silu": 1.9}
TARGET = Path(__file__).resolve().parents[1] / "_build" / "bench" / "forward.json"

Contender = Callable[[], object]


@dataclass(frozen=True)
class Row:
    """Medians of one contender: milliseconds, wall time over the bare products', CPU seconds, and its bar.

    ``spread`` is the third quartile of the wall time over the first.
    """

    name: str
    wall_ms: float
    ratio: float
    wall_seconds: float
    cpu_seconds: float
    spread: float
    bar: float | None

    @property
    def met(self) -> bool | None:
        """Whether the ratio is within the bar; None where there is no bar."""
        return None if self.bar is None else self.ratio <= self.bar


@dataclass(frozen=True)
class Weights:
    """The float32 arrays that every contender computes with."""

    x: FloatArray
    W_1: FloatArray
    W_u: FloatArray
    W_2: FloatArray
    b_1: FloatArray
    b_2: FloatArray


def seeded_weights() -> Weights:
    """Weights of the size that a trained block has, so that the activations see ordinary numbers."""
    rng = np.random.default_rng(0)

    def normal(*shape: int, fan_in: int = 1) -> FloatArray:
        values: FloatArray = (rng.standard_normal(shape) / np.sqrt(fan_in)).astype(np.float32)
        return values

    return Weights(
        x=normal(TOKENS, D_MODEL),
        W_1=normal(D_MODEL, D_FF, fan_in=D_MODEL),
        W_u=normal(D_MODEL, D_FF, fan_in=D_MODEL),
        W_2=normal(D_FF, D_MODEL, fan_in=D_FF),
        b_1=normal(D_FF, fan_in=D_FF),
        b_2=normal(D_MODEL, fan_in=D_FF),
    )


def numpy_contenders(w: Weights) -> dict[str, Contender]:
    """The yardstick and the course's blocks."""
    relu = FeedForward(w.W_1, w.b_1, w.W_2, w.b_2, "relu")
    gelu = FeedForward(w.W_1, w.b_1, w.W_2, w.b_2, "gelu")
    gated = GatedFeedForward(w.W_1, w.W_u, w.W_2, "silu")
    return {
        BARE: lambda: w.x @ w.W_1 @ w.W_2,
        "FeedForward relu": lambda: relu(w.x),
        "FeedForward gelu": lambda: gelu(w.x),
        "GatedFeedForward silu": lambda: gated(w.x),
    }


def torch_contenders(w: Weights, torch: Any) -> dict[str, Contender]:
    """The same blocks in PyTorch, without gradients."""
    functional = torch.nn.functional
    x, W_1, W_u, W_2, b_1, b_2 = (
        torch.from_numpy(array if array.ndim == 1 or array is w.x else np.ascontiguousarray(array.T))
        for array in (w.x, w.W_1, w.W_u, w.W_2, w.b_1, w.b_2)
    )

    def plain(activation: Callable[[Any], Any]) -> Contender:
        def run() -> object:
            with torch.inference_mode():
                return functional.linear(activation(functional.linear(x, W_1, b_1)), W_2, b_2)

        return run

    def gated() -> object:
        with torch.inference_mode():
            gate = functional.silu(functional.linear(x, W_1))
            return functional.linear(gate * functional.linear(x, W_u), W_2)

    return {
        "torch relu": plain(functional.relu),
        "torch gelu": plain(functional.gelu),
        "torch SwiGLU": gated,
    }


def spread(values: Sequence[float]) -> float:
    """Third quartile over first: near 1 where nothing else disturbs the runs."""
    if len(values) < 2:
        return 1.0
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    return third / first


def measure(contenders: Mapping[str, Contender], repeats: int) -> list[Row]:
    """Time the contenders alternately, after a warm-up, and give their medians."""
    for _ in range(WARM_UP):
        for run in contenders.values():
            run()
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    order = list(contenders)
    shuffle = random.Random(0).shuffle
    for _ in range(repeats):
        shuffle(order)
        for name in order:
            wall_before, cpu_before = time.perf_counter(), time.process_time()
            contenders[name]()
            wall[name].append(time.perf_counter() - wall_before)
            cpu[name].append(time.process_time() - cpu_before)
    yardstick = statistics.median(wall[BARE])
    rows = []
    for name in contenders:
        seconds = statistics.median(wall[name])
        rows.append(
            Row(
                name=name,
                wall_ms=1000 * seconds,
                ratio=seconds / yardstick,
                wall_seconds=seconds,
                cpu_seconds=statistics.median(cpu[name]),
                spread=spread(wall[name]),
                bar=BARS.get(name),
            )
        )
    return rows


def table(rows: Sequence[Row]) -> str:
    """The rows as aligned text."""
    verdicts = {None: "", True: "met", False: "NOT MET"}
    lines = [f"{'contender':<23} {'ms':>8} {'ratio':>7} {'wall s':>8} {'CPU s':>8} {'bar':>6}"]
    for row in rows:
        bar = "" if row.bar is None else f"{row.bar:.2f}"
        lines.append(
            f"{row.name:<23} {row.wall_ms:>8.2f} {row.ratio:>7.2f} {row.wall_seconds:>8.4f} "
            f"{row.cpu_seconds:>8.4f} {bar:>6} {verdicts[row.met]}".rstrip()
        )
    return "\n".join(lines)


def verdict(rows: Sequence[Row]) -> str:
    """Which bars are missed, and whether the machine was quiet enough to tell."""
    missed = [f"{row.name} ({row.ratio:.2f}, bar {row.bar:.2f})" for row in rows if row.bar and not row.met]
    said = f"Missed: {', '.join(missed)}." if missed else "Every bar is met."
    if any(row.spread > QUIET_SPREAD or row.cpu_seconds < QUIET_CPU * row.wall_seconds for row in rows):
        said += (
            "\nThe machine was busy: times differ from run to run, or CPU is below wall. The ratios say little."
        )
    return said


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not 1 or more")
    return number


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the comparison, print it and write it to a file."""
    parser = argparse.ArgumentParser(
        description="Compare the blocks' forward passes with their bare matrix products (512 tokens, 768, 3072)."
    )
    parser.add_argument(
        "--repeats", type=positive, default=30, help="timed runs of each contender (default: %(default)s)"
    )
    parser.add_argument("--output", type=Path, default=TARGET, help="JSON file to write (default: %(default)s)")
    given = parser.parse_args(arguments)

    weights = seeded_weights()
    contenders = numpy_contenders(weights)
    versions = {"python": platform.python_version(), "numpy": np.__version__}
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        print("PyTorch is not installed, so it is not compared.")
    else:
        versions["torch"] = torch.__version__
        contenders |= torch_contenders(weights, torch)

    rows = measure(contenders, given.repeats)
    print(table(rows))
    print(verdict(rows))
    record = {
        "tokens": TOKENS,
        "d_model": D_MODEL,
        "d_ff": D_FF,
        "dtype": "float32",
        "repeats": given.repeats,
        "cores": os.cpu_count(),
        "versions": versions,
        "rows": [asdict(row) | {"met": row.met} for row in rows],
    }
    given.output.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
