"""Auto: pairs chosen privately, told apart by what they are worth, measured together once.

1. The exponential mechanism picks the pairs of columns that lie farthest, in L1 distance, from
   independence (or from what earlier releases say): first a tree that joins all columns, then more.
2. Their distances are asked for with noise, and those of pairs so small that they cost next to nothing to
   measure. Where that would be all pairs, nothing is chosen.
3. What a pair's distance is worth is held against the noise of its cells at the price that a unit of
   the budget brings elsewhere (``worth``). A junction tree is grown from the pairs that gain: those that
   join two parts first, since all columns on either side depend on them, then the others by their gain.
4. Pairs of small columns are gathered into blocks (``blocks``). Columns count as cliques of their
   own: at a low budget those of many places get most of it, measured again.
5. Everything is measured at once, and the model is fitted once, shrunk a little towards independence.

A second round, against the model of the first, brought no accuracy in the trials made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.events import Measure
from dpsynth.domain.domain import Clique
from dpsynth.domain.measurement import mean_absolute_error
from dpsynth.model import Triangulation
from dpsynth.plan.outline import Outlined, Shares
from dpsynth.structure import gain
from dpsynth.structure.allocation import error_power
from dpsynth.structure.blocks import MOST_CELLS, blocks, with_blocks
from dpsynth.structure.candidates import most_cells, penalty, whole_weights
from dpsynth.structure.components import Components
from dpsynth.structure.forest import Forest
from dpsynth.structure.strategy import Door, Problem, Selection, Strategy

Floats = NDArray[np.float64]

PICKS: Mapping[Measure, float] = {"zcdp": 7.5, "gdp": 7.5, "pure": 2.0}
"""Pairs picked besides a tree of all columns, in square roots of the number of columns. In pure epsilon k
picks cost k times as much as one, in rho as little as sqrt(k) times more noise; so there are fewer."""
SMALL_A_COLUMN = 8
"""Pairs of so few cells that blocks hold them need no choice, if there are no more for each column."""
MEASURED_A_COLUMN = Fraction(5, 2)
"""Pairs measured for each column, as far as is known beforehand."""
COLUMNS_COUNT = 3.0
"""How many times a column on its own counts as much as a pair, at most. In all marginals of three
columns it is half as many times as there are columns; but a pair tells of others too, through the model."""
WANTED_COUNT = 4.0
"""How many times a pair counts that a requested statistic is about, as targets of a workload do."""
JOINING = 2.5
"""How many times a pair's distance counts that joins two parts of the model: all columns on either side
depend on each other through it, so their pairs gain too."""
CAUTION = 0.3
"""Standard deviations of its noise that a distance is taken to be less than told: among many, those that
look largest are so in part by their noise."""
UNPICKED = 0.5
"""The distance of a pair that was not picked, in parts of a small one among those picked."""
CELLS_A_SIGNAL = 100
"""Cells of the model for each time that the rows exceed the error of a cell; more bring more noise than they
can tell."""
LEAST_CELLS = 100_000
"""Cells that a model may have however strong the noise; their fit takes a part of a second."""
PRIOR = 1 / 5
"""Rows, as a share of all, as whose evidence independent columns count in the fit, divided by the number of
columns: between columns far apart in the model every link on the way is weakened."""
ONE_WAY, MANY_PLACES = Fraction(4, 100), Fraction(20, 100)
"""Share of the single columns, and what it grows by where all of them have many places."""
CHOOSING: Mapping[Measure, Fraction] = {
    "zcdp": Fraction(1, 100),
    "gdp": Fraction(1, 100),
    "pure": Fraction(5, 100),
}
MOST_CHOOSING: Mapping[Measure, Fraction] = {
    "zcdp": Fraction(10, 100),
    "gdp": Fraction(10, 100),
    "pure": Fraction(20, 100),
}
"""Share of choosing: so much times the square root of the number of columns, and its most."""
TOLD = Fraction(1, 2)
"""Part of that for noisy distances, where there are choices too."""
_WIDEST = 4
"""A pair may have this part of the model's cells at most."""
_LEAST_ERROR = 1e-6
"""Rows; errors below are taken for it."""
_NOTHING = 1 / 20
"""Columns whose part of the budget is less than this part of an even one are not measured again."""


