"""Private choices beside Gaussian noise: the measure that counts a choice by its privacy loss distribution.

Gaussian DP counts a choice alone, as the normal pair that is nowhere harder to tell apart: mu^2/2 =
pi epsilon^2/16 (``events.ExponentialEvent``). That is tight for one choice. But the loss of a choice has a
variance of epsilon^2/4 at most, which is that of mu^2/2 = epsilon^2/8, and beside the noise of later answers
little more than the variance shows. So a choice counts as 0.14 epsilon^2 here, 1.4 times less.

Claim. Let a choice have epsilon-bounded range, epsilon <= 1, and let mu0^2 >= epsilon^2. Then the choice
together with normal laws at distance mu0 is nowhere easier to tell apart than normal laws at distance mu,
mu^2 = mu0^2 + 2 * 0.14 epsilon^2.

1. Tell P from Q by thresholds: H(k) = E_Q[(R - e^k)_+], R = P/Q of the outcome. R is the product of the
   choice's ratio, which lies in some [e^a, e^b] with b - a = epsilon and a <= 0 <= b, and of a log-normal
   ratio. H is convex in the first ratio, whose mean is 1, so H is largest for two points at the ends.
2. Let X be Brownian motion with drift -1/2 from 0. e^X is a martingale, so X has the law of that logarithm
   when it first leaves (a, b), and that of the log-normal ratio of variance s at time s. Ito's formula for
   v(s, x) = E[(e^(x + X_s) - e^k)_+], up to either time, gives both sides beyond v(mu0^2, 0); after the drift
   is taken out (Girsanov), with a common factor e^(k/2 - s/8)/2 left out, they are, for s = mu0^2,

       L(k) = integral over a < x < b of G(x) n(s, x - k),    n(s, y) = exp(-y^2/(2 s))/sqrt(2 pi s),
       R(k) = integral over 0 < r < T of e^(-r/8) n(s + r, k),    T = 2 * 0.14 epsilon^2,

   where G is Green's function, from 0, of Brownian motion that is killed at a, at b, and at the rate 1/8.
   The claim is L(k) <= R(k) for all k.
3. Killing less makes G larger: G(x) <= 2 (b - x_+)(x_- - a)/epsilon, with x_+ = max(x, 0), x_- = min(x, 0).
   And e^(-r/8) >= e^(-T/8) >= e^(-0.035), as epsilon <= 1. What is left has a scale of its own: put
   epsilon = 1. It is enough to have it at s = 1, as convolving both sides with a normal law gives it for
   every larger s. So two parameters are left, u = b in [0, 1] and k, and the inequality is

       2 (1 - u) int_0^u (u - x) n(1, x - k) dx + 2 u int_(u - 1)^0 (1 - u + x) n(1, x - k) dx
           <= e^(-0.035) int_0^0.28 n(1 + r, k) dr.

   tests/accounting/test_machine_checked_steps.py proves it in interval arithmetic for |k| <= 12 and all u.
   Beyond, for k >= 12 (the other end is its mirror image): n(1, x - k) <= n(1, u - k) e^(-(k - u)(u - x)) for
   x <= u, so the first integral is at most n(1, k - u)/(k - u)^2, and n(1, k - u) <= n(1, k - 1)
   e^(-(1 - u)(k - 1)); with (1 - u) e^(-(1 - u)(k - 1)) <= 1/(e (k - 1)) the first term is at most
   2 n(1, k - 1)/(e (k - 1)^3). The second is at most n(1, k)/(2 k). Together that is less than
   n(1, k - 1)/(2 (k - 1)). The right side is at least e^(-0.035) 0.08 exp(-k^2/2.4)/sqrt(2.56 pi), by r from
   0.2 on. The first is smaller at 12, and falls faster.

The filter. Let a budget b of mu^2/2 be fixed beforehand, and each answer be charged before it is drawn:
Gaussian noise its mu^2/2, a choice 0.14 epsilon^2 if epsilon <= 1 and at least epsilon^2/2 of the budget is
left after it. Then all answers together are no easier to tell apart than normal laws with mu^2/2 = b, though
every question, its noise and the order of questions may follow from earlier answers. By induction from the
last answer back: with b' left, what is still to come is at most as N(0, 1) against N(sqrt(2 b'), 1),
whatever the answers were; after Gaussian noise of mu^2/2 = b - b' that gives exactly b, and after a choice at
most b, by the claim with mu0^2 = 2 b' >= epsilon^2 (dominating pairs compose adaptively: Zhu, Dong and Wang
2022, theorem 10). It matters that what is left, not what was spent, is the noise beside a choice: only what
is left can be taken away by earlier answers.

The end. A release that ends before its budget is spent may lack the noise that its choices were counted
beside, so the sum of its costs does not bound it. The budget b does: an end is a function of the answers, and
to ask no more is one way to go on. So a ledger charges b wherever such a release ends. The first tier of a
release with audiences would need a bound of its own, below b, and has none where its choices count on the
noise of later tiers; so there is no ``pld`` with audiences.

So this is what a privacy loss distribution gives to a release that sets noise from its answers. A
distribution of fixed pairs (``numerical.pld_epsilon``) needs all scales of noise fixed before the first
answer; questions, and the order of the answers, may still follow from earlier ones.

Discrete noise counts as in ``gaussian_dp``: choices multiply both laws alike in its step 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from dpsynth.accounting.events import ExponentialEvent, RecordedEvent
from dpsynth.accounting.measures import GDP, GaussianDP, Loss, Measure

CHOICE = Fraction(14, 100)
"""The cost of a choice beside Gaussian noise, in squares of its epsilon."""
LARGEST = 1
"""Largest epsilon of such a choice."""
NOISE_LEFT = Fraction(1, 2)
"""The part of the budget that is left after a choice, at least, in squares of its epsilon."""


@dataclass(frozen=True)
class BesideNoise(GaussianDP):
    """mu^2/2 of Gaussian DP, with choices counted beside the noise that the rest of the budget pays for."""

    name = "pld"
    accountant = "pld"
    title = "Gaussian DP with choices by their loss distribution (mu^2/2)"
    composition = "privacy loss distribution"
    whole_only = True

    def exact_cost(self, loss: Loss) -> Fraction | None:
        """mu^2/2; of a choice 0.14 epsilon^2."""
        if isinstance(loss, ExponentialEvent):
            return CHOICE * loss.epsilon**2
        return loss.half_mu_squared

    def exponential_epsilon(self, price: float) -> float:
        """sqrt(price/0.14)."""
        return sqrt(price / float(CHOICE))

    def admits(self, event: object, left: Fraction) -> bool:
        """True but for a choice of a large epsilon, or with too little left after it."""
        if not isinstance(event, ExponentialEvent):
            return True
        return event.epsilon <= LARGEST and left >= NOISE_LEFT * event.epsilon**2

    @property
    def filter(self) -> Measure:
        """Gaussian DP: a release that keeps to a budget b has mu^2/2 = b as a whole."""
        return GDP


PLD = BesideNoise()


def admitted(events: Sequence[RecordedEvent]) -> bool:
    """True if the answers, in the order in which they were charged, keep to the filter of their own sum."""
    left = sum((PLD.cost(event) for event in events), Fraction(0))
    for event in events:
        left -= PLD.cost(event)
        if not PLD.admits(event, left):
            return False
    return True


def admits_steps(choosing: Fraction, after: Fraction) -> bool:
    """True if choices that cost no more than a price together are admitted with so much left after them."""
    squares = choosing / CHOICE
    return squares <= LARGEST and after >= NOISE_LEFT * squares
