"""Periods: the slice of the table that a release is about, and the composition of the slices' costs.

Invariant: the slice follows from the config, the clock and the command line alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Annotated, Literal

from pydantic import Field

from dpsynth.columns.slices import Slice, label_of, span_of, value_of
from dpsynth.config.scalars import Choice, ColumnName, Flag
from dpsynth.config.section import Section
from dpsynth.errors import ConfigError

Every = Literal["day", "week", "month", "quarter", "year", "value"]
Composition = Literal["sequential", "parallel"]

_EXAMPLES: Mapping[str, str] = {
    "day": "2026-03-14",
    "week": "2026-W07",
    "month": "2026-03",
    "quarter": "2026-Q1",
    "year": "2026",
}
LONGEST_LABEL = 200
"""Longest value that names a slice, in characters."""


class Period(Section):
    """The slice of the table that a release is about: the rows of one month, say."""

    column: ColumnName = Field(
        description="Column that says which slice a row is in: dates, or with every: value any texts or "
        "numbers. It need not be among columns. A row whose cell is no date is in no slice."
    )
    every: Annotated[Every, Choice(("day", "week", "month", "quarter", "year", "value"))] = Field(
        description="Length of a slice; a week is Monday to Sunday. value: all rows with one value of the "
        "column, which is named with --period. Otherwise a run is about the last slice that has ended, or "
        "about the one that --period names."
    )
    composition: Annotated[Composition, Choice(("sequential", "parallel"))] = Field(
        default="sequential",
        description="sequential: the costs of all slices add up. parallel: the slice that costs most counts, "
        "since each is about other units. That holds only if all rows of one unit, of all time, lie in one "
        "slice. A row does; for persons you declare it here, and nothing can check it.",
    )


class Reuse(Section):
    """Earlier answers of the dataset that serve as evidence. They were paid for, so reuse is free."""

    same_period: Annotated[bool, Flag()] = Field(
        default=False,
        description="true: answers about the same slice from earlier releases are averaged in. Only sound if "
        "the slice's rows have not changed since.",
    )
    earlier_periods: Annotated[bool, Flag()] = Field(
        default=False,
        description="true: answers about the last 24 earlier slices go into the model, at a discount by how "
        "far single columns have changed, and choices of marginals are compared with them.",
    )


def slice_of(period: Period, day: date) -> Slice:
    """The slice of the calendar that a day is in; not for ``every: value``."""
    label = label_of(period.every, day)
    span = span_of(label)
    assert span is not None
    return Slice(period.column, label, *span)


def last_whole(period: Period, today: date) -> Slice:
    """The last slice that ended before a day began; not for ``every: value``."""
    start = slice_of(period, today).start
    assert start is not None
    return slice_of(period, start - timedelta(days=1))


def slice_named(period: Period, label: str, today: date) -> Slice:
    """The slice that a label names.

    Args:
        period: the period section of the config.
        label: the value of --period.
        today: today's date in the time zone of the schedule.

    Raises:
        ConfigError: the label names no slice, or one that has not ended (a later run would read more rows).
    """
    if period.every == "value":
        value = value_of(label)
        if not value or not value.isprintable() or len(value) > LONGEST_LABEL:
            raise ConfigError(
                f"--period must be one value of the column {period.column}, a text of 1 to {LONGEST_LABEL} "
                "printable characters."
            )
        return Slice(period.column, value)
    example = _EXAMPLES[period.every]
    span = span_of(label)
    if span is None or slice_of(period, span[0]).label != label:
        shown = f"'{label}'" if label.isprintable() and len(label) <= LONGEST_LABEL else "what is given"
        raise ConfigError(
            f"--period must name a {period.every}, such as {example}, since the config has period.every: "
            f"{period.every}; {shown} is none."
        )
    if span[1] > today:
        raise ConfigError(
            f"--period {label} has not ended: its last day is {span[1] - timedelta(days=1)}, and today is "
            f"{today}. A period is released once, when all of its rows are there. Wait, or name an earlier "
            "one."
        )
    return Slice(period.column, label, *span)
