"""Products of parameters, thinned: the quick tests try every pair of values, the slow ones every case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

import pytest


def thinned(
    *axes: Sequence[object], possible: Callable[..., bool] = lambda *_: True, strength: int = 2
) -> list[Any]:
    """The cases of a product for ``parametrize``, of which all but a covering array are ``slow``.

    Args:
        axes: the values of each parameter.
        possible: which cases there are at all; by default all of them.
        strength: how many values at a time are covered: 2 for pairs, 1 for each value once.
    """
    cases = [case for case in product(*axes) if possible(*case)]
    places = [tuple(axis.index(v) for axis, v in zip(axes, case, strict=True)) for case in cases]
    quick, slow = covering(places, min(strength, len(axes))), pytest.mark.slow
    return [pytest.param(*c, marks=() if i in quick else slow) for i, c in enumerate(cases)]


def covering(cases: Sequence[tuple[int, ...]], strength: int) -> set[int]:
    """Positions of cases that hold between them all that any case holds of so many values at a time.

    Greedy: the case that covers most of what is open comes next, the first one among equals.
    """
    parts = [
        {(axes, tuple(case[i] for i in axes)) for axes in combinations(range(len(case)), strength)}
        for case in cases
    ]
    missing = set().union(*parts)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(parts)), key=lambda i: len(parts[i] & missing))
        chosen.add(best)
        missing -= parts[best]
    return chosen
