"""Keeps a process that forks releases and lets them die; see ``mortal``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Literal

from tests.release.place import Ended, Place, environment

Stop = tuple[str, int]
Misfortune = signal.Signals | Literal["a full disk", "an answer lost"]


def on_a_small_disk(disk: Path) -> list[str]:
    """What to put before a command so that it has a file system of 12 MB at a folder, which ends with it."""
    alone = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    return [*alone, "sh", "-c", 'mount -t tmpfs -o size=12m tmpfs "$0" && exec "$@"', str(disk)]


class Keeper:
    """Runs ``dpsynth`` commands in forks of one warm process."""

    def __init__(self, home: Path, disk: Path | None = None, **more: str) -> None:
        """Start the process.

        Args:
            home: its HOME.
            disk: a folder over which it mounts a small file system that nobody else sees.
            more: of its environment.
        """
        program = [sys.executable, "-m", "tests.release.mortal"]
        self._process = subprocess.Popen(
            program if disk is None else [*on_a_small_disk(disk), *program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(home, **more),
        )
        self._busy = False
        self.known: str | None = None
        """URL of a ledger of which runs need not check again what was checked before the last of them."""
        self.disk = None if disk is None else Path(f"/proc/{self._process.pid}/root{disk}")
        """The small file system, as anybody can reach it."""
        self.seconds = 0.0
        """How long the last command took."""
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def begin(
        self,
        place: Place,
        *arguments: str,
        stop: Stop | None = None,
        by: Misfortune = signal.SIGKILL,
        pauses: Sequence[Stop] = (),
        after: float | None = None,
        fault: str | None = None,
    ) -> None:
        """Start ``dpsynth run config.yaml --plain`` at a place, with arguments.

        Args:
            place: where to run it.
            arguments: more of the command line.
            stop: name and count of the place at which something happens to the run.
            by: what: a signal, or "a full disk", or "an answer lost" by the ledger's database.
            pauses: places at which it waits for ``go_on``.
            after: kill the run so many seconds after its first step began.
            fault: a fault to plant: "charged late", or one of ``mortal.FAULTS``.
        """
        what = {"stop": stop, "by": by, "pauses": pauses, "after": after, "fault": fault}
        self._start(place, ["run", "config.yaml", "--plain", *arguments], what)

    def _start(self, place: Place, arguments: Sequence[str], what: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        job = {
            "arguments": arguments,
            "cwd": str(place.folder),
            "known": self.known,
            **what,
            **{name: str(place.home / name) for name in ("out", "err", "trace", "draws", "pid", "stopped")},
        }
        if self._busy:
            # A test has failed between begin and end.
            self._kill()
            self.end()
        (place.home / "stopped").unlink(missing_ok=True)
        print(json.dumps(job), file=self._process.stdin, flush=True)
        self._place = place
        self._busy = True

    def reached(self) -> None:
        """Wait until the command begun is at its stop, or at its next pause."""
        end = time.monotonic() + 120
        while not (self._place.home / "stopped").exists():
            assert time.monotonic() < end
            time.sleep(0.01)

    def go_on(self) -> None:
        """Let the command begun leave its pause."""
        (self._place.home / "stopped").unlink()

    def send(self, by: signal.Signals) -> None:
        """Send a signal to the command begun."""
        os.kill(int((self._place.home / "pid").read_text()), by)

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self.send(signal.SIGKILL)

    def end(self) -> Ended:
        """Wait for the command begun."""
        assert self._process.stdout is not None
        code, self.seconds = json.loads(self._process.stdout.readline())
        self._busy = False
        told = [(self._place.home / name).read_text() for name in ("out", "err")]
        return Ended.of(code, *told)

    def run(
        self,
        place: Place,
        *arguments: str,
        stop: Stop | None = None,
        by: Misfortune = signal.SIGKILL,
        after: float | None = None,
        fault: str | None = None,
    ) -> Ended:
        """``begin`` and ``end``."""
        self.begin(place, *arguments, stop=stop, by=by, after=after, fault=fault)
        return self.end()

    def call(self, place: Place, *arguments: str) -> Ended:
        """Run ``dpsynth`` with these arguments at a place, undisturbed, to its end."""
        what = {"stop": None, "by": signal.SIGKILL, "pauses": (), "after": None, "fault": None}
        self._start(place, arguments, what)
        return self.end()

    def __enter__(self) -> Keeper:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        assert self._process.stdin is not None and self._process.stdout is not None
        if self._busy:
            self._kill()
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)
