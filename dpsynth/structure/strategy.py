"""What a structure strategy is: it decides which marginals to measure, from answers alone.

Invariant: a strategy never holds a curator's table; it sees noisy numbers and choices.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.domain.domain import Clique, Domain
from dpsynth.spec.plan import Outline


class Estimates(Protocol):
    """Public estimates of marginals."""

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """Estimated counts, axes in the clique's order."""
        ...

    def fingerprint(self) -> str:
        """A digest that changes whenever an estimate does."""
        ...


class Chooser(Protocol):
    """The part of a curator that a strategy may ask."""

    def choose(
        self,
        candidates: Sequence[Clique],
        estimates: Estimates,
        price: Fraction,
        penalties: Sequence[int] = (),
    ) -> int:
        """Index of a candidate whose estimate is far from the truth, at a price.

        Scores are L1 distances in rows, less the penalties.
        """
        ...


class Strategy(Outline, Protocol):
    """How to decide what to measure besides the single columns."""

    def select(
        self,
        chooser: Chooser,
        domain: Domain,
        estimates: Estimates,
        allowance: Fraction,
        cell_error: float,
        wanted: Sequence[Clique],
    ) -> tuple[Clique, ...]:
        """Choose the cliques to measure.

        Args:
            chooser: answers private choices, at a price.
            domain: the public domain.
            estimates: a model of the one-way marginals.
            allowance: what all choices may cost together, in the chooser's measure.
            cell_error: expected absolute error, in rows, of a cell of a measured marginal.
            wanted: pairs without a cycle that are to be among them, if the strategy can.
        """
        ...
