"""Bulk noise has the distribution claimed, tails included, and no seed reaches it (hazards 11-15)."""

import inspect
import os
from decimal import Decimal
from math import ceil, inf, nan

import numpy as np
import pytest
from scipy.stats import chi2

from dpsynth.curator import samplers
from tests.forked import in_child
from tests.guarantee.exact_noise import KINDS, SCALES, cumulative
from tests.thinned import some, thinned

SIGNIFICANCE = 1e-6


def pooled(expected: np.ndarray, least: float) -> np.ndarray:
    """A group number for each cell: neighbours together until that many draws are expected."""
    group, mass, groups = 0, 0.0, []
    for cell in expected.tolist():
        groups.append(group)
        mass += cell
        if mass >= least:
            group, mass = group + 1, 0.0
    return np.minimum(groups, group - 1)


def p_value(draws: np.ndarray, kind: str, scale: float) -> float:
    reach = ceil((12 if kind == "gaussian" else 45) * scale) + 5
    x = np.arange(-reach, reach + 1)
    weight = np.exp(-(x**2) / (2 * scale**2)) if kind == "gaussian" else np.exp(-np.abs(x) / scale)
    expected = len(draws) * weight / weight.sum()
    groups = pooled(expected, 50)
    means = np.bincount(groups, expected)
    seen = np.bincount(groups[np.clip(draws + reach, 0, 2 * reach)], minlength=len(means))
    return float(chi2.sf(((seen - means) ** 2 / means).sum(), len(means) - 1))


def bulk(kind: str, scale: float, cells: int) -> np.ndarray:
    return samplers.add_in_bulk(kind, scale, np.zeros(cells, dtype=np.int64))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_exact_distribution(kind: str, scale: float) -> None:
    assert p_value(bulk(kind, scale, 200_000), kind, scale) > SIGNIFICANCE


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_twenty_million_draws_follow_the_exact_distribution(kind: str, scale: float) -> None:
    assert p_value(bulk(kind, scale, 20_000_000), kind, scale) > SIGNIFICANCE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", SCALES)
def test_draws_at_0_7_of_their_scale_would_be_seen(kind: str, scale: float) -> None:
    assert p_value(bulk(kind, 0.7 * scale, 200_000), kind, scale) < SIGNIFICANCE


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", some([1.0, 7.5], 1))
def test_one_sign_in_fifty_lost_would_be_seen(kind: str, scale: float) -> None:
    draws = bulk(kind, scale, 2_000_000)
    draws[::50] = np.abs(draws[::50])
    assert p_value(draws, kind, scale) < SIGNIFICANCE


@pytest.mark.parametrize(("kind", "scale", "ones"), some(thinned(KINDS, [0.3, 1.0, 7.5, 100.0], [20, 40]), 4))
def test_tails_follow_the_exact_distribution(kind: str, scale: float, ones: int) -> None:
    """Words that begin with so many ones are the draws of the last 2^-ones of |X|."""

    def tail_words(number: int) -> np.ndarray:
        return samplers._system_words(number) | np.uint64(2**64 - 2 ** (64 - ones))

    cells = 100_000
    draws = np.abs(samplers._draw(samplers._table(kind, scale), cells, tail_words))
    start = 1 - Decimal(2) ** -ones
    exact = cumulative(kind, scale)
    above = [float((max(true, start) - start) * 2**ones) for true in exact]
    expected = cells * np.diff(above, prepend=0.0)
    groups = pooled(expected, 50)
    means = np.bincount(groups, expected)
    seen = np.bincount(groups[np.minimum(draws, len(groups) - 1)], minlength=len(means))
    gap = ((seen - means)[means > 0] ** 2 / means[means > 0]).sum()
    assert chi2.sf(gap, max(len(means) - 1, 1)) > SIGNIFICANCE
    assert draws.min() >= int(np.flatnonzero(expected)[0])


@pytest.mark.parametrize(("kind", "scale"), some(thinned(KINDS, [0.3, 1.0, 7.5, 100.0], strength=1), 2))
def test_bulk_and_opendp_draw_alike(kind: str, scale: float) -> None:
    cells = 20_000
    measurement = samplers._gaussian(scale) if kind == "gaussian" else samplers._laplace(scale)
    theirs = np.array(measurement([0] * cells))
    ours = bulk(kind, scale, cells)
    cut = np.unique(np.quantile(theirs, np.linspace(0, 1, 60)))
    a, b = (np.bincount(np.searchsorted(cut, draws), minlength=len(cut) + 1) for draws in (ours, theirs))
    filled = a + b > 0
    gap = ((a - b)[filled] ** 2 / (a + b)[filled]).sum()
    assert chi2.sf(gap, filled.sum() - 1) > SIGNIFICANCE


