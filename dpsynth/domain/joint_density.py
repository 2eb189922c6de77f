"""Joint density of two columns inside their bins, estimated from the counts of neighbouring cells.

Two columns that depend on each other across bins depend on each other inside them: of flights that leave two
to four hours late, those that also arrive later were later to leave. Independent draws inside bins lose that.
The density inside a cell continues the trend from cell to cell, as that inside a bin does (``bin_density``):
its logarithm is

    a u + b v + c u v

for positions u and v between -1/2 and 1/2 within the two bins. The slopes a and b are the differences of the
logarithms of neighbouring cells' counts, and c is the difference of these differences, a log odds ratio.

Only the order of rows inside a bin follows it: the values that were drawn for a bin are dealt out to the rows
of the bin anew.

Invariant: the values of each bin of a column stay the same, so its distribution does. The counts are public
ones, of noisy answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]

LEAST_CORRELATION = 0.5
"""Rank correlation from which on two columns are drawn together."""
_LEAST_ROWS = 1.0
"""Rows that an empty cell counts as."""
_STEEPEST = 30.0
"""The logarithm of a density changes by at most so much within a bin."""
_PARTS = 16
"""Parts of a bin, in which the first of two positions is drawn."""
_FLATTEST = 1e-6


@dataclass(frozen=True, eq=False)
class JointDensity:
    """The density of two columns inside the cells of their joint marginal.

    Attributes:
        first, second: the columns.
        counts: float64[bins of the first, bins of the second], counts of rows, not negative.
    """

    first: str
    second: str
    counts: Numbers

    @cached_property
    def correlation(self) -> float:
        """Rank correlation of the two columns, with one rank for all rows of a bin; 0 if one is constant."""
        total = float(self.counts.sum())
        if total <= 0:
            return 0.0
        shares = self.counts / total
        ranks = [np.cumsum(s) - s / 2 for s in (shares.sum(axis=1), shares.sum(axis=0))]
        centred = [r - r @ s for r, s in zip(ranks, (shares.sum(axis=1), shares.sum(axis=0)), strict=True)]
        spread = float((centred[0] ** 2 @ shares.sum(axis=1)) * (centred[1] ** 2 @ shares.sum(axis=0)))
        return float(centred[0] @ shares @ centred[1]) / spread**0.5 if spread > 0 else 0.0

    @cached_property
    def slopes(self) -> tuple[Numbers, Numbers, Numbers]:
        """The slopes a and b along the two bins and the interaction c, float64[bins, bins] each."""
        logs = np.log(np.maximum(self.counts, _LEAST_ROWS))
        first, second = np.gradient(logs, axis=0), np.gradient(logs, axis=1)
        found = first, second, np.gradient(first, axis=1)
        return tuple(np.clip(s, -_STEEPEST, _STEEPEST) for s in found)  # type: ignore[return-value]


def strongest(densities: Sequence[JointDensity]) -> tuple[JointDensity, ...]:
    """The densities of columns that depend strongly on each other, the strongest first."""
    strong = [d for d in densities if min(d.counts.shape) > 1 and abs(d.correlation) >= LEAST_CORRELATION]
    return tuple(sorted(strong, key=lambda d: -abs(d.correlation)))


def arranged(
    densities: Sequence[JointDensity],
    codes: Mapping[str, Codes],
    values: Mapping[str, pa.Array],
    rng: np.random.Generator,
) -> dict[str, pa.Array]:
    """The values of all columns, dealt out anew within each bin so that columns agree inside their bins.

    The densities count in turn. One of two columns without positions places the rows of both; one of which
    one column has positions places the other; one of which both have positions does nothing.

    Args:
        densities: the joint densities, the strongest first.
        codes: int64[rows] of each column; those beyond a density's bins are missing.
        values: typed values of each column, each in its bin; null for missing.
        rng: generator of post-processing.
    """
    found, positions = dict(values), dict[str, Numbers]()
    for density in densities:
        columns = density.first, density.second
        if all(c in positions for c in columns):
            continue
        both = (codes[columns[0]] < density.counts.shape[0]) & (codes[columns[1]] < density.counts.shape[1])
        rows = np.flatnonzero(both)
        cell = codes[columns[0]][rows], codes[columns[1]][rows]
        slopes = tuple(s[cell] for s in density.slopes)
        if columns[0] not in positions and columns[1] not in positions:
            drawn = rng.random(len(both)) - 0.5
            drawn[rows] = _first_positions(cell, density.slopes, rng)
            found[columns[0]], positions[columns[0]] = _dealt(found[columns[0]], codes[columns[0]], drawn)
        known = int(columns[1] in positions)
        column, along = columns[1 - known], slopes[1 - known]
        steep = along + slopes[2] * positions[columns[known]][rows]
        drawn = rng.random(len(both)) - 0.5
        drawn[rows] = _on_slope(steep, drawn[rows] + 0.5)
        found[column], positions[column] = _dealt(found[column], codes[column], drawn)
    return found


def _first_positions(
    cell: tuple[Codes, Codes], slopes: tuple[Numbers, Numbers, Numbers], rng: np.random.Generator
) -> Numbers:
    """A position in the first bin for each row: the density of the cell, summed over the second bin."""
    a, b, c = (s.reshape(-1, 1) for s in slopes)
    middles = (np.arange(_PARTS) + 0.5) / _PARTS - 0.5
    steep = b + c * middles
    logs = a * middles + _log_mass(steep)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    reach = np.cumsum(shares, axis=1)
    reach /= reach[:, -1:]
    at = np.ravel_multi_index(cell, slopes[0].shape)
    part = (rng.random(len(at))[:, None] >= reach[at, :-1]).sum(axis=1)
    return np.asarray((part + rng.random(len(at))) / _PARTS - 0.5)


def _log_mass(steep: Numbers) -> Numbers:
    """The logarithm of the integral of exp(steep v) over v from -1/2 to 1/2."""
    size = np.maximum(np.abs(steep), _FLATTEST)
    return np.asarray(size / 2 + np.log(-np.expm1(-size) / size))


def _on_slope(steep: Numbers, share: Numbers) -> Numbers:
    """The position below which a share of a density of slope ``steep`` lies."""
    size = np.maximum(np.abs(steep), _FLATTEST)
    upper = np.where(steep < 0, share, 1 - share)
    # The distance from the dense end, of an exponential density that is cut off at 1.
    distance = -np.log1p(upper * np.expm1(-size)) / size
    return np.asarray(np.where(steep < 0, distance - 0.5, 0.5 - distance))


def _dealt(values: pa.Array, codes: Codes, drawn: Numbers) -> tuple[pa.Array, Numbers]:
    """The values of each bin in the order of the drawn positions, and the position of each row then.

    Args:
        values: typed values, null for missing.
        codes: int64[rows], the bin of each.
        drawn: float64[rows], positions.
    """
    present = np.asarray(values.is_valid())
    ordered = pc.array_sort_indices(values).to_numpy()[: int(present.sum())].astype(np.int64)
    by_value = ordered[np.argsort(codes[ordered], kind="stable")]
    rows = np.flatnonzero(present)
    by_position = rows[np.lexsort((drawn[rows], codes[rows]))]
    taken = np.arange(len(codes))
    taken[by_position] = by_value
    sizes = np.bincount(codes[rows])
    begins = np.cumsum(sizes) - sizes
    bins = codes[by_position]
    position = np.zeros(len(codes))
    position[by_position] = (np.arange(rows.size) - begins[bins] + 0.5) / sizes[bins] - 0.5
    return values.take(pa.array(taken)), position
