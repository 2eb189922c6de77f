"""Events of partition selection: the values of an open column that enough units hold.

The values are not public beforehand, so a value that a single unit holds could give that unit away, and
no epsilon bounds that. Invariant: the values that only one of two neighbours has are named with a probability
of at most ``delta``, all values of a unit together, and everything else costs the event's epsilon, rho and
mu^2/2.

Everything computed from the named values is post-processing. A unit counts once for a value, so it moves the
numbers of at most ``partitions`` values, each by one.

Delta beside rho and mu. A mechanism is delta-approximately rho-zCDP or mu-Gaussian-DP if on either
neighbour it does with probability delta anything at all, and otherwise something that is rho-zCDP or
mu-Gaussian-DP (Bun and Steinke 2016, definition 8.1). Over a sequence, also an adaptive one within fixed
totals, the deltas add up, and so does the rest. For let f be the product of all 1 - delta_i of a transcript.
That of a set S without any failure has the mass of f on S under the transcripts that never fail, where f
lies between 0 and 1; these obey (epsilon, delta')-DP by the totals of rho or mu^2. The failures have mass at
most the sum of the deltas. So the sequence is (epsilon, delta' + sum of delta_i)-DP.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from dpsynth.accounting.amount import PI, float_up
from dpsynth.accounting.measures import EXACT, TAIL_ERROR, continuous_variance, density, mills_ratio

_FAR = 40
"""Deviations beyond which the normal tail is below every double."""


@dataclass(frozen=True)
class SelectionEvent:
    """Optimal partition selection: the most likely naming that costs (epsilon0, delta0) for each value.

    Sensitivity: a unit moves the numbers of units of at most ``partitions`` values, each by one.
    Distribution: a value of n units is named with the probability of Desfontaines, Voss and Gipson (2022),
    theorem 1, which is (epsilon0, delta0)-DP for a step of one; values are named independently.
    Cost: partitions times (epsilon0, delta0). An (epsilon0, delta0)-DP answer is post-processing of a
    randomised response that is epsilon0-DP, but with probability delta0 reveals its input (Kairouz, Oh and
    Viswanath 2015, theorem 3.1), so it is delta0-approximately epsilon0^2/2-zCDP, and delta0-approximately
    mu-Gaussian-DP with mu = epsilon0 sqrt(2 pi)/2, as ``events.LaplaceEvent``.
    """

    epsilon0: float
    delta0: float
    partitions: int

    @property
    def scale(self) -> float:
        """1/epsilon0."""
        return 1 / self.epsilon0

    @property
    def epsilon(self) -> Fraction:
        """Partitions times epsilon0."""
        return self.partitions * Fraction(self.epsilon0)

    @property
    def delta(self) -> Fraction:
        """Partitions times delta0."""
        return self.partitions * Fraction(self.delta0)

    @property
    def rho(self) -> Fraction:
        """Partitions times epsilon0^2/2."""
        return self.partitions * Fraction(self.epsilon0) ** 2 / 2

    @property
    def half_mu_squared(self) -> Fraction:
        """Partitions times pi epsilon0^2/4, by a bound on pi from above."""
        return PI * self.partitions * Fraction(self.epsilon0) ** 2 / 4


@dataclass(frozen=True)
class ThresholdEvent:
    """Discrete Gaussian noise on each value's number of units; those that reach a threshold are named.

    Sensitivity: a unit moves the numbers of at most ``partitions`` values by one, so l2_squared =
    partitions. Distribution: independent noise on each value that some unit holds; a value of n units is
    named if n + noise >= threshold.
    Cost: that of Gaussian noise for the values that both neighbours have. A value that only one has
    is held by one unit there, so it is named with probability P[1 + noise >= threshold]. If none of these
    (at most ``partitions``) is, the answers are post-processing of the noisy numbers of all other values
    (Korolova et al. 2009; Gopi et al. 2020). So delta = partitions P[1 + noise >= threshold], and the rest
    costs as ``events.GaussianEvent``, also under Gaussian DP, as at most ``partitions`` numbers differ.
    """

    sigma: float
    threshold: int
    partitions: int

    @property
    def scale(self) -> float:
        """Sigma."""
        return self.sigma

    @property
    def epsilon(self) -> None:
        """None: Gaussian noise has no pure epsilon."""
        return None

    @property
    def delta(self) -> Fraction:
        """Partitions times a bound on P[1 + noise >= threshold], rounded up to a double."""
        return Fraction(float_up(self.partitions * tail_above(self.sigma, self.threshold - 1)))

    @property
    def rho(self) -> Fraction:
        """partitions/(2 sigma^2)."""
        return Fraction(self.partitions) / (2 * Fraction(self.sigma) ** 2)

    @property
    def half_mu_squared(self) -> Fraction | None:
        """partitions/(2 (0.999 sigma^2 - 0.6)); None where sigma is too small for that."""
        variance = continuous_variance(Fraction(self.sigma))
        return Fraction(self.partitions) / (2 * variance) if variance > 0 else None


def tail_above(sigma: float, least: int) -> Fraction:
    """An upper bound on P[N >= least] of discrete Gaussian noise: 1 - Phi((least - 1/2)/sigma).

    P[N = k] is g(k) over the sum of g at all integers, g(t) = exp(-t^2/(2 sigma^2)). That sum is at least
    the integral of g, sqrt(2 pi) sigma, by Poisson's summation formula, whose other terms are all positive.
    And g(k) is at most the integral of g from k - 1/2 to k + 1/2 where g is convex, from sigma on. Where
    ``least`` is below sigma + 1/2 the bound is 1.
    """
    start = (Fraction(least) - Fraction(1, 2)) / Fraction(sigma)
    if start < 1:
        return Fraction(1)
    with localcontext(EXACT):
        # No further than that, so that a rounding of x counts for less than TAIL_ERROR.
        x = min(Decimal(start.numerator) / Decimal(start.denominator), Decimal(_FAR))
        return Fraction(density(x) * mills_ratio(x) * (1 + 4 * TAIL_ERROR))
