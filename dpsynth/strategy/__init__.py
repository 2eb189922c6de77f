"""Strategies that decide what to measure, one file each, named like its method in the config.

A new strategy is a file that declares ``STRATEGY``, here or in the wing of methods, and a line in
``dpsynth.config.structure``.
"""

from collections.abc import Callable, Sequence
from importlib import import_module

from dpsynth.columns.domain import Clique
from dpsynth.strategy.strategy import Strategy
from dpsynth.wing import Point

OWN = ("auto", "independent", "fixed")
"""The methods of this room."""


def strategy_of(method: str, cliques: Sequence[Clique] = ()) -> Strategy:
    """The strategy of a method; ``cliques`` are those that the config lists, for a method that needs them.

    Raises:
        ConfigError: the method's wing is not installed.
    """
    if method in OWN:
        made: Callable[..., Strategy] = import_module(f"dpsynth.strategy.{method}").STRATEGY
    else:
        filling = Point[Callable[..., Strategy]](f"method {method}", "methods")
        made = filling.needed(f"structure.method: {method}")
    return made(cliques) if cliques else made()


__all__ = ["Strategy", "strategy_of"]
