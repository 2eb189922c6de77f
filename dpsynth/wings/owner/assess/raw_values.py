"""Raw numbers side by side: means, quantiles and correlations of both tables, in the table's own units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from dpsynth.wings.owner.assess.owned_bundle import CodedTable, Numbers

QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_FEWEST = 3
_MOST_ROWS = 50_000
"""Largest number of rows that correlations are computed of; more are sampled, the same ones each time."""
_SEED = 7
_METHODS: tuple[Literal["pearson", "spearman"], ...] = ("pearson", "spearman")


@dataclass(frozen=True)
class Figures:
    """Figures of one column of one table, in raw units; None where there is no number.

    Attributes:
        missing: share of cells without a number.
        mean: the mean.
        deviation: the standard deviation.
        quantiles: the quantiles of ``QUANTILES``.
        least, most: the ends.
    """

    missing: float
    mean: float | None
    deviation: float | None
    quantiles: tuple[float | None, ...]
    least: float | None
    most: float | None


@dataclass(frozen=True)
class RawColumn:
    """One column of numbers in both tables."""

    name: str
    real: Figures
    synthetic: Figures


@dataclass(frozen=True)
class Correlation:
    """Correlations of two columns of numbers in both tables; None where undefined."""

    columns: tuple[str, str]
    real: float | None
    synthetic: float | None
    real_by_rank: float | None
    synthetic_by_rank: float | None

    @property
    def gap(self) -> float:
        """The larger of the two differences; 0 where undefined."""
        pairs = ((self.real, self.synthetic), (self.real_by_rank, self.synthetic_by_rank))
        return max((abs(a - b) for a, b in pairs if a is not None and b is not None), default=0.0)


def raw_columns(real: CodedTable, synthetic: CodedTable) -> tuple[RawColumn, ...]:
    """The columns of numbers, in the table's order."""
    return tuple(
        RawColumn(name, _figures(numbers), _figures(synthetic.numbers[name]))
        for name, numbers in real.numbers.items()
    )


def _figures(numbers: Numbers) -> Figures:
    # A cell such as 1e308 would overflow sums of squares; it is no number that anybody compares.
    known = numbers[np.isfinite(numbers) & (np.abs(numbers) < 1e100)]
    missing = 1.0 - len(known) / max(len(numbers), 1)
    if not len(known):
        return Figures(missing, None, None, (None,) * len(QUANTILES), None, None)
    quantiles = tuple(float(q) for q in np.quantile(known, QUANTILES))
    return Figures(
        missing,
        float(known.mean()),
        float(known.std()),
        quantiles,
        float(known.min()),
        float(known.max()),
    )


def correlations(real: CodedTable, synthetic: CodedTable) -> tuple[Correlation, ...]:
    """Pearson's and Spearman's correlations of all pairs of columns of numbers; the largest gap first."""
    names = list(real.numbers)
    tables = [_correlations(table.numbers, table.rows) for table in (real, synthetic)]
    found = [
        Correlation(
            (a, b),
            tables[0]["pearson"][a, b],
            tables[1]["pearson"][a, b],
            tables[0]["spearman"][a, b],
            tables[1]["spearman"][a, b],
        )
        for a, b in combinations(names, 2)
    ]
    return tuple(sorted(found, key=lambda c: -c.gap))


def _correlations(
    numbers: Mapping[str, Numbers], rows: int
) -> dict[str, dict[tuple[str, str], float | None]]:
    import pandas as pd

    spots = np.arange(rows)
    if rows > _MOST_ROWS:
        spots = np.random.default_rng(_SEED).choice(rows, _MOST_ROWS, replace=False)
    frame = pd.DataFrame({name: values[spots] for name, values in numbers.items()})
    frame = frame.where(frame.abs() < 1e100)
    found: dict[str, dict[tuple[str, str], float | None]] = {}
    for method in _METHODS:
        with np.errstate(all="ignore"):
            matrix = frame.corr(method=method, min_periods=_FEWEST).to_numpy(np.float64)
        found[method] = {
            (a, b): float(matrix[i, j]) if np.isfinite(matrix[i, j]) else None
            for (i, a), (j, b) in combinations(enumerate(numbers), 2)
        }
    return found
