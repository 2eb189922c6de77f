"""The exam: noisy distances between the private table and the finished synthetic table.

Invariant: a distance is a whole number of rows, and one unit moves it by at most ``neighbours.l1``. All of it
is integer arithmetic, so no rounding moves it further.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finished_table import FinishedTable
from dpsynth.columns.measurement import NoisyDistances
from dpsynth.curator.clique_choices import CliqueDigests
from dpsynth.curator.journal import Lost
from dpsynth.curator.marginals import ExactCounts, Store
from dpsynth.curator.privacy_filter import PrivacyFilter
from dpsynth.curator.table import PrivateTable

Counts = NDArray[np.int64]

MOST_ROWS = 1 << 31
"""Bound on the rows of a finished table, and on exact counts: a product of two is then within int64."""
_HALF = 31
"""Bits of the lower part of a number that is added up in two parts."""
_CELLS_A_BATCH = 1 << 22


class ExamQuestions(PrivacyFilter):
    """The question about the finished synthetic table."""

    _counts: ExactCounts
    _digests: CliqueDigests

    def examine(
        self, cliques: Sequence[Clique], table: FinishedTable, price: Fraction
    ) -> NoisyDistances | None:
        """Noisy L1 distances, in rows, between exact counts and those of a finished table.

        A table of m rows that stands for n rows has the count y n/m where y of its rows are. With the exact
        count x the distance is the sum of |x m - y n| over all cells, divided by m and rounded down.

        Sensitivity: k l1 in L1 and k l1^2 in squared L2, as one unit moves each of k distances by at most l1.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a distance.
        Cost: that of one ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Here l1 is ``neighbours.l1``. A unit moves the counts x by at most l1 in L1, so by the triangle
        inequality the sum of |x m - y n| by at most m l1; and two numbers at most m l1 apart are at most l1
        apart after a division by m that rounds down. The table is public, and so are m and n. An empty table
        counts as one row that is in no cell.

        Args:
            cliques: the marginals, at least one.
            table: the finished table.
            price: the most that the answer may cost.

        Returns:
            The distances; None if they were lost to an interruption. They stay paid for.

        Raises:
            BudgetRefused: the price is more than what is left.
            ValueError: a table has too many rows.
        """
        if max(table.rows, table.stands_for) >= MOST_ROWS:
            raise ValueError(f"a finished table has fewer than {MOST_ROWS} rows")
        noised = self._terms.distances(price, len(cliques))
        question = {"ask": "exam", "candidates": self._digests.of(cliques), "table": table.sha256}
        drawn = self._ask(question, noised.event, lambda: self._exact(cliques, table), noised.draw)
        if isinstance(drawn, Lost):
            return None
        return NoisyDistances(tuple(cliques), drawn, noised.bought.noise.name, noised.bought.scale)

    def _exact(self, cliques: Sequence[Clique], table: FinishedTable) -> Counts:
        """Exact distances int64[cliques]. Private."""
        domain, rows = self._counts.table.domain, max(table.rows, 1)
        found: list[int] = []
        for batch in domain.batches(cliques, _CELLS_A_BATCH):
            self._counts.prepare(batch)
            finished = _counted(domain, table, batch)
            for clique in batch:
                # An exact count beyond the limit counts as the limit: no error may tell that there is one.
                exact = np.minimum(self._counts.of(clique), MOST_ROWS)
                apart = np.abs(exact * rows - finished[clique] * table.stands_for)
                found.append(_sum(apart) // rows)
        return np.array(found, dtype=np.int64)


def _sum(numbers: Counts) -> int:
    """The sum of numbers from 0, which may be beyond int64."""
    return (int((numbers >> _HALF).sum()) << _HALF) + int((numbers & ((1 << _HALF) - 1)).sum())


def _counted(domain: Domain, table: FinishedTable, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
    """The counts of a finished table, added up over its pieces."""
    found = {clique: np.zeros(domain.shape(clique), dtype=np.int64) for clique in cliques}
    for rows, codes in table.coded.pieces():
        piece = ExactCounts(PrivateTable(domain, codes, rows), Store())
        piece.prepare(cliques)
        found = {clique: counts + piece.of(clique) for clique, counts in found.items()}
    return found
