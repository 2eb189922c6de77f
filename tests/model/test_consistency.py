"""The projection on consistent answers is the weighted least-squares one, as dense algebra finds it."""

from itertools import combinations, product

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import least_squares as consistency
from dpsynth.model.factor import sum_to
from dpsynth.model.least_squares import Consistency, Target
from tests.examples import cases
from tests.model.least_loss import codes
from tests.thinned import some

TRIED = cases(150, part=3)


def random_targets(rng):
    """A small domain, and full targets on some cliques of it, one and the same clique at most once."""
    domain = Domain({c: int(rng.integers(1, 5)) for c in "abcde"[: rng.integers(1, 6)]})
    cliques = {tuple(c for c in domain.columns if rng.random() < 0.55) for _ in range(rng.integers(1, 7))}
    return domain, [
        Target(c, rng.normal(0, 9, domain.cells(c)), float(rng.uniform(0.1, 30)))
        for c in sorted(cliques - {()})
    ]


def some_unlike(domain, targets, rng):
    """The targets, and counts of some columns with unlike variances, one and the same column once."""
    taken = {t.clique for t in targets}
    unlike = [
        Target((c,), rng.normal(0, 9, size), rng.uniform(0.1, 30, size))
        for c, size in domain.sizes.items()
        if (c,) not in taken and rng.random() < 0.7
    ]
    mixed = [*targets, *unlike]
    return [mixed[i] for i in rng.permutation(len(mixed))]


def counting(domain, targets):
    """Matrix from the joint's cells to all targets' cells."""
    values, cells = codes(domain), domain.cells(domain.columns)
    blocks = [np.zeros((0, cells))]
    for t in targets:
        block = np.zeros((domain.cells(t.clique), cells))
        index = np.ravel_multi_index([values[c] for c in t.clique], domain.shape(t.clique))
        block[index, np.arange(cells)] = 1
        blocks.append(block)
    return np.concatenate(blocks)


def nearest(matrix, answers, variances):
    """The nearest point of a matrix's range in the metric of 1 / variances."""
    root = 1 / np.sqrt(variances)
    table, *_ = np.linalg.lstsq(matrix * root[:, None], answers * root, rcond=None)
    return matrix @ table


def together(targets):
    values = np.concatenate([t.values for t in targets] or [np.zeros(0)])
    spread = [np.broadcast_to(t.variance, t.values.size) for t in targets]
    return values, np.concatenate(spread or [np.zeros(0)])


@pytest.mark.parametrize("many", some([0, 20, 60, 1 << 15], 2))
def test_projected_answers_are_the_nearest_that_some_table_has(monkeypatch, many):
    """Targets above the threshold are summed through views, those below by position."""
    monkeypatch.setattr(consistency, "_MANY", many)
    changed = 0
    for seed in range(TRIED):
        domain, targets = random_targets(np.random.default_rng(seed))
        # Wider ones need not agree on all that they share.
        targets = [t for t in targets if len(t.clique) <= consistency._FEW]
        values, variances = together(targets)
        found = Consistency(domain, targets).project(values)
        expected = nearest(counting(domain, targets), values, variances)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9, err_msg=f"{seed}")
        changed += not np.allclose(found, values)
    assert changed > TRIED / 2


@pytest.mark.parametrize("many", some([0, 1 << 15], 1))
def test_counts_of_unlike_variances_are_projected_as_the_dense_algebra_does(monkeypatch, many):
    """Of columns that other targets hold, and of columns that none does."""
    monkeypatch.setattr(consistency, "_MANY", many)
    held = lone = 0
    for seed in range(TRIED):
        rng = np.random.default_rng(seed)
        domain, targets = random_targets(rng)
        others = [t for t in targets if 1 < len(t.clique) <= consistency._FEW]
        targets = some_unlike(domain, others, rng)
        values, variances = together(targets)
        projection = Consistency(domain, targets)
        found = projection.project(values)
        expected = nearest(counting(domain, targets), values, variances)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8, err_msg=f"{seed}")
        np.testing.assert_allclose(projection.project(found), found, rtol=0, atol=1e-9)
        columns = {c for t in others for c in t.clique}
        unlike = [t for t in targets if not t.alike]
        held += any(set(t.clique) <= columns for t in unlike)
        lone += any(not set(t.clique) <= columns for t in unlike)
    assert held > TRIED / 4 and lone > TRIED / 4


def test_counts_of_unlike_variances_weigh_by_them():
    """The planted fault: one variance for all, the mean of them."""
    domain = Domain({"a": 3, "b": 2})
    unlike = Target(("a",), np.array([9.0, 4.0, 2.0]), np.array([1.0, 20.0, 1.0]))
    pair = Target(("a", "b"), np.arange(6.0), 2.0)
    right = Consistency(domain, [unlike, pair]).project(together([unlike, pair])[0])
    even = Target(("a",), unlike.values, float(np.mean(unlike.variance)))
    wrong = Consistency(domain, [even, pair]).project(together([even, pair])[0])
    np.testing.assert_allclose(right[:3], right[3:].reshape(3, 2).sum(axis=1))
    # The pair's sums, 1, 5 and 9, have variances of 4.
    np.testing.assert_allclose(right[:3], [(9 + 1 / 4) / 1.25, (4 / 20 + 5 / 4) / 0.3, (2 + 9 / 4) / 1.25])
    assert np.abs(right - wrong).max() > 0.5


