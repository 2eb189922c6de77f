"""Sampling of units: the settings that it can't be had with.

Invariant: a config with ``privacy.sample_rate`` can be run, and every number that it publishes counts the
error of sampling.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dpsynth.columns.column import Column
from dpsynth.columns.search import ValueSearch
from dpsynth.config.privacy import Person
from dpsynth.config.section import refused

if TYPE_CHECKING:
    from dpsynth.config.grammar import Spec

_RATE = ("privacy", "sample_rate")
KINDS = ("crosstab", "mean")
"""The kinds of statistics whose intervals count the error of sampling."""


def check_sampling(spec: Spec, columns: Mapping[str, Column]) -> None:
    """Refuse settings that a secret sample can't be had with, or for which nobody has shown that it can."""
    privacy = spec.privacy
    if privacy.sample_rate is None:
        return
    if privacy.neighbours != "add_remove":
        raise refused(
            "must be left out with neighbours: replace_one. There the number of rows is public, and that of "
            "a secret sample is not; and the sample protects by whether a unit is in it, which is what "
            "add_remove hides. Use neighbours: add_remove",
            *_RATE,
        )
    if isinstance(privacy.unit, Person) and privacy.unit.per is not None:
        raise refused(
            "must be left out with unit.per: a person would be in the sample with all periods or with none, "
            "so her periods are not in it independently of each other",
            *_RATE,
        )
    if privacy.delta is not None and privacy.delta >= privacy.sample_rate:
        raise refused(
            f"must be above privacy.delta, {privacy.delta}: the sample is asked at delta divided by it",
            *_RATE,
        )
    if spec.audiences:
        raise refused(
            "must be left out with audiences: a sample for several of them is not supported", *_RATE
        )
    if spec.reuse.same_period or spec.reuse.earlier_periods:
        raise refused(
            "must be left out with reuse: earlier answers are about other rows than those of a new sample",
            *_RATE,
        )
    for key in ("public_table", "public_marginals"):
        if getattr(spec, key):
            raise refused(
                f"must be left out with {key}: what is public is about all rows, and the answers are about a "
                "sample",
                *_RATE,
            )
    if privacy.split is not None and privacy.split.exam:
        raise refused(
            "must be 0 with privacy.sample_rate: the exam would tell how near the synthetic table is to the "
            "sample, and not to the table",
            "privacy",
            "split",
            "exam",
        )
    if privacy.split is not None and privacy.split.cutoff:
        raise refused(
            "must be 0 with privacy.sample_rate: its intervals would leave out the error of sampling",
            "privacy",
            "split",
            "cutoff",
        )
    if privacy.split is not None and privacy.split.statistics:
        raise refused(
            "must be 0 with privacy.sample_rate: all statistics are by counts there",
            "privacy",
            "split",
            "statistics",
        )
    for column in columns.values():
        if isinstance(column.search, ValueSearch):
            raise refused(
                "must be false with privacy.sample_rate: finding values has a delta of its own, which is not "
                "amplified together with the rest. List all values",
                "columns",
                column.name,
                "open",
            )
    for i, statistic in enumerate(spec.publish.statistics):
        if statistic.kind not in KINDS or statistic.condition is not None:
            raise refused(
                f"is not supported with privacy.sample_rate, which has intervals for {' and '.join(KINDS)} "
                "without a condition. dpsynth query answers other questions about counts from the bundle",
                "publish",
                "statistics",
                i,
            )
