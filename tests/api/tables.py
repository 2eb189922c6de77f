"""A small private frame, and keyword arguments that release it quickly."""

import numpy as np
import pandas as pd

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 89, "bins": 9, "missing": False},
    "sex": {"type": "category", "values": ["F", "M"]},
    "cost": {"type": "number", "min": 0, "max": 100, "bins": 4, "decimals": 1},
}
KEYS = {"epsilon": 1, "delta": 1e-9, "dataset": "visits", "columns": COLUMNS, "structure": {"method": "mst"}}


def frame(rows: int = 1_000) -> pd.DataFrame:
    """Rows of which every cell is good."""
    chance = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": chance.integers(0, 90, rows),
            "sex": chance.choice(["F", "M"], rows),
            "cost": (chance.random(rows) * 100).round(1),
        }
    )
