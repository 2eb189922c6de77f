"""The private table in memory: one small integer a cell, rows of each person bounded.

Invariant: after loading, only rows of the slice are left, of one person no more than ``max_rows`` of
them, and every code is inside the public domain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.slices import Slice
from dpsynth.curator.bounding import Person, person_codes, rows_kept
from dpsynth.curator.slicing import rows_within
from dpsynth.domain.column import Column, domain_of
from dpsynth.domain.domain import Clique, Domain
from dpsynth.domain.grouping import Grouping

_CHUNK = 1 << 18


@dataclass(frozen=True, eq=False, repr=False)
class PrivateTable:
    """Coded rows. Its repr shows nothing, and only the curator holds one.

    Attributes:
        domain: the public domain.
        codes: column to unsigned codes[rows], the smallest type that holds the domain.
        rows: number of rows after bounding. Private unless the relation makes it public.
    """

    domain: Domain
    codes: Mapping[str, NDArray[np.unsignedinteger]]
    rows: int

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


def _encode(column: Column, texts: pa.StringArray) -> NDArray[np.unsignedinteger]:
    """Codes of a batch; each distinct text is interpreted once."""
    coded = pc.dictionary_encode(texts, null_encoding="encode")
    places = column.encode(coded.dictionary).astype(np.min_scalar_type(column.size - 1))
    return np.asarray(places[coded.indices.to_numpy(zero_copy_only=False)])


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
    parts: dict[str, list[NDArray[np.unsignedinteger]]] = {c.name: [] for c in columns}
    persons: list[Person] = []
    for read in batches:
        batch = read if part is None else rows_within(read, part)
        for column in columns:
            parts[column.name].append(_encode(column, batch[column.name]))
        if neighbours.person is not None:
            persons.append(person_codes(batch[neighbours.person], key))
    codes = {name: np.concatenate(p) if p else np.zeros(0, np.uint8) for name, p in parts.items()}
    if neighbours.person is not None and persons:
        everyone = np.concatenate(persons)
        kept = rows_kept(everyone, neighbours.max_rows, key)
        codes = {name: c[kept] for name, c in codes.items()}
        most = np.unique(everyone[kept], return_counts=True)[1]
        if len(most) and most.max() > neighbours.max_rows:
            raise RuntimeError("contribution bounding failed")
    rows = len(next(iter(codes.values()), ()))
    return PrivateTable(domain_of(columns), codes, rows)
