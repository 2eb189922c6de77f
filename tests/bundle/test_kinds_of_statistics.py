"""Kinds of statistics: one declaration and one computation each, right without noise, honest with it."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from dpsynth.bundle import StatisticTable, compute_statistics
from dpsynth.columns.category import BooleanCodec, CategoryCodec
from dpsynth.columns.column import Column, domain_of
from dpsynth.columns.measurement import Measurement
from dpsynth.columns.numeric import NumericCodec
from dpsynth.columns.statistic_kinds import KINDS, Crosstab
from dpsynth.config.document import parse_yaml
from dpsynth.model import LeastSquares
from dpsynth.statistics.computations import COMPUTATIONS, cramers_v
from dpsynth.statistics.estimates import HOLDS, NOISE_ONLY, NONE
from dpsynth.statistics.sources import Sources
from tests.examples import cases
from tests.specs import spec_of
from tests.thinned import some

DOCS = Path(__file__).parents[2] / "docs" / "statistics.md"
AGE = Column("age", NumericCodec((*map(float, range(20, 31)), 30.5), 0, integer=True))
PAY = Column("pay", NumericCodec((0.0, 10.0, 30.0, 90.0, 100.0), 1, integer=False), missing=False)
SEX = Column("sex", CategoryCodec(("F", "M")), missing=False)
WELL = Column("well", BooleanCodec(), missing=False)
SITE = Column("site", CategoryCodec(("A", "B", "C")), missing=False)
COLUMNS = (AGE, PAY, SEX, WELL, SITE)
DOMAIN = domain_of(COLUMNS)

ASKED = {
    "crosstab": {"crosstab": ["sex", "well"]},
    "count": {"count": "rows", "where": "age >= 25 and sex == 'F'"},
    "mean": {"mean": "age", "by": ["sex", "well"], "where": "site != 'A'"},
    "sum": {"sum": "age", "by": "sex"},
    "variance": {"variance": "age", "by": "sex"},
    "quantiles": {"quantiles": "age", "by": "sex", "at": [0.1, 0.5]},
    "correlation": {"correlation": ["age", "well", "pay"]},
    "association": {"association": ["sex", "site", "age"]},
    "model": {"model": "logistic", "target": "well", "on": ["age", "sex"]},
}
"""One example of each kind."""


def request(statistic: dict):
    columns = {
        "age": {"type": "integer", "min": 20, "max": 30},
        "pay": {"type": "number", "bins": [0, 10, 30, 90, 100], "decimals": 1, "missing": False},
        "sex": {"type": "category", "values": ["F", "M"], "missing": False},
        "well": {"type": "boolean", "missing": False},
        "site": {"type": "category", "values": ["A", "B", "C"], "missing": False},
    }
    return spec_of(columns, publish={"statistics": [statistic]}).publish.statistics[0]


class Table:
    """A table of rows, as exact counts: as a model, or as answers about every clique."""

    def __init__(self, rows: int, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.sex = rng.integers(0, 2, rows)
        self.age = np.where(rng.random(rows) < 0.05, 11, np.clip(rng.poisson(4 + 2 * self.sex), 0, 10))
        self.well = (rng.random(rows) < 1 / (1 + np.exp(1.5 - 0.3 * np.minimum(self.age, 10)))).astype(int)
        self.pay = rng.integers(0, 4, rows)
        self.site = rng.choice(3, rows, p=[0.5, 0.3, 0.2])
        self.total = float(rows)

    def marginal(self, clique):
        flat = np.zeros(int(self.total), dtype=np.int64)
        for name in clique:
            flat = flat * DOMAIN.sizes[name] + getattr(self, name)
        counts = np.bincount(flat, minlength=DOMAIN.cells(clique)).astype(float)
        return counts.reshape(DOMAIN.shape(clique))


class Nothing:
    """Answers that cover no clique."""

    def covers(self, clique):
        return not clique

    def marginal(self, clique):
        return np.array(1.0)


def asked(statistic: dict, direct, model, replicates=()) -> StatisticTable:
    return compute_statistics([request(statistic)], Sources(COLUMNS, direct, model, replicates))[-1]


def answers(table: Table, scale: float, rng: np.random.Generator, *cliques) -> LeastSquares:
    def measured(clique) -> Measurement:
        noisy = np.rint(table.marginal(clique) + rng.normal(scale=scale, size=DOMAIN.shape(clique)))
        return Measurement(clique, noisy.astype(np.int64), "gaussian", max(scale, 1e-6))

    return LeastSquares(DOMAIN, [measured(clique) for clique in (*((c.name,) for c in COLUMNS), *cliques)])


@pytest.fixture(scope="module")
def table() -> Table:
    return Table(5000)


# The registry.


def test_each_kind_has_one_declaration_one_computation_an_example_and_a_line_in_the_docs():
    computed = {kind.kind for kind in COMPUTATIONS} | {Crosstab.kind}
    assert set(KINDS) == computed == set(ASKED)
    text = DOCS.read_text(encoding="utf-8")
    assert [word for word in KINDS if not re.search(rf"^\| `{word}` \|", text, re.MULTILINE)] == []
    assert all(isinstance(request(statistic), KINDS[word]) for word, statistic in ASKED.items())


def test_the_example_in_the_docs_asks_for_each_kind():
    written = re.search(r"```yaml\n(publish:.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    numbers = {"type": "number", "bins": [0, 10, 100], "decimals": 2}
    columns = dict.fromkeys(("age", "cost", "visits"), numbers)
    columns |= {"sex": {"type": "category", "values": ["F", "M"]}, "insured": {"type": "boolean"}}
    columns["site"] = {"type": "category", "values": ["A", "B"]}
    spec = spec_of(columns, **parse_yaml(written[1], "docs").values)
    assert {statistic.kind for statistic in spec.publish.statistics} == set(KINDS)


@pytest.mark.parametrize("word", [word for word in ASKED if word != "crosstab"])
def test_each_row_names_its_basis_and_what_its_interval_claims(table, word):
    for replicates, claims in (((), {NONE}), ((table, Table(5000, 1)), {NOISE_ONLY, NONE})):
        found = asked(ASKED[word], Nothing(), table, replicates).table
        names = found.column_names
        assert names[-2:] == ["limits", "basis"]
        assert set(found["limits"].to_pylist()) <= claims
        assert set(found["basis"].to_pylist()) == {"model"}
        assert found.num_rows > 0 and not any(np.isnan(found["estimate"].to_numpy()))
        ends = found["low"].to_pylist()
        assert all(
            (low is None) == (claim == NONE)
            for low, claim in zip(ends, found["limits"].to_pylist(), strict=True)
        )


# Without noise, each figure is that of the rows.


def numbers_of(table: Table) -> tuple[np.ndarray, np.ndarray]:
    known = table.age < 11
    return (20 + table.age).astype(float), known


def test_figures_of_a_model_that_is_the_table_are_those_of_its_rows(table):
    age, known = numbers_of(table)

    def estimates(word):
        return asked(ASKED[word], Nothing(), table).table["estimate"].to_pylist()

    assert estimates("count") == [((age >= 25) & known & (table.sex == 0)).sum()]
    assert estimates("sum") == pytest.approx([age[known & (table.sex == s)].sum() for s in (0, 1)])
    assert estimates("variance") == pytest.approx([age[known & (table.sex == s)].var() for s in (0, 1)])
    kept = known & (table.site != 0)
    wanted = [age[kept & (table.sex == s) & (table.well == w)].mean() for s in (0, 1) for w in (0, 1)]
    assert estimates("mean") == pytest.approx(wanted)
    quantiles = [
        np.quantile(age[known & (table.sex == s)], q, method="inverted_cdf")
        for s in (0, 1)
        for q in (0.1, 0.5)
    ]
    assert estimates("quantiles") == pytest.approx(quantiles)
    found = asked(ASKED["correlation"], Nothing(), table).table
    assert found["estimate"][0].as_py() == pytest.approx(np.corrcoef(age[known], table.well[known])[0, 1])


def test_cramers_v_is_that_of_the_rows_and_one_of_a_column_with_its_own_copy():
    table = Table(5000)
    table.site = table.sex
    found = asked({"association": ["sex", "site", "age"]}, Nothing(), table).table["estimate"].to_pylist()
    assert found[0] == pytest.approx(1.0)
    counts = table.marginal(("sex", "age"))
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    assert found[1] == pytest.approx(np.sqrt(((counts - expected) ** 2 / expected).sum() / counts.sum()))


def test_regressions_are_those_of_scikit_learn_on_the_rows(table):
    from sklearn.linear_model import LinearRegression, LogisticRegression

    age, known = numbers_of(table)
    x = np.column_stack([age, table.sex])[known]
    linear = LinearRegression().fit(x, table.well[known])
    found = asked({"model": "linear", "target": "well", "on": ["age", "sex"]}, Nothing(), table)
    assert found.table["term"].to_pylist() == ["(intercept)", "age", "sex = M"]
    assert found.table["estimate"].to_pylist() == pytest.approx([linear.intercept_, *linear.coef_], rel=1e-6)
    logistic = LogisticRegression(C=1e6, max_iter=5000, tol=1e-10).fit(x, table.well[known])
    found = asked(ASKED["model"], Nothing(), table)
    assert found.table["estimate"].to_pylist() == pytest.approx(
        [logistic.intercept_[0], *logistic.coef_[0]], rel=1e-3, abs=1e-3
    )
    several = asked({"model": "logistic", "target": "site", "on": ["age", "sex"]}, Nothing(), table)
    chances = classified(several.document, {"age": 25.0, "sex": "M"})
    fitted = LogisticRegression(C=1e6, max_iter=5000, tol=1e-10).fit(x, table.site[known])
    assert chances == pytest.approx(fitted.predict_proba([[25.0, 1.0]])[0], abs=1e-3)


def classified(document: dict, row: dict) -> list[float]:
    """The chances of all classes, by what the document alone says."""
    document = json.loads(json.dumps(document))
    scores = dict.fromkeys(document["classes"], 0.0)
    for score in document["scores"]:
        terms = [
            float(row[term["column"]] == term["value"]) if "value" in term else row[term["column"]]
            for term in document["terms"]
        ]
        scores[score["class"]] = score["intercept"] + float(np.dot(score["coefficients"], terms))
    chances = np.exp([scores[name] for name in document["classes"]])
    return list(chances / chances.sum())


# With noise.


def covered(table: Table, statistic: dict, truth: list[float], *cliques, runs: int) -> float:
    """The share of intervals, over releases of fresh noise, that hold the true figures."""
    rng, hits = np.random.default_rng(11), []
    for _ in range(runs):
        found = asked(statistic, answers(table, 15.0, rng, *cliques), None).table
        assert set(found["basis"].to_pylist()) == {"measured"}
        low, high = found["low"].to_numpy(), found["high"].to_numpy()
        hits += ((low <= np.array(truth) + 1e-9) & (np.array(truth) - 1e-9 <= high)).tolist()
    return float(np.mean(hits))


@pytest.mark.parametrize("word", some(["sum", "variance", "quantiles", "correlation"], 2))
def test_measured_intervals_hold_true_figures_of_columns_of_single_values(table, word):
    age, known = numbers_of(table)
    sexes = [age[known & (table.sex == s)] for s in (0, 1)]
    truth = {
        "sum": [part.sum() for part in sexes],
        "variance": [part.var() for part in sexes],
        "quantiles": [np.quantile(part, q, method="inverted_cdf") for part in sexes for q in (0.1, 0.5)],
        "correlation": [np.corrcoef(age[known], table.well[known])[0, 1]],
    }[word]
    statistic = {"correlation": ["age", "well"]} if word == "correlation" else ASKED[word]
    clique = ("age", "well") if word == "correlation" else ("age", "sex")
    share = covered(table, statistic, truth, clique, runs=cases(400, part=4))
    # Quantiles of whole numbers hold more often: an interval has whole bins.
    assert 0.88 < share < (1.01 if word == "quantiles" else 0.99)


def test_a_measured_regression_has_errors_by_the_known_noise(table):
    statistic = {"model": "logistic", "target": "well", "on": ["age"]}
    rng = np.random.default_rng(5)
    truth = asked(statistic, Nothing(), table).table["estimate"].to_numpy()
    found = [asked(statistic, answers(table, 15.0, rng, ("age", "well")), None).table for _ in range(60)]
    moved = np.array([f["estimate"].to_numpy() for f in found]) - truth
    said = np.mean([f["standard_error"].to_numpy() for f in found], axis=0)
    assert np.all(np.abs(moved.std(axis=0) / said - 1) < 0.45)


def test_what_noise_adds_to_an_association_is_taken_off():
    lone, rng = Table(5000), np.random.default_rng(9)
    lone.site = np.random.default_rng(3).permutation(lone.site)
    statistic, pair = {"association": ["age", "site"]}, ("age", "site")
    exact = asked(statistic, Nothing(), lone).table["estimate"][0].as_py()
    directs = [answers(lone, 15.0, rng, pair) for _ in range(20)]
    found = [asked(statistic, direct, None).table["estimate"][0].as_py() for direct in directs]
    with_noise = [cramers_v(direct.marginal(pair), 0.0) for direct in directs]
    assert abs(np.median(found) - exact) < 0.3 * abs(np.median(with_noise) - exact)


# Rules.


def test_a_bin_that_a_rule_cuts_counts_in_part_and_the_interval_reaches_from_none_to_all_of_it(table):
    found = asked(
        {"count": "rows", "where": "pay >= 50"}, answers(table, 1e-6, np.random.default_rng(1)), None
    ).table
    counts = table.marginal(("pay",))
    whole, part = counts[3], counts[2]
    estimate, low, high = (found[name][0].as_py() for name in ("estimate", "low", "high"))
    assert whole + 0.5 * part < estimate < whole + 0.8 * part
    assert (low, high) == pytest.approx((whole, whole + part), abs=0.01)
    assert found["limits"][0].as_py() == HOLDS


@pytest.mark.parametrize(
    ("where", "truth"),
    [
        ("age is missing", lambda t: (t.age == 11).sum()),
        ("age == 20 or age > 29", lambda t: ((t.age == 0) | (t.age == 10)).sum()),
        ("not (sex == 'F')", lambda t: (t.sex == 1).sum()),
        ("age < 25 implies well", lambda t: (((t.age >= 5) & (t.age < 11)) | (t.well == 1)).sum()),
        ("site in ['A', 'C']", lambda t: (t.site != 1).sum()),
    ],
)  # fmt: skip
def test_rules_are_those_of_constraints_and_a_missing_operand_obeys_none(table, where, truth):
    found = asked({"count": "rows", "where": where}, Nothing(), table).table
    assert found["estimate"].to_pylist() == [truth(table)]


def test_the_same_rule_gives_the_same_figures_again(table):
    statistic = {"count": "rows", "where": "pay >= 33.3"}
    one, two = (asked(statistic, Nothing(), table).table for _ in range(2))
    assert one.equals(two)
