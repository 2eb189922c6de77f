"""The likelihood of noisy counts under a Markov random field, and its dual.

With mu the model's counts, y the noisy ones and S their variances, the loss is
|mu - y|^2 / 2S. Models are p ~ centre x exp(-t nu), nu one number an answer. For every t,
nu minimises the smooth convex

    S nu^2 / 2 + nu y + (rows / t) log Z(centre x exp(-t nu))

where p minimises loss + (rows / t) KL(p | centre): the two problems are Fenchel duals, and
S nu = mu - y links them. The least value that nu takes on any row of the domain gives a lower bound on the
loss alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dpsynth.columns.domain import Clique
from dpsynth.model.axis_sums import Floats
from dpsynth.model.belief_propagation import BeliefPropagation
from dpsynth.model.consistency import Consistency
from dpsynth.model.factor import Array
from dpsynth.model.junction_tree import JunctionTree
from dpsynth.model.targets import Target


class Likelihood:
    """Noisy answers on one junction tree. Vectors hold one number for each answer, in the targets' order."""

    def __init__(
        self,
        tree: JunctionTree,
        targets: Sequence[Target],
        centre: Mapping[Clique, Array],
        rows: float,
        dtype: str,
    ) -> None:
        """The problem for some targets.

        Args:
            tree: a junction tree that holds every target's clique and every clique of the centre.
            targets: the targets, with cliques in the order of ``BeliefPropagation.order``.
            centre: log-potentials of the model for nu = 0, axes in that order; -inf is impossible.
            rows: sum of the counts.
            dtype: type of the tree's cells.
        """
        scopes = list(dict.fromkeys([*(t.clique for t in targets), *centre]))
        self.propagation = BeliefPropagation(tree, scopes, dtype)
        if list(self.propagation.scopes) != scopes:
            raise ValueError("axes are not in the order of BeliefPropagation.order")
        self.rows = rows
        self.targets = tuple(targets)
        self._home = [scopes.index(t.clique) for t in targets]
        self._ends = np.cumsum([t.values.size for t in targets])[:-1]
        self._consistency = Consistency(tree.domain, targets)
        self.variances = np.concatenate(
            [np.broadcast_to(t.variance, t.values.size) for t in targets] or [np.zeros(0)]
        )
        noisy = np.concatenate([t.values for t in targets] or [np.zeros(0)])
        self.values = self._consistency.project(noisy)
        self.unexplained = 0.5 * float((np.square(self.values - noisy) / self.variances).sum())
        self._dtype = dtype
        self._centre = [
            centre[s].reshape(-1) if s in centre else np.zeros(tree.domain.cells(s)) for s in scopes
        ]
        self._still = [np.zeros(c.size) for c in self._centre]
        self._cells: list[Floats] = []

    def split(self, vector: Array) -> list[Array]:
        """The parts of a vector, one for each target."""
        return np.split(vector, self._ends) if self.targets else []

    def effective(self, multipliers: Array) -> Array:
        """Multipliers without the component that has no effect on the model."""
        return self._consistency.project(multipliers * self.variances) / self.variances

    def _over_scopes(self, vector: Array, base: Sequence[Array]) -> list[Floats]:
        """Potentials: each cell of a scope has a base plus the sum of a vector over answers that count it."""
        found = list(base)
        for home, target, part in zip(self._home, self.targets, self.split(vector), strict=True):
            found[home] = found[home] + (part if target.query is None else part @ target.query)
        return [f.astype(self._dtype, copy=False) for f in found]

    def _answers(self, cells: Sequence[Floats]) -> Array:
        """Answers in rows, from the shares of the rows in the scopes' cells."""
        parts = [
            cells[home] if target.query is None else target.query @ cells[home]
            for home, target in zip(self._home, self.targets, strict=True)
        ]
        return self.rows * np.concatenate(parts).astype(np.float64) if parts else np.zeros(0)

    def model(self, tilt: Array) -> Array:
        """Answers of the model p ~ centre x exp(-tilt) in counts; calibrates it."""
        self._cells, _ = self.propagation.calibrate(self._over_scopes(-tilt, self._centre))
        return self._answers(self._cells)

    def spread(self, counts: Array) -> Array:
        """Variance of each answer's count, for rows drawn from the calibrated model."""
        squares = [
            self._cells[home] if target.query is None else np.square(target.query) @ self._cells[home]
            for home, target in zip(self._home, self.targets, strict=True)
        ]
        second = self.rows * np.concatenate(squares).astype(np.float64) if squares else np.zeros(0)
        return np.maximum(second - counts * counts / self.rows, 0.0)

    def covary(self, vector: Array) -> Array:
        """Derivative of the calibrated model's answers along a vector of log-potentials."""
        return self._answers(self.propagation.covary(self._over_scopes(vector, self._still)))

    def loss(self, counts: Array) -> float:
        """|counts - noisy counts|^2 / 2 variances."""
        return self.unexplained + 0.5 * float((np.square(counts - self.values) / self.variances).sum())

    def bound(self, multipliers: Array) -> float:
        """A lower bound on every model's loss."""
        closed = [np.where(np.isneginf(c), np.inf, 0.0) for c in self._centre]
        least = self.propagation.minimum(self._over_scopes(multipliers, closed))
        paid = 0.5 * self.variances * multipliers * multipliers + multipliers * self.values
        return self.unexplained + self.rows * least - float(paid.sum())
