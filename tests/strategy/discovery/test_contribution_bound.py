"""The bound that is chosen has about the least error of all, on people with few rows and with heavy tails."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.accounting.calibration import mean_absolute_error
from dpsynth.columns.column import domain_of
from dpsynth.config import compiled
from dpsynth.plan.plan import make_plan
from dpsynth.strategy import strategy_of
from dpsynth.strategy.discovery import contribution_bound, noise_per_row
from tests.specs import spec_of
from tests.thinned import some, thinned

RANDHIE = np.repeat([1, 2, 3, 4, 5], [269, 246, 3743, 70, 1584])
"""Rows of each person of the RAND Health Insurance Experiment, which is public."""
HEAVY = np.minimum(np.ceil(np.random.default_rng(1).pareto(1.1, 5000)), 1000).astype(int)
EVEN = np.full(2000, 4)
AT_MOST = 20


def by_rows(rows: np.ndarray, most: int = AT_MOST) -> np.ndarray:
    """Numbers of persons with 1, 2, ... rows, the last with as many or more."""
    return np.bincount(np.minimum(rows, most), minlength=most + 1)[1:]


@given(st.lists(st.integers(-20, 500), min_size=1, max_size=25), st.floats(0, 1e4))
def test_one_row_more_is_used_as_long_as_more_persons_have_it_than_it_adds_noise(units, noise):
    units = np.array(units)
    expected = [
        sum(max(j - k, 0) * n for j, n in enumerate(units.tolist(), 1)) + k * noise
        for k in range(1, len(units) + 1)
    ]
    found = contribution_bound(units, noise)
    assert expected[found - 1] == pytest.approx(min(expected))
    if (units >= 0).all():
        with_more = [units[k:].sum() for k in range(len(units))]
        assert all(a >= b for a, b in pairwise(with_more))
        assert found == max(1, sum(n > noise for n in with_more)) or noise in with_more


def test_without_noise_all_rows_are_used_and_with_endless_noise_one():
    assert contribution_bound(by_rows(RANDHIE), 0.0) == 5
    assert contribution_bound(by_rows(RANDHIE), 1e9) == 1


def realised(rows: np.ndarray, k: int, cells: int, scale: float, rng: np.random.Generator) -> float:
    """L1 error, in rows, of a noisy table of counts with a bound of k, its negative cells set to zero.

    A person's rows stand in cells near one of the person's own, as repeated measurements do.
    """
    person = np.repeat(np.arange(len(rows)), rows)
    home = rng.integers(0, cells, len(rows))[person]
    cell = (home + rng.integers(0, 2, len(person))) % cells
    priority = rng.random(len(person))
    order = np.lexsort((priority, person))
    rank = np.arange(len(person)) - np.repeat(np.cumsum(rows) - rows, rows)
    kept = order[rank < k]
    truth = np.bincount(cell, minlength=cells)
    noisy = np.bincount(cell[kept], minlength=cells) + rng.normal(0, k * scale, cells)
    return float(np.abs(np.maximum(noisy, 0) - truth).sum())


def worse(rows: np.ndarray, cells: int, scale: float, told: float, factor: float = 1.0) -> float:
    """How much larger the error is with the bound that is chosen than with the best bound, both on average.

    Args:
        rows: of each person.
        cells: of a table of counts.
        scale: standard deviation of its noise with a bound of 1.
        told: that of the noisy numbers of persons.
        factor: by which the rule is told a wrong noise.
    """
    rng = np.random.default_rng(cells)
    errors = [
        np.mean([realised(rows, k, cells, scale, rng) for _ in range(6)]) for k in range(1, AT_MOST + 1)
    ]
    noise = cells * mean_absolute_error("gaussian", scale) * factor
    found = []
    for _ in range(30):
        numbers = by_rows(rows) + np.rint(rng.normal(0, told, AT_MOST)).astype(int)
        found.append(errors[contribution_bound(numbers, noise) - 1])
    return float(np.mean(found) / min(errors))


ROWS = {"randhie": RANDHIE, "heavy": HEAVY, "even": EVEN}


@pytest.mark.parametrize(
    ("rows", "cells", "scale"), some(thinned(list(ROWS), (8, 40), (5.0, 30.0), strength=1), 1)
)
def test_the_error_is_close_to_that_of_the_best_bound(rows, cells, scale):
    assert worse(ROWS[rows], cells, scale, told=scale / 2) < 1.3


@pytest.mark.slow
@pytest.mark.parametrize("factor", some([0.05, 20], 1))
def test_a_rule_that_is_told_a_wrong_noise_is_caught(factor):
    found = [worse(rows, 8, 30.0, 15.0, factor) for rows in ROWS.values()]
    assert max(found) > 1.3


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("method", ["independent", "mst"])
def test_the_noise_per_row_is_what_the_plan_foretells_and_does_not_depend_on_the_most(noise, method):
    found = []
    for at_most in (10, 20, 40):
        unit = {"column": "who", "max_rows": "private", "at_most": at_most}
        delta = {"delta": 1e-6} if noise == "gaussian" else {}
        privacy = {"epsilon": 1, "noise": noise, "unit": unit, **delta}
        columns = {n: {"type": "integer", "min": 0, "max": 9, "missing": False} for n in "abcd"}
        spec = spec_of(columns, privacy=privacy, structure={"method": method})
        plan = make_plan(compiled(spec), strategy_of(method, ()))
        found.append(noise_per_row(plan, domain_of(compiled(spec).columns)))
        steps = {step.step: step for step in plan.steps}
        of_a_column = 10 * mean_absolute_error(noise, steps["one_way"].scale_of["a"])
        assert found[-1] == pytest.approx(of_a_column / at_most)
    assert max(found) < 1.01 * min(found)
