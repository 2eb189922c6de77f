"""Wards of a hospital that is made up: with the rule that each is of one department, and without.

    python benchmarks/mappings.py [--epsilon 0.5 1] [--runs 3] [--patients 6000]

Patients have up to twelve visits, of which five are told apart. Shown are, without the rule and with it: the
wards with several departments; the share of visits whose department isn't that of their ward in the private
table; and errors, total variation distances of the visits' columns, of pairs of these, and of age with each.
Costs are compared by their tenths, ages by tens.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

import dpsynth

Frames = Mapping[str, pd.DataFrame]

_RULE = "ward determines department"
_DEPARTMENTS = np.array(["surgery", "medicine", "women", "children"])
_OF_WARD = np.array([0, 1, 2, 3, 0, 1, 0, 0, 1, 2, 3, 1])
_WARDS = np.array([f"w{i}" for i in range(len(_OF_WARD))])


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


def tables(rules: Sequence[str]) -> Mapping[str, object]:
    """The configuration's section."""
    columns = {
        "ward": {"type": "category", "values": _WARDS.tolist()},
        "department": {"type": "category", "values": _DEPARTMENTS.tolist()},
        "cost": {"type": "integer", "min": 0, "max": 9999},
    }
    parent = {"table": "patients", "key": "pid", "max_children": 12, "roles": 5}
    whole = {name: {**declared, "missing": False} for name, declared in columns.items()}
    age = {"type": "integer", "min": 0, "max": 99, "missing": False}
    return {
        "patients": {"key": "pid", "columns": {"age": age}},
        "visits": {"parent": parent, "columns": whole, "constraints": [*rules]},
    }


def judged(real: Frames, made: Frames) -> Mapping[str, float]:
    """The figures of a release."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--patients", type=int, default=6000)
    asked = parser.parse_args()
    real, found = hospital(asked.patients), []
    for epsilon in asked.epsilon:
        for rules in ((), (_RULE,)):
            for _ in range(asked.runs):
                with tempfile.TemporaryDirectory() as folder:
                    done = dpsynth.release(
                        {name: frame.astype(str) for name, frame in real.items()},
                        tables=tables(rules),
                        epsilon=epsilon,
                        delta=1e-6,
                        dataset="hospital",
                        ledger=Path(folder) / "ledger.db",
                        outputs=Path(folder) / "out",
                    )
                    made = dpsynth.open_bundle(done.handed_over).tables
                found.append({"epsilon": epsilon, "rule": bool(rules), **judged(real, made)})
    print(pd.DataFrame(found).groupby(["epsilon", "rule"]).mean().round(4).to_string())


if __name__ == "__main__":
    main()
