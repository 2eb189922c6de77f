"""Answers are those of the explicit joint table, for predicates over any number of columns."""

from itertools import combinations, pairwise
from math import exp, inf, log

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField
from dpsynth.model.answers import conditional, count, log_probability, mean, quantile
from dpsynth.model.conditioning import ImpossibleEvidence
from dpsynth.model.junction_tree import Edge, JunctionTree


@pytest.fixture(scope="module")
def fields(fields_of):
    """Each problem with its field of 80 rows, made from the explicit joint, and that joint."""
    return fields_of(80.0)


def predicates(problem, rng):
    """Random conditions on random columns, as the engine takes them, and as masks."""
    predicate, masks = {}, {}
    for column, size in problem.domain.sizes.items():
        kind = rng.integers(4)
        mask = rng.random(size) < 0.6
        if kind == 1:
            mask = np.arange(size) == rng.integers(size)
            predicate[column] = int(mask.argmax())
        if kind == 2:
            predicate[column] = {int(c) for c in np.flatnonzero(mask)}
        if kind == 3:
            predicate[column] = mask
        if kind:
            masks[column] = mask
    return predicate, masks


def kept(problem, joint, masks, spread_over):
    for column, mask in masks.items():
        joint = joint * spread_over(mask, (column,), problem.domain.columns)
    return joint


def test_counts_of_predicates_are_sums_over_the_joint(fields, spread_over):
    seen = set()
    for p, model, joint in fields:
        rng = p.rng()
        for _ in range(8):
            predicate, masks = predicates(p, rng)
            chance = kept(p, joint, masks, spread_over).sum()
            assert count(model, predicate) == pytest.approx(80.0 * chance, rel=1e-9, abs=80e-9), p.name
            if chance > 1e-9:
                assert log_probability(model, predicate) == pytest.approx(log(chance), abs=1e-9), p.name
            seen.add((len(predicate), bool(chance)))
    assert {(0, True), (1, False), (3, True), (6, True)} <= seen


def test_distributions_given_a_predicate_are_those_of_the_joint(fields, spread_over, marginal_of):
    for p, model, joint in fields:
        rng = p.rng()
        for _ in range(4):
            predicate, masks = predicates(p, rng)
            part = kept(p, joint, masks, spread_over)
            if part.sum() < 1e-6:
                continue
            for clique in combinations(p.domain.columns[::-1], int(rng.integers(0, 3))):
                expected = marginal_of(part / part.sum(), p.domain.columns, clique)
                found = conditional(model, clique, predicate)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=p.name)


def test_means_and_quantiles_are_those_of_the_rows_of_the_joint(fields, spread_over, marginal_of):
    compared = 0
    for p, model, joint in fields:
        rng = p.rng()
        for column, size in p.domain.sizes.items():
            predicate, masks = predicates(p, rng)
            part = kept(p, joint, masks, spread_over)
            values = rng.permutation(np.array([3.5, -2.0, 10.0, np.nan])[:size])
            has = ~np.isnan(values)
            if part.sum() < 1e-6:
                continue
            shares = marginal_of(part, p.domain.columns, (column,))
            if shares[has].sum() < 1e-9 * part.sum():
                continue
            shares = shares[has] / shares[has].sum()
            expected = (shares * values[has]).sum()
            assert mean(model, column, values, predicate) == pytest.approx(expected, abs=1e-6), p.name
            levels = rng.random(5)
            for level, found in zip(levels, quantile(model, column, values, levels, predicate), strict=True):
                below = shares[values[has] <= found].sum()
                under = shares[values[has] < found].sum()
                assert under - 1e-9 <= level <= below + 1e-9, p.name
            compared += 1
    assert compared > len(fields)


def line(shares):
    """A field of one column."""
    tree = JunctionTree(Domain({"a": len(shares)}), (("a",),), ())
    return MarkovRandomField(tree, (np.array(shares, dtype=float),), float(sum(shares)))


def test_quantiles_of_equal_shares_are_the_textbooks():
    model, values = line([1.0] * 10), np.arange(10, 110, 10)
    levels = [0, 0.1, 0.3, 0.31, 0.5, 0.7, 0.99, 1]
    assert quantile(model, "a", values, levels).tolist() == [10, 10, 30, 40, 50, 70, 100, 100]
    assert quantile(model, "a", values, 0.5).shape == ()
    assert quantile(model, "a", values[::-1], 0.25) == 30
    assert quantile(line([0.0, 3.0, 1.0, 0.0]), "a", [1, 2, 3, 4], [0, 1]).tolist() == [2, 3]


