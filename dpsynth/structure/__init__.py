"""Strategies that decide what to measure; one file each, registered here."""

from dpsynth.structure.independent import Independent
from dpsynth.structure.mst import MaximumSpanningTree
from dpsynth.structure.strategy import Strategy

STRATEGIES: dict[str, Strategy] = {s.name: s for s in (Independent(), MaximumSpanningTree())}
"""Strategies by their name in the config."""

__all__ = ["STRATEGIES", "Strategy"]
