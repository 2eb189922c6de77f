"""Earlier answers as evidence: over other groups, what they weigh, and where they may not go."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Expansion, LeastSquares, Triangulation, estimate
from dpsynth.model.measurement_file import Answered
from dpsynth.model.reused_answers import MOST_AFTER, Drift, ReusedAnswers, within
from tests.examples import examples

DOMAIN = Domain({"a": 6, "b": 4, "c": 3})
NONE = Compression({})
ROWS = 6_000


def joint(seed=0):
    """Shares of all cells; a and b depend on each other, c on nothing."""
    rng = np.random.default_rng(seed)
    pair = rng.dirichlet(np.full(24, 0.7)).reshape(6, 4)
    return pair[:, :, None] * rng.dirichlet(np.full(3, 5.0))


def counted(table, clique, compression=NONE):
    """Counts over a clique, by groups."""
    axes = [DOMAIN.columns.index(c) for c in clique]
    counts = table.sum(axis=tuple(i for i in range(3) if i not in axes))
    counts = counts.transpose([sorted(axes).index(i) for i in axes])
    for axis, column in enumerate(clique):
        if column in compression.groups:
            groups = compression.groups[column]
            parts = [
                counts.take(np.flatnonzero(groups == g), axis).sum(axis) for g in range(groups.max() + 1)
            ]
            counts = np.stack(parts, axis)
    return counts


def measured(table, clique, rng, sigma=5.0, compression=NONE):
    counts = counted(table, clique, compression)
    return Measurement(
        clique, np.rint(counts + rng.normal(0, sigma, counts.shape)).astype(np.int64), "gaussian", sigma
    )


def answered(table, rng, sigma=5.0, compression=NONE, pairs=(("a", "b"), ("b", "c"))):
    singles = tuple(measured(table, c, rng, sigma) for c in ((), ("a",), ("b",), ("c",)))
    return Answered(singles, tuple(measured(table, p, rng, sigma, compression) for p in pairs), compression)


def drawn(seed, of=None):
    return (
        np.random.default_rng(seed)
        .multinomial(ROWS, (joint() if of is None else of).ravel())
        .reshape(6, 4, 3)
    )


def prepared(release, evidence, compression):
    """What a release knows of its columns, and the model of these."""
    expansion = Expansion(DOMAIN, compression, (*release.singles, *evidence.columns))
    return expansion, estimate(expansion.coarse, expansion.sums).model


GROUPINGS = st.lists(st.integers(0, 3), min_size=6, max_size=6).map(
    lambda g: Compression({"a": np.unique(g, return_inverse=True)[1]})
)


@given(GROUPINGS, st.booleans())
@examples(40)
def test_groups_that_lie_in_groups_of_now_are_summed_exactly(fine, values):
    """Fine groups merged further, or values: no share is guessed."""
    coarser = Compression({"a": np.minimum(fine.groups["a"], 1)})
    if coarser.groups["a"].max() == 0:
        return
    table, rng = drawn(1), np.random.default_rng(0)
    earlier = NONE if values else fine
    exact = answered(table, rng, 1e-3, earlier)
    evidence = ReusedAnswers(DOMAIN, same=(exact,))
    found = evidence.joint(*prepared(exact, evidence, coarser), 10**6)
    (of,) = [m for m in found if m.clique == ("a", "b")]
    assert np.array_equal(of.values, counted(table, ("a", "b"), coarser))


@given(GROUPINGS, GROUPINGS)
@examples(40)
def test_groups_are_spread_by_the_single_columns_and_keep_their_rows(then, now):
    table, rng = drawn(1), np.random.default_rng(0)
    told = answered(table, rng, 1e-3, then)
    expansion, _ = prepared(told, ReusedAnswers(DOMAIN), now)
    spread = expansion.shares("a", then)
    assert np.allclose(spread.sum(axis=1), 1) and (spread >= 0).all()
    assert np.allclose(counted(table, ("a",), then) @ spread, counted(table, ("a",), now), atol=1e-2 * ROWS)


def test_axes_come_in_table_order_whatever_order_they_were_measured_in():
    table, rng = drawn(1), np.random.default_rng(0)
    turned = answered(table, rng, 1e-3, pairs=(("b", "a"),))
    evidence = ReusedAnswers(DOMAIN, same=(turned,))
    (found,) = evidence.joint(*prepared(turned, evidence, NONE), 10**6)
    assert found.clique == ("a", "b") and np.array_equal(found.values, counted(table, ("a", "b")))


def test_over_several_periods_noise_averages_out_and_change_does_not():
    """Four answers, each with change of variance 100 a cell: were it noise, 25 would be left of it."""
    table, rng = drawn(1), np.random.default_rng(0)
    told = answered(table, rng, 10.0)
    change = Drift(1.0, 100.0 * 6)
    (one,) = [m for m in ReusedAnswers(DOMAIN, before=((change, told),)).columns if m.clique == ("a",)]
    (four,) = [m for m in ReusedAnswers(DOMAIN, before=((change, told),) * 4).columns if m.clique == ("a",)]
    assert one.variance == pytest.approx(200) and four.variance == pytest.approx(125)
    (fewer,) = [
        m for m in ReusedAnswers(DOMAIN, before=((Drift(5.0, 0.0), told),)).columns if m.clique == ("a",)
    ]
    assert fewer.variance == pytest.approx(2500), "each row then stands for five of now"
    same = [m for m in ReusedAnswers(DOMAIN, same=(told,) * 4).columns if m.clique == ("a",)]
    assert len(same) == 4 and {m.variance for m in same} == {100.0}


@pytest.mark.parametrize(("drifts", "counts_little"), [(False, False), (True, True)])
def test_an_earlier_period_counts_for_less_the_more_single_columns_have_changed(drifts, counts_little):
    rng = np.random.default_rng(0)
    far = 0.7 * joint() + 0.3 * joint(5)
    now, then = answered(drawn(1), rng), answered(drawn(2, far if drifts else None), rng)
    evidence = ReusedAnswers.of(DOMAIN, now.singles, (), [(1, then)])
    (of,) = [m for m in evidence.columns if m.clique == ("a",)]
    assert (of.stddev > 100) == counts_little and of.stddev > 5 * sqrt(2)


def test_counts_of_a_smaller_table_are_scaled_to_the_rows_of_now():
    rng = np.random.default_rng(0)
    now, then = answered(5 * drawn(1), rng), answered(drawn(2), rng)
    evidence = ReusedAnswers.of(DOMAIN, now.singles, (), [(1, then)])
    (of,) = [m for m in evidence.columns if m.clique == ("b",)]
    assert of.values.sum() == pytest.approx(5 * ROWS, rel=0.02)
    assert np.abs(of.values - counted(5 * drawn(1), ("b",))).max() < 4 * of.stddev


def _intervals(evidence, own, truth):
    """Whether each cell's 95 % interval holds it, and the mean standard error."""
    expansion = Expansion(DOMAIN, NONE, own.singles)
    direct = LeastSquares(DOMAIN, (*expansion.direct(own.answers), *evidence))
    error = sqrt(direct.cell_variance(("a", "b")))
    return np.abs(direct.marginal(("a", "b")) - truth) <= 1.96 * error, error


