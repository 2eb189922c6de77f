"""Exact figures of the rows that a release used, for each published table of statistics.

Figures of counts alone are computed as the published ones are, from exact counts. Figures of numbers are
computed from the numbers themselves, where these are known, and not from their bins.

Invariant: exact, and for the table's owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpsynth.bundle import compute_statistics
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.statistic_kinds import Asked, Correlation, Count, Grouped, Quantiles
from dpsynth.statistics.computations import grouped_counts
from dpsynth.statistics.sources import Sources
from dpsynth.wings.owner.assess.owned_bundle import CodedTable

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """Exact counts in place of noisy answers; every clique is covered, and without error."""

    real: CodedTable

    @property
    def total(self) -> float:
        """Number of rows."""
        return float(self.real.rows)

    def covers(self, clique: Clique) -> bool:
        """True."""
        del clique
        return True

    def marginal(self, clique: Clique) -> Numbers:
        """The counts of a clique."""
        shape = tuple(self.real.sizes[name] for name in clique)
        return self.real.counts(clique).astype(np.float64).reshape(shape)

    def variance(self, clique: Clique, weights: Numbers) -> float:
        """0."""
        del clique, weights
        return 0.0

    def cell_variance(self, clique: Clique) -> float:
        """0."""
        del clique
        return 0.0


def exact_figures(real: CodedTable, asked: Asked) -> Numbers | None:
    """The exact figures in the order of the published table; None where a rule cuts through bins.

    Args:
        real: the rows.
        asked: the statistic.
    """
    direct = ExactCounts(real)
    sources = Sources(real.columns, direct, direct)
    columns = sources.named
    if isinstance(asked, Grouped) and asked.condition is not None:
        table = grouped_counts(asked, sources)
        if table.where.cut:
            return None
        used = table.weights(table.where, "share").reshape(-1)[real.cells(asked.columns)] > 0
    else:
        used = np.ones(real.rows, dtype=bool)
    known = set(asked.numbers) <= real.numbers.keys()
    if isinstance(asked, Grouped) and not isinstance(asked, Count) and known:
        return _of_groups(real, columns, asked, used)
    if isinstance(asked, Correlation) and known:
        return np.array([_correlation(real, columns, pair) for pair in asked.cliques])
    found = compute_statistics([asked], sources)[-1].table
    return np.asarray(found["estimate"].to_numpy(), dtype=np.float64)


def _of_groups(
    real: CodedTable, columns: Mapping[str, Column], asked: Grouped, used: NDArray[np.bool_]
) -> Numbers:
    numbers = _numbers(real, columns[str(asked.of)])
    kept = used & np.isfinite(numbers)
    groups, numbers = real.cells(asked.by)[kept], numbers[kept]
    size = int(np.prod([real.sizes[name] for name in asked.by], dtype=np.int64))
    if isinstance(asked, Quantiles):
        shares = [float(share) for share in asked.at]
        parts = [numbers[groups == group] for group in range(size)]
        return np.concatenate([_quantiles(part, shares) for part in parts])
    rows, one, two = (np.bincount(groups, weights=numbers**k, minlength=size) for k in range(3))
    if asked.kind == "sum":
        return np.asarray(one)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(rows > 0, one / rows, np.nan)
        return mean if asked.kind == "mean" else np.asarray(two / rows - mean**2)


def _quantiles(numbers: Numbers, shares: list[float]) -> Numbers:
    if not len(numbers):
        return np.full(len(shares), np.nan)
    return np.asarray(np.quantile(numbers, shares, method="inverted_cdf"))


def _correlation(real: CodedTable, columns: Mapping[str, Column], pair: Clique) -> float:
    one, two = (_numbers(real, columns[name]) for name in pair)
    kept = np.isfinite(one) & np.isfinite(two)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(one[kept], two[kept])[0, 1])


def _numbers(real: CodedTable, column: Column) -> Numbers:
    """A column's numbers, moved to the declared ends as a release moves them; NaN where there is none."""
    assert isinstance(column.codec, NumericCodec)
    numbers = np.clip(real.numbers[column.name], column.codec.edges[0], column.codec.edges[-1])
    return np.minimum(numbers, np.floor(column.codec.edges[-1])) if column.codec.integer else numbers
