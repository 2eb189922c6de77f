"""Consistency of one-way answers with different variances, such as sums over groups.

The estimate of a column's counts by all other answers has two independent parts: deviations from
the mean, r with covariance (I - J/n) / w, and the total, r_0 with variance 1 / w_0, which all
columns share. Answers y with variances D join them by least squares: for a given total each
column's deviations have a closed form that is linear in it, and so has the total then.

Invariant: without such answers the deviations and the total do not change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain
from dpsynth.model.factor import Array
from dpsynth.model.targets import Target


class UnlikeSums:
    """Targets of single columns with different variances, one for each such column; at least one."""

    def __init__(
        self, domain: Domain, found: Sequence[tuple[Target, slice]], kinds: Mapping[Clique, int], known: Array
    ) -> None:
        """The layout of the targets one after another.

        Args:
            domain: the columns.
            found: the targets, each with its slice of all answers.
            kinds: for each column, and for the total, the first index of its numbers in the estimate by the
                other answers; nothing for a column that none of them holds.
            known: precision of each number of that estimate.
        """
        sizes = [domain.cells(t.clique) for t, _ in found]
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._cells = np.concatenate([np.arange(place.start, place.stop) for _, place in found])
        self._column = np.repeat(np.arange(len(found)), sizes)
        self._even = 1.0 / np.repeat(sizes, sizes)
        # Beyond the end stands a number of no precision, for what no other answer says.
        nothing = known.size
        self._at: NDArray[np.intp] = np.concatenate(
            [
                kinds[t.clique] + np.arange(n) if t.clique in kinds else np.full(n, nothing)
                for (t, _), n in zip(found, sizes, strict=True)
            ]
        )
        self._total = kinds.get((), nothing)
        known = np.append(known, 0.0)
        self._weight, self._weight_of_total = known[self._at], float(known[self._total])
        self._precision = np.concatenate([1.0 / np.broadcast_to(t.variance, t.values.size) for t, _ in found])
        self._both = self._weight + self._precision
        self._per_total = self._deviations(self._even * self._precision)
        self._firmness = self._weight_of_total + float(
            (self._even * (self._even - self._per_total)) @ self._precision
        )

    def _deviations(self, pull: Array) -> Array:
        """Minimum of both |x|^2 / 2 - pull x over x that sum to 0 in each column."""
        over = np.add.reduceat(pull / self._both, self._starts)
        level = over / np.add.reduceat(1.0 / self._both, self._starts)
        return np.asarray((pull - level[self._column]) / self._both)

    def join(self, means: Array, answers: Array) -> tuple[Array, NDArray[np.intp], Array]:
        """Deviations and total by all answers.

        Args:
            means: the estimate by the other answers.
            answers: the answers of all targets.

        Returns:
            The estimate by all answers, the positions of these targets' counts, and these counts.
        """
        means, noisy = np.append(means, 0.0), answers[self._cells]
        of_none = self._deviations(self._weight * means[self._at] + self._precision * noisy)
        pulled = self._weight_of_total * means[self._total]
        pulled += float((self._even * (noisy - of_none)) @ self._precision)
        total = pulled / self._firmness
        found = of_none - total * self._per_total
        means[self._at], means[self._total] = found, total
        return means[:-1], self._cells, found + total * self._even
