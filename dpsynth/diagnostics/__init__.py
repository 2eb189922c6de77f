"""Warnings that follow from the noisy single columns: a column that reads nothing, a table too small."""

from dpsynth.diagnostics.single_columns import warnings_of
from dpsynth.diagnostics.warning import DataWarning

__all__ = ["DataWarning", "warnings_of"]
