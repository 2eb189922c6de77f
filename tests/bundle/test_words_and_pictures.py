from decimal import Decimal
from functools import partial
from itertools import combinations, pairwise
from math import exp

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.bundle.manifest import Mechanism, tree_cliques
from dpsynth.bundle.report_source import ShownColumn, crosstab_view, mean_view, one_way_view, steps
from dpsynth.bundle.structure_tree import (
    Branch,
    PairError,
    Paths,
    TreeClique,
    branches_of,
    pair_view,
    relation_in_words,
)
from dpsynth.columns.domain import Domain
from dpsynth.figures import guess_percent, number, odds_factor, rounded_up
from dpsynth.model.junction_tree import Edge, JunctionTree
from dpsynth.statistics.exam import Basis
from dpsynth.statistics.tables import StatisticTable
from dpsynth.statistics.verdict import MOST_SHOWN, Judgement, Verdict


@given(st.floats(min_value=1e-300, max_value=1e12), st.integers(min_value=1, max_value=6))
def test_a_reported_figure_is_never_below_the_value(value, digits):
    shown = Decimal(rounded_up(value, digits).replace(",", ""))
    assert shown >= Decimal(repr(value))
    assert shown <= Decimal(repr(value)) * (1 + Decimal(10) ** (1 - digits))


@pytest.mark.parametrize(
    ("value", "shown"), [(1.0, "1"), (1.00001, "1.001"), (0.1, "0.1"), (1e-9, "1e-9"), (0.0, "0"), (3.0, "3")]
)
def test_round_figures_stay_round(value, shown):
    assert rounded_up(value) == shown


def test_best_guess_is_a_coin_without_information_and_grows_with_both_parameters():
    assert guess_percent(0.0, 0.0) == "50"
    assert float(guess_percent(1.0, 0.0)) >= 100 * exp(1) / (1 + exp(1)) > 73.1
    assert guess_percent(0.0, 1.0) == "100" and guess_percent(2000.0, 0.5) == "100"
    assert odds_factor(5000.0)


@pytest.mark.parametrize(
    ("value", "error", "shown"),
    [(1234.5, 25.0, "1,234"), (0.12345, 0.004, "0.123"), (0.0, None, "0"), (2.5, 0.3, "2.5")],
)
def test_decimals_follow_the_error(value, error, shown):
    assert number(value, error) == shown


def test_a_models_tree_is_told_by_the_columns_that_each_set_adds():
    domain = Domain({"a": 2, "b": 2, "b (groups)": 2, "c": 2, "d": 2, "e": 2})
    cliques = (("b (groups)", "c"), ("b (groups)", "b"), ("a", "b (groups)"), ("d",), ("e", "d"))
    edges = (Edge(1, 0, ("b (groups)",)), Edge(2, 0, ("b (groups)",)), Edge(3, 0, ()), Edge(4, 3, ("d",)))
    facts = tree_cliques(JunctionTree(domain, cliques, edges), ["a", "b", "c", "d", "e"])
    assert facts == [TreeClique(("b", "c"), None), TreeClique(("a", "b"), 0), TreeClique(("d", "e"), None)]
    assert branches_of(facts) == (Branch((), ("b", "c"), (Branch(("b",), ("a",)),)), Branch((), ("d", "e")))


def test_a_tree_of_a_fitted_model_has_every_measured_pair_and_joins_sets_by_what_they_share(publication):
    facts = tree_cliques(publication.model.tree, [c.name for c in publication.columns])
    assert all(any(set(pair) <= set(f.columns) for f in facts) for pair in publication.cliques)
    for fact in facts:
        assert fact.on is None or set(fact.columns) & set(facts[fact.on].columns)


