"""PrivBayes: a Bayesian network, one child at a time (Zhang et al. 2017), fitted as a graphical model.

Each step attaches one more column, the child, to up to k columns of the network, its parents. The
exponential mechanism chooses child and parents together. The score is the L1 distance of their
joint counts from those of the model so far. In that model the child is independent, so the estimate is
p(parents) p(child), and the distance measures how much the child depends on its parents. The estimate is
public, so the sensitivity of a score is that of a marginal's distance. (The paper's score compares two
exact marginals, and divides by an exact number of rows.) The model needs p(parents) beyond single
columns. So each family is measured with a part of the budget as soon as it is chosen; the rest of the
budget measures all families together.

A family is useful, as in the paper, if its cells have on average theta times their noise in rows. The
degree k is the largest with which some family is useful, by the noisy total alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from math import comb, prod

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.measurement import Measurement
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.allocation import importance, measure_all, penalty, whole_weights
from dpsynth.strategy.candidates import most_cells
from dpsynth.strategy.strategy import Problem, Selection, Strategy
from dpsynth.wings.methods.cliques import Capacity

THETA = 4
_MOST_FAMILIES = 30_000
"""Largest number of families compared in all steps together, unless each has one parent only."""
_AT_ONCE = Fraction(1, 3)
"""The part of the marginals step's budget that measures each family as soon as it is chosen."""
_TOLERANCE = 0.1
_SHARES = Shares(Fraction(2, 10), Fraction(2, 10), Fraction(6, 10))


def degree(sizes: Sequence[int], useful: float) -> int:
    """The largest number of parents, at least 1, with which the smallest family has useful cells only."""
    ascending, k = sorted(sizes), 1
    # Attaching d - v columns to any k of v, for v from 1 to d - 1, compares C(d + 1, k + 2) families.
    while (
        k + 2 <= len(ascending)
        and prod(ascending[: k + 2]) <= useful
        and comb(len(ascending) + 1, k + 3) <= _MOST_FAMILIES
    ):
        k += 1
    return k


def families(domain: Domain, network: Sequence[str], most: int, useful: float) -> Iterator[Clique]:
    """Families of a child outside the network with parents in it, columns in table order.

    A family has up to ``most`` parents, and at most ``useful`` cells. One of fewer parents is listed only
    if no further parent would keep it useful.
    """
    sizes, within = domain.sizes, set(network)
    place = {c: i for i, c in enumerate(domain.columns)}
    parents = [
        (p, domain.cells(p), min((sizes[c] for c in network if c not in p), default=0))
        for count in range(1, most + 1)
        for p in combinations(network, count)
    ]
    for child in domain.columns:
        if child in within:
            continue
        for p, cells, further in parents:
            family = cells * sizes[child]
            full = len(p) == most or not further or family * further > useful
            if family <= useful and full:
                yield tuple(sorted((child, *p), key=place.__getitem__))


class PrivBayes:
    """A network of all columns that have a useful family, at most one child a column."""

    name = "privbayes"
    max_cells = 2_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """A choice for each column but the first; each family is measured twice."""
        children = len(sizes) - 1
        cliques = 2 * children + len(wanted)
        cells = most_cells(sizes.values())
        return StrategyOutline(children + 1, children, 0, cliques, cells, _SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        domain = problem.domain
        children = len(domain.columns) - 1
        known: list[tuple[Clique, Measurement | None]] = []
        capacity = Capacity(domain, problem.wanted, problem.max_cells, problem.given)
        budget = (door.remaining - problem.structure) / children
        error = door.cell_error(budget)
        useful = problem.start.model.total / (THETA * error)
        most = degree(domain.shape(domain.columns), useful)
        network = [min(domain.columns, key=lambda c: domain.sizes[c])]
        fit = problem.start
        for _ in range(children):
            possible = families(domain, network, most, useful)
            allowed = [family for family in possible if capacity.fits(family)]
            if not allowed:
                break
            found = door.choose(
                allowed,
                fit.model,
                problem.structure / children,
                [penalty(error, domain.cells(c)) for c in allowed],
                whole_weights([importance(problem.workload, c) for c in allowed]),
            )
            family = allowed[found]
            if not capacity.add(family):
                continue
            network.append(next(c for c in family if c not in network))
            if most > 1:
                known += zip([family], door.marginals([family], budget * _AT_ONCE), strict=True)
                fit = problem.refit((m for _, m in known), fit, _TOLERANCE)
        return measure_all(door, problem, list(dict.fromkeys(capacity.cliques)), known)


STRATEGY: type[Strategy] = PrivBayes
