"""Measures of privacy loss: epsilon of pure DP, rho of zero-concentrated DP, mu^2/2 of Gaussian DP.

This is everything that differs between the measures: the cost of a loss, the conversion between a budget and
(epsilon, delta), and the noise scale near which a price is met. Rho and mu^2/2 are nearly the same number for
Gaussian noise, but epsilon is lower for mu^2/2; for a choice and for Laplace noise mu^2/2 is 1.57 times rho.

Tails of the normal distribution are decimals of 120 digits. Doubles won't do: the differences taken of these
tails lose as many digits as epsilon is small, and a budget must be rounded in a given direction.

Invariant: costs and epsilons are rounded up, budgets down, and the bounds of Gaussian DP hold for the
discrete noise that is drawn, not only for continuous Gaussian noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import exp, inf, log, log1p, nextafter, sqrt
from typing import Protocol

from dpsynth.accounting.amount import PI, decimal_of, float_down, float_up

_EXACT = Context(prec=60)

_SLACK = Decimal("1e-45")


def penalty(alpha: Decimal, delta: Fraction) -> Decimal:
    """The part of epsilon(alpha) that does not depend on rho, not below its true value."""
    with localcontext(_EXACT):
        above = alpha - 1
        return (alpha * (above / alpha).ln() - above.ln() - decimal_of(delta).ln()) / above + _SLACK


def _best_alpha(objective: Callable[[float], float]) -> float:
    """The alpha that minimises an objective unimodal in log(alpha - 1), by golden section."""
    ratio = (5**0.5 - 1) / 2
    low, high = -25.0, 40.0
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = objective(1 + exp(a)), objective(1 + exp(b))
    for _ in range(120):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = objective(1 + exp(a))
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = objective(1 + exp(b))
    return 1 + exp((low + high) / 2)


def _polished(alpha: Decimal, rho: Fraction, delta: Fraction) -> Decimal:
    """The best alpha, from one that is good to the digits of a float.

    At the best alpha the derivative of alpha rho + penalty(alpha) is 0, and so is (alpha - 1)^2 rho +
    ln(alpha) + ln(delta). Each of Newton's steps doubles the digits, and an error in alpha counts
    squared in epsilon.
    """
    with localcontext(_EXACT):
        spend, log_delta = decimal_of(rho), decimal_of(delta).ln()
        for _ in range(3):
            above = alpha - 1
            step = (above * above * spend + alpha.ln() + log_delta) / (2 * above * spend + 1 / alpha)
            if abs(step) >= above / 2:
                break
            alpha -= step
    return alpha


def _float_penalty(alpha: float, log_delta: float) -> float:
    return (alpha * log1p(-1 / alpha) - log(alpha - 1) - log_delta) / (alpha - 1)


def zcdp_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The epsilon, rounded up, at which rho-zCDP implies (epsilon, delta)-DP.

    epsilon = inf over alpha > 1 of alpha rho + [alpha ln(1 - 1/alpha) - ln(alpha - 1) - ln delta]/(alpha - 1)
    (Canonne, Kamath and Steinke 2020, proposition 12). Any alpha gives a valid bound, and the bound at the
    alpha found is evaluated with 50 digits.

    >>> f"{float(zcdp_epsilon(Fraction(5, 100), Fraction(1, 10**6))):.4f}"
    '1.4716'
    """
    if rho == 0:
        return Fraction(0)
    log_delta, spend = log(delta), float(rho)
    near = Decimal(_best_alpha(lambda a: a * spend + _float_penalty(a, log_delta)))
    alpha = _polished(near, rho, delta)
    with localcontext(_EXACT):
        return max(Fraction(0), Fraction(alpha * decimal_of(rho) + penalty(alpha, delta) + _SLACK))


def best_order(epsilon: Fraction, delta: Fraction) -> float:
    """The order alpha at which (epsilon, delta) allows the largest rho, to the nearest."""
    log_delta, target = log(delta), float(epsilon)
    return _best_alpha(lambda a: (_float_penalty(a, log_delta) - target) / a)


