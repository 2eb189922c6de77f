"""What docs/constraints.md shows is so."""

import json
import re
from pathlib import Path

import pytest

from dpsynth.columns.rules import drawing, enforcement_of
from dpsynth.config import compiled
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError
from dpsynth.pipeline.forecast import forecast
from tests.specs import spec_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "constraints.md").read_text(encoding="utf-8")
(EXAMPLE,) = (
    parse_yaml(t, "constraints.md").values for t in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
)
OTHERS = {
    "employed": {"type": "boolean"}, "alive": {"type": "boolean"},
    "children": {"type": "integer", "min": 0, "max": 9},
    "ward": {"type": "category", "values": ["A", "B", "C"]},
    "city": {"type": "category", "values": ["Rome", "Nice"]},
    "country": {"type": "category", "values": ["it", "fr"]},
    "died": {"type": "date", "min": "2020-01-01", "max": "2024-12-31", "unit": "month"},
    "seen": {"type": "date", "min": "2020-01-01", "max": "2024-12-31", "unit": "month"},
    "start": {"type": "datetime", "min": "2020-01-01", "max": "2024-12-31", "unit": "month"},
    "diagnosis": {"type": "text", "pattern": "[A-C][0-9]{2}", "keep": 1},
    "chapter": {"type": "category", "values": ["A", "B", "C"]},
} | {
    name: {"type": "category", "values": ["Rome", "Nice"] if "city" in name else ["it", "fr"]}
    for name in ("home_city", "work_city", "home_country", "work_country")
} | {
    name: {"type": "integer", "min": 0, "max": 400}
    for name in ("systolic", "diastolic", "stay", "hour", "month")
} | {
    name: {"type": "number", "min": 0, "max": 9000, "decimals": 2}
    for name in ("pay", "bonus", "limit", "total", "a", "b", "c", "net", "gross", "own", "insured", "income")
}  # fmt: skip


def ruled(*rules, columns=EXAMPLE["columns"]):
    return spec_of(columns, rules, privacy={"epsilon": 1, "delta": 1e-9})


def test_the_example_is_kept_as_the_page_says(tmp_path):
    spec = ruled(*EXAMPLE["constraints"])
    told = [
        f"  {way.rule}: {way.kept}." for way in enforcement_of(compiled(spec).rules, compiled(spec).layout)
    ]
    assert "\n".join(told) in PAGE
    facts = forecast(spec.model_copy(update={"ledger": spec.ledger.model_copy(
        update={"url": f"sqlite:///{tmp_path}/ledger.db"})}))  # fmt: skip
    assert [f"  {way['rule']}: {way['kept']}." for way in facts["constraints"]] == told
    json.dumps(facts)


@pytest.mark.parametrize("added", re.findall(r"^Error: stays.yaml, line \d+: (.*)$", PAGE, re.MULTILINE))
def test_what_the_page_shows_refused_is_refused_in_these_words(added):
    rules = {
        "maried": "age < 15 implies maried == 'no'", "decimals": "bill == drugs * 1.055",
        "constraints[0] is obeyed": "discharged < '2022-01-01'", "'bill < drugs'": "bill < drugs",
    }  # fmt: skip
    (rule,) = (rule for words, rule in rules.items() if words in added)
    with pytest.raises(ConfigError) as caught:
        ruled(rule, *EXAMPLE["constraints"])
    assert str(caught.value).endswith(added)


TABLE = [
    rule.strip("` ")
    for line in PAGE.splitlines()
    if line.startswith("| `")
    for rule in re.findall(r"`[^`]+`", line.split(" | ")[0])
]


@pytest.mark.parametrize("rule", TABLE)
def test_every_kind_of_rule_is_one(rule):
    assert len(TABLE) > 12
    ruled(rule, columns=EXAMPLE["columns"] | OTHERS)


def test_the_page_has_the_numbers_of_rounds():
    assert f"drawn again, up to {drawing.VALUE_ROUNDS} times" in PAGE
    assert f"more rows are drawn, up to {drawing.ROW_ROUNDS} times" in PAGE.replace("\n  ", " ")
