"""Fixtures for the tests of the helper module, and how Hypothesis looks for counterexamples."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from ffn.checkpoints import MiniLM, SmolLM2, load_minilm, load_smollm2

# Runs on a shared machine must neither fail for a slow moment nor differ from one another.
settings.register_profile("ffn", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ffn")


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture(scope="session")
def torch_vectors() -> Mapping[str, NDArray[np.float64]]:
    """PyTorch's results by name, as make_torch_vectors.py stored them."""
    with np.load(Path(__file__).with_name("torch_vectors.npz"), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.fixture(scope="session")
def checkpoint_vectors() -> Mapping[str, NDArray[Any]]:
    """What transformers computes with both real models, as make_checkpoint_vectors.py stored it."""
    with np.load(Path(__file__).with_name("checkpoint_vectors.npz"), allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


@pytest.fixture(scope="session")
def minilm() -> MiniLM:
    return load_minilm()


@pytest.fixture(scope="session")
def smollm2() -> SmolLM2:
    return load_smollm2()
