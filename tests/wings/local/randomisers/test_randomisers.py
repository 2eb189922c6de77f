"""Randomisers: their exact privacy loss by enumeration, their draws against it, and the choice among them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log, sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.wings.local.randomisers import (
    Answer,
    DirectResponse,
    LocalHashing,
    Randomiser,
    UnaryEncoding,
    best,
    cell_variance,
    coins,
    dice,
    log_above,
    mean_variance,
    odds_within,
    protocol,
)
from tests.examples import examples
from tests.thinned import some

KINDS = (DirectResponse, UnaryEncoding, LocalHashing)
EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(2), Fraction(4))
UNLIKELY = 6.5
"""Standard deviations that a sound draw stays below, but for a chance of 1e-10."""


def answers_of(randomiser: Randomiser) -> Iterator[tuple[Answer, ...]]:
    """All answers that share their public randomness: of local hashing, those of one hash function."""
    cells = randomiser.cells
    if isinstance(randomiser, DirectResponse):
        yield tuple(range(cells))
    elif isinstance(randomiser, UnaryEncoding):
        lines = (np.packbits(np.array(bits, np.uint8)) for bits in product((0, 1), repeat=cells))
        yield tuple(line.tobytes().hex() for line in lines)
    elif isinstance(randomiser, LocalHashing):
        for answer in randomiser.randomise(np.zeros(40, np.int64)):
            yield tuple(f"{str(answer)[:24]}{v:04x}" for v in range(randomiser.response.cells))


def worst_ratio(randomiser: Randomiser) -> Fraction:
    """The largest ratio of probabilities of one answer under two cells, over all answers."""
    worst = Fraction(0)
    for answers in answers_of(randomiser):
        laws = [[randomiser.probability(a, c) for a in answers] for c in range(randomiser.cells)]
        assert all(sum(law) == 1 for law in laws)
        assert all(randomiser.well_formed(a) for a in answers)
        worst = max(worst, *(p / q for one in laws for two in laws for p, q in zip(one, two, strict=True)))
    return worst


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_privacy_loss_is_exactly_the_one_stated(
    kind: type[DirectResponse | UnaryEncoding | LocalHashing], epsilon: Fraction
) -> None:
    odds = odds_within(epsilon)
    mpmath.mp.dps = 40
    limit = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    assert mpmath.mpf(odds.numerator) / odds.denominator <= limit
    for cells in (2, 3, 5):
        randomiser = kind.within(cells, odds)
        assert worst_ratio(randomiser) == randomiser.odds <= odds
        assert randomiser.odds > odds * (1 - Fraction(1, 10**9))


def test_warners_and_the_two_coin_protocols_loss_is_exact() -> None:
    for gamma in (Fraction(1, 4), Fraction(2, 5), Fraction(1, 100)):
        randomiser = DirectResponse.warner(gamma)
        assert worst_ratio(randomiser) == (Fraction(1, 2) + gamma) / (Fraction(1, 2) - gamma)
        assert randomiser.own == Fraction(1, 2) + gamma
    assert worst_ratio(DirectResponse.two_coin()) == 3
    assert DirectResponse.two_coin().probability(1, 1) == Fraction(3, 4)


def test_a_wrong_loss_would_be_noticed() -> None:
    class Louder(DirectResponse):
        @property
        def odds(self) -> Fraction:
            return super().odds * Fraction(99, 100)

    louder = Louder(3, Fraction(1, 2))
    assert worst_ratio(louder) != louder.odds


@given(st.fractions(min_value="1/1000", max_value=20))
@examples(200)
def test_odds_and_losses_are_rounded_to_the_safe_side(epsilon: Fraction) -> None:
    odds = odds_within(epsilon)
    mpmath.mp.dps = 60
    exact = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
    assert 0 <= exact - mpmath.mpf(odds.numerator) / odds.denominator < mpmath.mpf(2) ** -31
    if odds > 1:
        found = log_above(odds)
        lost = mpmath.mpf(found.numerator) / found.denominator - mpmath.log(
            mpmath.mpf(odds.numerator) / odds.denominator
        )
        assert 0 <= lost < 1e-11


def largest_deviation(randomiser: Randomiser, drawn: Randomiser, reports: int) -> float:
    """The deviation of the shares of supported cells from p and q, in standard deviations, at its largest.

    Args:
        randomiser: the one that states p and q.
        drawn: the one that draws the reports.
        reports: number of reports of each cell.
    """
    worst = 0.0
    for cell in range(randomiser.cells):
        support = randomiser.support(drawn.randomise(np.full(reports, cell)))
        for other, number in enumerate(support.tolist()):
            p = float(randomiser.own if other == cell else randomiser.other)
            worst = max(worst, abs(number - reports * p) / sqrt(reports * p * (1 - p)))
    return worst


@pytest.mark.parametrize("kind", some(KINDS, 2))
def test_draws_have_the_probabilities_that_are_stated(
    kind: type[DirectResponse | UnaryEncoding | LocalHashing],
) -> None:
    for cells in (2, 4, 9):
        randomiser = kind.within(cells, odds_within(Fraction(1)))
        assert largest_deviation(randomiser, randomiser, 20_000) < UNLIKELY


@pytest.mark.parametrize(
    ("kind", "cells"), [(DirectResponse, 2**20), (LocalHashing, 2**20), (UnaryEncoding, 65)]
)
def test_the_privacy_loss_among_many_cells_is_the_one_stated(
    kind: type[DirectResponse | UnaryEncoding | LocalHashing], cells: int
) -> None:
    """By the probabilities of answers that were drawn, under some cells and the last one."""
    odds = odds_within(Fraction(1))
    randomiser = kind.within(cells, odds)
    tried = [*range(6), cells - 1]
    for answer in randomiser.randomise(np.array(tried)):
        laws = [randomiser.probability(answer, cell) for cell in tried]
        assert max(laws) / min(laws) <= odds
    assert odds * (1 - Fraction(1, 10**6)) < randomiser.odds <= odds


def test_bits_of_many_cells_have_the_probabilities_that_are_stated_to_the_last_report() -> None:
    """2^22 bits are drawn at a time, and here are five times as many."""
    cells, reports = 2**15, 640
    randomiser = UnaryEncoding.within(cells, odds_within(Fraction(1)))
    drawn = randomiser.randomise(np.full(reports, cells - 1))
    for start in range(0, reports, 128):
        support = randomiser.support(drawn[start : start + 128])
        assert abs(int(support[-1]) - 64) < UNLIKELY * sqrt(128 / 4)
        bits, q = 128 * (cells - 1), float(randomiser.other)
        assert abs(int(support[:-1].sum()) - bits * q) < UNLIKELY * sqrt(bits * q * (1 - q))


def test_lies_among_many_cells_are_as_many_as_stated() -> None:
    randomiser = DirectResponse.within(1000, odds_within(Fraction(6)))
    own = int(randomiser.support(randomiser.randomise(np.full(100_000, 999)))[-1])
    p = float(randomiser.own)
    assert abs(own - 100_000 * p) < UNLIKELY * sqrt(100_000 * p * (1 - p))


def test_another_gamma_in_the_draws_is_caught() -> None:
    stated, drawn = DirectResponse.warner(Fraction(1, 4)), DirectResponse.warner(Fraction(11, 40))
    assert largest_deviation(stated, stated, 100_000) < UNLIKELY < largest_deviation(stated, drawn, 100_000)
    unary = UnaryEncoding.within(6, odds_within(Fraction(1)))
    off = replace(unary, other=unary.other * Fraction(9, 10))
    assert largest_deviation(unary, off, 100_000) > UNLIKELY


def test_coins_and_dice_are_fair() -> None:
    for sides in (1, 2, 3, 7, 100):
        counts = np.bincount(dice(sides, 60_000), minlength=sides)
        spread = sqrt(60_000 / sides * (1 - 1 / sides)) or 1.0
        assert np.abs(counts - 60_000 / sides).max() < UNLIKELY * spread
    for heads in (Fraction(0), Fraction(1), Fraction(1, 3), Fraction(2, 7)):
        found = int(coins(heads, 60_000).sum())
        assert abs(found - 60_000 * heads) <= UNLIKELY * sqrt(60_000 * heads * (1 - heads))


def test_a_die_that_takes_the_remainder_would_be_noticed() -> None:
    words = dice(4, 60_000) % 3
    counts = np.bincount(words, minlength=3)
    assert np.abs(counts - 20_000).max() > UNLIKELY * sqrt(60_000 * 2 / 9)


def test_warners_variance_is_at_most_that_of_dwork_and_roth() -> None:
    """1/(16 gamma^2) bounds the noise, 1/(16 gamma^2) - 1/4, with the sampling of a share, at most 1/4."""
    for gamma in (Fraction(1, 4), Fraction(2, 5), Fraction(1, 50)):
        randomiser = DirectResponse.warner(gamma)
        for share in (0.0, 0.3, 0.5, 1.0):
            bound = 1 / (16 * float(gamma) ** 2)
            assert cell_variance(randomiser, share) == pytest.approx(bound - 1 / 4)
            assert cell_variance(randomiser, share) + share * (1 - share) <= bound + 1e-12


def test_published_variances() -> None:
    """Wang, Blocki, Li and Jha 2017, table 1: 4 e^eps/(e^eps - 1)^2, and (k - 2 + e^eps)/(e^eps - 1)^2."""
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        odds = odds_within(Fraction(epsilon))
        e = float(np.exp(epsilon))
        optimum = 4 * e / (e - 1) ** 2
        assert cell_variance(UnaryEncoding.within(100, odds), 0.0) == pytest.approx(optimum)
        # g is a whole number, and nearly best.
        assert optimum <= cell_variance(LocalHashing.within(100, odds), 0.0) * (1 + 1e-9) <= 1.1 * optimum
        direct = cell_variance(DirectResponse.within(10, odds), 0.0)
        assert direct == pytest.approx((8 + e) / (e - 1) ** 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_protocol_of_least_predicted_variance_is_chosen(epsilon: Fraction) -> None:
    odds = odds_within(epsilon)
    for cells in (2, 3, 8, 20, 100, 1000):
        least = min(mean_variance(kind.within(cells, odds)) for kind in KINDS)
        assert mean_variance(best(cells, odds)) == least
        assert best(cells, odds).odds <= odds
    assert isinstance(best(2, odds), DirectResponse)
    assert not isinstance(best(1000, odds), DirectResponse)
    assert isinstance(best(50_000, odds), LocalHashing if epsilon < 4 else object)


def test_protocols_by_name() -> None:
    odds = odds_within(Fraction(2))
    assert protocol("two_coin", 2, odds).odds == 3
    assert protocol("warner", 2, odds, Fraction(1, 4)).odds == 3
    assert protocol("warner", 2, odds).odds == odds
    for name in ("k_ary", "unary", "hashing", "auto"):
        assert protocol(name, 6, odds).cells == 6
    with pytest.raises(ValueError, match="two cells"):
        protocol("warner", 3, odds)


def test_opendp_states_the_same_loss_for_the_same_probability() -> None:
    """OpenDP's randomised response takes a float probability; the loss that it proves is at least ours."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    for gamma in (Fraction(1, 4), Fraction(3, 8)):
        ours = DirectResponse.warner(gamma)
        theirs = dp.m.make_randomized_response_bool(float(ours.own))
        assert log(ours.odds) <= theirs.map(1) < log(ours.odds) + 1e-9


