"""Answers are those of the explicit joint table, for predicates over any number of columns."""

from itertools import combinations, pairwise
from math import exp, inf, log

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import ZeroProbability


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
            assert model.count(predicate) == pytest.approx(80.0 * chance, rel=1e-9, abs=80e-9), p.name
            if chance > 1e-9:
                assert model.log_probability(predicate) == pytest.approx(log(chance), abs=1e-9), p.name
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
                found = model.conditional(clique, predicate)
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=p.name)


def line(shares):
    """A field of one column."""
    tree = JunctionTree(Domain({"a": len(shares)}), (("a",),), ())
    return MarkovRandomField(tree, (np.array(shares, dtype=float),), float(sum(shares)))


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
    assert model.count(masks) == pytest.approx(reach.sum(), rel=1e-9)
    np.testing.assert_allclose(model.conditional(("c39",), masks), reach / reach.sum(), atol=1e-12)


def test_an_answer_walks_no_further_than_its_columns():
    model = long_chain()
    beliefs = [b.copy() for b in model.beliefs]
    for i in (*range(5), *range(9, 39)):
        beliefs[i][:] = np.nan
    poisoned = MarkovRandomField(model.tree, tuple(beliefs), 1.0)
    predicate = {"c5": [1, 2, 3], "c9": range(20)}
    assert poisoned.count(predicate) == pytest.approx(model.count(predicate), rel=1e-12)
    assert poisoned.count({"c5": 1, "c10": 1}) != pytest.approx(model.count({"c5": 1, "c10": 1}))


def test_counts_add_up_over_the_codes_of_a_column(fields):
    for p, model, _ in fields[:50]:
        column, size = next(iter(p.domain.sizes.items()))
        assert sum(model.count({column: k}) for k in range(size)) == pytest.approx(80.0), p.name
        assert model.count({}) == pytest.approx(80.0)
        assert model.count({column: []}) == 0.0 and model.log_probability({column: []}) == -inf


def test_the_probability_of_improbable_rows_is_right_where_a_product_would_underflow():
    model = long_chain(400, 4)
    fixed, chance = {"c0": 0}, log(model.beliefs[0].sum(axis=1)[0])
    for i, belief in enumerate(model.beliefs):
        step = belief[fixed[f"c{i}"]] / belief[fixed[f"c{i}"]].sum()
        fixed[f"c{i + 1}"] = int(step.argmin())
        chance += log(step.min())
    assert exp(chance) == 0 and model.log_probability(fixed) == pytest.approx(chance, rel=1e-12)


@pytest.mark.parametrize(
    ("ask", "complaint"),
    [
        (lambda m: m.count({"b": 0}), "no column 'b'"),
        (lambda m: m.conditional(("b",), {}), "no column 'b'"),
        (lambda m: m.conditional(("a", "a"), {}), "twice"),
        (lambda m: m.conditional(("a",), {}, limit=2), "the limit is 2"),
        (lambda m: m.count({"a": 3}), "outside 0 to 2"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(ask, complaint):
    with pytest.raises(ValueError, match=complaint):
        ask(line([1.0, 0.0, 1.0]))


def test_a_distribution_of_no_rows_is_refused():
    with pytest.raises(ZeroProbability, match="no row"):
        line([1.0, 0.0, 1.0]).conditional(("a",), {"a": 1})
