"""Stands in for the two checkpoints of ffn.checkpoints in a live lesson, where only a slice of them is at hand.

The slice is one sentence in layer 0 of MiniLM with an eighth of the hidden units (``layer.npz``), and the list of all
arrays of both files (``checkpoints.json``), which is enough to count them. A cell that asks for anything else is left
out, and says so.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from live_runner import LeftOut

from ffn import FeedForward, checkpoints

__all__ = ["install"]


class _Slice:
    """The files of the slice, and whether the cell that runs has used what they hold of the weights."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "layer.npz", allow_pickle=False) as arrays:
            self.arrays = {name: arrays[name] for name in arrays.files}
        self.lists = json.loads((folder / "checkpoints.json").read_text(encoding="utf-8"))
        self.touched = False

    def take(self, name: str) -> Any:
        self.touched = True
        return self.arrays[name]

    def note(self) -> str:
        """What the cell that has just run took from the slice; "" for nothing."""
        touched, self.touched = self.touched, False
        units = len(self.arrays["units"])
        return f"Ran on the slice: layer 0 of MiniLM with {units} of its 1536 hidden units." if touched else ""


def _leave_out(what: str) -> Any:
    raise LeftOut(f"Left out in the browser: this cell needs {what}, which the slice does not hold.")


class _Absent:
    """Something that the slice lacks: whatever is asked of it leaves the cell out, apart from what is known."""

    def __init__(self, what: str, **known: Any) -> None:
        vars(self).update(known, _what=what)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _leave_out(self._what)

    def __call__(self, *_: object, **__: object) -> Any:
        return _leave_out(self._what)

    __getitem__ = __iter__ = __len__ = __array__ = __call__


class _Listed(_Absent):
    """An array known by its place in the list, and by the part of it that is in the slice, if any."""

    def __init__(self, name: str, shape: list[int], kind: str, nbytes: int, part: Any = None) -> None:
        size = int(np.prod(shape))
        super().__init__(f"the numbers of {name}", shape=tuple(shape), kind=kind, nbytes=nbytes, size=size)
        if part is not None:
            self.array = part


_PARTS = {
    "encoder.layer.0.intermediate.dense.weight": "expand.weight",
    "encoder.layer.0.intermediate.dense.bias": "expand.bias",
    "encoder.layer.0.output.dense.weight": "project.weight",
    "encoder.layer.0.output.dense.bias": "project.bias",
    "encoder.layer.0.output.LayerNorm.weight": "norm.gain",
    "encoder.layer.0.output.LayerNorm.bias": "norm.bias",
}


def _stored(held: _Slice, model: str) -> dict[str, Any]:
    """The arrays of a model by name, as its list gives them."""
    found = {}
    for name, entry in held.lists[model].items():
        part = _PARTS.get(name) if model == "minilm" else None
        found[name] = _Listed(name, *entry, part and (lambda part=part: held.take(part)))
    return found


class _Tokenizer(_Absent):
    """Knows the sentences whose token numbers come with ffn."""

    def __init__(self, held: _Slice, reference: dict[str, Any]) -> None:
        super().__init__("MiniLM's vocabulary")
        self._pieces = {str(reference["sentences"][0]): [str(piece) for piece in held.arrays["tokens"]]}
        rows = zip(reference["sentences"], reference["token_ids"], strict=True)
        self._numbers = {str(text): [int(token) for token in row if token >= 0] for text, row in rows}

    def __call__(self, text: str) -> Any:
        return self._numbers.get(text) or _leave_out(self._what)

    def pieces(self, text: str) -> Any:
        return self._pieces.get(text) or _leave_out(self._what)


class _Layer(_Absent):
    """Layer 0: the block with the units of the slice, the norm after it, and what it receives for one sentence."""

    def __init__(self, held: _Slice, embedded: Any) -> None:
        super().__init__("the whole layer 0 of MiniLM")
        self._held, self._embedded = held, embedded

    @property
    def feed_forward(self) -> FeedForward:
        names = ("expand.weight", "expand.bias", "project.weight", "project.bias")
        W_1, b_1, W_2, b_2 = (self._held.take(name).T for name in names)
        return FeedForward(W_1, b_1, W_2, b_2, "gelu")

    @property
    def output_norm(self) -> checkpoints.LayerNorm:
        gain, bias, epsilon = (self._held.take(f"norm.{name}") for name in ("gain", "bias", "epsilon"))
        return checkpoints.LayerNorm(gain, bias, float(epsilon))

    def attend(self, x: Any) -> Any:
        known = np.shape(x) == self._embedded.shape and np.array_equal(x, self._embedded)
        return self._held.take("input") if known else _leave_out("MiniLM's attention")


def _count(stored: dict[str, Any], before: str) -> int:
    """How many layers a model has: the numbers that stand after a text in the names of its arrays."""
    return len({name.removeprefix(before).partition(".")[0] for name in stored if name.startswith(before)})


def _minilm(held: _Slice) -> _Absent:
    stored = _stored(held, "minilm")
    reference = checkpoints.minilm_reference()
    states, tokenizer = reference["hidden_states"], _Tokenizer(held, reference)
    (first,) = list(tokenizer._numbers.values())[:1]

    layers = _count(stored, "encoder.layer.")

    def known(token_ids: Any) -> bool:
        return list(token_ids) == first

    return _Absent(
        "the whole of MiniLM",
        stored=stored,
        tokenizer=tokenizer,
        token_embedding=stored["embeddings.word_embeddings.weight"],
        layers=(_Layer(held, states[0]), *(_Absent(f"layer {n} of MiniLM") for n in range(1, layers))),
        embed=lambda token_ids: states[0] if known(token_ids) else _leave_out("MiniLM's embeddings"),
        hidden_states=lambda token_ids: list(states) if known(token_ids) else _leave_out("all layers of MiniLM"),
    )


def _smollm2(held: _Slice) -> _Absent:
    stored = _stored(held, "smollm2")
    return _Absent("the weights of SmolLM2", stored=stored, layer_count=_count(stored, "blk."))


def install(page: Any, folder: str) -> None:
    """Let a page's cells load the slice in place of the checkpoints."""
    held = _Slice(Path(folder))
    vars(checkpoints).update(load_minilm=lambda: _minilm(held), load_smollm2=lambda: _smollm2(held))
    page.used = held.note
