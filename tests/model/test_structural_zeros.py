"""Cells that no row can have get probability zero, and the rest is fitted as well as it can be."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement, estimated_total
from dpsynth.model import FitOptions, estimate, refits
from dpsynth.model.factor import sum_to
from dpsynth.model.sampling import sample
from tests.examples import cases
from tests.model.least_loss import least_loss, penalised, possible
from tests.model.test_prior_rows import divergence
from tests.thinned import some


def solvable(problems, most=300):
    return [p for p in problems if any(p.cliques) and 1 < p.domain.cells(p.domain.columns) <= most]


def forbidden(problem, measured_too=True):
    """Random impossible cells of some cliques, axes shuffled, measured or not; one row stays possible."""
    rng = np.random.default_rng([7, *problem.name.encode()])
    columns = problem.domain.columns
    kept = {c: int(rng.integers(s)) for c, s in problem.domain.sizes.items()}
    pairs = [tuple(str(c) for c in rng.permutation(p)) for p in combinations(columns, min(2, len(columns)))]
    asked = [pairs[i] for i in rng.permutation(len(pairs))[:2]]
    if measured_too:
        asked += [c for c in problem.cliques if c][:2]
    found = {}
    for clique in asked:
        closed = rng.random(problem.domain.shape(clique)) < 0.35
        closed[tuple(kept[c] for c in clique)] = False
        found[clique] = closed
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prior_rows": 9.0},
        {"options": FitOptions(max_iterations=0)},
        {"options": FitOptions(precision="float32")},
    ],
)
def test_impossible_cells_have_probability_zero_in_every_marginal(problems, measure, options):
    shut = 0
    for p in solvable(problems):
        zeros = forbidden(p)
        model = estimate(p.domain, measure(p, 300), zeros=zeros, **options).model
        for clique, closed in zeros.items():
            assert not model.marginal(clique)[closed].any(), (p.name, clique)
            shut += int(closed.sum())
        ok = possible(p.domain, zeros).reshape(p.domain.shape(p.domain.columns)).astype(float)
        for clique in p.tree.cliques:
            reachable = sum_to(ok, p.domain.columns, clique) > 0
            assert not model.marginal(clique)[~reachable].any(), (p.name, clique)
    assert shut > 1.5 * len(problems)


@pytest.mark.parametrize("measured_too", some([True, False], 1))
def test_no_possible_table_explains_the_measurements_better(problems, measure, measured_too):
    harder = 0
    for p in solvable(problems)[: cases(50, part=4)]:
        ms, zeros = measure(p, 300), forbidden(p, measured_too)
        fit = estimate(p.domain, ms, FitOptions(tolerance=1e-9), zeros=zeros)
        low, high = least_loss(p.domain, ms, estimated_total(ms), zeros)
        assert high - low <= 1e-6 * max(high, 1), p.name
        assert fit.objective == pytest.approx(high, rel=1e-6, abs=1e-6), (p.name, fit.iterations)
        harder += high > least_loss(p.domain, ms, estimated_total(ms))[1] + 1
    assert harder > 3


def test_no_impossible_row_is_ever_drawn(problems, measure):
    drawn = 0
    for p in solvable(problems):
        zeros = forbidden(p)
        model = estimate(p.domain, measure(p, 300), zeros=zeros).model
        table = sample(model, 400, np.random.default_rng(1))
        drawn += 400
        for clique, closed in zeros.items():
            assert not closed[tuple(table[c] for c in clique)].any(), (p.name, clique)
    assert drawn > 100 * len(problems)


def test_with_a_prior_no_possible_rows_have_a_lower_penalised_loss(problems, measure):
    for p in solvable(problems, most=40)[: cases(12)]:
        ms, zeros = measure(p, 300), forbidden(p)
        rows, shape, options = (
            estimated_total(ms),
            p.domain.shape(p.domain.columns),
            FitOptions(tolerance=1e-10),
        )
        strong, fit = (estimate(p.domain, ms, options, zeros=zeros, prior_rows=r) for r in (1e12, 15.0))
        centre, found = (f.model.marginal(p.domain.columns).ravel() / rows for f in (strong, fit))
        # A column's own distribution may leave next to no row where zeros contradict it.
        centre = np.maximum(centre, 1e-200)
        _, least = penalised(p.domain, ms, rows, 15.0, centre.reshape(shape), zeros)
        value = fit.objective + 15.0 * divergence(found, centre)
        assert value <= least + 1e-6 * max(least, 1.0), p.name


def test_a_prior_keeps_the_distributions_of_columns_whatever_is_impossible():
    # A size, and two columns of a second row, which is there where the size is 2.
    domain = Domain({"size": 2, "sex": 3, "age": 4})
    counts = {"size": [200, 100], "sex": [200, 70, 30], "age": [200, 20, 30, 50]}
    there = np.arange(2)[:, None] == 0
    zeros = {("size", c): there != (np.arange(domain.sizes[c]) == 0)[None] for c in ("sex", "age")}
    ms = [Measurement((c,), np.array(n), "gaussian", 1.0) for c, n in counts.items()]
    pair = Measurement(("sex", "age"), np.zeros((3, 4), dtype=np.int64), "gaussian", 1e6)
    model = estimate(domain, [*ms, pair], zeros=zeros, prior_rows=1e9).model
    for c, n in counts.items():
        np.testing.assert_allclose(model.marginal((c,)), n, rtol=0.01)
    # In rows that are there, sex and age are independent.
    inside = model.marginal(("sex", "age"))[1:, 1:]
    np.testing.assert_allclose(inside, np.outer([0.7, 0.3], [20, 30, 50]), rtol=0.02)


def test_refits_keep_impossible_cells_impossible():
    domain = Domain({"a": 3, "b": 3})
    zeros = {("b", "a"): np.tri(3, dtype=bool)}
    ms = [Measurement(("a", "b"), np.full((3, 3), 30), "gaussian", 8.0)]
    fit = estimate(domain, ms, zeros=zeros)
    for model in refits(fit, ms, 4, np.random.default_rng(0)):
        assert not model.marginal(("b", "a"))[zeros["b", "a"]].any()


def test_no_possible_row_is_refused():
    domain = Domain({"a": 2, "b": 2})
    m = Measurement(("a",), np.array([3, 4]), "gaussian", 1.0)
    with pytest.raises(ValueError, match="no row"):
        estimate(domain, [m], zeros={("a",): np.array([True, True])})
    # No clique is closed as a whole: together they leave nothing.
    together = {("a",): np.array([True, False]), ("a", "b"): np.array([[False, False], [True, True]])}
    for precision in ("float64", "float32"):
        with pytest.raises(ValueError, match="no row"):
            estimate(domain, [m], FitOptions(precision=precision), zeros=together)


def test_the_same_clique_may_be_closed_under_two_orders():
    domain = Domain({"a": 2, "b": 2})
    zeros = {
        ("a", "b"): np.array([[True, False], [False, False]]),
        ("b", "a"): np.array([[False, True], [False] * 2]),
    }
    model = estimate(domain, [], total=4.0, zeros=zeros).model
    np.testing.assert_allclose(model.marginal(("a", "b")), [[0, 2], [0, 2]])


def test_without_measurements_all_possible_rows_are_equally_likely(problems):
    for p in solvable(problems):
        zeros = forbidden(p)
        ok = possible(p.domain, zeros)
        model = estimate(p.domain, [], total=9.0, zeros=zeros).model
        found = model.marginal(p.domain.columns).ravel()
        np.testing.assert_allclose(found, 9 * ok / ok.sum(), atol=1e-9, err_msg=p.name)
