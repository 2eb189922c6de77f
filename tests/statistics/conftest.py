"""Chance of a test."""

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """The same for every test."""
    return np.random.default_rng(7)
