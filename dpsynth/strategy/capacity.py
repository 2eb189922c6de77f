"""The remaining capacity of a junction tree, asked for thousands of cliques after every step.

The growth that each clique would bring is remembered. It is computed anew only if twice as much would
not fit. A clique that does not fit then is excluded for good. So ``fits`` may be wrong for a clique whose
growth has more than doubled since; ``add`` refuses such a clique.

Invariant: the tree that a fit finds for the added cliques has at most ``max_cells`` cells, or as
many as at the start.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model import Triangulation


class Capacity:
    """A junction tree that grows clique by clique, up to a bound."""

    def __init__(
        self, domain: Domain, given: Iterable[Clique], max_cells: int, beside: Iterable[Clique] = ()
    ) -> None:
        """The tree of the cliques that it holds in any case.

        Args:
            domain: the columns.
            given: cliques that are listed with the added ones.
            max_cells: the bound on the tree's cells.
            beside: other cliques that the tree holds; they are not listed.
        """
        self._domain = domain
        self._cliques = list(given)
        self._beside = tuple(beside)
        self._tree = Triangulation.of(domain, [*self._beside, *self._cliques])
        self._bound = max(max_cells, self._tree.cells)
        self._growth: dict[Clique, int] = {}
        self._gone: set[Clique] = set()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The given cliques, then the added ones in order."""
        return tuple(self._cliques)

    def fits(self, clique: Clique) -> bool:
        """An estimate, True if the tree seems to have capacity for a clique."""
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
        """Add a clique if the tree of a fit has capacity for it; True if it was added."""
        grown = Triangulation.of(self._domain, [*self._beside, *self._cliques, clique])
        if grown.cells > self._bound:
            self._gone.add(clique)
            return False
        self._tree = grown
        self._cliques.append(clique)
        return True
