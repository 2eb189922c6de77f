"""Random linked tables of counts, and what a reader can compute of the cells that are left out."""

from functools import lru_cache

import numpy as np
from scipy.optimize import linprog

from dpsynth.wings.proof.disclosure.linked_tables import LinkedTables, linked_tables

SHAPES = (
    ((4, 5), (("a", "b"),)),
    ((3, 7), (("a", "b"),)),
    ((6, 6), (("a", "b"),)),
    ((2, 3, 4), (("a", "b", "c"),)),
    ((3, 4, 3), (("a", "b"), ("b", "c"))),
    ((3, 3, 3), (("a", "b"), ("b", "c"), ("a", "c"))),
    ((9,), (("a",),)),
)
"""Sizes of columns, and the tables that are published of them."""


def random_tables(number: int) -> LinkedTables:
    """One of the random sets of tables."""
    rng = np.random.default_rng(number)
    shape, cliques = SHAPES[number % len(SHAPES)]
    names = tuple("abc"[: len(shape)])
    mean = rng.choice([2.0, 6.0, 15.0, 40.0])
    rows = rng.poisson(rng.gamma(0.6, mean / 0.6, size=shape))

    def counted(clique: tuple[str, ...]) -> np.ndarray:
        return rows.sum(axis=tuple(i for i, name in enumerate(names) if name not in clique))

    return linked_tables(cliques, dict(zip(names, shape, strict=True)), counted)


@lru_cache(maxsize=1)
def linked_sums(tables: LinkedTables) -> tuple[np.ndarray, np.ndarray]:
    """Every sum that links the tables, written out cell by cell: each margin of each table is a sum of cells.

    Returns:
        A dense matrix and its right-hand side of zeros; not those of the package.
    """
    cell = {}
    for clique in tables.cliques:
        for place in np.ndindex(*(tables.sizes[name] for name in clique)):
            cell[frozenset(zip(clique, place, strict=True))] = len(cell)
    rows = []
    for whole in tables.cliques:
        for part in tables.cliques:
            if not set(part) < set(whole):
                continue
            for place in np.ndindex(*(tables.sizes[name] for name in part)):
                margin = frozenset(zip(part, place, strict=True))
                row = np.zeros(len(cell))
                row[cell[margin]] = -1
                for key, at in cell.items():
                    if {name for name, _ in key} == set(whole) and margin <= key:
                        row[at] = 1
                rows.append(row)
    matrix = np.array(rows)
    return matrix, np.zeros(len(matrix))


def interval(tables: LinkedTables, hidden: np.ndarray, cell: int) -> tuple[float, float]:
    """The least and the largest value of a cell that the cells shown and the sums allow."""
    matrix, sums = linked_sums(tables)
    bounds = [(0, None) if hidden[i] else (count, count) for i, count in enumerate(tables.counts.tolist())]
    ends = []
    for sign in (1.0, -1.0):
        price = np.zeros(len(bounds))
        price[cell] = sign
        found = linprog(price, A_eq=matrix, b_eq=sums, bounds=bounds, method="highs")
        ends.append(-sign * np.inf if found.status == 3 else sign * found.fun)
    return ends[0], ends[1]
