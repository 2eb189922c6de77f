"""What it costs to find columns' ends, bins and values privately, rather than to declare them.

    DPSYNTH_DATA=FOLDER python benchmarks/discovery.py [--tables adult randhie] [--epsilon 0.5 1 4] [--runs 3]

Adult has all of its 15 raw columns (`adult.csv` in the folder), RAND all of its 45 with persons as units
(from the package statsmodels). Each is released with declared domains, and again with none: the ends of
numbers and the values of categories are then found from the share `domain` of the budget, with bins of one
width and with the bins of a private tree.

The synthetic table is compared with the real one on a grid that no release knows: up to 12 bins of about
as many rows each, or single values, and a place for missing cells. tvd1, tvd2, tvd3: mean total variation
distance over all columns, all pairs and 300 triples. "means": median over numeric columns of the relative
error of the mean. Each run is a process of `dpsynth run --plain`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean, median

import numpy as np
import pandas as pd
from coded_tables import markdown, measured
from rules import rand_path

Declared = Mapping[str, object]
WAYS = ("declared", "found, equal bins", "found, tree")
_TRIPLES = 300
_BINS = 12


@dataclass(frozen=True)
class Table:
    """A table, its unit and the declarations of its columns, as a config has them."""

    path: Path
    privacy: Mapping[str, object]
    columns: Mapping[str, Declared]


def adult() -> Table:
    """UCI Adult as it comes; the lists of values are those of its documentation."""

    def among(values: str, **more: object) -> Declared:
        return {"type": "category", "values": values.split(), **more}

    def whole(low: int, high: int, bins: object = None) -> Declared:
        ends = {} if isinstance(bins, list) else {"min": low, "max": high}
        return {"type": "integer", **ends, **({} if bins is None else {"bins": bins})}

    columns: dict[str, Declared] = {
        "age": whole(16, 99),
        "workclass": among(
            "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
            missing="?",
        ),
        "fnlwgt": whole(0, 1_500_000, 32),
        "education": among(
            "Preschool 1st-4th 5th-6th 7th-8th 9th 10th 11th 12th HS-grad Some-college Assoc-voc Assoc-acdm "
            "Bachelors Masters Prof-school Doctorate"
        ),
        "education-num": whole(1, 16),
        "marital-status": among(
            "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
            "Married-AF-spouse"
        ),
        "occupation": among(
            "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
            "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv "
            "Protective-serv Armed-Forces",
            missing="?",
        ),
        "relationship": among("Wife Own-child Husband Not-in-family Other-relative Unmarried"),
        "race": among("White Asian-Pac-Islander Amer-Indian-Eskimo Other Black"),
        "sex": among("Female Male"),
        "capital-gain": whole(
            0, 99_999, [0, 1, 2000, 3000, 4000, 5000, 7500, 10_000, 15_000, 25_000, 100_000]
        ),
        "capital-loss": whole(0, 4500, [0, 1, 1000, 1500, 1750, 2000, 2250, 2500, 4500]),
        "hours-per-week": whole(1, 99),
        "native-country": among(
            "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
            "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico "
            "Portugal Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala "
            "Nicaragua Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
            missing="?",
        ),
        "income": among("<=50K >50K"),
    }
    return Table(Path(os.environ["DPSYNTH_DATA"], "adult.csv"), {"delta": 1e-9}, columns)


def randhie() -> Table:
    """The RAND Health Insurance Experiment: 44 columns modelled, and surrogates for the person's."""
    columns: dict[str, Declared] = {"zper": {"type": "identifier", "surrogates": True}}
    for name, low, high in (
        ("plan", 1, 19), ("site", 1, 6), ("tookphys", 0, 1), ("year", 1, 5), ("female", 0, 1),
        ("totadm", 0, 10), ("inpmis", 0, 1), ("num", 1, 14), ("child", 0, 1), ("fchild", 0, 1),
        ("idp", 0, 1), ("hlthg", 0, 1), ("hlthf", 0, 1), ("hlthp", 0, 1), ("binexp", 0, 1), ("coins", 0, 100),
    ):  # fmt: skip
        values = [0, 25, 50, 95, 100] if name == "coins" else list(range(low, high + 1))
        columns[name] = {"type": "category", "values": values}
    for name in ("mentvis", "mdvis", "notmdvis"):
        columns[name] = {"type": "integer", "bins": [0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 60, 120]}
    money = [0, 0.01, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 40_000]
    numbers: dict[str, tuple[list[float] | int, float, float, int]] = {
        "black": (2, 0, 1, 3), "income": (16, 0, 30_000, 0), "xage": (16, 0, 65, 1),
        "educdec": (13, 0, 26, 0), "time": (8, 0, 1, 2), "outpdol": (money, 0, 0, 2),
        "drugdol": (money, 0, 0, 2), "suppdol": (money, 0, 0, 2), "mentdol": (money, 0, 0, 2),
        "inpdol": (money, 0, 0, 2), "meddol": (money, 0, 0, 2), "mhi": (16, 0, 100, 1),
        "disea": (12, 0, 60, 1), "physlm": (2, 0, 1, 2),
        "ghindx": (16, 0, 100, 1), "mdeoff": (11, 0, 1100, 0), "pioff": (13, 0, 1300, 0),
        "lfam": (10, 0, 2.7, 2), "lpi": (16, 0, 7.5, 2), "logc": (10, 0, 5, 2), "fmde": (16, 0, 8.5, 2),
        "xghindx": (16, 0, 100, 1), "linc": (16, 0, 10.5, 2), "lnum": (10, 0, 2.7, 2),
        "lnmeddol": (16, -1, 11, 2),
    }  # fmt: skip
    for name, (bins, start, stop, decimals) in numbers.items():
        ends = {} if isinstance(bins, list) else {"min": start, "max": stop}
        columns[name] = {"type": "number", **ends, "bins": bins, "decimals": decimals}
    return Table(rand_path(), {"delta": 1e-6, "unit": {"column": "zper", "max_rows": 5}}, columns)


