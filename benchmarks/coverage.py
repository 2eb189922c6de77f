"""Coverage of 95 % intervals against real tables, by kind, and what the exam costs.

    DPSYNTH_DATA=FOLDER python benchmarks/coverage.py [--tables adult nltcs flights randhie] [--releases 20]
        [--epsilon 1] [--method mst]
    DPSYNTH_DATA=FOLDER python benchmarks/coverage.py --cost [--tables nltcs] [--shares 0 0.03 0.06]

The first form makes releases with statistics of each kind, and prints for each kind the part of all figures
whose interval holds the private table's own number, and the median width of an interval in its column's
units. Beside them stand intervals of the noise alone, which is what there would be without an exam; for
measured figures these are the same. The errors of the exam are held against the exact distances of all pairs.
The second form prints the mean total variation distance of all three-way marginals, by share of the exam.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dpsynth import pipeline
from dpsynth.config import from_mapping
from dpsynth.curator.exam import ExamQuestions
from dpsynth.lifecycle.beginning import Request
from dpsynth.lifecycle.result import Release

Numbers = NDArray[np.float64]
MOST_TRIPLES = 60


@dataclass(frozen=True)
class Table:
    """A table with its declared columns and statistics.

    Attributes:
        frame: the rows that are released.
        columns: declarations.
        statistics: requested statistics.
    """

    frame: pd.DataFrame
    columns: Mapping[str, Mapping[str, object]]
    statistics: Sequence[Mapping[str, object]]


def adult(folder: Path) -> Table:
    """Numbers and categories of a census."""
    frame = pd.read_csv(folder / "adult.csv")
    frame.columns = frame.columns.str.strip()
    columns: dict[str, Mapping[str, object]] = {
        "age": {"type": "integer", "min": 17, "max": 90, "bins": [17, 25, 35, 45, 55, 65, 90]},
        "education-num": {"type": "integer", "min": 1, "max": 16},
        "hours-per-week": {"type": "integer", "min": 1, "max": 99, "bins": [1, 20, 35, 40, 45, 60, 99]},
    }
    return _crossed(frame, columns, ("marital-status", "relationship", "race", "sex", "income"))


def nltcs(folder: Path) -> Table:
    """Sixteen binary columns."""
    frame = pd.read_csv(folder / "nltcs.csv")
    return _crossed(frame, {}, tuple(frame.columns))


def flights(folder: Path) -> Table:
    """A tenth of the flights of a year: delays with long tails."""
    frame = pd.read_csv(folder / "flights.csv.gz").iloc[::10]
    columns: dict[str, Mapping[str, object]] = {
        "month": {"type": "integer", "min": 1, "max": 12},
        "dep_delay": {"type": "integer", "bins": [-50, -10, -5, 0, 10, 30, 60, 120, 300, 1500]},
        "distance": {"type": "integer", "bins": [0, 300, 600, 900, 1200, 1800, 2500, 5000]},
        "air_time": {"type": "integer", "bins": [0, 60, 120, 180, 240, 360, 700]},
    }
    return _crossed(frame, columns, ("origin", "carrier"))


def randhie(folder: Path) -> Table:
    """Visits and health by plan, of person-years."""
    del folder
    package = find_spec("statsmodels")
    assert package is not None and package.origin is not None
    frame = pd.read_csv(Path(package.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv")
    columns: dict[str, Mapping[str, object]] = {
        "mdvis": {"type": "integer", "bins": [0, 1, 2, 4, 8, 16, 100]},
        "xage": {"type": "number", "bins": [0, 6, 12, 18, 25, 35, 45, 55, 65], "decimals": 2},
        "year": {"type": "integer", "min": 1, "max": 5},
    }
    return _crossed(frame, columns, ("coins", "site", "female", "hlthg"))


TABLES = {"adult": adult, "nltcs": nltcs, "flights": flights, "randhie": randhie}


def _crossed(
    frame: pd.DataFrame, numbers: Mapping[str, Mapping[str, object]], categories: Sequence[str]
) -> Table:
    """A table of whole rows, with counts of all pairs and the means of all numbers by all categories."""
    frame = frame[[*numbers, *categories]].dropna().reset_index(drop=True)
    texts = {c: frame[c].astype(str).str.strip() for c in categories}
    frame = frame.assign(**texts)
    kinds = {c: {"type": "category", "values": sorted(set(texts[c])), "missing": False} for c in categories}
    columns = {c: {**kind, "missing": False} for c, kind in numbers.items()} | kinds
    pairs = [{"crosstab": list(pair)} for pair in combinations(columns, 2)]
    means = [{"mean": n, "by": c} for n in numbers for c in categories]
    triples = [{"crosstab": list(c)} for c in list(combinations(columns, 3))[:3]]
    return Table(frame, columns, [*pairs, *means, *triples])


def released(table: Table, epsilon: float, method: str, exam: float, work: Path) -> tuple[Release, Numbers]:
    """A release, and the exact distances of its exam; they are empty without one."""
    path = work / "table.csv"
    table.frame.to_csv(path, index=False)
    config = {
        "release": "coverage",
        "source": {"path": str(path)},
        "privacy": {"epsilon": epsilon, "delta": 1e-9, "split": {"exam": exam}},
        "ledger": {"url": f"sqlite:///{work / 'ledger.db'}", "cap": {"epsilon": 1e6, "delta": 0.1}},
        "columns": json.loads(json.dumps(table.columns)),
        "structure": {"method": method},
        "publish": {"statistics": list(table.statistics), "formats": ["csv"]},
    }
    exact: list[Numbers] = [np.zeros(0)]
    sound = ExamQuestions._exact

    def noted(self, cliques, finished):  # type: ignore[no-untyped-def]
        exact.append(sound(self, cliques, finished))
        return exact[-1]

    with patch.object(ExamQuestions, "_exact", noted):
        release = pipeline.run(from_mapping(config), Request(work / "out"))
    return release, exact[-1].astype(np.float64)


def truth(table: Table, kind: str, columns: Sequence[str], labels: pd.DataFrame) -> Numbers:
    """The private table's own number for each row of a table of statistics; NaN where there is none."""
    frame = table.frame
    if kind == "mean":
        *by, of = columns
        means = frame.groupby(by[0])[of].mean()
        return labels[by[0]].map(means).to_numpy(dtype=np.float64)
    found = np.ones(len(labels))
    coded = frame.assign(**{c: _labelled(frame[c], labels[c].unique(), table.columns[c]) for c in columns})
    counts = coded.groupby(list(columns)).size()
    keys = labels[list(columns)].apply(tuple, axis=1) if len(columns) > 1 else labels[columns[0]]
    return np.array([counts.get(key, 0) for key in keys], dtype=np.float64) * found


