"""A table in memory is released as its file would be, under the same ledger, and leaves no row behind."""

import pickle
import re
import traceback
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpsynth
from dpsynth.api import releasing
from dpsynth.api.releasing import spec_of
from dpsynth.config.privacy import USUAL_DELTA
from dpsynth.errors import (
    BudgetRefused,
    ConfigError,
    DpsynthError,
    Interrupted,
    Paused,
    SourceError,
    StepFailed,
)
from dpsynth.ledger.ledger import Ledger
from dpsynth.pipeline import measuring as counting_engine
from dpsynth.pipeline import spine as pipeline
from dpsynth.pipeline.result import Release
from dpsynth.pipeline.steps import Step
from tests.api.tables import COLUMNS, KEYS, frame
from tests.release.stopping import stopped_at

CANARY = "canary-4711"
NUMBER = 90817263.5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(releasing, "_told", set())
    return tmp_path


def balance(folder: Path, dataset: str = "visits", file: str = "ledger.db") -> list[str]:
    """The states of the releases that a ledger has of a dataset."""
    account = Ledger(f"sqlite:///{folder / file}", None).balance(dataset)
    return [] if account is None else [release.state for release in account.releases]


def test_a_frame_is_released_by_keyword_arguments_and_the_ledger_is_named_once(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = dpsynth.release(frame(), **KEYS)
    said = capsys.readouterr()
    assert said.out == "" and said.err.count(str(folder / "ledger.db")) == 1 == len(said.err.splitlines())
    assert list(done.synthetic.columns) == list(COLUMNS)
    assert done.folder.parent == Path("outputs/visits") and (done.folder / "public/report.html").is_file()
    assert done.guarantee.epsilon <= 1 and balance(folder) == ["closed"]
    again: list[str] = []
    dpsynth.release(frame(), **KEYS, tell=again.append)
    assert capsys.readouterr().err == "" and balance(folder) == ["closed", "closed"]
    (told,) = again
    assert "number 2 of dataset 'visits'" in told and "charged ε = 1, δ = 1e-9 once more" in told


def test_one_spec_releases_a_frame_an_arrow_table_and_a_file(folder: Path) -> None:
    values = {"privacy": {"epsilon": 1}, "ledger": {"dataset": "visits"}, "columns": COLUMNS}
    spec = dpsynth.Spec.from_dict(values)
    assert "age" in dpsynth.release(frame(), spec).synthetic
    assert "age" in dpsynth.release(pa.Table.from_pandas(frame()), spec).synthetic.column_names
    frame().to_csv("visits.csv", index=False)
    named = dpsynth.Spec.from_dict({**values, "source": {"path": "visits.csv"}})
    assert "age" in dpsynth.release(named).synthetic
    assert "age" in dpsynth.release("visits.csv", **KEYS).synthetic
    assert "age" in dpsynth.release(frame(), named).synthetic
    assert balance(folder) == ["closed"] * 5


@pytest.mark.parametrize(
    ("given", "delta", "noise"),
    [
        ({}, USUAL_DELTA, "gaussian"),
        ({"privacy": {"neighbours": "replace_one"}}, USUAL_DELTA, "gaussian"),
        ({"delta": 1e-6}, Decimal("1e-6"), "gaussian"),
        ({"delta": 0}, None, "laplace"),
        ({"delta": np.float64(0)}, None, "laplace"),
        ({"delta": None}, None, "laplace"),
        ({"privacy": {"noise": "laplace"}}, None, "laplace"),
        ({"privacy": {"accountant": "sequential"}}, None, "laplace"),
    ],
)
def test_pure_epsilon_is_given_to_whoever_asks_for_it_and_to_nobody_else(
    given: dict[str, object], delta: Decimal | None, noise: str
) -> None:
    spec = spec_of({"epsilon": 1, "dataset": "visits", "columns": COLUMNS, **given})
    assert (spec.privacy.delta, spec.privacy.noise) == (delta, noise)


def test_delta_is_that_of_the_configuration_which_init_writes(folder: Path) -> None:
    frame().to_csv("visits.csv", index=False)
    assert f"delta: {USUAL_DELTA.scaleb(9):.1f}e-9 " in dpsynth.describe("visits.csv").yaml


def test_another_ledger_is_used_where_one_is_named_and_nothing_is_said_of_it(folder: Path) -> None:
    said: list[str] = []
    dpsynth.release(frame(), **KEYS, ledger=Path("other.db"), tell=said.append)
    assert said == [] and balance(folder, file="other.db") == ["closed"]
    assert not (folder / "ledger.db").exists()


def test_the_cap_of_the_ledger_holds_for_frames(folder: Path) -> None:
    capped = {**KEYS, "ledger": {"cap": {"epsilon": 1.1, "delta": 1e-9}}}
    dpsynth.release(frame(), **capped)
    with pytest.raises(BudgetRefused, match=r"dpsynth ledger cap 'visits' .*--config CONFIG"):
        dpsynth.release(frame(), **capped)
    assert balance(folder) == ["closed"]


WRONG = [
    ({"dataset": None}, ConfigError, "ledger.dataset is missing"),
    ({"columns": None}, ConfigError, "dpsynth.describe"),
    ({"epsilon": -1}, ConfigError, "privacy.epsilon must be"),
    ({"epsilon": "1"}, ConfigError, "write it without quotes"),
    ({"epsilom": 1}, ConfigError, "did you mean 'epsilon'?"),
    ({"schedule": {"cron": "* * * * *"}}, ConfigError, "Spec.from_dict"),
    ({"privacy": {"epsilon": 2}}, ConfigError, "given twice"),
    ({"ledger": 5}, ConfigError, "ledger must be a mapping"),
    ({"period": {"column": "x"}}, ConfigError, "label of a slice"),
    ({"columns": {"age": {"type": "integer", "min": 0}}}, ConfigError, "columns.age.max is missing"),
    ({"columns": {"age": {"type": "integr", "min": 0, "max": 1}}}, ConfigError, "columns.age.type"),
    ({"columns": {"age": object()}}, ConfigError, "columns.age is of type object"),
    ({"columns": {"sex": {"type": "category", "values": {"F", "M"}}}}, ConfigError, "must be a list"),
    ({"columns": {5: {"type": "boolean"}}}, ConfigError, "a key must be a text"),
    ({"columns": {"old": {"type": "boolean"}}}, SourceError, "has no column 'old'"),
    ({"unit": {"column": "who", "max_rows": 2}}, SourceError, "has no column 'who'"),
]


@pytest.mark.parametrize(("changes", "kind", "words"), WRONG, ids=[words for _, _, words in WRONG])
def test_a_mistake_is_one_sentence_with_its_key_and_costs_nothing(
    folder: Path, changes: dict[str, object], kind: type[DpsynthError], words: str
) -> None:
    keys = {key: value for key, value in {**KEYS, **changes}.items() if value is not None}
    with pytest.raises(kind) as refused:
        dpsynth.release(frame(), **keys)
    assert words in str(refused.value) and "\n" not in str(refused.value)
    assert balance(folder) == [] and not list(folder.glob("outputs/**/*.jsonl"))


def test_what_is_given_twice_or_is_no_table_is_refused(folder: Path) -> None:
    spec = dpsynth.Spec.from_dict({"privacy": {"epsilon": 1}, "ledger": {"dataset": "d"}, "columns": COLUMNS})
    for arguments, keys, words in (
        ((spec,), {}, "source is missing"),
        ((spec,), {"epsilon": 2}, "says all of a release by itself"),
        ((spec, spec), {}, "another spec"),
        ((frame(), spec), {"epsilon": 2}, "beside a spec"),
        (("visits.csv", spec), {}, "A file goes into the spec"),
        ((5,), KEYS, "of type int is no table"),
        (("absent.csv",), KEYS, "no file absent.csv"),
    ):
        with pytest.raises(DpsynthError) as refused:
            dpsynth.release(*arguments, **keys)
        assert words in str(refused.value)
    assert balance(folder) == []


def interrupted() -> str:
    """The id of a release of the usual frame that was stopped after its single columns."""

    with stopped_at(Step.SELECT, KeyboardInterrupt()), pytest.raises(Interrupted) as stop:
        dpsynth.release(frame(), **KEYS)
    assert "resume='" in str(stop.value) and "--resume" not in str(stop.value)
    return str(stop.value).split("resume='")[1].split("'")[0]


def test_a_release_that_pauses_for_its_owner_goes_on_by_its_id(folder: Path) -> None:
    misread = frame().replace({"sex": {"F": "Female", "M": "Male"}})
    with pytest.raises(Paused) as paused:
        dpsynth.release(misread, **KEYS)
    words = str(paused.value)
    assert "columns.sex" in words and "--" not in words and "CONFIG" not in words
    assert balance(folder) == ["reserved"]
    release_id = re.findall(r"resume='([^']+)'", words)[0]
    done = dpsynth.release(misread, **KEYS, resume=release_id)
    assert [w.column for w in done.warnings] == ["sex"] and balance(folder) == ["closed"]
    assert done.warnings[0].sentence in repr(done) and "Warning" in done._repr_html_()


def test_a_release_that_pauses_may_be_given_up_at_the_cost_of_what_was_asked(folder: Path) -> None:
    misread = frame().replace({"sex": {"F": "Female", "M": "Male"}})
    with pytest.raises(Paused) as paused:
        dpsynth.release(misread, **KEYS, tell=lambda _: None)
    release_id = str(paused.value).split("dpsynth.abandon('")[1].split("'")[0]
    said = dpsynth.abandon(release_id)
    assert release_id in said and balance(folder) == ["abandoned"]
    account = Ledger(f"sqlite:///{folder / 'ledger.db'}", None).balance("visits")
    assert account is not None
    ended = account.releases[0]
    assert 0 < ended.cost.rho < ended.reserved.rho and "% of the cap, as" in said
    for gone in (release_id, "20300131-0a1b2c3d"):
        with pytest.raises(ConfigError, match=r"has ended|has no release"):
            dpsynth.abandon(gone)


def test_an_interrupted_release_of_a_frame_is_finished_with_the_frame(folder: Path, monkeypatch) -> None:
    release_id = interrupted()
    journal = next(folder.glob("outputs/**/journal.jsonl")).read_text().splitlines()
    assert balance(folder) == ["reserved"]
    done = dpsynth.release(frame(), **KEYS, resume=release_id)
    assert done.release_id == release_id and balance(folder) == ["closed"]
    finished = (done.folder / "private/journal.jsonl").read_text().splitlines()
    asked = [line for line in journal if "answer" in line]
    assert asked and [line for line in finished if "answer" in line][: len(asked)] == asked
    with pytest.raises(ConfigError, match="config has changed"):
        changed = {**KEYS, "columns": {"age": COLUMNS["age"]}}
        dpsynth.release(frame(), **changed, resume=interrupted())


# No cell of the frame is left anywhere.


def told_of(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with cells that would be known again: unread, unknown, and out of range."""
    return frame.assign(
        note=CANARY,
        sex=[CANARY, *frame.sex[1:]],
        cost=[NUMBER, *frame.cost[1:]],
        age=frame.age.astype(object),
    )


def leaks(text: str | bytes) -> bool:
    raw = text if isinstance(text, bytes) else text.encode()
    return any(word in raw for word in (CANARY.encode(), b"90817263"))


def own_frames(error: BaseException) -> str:
    """The part of a traceback, with local names, that lies in the package."""
    package = str(Path(dpsynth.__file__).parent)
    found = traceback.TracebackException.from_exception(error, capture_locals=True)
    return "".join(
        f"{entry.name} {entry.locals}\n" for entry in found.stack if entry.filename.startswith(package)
    )


def test_no_cell_of_a_frame_is_left_by_a_release(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done: Release = dpsynth.release(told_of(frame()), **KEYS)
    for shown in (repr(done), done._repr_html_(), str(done.plan), *capsys.readouterr()):
        assert not leaks(shown)
    assert not leaks(pickle.dumps(done))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert len(files) > 8 and not any(leaks(path.read_bytes()) for path in files)


def planted(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """An error that quotes a cell, in the check of the table or in its reading."""

    def quoting(*_: object) -> None:
        raise ValueError(f"could not convert {CANARY}")

    monkeypatch.setattr(f"dpsynth.curator.rows.memory_table.MemoryTable.{where}", quoting)


@pytest.mark.parametrize("where", ["check", "batches"])
def test_an_error_in_the_reading_of_a_frame_quotes_no_cell(folder: Path, monkeypatch, where: str) -> None:
    planted(monkeypatch, where)
    with pytest.raises(StepFailed) as failed:
        dpsynth.release(told_of(frame()), **KEYS)
    assert not leaks(str(failed.value)) and not leaks(own_frames(failed.value))
    assert failed.value.__cause__ is None and failed.value.__context__ is None


def test_a_frame_that_is_left_in_a_local_name_would_be_seen(folder: Path, monkeypatch) -> None:
    planted(monkeypatch, "batches")
    sound = pipeline.inputs_of

    def holding(spec: object, table: object) -> object:
        return sound(spec, table)

    monkeypatch.setattr(pipeline, "inputs_of", holding)
    monkeypatch.setattr(
        "dpsynth.curator.rows.memory_table.MemoryTable.__repr__", lambda self: repr(self._table)
    )
    with pytest.raises(StepFailed) as failed:
        dpsynth.release(told_of(frame()), **KEYS)
    assert leaks(own_frames(failed.value))


# The frame passes through the one door.


def test_a_frame_has_the_codes_of_its_parquet_file_at_the_door(folder: Path, monkeypatch) -> None:
    seen: list[dict[str, list[int]]] = []
    sound = counting_engine.load_rows

    def watching(*arguments: object) -> object:
        rows = sound(*arguments)
        seen.append({name: codes.tolist() for name, codes in rows.codes.items()})
        return rows

    monkeypatch.setattr(counting_engine, "load_rows", watching)
    table = told_of(frame(50)).drop(columns="age").assign(age=frame(50).age)
    table.to_parquet("visits.parquet")
    keys = {**KEYS, "privacy": {"on_empty": "go"}}
    dpsynth.release(table, **keys)
    dpsynth.release("visits.parquet", **keys)
    assert seen[0] == seen[1] and len(seen[0]["age"]) == 50
