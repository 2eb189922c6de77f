"""Where values were merged, every file says which, and none takes a group for a value."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from dpsynth.bundle.explanation import assumption
from dpsynth.bundle.pages import some_in_words
from dpsynth.bundle.structure_tree import largest
from dpsynth.columns.category import CategoryCodec
from dpsynth.columns.column import Column, group_labels, merged_columns
from dpsynth.columns.domain import Compression

CITY = Column("city", CategoryCodec(tuple("abcdefgh")), missing=True)


def test_a_group_is_called_by_all_of_its_values_or_the_first_of_many():
    compression = Compression({"city": np.array([0, 1, 1, 2, 1, 1, 1, 2, 0])})
    assert group_labels(CITY, compression) == ("a | (missing)", "b | c | e | … (5 values)", "d | h")
    four = Compression({"city": np.array([0, 0, 0, 0, 1, 2, 3, 4, 5])})
    assert group_labels(CITY, four) == ("a | b | c | d", "e", "f", "g", "h", "(missing)")


def test_what_was_merged_is_told_in_table_order_without_values_left_alone():
    plain = Column("plain", CategoryCodec(("x", "y")), missing=False)
    other = Column("other", CategoryCodec(("x", "y", "z")), missing=False)
    compression = Compression({"other": np.array([0, 1, 1]), "city": np.array([0, 1, 1, 2, 1, 1, 1, 2, 0])})
    city, rest = merged_columns((CITY, plain, other), compression)
    assert (city.column, city.values, city.groups) == ("city", 9, 3)
    assert city.held == (("a", "(missing)"), ("b", "c", "e", "f", "g"), ("d", "h"))
    assert (rest.column, rest.held) == ("other", (("y", "z"),))


def test_the_manifest_lists_every_group_in_full_and_says_why(written, merged):
    manifest = json.loads((written(of=merged) / "manifest.json").read_text(encoding="utf-8"))
    told = manifest["structure"]["merged_values"]
    assert told["below_rows"] == 64.5
    labels = {column["name"]: column["labels"] for column in manifest["columns"]}
    assert set(told["columns"]) == set(merged.compression.groups)
    for name, groups in merged.compression.groups.items():
        facts = told["columns"][name]
        held = [
            [n for n, g in zip(labels[name], groups, strict=True) if g == k] for k in range(groups.max() + 1)
        ]
        assert facts["held_together"] == [group for group in held if len(group) > 1]
        assert (facts["values"], facts["groups"]) == (len(groups), len(held))
        assert name in told["why"]


def test_report_and_readme_say_what_was_merged_only_where_something_was(written, merged):
    with_groups, without = written(of=merged), written()
    for name in ("report.html", "README.md"):
        text = (with_groups / name).read_text(encoding="utf-8")
        assert "Rare values were merged" in text and "fewer than 64 rows" in text
        assert "erged" not in (without / name).read_text(encoding="utf-8")
    plain = json.loads((without / "manifest.json").read_text(encoding="utf-8"))
    assert plain["structure"]["merged_values"]["columns"] == {}
    groups = pq.read_table(without / "measurements.parquet").schema.metadata[b"dpsynth.groups"]
    assert groups == b"{}"


def test_one_way_answers_are_by_value_and_answers_on_several_columns_by_group(written, merged):
    """The planted fault: answers in the place of singles, as if they counted values."""
    metadata = pq.read_table(written(of=merged) / "measurements.parquet").schema.metadata
    summary = json.loads(metadata[b"dpsynth.measurements"])
    sizes = {c.name: c.size for c in merged.columns}
    for m in summary:
        whole = [sizes[c] for c in m["columns"]]
        assert (m["shape"] == whole) == (not m["by_group"])
    assert sum(bool(m["by_group"]) for m in summary) == 2
    with pytest.raises(ValueError):
        written(of=replace(merged, singles=merged.answers, answers=()))


def test_sets_of_three_measured_again_are_shown_once_as_a_list(written, merged):
    text = (written(of=merged) / "report.html").read_text(encoding="utf-8")
    assert text.count("Sets of three columns and more:") == 1
    assert largest(m.clique for m in merged.answers) == (merged.answers[0].clique, merged.answers[1].clique)
    assert largest([("a",), ()]) == () and largest([("a", "b"), ("b", "a")]) == (("a", "b"),)


def test_many_sets_of_three_are_a_folded_list(written, merged, monkeypatch):
    many = [(f"a{i}", "b", "c") for i in range(13)]
    monkeypatch.setattr("dpsynth.bundle.pages.largest", lambda cliques: tuple(many))
    text = (written(of=merged) / "report.html").read_text(encoding="utf-8")
    assert "Sets of three columns and more:" not in text
    assert "<summary>The 13 sets of three columns and more</summary>" in text and "<li>a12, b, c</li>" in text


def test_a_pair_measured_in_two_rounds_is_counted_once(written, publication):
    again = (*publication.answers, publication.answers[0])
    text = (written(answers=again) / "report.html").read_text(encoding="utf-8")
    assert '<ul class="tree">' in text and "measured together: 2</li>" in text


def test_a_table_by_the_model_of_columns_measured_by_group_says_so(publication):
    (table,) = [s for s in publication.statistics if s.columns == ("age", "pay") and not s.measured]
    assert "rare values merged" in assumption(table, (("x", "pay", "age"),))
    assert "rare values" not in assumption(table, (("x", "pay"), ("x", "age")))
    assert assumption(replace(table, measured=True), (("pay", "age"),)) == ""


def test_a_long_list_of_merged_values_is_cut_and_counted():
    assert some_in_words(["a", "b"]) == "a, b"
    assert some_in_words([str(i) for i in range(500)]).endswith("23 … (500 values)")
