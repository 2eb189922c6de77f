"""Answers are those of brute force over all cells; what is refused is refused in one plain sentence."""

import csv
import io
import json
from collections import defaultdict
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.bundle.recipient import open_bundle, query
from dpsynth.bundle.recipient.query import QuestionRefused, _interval, _rows, question_in
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.layout import Layout
from dpsynth.columns.measurement import NO_PUBLIC_MARGINALS, EvidenceCounts
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.sums import FinerCounts, Pieces
from dpsynth.errors import DpsynthError
from dpsynth.model import LeastSquares
from dpsynth.statistics.estimates import MeasuredCells
from dpsynth.statistics.grouped_counts import GroupedCounts, Measure, condition_of
from dpsynth.statistics.sources import Sources
from tests.examples import cases, examples

PAY = "`=pay ü`"
CONDITIONS = {
    "": lambda r: True,
    "age >= 60": lambda r: r["age"] >= 60,
    "sex == 'F'": lambda r: r["sex"] == "F",
    "sex != 'F' and age < 30": lambda r: r["sex"] != "F" and r["age"] < 30,
    "smoker": lambda r: r["smoker"],
    "smoker == 'no'": lambda r: not r["smoker"],
    "not (smoker or age < 20)": lambda r: not (r["smoker"] or r["age"] < 20),
    "city in ['Aa', '-Bb']": lambda r: r["city"] in ("Aa", "-Bb"),
    "city not in ['Aa', '-Bb']": lambda r: r["city"] is not None and r["city"] not in ("Aa", "-Bb"),
    "city is missing": lambda r: r["city"] is None,
    f"{PAY} is not missing and {PAY} >= 50": lambda r: r["=pay ü"] is not None and r["=pay ü"] >= 50,
    f"{PAY} < 25 or city == 'Aa'": lambda r: (
        (r["=pay ü"] is not None and r["=pay ü"] < 25) or r["city"] == "Aa"
    ),
    "month(seen) <= 3 and seen < '2020-03-01'": lambda r: r["seen"].month <= 2,
    "sex == 'F' implies age >= 60": lambda r: r["sex"] != "F" or r["age"] >= 60,
}
MEASURES = (
    ("count", None, ()),
    ("count", None, ("sex",)),
    ("count", None, ("city", "smoker")),
    ("share(smoker)", None, ("sex",)),
    ("share", None, ("city",)),
    ("sum(age)", "age", ()),
    ("mean(age)", "age", ("sex",)),
    (f"mean({PAY})", "=pay ü", ("smoker",)),
    ("median(age)", "age", ("sex",)),
    (f"quantile({PAY}, 0.9)", "=pay ü", ()),
    (f"correlation(age, {PAY})", "age", ("smoker",)),
)


@pytest.fixture(scope="module")
def bundle(made):
    return open_bundle(made.public)


@pytest.fixture(scope="module")
def every_cell(bundle):
    layout = bundle.rows.layout
    return rows_of(layout, bundle.model.marginal(tuple(c.name for c in layout.columns)))


def label(column, code):
    return column.labels[code]


def rows_of(layout, counts):
    """Every cell as a row of values that stand for it, with its codes and its count."""
    columns = layout.columns
    rng = np.random.default_rng(0)
    values = {c.name: c.decode(np.arange(c.size), rng).to_pylist() for c in columns}
    cells = product(*(range(c.size) for c in columns))
    return [
        ({c.name: values[c.name][k] for c, k in zip(columns, codes, strict=True)}, codes, float(count))
        for codes, count in zip(cells, counts.ravel(), strict=True)
    ]


def brute(layout, cells, measure, of, by):
    """The answer by a loop over cells."""
    columns = {c.name: (i, c) for i, c in enumerate(layout.columns)}
    groups = defaultdict(list)
    for row, codes, count in cells:
        key = tuple(label(columns[c][1], codes[columns[c][0]]) for c in by)
        groups[key].append((row, codes, count))
    every = sum(count for _, _, count in cells)
    return {k: one(measure, of, listed, columns, every) for k, listed in groups.items()}


