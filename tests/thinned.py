"""Products of parameters, thinned: the quick tests try every pair of values, the slow ones every case."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import combinations, product
from typing import Any

import pytest


def thinned(
    *axes: Sequence[Any],
    possible: Callable[..., bool] = lambda *_: True,
    by: Callable[..., Sequence[object]] = lambda *case: case,
    strength: int = 2,
) -> list[Any]:
    """The cases of a product for ``parametrize``, of which all but a covering array are ``slow``.

    Args:
        axes: the values of each parameter.
        possible: which cases there are at all; by default all of them.
        by: what it is of a case that is covered; by default its values.
        strength: how many values at a time are covered: 2 for pairs, 1 for each value once.
    """
    cases = [case for case in product(*axes) if possible(*case)]
    told = [tuple(v if isinstance(v, Hashable) else id(v) for v in by(*case)) for case in cases]
    quick, slow = covering(told, strength), pytest.mark.slow
    assert quick, "nothing would be tried"
    return [pytest.param(*case, marks=() if i in quick else slow) for i, case in enumerate(cases)]


def covering(cases: Sequence[tuple[Hashable, ...]], strength: int) -> set[int]:
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
