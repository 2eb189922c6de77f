"""The first configuration of a table: from its header, or from a description that people have.

Invariant: no row of the private table is read in this package. Guesses of
``dpsynth.wings.owner.assess.profiling`` from the table are marked, and refused until someone has reviewed
them.
"""

from dpsynth.wings.owner.starter.formats import FORMATS, draft_of, drafts_of, guessed
from dpsynth.wings.owner.starter.header import draft_in_memory
from dpsynth.wings.owner.starter.sketch import LOOKED, Draft, Sketch
from dpsynth.wings.owner.starter.writing import must_be_new, release_name, starter_text, write_starter

__all__ = [
    "FORMATS",
    "LOOKED",
    "Draft",
    "Sketch",
    "draft_in_memory",
    "draft_of",
    "drafts_of",
    "guessed",
    "must_be_new",
    "release_name",
    "starter_text",
    "write_starter",
]
