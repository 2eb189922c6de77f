"""The journal: questions to the private table, their costs and their answers.

Invariant: an answer is charged on disk before its noise is drawn, and written before anyone sees it. A
journal that is read again gives the same answers to the same questions; a question that was charged but never
answered stays charged and is lost. To get an answer it must be asked, and paid, again.

Questions that are asked together are charged together, with one sync to disk. It also syncs the answers
before. A process that is killed loses no line that it wrote; a failure of power may lose answers since the
last charge, which stay charged.

The file is one JSON object a line:

    {"kind": "open", ...}                                   the first line
    {"kind": "charge", "seq": 0, "question": {...}, "event": {...}}
    {"kind": "answer", "seq": 0, "answer": {...}}           or {"kind": "lost", "seq": 0}
    {"kind": "held", "holder": "...", "file": 123, ...}     each time that a run goes on with it
    {"kind": "paused", "at": "..."}                         each time that the release waits for its owner

An answer is an array of integers or a list of texts. The file has the ledger's name of the run that goes on
with it, and its own number in the file system. A copy has another number, so copies are noticed.

An older copy that is put back lacks charges. Where the file system takes extended attributes, the file is
marked with the number of its charges after each is synced, before noise is drawn. Whatever replaces the
content leaves the mark, and a file that replaces the file has none. A copy that brings its marks along isn't
noticed.

A journal can be copied. The caller that opens it gives it a fence: a check, made before each charge, that
no other copy went on. The fence is no proof, as another copy may go on just after the check. The settlement
of the release, which compares digests, ensures that two copies never both publish.

A journal is private: the answers are noisy, but its first line holds the key of contribution bounding.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dpsynth.accounting import events
from dpsynth.accounting.events import RecordedEvent
from dpsynth.errors import DpsynthError

FORMAT = 5
_MARK = "user.dpsynth.charges"

Fence = Callable[[], None]
"""A check that raises an error if another copy of the journal went on, so nothing more may be charged."""

Question = Mapping[str, object]
Recorded = NDArray[np.int64] | tuple[str, ...]
Answer = TypeVar("Answer", NDArray[np.int64], tuple[str, ...])
"""The answer to a question: integers or texts."""


@dataclass(frozen=True)
class Lost:
    """The outcome of a question whose noise may have been drawn, but was never recorded."""


LOST: Final = Lost()


@dataclass
class Entry:
    """One charged question, in the order asked."""

    question: Question
    event: RecordedEvent
    outcome: Recorded | Lost | None = None
    """The answer, LOST, or None while neither is recorded."""


def _pack(answer: Recorded) -> dict[str, object]:
    if isinstance(answer, tuple):
        return {"texts": list(answer)}
    little = np.ascontiguousarray(answer, dtype="<i8")
    return {"shape": list(answer.shape), "int64": base64.b64encode(little.tobytes()).decode("ascii")}


def _unpack(record: Mapping[str, object]) -> Recorded:
    texts = record.get("texts")
    if isinstance(texts, list):
        return tuple(map(str, texts))
    flat = np.frombuffer(base64.b64decode(str(record["int64"])), dtype="<i8")
    return flat.astype(np.int64).reshape(tuple(record["shape"]))  # type: ignore[arg-type]


def is_paused(path: Path) -> bool:
    """True if a journal, which another process may hold, says that its release is paused."""
    paused = False
    for line in path.read_bytes().split(b"\n")[:-1]:
        with suppress(ValueError):
            kind = json.loads(line)["kind"]
            paused = kind == "paused" or (paused and kind != "charge")
    return paused


def unfenced() -> None:
    """A fence that lets every charge pass, for a journal without copies."""


def _mark(descriptor: int, charges: int) -> bool:
    """Mark a file with a number of charges; False where its file system or this machine can't."""
    try:
        os.setxattr(descriptor, _MARK, str(charges).encode())
    except AttributeError:
        return False
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        return False
    return True


