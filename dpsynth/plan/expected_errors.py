"""Errors to expect of a release, by column and by pair of columns, and the epsilon that an error needs.

Where noise has mean size e in each of c counts, it moves c e / 2 rows between them: a share c e / (2 N) of N
rows, the expected total variation distance by noise alone. A relation between two columns moves rows too,
against columns without any; if it moves fewer than noise does, it can't be told from noise. What a release
publishes is fitted to all of its answers, so it is rather better than that.

Invariant: public. The number of rows is one that the caller states or assumes; no table is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import combinations
from math import hypot, pi, sqrt

from dpsynth.accounting.calibration import mean_absolute_error, noise_variance, reach
from dpsynth.columns.bins import DEFAULT_BINS
from dpsynth.columns.column import Column
from dpsynth.columns.domain import rare_when_ordered
from dpsynth.config.compiled import CompiledSpec
from dpsynth.config.grammar import Spec
from dpsynth.errors import ConfigError
from dpsynth.plan.plan import Plan

SEEN = 2.0
"""Number of standard errors from which a count is distinguished from 0."""

WEAK, STRONG = 0.05, 0.2
"""Shares of the rows that a weak relation and a strong one move at least."""

_POWERS = range(-4, 4)
"""Powers of ten between which an epsilon is sought."""


@dataclass(frozen=True)
class CountErrors:
    """Errors of the counts of some columns.

    Attributes:
        columns: one column, or two that are measured together.
        cells: number of counts; of two columns at most, as values with few rows are merged.
        error: expected absolute error of a count, in rows.
        smallest: the smallest group that is distinguished from an empty one, in rows.
        ordered: True for two columns of numbers, dates or times.
    """

    columns: tuple[str, ...]
    cells: int
    error: float
    smallest: float
    ordered: bool = False

    def moved(self, rows: int) -> float:
        """The share of so many rows that noise moves between the counts, at most 1."""
        return min(1.0, self.cells * self.error / (2 * rows))

    def correlation(self, rows: int) -> float | None:
        """The smallest correlation of two ordered columns that noise doesn't hide, at most 1; else None.

        A correlation is a mean of products of standard scores, whose squares are 1 on average: noise of one
        standard deviation in each of so many cells moves it by the square root of their number.
        """
        return min(1.0, self.smallest * sqrt(self.cells) / rows) if self.ordered else None


def column_errors(plan: Plan, columns: Sequence[Column]) -> tuple[CountErrors, ...]:
    """The errors of every column that is measured alone, in table order.

    What earlier tiers have measured is averaged in: precisions add up. Of a column of many narrow bins these
    are errors of ``DEFAULT_BINS`` groups of neighbours: noise within such a group is smoothed away.
    """
    scales: Mapping[str, float] = next((s.scale_of for s in plan.steps if s.step == "one_way"), {})
    own = tuple(
        _errors((c.name,), groups, plan, scales[c.name] * sqrt(c.size / groups))
        for c in columns
        if c.name in scales
        for groups in (min(c.size, DEFAULT_BINS) if c.drawn_inside else c.size,)
    )
    if plan.before is None:
        return own
    before = {errors.columns: errors for errors in column_errors(plan.before, columns)}
    return tuple(
        replace(
            errors,
            error=_averaged(errors.error, before[errors.columns].error),
            smallest=_averaged(errors.smallest, before[errors.columns].smallest),
        )
        for errors in own
    )


def _averaged(one: float, other: float) -> float:
    return 0.0 if not one or not other else 1 / hypot(1 / one, 1 / other)


def pair_errors(compiled: CompiledSpec, plan: Plan, rows: int) -> tuple[CountErrors, ...]:
    """The errors of every pair of columns, were it measured at an average share; empty if none is.

    Values that have too few rows are merged before, so a column has at most as many as can have enough;
    numbers and dates, whose neighbours are alike, are merged the more.
    """
    last = plan.last_measured
    if last.step != "marginals":
        return ()
    whole = {column for pair in plan.wanted for column in pair}
    numbers = {column.name for column in compiled.columns if column.codec.continuous}
    ordered = rare_when_ordered(rows, plan.merged_below, rows)
    sizes = {
        name: size
        if name in whole
        else _groups(size, rows, ordered if name in numbers else plan.merged_below)
        for name, size in compiled.domain.sizes.items()
    }
    return tuple(
        replace(_errors((a, b), sizes[a] * sizes[b], plan, last.scale), ordered=a in numbers and b in numbers)
        for a, b in combinations(sizes, 2)
        if compiled.public_marginals.shares((a, b)) is None
    )


def exam_within(plan: Plan, rows: int) -> float | None:
    """Half the width of the 95 % interval of a pair's measured error, at most 1; None without an exam."""
    if not plan.exam:
        return None
    return min(1.0, reach(plan.noise, plan.steps[-1].scale) / (2 * rows))


def _errors(columns: tuple[str, ...], cells: int, plan: Plan, scale: float) -> CountErrors:
    # A count of a sample is divided by its rate, and so is its noise.
    rate = 1.0 if plan.sampling is None else float(plan.sampling.rate)
    error = mean_absolute_error(plan.noise, scale) / rate
    return CountErrors(columns, cells, error, SEEN * sqrt(noise_variance(plan.noise, scale)) / rate)


def sampling_error(plan: Plan, count: float) -> float:
    """Expected absolute error of a count of so many rows by the sample of units alone, without noise."""
    if plan.sampling is None:
        return 0.0
    rate = float(plan.sampling.rate)
    return sqrt(2 / pi * (1 - rate) / rate * plan.neighbours.max_rows * count)


def _groups(size: int, rows: int, fewest: float) -> int:
    """Most values of a column that are not merged, if those with fewer rows are."""
    return size if fewest <= 0 else max(1, min(size, int(rows / fewest)))


def enough_columns(columns: tuple[CountErrors, ...], rows: int) -> int | None:
    """The number of columns that a budget would do for; None if the given columns are not too many.

    They are too many if noise moves more than ``WEAK`` of the rows in the median column. The error of a
    count grows about as the square root of the number of columns.
    """
    if not columns:
        return None
    middle = sorted(column.moved(rows) for column in columns)[len(columns) // 2]
    return None if middle <= WEAK else max(1, int(len(columns) * (WEAK / middle) ** 2))


def enough_epsilon(
    spec: Spec, rows: int, share: float, errors_of: Callable[[Spec], tuple[CountErrors, ...]]
) -> Decimal | None:
    """The least epsilon of two digits at which noise moves at most a share of the rows in every column.

    None if no epsilon below 10 000 will do.
    """

    def will_do(epsilon: Decimal) -> bool:
        privacy = spec.privacy.model_copy(update={"epsilon": epsilon})
        try:
            errors = errors_of(spec.model_copy(update={"privacy": privacy}))
        except ConfigError:
            # Nothing is left to spend.
            return False
        return all(column.moved(rows) <= share for column in errors)

    rising = [Decimal(digits).scaleb(power - 1) for power in _POWERS for digits in range(10, 100)]
    low, high = 0, len(rising)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if will_do(rising[middle]) else (middle + 1, high)
    return rising[low] if low < len(rising) else None
