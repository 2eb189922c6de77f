"""Domain discovery: the searches of a release, one after another.

Numbers are whole steps of a column's last decimal, and cuts are rising whole numbers: bin i holds the steps
from cuts[i] to cuts[i + 1] - 1. So bins of one value, and ends of bins, are exact for all numbers of
decimals. A cell is significant if noise alone, in any of the cells counted at once, is as large with a small
probability only.

Invariant: every question follows from the config and earlier answers, and no search costs more than its
price. Ends are numbers of few digits that differ by at least one unit, bins cover the whole range and are at
most as many as wanted, public values are cells, and each text has exactly one prefix, whatever the answers
are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import ceil, floor, inf, nextafter, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.calibration import mean_absolute_error, noise_named
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.codec import Codec
from dpsynth.columns.column import Column, NumberSearch, PrefixSearch, ValueSearch
from dpsynth.columns.domain import Domain
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.text import TextCodec, alphabets, every_prefix, texts_of
from dpsynth.plan.plan import Plan
from dpsynth.plan.questions import Door
from dpsynth.plan.spending import PlannedSearch

Cuts = NDArray[np.int64]

LARGEST = 10**15
"""The largest step that is searched: it has as many digits as a double keeps."""

_ROUND = [digit * 10**k for k in range(17) for digit in (1, 2, 5)]
"""Widths and magnitudes, in multiples of powers of ten: finer ones would each hold less of a thin tail."""

_LEAST_VARIANCE = 1e-6
"""Smallest variance of a count, in rows squared."""


def codec_of(search: NumberSearch, cuts: Cuts) -> NumericCodec:
    """The bins between cuts; values outside count in the first and last."""
    *starts, end = cuts.tolist()
    unit = 10**search.decimals
    edges = [start / unit for start in starts]
    # The last bin is closed: half a step more if its upper edge would be its lower edge, or is no value.
    halves = 2 * end - (1 if search.integer or end - 1 == starts[-1] else 2)
    edges.append(max(halves / (2 * unit), nextafter(edges[-1], inf)))
    return NumericCodec(tuple(edges), search.decimals, search.integer, search.form)


def public_ends(search: NumberSearch) -> tuple[int, int]:
    """First and last step between public ends; ValueError if they aren't public."""
    if search.low is None or search.high is None:
        raise ValueError("the ends of the column are still to be found")
    low, high = (Decimal(repr(float(end))).scaleb(search.decimals) for end in (search.low, search.high))
    return ceil(low), max(ceil(low), floor(high))


def magnitudes() -> Cuts:
    """Cuts at 1, 2 and 5 times the powers of ten, and at zero, which has a bin of its own."""
    above = np.array([width for width in _ROUND if width <= LARGEST], dtype=np.int64)
    return np.concatenate((-above[::-1], [0], above))


