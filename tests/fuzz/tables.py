"""A small table of every type of column, with a canary in it, and the spec that reads it."""

import random
from functools import cache

from dpsynth.config import Spec, from_mapping

CANARY = "K4N4RY"
HEADER = ("person", "age", "income", "sex", "smoker", "born", "seen", "woke", "stay", "code", "notes")
COLUMNS: dict[str, object] = {
    "age": {"type": "integer", "min": 0, "max": 89, "bins": 9, "missing": ["?", -9]},
    "income": {"type": "number", "min": 0, "max": 100, "bins": 4, "decimals": 1, "missing": False},
    "sex": {"type": "category", "values": ["F", "M"], "missing": {"distinct": ["x"], "markers": ["?"]}},
    "smoker": {"type": "boolean", "values": ["no", "yes"]},
    "born": {"type": "date", "min": "1940-01-01", "max": "2009-12-31", "unit": "year"},
    "seen": {"type": "datetime", "min": "2020-01-01", "max": "2020-12-31", "unit": "month"},
    "woke": {"type": "time", "unit": "hour", "format": "%H:%M"},
    "stay": {"type": "duration", "min": 0, "max": 90, "unit": "hour", "format": "minutes"},
    "code": {"type": "text", "pattern": "[0-9]{5}", "keep": 1},
}


@cache
def spec(person: bool, kind: str) -> Spec:
    """A release of the table by person or by row."""
    values: dict[str, object] = {
        "release": "r",
        "source": {"path": f"table.{kind}", "format": kind},
        "privacy": {
            "epsilon": 1,
            "on_empty": "go",
            **({"unit": {"column": "person", "max_rows": 3}} if person else {}),
        },
        "columns": COLUMNS,
    }
    return from_mapping(values)  # type: ignore[arg-type]


def rows(chance: random.Random, most: int = 40) -> list[list[str]]:
    """Rows of which every cell is good; the notes hold the canary."""
    return [
        [
            f"p{chance.randrange(9)}",
            f"{chance.randrange(90)}",
            f"{chance.random() * 100:.1f}",
            chance.choice("FM?x"),
            chance.choice(("no", "yes", "")),
            f"{chance.randrange(1940, 2010)}-0{chance.randrange(1, 10)}-15",
            f"2020-0{chance.randrange(1, 10)}-01T12:00:00",
            f"{chance.randrange(24):02}:30",
            f"{chance.randrange(100)}",
            f"{chance.randrange(100_000):05}",
            CANARY,
        ]
        for _ in range(chance.randrange(most))
    ]
