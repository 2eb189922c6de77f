"""A refined sample: near to the model's pairs and to answers beside it; groups, public columns and zeros."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Bounds, Expansion, TableCounts, Wanted, estimate, posteriors, refined_rows, sample
from dpsynth.model.denoising import denoised_answers

DOMAIN = Domain({"a": 6, "b": 5, "c": 4})
ROWS = 5000
SIGMA = 8.0


def table(rng):
    """Three columns, of which each two depend on each other."""
    base = rng.integers(0, 12, ROWS)
    return {
        c: np.where(rng.random(ROWS) < 0.7, base, rng.integers(0, 12, ROWS)) % size
        for c, size in DOMAIN.sizes.items()
    }


def counts(codes, clique, domain=DOMAIN):
    cell = np.ravel_multi_index([codes[c] for c in clique], domain.shape(clique))
    return np.bincount(cell, minlength=domain.cells(clique)).reshape(domain.shape(clique))


def answer(codes, clique, rng):
    exact = counts(codes, clique)
    noisy = np.rint(exact + rng.normal(0, SIGMA, exact.shape)).astype(np.int64)
    return Measurement(clique, noisy, "gaussian", SIGMA)


def error(found, codes, clique):
    return float(np.abs(counts(found, clique) - counts(codes, clique)).sum()) / 2 / ROWS


def chain(codes, rng):
    """A model of the pairs a b and b c, with its answers."""
    singles = [answer(codes, (c,), rng) for c in DOMAIN.columns]
    pairs = [answer(codes, pair, rng) for pair in (("a", "b"), ("b", "c"))]
    return estimate(DOMAIN, [*singles, *pairs]).model


def test_a_pair_that_the_tree_does_not_hold_comes_near_and_the_other_pairs_stay():
    rng = np.random.default_rng(1)
    codes = table(rng)
    model = chain(codes, rng)
    drawn = sample(model, ROWS, rng)
    wanted = Wanted.of(model, {}, beside=[answer(codes, ("a", "c"), rng)])
    found = refined_rows(model, wanted, drawn, rng)
    assert error(found, codes, ("a", "c")) < 0.03
    assert error(drawn, codes, ("a", "c")) > 0.1
    for pair in (("a", "b"), ("b", "c")):
        assert error(found, codes, pair) < error(drawn, codes, pair) + 0.01


def test_a_triple_beside_the_tree_comes_near_what_no_pairs_of_it_tell():
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 6, ROWS), rng.integers(0, 5, ROWS)
    codes = {"a": a, "b": b, "c": (a + b) % 4}
    model, clique = chain(codes, rng), ("a", "b", "c")
    drawn = sample(model, ROWS, rng)
    wanted = Wanted.of(model, {}, beside=[answer(codes, ("a", "c"), rng), answer(codes, clique, rng)])
    found = refined_rows(model, wanted, drawn, rng)
    assert error(drawn, codes, clique) > 0.5
    assert error(found, codes, clique) < 0.1
    assert error(found, codes, ("a", "c")) < 0.03


def test_two_answers_about_one_pair_count_by_their_precision():
    rng = np.random.default_rng(9)
    codes = table(rng)
    model, pair = chain(codes, rng), ("a", "c")
    good = answer(codes, pair, rng)
    bad = Measurement(pair, np.zeros((6, 4), dtype=np.int64), "gaussian", 1e4)
    both, alone = (Wanted.of(model, {}, beside=some).counts[pair] for some in ([good, bad], [good]))
    np.testing.assert_allclose(both, alone, rtol=0.01, atol=0.1)


def test_without_any_answer_pairs_are_nearer_to_the_model_than_a_draw():
    rng = np.random.default_rng(2)
    model = chain(table(rng), rng)
    drawn = sample(model, ROWS, rng)
    found = refined_rows(model, Wanted.of(model, {}), drawn, rng)

    def off(codes):
        scaled = {p: model.marginal(p) * ROWS / model.total for p in combinations(DOMAIN.columns, 2)}
        return sum(np.abs(counts(codes, p) - scaled[p]).sum() for p in scaled)

    assert off(found) < off(drawn) / 2


def test_a_distance_counts_as_no_larger_than_two_tables_can_be_apart():
    rng = np.random.default_rng(4)
    model = chain(table(rng), rng)
    most, far = ({("a", "b"): times * model.total} for times in (2, 1e12))
    assert Wanted.of(model, {}, distances=far).variances == Wanted.of(model, {}, distances=most).variances


def test_a_table_of_other_length_is_refined_to_the_same_shares():
    rng = np.random.default_rng(3)
    codes = table(rng)
    model = chain(codes, rng)
    wanted = Wanted.of(model, {}, beside=[answer(codes, ("a", "c"), rng)])
    for rows in (0, 1, 500, 20_000):
        found = refined_rows(model, wanted, sample(model, rows, rng), rng)
        assert {len(v) for v in found.values()} == {rows}
    shares = counts(found, ("a", "c")) / rows
    assert np.abs(shares - counts(codes, ("a", "c")) / ROWS).sum() / 2 < 0.03


def test_counts_of_a_table_are_scaled_to_its_total():
    rng = np.random.default_rng(7)
    codes = table(rng)
    found = TableCounts(DOMAIN, codes, 2.0 * ROWS)
    np.testing.assert_allclose(found.marginal(("c", "a")), 2.0 * counts(codes, ("c", "a")))


def test_values_follow_their_groups_and_groups_without_rows_stay_empty():
    """Planted: nothing but the zeros keeps rows out of a group for which there is no value to draw."""
    rng = np.random.default_rng(4)
    codes = table(rng)
    grouping = Compression({"a": np.array([0, 0, 1, 1, 2, 2])})
    codes["a"] %= 4
    singles = [Measurement((c,), counts(codes, (c,)), "gaussian", 0.5) for c in DOMAIN.columns]
    expansion = Expansion(DOMAIN, grouping, tuple(singles))
    model = expansion.model(estimate(expansion.coarse, expansion.sums).model)
    beside = Measurement(("a (groups)", "c"), np.full((3, 4), ROWS // 12), "gaussian", 1.0)
    wanted = Wanted.of(model, {"a (groups)": "a"}, beside=[beside])
    drawn = sample(model, ROWS, rng)
    found = refined_rows(model, wanted, drawn, rng)
    assert np.array_equal(grouping.groups["a"][found["a"]], found["a (groups)"])
    assert not np.array_equal(found["a"], drawn["a"])
    empty = model.marginal(("a (groups)",)) <= 0
    assert not empty[found["a (groups)"]].any()


def test_public_columns_keep_their_values_and_no_row_enters_a_zero():
    rng = np.random.default_rng(5)
    codes = table(rng)
    model = chain(codes, rng)
    wanted = Wanted.of(model, {}, beside=[answer(codes, ("a", "c"), rng)])
    closed = np.zeros((6, 4), dtype=np.bool_)
    closed[0] = True
    drawn = sample(model, ROWS, rng)
    found = refined_rows(model, wanted, drawn, rng, Bounds({"b"}, {("a", "c"): closed}))
    assert np.array_equal(found["b"], drawn["b"])
    before, after = (closed[t["a"], t["c"]] for t in (drawn, found))
    assert before.any() and not (after & ~before).any()


def test_a_model_is_fitted_to_posteriors_of_large_answers_and_to_small_ones_as_they_are():
    rng = np.random.default_rng(6)
    codes = {"a": rng.integers(0, 12, ROWS), "b": rng.integers(0, 12, ROWS), "c": rng.integers(0, 2, ROWS)}
    domain = Domain({"a": 12, "b": 12, "c": 2})
    asked = [
        Measurement(p, counts(codes, p, domain), "gaussian", SIGMA)
        for p in (("a", "b"), ("a", "c"), ("a", "b"))
    ]
    model = estimate(
        domain, [Measurement((c,), counts(codes, (c,), domain), "gaussian", 1.0) for c in "abc"]
    ).model
    known = posteriors(asked, model)
    assert set(known) == {("a", "b")}
    fitted = denoised_answers(asked, known)
    assert [m.clique for m in fitted] == [("a", "c"), ("a", "b")] and fitted[0] is asked[1]
    assert fitted[1].stddev < SIGMA and not isinstance(fitted[1], Measurement)
    assert fitted[1].values.sum() == pytest.approx(ROWS, rel=0.02)


def test_counts_over_values_take_memory_for_their_own_cells_alone():
    """Planted: an identity of the column's values, by which counts without groups were multiplied."""
    domain = Domain({"a": 200_000, "b": 2})
    model = estimate(domain, [], total=ROWS).model
    wanted = Wanted((("a", "b"),), {("a", "b"): np.ones((200_000, 2))}, {}, {}, ROWS)
    np.testing.assert_array_equal(wanted.counts_of_values(model)["a", "b"], 1.0)
