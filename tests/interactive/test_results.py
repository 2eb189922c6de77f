"""What a release hands over in Python: rows, statistics, plan and report, shown in a few lines."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pandas as pd
import pytest

import dpsynth
from dpsynth.errors import DpsynthError
from dpsynth.lifecycle.result import Release
from dpsynth.rules import Rules
from tests.interactive.tables import COLUMNS, KEYS, frame

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
    assert len(done.statistics["age"]) == 9


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