def _lock(descriptor: int, path: Path) -> FileIO:
    """Lock the journal for this process; the lock ends with the process."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise DpsynthError(
            f"Another process is writing {path}: this release is being run already. Wait for it to end."
        ) from None
    # A buffer would keep bytes that a full disk refused, and fail again on closing.
    return os.fdopen(descriptor, "ab", buffering=0)


@dataclass
class Journal:
    """An open journal; see the module's invariant.

    Attributes:
        header: the first line: public facts of the release, and the private bounding key.
        holders: each run that went on with the journal, and the number of the file that it wrote to.
        fence: the check before each charge.
        pauses: the steps at which the release was paused since the last question.
        marked: True if the run that holds the journal marks the file with the number of its charges.
    """

    path: Path
    header: Mapping[str, object]
    _file: FileIO
    entries: list[Entry] = field(default_factory=list)
    holders: list[tuple[str, int]] = field(default_factory=list)
    fence: Fence = unfenced
    sealed: bool = False
    pauses: set[str] = field(default_factory=set)
    marked: bool = False
    _cursor: int = 0
    _undrawn: set[int] = field(default_factory=set)
    """Questions that this run has charged and not drawn noise for yet."""

    @classmethod
    def create(cls, path: Path, header: Mapping[str, object]) -> Journal:
        """Start a journal that only its owner can read; FileExistsError if the file exists."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_APPEND, 0o600)
        journal = cls(path, {"kind": "open", "format": FORMAT, **header}, _lock(descriptor, path))
        journal._append(journal.header)
        journal.sync()
        folder = os.open(path.parent, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        return journal

    @classmethod
    def open(cls, path: Path) -> Journal:
        """Read a journal back; an unfinished last line, left by a kill, is cut off.

        Raises:
            DpsynthError: the file is not a journal, or a line other than the last is broken.
        """
        file = _lock(os.open(path, os.O_RDWR | os.O_APPEND), path)
        whole = path.read_bytes()
        end = whole.rfind(b"\n") + 1
        if end < len(whole):
            os.truncate(path, end)
        try:
            records = [json.loads(line) for line in whole[:end].splitlines()]
            header, *rest = records
            if header["kind"] != "open":
                raise ValueError("not a journal")
            if header["format"] != FORMAT:
                file.close()
                raise DpsynthError(
                    f"The journal {path} was written by another version of dpsynth (format "
                    f"{header['format']}; this one reads {FORMAT}). Resume it with that version, or start a "
                    "new release; this one stays charged."
                )
            journal = cls(path, header, file)
            for record in rest:
                journal._load(record)
        except (ValueError, KeyError, IndexError, TypeError) as error:
            file.close()
            raise DpsynthError(
                f"The journal {path} is damaged ({type(error).__name__}) and can't be resumed. Its release "
                "stays charged; start a new one."
            ) from None
        return journal

    def _load(self, record: Mapping[str, object]) -> None:
        if record["kind"] == "held":
            self.holders.append((str(record["holder"]), int(str(record["file"]))))
            self.marked = record.get("marked") is True
            return
        if record["kind"] == "paused":
            self.pauses.add(str(record["at"]))
            return
        if record["kind"] == "charge":
            self.pauses.clear()
            if record["seq"] != len(self.entries):
                raise ValueError("a line is gone")
            event = events.from_json(record["event"])  # type: ignore[arg-type]
            self.entries.append(Entry(record["question"], event))  # type: ignore[arg-type]
            return
        entry = self.entries[int(str(record["seq"]))]
        if entry.outcome is not None:
            raise ValueError("answered twice")
        lost = record["kind"] == "lost"
        entry.outcome = LOST if lost else _unpack(record["answer"])  # type: ignore[arg-type]

    def _append(self, *records: Mapping[str, object]) -> None:
        lines = b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
        while lines:
            lines = lines[self._file.write(lines) :]

    def sync(self) -> None:
        os.fsync(self._file.fileno())

    def hold(self, holder: str) -> None:
        """Record the name of the run that goes on, before the ledger does."""
        file = os.fstat(self._file.fileno()).st_ino
        self.marked = self.lacks_charges or _mark(self._file.fileno(), len(self.entries))
        self._append({"kind": "held", "holder": holder, "file": file, "marked": self.marked})
        self.sync()
        self.holders.append((holder, file))

    def pause(self, step: str) -> None:
        self._append({"kind": "paused", "at": str(step)})
        self.sync()
        self.pauses.add(str(step))

    @property
    def paused(self) -> bool:
        return bool(self.pauses)

    @property
    def at_end(self) -> bool:
        """True if every question on record has been asked again, so that the next one is a new one."""
        return self._cursor == len(self.entries)

    def has_all_of(self, holder: str) -> bool:
        """True if the file has every charge that was ever made to its release.

        That is so if the ledger's current run wrote to this file, no run on record wrote to another, and the
        file has its mark and as many charges: it is no copy, and none was resumed or put back.
        """
        file = os.fstat(self._file.fileno()).st_ino
        runs, files = {run for run, _ in self.holders}, {number for _, number in self.holders}
        known = holder in runs and files == {file}
        return known and not self.lacks_charges and not (self.marked and self._mark is None)

    @property
    def _mark(self) -> int | None:
        """The number of charges that the file is marked with; None where it has no mark."""
        try:
            return int(os.getxattr(self._file.fileno(), _MARK))
        except (OSError, AttributeError, ValueError):
            return None

    @property
    def lacks_charges(self) -> bool:
        """True if the file had more charges than it has: an older copy was put back in its place."""
        return (self._mark or 0) > len(self.entries)

    @property
    def digest(self) -> str:
        """SHA-256 in hex of the first line and of all questions, events and answers, in order.

        The secret key in the first line prevents guessing answers by their digest.
        """
        lines: list[object] = [self.header]
        for entry in self.entries:
            lost = isinstance(entry.outcome, Lost)
            answer = None if entry.outcome is None or lost else _pack(cast("Recorded", entry.outcome))
            lines.append([entry.question, events.to_json(entry.event), "lost" if lost else answer])
        whole = json.dumps(lines, sort_keys=True, separators=(",", ":"))
        return sha256(whole.encode()).hexdigest()

    def close(self) -> None:
        self._file.close()

    def asked(self) -> Iterator[Entry]:
        """The charges that come before the next question, lost ones included."""
        return iter(self.entries[: self._cursor])

    def charge(self, asked: Sequence[tuple[Question, RecordedEvent]]) -> None:
        """Charge the next questions, before any of them is answered: all that aren't on record, in one sync.

        Raises:
            DpsynthError: the journal is sealed, or the fence refuses the charge.
        """
        known = len(self.entries)
        new = asked[known - self._cursor :]
        if not new:
            return
        if self.sealed:
            raise DpsynthError(
                f"The journal {self.path} lacks answers of a release that the ledger has closed: "
                "lines are gone from it. Nothing more may be asked; start a new release."
            )
        self.fence()
        self.pauses.clear()
        self._append(
            *(
                {"kind": "charge", "seq": seq, "question": question, "event": events.to_json(event)}
                for seq, (question, event) in enumerate(new, known)
            )
        )
        self.sync()
        self.entries += (Entry(question, event) for question, event in new)
        self._undrawn.update(range(known, len(self.entries)))
        if self.marked:
            _mark(self._file.fileno(), len(self.entries))

    def answer(self, question: Question, event: RecordedEvent, draw: Callable[[], Answer]) -> Answer | Lost:
        """Answer the next question: from the record if it is there, else charge, draw, record.

        Args:
            draw: computes the noisy answer; called at most once, after the charge is synced.

        Raises:
            DpsynthError: the record has another question at this position, or is sealed; or the fence
                refuses the charge.
        """
        seq = self._cursor
        self.charge([(question, event)])
        entry = self.entries[seq]
        if (entry.question, entry.event) != (question, event):
            raise DpsynthError(
                f"The journal {self.path} holds another question at number {seq} than this run asks: it was "
                "written with another config or version of dpsynth, and can't be resumed with this one."
            )
        self._cursor += 1
        if seq in self._undrawn:
            self._undrawn.remove(seq)
            answer = draw()
            self._append({"kind": "answer", "seq": seq, "answer": _pack(answer)})
            entry.outcome = answer
        elif entry.outcome is None:
            self._append({"kind": "lost", "seq": seq})
            entry.outcome = LOST
        # The same question has an answer of the same kind.
        return cast("Answer | Lost", entry.outcome)
