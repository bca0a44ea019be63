"""Fixtures for the tests of the helper module, and how Hypothesis looks for counterexamples."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

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
