"""A release under each accountant, and of each unit, keeps its promise and is verified by a recipient."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.bundle.recipient.bundle import open_bundle
from dpsynth.bundle.recipient.verification import guarantee_findings
from dpsynth.config import from_mapping
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request

LAPLACE = {"epsilon": 1, "delta": 1e-6, "noise": "laplace"}
GAUSSIAN = {"epsilon": 1, "delta": 1e-6}
MONTHS = {"column": "who", "per": {"column": "seen", "every": "month"}, "max_rows": 2}
PRIVACIES = {
    "zcdp, Gaussian": {**GAUSSIAN, "accountant": "zcdp"},
    "zcdp, Laplace": {**LAPLACE, "accountant": "zcdp"},
    "sequential": {**LAPLACE, "accountant": "sequential"},
    "persons' months": {**GAUSSIAN, "unit": MONTHS},
    "households": {**GAUSSIAN, "unit": {"column": "who", "kind": "household", "max_rows": 3}},
    "events": {"epsilon": 1, "unit": "event"},
}
CATEGORY = {"type": "category", "missing": False}
COLUMNS = {
    "sex": {**CATEGORY, "values": ["F", "M"]},
    "ill": {**CATEGORY, "values": ["a", "b", "c"]},
    "age": {"type": "integer", "bins": [0, 30, 60, 90], "missing": False},
}


def table(rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    months, days = rng.integers(1, 4, rows), rng.integers(1, 28, rows)
    return pd.DataFrame(
        {
            "who": rng.integers(0, rows // 3, rows),
            "seen": [f"2026-{m:02}-{d:02}" for m, d in zip(months, days, strict=True)],
            "sex": rng.choice(["F", "M"], rows),
            "ill": rng.choice(["a", "b", "c"], rows),
            "age": rng.integers(0, 90, rows),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIVACIES)
def test_a_release_keeps_its_promise_and_is_verified(tmp_path: Path, name: str) -> None:
    privacy, url = PRIVACIES[name], f"sqlite:///{tmp_path}/ledger.db"
    table(4000).to_csv(tmp_path / "t.csv", index=False)
    config = {
        "release": "t",
        "source": {"path": str(tmp_path / "t.csv")},
        "privacy": privacy,
        "ledger": {"url": url, "dataset": "people"},
        "columns": COLUMNS,
        "structure": {"method": "mst"},
    }
    pipeline.run(from_mapping(config), Request(tmp_path / "out"))
    (public,) = (path.parent for path in tmp_path.glob("out/**/manifest.json"))
    promised = json.loads((public / "manifest.json").read_text(encoding="utf-8"))["guarantee"]
    assert promised["epsilon"] <= 1 and promised["epsilon"] == pytest.approx(1, rel=1e-6)
    assert promised["accountant"] == privacy.get(
        "accountant", "sequential" if "delta" not in privacy else "gdp"
    )
    assert [group["units"] for group in promised["groups"]] == [2, 5, 10, 20]
    assert all(group["epsilon"] > 1.5 for group in promised["groups"])
    said, faults = guarantee_findings(open_bundle(public))
    assert said and not faults
    account = Ledger(url).balance("people")
    assert account is not None
    (release,) = account.releases
    assert release.state == "closed" and release.cost.within(release.reserved)
    assert release.cost.amount.epsilon <= Fraction(1)
