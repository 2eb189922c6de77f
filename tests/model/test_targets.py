"""Targets say what the measurements say, whatever their axes, and once for each clique."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import DenoisedCounts, Measurement, estimated_total
from dpsynth.model import estimate
from dpsynth.model.least_squares import Target, one_way_logarithms, targets

RANK = {"b": 0, "a": 1, "c": 2}


def test_measurements_of_one_clique_combine_by_precision_whatever_their_axes():
    ab = np.array([[1, 2], [3, 4]])
    ms = [Measurement(("a", "b"), ab, "gaussian", 1.0), Measurement(("b", "a"), 5 * ab.T, "gaussian", 2.0)]
    (target,) = targets(ms, RANK)
    assert target.clique == ("b", "a") and target.variance == pytest.approx(1 / 1.25)
    np.testing.assert_allclose(target.values, ((ab + 5 * ab / 4) / 1.25).T.reshape(-1))


def test_laplace_noise_counts_by_its_variance():
    ms = [
        Measurement(("a",), np.array([10, 20]), "laplace", 3.0),
        Measurement(("a",), np.array([40, 0]), "gaussian", 2.0),
    ]
    t = np.exp(-1 / 3)
    weights = np.array([(1 - t) ** 2 / (2 * t), 1 / 4])
    (target,) = targets(ms, RANK)
    assert target.variance == pytest.approx(1 / weights.sum())
    np.testing.assert_allclose(target.values, weights @ [[10, 20], [40, 0]] / weights.sum())


def test_public_counts_and_totals_say_nothing():
    ms = [
        Measurement((), np.array(7), "gaussian", 1.0),
        Measurement((), np.array(7), "none", 0.0),
        Measurement(("a",), np.array([3, 4]), "none", 0.0),
    ]
    assert targets(ms, RANK) == ()


def test_a_total_is_the_sum_of_the_counts_and_at_least_one():
    assert estimated_total([Measurement(("a",), np.array([40, 60]), "gaussian", 3.0)]) == 100.0
    assert estimated_total([]) == 1.0
    denoised = DenoisedCounts(("a", "b"), np.array([[10, 0], [20, 0]]), "gaussian", 1.0)
    assert estimated_total([denoised]) == 30.0
    assert estimated_total([denoised, Measurement(("a",), np.array([40, 60]), "gaussian", 3.0)]) == 100.0


def test_values_of_a_column_are_guessed_from_every_full_marginal_that_holds_it():
    domain = Domain({"a": 2, "b": 3, "c": 4})
    table = np.array([[30.0, 10, 20], [5, 15, 20]])
    found = [Target(("a", "b"), table.reshape(-1), 1.0), Target(("a",), np.array([66.0, 34]), 0.5)]
    guesses = one_way_logarithms(domain, found, 100.0)
    assert set(guesses) == {("a",), ("b",), ("c",)}
    # Sums of 3 cells of variance 1, and cells of variance 0.5.
    a = (np.array([60, 40]) / 3 + np.array([66, 34]) / 0.5) / (1 / 3 + 1 / 0.5)
    np.testing.assert_allclose(np.exp(guesses["a",]), a / 100)
    np.testing.assert_allclose(np.exp(guesses["b",]), table.sum(axis=0) / 100)
    np.testing.assert_allclose(np.exp(guesses["c",]), np.full(4, 0.25))


def test_guesses_are_probabilities_however_wild_the_counts():
    rng = np.random.default_rng(6)
    for scale in (1.0, 1e3, 1e7):
        domain = Domain({"a": 5, "b": 1})
        found = [Target(("a",), rng.normal(0, scale, 5), scale**2), Target(("b",), np.array([-4.0]), 1.0)]
        for values in one_way_logarithms(domain, found, 50.0).values():
            assert np.isfinite(values).all() and np.exp(values).sum() == pytest.approx(1)


def test_guesses_are_the_nearest_counts_that_are_not_negative():
    """Held, Wolfe and Crowder's projection, against its conditions of optimality."""
    domain = Domain({"a": 6})
    rng = np.random.default_rng(2)
    for _ in range(50):
        values = rng.normal(0, 30, 6) + 10
        guess = 60 * np.exp(one_way_logarithms(domain, [Target(("a",), values, 1e-12)], 60.0)["a",])
        kept = guess > 1e-3
        shift = (values - guess)[kept]
        np.testing.assert_allclose(shift, shift[0], atol=1e-3)
        assert (values[~kept] <= shift[0] + 1e-3).all()


def test_counts_with_next_to_no_noise_can_be_fitted():
    """Laplace noise of a huge epsilon has a variance of 0 in doubles."""
    domain = Domain({"a": 2, "b": 2})
    exact = Measurement(("a",), np.array([30, 10]), "laplace", 1e-4)
    rough = Measurement(("a", "b"), np.array([[12, 14], [9, 4]]), "laplace", 2.0)
    assert exact.variance == 0
    model = estimate(domain, [exact, rough]).model
    assert np.allclose(model.marginal(("a",)), [30, 10], atol=0.01)
