"""The contract of a collection: what every respondent is asked, and how each answer is randomised.

Respondents have no data owner to trust. They trust the contract: columns, questions, randomisers and epsilon,
all of it public, with a digest that every report carries.

Nothing can be asked twice in the local model, so all questions are fixed beforehand, from public facts. Each
further question takes answers, or epsilon, from all others. A pair of columns is worth a question if the
noise of its answer is not far above what the columns' relation may be.

Errors are forecast as the share of respondents that noise moves between the cells of a marginal, the expected
total variation distance. A relation is taken to move ``RELATION`` of the respondents. If noise moves T of
them, an estimate that weighs the answer by that is off by T R/sqrt(T^2 + R^2), and R without an answer.

Invariant: the contract follows from the config alone. A report costs its respondent at most ``epsilon``,
whatever her record holds and whichever question she draws: with ``one`` question she answers with the whole
of it, with all she answers each with a part, and the parts add up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from hashlib import sha256
from itertools import combinations
from math import inf, pi, sqrt

from dpsynth.columns.domain import Clique, Domain
from dpsynth.config.compiled import CompiledSpec
from dpsynth.errors import ConfigError
from dpsynth.wings.local.keys import TWO_VALUED, Local, section_of
from dpsynth.wings.local.randomisers import Randomiser, log_above, mean_variance, odds_within, protocol

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
        return self.compiled.domain

    @property
    def section(self) -> Local:
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


RELATION = 0.1
"""Share of the respondents that the relation of two columns is taken to move."""
_TRIED = 64
"""Numbers of pairs that are tried."""


@dataclass(frozen=True, eq=False)
class Layout:
    """The way in which questions are answered.

    Attributes:
        domain: the columns.
        respondents: number of respondents to expect.
        one: True if each answers one question; False if each answers all.
        randomiser: the randomiser for a number of cells, where so many questions are asked.
        most_cells: largest number of cells of a question.
    """

    domain: Domain
    respondents: int
    one: bool
    randomiser: Callable[[int, int], Randomiser]
    most_cells: int

    def variance(self, cells: int, questions: int) -> float:
        """The expected variance of the share of a cell, by one of so many questions: noise and sampling.

        A respondent who answers one question of m is a sample of 1/m of all; the share of a cell in it has
        the variance s(1-s)(m-1)/n, at equal shares s = 1/cells.
        """
        each = mean_variance(self.randomiser(cells, questions))
        if not self.one:
            return each / self.respondents
        sampling = (questions - 1) / cells * (1 - 1 / cells)
        return (each * questions + sampling) / self.respondents


def cliques_asked(compiled: CompiledSpec, layout: Layout) -> tuple[Clique, ...]:
    """The cliques that respondents are asked about; every column is in one of them.

    ``independent``, or a protocol for two values: single columns. ``fixed``: the listed cliques, and the
    columns in none alone. ``auto``: pairs of the workload, those of fewest cells first, as many as make the
    forecast error least, and the columns in none of them alone.
    """
    structure, domain = compiled.spec.structure, layout.domain
    two_valued = structure.method == "auto" and section_of(compiled.spec).protocol in TWO_VALUED
    if structure.method == "independent" or two_valued:
        return _covering(domain, ())
    if structure.method == "fixed":
        return _covering(domain, [domain.canonical(clique) for clique in structure.cliques or ()])
    weights = _weights(compiled)
    wanted = [domain.canonical(r.columns) for r in compiled.spec.publish.statistics if len(r.columns) > 1]
    wanted = [c for c in dict.fromkeys(wanted) if domain.cells(c) <= layout.most_cells]
    pairs = sorted(
        (p for p in weights if domain.cells(p) <= layout.most_cells and p not in wanted),
        key=lambda pair: domain.cells(pair) / weights[pair],
    )
    numbers = sorted({round(i * len(pairs) / _TRIED) for i in range(_TRIED + 1)})
    ways = [_covering(domain, [*wanted, *pairs[:number]]) for number in numbers]
    return min(ways, key=lambda way: expected_loss(compiled, layout, way))


def expected_loss(compiled: CompiledSpec, layout: Layout, cliques: Sequence[Clique]) -> float:
    """The forecast error of all weighted pairs, by these questions; infinite if there is none of a column.

    That of a pair is the error of its relation, and half of the errors of its columns.
    """
    domain, questions = layout.domain, len(cliques)
    variance = cache(lambda cells: layout.variance(cells, questions))
    precision = dict.fromkeys(domain.columns, 0.0)
    noise: dict[Clique, float] = {}
    for clique in cliques:
        cells = domain.cells(clique)
        moved = _moved(cells, variance(cells))
        for two in combinations(clique, 2):
            noise[two] = min(noise.get(two, inf), moved)
        for column in clique:
            precision[column] += domain.sizes[column] / (cells * variance(cells))
    singles = {c: _moved(domain.sizes[c], 1 / p) if p else inf for c, p in precision.items()}
    weights = _weights(compiled)
    if not weights:
        return sum(singles.values())
    loss = 0.0
    for pair, weight in weights.items():
        relation = RELATION / sqrt(1 + (RELATION / noise.get(pair, inf)) ** 2)
        loss += weight * (relation + sum(singles[c] for c in pair) / 2)
    return loss


def _moved(cells: int, variance: float) -> float:
    """The share of the respondents that normal noise moves between cells."""
    return cells * sqrt(2 * variance / pi) / 2


def _weights(compiled: CompiledSpec) -> dict[Clique, float]:
    workload, domain = compiled.workload, compiled.domain
    if len(domain.columns) < 2:
        return {}
    table = workload.pair_weights()
    at = {c: i for i, c in enumerate(workload.columns)}
    weights = {(a, b): float(table[at[a], at[b]]) for a, b in combinations(domain.columns, 2)}
    return {pair: weight for pair, weight in weights.items() if weight > 0}


def _covering(domain: Domain, cliques: Sequence[Clique]) -> tuple[Clique, ...]:
    """The cliques, and every column in none of them alone."""
    held = {c for clique in cliques for c in clique}
    return (*dict.fromkeys(cliques), *((c,) for c in domain.columns if c not in held))
