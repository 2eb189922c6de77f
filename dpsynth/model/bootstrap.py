"""Parametric bootstrap: how far the fitted model would move under fresh noise.

Takes the fitted model for the truth, adds noise of each measurement's own scale to its
marginals, and fits again (Efron and Tibshirani 1993, chapter 6). Post-processing only: the
noise here protects nobody, so an ordinary generator serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsynth.domain.measurement import Measurement
from dpsynth.model.estimation import Fit, estimate
from dpsynth.model.markov_random_field import MarkovRandomField


def _noisy_again(model: MarkovRandomField, measurement: Measurement, rng: np.random.Generator) -> Measurement:
    if measurement.noise == "none":
        return measurement
    truth = model.marginal(measurement.clique)
    if measurement.query is not None:
        truth = measurement.query.reshape(len(measurement.query), -1) @ truth.reshape(-1)
    if measurement.noise == "laplace":
        draws = rng.laplace(0.0, measurement.stddev / np.sqrt(2), truth.shape)
    else:
        draws = rng.normal(0.0, measurement.stddev, truth.shape)
    values = np.rint(truth + draws).astype(np.int64)
    return replace(measurement, values=values)


def refits(
    fit: Fit, measurements: Sequence[Measurement], replicates: int, rng: np.random.Generator
) -> tuple[MarkovRandomField, ...]:
    """Models fitted to fresh noise around a fitted model.

    Args:
        fit: the fitted model, and how it was fitted.
        measurements: what it was fitted to; only cliques, queries and scales are used.
        replicates: how many refits.
        rng: generator for this post-processing step.
    """
    found = []
    for _ in range(replicates):
        again = [_noisy_again(fit.model, m, rng) for m in measurements]
        refit = estimate(
            fit.model.tree.domain,
            again,
            total=fit.total,
            prior_rows=fit.prior_rows,
            zeros=fit.zeros,
            start=fit,
        )
        found.append(refit.model)
    return tuple(found)
