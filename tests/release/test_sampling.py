"""Releases of a secret sample: amplified, scaled, charged and refused; the same sample when resumed."""

import json
import secrets
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd
import pytest

from dpsynth.accounting.subsampling import Sampling
from dpsynth.bundle.recipient.bundle import open_bundle
from dpsynth.bundle.recipient.verification import verified
from dpsynth.config import Spec, from_mapping
from dpsynth.curator import UnitSample, loaded_rows
from dpsynth.errors import ConfigError, Interrupted
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline.beginning import Request
from dpsynth.pipeline.spine import run

T = TypeVar("T")
ROWS, RATE = 4000, 0.25


def spec_in(folder: Path, **privacy: object) -> Spec:
    table, rng = folder / "people.csv", np.random.default_rng(2)
    if not table.exists():
        home = rng.integers(0, 3, ROWS)
        table.write_text("who,home\n" + "".join(f"p{i // 2},{h}\n" for i, h in enumerate(home.tolist())))
    place = {"type": "category", "values": ["0", "1", "2"], "missing": False}
    return from_mapping(
        {
            "release": "people",
            "source": {"path": str(table)},
            "privacy": {"epsilon": 1, "delta": 1e-6, "sample_rate": RATE, "on_empty": "go", **privacy},
            "ledger": {
                "url": f"sqlite:///{folder}/ledger.db",
                "dataset": "people",
                "cap": {"epsilon": 1000, "delta": 0.01},
            },
            "columns": {"home": place},
            "structure": {"method": "independent"},
        }
    )


def test_the_guarantee_is_that_of_the_whole_and_the_ledger_is_charged_with_it(tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    release = run(spec, Request(tmp_path / "out"))
    promise, folder = release.guarantee, release.folder / "public"
    assert promise.epsilon == pytest.approx(1, rel=1e-9) and promise.epsilon <= 1
    assert (promise.delta, promise.mu, promise.rho, promise.sample_rate) == (1e-6, None, None, RATE)
    account = Ledger(spec.ledger.url).balance("people")
    (entry,) = account.releases
    assert account.filter.accountant == "sequential"
    assert entry.cost.amount.epsilon <= 1 and entry.cost.amount.delta == Fraction(1, 10**6)
    # An account that counts mu would be charged the loss of the sample, which is larger.
    assert Sampling(Fraction(RATE)).of_sample(entry.cost.amount).epsilon > 2
    checked = verified(release.folder)
    assert checked.good, checked.findings
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["sampling"] == {"rate": RATE, "rows_a_unit": 1}
    assert any("secret random sample" in sentence for sentence in manifest["guarantee"]["in_words"])


def test_intervals_cover_the_counts_of_the_whole_table(tmp_path: Path) -> None:
    """At a large epsilon nearly all error is that of sampling: without it, most intervals would miss."""
    spec = spec_in(tmp_path, epsilon=20)
    truth = pd.read_csv(tmp_path / "people.csv")["home"].value_counts().sort_index().to_numpy()
    off, by_noise = [], []
    for number in range(2):
        release = run(spec, Request(tmp_path / f"out{number}"))
        table = next(iter(release.statistics.values()))
        bundle = open_bundle(release.folder)
        errors = (table["estimate"] - truth).to_numpy()
        off += (errors / table["standard_error"].to_numpy()).tolist()
        by_noise += (errors * RATE / bundle.measured.cell_variance(("home",)) ** 0.5).tolist()
        assert abs(release.table.num_rows - ROWS) < 6 * (ROWS * (1 - RATE) / RATE) ** 0.5
        asked = bundle.query("count where home == '1'").frame.iloc[0]
        assert asked["low"] < asked["estimate"] < asked["high"] and asked["high"] - asked["low"] > 100
    # Six figures about normal: a root mean square above 3 comes up once in 10^9 runs.
    assert np.sqrt(np.mean(np.square(off))) < 3
    # Counted by noise alone they lie some 30 deviations outside: below 2 they would be once in 10^6 runs.
    assert np.sqrt(np.mean(np.square(by_noise))) > 2


def dying(name: str, action: Callable[[], T]) -> T:
    if name == "compute statistics":
        raise KeyboardInterrupt
    return action()


def resumed_rows(folder: Path) -> tuple[list[int], list[int]]:
    """The codes that a release asked about, before it died and when it was resumed."""
    folder.mkdir(exist_ok=True)
    spec, seen = spec_in(folder, unit={"column": "who", "max_rows": 2}), []
    sound = loaded_rows.LoadedRows.bounded

    def noted(self, max_rows, key):
        table = sound(self, max_rows, key)
        seen.append(table.codes["home"].tolist())
        return table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loaded_rows.LoadedRows, "bounded", noted)
        with pytest.raises(Interrupted):
            run(spec, Request(folder / "out"), run_step=dying)
        (partial,) = (folder / "out" / "people").glob(".*.partial")
        run(spec, Request(folder / "out", partial.name[1:].removesuffix(".partial")))
    first, second = seen
    return first, second


def test_a_resumed_release_asks_the_same_sample(tmp_path: Path) -> None:
    first, second = resumed_rows(tmp_path)
    assert first == second and 0.1 * ROWS < len(first) < 0.4 * ROWS


@pytest.mark.slow
def test_a_sample_that_is_drawn_anew_would_be_noticed(tmp_path: Path, monkeypatch) -> None:
    sound = UnitSample.persons
    monkeypatch.setattr(
        UnitSample,
        "persons",
        lambda self, people: sound(UnitSample(self.threshold, secrets.token_bytes(32)), people),
    )
    first, second = resumed_rows(tmp_path)
    assert first != second


REFUSED: dict[str, tuple[dict[str, object], dict[str, object], str]] = {
    "replace_one": ({"neighbours": "replace_one"}, {}, "neighbours: replace_one"),
    "delta": ({"delta": 0.3}, {}, "must be above privacy.delta"),
    "audiences": ({}, {"audiences": {"a": {"epsilon": 0.5}, "b": {"epsilon": 1}}}, "left out with audiences"),
    "exam": ({"split": {"exam": 0.1}}, {}, "the exam would tell"),
    "statistics": (
        {},
        {"publish": {"statistics": [{"variance": "age"}]}},
        "not supported with privacy.sample_rate",
    ),
    "rate": ({"sample_rate": 1}, {}, "below 1"),
    "reuse": ({}, {"reuse": {"earlier_periods": True}}, "left out with reuse"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_what_a_sample_cannot_be_had_with_is_refused(case: str) -> None:
    privacy, more, words = REFUSED[case]
    config = {
        "release": "people",
        "source": {"path": "x.csv"},
        "privacy": {"epsilon": 1, "delta": 1e-6, "sample_rate": RATE, **privacy},
        "columns": {
            "home": {"type": "category", "values": ["0", "1", "2"], "missing": False},
            "age": {"type": "integer", "min": 0, "max": 9},
        },
        **more,
    }
    with pytest.raises(ConfigError, match=words):
        from_mapping(config)
