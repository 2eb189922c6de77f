"""Densities inside bins: of two columns together, and tilted by group.

Columns that depend on each other across bins also do inside them: of the flights that leave two to four hours
late, those that leave later arrive later. Independent draws inside bins lose that. So the density inside a
cell continues the trend of the cells around it, like the density inside a bin (``bins``).

Invariant: the densities are public, of noisy answers. Codes don't change; a joint density keeps the values of
each bin of a column, so its distribution too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes, patched
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.sums import Steps

Numbers = NDArray[np.float64]

LEAST_CORRELATION = 0.5
"""Rank correlation from which on two columns are drawn together."""
_LEAST_ROWS = 1.0
"""Rows that an empty cell counts as."""
_MOST_ODDS = 8.0
"""Bound on the log odds ratio of four cells."""
_STEEPER = 3.0
"""Bound on how many times the differences are raised."""
_PARTS = 16
"""Parts of a bin, in one of which a position is drawn."""
_MIDDLES = (np.arange(_PARTS) + 0.5) / _PARTS - 0.5
_ROWS = 1 << 17
"""Rows whose positions are drawn at a time."""


@dataclass(frozen=True, eq=False)
class JointDensity:
    """The density of two columns inside the cells of their joint marginal.

    Its logarithm is, for positions u and v between -1/2 and 1/2 within the two bins,

        a u + b v + c u v - |c| (u^2 + v^2) / 2

    For a large c that is a band of standard deviation c^(-1/2). The coefficients follow from the logarithms
    of the counts of the cells around: a and b from their differences, c from the log odds ratios of four
    cells each. A count is a mean over its cell, so these ratios are too small where the band is narrower than
    a bin. They are raised to those of the band whose neighbouring cells have the counted odds. The density
    decides only which row of a bin gets which of the values that were drawn for the bin.

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
        rows = np.maximum(self.counts, _LEAST_ROWS)
        logs = np.log(rows)
        odds = np.clip(_log_odds(logs, rows), -_MOST_ODDS, _MOST_ODDS)
        size = np.abs(odds)
        # Between bands of one bin and of a twentieth of it, right to a tenth of the standard deviation.
        raised = size + np.square(np.expm1(size / 2)) / 4
        steeper = np.clip(raised / np.maximum(size, 1e-9), 1.0, _STEEPER)
        first, second = (np.gradient(logs, axis=axis) * steeper for axis in (0, 1))
        return first, second, np.sign(odds) * raised


