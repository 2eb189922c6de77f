"""Private bounds of a numeric column.

One question counts the cells of a public grid of magnitudes, the same for every column. The outermost cells
with significantly many rows are the ends; a tail beyond, too thin for any cell of its own, shows in the sum
of the cells next to them. Further questions count finer grids between these ends, and empty bins at
either side are removed: otherwise numbers of a narrow range far from zero, such as years, would leave most
bins empty. A cell is significant if noise alone, in any of the cells counted at once, is as large with a
small probability only.

Values beyond the ends are clipped to them.

Invariant: the ends are numbers of few digits, and differ by at least one unit, whatever the answers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsynth.accounting.noises import noise_named
from dpsynth.columns.column import Column
from dpsynth.columns.search import NumberSearch
from dpsynth.plan.questions import Door
from dpsynth.strategy.discovery.cuts import NoisyHistogram, averaged, magnitudes, round_cuts

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
QUESTIONS = 3
"""Number of questions; the later questions are about bins between the ends found so far."""
FINER = 16, 256
"""Smallest and largest number of bins of a finer grid."""
A_BIN = 20.0
"""Rows of an average bin in standard deviations of noise, at least; otherwise the grid has fewer bins."""


def private_bounds(
    door: Door, column: Column, search: NumberSearch, price: Fraction
) -> tuple[Ends, list[NoisyHistogram]]:
    """The ends of a column's numbers, in steps, and the answers that they follow from.

    Args:
        door: the curator's answers.
        column: the column whose bounds are to be found.
        search: the column's search.
        price: the price of all questions together.
    """
    cuts, answers = magnitudes(), list[NoisyHistogram]()
    for _ in range(QUESTIONS):
        answers.append(NoisyHistogram.asked(door, column, search, cuts, price / QUESTIONS))
        ends = ends_by(answers, door.noise, search)
        cuts = np.union1d(cuts, round_cuts(ends[0], ends[1] + 1, _finer(answers[0])))
    return ends, answers


def _finer(counted: NoisyHistogram) -> int:
    """Number of bins for which an answer shows enough rows."""
    rows = counted.rows[counted.rows > 2 * np.sqrt(counted.variances)].sum()
    return int(np.clip(rows / (A_BIN * np.sqrt(counted.variances[0])), *FINER))


def ends_by(answers: Sequence[NoisyHistogram], noise: str, search: NumberSearch) -> Ends:
    """The ends by the answers to the questions about bounds, and by later answers about finer bins.

    The end is the outermost significant bin of the next answer within the outermost significant magnitude.
    If no bin there is significant, because each holds too few rows, the end stays.

    Args:
        answers: the first about magnitudes, each later one about parts of the bins of the one before.
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
    """Indices of the first and last significant bins; None if there is none."""
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
    """Standard deviations that a number of noise values stay below, except with a small probability.

    Args:
        cells: number of counts that are compared.
        noise: "gaussian" or "laplace".
        chance: the probability that one or more is above.
    """
    return noise_named(noise).deviations(cells, chance)
