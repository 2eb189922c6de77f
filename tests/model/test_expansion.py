"""A model of groups becomes one of values: marginals by hand, rows, storage, errors."""

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Expansion, FitOptions, LeastSquares, estimate, load, refits, sample, save
from dpsynth.model.denoising import smoothed
from dpsynth.model.least_squares import on_simplex
from tests.model.least_loss import least_loss

DOMAIN = Domain({"age": 6, "sex": 2, "city": 5, "job": 3})
GROUPING = Compression({"age": np.array([0, 1, 1, 2, 1, 3]), "city": np.array([0, 1, 1, 0, 2])})
CLIQUES = (("age", "sex"), ("sex", "city", "job"))
ROWS = 4000


def truth(seed=0):
    """Counts of every cell of the domain."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(ROWS, rng.dirichlet(np.full(6 * 2 * 5 * 3, 0.5))).reshape(6, 2, 5, 3)


def coarsely(table):
    """The same with groups for values, by a matrix an axis."""
    age, city = (np.eye(g.max() + 1)[g] for g in (GROUPING.groups["age"], GROUPING.groups["city"]))
    return np.einsum("asct,ag,ch->gsht", table, age, city)


def counted(table, clique, rng, scale=12.0):
    axes = [DOMAIN.columns.index(c) for c in clique]
    counts = np.einsum(table, range(4), axes)
    noisy = np.rint(counts + rng.normal(0, scale, counts.shape)).astype(np.int64)
    return Measurement(clique, noisy, "gaussian", scale)


def problem(seed=0):
    """An expansion and answers over groups."""
    rng, table = np.random.default_rng(seed), truth(seed)
    singles = tuple(counted(table, c, rng) for c in ((), *((c,) for c in DOMAIN.columns)))
    answers = tuple(counted(coarsely(table), c, rng) for c in CLIQUES)
    return Expansion(DOMAIN, GROUPING, singles), answers


def fitted(seed=0):
    expansion, answers = problem(seed)
    fit = estimate(expansion.coarse, [*expansion.sums, *answers])
    return expansion, answers, fit


def test_marginals_of_values_are_those_of_groups_times_the_shares_of_values_within_them():
    for seed in range(5):
        expansion, _, fit = fitted(seed)
        model = expansion.model(fit.model)
        coarse = fit.model.marginal(DOMAIN.columns)
        shares = {}
        for column, groups in GROUPING.groups.items():
            (single,) = [m for m in expansion.singles if m.clique == (column,)]
            rows = fit.model.marginal((column,))
            shares[column] = np.zeros(groups.size)
            for g in range(groups.max() + 1):
                even = smoothed(single.values.astype(float), single.variance)
                inside = on_simplex(even[groups == g], rows[g])
                shares[column][groups == g] = inside / rows[g]
        age, city = GROUPING.groups["age"], GROUPING.groups["city"]
        by_hand = coarse[age][:, :, city] * shares["age"][:, None, None, None] * shares["city"][:, None]
        np.testing.assert_allclose(model.marginal(DOMAIN.columns), by_hand, rtol=1e-9, atol=1e-9)
        for clique in [("age",), ("city", "age"), ("job", "city"), ("age", "job", "sex")]:
            axes = [DOMAIN.columns.index(c) for c in clique]
            expected = np.einsum(by_hand, range(4), axes)
            np.testing.assert_allclose(model.marginal(clique), expected, rtol=1e-9, atol=1e-9)


def test_marginals_over_groups_stay_what_they_were():
    expansion, _, fit = fitted()
    model = expansion.model(fit.model)
    found = model.marginal(("age (groups)", "sex", "city (groups)", "job"))
    np.testing.assert_allclose(found, fit.model.marginal(DOMAIN.columns), rtol=1e-12)
    both = model.marginal(("age (groups)", "age"))
    outside = GROUPING.groups["age"][None, :] != np.arange(4)[:, None]
    assert (both[outside] == 0).all() and (both[~outside] > 0).any()
    assert model.total == fit.model.total


def test_sums_weigh_in_the_fit_as_the_answers_on_values_do():
    """The groups' fit is the values' fit, wherever no value of a group is cut at zero."""
    rng, table = np.random.default_rng(3), truth(3) + 40
    singles = tuple(counted(table, (c,), rng) for c in DOMAIN.columns)
    expansion = Expansion(DOMAIN, GROUPING, singles)
    fine = estimate(DOMAIN, singles, FitOptions(tolerance=1e-9), total=11_200.0)
    coarse = estimate(expansion.coarse, expansion.sums, FitOptions(tolerance=1e-9), total=11_200.0)
    for column in DOMAIN.columns:
        values = fine.model.marginal((column,))
        groups = GROUPING.groups.get(column, np.arange(values.size))
        found = coarse.model.marginal((column,))
        np.testing.assert_allclose(found, np.bincount(groups, weights=values), atol=0.5)
    # With the groups' noise taken for that of one count each, groups of many values come out wrong.
    faulty = [replace(m, summed=None) for m in expansion.sums]
    wrong = estimate(expansion.coarse, faulty, FitOptions(tolerance=1e-9), total=11_200.0).model
    assert np.abs(wrong.marginal(("age",)) - coarse.model.marginal(("age",))).max() > 3


def test_sums_have_the_noise_of_as_many_counts_and_say_the_same_total():
    expansion, _ = problem()
    for fine, sums in zip(expansion.singles, expansion.sums, strict=True):
        assert sums.clique == fine.clique and sums.values.sum() == fine.values.sum()
        assert sums.variances.sum() == pytest.approx(fine.variances.sum())
    by_column = {m.clique: m for m in expansion.sums}
    values = {m.clique: m.values for m in expansion.singles}
    assert by_column["age",].values[1] == values["age",][[1, 2, 4]].sum()
    assert by_column["age",].variances.tolist() == [144.0, 432.0, 144.0, 144.0]
    assert by_column["sex",].summed is None
    whole = estimate(expansion.coarse, expansion.sums).model.total
    assert whole == pytest.approx(estimate(DOMAIN, expansion.singles).model.total)


def test_no_joint_table_explains_sums_and_answers_better():
    for seed in range(4):
        expansion, answers = problem(seed)
        ms = [m for m in (*expansion.sums, *answers) if m.clique]
        fit = estimate(expansion.coarse, ms, FitOptions(tolerance=1e-9), total=ROWS)
        low, high = least_loss(expansion.coarse, ms, ROWS)
        assert fit.objective == pytest.approx(high, rel=1e-5) and high - low < 1e-6 * high


def test_without_groups_nothing_changes():
    expansion, answers = problem()
    plain = Expansion(DOMAIN, Compression({}), expansion.singles)
    assert plain.sums == expansion.singles and plain.coarse.sizes == DOMAIN.sizes
    model = estimate(DOMAIN, plain.singles).model
    assert plain.model(model) is model
    assert plain.direct(answers[1:]) == (*plain.singles, *answers[1:])


def test_names_of_groups_are_unlike_all_names_of_columns():
    domain = Domain({"a": 3, "a (groups)": 3, "a (groups 2)": 2})
    compression = Compression({"a": np.array([0, 1, 1]), "a (groups)": np.array([0, 0, 1])})
    singles = tuple(Measurement((c,), np.full(s, 180 // s), "gaussian", 1.0) for c, s in domain.sizes.items())
    expansion = Expansion(domain, compression, singles)
    model = expansion.model(estimate(expansion.coarse, expansion.sums).model)
    names = model.tree.domain.columns
    assert names == ("a (groups 3)", "a", "a (groups) (groups)", "a (groups)", "a (groups 2)")
    np.testing.assert_allclose(model.marginal(("a",)), np.full(3, 60.0), rtol=1e-6)


def test_a_column_without_an_answer_is_spread_evenly_and_a_group_of_nobody_has_nobody():
    domain = Domain({"a": 5, "b": 3})
    compression = Compression({"a": np.array([0, 1, 1, 2, 2]), "b": np.array([0, 1, 1])})
    zeros = {("a",): np.array([False, True, False])}
    single = Measurement(("a",), np.array([85, -1, -1, 5, 12]), "gaussian", 1.0)
    expansion = Expansion(domain, compression, (single,))
    model = expansion.model(estimate(expansion.coarse, expansion.sums, total=102.0, zeros=zeros).model)
    np.testing.assert_allclose(model.marginal(("a",)), [85, 0, 0, 5, 12], atol=0.5)
    assert (model.marginal(("a",))[1:3] == 0).all()
    found = model.marginal(("b",))
    np.testing.assert_allclose(found[1], found[2])


def test_it_is_stored_and_read_back(tmp_path):
    expansion, _, fit = fitted()
    model = expansion.model(fit.model)
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.fingerprint() == model.fingerprint() and again.tree == model.tree


def test_rows_have_values_of_their_groups_and_counts_of_the_model():
    expansion, _, fit = fitted()
    model = expansion.model(fit.model)
    rows = sample(model, 30_000, np.random.default_rng(5))
    for column, groups in GROUPING.groups.items():
        assert (groups[rows[column]] == rows[f"{column} (groups)"]).all()
        assert rows[column].min() >= 0 and rows[column].max() < DOMAIN.sizes[column]
    for clique in [("age",), ("age", "sex"), ("city", "job"), ("age", "city")]:
        found = np.zeros(DOMAIN.shape(clique))
        np.add.at(found, tuple(rows[c] for c in clique), 1)
        expected = model.marginal(clique) * 30_000 / model.total
        spread = np.sqrt(expected * (1 - expected / 30_000)) + 1
        assert (np.abs(found - expected) < 5 * spread).all(), clique


def test_a_value_tells_nothing_of_other_columns_once_its_group_is_known():
    expansion, _, fit = fitted()
    rows = sample(expansion.model(fit.model), 60_000, np.random.default_rng(6))
    inside = rows["age (groups)"] == 1
    table = np.zeros((6, 2))
    np.add.at(table, (rows["age"][inside], rows["sex"][inside]), 1)
    table = table[table.sum(axis=1) > 0]
    assert len(table) >= 2
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    chi_squared = float(((table - expected) ** 2 / expected).sum())
    # 0.9999 quantile of chi-squared with at most 2 degrees of freedom.
    assert chi_squared < 18.5


def test_what_answers_over_groups_say_of_values_is_unbiased_and_of_the_variance_stated():
    """Sums over all groups of a column are sums over all its values; groups never stand for values."""
    expansion, answers = problem()
    known = expansion.direct(answers)
    assert [m.clique for m in known[-2:]] == [("sex",), ("sex", "job")]
    assert (known[-2].values == answers[0].values.sum(axis=0)).all()
    assert (known[-2].variances == 4 * 144.0).all() and (known[-1].variances == 3 * 144.0).all()
    direct = LeastSquares(DOMAIN, known)
    assert direct.covers(("job", "sex")) and direct.covers(("age",))
    assert not direct.covers(("age", "sex")) and not direct.covers(("sex", "city"))
    table, errors = truth().sum(axis=(0, 2)), []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        singles = tuple(counted(truth(), m.clique, rng) for m in expansion.singles)
        again = tuple(counted(coarsely(truth()), c, rng) for c in CLIQUES)
        known = replace(expansion, singles=singles).direct(again)
        errors.append(LeastSquares(DOMAIN, known).marginal(("sex", "job")) - table)
    spread = np.sqrt(direct.cell_variance(("sex", "job")))
    assert np.abs(np.mean(errors, axis=0)).max() < 4.5 * spread / 20
    assert np.std(errors) == pytest.approx(spread, rel=0.07)


def test_least_squares_leaves_out_values_of_unlike_variances():
    expansion, _ = problem()
    coarse = [m for m in expansion.sums if m.clique == ("age",)]
    assert not LeastSquares(expansion.coarse, coarse).covers(("age",))


def test_refits_of_values_spread_as_far_as_fits_to_fresh_noise():
    table, rng = truth(2), np.random.default_rng(2)
    fresh = []
    for _ in range(60):
        singles = tuple(counted(table, m.clique, rng) for m in problem()[0].singles)
        answers = [counted(coarsely(table), c, rng) for c in CLIQUES]
        expansion = Expansion(DOMAIN, GROUPING, singles)
        fit = estimate(expansion.coarse, [*expansion.sums, *answers])
        fresh.append(expansion.model(fit.model))
    again = refits(fit, answers, 60, rng, expansion)
    assert again[0].tree.domain.columns == fresh[0].tree.domain.columns
    for clique in [("age",), ("age", "sex"), ("city", "job")]:
        true, found = (np.std([m.marginal(clique) for m in ms], axis=0).mean() for ms in (fresh, again))
        assert found == pytest.approx(true, rel=0.2), clique


def test_several_answers_on_one_column_count_by_their_precision():
    """In the fit, in the shares within a group and in what is said of values."""
    domain, compression = Domain({"a": 4}), Compression({"a": np.array([0, 1, 1, 2])})
    rough = Measurement(("a",), np.array([100, 10, 50, 40]), "gaussian", 6.0)
    fine = Measurement(("a",), np.array([110, 30, 20, 40]), "gaussian", 3.0)
    expansion = Expansion(domain, compression, (rough, fine))
    both = (rough.values / 36 + fine.values / 9) / (1 / 36 + 1 / 9)
    model = expansion.model(estimate(expansion.coarse, expansion.sums, total=both.sum()).model)
    np.testing.assert_allclose(model.marginal(("a",)), both, atol=0.2)
    np.testing.assert_allclose(LeastSquares(domain, expansion.direct(())).marginal(("a",)), both)


def test_an_expansion_counts_the_cells_it_adds():
    domain = Domain({"a": 6, "b": 4, "c": 3})
    compression = Compression({"a": np.array([0, 0, 1, 2, 2, 2]), "b": np.array([0, 1, 1, 1])})
    singles = tuple(Measurement((c,), np.full(n, 50), "gaussian", 2.0) for c, n in domain.sizes.items())
    expansion = Expansion(domain, compression, singles)
    field = estimate(expansion.coarse, expansion.sums).model
    assert expansion.cells == 3 * 6 + 2 * 4
    assert expansion.model(field).tree.cells == field.tree.cells + expansion.cells


TAIL = np.array([900, 60, 40, 30, 12, 8, 15, 0, 200])
"""Noisy counts of eight bins of an amount, and of missing ones; the last four bins hold nobody."""


def spread_over(numbers):
    """Rows of each of these when the rare ones were one group."""
    domain, groups = Domain({"pay": 9, "sex": 2}), np.array([0, 1, 1, 1, 1, 1, 1, 1, 2])
    singles = (
        Measurement((), np.array(int(TAIL.sum())), "gaussian", 10.0),
        Measurement(("pay",), TAIL, "gaussian", 10.0),
        Measurement(("sex",), np.array([600, 665]), "gaussian", 10.0),
    )
    expansion = Expansion(domain, Compression({"pay": groups}), singles, numbers)
    return expansion.model(estimate(expansion.coarse, expansion.sums).model).marginal(("pay",))


def test_behind_the_last_number_that_stands_out_nobody_is_put():
    found = spread_over({"pay": 8})
    assert found[:4].min() > 20 and found[8] > 150
    assert not found[5:8].any()
    assert found.sum() == pytest.approx(TAIL.sum(), rel=0.02)


def test_names_keep_their_rows_and_so_would_a_tail_if_missing_counted_as_a_number():
    """The planted fault: missing, the last code, stands out, and so all bins before it are inside."""
    assert spread_over({})[6] > 5
    assert spread_over({"pay": 9})[6] > 5


def test_missing_cells_that_do_not_stand_out_of_the_noise_get_no_rows_and_others_keep_theirs():
    domain = Domain({"well": 3, "sex": 2})
    grouping = Compression({"well": np.array([0, 1, 1])})
    for missing, expected in ((15, 0.0), (60, 60.0)):
        single = Measurement(("well",), np.array([400, 600, missing]), "gaussian", 10.0)
        expansion = Expansion(domain, grouping, (single,), values={"well": 2})
        model = expansion.model(estimate(expansion.coarse, expansion.sums).model)
        rows = model.marginal(("well",))
        assert rows[2] == pytest.approx(expected, abs=1.0)
        assert rows.sum() == pytest.approx(1000 + missing)
