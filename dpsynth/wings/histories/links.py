"""The questions about a column and the row before it, and what is known of their answers.

A column of few values, for the noise, is counted together with its value in the row before, and one of more
values by groups. Most rows of a column of numbers are nearer to the row before than groups are wide, so its
steps are counted instead: the near ones by their distance, the far ones by the group that they lead to, each
for some parts of the values that they come from. Columns of long histories are counted together with the
first row of their unit too, over parts of their values.

Invariant: which question is asked follows from public facts and noisy answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.special import ndtri

from dpsynth.columns.domain import Compression, beside_first, row_before, step_of
from dpsynth.columns.measurement import Measurement, Observation, UnitsByRows, pooled_counts
from dpsynth.config import CompiledSpec
from dpsynth.model import Expansion
from dpsynth.model.denoising import denoised, outside, smoothed
from dpsynth.model.factor import Array
from dpsynth.model.raking import raked_counts
from dpsynth.pipeline.measuring import Answers, History, Stage, answered
from dpsynth.pipeline.weighing import RowsDoor
from dpsynth.statistics.cut_off import Kept

_STEADY = 10.0
"""Errors of a cell that the rows of a value are, at least, where rows before are counted by values."""
_NEAR = (0.125, 0.25, 0.5, 1.0)
"""The farthest of each kind of near steps, in widths of a usual group."""
_PARTS, _KINDS = 3, 16
"""Parts of the values that steps come from, at least; kinds of steps, about, for which more parts are had."""
_OF_FIRSTS = Fraction(1, 8)
"""The part of the price for rows beside their unit's first row."""
_EVEN = 0.05
_SURE = 2.0
_RELEASES = 1000.0
"""Releases of which noise alone makes units of a number of rows, far beyond all others, in one."""
_LEAST = 1e-6
_CORRELATIONS, _FLOOR = (0.6, 0.9, 0.98), 1e-3
"""Correlations of the normal copulas that steps are a mixture of; the least weight of independent rows."""
_SAME = 1
"""The place in that mixture of rows that stay where they are."""
_ROUNDS = 30
"""Rounds of raking."""


