"""Domain discovery: bounds, bins, values and contribution bounds that a release finds out privately."""

from dpsynth.discovery.searches import discover

__all__ = ["discover"]
