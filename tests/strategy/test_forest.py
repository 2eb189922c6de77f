"""A forest of pairs knows the cells of its junction tree, held against the tree itself."""

from itertools import combinations

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import Triangulation, junction_tree
from dpsynth.strategy.candidates import Forest


@pytest.mark.parametrize("seed", range(20))
def test_the_cells_foretold_are_those_of_the_junction_tree(seed):
    rng = np.random.default_rng(seed)
    domain = Domain({f"c{i}": int(rng.integers(2, 9)) for i in range(8)})
    names = domain.columns
    first, second = np.triu_indices(len(names), 1)
    forest, pairs = Forest(domain.shape(names)), []
    while (at := np.flatnonzero(forest.disconnected(first, second))).size:
        i = int(rng.choice(at))
        foretold = int(forest.cells_with(first, second)[i])
        pairs.append((names[first[i]], names[second[i]]))
        forest.join(int(first[i]), int(second[i]))
        assert junction_tree(domain, pairs).cells == foretold
    assert len(pairs) == len(names) - 1


@pytest.mark.parametrize("seed", range(40))
def test_beside_cliques_that_were_there_before_the_cells_are_those_of_the_junction_tree(seed):
    rng = np.random.default_rng(seed)
    columns = int(rng.integers(2, 9))
    domain = Domain({f"c{i}": int(rng.integers(1, 6)) for i in range(columns)})
    sizes = rng.integers(1, min(columns, 3) + 1, rng.integers(1, 4))
    before = [sorted(rng.choice(columns, size, replace=False).tolist()) for size in sizes]
    cliques = [tuple(domain.columns[i] for i in clique) for clique in before]
    forest = Forest(domain.shape(domain.columns), before, Triangulation.of(domain, cliques).cells)
    for a, b in combinations(range(columns), 2):
        if forest.disconnected(a, b):
            grown = int(forest.cells_with(a, b))
            forest.join(a, b)
            cliques.append((domain.columns[a], domain.columns[b]))
            assert grown == Triangulation.of(domain, cliques).cells
    assert not forest.disconnected(0, columns - 1)
