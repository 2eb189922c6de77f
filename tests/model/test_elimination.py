"""Elimination orders give the cliques they say, few cells, and the same on every machine."""

from itertools import combinations, permutations
from math import exp, log, prod

import numpy as np
import pytest

from dpsynth.model.triangulation import (
    RULES,
    EliminationTree,
    Sizes,
    best_tree,
    eliminate,
    mask_of,
    members,
    neighbours,
)
from tests.examples import cases


def later_of(graph: list[int], order: tuple[int, ...]) -> dict[int, set[int]]:
    """What is left of each column's neighbours when it is eliminated, by sets."""
    around = [set(members(mask)) for mask in graph]
    for column in order:
        for a in around[column]:
            around[a] |= around[column]
            around[a] -= {a, column}
    return dict(enumerate(around))


def cliques_of(graph: list[int], order: tuple[int, ...]) -> list[set[int]]:
    """Maximal cliques of an elimination order, by pairwise containment."""
    found = [{column, *near} for column, near in later_of(graph, order).items()]
    return [
        c for i, c in enumerate(found) if not any(c < o or (c == o and i > j) for j, o in enumerate(found))
    ]


def cells_of(graph: list[int], order: tuple[int, ...], places: tuple[int, ...]) -> int:
    return sum(prod(places[c] for c in clique) for clique in cliques_of(graph, order))


def order_of(tree: EliminationTree) -> tuple[int, ...]:
    return tuple(sorted(range(len(tree.graph)), key=lambda c: -tree.depths[c]))


