"""Bins of about as many rows each.

The range is cut at its median, then each part at its own, and so on: each level is one question, its parts
disjoint (Kaplan, Schnapp and Stemmer 2022). Candidates are a fine grid of one width, and magnitudes, cut
finely too, so that a long tail doesn't put most rows between two neighbouring candidates.

Invariant: edges are candidates, none twice; there are at most as many bins as wanted.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from math import inf

import numpy as np

from dpsynth.discovery.questions import Door
from dpsynth.discovery.steps import Cuts, magnitudes, round_cuts, within
from dpsynth.domain.column import Column
from dpsynth.domain.search import NumberSearch

CANDIDATES = 4096
"""Candidates of one distance, at most."""
A_MAGNITUDE = 20
"""Candidates in each magnitude, at most."""


def quantile_cuts(
    door: Door, column: Column, search: NumberSearch, ends: tuple[int, int], price: Fraction
) -> Cuts:
    """Cuts of at most ``search.bins`` bins of a range, as many as the power of two below that."""
    low, high = ends
    coarse = magnitudes()
    finer = [round_cuts(a, b, A_MAGNITUDE) for a, b in pairwise(coarse.tolist())]
    steps = within(low, high, coarse, *finer, round_cuts(low, high + 1, CANDIDATES))
    # The first and last run take all that lies beyond the ends too, as the first and last bin do.
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
