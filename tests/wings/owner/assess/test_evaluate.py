"""The figures of an evaluation against brute force, and what they find where something is wrong."""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.public_schema import public_schema, published_layout
from dpsynth.columns.statistic_kinds import request_of
from dpsynth.config import compiled
from dpsynth.config.files import FileForm
from dpsynth.errors import SourceError
from dpsynth.wings.owner.assess.comparison import (
    agreement,
    column_distances,
    correlations,
    distance,
    halves,
    marginal_score,
    pair_distances,
    raw_columns,
    unseen_pairs,
    violations,
)
from dpsynth.wings.owner.assess.evaluation import evaluate, facts, page
from dpsynth.wings.owner.assess.interval_coverage import exact_figures, interval_coverage
from dpsynth.wings.owner.assess.models import prediction, propensity, regression
from dpsynth.wings.owner.assess.owned_bundle import CodedTable, OwnedBundle, private_table, synthetic_table
from tests.release.place import furnished, people, release
from tests.release.test_every_type import COLUMNS as EVERY_TYPE
from tests.specs import spec_of

HOSTILE = "</td><script>alert(1)</script>"
COLUMNS = (
    Column("x", NumericCodec(tuple(float(e) for e in range(0, 101, 4)), 0, integer=True), missing=True),
    Column(HOSTILE, CategoryCodec(("a <img src=y>", "<img src=x onerror=alert(1)>", "c")), missing=False),
    Column("flag", BooleanCodec("no", "yes"), missing=False),
)