def one(measure, of, listed, columns, every):
    rows = sum(count for _, _, count in listed)
    if measure == "count":
        return rows
    if measure == "share":
        return rows / every
    if measure.startswith("share("):
        return sum(count for row, _, count in listed if row["smoker"]) / rows

    def cells(name):
        place, column = columns[name]
        return [
            (column.centres[codes[place]], column.codec.cell_values, codes[place], count, codes)
            for row, codes, count in listed
            if row[name] is not None
        ]

    held = cells(of)
    if measure.startswith("sum"):
        return sum(x * count for x, _, _, count, _ in held)
    if measure.startswith("mean"):
        return sum(x * count for x, _, _, count, _ in held) / sum(count for _, _, _, count, _ in held)
    if measure.startswith(("median", "quantile")):
        level, below = (0.5 if measure.startswith("median") else 0.9), 0.0
        by_code = defaultdict(float)
        for _, _, code, count, _ in held:
            by_code[code] += count
        total, ends = sum(by_code.values()), held[0][1]
        for code in sorted(by_code):
            if below + by_code[code] >= level * total * (1 - 1e-9):
                inside = (level * total - below) / by_code[code]
                return ends.low[code] + inside * (ends.high[code] - ends.low[code])
            below += by_code[code]
    (_, first), (place, column) = columns[of], columns["=pay ü"]
    pairs = [
        (
            x,
            column.centres[codes[place]],
            first.codec.half_widths[code],
            column.codec.half_widths[codes[place]],
            n,
        )
        for x, _, code, n, codes in held
        if codes[place] < len(column.centres)
    ]
    x, y, wide, high, w = map(np.array, zip(*pairs, strict=True))
    x, y = x - np.average(x, weights=w), y - np.average(y, weights=w)
    # Numbers lie evenly inside of bins.
    spread = np.sqrt((w * (x * x + wide**2 / 3)).sum() * (w * (y * y + high**2 / 3)).sum())
    return float((w * x * y).sum() / spread) if spread > 0 else np.nan


def found(answer):
    return {row.labels: row.estimate.value for row in answer.rows}


def lacking(monkeypatch, bundle, **sources):
    """The bundle's figures have other sources."""
    monkeypatch.setitem(vars(bundle), "sources", replace(bundle.sources, **sources))


@pytest.mark.parametrize(
    "where", [w if i % 2 == 0 else pytest.param(w, marks=pytest.mark.slow) for i, w in enumerate(CONDITIONS)]
)
def test_answers_by_the_model_are_those_of_brute_force(bundle, every_cell, where, monkeypatch):
    monkeypatch.setattr(Sources, "known", lambda *_: None)
    lacking(monkeypatch, bundle, sums=())
    monkeypatch.setitem(vars(bundle.facts), "minimum_set_size", None)
    layout = bundle.rows.layout
    cells = [cell for cell in every_cell if CONDITIONS[where](cell[0])]
    for measure, of, by in MEASURES:
        text = measure + (f" by {', '.join(by)}" if by else "") + (f" where {where}" if where else "")
        answer = bundle.query(text)
        wanted = brute(layout, cells, measure, of, by)
        assert answer.interval.startswith("None: the number is the model's")
        values = found(answer)
        for key, value in wanted.items():
            # A number of almost no rows is left undefined.
            if not np.isnan(values[key]) and not np.isnan(value):
                assert values[key] == pytest.approx(value, rel=1e-6, abs=1e-6), (text, key)
        defined = [row for row in answer.rows if not np.isnan(row.estimate.value)]
        assert defined and {row.basis for row in answer.rows} == {"model"}
        assert all(np.isnan([row.estimate.low, row.estimate.high]).all() for row in answer.rows)


@pytest.mark.parametrize("where", ["", "age >= 60", "sex == 'F'", "age < 30 or sex == 'M'"])
@pytest.mark.parametrize("measure", ["count", "share(sex == 'F')", "mean(age)", "sum(age)", "median(age)"])
def test_measured_answers_are_those_of_brute_force(bundle, measure, where, monkeypatch):
    monkeypatch.setitem(vars(bundle.facts), "minimum_set_size", None)
    lacking(monkeypatch, bundle, sums=())
    answer = bundle.query(measure + (f" where {where}" if where else ""))
    layout = Layout(tuple(c for c in bundle.rows.layout.columns if c.name in ("age", "sex")))
    assert bundle.measured.covers(("age", "sex")), "the pair of a requested crosstab is measured"
    counts = bundle.measured.marginal(("age", "sex"))
    holds = CONDITIONS | {"age < 30 or sex == 'M'": lambda r: r["age"] < 30 or r["sex"] == "M"}
    cells = [cell for cell in rows_of(layout, counts) if holds[where](cell[0])]
    if measure.startswith("share"):
        value = sum(n for r, _, n in cells if r["sex"] == "F") / sum(n for _, _, n in cells)
    else:
        value = brute(layout, cells, measure, "age", ())[()]
    (row,) = answer.rows
    assert row.basis == "measured" and row.estimate.value == pytest.approx(value, rel=1e-6)
    assert row.estimate.low <= row.estimate.value <= row.estimate.high


