"""Means and quantiles by questions of their own against those by counts: how often their intervals hold.

    DPSYNTH_DATA=… python benchmarks/means.py [--tables adult rand nlswork flights] [--runs 200]

Each run asks what they need, at the prices of a whole plan of method mst: all single columns, the wanted
pairs, sums and finer counts. "counts" computes each figure from the counts alone, "own" from sums and finer
counts too where the plan has them. Both have the same counts; without sums these would have had up to a tenth
less noise. Prints for each the share of intervals that hold it, their median half-width, and the mean
absolute error.
"""

from __future__ import annotations

import argparse
import gzip
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd

from dpsynth.bundle import Sources, compute_statistics
from dpsynth.config import compiled, from_mapping
from dpsynth.curator import Curator, Journal, MemoryTable, Terms, load_rows
from dpsynth.model import LeastSquares
from dpsynth.pipeline.measuring import Answers, Stage, measure_statistics
from dpsynth.plan.plan import make_plan
from dpsynth.plan.spending import one_way_weights
from dpsynth.strategy import strategy_of

KEY = b"k" * 32


@dataclass(frozen=True)
class Case:
    """A table with the statistics that are asked of it."""

    frame: pd.DataFrame
    columns: dict[str, dict[str, object]]
    asked: list[dict[str, object]]
    privacy: dict[str, object]


def _data(name: str) -> Path:
    return Path(os.environ["DPSYNTH_DATA"]) / name


def _adult() -> Case:
    frame = pd.read_csv(_data("adult.csv"), skipinitialspace=True).rename(columns=str.strip)
    names = {c: "hours" for c in frame.columns if c.startswith("hours")}
    frame = frame.rename(columns={**names, "gender": "sex"})
    columns = {
        "age": {"type": "integer", "bins": [17, 25, 35, 45, 55, 65, 91]},
        "hours": {"type": "integer", "bins": [1, 20, 35, 40, 41, 50, 60, 100]},
        "education": {"type": "category", "values": sorted(frame["education"].astype(str).unique())},
        "sex": {"type": "category", "values": sorted(frame["sex"].astype(str).unique())},
    }
    asked = [
        {"mean": "hours", "by": "education"},
        {"mean": "age", "by": "sex"},
        {"mean": "hours"},
        {"quantiles": "hours", "by": "education"},
        {"quantiles": "age", "by": "sex", "at": [0.1, 0.5, 0.9]},
    ]
    return Case(frame, columns, asked, {"epsilon": 1, "delta": 1e-9})


def _rand() -> Case:
    path = files("statsmodels") / "datasets" / "randhie" / "src" / "randhie.csv"
    columns = {
        "plan": {"type": "integer", "min": 1, "max": 19, "missing": False},
        "site": {"type": "category", "values": [1, 2, 3, 4, 5, 6], "missing": False},
        "year": {"type": "integer", "min": 1, "max": 5, "missing": False},
        "mdvis": {"type": "integer", "bins": [0, 1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 60], "missing": False},
        "meddol": {
            "type": "number",
            "bins": [0, 0.01, 10, 25, 50, 100, 250, 500, 1000, 2500, 7500],
            "decimals": 2,
            "missing": False,
        },
    }
    means = [
        {"mean": "meddol", "by": "plan"},
        {"mean": "mdvis", "by": "site"},
        {"mean": "meddol"},
        {"quantiles": "meddol", "by": "plan", "at": [0.5, 0.9]},
        {"quantiles": "meddol"},
    ]
    unit = {"column": "zper", "max_rows": 5}
    return Case(pd.read_csv(str(path)), columns, means, {"epsilon": 3, "delta": 1e-6, "unit": unit})


def _nlswork() -> Case:
    with gzip.open(_data("nlswork.csv.gz")) as file:
        frame = pd.read_csv(file)
    columns = {
        "year": {"type": "integer", "min": 68, "max": 88},
        "grade": {"type": "integer", "min": 0, "max": 18},
        "race": {"type": "category", "values": sorted(map(str, frame["race"].dropna().unique()))},
        "hours": {"type": "integer", "bins": [1, 10, 20, 30, 35, 40, 41, 50, 60, 169]},
        "ln_wage": {"type": "number", "bins": [0, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 5.5], "decimals": 3},
    }
    means = [
        {"mean": "ln_wage", "by": "race"},
        {"mean": "hours", "by": "grade"},
        {"mean": "ln_wage", "by": "year"},
        {"quantiles": "ln_wage", "by": "race"},
    ]
    unit = {"column": "idcode", "max_rows": 15}
    return Case(frame, columns, means, {"epsilon": 3, "delta": 1e-6, "unit": unit})


