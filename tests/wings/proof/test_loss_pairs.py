"""Pairs of laws have the divergences, deltas and attackers that mpmath finds, to 1e-9."""

from itertools import pairwise
from math import exp, inf, log

import mpmath
import pytest

from dpsynth.wings.proof.loss_pairs import (
    AtomicPair,
    BoundedRangePair,
    ConcentratedBound,
    LossPair,
    NormalPair,
    gaussian_entropy,
    laplace_entropy,
)

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.5)

PAIRS: dict[str, LossPair] = {
    "normal": NormalPair(0.7),
    "normal that may fail": NormalPair(0.7, 1e-4),
    "coin": AtomicPair.coin(1.2),
    "coin that may fail": AtomicPair.coin(1.2, 1e-3),
    "answers of five values": AtomicPair.responses(1.2, 5),
    "discrete Laplace": AtomicPair.discrete_laplace(2.0, 1),
    "discrete Laplace moved by three": AtomicPair.discrete_laplace(2.0, 3),
    "discrete Gaussian": AtomicPair.discrete_gaussian(1.5, 2),
    "a choice": BoundedRangePair(1.2),
    "zCDP": ConcentratedBound(0.05),
}


def close(found, true, tolerance=1e-9):
    assert abs(found - float(true)) <= tolerance * max(1.0, abs(float(true))), (found, true)


@pytest.mark.parametrize("mu", [0.01, 0.7, 5.0])
def test_deltas_and_hits_of_normal_laws_are_those_of_mpmath(mu):
    with mpmath.workdps(40):
        for epsilon in EPSILONS:
            x = mpmath.mpf(epsilon) / mu
            true = mpmath.ncdf(mpmath.mpf(mu) / 2 - x) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mpmath.mpf(mu) / 2 - x
            )
            close(NormalPair(mu).delta(epsilon), true)
        for share in (0.001, 0.2, 0.9):
            quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(share) - 1)
            close(NormalPair(mu).hits(share), mpmath.ncdf(quantile + mu))


@pytest.mark.parametrize(("scale", "moved"), [(0.5, 1), (2.0, 1), (2.0, 3), (7.3, 10)])
def test_divergences_of_discrete_laplace_noise_are_sums_over_its_cells(scale, moved):
    pair = AtomicPair.discrete_laplace(scale, moved)
    with mpmath.workdps(30):
        ratio = mpmath.exp(-1 / mpmath.mpf(scale))
        mean = (1 - ratio) / (1 + ratio)
        cells = range(-int(80 * scale) - 1, int(80 * scale) + moved + 1)
        laws = [(mean * ratio ** abs(x), mean * ratio ** abs(x - moved)) for x in cells]
        _divergences(pair, laws)
        close(laplace_entropy(scale), -sum(p * mpmath.log(p, 2) for p, _ in laws))


@pytest.mark.parametrize(("sigma", "moved"), [(0.8, 1), (1.5, 2), (4.0, 1)])
def test_divergences_of_discrete_gaussian_noise_are_sums_over_its_cells(sigma, moved):
    pair = AtomicPair.discrete_gaussian(sigma, moved)
    with mpmath.workdps(30):
        cells = range(-int(14 * sigma) - 2, int(14 * sigma) + moved + 3)
        here = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * sigma**2)) for x in cells]
        there = [mpmath.exp(-(mpmath.mpf(x - moved) ** 2) / (2 * sigma**2)) for x in cells]
        total = mpmath.fsum(here)
        laws = [(p / total, q / total) for p, q in zip(here, there, strict=True)]
        _divergences(pair, laws, orders=(1.0, 1.5, 2.0))
        # The divergence of order a is a moved^2/(2 sigma^2) exactly where a moved is a whole number.
        close(pair.renyi(2.0), mpmath.mpf(moved) ** 2 / sigma**2)
        close(gaussian_entropy(sigma), -sum(p * mpmath.log(p, 2) for p, _ in laws))


def _divergences(pair, laws, orders=(1.0, 1.5, 2.0, 16.0)):
    for epsilon in EPSILONS:
        close(pair.delta(epsilon), mpmath.fsum(max(p - mpmath.exp(epsilon) * q, 0) for p, q in laws))
    for order in orders:
        if order == 1:
            true = mpmath.fsum(p * mpmath.log(p / q) for p, q in laws)
        else:
            true = mpmath.log(mpmath.fsum(p * (p / q) ** (order - 1) for p, q in laws)) / (order - 1)
        close(pair.renyi(order), true)


