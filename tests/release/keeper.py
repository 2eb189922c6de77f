"""Keeps a process that forks releases and lets them die; see ``mortal``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from .place import Ended, Place, environment

Stop = tuple[str, int]


class Keeper:
    """Runs ``dpsynth`` commands in forks of one warm process."""

    def __init__(self, home: Path) -> None:
        """Start the process; ``home`` is its HOME."""
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("mortal.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(home),
        )
        self._busy = False
        self.seconds = 0.0
        """How long the last command took."""

    def begin(
        self,
        place: Place,
        *arguments: str,
        stop: Stop | None = None,
        by: signal.Signals = signal.SIGKILL,
        after: float | None = None,
        fault: str | None = None,
    ) -> None:
        """Start ``dpsynth run config.yaml --plain`` at a place, with arguments.

        Args:
            place: where to run it.
            arguments: more of the command line.
            stop: name and count of the place at which the run is sent a signal.
            by: which signal.
            after: kill the run so many seconds after its budget was reserved.
            fault: a fault to plant: "charged late".
        """
        assert self._process.stdin is not None
        job = {
            "arguments": ["run", "config.yaml", "--plain", *arguments],
            "cwd": str(place.folder),
            "stop": stop,
            "signal": by,
            "after": after,
            "fault": fault,
            **{name: str(place.folder / name) for name in ("out", "err", "trace", "draws", "pid", "stopped")},
        }
        (place.folder / "stopped").unlink(missing_ok=True)
        print(json.dumps(job), file=self._process.stdin, flush=True)
        self._place = place
        self._busy = True

    def reached(self) -> None:
        """Wait until the command begun is at its stop."""
        end = time.monotonic() + 20
        while not (self._place.folder / "stopped").exists():
            assert time.monotonic() < end
            time.sleep(0.01)

    def send(self, by: signal.Signals) -> None:
        """Send a signal to the command begun."""
        os.kill(int((self._place.folder / "pid").read_text()), by)

    def end(self) -> Ended:
        """Wait for the command begun."""
        assert self._process.stdout is not None
        code, self.seconds = json.loads(self._process.stdout.readline())
        self._busy = False
        told = [(self._place.folder / name).read_text() for name in ("out", "err")]
        return Ended(code, *told)

    def run(
        self,
        place: Place,
        *arguments: str,
        stop: Stop | None = None,
        by: signal.Signals = signal.SIGKILL,
        after: float | None = None,
        fault: str | None = None,
    ) -> Ended:
        """``begin`` and ``end``."""
        self.begin(place, *arguments, stop=stop, by=by, after=after, fault=fault)
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
            with suppress(ProcessLookupError):
                self.send(signal.SIGKILL)
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=60)
