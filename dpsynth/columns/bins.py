"""Bins of numbers: their edges, declared or by default, and the density of the values inside each.

Edges that nobody declared are of one width, or grow by a constant factor away from zero. Amounts of money,
counts and sizes differ by factors, so bins of one width between 0 and a large number would put nearly all of
them into the first. The density inside a bin continues the trend from bin to bin, as wide bins hold more
small values than large ones, or the other way round.

Invariant: edges follow from the declaration alone, by exact arithmetic, and are numbers of few digits, so
that they don't depend on a machine's rounding. Densities follow from noisy answers, and a value stays in its
bin whatever they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import ceil, log10

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.declaration import MAX_DOMAIN_SIZE
from dpsynth.columns.section import Checked, JsonSchema, Number, Whole, refused

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


"""Steps from a bin's end after which the density hardly changes within a step."""


_FLATTEST = 1e-6


_NARROWEST = 1e-3


"""Width, relative to the distance from zero, below which a bin is uniform: powers hardly differ there."""


def slopes(low: StepNumbers, high: StepNumbers, counts: Numbers, least: float) -> Numbers:
    """The exponent of each bin's density, float64[bins]; 0 is uniform.

    The density is linear on logarithmic axes: a straight line through those of neighbours, so a power of the
    value, x^slope. In a bin with two neighbours it is the harmonic mean of the slopes to both, 0 if they
    differ in sign (the limiter of Fritsch and Butland 1984: it follows a fall, and no single peak); at the
    far end, the slope to the one neighbour; at the end near zero, see ``_towards_zero``. A bin on both sides
    of zero is uniform. Bins of one value have no density and are left out. Outer bins with nothing but noise
    have the steepest density, towards the other bins.

    Args:
        low: first step of each bin, rising; a step is the last decimal of the column.
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


WIDE = 500


"""Bins grow from this ratio of the largest size to the smallest on; sizes below 1 count as 1."""


FEWEST_GROWING = 3


FEWEST_ON_BOTH_SIDES = 5


_PART = 100_000


"""Start of the growth: one unit, or this part of the largest size if that is more."""


def grows(low: float, high: float) -> bool:
    """True if bins between two ends grow unless something else is declared.

    >>> grows(0, 100), grows(0, 2_500_000), grows(1900, 2100), grows(-1000, 50)
    (False, True, False, True)
    """
    nearest = 0 if low < 0 < high else min(abs(low), abs(high))
    return max(abs(low), abs(high)) >= WIDE * max(nearest, 1)


def growing_starts(low: int, high: int, bins: int) -> list[int]:
    """Starts of bins that grow away from zero; fewer than asked for where there are few units.

    Zero and both ends have bins of their own: zero because many amounts are zero, the ends because all values
    beyond them count as the ends. Starts are in units of a column's last decimal; the last one is the largest
    value, alone in its bin.

    >>> growing_starts(0, 1000, 8)
    [0, 1, 3, 10, 32, 100, 320, 1000]
    >>> growing_starts(-100, 1000, 9)
    [-100, -99, -9, 0, 1, 6, 32, 180, 1000]

    Args:
        bins: number of bins, at least 3; at least 5 with zero between the ends.
    """
    if high - low < bins:
        return list(range(low, high + 1))
    if high <= 0:
        return _mirrored(growing_starts(-high, -low, bins))
    if low >= 0:
        return [low, *_inner(low + 1, high, bins - 2), high]
    sizes = log10(high + 1), log10(1 - low)
    above = min(max(2, round((bins - 1) * sizes[0] / sum(sizes))), bins - 3)
    below = growing_starts(0, -low, bins - above)
    return [*_mirrored(below), *growing_starts(0, high, above + 1)[1:]]


def _inner(first: int, end: int, bins: int) -> list[int]:
    starts, aim = [first], float(max(first, end // _PART))
    if aim > first and bins > 1:
        starts.append(round(aim))
    more = bins - len(starts)
    # Enough digits to distinguish tenths of a bin.
    digits = max(1, ceil(1 - log10(max((end / aim) ** (1 / (more + 1)) - 1, 1e-15))))
    for left in range(more, 0, -1):
        aim = max(aim * (end / aim) ** (1 / (left + 1)), starts[-1] + 1)
        starts.append(max(round(float(f"{aim:.{digits}e}")), starts[-1] + 1))
    return [start for start in starts if start < end]


def _mirrored(starts: list[int]) -> list[int]:
    return [-starts[-1], *(1 - start for start in reversed(starts[1:]))]


def round_starts(low: int, high: int, bins: int) -> list[int]:
    """Starts of bins of one width at its multiples, up to a number of bins; the ends have bins of their own.

    The width is 1, 2, 2.5 or 5 times a power of ten, so that a value that many rows have begins a bin.

    >>> round_starts(0, 100, 12), round_starts(3, 9, 12)
    ([0, 1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100], [3, 4, 5, 6, 7, 8, 9])

    Args:
        bins: number of bins, at least 12.
    """
    if high - low < bins:
        return list(range(low, high + 1))
    power = 10 ** max(len(str((high - low) // bins)) - 1, 0)
    widths = (factor * power // 10 for factor in (10, 20, 25, 50, 100, 200, 500) if factor * power % 10 == 0)
    width = next(w for w in widths if (high - 1) // w - (low + 1) // w + 3 <= bins)
    return [low, low + 1, *range(((low + 1) // width + 1) * width, high, width), high]


DEFAULT_BINS = 32


BOUNDS_HELP = (
    "private: find min and max with a part of the budget. Left out: they are given, which costs nothing."
)


EDGES_HELP = (
    "equal: bins of one width. log: bins that grow away from zero, each by the same factor, for money; zero, "
    "min and max have bins of their own. "
    "With a part of the budget: quantiles, bins of about as many rows each; tree, narrow bins where many "
    "rows are, single values among them, and wide ones elsewhere. Left out: tree with bounds: private. "
    "Otherwise equal if bins is given, or if min and max differ by less than a factor of 500, and log if "
    "not; without bins, min and max have bins of their own."
)


WITHIN_HELP = (
    "Density of the values inside a bin. linear: it follows the counts of the bins beside it, on a straight "
    "line through logarithms, so that small values are more frequent where counts fall from bin to bin; it "
    "costs nothing. uniform: all values are equally frequent."
)


@dataclass(frozen=True)
class Bins(Checked):
    """A number of bins, or the rising edges of bins as a tuple.

    A last edge that is given twice makes a bin of the largest value alone.
    """

    edge: Number

    def check(self, value: object) -> int | tuple[Decimal | int, ...]:
        if not isinstance(value, list | tuple):
            number = Whole(at_least="1", at_most=str(MAX_DOMAIN_SIZE), advice="or a list of rising edges")
            return number.check(value)
        if len(value) < 2:
            raise refused("must be a number of bins, or a list of at least two rising edges")
        if len(value) > MAX_DOMAIN_SIZE + 1:
            raise refused(f"must have at most {MAX_DOMAIN_SIZE:,} bins")
        edges = tuple(self.edge.check_at(edge, i) for i, edge in enumerate(value))
        last = len(edges) - 1
        for i in range(1, len(edges)):
            alone = 1 < i == last and edges[i] == edges[i - 1]
            if edges[i] <= edges[i - 1] and not alone:
                raise refused("must be above the edge before it; edges rise", i)
        return edges

    def json_schema(self) -> JsonSchema:
        edges = {
            "type": "array",
            "items": self.edge.json_schema(),
            "minItems": 2,
            "maxItems": MAX_DOMAIN_SIZE + 1,
        }
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_DOMAIN_SIZE}, edges]}
