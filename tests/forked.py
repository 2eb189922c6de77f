"""Work in a child of this process, which ends with all that it has started."""

import os
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable

MOST_BYTES = 12 << 30
"""Memory of a child."""


def in_child(work: Callable[[int], None], wall: float) -> tuple[int, str]:
    """Do some work in a child: its exit code, negative for a signal, and what it wrote."""
    sys.stdout.flush()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setsid()
        os.close(read)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
        code = 2
        try:
            work(write)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    ended = os.pidfd_open(child)
    try:
        select.select([ended], [], [], wall)
        _end_group(child)
        _, status = os.waitpid(child, 0)
        said = os.read(read, 4096).decode() if select.select([read], [], [], 0)[0] else ""
    finally:
        os.close(ended)
        os.close(read)
    return os.waitstatus_to_exitcode(status), said


def _end_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def printed_by(program: str, seeds: Iterable[str]) -> list[str]:
    """The output of a program in Python, in processes of its own, each with another seed of hashes."""
    return [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in seeds
    ]
