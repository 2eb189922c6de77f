"""Asking within a budget: a question is refused, or charged and answered by the journal.

Invariant: the costs of all charges on record, those of lost answers included, never exceed the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import RecordedEvent, cost
from dpsynth.curator.journal import Entry, Journal, Lost, Question
from dpsynth.curator.terms import Terms
from dpsynth.errors import BudgetRefused

Counts = NDArray[np.int64]
Draw = Callable[[Counts], Counts]

WORTHLESS = 1000
"""A lost question is given up once its price falls to this part of its share."""


class Asking:
    """What all doors to one table ask through."""

    def __init__(self, terms: Terms, journal: Journal) -> None:
        """Start from what the journal has answered before the next question."""
        self._terms = terms
        self._journal = journal
        self._summed, self._sum = 0, Fraction(0)

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget before the next question."""
        return self._terms.budget - self._spent(self._journal.asked())

    def _spent(self, entries: Iterable[Entry]) -> Fraction:
        # A journal only grows: what was summed before is not summed again.
        for entry in islice(entries, self._summed, None):
            self._sum += cost(entry.event, self._terms.measure)
            self._summed += 1
        return self._sum

    def ask(
        self, question: Question, event: RecordedEvent, exact: Callable[[], Counts], draw: Draw
    ) -> Counts | Lost:
        """The journal's answer, or LOST.

        Args:
            question: public JSON values that say what is asked.
            event: what the answer costs.
            exact: works out the exact integers; called only if they are drawn upon now.
            draw: from these to the noisy answer.

        Raises:
            BudgetRefused: the budget does not allow it; nothing was charged or drawn.
        """
        if cost(event, self._terms.measure) > self.remaining:
            raise BudgetRefused(
                "This release has spent its budget: a question was refused before anything was drawn. "
                "Start a new release, or give this one more with privacy.epsilon."
            )
        return self._journal.answer(question, event, lambda: draw(exact()))

    def insist(
        self, price: Fraction, ask: Callable[[Fraction], tuple[Counts | Lost, float]]
    ) -> tuple[Counts, float]:
        """Ask at a price; if the answer is lost, which stays paid for, ask again from what is left.

        Args:
            price: what the answer may cost; asked again, that or what is left if it is less.
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
