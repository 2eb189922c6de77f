"""A forest of pairs knows the cells of its junction tree, held against the tree itself."""

import numpy as np
import pytest

from dpsynth.domain.domain import Domain
from dpsynth.model import junction_tree
from dpsynth.structure.forest import Forest


@pytest.mark.parametrize("seed", range(20))
def test_the_cells_foretold_are_those_of_the_junction_tree(seed):
    rng = np.random.default_rng(seed)
    domain = Domain({f"c{i}": int(rng.integers(2, 9)) for i in range(8)})
    names = domain.columns
    first, second = np.triu_indices(len(names), 1)
    forest, pairs = Forest(domain.shape(names)), []
    while (at := np.flatnonzero(forest.apart(first, second))).size:
        i = int(rng.choice(at))
        foretold = int(forest.grown(first, second)[i])
        pairs.append((names[first[i]], names[second[i]]))
        forest.join(int(first[i]), int(second[i]))
        assert junction_tree(domain, pairs).cells == foretold
    assert len(pairs) == len(names) - 1