def random_graph(seed: int, columns: int, smallest: int = 1) -> tuple[list[int], tuple[int, ...]]:
    """A graph of random pairs and triples, and sizes from ``smallest`` to 12."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(0, 2 * columns))
    cliques = [rng.permutation(columns)[: rng.integers(1, 4)].tolist() for _ in range(number)]
    places = tuple(int(rng.choice([smallest, 2, 3, 5, 12])) for _ in range(columns))
    return neighbours(columns, cliques), places


def two_tree(seed: int, columns: int) -> list[int]:
    """A random 2-tree: every new column is joined to both ends of an edge."""
    rng = np.random.default_rng(seed)
    pairs = [(0, 1)]
    for column in range(2, columns):
        a, b = pairs[rng.integers(len(pairs))]
        pairs += [(a, column), (b, column)]
    return neighbours(columns, pairs)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_gives_an_order_of_all_columns_whose_maximal_cliques_have_its_cells(rule):
    for seed in range(60):
        graph, places = random_graph(seed, 1 + seed % 17)
        found = eliminate(dict(enumerate(graph)), (1 << len(graph)) - 1, Sizes(places), rule)
        assert sorted(found.order) == list(range(len(graph)))
        assert found.cells == cells_of(graph, found.order, places), seed
        assert found.weights == tuple(
            prod(places[c] for c in {column, *members(near)})
            for column, near in zip(found.order, found.later, strict=True)
        )


def test_rules_differ_in_whether_the_clique_made_or_the_cells_left_behind_count():
    # A path 2 - 0 - 1 - 3, whose end 3 is large but leaves the fewest cells behind.
    graph, places = neighbours(4, [(0, 1), (0, 2), (3, 1)]), (3, 2, 3, 50)
    first = {r.name: eliminate(dict(enumerate(graph)), 15, Sizes(places), r).order[0] for r in RULES}
    assert first["min-fill"] == 2 and first["min-weight"] == 2 and first["min-separator"] == 3
    cycle = neighbours(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    chord = eliminate(dict(enumerate(cycle)), 15, Sizes((9, 2, 9, 2)), RULES[0])
    assert chord.cells == 2 * 9 * 2 * 2


def test_sums_over_sets_agree_however_many_columns_they_have():
    rng = np.random.default_rng(3)
    sizes = Sizes(tuple(int(s) for s in rng.integers(1, 1000, 90)))
    for share in (0.02, 0.1, 0.5, 1.0):
        columns = np.flatnonzero(rng.random(90) < share).tolist()
        assert sizes.total(mask_of(columns)) == sum(sizes.places[c] for c in columns)
        assert sizes.cells(mask_of(columns)) == prod(sizes.places[c] for c in columns)


def test_an_elimination_stops_once_its_cells_exceed_the_bound_and_not_at_it():
    graph, places = random_graph(40, 12)
    whole = eliminate(dict(enumerate(graph)), (1 << 12) - 1, Sizes(places), RULES[0])
    again = eliminate(dict(enumerate(graph)), (1 << 12) - 1, Sizes(places), RULES[0], bound=whole.cells)
    assert again == whole
    short = eliminate(dict(enumerate(graph)), (1 << 12) - 1, Sizes(places), RULES[0], bound=whole.cells - 1)
    assert short.cells > whole.cells - 1


def test_a_column_without_places_is_refused():
    with pytest.raises(ValueError, match="place"):
        Sizes((2, 0))


@pytest.mark.parametrize(("smallest", "most"), [(2, 1.001), (1, 1.1)])
def test_the_order_is_near_the_best_of_all_orders_of_six_columns_and_never_beyond_it(smallest, most):
    # With columns of one value it can pay to join what nothing asks to join; that is not looked for.
    logs = []
    for seed in range(cases(150, part=4)):
        columns = 4 + seed % 3
        graph, places = random_graph(1000 + seed, columns, smallest)
        reached = best_tree(tuple(graph), Sizes(places)).cells
        least = min(cells_of(graph, order, places) for order in permutations(range(columns)))
        assert reached >= least
        logs.append(log(reached / least))
    assert exp(np.mean(logs)) < most, exp(np.mean(logs))


def test_the_search_is_no_worse_than_any_rule_and_better_than_min_fill_where_sizes_differ():
    gains = []
    for seed in range(25):
        graph, places = random_graph(2000 + seed, 25, smallest=2)
        tree = best_tree(tuple(graph), Sizes(places))
        alone = {
            r.name: eliminate(dict(enumerate(graph)), (1 << 25) - 1, Sizes(places), r).cells for r in RULES
        }
        assert tree.cells <= min(alone.values())
        assert tree.cells == cells_of(graph, order_of(tree), places)
        gains.append(log(alone["min-fill"] / tree.cells))
    assert exp(np.mean(gains)) > 1.1, exp(np.mean(gains))


def test_a_chordal_graph_keeps_its_own_cliques():
    for seed in range(20):
        graph, places = two_tree(seed, 30), tuple(2 + (7 * c + seed) % 11 for c in range(30))
        triples = [
            t for t in combinations(range(30), 3) if all(graph[a] >> b & 1 for a, b in combinations(t, 2))
        ]
        assert best_tree(tuple(graph), Sizes(places)).cells == sum(
            prod(places[c] for c in t) for t in triples
        )


@pytest.mark.parametrize("side", [2, 3, 4, 5, 6])
def test_a_square_grid_of_equal_columns_gets_its_treewidth(side):
    rows = [(i * side + j, i * side + j + 1) for i in range(side) for j in range(side - 1)]
    lines = [(i * side + j, (i + 1) * side + j) for i in range(side - 1) for j in range(side)]
    graph = neighbours(side * side, rows + lines)
    tree = best_tree(tuple(graph), Sizes((2,) * side * side))
    assert max(near.bit_count() for near in tree.later) == side


def test_a_tree_with_a_part_eliminated_anew_is_again_the_tree_of_an_order():
    renewed = 0
    for seed in range(80):
        columns = 3 + seed % 20
        graph, places = random_graph(3000 + seed, columns)
        tree = best_tree(tuple(graph), Sizes(places))
        rng = np.random.default_rng(seed)
        for _ in range(6):
            wanted = mask_of(rng.integers(0, columns, 3).tolist())
            joined = tuple(m | wanted & ~(1 << c) if wanted >> c & 1 else m for c, m in enumerate(tree.graph))
            region = tree.between(wanted)
            rule = RULES[int(rng.integers(0, len(RULES)))]
            found = eliminate(region.graph, region.inside, tree.sizes, rule, known=region.known)
            tree = tree.renewed(region, found, joined)
            order = order_of(tree)
            assert tree.cells == sum(tree.counted) == cells_of(list(joined), order, places), seed
            for column, near in later_of(list(joined), order).items():
                assert set(members(tree.later[column])) == near, seed
                assert tree.parents[column] == min(near, key=order.index, default=-1), seed
            renewed += bool(region.columns)
    assert renewed > 200
