"""Small linked tables for tests: households, persons and their trips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

TABLES: Mapping[str, Any] = {
    "households": {
        "key": "house",
        "unit": "household",
        "columns": {
            "region": {"type": "category", "values": ["N", "S"], "missing": False},
            "rent": {"type": "integer", "min": 0, "max": 999},
        },
        "derived": {
            "minors": {"count": "persons", "where": "age < 18"},
            "has_adult": {"any": "persons", "where": "age >= 18"},
        },
        "constraints": ["persons == 0 or persons_1_age >= 18"],
    },
    "persons": {
        "key": ["house", "number"],
        "parent": {"table": "households", "key": "house", "max_children": 3},
        "order_by": "number",
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 99, "missing": False},
            "sex": {"type": "category", "values": ["f", "m"]},
        },
    },
    "trips": {
        "parent": {"table": "persons", "key": ["house", "number"], "max_children": 2},
        "columns": {"mode": {"type": "category", "values": ["walk", "bus", "car"], "missing": False}},
    },
}


def two(**more: object) -> dict[str, Any]:
    """The tables without trips."""
    return {name: dict(table) for name, table in TABLES.items() if name != "trips"} | more


def frames(houses: int = 400, seed: int = 3, *, wild: bool = False) -> dict[str, pd.DataFrame]:
    """Households of 0 to 5 persons of 0 to 3 trips; the first two persons are of about one age.

    Args:
        wild: with keys that are there twice, spelt in several ways, missing, or of nobody.
    """
    rng = np.random.default_rng(seed)
    above, persons, trips = [], [], []
    for house in range(houses):
        above.append((str(house), "NS"[rng.integers(2)], str(rng.integers(1000))))
        oldest = int(rng.integers(20, 90))
        for number in range(1, 1 + int(rng.choice(6, p=[0.05, 0.3, 0.3, 0.2, 0.1, 0.05]))):
            age = oldest + int(rng.integers(-3, 4)) if number < 3 else int(rng.integers(0, 18))
            persons.append((str(house), str(number), str(age), "fm"[rng.integers(2)]))
            for _ in range(rng.integers(4)):
                trips.append((str(house), str(number), ["walk", "bus", "car"][min(age // 20, 2)]))
    if wild:
        above += [("0", "N", "7"), ("", "S", "1"), (" 1.0 ", "S", "5"), (None, "N", "2")]
        persons += [
            ("01", "9", "44", "f"),
            ("99999", "1", "3", "m"),
            ("", "1", "5", "f"),
            (None, "1", "5", "m"),
        ]
        persons += [("2", "1", "70", "m"), ("2 ", None, "71", "x"), ("3", "eleven", "oops", "m")]
        trips += [
            ("1", "9", "bus"),
            ("2", "1", "car"),
            ("99999", "1", "car"),
            ("4", "77", "walk"),
            ("5", "", "bus"),
        ]
    found = {
        "households": pd.DataFrame(above, columns=["house", "region", "rent"]),
        "persons": pd.DataFrame(persons, columns=["house", "number", "age", "sex"]),
        "trips": pd.DataFrame(trips, columns=["house", "number", "mode"]),
    }
    return {name: f.sample(frac=1, random_state=seed).reset_index(drop=True) for name, f in found.items()}
