"""Sampled tables follow the model: rounded, unbiased, reproducible, and without impossible rows."""

import numpy as np
import pytest

from dpsynth.domain.domain import Domain
from dpsynth.model import MarkovRandomField, sample
from dpsynth.model.belief_propagation import marginals
from dpsynth.model.junction_tree import junction_tree


def field(problem, total=1.0):
    beliefs, _ = marginals(problem.tree, problem.potentials, total)
    return MarkovRandomField(problem.tree, beliefs, total)


def counts(table, domain, clique):
    shape = domain.shape(clique)
    if not clique:
        return np.array(len(next(iter(table.values()))))
    return np.bincount(
        np.ravel_multi_index([table[c] for c in clique], shape), minlength=int(np.prod(shape))
    ).reshape(shape)


def chain(seed=0):
    """A random field a - b - c, with a and c depending strongly on b."""
    domain = Domain({"a": 3, "b": 2, "c": 3})
    tree = junction_tree(domain, [("a", "b"), ("b", "c")])
    rng = np.random.default_rng(seed)
    potentials = [rng.normal(0, 1.5, domain.shape(c)) for c in tree.cliques]
    beliefs, _ = marginals(tree, potentials, 1.0)
    return MarkovRandomField(tree, beliefs, 1.0)


def test_every_cell_is_within_one_row_of_its_expectation_given_the_separator(problems):
    for p in problems:
        model = field(p)
        for rows in (1, 2, 97, 1000):
            table = sample(model, rows, p.rng())
            steps = [(0, ())] + [(e.child, e.separator) for e in p.tree.edges]
            for index, separator in steps:
                clique = p.tree.cliques[index]
                order = (*separator, *(c for c in clique if c not in separator))
                joint = model.marginal(order)
                axes = tuple(range(len(separator), len(order)))
                mass = joint.sum(axis=axes, keepdims=True)
                given = np.divide(joint, mass, out=np.zeros_like(joint), where=mass > 0)
                drawn = counts(table, p.domain, separator).reshape(mass.shape)
                gap = np.abs(counts(table, p.domain, order) - given * drawn)
                assert gap.max() < 1 + 1e-9 * rows, (p.name, rows, order)


def test_no_row_falls_in_a_cell_of_probability_zero(problems):
    for p in problems:
        model = field(p)
        table = sample(model, 500, p.rng())
        for clique, belief in zip(p.tree.cliques, model.beliefs, strict=True):
            assert not counts(table, p.domain, clique)[belief == 0].any(), p.name


def test_codes_are_int64_inside_the_domain_for_every_column_in_table_order(problems):
    for p in problems:
        for rows in (0, 1, 13):
            table = sample(field(p), rows, p.rng())
            assert tuple(table) == p.domain.columns
            for column, codes in table.items():
                assert codes.shape == (rows,) and codes.dtype == np.int64, p.name
                assert rows == 0 or (codes.min() >= 0 and codes.max() < p.domain.sizes[column]), p.name


def test_counts_of_the_whole_joint_are_unbiased_over_seeds():
    model, rows, runs = chain(), 7, 4000
    expected = rows * model.marginal(("a", "b", "c"))
    seen = np.array(
        [
            counts(sample(model, rows, np.random.default_rng(s)), model.tree.domain, ("a", "b", "c"))
            for s in range(runs)
        ]
    )
    error = np.maximum(seen.std(axis=0), 0.02) / np.sqrt(runs)
    assert (np.abs(seen.mean(axis=0) - expected) / error).max() < 4.5


def test_each_row_by_itself_follows_the_model():
    model, runs = chain(), 3000
    expected = runs * model.marginal(("a", "b", "c")).ravel()
    for row in (0, 6):
        seen = np.zeros((3, 2, 3))
        for s in range(runs):
            table = sample(model, 7, np.random.default_rng([row, s]))
            seen[tuple(table[c][row] for c in "abc")] += 1
        statistic = (np.square(seen.ravel() - expected) / expected).sum()
        assert statistic < 46.0  # the 99.98 % point of chi-square with 17 degrees of freedom


def test_marginals_err_far_less_than_those_of_independent_draws(problems):
    rounded, independent = 0.0, 0.0
    for p in problems:
        model, rng = field(p), p.rng()
        table = sample(model, 5000, rng)
        for clique, belief in zip(p.tree.cliques, model.beliefs, strict=True):
            expected = 5000 * belief / belief.sum()
            rounded += np.abs(counts(table, p.domain, clique) - expected).sum()
            draws = rng.multinomial(5000, expected.ravel() / expected.sum())
            independent += np.abs(draws - expected.ravel()).sum()
    assert rounded < 0.1 * independent


def test_a_seed_gives_the_same_table_again_and_another_seed_another():
    model = chain()
    first, again, other = (sample(model, 200, np.random.default_rng(s)) for s in (1, 1, 2))
    assert all(np.array_equal(first[c], again[c]) for c in "abc")
    assert not all(np.array_equal(first[c], other[c]) for c in "abc")


def test_rows_come_in_random_order():
    table = sample(chain(), 2000, np.random.default_rng(0))
    half = np.bincount(table["b"][:1000], minlength=2)
    np.testing.assert_allclose(half, np.bincount(table["b"][1000:], minlength=2), atol=90)


class Highest:
    """A generator whose uniform draws are the largest double below 1, and which never shuffles."""

    def random(self, size):
        return np.full(size, np.nextafter(1.0, 0.0))

    def permutation(self, rows):
        return np.arange(rows)


def test_the_largest_uniform_draw_still_misses_cells_of_probability_zero():
    tree = junction_tree(Domain({"a": 3}), [("a",)])
    model = MarkovRandomField(tree, (np.array([0.5, 0.5, 0.0]),), 1.0)
    for rows in (1, 10, 1000):
        assert not (sample(model, rows, Highest())["a"] == 2).any()


@pytest.mark.parametrize("rows", [0, 1])
def test_tables_of_no_row_and_of_one_row_are_drawn(rows):
    table = sample(chain(), rows, np.random.default_rng(4))
    assert [len(codes) for codes in table.values()] == [rows] * 3