def test_every_pair_has_a_basis_in_words_and_an_error_where_it_was_examined():
    relations = Basis((("a", "b"), ("b", "c")), public=(("a", "d"),), earlier=(("e", "d"),))
    in_words = partial(relation_in_words, relations, Paths((*relations.measured, ("a", "d"), ("e", "d"))))
    assert [in_words("a", other)[0] for other in "bdce"] == [
        "measured",
        "public",
        "through others",
        "through others",
    ]
    assert in_words("a", "c")[1] == "not measured together: related through b only"
    assert in_words("a", "f")[0] == "independent" and in_words("d", "e")[0] == "earlier"
    plain = pair_view("abcdef", relations, {})
    assert sum(number for _, _, number in plain.legend) == 15 and not plain.examined
    errors = {frozenset("ab"): PairError(0.123, 0.1, 0.15)}
    cell = pair_view("ab", relations, errors).matrix.lines[1][1][0]
    assert (
        cell.figure == "12"
        and cell.words == "a and b: measured together; 12.3 % of the rows off (10.0 to 15.0 %)"
    )
    assert cell.shade == pytest.approx(0.123**0.5)


def test_errors_of_20_and_of_93_per_cent_and_each_verdict_have_colours_of_their_own():
    errors = {frozenset("ab"): PairError(0.2, 0.1, 0.3), frozenset("ac"): PairError(0.93, 0.9, 0.96)}
    bad = [Judgement(pair, "don't use", "Off.", basis="measured") for pair in (("a", "b"), ("a", "c"))]
    good = Judgement(("b", "c"), "use", "Near.", basis="measured")
    view = pair_view("abc", Basis((("a", "b", "c"),)), errors, Verdict((), (*bad, good)))
    (twenty,), (ninety, near) = (cells for _, cells in view.matrix.lines[1:])
    assert ninety.shade - twenty.shade > 0.3 and twenty.colour == ninety.colour != near.colour
    assert ninety.words.startswith("a and c: don't use; measured together; 93.0 % of the rows off")
    assert view.verdicts == (("use", "use", 1), ("with care", "care", 0), ("don't use", "dont", 2))


def test_many_columns_have_a_list_of_pairs_in_place_of_a_matrix():
    names = [f"c{i}" for i in range(MOST_SHOWN + 1)]
    relations = Basis(list(pairwise(names)))
    pairs = list(combinations(names, 2))
    errors = {frozenset(pair): PairError(spot / len(pairs), 0, 1) for spot, pair in enumerate(pairs)}
    view = pair_view(names, relations, errors)
    assert view.matrix is None and view.examined == len(pairs) and len(view.largest) == 50
    assert view.largest[0].startswith("c99 and c100: measured together; 100.0 % of the rows off")
    assert [number for _, _, number in view.legend] == [100, len(pairs) - 100]
    assert pair_view(names[:-1], relations, errors).matrix and pair_view(names, relations, {}).largest == ()


def counted(estimates: list[float], labels: list[str]) -> StatisticTable:
    figures = {
        "p": pa.array(labels),
        "estimate": pa.array(estimates),
        "standard_error": pa.array([2.0] * len(labels)),
        "low": pa.array([max(0.0, e - 4) for e in estimates]),
        "high": pa.array([e + 4 for e in estimates]),
        "share": pa.array([0.1] * len(labels)),
    }
    return StatisticTable("name", "p", "one_way", ("p",), pa.table(figures), True)


def test_a_tail_is_seen_on_a_logarithmic_scale_and_other_histograms_are_linear():
    labels = [f"{10**i} to {10 ** (i + 1) - 1}" for i in range(14)]
    numbers = ShownColumn(values=14, ordered=True, numeric=True, uneven=True)
    tail = one_way_view(counted([100_000.0, *[30.0] * 13], labels), numbers)
    assert tail.logarithmic and tail.uneven and tail.histogram[5].length > 20.0
    assert tail.everything[5].length < 1.0, "bars beside their figures keep their lengths"
    assert tail.histogram[5].label == "100,000 to 999,999"
    even = one_way_view(counted([100.0, *[30.0] * 13], labels), numbers)
    assert not even.logarithmic and even.histogram[5].length == pytest.approx(3000 / 104)
    assert [round(place) for place, _ in even.ticks] == [4, 46, 96]