def _log_odds(logs: Numbers, rows: Numbers) -> Numbers:
    """The log odds ratio around each cell: the mean over squares of four cells, weighted by precision."""
    corners = [(slice(None, -1), slice(None, -1)), (slice(1, None), slice(1, None))]
    others = [(slice(None, -1), slice(1, None)), (slice(1, None), slice(None, -1))]
    odds = sum(logs[c] for c in corners) - sum(logs[c] for c in others)
    precision = 1 / sum(1 / rows[c] for c in (*corners, *others))
    sums = np.zeros((2, *logs.shape))
    for corner in (*corners, *others):
        sums[0][corner] += odds * precision
        sums[1][corner] += precision
    return np.asarray(sums[0] / sums[1])


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
    """
    found, positions = dict(values), dict[str, Numbers]()
    for density in densities:
        if density.first not in positions or density.second not in positions:
            _place(density, codes, found, positions, rng)
    return found


def _place(
    density: JointDensity,
    codes: Mapping[str, Codes],
    found: dict[str, pa.Array],
    positions: dict[str, Numbers],
    rng: np.random.Generator,
) -> None:
    """Give two columns positions and their values in the order of these; one if the other has positions."""
    columns, shape = (density.first, density.second), density.counts.shape
    rows = np.flatnonzero((codes[columns[0]] < shape[0]) & (codes[columns[1]] < shape[1]))
    cell = np.ravel_multi_index([codes[c][rows] for c in columns], shape)

    def deal(column: str, logs_of: Callable[[slice], Numbers]) -> None:
        drawn = rng.random(len(codes[column])) - 0.5
        drawn[rows] = _positions(logs_of, rows.size, rng)
        found[column], positions[column] = _dealt(found[column], codes[column], drawn)

    if not positions.keys() & set(columns):
        first_logs = _first_logs(*(s.reshape(-1, 1) for s in density.slopes))
        deal(columns[0], lambda part: first_logs[cell[part]])
    known = int(columns[1] in positions)
    beside, interaction = positions[columns[known]][rows], density.slopes[2].reshape(-1)
    along = density.slopes[1 - known].reshape(-1)

    def logs_of(part: slice) -> Numbers:
        some = cell[part]
        steep = along[some] + interaction[some] * beside[part]
        return _logs(steep[:, None], np.abs(interaction[some])[:, None])

    deal(columns[1 - known], logs_of)


def _logs(steep: Numbers, flat: Numbers) -> Numbers:
    """The logarithm of a density in the middle of each part of a bin, float64[densities, parts]."""
    return np.asarray(steep * _MIDDLES - flat * np.square(_MIDDLES) / 2)


def _first_logs(first: Numbers, second: Numbers, interaction: Numbers) -> Numbers:
    flat = np.abs(interaction)
    inside = _logs((second + interaction * _MIDDLES)[:, :, None], flat[:, :, None])
    most = inside.max(axis=2)
    return np.asarray(_logs(first, flat) + most + np.log(np.exp(inside - most[:, :, None]).sum(axis=2)))


def _positions(logs_of: Callable[[slice], Numbers], rows: int, rng: np.random.Generator) -> Numbers:
    """A position for each row, float64[rows], from logarithms of its density in the parts of a bin."""
    found = np.empty(rows)
    for begin in range(0, rows, _ROWS):
        part = slice(begin, min(begin + _ROWS, rows))
        logs = logs_of(part)
        reach = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
        draws = rng.random((2, len(reach)))
        number = (draws[0, :, None] * reach[:, -1:] >= reach[:, :-1]).sum(axis=1)
        found[part] = (number + draws[1]) / _PARTS - 0.5
    return found


def _dealt(values: pa.Array, codes: Codes, drawn: Numbers) -> tuple[pa.Array, Numbers]:
    """The values of each bin in the order of the drawn positions, and the position of each row then."""
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


@dataclass(frozen=True, eq=False)
class Tilt:
    """The tilts of a column's density by group.

    Groups get the means that were measured. A bin's density is the same in all groups, though numbers of one
    group may lie further up in their bins than those of another. With a tilt of power t, a number at the
    position p of its bin, from 0 to 1, moves to p^t: up where t is below 1, down where it is above. All
    numbers stay in their bins, in their order within a group, and spread over the whole bin.

    Attributes:
        by: the columns of the groups; () for all rows.
        powers: float64 of the shape of the groups, above 0; 1 leaves numbers where they are.
    """

    column: str
    by: Clique
    powers: Numbers

    def of_rows(self, codes: Mapping[str, Codes], rows: int) -> Numbers:
        if not self.by:
            return np.full(rows, float(self.powers))
        return np.asarray(self.powers[tuple(codes[column] for column in self.by)])


def tilted(
    tilts: Sequence[Tilt],
    columns: Mapping[str, Column],
    codes: Mapping[str, Codes],
    values: Mapping[str, pa.Array],
    rng: np.random.Generator,
) -> dict[str, pa.Array]:
    """The values of all columns, moved within their bins.

    Args:
        tilts: at most one a column, whose steps are those of its last decimal.
        codes: int64[rows] of each column; those beyond a column's bins are missing.
        values: typed values of each column, each in its bin; null for missing.
    """
    found = dict(values)
    for tilt in tilts:
        column, code = columns[tilt.column], codes[tilt.column]
        steps, power = column.codec.steps, tilt.of_rows(codes, len(code))
        assert steps is not None
        rows = np.flatnonzero((code < steps.bins) & (power != 1.0))
        before = values[tilt.column].to_numpy(zero_copy_only=False).astype(np.float64)
        at = np.rint(before[rows] * 10.0**-steps.exponent).astype(np.int64) - steps.origin
        moved = moved_steps(steps, code[rows], at, power[rows], rng.random(rows.size)) + steps.origin
        kind = values[tilt.column].type
        after = pa.array(moved if pa.types.is_integer(kind) else moved / 10.0**-steps.exponent, kind)
        found[tilt.column] = patched(values[tilt.column], rows, after)
    return found


def moved_steps(steps: Steps, code: Codes, at: Codes, power: Numbers, inside: Numbers) -> Codes:
    """Steps moved within their bins.

    Args:
        code: int64[rows], the bin of each.
        at: int64[rows], the step of each.
        power: float64[rows].
        inside: float64[rows], a place within the step, from 0 to 1.
    """
    low, high = steps.low[code], steps.high[code]
    width = high - low + 1
    position = np.clip((at - low + inside) / width, 0.0, 1.0)
    return np.asarray(np.clip(low + np.floor(width * position**power).astype(np.int64), low, high))
