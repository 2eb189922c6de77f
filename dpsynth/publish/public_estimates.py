"""Figures of public marginals, given in the configuration, not asked of the table.

Invariant: a public share has no error. A public number of rows has none either; where the number of rows is
private, counts have the error of its estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from dpsynth.domain.domain import Clique
from dpsynth.domain.public_marginals import PublicMarginals
from dpsynth.publish.estimates import LEAST_ROWS, Counts, Means, Numbers, Unbiased


@dataclass(frozen=True, eq=False)
class PublicFigures:
    """Figures of public marginals; the number of rows from the answers, if it is not public."""

    public: PublicMarginals
    direct: Unbiased

    def _rows(self) -> tuple[float, float]:
        """The number of rows and its standard error."""
        if self.public.rows is not None:
            return float(self.public.rows), 0.0
        return float(self.direct.marginal(())), sqrt(self.direct.cell_variance(()))

    def _shares(self, clique: Clique) -> Numbers:
        shares = self.public.shares(clique)
        assert shares is not None
        return shares

    def counts(self, clique: Clique) -> Counts:
        """Counts and shares of a clique's cells."""
        shares, (rows, error) = self._shares(clique).ravel(), self._rows()
        return Counts(shares * rows, shares * error, shares, np.zeros(shares.shape))

    def means(self, clique: Clique, centres: Numbers, half_widths: Numbers) -> Means:
        """Means, without error but for the width of the values' cells."""
        rows, _ = self._rows()
        cells = np.atleast_2d(self._shares(clique))[:, : len(centres)]
        among = cells.sum(axis=1)
        weights = np.full(cells.shape, np.nan)
        np.divide(cells, among[:, None], out=weights, where=(among * rows >= LEAST_ROWS)[:, None])
        mean, grouping_error = weights @ centres, weights @ half_widths
        return Means(mean, np.where(np.isnan(mean), np.nan, 0.0), among * rows, grouping_error)


def cautions_with_public_marginals(public: PublicMarginals) -> tuple[str, ...]:
    """Cautions on public marginals, as sentences."""
    if not public.marginals:
        return ()
    named = "; ".join(" with ".join(m.clique) for m in public.marginals)
    rows = "" if public.rows is None else f" So is the number of rows, {public.rows:,}."
    return (
        "Some numbers were stated beforehand as public knowledge, and not asked of the private table: those "
        f"of {named}.{rows} The guarantee is not about them. Tables that are “known” repeat them, and the "
        "model and the synthetic table were made to agree with them. If they are wrong of the private table, "
        "so are those tables, and what leans on them.",
    )
