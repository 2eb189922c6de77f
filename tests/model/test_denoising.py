"""Denoising: nearer to the truth than the answer and the estimate, with many empty cells and without."""

import numpy as np
import pytest
from scipy.special import ndtr

from dpsynth.model.denoising import denoised, independent, normal_shares, with_trends

SIGMA = 40.0


def l1(found, truth):
    return float(np.abs(found - truth).sum())


def diagonal(rng):
    """Two columns of 30 values that nearly determine each other: most cells are empty."""
    values = rng.integers(0, 30, 60_000)
    other = np.clip(values + rng.integers(-1, 2, 60_000), 0, 29)
    return np.histogram2d(values, other, bins=(30, 30))[0]


def loose(rng):
    """Two columns that hardly depend on each other, of uneven values."""
    first = np.minimum(rng.geometric(0.1, 60_000) - 1, 29)
    second = np.where(rng.random(60_000) < 0.1, first, np.minimum(rng.geometric(0.1, 60_000) - 1, 29))
    return np.histogram2d(first, second, bins=(30, 30))[0]


@pytest.mark.parametrize(("made", "of_noise", "of_estimate"), [(diagonal, 0.35, 0.1), (loose, 0.5, 0.8)])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_nearer_to_the_truth_than_the_noise_and_the_estimate(made, of_noise, of_estimate, seed):
    rng = np.random.default_rng(seed)
    truth = made(rng)
    noisy = np.rint(truth + rng.normal(0, SIGMA, truth.shape)).astype(np.int64)
    estimate = independent(truth)
    found = denoised(noisy, SIGMA**2, estimate)
    assert found.median.min() >= 0
    assert l1(found.median, truth) < of_noise * l1(np.maximum(noisy, 0), truth)
    assert l1(found.median, truth) < of_estimate * l1(estimate, truth)


def test_empty_cells_get_no_rows_where_most_are_empty():
    rng = np.random.default_rng(1)
    truth = diagonal(rng)
    noisy = truth + rng.normal(0, SIGMA, truth.shape)
    found = denoised(noisy, SIGMA**2, independent(truth))
    assert 0.5 < found.kinds[0].mean() < 0.99
    assert found.median[truth == 0].sum() < 0.01 * truth.sum()
    assert found.median.sum() == pytest.approx(truth.sum(), rel=0.02)


@pytest.mark.parametrize("seed", [6, 9])
def test_no_value_of_a_column_loses_its_rows_to_noise_that_hides_a_whole_pair(seed):
    """A column that is nearly always the same, with one of 28 values: noise is larger than most of these."""
    rng, alike = np.random.default_rng(seed), np.array([0.995, 0.005])
    single = rng.multinomial(10_000, rng.dirichlet(np.ones(28)))
    truth, sigma = np.outer(alike, single), 1.4 * single.mean()
    found = denoised(truth + rng.normal(0, sigma, truth.shape), sigma**2, truth)
    assert (found.median.sum(axis=0) < single / 2).sum() >= 5
    target = found.target(truth)
    assert (target.sum(axis=0) >= 0.49 * single)[single > 100].all()
    assert l1(target, truth) < 0.9 * l1(found.median, truth)


def test_an_estimate_that_is_right_is_kept_and_a_precise_answer_is_too():
    rng = np.random.default_rng(2)
    truth = loose(rng)
    kept = denoised(truth + rng.normal(0, SIGMA, truth.shape), SIGMA**2, truth)
    assert l1(kept.median, truth) < 0.1 * l1(np.maximum(truth + rng.normal(0, SIGMA, truth.shape), 0), truth)
    precise = denoised(truth, 1e-4, independent(truth))
    np.testing.assert_allclose(precise.median, truth, atol=0.1)
    assert precise.variance < 1e-3 < kept.variance


