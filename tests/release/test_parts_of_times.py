"""Whole releases in which hours, weekdays and months of a datetime are measured."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.bundle.recipient.bundle import open_bundle
from dpsynth.bundle.recipient.query import answered
from dpsynth.bundle.recipient.verification import verified
from dpsynth.config import from_mapping, load
from dpsynth.errors import ConfigError
from dpsynth.pipeline.forecast import forecast
from dpsynth.pipeline.result import Release
from tests.thinned import some

ROWS = 8000
SHARES = np.array(
    [4.5, 3.2, 2.2, 1.2, 0.7, 0.8, 1.5, 3.2, 5, 5.8, 6.2, 5.5, 4.5, 4.6, 5, 5.2, 5.5, 5.8, 5, 4.4, 4.6, 5.5,
     8.0, 7.1]
)  # fmt: skip
STOP = {"type": "datetime", "min": "2015-01-01", "max": "2015-12-31", "format": "%Y-%m-%d %H:%M"}
RULE = "hour(stop) < 6 implies shift == 'night'"


def night(hours: np.ndarray) -> np.ndarray:
    return (hours >= 22) | (hours < 6)


def table(path: Path) -> Path:
    """Stops of a year by hour and weekday, of which one in ten has no time; arrests are made at night."""
    rng = np.random.default_rng(5)
    hours = rng.choice(24, ROWS, p=SHARES / SHARES.sum())
    days = rng.integers(0, 365, ROWS)
    days = np.where((days % 7 == 3) & (rng.random(ROWS) < 0.8), (days + 2) % 365, days)
    minutes = rng.choice(np.arange(0, 60, 5), ROWS)
    stops = np.datetime64("2015-01-01", "m") + days * 1440 + hours * 60 + minutes
    texts = [str(stop).replace("T", " ") for stop in stops]
    arrest = rng.random(ROWS) < np.where(night(hours), 0.5, 0.05)
    frame = pd.DataFrame(
        {
            "stop": np.where(rng.random(ROWS) < 0.1, "", texts),
            "outcome": np.where(arrest, "arrest", "none"),
            "shift": np.where(night(hours), "night", "day"),
        }
    )
    frame.to_csv(path, index=False)
    return path


def mapping(folder: Path, **changes: object) -> dict[str, object]:
    """A configuration; ``stop`` replaces keys of that column, all else sections."""
    stop = changes.pop("stop", {"parts": ["hour", "weekday"], "step": "5 minutes"})
    return {
        "release": "stops",
        "source": {"path": str(table(folder / "stops.csv"))},
        "privacy": {"epsilon": 2.0, "delta": 1e-6, "on_empty": "go"},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db"},
        "columns": {
            "stop": STOP | stop,
            "outcome": {"type": "category", "values": ["arrest", "none"], "missing": False},
            "shift": {"type": "category", "values": ["day", "night"], "missing": False},
        },
        "sample": {"seed": 7},
        "publish": {"statistics": [{"crosstab": ["hour(stop)", "outcome"]}]},
    } | changes


def released(folder: Path, **changes: object) -> Release:
    spec = from_mapping(mapping(folder, **changes))
    return dpsynth.release(spec, outputs=folder / "outputs", tell=lambda _: None)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return released(tmp_path_factory.mktemp("parts"))


def moments(release: Release) -> pd.Series:
    return pd.to_datetime(pd.read_csv(release.folder / "public" / "synthetic.csv").stop)


def distance(found: pd.Series, truth: pd.Series) -> float:
    """Total variation distance of two shares."""
    return float((found - truth).abs().sum() / 2)


def hours_of(times: pd.Series) -> pd.Series:
    return times.dropna().dt.hour.value_counts(normalize=True).reindex(range(24), fill_value=0)


def test_hours_and_weekdays_are_the_measured_ones(made: Release) -> None:
    frame = pd.read_csv(made.folder.parents[2] / "stops.csv")
    real, found = pd.to_datetime(frame.stop), moments(made)
    assert distance(hours_of(found), hours_of(real)) < 0.03
    real_days, days = (
        s.dropna().dt.day_of_week.value_counts(normalize=True).sort_index() for s in (real, found)
    )
    assert distance(days, real_days) < 0.03
    assert abs(found.isna().mean() - real.isna().mean()) < 0.02
    assert set(found.dropna().dt.minute % 5) == {0}


def test_without_parts_the_hours_are_not_those_of_the_table(tmp_path: Path) -> None:
    """The planted fault: the same release without parts, which says that its time of day is invented."""
    release = released(tmp_path, stop={}, publish={"statistics": []})
    real = pd.to_datetime(pd.read_csv(tmp_path / "stops.csv").stop)
    assert distance(hours_of(moments(release)), hours_of(real)) > 0.12
    public = release.folder / "public"
    for page in ("report.html", "README.md"):
        assert "The time of day of stop is invented" in (public / page).read_text(encoding="utf-8")


def test_what_depends_on_the_hour_does_so_in_the_synthetic_rows(made: Release) -> None:
    frame = pd.read_csv(made.folder / "public" / "synthetic.csv")
    known = frame[frame.stop.notna()]
    late = night(pd.to_datetime(known.stop).dt.hour.to_numpy())
    arrests = (known.outcome == "arrest").to_numpy()
    assert arrests[late].mean() > 0.35 and arrests[~late].mean() < 0.15


def test_the_table_has_the_datetime_alone_and_the_bundle_is_good(made: Release) -> None:
    public = made.folder / "public"
    assert pq.read_schema(public / "synthetic.parquet").names == ["stop", "outcome", "shift"]
    described = json.loads((public / "manifest.json").read_text(encoding="utf-8"))["columns"]
    assert [column["name"] for column in described] == ["stop", "outcome", "shift"]
    assert [part["name"] for part in described[0]["parts"]] == ["weekday(stop)", "hour(stop)"]
    assert not verified(public).findings
    assert "The time of day" not in (public / "README.md").read_text(encoding="utf-8")


def test_recipients_ask_by_parts_as_formulas_write_them(made: Release) -> None:
    bundle = open_bundle(made.folder / "public")
    by_hour = answered(bundle, "count by hour(stop)").frame
    assert len(by_hour) == 25
    late = answered(bundle, "count where hour(stop) >= 22").frame
    listed = by_hour[by_hour["hour(stop)"].isin(["22", "23"])].estimate.sum()
    assert late.estimate[0] == pytest.approx(listed, rel=0.02)
    assert 0.35 < answered(bundle, "share(outcome == 'arrest') where hour(stop) < 5").frame.estimate[0] < 0.7


@pytest.mark.parametrize("method", some(["auto", "mst"], 1))
def test_rules_on_parts_are_obeyed(tmp_path: Path, method: str) -> None:
    columns = {"structure": {"method": method}, "constraints": [RULE]}
    frame = pd.read_csv(released(tmp_path, **columns).folder / "public" / "synthetic.csv")
    times = pd.to_datetime(frame.stop)
    early = times.dt.hour < 6
    assert early.sum() > 500 and set(frame["shift"][early]) == {"night"}
    real = pd.to_datetime(pd.read_csv(tmp_path / "stops.csv").stop)
    assert distance(hours_of(times), hours_of(real)) < 0.04


def test_the_plan_says_what_is_measured_and_what_is_invented(tmp_path: Path) -> None:
    def notes(**changes: object) -> str:
        return " ".join(forecast(from_mapping(mapping(tmp_path, **changes)))["notes"])

    assert "Of stop these are measured, each as a column: weeks, weekday(stop), hour(stop)." in notes()
    invented = "The time of day of stop is invented"
    assert invented not in notes()
    assert invented in notes(stop={"parts": ["weekday"]}, publish={"statistics": []})
    assert invented not in notes(stop={"step": "day"}, publish={"statistics": []})


def test_a_view_cannot_be_about_a_part_that_the_table_has_no_column_of(tmp_path: Path) -> None:
    view = {"k": 5, "quasi_identifiers": ["hour(stop)", "shift"]}
    with pytest.raises(ConfigError, match="hour"):
        from_mapping(mapping(tmp_path, publish={"k_anonymity": view}))


def test_missing_times_are_missing_in_their_parts_alone(made: Release) -> None:
    """The model gives each part its own missing cells; rows have them where the datetime is missing."""
    found = moments(made)
    table = pq.read_table(made.folder / "public" / "synthetic.parquet")
    assert pc.sum(table.column("stop").is_null()).as_py() == int(found.isna().sum()) > 0


def test_a_configuration_of_a_file_reads_parts(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(
        "release: r\nsource: {path: t.csv}\nprivacy: {epsilon: 1, delta: 1.0e-6}\ncolumns:\n"
        "  stop: {type: datetime, min: 2015-01-01, max: 2015-12-31, parts: [hour, weekday]}\n"
        "  x: {type: category, values: [a, b]}\n"
        "publish: {statistics: [{crosstab: [hour(stop), x]}]}\n",
        encoding="utf-8",
    )
    assert load(path).publish.statistics[0].columns == ("hour(stop)", "x")


def test_a_warning_is_given_of_the_moment_and_not_of_each_part_again(tmp_path: Path) -> None:
    """The planted misread: days and months in another order, so that next to no time is read."""
    wrong = {"parts": ["hour", "weekday"], "format": "%d/%m/%Y %H:%M:%S"}
    spec = from_mapping(mapping(tmp_path, stop=wrong))
    text = (tmp_path / "stops.csv").read_text().replace("2015-", "15.")
    (tmp_path / "stops.csv").write_text(text)
    release = dpsynth.release(spec, outputs=tmp_path / "outputs", tell=lambda _: None)
    assert {warning.column for warning in release.warnings} == {"stop"}
