"""Whole releases whose pairs are measured by weights, as persons have very different numbers of rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from statistics import fmean

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.accounting.neighbours import whole_weight
from dpsynth.bundle.recipient.verification import verdict_findings
from dpsynth.config import Spec, from_mapping
from dpsynth.curator import Journal
from dpsynth.curator.journal import LOST
from dpsynth.errors import Interrupted
from dpsynth.pipeline import inputs, measuring
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.steps import Step
from dpsynth.plan import plan
from tests.examples import cases
from tests.seeded_noise import seed_noise

BOUND = 40
COLUMNS = ("kind", "liked", "seen", "often", "done")


def table_of(persons: int = 3000, most: int = BOUND) -> pd.DataFrame:
    """Persons with 1 row to many: columns of the person, of the row, and one that goes with both."""
    rng = np.random.default_rng(5)
    each = np.minimum(np.ceil(rng.pareto(0.9, persons)), most).astype(int)
    who = np.repeat(np.arange(persons), each)
    kind = np.repeat(rng.integers(0, 4, persons), each)
    liked = (kind + np.repeat(rng.integers(0, 2, persons), each)) % 4
    seen = (kind + rng.integers(0, 3, len(who))) % 6
    often = np.minimum(rng.poisson(0.3 + np.log(np.repeat(each, each))), 5)
    done = np.where(rng.random(len(who)) < 0.2, rng.integers(0, 6, len(who)), seen)
    return pd.DataFrame(dict(zip(("who", *COLUMNS), (who, kind, liked, seen, often, done), strict=True)))


def spec_of(folder: Path, rows: pd.DataFrame | None = None, bound: int = BOUND, **more: object) -> Spec:
    rows = table_of() if rows is None else rows
    rows.to_csv(folder / "log.csv", index=False)
    columns = {c: {"type": "integer", "min": 0, "max": 5, "missing": False} for c in COLUMNS}
    privacy = {"epsilon": 1, "delta": 1e-6, "unit": {"column": "who", "max_rows": bound}}
    return from_mapping(
        {
            "release": "log",
            "source": {"path": str(folder / "log.csv")},
            "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "log", "cap": {"epsilon": 90}},
            "columns": columns,
            **more,
            "privacy": {**privacy, "on_empty": "go", **more.get("privacy", {})},
        }
    )


def released(folder: Path, spec: Spec) -> dpsynth.Release:
    return dpsynth.release(spec, outputs=folder / "out")


def asked(release: dpsynth.Release) -> list[dict[str, object]]:
    lines = (release.folder / "private" / "journal.jsonl").read_text().splitlines()
    return [json.loads(line)["question"] for line in lines if '"charge"' in line]


def is_of_rows(question: dict[str, object]) -> bool:
    return question["ask"] == "marginal" and "weights" not in question and "surplus" not in question


def by_weights(release: dpsynth.Release) -> list[dict[str, object]]:
    return [question for question in asked(release) if "weights" in question]


def error_of(release: dpsynth.Release, rows: pd.DataFrame, ways: int) -> float:
    """Mean total variation distance of the marginals of some columns."""

    def shares(table: pd.DataFrame, columns: Iterable[str]) -> pd.Series:
        return table.astype(int).value_counts(list(columns), normalize=True)

    gaps = []
    for columns in combinations(COLUMNS, ways):
        gap = shares(rows, columns).sub(shares(release.synthetic, columns), fill_value=0).abs()
        gaps.append(gap.sum() / 2)
    return fmean(gaps)


def as_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = plan.make_plan
    for module in (inputs, measuring):
        monkeypatch.setattr(
            module, "make_plan", lambda *args, **more: replace(sound(*args, **more), weighs=False)
        )


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> dpsynth.Release:
    folder = tmp_path_factory.mktemp("weights")
    return released(folder, spec_of(folder))


def test_pairs_are_asked_by_weights_single_columns_also_as_rows_and_the_budget_is_spent(release):
    weights = by_weights(release)
    assert {q["weights"] for q in weights} == {whole_weight(BOUND)}
    assert {q["ask"] for q in weights} >= {"marginal", "errors"}
    pairs = [q for q in asked(release) if len(q.get("columns") or ()) > 1]
    assert pairs and all("weights" in q for q in pairs)
    surplus = [q["columns"] for q in asked(release) if "surplus" in q]
    assert sorted(surplus) == sorted([c] for c in COLUMNS)
    as_counts = [
        q["columns"] for q in asked(release) if q["ask"] == "marginal" and not {"weights", "surplus"} & set(q)
    ]
    assert {c for columns in as_counts for c in columns} == set(COLUMNS)
    assert 0.99 < release.guarantee.epsilon <= 1


def test_the_plan_says_that_weights_may_be_asked(tmp_path):
    planned = inputs.inputs_of(spec_of(tmp_path)).plan
    assert planned.weighs and planned.to_json()["by_weights_if_they_pay"] is True
    rows = inputs.inputs_of(spec_of(tmp_path, privacy={"unit": "row"})).plan
    assert not rows.weighs and "by_weights_if_they_pay" not in rows.to_json()


def test_a_stranger_verifies_the_bundle_whose_marginals_of_weights_are_no_counts(release):
    bundle = dpsynth.open_bundle(release.folder / "public")
    answers = bundle.answers
    asked_so = [tuple(q["columns"]) for q in asked(release) if q["ask"] == "marginal" and not is_of_rows(q)]
    assert sorted(m.clique for m in answers.weights) == sorted(asked_so)
    assert not answers.answers and {m.clique for m in answers.singles} == {(), *((c,) for c in COLUMNS)}
    # A person's whole weight is counted in units: the table's would be far more rows than it has.
    (total,) = (m for m in answers.weights if m.clique == ())
    assert int(total.values) > 100 * len(table_of())
    mechanisms = {m.question for m in bundle.facts.mechanisms}
    assert {
        "count by weights",
        "marginal by weights",
        "errors by weights",
        "marginal by surplus",
    } <= mechanisms
    assert not bundle.verify().findings and verdict_findings(bundle)[1] == []


def test_relations_are_nearer_by_weights_and_single_columns_too(tmp_path, monkeypatch):
    rows = table_of()
    spec = spec_of(tmp_path, rows)

    def seeded(seed: int) -> dpsynth.Release:
        seed_noise(monkeypatch, seed)
        return released(tmp_path, spec)

    seeds = range(cases(8, least=3))
    weighted = [seeded(seed) for seed in seeds]
    as_rows(monkeypatch)
    counted = [seeded(seed) for seed in seeds]
    for ways, part in ((1, 0.95), (2, 0.85)):
        new, old = (fmean(error_of(r, rows, ways) for r in some) for some in (weighted, counted))
        assert new < part * old


def test_with_little_noise_rows_are_as_they_are_though_relations_come_from_weights(tmp_path):
    """Persons with many rows differ from those with few; the model of weights is raked to counts of rows."""
    rows = table_of()
    release = released(tmp_path, spec_of(tmp_path, rows, privacy={"epsilon": 80}))
    assert by_weights(release)
    assert error_of(release, rows, 1) < 0.01 and error_of(release, rows, 2) < 0.03
    persons = rows.drop_duplicates("who")
    assert error_of(release, persons, 1) > 0.05


def test_there_are_as_many_rows_as_persons_where_noise_hides_the_number_of_rows(tmp_path, monkeypatch):
    few, found = table_of(2000, most=1), []
    for seed in range(4):
        seed_noise(monkeypatch, seed)
        (folder := tmp_path / str(seed)).mkdir()
        made = released(folder, spec_of(folder, few, privacy={"epsilon": 0.3}))
        assert by_weights(made)
        found.append(len(made.table))
    # Counts of rows alone, with the noise of forty rows a person, gave a single row in two of these.
    assert min(found) > 1500, found


def test_a_pair_that_a_statistic_asks_for_is_counted_as_rows(tmp_path):
    statistics = [{"crosstab": ["liked", "kind"]}, {"mean": "seen", "by": "often"}]
    release = released(tmp_path, spec_of(tmp_path, publish={"statistics": statistics}))
    counted = [
        q["columns"] for q in asked(release) if q["ask"] == "marginal" and not {"weights", "surplus"} & set(q)
    ]
    assert ["kind", "liked"] in counted
    assert by_weights(release)
    table = pd.read_csv(release.folder / "public" / "statistics" / "crosstab-liked-kind.csv")
    assert {*table["basis"]} == {"measured"}
    true = table_of().value_counts(["liked", "kind"])
    beyond = [
        row for row in table.itertuples() if not row.low <= true.get((row.liked, row.kind), 0) <= row.high
    ]
    assert len(beyond) <= 4
    assert not dpsynth.open_bundle(release.folder / "public").verify().findings


@pytest.mark.parametrize("why", ["rows are units", "a small bound", "one row each", "another strategy"])
def test_where_weights_can_not_pay_or_a_strategy_is_not_made_for_them_rows_are_counted(tmp_path, why):
    rows = table_of()
    if why == "rows are units":
        spec = spec_of(tmp_path, rows, privacy={"unit": "row"})
    elif why == "a small bound":
        # Nearly everyone has as many rows as the bound: the number of persons is asked for, and nothing else.
        most = rows[rows.groupby("who").who.transform("size") > 1]
        spec = spec_of(tmp_path, most, bound=2)
    elif why == "one row each":
        spec = spec_of(tmp_path, rows, bound=1)
    else:
        spec = spec_of(tmp_path, rows, structure={"method": "mst"})
    questions = by_weights(released(tmp_path, spec))
    assert [q["columns"] for q in questions] == ([[]] if why == "a small bound" else [])


@pytest.mark.parametrize("more", [{"reuse": {"earlier_periods": True}}, {"audiences": True}], ids=str)
def test_a_release_that_others_may_build_on_counts_rows(tmp_path, more):
    rows = table_of().assign(day="2024-01-01")
    if "audiences" in more:
        epsilons = {"audiences": {"outer": {"epsilon": 0.5}, "inner": {"epsilon": 1}}}
        spec = spec_of(tmp_path, rows, **epsilons)
    else:
        spec = spec_of(tmp_path, rows, **more, period={"column": "day", "every": "month"})
    assert not inputs.inputs_of(spec).plan.weighs


def killed_in(step: str) -> Callable[[str, Callable[[], object]], object]:
    def run_step(name: str, action: Callable[[], object]) -> object:
        if name == step:
            raise KeyboardInterrupt
        return action()

    return run_step


@pytest.mark.parametrize("step", [Step.SELECT, Step.FIT])
def test_a_release_that_is_resumed_asks_each_question_by_weights_once(tmp_path, step):
    spec = spec_of(tmp_path)
    with pytest.raises(Interrupted):
        pipeline.run(spec, Request(tmp_path / "out"), run_step=killed_in(step))
    (partial,) = (tmp_path / "out" / "log").glob(".*.partial")
    release_id = partial.name.removeprefix(".").removesuffix(".partial")
    before = (partial / "private" / "journal.jsonl").read_text()
    release = pipeline.run(spec, Request(tmp_path / "out", release_id))
    after = (release.folder / "private" / "journal.jsonl").read_text()
    assert after.startswith(before)
    questions = [json.dumps(q, sort_keys=True) for q in by_weights(release) if q["ask"] == "marginal"]
    assert len([q for q in questions if '"columns": []' in q]) == 1


def test_an_interrupted_question_of_the_number_of_persons_leaves_rows(tmp_path, monkeypatch):
    sound = Journal.answer

    def lost(self, question, event, draw):
        answer = sound(self, question, event, draw)
        return LOST if question.get("weights") and question["columns"] == [] else answer

    monkeypatch.setattr(Journal, "answer", lost)
    release = released(tmp_path, spec_of(tmp_path))
    assert {tuple(q["columns"]) for q in by_weights(release)} == {()}
    assert release.guarantee.epsilon <= 1


@pytest.mark.parametrize(
    "privacy",
    [
        {"unit": {"column": "who", "max_rows": "private", "at_most": 40}},
        {"neighbours": "replace_one"},
        {"noise": "laplace"},
        {"sample_rate": 0.5},
    ],
    ids=str,
)
def test_bounds_that_are_found_exchanged_persons_laplace_noise_and_samples_go_with_weights(tmp_path, privacy):
    release = released(tmp_path, spec_of(tmp_path, privacy={"epsilon": 4, **privacy}))
    assert by_weights(release)
    assert not dpsynth.open_bundle(release.folder / "public").verify().findings
