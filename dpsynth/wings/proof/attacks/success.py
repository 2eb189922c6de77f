"""Success of an attacker: the share of games that were won, its 95 % limits, and the most that is allowed.

Invariant: without a bound nothing is promised; a bound is rounded up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import exp, nextafter, sqrt

import numpy as np
from scipy import stats

from dpsynth.accounting.amount import float_up
from dpsynth.accounting.composition import group_amount
from dpsynth.accounting.events import Guarantee
from dpsynth.wings.proof.loss_pairs import LEVEL, limits, right_at_most


@dataclass(frozen=True)
class Bound:
    """The most that a guarantee allows, for two equally likely tables.

    Attributes:
        epsilon: by epsilon and delta: (e^epsilon + delta)/(1 + e^epsilon).
        sharpest: the least bound that holds, by mu of Gaussian DP or rho of zCDP where there is one.
    """

    epsilon: float
    sharpest: float

    def to_json(self) -> dict[str, float]:
        return {"by_epsilon": self.epsilon, "sharpest": self.sharpest}


@dataclass(frozen=True)
class Success:
    """The share of games in which an attacker was right.

    Attributes:
        against: what the attacker saw: "exact", "k-anonymous", "fresh noise" or "release".
        seen: the same as a sentence.
        games: number of games.
        rate: the share that was won; a coin wins half.
        low, high: its 95 % limits.
        bound: the most that the release's guarantee allows; None where nothing is promised.
    """

    against: str
    seen: str
    games: int
    rate: float
    low: float
    high: float
    bound: Bound | None = None

    def to_json(self) -> dict[str, object]:
        return {
            "against": self.against,
            "seen": self.seen,
            "games": self.games,
            "right": round(self.rate, 6),
            "low": round(self.low, 6),
            "high": round(self.high, 6),
            "right_at_most": None if self.bound is None else self.bound.to_json(),
        }


def of_games(
    against: str, seen: str, won: Sequence[bool] | np.ndarray, bound: Bound | None = None
) -> Success:
    """The success in independent games, with the limits of Clopper and Pearson (1934).

    Args:
        against: what the attacker saw.
        seen: the same as a sentence.
        won: true for each game that was won.
        bound: the most that is allowed.
    """
    games, right = len(won), int(np.sum(won))
    low, high = limits(right, games)
    return Success(against, seen, games, right / games, low, high, bound)


def of_worlds(against: str, seen: str, shares: np.ndarray, each: int, bound: Bound | None = None) -> Success:
    """The success where many secrets share one draw of noise: limits by Student's t over the draws.

    Args:
        against: what the attacker saw.
        seen: the same as a sentence.
        shares: float64[worlds], the share of secrets found in each.
        each: number of secrets of a world.
        bound: the most that is allowed.
    """
    mean, worlds = float(shares.mean()), len(shares)
    wide = float(stats.t.ppf((1 + LEVEL) / 2, worlds - 1)) * float(shares.std(ddof=1)) / sqrt(worlds)
    return Success(against, seen, worlds * each, mean, max(mean - wide, 0.0), min(mean + wide, 1.0), bound)


def presence_bound(guarantee: Guarantee) -> Bound:
    """The largest chance for two neighbouring tables under the release's own relation."""
    return _bound(guarantee, 1)


def value_bound(guarantee: Guarantee) -> Bound:
    """The largest chance for two values of one unit, which is in the table for certain.

    To exchange a unit is one step under replace-one. Under add/remove it is two, and the guarantee is that of
    a group of two.
    """
    return _bound(guarantee, 1 if guarantee.neighbours == "replace_one" else 2)


def _bound(guarantee: Guarantee, steps: int) -> Bound:
    """The bounds for tables that are so many steps apart.

    The chance is (1 + TV)/2 for the total variation distance TV. Under Gaussian DP that is at most
    2 Phi(k mu/2) - 1 for k steps (Dong, Roth and Su 2022), times e^(0.0003 (k mu)^2) for discrete noise;
    under zCDP at most sqrt(k^2 rho/2), by Pinsker's inequality, as the Kullback-Leibler divergence is at most
    k^2 rho.
    """
    amount = group_amount(guarantee, steps)
    if amount is None:
        return Bound(1.0, 1.0)
    epsilon = right_at_most(float_up(amount.epsilon), float_up(Fraction(amount.delta)))
    if guarantee.approximate_delta:
        return Bound(epsilon, epsilon)
    distance = 1.0
    if guarantee.mu is not None:
        mu = steps * guarantee.mu
        distance = (2 * float(stats.norm.cdf(mu / 2)) - 1) * exp(0.0003 * mu**2)
    elif guarantee.rho is not None:
        distance = steps * sqrt(guarantee.rho / 2)
    return Bound(epsilon, min(epsilon, nextafter((1 + distance) / 2, 2.0)))
