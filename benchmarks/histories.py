"""Histories: how rows of one person hang together, with `unit.history`, with what never changes, and without.

    DPSYNTH_DATA=FOLDER python benchmarks/histories.py [--table nlswork randhie] [--epsilon 1 3] [--runs 3]
        [--ways history steady alone]

FOLDER holds the raw table `nlswork.csv.gz`: up to 15 rows of each of 4 711 women, by year. `randhie` is that
of `configs/randhie.yaml`: up to five years of 5 912 persons. All columns are compared in the ten quantile
bins of the real one, or by values.

"1", "2": mean total variation distance of single columns and of pairs. "lag 1", "lag 2", ...: that of a
column and itself so many rows before, over all such pairs of rows of one person. "stays": mean error of the
share of rows with the very value of the row before. "ICC": the share of the variance of the log wage, or of
visits, between persons. "r": its correlation with that of the row before. "falls": share of rows whose year
is before that of the row before. "changes": share of rows in which the year of birth, or income, is another.
"real" has the figures of the real table, whose rows are in order. "steady" is a history of which the columns
that `dpsynth check` proposes never change or fall.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import yaml
from bins import TABLES
from numpy.typing import NDArray

import dpsynth

BINS = 10
WAYS = ("history", "steady", "alone")


@dataclass(frozen=True)
class Panel:
    """Real rows in order, and what is released of them.

    Attributes:
        columns: of the configuration.
        bound: `max_rows`.
        numbers: columns that are compared in bins.
        ways: `unit.history` by way.
        level: the column of "ICC" and "r".
        fixed: the column of "changes".
    """

    rows: pd.DataFrame
    person: str
    bound: int
    columns: Mapping[str, object]
    numbers: Sequence[str]
    ways: Mapping[str, Mapping[str, object] | None]
    level: str
    fixed: str
    lags: Sequence[int]

    @property
    def names(self) -> list[str]:
        return [c for c in self.columns if c != self.person]


def nlswork() -> Panel:
    of = TABLES["nlswork"]
    raw = pd.read_csv(Path(os.environ["DPSYNTH_DATA"]) / "nlswork.csv.gz")
    found = {"idcode": raw.idcode, **{c: raw[c].round(of.numbers[c][2]) for c in of.numbers}}
    found |= {c: raw[c].map(lambda v: None if pd.isna(v) else str(int(v))) for c in of.texts}
    rows = pd.DataFrame(found).sort_values(["idcode", "year"], kind="stable").reset_index(drop=True)
    columns: dict[str, object] = {"idcode": {"type": "identifier", "surrogates": True}}
    for c, (low, high, decimals) in of.numbers.items():
        kind = {"type": "number", "decimals": decimals} if decimals else {"type": "integer"}
        columns[c] = {**kind, "min": low, "max": high}
    for c in of.texts:
        columns[c] = {"type": "category", "values": sorted(rows[c].dropna().unique())}
    steady = {"constant": ["birth_yr", "race", "collgrad"], "rising": ["age", "grade", "ttl_exp"]}
    return Panel(
        rows, "idcode", 15, columns, list(of.numbers), _ways(steady), "ln_wage", "birth_yr", (1, 2, 5)
    )


def rand() -> Panel:
    given = yaml.safe_load((Path(__file__).parents[1] / "configs" / "randhie.yaml").read_text())
    columns = {"zper": {"type": "identifier", "surrogates": True}, **given["columns"]}
    path = files("statsmodels") / "datasets" / "randhie" / "src" / "randhie.csv"
    rows = pd.read_csv(str(path))[list(columns)].sort_values(["zper", "year"]).reset_index(drop=True)
    rows["xage"] = np.floor(rows.xage)
    numbers = [c for c, own in columns.items() if own["type"] in ("number", "integer") and c != "year"]
    constant = [c for c in columns if rows.groupby("zper")[c].nunique(dropna=False).max() == 1]
    for c in set(columns) - {"zper", *numbers}:
        rows[c] = rows[c].astype(int).astype(str)
    steady = {"constant": constant[1:], "rising": ["xage"]}
    return Panel(rows, "zper", 5, columns, numbers, _ways(steady), "mdvis", "income", (1, 2, 4))


def _ways(steady: Mapping[str, object]) -> dict[str, Mapping[str, object] | None]:
    return dict(zip(WAYS, ({"order_by": "year"}, {"order_by": "year", **steady}, None), strict=True))


PANELS = {"nlswork": nlswork, "randhie": rand}


def released(panel: Panel, epsilon: float, way: str) -> pd.DataFrame:
    """Synthetic rows of one release."""
    history = panel.ways[way]
    unit = {"column": panel.person, "max_rows": panel.bound, **({"history": history} if history else {})}
    with tempfile.TemporaryDirectory() as folder:
        spec = dpsynth.Spec.from_dict(
            {
                "release": "panel",
                "privacy": {"epsilon": epsilon, "delta": 1e-6, "unit": unit, "on_empty": "go"},
                "columns": panel.columns,
                "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "x", "cap": {"epsilon": 100}},
            }
        )
        shuffled = panel.rows.sample(frac=1, random_state=1).reset_index(drop=True)
        return dpsynth.release(shuffled, spec, outputs=Path(folder) / "out", tell=lambda _: None).synthetic


def _codes(panel: Panel, rows: pd.DataFrame) -> dict[str, tuple[NDArray[np.int64], int]]:
    real, found = panel.rows, {}
    for c in panel.names:
        if c in panel.numbers:
            edges = np.unique(np.nanquantile(real[c].to_numpy(float), np.arange(1, BINS) / BINS))
            own = rows[c].to_numpy(float, na_value=np.nan)
            codes = np.where(np.isnan(own), len(edges) + 1, np.searchsorted(edges, own, side="right"))
            found[c] = codes.astype(np.int64), len(edges) + 2
        else:
            values = {str(v): i for i, v in enumerate(sorted(real[c].dropna().unique()))}
            texts = rows[c].astype(str).replace({"True": "1", "False": "0"})
            codes = texts.map(values).fillna(len(values)).to_numpy(np.int64)
            found[c] = codes, len(values) + 1
    return found


def _shares(codes: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    return np.bincount(codes, minlength=size) / max(len(codes), 1)


def _between(persons: pd.Series, values: NDArray[np.float64]) -> float:
    """The share of the variance of values between persons, by a one-way analysis of variance."""
    who, wage = pd.factorize(persons[~np.isnan(values)])[0], values[~np.isnan(values)]
    each = np.bincount(who)
    means = np.bincount(who, wage) / each
    usual = (len(wage) - (each**2).sum() / len(wage)) / (len(each) - 1)
    between = (each * (means - wage.mean()) ** 2).sum() / (len(each) - 1)
    within = ((wage - means[who]) ** 2).sum() / max(len(wage) - len(each), 1)
    return float((between - within) / (between + (usual - 1) * within))


def scores(panel: Panel, rows: pd.DataFrame) -> dict[str, float]:
    """The figures of synthetic rows beside the real ones; of the real rows themselves, errors are 0."""
    tables = panel.rows, rows
    mine, theirs = (_codes(panel, t) for t in tables)

    def far(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        return float(np.abs(one - other).sum() / 2)

    def lagged(codes: NDArray[np.int64], who: NDArray[np.int64], size: int, lag: int) -> NDArray[np.float64]:
        same = who[lag:] == who[:-lag]
        return _shares(codes[:-lag][same] * size + codes[lag:][same], size**2)

    whose = [pd.factorize(t[panel.person])[0] for t in tables]
    found = {"1": fmean(far(_shares(*mine[c]), _shares(*theirs[c])) for c in panel.names)}
    gaps = []
    for a, b in combinations(panel.names, 2):
        size = mine[b][1]
        pair = [_shares(of[a][0] * size + of[b][0], mine[a][1] * size) for of in (mine, theirs)]
        gaps.append(far(*pair))
    found["2"] = fmean(gaps)
    for lag in panel.lags:
        found[f"lag {lag}"] = fmean(
            far(
                lagged(mine[c][0], whose[0], mine[c][1], lag), lagged(theirs[c][0], whose[1], mine[c][1], lag)
            )
            for c in panel.names
        )
    alike = [who[1:] == who[:-1] for who in whose]
    stays = [[_stays(t[c], own) for c in panel.names] for t, own in zip(tables, alike, strict=True)]
    found["stays"] = fmean(abs(a - b) for a, b in zip(*stays, strict=True))
    same = alike[1]
    level, year, fixed = (
        rows[c].to_numpy(float, na_value=np.nan) for c in (panel.level, "year", panel.fixed)
    )
    fixed = np.nan_to_num(fixed, nan=-1.0)
    both = same & ~np.isnan(level[1:]) & ~np.isnan(level[:-1])
    pairs = level[1:][both], level[:-1][both]
    found["ICC"] = _between(rows[panel.person], level) if same.any() else float("nan")
    found["r"] = float(np.corrcoef(*pairs)[0, 1]) if both.sum() > 1 else float("nan")
    found["falls"] = float(np.mean((year[1:] < year[:-1])[same])) if same.any() else float("nan")
    found["changes"] = float(np.mean((fixed[1:] != fixed[:-1])[same])) if same.any() else float("nan")
    return found


def _stays(own: pd.Series, same: NDArray[np.bool_]) -> float:
    """The share of rows with the value of the row before, among those after one of the same person."""
    codes = pd.factorize(own, use_na_sentinel=False)[0]
    return float((codes[1:] == codes[:-1])[same].mean()) if same.any() else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--table", nargs="+", choices=PANELS, default=list(PANELS))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    given = parser.parse_args()
    for table in given.table:
        panel = PANELS[table]()
        print(table, "real", {k: round(v, 3) for k, v in scores(panel, panel.rows).items()})
        for epsilon in given.epsilon:
            for way in given.ways:
                runs, began = [], time.process_time()
                for _ in range(given.runs):
                    runs.append(scores(panel, released(panel, epsilon, way)))
                cpu = (time.process_time() - began) / given.runs
                means = {k: round(fmean(r[k] for r in runs), 3) for k in runs[0]}
                spread = {k: round(float(np.std([r[k] for r in runs])), 3) for k in ("2", "lag 1", "ICC")}
                print(f"epsilon {epsilon:g}", way, means, "spread", spread, flush=True)
                print(f"  {cpu:.1f} CPU seconds a release", flush=True)


if __name__ == "__main__":
    main()
