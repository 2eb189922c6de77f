"""Time, memory and error of whole releases of wide tables.

    python benchmarks/wide_tables.py [--table latent adult] [--columns 150 300 500]
        [--structure independent mst auto] [--epsilon 1] [--runs 1] [--rows 100000]

`latent` is made up: each row has one of 6 classes in each of the table's blocks of 25 columns, and the class
of the first block decides half of those of the others. Two columns of three are binary, one has 8 values;
each follows the class of its block. `adult` repeats the columns of adult-coded.csv, in the folder that
DPSYNTH_DATA names. In each repetition of a column a random quarter of the rows have their values shuffled, so
it resembles the column that it repeats, and what that is related to, but less.

Each release is a fresh process of `dpsynth run --plain`, timed and measured from outside; means of the
runs. The error is the mean total variation distance over all pairs of columns between the
synthetic table and the whole private one; of pairs of one block too. Cells are those of the published model.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
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
BLOCK, CLASSES = 25, 6
"""Columns of a block of the made-up table, and classes of its rows."""
MOST_VALUES, WIDER = 8, 3
"""Values of each third column; all others are binary."""

Codes = dict[str, NDArray[np.int32]]


def latent(columns: int, rows: int) -> tuple[dict[str, int], Codes]:
    """Columns that follow latent classes, one a block, which depend on each other."""
    rng = np.random.default_rng(columns)
    sizes, found = {}, {}
    shared = rng.integers(0, CLASSES, rows)
    for i in range(columns):
        if i % BLOCK == 0:
            own = np.where(rng.random(rows) < 0.5, shared, rng.integers(0, CLASSES, rows)) if i else shared
        name = f"c{i}"
        sizes[name] = MOST_VALUES if i % WIDER == 0 else 2
        shares = np.cumsum(rng.dirichlet(np.full(sizes[name], 0.6), CLASSES), axis=1)
        found[name] = (rng.random(rows)[:, None] > shares[own, :-1]).sum(axis=1).astype(np.int32)
    return sizes, found


def repeated(columns: int, rows: int) -> tuple[dict[str, int], Codes]:
    """The columns of a real table, repeated."""
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
    return wide, found


TABLES = {"latent": latent, "adult": repeated}


def write_table(folder: Path, made: str, columns: int, rows: int) -> None:
    """Write a wide table as train.csv, train.parquet and domain.json."""
    wide, found = TABLES[made](columns, rows)
    folder.mkdir()
    csv.write_csv(pa.table(found), folder / "train.csv")
    parquet.write_table(pa.table(found), folder / "train.parquet")
    (folder / "domain.json").write_text(json.dumps(wide))


def _indicators(path: Path, sizes: dict[str, int]) -> NDArray[np.float32]:
    """float32[rows, cells of all columns]: 1 where the row has the value."""
    table = parquet.read_table(path)
    parts = [table.column(c).to_numpy()[:, None] == np.arange(size) for c, size in sizes.items()]
    return np.concatenate(parts, axis=1).astype(np.float32)


def figures(table: Path, public: Path) -> tuple[float, float, float]:
    """Mean total variation distance over all pairs of columns, over those of one block; the model's cells."""
    sizes: dict[str, int] = json.loads((table / "domain.json").read_text())
    shares = []
    for path in (table / "train.parquet", public / "synthetic.parquet"):
        rows = _indicators(path, sizes)
        # Products of 0 and 1 are exact in any order, below 2^24 rows.
        shares.append((rows.T @ rows).astype(np.float64) / len(rows))
    ends = np.cumsum([0, *sizes.values()])[:-1]
    sums = np.add.reduceat(np.add.reduceat(np.abs(shares[0] - shares[1]), ends, axis=0), ends, axis=1) / 2
    first, second = np.triu_indices(len(sizes), 1)
    near = first // BLOCK == second // BLOCK
    pairs = sums[first, second]
    return float(pairs.mean()), float(pairs[near].mean()), float(load(public / "model.npz").tree.cells)


def released(table: Path, structure: str, privacy: str, apart: ProcessPoolExecutor) -> tuple[float, ...]:
    """Seconds, CPU seconds, peak megabytes, errors and cells of one release."""
    config = table.with_name(f"{structure}.yaml")
    config.write_text(config_text(table, table.with_name("ledger.db"), privacy, f"method: {structure}"))
    command = [sys.executable, "-m", "dpsynth", "run", str(config), "--plain"]
    bundle, used = measured([*command, "--out", str(table.with_name("out"))])
    found = apart.submit(figures, table, Path(bundle) / "public").result()
    return used["seconds"], used["cpu"], used["MB"], *found


def main() -> None:
    """Print a table, one row a width and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--table", nargs="+", choices=TABLES, default=["latent"])
    parser.add_argument("--columns", nargs="+", type=int, default=[150, 300, 500])
    parser.add_argument("--structure", nargs="+", default=["independent", "mst", "auto"])
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
    lines: list[list[str]] = []
    privacy = f"epsilon: {arguments.epsilon}, delta: {DELTA}"
    # Tables are held by another process: this one's own peak would count as the releases'.
    apart = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with tempfile.TemporaryDirectory() as folder, apart:
        for made in arguments.table:
            for columns in arguments.columns:
                table = Path(folder) / f"{made}{columns}" / "wide"
                table.parent.mkdir()
                apart.submit(write_table, table, made, columns, arguments.rows).result()
                for structure in arguments.structure:
                    runs = [released(table, structure, privacy, apart) for _ in range(arguments.runs)]
                    seconds, cpu, peak, error, near, cells = map(mean, zip(*runs, strict=True))
                    line = [made, structure, str(columns), f"{seconds:.1f}", f"{cpu:.1f}", f"{peak:.0f}"]
                    lines.append([*line, f"{error:.4f}", f"{near:.4f}", f"{cells:,.0f}"])
                    print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    print(f"{arguments.rows:,} rows, {privacy}, means of {arguments.runs} runs.\n")
    head = ["table", "method", "columns", "seconds", "CPU s", "MB", "tvd2", "in a block", "cells"]
    print(markdown(head, lines, words=2))


if __name__ == "__main__":
    main()
