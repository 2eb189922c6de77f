"""Privacy events: the facts of one answer that an accountant needs, and nothing else.

One event is journalled for each answer, so events are evidence of the charges. The epsilon, rho and mu^2/2
of an event are exact rationals of the parameters that the mechanism really used. Its cost is one of them,
rounded up to a double: sums of costs are then exact and stay short, where sums of the rationals would double
their digits with every event.

Partition selection finds the values of an open column that enough units hold. These are not public
beforehand, so a value that a single unit holds could give that unit away, and no epsilon bounds that. So its
events have a delta of their own as well: the values that only one of two neighbours has are named with a
probability of at most delta, all values of a unit together. A unit counts once for a value, so it moves the
numbers of at most ``partitions`` values, each by one.

Deltas add up beside rho and mu. A mechanism is delta-approximately rho-zCDP or mu-Gaussian-DP if on either
neighbour it does with probability delta anything at all, and otherwise something that is rho-zCDP or
mu-Gaussian-DP (Bun and Steinke 2016, definition 8.1). Over a sequence, also an adaptive one within fixed
totals, the deltas add up, and so does the rest. For let f be the product of all 1 - delta_i of a transcript.
That of a set S without any failure has the mass of f on S under the transcripts that never fail, where f
lies between 0 and 1; these obey (epsilon, delta')-DP by the totals of rho or mu^2. The failures have mass at
most the sum of the deltas. So the sequence is (epsilon, delta' + sum of delta_i)-DP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Protocol

from dpsynth.accounting.amount import PI, float_up
from dpsynth.accounting.measures import EXACT, TAIL_ERROR, Loss, continuous_variance, density, mills_ratio


@dataclass(frozen=True)
class Guarantee:
    """The guarantee of a release: (epsilon, delta)-DP for a unit under a neighbour relation.

    Attributes:
        epsilon: rounded up.
        delta: 0.0 under pure epsilon-DP, but for the approximate delta.
        rho: zero-concentrated rho, rounded up; None under pure epsilon-DP. Under accountant
            "gdp" it is mu^2/2, which holds as well, but epsilon is that of mu.
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


class Event(Loss, Protocol):
    """The privacy cost of one answer."""

    @property
    def delta(self) -> Fraction:
        """Probability of a loss above epsilon, rho and mu^2/2; it adds up beside them."""
        return Fraction(0)


