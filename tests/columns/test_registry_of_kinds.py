"""Each registered kind of column brings all that the other rooms need of it; what is missing is named.

The examples are those of docs/columns.md, so that a kind without one fails first.
"""

import json
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dpsynth.columns.category import BooleanCodec
from dpsynth.columns.codec import Intervals, Truths
from dpsynth.columns.column import Column
from dpsynth.columns.expression import MOMENTS, microseconds
from dpsynth.columns.kinds import KINDS
from dpsynth.columns.layout import Layout
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.public_schema import public_schema, published_layout
from dpsynth.columns.text import TextCodec
from dpsynth.config import compiled
from dpsynth.config.document import parse_yaml
from dpsynth.wings.owner.starter.sketch import Sketch, fitted
from tests.columns.declared import STRATEGIES, declared
from tests.specs import spec_of

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "columns.md").read_text(encoding="utf-8")
SCHEMA = json.loads((ROOT / "schemas" / "dpsynth.schema.json").read_text(encoding="utf-8"))
BLOCKS = [parse_yaml(text, "columns.md").values for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
NOT_READ = {"identifier", "derived"}
"""Kinds of which the table holds no column."""


def layout_of(columns):
    """The layout of a configuration of some columns."""
    privacy = {"epsilon": 1, "delta": 1e-9}
    return compiled(spec_of(columns | {"anything": {"type": "boolean"}}, privacy=privacy)).layout


LAYOUTS = [(block, layout_of(block)) for block in BLOCKS]


def examples(kind):
    """The parts that the page's examples of a kind declare, each with its layout."""
    found = []
    for block, layout in LAYOUTS:
        parts = {part.name: part for part in layout.parts}
        named = [name for name, declared in block.items() if declared["type"] == kind and name in parts]
        found += [(parts[name], layout) for name in named]
    assert found, f"docs/columns.md has no example in a yaml block of type: {kind}"
    return found


def check_codec(codec, codes, rng):
    """Refuse a codec whose members contradict each other."""
    cells = len(codec.labels)
    assert len(set(codec.labels)) == cells, "two cells have one label"
    assert json.loads(json.dumps(dict(codec.schema))) == dict(codec.schema), (
        "schema is not made of JSON values"
    )
    assert codec.kind.word in ("number", "text", "truth", "duration", *MOMENTS), "kind is none of formulas"
    check_values(codec, codes, rng)
    dense = codec.with_density(np.linspace(1000.0, 1.0, cells), 1.0)
    assert (dense.labels, dense.schema) == (codec.labels, codec.schema), "with_density changes the cells"
    check_values(dense, codes, rng)
    known = [codec.centres is None, codec.half_widths is None]
    assert known[0] == known[1], "a kind has centres and half_widths, or neither"
    if not known[0]:
        assert len(codec.centres) == len(codec.half_widths) == cells, "centres and half_widths are one a cell"


def check_values(codec, codes, rng):
    """Refuse decoded values that are not written and read as their cell, or lie outside its cell_values."""
    values = codec.decode(codes, rng)
    assert values.type == codec.arrow_type, "decode gives another type than arrow_type"
    texts = codec.text(values)
    assert codec.encode(texts).tolist() == codes.tolist(), "the text of a decoded value has another code"
    held = codec.cell_values
    if isinstance(held, Intervals):
        numbers = values if codec.kind.word == "number" else microseconds(values)
        plain = np.asarray(numbers).astype(np.float64)
        inside = (held.low[codes] <= plain) & (plain <= held.high[codes])
    elif isinstance(held, Truths):
        inside = held.true[codes] == np.asarray(values)
    else:
        told = texts.to_pylist()
        inside = np.array([held.holding(text)[code] for text, code in zip(told, codes, strict=True)])
    assert inside.all(), "a decoded value is not among the cell_values of its cell"


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_registered_under_the_word_that_its_declaration_states(kind):
    assert KINDS[kind].model_fields["type"].annotation == Literal[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_in_the_json_schema_of_editors(kind):
    stated = [d.get("properties", {}).get("type", {}).get("const") for d in SCHEMA["$defs"].values()]
    assert kind in stated, f"schemas/dpsynth.schema.json lacks {kind}; run make schema"


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_examples_whose_codecs_keep_their_promises(kind):
    rng = np.random.default_rng(0)
    for part, layout in examples(kind):
        assert layout.kinds[part.name].word
        if isinstance(part, Column):
            assert kind not in NOT_READ
            check_codec(part.codec, np.arange(300) % len(part.codec.labels), rng)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - NOT_READ))
