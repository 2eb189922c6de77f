"""What the user asks for: YAML to a checked, typed and public Spec.

Reads the configuration and nothing else; no private data can reach this room.
"""

from dpsynth.spec.grammar import Spec
from dpsynth.spec.loading import from_mapping, load
from dpsynth.spec.period import Period, Reuse
from dpsynth.spec.privacy import Cap, Ledger, Person, Privacy, Row, Split
from dpsynth.spec.publication import Crosstab, Mean, Publish, Sample
from dpsynth.spec.schedule import Schedule
from dpsynth.spec.source import Source
from dpsynth.spec.structure import Structure

__all__ = [
    "Cap",
    "Crosstab",
    "Ledger",
    "Mean",
    "Period",
    "Person",
    "Privacy",
    "Publish",
    "Reuse",
    "Row",
    "Sample",
    "Schedule",
    "Source",
    "Spec",
    "Split",
    "Structure",
    "from_mapping",
    "load",
]
