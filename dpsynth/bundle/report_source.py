"""The public facts that the report is made of, read from the public folder of a bundle, and views of them.

Views are texts, and lengths in per cent of a picture's width.

A report is made of the other public files alone, when a release ends and ever after. So it can be made anew,
and shows nothing that a recipient doesn't have.

Invariant: equal files make equal reports.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import log, log1p, sqrt
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa

from dpsynth import figures
from dpsynth.bundle.manifest import (
    BundleRefused,
    Facts,
    Manifest,
    Mechanism,
    Statistic,
    read_values,
)
from dpsynth.bundle.row_files import restore
from dpsynth.bundle.structure_tree import PairError
from dpsynth.errors import ConfigError
from dpsynth.statistics import exam
from dpsynth.statistics.estimates import Z95
from dpsynth.statistics.tables import StatisticTable

REPORT = "report.html"
_UNEVEN = 1.5
"""Ratio of the widest to the narrowest bin above which bins are of unequal width."""


@dataclass(frozen=True)
class ShownColumn:
    """A column as its histogram needs it.

    Attributes:
        values: number of its values, without those of missing cells.
    """

    values: int
    ordered: bool
    numeric: bool
    uneven: bool

    @staticmethod
    def of(described: Facts) -> ShownColumn:
        missing, edges = described["missing"], described.get("edges")
        gone = bool(missing["modelled"]) + len(missing.get("distinct_markers", ()))
        widths = [b - a for a, b in pairwise(edges)] if edges else []
        # The last bin of whole numbers ends half a step above its last value.
        inner = widths[:-1] or widths
        return ShownColumn(
            values=len(described["labels"]) - gone,
            ordered=bool(described.get("ordered", edges is not None or "unit" in described)),
            numeric=edges is not None,
            uneven=bool(inner) and max(inner) > _UNEVEN * min(inner),
        )


@dataclass(frozen=True, eq=False)
class ReportSource:
    """The facts of a report.

    Attributes:
        manifest: the manifest; of its ``files`` the names alone are used.
        errors: the measured error of each pair that was examined.
    """

    manifest: Manifest
    files: Collection[str]
    statistics: tuple[StatisticTable, ...]
    errors: Mapping[frozenset[str], PairError]


def report_source(folder: Path, manifest: Manifest, files: Collection[str]) -> ReportSource:
    """The facts of a report.

    Args:
        files: names of the public files, without those that are written after the report.
    """
    errors = _errors(folder / exam.FILE) if exam.FILE in files else {}
    tables = tuple(_statistic(folder, stated) for stated in manifest.statistics)
    return ReportSource(manifest, frozenset(files), tables, errors)


def read_source(folder: Path) -> ReportSource:
    """The facts of a finished bundle's report.

    Raises:
        ConfigError: the folder is not the public folder of a bundle, or is damaged.
    """
    manifest = stated_in(folder)
    try:
        return report_source(folder, manifest, manifest.files)
    except FileNotFoundError as error:
        raise _missing(folder, str(error.filename)) from None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise damaged(folder) from None


def stated_in(folder: Path) -> Manifest:
    """A bundle's manifest, as the owner's commands read it.

    Raises:
        ConfigError: the folder has none, or it is damaged.
    """
    values = stated_values(folder)
    try:
        return Manifest.of_values(values)
    except ValueError:
        raise damaged(folder) from None


def stated_values(folder: Path) -> dict[str, Any]:
    """The values of a bundle's manifest, as the owner's commands read them.

    Raises:
        ConfigError: the folder has none, or it is damaged.
    """
    try:
        return read_values(folder)
    except BundleRefused:
        raise damaged(folder) from None


def _missing(folder: Path, file: str) -> ConfigError:
    return ConfigError(f"{folder} is not the public folder of a bundle: it has no {Path(file).name}.")


def damaged(folder: Path) -> ConfigError:
    """The error of a bundle whose files don't say what a report needs."""
    return ConfigError(
        f"The bundle in {folder} can't be read: a file of it is damaged, or was written by another version "
        "of dpsynth. Its manifest.json names the version under software."
    )


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    return restore(pa.array(header, pa.string())).to_pylist(), rows


