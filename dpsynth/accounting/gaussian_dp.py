"""Gaussian differential privacy of a release: from mu to (epsilon, delta), and back.

Invariant: epsilons are rounded up and budgets down, and each bound holds for the discrete noise that is
drawn, not only for continuous Gaussian noise.

Continuous noise. Answers of L2 sensitivity Delta with noise of variance tau^2 have
mu^2 = Delta^2/tau^2. The mu^2 of all answers add up, also when each question and its noise
are chosen from earlier answers, if the total they may reach is fixed beforehand (Smith and
Thakurta 2022; Koskela, Tobaben and Honkela 2023). A total of mu^2 gives exactly
delta(epsilon) = Phi(-x) - e^epsilon Phi(-x - mu), x = epsilon/mu - mu/2 (Balle and Wang
2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13).

Discrete noise. The discrete Gaussian of parameter sigma counts as continuous noise of variance
tau^2 = sigma^2 - s^2, at the price of a factor on delta. Let g_s(t) = exp(-t^2/(2 s^2)) and

    Theta(x) = sum over integers z of g_s(z - x)/(sqrt(2 pi) s)
             = 1 + 2 sum over k >= 1 of exp(-2 pi^2 s^2 k^2) cos(2 pi k x)

by Poisson's summation formula, so Theta <= 1 + eta with eta = 2 sum exp(-2 pi^2 s^2 k^2).

1. For an integer m let q_m(x) = N(x; m, tau^2) Theta(x)/C. C is the mean of Theta under
   N(m, tau^2): as Theta has period 1 it doesn't depend on m, and it is above 1.
2. Draw x from q_m, then an integer z with probability g_s(z - x)/(sqrt(2 pi) s Theta(x)). As
   Theta cancels, z has the probability N(z; m, sigma^2)/C: exactly the discrete Gaussian about
   m. So the answers are post-processing of such x.
3. Fix two neighbours. In cells where their counts are equal the answers have equal laws, given
   the past. In cells that differ the likelihood ratio q_m/q_m' is that of N(m, tau^2) and
   N(m', tau^2), as Theta/C is in both, and the density is at most 1 + eta times the normal
   one. So for the whole transcript of x and z, likelihood ratios are those of continuous noise
   under the same adaptive questions, and delta(epsilon), the mean of (1 - e^epsilon/ratio)_+,
   grows by a factor of at most the product of (1 + eta) over the cells that differ.
4. Counts are integers, so an answer of squared sensitivity Delta^2 has at most Delta^2 cells
   that differ. With s^2 = 0.6 + sigma^2/1000, sigma^2 eta <= 0.0003 for every sigma (it is
   largest at sigma^2 = 500/pi^2, and 0.000268 there). So Delta^2 eta <= 0.0003 Delta^2/tau^2, and
   the product is at most exp(0.0003 mu^2), however many cells and answers there are.

Private choices and Laplace noise count by a mu of their own (``events.ExponentialEvent``), and their outcomes
have the same laws beside either noise. So in step 3 they multiply both likelihood ratios alike, and need no
factor.

At epsilon 10 that factor is below 1.001; at epsilon 1000 below 2.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import nextafter, sqrt

from dpsynth.accounting.normal_tail import EXACT, TAIL_ERROR, density, mills_ratio
from dpsynth.accounting.rounding import float_down

LEAST_HIDDEN = Fraction(6, 10)
HIDDEN_SHARE = Fraction(1, 1000)
"""s^2 of the proof is LEAST_HIDDEN + HIDDEN_SHARE sigma^2."""

DELTA_GROWTH = Decimal("0.0003")
"""Delta grows by a factor of at most e to the power of this times mu^2, as noise is discrete."""

_MARGIN = Decimal("1e-70")
_NEAR_ENOUGH = Decimal("1e-30")


def continuous_variance(sigma: Fraction) -> Fraction:
    """tau^2, the variance of the continuous noise that discrete noise counts as; may be below 0."""
    return (1 - HIDDEN_SHARE) * sigma**2 - LEAST_HIDDEN


def least_sigma(variance: float) -> float:
    """The sigma of the discrete noise that counts as continuous noise of a variance, to nearest."""
    return sqrt((variance + float(LEAST_HIDDEN)) / float(1 - HIDDEN_SHARE))


@lru_cache(maxsize=1024)
def gdp_epsilon(half_mu_squared: Fraction, delta: Fraction) -> Fraction:
    """The epsilon, rounded up, of discrete noise and choices whose mu^2/2 add up to a total.

    The least epsilon >= 0 with [Phi(-x) - e^epsilon Phi(-x - mu)] exp(0.0003 mu^2) <= delta,
    where epsilon = mu x + mu^2/2. The logarithm of the left side is concave in epsilon, being
    that of the mean of (1 - e^(epsilon - L))_+ over a normal loss L. So Newton's method comes
    down to the root from above, and wherever it stops the bound is valid; that is checked.

    >>> f"{float(gdp_epsilon(Fraction(5, 100), Fraction(1, 10**6))):.4f}"
    '1.3676'
    """
    if half_mu_squared == 0:
        return Fraction(0)
    with localcontext(EXACT):
        half = _decimal(half_mu_squared).next_plus()
        mu = (2 * half).sqrt().next_plus()
        allowed = _log(delta) - DELTA_GROWTH * mu * mu
        allowed -= _MARGIN * abs(allowed)
        if _delta(-mu / 2, mu).ln() <= allowed:
            return Fraction(0)
        # Phi(-x) <= exp(-x^2/2), so the root is not above this x.
        x = (-2 * allowed).sqrt().next_plus()
        while True:
            found = _delta(x, mu)
            lower = x + (found.ln() - allowed) * found / (mu * density(x) * mills_ratio(x + mu))
            if x - lower <= _NEAR_ENOUGH * abs(x) or _delta(lower, mu).ln() > allowed:
                break
            x = lower
        epsilon = mu * x + mu * mu / 2
        return max(Fraction(0), Fraction(epsilon + _MARGIN * (abs(mu * x) + mu * mu)))


@lru_cache(maxsize=1024)
def gdp_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu^2/2, rounded down to a float, that still implies (epsilon, delta)-DP.

    The inverse of ``gdp_epsilon``. The derivative of delta by mu is phi(x), whose logarithm is
    concave in mu, and so is that of delta: Newton's method goes up to the root from below.
    """
    with localcontext(EXACT):
        asked, allowed = _decimal(epsilon), _log(delta)
        far = (-2 * allowed).sqrt()
        mu, step = (far * far + 2 * asked).sqrt() - far, Decimal(1)
        while abs(step) > _NEAR_ENOUGH * mu:
            x = asked / mu - mu / 2
            found = _delta(x, mu)
            excess = found.ln() + DELTA_GROWTH * mu * mu - allowed
            step = -excess / (density(x) / found + 2 * DELTA_GROWTH * mu)
            mu += step
        budget = Fraction(float_down(Fraction(mu * mu / 2)))
    while budget > 0 and gdp_epsilon(budget, delta) > epsilon:
        budget = Fraction(nextafter(float(budget), 0.0))
    return budget


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log(delta: Fraction) -> Decimal:
    return _decimal(delta).ln()


def _delta(x: Decimal, mu: Decimal) -> Decimal:
    """Phi(-x) - e^epsilon Phi(-x - mu), not below its true value; x is at least -mu/2.

    e^epsilon phi(x + mu) is phi(x), so only ratios of tails to densities are needed.
    """
    beyond = density(x) * mills_ratio(x + mu)
    near = density(x) * mills_ratio(abs(x))
    tail = near if x >= 0 else 1 - near
    return tail - beyond + 4 * TAIL_ERROR * tail
