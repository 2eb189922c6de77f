"""The synthetic table beside the private one: distances, raw figures, rows that agree, broken rules.

A distance is total variation on the released cells: half the sum of the absolute differences of the shares of
all cells, from 0 (the same) to 1 (nothing in common). Beside it stands the distance by chance: the expected
one of another sample of as many rows as the private table has, drawn from the same population.

The yardstick of agreement is a holdout. The units of the private table are split into two halves at random.
Rows of the second half agree with rows of the first as often as new people would; synthetic rows that agree
more often would say that the release had copied, and they can't, by the guarantee.

Conditions are checked by cells: a row violates one where no values within its cells would obey. Sums are
checked by the numbers themselves. For a tie, the partner of each value is the one that most rows of the same
table give it; all other rows of the value count.

Invariant: exact, and for the table's owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import Operand, references, value_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.rules import Checks, RuleRefused, rules_of
from dpsynth.columns.rules.grids import partners_of
from dpsynth.columns.rules.rule import Rules, Sum
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.steps import advanced
from dpsynth.wings.owner.assess.owned_bundle import CodedTable, Numbers

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


TRIPLES = 200
"""Largest number of triples of columns in the k-marginal score."""
_DENSE = 1 << 22


@dataclass(frozen=True)
class Distance:
    """The distance of one marginal.

    Attributes:
        columns: the columns.
        distance: total variation between the tables, 0 to 1.
        by_chance: the expected distance of another sample of as many rows as the private table.
    """

    columns: Clique
    distance: float
    by_chance: float


def distance(real: CodedTable, synthetic: CodedTable, clique: Clique) -> Distance:
    """The distance of a marginal. A table without rows has shares of 0."""
    cells = int(np.prod([real.sizes[name] for name in clique], dtype=np.int64))
    if cells <= _DENSE:
        of_real, of_synthetic = real.counts(clique), synthetic.counts(clique)
    else:
        of_real, of_synthetic = _sparse(real.cells(clique), synthetic.cells(clique))
    p, q = _shares(of_real), _shares(of_synthetic)
    spread = np.sqrt(2.0 * p * (1.0 - p) / (np.pi * max(real.rows, 1)))
    return Distance(clique, float(np.abs(p - q).sum() / 2.0), float(spread.sum() / 2.0))


def _sparse(one: NDArray[np.int64], other: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of the cells that occur in either of two lists of cells."""
    found, place = np.unique(np.concatenate([one, other]), return_inverse=True)
    return (
        np.bincount(place[: len(one)], minlength=len(found)),
        np.bincount(place[len(one) :], minlength=len(found)),
    )


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    return counts / max(int(counts.sum()), 1)


def column_distances(real: CodedTable, synthetic: CodedTable) -> tuple[Distance, ...]:
    """The distances of all columns, in the table's order."""
    return tuple(distance(real, synthetic, (column.name,)) for column in real.columns)


def pair_distances(real: CodedTable, synthetic: CodedTable) -> tuple[Distance, ...]:
    """The distances of all pairs of columns."""
    pairs = list(combinations([column.name for column in real.columns], 2))
    found = []
    for done, pair in enumerate(pairs):
        found.append(distance(real, synthetic, pair))
        advanced(done + 1, len(pairs))
    return tuple(found)


@dataclass(frozen=True)
class MarginalScore:
    """The k-marginal score of NIST's contests: 1000 times one minus the mean distance of triples of columns.

    Attributes:
        triples: number of triples.
        all_of_them: True if these are all triples; otherwise they were chosen at random, the same each time.
        score: of the synthetic table, 0 to 1000.
        by_chance: of another sample of as many rows as the private table, in expectation.
        worst: the triples with the largest distances, worst first.
    """

    triples: int
    all_of_them: bool
    score: float
    by_chance: float
    worst: tuple[Distance, ...]


def marginal_score(real: CodedTable, synthetic: CodedTable) -> MarginalScore | None:
    """The k-marginal score with k = 3; None with fewer than three columns."""
    names = [column.name for column in real.columns]
    if len(names) < 3:
        return None
    triples = _triples(names)
    found = []
    for done, triple in enumerate(triples):
        found.append(distance(real, synthetic, triple))
        advanced(done + 1, len(triples))
    return MarginalScore(
        triples=len(triples),
        all_of_them=len(triples) == comb(len(names), 3),
        score=1000.0 * (1.0 - float(np.mean([d.distance for d in found]))),
        by_chance=1000.0 * (1.0 - float(np.mean([d.by_chance for d in found]))),
        worst=tuple(sorted(found, key=lambda d: -d.distance)[:5]),
    )