def small_pairs(sizes: Sequence[int]) -> int:
    """How many pairs are asked about without a choice, being cheap to measure; 0 if there are too many."""
    places = np.array(sizes, dtype=np.float64)
    first, second = np.triu_indices(len(places), 1)
    small = int((places[first] * places[second] <= MOST_CELLS).sum())
    return small if small <= SMALL_A_COLUMN * len(places) else 0


def picks(sizes: Sequence[int], measure: Measure) -> int:
    """How many pairs are picked by choices among those that are not small, at most."""
    columns, small = len(sizes), small_pairs(sizes)
    more = int(PICKS[measure] * sqrt(columns))
    return min(comb(columns, 2) - small, columns + more)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that may be measured, as arrays of the same length.

    Attributes:
        cliques: the pairs, in table order.
        first, second: places of their columns.
        cells: float64, number of cells.
        weights: float64, how much each counts.
        wanted: whether it is measured whatever is chosen.
        small: whether it is asked about without a choice.
    """

    cliques: Sequence[Clique]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    cells: Floats
    weights: Floats
    wanted: NDArray[np.bool_]
    small: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: Problem, most_cells: int) -> Pairs:
        """All pairs of at most so many cells, none with a column of one place, and the wanted ones."""
        domain = problem.domain
        names, sizes = domain.columns, np.array(domain.shape(domain.columns), dtype=np.float64)
        first, second = np.triu_indices(len(names), 1)
        place = {c: i for i, c in enumerate(names)}
        named = {tuple(sorted(place[c] for c in pair)) for pair in problem.wanted}
        wanted = np.array([pair in named for pair in zip(first.tolist(), second.tolist(), strict=True)], bool)
        weights = problem.workload.pair_weights()[first, second] * np.where(wanted, WANTED_COUNT, 1.0)
        cells = sizes[first] * sizes[second]
        telling = np.minimum(sizes[first], sizes[second]) > 1
        values = problem.values.shape(names)
        places = np.array(values, dtype=np.float64)
        few = places[first] * places[second] <= MOST_CELLS
        small = few if small_pairs(values) else np.zeros_like(few)
        kept = wanted | (telling & (cells <= most_cells) & (weights > 0))
        first, second, wanted, small = first[kept], second[kept], wanted[kept], small[kept]
        cliques = [(names[a], names[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        return cls(cliques, first, second, cells[kept], np.maximum(weights[kept], 1e-9), wanted, small)

    @property
    def burdens(self) -> Floats:
        """Weighted cells."""
        return self.cells * self.weights


def _shares(sizes: Mapping[str, int], measure: Measure) -> Shares:
    """The split: more for single columns the more of them have many places.

    Columns of few places are told of well by the marginals that hold them.
    """
    many = sum(size > MOST_CELLS // 4 for size in sizes.values())
    one_way = ONE_WAY + MANY_PLACES * Fraction(many, len(sizes))
    structure = min(CHOOSING[measure] * Fraction(isqrt(100 * len(sizes)), 10), MOST_CHOOSING[measure])
    return Shares(one_way, structure, 1 - one_way - structure)


class Auto:
    """Our own strategy, and the default."""

    name = "auto"
    max_cells = 1_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> Outlined:
        """One round: choices, noisy distances of what was chosen, and all marginals at once."""
        columns = len(sizes)
        small, picked = small_pairs(tuple(sizes.values())), picks(tuple(sizes.values()), measure)
        every = small + picked == comb(columns, 2)
        return Outlined(
            rounds=1,
            choices=0 if every else picked,
            errors=comb(columns, 2) if every else min(comb(columns, 2), small + picked + len(wanted)),
            cliques=max(1, len(wanted), min(comb(columns, 2), int(MEASURED_A_COLUMN * columns))),
            cells=most_cells(sizes.values()),
            shares=_shares(sizes, measure),
            told=TOLD,
        )

    def select(self, door: Door, problem: Problem) -> Selection:
        """Choose pairs, work out what each is worth, and measure."""
        if problem.structure >= door.remaining:
            # Interruptions may have taken what measuring was to have.
            problem = replace(problem, structure=door.remaining / 2)
        trade = _trade(door, problem)
        bound = _bound(trade, problem)
        pairs = Pairs.of(problem, bound // _WIDEST)
        distances = _distances(door, problem, pairs, trade)
        chosen, split = _grown(problem, pairs, distances, trade, bound)
        cliques = [pairs.cliques[i] for i in chosen.tolist()]
        wanted = {pairs.cliques[i] for i in chosen.tolist() if pairs.wanted[i]}
        costs = dict(zip(cliques, split.cliques.tolist(), strict=True))
        gathered = [c for c in cliques if c not in wanted]
        found, shares = with_blocks(
            gathered,
            [costs[c] for c in gathered],
            blocks(problem.domain, gathered),
        )
        measured = [*(c for c in cliques if c in wanted), *found]
        parts = [*(costs[c] for c in cliques if c in wanted), *shares]
        return _measured(door, problem, measured, parts, split.columns)


STRATEGY: type[Strategy] = Auto


def _trade(door: Door, problem: Problem) -> gain.Trade:
    """How error falls with cost, and at which cost each column was measured already."""
    power = error_power(door.measure)
    budget, columns = door.remaining - problem.structure, problem.domain.columns
    # Where noise is less than a row its error falls faster: what counts is the error at a usual cost.
    usual = budget / (MEASURED_A_COLUMN * len(columns))
    unit = max(door.cell_error(usual), _LEAST_ERROR) * float(usual) ** power
    alone = np.diag(problem.workload.pair_weights())
    weights = alone * min(1.0, COLUMNS_COUNT / max(alone.mean(), 1e-9))
    known = dict.fromkeys(columns, 0.0)
    for m in problem.singles:
        if m.clique and m.noise != "none":
            error = max(mean_absolute_error(m.noise, m.scale), _LEAST_ERROR)
            known[m.clique[0]] += float((unit / error) ** (1 / power))
    values = np.array(problem.values.shape(columns), dtype=np.float64)
    return gain.Trade(unit, power, float(budget), np.array([known[c] for c in columns]), weights * values)


def _bound(trade: gain.Trade, problem: Problem) -> int:
    """Cells that the model may have beside what is known: no more than the noise allows to tell of."""
    error = trade.error(trade.budget / float(MEASURED_A_COLUMN * len(problem.domain.columns)))
    worthwhile = int(CELLS_A_SIGNAL * problem.start.model.total / error)
    alone = sum(problem.domain.sizes.values())
    known = Triangulation.of(problem.domain, problem.given).cells - alone
    return min(problem.max_cells, known + max(LEAST_CELLS, 2 * alone, worthwhile))


def _distances(door: Door, problem: Problem, pairs: Pairs, trade: gain.Trade) -> Floats:
    """The distance of each pair from independence, in rows: noisy if it was picked, guessed if not."""
    model, count = problem.start.model, len(pairs.cliques)
    if count == 0:
        return np.zeros(0)
    given = np.flatnonzero(pairs.wanted | pairs.small)
    choices = picks(tuple(problem.values.sizes.values()), door.measure)
    if not choices or count <= given.size + choices:
        told, spread = door.errors(pairs.cliques, model, problem.structure)
        return np.asarray(told - CAUTION * spread)
    least = np.sort(pairs.burdens)[: int(MEASURED_A_COLUMN * len(problem.domain.columns))]
    price = trade.price(np.full(least.size, np.inf), least)
    costs = (1 + 1 / trade.power) * price * trade.costs(pairs.burdens, price)
    penalties = [penalty(cost / weight, 1) for cost, weight in zip(costs, pairs.weights, strict=True)]
    picked = _picked(door, problem, pairs, penalties, given, choices)
    told, spread = door.errors([pairs.cliques[i] for i in picked], model, problem.structure * TOLD)
    noisy = told - CAUTION * spread
    found = np.full(
        count, UNPICKED * min(1.0, 2 * picked.size / count) * max(float(np.quantile(noisy, 0.1)), 0.0)
    )
    found[picked] = noisy
    return found


def _picked(
    door: Door,
    problem: Problem,
    pairs: Pairs,
    penalties: Sequence[int],
    given: NDArray[np.intp],
    choices: int,
) -> NDArray[np.intp]:
    """The given pairs, and those picked by the exponential mechanism for a part of what choosing may cost."""
    parts = Components(len(problem.domain.columns))
    for i in np.flatnonzero(pairs.wanted).tolist():
        parts.join(pairs.first[i], pairs.second[i])
    for first, *others in _places(problem):
        for other in others:
            parts.join(first, other)

    def admissible(before: Sequence[int]) -> NDArray[np.bool_]:
        if before:
            parts.join(pairs.first[before[-1]], pairs.second[before[-1]])
        joining = parts.disconnected(pairs.first, pairs.second)
        left = np.ones(len(pairs.cliques), dtype=bool)
        left[[*before, *given.tolist()]] = False
        return left & joining if (left & joining).any() else left

    order = door.choose_in_turn(
        pairs.cliques,
        problem.start.model,
        problem.structure * (1 - TOLD) / max(choices, 1),
        choices,
        admissible,
        penalties,
        whole_weights(np.where(pairs.wanted, pairs.weights / WANTED_COUNT, pairs.weights)),
    )
    return np.array([*given.tolist(), *order], dtype=np.intp)


def _grown(
    problem: Problem, pairs: Pairs, distances: Floats, trade: gain.Trade, bound: int
) -> tuple[NDArray[np.intp], gain.Shares]:
    """The pairs to measure, and the shares of the budget."""
    weighted = np.where(pairs.wanted, np.inf, pairs.weights * distances)
    sizes = np.array(problem.domain.shape(problem.domain.columns), dtype=np.float64)
    price = trade.price(weighted, pairs.burdens)
    for _ in range(2):
        joining = trade.gains(JOINING * weighted, pairs.burdens, price)
        gains = trade.gains(weighted, pairs.burdens, price)
        chosen, full = _tree(problem, pairs, joining, gains, bound)
        members = [(int(pairs.first[i]), int(pairs.second[i])) for i in chosen.tolist()]
        split = gain.shared(trade, sizes, members, pairs.weights[chosen])
        if not full:
            break
        price = split.price
    return chosen, split


def _places(problem: Problem) -> list[list[int]]:
    """The places of the columns of each clique that earlier releases measured."""
    place = {c: i for i, c in enumerate(problem.domain.columns)}
    return [[place[c] for c in clique] for clique in problem.given]


def _tree(
    problem: Problem, pairs: Pairs, joining: Floats, gains: Floats, bound: int
) -> tuple[NDArray[np.intp], bool]:
    """Pairs that gain, with a junction tree within the bound; and whether that kept any out."""
    order = [i for i in np.argsort(-joining, kind="stable").tolist() if joining[i] > 0]
    domain, given = problem.domain, problem.given
    known = Triangulation.of(domain, given)
    forest = Forest(domain.shape(domain.columns), _places(problem), known.cells)
    chosen: list[int] = []
    others: list[int] = []
    full = False
    for i in order:
        a, b = int(pairs.first[i]), int(pairs.second[i])
        if not forest.disconnected(a, b):
            others.append(i)
        elif forest.cells_with(a, b) <= bound or pairs.wanted[i]:
            forest.join(a, b)
            chosen.append(i)
        else:
            full = True
    tree = Triangulation.of(domain, [*given, *(pairs.cliques[i] for i in chosen)])
    for i in sorted((i for i in others if gains[i] > 0), key=lambda i: -gains[i]):
        if tree.cells_with(pairs.cliques[i]) <= bound or pairs.wanted[i]:
            tree = tree.with_clique(pairs.cliques[i])
            chosen.append(i)
        else:
            full = True
    tree = Triangulation.of(domain, [*given, *(pairs.cliques[i] for i in chosen)])
    while chosen and tree.cells > bound and not pairs.wanted[chosen[-1]]:
        # Rare: a tree made anew of all pairs, as a fit makes it, may be larger than one that grew.
        chosen.pop()
        tree = Triangulation.of(domain, [*given, *(pairs.cliques[i] for i in chosen)])
    return np.array(chosen, dtype=np.intp), full


def _measured(
    door: Door, problem: Problem, cliques: Sequence[Clique], costs: Sequence[float], columns: Floats
) -> Selection:
    """Measure columns again and cliques, everything that is left shared as worked out."""
    least = _NOTHING * float(columns.sum() + sum(costs)) / (len(columns) + len(costs))
    again = {
        name: cost
        for name, cost in zip(problem.domain.columns, columns.tolist(), strict=True)
        if cost > least
    }
    given = sum(again.values())
    part = Fraction(1) if not cliques else Fraction(given / (given + sum(costs))) if again else Fraction(0)
    singles = (
        door.singles(list(again), door.remaining * part, [Fraction(cost) for cost in again.values()])
        if again
        else []
    )
    answers = door.marginals(cliques, door.remaining, [Fraction(cost) for cost in costs])
    return Selection(
        tuple(cliques),
        tuple(answers),
        singles=tuple(m for m in singles if m is not None),
        prior=PRIOR / len(problem.domain.columns),
    )
