"""Refinement: nearer to the targets, the same on every machine, and nothing that is fixed or forbidden."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.domain import Domain
from dpsynth.model.refinement import UNIT, Effort, TableTarget, _Table, refined
from tests.examples import examples

DOMAIN = Domain({"a": 2, "b": 3, "c": 4, "d": 5})


def rows_of(rng, rows, domain=DOMAIN):
    """A table in which each column depends on the one before."""
    found, last = {}, rng.integers(0, 9, rows)
    for column, size in domain.sizes.items():
        last = np.where(rng.random(rows) < 0.6, last, rng.integers(0, 9, rows))
        found[column] = last % size
    return found


def counts(codes, clique, domain=DOMAIN):
    shape = domain.shape(clique)
    return np.bincount(
        np.ravel_multi_index([codes[c] for c in clique], shape), minlength=np.prod(shape)
    ).reshape(shape)


def loss(codes, targets, domain=DOMAIN):
    return sum(t.weight * np.square(counts(codes, t.clique, domain) - t.counts).sum() for t in targets)


def all_pairs(codes, weight=1.0):
    return [TableTarget(p, counts(codes, p).astype(float), weight) for p in combinations(DOMAIN.columns, 2)]


def test_an_independent_table_comes_near_to_the_pairs_of_another_one():
    rng = np.random.default_rng(1)
    wanted, start = rows_of(rng, 3000), rows_of(rng, 3000)
    start = {c: rng.permutation(v) for c, v in start.items()}
    targets = all_pairs(wanted)
    found = refined(DOMAIN, start, targets, np.random.default_rng(2), effort=Effort(passes=4, enough=0.002))
    assert loss(found, targets) < loss(start, targets) / 1000
    assert [len(v) for v in found.values()] == [3000] * 4


def test_a_triple_is_reached_that_its_pairs_do_not_show():
    rng = np.random.default_rng(3)
    domain = Domain({"x": 2, "y": 2, "z": 2})
    x, y = rng.integers(0, 2, (2, 4000))
    parity = {"x": x, "y": y, "z": x ^ y}
    start = parity | {"z": rng.integers(0, 2, 4000)}
    target = [TableTarget(("x", "y", "z"), counts(parity, ("x", "y", "z"), domain).astype(float), 1.0)]
    found = refined(domain, start, target, rng)
    assert loss(found, target, domain) < loss(start, target, domain) / 200


def test_most_work_goes_to_the_columns_that_come_nearer_by_it(monkeypatch):
    """Only d is off at first. If every column were tried in each batch, d would have 15/54 of the work."""
    rng = np.random.default_rng(4)
    wanted = rows_of(rng, 4000)
    start = wanted | {"d": rng.permutation(wanted["d"])}
    tried = np.zeros(4)
    move = _Table.move

    def counted(table, column, batch, rng):
        tried[column] += table.work[column] * len(batch.rows)
        return move(table, column, batch, rng)

    monkeypatch.setattr(_Table, "move", counted)
    targets = [replace(target, variance=1.0) for target in all_pairs(wanted)]
    found = refined(DOMAIN, start, targets, rng)
    assert tried[3] > 0.36 * tried.sum()
    assert loss(found, targets) < loss(start, targets) / 1000


@given(st.integers(0, 10**6), st.integers(1, 300), st.booleans())
@examples(60)
def test_residuals_stay_those_of_the_rows_and_the_loss_hardly_rises(seed, rows, third):
    """The table that moves knows the exact residual of each cell, in every column's view."""
    rng = np.random.default_rng(seed)
    codes = rows_of(rng, rows)
    cliques = [("a",), ("a", "b"), ("d", "b"), ("c", "d"), *([("d", "a", "c")] if third else [])]
    targets = [TableTarget(c, rng.random(DOMAIN.shape(c)) * rows, float(rng.integers(1, 9))) for c in cliques]
    table = _Table.of(DOMAIN, codes, targets, {})
    for column in rng.integers(0, 4, 12).tolist():
        table.refine(np.flatnonzero(rng.random(rows) < 0.7), np.array([column]), rng)
    again = _Table.of(DOMAIN, table.rows(DOMAIN, codes), targets, {})
    np.testing.assert_array_equal(table.residuals, again.residuals)
    assert np.array_equal(table.residuals, np.rint(table.residuals))


def test_a_row_that_moves_alone_never_raises_the_loss():
    rng = np.random.default_rng(5)
    codes = rows_of(rng, 40)
    targets = [
        TableTarget(p, np.rint(rng.random(DOMAIN.shape(p)) * 160) / UNIT, 1.0)
        for p in (("a", "b"), ("c", "d"))
    ]
    table = _Table.of(DOMAIN, codes, targets, {})
    before = loss(codes, targets)
    for step in range(200):
        fall, _ = table.refine(np.array([step % 40]), np.array([step % 4]), rng)
        now = loss(table.rows(DOMAIN, codes), targets)
        assert now <= before + 1e-6
        assert fall * targets[0].weight / 1024 == pytest.approx(before - now)
        before = now


def test_the_same_table_targets_and_seed_give_the_same_rows_whatever_the_order_of_the_targets():
    """Sums of whole numbers don't depend on their order; nor, then, on a machine's."""
    rng = np.random.default_rng(7)
    codes, targets = rows_of(rng, 2000), all_pairs(rows_of(rng, 2000))
    first, second = (
        refined(DOMAIN, codes, listed, np.random.default_rng(1)) for listed in (targets, targets[::-1])
    )
    assert all(np.array_equal(first[c], second[c]) for c in DOMAIN.columns)
    assert any(not np.array_equal(first[c], codes[c]) for c in DOMAIN.columns)