@pytest.mark.parametrize(
    ("text", "title"),
    [("mean(age)", "mean of age"), (f"mean({PAY}) by sex", "=pay ü by sex"), ("mean(age) by sex", None)],
)
def test_a_mean_whose_sums_were_measured_is_that_of_the_published_table(bundle, text, title):
    answer = bundle.query(text)
    if title is None:
        assert {row.basis for row in answer.rows} == {"measured"}
        return
    published = bundle.statistics[title]
    if set(published["basis"]) != {"measured sum"}:
        pytest.skip("the plan has measured this mean by counts")
    for name in ("estimate", "low", "high"):
        np.testing.assert_allclose(answer.frame[name], published[name], rtol=1e-6)
    assert set(answer.frame["basis"]) == {"measured sum"}
    if "sex" in text:
        (row,) = bundle.query(f"{text} where sex == 'M'").rows
        assert row == answer.rows[1]
    assert (
        bundle.query(f"{text} {'and' if 'where' in text else 'where'} age >= 50").rows[0].basis
        != "measured sum"
    )


def test_a_sum_that_was_measured_is_that_of_the_published_table(bundle):
    assert bundle.sums
    answer, published = bundle.query(f"sum({PAY}) by sex"), bundle.statistics["sum of =pay ü by sex"]
    for name in ("estimate", "low", "high"):
        np.testing.assert_allclose(answer.frame[name], published[name], rtol=1e-6)
    assert set(answer.frame["basis"]) == set(published["basis"]) == {"measured sum"}


def test_a_quantile_comes_from_finer_counts_where_there_are_some(bundle, monkeypatch):
    steps = next(c for c in bundle.layout.columns if c.name == "=pay ü").codec.steps
    pieces = Pieces.of(steps, np.full(steps.bins, 10))
    counts = np.zeros((2, len(pieces.first)), np.int64)
    counts[:, 14] = 1000
    by_bins = bundle.query(f"median({PAY}) by sex").frame
    finer = FinerCounts("=pay ü", ("sex",), counts, "gaussian", 0.01, pieces)
    lacking(monkeypatch, bundle, finer=(finer,))
    answer = bundle.query(f"median({PAY}) by sex")
    width = answer.frame["high"] - answer.frame["low"]
    assert (width < by_bins["high"] - by_bins["low"]).all() and "pieces" in answer.interval
    (row,) = bundle.query(f"median({PAY}) by sex where sex == 'M'").rows
    assert row == answer.rows[1]
    assert "pieces" not in bundle.query(f"median({PAY}) by sex where age >= 50").interval


# --- intervals ---

SMALL = Layout(
    (
        Column("g", NumericCodec((0.0, 1.0, 1.5), 0, integer=True), missing=False),
        Column("x", NumericCodec((0.0, 1.0, 2.0, 3.0, 3.5), 0, integer=True), missing=True),
        Column("w", NumericCodec((0.0, 10.0, 30.0), 0, integer=True), missing=False),
    )
)
TRUTH = np.random.default_rng(1).integers(20, 400, (2, SMALL.columns[1].size, 2))


