"""MST: a spanning tree of column pairs (McKenna, Miklau and Sheldon 2021).

Kruskal's algorithm with a private choice a step: among the pairs that would join two
parts of the tree, the exponential mechanism picks one whose counts lie far, in L1 distance,
from what the one-way marginals would have under independence. From each distance the error
that measuring the pair would bring is taken off (as AIM does, McKenna et al. 2022): a pair
of thousands of cells has to earn its noise. That penalty is public, so the sensitivity of a
score stays that of the distance. Pairs that requested statistics are about join the tree
before any choice: they are named in the config, and cost no choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from dpsynth.domain.domain import Clique, Domain
from dpsynth.spec.plan import Shares
from dpsynth.structure.strategy import Chooser, Estimates


class MaximumSpanningTree:
    """d - 1 pairs of d columns: wanted pairs first, the others each at an equal price."""

    name = "mst"
    shares = Shares(Fraction(3, 10), Fraction(1, 10), Fraction(6, 10))

    def choices(self, columns: int, wanted: int) -> int:
        """One an edge that is not wanted anyway."""
        return max(0, columns - 1 - wanted)

    def cliques(self, columns: int) -> int:
        """The edges of a spanning tree."""
        return max(0, columns - 1)

    def select(
        self,
        chooser: Chooser,
        domain: Domain,
        estimates: Estimates,
        allowance: Fraction,
        cell_error: float,
        wanted: Sequence[Clique],
    ) -> tuple[Clique, ...]:
        """The edges of the tree: those wanted, then those chosen, in that order."""
        part = {column: i for i, column in enumerate(domain.columns)}
        edges: list[Clique] = []

        def join(a: str, b: str) -> None:
            edges.append((a, b))
            joined, absorbed = part[a], part[b]
            for column, p in part.items():
                part[column] = joined if p == absorbed else p

        for a, b in wanted:
            join(a, b)
        choices = self.choices(len(part), len(wanted))
        for _ in range(choices):
            candidates = [(a, b) for a, b in combinations(domain.columns, 2) if part[a] != part[b]]
            penalties = [round(cell_error * domain.cells(pair)) for pair in candidates]
            join(*candidates[chooser.choose(candidates, estimates, allowance / choices, penalties)])
        return tuple(edges)
