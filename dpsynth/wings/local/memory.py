"""The memory of a respondent's side: which reports were made, so that no name gives two of one contract.

An average of many randomised answers would tell the true one. So a report is drawn once, written here and
synced to the disk, and only then sent; whoever asks again gets the same report. That holds for a crash at any
moment: a report that may have left is in the memory.

The memory is a file of JSON lines with mode 0600: first a secret key, then an entry a report. Respondents
stand in it under keyed hashes, and their answers only as they were randomised: nothing of a record is kept.

Invariant: one process at a time holds the file. A last line without a line feed was never synced, so its
report
never left: it is removed. Any other damage is an error, since without the memory a second report could be
drawn.
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

from dpsynth.columns.surrogates import canonical_id
from dpsynth.errors import ConfigError, DpsynthError
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
        """The memory itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let other processes have it."""
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
        """The sum of a respondent's epsilon over all contracts."""
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
