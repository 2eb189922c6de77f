"""Products of parameters, thinned: the quick tests try every pair of values, the slow ones every case."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest
from _pytest.mark.structures import ParameterSet


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


def some(cases: Iterable[Any], quick: int) -> list[Any]:
    """The cases of one parameter for ``parametrize``, of which all but so many, evenly spread, are ``slow``.

    Args:
        cases: values, tuples of values for several parameters, or what ``pytest.param`` made of them; those
            that are slow already stay so.
        quick: how many the quick tests try; the first that may be is among them.
    """
    params = [_param(case) for case in cases]
    others = [i for i, param in enumerate(params) if pytest.mark.slow.mark not in _marks(param)]
    assert 0 < quick <= len(others), "nothing would be tried, or nothing left out"
    kept = {others[i * len(others) // quick] for i in range(quick)}
    return [param if i in kept else _slow(param) for i, param in enumerate(params)]


def _param(case: Any) -> ParameterSet:
    if isinstance(case, ParameterSet):
        return case
    return pytest.param(*(case if isinstance(case, tuple) else (case,)))


def _marks(param: ParameterSet) -> list[pytest.Mark]:
    return [getattr(mark, "mark", mark) for mark in param.marks]


def _slow(param: ParameterSet) -> ParameterSet:
    return (
        param
        if pytest.mark.slow.mark in _marks(param)
        else pytest.param(*param.values, marks=(*param.marks, pytest.mark.slow), id=param.id)
    )
