"""Published intervals against the exact statistics of the rows that the release used.

Figures of counts alone are computed as the published ones are, from exact counts. Figures of numbers are
computed from the numbers themselves, where these are known, and not from their bins.

Invariant: exact, and for the table's owner alone. Every table of statistics in the manifest is compared, or
named as not compared: rules that cut through bins can't be counted again here.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.bundle import compute_statistics, restore
from dpsynth.bundle.manifest import Statistic
from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.statistic_kinds import Asked, Correlation, Count, Grouped, Quantiles
from dpsynth.errors import ConfigError
from dpsynth.statistics.computations import grouped_counts
from dpsynth.statistics.sources import Sources
from dpsynth.wings.owner.assess.owned_bundle import CodedTable, OwnedBundle

Numbers = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ExactCounts:
    """Exact counts in place of noisy answers; every clique is covered, and without error."""

    real: CodedTable

    @property
    def total(self) -> float:
        return float(self.real.rows)

    def covers(self, clique: Clique) -> bool:
        del clique
        return True

    def marginal(self, clique: Clique) -> Numbers:
        shape = tuple(self.real.sizes[name] for name in clique)
        return self.real.counts(clique).astype(np.float64).reshape(shape)

    def variance(self, clique: Clique, weights: Numbers) -> float:
        del clique, weights
        return 0.0

    def cell_variance(self, clique: Clique) -> float:
        del clique
        return 0.0


def exact_figures(real: CodedTable, asked: Asked) -> Numbers | None:
    """The exact figures in the order of the published table; None where a rule cuts through bins."""
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
    numbers = _numbers_of(real, columns[str(asked.of)])
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
    one, two = (_numbers_of(real, columns[name]) for name in pair)
    kept = np.isfinite(one) & np.isfinite(two)
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.corrcoef(one[kept], two[kept])[0, 1])


def _numbers_of(real: CodedTable, column: Column) -> Numbers:
    """A column's numbers, moved to the declared ends as a release moves them; NaN where there is none."""
    assert isinstance(column.codec, NumericCodec)
    numbers = np.clip(real.numbers[column.name], column.codec.edges[0], column.codec.edges[-1])
    return np.minimum(numbers, np.floor(column.codec.edges[-1])) if column.codec.integer else numbers


_MISSES_SHOWN = 12
_NOISE = "noise"
"""The beginning of what an interval claims to cover, where that is the noise alone."""


@dataclass(frozen=True)
class Miss:
    """An interval that doesn't hold the exact number.

    Attributes:
        table: the title of the table of statistics.
        cell: the labels of the number.
        exact: the private table's own number.
        low, high: the published interval.
    """

    table: str
    cell: str
    exact: float
    low: float
    high: float

    @property
    def widths(self) -> float:
        beyond = max(self.low - self.exact, self.exact - self.high)
        return beyond / max(self.high - self.low, 1e-12)


@dataclass(frozen=True)
class Coverage:
    """Intervals of one kind and basis.

    Attributes:
        kind: "one_way", the word of its kind in the configuration, or "exam".
        basis: "measured", "model", "public" and so on, as the tables say; with "noise alone" if they do.
        intervals: number of intervals.
        held: number of those that hold the exact number.
        held_with_grouping: of means, the number that hold once widened by the grouping error.
        worst: the misses farthest off, at most a dozen.
    """

    kind: str
    basis: str
    intervals: int
    held: int
    held_with_grouping: int
    worst: tuple[Miss, ...]


@dataclass(frozen=True)
class Coverages:
    """The coverage of all tables.

    Attributes:
        found: one a kind and basis.
        not_compared: files of tables of kinds that can't be counted again here.
    """

    found: tuple[Coverage, ...]
    not_compared: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Compared:
    """The numbers of one table of statistics beside the exact ones; null is NaN."""

    kind: str
    basis: str
    title: str
    labels: tuple[str, ...]
    exact: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    grouping: NDArray[np.float64]


def interval_coverage(bundle: OwnedBundle, real: CodedTable, made: CodedTable) -> Coverages:
    """The coverage of all published intervals, and of the exam's limits, by the rows that a release used."""
    compared, left_out = list[_Compared](), list[str]()
    for stated in bundle.facts.statistics:
        one = _compared(bundle, real, stated)
        compared += one
        if not one:
            left_out.append(stated.file)
    groups = dict.fromkeys((one.kind, one.basis) for one in compared)
    of_exam = exam_coverage(bundle, real, made)
    found = (_coverage([c for c in compared if (c.kind, c.basis) == group]) for group in groups)
    return Coverages((*found, *([] if of_exam is None else [of_exam])), tuple(left_out))


