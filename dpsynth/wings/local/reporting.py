"""Reports made at the respondent's side, from records that stay there, and the memory of what was reported.

An average of many randomised answers would tell the true one. So a report is drawn once, written into the
memory and synced to the disk, and only then sent; whoever asks again gets the same report, whatever the
record says by then. That holds for a crash at any moment: a report that may have left is in the memory.

The memory is a file of JSON lines with mode 0600: first a secret key, then an entry a report. Respondents
stand in it under keyed hashes, and their answers only as they were randomised.

Invariant: a respondent makes one report of a contract, by one memory and under one name, however it is spelt.
A record enters codes and random draws, and nothing else. One process at a time holds the memory. A last line
without a line feed was never synced, so its report never left: it is removed. Any other damage is an error,
since without the memory a second report could be drawn.
"""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from types import TracebackType

import numpy as np
import pyarrow as pa

from dpsynth.columns.codec import INVALID, Codes
from dpsynth.columns.column import Column
from dpsynth.columns.identifier import canonical_id
from dpsynth.errors import BudgetRefused, ConfigError, DpsynthError, SourceError
from dpsynth.wings.local.contract import Contract, Question
from dpsynth.wings.local.randomisers import Answer, dice
from dpsynth.wings.local.reports import Report, sync

FORMAT = "dpsynth respondent memory 1"

_OWNER_ONLY = 0o600


class Memory:
    """The reports that were made on this side, held by one process."""

    def __init__(self, path: Path) -> None:
        """Open the memory, or begin it, and wait until no other process holds it.

        Raises:
            ConfigError: the file can't be used.
            DpsynthError: it is damaged.
        """
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _OWNER_ONLY)
        except OSError as error:
            raise ConfigError(
                f"The memory of reports {path} can't be opened: {error.strerror}. Nothing was randomised. "
                "Give another with --memory (memory= in Python), the same one each time."
            ) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX)
            os.fchmod(self._file, _OWNER_ONLY)
            self._read()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def named(self, respondent: str) -> str:
        """The name under which a respondent stands here, in any spelling: a keyed hash."""
        as_spelt = self._hashed(respondent)
        # Builds before 0.1.0 took each spelling for a respondent: who reported under one keeps that report.
        return as_spelt if as_spelt in self._spent else self._hashed(canonical_id(respondent))

    def _hashed(self, name: str) -> str:
        return hmac.new(self._key, name.encode(errors="surrogatepass"), sha256).hexdigest()

    def report(self, name: str, contract: str) -> Report | None:
        """The report that a respondent has made of a contract."""
        return self._reports.get((name, contract))

    def spent(self, name: str) -> Fraction:
        return self._spent.get(name, Fraction(0))

    def add(self, contract: str, epsilon: Fraction, reports: Mapping[str, Report]) -> None:
        """Write down reports by the names of their respondents, and sync them to the disk.

        Raises:
            DpsynthError: the disk is full or gone; none of the reports may leave.
        """
        lines = [
            json.dumps(
                {"who": name, "contract": contract, "epsilon": str(epsilon), "report": [r.id, r.answers]},
                separators=(",", ":"),
            )
            for name, r in reports.items()
        ]
        end = os.lseek(self._file, 0, os.SEEK_END)
        try:
            self._append(lines)
        except OSError as error:
            os.ftruncate(self._file, end)
            raise DpsynthError(
                f"The memory of reports {self._path} can't be written: {error.strerror}. No report was sent."
            ) from None
        for name, report in reports.items():
            self._reports[name, contract] = report
            self._spent[name] += epsilon

    def _append(self, lines: Sequence[str]) -> None:
        left = memoryview("".join(f"{line}\n" for line in lines).encode("ascii"))
        while left:
            left = left[os.write(self._file, left) :]
        os.fsync(self._file)

    def _read(self) -> None:
        self._reports: dict[tuple[str, str], Report] = {}
        self._spent: defaultdict[str, Fraction] = defaultdict(Fraction)
        with os.fdopen(os.dup(self._file), "rb") as file:
            content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)
        os.lseek(self._file, whole, os.SEEK_SET)
        lines = content[:whole].splitlines()
        if not lines:
            self._key = secrets.token_bytes(32)
            self._append([json.dumps({"format": FORMAT, "key": self._key.hex()})])
            sync(self._path.parent)
            return
        try:
            self._key = _key_of(json.loads(lines[0]))
            for line in lines[1:]:
                entry = json.loads(line)
                name, contract, (number, answers) = entry["who"], entry["contract"], entry["report"]
                self._reports[name, contract] = Report(number, tuple((q, answer) for q, answer in answers))
                self._spent[name] += Fraction(entry["epsilon"])
        except (ValueError, KeyError, TypeError) as error:
            raise DpsynthError(
                f"The memory of reports {self._path} is damaged, so it can't be told who has reported "
                "already. Bring back a copy of it. Nothing was randomised."
            ) from error


