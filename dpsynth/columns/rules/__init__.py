"""Rules across columns that every synthetic row obeys: their reading, checks and enforcement."""

from dpsynth.columns.rules.checking import Checks, Unobeyed, Witness, witness_of
from dpsynth.columns.rules.drawing import Drawing, RuledRows, Tied, refuse_unobeyed
from dpsynth.columns.rules.grids import Enforcement, enforcement_of, grids_of, told_apart, told_only, zeros_of
from dpsynth.columns.rules.repair import RuleRepairs
from dpsynth.columns.rules.rule import RuleRefused, Rules, condition_of, rules_of

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
    "refuse_unobeyed",
    "rules_of",
    "told_apart",
    "told_only",
    "witness_of",
    "zeros_of",
]
