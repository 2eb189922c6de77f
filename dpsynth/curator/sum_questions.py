"""Noisy sums of a column's numbers by group.

Invariant: what a row adds to a sum is bounded by a public limit, whatever its cell holds. A question, its
charge and the shape of its answer depend on public arguments alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.sums import Centring, MeasuredSums
from dpsynth.curator.engine import Engine
from dpsynth.curator.journal import Lost
from dpsynth.curator.privacy_filter import PrivacyFilter


class SumQuestions(PrivacyFilter):
    """Questions about sums of numbers."""

    _table: Engine

    def sums(self, column: str, by: Clique, centring: Centring, price: Fraction) -> MeasuredSums:
        """Noisy sums of a column's numbers by group.

        A row with a value adds its distance from its bin's offset, in whole steps, bounded by the limit L. A
        row without a value adds nothing.

        Sensitivity: l1 L in L1, and (l1 L)^2 in squared L2, where l1 is ``neighbours.l1``.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a group.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        Proof. A row that comes or goes moves one sum, by at most L. One unit adds or removes ``max_rows``
        rows at most; if it is exchanged, as many leave and as many come. So at most l1 rows come or go, and
        sums move by at most l1 L in L1. The L2 distance is at most the L1 distance. It is as large if all
        these rows move one sum in one direction: an exchanged row may stay in its group and move its sum by
        2 L. In that, sums differ from counts, where an exchanged row leaves one cell and enters another.

        A question lost to an interruption stays paid for, and is asked again from the rest of the budget.

        Args:
            column: a column of numbers that are kept to be summed.
            by: the columns of the groups; () for all rows.
            centring: offsets and limit, which may follow from earlier answers.
            price: the most that the answer may cost.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the column's numbers are not kept, as in a compressed domain, or there are more
                offsets than bins.
        """
        table = self._table
        if column not in table.numbers_kept:
            raise ValueError(f"the numbers of column {column} are not kept")
        if len(centring.offsets) > table.domain.sizes[column]:
            raise ValueError("there are more offsets than bins")
        question = {
            "ask": "sums",
            "columns": [*by, column],
            "offsets": centring.digest,
            "limit": centring.limit,
        }

        def exact() -> NDArray[np.int64]:
            return table.sums(column, by, centring)

        def ask(price: Fraction) -> tuple[NDArray[np.int64] | Lost, float]:
            noised = self._terms.sums(price, centring.limit)
            return self._ask(question, noised.event, exact, noised.draw), noised.bought.scale

        values, scale = self._insist(price, ask)
        return MeasuredSums(column, by, values, self._terms.noise, scale, centring)
