"""The effect of the declared number of bins on a release: raw tables, judged on cells that no config knows.

    DPSYNTH_DATA=FOLDER python benchmarks/bins.py [--tables aci flights loans adult nlswork]
        [--epsilon 1] [--bins 8 32 128 none] [--types declared number tree] [--runs 5]

Four fifths of the rows are released, with bounds that are round numbers and with ``bins`` as given for every
column of numbers; none leaves the key out. --types number declares whole numbers as numbers of 0 decimals;
tree has bins found.
tvd2 and tvd3 are mean total variation distances of all pairs, and of 120 triples, over 12 quantile cells of
the real columns; rho is the mean error of rank correlations; ml is what a random forest, trained on the
synthetic rows, scores on the real rows held out: accuracy for aci, area under the curve for the others.
Printed are means over the runs, with standard errors.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from statistics import mean

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from relations import means_of, released
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import OrdinalEncoder

from first_contact import brought  # isort: skip

CELLS = 12
TRIPLES = 120
DELTA = 1e-5
Range = tuple[float, float, int]
"""Least and largest value, and decimals."""


@dataclass(frozen=True)
class Table:
    """A raw table: ranges of its numbers, its other columns, what a forest foretells, and the rows used."""

    file: str
    numbers: Mapping[str, Range]
    texts: Sequence[str]
    target: str
    above: float | None = None
    rows: int | None = None


TABLES = {
    "aci": Table(
        "artificial-characters",
        {
            "V1": (0, 7, 0),
            "V2": (0, 50, 0),
            "V3": (0, 70, 0),
            "V4": (0, 50, 0),
            "V5": (-2, 70, 0),
            "V6": (0, 60, 2),
            "V7": (0, 80, 2),
        },
        ("Class",),
        "Class",
    ),
    "flights": Table(
        "flights",
        {
            "dep_delay": (-60, 1440, 0),
            "arr_delay": (-120, 1440, 0),
            "air_time": (0, 720, 0),
            "distance": (0, 5000, 0),
            "hour": (0, 23, 0),
        },
        ("carrier", "origin", "month"),
        "arr_delay",
        15,
        30_000,
    ),
    "loans": Table(
        "loans",
        {
            "annual_income": (0, 500_000, 0),
            "debt_to_income": (0, 100, 2),
            "loan_amount": (0, 40_000, 0),
            "interest_rate": (0, 35, 2),
            "installment": (0, 1600, 2),
            "balance": (0, 40_000, 2),
            "paid_total": (0, 45_000, 2),
            "open_credit_lines": (0, 60, 0),
            "total_credit_limit": (0, 2_000_000, 0),
            "emp_length": (0, 10, 0),
        },
        ("homeownership", "grade", "term", "loan_purpose", "application_type"),
        "interest_rate",
        11.5,
    ),
    "adult": Table(
        "adult",
        {
            "age": (17, 90, 0),
            "education-num": (1, 16, 0),
            "capital-gain": (0, 100_000, 0),
            "capital-loss": (0, 5_000, 0),
            "hours-per-week": (1, 99, 0),
        },
        (
            "workclass",
            "marital-status",
            "occupation",
            "relationship",
            "race",
            "sex",
            "native-country",
            "income",
        ),
        "income",
    ),
    "nlswork": Table(
        "nlswork",
        {
            "year": (68, 88, 0),
            "birth_yr": (40, 55, 0),
            "age": (14, 46, 0),
            "grade": (0, 18, 0),
            "ttl_exp": (0, 30, 2),
            "tenure": (0, 26, 2),
            "hours": (1, 168, 0),
            "wks_work": (0, 104, 0),
            "ln_wage": (0, 6, 2),
        },
        ("race", "msp", "collgrad", "south", "union"),
        "ln_wage",
        1.65,
    ),
}


@dataclass(frozen=True)
class Judge:
    """The measure of a synthetic table: the real rows that were released, and those held out."""

    table: Table
    real: pd.DataFrame
    held_out: pd.DataFrame

    def codes(self, frame: pd.DataFrame) -> dict[str, NDArray[np.int64]]:
        """Quantile cells of the real column, or values; a blank has a cell of its own."""
        found = {}
        for c in self.real:
            if c in self.table.numbers:
                numbers = pd.to_numeric(self.real[c], errors="coerce")
                edges = np.unique(numbers.dropna().quantile(np.arange(1, CELLS) / CELLS))
                own = pd.to_numeric(frame[c], errors="coerce").to_numpy()
                cells = np.searchsorted(edges, own, side="right")
                found[c] = np.where(np.isnan(own), len(edges) + 1, cells)
            else:
                values = sorted(self.real[c].fillna("").astype(str).unique())
                places = {v: i for i, v in enumerate(values)}
                found[c] = frame[c].fillna("").astype(str).map(places).fillna(len(values)).to_numpy(np.int64)
        return found

    def distances(self, synthetic: pd.DataFrame) -> dict[str, float]:
        """tvd2 and tvd3."""
        mine, theirs = self.codes(self.real), self.codes(synthetic)
        pairs = list(combinations(mine, 2))
        triples = list(combinations(mine, 3))
        chosen = np.random.default_rng(0).permutation(len(triples))[:TRIPLES]
        told = {"tvd2": pairs, "tvd3": [triples[i] for i in chosen]}
        return {
            name: mean(_distance([[of[c] for c in some] for of in (mine, theirs)]) for some in cliques)
            for name, cliques in told.items()
        }

    def correlations(self, synthetic: pd.DataFrame) -> dict[str, float]:
        """Rho."""
        ranks = [
            frame[list(self.table.numbers)].apply(pd.to_numeric, errors="coerce").rank().corr().to_numpy()
            for frame in (self.real, synthetic)
        ]
        upper = np.triu_indices(len(self.table.numbers), 1)
        return {"rho": float(np.nanmean(np.abs(ranks[0] - np.nan_to_num(ranks[1]))[upper]))}

    def forest(self, synthetic: pd.DataFrame) -> dict[str, float]:
        """Ml."""
        table, target = self.table, self.table.target
        known = synthetic[pd.to_numeric(synthetic[target], errors="coerce").notna() | (table.above is None)]
        inputs = [self._inputs(frame) for frame in (known, self.held_out)]
        wanted = [self._wanted(frame) for frame in (known, self.held_out)]
        if len(set(wanted[0])) < 2:
            return {"ml": 0.5}
        model = RandomForestClassifier(100, min_samples_leaf=2, random_state=0).fit(inputs[0], wanted[0])
        if target == "Class":
            return {"ml": float((model.predict(inputs[1]) == wanted[1]).mean())}
        return {"ml": float(roc_auc_score(wanted[1], model.predict_proba(inputs[1])[:, 1]))}

    def _wanted(self, frame: pd.DataFrame) -> NDArray[np.generic]:
        of = frame[self.table.target]
        if self.table.above is not None:
            return (pd.to_numeric(of) > self.table.above).to_numpy()
        return of.astype(str).to_numpy()

    def _inputs(self, frame: pd.DataFrame) -> NDArray[np.float64]:
        numbers = [c for c in self.table.numbers if c != self.table.target]
        texts = [c for c in self.table.texts if c != self.table.target]
        coder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        coder.fit(self.real[texts].fillna("").astype(str))
        coded = coder.transform(frame[texts].fillna("").astype(str))
        own = frame[numbers].apply(pd.to_numeric, errors="coerce").fillna(-1).to_numpy(float)
        return np.hstack([own, coded])


def _distance(sides: Sequence[Sequence[NDArray[np.int64]]]) -> float:
    shape = [1 + max(int(side[i].max()) for side in sides) for i in range(len(sides[0]))]
    shares = [
        np.bincount(np.ravel_multi_index(side, shape), minlength=int(np.prod(shape))) / len(side[0])
        for side in sides
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def posed(name: str, work: Path) -> tuple[Judge, dict[str, object]]:
    """The judge of a table, and the config of a release that says nothing of bins."""
    table = TABLES[name]
    frame = pd.read_csv(brought(table.file, work, None), dtype=str)
    if "split" in frame:
        frame = frame[frame["split"] == "train"]
    frame = frame[[*table.numbers, *table.texts]].replace({"?": np.nan, "NA": np.nan})
    if table.above is not None:
        frame = frame[pd.to_numeric(frame[table.target], errors="coerce").notna()]
    frame = frame.sample(min(table.rows or len(frame), len(frame)), random_state=1)
    first = len(frame) * 4 // 5
    real, held_out = frame.iloc[:first], frame.iloc[first:]
    path = work / f"{name}-real.csv"
    real.to_csv(path, index=False)
    declared: dict[str, object] = {
        c: {"type": "number" if decimals else "integer", "min": low, "max": high}
        | ({"decimals": decimals} if decimals else {})
        for c, (low, high, decimals) in table.numbers.items()
    }
    declared |= {c: {"type": "category", "values": sorted(frame[c].dropna().unique())} for c in table.texts}
    columns = {c: {**d, "missing": bool(frame[c].isna().any())} for c, d in declared.items()}
    privacy = {"epsilon": 1.0, "delta": DELTA, "on_empty": "go"}
    return Judge(table, real, held_out), {
        "source": {"path": str(path)},
        "privacy": privacy,
        "columns": columns,
    }


def with_bins(config: dict[str, object], table: Table, bins: int | None, kind: str) -> dict[str, object]:
    """The config with so many bins in every column of numbers, as far as it has so many values."""
    columns = dict(config["columns"])
    for c, (low, high, decimals) in table.numbers.items():
        declared = dict(columns[c])
        if kind == "number":
            declared |= {"type": "number", "decimals": decimals}
        elif kind == "tree":
            declared["edges"] = "tree"
        if bins is not None:
            declared["bins"] = min(bins, round((high - low) * 10**decimals) + (declared["type"] == "integer"))
        columns[c] = declared
    return config | {"columns": columns}


def main() -> None:
    """Print a line for each table, epsilon, type and number of bins."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0])
    parser.add_argument("--bins", nargs="+", default=["8", "32", "128", "none"])
    parser.add_argument("--types", nargs="+", default=["declared"])
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    for name in given.tables:
        with tempfile.TemporaryDirectory() as folder:
            judge, config = posed(name, Path(folder))
            for epsilon, kind, bins in product(given.epsilon, given.types, given.bins):
                wanted = with_bins(config, judge.table, None if bins == "none" else int(bins), kind)
                runs = []
                for _ in range(given.runs):
                    synthetic, seconds = released(
                        "flights", wanted, {"method": "auto"}, {"epsilon": epsilon}, Path(folder)
                    )
                    scores = judge.distances(synthetic) | judge.correlations(synthetic)
                    runs.append(scores | judge.forest(synthetic) | {"CPU s": seconds})
                print(f"{name}, ε {epsilon:g}, {kind}, bins {bins}: {means_of(runs, 4)}", flush=True)


if __name__ == "__main__":
    main()