def undeclared(declared: Declared, edges: str) -> Declared:
    """The same column without bounds, bins and values."""
    kept = {key: declared[key] for key in ("type", "missing", "decimals", "surrogates") if key in declared}
    if declared["type"] == "category":
        return {**kept, "open": True}
    return kept if declared["type"] == "identifier" else {**kept, "bounds": "private", "edges": edges}


def config_of(table: Table, way: str, epsilon: str, ledger: Path) -> dict[str, object]:
    """The config of one release; JSON is YAML too."""
    edges = "tree" if way.endswith("tree") else "equal"
    columns = table.columns
    if way != "declared":
        columns = {name: undeclared(column, edges) for name, column in columns.items()}
    return {
        "release": f"{table.path.stem}-{way.rsplit(maxsplit=1)[-1]}",
        "source": {"path": str(table.path)},
        "privacy": {"epsilon": float(epsilon), "on_empty": "go", **table.privacy},
        "ledger": {"url": f"sqlite:///{ledger}", "cap": {"epsilon": 1e6, "delta": 0.1}},
        "columns": columns,
    }


class Grid:
    """Codec to compare two tables in, made from the real one."""

    def __init__(self, real: pd.DataFrame) -> None:
        """Cut numbers with more than 24 values into bins of about as many rows each."""
        self.edges = {}
        for name in real.columns:
            if pd.api.types.is_numeric_dtype(real[name]) and real[name].nunique() > 2 * _BINS:
                cuts = np.unique(real[name].dropna().quantile(np.linspace(0, 1, _BINS + 1)[1:-1]))
                self.edges[name] = cuts
        self.values = {
            name: {value: i for i, value in enumerate(sorted(_texts(real[name]).unique()))}
            for name in real.columns
            if name not in self.edges
        }
        self.real, self.codes = real, self.coded(real)
        chance = random.Random(1)
        triples = list(combinations(real.columns, 3))
        self.sets = {
            "tvd1": [(name,) for name in real.columns],
            "tvd2": list(combinations(real.columns, 2)),
            "tvd3": chance.sample(triples, min(_TRIPLES, len(triples))),
        }

    def coded(self, table: pd.DataFrame) -> dict[str, np.ndarray]:
        """A code for each cell; the last is of what the real table has no place for."""
        found = {}
        for name in table.columns:
            if name in self.edges:
                codes = np.searchsorted(self.edges[name], table[name], side="left")
                found[name] = np.where(table[name].isna(), len(self.edges[name]) + 1, codes)
            else:
                known = self.values[name]
                found[name] = _texts(table[name]).map(known).fillna(len(known)).to_numpy(np.int64)
        return found

    def scores(self, synthetic: pd.DataFrame) -> dict[str, float]:
        """How far a synthetic table is from the real one."""
        synthetic = synthetic[list(self.real.columns)].copy()
        numeric = [name for name in synthetic if pd.api.types.is_numeric_dtype(self.real[name])]
        for name in numeric:
            # Values that were not found are called other.
            synthetic[name] = pd.to_numeric(synthetic[name], errors="coerce")
        codes = self.coded(synthetic)
        found = {
            kind: mean(self._distance(codes, names) for names in sets) for kind, sets in self.sets.items()
        }
        wrong = [
            abs(synthetic[name].mean() - truth) / abs(truth)
            for name in numeric
            if (truth := self.real[name].mean())
        ]
        return found | {"means": median(wrong)}

    def _distance(self, codes: Mapping[str, np.ndarray], names: tuple[str, ...]) -> float:
        shares = []
        size = max(len(self.edges.get(n, self.values.get(n, ()))) + 2 for n in names)
        for table in (self.codes, codes):
            cell = np.zeros(len(table[names[0]]), np.int64)
            for name in names:
                cell = cell * size + table[name]
            shares.append(np.bincount(cell, minlength=size ** len(names)) / len(cell))
        return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _texts(column: pd.Series) -> pd.Series:
    """One text for the same value, whether it was read as a whole number or not."""
    return (column.astype(float) if pd.api.types.is_numeric_dtype(column) else column.astype(object)).map(str)


