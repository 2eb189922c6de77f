"""Malformed tables and configs, each made from a number, end in an outcome and never in an accident."""

import json
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from dpsynth.config import document
from dpsynth.curator.rows import cell_texts
from dpsynth.curator.rows import files as source
from dpsynth.errors import SourceError
from dpsynth.ledger.ledger import Reading
from tests.fuzz import attempts
from tests.fuzz.attempts import FUZZ

QUICK = {
    "read csv": 2, "read parquet": 2, "plan": 2, "init csv": 1, "init parquet": 1, "release csv": 1,
    "release parquet": 1,
}  # fmt: skip
MANY = {
    "read csv": 3400, "read parquet": 4600, "plan": 2000, "init csv": 100, "init parquet": 300,
    "release csv": 10, "release parquet": 40,
}  # fmt: skip
"""Inputs of each kind."""
MEGABYTES = 700


def fuzzed(counts: dict[str, int], first: int, folder: Path) -> Counter[str]:
    """Outcomes of many inputs, attempted in a process of their own."""
    program = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.fuzzer"]
    done = subprocess.run(
        [*program, str(folder), str(first), json.dumps(counts)], capture_output=True, text=True, timeout=7200
    )
    assert done.returncode == 0, f"{(folder / 'now').read_text()}{done.stderr[-4000:]}"
    told = json.loads(done.stdout)
    assert told["megabytes"] < MEGABYTES
    print(f"\ninputs {first} and on, {told['megabytes']:.0f} MB")
    for what, count in counts.items():
        found = told["outcomes"][what]
        assert {kind: sum(o.values()) for kind, o in found.items()} == dict.fromkeys(FUZZ[what].kinds, count)
        for kind, outcomes in found.items():
            print(f"  {what}: {kind}: {outcomes}")
    return sum((Counter(o) for found in told["outcomes"].values() for o in found.values()), Counter())


def test_some_hundred_malformed_inputs_end_in_a_result_or_in_one_plain_paragraph(tmp_path: Path) -> None:
    outcomes = fuzzed(QUICK, 0, tmp_path)
    assert min(outcomes["accepted"], outcomes["refused"]) > 25


@pytest.mark.slow
@pytest.mark.parametrize("what", FUZZ)
def test_many_malformed_inputs_end_in_a_result_or_in_one_plain_paragraph(what: str, tmp_path: Path) -> None:
    fuzzed({what: MANY[what]}, 1_000_000, tmp_path)


def test_the_slow_suite_has_at_least_100_000_inputs() -> None:
    assert sum(MANY[what] * len(FUZZ[what].kinds) for what in FUZZ) >= 100_000


def attempt(what: str, kind: str, count: int, folder: Path) -> None:
    for number in range(count):
        FUZZ[what](kind, number, folder)


def test_a_reader_that_takes_bytes_for_text_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_texts, "is_text", lambda kind: False)
    with pytest.raises((AssertionError, pa.ArrowInvalid)):
        attempt("read parquet", "odd types", 50, tmp_path)


def test_a_message_that_quotes_a_cell_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def quoting(path: Path, *rest: object) -> object:
        del rest
        raise SourceError(f"can't read {path.read_bytes()[-60:]!r}")

    monkeypatch.setattr(source, "csv_header", quoting)
    with pytest.raises(AssertionError, match="K4N4RY"):
        attempt("read csv", "truncated", 50, tmp_path)


def test_a_charge_before_the_source_is_accepted_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Reading, "foreseen", lambda known, entry: entry)
    with pytest.raises(AssertionError, match="reserved"):
        attempt("release parquet", "truncated", 3, tmp_path)


def test_a_parser_that_trusts_its_depth_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "RecursionError", KeyError, raising=False)
    with pytest.raises(RecursionError):
        attempt("plan", "deep", 100, tmp_path)


def test_an_input_can_be_made_again_from_its_number() -> None:
    for fuzz in attempts.FUZZ.values():
        for name, make in fuzz.kinds.items():
            assert make(random.Random(f"{name} 1")) == make(random.Random(f"{name} 1"))
