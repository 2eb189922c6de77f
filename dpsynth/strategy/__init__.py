"""Strategies that decide what to measure, one file each, named like its method in the config.

A new strategy is a file here that declares ``STRATEGY``, and a line in ``dpsynth.config.structure``.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from dpsynth.columns.domain import Clique
from dpsynth.config.structure import METHODS
from dpsynth.strategy.strategy import Strategy


def strategy_of(method: str, cliques: Sequence[Clique] = ()) -> Strategy:
    """The strategy of a method; ``cliques`` are those that the config lists, for a method that needs them."""
    made: Callable[..., Strategy] = import_module(f"dpsynth.strategy.{METHODS[method].name}").STRATEGY
    return made(cliques) if METHODS[method].lists_cliques else made()


STRATEGIES: dict[str, Strategy] = {
    method.name: strategy_of(method.name) for method in METHODS.values() if not method.lists_cliques
}
"""Strategies that need no list of cliques, by the name of their method."""

__all__ = ["STRATEGIES", "Strategy", "strategy_of"]
