"""Noisy marginals that overlap, by least squares: one target a clique, made to agree with the others.

Each marginal is split into orthogonal residuals, one for each subset of its columns (total, main effects,
interactions), and each residual is averaged over all marginals that hold it, by precision (Xiao et al. 2023;
Mullins et al. 2024). ``Consistency`` does that to all answers of a fit, as a projection that is applied in
each of its steps. ``LeastSquares`` gives single estimates with their exact variances: in contrast to the
fitted model, they may be negative in a cell and have no bias.

Invariant: measurements of one clique count once, by their precision-weighted mean, and all estimates agree on
shared columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.domain import Clique, Domain, subsets
from dpsynth.columns.measurement import LEAST_VARIANCE, Observation
from dpsynth.model.belief_propagation import Views
from dpsynth.model.factor import Array, spread, sum_to


@dataclass(frozen=True, eq=False)
class Target:
    """The combined measurements of one clique: columns in the order of the cells' axes, and float64[cells].

    Attributes:
        variance: variance of each count; float64[cells] if they differ, as those of sums do.
    """

    clique: Clique
    values: Array
    variance: float | Array

    @property
    def alike(self) -> bool:
        return np.ndim(self.variance) == 0


def targets(measurements: Sequence[Observation], order: Mapping[str, int]) -> tuple[Target, ...]:
    """The targets of some measurements, axes by rank; public counts and totals are left out."""
    sums: dict[Clique, tuple[Array, float | Array]] = {}
    for m in measurements:
        if not m.clique or m.noise == "none":
            continue
        clique = tuple(sorted(m.clique, key=order.__getitem__))
        values = sum_to(m.values.astype(np.float64), m.clique, clique).reshape(-1)
        precision: float | Array = 1.0 / max(m.variance, LEAST_VARIANCE)
        if m.summed is not None:
            precision = 1.0 / np.maximum(sum_to(m.variances, m.clique, clique).reshape(-1), LEAST_VARIANCE)
        before, weight = sums.get(clique, (np.zeros(values.size), 0.0))
        sums[clique] = before + values * precision, weight + precision
    return tuple(
        Target(clique, weighted / precision, 1.0 / precision)
        for clique, (weighted, precision) in sums.items()
    )


def one_way_logarithms(domain: Domain, found: Sequence[Target], rows: float) -> dict[Clique, Array]:
    """Log-probabilities of each column's values, from all full marginals that hold it.

    Sums of marginals are averaged by precision, projected on the simplex, and kept above their error.
    The result is a starting point and a centre, not an estimate to publish.
    """
    guesses: dict[Clique, Array] = {}
    for column, size in domain.sizes.items():
        weighted, precision = np.zeros(size), np.zeros(size)
        for target in found:
            if column in target.clique:
                shape = domain.shape(target.clique)
                variances = np.broadcast_to(target.variance, target.values.shape).reshape(shape)
                share = 1.0 / sum_to(variances, target.clique, (column,))
                counts = target.values.reshape(shape)
                weighted += share * sum_to(counts, target.clique, (column,))
                precision += share
        if not precision.any():
            guesses[(column,)] = np.full(size, -log(size))
            continue
        floor = np.minimum(np.sqrt(1.0 / precision) / 4, 0.1 * rows / size)
        kept = np.maximum(on_simplex(weighted / precision, rows), floor)
        guesses[(column,)] = np.log(kept / kept.sum())
    return guesses


def on_simplex(values: Array, total: float) -> Array:
    """The nearest non-negative array with a given sum (Held, Wolfe and Crowder 1974)."""
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    level = over[np.nonzero(falling > over)[0][-1]]
    return np.maximum(values - level, 0.0)


class UnlikeSums:
    """Heteroscedastic answers of single columns, such as sums over groups, joined with all other answers.

    The estimate of a column's counts by all other answers has two independent parts: deviations from the
    mean, r with covariance (I - J/n) / w, and the total, r_0 with variance 1 / w_0, which all columns share.
    Answers y with variances D join them by least squares: for a given total each column's deviations have a
    closed form that is linear in it, and so has the total then.
    """

    def __init__(
        self, domain: Domain, found: Sequence[tuple[Target, slice]], kinds: Mapping[Clique, int], known: Array
    ) -> None:
        """The layout of the targets one after another.

        ``found`` has each target with its slice of all answers; ``kinds`` for each column, and for the total,
        the first index of its numbers in the estimate by other answers, if they hold it; ``known`` the
        precision of each of these numbers.
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
        """The estimate by all answers, from that by the others; positions of these counts, and the counts."""
        means, noisy = np.append(means, 0.0), answers[self._cells]
        of_none = self._deviations(self._weight * means[self._at] + self._precision * noisy)
        pulled = self._weight_of_total * means[self._total]
        pulled += float((self._even * (noisy - of_none)) @ self._precision)
        total = pulled / self._firmness
        found = of_none - total * self._per_total
        means[self._at], means[self._total] = found, total
        return means[:-1], self._cells, found + total * self._even


Positions = NDArray[np.intp]

_MANY = 1 << 13
"""Cells times subsets above which a target is summed to its largest shared subsets first, as views."""

