"""Relations that a release keeps: rank correlations of real tables, and tables made to be hard.

    DPSYNTH_DATA=FOLDER python benchmarks/relations.py [--tables nlswork loans flights hub exclusive-2 ...]
        [--epsilon 3] [--runs 3] [--structure auto aim]

nlswork and loans are raw tables, configured by `dpsynth init --look` with every guess accepted; nlswork with
persons of at most 12 rows. Printed is the mean rank correlation, with the sign of the real one, of the pairs
of numbers whose real one is .4 (nlswork) or .5 (loans) in size, and the share of them that keep half of it.
Then the same share of all pairs of numbers, by the size of the real correlation relative to the smallest one
that shows, as `dpsynth plan` says beforehand.

flights: two delays in 27 x 24 bins, and five columns more. Printed are the correlation of the delays, and of
flights over three hours late the share that arrives more than 90 minutes off that; both with the real ones.

hub: twelve columns of 6 values, 50 000 rows; each leans on one column of 20 values, and on nothing else.
Printed is the mean distance of pairs from the real ones, without the hub and with it, and what independence
would have. exclusive-k: 23 binary columns, 47 461 rows, of which two triples (k = 2), quadruples (3) or
quintuples (4) have one column that is the exclusive or of the others; exclusive-k-of-c: c columns. Printed is
the share of rows in which it still is; .5 if the relation is lost.

classes: 23 binary columns, 47 461 rows, that depend on six hidden classes of rows. Printed are the mean
distances of pairs and of triples from the real ones; how the seconds grow with epsilon is what it is for.
near: 50 000 rows. One column copies another of 20 values but for 1 % of the rows; another pair are the
year of an interview (20) and the year of birth (60), with the age, which follows from them up to a year.
Printed are the shares of rows in which the copy is one and in which the age is possible, and the real ones.

modular-k: ten columns of 5 values, 47 461 rows. Two triples (k = 2) or quadruples (3) have one column that is
the sum of the others modulo 5. Printed is the share of rows in which it still is; .2 if it is lost.
geometry: a class of ten that follows from the direction (of five) and the length (of two) between two points,
of four coordinates from 0 to 99, with two columns more; 20 000 rows. Printed is what a random forest that is
trained on the real rows and on the synthetic ones gets right of 5 000 others.
function: 50 000 rows. In 99 % of them an amount is price (1 to 20) by number (1 to 10) by one of four rates;
two columns more. Printed are the shares of rows in which it is, to 2 % and to 20 %, real and synthetic.

sparse: fifteen columns of 5 values that depend on six hidden classes, and ten categories of 100 values that
tell nothing, 50 000 rows. Printed is the mean distance of the pairs of the fifteen from the real ones.

values-v: a category of v values by Zipf's law, 100 000 rows, and two columns more: a kind of 6 values follows
the twentieth of the list in which the value lies, a mark the value itself where that is one of the twenty
most frequent. Printed are the distances of twentieths and kinds, and of frequent values and marks, from the
real ones, and what independence would have.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from bisect import bisect
from collections.abc import Callable, Sequence
from itertools import combinations
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from time import process_time
from typing import cast

import numpy as np
import pandas as pd
from first_contact import brought, looked_at, written
from sklearn.ensemble import RandomForestClassifier

import dpsynth
from dpsynth.config import from_mapping

DELTA = 1e-6
PERSON = {"column": "idcode", "max_rows": 12}
TIMES = [0.5, 1, 2, 4]
STRONG = {"nlswork": 0.4, "loans": 0.5}
DEPARTURE = [-60, -20, -15, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 3, 5, 10, 15, 20, 30, 45, 60, 90]
DEPARTURE += [120, 180, 240, 360, 1440]
ARRIVAL = [-90, -60, -45, -35, -30, -25, -20, -15, -10, -5, 0, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180]
ARRIVAL += [240, 360, 1440]
Scores = dict[str, float]


def correlations(table: pd.DataFrame, columns: list[str]) -> np.ndarray:
    """Rank correlations of some columns; 0 where one can't be told."""
    texts = table[columns].astype(str).replace({"True": "1", "False": "0", "true": "1", "false": "0"})
    numbers = texts.apply(pd.to_numeric, errors="coerce")
    return np.nan_to_num(numbers.rank().corr(min_periods=200).to_numpy())