@dataclass(frozen=True, eq=False)
class StepKinds:
    """Kinds of steps of a column, by the part of the value that they come from.

    Attributes:
        near: the farthest of each kind of near steps up, and down, in places; a step of 0 is a kind too.
        numbers: number of the column's first codes, which are numbers in order.
        groups: int64[codes], where far steps lead to; no number shares a group with another code.
        parts: int64[codes + 1], where steps come from; the last is no row, which has a part of its own.
    """

    near: tuple[int, ...]
    numbers: int
    groups: NDArray[np.integer]
    parts: NDArray[np.integer]

    @classmethod
    def of(cls, groups: NDArray[np.integer], numbers: int, rows: Array, parts: int) -> StepKinds:
        """The kinds of steps of a column by the width of its groups; each of the parts has as many rows.

        Args:
            rows: float64[codes], estimates of the rows of each; of 0 rows it widens no group.
        """
        code = np.arange(len(groups))
        whose = np.unique(np.stack([code >= numbers, groups]), axis=1, return_inverse=True)[1].reshape(-1)
        weights = np.maximum(rows, _LEAST)[:numbers]
        widths = np.bincount(whose[:numbers], rows[:numbers] > 0)
        width = float(weights @ widths[whose[:numbers]] / weights.sum())
        near = sorted({max(round(width * part), 1) for part in _NEAR})
        middle = (np.cumsum(weights) - weights / 2) / weights.sum()
        part = np.append(np.minimum((middle * parts).astype(np.int64), parts - 1), np.full(len(code), parts))
        part = np.unique(part[: len(code)], return_inverse=True)[1]
        return cls(tuple(near), numbers, whose, np.append(part, part.max() + 1))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of kinds, and of parts."""
        return 1 + 2 * len(self.near) + int(self.groups.max()) + 1, int(self.parts.max()) + 1

    @cached_property
    def kinds(self) -> NDArray[np.int64]:
        """The kind of each step, int64[codes, codes + 1], by the code, and that of the row before."""
        code, before = np.indices((len(self.groups), len(self.parts)))
        far = 1 + 2 * len(self.near) + self.groups[code]
        step = np.where((code < self.numbers) & (before < self.numbers), code - before, self.near[-1] + 1)
        how = np.searchsorted(self.near, np.abs(step))
        near = np.where(step == 0, 0, np.where(step > 0, 1 + 2 * how, 2 + 2 * how))
        return np.where(np.abs(step) <= self.near[-1], near, far).astype(np.int64)

    @property
    def cells(self) -> NDArray[np.int64]:
        """The cell of each step among kinds and parts, int64[codes, codes + 1]."""
        return self.kinds * self.shape[1] + self.parts

    @property
    def described(self) -> Mapping[str, object]:
        """The two axes of counts, as JSON values."""
        return {
            "near": list(self.near),
            "numbers": self.numbers,
            "groups": self.groups.tolist(),
            "parts": self.parts.tolist(),
        }

    def spread(self, answer: Observation, rows: Array, first: float) -> tuple[Array, float]:
        """Counts of values and of those of the row before, and the variance of a kind of step's.

        Noise is taken off towards a mixture of normal copulas that is fitted to the answer by least squares
        with weights that aren't negative, up and down apart. Within a cell, rows are spread as the mixture
        has them.

        Args:
            rows: float64[codes], the rows of each code.
            first: the share of rows that no row comes before.
        """
        shares, cells = (rows + _LEAST) / (rows + _LEAST).sum(), self.cells.reshape(-1)
        before = np.append(shares * (1 - first), first)
        even = np.outer(shares, before) * max(float(answer.values.sum()), 1.0)

        def by_cell(counts: Array) -> Array:
            return np.asarray(np.bincount(cells, counts.reshape(-1), answer.values.size), np.float64)

        held = by_cell(even)
        noisy = np.where(held > 0, answer.values.reshape(-1), 0)
        usual, numbers = even.copy(), slice(self.numbers)
        usual[numbers, numbers] = 0.0
        parts = _mixture(even[numbers, numbers])
        mixed = np.zeros((len(parts), *even.shape))
        mixed[:, numbers, numbers] = parts
        fitted = np.array([by_cell(own) for own in mixed])
        there = fitted[0] > 0
        weights = nnls(fitted[:, there].T, noisy[there].astype(np.float64))[0]
        weights[0] = max(weights[0], _FLOOR)
        found = usual + np.tensordot(weights, mixed, 1)
        likely = by_cell(found)
        wanted, sums = (own.reshape(self.shape).sum(axis=0) for own in (held, likely))
        prior = likely.reshape(self.shape) * np.divide(wanted, sums, where=sums > 0, out=np.zeros(len(sums)))
        posterior = denoised(noisy.reshape(self.shape), answer.variance, prior)
        mean = np.where(held > 0, posterior.mean.reshape(-1), 0.0)
        each = np.divide(mean, likely, where=likely > 0, out=np.zeros(likely.size))
        return found * each[self.cells], posterior.variance


def _mixture(even: Array) -> list[Array]:
    """Counts of steps of as many rows: independent ones, none, and those up and down by normal copulas.

    Args:
        even: float64[numbers, numbers], counts of independent rows.
    """
    sums = even.sum(axis=1)
    shares = sums / sums.sum()
    scores = ndtri(np.cumsum(shares) - shares / 2)
    product, squares = np.outer(scores, scores), np.add.outer(scores**2, scores**2)
    found = [even, np.diag(sums)]
    for r in _CORRELATIONS:
        density = np.exp((2 * r * product - r * r * squares) / (2 * (1 - r * r)))
        copula = raked_counts(even * density, {(1,): sums[:, None], (0,): sums[None, :]}, _ROUNDS)
        found += [np.triu(copula), np.tril(copula, -1)]
    return found


def staying(steps: Array, variance: float, *, rising: bool) -> Array:
    """The moves of rows that stay in the cell of the row before, float64[cells], as ``UnitRows`` has them.

    Rows of a rising column go through a cell as fast as they leave it, and through the last one as fast as on
    the whole. Of another column, rows that stay in a cell beyond those of normal copulas keep their value.
    Where noise explains what rows that stay and independent ones don't, there are no copulas.

    Args:
        steps: float64[cells, cells], estimates of rows by their cell and that of the row before.
        variance: of the counts that these rest on.
    """
    if rising:
        higher, all_steps = np.tril(steps, -1).sum(axis=0), steps.sum(axis=0) + _LEAST
        return np.append((higher / all_steps)[:-1], higher.sum() / all_steps[:-1].sum())
    shares = (steps.sum(axis=0) + steps.sum(axis=1) + _LEAST) / 2
    parts = np.array(_mixture(np.outer(shares, shares / shares.sum())))
    lines, counts = parts.reshape(len(parts), -1).T, steps.reshape(-1).astype(np.float64)
    few, all_parts = (nnls(lines[:, :n], counts)[0] for n in (_SAME + 1, len(parts)))
    off = ((lines[:, : _SAME + 1] @ few - counts) ** 2 - (lines @ all_parts - counts) ** 2).sum()
    weights = all_parts if off > _SURE**2 * variance else np.append(few, np.zeros(len(parts) - len(few)))
    held = weights[:, None] * np.diagonal(parts, axis1=1, axis2=2)
    return np.asarray(held[_SAME] / (held.sum(axis=0) + _LEAST), np.float64)


@dataclass(frozen=True, eq=False)
class FirstRows:
    """Counts of rows by their part of a column's values and that of their unit's first row.

    Attributes:
        part: int64[codes], the part of each code.
        answer: over [parts, parts + 1]; the last column is for rows that are no further than one row from the
            first.
    """

    part: NDArray[np.integer]
    answer: Measurement


@dataclass(frozen=True, eq=False)
class Linked(History):
    """Answers about rows that follow each other, with the columns that steps were counted of."""

    steps: Mapping[str, StepKinds] = field(default_factory=dict)
    firsts: Mapping[str, FirstRows] = field(default_factory=dict)


def parts_of(groups: NDArray[np.integer], numbers: int, rows: Array, most: int) -> NDArray[np.int64]:
    """The part of each code: groups of numbers in runs of about as many rows, each other group by itself.

    Args:
        groups: int64[codes], the group of each code.
        numbers: number of the first codes that are numbers in order; the others have groups of their own.
        rows: float64[codes], estimates of the rows of each.
        most: number of parts of numbers, at most.
    """
    held = np.bincount(groups[:numbers], np.maximum(rows[:numbers], _LEAST), int(groups.max()) + 1)
    middle = (np.cumsum(held) - held / 2) / max(float(held.sum()), _LEAST)
    run = np.minimum((middle * most).astype(np.int64), most - 1)
    part = np.where(np.arange(len(groups)) < numbers, run[groups], most + groups)
    return np.unique(part, return_inverse=True)[1].reshape(-1)


def ask(
    compiled: CompiledSpec, stage: Stage, answers: Answers, door: RowsDoor, expansion: Expansion
) -> Linked:
    """Each column that changes together with that of the row before: over values, by steps, or over groups.

    Those that may fall are asked together with the first row of the unit too, by parts of their values.
    """
    columns, lasting = compiled.linked, compiled.lasting
    whole = stage.plan.budget * stage.plan.shares.history
    of_firsts = whole * (_OF_FIRSTS if lasting else 0)
    price = whole - of_firsts
    most = answers.rows / (_STEADY * door.cell_error(price / len(columns)))
    domain, groups = expansion.domain, expansion.compression.groups
    coarse = Compression({c: own for c, own in groups.items() if domain.sizes[c] > most})
    counts = {c: _rows(*own) for (c, *more), own in pooled_counts(expansion.singles).items() if not more}
    steps = {
        c: StepKinds.of(own, expansion.numbers[c], counts[c], max(_PARTS, int(most) // _KINDS))
        for c, own in coarse.groups.items()
        if c in columns and expansion.numbers.get(c) and c in counts
    }
    parts: dict[str, NDArray[np.int64]] = {}
    for c in lasting:
        many = max(2, int((_EVEN * answers.rows / door.cell_error(of_firsts / len(lasting))) ** (2 / 3)))
        own, numbers = coarse.groups.get(c, np.arange(domain.sizes[c])), expansion.numbers.get(c, 0)
        parts[c] = parts_of(own, numbers, counts.get(c, np.ones(domain.sizes[c])), many)
    sizes = coarse.coarse(domain).sizes
    beside = {c: part[:, None] * (part.max() + 2) + np.r_[part, part.max() + 1] for c, part in parts.items()}
    twin = door.with_rows_before({c: of.cells for c, of in steps.items()}, beside)
    linked = twin.grouped(coarse.with_rows_before)
    pairs = [(step_of(c),) if c in steps else (c, row_before(c)) for c in columns]
    found = answered(linked.marginals(pairs, price, [Fraction(sizes[c]) for c in columns]))
    links = [
        replace(m, clique=(c, row_before(c)), values=m.values.reshape(steps[c].shape)) if c in steps else m
        for c, m in zip(columns, found, strict=True)
    ]
    firsts: dict[str, FirstRows] = {}
    far = linked.marginals([(beside_first(c),) for c in lasting], of_firsts) if lasting else []
    for c, m in zip(lasting, answered(far), strict=True):
        shape = int(parts[c].max()) + 1, -1
        firsts[c] = FirstRows(
            parts[c], replace(m, clique=(c, beside_first(c)), values=m.values.reshape(shape))
        )
    axes = {links[columns.index(c)].clique: of.described for c, of in steps.items()}
    axes |= {of.answer.clique: {"parts": of.part.tolist()} for of in firsts.values()}
    assert answers.units is not None
    lengths, rows = by_rows(answers.units, stage.plan.neighbours.max_rows, Kept.of(answers.own))
    return Linked((*links, *(of.answer for of in firsts.values())), lengths, rows, axes, steps, firsts)


def _rows(counts: Array, variance: float) -> Array:
    """Smoothed counts of values in order, 0 beyond those that have any rows."""
    smooth = smoothed(counts, variance)
    return np.where(outside(smooth, variance), 0.0, smooth)


def by_rows(units: UnitsByRows, most: int, counted: Kept) -> tuple[Array, float]:
    """The numbers of units with 1, 2, ... rows, float64[most], and the number of rows.

    A count of rows has the noise of all rows that a unit may have. Where the units that are no noise have as
    many rows as were counted, up to noise, there are no others, and they tell the rows too.

    Args:
        most: the largest number of rows of a unit that are counted.
        counted: the rows that were counted.
    """
    own, beyond = np.split(units.values.astype(np.float64), [most])
    variances = np.full(most, units.variance)
    if beyond.sum() > _SURE * units.stddev * sqrt(beyond.size):
        own[-1] += beyond.sum()
        variances[-1] *= 1 + beyond.size
    smooth, each = smoothed(own, units.variance), np.arange(1.0, most + 1)
    there = ~outside(smooth, units.variance, _RELEASES)
    rows, variance = float(own[there] @ each[there]), float(variances[there] @ each[there] ** 2)
    both = variance + counted.error**2
    if not there.any() or counted.rows - rows > _SURE * sqrt(both):
        return smooth, counted.rows
    return np.where(there, smooth, 0.0), (rows * counted.error**2 + counted.rows * variance) / both
