"""Estimates raked to pairs: they have the pairs that are known, and the model's where none is."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import RakedEstimates, estimate
from tests.model.test_refined_sample import DOMAIN, ROWS, chain, counts, table


def test_a_triple_has_the_pairs_that_are_known_and_the_models_other_pairs():
    rng = np.random.default_rng(1)
    codes = table(rng)
    model = chain(codes, rng)
    known = {("a", "c"): counts(codes, ("a", "c")).astype(float)}
    found = RakedEstimates(model, known).marginal(("a", "b", "c"))
    assert found.min() >= 0 and found.sum() == pytest.approx(model.total)
    wanted = known["a", "c"] * model.total / ROWS
    np.testing.assert_allclose(found.sum(axis=1), wanted, atol=0.01 * ROWS)
    np.testing.assert_allclose(found.sum(axis=2), model.marginal(("a", "b")), atol=0.01 * ROWS)
    np.testing.assert_allclose(found.sum(axis=0), model.marginal(("b", "c")), atol=0.01 * ROWS)


def test_a_triple_of_which_all_pairs_are_known_is_nearer_to_the_table_than_the_models():
    rng = np.random.default_rng(2)
    codes = table(rng)
    model = chain(codes, rng)
    known = {p: counts(codes, p).astype(float) for p in combinations(DOMAIN.columns, 2)}
    real = counts(codes, ("a", "b", "c"))
    raked, plain = (m.marginal(("a", "b", "c")) for m in (RakedEstimates(model, known), model))
    assert np.abs(raked - real).sum() < 0.8 * np.abs(plain - real).sum()


def test_axes_come_in_the_order_asked_and_cliques_without_a_known_pair_are_the_models():
    rng = np.random.default_rng(3)
    codes = table(rng)
    model = chain(codes, rng)
    found = RakedEstimates(model, {("a", "c"): counts(codes, ("a", "c")).astype(float)})
    for clique in (("b",), ("a", "b"), ("b", "c")):
        np.testing.assert_allclose(found.marginal(clique), model.marginal(clique))
    assert found.marginal(("a", "c")) == pytest.approx(counts(codes, ("a", "c")) * model.total / ROWS)


def test_the_fingerprint_changes_with_the_model_and_with_each_count():
    rng = np.random.default_rng(4)
    codes = table(rng)
    pair = counts(codes, ("a", "c")).astype(float)
    one = estimate(Domain({"a": 2}), [Measurement(("a",), np.array([5, 7]), "gaussian", 1.0)]).model
    more = pair + np.eye(*pair.shape)
    made = [
        RakedEstimates(m, pairs).fingerprint()
        for m in (chain(codes, rng), one)
        for pairs in ({}, {("a", "c"): pair}, {("a", "c"): more}, {("b", "c"): pair})
    ]
    assert len(set(made)) == len(made)
