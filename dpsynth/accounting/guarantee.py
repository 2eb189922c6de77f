"""The guarantee that is published, as one value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of a release: (epsilon, delta)-DP for a unit under a neighbour relation.

    Attributes:
        epsilon: rounded up.
        delta: 0.0 under pure epsilon-DP, but for the approximate delta.
        rho: zero-concentrated rho, rounded up; None under pure epsilon-DP. Under accountant
            "gdp" it is mu^2/2, which holds as well, but epsilon is that of mu.
        unit: the privacy unit in words.
        neighbours: "add_remove" or "replace_one".
        accountant: "sequential", "zcdp" or "gdp".
        mu: mu of Gaussian DP, rounded up; None under other accountants. Discrete noise keeps to it
            but for a factor of exp(0.0003 mu^2) on delta, which epsilon includes.
        approximate_delta: the part of delta that was set aside for partition selection, rounded up: rho, mu
            and pure epsilon hold but for this probability.
        sample_rate: the rate of the secret sample that epsilon and delta are amplified by; None without one.
            Rho and mu are then None.
    """

    epsilon: float
    delta: float
    rho: float | None
    unit: str
    neighbours: str
    accountant: str
    mu: float | None = None
    approximate_delta: float = 0.0
    sample_rate: float | None = None
