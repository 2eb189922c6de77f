"""Codec of numbers: bins with declared edges, and a density of the values inside each.

Invariant: a decoded value lies in its bin, on the grid of the column's decimals, and is read
back into the same bin.

Density of the values inside a bin, estimated from the counts of the neighbouring bins.

Wide bins hold more small values than large ones, or more large values than small ones; amounts of money above
all. The density inside a bin continues the trend from bin to bin. It is linear on logarithmic axes: a
straight line through the densities of neighbours, so a power of the value, x^slope. A bin whose neighbours
both hold less, or both more, has a uniform density, and so has a bin on both sides of zero.

The rows of bins at either end in which there is nothing but noise lie near the other bins.

Bins are given as runs of whole steps, a step being the last decimal of the column.

Invariant: the counts are public ones, of noisy answers; a value stays in its bin whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from math import ceil, floor, isfinite, log10

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpsynth.columns.codec import INVALID, Codes, Intervals, Readings, clipped, drawn_between
from dpsynth.columns.expression import Kind
from dpsynth.columns.number_texts import PLAIN, NumberFormat, fixed_texts
from dpsynth.columns.sums import Steps, steps_of

Numbers = NDArray[np.float64]

StepNumbers = NDArray[np.int64]

_STEEPEST = 10.0
"""A density changes by a factor of at most e^10 within a bin."""

_NOISE = 4.0
"""Bins at an end have nothing but noise if each of them has less than so many times the least number of rows,
and k of them together less than sqrt(k) times as many."""

_FROM_ZERO = (-0.9, 5.0)
"""Least and largest slope of a bin that begins at zero; at -1 a density has no end there."""

_SMOOTH_FROM = 256
"""StepNumbers from a bin's end after which the density hardly changes within a step."""

_FLATTEST = 1e-6

_NARROWEST = 1e-3
"""Width, relative to the distance from zero, below which a bin is uniform: powers hardly differ there."""


def slopes(low: StepNumbers, high: StepNumbers, counts: Numbers, least: float) -> Numbers:
    """The exponent of each bin's density, float64[bins]; 0 is uniform.

    In a bin with two neighbours it is the harmonic mean of the slopes to both, 0 if they differ in sign (the
    limiter of Fritsch and Butland 1984: it follows a fall, and no single peak); at the far end, the slope to
    the one neighbour; at the end near zero, see ``_towards_zero``. Bins of one value have no density and are
    left out. Outer bins with nothing but noise have the steepest density, towards the other bins.

    Args:
        low: first step of each bin, rising.
        high: last step of each bin, at least ``low``.
        counts: rows of each bin, possibly noisy.
        least: lower bound on the rows of a bin, above 0; half a standard deviation of their noise.
    """
    first, end, mirrored = _distances(low, high)
    inner = _with_rows(counts, least)
    density = np.log(np.maximum(counts, least) / (end - first))
    position = np.log((first + end) / 2)
    found = np.zeros(len(low))
    wide = (low < high) & ((low >= 0) | mirrored) & (end - first > _NARROWEST * end)
    for side in (np.flatnonzero(wide & ~mirrored), np.flatnonzero(wide & mirrored)[::-1]):
        between = [(density[b] - density[a]) / (position[b] - position[a]) for a, b in pairwise(side)]
        if between:
            first_between = _towards_zero(between, position[side])
            before, after = np.array([first_between, *between]), np.array([*between, between[-1]])
            agree = before * after > 0
            found[side[agree]] = 2 / (1 / before[agree] + 1 / after[agree])
    zero = first == 0
    most = _STEEPEST / np.log(np.where(zero, np.e, end / np.where(zero, 1, first)))
    if inner.any():
        before = np.arange(len(low)) < inner.argmax()
        outer = wide & ~inner
        found[outer] = np.where(before ^ mirrored, np.inf, -np.inf)[outer]
    bounded = np.clip(found, np.where(zero, _FROM_ZERO[0], -most), np.where(zero, _FROM_ZERO[1], most))
    return np.where(np.abs(bounded) < _FLATTEST, 0.0, bounded)