_FEW = 4
"""Columns up to which all subsets of a target's clique count; of a larger clique, subsets of up to two."""


def _agreed(clique: Clique) -> list[Clique]:
    """The subsets of a clique on which answers are made to agree.

    Any choice is valid: the answers of a real table agree on all of them, so they are never projected away.
    """
    return list(subsets(clique, None if len(clique) <= _FEW else 2))


@dataclass(frozen=True, eq=False)
class _Source:
    """Sources of the shared sums of one target: its cells, or views of them.

    ``cells`` is their slice among all answers, ``place`` that among the sources of all targets.
    """

    cells: slice
    place: slice
    views: Views | None


class _Layout:
    def __init__(self, domain: Domain, targets: Sequence[Target]) -> None:
        holders = Counter(s for t in targets if t.alike or _unlike(t) for s in _agreed(t.clique))
        self.sources: list[_Source] = []
        self.into: list[list[Positions]] = []
        self.lower: list[list[tuple[float, Positions]]] = []
        self.kinds: dict[Clique, int] = {}
        kinds, weights, shares = [], [], []
        self.sums = self.width = self.distinct = start = 0
        for target in targets:
            end = start + target.values.size
            shared = [s for s in _agreed(target.clique) if holders[s] > 1] if target.alike else []
            if shared:
                first: dict[Clique, int] = {}
                for subset in shared:
                    count = domain.cells(subset)
                    if subset not in self.kinds:
                        self.kinds[subset] = self.distinct
                        self.distinct += count
                    first[subset] = self.sums
                    kinds.append(self.kinds[subset] + np.arange(count))
                    weights.append(np.full(count, count / target.values.size / target.variance))
                    shares.append(np.full(count, count / target.values.size))
                    self.lower.append(_residual(domain, subset, first))
                    self.sums += count
                self._add_source(domain, target, slice(start, end), shared, first)
            start = end
        self.kind = np.concatenate(kinds or [np.zeros(0, np.intp)])
        self.weight = np.concatenate(weights or [np.zeros(0)])
        self.share = np.concatenate(shares or [np.zeros(0)])

    def _add_source(
        self, domain: Domain, target: Target, cells: slice, shared: list[Clique], first: dict[Clique, int]
    ) -> None:
        arrays, views = [target.clique], None
        if target.values.size * len(shared) > _MANY:
            arrays = [s for s in shared if not any(set(s) < set(o) for o in shared)]
            axes = [tuple(target.clique.index(c) for c in a) for a in arrays]
            views = Views(domain.shape(target.clique), axes, "float64")
        begin = self.width
        left = list(shared)
        for array in arrays:
            inside = [s for s in left if set(s) <= set(array)]
            left = [s for s in left if s not in inside]
            self.into.append([first[s] + _projected(domain, array, s) for s in inside])
            self.width += domain.cells(array)
        self.sources.append(_Source(cells, slice(begin, self.width), views))


def _projected(domain: Domain, clique: Clique, subset: Clique) -> Positions:
    """Position in a subset's cells of the sum that each cell of a clique is part of."""
    numbers = np.arange(domain.cells(subset)).reshape([domain.sizes[c] if c in subset else 1 for c in clique])
    return np.broadcast_to(numbers, domain.shape(clique)).reshape(-1)


def _residual(domain: Domain, subset: Clique, first: dict[Clique, int]) -> list[tuple[float, Positions]]:
    found = []
    for lower in subsets(subset):
        sign = (-1.0) ** (len(subset) - len(lower))
        factor = sign * domain.cells(lower) / domain.cells(subset)
        found.append((factor, first[lower] + _projected(domain, subset, lower)))
    return found


def _slots(rows: Sequence[Sequence[Positions]], widths: Sequence[int], nowhere: int) -> list[Positions]:
    """One vector for each j, with the j-th positions of all arrays; ``nowhere`` if an array has no j-th."""
    most = max((len(r) for r in rows), default=0)
    return [
        np.concatenate(
            [r[j] if j < len(r) else np.full(w, nowhere) for r, w in zip(rows, widths, strict=True)]
        )
        for j in range(most)
    ]


def _unlike(target: Target) -> bool:
    return not target.alike and len(target.clique) == 1


