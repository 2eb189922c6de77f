"""A pytest session that collects once, and then forks: children that measure, and a child for each mutant.

A mutant lives in its child alone: the code objects of the functions that differ are put into the functions
that were imported. So nothing is imported again, decorated functions and properties are reached as well, and
a fork costs milliseconds. A constant is bound anew in each module that imported it under its name.

A measuring child runs tests under coverage, a context a test. What it writes is kept, and a later session
measures only tests that it doesn't know. Of a source file that has changed since, it is known only which
tests pass through it somewhere (line 0); to measure all again, remove ``.mutants/``.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from inspect import unwrap
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from coverage import Coverage

from tests.forked import in_child
from tests.mutants.mutations import Module, Mutant, functions_of

ROOT = Path(__file__).resolve().parents[2]
SPARE_WALL, SPARE_CPU = 240.0, 2
"""Seconds by the clock and of the processor that a child may take beside those of its tests."""

_VALUES = (int, float, str, bytes, Fraction, Decimal, Context, np.generic, timedelta,
           tuple, list, dict, frozenset)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: ``killed`` by a test or a limit, ``survived``, or ``untried`` and why."""

    status: str
    by: str
    seconds: float


class Covered:
    """What each test covers of the rooms, and its seconds of the processor."""

    def __init__(self, path: Path, files: Sequence[str]) -> None:
        self.path = path
        self.marks = {f: hashlib.sha256((ROOT / f).read_bytes()).hexdigest() for f in files}
        held = json.loads(path.read_text()) if path.exists() else {}
        same = self.marks.keys() <= held.get("marks", {}).keys()
        self.seconds: dict[str, float] = held["seconds"] if same else {}
        self.lines: dict[str, dict[str, list[str]]] = {f: {} for f in files} | held.get("lines", {})
        for file, mark in held.get("marks", {}).items():
            if file in self.marks and self.marks[file] != mark:
                through = {test for tests in self.lines[file].values() for test in tests}
                self.lines[file] = {"0": sorted(through)}

    def add(self, seconds: dict[str, float], lines: dict[str, dict[str, list[str]]]) -> None:
        """Keep what was measured."""
        self.seconds.update(seconds)
        for file, by_line in lines.items():
            for line, tests in by_line.items():
                known = self.lines[file].setdefault(line, [])
                known.extend(set(tests) - set(known))
        held = {"marks": self.marks, "seconds": self.seconds, "lines": self.lines}
        self.path.write_text(json.dumps(held))

    def tests_of(self, mutant: Mutant) -> set[str]:
        """The tests that pass through the lines of a mutant, or else through its module."""
        of_file = self.lines[mutant.file]
        lines = map(str, range(mutant.first, mutant.last + 1))
        through = {test for line in lines for test in of_file.get(line, ())}
        return through | set(of_file.get("0", ())) if through else {t for ts in of_file.values() for t in ts}