def test_means_of_very_different_sizes_stand_on_a_logarithmic_axis():
    def shown(*means: float):
        figures = {name: pa.array(list(means)) for name in ("estimate", "low", "high")}
        more = {name: pa.array([1.0] * len(means)) for name in ("standard_error", "rows", "grouping_error")}
        labels = {"p": pa.array([f"g{i}" for i in range(len(means))])}
        return mean_view(
            StatisticTable("n", "t", "mean", ("p", "q"), pa.table({**labels, **figures, **more}), True)
        )

    assert shown(1.0, 10.0, 100.0).logarithmic and not shown(1.0, 10.0).logarithmic
    assert [row.dot for row in shown(1.0, 10.0, 100.0).rows] == pytest.approx([0.0, 50.0, 100.0])
    assert not shown(-1.0, 10.0, 1000.0).logarithmic


def test_no_dot_stands_outside_of_its_interval_and_the_page_says_why():
    figures = {"estimate": [-19.5, 3.0], "low": [0.0, 1.0], "high": [0.5, 4.0], "standard_error": [9.8, 1.0]}
    table = pa.table({"p": ["g0", "g1"], **figures, "rows": [9.0, 9.0]})
    view = mean_view(StatisticTable("n", "t", "mean", ("p", "q"), table, True))
    assert all(row.low <= row.dot <= row.high for row in view.rows) and view.beyond
    assert view.rows[0].figure.startswith("\N{MINUS SIGN}20") and (view.least, view.most) == ("0.0", "4.0")
    inside = StatisticTable("n", "t", "mean", ("p", "q"), table.slice(1), True)
    assert not mean_view(inside).beyond


def test_columns_are_shown_by_their_public_schema():
    missing = {"modelled": True, "markers": []}
    bins = {"labels": ["0", "1 to 9", "(missing)"], "edges": [0.0, 1.0, 9.5], "missing": missing}
    assert ShownColumn.of(bins) == ShownColumn(2, ordered=True, numeric=True, uneven=False)
    growing = {**bins, "edges": [0.0, 1.0, 10.0, 100.0, 100.5]}
    assert ShownColumn.of(growing).uneven
    names = {"labels": ["a", "b"], "ordered": False, "missing": {"modelled": False}}
    assert ShownColumn.of(names) == ShownColumn(2, ordered=False, numeric=False, uneven=False)
    days = {
        "labels": ["x", "(missing)", "(missing: no)"],
        "unit": "day",
        "missing": {**missing, "distinct_markers": ["no"]},
    }
    assert ShownColumn.of(days) == ShownColumn(1, ordered=True, numeric=False, uneven=False)


def test_a_crosstab_keeps_its_shape_where_labels_look_alike():
    labels = {
        "p": pa.array(["a · b", "a · b", "a", "a"]),
        "q": pa.array(["c", "c", "b · c", "b · c"]),
        "r": pa.array(["x", "y", "x", "y"]),
    }
    figures = {name: pa.array([1.0, 2.0, 3.0, 4.0]) for name in ("estimate", "standard_error", "low", "high")}
    table = pa.table({**labels, **figures})
    view = crosstab_view(StatisticTable("name", "title", "crosstab", ("p", "q", "r"), table, True), 2)
    assert view.heads == ("x", "y")
    assert [[cell.figure for cell in cells] for _, cells in view.lines] == [["1", "2"], ["3", "4"]]


def test_without_errors_a_table_is_still_drawn():
    column = ShownColumn(values=2, ordered=False, numeric=False, uneven=False)
    unknown = pa.array([None, None], pa.float64())
    table = pa.table({"p": ["a", "b"], "estimate": [0.0, 0.0], "standard_error": unknown, "low": unknown})
    table = table.append_column("high", unknown).append_column("share", unknown)
    view = one_way_view(StatisticTable("name", "p", "one_way", ("p",), table, True), column)
    assert [bar.figure for bar in view.shown] == ["0", "0"] and {bar.margin for bar in view.shown} == {""}
    assert view.margin == ""