def test_intervals_of_measured_tables_hold_what_they_should_and_shrink_by_the_answers_averaged_in():
    """Planted: what earlier periods say, taken for an answer about these rows, and intervals hold nothing."""
    held, wrongly, errors = [], [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table, before = drawn(seed), drawn(seed + 1000, 0.8 * joint() + 0.2 * joint(5))
        own, again, other = (answered(t, rng) for t in (table, table, before))
        truth = counted(table, ("a", "b"))
        evidence = ReusedAnswers.of(DOMAIN, own.singles, [again], [(1, other)])
        inside, error = _intervals(evidence.direct(), own, truth)
        held.append(inside.mean())
        errors.append(error / _intervals((), own, truth)[1])
        planted = replace(evidence, same=(again, other)).direct()
        wrongly.append(_intervals(planted, own, truth)[0].mean())
    assert 0.93 < np.mean(held) < 0.97
    assert np.mean(errors) == pytest.approx(1 / sqrt(2), rel=1e-6)
    assert np.mean(wrongly) < 0.6


def test_merged_answers_of_the_same_rows_tell_measured_tables_of_the_other_column_alone():
    table, rng = drawn(1), np.random.default_rng(0)
    merged = answered(table, rng, 1.0, Compression({"a": np.array([0, 0, 0, 1, 1, 1])}))
    evidence = ReusedAnswers(DOMAIN, same=(merged,))
    assert not LeastSquares(DOMAIN, evidence.direct()).covers(("a", "b"))
    assert LeastSquares(DOMAIN, evidence.direct()).covers(("b", "c"))


def test_what_tells_most_comes_first_and_what_is_noise_alone_not_at_all():
    rng = np.random.default_rng(0)
    told = answered(drawn(1), rng, pairs=(("b", "c"), ("a", "c"), ("a", "b")))
    evidence = ReusedAnswers(DOMAIN, same=(told,))
    found = evidence.joint(*prepared(told, evidence, NONE), 10**6)
    assert found[0].clique == ("a", "b")
    loud = answered(drawn(1), rng, 2_000.0)
    assert ReusedAnswers(DOMAIN, same=(loud,)).joint(*prepared(told, evidence, NONE), 10**6) == ()


def test_no_earlier_release_says_nothing():
    rng = np.random.default_rng(0)
    own = answered(drawn(1), rng)
    nothing = ReusedAnswers.of(DOMAIN, own.singles, [], [])
    assert nothing.columns == () and nothing.direct() == ()
    assert nothing.joint(*prepared(own, nothing, NONE), 10**6) == ()
    assert within(DOMAIN, [("a", "b")], (), 1) == ()


@given(st.integers(2, 9), st.integers(1, 40), st.integers(0, 2**32))
@examples(80)
def test_evidence_takes_what_room_is_left_and_never_that_of_what_was_measured(columns, factor, seed):
    rng = np.random.default_rng(seed)
    domain = Domain({f"c{i}": int(rng.integers(2, 6)) for i in range(columns)})
    names = np.array(domain.columns)

    def some(number):
        sizes = rng.integers(1, min(columns, 3) + 1, number)
        return [domain.canonical(rng.choice(names, size, replace=False).tolist()) for size in sizes]

    own = some(columns)
    told = [Measurement(c, np.zeros(domain.shape(c), np.int64), "gaussian", 1.0) for c in some(8)]
    alone = Triangulation.of(domain, own).cells
    bound = max(1, alone * factor // 10)
    kept = within(domain, own, told, bound)
    cells = Triangulation.of(domain, [*own, *(m.clique for m in kept)]).cells
    assert cells <= max(alone, min(bound, MOST_AFTER))
    assert [m for m in told if m in kept] == list(kept)
    assert len(within(domain, own, told, 10**6)) == len(told)
    inside = [m for m in told if any(set(m.clique) <= set(c) for c in own)]
    assert len(within(domain, own, inside, 1)) == len(inside), "they need no room"
