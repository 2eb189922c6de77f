"""Subjects of an explanation: a mechanism with its parameters, a plan, or the guarantee in a manifest.

Invariant: a subject's pair of laws is at least as easy to tell apart as its outcomes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import log, sqrt
from pathlib import Path

from dpsynth.accounting.amount import Amount
from dpsynth.accounting.composition import Cost, spent
from dpsynth.accounting.events import ExponentialEvent, GaussianEvent, Guarantee, LaplaceEvent, RecordedEvent
from dpsynth.accounting.measures import GDP, PURE, ZCDP, measure_named
from dpsynth.config import compiled, load
from dpsynth.errors import ConfigError
from dpsynth.ledger.views import Composed
from dpsynth.pipeline.forecast import plan_of
from dpsynth.plan.plan import promised
from dpsynth.wings.proof.loss_pairs import (
    AtomicPair,
    BoundedRangePair,
    ConcentratedBound,
    LossPair,
    NormalPair,
    gaussian_entropy,
    laplace_entropy,
)

_CALL = re.compile(r"\s*([a-z_]+)\s*\(([^()]*)\)\s*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?(/[0-9]+)?")
_LARGEST, _SMALLEST = Fraction(10**6), Fraction(1, 10**9)


@dataclass(frozen=True)
class Subject:
    """The subject of an explanation.

    Attributes:
        title: its name, with its parameters.
        what: sentences that say what it is.
        pair: two laws that are at least as easy to tell apart as its outcomes.
        composed: its cost, for several of its kind together; None where none is counted.
        delta: its own delta; None where it has none, or one may be chosen.
        noise_bits: entropy of the noise, in bits; None without noise of one law.
        guarantee: its guarantee for one unit, if it is a release; None for a mechanism.
    """

    title: str
    what: tuple[str, ...]
    pair: LossPair
    composed: Composed
    delta: float | None = None
    noise_bits: float | None = None
    guarantee: Guarantee | None = None


Numbers = Mapping[str, Fraction]


@dataclass(frozen=True)
class _Mechanism:
    """A mechanism that can be explained: its parameters, and the way to a subject.

    Attributes:
        ways: the sets of parameters with which it can be given.
        of: the subject of such parameters.
    """

    ways: tuple[tuple[str, ...], ...]
    of: Callable[[Numbers], tuple[tuple[str, ...], LossPair, Composed, float | None]]


def subject(text: str) -> Subject:
    """The subject that a text names.

    Args:
        text: a mechanism as ``laplace(scale=2)``; or the path of a bundle, a manifest or a configuration.

    Raises:
        ConfigError: it is none of these, a parameter is missing or not allowed, or the file can't be used.
    """
    call = _CALL.fullmatch(text)
    if call:
        return _mechanism(call[1], call[2])
    path = Path(text)
    if path.is_dir():
        found = [p for p in (path / "manifest.json", path / "public" / "manifest.json") if p.is_file()]
        if not found:
            raise ConfigError(f"{path} holds no manifest.json. Name the folder of a bundle, or its public/.")
        return _manifest(found[0])
    if not path.is_file():
        raise ConfigError(
            f"'{text}' is no file and no mechanism. Give a bundle, a manifest.json, a config, or one of: "
            f"{'; '.join(_forms())}."
        )
    return _manifest(path) if path.suffix == ".json" else _plan(path)


def _forms() -> list[str]:
    return [
        f"{name}({', '.join(f'{parameter}=' for parameter in way)})"
        for name, mechanism in MECHANISMS.items()
        for way in mechanism.ways
    ]


def _mechanism(name: str, arguments: str) -> Subject:
    if name not in MECHANISMS:
        raise ConfigError(f"There is no mechanism '{name}' to explain. Give one of: {'; '.join(_forms())}.")
    mechanism = MECHANISMS[name]
    numbers = _numbers(name, arguments)
    if tuple(sorted(numbers)) not in {tuple(sorted(way)) for way in mechanism.ways}:
        ways = " or ".join(
            f"{name}({', '.join(f'{parameter}=NUMBER' for parameter in way)})" for way in mechanism.ways
        )
        raise ConfigError(f"The parameters of {name} are: {ways}.")
    what, pair, composed, bits = mechanism.of(numbers)
    given = ", ".join(f"{key}={_shown(value)}" for key, value in numbers.items())
    delta = float(numbers["delta"]) if "delta" in numbers else None
    return Subject(f"{name}({given})", what, pair, composed, delta, bits)


def _numbers(name: str, arguments: str) -> dict[str, Fraction]:
    numbers: dict[str, Fraction] = {}
    for part in filter(None, (part.strip() for part in arguments.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not key or key in numbers or not _NUMBER.fullmatch(value):
            raise ConfigError(
                f"'{part}' is no parameter of {name}. Give each one once, as NAME=NUMBER; a number may be "
                "written as 0.5, 1e-6 or 1/801."
            )
        try:
            numbers[key] = _fraction(value)
        except (ValueError, ZeroDivisionError, OverflowError):
            raise ConfigError(f"{key} of {name} is no number that can be used: {value}.") from None
        if key in _RANGES and not _RANGES[key][1](numbers[key]):
            raise ConfigError(f"{key} of {name} must be {_RANGES[key][0]}.")
    return numbers


def _fraction(text: str) -> Fraction:
    above, _, below = text.partition("/")
    if len(text) > 40 or ((exponent := re.search(r"[eE]([-+]?\d+)", above)) and abs(int(exponent[1])) > 40):
        raise ValueError("out of range")
    return Fraction(above) / (Fraction(below) if below else 1)


_RANGES: dict[str, tuple[str, Callable[[Fraction], bool]]] = {
    "delta": ("above 0 and below 1", lambda x: 0 < x < 1),
    "gamma": ("above 0 and below 1/2", lambda x: 0 < x < Fraction(1, 2)),
    "sensitivity": ("a whole number from 1 to 1,000", lambda x: x.denominator == 1 and 1 <= x <= 1000),
    "values": ("a whole number from 2 to 1,000,000", lambda x: x.denominator == 1 and 2 <= x <= 10**6),
    "epsilon": ("between 1e-9 and 100", lambda x: _SMALLEST <= x <= 100),
    "mu": ("between 1e-9 and 100", lambda x: _SMALLEST <= x <= 100),
    "rho": ("between 1e-9 and 1,000", lambda x: _SMALLEST <= x <= 1000),
    "sigma": ("between 0.1 and 100,000", lambda x: Fraction(1, 10) <= x <= 10**5),
    "scale": ("between 0.01 and 1,000,000", lambda x: Fraction(1, 100) <= x <= _LARGEST),
}


def _shown(value: Fraction) -> str:
    return str(value) if value.denominator > 1 and float(value) != value else f"{float(value):g}"


Described = tuple[tuple[str, ...], LossPair, Composed, float | None]


def _of_event(event: RecordedEvent, amount: Amount) -> Composed:
    return Composed(spent([event], amount), (event,))


def _pure_cost(epsilon: Fraction, delta: Fraction = Fraction(0)) -> Composed:
    if delta:
        return Composed(Cost(Amount(epsilon, delta), *PURE.implied(epsilon, mu_by_rho=True), delta))
    return Composed(Cost(Amount(epsilon), *PURE.implied(epsilon, mu_by_rho=True)))


def _laplace(given: Numbers) -> Described:
    moved = int(given["sensitivity"])
    scale = float(given["scale"] if "scale" in given else moved / given["epsilon"])
    event = LaplaceEvent(scale, moved)
    assert event.epsilon is not None
    what = (
        "Whole numbers with discrete Laplace noise, P(x) ~ e^(-|x|/scale).",
        f"One unit moves them by at most {moved} (L1). The scale is {scale:.6g}, the noise has a standard "
        f"deviation of about {sqrt(2) * scale:.4g}, and ε = {float(event.epsilon):.6g}.",
    )
    pair = AtomicPair.discrete_laplace(scale, moved)
    return what, pair, _of_event(event, Amount(event.epsilon)), laplace_entropy(scale)


def _gaussian(given: Numbers) -> Described:
    sigma, moved = float(given["sigma"]), int(given["sensitivity"])
    event = GaussianEvent(sigma, moved**2)
    rho = event.rho
    what = (
        "Whole numbers with discrete Gaussian noise, P(x) ~ e^(-x²/(2 sigma²)).",
        f"One unit moves them by at most {moved} (L2). rho = {float(rho):.6g}. The figures below are "
        "exact for a unit that moves one number.",
    )
    # Its own (epsilon, delta) stands in no statement but the sum; zCDP gives one at a usual delta.
    delta = Fraction(1, 10**9)
    composed = _of_event(event, Amount(ZCDP.epsilon(rho, delta), delta))
    return what, AtomicPair.discrete_gaussian(sigma, moved), composed, gaussian_entropy(sigma)


def _exponential(given: Numbers) -> Described:
    if "epsilon" in given:
        event = ExponentialEvent(float(2 / given["epsilon"]), 1)
    else:
        event = ExponentialEvent(float(given["scale"]), int(given["sensitivity"]))
    assert event.epsilon is not None
    what = (
        "The exponential mechanism: a candidate is chosen with probability ~ e^(score/scale).",
        f"Scores may move either way, so ε = 2 sensitivity/scale = {float(event.epsilon):.6g}; the ratios of "
        "two neighbours lie within a range of ε, which is better than any ε-DP mechanism.",
    )
    return what, BoundedRangePair(float(event.epsilon)), _of_event(event, Amount(event.epsilon)), None


def _responses(given: Numbers) -> Described:
    if "gamma" in given:
        gamma = given["gamma"]
        epsilon, values = log((Fraction(1, 2) + gamma) / (Fraction(1, 2) - gamma)), 2
    else:
        epsilon, values = float(given["epsilon"]), int(given["values"])
    pair = AtomicPair.responses(epsilon, values)
    kept = pair.atoms[0][0]
    what: tuple[str, ...] = (
        f"Randomised response (Warner 1965) over {values:,} values: each respondent says the true one with "
        f"probability {kept:.6g}, and any other with probability {pair.atoms[0][1]:.6g}.",
        f"ε = ln({kept:.6g}/{pair.atoms[0][1]:.6g}) = {epsilon:.6g}.",
    )
    if values == 2:
        half = kept - 0.5
        what += (
            f"With gamma = {half:.6g} the share of yes among n answers, (share of yes said - 1/2 + gamma)/"
            f"(2 gamma), has a "
            f"variance of at most 1/(16 gamma² n) = {1 / (16 * half**2):.6g}/n by answers alone.",
        )
    return what, pair, _pure_cost(Fraction(epsilon)), None


def _two_coins(given: Numbers) -> Described:
    del given
    return _responses({"gamma": Fraction(1, 4)})


def _approximate(given: Numbers) -> Described:
    epsilon, delta = given["epsilon"], given.get("delta", Fraction(0))
    also = f", but for a probability of {float(delta):g} with which it may reveal everything" if delta else ""
    what = (f"Any mechanism that is ({'ε, δ' if delta else 'ε'})-differentially private{also}.",)
    return what, AtomicPair.coin(float(epsilon), float(delta)), _pure_cost(epsilon, delta), None


def _zcdp(given: Numbers) -> Described:
    delta = Fraction(1, 10**9)
    cost = Cost(Amount(ZCDP.epsilon(given["rho"], delta), delta), given["rho"], None)
    what = ("Any mechanism that is rho-zCDP. What follows are bounds: no mechanism attains all of them.",)
    return what, ConcentratedBound(float(given["rho"])), Composed(cost), None


def _gdp(given: Numbers) -> Described:
    half, delta = given["mu"] ** 2 / 2, Fraction(1, 10**9)
    cost = Cost(Amount(GDP.epsilon(half, delta), delta), half, half)
    what = (
        "Any mechanism that is μ-Gaussian-DP: its outcomes are as hard to tell apart as two normal laws of "
        "variance 1 at a distance of μ.",
    )
    return what, NormalPair(float(given["mu"])), Composed(cost), None


MECHANISMS: Mapping[str, _Mechanism] = {
    "laplace": _Mechanism((("scale", "sensitivity"), ("epsilon", "sensitivity")), _laplace),
    "gaussian": _Mechanism((("sigma", "sensitivity"),), _gaussian),
    "exponential": _Mechanism((("epsilon",), ("scale", "sensitivity")), _exponential),
    "randomized_response": _Mechanism((("gamma",), ("epsilon", "values")), _responses),
    "two_coins": _Mechanism(((),), _two_coins),
    "pure": _Mechanism((("epsilon",),), _approximate),
    "approximate": _Mechanism((("epsilon", "delta"),), _approximate),
    "zcdp": _Mechanism((("rho",),), _zcdp),
    "gdp": _Mechanism((("mu",),), _gdp),
}
"""The mechanisms that can be explained, by name."""


def _manifest(path: Path) -> Subject:
    wrong = ConfigError(f"{path} is no manifest of a release. Name the manifest.json of a bundle.")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        stated = content["guarantee"]
        guarantee = Guarantee(
            epsilon=float(stated["epsilon"]),
            delta=float(stated["delta"]),
            rho=None if stated["rho"] is None else float(stated["rho"]),
            unit=str(stated["unit"]),
            neighbours=str(stated["neighbours"]),
            accountant=str(stated["accountant"]),
            mu=None if stated["mu"] is None else float(stated["mu"]),
            approximate_delta=float(stated["approximate_delta"]),
        )
        title = f"release {content['release']}, {content['release_id']}"
    except OSError as error:
        raise ConfigError(f"{path} can't be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError):
        raise wrong from None
    if not (0 < guarantee.epsilon <= 10**4 and 0 <= guarantee.delta < 1):
        raise wrong
    return _of_guarantee(title, "What was published, all files together.", guarantee)


def _plan(path: Path) -> Subject:
    spec = load(path)
    plan = plan_of(compiled(spec))
    return _of_guarantee(
        f"plan of {spec.release}",
        "What a release of this configuration may spend; no data was read.",
        promised(plan),
    )


def _of_guarantee(title: str, what: str, guarantee: Guarantee) -> Subject:
    leaked, epsilon, delta = guarantee.approximate_delta, guarantee.epsilon, guarantee.delta
    amount = Amount(Fraction(epsilon), Fraction(delta))
    failing = Fraction(leaked)
    kind = measure_named(guarantee.accountant)
    pair: LossPair
    if guarantee.mu:
        half = Fraction(guarantee.mu) ** 2 / 2
        pair, cost = NormalPair(guarantee.mu, leaked), Cost(amount, half, half, failing)
        how = f"It is counted under Gaussian DP: μ = {guarantee.mu:.6g}."
    elif kind == ZCDP and guarantee.rho:
        pair = ConcentratedBound(guarantee.rho, leaked)
        cost = Cost(amount, Fraction(guarantee.rho), None, failing)
        how = f"It is counted under zCDP: rho = {guarantee.rho:.6g}. What follows are bounds."
    else:
        pair = AtomicPair.coin(epsilon, delta)
        measure, loss = (ZCDP, guarantee.rho) if guarantee.rho else (PURE, epsilon)
        cost = Cost(amount, *measure.implied(Fraction(loss), mu_by_rho=True), failing)
        how = f"It is counted by {kind.composition}."
    but = f" It holds but for a probability of {leaked:g}, set aside for naming values." if leaked else ""
    whole = (f"{what} It protects {guarantee.unit} ({guarantee.neighbours}).", f"{how}{but}")
    return Subject(title, whole, pair, Composed(cost), delta or None, None, guarantee)