def asked(text, counts, scale):
    """The answer's rows from noisy counts of all cells."""
    direct = LeastSquares(
        domain_of(SMALL.columns), [EvidenceCounts(("g", "x", "w"), counts, "gaussian", scale)]
    )
    question = question_in(text, SMALL)
    where, part = (condition_of(f, SMALL) for f in (question.where, question.part))
    kept = tuple(dict.fromkeys((*query._kept(question, where, part), *where.columns)))
    columns = {c.name: c for c in SMALL.columns}
    cells = MeasuredCells(direct, kept)
    table = GroupedCounts(tuple(columns[c] for c in kept), len(question.by), cells, where)
    measure = Measure(question.measure, question.of, question.level, part if question.part else None)
    return list(_rows(table.columns[: table.by], table.where, table, measure, None)), _interval(
        table, measure
    )


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("count by g where x >= 2", True),
        ("share(x >= 2) by g", True),
        ("share by g where x < 3", True),
        ("sum(x) by g", True),
        ("mean(x) by g", True),
        ("correlation(x, g)", True),
        ("median(x) by g", False),
        ("mean(w) by g", False),
        ("count where w >= 20", False),
    ],
)
def test_intervals_hold_95_of_100(text, exact):
    wanted = [row.estimate.value for row in asked(text, TRUTH, 1e-9)[0]]
    rng, held, number = np.random.default_rng(9), 0, 0
    for _ in range(cases(2000, part=40)):
        noisy = TRUTH + np.rint(rng.normal(0, 6.0, TRUTH.shape)).astype(np.int64)
        for row, value in zip(asked(text, noisy, 6.0)[0], wanted, strict=True):
            held += row.estimate.low <= value <= row.estimate.high
            number += 1
    slack = 5 * np.sqrt(0.95 * 0.05 / number)
    assert held / number > 0.95 - slack
    assert not exact or held / number < 0.95 + slack


def test_an_interval_of_too_little_noise_would_be_seen():
    rng, held = np.random.default_rng(9), 0
    for _ in range(200):
        noisy = TRUTH + np.rint(rng.normal(0, 6.0, TRUTH.shape)).astype(np.int64)
        (row,) = asked("mean(x)", noisy, 3.0)[0]
        held += row.estimate.low <= asked("mean(x)", TRUTH, 1e-9)[0][0].estimate.value <= row.estimate.high
    assert held / 200 < 0.85


def test_a_condition_that_cuts_through_a_bin_widens_a_count_and_leaves_others_without_interval():
    (row,), words = asked("count where w >= 20", TRUTH, 1e-9)
    above, all_ = TRUTH[..., 1].sum(), TRUTH.sum()
    assert 0 < row.estimate.value < all_ and row.estimate.low < 1 and row.estimate.high > 0.99 * above
    # Half of the bin from 10 to 30 lies above 20; draws say so to within a hundredth or so.
    assert row.estimate.value == pytest.approx(above * 11 / 21, rel=0.1)
    (row,), words = asked("mean(x) where w >= 20", TRUTH, 1e-9)
    assert np.isnan(row.estimate.low) and words == "None: the condition cuts through bins of w."


def test_correlations_have_an_interval_only_where_bins_are_single_values():
    assert "those of w hold several values" in asked("correlation(x, w)", TRUTH, 6.0)[1]
    assert np.isnan(asked("correlation(x, w)", TRUTH, 6.0)[0][0].estimate.low)


def test_a_count_of_nothing_has_an_interval_of_more_than_zero():
    counts = np.zeros(TRUTH.shape, dtype=np.int64) - 50
    rows, _ = asked("count by g", counts, 6.0)
    assert all(row.estimate.low == 0 and row.estimate.high > 1 for row in rows)


def test_a_condition_that_the_declared_values_exclude_is_answered_by_them():
    (row,), _ = asked("count where x > 99", TRUTH, 6.0)
    assert row.basis == "public" and row.estimate.value == row.estimate.high == 0


def test_an_answer_by_the_model_has_the_limits_that_the_exam_allows(bundle, monkeypatch):
    nothing = SimpleNamespace(covers=lambda clique: not clique, cell_variance=bundle.measured.cell_variance)
    lacking(monkeypatch, bundle, direct=nothing, public_marginals=NO_PUBLIC_MARGINALS)
    monkeypatch.setitem(vars(bundle.facts), "minimum_set_size", None)
    highest = bundle.distances[frozenset(("age", "sex"))].highest
    for measure in ("count", "share(age < 60)", "mean(age)", "median(age)"):
        answer = bundle.query(f"{measure} by sex" + (" where age >= 60" if measure == "count" else ""))
        assert answer.interval.startswith("95 %: the measured distance")
        for row in answer.rows:
            assert row.basis == "model" and row.estimate.low < row.estimate.value < row.estimate.high
            if measure == "count":
                # Half of the distance bounds every number of rows; the number of all rows has noise as well.
                slack = 1.96 * np.sqrt(bundle.measured.cell_variance(()))
                assert row.estimate.high - row.estimate.value <= (highest + slack) / 2 + 1e-6


# --- the owner's rule ---


