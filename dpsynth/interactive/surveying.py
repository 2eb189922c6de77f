"""Reports of records under trust: local, called in Python.

Invariant: the same code as the command ``collect``. Every report goes through the memory of this side.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from dpsynth.config import Spec
from dpsynth.errors import ConfigError
from dpsynth.lifecycle.collecting import (
    Sent,
    Side,
    collect_file,
    collect_record,
    collect_table,
    usual_memory,
)
from dpsynth.lifecycle.inputs import MemoryTable

Cap = int | float | Decimal | Fraction
FORMS = ("jsonl", "parquet")


def side_of(out: str | Path, memory: str | Path | None, cap: Cap | None, form: str) -> Side:
    """A respondent's side.

    Raises:
        ConfigError: a value isn't allowed.
    """
    if form not in FORMS:
        raise ConfigError("form must be 'jsonl' or 'parquet'.")
    if cap is not None and not 0 < cap < float("inf"):
        raise ConfigError("cap must be above 0.")
    most = None if cap is None else Fraction(repr(cap)) if isinstance(cap, float) else Fraction(cap)
    return Side(usual_memory() if memory is None else Path(memory), Path(out), f".{form}", most)


def reported(spec: Spec, records: object, whose: str | None, side: Side) -> Sent:
    """Report a record, or the records of a table or a file; see ``dpsynth.collect``.

    Raises:
        ConfigError, SourceError, BudgetRefused, DpsynthError: nothing was sent.
    """
    if isinstance(records, Mapping):
        return collect_record(spec, records, "me" if whose is None else whose, side)
    if whose is None:
        raise ConfigError(
            "whose must name the column of the table that says whose each record is, for each respondent "
            "reports once."
        )
    if isinstance(records, str | Path):
        return collect_file(spec, Path(records), whose, side)
    return collect_table(spec, MemoryTable(records), whose, side)
