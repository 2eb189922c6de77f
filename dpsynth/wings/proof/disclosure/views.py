"""Views of the synthetic table in the form of older disclosure control.

Tables of counts with small cells left out or rounded, and a k-anonymous table. They are for readers whose
rules ask for this form. All of them are made of the synthetic table, whose cells are whole and whose margins
agree.

Invariant: post-processing. A view adds nothing to the guarantee, and takes nothing from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.derived import Derived
from dpsynth.columns.domain import Clique
from dpsynth.columns.expression import references
from dpsynth.columns.finished_table import CodedRows
from dpsynth.columns.layout import Layout, companion
from dpsynth.config.publish import Publish
from dpsynth.statistics.tables import file_name, names_beside_figures
from dpsynth.wings.proof.disclosure.hierarchy import Hierarchy
from dpsynth.wings.proof.disclosure.k_anonymity import Demand, Levels, generalised
from dpsynth.wings.proof.disclosure.keys import KAnonymity, Rounding, cliques_of, k_anonymity_of, rounding_of
from dpsynth.wings.proof.disclosure.linked_tables import LinkedTables, linked_tables, rounded
from dpsynth.wings.proof.disclosure.suppression import left_out

FOLDER = "views"
K_ANONYMOUS = f"{FOLDER}/k_anonymous.csv"
ROWS = "rows"
"""Column of the counts."""
ADDS_NOTHING = (
    "The views in the folder views are made from the synthetic table alone. They add nothing to the "
    "guarantee, which holds for all files here together: leaving out small counts, rounding and k-anonymity "
    "protect nobody beyond it."
)

Codes = Mapping[str, NDArray[np.unsignedinteger]]


@dataclass(frozen=True, eq=False)
class CountsView:
    """A table of counts of synthetic rows, with its margins.

    Attributes:
        file: its file.
        columns: the columns.
        texts: the columns of the file by name: labels, empty where a column is summed over, then the counts,
            empty where left out.
        hidden: number of counts left out.
    """

    file: str
    columns: Clique
    texts: Mapping[str, Sequence[str]]
    hidden: int


@dataclass(frozen=True, eq=False)
class KAnonymousView:
    """A k-anonymous table.

    Attributes:
        texts: the columns of the file by name.
        asked: the declaration.
        hierarchies: those of the quasi-identifiers.
        levels: the level of each.
        rows: number of rows.
        left_out: number of rows left out.
        loss: Iyengar's loss.
        dropped: columns left out because they are computed from quasi-identifiers.
    """

    texts: Mapping[str, pa.StringArray]
    asked: KAnonymity
    hierarchies: tuple[Hierarchy, ...]
    levels: Levels
    rows: int
    left_out: int
    loss: float
    dropped: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """The facts of the manifest; for each quasi-identifier the group of each of its values in turn."""
        diverse = self.asked.l_diversity
        return {
            "file": K_ANONYMOUS,
            "k": self.asked.k,
            "quasi_identifiers": list(self.asked.quasi_identifiers),
            "l": 1 if diverse is None else diverse.l,
            "sensitive": [] if diverse is None else list(diverse.sensitive),
            "rows": self.rows,
            "rows_left_out": self.left_out,
            "suppress_at_most": float(self.asked.suppress_at_most),
            "loss": round(self.loss, 9),
            "columns_left_out": list(self.dropped),
            "generalised": {
                h.column: {
                    "level": level,
                    "of": len(h.levels) - 1,
                    "groups": [h.levels[level].labels[group] for group in h.levels[level].groups],
                }
                for h, level in zip(self.hierarchies, self.levels, strict=True)
            },
        }


@dataclass(frozen=True, eq=False)
class Views:
    """The views of a release.

    Attributes:
        counts: the tables of counts.
        suppress_below: the limit below which counts are left out; None without one.
        rounding: the base, and the way to it; None without one.
        k_anonymous: the k-anonymous table; None without one.
    """

    counts: tuple[CountsView, ...]
    suppress_below: int | None
    rounding: Rounding | None
    k_anonymous: KAnonymousView | None

    @property
    def adds_nothing(self) -> str:
        """What they add to the guarantee, in words."""
        return ADDS_NOTHING

    def to_json(self) -> dict[str, object]:
        rounding = self.rounding
        return {
            "adds_to_the_guarantee": ADDS_NOTHING,
            "suppress_below": self.suppress_below,
            "rounding": None if rounding is None else {"base": rounding.base, "method": rounding.method},
            "counts": [
                {"file": v.file, "columns": list(v.columns), "counts_left_out": v.hidden} for v in self.counts
            ],
            "k_anonymous": None if self.k_anonymous is None else self.k_anonymous.to_json(),
        }

    def files(self) -> Iterator[tuple[str, Mapping[str, Sequence[str] | pa.StringArray]]]:
        """Each file's name, with its columns."""
        for view in self.counts:
            yield view.file, view.texts
        if self.k_anonymous is not None:
            yield K_ANONYMOUS, self.k_anonymous.texts


def views_of(
    publish: Publish, layout: Layout, coded: CodedRows, table: Callable[[], pa.Table], release_id: str
) -> Views | None:
    """The views that a configuration asks for; None if it asks for none.

    Args:
        publish: the section of the configuration.
        layout: the layout of the synthetic table.
        coded: the codes of the synthetic table.
        table: gives the synthetic table, in memory.
        release_id: the release's id; roundings without bias follow from it.
    """
    asked, rounding = k_anonymity_of(publish), rounding_of(publish)
    counted = publish.suppress_below is not None or rounding is not None
    if asked is None and not counted:
        return None
    codes = coded.whole()
    cliques = cliques_of(publish.statistics) if counted else ()
    counts = _counts_views(cliques, layout.columns, codes, publish, release_id) if counted else ()
    anonymous = None if asked is None else _k_anonymous(asked, layout, table(), codes)
    return Views(tuple(counts), publish.suppress_below, rounding, anonymous)


