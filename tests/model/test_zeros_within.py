"""Zeros are kept as far as the model has room for them, and no further."""

from importlib import import_module

import numpy as np

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import FitOptions, Triangulation, estimate, zeros_within

DOMAIN = Domain({"a": 10, "b": 20, "c": 30, "d": 40})
MEASURED = [("a", "b"), ("b", "c")]


def shut(*clique):
    return np.eye(*DOMAIN.shape(clique), dtype=bool)


ZEROS = {clique: shut(*clique) for clique in [("c", "d"), ("a", "b"), ("a", "c")]}


def test_all_are_kept_where_there_is_room():
    assert set(zeros_within(DOMAIN, MEASURED, ZEROS, 100_000)) == set(ZEROS)


def test_those_of_fewest_cells_come_first_and_the_bound_holds():
    measured = Triangulation.of(DOMAIN, MEASURED).cells
    for bound in range(measured, 9000, 400):
        kept = zeros_within(DOMAIN, MEASURED, ZEROS, bound)
        assert ("a", "b") in kept, "it lies in a clique that is measured"
        assert Triangulation.of(DOMAIN, [*MEASURED, *kept]).cells <= bound
    assert zeros_within(DOMAIN, MEASURED, ZEROS, 100).keys() == {("a", "b")}


def test_a_small_model_may_grow_and_a_large_one_not_by_much(monkeypatch):
    monkeypatch.setattr(import_module("dpsynth.model.junction_tree"), "_FREE", 0)
    cells = Triangulation.of(DOMAIN, MEASURED).cells
    kept = zeros_within(DOMAIN, MEASURED, ZEROS, 100_000)
    assert ("c", "d") not in kept or Triangulation.of(DOMAIN, [*MEASURED, *kept]).cells <= 2 * cells
    assert len(kept) < len(ZEROS)


def test_a_fit_that_goes_on_from_one_without_zeros_has_them():
    rng = np.random.default_rng(0)
    known = [Measurement((), np.array(1000), "none", 0.0)]
    known += [
        Measurement(c, rng.poisson(1000 / DOMAIN.cells(c), DOMAIN.shape(c)), "gaussian", 2.0)
        for c in MEASURED
    ]
    start = estimate(DOMAIN, known, FitOptions(tolerance=1e-3))
    fit = estimate(
        DOMAIN,
        known,
        FitOptions(tolerance=1e-3),
        start=start,
        zeros=zeros_within(DOMAIN, MEASURED, ZEROS, 100_000),
    )
    afresh = estimate(DOMAIN, known, FitOptions(tolerance=1e-3), zeros=ZEROS)
    for clique, closed in ZEROS.items():
        assert fit.model.marginal(clique)[closed].max() == 0.0 < start.model.marginal(clique)[closed].max()
    assert abs(fit.objective - afresh.objective) < 0.01 * afresh.objective
