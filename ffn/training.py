"""Training of small feed-forward blocks: three tasks, starting weights, the Adam update, and many runs at once.

A run is one block trained on one sample of tokens. Its seed decides three things, each from a random stream of
its own: the tokens, the order in which training meets them, and the starting weights. Blocks of different kinds
therefore see the same tokens in the same order where their seeds are equal.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ffn.activations import Activation
from ffn.arrays import FloatArray, as_float
from ffn.blocks import FeedForward, GatedFeedForward

__all__ = [
    "TASKS",
    "Adam",
    "Blueprint",
    "Sample",
    "Task",
    "Training",
    "arrays",
    "draw_batches",
    "draw_sample",
    "mean_squared_error",
    "train",
]

# The purpose of each random stream of a run; together with the run's seed it starts a generator.
_TOKENS, _ORDER, _WEIGHTS = 0, 1, 2


@dataclass(frozen=True)
class Task:
    """A map to learn: ``target`` takes tokens (..., d_model) to their targets, of the same shape.

    ``rule`` says in words what feature j of the target is; "next" is feature j + 1, and after the last comes the
    first.
    """

    name: str
    rule: str
    target: Callable[[FloatArray], FloatArray]


def _next(x: FloatArray) -> FloatArray:
    return np.roll(x, -1, axis=-1)


def _waves(x: FloatArray) -> FloatArray:
    return math.sqrt(2) * np.sin(x + _next(x))


def _products(x: FloatArray) -> FloatArray:
    return x * _next(x)


def _folds(x: FloatArray) -> FloatArray:
    return np.abs(x - _next(x)) / math.sqrt(2)


# For features from the standard normal distribution the mean square of every target is 1 (waves: 0.98), so that a
# block which always answers 0 has a mean squared error of about 1.
TASKS = {
    task.name: task
    for task in (
        Task("waves", "sine of the sum of this feature and the next, times the root of 2", _waves),
        Task("products", "product of this feature and the next", _products),
        Task("folds", "distance of this feature from the next, divided by the root of 2", _folds),
    )
}


@dataclass(frozen=True, eq=False)
class Sample:
    """Tokens for training and tokens held out, each (number of tokens, d_model), with their targets."""

    x: FloatArray
    target: FloatArray
    held_out_x: FloatArray
    held_out_target: FloatArray


def draw_sample(task: Task, seed: int, *, d_model: int = 6, tokens: int = 256, held_out: int = 1024) -> Sample:
    """Draw the tokens of one run from the standard normal distribution and give them the task's targets."""
    rng = np.random.default_rng([seed, _TOKENS])
    x, held_out_x = rng.standard_normal((tokens, d_model)), rng.standard_normal((held_out, d_model))
    return Sample(x, task.target(x), held_out_x, task.target(held_out_x))


def draw_batches(seed: int, *, steps: int = 500, batch: int = 32, tokens: int = 256) -> NDArray[np.intp]:
    """Draw which tokens each training step of one run uses: row numbers of the sample, (steps, batch)."""
    return np.random.default_rng([seed, _ORDER]).integers(tokens, size=(steps, batch), dtype=np.intp)


@dataclass(frozen=True)
class Blueprint:
    """What a block is before any weight is drawn: its two widths, its activation, plain or gated.

    A plain block gets biases, which start at 0; a gated block has none. Weights start with a standard deviation
    of one over the root of the number of inputs, those of the first layer times ``scale``.
    """

    d_model: int
    d_ff: int
    activation: str | Activation = "tanh"
    gated: bool = False
    scale: float = 1.0

    def start(self, seed: int) -> FeedForward | GatedFeedForward:
        """Make a block with the starting weights of one run."""
        rng = np.random.default_rng([seed, _WEIGHTS])
        first = self.scale * rng.standard_normal((2, self.d_model, self.d_ff)) / np.sqrt(self.d_model)
        last = rng.standard_normal((self.d_ff, self.d_model)) / np.sqrt(self.d_ff)
        if self.gated:
            return GatedFeedForward(first[0], first[1], last, self.activation)
        return FeedForward(first[0], np.zeros(self.d_ff), last, np.zeros(self.d_model), self.activation)


def arrays(holder: Any) -> dict[str, FloatArray]:
    """The arrays of a block, or of its gradients, by their names; what the block lacks is left out."""
    values = {field.name: getattr(holder, field.name) for field in fields(holder)}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def mean_squared_error(y: ArrayLike, target: ArrayLike) -> float:
    """Mean over all tokens and features of the squared difference between output and target."""
    return float(np.mean((as_float(y) - as_float(target)) ** 2))


