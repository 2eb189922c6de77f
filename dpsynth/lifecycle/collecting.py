"""Collection at the respondent's side: records are randomised there, one by one or a file at a time.

Invariant: there is no curator here, and no private table of anyone else's. A file of records is read where it
is, and nothing of it is written, sent or said but randomised reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

from dpsynth.config import Spec, compiled
from dpsynth.curator import read_batches
from dpsynth.errors import ConfigError, SourceError
from dpsynth.files.form import FileForm, named_form
from dpsynth.local.contract import Contract, contract_of
from dpsynth.local.memory import Memory
from dpsynth.local.reporting import Records, reports_of, single_record
from dpsynth.local.reports import write_reports


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


def collect_record(spec: Spec, answers: Mapping[str, str], respondent: str, side: Side) -> Sent:
    """Report one record.

    Args:
        spec: the contract's config.
        answers: the record, as text by column.
        respondent: a name of the respondent on this side; it is never sent.
        side: this side.

    Raises:
        ConfigError, SourceError, BudgetRefused, DpsynthError: nothing was sent.
    """
    contract = contract_for(spec)
    return _reported(contract, [respondent], single_record(contract, answers), side)


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
    names = [c.name for c in contract.compiled.columns]
    read = list(read_batches(path, list(dict.fromkeys([*names, column])), _form(path), keep_broken=False))
    whole: Records = {
        name: pa.concat_arrays([batch[name] for batch in read] or [pa.array([], pa.string())])
        for name in (*names, column)
    }
    people = whole[column].to_pylist()
    if any(person is None or not person.strip() for person in people):
        raise SourceError(
            f"A record has nothing in column {column}, so it can't be told whose it is, and whether it was "
            "reported before. Nothing was randomised."
        )
    return _reported(contract, people, whole, side)


def _form(path: Path) -> FileForm:
    kind, compression, separator = named_form(str(path))
    if kind is None:
        raise ConfigError(
            "--records must be a file whose name ends in .csv, .tsv, .parquet or .xlsx, or, packed, in "
            ".csv.gz and the like."
        )
    return FileForm(kind, separator, "utf-8", compression, True, None)


def _reported(contract: Contract, people: list[str], records: Records, side: Side) -> Sent:
    with Memory(side.memory) as memory:
        reports = reports_of(contract, people, records, memory, side.cap)
    path = write_reports(side.out, reports, contract.digest, side.form)
    return Sent(path, len(reports), contract.epsilon)
