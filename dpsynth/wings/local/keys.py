"""The section ``local``: what respondents randomise at their own side, and the keys that have no use there.

Invariant: a config of the local model is the public contract of a collection. It names no table, and no key
of a curator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Literal

from pydantic import Field

from dpsynth.columns.section import Choice, Number, Section, Whole, refused
from dpsynth.config import Spec

Protocol = Literal["auto", "warner", "two_coin", "k_ary", "unary", "hashing"]
Ask = Literal["auto", "one", "all"]

PROTOCOLS = ("auto", "warner", "two_coin", "k_ary", "unary", "hashing")
METHODS = ("auto", "independent", "fixed")
"""Methods whose questions are fixed before the first answer."""
LEAST_EPSILON, LARGEST_EPSILON = Decimal("0.001"), 30
TWO_VALUED = ("warner", "two_coin")
"""Protocols for questions of two values."""
TWO_COIN_ODDS = Fraction(3)


_NO_TABLE = "there is no private table, and respondents randomise their own records"
_USELESS: Mapping[str, str] = {
    "audiences": "have no use with trust: local: a report is safe to be read by everyone",
    "period": "has no use with trust: local: who is asked, and when, is up to the collection",
    "schedule": "has no use with trust: local: reports are aggregated when they have come in",
    "reuse": "has no use with trust: local: give each collection a release of its own",
    "embargo": "is not supported with trust: local",
    "engine": "has no use with trust: local: there is no private table to count",
    "public_table": "is not supported with trust: local",
    "public_marginals": "are not supported with trust: local",
}
_USELESS_IN: Mapping[str, Mapping[str, str]] = {
    "privacy": {
        "delta": "must be left out with trust: local: every report is epsilon-DP without a delta. That of "
        "a shuffler is local.shuffled.delta",
        "noise": "has no use with trust: local: answers are randomised, by local.protocol",
        "neighbours": "has no use with trust: local: it holds for any two records of a respondent, and who "
        "took part is public",
        "unit": "has no use with trust: local: the unit is one respondent, who gives one report",
        "accountant": "has no use with trust: local: a respondent gives one report, of epsilon",
        "sample_rate": "has no use with trust: local: nobody could keep secret who takes part",
        "split": "has no use with trust: local: see local.ask",
        "on_empty": "has no use with trust: local: nothing is left to be spent when reports are aggregated",
    },
    "ledger": {
        "cap": "has no use with trust: local: no curator spends anything, so there is nothing to cap. A "
        "respondent caps her own reports with dpsynth collect --cap",
        "filter": "has no use with trust: local: nothing is charged",
        "other_people": "has no use with trust: local: nothing is charged",
    },
    "structure": {
        "merge_rare": "has no use with trust: local: respondents answer over the values that are declared",
        "max_seconds": "has no use with trust: local: use max_model_mb",
    },
}


class Shuffled(Section):
    """A shuffler that everyone trusts: it removes all that says whose a report is."""

    delta: Annotated[Decimal, Number(above="0", below="1", advice="well below 1 divided by respondents")] = (
        Field(description="Delta of the central guarantee that is stated beside the local one.")
    )


class Local(Section):
    """The collection of a release under trust: local."""

    protocol: Annotated[Protocol, Choice(PROTOCOLS)] = Field(
        default="auto",
        description="Randomiser of an answer. auto: the one of least predicted variance for each question. "
        "warner and two_coin are for two values; the odds of two_coin are 3, so it costs ln 3 = 1.0987.",
    )
    gamma: Annotated[Decimal, Number(above="0", below="0.5")] | None = Field(
        default=None,
        description="For warner: the truth is reported with probability 1/2 + gamma, at a cost of "
        "ln((1/2 + gamma)/(1/2 - gamma)). Left out: the largest that privacy.epsilon allows.",
    )
    ask: Annotated[Ask, Choice(("auto", "one", "all"))] = Field(
        default="auto",
        description="one: a respondent answers one question, drawn at random, with her whole epsilon. all: "
        "she answers all, each with an equal part of it. auto: whichever has the smaller predicted error.",
    )
    respondents: Annotated[int, Whole(at_least="1", at_most="1000000000")] = Field(
        default=10_000,
        description="Respondents to expect, a public guess: questions are chosen and errors forecast by it.",
    )
    shuffled: Shuffled | None = Field(
        default=None, description="State the central guarantee of reports that a trusted shuffler mixes."
    )

    def model_post_init(self, context: object, /) -> None:
        if self.gamma is not None and self.protocol != "warner":
            raise refused("is for protocol: warner; remove it, or use that", "gamma")

    @property
    def fixed_odds(self) -> Fraction | None:
        """The odds that the protocol has by itself; None where they follow from epsilon."""
        if self.protocol == "two_coin":
            return TWO_COIN_ODDS
        if self.gamma is None:
            return None
        gamma = Fraction(self.gamma)
        return (Fraction(1, 2) + gamma) / (Fraction(1, 2) - gamma)

    @staticmethod
    def refuse_central_keys(values: Mapping[str, object]) -> None:
        """Refuse the keys that a config has and that make no sense without a curator."""
        if "source" in values:
            raise refused(
                f"has no use with trust: local: {_NO_TABLE}. Remove it; a file of records is given to: "
                "dpsynth collect CONFIG --records FILE --id COLUMN",
                "source",
            )
        for key, words in _USELESS.items():
            if key in values:
                raise refused(words, key)
        for section, keys in _USELESS_IN.items():
            given = values.get(section)
            if isinstance(given, Mapping):
                for key, words in keys.items():
                    if key in given:
                        raise refused(words, section, key)

    def check(self, epsilon: Decimal, method: str, searched: Iterable[str]) -> None:
        """Refuse a collection that can't be run.

        Args:
            epsilon: the loss of a respondent.
            method: structure.method.
            searched: the columns of which something is to be found privately.
        """
        if not LEAST_EPSILON <= epsilon <= LARGEST_EPSILON:
            words = f"must be at least {LEAST_EPSILON} and at most {LARGEST_EPSILON} with trust: local"
            raise refused(words, "privacy", "epsilon")
        if method not in METHODS:
            raise refused(
                f"must be {', '.join(METHODS[:-1])} or {METHODS[-1]} with trust: local: all questions are "
                "fixed before the first respondent answers",
                "structure",
                "method",
            )
        for name in searched:
            raise refused(
                "must be declared with trust: local: nobody can look for open categories, or for private "
                "bounds and edges. List all values, or give min and max",
                "columns",
                name,
            )


def section_of(spec: Spec) -> Local:
    """The section of a configuration of the local model."""
    assert isinstance(spec.local, Local)
    return spec.local
