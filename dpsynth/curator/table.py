"""The private table in memory: one small integer a cell, rows of each person bounded.

Columns whose places are still to be found keep their texts until they are known.

Invariant: after loading, only rows of the slice are left, of one person no more than ``max_rows`` of
them, and every code is inside the public domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator.bounding import Person, nobody, person_codes, rows_kept
from dpsynth.curator.slicing import rows_within
from dpsynth.curator.texts import Texts, coded_texts, gathered
from dpsynth.domain.column import Column, domain_of
from dpsynth.domain.compression import Grouping
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.slices import Slice

_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """Coded rows. Its repr shows nothing, and only the curator holds one.

    Attributes:
        domain: the public domain of the columns that are coded.
        codes: column to unsigned codes[rows], the smallest type that holds the domain.
        rows: number of rows after bounding. Private unless the relation makes it public.
        texts: the cells of each column whose places are still to be found.
        unit: int32[rows], a number for the person of each row, where there are such columns and persons.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    rows: int
    texts: Mapping[str, Texts] = field(default_factory=dict)
    unit: NDArray[np.int32] | None = None

    def counts(self, clique: Clique) -> NDArray[np.int64]:
        """Exact marginal, int64 of shape ``domain.shape(clique)``. Private."""
        cells = self.domain.cells(clique)
        total = np.zeros(cells, dtype=np.int64)
        # The narrower the cells' numbers, the faster they are made.
        number = np.min_scalar_type(cells) if cells < 1 << 32 else np.dtype(np.int64)
        for start in range(0, self.rows, _CHUNK):
            stop = min(start + _CHUNK, self.rows)
            cell = np.zeros(stop - start, dtype=number)
            for i, column in enumerate(clique):
                if i > 0:
                    np.multiply(cell, number.type(self.domain.sizes[column]), out=cell)
                np.add(cell, self.codes[column][start:stop], out=cell, casting="unsafe")
            total += np.bincount(cell, minlength=cells)
        return total.reshape(self.domain.shape(clique))

    def recoded(self, grouping: Grouping) -> PrivateTable:
        """The same rows with groups for places.

        Raises:
            ValueError: the grouping is not of this table's domain.
        """
        domain, codes = grouping.coarse(self.domain), dict(self.codes)
        for column, groups in grouping.groups.items():
            codes[column] = groups.astype(np.min_scalar_type(domain.sizes[column] - 1))[codes[column]]
        return PrivateTable(domain, codes, self.rows)

    def coded(self, columns: Sequence[Column]) -> PrivateTable:
        """The same rows with codes for all columns, whose places are now known; no texts are kept.

        Args:
            columns: those of this table, in the order to come.

        Raises:
            ValueError: the places of a column are still to be found.
        """
        codes = dict(self.codes)
        for column in columns:
            if column.name in self.texts:
                texts = self.texts[column.name]
                codes[column.name] = texts.each(partial(_codes, column))[texts.index]
        return PrivateTable(domain_of(columns), {c.name: codes[c.name] for c in columns}, self.rows)


@dataclass(frozen=True, eq=False, repr=False)
class LoadedRows:
    """All rows of the slice, before those of a person are bounded. Only the curator holds them.

    Attributes:
        domain: the public domain of the columns that are coded.
        codes: as in a table.
        texts: likewise.
        persons: uint64[rows], the person of each row; None where each row is a unit.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    texts: Mapping[str, Texts]
    persons: Person | None

    def bounded(self, max_rows: int, key: bytes) -> PrivateTable:
        """The table in which a person has at most so many rows.

        Args:
            max_rows: the bound; nothing is left out where each row is a unit.
            key: secret bytes that decide which rows of a person are kept.
        """
        codes, texts, everyone = self.codes, self.texts, self.persons
        unit: NDArray[np.int32] | None = None
        if everyone is not None:
            kept = rows_kept(everyone, max_rows, key)
            codes = {name: c[kept] for name, c in codes.items()}
            texts = {name: t.of_rows(kept) for name, t in texts.items()}
            most = np.unique(everyone[kept], return_counts=True)[1]
            if len(most) and most.max() > max_rows:
                raise RuntimeError("contribution bounding failed")
            if texts:
                unit = np.unique(everyone[kept], return_inverse=True)[1].astype(np.int32)
        held = [*codes.values(), *(t.index for t in texts.values())]
        return PrivateTable(self.domain, codes, len(held[0]) if held else 0, texts, unit)


def _codes(column: Column, texts: pa.StringArray) -> NDArray[np.unsignedinteger]:
    return column.encode(texts).astype(np.min_scalar_type(column.size - 1))


def _encode(column: Column, texts: pa.StringArray) -> NDArray[np.unsignedinteger]:
    """Codes of a batch; each distinct text is interpreted once."""
    coded = pc.dictionary_encode(texts, null_encoding="encode")
    return np.asarray(_codes(column, coded.dictionary)[coded.indices.to_numpy(zero_copy_only=False)])


def load_rows(
    batches: Iterable[Mapping[str, pa.StringArray]],
    columns: Sequence[Column],
    neighbours: Neighbours,
    key: bytes,
    part: Slice | None = None,
) -> LoadedRows:
    """Encode batches of text, and leave out the rows of other slices and of nobody; see ``load_table``.

    Whether a row is left out depends on its own cells alone, so tables that differ in one unit still
    differ in at most that unit's rows.

    Args:
        batches: as there.
        columns: likewise.
        neighbours: relation and unit; rows without an id are ``nameless``.
        key: likewise.
        part: likewise.
    """
    parts: dict[str, list[NDArray[np.unsignedinteger]]] = {c.name: [] for c in columns if not c.kept_as_text}
    texts: dict[str, list[pa.DictionaryArray]] = {c.name: [] for c in columns if c.kept_as_text}
    persons: list[Person] = []
    for read in batches:
        batch = dict(read) if part is None else rows_within(read, part)
        if neighbours.person is not None:
            people = person_codes(batch[neighbours.person], key)
            if neighbours.nameless == "left_out":
                named = people != nobody(key)
                batch = {name: cells.filter(pa.array(named)) for name, cells in batch.items()}
                people = people[named]
            persons.append(people)
        for column in columns:
            if column.kept_as_text:
                texts[column.name].append(coded_texts(batch[column.name]))
            else:
                parts[column.name].append(_encode(column, batch[column.name]))
    return LoadedRows(
        domain_of(c for c in columns if not c.kept_as_text),
        {name: np.concatenate(p) if p else np.zeros(0, np.uint8) for name, p in parts.items()},
        {name: gathered(t) for name, t in texts.items()},
        None if neighbours.person is None else np.concatenate([np.zeros(0, np.uint64), *persons]),
    )


def load_table(
    batches: Iterable[Mapping[str, pa.StringArray]],
    columns: Sequence[Column],
    neighbours: Neighbours,
    key: bytes,
    part: Slice | None = None,
) -> PrivateTable:
    """Encode batches of text, leave out the rows of other slices, and bound each person's rows.

    Args:
        batches: text columns by name, the person's and the slice's included where there are any.
        columns: the public description of the table.
        neighbours: relation and unit; ``max_rows`` is enforced here, on the rows of the slice.
        key: secret bytes that decide which rows of a person are kept.
        part: the slice that the release is about; None for all rows.
    """
    return load_rows(batches, columns, neighbours, key, part).bounded(neighbours.max_rows, key)
