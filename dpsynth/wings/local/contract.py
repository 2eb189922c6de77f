"""The contract of a collection: what every respondent is asked, and how each answer is randomised.

Respondents have no data owner to trust. They trust the contract: columns, questions, randomisers and epsilon,
all of it public, with a digest that every report carries.

Invariant: the contract follows from the config alone. A report costs its respondent at most ``epsilon``,
whatever her record holds and whichever question she draws: with ``one`` question she answers with the whole
of it, with all she answers each with a part, and the parts add up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from hashlib import sha256

from dpsynth.columns.domain import Clique, Domain
from dpsynth.config.compiled import CompiledSpec
from dpsynth.errors import ConfigError
from dpsynth.wings.local.keys import TWO_VALUED, Local, section_of
from dpsynth.wings.local.questions import (
    Layout,
    cliques_asked,
    expected_loss,
)
from dpsynth.wings.local.randomisers import Randomiser, log_above, odds_within, protocol

FORMAT = "dpsynth local contract 1"
_LEAST_PART = Fraction(1, 10**6)
"""Least epsilon of an answer: odds nearer to 1 would be lost in rounding."""
_ROUNDED = Fraction(1, 10**6)
MOST_CELLS = 100_000
"""Most cells of a question: an aggregator counts the support of each by each report."""
_TWO = 2


@dataclass(frozen=True)
class Question:
    """A question to respondents: their values of some columns together.

    Attributes:
        columns: the columns, in table order.
        randomiser: what is done to the answer, the number of a cell of the columns' marginal.
    """

    columns: Clique
    randomiser: Randomiser


@dataclass(frozen=True, eq=False)
class Contract:
    """The contract of a collection.

    Attributes:
        compiled: the config.
        one: True if a respondent answers one of several questions, drawn uniformly; False if she answers all.
        questions: the questions.
        asked_for: the epsilon in the config; what a report costs is at most that.
    """

    compiled: CompiledSpec
    one: bool
    questions: tuple[Question, ...]
    asked_for: Fraction

    @property
    def domain(self) -> Domain:
        """The domain of the columns."""
        return self.compiled.domain

    @property
    def section(self) -> Local:
        """The section ``local`` of the config."""
        return section_of(self.compiled.spec)

    @cached_property
    def epsilon(self) -> Fraction:
        """The privacy loss of a respondent, proved: of the worst question, or of all questions together."""
        losses = [log_above(question.randomiser.odds) for question in self.questions]
        total = max(losses) if self.one else sum(losses, Fraction(0))
        # Odds are rounded down from the epsilon asked for, which is short and what people know.
        return self.asked_for if total > self.asked_for - _ROUNDED else total

    @cached_property
    def digest(self) -> str:
        """SHA-256 in hex of all that a respondent agrees to."""
        spec = self.compiled.spec
        facts = {
            "format": FORMAT,
            "release": spec.release,
            "columns": [column.recorded for column in self.compiled.columns],
            "epsilon": str(self.epsilon),
            "answers": "one" if self.one else "all",
            "questions": [
                [list(q.columns), q.randomiser.name, str(q.randomiser.own), str(q.randomiser.other)]
                for q in self.questions
            ],
        }
        text = json.dumps(facts, sort_keys=True, separators=(",", ":"), default=str)
        return sha256(text.encode("ascii")).hexdigest()


def contract_of(compiled: CompiledSpec) -> Contract:
    """The contract that follows from a config of the local model.

    Raises:
        ConfigError: no randomiser keeps to the epsilon, or a question has too many cells.
    """
    spec, local = compiled.spec, section_of(compiled.spec)
    epsilon, domain = Fraction(spec.privacy.epsilon), compiled.domain
    found = []
    for ask in ("one", "all") if local.ask == "auto" else (local.ask,):
        one = ask == "one"
        cliques = cliques_asked(compiled, _layout(domain, local, epsilon, one=one))
        part = epsilon if one else epsilon / len(cliques)
        if not _affordable(local, part):
            continue
        questions = tuple(Question(c, _randomiser(local, domain, c, part)) for c in cliques)
        loss = expected_loss(compiled, _layout(domain, local, epsilon, one=one), cliques)
        found.append((loss, Contract(compiled, one and len(questions) > 1, questions, epsilon)))
    if not found:
        odds = local.fixed_odds
        cost = float(_LEAST_PART if odds is None else log_above(odds))
        raise ConfigError(
            f"privacy.epsilon {spec.privacy.epsilon} is not enough: an answer costs a respondent at least "
            f"{cost:.6g} by local.protocol {local.protocol}, and with local.ask: all the costs of all "
            "answers add up. Raise it, ask for less, or use another protocol or a smaller local.gamma."
        )
    return min(found, key=lambda way: way[0])[1]


def _affordable(local: Local, part: Fraction) -> bool:
    """True if the protocol has a randomiser for a part of epsilon."""
    return part >= _LEAST_PART if local.fixed_odds is None else log_above(local.fixed_odds) <= part


def _layout(domain: Domain, local: Local, epsilon: Fraction, *, one: bool) -> Layout:
    def randomiser(cells: int, questions: int) -> Randomiser:
        part = epsilon if one else max(epsilon / questions, _LEAST_PART)
        name = local.protocol
        # The forecast of a question that the protocol can't ask is never used.
        suited = name if cells == _TWO or name not in TWO_VALUED else "auto"
        return protocol(suited, cells, odds_within(part), _gamma(local))

    return Layout(domain, local.respondents, one=one, randomiser=randomiser, most_cells=MOST_CELLS)


def _gamma(local: Local) -> Fraction | None:
    return None if local.gamma is None else Fraction(local.gamma)


def _randomiser(local: Local, domain: Domain, columns: Clique, part: Fraction) -> Randomiser:
    cells = domain.cells(columns)
    if cells > MOST_CELLS:
        raise ConfigError(
            f"The question about {' with '.join(columns)} has {cells:,} cells, and {MOST_CELLS:,} are "
            "allowed with trust: local. Give its columns fewer bins or values, or leave it out of "
            "structure.cliques."
        )
    if local.protocol in TWO_VALUED and cells != _TWO:
        raise ConfigError(
            f"local.protocol {local.protocol} is for questions of two values, and that about "
            f"{' with '.join(columns)} has {cells:,}. Use k_ary or auto; or, if nothing is missing, say "
            "missing: false; and ask for single columns with structure: independent."
        )
    return protocol(local.protocol, cells, odds_within(part), _gamma(local))