class Session:
    """The plugin: it takes the place of pytest's loop over tests.

    Args:
        modules: the modules to be changed.
        covered: what is known of the tests.
        wanted: tells of a mutant if it is to be tried.
        keep: takes each outcome.
        most: seconds of the processor that the tests of one mutant may have taken without it.
    """

    def __init__(
        self,
        modules: Sequence[Module],
        covered: Covered,
        wanted: Callable[[Mutant], bool],
        keep: Callable[[Mutant, Outcome], None],
        most: float,
    ) -> None:
        self.modules, self.covered, self.wanted, self.keep, self.most = modules, covered, wanted, keep, most
        self._report: int | None = None
        self._kills: dict[tuple[str, str], int] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Measure, then try one mutant after another."""
        items = {item.nodeid: item for item in session.items if "postgresql" not in item.nodeid}
        gc.unfreeze()
        files = {str(m.path): m for m in self.modules}
        functions = [
            f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__code__.co_filename in files
        ]
        gc.freeze()
        unknown = [item for name, item in items.items() if name not in self.covered.seconds]
        print(f"{len(items)} tests, {len(unknown)} of them to be measured", flush=True)
        for batch in range(0, len(unknown), 200):
            self._measure(unknown[batch : batch + 200])
        for module in self.modules:
            of_module = [f for f in functions if f.__code__.co_filename == str(module.path)]
            for mutant in filter(self.wanted, module.mutants):
                self.keep(mutant, self._try(module, mutant, of_module, items))
        return True

    def _measure(self, items: list[pytest.Item]) -> None:
        """Measure tests, without those that fail already: these kill nothing, and are named."""
        path = self.covered.path.with_suffix(".new")
        while items:
            code, said = in_child(partial(self._measured, items, path), wall=3600.0)
            if code == 0:
                measured = json.loads(path.read_text())
                path.unlink()
                self.covered.add(measured["seconds"], measured["lines"])
                print(f"  {len(items)} measured", flush=True)
                return
            left = [item for item in items if item.nodeid != said]
            if len(left) == len(items):
                raise SystemExit(f"tests can't be measured: exit code {code}")
            print(f"  fails without a mutant: {said}", flush=True)
            items = left

    def _measured(self, items: list[pytest.Item], path: Path, told: int) -> None:
        self._report = told
        coverage = Coverage(data_file=None, include=[str(ROOT / file) for file in self.covered.marks])
        seconds = {}
        coverage.start()
        for item in items:
            coverage.switch_context(item.nodeid)
            began = _cpu()
            self._run(item, items)
            seconds[item.nodeid] = round(_cpu() - began, 4)
        coverage.stop()
        data = coverage.get_data()
        lines = {
            file: {
                str(line): sorted(filter(None, tests))
                for line, tests in data.contexts_by_lineno(str(ROOT / file)).items()
            }
            for file in self.covered.marks
        }
        path.write_text(json.dumps({"seconds": seconds, "lines": lines}))

    def _run(self, item: pytest.Item, items: Sequence[pytest.Item]) -> None:
        following = items[items.index(item) + 1] if item is not items[-1] else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """End the child at the first failure."""
        if report.failed and self._report is not None:
            os.write(self._report, report.nodeid.encode())
            os._exit(1)

    def _try(
        self, module: Module, mutant: Mutant, functions: Sequence[FunctionType], items: dict[str, pytest.Item]
    ) -> Outcome:
        began = time.perf_counter()
        chosen, sum_ = [], 0.0
        names = self.covered.tests_of(mutant) & items.keys() & self.covered.seconds.keys()
        for name in sorted(names, key=lambda n: (self._rank(mutant, n), n)):
            cost = self.covered.seconds[name]
            if sum_ + cost <= self.most or not chosen:
                chosen.append(items[name])
                sum_ += cost
        if not chosen:
            return Outcome("survived", "no test passes through it", 0.0)

        def child(told: int) -> None:
            if reason := _put_in(module, mutant, functions):
                os.write(told, reason.encode())
                os._exit(3)
            self._report = told
            silent = chosen[0].config.pluginmanager
            silent.unregister(name="terminalreporter")
            for item in chosen:
                most = int(
                    resource.getrusage(resource.RUSAGE_SELF).ru_utime + 4 * self.covered.seconds[item.nodeid]
                )
                resource.setrlimit(resource.RLIMIT_CPU, (most + SPARE_CPU, resource.RLIM_INFINITY))
                self._run(item, chosen)

        code, said = in_child(child, wall=SPARE_WALL + 10 * sum_)
        seconds = time.perf_counter() - began
        if code == 3:
            return Outcome("untried", said, seconds)
        if code == 0:
            return Outcome("survived", f"{len(chosen)} tests", seconds)
        if code == 1 and said:
            self._kills[mutant.file, said] = self._kills.get((mutant.file, said), 0) + 1
            return Outcome("killed", said, seconds)
        return Outcome("killed", f"a limit or a crash ({code})", seconds)

    def _rank(self, mutant: Mutant, test: str) -> float:
        """Cheap tests come first, those that have killed others of the file, and those named after it."""
        words = [word for word in Path(mutant.file).stem.split("_") if len(word) > 3]
        named = any(word in Path(test.partition("::")[0]).stem for word in words)
        kills = self._kills.get((mutant.file, test), 0)
        return self.covered.seconds[test] / (1 + 4 * kills) / (10 if named else 1)


def _cpu() -> float:
    """Seconds of the processor so far, of this process and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _put_in(module: Module, mutant: Mutant, functions: Iterable[FunctionType]) -> str:
    """Put a mutant into the functions that were imported; the reason where that can't be."""
    before = functions_of(compile(module.tree, str(module.path), "exec"))
    after = module.code_with(mutant)
    differing = {key: code for key, code in after.items() if code != before[key]}
    put = 0
    for function in functions:
        code = differing.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code is not None:
            if len(code.co_freevars) != len(function.__code__.co_freevars):
                return "another number of free variables"
            function.__code__ = code
            put += 1
    return "" if put or _rebound(module, mutant) else "no function that was imported differs"


def _rebound(module: Module, mutant: Mutant) -> bool:
    """Give constants, attributes of classes and defaults of parameters the values that the mutant's have.

    The mutant is run as a module that nobody imports; what differs in it is carried over.
    """
    owner = sys.modules[".".join(module.path.relative_to(ROOT).with_suffix("").parts)]
    held: dict[str, Any] = {"__name__": owner.__name__, "__file__": owner.__file__}
    exec(compile(module.tree_with(mutant), str(module.path), "exec"), held)
    carried = 0
    for name, new in held.items():
        old = vars(owner).get(name)
        function = unwrap(new) if callable(new) else new
        if isinstance(function, FunctionType | type) and function.__module__ == owner.__name__:
            carried += _carried(old, new)
        elif (isinstance(new, _VALUES) or is_dataclass(new)) and repr(new) != repr(old):
            for other in list(sys.modules.values()):
                if isinstance(other, ModuleType) and vars(other).get(name) is old:
                    setattr(other, name, new)
            carried += 1
    return carried > 0


def _carried(old: Any, new: Any) -> int:
    """How many values of a function or of a class were carried over."""
    if isinstance(new, type):
        carried = 0
        for name, found in list(vars(new).items()):
            of_class = isinstance(found, classmethod | staticmethod)
            value, was = ((v.__func__ if of_class else v) for v in (found, vars(old).get(name)))
            if isinstance(value, FunctionType):
                carried += _carried(was, value)
            elif isinstance(value, _VALUES) and not name.startswith("__") and repr(value) != repr(was):
                setattr(old, name, value)
                carried += 1
        return carried
    old, new = unwrap(old), unwrap(new)
    if repr((old.__defaults__, old.__kwdefaults__)) == repr((new.__defaults__, new.__kwdefaults__)):
        return 0
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    return 1
