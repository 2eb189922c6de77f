"""Tests that depend on chance are found, in whatever way they do, and so are their failures."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from dpsynth.accounting.events import SelectionEvent
from dpsynth.curator import samplers
from tests.chance import UNSEEDED, Chance, Watch

ZEROS = np.zeros(3, dtype=np.int64)
SELECTION = SelectionEvent(0.5, 0.01, 1)

DRAWS: dict[str, tuple[set[str], Callable[[], object]]] = {
    "noise": ({"noise"}, lambda: samplers.add_gaussian(ZEROS, 2.0)),
    "a choice": ({"noise"}, lambda: samplers.choose_index(ZEROS, 2.0)),
    "bulk noise": ({"bits"}, lambda: samplers.add_laplace(np.zeros(500, dtype=np.int64), 1.0)),
    "coins": ({"bits"}, lambda: samplers.select(np.array([3]), SELECTION)),
    "a key": ({"names and keys"}, lambda: secrets.token_hex(16)),
    "a generator": ({UNSEEDED}, lambda: np.random.default_rng().random()),
    "a process": ({"a process"}, lambda: subprocess.run([sys.executable, "--version"], check=True)),
    "a seed": (set(), lambda: np.random.default_rng(1).random()),
}


@pytest.mark.parametrize(("kinds", "draw"), DRAWS.values(), ids=DRAWS)
def test_whatever_is_drawn_is_seen(kinds: set[str], draw: Callable[[], object]) -> None:
    with Watch().installed() as watch:
        draw()
    assert watch.seen == kinds


def test_what_a_fixture_draws_counts_for_every_test_that_uses_it_and_a_failure_is_told() -> None:
    chance = Chance(runs=3)
    made: list[int] = []

    class Item(SimpleNamespace):
        """A test whose fixture is set up before the first that uses it."""

        def pytest_runtest_protocol(self, item: Item, nextitem: object) -> None:
            del nextitem
            if "drawn" in item.fixturenames and not made:
                fixture = chance.pytest_fixture_setup(SimpleNamespace(argname="drawn"))
                next(fixture)
                made.append(int(samplers.add_gaussian(ZEROS, 2.0)[0]))
                with pytest.raises(StopIteration):
                    fixture.send(None)
            chance.pytest_runtest_logreport(
                SimpleNamespace(failed=item.nodeid == "second", nodeid=item.nodeid)
            )

        @property
        def config(self) -> SimpleNamespace:
            return SimpleNamespace(hook=self, pluginmanager=SimpleNamespace(unregister=lambda name: None))

    named = {"first": ["drawn"], "second": ["drawn"], "third": []}
    items = [Item(nodeid=name, fixturenames=fixtures) for name, fixtures in named.items()]
    chance.pytest_runtestloop(SimpleNamespace(items=items))
    assert chance.kinds == {"first": ["noise"], "second": ["noise"]}
    assert set(chance.seconds) == set(named)
    assert chance.failures == {"second": 4}