def test_fixed_columns_stay_and_no_row_moves_into_a_forbidden_cell():
    rng = np.random.default_rng(9)
    codes, targets = rows_of(rng, 3000), all_pairs(rows_of(rng, 3000))
    closed = np.zeros((3, 4), dtype=np.bool_)
    closed[1, 2] = closed[0, :2] = True
    thrice = np.zeros((2, 3, 5), dtype=np.bool_)
    thrice[1, 2, :3] = True
    zeros = {("b", "c"): closed, ("a", "b", "d"): thrice}
    found = refined(DOMAIN, codes, targets, rng, fixed={"a"}, zeros=zeros)
    assert np.array_equal(found["a"], codes["a"]) and not np.array_equal(found["c"], codes["c"])
    for clique, mask in zeros.items():
        inside = [mask[tuple(table[c] for c in clique)] for table in (codes, found)]
        assert inside[0].any() and not (inside[1] & ~inside[0]).any()


def test_forbidden_cells_that_nobody_forbids_would_be_entered():
    """Planted: without its zeros the same refinement moves rows there."""
    rng = np.random.default_rng(9)
    codes, targets = rows_of(rng, 3000), all_pairs(rows_of(rng, 3000))
    codes["b"] = np.where(codes["b"] == 1, 2, codes["b"])
    found = refined(DOMAIN, codes, targets, rng)
    assert (found["b"] == 1).any()


def test_a_refinement_ends_where_it_gains_little_beside_the_errors_of_its_targets():
    """Precise targets get all passes; where their errors are far above the rows' own, one lap is all."""
    rng = np.random.default_rng(11)
    codes, wanted = rows_of(rng, 6000), rows_of(rng, 6000)
    pairs = list(combinations(DOMAIN.columns, 2))

    def changed(variance):
        targets = [TableTarget(p, counts(wanted, p).astype(float), 1.0, variance) for p in pairs]
        found = refined(DOMAIN, codes, targets, np.random.default_rng(1))
        return np.any([found[c] != codes[c] for c in DOMAIN.columns], axis=0).sum(), loss(found, targets)

    coarse, fine = changed(1e9), changed(1e-3)
    assert coarse[0] <= 1.5 * 6000 / Effort().laps < fine[0]
    assert fine[1] < coarse[1] / 10


def test_the_scores_that_may_be_computed_bound_the_rows_that_change():
    rng = np.random.default_rng(12)
    codes, targets = rows_of(rng, 6000), all_pairs(rows_of(rng, 6000))
    each = 6000 * sum(DOMAIN.sizes[c] for t in targets for c in t.clique)
    found = refined(DOMAIN, codes, targets, rng, effort=Effort(scores=0.1 * each))
    assert np.any([found[c] != codes[c] for c in DOMAIN.columns], axis=0).sum() <= 0.1 * 6000


def test_rows_leave_the_empty_cells_of_a_target_that_counts_them_as_below_zero():
    """Planted: cells that count as 0 keep rows that other targets, which contradict it, hold there."""
    rng = np.random.default_rng(13)
    codes = rows_of(rng, 3000)
    codes["b"], codes["c"] = rng.integers(0, 3, 3000), rng.integers(0, 4, 3000)
    empty = counts(codes, ("b", "c")).astype(float)
    empty[0, 1:] = 0.0
    held = [TableTarget(p, counts(codes, p).astype(float), 1.0) for p in (("a", "b"), ("a", "c"), ("c", "d"))]

    def strays(below):
        wanted = [TableTarget(("b", "c"), empty, 1.0, 1.0, below), *held]
        return counts(refined(DOMAIN, codes, wanted, rng), ("b", "c"))[0, 1:].sum()

    assert strays(300.0) < strays(0.0) / 2


@pytest.mark.parametrize(
    "wrong",
    [
        TableTarget(("a", "b"), np.ones((3, 2)), 1.0),
        TableTarget(tuple("abcdab"), np.ones((2, 3, 4, 5, 2, 3)), 1.0),
        TableTarget(("a",), np.array([1.0, -1.0]), 1.0),
        TableTarget(("a",), np.array([1.0, np.nan]), 1.0),
        TableTarget(("a",), np.array([1.0, 1e9]), 1.0),
    ],
)
def test_a_target_of_another_shape_or_out_of_range_is_refused(wrong):
    with pytest.raises(ValueError, match="target"):
        refined(DOMAIN, rows_of(np.random.default_rng(1), 10), [wrong], np.random.default_rng(1))


def test_nothing_changes_without_rows_targets_or_columns_that_may_move():
    rng = np.random.default_rng(1)
    codes, none = rows_of(rng, 50), {c: np.zeros(0, dtype=np.int64) for c in DOMAIN.columns}
    targets = all_pairs(rows_of(rng, 50))
    assert refined(DOMAIN, none, targets, rng) == none
    for given_ in ([], targets):
        found = refined(DOMAIN, codes, given_, rng, fixed=DOMAIN.columns)
        assert all(np.array_equal(found[c], codes[c]) for c in DOMAIN.columns)


def test_residuals_beyond_32_bits_are_added_up_exactly():
    """A far too large target draws every row; of its residual, 32 bits would keep the rows alone."""
    codes = rows_of(np.random.default_rng(8), 400)
    far = np.zeros(DOMAIN.shape(("a",)))
    far[1] = 2.0**26
    targets = [TableTarget(("a",), far, 1.0)]
    found = refined(DOMAIN, codes, targets, np.random.default_rng(1), effort=Effort(passes=20, enough=0.0))
    assert (found["a"] == 1).all()
