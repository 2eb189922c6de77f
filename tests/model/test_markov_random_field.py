"""A Markov random field's marginals and conditionals are those of the explicit joint."""

from itertools import combinations, pairwise
from math import log

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField
from dpsynth.model.factor import spread, sum_in_order, sum_to
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.model.markov_random_field import ZeroProbability, restricted
from tests.model.calibrated import marginals


@pytest.fixture(scope="module")
def fields(fields_of):
    """Each problem with its field of 50 rows, made from the explicit joint, and that joint."""
    return fields_of(50.0)


def path(length, size=2, seed=0, spread_by=1.0):
    """A chain c0 - c1 - ... of random transitions, its beliefs calibrated by hand."""
    rng = np.random.default_rng(seed)
    domain = Domain({f"c{i}": size for i in range(length)})
    pairs = tuple(pairwise(domain.columns))
    edges = tuple(Edge(i, i - 1, (f"c{i}",)) for i in range(1, length - 1))
    here, beliefs = rng.dirichlet(np.ones(size)), []
    for _ in pairs:
        weights = np.exp(rng.normal(0, spread_by, (size, size)))
        beliefs.append(here[:, None] * weights / weights.sum(axis=1, keepdims=True))
        here = beliefs[-1].sum(axis=0)
    return MarkovRandomField(JunctionTree(domain, pairs, edges), tuple(beliefs), 1.0)


def cliques_of(problem, largest=None):
    """Every set of columns, each in a random order."""
    rng = problem.rng()
    columns = problem.domain.columns
    sizes = range((len(columns) if largest is None else min(largest, len(columns))) + 1)
    return [tuple(str(c) for c in rng.permutation(list(s))) for n in sizes for s in combinations(columns, n)]


def test_any_columns_in_any_order_have_the_joints_marginal(fields, marginal_of):
    for p, model, joint in fields:
        for clique in cliques_of(p):
            expected = 50.0 * marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(
                model.marginal(clique), expected, rtol=0, atol=50e-9, err_msg=f"{p.name} {clique}"
            )


def test_a_batch_of_all_marginals_at_once_is_the_joints(fields, marginal_of):
    for p, model, joint in fields:
        asked = cliques_of(p)
        found = model.marginals([*asked, *(c[::-1] for c in asked)])
        assert set(found) == {*asked, *(c[::-1] for c in asked)}
        for clique, values in found.items():
            expected = 50.0 * marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(values, expected, rtol=0, atol=50e-9, err_msg=f"{p.name} {clique}")


def test_all_pairs_of_a_long_chain_are_products_of_its_transitions():
    model = path(40, size=3, seed=4)
    columns = model.tree.domain.columns
    found = model.marginals(combinations(columns, 2))
    steps = [b / b.sum(axis=1, keepdims=True) for b in model.beliefs]
    for a in range(40):
        start = model.beliefs[a].sum(axis=1) if a < 39 else None
        joint = np.diag(start) if a < 39 else None
        for b in range(a + 1, 40):
            joint = joint @ steps[b - 1]
            np.testing.assert_allclose(found[columns[a], columns[b]], joint, rtol=0, atol=1e-13)


def test_no_marginal_is_negative_and_each_sums_to_the_total(fields):
    for p, model, _ in fields:
        for found in model.marginals(combinations(p.domain.columns, 2)).values():
            assert found.min() >= 0 and found.sum() == pytest.approx(50.0), p.name


def test_a_marginal_walks_no_further_than_the_columns_it_is_about():
    model = path(30)
    beliefs = [b.copy() for b in model.beliefs]
    for i in (*range(9), *range(20, 29)):
        beliefs[i][:] = np.nan
    poisoned = MarkovRandomField(model.tree, tuple(beliefs), 1.0)
    for clique in (("c9", "c20"), ("c20", "c9", "c15"), ("c12",)):
        np.testing.assert_allclose(poisoned.marginal(clique), model.marginal(clique), atol=1e-14)
        np.testing.assert_allclose(poisoned.marginals([clique])[clique], model.marginal(clique), atol=1e-14)
    assert np.isnan(poisoned.marginal(("c9", "c21"))).any()


def test_a_chain_of_thousands_of_columns_is_walked_without_recursion():
    model = path(3000)
    far = model.marginal(("c0", "c2999"))
    np.testing.assert_allclose(far, np.outer(far.sum(axis=1), far.sum(axis=0)), atol=1e-12)
    assert far.sum() == pytest.approx(1.0)


def test_a_marginal_of_too_many_cells_is_refused_before_anything_is_made():
    model = path(30, size=10)
    columns = model.tree.domain.columns
    with pytest.raises(ValueError, match=r"1,000,000,000,000.* cells; the limit is 100,000,000"):
        model.marginal(columns)
    with pytest.raises(ValueError, match="the limit is 99"):
        model.marginals([("c0",), ("c3", "c9")], limit=99)
    with pytest.raises(ValueError, match="intermediate"):
        bow_tie().marginals([("a", "f")], limit=99)
    assert model.marginal(("c0", "c29"), limit=100).shape == (10, 10)


