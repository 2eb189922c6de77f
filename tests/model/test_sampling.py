"""Sampled tables follow the model: rounded, unbiased, reproducible, and without impossible rows."""

from fractions import Fraction
from hashlib import sha256
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import chi2

from dpsynth.accounting.measures import GDP
from dpsynth.columns.domain import Domain
from dpsynth.model import MarkovRandomField, estimate, rounding, sample, sampling
from dpsynth.model.factor import spread
from dpsynth.model.junction_tree import Edge, JunctionTree, junction_tree
from dpsynth.model.markov_random_field import ZeroProbability
from dpsynth.model.storage import load, save
from dpsynth.strategy import strategy_of
from dpsynth.testing import STRATEGIES, FakeDoor, problem_of
from tests.examples import cases
from tests.model.rounded_rows import counts, worst_rounding


@pytest.fixture(scope="module")
def fields(fields_of):
    """Each problem with its field of one row, made from the explicit joint, and that joint."""
    return fields_of(1.0)


def from_counts(cliques, table, domain):
    """The field of the marginals of a table of counts on a path of cliques; exact numbers."""
    columns = domain.columns
    shared = [domain.canonical(set(a) & set(b)) for a, b in pairwise(cliques)]
    edges = tuple(Edge(i + 1, i, separator) for i, separator in enumerate(shared))
    tree = JunctionTree(domain, tuple(cliques), edges)
    beliefs = tuple(
        np.einsum(table, range(len(columns)), [columns.index(c) for c in clique]).astype(np.float64)
        for clique in tree.cliques
    )
    return MarkovRandomField(tree, beliefs, float(table.sum()))


def chain():
    """A field a - b - c, with a and c depending strongly on b."""
    table = np.array([[[9, 1, 0], [1, 2, 12]], [[3, 6, 1], [0, 1, 2]], [[1, 1, 1], [20, 4, 1]]])
    return from_counts([("a", "b"), ("b", "c")], table, Domain({"a": 3, "b": 2, "c": 3}))


def bridge():
    """A field whose ends a and g are four cliques apart; no cell is impossible."""
    domain = Domain({"a": 3, "b": 2, "c": 3, "d": 2, "e": 2, "f": 3, "g": 2})
    cliques = [("a", "b"), ("b", "c", "d"), ("c", "d", "e"), ("e", "f"), ("f", "g")]
    table = np.ones(domain.shape(domain.columns), dtype=np.int64)
    for number, clique in enumerate(cliques):
        weights = (np.arange(domain.cells(clique)) * 7 + number) % 11 + 1
        table *= spread(weights.reshape(domain.shape(clique)), clique, domain.columns)
    return from_counts(cliques, table, domain)


def joint_of(model):
    return model.marginal(model.tree.domain.columns) / model.total


def assert_fits(seen, expected, label=""):
    """A chi-square of counts against expectations, each group of the first axis with its own total."""
    seen, expected = seen.reshape(len(seen), -1), expected.reshape(len(seen), -1)
    assert not seen[expected == 0].any(), label
    kept = expected > 0
    statistic = (np.square(seen - expected)[kept] / expected[kept]).sum()
    degrees = kept.sum() - len(seen)
    assert statistic < chi2.isf(1e-6, max(degrees, 1)), (label, statistic, degrees)
    return statistic, degrees


def test_every_cell_is_within_one_row_of_its_expectation_given_the_separator(fields):
    for p, model, _ in fields:
        for rows in (1, 2, 97, 1000):
            table = sample(model, rows, p.rng())
            assert worst_rounding(table, model) < 1 + 1e-9 * rows, (p.name, rows)


def test_no_row_falls_in_a_cell_of_probability_zero(fields):
    for p, model, _ in fields:
        table = sample(model, 500, p.rng())
        for clique, belief in zip(p.tree.cliques, model.beliefs, strict=True):
            assert not counts(table, p.domain, clique)[belief == 0].any(), p.name


def test_codes_are_int64_inside_the_domain_for_every_column_in_table_order(fields):
    for p, model, _ in fields:
        for rows in (0, 1, 13):
            table = sample(model, rows, p.rng())
            assert tuple(table) == p.domain.columns
            for column, codes in table.items():
                assert codes.shape == (rows,) and codes.dtype == np.int64, p.name
                assert rows == 0 or (codes.min() >= 0 and codes.max() < p.domain.sizes[column]), p.name


def test_counts_of_the_whole_joint_are_unbiased_over_seeds():
    model, rows, runs = chain(), 7, cases(4000, part=4)
    expected = rows * joint_of(model)
    seen = np.array(
        [counts(sample(model, rows, np.random.default_rng(s)), model.tree.domain, "abc") for s in range(runs)]
    )
    error = np.maximum(seen.std(axis=0), 0.02) / np.sqrt(runs)
    assert (np.abs(seen.mean(axis=0) - expected) / error).max() < 4.5