def test_projecting_twice_is_projecting_once_and_consistent_answers_stay():
    for seed in range(cases(80)):
        rng = np.random.default_rng(seed)
        domain, targets = random_targets(rng)
        projection = Consistency(domain, targets)
        values, _ = together(targets)
        before = values.copy()
        once = projection.project(values)
        np.testing.assert_array_equal(values, before)
        np.testing.assert_allclose(projection.project(once), once, rtol=0, atol=1e-10)
        own = counting(domain, targets) @ rng.normal(0, 5, domain.cells(domain.columns))
        np.testing.assert_allclose(projection.project(own), own, rtol=0, atol=1e-9)


def test_what_the_projection_takes_away_is_orthogonal_to_every_consistent_answer():
    for seed in range(cases(80)):
        rng = np.random.default_rng(seed)
        domain, targets = random_targets(rng)
        values, variances = together(targets)
        taken = (values - Consistency(domain, targets).project(values)) / variances
        np.testing.assert_allclose(counting(domain, targets).T @ taken, 0, atol=1e-9)


def test_targets_that_share_no_sum_beyond_their_own_are_left_as_they_are():
    domain = Domain({"a": 3, "b": 4})
    values = np.arange(3.0)
    found = Consistency(domain, [Target(("a",), values, 1.0)]).project(values)
    np.testing.assert_array_equal(found, values)
    assert Consistency(domain, []).project(np.zeros(0)).size == 0


def test_two_targets_without_common_columns_agree_on_the_total_alone():
    domain = Domain({"a": 2, "b": 3})
    targets = [Target(("a",), np.array([4.0, 6.0]), 1.0), Target(("b",), np.array([1.0, 2.0, 13.0]), 2.0)]
    found = Consistency(domain, targets).project(together(targets)[0])
    # Totals 10 and 16 of variances 2 and 6: 11.5 in the mean, shared out evenly.
    np.testing.assert_allclose(found, [4.75, 6.75, -0.5, 0.5, 11.5])


def test_wide_targets_agree_with_others_on_pairs(monkeypatch):
    for few, many in ((1, 1 << 15), (2, 0), (2, 1 << 15)):
        monkeypatch.setattr(consistency, "_FEW", few)
        monkeypatch.setattr(consistency, "_MANY", many)
        for seed in range(cases(40)):
            rng = np.random.default_rng(seed)
            domain, targets = random_targets(rng)
            projection = Consistency(domain, targets)
            values, variances = together(targets)
            found = projection.project(values)
            np.testing.assert_allclose(projection.project(found), found, atol=1e-10)
            taken = (values - found) / variances
            np.testing.assert_allclose(counting(domain, targets).T @ taken, 0, atol=1e-9)
            sums = {}
            ends = np.cumsum([t.values.size for t in targets])[:-1]
            for t, part in zip(targets, np.split(found, ends) if targets else [], strict=True):
                cells = part.reshape(domain.shape(t.clique))
                for pair in combinations(t.clique, 2):
                    sums.setdefault(pair, []).append(sum_to(cells, t.clique, pair))
            for same in sums.values():
                np.testing.assert_allclose(same, np.broadcast_to(same[0], np.shape(same)), atol=1e-9)


def test_a_large_target_is_projected_as_the_dense_algebra_does(monkeypatch):
    monkeypatch.setattr(consistency, "_MANY", 4096)
    domain = Domain({"a": 20, "b": 30, "c": 12})
    rng = np.random.default_rng(8)
    cliques = [("a", "b", "c"), ("a", "b"), ("b", "c"), ("c",)]
    targets = [Target(c, rng.normal(0, 5, domain.cells(c)), 1.0 + i) for i, c in enumerate(cliques)]
    values, variances = together(targets)
    found = Consistency(domain, targets).project(values)
    # In the whole table's own cells the normal equations are diagonal plus few rows: solve for the rest.
    rest = counting(domain, targets[1:])
    gram = rest @ rest.T * variances[0] + np.diag(variances[7200:])
    shift = np.linalg.solve(gram, values[7200:] - rest @ values[:7200])
    table = values[:7200] + variances[0] * (rest.T @ shift)
    np.testing.assert_allclose(found, np.concatenate([table, rest @ table]), rtol=0, atol=1e-8)


def test_the_projection_is_linear():
    rng = np.random.default_rng(3)
    domain, targets = random_targets(rng)
    projection = Consistency(domain, targets)
    x, y = rng.normal(size=(2, together(targets)[0].size))
    for a, b in product((-2.0, 0.5), repeat=2):
        expected = a * projection.project(x) + b * projection.project(y)
        np.testing.assert_allclose(projection.project(a * x + b * y), expected, atol=1e-12)
