"""Chains: rows of units that follow each other, drawn from counts of a row and the one before."""

import numpy as np
import pytest

from dpsynth.columns.domain import Compression, Domain, row_before
from dpsynth.columns.measurement import Measurement
from dpsynth.model import Expansion, MarkovRandomField, estimate, junction_tree
from dpsynth.wings.histories import chains, levels
from dpsynth.wings.histories.chains import Chain, Steps, chained

ORDER = Steps("year")
UNITS, MOST = 20_000, 5
SIZES = {"year": 8, "state": 3, "mood": 2}


def histories(seed=0):
    """Rows of units: a year that rises, a state that mostly stays, and a mood that follows the state."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, MOST + 1, UNITS)
    unit = np.repeat(np.arange(UNITS), lengths)
    years = np.concatenate([np.sort(rng.choice(8, n, replace=False)) for n in lengths])
    first = np.r_[True, unit[1:] != unit[:-1]]
    state = rng.integers(0, 3, len(unit))
    stays = rng.random(len(unit)) < 0.9
    for row in range(1, len(unit)):
        if not first[row] and stays[row]:
            state[row] = state[row - 1]
    mood = (rng.random(len(unit)) < 0.2 + 0.3 * state).astype(int)
    return unit, {"year": years, "state": state, "mood": mood}


def counted(codes, columns, sizes, noise, rng):
    shape = tuple(sizes[c] for c in columns)
    counts = np.bincount(np.ravel_multi_index([codes[c] for c in columns], shape), minlength=np.prod(shape))
    values = np.rint(counts.reshape(shape) + rng.normal(0, noise, shape)).astype(np.int64)
    return Measurement(tuple(columns), values, "gaussian", max(noise, 1.0))


def with_before(unit, codes):
    first = np.r_[True, unit[1:] != unit[:-1]]
    return codes | {row_before(c): np.where(first, SIZES[c], np.r_[0, own[:-1]]) for c, own in codes.items()}


def fitted(noise=0.0, groups=None, seed=0, steps=ORDER, codes=None) -> tuple[Chain, np.ndarray, dict]:
    unit, made = histories(seed)
    codes = made | (codes or {})
    rng = np.random.default_rng(1)
    sizes = SIZES | {row_before(c): size + 1 for c, size in SIZES.items()}
    singles = tuple(counted(codes, (c,), SIZES, noise, rng) for c in SIZES)
    expansion = Expansion(Domain(SIZES), Compression(groups or {}), singles, {"year": 8}, dict(SIZES))
    merged = {c: (groups or {}).get(c, np.arange(size))[codes[c]] for c, size in SIZES.items()}
    pair = counted(merged, ("state", "mood"), expansion.coarse.sizes, noise, rng)
    links = [counted(with_before(unit, codes), (c, row_before(c)), sizes, noise, rng) for c in SIZES]
    links = [link for link in links if link.clique[0] not in steps.constant]
    rows = expansion.model(estimate(expansion.coarse, [*expansion.sums, pair]).model)
    lengths = np.bincount(np.bincount(unit), minlength=MOST + 1)[1:].astype(float)
    return chained(expansion, rows, [pair], links, steps, lengths, 1 << 16), unit, codes


@pytest.fixture(scope="module")
def drawn():
    chain, unit, codes = fitted()
    found, units = chain.drawn(len(unit), np.random.default_rng(3))
    return unit, codes, units, found


def shares(values, size):
    return np.bincount(values, minlength=size) / len(values)


def pairs_of(unit, own, size):
    same = unit[1:] == unit[:-1]
    return shares(own[:-1][same] * size + own[1:][same], size**2)


def test_a_chain_draws_as_many_rows_as_asked_in_units_of_the_lengths_that_there_are(drawn):
    unit, _, units, found = drawn
    assert {len(own) for own in found.values()} == {len(unit)} == {len(units)}
    assert (np.diff(units) >= 0).all() and np.array_equal(np.unique(units), np.arange(units[-1] + 1))
    real, made = (np.bincount(np.bincount(u), minlength=MOST + 1)[: MOST + 1] for u in (unit, units))
    assert np.abs(real - made).max() <= 0.01 * UNITS


def test_rows_of_a_unit_never_fall_in_their_order_and_never_stand_still_where_none_does(drawn):
    _, _, units, found = drawn
    same = units[1:] == units[:-1]
    assert (np.diff(found["year"])[same] > 0).all()


@pytest.mark.parametrize("column", list(SIZES))
def test_a_chain_has_the_single_columns_and_each_column_after_itself(drawn, column):
    unit, codes, units, found = drawn
    size = SIZES[column]
    assert np.abs(shares(codes[column], size) - shares(found[column], size)).sum() / 2 < 0.015
    far = np.abs(pairs_of(unit, codes[column], size) - pairs_of(units, found[column], size)).sum() / 2
    # Years follow from the number of rows still to come, which no pair of rows tells.
    assert far < (0.12 if column == "year" else 0.03)


def test_a_chain_has_columns_together_within_a_row(drawn):
    _, codes, _, found = drawn
    real, made = (shares(own["state"] * 2 + own["mood"], 6) for own in (codes, found))
    assert np.abs(real - made).sum() / 2 < 0.02


def test_years_in_groups_go_on_by_their_own_steps(monkeypatch):
    """Where each step is one year, groups of years make no other of it; of very many years none falls."""
    rng, lengths = np.random.default_rng(2), np.bincount(histories()[0])
    years = np.concatenate([rng.integers(0, 9 - n) + np.arange(n) for n in lengths])
    for most, alike in ((256, 0.98), (4, 0.3)):
        monkeypatch.setattr(chains, "_MOST_PLACES", most)
        chain, unit, _ = fitted(groups={"year": np.arange(8) // 3}, codes={"year": years})
        found, units = chain.drawn(len(unit), np.random.default_rng(3))
        steps = np.diff(found["year"])[units[1:] == units[:-1]]
        assert (steps >= 0).all() and (steps == 1).mean() > alike


@pytest.mark.parametrize("seed", [6, 9, 12, 20, 24, 27, 34])
def test_a_place_of_few_rows_that_hardly_any_way_leads_to_moves_no_other_place(seed):
    rng, places = np.random.default_rng(seed), 20
    lengths = np.r_[7.0, np.full(9, 440.0)]
    counts = np.zeros((places + 1, places))
    for before in range(14):
        counts[before, before + 1 : before + 3] = 1000, 500
    counts[places, :5] = 900
    up = np.triu(np.ones(counts.shape), 1)
    counts += up * (rng.random(counts.shape) < 0.1) * rng.exponential(20, counts.shape)
    counts[places] += (rng.random(places) < 0.1) * 20
    counts += 1e-3 * up
    counts[-2, -1] = 1e-3
    wanted = np.r_[4, 6, 9, 11, 13, 11, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0.06, 0, 0.1, 0, 0.3]
    ways = levels.drawn_to(counts, wanted, lengths, ahead=True)
    held = levels.stepped(ways, lengths, ahead=True).sum(axis=0)
    assert np.abs(held / held.sum() - wanted / wanted.sum()).sum() / 2 < 0.01


def test_long_units_that_stay_at_a_place_for_most_of_their_rows_have_the_wanted_rows():
    counts = np.array([[15175.0, 2510, 47], [0, 17895, 1099], [0, 0, 863], [2982, 582, 25]])
    lengths, wanted = np.r_[np.full(19, 130.0), 1014.0], counts.sum(axis=0)
    ways = levels.drawn_to(counts, wanted, lengths, ahead=True)
    held = levels.stepped(ways, lengths, ahead=True).sum(axis=0)
    assert np.abs(held / held.sum() - wanted / wanted.sum()).sum() / 2 < 1e-3


def test_values_in_groups_stay_where_the_answers_tell_that_they_do():
    chain, _, _ = fitted(groups={"state": np.array([0, 0, 1])})
    assert list(chain.values) == ["state"]
    found, units = chain.drawn(30_000, np.random.default_rng(3))
    same = units[1:] == units[:-1]
    assert 0.9 < np.mean(found["state"][1:][same] == found["state"][:-1][same]) < 0.96


def test_the_group_that_comes_next_follows_from_the_value_before_within_its_group():
    unit, _ = histories()
    # 0, 1, 2, 0, ...: of the group of 0 and 1, 0 stays and 1 leaves.
    place = np.arange(len(unit)) - np.flatnonzero(np.diff(unit, prepend=-1))[unit]
    state = (np.random.default_rng(7).integers(0, 3, unit.max() + 1)[unit] + place) % 3
    chain, _, _ = fitted(groups={"state": np.array([0, 0, 1])}, codes={"state": state})
    found, units = chain.drawn(30_000, np.random.default_rng(3))
    steps = np.diff(found["state"])[np.diff(units) == 0] % 3
    assert np.mean(steps == 1) > 0.95


@pytest.mark.parametrize("groups", [None, {"state": np.array([0, 1, 1])}])
def test_a_column_that_never_changes_is_not_asked_with_the_row_before_and_does_not(groups):
    unit, _ = histories()
    state = np.random.default_rng(7).integers(0, 3, unit.max() + 1)[unit]
    steps = Steps("year", constant=("state",))
    chain, _, codes = fitted(100.0, groups, steps=steps, codes={"state": state})
    found, units = chain.drawn(len(unit), np.random.default_rng(3))
    same = units[1:] == units[:-1]
    assert not np.diff(found["state"])[same].any()
    assert np.abs(shares(codes["state"], 3) - shares(found["state"], 3)).sum() / 2 < 0.03


def test_a_column_that_never_falls_has_no_step_down_however_large_the_noise():
    unit, _ = histories()
    rng = np.random.default_rng(7)
    state = np.minimum.reduce([np.full(len(unit), 2), rng.integers(0, 3, len(unit))])
    state = state[np.lexsort((state, unit))]
    chain, _, codes = fitted(300.0, steps=Steps("year", rising=("state",)), codes={"state": state})
    found, units = chain.drawn(len(unit), np.random.default_rng(3))
    same = units[1:] == units[:-1]
    assert (np.diff(found["state"])[same] >= 0).all()
    assert np.abs(shares(codes["state"], 3) - shares(found["state"], 3)).sum() / 2 < 0.1


def test_cells_that_a_rule_closes_are_drawn_in_no_row():
    ruled = np.zeros((3, 2), np.bool_)
    ruled[2, 0] = True
    unit, made = histories()
    mood = np.where(made["state"] == 2, 1, made["mood"])
    chain, _, _ = fitted(steps=Steps("year", ruled={("state", "mood"): ruled}), codes={"mood": mood})
    found, _ = chain.drawn(len(unit), np.random.default_rng(3))
    assert not ((found["state"] == 2) & (found["mood"] == 0)).any()


@pytest.mark.parametrize("noise", [0.0, 100.0, 3000.0])
def test_the_fit_of_a_chain_ends_far_from_its_centre(monkeypatch, noise):
    paths = []

    def seen(*args, **more):
        found = estimate(*args, **more)
        paths.append(found.path)
        return found

    monkeypatch.setattr(chains, "estimate", seen)
    fitted(noise)
    assert paths[0] >= 1e4


def test_noise_of_a_hundred_rows_a_cell_changes_little():
    chain, unit, codes = fitted(noise=100.0)
    found, units = chain.drawn(len(unit), np.random.default_rng(3))
    far = np.abs(pairs_of(unit, codes["state"], 3) - pairs_of(units, found["state"], 3)).sum() / 2
    assert far < 0.06
    same = units[1:] == units[:-1]
    assert (np.diff(found["year"])[same] >= 0).all()


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 11])
def test_a_chain_draws_any_number_of_rows_and_the_same_by_the_same_generator(rows):
    chain, _, _ = fitted()
    one, units = chain.drawn(rows, np.random.default_rng(5))
    again, same = chain.drawn(rows, np.random.default_rng(5))
    assert len(units) == rows and np.array_equal(units, same)
    assert all(np.array_equal(one[c], again[c]) for c in SIZES)


def test_a_row_that_the_model_holds_impossible_is_drawn_by_its_place_alone():
    domain = Domain({"year": 2, "x": 2, row_before("year"): 3, row_before("x"): 3})
    tree = junction_tree(domain, [("year", row_before("year")), ("x", row_before("x"))])
    rng = np.random.default_rng(0)
    beliefs = []
    for clique in tree.cliques:
        table = rng.random(domain.shape(clique)) + 0.1
        if set(clique) == {"x", row_before("x")}:
            # Nothing follows after x = 1.
            table[(slice(None), 1) if clique[1] == row_before("x") else (1, slice(None))] = 0
        beliefs.append(table / table.sum() * 100)
    links = {"year": row_before("year"), "x": row_before("x")}
    ways = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    chain = Chain(
        MarkovRandomField(tree, tuple(beliefs), 100.0), links, "year", "year", np.array([0.0, 0.0, 9.0]), ways
    )
    found, units = chain.drawn(300, rng)
    assert len(units) == 300 and found["year"].tolist() == [0, 1, 1] * 100
