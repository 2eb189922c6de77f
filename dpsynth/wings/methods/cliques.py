"""Cliques that a method may choose from, and the capacity of a model for them.

Invariant: all of it is made of public facts, so a list of candidates reveals nothing of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from math import comb

from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.workload import Workload
from dpsynth.model import Triangulation


class Capacity:
    """A junction tree that grows clique by clique, up to a bound.

    It is asked for thousands of cliques after each step, so the growth that each would bring is remembered,
    and computed anew only if twice as much would not fit. A clique that does not fit then is excluded for
    good. So ``fits`` is an estimate; ``add`` refuses a clique whose growth has more than doubled since.

    Invariant: the tree that a fit finds for the added cliques has at most ``max_cells`` cells, or as many as
    at the start.
    """

    def __init__(
        self, domain: Domain, given: Iterable[Clique], max_cells: int, beside: Iterable[Clique] = ()
    ) -> None:
        """The tree of cliques that are listed with the added ones, and of others that are not, ``beside``."""
        self._domain = domain
        self._cliques = list(given)
        self._beside = tuple(beside)
        self._tree = Triangulation.of(domain, [*self._beside, *self._cliques])
        self._bound = max(max_cells, self._tree.cells)
        self._growth: dict[Clique, int] = {}
        self._gone: set[Clique] = set()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        return tuple(self._cliques)

    def fits(self, clique: Clique) -> bool:
        if clique in self._gone:
            return False
        known = self._growth.get(clique)
        left = self._bound - self._tree.cells
        if known is None or 2 * known > left:
            known = self._growth[clique] = self._tree.cells_with(clique) - self._tree.cells
            if known > left:
                self._gone.add(clique)
                return False
        return True

    def add(self, clique: Clique) -> bool:
        grown = Triangulation.of(self._domain, [*self._beside, *self._cliques, clique])
        if grown.cells > self._bound:
            self._gone.add(clique)
            return False
        self._tree = grown
        self._cliques.append(clique)
        return True


def closure(workload: Workload, limit: int) -> list[Clique]:
    """The cliques that lie within a marginal of the workload, by size, single columns first.

    Cliques of a size at which there could be more than ``limit`` in all are left out, and so are larger ones;
    single columns and pairs never are.
    """
    found: list[Clique] = []
    columns = workload.columns
    for size in range(1, workload.widest + 1):
        if size > 2 and len(found) + comb(len(columns), size) > limit:
            break
        found += [c for c in combinations(columns, size) if workload.weight(c) > 0]
    return found


def overlap(workload: Workload, cliques: Sequence[Clique]) -> list[float]:
    """The sum over the workload's marginals s of their weight times |r n s|, for each clique r.

    It equals the sum over r's columns of the weight of all marginals that hold the column.
    """
    of_column = {c: workload.weight((c,)) for c in workload.columns}
    return [sum(of_column[c] for c in clique) for clique in cliques]


def fitting(tree: Triangulation, candidates: Iterable[Clique], max_cells: int) -> list[Clique]:
    """The candidates with which the junction tree would have at most ``max_cells`` cells."""
    return [c for c in candidates if tree.cells_with(c) <= max_cells]
