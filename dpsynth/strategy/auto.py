"""Auto: pairs are chosen privately, ranked by their gain, and measured together once.

1. The exponential mechanism chooses the pairs of columns that lie farthest, in L1 distance, from
   independence (or from the answers of earlier releases).
2. The noisy distances of these pairs are asked for, and those of pairs so small that measuring them costs
   next to nothing. If that would be all pairs, no pair is chosen by the exponential mechanism.
3. The gain of a pair is its distance less the noise left in its cells, at the price that a unit of the budget
   brings elsewhere (``allocation``). A junction tree is grown from the pairs of positive gain. Those
   that join two components come first, since all columns on either side depend on them; then the others.
4. Pairs of small columns are gathered into blocks (``blocks``). Single columns count as cliques of their
   own: at a low budget those of many places get most of it, and are measured again.
5. All cliques are measured at once. The model is fitted with a little shrinkage to independence.
6. If the tree has no room for all pairs of positive gain, or if there are pairs that nothing was asked of,
   and distances would tell which of them pay, it is made small. Then, and if the distances of small triples
   would tell something, the tree gets its part of the budget only. With the rest, pairs and triples beside it
   are measured, and its own cliques once more (``second_round``).
7. If a scan of parities would show exclusive ors of three to five columns (``exclusive_ors``), it is asked
   before the tree is measured. The sets that stand out are measured with the triples, or alone.

Invariant: which pairs may be measured, and whose distance is asked for, follows from public facts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import mean_absolute_error
from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique, Domain
from dpsynth.model import Triangulation, denoised_answers, posteriors
from dpsynth.model.denoising import LEAST_CELLS as LEAST_DENOISED
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.allocation import MEASURED_A_COLUMN, Split, Trade, shared, whole_weights
from dpsynth.strategy.candidates import MOST_CELLS, Forest, blocks, most_cells, with_blocks
from dpsynth.strategy.exclusive_ors import SHOWN, Scan, scan_of
from dpsynth.strategy.second_round import (
    DENOISED,
    LATER,
    TREE_CELLS,
    later_distances,
    tree_share,
    triples_would_tell,
    with_exclusive_ors,
    with_pairs_beside,
    would_tell,
)
from dpsynth.strategy.strategy import Problem, Selection, Strategy

Floats = NDArray[np.float64]

PICKS: Mapping[float, float] = {0.5: 7.5, 1.0: 2.0}
"""Pairs chosen besides one for each column, in square roots of the number of columns, by the measure's error
power: in pure epsilon k choices cost k times as much as one, in rho sqrt(k) times the noise."""

SMALL_A_COLUMN = 12
"""Pairs small enough for a block need no choice, if there are at most so many for each column."""

WANTED_COUNT = 4.0
"""Weight factor of a pair that a requested statistic is about, like that of a workload's targets."""


def small_pairs(sizes: Sequence[int]) -> int:
    """Number of pairs whose distances are asked for without a choice; 0 if they are too many."""
    places = np.array(sizes, dtype=np.float64)
    first, second = np.triu_indices(len(places), 1)
    small = int((places[first] * places[second] <= MOST_CELLS).sum())
    return small if small <= SMALL_A_COLUMN * len(places) else 0