def test_each_row_by_itself_follows_the_model():
    model, runs = chain(), cases(3000, part=4)
    for row in (0, 6):
        seen = np.zeros((3, 2, 3))
        for s in range(runs):
            table = sample(model, 7, np.random.default_rng([row, s]))
            seen[tuple(table[c][row] for c in "abc")] += 1
        assert_fits(seen[None], runs * joint_of(model))


def test_the_joint_of_a_large_table_follows_the_model(fields):
    for p, model, joint in fields[:60]:
        table = sample(model, 20_000, p.rng())
        expected = np.where(joint < 1e-3, 0, joint)
        seen = np.where(joint < 1e-3, 0, counts(table, p.domain, p.domain.columns))
        assert_fits(seen[None], 20_000 * expected, p.name)


def distance(model, table):
    """Mean total variation between the model's cliques and a table's."""
    rows, domain = len(next(iter(table.values()))), model.tree.domain
    pairs = zip(model.tree.cliques, model.beliefs, strict=True)
    return np.mean([np.abs(counts(table, domain, c) / rows - b / b.sum()).sum() / 2 for c, b in pairs])


def test_marginals_err_far_less_than_a_multinomial_does(fields):
    rounded = expected = 0.0
    for p, model, _ in fields:
        rounded += distance(model, sample(model, 5000, p.rng()))
        rng = p.rng()
        for belief in model.beliefs:
            flat = belief.ravel() / belief.sum()
            apart = np.abs(rng.multinomial(5000, flat) / 5000 - flat).sum() / 2
            expected += apart / len(model.beliefs)
    assert rounded < 0.1 * expected


# The structures that strategies yield.


def measured_by(name):
    """A model fitted to what a strategy measures of a table, with little noise."""
    rng = np.random.default_rng(3)
    domain = Domain({"a": 4, "b": 3, "c": 5, "d": 2, "e": 6, "f": 3})
    rows = {"a": rng.integers(0, 4, 9000)}
    for column, source in (("b", "a"), ("c", "a"), ("d", "b"), ("e", "c"), ("f", "c")):
        noise = rng.integers(0, domain.sizes[column], 9000)
        rows[column] = np.where(rng.random(9000) < 0.7, rows[source] % domain.sizes[column], noise)
    door = FakeDoor(domain, rows, Fraction(2), rng, measure=GDP)
    problem = problem_of(door, one_way=Fraction(1, 2), structure=Fraction(1, 2), max_cells=50)
    selection = strategy_of(name).select(door, problem)
    held = (m for m in selection.answers if m is not None and m.clique not in selection.beside)
    return estimate(domain, [*problem.singles, *held]).model


def far_pairs_fit(model, rows, rng):
    """Whether a sample's pairs and triples, in the tree or not, have the model's marginals."""
    columns = model.tree.domain.columns
    cliques = [*combinations(columns, 2), *combinations(columns, 3)]
    table = sample(model, rows, rng)
    for clique, expected in model.marginals(cliques).items():
        assert_fits(counts(table, model.tree.domain, clique)[None], rows * expected / expected.sum(), clique)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_pairs_and_triples_that_no_clique_holds_follow_the_model_on_every_strategys_structure(name):
    model = measured_by(name)
    apart = [p for p in combinations(model.tree.domain.columns, 2) if model.tree.home(p) is None]
    assert len(apart) >= 3
    for seed in range(cases(3, least=1)):
        far_pairs_fit(model, 30_000, np.random.default_rng(seed))


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_a_sampler_that_does_not_shuffle_anew_for_each_clique_is_caught(name, monkeypatch):
    model = measured_by(name)
    monkeypatch.setattr(rounding, "shuffled", lambda group, groups, rng: np.argsort(group, kind="stable"))
    table = sample(model, 30_000, np.random.default_rng(0))
    assert distance(model, table) < 1e-3  # what was measured looks right
    with pytest.raises(AssertionError):
        far_pairs_fit(model, 30_000, np.random.default_rng(0))


# Fixed values.


def test_rows_are_completed_by_the_exact_conditional_of_values_fixed_far_apart():
    model, rows, rng = bridge(), 60_000, np.random.default_rng(8)
    given = {"a": rng.integers(0, 3, rows), "g": rng.integers(0, 2, rows), "d": 1}
    table = sample(model, rows, rng, given=given)
    for column, codes in given.items():
        np.testing.assert_array_equal(table[column], np.broadcast_to(codes, rows))
    order = ("a", "g", "b", "c", "e", "f")
    seen = counts(table, model.tree.domain, order).reshape(6, -1)
    chances = model.given({"d": 1}).marginal(order).reshape(6, -1)
    expected = chances / chances.sum(axis=1, keepdims=True) * seen.sum(axis=1, keepdims=True)
    assert_fits(seen, expected)


