"""Make the data of the unit `capstone`: one sentence in the first layer of MiniLM, with an eighth of the hidden units.

    python -m tools.make_capstone_slice            writes solutions/capstone/layer.npz
    python -m tools.make_capstone_slice --check    compares it with what would be written

The weights are those of the checkpoint, unchanged (float32, stored as (out, in)). What leaves the layer was computed
by another implementation (transformers on PyTorch, see ffn/minilm_vectors.npz). What the block receives, what it
returns and what the left-out units add to that are computed here with ffn, in float64, and rounded to float32 at
the end, so that another processor gives the same bytes.
"""

import io
import sys
import zipfile
from dataclasses import replace
from typing import Any

import numpy as np

from ffn.checkpoints import Affine, EncoderLayer, load_minilm, minilm_reference
from tools.places import ROOT

__all__ = ["TARGET", "archive", "layer_arrays"]

TARGET = ROOT / "solutions" / "capstone" / "layer.npz"
LAYER = 0
KEPT_ONE_IN = 8
TOLERANCE = 1e-5


def _exact(layer: EncoderLayer) -> EncoderLayer:
    """The same layer in float64."""

    def wide(affine: Affine) -> Affine:
        return Affine(affine.W.astype(float), affine.b.astype(float))

    block = layer.feed_forward
    biases = [None if b is None else b.astype(float) for b in (block.b_1, block.b_2)]
    return replace(
        layer,
        query=wide(layer.query),
        key=wide(layer.key),
        value=wide(layer.value),
        output=wide(layer.output),
        feed_forward=replace(
            block, W_1=block.W_1.astype(float), b_1=biases[0], W_2=block.W_2.astype(float), b_2=biases[1]
        ),
    )


def layer_arrays() -> dict[str, Any]:
    """The arrays of the slice by name.

    Raises:
        ValueError: kept and left-out units together do not give the reference's output.
    """
    minilm, reference = load_minilm(), minilm_reference()
    layer, states = _exact(minilm.layers[LAYER]), reference["hidden_states"]
    block = layer.feed_forward
    x = layer.attend(states[LAYER].astype(float)).astype(np.float32)
    trace = block.trace(x.astype(float))

    # Every eighth unit, from such a start that the one with the largest weight of W_2 is among them.
    largest = np.unravel_index(np.abs(block.W_2).argmax(), block.W_2.shape)[0]
    units = np.arange(int(largest) % KEPT_ONE_IN, block.d_ff, KEPT_ONE_IN)
    left_out = np.setdiff1d(np.arange(block.d_ff), units)
    others = trace.h[..., left_out] @ block.W_2[left_out]

    place = f"encoder.layer.{LAYER}"
    stored = {name: minilm.stored[f"{place}.{name}"].array() for name in _names(place, minilm.stored)}
    arrays = {
        "tokens": np.array(minilm.tokenizer.pieces(str(reference["sentences"][0]))),
        "units": units.astype("<i8"),
        "input": x,
        "expand.weight": stored["intermediate.dense.weight"][units],
        "expand.bias": stored["intermediate.dense.bias"][units],
        "project.weight": stored["output.dense.weight"][:, units],
        "project.bias": stored["output.dense.bias"],
        "others": others.astype(np.float32),
        "block": trace.y.astype(np.float32),
        "norm.gain": stored["output.LayerNorm.weight"],
        "norm.bias": stored["output.LayerNorm.bias"],
        "norm.epsilon": np.array(layer.output_norm.epsilon),
        "output": states[LAYER + 1],
    }
    _require_agreement(arrays)
    return arrays


def _names(place: str, stored: Any) -> list[str]:
    """What the file calls the arrays of one layer's block and of the norm after it."""
    wanted = ("intermediate.", "output.")
    return [n.removeprefix(f"{place}.") for n in stored if n.startswith(tuple(f"{place}.{w}" for w in wanted))]


def _require_agreement(arrays: dict[str, Any]) -> None:
    """Compose the slice once more, from its own arrays alone, and hold it against the reference."""
    from ffn import gelu, layer_norm

    h = gelu(arrays["input"] @ arrays["expand.weight"].T + arrays["expand.bias"])
    y = h @ arrays["project.weight"].T + arrays["others"] + arrays["project.bias"]
    out = layer_norm(
        arrays["input"] + y, arrays["norm.gain"], arrays["norm.bias"], epsilon=float(arrays["norm.epsilon"])
    )
    worst = float(np.abs(out - arrays["output"]).max())
    if worst > TOLERANCE:
        raise ValueError(f"the slice differs from the reference by {worst:.2g}; at most {TOLERANCE} is allowed.")


def archive(arrays: dict[str, Any]) -> bytes:
    """An .npz of the arrays, uncompressed and without dates: the same arrays give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as target:
        for name, array in arrays.items():
            member = io.BytesIO()
            plain = np.array(array, order="C")
            np.lib.format.write_array(member, plain, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            target.writestr(entry, member.getvalue())
    return stream.getvalue()


def main() -> int:
    """Write the slice, or compare it with the one that is there."""
    made = archive(layer_arrays())
    if "--check" in sys.argv[1:]:
        same = TARGET.is_file() and TARGET.read_bytes() == made
        print(f"{TARGET}: {'as it would be written' if same else 'differs from what would be written'}")
        return 0 if same else 1
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(made)
    print(f"{TARGET}: {len(made):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