def test_randomised_response_keeps_the_true_value_as_its_formula_says():
    kept, other = AtomicPair.responses(log(3), 2).atoms[0]
    assert (kept, other) == (pytest.approx(0.75, abs=1e-15), pytest.approx(0.25, abs=1e-15))
    for values in (2, 3, 50):
        atoms = AtomicPair.responses(1.2, values).atoms
        close(atoms[0][0], exp(1.2) / (exp(1.2) + values - 1))
        for law in zip(*atoms, strict=True):
            close(sum(law), 1)
        close(AtomicPair.responses(1.2, values).largest_loss, 1.2)


def test_the_coin_reaches_the_optimal_composition_of_pure_mechanisms():
    """Kairouz, Oh and Viswanath 2015, theorem 3.3, for one mechanism: (epsilon - 0, 0)."""
    pair = AtomicPair.coin(1.2, 1e-3)
    close(pair.delta(1.2), 1e-3)
    close(AtomicPair.coin(1.2).delta(1.2), 0)
    assert pair.largest_loss == inf
    assert pair.renyi(2.0) == inf


def test_a_choice_tells_as_much_as_the_worst_pair_at_the_ends_of_its_range():
    pair = BoundedRangePair(1.2)
    with mpmath.workdps(30):
        grid = [mpmath.mpf(12) / 10 * k / 4000 for k in range(1, 4000)]
        e = mpmath.mpf(12) / 10
        points = [(t, (mpmath.exp(e - t) - 1) / (mpmath.exp(e) - 1)) for t in grid]
        for epsilon in (0.0, 0.3, 1.0):
            best = max(q * max(mpmath.exp(t) - mpmath.exp(epsilon), 0) for t, q in points)
            close(pair.delta(epsilon), best, 1e-6)
        for share in (0.3, 0.9):
            loss = pair.loss_not_exceeded(share)
            assert max(mpmath.exp(t) * q for t, q in points if t > loss) <= 1 - share + 1e-12
    # Bounded range: Kullback-Leibler at most epsilon^2/8, and not much less for a small epsilon.
    assert 0.95 * 1.2**2 / 8 <= pair.renyi(1.0) <= 1.2**2 / 8


def test_bounds_of_zcdp_are_those_of_the_reference_value_and_hold_of_gaussian_noise():
    """At rho = 0.05 and delta = 1e-6 epsilon is 1.4716 (Canonne, Kamath and Steinke 2020)."""
    bound, exact = ConcentratedBound(0.05), NormalPair(0.1**0.5)
    assert bound.epsilon(1e-6) == pytest.approx(1.4716, abs=5e-5)
    assert exact.epsilon(1e-6) == pytest.approx(1.3676, abs=5e-5)
    for epsilon in EPSILONS:
        assert bound.delta(epsilon) >= exact.delta(epsilon)
    for share in (0.001, 0.1, 0.5):
        assert bound.hits(share) >= exact.hits(share) - 1e-12
        assert bound.loss_not_exceeded(share) >= exact.loss_not_exceeded(share)


@pytest.mark.parametrize("name", PAIRS)
def test_figures_of_a_pair_agree_with_each_other(name):
    pair = PAIRS[name]
    deltas = [pair.delta(epsilon) for epsilon in EPSILONS]
    assert all(a >= b >= 0 for a, b in pairwise(deltas))
    hits = [pair.hits(share) for share in (0.0, 0.01, 0.3, 0.7, 1.0)]
    assert all(a <= b <= 1 for a, b in pairwise(hits))
    renyi = [pair.renyi(order) for order in (1.0, 1.01, 2.0, 8.0)]
    assert all(a <= b * (1 + 1e-9) for a, b in pairwise(renyi))
    assert renyi[-1] <= pair.largest_loss * (1 + 1e-12)
    for epsilon in EPSILONS:
        for share in (0.01, 0.3):
            assert pair.hits(share) <= exp(epsilon) * share + pair.delta(epsilon) + 1e-6
    delta = pair.delta(0.3)
    if 1e-3 < delta < pair.delta(0.0):
        assert pair.epsilon(delta) == pytest.approx(0.3, abs=1e-8)
    assert pair.best_guess == pytest.approx((1 + deltas[0]) / 2)
    assert pair.loss_not_exceeded(0.2) <= pair.loss_not_exceeded(0.9) <= pair.largest_loss


