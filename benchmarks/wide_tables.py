"""Time, memory and error of whole releases of wide tables, made by repeating a real one's columns.

    python benchmarks/wide_tables.py [--columns 60 150] [--structure mst one_shot auto]
        [--epsilon 1] [--runs 1] [--rows 48842]

The table is adult-coded.csv in the folder that DPSYNTH_DATA names. In each repetition of a column a
random quarter of the rows have their values shuffled, so it resembles the column that it repeats,
and what that is related to, but less.

Each release is a fresh process of `dpsynth run --plain`, timed and measured from outside; means of the
runs. The error is the mean total variation distance over all pairs of columns between the
synthetic table and the whole private one. Cells are those of the published model.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations, islice
from multiprocessing import get_context
from pathlib import Path
from statistics import mean

import numpy as np
import pyarrow as pa
from coded_tables import DELTA, config_text, markdown, measured
from engine_problems import read_table
from numpy.typing import NDArray
from pyarrow import csv, parquet

from dpsynth.model import load

SHUFFLED = 4
"""One row in so many has its value shuffled."""


def write_table(folder: Path, columns: int, rows: int) -> None:
    """Write a wide table as train.csv, train.parquet and domain.json."""
    rng = np.random.default_rng(columns)
    sizes, codes = read_table("adult-coded")
    wide, found = {}, {}
    names = ((f"{name} {turn}", name) for turn in range(columns) for name in sizes)
    for named, name in islice(names, columns):
        wide[named] = sizes[name]
        values = found[named] = codes[name][:rows].astype(np.int32)
        if not named.endswith(" 0"):
            moved = rng.choice(len(values), len(values) // SHUFFLED, replace=False)
            values[moved] = values[rng.permutation(moved)]
    folder.mkdir()
    csv.write_csv(pa.table(found), folder / "train.csv")
    parquet.write_table(pa.table(found), folder / "train.parquet")
    (folder / "domain.json").write_text(json.dumps(wide))


def _codes(path: Path) -> dict[str, NDArray[np.int32]]:
    table = parquet.read_table(path)
    return {c: table.column(c).to_numpy().astype(np.int32) for c in table.column_names}


def figures(table: Path, public: Path) -> tuple[float, float]:
    """Mean total variation distance over all pairs of columns, and the model's cells."""
    sizes: dict[str, int] = json.loads((table / "domain.json").read_text())
    real, synthetic = _codes(table / "train.parquet"), _codes(public / "synthetic.parquet")

    def shares(codes: dict[str, NDArray[np.int32]], a: str, b: str) -> NDArray[np.float64]:
        cells = np.bincount(codes[a] * sizes[b] + codes[b], minlength=sizes[a] * sizes[b])
        return cells / len(codes[a])

    distances = [
        0.5 * float(np.abs(shares(real, a, b) - shares(synthetic, a, b)).sum())
        for a, b in combinations(sizes, 2)
    ]
    return mean(distances), float(load(public / "model.npz").tree.cells)


def released(table: Path, structure: str, privacy: str, apart: ProcessPoolExecutor) -> tuple[float, ...]:
    """Seconds, peak megabytes, error and cells of one release."""
    config = table.with_name(f"{structure}.yaml")
    config.write_text(config_text(table, table.with_name("ledger.db"), privacy, f"method: {structure}"))
    command = [sys.executable, "-m", "dpsynth", "run", str(config), "--plain"]
    bundle, figures = measured([*command, "--out", str(table.with_name("out"))])
    seconds, peak = figures["seconds"], figures["MB"]
    return seconds, peak, *apart.submit(figures, table, Path(bundle) / "public").result()


def main() -> None:
    """Print a table, one row a width and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--columns", nargs="+", type=int, default=[60, 150])
    parser.add_argument("--structure", nargs="+", default=["mst", "one_shot", "auto"])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--rows", type=int, default=48_842)
    arguments = parser.parse_args()
    lines: list[list[str]] = []
    privacy = f"epsilon: {arguments.epsilon}, delta: {DELTA}"
    # Tables are held by another process: this one's own peak would count as the releases'.
    apart = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with tempfile.TemporaryDirectory() as folder, apart:
        for columns in arguments.columns:
            table = Path(folder) / str(columns) / "wide"
            table.parent.mkdir()
            apart.submit(write_table, table, columns, arguments.rows).result()
            for structure in arguments.structure:
                runs = [released(table, structure, privacy, apart) for _ in range(arguments.runs)]
                seconds, peak, error, cells = map(mean, zip(*runs, strict=True))
                line = [structure, str(columns), f"{seconds:.1f}", f"{peak:.0f}", f"{error:.4f}"]
                lines.append([*line, f"{cells:,.0f}"])
                print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    print(f"The first {arguments.rows:,} rows, {privacy}, means of {arguments.runs} runs.\n")
    print(markdown(["method", "columns", "seconds", "MB", "tvd2", "cells"], lines))


if __name__ == "__main__":
    main()
