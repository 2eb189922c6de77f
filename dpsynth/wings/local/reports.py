"""Reports of respondents: their form, and the reading of a folder of them.

A report is a JSON object of three keys: ``contract``, the digest of what the respondent agreed to; ``id``,
drawn at random by her; ``answers``, a list of pairs [number of the question, randomised answer]. Files hold a
report a line (``.jsonl``), or a report a row with the answers as JSON text (``.parquet``).

Invariant: reports come from anywhere, so a reader takes nothing on trust. A text that is no report of the
contract is counted and left out, whatever it holds, and never ends the reading. A report with an id that was
read before is left out too: whoever sends one twice counts once.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from dpsynth.errors import DpsynthError
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.randomisers import Answer

LINES, PARQUET = ".jsonl", ".parquet"
_ID_DIGITS = 32
_HEX = frozenset("0123456789abcdef")
_LONGEST_LINE = 1 << 20
_ROWS_A_BATCH = 1 << 12
_MOST_ROWS_A_GROUP = 1 << 24
_SCHEMA = pa.schema([(name, pa.string()) for name in ("contract", "id", "answers")])
_KEYS = frozenset(_SCHEMA.names)


@dataclass(frozen=True)
class Report:
    """A report.

    Attributes:
        id: 32 random hexadecimal digits, which say nothing of the respondent.
        answers: the randomised answers, each with the number of its question.
    """

    id: str
    answers: tuple[tuple[int, Answer], ...]

    def text(self, contract: str) -> str:
        """The report as a line of JSON, without a line feed."""
        record = {"contract": contract, "id": self.id, "answers": self.answers}
        return json.dumps(record, separators=(",", ":"))


class Fault(Enum):
    """The reason why a text isn't used as a report."""

    MALFORMED = "malformed"
    OTHER_CONTRACT = "of another contract"


@dataclass(eq=False)
class Tally:
    """The reports of a folder.

    Attributes:
        answers: the answers to each question, in the order of the contract.
        reports: number of reports that are used.
        repeated: reports left out because their id was read before.
        faults: number of texts left out, by fault.
        broken_files: files of which a part could not be read at all.
    """

    answers: tuple[list[Answer], ...]
    reports: int = 0
    repeated: int = 0
    faults: dict[Fault, int] = field(default_factory=lambda: dict.fromkeys(Fault, 0))
    broken_files: int = 0


def parsed(text: bytes | str, contract: Contract) -> Report | Fault:
    """The report in a text of JSON, or its fault."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return Fault.MALFORMED
    return checked(record, contract)


def checked(record: object, contract: Contract) -> Report | Fault:
    """The report in JSON values, or its fault."""
    if not isinstance(record, dict) or record.keys() != _KEYS:
        return Fault.MALFORMED
    if record["contract"] != contract.digest:
        return Fault.OTHER_CONTRACT if isinstance(record["contract"], str) else Fault.MALFORMED
    name, answers = record["id"], record["answers"]
    if not isinstance(name, str) or len(name) != _ID_DIGITS or not _HEX.issuperset(name):
        return Fault.MALFORMED
    if not isinstance(answers, list) or len(answers) != (1 if contract.one else len(contract.questions)):
        return Fault.MALFORMED
    for place, pair in enumerate(answers):
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) is not int:
            return Fault.MALFORMED
        number = pair[0]
        if not 0 <= number < len(contract.questions) or (not contract.one and number != place):
            return Fault.MALFORMED
        if not contract.questions[number].randomiser.well_formed(pair[1]):
            return Fault.MALFORMED
    return Report(name, tuple((number, answer) for number, answer in answers))


def read_folder(folder: Path, contract: Contract) -> Tally:
    """The tally of all reports in the files of a folder, in the order of their names.

    Raises:
        DpsynthError: the folder can't be read.
    """
    tally = Tally(tuple([] for _ in contract.questions))
    seen: set[str] = set()
    try:
        paths = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    except OSError as error:
        raise DpsynthError(f"The folder of reports {folder} can't be read: {error.strerror}.") from None
    for path in paths:
        try:
            if path.suffix == LINES:
                with path.open("rb") as file:
                    _count((parsed(line, contract) for line in _lines(file)), tally, seen)
            elif path.suffix == PARQUET:
                _count(_rows(path, contract), tally, seen)
        except (OSError, ValueError, KeyError, MemoryError, pa.ArrowException):
            tally.broken_files += 1
    return tally


def _count(found: Iterable[Report | Fault], tally: Tally, seen: set[str]) -> None:
    for report in found:
        if isinstance(report, Fault):
            tally.faults[report] += 1
        elif report.id in seen:
            tally.repeated += 1
        else:
            seen.add(report.id)
            tally.reports += 1
            for number, answer in report.answers:
                tally.answers[number].append(answer)


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a file; of one that is too long the beginning, which is no report."""
    while line := file.readline(_LONGEST_LINE):
        whole = line
        while not whole.endswith(b"\n") and (whole := file.readline(_LONGEST_LINE)):
            pass
        if line.strip():
            yield line


def _rows(path: Path, contract: Contract) -> Iterator[Report | Fault]:
    file = pq.ParquetFile(path)
    groups = (file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups))
    if not file.schema_arrow.equals(_SCHEMA) or max(groups, default=0) > _MOST_ROWS_A_GROUP:
        raise ValueError("no file of reports")
    for batch in file.iter_batches(_ROWS_A_BATCH):
        for record in batch.to_pylist():
            answers = record["answers"]
            try:
                record["answers"] = json.loads(answers) if isinstance(answers, str) else None
            except (ValueError, RecursionError):
                record["answers"] = None
            yield checked(record, contract)


def write_reports(folder: Path, reports: Sequence[Report], contract: str, form: str = LINES) -> Path:
    """Write reports as a file with a random name of its own, which appears whole or not at all.

    So several processes may write into one folder.

    Args:
        folder: the folder, which is made if it isn't there.
        reports: the reports.
        contract: the digest that they carry.
        form: ".jsonl" or ".parquet".

    Raises:
        DpsynthError: the folder can't be written to.
    """
    name = f"reports-{secrets.token_hex(8)}"
    partial = folder / f".{name}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if form == PARQUET:
            columns = [
                [contract] * len(reports),
                [report.id for report in reports],
                [json.dumps(report.answers, separators=(",", ":")) for report in reports],
            ]
            pq.write_table(pa.table(columns, schema=_SCHEMA), partial, compression="zstd")
        else:
            lines = "".join(f"{report.text(contract)}\n" for report in reports)
            partial.write_text(lines, encoding="ascii", newline="\n")
        sync(partial)
        final = folder / f"{name}{form}"
        partial.rename(final)
        sync(folder)
    except OSError as error:
        raise DpsynthError(
            f"The reports can't be written to {folder}: {error.strerror}. They are remembered, and the same "
            "command writes the same reports."
        ) from None
    return final


def sync(path: Path) -> None:
    """Sync a file or a folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
