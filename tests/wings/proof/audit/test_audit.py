"""Audits of whole configs: sound ones pass, and planted faults are found."""

import json
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from dpsynth.accounting.calibration import CalibratedNoise, Calibration
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.cli.app import app
from dpsynth.config import Spec, from_mapping
from dpsynth.curator import samplers
from dpsynth.errors import ConfigError
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.inputs import inputs_of
from dpsynth.wings.proof.audit import Audit, Extent, audit, auditing, page
from dpsynth.wings.proof.audit.losses import many_distances
from dpsynth.wings.proof.audit.membership import ATTACKS
from tests.chromium import faults, needs_chromium
from tests.thinned import some

COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99, "bins": 4},
    "sex": {"type": "category", "values": ["F", "M"]},
    "well": {"type": "boolean", "missing": False},
}
FEW = Extent(rows=60, neighbours=12, releases=0)


def config_of(privacy: dict[str, object], method: str = "independent", **more: object) -> dict[str, object]:
    return {
        "source": {"path": "nowhere.csv"},
        "privacy": {"epsilon": 2, **privacy},
        "ledger": {"url": "sqlite:///nowhere/ledger.db"},
        "columns": COLUMNS,
        "structure": {"method": method},
        **more,
    }


def spec_of(privacy: dict[str, object], method: str = "independent", **more: object) -> Spec:
    return from_mapping(config_of(privacy, method, **more))


GAUSSIAN = {"delta": 1e-6}
PERSON = {"unit": {"column": "who", "max_rows": 3}}
TERMS = [
    GAUSSIAN,
    {},
    {**GAUSSIAN, **PERSON},
    {**PERSON, "neighbours": "replace_one"},
    {**GAUSSIAN, "neighbours": "replace_one"},
]


@pytest.mark.parametrize(
    ("terms", "method"), some(list(product(range(len(TERMS)), ["independent", "mst", "auto"])), 2)
)
def test_a_sound_config_is_not_contradicted_and_most_of_its_budget_is_seen(terms: int, method: str) -> None:
    found = audit(spec_of(TERMS[terms], method), FEW)
    assert found.faults == ()
    assert found.replayed.neighbours in (11, 12)
    # Choices cost less than they are charged for, by as much as scores agree.
    assert 0.5 < found.replayed.dearest <= 1 + 1e-9
    assert {r.ask for r in found.replayed.reached} >= {"marginal", "exam"}


def test_a_release_for_several_audiences_is_audited_to_its_end() -> None:
    audiences = {"public": {"epsilon": 0.5}, "partners": {"epsilon": 2}}
    config = {**config_of({}, audiences=audiences), "privacy": GAUSSIAN}
    found = audit(from_mapping(config), Extent(rows=60, neighbours=4, releases=0))
    assert found.faults == ()
    assert found.claim.epsilon == 2
    assert found.replayed.dearest > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("terms", range(len(TERMS)))
def test_attackers_stay_below_the_claim(terms: int) -> None:
    found = audit(spec_of(TERMS[terms], "mst"), Extent(rows=80, neighbours=12, releases=60))
    assert found.faults == ()
    assert found.attacked is not None


@pytest.fixture(scope="module")
def attacked() -> Audit:
    config = config_of({"epsilon": 40})
    config["ledger"] = {"url": "sqlite:///nowhere/ledger.db", "cap": {"epsilon": 50}}
    return audit(from_mapping(config), Extent(rows=60, neighbours=10, releases=12))


def test_an_attacker_shows_part_of_a_large_epsilon(attacked: Audit) -> None:
    found = attacked
    assert found.faults == ()
    assert found.attacked is not None
    # 12 of 12 found, and none falsely, show an epsilon of 1.02.
    assert found.attacked.transcript.epsilon > 0.5


# Planted faults.


def test_a_forgotten_person_factor_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(Neighbours, "l1", 1)
    monkeypatch.setattr(Neighbours, "l2_squared", 1)
    found = audit(spec_of({**GAUSSIAN, **PERSON}), Extent(rows=60, neighbours=6, releases=0))
    assert any("sensitivity" in fault for fault in found.faults)


@pytest.mark.slow
def test_noise_that_is_too_small_is_caught(monkeypatch) -> None:
    sound = samplers.add_gaussian

    def small(values, sigma):
        return values + np.rint(0.7 * (sound(values, sigma) - values)).astype(np.int64)

    monkeypatch.setattr(samplers, "add_gaussian", small)
    found = audit(
        spec_of({**GAUSSIAN, "epsilon": 1}, columns=WIDE), Extent(rows=60, neighbours=10, releases=12)
    )
    assert found.attacked is not None
    assert found.attacked.noise.draws > 2_000
    assert any("times as large as stated" in fault for fault in found.faults)


WIDE = {f"c{i}": {"type": "integer", "min": 0, "max": 19, "bins": 20} for i in range(5)}


def wide(columns: int, method: str, neighbours: int) -> Audit:
    """The audit of a config of so many columns, each of two values."""
    declared = {f"c{i}": {"type": "boolean", "missing": False} for i in range(columns)}
    spec = spec_of(GAUSSIAN, method, columns=declared)
    return audit(spec, Extent(rows=40, neighbours=neighbours, releases=0))


@pytest.mark.parametrize(
    ("columns", "method", "neighbours"),
    some(
        [
            (22, "auto", 2),
            (60, "independent", 1),
            *(pytest.param(60, method, 10, marks=pytest.mark.slow) for method in ("auto", "mst", "aim")),
        ],
        1,
    ),
)
def test_wide_releases_are_replayed_with_hundreds_of_distances(columns, method, neighbours) -> None:
    found = wide(columns, method, neighbours)
    assert found.faults == ()
    assert {r.ask: r.largest for r in found.replayed.reached}["exam"] > 0.3


