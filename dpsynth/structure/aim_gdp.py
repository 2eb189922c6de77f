"""AIM with Gaussian noise only: rounds that compare the noisy distances of a few best candidates.

Noisy distances replace the exponential mechanism. So the whole run is one Gaussian mechanism, and its
privacy loss is added up without conversion. The noise of k distances asked together grows with sqrt(k).
So the distances of all candidates are asked for only once, at the start. After that each distance is
predicted. If the model has moved by m since its distance was e, then it is still at least e - m away
(triangle inequality), and about that much if it moved towards the truth. A round asks anew for the
distances of the few candidates with the best predicted scores, and measures the best of these. The
scores are those of ``aim``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np

from dpsynth.accounting.measures import Measure
from dpsynth.domain.domain import Clique
from dpsynth.domain.workload import Workload
from dpsynth.model.factor import Array
from dpsynth.plan.outline import StrategyOutline
from dpsynth.plan.questions import Door
from dpsynth.structure.candidates import closure, most_cells
from dpsynth.structure.rounds import MOST_CANDIDATES, SHARES, Candidate, Run, in_rounds, most_rounds
from dpsynth.structure.strategy import Problem, Selection, Strategy

_AT_START = Fraction(1, 2)
"""The part of the structure step's budget that the distances of all candidates cost at the start."""
_FEW = 4
"""Candidates whose distances are asked for anew in a round."""
_CELLS_A_BATCH = 1 << 22


class AimGdp:
    """Rounds until the budget is spent, each with a few noisy distances and one marginal."""

    name = "aim_gdp"
    max_cells = 2_000_000

    def outline(
        self, sizes: Mapping[str, int], wanted: Sequence[Clique], measure: Measure, noise: str
    ) -> StrategyOutline:
        """The rounds of ``aim``; distances of all marginals of up to three columns, then of a few a round."""
        del noise
        rounds = most_rounds(measure, len(sizes))
        first = len(closure(Workload(tuple(sizes)), MOST_CANDIDATES)) if rounds else 0
        cells = most_cells(sizes.values())
        asked, cliques = first + _FEW * rounds, max(rounds // 2 + len(wanted), 1)
        return StrategyOutline(max(rounds, 1), 0, asked, cliques, cells, SHARES)

    def select(self, door: Door, problem: Problem) -> Selection:
        """The wanted pairs, then one clique a round."""
        return in_rounds(door, problem, _NoisyDistances)


STRATEGY: type[Strategy] = AimGdp


class _NoisyDistances:
    """Noisy distances of the candidates, each with the model's marginal that it was measured from."""

    def __init__(self, run: Run) -> None:
        """The noisy distances of all candidates that can earn their noise, from the first model."""
        self._run = run
        self._first = run.fit.model
        cheapest = run.door.cell_error(run.door.remaining)
        asked = [
            c
            for c in run.closure
            if run.problem.domain.cells(c) * cheapest < 2 * self._first.total
            and run.problem.domain.cells(c) <= run.problem.max_cells
        ]
        noisy, _ = run.door.errors(asked, self._first, run.problem.structure * _AT_START)
        self._distances = dict(zip(asked, noisy.tolist(), strict=True))
        self._from: dict[Clique, Array] = {}

    def __call__(self, candidates: Sequence[Candidate], price: Fraction) -> int:
        """Index of the best candidate, by the noisy distances of the few best predicted ones."""
        predicted = self._predicted([c.clique for c in candidates])
        scores = [c.weight * (predicted[c.clique] - c.penalty) for c in candidates]
        few = np.argsort(scores, kind="stable")[::-1][:_FEW].tolist()
        model = self._run.fit.model
        cliques = [candidates[i].clique for i in few]
        noisy, _ = self._run.door.errors(cliques, model, price)
        self._distances |= dict(zip(cliques, noisy.tolist(), strict=True))
        self._from |= model.marginals(cliques)
        best = max(
            zip(few, noisy.tolist(), strict=True),
            key=lambda at: candidates[at[0]].weight * (at[1] - candidates[at[0]].penalty),
        )
        return best[0]

    def _predicted(self, cliques: Sequence[Clique]) -> dict[Clique, float]:
        """Predicted distances of the present model, in rows."""
        found: dict[Clique, float] = {}
        for batch in self._run.problem.domain.batches(cliques, _CELLS_A_BATCH):
            now = self._run.fit.model.marginals(batch)
            then = self._first.marginals([c for c in batch if c not in self._from]) | self._from
            for c in batch:
                moved = float(np.abs(now[c] - then[c]).sum())
                found[c] = max(self._distances.get(c, 0) - moved, 0.0)
        return found
