"""Facts about a subject, as plain JSON values: divergences, deltas, attackers, odds, costs and compositions.

Invariant: what is a bound is rounded up and what is a budget down, by accountants; the figures of a pair of
laws are doubles, to the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from math import exp, isinf, log, log1p

from dpsynth.accounting.amount import Amount, float_down, float_up
from dpsynth.accounting.composition import Cost, of_groups, other_relation
from dpsynth.accounting.events import Guarantee
from dpsynth.accounting.measures import GDP, MEASURES, PURE, ZCDP, Measure
from dpsynth.ledger.views import Composed, least
from dpsynth.wings.proof.accountants.advanced import advanced_epsilon, largest_each, textbook_epsilon
from dpsynth.wings.proof.accountants.comparison import statements
from dpsynth.wings.proof.explain.subjects import Subject
from dpsynth.wings.proof.loss_pairs import LossPair, right_at_most

ORDERS = (1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0)
DELTAS = (1e-3, 1e-6, 1e-9, 1e-12)
FALSE_ALARMS = (0.001, 0.01, 0.05, 0.1, 0.5)
PRIORS = (0.001, 0.01, 0.1, 0.5, 0.9)
SURENESS = (0.5, 0.95, 0.999)
"""Shares of the outcomes for which the odds are given."""
_MOST = 1 << 20
"""Largest number of releases that is looked for within a cap."""


@dataclass(frozen=True)
class Question:
    """A question about a subject.

    Attributes:
        times: number of such answers or releases together.
        delta: the delta at which epsilon is given.
        within: the epsilon that all of them may come to; None if that isn't asked.
        risk: a person's chance of harm without the release.
        harm: the cost of that harm, in any unit; None if that isn't asked.
        cap: a cap on all releases; None if that isn't asked.
    """

    times: int = 1
    delta: Fraction = Fraction(1, 10**6)
    within: Fraction | None = None
    risk: float = 0.01
    harm: float | None = None
    cap: Amount | None = None


def facts(subject: Subject, question: Question) -> dict[str, object]:
    """The explanation of a subject, in the order in which it is told."""
    pair = subject.pair
    return {
        "subject": subject.title,
        "what": list(subject.what),
        "noise_entropy_bits": subject.noise_bits,
        "divergences": _divergences(pair),
        "delta_at_epsilon": [{"epsilon": e, "delta": pair.delta(e)} for e in EPSILONS],
        "epsilon_at_delta": [
            {"delta": delta, "epsilon": _finite(pair.epsilon(delta))}
            for delta in sorted({*DELTAS, float(question.delta)}, reverse=True)
        ],
        "attacker": {
            "right_at_most": pair.best_guess,
            "right_by_epsilon": _by_epsilon(subject.guarantee),
            "hits_at_false_alarms": [{"false_alarms": x, "hits": pair.hits(x)} for x in FALSE_ALARMS],
        },
        "odds": _odds(pair),
        "harm": None if question.harm is None else _harm(pair, question.risk, question.harm),
        "groups": [] if subject.guarantee is None else of_groups(subject.guarantee),
        "other_relation": None if subject.guarantee is None else other_relation(subject.guarantee),
        "together": _together(subject.composed, question),
        "each_within": _each_within(question),
        "cap": None if question.cap is None else _fits(subject.composed, question.cap),
    }


def _by_epsilon(guarantee: Guarantee | None) -> float | None:
    """The figure of plans and reports, which follows from epsilon and delta alone."""
    return None if guarantee is None else right_at_most(guarantee.epsilon, guarantee.delta)


def _finite(value: float) -> float | None:
    return None if isinf(value) else value


def _divergences(pair: LossPair) -> dict[str, object]:
    kl = pair.renyi(1.0)
    return {
        "kullback_leibler_nats": _finite(kl),
        "kullback_leibler_bits": _finite(kl / log(2)),
        "renyi": [{"order": order, "nats": _finite(pair.renyi(order))} for order in ORDERS],
        "max_divergence_nats": _finite(pair.largest_loss),
        "total_variation": pair.delta(0.0),
    }


def posterior(prior: float, loss: float) -> float:
    """A belief after an outcome of some privacy loss: prior odds times e^loss.

    >>> round(posterior(0.5, log(3)), 12)
    0.75
    """
    if isinf(loss):
        return 1.0 if loss > 0 else 0.0
    odds = log(prior) - log1p(-prior) + loss
    return 1 / (1 + exp(-odds)) if odds > -700 else 0.0


def _odds(pair: LossPair) -> list[dict[str, object]]:
    """Beliefs after an outcome, by the belief before: for shares of the outcomes, and for the worst one."""
    losses = [(f"{100 * share:g} %", pair.loss_not_exceeded(share)) for share in SURENESS]
    losses.append(("all", pair.largest_loss))
    return [
        {
            "prior": prior,
            "posterior": [
                {"of_outcomes": share, "at_most": posterior(prior, loss)} for share, loss in losses
            ],
        }
        for prior in PRIORS
    ]


def _harm(pair: LossPair, risk: float, harm: float) -> dict[str, object]:
    """The expected cost to a person with and without the release; harm is any event after it.

    An event of probability r without a person's data has at most ``hits(r)`` with it: it is a test of whether
    they are in the table. e^epsilon r is the textbook's bound on it (Dwork and Roth 2014, section 2.3.1).
    """
    after = pair.hits(risk)
    bound = min(1.0, exp(min(pair.largest_loss, 700.0)) * risk)
    return {
        "harm": harm,
        "risk_without": risk,
        "risk_with_at_most": after,
        "risk_with_by_max_divergence": bound,
        "cost_without": risk * harm,
        "cost_with_at_most": after * harm,
        "costs_at_most_more": (after - risk) * harm,
    }


def _together(composed: Composed, question: Question) -> dict[str, object]:
    """Each accountant's epsilon for several of a kind, and the one of a textbook."""
    found = statements([composed] * question.times, question.delta)
    single = composed.cost.amount
    textbook = (
        float_up(textbook_epsilon(single.epsilon, question.times, question.delta))
        if not single.delta
        else None
    )
    return {
        "times": question.times,
        "delta": float(question.delta),
        "accountants": [
            {
                "accountant": s.accountant,
                "epsilon": s.epsilon,
                "delta": s.delta,
                "adaptive": s.adaptive,
                "why": s.why,
            }
            for s in found
        ],
        "least": least(found).accountant,
        "textbook_epsilon": textbook,
    }