@pytest.mark.parametrize(
    ("pair", "delta", "epsilon"),
    [
        (AtomicPair.coin(1.2), 0.0, 1.2),
        (AtomicPair.coin(0.3), 0.0, 0.3),
        (AtomicPair.coin(1.2, 1e-6), 1e-6, 1.2),
        (AtomicPair.coin(1.2), 0.9, 0.0),
        (BoundedRangePair(1.2), 0.0, 1.2),
        (AtomicPair.coin(1.2, 1e-3), 1e-4, inf),
        (NormalPair(0.7, 0.1), 0.05, inf),
    ],
)
def test_the_epsilon_is_the_least_also_where_delta_stays_the_same_from_it_on(pair, delta, epsilon):
    assert pair.epsilon(delta) == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.parametrize(
    ("whole", "base"),
    [(NormalPair(0.7, 0.25), NormalPair(0.7)), (ConcentratedBound(0.3, 0.25), ConcentratedBound(0.3))],
)
def test_what_may_fail_reveals_all_with_that_probability(whole, base):
    for epsilon in EPSILONS:
        close(whole.delta(epsilon), 0.25 + 0.75 * base.delta(epsilon))
    assert whole.renyi(2.0) == inf and base.renyi(2.0) < inf
    assert whole.loss_not_exceeded(0.8) == inf > whole.loss_not_exceeded(0.7)
    assert base.loss_not_exceeded(1.0) == inf


def test_losses_and_divergences_of_normal_laws_and_of_zcdp_have_their_closed_forms():
    close(NormalPair(0.7).renyi(3.0), 3 * 0.7**2 / 2)
    close(NormalPair(0.7).loss_not_exceeded(0.975), 0.7**2 / 2 + 0.7 * 1.959963984540054)
    close(NormalPair(0.7, 0.25).loss_not_exceeded(0.75 * 0.975), 0.7**2 / 2 + 0.7 * 1.959963984540054)
    close(ConcentratedBound(0.3).renyi(3.0), 0.9)
    close(ConcentratedBound(0.3).loss_not_exceeded(0.9), 0.3 + 2 * (0.3 * log(10)) ** 0.5)
    close(ConcentratedBound(0.3, 0.05).loss_not_exceeded(0.85), 0.3 + 2 * (0.3 * log(10)) ** 0.5)
    close(ConcentratedBound(0.01).delta(0.0), 0.005**0.5)
    assert 0.99 < ConcentratedBound(10.0).delta(0.0) <= 1


def test_the_coin_is_randomised_response_that_may_reveal_all():
    three = log(3)
    expected = ((0.2, 0.0), (0.6, 0.2), (0.2, 0.6), (0.0, 0.2))
    for found, true in zip(AtomicPair.coin(three, 0.2).atoms, expected, strict=True):
        assert found == pytest.approx(true, abs=1e-15)
    plain = AtomicPair.coin(three)
    assert plain == AtomicPair.coin(three, 0.0)
    assert [plain.loss_not_exceeded(share) for share in (0.2, 0.25, 0.3, 1.0)] == pytest.approx(
        [-three, -three, three, three]
    )
    # Probabilities that add up to 1 but for their last digits.
    assert AtomicPair(((0.7, 0.2), (0.3 - 1e-12, 0.8))).loss_not_exceeded(1.0) == pytest.approx(log(3.5))
    # Of a large loss the divergence of a high order is no overflow.
    close(AtomicPair.coin(60.0).renyi(16.0), 60.0)


def test_the_best_attacker_on_a_coin_has_the_trade_off_of_a_coin():
    pair = AtomicPair.coin(1.2)
    for share in (0.1, 0.5, 0.9):
        true = min(exp(1.2) * share, 1 - exp(-1.2) * (1 - share))
        assert pair.hits(share) == pytest.approx(true, abs=1e-9)
    assert (pair.hits(-1.0), pair.hits(2.0)) == (0.0, 1.0)


def test_a_quantile_of_a_choice_is_where_its_chance_falls_to_the_rest():
    e = 1.2
    for share in (0.3, 0.9):
        close(BoundedRangePair(e).loss_not_exceeded(share), log(exp(e) - (1 - share) * (exp(e) - 1)))
    assert BoundedRangePair(e).loss_not_exceeded(0.0) == -e


@pytest.mark.parametrize("sigma", [49.0, 51.0])
def test_the_entropy_of_wide_noise_is_that_of_continuous_noise(sigma):
    close(gaussian_entropy(sigma), mpmath.log(sigma * mpmath.sqrt(2 * mpmath.pi * mpmath.e), 2))