def _key_of(header: Mapping[str, str]) -> bytes:
    if header["format"] != FORMAT:
        raise ValueError("another format")
    return bytes.fromhex(header["key"])


Records = Mapping[str, pa.StringArray]
"""The cells of records by column, as text; null is missing."""


def reports_of(
    contract: Contract,
    respondents: Sequence[str],
    records: Records,
    memory: Memory,
    cap: Fraction | None = None,
) -> list[Report]:
    """The reports of respondents, each once and in an order of no meaning.

    Sensitivity: a respondent's whole record may change.
    Distribution: that of the randomiser of the question that she draws, or of those of all questions.
    Cost: the contract's epsilon, once a respondent and contract.

    Args:
        contract: what they agreed to.
        respondents: whose each record is, in any spelling; of several records of one respondent the first is
            used.
        records: the cells of every column of the contract.
        memory: the memory of this side.
        cap: the most that a respondent's reports of all contracts may cost together; None for no cap.

    Raises:
        BudgetRefused: a respondent's reports would cost more than the cap; nothing was randomised.
    """
    first: dict[str, int] = {}
    for place, respondent in enumerate(respondents):
        first.setdefault(memory.named(respondent), place)
    new = [name for name in first if memory.report(name, contract.digest) is None]
    if cap is not None and any(memory.spent(name) + contract.epsilon > cap for name in new):
        raise BudgetRefused(
            f"The reports of a respondent would cost more than the cap of {float(cap):g} (--cap): this one "
            f"costs {float(contract.epsilon):.4g}. Nothing was randomised and nothing was sent."
        )
    places = np.array([first[name] for name in new], dtype=np.int64)
    if new:
        memory.add(
            contract.digest, contract.epsilon, dict(zip(new, _drawn(contract, records, places), strict=True))
        )
    found = [memory.report(name, contract.digest) for name in first]
    return sorted((report for report in found if report is not None), key=lambda report: report.id)


def _drawn(contract: Contract, records: Records, places: Codes) -> list[Report]:
    """A fresh report of each of some records."""
    codes = {c.name: c.encode(records[c.source])[places] for c in contract.compiled.columns}
    answers: defaultdict[int, list[tuple[int, Answer]]] = defaultdict(list)
    questions = contract.questions
    drawn = dice(len(questions), places.size) if contract.one else None
    for number, question in enumerate(questions):
        asked = np.arange(places.size) if drawn is None else np.flatnonzero(drawn == number)
        cells = _cells(contract, question, codes)[asked]
        for place, answer in zip(asked.tolist(), question.randomiser.randomise(cells), strict=True):
            answers[place].append((number, answer))
    return [Report(secrets.token_hex(16), tuple(answers[place])) for place in range(places.size)]


def _cells(contract: Contract, question: Question, codes: Mapping[str, Codes]) -> Codes:
    """The cell of the question's marginal for each record."""
    sizes = contract.domain.shape(question.columns)
    return np.ravel_multi_index([codes[c] for c in question.columns], sizes).astype(np.int64)


def single_record(contract: Contract, answers: Mapping[str, str | None]) -> Records:
    """One record from texts by column.

    Raises:
        SourceError: a column is unknown or left out, or a text is none of its values; no text is quoted.
    """
    columns = {c.name: c for c in contract.compiled.columns if not c.part_of}
    unknown = [name for name in answers if name not in columns]
    if unknown:
        raise SourceError(f"There is no column {unknown[0]!r} to answer; there are: {', '.join(columns)}.")
    records = {name: pa.array([answers.get(name)], pa.string()) for name in columns}
    for name, column in columns.items():
        _check(column, records[name], given=name in answers)
    return records


def _check(column: Column, text: pa.StringArray, *, given: bool) -> None:
    value = column.values_of(text)
    absent = value.null_count == 1 and not column.distinct
    if absent and not column.missing:
        raise SourceError(
            f"The answer to {column.name} is {'empty' if given else 'left out'}, and it may not be missing: "
            "give one of its values."
        )
    if not absent and value.null_count == 0 and int(column.codec.encode(value)[0]) == INVALID:
        labels = column.codec.labels
        some = ", ".join(labels[:8]) + (" …" if len(labels) > 8 else "")
        raise SourceError(f"The answer to {column.name} is none of its values, which are: {some}.")