class Consistency:
    """The projection on the nearest answers that agree where they overlap, for a fixed set of targets.

    Negative counts are allowed. It is linear, and orthogonal in the metric of the precisions. A model depends
    on noisy marginals only through it, and a solver that stays within its range has no redundant directions
    left. Counts of several columns with different variances are not changed.
    """

    def __init__(self, domain: Domain, targets: Sequence[Target]) -> None:
        layout = _Layout(domain, targets)
        self._sources = layout.sources
        self._sums, self._width, self._distinct = layout.sums, layout.width, layout.distinct
        self._kind, self._weight, self._share = layout.kind, layout.weight, layout.share
        widths = [p[0].size for p in layout.into]
        self._into = _slots(layout.into, widths, self._sums)
        sizes = [terms[0][1].size for terms in layout.lower]
        self._lower = _slots([[p for _, p in terms] for terms in layout.lower], sizes, self._sums)
        self._factors = [
            np.concatenate(
                [np.full(w, t[j][0] if j < len(t) else 0.0) for t, w in zip(layout.lower, sizes, strict=True)]
            )
            for j in range(len(self._lower))
        ]
        precision = np.bincount(self._kind, weights=self._weight, minlength=self._distinct)
        self._precision = precision.astype(np.float64)
        ends = np.cumsum([t.values.size for t in targets])
        unlike = [
            (t, slice(end - t.values.size, end)) for t, end in zip(targets, ends, strict=True) if _unlike(t)
        ]
        self._unlike = UnlikeSums(domain, unlike, layout.kinds, self._precision) if unlike else None

    def project(self, answers: Array) -> Array:
        """The nearest consistent answers, with all targets' cells in one vector."""
        if not self._sources and self._unlike is None:
            return answers
        sources = np.empty(self._width)
        for source in self._sources:
            part = answers[source.cells]
            if source.views is not None:
                part = np.concatenate(source.views.reduce(part, source.views.every))
            sources[source.place] = part
        sums = np.zeros(self._sums + 1)
        for positions in self._into:
            sums += np.bincount(positions, weights=sources, minlength=self._sums + 1)
        sums[-1] = 0.0
        own = np.zeros(self._sums)
        for factors, positions in zip(self._factors, self._lower, strict=True):
            own += factors * sums.take(positions)
        means = (
            np.bincount(self._kind, weights=self._weight * own, minlength=self._distinct) / self._precision
        )
        projected = answers.copy()
        if self._unlike is not None:
            means, cells, counts = self._unlike.join(means, answers)
            projected[cells] = counts
        sums[:-1] = self._share * (means.take(self._kind) - own)
        changes = np.zeros(self._width)
        for positions in self._into:
            changes += sums.take(positions)
        for source in self._sources:
            change = changes[source.place]
            if source.views is not None:
                ends = np.cumsum(source.views.sizes)[:-1]
                spread = np.empty(source.views.size)
                source.views.expand(np.split(change, ends), spread)
                change = spread
            projected[source.cells] += change
        return projected


def centred(values: Array, first: int = 0) -> Array:
    """Values less the mean along each axis, but for ``first`` axes: the highest interaction."""
    for axis in range(first, values.ndim):
        values = values - values.mean(axis=axis, keepdims=True)
    return values


class LeastSquares:
    """Estimates of every marginal that lies inside a measured clique."""

    def __init__(self, domain: Domain, measurements: Sequence[Observation]) -> None:
        """The residuals of marginals whose values have one variance; an exact public count has no error."""
        self._domain = domain
        sums: dict[Clique, tuple[Array, float]] = {}
        exact: dict[Clique, Array] = {}
        for m in measurements:
            summed = 1 if m.summed is None else int(m.summed.flat[0])
            if m.summed is not None and (m.summed != summed).any():
                continue
            variance = summed * m.variance
            clique = domain.canonical(m.clique)
            values = sum_to(m.values.astype(np.float64), m.clique, clique)
            for subset in subsets(clique):
                residual = centred(sum_to(values, clique, subset))
                if variance == 0:
                    exact[subset] = residual
                    continue
                weight = domain.cells(subset) / (variance * domain.cells(clique))
                before, known = sums.get(subset, (np.zeros(residual.shape), 0.0))
                sums[subset] = before + weight * residual, known + weight
        # Of each subset of columns the part that is not in smaller subsets: values that sum to 0 along every
        # axis, and v such that their covariance is v times a projection.
        self._residuals = {s: (v / w, 1.0 / w) for s, (v, w) in sums.items()}
        self._residuals |= {s: (v, 0.0) for s, v in exact.items()}

    def covers(self, clique: Clique) -> bool:
        return all(s in self._residuals for s in subsets(self._domain.canonical(clique)))

    def _share(self, subset: Clique, clique: Clique) -> float:
        return self._domain.cells(subset) / self._domain.cells(clique)

    def marginal(self, clique: Clique) -> Array:
        """Estimated counts of a covered clique, axes in the clique's order."""
        ordered = self._domain.canonical(clique)
        found = np.zeros(self._domain.shape(ordered))
        for subset in subsets(ordered):
            values = self._residuals[subset][0] * self._share(subset, ordered)
            found = found + spread(values, subset, ordered)
        return sum_to(found, ordered, clique)

    def variance(self, clique: Clique, weights: Array) -> float:
        """Variance of a weighted sum of a covered clique's cells, one weight for each."""
        ordered = self._domain.canonical(clique)
        arranged = sum_to(np.asarray(weights, dtype=np.float64), clique, ordered)
        total = 0.0
        for subset in subsets(ordered):
            part = centred(sum_to(arranged, ordered, subset)) * self._share(subset, ordered)
            total += self._residuals[subset][1] * float((part * part).sum())
        return total

    def cell_variance(self, clique: Clique) -> float:
        """Variance of each cell of a covered clique; the same for all of its cells."""
        weights = np.zeros(self._domain.shape(clique))
        weights.reshape(-1)[:1] = 1.0
        return self.variance(clique, weights)
