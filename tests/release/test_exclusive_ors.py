"""A release of a table in which columns of two values are the exclusive or of three others."""

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.bundle.recipient.verification import verified
from dpsynth.config import from_mapping

COLUMNS = [f"c{i}" for i in range(9)]


def held(table: pd.DataFrame) -> float:
    """The share of rows in which the last column is the exclusive or of the first three."""
    codes = table[COLUMNS].astype(int).to_numpy()
    return float((codes[:, 0] ^ codes[:, 1] ^ codes[:, 2] == codes[:, 8]).mean())


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exclusive")
    rng = np.random.default_rng(1)
    codes = (rng.random((8000, 9)) < [0.5, 0.5, 0.5, 0.1, 0.3, 0.6, 0.5, 0.9, 0.5]).astype(int)
    codes[:, 8] = codes[:, 0] ^ codes[:, 1] ^ codes[:, 2]
    pd.DataFrame(codes, columns=COLUMNS).to_csv(folder / "table.csv", index=False)
    spec = from_mapping(
        {
            "source": {"path": str(folder / "table.csv")},
            "privacy": {"epsilon": 3, "delta": 1e-9},
            "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
            "columns": {c: {"type": "integer", "min": 0, "max": 1, "missing": False} for c in COLUMNS},
        }
    )
    return dpsynth.release(spec, outputs=folder / "out")


def test_synthetic_rows_and_further_ones_keep_it(release):
    assert held(pd.read_csv(release.folder / "public" / "synthetic.csv")) > 0.97
    assert held(release.sample(5000, seed=1)) > 0.97


def test_its_bundle_is_good_and_says_that_parities_were_asked_for(release):
    assert verified(release.folder / "public").good
    assert "Which sets of columns of two values" in (release.folder / "public" / "report.html").read_text()
