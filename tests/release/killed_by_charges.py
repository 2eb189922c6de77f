"""A release in a process of its own, killed by the system once its journal has so many charges."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

_SCRIPT = """
import importlib, os, signal, sys
from pathlib import Path
from dpsynth.curator import Journal
sound, seen = Journal._append, [0]
def killed(self, *records):
    sound(self, *records)
    seen[0] += sum(record["kind"] == "charge" for record in records)
    if seen[0] >= int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
Journal._append = killed
module, folder = importlib.import_module(sys.argv[1]), Path(sys.argv[2])
module.released(folder, module.spec_of(folder))
"""


def killed_release(module: str, folder: Path, charges: int) -> str:
    """The id of a release that was killed: what a module's ``released`` makes of its ``spec_of`` a folder."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    command = [sys.executable, "-c", _SCRIPT, module, str(folder), str(charges)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL
    (partial,) = (folder / "out").glob("*/.*.partial")
    return partial.name[1:].removesuffix(".partial")
