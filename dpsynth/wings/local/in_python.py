"""Collections in Python: ``dpsynth.collect`` and ``dpsynth.aggregate``.

Invariant: the same code as the command ``collect``. Every report goes through the memory of this side.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.config import Spec
from dpsynth.errors import ConfigError
from dpsynth.pipeline.inputs import MemoryTable
from dpsynth.pipeline.result import Release
from dpsynth.wings.local.aggregating import aggregate as aggregated
from dpsynth.wings.local.collecting import (
    Sent,
    Side,
    collect_file,
    collect_record,
    collect_table,
    usual_memory,
)

if TYPE_CHECKING:
    from dpsynth.api.releasing import Table


def collect(
    spec: Spec,
    records: Mapping[str, object] | Table | str | Path,
    /,
    *,
    whose: str | None = None,
    out: str | Path = "reports",
    memory: str | Path | None = None,
    cap: int | float | Decimal | None = None,
    form: str = "jsonl",
) -> Sent:
    """Randomise records at the respondent's side, and write reports that are safe to send.

    It is ``dpsynth collect`` in Python, for a config with ``trust: local``:

        dpsynth.collect(spec, {"cheated": "yes"})                # one record
        dpsynth.collect(spec, frame, whose="student")            # a table with a record a respondent

    A report is drawn once, and remembered on this side before it is written. Whoever is asked again sends the
    same report, whatever her record says by then.

    Args:
        spec: the contract, which respondents and publisher share.
        records: one record, as a mapping from columns to values; or a table in memory, or the path of a file.
        whose: with a table: the column that says whose each record is. With one record: a name for whose it
            is, left out "me". It stays on this side.
        out: folder for reports.
        memory: the file that remembers what was reported on this side: keep it. Left out: the file that the
            environment variable DPSYNTH_MEMORY names, or one in the home folder.
        cap: most epsilon of a respondent's reports of all collections together.
        form: "jsonl" or "parquet".

    Returns:
        The file of reports, their number, and what each has cost its respondent.

    Raises:
        DpsynthError: ConfigError, SourceError or BudgetRefused; then nothing was sent.
    """
    if form not in ("jsonl", "parquet"):
        raise ConfigError("form must be 'jsonl' or 'parquet'.")
    if cap is not None and not 0 < cap < float("inf"):
        raise ConfigError("cap must be above 0.")
    most = None if cap is None else Fraction(repr(cap)) if isinstance(cap, float) else Fraction(cap)
    side = Side(usual_memory() if memory is None else Path(memory), Path(out), f".{form}", most)
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


def aggregate(spec: Spec, reports: str | Path, /, *, outputs: str | Path = "outputs") -> Release:
    """Make a release from the reports of respondents, who had to trust nobody.

    It is ``dpsynth aggregate`` in Python. Nothing is charged: each respondent has borne the epsilon of her
    own report. ``collection`` of the result says how many reports were used and left out.

    Args:
        spec: the contract that the reports were made by.
        reports: folder of reports.
        outputs: folder under which the bundle appears as ``<release>/<release id>``.

    Raises:
        DpsynthError: ConfigError if the config isn't of the local model, SourceError if there are too few
            reports.
    """
    return aggregated(spec, Path(reports), Path(outputs))
