"""Hostile reports: whatever a folder holds, it is counted and left out, and the sound reports are used."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import DpsynthError, SourceError
from dpsynth.wings.local.estimates import local_answers
from dpsynth.wings.local.reporting import Memory, reports_of
from dpsynth.wings.local.reports import Fault, Report, parsed, read_folder, write_reports
from tests.examples import examples
from tests.wings.local.collections import contract_for, respondents, texts_of

ONE, ALL = contract_for(local={"ask": "one"}), contract_for(local={"ask": "all", "protocol": "unary"})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


def sound(folder: Path, number: int = 20) -> list[Report]:
    """Reports that are sound."""
    with Memory(folder / "memory.jsonl") as memory:
        people = [str(i) for i in range(number)]
        return reports_of(ONE, people, texts_of(ONE, respondents(number)), memory)


@given(st.binary(max_size=60) | st.text(max_size=60))
@examples(300)
def test_any_text_is_no_report(text: bytes | str) -> None:
    for contract in (ONE, ALL):
        assert isinstance(parsed(text, contract), Fault)


@given(JSON, JSON, JSON)
@examples(300)
def test_any_values_are_no_report(contract: object, name: object, answers: object) -> None:
    for whole in (
        {"contract": contract, "id": name, "answers": answers},
        {"contract": ONE.digest, "id": "0" * 32, "answers": answers},
        {"contract": ONE.digest, "id": "0" * 32, "answers": [[0, answers]]},
        {"contract": ONE.digest, "id": "0" * 32, "answers": [[answers, 0]]},
    ):
        found = parsed(json.dumps(whole), ONE)
        if isinstance(found, Report):
            ((number, answer),) = found.answers
            assert ONE.questions[number].randomiser.well_formed(answer)


def variations(report: Report) -> list[str]:
    """Texts that are nearly a report."""
    record = json.loads(report.text(ONE.digest))
    (number, answer), questions = record["answers"][0], len(ONE.questions)
    changed: list[object] = [
        {**record, "more": 1},
        {k: v for k, v in record.items() if k != "id"},
        {**record, "id": record["id"].upper() + "A"},
        {**record, "id": 7},
        {**record, "contract": 7},
        {**record, "answers": []},
        {**record, "answers": record["answers"] * 2},
        {**record, "answers": [[questions, answer]]},
        {**record, "answers": [[-1, answer]]},
        {**record, "answers": [[True, answer]]},
        {**record, "answers": [[number, 10**9]]},
        {**record, "answers": [[number, [answer]]]},
        {**record, "answers": [[float(number), answer]]},
        [record],
    ]
    return [*map(json.dumps, changed), "[" * 100_000, "9" * 5_000, '{"contract":NaN}', ""]


def test_a_folder_of_anything_gives_the_sound_reports(tmp_path: Path) -> None:
    reports, folder = sound(tmp_path), tmp_path / "reports"
    write_reports(folder, reports[:12], ONE.digest)
    write_reports(folder, reports[8:], ONE.digest, ".parquet")
    bad = variations(reports[0])
    (folder / "bad.jsonl").write_text("\n".join(bad) + "\n")
    (folder / "long.jsonl").write_bytes(b"x" * (3 << 20) + b"\n" + reports[0].text(ONE.digest).encode())
    other = contract_for(3)
    write_reports(folder, reports[:5], other.digest)
    (folder / "noise.jsonl").write_bytes(bytes(range(256)) * 40)
    (folder / "noise.parquet").write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1")
    (folder / "empty.parquet").write_bytes(b"")
    pq.write_table(pa.table({"id": [1, 2]}), folder / "strange.parquet")
    pq.write_table(
        pa.table({"contract": [ONE.digest, None], "id": ["0" * 32, None], "answers": ["[[", None]}),
        folder / "nulls.parquet",
    )
    (folder / "notes.txt").write_text("no reports")
    (folder / ".reports-1.partial").write_text(reports[0].text(ONE.digest))
    (folder / "inner.jsonl").mkdir()
    tally = read_folder(folder, ONE)
    assert tally.reports == 20
    assert tally.repeated == 4 + 1
    assert tally.faults[Fault.OTHER_CONTRACT] == 5
    assert tally.faults[Fault.MALFORMED] >= len(bad) - 1 + 1 + 2
    assert tally.broken_files == 3
    assert sum(map(len, tally.answers)) == 20


def test_a_repeated_id_counts_once_whatever_it_says(tmp_path: Path) -> None:
    answer = ONE.questions[0].randomiser.randomise(np.zeros(1, np.int64))[0]
    first = Report("0" * 32, ((0, answer),))
    folder = tmp_path / "reports"
    write_reports(folder, [first] * 50, ONE.digest)
    tally = read_folder(folder, ONE)
    assert (tally.reports, tally.repeated) == (1, 49)


def test_too_few_reports_are_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "reports").mkdir()
    with pytest.raises(SourceError, match="0 reports"):
        local_answers(ONE, read_folder(tmp_path / "reports", ONE))
    with pytest.raises(DpsynthError, match="can't be read"):
        read_folder(tmp_path / "nothing", ONE)
