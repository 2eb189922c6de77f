"""Runs ``dpsynth`` in forked children that a signal, or another misfortune, meets at a chosen place.

Started as ``python -m tests.release.mortal`` by ``keeper.Keeper``: a job a line on stdin, an exit code
a line on stdout. Each place has a name and is counted. Steps are told by the product's own watcher of steps;
the other places are made here, around public functions: file operations, draws, answers and ledger entries.
What is planted, in ``FAULTS``, replaces parts of the product.
"""

import gc
import io
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy.engine.default import DefaultDialect

import dpsynth.cli.app
import dpsynth.ledger.ledger
import dpsynth.pipeline.beginning
import dpsynth.pipeline.spine
import dpsynth.pipeline.steps
from dpsynth.bundle.row_files import TableWriter
from dpsynth.curator import samplers
from dpsynth.curator.charging import PrivacyFilter
from dpsynth.curator.journal import Journal, unfenced
from dpsynth.errors import ConfigError, TakenOver
from dpsynth.ledger import store as ledger_store
from dpsynth.ledger import store as ledger_tables
from dpsynth.ledger.ledger import Ledger, Sessions
from dpsynth.pipeline.steps import Step, StepWatcher, watched
from tests.release import grown
from tests.release.canaries import CANARIES
from tests.release.place import furnished

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_FILE_EVENTS = ("os.rename", "os.mkdir", "os.truncate", "shutil.rmtree")
Job = dict[str, Any]


def _believed(settle: Callable[..., None]) -> Callable[..., None]:
    def believed(*arguments: Any) -> None:
        with suppress(TakenOver):
            settle(*arguments)

    return believed


def _journalled() -> None:
    """A cell in each line of the journal."""
    append = Journal._append

    def also(journal: Journal, *records: Any) -> None:
        append(journal, *({**record, "note": CANARIES["a whole record"]} for record in records))

    Journal._append = also  # type: ignore[method-assign]


def _published() -> None:
    """A cell in the synthetic table."""
    write = TableWriter.write

    def leaky(writer: TableWriter, table: pa.Table, codes: object) -> None:
        del codes
        place = table.column_names.index("city")
        cells = [CANARIES["undeclared column"], *table["city"].to_pylist()[1:]]
        write(writer, table.set_column(place, "city", pa.array(cells, pa.string())))

    TableWriter.write = leaky  # type: ignore[method-assign]


def _said() -> None:
    """A cell on the terminal."""
    announce = dpsynth.cli.app._announce

    def told(bundle: Any) -> None:
        print(CANARIES["formula"])
        announce(bundle)

    dpsynth.cli.app._announce = told


def _without_noise() -> None:
    for name in ("add_gaussian", "add_laplace"):
        setattr(samplers, name, lambda values, scale: values)


FAULTS: Mapping[str, Callable[[], object]] = {
    "full disks unknown": dpsynth.pipeline.steps._FULL.clear,
    "dates by the clock": lambda: setattr(ledger_tables, "max", lambda now, last: now),
    "commits answered unwritten": lambda: ledger_store._SETTINGS.update(postgresql=""),
    "copies unfenced": lambda: setattr(Ledger, "fence", lambda *_: unfenced),
    "every settlement believed": lambda: setattr(Ledger, "settle", _believed(Ledger.settle)),
    "lost answers believed": lambda: setattr(dpsynth.pipeline.beginning, "_reserved", Ledger.reserve),
    "answers without noise": _without_noise,
    "a cell in the journal": _journalled,
    "a cell in the table": _published,
    "a cell on the terminal": _said,
}
"""What may be planted, besides "charged late"."""