def _with_rows(counts: Numbers, least: float) -> NDArray[np.bool_]:
    """All bins but those at either end in which there is nothing but noise, bool[bins]."""
    found = np.ones(len(counts), dtype=np.bool_)
    bounds = _NOISE * least * np.sqrt(np.arange(1, len(counts) + 1))
    for ordered, kept in ((counts, found), (counts[::-1], found[::-1])):
        more = (ordered > bounds[0]) | (np.cumsum(ordered) > bounds)
        kept[: more.argmax() if more.any() else len(counts)] = False
    return found


def _towards_zero(between: list[float], position: Numbers) -> float:
    """The slope on the near side of the bin nearest to zero, which has no neighbour there.

    The slopes between the next bins are continued on a straight line, no further than to uniform and no
    steeper than the first: where counts fall ever faster, as those of incomes do, they peak near the first
    bin, and its values don't crowd at its near end. A power law has one slope, which is kept.
    """
    if len(between) < 2:
        return between[0]
    middle = (position[:2] + position[1:3]) / 2
    change = (between[1] - between[0]) / (middle[1] - middle[0])
    continued = 2 * (between[0] + change * (position[0] - middle[0])) - between[0]
    return min(max(continued, 0.0), between[0]) if between[0] > 0 else max(min(continued, 0.0), between[0])


def drawn(low: StepNumbers, high: StepNumbers, slope: Numbers, rng: np.random.Generator) -> StepNumbers:
    """A step of each bin, int64[bins]: the whole part of a draw from its density; slopes are not 0."""
    first, end, mirrored = _distances(low, high)
    power, ratio = _power(first, end, slope)
    # x = end (r + u (1 - r))^(1/power) with r = (first/end)^power is the inverse of the share below x.
    inverse = end * (ratio + rng.random(len(low)) * (1 - ratio)) ** (1 / power)
    steps = np.floor(inverse).astype(np.int64)
    return np.clip(np.where(mirrored, -steps, steps), low, high)


def means(low: StepNumbers, high: StepNumbers, slope: Numbers) -> Numbers:
    """The mean of ``drawn``, to a thousandth of a bin; float64[bins], slopes not 0.

    The mean of the density less that of the parts of a step that are cut off. Those are summed
    over the steps near zero, and a half each where the density hardly changes within one.
    """
    first, end, mirrored = _distances(low, high)
    near = np.minimum(first[:, None] + np.arange(_SMOOTH_FROM + 1), end[:, None])
    shares, moments = _shares(near, first, end, slope), _moments(near, first, end, slope)
    cut = (np.diff(moments) - near[:, :-1] * np.diff(shares)).sum(axis=1) + (1 - shares[:, -1]) / 2
    whole = _moments(end[:, None], first, end, slope)[:, 0]
    return np.where(mirrored, -1.0, 1.0) * (whole - cut)


def _distances(low: StepNumbers, high: StepNumbers) -> tuple[Numbers, Numbers, NDArray[np.bool_]]:
    """Each bin as distances from zero, [first, end), and true where it lies below zero."""
    mirrored = (low < 0) & (high <= 0)
    first = np.where(mirrored, -high, np.maximum(low, 0)).astype(np.float64)
    return first, np.where(mirrored, -low, high) + 1.0, mirrored


def _power(first: Numbers, end: Numbers, slope: Numbers) -> tuple[Numbers, Numbers]:
    """One more than the slope, never quite 0, and (first/end) to it."""
    power = np.where(np.abs(slope + 1) < _FLATTEST, _FLATTEST, slope + 1)
    return power, (first / end) ** power


def _shares(at: Numbers, first: Numbers, end: Numbers, slope: Numbers) -> Numbers:
    """The part of each bin's rows below some distances, float64[bins, distances]."""
    power, ratio = _power(first, end, slope)
    return np.asarray(((at / end[:, None]) ** power[:, None] - ratio[:, None]) / (1 - ratio)[:, None])