@dataclass(frozen=True)
class LaplaceEvent(Event):
    """Discrete Laplace noise P(x) ~ exp(-|x|/scale) on integers of L1 sensitivity ``l1``.

    Costs epsilon = l1/scale (Canonne, Kamath and Steinke 2020), and hence
    rho = epsilon^2/2 (Bun and Steinke 2016, proposition 1.4). An epsilon-DP answer is
    2 epsilon-bounded-range, and hence has mu = epsilon sqrt(2 pi)/2 (``ExponentialEvent``).
    """

    scale: float
    l1: int

    @property
    def epsilon(self) -> Fraction:
        return Fraction(self.l1) / Fraction(self.scale)

    @property
    def rho(self) -> Fraction:
        return self.epsilon**2 / 2

    @property
    def half_mu_squared(self) -> Fraction:
        """pi epsilon^2/4, by a bound on pi from above."""
        return PI * self.epsilon**2 / 4


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Discrete Gaussian noise on integers whose L2 sensitivity squared is ``l2_squared``.

    Costs rho = l2_squared/(2 sigma^2) in any dimension (Canonne, Kamath and Steinke 2020,
    theorem 14); no pure epsilon. Under Gaussian DP it counts as continuous noise of variance
    0.999 sigma^2 - 0.6 (proof in ``dpsynth.accounting.measures``).
    """

    sigma: float
    l2_squared: int

    @property
    def scale(self) -> float:
        return self.sigma

    @property
    def epsilon(self) -> None:
        return None

    @property
    def rho(self) -> Fraction:
        return Fraction(self.l2_squared) / (2 * Fraction(self.sigma) ** 2)

    @cached_property
    def half_mu_squared(self) -> Fraction | None:
        """l2_squared/(2 (0.999 sigma^2 - 0.6)); None where sigma is too small for that."""
        variance = continuous_variance(Fraction(self.sigma))
        return Fraction(self.l2_squared) / (2 * variance) if variance > 0 else None


@dataclass(frozen=True)
class ExponentialEvent(Event):
    """Exponential mechanism, Pr[i] ~ exp(score_i/scale), scores of sensitivity ``sensitivity``.

    For scores that may move either way (an L1 distance does) epsilon = 2 sensitivity/scale
    (McSherry and Talwar 2007). It is epsilon-bounded-range, hence rho = epsilon^2/8 (Cesar
    and Rogers 2020), and hence it is mu-Gaussian-DP with mu = epsilon sqrt(2 pi)/4:

    1. Bounded range: for two neighbours the probability ratios lie in some [e^(t - epsilon), e^t]. Among
       all pairs of distributions with this property, the two-point pair at the ends is the easiest to
       distinguish: its ratio is the largest in convex order of those with mean 1 (Blackwell 1953).
    2. The pair has probabilities a and b at one point with logit(a) - logit(b) = epsilon, whatever t
       is. Its trade-off function has one corner, so as that of N(0, 1) against N(mu, 1) is convex,
       it lies above it if the corner does: if mu >= g(logit a) - g(logit b), g = Phi^-1 of the
       logistic function.
    3. At Phi(z) = p the slope of g is p (1 - p)/phi(z), which is at most sqrt(2 pi)/4: that is
       1 - (2 Phi(z) - 1)^2 <= exp(-z^2/2), true as the square [-z, z]^2 holds the disc of radius z, on
       which two independent standard normals lie with probability 1 - exp(-z^2/2).
    """

    scale: float
    sensitivity: int

    @property
    def epsilon(self) -> Fraction:
        return 2 * Fraction(self.sensitivity) / Fraction(self.scale)

    @property
    def rho(self) -> Fraction:
        return self.epsilon**2 / 8

    @property
    def half_mu_squared(self) -> Fraction:
        """pi epsilon^2/16, by a bound on pi from above."""
        return PI * self.epsilon**2 / 16


_FAR = 40
"""Deviations beyond which the normal tail is below every double."""


@dataclass(frozen=True)
class SelectionEvent(Event):
    """Optimal partition selection: the most likely naming that costs (epsilon0, delta0) for each value.

    Sensitivity: a unit moves the numbers of units of at most ``partitions`` values, each by one.
    Distribution: a value of n units is named with the probability of Desfontaines, Voss and Gipson (2022),
    theorem 1, which is (epsilon0, delta0)-DP for a step of one; values are named independently.
    Cost: partitions times (epsilon0, delta0). An (epsilon0, delta0)-DP answer is post-processing of a
    randomised response that is epsilon0-DP, but with probability delta0 reveals its input (Kairouz, Oh and
    Viswanath 2015, theorem 3.1), so it is delta0-approximately epsilon0^2/2-zCDP, and delta0-approximately
    mu-Gaussian-DP with mu = epsilon0 sqrt(2 pi)/2, as ``LaplaceEvent``.
    """

    epsilon0: float
    delta0: float
    partitions: int

    @property
    def scale(self) -> float:
        return 1 / self.epsilon0

    @property
    def epsilon(self) -> Fraction:
        return self.partitions * Fraction(self.epsilon0)

    @property
    def delta(self) -> Fraction:
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
class ThresholdEvent(Event):
    """Discrete Gaussian noise on each value's number of units; those that reach a threshold are named.

    Sensitivity: a unit moves the numbers of at most ``partitions`` values by one, so l2_squared =
    partitions. Distribution: independent noise on each value that some unit holds; a value of n units is
    named if n + noise >= threshold.
    Cost: that of Gaussian noise for the values that both neighbours have. A value that only one has
    is held by one unit there, so it is named with probability P[1 + noise >= threshold]. If none of these
    (at most ``partitions``) is, the answers are post-processing of the noisy numbers of all other values
    (Korolova et al. 2009; Gopi et al. 2020). So delta = partitions P[1 + noise >= threshold], and the rest
    costs as ``GaussianEvent``, also under Gaussian DP, as at most ``partitions`` numbers differ.
    """

    sigma: float
    threshold: int
    partitions: int

    @property
    def scale(self) -> float:
        return self.sigma

    @property
    def epsilon(self) -> None:
        return None

    @property
    def delta(self) -> Fraction:
        """Partitions times a bound on P[1 + noise >= threshold], rounded up to a double."""
        return Fraction(float_up(self.partitions * tail_above(self.sigma, self.threshold - 1)))

    @property
    def rho(self) -> Fraction:
        return self._noise.rho

    @property
    def half_mu_squared(self) -> Fraction | None:
        return self._noise.half_mu_squared

    @property
    def _noise(self) -> GaussianEvent:
        return GaussianEvent(self.sigma, self.partitions)


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


RecordedEvent = LaplaceEvent | GaussianEvent | ExponentialEvent | SelectionEvent | ThresholdEvent
"""The events that a journal may hold."""

_KINDS: dict[str, type[RecordedEvent]] = {
    "discrete Laplace": LaplaceEvent,
    "discrete Gaussian": GaussianEvent,
    "exponential mechanism": ExponentialEvent,
    "partition selection": SelectionEvent,
    "discrete Gaussian threshold": ThresholdEvent,
}

LOCAL_REPORTS = "local randomisers"
"""Mechanism of a record of reports that respondents randomised: no event, as it costs a curator nothing."""


def mechanism_of(event: Event) -> str:
    """The mechanism's name."""
    return next(name for name, kind in _KINDS.items() if isinstance(event, kind))


def to_json(event: RecordedEvent) -> dict[str, object]:
    """An event as plain JSON values; floats keep every bit."""
    return {"mechanism": mechanism_of(event), **asdict(event)}


def from_json(record: Mapping[str, object]) -> RecordedEvent:
    """The event that ``to_json`` wrote; KeyError on an unknown mechanism."""
    fields = dict(record)
    kind = _KINDS[str(fields.pop("mechanism"))]
    return kind(**fields)  # type: ignore[arg-type]


def approximate_delta_of(events: Iterable[Event]) -> Fraction:
    """The probability that any of several events has a loss above its epsilon, rho and mu^2/2."""
    return sum((e.delta for e in events), Fraction(0))
