"""A release of an event log whose users have few rows or many, for tests of what max_rows cuts off."""

from pathlib import Path

import numpy as np

from dpsynth.config import Spec, from_mapping

ROWS_OF = {"few": lambda rng: rng.integers(1, 4, 3000), "many": lambda rng: rng.integers(1, 40, 3000)}


def log_of(folder: Path, rows: str, **more: object) -> Spec:
    """A release of an event log, whose users have few rows, or many, with a bound of 4."""
    rng = np.random.default_rng(2)
    each = ROWS_OF[rows](rng)
    user = np.repeat(np.arange(len(each)), each)
    seen, kind = rng.integers(0, 3, len(user)), rng.integers(0, 2, len(user))
    lines = [f"{u},{s},{k}" for u, s, k in zip(user, seen, kind, strict=True)]
    (folder / "log.csv").write_text("\n".join(["user,seen,kind", *lines]) + "\n")
    whole = {"type": "category", "missing": False}
    budget = {} if "audiences" in more else {"epsilon": 4}
    privacy = {**budget, "delta": 1e-6, "unit": {"column": "user", "max_rows": 4}}
    return from_mapping(
        {
            "release": "log",
            "source": {"path": str(folder / "log.csv")},
            "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "log"},
            "columns": {
                "seen": {**whole, "values": ["0", "1", "2"]},
                "kind": {**whole, "values": ["0", "1"]},
            },
            "publish": {"statistics": [{"crosstab": ["seen", "kind"]}]},
            **more,
            "privacy": {**privacy, **more.get("privacy", {})},
        }
    )