def at_most(most: int) -> Callable[..., CalibratedNoise]:
    """A calibration of distances that makes noise for so many of them at most."""
    sound = Calibration.distances
    return lambda self, price, number=1: sound(self, price, min(number, most))


@pytest.mark.parametrize("terms", some(range(len(TERMS)), 2))
def test_a_config_of_few_columns_is_audited_for_many_distances(terms: int, tmp_path: Path) -> None:
    plan = inputs_of(spec_of(TERMS[terms])).plan
    replays = list(many_distances(plan, tmp_path / "many"))
    asked = [(a.question["ask"], np.size(a.exact)) for _, record, _ in replays for a in record.asked]
    assert asked == [("exam", 289), ("errors", 289), ("exam", 1870), ("errors", 1870)]
    found = auditing._compared(replays, plan, lambda _: None)
    assert found.faults == ()
    assert {reached.largest for reached in found.reached} == {1.0}
    assert 0.99 < found.dearest <= 1 + 1e-9


@pytest.mark.parametrize("most", some([64, 500], 1))
def test_noise_for_fewer_distances_than_are_asked_for_is_caught(monkeypatch, most: int) -> None:
    monkeypatch.setattr(Calibration, "distances", at_most(most))
    found = audit(spec_of(GAUSSIAN), Extent(rows=30, neighbours=1, releases=0))
    assert found.replayed.faults == ()
    asked = {fault.partition(":")[0] for fault in found.faults}
    assert asked == {"a unit comes, 1,870 distances"} | (
        {"a unit comes, 289 distances"} if most < 289 else set()
    )


def test_noise_for_64_distances_of_a_wide_release_is_caught(monkeypatch) -> None:
    monkeypatch.setattr(Calibration, "distances", at_most(64))
    assert any("exam: sensitivity" in fault for fault in wide(22, "independent", 1).replayed.faults)


def test_many_distances_with_half_of_their_noise_are_caught(monkeypatch, tmp_path: Path) -> None:
    sound = samplers.add_gaussian
    monkeypatch.setattr(
        samplers,
        "add_gaussian",
        lambda values, sigma: sound(values, sigma / 2 if len(values) > 64 else sigma),
    )
    plan = inputs_of(spec_of(GAUSSIAN)).plan
    found = auditing._compared(many_distances(plan, tmp_path / "many"), plan, lambda _: None)
    assert all("times as large as stated" in fault for fault in found.faults)
    assert len(found.faults) == 2


def test_a_question_that_depends_on_the_table_is_caught(monkeypatch) -> None:
    sound = pipeline.measure_one_way

    def nosy(inputs, stage, *others):
        if stage.curator._table.rows % 2:
            stage.curator.count(stage.plan.budget / 1000)
        return sound(inputs, stage, *others)

    monkeypatch.setattr(pipeline, "measure_one_way", nosy)
    assert audit(spec_of(GAUSSIAN), FEW).faults


# The command.


def test_the_command_prints_json_and_writes_a_page_without_paths(tmp_path: Path) -> None:
    config = tmp_path / "visits.yaml"
    config.write_text(yaml.safe_dump(config_of(GAUSSIAN)))
    written = tmp_path / "audit.html"
    run = CliRunner().invoke(
        app,
        ["audit", str(config), "--neighbours=10", "--releases=0", "--rows=30", "--json", f"--page={written}"],
    )
    assert run.exit_code == 0, run.output
    assert json.loads(run.stdout)["sound"] is True
    # The parts of an audit are said, and nothing of the releases in them.
    assert run.stderr.splitlines() == ["Step: replay on 10 neighbours", "Step: ask for many distances"]
    text = written.read_text()
    assert "dpsynth audit visits.yaml --neighbours=10 --releases=0 --rows=30 --seed=1" in text
    assert str(tmp_path) not in text
    assert not list(tmp_path.glob("*.db"))


def test_a_contradiction_ends_the_command_with_1(monkeypatch, tmp_path: Path) -> None:
    config = tmp_path / "visits.yaml"
    config.write_text(yaml.safe_dump(config_of(GAUSSIAN)))
    monkeypatch.setattr(Neighbours, "rows_public", True)
    run = CliRunner().invoke(app, ["audit", str(config), "--neighbours=10", "--releases=0", "--rows=30"])
    assert run.exit_code == 1
    assert "This contradicts the claim" in run.output


def test_attacks_end_when_their_time_is_over_but_not_before_they_can_be_judged(monkeypatch) -> None:
    # A third of the least number, so that the test is short.
    monkeypatch.setattr(auditing, "LEAST_RELEASES", 4)
    found = audit(spec_of(GAUSSIAN), Extent(rows=30, neighbours=3, releases=12, seconds=0))
    assert found.attacked is not None
    assert found.attacked.releases == 4


def test_too_few_releases_are_refused() -> None:
    with pytest.raises(ConfigError, match="12 releases at least"):
        audit(spec_of(GAUSSIAN), Extent(releases=5))


def test_the_page_says_what_was_found(attacked: Audit) -> None:
    text = page(attacked, "dpsynth audit x.yaml")
    assert "Nothing contradicts the claim" in text
    assert "a unit without any cell comes" in text
    for name in ATTACKS:
        assert f"{name}, on the synthetic table alone" in text
    assert text.count("(chosen beforehand)") == 1


@pytest.mark.slow
@needs_chromium
def test_the_page_is_whole_in_a_browser(attacked: Audit, tmp_path: Path) -> None:
    assert faults([page(attacked, "dpsynth audit x.yaml")], tmp_path) == []
