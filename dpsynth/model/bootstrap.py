"""Parametric bootstrap: how far the fitted model would move under fresh noise.

Takes the fitted model for the truth, adds noise of each measurement's own scale to its
marginals, and fits again (Efron and Tibshirani 1993, chapter 6). Post-processing only: the
noise here protects nobody, so an ordinary generator serves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dpsynth.domain.measurement import Measurement
from dpsynth.model.estimation import estimate, potentials_of
from dpsynth.model.markov_random_field import MarkovRandomField

_TOLERANCE = 3e-3
"""Where refits may stop: a tighter one moved their spread by 1 % and doubled their time."""


def _noisy_again(model: MarkovRandomField, measurement: Measurement, rng: np.random.Generator) -> Measurement:
    if measurement.noise == "none":
        return measurement
    truth = model.marginal(measurement.clique)
    if measurement.noise == "laplace":
        draws = rng.laplace(0.0, measurement.stddev / np.sqrt(2), truth.shape)
    else:
        draws = rng.normal(0.0, measurement.stddev, truth.shape)
    values = np.rint(truth + draws).astype(np.int64)
    return Measurement(measurement.clique, values, measurement.noise, measurement.scale)


def refits(
    model: MarkovRandomField,
    measurements: Sequence[Measurement],
    replicates: int,
    rng: np.random.Generator,
) -> tuple[MarkovRandomField, ...]:
    """Models fitted to fresh noise around a fitted model.

    Args:
        model: the fitted model.
        measurements: what it was fitted to; only cliques and scales are used.
        replicates: how many refits.
        rng: generator for this post-processing step.
    """
    domain, start = model.tree.domain, potentials_of(model.tree, model.beliefs)
    found = []
    for _ in range(replicates):
        again = [_noisy_again(model, m, rng) for m in measurements]
        found.append(estimate(domain, again, start=start, tolerance=_TOLERANCE).model)
    return tuple(found)
