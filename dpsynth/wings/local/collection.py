"""The public facts of a collection whose reports were aggregated, with its guarantee in plain words.

Invariant: counts of reports are public, as reports are; none of it is about a respondent's record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction

from dpsynth.accounting.amount import float_up
from dpsynth.accounting.events import Guarantee
from dpsynth.figures import count, guess_percent, odds_factor, rounded_up
from dpsynth.page_templates import environment, paragraphs
from dpsynth.wings.local.contract import Contract
from dpsynth.wings.local.estimates import LocalAnswers
from dpsynth.wings.local.reports import Fault, Tally
from dpsynth.wings.local.shuffling import central_epsilon, closed_form


def in_words(block: str, facts: Mapping[str, object]) -> tuple[str, ...]:
    """The sentences of a block of ``words.txt.j2``."""
    pages = environment("wings/local")
    pages.filters |= {
        "up": rounded_up,
        "count": count,
        "odds": odds_factor,
        "guess": lambda epsilon: guess_percent(epsilon, 0.0),
        "moved": lambda error: f"{100 * error['share_moved']:.2g} %",
    }
    return paragraphs(pages.get_template("words.txt.j2"), block, facts)


def _of_respondents(sentence: str) -> str:
    owned = sentence.replace("the private table's own", "the respondents' own")
    stands = owned.replace("how well the private table stands", "how well the respondents stand")
    return stands.replace("the private table", "the respondents' records")


ASSUMPTION = (
    "It holds only if a shuffler that everyone trusts took off whatever said whose a report was, mixed all "
    "of them, and gave away nothing else; and if nobody saw a report before."
)


@dataclass(frozen=True)
class ShuffledGuarantee:
    """The central guarantee of reports whose order is lost.

    Attributes:
        epsilon: the least of the valid bounds, rounded up.
        closed_form: theorem 3.1 of Feldman, McMillan and Talwar 2021; infinite outside of its condition.
        delta: the delta of both.
        reports: number of reports that were mixed.
        assumption: what it rests on.
    """

    epsilon: float
    closed_form: float
    delta: float
    reports: int
    assumption: str = ASSUMPTION

    def to_json(self) -> dict[str, object]:
        form = None if self.closed_form == float("inf") else self.closed_form
        source = "Feldman, McMillan and Talwar 2021, theorem 3.1 and its reduction to clones"
        return {**asdict(self), "closed_form": form, "neighbours": "replace_one", "source": source}


@dataclass(frozen=True)
class AskedQuestion:
    """A question as it was answered.

    Attributes:
        columns: its columns.
        randomiser: the name of the randomiser.
        own, other: the probabilities with which a report supports the respondent's own cell and another one.
        odds: the largest ratio of the probabilities of an answer under two cells, exactly.
        one_hot: True if a report supports exactly one cell.
        reports: number of reports about it.
        standard_deviation: of a cell of its debiased counts on average, in respondents.
    """

    columns: tuple[str, ...]
    randomiser: str
    own: Fraction
    other: Fraction
    odds: Fraction
    one_hot: bool
    reports: int
    standard_deviation: float

    def to_json(self) -> dict[str, object]:
        """Plain JSON values, the probabilities as exact fractions."""
        exact = {key: str(getattr(self, key)) for key in ("own", "other", "odds")}
        return {**asdict(self), "columns": list(self.columns), **exact}


@dataclass(frozen=True)
class Collection:
    """A collection whose reports were aggregated.

    Attributes:
        contract: the digest that the reports carry.
        epsilon: the privacy loss of each respondent, rounded up.
        one: True if each report answers one question, drawn by its respondent.
        questions: the questions that have reports.
        reports: number of reports that are used.
        repeated: reports left out because their id was read before.
        faults: texts left out, by fault.
        broken_files: files of which a part could not be read.
        shuffled: the central guarantee with a trusted shuffler; None if the config names none.
    """

    contract: str
    epsilon: float
    one: bool
    questions: tuple[AskedQuestion, ...]
    reports: int
    repeated: int
    faults: tuple[tuple[str, int], ...]
    broken_files: int
    shuffled: ShuffledGuarantee | None

    @classmethod
    def of(cls, contract: Contract, tally: Tally, answers: LocalAnswers) -> Collection:
        """The facts of a contract, a tally and its debiased answers."""
        randomisers = {question.columns: question.randomiser for question in contract.questions}
        asked = tuple(
            AskedQuestion(
                a.clique,
                (of := randomisers[a.clique]).name,
                of.own,
                of.other,
                of.odds,
                of.one_hot,
                a.reports,
                a.variance**0.5,
            )
            for a in answers.answers
        )
        return cls(
            contract.digest,
            float_up(contract.epsilon),
            contract.one,
            asked,
            tally.reports,
            tally.repeated,
            tuple((fault.value, tally.faults[fault]) for fault in Fault),
            tally.broken_files,
            shuffled_guarantee(contract, tally.reports),
        )

    def to_json(self) -> dict[str, object]:
        return {
            "epsilon_per_respondent": self.epsilon,
            "contract": self.contract,
            "answers_a_report": "one question, drawn at random" if self.one else "all questions",
            "reports": self.reports,
            "left_out": {
                "repeated": self.repeated,
                **dict(self.faults),
                "unreadable files": self.broken_files,
            },
            "questions": [question.to_json() for question in self.questions],
            "shuffled": None if self.shuffled is None else self.shuffled.to_json(),
        }

    def guarantee_in_words(self, guarantee: Guarantee) -> tuple[str, ...]:
        """The guarantee of every respondent, as sentences."""
        return in_words("guarantee", {"of": self, "guarantee": guarantee})

    def not_protected(self) -> tuple[str, ...]:
        """The limits of the guarantee, as sentences."""
        return in_words("not_protected", {"of": self})

    def cautions(self, sentences: Sequence[str]) -> tuple[str, ...]:
        """The cautions on a private table, said of respondents, with the number of reports among them."""
        left = self.repeated + sum(number for _, number in self.faults)
        others = (
            f"; {count(left)} that were malformed, repeated or of another contract were left out"
            if left
            else ""
        )
        own = f"All numbers are of the {count(self.reports)} respondents whose reports were used{others}."
        return tuple(map(_of_respondents, (*sentences[:2], own, *sentences[2:])))


def shuffled_guarantee(contract: Contract, reports: int) -> ShuffledGuarantee | None:
    """The central guarantee of so many shuffled reports; None if the config names no shuffler."""
    shuffled, epsilon = contract.section.shuffled, float_up(contract.epsilon)
    if shuffled is None:
        return None
    delta = float(shuffled.delta)
    return ShuffledGuarantee(
        central_epsilon(epsilon, reports, delta), closed_form(epsilon, max(reports, 1), delta), delta, reports
    )