def picks(sizes: Sequence[int], measure: Measure) -> int:
    """Largest number of private choices among the pairs that are not small."""
    columns, small = len(sizes), small_pairs(sizes)
    more = int(PICKS[measure.error_power] * sqrt(columns))
    return min(comb(columns, 2) - small, columns + more)


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs that may be measured, in table order, as arrays of the same length.

    Attributes:
        first, second: places of their columns.
        wanted: pairs that are measured in any case.
        small: pairs whose distance is asked for without a choice.
        choices: largest number of private choices among the others; 0 if no pair is chosen.
    """

    cliques: Sequence[Clique]
    first: NDArray[np.intp]
    second: NDArray[np.intp]
    cells: Floats
    weights: Floats
    wanted: NDArray[np.bool_]
    small: NDArray[np.bool_]
    choices: int

    @classmethod
    def of(cls, problem: Problem, most_cells: int, measure: Measure) -> Pairs:
        """Wanted pairs, and all pairs of at most ``most_cells`` cells without a column of one place."""
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
        heavy = np.maximum(weights[kept], 1e-9)
        return cls(cliques, first, second, cells[kept], heavy, wanted, small, picks(values, measure))

    def told(self, problem: Problem) -> NDArray[np.bool_]:
        """Pairs of which other releases tell, of so many cells that they are denoised."""
        earlier = [{*m.clique} for m in problem.earlier if m.variance > 0 and m not in problem.believed]
        known = [any(columns.issuperset(pair) for columns in earlier) for pair in self.cliques]
        return np.array(known, dtype=bool) & (self.cells >= LEAST_DENOISED)

    @property
    def given(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.wanted | self.small)

    @property
    def unasked(self) -> int:
        return max(0, len(self.cliques) - self.given.size - self.choices) if self.choices else 0


COLUMNS_COUNT = 3.0
"""Largest weight of a single column, relative to a pair. In all marginals of three columns it would be half
the number of columns; but a pair informs other pairs too, through the model."""

JOINING = 2.5
"""Weight factor of a pair that joins two components of the model: pairs of columns on either side gain
too."""

CAUTION = 0.3
"""Standard deviations of noise that are taken off a noisy distance: those that look largest are so in part
because of their noise."""

UNPICKED = 0.5
"""Assumed distance of a pair that was not chosen, relative to a small distance among the chosen pairs."""

DENOISED_FIRST = 0.7
"""Error of a cell relative to its noise, where it is denoised about independent columns; see `DENOISED`."""

CELLS_A_SIGNAL = 100
"""Bound on the model's cells, in multiples of the rows divided by the error of a cell. Beyond, cells bring
more noise than information."""

LEAST_CELLS = 100_000
"""Cells that a model may have at any noise; their fit takes a part of a second."""

PRIOR, LEAST_PRIOR = 1 / 5, 1 / 25
"""Strength of the shrinkage to independent columns, in rows as a share of all, divided by the number of
columns, as it weakens every link between columns that are distant in the tree. The larger one holds if all
cliques are so small that their answers aren't denoised, the smaller one if none is."""

ONE_WAY, MANY_PLACES = Fraction(4, 100), Fraction(20, 100)
"""Share of the single columns, and its increase if all of them have many places."""

CHOOSING: Mapping[float, Fraction] = {0.5: Fraction(1, 100), 1.0: Fraction(5, 100)}

MOST_CHOOSING: Mapping[float, Fraction] = {0.5: Fraction(10, 100), 1.0: Fraction(20, 100)}
"""Share of the structure step: so much times the square root of the number of columns, and its maximum; both
by the measure's error power."""

TOLD = Fraction(1, 2)
"""The part of it for noisy distances, if there are choices too."""

ROUGH = 1e-1
"""Tolerance of the tree's fit before further rounds."""

_LEAST_ERROR = 1e-6
"""Smallest error, in rows."""

_NOTHING = 1 / 20
"""Columns with less than this part of an even share of the budget are not measured again."""


