"""What is left out has a stated default, and what is given is kept exactly."""

from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from pydantic import ValidationError

from dpsynth.columns.workload import Workload
from dpsynth.config import Crosstab, Mean, Period, Person, Reuse, Row, Schedule, Spec, compiled, from_mapping

SPLIT = "epsilon: 1.0, delta: 1.0e-9, split: {one_way: 0.1, structure: 0.2, marginals: 0.7}"
EPSILON = "epsilon: 1.0, delta: 1.0e-9"


def test_every_default_is_the_documented_one(load_with):
    spec = load_with()
    assert spec.release == "small"
    assert (spec.source.path, spec.source.format) == ("data/table.csv", "csv")
    assert (spec.privacy.noise, spec.privacy.neighbours) == ("gaussian", "add_remove")
    assert (spec.privacy.accountant, spec.privacy.split) == ("auto", None)
    assert spec.privacy.unit == Row()
    assert spec.privacy.unit.max_rows == 1
    assert (spec.ledger.url, spec.ledger.dataset) == ("sqlite:///ledger.db", "")
    assert (spec.ledger.cap.epsilon, spec.ledger.cap.delta) == (10, Decimal("1e-5"))
    assert spec.structure.method == "auto"
    assert (spec.structure.workload, spec.structure.cliques, spec.structure.merge_rare) == (None, None, 3)
    assert (spec.structure.max_model_mb, spec.structure.max_seconds) == (None, None)
    assert (spec.sample.rows, spec.sample.seed) == ("same", None)
    assert spec.publish.formats == ("csv", "parquet")
    assert spec.publish.statistics == ()
    assert (spec.ledger.filter, spec.ledger.head) == ("auto", None)
    assert (spec.period, spec.schedule, spec.reuse) == (None, None, Reuse())
    assert (spec.reuse.same_period, spec.reuse.earlier_periods) == (False, False)
    assert spec.warnings() == ()


def test_a_period_adds_up_in_sequence_unless_declared_otherwise(load_with):
    period = load_with("period: {column: year, every: week}\n").period
    assert period == Period(column="year", every="week", composition="sequential")


def test_a_schedule_is_kept_as_written(load_with):
    unquoted = load_with("schedule:\n  cron: 0 3 1 jan,JUL mon-fri\n  timezone: Europe/Paris\n")
    assert unquoted.schedule == Schedule(cron="0 3 1 jan,JUL mon-fri", timezone="Europe/Paris")


def test_without_delta_noise_is_laplace(load_with):
    spec = load_with(replace=(EPSILON, "epsilon: 1.0"))
    assert (spec.privacy.noise, spec.privacy.delta) == ("laplace", None)


def test_laplace_noise_may_have_a_delta(load_with):
    spec = load_with(replace=(EPSILON, f"{EPSILON}, noise: laplace, accountant: zcdp"))
    assert (spec.privacy.noise, spec.privacy.accountant) == ("laplace", "zcdp")


def test_budgets_and_shares_are_exact(load_with):
    privacy = load_with(replace=(EPSILON, SPLIT)).privacy
    assert privacy.delta * 10**9 == 1
    assert privacy.split.one_way + privacy.split.structure + privacy.split.marginals == 1


def test_a_float_from_python_counts_as_the_decimal_it_prints():
    spec = from_mapping(
        {
            "source": {"path": "a.parquet"},
            "privacy": {"epsilon": 0.1},
            "columns": {"x": {"type": "integer", "min": 0, "max": 1}},
        }
    )
    assert spec.privacy.epsilon * 10 == 1
    assert spec.source.format == "parquet"


def test_a_person_is_named_by_a_column_that_need_not_be_declared(load_with):
    spec = load_with(replace=(EPSILON, f"{EPSILON}, unit: {{column: patient_id, max_rows: 4}}"))
    assert spec.privacy.unit == Person(column="patient_id", max_rows=4)
    assert spec.warnings() == ()


