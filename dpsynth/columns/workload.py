"""The workload: the marginals of the synthetic table that are to be accurate, each with a weight.

Invariant: sums of weights are exact rationals until they are returned, so that no column's weight, however
far from other columns' weights, is lost in a difference. The mean weight of a pair is 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, lcm, prod

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain

_TRIED = 64
"""Largest number of blocks among which the best one is sought that a union grows by."""

Blocks = frozenset[int]


def unions(domain: Domain, cliques: Sequence[Clique], most: int) -> Iterator[tuple[Clique, list[Clique]]]:
    """Cliques to be counted as one, each group with its union, within which every clique of it lies.

    A pass over the rows costs the number of rows for each union, whatever its cells. Columns are put in
    blocks, so small that any of them, as many as a clique has columns, have at most ``most`` cells together.
    Cliques that touch the same blocks are counted as one, and so are those of several such groups, as long as
    their blocks have few cells. The choice depends on the arguments alone.

    Args:
        cliques: the cliques, each once.
        most: largest number of cells of a union of several cliques.
    """
    ways: dict[int, list[Clique]] = defaultdict(list)
    for clique in cliques:
        ways[len(clique)].append(clique)
    for number, alike in ways.items():
        block = _blocks(domain, {c for clique in alike for c in clique}, most ** (1 / max(number, 1)))
        members: dict[int, list[str]] = defaultdict(list)
        for column, at in block.items():
            members[at].append(column)
        cells = {at: domain.cells(columns) for at, columns in members.items()}
        groups: dict[Blocks, list[Clique]] = defaultdict(list)
        for clique in alike:
            groups[frozenset(block[c] for c in clique)].append(clique)
        groups = dict(sorted(groups.items(), key=lambda group: -len(group[0])))
        while groups:
            joined = _joined(groups, cells, most)
            group = [clique for part in joined for clique in groups.pop(part)]
            union = domain.canonical(c for clique in group for c in clique)
            if domain.cells(union) <= most:
                yield union, group
            else:
                yield from ((clique, [clique]) for clique in group)


def _joined(groups: dict[Blocks, list[Clique]], cells: dict[int, int], most: int) -> list[Blocks]:
    """The first group, and others that few more blocks bring: always the block that brings the most."""
    first = next(iter(groups))
    union, found = set(first), [first]
    room = most
    for at in first:
        room //= cells[at]
    open_blocks = sorted(at for at in cells if at not in union and cells[at] <= room) if room else []
    while open_blocks and len(first) > 1:
        brought = {
            at: [
                part
                for rest in combinations(sorted(union), len(first) - 1)
                if (part := frozenset((*rest, at))) in groups
            ]
            for at in open_blocks[:_TRIED]
        }
        best = max(brought, key=lambda at: (len(brought[at]) / cells[at] ** 0.5, -at))
        if not brought[best]:
            break
        found += brought[best]
        union.add(best)
        room //= cells[best]
        open_blocks = [at for at in open_blocks if at != best and cells[at] <= room]
    within = (frozenset(part) for few in range(1, len(first)) for part in combinations(sorted(union), few))
    return [*found, *(part for part in within if part in groups)]


def _blocks(domain: Domain, columns: Iterable[str], most: float) -> dict[str, int]:
    """A block for each column, the first in which it fits; a column too large has its own."""
    cells: list[int] = []
    found = {}
    for column in sorted(columns, key=lambda c: (-domain.sizes[c], c)):
        size = domain.sizes[column]
        at = next((i for i, n in enumerate(cells) if n * size <= most), len(cells))
        if at == len(cells):
            cells.append(1)
        cells[at] *= size
        found[column] = at
    return found


WAYS = 3

TARGET_WEIGHT = 4

Weight = int | Decimal | Fraction


@dataclass(frozen=True)
class Workload:
    """Weighted marginals: all of so many columns, or a list, or both.

    The weight of a marginal is its own (1 for those of ``ways``), times the weights of its columns,
    times ``target_weight`` if it holds a target. A marginal that is listed and also one of ``ways``
    counts as both.

    Attributes:
        ways: columns of each marginal of the "all k-way" part. Left out: 3, or as many as there are;
            with listed marginals, no such part.
        marginals: listed marginals with their own weights, all positive.
        weights: positive weights of columns; 1 where left out.
        targets: columns to be predicted from other columns.
        target_weight: factor of the weight of a marginal that holds a target.

    Raises:
        ValueError: an unknown or repeated column, a weight that isn't positive, more ways than
            columns, or no marginal of two columns in a table that has two.
    """

    columns: Clique
    ways: int | None = None
    marginals: tuple[tuple[Clique, Weight], ...] = ()
    weights: tuple[tuple[str, Weight], ...] = ()
    targets: Clique = ()
    target_weight: Weight = TARGET_WEIGHT

    def __post_init__(self) -> None:
        weighted = tuple(c for c, _ in self.weights)
        for names in (self.columns, self.targets, weighted, *(m for m, _ in self.marginals)):
            if len(set(names)) < len(names) or not set(names) <= set(self.columns):
                raise ValueError("a workload names columns of the table, and none twice in one list")
        if min([self.target_weight, *(w for _, w in self.weights), *(w for _, w in self.marginals)]) <= 0:
            raise ValueError("weights are positive")
        if not all(m for m, _ in self.marginals) or not 0 <= self._ways <= len(self.columns):
            raise ValueError("a marginal has at least one column, and at most as many as the table")
        if len(self.columns) > 1 and self.widest < 2:
            raise ValueError("a workload has a marginal of two columns or more")

    @property
    def widest(self) -> int:
        return max([self._ways, *(len(m) for m, _ in self.marginals)])

    def weight(self, clique: Iterable[str]) -> float:
        """Total weight of the marginals that hold all columns of a clique; of all marginals for ().

        Divided by the mean over all pairs of columns. In the k-way part it is the product of the
        clique's column weights times the elementary symmetric polynomial of degree k - |clique| of
        the other columns' weights, so nothing is enumerated.

        Raises:
            KeyError: a column is not one of the workload.
        """
        held = frozenset(clique)
        found = self._of_ways(tuple(sorted(self._whole[c] for c in held)), not held.isdisjoint(self.targets))
        listed = sum((own for clique, own in self._listed if held <= clique), Fraction(0))
        return float((found + listed) / self._mean)

    def pair_weights(self) -> NDArray[np.float64]:
        """Weights float64[columns, columns] of all pairs, in table order; symmetric.

        The diagonal holds the weights of the single columns; off it the mean is 1.
        """
        kinds = [(self._whole[c], c in self.targets) for c in self.columns]
        number = {kind: i for i, kind in enumerate(dict.fromkeys(kinds))}
        table = np.array([[self._of_two(a, b) for b in number] for a in number])
        kind_of = np.array([number[kind] for kind in kinds])
        weights: NDArray[np.float64] = table[np.ix_(kind_of, kind_of)]
        alone = [float(self._of_ways((w,), target) / self._mean) for w, target in number]
        np.fill_diagonal(weights, np.array(alone)[kind_of])
        at = {c: i for i, c in enumerate(self.columns)}
        for clique, own in self._listed:
            rows = [at[c] for c in clique]
            weights[np.ix_(rows, rows)] += float(own / self._mean)
        return weights

    @cached_property
    def _ways(self) -> int:
        if self.ways is None:
            return 0 if self.marginals else min(WAYS, len(self.columns))
        return self.ways

    @cached_property
    def _units(self) -> int:
        return lcm(*(Fraction(w).denominator for _, w in self.weights))

    @cached_property
    def _whole(self) -> dict[str, int]:
        given = dict(self.weights)
        return {c: int(Fraction(given.get(c, 1)) * self._units) for c in self.columns}

    @cached_property
    def _listed(self) -> tuple[tuple[frozenset[str], Fraction], ...]:
        found = []
        for clique, own in self.marginals:
            weight = Fraction(own) * Fraction(
                prod(self._whole[c] for c in clique), self._units ** len(clique)
            )
            targeted = not set(clique).isdisjoint(self.targets)
            found.append((frozenset(clique), weight * Fraction(self.target_weight) if targeted else weight))
        return tuple(found)

    @cached_property
    def _mean(self) -> Fraction:
        pairs = comb(len(self.columns), 2)
        whole = self._of_ways((), False) * comb(self._ways, 2)
        whole += sum((own * comb(len(clique), 2) for clique, own in self._listed), Fraction(0))
        return whole / pairs if pairs else Fraction(1)

    @cached_property
    def _polynomials(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Elementary symmetric polynomials of all columns' weights, and of those that are no targets."""
        others = [w for c, w in self._whole.items() if c not in self.targets]
        return _elementary(list(self._whole.values()), self._ways), _elementary(others, self._ways)

    @cached_property
    def _computed(self) -> dict[tuple[tuple[int, ...], bool], Fraction]:
        """Cache of weights: cliques of equal column weights have equal weights."""
        return {}

    def _of_ways(self, held: tuple[int, ...], targeted: bool) -> Fraction:
        """Weight of the k-way marginals that hold a clique of these weights, with a target or without."""
        if len(held) > self._ways or not self._ways:
            return Fraction(0)
        if (held, targeted) not in self._computed:
            left = self._ways - len(held)
            rest, untargeted = self._polynomials
            times = Fraction(self.target_weight)
            whole = times * _without(rest, held)[left]
            if not targeted:
                # Marginals without a target were weighted as well; they count once.
                whole -= (times - 1) * _without(untargeted, held)[left]
            self._computed[held, targeted] = whole * prod(held) / self._units**self._ways
        return self._computed[held, targeted]

    def _of_two(self, a: tuple[int, bool], b: tuple[int, bool]) -> float:
        return float(self._of_ways((min(a, b)[0], max(a, b)[0]), a[1] or b[1]) / self._mean)


def _elementary(values: Sequence[int], degree: int) -> tuple[int, ...]:
    """Elementary symmetric polynomials e_0 … e_degree of some numbers."""
    found = [1] + [0] * degree
    for value in values:
        for j in range(degree, 0, -1):
            found[j] += value * found[j - 1]
    return tuple(found)


def _without(elementary: tuple[int, ...], gone: Iterable[int]) -> tuple[int, ...]:
    """The elementary symmetric polynomials after some numbers are removed."""
    for value in gone:
        left = [1]
        for e in elementary[1:]:
            left.append(e - value * left[-1])
        elementary = tuple(left)
    return elementary