def releases(
    table: Table, grid: Grid, way: str, epsilon: str, runs: int, work: Path
) -> Iterator[dict[str, float]]:
    """Seconds, megabytes and scores of each run."""
    config = work / "config.yaml"
    config.write_text(json.dumps(config_of(table, way, epsilon, work / f"{way.rsplit(maxsplit=1)[-1]}.db")))
    command = [sys.executable, "-m", "dpsynth", "run", str(config), "--plain", "--out", str(work / "out")]
    for _ in range(runs):
        bundle, figures = measured(command)
        synthetic = pd.read_csv(Path(bundle) / "public" / "synthetic.csv", low_memory=False)
        yield {"seconds": figures["seconds"], "MB": figures["MB"]} | grid.scores(synthetic)


def main() -> None:
    """Print one line a table, epsilon and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=["adult", "randhie"])
    parser.add_argument("--epsilon", nargs="*", default=["0.5", "1", "4"])
    parser.add_argument("--ways", nargs="*", default=list(WAYS))
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    lines = []
    for name in chosen.tables:
        table = {"adult": adult, "randhie": randhie}[name]()
        modelled = [c for c, declared in table.columns.items() if declared["type"] != "identifier"]
        grid = Grid(pd.read_csv(table.path, skipinitialspace=True, na_values="?")[modelled])
        for epsilon in chosen.epsilon:
            for way in chosen.ways:
                with tempfile.TemporaryDirectory() as work:
                    rows = list(releases(table, grid, way, epsilon, chosen.runs, Path(work)))
                found = [mean(row[key] for row in rows) for key in rows[0]]
                shown = [f"{found[0]:.1f}", f"{found[1]:.0f}", *(f"{figure:.4f}" for figure in found[2:])]
                lines.append([name, epsilon, way, *shown])
                print(" ".join(lines[-1]), flush=True)
    head = ["table", "ε", "domains", "s", "MB", "tvd1", "tvd2", "tvd3", "means"]
    print(markdown(head, lines, words=3))


if __name__ == "__main__":
    main()
