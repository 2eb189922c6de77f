"""A configuration in Python means what the same configuration means in YAML, and errors name the key."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.config import Spec, compiled, load
from dpsynth.config.document import plain_value
from dpsynth.errors import ConfigError

YAML = """\
release: visits
source: {path: visits.csv}
privacy: {epsilon: 0.1, delta: 1.0e-9, unit: {column: who, max_rows: 4}}
ledger: {dataset: visits}
columns:
  age: {type: integer, min: 0, max: 110}
  sex: {type: category, values: [F, M]}
  code: {type: category, values: [1, 2, 3]}
  cost: {type: number, bins: [0, 0.5, 10], decimals: 1}
  seen: {type: date, min: 2020-01-01, max: 2026-12-31}
  at: {type: datetime, min: 2020-01-01T00:00:00, max: 2021-01-01T00:00:00, unit: month}
  stay: {type: duration, min: PT0S, max: PT90S}
"""

VALUES = {
    "release": "visits",
    "source": {"path": Path("visits.csv")},
    "privacy": {
        "epsilon": 0.1,
        "delta": np.float64(1e-9),
        "unit": {"column": "who", "max_rows": np.int64(4)},
    },
    "ledger": {"dataset": "visits"},
    "columns": {
        "age": {"type": "integer", "min": np.uint8(0), "max": 110.0},
        "sex": {"type": "category", "values": pd.Series(["F", "M"])},
        "code": {"type": "category", "values": range(1, 4)},
        "cost": {"type": "number", "bins": np.array([0, 0.5, 10]), "decimals": 1},
        "seen": {"type": "date", "min": dt.date(2020, 1, 1), "max": pd.Timestamp("2026-12-31")},
        "at": {
            "type": "datetime",
            "min": pd.Timestamp("2020-01-01"),
            "max": np.datetime64("2021-01-01T00:00:00", "ns"),
            "unit": "month",
        },
        "stay": {"type": "duration", "min": dt.timedelta(0), "max": pd.Timedelta("90s")},
    },
}


def test_a_dict_of_python_values_is_the_configuration_of_its_yaml(tmp_path: Path) -> None:
    (tmp_path / "visits.yaml").write_text(YAML)
    written, given = load(tmp_path / "visits.yaml"), Spec.from_dict(VALUES)
    assert compiled(given).whole_fingerprint == compiled(written).whole_fingerprint
    assert given.source == written.source


def test_a_number_is_the_decimal_that_python_prints() -> None:
    assert plain_value(0.1, ("x",)) == Decimal("0.1") == plain_value(np.float64(0.1), ("x",))
    assert plain_value(np.bool_(True), ("x",)) is True
    assert plain_value((1, [2.5]), ("x",)) == [1, [Decimal("2.5")]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"privacy": {"epsilon": 0}}, "privacy.epsilon must be"),
        ({"privacy": {"epsilon": float("nan")}}, "privacy.epsilon must be"),
        ({"privacy": None}, "privacy has no value"),
        ({"colums": {}}, "did you mean 'columns'?"),
        ({"columns": {"age": {"type": "integer", "min": 0, "max": [1]}}}, "columns.age.max"),
        ({"columns": {"age": {"type": "category", "values": [1.5]}}}, "columns.age.values[0]"),
        (
            {"columns": {"age": {"type": "category", "values": [b"x"]}}},
            "columns.age.values[0] is of type bytes",
        ),
        ({"columns": {1: {}}}, "columns has a key of type int"),
    ],
)
def test_an_error_names_the_key_without_a_line(change: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as refused:
        Spec.from_dict({**VALUES, **change})
    assert words in str(refused.value) and " line " not in str(refused.value)


def test_a_configuration_without_a_file_is_about_a_table_in_memory_with_a_declared_name() -> None:
    values = {key: value for key, value in VALUES.items() if key not in ("source", "release")}
    spec = Spec.from_dict(values)
    assert spec.source.in_memory and spec.source.path is None and spec.release == "visits"
    assert Spec.from_dict({**values, "ledger": {"dataset": "Visits of 2024"}}).release == "Visits-of-2024"
    assert not Spec.from_dict(VALUES).source.in_memory and Spec.from_dict(VALUES).in_memory().source.in_memory
    with pytest.raises(ConfigError, match=r"ledger\.dataset is missing"):
        Spec.from_dict({**values, "ledger": {}})
