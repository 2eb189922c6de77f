"""A wall clock that a test sets, for whole processes and all that they start."""

import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


def reason_without() -> str | None:
    """Why there can be no such clock here, or None."""
    if sys.platform != "linux":
        return "a clock that the test sets is preloaded, which is tried on Linux alone"
    return None if _compiler() else "needs a C compiler, to make a clock that the test sets"


def _compiler() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


@dataclass(frozen=True)
class Clock:
    """A clock in a folder, which runs at the usual pace from where it is set."""

    folder: Path

    def __post_init__(self) -> None:
        """Compile what is preloaded."""
        compiler = _compiler()
        assert compiler is not None
        self.folder.mkdir(parents=True, exist_ok=True)
        source = Path(__file__).with_name("clock.c")
        command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(self._library), str(source), "-ldl"]
        subprocess.run(command, check=True)
        self._ahead.write_bytes(struct.pack("q", 0))

    @property
    def _library(self) -> Path:
        return self.folder / "clock.so"

    @property
    def _ahead(self) -> Path:
        return self.folder / "ahead"

    @property
    def environment(self) -> Mapping[str, str]:
        """What has a process go by this clock."""
        return {"LD_PRELOAD": str(self._library), "CLOCK_AHEAD": str(self._ahead)}

    def set(self, when: datetime) -> None:
        """Set it, for every process at once: they have mapped the file."""
        with self._ahead.open("r+b") as file:
            file.write(struct.pack("q", int(when.timestamp() - time.time())))

    @property
    def now(self) -> datetime:
        """What it shows."""
        (ahead,) = struct.unpack("q", self._ahead.read_bytes())
        return datetime.fromtimestamp(time.time() + ahead, UTC)