@pytest.mark.parametrize("estimates", [(-20.0, -0.2), (-20.0, 80.0)])
def test_an_estimate_below_zero_is_a_figure_without_a_bar(estimates):
    column = ShownColumn(values=2, ordered=False, numeric=False, uneven=False)
    figures = {
        "p": pa.array(["a", "b"]),
        "estimate": pa.array(estimates),
        "standard_error": pa.array([5.0, 5.0]),
        "low": pa.array([max(0.0, e - 9.8) for e in estimates]),
        "high": pa.array([max(0.0, e + 9.8) for e in estimates]),
        "share": pa.array([e / 60.0 for e in estimates]),
    }
    statistic = StatisticTable("name", "p", "one_way", ("p",), pa.table(figures), True)
    bars = one_way_view(statistic, column).shown
    assert bars[0].figure == "\N{MINUS SIGN}20" and bars[0].share == "\N{MINUS SIGN}33.3 %"
    assert bars[1].figure == ("0" if estimates[1] < 0 else "80")
    assert all(0.0 <= place <= 100.0 for bar in bars for place in (bar.length, bar.low, bar.high))
    assert bars[0].length == 0.0
    (_, (cell,)), *_ = crosstab_view(statistic, 2).lines
    assert cell.figure == "\N{MINUS SIGN}20" and cell.shade == 0.0


def test_a_margin_that_all_counts_share_is_said_once():
    def shown(errors: list[float]) -> tuple[str, set[str]]:
        table = pa.table({"p": ["a", "b"], "estimate": [9.0, 8.0], "standard_error": errors})
        view = crosstab_view(StatisticTable("name", "p", "crosstab", ("p",), table, True), 2)
        return view.margin, {cell.margin for _, cells in view.lines for cell in cells}

    assert shown([10.0, 10.0]) == ("± 20", {""})
    assert shown([10.0, 20.0]) == ("", {"± 20", "± 39"})


def test_the_way_between_two_columns_is_the_shortest_one():
    cliques = (("a", "b", "c"), ("c", "d"), ("b", "e"), ("e", "f"), ("f", "d"), ("x", "y"))
    paths = Paths(cliques)
    assert paths.between("a", "d") == ("c",)
    assert paths.between("a", "b") == ()
    assert paths.between("a", "x") is None and paths.between("a", "z") is None


def charged(question: str, columns: tuple[str, ...] | None, scale: float, rho: float, candidates=None):
    return Mechanism(
        question=question,
        columns=columns,
        merged_values=False,
        candidates=candidates,
        mechanism="discrete Gaussian",
        scale=scale,
        sensitivity="1 row (L2)",
        epsilon=None,
        rho=rho,
        delta=0.0,
    )


def test_steps_of_one_kind_are_one_line_and_parts_make_the_whole():
    mechanisms = [charged("marginal", (c,), s, 0.1) for c, s in zip("abc", (4.0, 2.0, 3.0), strict=True)]
    mechanisms += [charged("choose", None, 9.0, 0.34, n) for n in (3, 2)]
    mechanisms += [charged("count", (), 9.0, 0.02)]
    made = steps(mechanisms, "rho")
    (asked,) = steps([charged("errors", None, 9.0, 0.1, 45)], "rho")
    assert asked.answers == 45 and asked.what == "How far sets of columns are from the model"
    assert [step.answers for step in made] == [3, 2, 1]
    assert [step.scale for step in made] == ["2.00 to 4.00", "9.00", "9.00"]
    assert [step.price for step in made] == ["0.1", "0.34", "0.02"]
    assert [step.length for step in made] == pytest.approx([30.0, 68.0, 2.0])
    assert [step.part for step in made] == ["30 %", "68 %", "2 %"]
