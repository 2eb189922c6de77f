"""Rules across columns that every synthetic row obeys: their reading, checks and enforcement."""

from dpsynth.rules.checking import Checks
from dpsynth.rules.drawing import Drawing, RuledRows, Tied, obeying, refuse_unobeyed
from dpsynth.rules.grids import grids_of, zeros_of
from dpsynth.rules.reading import condition_of, rules_of
from dpsynth.rules.repair import RuleRepairs
from dpsynth.rules.rule import RuleRefused, Rules
from dpsynth.rules.ways import Enforcement, enforcement_of
from dpsynth.rules.witness import Unobeyed, Witness, witness_of

__all__ = [
    "Checks",
    "Drawing",
    "Enforcement",
    "RuleRefused",
    "RuleRepairs",
    "RuledRows",
    "Rules",
    "Tied",
    "Unobeyed",
    "Witness",
    "condition_of",
    "enforcement_of",
    "grids_of",
    "obeying",
    "refuse_unobeyed",
    "rules_of",
    "witness_of",
    "zeros_of",
]
