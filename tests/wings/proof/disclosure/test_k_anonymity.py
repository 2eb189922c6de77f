"""What is kept is k-anonymous and l-diverse, with the least loss that any combination of levels has."""

from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from pydantic import TypeAdapter

from dpsynth.columns.column import Column
from dpsynth.columns.kinds import ColumnSpec
from dpsynth.wings.proof.disclosure.hierarchy import EVERYTHING, Hierarchy, by_default
from dpsynth.wings.proof.disclosure.k_anonymity import Demand, generalised
from dpsynth.wings.proof.disclosure.keys import HierarchySpec


def column(name: str, **declared: object) -> Column:
    part = TypeAdapter(ColumnSpec).validate_python(declared).part(name)
    assert isinstance(part, Column)
    return part


AGE = column("age", type="integer", min=0, max=19, missing=False)
CITY = column("city", type="category", values=["Bonn", "Köln", "Wien", "Graz", "Linz"])
SEX = column("sex", type="boolean", values=["f", "m"], missing=False)
ILL = column("ill", type="category", values=["flu", "cold", "none"], missing=False)
AUSTRIA = {"East": ["Wien"], "South": ["Graz", "Linz"]}
CITIES = HierarchySpec(groups={"Germany": ["Bonn", "Köln"], "Austria": AUSTRIA})
HIERARCHIES = (HierarchySpec(widths=[5, 10]).of(AGE), CITIES.of(CITY), by_default(SEX))