def _statistic(folder: Path, stated: Statistic) -> StatisticTable:
    header, rows = _rows(folder / stated.file)
    labels = header.index("estimate")
    columns = []
    for spot in range(len(header)):
        cells = [row[spot] for row in rows]
        columns.append(restore(pa.array(cells, pa.string())) if spot < labels else _numbers_of(cells))
    return StatisticTable(
        name=Path(stated.file).stem,
        title=stated.title,
        kind=stated.kind,
        columns=stated.columns,
        table=pa.table(columns, names=header),
        measured=stated.measured,
    )


def _numbers_of(cells: Sequence[str]) -> pa.Array:
    """Numbers, null where empty; or texts, in a column that says what the numbers rest on."""
    try:
        return pa.array([float(cell) if cell else None for cell in cells], pa.float64())
    except ValueError:
        return restore(pa.array(cells, pa.string()))


def _errors(path: Path) -> dict[frozenset[str], PairError]:
    header, rows = _rows(path)
    found = {}
    for row in rows:
        cells = dict(zip(header, restore(pa.array(row, pa.string())).to_pylist(), strict=True))
        if cells["kind"] == "pair":
            pair = frozenset((cells["column_1"], cells["column_2"]))
            found[pair] = PairError(*(float(cells[name]) for name in ("error", "low", "high")))
    return found


_BARS_SHOWN = 16
_LARGEST_SHOWN = 8
_ROWS_SHOWN = 40
_HISTOGRAM_FROM = 12
_CELLS_SHOWN = 1500
_WIDEST_MATRIX = 14
_TICKS, _FEW_TICKS = 5, 3
"""Number of labels below a histogram; the second where one is longer than ``_SHORT`` letters."""
_SHORT = 8
_TAIL = 200.0
"""Ratio of the largest count to a usual one above which heights are logarithmic."""
_WIDE_RANGE = 50.0
"""Ratio of the largest mean to the smallest above which means stand on a logarithmic axis."""

Row = Mapping[str, object]


@dataclass(frozen=True)
class Bar:
    """One category: texts, and the ends of its bar and its whisker, in per cent.

    ``made`` is the place of the synthetic table's rows on the same scale; None where they are not shown.
    """

    label: str
    figure: str
    margin: str
    share: str
    length: float
    low: float
    high: float
    made: float | None = None


