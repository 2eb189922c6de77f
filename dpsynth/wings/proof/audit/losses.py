"""The privacy loss of a transcript, and lower bounds on it from an attacker's success.

Noise is discrete, so the probability of each answer is known exactly, up to a factor that cancels. The loss,
how much likelier the answers are on one table than on its neighbour, is the best statistic for telling two
neighbours apart (Neyman and Pearson 1933).

A test that finds the first table with a false-negative rate b and a false-positive rate a refutes every
(epsilon, delta) with 1 - delta - b > e^epsilon a, and every mu-Gaussian DP with
mu < Phi^-1(1 - a) - Phi^-1(b) (Dong, Roth and Su 2022). The rates are replaced by upper confidence limits of
Clopper and Pearson (1934), as in Nasr et al. (2023).

A config has one number of columns, so its releases ask for one number of distances. Questions for those of
narrow and of wide tables are replayed here beside them, on made-up tables in which the unit moves every
distance as far as the relation allows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import exp, inf, log, pi, sinh, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta, gamma

from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, LaplaceEvent
from dpsynth.accounting.measures import PURE, Measure
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.columns.domain import Clique, Domain
from dpsynth.columns.finished_table import CodedRows, FinishedTable
from dpsynth.curator import Journal, Terms
from dpsynth.curator.table import PrivateTable
from dpsynth.errors import DpsynthError
from dpsynth.plan.plan import Plan, exam_of
from dpsynth.wings.proof.audit.replay import Asked, Transcript, observers
from dpsynth.wings.proof.loss_pairs import LEVEL, limits

Scores = NDArray[np.float64]

CONFIDENCE = LEVEL
"""Confidence of a bound."""

_THRESHOLDS = 60
"""Largest number of thresholds that are tried."""


@dataclass(frozen=True)
class LowerBound:
    """The success of an attacker on releases that weren't used to choose the threshold.

    Attributes:
        epsilon: lower bound on epsilon at the delta that was asked for; at least 0.
        mu: lower bound on mu of Gaussian DP; at least 0.
        hits, false_alarms: shares of releases with the unit, and without it, that were taken to have it.
        right: share of right guesses, where both tables are equally likely.
        right_between: its limits by Clopper and Pearson.
        releases: number of releases of each of the two tables that these rest on.
        confidence: confidence of both bounds together with their threshold, and of the limits.
    """

    epsilon: float
    mu: float
    hits: float
    false_alarms: float
    right: float
    right_between: tuple[float, float]
    releases: int
    confidence: float = CONFIDENCE


def lower_bound(inside: Scores, outside: Scores, delta: float, threshold: float | None = None) -> LowerBound:
    """The lower bound from an attacker's scores; a high score says that the unit is in the table.

    Without a threshold, one and a direction are chosen on the first third of either list, and judged on the
    rest: choosing is no evidence.

    Args:
        inside: float64[releases], scores of releases with the unit.
        outside: float64[releases], scores of releases without it.
        delta: the delta at which epsilon is bounded.
        threshold: the least score that says so, if it is known beforehand.
    """
    sign, least = 1.0, threshold
    if least is None:
        cut, other = len(inside) // 3, len(outside) // 3
        sign, least = _chosen(inside[:cut], outside[:other])
        inside, outside = inside[cut:], outside[other:]
    hits, false = _rates(inside, outside, sign, least)
    missed, alarms = round((1 - hits) * len(inside)), round(false * len(outside))
    b, a = _at_most(missed, len(inside)), _at_most(alarms, len(outside))
    # The test may be read either way round.
    refuted = max((1 - delta - b) / a, (1 - delta - a) / b)
    right, guesses = len(inside) - missed + len(outside) - alarms, len(inside) + len(outside)
    return LowerBound(
        epsilon=max(0.0, log(refuted)) if refuted > 0 else 0.0,
        mu=max(0.0, _mu(missed, len(inside), alarms, len(outside))),
        hits=hits,
        false_alarms=false,
        right=right / guesses,
        right_between=limits(right, guesses),
        releases=min(len(inside), len(outside)),
    )


def _chosen(inside: Scores, outside: Scores) -> tuple[float, float]:
    """The direction and the threshold with the largest bound on mu."""

    def bound(candidate: tuple[float, float]) -> float:
        hits, false = _rates(inside, outside, *candidate)
        return _mu((1 - hits) * len(inside), len(inside), false * len(outside), len(outside))

    return max(_candidates(inside, outside), key=bound, default=(1.0, 0.0))


def _candidates(inside: Scores, outside: Scores) -> Iterator[tuple[float, float]]:
    """Both directions, with each of some thresholds between the scores."""
    scores = np.unique(np.concatenate([inside, outside]))
    between = (scores[1:] + scores[:-1]) / 2
    if len(between) > _THRESHOLDS:
        between = np.quantile(between, np.linspace(0, 1, _THRESHOLDS))
    for sign in (1.0, -1.0):
        yield from ((sign, float(threshold)) for threshold in between)


def _rates(inside: Scores, outside: Scores, sign: float, threshold: float) -> tuple[float, float]:
    """Shares of the two lists that are taken to hold the unit."""
    found = [
        float(np.mean(sign * (scores - threshold) > 0)) if len(scores) else 0.0
        for scores in (inside, outside)
    ]
    return found[0], found[1]


def _mu(missed: float, inside: int, alarms: float, outside: int) -> float:
    return float(-ndtri(_at_most(alarms, outside)) - ndtri(_at_most(missed, inside)))


def _at_most(events: float, trials: int) -> float:
    """Upper Clopper-Pearson limit of a rate; two of them hold together with the confidence."""
    if events >= trials:
        return 1.0
    return float(beta.ppf(1 - (1 - CONFIDENCE) / 2, events + 1, trials - events))


_LEAST_SCALE = 3.0
"""Scale from which discrete noise has the moments of continuous noise, to within a hundredth."""


def transcript_loss(one: Transcript, two: Transcript) -> float:
    """The sum of log-ratios of the probabilities of all answers on the first and on the second table.

    Answers of partition selection, and of several choices at once, are left out: any statistic gives a
    valid lower bound.

    Args:
        one: the transcript of a table.
        two: its replay on the neighbour.
    """
    return float(sum(_answer_loss(a, b) for a, b in zip(one.asked, two.asked, strict=True)))


def _answer_loss(one: Asked, two: Asked) -> float:
    answer, here, there = np.asarray(one.answer), one.exact, two.exact
    if not (isinstance(here, np.ndarray) and isinstance(there, np.ndarray)):
        return 0.0
    match one.event:
        case GaussianEvent(sigma=sigma):
            near, far = (answer - here).astype(np.float64), (answer - there).astype(np.float64)
            return float((far**2 - near**2).sum()) / (2 * sigma**2)
        case LaplaceEvent(scale=scale):
            return float((np.abs(answer - there) - np.abs(answer - here)).sum()) / scale
        case ExponentialEvent(scale=scale) if answer.ndim == 0:
            chosen = int(answer)
            return float((_log_chances(here, scale) - _log_chances(there, scale))[chosen])
        case _:
            return 0.0


@dataclass(frozen=True)
class ExactCost:
    """The exact cost of the answers of one transcript to a pair of tables, given their questions.

    Attributes:
        mean_loss: the expected loss in nats: the sum of the Kullback-Leibler divergences of all answers.
        largest_loss: the largest loss of any answers to these questions; infinite with Gaussian noise.
    """

    mean_loss: float
    largest_loss: float

    def share_of(self, measure: Measure, budget: Fraction) -> float:
        """The cost over a budget; at most 1 if the budget is kept.

        Under pure epsilon it is the largest loss that counts, else the mean loss: that of a Gaussian
        mechanism is mu^2/2, and rho bounds that of every other. Mu itself is the share's root.

        Args:
            measure: the measure of the budget.
            budget: epsilon, rho or mu^2/2.
        """
        if measure == PURE:
            return self.largest_loss / float(budget)
        share = self.mean_loss / float(budget)
        return share if measure.mu(Fraction(1)) is None else sqrt(share)


def exact_cost(one: Transcript, two: Transcript) -> ExactCost:
    """The exact cost of a transcript; that of partition selection is left out.

    Args:
        one: the transcript of a table.
        two: its replay on the neighbour.
    """
    costs = [_cost_of(a, b) for a, b in zip(one.asked, two.asked, strict=True)]
    return ExactCost(float(sum(mean for mean, _ in costs)), float(sum(most for _, most in costs)))


def _cost_of(one: Asked, two: Asked) -> tuple[float, float]:
    """The expected and the largest loss of an answer."""
    here, there = one.exact, two.exact
    if not (isinstance(here, np.ndarray) and isinstance(there, np.ndarray)):
        return 0.0, 0.0
    gap = np.abs(here - there).astype(np.float64)
    match one.event:
        case GaussianEvent(sigma=sigma):
            return float((gap**2).sum()) / (2 * sigma**2), inf if gap.any() else 0.0
        case LaplaceEvent(scale=scale):
            ratio = exp(-1 / scale)
            # E|X - g| = g + 2 r^(g + 1)/(1 - r^2), by a sum over its steps P(X < g) - P(X >= g).
            rest = 2 * (ratio ** (gap + 1) - ratio) / (1 - ratio**2)
            return float((gap + rest).sum()) / scale, float(gap.sum()) / scale
        case ExponentialEvent(scale=scale) if np.asarray(one.answer).ndim == 0:
            near, far = _log_chances(here, scale), _log_chances(there, scale)
            return float((np.exp(near) * (near - far)).sum()), float(np.abs(near - far).max())
        case _:
            return 0.0, 0.0


def _log_chances(scores: NDArray[np.int64], scale: float) -> NDArray[np.float64]:
    weights = (scores - scores.max()).astype(np.float64) / scale
    chances: NDArray[np.float64] = weights - np.log(np.exp(weights).sum())
    return chances


@dataclass(frozen=True)
class DrawnNoise:
    """The noise that was really drawn, beside what the events state.

    Attributes:
        draws: number of draws.
        ratio: their mean absolute size over the stated one.
    """

    draws: int
    ratio: float

    @property
    def as_stated(self) -> bool:
        """False where chance explains the difference less often than once in 10^8 audits.

        Sizes of Laplace noise are exponential, those of Gaussian noise spread less; 0.02 is for discreteness.
        """
        sizes, draws = gamma(max(self.draws, 1)), self.draws
        tails = sizes.sf(draws * (self.ratio - 0.02)), sizes.cdf(draws * (self.ratio + 0.02))
        return draws == 0 or bool(min(tails) > 1e-8 / 2)


def drawn_noise(transcripts: Iterable[Transcript]) -> DrawnNoise:
    """The size of all noise in some transcripts, in units of what their events state.

    Only noise of a scale of 3 or more counts, which has the moments of continuous noise.
    """
    draws, total = 0, 0.0
    for transcript in transcripts:
        for asked in transcript.asked:
            scale = getattr(asked.event, "scale", 0.0)
            if not isinstance(asked.event, GaussianEvent | LaplaceEvent) or scale < _LEAST_SCALE:
                continue
            if not isinstance(asked.exact, np.ndarray):
                continue
            noise = np.abs(np.asarray(asked.answer) - asked.exact).astype(np.float64)
            draws += noise.size
            mean = scale * sqrt(2 / pi) if isinstance(asked.event, GaussianEvent) else 1 / sinh(1 / scale)
            total += float(noise.sum()) / mean
    return DrawnNoise(draws, total / draws if draws else 1.0)


COLUMNS = (22, 60)
"""Numbers of columns of the tables; their exams have 289 and 1 870 distances."""

_ROWS = 60


def many_distances(plan: Plan, folder: Path) -> Iterator[tuple[str, Transcript, Transcript | str]]:
    """For each number of columns the change in words, a transcript, and that of the neighbour.

    Words of what contradicts the record come in place of the latter.

    Args:
        plan: the plan of the config, with its terms.
        folder: a folder for journals, which is made and removed.
    """
    terms = Terms(plan.neighbours, plan.measure, plan.whole.budget, plan.noise)
    for columns in COLUMNS:
        domain = Domain({f"column {i}": 2 for i in range(columns)})
        cliques = [examined.clique for examined in exam_of(domain, ())]
        table, neighbour = _pair(domain, plan.neighbours)
        did = "is exchanged" if plan.neighbours.relation == "replace_one" else "comes"
        folder.mkdir()
        try:
            record = _asked(table, terms, cliques, Journal.create(folder / "journal.jsonl", {}))
            again = _again(neighbour, terms, cliques, folder, record)
        finally:
            shutil.rmtree(folder)
        yield f"a unit {did}, {len(cliques):,} distances", record, again


def _again(
    neighbour: PrivateTable, terms: Terms, cliques: list[Clique], folder: Path, record: Transcript
) -> Transcript | str:
    noise = drawn_noise([record])
    if not noise.as_stated:
        return f"noise is {noise.ratio:.3f} times as large as stated"
    try:
        return _asked(neighbour, terms, cliques, Journal.open(folder / "journal.jsonl"))
    except DpsynthError as error:
        return f"the replay ended in {type(error).__name__}"


@dataclass(frozen=True)
class _FirstCell:
    """Estimates with all rows in the first cell: a number of them that no count reaches.

    Attributes:
        domain: the domain of the columns.
        rows: the number of rows.
    """

    domain: Domain
    rows: int

    def marginal(self, clique: Clique) -> NDArray[np.float64]:
        found = np.zeros(self.domain.shape(clique))
        found[(0,) * len(clique)] = self.rows
        return found

    def fingerprint(self) -> str:
        """The same for all: there is one set of estimates."""
        return "all rows in the first cell"


def _pair(domain: Domain, near: Neighbours) -> tuple[PrivateTable, PrivateTable]:
    """Two tables of which one has a unit of last codes that the other lacks, or has with first codes."""
    others = {c: (np.arange(_ROWS) >> i % 6 & 1).astype(np.uint8) for i, c in enumerate(domain.columns)}

    def table(unit: list[int]) -> PrivateTable:
        own = np.repeat(np.array(unit, np.uint8), near.max_rows)
        codes = {c: np.concatenate([cells, own]) for c, cells in others.items()}
        return PrivateTable(domain, codes, _ROWS + len(own))

    return table([0] if near.relation == "replace_one" else []), table([1])


def _asked(table: PrivateTable, terms: Terms, cliques: list[Clique], journal: Journal) -> Transcript:
    """The transcript of both questions, each for half of the budget."""
    transcript = Transcript()
    many = 2 * (_ROWS + terms.neighbours.l1)
    finished = CodedRows()
    finished.add({c: np.zeros(2, np.uint8) for c in table.domain.columns})
    try:
        curator = observers(transcript)[0](table, terms, journal)
        curator.examine(cliques, FinishedTable(finished, many), terms.budget / 2)
        curator.errors(cliques, _FirstCell(table.domain, many), terms.budget / 2)
    finally:
        journal.close()
    return transcript
