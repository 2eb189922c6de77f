"""Noise and choices that are the same each time, for tests of what a release is good for.

A test of accuracy would fail by chance now and then. Tests of the guarantee never use this: theirs is real.
"""

import random
import secrets

import numpy as np
import pytest
from numpy.typing import NDArray

from dpsynth.curator import samplers

Counts = NDArray[np.int64]


def seed_noise(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Draw noise, choices, named values and the seeds of releases from one seed."""
    rng = np.random.default_rng(seed)

    def gaussian(values: Counts, sigma: float) -> Counts:
        return values + np.rint(rng.normal(0, sigma, values.shape)).astype(np.int64)

    def laplace(values: Counts, scale: float) -> Counts:
        return values + np.rint(rng.laplace(0, scale, values.shape)).astype(np.int64)

    def chosen(scores: Counts, scale: float) -> int:
        return int(np.argmax(scores + rng.gumbel(0, scale, scores.shape)))

    monkeypatch.setattr(samplers, "add_gaussian", gaussian)
    monkeypatch.setattr(samplers, "add_laplace", laplace)
    monkeypatch.setattr(samplers, "choose_index", chosen)
    monkeypatch.setattr(secrets, "randbits", random.Random(seed).getrandbits)
