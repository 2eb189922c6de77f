"""AIM: rounds, each with a clique chosen by the exponential mechanism (McKenna et al. 2022).

The score of a clique r of the workload's closure is

    w_r (||M_r(D) - M_r(p)||_1 - e n_r),    w_r = sum over marginals s of the workload of c_s |r n s|,

where p is the model so far, n_r the number of cells, and e the expected error of one cell at the round's
price. The score is the gain of measuring r. Weights and penalties are public whole numbers, so the
sensitivity of a score is that of its distance, times its weight.

The first rounds are cheap. If a measurement moves the model by no more than its own noise, nothing is left to
learn at that price, and the noise of the next rounds is half as large. The model may grow with the part of
the budget that is spent.

Invariant: the last round takes all of the remaining budget, and no round measures a clique with which the
fit's junction tree would have more than ``max_cells`` cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dpsynth.accounting.measures import Measure
from dpsynth.columns.domain import Clique, subsets
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Fit, Triangulation
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import Shares, StrategyOutline
from dpsynth.strategy.allocation import penalty, whole_weights
from dpsynth.strategy.candidates import most_cells
from dpsynth.strategy.strategy import Problem, Selection, Strategy
from dpsynth.wings.methods.cliques import closure, fitting, overlap

_ROUNDS_A_COLUMN: Mapping[float, int] = {0.5: 4, 1.0: 1}
"""Number of rounds for each column at the first price, by the measure's error power. In pure epsilon twice
the price halves the noise, in rho it takes four times the price; so there are fewer and dearer rounds in pure
epsilon."""
MOST_CANDIDATES = 10_000
"""Largest number of candidate cliques."""
SHARES = Shares(Fraction(5, 20), Fraction(2, 20), Fraction(13, 20))
_TOLERANCE = 0.1
"""Tolerance of a round's fit. The last fit, of all answers, is made by the pipeline with a smaller one."""


def most_rounds(measure: Measure, columns: int) -> int:
    """Number of rounds if no price ever has to grow; none over a single column: nothing is to choose."""
    return _ROUNDS_A_COLUMN[measure.error_power] * columns if columns > 1 else 0


@dataclass
class Run:
    """The state of a selection between its rounds.

    Attributes:
        closure: all cliques that may be measured.
        fit: the fit of all answers so far.
    """

    door: Door
    problem: Problem
    closure: Sequence[Clique]
    fit: Fit
    cliques: list[Clique] = field(default_factory=list)
    answers: list[Measurement | None] = field(default_factory=list)

    def measure(self, cliques: Sequence[Clique], price: Fraction) -> bool:
        """Measure cliques at a price for all of them together; True if anything was answered."""
        found = self.door.marginals(cliques, price)
        self.cliques += cliques
        self.answers += found
        return any(m is not None for m in found)

    def refit(self) -> None:
        self.fit = self.problem.refit(self.answers, self.fit, _TOLERANCE)

    def tree_with(self, *cliques: Clique) -> Triangulation:
        return Triangulation.of(self.problem.domain, [*self.problem.given, *self.cliques, *cliques])

    def part_within(self, clique: Clique, bound: int) -> tuple[Clique, Triangulation]:
        """The largest part of a clique with which the tree keeps a bound, and that tree.

        ``fitting`` adds cliques to an existing tree. A fit makes a new tree, which is sometimes larger.
        """
        for part in reversed(list(subsets(clique))):
            tree = self.tree_with(part)
            if tree.cells <= bound or len(part) == 1:
                return part, tree
        raise ValueError("a clique of no columns")


class Aim:
    """Rounds until the budget is spent, each with one private choice and one marginal."""

    name = "aim"
    max_cells = 2_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """The number of rounds if no price ever has to grow; 0 for a single column."""
        rounds = most_rounds(measure, len(sizes))
        cells = most_cells(sizes.values())
        cliques = rounds // 2 + len(wanted)
        return StrategyOutline(max(rounds, 1), rounds, 0, cliques, cells, SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        return _in_rounds(door, problem)


STRATEGY: type[Strategy] = Aim


def _in_rounds(door: Door, problem: Problem) -> Selection:
    domain, total, wanted = problem.domain, door.remaining, problem.wanted
    columns = len(domain.columns)
    rounds = most_rounds(door.measure, columns)
    run = Run(door, problem, closure(problem.workload, MOST_CANDIDATES), problem.start)
    if wanted and run.measure(
        wanted, (total - problem.structure) * Fraction(len(wanted), len(wanted) + columns)
    ):
        run.refit()
    budget = door.remaining
    if not (run.closure and budget > 0):
        return Selection(tuple(run.cliques), tuple(run.answers), run.fit)
    share = problem.structure / budget

    cells = {c: domain.cells(c) for c in run.closure}
    weight = dict(zip(run.closure, whole_weights(overlap(problem.workload, run.closure)), strict=True))
    tree = run.tree_with()
    spend, last = budget / rounds, False
    while not last:
        left = door.remaining
        last = left < 2 * spend
        spend = left if last else spend
        price = spend * (1 - share)
        error = door.cell_error(price)
        bound = max(tree.cells, int(problem.max_cells * (1 - (left - spend) / total)))
        # A distance is at most the rows on both sides; cliques that can't earn their noise are left out.
        earning = [c for c in run.closure if error * cells[c] < 2 * run.fit.model.total]
        allowed = fitting(tree, earning, bound) or fitting(tree, run.closure, bound)
        penalties, weights = [penalty(error, cells[c]) for c in allowed], [weight[c] for c in allowed]
        chosen = door.choose(allowed, run.fit.model, spend * share, penalties, weights)
        clique, tree = run.part_within(allowed[chosen], max(tree.cells, problem.max_cells))
        guess = run.fit.model.marginal(clique)
        if not run.measure([clique], door.remaining if last else price) or last:
            continue
        run.refit()
        if np.abs(run.fit.model.marginal(clique) - guess).sum() <= error * domain.cells(clique):
            # What halves the noise.
            spend *= int(2 ** (1 / door.measure.error_power))
    return Selection(tuple(run.cliques), tuple(run.answers), run.fit)