def bow_tie():
    """Two cliques that share a separator of 1000 cells."""
    domain = Domain({"a": 2, "b": 10, "c": 10, "d": 10, "e": 10, "f": 2})
    cliques = (("a", "b", "c", "d"), ("b", "c", "d", "e"), ("c", "d", "e", "f"))
    edges = (Edge(1, 0, ("b", "c", "d")), Edge(2, 1, ("c", "d", "e")))
    return MarkovRandomField(
        JunctionTree(domain, cliques, edges), tuple(np.full(domain.shape(c), 1.0) for c in cliques), 1.0
    )


@pytest.mark.parametrize("clique", [("a", "nowhere"), ("a", "a")])
def test_a_clique_with_an_unknown_column_or_one_twice_is_refused(clique):
    with pytest.raises(ValueError, match=r"no column 'nowhere'|names a column twice"):
        bow_tie().marginal(clique)


def test_changing_a_marginal_changes_nothing_in_the_model(fields):
    for p, model, _ in fields[:40]:
        before = model.fingerprint()
        for clique in cliques_of(p):
            model.marginal(clique)[...] = -1
        for values in model.marginals(cliques_of(p)).values():
            values[...] = -1
        assert model.fingerprint() == before, p.name


def test_beliefs_in_single_precision_give_marginals_in_double(fields, marginal_of):
    for p, model, joint in fields[:40]:
        single = MarkovRandomField(p.tree, tuple(b.astype(np.float32) for b in model.beliefs), 50.0)
        for clique in cliques_of(p, 2):
            found = single.marginal(clique)
            assert found.dtype == np.float64
            expected = 50.0 * marginal_of(joint, p.domain.columns, clique)
            np.testing.assert_allclose(found, expected, rtol=0, atol=50e-6, err_msg=p.name)


def conditions(problem, joint, rng):
    """A possible cell, and for some columns either its code, some codes with it, or a mask with it."""
    flat = rng.choice(joint.size, p=joint.ravel() / joint.sum())
    cell = dict(zip(problem.domain.columns, np.unravel_index(flat, joint.shape), strict=True))
    fixed, masks = {}, {}
    for column, code in cell.items():
        kind, size = rng.integers(4), problem.domain.sizes[column]
        mask = np.arange(size) == code
        if kind == 1:
            fixed[column] = int(code)
        if kind == 2:
            mask |= rng.random(size) < 0.5
            fixed[column] = [int(c) for c in rng.permutation(np.flatnonzero(mask))]
        if kind == 3:
            mask |= rng.random(size) < 0.5
            fixed[column] = mask
        if kind:
            masks[column] = mask
    return fixed, masks


def test_given_codes_the_field_is_the_conditional_joint(fields, marginal_of, spread_over):
    for p, model, joint in fields:
        rng = p.rng()
        for _ in range(3):
            fixed, masks = conditions(p, joint, rng)
            kept = joint.copy()
            for column, mask in masks.items():
                kept = kept * spread_over(mask, (column,), p.domain.columns)
            kept /= kept.sum()
            found = model.given(fixed)
            assert found.total == 50.0 and found.tree is model.tree
            for clique, values in found.marginals(cliques_of(p, 3)).items():
                expected = 50.0 * marginal_of(kept, p.domain.columns, clique)
                np.testing.assert_allclose(values, expected, rtol=0, atol=50e-9, err_msg=f"{p.name} {fixed}")


def test_given_codes_neighbouring_cliques_still_agree_and_impossible_cells_stay_so(fields, marginal_of):
    for p, model, joint in fields:
        fixed, _ = conditions(p, joint, p.rng())
        found = model.given(fixed)
        for before, after in zip(model.beliefs, found.beliefs, strict=True):
            assert after.sum() == pytest.approx(50.0) and not after[before == 0].any(), p.name
        for e in p.tree.edges:
            child = marginal_of(found.beliefs[e.child], p.tree.cliques[e.child], e.separator)
            parent = marginal_of(found.beliefs[e.parent], p.tree.cliques[e.parent], e.separator)
            np.testing.assert_allclose(child, parent, atol=50e-9, err_msg=p.name)


def test_evidence_far_below_the_smallest_double_is_still_conditioned_on_exactly():
    model = path(601, size=4, seed=1, spread_by=3.0)
    columns = model.tree.domain.columns
    steps = [b / b.sum(axis=1, keepdims=True) for b in model.beliefs]
    fixed, chance, code = {}, 0.0, 0
    before = model.beliefs[0].sum(axis=1)
    for i in range(0, 600, 2):
        two = steps[i] @ steps[i + 1]
        following = int(two[code].argmin())
        fixed[columns[i]] = code
        chance += log(two[code, following]) if i else log(before[0]) + log(two[code, following])
        code = following
    fixed[columns[600]] = code
    _, _, log_probability = restricted(
        model.tree, model.beliefs, {c: np.array([v]) for c, v in fixed.items()}
    )
    assert chance < -1000 and log_probability == pytest.approx(chance, rel=1e-12)
    found = model.given(fixed)
    for i in (0, 198, 598):
        between = steps[i][fixed[columns[i]]] * steps[i + 1][:, fixed[columns[i + 2]]]
        np.testing.assert_allclose(found.marginal((columns[i + 1],)), between / between.sum(), rtol=1e-9)


