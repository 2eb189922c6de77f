"""Dominating pairs of distributions: outcomes on two neighbouring tables are never easier to tell apart.

Every figure of a guarantee follows from such a pair (P, Q): delta at each epsilon, Renyi and Kullback-Leibler
divergences, and the best attacker's trade-off between false alarms and hits (Dong, Roth and Su 2022; Zhu,
Dong and Wang 2022). The privacy loss is ln(P/Q) of an outcome drawn from P.

Invariant: every pair here is symmetric, or stands for both orders, so no figure depends on which of two
neighbours is called P. Figures are doubles, to the nearest: they explain a guarantee and never grant one.

Guesses from which of two tables a release was made: the largest chance, and limits of an observed one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, inf, log, log1p, nextafter, pi, sqrt

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit, log_ndtr, ndtr, ndtri
from scipy.stats import beta

from dpsynth.accounting.composition import hits_at_most

LEVEL = 0.95
"""Confidence of limits."""


def limits(right: int, games: int) -> tuple[float, float]:
    """The 95 % limits of a chance by Clopper and Pearson.

    >>> [round(end, 4) for end in limits(8, 10)]
    [0.4439, 0.9748]
    """
    tail = (1 - LEVEL) / 2
    low = float(beta.ppf(tail, right, games - right + 1)) if right else 0.0
    high = float(beta.ppf(1 - tail, right + 1, games - right)) if right < games else 1.0
    return low, high


def right_at_most(epsilon: float, delta: float) -> float:
    """The largest chance of telling two equally likely tables apart: (e^epsilon + delta)/(1 + e^epsilon).

    Rounded up. Kairouz, Oh and Viswanath 2015, as in ``dpsynth.figures``.

    >>> round(right_at_most(1.0, 0.0), 6)
    0.731059
    """
    return min(nextafter((1 + delta * exp(-epsilon)) / (1 + exp(-epsilon)), 2.0), 1.0)


_WEIGHTLESS = 1e-18
"""A probability beyond which the cells of discrete noise are left out of a sum."""


class LossPair(ABC):
    """A dominating pair of laws."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """The delta at an epsilon >= 0: the mean of (1 - e^(epsilon - L))_+ over the loss L."""

    @abstractmethod
    def renyi(self, order: float) -> float:
        """The Renyi divergence of an order >= 1, in nats; of order 1 the Kullback-Leibler divergence."""

    @property
    @abstractmethod
    def largest_loss(self) -> float:
        """The max divergence, in nats; infinite where no pure epsilon holds."""

    @abstractmethod
    def loss_not_exceeded(self, share: float) -> float:
        """The least loss that at least a share of the outcomes of P don't exceed, or a bound on it."""

    def hits(self, false_alarms: float) -> float:
        """The largest chance to recognise P, at a chance of taking Q for P: one minus the trade-off function.

        By the deltas of both orders at each epsilon >= 0.
        """
        return hits_at_most(self._curve, false_alarms)

    @cached_property
    def _curve(self) -> list[tuple[float, float]]:
        """Some epsilons from 0 to beyond all that matters, and the delta at each."""
        epsilons = min(self.largest_loss, 60.0) * (np.arange(401) / 400) ** 2
        return [(epsilon, float(self.delta(epsilon))) for epsilon in epsilons.tolist()]

    @property
    def best_guess(self) -> float:
        """The largest chance to tell two neighbours apart that are equally likely beforehand."""
        return (1 + self.delta(0.0)) / 2

    def epsilon(self, delta: float) -> float:
        """The least epsilon >= 0 whose delta is at most the given one; infinite where there is none."""
        if self.delta(0.0) <= delta:
            return 0.0
        top = 1.0
        while self.delta(top) > delta:
            top *= 2
            if top > 1e6:
                return inf
        if self.delta(top) < delta:
            return float(brentq(lambda e: self.delta(e) - delta, 0.0, top, xtol=1e-13, rtol=1e-13))
        # Delta may stay the same from the least such epsilon on.
        low, high = 0.0, top
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return high


