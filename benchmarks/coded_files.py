"""Coded tables that the outside scorer doesn't split itself, and errors of four-way marginals.

    python benchmarks/coded_files.py split DATA TABLE FOLDER
    python benchmarks/coded_files.py four-way REAL SYNTHETIC DOMAIN

The first command writes `train.csv`, `test.csv` and `domain.json` of DATA/TABLE.csv.gz, by the scorer's own
fixed split: four fifths of a permutation of the rows. The second one prints the mean total variation
distance of 300 fixed sets of four columns. Each runs in a process of its own, so that `coded_tables.py`,
which measures memory, stays small.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from itertools import combinations
from math import comb, prod
from pathlib import Path

import numpy as np
import pandas as pd

SETS, SEED, SPLIT_SEED = 300, 20240601, 7
DENSE = 1 << 20
"""Cells up to which all cells of a marginal are counted; of more, those that rows have."""


def split(data: Path, table: str, folder: Path) -> None:
    """Write the two parts of a table of codes, and its domain."""
    domain = json.loads((data / f"{table}-domain.json").read_text())
    rows = pd.read_csv(data / f"{table}.csv.gz")[list(domain)]
    order = np.random.RandomState(SPLIT_SEED).permutation(len(rows))
    first = len(rows) - len(rows) // 5
    folder.mkdir(parents=True, exist_ok=True)
    rows.iloc[order[:first]].to_csv(folder / "train.csv", index=False)
    rows.iloc[order[first:]].to_csv(folder / "test.csv", index=False)
    (folder / "domain.json").write_text(json.dumps(domain))


def fixed_sets(columns: list[str], ways: int) -> list[tuple[str, ...]]:
    """All sets of so many columns, or a fixed choice of 300 of them."""
    rng = np.random.RandomState(SEED)
    if comb(len(columns), ways) <= SETS:
        return list(combinations(columns, ways))
    found: set[tuple[str, ...]] = set()
    while len(found) < SETS:
        chosen = rng.choice(len(columns), ways, replace=False)
        found.add(tuple(columns[i] for i in sorted(chosen)))
    return sorted(found)


def distance(
    real: pd.DataFrame, other: pd.DataFrame, columns: tuple[str, ...], sizes: dict[str, int]
) -> float:
    """Total variation distance of two tables on some columns."""
    codes = []
    for table in (real, other):
        code = np.zeros(len(table), dtype=np.int64)
        for c in columns:
            code = code * sizes[c] + table[c].to_numpy()
        codes.append(code)
    cells = prod(sizes[c] for c in columns)
    if cells > DENSE:
        keys, place = np.unique(np.concatenate(codes), return_inverse=True)
        codes, cells = [place[: len(real)], place[len(real) :]], len(keys)
    shares = [np.bincount(part, minlength=cells) / max(len(part), 1) for part in codes]
    return 0.5 * float(np.abs(shares[0] - shares[1]).sum())


def errors(real: Path, synthetic: Path, domain: Path, ways: Sequence[int]) -> list[float]:
    """Mean total variation distances of 300 sets of so many columns each."""
    sizes: dict[str, int] = json.loads(domain.read_text())
    tables = [pd.read_csv(path)[list(sizes)] for path in (real, synthetic)]
    return [
        float(np.mean([distance(*tables, columns, sizes) for columns in fixed_sets(list(sizes), many)]))
        for many in ways
    ]


def main() -> None:
    """Run one of the two commands."""
    command, *paths = sys.argv[1:]
    if command == "split":
        split(Path(paths[0]), paths[1], Path(paths[2]))
    else:
        real, synthetic, domain = map(Path, paths)
        print(errors(real, synthetic, domain, (4,))[0])


if __name__ == "__main__":
    main()
