"""A description guesses what a configuration needs, and a release refuses its guesses unreviewed."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError, SourceError, StepFailed
from tests.api.tables import frame

CANARY = "canary-4711"


def table() -> pd.DataFrame:
    """A frame of several kinds of column."""
    rows = frame()
    return rows.assign(
        seen=pd.Timestamp("2020-01-01") + pd.to_timedelta(rows.age, "D"),
        ill=rows.cost > 50,
        note=rows.index.map("n{}".format),
    )


def test_a_frame_is_described_as_its_csv_file_is(tmp_path: Path) -> None:
    plain = table().drop(columns=["seen", "ill"])
    plain.to_csv(tmp_path / "visits.csv", index=False)
    from_file, from_memory = dpsynth.describe(tmp_path / "visits.csv"), dpsynth.describe(plain)
    assert from_file.columns == from_memory.columns == dpsynth.describe(pa.Table.from_pandas(plain)).columns
    assert set(from_file.review) | {"source.path"} == set(from_memory.review) | {"source.path"}


def test_a_description_has_a_declaration_a_column_and_says_what_to_review() -> None:
    found = dpsynth.describe(table())
    assert list(found.columns) == ["age", "sex", "cost", "seen", "ill", "note"]
    assert found.columns["sex"]["values"] == ["F", "M"]
    assert found.columns["ill"]["type"] == "boolean" and found.columns["seen"]["type"] == "datetime"
    assert found.columns["seen"]["step"] == "day" and "parts" not in found.columns["seen"]
    assert found.unit == "row" and "privacy" in found.review
    assert any(line.startswith("columns.age: guessed: type, min, max") for line in found.review)
    assert parse_yaml(found.yaml, "y").values["columns"].keys() == found.columns.keys()
    for shown in (repr(found), found._repr_html_()):
        assert all(name in shown for name in found.columns) and "not private" in shown
    assert len(repr(found).splitlines()) == len(found.columns) + 3


def test_guesses_are_refused_until_they_are_handed_over_as_reviewed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = dpsynth.describe(table())
    with pytest.raises(ConfigError, match=r"Not reviewed yet: columns\.age.*reviewed\(\)"):
        dpsynth.release(table(), epsilon=1, dataset="d", columns=found.columns)
    with pytest.raises(ConfigError, match="Not reviewed yet"):
        dpsynth.Spec.from_dict({"privacy": {"epsilon": 1}, "columns": {**found.columns}})
    columns = found.reviewed({"age": {"type": "integer", "min": 0, "max": 110}, "note": None})
    assert "note" not in columns and columns["age"]["max"] == 110 and type(columns["sex"]) is dict
    done = dpsynth.release(
        table(), epsilon=1, dataset="d", columns=columns, structure={"method": "independent"}
    )
    assert list(done.synthetic.columns) == ["age", "sex", "cost", "seen", "ill"]


def test_a_change_of_an_unknown_column_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no column 'aeg' .did you mean 'age'"):
        dpsynth.describe(table()).reviewed({"aeg": None})


def test_what_cannot_be_described_is_refused_without_a_cell(monkeypatch, tmp_path: Path) -> None:
    for source in (pd.DataFrame(index=range(3)), 5, tmp_path / "absent.csv"):
        with pytest.raises(SourceError):
            dpsynth.describe(source)
    with pytest.raises(ConfigError, match="describe takes one table"):
        dpsynth.describe({"visits": table()})
    with pytest.raises(ConfigError, match="describe takes a table"):
        dpsynth.describe(dpsynth.Spec.from_dict({
            "privacy": {"epsilon": 1}, "ledger": {"dataset": "d"}, "columns": {"ill": {"type": "boolean"}}
        }))  # fmt: skip

    def quoting(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("dpsynth.curator.rows.memory_table.MemoryTable.batches", quoting)
    with pytest.raises(StepFailed) as failed:
        dpsynth.describe(pd.DataFrame({"x": [CANARY] * 9}))
    assert CANARY not in str(failed.value) and failed.value.__context__ is None


def test_columns_without_a_name_of_their_own_are_left_out() -> None:
    doubled = pd.DataFrame(np.arange(60).reshape(20, 3), columns=["a", "b", "b"])
    assert list(dpsynth.describe(doubled).columns) == ["a"]


def test_a_table_of_constant_columns_has_nothing_to_declare() -> None:
    assert not dpsynth.describe(pd.DataFrame({"a": [0] * 30})).columns


def test_a_table_in_which_every_type_says_all_is_described_without_a_look() -> None:
    assert dpsynth.describe(pd.DataFrame({"a": [True, False] * 30})).columns == {"a": {"type": "boolean"}}


def test_lengths_and_local_times_of_a_program_are_columns_with_bounds() -> None:
    whole = pd.DataFrame({
        "stay": pd.to_timedelta(np.arange(600) % 90, "min"),
        "seen": pd.date_range("2020-01-01", periods=600, freq="h", tz="Europe/Berlin"),
    })  # fmt: skip
    found = dpsynth.describe(whole).columns
    assert found["stay"] == {"type": "duration", "min": "PT0S", "max": "PT1H30M"}
    assert (found["seen"]["type"], found["seen"]["min"]) == ("datetime", "2020-01-01")


def test_whoever_repeats_is_asked_about_and_a_frames_numbers_of_persons_are_no_column() -> None:
    whose = np.repeat(np.arange(1_000_000, 1_000_400), 3)
    np.random.default_rng(0).shuffle(whose)
    frame = pd.DataFrame({"f7": whose, "age": whose % 80})
    found = dpsynth.describe(frame)
    assert found.unit == {"column": "f7", "max_rows": 3}
    assert found.columns["f7"] == {"type": "identifier"} and found.columns["age"]["type"] == "integer"
    asked = "400 values of f7 come 1,200 times: are they persons?"
    assert found.questions == (asked,)
    assert asked in repr(found) and asked in found._repr_html_() and f"# {asked}" in found.yaml
