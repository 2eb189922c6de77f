"""Whole releases whose rows follow each other: persons who are made up, in order, row by row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import dpsynth
from dpsynth.config import Spec, from_mapping
from dpsynth.curator import Journal
from dpsynth.errors import ConfigError, Interrupted
from dpsynth.pipeline import measuring
from dpsynth.pipeline.inputs import inputs_of
from tests.release.killed_by_charges import killed_release
from tests.seeded_noise import seed_noise
from tests.thinned import some

BOUND = 4
HISTORY = {"column": "who", "max_rows": BOUND, "history": {"order_by": "year"}}


def table_of(persons: int = 2500, seed: int = 4) -> pd.DataFrame:
    """Persons with 1 to 6 rows: a group for life, a state that mostly stays, a score beside it."""
    rng = np.random.default_rng(seed)
    rows = []
    for who in range(persons):
        group, state = rng.integers(3), rng.integers(4)
        for year in np.sort(rng.choice(10, rng.integers(1, 7), replace=False)):
            state = state if rng.random() < 0.85 else rng.integers(4)
            rows.append((who, 2000 + year, group, state, state * 10 + rng.integers(20)))
    found = pd.DataFrame(rows, columns=["who", "year", "group", "state", "score"])
    return found.sample(frac=1, random_state=seed).reset_index(drop=True)


COLUMNS = {
    "who": {"type": "identifier", "surrogates": "P0001"},
    "year": {"type": "integer", "min": 2000, "max": 2009, "missing": False},
    "group": {"type": "category", "values": ["0", "1", "2"], "missing": False},
    "state": {"type": "category", "values": ["0", "1", "2", "3"], "missing": False},
    "score": {"type": "integer", "min": 0, "max": 49, "missing": False},
}


def spec_of(folder: Path, *, rows: pd.DataFrame | None = None, **more: object) -> Spec:
    path = folder / "log.csv"
    if rows is not None or not path.exists():
        (table_of() if rows is None else rows).to_csv(path, index=False)
    keys = {
        "release": "log",
        "source": {"path": str(path)},
        "ledger": {"url": f"sqlite:///{folder}/ledger.db", "dataset": "log", "cap": {"epsilon": 90}},
        "columns": COLUMNS,
        **more,
    }
    privacy = {"epsilon": 3, "delta": 1e-6, "unit": HISTORY, "on_empty": "go"}
    return from_mapping({**keys, "privacy": {**privacy, **more.get("privacy", {})}})


def released(folder: Path, spec: Spec, **more: object) -> dpsynth.Release:
    return dpsynth.release(spec, outputs=folder / "out", **more)


@pytest.fixture(scope="module")
def release(tmp_path_factory):
    folder = tmp_path_factory.mktemp("histories")
    with pytest.MonkeyPatch.context() as patch:
        seed_noise(patch, seed=1)
        return released(folder, spec_of(folder))


def same_person(table: pd.DataFrame) -> np.ndarray:
    return (table.who.to_numpy()[1:] == table.who.to_numpy()[:-1]).astype(bool)


def stays(table: pd.DataFrame, column: str) -> float:
    own = table[column].astype(str).to_numpy()
    return float(np.mean((own[1:] == own[:-1])[same_person(table)]))


def real() -> pd.DataFrame:
    return table_of().sort_values(["who", "year"], kind="stable")


def test_persons_are_new_stand_together_in_order_and_have_no_more_rows_than_the_bound(release):
    table = release.synthetic
    whom = table.who.drop_duplicates()
    assert whom.tolist() == [f"P{i:04d}" for i in range(1, len(whom) + 1)]
    assert table.who.ne(table.who.shift()).sum() == len(whom)
    assert table.groupby("who").size().max() <= BOUND
    years = table.year.to_numpy(int)
    steps = np.diff(years)[same_person(table)]
    assert (steps >= 0).all() and np.mean(steps == 0) < 0.02


def test_rows_of_a_person_hang_together_as_those_of_a_real_one_do(release):
    for column in ("group", "state"):
        assert abs(stays(release.synthetic, column) - stays(real(), column)) < 0.08
    rows = release.synthetic.groupby("who").size().value_counts(normalize=True)
    kept = np.minimum(real().groupby("who").size(), BOUND).value_counts(normalize=True)
    assert rows.sub(kept, fill_value=0).abs().sum() / 2 < 0.1


def test_rows_are_as_good_as_rows_that_stand_alone(release, tmp_path, seeded_noise):
    alone = released(tmp_path, spec_of(tmp_path, privacy={"unit": {"column": "who", "max_rows": BOUND}}))

    def error(table: pd.DataFrame) -> float:
        gaps = []
        for pair in (["group", "state"], ["state", "year"], ["group", "year"]):
            shares = [t[pair].astype(str).value_counts(normalize=True) for t in (table, real())]
            gaps.append(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
        return float(np.mean(gaps))

    assert error(release.synthetic) < error(alone.synthetic) + 0.05
    same = alone.synthetic.who.duplicated()
    assert not same.any()


def test_the_whole_budget_is_spent_and_each_column_was_asked_with_the_row_before(release):
    lines = (release.folder / "private" / "journal.jsonl").read_text().splitlines()
    asked = [json.loads(line)["question"] for line in lines if '"charge"' in line]
    linked = [q["columns"] for q in asked if "(row before)" in str(q.get("columns"))]
    assert linked == [[c, f"{c} (row before)"] for c in COLUMNS if c != "who"]
    assert not [q for q in asked if "(first row)" in str(q.get("columns"))]
    assert 2.97 < release.guarantee.epsilon <= 3


def test_where_persons_may_have_many_rows_columns_are_asked_with_the_first_one(tmp_path):
    unit = {**HISTORY, "max_rows": 8, "history": {"order_by": "year", "rising": ["score"]}}
    release = released(tmp_path, spec_of(tmp_path, privacy={"unit": unit}))
    lines = (release.folder / "private" / "journal.jsonl").read_text().splitlines()
    asked = [json.loads(line)["question"] for line in lines if '"charge"' in line]
    firsts = [q["columns"] for q in asked if "(first row)" in str(q.get("columns"))]
    assert firsts == [["group (first row)"], ["state (first row)"]]
    bundle = dpsynth.open_bundle(release.folder / "public")
    assert not bundle.verify().findings and bundle.sample(50, seed=1).equals(bundle.sample(50, seed=1))
    answers = json.loads((release.folder / "public" / "history.json").read_text())
    group = next(a for a in answers if a["columns"] == ["group", "group (first row)"])
    assert group["parts"] == [0, 1, 2]


def test_the_plan_has_a_step_for_it_and_other_configurations_stay_as_they_were(tmp_path):
    plan = inputs_of(spec_of(tmp_path)).plan
    steps = [step.step for step in plan.steps]
    assert steps == ["cutoff", "one_way", "history", "structure", "marginals", "exam"]
    assert sum(step.share for step in plan.steps) == pytest.approx(1)
    plain = inputs_of(spec_of(tmp_path, privacy={"unit": {"column": "who", "max_rows": BOUND}})).plan
    assert "history" not in [step.step for step in plain.steps] and plain.shares.history == 0


def test_a_stranger_verifies_the_bundle_and_draws_more_persons_from_it(release):
    bundle = dpsynth.open_bundle(release.folder / "public")
    assert not bundle.verify().findings
    assert {"history.npz", "history_steps.npz", "history.json"} <= set(bundle.facts.files)
    more = bundle.sample(500, seed=1)
    assert more.equals(bundle.sample(500, seed=1)) and len(more) == 500
    assert (np.diff(more.year.to_numpy(int))[same_person(more)] >= 0).all()
    assert abs(stays(more, "group") - stays(real(), "group")) < 0.1
    answers = json.loads((release.folder / "public" / "history.json").read_text())
    assert [a["columns"][0] for a in answers] == [c for c in COLUMNS if c != "who"]
    readme = (release.folder / "public" / "README.md").read_text()
    assert all(f"`{name}`" in readme for name in bundle.facts.files if name.startswith("history"))
    assert "those of a person who is made up, in the order of year" in readme
    assert "make up no persons" not in readme


def test_the_exam_measures_links_and_the_first_lines_say_how_near_they_are(release):
    links = release.exam.links
    assert links.number == len(COLUMNS) - 1
    true = []
    for column in (c for c in COLUMNS if c != "who"):
        shares = []
        for table in (release.synthetic, kept_rows()):
            own = table[column].astype(str)
            before = own.shift().where(table.who.eq(table.who.shift()), "none")
            shares.append(pd.Series(list(zip(own, before, strict=True))).value_counts(normalize=True))
        true.append(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)
    # Of persons with more rows, others may have been kept.
    assert links.low - 0.03 < np.mean(true) < links.high + 0.03
    (line,) = (x for x in release.verdict.lines if x.startswith("From row to row of a person"))
    assert line in (release.folder / "public" / "README.md").read_text()
    assert f"<p>{line}</p>" in (release.folder / "public" / "report.html").read_text()
    assert line in dpsynth.open_bundle(release.folder).verdict.lines
    exam = pd.read_csv(release.folder / "public" / "exam.csv")
    assert set(exam[exam.kind == "link"].basis) == {"measured"}


def kept_rows() -> pd.DataFrame:
    rows = real()
    return rows[rows.groupby("who").cumcount() < BOUND]


@pytest.mark.parametrize("name", ["history.npz", "history_steps.npz", "rows.npz"])
def test_a_damaged_file_of_histories_is_found_and_named(release, tmp_path, name):
    import shutil

    shutil.copytree(release.folder / "public", tmp_path / "public")
    path = tmp_path / "public" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))
    findings = dpsynth.open_bundle(tmp_path / "public").verify().findings
    assert any(name in str(finding) for finding in findings)


def test_rows_in_pieces_are_whole_persons_with_numbers_of_their_own(release):
    source = dpsynth.open_bundle(release.folder / "public").rows
    tables = [piece.to_pandas() for piece in source.tables(1000, 3, piece=300)]
    assert [len(t) for t in tables] == [300, 300, 300, 100]
    whom = [set(t.who) for t in tables]
    assert sum(map(len, whom)) == len(set().union(*whom))


@pytest.mark.parametrize("number", some([9, 3], 1))
def test_an_interrupted_release_goes_on_with_the_same_answers(tmp_path, monkeypatch, number):
    folder, spec = tmp_path, spec_of(tmp_path)
    sound, seen = Journal.answer, [0]

    def stopped(self, *args, **more):
        found = sound(self, *args, **more)
        seen[0] += 1
        if seen[0] == number:
            raise KeyboardInterrupt
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "answer", stopped)
        with pytest.raises(Interrupted):
            released(folder, spec)
    (partial,) = (folder / "out" / "log").glob(".*.partial")
    done = released(folder, spec, resume=partial.name[1:].removesuffix(".partial"))
    assert 2.9 < done.guarantee.epsilon <= 3
    assert (np.diff(done.synthetic.year.to_numpy(int))[same_person(done.synthetic)] >= 0).all()


@pytest.mark.parametrize("number", some([8, 11], 1))
def test_a_release_that_is_killed_while_rows_before_are_asked_is_finished_by_its_id(tmp_path, number):
    spec = spec_of(tmp_path)
    finished = released(tmp_path, spec, resume=killed_release(__name__, tmp_path, number))
    assert 2.9 < finished.guarantee.epsilon <= 3 and finished.synthetic.who.duplicated().any()


def test_a_bound_that_is_found_bounds_the_rows_of_persons(tmp_path):
    unit = {"column": "who", "max_rows": "private", "at_most": 8, "history": {"order_by": "year"}}
    done = released(tmp_path, spec_of(tmp_path, privacy={"unit": unit}))
    found = int(done.guarantee.unit.rsplit(" ", 1)[1])
    assert 1 < found <= 8 and done.synthetic.groupby("who").size().max() <= found


def test_a_bound_that_is_found_to_be_one_leaves_persons_of_one_row(tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "contribution_bound", lambda *_: 1)
    unit = {"column": "who", "max_rows": "private", "at_most": 8, "history": {"order_by": "year"}}
    done = released(tmp_path, spec_of(tmp_path, privacy={"unit": unit}))
    assert done.guarantee.unit.endswith("at most 1") and not done.synthetic.who.duplicated().any()
    assert done.exam.links.number == len(COLUMNS) - 1 and 2.9 < done.guarantee.epsilon <= 3


def test_rules_hold_in_histories_and_values_in_bins_stay_in_order(tmp_path):
    rows = table_of()
    rows["day"] = (rows.year - 2000) * 30 + rows.score % 29
    day = {"type": "number", "min": 0, "max": 320, "decimals": 0, "bins": 8, "missing": False}
    columns = {k: v for k, v in COLUMNS.items() if k != "year"} | {"day": day}
    unit = {**HISTORY, "history": {"order_by": "day"}}
    spec = spec_of(
        tmp_path,
        rows=rows,
        columns=columns,
        privacy={"unit": unit},
        constraints=["state == '3' implies score >= 30"],
    )
    table = released(tmp_path, spec).synthetic
    assert (np.diff(table.day.to_numpy(float))[same_person(table)] >= 0).all()
    assert (table[table.state.astype(str) == "3"].score >= 30).all()


def test_what_never_changes_or_falls_does_not_where_rules_would_have_it_so(tmp_path):
    rows = table_of()
    rows["born"] = 1960 + rows.who % 30
    rows["age"] = rows.year - rows.born
    rows["earned"] = rows.groupby("who").year.rank(method="first") * 1.37 + rows.who % 7
    levels = ["small", "medium", "large"]
    rows["level"] = [levels[min(int(n) // 2, 2)] for n in rows.groupby("who").year.rank(method="first")]
    columns = COLUMNS | {
        "level": {"type": "ordered", "values": levels, "missing": False},
        "born": {"type": "integer", "min": 1960, "max": 1989, "missing": False},
        "age": {"type": "integer", "min": 0, "max": 60, "missing": False},
        "earned": {"type": "number", "min": 0, "max": 20, "decimals": 2},
    }
    history = {"order_by": "year", "constant": ["born", "group"], "rising": ["earned", "level"]}
    spec = spec_of(
        tmp_path,
        rows=rows,
        columns=columns,
        privacy={"unit": {**HISTORY, "history": history}},
        constraints=[
            "age == year - born",
            "state == '3' implies score >= 30",
            "group == '2' implies earned >= 1",
        ],
    )
    done = released(tmp_path, spec)
    bundle = dpsynth.open_bundle(done.folder / "public")
    assert not bundle.verify().findings
    for table in (done.synthetic, bundle.sample(2000, seed=1)):
        within = table.groupby("who")
        assert within.born.nunique().max() == within.group.nunique().max() == 1
        assert not (within.earned.diff() < 0).any() and not (within.age.diff() < 0).any()
        level = table.level.astype(str).map(levels.index)
        assert not (level.groupby(table.who).diff() < 0).any() and level.nunique() == 3
        assert (table.age == table.year - table.born).all()
        assert (table[table.state.astype(str) == "3"].score >= 30).all()
        assert (table[table.group.astype(str) == "2"].earned >= 1).all()
        kept = rows.born.value_counts(normalize=True)
        assert table.born.value_counts(normalize=True).sub(kept, fill_value=0).abs().sum() / 2 < 0.25
    readme = " ".join((done.folder / "public" / "README.md").read_text().split())
    assert "In the rows of one person group and born have one value" in readme
    assert "From row to row earned and level never fall:" in readme
    lines = (done.folder / "private" / "journal.jsonl").read_text().splitlines()
    asked = [json.loads(line)["question"].get("columns") for line in lines if '"charge"' in line]
    found = [c[0] for c in asked if "(row before)" in str(c) or "(step)" in str(c)]
    linked = [name.removesuffix(" (step)") for name in found]
    assert linked == [c for c in columns if c not in ("who", "born", "group")]
    assert done.exam.links.number == len(linked) and 2.97 < done.guarantee.epsilon <= 3


REFUSED = {
    "names 'when', which is not among columns": {
        "privacy": {"unit": {**HISTORY, "history": {"order_by": "when"}}}
    },
    "whose values have no declared order": {
        "privacy": {"unit": {**HISTORY, "history": {"order_by": "group"}}}
    },
    "names 'stat', which is not among columns": {
        "privacy": {"unit": {**HISTORY, "history": {"order_by": "year", "constant": ["stat"]}}}
    },
    "names 'group', whose values have no order": {
        "privacy": {"unit": {**HISTORY, "history": {"order_by": "year", "rising": ["group"]}}}
    },
    "names 'year', which order_by has too": {
        "privacy": {"unit": {**HISTORY, "history": {"order_by": "year", "constant": ["year"]}}}
    },
    "declare who under columns": {"columns": {k: v for k, v in COLUMNS.items() if k != "who"}},
    "one row has no other one before it": {"privacy": {"unit": {**HISTORY, "max_rows": 1}}},
    "needs structure.method: auto": {"structure": "mst"},
    "privacy.split.cutoff must be above 0": {"privacy": {"split": {"cutoff": 0}}},
    "can't be had of a sample": {"privacy": {"sample_rate": 0.5}},
    "is not supported with reuse": {"reuse": {"earlier_periods": True}},
    "is not supported with audiences": {"audiences": {"few": {"epsilon": 1}, "all": {"epsilon": 3}}},
    "is not supported with engine": {"engine": {"dask": "local"}},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_histories_do_not_go_with_is_refused_in_words(tmp_path, words):
    with pytest.raises(ConfigError, match=r"privacy\.unit") as told:
        spec_of(tmp_path, **REFUSED[words])
    assert words in str(told.value)