def _compared(bundle: OwnedBundle, real: CodedTable, stated: Statistic) -> list[_Compared]:
    """A table of statistics, in parts of one basis and claim each; none where it can't be counted again."""
    try:
        asked = stated.request
    except ConfigError:
        asked = None
    if asked is None or not set(stated.columns) <= real.codes.keys():
        return []
    table = _read(bundle.public / stated.file)
    exact = exact_figures(real, asked)
    if exact is None or len(exact) != table.num_rows or not {"low", "high"} <= set(table.column_names):
        return []
    names = table.column_names[: table.column_names.index("estimate")]
    cells = np.array([" · ".join(row.values()) for row in table.select(names).to_pylist()] or [""], object)
    cells = np.broadcast_to(cells, exact.shape)
    wide = _numbers(table["grouping_error"]) if "grouping_error" in table.column_names else 0 * exact
    low, high, bases = _numbers(table["low"]), _numbers(table["high"]), _bases(table)
    return [
        _Compared(stated.kind, basis, stated.title, tuple(cells[at]), exact[at], low[at], high[at], wide[at])
        for basis in dict.fromkeys(bases.tolist())
        for at in [np.flatnonzero(bases == basis)]
    ]


def exam_coverage(bundle: OwnedBundle, real: CodedTable, made: CodedTable) -> Coverage | None:
    """The coverage of the exam's limits: its errors beside the exact ones; None without an exam."""
    path, facts = bundle.public / "exam.csv", bundle.facts.exam
    if facts is None or not path.is_file():
        return None
    table, rows = _read(path), facts.rows
    names = [name for name in table.column_names if name.startswith("column_")]
    cliques = [tuple(filter(None, row.values())) for row in table.select(names).to_pylist()]
    if any(not set(clique) <= real.codes.keys() for clique in cliques):
        return None
    exact = np.array([_error(real, made, clique, rows) for clique in cliques])
    low, high = _numbers(table["low"]), _numbers(table["high"])
    labels = tuple(" · ".join(clique) for clique in cliques)
    # A distance is rounded down to a whole row.
    high = high + 1 / (2 * rows)
    return _coverage([_Compared("exam", "distance", "exam.csv", labels, exact, low, high, 0 * exact)])


def _error(real: CodedTable, made: CodedTable, clique: Clique, rows: int) -> float:
    scaled = made.counts(clique) * (rows / max(made.rows, 1))
    return min(float(np.abs(real.counts(clique) - scaled).sum()) / (2 * rows), 1.0)


def _read(path: Path) -> pa.Table:
    """A table of statistics as texts."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, strict=True)
    columns = zip(*lines, strict=True) if lines else ((),) * len(header)
    names = restore(pa.array(header, pa.string())).to_pylist()
    return pa.table([restore(pa.array(column, pa.string())) for column in columns], names=names)


def _bases(table: pa.Table) -> NDArray[np.object_]:
    """The basis of each figure, and whether its interval covers the noise alone, where it says so."""
    stated = table["basis"].to_pylist()
    claims = table["limits"].to_pylist() if "limits" in table.column_names else [""] * len(stated)
    texts = [
        f"{b}, {_NOISE} alone" if str(c).startswith(_NOISE) else b
        for b, c in zip(stated, claims, strict=True)
    ]
    return np.array(texts, dtype=object)


def _numbers(texts: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.array([float(text) if text else np.nan for text in texts.to_pylist()])


def _coverage(compared: list[_Compared]) -> Coverage:
    held = held_wide = intervals = 0
    misses = list[Miss]()
    for one in compared:
        given = np.isfinite(one.low) & np.isfinite(one.high) & np.isfinite(one.exact)
        # Published numbers have nine digits.
        slack = 1e-8 * np.maximum(np.abs(one.exact), 1.0)
        inside = (one.low - slack <= one.exact) & (one.exact <= one.high + slack)
        room = np.nan_to_num(one.grouping) + slack
        wide = (one.low - room <= one.exact) & (one.exact <= one.high + room)
        intervals += int(given.sum())
        held += int((inside & given).sum())
        held_wide += int((wide & given).sum())
        misses += _misses(one, given & ~inside)
    worst = tuple(sorted(misses, key=lambda miss: -miss.widths)[:_MISSES_SHOWN])
    return Coverage(compared[0].kind, compared[0].basis, intervals, held, held_wide, worst)


def _misses(one: _Compared, missed: NDArray[np.bool_]) -> Iterator[Miss]:
    for spot in np.flatnonzero(missed):
        ends = (float(values[spot]) for values in (one.exact, one.low, one.high))
        yield Miss(one.title, one.labels[spot], *ends)
