"""Junction trees hold every clique, the cliques of a column hang together, and size is limited."""

import tracemalloc

import numpy as np

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.junction_tree import Edge, JunctionTree, junction_tree
from tests.forked import printed_by


def parts_that_hold(tree: JunctionTree, column: str) -> int:
    """In how many connected parts of the tree the column's cliques lie."""
    held = {i for i, clique in enumerate(tree.cliques) if column in clique}
    inside = sum(e.child in held and e.parent in held for e in tree.edges)
    return len(held) - inside


def grid(rows: int, columns: int) -> list[Clique]:
    """Pairs of neighbours in a grid of columns."""
    across = [(f"{i}-{j}", f"{i}-{j + 1}") for i in range(rows) for j in range(columns - 1)]
    return across + [(f"{i}-{j}", f"{i + 1}-{j}") for i in range(rows - 1) for j in range(columns)]


def large_trees() -> list[tuple[list[Clique], JunctionTree]]:
    """Trees of 30 to 100 columns, random cliques of one to four, and of grids."""
    found = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        domain = Domain({f"c{i}": int(rng.integers(1, 30)) for i in range(30 + 70 * seed // 11)})
        number = int(rng.integers(0, 2 * len(domain.columns)))
        cliques = [
            tuple(rng.permutation(domain.columns)[: rng.integers(1, 5)].tolist()) for _ in range(number)
        ]
        found.append((cliques, junction_tree(domain, cliques)))
    for rows, columns in ((3, 20), (6, 6)):
        rng = np.random.default_rng(rows)
        names = [f"{i}-{j}" for i in range(rows) for j in range(columns)]
        domain = Domain({c: int(rng.integers(2, 9)) for c in names})
        found.append((grid(rows, columns), junction_tree(domain, grid(rows, columns))))
    return found


def test_every_clique_and_every_column_lies_inside_a_clique_of_the_tree(problems):
    for p in problems:
        for clique in [*p.cliques, *((c,) for c in p.domain.columns), ()]:
            home = p.tree.home(clique)
            assert home is not None and set(clique) <= set(p.tree.cliques[home]), (p.name, clique)


def test_the_cliques_of_each_column_are_one_connected_part(problems):
    for p in problems:
        for column in p.domain.columns:
            assert parts_that_hold(p.tree, column) == 1, (p.name, column)


def test_the_check_of_running_intersection_sees_a_broken_tree():
    domain = Domain({"a": 2, "b": 2, "c": 2})
    cliques = (("a", "b"), ("b", "c"), ("a", "c"))
    broken = JunctionTree(domain, cliques, (Edge(1, 0, ("b",)), Edge(2, 1, ("c",))))
    assert parts_that_hold(broken, "a") == 2


def test_edges_span_the_cliques_parents_first_over_exactly_what_is_shared(problems):
    for p in problems:
        met = {0}
        for edge in p.tree.edges:
            assert edge.parent in met and edge.child not in met, p.name
            met.add(edge.child)
            both = set(p.tree.cliques[edge.child]) & set(p.tree.cliques[edge.parent])
            assert edge.separator == p.domain.canonical(both), p.name
        assert met == set(range(len(p.tree.cliques))), p.name


def test_no_clique_lies_inside_another_and_all_stand_in_table_order(problems):
    for p in problems:
        for i, clique in enumerate(p.tree.cliques):
            assert clique == p.domain.canonical(clique), p.name
            assert not any(set(clique) <= set(o) for j, o in enumerate(p.tree.cliques) if i != j), p.name


def test_a_path_stays_pairs_and_a_cycle_of_five_becomes_three_triples():
    domain = Domain(dict.fromkeys("abcde", 2))
    pairs = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]
    path = junction_tree(domain, pairs)
    assert path.cells == 4 * 4 and all(len(c) == 2 for c in path.cliques)
    cycle = junction_tree(domain, [*pairs, ("e", "a")])
    assert cycle.cells == 3 * 8 and all(len(c) == 3 for c in cycle.cliques)


def test_home_is_the_smallest_clique_that_holds_the_columns():
    tree = junction_tree(Domain({"a": 4, "b": 2, "c": 3}), [("a", "b"), ("b", "c")])
    assert tree.cliques[tree.home(("b",))] == ("b", "c")
    assert tree.home(("a", "c")) is None


def test_trees_of_many_columns_hold_every_clique_and_each_column_in_one_connected_part():
    for cliques, tree in large_trees():
        for clique in [*cliques, *((c,) for c in tree.domain.columns)]:
            home = tree.home(clique)
            assert home is not None and set(clique) <= set(tree.cliques[home])
            fits = [c for c in tree.cliques if set(clique) <= set(c)]
            assert tree.domain.cells(tree.cliques[home]) == min(map(tree.domain.cells, fits))
        assert all(parts_that_hold(tree, column) == 1 for column in tree.domain.columns)
        assert [e.child for e in tree.edges] == list(range(1, len(tree.cliques)))
        for edge in tree.edges:
            both = set(tree.cliques[edge.child]) & set(tree.cliques[edge.parent])
            assert edge.parent < edge.child and edge.separator == tree.domain.canonical(both)


def test_the_root_is_the_largest_clique(problems):
    for tree in [*(p.tree for p in problems), *(tree for _, tree in large_trees())]:
        assert tree.domain.cells(tree.cliques[0]) == max(map(tree.domain.cells, tree.cliques))


def test_parts_that_share_no_column_hang_on_the_root_by_empty_separators():
    domain = Domain(dict.fromkeys("abcdefg", 3))
    tree = junction_tree(domain, [("a", "b"), ("b", "c"), ("d", "e", "f")])
    assert tree.cliques[0] == ("d", "e", "f")
    assert [e.parent for e in tree.edges if e.separator == ()] == [0, 0]
    assert [e.separator for e in tree.edges if e.separator] == [("b",)]


def test_the_tree_is_the_same_whatever_order_cliques_and_their_columns_come_in():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        domain = Domain({f"c{i}": int(rng.integers(2, 9)) for i in range(12)})
        cliques = [tuple(rng.permutation(domain.columns)[:3].tolist()) for _ in range(10)]
        shuffled = [tuple(rng.permutation(cliques[i]).tolist()) for i in rng.permutation(len(cliques))]
        assert junction_tree(domain, shuffled + shuffled[:2]) == junction_tree(domain, cliques)


def test_the_tree_does_not_depend_on_the_seed_of_hashes():
    program = (
        "from dpsynth.columns.domain import Domain\n"
        "from dpsynth.model.junction_tree import junction_tree\n"
        "names = [f'column {i}' for i in range(40)]\n"
        "domain = Domain({c: 2 + i * i % 17 for i, c in enumerate(names)})\n"
        "cliques = [(names[i], names[i * i % 40], names[(3 * i + 1) % 40]) for i in range(36)]\n"
        "print(junction_tree(domain, [tuple(set(c)) for c in set(cliques)]))\n"
    )
    texts = printed_by(program, ("1", "2"))
    assert texts[0] == texts[1] and texts[0].startswith("JunctionTree(")


def test_a_model_far_beyond_memory_is_measured_without_being_built():
    domain = Domain({f"c{i}": 10**6 for i in range(100)})
    tracemalloc.start()
    assert junction_tree(domain, [domain.columns]).cells == 10**600
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5e6, peak
