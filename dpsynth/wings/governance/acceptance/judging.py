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
from numpy.typing import NDArray

from dpsynth.accounting.calibration import noise_named, noise_variance
from dpsynth.config import CompiledSpec
from dpsynth.plan.plan import Plan
from dpsynth.plan.spending import GUESSES_SHARE
from dpsynth.statistics.cut_off import percent
from dpsynth.statistics.estimates import HOLDS
from dpsynth.statistics.verdict import USES, Criterion, Finished, Outcome
from dpsynth.wings.governance.acceptance.keys import (
    PAIRS,
    Accept,
    AnyCriterion,
    ErrorOf,
    InUse,
    RightGuesses,
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
    if isinstance(one, RightGuesses):
        return _right(one, finished)
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
    return deviations(noise, beyond) * sqrt(noise_variance(noise, scale) / examined) / (2 * rows)


def deviations(noise: str, beyond: float) -> float:
    """Standard deviations of a sum of noises that it exceeds with at most this probability."""
    # A sum of Laplace noises lies between one of them and the normal distribution.
    return max(noise_named(noise).deviations(1, beyond), -NormalDist().inv_cdf(beyond))


_SHARES = np.linspace(0.0, 1.0, 10_001)
"""Scores of a classifier; limits are rounded to the next of these, outwards."""

_EACH = 0.4
"""The share of the odds of a mean over values that is for limits of each value by itself."""


def _right(one: RightGuesses, finished: Finished) -> _Judged:
    """The score of a classifier, by the noisy counts of its guesses.

    With R rows guessed right of N, R - p N is known up to noise: (1 - p) times that of the rows guessed
    right, less p times that of those guessed wrong. The limits enclose each p for which it may be 0, however
    few rows there are. A mean over values has the limits of ``_limits_of_mean``.
    """
    exam = finished.exam
    answers = () if exam is None else exam.classified
    found = next((a for a in answers if (a.target, a.aim) == (one.classifier, one.aim)), None)
    if exam is None or found is None:
        return "can't be told", "The answer about the classifier was lost.", 0.0
    odds, values = float(1 - one.confidence), np.array([found.wrong, found.right]).T
    if one.score == "balanced_accuracy":
        low, high = _limits_of_mean(values, found.noise, found.stddev, odds, exam.rows)
    else:
        low, high = _limits(values, deviations(found.noise, odds) * found.stddev)
    sure, least = f"{percent(float(one.confidence))} sure", float(one.at_least)
    most = max(values.sum(axis=1).max() / max(values.sum(), 1), 0.0)
    alone = f"The most frequent value alone would be right for about {percent(min(most, 1.0))}."
    if one.score == "balanced_accuracy":
        alone = f"One value alone would be right for {percent(1 / len(values))}."
    if low >= least:
        return "met", f"It is {percent(low)} at least ({sure}). {alone}", odds
    if high < least:
        return "not met", f"It is {percent(high)} at most ({sure}). {alone}", odds
    return "can't be told", f"It is between {percent(low)} and {percent(high)} (each {sure}). {alone}", odds


def _limits(counts: NDArray[np.int64], wide: float) -> tuple[float, float]:
    """Limits of the share of rows guessed right, by counts int64[cells, 2] whose noise reaches ``wide``."""
    wrong, right = counts.sum(axis=0).tolist()
    if wrong + right <= wide * sqrt(len(counts)):
        return 0.0, 1.0
    over = (1 - _SHARES) * right - _SHARES * wrong
    open_ = np.flatnonzero(np.abs(over) < _reach_of_guesses(wide, len(counts), _SHARES))
    if not len(open_):
        return 0.0, 1.0
    return float(_SHARES[max(open_[0] - 1, 0)]), float(_SHARES[min(open_[-1] + 1, len(_SHARES) - 1)])


def _limits_of_mean(
    values: NDArray[np.int64], noise: str, stddev: float, odds: float, rows: float
) -> tuple[float, float]:
    """Limits of the mean over values of the share of rows guessed right, each wrong with at most these odds.

    By the way that is narrower for values of as many rows each, which the noise of ``values`` doesn't choose.

    Args:
        values: noisy rows guessed wrong and right, int64[values, 2].
        rows: number of all rows, by another answer.
    """
    even = np.rint([[0.3 * rows / len(values), 0.7 * rows / len(values)]] * len(values)).astype(np.int64)
    spans = [high - low for low, high in _both_limits(even, noise, stddev, odds)]
    return _both_limits(values, noise, stddev, odds)[int(np.argmin(spans))]


def _both_limits(
    values: NDArray[np.int64], noise: str, stddev: float, odds: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Limits of the mean by those of each share, which hold together; and by one statistic.

    Of value k, p is the share, N the number of rows, g = (wrong + right) / N, and d is p less the noisy
    share. _EACH of the odds is for an interval of each p and of each N, all together. The rest is for one
    linear statistic: sum g d is at most z sqrt(sum v), v = s^2 (p^2 + (1 - p)^2) / N^2, as it is a sum of
    independent noises. As sqrt(x) <= (x / u + u) / 2, for every u > 0 and l >= 0

        sum d <= sum of max over d and g of [(1 - l g) d + l z^2 v / (2 u)] + l u / 2,

    convex in g and linear in d, so each maximum lies at ends of the intervals. The least over a grid of l and
    u holds. The mean of the intervals of p holds too.
    """
    alone, wide = (deviations(noise, odds * x / len(values)) * stddev for x in (1, _EACH / 4))
    by_each, ends = (np.array([_limits(value[None], x) for value in values]).T for x in (alone, wide))
    (least, most), (low, high) = by_each.mean(axis=1).tolist(), ends.mean(axis=1).tolist()
    rows, reach = values.sum(axis=1), wide * sqrt(2) + 0.5
    if (rows <= reach).any():
        return (least, most), (low, high)
    shares, factors = values[:, 1] / rows, np.array([rows / (rows + reach), rows / (rows - reach)])
    beyond = deviations(noise, odds * (1 - _EACH)) * stddev
    # Noise is of whole rows.
    squares = ((1 - ends) ** 2 + ends**2).max(axis=0) * (beyond / rows) ** 2
    rounding = 0.5 * factors / rows
    lambdas = np.linspace(0.5, 1.5, 41)[:, None, None, None, None]
    typical = (np.sqrt(squares.sum()) * np.linspace(0.8, 3, 12))[:, None, None, None]
    spread = squares * factors**2 / (2 * typical) + rounding
    reaches = []
    for off in (ends - shares, shares - ends):
        worst = (1 - lambdas * factors) * off[:, None] + lambdas * spread
        bounds = worst.max(axis=(2, 3)).sum(axis=2) + lambdas[..., 0, 0, 0] * typical[:, 0, 0, 0] / 2
        reaches.append(float(bounds.min()) / len(values))
    mean = float(shares.mean())
    return (least, most), (max(low, mean - reaches[1]), min(high, mean + reaches[0]))


def _reach_of_guesses(wide: float, cells: int, shares: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """The reach of the noise of R - p N, in rows, for shares p."""
    # Noise is of whole rows.
    return np.asarray(wide * np.sqrt(cells * ((1 - shares) ** 2 + shares**2)) + 0.5)


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


def told_beforehand(compiled: CompiledSpec, plan: Plan, rows: int) -> Iterator[str]:
    """For each criterion that the exam asks about, from which true figure on it can be told to be met.

    Args:
        rows: a number of rows, as it is told to the plan.
    """
    assert isinstance(compiled.spec.accept, Accept)
    for one in compiled.spec.accept.criteria:
        if not isinstance(one, ErrorOf | RightGuesses) or not plan.exam:
            continue
        if isinstance(one, RightGuesses):
            reach = _reach_of_score(one, compiled, plan, rows)
            left, way, remedy = float(one.at_least) + reach, "more", "Ask for less"
            able = left <= 1
        else:
            pairs = sum(e.kind == "pair" for e in plan.exam) if one.error_of == PAIRS else 1
            reach = reach_of(one, plan.noise, float(plan.steps[-1].scale), rows, pairs)
            left, way, remedy = float(one.at_most) - reach, "less", "Allow more"
            able = left > 0
        if able:
            yield (
                f"{one.words} It is told as met, more likely than not, where it is {percent(left)} or {way}."
            )
        else:
            yield (
                f"{one.words} At this ε it can't be told: the noise alone may reach {percent(reach)}. "
                f"{remedy}, or a lower confidence, or give more budget to the exam (privacy.split.exam)."
            )


def _reach_of_score(one: RightGuesses, compiled: CompiledSpec, plan: Plan, rows: int) -> float:
    """The reach of a score's noise to one side, where all values of the column have as many rows."""
    classes = next(len(c.codec.labels) for c in compiled.columns if c.name == one.classifier)
    stddev, least = plan.bought.counts(plan.exam_price * GUESSES_SHARE).stddev, float(one.at_least)
    odds = float(1 - one.confidence)
    if one.score == "balanced_accuracy":
        each = np.array([[round(share * rows / classes) for share in (1 - least, least)]] * classes)
        return least - _limits_of_mean(each, plan.noise, stddev, odds, rows)[0]
    return float(_reach_of_guesses(deviations(plan.noise, odds) * stddev, classes, least)) / rows
