"""Strategies that decide what to measure; one file each, registered here."""

from collections.abc import Sequence

from dpsynth.domain.domain import Clique
from dpsynth.structure.aim import Aim
from dpsynth.structure.aim_gdp import AimGdp
from dpsynth.structure.auto import Auto
from dpsynth.structure.fixed import Fixed
from dpsynth.structure.independent import Independent
from dpsynth.structure.mst import MaximumSpanningTree
from dpsynth.structure.one_shot import OneShot
from dpsynth.structure.privbayes import PrivBayes
from dpsynth.structure.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {
    s.name: s for s in (Auto(), Independent(), MaximumSpanningTree(), PrivBayes(), Aim(), AimGdp(), OneShot())
}
"""Strategies that choose for themselves, by their name in the config."""


def strategy_of(method: str, cliques: Sequence[Clique] = ()) -> Strategy:
    """The strategy that a config names; ``cliques`` are those that it lists for ``fixed``."""
    return Fixed(cliques) if method == Fixed.name else STRATEGIES[method]


__all__ = ["STRATEGIES", "Strategy", "strategy_of"]
