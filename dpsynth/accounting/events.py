"""Privacy events: the facts of one answer that an accountant needs, and nothing else.

One event is journalled for each answer, so events are evidence of the charges. The epsilon, rho and mu^2/2
of an event are exact rationals of the parameters that the mechanism really used. Its cost is one of them,
rounded up to a double: sums of costs are then exact and stay short, where sums of the rationals would double
their digits with every event. The events of ``partition_selection`` have a delta of their own as well; these
deltas add up separately.

The guarantee that is published, as one value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Protocol

from dpsynth.accounting.amount import PI
from dpsynth.accounting.measures import continuous_variance
from dpsynth.accounting.partition_selection import SelectionEvent, ThresholdEvent


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


class Event(Protocol):
    """The privacy cost of one answer."""

    @property
    def epsilon(self) -> Fraction | None:
        """Pure epsilon, or None where the mechanism has none."""
        ...

    @property
    def delta(self) -> Fraction:
        """Probability of a loss above epsilon, rho and mu^2/2; it adds up beside them."""
        ...

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated rho."""
        ...

    @property
    def half_mu_squared(self) -> Fraction | None:
        """mu^2/2 of Gaussian DP, or None where it has none."""
        ...


@dataclass(frozen=True)
class LaplaceEvent:
    """Discrete Laplace noise P(x) ~ exp(-|x|/scale) on integers of L1 sensitivity ``l1``.

    Costs epsilon = l1/scale (Canonne, Kamath and Steinke 2020), and hence
    rho = epsilon^2/2 (Bun and Steinke 2016, proposition 1.4). An epsilon-DP answer is
    2 epsilon-bounded-range, and hence has mu = epsilon sqrt(2 pi)/2 (``ExponentialEvent``).
    """

    scale: float
    l1: int

    @property
    def epsilon(self) -> Fraction:
        """l1/scale."""
        return Fraction(self.l1) / Fraction(self.scale)

    @property
    def delta(self) -> Fraction:
        """0."""
        return Fraction(0)

    @property
    def rho(self) -> Fraction:
        """epsilon^2/2."""
        return self.epsilon**2 / 2

    @property
    def half_mu_squared(self) -> Fraction:
        """pi epsilon^2/4, by a bound on pi from above."""
        return PI * self.epsilon**2 / 4


@dataclass(frozen=True)
class GaussianEvent:
    """Discrete Gaussian noise on integers whose L2 sensitivity squared is ``l2_squared``.

    Costs rho = l2_squared/(2 sigma^2) in any dimension (Canonne, Kamath and Steinke 2020,
    theorem 14); no pure epsilon. Under Gaussian DP it counts as continuous noise of variance
    0.999 sigma^2 - 0.6 (proof in ``dpsynth.accounting.measures``).
    """

    sigma: float
    l2_squared: int

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
        """0."""
        return Fraction(0)

    @property
    def rho(self) -> Fraction:
        """l2_squared/(2 sigma^2)."""
        return Fraction(self.l2_squared) / (2 * Fraction(self.sigma) ** 2)

    @property
    def half_mu_squared(self) -> Fraction | None:
        """l2_squared/(2 (0.999 sigma^2 - 0.6)); None where sigma is too small for that."""
        variance = continuous_variance(Fraction(self.sigma))
        return Fraction(self.l2_squared) / (2 * variance) if variance > 0 else None


@dataclass(frozen=True)
class ExponentialEvent:
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
        """2 sensitivity/scale."""
        return 2 * Fraction(self.sensitivity) / Fraction(self.scale)

    @property
    def delta(self) -> Fraction:
        """0."""
        return Fraction(0)

    @property
    def rho(self) -> Fraction:
        """epsilon^2/8."""
        return self.epsilon**2 / 8

    @property
    def half_mu_squared(self) -> Fraction:
        """pi epsilon^2/16, by a bound on pi from above."""
        return PI * self.epsilon**2 / 16


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