def test_impossible_evidence_is_refused_by_name(fields):
    refused = 0
    for p, model, joint in fields:
        for cell in np.argwhere(joint == 0)[:20]:
            fixed = dict(zip(p.domain.columns, (int(c) for c in cell), strict=True))
            pairs = zip(p.tree.cliques, model.beliefs, strict=True)
            if all(belief[tuple(fixed[c] for c in clique)] for clique, belief in pairs):
                continue  # too improbable for the joint table, but not impossible
            with pytest.raises(ZeroProbability, match="probability zero"):
                model.given(fixed)
            refused += 1
    assert refused > 50


@pytest.mark.parametrize(
    ("fixed", "complaint"),
    [
        ({"x": 0}, "no column 'x'"),
        ({"a": 2}, "outside 0 to 1"),
        ({"a": -1}, "outside 0 to 1"),
        ({"b": np.ones(3, bool)}, "mask of 'b' has shape"),
        ({"b": [0.5]}, "not integers"),
        ({"b": "3"}, "not integers"),
    ],
)
def test_a_condition_outside_the_domain_is_refused(fixed, complaint):
    with pytest.raises(ValueError, match=complaint):
        bow_tie().given(fixed)


def test_the_field_that_spans_some_columns_is_as_small_as_it_can_be_and_has_the_same_marginals(fields):
    for p, model, _ in fields:
        rng = p.rng()
        some = [str(c) for c in rng.permutation(list(p.domain.columns))[: rng.integers(0, 4)]]
        part = model.spanning(some)
        assert set(some) <= set(part.tree.domain.columns) <= set(p.domain.columns)
        for n in range(len(some) + 1):
            for clique in combinations(some, n):
                np.testing.assert_allclose(
                    part.marginal(clique), model.marginal(clique), rtol=0, atol=50e-9, err_msg=p.name
                )
    chain = path(30).spanning(["c9", "c12"])
    assert chain.tree.cliques in {
        (("c9", "c10"), ("c10", "c11"), ("c11", "c12")),
        (("c11", "c12"), ("c10", "c11"), ("c9", "c10")),
    }


def test_log_potentials_of_calibrated_marginals_give_these_marginals_back(fields):
    for p, model, _ in fields:
        with np.errstate(divide="ignore"):
            potentials = [np.log(b) for b in model.beliefs]
            for e in p.tree.edges:
                shared = sum_to(model.beliefs[e.child], p.tree.cliques[e.child], e.separator)
                held = np.where(shared > 0, np.log(shared), 0.0)
                potentials[e.child] = potentials[e.child] - spread(held, e.separator, p.tree.cliques[e.child])
        again, _ = marginals(p.tree, potentials, 50.0)
        for belief, same in zip(model.beliefs, again, strict=True):
            np.testing.assert_allclose(same, belief, rtol=1e-9, atol=1e-9, err_msg=p.name)


def test_the_fingerprint_changes_with_the_last_bit_of_any_belief_and_with_nothing_else(fields):
    for p, model, _ in fields[:40]:
        copy = MarkovRandomField(p.tree, tuple(b.copy() for b in model.beliefs), np.float64(50.0))
        assert model.fingerprint() == copy.fingerprint(), p.name
        for i in range(len(model.beliefs)):
            beliefs = [b.copy() for b in model.beliefs]
            beliefs[i].reshape(-1)[-1] = np.nextafter(beliefs[i].reshape(-1)[-1], np.inf)
            other = MarkovRandomField(p.tree, tuple(beliefs), 50.0)
            assert other.fingerprint() != model.fingerprint(), p.name


def test_summing_and_spreading_put_axes_where_the_names_say():
    values = np.arange(24.0).reshape(2, 3, 4)
    abc = ("a", "b", "c")
    for to in (sum_to, sum_in_order):
        np.testing.assert_array_equal(to(values, abc, ("c", "a")), values.sum(axis=1).T)
        np.testing.assert_array_equal(to(values, abc, ("b", "c", "a")), values.transpose(1, 2, 0))
        assert to(values, abc, ()).item() == values.sum()
    ca = values[:, 0, :].T
    np.testing.assert_array_equal(spread(ca, ("c", "a"), abc), values[:, :1, :])


@pytest.mark.parametrize(
    "shape", [(70, 3, 1, 5), (2, 90, 40), (40, 90, 2), (5, 1, 1), (3,) * 8, (300, 40, 2)]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_in_order_are_numpys_in_double_whatever_the_shape(shape, dtype):
    rng = np.random.default_rng(len(shape))
    values = rng.random(shape).astype(dtype)
    names = tuple("abcdefgh"[: len(shape)])
    for _ in range(12):
        kept = tuple(str(c) for c in rng.permutation([c for c in names if rng.random() < 0.5]))
        gone = tuple(i for i, c in enumerate(names) if c not in kept)
        expected = values.astype(np.float64).sum(axis=gone)
        left = [c for c in names if c in kept]
        expected = expected.transpose([left.index(c) for c in kept])
        found = sum_in_order(values, names, kept)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-13)
