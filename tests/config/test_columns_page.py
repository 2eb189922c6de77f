"""What docs/columns.md shows is so."""

import json
import re
from decimal import Decimal
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pytest

from dpsynth.columns.column import Column
from dpsynth.columns.kinds import KINDS
from dpsynth.columns.moment_formats import CODES
from dpsynth.config import compiled
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError
from tests.specs import spec_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
BLOCKS = [parse_yaml(text, "columns.md").values for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]


def layout_of(columns):
    anything = {"anything": {"type": "boolean"}}
    return compiled(spec_of(columns | anything)).layout


@pytest.mark.parametrize("columns", BLOCKS, ids=lambda block: next(iter(block)))
def test_every_example_is_valid_and_can_be_decoded(columns):
    layout = layout_of(columns)
    codes = {column.name: np.arange(50) % column.size for column in layout.columns}
    texts = layout.texts(layout.decode(codes, np.random.default_rng(0)))
    assert all(len(column) == 50 and column.null_count == 0 for column in texts.values())


def plain(value):
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize("columns", BLOCKS, ids=lambda block: next(iter(block)))
def test_editors_accept_every_example(columns):
    schema = json.loads((ROOT / "schemas" / "dpsynth.schema.json").read_text(encoding="utf-8"))
    whole = {"source": {"path": "t.csv"}, "privacy": {"epsilon": 1}, "columns": plain(columns)}
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(whole)) == []


@pytest.mark.parametrize(
    "column",
    [
        {"type": "date", "min": "2020-01-01", "max": "2020-12-31", "unit": "hour"},
        {"type": "duration", "min": 0, "max": 9, "format": "fortnights"},
        {"type": "ordered"},
        {"type": "derived"},
        {"type": "identifier", "min": 0},
        {"type": "integer", "min": 0, "max": 9, "format": {"thousand": ","}},
        {"type": "integer", "min": 0, "max": 9, "missing": {"aparts": ["x"]}},
    ],
    ids=lambda column: column["type"],
)
def test_editors_reject_what_loading_rejects(column):
    schema = json.loads((ROOT / "schemas" / "dpsynth.schema.json").read_text(encoding="utf-8"))
    whole = {"source": {"path": "t.csv"}, "privacy": {"epsilon": 1}, "columns": {"x": column}}
    assert list(jsonschema.Draft202012Validator(schema).iter_errors(whole))
    with pytest.raises(ConfigError):
        layout_of({"x": column})


def test_every_type_and_code_is_on_the_page():
    assert {column["type"] for block in BLOCKS for column in block.values()} == set(KINDS)
    assert all(f"`{code}`" in PAGE for code in CODES)


EXAMPLES = {name: column for block in BLOCKS for name, column in block.items()}


@pytest.mark.parametrize(
    ("name", "cell", "written"),
    [
        ("week", "7", r"07"),
        ("price", "1000", r"1 000,00 €|\d{3},\d\d €"),
        ("price", "1\u00a0000,00\u00a0€", r"1 000,00 €|\d{3},\d\d €"),
        ("billed", "2020-01-31", r"01/2020"),
        ("woke", "6:45 am", r"6:\d\d AM"),
        ("woke", "06:45:10", r"6:\d\d AM"),
        ("stay", "P1DT2H30M", r"P1D(T.*)?"),
        ("ride", "0:07", r"00:07"),
        ("clinic", "AB-1234", r"AB-1\d{3}"),
        ("clinic", "XY-1234", r"elsewhere"),
        ("clinic", "XY1234", r""),
        ("born", "29/02/2019", r""),
        ("b", "junk", r"\?"),
        ("c", "?", r"NA"),
        ("d", "99", r"99"),
        ("e", "unknown", r"unknown"),
        ("f", "unknown", r"3"),
    ],
)
def test_cells_are_read_and_written_as_the_page_says(name, cell, written):
    (column,) = (part for part in layout_of({name: EXAMPLES[name]}).parts if part.name == name)
    assert isinstance(column, Column)
    codes = column.encode(pa.array([cell])).repeat(20)
    texts = column.text(
        column.decode(codes, np.random.default_rng(1)), column.distinct_texts(codes)
    ).to_pylist()
    assert all(re.fullmatch(written, text) for text in texts), texts
