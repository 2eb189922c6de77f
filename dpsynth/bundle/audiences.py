"""Audiences of a release: what a bundle says of the others, and the answers of earlier tiers that it holds.

Invariant: of another audience a bundle gives its name and its epsilon, and nothing of what that audience
learns. A bundle holds the answers of audiences of smaller epsilons, whose bundles its own audience gets too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dpsynth.columns.compression import Compression
from dpsynth.columns.domain import Clique
from dpsynth.columns.measurement import Measurement
from dpsynth.figures import rounded_up
from dpsynth.strategy.evidence.evidence import Answered


@dataclass(frozen=True, eq=False)
class TierAnswers:
    """The joint answers of one tier.

    Attributes:
        audience: its audience.
        answers: noisy marginals, over the compressed domain.
        compression: the groups of merged values.
    """

    audience: str
    answers: tuple[Measurement, ...]
    compression: Compression

    @property
    def answered(self) -> Answered:
        """The answers as evidence about the same rows."""
        return Answered((), self.answers, self.compression)


@dataclass(frozen=True, eq=False)
class BundleAudience:
    """The audience of a bundle.

    Attributes:
        name: its name.
        epsilons: the epsilon of each audience, rounded up, by name, in rising order.
        earlier: joint answers of tiers before.
    """

    name: str
    epsilons: Mapping[str, float]
    earlier: tuple[TierAnswers, ...] = ()

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The columns that tiers before have measured together."""
        return tuple(dict.fromkeys(m.clique for tier in self.earlier for m in tier.answers))

    def to_json(self) -> dict[str, object]:
        """The manifest's entry."""
        return {
            "name": self.name,
            "audiences": [{"name": name, "epsilon": epsilon} for name, epsilon in self.epsilons.items()],
            "answers_of": {tier.audience: file_of(tier.audience) for tier in self.earlier},
        }


def file_of(audience: str) -> str:
    """The file in which a bundle holds the joint answers of an audience before."""
    return f"measurements-{audience}.parquet"


def audiences_in_words(audience: BundleAudience) -> tuple[str, ...]:
    """The bundles of other audiences, and what they cost together, as sentences."""
    own = audience.epsilons[audience.name]
    fewer = {name: epsilon for name, epsilon in audience.epsilons.items() if epsilon < own}
    more = {name: epsilon for name, epsilon in audience.epsilons.items() if epsilon > own}
    sentences = [f"This bundle is for the audience {audience.name}."]
    if fewer:
        sentences.append(
            f"The same release has a bundle for {_each(fewer)}. Its answers are among those of this one, "
            "and the guarantee here holds for readers of both."
        )
    if more:
        sentences.append(
            f"The same release has a bundle for {_each(more)}. It is made of further answers, and this "
            "bundle holds none of them. The guarantee here is for readers who see this bundle alone. For "
            "readers of both the larger ε holds, and not the sum."
        )
    return tuple(sentences)


def _each(epsilons: Mapping[str, float]) -> str:
    return " and one for ".join(
        f"{name} (ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{rounded_up(epsilon)})"
        for name, epsilon in epsilons.items()
    )
