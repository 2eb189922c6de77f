"""Linked tables: households and their members, released as one and judged as two.

    DPSYNTH_DATA=FOLDER python benchmarks/linked_tables.py
        [--methods bootstrap independent given chain wide tables alike roles] [--epsilon 0.5 1 3] [--runs 3]
        [--rows 27980] [--slots 6] [--judge PYTHON]

FOLDER holds `households.csv.gz` and `persons.csv.gz`; ``--rows`` takes so many random households. A household
is the unit: ε is for one that comes or goes with all its members, δ = 1e-6.

Methods. "bootstrap": real households drawn again, without noise. "independent": two releases of ε/2, one a
table; synthetic members are dealt to households at random. "wide": one release of one row a household, with
columns for each of ``--slots`` members, which this script makes. "tables": the release of both in the section
`tables`, with `max_children` of ``--slots``. In both the column that says if there are children is derived.
"given": "tables" with a workload of pairs in a household, in one member, and of a household and a member, so
members depend on each other through their household alone. "chain": these, and pairs of a member and the next
one. "alike": "tables" in which all pairs matter alike. "roles": "tables" in which all members are told apart.
An ε of 1000 is a release nearly without noise.

Errors are total variation distances, but for the last ones. "parent x child": each column of a household,
or its size, with each of a member. "in child": two columns of a member. "sibH", "sibP": two columns, or one
twice, of two members, unordered; a household counts once, or each pair of members does. "role": columns of
two members and their places, which are 1 and 2, one of these and a later one, or two later ones; here and in
"size x age x age" a household counts once. "sizes": sizes of households. "MI": mutual information of two
members' ages, in nats. "q1", "q2": mean relative error (of 1 % of the households at least) of the number of
households that fulfil one of 200 random conjunctions about a column, or their size, and two columns of one,
or of each of two, of their members. "no adult": share of the households. "flag": share in which the column
that says if there are children is wrong. "bad keys": households' numbers that stand twice, and members
without a household. Seconds, processor seconds and megabytes are of the release's process.

--judge names the Python of an environment that holds SDMetrics (`judges.py` says how to make one): quality by
its report on several tables, with its parts: shapes of columns, trends of pairs, numbers of members, pairs of
a household and a member.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
from coded_tables import markdown, measured
from numpy.typing import NDArray

KEY, PLACE, SIZE, FLAG, AGE = "hhID", "per_num", "size", "HHChildren", "PAge"
ROOT = {"SUBREG_GRP": 44, "SUBREGCluster": 4, "HHIncome": 3, "HHDwelling": 2, FLAG: 2}
"""Columns of a household and their numbers of values; the last says if there are children."""
CHILD = {AGE: 11, "PGender": 2, "PEmp": 4, "POcc": 11, "PComm": 6}
BLANK = ("PEmp", "POcc", "PComm")
"""Columns of a member that may be blank, as 0."""
COMMUTES = ("", "active", "auto", "other", "transit", "workFromHome")
ADULT = 4
"""The code of the first age of an adult."""
MOST_SIZE, LATER = 11, 3
QUESTIONS, LEAST_SHARE, FLOOR, DELTA = 200, 0.005, 0.01, 1e-6
USED = ("seconds", "cpu", "MB")
JUDGE = Path(__file__).resolve().with_name("judge_files.py")
JUDGED = ("quality", "Column Shapes", "Column Pair Trends", "Cardinality", "Intertable Trends")

Codes = NDArray[np.int64]
Shares = NDArray[np.float64]
Used = dict[str, float]


@dataclass(frozen=True)
class Linked:
    """Two tables of codes: households by `KEY`, and their members in order."""

    roots: pd.DataFrame
    children: pd.DataFrame

    def counted(self) -> tuple[Codes, Codes]:
        """Each household's size, at most the largest that is counted, and the row of each member's."""
        at = pd.Index(self.roots[KEY]).get_indexer(self.children[KEY])
        whose = np.asarray(at, np.int64)
        return np.bincount(whose[whose >= 0], minlength=len(self.roots)).clip(max=MOST_SIZE - 1), whose


def real_tables(rows: int | None) -> Linked:
    """The real tables."""
    folder = Path(os.environ["DPSYNTH_DATA"])
    roots = pd.read_csv(folder / "households.csv.gz")[[KEY, *ROOT]]
    children = pd.read_csv(folder / "persons.csv.gz")[[KEY, PLACE, *CHILD]]
    for c in ROOT:
        roots[c] -= roots[c].min()
    children["PGender"] -= 1
    children["PComm"] = children["PComm"].fillna("").map(COMMUTES.index)
    children = children.fillna(0).astype(dict.fromkeys(CHILD, np.int64))
    if rows is not None:
        roots = roots.sample(rows, random_state=1)
        children = children[children[KEY].isin(roots[KEY])]
    return _ordered(roots, children)


def _ordered(roots: pd.DataFrame, children: pd.DataFrame) -> Linked:
    by_key = roots.sort_values(KEY, kind="stable").reset_index(drop=True)
    return Linked(by_key, children.sort_values([KEY, PLACE], kind="stable").reset_index(drop=True))


def _table(columns: list[tuple[Codes, int]], weights: Shares) -> Shares:
    at, size = np.zeros(len(weights), np.int64), 1
    for codes, of in columns:
        at, size = at * of + codes, size * of
    counts = np.bincount(at, weights, size)
    return counts / max(counts.sum(), 1e-12)


def _tables(of: Linked) -> dict[str, list[Shares]]:
    sizes, whose = of.counted()
    roots = {c: (of.roots[c].to_numpy(), n) for c, n in ROOT.items()} | {SIZE: (sizes, MOST_SIZE)}
    own = {c: (of.children[c].to_numpy(), n) for c, n in CHILD.items()}
    above = {c: (codes[whose], n) for c, (codes, n) in roots.items()}
    each = np.ones(len(whose))
    found = {
        "parent x child": [_table([above[a], own[b]], each) for a, b in product(roots, own)],
        "in child": [_table([own[a], own[b]], each) for a, b in combinations(own, 2)],
    }
    apart = [np.flatnonzero(whose[lag:] == whose[:-lag]) for lag in range(1, MOST_SIZE)]
    a, b = np.concatenate(apart), np.concatenate([at + lag for lag, at in enumerate(apart, 1)])
    n = np.bincount(whose, minlength=len(sizes))[whose[a]]
    once, one = 2 / (n * (n - 1)), np.ones(len(a))

    def two(c: str, d: str, weights: Shares, *more: tuple[Codes, int]) -> Shares:
        return _table([*more, (own[c][0][a], CHILD[c]), (own[d][0][b], CHILD[d])], weights)

    for name, weights in (("sibH", once), ("sibP", one)):
        found[name] = [
            (two(c, d, weights) + two(d, c, weights).reshape(CHILD[d], CHILD[c]).T.ravel()) / 2
            for c, d in combinations_with_replacement(own, 2)
        ]
    place = np.arange(len(whose)) - np.searchsorted(whose, whose) + 1
    late = (place[a] >= LATER).astype(int) + (place[b] >= LATER)
    found["role"] = [two(c, d, once, (late, 3)) for c, d in product(own, own)]
    found["size x age x age"] = [two(AGE, AGE, once, (sizes[whose[a]], MOST_SIZE))]
    found["sizes"] = [_table([(sizes, MOST_SIZE)], np.ones(len(sizes)))]
    return found


def _information(ages: Shares) -> float:
    shares = ages.reshape(CHILD[AGE], CHILD[AGE])
    alone = shares.sum(axis=0)
    some = shares > 0
    return float((shares[some] * np.log((shares / np.outer(alone, alone).clip(1e-300))[some])).sum())


Condition = Mapping[str, NDArray[np.bool_]]
"""For some columns, which of their values fulfil it."""


def _fulfilling(of: Linked, root: Condition, members: Sequence[Condition]) -> float:
    """The share of the households that fulfil a condition, with as many members that fulfil theirs."""
    sizes, whose = of.counted()

    def rows(table: pd.DataFrame, condition: Condition) -> NDArray[np.bool_]:
        return np.logical_and.reduce([some[table[c].to_numpy()] for c, some in condition.items()])

    ok = rows(of.roots.assign(**{SIZE: sizes}), root)
    each = [rows(of.children, condition) for condition in members]
    # Of two conditions each needs a member; one member alone that fulfils both doesn't do.
    for fulfil, least in [*((one, 1) for one in each), (np.logical_or.reduce(each), len(each))]:
        ok &= np.bincount(whose, fulfil, len(ok)) >= least
    return float(ok.mean())


def _of_questions(real: Linked, made: Linked, members: int) -> float:
    """Mean relative error of random conjunctions, which are the same for all made tables."""
    rng = np.random.default_rng(members)

    def condition(numbers: Mapping[str, int], columns: int) -> Condition:
        chosen = rng.choice(list(numbers), columns, replace=False)
        return {c: rng.permutation(numbers[c]) < rng.integers(1, numbers[c]) for c in chosen}

    errors: list[float] = []
    while len(errors) < QUESTIONS:
        asked = condition({**ROOT, SIZE: MOST_SIZE}, 1), [condition(CHILD, 2) for _ in range(members)]
        share = _fulfilling(real, *asked)
        if share >= LEAST_SHARE:
            errors.append(abs(_fulfilling(made, *asked) - share) / max(share, FLOOR))
    return fmean(errors)


def scores(real: Linked, made: Linked) -> dict[str, float]:
    """The figures that stand at the top of this file."""
    known = set(made.roots[KEY])
    orphans = ~made.children[KEY].isin(known)
    bad = float(orphans.sum() + len(made.roots) - len(known))
    made = _ordered(made.roots.drop_duplicates(KEY), made.children[~orphans])
    mine, theirs = _tables(real), _tables(made)
    both = {name: zip(mine[name], theirs[name], strict=True) for name in mine}
    found = {name: fmean(float(np.abs(a - b).sum() / 2) for a, b in both[name]) for name in both}
    found["MI"] = _information(theirs["sibP"][0])
    found |= {f"q{members}": _of_questions(real, made, members) for members in (1, 2)}
    sizes, whose = made.counted()
    old = made.children[AGE].to_numpy() >= ADULT
    adults, young = (np.bincount(whose, some, len(sizes)) > 0 for some in (old, ~old))
    wrong = young != (made.roots[FLAG].to_numpy() == 1)
    return found | {"no adult": 1 - float(adults.mean()), "flag": float(wrong.mean()), "bad keys": bad}


def bootstrap(real: Linked, seed: int) -> Linked:
    """Real households, drawn again."""
    drawn = real.roots.sample(frac=1, replace=True, random_state=seed).reset_index(drop=True)
    children = drawn[[KEY]].reset_index(names="new").merge(real.children, on=KEY)
    return _ordered(drawn.assign(**{KEY: drawn.index}), children.assign(**{KEY: children["new"]}))


def released(
    folder: Path, epsilon: float, tables: Mapping[str, pd.DataFrame], config: Mapping[str, object]
) -> tuple[Path, Used]:
    """The public folder of a release of files of this folder, in a process of its own, and what it took."""
    for name, rows in tables.items():
        rows.to_csv(folder / f"{name}.csv", index=False)
    cap = {"epsilon": max(10, epsilon)}
    ledger = {"url": f"sqlite:///{folder}/ledger.db", "dataset": "-".join(tables), "cap": cap}
    privacy = {"epsilon": epsilon, "delta": DELTA, "on_empty": "go"} | config.get("privacy", {})
    (folder / "config.yaml").write_text(json.dumps({"ledger": ledger, **config, "privacy": privacy}))
    command = [sys.executable, "-m", "dpsynth", "run", str(folder / "config.yaml"), "--plain"]
    bundle, used = measured([*command, "--out", str(folder / "out")])
    return Path(bundle) / "public", used


def _source(folder: Path, name: str) -> dict[str, str]:
    return {"path": str(folder / f"{name}.csv")}


def _texts(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def declared(column: str, most: int = 6) -> dict[str, object]:
    """A column as its owner would declare it, sizes of ``most`` at most."""
    if column == SIZE:
        return {"type": "integer", "min": 1, "max": most, "missing": False}
    if column == AGE:
        return {"type": "integer", "min": 0, "max": CHILD[AGE] - 1, "missing": False}
    values = [str(v) for v in range(column in BLANK, (ROOT | CHILD)[column])]
    return {"type": "category", "values": values, "missing": column in BLANK}


def _coded(texts: pd.DataFrame) -> pd.DataFrame:
    return texts.replace("", "0").astype(np.int64)


def _blanked(children: pd.DataFrame) -> pd.DataFrame:
    return children.assign(**{c: children[c].astype(str).replace("0", "") for c in BLANK})


def independent(real: Linked, folder: Path, epsilon: float, slots: int) -> tuple[Linked, Used]:
    """Two releases, whose rows are put together at random."""
    made, used = [], []
    for name, rows, columns, privacy in (
        ("above", real.roots.assign(**{SIZE: real.counted()[0]}), [*ROOT, SIZE], {}),
        ("below", _blanked(real.children), CHILD, {"unit": {"column": KEY, "max_rows": slots}}),
    ):
        of_all = {c: declared(c, slots) for c in columns}
        config = {"source": _source(folder, name), "columns": of_all, "privacy": privacy}
        public, took = released(folder, epsilon / 2, {name: rows}, config)
        made.append(_coded(_texts(public / "synthetic.csv")))
        used.append(took)
    above, below = made
    whose = np.repeat(above.index, above[SIZE])
    dealt = below.sample(len(whose), replace=True, random_state=1).assign(**{KEY: whose, PLACE: 1})
    return _ordered(above.assign(**{KEY: above.index}), dealt), {k: used[0][k] + used[1][k] for k in USED}


def wide(real: Linked, folder: Path, epsilon: float, slots: int) -> tuple[Linked, Used]:
    """One release of a row a household; members beyond the last slot are left out, the flag is derived."""
    (sizes, whose), blanked = real.counted(), _blanked(real.children).astype(str)
    place = blanked.groupby(KEY).cumcount() + 1
    own = [*(c for c in ROOT if c != FLAG), SIZE]
    columns = {c: declared(c, slots) for c in own}
    rows = real.roots.assign(**{SIZE: sizes.clip(max=slots)})[own]
    rules: list[str] = []
    for i in range(1, slots + 1):
        of_slot = blanked[place == i].set_index(whose[place == i]).reindex(rows.index)
        for c in CHILD:
            name, column = f"{c}_{i}", declared(c)
            if i > 1:
                column["missing"] = True
                absent = f"{name} is missing"
                rules.append(f"size < {i} implies {absent}" if c in BLANK else f"(size < {i}) == ({absent})")
            columns[name], rows[name] = column, of_slot[c].fillna("")
    config = {"source": _source(folder, "wide"), "columns": columns, "constraints": rules}
    public, used = released(folder, epsilon, {"wide": rows}, config)
    made = _texts(public / "synthetic.csv")
    roots = _coded(made[own]).assign(**{KEY: made.index})
    below = []
    for i in range(1, slots + 1):
        slot = made.loc[roots[SIZE] >= i, [f"{c}_{i}" for c in CHILD]].set_axis([*CHILD], axis=1)
        below.append(_coded(slot).assign(**{KEY: slot.index, PLACE: i}))
    children = pd.concat(below)
    young = children.loc[children[AGE] < ADULT, KEY]
    return _ordered(roots.assign(**{FLAG: roots[KEY].isin(young).astype(int)}), children), used


def _pairs(slots: int, reach: int) -> list[dict[str, object]]:
    """Pairs of a household's columns, of a member's, of both, and of members up to so many places apart."""
    own = [*(c for c in ROOT if c != FLAG), "persons"]
    members = [[f"persons_{i}_{c}" for c in CHILD] for i in range(1, slots + 1)]
    found = [*combinations(own, 2)]
    for i, member in enumerate(members):
        found += [*combinations(member, 2), *product(own, member)]
        for later in members[i + 1 : i + 1 + reach]:
            found += product(member, later)
    return [{"columns": [*pair]} for pair in found]


def given_household(real: Linked, folder: Path, epsilon: float, slots: int) -> tuple[Linked, Used]:
    """The release in which members depend on their household alone."""
    workload = {"marginals": _pairs(slots, 0)}
    return tables(real, folder, epsilon, slots, slots, workload)


def chain(real: Linked, folder: Path, epsilon: float, slots: int) -> tuple[Linked, Used]:
    """The release in which a member depends on the one before, too."""
    workload = {"marginals": _pairs(slots, 1)}
    return tables(real, folder, epsilon, slots, slots, workload)


def alike(real: Linked, folder: Path, epsilon: float, slots: int) -> tuple[Linked, Used]:
    """The release in which all pairs matter alike."""
    return tables(real, folder, epsilon, slots, None, {"ways": 3})


def told_apart(real: Linked, folder: Path, epsilon: float, slots: int) -> tuple[Linked, Used]:
    """The release in which all members are told apart."""
    return tables(real, folder, epsilon, slots, slots)


def tables(
    real: Linked,
    folder: Path,
    epsilon: float,
    slots: int,
    roles: int | None = None,
    workload: Mapping[str, object] | None = None,
) -> tuple[Linked, Used]:
    """The release of both tables."""
    rows = {"households": real.roots, "persons": _blanked(real.children)}
    above = {
        "source": _source(folder, "households"),
        "key": KEY,
        "unit": "household",
        "columns": {c: declared(c) for c in ROOT if c != FLAG},
        "derived": {FLAG: {"any": "persons", "where": f"{AGE} < {ADULT}"}},
    }
    below = {
        "source": _source(folder, "persons"),
        "parent": {"table": "households", "key": KEY, "max_children": slots, "roles": roles},
        "order_by": PLACE,
        "columns": {c: declared(c) for c in CHILD},
    }
    config: dict[str, object] = {"tables": {"households": above, "persons": below}}
    if workload is not None:
        config["structure"] = {"workload": workload}
    public, used = released(folder, epsilon, rows, config)
    roots, children = (_texts(public / "tables" / f"{name}.csv") for name in rows)
    roots[FLAG] = roots[FLAG].map({"no": "0", "yes": "1"})
    return _ordered(_coded(roots), _coded(children)), used


METHODS = {
    "independent": independent,
    "given": given_household,
    "chain": chain,
    "wide": wide,
    "tables": tables,
    "alike": alike,
    "roles": told_apart,
}


def judged(real: Linked, made: Linked, python: str) -> dict[str, float]:
    """The figures of SDMetrics' report on several tables."""
    values = {c: {"sdtype": "numerical" if c == AGE else "categorical"} for c in ROOT | CHILD}
    columns = {"households": [*ROOT], "persons": [*CHILD]}
    of = {name: {c: values[c] for c in names} | {KEY: {"sdtype": "id"}} for name, names in columns.items()}
    link = {
        "parent_table_name": "households",
        "parent_primary_key": KEY,
        "child_table_name": "persons",
        "child_foreign_key": KEY,
    }
    described = {
        "tables": {
            "households": {"columns": of["households"], "primary_key": KEY},
            "persons": {"columns": of["persons"]},
        },
        "relationships": [link],
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "metadata.json").write_text(json.dumps(described))
        for kind, one in (("real", real), ("synthetic", made)):
            one.roots[[KEY, *ROOT]].to_csv(folder / f"{kind}-households.csv", index=False)
            one.children[[KEY, *CHILD]].to_csv(folder / f"{kind}-persons.csv", index=False)
        command = [python, str(JUDGE), "sdmetrics-linked", str(folder)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {name: json.loads(printed)[name] for name in JUDGED}


def main() -> None:
    """Print a table in Markdown: means of the runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    methods = ["bootstrap", *METHODS]
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--slots", type=int, default=6)
    parser.add_argument("--judge", help="the Python that has SDMetrics")
    given = parser.parse_args()
    real = real_tables(given.rows)

    def figures(made: Linked) -> dict[str, float]:
        return scores(real, made) | (judged(real, made, given.judge) if given.judge else {})

    def one(method: str, epsilon: float, seed: int) -> dict[str, float]:
        if method == "bootstrap":
            return figures(bootstrap(real, seed)) | dict.fromkeys(USED, 0.0)
        with tempfile.TemporaryDirectory() as folder:
            made, used = METHODS[method](real, Path(folder), epsilon, given.slots)
            return figures(made) | used

    lines: list[list[str]] = []
    head = ["method", "ε", *figures(real), *USED]
    for method in given.methods:
        for epsilon in given.epsilon if method != "bootstrap" else [float("inf")]:
            runs = [one(method, epsilon, seed) for seed in range(given.runs)]
            means = [fmean(run[name] for run in runs) for name in head[2:]]
            lines.append([method, f"{epsilon:g}", *(f"{v:.3f}" if v < 1 else f"{v:.0f}" for v in means)])
            print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    print(markdown(head, lines, words=1))


if __name__ == "__main__":
    main()
