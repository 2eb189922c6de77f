"""The published guarantee, in one value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """What a release guarantees: (epsilon, delta)-DP for a unit under a neighbour relation.

    Attributes:
        epsilon: rounded up.
        delta: 0.0 under pure epsilon-DP.
        rho: zero-concentrated rho, rounded up; None under pure epsilon-DP.
        unit: the privacy unit in words.
        neighbours: "add_remove" or "replace_one".
        accountant: "sequential" or "zcdp".
    """

    epsilon: float
    delta: float
    rho: float | None
    unit: str
    neighbours: str
    accountant: str
