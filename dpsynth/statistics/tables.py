"""Tables of statistics with error bars: their requests and their layout.

There are two sources. A table of columns that were measured together comes from the noisy answers alone,
without bias and with exact errors; any other table comes from the fitted model, and rests on its
independences. Each table names its source; ``estimates`` gives the reasons.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import isnan, nan
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.config.statistic_kinds import Asked, Crosstab, Mean, as_json
from dpsynth.errors import ConfigError
from dpsynth.statistics.computations import COMPUTATIONS, Computed
from dpsynth.statistics.estimates import HOLDS, NONE, Z95, Marginals, Numbers, Unbiased
from dpsynth.statistics.grouped_counts import GroupedCounts, Measure
from dpsynth.statistics.provenance import ANSWERS_ALONE, Provenance, Sources, file_name
from dpsynth.statistics.summed_means import SummedMeans, summed_means, sums_of

_FIGURES = frozenset(("estimate", "standard_error", "low", "high", "share", "share_standard_error"))
_FIGURES |= frozenset(("rows", "grouping_error", "basis", "limits", "quantile", "standard_deviation"))


@runtime_checkable
class CrosstabRequest(Protocol):
    """A request for counts by several columns."""

    @property
    def crosstab(self) -> Clique:
        """The columns."""
        ...


@runtime_checkable
class MeanRequest(Protocol):
    """A request for the mean of a column, over all rows or by group."""

    @property
    def mean(self) -> str:
        """The column averaged."""
        ...

    @property
    def by(self) -> Clique | str | None:
        """The column whose values make the groups, if any."""
        ...


StatisticRequest = CrosstabRequest | MeanRequest | Asked


_OF_ROWS = ("one_way", "crosstab", "count", "sum")
"""Kinds of statistics that grow with the number of rows."""


@dataclass(frozen=True)
class StatisticTable:
    """One table of statistics.

    Attributes:
        name: safe as a file name and unique among a release's tables.
        title: its content in words.
        kind: "one_way", or the word of its kind in the configuration.
        columns: the columns of the private table that it is about; for a mean by group, the group's column
            first.
        table: one row a cell. Label columns bear the names of the table's columns; then
            ``estimate``, ``standard_error``, ``low`` and ``high`` (95 % interval), and for
            one-way tables ``share`` and ``share_standard_error``, for means ``rows`` (estimated
            rows without a missing value) and ``grouping_error`` (largest distance of the mean from the
            estimate because values inside a bin are unknown, or were cut at a limit). Null where undefined.
            A measured count may be negative; the ends of a count's interval never are. Last, ``basis``:
            "measured" (counts), "measured sum", "public" or "model" in every row, for a reader of the file
            alone; for the model also its evidence beside this release's answers: "model with earlier
            periods". Before it stands ``limits``, which is what the interval claims: "95 %", "noise only" or
            "none".
        measured: true if it comes from the answers, all its columns having been measured together, or from
            public marginals; otherwise it is the model's.
        document: the content as JSON values, for a classifier; None where the table says it all.
        asked: the request as JSON values, where kind and columns don't say it all.
    """

    name: str
    title: str
    kind: str
    columns: Clique
    table: pa.Table
    measured: bool
    document: Mapping[str, object] | None = None
    asked: Mapping[str, object] | None = None

    @property
    def limits(self) -> str:
        """The claim of the intervals: that of the first figure."""
        claims = [str(claim) for claim in self.table["limits"].to_pylist()]
        return next((claim for claim in claims if claim != NONE), NONE)

    @property
    def counts_rows(self) -> bool:
        """True if its figures grow with the number of rows: counts and sums."""
        return self.kind in _OF_ROWS

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the columns of ``table`` that hold labels."""
        return tuple(self.table.column_names[: self.table.column_names.index("estimate")])


