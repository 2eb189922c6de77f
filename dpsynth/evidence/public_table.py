"""A public table as evidence: what it counts, and what is said of it.

A public sample of the same population, or a synthetic table released before, tells which values go
together. Its rows are not the private table's, so what it says counts at a discount (``model.earlier``).

Invariant: it is read before anything is charged, and what is read stays: a release that is resumed goes on
with the same bytes or says that it can't.
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

from dpsynth.domain.column import Column, domain_of
from dpsynth.domain.compression import Compression
from dpsynth.domain.domain import Clique
from dpsynth.domain.measurement import PublicCounts
from dpsynth.errors import ConfigError
from dpsynth.evidence.evidence import Answered, Evidence
from dpsynth.presentation.figures import count

MOST_CELLS, MOST_PAIR = 20_000_000, 200_000
"""Cells of all pairs of columns that are counted, those of fewest cells first, and of one pair."""
_EXACT = 1e-3
"""Noise of counts that have none, in rows."""


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A public table, its cells as text.

    Attributes:
        sha256: of the file.
        rows: how many it has.
        texts: the cells of each column that it has of those asked for, batch by batch.
    """

    sha256: str
    rows: int
    texts: Mapping[str, Sequence[pa.DictionaryArray]]

    @staticmethod
    def of(
        path: Path, batches: Iterable[Mapping[str, pa.StringArray]], columns: Sequence[Column]
    ) -> PublicTable:
        """Take in a file.

        Args:
            path: the file.
            batches: its columns as text.
            columns: the private table's columns.

        Raises:
            ConfigError: it says nothing of the private table's columns.
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
            if column.name in texts and column.search is None and not table._usable(column):
                raise ConfigError(
                    f"public_table.path: no cell of column '{column.name}' of {path} is a value that the "
                    "config declares for it. Spell its values as the private table does, or remove the "
                    "column from that file. Nothing was charged."
                )
        return table

    def _usable(self, column: Column) -> bool:
        """Whether any cell is a value of the column."""
        places = len(column.codec.labels)
        found = (column.codec.encode(column.values_of(t.dictionary)) for t in self.texts[column.name])
        return any(((codes >= 0) & (codes < places)).any() for codes in found)

    def _codes(self, column: Column) -> NDArray[np.int64]:
        parts = [
            column.encode(t.dictionary)[t.indices.to_numpy(zero_copy_only=False)]
            for t in self.texts[column.name]
        ]
        return np.concatenate(parts)

    def answered(self, columns: Sequence[Column]) -> Answered:
        """Its counts: of rows, of every column that it has, and of the pairs of these.

        The numbers are exact. That they are those of a few rows of a population is what a ``Change`` from
        them to other rows begins with.

        Args:
            columns: the private table's columns, none still to be found.
        """
        known = [c for c in columns if c.name in self.texts]
        domain, codes = domain_of(known), {c.name: self._codes(c) for c in known}
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
    """What was taken from a public table.

    Attributes:
        sha256: of its file.
        rows: how many it has.
        columns: those of the private table that it has.
        equivalent_rows: how many rows drawn at random from the private table's population would tell as much.
        cliques: the pairs whose counts are in the model; none where it was not believed.
    """

    sha256: str
    rows: int
    columns: tuple[str, ...]
    equivalent_rows: float
    cliques: tuple[Clique, ...] = ()

    @staticmethod
    def of(table: PublicTable | None, evidence: Evidence, rows: float) -> PublicUse | None:
        """What is to be said of a table; None without one.

        Args:
            table: the public table.
            evidence: what became of it.
            rows: of the private table, as far as known.
        """
        if table is None or evidence.public is None:
            return None
        # Of a change K n/m a cell, n/m is the chance of now's own rows; a sample of w has n^2/(w m).
        equivalent_rows = rows / (evidence.public[0].squared / rows - 1)
        return PublicUse(table.sha256, table.rows, tuple(table.texts), equivalent_rows)

    def to_json(self) -> dict[str, object]:
        """What the manifest says of it."""
        return {
            "in_words": list(cautions_with_public(self)),
            "sha256": self.sha256,
            "rows": self.rows,
            "columns": list(self.columns),
            "equivalent_rows": round(self.equivalent_rows, 1),
            "in_the_model_together": [list(clique) for clique in self.cliques],
        }


def cautions_with_public(public: PublicUse | None) -> tuple[str, ...]:
    """How far numbers can be believed that rest on a public table, as sentences."""
    if public is None:
        return ()
    found = (
        f"The model, and the synthetic table with it, rests on a public table too, of {count(public.rows)} "
        "rows that are not the private table's. By how far its single columns are from those found here, it "
        f"was taken to tell as much as {count(public.equivalent_rows)} rows of the private table's kind "
        "would. The guarantee says nothing of whose rows it has. Tables that were measured do not use it."
    )
    if not public.cliques:
        return (f"{found} Only its single columns are in the model: its pairs of columns told too little.",)
    return (
        f"{found} In those by the model errors allow for columns that differ, and for no more: a relation "
        "that is another in the private table, and was not measured, is shown as the public table has it.",
    )
