"""Audiences of a release: what a bundle says of the others, and the answers of earlier tiers that it holds.

Invariant: of another audience a bundle names its name and its epsilon, and nothing of what that audience learns.
A bundle holds the answers of audiences of smaller epsilons, whose bundles its own audience gets as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth.accounting.rounding import float_up
from dpsynth.domain.domain import Clique
from dpsynth.evidence.evidence import Answered
from dpsynth.plan.tiers import Tier
from dpsynth.presentation.figures import rounded_up


@dataclass(frozen=True, eq=False)
class BundleAudience:
    """The audience of a bundle.

    Attributes:
        name: its name.
        tiers: the tiers of the release, in rising order of epsilon.
        earlier: joint answers of tiers before, with the audience of each.
    """

    name: str
    tiers: tuple[Tier, ...]
    earlier: tuple[tuple[str, Answered], ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns that tiers before have measured together."""
        return tuple(dict.fromkeys(m.clique for _, answered in self.earlier for m in answered.answers))

    def to_json(self) -> dict[str, object]:
        """The manifest's entry."""
        return {
            "name": self.name,
            "audiences": [{"name": t.audience, "epsilon": float_up(t.epsilon)} for t in self.tiers],
            "answers_of": {name: file_of(name) for name, _ in self.earlier},
        }


def file_of(audience: str) -> str:
    """The file in which a bundle holds the joint answers of an audience before."""
    return f"measurements-{audience}.parquet"


def audiences_in_words(audience: BundleAudience) -> tuple[str, ...]:
    """The bundles of other audiences, and what they cost together, as sentences."""
    names = [tier.audience for tier in audience.tiers]
    place = names.index(audience.name)
    fewer, more = audience.tiers[:place], audience.tiers[place + 1 :]
    sentences = [f"This bundle is for the audience {audience.name}."]
    if fewer:
        sentences.append(
            f"The same release has a bundle for {_each(fewer)}. Its answers are among those of this one, and the "
            "guarantee here holds for whoever sees both."
        )
    if more:
        sentences.append(
            f"The same release has a bundle for {_each(more)}. It is made of further answers, which this bundle "
            "holds nothing of: the guarantee here is for readers who see this bundle alone. Whoever sees both is "
            "bound by the larger ε, not by the sum."
        )
    return tuple(sentences)


def _each(tiers: Sequence[Tier]) -> str:
    return " and one for ".join(
        f"{tier.audience} (ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{rounded_up(float_up(tier.epsilon))})"
        for tier in tiers
    )
