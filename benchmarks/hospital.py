"""A hospital that is made up, as linked tables make it: mappings, sums of child rows, windows, and its size.

    python benchmarks/hospital.py [mappings] [above] [figures] [windows] [star]
        [--epsilon 0.5 1] [--runs 3] [--patients N]

mappings: with the rule that each ward is of one department, and without. Shown are the wards with several
departments; the share of visits whose department isn't that of their ward in the private table; and errors,
total variation distances of the visits' columns, of pairs of these, and of age with each.

above: with the rule that all visits of a region's patients are in one department, and without. Shown are the
regions with several departments; the share of visits in another one; and errors of the department, alone and
with age, cost and region.

figures: what patients spent, measured as a column of theirs, and derived from the synthetic visits. Shown are
the patients who didn't spend the sum of their visits' costs, and errors of the column, with age, and with the
number of visits.

windows: costs and stays at the ICU grow with each visit, and patients have up to forty of them, of which six
or twelve are used: the first ones, or a window. Errors are those against all visits; "ICU" is the share of
visits there less the real one.

star: patients with up to sixty visits, and up to five hundred laboratory values. Shown are how far numbers of
rows are off, the largest error of a ward's median cost, visits out of order, median glucose of diabetics
divided by that of others, the rank correlation of cost and age, and seconds of the processor.

Costs and sums are compared by their tenths, ages by tens.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import dpsynth

Frames = Mapping[str, pd.DataFrame]
Figures = Mapping[str, float]

_AGE = {"type": "integer", "min": 0, "max": 99, "missing": False}
_RULE = "ward determines department"
_DEPARTMENTS = np.array(["surgery", "medicine", "women", "children"])
_OF_WARD = np.array([0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 1])
_WARDS = np.array([f"w{i}" for i in range(len(_OF_WARD))])


def tenths(real: pd.Series, values: pd.Series) -> NDArray[np.int64]:
    """The tenth of a real column that each value lies in."""
    edges = real.quantile(np.arange(1, 10) / 10).to_numpy()
    return np.asarray(np.searchsorted(edges, values.astype(float)), np.int64)


def distance(both: Sequence[pd.DataFrame], *names: str) -> float:
    """The total variation distance of some columns together."""
    counts = [frame.groupby([*names], observed=True).size() / len(frame) for frame in both]
    return float(counts[0].sub(counts[1], fill_value=0).abs().sum() / 2)


def released(real: Frames, tables: Mapping[str, object], epsilon: float) -> Frames:
    """The synthetic tables of a release."""
    with tempfile.TemporaryDirectory() as folder:
        done = dpsynth.release(
            {name: frame.astype(str) for name, frame in real.items()},
            tables=tables,
            epsilon=epsilon,
            delta=1e-6,
            dataset="hospital",
            ledger=Path(folder) / "ledger.db",
            outputs=Path(folder) / "out",
        )
        return dpsynth.open_bundle(done.handed_over).tables


def hospital(patients: int, seed: int = 1) -> Frames:
    """Patients and their visits; each ward has three quarters of the visits of the one before."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(patients), np.minimum(rng.geometric(0.3, patients), 12))
    age = rng.integers(0, 90, patients)
    common, slope = 0.75 ** np.arange(len(_WARDS)), np.linspace(3, 0.2, len(_WARDS))
    shares = common * np.where(age[whose, None] > 50, slope, slope[::-1])
    below = (shares / shares.sum(axis=1, keepdims=True)).cumsum(axis=1)
    ward = (below < rng.random(len(whose))[:, None]).sum(axis=1).clip(max=len(_WARDS) - 1)
    cost = np.exp(rng.normal(6 + 0.3 * _OF_WARD[ward], 0.6)).clip(max=9999).astype(int)
    visits = {"pid": whose, "ward": _WARDS[ward], "department": _DEPARTMENTS[_OF_WARD[ward]], "cost": cost}
    return {
        "patients": pd.DataFrame({"pid": np.arange(patients), "age": age}),
        "visits": pd.DataFrame(visits),
    }


