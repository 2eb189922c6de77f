"""Measures of losses at an order that is fixed beforehand: advanced composition as filters.

Renyi divergences of one order add up, also where every mechanism was chosen from earlier answers, if their
sum is stopped at a bound that was fixed, with the order, before the first (Feldman and Zrnic 2021). So at
one order a release may set noise from its answers; with the best of all orders, found later, it may not.

Three measures, from the loosest to the tightest, for answers that are epsilon-DP:

    advanced  sum of epsilon^2/2 =: s;                       s + 2 sqrt(s ln(1/delta))
    optimal   sum of epsilon tanh(epsilon/2) + l epsilon^2/2; that + ln(1/delta)/l
    rdp       sum of Renyi divergences of order a;
                  that + [a ln(1 - 1/a) - ln(a - 1) - ln delta]/(a - 1)

``advanced`` is the filter of Whitehouse, Ramdas, Rogers and Wu 2023, theorem 1, and never above theorem 3.20
of Dwork and Roth 2014. ``optimal`` is theorem 3.5 of Kairouz, Oh and Viswanath 2015 as a filter: of all
epsilon-DP answers randomised response has the largest mean loss, epsilon tanh(epsilon/2), and a loss between
-epsilon and epsilon is epsilon^2-sub-Gaussian about it (Hoeffding), so exp(l (L - cost)) is a
supermartingale over the answers, and Markov's inequality bounds its end. With the best l it is the theorem's
A + sqrt(2 S ln(1/delta)). The exact optimum over fixed answers is no filter: see ``advanced``, the module.
``rdp`` takes the divergence of randomised response itself, and converts as Canonne, Kamath and Steinke 2020,
proposition 12.

Invariant: costs and epsilons are rounded up, budgets down; the order is a decimal of few digits, and stands
in the measure's name, so that journals and manifests hold it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import exp, log, nextafter, sqrt

from dpsynth.accounting.amount import PI, float_down
from dpsynth.accounting.measures import ZCDP, Loss, Measure, best_order, needed, penalty
from dpsynth.accounting.partition_selection import SelectionEvent

EXACT = Context(prec=60, Emin=MIN_EMIN, Emax=MAX_EMAX)
_SLACK = Decimal("1e-30")
_ROUNDING = 1 + Fraction(1, 1 << 40)
LEAST_OF_RHO = Fraction(2, 3)
"""The least cost of an answer under Renyi DP, in a rho."""
_MOST_STEPS, _LONGEST_STEP = 60, 4.0
_DIGITS = 5
"""Significant digits of an order."""


@dataclass(frozen=True)
class Pure:
    """The loss of an epsilon-DP answer."""

    epsilon: Fraction
    rho: Fraction
    half_mu_squared: Fraction | None = None


class _FixedBeforehand(Measure):
    """The part that the measures of this module share: epsilons from a sum, and the way back."""

    needs_delta = True
    error_power = 0.5

    def exact_cost(self, loss: Loss) -> Fraction | None:
        """The cost of one answer; partition selection is as many answers as it has partitions."""
        if isinstance(loss, SelectionEvent):
            each = Fraction(loss.epsilon0)
            single = self.of_one(Pure(each, each**2 / 2))
            return None if single is None else loss.partitions * single
        return self.of_one(loss)

    @abstractmethod
    def of_one(self, loss: Loss) -> Fraction | None:
        """The cost of a loss that is not one of several partitions."""
        ...

    def budget(self, epsilon: Fraction, delta: Fraction | None) -> Fraction:
        """The largest double whose epsilon is within the one asked for; 0 where none is."""
        found = Fraction(float_down(max(Fraction(0), self._near(epsilon, needed(delta)))))
        while found > 0 and self.epsilon(found, delta) > epsilon:
            found = Fraction(nextafter(float(found), 0.0))
        return found

    @abstractmethod
    def _near(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """The budget, to more digits than a double has."""
        ...

    def mu(self, total: Fraction) -> None:
        """None."""
        return

    def implied(self, budget: Fraction, mu_by_rho: bool) -> tuple[Fraction, Fraction | None]:
        """The rho of answers within a budget, and pi/2 times rho if that bounds mu^2/2."""
        rho = self.rho(budget) * _ROUNDING
        return rho, PI / 2 * rho * _ROUNDING if mu_by_rho else None

    def exponential_epsilon(self, price: float) -> float:
        """As of Laplace noise: by epsilon alone."""
        return self.laplace_epsilon(price)

    @property
    def filter(self) -> Measure:
        """zCDP, which counts the rho of its answers."""
        return ZCDP


@dataclass(frozen=True)
class Advanced(_FixedBeforehand):
    """Half the sum of the squares of epsilon."""

    name = "advanced"
    accountant = "advanced"
    title = "advanced composition (half the squares of epsilon)"
    composition = "advanced composition"
    symbol = "Σε²/2"
    noises = ("laplace",)
    uncounted = "Gaussian noise has no epsilon, which advanced composition counts by"

    def of_one(self, loss: Loss) -> Fraction | None:
        """epsilon^2/2."""
        return None if loss.epsilon is None else loss.epsilon**2 / 2

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        """s + 2 sqrt(s ln(1/delta))."""
        if not total:
            return Fraction(0)
        with localcontext(EXACT):
            found = _decimal(total) + 2 * (-_decimal(total) * _decimal(needed(delta)).ln()).sqrt()
            return Fraction(found * (1 + _SLACK))

    def _near(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        with localcontext(EXACT):
            most, tail = _decimal(epsilon), -_decimal(delta).ln()
            return Fraction((most / ((tail + most).sqrt() + tail.sqrt())) ** 2)

    def rho(self, total: Fraction) -> Fraction:
        """The total: an epsilon-DP answer has a rho of at most epsilon^2/2."""
        return total

    def laplace_epsilon(self, price: float) -> float:
        """sqrt(2 price)."""
        return sqrt(2 * price)

    def gaussian_sigma(self, variance: float) -> float:
        """ValueError: there is none."""
        raise ValueError(self.uncounted)


@dataclass(frozen=True)
class _OfOrder(_FixedBeforehand):
    """A measure with an order, or a multiplier.

    Attributes:
        order: its decimal.
    """

    order: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """The name with the order, from which the measure can be made again."""
        return f"{self.kind}@{self.order}"

    @property
    def accountant(self) -> str:  # type: ignore[override]
        """As the name."""
        return self.name

    @property
    @abstractmethod
    def kind(self) -> str:
        """The name without the order."""
        ...

    @property
    def _order(self) -> Fraction:
        return Fraction(self.order)

    def epsilon(self, total: Fraction, delta: Fraction | None) -> Fraction:
        """The total, and what the conversion adds at the order."""
        return Fraction(0) if not total else max(Fraction(0), total + self._added(needed(delta)))

    def _near(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        return epsilon - self._added(delta)

    @abstractmethod
    def _added(self, delta: Fraction) -> Fraction: ...


@dataclass(frozen=True)
class Optimal(_OfOrder):
    """Mean loss and variance of randomised response, with the multiplier ``order``."""

    title = "optimal composition at a fixed multiplier (epsilon)"
    composition = "optimal composition (Kairouz, Oh and Viswanath)"
    symbol = "Σε·tanh(ε/2)+λε²/2"
    noises = ("laplace",)
    uncounted = "Gaussian noise has no epsilon, which optimal composition counts by"
    kind = "optimal"

    def of_one(self, loss: Loss) -> Fraction | None:
        """Epsilon tanh(epsilon/2) + l epsilon^2/2."""
        return None if loss.epsilon is None else _mean_and_square(loss.epsilon, self._order)

    def _added(self, delta: Fraction) -> Fraction:
        with localcontext(EXACT):
            return Fraction(-_decimal(delta).ln() * (1 + _SLACK)) / self._order

    def rho(self, total: Fraction) -> Fraction:
        """total/l, as the cost of an answer is at least l epsilon^2/2."""
        return total / self._order

    def laplace_epsilon(self, price: float) -> float:
        """The inverse of the cost."""
        return _inverse(price, lambda epsilon: _mean_and_square(epsilon, self._order))

    def gaussian_sigma(self, variance: float) -> float:
        """ValueError: there is none."""
        raise ValueError(self.uncounted)


@dataclass(frozen=True)
class Renyi(_OfOrder):
    """Renyi divergence of the order.

    A loss counts as the lesser of a rho, and of randomised response of its epsilon: cosh((a - 1/2) e)/
    cosh(e/2) is the exponential of a - 1 times the divergence of the latter. It counts as two thirds of a rho
    at least, so that a ledger that adds up rho has a bound on a release that is not far above its own rho.
    """

    title = "Renyi DP at a fixed order (Renyi divergence)"
    composition = "Rényi DP"
    symbol = "D_\N{GREEK SMALL LETTER ALPHA}"
    noises = ("gaussian", "laplace")
    uncounted = "every answer has a Renyi divergence"
    kind = "rdp"

    def of_one(self, loss: Loss) -> Fraction:
        """The lesser of a rho and the divergence of randomised response, and two thirds of a rho at least."""
        by_rho = self._order * loss.rho
        if loss.epsilon is None:
            return by_rho
        return max(LEAST_OF_RHO * by_rho, min(by_rho, _of_coin(loss.epsilon, self._order)))

    def _added(self, delta: Fraction) -> Fraction:
        with localcontext(EXACT):
            return Fraction(penalty(_decimal(self._order), delta))

    def rho(self, total: Fraction) -> Fraction:
        """3/2 of the total divided by a."""
        return total / (LEAST_OF_RHO * self._order)

    def laplace_epsilon(self, price: float) -> float:
        """The inverse of the cost at rho = epsilon^2/2."""
        return _inverse(price, lambda epsilon: self.of_one(Pure(epsilon, epsilon**2 / 2)))

    def exponential_epsilon(self, price: float) -> float:
        """The inverse of the cost at rho = epsilon^2/8."""
        return _inverse(price, lambda epsilon: self.of_one(Pure(epsilon, epsilon**2 / 8)))

    def gaussian_sigma(self, variance: float) -> float:
        """The root of a times the variance."""
        return sqrt(float(self._order) * variance)


def advanced_for(epsilon: Fraction, delta: Fraction) -> Measure:
    """Advanced composition, which has no order."""
    del epsilon, delta
    return Advanced()


def optimal_for(epsilon: Fraction, delta: Fraction) -> Measure:
    """Optimal composition with the multiplier at which small answers may have the largest squares.

    It is the l that maximises (epsilon - L/l)/(1 + l), L = ln(1/delta).
    """
    tail, most = -log(delta), float(epsilon)
    return Optimal(_few_digits((tail + sqrt(tail * tail + most * tail)) / most))


def renyi_for(epsilon: Fraction, delta: Fraction) -> Measure:
    """Renyi DP at the order at which small answers may have the largest rho."""
    return Renyi(_few_digits(best_order(epsilon, delta)))


def _few_digits(value: float) -> str:
    """A decimal of few digits, above 1.

    >>> _few_digits(17.23456), _few_digits(1.0000000012)
    ('17.235', '1.0000000012')
    """
    if value > 2:
        return f"{Decimal(f'{value:.{_DIGITS}g}'):f}"
    above = Decimal(f"{value - 1:.{_DIGITS - 1}g}")
    return f"{1 + above:f}"


@lru_cache(maxsize=4096)
def _of_coin(epsilon: Fraction, order: Fraction) -> Fraction:
    """Renyi divergence of randomised response, rounded up."""
    with localcontext(EXACT):
        e, a = _decimal(epsilon), _decimal(order)
        total = ((a * e).exp() + ((1 - a) * e).exp()) / (1 + e.exp())
        return Fraction(total.ln() / (a - 1) * (1 + _SLACK))


def _mean_and_square(epsilon: Fraction, multiplier: Fraction) -> Fraction:
    with localcontext(EXACT):
        e = _decimal(epsilon)
        other = (-e).exp()
        mean = e * (1 - other) / (1 + other)
        return Fraction((mean + _decimal(multiplier) * e * e / 2) * (1 + _SLACK))


def _inverse(price: float, cost: Callable[[Fraction], Fraction]) -> float:
    """The epsilon whose cost is a price, to nearly all digits: the secant method on logarithms."""
    target = log(price)

    def over(at: float) -> float:
        return log(cost(Fraction(exp(at)))) - target

    before, here = 0.0, 0.5
    missed_before, missed = over(before), over(here)
    for _ in range(_MOST_STEPS):
        if missed in (0.0, missed_before):
            break
        step = missed * (here - before) / (missed - missed_before)
        before, missed_before = here, missed
        here -= max(-_LONGEST_STEP, min(_LONGEST_STEP, step))
        if here == before:
            break
        missed = over(here)
    return exp(here)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