def test_values_fixed_in_any_columns_are_kept_and_the_rest_is_conditional(fields):
    for p, model, joint in fields[:90]:
        rng = p.rng()
        columns = p.domain.columns
        drawn = rng.choice(joint.size, 3000, p=joint.ravel() / joint.sum())
        cells = dict(zip(columns, np.unravel_index(drawn, joint.shape), strict=True))
        some = [c for c in columns if rng.random() < 0.5]
        table = sample(model, 3000, rng, given={c: cells[c] for c in some})
        assert all(np.array_equal(table[c], cells[c]) for c in some), p.name
        order = (*some, *(c for c in columns if c not in some))
        groups = p.domain.cells(some)
        seen = counts(table, p.domain, order).reshape(groups, -1)
        chances = model.marginal(order).reshape(groups, -1)
        mass = chances.sum(axis=1, keepdims=True)
        expected = np.divide(chances, mass, out=np.zeros_like(chances), where=mass > 0)
        expected *= seen.sum(axis=1, keepdims=True)
        usual = expected > 1
        assert not seen[chances == 0].any(), p.name
        assert (np.abs(seen - expected)[usual] < 7 * np.sqrt(expected[usual])).all(), p.name


def test_one_value_for_all_rows_is_the_model_given_it():
    model, rows = bridge(), 40_000
    table = sample(model, rows, np.random.default_rng(1), given={"g": 1, "b": 0})
    assert set(table["g"]) == {1} and set(table["b"]) == {0}
    order = ("g", "b", "a", "c", "d", "e", "f")
    expected = model.given({"g": 1, "b": 0}).marginal(order)[1, 0] * rows / model.total
    assert_fits(counts(table, model.tree.domain, order)[1, 0][None], expected)


def test_all_columns_may_be_fixed_and_none_may_be():
    model, rng = chain(), np.random.default_rng(0)
    given = {"a": np.array([0, 1, 2]), "b": np.array([0, 0, 1]), "c": np.array([1, 1, 0])}
    table = sample(model, 3, rng, given=given)
    assert all(np.array_equal(table[c], given[c]) for c in "abc")
    assert len(sample(model, 5, rng, given={})["a"]) == 5


def test_evidence_is_exact_when_it_is_worked_on_piece_by_piece(monkeypatch):
    monkeypatch.setattr(sampling, "_MESSAGE_CELLS", 40)
    test_rows_are_completed_by_the_exact_conditional_of_values_fixed_far_apart()


def test_forward_sampling_that_ignores_evidence_from_below_is_caught(monkeypatch):
    monkeypatch.setattr(sampling.Completion, "incoming", lambda *_: [])
    with pytest.raises(AssertionError):
        test_rows_are_completed_by_the_exact_conditional_of_values_fixed_far_apart()


@pytest.mark.parametrize(
    "given",
    [
        {"a": 0, "c": 2, "b": 0},
        {"a": np.array([1, 1, 0]), "b": 0, "c": np.array([0, 1, 2])},
        {"a": np.array([0, 1, 0]), "c": np.array([1, 0, 2])},
    ],
)
def test_rows_fixed_to_something_impossible_are_refused(given):
    with pytest.raises(ZeroProbability, match="probability zero"):
        sample(fork(), 3, np.random.default_rng(0), given=given)


def fork():
    """a = 0 goes with b = 0 only, and c = 2 with b = 1 only."""
    table = np.array([[[3, 4, 0], [0, 0, 0]], [[1, 2, 0], [2, 2, 2]]])
    return from_counts([("a", "b"), ("b", "c")], table, Domain({"a": 2, "b": 2, "c": 3}))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"x": 0}, "no column 'x'"),
        ({"a": 3}, "outside 0 to 2"),
        ({"a": np.array([0, 1, -1])}, "outside 0 to 2"),
        ({"a": np.array([0, 1])}, "or to 3, one a row"),
        ({"a": 0.5}, "integer"),
    ],
)
def test_fixed_values_outside_the_domain_or_of_a_wrong_shape_are_refused(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        sample(chain(), 3, np.random.default_rng(0), given=given)


def test_a_negative_number_of_rows_is_refused():
    with pytest.raises(ValueError, match="not -1"):
        sample(chain(), -1, np.random.default_rng(0))


def test_beliefs_that_do_not_agree_are_met_with_an_error_and_not_with_impossible_rows():
    domain = Domain({"a": 2, "b": 2})
    tree = JunctionTree(domain, (("a",), ("a", "b")), (Edge(1, 0, ("a",)),))
    torn = MarkovRandomField(tree, (np.array([0.5, 0.5]), np.array([[1.0, 1.0], [0.0, 0.0]])), 1.0)
    with pytest.raises(rounding.NoWeight, match="disagree"):
        sample(torn, 10, np.random.default_rng(0))


# Reproducibility.


def test_a_seed_gives_the_same_table_again_and_another_seed_another():
    model = chain()
    first, again, other = (sample(model, 200, np.random.default_rng(s)) for s in (1, 1, 2))
    assert all(np.array_equal(first[c], again[c]) for c in "abc")
    assert not all(np.array_equal(first[c], other[c]) for c in "abc")


def digest(table):
    return sha256(b"".join(table[c].astype("<i8").tobytes() for c in sorted(table))).hexdigest()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "9c18286d633597d0db847a51b602204d443bcb0995d3e29a74b712dfd1c7bd2a"),
        (
            {"given": {"a": 2, "g": np.arange(1000) % 2}},
            "6abfa9b5b5ec82ab772915913af0e8bad90f06ee32e10a3fbe7a047448eee24b",
        ),
    ],
)
def test_a_saved_model_and_a_seed_give_the_same_table_on_every_machine(options, expected, tmp_path):
    save(bridge(), tmp_path / "model.npz")
    model = load(tmp_path / "model.npz")
    rng = np.random.Generator(np.random.PCG64(20240607))
    assert digest(sample(model, 1000, rng, **options)) == expected


