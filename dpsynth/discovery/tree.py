"""Narrow bins where there are many rows, down to single values, and wide ones elsewhere.

1. A first question counts magnitudes and a coarse grid of one width, so that neither a long tail nor a range
   far from zero lies in too few cells.
2. Cells that stand out of their noise are cut into up to twenty, at round numbers, and all cells are
   counted anew; a few times, while there are cells to cut. The heaviest come first where they are many.
3. All answers are averaged. Where the ends aren't public they are worked out again from that.
4. Neighbours without rows are merged, then those whose merging moves the fewest rows the shortest way, until
   there are as few bins as wanted. A spike stays a bin of its own that way, and so does the gap beside it.

Invariant: which cells are counted follows from earlier answers; the bins cover the whole range.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpsynth.discovery.bounds import Ends, ends_by
from dpsynth.discovery.counted import Counted, averaged
from dpsynth.discovery.questions import Door
from dpsynth.discovery.steps import Cuts, magnitudes, round_cuts, within
from dpsynth.domain.column import Column
from dpsynth.domain.search import NumberSearch

COARSE = 64
"""Bins of the grid of one width, at most."""
PARTS = 20
"""Into how many a bin is cut."""
QUESTIONS = 4
"""How often bins are counted, at most."""
MOST_BINS = 1000
"""How many bins are counted at once, at most."""
SPLIT = 2.0
"""Standard deviations of its noise that the rows of a bin exceed if it is cut."""
THIN = 1.0
"""Standard deviations of their noise that two neighbours have at least together, or else they are merged."""


def tree_cuts(
    door: Door, column: Column, search: NumberSearch, ends: Ends, known: Sequence[Counted], price: Fraction
) -> Cuts:
    """Cuts of at most ``search.bins`` bins.

    Args:
        door: the curator's answers.
        column: whose bins are sought.
        search: what is sought.
        ends: first and last step.
        known: the answers that the ends follow from; none where they are public.
        price: of all questions together.
    """
    answers = [*known]
    grid = round_cuts(ends[0], ends[1] + 1, COARSE)
    cuts = np.union1d(known[-1].cuts, grid) if known else within(*ends, magnitudes(), grid)
    left = price
    for still in range(QUESTIONS, 0, -1):
        widest = np.diff(cuts)[(cuts[:-1] >= ends[0]) & (cuts[:-1] < ends[1] + 1)].max()
        part = left / min(still, 1 + _depth(int(widest)))
        answers.append(Counted.asked(door, column, search, cuts, part))
        left -= part
        finer = _finer(averaged(answers))
        # A bin beyond the ends may come to stand out when nothing is left to ask with.
        if finer.size == cuts.size or not left:
            break
        cuts = finer
    counted = averaged(answers)
    if known:
        counted = _clipped(counted, ends_by(answers, door.noise, search))
    return _merged(counted, search.bins)


def _depth(width: int) -> int:
    """How many times a bin is to be cut until each of its values is a bin."""
    return 0 if width == 1 else 1 + _depth(-(-width // PARTS))


def _clipped(counted: Counted, ends: Ends) -> Counted:
    """The bins that begin between two ends; what is beyond is taken for noise."""
    starts = counted.cuts[:-1]
    inside = (starts >= ends[0]) & ((starts < ends[1]) | (counted.cuts[1:] == ends[1] + 1))
    cuts = np.append(starts[inside], ends[1] + 1)
    return Counted(cuts, counted.rows[inside], counted.variances[inside])


def _finer(counted: Counted) -> Cuts:
    """Cuts with those inside the heaviest bins."""
    told = (counted.widths > 1) & (counted.rows > SPLIT * np.sqrt(counted.variances))
    heaviest = np.argsort(-counted.rows, kind="stable")
    room = max(0, (MOST_BINS - counted.rows.size) // PARTS)
    chosen = heaviest[told[heaviest]][:room].tolist()
    inside = [round_cuts(int(counted.cuts[i]), int(counted.cuts[i + 1]), PARTS) for i in chosen]
    return np.unique(np.concatenate([counted.cuts, *inside]))


def _merged(counted: Counted, bins: int) -> Cuts:
    """Cuts that are left of those when neighbours are merged."""
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
            # Rows that change sides if both have one density, and the noise of that.
            moved = np.abs(n[:-1] * w[1:] - n[1:] * w[:-1]) / wide
            noise = np.sqrt(v[:-1] * w[1:] ** 2 + v[1:] * w[:-1] ** 2) / wide
            i = int(np.argmin((moved + noise) * (many / rows + wide / width)))
        cuts, n, v = np.delete(cuts, i + 1), _joined(n, i), _joined(v, i)
    return cuts


def _joined(x: NDArray[np.float64], i: int) -> NDArray[np.float64]:
    """With the sum of two neighbours in their place."""
    found = np.delete(x, i + 1)
    found[i] += x[i + 1]
    return found
