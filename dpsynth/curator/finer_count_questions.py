"""Noisy counts of a column by group, over bins that are cut into pieces.

Invariant: a row counts in one piece of one group, or nowhere. A question, its charge and the shape of its
answer depend on public arguments alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.finer_counts import FinerCounts, Pieces
from dpsynth.curator.engine import Engine
from dpsynth.curator.journal import Lost
from dpsynth.curator.privacy_filter import PrivacyFilter


class FinerCountQuestions(PrivacyFilter):
    """Questions about where inside their bins numbers lie."""

    _table: Engine

    def finer_counts(self, column: str, by: Clique, pieces: Pieces, price: Fraction) -> FinerCounts:
        """Noisy counts of rows by group and by the piece of a bin that holds their number.

        Sensitivity: l1 in L1 and l2^2 in squared L2, as that of a marginal: ``neighbours``.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a count.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Proof. Pieces don't overlap, so a row counts in one piece of one group; without a number it counts
        nowhere. These counts are a part of the marginal of the groups and of a column whose codes are the
        pieces, so a unit moves them by no more than that.

        A question lost to an interruption stays paid for, and is asked again from the rest of the budget.

        Args:
            column: a column of numbers that are kept to be summed.
            by: the columns of the groups; () for all rows.
            pieces: the pieces, which may follow from earlier answers.
            price: the most that the answer may cost.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the column's numbers are not kept, as in a compressed domain, or the
                pieces are of more bins than there are.
        """
        table = self._table
        if column not in table.numbers_kept:
            raise ValueError(f"the numbers of column {column} are not kept")
        if pieces.bins > table.domain.sizes[column]:
            raise ValueError("pieces are of more bins than there are")
        question = {"ask": "finer counts", "columns": [*by, column], "pieces": pieces.digest}

        def exact() -> NDArray[np.int64]:
            return table.finer_counts(column, by, pieces)

        def ask(price: Fraction) -> tuple[NDArray[np.int64] | Lost, float]:
            noised = self._terms.counts(price)
            return self._ask(question, noised.event, exact, noised.draw), noised.bought.scale

        values, scale = self._insist(price, ask)
        return FinerCounts(column, by, values, self._terms.noise, scale, pieces)