def table(rows: int, seed: int, slope: float = 1.0) -> CodedTable:
    """Rows of three related columns; ``x`` explains ``flag`` as far as ``slope`` says."""
    rng = np.random.default_rng(seed)
    x = np.clip(np.round(rng.normal(50, 15, rows)), 0, 99)
    chance = 1 / (1 + np.exp(-slope * (x - 50) / 10))
    codes = {"x": (x // 4).astype(np.uint8), HOSTILE: rng.integers(0, 3, rows).astype(np.uint8)}
    codes["flag"] = (rng.random(rows) < chance).astype(np.uint8)
    return CodedTable(COLUMNS, codes, {"x": x})


def test_distances_are_the_formulas() -> None:
    real, made = table(500, 1), table(400, 2)
    for clique in (("x",), ("x", "flag"), ("x", HOSTILE, "flag")):
        cells = {}
        for sign, one in ((1, real), (-1, made)):
            for row in zip(*(one.codes[name].tolist() for name in clique), strict=True):
                cells[row] = cells.get(row, 0.0) + sign / one.rows
        assert distance(real, made, clique).distance == pytest.approx(sum(map(abs, cells.values())) / 2)
    assert distance(real, real, ("x",)).distance == 0.0


def test_the_distance_by_chance_is_that_of_new_samples() -> None:
    found = [distance(table(2000, s), table(2000, 1000 + s), ("x", HOSTILE)) for s in range(20)]
    # Two samples differ by sqrt(2) times as much as a sample and its population.
    assert np.mean([d.distance for d in found]) == pytest.approx(
        np.sqrt(2) * np.mean([d.by_chance for d in found]), rel=0.08
    )


def test_large_marginals_are_counted_like_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    real, made = table(300, 1), table(300, 2)
    dense = distance(real, made, ("x", HOSTILE, "flag"))
    monkeypatch.setattr("dpsynth.wings.owner.assess.comparison._DENSE", 1)
    sparse = distance(real, made, ("x", HOSTILE, "flag"))
    assert (sparse.distance, sparse.by_chance) == pytest.approx((dense.distance, dense.by_chance))


def test_the_score_of_triples_is_1000_for_the_same_table_and_0_for_one_that_has_nothing_of_it() -> None:
    real = table(300, 1)
    other = replace(real, codes={**real.codes, "flag": 1 - real.codes["flag"]})
    zero = replace(real, codes={**real.codes, "flag": np.zeros(300, np.uint8)})
    ones = replace(zero, codes={**zero.codes, "flag": np.ones(300, np.uint8)})
    assert marginal_score(real, real).score == 1000.0
    assert marginal_score(zero, ones).score == pytest.approx(0.0)
    assert 0 < marginal_score(real, other).score < 1000
    assert marginal_score(real, real).all_of_them


def test_classifiers_tell_strangers_and_not_samples_of_one_population() -> None:
    alike = propensity(table(1500, 1), table(1500, 2))
    apart = propensity(table(1500, 1), table(1500, 2, slope=-3.0))
    assert alike.trees_auc < 0.57 and 0.2 < alike.ratio < 2.5
    assert apart.trees_auc > 0.7 and apart.ratio > 1.0
    assert {name for name, _ in apart.telling} >= {"x", "flag"}
    assert propensity(table(40, 1), table(3000, 2)) is None


def test_rows_of_cells_that_are_all_alike_are_not_told_apart() -> None:
    real = table(200, 1)
    alike = replace(real, codes={name: np.zeros_like(own) for name, own in real.codes.items()})
    found = propensity(alike, alike)
    assert (found.pmse, found.ratio, found.trees_auc) == (0.0, 0.0, 0.5)


def test_a_copy_of_real_rows_agrees_more_often_than_people_do_and_a_fresh_sample_does_not() -> None:
    real = table(400, 1)
    rng = np.random.default_rng(3)
    real = replace(real, codes={**real.codes, "x": rng.integers(0, 25, 400).astype(np.uint8)})
    copied = agreement(real, halves(real)[0])
    assert copied.synthetic == 1.0 and copied.held_out < 0.9
    fresh = replace(
        table(400, 7), codes={**table(400, 7).codes, "x": rng.integers(0, 25, 400).astype(np.uint8)}
    )
    assert agreement(real, fresh).synthetic < copied.synthetic - 0.05
    assert unseen_pairs(real, halves(real)[0]).synthetic == 0.0


def test_halves_keep_the_rows_of_a_person_together() -> None:
    units = np.arange(300, dtype=np.uint64) // 3
    first, second = halves(replace(table(300, 1), units=units))
    assert first.units is not None and second.units is not None
    assert not set(first.units.tolist()) & set(second.units.tolist()) and first.rows + second.rows == 300


def test_unseen_pairs_are_found() -> None:
    real = table(2000, 1, slope=50.0)
    made = replace(real, codes={**real.codes, "flag": 1 - real.codes["flag"]})
    found = unseen_pairs(real, made)
    assert found.synthetic > 0.8 and found.held_out < 0.05
    assert set(found.worst[0][:2]) == {"x", "flag"}


def test_rules_are_counted_by_cells_and_a_rule_on_computed_columns_is_said_to_be_unchecked() -> None:
    real = table(300, 1)
    ends, unknown = violations(COLUMNS, ["flag implies x >= 40", "total > 3"], real, real)
    yes, low = real.codes["flag"] == 1, real.codes["x"] < 10
    assert ends.real == ends.synthetic == int((yes & low).sum())
    assert unknown.real is None and unknown.synthetic is None


SUMMED = tuple(
    Column(name, NumericCodec((0.0, 5.0, 10.0, 20.0), 1, integer=False), missing=True)
    for name in ("a", "b", "total")
)
TIED = tuple(
    Column(name, CategoryCodec(("p", "q", "r")), missing=missing)
    for name, missing in (("town", False), ("land", True))
)


def test_sums_are_checked_by_numbers_and_rows_without_a_part_obey() -> None:
    numbers = {
        "a": np.array([1.2, 3.0, np.nan, 4.0]),
        "b": np.array([2.3, 1.0, 1.0, 4.0]),
        "total": np.array([3.5, 4.1, 9.0, np.nan]),
    }
    codes = {name: np.zeros(4, np.uint8) for name in numbers}
    one = CodedTable(SUMMED, codes, numbers)
    (found,) = violations(SUMMED, ["total == a + b"], one, one.take(np.array([0, 2, 3])))
    assert (found.real, found.synthetic) == (1, 0)


@pytest.mark.parametrize(("sign", "off"), [("determines", 2), ("<->", 3)])
def test_rows_of_a_tie_are_those_with_another_partner_than_most_rows_give(sign: str, off: int) -> None:
    # p goes with p, q with p (three rows) or q (two), r with r; one row has no land.
    town, land = [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2], [0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 3]
    codes = {"town": np.array(town, np.uint8), "land": np.array(land, np.uint8)}
    one = CodedTable(TIED, codes, {})
    (found,) = violations(TIED, [f"town {sign} land"], one, one.take(np.arange(4)))
    assert (found.real, found.synthetic) == (off, 0)
    # The same rows as a second pair of columns of which p goes with q, so that most rows of p do.
    home = {"home": codes["town"], "state": np.where(codes["land"] < 2, 1, codes["land"]).astype(np.uint8)}
    columns = [*TIED, *(replace(c, name=name) for c, name in zip(TIED, home, strict=True))]
    both = CodedTable(tuple(columns), {**codes, **home}, {})
    (found,) = violations(columns, ["town, home determines land, state"], both, both.take(np.arange(9, 11)))
    assert (found.real, found.synthetic) == (7, 0)


def test_figures_of_numbers_are_those_of_the_rows_and_not_of_bins() -> None:
    real = table(3000, 4)
    x, flag = real.numbers["x"], real.codes["flag"]
    by_flag = [x[flag == code] for code in (0, 1)]

    def found(**asked: object) -> list[float]:
        figures = exact_figures(real, request_of(asked))
        assert figures is not None
        return figures.tolist()

    assert found(mean="x", by=["flag"]) == pytest.approx([part.mean() for part in by_flag])
    assert found(sum="x") == pytest.approx([x.sum()])
    assert found(variance="x", where="flag") == pytest.approx([by_flag[1].var()])
    medians = [np.quantile(part, 0.5, method="inverted_cdf") for part in by_flag]
    assert found(quantiles="x", at=[0.5], by=["flag"]) == medians
    assert found(crosstab=["flag"]) == [len(part) for part in by_flag]
    assert found(count="rows", where="not flag") == [len(by_flag[0])]
    (slope,) = [np.polyfit(x, flag, 1)[0]]
    # A regression is that of the bins, as the published one.
    assert found(model="linear", target="flag", on=["x"])[1] == pytest.approx(slope, rel=0.05)
    assert exact_figures(real, request_of({"mean": "x", "where": "x >= 41"})) is None


def test_models_are_scored_on_rows_that_neither_has_seen() -> None:
    real = table(4000, 1, slope=2.0)
    good, bad = (
        prediction(real, table(4000, 2, slope=2.0), "flag"),
        prediction(real, table(4000, 2, slope=-2.0), "flag"),
    )
    assert good.score == "AUC" and good.constant == 0.5
    assert good.on_synthetic == pytest.approx(good.on_real, abs=0.05) and good.on_real > 0.8
    assert bad.on_synthetic < 0.3
    numbers = prediction(real, table(4000, 2, slope=2.0), "x")
    assert numbers.score == "R²" and numbers.on_real > 0.3 and numbers.on_synthetic > 0.3
    named = prediction(real, table(4000, 2), HOSTILE)
    assert named.score == "accuracy" and named.on_real == pytest.approx(1 / 3, abs=0.1)
    assert prediction(table(60, 1), table(60, 2), "flag") is None


def test_coefficients_and_errors_are_those_of_ordinary_theory() -> None:
    import statsmodels.api as sm

    real = table(3000, 1)
    found = regression(real, table(3000, 2), "flag")
    x = (real.numbers["x"] - real.numbers["x"].mean()) / real.numbers["x"].std()
    usual = int(np.bincount(real.codes[HOSTILE]).argmax())
    named = [real.codes[HOSTILE] == code for code in range(3) if code != usual]
    by_theory = sm.Logit(real.codes["flag"], sm.add_constant(np.column_stack([x, *named]))).fit(disp=0)
    assert [c.real for c in found.coefficients] == pytest.approx(by_theory.params[1:], abs=2e-3)
    assert [c.real_error for c in found.coefficients] == pytest.approx(by_theory.bse[1:], rel=1e-2)
    linear = regression(real, real, "x")
    assert linear.kind == "linear" and linear.overlap == pytest.approx(1.0)
    ols = sm.OLS(real.numbers["x"], sm.add_constant(np.column_stack([*named, real.codes["flag"]]))).fit()
    assert [c.real for c in linear.coefficients][-1] == pytest.approx(abs(ols.params[-1]), rel=1e-6) or (
        [c.real for c in linear.coefficients][-1] == pytest.approx(-ols.params[-1], rel=1e-6)
    )
    assert regression(real, real, HOSTILE) is None


def test_a_column_that_repeats_another_has_no_coefficient() -> None:
    columns = (*COLUMNS, Column("again", BooleanCodec("no", "yes"), missing=False))
    real = table(800, 1)
    doubled = replace(real, columns=columns, codes={**real.codes, "again": real.codes["flag"]})
    found = regression(doubled, doubled, "x")
    assert len(found.left_out) == 1 and all(
        np.isfinite(c.real) and c.real_error < 10 for c in found.coefficients
    )


def test_raw_figures_are_those_of_numpy_and_missing_cells_are_left_out() -> None:
    real = table(500, 1)
    numbers = real.numbers["x"].copy()
    numbers[:50] = np.nan
    (column,) = raw_columns(replace(real, numbers={"x": numbers}), real)
    assert column.real.missing == pytest.approx(0.1)
    assert column.real.mean == pytest.approx(np.nanmean(numbers))
    assert column.real.quantiles[3] == np.nanmedian(numbers)
    nothing = raw_columns(replace(real, numbers={"x": np.full(500, np.nan)}), real)
    assert nothing[0].real.mean is None and nothing[0].real.missing == 1.0
    two = replace(real, numbers={"x": real.numbers["x"], "y": -real.numbers["x"]})
    (pair,) = correlations(two, two)
    assert pair.real == pytest.approx(-1.0) and pair.real_by_rank == pytest.approx(-1.0) and pair.gap == 0.0


def test_columns_of_every_type_are_made_again_from_the_public_schema() -> None:
    spec = spec_of(EVERY_TYPE, privacy={"epsilon": 1, "delta": 1e-6})
    layout = compiled(spec).layout
    described = json.loads(json.dumps(public_schema(layout)), parse_float=Decimal)
    assert published_layout(described).columns == layout.columns


@pytest.fixture(scope="module")
def precise(tmp_path_factory: pytest.TempPathFactory) -> tuple[OwnedBundle, Path]:
    """A bundle with next to no noise, of persons some of whom have more rows than are used; and its table."""
    place = furnished(tmp_path_factory.mktemp("precise"))
    place.table(people(900))
    place.configure(privacy={"epsilon": 900, "unit": {"column": "person", "max_rows": 2}})
    return OwnedBundle.at(release(place).folder), place.folder / "people.csv"


def test_the_rows_compared_are_those_that_the_release_used(precise: tuple[OwnedBundle, Path]) -> None:
    bundle, path = precise
    real = private_table(bundle, path, FileForm())
    assert real.rows < 900 and np.unique(real.units, return_counts=True)[1].max() == 2
    coverages = interval_coverage(bundle, real, synthetic_table(bundle))
    counts = [c for c in coverages.found if c.kind in ("one_way", "crosstab")]
    assert sum(c.held for c in counts) >= 0.9 * sum(c.intervals for c in counts)
    (exam,) = [c for c in coverages.found if c.kind == "exam"]
    assert exam.intervals == bundle.facts.exam.marginals
    # Next to no noise: each distance is within a row or two of the exact one.
    assert exam.held >= 0.7 * exam.intervals
    assert coverages.not_compared == ()


def test_a_file_is_read_as_the_release_read_it_without_its_config(tmp_path: Path) -> None:
    place = furnished(tmp_path)
    path = place.folder / "people.csv"
    text = path.read_text(encoding="utf-8").replace(",", ";").replace("Aa", "Ää")
    path.write_bytes(("One table\n" + text).encode("windows-1252"))
    place.configure(
        source={"separator": ";", "encoding": "windows-1252", "header_row": 2},
        columns={"city": {"type": "category", "values": ["Ää", "Bb", "Cc"], "missing": "?"}},
        structure={"method": "independent"},
    )
    bundle = release(place).folder
    form = OwnedBundle.at(bundle).form
    assert form is not None and (form.encoding, form.separator, form.header_row) == ("cp1252", ";", 2)
    (found,) = [d for d in evaluate(bundle, path).columns if d.columns == ("city",)]
    assert found.distance < 0.2
    # A name without an ending says nothing, and the manifest does.
    path.rename(place.folder / "people.dat")
    assert evaluate(bundle, place.folder / "people.dat").rows[0] == 300
    # The planted fault: a manifest that doesn't say how the file is written.
    manifest = bundle / "public" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text(encoding="utf-8")) | {"source": None}))
    (place.folder / "people.dat").rename(path)
    with pytest.raises(SourceError, match=r"has no column"):
        evaluate(bundle, path)


