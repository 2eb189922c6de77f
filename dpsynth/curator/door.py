"""The one door to the private table.

Invariant: the holder of a curator learns noisy answers only. The sum of their costs, lost answers
included, never exceeds the budget that the curator was opened with.

Each verb has one implementation, in the class of its kind of question, and one signature in
``dpsynth.plan.questions``. This file joins the classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Weighting
from dpsynth.columns.column import Column
from dpsynth.columns.domain import NO_STEPS, Compression, StepCells
from dpsynth.columns.measurement import UnitsByRows
from dpsynth.config.files.opening import unheard
from dpsynth.curator.charging import PrivacyFilter, Terms
from dpsynth.curator.distances import CliqueDigests, DistanceQuestions, Distances
from dpsynth.curator.domain_questions import DomainQuestions
from dpsynth.curator.journal import Journal, Question
from dpsynth.curator.marginals import CountQuestions, ExactCounts, Store
from dpsynth.curator.table import Engine, UnboundedEngine

Counts = NDArray[np.int64]


class Curator(CountQuestions, DistanceQuestions, DomainQuestions):
    """The curator of a private table: each question is charged, drawn and recorded, in that order."""

    _compression: Compression | None = None
    _weighting: Weighting | None = None

    def __init__(self, table: Engine, terms: Terms, journal: Journal) -> None:
        """Open the door."""
        super().__init__(terms, journal)
        self._digests = CliqueDigests()
        self._look_at(table, ExactCounts(table, Store()))

    def _look_at(self, table: Engine, counts: ExactCounts) -> None:
        self._table = table
        self._texts_counted, self._numbers_read = {}, {}
        self._counts = counts
        self._distances = Distances(counts)

    def _named(self, question: Question) -> Question:
        if self._compression is not None:
            question = {**question, "grouping": self._compression.digest}
        if self._weighting is not None:
            question = {**question, self._weighting: self._terms.neighbours.max_rows}
        return question

    def keeping(self, kept: Fraction) -> Curator:
        """A curator of the same rows that keeps so much of the budget for later questions; 0: nothing."""
        twin = copy(self)
        twin._terms = replace(self._terms, kept=kept)
        return twin

    @unheard()
    def coded(self, columns: Sequence[Column]) -> Curator:
        """A curator of the same rows once all domains are known, with the same journal and budget.

        Sensitivity: a row's code follows from the row's own cell by a public rule, as if it had been
        coded on loading.

        Raises:
            ValueError: the domain of a column is not found yet, or this curator's domain is compressed.
        """
        if self._compression is not None:
            raise ValueError("columns are coded before they are grouped")
        twin = copy(self)
        table = self._table.coded(columns)
        twin._look_at(table, ExactCounts(table, Store()))
        return twin

    @unheard()
    def grouped(self, compression: Compression) -> Curator:
        """A curator of the same rows over a compressed domain, with the same journal, budget and counts.

        Sensitivity: a row's group follows from the row's own code by a public rule, so a row still
        stands in one cell and no sensitivity changes.

        Raises:
            ValueError: the compression is of another domain, or this curator's is compressed already.
        """
        if self._compression is not None:
            raise ValueError("a curator of groups can't be grouped again")
        twin = copy(self)
        twin._compression, twin._ungrouped = compression, self
        table = self._table.recoded(compression)
        store = self._counts.store
        twin._look_at(table, ExactCounts(table, store, frozenset(compression.groups), compression.digest))
        return twin

    @unheard()
    def weighted(self, by: Weighting = "weights") -> Curator:
        """A curator of the same rows that count by weights or surplus, with the same journal and budget.

        By weights each row of a unit of n rows counts floor(W/n) times, where W is ``whole_weight``: noise
        relative to a unit doesn't grow with the contribution bound k. By surplus it counts (2n - k - 1) times
        as often: so 2 W rows are as much as their surplus and k + 1 times their weight, and a sum by surplus
        has less than half of the noise of rows.

        Sensitivity: a row that counts t times is t rows with the same cells, and a unit has W of these at
        most (``Neighbours.weighted``). For surplus, where t may be negative, a unit moves a marginal by
        (k - 1) W at most (``Neighbours.surplus``). How often a row counts depends on the rows of its unit
        alone. So the proof of each verb holds, with these in place of ``max_rows``.

        Raises:
            ValueError: each row is a unit, the curator is weighted already, or its domain is compressed.
        """
        if self._weighting is not None or self._compression is not None:
            raise ValueError("a curator's rows are weighted once, before they are grouped")
        near, twin = self._terms.neighbours, copy(self)
        twin._weighting = by
        twin._terms = replace(self._terms, neighbours=near.weighted if by == "weights" else near.surplus)
        table = self._table.weighted(by)
        twin._look_at(table, ExactCounts(table, Store()))
        return twin

    @unheard()
    def with_rows_before(self, steps: StepCells = NO_STEPS, firsts: StepCells = NO_STEPS) -> Curator:
        """A curator of the same rows, each with the values of the row before it in its unit's order.

        A column "x (row before)" stands beside each column x, with one more place for a row that none comes
        before; and for some columns "x (step)", the cell of both, or "x (first row)", the cell of the row and
        its unit's first row, where that is two or more before. Journal and budget are the same.

        Args:
            steps: the cell of each value and the one before, by a public rule.
            firsts: the cell of each value and that of the first row, by a public rule.

        Sensitivity: whatever stands in a row follows from the rows of its unit alone, so units still move the
        rows of nobody else, and a unit still has as many rows, of the same weights. The proof of each verb
        asks for no more.

        Raises:
            ValueError: the rows of a unit have no order, or the domain is compressed.
        """
        if self._compression is not None:
            raise ValueError("rows have others before them before they are grouped")
        twin = copy(self)
        table = self._table.with_rows_before(steps, firsts)
        twin._look_at(table, ExactCounts(table, Store()))
        return twin


class UnboundedCurator(PrivacyFilter):
    """The curator of rows before contribution bounding.

    It answers one question: a noisy histogram of persons by their number of rows. All other questions go to
    the curator that it returns, whose table is bounded.
    """

    def __init__(self, rows: UnboundedEngine, terms: Terms, journal: Journal, key: bytes) -> None:
        """Open the door.

        Args:
            terms: the terms of a ``Curator``; the contribution bound in them is not used here.
            key: secret bytes that decide which rows of a person are kept.

        Raises:
            ValueError: rows are the units.
        """
        super().__init__(terms, journal)
        if terms.neighbours.person is None:
            raise ValueError("only a person has a number of rows to be found")
        self._rows, self._key = rows, key

    def rows_per_unit(self, first: Sequence[int], price: Fraction) -> UnitsByRows:
        """Noisy numbers of persons by ranges of their number of rows.

        Sensitivity: 1 in L1 and in squared L2 where a person comes or goes, 2 where one is exchanged.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a cell.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these.

        A person stands in one range, however many rows there are, so the counts change like a marginal of
        persons with one row each. The ranges are public. A question lost to an interruption stays paid for,
        and is asked again from the rest of the budget.

        Args:
            first: the least number of rows of each range, rising from 1; the last has no end.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the ranges don't begin with 1, or don't rise.
        """
        if not first or first[0] != 1 or any(a >= b for a, b in pairwise(first)):
            raise ValueError("the numbers of rows must begin with 1, and rise")
        question = {"ask": "rows", "from": list(first)}

        def exact() -> Counts:
            return self._rows.rows_of_units(first)

        values, bought = self._noisy(question, exact, price, self._calibration.counted_once.counts)
        return UnitsByRows(tuple(first), values, self._terms.noise, bought.scale)

    @unheard()
    def bounded(self, max_rows: int) -> Curator:
        """A curator of the same rows, at most so many of each person, with the same journal and budget.

        Args:
            max_rows: the contribution bound. It may follow from ``rows_per_unit``, so it is public; every
                later sensitivity depends on it.
        """
        near = replace(self._terms.neighbours, max_rows=max_rows)
        table = self._rows.bounded(max_rows, self._key)
        return Curator(table, replace(self._terms, neighbours=near), self._journal)
