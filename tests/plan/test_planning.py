"""What `plan` says of a release: all of the plan and the ledger, in words and as JSON, from no table."""

import json

import pytest

from dpsynth.cli.plan_command import describe
from dpsynth.config import compiled
from dpsynth.errors import ConfigError
from dpsynth.pipeline.forecast import forecast
from dpsynth.plan.plan import make_plan
from dpsynth.testing import STRATEGIES

LEDGER = "ledger: {url: 'sqlite:///spent.db', dataset: d}\n"


@pytest.fixture
def facts_of(load_with, tmp_path, monkeypatch):
    """The forecast of the small configuration with lines added, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def made(added="", replace=None):
        return forecast(load_with(LEDGER + added, replace))

    return made


def test_planning_reads_no_table_and_makes_no_file(load_with, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = load_with(LEDGER)
    assert not (tmp_path / spec.source.path).exists()
    before = sorted(p.name for p in tmp_path.rglob("*"))
    facts = forecast(spec)
    assert sorted(p.name for p in tmp_path.rglob("*")) == before
    assert facts["ledger"]["allowed"]
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    plan = make_plan(compiled(spec), STRATEGIES[spec.structure.method])
    assert {key: facts[key] for key in plan.to_json()} == plan.to_json()


@pytest.mark.parametrize("method", [*STRATEGIES, "fixed"])
def test_every_method_has_a_plan_that_spends_the_whole_budget(facts_of, method):
    listed = ", cliques: [[age, sex]]" if method == "fixed" else ""
    facts = facts_of(f"structure: {{method: {method}{listed}}}\n")
    assert facts["structure"] == method
    assert sum(step["cost"] for step in facts["steps"]) == pytest.approx(facts["budget"], rel=1e-9)


def test_every_fact_of_a_plan_is_printed_for_people(facts_of, capsys):
    facts = facts_of("structure: mst\npublish: {statistics: [{crosstab: [age, sex]}]}\n")
    describe(facts, detail=True)
    said = capsys.readouterr().out
    for step in facts["steps"]:
        assert step["step"] in said and step["mechanism"] in said and step["sensitivity"] in said
        assert f"{step['share']:.0%}" in said
    rough = facts["rough_forecast"]
    for words in (
        f"Budget: {facts['budget']:.6g} of {facts['accounting']}; structure: mst",
        "age with sex",
        f"at most {facts['model_cells_at_most']:,} cells, {facts['model_megabytes_at_most']:g} MB",
        f"roughly {rough['seconds']:,.0f} s and {rough['megabytes']:,.0f} MB",
        f"million rows {rough['seconds_per_million_rows']:.1f} s",
    ):
        assert words in said


def test_rounds_are_told_where_there_is_more_than_one(facts_of, capsys):
    facts = facts_of("structure: mst\n")
    describe({**facts, "rounds": 1}, detail=True)
    assert "rounds" not in capsys.readouterr().out
    describe({**facts, "rounds": 7}, detail=True)
    assert "structure: mst in 7 rounds;" in capsys.readouterr().out


def test_one_sensitivity_is_told_once_for_choices_and_distances_of_a_step(facts_of, capsys):
    facts = facts_of("structure: mst\n", ("delta: 1.0e-9", "delta: 1.0e-9, split: {exam: 0}"))
    structure = next(s for s in facts["steps"] if s["step"] == "structure")
    describe({**facts, "steps": [*facts["steps"], structure]}, detail=True)
    assert capsys.readouterr().out.count(structure["sensitivity"]) == 1


def test_a_cap_that_the_filter_can_not_keep_to_is_refused_and_not_counted(load_with, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = load_with(
        "ledger: {url: 'sqlite:///spent.db', dataset: d, cap: {epsilon: 9, delta: 0}, filter: gdp}\n",
        ("delta: 1.0e-9", "delta: 1.0e-9, noise: gaussian"),
    )
    with pytest.raises(ConfigError, match="delta of its cap must be above 0"):
        forecast(spec)
