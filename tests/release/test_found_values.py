"""A release that finds values promises what its journal adds up to, delta included, and the ledger knows."""

import json
import re
from fractions import Fraction

import pytest

from tests.release import evidence
from tests.release.keeper import Keeper
from tests.release.place import BY_PERSON, HEADER, Place, people
from tests.thinned import some, thinned

PRIVACY = {
    "gaussian": {"noise": "gaussian", "accountant": "gdp"},
    "gaussian by rho": {"noise": "gaussian", "accountant": "zcdp"},
    "laplace by rho": {"noise": "laplace"},
    "laplace added up plainly": {"noise": "laplace", "accountant": "sequential"},
}
OPEN = {"type": "category", "values": None, "open": True, "most": 30, "other": "elsewhere", "missing": "?"}
"""Of which the three usual ones are there, and forty that one row each has."""
APART, APART_OF_ALL = Fraction(5, 10**7), Fraction(1, 10**6)
"""What the config sets apart of delta for naming values: half of it, or all where nothing else takes any."""


def with_places_of_one(place: Place) -> None:
    rows = [list(row) for row in people(6000)]
    for number in range(40):
        rows[number][HEADER.index("city")] = f"alone {number}"
    place.table(rows)


@pytest.mark.parametrize(("by_person", "kind"), some(thinned([False, True], list(PRIVACY), strength=1), 2))
def test_delta_of_found_values_is_in_the_guarantee_and_in_the_ledger(
    keeper: Keeper, place: Place, kind: str, by_person: bool
) -> None:
    with_places_of_one(place)
    privacy = {"epsilon": 3.0, "delta": 1e-6, **PRIVACY[kind]}
    if by_person:
        privacy |= {"neighbours": "replace_one", **BY_PERSON}
    place.configure(privacy=privacy, columns={"city": OPEN})
    folder = place.folder / keeper.run(place).folder
    found = evidence.records(folder / "private" / "journal.jsonl")
    protection = evidence.Protection(by_person, 3 if by_person else 1)
    manifest = evidence.assert_whole(folder)
    promised = manifest["guarantee"]
    assert isinstance(promised, dict)
    approximate_delta = float(sum(map(protection.approximate_delta, evidence.charges(found)), Fraction(0)))
    pure = kind == "laplace added up plainly"
    counted = (None, "zcdp") if pure else ("1e-6", promised["accountant"])
    apart = APART_OF_ALL if pure else APART
    exact = float(protection.total(found, *counted, apart))
    assert exact <= promised["epsilon"] <= min(exact * 1.001, 3.0)
    assert 1e-8 < approximate_delta <= apart <= 1.5 * approximate_delta
    assert promised["approximate_delta"] == float(apart) and promised["delta"] == 1e-6
    (naming,) = [m for m in manifest["mechanisms"] if m["delta"]]  # type: ignore[union-attr, index]
    assert approximate_delta <= naming["delta"] <= min(approximate_delta * 1.2, apart)
    assert any("naming values" in sentence for sentence in promised["in_words"])
    assert place.balance is not None
    (entry,) = place.balance.releases
    assert float(entry.cost.approximate_delta) == pytest.approx(naming["delta"])
    assert entry.state == "closed"
    assert place.balance.approximate_share == (0 if pure else Fraction(1, 2))
    # The planted fault: without what naming took, epsilon would be lower.
    if not pure:
        unaware = evidence.Protection(by_person, protection.rows)
        forgotten = [r for r in found if r["kind"] != "charge" or not protection.approximate_delta(r)]
        assert float(unaware.total(forgotten, *counted)) < promised["epsilon"]
    told = json.dumps(manifest["columns"])
    # Forty values of one row each: one is named in some 50 000 releases, two of them in none.
    assert "Aa" in told and len(set(re.findall(r"alone \d+", told))) < 2