def _moments(at: Numbers, first: Numbers, end: Numbers, slope: Numbers) -> Numbers:
    """The sum of the distances of all rows below some, over the number of rows; float64[bins, distances]."""
    power, ratio = _power(first, end, slope)
    further, beyond = _power(first, end, slope + 1)
    scale = end * power / further / (1 - ratio)
    return np.asarray(scale[:, None] * ((at / end[:, None]) ** further[:, None] - beyond[:, None]))


@dataclass(frozen=True)
class NumericCodec:
    """Bins of a numeric column: [e0, e1), [e1, e2), … , the last one closed.

    Values outside are clipped to the first and last bin. A value decodes to a draw from the
    bin's multiples of 10^-decimals, uniform or by ``slopes``; integers have decimals = 0. Values are written
    in ``form``; labels are plain.

    Attributes:
        edges: the edges e0, e1, ... above.
        decimals: decimals of the values.
        integer: true if they are whole numbers.
        form: their format.
        slopes: slopes of the density of each bin (``bin_density``); empty where all bins are uniform.

    >>> p = NumericCodec((0.0, 1.0, 2.0, 5.0), decimals=0, integer=True)
    >>> p.labels
    ('0', '1', '2 to 5')
    >>> p.encode(pa.array(["-7", "1", "4", "99", "many"])).tolist()
    [0, 1, 2, 2, -1]
    """

    edges: tuple[float, ...]
    decimals: int
    integer: bool
    form: NumberFormat = PLAIN
    slopes: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Reject edges that do not rise."""
        rising = all(a < b for a, b in pairwise(self.edges))
        if len(self.edges) < 2 or not rising or not all(map(isfinite, self.edges)):
            raise ValueError("edges must be two or more rising finite numbers")

    @cached_property
    def _grid(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First and last multiple of 10^-decimals in each bin (last >= first always)."""
        steps = [Decimal(repr(e)).scaleb(self.decimals) for e in self.edges]
        lows = [ceil(s) for s in steps[:-1]]
        highs = [ceil(s) - 1 for s in steps[1:-1]]
        highs.append(floor(steps[-1]))
        low = np.array(lows, dtype=np.int64)
        return low, np.maximum(np.array(highs, dtype=np.int64), low)

    @property
    def kind(self) -> Kind:
        """Numbers of so many decimals."""
        return Kind("number", self.decimals)

    @property
    def arrow_type(self) -> pa.DataType:
        """int64 or float64."""
        return pa.int64() if self.integer else pa.float64()

    @property
    def ordered(self) -> bool:
        """True."""
        return True

    @property
    def closed(self) -> bool:
        """False."""
        return False

    @property
    def catch_all(self) -> tuple[int, ...]:
        """The first and last bin, which take what lies beyond them."""
        return (0, len(self.edges) - 2)

    @property
    def continuous(self) -> bool:
        """True."""
        return True

    @property
    def schema(self) -> dict[str, object]:
        """Edges, decimals, and the format where it is not plain."""
        found: dict[str, object] = {"edges": list(self.edges), "decimals": self.decimals}
        return found | ({"format": self.form.facts} if self.form.facts else {})

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The value of a one-value bin, otherwise its range."""
        low, high = self._grid
        names = []
        for i in range(len(low)):
            if low[i] == high[i]:
                names.append(self._format(int(low[i])))
            elif self.integer:
                names.append(f"{low[i]} to {high[i]}")
            else:
                close = "]" if i == len(low) - 1 else ")"
                names.append(f"[{self.edges[i]:.10g}, {self.edges[i + 1]:.10g}{close}")
        return tuple(names)

    def _format(self, step: int) -> str:
        return f"{step / 10.0**self.decimals:.{self.decimals}f}"

    def with_density(self, counts: NDArray[np.float64], least: float) -> NumericCodec:
        """The same bins, with a density inside each that follows the counts of its neighbours.

        Args:
            counts: float64[bins], noisy counts of rows.
            least: lower bound on the rows of a bin, above 0.
        """
        return replace(self, slopes=tuple(slopes(*self._grid, counts, least).tolist()))

    def divided(self, pieces: NDArray[np.int64]) -> tuple[NumericCodec, Codes]:
        """Bins divided into pieces of about as many values each, uniform inside; and the bin of each piece.

        Args:
            pieces: int64[bins], the number of pieces of each; a bin of fewer values has one a value.
        """
        low, high = self._grid
        many = np.minimum(pieces, high - low + 1)
        # The last bin holds its end, which no piece can begin at.
        many[-1] = max(min(many[-1], high[-1] - low[-1]), 1)
        bins = np.repeat(np.arange(len(low)), many)
        number = np.arange(len(bins)) - np.repeat(np.cumsum(many) - many, many)
        steps = low[bins] + number * (high - low + 1)[bins] // many[bins]
        edges = np.where(number == 0, np.array(self.edges[:-1])[bins], steps / 10.0**self.decimals)
        return replace(self, edges=(*edges.tolist(), self.edges[-1]), slopes=()), bins

    @cached_property
    def _sloping(self) -> NDArray[np.intp]:
        """The bins whose density is not uniform."""
        return np.flatnonzero(self.slopes)

    @cached_property
    def centres(self) -> NDArray[np.float64]:
        """Mean of the values that a bin decodes to."""
        low, high = self._grid
        steps, at = np.asarray((low + high) / 2.0), self._sloping
        steps[at] = means(low[at], high[at], np.array(self.slopes)[at])
        return np.asarray(steps / 10.0**self.decimals)

    @property
    def half_widths(self) -> NDArray[np.float64]:
        """Largest distance of a bin's values from its centre; 0 for one-value bins."""
        low, high = self._grid
        ends = (low, high) if self.integer else (np.array(self.edges[:-1]), np.array(self.edges[1:]))
        wide = np.maximum(ends[1] - self.centres, self.centres - ends[0])
        return np.where(low == high, 0.0, wide)

    @property
    def cell_values(self) -> Intervals:
        """From the lowest to the highest value that each bin decodes to."""
        low, high = (steps / 10.0**self.decimals for steps in self._grid)
        return Intervals(low, high)

    @cached_property
    def steps(self) -> Steps:
        """Multiples of 10^-decimals, or of a larger power of ten where there would be too many."""
        return steps_of(self.form, self.decimals, *self._grid, cut=self.integer)

    def encode(self, texts: pa.StringArray) -> Codes:
        """Bin of each number; clipped to the first and last."""
        return self.codes_of(self.form.read(texts))

    def parsed(self, texts: pa.StringArray) -> pa.Array:
        """Numbers as doubles."""
        numbers = self.form.read(texts)
        return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))

    def readings(self, texts: pa.StringArray) -> Readings:
        """Readings of numbers by the first and the last edge."""
        return clipped(self.form.read(texts), self.edges[0], self.edges[-1])

    def codes_of(self, numbers: NDArray[np.float64]) -> Codes:
        """Bin of each number, INVALID for NaN."""
        bins = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), INVALID, bins).astype(np.int64)

    def decode(self, codes: Codes, rng: np.random.Generator) -> pa.Array:
        """A draw from the grid of each bin."""
        low, high = self._grid
        steps = drawn_between(low, high, codes, rng)
        if self._sloping.size:
            slope = np.array(self.slopes)[codes]
            at = np.flatnonzero(slope)
            steps[at] = drawn(low[codes[at]], high[codes[at]], slope[at], rng)
        return pa.array(steps if self.integer else steps / 10.0**self.decimals, self.arrow_type)

    def text(self, values: pa.Array) -> pa.StringArray:
        """Integers without decimals, other numbers with their fixed number of them."""
        plain = pc.cast(values, pa.string()) if self.integer else fixed_texts(values, self.decimals)
        return self.form.write(plain)


def default_decimals(edges: Sequence[float]) -> int:
    """Decimals that give the narrowest bin some 1 000 values, between 0 and 6."""
    width = min(b - a for a, b in pairwise(edges))
    return int(min(6, max(0, ceil(3 - log10(width)))))
