"""The guarantee of a bundle, recomputed from the mechanisms that its manifest lists.

Invariant: the cost of a mechanism follows from its parameters alone; the costs in the manifest are compared
with it, never taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dpsynth.accounting.accountants import amount_of, compose
from dpsynth.accounting.events import RecordedEvent, from_json
from dpsynth.accounting.guarantee import Guarantee
from dpsynth.accounting.known_measures import measure_named
from dpsynth.accounting.neighbours import Neighbours
from dpsynth.accounting.rounding import float_up
from dpsynth.accounting.subsampling import Sampling
from dpsynth.bundle.recipient.bundle import MANIFEST, Bundle
from dpsynth.statistics.finer_quantiles import FILE as FINER
from dpsynth.statistics.sampled_estimates import SampledUnits

MEASUREMENTS = "measurements.parquet"
SUMS = "sums.json"
_FILES = {"marginal": MEASUREMENTS, "count": MEASUREMENTS, "sums": SUMS, "finer counts": FINER}
"""The file with the answers to each kind of question."""
_CLOSE = 1e-9
_NOISES = {"discrete Gaussian": "gaussian", "discrete Laplace": "laplace"}
_COUNTED = ("epsilon", "delta", "rho", "mu", "approximate_delta")

_LOCAL = (
    "The guarantee is each respondent's own, who randomised the reports; a bundle can't prove that, nor can "
    "anybody but them."
)

Fault = tuple[str, str]
"""A file and a sentence on what is wrong with it."""


def guarantee_findings(bundle: Bundle) -> tuple[list[str], list[Fault]]:
    """Sentences on what was recomputed, and faults."""
    mechanisms, published = bundle.manifest["mechanisms"], bundle.manifest["guarantee"]
    if not bundle.central:
        return [_LOCAL], []
    try:
        events = [_event(m) for m in mechanisms]
        faults = [(MANIFEST, fault) for fault in _costs(mechanisms, events)]
        again = _composed(events, published, bundle.sampled)
    except (KeyError, TypeError, ValueError, ArithmeticError):
        return [], [(MANIFEST, "lists mechanisms that add up to no guarantee.")]
    for key in _COUNTED:
        if not _equal(getattr(again, key), published[key]):
            faults.append(
                (
                    MANIFEST,
                    f"states {key} = {published[key]}; its mechanisms add up to {getattr(again, key)}.",
                )
            )
    faults += _uncharged(bundle, mechanisms)
    if faults:
        return [], faults
    return [
        f"The guarantee, epsilon = {again.epsilon:.6g} and delta = {again.delta:.6g}, is what the "
        f"{len(events)} mechanisms listed add up to, and each measurement is charged among them."
    ], []


def _event(mechanism: Mapping[str, Any]) -> RecordedEvent:
    return from_json({"mechanism": mechanism["mechanism"], **mechanism["parameters"]})


def _costs(mechanisms: Sequence[Mapping[str, Any]], events: Sequence[RecordedEvent]) -> Iterator[str]:
    """Mechanisms whose stated cost is not that of their parameters."""
    for number, (mechanism, event) in enumerate(zip(mechanisms, events, strict=True)):
        costs = {
            "epsilon": None if event.epsilon is None else float_up(event.epsilon),
            "rho": float_up(event.rho),
            "delta": float_up(event.delta),
        }
        for key, cost in costs.items():
            if not _equal(cost, mechanism[key]):
                yield f"states {key} = {mechanism[key]} for mechanism {number}, whose parameters cost {cost}."


def _composed(
    events: Sequence[RecordedEvent], published: Mapping[str, Any], sampled: SampledUnits | None
) -> Guarantee:
    measure = measure_named(published["accountant"])
    delta, set_aside = (_decimal(published[key]) for key in ("delta", "approximate_delta"))
    # Only the unit's words depend on more than the relation, and they are not compared.
    near = Neighbours(published["neighbours"])
    if sampled is None:
        return compose(events, measure, delta or None, near, set_aside)
    sampling = Sampling(_decimal(sampled.rate))
    asked = delta / sampling.rate or None
    of_sample = compose(events, measure, asked, near, set_aside)
    return sampling.of_whole(of_sample, amount_of(events, measure, asked, set_aside).epsilon, delta)


def _decimal(number: float) -> Fraction:
    """The decimal that a float was written for."""
    return Fraction(repr(float(number)))


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= _CLOSE * max(abs(one), abs(other))


def _uncharged(bundle: Bundle, mechanisms: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Noisy counts and sums that no mechanism of the same columns, noise and scale pays for."""
    paid = Counter(
        (_FILES[m["question"]], frozenset(m["columns"] or ()), _NOISES.get(m["mechanism"]), m["scale"])
        for m in mechanisms
        if m["question"] in _FILES
    )
    answers = (*bundle.answers.singles, *bundle.answers.answers)
    given = [(MEASUREMENTS, MEASUREMENTS, a.clique, a.noise, a.scale) for a in answers if a.noise != "none"]
    for file, earlier in bundle.earlier_answers:
        given += [(file, MEASUREMENTS, a.clique, a.noise, a.scale) for a in earlier.answers]
    given += [(SUMS, SUMS, s.clique, s.noise, s.scale) for s in bundle.sums]
    given += [(FINER, FINER, f.clique, f.noise, f.scale) for f in bundle.finer]
    for file, kind, clique, noise, scale in given:
        key = (kind, frozenset(clique), noise, scale)
        if paid[key] <= 0:
            what = ", ".join(clique) or "all rows"
            yield file, f"holds an answer about {what} that no mechanism of {MANIFEST} is for."
        paid[key] -= 1
