"""Domain discovery: bounds, bins, values and contribution bounds that a release finds privately."""

from dpsynth.strategy.discovery.searches import discover

__all__ = ["discover"]