def test_estimates_below_the_minimum_set_size_are_withheld(bundle, monkeypatch):
    assert bundle.manifest["minimum_set_size"] == 10
    monkeypatch.setitem(vars(bundle.facts), "minimum_set_size", 20)
    every = bundle.query("count by city, age")
    assert {row.basis for row in every.rows} >= {"withheld"}
    for row in every.rows:
        if row.basis == "withheld":
            assert row.rows is None and np.isnan(row.estimate.value)
        else:
            assert row.rows >= 20
    monkeypatch.setitem(vars(bundle.facts), "minimum_set_size", None)
    assert "withheld" not in {row.basis for row in bundle.query("count by city, age").rows}


# --- words ---


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has the end where a column"),
        ("mean", "doesn't say what it measures"),
        ("mean()", "has \\) where"),
        ("mean(age, sex)", "mean needs one column"),
        ("mean(age + 1)", "mean needs one column"),
        ("mean(sex)", "its values are not numbers"),
        ("mean(id)", "no column that the model holds"),
        ("mean(aeg)", r"\(did you mean 'age'\?\)"),
        ("max(age)", "'max' is no measure"),
        ("count by", "has the end where a column"),
        ("count by sex, sex", "names a column twice"),
        ("count by double", "no column that the model holds"),
        ("count by sex where", "has the end where"),
        ("count where age", "comes to a number"),
        ("count where age >= 'x'", "compares a number with a text"),
        ("count where sex == 'X'", "which is none of its values"),
        ("count where id == 'P001'", "its values are made up"),
        ("count where nobody > 1", "no column of the synthetic table"),
        ("count where age >= 5; drop table", "can't be read from"),
        ("count where __import__('os').system('x')", "can't be read from"),
        ("count where exec('x')", "is no function"),
        ("count count", "where an operator or the end should stand"),
        ("share", "share needs groups"),
        ("share(age)", "comes to a number"),
        ("quantile(age)", "a level from 0 to 1"),
        ("quantile(age, 2)", "a level from 0 to 1"),
        ("quantile(age, sex)", "a level from 0 to 1"),
        ("correlation(age, age)", "two different columns"),
        ("count where " + "(" * 200 + "smoker" + ")" * 200, "nested too deeply"),
        ("count where " + "not " * 200 + "smoker", "nested too deeply"),
        ("count" + " " * 20_000, "longer than"),
        ("count where first(city, 99999) == 'A'", "a whole number from 0 to 1000"),
        ("count where age / 0 > 1 and double < 'x'", "compares a number with a text"),
    ],
)
def test_what_is_no_question_is_refused(bundle, text, words):
    with pytest.raises(QuestionRefused, match=words) as refused:
        bundle.query(text)
    assert "\n" not in str(refused.value) and refused.value.exit_code == 2


@examples(1500)
@given(st.text(max_size=40))
def test_any_text_is_answered_or_refused(bundle, text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(vars(bundle.facts), "minimum_set_size", None)
        for whole in (text, f"count where {text}", f"mean(age) by {text}"):
            try:
                bundle.query(whole)
            except DpsynthError as error:
                assert "\n" not in str(error)


def test_division_by_zero_and_huge_numbers_are_missing(bundle):
    assert bundle.query("share(age / 0 > 1)").rows[0].estimate.value == 0
    assert bundle.query(f"share(age < {'9' * 400})").rows[0].estimate.value in (0, 1)


def test_labels_that_a_spreadsheet_or_a_terminal_would_run_are_made_harmless(bundle, monkeypatch):
    monkeypatch.setitem(vars(bundle.facts), "minimum_set_size", None)
    answer = bundle.query("count by city")
    lines = list(csv.reader(io.StringIO(answer.to_csv())))
    assert [line[0] for line in lines] == ["city", "Aa", "'-Bb", 'C "c"', "(missing)"]
    assert float(lines[1][1]) == answer.rows[0].estimate.value
    assert json.loads(json.dumps(answer.to_json()))["rows"][1]["group"] == {"city": "-Bb"}
    assert answer.frame.columns.tolist() == ["city", "estimate", "low", "high", "rows", "basis"]


def test_a_question_of_too_many_groups_is_refused(bundle, monkeypatch):
    monkeypatch.setattr(query, "MOST_GROUPS", 17)
    with pytest.raises(QuestionRefused, match="asks for 18 groups, and 17 are allowed"):
        bundle.query("count by age, sex")