@pytest.mark.parametrize("randomiser", [kind.within(11, odds_within(Fraction(1))) for kind in KINDS], ids=str)
def test_nothing_but_an_answer_is_well_formed(randomiser: Randomiser) -> None:
    good = randomiser.randomise(np.arange(11))
    assert all(map(randomiser.well_formed, good))
    bad: Sequence[object] = (None, True, False, -1, 11, 1.0, "", "g", "00", [], {}, "ff" * 1000, "FFFF", "٣")
    assert not any(map(randomiser.well_formed, bad))
    if not isinstance(good[0], int):
        texts = [str(a) for a in good]
        assert not any(randomiser.well_formed(t + "0") or randomiser.well_formed(t[1:]) for t in texts)
        assert not any(randomiser.well_formed(t[:-1] + "x") for t in texts)


def test_a_unary_answer_sets_no_bit_beyond_the_last_cell() -> None:
    randomiser = UnaryEncoding.within(11, odds_within(Fraction(1)))
    assert not randomiser.well_formed("ffff")
    assert randomiser.well_formed("ffe0")


def test_a_hash_answer_has_coefficients_below_the_prime() -> None:
    randomiser = LocalHashing.within(11, odds_within(Fraction(1)))
    assert randomiser.well_formed("7ffffffe" * 3 + "0000")
    assert not randomiser.well_formed("7fffffff" * 3 + "0000")
    assert not randomiser.well_formed("00000000" * 3 + f"{randomiser.response.cells:04x}")
