"""The one door to the private table.

Invariant: whoever holds a Curator learns noisy answers only, and the sum of their costs,
lost answers included, never exceeds the budget the curator was opened with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import (
    Measure,
    cost,
    exponential_within,
    gaussian_within,
    laplace_within,
)
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.curator import noise
from dpsynth.curator.journal import Entry, Journal, Lost, Question, RecordedEvent
from dpsynth.curator.table import PrivateTable
from dpsynth.domain.domain import Clique
from dpsynth.domain.measurement import Measurement
from dpsynth.errors import BudgetRefused

Counts = NDArray[np.int64]

_WORTHLESS = 1000
"""A lost question is given up once its price falls to this part of its share."""
Draw = Callable[[Counts], Counts]


class Estimates(Protocol):
    """Public estimates of marginals, to compare the private table with."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""
        ...

    def fingerprint(self) -> str:
        """A digest that changes whenever an estimate does."""
        ...


@dataclass(frozen=True)
class Terms:
    """On what terms a curator answers.

    Attributes:
        neighbours: relation and unit, which decide every sensitivity.
        measure: "pure" or "zcdp".
        budget: total cost allowed, under the measure.
        noise: "gaussian" or "laplace", for counts.
    """

    neighbours: Neighbours
    measure: Measure
    budget: Fraction
    noise: Literal["gaussian", "laplace"]


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
        self._journal = journal
        self._distances: dict[tuple[str, Clique], int] = {}

    @property
    def measure(self) -> Measure:
        """How costs are counted: "pure" (epsilon) or "zcdp" (rho)."""
        return self._terms.measure

    @property
    def remaining(self) -> Fraction:
        """What is left of the budget before the next question."""
        return self._terms.budget - self._spent(self._journal.asked())

    def _spent(self, entries: Iterable[Entry]) -> Fraction:
        return sum((cost(entry.event, self._terms.measure) for entry in entries), Fraction(0))

    def _ask(
        self, question: Question, event: RecordedEvent, exact: Callable[[], Counts], draw: Draw
    ) -> Counts | Lost:
        """Refuse what the budget does not allow; otherwise let the journal answer."""
        if cost(event, self._terms.measure) > self.remaining:
            raise BudgetRefused(
                "This release has spent its budget: a question was refused before anything was drawn. "
                "Start a new release, or give this one more with privacy.epsilon."
            )
        return self._journal.answer(question, event, lambda: draw(exact()))

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
        Cost: l2_squared/(2 sigma^2) in rho, or l1/b in epsilon, a clique.

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
        for i, clique in enumerate(cliques):
            answer: Measurement | None = None
            while answer is None:
                price = min(unspent, self.remaining) * parts[i] / sum(parts[i:])
                if price <= allowance * parts[i] / sum(parts) / _WORTHLESS:
                    break
                answer, paid = self._marginal(clique, price)
                unspent -= paid if answer is not None else 0
            answers.append(answer)
        return answers

    def _marginal(self, clique: Clique, price: Fraction) -> tuple[Measurement | None, Fraction]:
        near = self._terms.neighbours
        event: RecordedEvent
        draw: Callable[[Counts, float], Counts]
        if self._terms.noise == "gaussian":
            event = gaussian_within(price, near.l2_squared)
            scale, draw = event.sigma, noise.add_gaussian
        else:
            event = laplace_within(price, self._terms.measure, near.l1)
            scale, draw = event.scale, noise.add_laplace
        question = {"ask": "marginal", "columns": list(clique)}
        drawn = self._ask(
            question, event, lambda: self._table.counts(clique), lambda exact: draw(exact, scale)
        )
        if isinstance(drawn, Lost):
            return None, cost(event, self._terms.measure)
        return Measurement(clique, drawn, self._terms.noise, scale), cost(event, self._terms.measure)

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
    ) -> int:
        """Choose the clique whose estimate is far from the truth, by the exponential mechanism.

        Score of a clique: L1 distance, in rows, between its exact counts and its estimate
        rounded to integers, less its penalty.
        Sensitivity: estimate and penalty are public and fixed, so one unit moves each score
        by at most ``neighbours.l1``, either way.
        Distribution: Pr[i] ~ exp(score_i/scale).
        Cost: epsilon = 2 l1/scale; rho = epsilon^2/8.

        Args:
            candidates: cliques to choose from, at least one.
            estimates: public estimates of their marginals.
            price: what the choice may cost.
            penalties: rows to take off each score; left out: none.

        Returns:
            The index of the chosen candidate.

        Raises:
            BudgetRefused: nothing is left to pay with.
        """
        event = exponential_within(price, self._terms.measure, self._terms.neighbours.l1)
        digest = estimates.fingerprint()
        off = np.array(penalties or [0] * len(candidates), dtype=np.int64)
        question = {"ask": "choose", "candidates": _names(candidates, off), "estimates": digest}
        while True:
            chosen = self._ask(
                question,
                event,
                lambda: self._scores(candidates, estimates, digest) - off,
                lambda scores: np.array(noise.choose_index(scores, event.scale)),
            )
            if not isinstance(chosen, Lost):
                return int(chosen)

    def _scores(self, candidates: Sequence[Clique], estimates: Estimates, digest: str) -> Counts:
        """L1 distances int64[candidates]; each is computed once for the same estimates."""
        for clique in candidates:
            if (digest, clique) not in self._distances:
                guess = np.rint(estimates.marginal(clique)).astype(np.int64)
                gap = np.abs(self._table.counts(clique) - guess).sum()
                self._distances[digest, clique] = int(gap)
        return np.array([self._distances[digest, c] for c in candidates], dtype=np.int64)


def _names(candidates: Sequence[Clique], penalties: Counts) -> Mapping[str, object]:
    """The candidates as a count and a digest: thousands of names would swell the journal."""
    pairs = zip(candidates, penalties.tolist(), strict=True)
    listed = "\n".join("\t".join((*clique, str(penalty))) for clique, penalty in pairs)
    return {"number": len(candidates), "sha256": sha256(listed.encode()).hexdigest()}
