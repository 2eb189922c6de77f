"""What a release finds out about its columns before it counts them; one file a kind of search."""

from dpsynth.discovery.questions import Door
from dpsynth.discovery.searching import discover

__all__ = ["Door", "discover"]