def table(number: int, rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(number)
    weights = {c.name: rng.dirichlet(np.full(c.size, 0.7)) for c in (AGE, CITY, SEX, ILL)}
    return {name: rng.choice(len(p), rows, p=p) for name, p in weights.items()}


def groups_of(codes: dict[str, np.ndarray], levels: tuple[int, ...], kept: np.ndarray) -> list[list[int]]:
    """The rows of each combination, by brute force over rows."""
    found: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for row in np.flatnonzero(kept):
        key = []
        for h, level in zip(HIERARCHIES, levels, strict=True):
            chosen = h.levels[level]
            key.append(chosen.labels[chosen.groups[codes[h.column][row]]])
        found[tuple(key)].append(int(row))
    return list(found.values())


def faults(codes, levels, kept, demand: Demand) -> int:
    """Rows in groups that are too small or not diverse."""
    return sum(
        len(rows)
        for rows in groups_of(codes, levels, kept)
        if len(rows) < demand.k or len({codes["ill"][row] for row in rows}) < demand.distinct
    )


def loss_of(codes, levels) -> float:
    """Iyengar's loss, row by row."""
    total = 0.0
    for h, level in zip(HIERARCHIES, levels, strict=True):
        chosen = h.levels[level]
        sizes = [list(chosen.groups).count(group) for group in chosen.groups]
        total += np.mean([(sizes[code] - 1) / (len(sizes) - 1) for code in codes[h.column]])
    return total / len(HIERARCHIES)


DEMANDS = (Demand(2), Demand(5, 1, 0.05), Demand(5, 2, 0.1), Demand(20, 3, 0.02), Demand(3, 2))


@pytest.mark.parametrize("number", range(10))
def test_the_search_finds_the_least_loss_of_all_levels_and_keeps_good_groups_only(number):
    demand = DEMANDS[number % len(DEMANDS)]
    codes = table(number, 60 + 20 * number)
    found = generalised(codes, HIERARCHIES, ("ill",) if demand.distinct > 1 else (), demand)
    assert faults(codes, found.levels, found.kept, demand) == 0
    every = np.ones(len(codes["age"]), bool)
    allowed = demand.left_out * len(every)
    good = [
        levels
        for levels in product(*(range(len(h.levels)) for h in HIERARCHIES))
        if faults(codes, levels, every, demand) <= allowed
    ]
    if good:
        assert found.levels in good
        assert found.loss == pytest.approx(min(loss_of(codes, levels) for levels in good))
        assert found.loss == pytest.approx(loss_of(codes, found.levels))
        assert (~found.kept).sum() == faults(codes, found.levels, every, demand) <= allowed


def test_nothing_is_kept_of_a_table_that_nothing_makes_anonymous():
    codes = table(1, 4)
    found = generalised(codes, HIERARCHIES, (), Demand(5))
    assert not found.kept.any() and found.levels == tuple(len(h.levels) - 1 for h in HIERARCHIES)


def test_a_search_that_asks_for_fewer_rows_is_caught():
    codes = table(2, 80)
    found = generalised(codes, HIERARCHIES, ("ill",), Demand(4))
    assert faults(codes, found.levels, found.kept, Demand(5)) > 0
    assert faults(codes, found.levels, found.kept, Demand(4, 3)) > 0


def nested(h: Hierarchy) -> bool:
    """True if each level is a coarsening of the one before it, and the last is one group."""
    for fine, coarse in zip(h.levels, h.levels[1:], strict=False):
        of = dict(zip(fine.groups.tolist(), coarse.groups.tolist(), strict=True))
        if any(of[f] != c for f, c in zip(fine.groups.tolist(), coarse.groups.tolist(), strict=True)):
            return False
    return h.levels[-1].labels == (EVERYTHING,)


SEEN = column("seen", type="date", min="2020-11-01", max="2022-02-28", unit="month")
PAY = column("pay", type="number", bins=[0, 10, 25, 60, 100], decimals=2)
ZIP = column("zip", type="category", values=["02138", "02139", "02141", "10115"], other="other")
SIZE = column("size", type="ordered", values=["S", "M", "L", "XL"], missing=False)


def level(h: Hierarchy, number: int) -> list[str]:
    chosen = h.levels[number]
    return [chosen.labels[group] for group in chosen.groups]


def test_hierarchies_name_their_groups():
    assert level(HIERARCHIES[0], 1)[3:6] == ["0 to 4", "0 to 4", "5 to 9"]
    assert level(HIERARCHIES[0], 2)[8:12] == ["0 to 9", "0 to 9", "10 to 19", "10 to 19"]
    assert level(CITIES.of(CITY), 1) == ["Germany", "Germany", "East", "South", "South", "(missing)"]
    assert level(CITIES.of(CITY), 2) == ["Germany", "Germany", *["Austria"] * 3, "(missing)"]
    plain = HierarchySpec(groups=[["Bonn", "Köln"]]).of(CITY)
    assert level(plain, 1) == ["Bonn, Köln", "Bonn, Köln", "Wien", "Graz", "Linz", "(missing)"]
    dates = HierarchySpec(units=["quarter", "year"]).of(SEEN)
    assert level(dates, 1)[:3] == ["2020-Q4", "2020-Q4", "2021-Q1"]
    assert level(dates, 2)[-2:] == ["2022", "(missing)"]
    begun = HierarchySpec(prefixes=[4, 2]).of(ZIP)
    assert level(begun, 1) == ["0213*", "0213*", "02141", "10115", "other", "(missing)"]
    assert level(begun, 2)[2] == "02*"
    assert level(by_default(SIZE), 2) == ["S", "M", "L", "XL"]
    assert level(by_default(SIZE), 3) == ["S … M", "S … M", "L … XL", "L … XL"]
    assert level(HierarchySpec(widths=[50]).of(PAY), 1)[:4] == ["0.00 to 59.99"] * 3 + ["[60, 100]"]


@pytest.mark.parametrize("h", [
    *HIERARCHIES, by_default(SEEN), by_default(PAY), by_default(AGE), by_default(ZIP),
    HierarchySpec(widths=[7, 14]).of(AGE),
    HierarchySpec(units=["quarter", "year"]).of(SEEN), HierarchySpec(prefixes=[4, 2]).of(ZIP),
])  # fmt: skip
def test_each_level_coarsens_the_one_before(h):
    assert nested(h)
