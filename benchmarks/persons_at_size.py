"""Persons out of core: time and memory of whole releases, and how evenly rows of a person are chosen.

    python benchmarks/persons_at_size.py [--rows 1000000 10000000] [--most 5] [--columns 4] [--memory "50 MB"]

The table is made up: persons have 1 to 12 rows, in no order, and at most --most of each are used. Coded rows
beyond --memory lie in a file. Each release is a fresh process of `dpsynth run --plain`, timed and measured
from outside.

Then, under a fresh key, the rows that are kept of the same persons: for every number n of rows above the
bound, chi-square of the n positions of a person's rows, with n - 1 degrees of freedom, and its probability.
Of n positions k are kept, so the sum of (kept - expected)^2 / expected is scaled by (n - 1)/(n - k).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from coded_tables import markdown, measured
from numpy.typing import NDArray
from pyarrow import parquet
from scipy.stats import chi2

from dpsynth.curator.units import person_codes, rows_kept

MOST_OWN = 12
PLACES = 20


def persons_of(rows: int) -> NDArray[np.int64]:
    """The person of each row: of 1 to MOST_OWN rows each, in no order."""
    rng = np.random.default_rng(rows)
    own = rng.integers(1, MOST_OWN + 1, rows)
    found = np.repeat(np.arange(rows), own)[:rows]
    return rng.permutation(found)


def write_table(folder: Path, rows: int, columns: int, most: int, memory: str) -> Path:
    """The table, and the configuration of its release."""
    rng, names = np.random.default_rng(1), [f"c{i}" for i in range(columns)]
    cells = [rng.integers(0, PLACES, rows).astype(np.int32) for _ in names]
    path = folder / "table.parquet"
    parquet.write_table(pa.table([persons_of(rows), *cells], names=["person", *names]), path)
    declared = "".join(f"  {n}: {{type: integer, min: 0, max: {PLACES - 1}}}\n" for n in names)
    config = folder / "table.yaml"
    config.write_text(
        f"source: {{path: {path}}}\nengine: {{memory: {memory}}}\n"
        f"privacy: {{epsilon: 1, delta: 1.0e-9, unit: {{column: person, max_rows: {most}}}}}\n"
        f"ledger: {{url: 'sqlite:///{folder}/ledger.db'}}\nstructure: mst\nsample: {{rows: 10000}}\n"
        f"columns:\n{declared}"
    )
    return config


def evenness(persons: NDArray[np.uint64], most: int) -> Iterator[tuple[int, int, float, float]]:
    """For each number of rows above the bound: that number, its persons, chi-square and probability."""
    kept = rows_kept(persons, most, os.urandom(32))
    order = np.argsort(persons, kind="stable")
    _, first, own = np.unique(persons[order], return_index=True, return_counts=True)
    for n in range(most + 1, MOST_OWN + 1):
        starts = first[own == n]
        # A single person has no statistic.
        if len(starts) > 1:
            seen = kept[order[starts[:, None] + np.arange(n)]].sum(axis=0)
            expected = len(starts) * most / n
            statistic = float(((seen - expected) ** 2 / expected).sum()) * (n - 1) / (n - most)
            yield n, len(starts), statistic, float(chi2.sf(statistic, n - 1))


def main() -> None:
    """Print a table of releases, then one of the rows kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000_000, 10_000_000])
    parser.add_argument("--most", type=int, default=5)
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--memory", default="50 MB")
    arguments = parser.parse_args()
    lines = []
    for rows in arguments.rows:
        with tempfile.TemporaryDirectory() as name:
            # A process of its own: where a peak counts what a process had before, this one stays small.
            if (child := os.fork()) == 0:
                write_table(Path(name), rows, arguments.columns, arguments.most, arguments.memory)
                os._exit(0)
            os.waitpid(child, 0)
            run = [
                sys.executable,
                "-m",
                "dpsynth",
                "run",
                f"{name}/table.yaml",
                "--plain",
                "--out",
                f"{name}/out",
            ]
            _, used = measured(run)
        lines.append([f"{rows:,}", *(f"{used[key]:.1f}" for key in ("seconds", "cpu")), f"{used['MB']:.0f}"])
        print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    print(markdown(["rows", "seconds", "CPU s", "MB"], lines), "\n")
    persons = person_codes(pa.array(persons_of(arguments.rows[-1])), os.urandom(32))
    found = [[f"{n}", f"{m:,}", f"{s:.1f}", f"{p:.3f}"] for n, m, s, p in evenness(persons, arguments.most)]
    print(markdown(["rows of a person", "persons", "chi-square", "probability"], found))


if __name__ == "__main__":
    main()
