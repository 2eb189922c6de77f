"""Configuration: YAML read into a checked, typed and public Spec.

The configuration is the only input; no private data can reach this package.
"""

from dpsynth.columns.statistic_kinds import Asked, Crosstab, Mean
from dpsynth.config.compiled import CompiledSpec, compiled
from dpsynth.config.grammar import Spec
from dpsynth.config.loading import from_mapping, load, load_unreviewed
from dpsynth.config.period import Period, Reuse, Schedule
from dpsynth.config.privacy import Cap, Ledger, Person, Privacy, Row, Split
from dpsynth.config.publish import Publish, Sample
from dpsynth.config.source import Source
from dpsynth.config.structure import Structure

__all__ = [
    "Asked",
    "Cap",
    "CompiledSpec",
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
    "compiled",
    "from_mapping",
    "load",
    "load_unreviewed",
]
