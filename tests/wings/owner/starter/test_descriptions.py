"""What a description says stands in the starter, and nothing that it does not say."""

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest

from dpsynth.config import compiled
from dpsynth.config.document import parse_yaml
from dpsynth.errors import ConfigError
from dpsynth.wings.owner.starter import FORMATS, draft_of, starter_text
from tests.wings.owner.starter import described
from tests.wings.owner.starter.reviewing import filled, loaded, taken_over, to_review, without_list

DATA = Path(os.environ.get("DPSYNTH_DATA", "/nonexistent"))


@pytest.fixture
def started(tmp_path):
    """The starter of a description, as text."""

    def run(document, name="description.json", **options):
        path = tmp_path / name
        path.write_text(document, encoding="utf-8")
        return starter_text(draft_of(path, **options), "started", "schemas", "dpsynth init")

    return run


def exactly(value: object) -> object:
    """Decimals as texts, to compare fractions with what was written."""
    if isinstance(value, dict):
        return {key: exactly(item) for key, item in value.items()}
    if isinstance(value, list):
        return [exactly(item) for item in value]
    return str(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (described.VISITS_SCHEMA, described.VISITS_DECLARED),
        (described.HOTEL_METADATA, described.HOTEL_DECLARED),
        (described.GOOGLE_DOMAIN, described.GOOGLE_DECLARED),
        (described.PANDERA_LIST, described.PANDERA_DECLARED),
        (described.MBI_DOMAIN, described.MBI_DECLARED),
        (described.MANIFEST, described.MANIFEST_DECLARED),
    ],
    ids=["table-schema", "sdv", "google-dpsynth", "pandera", "mbi", "dpsynth"],
)
def test_what_a_description_says_is_taken_over_and_the_rest_is_null(started, document, expected):
    text = started(document)
    assert exactly(taken_over(text)) == expected
    assert list(taken_over(text)) == list(expected)


@pytest.mark.parametrize("document", described.ALL.values(), ids=described.ALL)
def test_a_starter_loads_once_its_gaps_are_filled_and_its_list_is_empty(started, document, tmp_path):
    pick = (
        {"pick": "visits"} if "resources" in document else {"pick": "guests"} if "tables" in document else {}
    )
    text = started(document, **pick)
    assert len(filled(taken_over(text)).columns) == len(taken_over(text))
    with pytest.raises(ConfigError, match="review still lists privacy"):
        loaded(text, tmp_path)


def test_a_complete_description_loads_as_it_is_when_its_list_was_gone_through(started, tmp_path):
    complete = {k: v for k, v in json.loads(described.MBI_DOMAIN).items() if k != "zip"}
    text = started(json.dumps(complete)).replace("path: null", "path: t.csv")
    assert to_review(text) == ["privacy", "source.path", "columns"]
    assert [column.size for column in compiled(loaded(without_list(text), tmp_path)).columns] == [85, 2, 200]


@pytest.mark.parametrize("name", ["adult", "nltcs", "titanic"])
@pytest.mark.skipif(not DATA.is_dir(), reason="DPSYNTH_DATA names no folder of real tables")
def test_the_domain_files_of_real_tables_load_in_the_order_of_their_headers(name, tmp_path):
    table = DATA / ("adult-coded.csv" if name == "adult" else f"{name}.csv")
    sizes = json.loads((DATA / f"{name}-domain.json").read_text())
    draft = draft_of(DATA / f"{name}-domain.json", table=table)
    spec = loaded(without_list(starter_text(draft, name, "schemas", "dpsynth init")), tmp_path)
    header = table.open().readline().strip().split(",")
    assert [(c.name, c.size) for c in compiled(spec).columns] == [(c, sizes[c]) for c in header]
    assert spec.source.path == str(table)


@pytest.mark.parametrize("document", [described.PANDERA_MAPPING, described.PANDERA_FLAT], ids=["0.7", "flat"])
def test_all_ways_in_which_pandera_wrote_checks_are_read(started, document):
    found = taken_over(started(document, "schema.yaml"))
    assert found["age"]["max"] == 90
    assert found["age"]["min"] == (18 if "18.0" in document else 0)
    assert found["sex"] == {"type": "category", "values": ["F", "M"], "missing": False}


def test_each_gap_stands_in_the_list(started):
    text = started(described.HOTEL_METADATA)
    gaps = [name for name, keys in described.HOTEL_DECLARED.items() if None in keys.values()]
    assert [entry for entry in to_review(text) if "." in entry] == [
        "source.path", *(f"columns.{name}" for name in gaps)
    ]  # fmt: skip


