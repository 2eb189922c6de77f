"""The share of the rows that the contribution bound cuts off, by noisy numbers of units by their rows.

Invariant: a pure function of answers and public facts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import noise_named
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.measurement import Observation, UnitsByRows, error_of_total, estimated_total

Numbers = NDArray[np.float64]

LARGE = 0.1
"""Share of the rows from which on the verdict says that they were cut off."""
_OUTSIDE, _OF_KEPT = 0.04, 0.01
"""Chance that some E_T is outside of its limits, and that the rows kept are."""
_OF_UNITS = 0.05 / 4
"""Chance that the units above the bound, or those below, are beyond one of their limits."""
_DRAWS, _SEED, _CELLS_AT_ONCE = 20_000, 1, 64
_TELLS_LITTLE = 0.5
"""Upper limit of the share from which on it isn't worth a sentence."""
_STEP = 5 / 4
"""Least ratio of two numbers of rows up to which rows are counted."""


@dataclass(frozen=True)
class Share:
    """A share with its 95 % limits."""

    estimate: float
    low: float
    high: float

    def to_json(self) -> dict[str, object]:
        return {key: round(getattr(self, key), 6) for key in ("estimate", "low", "high")}


@dataclass(frozen=True)
class Kept:
    """The rows that were kept, estimated.

    Attributes:
        noise: the noise in it; "none" if it is public.
        error: its standard error.
    """

    rows: float
    noise: str
    error: float

    @classmethod
    def of(cls, answers: Sequence[Observation]) -> Kept:
        noisy = [answer.noise for answer in answers if answer.noise != "none"]
        error = error_of_total(answers)
        return cls(estimated_total(answers), noisy[0] if error else "none", error)

    @property
    def limits(self) -> tuple[float, float]:
        wide = _deviations(self.noise, _OF_KEPT / 2) * self.error
        return max(self.rows - wide, 0.0), self.rows + wide


