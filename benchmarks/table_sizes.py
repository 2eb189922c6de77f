"""Time and memory of whole releases as a made-up table grows.

    python benchmarks/table_sizes.py [--rows 20000 200000 2000000] [--columns 10] [--format csv]
        [--structure auto] [--made 10000] [--duckdb]

Each release is a fresh process of `dpsynth run --plain`, timed and measured from outside.
The floor is one pass of Arrow's reader over the same file, in a process of its own; with --duckdb (needs
`dpsynth[duckdb]`) it is DuckDB counting all pairs of columns of the same file in one query. --made is the
number of synthetic rows; left out, as many as the table has.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from coded_tables import measured
from pyarrow import csv, parquet

PLACES = 20

FLOORS = {
    "csv": "import sys; from pyarrow import csv; print(csv.read_csv(sys.argv[1]).num_rows)",
    "parquet": "import sys; from pyarrow import parquet; print(parquet.read_table(sys.argv[1]).num_rows)",
}

PAIRS = """
import itertools, sys, duckdb
path = sys.argv[1]
names = duckdb.sql(f"SELECT * FROM '{path}' LIMIT 0").columns
sets = ", ".join(f"({a}, {b})" for a, b in itertools.combinations(names, 2))
listed = ", ".join(names)
cells = f"SELECT {listed}, count(*) AS n FROM '{path}' GROUP BY GROUPING SETS ({sets})"
print(duckdb.sql(f"SELECT count(*), sum(n) FROM ({cells})").fetchall())
"""


def write_table(folder: Path, rows: int, columns: int, kind: str, structure: str, made: int | None) -> None:
    """A table of related integer columns of PLACES places each."""
    rng = np.random.default_rng(rows + columns)
    shared = rng.integers(0, 5, rows)
    names = [f"c{i}" for i in range(columns)]
    codes = [(rng.integers(0, PLACES, rows) + shared * (i % 7)) % PLACES for i in range(columns)]
    path = folder / f"table.{kind}"
    table = pa.table(codes, names=names)
    csv.write_csv(table, path) if kind == "csv" else parquet.write_table(table, path)
    declared = "".join(
        f"  {n}: {{type: integer, min: 0, max: {PLACES - 1}, missing: false}}\n" for n in names
    )
    (folder / "table.yaml").write_text(
        f"source: {{path: {path}}}\nprivacy: {{epsilon: 1, delta: 1.0e-9}}\n"
        f"ledger: {{url: 'sqlite:///{folder}/ledger.db'}}\nstructure: {structure}\n"
        + (f"sample: {{rows: {made}}}\n" if made else "")
        + f"columns:\n{declared}"
    )


def main() -> None:
    """Print one row a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[20_000, 200_000, 2_000_000])
    parser.add_argument("--columns", nargs="+", type=int, default=[10])
    parser.add_argument("--format", choices=FLOORS, default="csv")
    parser.add_argument("--structure", default="auto")
    parser.add_argument("--made", type=int)
    parser.add_argument("--duckdb", action="store_true")
    arguments = parser.parse_args()
    least_work = PAIRS if arguments.duckdb else FLOORS[arguments.format]
    print("      rows   columns   seconds       CPU        MB     floor floor CPU     ratio")
    for rows in arguments.rows:
        for columns in arguments.columns:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                path = folder / f"table.{arguments.format}"
                # By another process: where a peak counts what a process had before, this one stays small.
                if (child := os.fork()) == 0:
                    write_table(folder, rows, columns, arguments.format, arguments.structure, arguments.made)
                    os._exit(0)
                os.waitpid(child, 0)
                _, least = measured([sys.executable, "-c", least_work, str(path)])
                run = [sys.executable, "-m", "dpsynth", "run", str(folder / "table.yaml"), "--plain"]
                _, whole = measured([*run, "--out", str(folder / "out")])
            floor, seconds, peak = least["seconds"], whole["seconds"], whole["MB"]
            ratio = seconds / floor
            figures = (seconds, whole["cpu"], peak, floor, least["cpu"], ratio)
            print(f"{rows:10}{columns:10}" + "".join(f"{figure:10.2f}" for figure in figures), flush=True)


if __name__ == "__main__":
    main()
