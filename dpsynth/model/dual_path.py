"""The path of smooth dual problems along which a model is fitted; see ``estimation``.

Every point of the path is the least value of a smooth convex function, the dual of
``likelihood``. Truncated Newton steps find it: conjugate gradients on covariances under the
model (Nocedal and Wright 2006, chapter 7). The next point is extrapolated from the last two.

Invariant: the model behind ``likelihood.propagation`` is the one of ``multipliers`` and ``path``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log2

import numpy as np

from dpsynth.model.factor import Array
from dpsynth.model.likelihood import Likelihood

_GROWTH = 2.0
_LEAST_GROWTH = 1.02
_SLACK = 0.25
"""The share to which conjugate gradients reduce the residual of a Newton system."""
_MOST_GRADIENTS = 60
_ENOUGH = 1e-9
"""Distance from the least objective, in nats, below which nothing is improved."""
_MOST_STEPS = 20
"""Newton steps for one t; where they do not suffice, the next t is nearer."""


class DualPath:
    """Newton's method on the dual at one t after another."""

    def __init__(self, likelihood: Likelihood, limit: int, progress: Callable[[int], None]) -> None:
        """A problem, without a point on its path yet.

        Args:
            likelihood: the problem.
            limit: upper bound on Newton steps.
            progress: called with the number of steps taken.
        """
        self._likelihood = likelihood
        self._limit = limit
        self._progress = progress
        self.taken = 0
        self.at_centre = inf

    @property
    def exhausted(self) -> bool:
        """True if no step is left."""
        return self.taken >= self._limit

    def start_at_centre(self, path: float) -> None:
        """Start at the centre, the model before any answer, for t = ``path``."""
        self.start(path, np.zeros_like(self._likelihood.values))
        self.at_centre = self.loss

    def start(self, path: float, multipliers: Array) -> None:
        """Start at some multipliers, for t = ``path``."""
        self.path = path
        self._move(multipliers)

    def _move(self, multipliers: Array) -> None:
        likelihood = self._likelihood
        self.multipliers = multipliers
        self.counts = likelihood.model(self.path * multipliers)
        self.slope = likelihood.variances * multipliers + likelihood.values - self.counts

    @property
    def loss(self) -> float:
        """The weighted squared error."""
        return self._likelihood.loss(self.counts)

    @property
    def distance(self) -> float:
        """Distance of the penalised loss from its least value: the gap of Fenchel and Young."""
        return 0.5 * float((self.slope * self.slope / self._likelihood.variances).sum())

    def solve(self, end: float, tolerance: float) -> None:
        """Solve for one t after another, to the end of the path or as far as that pays.

        Args:
            end: largest t.
            tolerance: the path ends where doubling t lowers the loss by less than this share of it,
                and of its fall since the centre.
        """
        share, growth = max(0.1 * tolerance, 1e-13), _GROWTH
        solved: list[tuple[float, Array, float]] = []
        while not self.exhausted:
            if self._converge(share):
                solved.append((self.path, self.multipliers, self.loss))
                gain = solved[-2][2] - self.loss if len(solved) > 1 else inf
                # With much noise the loss hardly moves; then its fall so far is the scale.
                scale = min(self.loss, self.at_centre - self.loss)
                if self.path >= end or gain <= max(tolerance * scale * log2(growth), _ENOUGH):
                    return
                growth = min(growth**1.5, _GROWTH)
            elif growth > _LEAST_GROWTH:
                growth **= 0.5
            else:
                break
            if not solved:
                self.start(self.path / 4, np.zeros_like(self.multipliers))
                continue
            path, here, _ = solved[-1]
            growth = min(growth, end / path)
            ahead = here
            if len(solved) > 1:
                before, there, _ = solved[-2]
                # Multipliers move with 1/t.
                ahead = here + (here - there) * (1 - 1 / growth) / (path / before - 1)
            self.start(path * growth, ahead)
        if solved and solved[-1][2] < self.loss:
            self.start(*solved[-1][:2])

    def _converge(self, share: float) -> bool:
        """Newton steps until the distance is below a share of the loss; True if that was reached."""
        for _ in range(_MOST_STEPS):
            if self.distance <= max(share * self.loss, _ENOUGH):
                return True
            if self.exhausted or not self._step():
                return False
            self.taken += 1
            self._progress(self.taken)
        return self.distance <= max(share * self.loss, _ENOUGH)

    def _step(self) -> bool:
        """One damped Newton step; False where rounding leaves none.

        The dual is convex, so its slope along the direction shows a decrease more exactly
        than its value does. The length of the step is right when the slope at its end is at most
        half as steep, upwards, as the slope at its start was, downwards.
        """
        start = self.multipliers
        direction = self._newton()
        fall = float(self.slope @ direction)
        length = 1.0
        while fall < 0 and length > 1e-9:
            self._move(start + length * direction)
            rise = float(self.slope @ direction)
            if rise <= -0.5 * fall:
                return True
            length *= min(0.5, max(0.1, fall / (fall - rise)))
        self._move(start)
        return False

    def _newton(self) -> Array:
        """The Newton direction by conjugate gradients, preconditioned by the diagonal."""
        likelihood = self._likelihood
        diagonal = likelihood.variances + self.path * likelihood.spread(self.counts)
        found = np.zeros_like(self.slope)
        residual = -self.slope
        scaled = likelihood.effective(residual / diagonal)
        towards = scaled.copy()
        length = first = float(residual @ scaled)
        for _ in range(_MOST_GRADIENTS if first > 0 else 0):
            image = likelihood.variances * towards + self.path * likelihood.covary(towards)
            share = length / float(towards @ image)
            found += share * towards
            residual -= share * image
            scaled = likelihood.effective(residual / diagonal)
            before, length = length, float(residual @ scaled)
            if length <= _SLACK**2 * first:
                break
            towards = scaled + (length / before) * towards
        return found