def _triples(names: Sequence[str]) -> list[Clique]:
    if comb(len(names), 3) <= TRIPLES:
        return list(combinations(names, 3))
    rng = np.random.default_rng(_SEED)
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < TRIPLES:
        chosen[tuple(sorted(rng.choice(len(names), 3, replace=False).tolist()))] = None
    return [tuple(names[spot] for spot in spots) for spots in chosen]


QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_FEWEST_NUMBERS = 3
_MOST_CORRELATED = 50_000
"""Largest number of rows that correlations are computed of; more are sampled, the same ones each time."""
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
        missing, float(known.mean()), float(known.std()), quantiles, float(known.min()), float(known.max())
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
    if rows > _MOST_CORRELATED:
        spots = np.random.default_rng(_SEED).choice(rows, _MOST_CORRELATED, replace=False)
    frame = pd.DataFrame({name: values[spots] for name, values in numbers.items()})
    frame = frame.where(frame.abs() < 1e100)
    found: dict[str, dict[tuple[str, str], float | None]] = {}
    for method in _METHODS:
        with np.errstate(all="ignore"):
            matrix = frame.corr(method=method, min_periods=_FEWEST_NUMBERS).to_numpy(np.float64)
        found[method] = {
            (a, b): float(matrix[i, j]) if np.isfinite(matrix[i, j]) else None
            for (i, a), (j, b) in combinations(enumerate(numbers), 2)
        }
    return found


@dataclass(frozen=True)
class Violations:
    """Rows that violate a constraint, of either table; None where a rule can't be checked here."""

    rule: str
    real: int | None
    synthetic: int | None


def violations(
    columns: Sequence[Column], rules: Sequence[str], real: CodedTable, synthetic: CodedTable
) -> tuple[Violations, ...]:
    """Rows of both tables that violate each constraint."""
    layout = Layout.of(columns)
    return tuple(_violations(layout, rule, real, synthetic) for rule in rules)


def _violations(layout: Layout, rule: str, real: CodedTable, synthetic: CodedTable) -> Violations:
    try:
        rules = rules_of([rule], layout)
        found = [_rows_violating(rules, layout, table) for table in (real, synthetic)]
    except (RuleRefused, DpsynthError, ValueError, KeyError):
        # The rule names a column that is computed, which no manifest can make again.
        return Violations(rule, None, None)
    return Violations(rule, found[0], found[1])


def _rows_violating(rules: Rules, layout: Layout, table: CodedTable) -> int | None:
    if rules.ties:
        return _off_the_ties(rules, layout, table)
    for turn in rules.turns:
        if isinstance(turn, Sum):
            return _off_the_sum(turn, layout, table)
    checks = Checks(rules, layout)
    if not checks.grids:
        return None
    return int(checks.violating_cells({name: c.astype(np.int64) for name, c in table.codes.items()}).sum())


def _off_the_ties(rules: Rules, layout: Layout, table: CodedTable) -> int:
    values = {c.name: len(c.codec.labels) for c in layout.columns}

    def counts(pair: Clique) -> NDArray[np.float64]:
        whole = table.counts(pair).reshape([table.sizes[name] for name in pair])
        return whole[tuple(slice(values[name]) for name in pair)].astype(np.float64)

    off = 0.0
    for tie, partner in partners_of(rules, layout, (), counts):
        rows, has = counts(tie.pair), np.flatnonzero(partner >= 0)
        off += float(rows.sum() - rows[has, partner[has]].sum())
    return int(off)


def _off_the_sum(rule: Sum, layout: Layout, table: CodedTable) -> int | None:
    """Rows with the column and all parts of its formula, in which it isn't their sum to its last decimal."""
    columns = {c.name: c for c in layout.columns}
    codec = columns[rule.target].codec
    names = (rule.target, *references(rule.formula))
    if not isinstance(codec, NumericCodec) or not set(names) <= table.numbers.keys():
        return None
    operands = {
        name: Operand(layout.kinds[name], _or_null(table.numbers[name]), pa.nulls(table.rows, pa.string()))
        for name in names
    }
    wanted = value_of(rule.formula, operands, table.rows).to_numpy(zero_copy_only=False)
    off = np.abs(table.numbers[rule.target] - wanted.astype(np.float64))
    return int((off > 0.5 * 10.0**-codec.decimals).sum())


def _or_null(numbers: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pa.Array:
    return pa.array(numbers, pa.float64(), mask=~np.isfinite(numbers))