@dataclass(frozen=True)
class OneWayView:
    """A one-way table: the bars shown at once, all of them, and a histogram for many numbers.

    Attributes:
        margin: the common margin of all bars, if there is one; the bars' own margins are "" then.
        ticks: labels of the histogram's bars that are written below it, with their places in per cent.
        logarithmic: True if its heights are on a logarithmic scale, since a linear one would hide a tail.
    """

    statistic: StatisticTable
    margin: str
    shown: tuple[Bar, ...]
    everything: tuple[Bar, ...]
    histogram: tuple[Bar, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    uneven: bool = False
    logarithmic: bool = False


@dataclass(frozen=True)
class Cell:
    """One cell of a crosstab; ``shade`` from 0 to 1."""

    figure: str
    margin: str
    shade: float


@dataclass(frozen=True)
class CrosstabView:
    """A crosstab as a matrix; no lines where it is too large for a page. ``margin`` as in OneWayView."""

    statistic: StatisticTable
    margin: str
    across: str
    down: str
    heads: tuple[str, ...]
    lines: tuple[tuple[str, tuple[Cell, ...]], ...]
    folded: bool


@dataclass(frozen=True)
class MeanRow:
    """One group's mean: texts, and its dot and whisker in per cent of the picture's width.

    The dot of an estimate ``beyond`` its interval stands at the nearer end.
    """

    label: str
    figure: str
    margin: str
    rows: str
    grouping_error: str
    dot: float | None
    low: float
    high: float
    beyond: bool


@dataclass(frozen=True)
class MeanView:
    """Means or other figures by group, on one scale from ``least`` to ``most``, linear or logarithmic."""

    statistic: StatisticTable
    rows: tuple[MeanRow, ...]
    least: str
    most: str
    folded: bool
    logarithmic: bool

    @property
    def binned(self) -> bool:
        return any(row.grouping_error for row in self.rows)

    @property
    def beyond(self) -> bool:
        """True if noise has taken an estimate beyond its interval, which has possible figures alone."""
        return any(row.beyond for row in self.rows)


def _number(row: Row, name: str) -> float | None:
    value = row.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _halved_interval(row: Row) -> float | None:
    error = _number(row, "standard_error")
    return None if error is None else Z95 * error


def _label(statistic: StatisticTable, row: Row) -> str:
    return " · ".join(str(row[name]) for name in statistic.label_names)


def one_way_view(statistic: StatisticTable, column: ShownColumn, made: Sequence[float] = ()) -> OneWayView:
    """Bars of a column's values; a histogram as well for many numbers.

    Args:
        statistic: the estimated rows of each value.
        made: the synthetic table's rows of each value, where they are to be shown.
    """
    rows = [dict(row, made=of) for row, of in zip_longest(statistic.table.to_pylist(), made)]
    most = _most(rows, "high") or _most(rows, "estimate") or 1.0
    histogram = column.ordered and column.values > _HISTOGRAM_FROM
    logarithmic = histogram and _has_tail(rows[: column.values], most)
    shared, margins = _margins(rows)
    bars = tuple(
        _bar(_bin_label(statistic, row, column), row, margin, _Scale(most, logarithmic))
        for row, margin in zip(rows, margins, strict=True)
    )
    if histogram:
        shown = bars[: column.values]
        # Bars beside the histogram have lengths of their own.
        linear = tuple(
            _bar(bar.label, row, bar.margin, _Scale(most, False)) for bar, row in zip(bars, rows, strict=True)
        )
        return OneWayView(
            statistic,
            shared,
            linear[column.values :],
            linear,
            shown,
            _ticks(shown),
            column.uneven,
            logarithmic,
        )
    if len(bars) > _BARS_SHOWN:
        largest = sorted(bars, key=lambda bar: bar.length, reverse=True)[:_LARGEST_SHOWN]
        return OneWayView(statistic, shared, tuple(largest), bars)
    return OneWayView(statistic, shared, bars, bars)


def _has_tail(rows: Sequence[Row], most: float) -> bool:
    positive = [e for row in rows if (e := _number(row, "estimate") or 0.0) > 0.0]
    return bool(positive) and most > _TAIL * median(positive)


def _bin_label(statistic: StatisticTable, row: Row, column: ShownColumn) -> str:
    label = _label(statistic, row)
    return figures.grouped(label) if column.numeric else label


def _ticks(bars: Sequence[Bar]) -> tuple[tuple[float, str], ...]:
    last = len(bars) - 1
    number = _TICKS if max(len(bar.label) for bar in bars) <= _SHORT else _FEW_TICKS
    spots = sorted({round(tick * last / (number - 1)) for tick in range(number)})
    return tuple((100.0 * (spot + 0.5) / len(bars), bars[spot].label) for spot in spots)


@dataclass(frozen=True)
class _Scale:
    """A scale of counts, from 0 to ``most``."""

    most: float
    logarithmic: bool

    def place(self, value: float) -> float:
        part = max(value, 0.0)
        return 100.0 * (log1p(part) / log1p(self.most) if self.logarithmic else part / self.most)


def _most(rows: Sequence[Row], name: str) -> float:
    return max([0.0, *(_number(row, name) or 0.0 for row in rows)])


def _margins(rows: Sequence[Row]) -> tuple[str, Sequence[str]]:
    """The common margin of all figures, or "", and the margin of each that differs from it."""
    margins = [figures.margin(_halved_interval(row)) for row in rows]
    if len(set(margins)) == 1:
        return margins[0], [""] * len(margins)
    return "", margins


def _bar(label: str, row: Row, margin: str, scale: _Scale) -> Bar:
    estimate = _number(row, "estimate") or 0.0
    low, high, made = (_number(row, name) for name in ("low", "high", "made"))
    return Bar(
        label=label,
        figure=figures.count(estimate),
        margin=margin,
        share=figures.percent(_number(row, "share")),
        length=scale.place(estimate),
        low=scale.place(estimate if low is None else low),
        high=scale.place(estimate if high is None else high),
        made=None if made is None else min(scale.place(made), 100.0),
    )


def crosstab_view(statistic: StatisticTable, width: int) -> CrosstabView:
    """A matrix with the last column, of ``width`` labels, across; or the first where it is narrower."""
    rows = statistic.table.to_pylist() if statistic.table.num_rows <= _CELLS_SHOWN else []
    *first, last = statistic.label_names
    across, down = last, " · ".join(first) or last
    downs = [" · ".join(str(row[name]) for name in first) for row in rows[::width]]
    heads = [str(row[last]) for row in rows[:width]]
    most = _most(rows, "estimate") or 1.0
    shared, margins = _margins(rows)
    cells = [_cell(row, margin, most) for row, margin in zip(rows, margins, strict=True)]
    if not first:
        across, downs, heads, width = "", heads, ["rows"], 1
    matrix = [tuple(cells[start : start + width]) for start in range(0, len(cells), width)]
    if len(first) == 1 and width > _WIDEST_MATRIX and len(downs) < width:
        across, down, heads, downs = down, across, downs, heads
        matrix = list(zip(*matrix, strict=True))
    lines = tuple(zip(downs, matrix, strict=True))
    return CrosstabView(statistic, shared, across, down, tuple(heads), lines, len(lines) > _ROWS_SHOWN)


def _cell(row: Row, margin: str, most: float) -> Cell:
    estimate = _number(row, "estimate") or 0.0
    return Cell(figures.count(estimate), margin, sqrt(max(estimate, 0.0) / most))


def mean_view(statistic: StatisticTable) -> MeanView:
    """Dots with whiskers on the scale that holds all intervals."""
    rows = statistic.table.to_pylist()
    # An estimate beyond its interval is shown at the interval's end.
    names = [("low", "high") if _number(row, "low") is not None else ("estimate",) for row in rows]
    ends = [_number(row, name) for row, some in zip(rows, names, strict=True) for name in some]
    defined = [end for end in ends if end is not None]
    least, most = min(defined, default=0.0), max(defined, default=0.0)
    logarithmic = least > 0.0 and most > _WIDE_RANGE * least
    span = (most - least) or 1.0

    def position(value: float | None) -> float:
        if value is None:
            return 0.0
        return 100.0 * (log(value / least) / log(most / least) if logarithmic else (value - least) / span)

    shown = tuple(_mean_row(_label(statistic, row) or "all rows", row, position) for row in rows)
    marks = (figures.number(least, span / 10), figures.number(most, span / 10))
    if logarithmic:
        marks = (figures.number(least), figures.number(most))
    return MeanView(statistic, shown, *marks, folded=len(rows) > _ROWS_SHOWN, logarithmic=logarithmic)


def _mean_row(label: str, row: Row, position: Callable[[float | None], float]) -> MeanRow:
    estimate, error = _number(row, "estimate"), _number(row, "standard_error")
    low, high = _number(row, "low"), _number(row, "high")
    grouping_error = _number(row, "grouping_error")
    half = None if error is None else Z95 * error
    if "grouping_error" not in row and half is not None and low is not None and high is not None:
        # Where bins hide something, it is part of the interval, and no column of its own tells how much.
        half = max(half, (high - low) / 2)
    margin = "" if half is None or error is None else f"± {figures.number(half, error)}"
    if error is None and low is not None and high is not None:
        # A quantile's interval is of bins, and not even around it.
        margin = f"{figures.number(low, high - low)} to {figures.number(high, high - low)}"
    least = estimate if low is None else low
    most = estimate if high is None else high
    shown = None if estimate is None or least is None or most is None else min(max(estimate, least), most)
    return MeanRow(
        label=label,
        figure=figures.number(estimate, error),
        margin=margin,
        rows="" if "rows" not in row else figures.count(_number(row, "rows")),
        grouping_error=f"± {figures.number(grouping_error, error)}" if grouping_error else "",
        dot=None if shown is None else position(shown),
        low=position(least),
        high=position(most),
        beyond=shown != estimate,
    )


@dataclass(frozen=True)
class Step:
    """Answers of one kind; scales and prices as ranges where they differ."""

    what: str
    answers: int
    mechanism: str
    scale: str
    sensitivity: str
    price: str
    part: str
    length: float


_WAYS = ("The number of rows", "Counts by one column", "Counts by two columns", "Counts by three columns")


_PURPOSES = {
    "rows": "How many rows persons have",
    "sums": "Sums of numbers, for means",
    "finer counts": "Where in their bins numbers lie, for quantiles",
    "counts": "Where values lie, to find ends and bins",
    "medians": "Edges of bins of about as many rows each",
    "values": "Which values many units have",
    "choose": "Which columns to measure together",
    "errors": "How far sets of columns are from the model",
    "parities": "Which sets of columns of two values have an exclusive or",
    "exam": "How far the finished table is from the private one",
    "classified": "How often a classifier of synthetic rows is right",
}


def _purpose(mechanism: Mechanism) -> str:
    question, _, way = mechanism.question.partition(" by ")
    purpose, number = _PURPOSES.get(question), len(mechanism.columns or ())
    if purpose is None:
        purpose = _WAYS[number] if number < len(_WAYS) else f"Counts by {number} columns"
    if not way:
        return purpose
    return "The number of persons" if question == "count" else f"{purpose}, by {way} of persons"


def steps(mechanisms: Sequence[Mechanism], measure: str) -> tuple[Step, ...]:
    """Mechanisms grouped by purpose, name and sensitivity, in the order of their first.

    Args:
        mechanisms: one for each journalled answer.
        measure: "rho" or "epsilon", the figure of the release's costs.
    """
    grouped: dict[tuple[str, str, str], list[Mechanism]] = {}
    for one in mechanisms:
        grouped.setdefault((_purpose(one), one.mechanism, one.sensitivity), []).append(one)
    spent = sum(sum(_figures(group, measure)) for group in grouped.values()) or 1.0
    return tuple(
        _step(terms, group, measure, 100.0 * sum(_figures(group, measure)) / spent)
        for terms, group in grouped.items()
    )


def _step(terms: tuple[str, str, str], group: Sequence[Mechanism], measure: str, part: float) -> Step:
    what, mechanism, sensitivity = terms
    return Step(
        what=what,
        answers=sum(map(_answers, group)),
        mechanism=mechanism,
        scale=_range([figures.number(scale) for scale in sorted(_figures(group, "scale"))]),
        sensitivity=sensitivity,
        price=_range([f"{price:.2g}" for price in sorted(_figures(group, measure))]),
        part="< 1 %" if 0.0 < part < 1.0 else f"{part:.0f} %",
        length=part,
    )


def _answers(mechanism: Mechanism) -> int:
    candidates = mechanism.candidates if mechanism.question in ("errors", "parities", "exam") else None
    return 1 if candidates is None else candidates


def _range(rising: Sequence[str]) -> str:
    if not rising:
        return figures.NOTHING
    return rising[0] if rising[0] == rising[-1] else f"{rising[0]} to {rising[-1]}"


def _figures(mechanisms: Sequence[Mechanism], key: str) -> list[float]:
    found = (getattr(mechanism, key) for mechanism in mechanisms)
    return [value for value in found if value is not None]