def compute_statistics(
    requests: Sequence[StatisticRequest],
    columns: Sequence[Column],
    direct: Unbiased,
    model: Marginals,
    replicates: Sequence[Marginals],
    *,
    provenance: Provenance = ANSWERS_ALONE,
) -> tuple[StatisticTable, ...]:
    """The one-way table of every column, then the requested tables in their order.

    Args:
        requests: crosstabs and means.
        columns: the table's columns, in order.
        direct: estimates from the answers alone, for columns that were measured together.
        model: the fitted model, for all other columns.
        replicates: refits to fresh noise, which give the errors of the model's tables; without any, those
            errors are null.
        provenance: what tables rest on beside the noisy counts.

    Raises:
        ConfigError: a request names an undeclared column, a column twice, or the mean of a
            column without numbers.
    """
    named = {column.name: column for column in columns}
    everything = _Tables(Sources(named, direct, model, replicates, provenance))
    tables: dict[str, StatisticTable] = {}
    for column in columns:
        table = everything.counts("one_way", (column.name,), tables.keys())
        tables[table.name] = table
    for request in requests:
        table = everything.requested(request, tables.keys())
        tables[table.name] = table
    return tuple(tables.values())


@dataclass(frozen=True)
class _Tables:
    sources: Sources

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.sources.columns

    def requested(self, request: StatisticRequest, taken: Set[str]) -> StatisticTable:
        if isinstance(request, Asked) and not _plain(request):
            self.checked(request.columns)
            return _of_kind(request, COMPUTATIONS[type(request)](request, self.sources), taken)
        if isinstance(request, MeanRequest):
            by = (request.by,) if isinstance(request.by, str) else request.by or ()
            return self.means(request.mean, by, taken)
        assert isinstance(request, CrosstabRequest)
        return self.counts("crosstab", tuple(request.crosstab), taken)

    def checked(self, clique: Clique) -> tuple[Column, ...]:
        unknown = [name for name in clique if name not in self.columns]
        if unknown or not clique or len(set(clique)) < len(clique):
            detail = f"no column is named {unknown[0]!r}" if unknown else "each column must be named once"
            raise ConfigError(f"The statistic over {', '.join(clique) or 'nothing'} can't be made: {detail}.")
        return tuple(self.columns[name] for name in clique)

    def counts(self, kind: str, clique: Clique, taken: Set[str]) -> StatisticTable:
        members = self.checked(clique)
        counted = self.sources.counted(clique)
        found = counted.figures
        figures = _with_interval(found.rows, found.error)
        if kind == "one_way":
            figures |= {"share": found.share, "share_standard_error": found.share_error}
        return StatisticTable(
            name=file_name((kind, *clique), taken),
            title=listed(clique),
            kind=kind,
            columns=clique,
            table=_table(members, figures, counted.limits, counted.basis),
            measured=self.sources.is_direct(clique),
        )

    def means(self, of: str, by: Clique, taken: Set[str]) -> StatisticTable:
        clique = (*by, of)
        members = self.checked(clique)
        if members[-1].centres is None or members[-1].codec.half_widths is None:
            raise ConfigError(f"The mean of {of} can't be made: its values are not numbers.")
        summed = sums_of(clique, self.sources.provenance.sums)
        counted = self.sources.counted(clique)
        if summed is not None and self.sources.measured(clique):
            figures = _summed(summed_means(summed, members[-1], self.sources.direct))
            limits, basis = HOLDS, "measured sum"
        else:
            figures = _of_counts(GroupedCounts(members, len(by), counted), of)
            limits, basis = counted.limits, counted.basis
        return StatisticTable(
            name=file_name(("mean", of, *(("by", *by) if by else ())), taken),
            title=f"{of} by {by[0]}" if by else f"mean of {of}",
            kind="mean",
            columns=clique,
            table=_table(members[:-1], figures, limits, basis),
            measured=self.sources.is_direct(clique),
        )


def _summed(found: SummedMeans) -> dict[str, Numbers]:
    return {
        "estimate": found.mean,
        "standard_error": found.error,
        "low": found.low,
        "high": found.high,
        "rows": found.rows,
        "grouping_error": found.cut_off,
    }


def _plain(request: Asked) -> bool:
    """True for a crosstab, and for a mean of all rows by one column at most."""
    mean = isinstance(request, Mean) and request.where is None and len(request.by) <= 1
    return mean or isinstance(request, Crosstab)