def test_the_dataset_is_left_to_the_ledger_unless_named(load_with):
    assert load_with("release: spring-2024\n").ledger.dataset == ""
    assert load_with("release: a\nledger: {dataset: census}\n").ledger.dataset == "census"
    assert load_with("ledger: {cap: {epsilon: 3}}\n").ledger.cap.delta == Decimal("1e-5")


def test_statistics_are_typed(load_with):
    spec = load_with(
        "publish: {statistics: [{crosstab: [age, sex]}, {mean: income, by: sex}, {mean: member}]}\n"
    )
    crosstab, by_sex, overall = spec.publish.statistics
    assert crosstab == Crosstab(crosstab=("age", "sex"))
    assert by_sex == Mean(mean="income", by="sex")
    assert (overall.mean, overall.by, overall.columns) == ("member", (), ("member",))


def test_structure_may_be_a_word(load_with):
    assert load_with("structure: independent\n").structure.method == "independent"


def test_a_workload_is_what_was_written_with_the_stated_defaults(load_with):
    names = ("age", "sex", "income", "member")

    def workload(text):
        return compiled(load_with(f"structure: {{workload: {text}}}\n")).workload

    assert compiled(load_with()).workload == workload("{}") == Workload(names)
    assert compiled(load_with()).workload.widest == 3
    assert workload("{ways: 2}") == Workload(names, 2)
    listed = workload("{marginals: [{columns: [age, sex]}, {columns: [sex, age, income], weight: 0.5}]}")
    pair, triple = (("age", "sex"), 1), (("sex", "age", "income"), Fraction(1, 2))
    assert listed == Workload(names, None, (pair, triple))
    assert listed.weight(("age", "member")) == 0
    weighted = workload("{ways: 2, weights: {sex: 3}, targets: [income]}")
    assert weighted == Workload(names, 2, (), (("sex", 3),), ("income",), 4)
    assert workload("{targets: [income], target_weight: 2}") == Workload(
        names, targets=("income",), target_weight=2
    )


def test_a_table_of_one_column_has_a_workload_of_it(load_text):
    spec = load_text("source: {path: t.csv}\nprivacy: {epsilon: 1}\ncolumns:\n  x: {type: boolean}\n")
    assert compiled(spec).workload.widest == 1


def test_the_source_can_be_replaced(load_with):
    assert load_with(source="/data/Other.PARQUET").source.format == "parquet"
    spec = load_with(replace=("{path: data/table.csv}", "{path: a.txt, format: csv}"), source="b.txt")
    assert (spec.source.path, spec.source.format) == ("b.txt", "csv")
    spec = load_with(replace=("source: {path: data/table.csv}\n", ""), source="b.csv")
    assert spec.source.path == "b.csv"


def test_a_spec_can_not_be_changed(load_with):
    spec = load_with()
    with pytest.raises(ValidationError):
        spec.privacy.epsilon = Decimal(100)


@pytest.mark.parametrize(
    ("privacy", "words"),
    [
        ("epsilon: 11", "epsilon 11 is above 10"),
        ("epsilon: 1, delta: 1e-3", "delta 0.001 is above 0.0001"),
        (
            "epsilon: 1, unit: {column: age, max_rows: 2}",
            "'age' says whose row it is and is also among columns",
        ),
    ],
)
def test_a_weak_choice_is_a_warning_and_no_error(load_with, privacy, words):
    (warning,) = load_with(replace=(EPSILON, privacy)).warnings()
    assert words in warning


def test_a_value_that_all_rows_of_a_release_share_is_a_warning_among_columns(load_with):
    (warning,) = load_with("period: {column: sex, every: value}\n").warnings()
    assert "'sex' is the column of period.every: value and is also among columns" in warning
    for period in ("{column: site, every: value}", "{column: age, every: year}"):
        assert load_with(f"period: {period}\n").warnings() == ()


def test_epsilon_ten_is_no_warning(load_with):
    assert load_with(replace=(EPSILON, "epsilon: 10")).warnings() == ()


