"""Replays of the questions that ask for many distances at once, on the terms of a config.

A config has one number of columns, so the releases that are replayed ask for one number of distances. Here a
curator is asked for those of narrow and of wide tables, by the exam and as a strategy asks for them.

Invariant: the tables are made up, and the unit moves every distance as far as the relation allows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finished_table import CodedRows, FinishedTable
from dpsynth.curator import Journal, Terms
from dpsynth.curator.table import PrivateTable
from dpsynth.errors import DpsynthError
from dpsynth.plan.plan import Plan, exam_of
from dpsynth.wings.proof.audit.losses import drawn_noise
from dpsynth.wings.proof.audit.observed_door import Transcript, observers

COLUMNS = (22, 60)
"""Numbers of columns of the tables; their exams have 289 and 1 870 distances."""
_ROWS = 60


def many_distances(plan: Plan, folder: Path) -> Iterator[tuple[str, Transcript, Transcript | str]]:
    """For each number of columns the change in words, a transcript, and that of the neighbour.

    Words of what contradicts the record come in place of the latter.

    Args:
        plan: the plan of the config, with its terms.
        folder: a folder for journals, which is made and removed.
    """
    terms = Terms(plan.neighbours, plan.measure, plan.whole.budget, plan.noise)
    for columns in COLUMNS:
        domain = Domain({f"column {i}": 2 for i in range(columns)})
        cliques = [examined.clique for examined in exam_of(domain, ())]
        table, neighbour = _pair(domain, plan.neighbours)
        did = "is exchanged" if plan.neighbours.relation == "replace_one" else "comes"
        folder.mkdir()
        try:
            record = _asked(table, terms, cliques, Journal.create(folder / "journal.jsonl", {}))
            again = _again(neighbour, terms, cliques, folder, record)
        finally:
            shutil.rmtree(folder)
        yield f"a unit {did}, {len(cliques):,} distances", record, again


def _again(
    neighbour: PrivateTable, terms: Terms, cliques: list[Clique], folder: Path, record: Transcript
) -> Transcript | str:
    noise = drawn_noise([record])
    if not noise.as_stated:
        return f"noise is {noise.ratio:.3f} times as large as stated"
    try:
        return _asked(neighbour, terms, cliques, Journal.open(folder / "journal.jsonl"))
    except DpsynthError as error:
        return f"the replay ended in {type(error).__name__}"


@dataclass(frozen=True)
class _FirstCell:
    """Estimates with all rows in the first cell: a number of them that no count reaches.

    Attributes:
        domain: the domain of the columns.
        rows: the number of rows.
    """

    domain: Domain
    rows: int

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        """The estimate of a marginal."""
        found = np.zeros(self.domain.shape(clique))
        found[(0,) * len(clique)] = self.rows
        return found

    def fingerprint(self) -> str:
        """The same for all: there is one set of estimates."""
        return "all rows in the first cell"


def _pair(domain: Domain, near: Neighbours) -> tuple[PrivateTable, PrivateTable]:
    """Two tables of which one has a unit of last codes that the other lacks, or has with first codes."""
    others = {c: (np.arange(_ROWS) >> i % 6 & 1).astype(np.uint8) for i, c in enumerate(domain.columns)}

    def table(unit: list[int]) -> PrivateTable:
        own = np.repeat(np.array(unit, np.uint8), near.max_rows)
        codes = {c: np.concatenate([cells, own]) for c, cells in others.items()}
        return PrivateTable(domain, codes, _ROWS + len(own))

    return table([0] if near.relation == "replace_one" else []), table([1])


def _asked(table: PrivateTable, terms: Terms, cliques: list[Clique], journal: Journal) -> Transcript:
    """The transcript of both questions, each for half of the budget."""
    transcript = Transcript()
    many = 2 * (_ROWS + terms.neighbours.l1)
    finished = CodedRows()
    finished.add({c: np.zeros(2, np.uint8) for c in table.domain.columns})
    try:
        curator = observers(transcript)[0](table, terms, journal)
        curator.examine(cliques, FinishedTable(finished, many), terms.budget / 2)
        curator.errors(cliques, _FirstCell(table.domain, many), terms.budget / 2)
    finally:
        journal.close()
    return transcript
