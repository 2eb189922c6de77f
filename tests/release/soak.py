"""A soak: very many releases over one ledger, each with a misfortune or none, and what must hold after each.

Started as ``python -m tests.release.soak --releases 1000``, or by ``make soak``. Several places make releases
at once, each of a dataset of its own, over one PostgreSQL database or one SQLite file. A release may be
killed at a random instant or place, lose its database's answer, meet a full disk, run on a machine whose
clock is wrong, or meet a restart of the database. Then it is resumed until it is done.

With ``--folder`` the ledger and the tally stay there, and another soak goes on with them.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import inf
from pathlib import Path

from dpsynth.ledger import store as tables
from dpsynth.ledger.ledger import Ledger
from tests import databases
from tests.release import clock, grown
from tests.release.keeper import Keeper, Stop, on_a_small_disk
from tests.release.killed import DIED, FEW_COLUMNS, Watch, passed
from tests.release.place import Ended, Place, people

MISFORTUNES = {
    "none": 6,
    "killed at an instant": 6,
    "killed at a place": 6,
    "an answer lost": 2,
    "a full disk": 2,
    "a wrong clock": 2,
    "the database restarted": 1,
}
"""Misfortunes, with their weights."""
RESUMABLE = (DIED, 5)
"""Exit codes after which a release is resumed: killed, interrupted. Or its ledger can't be used."""
_TRIES = 60
_ALL_ROWS = 200
"""The ledger's chain is verified once in so many releases: it has a row for each of them."""
_ITSELF = 10
"""One in so many releases reads and checks all rows of the ledger itself, as every release elsewhere does.
The others go on from those that were checked for the release before."""


@dataclass
class Tally:
    """What many releases came to, over all places."""

    releases: Counter[str] = field(default_factory=Counter)
    resumed: int = 0
    charged: int = 0
    drawn: int = 0
    lost: int = 0
    verified: int = 0
    seconds: float = 0.0

    @staticmethod
    def kept(file: Path) -> Tally:
        """The tally in a file, if it is there."""
        facts = json.loads(file.read_text()) if file.exists() else {}
        return Tally(**{**facts, "releases": Counter(facts.get("releases", {}))})

    def add(self, other: Tally) -> None:
        """Count what another counts."""
        self.releases.update(other.releases)
        self.resumed += other.resumed
        self.charged += other.charged
        self.drawn += other.drawn
        self.lost += other.lost

    def keep(self, file: Path) -> None:
        """Write it to a file."""
        file.write_text(json.dumps(vars(self)))

    def __str__(self) -> str:
        """One line."""
        kinds = ", ".join(f"{name} {number}" for name, number in sorted(self.releases.items()))
        return (
            f"{self.releases.total()} releases ({kinds}); resumed {self.resumed} times; {self.charged} "
            f"charges, {self.drawn} draws, {self.lost} answers lost; chain verified {self.verified} times; "
            f"{self.seconds:.0f} s"
        )


