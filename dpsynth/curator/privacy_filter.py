"""The privacy filter that every question passes: refused, or charged and answered by the journal.

A filter lets questions through that depend on earlier answers, until the next one would exceed the budget
(Rogers, Roth, Ullman and Vadhan 2016).

Invariant: the costs of all charges on record, those of lost answers included, never exceed the budget, nor
their deltas the delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import islice
from typing import TypeVar

from dpsynth.accounting.events import RecordedEvent
from dpsynth.accounting.measures import Measure
from dpsynth.curator.journal import Answer, Entry, Journal, Lost, Question
from dpsynth.curator.terms import Terms
from dpsynth.errors import BudgetRefused

Exact = TypeVar("Exact")
"""Exact and private integers or texts, from which an answer is drawn."""

WORTHLESS = 1000
"""A lost question is given up once its price, or its delta, falls to this part of its share."""


class PrivacyFilter:
    """The base of everything that answers questions about private rows.

    A verb is a public method of a class derived from this one. It names its question, the event that is
    charged, the exact integers and the draw, and hands them to ``_ask`` or ``_insist``: nothing else draws.
    """

    def __init__(self, terms: Terms, journal: Journal) -> None:
        """Start from what the journal has answered before the next question.

        Args:
            terms: relation, unit, measure, budget and noise.
            journal: where charges and answers go; one with entries is replayed.
        """
        self._terms = terms
        self._journal = journal
        self._summed, self._sum = 0, Fraction(0)

    @property
    def measure(self) -> Measure:
        """Measure of costs."""
        return self._terms.measure

    @property
    def noise(self) -> str:
        """Noise of counts: "gaussian" or "laplace"."""
        return self._terms.noise

    @property
    def remaining(self) -> Fraction:
        """Rest of the budget before the next question."""
        return self._terms.budget - self._spent(self._journal.asked())

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
        return self._terms.calibration.counts(price).expected_error

    def _spent(self, entries: Iterable[Entry]) -> Fraction:
        # A journal only grows: what was summed before is not summed again.
        for entry in islice(entries, self._summed, None):
            self._sum += self._terms.measure.cost(entry.event)
            self._summed += 1
        return self._sum

    def _delta_left(self) -> Fraction:
        return self._terms.delta - sum(entry.event.delta for entry in self._journal.asked())

    def _ask(
        self,
        question: Question,
        event: RecordedEvent,
        exact: Callable[[], Exact],
        draw: Callable[[Exact], Answer],
    ) -> Answer | Lost:
        """The journal's answer, or LOST.

        Args:
            question: public JSON values that identify the question.
            event: the cost of the answer.
            exact: gives the exact integers or texts; called only if an answer is drawn now.
            draw: from these to the noisy answer.

        Raises:
            BudgetRefused: the budget does not allow it; nothing was charged or drawn.
        """
        over = self._terms.measure.cost(event) > self.remaining
        if over or (event.delta > 0 and event.delta > self._delta_left()):
            raise BudgetRefused(
                "This release has spent its budget: a question was refused before anything was drawn. "
                "Start a new release, or give this one more with privacy.epsilon."
            )
        return self._journal.answer(question, event, lambda: draw(exact()))

    def _insist(
        self, price: Fraction, ask: Callable[[Fraction], tuple[Answer | Lost, float]]
    ) -> tuple[Answer, float]:
        """The answer to a question that is asked again, from the rest of the budget, while it is lost.

        A lost answer stays paid for.

        Args:
            price: the most that an answer may cost; asked again, the rest of the budget if that is less.
            ask: from a price to the answer, and a figure that goes with it.

        Raises:
            BudgetRefused: the budget does not allow it, or interruptions have used it up.
        """
        again = price
        while True:
            answer, figure = ask(again)
            if not isinstance(answer, Lost):
                return answer, figure
            again = min(price, self.remaining)
            if again <= price / WORTHLESS:
                raise BudgetRefused(
                    "Interruptions used up the budget of this release before all its questions were "
                    "answered. Start a new release."
                )