def zcdp_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest rho, rounded down to a float, that still implies (epsilon, delta)-DP.

    rho = sup over alpha > 1 of (epsilon - penalty(alpha))/alpha, the inverse of ``zcdp_epsilon``. Costs
    within a budget never come to more than the epsilon asked for: epsilon is taken at the best alpha, to more
    digits than a budget is rounded by.
    """
    alpha = Decimal(best_order(epsilon, delta))
    with localcontext(_EXACT):
        rho = (decimal_of(epsilon) - penalty(alpha, delta)) / alpha - _SLACK
    budget = Fraction(float_down(Fraction(rho)))
    while budget > 0 and zcdp_epsilon(budget, delta) > epsilon:
        budget = Fraction(nextafter(float(budget), 0.0))
    return max(budget, Fraction(0))


EXACT = Context(prec=120, Emin=MIN_EMIN, Emax=MAX_EMAX)
"""Arithmetic of 120 digits, whose exponents don't run out."""

TAIL_ERROR = Decimal("1e-80")

_PI = Decimal(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706"
    "79821480865132823066470938446"
)

_FAR = 10

_DEPTH = 200


def density(x: Decimal) -> Decimal:
    """phi(x), the density of the standard normal distribution."""
    with localcontext(EXACT):
        return (-x * x / 2).exp() / (2 * _PI).sqrt()


def mills_ratio(x: Decimal) -> Decimal:
    """(1 - Phi(x))/phi(x) for x >= 0, within ``TAIL_ERROR`` of the truth, relatively.

    Below 10: sqrt(pi/2) e^(x^2/2) less the series of x^(2k+1)/(2k+1)!!. All its terms are
    positive, and once they halve from one to the next, the remainder is below the last
    term. The difference loses 24 digits at most.

    From 10 on: Laplace's continued fraction 1/(x + 1/(x + 2/(x + ...))), whose neighbouring
    convergents enclose the ratio. They differ by N!/(B_N B_(N+1)), where the denominators B
    are polynomials of x with positive coefficients, so the depth that is enough at 10 is
    enough beyond.

    Raises:
        ValueError: x is negative.
    """
    if x < 0:
        raise ValueError("x must be at least 0")
    with localcontext(EXACT):
        return _near(x) if x < _FAR else _far(x)


def _near(x: Decimal) -> Decimal:
    square = x * x
    term, total, odd = x, x, 1
    while 2 * square >= odd or term > total.scaleb(-115):
        odd += 2
        term = term * square / odd
        total += term
    return (_PI / 2).sqrt() * (square / 2).exp() - total


def _far(x: Decimal) -> Decimal:
    below = x
    for k in range(_DEPTH, 0, -1):
        below = x + k / below
    return 1 / below


LEAST_HIDDEN = Fraction(6, 10)

HIDDEN_SHARE = Fraction(1, 1000)
"""s^2 of the proof is LEAST_HIDDEN + HIDDEN_SHARE sigma^2."""

DELTA_GROWTH = Decimal("0.0003")
"""Delta grows by a factor of at most e to the power of this times mu^2, as noise is discrete."""

_MARGIN = Decimal("1e-70")

_NEAR_ENOUGH = Decimal("1e-30")


def continuous_variance(sigma: Fraction) -> Fraction:
    """tau^2, the variance of the continuous noise that discrete noise counts as; may be below 0.

    The discrete Gaussian of parameter sigma counts as continuous noise of variance tau^2 = sigma^2 - s^2, at
    the price of a factor on delta. Let g_s(t) = exp(-t^2/(2 s^2)) and

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

    Private choices and Laplace noise count by a mu of their own (``events.ExponentialEvent``), and their
    outcomes have the same laws beside either noise. So in step 3 they multiply both likelihood ratios alike,
    and need no factor.

    At epsilon 10 that factor is below 1.001; at epsilon 1000 below 2.
    """
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
        half = decimal_of(half_mu_squared).next_plus()
        mu = (2 * half).sqrt().next_plus()
        allowed = decimal_of(delta).ln() - DELTA_GROWTH * mu * mu
        allowed -= _MARGIN * abs(allowed)
        if _delta(-mu / 2, mu).ln() <= allowed:
            return Fraction(0)
        # Phi(-x) <= exp(-x^2/2), so the root is not above this x.
        x = (-2 * allowed).sqrt().next_plus()
        found = _delta(x, mu)
        while True:
            lower = x + (found.ln() - allowed) * found / (mu * density(x) * mills_ratio(x + mu))
            if x - lower <= _NEAR_ENOUGH * abs(x) or (below := _delta(lower, mu)).ln() > allowed:
                break
            x, found = lower, below
        epsilon = mu * x + mu * mu / 2
        return max(Fraction(0), Fraction(epsilon + _MARGIN * (abs(mu * x) + mu * mu)))


