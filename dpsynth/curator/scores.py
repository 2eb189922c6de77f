"""Scores of private selection: distances of estimates from exact counts, less penalties, times weights.

Invariant: scores are exact and private. One unit moves a distance by at most ``neighbours.l1``, either way:
by the triangle inequality | |x - e|_1 - |x' - e|_1 | <= |x - x'|_1 for any estimate e, and limiting a
distance from above moves it no more. Penalties and weights are public and fixed before a choice, so one
unit moves a score by at most its weight times the change of the distance; and every score is within int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique
from dpsynth.columns.estimates import Estimates, ManyEstimates
from dpsynth.curator.marginals import ExactCounts

Counts = NDArray[np.int64]
Indices = NDArray[np.intp]

FARTHEST = 1 << 40
"""Distances are limited to this many rows, so that weighted scores stay within int64."""
_LARGEST_CELL = 1 << 36
_CELLS_A_BATCH = 1 << 22
"""Largest number of cells of estimates that are held at once."""
HEAVIEST = 1 << 20
"""The largest weight; its product with a limited distance less a limited penalty is within int64."""


class Distances:
    """L1 distances to one set of estimates at a time, each computed once."""

    def __init__(self, counts: ExactCounts) -> None:
        """Start without any distance."""
        self._counts = counts
        self._estimates = ""
        self._computed: dict[Clique, int] = {}

    def of(self, candidates: Sequence[Clique], estimates: Estimates, fingerprint: str) -> Counts:
        """L1 distances int64[candidates], in rows, from the estimates rounded to integers."""
        if fingerprint != self._estimates:
            self._estimates, self._computed = fingerprint, {}
        try:
            return self._gathered(candidates)
        except KeyError:
            missing = [c for c in dict.fromkeys(candidates) if c not in self._computed]
        self._counts.prepare(missing)
        for batch in self._counts.table.domain.batches(missing, _CELLS_A_BATCH):
            if isinstance(estimates, ManyEstimates):
                guesses = estimates.marginals(batch)
            else:
                guesses = {clique: estimates.marginal(clique) for clique in batch}
            self._computed |= {c: _distance(self._counts.of(c), guesses[c]) for c in batch}
        return self._gathered(candidates)

    def _gathered(self, candidates: Sequence[Clique]) -> Counts:
        return np.fromiter(map(self._computed.__getitem__, candidates), np.int64, len(candidates))


def _distance(counts: Counts, guess: NDArray[np.float64]) -> int:
    # A guess of another shape would be stretched, and each row with it be counted several times.
    if guess.shape != counts.shape:
        raise ValueError("an estimate must have one number for each cell of its marginal")
    near = np.fmax(np.fmin(np.rint(guess), _LARGEST_CELL), -_LARGEST_CELL)
    return min(int(np.abs(counts - near.astype(np.int64)).sum()), FARTHEST)


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores of candidates, computed once, when first needed.

    Attributes:
        distances: returns the exact L1 distances int64[candidates], in rows. Private.
        penalties: int64[candidates], in rows.
        weights: int64[candidates].
    """

    distances: Callable[[], Counts]
    penalties: Counts
    weights: Counts

    @cached_property
    def _all(self) -> Counts:
        return self.weights * (self.distances() - self.penalties)

    def of(self, at: Indices) -> Counts:
        """The scores at some positions among the candidates. Private."""
        return self._all[at]

    def sensitivity(self, at: Indices, l1: int) -> int:
        """Sensitivity of the scores at some positions, if a distance has sensitivity ``l1``.

        At least ``l1``: a mechanism needs a positive one, also for weights of 0 alone.
        """
        return l1 * max(1, int(self.weights[at].max()))


def public_numbers(number: int, penalties: Sequence[int], weights: Sequence[int]) -> tuple[Counts, Counts]:
    """Penalties and weights of a number of candidates; 0 and 1 if they are left out.

    Raises:
        ValueError: there is not one of each for every candidate, a penalty is beyond 2^40 rows, or
            a weight is not within 0 and 2^20.
    """
    off = _within(penalties, number, 0, -FARTHEST, FARTHEST)
    return off, _within(weights, number, 1, 0, HEAVIEST)


def _within(given: Sequence[int], number: int, default: int, least: int, most: int) -> Counts:
    if len(given) not in {0, number}:
        raise ValueError("a choice needs one number for each candidate, or none at all")
    numbers = np.array(given, dtype=np.int64) if len(given) else np.full(number, default, dtype=np.int64)
    if numbers.min(initial=least) < least or numbers.max(initial=most) > most:
        raise ValueError(f"a number of a candidate must lie between {least} and {most}")
    return numbers
