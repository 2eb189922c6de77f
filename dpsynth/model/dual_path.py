"""The path of smooth problems along which a model is fitted; see ``estimation``.

Every point of the path is the least value of a smooth convex function, the dual of
``likelihood``, found by truncated Newton steps: conjugate gradients on covariances under the
model (Nocedal and Wright 2006, chapter 7). The next point is guessed from the last two.

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
"""How far conjugate gradients reduce a Newton system's residual."""
_MOST_GRADIENTS = 60
_ENOUGH = 1e-9
"""An objective this close to the least, in nats, is not improved."""
_MOST_STEPS = 20
"""Newton steps for one t; where they don't do, the path is followed in smaller strides."""


class DualPath:
    """Newton's method on the dual at one t after another."""

    def __init__(self, likelihood: Likelihood, limit: int, progress: Callable[[int], None]) -> None:
        """Take up a problem, at no point yet.

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
        """Whether no step is left."""
        return self.taken >= self._limit

    def begin_at_centre(self, path: float) -> None:
        """Stand where nothing was learnt from the answers yet."""
        self.begin(path, np.zeros_like(self._likelihood.values))
        self.at_centre = self.loss

    def begin(self, path: float, multipliers: Array) -> None:
        """Stand at some multipliers, for some t."""
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
        """How far the penalised loss is from its least value: the gap of Fenchel and Young."""
        return 0.5 * float((self.slope * self.slope / self._likelihood.variances).sum())

    def follow(self, end: float, tolerance: float) -> None:
        """Solve for one t after another, to the end of the path or as far as that pays.

        Args:
            end: largest t.
            tolerance: stop where doubling t lowers the loss by less than this share of it, and
                of what the loss fell since the centre.
        """
        share, growth = max(0.1 * tolerance, 1e-13), _GROWTH
        solved: list[tuple[float, Array, float]] = []
        while not self.exhausted:
            if self._solve(share):
                solved.append((self.path, self.multipliers, self.loss))
                gain = solved[-2][2] - self.loss if len(solved) > 1 else inf
                # With much noise the loss hardly moves, and what was won so far is the measure.
                scale = min(self.loss, self.at_centre - self.loss)
                if self.path >= end or gain <= max(tolerance * scale * log2(growth), _ENOUGH):
                    return
                growth = min(growth**1.5, _GROWTH)
            elif growth > _LEAST_GROWTH:
                growth **= 0.5
            else:
                break
            if not solved:
                self.begin(self.path / 4, np.zeros_like(self.multipliers))
                continue
            path, here, _ = solved[-1]
            growth = min(growth, end / path)
            ahead = here
            if len(solved) > 1:
                before, there, _ = solved[-2]
                # Multipliers move with 1/t.
                ahead = here + (here - there) * (1 - 1 / growth) / (path / before - 1)
            self.begin(path * growth, ahead)
        if solved and solved[-1][2] < self.loss:
            self.begin(*solved[-1][:2])

    def _solve(self, share: float) -> bool:
        """Newton steps until the distance is below a share of the loss; whether that was reached."""
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

        The dual is convex, so its slope along the direction tells a decrease more exactly
        than its value would: the step is long enough and short enough when the slope there
        is at most half as steep, upwards, as it was downwards.
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
