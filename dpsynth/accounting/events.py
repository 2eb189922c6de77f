"""Privacy events: what an accountant needs to know of one answer, and nothing else.

One event is journalled for each answer, so events are evidence of what happened. Its
epsilon and rho are exact rationals of the parameters that the mechanism really used. Its
cost is that, rounded up to a double: sums of costs are then exact and stay short, where
sums of the rationals would double their digits with every event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import Literal, Protocol

from dpsynth.accounting.rounding import float_up

Measure = Literal["pure", "zcdp"]
"""How loss is added up: epsilon of pure DP, or rho of zero-concentrated DP."""


class Event(Protocol):
    """The privacy cost of one answer."""

    @property
    def epsilon(self) -> Fraction | None:
        """Pure epsilon, or None where the mechanism has none."""
        ...

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated rho."""
        ...


@dataclass(frozen=True)
class LaplaceEvent:
    """Discrete Laplace noise P(x) ~ exp(-|x|/scale) on integers of L1 sensitivity ``l1``.

    Costs epsilon = l1/scale (Canonne, Kamath and Steinke 2020), and hence
    rho = epsilon^2/2 (Bun and Steinke 2016, proposition 1.4).
    """

    scale: float
    l1: int

    @property
    def epsilon(self) -> Fraction:
        """l1/scale."""
        return Fraction(self.l1) / Fraction(self.scale)

    @property
    def rho(self) -> Fraction:
        """epsilon^2/2."""
        return self.epsilon**2 / 2


@dataclass(frozen=True)
class GaussianEvent:
    """Discrete Gaussian noise on integers whose L2 sensitivity squared is ``l2_squared``.

    Costs rho = l2_squared/(2 sigma^2) in any dimension (Canonne, Kamath and Steinke 2020,
    theorem 14); no pure epsilon.
    """

    sigma: float
    l2_squared: int

    @property
    def epsilon(self) -> None:
        """None: Gaussian noise has no pure epsilon."""
        return None

    @property
    def rho(self) -> Fraction:
        """l2_squared/(2 sigma^2)."""
        return Fraction(self.l2_squared) / (2 * Fraction(self.sigma) ** 2)


@dataclass(frozen=True)
class ExponentialEvent:
    """Exponential mechanism, Pr[i] ~ exp(score_i/scale), scores of sensitivity ``sensitivity``.

    For scores that may move either way (an L1 distance does) epsilon = 2 sensitivity/scale
    (McSherry and Talwar 2007). It is epsilon-bounded-range, hence rho = epsilon^2/8 (Cesar
    and Rogers 2020).
    """

    scale: float
    sensitivity: int

    @property
    def epsilon(self) -> Fraction:
        """2 sensitivity/scale."""
        return 2 * Fraction(self.sensitivity) / Fraction(self.scale)

    @property
    def rho(self) -> Fraction:
        """epsilon^2/8."""
        return self.epsilon**2 / 8


_KINDS: dict[str, type[LaplaceEvent | GaussianEvent | ExponentialEvent]] = {
    "discrete Laplace": LaplaceEvent,
    "discrete Gaussian": GaussianEvent,
    "exponential mechanism": ExponentialEvent,
}


def mechanism_of(event: Event) -> str:
    """The mechanism's name."""
    return next(name for name, kind in _KINDS.items() if isinstance(event, kind))


def to_json(event: LaplaceEvent | GaussianEvent | ExponentialEvent) -> dict[str, object]:
    """An event as plain JSON values; floats keep every bit."""
    return {"mechanism": mechanism_of(event), **asdict(event)}


def from_json(record: Mapping[str, object]) -> LaplaceEvent | GaussianEvent | ExponentialEvent:
    """The event of ``to_json``; KeyError on an unknown mechanism."""
    fields = dict(record)
    kind = _KINDS[str(fields.pop("mechanism"))]
    return kind(**fields)  # type: ignore[arg-type]


def cost(event: Event, measure: Measure) -> Fraction:
    """An event's cost under a measure, rounded up to a double; ValueError where it has none."""
    if measure == "zcdp":
        return Fraction(float_up(event.rho))
    if event.epsilon is None:
        raise ValueError("Gaussian noise has no cost under pure epsilon-DP")
    return Fraction(float_up(event.epsilon))


def _least_scale(guess: float, price: Fraction, priced: Callable[[float], Fraction]) -> float:
    """The first float from just below ``guess`` upwards whose cost is within the price."""
    scale = guess * (1 - 1e-15)
    while priced(scale) > price:
        scale = nextafter(scale, inf)
    return scale


def _positive(price: Fraction) -> Fraction:
    if price <= 0:
        raise ValueError("a price must be positive")
    return price


def laplace_within(price: Fraction, measure: Measure, l1: int) -> LaplaceEvent:
    """The least discrete Laplace noise whose cost does not exceed a price."""
    spend = float(_positive(price))
    guess = l1 / (spend if measure == "pure" else sqrt(2 * spend))
    scale = _least_scale(guess, price, lambda s: cost(LaplaceEvent(s, l1), measure))
    return LaplaceEvent(scale, l1)


def gaussian_within(price: Fraction, l2_squared: int) -> GaussianEvent:
    """The least discrete Gaussian noise whose rho does not exceed a price."""
    guess = sqrt(l2_squared / (2 * float(_positive(price))))
    sigma = _least_scale(guess, price, lambda s: cost(GaussianEvent(s, l2_squared), "zcdp"))
    return GaussianEvent(sigma, l2_squared)


def exponential_within(price: Fraction, measure: Measure, sensitivity: int) -> ExponentialEvent:
    """The sharpest exponential mechanism whose cost does not exceed a price."""
    spend = float(_positive(price))
    epsilon = spend if measure == "pure" else sqrt(8 * spend)
    guess = 2 * sensitivity / epsilon
    scale = _least_scale(guess, price, lambda s: cost(ExponentialEvent(s, sensitivity), measure))
    return ExponentialEvent(scale, sensitivity)
