"""The respondent's side: one report of a contract, whatever dies; and nothing raw in what leaves or stays."""

import json
import multiprocessing
import os
import stat
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, SourceError
from dpsynth.wings.local import collecting
from dpsynth.wings.local import reporting as memory_module
from dpsynth.wings.local.collecting import Side, collect_file, collect_record
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.reporting import Memory, reports_of
from dpsynth.wings.local.reports import Report, read_folder
from tests.cli.here import Command
from tests.wings.local.collections import COLUMNS, contract_for, respondents, spec_of, texts_of

RECORD = {"sex": "F", "plan": "b", "age": "3"}
CONFIG = """
release: survey
trust: local
privacy: {epsilon: 1}
columns:
  city: {type: category, values: [Oslo, Rome], missing: true}
  income: {type: number, min: 0, max: 100000, bins: 4, missing: true}
"""


def side_of(folder: Path, **more: object) -> Side:
    return Side(folder / "memory.jsonl", folder / "reports", **more)  # type: ignore[arg-type]


def reports_in(contract: Contract, folder: Path) -> set[str]:
    """The lines of all reports of a folder."""
    return {line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()}


def reports_twice(folder: Path) -> int:
    """The number of different reports that one respondent gives who is asked ten times."""
    spec, side = spec_of(), side_of(folder)
    for age in range(8):
        collect_record(spec, {**RECORD, "age": str(age)}, "me", side)
    return len(reports_in(contract_for(), side.out))


def test_a_respondent_reports_once_whatever_her_record_says_later(tmp_path: Path) -> None:
    assert reports_twice(tmp_path) == 1


SPELLINGS = ("007", "7", " 7 ", "7.0", "'7", "7\u200b", "\u0667")
NAMES = ("Zo\u00eb Lind", "ZOE\u0308 LIND", " zo\u00eb\u00a0 lind", "\uff3ao\u00eb Lind")


@pytest.mark.parametrize("spelt", [SPELLINGS, NAMES])
def test_a_respondent_reports_once_however_she_is_spelt(tmp_path: Path, spelt: tuple[str, ...]) -> None:
    """One by one, and in one file of records."""
    spec, side, contract = spec_of(), side_of(tmp_path, cap=Fraction(1)), contract_for()
    for name in spelt:
        collect_record(spec, RECORD, name, side)
    assert len(reports_in(contract, side.out)) == 1
    path = tmp_path / "records.csv"
    path.write_text("sex,plan,age,who\n" + "".join(f'F,b,3,"{name}"\n' for name in spelt), encoding="utf-8")
    assert collect_file(spec, path, "who", side).reports == 1
    assert len(reports_in(contract, side.out)) == 1


