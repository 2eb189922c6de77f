"""Figures of the model whose errors follow from the exam, so that they hold whatever the model lacks.

The exam measures the L1 distance D of the synthetic table from the private one in a clique. It says how large
the errors of all cells are together: noise, shrinkage, and relations that the model doesn't have. The model's
own counts n lie as far away, but for the rounding to whole rows. The distance is divided among the cells as
the sizes of their errors are expected to be: cell i gets D sqrt(n_i + 1) / sum_j sqrt(n_j + 1). Errors that
are normal with mean size e have the standard deviation e sqrt(pi/2).

The errors of a group's cells may be random, or all of them may shift the group's mean in one direction, as
they do where a relation is missing. The variance of a mean is that of random errors, and as much again as the
largest shift of errors of the mean sizes.

The sizes are a model of the errors, not a bound; ``benchmarks/coverage.py`` holds the limits against tables.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from dpsynth.domain.domain import Clique
from dpsynth.publish.estimates import LEAST_ERRORS, LEAST_ROWS, Z95, Counts, Marginals, Means, Numbers, ratio

Distances = Mapping[frozenset[str], float]
"""For the columns of a clique the L1 distance, in rows, that the errors of its cells add up to."""


@dataclass(frozen=True, eq=False)
class ExaminedFigures:
    """Figures of the fitted model with errors by the exam, for cliques that were examined."""

    model: Marginals
    distances: Distances

    def covers(self, clique: Clique) -> bool:
        """True if a clique was examined."""
        return frozenset(clique) in self.distances

    def counts(self, clique: Clique) -> Counts:
        """Counts and shares of the model."""
        rows = self.model.marginal(clique).ravel()
        error, total = self._sizes(clique).ravel() * sqrt(pi / 2), float(rows.sum())
        return Counts(rows, error, ratio(rows, total, LEAST_ROWS), ratio(error, total, LEAST_ROWS))

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means of the model; none where a group's rows can't be told from none."""
        cells = np.atleast_2d(self.model.marginal(clique))[:, : len(centres)]
        sizes = np.atleast_2d(self._sizes(clique))[:, : len(centres)]
        rows = cells.sum(axis=1)
        least = np.maximum(LEAST_ROWS, LEAST_ERRORS * np.sqrt(pi / 2 * (sizes**2).sum(axis=1)))
        shown = np.where(rows >= least, rows, 0.0)
        mean = ratio(cells @ centres, shown, LEAST_ROWS)
        weights = ratio(centres - mean[:, None], shown[:, None], LEAST_ROWS)
        grouping_error = ratio(cells @ half_widths, shown, LEAST_ROWS)
        return Means(mean, _deviation(weights, sizes), rows, grouping_error)

    def deviation(self, clique: Clique, weights: Numbers) -> Numbers:
        """Standard deviation of weighted sums of cells, float64[groups].

        Args:
            clique: an examined one.
            weights: float64[groups, cells], of the cells of each group, all its cells in the clique's order.
        """
        return _deviation(weights, self._sizes(clique).reshape(weights.shape))

    def _sizes(self, clique: Clique) -> Numbers:
        """Expected size of the error of each cell, in rows, of the clique's shape."""
        parts = np.sqrt(np.maximum(self.model.marginal(clique), 0.0) + 1.0)
        return np.asarray(self.distances[frozenset(clique)] * parts / parts.sum())


def _deviation(weights: Numbers, sizes: Numbers) -> Numbers:
    """Standard deviation of weighted sums of errors, if these are random or shift a sum in one direction."""
    random = pi / 2 * (weights**2 * sizes**2).sum(axis=1)
    shift = (np.abs(weights) * sizes).sum(axis=1) / Z95
    return np.asarray(np.sqrt(random + shift**2))
