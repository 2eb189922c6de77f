"""Pictures of a bundle show its own figures, under the owner's rules for questions, and run nothing."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpsynth
from dpsynth.bundle.recipient import Bundle
from dpsynth.bundle.recipient.opened import synthetic_codes
from dpsynth.errors import DpsynthError
from dpsynth.wings.notebooks.pictures import _together

HOSTILE = "<script>a&b"
SVG = "{http://www.w3.org/2000/svg}"
COLUMNS = {
    "age": {"type": "integer", "min": 0, "max": 99, "missing": False},
    "sex": {"type": "category", "values": ["F", HOSTILE], "missing": False},
    "cost": {"type": "number", "bins": [0, 25, 50, 75, 100], "decimals": 1},
}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    place = tmp_path_factory.mktemp("pictures")
    draw, rows = np.random.default_rng(1), 1_000
    table = pd.DataFrame(
        {
            "age": draw.integers(0, 100, rows),
            "sex": draw.choice(["F", HOSTILE], rows, p=[0.8, 0.2]),
            "cost": (draw.random(rows) * 100).round(1),
        }
    )
    made = dpsynth.release(
        table, epsilon=2, dataset="d", columns=COLUMNS, ledger=place / "l.db", outputs=place / "outputs"
    )
    return made.bundle


def titles(svg: str) -> list[str]:
    """What a picture says where a mouse rests on its boxes."""
    return [box[0].text or "" for box in ElementTree.fromstring(svg).iter(f"{SVG}rect") if len(box)]


@pytest.mark.parametrize("columns", [(), ("age",), ("sex",), ("sex", "cost"), ("age", "sex")])
def test_a_picture_is_svg_that_shows_names_as_text_and_runs_nothing(
    bundle: Bundle, columns: tuple[str, ...], tmp_path: Path
) -> None:
    picture = bundle.plot(*columns)
    whole = ElementTree.fromstring(picture._repr_svg_())
    kinds = {element.tag.removeprefix(SVG) for element in whole.iter()}
    assert kinds <= {"svg", "g", "rect", "text", "title", "path", "circle"} and "<script" not in picture.svg
    assert (HOSTILE in "".join(whole.itertext())) == ("sex" in columns)
    assert picture.save(tmp_path / "p.svg").read_text(encoding="utf-8") == picture.svg
    assert repr(picture).startswith(" and ".join(columns) or "Verdict")


def test_bars_are_the_published_counts_and_rings_those_of_the_synthetic_table(bundle: Bundle) -> None:
    published = bundle.statistics["sex"]
    figures = [
        f"{label}: {count:,.0f}" for label, count in zip(published.sex, published.estimate, strict=True)
    ]
    svg = bundle.plot("sex").svg
    assert [said.partition(" ±")[0] for said in titles(svg)] == figures
    root = ElementTree.fromstring(svg)
    rings = [float(ring.get("cx", "")) for ring in root.iter(f"{SVG}circle")]
    bars = [float(b.get("x", "")) + float(b.get("width", "")) for b in root.iter(f"{SVG}rect") if len(b)]
    shares = bundle.synthetic.sex.value_counts()[["F", HOSTILE]] / len(bundle.synthetic)
    left, counted = 178.0, published.estimate.clip(lower=0)
    scale = (bars[0] - left) / counted[0]
    # A ring beyond the largest interval stands at its end.
    expected = (left + shares * counted.sum() * scale).clip(upper=left + 336)
    assert rings[:2] == pytest.approx(list(expected), abs=0.4)


def test_a_histogram_has_a_bar_a_value(bundle: Bundle) -> None:
    assert len(titles(bundle.plot("age").svg)) == 100


@pytest.mark.parametrize(
    "name", ["synthetic.csv", "synthetic.csv.gz", "synthetic.csv.zst", "synthetic.parquet/1"]
)
def test_the_table_is_read_from_files_of_any_form(bundle: Bundle, tmp_path: Path, name: str) -> None:
    copy = tmp_path / "public"
    shutil.copytree(bundle.folder, copy, ignore=shutil.ignore_patterns("synthetic.*"))
    if name.endswith("1"):
        (copy / "synthetic.parquet").mkdir()
        for part in range(2):
            rows = pq.read_table(bundle.folder / "synthetic.parquet").slice(part * 500, [500, None][part])
            pq.write_table(rows, copy / "synthetic.parquet" / f"part-{part}.parquet")
    else:
        with pa.output_stream(str(copy / name)) as file:
            file.write((bundle.folder / "synthetic.csv").read_bytes())
    opened = dpsynth.open_bundle(copy)
    assert opened.plot("cost").svg == bundle.plot("cost").svg
    codes = synthetic_codes(opened)
    assert all((codes[name] == found).all() for name, found in synthetic_codes(bundle).items())


def shown(svg: str) -> dict[tuple[str, str], str]:
    """The figure of each cell of a pair."""
    cells = (re.fullmatch(r"(.*) · (.*): (.*)", said) for said in titles(svg))
    return {(found[1], found[2]): found[3] for found in cells if found}


def test_the_cells_of_a_pair_are_the_answers_to_a_question(bundle: Bundle) -> None:
    asked = bundle.query("count by sex, cost").frame
    expected = {
        (a, b): f"{x:z,.0f}".replace("-", "\N{MINUS SIGN}")
        for a, b, x in zip(asked.sex, asked.cost, asked.estimate, strict=True)
    }
    assert shown(bundle.plot("sex", "cost").svg) == expected


def test_many_values_are_put_together_and_no_row_is_lost(bundle: Bundle) -> None:
    column = {c.name: c for c in bundle.layout.columns}["age"]
    cells = np.random.default_rng(0).random((column.size, 3))
    grouped, names = _together(cells, column)
    assert grouped.shape == (24, 3) and grouped.sum(axis=0) == pytest.approx(cells.sum(axis=0))
    assert names[0] == "0 … 4" and names[-1].endswith("… 99")
    assert len(shown(bundle.plot("age", "cost").svg)) == 24 * 5
    mixed = replace(column, codec=replace_order(column))
    grouped, names = _together(cells, mixed)
    assert grouped.sum(axis=0) == pytest.approx(cells.sum(axis=0)) and names[-1] == "77 others"
    alone = [int(name) for name in names[:-1]]
    assert set(alone) == set(np.argsort(-cells.sum(axis=1))[:23].tolist())


def replace_order(column: object) -> object:
    """The codec of a column with the same labels, whose order means nothing."""
    from dpsynth.columns.category import CategoryCodec

    return CategoryCodec(column.codec.labels)  # type: ignore[attr-defined]


def test_the_owners_rules_for_questions_hold_for_pictures(bundle: Bundle) -> None:
    least = 60
    ruled = replace(bundle, facts=bundle.facts.model_copy(update={"minimum_set_size": least}))
    all_cells, left = shown(bundle.plot("sex", "cost").svg), shown(ruled.plot("sex", "cost").svg)
    asked = bundle.query("count by sex, cost").frame
    few = set(zip(*(asked[asked.estimate < least][name] for name in ("sex", "cost")), strict=True))
    assert few and set(left) == set(all_cells) - few
    assert "Cells of fewer than 60 rows, by estimate, are withheld." in repr(ruled.plot("sex", "cost"))


def test_the_picture_of_the_verdict_has_the_verdict_of_each_column_and_pair(bundle: Bundle) -> None:
    said = titles(bundle.plot().svg)
    for one in bundle.verdict.columns:
        assert any(words.startswith(f"{one.columns[0]}: {one.verdict}. ") for words in said)
    for pair in bundle.verdict.pairs:
        assert any(words.startswith(f"{' and '.join(pair.columns)}: {pair.verdict};") for words in said)
    assert len(said) == 6


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("agee",), "'agee' is no column that the model holds. Those are: age, sex, cost."),
        (("age", "age"), "two different columns"),
        (("age", "sex", "cost"), "Name one column, two"),
    ],
)
def test_a_wrong_column_is_one_sentence(bundle: Bundle, columns: tuple[str, ...], words: str) -> None:
    with pytest.raises(DpsynthError) as refused:
        bundle.plot(*columns)
    assert words in str(refused.value)
