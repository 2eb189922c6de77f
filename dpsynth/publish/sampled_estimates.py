"""Figures of all rows from answers about a Poisson sample of the units: counts over the rate, with its error.

With s rows of a cell in a sample of rate q, s/q estimates the rows of the table. A sum of cells times weights
w has the variance of its noise, and that of sampling: the sum over units of (the unit's rows times w)^2 times
q (1 - q). A unit has at most k rows, so by the inequality of Cauchy and Schwarz that is at most (1 - q) k
times the sum of w^2 s, s being expected rows in the sample. Both are divided by q^2.

Invariant: errors count noise and sampling; the answers and the model stay in rows of the sample.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from dpsynth.domain.domain import Clique
from dpsynth.publish.estimates import Counts, Means, Numbers, Source, Unbiased


@dataclass(frozen=True)
class SampledUnits:
    """A Poisson sample of the units.

    Attributes:
        rate: probability with which a unit is in it.
        rows_a_unit: the most rows of a unit that count.
    """

    rate: float
    rows_a_unit: int

    def variance(self, weights: Numbers, rows: Numbers) -> Numbers:
        """Variance by sampling of weighted sums along the last axis, in rows of the sample squared.

        A cell counts one row more than it is estimated to have, since noise may have hidden it.
        """
        expected = np.maximum(rows, 0.0) + 1.0
        return (1.0 - self.rate) * self.rows_a_unit * np.asarray((weights**2 * expected).sum(axis=-1))

    def to_json(self) -> dict[str, object]:
        """The manifest's entry."""
        return {"rate": self.rate, "rows_a_unit": self.rows_a_unit}

    @staticmethod
    def from_json(found: object) -> SampledUnits | None:
        """The value that ``to_json`` wrote; None for null.

        Raises:
            KeyError, TypeError, ValueError: ``to_json`` did not write it.
        """
        if found is None:
            return None
        facts = cast("Mapping[str, object]", found)
        rate, rows = float(str(facts["rate"])), int(str(facts["rows_a_unit"]))
        if not 0 < rate < 1 or rows < 1:
            raise ValueError("a sample has a rate between 0 and 1, and rows")
        return SampledUnits(rate, rows)


@dataclass(frozen=True, eq=False)
class OfAllRows:
    """The figures of a source that counts rows of the sample, as figures of all rows."""

    source: Source
    sampled: SampledUnits

    def counts(self, clique: Clique) -> Counts:
        """Counts over the rate; shares as they are."""
        found, rate = self.source.counts(clique), self.sampled.rate
        each = self.sampled.variance(np.ones((found.rows.size, 1)), found.rows[:, None])
        total = max(float(found.rows.sum()), 1.0)
        share = np.clip(found.share, 0.0, 1.0)
        apart = (1.0 - share) ** 2 * share + share**2 * (1.0 - share) + 1.0 / total
        of_share = (1.0 - rate) * self.sampled.rows_a_unit * apart / total
        return replace(
            found,
            rows=found.rows / rate,
            error=np.sqrt(found.error**2 + each) / rate,
            share_error=np.sqrt(found.share_error**2 + of_share),
        )

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means, with the error of the sample; a value may lie anywhere in its bin."""
        found = self.source.means(clique, centres, half_widths)
        cells = self.source.counts(clique).rows.reshape(len(found.mean), -1)[:, : len(centres)]
        far = np.hypot(centres - found.mean[:, None], half_widths)
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = self.sampled.variance(far, cells) / found.rows**2
        return replace(found, rows=found.rows / self.sampled.rate, error=np.sqrt(found.error**2 + spread))


@dataclass(frozen=True, eq=False)
class UnbiasedOfAllRows:
    """Unbiased estimates of all rows from those of the sample."""

    direct: Unbiased
    sampled: SampledUnits

    def covers(self, clique: Clique) -> bool:
        """True if a clique's columns were measured together."""
        return self.direct.covers(clique)

    def marginal(self, clique: Clique) -> Numbers:
        """Estimated counts of all rows."""
        return self.direct.marginal(clique) / self.sampled.rate

    def variance(self, clique: Clique, weights: Numbers) -> float:
        """Variance of a weighted sum, by noise and by sampling."""
        of_sample = self.sampled.variance(np.ravel(weights), np.ravel(self.direct.marginal(clique)))
        return (self.direct.variance(clique, weights) + float(of_sample)) / self.sampled.rate**2

    def cell_variance(self, clique: Clique) -> float:
        """The largest variance of a cell."""
        most = np.ravel(self.direct.marginal(clique)).max(keepdims=True)
        of_sample = float(self.sampled.variance(np.ones(1), most))
        return (self.direct.cell_variance(clique) + of_sample) / self.sampled.rate**2
