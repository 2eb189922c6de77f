"""Units that are chosen among more: their counts, their numbers of rows, and that none is there twice."""

import numpy as np
import pytest

from dpsynth.columns.domain import Domain
from dpsynth.model.refinement import TableTarget
from dpsynth.wings.histories import chains
from dpsynth.wings.histories.selection import Counted, chosen
from tests.wings.histories.test_chains import SIZES, fitted, pairs_of, shares


def units(seed, number=6_000):
    rng = np.random.default_rng(seed)
    unit = np.repeat(np.arange(number), np.tile(rng.integers(1, 6, number // 3), 3))
    return np.sort(unit), {"state": rng.integers(0, 3, unit.size), "mood": rng.integers(0, 2, unit.size)}


def together(codes):
    return np.bincount(codes["state"] * 2 + codes["mood"], minlength=6) / len(codes["state"])


@pytest.mark.parametrize("seed", range(5))
def test_chosen_units_have_the_counts_that_are_known_and_are_one_of_three_of_each_number_of_rows(seed):
    unit, codes = units(seed)
    wanted = np.array([[0.25, 0.1], [0.2, 0.15], [0.1, 0.2]])
    target = TableTarget(("state", "mood"), wanted * unit.size / 3, 1.0)
    known = [Counted.of(target, codes, Domain({"state": 3, "mood": 2}), 1.0)]
    kept = chosen(unit, known, 3, np.random.default_rng(seed))
    lengths, taken = np.bincount(unit), np.unique(unit[kept])
    assert np.array_equal(kept, np.isin(unit, taken))
    assert np.array_equal(3 * np.bincount(lengths[taken], minlength=6), np.bincount(lengths, minlength=6))
    before, after = (np.abs(together(own) - wanted.reshape(-1)).sum() / 2 for own in (
        codes, {c: own[kept] for c, own in codes.items()},
    ))  # fmt: skip
    assert before > 0.1 and after < 0.03


def test_counts_within_their_error_move_no_unit():
    unit, codes = units(0)
    target = TableTarget(("state", "mood"), np.full((3, 2), unit.size / 18), 1.0, variance=1e12)
    known = [Counted.of(target, codes, Domain({"state": 3, "mood": 2}), 1.0)]
    kept = chosen(unit, known, 3, np.random.default_rng(1))
    assert np.abs(together({c: own[kept] for c, own in codes.items()}) - together(codes)).max() < 0.02


def test_a_history_has_pairs_that_its_chain_does_not_hold_and_the_steps_that_it_holds():
    chain, unit, codes = fitted()
    shape = SIZES["year"], SIZES["mood"]
    wanted = np.bincount(codes["year"] * 2 + codes["mood"], minlength=16).reshape(shape).astype(float)
    # Rows of late years are of one mood more often than the chain has them.
    wanted *= np.linspace(0.7, 1.3, 8)[:, None] ** np.array([-1, 1])
    wanted *= len(unit) / wanted.sum()
    target = TableTarget(("year", "mood"), wanted, 1.0)
    off = []
    for targets in ((), (target,)):
        found, of = chain.drawn(len(unit), np.random.default_rng(3), targets)
        own = np.bincount(found["year"] * 2 + found["mood"], minlength=16)
        off.append(np.abs(own - wanted.reshape(-1)).sum() / 2 / len(unit))
        steps = pairs_of(unit, codes["state"], 3) - pairs_of(of, found["state"], 3)
        assert np.abs(steps).sum() / 2 < 0.02
        assert np.abs(shares(np.bincount(of), 7) - shares(np.bincount(unit), 7)).sum() < 0.02
    assert off[1] < off[0] / 2


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 11, 500])
def test_any_number_of_rows_is_chosen_in_parts_and_the_same_by_the_same_generator(monkeypatch, rows):
    monkeypatch.setattr(chains, "_AT_ONCE", 64)
    chain, *_ = fitted()
    target = TableTarget(("mood",), np.array([rows / 2, rows / 2]), 1.0)
    one, unit = chain.drawn(rows, np.random.default_rng(5), [target])
    other, _ = chain.drawn(rows, np.random.default_rng(5), [target])
    assert {len(own) for own in one.values()} == {rows} == {len(unit)}
    assert (np.diff(unit) >= 0).all() and np.array_equal(np.unique(unit), np.arange(unit.max(initial=-1) + 1))
    assert all(np.array_equal(one[c], other[c]) for c in one)
    assert (np.diff(one["year"])[np.diff(unit) == 0] >= 0).all()
