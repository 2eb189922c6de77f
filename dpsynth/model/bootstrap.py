"""Parametric bootstrap: the variation of the fitted model under fresh noise.

The fitted model stands for the truth. Noise of each measurement's own scale is added to its
marginals, and the model is fitted again to the denoised answers (Efron and Tibshirani 1993, chapter 6).
This is post-processing: the noise here protects nobody, so an ordinary generator is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpsynth.columns.measurement import Observation
from dpsynth.model.denoising import denoised_answers, posteriors
from dpsynth.model.estimation import Fit, estimate
from dpsynth.model.expansion import Expansion
from dpsynth.model.markov_random_field import MarkovRandomField


def _noisy_again(model: MarkovRandomField, measurement: Observation, rng: np.random.Generator) -> Observation:
    """A measurement with the model's marginal for the truth, and fresh noise."""
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
    """Models that are fitted to fresh noise around a fitted model.

    Args:
        fit: the fit of the model.
        measurements: the measurements of that fit; only cliques, queries and scales are used.
        replicates: number of refits.
        rng: generator for this post-processing step.
        expansion: for a model of groups, its expansion to values. Then ``measurements`` leave out the
            expansion's ``sums``, and the refits are models of values.
    """
    found = []
    truth = expansion.model(fit.model) if expansion else fit.model
    for _ in range(replicates):
        again = [_noisy_again(fit.model, m, rng) for m in measurements]
        again = denoised_answers(again, posteriors(again, fit.model))
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
