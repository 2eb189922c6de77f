"""The price of rules: the same release with constraints and without, on real tables and on made-up ones.

    DPSYNTH_DATA=FOLDER python benchmarks/rules.py [--sets NAME ...] [--times 3] [--rows 10000] [--epsilon 1]
        [--save FILE] [--before FILE]

FOLDER holds the raw tables `flights.csv.gz`, `nlswork.csv.gz`, `loans.csv.gz` and `adult.csv`; RAND comes
with the package statsmodels. Each rule set holds in the private table, or in nearly all of its rows. Columns
are compared with the private ones on a grid of their values, or of 12 intervals of as many rows each; pairs
of columns on one of 8. Shown are, without the rules and with them: the mean distance (total variation) of
columns, then the column and the pair that lose most by the rules, among all pairs and among those that were
measured; and the share of rows that break a rule. Cells that a rule forbids have no row in the private table,
so they count for the rules. A row in which a rule meets a missing cell breaks it only where it is false, as
in SQL. --save writes the figures to a file, and --before shows those of such a file from an older version as
well.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpsynth

Declared = Mapping[str, object]
Codes = NDArray[np.int64]
Broken = Callable[[pd.DataFrame], pd.Series]


@dataclass(frozen=True)
class Table:
    """A private table, with the declaration of its columns."""

    frame: pd.DataFrame
    columns: Mapping[str, Declared]


@dataclass(frozen=True)
class RuleSet:
    """Rules about a table, and the rows that break one of them by pandas alone."""

    table: str
    rules: tuple[str, ...]
    broken: Broken


def _whole(low: int, high: int, **more: object) -> Declared:
    return {"type": "integer", "min": low, "max": high, **more}


def _number(low: float, high: float, decimals: int, **more: object) -> Declared:
    return {"type": "number", "min": low, "max": high, "decimals": decimals, **more}


def _words(values: Sequence[object]) -> Declared:
    return {"type": "category", "values": [str(v) for v in values]}


def _date(low: str, high: str, unit: str = "month") -> Declared:
    return {"type": "date", "min": low, "max": high, "unit": unit}


def hospital(unit: str = "month") -> Table:
    """A hospital's export in which stay is the difference of two dates, and cost follows from it."""
    rng = np.random.default_rng(1)
    rows = 20_000
    admission = rng.integers(0, 700, rows)
    ward = rng.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(rng.normal(45 + 10 * ward, 18, rows), 0, 99).astype(int)
    stay = np.minimum(rng.gamma(1.1, 2.2 + 1.5 * ward).round() + 1, 30).astype(int)
    start = np.datetime64("2024-01-01")
    frame = pd.DataFrame(
        {
            "admission": start + admission.astype("m8[D]"),
            "discharge": start + (admission + stay).astype("m8[D]"),
            "stay": stay,
            "cost": (500 + 800 * stay + rng.normal(0, 700, rows)).clip(0, 30000).round(2),
            "age": age,
            "ward": np.array(["A", "B", "C", "D"])[ward],
            "sex": rng.choice(["F", "M"], rows),
        }
    )
    columns = {
        "admission": _date("2024-01-01", "2025-12-31", unit),
        "discharge": _date("2024-01-01", "2025-12-31", unit),
        "stay": _whole(0, 60),
        "cost": _number(0, 40000, 2),
        "age": _whole(0, 99),
        "ward": _words("ABCD"),
        "sex": _words("FM"),
    }
    return Table(frame, columns)


