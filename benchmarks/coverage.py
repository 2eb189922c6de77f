"""Coverage of 95 % intervals against real tables, by kind, and what the exam costs.

    DPSYNTH_DATA=FOLDER python benchmarks/coverage.py --keep KEPT [--tables adult nltcs flights randhie]
        [--releases 200] [--epsilon 1] [--method auto] [--seconds 250]
    DPSYNTH_DATA=FOLDER python benchmarks/coverage.py --cost [--tables nltcs] [--shares 0 0.03 0.06]

The first form makes as many releases of each table as are missing in the folder KEPT, within the seconds. It
then computes statistics of each kind from each bundle, as its recipient would. For each kind it prints the
part of the figures whose 95 % interval holds the private table's own number, and the median width of an
interval. Beside them stand how often naive intervals hold, and the median of the widths by those of the naive
ones. Naive intervals are those of whoever takes the synthetic rows for real ones. The exam's distances are
held against the exact ones of all pairs. The second form prints the mean total variation distance of all
three-way marginals, by share of the exam.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from coverage_tables import TABLES, Table
from coverage_truth import Rows
from numpy.typing import NDArray

from dpsynth import open_bundle
from dpsynth.bundle import StatisticTable, compute_statistics
from dpsynth.bundle.recipient.bundle import Bundle
from dpsynth.columns.statistic_kinds import Asked, request_of
from dpsynth.config import from_mapping
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.result import Release

Numbers = NDArray[np.float64]
MOST_TRIPLES = 60


def released(table: Table, options: argparse.Namespace, exam: float, work: Path) -> Release:
    """A release."""
    path = work / "table.csv"
    table.frame.to_csv(path, index=False)
    config = {
        "release": "coverage",
        "source": {"path": str(path)},
        "privacy": {"epsilon": options.epsilon, "delta": 1e-9, "split": {"exam": exam}},
        "ledger": {"url": f"sqlite:///{work / 'ledger.db'}", "cap": {"epsilon": 1e6, "delta": 0.1}},
        "columns": json.loads(json.dumps(table.columns)),
        "structure": {"method": options.method},
        "publish": {"statistics": list(table.asked), "formats": ["parquet"]},
    }
    return pipeline.run(from_mapping(config), Request(work / "out"))


def keep(name: str, table: Table, options: argparse.Namespace) -> Iterator[Path]:
    """The public folders of the kept releases; missing ones are made, within the seconds."""
    end = time.monotonic() + options.seconds
    for number in range(options.releases):
        folder = Path(options.keep) / f"{name}-{options.method}" / f"{number:03d}"
        if not folder.exists() and time.monotonic() < end:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as work:
                made = released(table, options, options.exam, Path(work))
                shutil.move(str(made.folder / "public"), folder)
        if folder.exists():
            yield folder


def statistics(bundle: Bundle, table: Table) -> Iterator[tuple[Mapping[str, object], StatisticTable]]:
    """Each statistic with its table, computed from the published files alone."""
    wanted: list[Mapping[str, object]] = [*table.asked, *table.further]
    requests: list[Asked] = [request_of(json.loads(json.dumps(asked))) for asked in wanted]
    columns = bundle.rows.layout.columns
    found = compute_statistics(requests, replace(bundle.sources, sampled=None))
    singles = [({"crosstab": list(t.columns)}, t) for t in found[: len(columns)]]
    yield from (*singles, *zip(wanted, found[len(columns) :], strict=True))


def kind_of(asked: Mapping[str, object], found: StatisticTable, basis: str, limits: str) -> str:
    """The row of a figure in the printed table."""
    model = f"{asked['model']} regression" if "model" in asked else found.kind.replace("one_way", "crosstab")
    return f"{model}, {basis}, {limits}"


def judged(bundle: Bundle, table: Table, real: Rows) -> dict[str, Numbers]:
    """For each kind float64[figures, 4]: held, width, held naively, naive width."""
    labels = {c.name: c.codec.labels for c in bundle.layout.columns}
    naive = Rows(bundle.synthetic, table.columns, labels)
    found: dict[str, list[Numbers]] = defaultdict(list)
    for asked, statistic in statistics(bundle, table):
        true, other = real.of(asked).value, naive.of(asked)
        shown = statistic.table.to_pandas()
        low, high = (shown[end].to_numpy(dtype=np.float64) for end in ("low", "high"))
        slack = 1e-9 * np.maximum(np.abs(true), 1.0)
        held = (low - slack <= true) & (true <= high + slack)
        by_chance = (other.low - slack <= true) & (true <= other.high + slack)
        figures = np.column_stack([held, high - low, by_chance, other.high - other.low])
        usable = np.isfinite(true) & np.isfinite(low)
        kinds = shown["basis"] + "|" + shown["limits"]
        for kind in kinds.unique():
            rows = figures[(usable & (kinds == kind)).to_numpy()]
            if len(rows):
                found[kind_of(asked, statistic, *kind.split("|"))].append(rows)
    return {kind: np.concatenate(rows) for kind, rows in found.items()}


def of_exam(bundle: Bundle, real: Rows) -> NDArray[np.bool_]:
    """For each examined pair true if the limits of its error hold the exact error."""
    labels = {c.name: c.codec.labels for c in bundle.layout.columns}
    made, rows = Rows(bundle.synthetic, real.declared, labels), bundle.facts.exam.rows
    found = []
    for line in bundle.errors[bundle.errors["kind"] == "pair"].itertuples():
        asked = {"crosstab": [line.column_1, line.column_2]}
        scaled = made.of(asked).value * rows / len(made.frame)
        exact = float(np.abs(real.of(asked).value - scaled).sum()) / (2 * rows)
        # Distances are rounded down to whole rows, published numbers have nine digits.
        found.append(line.low - 1e-8 <= exact <= line.high + 1 / rows)
    return np.array(found)


def measured_coverage(name: str, options: argparse.Namespace, folder: Path) -> None:
    """Print the coverage of one table's intervals, by kind."""
    table = TABLES[name](folder)
    figures: dict[str, list[Numbers]] = defaultdict(list)
    exams, releases, real = [], 0, None
    for path in keep(name, table, options):
        bundle = open_bundle(path)
        labels = {c.name: c.codec.labels for c in bundle.layout.columns}
        real = real or Rows(table.frame, table.columns, labels)
        for kind, rows in judged(bundle, table, real).items():
            figures[kind].append(rows)
        exams.append(of_exam(bundle, real))
        releases += 1
    rows, by = len(table.frame), f"method {options.method}, epsilon {options.epsilon:g}"
    print(f"{name}, {rows:,} rows, {by}, {releases} releases")
    distances = np.concatenate(exams)
    print(f"| {'exam, each distance':44} | {distances.mean():6.1%} of {distances.size:9,} |")
    for kind in sorted(figures):
        held, width, naively, naive_width = np.concatenate(figures[kind]).T
        by_width = np.median(width / np.where(naive_width > 0, naive_width, np.nan))
        part = np.isfinite(width / np.where(naive_width > 0, naive_width, np.nan))
        by_width = np.median(width[part] / naive_width[part]) if part.any() else np.nan
        print(
            f"| {kind:44} | {held.mean():6.1%} of {held.size:9,} | {np.median(width):9.4g} "
            f"| {naively.mean():6.1%} | {by_width:7.2f} |",
            flush=True,
        )


def cost(name: str, options: argparse.Namespace, folder: Path) -> None:
    """Print the mean three-way error by the exam's share."""
    whole = TABLES[name](folder)
    table = Table(whole.frame, whole.columns, [], [])
    for share in options.shares:
        errors = []
        for _ in range(options.releases):
            with tempfile.TemporaryDirectory() as work:
                errors.append(three_way(table, released(table, options, share, Path(work)).synthetic))
        mean, spread = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(len(errors))
        print(f"{name}, epsilon {options.epsilon:g}, share {share:g}: {mean:.5f} +- {spread:.5f}", flush=True)


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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tables", nargs="*", default=list(TABLES), choices=list(TABLES))
    parser.add_argument("--keep", default="coverage-releases")
    parser.add_argument("--releases", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--exam", type=float, default=0.03)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--shares", nargs="*", type=float, default=[0, 0.03, 0.06])
    options = parser.parse_args(arguments)
    for name in options.tables:
        (cost if options.cost else measured_coverage)(name, options, Path(os.environ["DPSYNTH_DATA"]))


if __name__ == "__main__":
    main()