def _flights() -> Case:
    used = ["carrier", "origin", "dep_delay", "arr_delay", "air_time"]
    frame = pd.read_csv(_data("flights.csv.gz"), usecols=used)
    columns = {
        "carrier": {"type": "category", "values": sorted(frame["carrier"].unique())},
        "origin": {"type": "category", "values": ["EWR", "JFK", "LGA"]},
        "dep_delay": {"type": "integer", "min": -60, "max": 1440},
        "arr_delay": {"type": "integer", "min": -120, "max": 1440},
        "air_time": {"type": "integer", "min": 0, "max": 720},
    }
    means = [
        {"mean": "arr_delay", "by": "carrier"},
        {"mean": "dep_delay", "by": "origin"},
        {"mean": "air_time"},
        {"quantiles": "arr_delay", "by": "carrier"},
        {"quantiles": "dep_delay", "by": "origin", "at": [0.5, 0.9, 0.99]},
        {"quantiles": "air_time"},
    ]
    return Case(frame, columns, means, {"epsilon": 1, "delta": 1e-9})


CASES = {"adult": _adult, "rand": _rand, "nlswork": _nlswork, "flights": _flights}


def _true(case: Case, asked: dict[str, object]) -> dict[tuple[str, str], float]:
    """The figure of each group and level, of numbers within the column's ends, with fractions cut off."""
    of = str(asked.get("mean", asked.get("quantiles")))
    column = case.columns[of]
    bins = column.get("bins", [column.get("min"), column.get("max")])
    numbers = pd.to_numeric(case.frame[of], errors="coerce").clip(bins[0], bins[-1])
    if column["type"] == "integer":
        numbers = np.floor(numbers)
    groups = pd.Series("", index=numbers.index)
    if "by" in asked:
        groups = case.frame[asked["by"]]
        groups = (groups.astype("Int64") if groups.dtype.kind == "f" else groups).astype(str)
    known = numbers.dropna().groupby(groups)
    if "mean" in asked:
        return {(group, ""): mean for group, mean in known.mean().items()}
    return {
        (group, str(level)): float(np.quantile(own, level, method="inverted_cdf"))
        for group, own in known
        for level in asked.get("at", [0.25, 0.5, 0.75])
    }


class _NoModel:
    """No model: all means are of columns that are measured."""

    total = 1.0

    def marginal(self, clique: tuple[str, ...]) -> np.ndarray:
        raise AssertionError(clique)


def _found(case: Case, runs: int, folder: Path) -> Iterator[tuple[str, str, tuple[bool, float, float]]]:
    """For each mean of each run: its title, the way, and whether its interval holds, half-width and error."""
    spec = from_mapping(
        {
            "release": "means",
            "source": {"path": "x.csv"},
            "privacy": case.privacy,
            "columns": case.columns,
            "structure": {"method": "mst"},
            "publish": {"statistics": case.asked},
        }
    )
    worked_out = compiled(spec)
    plan = make_plan(worked_out, strategy_of("mst", ()))
    near, columns = plan.neighbours, worked_out.columns
    names = [*(c.name for c in columns), *([near.person] if near.person else [])]
    batches = MemoryTable(case.frame[names]).batches(names)
    table = load_rows(batches, columns, near, KEY, None, plan.own.columns).bounded(near.max_rows, KEY)
    true = [_true(case, asked) for asked in case.asked]
    asked = one_way_weights(worked_out.domain, near)
    for run in range(runs):
        path = folder / f"{run}.jsonl"
        journal = Journal.create(path, {"id": str(run)})
        curator = Curator(table, Terms(near, plan.measure, plan.budget, plan.noise), journal)
        price = plan.budget * plan.shares.one_way
        singles = tuple(curator.marginals(list(asked), price, list(asked.values())))
        answers = Answers(singles, (), (), None, None)
        whole = measure_statistics(None, Stage(curator, plan, worked_out.layout), answers)
        share = curator.remaining * len(plan.wanted) / max(plan.outlined.cliques, 1)
        direct = LeastSquares(worked_out.domain, (*singles, *curator.marginals(plan.wanted, share)))
        by_counts = Sources(columns, direct, _NoModel())
        for way, own in (
            ("counts", by_counts),
            ("own", replace(by_counts, sums=whole.sums, finer=whole.finer)),
        ):
            tables = compute_statistics(spec.publish.statistics, own)
            for one, known, found in zip(case.asked, true, tables[len(columns) :], strict=True):
                for row in found.table.to_pylist():
                    group = str(row[one["by"]]) if "by" in one else "", row.get("quantile", "")
                    if group in known and row["estimate"] is not None:
                        half = (row["high"] - row["low"]) / 2
                        holds = row["low"] <= known[group] <= row["high"]
                        yield found.title, way, (holds, half, abs(row["estimate"] - known[group]))
        journal.close()
        path.unlink()


def main() -> None:
    """Print a table in Markdown."""
    import tempfile

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    print("| table | figure | by | hold | half-width | error |\n|---|---|---|---|---|---|")
    for name in options.tables:
        figures = defaultdict(list)
        with tempfile.TemporaryDirectory() as folder:
            for title, way, found in _found(CASES[name](), options.runs, Path(folder)):
                figures[title, way].append(found)
                figures["all quantiles" if "quantiles" in title else "all means", way].append(found)
        for (title, way), found in figures.items():
            holds, half, error = np.array(found, dtype=float).T
            shown = f"{100 * holds.mean():.1f} % of {len(holds)} | {np.median(half):.3g} | {error.mean():.3g}"
            print(f"| {name} | {title} | {way} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
