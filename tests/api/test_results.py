"""What a release hands over in Python: rows, statistics, plan and report, shown in a few lines."""

import pickle
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.columns.rules import Rules
from dpsynth.errors import DpsynthError
from dpsynth.pipeline.result import Release
from tests.api.tables import COLUMNS, KEYS, frame
from tests.thinned import some

RULED = {
    **KEYS,
    "columns": {**COLUMNS, "id": {"type": "identifier", "surrogates": "P1"}},
    "constraints": ["cost <= age + 30"],
    "publish": {"statistics": [{"mean": "cost", "by": "sex"}]},
}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Release:
    folder = tmp_path_factory.mktemp("results")
    ledger = folder / "ledger.db"
    return dpsynth.release(frame(), **RULED, ledger=ledger, outputs=folder / "outputs")


def broken(rows: pd.DataFrame) -> pd.Series:
    """Rows that break the constraint."""
    return (rows.cost > rows.age + 30).fillna(False)


def test_more_rows_obey_the_constraints_and_a_seed_repeats_them(done: Release) -> None:
    rows = done.sample(2_000, seed=5)
    assert len(rows) == 2_000 and list(rows.columns) == list(done.synthetic.columns)
    assert rows.dtypes.equals(done.synthetic.dtypes)
    assert not broken(rows).any() and rows.id.is_unique
    assert rows.equals(done.sample(2_000, seed=5))
    assert not done.sample(200).equals(done.sample(200))
    assert len(done.sample(0)) == 0
    with pytest.raises(DpsynthError, match="at least 0"):
        done.sample(-1)


def test_rows_without_the_rules_would_be_noticed(done: Release) -> None:
    unruled = replace(done.rows, rules=Rules())
    rows = unruled.seeded(2_000, 5).to_pandas()
    assert broken(rows).any()


def test_statistics_are_frames_with_what_they_are_about(done: Release) -> None:
    assert {"age", "sex", "cost", "cost by sex"} == set(done.statistics)
    by_sex = done.statistics["cost by sex"]
    assert isinstance(by_sex, pd.DataFrame)
    assert {"sex", "estimate", "standard_error", "low", "high"} <= set(by_sex.columns)
    assert by_sex.attrs == {
        "title": "cost by sex",
        "kind": "mean",
        "columns": ["sex", "cost"],
        "measured": True,
    }
    assert len(done.statistics["age"]) == 90


def test_the_plan_has_a_row_a_step_and_its_shares_add_up(done: Release) -> None:
    assert list(done.plan.step) == ["one_way", "sums", "structure", "marginals", "exam"]
    assert done.plan.share.sum() == pytest.approx(1)
    assert (done.plan.noise_scale > 0).all()


def test_a_notebook_shows_a_release_in_a_few_lines_without_its_rows(done: Release) -> None:
    shown = repr(done)
    assert len(shown.splitlines()) <= 8 and "ε = 1" in shown and str(done.folder / "public") in shown
    html = done._repr_html_()
    text = unescape(re.sub("<[^>]*>", " ", html))
    assert "ε = 1" in text and done.release_id in text and len(html) < 3_000


def test_a_notebook_shows_the_report_in_a_frame_that_runs_nothing(done: Release) -> None:
    page = done.report(height=300)
    assert str(page).endswith("report.html") and Path(str(page)).is_file()
    html = page._repr_html_()
    assert html.startswith("<iframe srcdoc=") and html.endswith("</iframe>") and " sandbox " in html
    inside = re.fullmatch(r'<iframe srcdoc="([^"]*)"[^>]*height="300"[^>]*></iframe>', html)
    assert inside is not None and unescape(inside[1]) == page.path.read_text(encoding="utf-8")


def test_a_release_is_pickled_whole(done: Release) -> None:
    again = pickle.loads(pickle.dumps(done))
    assert again.sample(50, seed=1).equals(done.sample(50, seed=1)) and again.guarantee == done.guarantee


