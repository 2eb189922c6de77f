"""Warnings that follow from the first noisy answers: a column that reads nothing, a table too small."""

from dpsynth.diagnostics.single_columns import empty_table, warnings_of
from dpsynth.diagnostics.warning import DataWarning

__all__ = ["DataWarning", "empty_table", "warnings_of"]