def test_a_mean_of_all_rows_is_compared_as_those_of_groups_are(tmp_path: Path) -> None:
    place = furnished(tmp_path)
    place.configure(structure={"method": "independent"}, publish={"statistics": [{"mean": "income"}]})
    found = evaluate(release(place).folder, place.folder / "people.csv").coverages
    assert [c.intervals for c in found.found if c.kind == "mean"] == [1] and not found.not_compared


def test_rows_kept_by_another_key_are_caught(
    precise: tuple[OwnedBundle, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a contribution bound that keeps other rows than the release did."""
    bundle, path = precise
    monkeypatch.setattr(OwnedBundle, "key", lambda self: b"another key")
    counts = [
        c
        for c in interval_coverage(
            bundle, private_table(bundle, path, FileForm()), synthetic_table(bundle)
        ).found
        if c.kind in ("one_way", "crosstab")
    ]
    assert sum(c.held for c in counts) < 0.7 * sum(c.intervals for c in counts)


def test_csv_and_parquet_are_read_as_the_same_table(
    precise: tuple[OwnedBundle, Path], tmp_path: Path
) -> None:
    bundle, _ = precise
    for name in ("synthetic.csv", "synthetic.parquet"):
        (tmp_path / name / "public").mkdir(parents=True)
        (tmp_path / name / "public" / name).write_bytes((bundle.public / name).read_bytes())
    one, other = (
        synthetic_table(replace(bundle, public=tmp_path / name / "public"))
        for name in ("synthetic.csv", "synthetic.parquet")
    )
    assert all((one.codes[name] == other.codes[name]).all() for name in one.codes)
    assert all((one.numbers[name] == other.numbers[name]).all() for name in one.numbers)


def test_hostile_names_and_labels_are_text_on_the_page(precise: tuple[OwnedBundle, Path]) -> None:
    bundle, path = precise
    whole = evaluate(bundle.public.parent, path)
    real, made = table(300, 1), table(300, 2)
    hostile = replace(
        whole,
        columns=column_distances(real, made),
        pairs=pair_distances(real, made),
        score=marginal_score(real, made),
        unseen=unseen_pairs(real, table(300, 2, slope=9.0)),
        violations=violations(COLUMNS, [HOSTILE], real, made),
        predictions=((HOSTILE, prediction(real, made, HOSTILE)), ("flag", prediction(real, made, "flag"))),
        regressions=((HOSTILE, None), ("flag", regression(real, made, "flag"))),
    )
    text = page(hostile)
    assert "<script" not in text and "<img" not in text and "&lt;script&gt;" in text and "&lt;img" in text
    json.dumps(facts(hostile), allow_nan=False)
    assert len(list(combinations(COLUMNS, 2))) == len(hostile.pairs)
