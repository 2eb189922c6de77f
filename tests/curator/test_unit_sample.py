"""The secret sample of units: fair coins, one a unit, the same for a release that is resumed."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.subsampling import Sampling
from dpsynth.curator import UnitSample, load_rows
from dpsynth.curator.contribution_bounding import person_codes
from dpsynth.domain.category_codec import CategoryCodec
from dpsynth.domain.column import Column

KEY = bytes(range(32))
RATE = 0.2
SAMPLE = UnitSample(Sampling(Fraction(1, 5)).threshold, KEY)
FAR = 5.0
"""Standard deviations beyond which a count of fair coins lies once in a million keys; the key is fixed."""
COLUMN = Column("value", CategoryCodec(("0", "1")), missing=False)
PERSON = Neighbours("add_remove", "who", 3)


def far(chosen: np.ndarray, rate: float = RATE) -> float:
    """Distance of a number of coins from what is expected, in standard deviations."""
    return float(abs(chosen.sum() - rate * chosen.size) / (chosen.size * rate * (1 - rate)) ** 0.5)


def codes(number: int) -> np.ndarray:
    return person_codes(pa.array([f"p{i}" for i in range(number)]), KEY)


@pytest.mark.parametrize("drawn", [SAMPLE.rows(7, 200_000), SAMPLE.persons(codes(20_000))])
def test_coins_have_their_rate_and_neighbouring_coins_are_independent(drawn: np.ndarray) -> None:
    assert far(drawn) < FAR
    assert far(drawn[1:] & drawn[:-1], RATE**2) < FAR + 1


def test_a_biased_coin_would_be_noticed() -> None:
    assert far(UnitSample(SAMPLE.threshold * 11 // 10, KEY).rows(0, 200_000)) > FAR


def test_the_threshold_is_never_above_the_rate() -> None:
    for rate in (Fraction(1, 3), Fraction(1, 10), Fraction(1, 10**6), Fraction(999_999, 10**6)):
        drawn = Fraction(Sampling(rate).threshold, 1 << 64)
        assert 0 <= rate - drawn < Fraction(1, 1 << 64)


def test_rows_have_the_same_coins_however_they_are_batched() -> None:
    whole = SAMPLE.rows(0, 150_000)
    cut = [0, 1, 65_535, 65_537, 100_000, 150_000]
    parts = [SAMPLE.rows(a, b - a) for a, b in pairwise(cut)]
    assert (np.concatenate(parts) == whole).all() and SAMPLE.rows(5, 0).size == 0


def test_another_release_has_another_sample_and_a_resumed_one_the_same() -> None:
    again, other = UnitSample(SAMPLE.threshold, KEY), UnitSample(SAMPLE.threshold, KEY[::-1])
    one = SAMPLE.rows(0, 50_000)
    assert (again.rows(0, 50_000) == one).all()
    assert far(one & other.rows(0, 50_000), RATE**2) < FAR
    assert KEY.hex() not in repr(SAMPLE) and str(SAMPLE.threshold) not in repr(SAMPLE)


def loaded(persons: Sequence[str]) -> dict[str, int]:
    """The rows of each person that are left of a table in two batches."""
    half = len(persons) // 2
    batches = (
        {"who": pa.array(part), "value": pa.array(["1"] * len(part))}
        for part in (persons[:half], persons[half:])
    )
    rows = load_rows(SAMPLE.of(batches, PERSON), (COLUMN,), PERSON, KEY)
    names = sorted(set(persons))
    of = dict(zip(person_codes(pa.array(names), KEY).tolist(), names, strict=True))
    found, number = np.unique(rows.persons, return_counts=True)
    return {of[code]: count for code, count in zip(found.tolist(), number.tolist(), strict=True)}


PERSONS = [f"p{i % 300}" for i in range(900)]


def test_a_person_is_in_the_sample_with_all_rows_or_with_none() -> None:
    found = loaded(PERSONS)
    assert set(found.values()) == {3} and 20 < len(found) < 110


def test_a_sample_of_rows_in_place_of_persons_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = UnitSample.rows
    monkeypatch.setattr(UnitSample, "persons", lambda self, people: sound(self, 0, len(people)))
    assert set(loaded(PERSONS).values()) != {3}


def test_who_else_is_in_the_table_changes_no_persons_coin() -> None:
    fewer = [who for who in PERSONS if who != "p7"]
    assert loaded(fewer).keys() == loaded(PERSONS).keys() - {"p7"}


def test_all_units_are_loaded_without_a_sample() -> None:
    batches = [{"value": pa.array(["0", "1", "1"])}]
    assert load_rows(batches, (COLUMN,), Neighbours("add_remove"), KEY).codes["value"].tolist() == [0, 1, 1]