def _labelled(cells: pd.Series, labels: Sequence[str], declared: Mapping[str, object]) -> pd.Series:
    """The label of each cell; bins are closed at the left, and the last one at both ends."""
    bins = declared.get("bins")
    if not isinstance(bins, list):
        return cells.astype(str)
    at = np.clip(np.searchsorted(bins, cells.to_numpy(dtype=np.float64), side="right") - 1, 0, len(bins) - 2)
    return pd.Series(np.asarray(labels, dtype=object)[at], index=cells.index)


def measured_coverage(name: str, arguments: argparse.Namespace, folder: Path) -> None:
    """Print the coverage of one table's intervals, by kind."""
    table = TABLES[name](folder)
    held: dict[str, list[Numbers]] = defaultdict(list)
    wide: dict[str, list[Numbers]] = defaultdict(list)
    of_exam: list[NDArray[np.bool_]] = []
    for _ in range(arguments.releases):
        with tempfile.TemporaryDirectory() as work:
            release, exact = released(table, arguments.epsilon, arguments.method, arguments.exam, Path(work))
        if release.exam is not None:
            errors = release.errors
            true = exact / (2 * release.exam.rows)
            of_exam.append(((errors.low <= true) & (true <= errors.high)).to_numpy())
        for statistic in release.tables.values():
            found = statistic.table.to_pandas()
            true = truth(table, statistic.kind, statistic.columns, found)
            usable = np.isfinite(true) & np.isfinite(found.low.to_numpy(dtype=np.float64))
            kind = f"{statistic.kind}, {found.basis.iloc[0]}, {found.limits.iloc[0]}"
            held[kind].append(((found.low <= true) & (true <= found.high)).to_numpy()[usable])
            wide[kind].append((found.high - found.low).to_numpy(dtype=np.float64)[usable])
    print(f"{name}: {len(table.frame):,} rows, {arguments.releases} releases, epsilon {arguments.epsilon:g}")
    if of_exam:
        whole = np.concatenate(of_exam)
        print(f"  {'exam, each distance':48} {whole.mean():6.1%} of {whole.size:,}")
    for kind in sorted(held):
        hits, widths = np.concatenate(held[kind]), np.concatenate(wide[kind])
        print(f"  {kind:48} {hits.mean():6.1%} of {hits.size:,}; median width {np.median(widths):.4g}")


def cost(name: str, arguments: argparse.Namespace, folder: Path) -> None:
    """Print the mean three-way error by the exam's share."""
    whole = TABLES[name](folder)
    table = Table(whole.frame, whole.columns, [])
    for share in arguments.shares:
        errors = []
        for _ in range(arguments.releases):
            with tempfile.TemporaryDirectory() as work:
                release, _ = released(table, arguments.epsilon, arguments.method, share, Path(work))
            errors.append(three_way(table, release.synthetic))
        mean, spread = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(len(errors))
        print(
            f"{name}, epsilon {arguments.epsilon:g}, share {share:g}: {mean:.5f} +- {spread:.5f}", flush=True
        )


def three_way(table: Table, synthetic: pd.DataFrame) -> float:
    """The mean total variation distance of some three-way marginals, the same ones each time."""
    order = np.random.default_rng(0).permutation(list(combinations(table.columns, 3)))[:MOST_TRIPLES]
    frames = []
    for frame in (table.frame, synthetic):
        cells = {c: _binned(frame[c], table.columns[c]) for c in table.columns}
        frames.append(pd.DataFrame(cells))
    found = []
    for columns in order:
        one, two = (f.groupby(list(columns)).size() / len(f) for f in frames)
        found.append(float(one.sub(two, fill_value=0).abs().sum() / 2))
    return float(np.mean(found))


def _binned(cells: pd.Series, declared: Mapping[str, object]) -> NDArray[np.object_]:
    bins = declared.get("bins")
    if not isinstance(bins, list):
        return cells.astype(str).to_numpy(dtype=object)
    numbers = cells.to_numpy(dtype=np.float64)
    return np.clip(np.searchsorted(bins, numbers, side="right") - 1, 0, len(bins) - 2).astype(object)


def main() -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--releases", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--method", default="mst")
    parser.add_argument("--exam", type=float, default=0.03)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--shares", nargs="*", type=float, default=[0, 0.03, 0.06])
    arguments = parser.parse_args()
    for name in arguments.tables:
        (cost if arguments.cost else measured_coverage)(name, arguments, Path(os.environ["DPSYNTH_DATA"]))


if __name__ == "__main__":
    main()