@dataclass(frozen=True)
class NormalPair(LossPair):
    """Normal laws of variance 1 at a distance mu: Gaussian noise, and all of Gaussian DP.

    Attributes:
        mu: the distance, above 0.
        leaked: a probability with which everything is revealed.
    """

    mu: float
    leaked: float = 0.0

    def delta(self, epsilon: float) -> float:
        """Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu) (Balle and Wang 2018, theorem 8)."""
        x = epsilon / self.mu - self.mu / 2
        near, far = float(log_ndtr(-x)), epsilon + float(log_ndtr(-x - self.mu))
        return self.leaked + (1 - self.leaked) * -exp(near) * expm1(far - near)

    def renyi(self, order: float) -> float:
        """Order times mu^2/2 (Mironov 2017)."""
        return inf if self.leaked else order * self.mu**2 / 2

    @property
    def largest_loss(self) -> float:
        return inf

    def loss_not_exceeded(self, share: float) -> float:
        """A quantile of the normal loss of mean mu^2/2 and deviation mu."""
        if share > 1 - self.leaked:
            return inf
        return self.mu**2 / 2 + self.mu * float(ndtri(share / (1 - self.leaked)))

    def hits(self, false_alarms: float) -> float:
        """Phi(Phi^-1(x) + mu) (Dong, Roth and Su 2022, definition 2.7)."""
        seen = float(ndtr(ndtri(false_alarms) + self.mu))
        return self.leaked + (1 - self.leaked) * seen


@dataclass(frozen=True)
class AtomicPair(LossPair):
    """Laws of finitely many outcomes.

    Attributes:
        atoms: the probability of each outcome under P and under Q; each column adds up to 1.
    """

    atoms: tuple[tuple[float, float], ...]

    @classmethod
    def coin(cls, epsilon: float, delta: float = 0.0) -> AtomicPair:
        """Randomised response that reveals all with probability delta: every (epsilon, delta)-DP mechanism.

        Kairouz, Oh and Viswanath 2015, theorem 3.1.
        """
        more, less = float(expit(epsilon)), float(expit(-epsilon))
        kept = 1 - delta
        return cls(((delta, 0.0), (kept * more, kept * less), (kept * less, kept * more), (0.0, delta)))

    @classmethod
    def responses(cls, epsilon: float, values: int) -> AtomicPair:
        """Randomised response over some values that keeps the true one with e^epsilon/(e^epsilon + k - 1)."""
        kept = 1 / (1 + (values - 1) * exp(-epsilon))
        other = kept * exp(-epsilon)
        return cls(((kept, other), (other, kept), ((values - 2) * other,) * 2))

    @classmethod
    def discrete_laplace(cls, scale: float, moved: int) -> AtomicPair:
        """Discrete Laplace noise P(x) ~ e^(-|x|/scale) about 0, and about a whole number."""
        ratio = exp(-1 / scale)
        end = ratio / (1 + ratio)
        """Probability of all that lies beyond the mean, on one side."""
        mean = (1 - ratio) / (1 + ratio)
        near, far = mean + end, ratio**moved * (mean + end)
        inside = ((mean * ratio**k, mean * ratio ** (moved - k)) for k in range(1, moved))
        return cls(((near, far), *inside, (far, near)))

    @classmethod
    def discrete_gaussian(cls, sigma: float, moved: int) -> AtomicPair:
        """Discrete Gaussian noise P(x) ~ e^(-x^2/(2 sigma^2)) about 0, and about a whole number."""
        reach = ceil(sigma * sqrt(-2 * log(_WEIGHTLESS))) + moved
        cells = np.arange(-reach, reach + moved + 1, dtype=np.float64)
        here, there = (np.exp(-((cells - m) ** 2) / (2 * sigma**2)) for m in (0, moved))
        total = float(np.exp(-(np.arange(-reach, reach + 1, dtype=np.float64) ** 2) / (2 * sigma**2)).sum())
        return cls(tuple(zip((here / total).tolist(), (there / total).tolist(), strict=True)))

    @cached_property
    def _laws(self) -> tuple[np.ndarray, np.ndarray]:
        p, q = np.array(self.atoms).T
        return p, q

    @cached_property
    def _losses(self) -> np.ndarray:
        p, q = self._laws
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(p > 0, np.log(p) - np.log(q), -inf)

    def delta(self, epsilon: float) -> float:
        """Sum of (p - e^e q)_+."""
        p, q = self._laws
        return float(np.maximum(p - np.exp(min(epsilon, 700.0)) * q, 0.0).sum())

    def renyi(self, order: float) -> float:
        """ln(sum q (p/q)^order)/(order - 1); of order 1 the sum of p ln(p/q)."""
        p, _ = self._laws
        losses, weights = self._losses[p > 0], p[p > 0]
        if np.isinf(losses).any():
            return inf
        if order == 1:
            return float((weights * losses).sum())
        top = float(losses.max())
        return top + log(float((weights * np.exp((order - 1) * (losses - top))).sum())) / (order - 1)

    @property
    def largest_loss(self) -> float:
        return float(self._losses.max())

    def loss_not_exceeded(self, share: float) -> float:
        """A quantile of the loss."""
        order = np.argsort(self._losses)
        reached = np.cumsum(self._laws[0][order])
        at = int(np.searchsorted(reached, share - 1e-15))
        return float(self._losses[order[min(at, len(order) - 1)]])