@dataclass(frozen=True, eq=False)
class CutOff:
    """The rows that a contribution bound cuts off.

    Let N_j be the units of range j, which have from a_j to b_j rows, and B the bound. With every unit's rows
    counted up to some T >= B, the rows that are cut off are

        E_T = sum over x of N(x) max(min(x, T) - B, 0),

    which lies between sum_j N_j l_j and sum_j N_j h_j, where l and h take the ends of each range. With T at
    the end of a range, units with more than T rows add T - B each, exactly. So each T has a lower and an
    upper limit of E_T that are linear in the noisy numbers. A factor c, the same for all T, takes them far
    enough apart that all of them hold at once in 96 of 100 releases; it follows from the noise alone, by
    simulation. With an interval of 99 % for the number K of rows that were kept, the share E_T / (E_T + K)
    has one of 95 %.

    E_T only grows with T, so a lower limit at any T is one of all rows that were cut off. An upper limit of
    these there can't be: a single person may have any number of rows. The T that is told is that of the
    largest lower limit, which the joint validity of all limits allows.

    Attributes:
        units: noisy numbers of units by their rows.
    """

    units: UnitsByRows
    near: Neighbours
    kept: Kept

    @property
    def bound(self) -> int:
        return self.near.max_rows

    @cached_property
    def units_above(self) -> Share:
        above = np.array(self.units.first) > self.bound
        one = _deviations(self.units.noise, _OF_UNITS) * self.units.stddev
        more, fewer = (float(self.units.values[chosen].sum()) for chosen in (above, ~above))
        wide, wide_of_fewer = (one * sqrt(chosen.sum()) for chosen in (above, ~above))
        low = _part(more - wide, fewer + wide_of_fewer)
        high = _part(more + wide, fewer - wide_of_fewer)
        return Share(min(max(_part(more, fewer), low), high), low, high)

    @property
    def counted_up_to(self) -> int:
        """The number T of rows of a unit up to which ``rows`` counts."""
        return int(self._tried[self._best])

    @cached_property
    def rows(self) -> Share:
        """The share of the rows that are cut off, rows of a unit above ``counted_up_to`` left out."""
        low, high = (float(limit[self._best]) for limit in self._limits)
        middle = np.sqrt(self._ends(self._tried)[0] * self._ends(self._tried)[1])[self._best]
        estimate = _part(float(self._above(middle) @ self.units.values), self.kept.rows)
        return Share(min(max(estimate, low), high), low, high)

    @property
    def large(self) -> bool:
        """True if surely some rows, and by the estimate more than a tenth of them, were cut off."""
        return self.rows.low > 0 and self.rows.estimate > LARGE

    @cached_property
    def _tried(self) -> NDArray[np.int64]:
        """The numbers T that are tried, rising: ends of ranges above the bound."""
        found: list[int] = []
        for end in (start - 1 for start in self.units.first[1:]):
            if end > self.bound and (not found or end >= _STEP * found[-1]):
                found.append(end)
        return np.array(found, dtype=np.int64)

    def _ends(self, most: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """Least and largest number of rows, float64[tried, ranges], counted up to each T."""
        first = np.array(self.units.first)
        last = np.append(first[1:] - 1, np.iinfo(np.int64).max)
        return (
            np.minimum(first, most[:, None]).astype(np.float64),
            np.minimum(last, most[:, None]).astype(np.float64),
        )

    def _above(self, rows: Numbers) -> Numbers:
        return np.asarray(np.maximum(rows - self.bound, 0.0), dtype=np.float64)

    @cached_property
    def _limits(self) -> tuple[Numbers, Numbers]:
        least, most = map(self._above, self._ends(self._tried))
        weights = np.concatenate([least, -most])
        lengths = np.sqrt(np.square(weights).sum(axis=1))
        values = self.units.values.astype(np.float64)
        factor = _factor(
            self.units.noise, self.units.scale, (weights / lengths[:, None]).tobytes(), len(values)
        )
        # Of the upper limits weights and sums are negative, so that all are limits from below.
        below = weights @ values - factor * lengths
        low, high = np.split(below * np.repeat((1, -1), len(least)), 2)
        few, many = self.kept.limits
        return _parts(low, many), _parts(high, few)

    @cached_property
    def _best(self) -> int:
        """The place of the T of the largest lower limit; of twice the bound if all of these are 0."""
        low = self._limits[0]
        if low.max() > 0:
            return int(low.argmax())
        return int(np.argmax((self._tried >= 2 * self.bound) | (self._tried == self._tried[-1])))

    @property
    def unit_name(self) -> str:
        kind = self.near.kind or "person"
        return kind if self.near.per is None else f"{kind}-{self.near.per.every}"

    @property
    def too_low(self) -> str:
        """A sentence on how much too low counts of rows are; "" if that can't be told from not at all."""
        if not self.rows.low:
            return ""
        return (
            f"Counts and sums of rows are too low: at least {percent(self.rows.low)} of the rows were cut "
            f"off, since at most {self.bound:,} of each {self.unit_name} are counted (max_rows)."
        )

    @property
    def in_words(self) -> str:
        units, rows, each = self.units_above, self.rows, self.unit_name
        head = (
            f"At most {self.bound:,} rows of each {each} are counted (max_rows), and the rest is cut off. "
            f"{percent(units.estimate)} of the {each}s had more (95 % interval: {percent(units.low)} to "
            f"{percent(units.high)})."
        )
        counted = f"Counting at most {self.counted_up_to:,} rows of each {each}, it is"
        if not rows.low:
            most = f" {counted} at most {percent(rows.high)}." if rows.high <= _TELLS_LITTLE else ""
            return f"{head} The share of the rows that this cut off can't be told from none.{most}"
        return (
            f"{head} At least {percent(rows.low)} of the rows were cut off. {counted} "
            f"{percent(rows.estimate)} (95 % interval: {percent(rows.low)} to {percent(rows.high)}); rows "
            f"beyond these come on top. Counts and sums of rows are too low by as much, and shares lean "
            f"towards {each}s with few rows."
        )

    def to_json(self) -> dict[str, object]:
        return {
            "max_rows": self.bound,
            "units_by_rows": {
                "from_rows": list(self.units.first),
                "units": self.units.values.tolist(),
                "noise": self.units.noise,
                "scale": self.units.scale,
            },
            "units_above": self.units_above.to_json(),
            "rows_cut_off": {**self.rows.to_json(), "counted_up_to": self.counted_up_to},
            "limits": "95 %",
            "in_words": self.in_words,
            "too_low": self.too_low,
        }


def percent(share: float) -> str:
    """A share in per cent, with a decimal below ten.

    >>> percent(0.0312), percent(0.681)
    ('3.1 %', '68 %')
    """
    return f"{100 * share:.1f} %" if share < LARGE else f"{100 * share:.0f} %"


def _part(some: float, others: float) -> float:
    """The share of some in both, of numbers that noise may have taken below 0."""
    some, others = max(some, 0.0), max(others, 0.0)
    return some / (some + others) if some else 0.0


def _parts(some: Numbers, others: float) -> Numbers:
    return np.array([_part(each, others) for each in some.tolist()])


def _deviations(noise: str, chance: float) -> float:
    """Standard deviations that a sum of noises stays below, but for a chance."""
    return 0.0 if noise == "none" else noise_named(noise).deviations(1, chance)


@lru_cache(maxsize=8)
def _factor(noise: str, scale: float, weights: bytes, cells: int) -> float:
    """The number that none of some weighted sums of noises exceeds, but for a chance of 4 %.

    The weights are float64[sums, cells], as bytes.
    """
    weight = np.frombuffer(weights, np.float64).reshape(-1, cells)
    # Its stream is the same in all versions of numpy, so that ``verify`` gets the same limits.
    rng = np.random.RandomState(_SEED)
    draw = rng.normal if noise == "gaussian" else rng.laplace
    sums = np.zeros((_DRAWS, len(weight)))
    for start in range(0, cells, _CELLS_AT_ONCE):
        some = weight[:, start : start + _CELLS_AT_ONCE]
        sums += np.rint(draw(0.0, scale, (_DRAWS, some.shape[1]))) @ some.T
    return float(np.quantile(sums.max(axis=1), 1 - _OUTSIDE))
