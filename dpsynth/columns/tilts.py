"""Densities inside bins that are tilted by group, so that groups have the means that were measured.

A bin's density is the same in all groups (``bin_density``), though numbers of one group may lie further up in
their bins than those of another. With a tilt of power t, a number at the position p of its bin, from 0 to 1,
moves to p^t: up where t is below 1, down where it is above. All numbers stay in their bins, in their order
within a group, and spread over the whole bin.

Invariant: a tilt is public; codes don't change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.codec import Codes
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.sums import Steps

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tilt:
    """The tilts of a column's density by group.

    Attributes:
        column: the column of numbers.
        by: the columns of the groups; () for all rows.
        powers: float64 of the shape of the groups, above 0; 1 leaves numbers where they are.
    """

    column: str
    by: Clique
    powers: Numbers

    def of_rows(self, codes: Mapping[str, Codes], rows: int) -> Numbers:
        """The power of each row, float64[rows]."""
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
        columns: the columns by name.
        codes: int64[rows] of each column; those beyond a column's bins are missing.
        values: typed values of each column, each in its bin; null for missing.
        rng: generator of post-processing.
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
        order = np.arange(len(code))
        order[rows] = len(code) + np.arange(rows.size)
        found[tilt.column] = pa.concat_arrays([values[tilt.column], after]).take(pa.array(order))
    return found


def moved_steps(steps: Steps, code: Codes, at: Codes, power: Numbers, inside: Numbers) -> Codes:
    """Steps moved within their bins.

    Args:
        steps: the bins.
        code: int64[rows], the bin of each.
        at: int64[rows], the step of each.
        power: float64[rows].
        inside: float64[rows], a place within the step, from 0 to 1.
    """
    low, high = steps.low[code], steps.high[code]
    width = high - low + 1
    position = np.clip((at - low + inside) / width, 0.0, 1.0)
    return np.asarray(np.clip(low + np.floor(width * position**power).astype(np.int64), low, high))