def _each_within(question: Question) -> dict[str, object] | None:
    """The largest epsilon of each of several epsilon-DP answers that together keep to a total."""
    if question.within is None:
        return None
    times, total, delta = question.times, question.within, question.delta

    def advanced(each: Fraction) -> Fraction:
        found = advanced_epsilon([Amount(each)] * times, delta)
        assert found is not None
        return found

    textbook = partial(textbook_epsilon, times=times, delta=delta)
    return {
        "times": times,
        "epsilon": float(total),
        "delta": float(delta),
        "sequential": float_down(total / times),
        "textbook": float_down(largest_each(total, times, textbook)),
        "advanced": float_down(largest_each(total, times, advanced)),
    }


def _fits(composed: Composed, cap: Amount) -> dict[str, object]:
    """The number of releases of a kind that a cap holds, under each measure that a ledger may add up."""
    return {
        "epsilon": float(cap.epsilon),
        "delta": float(cap.delta),
        "releases": {measure.accountant: _most(composed.cost, cap, measure) for measure in MEASURES},
    }


def _most(cost: Cost, cap: Amount, measure: Measure) -> int:
    total = {PURE: cost.epsilon, ZCDP: cost.rho, GDP: cost.half_mu_squared}[measure]

    def fit(times: int) -> bool:
        if total is None:
            return False
        if not measure.needs_delta:
            return Amount(times * total, times * cost.amount.delta).within(cap)
        left = cap.delta - times * cost.approximate_delta
        return left > 0 and measure.epsilon(times * total, left) <= cap.epsilon

    low, high = 0, 1
    while high <= _MOST and fit(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low
