"""Room: which cliques a junction tree still has room for, asked of thousands after every step.

Each clique's growth of the tree is remembered. Only where twice as much would not fit is it worked
out anew; a clique that does not fit then is given up for good. So a clique may be thought to
fit that does not, when its growth has more than doubled unseen, and is refused when it is added.

Invariant: the tree that a fit finds for the cliques added has at most ``max_cells`` cells, or as
many as it began with.
"""

from __future__ import annotations

from collections.abc import Iterable

from dpsynth.domain.domain import Clique, Domain
from dpsynth.model import Triangulation


class Room:
    """A junction tree that grows clique by clique, up to a bound."""

    def __init__(
        self, domain: Domain, given: Iterable[Clique], max_cells: int, beside: Iterable[Clique] = ()
    ) -> None:
        """Begin with cliques that are there whatever happens.

        Args:
            domain: the columns.
            given: cliques to be listed with those that are added.
            max_cells: the bound.
            beside: others that the tree holds.
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
        """Those given, then those added, in order."""
        return tuple(self._cliques)

    def fits(self, clique: Clique) -> bool:
        """Whether there seems to be room for a clique."""
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
        """Add a clique if a fit's tree has room for it; whether it had."""
        grown = Triangulation.of(self._domain, [*self._beside, *self._cliques, clique])
        if grown.cells > self._bound:
            self._gone.add(clique)
            return False
        self._tree = grown
        self._cliques.append(clique)
        return True