# The door in: shapes, limits, sources.


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.0, -1.0, nan, inf, -inf, 1e6])
def test_a_scale_without_a_table_is_refused(kind: str, scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be positive"):
        samplers.add_in_bulk(kind, scale, np.zeros(1000, dtype=np.int64))


@pytest.mark.parametrize("kind", KINDS)
def test_values_that_are_not_integers_are_refused(kind: str) -> None:
    with pytest.raises(TypeError):
        samplers.add_in_bulk(kind, 1.0, np.zeros(1000))


@pytest.mark.parametrize(
    ("kind", "add"), [("gaussian", samplers.add_gaussian), ("laplace", samplers.add_laplace)]
)
def test_large_arrays_are_drawn_in_bulk_and_all_else_by_opendp(monkeypatch, kind: str, add) -> None:
    taken = []
    sound = samplers.add_in_bulk
    monkeypatch.setattr(samplers, "add_in_bulk", lambda *given: taken.append(given[:2]) or sound(*given))
    for scale, cells in [(3.0, 1), (3.0, 100), (1e4, 1000), (1e6, 1000)]:
        assert len(add(np.zeros(cells, dtype=np.int64), scale)) == cells
    assert taken == []
    assert len(add(np.zeros(5000, dtype=np.int64), 3.0)) == 5000
    assert taken == [(kind, 3.0)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 0.01])
def test_scales_next_to_nothing_add_nothing(kind: str, scale: float) -> None:
    assert not bulk(kind, scale, 1000).any()


@pytest.mark.parametrize("kind", KINDS)
def test_sums_beyond_int64_stop_at_its_ends(kind: str) -> None:
    ends = np.iinfo(np.int64)
    for end, inwards in ((ends.max, -1), (ends.min, 1)):
        drawn = samplers.add_in_bulk(kind, 100.0, np.full(1000, end, dtype=np.int64))
        assert 300 < (drawn == end).sum() < 700
        assert all(0 <= inwards * (int(x) - end) < 10_000 for x in drawn)


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 2**53 + 1])
def test_large_counts_do_not_wrap_or_round(count: int) -> None:
    drawn = samplers.add_in_bulk("gaussian", 1.0, np.full(1000, count, dtype=np.int64))
    assert 0 < np.abs(drawn - count).max() < 60


def test_each_cell_gets_its_own_noise_whatever_the_layout_or_chunk() -> None:
    values = np.arange(3 * 50_001, dtype=np.int64).reshape(50_001, 3).T * 10**9
    before = values.copy()
    drawn = samplers.add_in_bulk("gaussian", 50.0, values)
    assert drawn.shape == values.shape
    assert np.array_equal(values, before)
    assert np.abs(drawn - values).max() < 1000
    gaps = (drawn - values).ravel()
    for lag in (1, 3, 2**16):
        assert abs(np.corrcoef(gaps[:-lag], gaps[lag:])[0, 1]) < 0.03
    assert not len(samplers.add_in_bulk("gaussian", 50.0, values[:0]).ravel())


def _stream() -> tuple[int, ...]:
    return tuple(bulk("gaussian", 1000.0, 32).tolist())


def test_forked_workers_do_not_share_a_stream() -> None:
    _stream()
    ended = [in_child(lambda write: os.write(write, repr(_stream()).encode()), wall=60) for _ in range(8)]
    assert {code for code, _ in ended} == {0}
    assert len({said for _, said in ended if said}) == 8


def test_every_bit_comes_from_the_operating_system_and_no_seed_or_source_can_be_given(monkeypatch) -> None:
    asked = []
    system = os.urandom
    monkeypatch.setattr(os, "urandom", lambda size: asked.append(size) or system(size))
    bulk("laplace", 7.5, 70_000)
    assert sum(asked) == 8 * 70_000
    assert list(inspect.signature(samplers.add_in_bulk).parameters) == ["kind", "scale", "values"]
    np.random.seed(0)
    once = _stream()
    np.random.seed(0)
    assert once != _stream()