def test_the_table_does_not_depend_on_how_much_is_worked_on_at_a_time(monkeypatch):
    model = bridge()
    whole = sample(model, 5000, np.random.default_rng(2))
    monkeypatch.setattr(rounding, "_BLOCK", 5)
    assert digest(whole) == digest(sample(model, 5000, np.random.default_rng(2)))


def test_rows_come_in_random_order():
    table = sample(chain(), 2000, np.random.default_rng(0))
    half = np.bincount(table["b"][:1000], minlength=2)
    np.testing.assert_allclose(half, np.bincount(table["b"][1000:], minlength=2), atol=90)


class Constant:
    """A generator all of whose raw words are the same."""

    def __init__(self, word):
        self.word, self.bit_generator = word, self

    def random_raw(self, size):
        return np.full(size, self.word, dtype=np.uint64)


@pytest.mark.parametrize("word", [0, 2**64 - 1])
def test_the_smallest_and_the_largest_draw_still_miss_cells_of_probability_zero(word):
    tree = junction_tree(Domain({"a": 4}), [("a",)])
    model = MarkovRandomField(tree, (np.array([0.0, 0.5, 0.5, 0.0]),), 1.0)
    for rows in (1, 10, 1000):
        table = sample(model, rows, Constant(word))
        assert set(table["a"]) <= {1, 2}


def test_a_generator_of_32_bit_words_is_refused():
    with pytest.raises(ValueError, match="MT19937"):
        sample(chain(), 10, np.random.Generator(np.random.MT19937(0)))


def test_rounding_is_that_of_unbounded_integers():
    rng = np.random.default_rng(4)
    weights = rng.random((40, 23)) ** 9
    weights[rng.random(weights.shape) < 0.3] = 0
    weights[:, 5] += 1e-9
    sizes = rng.integers(1, rounding.MOST_ROWS, 40)
    reach = rounding.cumulative(weights.copy())
    found = rounding.rounded(reach.copy(), sizes, np.random.default_rng(9))
    phases = rounding.phases(np.random.default_rng(9), 40)
    for row, size, phase, got in zip(reach.tolist(), sizes.tolist(), phases.tolist(), found, strict=True):
        ends = [0, *((size * q + phase) >> rounding.BITS for q in row)]
        assert got.tolist() == np.diff(ends).tolist() and got.sum() == size
    assert not found[weights == 0].any()
    exact = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(reach / 2.0**rounding.BITS, exact, atol=1e-14)


@pytest.mark.parametrize("few", [0, 1 << 20])
def test_rows_are_shuffled_evenly_within_their_groups_and_groups_stay_in_order(few, monkeypatch):
    monkeypatch.setattr(rounding, "_FEW", few)
    group = np.array([2, 0, 2, 0, 2, 1])
    seen = {}
    for seed in range(6000):
        order = rounding.shuffled(group, 3, np.random.default_rng(seed))
        assert group[order].tolist() == [0, 0, 1, 2, 2, 2]
        seen[tuple(order)] = seen.get(tuple(order), 0) + 1
    assert len(seen) == 12
    assert_fits(np.array([list(seen.values())]), np.full((1, 12), 500.0))


@pytest.mark.parametrize("groups", [1, 200, 1 << 8, 300, 1 << 16, (1 << 16) + 1, 1 << 40])
def test_groups_of_any_number_are_in_order_and_hold_all_rows(groups):
    group = np.random.default_rng(groups).integers(0, groups, 999)
    order = rounding.shuffled(group, groups, np.random.default_rng(3))
    assert (np.diff(group[order]) >= 0).all() and np.array_equal(np.sort(order), np.arange(999))
