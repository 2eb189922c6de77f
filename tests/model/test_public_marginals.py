"""Models and tables agree with known marginals: exactly, and with as little else changed as may be."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain
from dpsynth.columns.measurement import Measurement, PublicMarginal, PublicMarginals
from dpsynth.model import Expansion, estimate, public_counts, raked, raked_rows, sample

DOMAIN = Domain({"a": 3, "b": 4, "c": 2, "d": 5})
ROWS = 1000
TABLE = np.random.default_rng(0).multinomial(
    ROWS, np.random.default_rng(1).dirichlet(np.full(DOMAIN.cells("abcd"), 0.2))
)
TABLE = TABLE.reshape(DOMAIN.shape("abcd"))
CHAIN = [("a", "b"), ("b", "c"), ("c", "d")]


def counts(clique, table=TABLE):
    axes = [DOMAIN.columns.index(c) for c in clique]
    summed = table.sum(axis=tuple(i for i in range(4) if i not in axes))
    return summed.transpose(np.argsort(np.argsort(axes)))


def public_marginals_of(*cliques, counted=True):
    return PublicMarginals.of([PublicMarginal(c, counts(c).astype(float), counted) for c in cliques])


def fitted(known, rows=ROWS, seed=0, sigma=30.0):
    """A model of noisy pairs, known marginals among the answers."""
    rng = np.random.default_rng(seed)
    noisy = [
        Measurement(
            c, np.rint(counts(c) + rng.normal(0, sigma, counts(c).shape)).astype(int), "gaussian", sigma
        )
        for c in [*CHAIN, ("a",), ("d",)]
    ]
    singles, joint = public_counts(known, rows)
    return estimate(DOMAIN, [Measurement((), np.array(rows), "none", 0.0), *noisy, *singles, *joint]).model


def drawn_counts(codes, clique):
    found = np.zeros(DOMAIN.shape(clique), dtype=int)
    np.add.at(found, tuple(codes[c] for c in clique), 1)
    return found


CASES = [
    [("a",)],
    [("b", "a")],
    [("a", "b"), ("c",)],
    CHAIN,
    [("a", "b"), ("c", "d")],
    [("a", "b", "c"), ("c", "d"), ("a", "d")],
]


@pytest.mark.parametrize("cliques", CASES)
def test_the_models_known_marginals_are_exact(cliques):
    """Planted: the model as it was fitted, which is near by and not there."""
    known = public_marginals_of(*cliques)
    before = fitted(PublicMarginals(), sigma=30.0)
    tree_of_known = fitted(known)
    after = raked(tree_of_known, known)
    for clique in cliques:
        assert np.abs(after.marginal(clique) - counts(clique)).max() < 1e-5
        assert np.abs(tree_of_known.marginal(clique) - counts(clique)).max() < 1.5
    assert max(np.abs(before.marginal(c) - counts(c)).max() for c in cliques) > 3


@pytest.mark.parametrize("cliques", CASES)
def test_what_is_set_along_the_tree_leaves_a_model_that_agrees_with_itself(cliques):
    known = public_marginals_of(*cliques)
    model = raked(fitted(known), known)
    for edge in model.tree.edges:
        sides = []
        for at in (edge.child, edge.parent):
            clique = model.tree.cliques[at]
            gone = tuple(i for i, c in enumerate(clique) if c not in edge.separator)
            left = [c for c in clique if c in edge.separator]
            sides.append(model.beliefs[at].sum(axis=gone).transpose([left.index(c) for c in edge.separator]))
        assert np.allclose(*sides, atol=1e-5)
    assert all(belief.sum() == pytest.approx(ROWS) for belief in model.beliefs)


@pytest.mark.parametrize("merged", ["a", "b", "c", "d"])
def test_a_model_of_values_whose_groups_were_fitted_has_the_known_marginals(merged):
    """The edges of an expanded model are in no order of a walk through its tree."""
    groups = {c: np.arange(DOMAIN.sizes[c]) // 2 for c in "abcd" if c >= merged}
    singles = tuple(Measurement((c,), counts((c,)), "gaussian", 30.0) for c in "abcd")
    expansion = Expansion(DOMAIN, Compression(groups), singles)
    coarse = [Measurement(c, _in_groups(c, groups), "gaussian", 30.0) for c in CHAIN]
    model = expansion.model(estimate(expansion.coarse, [*expansion.sums, *coarse]).model)
    known = public_marginals_of(*((c,) for c in "abcd"))
    after = raked(model, known)
    for column in "abcd":
        assert np.abs(after.marginal((column,)) - counts((column,))).max() < 1e-5
    for edge in after.tree.edges:
        assert edge.parent < edge.child


def test_rare_public_values_of_a_merged_column_keep_their_shares():
    """A value of a tenth of a row too, and numbers far behind all others."""
    domain = Domain({"pay": 60, "sex": 2})
    shares = np.zeros(60)
    shares[:6], shares[[20, 21, 40, 59]] = 0.15, [0.05, 0.03, 0.0199, 0.0001]
    known = PublicMarginals.of([PublicMarginal(("pay",), shares, counted=False)])
    singles, _ = public_counts(known, 100)
    total = Measurement((), np.array(100), "none", 0.0)
    sex = Measurement(("sex",), np.array([60, 40]), "gaussian", 3.0)
    grouping = Compression({"pay": np.minimum(np.arange(60), 4)})
    expansion = Expansion(domain, grouping, (total, *singles, sex), {"pay": 60})
    after = raked(expansion.model(estimate(expansion.coarse, expansion.sums).model), known)
    assert np.abs(after.marginal(("pay",)) / 100 - shares).max() < 1e-6


def test_a_model_that_excludes_public_cells_keeps_its_rows():
    model = fitted(PublicMarginals())
    a, b = model.tree.cliques.index(("a", "b")), model.tree.cliques.index(("b", "c"))
    beliefs = list(model.beliefs)
    lost = beliefs[a][:, 3].sum()
    beliefs[a] = beliefs[a] * (np.arange(4) < 3) * (ROWS / (ROWS - lost))
    beliefs[b] = beliefs[b] * (np.arange(4) < 3)[:, None] * (ROWS / (ROWS - lost))
    known = public_marginals_of(("b",))
    after = raked(replace(model, beliefs=tuple(beliefs)), known)
    assert all(belief.sum() == pytest.approx(ROWS) for belief in after.beliefs)
    kept = counts(("b",))[:3]
    assert after.marginal(("b",)) == pytest.approx([*(kept * ROWS / kept.sum()), 0.0])


def _in_groups(clique, groups):
    found = counts(clique)
    for axis, c in enumerate(clique):
        if c in groups:
            found = np.stack(
                [found.compress(groups[c] == g, axis).sum(axis) for g in range(groups[c].max() + 1)], axis
            )
    return found


@pytest.mark.parametrize("cliques", CASES[:-1])
@pytest.mark.parametrize("seed", range(3))
def test_a_table_of_as_many_rows_has_the_known_counts_to_a_row(cliques, seed):
    """Planted: the rows as they were drawn, of which some cells have one too many."""
    known = public_marginals_of(*cliques)
    model = raked(fitted(known, seed=seed), known)
    rng = np.random.default_rng(seed)
    joint = np.maximum(model.marginal(DOMAIN.columns), 0)
    cells = rng.choice(joint.size, ROWS, p=joint.reshape(-1) / joint.sum())
    drawn = dict(zip(DOMAIN.columns, np.unravel_index(cells, joint.shape), strict=True))
    made = raked_rows(model, known, drawn, rng)
    assert any((drawn_counts(drawn, c) != counts(c)).any() for c in cliques)
    for clique in cliques:
        assert np.array_equal(drawn_counts(made, clique), counts(clique))
    assert all(len(v) == ROWS for v in made.values()) and list(made) == list(drawn)


@pytest.mark.parametrize("rows", [1, 7, 999, 12_345])
@pytest.mark.parametrize("counted", [True, False])
def test_a_table_of_other_rows_has_them_to_rounding(rows, counted):
    known = public_marginals_of(*CHAIN, counted=counted)
    model = raked(fitted(known), known)
    rng = np.random.default_rng(0)
    made = raked_rows(model, known, sample(model, rows, rng), rng)
    for clique in CHAIN:
        # The last of a chain are rounded within groups that were rounded before.
        assert np.abs(drawn_counts(made, clique) - counts(clique) * rows / ROWS).max() < 3
    first = drawn_counts(made, known.cliques[0]) - counts(known.cliques[0]) * rows / ROWS
    assert np.abs(first).max() < 1


def test_in_a_ring_all_but_the_last_are_exact_and_that_is_near():
    ring = [("a", "b"), ("b", "c"), ("a", "c")]
    known = public_marginals_of(*ring)
    model = raked(fitted(known), known)
    rng = np.random.default_rng(0)
    made = raked_rows(model, known, sample(model, ROWS, rng), rng)
    for clique in known.cliques[:2]:
        assert np.array_equal(drawn_counts(made, clique), counts(clique))
    assert np.abs(drawn_counts(made, known.cliques[2]) - counts(known.cliques[2])).max() < 20


def test_few_rows_are_drawn_anew():
    known = public_marginals_of(*CHAIN)
    model = raked(fitted(known), known)
    rng = np.random.default_rng(0)
    drawn = sample(model, ROWS, rng)
    made = raked_rows(model, known, drawn, rng)
    moved = np.any([made[c] != drawn[c] for c in DOMAIN.columns], axis=0).sum()
    assert moved < 0.1 * ROWS


def test_the_same_seed_makes_the_same_table():
    known = public_marginals_of(*CHAIN)
    model = raked(fitted(known), known)
    tables = []
    for _ in range(2):
        rng = np.random.default_rng(5)
        tables.append(raked_rows(model, known, sample(model, ROWS, rng), rng))
    assert all(np.array_equal(tables[0][c], tables[1][c]) for c in DOMAIN.columns)


def test_nothing_known_changes_nothing():
    model = fitted(PublicMarginals())
    codes = sample(model, ROWS, np.random.default_rng(0))
    made = raked_rows(raked(model, PublicMarginals()), PublicMarginals(), codes, np.random.default_rng(0))
    assert all(made[c] is codes[c] for c in codes)
    assert all(a is b for a, b in pairwise([model.beliefs[0], raked(model, PublicMarginals()).beliefs[0]]))
