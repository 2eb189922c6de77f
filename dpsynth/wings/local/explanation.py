"""The guarantee of a collection in the local model and its limits, in plain words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpsynth.accounting.guarantee import Guarantee
from dpsynth.figures import count, guess_percent, odds_factor, rounded_up

if TYPE_CHECKING:
    from dpsynth.wings.local.collection import Collection


def local_guarantee_in_words(guarantee: Guarantee, collection: Collection) -> tuple[str, ...]:
    """The guarantee of every respondent, as sentences."""
    answered = (
        "Each answered one question, which she drew at random, about some columns of her record"
        if collection.one
        else "Each answered all questions, and their losses are added up"
    )
    if len(collection.questions) == 1:
        answered = "Each answered one question"
    sentences = [
        "Nobody had to be trusted. There was no private table: respondents randomised their records on "
        "their own side, and sent nothing but the randomised report.",
        "What is protected is each respondent's whole record. Whatever it holds, no report would have "
        f"become more than e^ε = {odds_factor(guarantee.epsilon)} times as likely or as unlikely, had it "
        "held anything else.",
        "Suppose that somebody guesses which of two records a respondent has. A coin would be right half of "
        "the time. After reading her own report they are right at most "
        f"{guess_percent(guarantee.epsilon, 0.0)} % of the time, whatever else they know and however much "
        "they compute.",
        f"{answered}.",
        "It holds for all the published files together, which were made of the reports alone.",
    ]
    shuffled = collection.shuffled
    if shuffled is not None:
        sentences.append(
            f"Shuffled, the {count(shuffled.reports)} reports together are (ε, δ)-differentially private in "
            f"the central sense with ε = {rounded_up(shuffled.epsilon)} and δ = "
            f"{rounded_up(shuffled.delta)}, under exchange of one respondent's record. {shuffled.assumption}"
        )
    return tuple(sentences)


def local_not_protected(collection: Collection) -> tuple[str, ...]:
    """The limits of the guarantee, as sentences."""
    sentences = [
        "Who took part. That a report was sent, when and from where is no secret of this protocol.",
        "Facts that hold for whole groups. If a habit and an illness go together among the respondents, the "
        "release may show it, and what it says of a group may be true of anyone in it.",
        "Other collections. The losses of a respondent who reports in several add up. Her own side "
        "keeps count of them, and gives one report of each contract.",
        "The figures, against respondents who lie. Nobody can check a report, and a hundred made-up reports "
        "move an estimate by more than a hundred true ones could: by up to 1/(p - q) respondents each.",
    ]
    if collection.shuffled is not None:
        sentences.append(
            f"More than ε = {rounded_up(collection.epsilon)} without a shuffler that can be trusted."
        )
    return tuple(sentences)


def local_cautions(collection: Collection) -> str:
    """The number of reports that the figures rest on, in words."""
    left = collection.repeated + sum(number for _, number in collection.faults)
    others = (
        f"; {count(left)} that were malformed, repeated or of another contract were left out" if left else ""
    )
    return f"All numbers are of the {count(collection.reports)} respondents whose reports were used{others}."


def cautions_in_words(collection: Collection, sentences: Sequence[str]) -> tuple[str, ...]:
    """The cautions on a private table, said of respondents, with the number of reports among them."""
    return tuple(map(_of_respondents, (*sentences[:2], local_cautions(collection), *sentences[2:])))


def _of_respondents(sentence: str) -> str:
    owned = sentence.replace("the private table's own", "the respondents' own")
    stands = owned.replace("how well the private table stands", "how well the respondents stand")
    return stands.replace("the private table", "the respondents' records")
