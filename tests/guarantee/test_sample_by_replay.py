"""Releases of a secret sample, and of a table that outgrows the memory, replayed on neighbours."""

import random
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from dpsynth.config import Spec
from dpsynth.curator import UnitSample
from dpsynth.curator.rows.coded_columns import CodedColumns
from dpsynth.wings.proof.audit.replay import Transcript, observe
from tests.guarantee.wild_tables import (
    FAR,
    Row,
    base_table,
    found_on,
    neighbours,
    privacy_of,
    recorded,
    spec_for,
    write,
)

PERSONS = privacy_of("add_remove", "person", "gaussian", sample_rate=0.5)
ROWS = privacy_of("add_remove", "row", "gaussian", sample_rate=0.5)


def found_of_persons(tmp_path: Path, tries: int) -> list[str]:
    rng, rows, spec, record = recorded(tmp_path, PERSONS, "mst")
    changed = islice(neighbours(rows, "add_remove", "person", rng), tries)
    return list(found_on(tmp_path, spec, record, changed))


def test_the_sample_of_other_persons_is_the_same_whoever_comes_or_goes(tmp_path: Path) -> None:
    assert found_of_persons(tmp_path, 1) == []


def test_a_sample_that_follows_the_number_of_persons_would_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: all persons if their number is even, else nobody, so that each moves all others."""
    monkeypatch.setattr(
        UnitSample, "persons", lambda _, codes: np.full(len(codes), len(np.unique(codes)) % 2 == 0)
    )
    assert found_of_persons(tmp_path, 1)


def test_the_sample_of_other_rows_is_the_same_whether_a_last_row_is_there_or_not(tmp_path: Path) -> None:
    """Coins of rows follow from their places, so neighbours are compared that differ in the last row."""
    _, rows, spec, record = recorded(tmp_path, ROWS, "mst")
    assert list(found_on(tmp_path, spec, record, [rows[:-1], [*rows, FAR]])) == []


def in_memory_of(folder: Path, rows: list[Row], memory: int) -> tuple[Spec, Transcript]:
    folder.mkdir()
    spec = spec_for(write(folder / "x.csv", rows), privacy_of("add_remove", "person", "gaussian"))
    spec = spec.model_copy(update={"engine": spec.engine.model_copy(update={"memory": memory})})
    return spec, observe(spec, folder / "out")


def test_a_table_beyond_the_memory_is_asked_the_same_and_moves_no_further(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[object] = []
    sound = CodedColumns._write
    monkeypatch.setattr(CodedColumns, "_write", lambda self, name: written.append(name) or sound(self, name))
    rng = random.Random(5)
    rows = base_table(rng)
    in_memory_of(tmp_path / "memory", rows, 1 << 30)
    assert not written
    spec, record = in_memory_of(tmp_path / "files", rows, 8)
    assert written
    changed = islice(neighbours(rows, "add_remove", "person", rng), 1)
    assert list(found_on(tmp_path / "files", spec, record, changed)) == []
