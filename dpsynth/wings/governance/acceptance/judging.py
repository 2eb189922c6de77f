"""The criteria of a release, judged: met, not met, or not to be told at this epsilon.

An error is judged by its noisy distance alone: unbiased, with noise of a known distribution. With q the
quantile of the noise at the confidence asked, an error of at most e is met if the noisy error and q are below
e, and not met if the noisy error less q is above it. So a false word has a probability of at most one less
the confidence, whatever the table, and each criterion by itself. A model of errors, as the verdict has one,
is not asked.

Invariant: post-processing. Everything is made of noisy answers and of the finished table; whoever has the
bundle judges again, and gets the same words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np
import pandas as pd

from dpsynth.accounting.calibration import noise_named, noise_variance
from dpsynth.plan.plan import Plan
from dpsynth.statistics.cut_off import percent
from dpsynth.statistics.estimates import HOLDS
from dpsynth.statistics.verdict import USES, Criterion, Finished, Outcome
from dpsynth.wings.governance.acceptance.keys import (
    PAIRS,
    Accept,
    AnyCriterion,
    ErrorOf,
    InUse,
    UniqueIn,
    Within,
    criteria_in,
)

_Judged = tuple[Outcome, str, float]
"""Outcome, reason, and the largest probability that it is false."""

_SMALL = 0.05
"""One less the confidence of the 95 % limits of a published figure."""


def judged(stated: Sequence[Mapping[str, object]], finished: Finished) -> tuple[Criterion, ...]:
    """The criteria of a release, judged.

    Args:
        stated: the criteria as JSON values, as the manifest has them.

    Raises:
        ConfigError: they can't be read.
    """
    criteria = criteria_in(stated)
    pairs = zip(criteria, stated, strict=True)
    return tuple(Criterion(dict(said), one.words, *_judged(one, finished)) for one, said in pairs)


def _judged(one: AnyCriterion, finished: Finished) -> _Judged:
    if isinstance(one, ErrorOf):
        return _error(one, finished)
    if isinstance(one, InUse):
        return _in_use(one, finished)
    if isinstance(one, Within):
        return _within(one, finished)
    return _unique(one, finished)


def _error(one: ErrorOf, finished: Finished) -> _Judged:
    exam = finished.exam
    if exam is None or exam.distances is None:
        return "can't be told", "The answer of the exam was lost.", 0.0
    columns = {*one.columns}
    spots = [
        i
        for i, e in enumerate(exam.examined)
        if (e.kind == "pair" if one.error_of == PAIRS else columns == {*e.clique})
    ]
    noisy, most = float(exam.raw[spots].mean()), float(one.at_most)
    reach = reach_of(one, exam.distances.noise, exam.distances.scale, exam.rows, len(spots))
    # A distance is rounded down to whole rows.
    low, high = noisy - reach, noisy + reach + 1 / (2 * exam.rows)
    sure = f"{percent(float(one.confidence))} sure"
    shown = [percent(min(max(end, 0.0), 1.0)) for end in (low, high)]
    odds = float(1 - one.confidence)
    if high <= most:
        return "met", f"It is {shown[1]} at most ({sure}).", odds
    if low > most:
        return "not met", f"It is {shown[0]} at least ({sure}).", odds
    return "can't be told", f"It is between {shown[0]} and {shown[1]} (each {sure}).", odds


def reach_of(one: ErrorOf, noise: str, scale: float, rows: int, examined: int) -> float:
    """The reach of an error's noise with the confidence asked, to one side; a share of the rows.

    Args:
        scale: the noise's scale, in rows.
        examined: number of marginals whose mean error is asked for.
    """
    beyond = float(1 - one.confidence)
    # A mean of Laplace noises lies between one of them and the normal distribution.
    deviations = max(noise_named(noise).deviations(1, beyond), -NormalDist().inv_cdf(beyond))
    return deviations * sqrt(noise_variance(noise, scale) / examined) / (2 * rows)


def _in_use(one: InUse, finished: Finished) -> _Judged:
    found = finished.verdict.columns if one.in_use == "columns" else finished.verdict.pairs
    good = sum(judgement.verdict == USES[0] for judgement in found)
    share = good / len(found) if found else 0.0
    why = f"It is for {good:,} of {len(found):,}."
    return ("met" if found and share >= float(one.at_least) else "not met"), why, 0.0


def _within(one: Within, finished: Finished) -> _Judged:
    table, within = finished.tables[finished.requests.index(one.statistic)], float(one.within)
    reaches = [reach for _, row in table.iterrows() if (reach := _relative_reach(row)) is not None]
    if len(reaches) < len(table) or not reaches:
        unknown = len(table) - len(reaches)
        return "can't be told", f"Of {unknown:,} of {len(table):,} figures no limits are known.", 0.0
    worst = max(reaches)
    outside = sum(reach > within for reach in reaches)
    shown = percent(worst) if worst < 10 else "more than ten times the figure"
    if outside:
        why = f"The limits of {outside:,} of {len(table):,} figures reach further, up to {shown}."
        return "can't be told", why, _SMALL
    return "met", f"The limits of all {len(table):,} figures reach {shown} at most (95 % sure, each).", _SMALL


def _relative_reach(row: pd.Series) -> float | None:
    """How far the limits of a figure, and what bins leave open, lie from it; None without limits."""
    numbers = row.reindex(["estimate", "low", "high", "grouping_error"]).astype(np.float64)
    estimate, low, high, grouping = numbers.tolist()
    if str(row["limits"]) != HOLDS or not np.isfinite([estimate, low, high]).all():
        return None
    widest = max(high - estimate, estimate - low) + (grouping if grouping > 0 else 0.0)
    if not widest:
        return 0.0
    return widest / abs(estimate) if estimate else float("inf")


def _unique(one: UniqueIn, finished: Finished) -> _Judged:
    shape = finished.domain.shape(one.unique_in)
    counts = np.zeros(int(np.prod(shape)), np.int64)
    for codes in finished.pieces():
        cells = np.ravel_multi_index([codes[name] for name in one.unique_in], shape)
        counts += np.bincount(cells, minlength=len(counts))
    rows = max(int(counts.sum()), 1)
    alone = int((counts == 1).sum())
    why = f"It is {alone:,} of {rows:,}, {percent(alone / rows)}."
    return ("met" if alone <= float(one.at_most) * rows else "not met"), why, 0.0


def told_beforehand(accept: Accept, plan: Plan, rows: int) -> Iterator[str]:
    """For each criterion on an error, from which true error on it can be told to be met.

    Args:
        rows: a number of rows, as it is told to the plan.
    """
    for one in accept.criteria:
        if not isinstance(one, ErrorOf) or not plan.exam:
            continue
        pairs = sum(e.kind == "pair" for e in plan.exam) if one.error_of == PAIRS else 1
        reach = reach_of(one, plan.noise, float(plan.steps[-1].scale), rows, pairs)
        left = float(one.at_most) - reach
        if left <= 0:
            yield (
                f"{one.words} At this ε it can't be told: the noise alone may reach {percent(reach)}. "
                "Allow more, or a lower confidence, or give more budget to the exam (privacy.split.exam)."
            )
        else:
            yield f"{one.words} It is told as met, more likely than not, where it is {percent(left)} or less."