def _of_kind(request: Asked, computed: Computed, taken: Set[str]) -> StatisticTable:
    """The table of a computed statistic: labels of groups, further labels, figures, claim and basis."""
    figures, members = computed.figures, computed.members
    shape = tuple(member.size for member in members)
    groups = int(np.prod(shape, dtype=np.int64))
    cells = np.indices(shape).reshape(len(shape), -1) if shape else ()
    each = len(figures.estimate) // groups
    labels = {
        name: pa.array(np.repeat(np.array(member.labels, dtype=object)[codes], each), pa.string())
        for name, member, codes in zip(names_beside_figures(members), members, cells, strict=True)
    }
    labels |= {name: pa.array(list(texts) * groups, pa.string()) for name, texts in computed.labels.items()}
    numbers = {
        "estimate": figures.estimate,
        "standard_error": figures.error,
        "low": figures.low,
        "high": figures.high,
        **figures.more,
    }
    rows = len(figures.estimate)
    bases = [figures.basis] * rows if isinstance(figures.basis, str) else list(figures.basis)
    arrays = labels | {
        name: pa.array(values, pa.float64(), from_pandas=True) for name, values in numbers.items()
    }
    # A figure without an end has no interval to claim anything of.
    stated = [figures.interval] * rows if isinstance(figures.interval, str) else figures.interval
    claims = [claim if np.isfinite(low) else NONE for claim, low in zip(stated, figures.low, strict=True)]
    arrays |= {"limits": pa.array(claims, pa.string()), "basis": pa.array(bases, pa.string())}
    return StatisticTable(
        name=file_name(computed.name, taken),
        title=computed.title,
        kind=request.kind,
        columns=request.columns,
        table=pa.table(arrays),
        measured=figures.measured,
        document=computed.document,
        asked=as_json(request),
    )


def _of_counts(counts: GroupedCounts, of: str) -> dict[str, Numbers]:
    """Figures of means that follow from counts; a mean may lie off by the grouping error beside its noise."""
    found = [
        (*counts.figure(g, Measure("mean", (of,))), counts.grouping_error(g, of))
        for g in range(counts.groups)
    ]
    rows = [(f.value, f.error, f.low, f.high, n, nan if isnan(f.value) else wide) for f, n, wide in found]
    names = ("estimate", "standard_error", "low", "high", "rows", "grouping_error")
    return dict(zip(names, np.array(rows, dtype=np.float64).reshape(-1, len(names)).T, strict=True))


def _with_interval(rows: Numbers, error: Numbers) -> dict[str, Numbers]:
    """Figures of counts. Where noise has taken one below zero, the upper end is that of a count of 0."""
    return {
        "estimate": rows,
        "standard_error": error,
        "low": np.maximum(rows - Z95 * error, 0.0),
        "high": np.maximum(rows, 0.0) + Z95 * error,
    }


def _table(members: Sequence[Column], figures: Mapping[str, Numbers], limits: str, basis: str) -> pa.Table:
    shape = tuple(member.size for member in members)
    cells = np.indices(shape).reshape(len(shape), -1) if shape else ()
    labels = [pa.array(m.labels, pa.string()).take(pa.array(c)) for m, c in zip(members, cells, strict=True)]
    numbers = [pa.array(values, pa.float64(), from_pandas=True) for values in figures.values()]
    stated = [pa.repeat(words, len(numbers[0])) for words in (limits, basis)]
    names = [*names_beside_figures(members), *figures, "limits", "basis"]
    return pa.Table.from_arrays([*labels, *numbers, *stated], names=names)


def listed(names: Clique) -> str:
    """Names as a list in words.

    >>> listed(("age", "sex", "city"))
    'age, sex and city'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def names_beside_figures(members: Iterable[Column]) -> list[str]:
    """Names of the columns, with "column " in front of those that clash with a figure's name."""
    names = [member.name for member in members]
    labels: list[str] = []
    for name in names:
        label = name
        while label in _FIGURES or (label != name and label in names) or label in labels:
            label = f"column {label}"
        labels.append(label)
    return labels
