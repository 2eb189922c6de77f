"""Audits of linked tables: files of several tables are replayed and attacked, a household at a time."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dpsynth.config import Spec, from_mapping
from dpsynth.wings.proof.audit import Extent, audit
from dpsynth.wings.tables.wide_rows import WideTable
from tests.wings.tables.linked import TABLES

FEW = Extent(rows=40, neighbours=6, releases=0)


def spec_of(most: int = 3, roles: int = 1, *, epsilon: float = 2.0, **more: object) -> Spec:
    """Households of so many persons, of whom some are told apart, and one stands for the others.

    With further keys of the configuration persons have no trips.
    """
    tables: dict[str, Any] = copy.deepcopy(dict(TABLES))
    tables["persons"]["parent"] |= {"max_children": most, "roles": roles}
    if more:
        del tables["trips"]
    privacy = {"epsilon": epsilon, "delta": 1e-6}
    return from_mapping(
        {
            "tables": tables,
            "privacy": privacy,
            "ledger": {"dataset": "homes", "cap": {"epsilon": 500}},
            **more,
        }
    )


def plant_a_row_for_each_child(patch: pytest.MonkeyPatch, times: int = 1) -> None:
    """Rows of a join: a household counts for each of its persons, and is charged as if it had one."""
    sound = WideTable.batches

    def batches(self: WideTable, columns: Any) -> Any:
        for batch in sound(self, columns):
            many = np.maximum(np.asarray(batch["persons"]) * times, 1)
            joined = {
                c: cells.take(pa.array(np.repeat(np.arange(len(many)), many))) for c, cells in batch.items()
            }
            yield {**joined, "house": pa.array(map(str, range(many.sum())))}

    patch.setattr(WideTable, "batches", batches)


def test_files_of_linked_tables_are_audited_and_most_of_the_budget_is_seen() -> None:
    found = audit(spec_of(), FEW)
    assert found.faults == ()
    assert found.claim.unit.startswith("one household: all rows with the same house, in all tables")
    assert 0.5 < found.replayed.dearest <= 1 + 1e-9
    assert all(reached.largest <= 1 for reached in found.replayed.reached)


def test_households_that_count_once_for_each_child_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_a_row_for_each_child(monkeypatch)
    assert any("sensitivity" in fault for fault in audit(spec_of(structure="auto"), FEW).faults)


ATTACKED = Extent(rows=20, neighbours=0, releases=12)


@pytest.mark.slow
def test_who_seeks_a_household_of_rare_members_shows_no_more_than_is_claimed() -> None:
    found = audit(spec_of(epsilon=300, structure="auto"), ATTACKED)
    assert found.faults == () and found.attacked is not None
    # Noise is so small that all are told apart, which shows an epsilon of 1.02 with 12 releases of each.
    assert 0.5 < found.attacked.transcript.epsilon <= 300


@pytest.mark.slow
def test_who_seeks_a_household_that_counts_for_each_child_refutes_the_claim(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant_a_row_for_each_child(monkeypatch, 25)
    found = audit(spec_of(epsilon=0.5, structure="independent"), ATTACKED)
    assert any("an attacker on the answers shows epsilon" in fault for fault in found.faults)
