"""A tree of many columns grows pair by pair, and stays about as small as one that is made anew."""

import itertools

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model import Triangulation, triangulation


def grown(columns: int, pairs: int, wide: int, monkeypatch) -> tuple[Triangulation, int]:
    """A tree after so many pairs of close columns; and how often the whole graph was triangulated."""
    monkeypatch.setattr(triangulation, "_WIDE", wide)
    sound, whole = triangulation.best_tree, [0]

    def counted(*arguments):
        whole[0] += 1
        return sound(*arguments)

    monkeypatch.setattr(triangulation, "best_tree", counted)
    names = [f"c{i}" for i in range(columns)]
    rng = np.random.default_rng(0)
    found = Triangulation.of(Domain(dict.fromkeys(names, 2)), itertools.pairwise(names))
    for a in rng.integers(0, columns - 9, pairs).tolist():
        clique = (names[a], names[a + int(rng.integers(2, 9))])
        most = found.cells_with(clique)
        found = found.with_clique(clique)
        assert found.cells <= most and found.tree.lies_within(found._mask(clique))
    monkeypatch.undo()
    return found, whole[0]


@pytest.mark.parametrize(("columns", "pairs"), [(40, 25), pytest.param(150, 200, marks=pytest.mark.slow)])
def test_a_wide_tree_grows_in_its_changed_part_and_is_as_small_as_one_made_anew(
    columns, pairs, monkeypatch
) -> None:
    often, every = grown(columns, pairs, columns + 1, monkeypatch)
    seldom, few = grown(columns, pairs, columns, monkeypatch)
    assert few < every
    assert seldom.cells <= 1.25 * often.cells
    assert {frozenset(c) for c in often.cliques} and seldom.domain == often.domain
