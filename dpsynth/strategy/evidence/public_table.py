"""A public table as evidence: its counts, and the record of its use.

A public sample of the same population, or a synthetic table released before, shows relations of columns. Its
rows are not the private table's, so its counts are discounted (``dpsynth.strategy.evidence.evidence``).

Invariant: it is read before anything is charged, and its bytes stay fixed: a resumed release goes on with the
same bytes or ends with an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import PublicCounts
from dpsynth.errors import ConfigError
from dpsynth.figures import count
from dpsynth.strategy.evidence.evidence import Answered, Evidence

MOST_CELLS, MOST_PAIR = 20_000_000, 200_000
"""Largest number of cells of all counted pairs of columns, fewest cells first, and of one pair."""
_EXACT = 1e-3
"""Nominal noise of exact counts, in rows."""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A public table, its cells as text.

    Attributes:
        sha256: digest of the file.
        rows: number of rows.
        texts: the texts of each requested column that it has, batch by batch.
    """

    sha256: str
    rows: int
    texts: Mapping[str, Sequence[pa.DictionaryArray]]

    @staticmethod
    def of(
        path: Path, batches: Iterable[Mapping[str, pa.StringArray]], columns: Sequence[Column]
    ) -> PublicTable:
        """The table in a file.

        Args:
            path: the file.
            batches: its columns as text.
            columns: the private table's columns.

        Raises:
            ConfigError: it has no rows, or a column without any value of the private table's column.
        """
        texts: dict[str, list[pa.DictionaryArray]] = {}
        rows = 0
        for batch in batches:
            for name, cells in batch.items():
                texts.setdefault(name, []).append(pc.dictionary_encode(cells, null_encoding="encode"))
            rows += len(next(iter(batch.values())))
        if not rows:
            raise ConfigError(f"public_table.path: {path} has no rows. Nothing was charged.")
        with path.open("rb") as file:
            table = PublicTable(hashlib.file_digest(file, "sha256").hexdigest(), rows, texts)
        for column in columns:
            if column.source in texts and column.search is None and not table._usable(column):
                raise ConfigError(
                    f"public_table.path: no cell of column '{column.name}' of {path} is a value that the "
                    "config declares for it. Spell its values as the private table does, or remove the "
                    "column from that file. Nothing was charged."
                )
        return table

    def _usable(self, column: Column) -> bool:
        """True if any cell is a value of the column."""
        cells = len(column.codec.labels)
        found = (column.codec.encode(column.values_of(t.dictionary)) for t in self.texts[column.source])
        return any(((codes >= 0) & (codes < cells)).any() for codes in found)

    def _codes(self, column: Column) -> NDArray[np.int64]:
        parts = [
            column.encode(t.dictionary)[t.indices.to_numpy(zero_copy_only=False)]
            for t in self.texts[column.source]
        ]
        return np.concatenate(parts)

    def answered(self, columns: Sequence[Column]) -> Answered:
        """The counts of its rows, of every column that it has, and of pairs of these columns.

        The numbers are exact. The sampling error of its rows is a part of the ``Drift`` from them to the rows
        of another table.

        Args:
            columns: the private table's columns, all with found cells.
        """
        common = [c for c in columns if c.name in self.texts]
        domain, codes = domain_of(common), {c.name: self._codes(c) for c in common}
        pairs = [p for p in combinations(domain.columns, 2) if domain.cells(p) <= MOST_PAIR]
        pairs.sort(key=domain.cells)
        reached = np.cumsum([domain.cells(p) for p in pairs])
        kept = pairs[: int(np.searchsorted(reached, MOST_CELLS, side="right"))]

        def counted(clique: Clique) -> PublicCounts:
            shape = domain.shape(clique)
            cells = np.ravel_multi_index(tuple(codes[c] for c in clique), shape)
            values = np.bincount(cells, minlength=domain.cells(clique)).reshape(shape)
            return PublicCounts(clique, values.astype(np.int64), "gaussian", _EXACT)

        total = PublicCounts((), np.array(self.rows), "none", 0.0)
        singles = (total, *(counted((c,)) for c in domain.columns))
        return Answered(singles, tuple(counted(p) for p in kept), Compression({}))


@dataclass(frozen=True)
class PublicUse:
    """The use of a public table.

    Attributes:
        sha256: digest of its file.
        rows: number of rows.
        columns: the private table's columns that it has.
        equivalent_rows: number of random rows of the private table's population with as much information.
        cliques: the pairs whose counts are in the model; none where their signal was too small.
    """

    sha256: str
    rows: int
    columns: tuple[str, ...]
    equivalent_rows: float
    cliques: tuple[Clique, ...] = ()

    @staticmethod
    def of(table: PublicTable | None, evidence: Evidence, rows: float) -> PublicUse | None:
        """The use of a table; None without one.

        Args:
            table: the public table.
            evidence: the evidence that has its counts.
            rows: estimated number of rows of the private table.
        """
        if table is None or evidence.public is None:
            return None
        # Of a drift K n/m a cell, n/m is the sampling error of now's rows; a sample of w rows has n^2/(w m).
        equivalent_rows = rows / (evidence.public[0].squared / rows - 1)
        return PublicUse(table.sha256, table.rows, tuple(table.texts), equivalent_rows)

    def to_json(self) -> dict[str, object]:
        """The manifest's entry."""
        return {
            "in_words": list(cautions_with_public(self)),
            "sha256": self.sha256,
            "rows": self.rows,
            "columns": list(self.columns),
            "equivalent_rows": round(self.equivalent_rows, 1),
            "in_the_model_together": [list(clique) for clique in self.cliques],
        }


def cautions_with_public(public: PublicUse | None) -> tuple[str, ...]:
    """Cautions on numbers that rest on a public table, as sentences."""
    if public is None:
        return ()
    found = (
        f"The model, and the synthetic table with it, rests on a public table too, of {count(public.rows)} "
        "rows that are not the private table's. By how far its single columns are from those found here, it "
        f"was taken to tell as much as {count(public.equivalent_rows)} rows of the private table's kind "
        "would. The guarantee says nothing of whose rows it has. Tables that were measured do not use it."
    )
    if not public.cliques:
        return (f"{found} Only its single columns are in the model, as its pairs of columns say too little.",)
    return (
        f"{found} In those by the model errors allow for columns that differ, and for no more: a relation "
        "that is another in the private table, and was not measured, is shown as the public table has it.",
    )
