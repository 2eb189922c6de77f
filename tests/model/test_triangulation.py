"""What one more clique would cost is known without building, and is never more than promised."""

from math import exp, log, prod

import numpy as np
import pytest

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.junction_tree import JunctionTree, junction_tree
from dpsynth.model.triangulation import RULES, Triangulation, eliminate, mask_of


def domain_of(rng: np.random.Generator, columns: int, smallest: int = 1) -> Domain:
    return Domain({f"c{i}": int(rng.choice([smallest, 2, 3, 5, 12, 40])) for i in range(columns)})


def drawn(rng: np.random.Generator, domain: Domain, widest: int = 3) -> Clique:
    """Random columns, in random order."""
    return tuple(rng.permutation(domain.columns)[: rng.integers(0, widest + 1)].tolist())


def grown(seed: int, columns: int, most_cells: int) -> tuple[Triangulation, list[Clique]]:
    """A model as a structure search makes it: a spanning tree, then cliques that keep it small."""
    rng = np.random.default_rng(seed)
    domain = domain_of(rng, columns, smallest=2)
    cliques: list[Clique] = [(f"c{i}", f"c{rng.integers(i)}") for i in range(1, columns)]
    found = Triangulation.of(domain, cliques)
    for _ in range(40):
        clique = drawn(rng, domain)
        if found.cells_with(clique) <= most_cells:
            found = found.with_clique(clique)
            cliques.append(clique)
    return found, cliques


def cells_of(domain: Domain, cliques: tuple[Clique, ...]) -> int:
    return sum(prod(domain.sizes[c] for c in clique) for clique in cliques)


def built_with(found: Triangulation, clique: Clique) -> set[int]:
    """Cells once a clique is added, by each rule, of the trees themselves."""
    tree = found.tree
    wanted = mask_of(found.domain.columns.index(c) for c in clique)
    joined = tuple(m | wanted & ~(1 << c) if wanted >> c & 1 else m for c, m in enumerate(tree.graph))
    region = tree.between(wanted)
    orders = [eliminate(region.graph, region.inside, tree.sizes, r, known=region.known) for r in RULES]
    built = [JunctionTree.of(Triangulation(found.domain, tree.renewed(region, o, joined))) for o in orders]
    assert all(b.home(clique) is not None for b in built)
    return {cells_of(found.domain, b.cliques) for b in built}


def test_an_estimate_is_never_below_the_tree_that_is_then_built():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        domain = domain_of(rng, int(rng.integers(1, 20)))
        number = int(rng.integers(0, 25))
        before = Triangulation.of(domain, [drawn(rng, domain) for _ in range(number)])
        for _ in range(4):
            clique = drawn(rng, domain, widest=4)
            after = before.with_clique(clique)
            tree = JunctionTree.of(after)
            assert tree.home(clique) is not None
            assert before.cells_with(clique) >= after.cells == tree.cells, (seed, clique)


def test_an_estimate_is_exact_for_a_clique_that_the_tree_holds():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found, _ = grown(seed, 12, 4000)
        for clique in found.cliques:
            part = tuple(rng.permutation(clique)[: rng.integers(0, len(clique) + 1)].tolist())
            assert found.cells_with(part) == found.cells == found.with_clique(part).cells


def test_estimated_cells_are_those_of_a_tree_with_the_clique_in_it():
    for seed in range(150):
        rng = np.random.default_rng(seed)
        found, _ = grown(seed, 4 + seed % 12, 3000)
        clique = drawn(rng, found.domain, widest=4)
        assert found.cells_with(clique) in built_with(found, clique), seed


def test_cells_are_those_of_the_cliques_themselves():
    for seed in range(60):
        found, _ = grown(seed, 2 + seed % 15, 5000)
        tree = JunctionTree.of(found)
        assert found.cells == tree.cells == cells_of(found.domain, tree.cliques)
        assert set(found.cliques) == set(tree.cliques)


def test_estimates_lie_close_to_a_tree_built_from_all_cliques_at_once():
    logs, built = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        found, cliques = grown(seed, 30, 30_000)
        for _ in range(12):
            clique = drawn(rng, found.domain)
            anew = junction_tree(found.domain, [*cliques, clique]).cells
            logs.append(log(found.cells_with(clique) / anew))
            built.append(log(found.with_clique(clique).cells / anew))
    assert exp(np.mean(logs)) < 1.3, exp(np.mean(logs))
    assert exp(np.mean(built)) < 1.03, exp(np.mean(built))


def test_a_triangulation_asked_or_added_to_stays_as_it_is():
    found, _ = grown(1, 15, 5000)
    cells, held = found.cells, found.cliques
    for clique in (("c0", "c14"), ("c3", "c7", "c11")):
        first = found.cells_with(clique)
        found.with_clique(clique).with_clique(("c1", "c9"))
        assert found.cells_with(clique) == first
    assert (found.cells, found.cliques) == (cells, held)


def test_adding_cliques_one_by_one_keeps_all_of_them():
    found, cliques = grown(2, 20, 20_000)
    tree = JunctionTree.of(found)
    assert all(tree.home(clique) is not None for clique in cliques)


def test_cells_beyond_64_bits_are_exact():
    domain = Domain({f"c{i}": 10**6 for i in range(300)})
    pairs = [(f"c{i}", f"c{i + 1}") for i in range(299)]
    found = Triangulation.of(domain, pairs)
    assert found.cells == 299 * 10**12
    assert found.cells_with(domain.columns) == 10**1800


def test_a_column_that_the_domain_lacks_is_named():
    found = Triangulation.of(Domain({"a": 2}), [])
    with pytest.raises(KeyError, match="b"):
        found.cells_with(("a", "b"))
    with pytest.raises(KeyError, match="b"):
        Triangulation.of(Domain({"a": 2}), [("b",)])


def test_a_domain_without_columns_has_one_cell():
    found = Triangulation.of(Domain({}), [()])
    assert found.cells == found.cells_with(()) == JunctionTree.of(found).cells == 1
    assert JunctionTree.of(found).cliques == ((),)
