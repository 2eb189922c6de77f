"""What a release gains from earlier answers: the last of many months, with and without `reuse`.

    python benchmarks/longitudinal.py --scorer FOLDER [--tables adult-coded] [--extra FOLDER ...]
        [--randhie] [--epsilon 0.5] [--structure auto mst] [--runs 3] [--months 12] [--drift 0 1] [--same 4]

Folders are as in coded_tables.py; --randhie adds the table of the package statsmodels, coded by
configs/randhie.yaml, with its persons. Rows are given months at random. With a drift of s the odds of
a row for the last month over the first are e^(s z), z a sum of all columns with signs drawn at random, of
mean 0 and variance 1: so all columns move, and what goes with what.

Every month is released in turn with `reuse: {earlier_periods: true}`, then the last one alone without. Then
that month is released several times with `reuse: {same_period: true}`, each time under another name. All
releases have the same epsilon; scores are those of the synthetic table of the last month.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pandas as pd
import pyarrow as pa
from coded_tables import DELTA, config_text, markdown, options, scores, tables_of

import dpsynth
from dpsynth.config import compiled
from dpsynth.wings.owner.starter.examples import write_example

KEYS = ("tvd1", "tvd2", "tvd3")
PERSON = "person"


def coded_randhie(folder: Path) -> Path:
    """The RAND table as a folder of coded rows, each with its person."""
    write_example("randhie", folder)
    spec = dpsynth.load(folder / "configs" / "randhie.yaml")
    raw = pd.read_csv(folder / "data" / "randhie.csv", dtype=str, keep_default_na=False)
    columns = compiled(spec).columns
    rows = pd.DataFrame({c.name: c.encode(pa.array(raw[c.name], pa.string())) for c in columns})
    rows[PERSON] = raw["zper"]
    table = folder / "randhie"
    table.mkdir()
    (table / "domain.json").write_text(json.dumps({c.name: c.size for c in columns}))
    for name in ("train.csv", "test.csv"):
        rows.to_csv(table / name, index=False)
    return table


def months_of(rows: pd.DataFrame, names: list[str], months: int, drift: float, seed: int) -> np.ndarray:
    """A month for each row."""
    rng = np.random.default_rng(seed)
    columns = rows[names].to_numpy(dtype=float)
    scale = columns.std(axis=0)
    z = ((columns - columns.mean(axis=0)) / np.where(scale > 0, scale, 1)) @ rng.choice([-1, 1], len(names))
    odds = np.exp(drift * np.outer(z / z.std(), np.linspace(-0.5, 0.5, months)))
    reached = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    return np.minimum((rng.random(len(rows))[:, None] > reached).sum(axis=1), months - 1)


def label(month: int) -> str:
    """The name of a month, counted from January 2020."""
    return f"{2020 + month // 12}-{month % 12 + 1:02}"


@dataclass(frozen=True)
class Year:
    """A table cut into months.

    Attributes:
        table: the whole table's folder.
        work: a folder with the monthly table, and one of the last month alone as the scorer wants it.
        scorer: the scorer's folder.
        last: number of the last month, from 0.
        config: keys of the config's sections privacy and structure.
    """

    table: Path
    work: Path
    scorer: Path
    last: int
    config: tuple[str, str]

    def write(self, drift: float, seed: int) -> None:
        """Draw a month for each row, and write the tables."""
        rows = pd.read_csv(self.table / "train.csv", dtype={PERSON: str})
        domain = json.loads((self.table / "domain.json").read_text())
        of_row = months_of(rows, list(domain), self.last + 1, drift, seed)
        for name in ("monthly", "last"):
            (self.work / name).mkdir()
            (self.work / name / "domain.json").write_text(json.dumps(domain))
        labelled = rows.assign(month=[label(m) for m in of_row])
        labelled.to_csv(self.work / "monthly" / "train.csv", index=False)
        for name in ("train.csv", "test.csv"):
            rows.loc[of_row == self.last, list(domain)].to_csv(self.work / "last" / name, index=False)

    def released(self, reuse: str, name: str, month: int) -> dict[str, float]:
        """Release a month; the scores if it is the last one."""
        config, (privacy, structure) = self.work / "longitudinal.yaml", self.config
        text = config_text(self.work / "monthly", self.work / "ledger.db", privacy, structure)
        text = text.replace("release: monthly\n", f"release: {name}\n")
        text = text.replace("ledger: {", "ledger: {dataset: monthly, ")
        config.write_text(f"{text}period: {{column: month, every: month}}\nreuse: {{{reuse}}}\n")
        release = dpsynth.release(dpsynth.load(config), outputs=self.work / "out", period=label(month))
        if month < self.last:
            return {}
        return scores(self.scorer, self.work / "last", release.folder / "public" / "synthetic.csv", None)

    def ways(self, same: int) -> dict[str, dict[str, float]]:
        """The scores of the last month's release, alone and with what earlier ones answered."""
        found = {"alone": self.released("", "alone", self.last)}
        for number in range(2, same + 1):
            scored = self.released("same_period: true", f"same-{number}", self.last)
            found[f"the same month {number} times"] = scored
        for month in range(self.last + 1):
            latest = self.released("earlier_periods: true", "earlier", month)
        return found | {f"with {self.last} earlier months": latest}


def years(
    scorer: Path, table: Path, epsilon: str, structure: str, drift: float, runs: int, months: int, same: int
) -> list[dict[str, dict[str, float]]]:
    """The scores of each way, run by run."""
    privacy = f"epsilon: {epsilon}, delta: {DELTA}"
    if PERSON in pd.read_csv(table / "train.csv", nrows=0):
        privacy += f", unit: {{column: {PERSON}, max_rows: 2}}"
    found = []
    for run in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            year = Year(table, Path(folder), scorer, months - 1, (privacy, f"method: {structure}"))
            year.write(drift, run)
            found.append(year.ways(same))
    return found


def main() -> None:
    """Print a table in Markdown: means of the runs, and the change against the release alone."""
    parser = options(__doc__)
    parser.set_defaults(tables=["adult-coded"], epsilon=["0.5"])
    parser.add_argument("--randhie", action="store_true")
    parser.add_argument("--structure", nargs="+", default=["auto", "mst"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--drift", type=float, nargs="+", default=[0.0, 1.0])
    parser.add_argument("--same", type=int, default=4)
    given = parser.parse_args()
    lines: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        tables = tables_of(given, work) + ([coded_randhie(work)] if given.randhie else [])
        cases = [
            (t, e, s, d) for t in tables for e in given.epsilon for s in given.structure for d in given.drift
        ]
        for table, epsilon, structure, drift in cases:
            same = given.same if drift == given.drift[0] else 1
            runs = years(given.scorer, table, epsilon, structure, drift, given.runs, given.months, same)
            for way in runs[0]:
                line = [table.name, epsilon, structure, f"{drift:g}", way]
                for key in KEYS:
                    values = [run[way][key] for run in runs]
                    error = stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
                    line.append(f"{mean(values):.4f} ± {error:.4f}")
                before = mean(run["alone"]["tvd3"] for run in runs)
                line.append(f"{100 * (mean(run[way]['tvd3'] for run in runs) / before - 1):+.0f} %")
                lines.append(line)
                print("  ".join(line), flush=True)
    head = ["table", "ε", "method", "drift", "release", *KEYS, "change of tvd3"]
    print(f"\nMeans of {given.runs} runs with standard errors, delta {DELTA}.\n")
    print(markdown(head, lines, words=5))


if __name__ == "__main__":
    main()
