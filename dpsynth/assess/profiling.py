"""The owner's look at the table before there is a configuration: ``dpsynth init --look``.

The only look outside of a release. It costs no budget because nothing of it is released: what it
finds goes into the owner's starter file, marked, and a configuration with such marks is refused.

Invariant: no error says more about the table than its file's name and the names of its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from dpsynth.curator.profiling import Guess, guesses
from dpsynth.curator.source import read_batches
from dpsynth.errors import ConfigError, DpsynthError, StepFailed


def look_at(table: str | None, kind: str, columns: Sequence[str], separator: str = ",") -> dict[str, Guess]:
    """Guesses of what some columns of a private table are.

    Args:
        table: the table's path.
        kind: its format, csv or parquet.
        columns: the columns to look at, and no others.
        separator: what stands between the cells of a CSV file.

    Returns:
        Keys of the grammar by column, as ``dpsynth.curator.profiling`` guesses them.

    Raises:
        ConfigError: no table was named.
        SourceError: the table can't be opened, or lacks a column.
        StepFailed: an unforeseen error, its details withheld.
    """
    if table is None:
        raise ConfigError("--look needs the table that is to be looked at. Give it with --table.")
    if not columns:
        return {}
    form: Literal["csv", "parquet"] = "parquet" if kind == "parquet" else "csv"
    try:
        batches = read_batches(Path(table), columns, form, keep_broken=False, separator=separator)
        return guesses(batches, columns)
    except DpsynthError as error:
        error.__cause__ = error.__context__ = None
        raise
    except Exception as error:
        failure = StepFailed.of("look at the table", error)
    raise failure
