"""Tables of statistics with error bars: their requests and their layout.

There are two sources. A table of columns that were measured together comes from the noisy answers alone,
without bias and with exact errors; any other table comes from the fitted model, and rests on its
independences. Each table names its source; ``estimates`` gives the reasons.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from dpsynth.config.statistic_kinds import Asked, Crosstab, Mean, as_json
from dpsynth.domain.column import Column
from dpsynth.domain.domain import Clique
from dpsynth.errors import ConfigError
from dpsynth.publish.computations import COMPUTATIONS, HOLDS, NOISE_ONLY, NONE, Computed
from dpsynth.publish.estimates import Z95, Marginals, Means, Measured, Modelled, Numbers, Source, Unbiased
from dpsynth.publish.examined_estimates import ExaminedFigures
from dpsynth.publish.file_names import file_name
from dpsynth.publish.provenance import ANSWERS_ALONE, Provenance, Sources
from dpsynth.publish.public_estimates import PublicFigures
from dpsynth.publish.sampled_estimates import OfAllRows
from dpsynth.publish.summed_means import SummedMeans, summed_means, sums_of
from dpsynth.publish.uneven_estimates import MeasuredUnevenly, Uneven

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
    examined = ExaminedFigures(model, provenance.distances)
    sources = Sources(named, direct, model, replicates, provenance)
    sampled = provenance.sampled
    measured: Source = MeasuredUnevenly(direct) if isinstance(direct, Uneven) else Measured(direct)
    modelled: Source = Modelled(model, replicates)
    everything = _Tables(
        sources,
        measured if sampled is None else OfAllRows(measured, sampled),
        examined,
        modelled if sampled is None else OfAllRows(modelled, sampled),
        PublicFigures(provenance.public_marginals, direct),
    )
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
    measured: Source
    examined: ExaminedFigures
    modelled: Source
    public: Source

    @property
    def columns(self) -> Mapping[str, Column]:
        return self.sources.columns

    @property
    def provenance(self) -> Provenance:
        return self.sources.provenance

    def requested(self, request: StatisticRequest, taken: Set[str]) -> StatisticTable:
        if isinstance(request, Asked) and not _plain(request):
            self.checked(request.columns)
            return _of_kind(request, COMPUTATIONS[type(request)](request, self.sources), taken)
        if isinstance(request, MeanRequest):
            by = (request.by,) if isinstance(request.by, str) else request.by or ()
            return self.means(request.mean, by, taken)
        assert isinstance(request, CrosstabRequest)
        return self.counts("crosstab", tuple(request.crosstab), taken)

    def source(self, clique: Clique) -> Source:
        if self.provenance.public_marginals.shares(clique) is not None:
            return self.public
        if self.sources.direct.covers(clique):
            return self.measured
        return self.examined if self.examined.covers(clique) else self.modelled

    def basis_of(self, source: Source) -> str:
        if source is self.public:
            return "public"
        return "measured" if source is self.measured else self.provenance.basis

    def claim_of(self, source: Source) -> str:
        if source is not self.modelled:
            return HOLDS
        return NOISE_ONLY if self.sources.replicates else NONE

    def checked(self, clique: Clique) -> tuple[Column, ...]:
        unknown = [name for name in clique if name not in self.columns]
        if unknown or not clique or len(set(clique)) < len(clique):
            detail = f"no column is named {unknown[0]!r}" if unknown else "each column must be named once"
            raise ConfigError(f"The statistic over {', '.join(clique) or 'nothing'} can't be made: {detail}.")
        return tuple(self.columns[name] for name in clique)

    def counts(self, kind: str, clique: Clique, taken: Set[str]) -> StatisticTable:
        members = self.checked(clique)
        source = self.source(clique)
        found = source.counts(clique)
        figures = _with_interval(found.rows, found.error)
        if kind == "one_way":
            figures |= {"share": found.share, "share_standard_error": found.share_error}
        return StatisticTable(
            name=file_name((kind, *clique), taken),
            title=listed(clique),
            kind=kind,
            columns=clique,
            table=_table(members, figures, self.claim_of(source), self.basis_of(source)),
            measured=source not in (self.examined, self.modelled),
        )

    def means(self, of: str, by: Clique, taken: Set[str]) -> StatisticTable:
        clique = (*by, of)
        column = self.checked(clique)[-1]
        centres, half_widths = column.centres, column.codec.half_widths
        if centres is None or half_widths is None:
            raise ConfigError(f"The mean of {of} can't be made: its values are not numbers.")
        source = self.source(clique)
        summed = sums_of(clique, self.provenance.sums)
        if summed is not None and source is self.measured:
            figures = _summed(summed_means(summed, column, self.sources.direct))
            return self.mean_table(clique, figures, (HOLDS, "measured sum"), taken)
        figures = _of_counts(source.means(clique, centres, half_widths), centres, half_widths)
        return self.mean_table(clique, figures, (self.claim_of(source), self.basis_of(source)), taken)

    def mean_table(
        self, clique: Clique, figures: Mapping[str, Numbers], stated: tuple[str, str], taken: Set[str]
    ) -> StatisticTable:
        *groups, of = clique
        return StatisticTable(
            name=file_name(("mean", of, *(("by", *groups) if groups else ())), taken),
            title=f"{of} by {groups[0]}" if groups else f"mean of {of}",
            kind="mean",
            columns=clique,
            table=_table([self.columns[group] for group in groups], figures, *stated),
            measured=stated[-1] != self.provenance.basis,
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
    claims = [figures.interval if np.isfinite(low) else NONE for low in figures.low]
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


def _of_counts(found: Means, centres: Numbers, half_widths: Numbers) -> dict[str, Numbers]:
    """Figures of means that follow from counts; a mean may lie off by the grouping error beside its noise."""
    wide = Z95 * found.error + found.grouping_error
    least, most = float(np.min(centres - half_widths)), float(np.max(centres + half_widths))
    return {
        "estimate": found.mean,
        "standard_error": found.error,
        "low": np.clip(found.mean - wide, least, most),
        "high": np.clip(found.mean + wide, least, most),
        "rows": found.rows,
        "grouping_error": found.grouping_error,
    }


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
