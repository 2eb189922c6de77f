"""What the user asks for: YAML to a checked, typed and public Spec.

Reads the configuration and nothing else; no private data can reach this room.
"""

from dpsynth.spec.grammar import Source, Spec
from dpsynth.spec.loading import from_mapping, load
from dpsynth.spec.privacy import Cap, Ledger, Person, Privacy, Row, Split
from dpsynth.spec.publication import Crosstab, Mean, Publish, Sample
from dpsynth.spec.structure import Structure

__all__ = [
    "Cap",
    "Crosstab",
    "Ledger",
    "Mean",
    "Person",
    "Privacy",
    "Publish",
    "Row",
    "Sample",
    "Source",
    "Spec",
    "Split",
    "Structure",
    "from_mapping",
    "load",
]
