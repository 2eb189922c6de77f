"""Private choices among cliques, and noisy errors of them: what strategies look for structure with.

Invariant: a question, its charge and the form of its answer depend on public arguments alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator import noise
from dpsynth.curator.asking import Ask, Asking
from dpsynth.curator.clique_lists import Listing, selected
from dpsynth.curator.distances import Distances, Estimates
from dpsynth.curator.journal import Lost
from dpsynth.curator.scores import Scores, public_numbers
from dpsynth.curator.terms import Terms
from dpsynth.domain.domain import Clique

Counts = NDArray[np.int64]


class Choosing:
    """Answers about the cliques of one table, by their distances to public estimates."""

    def __init__(
        self, distances: Distances, listing: Listing, terms: Terms, asking: Asking, ask: Ask
    ) -> None:
        """Start with what is known of distances and names.

        Args:
            distances: exact; of the private rows in one coding.
            listing: short names of lists of cliques.
            terms: relation, unit, measure and noise.
            asking: asks a lost question again.
            ask: charges, draws and records.
        """
        self._distances = distances
        self._listing = listing
        self._terms = terms
        self._asking = asking
        self._ask = ask

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
        digest = estimates.fingerprint()
        question = {"ask": "errors", "candidates": self._listing.of(candidates), "estimates": digest}

        def exact() -> Counts:
            return self._distances.of(candidates, estimates, digest)

        def ask(price: Fraction) -> tuple[Counts | Lost, float]:
            noised = self._terms.distances(price, len(candidates))
            return self._ask(question, noised.event, exact, noised.draw), noised.stddev

        return self._asking.insist(price, ask)
