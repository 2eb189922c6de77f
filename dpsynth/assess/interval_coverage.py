"""Published intervals against the exact statistics of the rows that the release used.

Invariant: every table of statistics in the manifest is compared, or named as not compared.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.assess.coded_table import CodedTable
from dpsynth.assess.owned_bundle import OwnedBundle
from dpsynth.domain.numeric_codec import NumericCodec
from dpsynth.publish import restore

_MISSES_SHOWN = 12
_CLAIMS, _NOISE = ("limits", "interval"), "noise"
"""Columns that say what an interval covers, and how the text begins where that is the noise alone."""


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
        """Distance of the exact number from the interval, in the interval's widths."""
        beyond = max(self.low - self.exact, self.exact - self.high)
        return beyond / max(self.high - self.low, 1e-12)


@dataclass(frozen=True)
class Coverage:
    """Intervals of one kind and basis.

    Attributes:
        kind: "one_way", "crosstab" or "mean".
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


def interval_coverage(bundle: OwnedBundle, real: CodedTable) -> Coverages:
    """The coverage of all published intervals."""
    listed = cast(list[Mapping[str, object]], bundle.manifest["statistics"])
    compared, left_out = list[_Compared](), list[str]()
    for described in listed:
        one = _compared(bundle, real, described)
        if one is None:
            left_out.append(str(described["file"]))
        else:
            compared.append(one)
    groups = dict.fromkeys((one.kind, one.basis) for one in compared)
    return Coverages(
        tuple(_coverage([c for c in compared if (c.kind, c.basis) == group]) for group in groups),
        tuple(left_out),
    )


def _compared(bundle: OwnedBundle, real: CodedTable, described: Mapping[str, object]) -> _Compared | None:
    kind, clique = str(described["kind"]), tuple(cast(list[str], described["columns"]))
    if not set(clique) <= real.codes.keys():
        return None
    table = _read(bundle.public / str(described["file"]))
    if kind in ("one_way", "crosstab"):
        exact = real.counts(clique).astype(np.float64)
    elif kind == "mean" and clique[-1] in real.numbers:
        exact = _means(real, clique)
    else:
        return None
    if len(exact) != table.num_rows or not {"low", "high", "basis"} <= set(table.column_names):
        return None
    names = table.column_names[: table.column_names.index("estimate")]
    cells = [" · ".join(row.values()) for row in table.select(names).to_pylist()]
    nothing = np.zeros(len(exact))
    return _Compared(
        kind=kind,
        basis=_basis(table),
        title=str(described["title"]),
        labels=tuple(cells or [""] * len(exact)),
        exact=exact,
        low=_numbers(table["low"]),
        high=_numbers(table["high"]),
        grouping=_numbers(table["grouping_error"]) if "grouping_error" in table.column_names else nothing,
    )


def _read(path: Path) -> pa.Table:
    """A table of statistics as texts."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *lines = csv.reader(file, strict=True)
    columns = zip(*lines, strict=True) if lines else ((),) * len(header)
    names = restore(pa.array(header, pa.string())).to_pylist()
    return pa.table([restore(pa.array(column, pa.string())) for column in columns], names=names)


def _basis(table: pa.Table) -> str:
    """The basis of a table, and whether its intervals cover the noise alone, where it says so."""
    if not table.num_rows:
        return ""
    basis = str(table["basis"][0].as_py())
    claims = [text for name in _CLAIMS if name in table.column_names for text in table[name].to_pylist()]
    return f"{basis}, {_NOISE} alone" if any(str(text).startswith(_NOISE) for text in claims) else basis


def _numbers(texts: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.array([float(text) if text else np.nan for text in texts.to_pylist()])


def _means(real: CodedTable, clique: tuple[str, ...]) -> NDArray[np.float64]:
    """Exact means by group, of numbers moved to the declared ends as a release moves them."""
    column = next(c for c in real.columns if c.name == clique[-1])
    assert isinstance(column.codec, NumericCodec)
    numbers = np.clip(real.numbers[clique[-1]], column.codec.edges[0], column.codec.edges[-1])
    if column.codec.integer:
        numbers = np.minimum(numbers, np.floor(column.codec.edges[-1]))
    known = np.isfinite(numbers)
    groups = real.cells(clique[:-1])
    size = int(np.prod([real.sizes[name] for name in clique[:-1]], dtype=np.int64))
    rows = np.bincount(groups[known], minlength=size)
    sums = np.bincount(groups[known], weights=numbers[known], minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(rows > 0, sums / rows, np.nan)


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