def test_a_kind_that_is_read_has_a_strategy_for_properties(kind):
    assert kind in STRATEGIES, f"tests/columns/declared.py has no strategy for columns of type {kind}"


@settings(deadline=None)
@given(st.one_of(*STRATEGIES.values()), st.integers(0, 2**32))
def test_any_declared_codec_keeps_its_promises(column, seed):
    rng = np.random.default_rng(seed)
    check_codec(column.codec, rng.integers(0, len(column.codec.labels), 40), rng)


@settings(deadline=None)
@given(st.one_of(*STRATEGIES.values()))
@example(declared({"type": "integer", "min": -1000, "max": -1}))
@example(declared({"type": "text", "pattern": "[A-C]{2} [0-9]", "keep": 3}))
def test_any_declared_column_is_read_back_from_a_published_schema(column):
    layout = Layout.of([column])
    written = json.loads(json.dumps(public_schema(layout)), parse_float=Decimal)
    again = published_layout(written)
    assert [(c.name, c.labels) for c in again.columns] == [(c.name, c.labels) for c in layout.columns]


@pytest.mark.parametrize("kind", KINDS)
def test_init_reads_a_kind_back_from_a_published_schema(kind):
    for part, layout in examples(kind):
        if isinstance(part, Column) and part.search is not None:
            continue
        (described,) = (c for c in public_schema(layout) if c["name"] == part.name)
        read = json.loads(json.dumps(described), parse_float=Decimal)
        found = {k: one for k, d in KINDS.items() if (one := d.from_schema(read)) is not None}
        assert list(found) == [kind], f"from_schema of {kind} alone should know what {kind} has published"
        again = KINDS[kind].model_validate(found[kind]).part(part.name)
        if isinstance(part, Column):
            assert again.codec.labels == part.codec.labels, "from_schema declares other cells"
        else:
            assert again == part


@pytest.mark.parametrize("kind", KINDS)
def test_init_can_leave_the_ends_of_a_kind_open(kind):
    ends = [key for key in ("min", "max") if key in KINDS[kind].model_fields]
    if ends:
        sketch = fitted(Sketch("x", {"type": kind} | dict.fromkeys(ends)))
        assert sketch.gaps == tuple(ends), (
            f"{KINDS[kind].__name__}.STAND_INS are none of its own: {sketch.notes}"
        )


def test_every_codec_in_the_domain_is_that_of_a_registered_kind():
    used = {type(p.codec) for kind in KINDS for p, _ in examples(kind) if isinstance(p, Column)}
    files = (ROOT / "dpsynth" / "columns").glob("*.py")
    written = {
        name for f in files for name in re.findall(r"^class (\w+Codec)\b", f.read_text(), re.MULTILINE)
    }
    # The parts of a time are a key of datetime, and no kind of their own.
    assert written - {"Codec", "PartCodec"} == {codec.__name__ for codec in used}


class Narrow(NumericCodec):
    """A codec that says less than it decodes to."""

    @property
    def cell_values(self):
        low = super().cell_values.low
        return Intervals(low, low)


class Spilling(NumericCodec):
    """A codec whose density leaves its bins."""

    def with_density(self, counts, least):
        return replace(self, edges=(*self.edges[:-1], self.edges[-1] + 9))


class Mute(BooleanCodec):
    """A codec whose texts are not read back."""

    def text(self, values):
        return pa.array(["?"] * len(values))


class Other(TextCodec):
    """A codec that takes texts of a prefix for those of another."""

    @property
    def cell_values(self):
        held = super().cell_values
        return replace(held, holding=lambda text: ~held.holding(text))


NUMBERS = ((0.0, 10.0, 30.0), 1, False)


@pytest.mark.parametrize(
    ("codec", "words"),
    [
        (Narrow(*NUMBERS), "not among the cell_values"),
        (Spilling(*NUMBERS), "with_density changes the cells"),
        (Mute(), "has another code"),
        (Other("[a-c][0-9]", ("a", "b")), "not among the cell_values"),
    ],
)
def test_a_codec_that_breaks_a_promise_is_refused_by_name(codec, words):
    with pytest.raises(AssertionError, match=words):
        check_codec(codec, np.arange(60) % len(codec.labels), np.random.default_rng(0))
