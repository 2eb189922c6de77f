"""Private bins of a numeric column: quantile bins, or a tree of bins that is finer where there are more rows.

Quantiles. The range is cut at its median, then each part at its own, and so on: each level is one question,
its parts disjoint (Kaplan, Schnapp and Stemmer 2022). Candidates are a fine grid of one width, and
magnitudes, cut finely too, so that a long tail doesn't put most rows between two neighbouring candidates.

Tree. Bins are narrow where there are many rows, down to single values, and wide elsewhere.
1. A first question counts magnitudes and a coarse grid of one width, so that neither a long tail nor a range
   far from zero lies in too few cells.
2. Cells with significantly many rows are cut into up to twenty, at round numbers, and all cells are
   counted anew; a few times, while there are cells to cut. The heaviest come first where they are many.
   Each round number at which a cell is cut is a cell of its own, because prices, incomes and estimates are
   round: so they are found before their neighbourhood is cut down to single values.
3. All answers are averaged. Where the ends aren't public they are computed again from the average.
4. Neighbours without rows are merged, then those whose merging moves the fewest rows the shortest way, until
   there are as few bins as wanted. A spike stays a bin of its own that way, and so does the gap beside it.

Invariant: which cells are counted follows from earlier answers; edges are candidates, none twice; the bins
cover the whole range and are at most as many as wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from dpsynth.columns.column import Column
from dpsynth.columns.search import NumberSearch
from dpsynth.plan.questions import Door
from dpsynth.strategy.discovery.bounds import Ends, ends_by
from dpsynth.strategy.discovery.cuts import (
    LARGEST,
    Cuts,
    NoisyHistogram,
    averaged,
    magnitudes,
    round_cuts,
    within,
)

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
    """Cuts of at most ``search.bins`` bins of a range, as many as the power of two below that."""
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
    earlier: Sequence[NoisyHistogram],
    price: Fraction,
) -> Cuts:
    """Cuts of at most ``search.bins`` bins.

    Args:
        door: the curator's answers.
        column: the column whose bins are to be found.
        search: the column's search.
        ends: first and last step.
        earlier: the answers that the ends follow from; none if the ends are public.
        price: the price of all questions together.
    """
    answers = [*earlier]
    grid = _with_steps(round_cuts(ends[0], ends[1] + 1, COARSE), ends[1] + 1)
    cuts = (
        np.union1d(earlier[-1].cuts, grid)
        if earlier
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
    if earlier:
        counted = _clipped(counted, ends_by(answers, door.noise, search))
    return _merged(counted, search.bins)


def _depth(width: int) -> int:
    """Number of halvings until each value of a bin is a bin."""
    return 0 if width == 1 else 1 + _depth(-(-width // PARTS))


def _clipped(counted: NoisyHistogram, ends: Ends) -> NoisyHistogram:
    """The bins that begin between two ends; rows beyond them are taken for noise."""
    starts = counted.cuts[:-1]
    inside = (starts >= ends[0]) & ((starts < ends[1]) | (counted.cuts[1:] == ends[1] + 1))
    cuts = np.append(starts[inside], ends[1] + 1)
    return NoisyHistogram(cuts, counted.rows[inside], counted.variances[inside])


def _finer(counted: NoisyHistogram) -> Cuts:
    """The cuts, and finer ones inside the heaviest bins."""
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
    """The cuts that remain when neighbours are merged."""
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
    """The array with two neighbours replaced by their sum."""
    found = np.delete(x, i + 1)
    found[i] += x[i + 1]
    return found