def round_cuts(low: int, high: int, most: int) -> Cuts:
    """Steps strictly between two, multiples of the least width (1, 2 or 5 times 10^k) with few parts."""
    width = next(w for w in _ROUND if w * most >= high - low)
    return np.arange((low // width + 1) * width, high, width, dtype=np.int64)


def within(low: int, high: int, *cuts: Cuts) -> Cuts:
    """Union of several cuts between two steps, with the cuts before the first and after the last."""
    inner: Cuts = reduce(np.union1d, cuts, np.zeros(0, dtype=np.int64)).astype(np.int64)
    return np.concatenate(([low], inner[(inner > low) & (inner <= high)], [high + 1])).astype(np.int64)


def equal_widths(low: int, high: int, bins: int) -> Cuts:
    """Bins of one width, up to rounding to whole steps; a bin for each value if these are no more."""
    count = high - low + 1
    bins = min(bins, count)
    return np.array([low + i * count // bins for i in range(bins + 1)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NoisyHistogram:
    """Noisy rows of the bins between cuts, int64[bins + 1] in steps, with the noise's variances."""

    cuts: Cuts
    rows: NDArray[np.float64]
    variances: NDArray[np.float64]

    @classmethod
    def asked(
        cls, door: Door, column: Column, search: NumberSearch, cuts: Cuts, price: Fraction
    ) -> NoisyHistogram:
        counts, stddev = door.counts_under(column, codec_of(search, cuts), price)
        variance = max(stddev**2, _LEAST_VARIANCE)
        return cls(cuts, counts.astype(np.float64), np.full(counts.size, variance))

    @property
    def widths(self) -> NDArray[np.int64]:
        return np.diff(self.cuts)

    @property
    def mirrored(self) -> NoisyHistogram:
        return NoisyHistogram(-self.cuts[::-1], self.rows[::-1], self.variances[::-1])

    def coarsened(self, cuts: Cuts) -> NoisyHistogram:
        starts = np.searchsorted(self.cuts, cuts[:-1])
        return NoisyHistogram(
            cuts, np.add.reduceat(self.rows, starts), np.add.reduceat(self.variances, starts)
        )

    def between(self, low: int, end: int) -> NoisyHistogram:
        first, last = np.searchsorted(self.cuts, (low, end)).tolist()
        return NoisyHistogram(self.cuts[first : last + 1], self.rows[first:last], self.variances[first:last])


def averaged(answers: Sequence[NoisyHistogram]) -> NoisyHistogram:
    """The best estimate of the rows of each bin of the last answer.

    Weighted least squares on a tree (Hay, Rastogi, Miklau and Suciu 2010), by inverse variance. Upwards a
    bin's own answer is averaged with the sum of its parts; downwards the difference between the two is shared
    among the parts by their variances. Each answer is about parts of the bins of the one before.
    """
    upwards = [answers[-1]]
    for answer in reversed(answers[:-1]):
        upwards.append(_average(answer, upwards[-1].coarsened(answer.cuts)))
    return reduce(_shared, reversed(upwards))


def _average(a: NoisyHistogram, b: NoisyHistogram) -> NoisyHistogram:
    weight = b.variances / (a.variances + b.variances)
    return NoisyHistogram(a.cuts, weight * a.rows + (1 - weight) * b.rows, weight * a.variances)


def _shared(whole: NoisyHistogram, parts: NoisyHistogram) -> NoisyHistogram:
    at = np.searchsorted(whole.cuts, parts.cuts[:-1], side="right") - 1
    summed = parts.coarsened(whole.cuts)
    share = parts.variances / summed.variances[at]
    rows = parts.rows + share * (whole.rows - summed.rows)[at]
    variances = parts.variances - share**2 * (summed.variances - whole.variances)[at]
    return NoisyHistogram(parts.cuts, rows, variances)


Ends = tuple[int, int]

UNKNOWN = (0, 100)
"""The ends, in units, if no cell is significant."""

NEXT = 2
"""Largest number of cells next to the end whose rows are added and compared with their noise."""

NEXT_DEVIATIONS = 3.0
"""Standard deviations that their sum must exceed; a cell far off is one of many and must exceed more."""

FAR_OFF = 0.001
"""Probability that any empty magnitude is taken for an end, which would then be far off."""

INSIDE = 0.02
"""Probability that any empty bin of a magnitude with rows is taken for an end, which would then stay."""

BOUND_QUESTIONS = 3
"""Number of questions; the later questions are about bins between the ends found so far."""

FINER = 16, 256
"""Smallest and largest number of bins of a finer grid."""

A_BIN = 20.0
"""Rows of an average bin in standard deviations of noise, at least; otherwise the grid has fewer bins."""


def private_bounds(
    door: Door, column: Column, search: NumberSearch, price: Fraction
) -> tuple[Ends, list[NoisyHistogram]]:
    """The ends of a column's numbers, in steps, and the answers that they follow from.

    One question counts the cells of a public grid of magnitudes, the same for every column. The outermost
    cells with significantly many rows are the ends; a tail beyond, too thin for any cell of its own, shows in
    the sum of the cells next to them. Further questions count finer grids between these ends, and empty bins
    at either side are removed: otherwise numbers of a narrow range far from zero, such as years, would leave
    most bins empty. Values beyond the ends are clipped to them.
    """
    cuts, answers = magnitudes(), list[NoisyHistogram]()
    for _ in range(BOUND_QUESTIONS):
        answers.append(NoisyHistogram.asked(door, column, search, cuts, price / BOUND_QUESTIONS))
        ends = ends_by(answers, door.noise, search)
        cuts = np.union1d(cuts, round_cuts(ends[0], ends[1] + 1, _finer_ranges(answers[0])))
    return ends, answers


def _finer_ranges(counted: NoisyHistogram) -> int:
    rows = counted.rows[counted.rows > 2 * np.sqrt(counted.variances)].sum()
    return int(np.clip(rows / (A_BIN * np.sqrt(counted.variances[0])), *FINER))


def ends_by(answers: Sequence[NoisyHistogram], noise: str, search: NumberSearch) -> Ends:
    """The ends by the answers to the questions about bounds, and by later answers about finer bins.

    The end is the outermost significant bin of the next answer within the outermost significant magnitude. If
    no bin there is significant, because each holds too few rows, the end stays. The first answer is about
    magnitudes, each later one about parts of the bins of the one before.
    """
    unit: int = 10**search.decimals
    whole = int(answers[0].cuts[0]), int(answers[0].cuts[-1])
    low = high = whole
    for i, answer in enumerate(answers[:BOUND_QUESTIONS]):
        later = [finer.coarsened(answer.cuts) for finer in answers[i + 1 :]]
        counted = averaged([*answers[: i + 1], *later])
        chance = FAR_OFF if i == 0 else INSIDE
        low = _narrowed(counted, low, noise, chance)[0]
        high = _narrowed(counted, high, noise, chance)[1]
        if low == high == whole:
            return UNKNOWN[0] * unit, UNKNOWN[1] * unit
    # The end of a bin is a rounder number than the last number in it.
    end = high[1] - (high[1] - high[0] == 1)
    return low[0], max(end, low[0] + unit)


def _narrowed(counted: NoisyHistogram, bin_: Ends, noise: str, chance: float) -> tuple[Ends, Ends]:
    """The first and last significant bins in a wider bin, or twice the wider bin without any."""
    inner = counted.between(*bin_)
    found = _outermost(inner, noise, chance)
    if found is None:
        return bin_, bin_
    first, last = found
    cuts = inner.cuts.tolist()
    return (cuts[first], cuts[first + 1]), (cuts[last], cuts[last + 1])


def _outermost(counted: NoisyHistogram, noise: str, chance: float) -> tuple[int, int] | None:
    last, first = _last(counted, noise, chance), _last(counted.mirrored, noise, chance)
    return None if last is None or first is None else (counted.rows.size - 1 - first, last)


def _last(counted: NoisyHistogram, noise: str, chance: float) -> int | None:
    """Index of the last significant bin, or of the last of a few bins that are significant together."""
    least = deviations(counted.rows.size, noise, chance)
    found = np.flatnonzero(counted.rows > least * np.sqrt(counted.variances))
    if not found.size:
        return None
    last = int(found[-1])
    while True:
        beyond = slice(last + 1, last + 1 + NEXT)
        rows, variances = np.cumsum(counted.rows[beyond]), np.cumsum(counted.variances[beyond])
        more = np.flatnonzero(rows > NEXT_DEVIATIONS * np.sqrt(variances))
        if not more.size:
            return last
        last += int(more[0]) + 1


def deviations(cells: int, noise: str, chance: float) -> float:
    """Standard deviations that so many noise values stay below, except with a small probability."""
    return noise_named(noise).deviations(cells, chance)


CANDIDATES = 4096
"""Largest number of candidates of the grid of one width."""

A_MAGNITUDE = 20
"""Largest number of candidates in each magnitude."""

COARSE = 64
"""Largest number of bins of the grid of one width."""

PARTS = 20
"""Largest number of parts of a bin that is cut."""

QUESTIONS = 4
"""Largest number of questions of a tree."""

MOST_BINS = 1000
"""Largest number of bins that are counted at once."""

SPLIT = 3.0
"""A bin is cut if its rows exceed so many standard deviations of their noise."""

THIN = 2.0
"""Two neighbours are merged if their sum is below so many standard deviations of its noise."""


def quantile_cuts(door: Door, column: Column, search: NumberSearch, ends: Ends, price: Fraction) -> Cuts:
    """Cuts of at most ``search.bins`` bins of a range, as many as the power of two below that.

    The range is cut at its median, then each part at its own, and so on: each level is one question, its
    parts disjoint (Kaplan, Schnapp and Stemmer 2022). Candidates are a fine grid of one width, and
    magnitudes, cut finely too, so that a long tail doesn't put most rows between two neighbouring candidates.
    """
    low, high = ends
    coarse = magnitudes()
    finer = [round_cuts(a, b, A_MAGNITUDE) for a, b in pairwise(coarse.tolist())]
    steps = within(low, high, coarse, *finer, round_cuts(low, high + 1, CANDIDATES))
    # The first and last run include all values beyond the ends, as the first and last bin do.
    candidates = np.concatenate(([-inf], steps[1:-1] / 10.0**search.decimals, [inf]))
    levels = search.bins.bit_length() - 1
    chosen = {0, steps.size - 1}
    runs = [(0, steps.size)]
    for _ in range(levels):
        runs = [(a, b) for a, b in runs if b - a > 2]
        if not runs:
            break
        found = door.medians(column, candidates, runs, price / levels)
        parts = []
        for (start, stop), at in zip(runs, found.tolist(), strict=True):
            cut = min(max(at, start + 1), stop - 2)
            chosen.add(cut)
            parts += [(start, cut + 1), (cut, stop)]
        runs = parts
    return steps[sorted(chosen)]


def tree_cuts(
    door: Door,
    column: Column,
    search: NumberSearch,
    ends: Ends,
    bounding: Sequence[NoisyHistogram],
    price: Fraction,
) -> Cuts:
    """Cuts of at most ``search.bins`` bins; ``bounding`` are the answers that ends follow from, if any.

    Bins are narrow where there are many rows, down to single values, and wide elsewhere.

    1. A first question counts magnitudes and a coarse grid of one width, so that neither a long tail nor a
       range far from zero lies in too few cells.
    2. Cells with significantly many rows are cut into up to twenty, at round numbers, and all cells are
       counted anew; a few times, while there are cells to cut. The heaviest come first where they are many.
       Each round number at which a cell is cut is a cell of its own, because prices, incomes and estimates
       are round: so they are found before their neighbourhood is cut down to single values.
    3. All answers are averaged. Where the ends aren't public they are computed again from the average.
    4. Neighbours without rows are merged, then those whose merging moves the fewest rows the shortest way,
       until there are as few bins as wanted. A spike stays a bin of its own that way, and so does the gap
       beside it.
    """
    answers = [*bounding]
    grid = _with_steps(round_cuts(ends[0], ends[1] + 1, COARSE), ends[1] + 1)
    cuts = (
        np.union1d(bounding[-1].cuts, grid)
        if bounding
        else within(*ends, _with_steps(magnitudes(), LARGEST), grid)
    )
    left = price
    for still in range(QUESTIONS, 0, -1):
        widest = np.diff(cuts)[(cuts[:-1] >= ends[0]) & (cuts[:-1] < ends[1] + 1)].max()
        part = left / min(still, 1 + _depth(int(widest)))
        answers.append(NoisyHistogram.asked(door, column, search, cuts, part))
        left -= part
        finer = _finer(averaged(answers))
        # A bin beyond the ends may come to stand out when nothing is left to ask with.
        if finer.size == cuts.size or not left:
            break
        cuts = finer
    counted = averaged(answers)
    if bounding:
        counted = _clipped(counted, ends_by(answers, door.noise, search))
    return _merged(counted, search.bins)


def _depth(width: int) -> int:
    return 0 if width == 1 else 1 + _depth(-(-width // PARTS))


def _clipped(counted: NoisyHistogram, ends: Ends) -> NoisyHistogram:
    starts = counted.cuts[:-1]
    inside = (starts >= ends[0]) & ((starts < ends[1]) | (counted.cuts[1:] == ends[1] + 1))
    cuts = np.append(starts[inside], ends[1] + 1)
    return NoisyHistogram(cuts, counted.rows[inside], counted.variances[inside])


def _finer(counted: NoisyHistogram) -> Cuts:
    cut = (counted.widths > 1) & (counted.rows > SPLIT * np.sqrt(counted.variances))
    heaviest = np.argsort(-counted.rows, kind="stable")
    capacity = max(0, (MOST_BINS - counted.rows.size) // (2 * PARTS))
    chosen = heaviest[cut[heaviest]][:capacity].tolist()
    ends = [(int(counted.cuts[i]), int(counted.cuts[i + 1])) for i in chosen]
    inside = [_with_steps(round_cuts(low, end, PARTS), end) for low, end in ends]
    return np.unique(np.concatenate([counted.cuts, *inside]))


def _with_steps(cuts: Cuts, end: int) -> Cuts:
    """Cuts before an end, and one a step behind each, so that the round number at a cut is alone."""
    return np.union1d(cuts, cuts[cuts + 1 < end] + 1)


def _merged(counted: NoisyHistogram, bins: int) -> Cuts:
    cuts, n, v = counted.cuts, np.maximum(counted.rows, 0.0), counted.variances
    rows, width = max(n.sum(), 1.0), float(cuts[-1] - cuts[0])
    while n.size > 1:
        w = np.diff(cuts).astype(np.float64)
        wide, many, spread = w[:-1] + w[1:], n[:-1] + n[1:], v[:-1] + v[1:]
        thin = many / np.sqrt(spread)
        i = int(np.argmin(thin))
        if thin[i] > THIN:
            if n.size <= bins:
                break
            # Rows that change sides if both bins have one density, and the noise of that number.
            moved = np.abs(n[:-1] * w[1:] - n[1:] * w[:-1]) / wide
            noise = np.sqrt(v[:-1] * w[1:] ** 2 + v[1:] * w[:-1] ** 2) / wide
            i = int(np.argmin((moved + noise) * (many / rows + wide / width)))
        cuts, n, v = np.delete(cuts, i + 1), _joined(n, i), _joined(v, i)
    return cuts


def _joined(x: NDArray[np.float64], i: int) -> NDArray[np.float64]:
    found = np.delete(x, i + 1)
    found[i] += x[i + 1]
    return found


KEPT_BACK = Fraction(1, 5)
"""Part of the price for counting, if too many values are selected."""

LEAST = 4.0
"""A prefix is made longer if its rows exceed so many standard deviations of their noise."""


def private_values(
    door: Door, column: Column, search: ValueSearch, price: Fraction, delta: Fraction
) -> CategoryCodec:
    """Codec of the public values, those found in order of their texts, and one for the rest.

    Partition selection finds the values that many units have. If it finds more than the column may have, they
    are counted with a reserved part of the price, and the heaviest stay; all other values count as other.
    """
    selected = door.values_of(column, price * (1 - KEPT_BACK), delta, search.known)
    # A value with the label of the cell of other values, or of missing cells, would be mistaken for it.
    taken = {*search.known, search.other, *column.labels[len(column.codec.labels) :]}
    found = sorted({value for value in selected if value not in taken})
    capacity = max(0, search.most - len(search.known))
    if len(found) > capacity > 0:
        every = CategoryCodec((*search.known, *found), search.other)
        counts, _ = door.counts_under(column, every, price * KEPT_BACK)
        theirs = counts[len(search.known) : len(search.known) + len(found)]
        heaviest = np.argsort(-theirs.astype(np.float64), kind="stable")[:capacity]
        found = [found[i] for i in sorted(heaviest.tolist())]
    values = (*search.known, *found[:capacity])
    return CategoryCodec(values or (search.other,), search.other)


def private_prefixes(door: Door, column: Column, search: PrefixSearch, price: Fraction) -> TextCodec:
    """Codec of the prefixes; the search's limit allows all prefixes of the first length.

    All prefixes of the first length are counted. Then prefixes whose rows outweigh the noise of all their
    continuations are replaced by these, the heaviest first.
    """
    positions, levels = alphabets(search.pattern), search.levels
    first = positions[: levels[0]]
    leaves = every_prefix(first, texts_of(first))
    for still, (shorter, longer) in zip(range(len(levels) - 1, 0, -1), pairwise(levels), strict=True):
        codec, part = TextCodec(search.pattern, leaves), price / (len(levels) - 1)
        counts, stddev = door.counts_under(column, codec, part)
        ends = every_prefix(positions[shorter:longer], texts_of(positions[shorter:longer]))
        least = max(LEAST, sqrt(len(ends))) * stddev
        heavy = [
            leaves[i]
            for i in np.argsort(-counts.astype(np.float64), kind="stable").tolist()
            if counts[i] > least and len(leaves[i]) == shorter
        ]
        capacity = (search.most - len(leaves)) // max(1, len(ends) - 1)
        # Each later level keeps its part of the capacity.
        chosen = set(heavy[: -(-capacity // still)])
        if not chosen:
            break
        leaves = tuple(
            prefix for leaf in leaves for prefix in ([leaf + e for e in ends] if leaf in chosen else [leaf])
        )
    return TextCodec(search.pattern, leaves)


def contribution_bound(units: NDArray[np.int64], noise: float) -> int:
    """The bound on rows used of each person, under which a table of counts has the least expected error.

    With a bound of k, each row that is left out is missing from one cell of every table, and the noise of all
    its cells grows with k. So the error of a table, summed over its cells, is at most

        sum_j max(j - k, 0) units_j + k noise

    and the bound minimises this: it rises by one row as long as more persons have that row than it adds
    noise. The persons in the last cell of ``units``, who may have any number of rows, count the same for all
    bounds.

    Args:
        units: int64[rows], noisy numbers of persons with 1, 2, ... rows; the last number includes persons
            with more rows.
        noise: expected absolute error, in rows, of all cells of a table together, for each row of the bound.
    """
    rows = np.arange(1, len(units) + 1)
    lost = np.maximum(rows - rows[:, None], 0) @ units
    return int(rows[np.argmin(lost + noise * rows)])


def noise_per_row(plan: Plan, domain: Domain) -> float:
    """Expected absolute error of a table of one column, for each row of the bound: the mean over columns.

    Pairs lose as many rows and have more noise, but the fit of the model removes most of it: over all pairs
    about as much is left as in single columns (benchmarks/persons.py). The plan is the one under the largest
    possible bound.
    """
    (singles,) = (step for step in plan.steps if step.step == "one_way")
    errors = (
        domain.sizes[column] * mean_absolute_error(plan.noise, scale)
        for column, scale in singles.scale_of.items()
        if column in domain.sizes
    )
    return fmean(errors) / plan.neighbours.max_rows


def discover(door: Door, columns: Sequence[Column], searches: Sequence[PlannedSearch]) -> Mapping[str, Codec]:
    """The codecs found for the columns with a search, by name; ends are searched before bins."""
    named = {column.name: column for column in columns}
    ends: dict[str, tuple[Ends, list[NoisyHistogram]]] = {}
    found: dict[str, Codec] = {}
    for planned in searches:
        column, search = named[planned.column], named[planned.column].search
        if isinstance(search, ValueSearch):
            found[column.name] = private_values(door, column, search, planned.price, planned.delta)
        elif isinstance(search, PrefixSearch):
            found[column.name] = private_prefixes(door, column, search, planned.price)
        elif isinstance(search, NumberSearch):
            if planned.find == "bounds":
                ends[column.name] = private_bounds(door, column, search, planned.price)
            if search.edges in {planned.find, "equal"}:
                found[column.name] = _bins(door, column, search, ends.get(column.name), planned.price)
    return found


def _bins(
    door: Door,
    column: Column,
    search: NumberSearch,
    ends_found: tuple[Ends, list[NoisyHistogram]] | None,
    price: Fraction,
) -> Codec:
    ends, answers = ends_found or (public_ends(search), [])
    if search.edges == "equal":
        cuts = equal_widths(*ends, search.bins)
    elif search.edges == "quantiles":
        cuts = quantile_cuts(door, column, search, ends, price)
    else:
        cuts = tree_cuts(door, column, search, ends, answers, price)
    return codec_of(search, cuts)