def tables_of_mappings(rules: Sequence[str]) -> Mapping[str, object]:
    columns = {
        "ward": {"type": "category", "values": _WARDS.tolist()},
        "department": {"type": "category", "values": _DEPARTMENTS.tolist()},
        "cost": {"type": "integer", "min": 0, "max": 9999},
    }
    parent = {"table": "patients", "key": "pid", "max_children": 12, "roles": 5}
    whole = {name: {**declared, "missing": False} for name, declared in columns.items()}
    return {
        "patients": {"key": "pid", "columns": {"age": _AGE}},
        "visits": {"parent": parent, "columns": whole, "constraints": [*rules]},
    }


def judged_mappings(real: Frames, made: Frames) -> Figures:
    edges = real["visits"].cost.quantile(np.arange(1, 10) / 10).to_numpy()
    both = []
    for found in (real, made):
        whole = found["visits"].merge(found["patients"], on="pid")
        tenth, tens = np.searchsorted(edges, whole.cost.astype(int)), whole.age.astype(int) // 10
        both.append(
            pd.DataFrame({"ward": whole.ward, "department": whole.department, "c": tenth, "age": tens})
        )

    def off(*names: str) -> float:
        counts = [frame.groupby([*names], observed=True).size() / len(frame) for frame in both]
        return float(counts[0].sub(counts[1], fill_value=0).abs().sum() / 2)

    truth = dict(zip(_WARDS, _DEPARTMENTS[_OF_WARD], strict=True))
    rows, own = both[1], ("ward", "department", "c")
    return {
        "wards of several": float((rows.groupby("ward").department.nunique() > 1).sum()),
        "wrong": float((rows.ward.map(truth) != rows.department).mean()),
        "visits": float(np.mean([off(c) for c in own])),
        "in child": float(np.mean([off("ward", "department"), off("ward", "c"), off("department", "c")])),
        "parent x child": float(np.mean([off("age", c) for c in own])),
    }


def mappings(patients: int, epsilon: float) -> Iterator[tuple[str, Figures]]:
    real = hospital(patients)
    for rules in ((), (_RULE,)):
        made = released(real, tables_of_mappings(rules), epsilon)
        yield f"rule: {bool(rules)}", judged_mappings(real, made)


def above(patients: int, epsilon: float) -> Iterator[tuple[str, Figures]]:
    plain, home = hospital(patients), np.random.default_rng(2).integers(0, len(_WARDS), patients)
    visits = plain["visits"].assign(department=_DEPARTMENTS[_OF_WARD[home[plain["visits"].pid]]])
    real = {"patients": plain["patients"].assign(region=_WARDS[home]), "visits": visits.drop(columns="ward")}
    for rules in ((), ("patients.region determines department",)):
        tables = dict(tables_of_mappings(rules))
        columns = dict(tables["visits"]["columns"])
        region = columns.pop("ward")
        tables["patients"] = {"key": "pid", "columns": {"age": _AGE, "region": region}}
        parent = {**tables["visits"]["parent"], "max_children": 5}
        made, both = (
            released(
                real, tables | {"visits": {**tables["visits"], "columns": columns, "parent": parent}}, epsilon
            ),
            [],
        )
        for found in (real, made):
            whole = found["visits"].groupby("pid").head(5).merge(found["patients"], on="pid")
            tens = whole.age.astype(int) // 10
            both.append(whole.assign(c=tenths(visits.cost, whole.cost), age=tens))
        off, rows = partial(distance, both), both[1]
        truth = dict(zip(_WARDS, _DEPARTMENTS[_OF_WARD], strict=True))
        errors = {f"x {name}": off("department", name) for name in ("age", "c", "region")}
        yield (
            f"rule: {bool(rules)}",
            {
                "regions of several": float((rows.groupby("region").department.nunique() > 1).sum()),
                "wrong": float((rows.region.map(truth) != rows.department).mean()),
                "department": off("department"),
                **errors,
            },
        )


