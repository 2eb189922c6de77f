"""Cell suppression: small counts left out, and more cells, so that none of them can be computed back.

Primary suppression leaves out every count from 1 to below a limit. A reader could compute such a cell back
from margins, so complementary suppression leaves out further cells. The cells are found one after the other
by linear programming: the cheapest move of the tables that raises a cell as far as it must be open, keeps
every margin equal to the sum of its cells, and takes no count below zero. Every cell that moves is left out.
This is the linear programming heuristic of Kelly, Golden and Assad (Networks 22, 1992) in the form of
Fischetti and Salazar (Journal of the American Statistical Association 95, 2000). The moved tables are a
second solution that agrees with all cells that are shown.

A count of zero is shown, and is never moved: zeros are often known beforehand.

Invariant: a reader who solves the equations of all tables for a cell that is left out finds an interval: of a
primary cell at least as wide as the limit, of any other one at least 1 wide. In tables of one and two columns
its ends are whole numbers that the cell may have; in larger ones a reader who counts in whole numbers may
find it narrower.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.proof.disclosure.linked_tables import Counts, LinkedTables

Cells = NDArray[np.bool_]
Numbers = NDArray[np.float64]

_FREE = 1e-3
"""Price of moving a cell that is left out already; it keeps moves short."""
_WHOLE = 1e-6
"""Largest distance of a number from the whole number that it stands for."""
_LOOKS = 12
"""Number of programs that look at all cells together before cells are looked at one by one."""


def small(counts: Counts, below: int) -> Cells:
    """The primary cells: counts from 1 to below a limit."""
    return (counts > 0) & (counts < below)


def left_out(tables: LinkedTables, below: int) -> Cells:
    """The cells to leave out, bool[cells]: the primary ones and their complements.

    Args:
        tables: the tables with all their margins.
        below: the limit.
    """
    hidden = small(tables.counts, below)
    found: Ranges | None = None
    while True:
        found = Ranges(tables, hidden, below, found)
        found.look()
        narrow = np.flatnonzero(found.narrow)
        if not narrow.size:
            return hidden
        for cell in narrow[np.argsort(tables.counts[narrow], kind="stable")]:
            if not found.narrow[cell]:
                continue
            moves = _moves(tables, int(cell), found.needed[cell], hidden)
            if moves is None:
                # Where nothing but zeros is shown, rows may be added wherever there are some.
                return tables.counts > 0
            hidden = hidden | (np.abs(moves) > _WHOLE)
            found.add(moves)


def too_narrow(tables: LinkedTables, hidden: Cells, below: int) -> Counts:
    """The cells left out that a reader can compute too closely: a primary one to less than the limit.

    Any other cell that is left out must be open to at least 1. The reader knows the cells shown, that margins
    are sums, and that no count is negative. Where a cell's range is not seen from what was found for other
    cells, two linear programs give its ends.

    Returns:
        int64[cells at fault], their places among all cells.
    """
    found = Ranges(tables, hidden, below)
    found.look()
    for cell in np.flatnonzero(hidden):
        for sign in (1.0, -1.0):
            if found.narrow[cell]:
                found.reach(int(cell), sign)
    return np.flatnonzero(found.narrow)


class Ranges:
    """The ranges of cells that are left out, as far as solutions have shown them."""

    def __init__(self, tables: LinkedTables, hidden: Cells, below: int, before: Ranges | None = None) -> None:
        """Begin with the one solution that the counts are.

        ``needed`` is the width to which each cell must be open, float64[all cells]. What was shown while
        fewer cells were left out stays shown.
        """
        self._cells = np.flatnonzero(hidden)
        self._counts = tables.counts[self._cells].astype(np.float64)
        own = tables.equations[:, self._cells]
        self._equations = own[np.flatnonzero(np.diff(own.indptr))]
        self.needed = np.where(hidden, 1.0, 0.0) * np.where(small(tables.counts, below), below, 1.0)
        self._up: Numbers = np.zeros(len(tables.counts)) if before is None else before._up
        self._down: Numbers = np.zeros(len(tables.counts)) if before is None else before._down
        self._below = float(below)

    @property
    def narrow(self) -> Cells:
        """The cells that no solutions have shown to be open enough, bool[all cells]."""
        open_by: Numbers = self._up - self._down
        return np.asarray(open_by < self.needed - _WHOLE)

    def add(self, moves: Numbers) -> None:
        """Take up a solution: the moves of all cells from the counts."""
        np.maximum(self._up, moves, out=self._up)
        np.minimum(self._down, moves, out=self._down)

    def look(self) -> None:
        """Solve a few programs about all narrow cells together: each may show many cells to be open."""
        for bit in range(_LOOKS):
            narrow = self.narrow[self._cells]
            if not narrow.any():
                return
            # Half of the cells go up and half down, by another digit of their numbers each time.
            signs = np.where((np.arange(len(narrow)) >> bit) & 1, 1.0, -1.0)
            prices = np.where(narrow, signs, 0.0)
            for price in (prices, -prices):
                self._solve(price, self._below)

    def reach(self, cell: int, sign: float) -> None:
        """Find the largest (sign 1) or least value (sign -1) of a cell that the published figures allow."""
        price = np.where(self._cells == cell, -sign, 0.0)
        self._solve(price, None)

    def _solve(self, price: Numbers, most: float | None) -> None:
        # Loading it takes longer than any command but those that need it.
        from scipy import optimize

        ends = np.column_stack([-self._counts, np.full(len(price), np.inf if most is None else most)])
        found = optimize.linprog(
            price, A_eq=self._equations, b_eq=np.zeros(self._equations.shape[0]), bounds=ends, method="highs"
        )
        moves = np.zeros(len(self._up))
        if found.status == _UNBOUNDED:
            moves[self._cells] = np.where(price < 0, np.inf, 0.0)
            self.add(moves)
        elif found.x is not None:
            moves[self._cells] = found.x
            self.add(moves)


def _moves(tables: LinkedTables, cell: int, by: float, hidden: Cells) -> Numbers | None:
    """The cheapest moves of all cells that raise one of them; None where the solver finds none.

    A cell's price is its count, so that few rows are left out.
    """
    from scipy import optimize, sparse

    nonzero = np.flatnonzero(tables.counts)
    counts = tables.counts[nonzero].astype(np.float64)
    linked = tables.equations[:, nonzero]
    used = np.flatnonzero(np.diff(linked.indptr))
    equations = sparse.hstack([linked[used], -linked[used]], format="csr")
    price = np.where(hidden[nonzero], _FREE, counts)
    low, high = np.zeros(2 * len(nonzero)), np.concatenate([np.full(len(nonzero), np.inf), counts])
    at = int(np.searchsorted(nonzero, cell))
    low[at] = high[at] = by
    high[len(nonzero) + at] = 0.0
    prices = np.concatenate([price, price])
    zeros = np.zeros(len(used))
    found = optimize.linprog(
        prices, A_eq=equations, b_eq=zeros, bounds=np.column_stack([low, high]), method="highs-ds"
    ).x
    if found is None:
        return None
    moves = np.zeros(len(tables.counts))
    moves[nonzero] = found[: len(nonzero)] - found[len(nonzero) :]
    return moves


_UNBOUNDED = 3
"""The status by which HiGHS says that nothing bounds the objective."""
