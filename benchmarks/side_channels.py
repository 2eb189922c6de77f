"""Side channels of a release, on neighbouring tables: time, memory, sizes of files, the journal.

    python benchmarks/side_channels.py [--rows 20000] [--runs 20]

Each release is a fork of one process that has imported and tried everything once, which is as little noise as
an observer of the machine could hope for. The releases of the tables take turns. "more" says how often a
release of the neighbour showed more than one of the base, over all pairs: 50 % tells nothing, 100 % all.
Bytes are published; all other columns are seen by observers of the machine alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

CONFIG = """
release: watched
source: {{path: {table}}}
privacy:
  epsilon: 1
  delta: 1.0e-9
  unit: {{column: person, max_rows: 4}}
ledger: {{url: "sqlite:///{folder}/ledger.db"}}
structure: {structure}
sample: {{rows: 1000}}
columns:
  age: {{type: integer, min: 0, max: 99, bins: 20}}
  region: {{type: category, values: [north, east, south, west]}}
  income: {{type: number, min: 0, max: 100000, bins: 20}}
  married: {{type: category, values: ["yes", "no"]}}
  visits: {{type: integer, min: 0, max: 9}}
"""


def base_table(rows: int) -> pd.DataFrame:
    """Persons of one to three rows."""
    rng = np.random.default_rng(18)
    age = rng.integers(0, 100, rows)
    return pd.DataFrame(
        {
            "person": [f"p{i}" for i in rng.integers(0, rows // 2, rows)],
            "age": age,
            "region": rng.choice(["north", "east", "south", "west"], rows),
            "income": (rng.gamma(2, 12_000, rows) + 100 * age).round(2),
            "married": rng.choice(["yes", "no"], rows),
            "visits": rng.poisson(2, rows),
        }
    ).astype(str)


def with_person(table: pd.DataFrame, count: int = 1, **cells: str) -> pd.DataFrame:
    """The neighbour that has one person more."""
    row = {"person": "new", "age": "50", "region": "east", "income": "1000", "married": "no", "visits": "1"}
    return pd.concat([table, pd.DataFrame([{**row, **cells}] * count)], ignore_index=True)


NEIGHBOURS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "base": lambda table: table,
    "one row more": with_person,
    "an outlier": lambda table: with_person(table, age="1e300", income="-1e300", visits="99999999999"),
    "a row of missing cells": lambda table: with_person(
        table, age="", region="", income="", married="", visits=""
    ),
    "a cell of 1 MB": lambda table: with_person(table, region="x" * 1_000_000),
    "a person of 100 rows": lambda table: with_person(table, 100),
    "a person of 10 000 rows": lambda table: with_person(table, 10_000),
}


@dataclass(frozen=True)
class Seen:
    """The side channels of a release: processor seconds, MB at most, published bytes and names, journal."""

    cpu: float
    memory: float
    published: int
    names: tuple[str, ...]
    lines: int


def observed(folder: Path, table: Path, structure: str) -> Seen:
    """A release in a fork."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    config = folder / "watched.yaml"
    config.write_text(CONFIG.format(table=table, folder=folder, structure=structure))
    child = os.fork()
    if not child:
        code = 1
        try:
            import dpsynth

            nothing = os.open(os.devnull, os.O_RDWR)
            for number in (1, 2):
                os.dup2(nothing, number)
            dpsynth.release(dpsynth.load(config), outputs=folder / "outputs")
            code = 0
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    assert status == 0, "the release failed"
    (bundle,) = (path for path in (folder / "outputs" / "watched").iterdir() if (path / "public").is_dir())
    files = [path for path in (bundle / "public").rglob("*") if path.is_file()]
    return Seen(
        used.ru_utime + used.ru_stime,
        used.ru_maxrss / 1024,
        sum(path.stat().st_size for path in files),
        tuple(sorted(path.relative_to(bundle).as_posix() for path in files)),
        len((bundle / "private" / "journal.jsonl").read_text().splitlines()),
    )


def more_often(one: list[float], base: list[float]) -> float:
    """The share of pairs in which the first is larger; a half of those where both are equal."""
    apart = np.subtract.outer(one, base)
    return float(np.mean(apart > 0) + np.mean(apart == 0) / 2)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--structure", default="mst")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        tables = {}
        for number, (name, change) in enumerate(NEIGHBOURS.items()):
            tables[name] = folder / f"{number}.csv"
            change(base_table(args.rows)).to_csv(tables[name], index=False)
        config = folder / "warm.yaml"
        (folder / "warm").mkdir()
        config.write_text(
            CONFIG.format(table=tables["base"], folder=folder / "warm", structure=args.structure)
        )
        import dpsynth

        dpsynth.release(dpsynth.load(config), outputs=folder / "warm" / "outputs", tell=lambda _: None)
        seen: dict[str, list[Seen]] = {name: [] for name in NEIGHBOURS}
        for _ in range(args.runs):
            for name, table in tables.items():
                seen[name].append(observed(folder / "run", table, args.structure))
    head = f"{'CPU s':>13} {'more':>7} {'peak MB':>14} {'more':>6} {'public bytes':>18} {'more':>6}"
    print(f"{'neighbour':24} {head} {'files':>5} {'journal lines':>13}")
    for name, runs in seen.items():
        told = [f"{name:24}"]
        for field, digits in (("cpu", 3), ("memory", 1), ("published", 0)):
            values = [float(getattr(run, field)) for run in runs]
            of_base = [float(getattr(run, field)) for run in seen["base"]]
            told.append(f"{np.mean(values):8.{digits}f} +- {np.std(values):.{digits}f}")
            told.append(f"{'' if name == 'base' else f'{more_often(values, of_base):.0%}':>5}")
        names, lines = {run.names for run in runs}, {run.lines for run in runs}
        print(*told, sorted(map(len, names)), sorted(lines))
    print("one list of public files:", len({run.names for runs in seen.values() for run in runs}) == 1)


if __name__ == "__main__":
    main()