def figures(patients: int, epsilon: float) -> Iterator[tuple[str, Figures]]:
    visits = hospital(patients)["visits"]
    spent = visits.groupby("pid").cost.sum()
    real = {"patients": hospital(patients)["patients"].assign(spent=spent), "visits": visits}
    for derived in (False, True):
        tables = dict(tables_of_mappings([_RULE]))
        measured = {"age": _AGE} | ({} if derived else {"spent": {**_AGE, "max": 120_000}})
        tables["patients"] = {"key": "pid", "columns": measured}
        if derived:
            tables["patients"] |= {"derived": {"spent": {"sum": "visits", "of": "cost"}}}
        tables["visits"]["parent"] = {**tables["visits"]["parent"], "roles": 2}
        made, both = released(real, tables, epsilon), []
        for found in (real, made):
            of = found["visits"].astype({"cost": int}).groupby("pid").cost.agg(["sum", "size"])
            whole = found["patients"].set_index("pid").astype(int).join(of).fillna(0)
            cells = {"spent": tenths(spent, whole.spent), "age": whole.age // 10, "visits": whole["size"]}
            both.append(pd.DataFrame({**cells, "wrong": whole.spent != whole["sum"]}))
        off = partial(distance, both)
        errors = {
            "spent": off("spent"),
            "spent x age": off("spent", "age"),
            "x visits": off("spent", "visits"),
        }
        yield f"derived: {derived}", {"wrong": float(both[1].wrong.mean()), **errors}


def crowded(patients: int, seed: int = 3) -> Frames:
    """Patients with up to forty visits, in the order of their years; later ones cost more."""
    rng = np.random.default_rng(seed)
    whose = np.repeat(np.arange(patients), np.minimum(1 + rng.geometric(0.12, patients), 40))
    turn = pd.Series(whose).groupby(whose).cumcount().to_numpy()
    first = rng.integers(2005, 2015, patients)
    years = pd.Series(rng.geometric(0.6, len(whose))).groupby(whose).cumsum().to_numpy() // 3
    visits = {"pid": whose, "year": np.minimum(first[whose] + years, 2040)}
    visits["cost"] = np.exp(rng.normal(5 + 0.08 * turn, 0.5)).clip(max=9999).astype(int)
    visits["ward"] = np.where(rng.random(len(whose)) < 0.1 + 0.02 * turn, "ICU", "day")
    above = pd.DataFrame({"pid": np.arange(patients), "first": first})
    return {"patients": above, "visits": pd.DataFrame(visits)}


def windows(patients: int, epsilon: float) -> Iterator[tuple[str, Figures]]:
    real = crowded(patients)
    year = {"type": "integer", "min": 2000, "max": 2040, "missing": False}
    columns = {"year": year, "cost": {**_AGE, "max": 9999}}
    columns |= {"ward": {"type": "category", "values": ["ICU", "day"], "missing": False}}
    for most in (6, 12):
        for keep in ("first", "window"):
            parent = {"table": "patients", "key": "pid", "max_children": most, "keep": keep}
            tables = {
                "patients": {"key": "pid", "columns": {"first": {**year, "max": 2020}}},
                "visits": {"parent": parent, "order_by": "year", "columns": columns},
            }
            made, both = released(real, tables, epsilon), []
            for found in (real, made):
                whole = found["visits"].merge(found["patients"], on="pid").astype({"year": int, "first": int})
                whole["c"] = tenths(real["visits"].cost, whole.cost)
                whole["next"] = whole.sort_values(["pid", "year"]).groupby("pid").year.diff()
                both.append(whole)
            off = partial(distance, both)
            errors = {"year": off("year"), "cost": off("c"), "year x cost": off("year", "c")}
            icu = [float((whole.ward == "ICU").mean()) for whole in both]
            steps = {
                "year x first": off("year", "first"),
                "next": distance([w.dropna() for w in both], "next"),
            }
            yield f"{most} {keep}", {**errors, "ICU": icu[1] - icu[0], **steps}


_LABS = np.array(["glucose", "sodium", "creatinine", "haemoglobin"])


def two_below(patients: int, seed: int = 4) -> Frames:
    """Patients with visits, whose costs grow with age, and laboratory values; diabetics have more glucose."""
    rng = np.random.default_rng(seed)
    age, ill = rng.integers(0, 90, patients), rng.random(patients) < 0.15
    visits = np.repeat(np.arange(patients), np.minimum(rng.geometric(0.2, patients) - 1 + ill, 60))
    labs = np.repeat(np.arange(patients), np.minimum(rng.poisson(rng.lognormal(1.2, 1.1, patients)), 500))
    turn = pd.Series(visits).groupby(visits).cumcount().to_numpy()
    ward = rng.choice(_WARDS[:5], len(visits), p=[0.3, 0.25, 0.2, 0.15, 0.1])
    level = 5.5 + 0.3 * _OF_WARD[:5][np.searchsorted(_WARDS[:5], ward)] + 0.008 * age[visits]
    cost = np.exp(rng.normal(level, 0.7)).clip(max=9999).astype(int)
    test = rng.choice(_LABS, len(labs))
    middle = np.where(test == "glucose", np.where(ill[labs], 9.4, 5.2), 8.0)
    value = rng.normal(middle, 1.0).clip(0, 20).round(1)
    years = np.minimum(2005 + rng.integers(0, 10, patients)[visits] + turn // 2, 2040)
    return {
        "patients": pd.DataFrame(
            {"pid": np.arange(patients), "age": age, "diabetes": np.where(ill, "yes", "no")}
        ),
        "visits": pd.DataFrame({"pid": visits, "year": years, "ward": ward, "cost": cost}),
        "labs": pd.DataFrame({"pid": labs, "test": test, "value": value}),
    }


def star(patients: int, epsilon: float) -> Iterator[tuple[str, Figures]]:
    real = two_below(patients)
    whole = {"missing": False}
    above = {"age": _AGE, "diabetes": {"type": "boolean", "values": ["no", "yes"], **whole}}
    year = {"type": "integer", "min": 2000, "max": 2040, **whole}
    ward = {"type": "category", "values": _WARDS[:5].tolist(), **whole}
    test = {"type": "category", "values": _LABS.tolist(), **whole}
    value = {"type": "number", "min": 0, "max": 20, "decimals": 1, **whole}
    tables = {
        "patients": {"key": "pid", "columns": above},
        "visits": {
            "parent": {"table": "patients", "key": "pid", "max_children": 60},
            "order_by": "year",
            "columns": {"year": year, "ward": ward, "cost": {**_AGE, "max": 9999}},
        },
        "labs": {
            "parent": {"table": "patients", "key": "pid", "max_children": 500},
            "columns": {"test": test, "value": value},
        },
    }
    begun = time.process_time()
    made = released(real, tables, epsilon)
    seconds = time.process_time() - begun
    medians, glucose, ranks = [], [], []
    for found in (real, made):
        visits = (
            found["visits"].astype({"cost": float}).merge(found["patients"], on="pid").astype({"age": int})
        )
        labs = found["labs"].astype({"value": float}).merge(found["patients"], on="pid")
        sick = labs.diabetes.astype(str).isin(["yes", "True"])
        of = labs[labs.test == "glucose"].groupby(sick).value.median()
        medians.append(visits.groupby("ward").cost.median())
        glucose.append(of[True] / of[False])
        ranks.append(visits.cost.corr(visits.age, method="spearman"))
    turns = made["visits"].astype({"year": int}).groupby("pid").year.diff()
    yield (
        "two tables below",
        {
            "visits": len(made["visits"]) / len(real["visits"]) - 1,
            "labs": len(made["labs"]) / len(real["labs"]) - 1,
            "median cost": float((medians[1] / medians[0] - 1).abs().max()),
            "out of order": float((turns < 0).sum()),
            "glucose": glucose[1],
            "real glucose": glucose[0],
            "rank": ranks[1],
            "real rank": ranks[0],
            "CPU s": seconds,
        },
    )


def main() -> None:
    kinds = {"mappings": mappings, "above": above, "figures": figures, "windows": windows, "star": star}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[*kinds, []], default=[*kinds])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--patients", type=int, default=6000)
    asked = parser.parse_args()
    for kind in asked.kinds:
        found = [
            {"epsilon": epsilon, kind: name, **shown}
            for epsilon in asked.epsilon
            for _ in range(asked.runs)
            for name, shown in kinds[kind](asked.patients, epsilon)
        ]
        print(pd.DataFrame(found).groupby(["epsilon", kind]).mean().round(4).to_string(), flush=True)


if __name__ == "__main__":
    main()
