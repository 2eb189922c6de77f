"""Collection at the respondent's side: records are randomised there, one by one or a table at a time.

Invariant: there is no curator here, and no private table of anyone else's. Records are read where they are,
and nothing of them is written, sent or said but randomised reports.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa

from dpsynth.columns.identifier import NOBODY, canonical_id
from dpsynth.config import Spec, compiled
from dpsynth.config.files.form import FileForm, named_form
from dpsynth.config.files.opening import unheard
from dpsynth.curator import Batch, MemoryTable, as_texts, read_cells, texts_of_objects
from dpsynth.errors import ConfigError, SourceError
from dpsynth.wings.local.contract import Contract, contract_of
from dpsynth.wings.local.reporting import Memory, Records, reports_of, single_record
from dpsynth.wings.local.reports import write_reports

MEMORY = "DPSYNTH_MEMORY"
"""Environment variable that names the memory of reports."""


def usual_memory() -> Path:
    """The memory of reports of this user."""
    named = os.environ.get(MEMORY)
    return Path(named) if named else Path.home() / ".local" / "state" / "dpsynth" / "reports.jsonl"


@dataclass(frozen=True)
class Side:
    """A respondent's side.

    Attributes:
        memory: path of the memory of reports.
        out: the folder that reports are written to.
        form: ".jsonl" or ".parquet".
        cap: the most that a respondent's reports of all contracts may cost together; None for no cap.
    """

    memory: Path
    out: Path
    form: str = ".jsonl"
    cap: Fraction | None = None


@dataclass(frozen=True)
class Sent:
    """Reports that were written.

    Attributes:
        path: the file of reports.
        reports: their number.
        epsilon: the privacy loss of each.
    """

    path: Path
    reports: int
    epsilon: Fraction


def contract_for(spec: Spec) -> Contract:
    """The contract of a config of the local model.

    Raises:
        ConfigError: the config is of the central model, or no contract keeps to it.
    """
    if spec.trust != "local":
        raise ConfigError(
            "trust must be local to collect reports and to aggregate them: this config is of a curator's "
            "table, which dpsynth run releases."
        )
    return contract_of(compiled(spec))


@unheard()
def collect_record(spec: Spec, answers: Mapping[str, object], respondent: str, side: Side) -> Sent:
    """Report one record.

    Args:
        spec: the contract's config.
        answers: the record by column: texts, or values as a cell of a table in memory holds them.
        respondent: a name of the respondent on this side; it is never sent.
        side: this side.

    Raises:
        ConfigError, SourceError, BudgetRefused, DpsynthError: nothing was sent.
    """
    contract = contract_for(spec)
    texts = texts_of_objects(np.array([*answers.values(), None], dtype=object)).to_pylist()
    record = single_record(contract, dict(zip(answers, texts, strict=False)))
    return _reported(contract, [respondent], record, side, "as the name of its respondent")


@unheard()
def collect_file(spec: Spec, path: Path, column: str, side: Side) -> Sent:
    """Report the records of a file.

    Args:
        spec: the contract's config.
        path: a file in which each respondent has a row.
        column: the column that says whose a row is; it is never sent.
        side: this side.

    Raises:
        ConfigError, SourceError, BudgetRefused, DpsynthError: nothing was sent.
    """
    contract = contract_for(spec)
    cells = read_cells(path, _read_columns(contract, column), _form(path), keep_broken=False)
    return _collected(contract, cells, column, side)


@unheard()
def collect_table(spec: Spec, table: MemoryTable, column: str, side: Side) -> Sent:
    """Report the records of a table in memory; arguments and errors as of ``collect_file``."""
    contract = contract_for(spec)
    return _collected(contract, table.batches(_read_columns(contract, column)), column, side)


def _read_columns(contract: Contract, column: str) -> list[str]:
    return list(dict.fromkeys([*(c.source for c in contract.compiled.columns), column]))


def _collected(contract: Contract, cells: Iterable[Batch], column: str, side: Side) -> Sent:
    read = list(as_texts(cells))
    whole: Records = {
        name: pa.concat_arrays([batch[name] for batch in read] or [pa.array([], pa.string())])
        for name in _read_columns(contract, column)
    }
    people = [person or "" for person in whole[column].to_pylist()]
    return _reported(contract, people, whole, side, f"in column {column}")


def _form(path: Path) -> FileForm:
    kind, compression, separator = named_form(str(path))
    if kind is None:
        raise ConfigError(
            "The file of records must have a name that ends in .csv, .tsv, .parquet or .xlsx, or, packed, in "
            ".csv.gz and the like."
        )
    return FileForm(kind, separator, "utf-8", compression, True, None)


def _reported(contract: Contract, people: list[str], records: Records, side: Side, where: str) -> Sent:
    if any(canonical_id(person) == NOBODY for person in people):
        raise SourceError(
            f"A record has nothing {where}, or a mark such as n/a, so it can't be told whose it is, and "
            "whether it was reported before. Nothing was randomised."
        )
    with Memory(side.memory) as memory:
        reports = reports_of(contract, people, records, memory, side.cap)
    path = write_reports(side.out, reports, contract.digest, side.form)
    return Sent(path, len(reports), contract.epsilon)
