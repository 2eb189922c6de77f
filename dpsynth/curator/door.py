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
from dpsynth.curator import noise
from dpsynth.curator.asking import WORTHLESS, Asking, Draw
from dpsynth.curator.counting import ExactCounts, Store
from dpsynth.curator.distances import Distances, Estimates
from dpsynth.curator.journal import Journal, Lost, Question
from dpsynth.curator.listing import Listing, selected
from dpsynth.curator.scores import Scores, public_numbers
from dpsynth.curator.table import PrivateTable
from dpsynth.curator.terms import Terms
from dpsynth.domain.domain import Clique
from dpsynth.domain.grouping import Grouping
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
        self._table = table
        self._terms = terms
        self._asking = Asking(terms, journal)
        self._counts = ExactCounts(table, Store())
        self._distances = Distances(self._counts)
        self._listing = Listing()
        self._grouping: Grouping | None = None
        self._ungrouped: Curator | None = None

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
        twin._table = self._table.recoded(grouping)
        twin._counts = ExactCounts(
            twin._table, self._counts.store, frozenset(grouping.groups), grouping.digest
        )
        twin._distances = Distances(twin._counts)
        return twin

    @property
    def measure(self) -> Measure:
        """How costs are counted: "pure" (epsilon), "zcdp" (rho) or "gdp" (mu^2/2)."""
        return self._terms.measure

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget before the next question."""
        return self._asking.remaining

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
        near = self._terms.neighbours
        return self._terms.noised(price, near.l1, near.l2_squared).mean_absolute_error

    def _ask(
        self, question: Question, event: RecordedEvent, exact: Callable[[], Counts], draw: Draw
    ) -> Counts | Lost:
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
        """Choose the clique whose estimate is far from the truth, by the exponential mechanism.

        Score of a clique: L1 distance, in rows, between its exact counts and its estimate
        rounded to integers, less its penalty, times its weight.
        Sensitivity: estimates, penalties and weights are public and fixed, and one unit moves a
        distance by at most ``neighbours.l1``, either way; so it moves a score by at most
        ``neighbours.l1`` times the largest weight.
        Distribution: Pr[i] ~ exp(score_i/scale).
        Cost: epsilon = 2 sensitivity/scale; rho = epsilon^2/8; mu^2/2 = pi epsilon^2/16. A choice
        that is lost to an interruption is made again from what is left.

        Args:
            candidates: cliques to choose from, at least one.
            estimates: public estimates of their marginals.
            price: what the choice may cost.
            penalties: rows to take off each distance, at most 2^40; left out: none.
            weights: whole numbers from 0 to 2^20; left out: all 1.

        Returns:
            The index of the chosen candidate.

        Raises:
            BudgetRefused: nothing is left to pay with.
            ValueError: no candidates, or numbers out of range or not one a candidate.
        """
        if not candidates:
            raise ValueError("a choice needs candidates")
        pick = self._chooser(candidates, estimates, price, penalties, weights)
        return pick(np.arange(len(candidates)))

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
        """Choose several cliques one after another, each as ``choose`` does, none twice.

        Scores, sensitivity, distribution and cost of each choice are those of ``choose`` among the
        candidates that may come next. Those follow from the choices before and public facts, so the
        choices compose like any questions asked in turn; each has noise of its own, and is charged
        before it is drawn. Distances, and the names of all candidates, are worked out once.

        Args:
            candidates: as for ``choose``; for all choices, as what follows.
            estimates: likewise.
            price: what each choice may cost.
            most: how many choices to make.
            admissible: from the indices chosen so far to bool[candidates], which may come next;
                asked once before each choice. Choosing ends where there are none.
            penalties: as for ``choose``.
            weights: likewise.

        Returns:
            The indices of the chosen candidates, in the order of choice.

        Raises:
            As for ``choose``; ValueError also where ``admissible`` does not speak of each candidate.
        """
        chosen: list[int] = []
        if most <= 0 or not candidates:
            return chosen
        pick = self._chooser(candidates, estimates, price, penalties, weights)
        while len(chosen) < most:
            may = np.array(admissible(tuple(chosen)), dtype=np.bool_)
            if may.shape != (len(candidates),):
                raise ValueError("whether it may be chosen must be said of each candidate")
            may[chosen] = False
            if not may.any():
                break
            chosen.append(pick(np.flatnonzero(may)))
        return chosen

    def _chooser(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int],
        weights: Sequence[int],
    ) -> Callable[[NDArray[np.intp]], int]:
        """What chooses among the candidates at some places, and gives the place of one."""
        candidates, digest = tuple(candidates), estimates.fingerprint()
        off, times = public_numbers(len(candidates), penalties, weights)
        named = self._listing.of(candidates, off, times)
        scores = Scores(lambda: self._distances.of(candidates, estimates, digest), off, times)

        def pick(at: NDArray[np.intp]) -> int:
            sensitivity = scores.sensitivity(at, self._terms.neighbours.l1)
            question = {"ask": "choose", "candidates": selected(named, at), "estimates": digest}

            def ask(price: Fraction) -> tuple[Counts | Lost, float]:
                event = self._terms.choosing(price, sensitivity)
                return self._ask(
                    question,
                    event,
                    lambda: scores.of(at),
                    lambda found: np.array(noise.choose_index(found, event.scale)),
                ), event.scale

            return int(at[int(self._asking.insist(price, ask)[0])])

        return pick

    def errors(
        self, candidates: Sequence[Clique], estimates: Estimates, price: Fraction
    ) -> tuple[Counts, float]:
        """Noisy L1 distances, in rows, between exact counts and estimates rounded to integers.

        Sensitivity: one unit moves each of k distances by at most ``neighbours.l1``, either way,
        so all of them by at most k l1 in L1 and k l1^2 in squared L2.
        Distribution: discrete Gaussian or discrete Laplace noise, independently a candidate.
        Cost: that of one ``GaussianEvent`` or ``LaplaceEvent`` with these. A question lost to an
        interruption stays paid for, and is asked again from what is left.

        Args:
            candidates: cliques; none cost nothing.
            estimates: public estimates of their marginals.
            price: what the answer may cost.

        Returns:
            int64[candidates], and the standard deviation of their noise in rows.

        Raises:
            BudgetRefused: nothing is left to pay with.
        """
        if not candidates:
            return np.zeros(0, dtype=np.int64), 0.0
        k, l1 = len(candidates), self._terms.neighbours.l1
        digest = estimates.fingerprint()
        question = {"ask": "errors", "candidates": self._listing.of(candidates), "estimates": digest}

        def exact() -> Counts:
            return self._distances.of(candidates, estimates, digest)

        def ask(price: Fraction) -> tuple[Counts | Lost, float]:
            noised = self._terms.noised(price, k * l1, k * l1**2)
            return self._ask(question, noised.event, exact, noised.draw), noised.stddev

        return self._asking.insist(price, ask)
