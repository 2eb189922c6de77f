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
from dpsynth.config.files.opening import unheard
from dpsynth.curator.journal import Answer, Entry, Journal, Lost, Question
from dpsynth.curator.terms import Terms
from dpsynth.errors import BudgetRefused

Exact = TypeVar("Exact")
"""Exact and private integers or texts, from which an answer is drawn."""

WORTHLESS = 1000
"""A lost question is given up if its price, or its delta, falls to this part of its share."""


class PrivacyFilter:
    """Base of all classes that answer questions about private rows.

    A verb is a public method of a class derived from this one. It passes its question, the event to
    charge, the exact integers and the draw to ``_ask`` or ``_insist``, and draws nothing by itself.
    """

    def __init__(self, terms: Terms, journal: Journal) -> None:
        """Start after the questions that the journal has answered.

        Args:
            terms: relation, unit, measure, budget and noise.
            journal: the journal of charges and answers; one with entries is replayed.
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
        """Rest of the budget before the next question, without what is kept for later ones."""
        return self._terms.budget - self._terms.kept - self._spent(self._journal.asked())

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
        return self._terms.calibration.counts(price).expected_error

    def _spent(self, entries: Iterable[Entry]) -> Fraction:
        # A journal only grows, so each charge is summed once.
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
            event: the privacy loss of the answer.
            exact: returns the exact integers or texts; called only if an answer is drawn now.
            draw: returns the noisy answer to these.

        Raises:
            BudgetRefused: the budget does not allow it; nothing was charged or drawn.
        """
        cost = self._terms.measure.cost(event)
        if cost > self.remaining or (event.delta > 0 and event.delta > self._delta_left()):
            raise BudgetRefused(
                "This release has spent its budget: a question was refused before anything was drawn. "
                "Start a new release, or give this one more with privacy.epsilon."
            )
        return self._journal.answer(question, event, unheard()(lambda: draw(exact())))

    def _insist(
        self, price: Fraction, ask: Callable[[Fraction], tuple[Answer | Lost, float]]
    ) -> tuple[Answer, float]:
        """The answer to a question that is asked again, from the rest of the budget, while it is lost.

        A lost answer stays paid for.

        Args:
            price: the most that an answer may cost; if asked again, at most the rest of the budget.
            ask: returns the answer at a price, and a figure that belongs to it.

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
