"""The terms of a curator's answers, and the privacy filter that every question passes.

A question is refused, or charged, drawn and recorded, in that order. A filter lets questions through that
depend on earlier answers, until the next one would exceed the budget (Rogers, Roth, Ullman and Vadhan 2016).

Invariant: the costs of all charges on record, those of lost answers included, never exceed the budget, nor
their deltas the delta. The noise that is drawn is that of the event that is charged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import CalibratedNoise, Calibration, NoiseName, noise_named
from dpsynth.accounting.events import GaussianEvent, LaplaceEvent, RecordedEvent
from dpsynth.accounting.measures import Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.config.files.opening import unheard
from dpsynth.curator import samplers
from dpsynth.curator.journal import Answer, Entry, Journal, Lost, Question
from dpsynth.errors import BudgetRefused, ConfigError

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Terms:
    """The terms of a curator's answers.

    Attributes:
        noise: "gaussian" or "laplace", for counts.
        delta: total delta allowed for partition selection, in addition to the measure's delta.
        kept: the part of the budget that is kept for later questions.

    Raises:
        ConfigError: the noise has no cost under the measure.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    noise: NoiseName
    delta: Fraction = Fraction(0)
    kept: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        if self.noise not in self.measure.noises:
            (allowed,) = self.measure.noises
            raise ConfigError(
                f"privacy.noise {self.noise} has no cost under the accounting in force "
                f"({self.measure.name}), which counts {allowed} noise only. Use privacy.noise {allowed}, or "
                "zCDP, which counts both: privacy.delta with privacy.accountant zcdp."
            )

    @property
    def calibration(self) -> Calibration:
        return Calibration(self.neighbours, self.measure, noise_named(self.noise))


Exact = TypeVar("Exact")
"""Exact and private integers or texts, from which an answer is drawn."""

Bought = TypeVar("Bought")


WORTHLESS = 1000
"""A lost question is given up if its price, or its delta, falls to this part of its share."""


class PrivacyFilter:
    """Base of all classes that answer questions about private rows.

    A verb is a public method of a class derived from this one. It passes its question, the event to
    charge, the exact integers and the draw to ``_ask`` or ``_insist``, and draws nothing by itself.
    """

    def __init__(self, terms: Terms, journal: Journal) -> None:
        """Start after the questions that the journal has answered."""
        self._terms = terms
        self._journal = journal
        self._summed, self._sum = 0, Fraction(0)

    @property
    def measure(self) -> Measure:
        return self._terms.measure

    @property
    def noise(self) -> str:
        return self._terms.noise

    @property
    def remaining(self) -> Fraction:
        """Rest of the budget before the next question, without what is kept for later ones."""
        return self._terms.budget - self._terms.kept - self._spent(self._journal.asked())

    def cell_error(self, price: Fraction) -> float:
        """Expected absolute error, in rows, of a cell of a marginal measured at a price. Public."""
        return self._calibration.counts(price).expected_error

    @property
    def _calibration(self) -> Calibration:
        return self._terms.calibration

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
            exact: returns the exact integers or texts; called only if an answer is drawn now.
            draw: returns the noisy answer to these.

        Raises:
            BudgetRefused: the budget does not allow it; nothing was charged or drawn.
        """
        self._allow([event])
        return self._journal.answer(self._named(question), event, unheard()(lambda: draw(exact())))

    def _charge(self, asked: Sequence[tuple[Question, RecordedEvent]]) -> None:
        """Charge the questions that are asked next, together; each is answered by ``_ask``, in this order.

        Raises:
            BudgetRefused: the budget does not allow all of them; nothing was charged.
        """
        self._allow([event for _, event in asked])
        self._journal.charge([(self._named(question), event) for question, event in asked])

    def _allow(self, asked: Sequence[RecordedEvent]) -> None:
        cost, delta = sum(map(self._terms.measure.cost, asked)), sum(event.delta for event in asked)
        if cost > self.remaining or (delta > 0 and delta > self._delta_left()):
            raise BudgetRefused(
                "This release has spent its budget: a question was refused before anything was drawn. "
                "Start a new release, or give this one more with privacy.epsilon."
            )

    def _named(self, question: Question) -> Question:
        return question

    def _once(
        self, question: Question, event: GaussianEvent | LaplaceEvent, exact: Callable[[], Counts]
    ) -> Counts | None:
        """Integers with the noise of an event; None if they are lost, and stay paid for."""
        drawn = self._ask(question, event, exact, partial(samplers.add_noise, event))
        return None if isinstance(drawn, Lost) else drawn

    def _noisy(
        self,
        question: Question,
        exact: Callable[[], Counts],
        price: Fraction,
        bought_for: Callable[[Fraction], CalibratedNoise],
    ) -> tuple[Counts, CalibratedNoise]:
        """Integers with noise, and that noise; asked again while lost, as ``_insist`` does."""

        def ask(price: Fraction) -> tuple[Counts | Lost, CalibratedNoise]:
            bought = bought_for(price)
            return self._ask(question, bought.event, exact, partial(samplers.add_noise, bought.event)), bought

        return self._insist(price, ask)

    def _insist(
        self, price: Fraction, ask: Callable[[Fraction], tuple[Answer | Lost, Bought]]
    ) -> tuple[Answer, Bought]:
        """The answer to a question that is asked again, from the rest of the budget, while it is lost.

        A lost answer stays paid for.

        Raises:
            BudgetRefused: the budget does not allow it, or interruptions have used it up.
        """
        again = price
        while True:
            answer, bought = ask(again)
            if not isinstance(answer, Lost):
                return answer, bought
            again = min(price, self.remaining)
            if again <= price / WORTHLESS:
                raise BudgetRefused(
                    "Interruptions used up the budget of this release before all its questions were "
                    "answered. Start a new release."
                )