class Adam:
    """The Adam optimizer: a step against the gradient, sized anew for every single parameter.

    It keeps a running mean of the gradient and one of its square, and moves each parameter by ``rate`` times the
    first over the root of the second. ``rate`` is one number, or one for each entry of the parameters' first
    axis. Source: Kingma and Ba (2015), algorithm 1.
    """

    def __init__(
        self, rate: ArrayLike, *, mean_decay: float = 0.9, square_decay: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.rate = as_float(rate)
        self.mean_decay, self.square_decay, self.epsilon = mean_decay, square_decay, epsilon
        self.steps = 0
        self.mean: dict[str, FloatArray] = {}
        self.square: dict[str, FloatArray] = {}

    def step(
        self, parameters: Mapping[str, FloatArray], gradients: Mapping[str, FloatArray]
    ) -> dict[str, FloatArray]:
        """Give the parameters after one step; gradients of anything else are not looked at."""
        self.steps += 1
        moved: dict[str, FloatArray] = {}
        for name, value in parameters.items():
            gradient = gradients[name]
            mean = _blend(self.mean.get(name), gradient, self.mean_decay)
            square = _blend(self.square.get(name), gradient**2, self.square_decay)
            self.mean[name], self.square[name] = mean, square
            # Both running means start at 0; dividing takes that start out of them.
            mean = mean / (1 - self.mean_decay**self.steps)
            square = square / (1 - self.square_decay**self.steps)
            rate = self.rate.reshape(self.rate.shape + (1,) * (value.ndim - self.rate.ndim))
            moved[name] = value - rate * mean / (np.sqrt(square) + self.epsilon)
        return moved


def _blend(before: FloatArray | None, now: FloatArray, decay: float) -> FloatArray:
    if before is None:
        before = np.zeros_like(now)
    return decay * before + (1 - decay) * now


@dataclass(frozen=True, eq=False)
class Training:
    """The losses of several runs and the trained blocks, one for each run.

    ``steps`` (points,) says after how many steps the losses were taken; ``train_loss`` and ``held_out_loss``
    (points, runs) are the mean squared errors on all training tokens and on the tokens held out.
    """

    steps: NDArray[np.intp]
    train_loss: FloatArray
    held_out_loss: FloatArray
    blocks: tuple[FeedForward | GatedFeedForward, ...]


def train(
    blueprint: Blueprint,
    task: Task,
    seeds: Sequence[int],
    *,
    rate: ArrayLike = 0.03,
    steps: int = 500,
    batch: int = 32,
    tokens: int = 256,
    every: int = 20,
) -> Training:
    """Train one block for each seed with Adam on the mean squared error; take the losses ``every`` few steps.

    ``rate`` is one number for all runs or one for each. All runs are computed together: every array gets the run
    as its first axis, and ``@`` multiplies the last two. No run influences another.
    """
    runs = np.arange(len(seeds))[:, np.newaxis]
    samples = [draw_sample(task, seed, d_model=blueprint.d_model, tokens=tokens) for seed in seeds]
    sample = Sample(**_stack(samples))
    batches = np.stack([draw_batches(seed, steps=steps, batch=batch, tokens=tokens) for seed in seeds])
    blocks = [blueprint.start(seed) for seed in seeds]
    weights, sigma = _stack(blocks), blocks[0].sigma
    optimizer = Adam(np.broadcast_to(as_float(rate), len(seeds)))

    taken, train_loss, held_out_loss = [], [], []
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            taken.append(step)
            train_loss.append(_losses(weights, sigma, sample.x, sample.target))
            held_out_loss.append(_losses(weights, sigma, sample.held_out_x, sample.held_out_target))
        if step < steps:
            rows = batches[:, step]
            gradients = _gradients(weights, sigma, sample.x[runs, rows], sample.target[runs, rows])
            weights = optimizer.step(weights, gradients)
    trained = [
        replace(block, **{name: value[run] for name, value in weights.items()}) for run, block in enumerate(blocks)
    ]
    return Training(np.array(taken, dtype=np.intp), np.stack(train_loss), np.stack(held_out_loss), tuple(trained))


def _stack(holders: Sequence[Any]) -> dict[str, FloatArray]:
    """The arrays of several blocks or samples by name, with the run as first axis."""
    return {name: np.stack([arrays(holder)[name] for holder in holders]) for name in arrays(holders[0])}


def _losses(weights: Mapping[str, FloatArray], sigma: Activation, x: FloatArray, target: FloatArray) -> FloatArray:
    """The mean squared error of every run, (runs,)."""
    if "W_g" in weights:
        y = (sigma.function(x @ weights["W_g"]) * (x @ weights["W_u"])) @ weights["W_d"]
    else:
        h = sigma.function(x @ weights["W_1"] + weights["b_1"][:, np.newaxis])
        y = h @ weights["W_2"] + weights["b_2"][:, np.newaxis]
    result: FloatArray = np.mean((y - target) ** 2, axis=(1, 2))
    return result


def _gradients(
    weights: Mapping[str, FloatArray], sigma: Activation, x: FloatArray, target: FloatArray
) -> dict[str, FloatArray]:
    """Gradients of the mean squared error of every run: ``ffn.gradients`` with the run as first axis."""
    share = 2 / target[0].size
    h: FloatArray
    if "W_g" in weights:
        u_g, up = x @ weights["W_g"], x @ weights["W_u"]
        gate = sigma.function(u_g)
        h = gate * up
        grad_y = share * (h @ weights["W_d"] - target)
        grad_h = grad_y @ weights["W_d"].mT
        grad_u_g, grad_up = grad_h * up * sigma.derivative(u_g), grad_h * gate
        return {"W_g": x.mT @ grad_u_g, "W_u": x.mT @ grad_up, "W_d": h.mT @ grad_y}
    u = x @ weights["W_1"] + weights["b_1"][:, np.newaxis]
    h = sigma.function(u)
    grad_y = share * (h @ weights["W_2"] + weights["b_2"][:, np.newaxis] - target)
    grad_u = (grad_y @ weights["W_2"].mT) * sigma.derivative(u)
    return {"W_1": x.mT @ grad_u, "b_1": grad_u.sum(axis=1), "W_2": h.mT @ grad_y, "b_2": grad_y.sum(axis=1)}
