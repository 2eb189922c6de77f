"""AIM: rounds, each with a clique chosen by the exponential mechanism (McKenna et al. 2022).

The score of a clique r of the workload's closure is

    w_r (||M_r(D) - M_r(p)||_1 - e n_r),    w_r = sum over marginals s of the workload of c_s |r n s|,

where p is the model so far, n_r the number of cells, and e the expected error of one cell at the
round's price. The score is the gain of measuring r. Weights and penalties are public whole numbers, so
the sensitivity of a score is that of its distance, times its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsynth.accounting.measures import Measure
from dpsynth.domain.domain import Clique
from dpsynth.plan.outline import StrategyOutline
from dpsynth.plan.questions import Door
from dpsynth.structure.candidates import most_cells
from dpsynth.structure.rounds import SHARES, Candidate, Pick, Run, in_rounds, most_rounds
from dpsynth.structure.strategy import Problem, Selection, Strategy


class Aim:
    """Rounds until the budget is spent, each with one private choice and one marginal."""

    name = "aim"
    max_cells = 2_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """The number of rounds if no price ever has to grow; mostly half of them are made.

        A single column leaves nothing to choose: it is measured once more.
        """
        del noise
        rounds = most_rounds(measure, len(sizes))
        cells = most_cells(sizes.values())
        cliques = max(rounds // 2 + len(wanted), 1)
        return StrategyOutline(max(rounds, 1), rounds, 0, cliques, cells, SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        """The wanted pairs, then one clique a round."""
        return in_rounds(door, problem, _by_exponential_mechanism)


STRATEGY: type[Strategy] = Aim


def _by_exponential_mechanism(run: Run) -> Pick:
    """The choice of a round's clique by the exponential mechanism."""

    def pick(candidates: Sequence[Candidate], price: Fraction) -> int:
        return run.door.choose(
            [c.clique for c in candidates],
            run.fit.model,
            price,
            [c.penalty for c in candidates],
            [c.weight for c in candidates],
        )

    return pick