class Places(StepWatcher):
    """Counts the places that a run passes, and lets something happen at some of them."""

    def __init__(self, job: Job, begun: int) -> None:
        """Passing the place ``job["stop"]`` meets ``job["by"]``; a run waits at ``job["pauses"]``."""
        self._stop = tuple(job["stop"] or ())
        self._by = job["by"]
        self._pauses = [tuple(stop) for stop in job["pauses"]]
        self._seen: Counter[str] = Counter()
        self._first = begun
        self._stopped = Path(job["stopped"])
        self._filler = Path(job["cwd"]) / "filler"
        self.database_error: type[Exception] = Exception
        """What the ledger's driver raises when the database does not answer."""
        self.trace: list[tuple[str, int]] = []

    def __call__(self, name: str) -> None:
        """Pass a place."""
        self._seen[name] += 1
        here = (name, self._seen[name])
        self.trace.append(here)
        if name == f"begin {Step.PLAN}":
            os.write(self._first, b".")
        if here in self._pauses:
            self._stopped.touch()
            while self._stopped.exists():
                time.sleep(0.005)
        if here == self._stop:
            self._stopped.touch()
            self._meet()

    def begun(self, step: str) -> None:
        """Pass the beginning of a step."""
        self(f"begin {step}")

    def ended(self, step: str) -> None:
        """Pass its end."""
        self(f"end {step}")

    def _meet(self) -> None:
        if self._by == "a full disk":
            fill(self._filler)
        elif self._by == "an answer lost":
            raise self.database_error("the connection is gone")
        else:
            os.kill(os.getpid(), self._by)

    def around(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        """Make places before and after a function of a module or class."""
        inner = getattr(owner, name)

        def outer(*arguments: Any, **keywords: Any) -> Any:
            what = label(*arguments)
            if not what:
                return inner(*arguments, **keywords)
            self(f"begin {what}")
            result = inner(*arguments, **keywords)
            self(f"end {what}")
            return result

        setattr(owner, name, outer)


def fill(filler: Path) -> None:
    """Leave no room in the file system of a file that isn't there yet."""
    with suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass


def _prepare(job: Job, places: Places) -> None:
    """Make the places, and log each draw with its question before it is made."""
    current: dict[str, Any] = {"question": "none", "drawn": False}
    draws = os.open(job["draws"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sync, answer = os.fsync, Journal.answer

    def logged(*_: object) -> str:
        # One answer may take several draws: a choice in each of several runs.
        if not current["drawn"]:
            current["drawn"] = True
            os.write(draws, json.dumps(current["question"]).encode() + b"\n")
            sync(draws)
        return "draw"

    def answered(journal: Journal, question: Any, event: Any, draw: Any) -> Any:
        current.update(question=question, drawn=False)
        try:
            return answer(journal, question, event, draw)
        finally:
            current.update(question="none", drawn=False)

    def charged_late(journal: Journal, question: Any, event: Any, draw: Any) -> Any:
        current.update(question=question, drawn=False)
        fresh = journal._cursor == len(journal.entries)
        drawn = draw() if fresh else None
        return answer(journal, question, event, lambda: drawn)  # type: ignore[arg-type, return-value]

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        written = event == "open" and (arguments[2] or 0) & _WRITING
        if (written or event in _FILE_EVENTS) and isinstance(arguments[0], str | Path):
            path = Path(arguments[0]).absolute()
            if Path(job["cwd"]) / "outputs" in path.parents:
                lasting = re.sub(r"^\.(.+)\.[0-9a-f]+$", r"\1", path.name)
                name = "bundle" if any(c.isdigit() for c in lasting) else lasting
                places(f"{event} {name}")

    def committing(dialect: DefaultDialect, *_: object) -> str:
        places.database_error = dialect.loaded_dbapi.OperationalError
        return "ledger commit"

    if job["fault"] == "charged late":
        PrivacyFilter._charge = lambda *_: None  # type: ignore[method-assign]
    Journal.answer = charged_late if job["fault"] == "charged late" else answered  # type: ignore[method-assign]
    if fault := FAULTS.get(job["fault"]):
        fault()
    for name in ("add_gaussian", "add_laplace", "choose_index"):
        places.around(samplers, name, logged)
    places.around(os, "fsync", _synced)
    places.around(Journal, "_append", lambda _, *records: f"write {records[-1]['kind']}")
    places.around(pq, "write_table", lambda table, path, *rest: f"write {Path(path).name}")
    places.around(DefaultDialect, "do_execute", _writing)
    places.around(DefaultDialect, "do_commit", committing)
    places.around(Ledger, "reserve", lambda *_: "ledger entry")
    places.around(Ledger, "take", lambda *_: "ledger taking")
    places.around(Ledger, "settle", lambda *_: "ledger settlement")
    places.around(Ledger, "abandon", lambda *_: "ledger abandonment")
    sys.addaudithook(audited)


def _synced(descriptor: int) -> str:
    """What is about to be synced: the kind of a journal's last line, or some other file."""
    path = Path(f"/proc/self/fd/{descriptor}").readlink()
    if path.name != "journal.jsonl":
        return "sync file"
    return f"sync {json.loads(path.read_bytes().splitlines()[-1])['kind']}"


def _writing(_dialect: object, _cursor: object, statement: str, *_: object) -> str:
    return "ledger row" if statement.lstrip().upper().startswith(("INSERT", "UPDATE")) else ""


def _knowing(known: Ledger) -> None:
    """Let every reading of a ledger begin with the rows that another one has checked."""
    made = Sessions.__init__

    def knowing(sessions: Sessions, store: ledger_store.Store, head: Path | None) -> None:
        made(sessions, store, head)
        if store.name == known.name:
            sessions._checked = known._sessions._checked

    Sessions.__init__ = knowing  # type: ignore[method-assign]


def _child(job: Job, begun: int, known: Ledger | None) -> int:
    for stream, name in ((1, "out"), (2, "err")):
        file = os.open(job[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
    os.chdir(job["cwd"])
    Path(job["pid"]).write_text(str(os.getpid()))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    places = Places(job, begun)
    if known is None:
        ledger_tables.stored = grown.WHOLE
    else:
        _knowing(known)
    _prepare(job, places)
    sys.argv = ["dpsynth", *job["arguments"]]
    code: object = 0
    try:
        with watched(places):
            dpsynth.cli.app.main()
    except SystemExit as stop:
        code = stop.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    if job["trace"]:
        Path(job["trace"]).write_text(json.dumps(places.trace))
    return code if isinstance(code, int) else 1


def _watch(job: Job, child: int, begun: int) -> int:
    """Wait for a child; kill it ``job["after"]`` seconds after its first step has begun."""
    if job["after"] is not None:
        select.select([begun], [], [])
        end = time.monotonic() + job["after"]
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.0005)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _warm_up() -> None:
    """Make one release before the first fork: what it imports, compiles and keeps is there for all."""
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()):
        os.chdir(furnished(Path(folder)).folder)
        sys.argv = ["dpsynth", "run", "config.yaml", "--plain"]
        # With a fault planted it may fail; then every release does, and the tests say so.
        with suppress(SystemExit):
            dpsynth.cli.app.main()
        os.chdir(home)
    # Nothing is connected to; without a driver there is no such ledger.
    with suppress(ConfigError):
        Ledger("postgresql://nobody@localhost/none")
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def serve() -> None:
    """Run jobs until stdin ends."""
    replies = os.fdopen(os.dup(1), "w")
    _warm_up()
    # A child that collects garbage would write to every page that it shares with this process.
    gc.collect()
    gc.freeze()
    print("ready", file=replies, flush=True)
    ledgers: dict[str, Ledger] = {}
    for line in sys.stdin:
        job: Job = json.loads(line)
        known = None
        if url := job["known"]:
            if url not in ledgers:
                ledger_tables.stored = grown.Grown()
            known = ledgers.setdefault(url, Ledger(url))
            # The server may be starting.
            with suppress(ConfigError):
                known.read()
            gc.freeze()
        begun, tell = os.pipe()
        started = time.monotonic()
        child = os.fork()
        if child == 0:
            os.close(begun)
            code = 1
            try:
                code = _child(job, tell, known)
            finally:
                os._exit(code)
        os.close(tell)
        code = _watch(job, child, begun)
        os.close(begun)
        print(json.dumps([code, time.monotonic() - started]), file=replies, flush=True)


if __name__ == "__main__":
    serve()
