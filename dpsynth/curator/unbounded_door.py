"""The door before it is known how many rows of a person enter the table.

Invariant: whoever holds it learns one thing, a noisy histogram of persons by their number of rows; all
else is asked of the curator that comes out of it, whose table is bounded.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator.asking import Asking
from dpsynth.curator.door import Curator
from dpsynth.curator.journal import Journal, Lost
from dpsynth.curator.table import LoadedRows
from dpsynth.curator.terms import Terms

Counts = NDArray[np.int64]


class Contributions:
    """What may be asked of rows that are not bounded yet."""

    def __init__(self, rows: LoadedRows, terms: Terms, journal: Journal, key: bytes) -> None:
        """Open the door.

        Args:
            rows: the private rows, with the person of each.
            terms: as for a ``Curator``; the bound of their neighbours counts for nothing here.
            journal: where charges and answers go; the curator that comes of this goes on with it.
            key: secret bytes that decide which rows of a person are kept.

        Raises:
            ValueError: rows are the units.
        """
        if rows.persons is None or terms.neighbours.person is None:
            raise ValueError("only a person has a number of rows to be found")
        self._rows, self._persons = rows, rows.persons
        self._terms = terms
        self._journal = journal
        self._key = key
        self._asking = Asking(terms, journal)

    def rows_per_unit(self, most: int, price: Fraction) -> tuple[Counts, float]:
        """Noisy numbers of persons by their number of rows.

        Sensitivity: a person stands in one cell, however many rows there are, so the counts move as a
        marginal of persons with one row each: by 1 in L1 and in squared L2 where a person comes or
        goes, by 2 where one is exchanged.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a cell.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these. A question lost to an
        interruption stays paid for, and is asked again from what is left.

        Args:
            most: the last number of rows told apart; who has more stands with it.
            price: what the answer may cost.

        Returns:
            int64[most], persons with 1, 2, ... rows, and the standard deviation of their noise.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: nothing would be told apart.
        """
        if most < 1:
            raise ValueError("the numbers of rows told apart begin with 1")
        question = {"ask": "rows", "most": most}

        def exact() -> Counts:
            each = np.unique(self._persons, return_counts=True)[1]
            return np.bincount(np.minimum(each, most), minlength=most + 1)[1:].astype(np.int64)

        def ask(price: Fraction) -> tuple[Counts | Lost, float]:
            noised = self._terms.persons(price)
            return self._asking.ask(question, noised.event, exact, noised.draw), noised.stddev

        return self._asking.insist(price, ask)

    def bounded(self, max_rows: int) -> Curator:
        """A curator before the same rows, at most so many of each person, that shares journal and budget.

        Args:
            max_rows: public, as it may follow from ``rows_per_unit``; it decides every sensitivity to come.
        """
        near = replace(self._terms.neighbours, max_rows=max_rows)
        table = self._rows.bounded(max_rows, self._key)
        return Curator(table, replace(self._terms, neighbours=near), self._journal)