def test_what_the_grammar_cannot_say_is_told_above_the_column(started):
    text = started(described.VISITS_SCHEMA)
    assert "  # Its pattern [A-Z]+-[0-9]{1,4} has '+'" in text
    assert "  # 1 is immediate, 2 is urgent\n" in text
    assert "  # Free text of the nurse\n" in text
    assert "  # place:\n  # Left out: columns of type geopoint can't be modelled.\n" in text
    assert "# Not taken over: format has the code %Z;" in started(described.HOTEL_METADATA)


def test_bounds_of_a_description_are_asked_about_since_tools_infer_them_from_tables(started):
    text = started(described.PANDERA_MAPPING)
    assert "columns" in to_review(text)
    assert "tools that infer a schema" in " ".join(line.lstrip("# ") for line in text.splitlines())


def test_one_of_several_tables_must_be_picked(started):
    with pytest.raises(ConfigError, match=r"several tables\. Say which one with --pick: 'hotels', 'guests'"):
        started(described.TWO_TABLES)
    with pytest.raises(ConfigError, match=r"describes no table 'rooms'\. Its tables are 'hotels', 'guests'"):
        started(described.TWO_TABLES, pick="rooms")
    assert list(taken_over(started(described.TWO_TABLES, pick="guests"))) == [
        "guest_email",
        "hotel_id",
        "room",
    ]
    assert list(taken_over(started(described.PACKAGE, pick="visits"))) == ["age"]
    assert 'separator: ";"' in started(described.PACKAGE, pick="visits")
    other = described.PACKAGE.replace('";"', '"#"')
    assert "What separates its cells can't be read" in started(other, pick="visits")


def test_a_schema_that_lies_elsewhere_is_not_fetched(started):
    with pytest.raises(ConfigError, match=r"only says where its schema is, 'schemas/wards\.json'"):
        started(described.PACKAGE, pick="wards")


def test_a_person_that_sdv_names_is_proposed_as_the_unit(started):
    assert "unit: {column: family, max_rows: null}" in started(described.HOTEL_METADATA)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"fields": {"a": {"type": "numerical", "subtype": "integer"}}}', "metadata of SDV before 1.0"),
        ("source: {path: a.csv}\nprivacy: {epsilon: 1}\ncolumns: {a: {type: boolean}}", "a configuration al"),
        ('{"hello": "world"}', "is not recognised as a description of a table"),
        ('{"a": 0}', "'a' must have a whole number of at least 1"),
        ('{"fields": [{"type": "string"}]}', r"'fields\[0\].name' must be a text"),
        ('{"fields": [{"name": "a"}, {"name": "a"}]}', "describes the column 'a' twice"),
        ('{"a": 1, "a": 2}', "gives the key 'a' twice"),
        ('{"a": 1', "not valid JSON"),
        ("", "is empty"),
        ("[1, 2]", "the top level must be a mapping"),
        ("schema_type: dataframe\ncolumns: null", "'columns' must be a mapping"),
        ("a: !!python/object/apply:os.system ['true']", "tags"),
        ('{"a": ' + "[" * 50 + "]" * 50 + "}", "nested too deeply"),
        ('{"a": ' + "1" * 100 + "}", "more than 60 digits"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_one_plain_error(started, document, words):
    with pytest.raises(ConfigError, match=words) as raised:
        started(document)
    assert "\n" not in str(raised.value)


def test_the_format_can_be_stated_and_is_held_to(started):
    assert list(taken_over(started(described.MBI_DOMAIN, form="mbi"))) == list(described.MBI_DECLARED)
    with pytest.raises(ConfigError, match="--format must be csv, parquet, xlsx, dpsynth, table-schema, sdv"):
        started(described.MBI_DOMAIN, form="nbi")
    with pytest.raises(ConfigError, match="'fields' must be a list"):
        started(described.MBI_DOMAIN, form="table-schema")


def test_each_format_recognises_its_own_documents_and_no_others():
    documents = {name.split()[0]: text for name, text in described.ALL.items()}
    documents["table-schema"] = described.VISITS_SCHEMA
    for name in FORMATS:
        read = parse_yaml(documents[name], name).values
        assert [other for other, known in FORMATS.items() if known.recognised(read)] == [name]


def test_a_header_gives_the_order_and_leaves_out_what_it_lacks(started, tmp_path):
    (tmp_path / "t.csv").write_text("sex,extra,age\nF,1,2\n")
    text = started(described.PANDERA_MAPPING, table=tmp_path / "t.csv")
    assert list(taken_over(text)) == ["sex", "extra", "age"]
    assert taken_over(text)["extra"] == {"type": None}
    absent = started('{"age": 3, "gone": 4}', table=tmp_path / "t.csv")
    assert "# gone:\n  # Described, but not in the table's header." in absent
    assert "gone" not in taken_over(absent)