def real_table(name: str, work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """The config of a real table, and a function that scores a release of it."""
    path = brought(name, work, None)
    values = looked_at(path, epsilon)
    values["source"] = {"path": str(path)}
    values["privacy"] = {"epsilon": epsilon, "delta": DELTA, "on_empty": "go"}
    if name == "nlswork":
        values["privacy"] |= {"unit": PERSON}
    declared = values["columns"]
    assert isinstance(declared, dict)
    columns = [c for c, d in declared.items() if d["type"] in {"integer", "number", "boolean"}]
    real = correlations(pd.read_csv(path, dtype=str), columns)
    pairs = [p for p in combinations(range(len(columns)), 2) if abs(real[p]) >= STRONG[name]]
    shown = shown_correlations(values, len(pd.read_csv(path, usecols=[0])), work)
    foretold: dict[str, list[tuple[int, int]]] = {}
    for a, b in combinations(range(len(columns)), 2):
        least = shown.get(frozenset((columns[a], columns[b])))
        if least is not None and real[a, b]:
            times = bisect(TIMES, abs(float(real[a, b])) / least)
            foretold.setdefault(f"{[0, *TIMES][times]} times", []).append((a, b))

    def score(synthetic: pd.DataFrame) -> Scores:
        found = correlations(synthetic, columns)
        kept = [float(found[p] * np.sign(real[p])) for p in pairs]
        halves = found * np.sign(real) >= np.abs(real) / 2
        told = {
            f"half of {len(some)} above {words}": mean(float(halves[p]) for p in some)
            for words, some in sorted(foretold.items())
        }
        return {
            "real": mean(abs(float(real[p])) for p in pairs),
            "synthetic": mean(kept),
            "kept": mean(float(halves[p]) for p in pairs),
            **told,
        }

    return values, score


def shown_correlations(values: dict[str, object], rows: int, work: Path) -> dict[frozenset[str], float]:
    """The smallest correlation of each pair of numbers that shows, as `dpsynth plan` says beforehand."""
    config = written(values | {"ledger": {"url": f"sqlite:///{work}/planned.db"}}, work / "planned.yaml")
    command = [sys.executable, "-m", "dpsynth", "plan", str(config), "--rows", str(rows), "--json"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    pairs = json.loads(printed)["expected_errors"]["pairs"]
    return {frozenset(p["columns"]): p["correlation"] for p in pairs if p["correlation"] is not None}


def made_config(rows: pd.DataFrame, work: Path, epsilon: float) -> dict[str, object]:
    """The config of a table of codes."""
    path = work / "made.csv"
    rows.to_csv(path, index=False)
    return {
        "source": {"path": str(path)},
        "privacy": {"epsilon": epsilon, "delta": 1e-9},
        "columns": {
            c: {"type": "integer", "min": 0, "max": int(rows[c].max()), "missing": False} for c in rows
        },
    }


def hub(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """A table whose columns all lean on one."""
    rng, rows = np.random.default_rng(1), 50_000
    centre = rng.integers(0, 20, rows)
    leaning = rng.dirichlet(np.full(6, 0.7), (12, 20)).cumsum(axis=2)
    codes = {
        f"c{i}": np.minimum((rng.random(rows)[:, None] > leaning[i][centre]).sum(axis=1), 5)
        for i in range(12)
    }
    real = pd.DataFrame({**codes, "hub": centre})

    def score(synthetic: pd.DataFrame) -> Scores:
        found: dict[str, list[float]] = {"pairs": [], "with hub": [], "independent": []}
        for a, b in combinations(real, 2):
            truth, drawn = (
                np.bincount(t[a].to_numpy() * 20 + t[b].to_numpy(), minlength=400).reshape(20, 20) / len(t)
                for t in (real, synthetic)
            )
            found["with hub" if b == "hub" else "pairs"].append(np.abs(truth - drawn).sum() / 2)
            alone = truth.sum(axis=1, keepdims=True) * truth.sum(axis=0)
            found["independent"].append(np.abs(truth - alone).sum() / 2)
        return {key: float(np.mean(values)) for key, values in found.items()}

    return made_config(real, work, epsilon), score


def exclusive(
    work: Path, epsilon: float, others: int, columns: int = 23
) -> tuple[dict[str, object], Callable[..., Scores]]:
    """Binary columns, of which two are the exclusive or of so many others."""
    rng, rows = np.random.default_rng(1), 47_461
    base = rng.integers(0, 2, rows)
    codes = {
        f"c{i:02}": np.where(rng.random(rows) < 0.3, base, rng.integers(0, 2, rows)) for i in range(columns)
    }
    names = list(codes)
    sets = [names[:others], names[others : 2 * others]]
    for number, parts in enumerate(sets):
        for c in parts:
            codes[c] = rng.integers(0, 2, rows)
        codes[names[-1 - number]] = np.bitwise_xor.reduce([codes[c] for c in parts])
    real = pd.DataFrame(codes)

    def score(synthetic: pd.DataFrame) -> Scores:
        held = [
            float((np.bitwise_xor.reduce([synthetic[c] for c in parts]) == synthetic[names[-1 - n]]).mean())
            for n, parts in enumerate(sets)
        ]
        return {"held": mean(held)}

    return made_config(real, work, epsilon), score


def classes(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """Binary columns that depend on hidden classes of rows."""
    rng, rows = np.random.default_rng(1), 47_461
    hidden = rng.choice(6, rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    likely = rng.beta(0.5, 1.5, (6, 23))
    real = pd.DataFrame({f"c{i:02}": (rng.random(rows) < likely[hidden, i]).astype(int) for i in range(23)})

    def score(synthetic: pd.DataFrame) -> Scores:
        return {f"{ways} columns": binary_distance(real, synthetic, ways) for ways in (2, 3)}

    return made_config(real, work, epsilon), score


def binary_distance(real: pd.DataFrame, synthetic: pd.DataFrame, ways: int) -> float:
    """Mean total variation distance of all marginals of so many binary columns."""
    found = []
    for chosen in combinations(real, ways):
        shares = [
            np.bincount(sum(t[c].to_numpy() << i for i, c in enumerate(chosen)), minlength=1 << ways) / len(t)
            for t in (real, synthetic)
        ]
        found.append(np.abs(shares[0] - shares[1]).sum() / 2)
    return float(np.mean(found))


def near(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """A copy with errors, and an age that follows from two years; four columns more."""
    rng, rows = np.random.default_rng(1), 50_000
    copied = rng.choice(20, rows, p=rng.dirichlet(np.full(20, 2.0)))
    year, born = rng.integers(0, 20, rows), rng.binomial(59, 0.45, rows)
    real = pd.DataFrame(
        {
            "copied": copied,
            "copy": np.where(rng.random(rows) < 0.01, rng.integers(0, 20, rows), copied),
            "year": year,
            "born": born,
            # The youngest is born in year 59 and asked in year 0: the age of code 0 or 1.
            "age": year - born + 60 - rng.integers(0, 2, rows),
            **{f"other{i}": (copied + rng.integers(0, 12, rows)) // 4 for i in range(4)},
        }
    )

    def score(synthetic: pd.DataFrame) -> Scores:
        found = {}
        for name, table in (("real", real), ("synthetic", synthetic)):
            gap = table["year"] - table["born"] + 60 - table["age"]
            found[f"copies {name}"] = float((table["copy"] == table["copied"]).mean())
            found[f"possible ages {name}"] = float(gap.isin((0, 1)).mean())
        gap = synthetic["year"] - synthetic["born"] + 60 - synthetic["age"]
        return found | {"ages within 3": float(gap.between(-3, 4).mean())}

    return made_config(real, work, epsilon), score


def modular(work: Path, epsilon: float, others: int) -> tuple[dict[str, object], Callable[..., Scores]]:
    """Ten columns of 5 values, of which two are the sum of so many others, modulo 5."""
    rng, rows = np.random.default_rng(1), 47_461
    codes = {f"c{i}": rng.integers(0, 5, rows) for i in range(10)}
    names = list(codes)
    sets = [(names[:others], names[-1]), (names[others : 2 * others], names[-2])]
    for parts, last in sets:
        codes[last] = sum(codes[c] for c in parts) % 5

    def score(synthetic: pd.DataFrame) -> Scores:
        held = [(synthetic[parts].sum(axis=1) % 5 == synthetic[last]).mean() for parts, last in sets]
        return {"held": float(mean(held))}

    return made_config(pd.DataFrame(codes), work, epsilon), score


def geometry(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """A class that follows from two points."""
    rng, rows = np.random.default_rng(1), 25_000
    points = rng.integers(0, 100, (rows, 4))
    across, up = points[:, 2] - points[:, 0], points[:, 3] - points[:, 1]
    direction = ((np.arctan2(up, across) / (2 * np.pi) + 0.5) * 5).astype(int).clip(0, 4)
    whole = pd.DataFrame(points, columns=["left", "low", "right", "high"])
    whole = whole.assign(
        **{f"other{i}": rng.integers(0, 4, rows) + points[:, i] // 30 for i in range(2)},
        kind=direction * 2 + (np.hypot(across, up) > 50),
    )
    real, held_out = whole[:20_000], whole[20_000:]

    def right(table: pd.DataFrame) -> float:
        forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=0)
        forest.fit(table.drop(columns="kind"), table["kind"])
        return float((forest.predict(held_out.drop(columns="kind")) == held_out["kind"]).mean())

    def score(synthetic: pd.DataFrame) -> Scores:
        return {
            "real": right(real),
            "synthetic": right(synthetic[real.columns]),
            "most frequent": float(held_out["kind"].value_counts(normalize=True).max()),
        }

    return made_config(real, work, epsilon), score


def function(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """An amount that is a product of three columns, but for 1 % of the rows."""
    rng, rows = np.random.default_rng(1), 50_000
    price, number, rate = rng.binomial(19, 0.4, rows) + 1, rng.integers(1, 11, rows), rng.integers(0, 4, rows)
    exact = np.rint(price * number * (1 + rate / 4)).astype(int)
    real = pd.DataFrame({"price": price, "number": number, "rate": rate})
    real["amount"] = np.where(rng.random(rows) < 0.01, rng.permutation(exact), exact)
    real["shop"], real["month"] = (price + rng.integers(0, 8, rows)) // 4, rng.integers(0, 12, rows)

    def score(synthetic: pd.DataFrame) -> Scores:
        found = {}
        for name, table in (("real", real), ("synthetic", synthetic)):
            exact = table["price"] * table["number"] * (1 + table["rate"] / 4)
            for within in (0.02, 0.2):
                near = (table["amount"] - exact).abs() <= np.maximum(within * exact, 0.5)
                found[f"within {within:g} {name}"] = float(near.mean())
        return found

    return made_config(real, work, epsilon), score


def sparse(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """Columns that depend on hidden classes; pairs of categories that lie far from independence by chance."""
    rng, rows = np.random.default_rng(1), 50_000
    hidden = rng.choice(6, rows, p=[0.4, 0.2, 0.15, 0.1, 0.1, 0.05])
    likely = rng.dirichlet(np.full(5, 0.7), (6, 15)).cumsum(axis=2)
    telling = {
        f"c{i:02}": np.minimum((rng.random(rows)[:, None] > likely[hidden, i]).sum(axis=1), 4)
        for i in range(15)
    }
    others = {f"x{i}": rng.integers(0, 100, rows) for i in range(10)}
    real = pd.DataFrame({**telling, **others})
    config = made_config(real, work, epsilon)
    texts: dict[str, object] = {"type": "category", "values": [str(v) for v in range(100)], "missing": False}
    config["columns"] = {**cast("dict[str, object]", config["columns"]), **dict.fromkeys(others, texts)}

    def score(synthetic: pd.DataFrame) -> Scores:
        found = []
        for a, b in combinations(telling, 2):
            shares = [np.bincount(5 * t[a] + t[b], minlength=25) / len(t) for t in (real, synthetic)]
            found.append(np.abs(shares[0] - shares[1]).sum() / 2)
        return {"pairs": float(np.mean(found))}

    return config, score


def many_values(work: Path, epsilon: float, values: int) -> tuple[dict[str, object], Callable[..., Scores]]:
    """A category of many values: what follows from its part of the list, and from its frequent values."""
    rng, rows = np.random.default_rng(1), 100_000
    zipf = 1 / np.arange(1, values + 1) ** 1.1
    code = rng.choice(values, rows, p=rng.permutation(zipf) / float(zipf.sum()))
    part = code * 20 // values
    likely = rng.dirichlet(np.full(6, 0.5), 20).cumsum(axis=1)
    frequent = np.argsort(-np.bincount(code, minlength=values))[:20]
    chance = np.full(values, 0.5)
    chance[frequent] = rng.random(20)
    real = pd.DataFrame(
        {
            "code": code,
            "kind": np.minimum((rng.random(rows)[:, None] > likely[part]).sum(axis=1), 5),
            "mark": (rng.random(rows) < chance[code]).astype(int),
        }
    )
    config = made_config(real, work, epsilon)
    texts: dict[str, object] = {
        "type": "category",
        "values": [str(v) for v in range(values)],
        "missing": False,
    }
    config["columns"] = {**cast("dict[str, object]", config["columns"]), "code": texts}
    place = np.full(values, 20)
    place[frequent] = np.arange(20)

    def score(synthetic: pd.DataFrame) -> Scores:
        found = {}
        for name, of_code, other in (
            ("parts", np.arange(values) * 20 // values, "kind"),
            ("frequent", place, "mark"),
        ):
            truth, drawn = (
                np.bincount(of_code[t["code"].to_numpy()] * 6 + t[other].to_numpy(), minlength=126) / len(t)
                for t in (real, synthetic)
            )
            found[name] = float(np.abs(truth - drawn).sum() / 2)
            cells = truth.reshape(21, 6)
            alone = cells.sum(axis=1, keepdims=True) * cells.sum(axis=0)
            found[f"{name} independent"] = float(np.abs(cells - alone).sum() / 2)
        return found

    return config, score


def flights(work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """The delays of flights, with five columns more; rows without a delay are left out."""
    used = ["dep_delay", "arr_delay", "month", "hour", "distance", "origin", "carrier"]
    frame = pd.read_csv(brought("flights", work, None), usecols=used).dropna()[used]
    delays = ["dep_delay", "arr_delay"]
    path = work / "delays.csv"
    frame.astype(dict.fromkeys(delays, int)).to_csv(path, index=False)
    texts = {c: {"type": "category", "values": sorted(frame[c].unique())} for c in ("origin", "carrier")}
    columns = {
        "dep_delay": {"type": "integer", "bins": DEPARTURE},
        "arr_delay": {"type": "integer", "bins": ARRIVAL},
        "month": {"type": "integer", "min": 1, "max": 12},
        "hour": {"type": "integer", "min": 1, "max": 23},
        "distance": {"type": "integer", "bins": [0, 300, 600, 900, 1200, 1800, 2500, 5000]},
        **texts,
    }
    config = {
        "source": {"path": str(path)},
        "privacy": {"epsilon": epsilon, "delta": 1e-9},
        "columns": {c: {**declared, "missing": False} for c, declared in columns.items()},
    }

    def score(synthetic: pd.DataFrame) -> Scores:
        found = {}
        for name, table in (("real", frame), ("synthetic", synthetic)):
            left, arrived = (pd.to_numeric(table[c]) for c in delays)
            late = left > 180
            off = float((np.abs(arrived - left)[late] > 90).mean())
            found |= {f"correlation {name}": float(left.corr(arrived)), f"impossible {name}": off}
        return found

    return config, score


MADE = {
    "hub": hub,
    "classes": classes,
    "near": near,
    "geometry": geometry,
    "function": function,
    "sparse": sparse,
    "flights": flights,
}
RAW = {*STRONG, "flights"}


def posed(name: str, work: Path, epsilon: float) -> tuple[dict[str, object], Callable[..., Scores]]:
    """A table by its name: its config, and how a release of it is scored."""
    if name in STRONG:
        return real_table(name, work, epsilon)
    if name in MADE:
        return MADE[name](work, epsilon)
    if name.startswith("values-"):
        return many_values(work, epsilon, int(name.removeprefix("values-")))
    if name.startswith("modular-"):
        return modular(work, epsilon, int(name.removeprefix("modular-")))
    return exclusive(work, epsilon, *map(int, name.removeprefix("exclusive-").split("-of-")))


def released(
    name: str,
    config: dict[str, object],
    structure: dict[str, object],
    privacy: dict[str, object],
    work: Path,
) -> tuple[pd.DataFrame, float]:
    """The synthetic table of one release, with a ledger of its own, and its seconds of all processors."""
    with tempfile.TemporaryDirectory(dir=work) as folder:
        ledger = {"url": f"sqlite:///{folder}/ledger.db"}
        privacy = {**cast("dict[str, object]", config["privacy"]), **privacy}
        spec = from_mapping(config | {"privacy": privacy, "structure": structure, "ledger": ledger})
        begun = process_time()
        release = dpsynth.release(spec, outputs=Path(folder) / "out")
        seconds = process_time() - begun
        synthetic = pd.read_csv(release.folder / "public" / "synthetic.csv", dtype=str)
    return synthetic if name in RAW else synthetic.astype(int), seconds


def means_of(runs: Sequence[Scores], digits: int) -> str:
    """The mean of each score over some runs, with its standard error."""
    told = []
    for key in runs[0]:
        values = [run[key] for run in runs]
        error = stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0
        told.append(f"{key} {mean(values):.{digits}f} ± {error:.{digits}f}")
    return ", ".join(told)


def main() -> None:
    """Print a line for each table, epsilon and method: means, with standard errors over the runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    tables = ["nlswork", "loans", *MADE, "exclusive-2", "exclusive-3", "exclusive-4"]
    tables += ["modular-2", "modular-3"]
    parser.add_argument("--tables", nargs="+", default=tables)
    parser.add_argument("--epsilon", nargs="+", type=float, default=[3.0])
    parser.add_argument("--structure", nargs="+", default=["auto"])
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    for name, epsilon in [(t, e) for t in given.tables for e in given.epsilon]:
        with tempfile.TemporaryDirectory() as folder:
            config, score = posed(name, Path(folder), epsilon)
            for method in given.structure:
                runs: list[Scores] = []
                for _ in range(given.runs):
                    synthetic, seconds = released(name, config, {"method": method}, {}, Path(folder))
                    runs.append(score(synthetic) | {"CPU s": seconds})
                print(f"{name}, {method}, epsilon {epsilon:g}: {means_of(runs, 3)}", flush=True)


if __name__ == "__main__":
    main()
