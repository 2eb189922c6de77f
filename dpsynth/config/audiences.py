"""Audiences: bundles of one release for readers who may learn different amounts.

The audiences are nested. An audience of a larger epsilon gets all that those of a smaller epsilon get, and
more. So all bundles together cost the largest epsilon, and not the sum.

Invariant: in rising order of epsilon no delta falls, and no two audiences have the same epsilon.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from dpsynth.config.scalars import Number
from dpsynth.config.section import Section, refused, without_default

_NAME_WORDS = "a name of letters, digits, '-' and '_' that starts with a letter, since it names a folder"
_LONGEST, MOST_AUDIENCES = 40, 8
KEPT = "private"
"""The name of the folder that no audience gets."""


class Audience(Section):
    """The guarantee of one audience: for all that it sees, the bundles of smaller epsilons included."""

    epsilon: Annotated[Decimal, Number(at_least="1e-6", at_most="1e9", advice="0.1 to 5 is usual")] = Field(
        description="Privacy loss by all that the audience sees."
    )
    delta: Annotated[Decimal, Number(above="0", below="1")] | None = Field(
        default=None,
        json_schema_extra=without_default,
        description="Probability that the bound may fail. Left out: privacy.delta.",
    )


@dataclass(frozen=True)
class Promise:
    """The (epsilon, delta) that an audience is promised.

    Attributes:
        audience: its name; "" for a release that has one bundle.
        epsilon: the loss by all that it sees.
        delta: None under pure epsilon-DP.
    """

    audience: str
    epsilon: Fraction
    delta: Fraction | None


def promises_of(
    audiences: Mapping[str, Audience], epsilon: Decimal, delta: Decimal | None
) -> tuple[Promise, ...]:
    """The promises of a release in rising order of epsilon: one for each audience, or its only one.

    Args:
        audiences: the audiences by name.
        epsilon: that of the section privacy.
        delta: that of the section privacy.
    """
    given = None if delta is None else Fraction(delta)
    if not audiences:
        return (Promise("", Fraction(epsilon), given),)
    found = [
        Promise(name, Fraction(a.epsilon), given if a.delta is None else Fraction(a.delta))
        for name, a in audiences.items()
    ]
    return tuple(sorted(found, key=lambda promise: promise.epsilon))


def with_largest_epsilon(values: dict[str, object]) -> dict[str, object]:
    """A configuration whose privacy.epsilon, where it is left out, is the largest of its audiences."""
    audiences, privacy = values.get("audiences"), values.get("privacy", {})
    if not isinstance(audiences, Mapping) or not isinstance(privacy, Mapping) or "epsilon" in privacy:
        return values
    each = [a["epsilon"] for a in audiences.values() if isinstance(a, Mapping) and "epsilon" in a]
    numbers = [e for e in each if isinstance(e, int | float | Decimal) and not isinstance(e, bool)]
    return {**values, "privacy": {**privacy, "epsilon": max(numbers)}} if numbers else values


def check_audiences(audiences: Mapping[str, Audience], epsilon: Decimal, delta: Decimal | None) -> None:
    """Refuse audiences that are not nested, or whose folders would collide.

    Args:
        audiences: the audiences by name.
        epsilon: that of the section privacy.
        delta: that of the section privacy.
    """
    if not audiences:
        return
    if len(audiences) > MOST_AUDIENCES:
        raise refused(f"may name at most {MOST_AUDIENCES}", "audiences")
    seen: set[str] = set()
    for name, audience in audiences.items():
        plain = name.replace("-", "").replace("_", "")
        if not (plain.isascii() and plain.isalnum() and name[0].isalpha()) or len(name) > _LONGEST:
            raise refused(f"must be {_NAME_WORDS}, of at most {_LONGEST} characters", "audiences", name)
        if name.casefold() == KEPT:
            raise refused("must have another name: private is the folder that nobody gets", "audiences", name)
        if name.casefold() in seen:
            raise refused("differs from another audience in capitals only", "audiences", name)
        seen.add(name.casefold())
        if audience.delta is not None and (delta is None or audience.delta > delta):
            most = "left out, as privacy.delta is" if delta is None else f"at most privacy.delta, {delta}"
            raise refused(f"must be {most}", "audiences", name, "delta")
    for small, large in pairwise(promises_of(audiences, epsilon, delta)):
        if small.epsilon == large.epsilon:
            raise refused(
                f"must differ from that of {small.audience}: audiences of one epsilon are one audience",
                "audiences",
                large.audience,
                "epsilon",
            )
        if small.delta is not None and large.delta is not None and large.delta < small.delta:
            raise refused(
                f"must be at least that of {small.audience}, whose bundle this audience gets too",
                "audiences",
                large.audience,
                "delta",
            )
    most_epsilon = max(audience.epsilon for audience in audiences.values())
    if epsilon != most_epsilon:
        raise refused(
            f"must be the largest of the audiences, {most_epsilon}, or left out: that is what all bundles "
            "cost together",
            "privacy",
            "epsilon",
        )
