"""The quick tests that depend on chance, found by watching them, and very many runs of those.

    python -m tests.chance [TESTS ...] [--runs 100] [--list] [--keep FILE]

The tests run once, watched. One depends on chance if it, or a fixture that it uses, draws noise, random bits
or names, makes a generator without a seed, or starts a process, which may do so unseen. All others do the
same in every run. Those that depend on chance then run so many times, each time in a fork of the process that
collected them. The exit code is 1 if a run fails. Without ``TESTS``, the rooms of the guarantee. With
``--keep`` what was watched stays in a file, and further runs go on from there.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import random
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import pytest
from opendp.mod import Measurement

from tests.forked import in_child

ROOMS = (
    "tests/guarantee",
    "tests/accounting",
    "tests/curator",
    "tests/wings/local/randomisers",
    "tests/wings/proof/audit",
)
UNSEEDED = "a generator without a seed"
_OURS = ("dpsynth", "tests", "flows")
_WALL = 3600.0


class Watch:
    """The draws made while it is installed, by kind."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    @contextmanager
    def installed(self) -> Iterator[Watch]:
        """Watch every source of chance that the product and its tests use."""
        with pytest.MonkeyPatch.context() as patch:
            note = partial(self._note, patch)
            note(Measurement, "__call__", "noise")
            note(subprocess.Popen, "__init__", "a process")
            note(os, "fork", "a process")
            note(os, "urandom", "bits", _by_us)
            for name in ("randbits", "token_bytes", "randbelow", "choice"):
                note(secrets, name, "bits", _by_us)
            note(secrets, "token_hex", "names and keys", _by_us)
            note(np.random, "default_rng", UNSEEDED, _without_a_seed)
            for name in ("random", "randrange", "randint", "choice", "sample", "shuffle", "getrandbits"):
                note(random, name, UNSEEDED, _by_us)
            yield self

    def _note(
        self,
        patch: pytest.MonkeyPatch,
        owner: object,
        name: str,
        kind: str,
        counts: Callable[..., bool] = lambda caller, *given: True,
    ) -> None:
        sound = getattr(owner, name)

        @functools.wraps(sound)
        def noted(*given: Any, **named: Any) -> Any:
            caller = sys._getframe(1).f_globals.get("__name__", "").partition(".")[0]
            if counts(caller, *given, *named.values()):
                self.seen.add(kind)
            return sound(*given, **named)

        patch.setattr(owner, name, noted)


def _by_us(caller: str, *given: object) -> bool:
    del given
    return caller in _OURS


def _without_a_seed(caller: str, *given: object) -> bool:
    del caller
    return not given or given[0] is None


class Chance:
    """A plugin in place of pytest's loop: a child that watches all tests, and one for each later run.

    Args:
        runs: number of runs of the tests that depend on chance.
        keep: the file in which what was watched stays; None to watch again each time.

    Attributes:
        kinds: of each test that depends on chance, by what.
        seconds: of each test, of the processor.
        failures: number of runs in which a test failed.
    """

    def __init__(self, runs: int, keep: Path | None = None) -> None:
        self.runs, self.keep = runs, keep
        self.kinds: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}
        self.failures: Counter[str] = Counter()
        self._watch = Watch()
        self._of_fixtures: dict[str, set[str]] = {}
        self._report: int | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Watch all that was collected; run what depends on chance again and again."""
        with tempfile.TemporaryDirectory() as folder:
            found = self.keep or Path(folder) / "found.json"
            if not found.exists():
                self._told(*in_child(partial(self._watched, session.items, found), wall=_WALL))
            if found.exists():
                self.kinds, self.seconds = json.loads(found.read_text())
        by_chance = [item for item in session.items if item.nodeid in self.kinds]
        for _ in range(self.runs if by_chance else 0):
            self._told(*in_child(partial(self._run, by_chance), wall=_WALL))
        print(flush=True)
        return True

    def _told(self, code: int, said: str) -> None:
        failed = said.split("\n")[:-1]
        self.failures.update(failed or [f"(exit code {code})"] * (code != 0))
        print("F" if failed or code else ".", end="", flush=True)

    def _begin(self, items: list[pytest.Item], told: int) -> None:
        """Say nothing but failures, and these to the parent."""
        self._report = told
        items[0].config.pluginmanager.unregister(name="terminalreporter")

    def _watched(self, items: list[pytest.Item], found: Path, told: int) -> None:
        self._begin(items, told)
        with self._watch.installed():
            for item, following in zip(items, [*items[1:], None], strict=True):
                # What one test draws and keeps would be hidden from the next.
                for cache in gc.get_objects():
                    if isinstance(cache, functools._lru_cache_wrapper) and _is_a_test_s(cache):
                        cache.cache_clear()
                self._watch.seen = set()
                began = time.process_time()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                self.seconds[item.nodeid] = time.process_time() - began
                names = getattr(item, "fixturenames", ())
                if kinds := self._watch.seen.union(*(self._of_fixtures.get(name, set()) for name in names)):
                    self.kinds[item.nodeid] = sorted(kinds)
        found.write_text(json.dumps([self.kinds, self.seconds]))

    def _run(self, items: list[pytest.Item], told: int) -> None:
        self._begin(items, told)
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Any:
        """Note what a fixture draws: it counts for every test that uses it."""
        before, self._watch.seen = self._watch.seen, set()
        try:
            return (yield)
        finally:
            self._of_fixtures.setdefault(fixturedef.argname, set()).update(self._watch.seen)
            self._watch.seen |= before

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell the parent of a failure."""
        if report.failed and self._report is not None:
            os.write(self._report, f"{report.nodeid}\n".encode())


def _is_a_test_s(cache: Any) -> bool:
    return str(cache.__module__).partition(".")[0] == "tests"


def main() -> int:
    """Watch, run again and again, print what depends on chance and what failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tests", nargs="*", default=list(ROOMS))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--list", action="store_true", help="name what depends on chance, and run it once")
    parser.add_argument("--keep", type=Path, help="where what was watched stays")
    args = parser.parse_args()
    chance = Chance(0 if args.list else args.runs, args.keep)
    began = os.times()
    with tempfile.TemporaryDirectory() as folder:
        options = ["-q", "-m", "not slow", "-p", "no:cacheprovider", f"--basetemp={folder}/t"]
        pytest.main([*options, *args.tests], plugins=[chance])
    used = sum(os.times()[:4]) - sum(began[:4])
    cost = sum(chance.seconds[name] for name in chance.kinds)
    if args.list:
        for name, found in sorted(chance.kinds.items()):
            print(f"{name}: {', '.join(found)} ({chance.seconds[name]:.2f} s)")
    print(f"{len(chance.kinds)} of {len(chance.seconds)} tests depend on chance, {cost:.0f} s a run:")
    for words, number in Counter(", ".join(found) for found in chance.kinds.values()).most_common():
        print(f"{number:6} {words}")
    print(f"{chance.runs} runs of these, {used:.0f} s of the processor in all")
    for name, number in chance.failures.most_common():
        print(f"failed in {number}: {name}")
    return 1 if chance.failures or not chance.seconds else 0


if __name__ == "__main__":
    sys.exit(main())