def test_counts_far_from_all_others_are_taken_for_noise_where_the_cells_are_in_order():
    """Planted: the same answer with its cells out of order keeps several times as many."""
    far = {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = diagonal(rng)
        noisy = truth + rng.normal(0, 3 * SIGMA, truth.shape)
        places = [rng.permutation(n) for n in truth.shape]
        mixed = np.ix_(*places)
        first, second = np.indices(truth.shape)
        out = abs(first - second) > 3
        ordered = denoised(noisy, (3 * SIGMA) ** 2, independent(truth)).median
        other = denoised(noisy[mixed], (3 * SIGMA) ** 2, independent(truth)[mixed]).median
        far[seed] = ordered[out].sum(), other[out[mixed]].sum()
        assert l1(ordered, truth) < l1(other, truth[mixed])
    kept = np.sum(list(far.values()), axis=0)
    assert kept[0] < kept[1] / 2


def correlation(counts):
    shares = np.maximum(counts, 0) / np.maximum(counts, 0).sum()
    margins = shares.sum(axis=1), shares.sum(axis=0)
    ranks = [np.cumsum(s) - s / 2 - 0.5 for s in margins]
    spread = np.sqrt(np.prod([r**2 @ s for r, s in zip(ranks, margins, strict=True)]))
    return ranks[0] @ shares @ ranks[1] / spread


def leaning(rng):
    """Two columns of 25 ranks each with a correlation of .3, of which no cell says much."""
    normal = rng.multivariate_normal([0, 0], [[1, 0.3], [0.3, 1]], 20_000)
    ranks = normal.argsort(axis=0).argsort(axis=0) * 25 // 20_000
    return np.histogram2d(*ranks.T, bins=(25, 25))[0]


def test_a_trend_that_no_cell_shows_is_kept(monkeypatch):
    """Planted: without trends half of the correlation is gone with the noise of the cells."""
    kept = []
    for planted in (False, True):
        if planted:
            monkeypatch.setattr(
                "dpsynth.model.denoising.with_trends", lambda noisy, variance, estimate, slab: estimate
            )
        rng = np.random.default_rng(4)
        truth = leaning(rng)
        noisy = truth + rng.normal(0, SIGMA / 2, truth.shape)
        found = denoised(noisy, (SIGMA / 2) ** 2, independent(truth))
        kept.append((correlation(found.median) / correlation(truth), l1(found.median, truth)))
    assert 0.8 < kept[0][0] < 1.25
    assert kept[1][0] < 0.6
    assert kept[0][1] < 0.7 * kept[1][1]


def test_an_answer_without_a_trend_leaves_the_estimate_as_it_is():
    rng = np.random.default_rng(5)
    truth = independent(leaning(rng))
    noisy = truth + rng.normal(0, SIGMA, truth.shape)
    assert l1(with_trends(noisy, SIGMA**2, truth), truth) < 0.02 * truth.sum()
    precise = with_trends(truth, 1e-4, truth)
    np.testing.assert_array_equal(precise, truth)


def test_trends_of_three_columns_are_those_of_pairs_and_of_all_three():
    values = np.arange(6) / 5 - 0.5
    three = np.einsum("i,j,k->ijk", values, values, values)
    pair = np.broadcast_to(np.multiply.outer(values, values)[:, :, None], (6, 6, 6))
    estimate = np.full((6, 6, 6), 100.0)
    for deviation in (8 * three, 4 * pair):
        truth = estimate * (1 + deviation)
        noisy = truth + np.random.default_rng(6).normal(0, SIGMA, truth.shape)
        assert l1(with_trends(noisy, SIGMA**2, estimate), truth) < 0.5 * l1(estimate, truth)


def test_normal_shares_are_those_of_the_normal_distribution():
    levels = np.linspace(-9, 9, 2001)
    np.testing.assert_allclose(normal_shares(levels), ndtr(levels), atol=1e-7)


def test_it_has_an_answer_for_empty_and_odd_marginals():
    for shape in ((1, 1), (2, 3), (2, 2, 2)):
        for estimate in (np.zeros(shape), np.full(shape, 1e9), np.ones(shape)):
            for noisy in (np.zeros(shape), np.full(shape, -50.0), np.full(shape, 1e9)):
                found = denoised(noisy, 100.0, estimate)
                assert np.isfinite(found.mean + found.median).all() and found.median.min() >= 0
                assert np.isfinite(found.variance) and found.variance >= 0


def test_independence_has_the_sums_of_each_axis():
    counts = np.arange(24.0).reshape(2, 3, 4)
    found = independent(counts)
    for axis in range(3):
        others = tuple({0, 1, 2} - {axis})
        np.testing.assert_allclose(found.sum(axis=others), counts.sum(axis=others))


def test_no_cell_gets_more_rows_than_there_are_however_large_the_noise_is() -> None:
    """Planted by hand: a marginal of almost no price made counts of 5e8 rows, which refinement refuses."""
    rng = np.random.default_rng(1)
    estimate = np.full((6, 6), 400.0)
    for _ in range(20):
        noisy = np.rint(rng.normal(0.0, 1e10, estimate.shape))
        assert denoised(noisy, 1e20, estimate).mean.max() <= estimate.sum()
