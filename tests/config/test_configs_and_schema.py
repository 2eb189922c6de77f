"""The committed configurations load, the committed schema is current, and they agree."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import jsonschema
import pytest

from dpsynth.config import Person, compiled, load
from dpsynth.config.document import parse_yaml, read_yaml
from dpsynth.config.json_schema import schema_text

ROOT = Path(__file__).resolve().parents[2]
CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))
SCHEMA = ROOT / "schemas" / "dpsynth.schema.json"
HEAD = "# yaml-language-server: $schema=../schemas/dpsynth.schema.json"


def as_json(value):
    if isinstance(value, dict):
        return {k: as_json(v) for k, v in value.items()}
    if isinstance(value, list):
        return [as_json(v) for v in value]
    return float(value) if isinstance(value, Decimal) else value


@pytest.fixture(scope="module")
def validator():
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def errors(validator, text):
    return list(validator.iter_errors(as_json(parse_yaml(text, "c").values)))


def test_the_committed_schema_is_the_one_the_grammar_gives():
    assert SCHEMA.read_bytes() == schema_text().encode("utf-8"), (
        "run: python -m dpsynth.config.json_schema > schemas/dpsynth.schema.json"
    )


def test_every_config_is_here():
    assert {path.name for path in CONFIGS} >= {"randhie.yaml", "adult.yaml", "minimal.yaml"}


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.name)
def test_a_committed_config_loads_and_names_the_schema_it_validates_against(path, validator):
    spec = load(path)
    assert spec.warnings() == ()
    assert len(compiled(spec).layout.parts) == len(spec.columns)
    assert path.read_text(encoding="utf-8").splitlines()[0] == HEAD
    assert list(validator.iter_errors(as_json(read_yaml(path).values))) == []


def test_the_demo_protects_persons_and_may_run_ten_times():
    spec = load(ROOT / "configs" / "randhie.yaml")
    assert spec.privacy.unit == Person(column="zper", max_rows=5)
    assert (spec.privacy.epsilon, spec.privacy.delta) == (3, Decimal("1e-6"))
    assert spec.ledger.cap.epsilon == 10 * spec.privacy.epsilon
    assert spec.ledger.cap.delta == 10 * spec.privacy.delta
    assert max(column.size for column in compiled(spec).columns) <= 20


def test_adult_reads_question_marks_as_missing():
    columns = {column.name: column for column in compiled(load(ROOT / "configs" / "adult.yaml")).columns}
    assert len(columns) == 15
    assert [name for name, c in columns.items() if c.markers == ("?",)] == [
        "workclass", "occupation", "native-country",
    ]  # fmt: skip
    assert columns["capital-gain"].codec.labels[0] == "0"
    assert columns["capital-gain"].codec.labels[-1] == "99999 to 100000"


GOOD = "source: {path: a.csv}\nprivacy: {epsilon: 1}\ncolumns:\n  x: {type: integer, min: 0, max: 9}\n"


@pytest.mark.parametrize(
    "added",
    [
        "structure: mst",
        "structure: {method: independent}",
        "structure: auto",
        "structure: {method: fixed, cliques: [[a, b], [b, c, d]]}",
        "structure: {workload: {ways: 2, marginals: [{columns: [a, b], weight: 2}], weights: {a: 0.5}}}",
        "structure: {workload: {targets: [a], target_weight: 10}, max_model_mb: 80, max_seconds: 30}",
        "structure: {merge_rare: 0}",
        "sample: {rows: 10}",
        "sample: {rows: same, seed: 3}",
        "publish: {statistics: [{mean: x}, {crosstab: [x]}]}",
        "constraints: [a, b]",
        "period: {column: visited, every: week, composition: parallel}",
        "schedule: {cron: '*/5 0-6 1,15 jan-mar MON#1', timezone: Etc/GMT+3}",
        "reuse: {same_period: true, earlier_periods: false}",
        "ledger: {filter: gdp, head: /mnt/ledger.head}",
    ],
)
def test_the_schema_accepts_the_grammar(validator, added):
    assert errors(validator, GOOD + added) == []


@pytest.mark.parametrize(
    "text",
    [
        GOOD + "colour: red",
        GOOD.replace("epsilon: 1", "epsilon: 0"),
        GOOD.replace("epsilon: 1", "epsilon: 1, noise: none"),
        GOOD.replace("epsilon: 1", "epsilon: 1, unit: person"),
        GOOD.replace("type: integer", "type: integral"),
        GOOD.replace("max: 9", "max: 9, bin: 3"),
        GOOD.replace("max: 9", "max: 9, missing: [[x]]"),
        GOOD + "structure: {method: magic}",
        GOOD + "structure: magic",
        GOOD + "structure: {method: fixed, cliques: [x]}",
        GOOD + "structure: {workload: {ways: 1}}",
        GOOD + "structure: {workload: {marginals: [[a, b]]}}",
        GOOD + "structure: {workload: {weights: {x: 0}}}",
        GOOD + "structure: {max_model_mb: none}",
        GOOD + "publish: {statistics: [{median: x}]}",
        GOOD + "period: {column: visited}",
        GOOD + "period: {every: month}",
        GOOD + "period: {column: visited, every: fortnight}",
        GOOD + "period: {column: visited, every: month, composition: both}",
        GOOD + "schedule: {cron: 0 3 1 * *}",
        GOOD + "schedule: {cron: daily, timezone: UTC}",
        GOOD + "schedule: {cron: 0 0 3 1 * *, timezone: UTC}",
        GOOD + "reuse: {same_period: yes}",
        GOOD + "ledger: {filter: pld}",
        "privacy: {epsilon: 1}",
    ],
)
def test_the_schema_rejects_what_loading_rejects(validator, text):
    assert errors(validator, text)


def test_every_key_has_a_description_for_editors():
    definitions = json.loads(schema_text())["$defs"]
    undescribed = [
        f"{name}.{key}"
        for name, definition in definitions.items()
        for key, value in definition.get("properties", {}).items()
        if "description" not in value and "$ref" not in value
    ]
    assert undescribed == []


def test_reading_a_config_loads_no_heavy_library():
    code = (
        "import sys; from dpsynth.config import compiled, load; compiled(load(sys.argv[1])).columns;"
        "print(sorted({'pandas', 'scipy', 'matplotlib', 'sklearn', 'prefect', 'opendp'} & set(sys.modules)))"
    )
    config = str(ROOT / "configs" / "randhie.yaml")
    done = subprocess.run(
        [sys.executable, "-c", code, config], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"
