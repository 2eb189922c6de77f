"""Chance of a test."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rng() -> np.random.Generator:
    """The same for every test."""
    return np.random.default_rng(7)
