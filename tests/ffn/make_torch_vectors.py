"""Regenerate torch_vectors.npz, the results of PyTorch that the tests compare ``ffn`` with.

    python3 -m venv /tmp/torchvenv
    /tmp/torchvenv/bin/pip install torch==2.13.0 numpy
    /tmp/torchvenv/bin/python tests/ffn/make_torch_vectors.py

PyTorch (``pip install torch``) is needed here only: the tests read the stored file and neither import torch nor
unpickle anything. The inputs are seeded, so a second run with the same PyTorch gives the same numbers.

Weights are stored as ``torch.nn.Linear`` keeps them, (out, in); ``ffn`` has (in, out), so the tests transpose
weights and their gradients. Results for several activations are stacked along a new first axis, in the order of
the names stored beside them.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

TARGET = Path(__file__).with_name("torch_vectors.npz")

SEED = 20_251
D_MODEL, D_FF = 4, 6
LEADING = (2, 3)  # (batch, sequence)
EPSILON = 1e-5

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "gelu": lambda z: functional.gelu(z, approximate="none"),
    "gelu_tanh": lambda z: functional.gelu(z, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "identity": lambda z: z,
}
GATES = {"GLU": "sigmoid", "bilinear": "identity", "ReGLU": "relu", "GEGLU": "gelu", "SwiGLU": "silu"}


def activation_vectors(dtype: torch.dtype, generator: torch.Generator) -> dict[str, Tensor]:
    """Values and autograd derivatives of every activation, on points from -6 to 6 and no kink among them."""
    width = str(dtype).removeprefix("torch.float")
    z = (12 * torch.rand(48, generator=generator, dtype=torch.float64) - 6).to(dtype).requires_grad_()
    values, derivatives = [], []
    for function in ACTIVATIONS.values():
        value = function(z)
        (derivative,) = torch.autograd.grad(value.sum(), z)
        values.append(value)
        derivatives.append(derivative)
    return {
        f"activation_z_{width}": z,
        f"activation_values_{width}": torch.stack(values),
        f"activation_derivatives_{width}": torch.stack(derivatives),
    }


def norm_vectors(generator: torch.Generator) -> dict[str, Tensor]:
    """LayerNorm and RMSNorm with and without learned vectors, on (batch, sequence, d_model)."""
    x = 3 * torch.randn(*LEADING, D_MODEL, generator=generator, dtype=torch.float64) + 1
    gain = torch.randn(D_MODEL, generator=generator, dtype=torch.float64)
    bias = torch.randn(D_MODEL, generator=generator, dtype=torch.float64)
    width = [D_MODEL]
    return {
        "norm_x": x,
        "norm_gain": gain,
        "norm_bias": bias,
        "norm_epsilon": torch.tensor(EPSILON, dtype=torch.float64),
        "layer_norm": functional.layer_norm(x, width, eps=EPSILON),
        "layer_norm_learned": functional.layer_norm(x, width, gain, bias, eps=EPSILON),
        "rms_norm": functional.rms_norm(x, width, eps=EPSILON),
        "rms_norm_learned": functional.rms_norm(x, width, gain, eps=EPSILON),
    }


def stacked(prefix: str, runs: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """One array for each name, with the runs along the first axis."""
    return {f"{prefix}_{name}": torch.stack([run[name] for run in runs]) for name in runs[0]}


def plain_vectors(generator: torch.Generator) -> dict[str, Tensor]:
    """The plain block and its gradients for every activation, the same weights each time."""
    torch.manual_seed(SEED)
    first, second = nn.Linear(D_MODEL, D_FF, dtype=torch.float64), nn.Linear(D_FF, D_MODEL, dtype=torch.float64)
    x = torch.randn(*LEADING, D_MODEL, generator=generator, dtype=torch.float64).requires_grad_()
    grad_y = torch.randn(*LEADING, D_MODEL, generator=generator, dtype=torch.float64)
    leaves = {
        "x": x,
        "first_weight": first.weight,
        "first_bias": first.bias,
        "second_weight": second.weight,
        "second_bias": second.bias,
    }
    runs = []
    for function in ACTIVATIONS.values():
        y = second(function(first(x)))
        gradients = torch.autograd.grad(y, list(leaves.values()), grad_outputs=grad_y)
        runs.append({"y": y} | {f"grad_{name}": g for name, g in zip(leaves, gradients, strict=True)})
    given = {f"plain_{name}": leaf for name, leaf in leaves.items()}
    return given | {"plain_grad_y": grad_y} | stacked("plain", runs)


def gated_vectors(generator: torch.Generator) -> dict[str, Tensor]:
    """The gated block and its gradients for each of the GLU family, the same weights each time."""
    torch.manual_seed(SEED + 1)
    gate = nn.Linear(D_MODEL, D_FF, bias=False, dtype=torch.float64)
    up = nn.Linear(D_MODEL, D_FF, bias=False, dtype=torch.float64)
    down = nn.Linear(D_FF, D_MODEL, bias=False, dtype=torch.float64)
    x = torch.randn(*LEADING, D_MODEL, generator=generator, dtype=torch.float64).requires_grad_()
    grad_y = torch.randn(*LEADING, D_MODEL, generator=generator, dtype=torch.float64)
    leaves = {"x": x, "gate_weight": gate.weight, "up_weight": up.weight, "down_weight": down.weight}
    runs = []
    for name in GATES.values():
        y = down(ACTIVATIONS[name](gate(x)) * up(x))
        gradients = torch.autograd.grad(y, list(leaves.values()), grad_outputs=grad_y)
        runs.append({"y": y} | {f"grad_{name}": g for name, g in zip(leaves, gradients, strict=True)})
    given = {f"gated_{name}": leaf for name, leaf in leaves.items()}
    return given | {"gated_grad_y": grad_y} | stacked("gated", runs)


def main() -> None:
    """Write the file and say how large it is."""
    generator = torch.Generator().manual_seed(SEED)
    tensors = (
        activation_vectors(torch.float64, generator)
        | activation_vectors(torch.float32, generator)
        | norm_vectors(generator)
        | plain_vectors(generator)
        | gated_vectors(generator)
    )
    arrays = {name: tensor.detach().numpy() for name, tensor in tensors.items()}
    names = {"activation_names": np.array(list(ACTIVATIONS)), "gate_names": np.array(list(GATES))}
    np.savez_compressed(TARGET, torch_version=np.array(torch.__version__), **names, **arrays)
    print(f"{TARGET}: {len(arrays)} arrays, {TARGET.stat().st_size:,} bytes, torch {torch.__version__}")


if __name__ == "__main__":
    main()
