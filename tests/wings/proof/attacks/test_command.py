"""``dpsynth attack`` on a config makes its table up: no source is opened, and nothing is charged."""

import json

import pytest

from dpsynth.wings.proof.attacks import ATTACKS
from tests.cli.here import Command

CONFIG = """\
source: {path: secret/people.csv}
privacy: {epsilon: 1.0, delta: 1.0e-6}
ledger: {url: "sqlite:///ledger.db"}
columns:
  age: {type: integer, min: 0, max: 89, bins: 9, missing: false}
  sex: {type: category, values: [F, M], missing: false}
  pay: {type: number, min: 0, max: 100, bins: 10, missing: false}
"""


@pytest.fixture
def dpsynth(tmp_path, monkeypatch, capsys):
    return Command(tmp_path, monkeypatch, capsys)


def test_an_attack_that_is_none_is_refused(dpsynth):
    said = dpsynth("attack", "guessing", "--on", "config.yaml")
    assert said.code == 2 and "'guessing' is no attack that dpsynth knows: use differencing" in said.err


def test_a_config_that_is_not_there_is_refused(dpsynth):
    assert dpsynth("attack", "averaging", "--on", "config.yaml").code == 2


def test_a_folder_that_is_no_bundle_and_the_local_model_are_refused_in_a_sentence(dpsynth, tmp_path):
    said = dpsynth("attack", "averaging", "--on", ".")
    assert said.code == 1 and said.err.count("\n") == 1 and "is no bundle" in said.err
    (tmp_path / "local.yaml").write_text(
        "trust: local\nprivacy: {epsilon: 1}\n"
        "columns:\n  sex: {type: category, values: [F, M], missing: false}\n"
    )
    said = dpsynth("attack", "averaging", "--on", "local.yaml")
    assert (
        said.code == 2
        and said.err.count("\n") == 1
        and "Give the configuration of a curator's table" in said.err
    )


@pytest.mark.slow
def test_of_a_config_with_audiences_the_bundle_of_the_largest_epsilon_is_attacked(dpsynth, tmp_path):
    audiences = "audiences: {staff: {epsilon: 0.5}, partners: {epsilon: 2}}\n"
    config = CONFIG.replace("epsilon: 1.0, ", "") + audiences
    (tmp_path / "config.yaml").write_text(config, encoding="utf-8")
    said = dpsynth("attack", "averaging", "--on", "config.yaml", "--games", "100", "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["guarantee"]["epsilon"] == pytest.approx(2, rel=1e-6)


@pytest.mark.slow
def test_a_config_is_attacked_without_its_table_and_without_a_charge(dpsynth, tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG, encoding="utf-8")
    said = dpsynth("attack", "all", "--on", "config.yaml", "--seed", "3", "--json", "--page", "page.html")
    assert said.code == 0, said.err
    facts = json.loads(said.out)
    assert facts["table"] == "made up from the configuration" and facts["rows"] == 2000
    assert [one["attack"] for one in facts["attacks"]] == list(ATTACKS)
    assert "Attacks on config config.yaml" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "page.html"]
