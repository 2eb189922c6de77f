"""A bundle of four linked tables, made once: three levels, two children of the root, keys of two columns."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from tests.seeded_noise import seed_noise

from .linked import TABLES, frames


def street(houses: int = 700) -> tuple[dict[str, object], dict[str, pd.DataFrame]]:
    """Households with persons, of whom the first two are told apart, with their trips; and with cars."""
    tables = copy.deepcopy(dict(TABLES))
    tables["persons"]["parent"] |= {"max_children": 5, "roles": 2}
    tables["cars"] = {
        "parent": {"table": "households", "key": "home", "max_children": 2},
        "columns": {
            "age": {"type": "integer", "min": 0, "max": 9, "missing": False},
            "born in": {"type": "date", "min": "2000-01-01", "max": "2019-12-31", "format": "%d.%m.%Y"},
        },
    }
    tables["households"]["derived"] |= {
        "cars_age": {"sum": "cars", "of": "age"},
        "newest": {"max": "cars", "of": "born in", "where": "age < 9"},
    }
    given, rng = frames(houses), np.random.default_rng(5)
    cars = [
        (str(house), int(rng.integers(10)), int(rng.integers(2019))) for house in range(houses) for _ in "ab"
    ]
    given["cars"] = pd.DataFrame(cars, columns=["home", "age", "born in"]).sample(frac=0.6, random_state=1)
    given["cars"]["born in"] = [f"0{1 + d % 9}.03.20{d % 20:02d}" for d in given["cars"]["born in"]]
    return tables, given


@pytest.fixture(scope="session")
def linked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public folder of a release of the street, of noise that is the same each time."""
    folder = tmp_path_factory.mktemp("street")
    tables, given = street()
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, seed=2)
        done = dpsynth.release(
            given, tables=tables, epsilon=9, dataset="street", ledger=folder / "l.db", outputs=folder / "out"
        )
    return done.handed_over
