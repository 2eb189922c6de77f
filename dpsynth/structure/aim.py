"""AIM: rounds in which the exponential mechanism chooses a clique (McKenna et al. 2022).

The score of a clique r of the workload's closure is

    w_r (||M_r(D) - M_r(p)||_1 - e n_r),    w_r = sum over marginals s of the workload of c_s |r n s|,

where p is the model so far, n_r the number of cells, and e the expected error of one cell at the
round's price: what measuring r would gain. Weights and penalties are public whole numbers, so a
score moves with its distance alone, times its weight.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from dpsynth.accounting.events import Measure
from dpsynth.domain.domain import Clique
from dpsynth.plan.outline import Outlined
from dpsynth.structure.candidates import most_cells
from dpsynth.structure.rounds import SHARES, Candidate, Pick, Run, in_rounds, most_rounds
from dpsynth.structure.strategy import Door, Problem, Selection, Strategy


class Aim:
    """As many rounds as the budget is worth, each with one private choice and one marginal."""

    name = "aim"
    max_cells = 2_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> Outlined:
        """Rounds as many as if every measurement taught something; mostly half of them are made."""
        del noise
        rounds = most_rounds(measure, len(sizes))
        cells = most_cells(sizes.values())
        return Outlined(rounds, rounds, 0, rounds // 2 + len(wanted), cells, SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        """The wanted pairs, then a clique a round."""
        return in_rounds(door, problem, _by_exponential_mechanism)


STRATEGY: type[Strategy] = Aim


def _by_exponential_mechanism(run: Run) -> Pick:
    def pick(candidates: Sequence[Candidate], price: Fraction) -> int:
        return run.door.choose(
            [c.clique for c in candidates],
            run.fit.model,
            price,
            [c.penalty for c in candidates],
            [c.weight for c in candidates],
        )

    return pick
