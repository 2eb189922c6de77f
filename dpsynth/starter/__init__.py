"""The first configuration of a table: from its header, or from a description that people have.

Invariant: no row of the private table is read in this package. Guesses of ``dpsynth.assess.profiling``
from the table are marked, and refused until someone has reviewed them.
"""

from dpsynth.starter.formats import FORMATS, draft_of, guessed
from dpsynth.starter.memory import draft_in_memory
from dpsynth.starter.sketch import LOOKED, Draft, Sketch
from dpsynth.starter.starter import must_be_new, starter_text, write_starter
from dpsynth.starter.writing import release_name

__all__ = [
    "FORMATS",
    "LOOKED",
    "Draft",
    "Sketch",
    "draft_in_memory",
    "draft_of",
    "guessed",
    "must_be_new",
    "release_name",
    "starter_text",
    "write_starter",
]
