"""Junction trees hold every clique, and the cliques of a column hang together."""

from dpsynth.domain.domain import Domain
from dpsynth.model.junction_tree import Edge, JunctionTree, junction_tree


def parts_that_hold(tree: JunctionTree, column: str) -> int:
    """In how many connected parts of the tree the column's cliques lie."""
    held = {i for i, clique in enumerate(tree.cliques) if column in clique}
    inside = sum(e.child in held and e.parent in held for e in tree.edges)
    return len(held) - inside


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
