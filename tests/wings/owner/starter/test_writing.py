"""What is written is read back as it was meant, and nothing unsure can be run."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.config import from_mapping
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter import Draft, Sketch, guessed, starter_text, writing
from dpsynth.wings.owner.starter.sketch import Profile, Unit, fitted
from tests.examples import examples
from tests.specs import spec_of
from tests.wings.owner.starter.reviewing import loaded, taken_over, to_review, without_list

ANY_TEXT = st.text(st.characters(), max_size=12)
CELL = st.one_of(
    st.integers(-(10**15), 10**15),
    ANY_TEXT,
    st.sampled_from(["no", "Null", "~", "1e5", "0x1F", "2020-01-01",
                     "a: b", "a #b", "- a", "{a", "'", '"', "\\"]),
)  # fmt: skip
NUMBER = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9, places=3)


def draft(*sketches, **facts):
    return Draft(("A test was read.",), sketches, table="data/t.csv", **facts)


def text_of(*sketches, **facts):
    return starter_text(draft(*sketches, **facts), "t", "schemas", "dpsynth init t.csv")


@given(name=ANY_TEXT, values=st.lists(CELL, min_size=2, max_size=5), note=ANY_TEXT, low=NUMBER)
@examples(300)
def test_any_name_value_and_note_is_read_back_as_it_was(name, values, note, low):
    sketches = [
        fitted(Sketch(name, {"type": "category", "values": list(values)}, (note,))),
        fitted(Sketch("n", {"type": "number", "min": low, "max": low + 1}, (note,))),
    ]
    text = text_of(*sketches)
    assert taken_over(text) == writing.values_of(draft(*sketches))
    assert taken_over(text)["n"] == {"type": "number", "min": low, "max": low + 1}


def test_a_text_that_would_be_read_as_something_else_is_caught(monkeypatch):
    sketch = Sketch("answer", {"type": "category", "values": ["yes", "true"]})
    assert taken_over(text_of(sketch))["answer"]["values"] == ["yes", "true"]
    monkeypatch.setattr(writing, "_scalar", lambda value: "null" if value is None else str(value))
    with pytest.raises(RuntimeError, match="does not say what was to be written"):
        text_of(sketch)


def test_a_note_cannot_add_a_line_of_yaml():
    text = text_of(
        Sketch("a", {"type": "boolean"}, ("fine\n  b: {type: boolean}\u2028  c: {type: boolean}",))
    )
    assert list(taken_over(text)) == ["a"]


def test_every_gap_and_every_guess_is_listed_and_nothing_else():
    sketches = (
        Sketch("known", {"type": "integer", "min": 0, "max": 9}),
        Sketch("gap", {"type": "integer", "min": 0, "max": None}),
        Sketch("stub", {"type": None}),
        Sketch("gone", None),
        Sketch("kept", {"type": "integer", "min": None, "max": 9}),
    )
    whole = guessed(
        draft(*sketches, described=False),
        Profile(
            {
                "known": {"type": "integer", "min": 3, "max": 4},
                "gap": {"type": "integer", "min": 1, "max": 70},
                "stub": {"type": "category", "values": ["a", "b"], "missing": "?"},
                "gone": {"type": "boolean"},
                "kept": {"type": "category", "values": ["a", "b"]},
            }
        ),
    )
    text = starter_text(whole, "t", "schemas", "dpsynth init")
    assert taken_over(text) == {
        "known": {"type": "integer", "min": 0, "max": 9},
        "gap": {"type": "integer", "min": 0, "max": 70},
        "stub": {"type": "category", "values": ["a", "b"], "missing": "?"},
        "kept": {"type": "integer", "min": None, "max": 9},
    }
    assert to_review(text) == ["privacy", "columns.kept", "columns.gap", "columns.stub"]
    groups = text[text.index("review:") :].splitlines()[2:-1]
    assert groups[::2] == [f"  # {writing._QUESTIONS[group]}" for group in ("fill", "bounds", "values")]
    assert groups[1::2] == ["  columns.kept,", "  columns.gap,", "  columns.stub,"]
    assert "gap: {type: integer, min: 0, max: 70}   # a guess" in text


def test_a_guess_that_contradicts_the_description_is_not_taken():
    known = Sketch("age", {"type": "integer", "min": None, "max": 50})
    found = guessed(draft(known), Profile({"age": {"type": "integer", "min": 60, "max": 90}})).columns[0]
    assert found.declared == {"type": "integer", "min": None, "max": 50}
    assert "min must not be above max" in found.notes[0]


@pytest.mark.parametrize("end", ["", "[]"])
def test_a_starter_is_refused_until_its_list_is_empty(tmp_path, end):
    text = text_of(Sketch("a", {"type": "boolean"}))
    with pytest.raises(
        ConfigError, match=r"line \d+: review still lists privacy, columns. Each of these was"
    ):
        loaded(text, tmp_path)
    spec = loaded(without_list(text).replace("review: []\n", f"review: {end}\n" if end else ""), tmp_path)
    assert spec.release == "t" and spec.source.path == "data/t.csv"


def test_the_list_is_refused_before_anything_else_is_said():
    with pytest.raises(ConfigError, match=r"review still lists columns\.a") as raised:
        from_mapping({"review": ["columns.a"], "columns": {"a": {"type": None}}})
    assert "problems" not in str(raised.value)
    for listed in (None, "columns.a", [3], {"a": 1}):
        with pytest.raises(ConfigError, match=r"review (has no value|must be a list)"):
            from_mapping({"review": listed})


def test_the_examples_in_a_starter_are_declarations():
    spec = spec_of(writing.EXAMPLES)
    text = text_of(Sketch("x", {"type": None}))
    for name in spec.columns:
        assert f"  #   {name}: {{type: {spec.columns[name].type}" in text
    lines = [line.removeprefix("  #   ") for line in text.splitlines() if line.startswith("  #   ")]
    assert parse_yaml("\n".join(lines), "t").values == writing.EXAMPLES


def test_the_release_is_named_after_the_file_and_the_dataset_after_the_table():
    text = starter_text(draft(Sketch("a", {"type": "boolean"})), "Visits of 2024!", "schemas", "dpsynth init")
    values = parse_yaml(text, "t").values
    assert values["release"] == "Visits-of-2024"
    assert values["ledger"] == {"dataset": "t", "cap": {"epsilon": 10, "delta": Decimal("1.0e-5")}}
    assert [writing.release_name(name) for name in ("...", "a/.b", "é", "x" * 200)] == [
        "release", "b", "release", "x" * 100
    ]  # fmt: skip


def test_a_starter_that_could_not_be_read_is_not_written():
    many = [
        Sketch(f"c{i}", {"type": "category", "values": ["x" * 190 + str(j) for j in range(60)]})
        for i in range(90)
    ]
    with pytest.raises(ConfigError, match="larger than 1,000,000 bytes"):
        text_of(*many)


def test_a_column_of_one_value_is_left_out():
    found = fitted(Sketch("a", {"type": "category", "values": ["x"], "missing": False}))
    assert found.declared is None and "one possible value only" in found.notes[0]
    kept = fitted(replace(found, declared={"type": "category", "values": ["x"]}))
    assert kept.declared == {"type": "category", "values": ["x"]}


def test_numbers_are_written_as_they_are_read():
    for number in (Decimal("0.50"), Decimal("1E-9"), Decimal("1E+20"), Decimal("-12.5"), Decimal("1E-40")):
        read = parse_yaml(f"a: {writing._scalar(number)}", "t").values["a"]
        assert read == number


def test_each_kind_of_guess_is_explained_once_and_marked_only_beside_what_is_known():
    guesses = {
        "a": {"type": "integer", "min": 0, "max": 9000, "edges": "tree", "missing": False},
        "b": {"type": "integer", "min": 0, "max": 500, "edges": "tree"},
        "c": {"type": "time", "format": "hhmm"},
    }
    stubs = tuple(Sketch(name, {"type": None}) for name in guesses)
    whole = guessed(draft(*stubs, described=False), Profile(guesses))
    head, _, columns = starter_text(whole, "t", "schemas", "dpsynth init").partition("  a: ")
    legend = head.partition("columns:")[2]
    assert legend.count("edges: tree") == 1 and "hhmm" in legend and "identifier" not in legend
    assert "# a guess" not in columns


def test_persons_that_were_guessed_become_the_unit():
    stub = Sketch("id", {"type": None})
    look = Profile({"id": {"type": "identifier"}}, Unit("id", 5))
    text = starter_text(guessed(draft(stub, described=False), look), "t", "schemas", "dpsynth init")
    privacy = parse_yaml(text, "t").values["privacy"]
    assert isinstance(privacy, dict) and privacy["unit"] == {"column": "id", "max_rows": 5}
    described = guessed(draft(stub, person="patient"), look)
    assert (described.person, described.unit) == ("patient", None)


def test_columns_that_are_empty_are_left_out_after_a_look():
    found = draft(Sketch("a", {"type": None}), Sketch("b", {"type": None})).with_guesses(
        Profile({"a": {"type": None}, "b": {"type": "boolean"}})
    )
    text = starter_text(found, "t", None, "dpsynth init t.csv --look")
    assert list(taken_over(text)) == ["b"]
    assert "# Left out: no cell of it has a value." in text


def test_a_table_of_which_no_column_can_be_used_is_told_so():
    nothing = draft(Sketch("b", None, ("Why.",)))
    with pytest.raises(ConfigError, match="columns must declare at least one"):
        from_mapping(parse_yaml(without_list(starter_text(nothing, "t", None, "dpsynth init")), "t").values)
