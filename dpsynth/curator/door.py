"""The one door to the private table.

Invariant: the holder of a curator learns noisy answers only. The sum of their costs, lost answers
included, never exceeds the budget that the curator was opened with.

Each verb has one implementation, in the class of its kind of question, and one signature in
``dpsynth.plan.questions``. This file joins the classes.

The exam: noisy distances between the private table and the finished synthetic table.

Invariant: a distance is a whole number of rows, and one unit moves it by at most ``neighbours.l1``. All of it
is integer arithmetic, so no rounding moves it further.

Noisy sums of a column's numbers by group.

Invariant: what a row adds to a sum is bounded by a public limit, whatever its cell holds. A question, its
charge and the shape of its answer depend on public arguments alone.

Noisy counts of a column by group, over bins that are cut into pieces.

Invariant: a row counts in one piece of one group, or nowhere. A question, its charge and the shape of its
answer depend on public arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import RecordedEvent
from dpsynth.columns.column import Column
from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finer_counts import FinerCounts, Pieces
from dpsynth.columns.finished_table import FinishedTable
from dpsynth.columns.measurement import NoisyDistances
from dpsynth.columns.sums import Centring, MeasuredSums
from dpsynth.columns.units_by_rows import UnitsByRows
from dpsynth.config.files.opening import unheard
from dpsynth.curator.clique_choices import CliqueChoices, CliqueDigests, Distances
from dpsynth.curator.domain_questions import DomainQuestions
from dpsynth.curator.engine import Engine, UnboundedEngine
from dpsynth.curator.journal import Answer, Journal, Lost, Question
from dpsynth.curator.marginals import ExactCounts, MarginalQuestions, Store
from dpsynth.curator.privacy_filter import Exact, PrivacyFilter
from dpsynth.curator.table import PrivateTable
from dpsynth.curator.terms import Terms

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


class Curator(
    MarginalQuestions, SumQuestions, FinerCountQuestions, CliqueChoices, DomainQuestions, ExamQuestions
):
    """The curator of a private table: each question is charged, drawn and recorded, in that order."""

    _compression: Compression | None = None

    def __init__(self, table: Engine, terms: Terms, journal: Journal) -> None:
        """Open the door.

        Args:
            table: the coded private rows.
            terms: relation, unit, measure, budget and noise.
            journal: the journal of charges and answers; one with entries is replayed.
        """
        super().__init__(terms, journal)
        self._digests = CliqueDigests()
        self._look_at(table, ExactCounts(table, Store()))

    def _look_at(self, table: Engine, counts: ExactCounts) -> None:
        self._table = table
        self._texts_counted, self._numbers_read = {}, {}
        self._counts = counts
        self._distances = Distances(counts)

    def _ask(
        self,
        question: Question,
        event: RecordedEvent,
        exact: Callable[[], Exact],
        draw: Callable[[Exact], Answer],
    ) -> Answer | Lost:
        if self._compression is not None:
            question = {**question, "grouping": self._compression.digest}
        return super()._ask(question, event, exact, draw)

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

        Args:
            columns: all columns of this curator, in their final order.

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


class UnboundedCurator(PrivacyFilter):
    """The curator of rows before contribution bounding.

    It answers one question: a noisy histogram of persons by their number of rows. All other questions go to
    the curator that it returns, whose table is bounded.
    """

    def __init__(self, rows: UnboundedEngine, terms: Terms, journal: Journal, key: bytes) -> None:
        """Open the door.

        Args:
            rows: the private rows, with the person of each.
            terms: the terms of a ``Curator``; the contribution bound in them is not used here.
            journal: the journal of charges and answers; the bounded curator continues it.
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
            price: the most that the answer may cost.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: the ranges don't begin with 1, or don't rise.
        """
        if not first or first[0] != 1 or any(a >= b for a, b in pairwise(first)):
            raise ValueError("the numbers of rows must begin with 1, and rise")
        question = {"ask": "rows", "from": list(first)}

        def exact() -> Counts:
            return self._rows.rows_of_units(first)

        def ask(price: Fraction) -> tuple[Counts | Lost, float]:
            noised = self._terms.persons(price)
            return self._ask(question, noised.event, exact, noised.draw), noised.bought.scale

        values, scale = self._insist(price, ask)
        return UnitsByRows(tuple(first), values, self._terms.noise, scale)

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