def test_a_spelling_that_makes_another_respondent_would_be_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault."""
    monkeypatch.setattr(memory_module, "canonical_id", lambda name: name)
    with pytest.raises((AssertionError, BudgetRefused)):
        test_a_respondent_reports_once_however_she_is_spelt(tmp_path, SPELLINGS)


def test_a_report_that_an_older_build_remembers_by_its_spelling_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, side = spec_of(), side_of(tmp_path)
    with monkeypatch.context() as older:
        older.setattr(memory_module, "canonical_id", lambda name: name)
        collect_record(spec, RECORD, "Me", side)
    collect_record(spec, RECORD, "Me", side)
    assert len(reports_in(contract_for(), side.out)) == 1


@pytest.mark.parametrize("name", ["", " ", "n/a", "NULL", "\u200b"])
def test_a_record_of_nobody_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match="it can't be told whose it is"):
        collect_record(spec_of(), RECORD, name, side_of(tmp_path))
    assert not (tmp_path / "reports").exists()


def test_a_budget_spent_twice_would_be_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = Memory.report

    def once(self: Memory, name: str, contract: str) -> Report | None:
        found = forgetful(self, name, contract)
        self._reports.clear()
        return found

    monkeypatch.setattr(Memory, "report", once)
    monkeypatch.setattr(Memory, "_read", _unread(Memory._read))
    assert reports_twice(tmp_path) > 1


def _unread(sound: object) -> object:
    def read(self: Memory) -> None:
        sound(self)  # type: ignore[operator]
        self._reports.clear()

    return read


def test_a_failed_sending_sends_the_same_report_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, side = spec_of(), side_of(tmp_path)

    def dies(*_: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(collecting, "write_reports", dies)
        collect_record(spec, RECORD, "me", side)
    (line,) = [json.loads(text) for text in side.memory.read_text().splitlines()[1:]]
    collect_record(spec, RECORD, "me", side)
    (sent,) = map(json.loads, reports_in(contract_for(), side.out))
    assert [sent["id"], sent["answers"]] == line["report"]


def test_a_report_is_synced_before_it_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    happened: list[str] = []
    fsync, written = os.fsync, collecting.write_reports

    def synced(handle: int) -> None:
        happened.append("synced")
        fsync(handle)

    def sent(*args: object) -> Path:
        happened.append("sent")
        return written(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(memory_module.os, "fsync", synced)
    monkeypatch.setattr(collecting, "write_reports", sent)
    side = side_of(tmp_path)
    collect_record(spec_of(), RECORD, "one", side)
    happened.clear()
    collect_record(spec_of(), RECORD, "two", side)
    assert happened[:2] == ["synced", "sent"]


def test_a_torn_line_was_never_sent_and_is_drawn_again(tmp_path: Path) -> None:
    contract, path = contract_for(), tmp_path / "memory.jsonl"
    texts = texts_of(contract, respondents(2))
    with Memory(path) as memory:
        first = reports_of(contract, ["a"], texts, memory)
    whole = path.read_bytes()
    with Memory(path) as memory:
        reports_of(contract, ["b"], texts, memory)
    longer = path.read_bytes()
    for length in range(len(whole), len(longer), 7):
        path.write_bytes(longer[:length])
        with Memory(path) as memory:
            assert path.read_bytes() == whole
            assert reports_of(contract, ["a"], texts, memory) == first


@pytest.mark.parametrize("damage", [b"{}\n", b"nothing\n", b'{"format":"x","key":"00"}\n', b"\xff\n"])
def test_a_damaged_memory_makes_no_report(tmp_path: Path, damage: bytes) -> None:
    side = side_of(tmp_path)
    collect_record(spec_of(), RECORD, "me", side)
    header, *rest = side.memory.read_bytes().splitlines(keepends=True)
    for content in (damage + b"".join(rest), header + damage):
        side.memory.write_bytes(content)
        with pytest.raises(DpsynthError, match="damaged"):
            collect_record(spec_of(), RECORD, "other", side)


def test_the_memory_is_its_owners_alone(tmp_path: Path) -> None:
    side = side_of(tmp_path)
    collect_record(spec_of(), RECORD, "me", side)
    assert stat.S_IMODE(side.memory.stat().st_mode) == 0o600
    side.memory.chmod(0o644)
    collect_record(spec_of(), RECORD, "me", side)
    assert stat.S_IMODE(side.memory.stat().st_mode) == 0o600


def test_a_memory_that_cannot_be_opened_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "memory.jsonl").mkdir()
    with pytest.raises(ConfigError, match="--memory"):
        collect_record(spec_of(), RECORD, "me", side_of(tmp_path))


def test_a_cap_holds_over_all_contracts(tmp_path: Path) -> None:
    side = side_of(tmp_path, cap=Fraction(5, 2))
    for number in range(2):
        collect_record(spec_of(release=f"survey-{number}"), RECORD, "me", side)
    with pytest.raises(BudgetRefused, match="--cap"):
        collect_record(spec_of(release="survey-2"), RECORD, "me", side)
    # The same report again costs nothing, and another respondent has a budget of her own.
    collect_record(spec_of(release="survey-1"), RECORD, "me", side)
    collect_record(spec_of(release="survey-2"), RECORD, "you", side)


def test_an_answer_that_is_none_of_the_values_is_refused_without_a_quote(tmp_path: Path) -> None:
    side = side_of(tmp_path)
    with pytest.raises(SourceError, match="none of its values") as refused:
        collect_record(spec_of(), {**RECORD, "plan": "CANARY"}, "me", side)
    assert "CANARY" not in str(refused.value)
    with pytest.raises(SourceError, match="missing"):
        collect_record(spec_of(), {"sex": "F", "age": "1"}, "me", side)
    with pytest.raises(SourceError, match="no column"):
        collect_record(spec_of(), {**RECORD, "name": "x"}, "me", side)
    assert not side.out.exists()


def test_respondents_of_a_file_report_once_each(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("who,sex,plan,age\nann,F,a,1\nbob,M,b,2\nann,M,c,7\n")
    side = side_of(tmp_path)
    assert collect_file(spec_of(), path, "who", side).reports == 2
    path.write_text("who,sex,plan,age\nbob,F,a,1\ncyd,M,b,2\n")
    collect_file(spec_of(), path, "who", side)
    tally = read_folder(side.out, contract_for())
    assert (tally.reports, tally.repeated) == (3, 1)
    path.write_text("who,sex,plan,age\nbob,F,a,1\n,M,b,2\n")
    with pytest.raises(SourceError, match="column who"):
        collect_file(spec_of(), path, "who", side)


def test_processes_write_into_one_folder(tmp_path: Path) -> None:
    """Two of them on one side, with the same respondents; one on another side; in both forms."""
    codes = respondents(300)
    labels = {
        name: np.array(column["values"]) if "values" in column else np.arange(8)
        for name, column in COLUMNS.items()
    }  # type: ignore[index]
    lines = [",".join(str(labels[c][codes[c][i]]) for c in COLUMNS) for i in range(300)]
    for name, some in (("one", range(200)), ("two", range(200, 300))):
        text = "".join(f"p{i},{lines[i]}\n" for i in some)
        (tmp_path / f"{name}.csv").write_text("who,sex,plan,age\n" + text)
    runs = [("a", "one", ".jsonl"), ("a", "one", ".parquet"), ("b", "two", ".parquet")]
    forks = multiprocessing.get_context("fork")
    started = [
        forks.Process(
            target=collect_file,
            args=(
                spec_of(),
                tmp_path / f"{records}.csv",
                "who",
                Side(tmp_path / f"{memory}.jsonl", tmp_path / "out", form),
            ),
        )
        for memory, records, form in runs
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(600)
    assert [process.exitcode for process in started] == [0, 0, 0]
    tally = read_folder(tmp_path / "out", contract_for())
    assert (tally.reports, tally.repeated, tally.broken_files) == (300, 200, 0)
    assert not any(tally.faults.values())
    assert len(list((tmp_path / "out").iterdir())) == 3


def test_nothing_raw_is_in_reports_memory_or_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Canaries: names of respondents, a number between bins, and texts that are no values."""
    monkeypatch.setenv("DPSYNTH_MEMORY", str(tmp_path / "memory.jsonl"))
    dpsynth, said = Command(tmp_path, monkeypatch, capfd), ""
    Path("survey.yaml").write_text(CONFIG)
    people = [f"canary-person-{i}" for i in range(40)]
    Path("records.csv").write_text(
        "who,city,income\n" + "".join(f"{p},canary-town,48273.61\n" for p in people)
    )
    for arguments in (
        ["collect", "survey.yaml", "--records", "records.csv", "--id", "who"],
        ["collect", "survey.yaml", "--records", "records.csv", "--id", "who", "--format", "parquet"],
        [
            "collect",
            "survey.yaml",
            "--answer",
            "city=Rome",
            "--answer",
            "income=48273.61",
            "--respondent",
            people[0],
        ],
        ["collect", "survey.yaml", "--answer", "city=canary-town"],
        ["collect", "survey.yaml", "--records", "records.csv", "--id", "city", "--cap", "0.5"],
    ):
        ended = dpsynth(*arguments)
        said += ended.out + ended.err
    left = b"".join(path.read_bytes() for path in [*Path("reports").iterdir(), Path("memory.jsonl")])
    left += said.encode()
    assert len(left) > 10_000
    for canary in (b"canary", b"48273", b"Rome-"):
        assert canary not in left
    assert b"none of its values" in left


