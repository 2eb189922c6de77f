"""Domains count cells in the order asked; noise variances are those of the discrete distributions."""

import numpy as np
import pytest

from dpsynth.accounting.calibration import mean_absolute_error, noise_variance
from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement

DOMAIN = Domain({"sex": 2, "age": 100, "one": 1})


def test_shapes_follow_the_cliques_order_and_the_empty_clique_has_one_cell():
    assert DOMAIN.shape(("age", "sex")) == (100, 2)
    assert DOMAIN.shape(()) == () and DOMAIN.cells(()) == 1
    assert DOMAIN.cells(("one", "age", "sex")) == 200


def test_the_canonical_clique_is_in_table_order_and_holds_each_column_once():
    assert DOMAIN.canonical(("one", "age", "age", "sex")) == ("sex", "age", "one")
    assert DOMAIN.canonical(()) == ()


@pytest.mark.parametrize("scale", [0.2, 1.0, 3.7, 40.0])
def test_the_laplace_variance_and_mean_error_are_those_of_the_discrete_distribution(scale):
    steps = np.arange(-4000, 4001)
    weights = np.exp(-np.abs(steps) / scale)
    assert noise_variance("laplace", scale) == pytest.approx((steps**2 * weights).sum() / weights.sum())
    expected = (np.abs(steps) * weights).sum() / weights.sum()
    assert mean_absolute_error("laplace", scale) == pytest.approx(expected)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.5, 30.0])
def test_the_gaussian_variance_is_never_understated(scale):
    steps = np.arange(-1000, 1001)
    weights = np.exp(-(steps**2) / (2 * scale**2))
    exact = (steps**2 * weights).sum() / weights.sum()
    assert noise_variance("gaussian", scale) >= exact * (1 - 1e-12)
    if scale >= 1:
        assert noise_variance("gaussian", scale) == pytest.approx(exact, rel=1e-6)
    if scale >= 2:
        expected = (np.abs(steps) * weights).sum() / weights.sum()
        assert mean_absolute_error("gaussian", scale) == pytest.approx(expected, rel=0.05)


def test_an_exact_count_has_no_noise_and_unknown_noise_is_refused():
    exact = Measurement((), np.array(5), "none", 0.0)
    assert exact.variance == exact.stddev == 0.0
    with pytest.raises(ValueError, match="unknown noise"):
        noise_variance("uniform", 1.0)


def test_batches_keep_the_order_and_hold_no_more_than_they_may_or_one():
    domain = Domain({"a": 3, "b": 4, "c": 5})
    cliques = [("a",), ("b",), ("a", "b", "c"), ("c",), ("a", "b"), ("b",)]
    assert list(domain.batches(cliques, 7)) == [
        [("a",), ("b",)],
        [("a", "b", "c")],
        [("c",)],
        [("a", "b")],
        [("b",)],
    ]
    assert list(domain.batches(cliques, 1000)) == [cliques] and not list(domain.batches([], 7))
