"""Strategies that decide what to measure, one file each, named like its method in the config.

A new strategy is a file here that declares ``STRATEGY``, and a line in ``dpsynth.config.structure``.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from dpsynth.columns.domain import Clique
from dpsynth.strategy.strategy import Strategy


def strategy_of(method: str, cliques: Sequence[Clique] = ()) -> Strategy:
    """The strategy of a method; ``cliques`` are those that the config lists, for a method that needs them."""
    made: Callable[..., Strategy] = import_module(f"dpsynth.strategy.{method}").STRATEGY
    return made(cliques) if cliques else made()


__all__ = ["Strategy", "strategy_of"]
