"""Parametric bootstrap: how far the fitted model would move under fresh noise.

Takes the fitted model for the truth, adds noise of each measurement's own scale to its
marginals, and fits again (Efron and Tibshirani 1993, chapter 6). Post-processing only: the
noise here protects nobody, so an ordinary generator serves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsynth.domain.measurement import Observation
from dpsynth.model.estimation import Fit, estimate
from dpsynth.model.expansion import Expansion
from dpsynth.model.markov_random_field import MarkovRandomField


def _noisy_again(model: MarkovRandomField, measurement: Observation, rng: np.random.Generator) -> Observation:
    if measurement.noise == "none":
        return measurement
    truth, spread = model.marginal(measurement.clique), np.sqrt(measurement.variances)
    if measurement.query is not None:
        truth = measurement.query.reshape(len(measurement.query), -1) @ truth.reshape(-1)
    if measurement.noise == "laplace":
        draws = rng.laplace(0.0, spread / np.sqrt(2), truth.shape)
    else:
        draws = rng.normal(0.0, spread, truth.shape)
    values = np.rint(truth + draws).astype(np.int64)
    return replace(measurement, values=values)


def refits(
    fit: Fit,
    measurements: Sequence[Observation],
    replicates: int,
    rng: np.random.Generator,
    expansion: Expansion | None = None,
) -> tuple[MarkovRandomField, ...]:
    """Models fitted to fresh noise around a fitted model.

    Args:
        fit: the fitted model, and how it was fitted.
        measurements: what it was fitted to; only cliques, queries and scales are used.
        replicates: how many refits.
        rng: generator for this post-processing step.
        expansion: for a model of groups, how it becomes one of values. Then ``measurements`` are
            what it was fitted to besides the expansion's ``sums``, and refits are of values.
    """
    found = []
    truth = expansion.model(fit.model) if expansion else fit.model
    for _ in range(replicates):
        again = [_noisy_again(fit.model, m, rng) for m in measurements]
        afresh = None
        if expansion:
            singles = tuple(_noisy_again(truth, m, rng) for m in expansion.singles)
            afresh = replace(expansion, singles=singles)
            again = [*afresh.sums, *again]
        refit = estimate(
            fit.model.tree.domain,
            again,
            total=fit.total,
            prior_rows=fit.prior_rows,
            zeros=fit.zeros,
            start=fit,
        )
        found.append(afresh.model(refit.model) if afresh else refit.model)
    return tuple(found)
