"""Releases that build on earlier ones: what they gain, what they cost, and that they go on as they began."""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.columns.column import domain_of
from dpsynth.config import compiled
from dpsynth.errors import ConfigError, Interrupted
from dpsynth.model import Expansion, LeastSquares
from dpsynth.model.measurement_file import read_measurements
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import Step
from tests.release.place import HEADER, Place, people
from tests.release.stopping import stopped_at

MONTHS = ("2024-01", "2024-02", "2024-03")


@pytest.fixture
def monthly(place: Place) -> Place:
    """A table of three months, 400 rows each."""
    rows = [(*row, f"{MONTHS[i % 3]}-15") for i, row in enumerate(people(1200))]
    place.table(rows, header=(*HEADER, "seen"))
    return place


def released(
    place: Place,
    name: str,
    month: str | None = "2024-03",
    resume: str | None = None,
    structure: dict[str, object] | None = None,
    **reuse: bool,
) -> Release:
    """A release of a month in this process, under a name."""
    place.configure(
        release=name,
        **({} if structure is None else {"structure": structure}),
        period={"column": "seen", "every": "month"},
        reuse=reuse,
        privacy={"epsilon": 4.0, "delta": 1e-9},
    )
    config = json.loads((place.folder / "config.yaml").read_text())
    config["ledger"]["url"] = place.url
    (place.folder / "config.yaml").write_text(json.dumps(config))
    spec = dpsynth.load(place.folder / "config.yaml", source=str(place.folder / "people.csv"))
    return dpsynth.release(spec, outputs=place.folder / "outputs", period=month, resume=resume)


def manifest(release: Release) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((release.folder / "public" / "manifest.json").read_text())
    return found


def built_on(release: Release) -> list[object]:
    return [r["release_id"] for r in manifest(release)["earlier_releases"]["releases"]]


def errors(release: Release, title: str) -> np.ndarray:
    return np.array(release.tables[title].table["standard_error"].to_numpy())


@pytest.mark.usefixtures("seeded_noise")
def test_a_second_release_of_a_period_is_as_precise_as_both_and_costs_itself_alone(monthly: Place) -> None:
    # Pairs that are chosen would tell of these columns too, in some releases and not in others.
    fixed: dict[str, object] = {"method": "fixed", "cliques": [["sex", "city"]], "merge_rare": 0}
    first = released(monthly, "first", structure=fixed)
    second = released(monthly, "second", structure=fixed, same_period=True)
    third = released(monthly, "third", structure=fixed, same_period=True)
    for title in ("age", "sex and city"):
        for release, shrunk in ((second, 1 / 2), (third, 1 / 3)):
            ratio = errors(release, title) / errors(first, title)
            assert np.allclose(ratio, np.sqrt(shrunk), rtol=0.15)
    assert manifest(first)["earlier_releases"] is None
    assert built_on(second) == [first.release_id]
    assert built_on(third) == [first.release_id, second.release_id]
    file = first.folder / "public" / "measurements.parquet"
    told = manifest(second)["earlier_releases"]["releases"][0]["measurements_sha256"]
    assert told == hashlib.sha256(file.read_bytes()).hexdigest()
    account = monthly.balance
    assert account is not None and second.guarantee.epsilon == pytest.approx(
        first.guarantee.epsilon, rel=1e-6
    )
    costs = [r.cost.amount.epsilon for r in account.releases]
    assert len(costs) == 3 and max(costs) <= 4
    so_far = manifest(third)["earlier_releases"]["all_releases_so_far"]
    assert so_far["epsilon"] > 1.5 * first.guarantee.epsilon


def test_no_answer_of_an_earlier_release_is_handed_on_as_one_of_its_own(monthly: Place) -> None:
    """Or a third release would count the first one twice."""
    for name in ("first", "second", "third"):
        release = released(monthly, name, same_period=True)
        file = pq.read_schema(release.folder / "public" / "measurements.parquet")
        listed = json.loads(file.metadata[b"dpsynth.measurements"])
        asked = [m for m in manifest(release)["mechanisms"] if m["question"] in ("marginal", "count")]
        assert [m["columns"] for m in listed] == [m["columns"] for m in asked]


def test_tables_that_were_measured_owe_nothing_to_earlier_periods(monthly: Place) -> None:
    """They are made here once more from this release's own answers."""
    for month in MONTHS:
        last = released(monthly, "monthly", month, earlier_periods=True)
    columns = compiled(
        dpsynth.load(monthly.folder / "config.yaml", source=str(monthly.folder / "people.csv"))
    ).columns
    own = read_measurements(last.folder / "public" / "measurements.parquet", columns)
    domain = domain_of(columns)
    direct = LeastSquares(domain, Expansion(domain, own.compression, own.singles).direct(own.answers))
    for title, clique in (("age", ("age",)), ("sex and city", ("sex", "city"))):
        table = last.tables[title].table
        assert np.allclose(table["estimate"].to_numpy(), direct.marginal(clique).ravel())
        assert set(table["basis"].to_pylist()) == {"measured"}
    told = manifest(last)["earlier_releases"]["releases"]
    assert [r["periods_ago"] for r in told] == [1, 2]
    assert {r["use"] for r in told} == {"in the model, at a discount"}


def interrupted(place: Place) -> str:
    """The id of a second release that was stopped before its model was fitted."""

    with stopped_at(Step.FIT, KeyboardInterrupt()), pytest.raises(Interrupted) as stopped:
        released(place, "second", same_period=True)
    return str(stopped.value).split("resume='")[1].split("'")[0]


def test_a_release_that_is_resumed_builds_on_what_it_began_with(
    monthly: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: a third release, closed between; with it, other questions would have been asked."""
    first = released(monthly, "first")
    release_id = interrupted(monthly)
    released(monthly, "third")
    second = released(monthly, "second", None, release_id, same_period=True)
    assert second.release_id == release_id and built_on(second) == [first.release_id]


def test_without_its_evidence_a_release_does_not_go_on_and_asks_for_it(
    monthly: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = released(monthly, "first")
    release_id = interrupted(monthly)
    aside = first.folder.with_name("aside")
    first.folder.rename(aside)
    with pytest.raises(ConfigError, match=r"Put .* back") as refused:
        released(monthly, "second", None, release_id, same_period=True)
    assert f"resume='{release_id}'" in str(refused.value)
    account = monthly.balance
    assert account is not None and [r.state for r in account.releases] == ["closed", "reserved"]
    aside.rename(first.folder)
    assert built_on(released(monthly, "second", None, release_id, same_period=True)) == [first.release_id]


def test_a_bundle_that_is_not_there_is_passed_over_and_named(monthly: Place) -> None:
    first, told = released(monthly, "first"), list[str]()
    first.folder.rename(first.folder.with_name("aside"))
    released(monthly, "second")
    monthly.configure(
        release="third", period={"column": "seen", "every": "month"}, reuse={"same_period": True}
    )
    spec = dpsynth.load(monthly.folder / "config.yaml", source=str(monthly.folder / "people.csv"))
    spec = spec.model_copy(update={"ledger": spec.ledger.model_copy(update={"url": monthly.url})})
    third = dpsynth.release(
        spec, outputs=Path(monthly.folder / "outputs"), period="2024-03", tell=told.append
    )
    assert len(built_on(third)) == 1 and sum(first.release_id in sentence for sentence in told) == 1
