"""Public marginals: exact counts or shares of columns that are public before anything is asked.

A census publishes totals. Marginals given as counts are those of the private table itself, so the number of
its rows, their sum, is public too. Where all marginals are given as shares, the number of rows stays private.

Invariant: public marginals agree wherever they share columns, and all counts have one sum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique

Shares = NDArray[np.float64]

AGREEMENT = 1e-6
"""Largest difference between two shares of the same rows."""


@dataclass(frozen=True, eq=False)
class PublicMarginal:
    """A public marginal.

    Attributes:
        clique: the columns.
        numbers: float64 of the columns' sizes; counts, or shares on any scale. At least one is above 0.
        counted: true if they are counts of the private table's rows.
    """

    clique: Clique
    numbers: Shares
    counted: bool

    @cached_property
    def shares(self) -> Shares:
        """The part of all rows that each cell has."""
        return self.numbers / self.numbers.sum()

    def summed(self, clique: Clique) -> Shares:
        """Shares over some of the columns, axes in their order."""
        kept = [self.clique.index(c) for c in clique]
        others = tuple(i for i in range(len(self.clique)) if i not in kept)
        left = sorted(kept)
        return self.shares.sum(axis=others).transpose([left.index(i) for i in kept])


@dataclass(frozen=True, eq=False)
class PublicMarginals:
    """All public marginals of a table.

    Attributes:
        marginals: marginals of which none lies within another's columns; each shares as many columns as
            possible with the marginals before it.
    """

    marginals: tuple[PublicMarginal, ...] = ()

    @classmethod
    def of(cls, marginals: Iterable[PublicMarginal]) -> PublicMarginals:
        """The marginals without those that another one contains.

        Raises:
            Contradiction: two of them disagree.
        """
        given = list(marginals)
        for i, one in enumerate(given):
            for j, other in enumerate(given[:i]):
                _agree(i, one, j, other)
        kept: list[PublicMarginal] = []
        for marginal in sorted(given, key=lambda m: -len(m.clique)):
            if not any(set(marginal.clique) <= set(k.clique) for k in kept):
                kept.append(marginal)
        order: list[PublicMarginal] = []
        seen: set[str] = set()
        while kept:
            following = max(kept, key=lambda m: len(seen & set(m.clique)))
            kept.remove(following)
            order.append(following)
            seen |= set(following.clique)
        return cls(tuple(order))

    @cached_property
    def rows(self) -> int | None:
        """The private table's number of rows; None where that is private."""
        counted = [m for m in self.marginals if m.counted]
        return round(float(counted[0].numbers.sum())) if counted else None

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns of each marginal."""
        return tuple(m.clique for m in self.marginals)

    @property
    def columns(self) -> frozenset[str]:
        """Columns whose one-way marginal is public."""
        return frozenset(c for m in self.marginals for c in m.clique)

    def shares(self, columns: Clique) -> Shares | None:
        """The part of all rows that each cell of some columns has; None where that is not public."""
        of = next((m for m in self.marginals if columns and set(columns) <= set(m.clique)), None)
        return None if of is None else of.summed(columns)


NO_PUBLIC_MARGINALS = PublicMarginals()


class Contradiction(ValueError):
    """Two public marginals that can't both be true: the position of the later one, and its fault."""

    def __init__(self, position: int, words: str) -> None:
        """Keep both."""
        super().__init__(words)
        self.position = position
        self.words = words


def _agree(i: int, one: PublicMarginal, j: int, other: PublicMarginal) -> None:
    totals = [m.numbers.sum() for m in (one, other)]
    if one.counted and other.counted and totals[0] != totals[1]:
        raise Contradiction(
            i,
            f"adds up to {totals[0]:,.0f} rows, and public_marginals[{j}] to {totals[1]:,.0f}: all counts "
            "are of the same table, so they must have one sum. If they are of another population, give them "
            "as shares",
        )
    shared = tuple(c for c in one.clique if c in other.clique)
    if shared and float(np.abs(one.summed(shared) - other.summed(shared)).max()) > AGREEMENT:
        raise Contradiction(
            i, f"contradicts public_marginals[{j}]: the two have other numbers for {' and '.join(shared)}"
        )
