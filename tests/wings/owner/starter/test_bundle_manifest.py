"""The manifest of a release gives the next one the same columns, whatever was found and whatever declared."""

import json
from pathlib import Path

import pytest

from dpsynth.columns.column import Column
from dpsynth.columns.layout import Layout
from dpsynth.columns.public_schema import public_schema
from dpsynth.config import Spec, compiled
from dpsynth.config.document import parse_yaml
from dpsynth.wings.owner.starter import draft_of, starter_text

DECLARED = {
    "age": "{type: integer, min: 0, max: 110}",
    "visits": "{type: integer, bins: [0, 1, 2, 5, 10, 60], missing: ['?', n/a]}",
    "code": "{type: integer, min: 5, max: 9, bins: 5, missing: false}",
    "pay": "{type: number, bins: [0, 0.01, 10.5, 1000], decimals: 2}",
    "cost": "{type: number, min: -5, max: 5, format: {prefix: $}}",
    "sex": "{type: category, values: [F, M], missing: {distinct: [refused], markers: ['-']}}",
    "city": "{type: category, values: [Oslo, Bergen], other: elsewhere}",
    "grade": "{type: ordered, values: [1, 2, 3]}",
    "size": "{type: ordered, values: [S, M, L]}",
    "member": "{type: boolean, values: ['no', 'yes']}",
    "post": "{type: text, pattern: '[0-9]{5}', prefixes: ['7', '69'], other: '00000'}",
    "seen": "{type: date, min: 2020-01-01, max: 2021-06-30, format: '%d/%m/%Y'}",
    "at": "{type: datetime, min: 2020-01-01, max: 2020-01-03, unit: hour}",
    "hour": "{type: time, unit: hour}",
    "took": "{type: duration, min: PT0S, max: PT2H, unit: minute}",
    "id": "{type: identifier, surrogates: P001}",
}


def spec_of(columns: str) -> Spec:
    text = f"source: {{path: t.csv}}\nprivacy: {{epsilon: 1, delta: 1.0e-9}}\ncolumns:\n{columns}\n"
    return Spec.model_validate(parse_yaml(text, "t.yaml").values)


def told_again(layout: Layout, folder: Path) -> Layout:
    """The layout of the configuration that is written from a layout's manifest."""
    path = folder / "manifest.json"
    manifest = {"release_id": "1", "guarantee": {}, "columns": public_schema(layout)}
    path.write_text(json.dumps(manifest))
    draft = draft_of(path)
    text = starter_text(draft, "again", "schemas", "dpsynth init")
    values = parse_yaml(text, "again.yaml").values
    values["source"] = {"path": "t.csv"}
    values.pop("review", None)
    return compiled(Spec.model_validate(values)).layout


@pytest.mark.parametrize("name", DECLARED)
def test_each_kind_of_column_comes_back_as_it_was(name: str, tmp_path: Path) -> None:
    layout = compiled(spec_of(f"  {name}: {DECLARED[name]}\n  other one: {{type: boolean}}")).layout
    assert told_again(layout, tmp_path).parts == layout.parts


def test_a_last_bin_of_one_whole_number_is_told_again(tmp_path: Path) -> None:
    (column,) = compiled(spec_of("  gain: {type: integer, bins: [0, 1, 10, 100]}")).layout.columns
    codec = column.codec
    edges = (0.0, 1.0, 10.0, 99.0, 99.5)
    layout = Layout((Column("gain", type(codec)(edges, 0, integer=True)),))  # type: ignore[call-arg]
    (again,) = told_again(layout, tmp_path).columns
    assert again.labels == ("0", "1 to 9", "10 to 98", "99", "(missing)")
