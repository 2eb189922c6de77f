"""Open categories keep the heaviest of what was named; beginnings grow where rows are."""

from fractions import Fraction

import numpy as np
import pytest

from dpsynth.columns.column import PrefixSearch, ValueSearch
from dpsynth.strategy import discovery as partitions
from dpsynth.strategy.discovery import private_prefixes, private_values
from dpsynth.testing import FakeDoor
from tests.strategy.discovery.searched import sought

PRICE = Fraction(1, 100)
RNG = np.random.default_rng(0)


def values(search, named, texts=(), **more):
    door = FakeDoor.of_column(list(texts), np.random.default_rng(0), named=named, exact=True)
    return private_values(door, sought(search, **more), search, PRICE, Fraction(1, 10**9)), door


def test_known_values_come_first_and_found_ones_sorted():
    found, door = values(ValueSearch(("m", "a"), 10, "else"), ("z", "b", "a"))
    assert found.labels == ("m", "a", "b", "z", "else")
    assert [kind for kind, _, _ in door.asked] == ["values"] and door.asked[0][1] == ("m", "a")


def test_of_too_many_values_the_heaviest_stay():
    texts = ["r"] * 5 + ["s"] * 3 + ["t"] * 9 + ["k"] * 99
    found, door = values(ValueSearch(("k",), 3, "else"), ("r", "s", "t"), texts)
    assert found.labels == ("k", "r", "t", "else")
    assert [kind for kind, _, _ in door.asked] == ["values", "counts"] and door.spent == PRICE


def test_no_room_asks_for_no_counts():
    found, door = values(ValueSearch(("k",), 1, "else"), ("r", "s"))
    assert found.labels == ("k", "else") and len(door.asked) == 1


def test_a_value_called_like_another_place_counts_as_other():
    found, _ = values(
        ValueSearch((), 9, "else"), ("else", "(missing)", "(missing: no)", "x"), distinct=("no",)
    )
    assert found.labels == ("x", "else")


def test_nothing_found_leaves_the_place_of_others():
    assert values(ValueSearch((), 9, "else"), ())[0].labels == ("else",)


def towns(rows=20_000):
    """Postcodes: half in one town, many in another district, few elsewhere."""
    kind = RNG.random(rows)
    somewhere = [f"{n:05}" for n in RNG.integers(0, 100_000, rows)]
    return [
        "75011" if k < 0.5 else f"750{n % 100:02}" if k < 0.8 else somewhere[n] for n, k in enumerate(kind)
    ]


def beginnings(texts, most=300, levels=(1, 3, 5), **more):
    search = PrefixSearch(r"\d{5}", levels, most)
    door = FakeDoor.of_column(texts, np.random.default_rng(0), **more)
    return private_prefixes(door, sought(search), search, PRICE).prefixes, door


def test_beginnings_are_long_where_rows_are_and_short_elsewhere():
    found, door = beginnings(towns())
    assert {"75011", "75099", "0", "9", "700"} <= set(found) and "7" not in found
    assert door.spent == PRICE and len(door.asked) == 2


def test_a_threshold_of_nothing_is_caught(monkeypatch):
    texts = [t for t in towns() if t.startswith("7")]
    assert {"0", "9"} <= set(beginnings(texts)[0])
    monkeypatch.setattr(partitions, "LEAST", -99.0)
    monkeypatch.setattr(partitions, "sqrt", lambda _: -99.0)
    assert not {"0", "9"} <= set(beginnings(texts, most=2000)[0])


@pytest.mark.parametrize(("most", "longest"), [(10, 1), (108, 1), (109, 3), (207, 3), (208, 5)])
def test_no_more_beginnings_than_there_may_be(most, longest):
    texts = [t for t in towns() if t.startswith("750")]
    found, _ = beginnings(texts, most=most, exact=True)
    assert len(found) <= most and max(map(len, found)) == longest


def test_one_level_needs_no_question():
    found, door = beginnings(towns(), levels=(2,))
    assert len(found) == 100 and not door.asked
