"""Where a column's numbers begin and end.

One question counts the cells of a public grid of magnitudes, the same for every column. The outermost cells
whose rows stand out of the noise are the ends; a tail beyond, too thin for any cell of its own, is told
by the cells next to them together. Further questions count finer grids between these ends too, and what is
empty at either side is taken off: numbers of a narrow range far from zero, such as years, would leave
most bins empty otherwise.

Values beyond the ends are clipped to them.

Invariant: the ends are numbers of few digits, at least one unit apart, whatever the answers are.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from dpsynth.discovery.counted import Counted, averaged
from dpsynth.discovery.questions import Door
from dpsynth.discovery.significance import deviations
from dpsynth.discovery.steps import magnitudes, round_cuts
from dpsynth.domain.column import Column
from dpsynth.domain.search import NumberSearch

Ends = tuple[int, int]

UNKNOWN = (0, 100)
"""The ends, in units, where no cell stands out."""
NEXT = 2
"""How many cells next to the end are held against their noise together, at most."""
NEXT_DEVIATIONS = 3.0
"""Standard deviations that those must exceed; fewer than a cell far off, which is one of many."""
FAR_OFF = 0.001
"""Chance that an empty magnitude, of all, is taken for an end: it would put the end far off."""
INSIDE = 0.02
"""Chance that an empty bin is, of those in a magnitude with rows: the end would only stay where it was."""
QUESTIONS = 3
"""How often bins are counted, the later times between the ends found so far."""
FINER = 16, 256
"""Fewest and most bins of a finer grid."""
A_BIN = 20.0
"""Standard deviations of their noise that the rows of one have, were all alike, or else there are fewer."""


def ends_found(
    door: Door, column: Column, search: NumberSearch, price: Fraction
) -> tuple[Ends, list[Counted]]:
    """First and last step of a column's numbers, and the answers that they follow from.

    Args:
        door: the curator's answers.
        column: whose ends are sought.
        search: what is sought.
        price: of all questions together.
    """
    cuts, answers = magnitudes(), list[Counted]()
    for _ in range(QUESTIONS):
        answers.append(Counted.asked(door, column, search, cuts, price / QUESTIONS))
        ends = ends_by(answers, door.noise, search)
        cuts = np.union1d(cuts, round_cuts(ends[0], ends[1] + 1, _finer(answers[0])))
    return ends, answers


def _finer(counted: Counted) -> int:
    """How many bins an answer has rows enough for."""
    rows = counted.rows[counted.rows > 2 * np.sqrt(counted.variances)].sum()
    return int(np.clip(rows / (A_BIN * np.sqrt(counted.variances[0])), *FINER))


def ends_by(answers: Sequence[Counted], noise: str, search: NumberSearch) -> Ends:
    """The ends by the answers to the questions for them, and by later ones about finer bins.

    In the outermost magnitude that stands out, the outermost bin of the next answer is looked for. Where none
    of those does, too few rows being in each, nothing is taken off any more.

    Args:
        answers: each about parts of the bins of the one before, the first about magnitudes.
        noise: of the answers.
        search: what is sought.
    """
    unit: int = 10**search.decimals
    whole = int(answers[0].cuts[0]), int(answers[0].cuts[-1])
    low = high = whole
    for i, answer in enumerate(answers[:QUESTIONS]):
        later = [finer.gathered(answer.cuts) for finer in answers[i + 1 :]]
        counted = averaged([*answers[: i + 1], *later])
        chance = FAR_OFF if i == 0 else INSIDE
        low = _narrowed(counted, low, noise, chance)[0]
        high = _narrowed(counted, high, noise, chance)[1]
        if low == high == whole:
            return UNKNOWN[0] * unit, UNKNOWN[1] * unit
    # The end of a bin is a rounder number than the last one in it.
    end = high[1] - (high[1] - high[0] == 1)
    return low[0], max(end, low[0] + unit)


def _narrowed(counted: Counted, bin_: Ends, noise: str, chance: float) -> tuple[Ends, Ends]:
    """The first and last of the bins in a wider one that stand out, or that itself."""
    inner = counted.between(*bin_)
    found = _outermost(inner, noise, chance)
    if found is None:
        return bin_, bin_
    first, last = found
    cuts = inner.cuts.tolist()
    return (cuts[first], cuts[first + 1]), (cuts[last], cuts[last + 1])


def _outermost(counted: Counted, noise: str, chance: float) -> tuple[int, int] | None:
    """First and last of the bins that stand out; None where there are none."""
    last, first = _last(counted, noise, chance), _last(counted.mirrored, noise, chance)
    return None if last is None or first is None else (counted.rows.size - 1 - first, last)


def _last(counted: Counted, noise: str, chance: float) -> int | None:
    """The last bin that stands out, or the last of some next to it that do so together."""
    least = deviations(counted.rows.size, noise, chance)
    told = np.flatnonzero(counted.rows > least * np.sqrt(counted.variances))
    if not told.size:
        return None
    last = int(told[-1])
    while True:
        beyond = slice(last + 1, last + 1 + NEXT)
        rows, variances = np.cumsum(counted.rows[beyond]), np.cumsum(counted.variances[beyond])
        more = np.flatnonzero(rows > NEXT_DEVIATIONS * np.sqrt(variances))
        if not more.size:
            return last
        last += int(more[0]) + 1
