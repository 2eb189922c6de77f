"""The finished synthetic table in codes, read as the private table is read.

Invariant: public. The codes follow from the table's own texts, as they are written for its recipients.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from hashlib import sha256

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpsynth.domain.column import codes_of, each_once
from dpsynth.domain.layout import Layout

_CHUNK = 1 << 18
"""Number of rows whose texts are held at once."""


@dataclass(frozen=True, eq=False)
class FinishedTable:
    """A synthetic table that is compared with the private one.

    Attributes:
        codes: column to unsigned codes[rows], the smallest type that holds the domain.
        rows: its number of rows.
        stands_for: the number of rows that its counts are scaled to, at least 1. It is public: exact, or an
            estimate from noisy answers.
    """

    codes: Mapping[str, NDArray[np.unsignedinteger]]
    rows: int
    stands_for: int

    @classmethod
    def of(cls, layout: Layout, table: pa.Table, stands_for: int) -> FinishedTable:
        """The codes of a table that the layout made, by chunks of rows.

        Args:
            layout: its columns.
            table: the table.
            stands_for: the number of rows that its counts are scaled to.
        """
        parts: dict[str, list[NDArray[np.unsignedinteger]]] = {c.name: [] for c in layout.columns}
        for start in range(0, max(table.num_rows, 1), _CHUNK):
            chunk = table.slice(start, _CHUNK)
            for column in layout.columns:
                parts[column.name].append(each_once(partial(codes_of, column), layout.text_of(column, chunk)))
        codes = {name: np.concatenate(part) for name, part in parts.items()}
        return cls(codes, table.num_rows, stands_for)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 in hex of the codes, and of the number of rows that they are scaled to."""
        digest = sha256(repr((self.rows, self.stands_for)).encode())
        for name, codes in self.codes.items():
            digest.update(repr((name, codes.dtype.str)).encode())
            digest.update(np.ascontiguousarray(codes).tobytes())
        return digest.hexdigest()
