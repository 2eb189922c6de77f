"""Histories: how rows of one person hang together, with `unit.history`, with what never changes, and without.

    DPSYNTH_DATA=FOLDER python benchmarks/histories.py [--epsilon 1 3] [--max-rows 15] [--runs 3]
        [--ways history steady alone]

FOLDER holds the raw table `nlswork.csv.gz`: up to 15 rows of each of 4 711 women, by year. All columns are
compared in the ten quantile bins of the real one, or by values.

"1", "2": mean total variation distance of single columns and of pairs. "lag 1", "lag 2", "lag 5": that of a
column and itself so many rows before, over all such pairs of rows of one person. "ICC": the share of the
variance of the log wage between persons. "r": correlation of the log wage with that of the row before.
"falls": share of rows whose year is before that of the row before. "changes": share of rows in which the
year of birth is another one. "real" has the figures of the real table, whose rows are in order. "steady" is
a history of which race, year of birth and degree never change, and age, grade and experience never fall.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from bins import TABLES
from numpy.typing import NDArray

import dpsynth

NUMBERS, WORDS = TABLES["nlswork"].numbers, TABLES["nlswork"].texts
COLUMNS = (*NUMBERS, *WORDS)
LAGS = (1, 2, 5)
BINS = 10


def table() -> pd.DataFrame:
    """The real rows, in order."""
    raw = pd.read_csv(Path(os.environ["DPSYNTH_DATA"]) / "nlswork.csv.gz")
    found = {"idcode": raw.idcode, **{c: raw[c].round(NUMBERS[c][2]) for c in NUMBERS}}
    found |= {c: raw[c].map(lambda v: None if pd.isna(v) else str(int(v))) for c in WORDS}
    return pd.DataFrame(found).sort_values(["idcode", "year"], kind="stable").reset_index(drop=True)


WAYS = {
    "history": {"order_by": "year"},
    "steady": {
        "order_by": "year",
        "constant": [c for c in ("birth_yr", "race", "collgrad") if c in COLUMNS],
        "rising": [c for c in ("age", "grade", "ttl_exp") if c in COLUMNS],
    },
    "alone": None,
}


def released(rows: pd.DataFrame, epsilon: float, most: int, way: str) -> pd.DataFrame:
    """Synthetic rows of one release."""
    columns: dict[str, object] = {"idcode": {"type": "identifier", "surrogates": True}}
    for c, (low, high, decimals) in NUMBERS.items():
        kind = {"type": "number", "decimals": decimals} if decimals else {"type": "integer"}
        columns[c] = {**kind, "min": low, "max": high}
    for c in WORDS:
        columns[c] = {"type": "category", "values": sorted(rows[c].dropna().unique())}
    unit = {"column": "idcode", "max_rows": most, **({"history": WAYS[way]} if WAYS[way] else {})}
    with tempfile.TemporaryDirectory() as folder:
        spec = dpsynth.Spec.from_dict(
            {
                "release": "nlswork",
                "privacy": {"epsilon": epsilon, "delta": 1e-6, "unit": unit, "on_empty": "go"},
                "columns": columns,
                "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "x", "cap": {"epsilon": 100}},
            }
        )
        shuffled = rows.sample(frac=1, random_state=1).reset_index(drop=True)
        return dpsynth.release(shuffled, spec, outputs=Path(folder) / "out", tell=lambda _: None).synthetic


def _codes(real: pd.DataFrame, rows: pd.DataFrame) -> dict[str, tuple[NDArray[np.int64], int]]:
    found = {}
    for c in COLUMNS:
        if c in NUMBERS:
            edges = np.unique(np.nanquantile(real[c].to_numpy(float), np.arange(1, BINS) / BINS))
            own = rows[c].to_numpy(float, na_value=np.nan)
            codes = np.where(np.isnan(own), len(edges) + 1, np.searchsorted(edges, own, side="right"))
            found[c] = codes.astype(np.int64), len(edges) + 2
        else:
            values = {v: i for i, v in enumerate(sorted(real[c].dropna().unique()))}
            codes = rows[c].astype(str).map(values).fillna(len(values)).to_numpy(np.int64)
            found[c] = codes, len(values) + 1
    return found


def _shares(codes: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    return np.bincount(codes, minlength=size) / max(len(codes), 1)


def _between(rows: pd.DataFrame) -> float:
    """The share of the variance of the log wage between persons, by a one-way analysis of variance."""
    kept = rows[rows.ln_wage.notna()]
    who, wage = pd.factorize(kept.idcode)[0], kept.ln_wage.to_numpy(float)
    each = np.bincount(who)
    means = np.bincount(who, wage) / each
    usual = (len(wage) - (each**2).sum() / len(wage)) / (len(each) - 1)
    between = (each * (means - wage.mean()) ** 2).sum() / (len(each) - 1)
    within = ((wage - means[who]) ** 2).sum() / max(len(wage) - len(each), 1)
    return float((between - within) / (between + (usual - 1) * within))


def scores(real: pd.DataFrame, rows: pd.DataFrame) -> dict[str, float]:
    """The figures of synthetic rows beside the real ones; of the real rows themselves, errors are 0."""
    mine, theirs = _codes(real, real), _codes(real, rows)

    def far(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        return float(np.abs(one - other).sum() / 2)

    def lagged(codes: NDArray[np.int64], who: NDArray[np.int64], size: int, lag: int) -> NDArray[np.float64]:
        same = who[lag:] == who[:-lag]
        return _shares(codes[:-lag][same] * size + codes[lag:][same], size**2)

    whose = [pd.factorize(t.idcode)[0] for t in (real, rows)]
    found = {"1": fmean(far(_shares(*mine[c]), _shares(*theirs[c])) for c in COLUMNS)}
    gaps = []
    for a, b in combinations(COLUMNS, 2):
        size = mine[b][1]
        pair = [_shares(of[a][0] * size + of[b][0], mine[a][1] * size) for of in (mine, theirs)]
        gaps.append(far(*pair))
    found["2"] = fmean(gaps)
    for lag in LAGS:
        found[f"lag {lag}"] = fmean(
            far(
                lagged(mine[c][0], whose[0], mine[c][1], lag), lagged(theirs[c][0], whose[1], mine[c][1], lag)
            )
            for c in COLUMNS
        )
    same = whose[1][1:] == whose[1][:-1]
    wage, year, born = (rows[c].to_numpy(float, na_value=np.nan) for c in ("ln_wage", "year", "birth_yr"))
    born = np.nan_to_num(born, nan=-1.0)
    both = same & ~np.isnan(wage[1:]) & ~np.isnan(wage[:-1])
    found["ICC"] = _between(rows) if same.any() else float("nan")
    found["r"] = float(np.corrcoef(wage[1:][both], wage[:-1][both])[0, 1]) if both.sum() > 1 else float("nan")
    found["falls"] = float(np.mean((year[1:] < year[:-1])[same])) if same.any() else float("nan")
    found["changes"] = float(np.mean((born[1:] != born[:-1])[same])) if same.any() else float("nan")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--max-rows", type=int, default=15)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    given = parser.parse_args()
    real = table()
    print("real", {k: round(v, 3) for k, v in scores(real, real).items()})
    for epsilon in given.epsilon:
        for way in given.ways:
            runs, began = [], time.process_time()
            for _ in range(given.runs):
                runs.append(scores(real, released(real, epsilon, given.max_rows, way)))
            cpu = (time.process_time() - began) / given.runs
            means = {k: round(fmean(r[k] for r in runs), 3) for k in runs[0]}
            spread = {k: round(float(np.std([r[k] for r in runs])), 3) for k in ("2", "lag 1", "ICC")}
            print(f"epsilon {epsilon:g}", way, means, "spread", spread, flush=True)
            print(f"  {cpu:.1f} CPU seconds a release", flush=True)


if __name__ == "__main__":
    main()