def tables_of(cliques: Sequence[Clique], columns: Sequence[Column], codes: Codes) -> LinkedTables:
    """The counts of some sets of columns in a synthetic table, with all their margins."""
    used = {name for clique in cliques for name in clique}
    sizes = {column.name: column.size for column in columns if column.name in used}
    rows = len(next(iter(codes.values())))

    def counted(clique: Clique) -> NDArray[np.int64]:
        cell = np.zeros(rows, np.int64)
        for name in clique:
            cell = cell * sizes[name] + codes[name]
        return np.bincount(cell, minlength=prod(sizes[name] for name in clique))

    return linked_tables(cliques, sizes, counted)


def margins_shown(clique: Clique, tables: LinkedTables) -> list[Clique]:
    """The sets of columns whose counts a view of a clique shows: its own first, the total last."""
    return [part for part in reversed(tables.cliques) if set(part) <= set(clique)]


def cells_shown(part: Clique, clique: Clique, tables: LinkedTables) -> NDArray[np.int64]:
    """The places of a margin's cells among all cells, in row-major order of the view's columns."""
    own = [name for name in clique if name in part]
    where = tables.places[part]
    cells = np.arange(where.start, where.stop).reshape([tables.sizes[name] for name in part])
    return cells.transpose([part.index(name) for name in own]).reshape(-1)


def labels_shown(
    parts: Sequence[Clique], clique: Clique, columns: Mapping[str, Column]
) -> dict[str, list[str]]:
    """The label columns of a view: a row a cell of each margin, empty where a column is summed over."""
    headers = names_beside_figures([columns[name] for name in clique])
    labels: dict[str, list[str]] = {header: [] for header in headers}
    for part in parts:
        own = tuple(name for name in clique if name in part)
        for cell in cell_labels(own, columns):
            given = dict(zip(own, cell, strict=True))
            for header, name in zip(headers, clique, strict=True):
                labels[header].append(given.get(name, ""))
    return labels


def cell_labels(part: Clique, columns: Mapping[str, Column]) -> Iterator[tuple[str, ...]]:
    """The labels of the cells of a set of columns, in row-major order."""
    for place in np.ndindex(*(columns[name].size for name in part)):
        yield tuple(columns[name].labels[code] for name, code in zip(part, place, strict=True))


def shown_counts(
    tables: LinkedTables, columns: Mapping[str, Column], rounding: Rounding | None, release_id: str
) -> NDArray[np.int64]:
    """The counts of all cells as a view shows them where they are not left out, int64[cells]."""
    if rounding is None:
        return tables.counts
    names = (
        "\n".join((release_id, *part, *labels))
        for part in tables.cliques
        for labels in cell_labels(part, columns)
    )
    return rounded(tables.counts, rounding.base, rounding.method, names)


def _counts_views(
    cliques: Sequence[Clique], columns: Sequence[Column], codes: Codes, publish: Publish, release_id: str
) -> Iterator[CountsView]:
    tables = tables_of(cliques, columns, codes)
    named = {column.name: column for column in columns}
    below = publish.suppress_below
    hidden = np.zeros(len(tables.counts), np.bool_) if below is None else left_out(tables, below)
    shown = shown_counts(tables, named, rounding_of(publish), release_id)
    texts = np.where(hidden, "", shown.astype(str))
    taken: set[str] = set()
    for clique in cliques:
        name = file_name(("counts", *clique), taken)
        taken.add(name)
        parts = margins_shown(clique, tables)
        places = np.concatenate([cells_shown(part, clique, tables) for part in parts])
        labels = labels_shown(parts, clique, named)
        view = {**labels, ROWS: texts[places].tolist()}
        yield CountsView(f"{FOLDER}/{name}.csv", clique, view, int(hidden[places].sum()))


def _k_anonymous(asked: KAnonymity, layout: Layout, table: pa.Table, codes: Codes) -> KAnonymousView:
    columns = {column.name: column for column in layout.columns}
    hierarchies = asked.hierarchies_of(columns)
    diverse = asked.l_diversity
    sensitive = () if diverse is None else diverse.sensitive
    demand = Demand(asked.k, 1 if diverse is None else diverse.l, float(asked.suppress_at_most))
    found = generalised(codes, hierarchies, sensitive, demand)
    kept = pa.array(found.kept)
    dropped = dropped_columns(layout, asked.quasi_identifiers)
    texts = {name: text for name, text in layout.texts(table).items() if name not in dropped}
    for hierarchy, number in zip(hierarchies, found.levels, strict=True):
        level = hierarchy.levels[number]
        labels = pa.array(level.labels, pa.string())
        texts[hierarchy.column] = labels.take(pa.array(level.groups[codes[hierarchy.column]]))
    rows = int(found.kept.sum())
    return KAnonymousView(
        texts={name: text.filter(kept) for name, text in texts.items()},
        asked=asked,
        hierarchies=hierarchies,
        levels=found.levels,
        rows=rows,
        left_out=len(found.kept) - rows,
        loss=found.loss,
        dropped=dropped,
    )


def dropped_columns(layout: Layout, quasi_identifiers: Sequence[str]) -> tuple[str, ...]:
    """The columns that are computed from quasi-identifiers, and would tell what was generalised."""
    telling = {*quasi_identifiers, *map(companion, quasi_identifiers)}
    dropped: list[str] = []
    for derived in layout.in_turn():
        if telling.intersection(references(derived.formula)):
            telling.add(derived.name)
            dropped.append(derived.name)
    return tuple(part.name for part in layout.parts if isinstance(part, Derived) and part.name in dropped)
