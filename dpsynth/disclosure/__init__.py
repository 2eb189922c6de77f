"""Older disclosure control: suppression of small counts, rounding, k-anonymity.

None of it is a guarantee; ``dpsynth.attacks`` shows why. Here it makes views of what is private already.

Invariant: pure functions of counts and codes that they are handed; nothing is read and nothing random.
"""

from dpsynth.disclosure.hierarchy import Hierarchy, Level
from dpsynth.disclosure.k_anonymity import Demand, Generalised, generalised
from dpsynth.disclosure.linked_tables import LinkedTables, linked_tables, number_of_cells
from dpsynth.disclosure.rounding import rounded
from dpsynth.disclosure.suppression import left_out, small, too_narrow

__all__ = [
    "Demand",
    "Generalised",
    "Hierarchy",
    "Level",
    "LinkedTables",
    "generalised",
    "left_out",
    "linked_tables",
    "number_of_cells",
    "rounded",
    "small",
    "too_narrow",
]
