"""Measures of privacy loss: epsilon of pure DP, rho of zero-concentrated DP, mu^2/2 of Gaussian DP.

This module holds everything that differs between the measures: the cost of a loss, the conversion between a
budget and (epsilon, delta), and the noise scale near which a price is met. Rho and mu^2/2 are nearly the same
number for Gaussian noise, but epsilon is lower for mu^2/2; for a choice and for Laplace noise mu^2/2 is 1.57
times rho.

Invariant: costs and epsilons are rounded up, budgets down.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter, sqrt
from typing import Protocol

from dpsynth.accounting.gaussian_dp import gdp_budget, gdp_epsilon, least_sigma
from dpsynth.accounting.rounding import PI, float_up
from dpsynth.accounting.zero_concentrated import zcdp_budget, zcdp_epsilon

_ROUNDING = 1 + Fraction(1, 1 << 40)
"""Costs of events are rounded up to doubles one by one; their sum may pass a bound by this factor."""


class Loss(Protocol):
    """A privacy loss as each measure counts it, of one answer or of a release."""

    @property
    def epsilon(self) -> Fraction | None:
        """Epsilon, or None where there is none."""
        ...

    @property
    def rho(self) -> Fraction:
        """Zero-concentrated rho."""
        ...

    @property
    def half_mu_squared(self) -> Fraction | None:
        """mu^2/2 of Gaussian DP, or None where there is none."""
        ...


class Measure(ABC):
    """A way to add up privacy losses.

    Attributes:
        name: as stored in journals.
        accountant: the accountant that adds up this measure, as stored in manifests; of a privacy filter of
            ledgers, as stored there too.
        title: its name for people, with the figure that is added up.
        composition: the name of its composition, for people.
        symbol: the symbol of the figure.
        noises: names of the noise of counts that releases under this measure may have.
        needs_delta: true if its totals imply an epsilon only at a delta above 0; the deltas of events
            (``partition_selection``) are then set aside from that delta. Without it they are all of delta.
        whole_only: true if the cost of an answer rests on answers after it. Then only the whole budget bounds
            a release, wherever it ends.
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
    whole_only: bool = False
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

    def admits(self, event: object, left: Fraction) -> bool:
        """True if an answer has this cost with so much of the budget left after it; always, in most measures.

        Args:
            event: the answer's event.
            left: the rest of the budget after it.
        """
        del event, left
        return True

    @property
    def filter(self) -> Measure:
        """The privacy filter of a ledger that counts releases under this measure best; itself for most."""
        return self

    @abstractmethod
    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction | None]:
        """Bounds on the rho and mu^2/2 of a release that spends a budget.

        Args:
            budget: the budget under this measure.
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
        """Epsilon."""
        return loss.epsilon

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        """Epsilon itself."""
        return epsilon

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        """The total itself."""
        return total

    def mu(self, total: Fraction) -> None:
        """None."""
        return

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction]:
        """epsilon^2/2 and pi epsilon^2/4."""
        rho = budget**2 / 2 * _ROUNDING
        return rho, PI / 2 * rho * _ROUNDING

    def laplace_epsilon(self, price: float) -> float:
        """The price."""
        return price

    def exponential_epsilon(self, price: float) -> float:
        """The price."""
        return price

    def gaussian_sigma(self, variance: float) -> float:
        """ValueError: there is none."""
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
        """Rho."""
        return loss.rho

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        """Rho by ``zcdp_budget``."""
        return zcdp_budget(epsilon, needed(delta))

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        """Epsilon by ``zcdp_epsilon``."""
        return zcdp_epsilon(total, needed(delta))

    def mu(self, total: Fraction) -> None:
        """None."""
        return

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction | None]:
        """Rho, and pi/2 times rho if that bounds mu^2/2."""
        return budget, PI / 2 * budget * _ROUNDING if mu_by_rho else None

    def laplace_epsilon(self, price: float) -> float:
        """sqrt(2 rho)."""
        return sqrt(2 * price)

    def exponential_epsilon(self, price: float) -> float:
        """sqrt(8 rho)."""
        return sqrt(8 * price)

    def gaussian_sigma(self, variance: float) -> float:
        """The root of the variance."""
        return sqrt(variance)


@dataclass(frozen=True)
class GaussianDP(Measure):
    """mu^2/2 of Gaussian DP; the rho of every answer is at most that."""

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
        """mu^2/2."""
        return loss.half_mu_squared

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        """mu^2/2 by ``gdp_budget``."""
        return gdp_budget(epsilon, needed(delta))

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        """Epsilon by ``gdp_epsilon``."""
        return gdp_epsilon(total, needed(delta))

    def mu(self, total: Fraction) -> float:
        """The root of twice the total."""
        root = sqrt(2 * total)
        while Fraction(root) ** 2 < 2 * total:
            root = nextafter(root, inf)
        return root

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction]:
        """mu^2/2 for both."""
        return budget * _ROUNDING, budget

    def laplace_epsilon(self, price: float) -> float:
        """sqrt(4/pi mu^2/2)."""
        return sqrt(float(4 / PI) * price)

    def exponential_epsilon(self, price: float) -> float:
        """sqrt(16/pi mu^2/2)."""
        return sqrt(float(16 / PI) * price)

    def gaussian_sigma(self, variance: float) -> float:
        """``gaussian_dp.least_sigma``."""
        return least_sigma(variance)


PURE, GDP, ZCDP = PureEpsilon(), GaussianDP(), ZeroConcentrated()

MEASURES: tuple[Measure, ...] = (PURE, GDP, ZCDP)
"""The measures whose sums a privacy filter of a ledger bounds; ``known_measures`` has the others."""


def needed(delta: Fraction | None) -> Fraction:
    """A delta that is there; ValueError where it is not."""
    if delta is None:
        raise ValueError("accounting other than pure needs a delta")
    return delta
