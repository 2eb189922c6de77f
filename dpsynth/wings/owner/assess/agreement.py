"""Synthetic rows that agree with real ones, and synthetic rows that no real row resembles, beside chance.

The yardstick is a holdout. The units of the private table are split into two halves at random. Rows of the
second half agree with rows of the first as often as new people would; synthetic rows that agree more often
would say that the release had copied, and they can't, by the guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth.pipeline.steps import advanced
from dpsynth.wings.owner.assess.owned_bundle import CodedTable

_SEED = 7
_MOST_ROWS = 100_000
"""Largest number of rows of each kind that is looked up; more are sampled, the same ones each time."""


@dataclass(frozen=True)
class Agreement:
    """Shares of rows that agree with a row of one half of the private table, in all released cells.

    Attributes:
        held_out: of the private table's other half.
        synthetic: of the synthetic table.
        independent: of synthetic rows whose columns were shuffled, each by itself.
        with_unique_held_out, with_unique: shares of the other half and of the synthetic table that agree with
            a row which no other row of the half agrees with.
        distinct: share of the half's rows that agree with no other row of the half.
    """

    held_out: float
    synthetic: float
    independent: float
    with_unique_held_out: float
    with_unique: float
    distinct: float


@dataclass(frozen=True)
class Unseen:
    """Shares of rows with a pair of values that no row of one half of the private table has.

    Attributes:
        held_out: of the private table's other half.
        synthetic: of the synthetic table.
        worst: pairs of columns with the largest shares of synthetic rows beyond the held-out ones, and both.
    """

    held_out: float
    synthetic: float
    worst: tuple[tuple[str, str, float, float], ...]


def halves(real: CodedTable) -> tuple[CodedTable, CodedTable]:
    """The private table in two halves, by units; the same ones each time."""
    rng = np.random.default_rng(_SEED)
    if real.units is None:
        first = rng.permutation(real.rows) < real.rows // 2
    else:
        units, place = np.unique(real.units, return_inverse=True)
        first = (rng.permutation(len(units)) < len(units) // 2)[place]
    return real.take(np.flatnonzero(first)), real.take(np.flatnonzero(~first))


def sampled(table: CodedTable, most: int) -> CodedTable:
    """At most so many rows of a table, chosen at random, the same ones each time."""
    if table.rows <= most:
        return table
    return table.take(np.sort(np.random.default_rng(_SEED).choice(table.rows, most, replace=False)))


def agreement(real: CodedTable, synthetic: CodedTable) -> Agreement:
    """The agreement of whole rows."""
    first, second = halves(real)
    rows = min(second.rows, synthetic.rows, _MOST_ROWS)
    known, times = np.unique(_rows(first), return_counts=True)
    unique = known[times == 1]
    drawn = sampled(synthetic, rows)
    looked_up = _rows(sampled(second, rows)), _rows(drawn), _rows(_shuffled(drawn))
    held_out, made, shuffled = (_share(np.isin(rows_of, known)) for rows_of in looked_up)
    return Agreement(
        held_out=held_out,
        synthetic=made,
        independent=shuffled,
        with_unique_held_out=_share(np.isin(looked_up[0], unique)),
        with_unique=_share(np.isin(looked_up[1], unique)),
        distinct=len(unique) / max(first.rows, 1),
    )


def _rows(table: CodedTable) -> NDArray[np.uint64]:
    """A hash of each row's cells, uint64[rows]."""
    hashes = pd.util.hash_pandas_object(pd.DataFrame(dict(table.codes)), index=False)
    return hashes.to_numpy().astype(np.uint64)


def _shuffled(table: CodedTable) -> CodedTable:
    rng = np.random.default_rng(_SEED)
    return CodedTable(table.columns, {name: rng.permutation(c) for name, c in table.codes.items()}, {})


def _share(mask: NDArray[np.bool_]) -> float:
    return float(mask.mean()) if len(mask) else 0.0


def unseen_pairs(real: CodedTable, synthetic: CodedTable) -> Unseen:
    """Rows with a pair of values that a half of the private table doesn't have."""
    first, second = halves(real)
    rows = min(second.rows, synthetic.rows, _MOST_ROWS)
    others = sampled(second, rows), sampled(synthetic, rows)
    hit = [np.zeros(table.rows, np.bool_) for table in others]
    found: list[tuple[str, str, float, float]] = []
    pairs = list(combinations([column.name for column in real.columns], 2))
    for done, (a, b) in enumerate(pairs):
        seen = np.unique(first.cells((a, b)))
        strange = [~np.isin(table.cells((a, b)), seen) for table in others]
        hit = [mask | more for mask, more in zip(hit, strange, strict=True)]
        found.append((a, b, _share(strange[0]), _share(strange[1])))
        advanced(done + 1, len(pairs))
    found.sort(key=lambda pair: pair[2] - pair[3])
    return Unseen(_share(hit[0]), _share(hit[1]), tuple(pair for pair in found[:8] if pair[3] > pair[2]))
