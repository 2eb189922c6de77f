"""The secret sample of units: fair coins, one a unit, the same for a release that is resumed."""

from collections.abc import Sequence
from fractions import Fraction
from hashlib import blake2b, shake_256
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.subsampling import Sampling
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.curator import UnitSample, load_rows
from dpsynth.curator.units import person_codes

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


def loaded(persons: Sequence[str], sample: UnitSample = SAMPLE) -> dict[str, int]:
    """The rows of each person that are left of a table in two batches."""
    half = len(persons) // 2
    batches = (
        {"who": pa.array(part), "value": pa.array(["1"] * len(part))}
        for part in (persons[:half], persons[half:])
    )
    rows = load_rows(sample.of(batches, PERSON), (COLUMN,), PERSON, KEY)
    names = sorted(set(persons))
    of = dict(zip(person_codes(pa.array(names), KEY).tolist(), names, strict=True))
    found, number = np.unique(rows.persons, return_counts=True)
    return {of[code]: count for code, count in zip(found.tolist(), number.tolist(), strict=True)}


PERSONS = [f"p{i % 300}" for i in range(900)]


def test_a_person_is_in_the_sample_with_all_rows_or_with_none_by_a_coin_of_her_own() -> None:
    found = loaded(PERSONS)
    assert set(found.values()) == {3} and 20 < len(found) < 110
    fewer = [who for who in PERSONS if who != "p7"]
    assert loaded(fewer).keys() == found.keys() - {"p7"}, "who else is in the table changes no coin"
    assert loaded(PERSONS, UnitSample(SAMPLE.threshold, KEY)) == found, "a resumed release has the same"


def test_a_sample_of_rows_in_place_of_persons_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = UnitSample.rows
    monkeypatch.setattr(UnitSample, "persons", lambda self, people: sound(self, 0, len(people)))
    assert set(loaded(PERSONS).values()) != {3}


def test_all_units_are_loaded_without_a_sample() -> None:
    batches = [{"value": pa.array(["0", "1", "1"])}]
    assert load_rows(batches, (COLUMN,), Neighbours("add_remove"), KEY).codes["value"].tolist() == [0, 1, 1]


def test_rows_of_a_table_are_tossed_by_their_place_in_the_file_whatever_the_batches_are() -> None:
    """A row's coin follows from its place in the whole file: no batch begins again with the first coins."""
    texts = [str(i) for i in range(3_000)]
    found = []
    for long in (3_000, 1_000, 7):
        batches = ({"value": pa.array(texts[at : at + long])} for at in range(0, len(texts), long))
        kept = SAMPLE.of(batches, Neighbours("add_remove"))
        found.append([cell for batch in kept for cell in batch["value"].to_pylist()])
    assert found[0] == found[1] == found[2]
    assert found[0] == [text for text, chosen in zip(texts, SAMPLE.rows(0, 3_000), strict=True) if chosen]


def test_coins_are_those_of_every_version() -> None:
    """Fixed in the source: a release that is resumed by a later version must have the same sample."""
    half = UnitSample(1 << 63, KEY)
    assert np.flatnonzero(half.rows(0, 16)).tolist() == [0, 3, 5, 7, 8, 9, 10, 12, 13, 14, 15]
    assert np.flatnonzero(half.rows((1 << 16) - 8, 16)).tolist() == [2, 3, 6, 7, 9, 11, 13, 14]
    assert np.flatnonzero(half.persons(np.arange(16, dtype=np.uint64))).tolist() == [
        0,
        2,
        5,
        7,
        8,
        10,
        11,
        14,
    ]


def test_a_coin_that_is_the_threshold_is_not_in_the_sample() -> None:
    lone = np.array([7], dtype=np.uint64)
    digest = blake2b(bytes(7) + b"\x07", digest_size=8, key=KEY, person=b"sample persons").digest()
    coin = int.from_bytes(digest, "big")
    assert not UnitSample(coin, KEY).persons(lone)[0] and UnitSample(coin + 1, KEY).persons(lone)[0]
    drawn = shake_256(KEY + b"sample rows" + bytes(8)).digest(32)
    coin = int.from_bytes(drawn[24:], "big")
    assert not UnitSample(coin, KEY).rows(3, 1)[0] and UnitSample(coin + 1, KEY).rows(3, 1)[0]
