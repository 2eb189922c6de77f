"""How many rows of a person to use: errors by `max_rows`, found privately, and with weighted rows instead.

    python benchmarks/persons.py [--tables randhie heavy] [--epsilon 0.5 1 4] [--most 1 2 3 5 private]
        [--cutoff 0.01 0] [--runs 3]

randhie is the table of the package statsmodels with the columns of configs/randhie.yaml; persons have 1 to 5
rows. heavy is made up: 5 000 persons, half of them with one row and one in a hundred with 70 or more, and of
its nine columns three are of the person, three of the row, and three go with how many rows a person has.

A row's weight of 1/n, where its person has n of them, is tried by repeating it 60/n times, rounded down, with
`max_rows: 60`: a person then moves a count by 60 at most, of 60 for each person.

Errors are means over all columns, and over all pairs of columns, of the synthetic table: of "shares" half the
sum of absolute differences between the shares of the cells; of "counts" the sum of absolute differences
between the cells' rows, divided by the rows of the table. "persons" compares with shares in which each person
has weight 1. With shares for the rows that a given bound cuts off (`--cutoff`), what a release tells of them
stands beside their true share: the least that surely is cut off, and the 95 % limits up to the number of rows
of a person that it names, as means over the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, product
from math import nan
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pyarrow as pa
import yaml
from numpy.typing import NDArray

import dpsynth
from dpsynth.columns.column import Column
from dpsynth.config import compiled, from_mapping
from dpsynth.wings.owner.starter.examples import write_example

DELTA = 1e-6
WEIGHT = 60
TOLD = ("low", "high", "counted_up_to")
KEYS = ("shares 1", "shares 2", "counts 1", "counts 2", "persons 1", "persons 2")

Codes = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Table:
    """A table with persons.

    Attributes:
        name: of the table.
        rows: as text.
        person: column that says whose a row is.
        columns: the config's section.
    """

    name: str
    rows: pd.DataFrame
    person: str
    columns: Mapping[str, object]

    @property
    def of_each(self) -> NDArray[np.int64]:
        """How many rows the person of each row has."""
        return np.asarray(self.rows.groupby(self.person)[self.person].transform("size"), dtype=np.int64)

    def repeated(self) -> pd.DataFrame:
        """Each row as often as its weight says, at least once."""
        times = np.maximum(WEIGHT // self.of_each, 1)
        return self.rows.loc[self.rows.index.repeat(times)]


def randhie(folder: Path) -> Table:
    """The table of the example."""
    write_example("randhie", folder)
    config = yaml.safe_load((folder / "configs" / "randhie.yaml").read_text(encoding="utf-8"))
    rows = pd.read_csv(folder / "data" / "randhie.csv", dtype=str, keep_default_na=False)
    return Table("randhie", rows, "zper", config["columns"])


def heavy(seed: int = 1, people: int = 5000) -> Table:
    """A table in which few persons have most rows."""
    rng = np.random.default_rng(seed)
    each = np.clip(np.ceil(rng.pareto(1.1, people)), 1, 1000).astype(int)
    person = np.repeat(np.arange(people), each)
    kind = np.repeat(rng.integers(0, 4, people), each)
    found: dict[str, NDArray[np.int64]] = {}
    for i in range(3):
        found[f"person{i}"] = np.repeat(rng.integers(0, 4, people), each) + kind
        found[f"row{i}"] = np.minimum(rng.geometric(0.3, len(person)) - 1 + kind // 2, 9)
        found[f"often{i}"] = np.minimum(rng.poisson(0.5 + np.log(np.repeat(each, each)) + 0.3 * kind), 11)
    rows = pd.DataFrame({"who": person, **found}).astype(str)
    columns = {c: {"type": "integer", "min": 0, "max": 11, "missing": False} for c in found}
    return Table("heavy", rows, "who", columns)


def codes_of(rows: pd.DataFrame, columns: tuple[Column, ...]) -> Codes:
    """Codes of rows of text."""
    return {c.name: np.asarray(c.encode(pa.array(rows[c.name], pa.string())), np.int64) for c in columns}


def tables_of(codes: Codes, columns: tuple[Column, ...], weights: NDArray[np.float64]) -> list[list[NDArray]]:
    """Counts of each column, and of each pair."""
    size = {c.name: c.size for c in columns}
    singles = [np.bincount(codes[c], weights, size[c]) for c in size]
    pairs = [
        np.bincount(codes[a] * size[b] + codes[b], weights, size[a] * size[b])
        for a, b in combinations(size, 2)
    ]
    return [singles, pairs]


def scores(table: Table, columns: tuple[Column, ...], synthetic: pd.DataFrame) -> dict[str, float]:
    """Errors of a synthetic table; see the top of the file."""
    one, persons = np.ones(len(table.rows)), 1 / table.of_each
    codes = codes_of(table.rows, columns)
    truth, weighted_evidence = tables_of(codes, columns, one), tables_of(codes, columns, persons)
    drawn = tables_of(codes_of(synthetic, columns), columns, np.ones(len(synthetic)))
    found: dict[str, float] = {}
    for ways, (real, by_person, made) in enumerate(zip(truth, weighted_evidence, drawn, strict=True), 1):
        share = [m / m.sum() for m in made]
        found[f"shares {ways}"] = fmean(
            np.abs(s - r / r.sum()).sum() / 2 for s, r in zip(share, real, strict=True)
        )
        found[f"counts {ways}"] = fmean(
            np.abs(m - r).sum() / r.sum() for m, r in zip(made, real, strict=True)
        )
        found[f"persons {ways}"] = fmean(
            np.abs(s - p / p.sum()).sum() / 2 for s, p in zip(share, by_person, strict=True)
        )
    return found


def released(
    table: Table, epsilon: str, most: int | str, cutoff: str, folder: Path
) -> tuple[int, dict[str, float], tuple[float, float, float]]:
    """Rows of a person that were used, the errors, and what was told of the rows that were cut off."""
    weighted = most == "weighted"
    path = folder / f"{table.name}{'-weighted' * weighted}.csv"
    if not path.exists():
        (table.repeated() if weighted else table.rows).to_csv(path, index=False)
    unit = {"column": table.person, "max_rows": WEIGHT if weighted else most}
    split = {} if most == "private" else {"split": {"cutoff": float(cutoff)}}
    config = {
        "source": {"path": str(path)},
        "privacy": {"epsilon": float(epsilon), "delta": DELTA, "unit": unit, **split},
        "ledger": {"url": f"sqlite:///{folder}/{os.urandom(8).hex()}.db"},
        "columns": dict(table.columns),
        "sample": {"rows": len(table.rows)} if weighted else {},
    }
    spec = from_mapping(config)
    release = dpsynth.release(spec, outputs=folder / "out")
    synthetic = pd.read_csv(release.folder / "public" / "synthetic.csv", dtype=str, keep_default_na=False)
    used = int(release.guarantee.unit.rsplit(" ", 1)[1])
    facts = json.loads((release.folder / "public" / "manifest.json").read_text(encoding="utf-8"))
    cut = (facts["contribution_bounding"] or {}).get("rows_cut_off", dict.fromkeys(TOLD, nan))
    low, high, up_to = (float(cut[key]) for key in TOLD)
    return used, scores(table, compiled(spec).columns, synthetic), (low, high, up_to)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=["randhie", "heavy"])
    parser.add_argument("--epsilon", nargs="+", default=["0.5", "1", "4"])
    parser.add_argument("--most", nargs="+", default=["1", "2", "3", "5", "10", "private", "weighted"])
    parser.add_argument("--cutoff", nargs="+", default=["0.01"])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    heads = ("table", "ε", "max_rows", "cutoff", "used", *KEYS, "cut off", "at least", "up to rows", "limits")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for table in (t for t in (randhie(folder), heavy()) if t.name in given.tables):
            for epsilon in given.epsilon:
                for most, cutoff in product(given.most, given.cutoff):
                    bound = int(most) if most.isdigit() else most
                    runs = [released(table, epsilon, bound, cutoff, folder) for _ in range(given.runs)]
                    used = sorted({n for n, _, _ in runs})
                    means = [f"{fmean(errors[key] for _, errors, _ in runs):.4f}" for key in KEYS]
                    if most == "weighted":
                        means[2:4] = ["", ""]
                    each = table.rows.groupby(table.person).size()
                    kept = fmean(each.clip(upper=n).sum() / each.sum() for n in used)
                    low, high, up_to = (fmean(told[i] for _, _, told in runs) for i in range(len(TOLD)))
                    cells = (most, cutoff, ", ".join(map(str, used)), *means, f"{1 - kept:.3f}", f"{low:.3f}")
                    line = (table.name, epsilon, *cells, f"{up_to:.0f}", f"{low:.3f} to {high:.3f}")
                    print(f"| {' | '.join(line)} |", flush=True)


if __name__ == "__main__":
    main()