def test_a_question_and_rows_with_something_given_are_those_of_the_command_line(done: Release) -> None:
    opened = dpsynth.open_bundle(done.folder)
    asked = "mean(cost) by sex where age >= 40"
    assert done.query(asked).frame.equals(opened.query(asked).frame)
    assert list(done.query("count by sex").frame.columns) == [
        "sex",
        "estimate",
        "low",
        "high",
        "rows",
        "basis",
    ]
    shown = repr(done.query("count by sex"))
    assert shown.splitlines()[0].split() == ["sex", "estimate", "low", "high", "rows", "basis"]
    assert "Interval: 95 %" in shown and repr(done.verdict) == "\n".join(done.verdict.lines)
    rows = done.sample(200, seed=4, given=["sex=F", "age >= 40"])
    assert rows.equals(opened.sample(200, given=["sex=F", "age >= 40"], seed=4))
    assert set(rows.sex) == {"F"} and rows.age.min() >= 40 and not broken(rows).any()
    assert done.sample(200, seed=4).equals(opened.sample(200, seed=4))
    assert opened.guarantee == done.guarantee
    for columns in ((), ("age",), ("sex", "cost")):
        assert done.plot(*columns).svg == opened.plot(*columns).svg
    for wrong in ({"sex": "X"}, "agee >= 4"):
        with pytest.raises(DpsynthError):
            done.sample(5, given=wrong)


def test_rows_of_all_kinds_need_no_file_of_the_bundle(tmp_path: Path) -> None:
    made = dpsynth.release(frame(1_000), **KEYS, ledger=tmp_path / "l.db", outputs=tmp_path / "outputs")
    shutil.rmtree(tmp_path / "outputs")
    assert len(made.sample(20)) == 20
    with pytest.raises(DpsynthError, match="is no bundle"):
        made.sample(20, given="sex=F")


def of_pyarrow(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows, preserve_index=False)


def of_polars(rows: pd.DataFrame) -> object:
    return pytest.importorskip("polars").from_pandas(rows)


@pytest.mark.parametrize(
    "into", some([of_pyarrow, of_polars, lambda rows: rows], 1), ids=["pyarrow", "polars", "pandas"]
)
def test_frames_come_out_in_the_library_they_came_in(
    tmp_path: Path, into: Callable[[pd.DataFrame], object]
) -> None:
    table = into(frame(300))
    made = dpsynth.release(table, **RULED, ledger=tmp_path / "l.db", outputs=tmp_path / "outputs")
    frames = [made.synthetic, made.sample(5), made.sample(5, given="sex=F"), made.plan, made.errors]
    for found in (*frames, *made.statistics.values()):
        assert type(found) is type(table)
    again = pickle.loads(pickle.dumps(made))
    assert type(again.sample(5)) is type(table)
    rows = made.table.select(["age", "cost"]).to_pylist()
    found = made.synthetic
    if isinstance(found, pd.DataFrame):
        found = found.astype(object).where(found.notna(), None)
    turn = {"pandas": "to_dict", "polars": "to_dicts", "pyarrow": "to_pylist"}[made.library]
    as_dicts = getattr(found, turn)(*(["records"] if turn == "to_dict" else []))
    assert [{"age": row["age"], "cost": row["cost"]} for row in as_dicts] == rows


def test_the_frames_of_each_audience_are_of_the_library_of_the_table(tmp_path: Path) -> None:
    tiers = {"partners": {"epsilon": 0.4}, "owners": {"epsilon": 1}}
    keys = {key: value for key, value in KEYS.items() if key != "epsilon"}
    spec = dpsynth.Spec.from_dict(
        {
            "privacy": {"delta": 1e-9, "on_empty": "go"},
            "audiences": tiers,
            "ledger": {"dataset": "visits", "url": f"sqlite:///{tmp_path / 'l.db'}"},
            "columns": COLUMNS,
            "structure": keys["structure"],
        }
    )
    made = dpsynth.release(of_pyarrow(frame(300)), spec, outputs=tmp_path / "outputs")
    assert list(made.audiences) == list(tiers)
    for one in made.audiences.values():
        assert isinstance(one.synthetic, pa.Table) and isinstance(one.sample(3, given="sex=F"), pa.Table)
        assert one.bundle.folder == one.handed_over
