"""The one door to the private table.

Invariant: whoever holds a Curator learns noisy answers only, and the sum of their costs,
lost answers included, never exceeds the budget the curator was opened with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import Measure, RecordedEvent, cost
from dpsynth.curator.asking import WORTHLESS, Asking, Exact
from dpsynth.curator.choosing import Choosing
from dpsynth.curator.clique_lists import Listing
from dpsynth.curator.counting import ExactCounts, Store
from dpsynth.curator.distances import Distances, Estimates
from dpsynth.curator.domain_questions import Run, Seeking
from dpsynth.curator.journal import Answer, Journal, Lost, Question
from dpsynth.curator.table import PrivateTable
from dpsynth.curator.terms import Terms
from dpsynth.domain.codec import Codec
from dpsynth.domain.column import Column
from dpsynth.domain.compression import Grouping
from dpsynth.domain.domain import Clique
from dpsynth.domain.measurement import Measurement

Counts = NDArray[np.int64]


class Curator:
    """Answers questions about a private table: each charged, drawn, remembered, in that order."""

    def __init__(self, table: PrivateTable, terms: Terms, journal: Journal) -> None:
        """Open the door.

        Args:
            table: the coded private rows.
            terms: relation, unit, measure, budget and noise.
            journal: where charges and answers go; one with entries is replayed.
        """
        self._terms = terms
        self._asking = Asking(terms, journal)
        self._listing = Listing()
        self._grouping: Grouping | None = None
        self._ungrouped: Curator | None = None
        self._over(table, ExactCounts(table, Store()))
        self._seeking = Seeking(table, terms, self._asking, self._ask)

    def _over(self, table: PrivateTable, counts: ExactCounts) -> None:
        self._table = table
        self._counts = counts
        self._choosing = Choosing(Distances(counts), self._listing, self._terms, self._asking, self._ask)

    def coded(self, columns: Sequence[Column]) -> Curator:
        """A door to the same rows once all places are known, that shares journal and budget.

        Sensitivity: a row's code follows from the row's own cell by a public rule, as if it had been
        coded on loading.

        Args:
            columns: all columns of this door, in the order to come.

        Raises:
            ValueError: the places of a column are still to be found, or this door's are grouped.
        """
        if self._grouping is not None:
            raise ValueError("columns are coded before they are grouped")
        twin = copy(self)
        table = self._table.coded(columns)
        twin._over(table, ExactCounts(table, Store()))
        twin._seeking = Seeking(table, self._terms, self._asking, twin._ask)
        return twin

    def grouped(self, grouping: Grouping) -> Curator:
        """A door to the same rows with groups for places, that shares journal, budget and counts.

        Sensitivity: a row's group follows from the row's own code by a public rule, so a row still
        stands in one cell and no sensitivity changes.

        Raises:
            ValueError: the grouping is not of this table's domain, or this door's is grouped already.
        """
        if self._grouping is not None:
            raise ValueError("a door on groups can't be grouped again")
        twin = copy(self)
        twin._grouping, twin._ungrouped = grouping, self
        table = self._table.recoded(grouping)
        store = self._counts.store
        twin._over(table, ExactCounts(table, store, frozenset(grouping.groups), grouping.digest))
        return twin

    @property
    def measure(self) -> Measure:
        """How costs are counted: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu^2/2)."""
        return self._terms.measure

    @property
    def noise(self) -> str:
        """Noise of counts: "gaussian" or "laplace"."""
        return self._terms.noise

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget before the next question."""
        return self._asking.remaining

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
        near = self._terms.neighbours
        return self._terms.noised(price, near.l1, near.l2_squared).mean_absolute_error

    def _ask(
        self,
        question: Question,
        event: RecordedEvent,
        exact: Callable[[], Exact],
        draw: Callable[[Exact], Answer],
    ) -> Answer | Lost:
        if self._grouping is not None:
            question = {**question, "grouping": self._grouping.digest}
        return self._asking.ask(question, event, exact, draw)

    def count(self, price: Fraction) -> Measurement | None:
        """Number of rows after bounding.

        Public, exact and free where the relation fixes it (replace-one rows); otherwise
        answered like the marginal of no columns, see ``marginals``.
        """
        if self._terms.neighbours.rows_public:
            rows = np.array(self._table.rows, dtype=np.int64)
            return Measurement((), rows, "none", 0.0)
        return self.marginals([()], price)[0]

    def marginals(
        self, cliques: Sequence[Clique], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of every cell of each clique, the allowance shared among them.

        Sensitivity: one unit moves a marginal by at most ``neighbours.l1`` in L1 and
        ``neighbours.l2_squared`` in squared L2.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a cell.
        Cost: that of ``GaussianEvent`` or ``LaplaceEvent`` with these, a clique.

        A question lost to an interruption stays paid for. It is asked again from what is
        left: of the release's budget while it lasts, then of the allowance of the cliques
        still to come. None stands for a clique for which next to nothing was left.

        Args:
            cliques: tuples of column names; () is the total.
            allowance: what the answers may cost together, at most ``remaining``.
            weights: a positive weight a clique, its part of the allowance; left out: even.
        """
        answers: list[Measurement | None] = []
        unspent, parts = allowance, list(weights or [Fraction(1)] * len(cliques))
        still = list(accumulate(reversed(parts)))[::-1]
        for i, clique in enumerate(cliques):
            answer: Measurement | None = None
            while answer is None:
                price = min(unspent, self.remaining) * parts[i] / still[i]
                if price <= allowance * parts[i] / still[0] / WORTHLESS:
                    break
                answer, paid = self._marginal(clique, price)
                unspent -= paid if answer is not None else 0
            answers.append(answer)
        return answers

    def singles(
        self, columns: Sequence[str], allowance: Fraction, weights: Sequence[Fraction] = ()
    ) -> list[Measurement | None]:
        """Noisy counts of each place of each column, on a door on groups too; see ``marginals``."""
        return (self._ungrouped or self).marginals([(c,) for c in columns], allowance, weights)

    def counts_under(self, column: Column, codec: Codec, price: Fraction) -> tuple[Counts, float]:
        """Noisy counts of each cell of a public partition of a sought column; see ``seeking.Seeking``."""
        return self._seeking.counts_under(column, codec, price)

    def medians(
        self, column: Column, cuts: NDArray[np.float64], runs: Sequence[Run], price: Fraction
    ) -> Counts:
        """A cut near the median of each run of a column's public cuts; see ``seeking.Seeking``."""
        return self._seeking.medians(column, cuts, runs, price)

    def values_of(
        self, column: Column, price: Fraction, delta: Fraction, known: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Values of a column that enough units hold, sorted; see ``seeking.Seeking``."""
        return self._seeking.values_of(column, price, delta, known)

    def _marginal(self, clique: Clique, price: Fraction) -> tuple[Measurement | None, Fraction]:
        near = self._terms.neighbours
        noised = self._terms.noised(price, near.l1, near.l2_squared)
        question = {"ask": "marginal", "columns": list(clique)}
        drawn = self._ask(question, noised.event, lambda: self._counts.of(clique), noised.draw)
        paid = cost(noised.event, self._terms.measure)
        if isinstance(drawn, Lost):
            return None, paid
        return Measurement(clique, drawn, noised.kind, noised.scale), paid

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> int:
        """The index of a clique whose estimate is far from the truth; see ``choosing.Choosing``."""
        return self._choosing.choose(candidates, estimates, price, penalties, weights)

    def choose_in_turn(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        most: int,
        admissible: Callable[[Sequence[int]], NDArray[np.bool_]],
        penalties: Sequence[int] = (),
        weights: Sequence[int] = (),
    ) -> list[int]:
        """The indices of several cliques, chosen one after another; see ``choosing.Choosing``."""
        return self._choosing.choose_in_turn(
            candidates, estimates, price, most, admissible, penalties, weights
        )

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[Counts, float]:
        """Noisy distances between exact counts and estimates; see ``choosing.Choosing``."""
        return self._choosing.errors(candidates, estimates, price)
