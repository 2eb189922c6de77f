"""Accuracy of the bundles of two audiences, beside two separate releases of the same joint cost.

For each run it releases a table once for both audiences, and by two separate releases: one of the smaller
epsilon, and one of what the larger budget has left beyond that. It prints the mean total variation distance
of three-way marginals of each synthetic table, and that of one release of the larger epsilon alone.

    DPSYNTH_DATA=... python -m benchmarks.audiences nltcs --runs 5
"""

from __future__ import annotations

import argparse
import json
from decimal import Decimal
from fractions import Fraction
from math import sqrt
from statistics import mean, stdev
from tempfile import TemporaryDirectory

import pandas as pd

import dpsynth
from benchmarks.local_model import FILES, table_of, three_way
from dpsynth.accounting.measures import gdp_budget, gdp_epsilon
from dpsynth.config import Spec

DELTA = Decimal("1e-9")


def released(
    frame: pd.DataFrame, columns: dict[str, dict[str, object]], asked: dict[str, object]
) -> dict[str, pd.DataFrame]:
    """The synthetic table of each audience; that of a release of one bundle under the name "only"."""
    with TemporaryDirectory() as folder:
        keys = {"ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "people"}, "columns": columns}
        done = dpsynth.release(frame, Spec.from_dict({**keys, **asked}), outputs=folder)
        return {name: one.synthetic for name, one in (done.audiences or {"only": done}).items()}


def main() -> None:
    """Print the errors of each way, with their standard errors over the runs."""
    parser = argparse.ArgumentParser()
    parser.add_argument("table", choices=tuple(FILES))
    parser.add_argument("--epsilon", type=float, nargs=2, default=[0.5, 2.0])
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    frame, columns = table_of(args.table)
    sizes = {name: int(str(facts["bins"])) for name, facts in columns.items()}
    small, large = args.epsilon
    delta = Fraction(DELTA)
    left = gdp_budget(Fraction(str(large)), delta) - gdp_budget(Fraction(str(small)), delta)
    rest = round(float(gdp_epsilon(left, delta)), 6)
    audiences = {"public": {"epsilon": small}, "partners": {"epsilon": large}}
    ways: dict[str, dict[str, object]] = {
        "together": {"audiences": audiences, "privacy": {"delta": DELTA}},
        f"alone, {small}": {"privacy": {"epsilon": small, "delta": DELTA}},
        f"alone, {rest}": {"privacy": {"epsilon": rest, "delta": DELTA}},
        f"alone, {large}": {"privacy": {"epsilon": large, "delta": DELTA}},
    }
    found: dict[str, list[float]] = {}
    for _ in range(args.runs):
        for way, asked in ways.items():
            for name, table in released(frame, columns, asked).items():
                found.setdefault(f"{way}: {name}", []).append(three_way(table, frame, sizes))
    for name, errors in found.items():
        spread = stdev(errors) / sqrt(len(errors)) if len(errors) > 1 else 0.0
        line = {"table": args.table, "way": name, "three_way": round(mean(errors), 5), "se": round(spread, 5)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
