"""Amplification of a guarantee by a secret Poisson sample of the units.

Each unit is in the sample with probability q, independently of all others, and a release asks the sample
alone. If the release on the sample is (e', d')-DP when a unit comes or goes, then the whole is

    (log(1 + q (e^e' - 1)), q d')-DP

under add/remove (Balle, Barthe and Gaboardi 2018, theorem 8; Kasiviswanathan et al. 2011). Proof: let a unit
come to a table T, and let P be the law of the outcome on T. On the larger table it is (1 - q) P + q R, where
R is the law with the unit in the sample. Sample by sample, R is (e', d')-close to P both ways. For any event,
(1 - q) P + q R <= (1 - q + q e^e') P + q d'. The other way, P <= e^e' R + d' makes the mixture at least (1 -
q + q e^-e') P - q e^-e' d'. Now (1 - q + q e^e') (1 - q + q e^-e') >= 1, as a + 1/a >= 2, and e^-e' <= 1 - q
+ q e^-e'. So P <= (1 - q + q e^e') ((1 - q) P + q R) + q d'.

It is tight: for every (e', d') that the release reaches, the first direction is an equality. And it holds for
the release as a whole, however many answers it has and however they are chosen, since all of them ask one
sample.

Other rates. The probability that is drawn is q rounded down by less than 2^-64. Both figures grow with q, so
they hold for what is drawn.

What does not hold: with exchanged units (replace-one) another bound holds, and a number of rows that is
public would not be that of the sample. And the whole is not mu-GDP nor rho-zCDP for any smaller mu or rho
than the release on the sample is: at large losses, q is only a factor on delta. That of the sample does hold
for the whole, since the law is a mixture over samples, and mixing makes no two laws easier to tell apart.

Invariant: what a sample costs is rounded up, and what is left for the sample rounded down.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Context, localcontext
from fractions import Fraction

from dpsynth.accounting.amount import Amount, decimal_of, float_up
from dpsynth.accounting.events import Guarantee

_EXACT = Context(prec=120)
_MARGIN = Fraction(1, 10**60)
"""Margin above the rounding error of 120 digits, relative, for losses and rates of at least 1e-9."""

COIN_BITS = 64
"""Bits of a unit's coin."""


@dataclass(frozen=True)
class Sampling:
    """A Poisson sample of the units.

    Attributes:
        rate: q, the probability with which a unit is in it, above 0 and below 1.

    Raises:
        ValueError: the rate is none.
    """

    rate: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.rate < 1:
            raise ValueError("a rate of sampling is above 0 and below 1")

    @property
    def threshold(self) -> int:
        """The number of coins of ``COIN_BITS`` bits, the least ones, with which a unit is in the sample."""
        return int(self.rate * (1 << COIN_BITS))

    def of_whole(self, guarantee: Guarantee, of_sample: Fraction, delta: Fraction) -> Guarantee:
        """The guarantee of the whole release from that of the release on the sample.

        It has neither rho nor mu: no smaller ones hold than those of the sample.

        Args:
            of_sample: its epsilon, before it was rounded to a float.
        """
        whole = self.whole(Amount(of_sample))
        return replace(
            guarantee,
            epsilon=float_up(whole.epsilon),
            delta=float(delta),
            rho=None,
            mu=None,
            sample_rate=float(self.rate),
        )

    def whole(self, of_sample: Amount) -> Amount:
        """The (epsilon, delta) of the whole release, rounded up, from that of the release on the sample."""
        return Amount(_log1p(self.rate * _expm1(of_sample.epsilon, 1), 1), self.rate * of_sample.delta)

    def of_sample(self, whole: Amount) -> Amount:
        """The largest (epsilon, delta), epsilon rounded down, that a release on the sample may have.

        Raises:
            ValueError: delta would be 1 or more.
        """
        delta = whole.delta / self.rate
        if delta >= 1:
            raise ValueError("a delta of the sample is below 1")
        # Rounded down by more than ``whole`` rounds up: ``whole`` of this is not above what was given.
        return Amount(_log1p(_expm1(whole.epsilon, -8) / self.rate, -8), delta)


def _expm1(x: Fraction, towards: int) -> Fraction:
    """e^x - 1, rounded up (above 0) or down (below 0) by so many margins."""
    with localcontext(_EXACT):
        return _rounded(Fraction(decimal_of(x).exp()) - 1, towards)


def _log1p(x: Fraction, towards: int) -> Fraction:
    """log(1 + x), rounded up (above 0) or down (below 0) by so many margins."""
    with localcontext(_EXACT):
        return _rounded(Fraction(decimal_of(1 + x).ln()), towards)


def _rounded(found: Fraction, towards: int) -> Fraction:
    return max(Fraction(0), found * (1 + towards * _MARGIN) + towards * _MARGIN * _MARGIN)