def households() -> Table:
    """Persons with their households' type and size, and what follows from a person's age."""
    rng = np.random.default_rng(2)
    rows = 30_000
    kind = rng.choice(
        ["single", "couple", "family", "parent", "shared"], rows, p=[0.17, 0.22, 0.45, 0.08, 0.08]
    )
    children = np.where(kind == "family", 1 + rng.binomial(3, 0.3, rows), 0)
    children = np.where(kind == "parent", 1 + rng.binomial(2, 0.3, rows), children)
    size = np.select(
        [kind == "single", kind == "couple", kind == "family", kind == "parent"],
        [1, 2, children + 2, children + 1],
        2 + rng.binomial(4, 0.3, rows),
    )
    child = rng.random(rows) < children / size
    partner = ~child & np.isin(kind, ["couple", "family"]) & (rng.random(rows) < 0.5)
    relation = np.select([child, partner, kind == "shared"], ["child", "partner", "other"], "head")
    age = np.where(child, rng.integers(0, 26, rows), np.clip(rng.normal(48, 16, rows), 18, 95)).astype(int)
    married = ~child & (
        (kind == "couple") & (rng.random(rows) < 0.7) | (kind == "family") & (rng.random(rows) < 0.8)
    )
    employed = (age >= 16) & (rng.random(rows) < np.where(age > 65, 0.05, np.where(age < 20, 0.3, 0.75)))
    hours = np.where(employed, np.clip(rng.normal(37, 9, rows), 4, 70), 0).round().astype(int)
    frame = pd.DataFrame(
        {
            "type": kind,
            "size": size,
            "children": children,
            "relation": relation,
            "age": age,
            "married": np.where(married, "yes", "no"),
            "employed": np.where(employed, "yes", "no"),
            "hours": hours,
            "income": np.where(
                employed, rng.lognormal(np.log(hours + 1) + 6.5, 0.4), rng.gamma(1.0, 6000, rows)
            )
            .clip(0, 250_000)
            .round(),
        }
    )
    columns = {
        "type": _words(["single", "couple", "family", "parent", "shared"]),
        "size": _whole(1, 10),
        "children": _whole(0, 8),
        "relation": _words(["head", "partner", "child", "other"]),
        "age": _whole(0, 99),
        "married": _words(["yes", "no"]),
        "employed": _words(["yes", "no"]),
        "hours": _whole(0, 80),
        "income": _whole(0, 300_000),
    }
    return Table(frame, columns)


def bills() -> Table:
    """Invoices: a total of two parts, what an insurance bears of it, and what is left."""
    rng = np.random.default_rng(3)
    rows = 20_000
    drugs, room = (
        rng.gamma(1.2, 1500, rows).clip(0, 19999).round(2),
        rng.gamma(2, 2500, rows).clip(0, 19999).round(2),
    )
    age = np.minimum(rng.gamma(6, 8, rows), 109).astype(int)
    bill = (drugs + room).round(2)
    insured = (bill * np.where(age >= 65, rng.beta(9, 2, rows), rng.beta(8, 3, rows).clip(0, 0.9))).round(2)
    frame = pd.DataFrame(
        {
            "age": age,
            "drugs": drugs,
            "room": room,
            "bill": bill,
            "insured": insured,
            "own": (bill - insured).round(2),
        }
    )
    columns = {"age": _whole(0, 109)} | {
        c: _number(0, 20_000 if c in ("drugs", "room") else 40_000, 2)
        for c in ("drugs", "room", "bill", "insured", "own")
    }
    return Table(frame, columns)


