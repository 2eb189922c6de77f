"""Made tables as owners might bring them, the same each time: a hospital's, an event log, a census."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
from rules import hospital

_START = np.datetime64("2025-01-01")


def stays() -> pd.DataFrame:
    """A hospital's export: 20 000 stays, with a number that never repeats."""
    frame = hospital().frame
    return frame.assign(case_number=np.arange(700_001, 700_001 + len(frame)))


def events() -> pd.DataFrame:
    """An event log of 4 000 persons with 1 to 25 000 rows each; whoever does more does other things."""
    rng = np.random.default_rng(4)
    persons = 4_000
    rows = np.minimum(np.floor(rng.pareto(0.75, persons) * 3) + 1, 4_000).astype(np.int64)
    rows[0] = 25_000
    person = np.repeat(np.arange(persons), rows)
    heavy, size = np.minimum(np.log1p(rows) / 10, 1)[person], int(rows.sum())
    kinds = np.array(["view", "search", "click", "cart", "order", "return"])
    share = np.array([0.5, 0.2, 0.15, 0.08, 0.05, 0.02])
    kind = np.where(rng.random(size) < 0.5 * heavy, 0, rng.choice(6, size, p=share))
    device = rng.choice(3, persons, p=[0.6, 0.3, 0.1])[person]
    hour = np.clip(rng.normal(15, 4, size), 0, 23.99)
    seconds = rng.integers(0, 365, size) * 86_400 + (hour * 3600).astype(np.int64)
    paid = kind == 4
    frame = pd.DataFrame(
        {
            "user_id": 100_000 + 7 * person,
            "at": (_START + seconds.astype("m8[s]")).astype(str),
            "event": kinds[kind],
            "device": np.array(["phone", "desktop", "tablet"])[device],
            "seconds": np.round(rng.lognormal(2.5 + 0.3 * device, 1.0)).astype(np.int64),
            "amount": np.where(paid, np.round(rng.lognormal(3.5, 0.8, size), 2), np.nan),
            "items": np.where(paid, 1 + rng.binomial(6, 0.2, size), 0),
        }
    )
    return frame.iloc[rng.permutation(size)].reset_index(drop=True)


def census() -> pd.DataFrame:
    """Households of one to six persons, with what all of a household share, and each person's own."""
    rng = np.random.default_rng(2)
    houses = 12_000
    kind = rng.choice(
        ["single", "couple", "family", "parent", "shared"], houses, p=[0.3, 0.27, 0.25, 0.08, 0.1]
    )
    children = np.select(
        [kind == "family", kind == "parent"],
        [1 + rng.binomial(3, 0.3, houses), 1 + rng.binomial(2, 0.3, houses)],
        0,
    )
    adults = np.select([kind == "single", kind == "parent"], [1, 1], 2)
    adults = adults + np.where(kind == "shared", rng.binomial(3, 0.3, houses), 0)
    size = adults + children
    house = np.repeat(np.arange(houses), size)
    number = np.arange(len(house)) - np.repeat(np.cumsum(size) - size, size)
    child = number >= adults[house]
    paired = np.isin(kind, ["couple", "family"])[house]
    relation = np.select([child, number == 0, paired], ["child", "head", "partner"], "other")
    head = np.clip(rng.normal(np.where(children > 0, 42, 52), 13, houses), 20, 94).astype(int)
    age = np.where(
        child,
        np.minimum(rng.integers(0, 26, len(house)), head[house] - 18),
        np.where(number == 0, head[house], np.clip(head[house] + rng.normal(-1, 4, len(house)), 18, 99)),
    ).astype(int)
    together = (rng.random(houses) < 0.75)[house] & paired & ~child
    chance = np.where(age > 65, 0.05, np.where(age < 20, 0.3, 0.75))
    employed = (age >= 16) & (rng.random(len(house)) < chance)
    hours = np.where(employed, np.clip(rng.normal(37, 9, len(house)), 4, 70), 0).round().astype(int)
    earned = rng.lognormal(np.log(hours + 1) + 6.5, 0.4)
    income = np.where(employed, earned, np.where(age < 16, 0, rng.gamma(1.0, 6000, len(house))))
    return pd.DataFrame(
        {
            "household_id": 10_001 + house,
            "type": kind[house],
            "size": size[house],
            "children": children[house],
            "relation": relation,
            "age": age,
            "married": np.where(together, "yes", "no"),
            "employed": np.where(employed, "yes", "no"),
            "hours": hours,
            "income": income.clip(0, 250_000).round().astype(int),
        }
    )


MADE: Mapping[str, Callable[[], pd.DataFrame]] = {"hospital": stays, "events": events, "census": census}
"""The made tables by name."""
