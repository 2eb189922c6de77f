"""The engine: whoever makes exact figures of coded rows, from parts of the rows to counts, summed.

Charge, draw and record stay with the curator, in one process, whichever engine counts. An engine knows of no
price, no noise and no journal. All that it makes can be added up over parts of the rows: counts and
bounded sums. Distances to estimates can't, for a sum of absolute values is no absolute value of a sum; so
they follow from counts, in ``scores`` and ``exam``, and no engine makes them.

There are two engines. ``table.PrivateTable`` counts rows that lie in this process. ``partitioned`` has many
of these, each with whoever holds a part of the rows, and adds up what they count.

Invariant: exact figures are private, and the same integers whichever engine makes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finer_counts import Pieces
from dpsynth.columns.sums import Centring
from dpsynth.curator.coded_columns import TextCounts


class Engine(Protocol):
    """Coded rows that can be counted, wherever they lie."""

    @property
    def domain(self) -> Domain:
        """The public domain of the columns that are coded."""
        ...

    @property
    def texts_kept(self) -> frozenset[str]:
        """Names of the columns that keep their texts, as their domains are to be found. Public."""
        ...

    @property
    def numbers_kept(self) -> frozenset[str]:
        """Names of the columns whose numbers can be summed. Public."""
        ...

    @property
    def rows(self) -> int:
        """Number of rows after contribution bounding. Private unless the relation makes it public."""
        ...

    def counts_of(self, cliques: Sequence[Clique]) -> list[NDArray[np.int64]]:
        """Exact marginals, int64 of shape ``domain.shape(clique)``, from one pass over the rows. Private."""
        ...

    def sums(self, column: str, by: Clique, centring: Centring) -> NDArray[np.int64]:
        """Exact sums of bounded distances by group, int64 of shape ``domain.shape(by)``. Private."""
        ...

    def finer_counts(self, column: str, by: Clique, pieces: Pieces) -> NDArray[np.int64]:
        """Exact counts of pieces by group, int64 of shape (*``domain.shape(by)``, pieces). Private."""
        ...

    def texts_of(self, column: str) -> TextCounts:
        """Exact numbers of rows and units of the texts of a column that keeps them. Private."""
        ...

    def coded(self, columns: Sequence[Column]) -> Engine:
        """The same rows with codes for all columns, after all domains are found."""
        ...

    def recoded(self, compression: Compression) -> Engine:
        """The same rows with groups in place of values."""
        ...


class UnboundedEngine(Protocol):
    """All rows of the slice, before contribution bounding, wherever they lie."""

    def rows_of_units(self, first: Sequence[int]) -> NDArray[np.int64]:
        """Numbers of persons by ranges of their number of rows, int64[ranges]. Private.

        Args:
            first: the least number of rows of each range, rising from 1; the last has no end.
        """
        ...

    def bounded(self, max_rows: int, key: bytes) -> Engine:
        """The rows after contribution bounding: at most so many of each person, by a secret key."""
        ...