def rand_path() -> Path:
    """Where the table of the RAND experiment lies."""
    package = find_spec("statsmodels")
    assert package is not None and package.origin is not None
    return Path(package.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv"


def _read(name: str) -> pd.DataFrame:
    if name == "randhie":
        return pd.read_csv(rand_path())
    return pd.read_csv(Path(os.environ["DPSYNTH_DATA"]) / name, na_values="?", skipinitialspace=True)


def nlswork() -> Table:
    """Women of the National Longitudinal Survey."""
    columns = {
        "year": _whole(68, 88),
        "birth_yr": _whole(41, 54),
        "age": _whole(14, 46),
        "race": _words("123"),
        "grade": _whole(0, 18),
        "collgrad": _words("01"),
        "ttl_exp": _number(0, 30, 2),
        "tenure": _number(0, 30, 2),
        "hours": _whole(1, 168),
        "ln_wage": _number(0, 5.3, 2),
    }
    return Table(_read("nlswork.csv.gz")[list(columns)].round(2), columns)


def flights() -> Table:
    """Every ninth flight from New York."""
    columns = {
        "month": _whole(1, 12),
        "sched_dep_time": _whole(0, 2359),
        "hour": _whole(0, 23),
        "minute": _whole(0, 59),
        "dep_delay": _number(-60, 1400, 0),
        "arr_delay": _number(-100, 1400, 0),
        "gained": _number(-300, 300, 0),
        "carrier": _words(
            ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX", "FL", "AS", "F9", "YV", "HA", "OO"]
        ),
        "origin": _words(["EWR", "LGA", "JFK"]),
        "distance": _whole(0, 5000),
        "air_time": _whole(0, 700),
    }
    frame = _read("flights.csv.gz").iloc[::9]
    return Table(frame.assign(gained=frame["dep_delay"] - frame["arr_delay"])[list(columns)], columns)


def loans() -> Table:
    """Loans of a lending platform."""
    columns = {
        "loan_amount": _whole(0, 40_000),
        "balance": _number(0, 40_000, 2),
        "paid_principal": _number(0, 40_000, 2),
        "paid_interest": _number(0, 4_500, 2),
        "paid_late_fees": _number(0, 60, 2),
        "paid_total": _number(0, 45_000, 2),
        "installment": _number(0, 1_600, 2),
        "interest_rate": _number(5, 31, 2),
        "term": _words([36, 60]),
        "grade": _words("ABCDEFG"),
        "sub_grade": _words([f"{g}{i}" for g in "ABCDEFG" for i in range(1, 6)]),
        "open_credit_lines": _whole(0, 60),
        "total_credit_lines": _whole(0, 90),
    }
    frame = _read("loans.csv.gz")[list(columns)]
    total = (frame["paid_principal"] + frame["paid_interest"] + frame["paid_late_fees"]).round(2)
    return Table(
        frame.assign(paid_total=total, balance=(frame["loan_amount"] - frame["paid_principal"]).round(2)),
        columns,
    )


def randhie() -> Table:
    """Person-years of the RAND Health Insurance Experiment."""
    columns = {
        **{c: _number(0, 3000, 2) for c in ("outpdol", "drugdol", "suppdol", "mentdol")},
        "inpdol": _number(0, 40_000, 2),
        "meddol": _number(0, 40_000, 2),
        "mdvis": _whole(0, 80),
        "totadm": _whole(0, 8),
        "xage": _number(0, 65, 1),
        "child": _words("01"),
        "female": _words("01"),
        "fchild": _words("01"),
        "num": _whole(1, 14),
    }
    frame = _read("randhie").round(2)
    total = (frame["outpdol"] + frame["drugdol"] + frame["suppdol"] + frame["inpdol"]).round(2)
    return Table(frame.assign(meddol=total, xage=frame["xage"].round(1))[list(columns)], columns)


def adult() -> Table:
    """The census income of 1994."""
    frame = _read("adult.csv").drop(columns=["fnlwgt", "native-country"])
    columns: dict[str, Declared] = {
        c: _words(sorted(frame[c].dropna().unique()))
        for c in frame.columns
        if frame[c].dtype.kind not in "iuf"
    }
    numbers = {
        "age": _whole(17, 90),
        "education-num": _whole(1, 16),
        "capital-gain": _whole(0, 100_000),
        "capital-loss": _whole(0, 5_000),
        "hours-per-week": _whole(1, 99),
    }
    return Table(frame, {c: (columns | numbers)[c] for c in frame.columns})


TABLES: Mapping[str, Callable[[], Table]] = {
    "hospital": hospital,
    "hospital by day": lambda: hospital("day"),
    "households": households,
    "bills": bills,
    "nlswork": nlswork,
    "flights": flights,
    "loans": loans,
    "randhie": randhie,
    "adult": adult,
}


def _off(t: pd.DataFrame, total: str, *parts: str) -> pd.Series:
    """Rows in which a column is not the sum of others, to half a cent; a minus before a name subtracts it."""
    signed = [-t[p[1:]] if p[0] == "-" else t[p] for p in parts]
    return cast("pd.Series", (t[total] - sum(signed)).abs() > 0.005)


def _unlike(t: pd.DataFrame, left: str, right: str) -> pd.Series:
    """Rows whose value on the right is not the most frequent one of their value on the left."""
    usual = t.groupby(left)[right].agg(lambda s: s.mode().iloc[0] if len(s.mode()) else np.nan)
    return t[right].notna() & t[left].notna() & (t[left].map(usual) != t[right])


def _differ(left: pd.Series, right: pd.Series) -> pd.Series:
    """Rows in which two columns have values that differ."""
    return cast("pd.Series", left.notna() & right.notna() & (left != right))


def _days(t: pd.DataFrame) -> pd.Series:
    return cast("pd.Series", (pd.to_datetime(t["discharge"]) - pd.to_datetime(t["admission"])).dt.days)


_STAY = ("stay == days(admission, discharge)",)
_HOUSE = (
    "type == 'single' implies size == 1",
    "size == 1 implies type == 'single'",
    "type == 'couple' implies size == 2",
    "children < size",
    "type == 'family' implies children >= 1",
    "relation == 'child' implies children >= 1 and age < 30",
    "age < 16 implies employed == 'no' and married == 'no'",
    "employed == 'no' implies hours == 0",
)
_YEARS = ("year >= birth_yr + age", "year <= birth_yr + age + 1")


def _house(t: pd.DataFrame, rules: Sequence[int]) -> pd.Series:
    one, kids = t["type"] == "single", t["children"]
    broken = [
        one & (t["size"] > 1),
        ~one & (t["size"] == 1),
        (t["type"] == "couple") & (t["size"] != 2),
        kids >= t["size"],
        (t["type"] == "family") & (kids < 1),
        (t["relation"] == "child") & ((kids < 1) | (t["age"] >= 30)),
        (t["age"] < 16) & ((t["employed"] == "yes") | (t["married"] == "yes")),
        (t["employed"] == "no") & (t["hours"] > 0),
    ]
    return pd.concat([broken[i] & (t[list(t.columns)].notna().all(axis=1)) for i in rules], axis=1).any(
        axis=1
    )


def _years(t: pd.DataFrame) -> pd.Series:
    gone = t["year"] - t["birth_yr"] - t["age"]
    return (gone < 0) | (gone > 1)


def _grade(t: pd.DataFrame) -> pd.Series:
    return (t["collgrad"] == 1) & (t["grade"] < 14)


def _tenure(t: pd.DataFrame) -> pd.Series:
    return cast("pd.Series", t["tenure"] > t["ttl_exp"])


def _spouses(t: pd.DataFrame) -> pd.Series:
    spouse = t["relationship"].isin(["Husband", "Wife"])
    unmarried = t["marital-status"].notna() & ~t["marital-status"].isin(
        ["Married-civ-spouse", "Married-AF-spouse"]
    )
    return (spouse & unmarried) | ((t["relationship"] == "Husband") & (t["sex"] == "Female"))


SETS: Mapping[str, RuleSet] = {
    "stay, months": RuleSet("hospital", _STAY, lambda t: _differ(_days(t), t["stay"])),
    "stay, days": RuleSet("hospital by day", _STAY, lambda t: _differ(_days(t), t["stay"])),
    "order of dates": RuleSet("hospital", ("admission <= discharge",), lambda t: _days(t) < 0),
    "order and stay": RuleSet(
        "hospital",
        ("admission <= discharge", "days(admission, discharge) <= 30", "ward == 'D' implies stay >= 1"),
        lambda t: (_days(t) < 0) | (_days(t) > 30) | ((t["ward"] == "D") & (t["stay"] < 1)),
    ),
    "households": RuleSet("households", _HOUSE, lambda t: _house(t, range(8))),
    "type and size": RuleSet("households", _HOUSE[:3], lambda t: _house(t, range(3))),
    "bill": RuleSet("bills", ("bill == drugs + room",), lambda t: _off(t, "bill", "drugs", "room")),
    "bill and own": RuleSet(
        "bills",
        ("bill == drugs + room", "own == bill - insured", "insured <= 0.9 * bill or age >= 65"),
        lambda t: _off(t, "bill", "drugs", "room") | _off(t, "own", "bill", "-insured"),
    ),
    "collgrad": RuleSet("nlswork", ("collgrad == '1' implies grade >= 14",), _grade),
    "tenure": RuleSet("nlswork", ("tenure <= ttl_exp",), _tenure),
    "years": RuleSet("nlswork", _YEARS, _years),
    "nlswork, all": RuleSet(
        "nlswork",
        ("collgrad == '1' implies grade >= 14", "tenure <= ttl_exp", *_YEARS),
        lambda t: _grade(t) | _tenure(t) | _years(t),
    ),
    "schedule": RuleSet(
        "flights",
        ("sched_dep_time == 100 * hour + minute",),
        lambda t: _differ(t["sched_dep_time"], 100 * t["hour"] + t["minute"]),
    ),
    "gained": RuleSet(
        "flights",
        ("gained == dep_delay - arr_delay", "arr_delay is missing implies gained is missing"),
        lambda t: _off(t, "gained", "dep_delay", "-arr_delay"),
    ),
    "principal": RuleSet(
        "loans",
        ("loan_amount == round(balance + paid_principal, 0)",),
        lambda t: (t["loan_amount"] - (t["balance"] + t["paid_principal"]).round()).abs() > 0.5,
    ),
    "paid": RuleSet(
        "loans",
        ("paid_total == paid_principal + paid_interest + paid_late_fees",),
        lambda t: _off(t, "paid_total", "paid_principal", "paid_interest", "paid_late_fees"),
    ),
    "loans, all": RuleSet(
        "loans",
        (
            "balance == loan_amount - paid_principal",
            "paid_total == paid_principal + paid_interest + paid_late_fees",
            "open_credit_lines <= total_credit_lines",
            "sub_grade determines grade",
        ),
        lambda t: (
            _off(t, "balance", "loan_amount", "-paid_principal")
            | _off(t, "paid_total", "paid_principal", "paid_interest", "paid_late_fees")
            | (t["open_credit_lines"] > t["total_credit_lines"])
            | _unlike(t, "sub_grade", "grade")
        ),
    ),
    "medical": RuleSet(
        "randhie",
        ("meddol == outpdol + drugdol + suppdol + inpdol",),
        lambda t: _off(t, "meddol", "outpdol", "drugdol", "suppdol", "inpdol"),
    ),
    "randhie, all": RuleSet(
        "randhie",
        (
            "meddol == outpdol + drugdol + suppdol + inpdol",
            "mentdol <= outpdol",
            "fchild == '1' implies child == '1' and female == '1'",
            "child == '1' implies xage <= 18",
        ),
        lambda t: (
            _off(t, "meddol", "outpdol", "drugdol", "suppdol", "inpdol")
            | (t["mentdol"] > t["outpdol"])
            | ((t["fchild"] == 1) & ((t["child"] == 0) | (t["female"] == 0)))
            | ((t["child"] == 1) & (t["xage"] > 18))
        ),
    ),
    "education": RuleSet(
        "adult", ("education <-> `education-num`",), lambda t: _unlike(t, "education", "education-num")
    ),
    "spouses": RuleSet(
        "adult",
        (
            "relationship in ['Husband', 'Wife'] implies `marital-status` in "
            "['Married-civ-spouse', 'Married-AF-spouse']",
            "relationship == 'Husband' implies sex == 'Male'",
        ),
        _spouses,
    ),
}


class Grids:
    """The grids of a private table's columns, and distances of another table's columns and pairs on them."""

    def __init__(self, real: pd.DataFrame) -> None:
        self._codes = {width: {c: self._maker(real[c], width) for c in real} for width in (12, 8)}
        self._real = {width: self._of(real, width) for width in (12, 8)}

    @staticmethod
    def _maker(values: pd.Series, width: int) -> Callable[[pd.Series], Codes]:
        if values.dtype.kind == "M" or (
            values.dtype.kind in "fiu" and values.nunique() > 24 - 12 * (width == 8)
        ):
            numbers = pd.to_numeric(values.dropna())
            edges = np.unique(np.quantile(numbers, np.arange(1, width) / width))
            time = values.dtype.kind == "M"

            def coded(other: pd.Series) -> Codes:
                other = pd.to_datetime(other).astype("M8[ns]") if time else other
                if time:
                    asked = other.astype("int64").where(other.notna(), np.nan).to_numpy(float)
                else:
                    asked = other.to_numpy(float)
                places = np.searchsorted(edges, asked, side="left")
                return np.where(np.isnan(asked), len(edges) + 1, places).astype(np.int64)

            if time:
                edges = np.unique(
                    np.quantile(values.dropna().astype("M8[ns]").astype("int64"), np.arange(1, width) / width)
                )
            return coded
        texts = {v: i for i, v in enumerate(sorted(_texts(values).unique()))}
        return lambda other: _texts(other).map(texts).fillna(len(texts)).to_numpy(np.int64)

    def _of(self, frame: pd.DataFrame, width: int) -> dict[str, Codes]:
        return {c: make(frame[c]) for c, make in self._codes[width].items()}

    def distances(self, frame: pd.DataFrame) -> dict[str, float]:
        """Total variation by column, and by pair as `a & b`."""
        found = {}
        mine, real = self._of(frame, 12), self._real[12]
        for c in mine:
            found[c] = _tvd(real[c], mine[c])
        mine, real = self._of(frame, 8), self._real[8]
        for a, b in combinations(mine, 2):
            found[f"{a} & {b}"] = _tvd(real[a] * 64 + real[b], mine[a] * 64 + mine[b])
        return found


def _texts(values: pd.Series) -> pd.Series:
    if values.dtype.kind in "fiu":
        return values.map(lambda v: "" if pd.isna(v) else f"{float(v):g}")
    return values.fillna("").astype(str)


def _tvd(a: Codes, b: Codes) -> float:
    size = int(max(a.max(), b.max())) + 1
    shares = [np.bincount(x, minlength=size) / len(x) for x in (a, b)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


@cache
def _table(name: str) -> Table:
    return TABLES[name]()


@cache
def _grids(name: str) -> Grids:
    return Grids(_table(name).frame)


@dataclass
class Outcome:
    """Mean distances of releases, the share of impossible rows, seconds, and the pairs that all measured."""

    distances: dict[str, float]
    broken: float
    seconds: float
    measured: set[str]


def released(name: str, rules: Sequence[str], broken: Broken | None, options: argparse.Namespace) -> Outcome:
    """Releases of a table under some rules."""
    table, found = _table(name), []
    seconds, shares = 0.0, 0.0
    pairs: list[set[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        table.frame.to_csv(f"{folder}/table.csv", index=False)
        for turn in range(options.times):
            begin = time.process_time()
            release = dpsynth.release(
                f"{folder}/table.csv",
                outputs=f"{folder}/{turn}",
                epsilon=options.epsilon,
                delta=1e-9,
                columns=dict(table.columns),
                dataset=name,
                constraints=list(rules),
                ledger={"url": f"sqlite:///{folder}/ledger.db", "cap": {"epsilon": 10000, "delta": 0.01}},
                sample={"rows": options.rows},
                privacy={"on_empty": "go"},
                tell=lambda _: None,
            )
            seconds += time.process_time() - begin
            synthetic = pd.read_csv(release.folder / "public" / "synthetic.csv")
            found.append(_grids(name).distances(synthetic))
            shares += float(broken(synthetic).mean()) if broken is not None else 0.0
            answers = pd.read_parquet(release.handed_over / "measurements.parquet")
            cliques = set(answers.drop_duplicates("measurement")["columns"].map(tuple))
            pairs.append({f"{a} & {b}" for clique in cliques for a in clique for b in clique})
    means = {key: float(np.mean([f[key] for f in found])) for key in found[0]}
    return Outcome(means, shares / options.times, seconds / options.times, set.intersection(*pairs))


def _worst(without: Outcome, ruled: Mapping[str, float], keys: Sequence[str]) -> str:
    """The key that loses most by the rules, with its distance without and with them."""
    if not keys:
        return "-"
    worst = max(keys, key=lambda k: ruled[k] - 1.1 * without.distances[k])
    return f"{worst}: {without.distances[worst]:.3f} → {ruled[worst]:.3f}"


def main() -> None:
    """Print a table of the price of each rule set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--before", type=Path)
    options = parser.parse_args()
    before = json.loads(options.before.read_text()) if options.before else {}
    plain: dict[str, Outcome] = {}
    saved = {}
    for name in options.sets:
        rules = SETS[name]
        if rules.table not in plain:
            plain[rules.table] = released(rules.table, (), None, options)
        without = plain[rules.table]
        ruled = released(rules.table, rules.rules, rules.broken, options)
        saved[name] = {"distances": ruled.distances, "broken": ruled.broken, "seconds": ruled.seconds}
        columns = [k for k in without.distances if "&" not in k]
        pairs = [k for k in without.distances if "&" in k]
        measured = [k for k in pairs if k in without.measured & ruled.measured]
        print(f"{name} ({len(rules.rules)} rules, {without.seconds:.1f} s → {ruled.seconds:.1f} s)")
        for label, outcome in (("before", before.get(name, {}).get("distances")), ("", ruled.distances)):
            if outcome is None:
                continue
            mean = [np.mean([d[c] for c in columns]) for d in (without.distances, outcome)]
            over = [k for k in (*columns, *measured) if outcome[k] > 1.1 * without.distances[k] + 0.01]
            print(
                f"  {label:7}columns {mean[0]:.3f} → {mean[1]:.3f} · {_worst(without, outcome, columns)}"
                f" · measured {_worst(without, outcome, measured)} · any {_worst(without, outcome, pairs)}"
                f" · {len(over)} over"
            )
        print(f"  {'':7}impossible rows {100 * ruled.broken:.2f} %", flush=True)
    if options.save:
        options.save.write_text(json.dumps(saved))


if __name__ == "__main__":
    main()
