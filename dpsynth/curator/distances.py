"""How far public estimates lie from exact counts: the scores of every private selection.

Invariant: exact and private. One unit moves a distance by at most ``neighbours.l1``, either way: by
the triangle inequality | |x - e|_1 - |x' - e|_1 | <= |x - x'|_1 for any estimate e, and limiting a
distance from above moves it no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator.counting import ExactCounts
from dpsynth.domain.domain import Clique

Counts = NDArray[np.int64]

FARTHEST = 1 << 40
"""Distances are limited to this many rows, so that weighted scores stay within int64."""
_LARGEST_CELL = 1 << 36
_CELLS_A_BATCH = 1 << 22
"""Cells of estimates that are held at once."""


class Estimates(Protocol):
    """Public estimates of marginals, to compare the private table with."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""
        ...

    def fingerprint(self) -> str:
        """A digest that changes whenever an estimate does."""
        ...


@runtime_checkable
class ManyEstimates(Protocol):
    """Estimates that come cheaper together."""

    def marginals(self, cliques: Sequence[Clique]) -> Mapping[Clique, NDArray[np.float64]]:
        """Estimated counts by clique, axes in its order."""
        ...


class Distances:
    """L1 distances to one set of estimates at a time, each computed once."""

    def __init__(self, counts: ExactCounts) -> None:
        """Start with nothing known."""
        self._counts = counts
        self._estimates = ""
        self._known: dict[Clique, int] = {}

    def of(self, candidates: Sequence[Clique], estimates: Estimates, fingerprint: str) -> Counts:
        """L1 distances int64[candidates], in rows, from the estimates rounded to integers."""
        if fingerprint != self._estimates:
            self._estimates, self._known = fingerprint, {}
        try:
            return self._gathered(candidates)
        except KeyError:
            missing = [c for c in dict.fromkeys(candidates) if c not in self._known]
        self._counts.prepare(missing)
        for batch in self._counts.table.domain.batches(missing, _CELLS_A_BATCH):
            if isinstance(estimates, ManyEstimates):
                guesses = estimates.marginals(batch)
            else:
                guesses = {clique: estimates.marginal(clique) for clique in batch}
            self._known |= {c: _distance(self._counts.of(c), guesses[c]) for c in batch}
        return self._gathered(candidates)

    def _gathered(self, candidates: Sequence[Clique]) -> Counts:
        return np.fromiter(map(self._known.__getitem__, candidates), np.int64, len(candidates))


def _distance(counts: Counts, guess: NDArray[np.float64]) -> int:
    # A guess of another shape would be stretched, and each row with it be counted several times.
    if guess.shape != counts.shape:
        raise ValueError("an estimate must have one number for each cell of its marginal")
    near = np.fmax(np.fmin(np.rint(guess), _LARGEST_CELL), -_LARGEST_CELL)
    return min(int(np.abs(counts - near.astype(np.int64)).sum()), FARTHEST)