def _shares(sizes: Mapping[str, int], measure: Measure) -> Shares:
    """The default split of the budget; single columns get more if more of them have many places.

    Columns of few places are measured well by the marginals that hold them.
    """
    many = sum(size > MOST_CELLS // 4 for size in sizes.values())
    one_way = ONE_WAY + MANY_PLACES * Fraction(many, len(sizes))
    power, columns = measure.error_power, len(sizes)
    structure = min(CHOOSING[power] * Fraction(isqrt(100 * columns), 10), MOST_CHOOSING[power])
    if later_distances(sizes, measure):
        structure /= 1 - LATER
    return Shares(one_way, structure, 1 - one_way - structure)


class Auto:
    """The default strategy, designed for dpsynth; the module's docstring shows its steps."""

    name = "auto"
    max_cells = 1_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        columns = len(sizes)
        small, picked = small_pairs(tuple(sizes.values())), picks(tuple(sizes.values()), measure)
        every = small + picked == comb(columns, 2)
        later = later_distances(sizes, measure)
        first = comb(columns, 2) if every else min(comb(columns, 2), small + picked + len(wanted))
        return StrategyOutline(
            rounds=2 if later else 1,
            choices=0 if every else picked,
            errors=first + later,
            cliques=max(len(wanted), min(comb(columns, 2), int(MEASURED_A_COLUMN * columns))),
            cells=most_cells(sizes.values()),
            shares=_shares(sizes, measure),
            distance_share=TOLD * (1 - LATER) + LATER if later else TOLD,
            by_weights=True,
        )

    def select(self, door: Door, problem: Problem) -> Selection:
        if problem.structure >= door.remaining:
            # Interruptions may have spent what was reserved for measuring.
            problem = replace(problem, structure=door.remaining / 2)
        later = later_distances(problem.domain.sizes, door.measure)
        first = problem.structure * (1 - LATER) if later else problem.structure
        trade = _trade(door, problem, first)
        bound = _bound(trade, problem)
        pairs = Pairs.of(problem, bound, door.measure)
        distances = _distances(door, problem, pairs, first)
        grown = _grown(problem, pairs, distances, trade, bound)
        left_out = later > 0 and (pairs.unasked > 0 or grown.outside > 0)
        beside = left_out and would_tell(door, problem, len(pairs.cliques))
        told = beside or (later > 0 and triples_would_tell(door, problem))
        scan = _scan(door, problem, pairs, distances) if later else None
        if not told and scan is None:
            return _measured(door, problem, pairs, grown, door.remaining)[0]
        if beside:
            bound = min(bound, max(TREE_CELLS, 2 * sum(problem.domain.sizes.values())))
            grown = _grown(problem, pairs, distances, trade, bound)
        parities = None if scan is None else scan.asked(door)
        start = problem.start.model
        if not told and parities and not grown.chosen.size and not parities.exclusive_ors(start, start):
            return _measured(door, problem, pairs, grown, door.remaining)[0]
        kept = min(problem.structure * LATER, door.remaining / 4) if told else 0
        allowance = (door.remaining - kept) * tree_share(grown.inside, grown.outside)
        selection, costs = _measured(door, problem, pairs, grown, allowance)
        prior = selection.prior * problem.start.model.total
        answers = denoised_answers(selection.held, posteriors(selection.held, problem.start.model))
        fit = problem.refit(answers, problem.start, ROUGH, prior_rows=prior)
        weights = dict(zip(pairs.cliques, pairs.weights.tolist(), strict=True))
        if parities is not None and not told:
            return with_exclusive_ors(door, problem, selection, costs, fit, weights, parities)
        return with_pairs_beside(door, problem, selection, costs, fit, weights, parities)


STRATEGY: type[Strategy] = Auto


def _trade(door: Door, problem: Problem, choosing: Fraction) -> Trade:
    power = door.measure.error_power
    budget, columns = door.remaining - choosing, problem.domain.columns
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
    merged = np.maximum(values - np.array(problem.domain.shape(columns)), 0.0)
    return Trade(
        unit, power, float(budget), np.array([known[c] for c in columns]), weights * values, weights * merged
    )


def _scan(door: Door, problem: Problem, pairs: Pairs, distances: Floats) -> Scan | None:
    """The scan that pays, of the columns whose pairs don't show that they depend strongly on another one."""
    sizes, rows = problem.domain.sizes, problem.start.model.total
    farthest = np.zeros(len(sizes))
    for ends in (pairs.first, pairs.second):
        np.maximum.at(farthest, ends, distances)
    alone = {c: size for (c, size), far in zip(sizes.items(), farthest, strict=True) if far <= SHOWN * rows}
    return scan_of(alone, problem.workload, rows, door.remaining, door.parity_error)


def _bound(trade: Trade, problem: Problem) -> int:
    """Largest number of cells of the model: as many as the noise allows, beside the cliques given before."""
    error = trade.error(trade.budget / float(MEASURED_A_COLUMN * len(problem.domain.columns)))
    worthwhile = int(CELLS_A_SIGNAL * problem.start.model.total / error)
    alone = sum(problem.domain.sizes.values())
    known = Triangulation.of(problem.domain, problem.given).cells - alone
    return min(problem.max_cells, known + max(LEAST_CELLS, 2 * alone, worthwhile))


def _distances(door: Door, problem: Problem, pairs: Pairs, choosing: Fraction) -> Floats:
    model, count = problem.start.model, len(pairs.cliques)
    if count == 0:
        return np.zeros(0)
    if not pairs.unasked:
        distances, spread = door.errors(pairs.cliques, model, choosing)
        return np.asarray(distances - CAUTION * spread)
    picked = _picked(door, problem, pairs, choosing * (1 - TOLD) / pairs.choices)
    distances, spread = door.errors([pairs.cliques[i] for i in picked], model, choosing * TOLD)
    noisy = distances - CAUTION * spread
    found = np.full(
        count, UNPICKED * min(1.0, 2 * picked.size / count) * max(float(np.quantile(noisy, 0.1)), 0.0)
    )
    found[picked] = noisy
    return found


def _picked(door: Door, problem: Problem, pairs: Pairs, price: Fraction) -> NDArray[np.intp]:
    given = pairs.given.tolist()

    def admissible(before: Sequence[int]) -> NDArray[np.bool_]:
        left = np.ones(len(pairs.cliques), dtype=bool)
        left[[*before, *given]] = False
        return left

    order = door.choose_in_turn(
        pairs.cliques,
        problem.start.model,
        price,
        pairs.choices,
        admissible,
        weights=whole_weights(np.where(pairs.wanted, pairs.weights / WANTED_COUNT, pairs.weights)),
    )
    return np.array([*given, *order], dtype=np.intp)


@dataclass(frozen=True, eq=False)
class _Grown:
    """The pairs of a tree, their shares, and gains in weighted rows: theirs, and those beyond the bound."""

    chosen: NDArray[np.intp]
    split: Split
    inside: float
    outside: float


def _grown(problem: Problem, pairs: Pairs, distances: Floats, trade: Trade, bound: int) -> _Grown:
    weighted = np.where(pairs.wanted, np.inf, pairs.weights * distances)
    sizes = np.array(problem.domain.shape(problem.domain.columns), dtype=np.float64)
    told = pairs.told(problem)
    noise = np.where(told, DENOISED, np.where(pairs.cells >= LEAST_DENOISED, DENOISED_FIRST, 1.0))
    burdens = pairs.cells * pairs.weights * noise
    price = trade.price(weighted, burdens)
    for _ in range(2):
        joining = trade.gains(JOINING * weighted, burdens, price)
        gains = trade.gains(np.where(told, JOINING, 1.0) * weighted, burdens, price)
        chosen, full = _tree(problem, pairs, joining, gains, bound)
        members = [(int(pairs.first[i]), int(pairs.second[i])) for i in chosen.tolist()]
        split = shared(trade, sizes, members, pairs.weights[chosen])
        if not full:
            break
        price = split.price
    finite = np.where(pairs.wanted, 0.0, np.maximum(gains, 0.0))
    inside = float(finite[chosen].sum())
    return _Grown(chosen, split, inside, float(finite.sum()) - inside if full else 0.0)


def _tree(
    problem: Problem, pairs: Pairs, joining: Floats, gains: Floats, bound: int
) -> tuple[NDArray[np.intp], bool]:
    order = [i for i in np.argsort(-joining, kind="stable").tolist() if joining[i] > 0]
    domain, given = problem.domain, problem.given
    chosen: list[int] = []
    others: list[int] = []
    full = False

    def afresh() -> Triangulation:
        return Triangulation.of(domain, [*given, *(pairs.cliques[i] for i in chosen)])

    place = {c: i for i, c in enumerate(domain.columns)}
    before = [[place[c] for c in clique] for clique in given]
    forest = Forest(domain.shape(domain.columns), before, afresh().cells)
    for i in order:
        a, b = int(pairs.first[i]), int(pairs.second[i])
        if not forest.disconnected(a, b):
            others.append(i)
        elif forest.cells_with(a, b) <= bound or pairs.wanted[i]:
            forest.join(a, b)
            chosen.append(i)
        else:
            full = True
    tree = afresh()
    for i in sorted((i for i in others if gains[i] > 0), key=lambda i: -gains[i]):
        if tree.cells_with(pairs.cliques[i]) <= bound or pairs.wanted[i]:
            tree = tree.with_clique(pairs.cliques[i])
            chosen.append(i)
        else:
            full = True
    while chosen and not pairs.wanted[chosen[-1]] and afresh().cells > bound:
        # Rare: a tree made anew of all pairs, as a fit makes it, may be larger than one that grew.
        chosen.pop()
    return np.array(chosen, dtype=np.intp), full


def _measured(
    door: Door, problem: Problem, pairs: Pairs, grown: _Grown, allowance: Fraction
) -> tuple[Selection, list[float]]:
    last = allowance >= door.remaining
    chosen, split = grown.chosen.tolist(), grown.split
    costs = dict(zip([pairs.cliques[i] for i in chosen], split.cliques.tolist(), strict=True))
    wanted = [pairs.cliques[i] for i in chosen if pairs.wanted[i]]
    gathered = [c for c in costs if c not in wanted]
    found, shares = with_blocks(gathered, [costs[c] for c in gathered], blocks(problem.domain, gathered))
    cliques, parts = [*wanted, *found], [*(costs[c] for c in wanted), *shares]
    least = _NOTHING * float(split.columns.sum() + sum(parts)) / (len(split.columns) + len(parts))
    again = {
        name: cost
        for name, cost in zip(problem.domain.columns, split.columns.tolist(), strict=True)
        if cost > least
    }
    given = sum(again.values())
    part = Fraction(1) if not cliques else Fraction(given / (given + sum(parts))) if again else Fraction(0)
    singles = (
        door.singles(list(again), allowance * part, [Fraction(cost) for cost in again.values()])
        if again
        else []
    )
    left = door.remaining if last else allowance * (1 - part)
    answers = door.marginals(cliques, left, [Fraction(cost) for cost in parts])
    selection = Selection(
        tuple(cliques),
        tuple(answers),
        singles=tuple(m for m in singles if m is not None),
        prior=_prior(problem.domain, cliques),
    )
    return selection, [float(left) * cost / sum(parts) for cost in parts]


def _prior(domain: Domain, cliques: Sequence[Clique]) -> float:
    raw = sum(domain.cells(c) < LEAST_DENOISED for c in cliques) / max(len(cliques), 1)
    return (LEAST_PRIOR + raw * (PRIOR - LEAST_PRIOR)) / len(domain.columns)
