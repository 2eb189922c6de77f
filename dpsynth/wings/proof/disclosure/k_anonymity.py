"""k-anonymity by full-domain generalisation, then suppression, with distinct l-diversity.

A table is k-anonymous if each combination of values of its quasi-identifiers is in k rows or more, or none
(Samarati and Sweeney 1998). It is l-diverse, distinctly, if the rows of each combination have at least l
values of each sensitive column (Machanavajjhala, Kifer, Gehrke and Venkitasubramaniam 2007). Each
quasi-identifier is generalised to one level of its hierarchy in all rows; rows of combinations that still
fall short are left out, up to a given share.

The search is Incognito (LeFevre, DeWitt and Ramakrishnan, SIGMOD 2005). A combination of levels for some of
the quasi-identifiers can do only if its part for any fewer of them does; and where one does, all coarser ones
do. Distinct l-diversity and the limit on rows left out keep to both rules. Of the combinations that do while
no finer one does, the one with the least loss is taken: Iyengar's loss metric (KDD 2002), the mean over the
rows and columns of (cells of the group - 1)/(cells of the column - 1). This loss grows with each level, so
none that does has less.

Invariant: what is kept is k-anonymous and l-diverse, whatever the table; where nothing else does, no row is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dpsynth.wings.proof.disclosure.hierarchy import Hierarchy

Codes = NDArray[np.int64]
AnyCodes = NDArray[np.int64] | NDArray[np.unsignedinteger]
Levels = tuple[int, ...]


@dataclass(frozen=True)
class Demand:
    """The condition on each group of equal rows.

    Attributes:
        k: fewest rows.
        distinct: fewest values of each sensitive column; 1 asks for nothing.
        left_out: largest share of the rows that may be left out.
    """

    k: int
    distinct: int = 1
    left_out: float = 0.0


@dataclass(frozen=True, eq=False)
class Generalised:
    """A table that was made k-anonymous.

    Attributes:
        levels: the level of each quasi-identifier.
        kept: bool[rows], false for a row that is left out.
        loss: Iyengar's loss of the levels, from 0 to 1.
    """

    levels: Levels
    kept: NDArray[np.bool_]
    loss: float


def generalised(
    codes: Mapping[str, AnyCodes], hierarchies: Sequence[Hierarchy], sensitive: Sequence[str], demand: Demand
) -> Generalised:
    """The generalisation of least loss that meets a demand, and the rows that it keeps.

    Args:
        codes: int[rows] of each quasi-identifier and each sensitive column.
        hierarchies: those of the quasi-identifiers.
        sensitive: the columns that must be diverse in each group.
        demand: the condition on each group.
    """
    table = _Distinct.of(codes, hierarchies, sensitive)
    every = tuple(range(len(hierarchies)))
    top = tuple(len(h.levels) - 1 for h in hierarchies)
    enough = _incognito(table, demand, [len(h.levels) for h in hierarchies])
    least = [node for node in enough if not any(finer in enough for finer in _finer(node))]
    levels = min(least, key=lambda node: (table.loss(node), node), default=top)
    good = table.good(every, levels, demand)
    return Generalised(levels, good[table.row], table.loss(levels))


def _incognito(table: _Distinct, demand: Demand, heights: Sequence[int]) -> set[Levels]:
    """All combinations of levels of all quasi-identifiers that meet the demand."""
    allowed = demand.left_out * table.rows.sum() + 1e-9
    doing: dict[tuple[int, ...], set[Levels]] = {(): {()}}
    for size in range(1, len(heights) + 1):
        for some in combinations(range(len(heights)), size):
            found: set[Levels] = set()
            nodes = product(*(range(heights[column]) for column in some))
            for node in sorted(nodes, key=lambda node: (sum(node), node)):
                parts = ((some[:i] + some[i + 1 :], node[:i] + node[i + 1 :]) for i in range(size))
                if not all(levels in doing[columns] for columns, levels in parts):
                    continue
                coarser_than_one = any(finer in found for finer in _finer(node))
                if coarser_than_one or table.left_out(some, node, demand) <= allowed:
                    found.add(node)
            doing[some] = found
    return doing[tuple(range(len(heights)))]


def _finer(node: Levels) -> Iterator[Levels]:
    """The combinations of levels that are finer by one level of one column."""
    for place, level in enumerate(node):
        if level:
            yield (*node[:place], level - 1, *node[place + 1 :])


@dataclass(frozen=True, eq=False)
class _Distinct:
    """The distinct combinations of quasi-identifiers of a table, with their numbers of rows.

    Attributes:
        hierarchies: those of the quasi-identifiers.
        codes: int64[combinations, quasi-identifiers].
        rows: int64[combinations], number of rows.
        row: int64[rows], the combination of each row.
        values: for each sensitive column the distinct pairs of a combination and a value, int64[pairs, 2].
    """

    hierarchies: Sequence[Hierarchy]
    codes: Codes
    rows: Codes
    row: Codes
    values: tuple[Codes, ...]

    @classmethod
    def of(
        cls, codes: Mapping[str, AnyCodes], hierarchies: Sequence[Hierarchy], sensitive: Sequence[str]
    ) -> _Distinct:
        matrix = np.column_stack([np.asarray(codes[h.column], np.int64) for h in hierarchies])
        found, row, rows = np.unique(matrix, axis=0, return_inverse=True, return_counts=True)
        row = row.reshape(-1)
        pairs = (np.column_stack([row, np.asarray(codes[name], np.int64)]) for name in sensitive)
        return cls(hierarchies, found, rows, row, tuple(np.unique(pair, axis=0) for pair in pairs))

    def groups(self, columns: Sequence[int], levels: Levels) -> Codes:
        """The group of each combination, when some columns are generalised and all others left away."""
        group = np.zeros(len(self.codes), np.int64)
        for column, level in zip(columns, levels, strict=True):
            coarse = self.hierarchies[column].levels[level]
            joint = group * len(coarse.labels) + coarse.groups[self.codes[:, column]]
            # Numbered anew each time, so that no product of sizes overflows.
            group = np.unique(joint, return_inverse=True)[1].reshape(-1)
        return group

    def good(self, columns: Sequence[int], levels: Levels, demand: Demand) -> NDArray[np.bool_]:
        """True for the combinations whose group meets the demand."""
        group = self.groups(columns, levels)
        fine = np.bincount(group, weights=self.rows) >= demand.k
        for pairs in self.values:
            seen = np.unique(np.column_stack([group[pairs[:, 0]], pairs[:, 1]]), axis=0)
            fine &= np.bincount(seen[:, 0], minlength=len(fine)) >= demand.distinct
        return np.asarray(fine[group])

    def left_out(self, columns: Sequence[int], levels: Levels, demand: Demand) -> int:
        """Number of rows whose group does not meet the demand."""
        return int(self.rows[~self.good(columns, levels, demand)].sum())

    def loss(self, levels: Levels) -> float:
        """Iyengar's loss of a combination of levels."""
        losses = []
        for column, (hierarchy, level) in enumerate(zip(self.hierarchies, levels, strict=True)):
            coarse = hierarchy.levels[level]
            of_cell = (coarse.sizes[coarse.groups] - 1) / max(len(coarse.groups) - 1, 1)
            losses.append(np.average(of_cell[self.codes[:, column]], weights=self.rows))
        return float(np.mean(losses))
