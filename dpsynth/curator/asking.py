"""Asking within a budget: a question is refused, or charged and answered by the journal.

Invariant: the costs of all charges on record, those of lost answers included, never exceed the budget, nor
their deltas the delta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import islice
from typing import Protocol, TypeVar

from dpsynth.accounting.events import RecordedEvent
from dpsynth.curator.journal import Answer, Entry, Journal, Lost, Question
from dpsynth.curator.terms import Terms
from dpsynth.errors import BudgetRefused

Exact = TypeVar("Exact")
"""What an answer is drawn upon: exact and private."""

WORTHLESS = 1000
"""A lost question is given up once its price, or its delta, falls to this part of its share."""


class Ask(Protocol):
    """Asks one question; see ``Asking.ask``."""

    def __call__(
        self,
        question: Question,
        event: RecordedEvent,
        exact: Callable[[], Exact],
        draw: Callable[[Exact], Answer],
    ) -> Answer | Lost:
        """The journal's answer, or LOST."""
        ...


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
            self._sum += self._terms.measure.cost(entry.event)
            self._summed += 1
        return self._sum

    def _delta_left(self) -> Fraction:
        return self._terms.delta - sum(entry.event.delta for entry in self._journal.asked())

    def ask(
        self,
        question: Question,
        event: RecordedEvent,
        exact: Callable[[], Exact],
        draw: Callable[[Exact], Answer],
    ) -> Answer | Lost:
        """The journal's answer, or LOST.

        Args:
            question: public JSON values that say what is asked.
            event: what the answer costs.
            exact: works out exact integers; called only if they are drawn upon now.
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

    def insist(
        self, price: Fraction, ask: Callable[[Fraction], tuple[Answer | Lost, float]]
    ) -> tuple[Answer, float]:
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