@pytest.mark.parametrize(
    ("replace", "added"),
    [
        (("1.0e-9", "0.000000001"), ""),
        (("epsilon: 1.0", "epsilon: 1"), ""),
        (("data/table.csv", "elsewhere.parquet"), ""),
        (("min: 0, max: 110}", "max: 110, bins: 111, min: 0.0}"), ""),
        (None, "release: small\n"),
        (None, "ledger: {url: 'sqlite:///other.db', cap: {epsilon: 99}}\n"),
        (None, "ledger: {filter: gdp, head: /mnt/head}\n"),
        (None, "schedule: {cron: '0 3 1 * *', timezone: UTC}\n"),
        (None, "reuse: {same_period: false}\n"),
        (None, "publish: {formats: [csv], statistics: [{variance: age}]}\n"),
        (None, "structure: {method: auto}\n"),
        (None, "structure: {method: auto, merge_rare: 3.0}\n"),
    ],
)
def test_the_fingerprint_ignores_what_asks_no_other_question(load_with, replace, added):
    assert compiled(load_with(added, replace)).fingerprint == compiled(load_with()).fingerprint


@pytest.mark.parametrize(
    "added", ["sample: {rows: 10, seed: 4}\n", "publish: {statistics: [{crosstab: [age, sex, member]}]}\n"]
)
def test_the_fingerprint_has_what_the_exam_asks_about_only_where_there_is_an_exam(load_with, added):
    none = (EPSILON, f"{EPSILON}, split: {{exam: 0}}")
    assert compiled(load_with(added)).fingerprint != compiled(load_with()).fingerprint
    assert compiled(load_with(added, none)).fingerprint == compiled(load_with(replace=none)).fingerprint


@pytest.mark.parametrize(
    ("replace", "added"),
    [
        (("1.0e-9", "1.0e-8"), ""),
        (("epsilon: 1.0", "epsilon: 1.1"), ""),
        ((EPSILON, f"{EPSILON}, neighbours: replace_one"), ""),
        ((EPSILON, f"{EPSILON}, unit: {{column: id, max_rows: 1}}"), ""),
        ((EPSILON, SPLIT), ""),
        (None, "publish: {statistics: [{mean: age}]}\n"),
        (None, "publish: {statistics: [{sum: age, by: sex}]}\n"),
        (None, "publish: {statistics: [{quantiles: age}]}\n"),
        (("max: 110", "max: 111"), ""),
        (("[F, M]", "[M, F]"), ""),
        (("[F, M]", "[F, M], other: O"), ""),
        (("[F, M]", "[F, M], missing: '?'"), ""),
        (("[F, M]", "[F, M], missing: false"), ""),
        (("  member: {type: boolean}\n", ""), ""),
        (("  member: {type: boolean}\n", "  Member: {type: boolean}\n"), ""),
        (None, "structure: independent\n"),
        (None, "structure: mst\n"),
        (None, "structure: aim\n"),
        (None, "structure: {method: fixed, cliques: [[age, sex]]}\n"),
        (None, "structure: {workload: {ways: 2}}\n"),
        (None, "structure: {workload: {weights: {age: 2}}}\n"),
        (None, "structure: {workload: {targets: [age]}}\n"),
        (None, "structure: {max_model_mb: 3}\n"),
        (None, "structure: {max_seconds: 3}\n"),
        (None, "structure: {merge_rare: 0}\n"),
        (None, "ledger: {dataset: other}\n"),
        (None, "period: {column: visited, every: month}\n"),
        (None, "reuse: {earlier_periods: true}\n"),
    ],
)
def test_the_fingerprint_tells_other_questions_apart(load_with, replace, added):
    assert compiled(load_with(added, replace)).fingerprint != compiled(load_with()).fingerprint


def test_the_fingerprints_tell_periods_and_what_is_reused_apart(load_with):
    kinds = product("ab", ("month", "value"), ("sequential", "parallel"))
    texts = [f"period: {{column: {c}, every: {e}, composition: {how}}}\n" for c, e, how in kinds]
    texts += [f"{texts[0]}reuse: {{{key}: true}}\n" for key in ("same_period", "earlier_periods")]
    loaded = [compiled(load_with(text)) for text in texts]
    assert len({c.fingerprint for c in loaded}) == len(texts)
    assert len({c.whole_fingerprint for c in loaded}) == len(texts)