@dataclass(frozen=True)
class BoundedRangePair(LossPair):
    """The exponential mechanism: pairs of two points, ratios e^t and e^(t - epsilon), with the worst t.

    Dong, Durfee and Rogers 2020; see ``events.ExponentialEvent``.

    Attributes:
        epsilon_of_range: epsilon, above 0.
    """

    epsilon_of_range: float

    def _pair(self, t: float) -> AtomicPair:
        e = self.epsilon_of_range
        q = expm1(e - t) / expm1(e)
        """Probability under Q of the point of ratio e^t."""
        return AtomicPair(((exp(t) * q, q), (1 - exp(t) * q, 1 - q)))

    def _worst(self, order: float) -> float:
        e = self.epsilon_of_range
        found = minimize_scalar(
            lambda t: -self._pair(t).renyi(order),
            bounds=(e * 1e-9, e * (1 - 1e-9)),
            method="bounded",
            options={"xatol": 1e-12 * e},
        )
        return -float(found.fun)

    def delta(self, epsilon: float) -> float:
        """(1 - e^((e - epsilon)/2))^2/(1 - e^-epsilon), at the worst t = (e + epsilon)/2."""
        if epsilon >= self.epsilon_of_range:
            return 0.0
        return expm1((epsilon - self.epsilon_of_range) / 2) ** 2 / -expm1(-self.epsilon_of_range)

    def renyi(self, order: float) -> float:
        return self._worst(order)

    @property
    def largest_loss(self) -> float:
        return self.epsilon_of_range

    def loss_not_exceeded(self, share: float) -> float:
        """The largest quantile over t: at t the loss is t with probability p(t), which falls as t grows."""
        e = self.epsilon_of_range
        # The loss exceeds s with a chance of at most p at t just above s: 1 - share at the quantile.
        if share <= 0:
            return -e
        return float(brentq(lambda t: exp(t) * expm1(e - t) / expm1(e) - (1 - share), 0.0, e, xtol=1e-13))


@dataclass(frozen=True)
class ConcentratedBound(LossPair):
    """All that rho-zCDP says; no pair of laws has just these figures, so each is a bound.

    Attributes:
        rho: above 0.
        leaked: a probability with which everything is revealed.
    """

    rho: float
    leaked: float = 0.0

    def delta(self, epsilon: float) -> float:
        """The least of e^((a - 1)(a rho - e)) (1 - 1/a)^a/(a - 1) (Canonne, Kamath and Steinke 2020).

        At epsilon 0 and near it Pinsker's inequality is better: delta is at most sqrt(rho/2).
        """

        def exponent(order: float) -> float:
            extra = order * log1p(-1 / order) - log(order - 1)
            return (order - 1) * (order * self.rho - epsilon) + extra

        top = max(3.0, 2 * (epsilon + 10) / self.rho)
        found = minimize_scalar(
            lambda u: exponent(1 + exp(u)),
            bounds=(-30.0, log(top)),
            method="bounded",
            options={"xatol": 1e-11},
        )
        small = min(1.0, exp(min(float(found.fun), 0.0)), sqrt(self.rho / 2))
        return self.leaked + (1 - self.leaked) * small

    def renyi(self, order: float) -> float:
        return inf if self.leaked else order * self.rho

    @property
    def largest_loss(self) -> float:
        return inf

    def loss_not_exceeded(self, share: float) -> float:
        """rho + 2 sqrt(rho ln(1/(1 - share))), by the tail of a loss under zCDP (Bun and Steinke 2016)."""
        beyond = 1 - share - self.leaked
        return inf if beyond <= 0 else self.rho + 2 * sqrt(self.rho * -log(beyond))


def laplace_entropy(scale: float) -> float:
    """The entropy, in bits, of discrete Laplace noise P(x) ~ e^(-|x|/scale)."""
    ratio = exp(-1 / scale)
    mean = -expm1(-1 / scale) / (1 + ratio)
    spread = 2 * ratio / (-expm1(-1 / scale) * (1 + ratio))
    """The mean of |x|."""
    return (-log(mean) + spread / scale) / log(2)


def gaussian_entropy(sigma: float) -> float:
    """The entropy, in bits, of discrete Gaussian noise; ln(sigma sqrt(2 pi e)) where sigma is large."""
    if sigma > 50:
        return log(sigma * sqrt(2 * pi * exp(1))) / log(2)
    cells = np.arange(-ceil(12 * sigma) - 12, ceil(12 * sigma) + 13, dtype=np.float64)
    weights = np.exp(-(cells**2) / (2 * sigma**2))
    total = float(weights.sum())
    mean_square = float((cells**2 * weights).sum()) / total
    return (log(total) + mean_square / (2 * sigma**2)) / log(2)
