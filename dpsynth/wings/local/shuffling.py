"""Privacy amplification by shuffling: the central guarantee of local reports whose order is lost.

If a trusted shuffler removes all that says whose a report is, n reports that are each epsilon_0-DP locally
are (epsilon, delta)-DP centrally, under exchange of one respondent's data, with an epsilon that falls like
1/sqrt(n) (Feldman, McMillan and Talwar 2021, "Hiding Among the Clones").

Two bounds, both valid: the closed form of their theorem 3.1, and the exact divergence of the two
distributions that their reduction ends in, of which the closed form is an upper bound:

    C ~ Bin(n - 1, e^-epsilon_0), A ~ Bin(C, 1/2), D ~ Bernoulli(e^epsilon_0/(e^epsilon_0 + 1)),
    (A + D, C - A + 1 - D) against (A + 1 - D, C - A + D).

Invariant: rounded up. What the numerical bound leaves out is added to delta.
"""

from __future__ import annotations

from math import exp, inf, log, log1p, sqrt

import numpy as np

_SLACK = 1e-9
"""Relative excess that covers the rounding of floats."""
_HALVINGS = 60


def closed_form(epsilon: float, respondents: int, delta: float) -> float:
    """The central epsilon of shuffled reports, by theorem 3.1; infinite outside of its condition.

    ln(1 + (e^e0 - 1)/(e^e0 + 1) (8 sqrt(e^e0 ln(4/delta)/n) + 8 e^e0/n)) for e0 <= ln(n/(16 ln(2/delta))).

    Args:
        epsilon: e0, the local privacy loss of a report.
        respondents: n.
        delta: the central delta, between 0 and 1.
    """
    n, odds = respondents, exp(epsilon)
    if n < 1 or epsilon > log(max(n / (16 * log(2 / delta)), 1e-300)):
        return inf
    blanket = 8 * sqrt(odds * log(4 / delta) / n) + 8 * odds / n
    return log1p((odds - 1) / (odds + 1) * blanket) * (1 + _SLACK)


def delta_of(epsilon: float, local: float, respondents: int) -> float:
    """The delta of shuffled reports at a central epsilon, by the reduction to clones, rounded up.

    Given C = c, both distributions are mixtures of Bin(c, 1/2) and of the same moved by one, and their ratio
    grows with A + D: so the divergence is that of a tail, whose mass is a binomial's.

    Args:
        epsilon: the central epsilon, at least 0.
        local: the local privacy loss of a report.
        respondents: n, at least 1.
    """
    from scipy.stats import binom

    clone, heads = exp(-local), 1 / (1 + exp(-local))
    low, high = (int(c) for c in binom.ppf([1e-18, 1 - 1e-16], respondents - 1, clone))
    clones = np.arange(max(low - 1, 0), min(high + 1, respondents - 1) + 1)
    masses = binom.pmf(clones, respondents - 1, clone)
    # P(a) - e^epsilon Q(a) with b(a) = Bin(c, 1/2): above b(a - 1), below b(a), at a of 0 .. c + 1.
    above, below = heads - exp(epsilon) * (1 - heads), (1 - heads) - exp(epsilon) * heads
    if above <= 0:
        return 0.0
    # b(a - 1)/b(a) = a/(c - a + 1): the difference is positive from a threshold on.
    ratio = -below / above
    first = np.floor(ratio * (clones + 1) / (1 + ratio)) + 1
    tails = above * binom.sf(first - 2, clones, 0.5) + below * binom.sf(first - 1, clones, 0.5)
    inside = float((masses * np.maximum(tails, 0.0)).sum())
    return min(inside * (1 + _SLACK) + max(1.0 - float(masses.sum()), 0.0) + 1e-16, 1.0)


def central_epsilon(local: float, respondents: int, delta: float) -> float:
    """The central epsilon of shuffled reports: the least of the valid bounds, never above the local one.

    Args:
        local: the local privacy loss of a report.
        respondents: n.
        delta: the central delta, between 0 and 1.
    """
    if respondents < 1:
        return local
    low, high = 0.0, local
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_of(middle, local, respondents) <= delta else (middle, high)
    return min(high, closed_form(local, respondents, delta), local)
