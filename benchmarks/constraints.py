"""Synthetic rows under twelve constraints of all kinds: violations in the files, and the time it costs.

    python benchmarks/constraints.py [--rows 1000000] [--private 200000] [--times 3] [--careless]

A made-up hospital table, of which a tenth of the rows violate something, is released with the
constraints and without, in turns, in one process. The CSV file is then read by pandas and checked by code of
this file alone. The least times of several releases are shown. With
--careless the private table is noise that violates every constraint in most rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.config import from_mapping
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request

COLUMNS: dict[str, dict[str, object]] = {
    "age": {"type": "integer", "min": 0, "max": 109, "bins": 22},
    "sex": {"type": "category", "values": ["F", "M"]},
    "married": {"type": "category", "values": ["yes", "no", "widowed"]},
    "pregnant": {"type": "boolean", "missing": False},
    "education": {"type": "category", "values": ["none", "school", "college", "doctorate"]},
    "education_num": {"type": "integer", "min": 0, "max": 3},
    "ward": {"type": "category", "values": [f"W{i}" for i in range(12)]},
    "site": {"type": "category", "values": ["north", "south", "west"]},
    "admitted": {"type": "date", "min": "2022-01-01", "max": "2024-12-31", "unit": "month"},
    "discharged": {"type": "date", "min": "2022-01-01", "max": "2024-12-31", "unit": "month"},
    "died": {"type": "date", "min": "2022-01-01", "max": "2024-12-31", "unit": "month"},
    "alive": {"type": "boolean", "missing": False},
    "drugs": {"type": "number", "min": 0, "max": 20000, "bins": 20, "decimals": 2},
    "room": {"type": "number", "min": 0, "max": 30000, "bins": 20, "decimals": 2},
    "bill": {"type": "number", "min": 0, "max": 40000, "bins": 20, "decimals": 2},
    "insured": {"type": "number", "min": 0, "max": 40000, "bins": 20, "decimals": 2},
    "own": {"type": "number", "min": 0, "max": 40000, "bins": 20, "decimals": 2},
    "minor": {"type": "derived", "formula": "if(age < 18, 'minor', 'adult')"},
}
RULES = [
    "age < 16 implies married == 'no'",
    "pregnant implies sex == 'F' and age >= 12 and age <= 60",
    "education in ['college', 'doctorate'] implies age >= 18",
    "education <-> education_num",
    "ward determines site",
    "admitted <= discharged",
    "alive implies died is missing",
    "not alive implies died >= admitted",
    "bill == drugs + room",
    "own == bill - insured",
    "insured <= 0.9 * bill or age >= 65",
    "minor == 'minor' and sex == 'M' implies room < 15000",
]


def violations(path: Path) -> list[int]:
    """Rows that violate each rule, counted in the CSV file by pandas; for ties, partners too many."""
    t = pd.read_csv(path, parse_dates=["admitted", "discharged", "died"], dtype={"education_num": "Int64"})
    age, married, sex = t["age"], t["married"], t["sex"]
    pregnant, alive = t["pregnant"].astype(bool), t["alive"].astype(bool)
    cents = {c: (t[c] * 100).round() for c in ("drugs", "room", "bill", "insured", "own")}

    def differing(left: str, right: str) -> int:
        pairs = t[[left, right]].dropna().drop_duplicates()
        return int(len(pairs) - pairs[left].nunique())

    off_bill = cents["bill"] - cents["drugs"] - cents["room"]
    off_own = cents["own"] - cents["bill"] + cents["insured"]
    broken = [
        (age < 16) & married.notna() & (married != "no"),
        pregnant & ((sex == "M") | (age < 12) | (age > 60)),
        t["education"].isin(["college", "doctorate"]) & (age < 18),
        differing("education", "education_num") + differing("education_num", "education"),
        differing("ward", "site"),
        t["admitted"] > t["discharged"],
        alive & t["died"].notna(),
        ~alive & (t["died"] < t["admitted"]),
        off_bill.notna() & (off_bill != 0),
        off_own.notna() & (off_own != 0),
        (cents["insured"] * 10 > 9 * cents["bill"]) & (age < 65),
        (age < 18) & (sex == "M") & (t["room"] >= 15000),
    ]
    return [b if isinstance(b, int) else int(b.sum()) for b in broken]


def private(rows: int, rng: np.random.Generator, careless: bool) -> pd.DataFrame:
    """A table of a hospital; if careless, of no hospital at all."""
    start = np.datetime64("2022-01-01")
    admitted = rng.integers(0, 1000, rows)
    age = np.minimum(rng.gamma(6, 8, rows), 109).astype(int)
    sex = rng.choice(["F", "M"], rows)
    education = np.where(age < 18, rng.integers(0, 2, rows), rng.integers(0, 4, rows))
    alive = rng.random(rows) < 0.93
    drugs, room = rng.gamma(1.2, 1500, rows).clip(0, 20000), rng.gamma(2, 2500, rows).clip(0, 19000)
    bill = drugs.round(2) + room.round(2)
    insured = (bill * rng.beta(8, 3, rows).clip(0, 0.9)).round(2)
    married = np.where(age < 16, "no", rng.choice(["yes", "no", "widowed"], rows, p=[0.5, 0.4, 0.1]))
    ward = rng.integers(0, 12, rows)
    stay = rng.gamma(1.5, 5, rows).astype(int)
    if careless:
        admitted, stay = rng.integers(0, 1000, rows), -rng.integers(0, 900, rows)
        married, sex = rng.choice(["yes", "no", "widowed"], rows), np.full(rows, "M")
        education, age, ward = rng.integers(0, 4, rows), rng.integers(0, 110, rows), rng.integers(0, 12, rows)
        drugs, room, bill = (rng.uniform(0, top, rows) for top in (20000, 30000, 40000))
        insured = rng.uniform(0, 40000, rows)
    number = rng.integers(0, 4, rows) if careless else education
    site = rng.integers(0, 3, rows) if careless else ward % 3
    died = start + np.minimum(admitted + np.abs(stay), 1090).astype("m8[D]")
    table = pd.DataFrame(
        {
            "age": age,
            "sex": sex,
            "married": married,
            "pregnant": rng.random(rows) < 0.5
            if careless
            else (sex == "F") & (age > 18) & (age < 45) & (stay > 9),
            "education": np.array(["none", "school", "college", "doctorate"])[education],
            "education_num": number,
            "ward": [f"W{w}" for w in ward],
            "site": np.array(["north", "south", "west"])[site],
            "admitted": start + admitted.astype("m8[D]"),
            "discharged": start + np.clip(admitted + stay, 0, 1090).astype("m8[D]"),
            "died": np.where(alive & (not careless), np.datetime64("NaT"), died),
            "alive": alive,
            "drugs": drugs.round(2),
            "room": room.round(2),
            "bill": bill.round(2),
            "insured": insured,
            "own": (bill - insured).round(2),
        }
    )
    wrong = rng.random(rows) < 0.1
    for name in ("married", "education", "discharged", "bill", "room"):
        table.loc[wrong, name] = rng.permutation(table.loc[wrong, name].to_numpy())
    return table


def main() -> None:
    """Print the violations of each rule, and the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--private", type=int, default=200_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--structure", default="auto")
    parser.add_argument("--careless", action="store_true")
    arguments = parser.parse_args()
    steps: dict[str, float] = {}

    def timed(name: str, action: object) -> object:
        begin = time.process_time()
        done = action()  # type: ignore[operator]
        steps[name] = time.process_time() - begin
        return done

    took: dict[bool, list[tuple[float, float, float]]] = {True: [], False: []}
    counted: dict[bool, list[int]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = private(arguments.private, np.random.default_rng(1), arguments.careless)
        table.to_csv(folder / "table.csv", index=False)
        print(f"private table: {violations(folder / 'table.csv')} violations")
        for turn in range(2 * arguments.times + 1):
            ruled = turn % 2 == 0
            spec = from_mapping(
                {
                    "source": {"path": str(folder / "table.csv")},
                    "privacy": {"epsilon": 1, "delta": 1e-9},
                    "ledger": {
                        "url": f"sqlite:///{folder}/ledger.db",
                        "cap": {"epsilon": 1000, "delta": 0.01},
                    },
                    "structure": {"method": arguments.structure},
                    "columns": COLUMNS,
                    "sample": {"rows": arguments.rows},
                    "constraints": RULES if ruled else [],
                }
            )
            begin, spent = time.perf_counter(), time.process_time()
            release = pipeline.run(spec, Request(folder / f"out{turn}"), run_step=timed)  # type: ignore[arg-type]
            whole = time.perf_counter() - begin, time.process_time() - spent
            if turn:
                # The first release loads what both need.
                took[ruled].append((*whole, steps["sample rows"]))
            path = release.folder / "public" / "synthetic.csv"
            counted[ruled] = [
                a + b for a, b in zip(violations(path), counted.get(ruled, [0] * 12), strict=True)
            ]
            path.unlink()
    print(
        f"dpsynth {dpsynth.__version__}, {arguments.rows:,} rows a release, structure {arguments.structure}"
    )
    width = max(map(len, RULES))
    print(f"{'rule':{width}}  violations with   without")
    for rule, a, b in zip(RULES, counted[True], counted[False], strict=True):
        print(f"{rule:{width}}  {a:15,}  {b:8,}")
    words = ("whole release, by the clock", "whole release, processor time", "drawing rows, processor time")
    for part, word in enumerate(words):
        with_, without = (min(t[part] for t in took[ruled]) for ruled in (True, False))
        print(f"{word}: {with_:.1f} s with, {without:.1f} s without: {with_ / without:.2f} times as long")


if __name__ == "__main__":
    main()
