"""Direct estimates are the generalised least-squares ones, with their exact variances."""

from itertools import combinations

import numpy as np
import pytest
from scipy.linalg import null_space

from dpsynth.columns.domain import Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import LeastSquares


class Explicit:
    """Generalised least squares on all cells of the joint, exact measurements as constraints."""

    def __init__(self, domain, measurements):
        self.columns, self.shape = domain.columns, domain.shape(domain.columns)
        noisy = [m for m in measurements if m.noise != "none"]
        exact = [m for m in measurements if m.noise == "none"]
        self.rows = np.concatenate([self.design(m.clique) for m in [*noisy, *exact]])
        matrix = np.concatenate([self.design(m.clique) / m.stddev for m in noisy])
        aims = np.concatenate([m.values.ravel() / m.stddev for m in noisy])
        start, free = np.zeros(matrix.shape[1]), np.eye(matrix.shape[1])
        if exact:
            fixed = np.concatenate([self.design(m.clique) for m in exact])
            start = np.linalg.pinv(fixed) @ np.concatenate([m.values.ravel() for m in exact])
            free = null_space(fixed)
        inner = np.linalg.pinv(free.T @ matrix.T @ matrix @ free, rcond=1e-10)
        self.covariance = free @ inner @ free.T
        self.cells = start + self.covariance @ matrix.T @ (aims - matrix @ start)

    def design(self, clique):
        """One row a cell of the clique, in the clique's order: which cells of the joint it sums."""
        codes = np.indices(self.shape).reshape(len(self.shape), -1)
        sizes = tuple(self.shape[self.columns.index(c)] for c in clique)
        cell = np.zeros(codes.shape[1], dtype=int)
        for c, size in zip(clique, sizes, strict=True):
            cell = cell * size + codes[self.columns.index(c)]
        return (np.arange(int(np.prod(sizes)))[:, None] == cell).astype(float)

    def estimable(self, clique):
        """Whether the clique's cells are linear combinations of measured ones."""
        both = np.concatenate([self.rows, self.design(clique)])
        return np.linalg.matrix_rank(both) == np.linalg.matrix_rank(self.rows)


def small(problems):
    for p in problems:
        if any(p.cliques) and p.domain.cells(p.domain.columns) <= 72:
            yield p


def subsets(domain, most=3):
    for size in range(most + 1):
        yield from combinations(domain.columns, size)


@pytest.mark.parametrize("public", [False, True])
def test_estimates_and_variances_are_those_of_generalised_least_squares(
    problems, measure, marginal_of, public
):
    compared = 0
    for p in list(small(problems))[:48]:
        ms = measure(p, 300, total=not public)
        ms += [Measurement((), np.array(290), "none", 0.0)] if public else []
        explicit, direct, rng = Explicit(p.domain, ms), LeastSquares(p.domain, ms), p.rng()
        joint = explicit.cells.reshape(p.domain.shape(p.domain.columns))
        for subset in subsets(p.domain):
            clique = tuple(str(c) for c in rng.permutation(list(subset)))
            if not direct.covers(clique):
                continue
            expected = marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(
                direct.marginal(clique), expected, rtol=1e-7, atol=1e-6, err_msg=f"{p.name} {clique}"
            )
            weights = rng.normal(size=p.domain.shape(clique))
            functional = weights.ravel() @ explicit.design(clique)
            variance = functional @ explicit.covariance @ functional
            assert direct.variance(clique, weights) == pytest.approx(variance, rel=1e-7, abs=1e-7), p.name
            compared += 1
    assert compared > 100


def test_covers_says_which_marginals_the_measurements_determine(problems, measure):
    answers = set()
    for p in list(small(problems))[:48]:
        if 1 in p.domain.sizes.values():
            continue
        ms = measure(p, 300)
        explicit, direct = Explicit(p.domain, ms), LeastSquares(p.domain, ms)
        for clique in subsets(p.domain):
            assert direct.covers(clique[::-1]) == explicit.estimable(clique), (p.name, clique)
            answers.add(direct.covers(clique))
    assert answers == {True, False}


def test_a_public_total_is_met_exactly_and_has_no_variance():
    domain = Domain({"a": 3, "b": 2})
    ms = [
        Measurement(("b", "a"), np.arange(6).reshape(2, 3), "laplace", 2.0),
        Measurement((), np.array(100), "none", 0.0),
    ]
    direct = LeastSquares(domain, ms)
    assert direct.marginal(()).item() == 100.0
    assert direct.marginal(("a",)).sum() == pytest.approx(100.0, rel=1e-14)
    assert direct.variance((), np.array(1.0)) == 0.0
    assert direct.variance(("a",), np.ones(3)) == pytest.approx(0.0, abs=1e-12)
    freely = LeastSquares(domain, ms[:1])
    assert direct.cell_variance(("a",)) < freely.cell_variance(("a",))


def test_estimates_of_overlapping_cliques_agree():
    rng = np.random.default_rng(5)
    domain = Domain({"a": 3, "b": 4, "c": 2})
    ms = [
        Measurement(("a", "b"), rng.integers(0, 90, (3, 4)), "gaussian", 4.0),
        Measurement(("c", "b"), rng.integers(0, 90, (2, 4)), "gaussian", 7.0),
    ]
    direct = LeastSquares(domain, ms)
    np.testing.assert_allclose(direct.marginal(("a", "b")).sum(axis=0), direct.marginal(("b",)))
    np.testing.assert_allclose(direct.marginal(("b", "c")).sum(axis=1), direct.marginal(("b",)))
    assert direct.marginal(("a", "b")).sum() == pytest.approx(direct.marginal(("b", "c")).sum())


def test_the_stated_cell_variance_is_the_spread_seen_over_fresh_noise():
    rng = np.random.default_rng(8)
    domain = Domain({"a": 3, "b": 2})
    scales = {("a",): 3.0, ("b", "a"): 5.0, (): 2.0}
    shapes = {clique: domain.shape(clique) for clique in scales}
    seen = []
    for _ in range(1500):
        ms = [
            Measurement(c, np.rint(rng.normal(100, s, shapes[c])).astype(np.int64), "gaussian", s)
            for c, s in scales.items()
        ]
        seen.append(LeastSquares(domain, ms).marginal(("a", "b")))
    stated = LeastSquares(domain, ms).cell_variance(("a", "b"))
    assert np.var(seen, axis=0).mean() == pytest.approx(stated, rel=0.1)
    best_alone = 25.0
    assert stated < best_alone
