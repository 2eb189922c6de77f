"""Noisy linear queries on a clique are fitted as an independent solver fits them."""

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import FitOptions, estimate
from tests.examples import cases
from tests.model.least_loss import codes, design, least_loss
from tests.thinned import some

ROWS = 250.0


def solvable(problems):
    return [p for p in problems if any(p.cliques) and p.domain.cells(p.domain.columns) <= 300]


def queries(rng, kind, shape):
    """Weights of each cell in each answer, shape (answers, *shape)."""
    cells = int(np.prod(shape))
    if kind == "prefix sums":
        # Sums up to each value of the first axis, for every cell of the others.
        lower = np.tril(np.ones((shape[0], shape[0])))
        rest = np.eye(cells // shape[0])
        return np.einsum("xa,yb->xyab", lower, rest).reshape(cells, *shape)
    if kind == "merged bins":
        bins = rng.integers(0, max(1, cells // 2), cells)
        return (bins == np.arange(max(1, cells // 2))[:, None]).astype(float).reshape(-1, *shape)
    return rng.normal(size=(int(rng.integers(1, cells + 3)), *shape))


def asked(problem, kind):
    """Each clique's noisy answers, its axes shuffled, around a random table; each third is a marginal."""
    rng = problem.rng()
    domain = problem.domain
    table = ROWS * rng.dirichlet(np.full(domain.cells(domain.columns), 0.3))
    found = []
    for i, clique in enumerate(c for c in problem.cliques if c):
        turned = tuple(str(c) for c in rng.permutation(list(clique)))
        shape = domain.shape(turned)
        if i % 3 == 2:
            m = Measurement(turned, np.zeros(shape, int), "gaussian", 3.0)
        else:
            query = queries(rng, kind, shape)
            m = Measurement(turned, np.zeros(len(query), int), "laplace", float(rng.uniform(1, 6)), query)
        matrix, _ = design(domain, [m])
        noisy = np.rint(m.stddev * (matrix @ table) + rng.normal(0, m.stddev, len(matrix)))
        found.append(replace(m, values=noisy.astype(np.int64).reshape(m.values.shape)))
    return found


@pytest.mark.parametrize("kind", some(["prefix sums", "merged bins", "general weights"], 1))
def test_no_joint_table_explains_answers_to_queries_better(problems, kind):
    for p in solvable(problems)[: cases(30)]:
        ms = asked(p, kind)
        fit = estimate(p.domain, ms, FitOptions(tolerance=1e-9), total=ROWS)
        low, high = least_loss(p.domain, ms, ROWS)
        assert fit.objective == pytest.approx(high, rel=1e-6, abs=1e-6), (p.name, fit.iterations)
        assert fit.objective - fit.gap <= high + 1e-9 * max(1, high), p.name
        assert high - low <= 1e-6 * max(high, 1), p.name


def test_the_objective_is_that_of_the_models_own_answers(problems):
    for p in solvable(problems)[: cases(40)]:
        ms = asked(p, "general weights")
        if len({frozenset(m.clique) for m in ms}) < len(ms):
            continue
        fit = estimate(p.domain, ms, total=ROWS)
        found = 0.0
        for m in ms:
            cells = fit.model.marginal(m.clique)
            answers = cells if m.query is None else np.tensordot(m.query, cells, cells.ndim)
            found += 0.5 / m.variance * float(np.square(answers - m.values).sum())
        assert fit.objective == pytest.approx(found, rel=1e-9, abs=1e-9), p.name


def test_asking_for_each_cell_is_measuring_the_marginal(problems, measure):
    for p in solvable(problems)[: cases(20)]:
        plain = [m for m in measure(p, 300)[: len(p.cliques)] if m.clique]
        as_queries = []
        for m in plain:
            eye = np.eye(m.values.size).reshape(-1, *m.values.shape)
            as_queries.append(replace(m, values=m.values.reshape(-1), query=eye))
        if len({frozenset(m.clique) for m in plain}) < len(plain):
            continue
        one, other = (
            estimate(p.domain, ms, FitOptions(tolerance=1e-9), total=300.0) for ms in (plain, as_queries)
        )
        assert other.objective == pytest.approx(one.objective, rel=1e-6, abs=1e-6), p.name
        for m in plain:
            found, expected = other.model.marginal(m.clique), one.model.marginal(m.clique)
            np.testing.assert_allclose(found, expected, atol=0.05, err_msg=p.name)


def test_an_answer_weighs_cells_by_name_not_by_position():
    """A query on (b, a) of a domain whose columns are a, b: the planted fault is the array not turned."""
    domain = Domain({"a": 2, "b": 3})
    truth = np.arange(6.0).reshape(2, 3) + 1
    query = np.random.default_rng(1).normal(size=(6, 3, 2)) * 20
    values = np.rint(np.tensordot(query, truth.T, 2)).astype(np.int64)
    right = estimate(domain, [Measurement(("b", "a"), values, "gaussian", 1.0, query)], total=21.0)
    np.testing.assert_allclose(right.model.marginal(("a", "b")), truth, atol=0.1)
    unturned = query.reshape(6, 2, 3)
    wrong = estimate(domain, [Measurement(("a", "b"), values, "gaussian", 1.0, unturned)], total=21.0)
    assert np.abs(wrong.model.marginal(("a", "b")) - truth).max() > 1


def test_prefix_sums_bound_the_error_of_ranges():
    """Ranges of an ordered column are told by two answers each, so long ranges are told better."""
    rng = np.random.default_rng(9)
    domain = Domain({"a": 64})
    truth = rng.multinomial(20_000, rng.dirichlet(np.ones(64))).astype(float)
    lower = np.tril(np.ones((64, 64)))
    errors = {"cells": [], "prefix": []}
    for _ in range(12):
        noise = np.rint(rng.normal(0, 100, 64)).astype(int)
        cells = Measurement(("a",), truth.astype(int) + noise, "gaussian", 100.0)
        prefix = Measurement(("a",), (lower @ truth).astype(int) + noise, "gaussian", 100.0, lower)
        for name, m in (("cells", cells), ("prefix", prefix)):
            found = estimate(domain, [m], total=20_000.0).model.marginal(("a",))
            errors[name].append(abs(found[:32].sum() - truth[:32].sum()))
    assert np.mean(errors["prefix"]) < 0.5 * np.mean(errors["cells"])


def test_the_design_counts_what_numpy_counts():
    """The independent solver's matrix itself, for a query and for a marginal."""
    domain = Domain({"a": 2, "b": 3})
    table = np.random.default_rng(0).random((2, 3))
    query = np.random.default_rng(1).random((4, 3, 2))
    ms = [
        Measurement(("b", "a"), np.zeros(4, int), "gaussian", 1.0, query),
        Measurement(("b",), np.zeros(3, int), "gaussian", 1.0),
    ]
    matrix, _ = design(domain, ms)
    expected = [*np.tensordot(query, table.T, 2), *table.sum(axis=0)]
    np.testing.assert_allclose(matrix @ table.reshape(-1), expected)
    assert list(codes(domain)) == ["a", "b"]
