"""Marginals of a synthetic table that are examined, and how far a noisy distance of one may be off.

Invariant: public facts only.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal

from dpsynth.accounting.noises import noise_named
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import noise_variance

Kind = Literal["pair", "statistic", "triple"]

OUTSIDE = 0.05
"""Chance that a distance lies outside of its limits; each pair of limits holds by itself."""


@dataclass(frozen=True)
class Examined:
    """A marginal of the exam.

    Attributes:
        kind: "pair", "statistic" (a requested table of three columns or more) or "triple" (drawn at random).
        clique: its columns, in table order.
    """

    kind: Kind
    clique: Clique


def reach(noise: str, scale: float) -> float:
    """Half the width of the 95 % interval of a noisy distance, in rows."""
    return noise_named(noise).deviations(1, OUTSIDE / 2) * sqrt(noise_variance(noise, scale))