@lru_cache(maxsize=1024)
def gdp_budget(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu^2/2, rounded down to a float, that still implies (epsilon, delta)-DP.

    The inverse of ``gdp_epsilon``. The derivative of delta by mu is phi(x), whose logarithm is
    concave in mu, and so is that of delta: Newton's method goes up to the root from below.
    """
    with localcontext(EXACT):
        asked, allowed = decimal_of(epsilon), decimal_of(delta).ln()
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


def _delta(x: Decimal, mu: Decimal) -> Decimal:
    """Phi(-x) - e^epsilon Phi(-x - mu), not below its true value; x is at least -mu/2.

    e^epsilon phi(x + mu) is phi(x), so only ratios of tails to densities are needed.
    """
    beyond = density(x) * mills_ratio(x + mu)
    near = density(x) * mills_ratio(abs(x))
    tail = near if x >= 0 else 1 - near
    return tail - beyond + 4 * TAIL_ERROR * tail


_ROUNDING = 1 + Fraction(1, 1 << 40)
"""Costs of events are rounded up to doubles one by one; their sum may pass a bound by this factor."""


class Loss(Protocol):
    """A privacy loss as each measure counts it, of one answer or of a release."""

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon, or None where there is none."""

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated rho."""

    @property
    def half_mu_squared(self) -> Fraction | None:
        """mu^2/2 of Gaussian DP, or None where there is none."""


class Measure(ABC):
    """A way to add up privacy losses.

    Attributes:
        name: as stored in journals.
        accountant: the accountant that adds up this measure, as stored in manifests; of a privacy filter of
            ledgers, as stored there too.
        title: its name for people, with the figure that is added up.
        noises: names of the noise of counts that releases under this measure may have.
        needs_delta: true if its totals imply an epsilon only at a delta above 0; the deltas of events
            (``events``) are then set aside from that delta. Without it they are all of delta.
        error_power: the p of noise whose error falls as B^-p with the cost B.
        uncounted: the reason why some noise has no cost under it.
    """

    name: str
    accountant: str
    title: str
    composition: str
    symbol: str
    noises: tuple[str, ...]
    needs_delta: bool
    error_power: float
    uncounted: str

    @abstractmethod
    def exact_cost(self, loss: Loss) -> Fraction | None:
        """The cost of a loss, not rounded; None where it is not bounded under this measure."""

    def cost(self, loss: Loss) -> Fraction:
        """The cost of a loss, rounded up to a double; ValueError where it is not bounded."""
        exact = self.exact_cost(loss)
        if exact is None:
            raise ValueError(self.uncounted)
        return Fraction(float_up(exact))

    @abstractmethod
    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        """The largest total, rounded down, that implies (epsilon, delta); ValueError without a delta."""

    @abstractmethod
    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        """The epsilon, rounded up, that a total of costs implies; ValueError where delta is missing."""

    @abstractmethod
    def mu(self, total: Fraction) -> float | None:
        """The mu of Gaussian DP of a total, rounded up; None under other measures."""

    def rho(self, total: Fraction) -> Fraction:
        """A bound on the rho of answers whose costs come to a total; the total, if nothing else is said."""
        return total

    @abstractmethod
    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction | None]:
        """Bounds on the rho and mu^2/2 of a release that spends a budget.

        Args:
            mu_by_rho: true if mu^2/2 of each of its answers is at most pi/2 times rho (``Noise.mu_by_rho``).
        """

    @abstractmethod
    def laplace_epsilon(self, price: float) -> float:
        """The epsilon of Laplace noise at a price, approximately."""

    @abstractmethod
    def exponential_epsilon(self, price: float) -> float:
        """The epsilon of an exponential mechanism at a price, approximately."""

    @abstractmethod
    def gaussian_sigma(self, variance: float) -> float:
        """The sigma, approximately, that counts as noise of a variance; ValueError if none does."""


@dataclass(frozen=True)
class PureEpsilon(Measure):
    """Epsilon of pure DP.

    An epsilon-DP answer is epsilon^2/2-zCDP (Bun and Steinke 2016, proposition 1.4), and has a mu^2/2 of
    at most pi epsilon^2/4 (``events.LaplaceEvent``).
    """

    name = "pure"
    accountant = "sequential"
    title = "sequential (epsilon)"
    composition = "sequential composition"
    symbol = "\N{GREEK SMALL LETTER EPSILON}"
    noises = ("laplace",)
    needs_delta = False
    error_power = 1.0
    uncounted = "Gaussian noise has no cost under pure epsilon-DP"

    def exact_cost(self, loss: Loss) -> Fraction | None:
        return loss.epsilon

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        return epsilon

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        return total

    def mu(self, total: Fraction) -> None:
        return

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction]:
        rho = budget**2 / 2 * _ROUNDING
        return rho, PI / 2 * rho * _ROUNDING

    def laplace_epsilon(self, price: float) -> float:
        return price

    def exponential_epsilon(self, price: float) -> float:
        return price

    def gaussian_sigma(self, variance: float) -> float:
        raise ValueError(self.uncounted)


@dataclass(frozen=True)
class ZeroConcentrated(Measure):
    """Rho of zero-concentrated DP.

    mu^2/2 of Laplace noise and of choices is at most pi/2 times rho; Gaussian noise of a small sigma has no
    such bound.
    """

    name = "zcdp"
    accountant = "zcdp"
    title = "zCDP (rho)"
    composition = "zCDP"
    symbol = "\N{GREEK SMALL LETTER RHO}"
    noises = ("gaussian", "laplace")
    needs_delta = True
    error_power = 0.5
    uncounted = "every answer has a rho"

    def exact_cost(self, loss: Loss) -> Fraction:
        return loss.rho

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        return zcdp_budget(epsilon, needed(delta))

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        return zcdp_epsilon(total, needed(delta))

    def mu(self, total: Fraction) -> None:
        return

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction | None]:
        return budget, PI / 2 * budget * _ROUNDING if mu_by_rho else None

    def laplace_epsilon(self, price: float) -> float:
        return sqrt(2 * price)

    def exponential_epsilon(self, price: float) -> float:
        return sqrt(8 * price)

    def gaussian_sigma(self, variance: float) -> float:
        return sqrt(variance)


@dataclass(frozen=True)
class GaussianDP(Measure):
    """mu^2/2 of Gaussian DP; the rho of every answer is at most that.

    Answers of L2 sensitivity Delta with noise of variance tau^2 have mu^2 = Delta^2/tau^2. The mu^2 of all
    answers add up, also when each question and its noise are chosen from earlier answers, if the total they
    may reach is fixed beforehand (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023). A total of
    mu^2 gives exactly delta(epsilon) = Phi(-x) - e^epsilon Phi(-x - mu), x = epsilon/mu - mu/2 (Balle and
    Wang 2018, theorem 8; Dong, Roth and Su 2022, corollary 2.13). Discrete noise: ``continuous_variance``.
    """

    name = "gdp"
    accountant = "gdp"
    title = "Gaussian DP (mu^2/2)"
    composition = "Gaussian DP"
    symbol = "μ²/2"
    noises = ("gaussian",)
    needs_delta = True
    error_power = 0.5
    uncounted = "Gaussian DP counts Gaussian noise of a sigma of at least 0.78 only"

    def exact_cost(self, loss: Loss) -> Fraction | None:
        return loss.half_mu_squared

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        return gdp_budget(epsilon, needed(delta))

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        return gdp_epsilon(total, needed(delta))

    def mu(self, total: Fraction) -> float:
        root = sqrt(2 * total)
        while Fraction(root) ** 2 < 2 * total:
            root = nextafter(root, inf)
        return root

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction]:
        return budget * _ROUNDING, budget

    def laplace_epsilon(self, price: float) -> float:
        return sqrt(float(4 / PI) * price)

    def exponential_epsilon(self, price: float) -> float:
        return sqrt(float(16 / PI) * price)

    def gaussian_sigma(self, variance: float) -> float:
        return least_sigma(variance)


PURE, GDP, ZCDP = PureEpsilon(), GaussianDP(), ZeroConcentrated()

MEASURES: tuple[Measure, ...] = (PURE, GDP, ZCDP)
"""The measures by which a release may count, and whose sums a privacy filter of a ledger bounds."""

_NAMED: Mapping[str, Measure] = {name: m for m in MEASURES for name in (m.name, m.accountant)}


def measure_named(name: str) -> Measure:
    """The measure of a journal, or of an accountant in a config, a manifest or a ledger.

    Raises:
        KeyError: there is none.

    >>> measure_named("sequential").name
    'pure'
    """
    return _NAMED[name]


def needed(delta: Fraction | None) -> Fraction:
    """A delta that is there; ValueError where it is not."""
    if delta is None:
        raise ValueError("accounting other than pure needs a delta")
    return delta
