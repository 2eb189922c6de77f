"""Smoothing: the best steps of all, held against every way to cut a histogram into runs."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.model.denoising import NOBODY, STEP, outside, smoothed
from tests.examples import examples


def cost(counts, cuts, variance, step):
    """Squared deviations in variances, and the price of the steps, of one way to cut."""
    runs = [np.asarray(counts[a:b], dtype=float) for a, b in pairwise((0, *cuts, len(counts)))]
    return sum(((r - r.mean()) ** 2).sum() for r in runs) / variance + step * len(runs)


def least(counts, variance, step):
    """The least cost of all ways to cut."""
    inner = range(1, len(counts))
    return min(cost(counts, c, variance, step) for k in range(len(counts)) for c in combinations(inner, k))


def cuts_of(counts, found):
    """Where a fit begins a new run; equal neighbours that are no run of their own have the same mean."""
    return [i for i in range(1, len(found)) if found[i] != found[i - 1]]


COUNTS = st.lists(st.integers(-50, 300), min_size=1, max_size=9)


@given(COUNTS, st.floats(0.5, 5000), st.floats(0.1, 20))
@examples(80)
def test_no_other_cut_into_steps_explains_the_counts_at_less(counts, variance, step):
    found = smoothed(np.array(counts, dtype=float), variance, step)
    cuts = cuts_of(counts, found)
    means = [np.mean(counts[a:b]) for a, b in pairwise((0, *cuts, len(counts)))]
    expected = np.repeat(means, np.diff([0, *cuts, len(counts)]))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert cost(counts, cuts, variance, step) <= least(counts, variance, step) * (1 + 1e-9) + 1e-6


@given(st.lists(st.integers(-1000, 10**6), min_size=1, max_size=60), st.floats(0.01, 1e6))
def test_rows_are_moved_between_values_and_none_are_made_or_lost(counts, variance):
    found = smoothed(np.array(counts, dtype=float), variance)
    assert found.sum() == pytest.approx(sum(counts), rel=1e-9, abs=1e-4)
    assert min(counts) - 1e-6 <= found.min() and found.max() <= max(counts) + 1e-6


def test_values_that_stand_out_by_more_than_their_noise_keep_what_they_have():
    rng = np.random.default_rng(0)
    for _ in range(50):
        truth = np.array([1000, 0, 0, 500, 0, 0, 0, 250, 0, 0])
        noisy = truth + rng.normal(scale=10, size=10)
        found = smoothed(noisy, 100.0)
        peaks = truth > 0
        np.testing.assert_allclose(found[peaks], noisy[peaks])
        assert (np.abs(found - truth) < 50).all()


def test_a_flat_histogram_and_a_long_step_come_out_nearer_than_they_were_measured():
    rng = np.random.default_rng(1)
    for truth in (np.full(100, 40.0), np.repeat([200.0, 20.0], 50)):
        noisy = truth + rng.normal(scale=15, size=(40, 100))
        found = np.array([smoothed(row, 225.0) for row in noisy])
        assert ((found - truth) ** 2).mean() < 0.3 * ((noisy - truth) ** 2).mean()


def test_counts_without_any_likeness_lose_next_to_nothing():
    rng = np.random.default_rng(2)
    truth = rng.permutation(np.arange(0, 6000, 60)).astype(float)
    noisy = truth + rng.normal(scale=15, size=(40, 100))
    found = np.array([smoothed(row, 225.0) for row in noisy])
    assert ((found - truth) ** 2).mean() < 1.05 * ((noisy - truth) ** 2).mean()


def test_the_order_of_values_matters_and_its_direction_does_not():
    counts = np.array([100.0, 104, 98, 30, 33, 27, 31])
    found = smoothed(counts, 25.0)
    assert len(set(found.tolist())) == 2
    np.testing.assert_allclose(smoothed(counts[::-1], 25.0), found[::-1])
    assert len(set(smoothed(counts[[0, 3, 1, 4, 2, 5, 6]], 25.0).tolist())) > 2


def test_no_price_no_smoothing_and_no_precision_no_steps():
    counts = np.array([5.0, 9, -2, 7])
    assert smoothed(counts, 4.0, step=0.0).tolist() == counts.tolist()
    np.testing.assert_allclose(smoothed(counts, np.inf), 4.75)
    np.testing.assert_allclose(smoothed(counts, 1e-9), counts)
    assert smoothed(np.array([3.0]), 1.0).tolist() == [3.0] and smoothed(np.array([]), 1.0).size == 0


@pytest.mark.parametrize("variance", [0.0, -1.0, np.nan])
def test_counts_without_noise_are_refused(variance):
    with pytest.raises(ValueError, match="variance above 0"):
        smoothed(np.array([1.0, 2.0]), variance)


def test_the_counts_that_came_in_stay_as_they_were():
    for step in (STEP, 0.0):
        counts = np.array([5.0, 6, 90])
        smoothed(counts, 4.0, step)[:] = 0
        assert counts.tolist() == [5, 6, 90]


def test_ten_thousand_values_and_counts_of_millions_are_cut_where_they_change():
    rng = np.random.default_rng(3)
    truth = np.repeat([3_000_000.0, 10.0, 800.0, 0.0], 2500)
    found = smoothed(truth + rng.normal(scale=20, size=10_000), 400.0)
    assert (np.abs(found - truth) < 100).all()
    jumps = np.flatnonzero(np.diff(found))
    assert {2499, 4999, 7499} <= set(jumps.tolist())
    assert np.mean((found - truth) ** 2) < 0.3 * 400


def test_values_are_outside_from_where_no_step_stands_out_to_either_end():
    smooth = np.array([1.0, 1.0, 90.0, 0.0, 0.0, -3.0, 45.0, 25.0, 2.0, 25.0, 2.0])
    assert outside(smooth, 100.0).tolist() == [True, True, *[False] * 6, *[True] * 3]
    # Beyond a gap more is needed; where nothing is sure all that stands out counts.
    assert outside(smooth[::-1], 100.0).tolist() == [*[True] * 3, *[False] * 6, True, True]
    assert outside(np.array([25.0, 0.0, 25.0, 0.0]), 100.0).tolist() == [False, False, False, True]
    # An end holds all that lies beyond it, so it needs no more than other values next to it.
    assert outside(np.array([90.0, 0.0, 0.0, 21.0]), 100.0).tolist() == [False, True, True, False]
    assert outside(np.zeros(0), 100.0).tolist() == []
    # Four values of 11 together are more than noise of 10 each makes of none, one alone is not.
    assert not outside(np.full(4, 11.0), 100.0).any()
    assert outside(np.array([11.0]), 100.0).all()
    assert outside(np.array([NOBODY * 10]), 100.0).all() and not outside(np.array([20.1]), 100.0).any()


def test_noise_where_nobody_is_seldom_stands_out():
    rng = np.random.default_rng(1)
    empty = [outside(smoothed(rng.normal(scale=30, size=40), 900.0), 900.0).mean() for _ in range(200)]
    assert np.mean(empty) > 0.85


def test_noise_beyond_all_rows_seldom_gives_them_to_far_values_and_tails_keep_theirs():
    """In 55 of 100 columns it would, were two standard deviations enough anywhere."""
    rng, head = np.random.default_rng(2), np.array([600.0, 800, 400, 150, 50])
    far = [
        outside(smoothed(np.r_[head, np.zeros(60)] + rng.normal(0, 10, 65), 100.0), 100.0)[8:].all()
        for _ in range(200)
    ]
    assert np.mean(far) > 0.8
    tail = 5_000 * np.exp(-np.arange(100) / 15) / 15
    kept = [tail[~outside(smoothed(tail + rng.normal(0, 10, 100), 100.0), 100.0)].sum() for _ in range(50)]
    assert np.mean(kept) > 0.97 * tail.sum()
