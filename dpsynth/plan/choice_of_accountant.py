"""The accountants that a config allows, and the one that a plan takes.

Invariant: the choice follows from the config and the plan's own noise scales, hence from public facts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from dpsynth.accounting.beside_noise import PLD, admits_steps
from dpsynth.accounting.events import ExponentialEvent
from dpsynth.accounting.known_measures import measure_for, measure_named
from dpsynth.accounting.measures import GDP, PURE, Measure
from dpsynth.config.grammar import Spec
from dpsynth.errors import ConfigError
from dpsynth.plan.steps import PlannedStep

Way = TypeVar("Way")
Terms = tuple[Measure, Sequence[PlannedStep], float]
"""The measure of a way, its steps, and the noise scale of its last measuring step."""

_FREE = {"gaussian": ("gdp", "zcdp"), "laplace": ("zcdp",)}
"""The accountants that auto weighs where there is a delta, by noise, the most usual one first.

With Laplace noise ``rdp`` needs a little less noise than ``zcdp``, but the ledger adds up rho, and all that a
release under ``rdp`` tells of its rho is a bound of up to 1.5 times as much: so much sooner the cap is
reached. ``advanced`` and ``optimal`` need more noise. ``pld`` sharpens choices at the same noise, which buys
no accuracy that could be measured (docs/privacy.md has the figures). ``sequential`` would have the ledger add
up epsilon for good.
"""


def measures_of(spec: Spec) -> list[Measure]:
    """The measures that suit a config, the most usual one first.

    Where the config names the ledger's filter, auto leaves out a measure that it can't bound.

    Raises:
        ConfigError: the accountant that the config names can't be honoured by the filter that it names, or
            bounds no single tier of its audiences.
    """
    privacy = spec.privacy
    epsilon = Fraction(privacy.epsilon)
    delta = None if privacy.delta is None else Fraction(privacy.delta)
    if privacy.accountant != "auto":
        if delta is None and privacy.accountant != PURE.accountant:
            raise ConfigError(f"privacy.delta is missing: accountant {privacy.accountant} needs it.")
        measure = measure_for(privacy.accountant, epsilon, delta)
        if privacy.noise not in measure.noises:
            raise ConfigError(f"{privacy.accountant} counts {' or '.join(measure.noises)} noise only.")
        if measure.whole_only and spec.audiences:
            raise ConfigError(
                f"privacy.accountant {privacy.accountant} can't be had with audiences: it counts choices "
                "beside all the noise that a release draws, and an audience of a smaller epsilon sees only a "
                "part of it. Use privacy.accountant gdp, or leave it out."
            )
        if not _honoured(spec, measure):
            raise ConfigError(
                f"ledger.filter {spec.ledger.filter} adds up mu of Gaussian DP, and a release with "
                f"{privacy.noise} noise under privacy.accountant {privacy.accountant} has no bound on mu. "
                "Use privacy.accountant gdp or pld, or another ledger.filter: zcdp or sequential."
            )
        return [measure]
    if delta is None:
        return [PURE]
    found = [measure_for(name, epsilon, delta) for name in _FREE[privacy.noise]]
    return [measure for measure in found if _honoured(spec, measure)]


def _honoured(spec: Spec, measure: Measure) -> bool:
    """True if the filter that the config names can bound a release under a measure."""
    if spec.ledger.filter == "auto" or measure_named(spec.ledger.filter) != GDP:
        return True
    return measure.implied(Fraction(1), spec.privacy.noise == "laplace")[1] is not None


def least_noise(ways: Sequence[Way], terms: Callable[[Way], Terms], *, checked: bool = True) -> Way:
    """The way with the least noise in its last measuring step, the first of several.

    Args:
        ways: at least one; ``measures_of`` gave their measures.
        terms: the terms of a way.
        checked: False for the rest of a release that has begun, whose measure is fixed.

    Raises:
        ConfigError: the config names an accountant that doesn't count the choices of the plan.
    """
    fit = [way for way in ways if not checked or _admitted(*terms(way)[:2])]
    if not fit:
        raise ConfigError(
            "privacy.accountant pld counts a choice jointly with the Gaussian noise that is drawn after it. "
            "In this plan choices take too much of the budget for that. Give privacy.split a smaller share "
            "of structure and a larger one of marginals, or use privacy.accountant gdp."
        )
    return min(fit, key=lambda way: terms(way)[2])


def _admitted(measure: Measure, steps: Sequence[PlannedStep]) -> bool:
    """True if every choice of a plan has its cost, whatever the order of the questions of a step.

    A strategy may choose and measure in turn, with at most a third of its marginals before the last choice.
    """
    if measure != PLD:
        return True
    costs = [Fraction(step.cost) for step in steps]
    choosing = [any(isinstance(event, ExponentialEvent) for event, _ in step.events) for step in steps]
    return all(
        admits_steps(cost, sum(costs[place + 1 :], Fraction(0)) * 2 / 3)
        for place, (cost, chooses) in enumerate(zip(costs, choosing, strict=True))
        if chooses
    )
