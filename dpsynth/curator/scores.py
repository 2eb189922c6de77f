"""The scores of private choices: distances, less penalties, times weights.

Invariant: penalties and weights are public and fixed before a choice, so one unit moves a score by
at most its weight times as far as the distance; and every score is within int64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.curator.distances import FARTHEST

Counts = NDArray[np.int64]
Places = NDArray[np.intp]

HEAVIEST = 1 << 20
"""The largest weight: times a limited distance less a limited penalty, it stays within int64."""


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """Scores of candidates, worked out once, when first needed.

    Attributes:
        distances: gives the exact L1 distances int64[candidates], in rows. Private.
        penalties: int64[candidates], in rows.
        weights: int64[candidates].
    """

    distances: Callable[[], Counts]
    penalties: Counts
    weights: Counts

    @cached_property
    def _all(self) -> Counts:
        return self.weights * (self.distances() - self.penalties)

    def of(self, places: Places) -> Counts:
        """The scores at some places among the candidates. Private."""
        return self._all[places]

    def sensitivity(self, places: Places, l1: int) -> int:
        """How far one unit moves a score at some places, if it moves a distance by at most ``l1``.

        At least ``l1``: a mechanism needs a positive one, also for weights of 0 alone.
        """
        return l1 * max(1, int(self.weights[places].max()))


def public_numbers(number: int, penalties: Sequence[int], weights: Sequence[int]) -> tuple[Counts, Counts]:
    """Penalties and weights of so many candidates, 0 and 1 where they are left out.

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