def test_values_of_codes_that_no_row_has_do_not_count_even_if_they_are_infinite():
    model = line([2.0, 0.0, 2.0])
    assert mean(model, "a", [1.0, np.inf, 2.0]) == 1.5
    assert mean(model, "a", [1.0, np.nan, 2.0]) == 1.5
    assert mean(model, "a", [np.nan, 5.0, 2.0]) == 2.0
    assert mean(model, "a", [1.0, 0.0, np.inf]) == np.inf


def long_chain(length=40, size=30):
    """Columns of 30 codes in a row, each depending on the one before."""
    rng = np.random.default_rng(0)
    domain = Domain({f"c{i}": size for i in range(length)})
    pairs = tuple(pairwise(domain.columns))
    edges = tuple(Edge(i, i - 1, (f"c{i}",)) for i in range(1, length - 1))
    here, beliefs = rng.dirichlet(np.ones(size)), []
    for _ in pairs:
        beliefs.append(here[:, None] * rng.dirichlet(np.full(size, 0.3), size))
        here = beliefs[-1].sum(axis=0)
    return MarkovRandomField(JunctionTree(domain, pairs, edges), tuple(beliefs), 1.0)


def test_a_predicate_over_forty_columns_is_answered_without_their_joint():
    model, rng = long_chain(), np.random.default_rng(1)
    masks = {c: rng.random(30) < 0.8 for c in model.tree.domain.columns}
    reach = model.beliefs[0].sum(axis=1) * masks["c0"]
    for i, belief in enumerate(model.beliefs):
        step = np.divide(belief, belief.sum(axis=1, keepdims=True))
        reach = (reach @ step) * masks[f"c{i + 1}"]
    assert count(model, masks) == pytest.approx(reach.sum(), rel=1e-9)
    np.testing.assert_allclose(conditional(model, ("c39",), masks), reach / reach.sum(), atol=1e-12)


def test_an_answer_walks_no_further_than_its_columns():
    model = long_chain()
    beliefs = [b.copy() for b in model.beliefs]
    for i in (*range(5), *range(9, 39)):
        beliefs[i][:] = np.nan
    poisoned = MarkovRandomField(model.tree, tuple(beliefs), 1.0)
    predicate = {"c5": [1, 2, 3], "c9": range(20)}
    assert count(poisoned, predicate) == pytest.approx(count(model, predicate), rel=1e-12)
    assert count(poisoned, {"c5": 1, "c10": 1}) != pytest.approx(count(model, {"c5": 1, "c10": 1}))


def test_counts_add_up_over_the_codes_of_a_column(fields):
    for p, model, _ in fields[:50]:
        column, size = next(iter(p.domain.sizes.items()))
        assert sum(count(model, {column: k}) for k in range(size)) == pytest.approx(80.0), p.name
        assert count(model, {}) == pytest.approx(80.0)
        assert count(model, {column: []}) == 0.0 and log_probability(model, {column: []}) == -inf


def test_the_probability_of_improbable_rows_is_right_where_a_product_would_underflow():
    model = long_chain(400, 4)
    fixed, chance = {"c0": 0}, log(model.beliefs[0].sum(axis=1)[0])
    for i, belief in enumerate(model.beliefs):
        step = belief[fixed[f"c{i}"]] / belief[fixed[f"c{i}"]].sum()
        fixed[f"c{i + 1}"] = int(step.argmin())
        chance += log(step.min())
    assert exp(chance) == 0 and log_probability(model, fixed) == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda m: mean(m, "a", [1.0, 2.0]), "needs 3 values"),
        (lambda m: quantile(m, "a", [1, 2, 3], 1.5), "between 0 and 1"),
        (lambda m: quantile(m, "a", [1, 2, 3], np.nan), "between 0 and 1"),
        (lambda m: count(m, {"b": 0}), "no column 'b'"),
        (lambda m: conditional(m, ("b",), {}), "no column 'b'"),
        (lambda m: conditional(m, ("a", "a"), {}), "twice"),
        (lambda m: conditional(m, ("a",), {}, limit=2), "the limit is 2"),
        (lambda m: count(m, {"a": 3}), "outside 0 to 2"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(ask, complaint):
    with pytest.raises(ValueError, match=complaint):
        ask(line([1.0, 0.0, 1.0]))


def test_a_mean_or_distribution_of_no_rows_is_refused():
    model = line([1.0, 0.0, 1.0])
    for ask in (
        lambda: conditional(model, ("a",), {"a": 1}),
        lambda: mean(model, "a", [1, 2, 3], {"a": 1}),
        lambda: quantile(model, "a", [np.nan, 2, 3], 0.5, {"a": [0, 1]}),
    ):
        with pytest.raises(ImpossibleEvidence, match="no row"):
            ask()
