"""What every method that a config may name has to bring; a new one is told by these tests what it lacks."""

from importlib import import_module
from pathlib import Path

import pytest

from dpsynth.accounting.measures import GDP, PURE
from dpsynth.config.json_schema import schema_text
from dpsynth.config.structure import METHODS
from dpsynth.strategy import OWN, strategy_of
from dpsynth.testing import STRATEGIES
from tests.guarantee import test_every_strategy_by_replay as replay

REPOSITORY = Path(__file__).parents[2]
CLIQUES = [("a", "b")]


@pytest.fixture(params=list(METHODS.values()), ids=list(METHODS))
def method(request):
    return request.param


def test_its_file_is_named_like_it_and_declares_its_strategy(method):
    room = "strategy" if method.name in OWN else "wings.methods"
    assert import_module(f"dpsynth.{room}.{method.name}").STRATEGY.name == method.name
    assert strategy_of(method.name, CLIQUES if method.lists_cliques else ()).name == method.name
    assert (method.name in STRATEGIES) != method.lists_cliques


def test_every_file_that_declares_a_strategy_is_a_method_of_the_config():
    """Planted: a file whose line was forgotten could not be named in any config."""
    files = (
        f for room in ("strategy", "wings/methods") for f in (REPOSITORY / "dpsynth" / room).glob("*.py")
    )
    assert {f.stem for f in files if "STRATEGY: " in f.read_text() and f.stem != "__init__"} == set(METHODS)


def test_its_outline_asks_what_its_line_says(method):
    for noise, measure in (("gaussian", GDP), ("laplace", PURE)):
        sizes = dict.fromkeys("abcde", 3)
        outlined = strategy_of(method.name, CLIQUES if method.lists_cliques else ()).outline(
            sizes, (), measure, noise
        )
        assert (outlined.choices + outlined.errors > 0) == method.chooses
        assert (outlined.cliques > 0) == method.measures
        assert (outlined.shares.structure > 0) == method.chooses
        assert (outlined.shares.marginals > 0) == method.measures


def test_its_releases_are_replayed_on_neighbours_under_every_noise_that_it_has(method):
    for noise in ("gaussian", "laplace"):
        terms = {t for t, privacy in replay.TERMS.items() if privacy["noise"] == noise}
        assert terms and {(method.name, t) for t in terms} <= {case.values for case in replay.ALL}


def test_its_line_stands_in_the_table_of_methods_and_in_the_schema(method):
    methods = (REPOSITORY / "docs" / "structure.md").read_text().split("## Methods")[1].split("## ")[0]
    assert f"\n| `{method.name}` | " in methods
    assert f"{method.name} {method.does}." in schema_text()
