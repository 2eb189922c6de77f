"""Private bounds of a numeric column.

One question counts the cells of a public grid of magnitudes, the same for every column. The outermost cells
with significantly many rows are the ends; a tail beyond, too thin for any cell of its own, shows in the sum
of the cells next to them. Further questions count finer grids between these ends too, and empty bins at
either side are taken off: numbers of a narrow range far from zero, such as years, would leave most bins
empty otherwise. A cell is significant if noise alone, in any of all the cells counted at once, is as large
with a small probability only.

Values beyond the ends are clipped to them.

Invariant: the ends are numbers of few digits, at least one unit apart, whatever the answers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsynth.accounting.noises import noise_named
from dpsynth.discovery.cuts import NoisyHistogram, averaged, magnitudes, round_cuts
from dpsynth.domain.column import Column
from dpsynth.domain.search import NumberSearch
from dpsynth.plan.questions import Door

Ends = tuple[int, int]

UNKNOWN = (0, 100)
"""The ends, in units, where no cell is significant."""
NEXT = 2
"""Most cells next to the end whose rows are added and compared with their noise."""
NEXT_DEVIATIONS = 3.0
"""Standard deviations that these must exceed; fewer than a cell far off, which is one of many."""
FAR_OFF = 0.001
"""Chance that an empty magnitude, of all, is taken for an end: it would put the end far off."""
INSIDE = 0.02
"""Chance that an empty bin, of those in a magnitude with rows, is taken for an end: the end would stay."""
QUESTIONS = 3
"""Number of questions, the later ones about bins between the ends found so far."""
FINER = 16, 256
"""Fewest and most bins of a finer grid."""
A_BIN = 20.0
"""Standard deviations of noise in the rows of a bin, were all bins alike; else the grid has fewer bins."""


def private_bounds(
    door: Door, column: Column, search: NumberSearch, price: Fraction
) -> tuple[Ends, list[NoisyHistogram]]:
    """First and last step of a column's numbers, and the answers that they follow from.

    Args:
        door: the curator's answers.
        column: whose bounds are to be found.
        search: the column's search.
        price: of all questions together.
    """
    cuts, answers = magnitudes(), list[NoisyHistogram]()
    for _ in range(QUESTIONS):
        answers.append(NoisyHistogram.asked(door, column, search, cuts, price / QUESTIONS))
        ends = ends_by(answers, door.noise, search)
        cuts = np.union1d(cuts, round_cuts(ends[0], ends[1] + 1, _finer(answers[0])))
    return ends, answers


def _finer(counted: NoisyHistogram) -> int:
    """Number of bins for which an answer shows rows enough."""
    rows = counted.rows[counted.rows > 2 * np.sqrt(counted.variances)].sum()
    return int(np.clip(rows / (A_BIN * np.sqrt(counted.variances[0])), *FINER))


def ends_by(answers: Sequence[NoisyHistogram], noise: str, search: NumberSearch) -> Ends:
    """The ends by the answers to the questions about bounds, and by later answers about finer bins.

    In the outermost significant magnitude, the outermost significant bin of the next answer is taken. Where
    it has none, because each bin holds too few rows, the end stays.

    Args:
        answers: each about parts of the bins of the one before, the first about magnitudes.
        noise: "gaussian" or "laplace".
        search: the column's search.
    """
    unit: int = 10**search.decimals
    whole = int(answers[0].cuts[0]), int(answers[0].cuts[-1])
    low = high = whole
    for i, answer in enumerate(answers[:QUESTIONS]):
        later = [finer.coarsened(answer.cuts) for finer in answers[i + 1 :]]
        counted = averaged([*answers[: i + 1], *later])
        chance = FAR_OFF if i == 0 else INSIDE
        low = _narrowed(counted, low, noise, chance)[0]
        high = _narrowed(counted, high, noise, chance)[1]
        if low == high == whole:
            return UNKNOWN[0] * unit, UNKNOWN[1] * unit
    # The end of a bin is a rounder number than the last one in it.
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
    """Indices of the first and last significant bins; None where there are none."""
    last, first = _last(counted, noise, chance), _last(counted.mirrored, noise, chance)
    return None if last is None or first is None else (counted.rows.size - 1 - first, last)


def _last(counted: NoisyHistogram, noise: str, chance: float) -> int | None:
    """Index of the last significant bin, or of the last of some next to it that are significant together."""
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
    """Standard deviations that all of a number of noises stay below, but for a small chance.

    Args:
        cells: number of counts compared with it.
        noise: "gaussian" or "laplace".
        chance: that one or more of them is above.
    """
    return noise_named(noise).deviations(cells, chance)