def test_the_contract_changes_with_all_that_a_respondent_agrees_to() -> None:
    base = contract_for().digest
    other = {**COLUMNS, "age": {"type": "integer", "min": 0, "max": 6, "missing": False}}
    changed = [
        contract_for(2),
        contract_for(columns=other),
        contract_for(release="another"),
        contract_for(local={"protocol": "unary"}),
        contract_for(local={"ask": "all"}),
        contract_for(structure="independent"),
    ]
    assert len({base, *(c.digest for c in changed)}) == 7
    assert contract_for(sample={"seed": 3}).digest == base


def test_losses_of_all_questions_add_up_to_epsilon() -> None:
    for ask in ("one", "all"):
        contract = contract_for(1, local={"ask": ask})
        losses = [q.randomiser.odds for q in contract.questions]
        assert contract.epsilon == 1
        total = (
            float(np.sum([np.log(float(odds)) for odds in losses]))
            if ask == "all"
            else np.log(float(max(losses)))
        )
        assert 1 - 1e-6 < total <= 1


def test_records_beyond_declared_values_count_as_public_ones() -> None:
    contract = contract_for()
    cells = pa.array(["nonsense", None, "F"], pa.string())
    assert set(contract.compiled.columns[0].encode(cells).tolist()) <= {0, 1}