class SoakPlace(Place):
    """A place that keeps its ledger open: a new one would check all rows again."""

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of all places."""
        return Ledger(self.url)


class Soaked:
    """One place in which releases are made one after the other."""

    def __init__(self, folder: Path, url: str, dataset: str, server: databases.Postgres | None) -> None:
        """Furnish the place, and start its process, on a disk of its own where that is possible."""
        self._stack = ExitStack()
        self._clock = None if clock.reason_without() else clock.Clock(folder / "clock")
        more = {} if self._clock is None else dict(self._clock.environment)
        disk = folder / "disk"
        disk.mkdir(parents=True)
        self._own_disk = _mounts(disk)
        self.keeper = self._stack.enter_context(
            Keeper(folder / "keeper", disk if self._own_disk else None, **more)
        )
        work = (self.keeper.disk or disk) / "work"
        work.mkdir()
        self.place = SoakPlace(work, folder, url, dataset)
        self.place.table(people(300))
        ledger = {"dataset": dataset, "cap": {"epsilon": 1_000_000, "delta": 0.5}}
        self.place.configure(**FEW_COLUMNS, ledger=ledger)
        self._server = server
        self._chance = random.Random(dataset)
        self._span = 0.3
        self._stops: list[Stop] = []

    def close(self) -> None:
        """End the process."""
        self._stack.close()

    def prepare(self) -> None:
        """Learn the places that a run passes, and how long it takes."""
        self._stops = passed(self.keeper, self.place)
        self._span = self.keeper.seconds
        self._clear()

    def release(self) -> Tally:
        """Make one release, whatever befalls it, and check all that must hold."""
        impossible = {
            "the database restarted": self._server is None,
            "a full disk": not self._own_disk,
            "a wrong clock": self._clock is None,
        }
        kinds = [k for k in MISFORTUNES if not impossible.get(k)]
        kind = self._chance.choices(kinds, [MISFORTUNES[k] for k in kinds])[0]
        watch = SoakWatch(self.place)
        self.keeper.known = None if self._chance.randrange(_ITSELF) == 0 else self.place.url
        ended, deaths = self._run(kind), 0
        (self.place.folder / "filler").unlink(missing_ok=True)
        while ended.code != 0:
            unreachable = ended.code in (1, 2) and "The ledger " in ended.err
            assert ended.code in RESUMABLE or unreachable, ended
            deaths += 1
            assert deaths < _TRIES, ended
            watch.look()
            begun = watch.begun
            # The database may still be starting.
            time.sleep(0.2 * unreachable)
            ended = self.keeper.run(self.place, *(("--resume", begun[-1]) if begun else ()))
        watch.ended(ended.folder, deaths)
        done = Tally(
            releases=Counter({kind: 1}),
            resumed=deaths,
            charged=sum(watch.charges.values()),
            drawn=sum(watch.draws.values()),
            lost=sum(watch.lost.values()),
        )
        self._clear()
        return done

    def verify(self) -> None:
        """Check the whole ledger, while no database is starting."""
        with _restarting:
            tables.stored, since = grown.WHOLE, tables.stored
            assert self.place.ledger.verify().problems == ()
            tables.stored = since

    def _run(self, kind: str) -> Ended:
        if self._clock is not None:
            days = self._chance.randrange(-400, 400) if kind == "a wrong clock" else 0
            self._clock.set(datetime.now(UTC) + timedelta(days=days))
        match kind:
            case "killed at an instant":
                return self.keeper.run(self.place, after=self._chance.uniform(0, self._span))
            case "killed at a place":
                return self.keeper.run(self.place, stop=self._chance.choice(self._stops), by=signal.SIGKILL)
            case "an answer lost":
                rows = [stop for stop in self._stops if stop[0] == "end ledger commit"]
                return self.keeper.run(self.place, stop=self._chance.choice(rows), by="an answer lost")
            case "a full disk":
                return self.keeper.run(self.place, stop=self._chance.choice(self._stops), by="a full disk")
            case "the database restarted":
                assert self._server is not None
                self.keeper.begin(self.place)
                time.sleep(self._chance.uniform(0, self._span))
                with _restarting:
                    self._server.stop("immediate")
                    self._server.start()
                return self.keeper.end()
            case _:
                return self.keeper.run(self.place)

    def _clear(self) -> None:
        """Remove the bundle and the logs: the ledger alone grows."""
        shutil.rmtree(self.place.folder / "outputs", ignore_errors=True)
        (self.place.home / "draws").unlink(missing_ok=True)


def _mounts(disk: Path) -> bool:
    """True if a process here may have a small disk."""
    if not shutil.which("unshare"):
        return False
    return not subprocess.run([*on_a_small_disk(disk), "true"], capture_output=True, check=False).returncode


_restarting = threading.RLock()


class SoakWatch(Watch):
    """A watch that leaves the ledger's chain to the tally, since verifying it takes as long as it is."""

    def look(self) -> None:
        """``Watch.look``, while no database is starting."""
        with _restarting:
            super().look()

    def ended(self, folder: Path, deaths: int) -> None:
        """``Watch.ended``, while no database is starting."""
        with _restarting:
            super().ended(folder, deaths)

    def _sound(self) -> bool:
        return True


def soak(
    releases: int, places: int, *, postgresql: bool, folder: Path | None = None, seconds: float = inf
) -> Tally:
    """Make releases at several places at once, until there are so many, or the time is over.

    Args:
        releases: number of releases, with those that the folder counts already.
        places: number of places.
        postgresql: true for PostgreSQL, false for SQLite.
        folder: where the ledger and the tally stay; None: nowhere.
        seconds: how long releases may begin.

    Raises:
        AssertionError: something doesn't hold.
    """
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="dpsynth-soak-")))
        kept = folder or root
        kept.mkdir(parents=True, exist_ok=True)
        tally = Tally.kept(kept / "tally.json")
        server = databases.Postgres(None if folder is None else folder / "server") if postgresql else None
        if server is not None:
            stack.callback(server.close)
        url = f"sqlite:///{kept / 'ledger.db'}" if server is None else server.found("soak")
        earlier = len(Ledger(url).balances())
        whole, tables.stored = tables.stored, grown.Grown()
        stack.callback(setattr, tables, "stored", whole)
        soaked = [Soaked(root / f"place{n}", url, f"people{earlier + n}", server) for n in range(places)]
        for one in soaked:
            stack.callback(one.close)
            one.prepare()
        began, before, lock = time.monotonic(), tally.seconds, threading.Lock()

        def work(one: Soaked) -> None:
            while tally.releases.total() < releases and time.monotonic() < began + seconds:
                done = one.release()
                with lock:
                    tally.add(done)
                    tally.seconds = before + time.monotonic() - began
                    if tally.releases.total() % _ALL_ROWS == 0:
                        one.verify()
                        tally.verified += 1
                    if tally.releases.total() % 50 == 0:
                        tally.keep(kept / "tally.json")
                        print(tally, flush=True)

        with ThreadPoolExecutor(places) as pool:
            list(pool.map(work, soaked))
        soaked[0].verify()
        tally.verified += 1
        tally.keep(kept / "tally.json")
    return tally


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--places", type=int, default=3)
    parser.add_argument("--sqlite", action="store_true", help="one SQLite file in place of PostgreSQL")
    parser.add_argument("--folder", type=Path, help="where the ledger and the tally stay")
    parser.add_argument("--seconds", type=float, default=inf, help="begin no release after so long")
    asked = parser.parse_args()
    how = {"postgresql": not asked.sqlite, "folder": asked.folder, "seconds": asked.seconds}
    print(soak(asked.releases, asked.places, **how))