@pytest.mark.parametrize(
    ("replace", "added"),
    [
        (("data/table.csv", "elsewhere.parquet"), ""),
        (("1.0e-9", "0.000000001"), ""),
        (None, "ledger: {url: 'sqlite:///other.db', cap: {epsilon: 99}, filter: gdp, head: /mnt/head}\n"),
        (None, "schedule: {cron: '0 3 1 * *', timezone: UTC}\n"),
        (None, "publish: {formats: [csv, parquet]}\n"),
    ],
)
def test_the_whole_fingerprint_ignores_what_leaves_the_bundle_as_it_is(load_with, replace, added):
    assert compiled(load_with(added, replace)).whole_fingerprint == compiled(load_with()).whole_fingerprint


@pytest.mark.parametrize(
    ("replace", "added"),
    [
        (("epsilon: 1.0", "epsilon: 1.1"), ""),
        (("max: 110", "max: 111"), ""),
        (None, "release: other\nledger: {dataset: small}\n"),
        (None, "ledger: {dataset: other}\n"),
        (None, "structure: mst\n"),
        (None, "publish: {formats: [csv]}\n"),
        (None, "publish: {statistics: [{mean: age}]}\n"),
        (None, "publish: {statistics: [{crosstab: [age]}]}\n"),
        (None, "sample: {rows: 10}\n"),
        (None, "sample: {seed: 4}\n"),
    ],
)
def test_the_whole_fingerprint_tells_other_bundles_apart(load_with, replace, added):
    assert compiled(load_with(added, replace)).whole_fingerprint != compiled(load_with()).whole_fingerprint


def test_no_section_is_left_out_of_the_whole_fingerprint_unnoticed():
    """Planted by hand: a section that is new must be put in the digest, or among these."""
    # A collection in the local model has a contract of its own, with a digest.
    apart = {"source", "ledger", "schedule", "review", "trust", "local", "engine", "verification", "embargo"}
    inside = {"release", "privacy", "columns", "structure", "sample", "publish", "period", "reuse",
              "constraints", "public_table", "public_marginals", "audiences", "accept", "tables",
              "provenance", "regression"}  # fmt: skip
    assert set(Spec.model_fields) == apart | inside


def test_audiences_and_a_sample_are_part_of_the_fingerprint():
    columns = {"a": {"type": "boolean"}, "b": {"type": "boolean"}}
    base = {"source": {"path": "a.csv"}, "privacy": {"epsilon": 1}, "columns": columns}
    configs = [
        base,
        {**base, "privacy": {"epsilon": 1, "sample_rate": 0.5}},
        {**base, "privacy": {"epsilon": 1, "sample_rate": 0.25}},
        {**base, "audiences": {"public": {"epsilon": 0.5}, "partners": {"epsilon": 1}}},
        {**base, "audiences": {"public": {"epsilon": 0.25}, "partners": {"epsilon": 1}}},
    ]
    assert len({compiled(from_mapping(config)).fingerprint for config in configs}) == len(configs)


def test_the_fingerprint_tells_listed_cliques_apart(load_with):
    texts = ["[[age, sex]]", "[[age, income]]", "[[age, sex], [age, income]]"]
    prints = [compiled(load_with(f"structure: {{method: fixed, cliques: {t}}}\n")).fingerprint for t in texts]
    assert len(set(prints)) == 3


def test_the_order_of_columns_is_part_of_the_fingerprint():
    columns = {"a": {"type": "boolean"}, "b": {"type": "boolean"}}
    base = {"source": {"path": "a.csv"}, "privacy": {"epsilon": 1}}
    swapped = dict(reversed(columns.items()))
    prints = {compiled(from_mapping({**base, "columns": c})).fingerprint for c in (columns, swapped)}
    assert len(prints) == 2
