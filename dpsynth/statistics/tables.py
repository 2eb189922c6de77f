"""Tables of statistics with error bars: their requests and their layout.

There are two sources. A table of columns that were measured together comes from the noisy answers alone,
without bias and with exact errors; any other table comes from the fitted model, and rests on its
independences. Each table names its source; ``estimates`` gives the reasons.

Invariant: post-processing. Nothing here has seen the private table.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa

from dpsynth.columns.column import Column
from dpsynth.columns.domain import Clique
from dpsynth.columns.statistic_kinds import Asked, Mean
from dpsynth.errors import ConfigError
from dpsynth.statistics.computations import COMPUTATIONS, Computed, counts
from dpsynth.statistics.estimates import NONE
from dpsynth.statistics.sources import Sources

_FIGURES = frozenset(("estimate", "standard_error", "low", "high", "share", "share_standard_error"))
_FIGURES |= frozenset(("rows", "grouping_error", "basis", "limits", "quantile", "standard_deviation"))


_LONGEST_PART = 40


def _plain_letters(text: str) -> str:
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9_]+", "_", ascii_text).strip("_")[:_LONGEST_PART] or "column"


def file_name(parts: Iterable[str], taken: Set[str]) -> str:
    """A name of ASCII letters, digits, "_" and "-", differing from those taken in more than case.

    >>> file_name(["crosstab", "age", "a/b"], {"crosstab-age-A_b"})
    'crosstab-age-a_b-2'
    """
    stem = "-".join(map(_plain_letters, parts))
    used = {name.casefold() for name in taken}
    name, number = stem, 1
    while name.casefold() in used:
        number += 1
        name = f"{stem}-{number}"
    return name


_OF_ROWS = ("one_way", "crosstab", "count", "sum")
"""Kinds of statistics that grow with the number of rows."""


@dataclass(frozen=True)
class StatisticTable:
    """One table of statistics.

    Attributes:
        name: safe as a file name and unique among a release's tables.
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
        claims = [str(claim) for claim in self.table["limits"].to_pylist()]
        return next((claim for claim in claims if claim != NONE), NONE)

    @property
    def counts_rows(self) -> bool:
        return self.kind in _OF_ROWS

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(self.table.column_names[: self.table.column_names.index("estimate")])


def compute_statistics(requests: Sequence[Asked], sources: Sources) -> tuple[StatisticTable, ...]:
    """The one-way table of every column, then the requested tables in their order.

    Raises:
        ConfigError: a request names an undeclared column, a column twice, or the mean of a
            column without numbers.
    """
    tables: dict[str, StatisticTable] = {}
    for column in sources.columns:
        found = counts((column.name,), sources, alone=True)
        table = _table("one_way", (column.name,), found, tables.keys())
        tables[table.name] = table
    for request in requests:
        _check(request, sources.named)
        found = COMPUTATIONS[type(request)](request, sources)
        table = _table(request.kind, request.columns, found, tables.keys(), request.stated)
        tables[table.name] = table
    return tuple(tables.values())


def _check(request: Asked, columns: Mapping[str, Column]) -> None:
    clique = request.columns
    unknown = [name for name in clique if name not in columns]
    if unknown or not clique or len(set(clique)) < len(clique):
        detail = f"no column is named {unknown[0]!r}" if unknown else "each column must be named once"
        raise ConfigError(f"The statistic over {', '.join(clique) or 'nothing'} can't be made: {detail}.")
    of = columns[request.mean] if isinstance(request, Mean) else None
    if of is not None and (of.centres is None or of.codec.half_widths is None):
        raise ConfigError(f"The mean of {of.name} can't be made: its values are not numbers.")


def _table(
    kind: str, columns: Clique, computed: Computed, taken: Set[str], asked: Mapping[str, object] | None = None
) -> StatisticTable:
    figures, members = computed.figures, computed.members
    shape = tuple(member.size for member in members)
    groups, rows = prod(shape), len(figures.estimate)
    cells = np.indices(shape).reshape(len(shape), -1) if shape else ()
    arrays = {
        name: pa.array(member.labels, pa.string()).take(pa.array(np.repeat(codes, rows // groups)))
        for name, member, codes in zip(names_beside_figures(members), members, cells, strict=True)
    }
    arrays |= {name: pa.array(list(texts) * groups, pa.string()) for name, texts in computed.labels.items()}
    numbers = {
        "estimate": figures.estimate,
        "standard_error": figures.error,
        "low": figures.low,
        "high": figures.high,
        **figures.more,
    }
    arrays |= {name: pa.array(values, pa.float64(), from_pandas=True) for name, values in numbers.items()}
    bases = [figures.basis] * rows if isinstance(figures.basis, str) else figures.basis
    arrays |= {"limits": pa.array(figures.interval, pa.string()), "basis": pa.array(bases, pa.string())}
    return StatisticTable(
        name=file_name(computed.name, taken),
        title=computed.title,
        kind=kind,
        columns=columns,
        table=pa.table(arrays),
        measured=figures.measured,
        document=computed.document,
        asked=asked,
    )


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
